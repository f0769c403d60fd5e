//! Whose startup packet it is, and what it asks for (`reference/vertica-wire.md` §1.3, §6).

use crate::error::WireError;
use crate::startup::{Startup, Version};

/// The newest version spoken here.
pub const VERSION_MAX: Version = Version { major: 3, minor: 16 };

/// The minor versions that only Vertica's startup packets have. PostgreSQL's are below; 9999 is its clients' way to try
/// out what servers do.
const MINORS: std::ops::RangeInclusive<u16> = 5..=99;

/// Parameters that no client of PostgreSQL sends.
const SIGNS: [&str; 5] = ["protocol_version", "client_type", "client_version", "client_pid", "client_os"];

/// Whether `protocol_version` is a number in packets of this version, and not a text.
pub(crate) fn has_numbered_version(version: Version) -> bool {
    MINORS.contains(&version.minor)
}

/// What the names of parameters have in them whose values nobody may see: drivers send whatever their users set.
const SECRETS: [&str; 9] =
    ["passw", "pwd", "passphrase", "token", "totp", "secret", "credential", "jwt", "private_key"];

/// Whether a startup parameter is a secret, and must not be shown or logged.
pub fn is_secret(parameter: &str) -> bool {
    let folded = parameter.to_ascii_lowercase();
    SECRETS.iter().any(|secret| folded.contains(secret))
}

/// What a client of Vertica asks for when it connects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wishes {
    /// The newest version it speaks.
    pub requested: Version,
    /// The version both will speak, which it must be told by ParameterStatus `protocol_version`.
    pub effective: Version,
    /// Whether each of its statements shall commit by itself. Without a word of the client: no.
    pub autocommit: bool,
    /// Whether results shall come in binary, those of the simple protocol too.
    pub binary: bool,
}

impl Wishes {
    /// Reads a startup packet; nothing when it is one of PostgreSQL. Whoever asked for a better server before speaks
    /// Vertica's protocol for certain.
    ///
    /// # Errors
    /// When the client wants a version older than 3.
    pub fn of(startup: &Startup, asked_load_balance: bool) -> Result<Option<Self>, WireError> {
        if !asked_load_balance && !is_vertica(startup) {
            return Ok(None);
        }
        let is_on = |name, on: &[&str]| {
            startup.parameter(name).is_some_and(|value| on.iter().any(|on| on.eq_ignore_ascii_case(value)))
        };
        let named = startup.parameter("protocol_version").and_then(|code| code.parse().ok()).map(Version::of_code);
        let requested = named.unwrap_or(startup.version);
        if requested.major < VERSION_MAX.major {
            return Err(WireError::VersionVertica(requested));
        }
        Ok(Some(Self {
            requested,
            effective: requested.min(VERSION_MAX),
            autocommit: is_on("autocommit", &["on", "true", "1"]),
            binary: is_on("binary_data_protocol", &["1"]),
        }))
    }
}

fn is_vertica(startup: &Startup) -> bool {
    match startup.parameter("protocol_compat") {
        Some("VER") => true,
        Some("PG") => false,
        _ => SIGNS.iter().any(|sign| startup.parameter(sign).is_some()) || has_numbered_version(startup.version),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::startup::STARTUP_BYTES_MAX;
    use crate::{Untyped, untyped};

    fn read(bytes: &[u8]) -> Startup {
        match untyped(bytes, STARTUP_BYTES_MAX) {
            Ok(Some((Untyped::Startup(startup), len))) if len == bytes.len() => startup,
            other => unreachable!("{other:?}"),
        }
    }

    fn packet(code: u32, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 8).unwrap();
        [&length.to_be_bytes()[..], &code.to_be_bytes(), body].concat()
    }

    const FIXED: u32 = 0x0003_0005;

    /// The parameters of a client, in its order.
    fn startup(minor: u16, parameters: &[(&str, &str)]) -> Startup {
        let own = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        Startup { version: Version { major: 3, minor }, parameters: parameters.iter().map(own).collect() }
    }

    #[test]
    fn the_version_is_a_number_between_texts() {
        let first = packet(FIXED, b"protocol_version\0\0\x03\0\x10\0user\0mira\0autocommit\0off\0\0");
        let last = packet(FIXED, b"user\0mira\0database\0\0protocol_version\0\0\x03\0\x0f\0\0");
        let zero = packet(FIXED, b"protocol_version\0\0\x03\0\0\0user\0mira\0\0");
        for (bytes, code, count) in [(first, "196624", 3), (last, "196623", 3), (zero, "196608", 2)] {
            let startup = read(&bytes);
            assert_eq!(startup.parameter("protocol_version"), Some(code));
            assert_eq!(startup.parameter("user"), Some("mira"));
            assert_eq!(startup.parameters.len(), count);
        }
        for cut in [&b"protocol_version\0\0\x03\0\x10"[..], b"protocol_version\0\0\x03\0\x10\x01\0"] {
            assert_eq!(untyped(&packet(FIXED, cut), STARTUP_BYTES_MAX), Err(WireError::Terminator), "{cut:?}");
        }
    }

    #[test]
    fn postgresql_has_texts_only() {
        let startup = read(&packet(Version::V3_0.code(), b"protocol_version\x003.16\0user\0mira\0\0"));
        assert_eq!(startup.parameter("protocol_version"), Some("3.16"));
        assert_eq!(startup.parameter("user"), Some("mira"));
    }

    #[test]
    fn clients_are_told_apart() {
        let vertica = |startup: &Startup| Wishes::of(startup, false).unwrap().is_some();
        assert!(vertica(&startup(5, &[("user", "mira")])));
        assert!(vertica(&startup(16, &[])));
        assert!(vertica(&startup(0, &[("client_type", "JDBC Driver")])));
        assert!(vertica(&startup(0, &[("protocol_compat", "VER")])));
        assert!(!vertica(&startup(5, &[("protocol_compat", "PG"), ("client_type", "x")])));
        for minor in [0, 1, 2, 3, 9999] {
            assert!(
                !vertica(&startup(minor, &[("user", "mira"), ("workload", "w"), ("client_label", "l")])),
                "{minor}"
            );
        }
        assert!(Wishes::of(&startup(0, &[("user", "mira")]), true).unwrap().is_some());
    }

    #[test]
    fn the_lower_version_is_spoken() {
        for (named, effective) in [
            (Some("196624"), 196_624),
            (Some("196623"), 196_623),
            (Some("196700"), 196_624),
            (Some("262144"), 196_624),
            (None, 196_613),
        ] {
            let mut startup = startup(5, &[]);
            startup.parameters.extend(named.map(|named| ("protocol_version".to_owned(), named.to_owned())));
            let wishes = Wishes::of(&startup, false).unwrap().unwrap();
            assert_eq!(wishes.effective.code(), effective, "{named:?}");
        }
        let old = startup(5, &[("protocol_version", "131072")]);
        let error = Wishes::of(&old, false).unwrap_err();
        assert_eq!(error.to_string(), "unsupported frontend protocol 2.0: server supports 3.0 to 3.16");
    }

    #[test]
    fn wishes_are_off_unless_said() {
        let wishes = |parameters: &[_]| Wishes::of(&startup(5, parameters), false).unwrap().unwrap();
        let none = wishes(&[]);
        assert!(!none.autocommit && !none.binary);
        let all = wishes(&[("autocommit", "on"), ("binary_data_protocol", "1")]);
        assert!(all.autocommit && all.binary);
        assert!(!wishes(&[("autocommit", "off"), ("binary_data_protocol", "0")]).autocommit);
        for secret in
            ["oauth_access_token", "password", "Password", "OldPassword", "pwd", "sslpassphrase", "client_secret"]
        {
            assert!(is_secret(secret), "{secret}");
        }
        for shown in ["user", "client_label", "workload", "protocol_version", "auth_category"] {
            assert!(!is_secret(shown), "{shown}");
        }
    }

    proptest! {
        #[test]
        fn no_packet_panics(minor: u16, body: Vec<u8>, asked: bool) {
            let packet = packet(3 << 16 | u32::from(minor), &body);
            if let Ok(Some((Untyped::Startup(startup), _))) = untyped(&packet, STARTUP_BYTES_MAX)
                && let Ok(Some(wishes)) = Wishes::of(&startup, asked)
            {
                prop_assert!(wishes.effective <= wishes.requested && wishes.effective <= VERSION_MAX);
            }
        }

        #[test]
        fn what_is_written_is_read(list in prop::collection::btree_map("[a-z]{1,8}_", "[^\0]{0,20}", 0..8), code: u32, at in 0..8_usize) {
            let mut body = Vec::new();
            for (index, (name, value)) in list.iter().enumerate() {
                if index == at.min(list.len()) {
                    body.extend_from_slice(&[b"protocol_version\0", &code.to_be_bytes()[..], b"\0"].concat());
                }
                body.extend_from_slice(format!("{name}\0{value}\0").as_bytes());
            }
            if at >= list.len() {
                body.extend_from_slice(&[b"protocol_version\0", &code.to_be_bytes()[..], b"\0"].concat());
            }
            body.push(0);
            let startup = read(&packet(FIXED, &body));
            let named = startup.parameter("protocol_version").map(str::to_owned);
            prop_assert_eq!(named, Some(code.to_string()));
            for (name, value) in &list {
                prop_assert_eq!(startup.parameter(name), Some(value.as_str()));
            }
        }
    }
}
