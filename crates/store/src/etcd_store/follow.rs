//! Following: what any member commits is known here as soon as etcd tells, and whatever was missed is read.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use etcd_client::{Error, EventType, WatchFilterType, WatchOptions, WatchResponse};
use switchyard_catalog::{Catalog, Delta};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::Inner;
use super::format::{Entry, Kept};
use super::read::{Fault, Seen};
use crate::contract::{HistoryEntry, NEWS_MAX, News, Outcome, Record};
use crate::etcd::{LinkError, watches};
use crate::history;

/// How often it is looked whether etcd still answers, and whether the watch has missed something.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Between two attempts to follow.
const RETRY_AFTER: Duration = Duration::from_millis(100);
/// How much of the newest history is kept in memory.
const RECENT_MAX: usize = 4_096;
const RECENT_DELTAS_MAX: usize = 200_000;

/// What became known last, without a gap.
#[derive(Debug, Default)]
pub(super) struct Recent {
    entries: VecDeque<Arc<Fresh>>,
    deltas: usize,
}

/// A commit that became known.
#[derive(Debug)]
pub(super) struct Fresh {
    entry: Entry,
    deltas: Vec<Delta>,
}

impl Recent {
    fn push(&mut self, fresh: Fresh) {
        self.deltas = self.deltas.saturating_add(fresh.deltas.len());
        self.entries.push_back(Arc::new(fresh));
        while self.entries.len() > RECENT_MAX || (self.deltas > RECENT_DELTAS_MAX && self.entries.len() > 1) {
            let gone = self.entries.pop_front();
            self.deltas = self.deltas.saturating_sub(gone.map_or(0, |gone| gone.deltas.len()));
        }
    }

    /// All that came after a version; `None` when some of it is not here.
    fn after(&self, version: u64) -> Option<Vec<Arc<Fresh>>> {
        let first = self.entries.front()?.entry.version;
        let skipped = version.saturating_add(1).checked_sub(first)?;
        Some(self.entries.iter().skip(usize::try_from(skipped).ok()?).cloned().collect())
    }
}

impl Fresh {
    fn news(&self) -> News {
        let Entry { version, id_next, .. } = self.entry;
        News::Next { version, id_next, deltas: self.deltas.clone() }
    }

    /// Who did what; `None` when the statements are too long to be here.
    fn record(&self) -> Option<Record> {
        let Entry { time_us, user, client, statements, .. } = &self.entry;
        let Kept::Here(statements) = statements else { return None };
        let (user, client, statements) = (user.clone(), client.clone(), statements.clone());
        Some(Record { time_us: *time_us, user, client, statements })
    }
}

impl Inner {
    /// Follows for ever, and says how it goes.
    pub(super) async fn follow_for_ever(&self) {
        loop {
            let (index, fault) = self.follow().await;
            if let Some(fault) = fault {
                self.set_unreachable(&fault);
            }
            if let Some(index) = index {
                self.link.give_up(index);
            }
            sleep(RETRY_AFTER).await;
        }
    }

    /// Follows until something is wrong. Says with which endpoint, and what; nothing when it must only begin anew.
    async fn follow(&self) -> (Option<usize>, Option<Fault>) {
        let seen = match self.head().await {
            Ok(seen) => seen,
            Err(fault) => return (None, Some(fault)),
        };
        let revision = seen.revision;
        if let Err(fault) = self.catch_up(seen).await {
            return (None, unless_compacted(fault));
        }
        self.set_reachable();
        let (index, mut client) = match self.link.client().await {
            Ok((index, client)) => (index, watches(&client)),
            Err(error) => return (None, Some(self.watch_fault(Some(error)))),
        };
        let options = WatchOptions::new()
            .with_prefix()
            .with_start_revision(revision.saturating_add(1))
            .with_filters([WatchFilterType::NoDelete]);
        let wait = Duration::from_millis(self.link.options().request_ms_max);
        let mut stream = match timeout(wait, client.watch(self.keys.log_family(), Some(options))).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return (Some(index), Some(self.watch_fault(Some(error)))),
            Err(_) => return (Some(index), Some(self.watch_fault(None))),
        };
        let mut look = interval(LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut expected = 0;
        loop {
            tokio::select! {
                message = stream.message() => match message {
                    Ok(Some(message)) if message.canceled() => {
                        let error = Error::WatchError(message.cancel_reason().to_owned());
                        // Compacted: what was missed is read.
                        let fault = (message.compact_revision() == 0).then(|| self.watch_fault(Some(error)));
                        return (Some(index), fault);
                    }
                    Ok(Some(message)) => match self.hear(&message).await {
                        Ok(true) => {}
                        Ok(false) => return (None, None),
                        Err(fault) => return (None, unless_compacted(fault)),
                    },
                    Ok(None) => return (Some(index), Some(self.watch_fault(None))),
                    Err(error) => return (Some(index), Some(self.watch_fault(Some(error)))),
                },
                _ = look.tick() => {
                    match self.head().await {
                        Ok(seen) => {
                            // The watch had the time since the last look to tell.
                            if self.told() < expected {
                                return (Some(index), None);
                            }
                            expected = seen.head.version;
                        }
                        Err(fault) => return (None, Some(fault)),
                    }
                }
            }
        }
    }

    fn watch_fault(&self, last: Option<Error>) -> Fault {
        LinkError::Lost { ms_max: self.link.options().request_ms_max, last }.into()
    }

    /// Reads what was missed.
    async fn catch_up(&self, Seen { head, revision, .. }: Seen) -> Result<(), Fault> {
        const PAGE: u64 = 256;
        let mut told = self.told();
        if !self.has_begun() || told.saturating_add(1) < head.kept_from {
            // Whoever knows an older version reads a snapshot.
            *self.recent() = Recent::default();
            told = head.version;
        }
        while told < head.version {
            let to = head.version.min(told.saturating_add(PAGE));
            for entry in self.entries(told.saturating_add(1), to, revision).await? {
                self.add(entry, revision).await?;
            }
            told = to;
        }
        // The first time, and when all before is given up, without a step.
        self.tell(head.version);
        Ok(())
    }

    /// Takes what the watch tells; `false` when something is missing in between.
    async fn hear(&self, message: &WatchResponse) -> Result<bool, Fault> {
        let revision = message.header().map_or(0, |header| header.revision());
        for event in message.events() {
            let Some(found) = event.kv().filter(|_| event.event_type() == EventType::Put) else { continue };
            let next = self.told().saturating_add(1);
            let expected = self.keys.log(next);
            if found.key() > expected.as_bytes() {
                return Ok(false);
            }
            if found.key() == expected.as_bytes() {
                let entry = self.entry(next, Some(found))?;
                self.watched().hears(&entry.nonce);
                self.add(entry, revision).await?;
            }
        }
        Ok(true)
    }

    /// Keeps the next version, and tells those who wait for it.
    async fn add(&self, mut entry: Entry, revision: i64) -> Result<(), Fault> {
        let deltas = self.deltas(&entry, revision).await?;
        let version = entry.version;
        entry.deltas = Kept::Here(Vec::new());
        self.learn_times(version, vec![(version, entry.time_us)]);
        self.recent().push(Fresh { entry, deltas });
        self.tell(version);
        Ok(())
    }

    /// What came after a version that is not the newest.
    pub(super) async fn news(&self, after: u64) -> Result<Vec<News>, Fault> {
        let known = self.recent().after(after);
        if let Some(known) = known.filter(|known| !known.is_empty()) {
            return Ok(known.iter().take(NEWS_MAX).map(|fresh| fresh.news()).collect());
        }
        let Seen { head, revision, .. } = self.head().await?;
        if after.saturating_add(1) < head.kept_from || after.saturating_add(NEWS_MAX as u64) < head.version {
            return Ok(self.load().await?.map(News::Whole).into_iter().collect());
        }
        let mut news = Vec::new();
        for entry in self.entries(after.saturating_add(1), head.version, revision).await? {
            let deltas = self.deltas(&entry, revision).await?;
            news.push(News::Next { version: entry.version, id_next: entry.id_next, deltas });
        }
        Ok(news)
    }

    /// What happened after a version, when all of it is in memory.
    pub(super) fn history_in_memory(&self, after: u64, limit: usize) -> Option<Vec<HistoryEntry>> {
        let fresh = self.recent().after(after)?;
        let head = fresh.last()?.entry.version;
        let refusals = self.waiting_refusals().into_iter().filter(|(noted_at, _)| *noted_at >= after).map(Some);
        let refusals = refusals.map(|refusal| refusal.ok_or(()));
        let mut fresh = fresh.iter();
        let commit = |version| {
            let record = fresh.next().and_then(|fresh| fresh.record()).ok_or(())?;
            Ok(HistoryEntry { version, record, outcome: Outcome::Committed })
        };
        history::in_order(after, after.saturating_add(1), head, limit, refusals, commit).ok()
    }

    /// An older catalog, when all that leads to it is in memory.
    pub(super) fn catalog_in_memory(&self, newest: &Catalog, version: u64) -> Option<Catalog> {
        if version == newest.version() {
            return Some(newest.clone());
        }
        let fresh = self.recent().after(version)?;
        let steps =
            |made| Ok::<_, ()>(fresh.iter().find(|fresh| fresh.entry.version == made).map(|f| f.deltas.clone()));
        history::backwards(newest, version, version, steps).ok().flatten()
    }
}

/// What is compacted while it is read is read anew, at a newer revision.
fn unless_compacted(fault: Fault) -> Option<Fault> {
    let compacted = matches!(&fault, Fault::Link(error) if error.is_compacted());
    (!compacted).then_some(fault)
}
