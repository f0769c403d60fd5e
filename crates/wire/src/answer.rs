//! The typed messages that answer statements.

use bytes::{BufMut, BytesMut};
use pgwire::messages::copy::{CopyDone, CopyOutResponse};
use pgwire::messages::data::{FieldDescription, NoData, ParameterDescription, RowDescription};
use pgwire::messages::extendedquery::{BindComplete, CloseComplete, ParseComplete, PortalSuspended};
use pgwire::messages::response::{
    CommandComplete, EmptyQueryResponse, ErrorResponse, NoticeResponse, NotificationResponse,
};

use crate::message::{put, text_without_zero, typed};

/// A column of a result, as RowDescription has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field<'a> {
    /// Its name.
    pub name: &'a str,
    /// The number of the table it is a column of; 0 for none.
    pub table_id: u32,
    /// Its place in that table, from 1; 0 for none.
    pub place: i16,
    /// Its type.
    pub type_id: u32,
    /// The type's size; negative when it varies.
    pub size: i16,
    /// The type's modifier; -1 for none.
    pub modifier: i32,
    /// 0 is text, 1 is binary.
    pub format: i16,
}

/// An error, kind `E`, or a notice, kind `N`, of these fields.
pub fn report(out: &mut BytesMut, kind: u8, fields: &[(u8, &str)]) {
    let fields = fields.iter().map(|(field, value)| (*field, text_without_zero(value))).collect();
    match kind {
        b'N' => put(out, &NoticeResponse::new(fields)),
        _ => put(out, &ErrorResponse::new(fields)),
    }
}

/// NotificationResponse.
pub fn notification(out: &mut BytesMut, process_id: i32, channel: &str, payload: &str) {
    put(out, &NotificationResponse::new(process_id, text_without_zero(channel), text_without_zero(payload)));
}

/// ParseComplete.
pub fn parse_complete(out: &mut BytesMut) {
    put(out, &ParseComplete::new());
}

/// BindComplete.
pub fn bind_complete(out: &mut BytesMut) {
    put(out, &BindComplete::new());
}

/// CloseComplete.
pub fn close_complete(out: &mut BytesMut) {
    put(out, &CloseComplete::new());
}

/// NoData: a statement or portal gives no rows.
pub fn no_data(out: &mut BytesMut) {
    put(out, &NoData::new());
}

/// PortalSuspended: there may be more rows.
pub fn portal_suspended(out: &mut BytesMut) {
    put(out, &PortalSuspended::new());
}

/// EmptyQueryResponse.
pub fn empty_query(out: &mut BytesMut) {
    put(out, &EmptyQueryResponse::new());
}

/// CommandComplete.
pub fn command_complete(out: &mut BytesMut, tag: &str) {
    put(out, &CommandComplete::new(text_without_zero(tag)));
}

/// ParameterDescription. There are at most 65,535 parameters.
pub fn parameter_description(out: &mut BytesMut, types: &[u32]) {
    put(out, &ParameterDescription::new(types.iter().take(usize::from(u16::MAX)).copied().collect()));
}

/// RowDescription. There are at most 65,535 columns.
pub fn row_description<'a>(out: &mut BytesMut, fields: impl ExactSizeIterator<Item = Field<'a>>) {
    let fields = fields.take(usize::from(u16::MAX)).map(|field| {
        let name = text_without_zero(field.name);
        // pgwire has the table's number signed; it is the same on the wire.
        let table = field.table_id.cast_signed();
        FieldDescription::new(name, table, field.place, field.type_id, field.size, field.modifier, field.format)
    });
    put(out, &RowDescription::new(fields.collect()));
}

/// CopyOutResponse: every column in the same format. There are at most 32,767 columns.
pub fn copy_out(out: &mut BytesMut, binary: bool, columns: usize) {
    let columns = i16::try_from(columns).unwrap_or(i16::MAX);
    let formats = (0..columns).map(|_| i16::from(binary)).collect();
    put(out, &CopyOutResponse::new(i8::from(binary), columns, formats));
}

/// CopyData.
pub fn copy_data(out: &mut BytesMut, data: &[u8]) {
    // Written here: pgwire's message would want the bytes copied first.
    typed(out, b'd', |out| out.put_slice(data));
}

/// CopyDone.
pub fn copy_done(out: &mut BytesMut) {
    put(out, &CopyDone::new());
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
        assert_eq!(written(|out| notification(out, 258, "c", "p")), b"A\0\0\0\x0c\0\0\x01\x02c\0p\0");
        let field = Field { name: "a", table_id: 1259, place: 2, type_id: 20, size: 8, modifier: -1, format: 1 };
        assert_eq!(
            written(|out| row_description(out, [field].into_iter())),
            b"T\0\0\0\x1a\0\x01a\0\0\0\x04\xeb\0\x02\0\0\0\x14\0\x08\xff\xff\xff\xff\0\x01"
        );
        assert_eq!(written(|out| copy_out(out, true, 2)), b"H\0\0\0\x0b\x01\0\x02\0\x01\0\x01");
        assert_eq!(written(|out| copy_data(out, b"x\n")), b"d\0\0\0\x06x\n");
    }
}
