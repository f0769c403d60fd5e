//! The typed messages that answer statements, as far as their layout is Vertica's own.

use bytes::{BufMut, BytesMut};

use super::types::Type;
use crate::message::{text_without_zero, typed};

/// A column of a result. No column belongs to a table here, and any may hold NULL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its type.
    pub kind: Type,
    /// 0 is text, 1 is binary.
    pub format: i16,
}

/// RowDescription, in the layout for clients that were told `request_complex_types=off`. There are at most 65,535
/// columns.
pub fn row_description<'a>(out: &mut BytesMut, fields: impl ExactSizeIterator<Item = Field<'a>>) {
    typed(out, b'T', |out| {
        out.put_u16(u16::try_from(fields.len()).unwrap_or(u16::MAX));
        put_no_pool(out);
        for field in fields.take(usize::from(u16::MAX)) {
            put_text(out, field.name);
            // No table, so neither schema nor name of one; no number of a column.
            out.put_u64(0);
            out.put_i16(0);
            put_native(out, field.kind.id);
            out.put_i16(field.kind.size);
            out.put_i16(1);
            // No identity column.
            out.put_i16(0);
            out.put_i32(field.kind.modifier);
            out.put_i16(field.format);
        }
    });
}

/// ParameterDescription. There are at most 65,535 parameters.
pub fn parameter_description(out: &mut BytesMut, parameters: impl ExactSizeIterator<Item = Type>) {
    typed(out, b't', |out| {
        out.put_u16(u16::try_from(parameters.len()).unwrap_or(u16::MAX));
        put_no_pool(out);
        for kind in parameters.take(usize::from(u16::MAX)) {
            put_native(out, kind.id);
            out.put_i32(kind.modifier);
            // It may be NULL.
            out.put_i16(0);
        }
    });
}

/// CommandDescription, which ends the answer to a Describe of a statement. An empty tag says that there is none in the
/// text. Nothing can be run as COPY instead.
pub fn command_description(out: &mut BytesMut, tag: &str) {
    typed(out, b'm', |out| {
        put_text(out, tag);
        out.put_i16(0);
        out.put_u8(0);
    });
}

/// How many types follow that are the server's own: none, since some clients know nothing of such.
fn put_no_pool(out: &mut BytesMut) {
    out.put_u32(0);
}

/// A type that is none of the server's own.
fn put_native(out: &mut BytesMut, id: u32) {
    out.put_u8(0);
    out.put_u32(id);
}

fn put_text(out: &mut BytesMut, text: &str) {
    out.put_slice(text_without_zero(text).as_bytes());
    out.put_u8(0);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(write: impl FnOnce(&mut BytesMut)) -> Vec<u8> {
        let mut out = BytesMut::new();
        write(&mut out);
        out.to_vec()
    }

    fn field(name: &str, kind: Type) -> Field<'_> {
        Field { name, kind, format: kind.format(true) }
    }

    #[test]
    fn bytes_are_as_clients_want_them() {
        let one = Field { name: "a", kind: Type::INTEGER, format: 0 };
        let mut expected = b"T\0\0\0\x27\0\x01\0\0\0\0a\0".to_vec();
        expected.extend([0; 10]);
        expected.extend(b"\0\0\0\0\x06\0\x08\0\x01\0\0\xff\xff\xff\xff\0\0");
        assert_eq!(written(|out| row_description(out, [one].into_iter())), expected);

        assert_eq!(
            written(|out| parameter_description(out, [Type::INTEGER, Type::VARCHAR].into_iter())),
            b"t\0\0\0\x20\0\x02\0\0\0\0\0\0\0\0\x06\xff\xff\xff\xff\0\0\0\0\0\0\x09\xff\xff\xff\xff\0\0"
        );
        assert_eq!(written(|out| parameter_description(out, [].into_iter())), b"t\0\0\0\x0a\0\0\0\0\0\0");
        assert_eq!(written(|out| command_description(out, "SELECT")), b"m\0\0\0\x0eSELECT\0\0\0\0");
        assert_eq!(written(|out| command_description(out, "")), b"m\0\0\0\x08\0\0\0\0");
    }

    #[test]
    fn only_what_has_a_binary_form_is_binary() {
        for (kind, format) in [(Type::DATE, 1), (Type::VARCHAR, 1), (Type::NUMERIC, 0)] {
            let bytes = written(|out| row_description(out, [field("x", kind)].into_iter()));
            assert_eq!(bytes.last(), Some(&format));
            assert_eq!(kind.format(false), 0);
        }
    }

    proptest! {
        #[test]
        fn no_name_breaks_the_frame(names: Vec<String>, tag: String) {
            for bytes in [
                written(|out| row_description(out, names.iter().map(|name| field(name, Type::DATE)))),
                written(|out| command_description(out, &tag)),
            ] {
                let header = crate::frame(&bytes, usize::MAX).ok().flatten();
                prop_assert_eq!(header.map(|header| header.len), Some(bytes.len()));
            }
            // Each field has as many zero bytes as any other, whatever its name: none ends early.
            let all = written(|out| row_description(out, names.iter().map(|name| field(name, Type::DATE))));
            let one = written(|out| row_description(out, [field("x", Type::DATE)].into_iter()));
            let zeros = |bytes: &[u8]| bytes.get(11..).unwrap_or_default().iter().filter(|byte| **byte == 0).count();
            prop_assert_eq!(zeros(&all), names.len() * zeros(&one));
        }
    }
}
