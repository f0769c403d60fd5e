//! How one member of a cluster passes a client on to another.
//!
//! The member that the client is connected to (the connection node) opens a connection to the chosen one and says hello
//! with a number used once. The chosen one answers with its own and proves that it knows the cluster's secret. Then the
//! connection node introduces the client, and proves the same over what it says. From there on the stream is the
//! client's: its startup packet comes next. Without the secret nobody can speak for an address that is not his.

use std::net::SocketAddr;

use bytes::{BufMut, BytesMut};
use subtle::ConstantTimeEq;

use crate::error::WireError;
use crate::startup::CancelKey;
use crate::verifier::{hmac, sha256};

/// The code of a hello, where a startup packet has its version. The upper half is one that no protocol uses.
pub(crate) const HELLO: u32 = 0x4D42_0001;
/// The code of an introduction.
pub(crate) const INTRODUCTION: u32 = 0x4D42_0002;
/// The code of a packet that makes the connection a channel.
pub(crate) const CHANNEL: u32 = 0x4D42_0003;
/// Its length: header and proof.
pub(crate) const CHANNEL_BYTES: usize = 8 + PROOF_BYTES;
/// The longest frame of a channel, in bytes.
pub const FRAME_BYTES_MAX: usize = 64 << 20;
/// A hello's length: header and number.
pub(crate) const HELLO_BYTES: usize = 8 + NONCE_BYTES;
/// A welcome's length: its kind, the number, the proof.
pub const WELCOME_BYTES: usize = 1 + NONCE_BYTES + PROOF_BYTES;

const NONCE_BYTES: usize = 32;
const PROOF_BYTES: usize = 32;
const WELCOME: u8 = b'M';

/// A number used once.
pub type Nonce = [u8; NONCE_BYTES];

/// The numbers of both sides: a proof made for them is good for nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nonces {
    /// The one of the member that says hello.
    pub hello: Nonce,
    /// The one of the member that welcomes.
    pub welcome: Nonce,
}

/// Who a member passes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Introduction {
    /// Where the client is; `None` on a Unix socket.
    pub client: Option<SocketAddr>,
    /// The process id that the client is to be given: the connection node passes requests to cancel on by it.
    pub process_id: i32,
    /// The key that belongs to it.
    pub secret: CancelKey,
    /// What is known of the client's TLS, which ends at the connection node.
    pub tls: Option<IntroducedTls>,
}

/// The TLS that a client speaks to the member it is connected to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntroducedTls {
    /// Its version.
    pub version: String,
    /// Its cipher.
    pub cipher: String,
    /// What a channel is bound to (`tls-server-end-point`); empty when it cannot be.
    pub end_point: Vec<u8>,
    /// The certificate that the client showed.
    pub certificate: Option<IntroducedCertificate>,
}

/// A client's certificate, as verified by the member it is connected to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntroducedCertificate {
    /// The serial number in hex.
    pub serial: String,
    /// The subject.
    pub subject: String,
    /// The authority that signed it.
    pub issuer: String,
    /// When it begins to hold, in seconds since 1970-01-01 UTC.
    pub not_before: i64,
    /// When it ceases to hold, in seconds since 1970-01-01 UTC.
    pub not_after: i64,
    /// Whom it names.
    pub identities: Vec<String>,
}

/// Says hello.
pub fn hello(out: &mut BytesMut, nonce: &Nonce) {
    out.put_u32(u32::try_from(HELLO_BYTES).unwrap_or(u32::MAX));
    out.put_u32(HELLO);
    out.put_slice(nonce);
}

/// Answers a hello, and proves to know the secret.
pub fn welcome(out: &mut BytesMut, secret: &[u8], nonces: &Nonces) {
    out.put_u8(WELCOME);
    out.put_slice(&nonces.welcome);
    out.put_slice(&proof(secret, b"welcome", nonces, b""));
}

/// The number in an answer to this hello, if whoever answers knows the secret.
pub fn welcomed(secret: &[u8], hello: Nonce, answer: &[u8; WELCOME_BYTES]) -> Option<Nonces> {
    let (&[kind], rest) = answer.split_first_chunk()?;
    let (&welcome, given) = rest.split_first_chunk()?;
    let nonces = Nonces { hello, welcome };
    let genuine = bool::from(proof(secret, b"welcome", &nonces, b"").ct_eq(given));
    (kind == WELCOME && genuine).then_some(nonces)
}

/// Introduces a client.
pub fn introduce(out: &mut BytesMut, secret: &[u8], nonces: &Nonces, introduction: &Introduction) {
    let mut body = BytesMut::new();
    put_introduction(&mut body, introduction);
    let len = 8_usize.saturating_add(PROOF_BYTES).saturating_add(body.len());
    out.put_u32(u32::try_from(len).unwrap_or(u32::MAX));
    out.put_u32(INTRODUCTION);
    out.put_slice(&proof(secret, b"introduction", nonces, &body));
    out.put_slice(&body);
}

/// Reads an introduction, header and all.
///
/// # Errors
/// When whoever made it does not know the secret, or it does not follow its layout.
pub fn introduced(secret: &[u8], nonces: &Nonces, body: &[u8]) -> Result<Introduction, WireError> {
    let broken = WireError::Layout("member introduction");
    let Some((given, body)) = body.split_first_chunk::<PROOF_BYTES>() else { return Err(broken) };
    if !bool::from(proof(secret, b"introduction", nonces, body).ct_eq(given)) {
        return Err(WireError::MemberProof);
    }
    read_introduction(body).ok_or(broken)
}

/// Makes the connection a channel, on which the member that said hello asks and the other one answers.
pub fn open_channel(out: &mut BytesMut, secret: &[u8], nonces: &Nonces) {
    out.put_u32(u32::try_from(CHANNEL_BYTES).unwrap_or(u32::MAX));
    out.put_u32(CHANNEL);
    out.put_slice(&proof(secret, b"channel", nonces, b""));
}

/// Whether whoever makes it a channel knows the secret.
pub fn channel_opened(secret: &[u8], nonces: &Nonces, given: &[u8]) -> bool {
    proof(secret, b"channel", nonces, b"").ct_eq(given).into()
}

/// What is said on a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    /// By the member that said hello.
    Question,
    /// By the other one.
    Answer,
}

/// Puts question or answer number `number` of a channel: its length, a proof, and it.
pub fn say(out: &mut BytesMut, secret: &[u8], nonces: &Nonces, said: (Said, u64), body: &[u8]) {
    out.put_u32(u32::try_from(PROOF_BYTES.saturating_add(body.len())).unwrap_or(u32::MAX));
    out.put_slice(&said_proof(secret, nonces, said, body));
    out.put_slice(body);
}

/// What was said, of a frame without its length; nothing when whoever says it does not know the secret, or has said it
/// before.
pub fn heard<'a>(secret: &[u8], nonces: &Nonces, said: (Said, u64), frame: &'a [u8]) -> Option<&'a [u8]> {
    let (given, body) = frame.split_first_chunk::<PROOF_BYTES>()?;
    bool::from(said_proof(secret, nonces, said, body).ct_eq(given)).then_some(body)
}

fn said_proof(secret: &[u8], nonces: &Nonces, (said, number): (Said, u64), body: &[u8]) -> [u8; PROOF_BYTES] {
    let purpose: &[u8] = match said {
        Said::Question => b"question",
        Said::Answer => b"answer",
    };
    hmac(&sha256(secret), &[purpose, &nonces.hello, &nonces.welcome, &number.to_be_bytes(), body])
}

fn proof(secret: &[u8], purpose: &[u8], nonces: &Nonces, body: &[u8]) -> [u8; PROOF_BYTES] {
    hmac(&sha256(secret), &[purpose, &nonces.hello, &nonces.welcome, body])
}

fn put_introduction(out: &mut BytesMut, introduction: &Introduction) {
    let Introduction { client, process_id, secret, tls } = introduction;
    put(out, client.map(|client| client.to_string()).unwrap_or_default().as_bytes());
    out.put_i32(*process_id);
    put(out, secret);
    out.put_u8(u8::from(tls.is_some()));
    let Some(IntroducedTls { version, cipher, end_point, certificate }) = tls else { return };
    put(out, version.as_bytes());
    put(out, cipher.as_bytes());
    put(out, end_point);
    out.put_u8(u8::from(certificate.is_some()));
    let Some(certificate) = certificate else { return };
    let IntroducedCertificate { serial, subject, issuer, not_before, not_after, identities } = certificate;
    for text in [serial, subject, issuer] {
        put(out, text.as_bytes());
    }
    out.put_i64(*not_before);
    out.put_i64(*not_after);
    out.put_u16(u16::try_from(identities.len()).unwrap_or(u16::MAX));
    for identity in identities.iter().take(usize::from(u16::MAX)) {
        put(out, identity.as_bytes());
    }
}

/// Bytes with their length before them. What is longer than 65,535 is cut: the packet is refused for its length then.
fn put(out: &mut BytesMut, bytes: &[u8]) {
    let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    out.put_u16(length);
    out.put_slice(bytes.get(..usize::from(length)).unwrap_or(bytes));
}

fn read_introduction(body: &[u8]) -> Option<Introduction> {
    let mut rest = Rest(body);
    let client = match rest.text()?.as_str() {
        "" => None,
        address => Some(address.parse().ok()?),
    };
    let process_id = i32::from_be_bytes(rest.take()?);
    let secret = rest.bytes()?.to_vec().into();
    let tls = if rest.flag()? { Some(read_tls(&mut rest)?) } else { None };
    rest.0.is_empty().then_some(Introduction { client, process_id, secret, tls })
}

fn read_tls(rest: &mut Rest<'_>) -> Option<IntroducedTls> {
    Some(IntroducedTls {
        version: rest.text()?,
        cipher: rest.text()?,
        end_point: rest.bytes()?.to_vec(),
        certificate: if rest.flag()? { Some(read_certificate(rest)?) } else { None },
    })
}

fn read_certificate(rest: &mut Rest<'_>) -> Option<IntroducedCertificate> {
    Some(IntroducedCertificate {
        serial: rest.text()?,
        subject: rest.text()?,
        issuer: rest.text()?,
        not_before: i64::from_be_bytes(rest.take()?),
        not_after: i64::from_be_bytes(rest.take()?),
        identities: (0..u16::from_be_bytes(rest.take()?)).map(|_| rest.text()).collect::<Option<_>>()?,
    })
}

struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = u16::from_be_bytes(self.take()?);
        let (bytes, rest) = self.0.split_at_checked(usize::from(length))?;
        self.0 = rest;
        Some(bytes)
    }

    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?.to_vec()).ok()
    }

    fn flag(&mut self) -> Option<bool> {
        match self.take()? {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::startup::{Untyped, untyped};

    const SECRET: &[u8] = b"of the cluster";
    const NONCES: Nonces = Nonces { hello: [1; 32], welcome: [2; 32] };

    fn introduction() -> Introduction {
        Introduction {
            client: Some("[2001:db8::7]:50123".parse().unwrap()),
            process_id: 4711,
            secret: vec![1, 2, 3, 4].into(),
            tls: Some(IntroducedTls {
                version: "TLSv1.3".into(),
                cipher: "TLS_AES_256_GCM_SHA384".into(),
                end_point: vec![7; 32],
                certificate: Some(IntroducedCertificate {
                    serial: "0a".into(),
                    subject: "CN=mira".into(),
                    issuer: "CN=example".into(),
                    not_before: -1,
                    not_after: 4_000_000_000,
                    identities: vec!["mira".into(), "mira@example.org".into()],
                }),
            }),
        }
    }

    fn packet(introduction: &Introduction) -> Vec<u8> {
        let mut out = BytesMut::new();
        introduce(&mut out, SECRET, &NONCES, introduction);
        match untyped(&out, 10_000).unwrap().unwrap() {
            (Untyped::MemberIntroduction(body), len) if len == out.len() => body,
            other => unreachable!("{other:?}"),
        }
    }

    #[test]
    fn a_hello_is_an_untyped_packet() {
        let mut out = BytesMut::new();
        hello(&mut out, &[9; 32]);
        assert_eq!(untyped(&out, 10_000), Ok(Some((Untyped::MemberHello([9; 32]), 40))));
        out.truncate(39);
        assert_eq!(untyped(&out, 10_000), Ok(None));
    }

    #[test]
    fn whoever_welcomes_must_know_the_secret() {
        let mut out = BytesMut::new();
        welcome(&mut out, SECRET, &NONCES);
        let mut answer: [u8; WELCOME_BYTES] = out.as_ref().try_into().unwrap();
        assert_eq!(welcomed(SECRET, NONCES.hello, &answer), Some(NONCES));
        assert_eq!(welcomed(b"another", NONCES.hello, &answer), None);
        // An answer to another hello is none to this.
        assert_eq!(welcomed(SECRET, [3; 32], &answer), None);
        answer[0] = b'E';
        assert_eq!(welcomed(SECRET, NONCES.hello, &answer), None);
    }

    #[test]
    fn what_is_introduced_is_read() {
        for introduction in [
            introduction(),
            Introduction { client: None, tls: None, ..introduction() },
            Introduction {
                tls: introduction().tls.map(|tls| IntroducedTls { certificate: None, end_point: vec![], ..tls }),
                ..introduction()
            },
        ] {
            assert_eq!(introduced(SECRET, &NONCES, &packet(&introduction)), Ok(introduction));
        }
    }

    #[test]
    fn whoever_introduces_must_know_the_secret() {
        let body = packet(&introduction());
        assert_eq!(introduced(b"another", &NONCES, &body), Err(WireError::MemberProof));
        // What was said to another member, or at another time, is worth nothing.
        let other = Nonces { welcome: [3; 32], ..NONCES };
        assert_eq!(introduced(SECRET, &other, &body), Err(WireError::MemberProof));
        for place in 0..body.len() {
            let mut changed = body.clone();
            *changed.get_mut(place).unwrap() ^= 1;
            assert_eq!(introduced(SECRET, &NONCES, &changed), Err(WireError::MemberProof), "{place}");
        }
        assert_eq!(introduced(SECRET, &NONCES, b"short"), Err(WireError::Layout("member introduction")));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(body: Vec<u8>) {
            let _ = read_introduction(&body);
            let _ = introduced(SECRET, &NONCES, &body);
        }
    }
}
