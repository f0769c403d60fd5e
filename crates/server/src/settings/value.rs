//! The types of settings' values: each knows how it is read and what it expects.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use ipnet::IpNet;
use switchyard_catalog::{Name, Secret};
use switchyard_session::TlsVersion;
use tracing_subscriber::EnvFilter;

use super::declaration::DefaultValue;
use super::fault::ValueError;

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// One text.
    Text,
    /// One integer.
    Integer,
    /// Texts.
    List,
    /// As flags and variables give it: whatever is wanted.
    Untyped,
    /// Something TOML has and no setting takes.
    Other(&'static str),
}

impl Shape {
    /// Whether a setting of this shape can take a value of that one.
    pub(super) fn takes(self, found: Self) -> bool {
        self == found || found == Self::Untyped || (self, found) == (Self::List, Self::Text)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text | Self::Untyped => "a string",
            Self::Integer => "an integer",
            Self::List => "an array of strings",
            Self::Other(other) => other,
        })
    }
}

/// A type that settings have.
pub(super) trait Setting: Sized {
    /// How it is written.
    const SHAPE: Shape = Shape::Text;
    /// What it expects, in words.
    const EXPECTS: &'static str;
    /// What stands for it in the help.
    const PLACEHOLDER: &'static str;
    /// Whether it must not be shown.
    const SECRET: bool = false;
    /// The least and the greatest, for numbers.
    const RANGE: Option<(u64, u64)> = None;

    /// Reads one text.
    fn parse(text: &str) -> Result<Self, ValueError>;

    /// Reads what was given, at least one text.
    fn read(texts: &[String]) -> Result<Self, ValueError> {
        match texts {
            [text] => Self::parse(text),
            _ => Err(ValueError::Expected(Self::EXPECTS)),
        }
    }

    /// The value when there is none.
    fn absent() -> Option<Self> {
        None
    }
}

/// The value given, or the default. `None` when it is wrong.
pub(super) fn value_of<T: Setting>(given: Option<&[String]>, default: DefaultValue) -> Option<T> {
    match (given, default) {
        (Some(texts), _) => T::read(texts).ok(),
        (None, DefaultValue::Text(text)) => T::read(&[text.to_owned()]).ok(),
        (None, DefaultValue::Absent(_)) => T::absent(),
    }
}

impl<T: Setting> Setting for Option<T> {
    const SHAPE: Shape = T::SHAPE;
    const RANGE: Option<(u64, u64)> = T::RANGE;
    const EXPECTS: &'static str = T::EXPECTS;
    const PLACEHOLDER: &'static str = T::PLACEHOLDER;
    const SECRET: bool = T::SECRET;

    fn parse(text: &str) -> Result<Self, ValueError> {
        T::parse(text).map(Some)
    }

    fn absent() -> Option<Self> {
        Some(None)
    }
}

impl Setting for PathBuf {
    const EXPECTS: &'static str = "a path";
    const PLACEHOLDER: &'static str = "PATH";

    fn parse(text: &str) -> Result<Self, ValueError> {
        if text.is_empty() { Err(ValueError::Expected(Self::EXPECTS)) } else { Ok(text.into()) }
    }
}

impl Setting for Name {
    const EXPECTS: &'static str = "a name";
    const PLACEHOLDER: &'static str = "NAME";

    fn parse(text: &str) -> Result<Self, ValueError> {
        Ok(Self::parse(text)?)
    }
}

impl Setting for Vec<SocketAddr> {
    const SHAPE: Shape = Shape::List;
    const EXPECTS: &'static str = "an IP address and a port, such as 127.0.0.1:5433 or [::1]:5433";
    const PLACEHOLDER: &'static str = "ADDR:PORT";

    fn parse(text: &str) -> Result<Self, ValueError> {
        text.parse().map(|address| vec![address]).map_err(|_| ValueError::Expected(Self::EXPECTS))
    }

    fn read(texts: &[String]) -> Result<Self, ValueError> {
        let addresses = texts.iter().map(|text| Self::parse(text)).collect::<Result<Vec<_>, _>>()?.concat();
        if addresses.is_empty() { Err(ValueError::Expected(Self::EXPECTS)) } else { Ok(addresses) }
    }

    fn absent() -> Option<Self> {
        Some(Vec::new())
    }
}

/// Networks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Networks(pub(crate) Vec<IpNet>);

impl Setting for Networks {
    const SHAPE: Shape = Shape::List;
    const EXPECTS: &'static str = "a network, such as 10.0.0.0/8 or fd00::/8";
    const PLACEHOLDER: &'static str = "NETWORK";

    fn parse(text: &str) -> Result<Self, ValueError> {
        text.parse().map(|network| Self(vec![network])).map_err(|_| ValueError::Expected(Self::EXPECTS))
    }

    fn read(texts: &[String]) -> Result<Self, ValueError> {
        let networks = texts.iter().map(|text| Self::parse(text).map(|networks| networks.0));
        Ok(Self(networks.collect::<Result<Vec<_>, _>>()?.concat()))
    }

    fn absent() -> Option<Self> {
        Some(Self(Vec::new()))
    }
}

/// A host name or IP address, and a port that is not 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostPort {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl HostPort {
    /// A host is an IP address or a name of letters, digits, dots, hyphens and underscores.
    fn split(text: &str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let port = port.parse().ok().filter(|port| *port != 0)?;
        let host = match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(inner) => inner.parse::<Ipv6Addr>().ok()?.to_string(),
            None => host.to_owned(),
        };
        let is_name = !host.is_empty()
            && host.len() <= 253
            && host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'));
        let unspecified = host.parse::<IpAddr>().is_ok_and(|address| address.is_unspecified());
        ((is_name || host.parse::<Ipv6Addr>().is_ok() && text.starts_with('[')) && !unspecified)
            .then_some(Self { host, port })
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

impl Setting for HostPort {
    const EXPECTS: &'static str = "a host that others can reach and a port, such as 10.0.0.5:5433";
    const PLACEHOLDER: &'static str = "ADDR:PORT";

    fn parse(text: &str) -> Result<Self, ValueError> {
        Self::split(text).ok_or(ValueError::Expected(Self::EXPECTS))
    }
}

/// Which store is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoreKind {
    Redb,
    /// With the endpoints that were named with it.
    Etcd(Vec<String>),
    Memory,
}

impl StoreKind {
    /// What it is called.
    pub(crate) fn as_str(&self) -> &'static str {
        match self {
            Self::Redb => "redb",
            Self::Etcd(_) => "etcd",
            Self::Memory => "memory",
        }
    }

    /// Whether several processes share it.
    pub(crate) fn is_etcd(&self) -> bool {
        matches!(self, Self::Etcd(_))
    }
}

impl Setting for StoreKind {
    const EXPECTS: &'static str = "\"redb\", \"etcd\", \"memory\" or etcd://HOST:PORT";
    const PLACEHOLDER: &'static str = "redb|etcd|memory";

    fn parse(text: &str) -> Result<Self, ValueError> {
        match text {
            "redb" => Ok(Self::Redb),
            "memory" => Ok(Self::Memory),
            "etcd" => Ok(Self::Etcd(Vec::new())),
            other => match other.strip_prefix("etcd://") {
                Some(places) => Ok(Self::Etcd(places.split(',').map(|place| place.trim().to_owned()).collect())),
                None => Err(ValueError::Expected(Self::EXPECTS)),
            },
        }
    }
}

/// Where etcd is: as given, looked at when it is known whether TLS is spoken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoints(pub(crate) Vec<String>);

impl Setting for Endpoints {
    const SHAPE: Shape = Shape::List;
    const EXPECTS: &'static str = "http://HOST:PORT or https://HOST:PORT";
    const PLACEHOLDER: &'static str = "URL";

    fn parse(text: &str) -> Result<Self, ValueError> {
        let given: Vec<String> = text.split(',').map(|url| url.trim().trim_end_matches('/').to_owned()).collect();
        let empty = given.iter().any(String::is_empty);
        if empty { Err(ValueError::Expected(Self::EXPECTS)) } else { Ok(Self(given)) }
    }

    fn read(texts: &[String]) -> Result<Self, ValueError> {
        let given = texts.iter().map(|text| Self::parse(text).map(|given| given.0));
        Ok(Self(given.collect::<Result<Vec<_>, _>>()?.concat()))
    }

    fn absent() -> Option<Self> {
        Some(Self(Vec::new()))
    }
}

/// What keys in etcd begin with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyPrefix(pub(crate) String);

impl Setting for KeyPrefix {
    const EXPECTS: &'static str = "a slash and a path, such as /switchyard";
    const PLACEHOLDER: &'static str = "PREFIX";

    fn parse(text: &str) -> Result<Self, ValueError> {
        if text.starts_with('/') { Ok(Self(text.to_owned())) } else { Err(ValueError::Expected(Self::EXPECTS)) }
    }
}

/// The URL of a PostgreSQL server. It may hold a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Upstream(pub(crate) Secret);

impl Setting for Upstream {
    const EXPECTS: &'static str = "a URL that begins with postgresql://";
    const PLACEHOLDER: &'static str = "postgresql://...";
    const SECRET: bool = true;

    fn parse(text: &str) -> Result<Self, ValueError> {
        let rest = ["postgresql://", "postgres://"].iter().find_map(|scheme| text.strip_prefix(scheme));
        match rest {
            Some(rest) if !rest.is_empty() && !text.chars().any(|c| c.is_control() || c == ' ') => {
                Ok(Self(Secret::new(text)))
            }
            _ => Err(ValueError::Expected(Self::EXPECTS)),
        }
    }
}

/// The first password of the superuser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Password(pub(crate) Secret);

impl Setting for Password {
    const EXPECTS: &'static str = "at least one character and no NUL";
    const PLACEHOLDER: &'static str = "PASSWORD";
    const SECRET: bool = true;

    fn parse(text: &str) -> Result<Self, ValueError> {
        if text.is_empty() || text.contains('\0') {
            return Err(ValueError::Expected(Self::EXPECTS));
        }
        Ok(Self(Secret::new(text)))
    }
}

/// Which events are logged: a filter that is known to be well formed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogFilter(String);

impl LogFilter {
    /// The filter to log with.
    pub(crate) fn filter(&self) -> EnvFilter {
        EnvFilter::builder().parse_lossy(&self.0)
    }
}

impl Setting for LogFilter {
    const EXPECTS: &'static str = "a level, or target=level with commas between";
    const PLACEHOLDER: &'static str = "LEVEL";

    fn parse(text: &str) -> Result<Self, ValueError> {
        // A bare word that is no level would be taken as a target, and "inof" would silence the log.
        for part in text.split(',') {
            let level = part.rsplit('=').next().unwrap_or_default();
            if level.parse::<tracing_subscriber::filter::LevelFilter>().is_err() {
                return Err(ValueError::Expected(Self::EXPECTS));
            }
        }
        match EnvFilter::builder().parse(text) {
            Ok(_) => Ok(Self(text.to_owned())),
            Err(source) => Err(ValueError::LogFilter(source.to_string())),
        }
    }
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

impl Setting for LogFormat {
    const EXPECTS: &'static str = "\"text\" or \"json\"";
    const PLACEHOLDER: &'static str = "text|json";

    fn parse(text: &str) -> Result<Self, ValueError> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err(ValueError::Expected(Self::EXPECTS)),
        }
    }
}

impl Setting for TlsVersion {
    const EXPECTS: &'static str = "\"1.2\" or \"1.3\"";
    const PLACEHOLDER: &'static str = "1.2|1.3";

    fn parse(text: &str) -> Result<Self, ValueError> {
        match text {
            "1.2" => Ok(Self::V1_2),
            "1.3" => Ok(Self::V1_3),
            _ => Err(ValueError::Expected(Self::EXPECTS)),
        }
    }
}

/// An integer between two bounds, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounded<const MIN: u64, const MAX: u64>(pub(crate) u64);

impl<const MIN: u64, const MAX: u64> Bounded<MIN, MAX> {
    /// As a number of things in memory.
    pub(crate) fn count(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl<const MIN: u64, const MAX: u64> Setting for Bounded<MIN, MAX> {
    const SHAPE: Shape = Shape::Integer;
    const EXPECTS: &'static str = "an integer";
    const PLACEHOLDER: &'static str = "N";
    const RANGE: Option<(u64, u64)> = Some((MIN, MAX));

    fn parse(text: &str) -> Result<Self, ValueError> {
        let number: i128 = text.parse().map_err(|_| ValueError::Expected(Self::EXPECTS))?;
        match u64::try_from(number) {
            Ok(number) if (MIN..=MAX).contains(&number) => Ok(Self(number)),
            _ => Err(ValueError::Range { min: MIN, max: MAX }),
        }
    }
}
