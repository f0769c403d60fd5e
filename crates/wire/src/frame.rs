//! Peeking at typed messages: a type byte, a length, a body.

use crate::error::WireError;

/// The first five bytes of a typed message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader {
    /// The type byte.
    pub kind: u8,
    /// The bytes of the whole message, type and length included: at least [`FrameHeader::BYTES`].
    pub len: usize,
}

impl FrameHeader {
    /// Type and length.
    pub const BYTES: usize = 5;

    /// The body, when all of it is in the buffer that the header was read from.
    pub fn body(self, buffer: &[u8]) -> Option<&[u8]> {
        buffer.get(Self::BYTES..self.len)
    }
}

/// Reads the header at the start of a buffer; `None` when fewer than five bytes are there.
///
/// # Errors
/// When the length is below the least possible, or the message is longer than `bytes_max`, type and length included.
pub fn frame(buffer: &[u8], bytes_max: usize) -> Result<Option<FrameHeader>, WireError> {
    let Some((&[kind, a, b, c, d], _)) = buffer.split_first_chunk() else { return Ok(None) };
    let length = u32::from_be_bytes([a, b, c, d]);
    let refused = WireError::MessageLength { kind, length, bytes_max };
    let len = match usize::try_from(length) {
        Ok(length) if length >= 4 => length.saturating_add(1),
        _ => return Err(refused),
    };
    if len > bytes_max {
        return Err(refused);
    }
    Ok(Some(FrameHeader { kind, len }))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_header_needs_five_bytes_and_a_sensible_length() {
        assert_eq!(frame(b"Q\0\0\0", 100), Ok(None));
        let header = frame(b"Q\0\0\0\x06x\0more", 100).unwrap().unwrap();
        assert_eq!(header, FrameHeader { kind: b'Q', len: 7 });
        assert_eq!(header.body(b"Q\0\0\0\x06x\0more"), Some(&b"x\0"[..]));
        assert_eq!(header.body(b"Q\0\0\0\x06x"), None);
        let short = WireError::MessageLength { kind: b'Q', length: 3, bytes_max: 100 };
        assert_eq!(frame(b"Q\0\0\0\x03", 100), Err(short));
        assert_eq!(frame(b"Q\0\0\0\x63", 100), Ok(Some(FrameHeader { kind: b'Q', len: 100 })));
        let long = WireError::MessageLength { kind: b'Q', length: 100, bytes_max: 100 };
        assert_eq!(frame(b"Q\0\0\0\x64", 100), Err(long));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>, bytes_max: usize) {
            if let Ok(Some(header)) = frame(&bytes, bytes_max) {
                prop_assert!(header.len >= FrameHeader::BYTES && header.len <= bytes_max);
                let _ = header.body(&bytes);
            }
        }
    }
}
