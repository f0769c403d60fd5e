//! What is kept of a password: enough to check it, not enough to use it.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use rand::CryptoRng;
use sha2::{Digest, Sha256, Sha512};
use subtle::ConstantTimeEq;
use thiserror::Error;
use zeroize::Zeroizing;

/// PostgreSQL's default number of iterations.
pub const SCRAM_ITERATIONS: u32 = 4096;
/// The most iterations a verifier may ask of clients.
pub const SCRAM_ITERATIONS_MAX: u32 = 10_000_000;
const SCRAM_PREFIX: &str = "SCRAM-SHA-256$";
const SHA512_PREFIX: &str = "sha512:";
const MD5_PREFIX: &str = "md5:";
const SALT_BYTES: usize = 16;
/// The longest salt read from a verifier made elsewhere.
const SALT_BYTES_MAX: usize = 1024;

/// A key or hash of SHA-256.
pub(crate) type Key = [u8; 32];

/// A text that is no verifier. The text is not repeated: it may be a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("invalid {0} verifier")]
pub struct VerifierError(&'static str);

/// PostgreSQL's verifier of a password: `SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>`.
#[derive(Clone, PartialEq, Eq)]
pub struct ScramVerifier {
    pub(crate) iterations: u32,
    pub(crate) salt: Vec<u8>,
    pub(crate) stored_key: Key,
    pub(crate) server_key: Key,
}

impl fmt::Debug for ScramVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScramVerifier").field("iterations", &self.iterations).finish_non_exhaustive()
    }
}

impl ScramVerifier {
    /// The verifier of a password. As in PostgreSQL, a password that SASLprep refuses is used as it is.
    pub fn make(password: &str, salt: &[u8], iterations: u32) -> Self {
        let (client_key, server_key) = keys(password, salt, iterations);
        Self { iterations, salt: salt.to_vec(), stored_key: sha256(client_key.as_ref()), server_key }
    }

    /// A verifier that no password fits, always the same for one user: what a server shows to users it does not know,
    /// so that nobody can tell them from those it does.
    pub fn mock(secret: &MockSecret, user: &str, iterations: u32) -> Self {
        let derive = |purpose: &[u8]| hmac(&secret.0, &[purpose, user.as_bytes()]);
        let salt = derive(b"salt ").iter().copied().take(SALT_BYTES).collect();
        Self { iterations, salt, stored_key: derive(b"stored key "), server_key: derive(b"server key ") }
    }

    /// Reads a verifier.
    ///
    /// # Errors
    /// When the text is none.
    pub fn parse(text: &str) -> Result<Self, VerifierError> {
        Self::parts(text).ok_or(VerifierError("SCRAM-SHA-256"))
    }

    fn parts(text: &str) -> Option<Self> {
        let (parameters, keys) = text.strip_prefix(SCRAM_PREFIX)?.split_once('$')?;
        let (iterations, salt) = parameters.split_once(':')?;
        let (stored_key, server_key) = keys.split_once(':')?;
        // `parse` alone would also take a sign.
        let iterations = iterations.bytes().all(|byte| byte.is_ascii_digit()).then_some(iterations)?;
        let iterations = iterations.parse().ok().filter(|count| (1..=SCRAM_ITERATIONS_MAX).contains(count))?;
        let salt = BASE64.decode(salt).ok().filter(|salt| (1..=SALT_BYTES_MAX).contains(&salt.len()))?;
        let key = |text: &str| BASE64.decode(text).ok().and_then(|bytes| Key::try_from(bytes).ok());
        Some(Self { iterations, salt, stored_key: key(stored_key)?, server_key: key(server_key)? })
    }

    /// The verifier as PostgreSQL keeps it.
    pub fn text(&self) -> String {
        let [salt, stored_key, server_key] =
            [&self.salt[..], &self.stored_key, &self.server_key].map(|bytes| BASE64.encode(bytes));
        format!("{SCRAM_PREFIX}{}:{salt}${stored_key}:{server_key}", self.iterations)
    }

    /// How many iterations make it of a password.
    pub fn iterations(&self) -> u32 {
        self.iterations
    }

    /// Whether this is the verifier of that password.
    pub fn fits(&self, password: &str) -> bool {
        let made = Self::make(password, &self.salt, self.iterations);
        self.stored_key.ct_eq(&made.stored_key).into()
    }
}

/// What [`ScramVerifier::mock`] derives from. All members of a cluster should have the same, and keep it.
#[derive(Clone)]
pub struct MockSecret(Zeroizing<Key>);

impl MockSecret {
    /// A new one.
    pub fn random(rng: &mut impl CryptoRng) -> Self {
        let mut key = Zeroizing::new(Key::default());
        rng.fill_bytes(key.as_mut());
        Self(key)
    }

    /// One derived from another secret, for example a verifier, that outlives the process.
    pub fn derive(secret: &[u8]) -> Self {
        let hash = Sha256::new().chain_update(b"mock authentication\0").chain_update(secret).finalize();
        Self(Zeroizing::new(hash.into()))
    }

    /// Whether a user who is not there is taken for one of those who are asked for MD5: each other name is, and always
    /// the same, so that how one is asked says nothing.
    pub fn chooses_md5(&self, user: &str) -> bool {
        let [first, ..] = hmac(&self.0, &[b"MD5 or not ", user.as_bytes()]);
        first & 1 == 1
    }
}

impl fmt::Debug for MockSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MockSecret")
    }
}

/// Vertica's verifier of a password: `sha512:<hash>:<salt>`, both in hex, with `hash = SHA512(password || salt)`
/// (`reference/vertica-wire.md` §2).
#[derive(Clone, PartialEq, Eq)]
pub struct Sha512Verifier {
    /// In hex, because clients hash the digits and not the bytes.
    hash: String,
    salt: [u8; SALT_BYTES],
}

impl fmt::Debug for Sha512Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sha512Verifier")
    }
}

impl Sha512Verifier {
    /// The verifier of a password.
    pub fn make(password: &str, salt: [u8; SALT_BYTES]) -> Self {
        Self { hash: hex(&Sha512::new().chain_update(password).chain_update(salt).finalize()), salt }
    }

    /// As [`ScramVerifier::mock`].
    pub fn mock(secret: &MockSecret, user: &str) -> Self {
        let derive = |purpose: &[u8]| hmac(&secret.0, &[purpose, user.as_bytes()]);
        let mut salt = [0; SALT_BYTES];
        for (byte, derived) in salt.iter_mut().zip(derive(b"SHA512 salt ")) {
            *byte = derived;
        }
        let hash = [derive(b"SHA512 first half "), derive(b"SHA512 second half ")].concat();
        Self { hash: hex(&hash), salt }
    }

    /// Reads a verifier.
    ///
    /// # Errors
    /// When the text is none.
    pub fn parse(text: &str) -> Result<Self, VerifierError> {
        Self::parts(text).ok_or(VerifierError("SHA512"))
    }

    fn parts(text: &str) -> Option<Self> {
        let (hash, salt) = text.strip_prefix(SHA512_PREFIX)?.split_once(':')?;
        let hash = unhex(hash).filter(|hash| hash.len() == 64)?;
        Some(Self { hash: hex(&hash), salt: unhex(salt)?.try_into().ok()? })
    }

    /// The verifier as the catalog keeps it.
    pub fn text(&self) -> String {
        format!("{SHA512_PREFIX}{}:{}", self.hash, hex(&self.salt))
    }

    /// The salt of the user, which the client is told.
    pub fn salt(&self) -> [u8; SALT_BYTES] {
        self.salt
    }

    /// Whether this is the answer of a client that knows the password and was given this salt of the session.
    pub fn accepts(&self, session_salt: [u8; 4], answer: &[u8]) -> bool {
        let inner = Sha512::new().chain_update(&self.hash).chain_update(session_salt).finalize();
        let expected = format!("sha512{}", hex(&inner));
        expected.as_bytes().ct_eq(answer).into()
    }
}

/// The verifier of a password for clients of Vertica that can do no better than MD5: `md5:<hash>`, in hex, with
/// `hash = MD5(password || user)` (`reference/vertica-wire.md` §2). There is no salt but the user's name, as the client
/// writes it.
#[derive(Clone, PartialEq, Eq)]
pub struct Md5Verifier {
    /// In hex, because clients hash the digits and not the bytes.
    hash: String,
}

impl fmt::Debug for Md5Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Md5Verifier")
    }
}

impl Md5Verifier {
    /// The verifier of a user's password.
    pub fn make(password: &str, user: &str) -> Self {
        Self { hash: hex(&Md5::new().chain_update(password).chain_update(user).finalize()) }
    }

    /// As [`ScramVerifier::mock`], for those that [`MockSecret::chooses_md5`].
    pub fn mock(secret: &MockSecret, user: &str) -> Self {
        let hash = hmac(&secret.0, &[b"MD5 hash ", user.as_bytes()]);
        Self { hash: hex(&hash).chars().take(32).collect() }
    }

    /// Reads a verifier.
    ///
    /// # Errors
    /// When the text is none.
    pub fn parse(text: &str) -> Result<Self, VerifierError> {
        let hash = text.strip_prefix(MD5_PREFIX).and_then(unhex).filter(|hash| hash.len() == 16);
        hash.map(|hash| Self { hash: hex(&hash) }).ok_or(VerifierError("MD5"))
    }

    /// The verifier as the catalog keeps it.
    pub fn text(&self) -> String {
        format!("{MD5_PREFIX}{}", self.hash)
    }

    /// Whether this is the answer of a client that knows the password and was given this salt of the session.
    pub fn accepts(&self, session_salt: [u8; 4], answer: &[u8]) -> bool {
        self.answer(session_salt).as_bytes().ct_eq(answer).into()
    }

    /// What a client answers that knows the password and was given this salt of the session.
    pub fn answer(&self, session_salt: [u8; 4]) -> String {
        let inner = Md5::new().chain_update(&self.hash).chain_update(session_salt).finalize();
        format!("md5{}", hex(&inner))
    }
}

/// Both verifiers of a password as text, SCRAM-SHA-256 first, with new salts.
pub fn verifiers(password: &str, rng: &mut impl CryptoRng) -> (String, String) {
    verifiers_with(password, SCRAM_ITERATIONS, rng)
}

/// As [`verifiers`], with another number of iterations than [`SCRAM_ITERATIONS`].
pub fn verifiers_with(password: &str, iterations: u32, rng: &mut impl CryptoRng) -> (String, String) {
    let mut salts = [[0; SALT_BYTES]; 2];
    for salt in &mut salts {
        rng.fill_bytes(salt);
    }
    let [scram, sha512] = salts;
    (ScramVerifier::make(password, &scram, iterations).text(), Sha512Verifier::make(password, sha512).text())
}

/// The client's key and the server's that a password comes to. As in PostgreSQL, one that SASLprep refuses is used as it
/// is.
pub(crate) fn keys(password: &str, salt: &[u8], iterations: u32) -> (Zeroizing<Key>, Key) {
    let prepared = stringprep::saslprep(password).map(|text| Zeroizing::new(text.into_owned()));
    let password = prepared.as_ref().map_or(password, |prepared| prepared.as_str());
    let mut salted = Zeroizing::new(Key::default());
    pbkdf2::pbkdf2_hmac::<Sha256>(password.as_bytes(), salt, iterations, salted.as_mut());
    (Zeroizing::new(hmac(&salted, &[b"Client Key"])), hmac(&salted, &[b"Server Key"]))
}

/// HMAC-SHA-256 over the parts one after the other.
pub(crate) fn hmac(key: &Key, parts: &[&[u8]]) -> Key {
    // A key of one block cannot have a wrong length.
    let mut block = Zeroizing::new([0; 64]);
    for (byte, &key) in block.iter_mut().zip(key) {
        *byte = key;
    }
    let mut mac = Hmac::<Sha256>::new((&*block).into());
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

pub(crate) fn sha256(bytes: &[u8]) -> Key {
    Sha256::digest(bytes).into()
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.chars().map(|digit| digit.to_digit(16)?.try_into().ok()).collect::<Option<_>>()?;
    let (pairs, []) = digits.as_chunks() else { return None };
    Some(pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    /// Made by PostgreSQL 15's CREATE ROLE: a plain password, one that SASLprep changes, one that it refuses.
    const POSTGRESQL_15: [(&str, &str); 3] = [
        (
            "sekret",
            "SCRAM-SHA-256$4096:XvY2RkaYBWlUGIpLj/xSgg==$UHkte8fx2XcwFbjpAsLKN2KqV1NABlwVai7JO3k1TKo=:\
             H79GhFM5o6VE64Xh0/SqG08WIIAYH7If9C1ts1Ir6Bo=",
        ),
        (
            "I\u{ad}X \u{aa}\u{2168}",
            "SCRAM-SHA-256$4096:vbjVJBPEbUvDEG9wROJVgg==$RZ5f6yLnCdbsjrHCqDKns2JSbR6595cjcyxrnYVqTjE=:\
             NemO+CFs4FBxn8J6V1ZIYORPrGpjzRKwLQGmshFPf94=",
        ),
        (
            "\u{7}bell",
            "SCRAM-SHA-256$4096:ZRUBx9dfpbxpihIEYnCFGw==$CNV5Vg0dsC6mkP1yjwR9kQyxGdUu1K6h9yKlU4u+i3U=:\
             KHSfXKrsJ7WzNBLdMs4hsLBV0MlZi/B+85/KrUmu4Hg=",
        ),
    ];

    #[test]
    fn scram_is_postgresqls() {
        for (password, text) in POSTGRESQL_15 {
            let verifier = ScramVerifier::parse(text).unwrap();
            assert_eq!(verifier.text(), text);
            assert!(verifier.fits(password), "{password}");
            assert!(!verifier.fits("another"));
        }
    }

    #[test]
    fn broken_scram_verifiers_are_refused() {
        let good = ScramVerifier::make("x", b"0123456789abcdef", 1).text();
        assert!(ScramVerifier::parse(&good).is_ok());
        let refused =
            |text: &str| assert_eq!(ScramVerifier::parse(text), Err(VerifierError("SCRAM-SHA-256")), "{text}");
        refused("");
        refused("SCRAM-SHA-256$");
        refused(&good.replace("256", "512"));
        refused(&good.replace("$1:", "$0:"));
        refused(&good.replace("$1:", "$+1:"));
        refused(&good.replace("$1:", "$-1:"));
        refused(&good.replace("$1:", "$4294967296:"));
        refused(&format!("{good}="));
        refused(good.strip_suffix('=').unwrap());
        refused(&format!("{good}:"));
    }

    #[test]
    fn sha512_is_what_vertica_clients_answer() {
        let salt = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
        let verifier = Sha512Verifier::make("sekret", salt);
        let answer = "sha512202f476705cb5e9fb0a89f3b10dde6c51ed3f83b689ded5dd38de6a26609eadfabc5dd4b78ce7ae8a6736211ccbcb8\
                      5be72c119357698be739adf1d2499636fa";
        assert!(verifier.accepts([1, 2, 3, 4], answer.as_bytes()));
        assert!(!verifier.accepts([1, 2, 3, 5], answer.as_bytes()));
        assert!(!verifier.accepts([1, 2, 3, 4], b""));
        assert_eq!(verifier.salt(), salt);
        assert_eq!(Sha512Verifier::parse(&verifier.text()), Ok(verifier));
    }

    #[test]
    fn broken_sha512_verifiers_are_refused() {
        let good = Sha512Verifier::make("x", [7; 16]).text();
        assert!(Sha512Verifier::parse(&good.to_uppercase().replace("SHA512", "sha512")).is_ok());
        for bad in [&good[1..], &good[..good.len() - 1], &good[..good.len() - 2], "sha512:ab:cd", "sha512::", ""] {
            assert_eq!(Sha512Verifier::parse(bad), Err(VerifierError("SHA512")), "{bad}");
        }
        assert!(Sha512Verifier::parse(&format!("{good}07")).is_err());
    }

    #[test]
    fn md5_is_what_vertica_clients_answer() {
        let verifier = Md5Verifier::make("sekret", "alice");
        assert!(verifier.accepts([1, 2, 3, 4], b"md574ae1b152bc6907665e77f442aed3220"));
        assert!(!verifier.accepts([1, 2, 3, 5], b"md574ae1b152bc6907665e77f442aed3220"));
        assert!(!verifier.accepts([1, 2, 3, 4], b""));
        assert!(!Md5Verifier::make("sekret", "Alice").accepts([1, 2, 3, 4], b"md574ae1b152bc6907665e77f442aed3220"));
        assert_eq!(Md5Verifier::parse(&verifier.text()), Ok(verifier));
        for bad in ["", "md5:", "md5:00", "md574ae1b152bc6907665e77f442aed3220", &"md5:0".repeat(8)] {
            assert_eq!(Md5Verifier::parse(bad), Err(VerifierError("MD5")), "{bad}");
        }
    }

    #[test]
    fn some_of_those_who_are_not_there_are_asked_for_md5() {
        let secret = MockSecret::derive(b"of this server");
        let names: Vec<String> = (0..200).map(|number| format!("user{number}")).collect();
        let chosen = names.iter().filter(|name| secret.chooses_md5(name)).count();
        assert!((60..140).contains(&chosen), "{chosen}");
        assert!(names.iter().all(|name| secret.chooses_md5(name) == secret.chooses_md5(name)));
        let mock = Md5Verifier::mock(&secret, "mira");
        assert_eq!(Md5Verifier::parse(&mock.text()), Ok(mock));
    }

    #[test]
    fn both_verifiers_are_made_with_new_salts() {
        let mut rng = StdRng::seed_from_u64(1);
        let (scram, sha512) = verifiers("sekret", &mut rng);
        assert!(scram.starts_with("SCRAM-SHA-256$4096:"));
        assert!(ScramVerifier::parse(&scram).unwrap().fits("sekret"));
        let again = verifiers("sekret", &mut rng);
        assert_ne!(scram, again.0);
        assert_ne!(sha512, again.1);
        assert!(verifiers_with("sekret", 10, &mut rng).0.starts_with("SCRAM-SHA-256$10:"));
    }

    #[test]
    fn mocks_are_constant_and_differ_by_user_and_secret() {
        let secret = MockSecret::derive(b"of this server");
        let mock = |secret: &MockSecret, user: &str| ScramVerifier::mock(secret, user, 4096).text();
        assert_eq!(mock(&secret, "mira"), mock(&secret, "mira"));
        assert_ne!(mock(&secret, "mira"), mock(&secret, "nora"));
        assert_ne!(mock(&secret, "mira"), mock(&MockSecret::derive(b"of another"), "mira"));
        assert_eq!(ScramVerifier::mock(&secret, "mira", 4096).salt.len(), SALT_BYTES);
        let mock = |user: &str| Sha512Verifier::mock(&secret, user);
        assert_eq!(mock("mira"), mock("mira"));
        assert_ne!(mock("mira").salt(), mock("nora").salt());
        assert_eq!(Sha512Verifier::parse(&mock("mira").text()), Ok(mock("mira")));
    }

    #[test]
    fn nothing_is_shown() {
        let verifier = ScramVerifier::make("sekret", b"salt", 1);
        assert_eq!(format!("{verifier:?}"), "ScramVerifier { iterations: 1, .. }");
        assert_eq!(format!("{:?}", Sha512Verifier::make("sekret", [0; 16])), "Sha512Verifier");
        assert_eq!(format!("{:?}", Md5Verifier::make("sekret", "mira")), "Md5Verifier");
    }

    proptest! {
        #[test]
        fn no_text_panics(text: String, tail in "[0-9a-f:$=]{0,200}") {
            for text in [text.clone(), format!("{SCRAM_PREFIX}{text}"), format!("{SCRAM_PREFIX}{tail}"), format!("{SHA512_PREFIX}{tail}")] {
                let _ = ScramVerifier::parse(&text);
                let _ = Sha512Verifier::parse(&text);
                let _ = Md5Verifier::parse(&text);
            }
        }

        #[test]
        fn any_password_fits_its_verifier(password: String, salt in prop::collection::vec(any::<u8>(), 1..40)) {
            let verifier = ScramVerifier::make(&password, &salt, 2);
            prop_assert!(verifier.fits(&password));
            prop_assert_eq!(ScramVerifier::parse(&verifier.text()), Ok(verifier));
        }
    }
}
