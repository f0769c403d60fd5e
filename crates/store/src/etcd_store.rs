//! A store in etcd, for all members of a cluster.
//!
//! # Format 1
//!
//! All keys begin with the prefix of the cluster; versions in them have 20 digits; values are JSON.
//!
//! | key | value |
//! |---|---|
//! | `head` | format, newest version, next id, what history keeps, which snapshot there is |
//! | `log/VERSION` | a commit: record and deltas, or how many parts they are in |
//! | `parts/VERSION-NONCE/s00000000` and so on | statements, a JSON list cut into parts of 512 KiB |
//! | `parts/VERSION-NONCE/d00000000` and so on | deltas, likewise |
//! | `snapshot/VERSION-NONCE/e00000000` and so on | all entities of a version, likewise |
//! | `stage/FAMILY-VERSION-NONCE` | under a lease: whoever stages these parts lives |
//! | `refusals`, `refused/TOTAL` | how many refusals there were, and the last of them, some together |
//! | `members/NAME` | under a lease: see [`crate::membership`] |
//!
//! A newer `format` is refused before anything is written, as in redb's store. What is there holds verifiers of passwords
//! and the cluster's secret: whoever can read or write it is trusted like a superuser.
//!
//! # Promises
//!
//! **A commit is one transaction of etcd**: it compares the head's revision, puts the new head and the entry of history,
//! and takes out what history keeps no longer. What is too long for it is staged before, under a marker with a lease. The
//! transaction wants the marker to be there, and takes it away. So what is staged without a marker and is part of no
//! commit can never become one: [`EtcdStore::sweep`] takes it, and nothing else.
//!
//! **A lost answer** is asked after: a commit carries a number used once, by which it is recognised. When it is not there,
//! the head is changed in nothing but its revision, so that the commit cannot come later. Only when this fails too the
//! outcome is unknown; it is settled by whatever is done next, which needs no [`Store::load`] before.
//!
//! **Readers** read the head, and all else at the head's revision: a snapshot and the commits after it. A snapshot is
//! written by the member whose commit makes it due, in the background. Followers watch `log/`, and once a second look at
//! the head: so etcd's silence is noticed, and nothing is missed whatever the watch went through.
//!
//! **Refusals** of this member are in its memory first, and go to etcd some at a time: everybody who may connect can have
//! statements refused, and shall not fill etcd. A member that is killed takes its last ones with it.
//!
//! etcd keeps all revisions until it is told to compact, for which its own settings are (`--auto-compaction-mode`,
//! `--auto-compaction-retention`): several clusters may share it, so nothing here compacts.

mod follow;
mod format;
mod keys;
mod read;
mod write;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use switchyard_catalog::Catalog;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tracing::{debug, info, warn};

use self::follow::Recent;
use self::format::{FORMAT, ValueError};
use self::keys::Keys;
pub(crate) use self::keys::nonce;
pub(crate) use self::read::Fault;
use crate::contract::{
    Commit, CommitError, Committed, HistoryEntry, Loaded, News, OpenError, Outcome, REFUSALS_MAX, Record, Store,
    StoreError,
};
use crate::etcd::EtcdLink;
use crate::history;

/// How many commits are timed that nobody has asked about, or that the watch has not told of.
const WATCHED_MAX: usize = 4_096;
/// How often refusals are brought to etcd.
const KEEP_EVERY: Duration = Duration::from_secs(1);
/// How often it is looked for what a crash left staged.
const SWEEP_EVERY: Duration = Duration::from_secs(60);
/// How many times of commits are kept in memory.
const TIMES_MAX: usize = 4_096;

/// A store in etcd. When it is dropped it follows no more.
#[derive(Debug)]
pub struct EtcdStore {
    inner: Arc<Inner>,
    _tasks: JoinSet<()>,
}

/// Whether etcd can be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EtcdState {
    /// It answers, and all that it told is known.
    Reachable,
    /// It does not. What was loaded is still good to read.
    Unreachable {
        /// In words.
        why: String,
    },
}

#[derive(Debug)]
struct Inner {
    link: EtcdLink,
    keys: Keys,
    /// The newest version that is known for certain.
    newest: AtomicU64,
    /// The oldest version that history kept when etcd last told.
    oldest: AtomicU64,
    /// The newest version up to which followers were told; `None` before the first.
    told: watch::Sender<Option<u64>>,
    recent: Mutex<Recent>,
    state: watch::Sender<EtcdState>,
    /// Commits whose answers were lost.
    lost: Mutex<Vec<Lost>>,
    refusals: Mutex<Waiting>,
    /// Held while refusals are on their way to etcd.
    flushing: tokio::sync::Mutex<()>,
    watched: Mutex<Watched>,
    /// When commits were made.
    times: Mutex<BTreeMap<u64, i64>>,
    /// A snapshot is worth writing.
    snapshot_due: AtomicBool,
    wake: Notify,
}

/// How long the watch takes to tell of this process's own commits: by one clock, and with all that lies in between.
#[derive(Debug, Default)]
struct Watched {
    /// The nonces of commits that were sent, and when.
    sent: VecDeque<(String, Instant)>,
    took: VecDeque<Duration>,
}

impl Watched {
    fn sends(&mut self, nonce: &str) {
        if self.sent.len() >= WATCHED_MAX {
            self.sent.pop_front();
        }
        self.sent.push_back((nonce.to_owned(), Instant::now()));
    }

    fn hears(&mut self, nonce: &str) {
        let Some(at) = self.sent.iter().position(|(sent, _)| sent == nonce) else { return };
        if let Some((_, sent)) = self.sent.remove(at) {
            if self.took.len() >= WATCHED_MAX {
                self.took.pop_front();
            }
            self.took.push_back(sent.elapsed());
        }
    }
}

/// A commit whose answer was lost: what the head's revision was that it compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Lost {
    changed: i64,
}

/// Refusals that etcd does not have yet, each with the newest version there was, numbered.
#[derive(Debug, Default)]
struct Waiting {
    entries: VecDeque<(u64, HistoryEntry)>,
    /// The number of the first.
    first: u64,
}

/// How many refusals there were ever, and what counted them last.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Counter {
    total: u64,
    nonce: String,
}

impl EtcdStore {
    /// Connects, looks whether what is there can be read, and begins to follow.
    ///
    /// # Errors
    /// When etcd cannot be reached, or holds something else. Nothing is written.
    pub async fn open(link: EtcdLink) -> Result<Self, OpenError> {
        let keys = Keys::new(link.prefix());
        let inner = Arc::new(Inner {
            keys,
            link,
            newest: AtomicU64::new(0),
            oldest: AtomicU64::new(0),
            told: watch::Sender::new(None),
            recent: Mutex::default(),
            state: watch::Sender::new(EtcdState::Reachable),
            lost: Mutex::default(),
            refusals: Mutex::default(),
            flushing: tokio::sync::Mutex::default(),
            watched: Mutex::default(),
            times: Mutex::default(),
            snapshot_due: AtomicBool::new(false),
            wake: Notify::new(),
        });
        inner.look().await.map_err(|fault| inner.open_error(fault))?;
        let mut tasks = JoinSet::new();
        let (follower, keeper) = (Arc::clone(&inner), Arc::clone(&inner));
        tasks.spawn(async move { follower.follow_for_ever().await });
        tasks.spawn(async move { keeper.keep_for_ever().await });
        Ok(Self { inner, _tasks: tasks })
    }

    /// The way to etcd, for `membership`.
    pub fn link(&self) -> &EtcdLink {
        &self.inner.link
    }

    /// Whether etcd can be reached, from now on.
    pub fn state(&self) -> watch::Receiver<EtcdState> {
        self.inner.state.subscribe()
    }

    /// Takes out what was staged by somebody who is gone, and says how many commits and snapshots that were. The store
    /// does so by itself once a minute.
    ///
    /// # Errors
    /// When etcd cannot be reached, or holds something else.
    pub async fn sweep(&self) -> Result<u64, StoreError> {
        self.inner.sweep().await.map_err(|fault| self.inner.error("sweep", fault))
    }

    /// Brings all refusals to etcd: for a member that ends in good order.
    ///
    /// # Errors
    /// When etcd cannot be reached.
    pub async fn flush(&self) -> Result<(), StoreError> {
        while self.inner.flush_refusals().await.map_err(|fault| self.inner.error("write to", fault))? {}
        Ok(())
    }

    /// Writes a snapshot of the newest version, if there is none. The store does so by itself after some commits.
    ///
    /// # Errors
    /// When etcd cannot be reached, or holds something else.
    pub async fn snapshot(&self) -> Result<bool, StoreError> {
        self.inner.snapshot(true).await.map_err(|fault| self.inner.error("write a snapshot to", fault))
    }
}

#[async_trait]
impl Store for EtcdStore {
    async fn load(&self) -> Result<Option<Loaded>, StoreError> {
        let loaded = async {
            self.inner.settle().await?;
            self.inner.load().await
        };
        loaded.await.map_err(|fault| self.inner.error("read", fault))
    }

    async fn commit(&self, commit: Commit) -> Result<Committed, CommitError> {
        let version = self.inner.try_commit(&commit).await?;
        self.inner.know(version);
        Ok(Committed { version })
    }

    async fn note_refusal(&self, version: u64, record: Record, outcome: Outcome) -> Result<(), StoreError> {
        self.inner.wait_refusal(history::refusal(version, record, outcome));
        Ok(())
    }

    async fn history(&self, after: u64, limit: usize) -> Result<Vec<HistoryEntry>, StoreError> {
        match self.inner.history_after(after, limit).await {
            Err(fault) if fault.is_lost() => {
                let in_memory = self.inner.history_in_memory(after, limit);
                in_memory.ok_or_else(|| self.inner.error("read", fault))
            }
            done => done.map_err(|fault| self.inner.error("read", fault)),
        }
    }

    async fn catalog_at(&self, newest: &Catalog, version: u64) -> Result<Option<Catalog>, StoreError> {
        match self.inner.catalog_at(newest, version).await {
            Err(fault) if fault.is_lost() => {
                let in_memory = self.inner.catalog_in_memory(newest, version);
                in_memory.map(Some).ok_or_else(|| self.inner.error("read", fault))
            }
            done => done.map_err(|fault| self.inner.error("read", fault)),
        }
    }

    async fn oldest_version(&self) -> Result<u64, StoreError> {
        match self.inner.head().await {
            Ok(seen) => Ok(seen.head.oldest),
            Err(fault) if fault.is_lost() => Ok(self.inner.oldest.load(Ordering::Relaxed)),
            Err(fault) => Err(self.inner.error("read", fault)),
        }
    }

    fn watch_times(&self) -> Vec<Duration> {
        self.inner.watched().took.drain(..).collect()
    }

    async fn newer(&self, after: u64) -> Result<Vec<News>, StoreError> {
        let mut told = self.inner.told.subscribe();
        loop {
            if told.borrow_and_update().is_some_and(|told| told > after) {
                let news = self.inner.news(after).await.map_err(|fault| self.inner.error("read", fault))?;
                if !news.is_empty() {
                    return Ok(news);
                }
            }
            if told.changed().await.is_err() {
                let what = format!("the store on {} is closing", self.inner.link.shown());
                return Err(StoreError { what, source: None });
            }
        }
    }
}

impl Inner {
    /// Looks whether what is there can be read.
    async fn look(&self) -> Result<(), Fault> {
        let seen = self.head().await?;
        if seen.changed == 0
            && let Some(key) = self.foreign_key().await?
            // Another member may have made the first catalog just now.
            && self.head().await?.changed == 0
        {
            return Err(Fault::Foreign { key });
        }
        Ok(())
    }

    /// Brings refusals to etcd, writes snapshots that are due and sweeps, for ever.
    async fn keep_for_ever(&self) {
        let mut swept: Option<Instant> = None;
        loop {
            // Refusals can wait, a snapshot that is due need not.
            let _ = timeout(KEEP_EVERY, self.wake.notified()).await;
            if let Err(fault) = self.keep(&mut swept).await {
                debug!(error = %self.error("keep", fault), "will be tried again");
                tokio::time::sleep(KEEP_EVERY).await;
            }
        }
    }

    async fn keep(&self, swept: &mut Option<Instant>) -> Result<(), Fault> {
        if self.snapshot_due.swap(false, Ordering::Relaxed) {
            let written =
                self.snapshot(false).await.inspect_err(|_| self.snapshot_due.store(true, Ordering::Relaxed))?;
            if written {
                info!(prefix = self.keys.prefix(), "snapshot of the catalog written");
            }
        }
        self.flush_refusals().await?;
        if swept.is_none_or(|swept| swept.elapsed() >= SWEEP_EVERY) {
            let count = self.sweep().await?;
            *swept = Some(Instant::now());
            if count > 0 {
                info!(prefix = self.keys.prefix(), count, "unfinished commits swept");
            }
        }
        Ok(())
    }

    fn known_version(&self) -> u64 {
        self.newest.load(Ordering::Relaxed)
    }

    fn know(&self, version: u64) {
        self.newest.fetch_max(version, Ordering::Relaxed);
    }

    fn note_oldest(&self, oldest: u64) {
        self.oldest.fetch_max(oldest, Ordering::Relaxed);
    }

    fn told(&self) -> u64 {
        self.told.borrow().unwrap_or(0)
    }

    fn has_begun(&self) -> bool {
        self.told.borrow().is_some()
    }

    fn tell(&self, version: u64) {
        self.know(version);
        self.told.send_if_modified(|told| told.replace(version) != Some(version));
    }

    fn watched(&self) -> MutexGuard<'_, Watched> {
        locked(&self.watched)
    }

    fn recent(&self) -> MutexGuard<'_, Recent> {
        locked(&self.recent)
    }

    fn set_reachable(&self) {
        let changed = self.state.send_if_modified(|state| {
            let changed = *state != EtcdState::Reachable;
            *state = EtcdState::Reachable;
            changed
        });
        if changed {
            info!(prefix = self.keys.prefix(), "etcd can be reached again");
        }
    }

    fn set_unreachable(&self, fault: &Fault) {
        let why = self.why("follow", fault);
        let changed = self.state.send_if_modified(|state| {
            let changed = *state == EtcdState::Reachable;
            *state = EtcdState::Unreachable { why: why.clone() };
            changed
        });
        if changed {
            warn!(why, "etcd cannot be followed; the catalog stays as it is until it can");
        }
    }

    fn remember_lost(&self, commit: Lost) {
        locked(&self.lost).push(commit);
    }

    fn lost(&self) -> Vec<Lost> {
        locked(&self.lost).clone()
    }

    fn forget_lost(&self, settled: &[Lost]) {
        locked(&self.lost).retain(|lost| !settled.contains(lost));
    }

    fn wait_refusal(&self, entry: HistoryEntry) {
        let mut waiting = locked(&self.refusals);
        waiting.entries.push_back((self.known_version(), entry));
        if waiting.entries.len() > REFUSALS_MAX {
            waiting.entries.pop_front();
            waiting.first = waiting.first.wrapping_add(1);
        }
    }

    fn waiting_refusals(&self) -> Vec<(u64, HistoryEntry)> {
        locked(&self.refusals).entries.iter().cloned().collect()
    }

    /// Some of those that wait, and the number after the last of them.
    fn first_refusals(&self, bytes_max: usize) -> (Vec<(u64, HistoryEntry)>, Option<u64>) {
        let waiting = locked(&self.refusals);
        let mut bytes = 0_usize;
        let mut batch = Vec::new();
        for (noted_at, entry) in &waiting.entries {
            let text = entry.record.statements.iter().map(String::len).sum::<usize>();
            bytes = bytes.saturating_add(text).saturating_add(512);
            if bytes > bytes_max && !batch.is_empty() {
                break;
            }
            batch.push((*noted_at, entry.clone()));
        }
        let last = (!batch.is_empty()).then(|| waiting.first.wrapping_add(batch.len() as u64));
        (batch, last)
    }

    /// Those before this number wait no longer.
    fn drop_refusals(&self, last: u64) {
        let mut waiting = locked(&self.refusals);
        while waiting.first < last && waiting.entries.pop_front().is_some() {
            waiting.first = waiting.first.wrapping_add(1);
        }
    }

    fn known_time(&self, version: u64) -> Option<i64> {
        locked(&self.times).get(&version).copied()
    }

    /// Keeps times of versions, those of the oldest that somebody may ask for.
    fn learn_times(&self, from: u64, learned: Vec<(u64, i64)>) {
        let mut times = locked(&self.times);
        if learned.len() > 1 {
            *times = times.split_off(&from);
        }
        times.extend(learned);
        while times.len() > TIMES_MAX {
            times.pop_last();
        }
    }

    fn why(&self, doing: &str, fault: &Fault) -> String {
        match fault {
            Fault::Link(error) => self.link.describe(doing, error),
            other => format!("cannot {doing} the store {}: {other}", self.shown()),
        }
    }

    fn error(&self, doing: &str, fault: Fault) -> StoreError {
        StoreError { what: self.why(doing, &fault), source: Some(Box::new(fault)) }
    }

    fn shown(&self) -> String {
        format!("{} on {}", self.keys.prefix(), self.link.shown())
    }

    fn open_error(&self, fault: Fault) -> OpenError {
        let path = self.shown();
        match fault {
            Fault::Value(ValueError::Newer { found, .. }) => OpenError::Newer { path, found, known: FORMAT },
            Fault::Link(error) => OpenError::Io { path, what: self.link.describe("read", &error) },
            other => OpenError::Damaged { path, what: other.to_string() },
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
