//! A store that forgets all when the process ends: for tests.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use switchyard_catalog::{Catalog, Delta, Entity};
use tokio::sync::watch;

use crate::contract::{
    Commit, CommitError, Committed, HistoryEntry, Loaded, NEWS_MAX, News, Outcome, REFUSALS_MAX, Record, Retention,
    Store, StoreError,
};
use crate::history;

/// How many versions one commit gives up.
const GIVEN_UP_MAX: usize = 16;

/// A store in memory.
#[derive(Debug, Default)]
pub struct MemoryStore {
    kept: Mutex<Kept>,
    /// The newest version.
    head: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Kept {
    id_next: u64,
    entities: BTreeMap<(&'static str, u64), Entity>,
    /// How many commits were given up.
    given_up: u64,
    /// The first made the version after those.
    commits: VecDeque<(Record, Vec<Delta>)>,
    /// Each with the newest version there was.
    refusals: VecDeque<(u64, HistoryEntry)>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn head(&self) -> u64 {
        self.given_up.saturating_add(self.commits.len() as u64)
    }

    fn commit_of(&self, version: u64) -> Option<&(Record, Vec<Delta>)> {
        self.commits.get(usize::try_from(version.checked_sub(self.oldest())?).ok()?)
    }

    fn loaded(&self) -> Loaded {
        Loaded { version: self.head(), id_next: self.id_next, entities: self.entities.values().cloned().collect() }
    }

    fn oldest(&self) -> u64 {
        if self.head() == 0 { 0 } else { self.given_up.saturating_add(1) }
    }

    fn give_up(&mut self, retention: Retention, now_us: i64) {
        for _ in 0..GIVEN_UP_MAX {
            let made_us = || self.commits.front().map(|(record, _)| record.time_us);
            if !retention.drops(self.oldest(), made_us, self.head(), now_us) {
                return;
            }
            self.commits.pop_front();
            self.given_up += 1;
        }
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn load(&self) -> Result<Option<Loaded>, StoreError> {
        let kept = self.kept();
        Ok((kept.head() > 0).then(|| kept.loaded()))
    }

    async fn commit(&self, commit: Commit) -> Result<Committed, CommitError> {
        let mut kept = self.kept();
        let head = kept.head();
        if commit.base != head {
            return Err(CommitError::Stale { base: commit.base, head });
        }
        for delta in &commit.deltas {
            match (&delta.before, &delta.after) {
                (_, Some(after)) => {
                    kept.entities.insert((after.kind(), after.id()), after.clone());
                }
                (Some(before), None) => {
                    kept.entities.remove(&(before.kind(), before.id()));
                }
                (None, None) => {}
            }
        }
        kept.id_next = commit.id_next;
        let now_us = commit.record.time_us;
        kept.commits.push_back((commit.record, commit.deltas));
        kept.give_up(commit.retention, now_us);
        self.head.send_replace(kept.head());
        Ok(Committed { version: kept.head() })
    }

    async fn note_refusal(&self, version: u64, record: Record, outcome: Outcome) -> Result<(), StoreError> {
        let mut kept = self.kept();
        let head = kept.head();
        kept.refusals.push_back((head, history::refusal(version, record, outcome)));
        if kept.refusals.len() > REFUSALS_MAX {
            kept.refusals.pop_front();
        }
        Ok(())
    }

    async fn history(&self, after: u64, limit: usize) -> Result<Vec<HistoryEntry>, StoreError> {
        let kept = self.kept();
        let refusals = kept.refusals.iter().filter(|(noted_at, _)| *noted_at >= after).cloned().map(Ok);
        let commit = |version| match kept.commit_of(version) {
            Some((record, _)) => Ok(HistoryEntry { version, record: record.clone(), outcome: Outcome::Committed }),
            None => Err(StoreError { what: format!("history has no version {version}"), source: None }),
        };
        history::in_order(after, kept.oldest(), kept.head(), limit, refusals, commit)
    }

    async fn catalog_at(&self, newest: &Catalog, version: u64) -> Result<Option<Catalog>, StoreError> {
        let kept = self.kept();
        let deltas_of = |made| Ok::<_, Infallible>(kept.commit_of(made).map(|(_, deltas)| deltas.clone()));
        match history::backwards(newest, version, kept.oldest(), deltas_of) {
            Ok(found) => Ok(found),
            Err(never) => match never {},
        }
    }

    async fn oldest_version(&self) -> Result<u64, StoreError> {
        Ok(self.kept().oldest())
    }

    async fn newer(&self, after: u64) -> Result<Vec<News>, StoreError> {
        // The sender is in the store, which is borrowed.
        let _ = self.head.subscribe().wait_for(|head| *head > after).await;
        let kept = self.kept();
        if after.saturating_add(1) < kept.oldest() {
            return Ok(vec![News::Whole(kept.loaded())]);
        }
        let versions = (after.saturating_add(1)..=kept.head()).take(NEWS_MAX);
        let next = |version| {
            let (_, deltas) = kept.commit_of(version)?;
            Some(News::Next { version, id_next: kept.id_next, deltas: deltas.clone() })
        };
        Ok(versions.filter_map(next).collect())
    }
}
