//! A store in one redb file.
//!
//! # Format 2
//!
//! | table | key | value |
//! |---|---|---|
//! | `meta` | `format`; `id_next`, where format 1 had it | a number |
//! | `entities` | kind, id | the entity as JSON, its kind in the field `kind` |
//! | `history` | version, 0, 0 | time, user and client of the commit, and the id that comes next, as JSON |
//! | | version, 1, part | statements, a JSON list |
//! | | version, 2, part | deltas, a JSON list |
//! | `refusals` | newest version when it was noted, rising number | the whole entry as JSON |
//!
//! The newest version is the last of `history`, which keeps it always: a number for it in `meta`, as in format 1, would
//! be another page to write with every commit. A file of format 1 is read as it is; the first commit makes it one of 2.
//!
//! `entities` is the newest catalog and nothing else; older ones come from it by the deltas of `history`, backwards.
//! Lists are cut into parts of some 56 KiB, so that a commit of 100,000 statements needs no value of 20 MB.
//! What `history` keeps no longer goes with a commit, in its transaction, from the oldest row on and a few rows each time:
//! of the oldest version there may be the later rows only, without the first, which then counts as gone.
//!
//! **Newer formats.** Whoever changes the meaning of anything here, kinds and fields of entities included, in a way that
//! an older program would misread raises `format`; a field that may be left out and has a default does not need it. A program refuses a file whose `format` is above the one it knows
//! ([`OpenError::Newer`]) before it has written a byte to it. `meta` itself never changes its name or types.
//!
//! # Promises
//!
//! **One commit is one redb transaction and one fsync** (redb's `Durability::Immediate`, with neither two-phase commit
//! nor quick repair, each of which would add one). A commit that makes the file grow adds another, for the new length;
//! the file doubles when it does. Power loss in the middle leaves the version before: redb finds by checksums that the
//! new pages are incomplete.
//!
//! **Damage is found when the file is opened**, by redb's check of every page against its checksum: no plain open would
//! notice, so checksums of our own are not needed. The price is one reading of the whole file. What it cannot tell from
//! power loss is damage to the pages of the very last commit of a process that was killed: the version before it is
//! then the newest.
//!
//! **A file that is refused is not touched**: see [`disk`].
//!
//! **After a failed write** the file is opened anew before anything else is done with it. When it is certain that
//! nothing was committed, the next use does so; when it is not, everything is refused until somebody calls
//! [`Store::load`] and so learns what became of the commit.

mod disk;
mod format;
mod open;
#[cfg(test)]
mod tests;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use redb::{Durability, ReadTransaction, ReadableDatabase};
use switchyard_catalog::Catalog;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{Mutex, OwnedMutexGuard, watch};
use tokio::task::{JoinError, block_in_place, spawn_blocking};

use self::format::Fault;
use self::open::{Mount, Opened, panic_text};
use crate::contract::{
    Commit, CommitError, Committed, HistoryEntry, Loaded, News, OpenError, Outcome, Record, Store, StoreError,
};
use crate::history;

/// After so many refusals that no commit made durable, they are made durable by themselves: redb can reuse the pages
/// they gave up only then.
const REFUSALS_UNSYNCED_MAX: usize = 256;

/// A store in one file, for one process at a time.
#[derive(Debug)]
pub struct RedbStore {
    file: Arc<StoreFile>,
    /// Held by whoever writes. Waited for here, not in a thread of its own.
    writer: Arc<Mutex<Writer>>,
    /// Told of each commit.
    commits: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Writer {
    refusals_unsynced: usize,
}

struct StoreFile {
    path: PathBuf,
    health: RwLock<Health>,
    faults: Option<Box<Mount>>,
}

/// In what state the file is.
enum Health {
    /// It can be used.
    Sound(Opened),
    /// It must be opened anew.
    Failed {
        /// Whether a commit may be there or not.
        unknown: bool,
    },
}

/// Why a commit failed.
enum Failure {
    Stale { head: u64 },
    NotWritten(Fault),
    Unknown(Fault),
}

impl RedbStore {
    /// Opens the file, or makes it if it is not there. Blocks.
    ///
    /// # Errors
    /// When another process has it, it is damaged, a newer program wrote it, or the system does not let us. The file is
    /// then as it was.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::open_with(path.as_ref(), None)
    }

    fn open_with(path: &Path, faults: Option<Box<Mount>>) -> Result<Self, OpenError> {
        let opened = open::open_or_create(path, faults.as_deref())?;
        let health = RwLock::new(Health::Sound(opened));
        Ok(Self {
            file: Arc::new(StoreFile { path: path.to_owned(), health, faults }),
            writer: Arc::default(),
            commits: watch::Sender::default(),
        })
    }

    /// Reads in a thread that may block. `learns` as for [`StoreFile::heal`].
    async fn read<T: Send + 'static>(
        &self,
        learns: bool,
        work: impl FnOnce(&ReadTransaction) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StoreError> {
        let file = Arc::clone(&self.file);
        let done = spawn_blocking(move || file.heal(learns).and_then(|()| file.read(work))).await;
        done.unwrap_or_else(|error| Err(self.file.ended(error)))
    }

    /// Writes, one at a time, in the caller's own thread where the runtime has others to go on with: to wake a thread for
    /// the work and another for its outcome takes a good part of the time of an fsync. It goes on if the caller goes away.
    async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&StoreFile, &mut Writer) -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        let mut writer: OwnedMutexGuard<Writer> = Arc::clone(&self.writer).lock_owned().await;
        if Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread {
            return Ok(block_in_place(|| work(&self.file, &mut writer)));
        }
        let file = Arc::clone(&self.file);
        spawn_blocking(move || work(&file, &mut writer)).await
    }
}

#[async_trait]
impl Store for RedbStore {
    async fn load(&self) -> Result<Option<Loaded>, StoreError> {
        self.read(true, format::read_newest).await
    }

    async fn commit(&self, commit: Commit) -> Result<Committed, CommitError> {
        let done = self.write(move |file, writer| file.commit(writer, &commit)).await;
        // Only what was never begun ends like this: the work itself catches panics.
        self.commits.send_replace(());
        done.unwrap_or_else(|error| Err(CommitError::Refused(self.file.ended(error))))
    }

    async fn note_refusal(&self, version: u64, record: Record, outcome: Outcome) -> Result<(), StoreError> {
        let entry = history::refusal(version, record, outcome);
        let done = self.write(move |file, writer| file.note_refusal(writer, &entry)).await;
        done.unwrap_or_else(|error| Err(self.file.ended(error)))
    }

    async fn history(&self, after: u64, limit: usize) -> Result<Vec<HistoryEntry>, StoreError> {
        self.read(false, move |transaction| format::read_history(transaction, after, limit)).await
    }

    async fn catalog_at(&self, newest: &Catalog, version: u64) -> Result<Option<Catalog>, StoreError> {
        let newest = newest.clone();
        self.read(false, move |transaction| {
            let oldest = format::oldest_version(transaction)?;
            history::backwards(&newest, version, oldest, |made| format::read_deltas(transaction, made))
        })
        .await
    }

    async fn oldest_version(&self) -> Result<u64, StoreError> {
        self.read(false, format::oldest_version).await
    }

    async fn newer(&self, after: u64) -> Result<Vec<News>, StoreError> {
        let mut commits = self.commits.subscribe();
        loop {
            commits.mark_unchanged();
            let news = self.read(false, move |transaction| format::read_news(transaction, after)).await?;
            if !news.is_empty() {
                return Ok(news);
            }
            // The sender is in the store, which is borrowed.
            let _ = commits.changed().await;
        }
    }
}

impl StoreFile {
    /// Opens the file anew if it must be. `learns` is whether the caller then learns what became of a commit whose
    /// outcome is unknown.
    fn heal(&self, learns: bool) -> Result<(), StoreError> {
        match &*self.health.read().unwrap_or_else(PoisonError::into_inner) {
            Health::Sound(_) => return Ok(()),
            Health::Failed { unknown: true } if !learns => {
                let what = format!("the outcome of a commit to the store {} is unknown", open::shown(&self.path));
                return Err(StoreError { what, source: None });
            }
            Health::Failed { .. } => {}
        }
        let mut health = self.health.write().unwrap_or_else(PoisonError::into_inner);
        if matches!(*health, Health::Failed { .. }) {
            let opened = open::reopen(&self.path, self.faults.as_deref()).map_err(|error| {
                let what = format!("the store {} cannot be opened again", open::shown(&self.path));
                StoreError { what, source: Some(Box::new(error)) }
            })?;
            *health = Health::Sound(opened);
        }
        Ok(())
    }

    /// Gives the file up after a failed write: what redb has in memory need not be what is in the file.
    fn fail(&self, unknown: bool) {
        let mut health = self.health.write().unwrap_or_else(PoisonError::into_inner);
        if let Health::Sound(opened) = &*health {
            opened.disk.seal();
        }
        let unknown = unknown || matches!(*health, Health::Failed { unknown: true });
        *health = Health::Failed { unknown };
    }

    /// Does something with the file and sees to it that a panic of redb stays here.
    fn using<T>(&self, work: impl FnOnce(&Opened) -> Result<T, Fault>) -> Result<T, Fault> {
        let health = self.health.read().unwrap_or_else(PoisonError::into_inner);
        let Health::Sound(opened) = &*health else {
            return Err(Fault::Redb(redb::Error::PreviousIo));
        };
        // What a panic leaves half done is a transaction, which redb then rolls back.
        catch_unwind(AssertUnwindSafe(|| work(opened)))
            .unwrap_or_else(|panic| Err(Fault::Panicked(panic_text(&*panic))))
    }

    fn read<T>(&self, work: impl FnOnce(&ReadTransaction) -> Result<T, Fault>) -> Result<T, StoreError> {
        let read = self.using(|opened| work(&opened.database.begin_read()?));
        read.map_err(|fault| {
            if !fault.harmless() {
                self.fail(false);
            }
            self.error("read", fault)
        })
    }

    fn commit(&self, writer: &mut Writer, commit: &Commit) -> Result<Committed, CommitError> {
        self.heal(false).map_err(CommitError::Refused)?;
        match self.try_commit(commit) {
            Ok(version) => {
                writer.refusals_unsynced = 0;
                Ok(Committed { version })
            }
            Err(Failure::Stale { head }) => Err(CommitError::Stale { base: commit.base, head }),
            Err(Failure::NotWritten(fault)) => {
                if !fault.harmless() {
                    self.fail(false);
                }
                Err(CommitError::Refused(self.error("write", fault)))
            }
            Err(Failure::Unknown(fault)) => {
                self.fail(true);
                Err(CommitError::Unknown(self.error("write", fault)))
            }
        }
    }

    fn try_commit(&self, commit: &Commit) -> Result<u64, Failure> {
        let version = commit.base.saturating_add(1);
        // Kept aside: should a reader meet the same fault, it opens the file anew, with another disk.
        let mut disk = None;
        let done = self.using(|opened| {
            opened.disk.watch_header();
            disk = Some(Arc::clone(&opened.disk));
            let mut transaction = opened.database.begin_write()?;
            transaction.set_two_phase_commit(false);
            transaction.set_quick_repair(false);
            let head = format::head_to_write_on(&transaction)?;
            if head != commit.base {
                transaction.abort()?;
                return Ok(Err(head));
            }
            format::write_commit(&transaction, version, commit)?;
            transaction.commit()?;
            Ok(Ok(version))
        });
        match done {
            Ok(Ok(version)) => Ok(version),
            Ok(Err(head)) => Err(Failure::Stale { head }),
            // What has not reached the header has not happened.
            Err(fault) if disk.is_some_and(|disk| disk.header_written()) => Err(Failure::Unknown(fault)),
            Err(fault) => Err(Failure::NotWritten(fault)),
        }
    }

    fn note_refusal(&self, writer: &mut Writer, entry: &HistoryEntry) -> Result<(), StoreError> {
        self.heal(false)?;
        let durable = writer.refusals_unsynced >= REFUSALS_UNSYNCED_MAX;
        let written = self.using(|opened| {
            let mut transaction = opened.database.begin_write()?;
            if !durable {
                // Only savepoints, of which there are none, stand against it.
                let _ = transaction.set_durability(Durability::None);
            }
            format::write_refusal(&transaction, entry)?;
            Ok(transaction.commit()?)
        });
        match written {
            Ok(()) => {
                writer.refusals_unsynced = if durable { 0 } else { writer.refusals_unsynced + 1 };
                Ok(())
            }
            Err(fault) => {
                if !fault.harmless() {
                    self.fail(false);
                }
                Err(self.error("write", fault))
            }
        }
    }

    fn error(&self, did: &str, fault: Fault) -> StoreError {
        StoreError { what: format!("cannot {did} the store {}", open::shown(&self.path)), source: Some(fault.into()) }
    }

    fn ended(&self, error: JoinError) -> StoreError {
        StoreError { what: format!("the store {} is closing", open::shown(&self.path)), source: Some(error.into()) }
    }
}

impl fmt::Debug for StoreFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreFile").field("path", &self.path).finish_non_exhaustive()
    }
}
