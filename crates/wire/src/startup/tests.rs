#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use proptest::prelude::*;

use super::*;

fn packet(code: u32, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(HEADER_BYTES + body.len()).unwrap();
    [&length.to_be_bytes()[..], &code.to_be_bytes()[..], body].concat()
}

fn read(bytes: &[u8]) -> Result<Option<(Untyped, usize)>, WireError> {
    untyped(bytes, STARTUP_BYTES_MAX)
}

fn startup(body: &[u8]) -> Result<Vec<(String, String)>, WireError> {
    match read(&packet(Version::V3_0.code(), body))? {
        Some((Untyped::Startup(startup), _)) => Ok(startup.parameters),
        other => unreachable!("{other:?}"),
    }
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[test]
fn requests_are_eight_bytes() {
    for (code, expected) in
        [(SSL, Untyped::SslRequest), (GSS_ENC, Untyped::GssEncRequest), (LOAD_BALANCE, Untyped::LoadBalanceRequest)]
    {
        let mut bytes = packet(code, b"");
        for end in 0..bytes.len() {
            assert_eq!(read(&bytes[..end]), Ok(None));
        }
        bytes.extend_from_slice(b"what follows is left");
        assert_eq!(read(&bytes), Ok(Some((expected, 8))));
        assert!(matches!(read(&packet(code, b"x")[..8]), Err(WireError::FixedLength { length: 9, .. })));
    }
    assert_eq!(packet(LOAD_BALANCE, b""), [0, 0, 0, 8, 0x04, 0xd3, 0, 0]);
}

#[test]
fn cancel_requests_have_keys_of_4_to_256_bytes() {
    let bytes = packet(CANCEL, &[0, 0, 1, 0, 9, 8, 7, 6]);
    let expected = Untyped::CancelRequest { process_id: 256, secret: vec![9, 8, 7, 6].into() };
    assert_eq!(read(&bytes), Ok(Some((expected, 16))));
    assert_eq!(format!("{:?}", CancelKey(vec![9, 8, 7, 6])), "CancelKey of 4 bytes");
    assert_eq!(read(&bytes[..15]), Ok(None));
    assert!(read(&packet(CANCEL, &[7; 4 + 32])).unwrap().is_some());
    assert!(read(&packet(CANCEL, &[7; 4 + 256])).unwrap().is_some());
    assert!(matches!(read(&packet(CANCEL, &[7; 4 + 257])), Err(WireError::FixedLength { .. })));
    assert!(matches!(read(&packet(CANCEL, &[7; 7])), Err(WireError::FixedLength { .. })));
}

#[test]
fn parameters_are_kept_in_order() {
    let body = b"user\0mira\0database\0\0options\0-c x=y\0\0";
    assert_eq!(startup(body), Ok(pairs(&[("user", "mira"), ("database", ""), ("options", "-c x=y")])));
    assert_eq!(startup(b"\0"), Ok(Vec::new()));
}

#[test]
fn broken_parameters_are_refused() {
    assert_eq!(startup(b""), Err(WireError::Terminator));
    assert_eq!(startup(b"user\0mira\0"), Err(WireError::Terminator));
    assert_eq!(startup(b"user\0mira"), Err(WireError::Terminator));
    assert_eq!(startup(b"user\0mira\0\0x"), Err(WireError::Terminator));
    for odd in [&b"workload\0"[..], b"workload\0\0", b"user\0mira\0workload\0\0"] {
        assert_eq!(startup(odd), Err(WireError::ValueMissing("workload".to_owned())));
    }
    assert_eq!(startup(b"user\0a\0user\0b\0\0"), Err(WireError::Duplicate("user".to_owned())));
    assert_eq!(startup(b"user\0\xff\xfe\0\0"), Err(WireError::Utf8));
}

#[test]
fn lengths_are_refused_before_the_bytes_are_there() {
    let too_long = |length: u32| Err(WireError::PacketLength { length, bytes_max: STARTUP_BYTES_MAX });
    assert_eq!(read(&[0, 0, 0, 7]), too_long(7));
    assert_eq!(read(&[0, 0, 0, 0]), too_long(0));
    assert_eq!(read(&10_001_u32.to_be_bytes()), too_long(10_001));
    assert_eq!(read(&u32::MAX.to_be_bytes()), too_long(u32::MAX));
    assert_eq!(read(&10_000_u32.to_be_bytes()), Ok(None));
}

#[test]
fn other_protocols_are_named() {
    assert_eq!(read(b"GET / HTTP/1.1\r\n"), Err(WireError::Http));
    assert_eq!(read(&[0x16, 0x03]), Err(WireError::DirectTls));
    let version2 = read(&packet(2 << 16, b"")).unwrap_err();
    assert_eq!(version2.to_string(), "unsupported frontend protocol 2.0: server supports 3.0 to 3.2");
    assert_eq!(version2.sqlstate(), crate::SqlState::FeatureNotSupported);
    let unknown = read(&packet((1234 << 16) | 5681, b"")).unwrap_err();
    assert_eq!(unknown, WireError::Version(Version { major: 1234, minor: 5681 }));
}

#[test]
fn versions_go_down_never_up() {
    let mut minors = Vec::new();
    for minor in [0, 1, 2, 3, 16, 9999] {
        let mut startup = Startup { version: Version { major: 3, minor }, parameters: Vec::new() };
        let negotiated = startup.negotiate();
        assert!(negotiated.version <= startup.version);
        minors.push((minor, negotiated.version.minor, negotiated.tell));
    }
    assert_eq!(minors, [(0, 0, false), (1, 0, true), (2, 2, false), (3, 2, true), (16, 2, true), (9999, 2, true)]);
}

#[test]
fn options_of_the_protocol_are_no_parameters() {
    let parameters = pairs(&[("user", "mira"), ("_pq_.test", "1"), ("workload", "w")]);
    let mut startup = Startup { version: Version::V3_0, parameters };
    let negotiated = startup.negotiate();
    assert!(negotiated.tell);
    assert_eq!(negotiated.options_unknown, ["_pq_.test"]);
    assert_eq!(startup.parameters, pairs(&[("user", "mira"), ("workload", "w")]));
    assert_eq!(startup.parameter("workload"), Some("w"));
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes: Vec<u8>, bytes_max in 0..20_000_usize) {
        if let Ok(Some((_, len))) = untyped(&bytes, bytes_max) {
            prop_assert!(len <= bytes.len() && len <= bytes_max);
        }
    }

    #[test]
    fn no_body_panics(code in prop_oneof![Just(CANCEL), Just(Version::V3_0.code()), Just(Version::V3_2.code())], body: Vec<u8>) {
        let bytes = packet(code, &body);
        match read(&bytes) {
            Ok(Some((_, len))) => prop_assert_eq!(len, bytes.len()),
            Ok(None) => prop_assert!(false, "all bytes are there"),
            Err(_) => {}
        }
    }

    #[test]
    fn what_is_written_is_read(list in prop::collection::btree_map("[^\0]{1,20}", "[^\0]{0,20}", 0..8)) {
        let mut body = Vec::new();
        for (name, value) in &list {
            body.extend_from_slice(name.as_bytes());
            body.push(0);
            body.extend_from_slice(value.as_bytes());
            body.push(0);
        }
        body.push(0);
        let list: Vec<_> = list.into_iter().collect();
        prop_assert_eq!(startup(&body), Ok(list));
    }
}
