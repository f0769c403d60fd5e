//! The keys of one cluster, in families that no key of another kind is in.

use rand::Rng;

/// How many digits a version has in a key, so that keys are in the order of versions.
const DIGITS: usize = 20;

/// Names keys.
#[derive(Debug, Clone)]
pub(super) struct Keys {
    prefix: String,
}

/// What a commit or a snapshot of some version is staged as: the version, and a number used once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StageId(pub(super) String);

impl StageId {
    pub(super) fn new(version: u64, nonce: &str) -> Self {
        Self(format!("{}-{nonce}", digits(version)))
    }

    pub(super) fn version(&self) -> Option<u64> {
        self.0.get(..DIGITS)?.parse().ok()
    }

    pub(super) fn nonce(&self) -> Option<&str> {
        self.0.get(DIGITS..)?.strip_prefix('-')
    }
}

/// Keys from the first on, up to the second and without it.
pub(super) type KeyRange = (String, String);

impl Keys {
    pub(super) fn new(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned() }
    }

    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    pub(super) fn head(&self) -> String {
        format!("{}head", self.prefix)
    }

    pub(super) fn log(&self, version: u64) -> String {
        format!("{}log/{}", self.prefix, digits(version))
    }

    /// From one version on up to another, without that.
    pub(super) fn log_range(&self, from: u64, below: u64) -> KeyRange {
        (self.log(from), self.log(below))
    }

    pub(super) fn log_family(&self) -> String {
        format!("{}log/", self.prefix)
    }

    /// The parts of all commits from one version on up to another, without that.
    pub(super) fn parts_range(&self, from: u64, below: u64) -> KeyRange {
        (format!("{}parts/{}", self.prefix, digits(from)), format!("{}parts/{}", self.prefix, digits(below)))
    }

    /// A family, `parts` or `snapshot`, and one of what is staged in it.
    pub(super) fn staged(&self, family: &str, id: &StageId) -> KeyRange {
        // '0' follows '/'.
        (format!("{}{family}/{}/", self.prefix, id.0), format!("{}{family}/{}0", self.prefix, id.0))
    }

    pub(super) fn part(&self, family: &str, id: &StageId, section: &str, part: u32) -> String {
        format!("{}{family}/{}/{section}{part:08}", self.prefix, id.0)
    }

    /// All parts of one section.
    pub(super) fn section(&self, family: &str, id: &StageId, section: &str) -> KeyRange {
        let start = format!("{}{family}/{}/{section}", self.prefix, id.0);
        // ':' follows '9'.
        (format!("{start}0"), format!("{start}:"))
    }

    /// There as long as whoever stages lives, and nothing was made of it yet.
    pub(super) fn marker(&self, family: &str, id: &StageId) -> String {
        format!("{}stage/{family}-{}", self.prefix, id.0)
    }

    pub(super) fn family(&self, family: &str) -> KeyRange {
        (format!("{}{family}/", self.prefix), format!("{}{family}0", self.prefix))
    }

    /// What is staged under a key of a family.
    pub(super) fn stage_of(&self, family: &str, key: &str) -> Option<StageId> {
        let rest = key.strip_prefix(self.prefix.as_str())?.strip_prefix(family)?.strip_prefix('/')?;
        Some(StageId(rest.split('/').next()?.to_owned()))
    }

    /// How many refusals were ever noted.
    pub(super) fn refusals(&self) -> String {
        format!("{}refusals", self.prefix)
    }

    /// Refusals noted together, by how many there were ever with them.
    pub(super) fn refused(&self, total: u64) -> String {
        format!("{}refused/{}", self.prefix, digits(total))
    }

    /// Whether a key may be there before the first commit.
    pub(super) fn may_precede(&self, key: &str) -> bool {
        const FAMILIES: [&str; 6] = ["members/", "parts/", "refusals", "refused/", "snapshot/", "stage/"];
        let rest = key.strip_prefix(self.prefix.as_str()).unwrap_or_default();
        FAMILIES.iter().any(|family| rest.starts_with(family))
    }
}

fn digits(version: u64) -> String {
    format!("{version:0DIGITS$}")
}

/// A number used once, as text.
pub(crate) fn nonce() -> String {
    format!("{:032x}", rand::rng().next_u64() as u128 | (rand::rng().next_u64() as u128) << 64)
}
