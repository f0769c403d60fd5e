//! The answer to a LoadBalanceRequest.

use bytes::{BufMut, BytesMut};

use crate::message::{LOAD_BALANCE_DECLINED, typed};

/// The longest host a client is sent to, in bytes: a name of the DNS has no more.
pub const LOAD_BALANCE_HOST_BYTES_MAX: usize = 253;

/// Whether a host can be told to a client at all.
fn is_host(host: &str) -> bool {
    (1..=LOAD_BALANCE_HOST_BYTES_MAX).contains(&host.len()) && host.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Writes the answer to a LoadBalanceRequest: go to that host and port, or else stay here. A client that is sent away
/// comes to the other server on a new connection, without asking again. The answer must leave in one write: clients
/// take what the first read gives them for the whole. An IPv6 address goes without brackets.
///
/// A host that is empty, too long or not of printable ASCII is no place to go: the client stays.
pub fn load_balance(out: &mut BytesMut, target: Option<(&str, u16)>) {
    match target.filter(|(host, _)| is_host(host)) {
        None => out.put_u8(LOAD_BALANCE_DECLINED),
        Some((host, port)) => typed(out, b'Y', |out| {
            out.put_u32(port.into());
            out.put_slice(host.as_bytes());
            out.put_u8(0);
        }),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(target: Option<(&str, u16)>) -> Vec<u8> {
        let mut out = BytesMut::new();
        load_balance(&mut out, target);
        out.to_vec()
    }

    #[test]
    fn the_port_comes_before_the_host() {
        assert_eq!(written(Some(("10.0.0.7", 5433))), b"Y\0\0\0\x11\0\0\x15\x3910.0.0.7\0");
        assert_eq!(written(Some(("::1", 65_535))), b"Y\0\0\0\x0c\0\0\xff\xff::1\0");
        assert_eq!(written(None), b"N");
    }

    #[test]
    fn what_is_no_host_is_not_told() {
        let long = "a".repeat(LOAD_BALANCE_HOST_BYTES_MAX + 1);
        for host in ["", "a b", "a\0b", "h\u{e9}", &long] {
            assert_eq!(written(Some((host, 5433))), b"N", "{host}");
        }
        assert_eq!(written(Some((&"a".repeat(LOAD_BALANCE_HOST_BYTES_MAX), 5433))).len(), 5 + 4 + 253 + 1);
    }

    proptest! {
        #[test]
        fn clients_read_what_is_written(host in "[!-~]{1,253}", port: u16) {
            let bytes = written(Some((&host, port)));
            let header = crate::frame(&bytes, usize::MAX);
            prop_assert_eq!(header, Ok(Some(crate::FrameHeader { kind: b'Y', len: bytes.len() })));
            let expected = [&u32::from(port).to_be_bytes()[..], host.as_bytes(), b"\0"].concat();
            prop_assert_eq!(bytes.get(5..), Some(&expected[..]));
        }
    }
}
