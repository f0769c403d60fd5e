//! The encodings that clients may have their texts in. Everything here is UTF-8; what comes and goes is turned at the
//! edge. SQL_ASCII is what PostgreSQL makes of it: bytes as they are.

use std::borrow::Cow;

use bytes::{BufMut, BytesMut};
use switchyard_engine::{ClientError, SqlState};

use crate::encode::client_text;

/// An encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Encoding {
    /// UTF-8, also by the name of SQL_ASCII.
    #[default]
    Utf8,
    /// ISO 8859-1.
    Latin1,
    /// Windows' code page 1252.
    Win1252,
}

/// What Windows has in the place of the control characters from 0x80 on; U+FFFF for nothing.
const WIN1252: [char; 32] = [
    '€', '\u{ffff}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{ffff}', 'Ž', '\u{ffff}', '\u{ffff}',
    '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{ffff}', 'ž', 'Ÿ',
];

impl Encoding {
    /// The encoding of a value of the setting `client_encoding`.
    pub(crate) fn named(name: &str) -> Self {
        match name {
            "LATIN1" => Self::Latin1,
            "WIN1252" => Self::Win1252,
            _ => Self::Utf8,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "UTF8",
            Self::Latin1 => "LATIN1",
            Self::Win1252 => "WIN1252",
        }
    }

    /// Bytes of a client as text.
    ///
    /// # Errors
    /// When they are no text of this encoding, or have a NUL.
    pub(crate) fn read(self, bytes: &[u8]) -> Result<Cow<'_, str>, ClientError> {
        if self == Self::Utf8 || bytes.is_ascii() {
            return client_text(bytes).map(Cow::Borrowed);
        }
        bytes.iter().map(|byte| self.character(*byte)).collect::<Result<String, _>>().map(Cow::Owned)
    }

    fn character(self, byte: u8) -> Result<char, ClientError> {
        let invalid = |message| ClientError::new(SqlState::CharacterNotInRepertoire, message);
        let known = match (self, byte) {
            (_, 0) => None,
            (Self::Win1252, 0x80..=0x9f) => {
                let character = WIN1252.get(usize::from(byte) - 0x80).copied().filter(|own| *own != '\u{ffff}');
                return character.ok_or_else(|| {
                    let message = "character with byte sequence";
                    let (from, to) = (self.name(), "UTF8");
                    ClientError::new(
                        SqlState::UntranslatableCharacter,
                        format!("{message} 0x{byte:02x} in encoding \"{from}\" has no equivalent in encoding \"{to}\""),
                    )
                });
            }
            _ => Some(char::from(byte)),
        };
        known.ok_or_else(|| invalid(format!("invalid byte sequence for encoding \"{}\": 0x00", self.name())))
    }

    fn byte(self, character: char) -> Option<u8> {
        match (self, u32::from(character)) {
            (_, code @ 0..=0x7f) | (Self::Latin1, code @ 0x80..=0xff) | (Self::Win1252, code @ 0xa0..=0xff) => {
                u8::try_from(code).ok()
            }
            (Self::Win1252, _) => {
                let place = WIN1252.iter().position(|own| *own == character && character != '\u{ffff}')?;
                u8::try_from(place + 0x80).ok()
            }
            _ => None,
        }
    }

    /// A text as the client reads it.
    ///
    /// # Errors
    /// When it has a character that the encoding does not have.
    pub(crate) fn written(self, text: &str) -> Result<Vec<u8>, ClientError> {
        if self == Self::Utf8 {
            return Ok(text.as_bytes().to_vec());
        }
        let byte = |character| {
            self.byte(character).ok_or_else(|| {
                let mut buffer = [0; 4];
                let bytes = character.encode_utf8(&mut buffer).bytes().map(|byte| format!("0x{byte:02x}"));
                let bytes = bytes.collect::<Vec<_>>().join(" ");
                let message = format!(
                    "character with byte sequence {bytes} in encoding \"UTF8\" has no equivalent in encoding \"{}\"",
                    self.name()
                );
                ClientError::new(SqlState::UntranslatableCharacter, message)
            })
        };
        text.chars().map(byte).collect()
    }

    /// The value that was written last, from a place in the buffer on, as the client reads it.
    ///
    /// # Errors
    /// As [`Encoding::written`].
    pub(crate) fn rewrite(self, out: &mut BytesMut, from: usize) -> Result<(), ClientError> {
        let Some(value) = out.get(from..).filter(|value| self != Self::Utf8 && !value.is_ascii()) else {
            return Ok(());
        };
        // What is no text is not shown as one.
        let Ok(text) = std::str::from_utf8(value) else { return Ok(()) };
        let written = self.written(text)?;
        out.truncate(from);
        out.put_slice(&written);
        Ok(())
    }

    /// The messages in a buffer, but rows and copied data, with their texts as the client reads them; a character that it
    /// has not is a question mark there.
    pub(crate) fn rewrite_messages(self, out: &mut BytesMut) {
        if self == Self::Utf8 || out.is_ascii() {
            return;
        }
        let whole = std::mem::take(out);
        let mut rest: &[u8] = &whole;
        while let Some((message, behind)) = first_message(rest) {
            rest = behind;
            self.rewrite_message(out, message);
        }
        out.put_slice(rest);
    }

    fn rewrite_message(self, out: &mut BytesMut, message: &[u8]) {
        let (kind, body) = match message {
            [kind, _, _, _, _, body @ ..] if !body.is_ascii() => (*kind, body),
            _ => return out.put_slice(message),
        };
        let mut written = Vec::with_capacity(body.len());
        match kind {
            b'E' | b'N' | b'S' | b'C' => written = self.lossy(body),
            // The process that notified.
            b'A' => {
                let (process, texts) = body.split_at(4.min(body.len()));
                written.extend_from_slice(process);
                written.extend(self.lossy(texts));
            }
            b'T' => {
                let (count, mut fields) = body.split_at(2.min(body.len()));
                written.extend_from_slice(count);
                while let Some(end) = fields.iter().position(|byte| *byte == 0) {
                    let (name, behind) = fields.split_at(end);
                    written.extend(self.lossy(name));
                    let (facts, next) = behind.split_at(FIELD_BYTES.min(behind.len()));
                    written.extend_from_slice(facts);
                    fields = next;
                }
            }
            _ => return out.put_slice(message),
        }
        out.put_u8(kind);
        out.put_u32(u32::try_from(written.len() + 4).unwrap_or(u32::MAX));
        out.put_slice(&written);
    }

    fn lossy(self, bytes: &[u8]) -> Vec<u8> {
        String::from_utf8_lossy(bytes).chars().map(|character| self.byte(character).unwrap_or(b'?')).collect()
    }
}

/// What RowDescription has of a column behind its name, with the name's end.
const FIELD_BYTES: usize = 19;

/// The first whole message of a buffer, and what is behind it.
fn first_message(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let length: [u8; 4] = bytes.get(1..5)?.try_into().ok()?;
    bytes.split_at_checked(usize::try_from(u32::from_be_bytes(length)).ok()?.checked_add(1)?)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may stop at the first surprise")]
mod tests {
    use switchyard_wire::answer;

    use super::*;

    #[test]
    fn what_an_encoding_lacks_is_an_error() {
        assert_eq!(Encoding::Win1252.written("a€ž").unwrap(), b"a\x80\x9e");
        assert_eq!(Encoding::Latin1.written("é").unwrap(), b"\xe9");
        let error = Encoding::Latin1.written("€").unwrap_err();
        assert_eq!(error.sqlstate.code(), "22P05");
        assert_eq!(Encoding::Win1252.read(b"\x81").unwrap_err().sqlstate.code(), "22P05");
        assert_eq!(Encoding::Latin1.read(b"\xe9\x00").unwrap_err().sqlstate.code(), "22021");
    }

    #[test]
    fn what_is_read_is_written_again() {
        for encoding in [Encoding::Latin1, Encoding::Win1252] {
            let read = (1..=u8::MAX).filter(|byte| {
                let bytes = [b'a', *byte];
                encoding.read(&bytes).is_ok_and(|text| encoding.written(&text).unwrap() == bytes)
            });
            // Five places are empty on Windows.
            assert_eq!(read.count(), if encoding == Encoding::Latin1 { 255 } else { 250 });
        }
    }

    #[test]
    fn messages_keep_their_lengths() {
        let mut out = BytesMut::new();
        answer::report(&mut out, b'E', &[(b'M', "é €")]);
        answer::notification(&mut out, -2, "ä", "é");
        let field =
            answer::Field { name: "ü", table_id: 200, place: 1, type_id: 25, size: -1, modifier: -1, format: 0 };
        answer::row_description(&mut out, [field].into_iter());
        answer::copy_data(&mut out, "é".as_bytes());
        Encoding::Latin1.rewrite_messages(&mut out);
        let (mut rest, mut shown): (&[u8], Vec<Vec<u8>>) = (&out, Vec::new());
        while let Some((message, behind)) = first_message(rest) {
            shown.push([&message[..1], &message[5..]].concat());
            rest = behind;
        }
        assert_eq!(shown[0], b"EM\xe9 ?\0\0");
        assert_eq!(shown[1], b"A\xff\xff\xff\xfe\xe4\0\xe9\0");
        assert_eq!(shown[2][..5], *b"T\0\x01\xfc\0");
        assert_eq!(shown[3], "dé".as_bytes());
        assert!(rest.is_empty());
    }
}
