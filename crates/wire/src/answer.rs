//! The typed messages that answer statements.

use bytes::{BufMut, BytesMut};

use crate::message::{put_text, typed};

/// A column of a result, as RowDescription has it. No column belongs to a table here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its type.
    pub type_id: u32,
    /// The type's size; negative when it varies.
    pub size: i16,
    /// 0 is text, 1 is binary.
    pub format: i16,
}

/// An error, kind `E`, or a notice, kind `N`, of these fields.
pub fn report(out: &mut BytesMut, kind: u8, fields: &[(u8, &str)]) {
    typed(out, kind, |out| {
        for (field, value) in fields {
            out.put_u8(*field);
            put_text(out, value);
        }
        out.put_u8(0);
    });
}

/// ParseComplete.
pub fn parse_complete(out: &mut BytesMut) {
    typed(out, b'1', |_| {});
}

/// BindComplete.
pub fn bind_complete(out: &mut BytesMut) {
    typed(out, b'2', |_| {});
}

/// CloseComplete.
pub fn close_complete(out: &mut BytesMut) {
    typed(out, b'3', |_| {});
}

/// NoData: a statement or portal gives no rows.
pub fn no_data(out: &mut BytesMut) {
    typed(out, b'n', |_| {});
}

/// PortalSuspended: there may be more rows.
pub fn portal_suspended(out: &mut BytesMut) {
    typed(out, b's', |_| {});
}

/// EmptyQueryResponse.
pub fn empty_query(out: &mut BytesMut) {
    typed(out, b'I', |_| {});
}

/// CommandComplete.
pub fn command_complete(out: &mut BytesMut, tag: &str) {
    typed(out, b'C', |out| put_text(out, tag));
}

/// ParameterDescription. There are at most 65,535 parameters.
pub fn parameter_description(out: &mut BytesMut, types: &[u32]) {
    typed(out, b't', |out| {
        out.put_u16(u16::try_from(types.len()).unwrap_or(u16::MAX));
        for type_id in types.iter().take(usize::from(u16::MAX)) {
            out.put_u32(*type_id);
        }
    });
}

/// RowDescription. There are at most 65,535 columns.
pub fn row_description<'a>(out: &mut BytesMut, fields: impl ExactSizeIterator<Item = Field<'a>>) {
    typed(out, b'T', |out| {
        out.put_u16(u16::try_from(fields.len()).unwrap_or(u16::MAX));
        for field in fields.take(usize::from(u16::MAX)) {
            put_text(out, field.name);
            out.put_u32(0);
            out.put_i16(0);
            out.put_u32(field.type_id);
            out.put_i16(field.size);
            out.put_i32(-1);
            out.put_i16(field.format);
        }
    });
}

/// CopyOutResponse: every column in the same format.
pub fn copy_out(out: &mut BytesMut, binary: bool, columns: usize) {
    let columns = u16::try_from(columns).unwrap_or(u16::MAX);
    typed(out, b'H', |out| {
        out.put_u8(u8::from(binary));
        out.put_u16(columns);
        for _ in 0..columns {
            out.put_i16(i16::from(binary));
        }
    });
}

/// CopyData.
pub fn copy_data(out: &mut BytesMut, data: &[u8]) {
    typed(out, b'd', |out| out.put_slice(data));
}

/// CopyDone.
pub fn copy_done(out: &mut BytesMut) {
    typed(out, b'c', |_| {});
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut BytesMut)) -> Vec<u8> {
        let mut out = BytesMut::new();
        write(&mut out);
        out.to_vec()
    }

    #[test]
    fn bytes_are_as_the_protocol_has_them() {
        assert_eq!(written(parse_complete), b"1\0\0\0\x04");
        assert_eq!(written(|out| command_complete(out, "SET")), b"C\0\0\0\x08SET\0");
        assert_eq!(written(|out| parameter_description(out, &[20, 25])), b"t\0\0\0\x0e\0\x02\0\0\0\x14\0\0\0\x19");
        let field = Field { name: "a", type_id: 20, size: 8, format: 1 };
        assert_eq!(
            written(|out| row_description(out, [field].into_iter())),
            b"T\0\0\0\x1a\0\x01a\0\0\0\0\0\0\0\0\0\0\x14\0\x08\xff\xff\xff\xff\0\x01"
        );
        assert_eq!(written(|out| copy_out(out, true, 2)), b"H\0\0\0\x0b\x01\0\x02\0\x01\0\x01");
        assert_eq!(written(|out| copy_data(out, b"x\n")), b"d\0\0\0\x06x\n");
        assert_eq!(written(|out| report(out, b'E', &[(b'S', "ERROR")])), b"E\0\0\0\x0cSERROR\0\0");
    }
}
