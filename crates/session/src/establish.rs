//! From the first byte to AuthenticationOk.

mod arrival;
mod vertica;

use std::sync::Arc;

use bytes::BytesMut;
use switchyard_catalog::{Authentication, AuthenticationMethod, LimitScope, Name, User};
use switchyard_wire::member::{Introduction, Nonces};
use switchyard_wire::message;
use switchyard_wire::scram::{self, Channel, ClientKey, Exchange, Proven, ScramError};
use switchyard_wire::startup::Negotiated;
use switchyard_wire::verifier::MockSecret;
use switchyard_wire::vertica::{Wishes, authentication};
use switchyard_wire::{CancelKey, ScramVerifier, Startup, Version};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep, timeout};

use self::arrival::{Arrival, First, TlsChannel, first_packet};
use crate::admission::{Admission, Admit, Permit};
use crate::connection::Connection;
use crate::error::{PasswordFailure, SessionError};
use crate::limits::Limits;
use crate::login::{Attempt, Authenticate, LoginDecision, LoginRequest, Peer};
use crate::registry::{LoginSlot, NewSession, Registry, Session};
use crate::routing::{Destination, Routing};
use crate::secured::Secured;
use crate::throttle::Throttle;
use crate::tls::Tls;

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
    /// TLS, if there are certificate files.
    pub tls: Option<Arc<Tls>>,
    /// Where connections go.
    pub routing: Routing,
    /// Says who may log in, and how: [`crate::decide_login`] on the newest catalog.
    pub authenticate: Box<Authenticate>,
    /// Takes a user's place in the cluster.
    pub admit: Box<Admit>,
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
        stream: Secured<S>,
        /// The session.
        process_id: i32,
        /// The key that proves that the sender may.
        secret: CancelKey,
    },
    /// A client that another member is to serve.
    Elsewhere(Box<Elsewhere<S>>),
    /// Another member of the cluster, which has questions.
    Member {
        /// The stream.
        stream: Secured<S>,
        /// What it sent ahead.
        ahead: BytesMut,
        /// The numbers by which both sides know each other.
        nonces: Nonces,
    },
}

/// A client that another member is to serve, and that has been told nothing yet.
#[derive(Debug)]
pub struct Elsewhere<S> {
    connection: Connection<S>,
    arrival: Box<Arrival>,
    slot: LoginSlot,
    destination: Destination,
}

impl<S> Elsewhere<S>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    /// Which member.
    pub fn destination(&self) -> &Destination {
        &self.destination
    }

    /// Where the client is.
    pub fn peer(&self) -> Peer {
        self.arrival.peer
    }

    /// How many bytes the key for cancelling must have.
    pub fn secret_bytes(&self) -> usize {
        self.arrival.secret_bytes()
    }

    /// What the other member is to be told, when the client is to have this process id and key.
    pub fn introduction(&self, process_id: i32, secret: CancelKey) -> Introduction {
        self.arrival.introduction(process_id, secret)
    }

    /// The client's stream, and what it sent already: its startup packet first. Nothing when the stream is gone. The
    /// login is the other member's from now on.
    pub fn into_parts(self) -> Option<(Secured<S>, BytesMut)> {
        let (stream, leftover) = self.connection.into_parts()?;
        let mut ahead = BytesMut::from(self.arrival.packet().as_ref());
        ahead.extend_from_slice(&leftover);
        Some((stream, ahead))
    }

    /// Serves the client here after all, as when the other member cannot be reached.
    ///
    /// # Errors
    /// As those of [`establish`].
    pub async fn establish_here(self, context: &Context) -> Result<Established<S>, SessionError> {
        let Self { connection, arrival, slot, .. } = self;
        let mut peer = arrival.peer;
        run(connection, &mut peer, Some(arrival), slot, context).await
    }
}

/// A client that has been told AuthenticationOk, and nothing after it.
#[derive(Debug)]
pub struct Client<S> {
    /// The stream.
    pub stream: Secured<S>,
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

impl Context {
    /// Takes a login in, as soon as its connection is accepted: when there are too many, the oldest is cut.
    pub fn begin_login(&self) -> LoginSlot {
        self.registry.begin_login(&self.limits)
    }
}

/// Takes a connection from its first byte to AuthenticationOk. The slot is one of this context.
///
/// # Errors
/// When it does not become a session. The client has been told and the stream is closed then; the caller only logs.
pub async fn establish<S>(
    stream: S,
    peer: Peer,
    slot: LoginSlot,
    context: &Context,
) -> Result<Established<S>, SessionError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let mut peer = peer;
    run(Connection::new(stream), &mut peer, None, slot, context).await
}

/// The same, for a client that may have arrived already.
async fn run<S>(
    mut connection: Connection<S>,
    peer: &mut Peer,
    arrival: Option<Box<Arrival>>,
    slot: LoginSlot,
    context: &Context,
) -> Result<Established<S>, SessionError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let outcome = tokio::select! {
        biased;
        () = slot.cut() => Err(SessionError::LoginsMax { logins_max: context.limits.logins_max }),
        outcome = timeout(context.limits.login_time(), log_in(&mut connection, peer, arrival, context)) => {
            outcome.unwrap_or(Err(SessionError::LoginTime { ms_max: context.limits.login_time_ms_max }))
        }
    };
    let error = match outcome {
        Ok(outcome) => return outcome.with(connection, slot),
        Err(error) => error,
    };
    if error.is_guess() {
        let delay = context.throttle.failed(peer.ip(), Instant::now(), &context.limits);
        tokio::select! {
            () = sleep(delay) => {}
            // It keeps its place while it waits, so that those who wait do not add up without end.
            () = slot.cut() => {
                connection.abandon(None).await;
                return Err(error);
            }
        }
    }
    match error {
        // Whoever was cut had time enough; and its place is taken.
        SessionError::LoginsMax { .. } => connection.abandon(error.report().as_ref()).await,
        _ => connection.refuse(error.report().as_ref()).await,
    }
    Err(error)
}

/// [`Established`] while the stream is still in use.
enum Outcome {
    Cancel { process_id: i32, secret: CancelKey },
    Channel(Nonces),
    Elsewhere(Box<Arrival>, Destination),
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
    fn with<S>(self, connection: Connection<S>, slot: LoginSlot) -> Result<Established<S>, SessionError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        if let Self::Elsewhere(arrival, destination) = self {
            return Ok(Established::Elsewhere(Box::new(Elsewhere { connection, arrival, slot, destination })));
        }
        let (stream, leftover) = connection.into_parts().ok_or(SessionError::Closed)?;
        Ok(match self {
            Self::Elsewhere(..) => return Err(SessionError::Closed),
            Self::Cancel { process_id, secret } => Established::Cancel { stream, process_id, secret },
            Self::Channel(nonces) => Established::Member { stream, ahead: leftover, nonces },
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
        })
    }
}

async fn log_in<S>(
    connection: &mut Connection<S>,
    peer: &mut Peer,
    arrived: Option<Box<Arrival>>,
    context: &Context,
) -> Result<Outcome, SessionError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let arrival = match arrived {
        Some(arrival) => arrival,
        None => match first_packet(connection, peer, context).await? {
            First::Cancel { process_id, secret } => return Ok(Outcome::Cancel { process_id, secret }),
            First::Channel(nonces) => return Ok(Outcome::Channel(nonces)),
            First::Startup(mut arrival) => match arrival.destination(context) {
                Some(destination) => return Ok(Outcome::Elsewhere(arrival, destination)),
                None => arrival,
            },
        },
    };
    let Arrival { mut startup, peer, channel, given, asked_vertica, .. } = *arrival;
    let (version, wishes) = settle_protocol(connection, &mut startup, asked_vertica)?;
    // In Vertica's protocol it is a parameter like any other that means nothing here.
    if wishes.is_none() {
        check_replication(&startup)?;
    }
    let named = |name| startup.parameter(name).filter(|value| !value.is_empty());
    let user_name = named("user").ok_or(SessionError::UserMissing)?;
    let database = named("database").map(str::to_owned);
    let application = named("application_name").or(named("client_label")).unwrap_or_default().to_owned();
    let login =
        Login { peer, user_name, database: database.as_deref(), channel: channel.as_ref(), vertica: wishes.is_some() };
    let Authenticated { user, method, record, client_key, client_sessions_max } =
        authenticate(connection, &login, context).await?;
    // Only now: whoever cannot prove who he is learns nothing of the fleet.
    if let Some((node, by)) = (context.routing.displaced)() {
        return Err(SessionError::Displaced { node, by });
    }
    if let Some(node) = (context.routing.draining)().filter(|_| !user.superuser) {
        return Err(SessionError::Draining(node));
    }
    let limit = user.limits.max_connections;
    let user_sessions_max = limit.map(|(most, scope)| (usize::try_from(most).unwrap_or(usize::MAX), scope));
    let permit = take_place(&user, user_sessions_max, context).await?;
    let new = NewSession {
        user: user.id,
        user_name: user.name.clone(),
        superuser: user.superuser,
        user_sessions_max,
        client_sessions_max,
        client: peer.address(),
        local: peer.local(),
        database: database.clone(),
        version,
        vertica: wishes,
        application,
        tls: channel.map(|channel| channel.facts),
        method,
        record,
        given,
    };
    let session = context.registry.register(new, &context.limits, &mut rand::rng())?;
    session.entry().hold(permit);
    message::authentication_ok(connection.out());
    connection.flush().await?;
    let Startup { parameters, .. } = startup;
    let login = LoggedIn { peer, user, database, parameters, version, session, client_key };
    Ok(Outcome::LoggedIn(Box::new(login)))
}

/// A place in the cluster, for a user whose sessions are counted there.
async fn take_place(
    user: &User,
    limit: Option<(usize, LimitScope)>,
    context: &Context,
) -> Result<Option<Permit>, SessionError> {
    let Some((sessions_max, LimitScope::Database)) = limit else { return Ok(None) };
    match (context.admit)(user.id, sessions_max).await {
        Admission::Alone => Ok(None),
        Admission::Taken(permit) => Ok(Some(permit)),
        Admission::Full => Err(SessionError::UserSessionsMax { user: user.name.clone(), sessions_max }),
    }
}

/// Settles whose protocol is spoken, and in which version.
fn settle_protocol<S>(
    connection: &mut Connection<S>,
    startup: &mut Startup,
    asked_load_balance: bool,
) -> Result<(Version, Option<Wishes>), SessionError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let wishes = Wishes::of(startup, asked_load_balance);
    if !matches!(wishes, Ok(None)) {
        connection.speak_vertica();
    }
    if let Some(wishes) = wishes? {
        return Ok((wishes.effective, Some(wishes)));
    }
    let Negotiated { version, options_unknown, tell } = startup.negotiate();
    if tell {
        message::negotiate_protocol_version(connection.out(), version, &options_unknown);
    }
    Ok((version, None))
}

fn check_replication(startup: &Startup) -> Result<(), SessionError> {
    let off = ["", "false", "off", "no", "0"];
    match startup.parameter("replication") {
        Some(value) if !off.iter().any(|off| off.eq_ignore_ascii_case(value)) => Err(SessionError::Replication),
        _ => Ok(()),
    }
}

/// Who wants to log in, from where, through what.
struct Login<'a> {
    peer: Peer,
    user_name: &'a str,
    database: Option<&'a str>,
    channel: Option<&'a TlsChannel>,
    /// Whether the client speaks Vertica's protocol.
    vertica: bool,
}

/// Who has logged in, and how.
struct Authenticated {
    user: Arc<User>,
    method: AuthenticationMethod,
    record: Option<Arc<Authentication>>,
    client_key: Option<ClientKey>,
    client_sessions_max: Option<usize>,
}

async fn authenticate<S>(
    connection: &mut Connection<S>,
    login: &Login<'_>,
    context: &Context,
) -> Result<Authenticated, SessionError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let request = LoginRequest { user: login.user_name, peer: login.peer, tls: login.channel.is_some() };
    let LoginDecision { attempts, user, client_sessions_max, md5 } = (context.authenticate)(&request);
    let mut failure = SessionError::RecordMissing { login: login.described() };
    for Attempt { method, record } in attempts {
        let user = user.clone();
        let known = || user.clone().map_err(|_| SessionError::UserUnknown(login.user_name.to_owned()));
        let proven = match method {
            // Whether there is a certificate, and whose, is known without asking: the next record may do without.
            AuthenticationMethod::Tls => match login.check_certificate(record.as_deref(), user) {
                Ok(user) => (user, None),
                Err(error) => {
                    failure = error;
                    continue;
                }
            },
            AuthenticationMethod::Reject => return Err(SessionError::Rejected { login: login.described() }),
            AuthenticationMethod::Trust => (known()?, None),
            // A failure is final: once they have begun to prove, clients take no other method.
            AuthenticationMethod::Hash if login.vertica => {
                (vertica::prove(connection, user, md5, login, context).await?, None)
            }
            AuthenticationMethod::Hash => prove(connection, user, login, context).await?,
        };
        let (user, client_key) = proven;
        // Only now: whoever cannot prove who he is learns nothing of the account.
        if user.locked {
            return Err(SessionError::UserLocked(user.name.clone()));
        }
        // A client of PostgreSQL may log in to choose a new one.
        if user.password_expired && login.vertica && method == AuthenticationMethod::Hash {
            authentication::expired(connection.out());
            connection.flush().await?;
            return Err(SessionError::PasswordExpired(user.name.clone()));
        }
        return Ok(Authenticated { user, method, record, client_key, client_sessions_max });
    }
    Err(failure)
}

impl Login<'_> {
    /// The login as PostgreSQL's messages describe it.
    fn described(&self) -> String {
        let host = self.peer.ip().map_or_else(|| "[local]".to_owned(), |ip| ip.to_string());
        let (user, database) = (self.user_name, self.database.unwrap_or(self.user_name));
        let encryption = if self.channel.is_some() { "SSL encryption" } else { "no encryption" };
        format!("host \"{host}\", user \"{user}\", database \"{database}\", {encryption}")
    }

    /// The user, if the certificate that the client showed is for him.
    fn check_certificate(
        &self,
        record: Option<&Authentication>,
        user: Result<Arc<User>, PasswordFailure>,
    ) -> Result<Arc<User>, SessionError> {
        let shown = self.channel.and_then(|channel| channel.facts.client.as_ref());
        let identities = &shown.ok_or(SessionError::CertificateMissing)?.identities;
        let name = Name::parse(self.user_name).ok();
        let admitted = record.zip(name).and_then(|(record, name)| record.admits(identities, &name));
        match (admitted, user) {
            (Some(_), Ok(user)) => Ok(user),
            _ => Err(SessionError::CertificateMismatch {
                user: self.user_name.to_owned(),
                identities: identities.clone(),
            }),
        }
    }
}

/// Has the client prove by SCRAM-SHA-256, bound to the channel where there is one, that it knows the user's password. Users that cannot log in so are taken
/// through the same steps, and are told the same at the end.
async fn prove<S>(
    connection: &mut Connection<S>,
    user: Result<Arc<User>, PasswordFailure>,
    login: &Login<'_>,
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
        Err(why) => {
            // Names are alike in any case, and so must be what an unknown one is shown.
            let name = login.user_name.to_lowercase();
            (Err(why), ScramVerifier::mock(&context.mock_secret, &name, context.scram_iterations))
        }
    };
    let refused = |why| SessionError::Password { user: login.user_name.to_owned(), why };
    let end_point = login.channel.and_then(|channel| channel.end_point.as_deref());
    let proven = match exchange(connection, verifier, end_point).await {
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

async fn exchange<S>(
    connection: &mut Connection<S>,
    verifier: ScramVerifier,
    end_point: Option<&[u8]>,
) -> Result<Proven, SessionError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let offered: &[&str] = match end_point {
        Some(_) => &[scram::MECHANISM_PLUS, scram::MECHANISM],
        None => &[scram::MECHANISM],
    };
    message::authentication_sasl(connection.out(), offered);
    connection.flush().await?;
    let body = connection.message(b'p', SASL_BYTES_MAX).await?;
    let initial = message::sasl_initial_response(&body)?;
    let channel = match (initial.mechanism, end_point) {
        (scram::MECHANISM_PLUS, Some(hash)) => Channel::Bound(hash.to_vec()),
        (scram::MECHANISM, Some(_)) => Channel::Declined,
        (scram::MECHANISM, None) => Channel::Unbound,
        _ => return Err(SessionError::Mechanism),
    };
    let exchange = Exchange::new(verifier, channel, &mut rand::rng());
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
