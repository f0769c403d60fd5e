//! The messages of a logged-in client.

use crate::error::WireError;

/// A statement or a portal: what Describe and Close are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A prepared statement.
    Statement,
    /// A portal.
    Portal,
}

/// A message. Texts are as they came: their encoding is checked where they are used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frontend<'a> {
    /// Run a string of statements.
    Query(&'a [u8]),
    /// Prepare a statement.
    Parse {
        /// Its name; empty for the unnamed one.
        name: &'a [u8],
        /// Its text.
        text: &'a [u8],
        /// The types of its first parameters; 0 leaves one open.
        types: Vec<u32>,
    },
    /// Make a portal.
    Bind(Bind<'a>),
    /// Say what a statement or portal takes and gives.
    Describe(Target, &'a [u8]),
    /// Forget a statement or portal.
    Close(Target, &'a [u8]),
    /// Run a portal.
    Execute {
        /// Its name.
        portal: &'a [u8],
        /// How many rows are wanted; 0 or less is all of them.
        rows_max: i32,
    },
    /// Send what there is.
    Flush,
    /// End the implicit transaction.
    Sync,
    /// Goodbye.
    Terminate,
    /// CopyData, CopyDone or CopyFail.
    Copy,
}

/// A portal to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bind<'a> {
    /// Its name.
    pub portal: &'a [u8],
    /// The statement's name.
    pub statement: &'a [u8],
    /// The formats of the parameters: none, one for all, or one for each.
    pub parameter_formats: Vec<i16>,
    /// The parameters; none is NULL.
    pub parameters: Vec<Option<&'a [u8]>>,
    /// The formats of the result's columns: none, one for all, or one for each.
    pub result_formats: Vec<i16>,
}

/// Reads the body of a message that has been received whole.
///
/// # Errors
/// When it ends too early or too late, counts what it does not have, or is of no type that a client sends.
pub fn read(kind: u8, body: &[u8]) -> Result<Frontend<'_>, WireError> {
    let mut rest = Rest(body);
    let (name, message) = match kind {
        b'Q' => ("Query", rest.text().map(Frontend::Query)),
        b'P' => ("Parse", parse(&mut rest)),
        b'B' => ("Bind", bind(&mut rest).map(Frontend::Bind)),
        b'D' => ("Describe", target(&mut rest).map(|(target, name)| Frontend::Describe(target, name))),
        b'C' => ("Close", target(&mut rest).map(|(target, name)| Frontend::Close(target, name))),
        b'E' => ("Execute", execute(&mut rest)),
        b'H' => ("Flush", Some(Frontend::Flush)),
        b'S' => ("Sync", Some(Frontend::Sync)),
        b'X' => ("Terminate", Some(Frontend::Terminate)),
        // Nobody asks for these: their bodies are not looked at.
        b'd' | b'c' | b'f' => return Ok(Frontend::Copy),
        other => return Err(WireError::MessageKind(other)),
    };
    message.filter(|_| rest.0.is_empty()).ok_or(WireError::Layout(name))
}

fn parse<'a>(rest: &mut Rest<'a>) -> Option<Frontend<'a>> {
    let name = rest.text()?;
    let text = rest.text()?;
    let types = (0..rest.count()?).map(|_| rest.take().map(u32::from_be_bytes)).collect::<Option<_>>()?;
    Some(Frontend::Parse { name, text, types })
}

fn bind<'a>(rest: &mut Rest<'a>) -> Option<Bind<'a>> {
    let portal = rest.text()?;
    let statement = rest.text()?;
    let parameter_formats = rest.formats()?;
    let parameters = (0..rest.count()?).map(|_| rest.value()).collect::<Option<_>>()?;
    let result_formats = rest.formats()?;
    Some(Bind { portal, statement, parameter_formats, parameters, result_formats })
}

fn target<'a>(rest: &mut Rest<'a>) -> Option<(Target, &'a [u8])> {
    let target = match rest.take()? {
        [b'S'] => Target::Statement,
        [b'P'] => Target::Portal,
        _ => return None,
    };
    Some((target, rest.text()?))
}

fn execute<'a>(rest: &mut Rest<'a>) -> Option<Frontend<'a>> {
    Some(Frontend::Execute { portal: rest.text()?, rows_max: rest.take().map(i32::from_be_bytes)? })
}

pub(crate) struct Rest<'a>(pub(crate) &'a [u8]);

impl<'a> Rest<'a> {
    pub(crate) fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    /// Text up to its NUL.
    pub(crate) fn text(&mut self) -> Option<&'a [u8]> {
        let text = self.bytes(self.0.iter().position(|byte| *byte == 0)?)?;
        self.bytes(1)?;
        Some(text)
    }

    /// A value with its length before it; -1 is NULL, without bytes.
    pub(crate) fn value(&mut self) -> Option<Option<&'a [u8]>> {
        match i32::from_be_bytes(self.take()?) {
            -1 => Some(None),
            length => self.bytes(usize::try_from(length).ok()?).map(Some),
        }
    }

    pub(crate) fn count(&mut self) -> Option<usize> {
        self.take().map(|bytes| usize::from(u16::from_be_bytes(bytes)))
    }

    pub(crate) fn formats(&mut self) -> Option<Vec<i16>> {
        (0..self.count()?).map(|_| self.take().map(i16::from_be_bytes)).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn whole_messages_are_read() {
        let whole: [(u8, &[u8], Frontend<'_>); 9] = [
            (b'Q', b"SELECT 1\0", Frontend::Query(b"SELECT 1")),
            (
                b'P',
                b"s\0SELECT $1\0\0\x01\0\0\0\x14",
                Frontend::Parse { name: b"s", text: b"SELECT $1", types: vec![20] },
            ),
            (
                b'B',
                b"p\0s\0\0\x01\0\x01\0\x02\0\0\0\x02ab\xff\xff\xff\xff\0\0",
                Frontend::Bind(Bind {
                    portal: b"p",
                    statement: b"s",
                    parameter_formats: vec![1],
                    parameters: vec![Some(b"ab"), None],
                    result_formats: vec![],
                }),
            ),
            (b'D', b"Ss\0", Frontend::Describe(Target::Statement, b"s")),
            (b'C', b"P\0", Frontend::Close(Target::Portal, b"")),
            (b'E', b"p\0\0\0\0\x05", Frontend::Execute { portal: b"p", rows_max: 5 }),
            (b'S', b"", Frontend::Sync),
            (b'X', b"", Frontend::Terminate),
            (b'd', b"anything", Frontend::Copy),
        ];
        for (kind, body, message) in whole {
            assert_eq!(read(kind, body), Ok(message), "{}", char::from(kind));
        }
    }

    #[test]
    fn what_is_cut_or_has_too_much_is_refused() {
        let bind = b"\0s\0\0\x01\0\x01\0\x01\0\0\0\x02ab\0\x01\0\0";
        assert!(read(b'B', bind).is_ok());
        for length in 0..bind.len() {
            assert_eq!(read(b'B', bind.get(..length).unwrap_or_default()), Err(WireError::Layout("Bind")), "{length}");
        }
        assert_eq!(read(b'Q', b"SELECT 1"), Err(WireError::Layout("Query")));
        assert_eq!(read(b'Q', b"SELECT 1\0 more"), Err(WireError::Layout("Query")));
        assert_eq!(read(b'D', b"Xs\0"), Err(WireError::Layout("Describe")));
        assert_eq!(read(b'B', b"\0\0\0\0\0\x01\xff\xff\xff\xfe\0\0"), Err(WireError::Layout("Bind")));
        assert_eq!(read(b'S', b"x"), Err(WireError::Layout("Sync")));
        assert_eq!(read(b'z', b""), Err(WireError::MessageKind(b'z')));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(kind: u8, body: Vec<u8>) {
            let _ = read(kind, &body);
        }
    }
}
