//! Errors and notices as the protocol sends them.

use pgwire::error::{ErrorInfo, PgWireError};
use pgwire::messages::response::NoticeResponse;
use switchyard_engine::{ClientError, Severity, SqlState, Warning};

/// An error for pgwire to send.
pub(crate) fn to_pgwire(error: ClientError) -> PgWireError {
    PgWireError::UserError(Box::new(info(error)))
}

/// An error as its fields.
pub(crate) fn info(error: ClientError) -> ErrorInfo {
    let severity = error.severity.as_str();
    let mut info = ErrorInfo::new(severity.to_owned(), error.sqlstate.code().to_owned(), error.message);
    // Vertica's word is for people; drivers read the other field and know only PostgreSQL's.
    let plain = if error.severity == Severity::Rollback { Severity::Error } else { error.severity };
    info.severity_nonlocalized = Some(plain.as_str().to_owned());
    info.detail = error.detail;
    info.hint = error.hint;
    info.position = error.position.map(|position| position.to_string());
    info
}

/// A warning or notice.
pub(crate) fn notice(warning: Warning) -> NoticeResponse {
    let (severity, code) = if warning.notice { ("NOTICE", "00000") } else { ("WARNING", warning.sqlstate.code()) };
    let mut info = ErrorInfo::new(severity.to_owned(), code.to_owned(), warning.message);
    info.severity_nonlocalized = Some(severity.to_owned());
    NoticeResponse::from(info)
}

/// The end of a session from outside.
pub(crate) fn terminated() -> ClientError {
    ClientError::new(SqlState::AdminShutdown, "terminating connection due to administrator command").fatal()
}

/// A statement stopped from outside.
pub(crate) fn canceled() -> ClientError {
    ClientError::new(SqlState::QueryCanceled, "canceling statement due to user request")
}
