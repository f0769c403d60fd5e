//! Advisory locks: the table that all sessions of a member share. PostgreSQL's meaning, without its wait for the deadlock
//! check: who would wait for himself is told at once.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

/// How many locks the sessions of a member may hold together.
const LOCKS_MAX: usize = 100_000;

/// How many sessions may wait for locks at the same time: each keeps a thread.
const WAITERS_MAX: usize = 200;

/// What is locked: one large number, or two small ones. The two kinds never meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LockKey {
    /// One number.
    One(i64),
    /// Two numbers.
    Two(i32, i32),
}

/// How it is locked, and until when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockMode {
    /// Others may share it.
    pub shared: bool,
    /// Until the end of the transaction, or the going back to fewer savepoints than these; none is until it is unlocked.
    pub depth: Option<usize>,
}

/// Why a lock was not got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockFault {
    /// Each of some sessions waits for the next.
    Deadlock,
    /// `lock_timeout`.
    Timeout,
    /// There are too many locks.
    Locks {
        /// The limit.
        locks_max: usize,
    },
    /// Too many sessions wait.
    Waiters {
        /// The limit.
        waiters_max: usize,
    },
}

/// A lock, or a wish for one, as `pg_locks` shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockRow {
    /// The session's process id.
    pub process_id: i32,
    /// What is locked.
    pub key: LockKey,
    /// Whether it is shared.
    pub shared: bool,
    /// Whether the session has it, and does not wait for it.
    pub granted: bool,
}

/// The locks of a member.
#[derive(Debug, Default)]
pub struct AdvisoryLocks {
    table: Mutex<Table>,
    held: AtomicUsize,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Table {
    grants: HashMap<LockKey, Vec<Grant>>,
    waiters: Vec<Waiter>,
    tickets: u64,
}

#[derive(Debug, Clone, Copy)]
struct Grant {
    process_id: i32,
    mode: LockMode,
    count: usize,
}

#[derive(Debug, Clone, Copy)]
struct Waiter {
    ticket: u64,
    process_id: i32,
    key: LockKey,
    shared: bool,
    expired: bool,
}

impl Table {
    /// The sessions that stand in the way of one that holds, or waits since, `before`.
    fn blockers(&self, process_id: i32, key: LockKey, shared: bool, before: u64) -> BTreeSet<i32> {
        let in_the_way = |other: i32, other_shared: bool| other != process_id && !(shared && other_shared);
        let holders = self.grants.get(&key).into_iter().flatten();
        let holders = holders.filter(|grant| in_the_way(grant.process_id, grant.mode.shared));
        let earlier = self.waiters.iter().filter(|waiter| waiter.key == key && waiter.ticket < before);
        let earlier = earlier.filter(|waiter| in_the_way(waiter.process_id, waiter.shared));
        holders.map(|grant| grant.process_id).chain(earlier.map(|waiter| waiter.process_id)).collect()
    }

    fn holds(&self, process_id: i32, key: LockKey) -> bool {
        self.grants.get(&key).is_some_and(|grants| grants.iter().any(|grant| grant.process_id == process_id))
    }

    /// Whether a session that waits with this ticket waits for itself.
    fn is_deadlock(&self, ticket: u64) -> bool {
        let blockers_of = |waiter: &Waiter| self.blockers(waiter.process_id, waiter.key, waiter.shared, waiter.ticket);
        let Some(own) = self.waiters.iter().find(|waiter| waiter.ticket == ticket) else { return false };
        let mut seen = BTreeSet::new();
        let mut next: Vec<i32> = blockers_of(own).into_iter().collect();
        while let Some(process_id) = next.pop() {
            if process_id == own.process_id {
                return true;
            }
            if seen.insert(process_id) {
                let waits = self.waiters.iter().filter(|waiter| waiter.process_id == process_id);
                next.extend(waits.flat_map(blockers_of));
            }
        }
        false
    }

    fn grant(&mut self, process_id: i32, key: LockKey, mode: LockMode) {
        let grants = self.grants.entry(key).or_default();
        match grants.iter_mut().find(|grant| grant.process_id == process_id && grant.mode == mode) {
            Some(grant) => grant.count = grant.count.saturating_add(1),
            None => grants.push(Grant { process_id, mode, count: 1 }),
        }
    }
}

impl AdvisoryLocks {
    fn locked(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the lock, if nobody is in the way.
    ///
    /// # Errors
    /// When there are too many locks.
    pub fn try_lock(&self, process_id: i32, key: LockKey, mode: LockMode) -> Result<bool, LockFault> {
        let mut table = self.locked();
        let free = table.blockers(process_id, key, mode.shared, 0).is_empty();
        if free {
            self.take(&mut table, process_id, key, mode)?;
        }
        Ok(free)
    }

    fn take(&self, table: &mut Table, process_id: i32, key: LockKey, mode: LockMode) -> Result<(), LockFault> {
        if table.grants.len() >= LOCKS_MAX && !table.holds(process_id, key) {
            return Err(LockFault::Locks { locks_max: LOCKS_MAX });
        }
        table.grant(process_id, key, mode);
        self.held.store(table.grants.len(), Ordering::Release);
        Ok(())
    }

    /// Takes the lock, after those that asked before; ends without it when nobody waits for this any more.
    ///
    /// # Errors
    /// When it cannot be got, or not within `timeout`.
    pub async fn lock(
        self: &Arc<Self>,
        process_id: i32,
        key: LockKey,
        mode: LockMode,
        timeout: Option<Duration>,
    ) -> Result<(), LockFault> {
        let (waiting, _expiry) = {
            let mut table = self.locked();
            // Who has it already need not stand in line.
            let before = if table.holds(process_id, key) { 0 } else { u64::MAX };
            if table.blockers(process_id, key, mode.shared, before).is_empty() {
                return self.take(&mut table, process_id, key, mode);
            }
            if table.waiters.len() >= WAITERS_MAX {
                return Err(LockFault::Waiters { waiters_max: WAITERS_MAX });
            }
            table.tickets = table.tickets.saturating_add(1);
            let ticket = table.tickets;
            table.waiters.push(Waiter { ticket, process_id, key, shared: mode.shared, expired: false });
            let waiting = Waiting { locks: Arc::clone(self), ticket };
            if table.is_deadlock(ticket) {
                drop(table);
                return Err(LockFault::Deadlock);
            }
            let expiry = timeout.map(|timeout| self.expire_after(ticket, timeout));
            (waiting, expiry)
        };
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            {
                let mut table = self.locked();
                let own = table.waiters.iter().find(|waiter| waiter.ticket == waiting.ticket);
                if own.is_none_or(|own| own.expired) {
                    return Err(LockFault::Timeout);
                }
                let before = if table.holds(process_id, key) { 0 } else { waiting.ticket };
                if table.blockers(process_id, key, mode.shared, before).is_empty() {
                    return self.take(&mut table, process_id, key, mode);
                }
            }
            changed.await;
        }
    }

    /// The clock belongs to the runtime: the thread that waits may outlive it.
    fn expire_after(self: &Arc<Self>, ticket: u64, timeout: Duration) -> Expiry {
        let locks = Arc::clone(self);
        Expiry(tokio::spawn(async move {
            tokio::time::sleep(timeout).await;
            if let Some(waiter) = locks.locked().waiters.iter_mut().find(|waiter| waiter.ticket == ticket) {
                waiter.expired = true;
            }
            locks.changed.notify_waiters();
        }))
    }

    /// Gives up a lock that is not its transaction's; false when the session has none such.
    pub fn unlock(&self, process_id: i32, key: LockKey, shared: bool) -> bool {
        let mut found = false;
        self.release(|own, grant| {
            if found || own != key || grant.process_id != process_id || grant.mode != (LockMode { shared, depth: None })
            {
                return grant.count;
            }
            found = true;
            grant.count.saturating_sub(1)
        });
        found
    }

    /// Gives up all locks of a session that are not its transaction's.
    pub fn unlock_all(&self, process_id: i32) {
        self.release(|_, grant| match grant.process_id == process_id && grant.mode.depth.is_none() {
            true => 0,
            false => grant.count,
        });
    }

    /// The transaction is over.
    pub fn end_transaction(&self, process_id: i32) {
        self.back(process_id, None);
    }

    /// The transaction went back to where it had so many savepoints; none is its end.
    pub fn back(&self, process_id: i32, depth: Option<usize>) {
        self.release(|_, grant| {
            let later = grant.mode.depth.is_some_and(|own| depth.is_none_or(|depth| own > depth));
            if grant.process_id == process_id && later { 0 } else { grant.count }
        });
    }

    /// Savepoints were released: so many are left.
    pub fn released(&self, process_id: i32, depth: usize) {
        if self.held.load(Ordering::Acquire) == 0 {
            return;
        }
        for grant in self.locked().grants.values_mut().flatten().filter(|grant| grant.process_id == process_id) {
            grant.mode.depth = grant.mode.depth.map(|own| own.min(depth));
        }
    }

    /// The session is over.
    pub fn end_session(&self, process_id: i32) {
        self.release(|_, grant| if grant.process_id == process_id { 0 } else { grant.count });
    }

    /// Sets how often each lock is held; those that are not any more go.
    fn release(&self, mut left: impl FnMut(LockKey, &Grant) -> usize) {
        // Most sessions never lock anything, and ask at the end of every statement.
        if self.held.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut table = self.locked();
        let mut given_up = false;
        table.grants.retain(|key, grants| {
            grants.retain_mut(|grant| {
                let count = left(*key, grant);
                grant.count = count;
                given_up |= count == 0;
                count > 0
            });
            !grants.is_empty()
        });
        self.held.store(table.grants.len(), Ordering::Release);
        drop(table);
        if given_up {
            self.changed.notify_waiters();
        }
    }

    /// All of them.
    pub fn rows(&self) -> Vec<LockRow> {
        let table = self.locked();
        let granted = table.grants.iter().flat_map(|(key, grants)| grants.iter().map(move |grant| (key, grant)));
        let granted = granted.map(|(key, grant)| LockRow {
            process_id: grant.process_id,
            key: *key,
            shared: grant.mode.shared,
            granted: true,
        });
        let waiting = table.waiters.iter().map(|waiter| LockRow {
            process_id: waiter.process_id,
            key: waiter.key,
            shared: waiter.shared,
            granted: false,
        });
        granted.chain(waiting).collect()
    }
}

/// A place in line, given up with this.
struct Waiting {
    locks: Arc<AdvisoryLocks>,
    ticket: u64,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.locks.locked().waiters.retain(|waiter| waiter.ticket != self.ticket);
        // Those behind may go on.
        self.locks.changed.notify_waiters();
    }
}

/// A clock that runs until this is dropped.
struct Expiry(tokio::task::JoinHandle<()>);

impl Drop for Expiry {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    const KEY: LockKey = LockKey::One(7);
    const EXCLUSIVE: LockMode = LockMode { shared: false, depth: None };
    const SHARED: LockMode = LockMode { shared: true, depth: None };

    #[test]
    fn locks_exclude_and_are_counted() {
        let locks = AdvisoryLocks::default();
        assert!(locks.try_lock(1, KEY, EXCLUSIVE).unwrap() && locks.try_lock(1, KEY, EXCLUSIVE).unwrap());
        assert!(!locks.try_lock(2, KEY, SHARED).unwrap());
        assert!(locks.try_lock(2, LockKey::Two(0, 7), EXCLUSIVE).unwrap());
        assert!(locks.unlock(1, KEY, false) && !locks.unlock(1, KEY, true));
        assert!(!locks.try_lock(2, KEY, SHARED).unwrap());
        assert!(locks.unlock(1, KEY, false) && !locks.unlock(1, KEY, false));
        assert!(locks.try_lock(2, KEY, SHARED).unwrap() && locks.try_lock(3, KEY, SHARED).unwrap());
        locks.end_session(2);
        locks.unlock_all(3);
        assert!(locks.rows().is_empty());
    }

    #[test]
    fn those_of_a_transaction_end_with_it() {
        let locks = AdvisoryLocks::default();
        let at = |depth| LockMode { shared: false, depth: Some(depth) };
        for (key, depth) in [(1, 0), (2, 1), (3, 2)] {
            assert!(locks.try_lock(1, LockKey::One(key), at(depth)).unwrap());
        }
        locks.unlock_all(1);
        assert!(!locks.unlock(1, LockKey::One(1), false));
        locks.released(1, 1);
        locks.back(1, Some(1));
        assert_eq!(locks.rows().len(), 3);
        locks.back(1, Some(0));
        assert_eq!(locks.rows().len(), 1);
        locks.end_transaction(1);
        assert!(locks.rows().is_empty());
    }

    #[tokio::test]
    async fn who_waits_gets_it_in_turn_and_who_would_wait_for_ever_is_told() {
        let locks = Arc::new(AdvisoryLocks::default());
        let (first, second) = (LockKey::One(1), LockKey::One(2));
        locks.lock(1, first, EXCLUSIVE, None).await.unwrap();
        locks.lock(2, second, EXCLUSIVE, None).await.unwrap();
        let waiting = tokio::spawn({
            let locks = Arc::clone(&locks);
            async move { locks.lock(1, second, EXCLUSIVE, None).await }
        });
        while locks.rows().iter().all(|row| row.granted) {
            tokio::task::yield_now().await;
        }
        assert_eq!(locks.lock(2, first, EXCLUSIVE, None).await, Err(LockFault::Deadlock));
        assert!(locks.unlock(2, second, false));
        waiting.await.unwrap().unwrap();
        // Whoever gives up waiting leaves nothing behind.
        let timeout = Some(Duration::from_millis(1));
        assert_eq!(locks.lock(3, first, SHARED, timeout).await, Err(LockFault::Timeout));
        assert!(locks.rows().iter().all(|row| row.granted && row.process_id == 1));
    }
}
