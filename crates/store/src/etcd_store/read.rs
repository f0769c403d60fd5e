//! Reading: all at one revision of etcd, so that what is put together belongs together.

use std::collections::BTreeMap;

use etcd_client::{Compare, CompareOp, GetOptions, KeyValue, SortOrder, SortTarget, Txn, TxnOp};
use serde::de::DeserializeOwned;
use switchyard_catalog::{Catalog, Delta, Entity};
use thiserror::Error;
use tokio::task::spawn_blocking;

use super::Inner;
use super::format::{DELTAS, ENTITIES, Entry, Head, Kept, PART_BYTES, Refused, STATEMENTS, ValueError, parse};
use super::keys::{KeyRange, StageId};
use crate::contract::{HistoryEntry, Loaded, Outcome, REFUSALS_MAX, Record};
use crate::etcd::{LinkError, keys_and_values};
use crate::history;

/// How many entries of history are read at once.
const ENTRIES_PAGE: usize = 256;
/// How many parts are read at once.
const PARTS_PAGE: usize = 32;
/// How many keys without values are read at once.
pub(super) const KEYS_PAGE: usize = 10_000;
/// How often reading begins anew when etcd compacts what is being read.
const ATTEMPTS: usize = 5;

/// What is read at one revision may be compacted meanwhile: then it is read again, at a newer one.
macro_rules! again_when_compacted {
    ($read:expr) => {{
        let mut attempts = 1;
        loop {
            match $read {
                Err(Fault::Link(error)) if error.is_compacted() && attempts < ATTEMPTS => attempts += 1,
                done => break done,
            }
        }
    }};
}

/// Why something could not be read or written.
#[derive(Debug, Error)]
pub(crate) enum Fault {
    #[error(transparent)]
    Link(#[from] LinkError),
    #[error(transparent)]
    Value(#[from] ValueError),
    #[error("cannot be written as JSON")]
    Json(#[from] serde_json::Error),
    #[error("version {found} is the newest, but version {known} was known before")]
    Backwards { found: u64, known: u64 },
    #[error("it took longer than its lease")]
    StagedTooLong,
    #[error("others change it all the time")]
    Busy,
    #[error("key \"{key}\" is not of Switchyard")]
    Foreign { key: String },
}

impl Fault {
    /// Whether etcd did not answer.
    pub(crate) fn is_lost(&self) -> bool {
        matches!(self, Self::Link(error) if error.is_lost())
    }
}

/// The head, as it was at a revision.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) head: Head,
    /// When it was last changed; 0 when it is not there.
    pub(super) changed: i64,
    pub(super) revision: i64,
}

/// How a range of keys is read.
#[derive(Clone, Copy)]
pub(super) struct Scan {
    /// 0 is the newest.
    pub(super) revision: i64,
    pub(super) page: usize,
    pub(super) limit: usize,
    pub(super) keys_only: bool,
}

impl Inner {
    /// Reads the head.
    pub(super) async fn head(&self) -> Result<Seen, Fault> {
        // What is known now, a later reading must show.
        let known = self.known_version();
        let key = self.keys.head();
        let answer = self
            .link
            .call(|client| {
                let key = key.clone();
                async move { keys_and_values(&client).get(key, None).await }
            })
            .await?;
        let revision = answer.header().map_or(0, |header| header.revision());
        let seen = self.seen(answer.kvs().first(), revision, known)?;
        self.know(seen.head.version);
        self.note_oldest(seen.head.oldest);
        Ok(seen)
    }

    /// The head from its key's value.
    pub(super) fn seen(&self, found: Option<&KeyValue>, revision: i64, known: u64) -> Result<Seen, Fault> {
        let (head, changed) = match found {
            Some(found) => (Head::parse(&self.keys.head(), found.value())?, found.mod_revision()),
            None => (Head::empty(), 0),
        };
        if head.version < known {
            return Err(Fault::Backwards { found: head.version, known });
        }
        Ok(Seen { head, changed, revision })
    }

    /// Reads keys in their order.
    pub(super) async fn scan(&self, range: KeyRange, how: Scan) -> Result<Vec<KeyValue>, Fault> {
        let (mut start, end) = (range.0.into_bytes(), range.1);
        let mut all = Vec::new();
        while all.len() < how.limit && start.as_slice() < end.as_bytes() {
            let limit = how.page.min(how.limit - all.len());
            let mut options = GetOptions::new()
                .with_range(end.clone())
                .with_revision(how.revision)
                .with_limit(i64::try_from(limit).unwrap_or(i64::MAX))
                .with_sort(SortTarget::Key, SortOrder::Ascend);
            if how.keys_only {
                options = options.with_keys_only();
            }
            let mut answer = self
                .link
                .call(|client| {
                    let (start, options) = (start.clone(), options.clone());
                    async move { keys_and_values(&client).get(start, Some(options)).await }
                })
                .await?;
            let more = answer.more();
            all.append(&mut answer.take_kvs());
            match all.last() {
                Some(last) if more => {
                    start = last.key().to_vec();
                    start.push(0);
                }
                _ => break,
            }
        }
        Ok(all)
    }

    /// Reads the entries of versions, both ends included: all of them, or it is an error.
    pub(super) async fn entries(&self, from: u64, to: u64, revision: i64) -> Result<Vec<Entry>, Fault> {
        let how = Scan { revision, page: ENTRIES_PAGE, limit: usize::MAX, keys_only: false };
        let found = self.scan(self.keys.log_range(from, to.saturating_add(1)), how).await?;
        let mut found = found.iter();
        let mut entries = Vec::new();
        for version in from..=to {
            entries.push(self.entry(version, found.next())?);
        }
        Ok(entries)
    }

    /// The entry of a version from its key's value.
    pub(super) fn entry(&self, version: u64, found: Option<&KeyValue>) -> Result<Entry, Fault> {
        let key = self.keys.log(version);
        let Some(found) = found.filter(|found| found.key() == key.as_bytes()) else {
            return Err(ValueError::Missing { key }.into());
        };
        let entry: Entry = parse(&key, found.value())?;
        if entry.version != version {
            return Err(ValueError::Garbage { key, byte: 0 }.into());
        }
        Ok(entry)
    }

    /// Reads a list that was cut into parts.
    async fn section<T: DeserializeOwned + Send + 'static>(
        &self,
        (family, id, section): (&'static str, StageId, &'static str),
        parts: u32,
        bytes: u64,
        revision: i64,
    ) -> Result<Vec<T>, Fault> {
        let how = Scan { revision, page: PARTS_PAGE, limit: usize::MAX, keys_only: false };
        let found = self.scan(self.keys.section(family, &id, section), how).await?;
        let mut whole = Vec::with_capacity(found.iter().map(|part| part.value().len()).sum());
        let mut found = found.into_iter();
        for part in 0..parts {
            let key = self.keys.part(family, &id, section, part);
            match found.next() {
                Some(found) if found.key() == key.as_bytes() => whole.extend_from_slice(found.value()),
                _ => return Err(ValueError::Missing { key }.into()),
            }
        }
        let key = self.keys.part(family, &id, section, 0);
        if whole.len() as u64 != bytes {
            return Err(ValueError::Garbage { key, byte: whole.len().min(PART_BYTES) }.into());
        }
        // Some 100,000 objects take a while.
        let parsed = spawn_blocking(move || parse(&key, &whole)).await;
        Ok(parsed.unwrap_or_else(|_| Err(ValueError::Missing { key: String::new() }))?)
    }

    /// What a version changed.
    pub(super) async fn deltas(&self, entry: &Entry, revision: i64) -> Result<Vec<Delta>, Fault> {
        match &entry.deltas {
            Kept::Here(deltas) => Ok(deltas.clone()),
            Kept::Parts { parts, bytes } => {
                let id = StageId::new(entry.version, &entry.nonce);
                self.section(("parts", id, DELTAS), *parts, *bytes, revision).await
            }
        }
    }

    async fn record(&self, entry: Entry, revision: i64) -> Result<Record, Fault> {
        let Entry { version, nonce, time_us, user, client, statements, .. } = entry;
        let statements = match statements {
            Kept::Here(statements) => statements,
            Kept::Parts { parts, bytes } => {
                let id = StageId::new(version, &nonce);
                self.section(("parts", id, STATEMENTS), parts, bytes, revision).await?
            }
        };
        Ok(Record { time_us, user, client, statements })
    }

    /// Reads the newest catalog.
    pub(super) async fn load(&self) -> Result<Option<Loaded>, Fault> {
        again_when_compacted!(self.load_once().await)
    }

    async fn load_once(&self) -> Result<Option<Loaded>, Fault> {
        let seen = self.head().await?;
        self.load_at(&seen).await
    }

    /// Reads the catalog of a head: a snapshot, and what came after it.
    pub(super) async fn load_at(&self, Seen { head, revision, .. }: &Seen) -> Result<Option<Loaded>, Fault> {
        if head.version == 0 {
            return Ok(None);
        }
        let mut entities: BTreeMap<(&'static str, u64), Entity> = BTreeMap::new();
        if let Some(snapshot) = &head.snapshot {
            let place = ("snapshot", StageId::new(snapshot.version, &snapshot.nonce), ENTITIES);
            let found: Vec<Entity> = self.section(place, snapshot.parts, snapshot.bytes, *revision).await?;
            entities.extend(found.into_iter().map(|entity| ((entity.kind(), entity.id()), entity)));
        }
        let mut from = head.snapshot_version().saturating_add(1);
        while from <= head.version {
            let to = head.version.min(from.saturating_add(ENTRIES_PAGE as u64 - 1));
            for entry in self.entries(from, to, *revision).await? {
                apply(&mut entities, self.deltas(&entry, *revision).await?);
            }
            from = to.saturating_add(1);
        }
        let entities = entities.into_values().collect();
        Ok(Some(Loaded { version: head.version, id_next: head.id_next, entities }))
    }

    /// Reads what happened after version `after` was made.
    pub(super) async fn history_after(&self, after: u64, limit: usize) -> Result<Vec<HistoryEntry>, Fault> {
        again_when_compacted!(self.history_once(after, limit).await)
    }

    async fn history_once(&self, after: u64, limit: usize) -> Result<Vec<HistoryEntry>, Fault> {
        // So that no refusal is on its way from here to there.
        let _none_on_its_way = self.flushing.lock().await;
        let Seen { head, revision, .. } = self.head().await?;
        let refusals = self.refusals(after, revision).await?;
        let first = after.max(head.oldest.saturating_sub(1)).saturating_add(1);
        let last = head.version.min(first.saturating_add(limit as u64).saturating_sub(1));
        let mut records = BTreeMap::new();
        if limit > 0 && first <= last {
            for entry in self.entries(first, last, revision).await? {
                records.insert(entry.version, self.record(entry, revision).await?);
            }
        }
        let commit = |version| match records.remove(&version) {
            Some(record) => Ok(HistoryEntry { version, record, outcome: Outcome::Committed }),
            None => Err(Fault::from(ValueError::Missing { key: self.keys.log(version) })),
        };
        history::in_order(after, head.oldest, head.version, limit, refusals.into_iter().map(Ok), commit)
    }

    /// Those noted when `after` or a later version was the newest: of all members, and those of this one that nobody
    /// else has seen yet.
    async fn refusals(&self, after: u64, revision: i64) -> Result<Vec<(u64, HistoryEntry)>, Fault> {
        let how = Scan { revision, page: PARTS_PAGE, limit: usize::MAX, keys_only: false };
        let mut all = Vec::new();
        for found in self.scan(self.keys.family("refused"), how).await? {
            let key = String::from_utf8_lossy(found.key()).into_owned();
            let Refused(mut together) = parse(&key, found.value())?;
            all.append(&mut together);
        }
        all.extend(self.waiting_refusals());
        let surplus = all.len().saturating_sub(REFUSALS_MAX);
        let mut kept = all.split_off(surplus);
        kept.retain(|(noted_at, _)| *noted_at >= after);
        kept.sort_by_key(|(noted_at, _)| *noted_at);
        Ok(kept)
    }

    /// Goes backwards from `newest`, a page of history at a time.
    pub(super) async fn catalog_at(&self, newest: &Catalog, version: u64) -> Result<Option<Catalog>, Fault> {
        again_when_compacted!(self.catalog_once(newest, version).await)
    }

    async fn catalog_once(&self, newest: &Catalog, version: u64) -> Result<Option<Catalog>, Fault> {
        let Seen { head, revision, .. } = self.head().await?;
        let mut catalog = newest.clone();
        loop {
            let goal = version.max(catalog.version().saturating_sub(ENTRIES_PAGE as u64));
            let mut made = BTreeMap::new();
            if goal < catalog.version() && version >= head.oldest.max(1) {
                for entry in self.entries(goal.saturating_add(1), catalog.version(), revision).await? {
                    made.insert(entry.version, self.deltas(&entry, revision).await?);
                }
            }
            let found =
                history::backwards(&catalog, goal, head.oldest, |version| Ok::<_, Fault>(made.remove(&version)))?;
            match found {
                Some(found) if found.version() > version => catalog = found,
                found => return Ok(found),
            }
        }
    }

    /// Whether what was staged is neither part of a commit or of the head, nor can become so.
    pub(super) async fn is_dead(&self, family: &'static str, id: &StageId) -> Result<bool, Fault> {
        let stays = match family {
            "parts" => id.version().map(|version| self.keys.log(version)),
            _ => Some(self.keys.head()),
        };
        let Some(stays) = stays else { return Ok(false) };
        let marker = self.keys.marker(family, id);
        let answer = self
            .link
            .call(|client| {
                // The marker goes when a commit or a snapshot is made, in the same transaction, and comes only once.
                let unmarked = Compare::create_revision(marker.clone(), CompareOp::Equal, 0);
                let look = TxnOp::get(stays.clone(), None);
                async move { keys_and_values(&client).txn(Txn::new().when([unmarked]).and_then([look])).await }
            })
            .await?;
        if !answer.succeeded() {
            return Ok(false);
        }
        let mut responses = answer.op_responses();
        let Some(etcd_client::TxnOpResponse::Get(found)) = responses.pop() else { return Ok(false) };
        let Some(found) = found.kvs().first() else { return Ok(true) };
        let alive = if family == "parts" {
            parse::<Entry>(&stays, found.value())?.nonce == id.nonce().unwrap_or_default()
        } else {
            let snapshot = Head::parse(&stays, found.value())?.snapshot;
            snapshot.is_some_and(|snapshot| StageId::new(snapshot.version, &snapshot.nonce) == *id)
        };
        Ok(!alive)
    }

    /// The foreign key among those that are there before the first commit.
    pub(super) async fn foreign_key(&self) -> Result<Option<String>, Fault> {
        let prefix = self.keys.prefix();
        let end = format!("{}0", prefix.trim_end_matches('/'));
        let how = Scan { revision: 0, page: KEYS_PAGE, limit: KEYS_PAGE, keys_only: true };
        let found = self.scan((prefix.to_owned(), end), how).await?;
        let keys = found.iter().map(|found| String::from_utf8_lossy(found.key()).into_owned());
        Ok(keys.into_iter().find(|key| !self.keys.may_precede(key)))
    }
}

/// Takes the steps of a version.
fn apply(entities: &mut BTreeMap<(&'static str, u64), Entity>, deltas: Vec<Delta>) {
    for Delta { before, after } in deltas {
        match (before, after) {
            (_, Some(after)) => {
                entities.insert((after.kind(), after.id()), after);
            }
            (Some(before), None) => {
                entities.remove(&(before.kind(), before.id()));
            }
            (None, None) => {}
        }
    }
}

impl Inner {
    /// When versions were made, as far as their entries can be read.
    pub(super) async fn times(&self, from: u64, to: u64, revision: i64) -> Result<Vec<(u64, i64)>, Fault> {
        let how = Scan { revision, page: ENTRIES_PAGE, limit: ENTRIES_PAGE, keys_only: false };
        let found = self.scan(self.keys.log_range(from, to.saturating_add(1)), how).await?;
        let entries = found.iter().filter_map(|found| parse::<Entry>("", found.value()).ok());
        Ok(entries.map(|entry| (entry.version, entry.time_us)).collect())
    }
}
