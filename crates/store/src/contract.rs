//! What every store promises. One conformance suite runs on all of them.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use switchyard_catalog::{Catalog, Delta, Entity};
use thiserror::Error;

use crate::etcd_store::Fault;

/// What a store holds when it is opened.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The newest version.
    pub version: u64,
    /// The id the next object gets.
    pub id_next: u64,
    /// Every entity.
    pub entities: Vec<Entity>,
}

/// Who did what, for history. Secrets are already redacted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Microseconds since 1970-01-01 UTC.
    pub time_us: i64,
    /// The user's name.
    pub user: String,
    /// The client's address and port.
    pub client: String,
    /// The statements, in order.
    pub statements: Vec<String>,
}

/// What became of a statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// It is part of the version.
    Committed,
    /// It was refused with this SQLSTATE and message.
    Refused {
        /// Five characters.
        sqlstate: String,
        /// The primary message.
        message: String,
    },
}

/// One commit to be.
#[derive(Debug, Clone)]
pub struct Commit {
    /// The version it was made on; the commit makes the next one.
    pub base: u64,
    /// The id the next object gets after it.
    pub id_next: u64,
    /// At most one delta an entity.
    pub deltas: Vec<Delta>,
    /// Who and what.
    pub record: Record,
    /// What history keeps from then on.
    pub retention: Retention,
}

/// What history keeps. What is beyond goes with commits, the oldest first and no more with each than costs it nothing
/// worth speaking of, so that a lower limit is reached after some commits only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// How many versions, the newest included; at least 1.
    pub versions_max: u64,
    /// How long, in microseconds before the commit; `None` is without limit.
    pub age_us_max: Option<i64>,
}

impl Retention {
    /// Everything.
    pub const ALL: Self = Self { versions_max: u64::MAX, age_us_max: None };

    /// Whether a version goes with the commit of the version `newest`, made at `now_us`. `made_us` is when it was made,
    /// where that is still known.
    pub(crate) fn drops(&self, version: u64, made_us: impl FnOnce() -> Option<i64>, newest: u64, now_us: i64) -> bool {
        if version >= newest {
            return false;
        }
        newest.saturating_sub(version) >= self.versions_max
            || self.age_us_max.is_some_and(|most| made_us().is_none_or(|made_us| now_us.saturating_sub(made_us) > most))
    }
}

/// A commit that is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Committed {
    /// The version it made.
    pub version: u64,
}

/// A commit that is not, or may not be.
#[derive(Debug, Error)]
pub enum CommitError {
    /// The store has a newer version than `base`; nothing was written.
    #[error("the catalog is at version {head}, not {base}")]
    Stale {
        /// What the commit was made on.
        base: u64,
        /// What the store has.
        head: u64,
    },
    /// Nothing was written.
    #[error(transparent)]
    Refused(StoreError),
    /// It may have been written or not: the answer got lost.
    #[error("the outcome of the commit is unknown")]
    Unknown(#[source] StoreError),
}

/// Why a store could not be read or written.
#[derive(Debug, Error)]
#[error("{what}")]
pub struct StoreError {
    /// In words, naming the file or address.
    pub what: String,
    /// The cause.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl StoreError {
    /// Whether the store does not answer, as when the network to it is cut; not whether it said no.
    pub fn is_unreachable(&self) -> bool {
        let fault = self.source.as_ref().and_then(|source| source.downcast_ref::<Fault>());
        fault.is_some_and(Fault::is_lost)
    }
}

/// Why a store could not be opened. The file is never overwritten then.
#[derive(Debug, Error)]
pub enum OpenError {
    /// Another process has it.
    #[error("the store {path} is in use by another process")]
    Locked {
        /// The file.
        path: String,
    },
    /// It was written by a newer program.
    #[error("the store {path} has format {found}; this program reads up to {known}")]
    Newer {
        /// The file.
        path: String,
        /// The format found.
        found: u64,
        /// The newest format this program reads.
        known: u64,
    },
    /// Its content makes no sense.
    #[error("the store {path} is damaged: {what}")]
    Damaged {
        /// The file.
        path: String,
        /// What is wrong.
        what: String,
    },
    /// The system would not let us.
    #[error("cannot open the store {path}: {what}")]
    Io {
        /// The file.
        path: String,
        /// What the system said.
        what: String,
    },
}

/// One row of `switchyard.catalog_history`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryEntry {
    /// The version made; for a refused statement the version it was refused on.
    pub version: u64,
    /// Who and what.
    pub record: Record,
    /// What became of it.
    pub outcome: Outcome,
}

/// What somebody who knows an older version is told.
#[derive(Debug, Clone)]
pub enum News {
    /// The next version.
    Next {
        /// Which.
        version: u64,
        /// The id the next object gets, or a higher one.
        id_next: u64,
        /// How it differs from the version before.
        deltas: Vec<Delta>,
    },
    /// The newest version as a whole: too much came since, or history does not have it any more.
    Whole(Loaded),
}

/// How many versions are told at once.
pub const NEWS_MAX: usize = 256;

/// A store of catalogs.
#[async_trait]
pub trait Store: Send + Sync + std::fmt::Debug {
    /// What it holds; `None` when it is empty. After [`CommitError::Unknown`] this says what became of the commit, and
    /// until then everything else is refused; a store that several processes share settles it by whatever is done next.
    async fn load(&self) -> Result<Option<Loaded>, StoreError>;

    /// Makes a commit durable, or says that it is not. On an empty store `base` is 0.
    async fn commit(&self, commit: Commit) -> Result<Committed, CommitError>;

    /// Notes a refused statement. Not durable at once; the oldest beyond [`REFUSALS_MAX`] are forgotten.
    async fn note_refusal(&self, version: u64, record: Record, outcome: Outcome) -> Result<(), StoreError>;

    /// All that happened after version `after` was made, the oldest first, at most `limit` entries. Refusals noted while
    /// `after` was the newest version are among it.
    async fn history(&self, after: u64, limit: usize) -> Result<Vec<HistoryEntry>, StoreError>;

    /// The catalog as it was in `version`, going backwards from `newest`; but for the next id, which is that of `newest`.
    /// `None` when that version is in the future, or older than [`Store::oldest_version`]; there is no version 0 to go
    /// back to.
    async fn catalog_at(&self, newest: &Catalog, version: u64) -> Result<Option<Catalog>, StoreError>;

    /// The oldest version that history keeps; 0 on an empty store.
    async fn oldest_version(&self) -> Result<u64, StoreError>;

    /// Waits until there is a version after `after`, whoever made it, and tells what came since, in order and without a
    /// gap, some at a time. While the store cannot be reached it waits for that too. It may be dropped at any time.
    async fn newer(&self, after: u64) -> Result<Vec<News>, StoreError>;

    /// How long after this process sent its commits the store told it of them, since this was last asked; nothing where
    /// nobody else could have made them.
    fn watch_times(&self) -> Vec<Duration> {
        Vec::new()
    }
}

/// How many refused statements history keeps.
pub const REFUSALS_MAX: usize = 10_000;
