//! The messages of a logged-in client of Vertica.

use crate::error::WireError;
use crate::frontend::{self, Frontend, Rest};

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message<'a> {
    /// One that is the same in PostgreSQL's protocol.
    Common(Frontend<'a>),
    /// A portal to be made.
    Bind(Bind<'a>),
}

/// A portal to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bind<'a> {
    /// Formats, values and names.
    pub common: frontend::Bind<'a>,
    /// The type of each value, as ParameterDescription gave it.
    pub types: Vec<u32>,
}

/// Reads the body of a message that has been received whole.
///
/// # Errors
/// When it ends too early or too late, counts what it does not have, or is of no type that a client sends.
pub fn read(kind: u8, body: &[u8]) -> Result<Message<'_>, WireError> {
    if kind != b'B' {
        return frontend::read(kind, body).map(Message::Common);
    }
    let mut rest = Rest(body);
    bind(&mut rest).filter(|_| rest.0.is_empty()).map(Message::Bind).ok_or(WireError::Layout("Bind"))
}

/// All types come before the first value.
fn bind<'a>(rest: &mut Rest<'a>) -> Option<Bind<'a>> {
    let portal = rest.text()?;
    let statement = rest.text()?;
    let parameter_formats = rest.formats()?;
    let count = rest.count()?;
    let types = (0..count).map(|_| rest.take().map(u32::from_be_bytes)).collect::<Option<_>>()?;
    let parameters = (0..count).map(|_| rest.value()).collect::<Option<_>>()?;
    let result_formats = rest.formats()?;
    let common = frontend::Bind { portal, statement, parameter_formats, parameters, result_formats };
    Some(Bind { common, types })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// `SELECT ?, ?` with 7 and NULL, as clients bind it.
    const BIND: &[u8] = b"\0s0\0\0\0\0\x02\0\0\0\x06\0\0\0\x09\0\0\0\x017\xff\xff\xff\xff\0\x01\0\x01";

    #[test]
    fn types_come_before_values() {
        let common = frontend::Bind {
            portal: b"",
            statement: b"s0",
            parameter_formats: vec![],
            parameters: vec![Some(b"7"), None],
            result_formats: vec![1],
        };
        assert_eq!(read(b'B', BIND), Ok(Message::Bind(Bind { common, types: vec![6, 9] })));
        let empty = read(b'B', b"\0s0\0\0\0\0\0\0\0");
        assert!(matches!(empty, Ok(Message::Bind(Bind { types, .. })) if types.is_empty()));
    }

    #[test]
    fn what_is_cut_or_has_too_much_is_refused() {
        for length in 0..BIND.len() {
            assert_eq!(read(b'B', BIND.get(..length).unwrap_or_default()), Err(WireError::Layout("Bind")), "{length}");
        }
        assert_eq!(read(b'B', &[BIND, b"\0"].concat()), Err(WireError::Layout("Bind")));
        assert_eq!(read(b'B', b"\0\0\0\0\xff\xff"), Err(WireError::Layout("Bind")));
    }

    #[test]
    fn all_else_is_as_in_postgresql() {
        assert_eq!(read(b'S', b""), Ok(Message::Common(Frontend::Sync)));
        assert_eq!(read(b'Q', b"COMMIT;\0"), Ok(Message::Common(Frontend::Query(b"COMMIT;"))));
        assert_eq!(read(b'z', b""), Err(WireError::MessageKind(b'z')));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(kind: u8, body: Vec<u8>) {
            let _ = read(kind, &body);
            let _ = read(b'B', &body);
        }
    }
}
