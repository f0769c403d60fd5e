//! Why a connection did not become a session.

use std::io;

use switchyard_catalog::Name;
use switchyard_wire::scram::ScramError;
use switchyard_wire::{CertificateError, Report, Severity, SqlState, WireError};
use thiserror::Error;

/// Why a password was refused. The log may say it; the client is told the same in every case.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PasswordFailure {
    /// There is no such user.
    #[error("there is no such user")]
    UserUnknown,
    /// No authentication record is granted to the user.
    #[error("no authentication record is granted to the user")]
    RecordMissing,
    /// The user has no password.
    #[error("the user has no password")]
    PasswordUnset,
    /// What the catalog keeps of the password is not what the client proves.
    #[error("the stored verifier is of another kind than the client proves; set the password anew, or use TLS")]
    VerifierOfAnotherKind,
    /// What the catalog keeps of the password cannot be read.
    #[error("the stored verifier of the user is damaged")]
    VerifierDamaged,
    /// The verifier is of a name, and the client spells it otherwise.
    #[error("the MD5 verifier is of the user's name as the catalog spells it, \"{0}\"")]
    SpelledOtherwise(Name),
    /// The proof does not hold.
    #[error("the password is wrong")]
    PasswordWrong,
}

/// Why a connection did not become a session. The client has been told already, where it can be.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The client went away.
    #[error("the client closed the connection")]
    Closed,
    /// Reading or writing failed.
    #[error("cannot reach the client")]
    Io(#[from] io::Error),
    /// The login took too long.
    #[error("canceling authentication due to timeout")]
    LoginTime {
        /// The limit.
        ms_max: u64,
    },
    /// The bytes follow no protocol spoken here.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// TLS could not begin. What is wrong, the client is told by an alert of TLS itself, if it is told.
    #[error("TLS handshake failed: {0}")]
    Handshake(#[source] io::Error),
    /// TLS has verified a client certificate that cannot be read.
    #[error("the client certificate cannot be read")]
    ClientCertificate(#[source] CertificateError),
    /// TLS from the first byte on may be another protocol's: clients must name this one.
    #[error("received direct TLS connection request without ALPN protocol negotiation extension")]
    ProtocolUnnamed,
    /// Bytes came behind a request that must be answered first.
    #[error("received unencrypted data after {0} request")]
    BytesAfterRequest(&'static str),
    /// The same request came twice.
    #[error("received {0} request twice")]
    RequestRepeated(&'static str),
    /// The startup packet names no user.
    #[error("no PostgreSQL user name specified in startup packet")]
    UserMissing,
    /// The client wants replication.
    #[error("replication connections are not supported")]
    Replication,
    /// Too many logins are under way.
    #[error("sorry, too many logins are under way already")]
    LoginsMax {
        /// The limit.
        logins_max: usize,
    },
    /// Too many sessions.
    #[error("sorry, too many clients already")]
    ConnectionsMax {
        /// The limit.
        connections_max: usize,
    },
    /// The last free sessions are for superusers.
    #[error("remaining connection slots are reserved for superusers")]
    ConnectionsReserved {
        /// How many.
        connections_reserved: usize,
    },
    /// As many clients are here as the operator lets in.
    #[error("New session rejected due to limit, already {sessions_max} sessions active")]
    ClientSessionsMax {
        /// The limit.
        sessions_max: usize,
    },
    /// The user has as many sessions as he may have.
    #[error("too many connections for user \"{user}\"")]
    UserSessionsMax {
        /// The user.
        user: Name,
        /// The limit.
        sessions_max: usize,
    },
    /// The member finishes the sessions it has.
    #[error("node \"{0}\" is draining: it takes no new connections")]
    Draining(Name),
    /// Another process has this member's name.
    #[error("node \"{node}\" is served by another process, at {by}")]
    Displaced {
        /// The node.
        node: Name,
        /// Where that is.
        by: String,
    },
    /// No authentication record is for this login.
    #[error("no authentication record for {login}")]
    RecordMissing {
        /// Host, user, database, encryption.
        login: String,
    },
    /// An authentication record refuses this login.
    #[error("authentication record rejects connection for {login}")]
    Rejected {
        /// Host, user, database, encryption.
        login: String,
    },
    /// An authentication record asks for a client certificate.
    #[error("connection requires a valid client certificate")]
    CertificateMissing,
    /// The client's certificate is for other users than the one wanted.
    #[error("certificate authentication failed for user \"{user}\"")]
    CertificateMismatch {
        /// As given at startup.
        user: String,
        /// Whom the certificate names; the client is not told, but knows.
        identities: Vec<String>,
    },
    /// Trusted, but unknown.
    #[error("user \"{0}\" does not exist")]
    UserUnknown(String),
    /// The user is locked.
    #[error("user account \"{0}\" is locked")]
    UserLocked(Name),
    /// The password was right and has expired.
    #[error("the password of user \"{0}\" has expired")]
    PasswordExpired(Name),
    /// The password was refused.
    #[error("password authentication failed for user \"{user}\"")]
    Password {
        /// As given at startup.
        user: String,
        /// What the client is not told.
        #[source]
        why: PasswordFailure,
    },
    /// A message of the exchange is broken.
    #[error(transparent)]
    Scram(#[from] ScramError),
    /// The client chose a mechanism it was not offered.
    #[error("client selected an invalid SASL authentication mechanism")]
    Mechanism,
    /// Another message came than a password.
    #[error("expected password response, got message type {0}")]
    PasswordExpected(u8),
    /// Another message came than the one expected.
    #[error("expected SASL response, got message type {0}")]
    MessageUnexpected(u8),
}

impl SessionError {
    /// What the client is told; `None` when it is gone, or would not understand.
    pub fn report(&self) -> Option<Report> {
        let report = Report::new(Severity::Fatal, self.sqlstate()?, self.to_string());
        Some(match self {
            Self::BytesAfterRequest(_) => report.with_detail(
                "This could be either a client-software bug or evidence of an attempted man-in-the-middle attack.",
            ),
            Self::Scram(scram) => match scram.detail() {
                Some(detail) => report.with_detail(detail),
                None => report,
            },
            Self::Draining(_) => report.with_hint("Connect to another node; the superuser may still connect here."),
            Self::Displaced { .. } => report.with_hint("Connect there: this one was away for longer than its lease."),
            Self::LoginTime { ms_max } => report.with_detail(limit("login_time_ms_max", ms_max)),
            Self::LoginsMax { logins_max } => report.with_detail(limit("logins_max", logins_max)),
            Self::ConnectionsMax { connections_max } => report.with_detail(limit("connections_max", connections_max)),
            Self::ConnectionsReserved { connections_reserved } => {
                report.with_detail(limit("connections_reserved", connections_reserved))
            }
            Self::ClientSessionsMax { sessions_max } => report.with_detail(limit("MaxClientSessions", sessions_max)),
            Self::UserSessionsMax { sessions_max, .. } => report.with_detail(limit("MAXCONNECTIONS", sessions_max)),
            Self::UserLocked(name) => {
                report.with_hint(format!("A superuser unlocks it: ALTER USER {name} ACCOUNT UNLOCK."))
            }
            Self::Wire(WireError::PacketLength { bytes_max, .. }) => {
                report.with_detail(limit("startup_bytes_max", bytes_max))
            }
            _ => report,
        })
    }

    fn sqlstate(&self) -> Option<SqlState> {
        Some(match self {
            // A TLS client can read nothing but TLS.
            Self::Closed | Self::Io(_) | Self::Handshake(_) | Self::Wire(WireError::DirectTls) => return None,
            Self::LoginTime { .. } => SqlState::QueryCanceled,
            Self::Wire(wire) => wire.sqlstate(),
            Self::BytesAfterRequest(_)
            | Self::RequestRepeated(_)
            | Self::ProtocolUnnamed
            | Self::Mechanism
            | Self::PasswordExpected(_)
            | Self::MessageUnexpected(_) => SqlState::ProtocolViolation,
            Self::Replication => SqlState::FeatureNotSupported,
            Self::Draining(_) | Self::Displaced { .. } => SqlState::CannotConnectNow,
            Self::LoginsMax { .. }
            | Self::ConnectionsMax { .. }
            | Self::ConnectionsReserved { .. }
            | Self::ClientSessionsMax { .. }
            | Self::UserSessionsMax { .. } => SqlState::TooManyConnections,
            Self::UserMissing
            | Self::RecordMissing { .. }
            | Self::Rejected { .. }
            | Self::CertificateMissing
            | Self::CertificateMismatch { .. }
            | Self::ClientCertificate(_)
            | Self::UserUnknown(_)
            | Self::UserLocked(_) => SqlState::InvalidAuthorization,
            Self::Password { .. } | Self::PasswordExpired(_) => SqlState::InvalidPassword,
            Self::Scram(scram) => scram.sqlstate(),
        })
    }

    /// What it is counted under.
    pub fn cause(&self) -> &'static str {
        match self {
            Self::Closed | Self::Io(_) => "gone",
            Self::LoginTime { .. } => "time",
            Self::Handshake(_) | Self::ClientCertificate(_) | Self::CertificateMissing => "tls",
            Self::Password { .. } | Self::PasswordExpired(_) | Self::Scram(_) => "password",
            Self::UserUnknown(_) | Self::UserLocked(_) | Self::CertificateMismatch { .. } => "user",
            Self::RecordMissing { .. } | Self::Rejected { .. } => "authentication record",
            Self::LoginsMax { .. }
            | Self::ConnectionsMax { .. }
            | Self::ConnectionsReserved { .. }
            | Self::ClientSessionsMax { .. }
            | Self::UserSessionsMax { .. } => "limit",
            Self::Draining(_) => "draining",
            Self::Displaced { .. } => "displaced",
            Self::Wire(_)
            | Self::ProtocolUnnamed
            | Self::BytesAfterRequest(_)
            | Self::RequestRepeated(_)
            | Self::UserMissing
            | Self::Replication
            | Self::Mechanism
            | Self::PasswordExpected(_)
            | Self::MessageUnexpected(_) => "protocol",
        }
    }

    /// Whether it may have been an attempt to guess, which the next ones shall wait for.
    pub(crate) fn is_guess(&self) -> bool {
        matches!(self, Self::Password { .. } | Self::UserUnknown(_) | Self::Scram(_) | Self::CertificateMismatch { .. })
    }
}

fn limit(name: &str, value: impl std::fmt::Display) -> String {
    format!("The limit \"{name}\" is {value}.")
}
