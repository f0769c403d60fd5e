//! A store that forgets all when the process ends: for tests.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use switchyard_catalog::{Catalog, Delta, Entity};

use crate::contract::{
    Commit, CommitError, Committed, HistoryEntry, Loaded, Outcome, REFUSALS_MAX, Record, Store, StoreError,
};
use crate::history;

/// A store in memory.
#[derive(Debug, Default)]
pub struct MemoryStore {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    id_next: u64,
    entities: BTreeMap<(&'static str, u64), Entity>,
    /// The first made version 1.
    commits: Vec<(Record, Vec<Delta>)>,
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
        self.commits.len() as u64
    }

    fn commit_of(&self, version: u64) -> Option<&(Record, Vec<Delta>)> {
        self.commits.get(usize::try_from(version.checked_sub(1)?).ok()?)
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn load(&self) -> Result<Option<Loaded>, StoreError> {
        let kept = self.kept();
        let entities = || kept.entities.values().cloned().collect();
        Ok((kept.head() > 0).then(|| Loaded { version: kept.head(), id_next: kept.id_next, entities: entities() }))
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
        kept.commits.push((commit.record, commit.deltas));
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
        history::in_order(after, kept.head(), limit, refusals, commit)
    }

    async fn catalog_at(&self, newest: &Catalog, version: u64) -> Result<Option<Catalog>, StoreError> {
        let kept = self.kept();
        let deltas_of = |made| Ok::<_, Infallible>(kept.commit_of(made).map(|(_, deltas)| deltas.clone()));
        match history::backwards(newest, version, deltas_of) {
            Ok(found) => Ok(found),
            Err(never) => match never {},
        }
    }
}
