//! The header by which a balancer in front says who the client is: PROXY protocol, version 1 and 2.

use std::net::SocketAddr;

use proxy_header::{Error, ParseConfig, ProxyHeader};

use crate::error::WireError;

/// The longest header taken, in bytes: version 1 has at most 107; version 2 may bring what nobody here reads.
pub const PROXY_HEADER_BYTES_MAX: usize = 4096;

const VERSION_1: &[u8] = b"PROXY";
const VERSION_2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// Who a header says the client is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proxied {
    /// A client of the balancer, at this address.
    Client(SocketAddr),
    /// The balancer itself, which looks whether anybody is there, or speaks for nobody in particular.
    Balancer,
}

/// Whether a buffer begins like a header: four bytes tell, since no packet is as long as they would say.
pub(crate) fn begins(buffer: &[u8]) -> bool {
    [VERSION_1, VERSION_2].into_iter().any(|start| buffer.get(..4) == start.get(..4))
}

/// Reads the header at the start of a buffer, and says how many bytes it has; `None` when some are missing.
///
/// # Errors
/// When it is longer than [`PROXY_HEADER_BYTES_MAX`], for no stream, does not follow its layout, or is for a client whose
/// address is of another family: such a one must not be taken for the balancer, which may be let in where others are not.
pub fn proxy_header(buffer: &[u8]) -> Result<Option<(Proxied, usize)>, WireError> {
    let start = buffer.get(..PROXY_HEADER_BYTES_MAX).unwrap_or(buffer);
    let config = ParseConfig { include_tlvs: false, allow_v1: true, allow_v2: true };
    match ProxyHeader::parse(start, config) {
        Ok((header, len)) => {
            let proxied = match header.proxied_address() {
                None if names_nobody(start) => Proxied::Balancer,
                None => return Err(WireError::ProxyAddress),
                Some(address) if address.protocol == proxy_header::Protocol::Stream => Proxied::Client(address.source),
                Some(_) => return Err(WireError::Layout("PROXY header")),
            };
            Ok(Some((proxied, len)))
        }
        Err(Error::BufferTooShort) if start.len() < PROXY_HEADER_BYTES_MAX => Ok(None),
        Err(_) => Err(WireError::Layout("PROXY header")),
    }
}

/// Whether a header is for no client: UNKNOWN of version 1, of version 2 the command LOCAL, which follows the signature, or
/// no address family, which follows that. The protocol wants such a connection taken with the address it has.
fn names_nobody(header: &[u8]) -> bool {
    if header.starts_with(b"PROXY UNKNOWN") {
        return true;
    }
    let family = header.get(VERSION_2.len() + 1).map(|byte| byte >> 4);
    header.starts_with(VERSION_2) && (header.get(VERSION_2.len()) == Some(&0x20) || family == Some(0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn client(address: &str) -> Proxied {
        address.parse().map_or(Proxied::Balancer, Proxied::Client)
    }

    fn version_2(command: u8, family: u8, body: &[u8]) -> Vec<u8> {
        let length = u16::try_from(body.len()).unwrap_or_default().to_be_bytes();
        [VERSION_2, &[command, family], &length, body].concat()
    }

    #[test]
    fn both_versions_name_the_client() {
        let first = b"PROXY TCP4 10.8.3.7 10.0.0.1 50123 5433\r\n\0\0\0\x08";
        assert_eq!(proxy_header(first), Ok(Some((client("10.8.3.7:50123"), first.len() - 4))));
        let sixth = b"PROXY TCP6 2001:db8::7 2001:db8::1 50123 5433\r\n";
        assert_eq!(proxy_header(sixth), Ok(Some((client("[2001:db8::7]:50123"), sixth.len()))));
        let body = [10, 8, 3, 7, 10, 0, 0, 1, 0xC3, 0xCB, 0x15, 0x39];
        let bytes = version_2(0x21, 0x11, &body);
        assert_eq!(proxy_header(&bytes), Ok(Some((client("10.8.3.7:50123"), bytes.len()))));
        let local = version_2(0x20, 0, &[]);
        assert_eq!(proxy_header(&local), Ok(Some((Proxied::Balancer, local.len()))));
    }

    #[test]
    fn who_names_nobody_is_the_balancer() {
        let unspecified = version_2(0x21, 0, &[]);
        for header in [&b"PROXY UNKNOWN\r\n"[..], b"PROXY UNKNOWN 10.1.1.1 1.1.1.1 1 2\r\n", &unspecified] {
            assert_eq!(proxy_header(header), Ok(Some((Proxied::Balancer, header.len()))), "{header:?}");
        }
    }

    #[test]
    fn a_client_of_another_family_is_not_the_balancer() {
        let unix = version_2(0x21, 0x31, &[0; 216]);
        assert_eq!(proxy_header(&unix), Err(WireError::ProxyAddress));
    }

    #[test]
    fn what_is_not_whole_is_waited_for_and_what_cannot_become_one_is_refused() {
        let bytes = version_2(0x21, 0x11, &[10, 8, 3, 7, 10, 0, 0, 1, 0xC3, 0xCB, 0x15, 0x39]);
        for length in 0..bytes.len() {
            assert_eq!(proxy_header(bytes.get(..length).unwrap_or_default()), Ok(None), "{length}");
        }
        let broken = Err(WireError::Layout("PROXY header"));
        assert_eq!(proxy_header(b"PROXY TCP4 10.8.3.7 here 1 2\r\n"), broken);
        assert_eq!(proxy_header(&[b"PROXY TCP4 ".as_slice(), &[b'1'; 200]].concat()), broken);
        // Datagrams are not what comes here.
        assert_eq!(proxy_header(&version_2(0x21, 0x12, &[0; 12])), broken);
        // Longer than anybody has reason to.
        let long = version_2(0x21, 0x11, &vec![0; 60_000]);
        assert_eq!(proxy_header(&long), broken);
    }

    #[test]
    fn four_bytes_tell_a_header_from_a_packet() {
        assert!(begins(b"PROXY TCP4"));
        assert!(begins(b"\r\n\r\n\0\r\nQUIT\n"));
        assert!(!begins(b"\0\0\0\x08\x04\xD2\x16\x2F"));
        assert!(!begins(b"PRO"));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            let _ = proxy_header(&bytes);
            let _ = proxy_header(&[b"PROXY TCP4 ".as_slice(), &bytes].concat());
            let _ = proxy_header(&[VERSION_2, &bytes].concat());
        }
    }
}
