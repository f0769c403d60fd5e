//! What can be wrong with bytes of a client.

use thiserror::Error;

use crate::sqlstate::SqlState;
use crate::startup::Version;

/// Bytes that follow no protocol spoken here. The connection cannot go on after one.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WireError {
    /// The length word of an untyped packet is too small or too large.
    #[error("invalid length of startup packet")]
    PacketLength {
        /// As the client gave it.
        length: u32,
        /// The largest one taken.
        bytes_max: usize,
    },
    /// A packet of fixed size has another size.
    #[error("invalid length of {packet} packet")]
    FixedLength {
        /// Which packet.
        packet: &'static str,
        /// As the client gave it.
        length: usize,
    },
    /// The first byte is that of a TLS handshake.
    #[error("direct TLS connections are not supported")]
    DirectTls,
    /// The first bytes are a header by which a balancer says who the client is.
    #[error("a PROXY protocol header is accepted from trusted networks only")]
    ProxyHeader,
    /// Such a header comes again, or after something else.
    #[error("a PROXY protocol header is accepted once, before anything else")]
    ProxyHeaderLate,
    /// Such a header is for a client, and does not say where the client is.
    #[error("the PROXY protocol header does not say what the client's address is")]
    ProxyAddress,
    /// Another member could not prove that it is one.
    #[error("the other side does not know the secret of this cluster")]
    MemberProof,
    /// The first bytes are an HTTP request.
    #[error("this is not an HTTP server")]
    Http,
    /// Neither a known request nor protocol 3.
    #[error("unsupported frontend protocol {0}: server supports 3.0 to 3.2")]
    Version(Version),
    /// Vertica's protocol, in a version that is too old.
    #[error("unsupported frontend protocol {0}: server supports 3.0 to 3.16")]
    VersionVertica(Version),
    /// The parameters do not end where the packet ends.
    #[error("invalid startup packet layout: expected terminator as last byte")]
    Terminator,
    /// A parameter has a name but no value.
    #[error("invalid startup packet layout: parameter \"{0}\" has no value")]
    ValueMissing(String),
    /// A parameter comes twice.
    #[error("invalid startup packet layout: parameter \"{0}\" is given twice")]
    Duplicate(String),
    /// Text is not UTF-8.
    #[error("invalid byte sequence for encoding \"UTF8\" in startup packet")]
    Utf8,
    /// The length word of a message is too small or too large.
    #[error("invalid message length")]
    MessageLength {
        /// The type byte.
        kind: u8,
        /// As the client gave it.
        length: u32,
        /// The largest one taken.
        bytes_max: usize,
    },
    /// The stream ended inside a packet or a message.
    #[error("incomplete message")]
    Incomplete,
    /// A message is of no type that a client sends.
    #[error("invalid frontend message type {0}")]
    MessageKind(u8),
    /// A message's content does not follow its layout.
    #[error("invalid {0} message")]
    Layout(&'static str),
}

impl WireError {
    /// The SQLSTATE a client is told.
    pub fn sqlstate(&self) -> SqlState {
        match self {
            Self::Version(_) | Self::VersionVertica(_) | Self::DirectTls => SqlState::FeatureNotSupported,
            Self::MemberProof | Self::ProxyHeader | Self::ProxyHeaderLate | Self::ProxyAddress => {
                SqlState::InvalidAuthorization
            }
            Self::Utf8 => SqlState::CharacterNotInRepertoire,
            _ => SqlState::ProtocolViolation,
        }
    }
}
