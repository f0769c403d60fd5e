//! What can be wrong with settings, and where.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use switchyard_catalog::NameError;
use switchyard_store::EtcdOptionsError;
use thiserror::Error;

use super::value::Shape;

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// Nowhere: it is the default.
    Default,
    /// A line of a file; no line when it is the file as a whole.
    File { path: PathBuf, line: Option<usize> },
    /// A variable, by its name.
    Variable(String),
    /// A flag, with its dashes.
    Flag(String),
}

impl Place {
    /// What kind of place it is.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::File { .. } => "file",
            Self::Variable(_) => "variable",
            Self::Flag(_) => "flag",
        }
    }

    /// This place, or the other one when this is the default.
    pub(super) fn or(self, other: Self) -> Self {
        if self == Self::Default { other } else { self }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line: Some(line) } => write!(f, "{}:{line}", path.display()),
            Self::File { path, line: None } => write!(f, "{}", path.display()),
            Self::Variable(name) => f.write_str(name),
            Self::Flag(flag) => f.write_str(flag),
        }
    }
}

/// A fault and its place.
#[derive(Debug, Error)]
#[error("{place}: {fault}")]
pub(crate) struct Located {
    pub(crate) place: Place,
    pub(crate) fault: Fault,
}

/// What is wrong.
#[derive(Debug, PartialEq, Eq, Error)]
pub(crate) enum Fault {
    #[error("cannot read the file: {0}")]
    Unreadable(String),
    #[error("syntax error: {0}")]
    Syntax(String),
    #[error("unknown setting \"{name}\"{}", meant(nearest.as_deref()))]
    UnknownKey { name: String, nearest: Option<String> },
    #[error("unknown variable{}", meant(nearest.as_deref()))]
    UnknownVariable { nearest: Option<String> },
    #[error("\"{name}\" cannot be set in a file; use {instead}")]
    NotInFile { name: &'static str, instead: String },
    #[error("the value is not valid UTF-8")]
    NotUtf8,
    #[error("\"{name}\" takes {expected}, not {found}")]
    WrongShape { name: &'static str, expected: Shape, found: Shape },
    #[error("{}", invalid(name, shown.as_deref(), source))]
    Invalid { name: &'static str, shown: Option<String>, source: ValueError },
    #[error("{0} is listened on twice")]
    ListenedTwice(SocketAddr),
    #[error("{} is not a directory", .0.display())]
    NotADirectory(PathBuf),
    #[error("\"{lesser}\" is greater than \"{greater}\"")]
    Order { lesser: &'static str, greater: &'static str },
    #[error("\"{name}\" is of no use without \"{other}\"")]
    Alone { name: &'static str, other: &'static str },
    #[error(transparent)]
    Etcd(EtcdOptionsError),
    #[error("no node name can be made from the database's; set \"node\"")]
    NodeName(#[source] NameError),
}

/// What is wrong with one value.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum ValueError {
    #[error("expected {0}")]
    Expected(&'static str),
    #[error("must be between {min} and {max}")]
    Range { min: u64, max: u64 },
    #[error(transparent)]
    Name(#[from] NameError),
    #[error("{0}")]
    LogFilter(String),
}

fn meant(nearest: Option<&str>) -> String {
    nearest.map(|word| format!("; did you mean \"{word}\"?")).unwrap_or_default()
}

fn invalid(name: &str, shown: Option<&str>, source: &ValueError) -> String {
    match (source, shown) {
        (_, Some(shown)) => format!("invalid value \"{shown}\" for \"{name}\": {source}"),
        (_, None) => format!("invalid value for \"{name}\": {source}"),
    }
}
