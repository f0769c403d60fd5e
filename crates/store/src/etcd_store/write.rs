//! Writing: what is large is staged first, then one compare-and-set makes it the head.

use std::pin::pin;
use std::sync::atomic::Ordering;
use std::time::Duration;

use etcd_client::{Compare, CompareOp, DeleteOptions, PutOptions, Txn, TxnOp, TxnOpResponse};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::format::{ENTITIES, Encoded, FORMAT, Head, PART_BYTES, Refused, Snapshot, ValueError, parse, parts_of};
use super::keys::{KeyRange, StageId, nonce};
use super::read::{Fault, KEYS_PAGE, Scan, Seen};
use super::{Counter, Inner, Lost};
use crate::contract::{Commit, CommitError, Loaded, REFUSALS_MAX};
use crate::etcd::{LinkError, keys_and_values};

/// How often a commit tries again because something other than the version has changed in the head.
const SWAPS_MAX: usize = 16;
/// How many versions one commit gives up.
const GIVEN_UP_MAX: usize = 256;
/// How many entries one commit takes out of etcd.
const REMOVED_MAX: u64 = 1_000;
/// A snapshot is due when so much was written since the last, and at least as much as a part of it.
const SNAPSHOT_BYTES_MIN: u64 = 1024 * 1024;
const SNAPSHOT_SHARE: u64 = 4;
/// How much is noted of refused statements at once: whoever may connect can have statements refused.
const REFUSALS_BYTES_MAX: usize = 64 * 1024;

/// What became of a compare-and-set.
enum Swapped {
    Done,
    /// Something is not as it was.
    Changed(Seen),
}

impl Inner {
    /// Commits, and says what that makes the newest version.
    pub(super) async fn try_commit(&self, commit: &Commit) -> Result<u64, CommitError> {
        let refused = |fault| CommitError::Refused(self.error("write to", fault));
        self.settle().await.map_err(refused)?;
        let seen = self.head().await.map_err(refused)?;
        if seen.head.version != commit.base {
            return Err(CommitError::Stale { base: commit.base, head: seen.head.version });
        }
        let encoded = Encoded::new(commit, nonce()).map_err(|error| refused(error.into()))?;
        let id = StageId::new(commit.base.saturating_add(1), &encoded.nonce);
        if !encoded.staged.is_empty() {
            self.stage("parts", &id, &encoded.staged).await.map_err(refused)?;
        }
        self.swap_commit(commit, &encoded, &id, seen).await
    }

    async fn swap_commit(
        &self,
        commit: &Commit,
        encoded: &Encoded,
        id: &StageId,
        mut seen: Seen,
    ) -> Result<u64, CommitError> {
        let refused = |fault| CommitError::Refused(self.error("write to", fault));
        let version = commit.base.saturating_add(1);
        for _ in 0..SWAPS_MAX {
            let head = self.next_head(&seen, commit, encoded).await.map_err(refused)?;
            let mut operations = vec![TxnOp::put(self.keys.log(version), encoded.entry.as_slice(), None)];
            if head.kept_from > seen.head.kept_from {
                operations.push(delete(self.keys.log_range(seen.head.kept_from, head.kept_from)));
                operations.push(delete(self.keys.parts_range(0, head.kept_from)));
            }
            let marker = (!encoded.staged.is_empty()).then(|| self.keys.marker("parts", id));
            // What others have put there is not overwritten.
            let free = Compare::create_revision(self.keys.log(version), CompareOp::Equal, 0);
            self.watched().sends(&encoded.nonce);
            match self.swap(&seen, &head, marker, vec![free], operations).await {
                Ok(Swapped::Done) => {
                    if Self::snapshot_due(&head) {
                        self.snapshot_due.store(true, Ordering::Relaxed);
                        self.wake.notify_one();
                    }
                    return Ok(version);
                }
                // Attempts are made until one is answered: the first of them may have been ours.
                Ok(Swapped::Changed(now)) if now.head.version > commit.base => {
                    return self.whose(commit.base, &encoded.nonce).await;
                }
                Ok(Swapped::Changed(now)) if now.changed == seen.changed => {
                    return Err(refused(self.unswapped(version, seen.revision).await));
                }
                Ok(Swapped::Changed(now)) if now.head.version < commit.base => {
                    return Err(CommitError::Stale { base: commit.base, head: now.head.version });
                }
                Ok(Swapped::Changed(now)) => seen = now,
                Err(Fault::Link(error)) if error.may_be_done() => {
                    self.remember_lost(Lost { changed: seen.changed });
                    return self.whose_after(commit.base, &encoded.nonce, error).await;
                }
                Err(fault) => return Err(refused(fault)),
            }
        }
        Err(refused(Fault::Busy))
    }

    /// Why a commit was not made although the head is what it was.
    async fn unswapped(&self, version: u64, revision: i64) -> Fault {
        let how = Scan { revision, page: 1, limit: 1, keys_only: true };
        match self.scan(self.keys.log_range(version, version.saturating_add(1)), how).await {
            Ok(found) if found.is_empty() => Fault::StagedTooLong,
            Ok(_) => Fault::Foreign { key: self.keys.log(version) },
            Err(fault) => fault,
        }
    }

    /// Says whether the commit after version `base` was the one with this nonce. It can no longer be when it was not.
    async fn whose(&self, base: u64, nonce: &str) -> Result<u64, CommitError> {
        let version = base.saturating_add(1);
        let looked = async {
            self.settle().await?;
            let Seen { head, revision, .. } = self.head().await?;
            if head.version <= base {
                return Ok((head.version, false));
            }
            if head.version == version {
                return Ok((head.version, head.nonce == nonce));
            }
            let entry = self.entries(version, version, revision).await?.pop();
            Ok((head.version, entry.is_some_and(|entry| entry.nonce == nonce)))
        };
        match looked.await {
            Ok((_, true)) => Ok(version),
            Ok((head, false)) => Err(CommitError::Stale { base, head }),
            Err(fault) => Err(CommitError::Unknown(self.error("write to", fault))),
        }
    }

    /// The same, after `error` instead of an answer.
    async fn whose_after(&self, base: u64, nonce: &str, error: LinkError) -> Result<u64, CommitError> {
        match self.whose(base, nonce).await {
            Err(CommitError::Stale { base, head }) if head == base => {
                Err(CommitError::Refused(self.error("write to", error.into())))
            }
            done => done,
        }
    }

    /// Makes sure that no commit whose answer was lost comes after all.
    pub(super) async fn settle(&self) -> Result<(), Fault> {
        let lost = self.lost();
        if lost.is_empty() {
            return Ok(());
        }
        let seen = self.head().await?;
        if lost.iter().any(|lost| lost.changed == seen.changed) {
            let fence = seen.head.fence.wrapping_add(1);
            // Done or not, it is no longer what it was.
            self.swap(&seen, &Head { fence, ..seen.head.clone() }, None, Vec::new(), Vec::new()).await?;
        }
        self.forget_lost(&lost);
        Ok(())
    }

    /// The head as the commit makes it.
    async fn next_head(&self, seen: &Seen, commit: &Commit, encoded: &Encoded) -> Result<Head, Fault> {
        let head = &seen.head;
        let version = commit.base.saturating_add(1);
        let mut oldest = head.oldest.max(1);
        for _ in 0..GIVEN_UP_MAX {
            let made_us = match commit.retention.age_us_max {
                Some(_) => self.made_us(oldest, version, seen.revision).await?,
                None => None,
            };
            if !commit.retention.drops(oldest, || made_us, version, commit.record.time_us) {
                break;
            }
            oldest = oldest.saturating_add(1);
        }
        // What no snapshot stands for is still needed.
        let kept_from = oldest.min(head.snapshot_version().saturating_add(1));
        Ok(Head {
            format: FORMAT,
            version,
            id_next: commit.id_next,
            oldest,
            kept_from: kept_from.min(head.kept_from.saturating_add(REMOVED_MAX)).max(head.kept_from),
            nonce: encoded.nonce.clone(),
            snapshot: head.snapshot.clone(),
            log_bytes: head.log_bytes.saturating_add(encoded.bytes),
            fence: head.fence,
        })
    }

    /// When a version was made. What cannot be read counts as just made: nobody shall lose it unseen.
    async fn made_us(&self, version: u64, newest: u64, revision: i64) -> Result<Option<i64>, Fault> {
        if version >= newest {
            return Ok(None);
        }
        if let Some(time_us) = self.known_time(version) {
            return Ok(Some(time_us));
        }
        self.learn_times(version, self.times(version, newest.saturating_sub(1), revision).await?);
        Ok(Some(self.known_time(version).unwrap_or(i64::MAX)))
    }

    /// Replaces the head, if it is still what was seen and the marker is still there, and does more with it.
    async fn swap(
        &self,
        seen: &Seen,
        head: &Head,
        marker: Option<String>,
        mut compares: Vec<Compare>,
        mut operations: Vec<TxnOp>,
    ) -> Result<Swapped, Fault> {
        let known = self.known_version();
        let key = self.keys.head();
        compares.push(Compare::mod_revision(key.as_str(), CompareOp::Equal, seen.changed));
        operations.push(TxnOp::put(key.as_str(), serde_json::to_vec(head)?, None));
        if let Some(marker) = marker {
            compares.push(Compare::create_revision(marker.as_str(), CompareOp::Greater, 0));
            operations.push(TxnOp::delete(marker, None));
        }
        let transaction = Txn::new().when(compares).and_then(operations).or_else([TxnOp::get(key, None)]);
        let answer = self.link.transact(&transaction).await?;
        if answer.succeeded() {
            return Ok(Swapped::Done);
        }
        let revision = answer.header().map_or(0, |header| header.revision());
        let found = match answer.op_responses().pop() {
            Some(TxnOpResponse::Get(found)) => found,
            _ => return Err(ValueError::Missing { key: self.keys.head() }.into()),
        };
        Ok(Swapped::Changed(self.seen(found.kvs().first(), revision, known)?))
    }

    /// Writes lists in parts, under a marker that lives as long as whoever writes.
    async fn stage(
        &self,
        family: &'static str,
        id: &StageId,
        sections: &[(&'static str, Vec<u8>)],
    ) -> Result<(), Fault> {
        let asked = i64::try_from(self.link.options().staging_s.max(1)).unwrap_or(i64::MAX);
        let granted = self.link.call(|client| async move { client.lease_client().grant(asked, None).await }).await?;
        let (lease, ttl) = (granted.id(), Duration::from_secs(u64::try_from(granted.ttl()).unwrap_or(1).max(1)));
        let marker = self.keys.marker(family, id);
        self.put(&marker, Vec::new(), Some(PutOptions::new().with_lease(lease))).await?;
        let written = pin!(async {
            for (section, bytes) in sections {
                for (part, bytes) in (0_u32..).zip(bytes.chunks(PART_BYTES)) {
                    self.put_marked(&marker, self.keys.part(family, id, section, part), bytes).await?;
                }
            }
            Ok(())
        });
        let kept_alive = pin!(async {
            loop {
                sleep(ttl / 3).await;
                self.link.call(|client| async move { client.lease_client().keep_alive(lease).await }).await?;
            }
        });
        tokio::select! {
            done = written => done,
            failed = kept_alive => failed,
        }
    }

    async fn put(&self, key: &str, value: Vec<u8>, options: Option<PutOptions>) -> Result<(), Fault> {
        self.link
            .call(|client| {
                let (value, options) = (value.clone(), options.clone());
                async move { keys_and_values(&client).put(key, value, options).await }
            })
            .await?;
        Ok(())
    }

    /// Writes a part as long as the marker is there: without it, it might be swept, or be left for ever.
    async fn put_marked(&self, marker: &str, key: String, value: &[u8]) -> Result<(), Fault> {
        let there = Compare::create_revision(marker, CompareOp::Greater, 0);
        let transaction = Txn::new().when([there]).and_then([TxnOp::put(key, value, None)]);
        let answer = self.link.transact(&transaction).await?;
        if answer.succeeded() { Ok(()) } else { Err(Fault::StagedTooLong) }
    }

    /// Whether so much was written since the last snapshot that a new one is worth it.
    fn snapshot_due(head: &Head) -> bool {
        let snapshot = head.snapshot.as_ref().map_or(0, |snapshot| snapshot.bytes);
        head.log_bytes >= SNAPSHOT_BYTES_MIN.max(snapshot / SNAPSHOT_SHARE)
    }

    /// Writes a snapshot of the newest version if one is due, or asked for. Says whether it did.
    pub(super) async fn snapshot(&self, asked_for: bool) -> Result<bool, Fault> {
        let mut seen = self.head().await?;
        if seen.head.version == seen.head.snapshot_version() || !(asked_for || Self::snapshot_due(&seen.head)) {
            return Ok(false);
        }
        let Some(loaded) = self.load_at(&seen).await? else { return Ok(false) };
        let Loaded { version, id_next, entities } = loaded;
        // Some 100,000 objects take a while.
        let encoded = spawn_blocking(move || serde_json::to_vec(&entities)).await;
        let Ok(bytes) = encoded else { return Ok(false) };
        let bytes = bytes?;
        let snapshot =
            Snapshot { version, id_next, nonce: nonce(), parts: parts_of(bytes.len()), bytes: bytes.len() as u64 };
        let id = StageId::new(snapshot.version, &snapshot.nonce);
        let log_bytes = seen.head.log_bytes;
        self.stage("snapshot", &id, &[(ENTITIES, bytes)]).await?;
        for _ in 0..SWAPS_MAX {
            if seen.head.snapshot_version() >= snapshot.version {
                // Somebody else was faster; ours is swept.
                return Ok(false);
            }
            let head = Head {
                snapshot: Some(snapshot.clone()),
                log_bytes: seen.head.log_bytes.saturating_sub(log_bytes),
                ..seen.head.clone()
            };
            let old = seen.head.snapshot.as_ref().map(|old| StageId::new(old.version, &old.nonce));
            let operations = old.iter().map(|old| delete(self.keys.staged("snapshot", old))).collect();
            match self.swap(&seen, &head, Some(self.keys.marker("snapshot", &id)), Vec::new(), operations).await? {
                Swapped::Done => return Ok(true),
                Swapped::Changed(now) if now.changed == seen.changed => return Err(Fault::StagedTooLong),
                Swapped::Changed(now) => seen = now,
            }
        }
        Err(Fault::Busy)
    }

    /// Takes out what was staged by somebody who is gone. Says of how many it was.
    pub(super) async fn sweep(&self) -> Result<u64, Fault> {
        let mut swept = 0;
        for family in ["parts", "snapshot"] {
            let how = Scan { revision: 0, page: KEYS_PAGE, limit: usize::MAX, keys_only: true };
            let found = self.scan(self.keys.family(family), how).await?;
            let keys = found.iter().filter_map(|found| std::str::from_utf8(found.key()).ok());
            let mut staged: Vec<StageId> = keys.filter_map(|key| self.keys.stage_of(family, key)).collect();
            staged.dedup();
            for id in staged {
                if self.is_dead(family, &id).await? {
                    let (start, end) = self.keys.staged(family, &id);
                    self.link
                        .call(|client| {
                            let (start, options) = (start.clone(), DeleteOptions::new().with_range(end.clone()));
                            async move { keys_and_values(&client).delete(start, Some(options)).await }
                        })
                        .await?;
                    swept += 1;
                }
            }
        }
        Ok(swept)
    }

    /// Brings some of the refusals that only this member knows to etcd. Says whether there are more.
    pub(super) async fn flush_refusals(&self) -> Result<bool, Fault> {
        let _one_at_a_time = self.flushing.lock().await;
        let (batch, last) = self.first_refusals(REFUSALS_BYTES_MAX);
        let Some(last) = last else { return Ok(false) };
        let count = batch.len() as u64;
        let batch = serde_json::to_vec(&Refused(batch))?;
        let key = self.keys.refusals();
        let ours = nonce();
        for _ in 0..SWAPS_MAX {
            let found = self
                .link
                .call(|client| {
                    let key = key.clone();
                    async move { keys_and_values(&client).get(key, None).await }
                })
                .await?;
            let (counter, changed) = match found.kvs().first() {
                Some(found) => (parse::<Counter>(&key, found.value())?, found.mod_revision()),
                None => (Counter::default(), 0),
            };
            if counter.nonce == ours {
                self.drop_refusals(last);
                return Ok(true);
            }
            let total = counter.total.saturating_add(count);
            let next = Counter { total, nonce: ours.clone() };
            let surplus = total.saturating_sub(REFUSALS_MAX as u64).saturating_add(1);
            let transaction =
                Txn::new().when([Compare::mod_revision(key.as_str(), CompareOp::Equal, changed)]).and_then([
                    TxnOp::put(key.as_str(), serde_json::to_vec(&next)?, None),
                    TxnOp::put(self.keys.refused(total), batch.as_slice(), None),
                    delete((self.keys.refused(0), self.keys.refused(surplus))),
                ]);
            let answer = self.link.transact(&transaction).await?;
            if answer.succeeded() {
                self.drop_refusals(last);
                return Ok(true);
            }
        }
        Err(Fault::Busy)
    }
}

fn delete((start, end): KeyRange) -> TxnOp {
    TxnOp::delete(start, Some(DeleteOptions::new().with_range(end)))
}
