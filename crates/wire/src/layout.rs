//! Whether a message of a logged-in client has the layout of its type: what is decoded further has been checked here.

use crate::error::WireError;

/// Checks the body of a message that was read whole.
///
/// # Errors
/// When it ends too early or too late, counts what it does not have, or is of no type that a client sends.
pub fn check(kind: u8, body: &[u8]) -> Result<(), WireError> {
    let mut rest = Rest(body);
    let (name, parsed) = match kind {
        b'Q' => ("Query", rest.text()),
        b'P' => ("Parse", parse(&mut rest)),
        b'B' => ("Bind", bind(&mut rest)),
        b'D' => ("Describe", target(&mut rest)),
        b'C' => ("Close", target(&mut rest)),
        b'E' => ("Execute", rest.text().and_then(|()| rest.skip(4))),
        b'H' => ("Flush", Some(())),
        b'S' => ("Sync", Some(())),
        b'X' => ("Terminate", Some(())),
        b'c' => ("CopyDone", Some(())),
        b'f' => ("CopyFail", rest.text()),
        // Their bodies have no layout that could be wrong.
        b'd' => ("CopyData", rest.all()),
        b'p' => ("password", rest.all()),
        _ => ("frontend", None),
    };
    match parsed {
        Some(()) if rest.0.is_empty() => Ok(()),
        _ => Err(WireError::Layout(name)),
    }
}

fn parse(rest: &mut Rest<'_>) -> Option<()> {
    rest.text()?;
    rest.text()?;
    let types = rest.count()?;
    rest.skip(types.checked_mul(4)?)
}

fn bind(rest: &mut Rest<'_>) -> Option<()> {
    rest.text()?;
    rest.text()?;
    rest.formats()?;
    for _ in 0..rest.count()? {
        // -1 is NULL, without bytes.
        match i32::from_be_bytes(rest.take()?) {
            -1 => {}
            length => rest.skip(usize::try_from(length).ok()?)?,
        }
    }
    rest.formats()
}

fn target(rest: &mut Rest<'_>) -> Option<()> {
    match rest.take()? {
        [b'S' | b'P'] => rest.text(),
        _ => None,
    }
}

struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn skip(&mut self, bytes: usize) -> Option<()> {
        self.0 = self.0.get(bytes..)?;
        Some(())
    }

    fn all(&mut self) -> Option<()> {
        self.skip(self.0.len())
    }

    /// Text up to its NUL. Its encoding is checked where it is used.
    fn text(&mut self) -> Option<()> {
        let end = self.0.iter().position(|byte| *byte == 0)?;
        self.skip(end.checked_add(1)?)
    }

    fn count(&mut self) -> Option<usize> {
        self.take().map(|bytes| usize::from(u16::from_be_bytes(bytes)))
    }

    fn formats(&mut self) -> Option<()> {
        let count = self.count()?;
        self.skip(count.checked_mul(2)?)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn whole_messages_pass() {
        let whole: [(u8, &[u8]); 12] = [
            (b'Q', b"SELECT 1\0"),
            (b'P', b"s\0SELECT $1\0\0\x01\0\0\0\x14"),
            (b'B', b"\0s\0\0\x01\0\x01\0\x02\0\0\0\x02ab\xff\xff\xff\xff\0\0"),
            (b'B', b"\0\0\0\0\0\0\0\x01\0\x01"),
            (b'D', b"Ss\0"),
            (b'C', b"P\0"),
            (b'E', b"\0\0\0\0\0"),
            (b'S', b""),
            (b'H', b""),
            (b'X', b""),
            (b'd', b"anything"),
            (b'p', b"secret\0"),
        ];
        for (kind, body) in whole {
            assert_eq!(check(kind, body), Ok(()), "{}", char::from(kind));
        }
    }

    #[test]
    fn what_is_cut_or_has_too_much_is_refused() {
        let bind = b"\0s\0\0\x01\0\x01\0\x01\0\0\0\x02ab\0\x01\0\0";
        assert_eq!(check(b'B', bind), Ok(()));
        for length in 0..bind.len() {
            assert_eq!(check(b'B', bind.get(..length).unwrap_or_default()), Err(WireError::Layout("Bind")), "{length}");
        }
        assert_eq!(check(b'Q', b"SELECT 1"), Err(WireError::Layout("Query")));
        assert_eq!(check(b'Q', b"SELECT 1\0 more"), Err(WireError::Layout("Query")));
        assert_eq!(check(b'D', b"Xs\0"), Err(WireError::Layout("Describe")));
        assert_eq!(check(b'B', b"\0\0\0\0\0\x01\xff\xff\xff\xfe\0\0"), Err(WireError::Layout("Bind")));
        assert_eq!(check(b'S', b"x"), Err(WireError::Layout("Sync")));
        assert_eq!(check(b'z', b""), Err(WireError::Layout("frontend")));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(kind: u8, body: Vec<u8>) {
            let _ = check(kind, &body);
        }
    }
}
