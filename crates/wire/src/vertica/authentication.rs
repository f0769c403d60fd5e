//! Asking a client of Vertica for its password, and reading the answer (`reference/vertica-wire.md` §2).

use bytes::{BufMut, BytesMut};

use crate::error::WireError;
use crate::message::typed;

/// The longest answer, in bytes, with its frame. A password that is longer than this has no use.
pub const PASSWORD_BYTES_MAX: usize = 4 * 1024;

const CLEARTEXT: u32 = 3;
const MD5: u32 = 5;
const EXPIRED: u32 = 9;
const SHA512: u32 = 65_536 + 512;

/// Asks for the password as it is: through TLS only.
pub fn cleartext(out: &mut BytesMut) {
    typed(out, b'R', |out| out.put_u32(CLEARTEXT));
}

/// Says that the password was right and has expired. What it may be followed by, open clients do not read.
pub fn expired(out: &mut BytesMut) {
    typed(out, b'R', |out| out.put_u32(EXPIRED));
}

/// Asks for a proof by SHA512, which [`crate::Sha512Verifier::accepts`] checks: `session_salt` is new each time,
/// `user_salt` is the verifier's.
pub fn sha512(out: &mut BytesMut, session_salt: [u8; 4], user_salt: [u8; 16]) {
    hash(out, SHA512, session_salt, user_salt);
}

/// Asks for a proof by MD5, which [`crate::Md5Verifier::accepts`] checks: `session_salt` is new each time. It is as long
/// as the other, with zeros where nobody reads: some clients take PostgreSQL's shorter one for the end of the login.
pub fn md5(out: &mut BytesMut, session_salt: [u8; 4]) {
    hash(out, MD5, session_salt, [0; 16]);
}

fn hash(out: &mut BytesMut, algorithm: u32, session_salt: [u8; 4], user_salt: [u8; 16]) {
    typed(out, b'R', |out| {
        out.put_u32(algorithm);
        out.put_slice(&session_salt);
        out.put_u32(16);
        out.put_slice(&user_salt);
    });
}

/// Reads the body of the answer: the password or the proof.
///
/// # Errors
/// When it does not end with its only zero byte.
pub fn password(body: &[u8]) -> Result<&[u8], WireError> {
    match body.split_last() {
        Some((0, password)) if !password.contains(&0) => Ok(password),
        _ => Err(WireError::Layout("Password")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Sha512Verifier;

    const USER_SALT: [u8; 16] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];

    fn written(write: impl FnOnce(&mut BytesMut)) -> Vec<u8> {
        let mut out = BytesMut::new();
        write(&mut out);
        out.to_vec()
    }

    #[test]
    fn bytes_are_as_clients_want_them() {
        assert_eq!(written(cleartext), b"R\0\0\0\x08\0\0\0\x03");
        assert_eq!(written(expired), b"R\0\0\0\x08\0\0\0\x09");
        let request = written(|out| sha512(out, [1, 2, 3, 4], USER_SALT));
        assert_eq!(request.len(), 33, "some clients look at the length");
        assert_eq!(request.get(..17), Some(&b"R\0\0\0\x20\0\x01\x02\0\x01\x02\x03\x04\0\0\0\x10"[..]));
        assert_eq!(request.get(17..), Some(&USER_SALT[..]));
        let request = written(|out| md5(out, [1, 2, 3, 4]));
        assert_eq!(request.get(..17), Some(&b"R\0\0\0\x20\0\0\0\x05\x01\x02\x03\x04\0\0\0\x10"[..]));
        assert_eq!(request.get(17..), Some(&[0; 16][..]));
    }

    #[test]
    fn answers_end_with_zero() {
        assert_eq!(password(b"sekret\0"), Ok(&b"sekret"[..]));
        assert_eq!(password(b"\0"), Ok(&b""[..]));
        for broken in [&b""[..], b"sekret", b"sek\0ret\0", b"\0\0"] {
            assert_eq!(password(broken), Err(WireError::Layout("Password")));
        }
    }

    #[test]
    fn the_right_answer_is_accepted() {
        let body =
            b"sha512202f476705cb5e9fb0a89f3b10dde6c51ed3f83b689ded5dd38de6a26609eadfabc5dd4b78ce7ae8a6736211ccbcb8\
                     5be72c119357698be739adf1d2499636fa\0";
        let verifier = Sha512Verifier::make("sekret", USER_SALT);
        assert!(password(body).is_ok_and(|answer| verifier.accepts([1, 2, 3, 4], answer)));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(body: Vec<u8>) {
            let _ = password(&body);
        }
    }
}
