//! Names of catalog objects.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

/// The name of a catalog object: shown as it was typed, compared without regard to case
/// (`reference/vertica-sql.md`, "Shared conventions").
#[derive(Clone)]
pub struct Name {
    shown: Arc<str>,
    /// The folded form, when it differs from the shown one.
    folded: Option<Arc<str>>,
}

/// Why a text is no name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NameError {
    /// The text is empty.
    #[error("zero-length name")]
    Empty,
    /// The text is longer than [`Name::BYTES_MAX`] bytes.
    #[error("name \"{0}\" is longer than {max} bytes", max = Name::BYTES_MAX)]
    TooLong(String),
    /// The text holds a control character.
    #[error("name {0:?} contains a control character")]
    Control(String),
}

impl Name {
    /// The longest name, in bytes of UTF-8.
    pub const BYTES_MAX: usize = 128;

    /// Takes a text as a name.
    ///
    /// # Errors
    /// When it is empty, longer than [`Name::BYTES_MAX`] or holds a control character.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        if text.is_empty() {
            return Err(NameError::Empty);
        }
        if text.len() > Self::BYTES_MAX {
            return Err(NameError::TooLong(text.chars().take(40).collect()));
        }
        if text.chars().any(char::is_control) {
            return Err(NameError::Control(text.to_owned()));
        }
        let folded = text.to_lowercase();
        Ok(Self { folded: (folded != text).then(|| folded.into()), shown: text.into() })
    }

    /// A name this crate writes itself, which a test parses.
    pub(crate) fn known(text: &'static str) -> Self {
        let folded = text.to_lowercase();
        Self { folded: (folded != text).then(|| folded.into()), shown: text.into() }
    }

    /// The name as it was typed.
    pub fn as_str(&self) -> &str {
        &self.shown
    }

    /// The form in which names are compared.
    pub fn folded(&self) -> &str {
        self.folded.as_deref().unwrap_or(&self.shown)
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.folded() == other.folded()
    }
}

impl Eq for Name {}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        self.folded().cmp(other.folded())
    }
}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.folded().hash(state);
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.shown)
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.shown)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}
