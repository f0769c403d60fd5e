#![expect(clippy::unwrap_used, reason = "tests")]

use proptest::prelude::*;
use rcgen::{CertificateParams, DnType, KeyPair, SanType};

use super::*;

fn made(algorithm: &'static rcgen::SignatureAlgorithm) -> Vec<u8> {
    let mut parameters = CertificateParams::new(vec!["db.example.org".to_owned()]).unwrap();
    parameters.subject_alt_names.push(SanType::Rfc822Name("mira@example.org".try_into().unwrap()));
    parameters.subject_alt_names.push(SanType::URI("spiffe://example.org/mira".try_into().unwrap()));
    parameters.subject_alt_names.push(SanType::IpAddress("10.0.0.1".parse().unwrap()));
    parameters.distinguished_name = rcgen::DistinguishedName::new();
    parameters.distinguished_name.push(DnType::OrganizationName, "Example, Ltd.");
    parameters.distinguished_name.push(DnType::CommonName, "mïra");
    parameters.serial_number = Some(vec![1, 0xab].into());
    parameters.not_before = rcgen::date_time_ymd(2024, 2, 29);
    parameters.not_after = rcgen::date_time_ymd(2051, 1, 1);
    parameters.self_signed(&KeyPair::generate_for(algorithm).unwrap()).unwrap().der().to_vec()
}

#[test]
fn a_certificate_is_read() {
    let read = Certificate::parse(&made(&rcgen::PKCS_ECDSA_P256_SHA256)).unwrap();
    assert_eq!(read.serial, "01ab");
    assert_eq!(read.subject, "CN=mïra,O=Example\\, Ltd.");
    assert_eq!(read.issuer, read.subject);
    assert_eq!(read.not_before, 1_709_164_800);
    assert_eq!(read.not_after, 2_556_144_000);
    assert_eq!(read.identities, ["mïra", "db.example.org", "mira@example.org", "spiffe://example.org/mira"]);
}

#[test]
fn a_channel_is_bound_to_the_hash_of_the_signature() {
    let der = made(&rcgen::PKCS_ECDSA_P256_SHA256);
    assert_eq!(Certificate::parse(&der).unwrap().end_point, Some(Sha256::digest(&der).to_vec()));
    let der = made(&rcgen::PKCS_ECDSA_P384_SHA384);
    assert_eq!(Certificate::parse(&der).unwrap().end_point, Some(Sha384::digest(&der).to_vec()));
    // Which hash that would be is not defined.
    assert_eq!(Certificate::parse(&made(&rcgen::PKCS_ED25519)).unwrap().end_point, None);
    // Of old hashes nobody makes certificates any more.
    let [rsa_sha1, rsa_md5, rsa_sha512] = [5, 4, 13].map(|last| [oid::RSA, &[last]].concat());
    for old in [rsa_sha1.as_slice(), &rsa_md5, oid::ECDSA_SHA1] {
        assert_eq!(end_point(old, b"x"), Some(Sha256::digest(b"x").to_vec()));
    }
    assert_eq!(end_point(&rsa_sha512, b"x"), Some(Sha512::digest(b"x").to_vec()));
}

#[test]
fn days_are_the_calendars() {
    for ((year, month, day), expected) in [
        ((1970, 1, 1), 0),
        ((2000, 3, 1), 11_017),
        ((1969, 12, 31), -1),
        ((2100, 3, 1), 47_541),
        ((2024, 2, 29), 19_782),
    ] {
        assert_eq!(days(year, month, day), Some(expected), "{year}-{month}-{day}");
    }
    assert_eq!(days(2024, 13, 1), None);
}

#[test]
fn a_cut_certificate_is_none() {
    let der = made(&rcgen::PKCS_ECDSA_P256_SHA256);
    for len in 0..der.len() {
        assert_eq!(Certificate::parse(der.get(..len).unwrap()), Err(CertificateError), "{len}");
    }
    assert_eq!(Certificate::parse(&[&der[..], &[0]].concat()), Err(CertificateError));
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes: Vec<u8>, place: proptest::sample::Index, byte: u8) {
        let _ = Certificate::parse(&bytes);
        let mut der = made(&rcgen::PKCS_ECDSA_P256_SHA256);
        let place = place.index(der.len());
        *der.get_mut(place).unwrap() = byte;
        let _ = Certificate::parse(&der);
    }
}
