//! The client's side of the protocol: what a server is told, and what it answers.

use bytes::{BufMut, BytesMut};

use crate::error::WireError;
use crate::message::typed;
use crate::startup::{CancelKey, Version, text};
use crate::verifier::Md5Verifier;

const SSL_REQUEST: u32 = 80_877_103;

/// Asks whether TLS may begin: the answer is one byte.
pub fn ssl_request(out: &mut BytesMut) {
    out.put_u32(8);
    out.put_u32(SSL_REQUEST);
}

/// Begins a session. A zero byte cannot be part of a text: it would end it.
pub fn startup<'a>(out: &mut BytesMut, version: Version, parameters: impl IntoIterator<Item = (&'a str, &'a str)>) {
    let start = out.len();
    out.put_u32(0);
    out.put_u32(version.code());
    for (name, value) in parameters {
        put_text(out, name);
        put_text(out, value);
    }
    out.put_u8(0);
    let length = u32::try_from(out.len().saturating_sub(start)).unwrap_or(u32::MAX);
    if let Some(word) = out.get_mut(start..start.saturating_add(4)) {
        word.copy_from_slice(&length.to_be_bytes());
    }
}

/// A password, or its hash by MD5.
pub fn password(out: &mut BytesMut, answer: &str) {
    typed(out, b'p', |out| put_text(out, answer));
}

/// The choice of a mechanism, with its first message.
pub fn sasl_initial_response(out: &mut BytesMut, mechanism: &str, data: &[u8]) {
    typed(out, b'p', |out| {
        put_text(out, mechanism);
        out.put_u32(u32::try_from(data.len()).unwrap_or(u32::MAX));
        out.put_slice(data);
    });
}

/// A step of the mechanism.
pub fn sasl_response(out: &mut BytesMut, data: &[u8]) {
    typed(out, b'p', |out| out.put_slice(data));
}

/// Runs a string of statements.
pub fn query(out: &mut BytesMut, statements: &str) {
    typed(out, b'Q', |out| put_text(out, statements));
}

/// Prepares a statement with these types of parameters.
pub fn parse(out: &mut BytesMut, name: &str, statement: &str, types: &[u32]) {
    typed(out, b'P', |out| {
        put_text(out, name);
        put_text(out, statement);
        out.put_u16(u16::try_from(types.len()).unwrap_or(u16::MAX));
        for type_id in types {
            out.put_u32(*type_id);
        }
    });
}

/// A message of this type, with this body.
pub fn raw(out: &mut BytesMut, kind: u8, body: &[u8]) {
    typed(out, kind, |out| out.put_slice(body));
}

/// Sync.
pub fn sync(out: &mut BytesMut) {
    typed(out, b'S', |_| {});
}

/// Goodbye.
pub fn terminate(out: &mut BytesMut) {
    typed(out, b'X', |_| {});
}

fn put_text(out: &mut BytesMut, text: &str) {
    out.put_slice(text.split('\0').next().unwrap_or_default().as_bytes());
    out.put_u8(0);
}

/// What a server wants to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Authentication<'a> {
    /// Nothing more.
    Ok,
    /// The password itself.
    Cleartext,
    /// Its hash by MD5, with this salt.
    Md5([u8; 4]),
    /// One of these mechanisms.
    Sasl(Vec<&'a str>),
    /// The next step of the mechanism.
    SaslContinue(&'a [u8]),
    /// The last one.
    SaslFinal(&'a [u8]),
    /// Something that is not known here.
    Other(u32),
}

/// Reads the body of an authentication request.
///
/// # Errors
/// When it does not follow its layout.
pub fn authentication(body: &[u8]) -> Result<Authentication<'_>, WireError> {
    let broken = WireError::Layout("AuthenticationRequest");
    let (code, rest) = body.split_first_chunk().ok_or_else(|| broken.clone())?;
    Ok(match u32::from_be_bytes(*code) {
        0 => Authentication::Ok,
        3 => Authentication::Cleartext,
        5 => Authentication::Md5(rest.try_into().map_err(|_| broken)?),
        10 => Authentication::Sasl(texts(rest).ok_or(broken)?),
        11 => Authentication::SaslContinue(rest),
        12 => Authentication::SaslFinal(rest),
        other => Authentication::Other(other),
    })
}

/// Texts up to an empty one.
fn texts(mut bytes: &[u8]) -> Option<Vec<&str>> {
    let mut texts = Vec::new();
    loop {
        let (next, rest) = text(bytes).ok()?;
        if next.is_empty() {
            return Some(texts);
        }
        texts.push(next);
        bytes = rest;
    }
}

/// The fields of an error or a notice, as far as they can be read.
pub fn fields(body: &[u8]) -> Vec<(u8, String)> {
    let mut fields = Vec::new();
    let mut rest = body;
    while let Some((&kind, after)) = rest.split_first().filter(|(kind, _)| **kind != 0) {
        let end = after.iter().position(|byte| *byte == 0).unwrap_or(after.len());
        let value = String::from_utf8_lossy(after.get(..end).unwrap_or_default()).into_owned();
        fields.push((kind, value));
        rest = after.get(end.saturating_add(1)..).unwrap_or_default();
    }
    fields
}

/// Name and value of a ParameterStatus.
pub fn parameter(body: &[u8]) -> Option<(&str, &str)> {
    let (name, rest) = text(body).ok()?;
    Some((name, text(rest).ok()?.0))
}

/// The process and the key of a BackendKeyData.
pub fn key_data(body: &[u8]) -> Option<(i32, CancelKey)> {
    let (process_id, key) = body.split_first_chunk()?;
    Some((i32::from_be_bytes(*process_id), key.to_vec().into()))
}

/// The values of a DataRow, as texts; nothing when it cannot be read.
pub fn row(body: &[u8]) -> Option<Vec<Option<String>>> {
    let (count, mut rest) = body.split_first_chunk()?;
    let mut values = Vec::new();
    for _ in 0..u16::from_be_bytes(*count) {
        let (length, after) = rest.split_first_chunk()?;
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
            values.push(None);
            rest = after;
            continue;
        };
        let (value, after) = after.split_at_checked(length)?;
        values.push(Some(String::from_utf8_lossy(value).into_owned()));
        rest = after;
    }
    Some(values)
}

/// What a server is shown that asks for MD5.
pub fn md5_answer(user: &str, password: &str, salt: [u8; 4]) -> String {
    Md5Verifier::make(password, user).answer(salt)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may fail")]

    use proptest::prelude::*;

    use super::*;
    use crate::{Untyped, untyped};

    #[test]
    fn what_is_written_is_read_by_a_server() {
        let mut out = BytesMut::new();
        startup(&mut out, Version::V3_0, [("user", "mira"), ("database", "shop")]);
        let (packet, len) = untyped(&out, 1_000).unwrap().unwrap();
        assert_eq!(len, out.len());
        let Untyped::Startup(read) = packet else { unreachable!() };
        assert_eq!((read.parameter("user"), read.parameter("database")), (Some("mira"), Some("shop")));
        out.clear();
        ssl_request(&mut out);
        assert_eq!(untyped(&out, 1_000).unwrap().unwrap(), (Untyped::SslRequest, 8));
        out.clear();
        query(&mut out, "SELECT 1");
        assert_eq!(&out[..], b"Q\0\0\0\x0dSELECT 1\0");
        out.clear();
        parse(&mut out, "s", "SELECT $1", &[23]);
        assert_eq!(&out[..], b"P\0\0\0\x16s\0SELECT $1\0\0\x01\0\0\0\x17");
    }

    #[test]
    fn what_a_server_says_is_read() {
        assert_eq!(authentication(b"\0\0\0\0"), Ok(Authentication::Ok));
        assert_eq!(authentication(b"\0\0\0\x05abcd"), Ok(Authentication::Md5(*b"abcd")));
        assert_eq!(authentication(b"\0\0\0\x0aX\0Y\0\0"), Ok(Authentication::Sasl(vec!["X", "Y"])));
        assert!(authentication(b"\0\0\0\x05ab").is_err());
        assert_eq!(fields(b"C3D000\0Mno\0\0"), [(b'C', "3D000".to_owned()), (b'M', "no".to_owned())]);
        assert_eq!(parameter(b"TimeZone\0UTC\0"), Some(("TimeZone", "UTC")));
        assert_eq!(key_data(b"\0\0\x01\x02abcd").unwrap().0, 258);
        assert_eq!(row(b"\0\x02\0\0\0\x01x\xff\xff\xff\xff"), Some(vec![Some("x".to_owned()), None]));
        assert_eq!(md5_answer("alice", "sekret", [1, 2, 3, 4]), "md574ae1b152bc6907665e77f442aed3220");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(body: Vec<u8>) {
            let _ = authentication(&body);
            let _ = fields(&body);
            let _ = parameter(&body);
            let _ = key_data(&body);
            let _ = row(&body);
        }
    }
}
