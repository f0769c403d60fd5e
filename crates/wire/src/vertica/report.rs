//! Errors and notices as clients of Vertica know them (`reference/vertica-wire.md` §4.10).

use std::borrow::Cow;

use bytes::BytesMut;

use crate::answer;
use crate::message::Report;

/// What stands for the number of a message that Vertica has none for.
const NO_NUMBER: &str = "0";

/// What an error or notice says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fields<'a> {
    /// ERROR, ROLLBACK, FATAL, WARNING, NOTICE.
    pub severity: &'a str,
    /// As PostgreSQL would have it; what differs in Vertica is told as there.
    pub sqlstate: &'a str,
    /// The primary line.
    pub message: &'a str,
    /// More, in sentences.
    pub detail: Option<&'a str>,
    /// What to do, in sentences.
    pub hint: Option<&'a str>,
    /// Where in the statement: in characters, from 1.
    pub position: Option<usize>,
}

/// Writes an error, kind `E`, or a notice, kind `N`. Field `V` is a number here, where PostgreSQL has a severity.
pub fn report(out: &mut BytesMut, kind: u8, fields: &Fields<'_>) {
    let position = fields.position.map(|position| position.to_string());
    let (sqlstate, message) = known(fields);
    let mut all = vec![(b'S', fields.severity), (b'C', sqlstate), (b'M', &message), (b'V', number(fields))];
    all.extend(fields.detail.map(|detail| (b'D', detail)));
    all.extend(fields.hint.map(|hint| (b'H', hint)));
    all.extend(position.as_deref().map(|position| (b'P', position)));
    all.extend(is_login(fields.sqlstate).then_some((b'R', "auth_failed")));
    answer::report(out, kind, &all);
}

/// ErrorResponse.
pub fn error_response(out: &mut BytesMut, report: &Report) {
    let fields = Fields {
        severity: report.severity.as_str(),
        sqlstate: report.sqlstate.code(),
        message: &report.message,
        detail: report.detail.as_deref(),
        hint: report.hint.as_deref(),
        position: report.position.and_then(|position| usize::try_from(position).ok()),
    };
    self::report(out, b'E', &fields);
}

/// The login was refused.
fn is_login(sqlstate: &str) -> bool {
    matches!(sqlstate, "28000" | "28P01")
}

/// The SQLSTATE and the text that clients know, where they differ from PostgreSQL's.
fn known<'a>(fields: &Fields<'a>) -> (&'a str, Cow<'a, str>) {
    let sqlstate = match fields.sqlstate {
        "28P01" => "28000",
        "22P04" => "22V04",
        "2BP01" => "2BV01",
        "42P01" => "42V01",
        "42P07" => "42710",
        "55P03" => "55V03",
        same => same,
    };
    let message = match (fields.sqlstate, fields.message) {
        ("57014", "canceling statement due to user request") => "Execution canceled by operator".into(),
        ("28P01", message) => match message.strip_prefix("password authentication failed for user ") {
            Some(user) => format!("Authentication failed for username {user}").into(),
            None => message.into(),
        },
        (_, same) => same.into(),
    };
    (sqlstate, message)
}

/// The number of a message, as far as it is known.
fn number(fields: &Fields<'_>) -> &'static str {
    match fields.sqlstate {
        "42601" => "4856",
        "28000" | "28P01" => "2248",
        "2BV01" | "2BP01" => "3128",
        _ if fields.severity == "NOTICE" && fields.message.contains(" depends on ") => "4927",
        _ => NO_NUMBER,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(kind: u8, fields: &Fields<'_>) -> Vec<u8> {
        let mut out = BytesMut::new();
        report(&mut out, kind, fields);
        out.to_vec()
    }

    #[test]
    fn bytes_are_as_clients_want_them() {
        let fields = Fields {
            severity: "ERROR",
            sqlstate: "42601",
            message: "m",
            detail: Some("d"),
            hint: Some("h"),
            position: Some(7),
        };
        assert_eq!(written(b'E', &fields), b"E\0\0\0\x25SERROR\0C42601\0Mm\0V4856\0Dd\0Hh\0P7\0\0");
        let fields = Fields { severity: "FATAL", sqlstate: "28P01", message: "m", ..Fields::default() };
        assert_eq!(written(b'E', &fields), b"E\0\0\0\x29SFATAL\0C28000\0Mm\0V2248\0Rauth_failed\0\0");
    }

    #[test]
    fn what_clients_know_is_told_as_they_know_it() {
        for (sqlstate, message, expected) in [
            ("42P01", "x", "SERROR C42V01 Mx V0"),
            ("42P07", "x", "SERROR C42710 Mx V0"),
            (
                "28P01",
                "password authentication failed for user \"u\"",
                "SERROR C28000 MAuthentication failed for username \"u\" V2248 Rauth_failed",
            ),
            ("2BV01", "x", "SERROR C2BV01 Mx V3128"),
            ("57014", "canceling statement due to user request", "SERROR C57014 MExecution canceled by operator V0"),
            (
                "57014",
                "canceling statement due to statement timeout",
                "SERROR C57014 Mcanceling statement due to statement timeout V0",
            ),
        ] {
            let bytes = written(b'E', &Fields { severity: "ERROR", sqlstate, message, ..Fields::default() });
            let shown = String::from_utf8_lossy(bytes.get(5..).unwrap_or_default()).replace('\0', " ");
            assert_eq!(shown.trim_end(), expected);
        }
        let message = "The LoadBalanceGroup g depends on NetworkInterface n";
        let notice = written(b'N', &Fields { severity: "NOTICE", sqlstate: "00000", message, ..Fields::default() });
        assert!(notice.ends_with(b"\0V4927\0\0"));
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_frame(message: String, detail: Option<String>) {
            let fields = Fields {
                severity: "ERROR",
                sqlstate: "XX000",
                message: &message,
                detail: detail.as_deref(),
                ..Fields::default()
            };
            let bytes = written(b'E', &fields);
            let header = crate::frame(&bytes, usize::MAX);
            prop_assert_eq!(header, Ok(Some(crate::FrameHeader { kind: b'E', len: bytes.len() })));
        }
    }
}
