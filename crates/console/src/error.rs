//! Errors and notices as the protocol sends them.

use bytes::BytesMut;
use switchyard_engine::{ClientError, IdleLimit, IdleSetting, Severity, SqlState, Warning};
use switchyard_wire::{answer, vertica};

/// Writes an error, to a client of Vertica as such know them.
pub(crate) fn put_error(out: &mut BytesMut, error: &ClientError, to_vertica: bool) {
    if to_vertica {
        let fields = vertica::Fields {
            severity: error.severity.as_str(),
            sqlstate: error.sqlstate.code(),
            message: &error.message,
            detail: error.detail.as_deref(),
            hint: error.hint.as_deref(),
            position: error.position,
        };
        return vertica::report(out, b'E', &fields);
    }
    // Vertica's word is for people; drivers read the other field and know only PostgreSQL's.
    let plain = if error.severity == Severity::Rollback { Severity::Error } else { error.severity };
    let mut fields = vec![
        (b'S', error.severity.as_str()),
        (b'V', plain.as_str()),
        (b'C', error.sqlstate.code()),
        (b'M', error.message.as_str()),
    ];
    fields.extend(error.detail.as_deref().map(|detail| (b'D', detail)));
    fields.extend(error.hint.as_deref().map(|hint| (b'H', hint)));
    let position = error.position.map(|position| position.to_string());
    fields.extend(position.as_deref().map(|position| (b'P', position)));
    answer::report(out, b'E', &fields);
}

/// Writes a warning or notice.
pub(crate) fn put_notice(out: &mut BytesMut, warning: &Warning, to_vertica: bool) {
    let (severity, code) = if warning.notice { ("NOTICE", "00000") } else { ("WARNING", warning.sqlstate.code()) };
    if to_vertica {
        let fields = vertica::Fields { severity, sqlstate: code, message: &warning.message, ..Default::default() };
        return vertica::report(out, b'N', &fields);
    }
    answer::report(out, b'N', &[(b'S', severity), (b'V', severity), (b'C', code), (b'M', &warning.message)]);
}

/// The end of a session from outside.
pub(crate) fn terminated() -> ClientError {
    ClientError::new(SqlState::AdminShutdown, "terminating connection due to administrator command").fatal()
}

/// A client that was silent for too long.
pub(crate) fn idle((ms_max, setting): IdleLimit) -> ClientError {
    let (sqlstate, message) = match setting {
        IdleSetting::IdleSession | IdleSetting::Postgres => {
            (SqlState::IdleSessionTimeout, "terminating connection due to idle-session timeout")
        }
        IdleSetting::InTransaction => {
            (SqlState::IdleInTransactionSessionTimeout, "terminating connection due to idle-in-transaction timeout")
        }
    };
    let detail = format!("The limit \"{}\" is {ms_max} ms.", setting.as_str());
    ClientError::new(sqlstate, message).with_detail(detail).fatal()
}

/// A statement stopped from outside.
pub(crate) fn canceled() -> ClientError {
    ClientError::new(SqlState::QueryCanceled, "canceling statement due to user request")
}

/// What a transaction that failed answers to all but its end.
pub(crate) fn aborted() -> ClientError {
    ClientError::new(
        SqlState::FailedTransaction,
        "current transaction is aborted, commands ignored until end of transaction block",
    )
}
