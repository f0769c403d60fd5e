//! What a client sends before the first typed message: packets of a length and a code.
//!
//! The codes of both protocols are known here, so that one loop can read whatever comes first on the port
//! (`reference/vertica-wire.md` §1.1).

use std::fmt;
use std::ops::Deref;

use bytes::{BufMut, BytesMut};

use crate::error::WireError;
use crate::member::{self, Nonce};
use crate::proxy_header;
use crate::vertica::startup::has_numbered_version;

/// The longest startup packet PostgreSQL takes, and so the default limit.
pub const STARTUP_BYTES_MAX: usize = 10_000;
/// The longest key of a cancel request, in bytes; protocol 3.2 allows as many.
pub const CANCEL_KEY_BYTES_MAX: usize = 256;

const HEADER_BYTES: usize = 8;
const CANCEL: u32 = 80_877_102;
const SSL: u32 = 80_877_103;
const GSS_ENC: u32 = 80_877_104;
const LOAD_BALANCE: u32 = 80_936_960;
const TLS_HANDSHAKE: u8 = 0x16;
/// Names of options of the protocol itself begin so.
const OPTION_PREFIX: &str = "_pq_.";

/// A protocol version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// The upper half.
    pub major: u16,
    /// The lower half.
    pub minor: u16,
}

impl Version {
    /// PostgreSQL's protocol as it was from 2003 on.
    pub const V3_0: Self = Self { major: 3, minor: 0 };
    /// With cancel keys of up to 256 bytes.
    pub const V3_2: Self = Self { major: 3, minor: 2 };

    /// As a startup packet has it.
    pub const fn code(self) -> u32 {
        ((self.major as u32) << 16) | self.minor as u32
    }

    /// The version that a startup packet has.
    pub const fn of_code(code: u32) -> Self {
        let [a, b, c, d] = code.to_be_bytes();
        Self { major: u16::from_be_bytes([a, b]), minor: u16::from_be_bytes([c, d]) }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The key that lets its holder cancel what a session is doing; never printed by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct CancelKey(Vec<u8>);

impl From<Vec<u8>> for CancelKey {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl Deref for CancelKey {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for CancelKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CancelKey of {} bytes", self.0.len())
    }
}

/// A packet without a type byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Untyped {
    /// May TLS begin?
    SslRequest,
    /// May GSSAPI encryption begin?
    GssEncRequest,
    /// Vertica: is there a better server for this connection?
    LoadBalanceRequest,
    /// Stop what another session is doing.
    CancelRequest {
        /// As BackendKeyData named the session.
        process_id: i32,
        /// The key from the same message.
        secret: CancelKey,
    },
    /// Another member has a client for this one.
    MemberHello(Nonce),
    /// The client it has: what [`crate::member::introduced`] reads.
    MemberIntroduction(Vec<u8>),
    /// It has questions: what [`crate::member::channel_opened`] looks at.
    MemberChannel(Vec<u8>),
    /// A session shall begin.
    Startup(Startup),
}

/// How a session shall begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Startup {
    /// The version asked for; the major one is 3.
    pub version: Version,
    /// Name and value, in the order given; no name comes twice.
    pub parameters: Vec<(String, String)>,
}

/// The version both sides will speak.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Negotiated {
    /// Never above what the client asked for.
    pub version: Version,
    /// Options of the protocol that the client asked for and that are unknown here.
    pub options_unknown: Vec<String>,
    /// Whether the client must be told by NegotiateProtocolVersion.
    pub tell: bool,
}

impl Startup {
    /// The value of a parameter.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Settles on a version, and takes the options of the protocol out of the parameters.
    pub fn negotiate(&mut self) -> Negotiated {
        let version = if self.version >= Version::V3_2 { Version::V3_2 } else { Version::V3_0 };
        let options_unknown: Vec<String> =
            self.parameters.extract_if(.., |(name, _)| name.starts_with(OPTION_PREFIX)).map(|(name, _)| name).collect();
        let tell = version != self.version || !options_unknown.is_empty();
        Negotiated { version, options_unknown, tell }
    }
}

/// Reads the untyped packet at the start of a buffer, and says how many bytes it has; `None` when some are missing.
/// A packet that can never become valid is refused as soon as its first bytes show it.
///
/// # Errors
/// When the packet is longer than `bytes_max`, of no known kind, or does not follow its layout.
pub fn untyped(buffer: &[u8], bytes_max: usize) -> Result<Option<(Untyped, usize)>, WireError> {
    if buffer.first() == Some(&TLS_HANDSHAKE) {
        return Err(WireError::DirectTls);
    }
    if proxy_header::begins(buffer) {
        return Err(WireError::ProxyHeader);
    }
    let Some((&[a, b, c, d], rest)) = buffer.split_first_chunk() else { return Ok(None) };
    let length = u32::from_be_bytes([a, b, c, d]);
    if is_http(&[a, b, c, d]) {
        return Err(WireError::Http);
    }
    let len = match usize::try_from(length) {
        Ok(len) if (HEADER_BYTES..=bytes_max).contains(&len) => len,
        _ => return Err(WireError::PacketLength { length, bytes_max }),
    };
    let Some((code, _)) = rest.split_first_chunk() else { return Ok(None) };
    let code = u32::from_be_bytes(*code);
    check_head(code, len)?;
    let Some(body) = buffer.get(HEADER_BYTES..len) else { return Ok(None) };
    let packet = match code {
        SSL => Untyped::SslRequest,
        GSS_ENC => Untyped::GssEncRequest,
        LOAD_BALANCE => Untyped::LoadBalanceRequest,
        CANCEL => cancel(body)?,
        member::HELLO => Untyped::MemberHello(body.try_into().map_err(|_| WireError::Layout("member hello"))?),
        member::INTRODUCTION => Untyped::MemberIntroduction(body.to_vec()),
        member::CHANNEL => Untyped::MemberChannel(body.to_vec()),
        code => {
            let version = Version::of_code(code);
            Untyped::Startup(Startup { version, parameters: parameters(body, has_numbered_version(version))? })
        }
    };
    Ok(Some((packet, len)))
}

/// Writes a request to stop what another session is doing.
pub fn cancel_request(out: &mut BytesMut, process_id: i32, secret: &[u8]) {
    let len = HEADER_BYTES.saturating_add(4).saturating_add(secret.len());
    out.put_u32(u32::try_from(len).unwrap_or(u32::MAX));
    out.put_u32(CANCEL);
    out.put_i32(process_id);
    out.put_slice(secret);
}

fn is_http(head: &[u8; 4]) -> bool {
    [b"GET ", b"POST", b"PUT ", b"HEAD", b"OPTI", b"DELE", b"CONN", b"PRI "].contains(&head)
}

/// What eight bytes are enough to refuse.
fn check_head(code: u32, len: usize) -> Result<(), WireError> {
    let fixed = |packet| if len == HEADER_BYTES { Ok(()) } else { Err(WireError::FixedLength { packet, length: len }) };
    match code {
        SSL => fixed("SSL request"),
        GSS_ENC => fixed("GSSAPI encryption request"),
        LOAD_BALANCE => fixed("load balance request"),
        CANCEL if (HEADER_BYTES + 8..=HEADER_BYTES + 4 + CANCEL_KEY_BYTES_MAX).contains(&len) => Ok(()),
        CANCEL => Err(WireError::FixedLength { packet: "cancel request", length: len }),
        member::HELLO if len == member::HELLO_BYTES => Ok(()),
        member::HELLO => Err(WireError::FixedLength { packet: "member hello", length: len }),
        member::INTRODUCTION => Ok(()),
        member::CHANNEL if len == member::CHANNEL_BYTES => Ok(()),
        member::CHANNEL => Err(WireError::FixedLength { packet: "member channel", length: len }),
        code => match Version::of_code(code) {
            Version { major: 3, .. } => Ok(()),
            other => Err(WireError::Version(other)),
        },
    }
}

fn cancel(body: &[u8]) -> Result<Untyped, WireError> {
    let (process_id, secret) =
        body.split_first_chunk().ok_or(WireError::FixedLength { packet: "cancel request", length: body.len() })?;
    Ok(Untyped::CancelRequest { process_id: i32::from_be_bytes(*process_id), secret: secret.to_vec().into() })
}

/// Name and value, again and again; where `numbered`, that of `protocol_version` is a number.
fn parameters(mut body: &[u8], numbered: bool) -> Result<Vec<(String, String)>, WireError> {
    let mut parameters: Vec<(String, String)> = Vec::new();
    loop {
        let (name, rest) = text(body)?;
        if name.is_empty() {
            return if rest.is_empty() { Ok(parameters) } else { Err(WireError::Terminator) };
        }
        // The list's own terminator is no value: without this, a last name without value would swallow it.
        if rest.len() < 2 {
            return Err(WireError::ValueMissing(name.to_owned()));
        }
        let (value, rest) = if numbered && name == "protocol_version" {
            number(rest)?
        } else {
            text(rest).map(|(value, rest)| (value.to_owned(), rest))?
        };
        if parameters.iter().any(|(known, _)| known == name) {
            return Err(WireError::Duplicate(name.to_owned()));
        }
        parameters.push((name.to_owned(), value));
        body = rest;
    }
}

/// One terminated number as decimal text, and what follows it.
fn number(bytes: &[u8]) -> Result<(String, &[u8]), WireError> {
    let (number, rest) = bytes.split_first_chunk().ok_or(WireError::Terminator)?;
    match rest.split_first() {
        Some((0, rest)) => Ok((u32::from_be_bytes(*number).to_string(), rest)),
        _ => Err(WireError::Terminator),
    }
}

/// One terminated text, and what follows it.
pub(crate) fn text(bytes: &[u8]) -> Result<(&str, &[u8]), WireError> {
    let end = bytes.iter().position(|&byte| byte == 0).ok_or(WireError::Terminator)?;
    let (text, rest) = bytes.split_at_checked(end).ok_or(WireError::Terminator)?;
    let text = std::str::from_utf8(text).map_err(|_| WireError::Utf8)?;
    Ok((text, rest.get(1..).unwrap_or_default()))
}

#[cfg(test)]
mod tests;
