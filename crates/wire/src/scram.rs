//! SCRAM-SHA-256 and SCRAM-SHA-256-PLUS (RFC 5802, RFC 7677, RFC 5929 §4), the server's side. Each state is a type that the next message consumes:
//! [`Exchange`], then [`Challenged`], then [`Proven`].

mod proving;

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rand::CryptoRng;
use subtle::ConstantTimeEq;
use thiserror::Error;
use zeroize::Zeroizing;

use crate::sqlstate::SqlState;
use crate::verifier::{Key, ScramVerifier, hmac, sha256};

pub use proving::{Answered, Proof, Prover, ProvingError};

/// The mechanism's name.
pub const MECHANISM: &str = "SCRAM-SHA-256";
/// The mechanism's name where the proof is bound to the TLS channel.
pub const MECHANISM_PLUS: &str = "SCRAM-SHA-256-PLUS";
/// The longest message of a client that is read, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 4096;

const NONCE_BYTES: usize = 18;
/// How a message begins whose proof is bound to the server's certificate.
const BOUND_HEADER: &str = "p=tls-server-end-point,,";

/// Why an exchange ended without proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ScramError {
    /// The message does not follow its grammar.
    #[error("malformed SCRAM message")]
    Malformed(&'static str),
    /// The message is too long to be read.
    #[error("SCRAM message is too long")]
    TooLong,
    /// The client binds to a TLS channel that is not there.
    #[error(
        "client selected SCRAM-SHA-256 without channel binding, but the SCRAM message includes channel binding data"
    )]
    ChannelBinding,
    /// The client binds to something of the channel that is not known here.
    #[error("unsupported SCRAM channel-binding type")]
    BindingType,
    /// The client would have bound its proof, had it been offered what was offered: somebody on the way took it out.
    #[error("SCRAM channel binding negotiation error")]
    Downgrade,
    /// The client wants to act as somebody else.
    #[error("client uses authorization identity, but it is not supported")]
    AuthorizationIdentity,
    /// The client demands an extension.
    #[error("client requires an unsupported SCRAM extension")]
    Extension,
    /// The channel binding differs from what was said at first.
    #[error("SCRAM channel binding check failed")]
    BindingChanged,
    /// The nonce is not the one of this exchange.
    #[error("invalid SCRAM response")]
    Nonce,
    /// The proof does not hold: the password is wrong.
    #[error("invalid SCRAM proof")]
    Proof,
}

impl ScramError {
    /// The SQLSTATE a client is told.
    pub fn sqlstate(self) -> SqlState {
        match self {
            Self::AuthorizationIdentity | Self::Extension => SqlState::FeatureNotSupported,
            Self::BindingChanged | Self::Downgrade => SqlState::InvalidAuthorization,
            Self::Proof => SqlState::InvalidPassword,
            _ => SqlState::ProtocolViolation,
        }
    }

    /// What about the message is wrong, as a sentence.
    pub fn detail(self) -> Option<&'static str> {
        match self {
            Self::Malformed(detail) => Some(detail),
            Self::Nonce => Some("Nonce does not match."),
            Self::Downgrade => Some(
                "The client supports SCRAM channel binding but thinks the server does not. However, this server does \
                 support channel binding.",
            ),
            _ => None,
        }
    }
}

/// What a proof may be bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Channel {
    /// Nothing: there is no TLS, or no hash of its certificate is defined.
    Unbound,
    /// The client was offered [`MECHANISM_PLUS`] and chose [`MECHANISM`].
    Declined,
    /// The client chose [`MECHANISM_PLUS`]; the hash of the server's certificate.
    Bound(Vec<u8>),
}

/// A server that waits for the client's first message.
#[derive(Debug)]
pub struct Exchange {
    verifier: ScramVerifier,
    channel: Channel,
    nonce: String,
}

/// A server that has sent its challenge and waits for the proof.
#[derive(Debug)]
pub struct Challenged {
    verifier: ScramVerifier,
    /// `c=` must be this: the header again, and what the channel is bound to.
    binding: String,
    nonce: String,
    client_first_bare: String,
    server_first: String,
}

/// An exchange that ended well.
#[derive(Debug)]
pub struct Proven {
    /// The server's last message.
    pub server_final: String,
    /// What the client proved with; upstreams that keep the same verifier accept it too.
    pub client_key: ClientKey,
}

/// The key that stands for the password in every later proof. Kept in memory only, and never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientKey(Zeroizing<Key>);

impl ClientKey {
    /// The key itself, for the code that must prove with it.
    pub fn reveal(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for ClientKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientKey")
    }
}

impl Exchange {
    /// Begins: the client shall prove that it knows the password of this verifier.
    pub fn new(verifier: ScramVerifier, channel: Channel, rng: &mut impl CryptoRng) -> Self {
        let mut nonce = [0; NONCE_BYTES];
        rng.fill_bytes(&mut nonce);
        Self { verifier, channel, nonce: BASE64.encode(nonce) }
    }

    /// Takes the client's first message and makes the server's.
    ///
    /// # Errors
    /// When the message is refused; the exchange is over then.
    pub fn challenge(self, client_first: &[u8]) -> Result<(String, Challenged), ScramError> {
        let message = readable(client_first)?;
        let (binding, bare) = gs2_header(message, &self.channel)?;
        if bare.starts_with("m=") {
            return Err(ScramError::Extension);
        }
        let mut attributes = bare.split(',');
        // PostgreSQL's clients leave the name empty or send anything: the startup packet has the user's name.
        attribute(attributes.next(), "n=", "Attribute \"n\" expected.")?;
        let client_nonce = attribute(attributes.next(), "r=", "Attribute \"r\" expected.")?;
        if client_nonce.is_empty() || !client_nonce.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(ScramError::Malformed("Non-printable characters in SCRAM nonce."));
        }
        check_extensions(attributes)?;
        let nonce = format!("{client_nonce}{}", self.nonce);
        let server_first = format!("r={nonce},s={},i={}", BASE64.encode(&self.verifier.salt), self.verifier.iterations);
        let challenged = Challenged {
            verifier: self.verifier,
            binding,
            nonce,
            client_first_bare: bare.to_owned(),
            server_first: server_first.clone(),
        };
        Ok((server_first, challenged))
    }
}

impl Challenged {
    /// Takes the client's last message and checks the proof in it.
    ///
    /// # Errors
    /// When the message is refused or the proof does not hold; the exchange is over then.
    pub fn prove(self, client_final: &[u8]) -> Result<Proven, ScramError> {
        let message = readable(client_final)?;
        let (without_proof, proof) =
            message.rsplit_once(",p=").ok_or(ScramError::Malformed("Attribute \"p\" expected."))?;
        let mut attributes = without_proof.split(',');
        let binding = attribute(attributes.next(), "c=", "Attribute \"c\" expected.")?;
        let nonce = attribute(attributes.next(), "r=", "Attribute \"r\" expected.")?;
        check_extensions(attributes)?;
        let proof = BASE64.decode(proof).ok().and_then(|proof| Key::try_from(proof).ok());
        let proof = proof.ok_or(ScramError::Malformed("Malformed proof in client-final-message."))?;
        if !bool::from(binding.as_bytes().ct_eq(self.binding.as_bytes())) {
            return Err(ScramError::BindingChanged);
        }
        if !bool::from(nonce.as_bytes().ct_eq(self.nonce.as_bytes())) {
            return Err(ScramError::Nonce);
        }
        let signed: &[&[u8]] =
            &[self.client_first_bare.as_bytes(), b",", self.server_first.as_bytes(), b",", without_proof.as_bytes()];
        let mut client_key = ClientKey(Zeroizing::new(hmac(&self.verifier.stored_key, signed)));
        for (byte, proof) in client_key.0.iter_mut().zip(proof) {
            *byte ^= proof;
        }
        if !bool::from(sha256(client_key.reveal()).ct_eq(&self.verifier.stored_key)) {
            return Err(ScramError::Proof);
        }
        let server_final = format!("v={}", BASE64.encode(hmac(&self.verifier.server_key, signed)));
        Ok(Proven { server_final, client_key })
    }
}

fn readable(message: &[u8]) -> Result<&str, ScramError> {
    if message.len() > MESSAGE_BYTES_MAX {
        return Err(ScramError::TooLong);
    }
    match std::str::from_utf8(message) {
        Ok(message) if !message.contains('\0') => Ok(message),
        _ => Err(ScramError::Malformed("The message is no text.")),
    }
}

/// Takes the header off that says whether the proof is bound to the channel, and gives what `c=` must repeat.
fn gs2_header<'a>(message: &'a str, channel: &Channel) -> Result<(String, &'a str), ScramError> {
    const UNBOUND: ScramError = ScramError::Malformed(
        "The client selected SCRAM-SHA-256-PLUS, but the SCRAM message does not include channel binding data.",
    );
    let Some((flag, rest)) = message.split_once(',') else {
        return Err(ScramError::Malformed("Comma expected after the channel-binding flag."));
    };
    let binding = match (flag, channel) {
        ("n" | "y", Channel::Bound(_)) => return Err(UNBOUND),
        // It could bind but was not offered to: so it thinks, and so it is only without an offer.
        ("y", Channel::Declined) => return Err(ScramError::Downgrade),
        ("n", _) => BASE64.encode("n,,"),
        ("y", _) => BASE64.encode("y,,"),
        ("p=tls-server-end-point", Channel::Bound(hash)) => {
            BASE64.encode([BOUND_HEADER.as_bytes(), hash.as_slice()].concat())
        }
        (kind, Channel::Bound(_)) if kind.starts_with("p=") => return Err(ScramError::BindingType),
        (kind, _) if kind.starts_with("p=") => return Err(ScramError::ChannelBinding),
        _ => return Err(ScramError::Malformed("Unexpected channel-binding flag.")),
    };
    if rest.starts_with("a=") {
        return Err(ScramError::AuthorizationIdentity);
    }
    let bare = rest.strip_prefix(',').ok_or(ScramError::Malformed("Comma expected after the GS2 header."))?;
    Ok((binding, bare))
}

fn attribute<'a>(part: Option<&'a str>, name: &str, missing: &'static str) -> Result<&'a str, ScramError> {
    part.and_then(|part| part.strip_prefix(name)).ok_or(ScramError::Malformed(missing))
}

/// Optional extensions are `letter=value`; they change nothing here.
fn check_extensions<'a>(attributes: impl Iterator<Item = &'a str>) -> Result<(), ScramError> {
    for extension in attributes {
        if !matches!(extension.as_bytes(), [name, b'=', _, ..] if name.is_ascii_alphabetic()) {
            return Err(ScramError::Malformed("Invalid extension attribute."));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
