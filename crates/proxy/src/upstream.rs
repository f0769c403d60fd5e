//! A session on a PostgreSQL server: connecting, TLS, login.

mod tls;
mod url;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use rustls::pki_types::ServerName;
use switchyard_wire::scram::{self, Prover, ProvingError};
use switchyard_wire::upstream::{self as protocol, Authentication};
use switchyard_wire::{CancelKey, FrameHeader, Version, WireError, frame};
use thiserror::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::line::Stream;
use crate::passage::Target;

pub use switchyard_wire::scram::Proof;
pub use tls::UpstreamTlsError;
pub use url::{Server, SslMode, UrlError, UrlLogin};

/// The longest message of a login that is read, in bytes.
const LOGIN_MESSAGE_BYTES_MAX: usize = 64 * 1024;
/// How much is read at once during a login, in bytes.
const READ_BYTES: usize = 2 * 1024;

/// Who logs in on a server, and how a session there begins.
#[derive(Debug, Clone)]
pub struct ServerLogin {
    /// The user there.
    pub user: String,
    /// What is shown to a server that asks for it; nothing where there is nothing.
    pub proof: Option<Proof>,
    /// All other parameters of the startup packet, in order: the database among them.
    pub parameters: Arc<[(String, String)]>,
}

/// A session on a server that waits for its first statement.
#[derive(Debug)]
pub struct Upstream {
    /// The connection.
    pub stream: Stream,
    /// Where it leads.
    pub target: Target,
    /// What the server told of its settings, in order.
    pub settings: Arc<[(String, String)]>,
    /// The server's process, and the key that cancels what it does.
    pub key: Option<(i32, CancelKey)>,
}

/// Why there is no session on a server. What the client of a session may read is [`UpstreamError::fields`]'s to say.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum UpstreamError {
    /// Nobody answers there.
    #[error("cannot reach {target}")]
    Unreachable {
        /// Where.
        target: Target,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It took too long.
    #[error("{target} did not take a login within {ms_max} ms")]
    Time {
        /// Where.
        target: Target,
        /// The limit.
        ms_max: u64,
    },
    /// TLS cannot even begin.
    #[error(transparent)]
    Tls(#[from] UpstreamTlsError),
    /// TLS is wanted, and the server has none.
    #[error("{target} does not support TLS, but sslmode \"{mode}\" was asked for")]
    TlsRefused {
        /// Where.
        target: Target,
        /// What was asked for.
        mode: &'static str,
    },
    /// TLS could not begin.
    #[error("TLS to {target} failed: {source}")]
    Handshake {
        /// Where.
        target: Target,
        /// Why.
        source: io::Error,
    },
    /// The server asks for a proof that nobody here can give.
    #[error("{target} asks user \"{user}\" for {wanted}, and nothing here can give it")]
    ProofMissing {
        /// Where.
        target: Target,
        /// Who.
        user: String,
        /// What it asks for.
        wanted: &'static str,
    },
    /// The proof did not work out.
    #[error("login of user \"{user}\" on {target} failed: {source}")]
    Proving {
        /// Where.
        target: Target,
        /// Who.
        user: String,
        /// Why.
        source: ProvingError,
    },
    /// The server refused, in its own words.
    #[error("{target} refused the login of user \"{user}\": {}", message(fields))]
    Refused {
        /// Where.
        target: Target,
        /// Who.
        user: String,
        /// The fields of its error.
        fields: Vec<(u8, String)>,
    },
    /// What answers is no PostgreSQL server.
    #[error("{target} does not speak PostgreSQL's protocol")]
    Stranger {
        /// Where.
        target: Target,
    },
}

/// The primary line among the fields of an error.
fn message(fields: &[(u8, String)]) -> &str {
    fields.iter().find(|(kind, _)| *kind == b'M').map_or("", |(_, message)| message)
}

impl UpstreamError {
    /// Whether the server itself is not there: another may do.
    pub fn is_absence(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Time { .. } => true,
            // Starting, stopping, crashed; or too many clients, which another server may not have.
            Self::Refused { .. } => {
                self.code().is_some_and(|code| matches!(code, "57P01" | "57P02" | "57P03" | "53300"))
            }
            _ => false,
        }
    }

    /// Whether it can be the login alone that the server does not take: its limit of connections, or what it asked for. Other
    /// logins may be taken, and nobody may shut them out so.
    pub fn is_of_login(&self) -> bool {
        matches!(self, Self::Time { .. }) || self.code() == Some("53300")
    }

    /// The server's SQLSTATE, where it refused.
    pub fn code(&self) -> Option<&str> {
        let Self::Refused { fields, .. } = self else { return None };
        fields.iter().find(|(kind, _)| *kind == b'C').map(|(_, code)| code.as_str())
    }
}

impl Upstream {
    /// Connects to a server and logs in.
    ///
    /// # Errors
    /// When that cannot be done in time, or somebody does not want it.
    pub async fn connect(server: &Server, login: &ServerLogin, ms_max: u64) -> Result<Self, UpstreamError> {
        let opened = timeout(Duration::from_millis(ms_max), open(server, login)).await;
        opened.unwrap_or_else(|_| Err(UpstreamError::Time { target: server.target.clone(), ms_max }))
    }
}

async fn open(server: &Server, login: &ServerLogin) -> Result<Upstream, UpstreamError> {
    match open_once(server, login, server.ssl_mode).await {
        // As libpq does: what is not wanted without encryption may be with it, and the other way round.
        Err(refused @ UpstreamError::Refused { .. })
            if server.ssl_mode == SslMode::Allow && refused.code() == Some("28000") =>
        {
            open_once(server, login, SslMode::Require).await
        }
        opened => opened,
    }
}

async fn open_once(server: &Server, login: &ServerLogin, mode: SslMode) -> Result<Upstream, UpstreamError> {
    let target = &server.target;
    let unreachable = |source| UpstreamError::Unreachable { target: target.clone(), source };
    // All addresses of a name are tried, of both families.
    let stream = TcpStream::connect((target.host.as_str(), target.port)).await.map_err(unreachable)?;
    stream.set_nodelay(true).map_err(unreachable)?;
    let stream = match mode {
        SslMode::Disable | SslMode::Allow => Stream::Plain(stream),
        mode => encrypt(server, stream, mode).await?,
    };
    LoggingIn { stream, read: BytesMut::new(), target, login }.run().await
}

async fn encrypt(server: &Server, mut stream: TcpStream, mode: SslMode) -> Result<Stream, UpstreamError> {
    let target = &server.target;
    let unreachable = |source| UpstreamError::Unreachable { target: target.clone(), source };
    let config = tls::config(server)?;
    let mut out = BytesMut::new();
    protocol::ssl_request(&mut out);
    stream.write_all_buf(&mut out).await.map_err(unreachable)?;
    match stream.read_u8().await.map_err(unreachable)? {
        b'S' => {}
        b'N' if mode == SslMode::Prefer => return Ok(Stream::Plain(stream)),
        b'N' => return Err(UpstreamError::TlsRefused { target: target.clone(), mode: mode.as_str() }),
        _ => return Err(UpstreamError::Stranger { target: target.clone() }),
    }
    let handshake = |source| UpstreamError::Handshake { target: target.clone(), source };
    let name = ServerName::try_from(target.host.clone()).map_err(|error| handshake(io::Error::other(error)))?;
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.map_err(handshake)?;
    Ok(Stream::ToServer(Box::new(stream)))
}

/// A login under way.
struct LoggingIn<'a> {
    stream: Stream,
    read: BytesMut,
    target: &'a Target,
    login: &'a ServerLogin,
}

impl LoggingIn<'_> {
    async fn run(mut self) -> Result<Upstream, UpstreamError> {
        let mut out = BytesMut::new();
        let user = [("user", self.login.user.as_str())];
        let others = self.login.parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        protocol::startup(&mut out, Version::V3_0, user.into_iter().chain(others));
        self.say(&mut out).await?;
        self.authenticate().await?;
        let (mut settings, mut key) = (Vec::<(String, String)>::new(), None);
        loop {
            let (kind, body) = self.hear().await?;
            match kind {
                b'S' => settings.extend(protocol::parameter(&body).map(|(name, value)| (name.into(), value.into()))),
                b'K' => key = protocol::key_data(&body),
                b'Z' => break,
                b'N' | b'v' => {}
                _ => return Err(self.stranger()),
            }
        }
        Ok(Upstream { stream: self.stream, target: self.target.clone(), settings: settings.into(), key })
    }

    async fn authenticate(&mut self) -> Result<(), UpstreamError> {
        loop {
            let body = match self.hear().await? {
                (b'R', body) => body,
                (b'v' | b'N', _) => continue,
                _ => return Err(self.stranger()),
            };
            let mut out = BytesMut::new();
            match protocol::authentication(&body).map_err(|_| self.stranger())? {
                Authentication::Ok => return Ok(()),
                Authentication::Cleartext => protocol::password(&mut out, self.password("a password")?),
                Authentication::Md5(salt) => {
                    let password = self.password("a password by MD5")?;
                    protocol::password(&mut out, &protocol::md5_answer(&self.login.user, password, salt));
                }
                Authentication::Sasl(mechanisms) if mechanisms.contains(&scram::MECHANISM) => {
                    self.prove().await?;
                    continue;
                }
                _ => return Err(self.proof_missing("a proof that is not known here")),
            }
            self.say(&mut out).await?;
        }
    }

    /// The password, for servers that must see it.
    fn password(&self, wanted: &'static str) -> Result<&str, UpstreamError> {
        match &self.login.proof {
            Some(Proof::Password(password)) => Ok(password),
            _ => Err(self.proof_missing(wanted)),
        }
    }

    async fn prove(&mut self) -> Result<(), UpstreamError> {
        let proof = self.login.proof.clone().ok_or_else(|| self.proof_missing("a password"))?;
        let prover = Prover::new(proof, &mut rand::rng());
        let mut out = BytesMut::new();
        protocol::sasl_initial_response(&mut out, scram::MECHANISM, prover.first().as_bytes());
        self.say(&mut out).await?;
        let body = self.step().await?;
        let Ok(Authentication::SaslContinue(challenge)) = protocol::authentication(&body) else {
            return Err(self.stranger());
        };
        let (answer, answered) = prover.answer(challenge).map_err(|source| self.proving(source))?;
        protocol::sasl_response(&mut out, answer.as_bytes());
        self.say(&mut out).await?;
        let body = self.step().await?;
        let Ok(Authentication::SaslFinal(last)) = protocol::authentication(&body) else { return Err(self.stranger()) };
        answered.check(last).map_err(|source| self.proving(source))
    }

    async fn step(&mut self) -> Result<Bytes, UpstreamError> {
        match self.hear().await? {
            (b'R', body) => Ok(body),
            _ => Err(self.stranger()),
        }
    }

    async fn say(&mut self, out: &mut BytesMut) -> Result<(), UpstreamError> {
        let said = async {
            self.stream.write_all_buf(out).await?;
            self.stream.flush().await
        };
        said.await.map_err(|source| self.unreachable(source))
    }

    /// The next message; an error is the end of the login.
    async fn hear(&mut self) -> Result<(u8, Bytes), UpstreamError> {
        loop {
            let header = match frame(&self.read, LOGIN_MESSAGE_BYTES_MAX) {
                Ok(header) => header.filter(|header| header.len <= self.read.len()),
                Err(WireError::MessageLength { .. }) | Err(_) => return Err(self.stranger()),
            };
            if let Some(header) = header {
                let body = self.read.split_to(header.len).freeze().slice(FrameHeader::BYTES..);
                if header.kind != b'E' {
                    return Ok((header.kind, body));
                }
                let (target, user) = (self.target.clone(), self.login.user.clone());
                return Err(UpstreamError::Refused { target, user, fields: protocol::fields(&body) });
            }
            self.read.reserve(READ_BYTES);
            match self.stream.read_buf(&mut self.read).await {
                Ok(0) => return Err(self.unreachable(io::ErrorKind::UnexpectedEof.into())),
                Ok(_) => {}
                Err(source) => return Err(self.unreachable(source)),
            }
        }
    }

    fn unreachable(&self, source: io::Error) -> UpstreamError {
        UpstreamError::Unreachable { target: self.target.clone(), source }
    }

    fn stranger(&self) -> UpstreamError {
        UpstreamError::Stranger { target: self.target.clone() }
    }

    fn proving(&self, source: ProvingError) -> UpstreamError {
        UpstreamError::Proving { target: self.target.clone(), user: self.login.user.clone(), source }
    }

    fn proof_missing(&self, wanted: &'static str) -> UpstreamError {
        UpstreamError::ProofMissing { target: self.target.clone(), user: self.login.user.clone(), wanted }
    }
}
