//! Texts of clients, which must be UTF-8 without NUL.

use thiserror::Error;

/// Bytes that are no text, as PostgreSQL tells of them: the character they begin, as far as it is there.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("invalid byte sequence for encoding \"UTF8\": {0}")]
pub struct InvalidUtf8(String);

/// The text that bytes are.
///
/// # Errors
/// When they are not UTF-8, or have a NUL.
pub fn utf8(bytes: &[u8]) -> Result<&str, InvalidUtf8> {
    let wrong = match std::str::from_utf8(bytes) {
        Ok(text) => match bytes.iter().position(|byte| *byte == 0) {
            None => return Ok(text),
            Some(nul) => nul,
        },
        Err(error) => {
            let valid = error.valid_up_to();
            bytes.iter().take(valid).position(|byte| *byte == 0).unwrap_or(valid)
        }
    };
    let rest = bytes.get(wrong..).unwrap_or_default();
    let length = match rest.first() {
        Some(0xc0..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf7) => 4,
        _ => 1,
    };
    let shown: Vec<String> = rest.iter().take(length).map(|byte| format!("0x{byte:02x}")).collect();
    Err(InvalidUtf8(shown.join(" ")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_wrong_bytes_are_shown() {
        assert_eq!(utf8("aé".as_bytes()), Ok("aé"));
        for (bytes, shown) in [
            (&b"a\xff"[..], "0xff"),
            (b"\xc3(", "0xc3 0x28"),
            (b"\xc3", "0xc3"),
            (b"a\0b", "0x00"),
            (b"a\0\xff", "0x00"),
            (b"\xe2\x28\xa1z", "0xe2 0x28 0xa1"),
            (b"\xed\xa0\x80", "0xed 0xa0 0x80"),
        ] {
            assert_eq!(utf8(bytes), Err(InvalidUtf8(shown.to_owned())), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_text_or_not(bytes: Vec<u8>) {
            let whole = std::str::from_utf8(&bytes).is_ok() && !bytes.contains(&0);
            prop_assert_eq!(utf8(&bytes).is_ok(), whole);
        }
    }
}
