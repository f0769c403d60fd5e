//! What is in the values: JSON. The module above says how they hang together.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use switchyard_catalog::Delta;
use thiserror::Error;

use crate::contract::{Commit, HistoryEntry, Record};

/// The format this program writes, and the newest it reads.
pub(super) const FORMAT: u64 = 1;
/// What is longer is staged in parts.
pub(super) const INLINE_BYTES_MAX: usize = 64 * 1024;
/// How long a part is: well below the 1.5 MiB of a request.
pub(super) const PART_BYTES: usize = 512 * 1024;
/// What etcd keeps for a key besides the value, roughly.
const KEY_BYTES: u64 = 128;

/// A value that is not what was written. Nothing of it is shown: it may be a secret.
#[derive(Debug, Error)]
pub(crate) enum ValueError {
    #[error("key \"{key}\" has a value that makes no sense at byte {byte}")]
    Garbage { key: String, byte: usize },
    #[error("key \"{key}\" has format {found}; this program reads up to {FORMAT}")]
    Newer { key: String, found: u64 },
    #[error("key \"{key}\" is missing")]
    Missing { key: String },
}

/// What is newest, and where it is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) format: u64,
    /// 0 before the first commit.
    pub(super) version: u64,
    pub(super) id_next: u64,
    /// The oldest version that history keeps.
    pub(super) oldest: u64,
    /// The oldest version whose entry is there: older than `oldest` while no snapshot stands for it.
    pub(super) kept_from: u64,
    /// What the newest commit was made with.
    pub(super) nonce: String,
    pub(super) snapshot: Option<Snapshot>,
    /// How much was written since the snapshot.
    pub(super) log_bytes: u64,
    /// Raised to make sure that a commit whose answer was lost does not come after all.
    pub(super) fence: u64,
}

/// Every entity of a version.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Snapshot {
    pub(super) version: u64,
    pub(super) id_next: u64,
    pub(super) nonce: String,
    pub(super) parts: u32,
    pub(super) bytes: u64,
}

#[derive(Deserialize)]
struct FormatOnly {
    format: u64,
}

impl Head {
    /// Before the first commit.
    pub(super) fn empty() -> Self {
        Self {
            format: FORMAT,
            version: 0,
            id_next: 0,
            oldest: 0,
            kept_from: 1,
            nonce: String::new(),
            snapshot: None,
            log_bytes: 0,
            fence: 0,
        }
    }

    pub(super) fn parse(key: &str, value: &[u8]) -> Result<Self, ValueError> {
        let FormatOnly { format } = parse(key, value)?;
        if format > FORMAT {
            return Err(ValueError::Newer { key: key.to_owned(), found: format });
        }
        parse(key, value)
    }

    /// The version that entries are read from on top of the snapshot.
    pub(super) fn snapshot_version(&self) -> u64 {
        self.snapshot.as_ref().map_or(0, |snapshot| snapshot.version)
    }
}

/// A list in the entry itself, or in parts of its own.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Kept<T> {
    Here(Vec<T>),
    Parts { parts: u32, bytes: u64 },
}

/// One commit.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) version: u64,
    pub(super) id_next: u64,
    pub(super) nonce: String,
    pub(super) time_us: i64,
    pub(super) user: String,
    pub(super) client: String,
    pub(super) statements: Kept<String>,
    pub(super) deltas: Kept<Delta>,
}

/// A commit as it is to be written.
pub(super) struct Encoded {
    pub(super) nonce: String,
    pub(super) entry: Vec<u8>,
    /// By section; each to be cut into parts.
    pub(super) staged: Vec<(&'static str, Vec<u8>)>,
    /// All of it.
    pub(super) bytes: u64,
}

/// Section of parts: a list of statements.
pub(super) const STATEMENTS: &str = "s";
/// Section of parts: a list of deltas.
pub(super) const DELTAS: &str = "d";
/// Section of parts: a list of entities.
pub(super) const ENTITIES: &str = "e";

pub(super) fn parse<T: DeserializeOwned>(key: &str, value: &[u8]) -> Result<T, ValueError> {
    serde_json::from_slice(value).map_err(|error| ValueError::Garbage { key: key.to_owned(), byte: error.column() })
}

/// How many parts so many bytes make.
pub(super) fn parts_of(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(PART_BYTES)).unwrap_or(u32::MAX)
}

impl Encoded {
    pub(super) fn new(commit: &Commit, nonce: String) -> Result<Self, serde_json::Error> {
        let Record { time_us, user, client, statements } = &commit.record;
        let mut staged = Vec::new();
        let statements = kept(STATEMENTS, statements, &mut staged)?;
        let deltas = kept(DELTAS, &commit.deltas, &mut staged)?;
        let entry = serde_json::to_vec(&EntryRef {
            version: commit.base.saturating_add(1),
            id_next: commit.id_next,
            nonce: &nonce,
            time_us: *time_us,
            user,
            client,
            statements,
            deltas,
        })?;
        let bytes = staged.iter().map(|(_, bytes)| bytes.len()).sum::<usize>().saturating_add(entry.len());
        Ok(Self { nonce, entry, staged, bytes: (bytes as u64).saturating_add(KEY_BYTES) })
    }
}

/// [`Entry`] as it is written, without a copy of what is in it.
#[derive(Serialize)]
struct EntryRef<'a> {
    version: u64,
    id_next: u64,
    nonce: &'a str,
    time_us: i64,
    user: &'a str,
    client: &'a str,
    statements: KeptRef<'a, String>,
    deltas: KeptRef<'a, Delta>,
}

#[derive(Serialize)]
enum KeptRef<'a, T> {
    Here(&'a [T]),
    Parts { parts: u32, bytes: u64 },
}

fn kept<'a, T: Serialize>(
    section: &'static str,
    items: &'a [T],
    staged: &mut Vec<(&'static str, Vec<u8>)>,
) -> Result<KeptRef<'a, T>, serde_json::Error> {
    let bytes = serde_json::to_vec(items)?;
    if bytes.len() <= INLINE_BYTES_MAX {
        return Ok(KeptRef::Here(items));
    }
    let parts = KeptRef::Parts { parts: parts_of(bytes.len()), bytes: bytes.len() as u64 };
    staged.push((section, bytes));
    Ok(parts)
}

/// Refusals noted together, each with the newest version there was.
#[derive(Serialize, Deserialize)]
pub(super) struct Refused(pub(super) Vec<(u64, HistoryEntry)>);
