//! What a login needs of an X.509 certificate: whom it names, until when it holds, and what a channel is bound to.
//!
//! Nothing is verified here. A client's certificate comes here after TLS has verified it against the authorities set.

use std::fmt;

use sha2::{Digest, Sha256, Sha384, Sha512};
use thiserror::Error;

use crate::verifier::hex;

const BOOLEAN: u8 = 0x01;
const OID: u8 = 0x06;
const UTF8: u8 = 0x0c;
const PRINTABLE: u8 = 0x13;
const TELETEX: u8 = 0x14;
const IA5: u8 = 0x16;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const BMP: u8 = 0x1e;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const INTEGER: u8 = 0x02;
const OCTETS: u8 = 0x04;
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;
/// Among alternative names: an address of mail, a name of DNS, a URI.
const NAMES: [u8; 3] = [0x81, 0x82, 0x86];

/// Object identifiers, encoded.
mod oid {
    pub(super) const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
    pub(super) const ATTRIBUTES: [(&[u8], &str); 6] = [
        (COMMON_NAME, "CN"),
        (&[0x55, 0x04, 0x06], "C"),
        (&[0x55, 0x04, 0x07], "L"),
        (&[0x55, 0x04, 0x08], "ST"),
        (&[0x55, 0x04, 0x0a], "O"),
        (&[0x55, 0x04, 0x0b], "OU"),
    ];
    pub(super) const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 0x11];
    /// RSA with PKCS #1 and a hash; the last byte says which.
    pub(super) const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
    /// ECDSA with SHA-2; the last byte says which.
    pub(super) const ECDSA_SHA2: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03];
    pub(super) const ECDSA_SHA1: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x01];
}

/// Bytes that are no certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("malformed certificate")]
pub struct CertificateError;

/// A certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// The serial number in hex.
    pub serial: String,
    /// The subject, the most specific part first: `CN=mira,O=Example`.
    pub subject: String,
    /// The authority that signed it, written like the subject.
    pub issuer: String,
    /// When it begins to hold, in seconds since 1970-01-01 UTC.
    pub not_before: i64,
    /// When it ceases to hold, in seconds since 1970-01-01 UTC.
    pub not_after: i64,
    /// Whom it names: the subject's common names, then the alternative names (mail, DNS, URI). None of them is empty or
    /// has control characters.
    pub identities: Vec<String>,
    /// What `tls-server-end-point` binds to (RFC 5929 §4.1); `None` when the signature's algorithm is of no single hash.
    pub end_point: Option<Vec<u8>>,
}

impl Certificate {
    /// Reads a certificate in DER.
    ///
    /// # Errors
    /// When the bytes are none.
    pub fn parse(der: &[u8]) -> Result<Self, CertificateError> {
        Self::read(der).ok_or(CertificateError)
    }

    fn read(der: &[u8]) -> Option<Self> {
        let mut certificate = Reader(only(der, SEQUENCE)?);
        let mut body = Reader(certificate.take(SEQUENCE)?);
        let algorithm = Reader(certificate.take(SEQUENCE)?).take(OID)?;
        let _version = body.take_if(VERSION)?;
        let serial = body.take(INTEGER)?;
        let _algorithm = body.take(SEQUENCE)?;
        let issuer = name(body.take(SEQUENCE)?)?;
        let mut validity = Reader(body.take(SEQUENCE)?);
        let (not_before, not_after) = (time(&mut validity)?, time(&mut validity)?);
        let subject = name(body.take(SEQUENCE)?)?;
        let mut identities: Vec<String> =
            subject.iter().filter(|(key, _)| key == "CN").map(|(_, value)| value.clone()).collect();
        let _key = body.take(SEQUENCE)?;
        while let Some((tag, value)) = body.next_value()? {
            if tag == EXTENSIONS {
                identities.extend(alternative_names(only(value, SEQUENCE)?)?);
            }
        }
        identities.retain(|identity| !identity.is_empty() && !identity.chars().any(char::is_control));
        Some(Self {
            serial: hex(serial),
            subject: Written(&subject).to_string(),
            issuer: Written(&issuer).to_string(),
            not_before,
            not_after,
            identities,
            end_point: end_point(algorithm, der),
        })
    }
}

/// The hash of a certificate by its signature's hash, or by SHA-256 where that is MD5 or SHA-1.
fn end_point(algorithm: &[u8], der: &[u8]) -> Option<Vec<u8>> {
    let (last, family) = algorithm.split_last()?;
    let hash = match (family, *last) {
        (oid::RSA, 4 | 5) => 256,
        (oid::RSA, 11) | (oid::ECDSA_SHA2, 2) => 256,
        (oid::RSA, 12) | (oid::ECDSA_SHA2, 3) => 384,
        (oid::RSA, 13) | (oid::ECDSA_SHA2, 4) => 512,
        _ if algorithm == oid::ECDSA_SHA1 => 256,
        _ => return None,
    };
    Some(match hash {
        256 => Sha256::digest(der).to_vec(),
        384 => Sha384::digest(der).to_vec(),
        _ => Sha512::digest(der).to_vec(),
    })
}

/// The attributes of a name, the most general first as they are encoded.
fn name(bytes: &[u8]) -> Option<Vec<(String, String)>> {
    let (mut parts, mut found) = (Reader(bytes), Vec::new());
    while let Some((tag, part)) = parts.next_value()? {
        if tag != SET {
            return None;
        }
        let mut attributes = Reader(part);
        while let Some((tag, attribute)) = attributes.next_value()? {
            let mut attribute = Reader((tag == SEQUENCE).then_some(attribute)?);
            let kind = attribute.take(OID)?;
            let (tag, value) = attribute.next_value()??;
            let known = oid::ATTRIBUTES.iter().find(|(oid, _)| *oid == kind);
            let key = known.map_or_else(|| format!("#{}", hex(kind)), |(_, key)| (*key).to_owned());
            found.push((key, text(tag, value)?));
        }
    }
    Some(found)
}

fn text(tag: u8, value: &[u8]) -> Option<String> {
    match tag {
        UTF8 | PRINTABLE | IA5 => std::str::from_utf8(value).ok().map(str::to_owned),
        // Mostly written as Latin-1, whatever the standard says.
        TELETEX => Some(value.iter().copied().map(char::from).collect()),
        BMP => {
            let (pairs, []) = value.as_chunks() else { return None };
            String::from_utf16(&pairs.iter().map(|pair| u16::from_be_bytes(*pair)).collect::<Vec<_>>()).ok()
        }
        _ => Some(format!("#{}", hex(value))),
    }
}

fn alternative_names(bytes: &[u8]) -> Option<Vec<String>> {
    let (mut extensions, mut found) = (Reader(bytes), Vec::new());
    while let Some((tag, extension)) = extensions.next_value()? {
        let mut extension = Reader((tag == SEQUENCE).then_some(extension)?);
        let kind = extension.take(OID)?;
        let _critical = extension.take_if(BOOLEAN)?;
        let value = extension.take(OCTETS)?;
        if kind != oid::ALTERNATIVE_NAMES {
            continue;
        }
        let mut names = Reader(only(value, SEQUENCE)?);
        while let Some((tag, name)) = names.next_value()? {
            if NAMES.contains(&tag) {
                found.push(text(IA5, name)?);
            }
        }
    }
    Some(found)
}

/// A point in time in seconds since 1970-01-01 UTC: `YYMMDDhhmmssZ` of the years 1950 to 2049, or `YYYYMMDDhhmmssZ`.
fn time(reader: &mut Reader<'_>) -> Option<i64> {
    let (tag, value) = reader.next_value()??;
    let text = std::str::from_utf8(value).ok()?.strip_suffix('Z')?;
    let (year, rest) = match (tag, text.len()) {
        (UTC_TIME, 12) => {
            let (year, rest) = text.split_at_checked(2)?;
            let year = number(year)?;
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        (GENERALIZED_TIME, 14) => {
            let (year, rest) = text.split_at_checked(4)?;
            (number(year)?, rest)
        }
        _ => return None,
    };
    let part = |index: usize| number(rest.get(index * 2..index * 2 + 2)?);
    let (month, day) = (part(0)?, part(1)?);
    let seconds = (part(2)? * 60 + part(3)?) * 60 + part(4)?;
    Some(days(year, month, day)? * 86_400 + seconds)
}

fn number(digits: &str) -> Option<i64> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// Days since 1970-01-01 in the Gregorian calendar: years are counted from March, so that the leap day is the last.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    Some(
        year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + (month * 153 + 2) / 5 + day
            - 719_469,
    )
}

/// A name as people write it, the most specific part first.
struct Written<'a>(&'a [(String, String)]);

impl fmt::Display for Written<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (key, value)) in self.0.iter().rev().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{key}=")?;
            for character in value.chars() {
                match character {
                    ',' | '+' | '"' | '\\' | '<' | '>' | ';' | '=' => write!(f, "\\{character}")?,
                    control if control.is_control() => write!(f, "\\{:02x}", u32::from(control))?,
                    other => write!(f, "{other}")?,
                }
            }
        }
        Ok(())
    }
}

/// The content of a value that is all there is.
fn only(bytes: &[u8], tag: u8) -> Option<&[u8]> {
    let mut reader = Reader(bytes);
    let value = reader.take(tag)?;
    reader.0.is_empty().then_some(value)
}

/// DER, value by value.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// The next value with its tag; `Some(None)` at the end, `None` when the bytes are no DER.
    fn next_value(&mut self) -> Option<Option<(u8, &'a [u8])>> {
        let Some((tag, rest)) = self.0.split_first() else { return Some(None) };
        let (first, rest) = rest.split_first()?;
        let (len, rest) = match first {
            0..=0x7f => (usize::from(*first), rest),
            // Longer lengths than four bytes have no place in a handshake.
            0x81..=0x84 => {
                let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                (digits.iter().fold(0, |len, digit| len << 8 | usize::from(*digit)), rest)
            }
            _ => return None,
        };
        let (value, rest) = rest.split_at_checked(len)?;
        self.0 = rest;
        Some(Some((*tag, value)))
    }

    /// The content of the next value, which has this tag.
    fn take(&mut self, tag: u8) -> Option<&'a [u8]> {
        let (found, value) = self.next_value()??;
        (found == tag).then_some(value)
    }

    /// The content of the next value if it has this tag: `Some(None)` if not.
    fn take_if(&mut self, tag: u8) -> Option<Option<&'a [u8]>> {
        if self.0.first() == Some(&tag) { self.take(tag).map(Some) } else { Some(None) }
    }
}

#[cfg(test)]
mod tests;
