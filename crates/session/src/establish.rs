//! From the first byte to AuthenticationOk.

use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use switchyard_catalog::{AuthenticationMethod, User};
use switchyard_wire::message::{self, ENCRYPTION_REFUSED, LOAD_BALANCE_DECLINED};
use switchyard_wire::scram::{self, ClientKey, Exchange, Proven, ScramError};
use switchyard_wire::startup::Negotiated;
use switchyard_wire::verifier::MockSecret;
use switchyard_wire::{CancelKey, ScramVerifier, Startup, Untyped, Version};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep, timeout};

use crate::connection::Connection;
use crate::error::{PasswordFailure, SessionError};
use crate::limits::Limits;
use crate::login::{Authenticate, LoginDecision, LoginRequest, Peer};
use crate::registry::{NewSession, Registry, Session};
use crate::throttle::Throttle;

/// The longest message of a SASL exchange, its frame and the mechanism's name included.
const SASL_BYTES_MAX: usize = scram::MESSAGE_BYTES_MAX + 64;

/// What all logins share.
pub struct Context {
    /// The limits.
    pub limits: Limits,
    /// The live sessions.
    pub registry: Arc<Registry>,
    /// The failed logins.
    pub throttle: Arc<Throttle>,
    /// Makes unknown users look like known ones.
    pub mock_secret: MockSecret,
    /// The iterations that users' verifiers are made with, so that those of unknown users show the same.
    pub scram_iterations: u32,
    /// Says who may log in, and how: [`crate::decide_login`] on the newest catalog.
    pub authenticate: Box<Authenticate>,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// What a connection turned out to be.
#[derive(Debug)]
pub enum Established<S> {
    /// A client that has logged in.
    Client(Box<Client<S>>),
    /// A request to stop what another session is doing. The sender waits for the end of the stream: it is to be dropped
    /// when the request has been passed on. There is no other answer.
    Cancel {
        /// The stream.
        stream: S,
        /// The session.
        process_id: i32,
        /// The key that proves that the sender may.
        secret: CancelKey,
    },
}

/// A client that has been told AuthenticationOk, and nothing after it.
#[derive(Debug)]
pub struct Client<S> {
    /// The stream.
    pub stream: S,
    /// What the client sent ahead: the first bytes to be read.
    pub leftover: BytesMut,
    /// Where the client is.
    pub peer: Peer,
    /// The user as the catalog had it at login.
    pub user: Arc<User>,
    /// The database named at startup; `None` when none was, or an empty one.
    pub database: Option<String>,
    /// All parameters of the startup packet, in order; without the options of the protocol itself (`_pq_.`).
    pub parameters: Vec<(String, String)>,
    /// The protocol spoken.
    pub version: Version,
    /// The place in the registry, with process id and key.
    pub session: Session,
    /// What the user proved with; `None` when no proof was asked.
    pub client_key: Option<ClientKey>,
}

/// Takes a connection from its first byte to AuthenticationOk.
///
/// # Errors
/// When it does not become a session. The client has been told and the stream is closed then; the caller only logs.
pub async fn establish<S>(stream: S, peer: Peer, context: &Context) -> Result<Established<S>, SessionError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let mut connection = Connection::new(stream);
    let slot = context.registry.begin_login(&context.limits);
    let outcome = match &slot {
        Ok(_) => timeout(context.limits.login_time(), log_in(&mut connection, peer, context))
            .await
            .unwrap_or(Err(SessionError::LoginTime { ms_max: context.limits.login_time_ms_max })),
        Err(_) => Err(SessionError::LoginsMax { logins_max: context.limits.logins_max }),
    };
    match outcome {
        Ok(outcome) => Ok(outcome.with(connection)),
        Err(error) => {
            if error.is_guess() {
                sleep(context.throttle.failed(peer.ip(), Instant::now(), &context.limits)).await;
            }
            connection.refuse(error.report().as_ref()).await;
            Err(error)
        }
    }
}

/// [`Established`] while the stream is still in use.
enum Outcome {
    Cancel { process_id: i32, secret: CancelKey },
    LoggedIn(Box<LoggedIn>),
}

struct LoggedIn {
    peer: Peer,
    user: Arc<User>,
    database: Option<String>,
    parameters: Vec<(String, String)>,
    version: Version,
    session: Session,
    client_key: Option<ClientKey>,
}

impl Outcome {
    fn with<S: AsyncRead + AsyncWrite + Unpin>(self, connection: Connection<S>) -> Established<S> {
        let (stream, leftover) = connection.into_parts();
        match self {
            Self::Cancel { process_id, secret } => Established::Cancel { stream, process_id, secret },
            Self::LoggedIn(login) => {
                let LoggedIn { peer, user, database, parameters, version, session, client_key } = *login;
                Established::Client(Box::new(Client {
                    stream,
                    leftover,
                    peer,
                    user,
                    database,
                    parameters,
                    version,
                    session,
                    client_key,
                }))
            }
        }
    }
}

async fn log_in<S>(connection: &mut Connection<S>, peer: Peer, context: &Context) -> Result<Outcome, SessionError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let mut startup = match first_packet(connection, context.limits.startup_bytes_max).await? {
        First::Cancel { process_id, secret } => return Ok(Outcome::Cancel { process_id, secret }),
        First::Startup(startup) => startup,
    };
    let Negotiated { version, options_unknown, tell } = startup.negotiate();
    if tell {
        message::negotiate_protocol_version(connection.out(), version, &options_unknown);
    }
    check_replication(&startup)?;
    let given = |name| startup.parameter(name).filter(|value| !value.is_empty());
    let user_name = given("user").ok_or(SessionError::UserMissing)?;
    let database = given("database").map(str::to_owned);
    let application = given("application_name").or(given("client_label")).unwrap_or_default().to_owned();
    let (user, client_key) = authenticate(connection, peer, user_name, database.as_deref(), context).await?;
    let new = NewSession {
        user: user.id,
        user_name: user.name.clone(),
        superuser: user.superuser,
        client: peer.address(),
        database: database.clone(),
        version,
        application,
    };
    let session = context.registry.register(new, &context.limits, &mut rand::rng())?;
    message::authentication_ok(connection.out());
    connection.flush().await?;
    let Startup { parameters, .. } = startup;
    let login = LoggedIn { peer, user, database, parameters, version, session, client_key };
    Ok(Outcome::LoggedIn(Box::new(login)))
}

enum First {
    Cancel { process_id: i32, secret: CancelKey },
    Startup(Startup),
}

/// Answers requests until the client says what it is here for.
async fn first_packet<S>(connection: &mut Connection<S>, bytes_max: usize) -> Result<First, SessionError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut asked = Vec::new();
    loop {
        let (request, encryption, answer) = match connection.untyped(bytes_max).await? {
            Untyped::SslRequest => ("SSL", true, ENCRYPTION_REFUSED),
            Untyped::GssEncRequest => ("GSSAPI encryption", true, ENCRYPTION_REFUSED),
            Untyped::LoadBalanceRequest => ("load balance", false, LOAD_BALANCE_DECLINED),
            Untyped::CancelRequest { process_id, secret } => return Ok(First::Cancel { process_id, secret }),
            Untyped::Startup(startup) => return Ok(First::Startup(startup)),
        };
        if asked.contains(&request) {
            return Err(SessionError::RequestRepeated(request));
        }
        asked.push(request);
        // What comes behind a request for encryption is not encrypted, and may be from somebody on the way.
        if encryption && connection.has_unread() {
            return Err(SessionError::BytesAfterRequest(request));
        }
        connection.out().put_u8(answer);
        connection.flush().await?;
    }
}

fn check_replication(startup: &Startup) -> Result<(), SessionError> {
    let off = ["", "false", "off", "no", "0"];
    match startup.parameter("replication") {
        Some(value) if !off.iter().any(|off| off.eq_ignore_ascii_case(value)) => Err(SessionError::Replication),
        _ => Ok(()),
    }
}

async fn authenticate<S>(
    connection: &mut Connection<S>,
    peer: Peer,
    user_name: &str,
    database: Option<&str>,
    context: &Context,
) -> Result<(Arc<User>, Option<ClientKey>), SessionError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let LoginDecision { methods, user } = (context.authenticate)(&LoginRequest { user: user_name, peer, tls: false });
    let login = || describe(peer, user_name, database);
    // Nobody has shown a certificate: there is no TLS yet. The next record may do without.
    let feasible = methods.iter().find(|method| **method != AuthenticationMethod::Tls).or(methods.first());
    let (user, client_key) = match feasible {
        None => return Err(SessionError::RecordMissing { login: login() }),
        Some(AuthenticationMethod::Reject) => return Err(SessionError::Rejected { login: login() }),
        Some(AuthenticationMethod::Tls) => return Err(SessionError::CertificateMissing),
        Some(AuthenticationMethod::Trust) => (user.map_err(|_| SessionError::UserUnknown(user_name.to_owned()))?, None),
        // A failure is final: once they have begun to prove, clients take no other method.
        Some(AuthenticationMethod::Hash) => prove(connection, user, user_name, context).await?,
    };
    // Only now: whoever cannot prove who he is learns nothing of the account.
    if user.locked {
        return Err(SessionError::UserLocked(user.name.clone()));
    }
    Ok((user, client_key))
}

/// The login as PostgreSQL's messages describe it.
fn describe(peer: Peer, user: &str, database: Option<&str>) -> String {
    let host = peer.ip().map_or_else(|| "[local]".to_owned(), |ip| ip.to_string());
    let database = database.unwrap_or(user);
    format!("host \"{host}\", user \"{user}\", database \"{database}\", no encryption")
}

/// Has the client prove by SCRAM-SHA-256 that it knows the user's password. Users that cannot log in so are taken
/// through the same steps, and are told the same at the end.
async fn prove<S>(
    connection: &mut Connection<S>,
    user: Result<Arc<User>, PasswordFailure>,
    user_name: &str,
    context: &Context,
) -> Result<(Arc<User>, Option<ClientKey>), SessionError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let genuine = user.and_then(|user| {
        let verifiers = user.verifiers.as_ref().ok_or(PasswordFailure::PasswordUnset)?;
        let verifier = ScramVerifier::parse(verifiers.scram.reveal()).map_err(|_| PasswordFailure::VerifierDamaged)?;
        Ok((user, verifier))
    });
    let (user, verifier) = match genuine {
        Ok((user, verifier)) => (Ok(user), verifier),
        Err(why) => (Err(why), ScramVerifier::mock(&context.mock_secret, user_name, context.scram_iterations)),
    };
    let refused = |why| SessionError::Password { user: user_name.to_owned(), why };
    let proven = match exchange(connection, verifier).await {
        Ok(proven) => proven,
        Err(SessionError::Scram(ScramError::Proof)) => {
            return Err(refused(user.err().unwrap_or(PasswordFailure::PasswordWrong)));
        }
        Err(error) => return Err(error),
    };
    // No proof holds for a mock, but this does not depend on it.
    let user = user.map_err(refused)?;
    message::authentication_sasl_final(connection.out(), proven.server_final.as_bytes());
    Ok((user, Some(proven.client_key)))
}

async fn exchange<S>(connection: &mut Connection<S>, verifier: ScramVerifier) -> Result<Proven, SessionError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    message::authentication_sasl(connection.out(), &[scram::MECHANISM]);
    connection.flush().await?;
    let body = connection.message(b'p', SASL_BYTES_MAX).await?;
    let initial = message::sasl_initial_response(&body)?;
    if initial.mechanism != scram::MECHANISM {
        return Err(SessionError::Mechanism);
    }
    let exchange = Exchange::new(verifier, &mut rand::rng());
    let (challenge, challenged) = match initial.data {
        Some(first) => exchange.challenge(first)?,
        // Asked for a first message by an empty challenge, the client sends it.
        None => {
            message::authentication_sasl_continue(connection.out(), b"");
            connection.flush().await?;
            exchange.challenge(&connection.message(b'p', SASL_BYTES_MAX).await?)?
        }
    };
    message::authentication_sasl_continue(connection.out(), challenge.as_bytes());
    connection.flush().await?;
    Ok(challenged.prove(&connection.message(b'p', SASL_BYTES_MAX).await?)?)
}

#[cfg(test)]
mod tests;
