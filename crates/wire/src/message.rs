//! The typed messages of a login: those a server writes, and the answers it reads.

use bytes::{BufMut, Bytes, BytesMut};
use pgwire::messages::Message;
use pgwire::messages::response::{self, ErrorResponse, NoticeResponse, ReadyForQuery};
use pgwire::messages::startup::{Authentication, BackendKeyData, NegotiateProtocolVersion, ParameterStatus, SecretKey};

use crate::error::WireError;
use crate::sqlstate::SqlState;
use crate::startup::{Version, text};

/// How bad it is, as the client is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Severity {
    /// The statement failed.
    Error,
    /// The session ends.
    Fatal,
    /// The server ends.
    Panic,
    /// Vertica's word for an error.
    Rollback,
    /// Worth knowing.
    Notice,
    /// Worth acting on.
    Warning,
    /// Asked for.
    Info,
}

impl Severity {
    /// As field `S` has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "ERROR",
            Self::Fatal => "FATAL",
            Self::Panic => "PANIC",
            Self::Rollback => "ROLLBACK",
            Self::Notice => "NOTICE",
            Self::Warning => "WARNING",
            Self::Info => "INFO",
        }
    }

    /// As field `V` has it: clients choose what to do by this one, and know PostgreSQL's words only.
    pub const fn class(self) -> &'static str {
        match self {
            Self::Rollback => Self::Error.as_str(),
            other => other.as_str(),
        }
    }
}

/// An error or a notice as a client is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// How bad it is.
    pub severity: Severity,
    /// What kind it is.
    pub sqlstate: SqlState,
    /// The primary line.
    pub message: String,
    /// More, in sentences.
    pub detail: Option<String>,
    /// What to do, in sentences.
    pub hint: Option<String>,
    /// Where in the statement: in characters, from 1.
    pub position: Option<u32>,
}

impl Report {
    /// A report with nothing but a primary line.
    pub fn new(severity: Severity, sqlstate: SqlState, message: impl Into<String>) -> Self {
        Self { severity, sqlstate, message: message.into(), detail: None, hint: None, position: None }
    }

    /// Adds a detail.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Adds a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a position.
    #[must_use]
    pub fn with_position(mut self, position: u32) -> Self {
        self.position = Some(position);
        self
    }
}

/// What the session's transaction is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionStatus {
    /// There is none.
    Idle,
    /// It is open.
    Open,
    /// It failed.
    Failed,
}

/// May TLS or GSSAPI encryption begin: one byte, and no.
pub const ENCRYPTION_REFUSED: u8 = b'N';
/// May TLS begin: one byte, and yes.
pub const TLS_ACCEPTED: u8 = b'S';
/// Is there a better server: one byte, and no.
pub const LOAD_BALANCE_DECLINED: u8 = b'N';

/// AuthenticationOk.
pub fn authentication_ok(out: &mut BytesMut) {
    put(out, &Authentication::Ok);
}

/// AuthenticationSASL: the mechanisms to choose from.
pub fn authentication_sasl(out: &mut BytesMut, mechanisms: &[&str]) {
    put(out, &Authentication::SASL(mechanisms.iter().map(|mechanism| text_without_zero(mechanism)).collect()));
}

/// AuthenticationSASLContinue: a step of the mechanism.
pub fn authentication_sasl_continue(out: &mut BytesMut, data: &[u8]) {
    put(out, &Authentication::SASLContinue(Bytes::copy_from_slice(data)));
}

/// AuthenticationSASLFinal: the last step of the mechanism.
pub fn authentication_sasl_final(out: &mut BytesMut, data: &[u8]) {
    put(out, &Authentication::SASLFinal(Bytes::copy_from_slice(data)));
}

/// ParameterStatus.
pub fn parameter_status(out: &mut BytesMut, name: &str, value: &str) {
    put(out, &ParameterStatus::new(text_without_zero(name), text_without_zero(value)));
}

/// BackendKeyData. The key has 4 bytes in protocol 3.0, and up to 256 in 3.2.
pub fn backend_key_data(out: &mut BytesMut, process_id: i32, secret: &[u8]) {
    put(out, &BackendKeyData::new(process_id, SecretKey::Bytes(Bytes::copy_from_slice(secret))));
}

/// NegotiateProtocolVersion: the newest version spoken here, and the options not known here.
pub fn negotiate_protocol_version(out: &mut BytesMut, version: Version, options_unknown: &[String]) {
    let options = options_unknown.iter().map(|option| text_without_zero(option)).collect();
    put(out, &NegotiateProtocolVersion::new(version.code().cast_signed(), options));
}

/// ErrorResponse.
pub fn error_response(out: &mut BytesMut, report: &Report) {
    put(out, &ErrorResponse::new(fields(report)));
}

/// NoticeResponse.
pub fn notice_response(out: &mut BytesMut, report: &Report) {
    put(out, &NoticeResponse::new(fields(report)));
}

/// ReadyForQuery.
pub fn ready_for_query(out: &mut BytesMut, status: TransactionStatus) {
    put(
        out,
        &ReadyForQuery::new(match status {
            TransactionStatus::Idle => response::TransactionStatus::Idle,
            TransactionStatus::Open => response::TransactionStatus::Transaction,
            TransactionStatus::Failed => response::TransactionStatus::Error,
        }),
    );
}

/// The client's choice of a mechanism.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SaslInitialResponse<'a> {
    /// Its name.
    pub mechanism: &'a str,
    /// The mechanism's first message, if the client sent it along.
    pub data: Option<&'a [u8]>,
}

/// Reads the body of a SASLInitialResponse.
///
/// # Errors
/// When it does not follow its layout.
pub fn sasl_initial_response(body: &[u8]) -> Result<SaslInitialResponse<'_>, WireError> {
    let broken = WireError::Layout("SASLInitialResponse");
    let (mechanism, rest) = text(body).map_err(|_| broken.clone())?;
    let (length, data) = rest.split_first_chunk().ok_or_else(|| broken.clone())?;
    match (i32::from_be_bytes(*length), data) {
        (-1, []) => Ok(SaslInitialResponse { mechanism, data: None }),
        (length, data) if usize::try_from(length) == Ok(data.len()) => {
            Ok(SaslInitialResponse { mechanism, data: Some(data) })
        }
        _ => Err(broken),
    }
}

/// Writes a message of pgwire's. One that is longer than its type may be, which only a text from a client could make, is
/// left out whole: half of it would put client and server out of step.
pub(crate) fn put(out: &mut BytesMut, message: &impl Message) {
    let start = out.len();
    if message.encode(out).is_err() {
        out.truncate(start);
    }
}

/// Writes a message that pgwire would copy first: its type, the length that its body turns out to have, its body.
pub(crate) fn typed(out: &mut BytesMut, kind: u8, body: impl FnOnce(&mut BytesMut)) {
    out.put_u8(kind);
    let start = out.len();
    out.put_u32(0);
    body(out);
    // What is written here is a few kilobytes at most.
    let length = u32::try_from(out.len().saturating_sub(start)).unwrap_or(u32::MAX);
    if let Some(word) = out.get_mut(start..start.saturating_add(4)) {
        word.copy_from_slice(&length.to_be_bytes());
    }
}

/// A text as a message may hold it. A zero byte inside would end it early and put client and server out of step: it is
/// left out.
pub(crate) fn text_without_zero(text: &str) -> String {
    text.replace('\0', "")
}

fn fields(report: &Report) -> Vec<(u8, String)> {
    let position = report.position.map(|position| position.to_string());
    let fields = [
        (b'S', Some(report.severity.as_str())),
        (b'V', Some(report.severity.class())),
        (b'C', Some(report.sqlstate.code())),
        (b'M', Some(report.message.as_str())),
        (b'D', report.detail.as_deref()),
        (b'H', report.hint.as_deref()),
        (b'P', position.as_deref()),
    ];
    fields.into_iter().filter_map(|(field, value)| value.map(|value| (field, text_without_zero(value)))).collect()
}

#[cfg(test)]
#[expect(clippy::indexing_slicing, reason = "tests")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(write: impl FnOnce(&mut BytesMut)) -> Vec<u8> {
        let mut out = BytesMut::new();
        write(&mut out);
        out.to_vec()
    }

    #[test]
    fn bytes_are_as_the_protocol_has_them() {
        assert_eq!(written(authentication_ok), b"R\0\0\0\x08\0\0\0\0");
        assert_eq!(
            written(|out| authentication_sasl(out, &["SCRAM-SHA-256"])),
            b"R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0"
        );
        assert_eq!(written(|out| authentication_sasl_continue(out, b"r=x")), b"R\0\0\0\x0b\0\0\0\x0br=x");
        assert_eq!(written(|out| authentication_sasl_final(out, b"v=x")), b"R\0\0\0\x0b\0\0\0\x0cv=x");
        assert_eq!(written(|out| parameter_status(out, "a", "b\0c")), b"S\0\0\0\x09a\0bc\0");
        assert_eq!(
            written(|out| backend_key_data(out, 258, &[1, 2, 3, 4])),
            b"K\0\0\0\x0c\0\0\x01\x02\x01\x02\x03\x04"
        );
        assert_eq!(
            written(|out| negotiate_protocol_version(out, Version::V3_2, &["_pq_.x".to_owned()])),
            b"v\0\0\0\x13\0\x03\0\x02\0\0\0\x01_pq_.x\0"
        );
        assert_eq!(written(|out| ready_for_query(out, TransactionStatus::Failed)), b"Z\0\0\0\x05E");
    }

    #[test]
    fn reports_have_both_severities() {
        let report = Report::new(Severity::Rollback, SqlState::DependentObjectsVertica, "m")
            .with_detail("d")
            .with_hint("h")
            .with_position(7);
        let mut expected = b"E\0\0\0\x29SROLLBACK\0VERROR\0C2BV01\0Mm\0Dd\0Hh\0P7\0\0".to_vec();
        assert_eq!(written(|out| error_response(out, &report)), expected);
        expected[0] = b'N';
        assert_eq!(written(|out| notice_response(out, &report)), expected);
    }

    #[test]
    fn a_mechanism_may_come_without_data() {
        let bare = SaslInitialResponse { mechanism: "X", data: None };
        assert_eq!(sasl_initial_response(b"X\0\xff\xff\xff\xff"), Ok(bare));
        let full = SaslInitialResponse { mechanism: "X", data: Some(b"ab") };
        assert_eq!(sasl_initial_response(b"X\0\0\0\0\x02ab"), Ok(full));
        for broken in
            [&b"X"[..], b"X\0", b"X\0\0\0\0\x03ab", b"X\0\0\0\0\x01ab", b"X\0\xff\xff\xff\xffab", b"\xff\0\0\0\0\0"]
        {
            assert_eq!(sasl_initial_response(broken), Err(WireError::Layout("SASLInitialResponse")), "{broken:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(body: Vec<u8>) {
            let _ = sasl_initial_response(&body);
        }

        #[test]
        fn no_text_breaks_the_frame(message: String, detail: Option<String>) {
            let mut report = Report::new(Severity::Error, SqlState::InternalError, message);
            report.detail = detail;
            let bytes = written(|out| error_response(out, &report));
            let header = crate::frame(&bytes, usize::MAX);
            prop_assert_eq!(header, Ok(Some(crate::FrameHeader { kind: b'E', len: bytes.len() })));
        }
    }
}
