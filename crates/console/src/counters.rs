//! How much clients have done, for pgbouncer's SHOW STATS.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use switchyard_engine::{Traffic, Work};

/// How long a period of averages is, in microseconds: pgbouncer's `stats_period`.
const PERIOD_US: i64 = 60_000_000;

/// Sums over all sessions of this member since its start.
#[derive(Debug)]
pub(crate) struct Counters {
    transactions: AtomicU64,
    statements: AtomicU64,
    received_bytes: AtomicU64,
    sent_bytes: AtomicU64,
    transaction_us: AtomicU64,
    statement_us: AtomicU64,
    period: Mutex<Period>,
}

/// A period, and the averages of the one before.
#[derive(Debug)]
struct Period {
    begin_us: i64,
    at_begin: Traffic,
    average: Traffic,
}

impl Counters {
    pub(crate) fn new(start_us: i64) -> Self {
        let period = Period { begin_us: start_us, at_begin: Traffic::default(), average: Traffic::default() };
        Self {
            transactions: AtomicU64::new(0),
            statements: AtomicU64::new(0),
            received_bytes: AtomicU64::new(0),
            sent_bytes: AtomicU64::new(0),
            transaction_us: AtomicU64::new(0),
            statement_us: AtomicU64::new(0),
            period: Mutex::new(period),
        }
    }

    /// A client has sent so many bytes.
    pub(crate) fn received(&self, bytes: usize) {
        self.received_bytes.fetch_add(u64::try_from(bytes).unwrap_or_default(), Ordering::Relaxed);
    }

    /// A client was sent so many bytes.
    pub(crate) fn sent(&self, bytes: usize) {
        self.sent_bytes.fetch_add(u64::try_from(bytes).unwrap_or_default(), Ordering::Relaxed);
    }

    /// A statement has ended.
    pub(crate) fn statement(&self, duration_us: i64) {
        self.statements.fetch_add(1, Ordering::Relaxed);
        self.statement_us.fetch_add(u64::try_from(duration_us).unwrap_or_default(), Ordering::Relaxed);
    }

    /// A transaction has ended now.
    pub(crate) fn transaction(&self, begin_us: i64, now_us: i64) {
        self.turn(now_us);
        self.transactions.fetch_add(1, Ordering::Relaxed);
        let duration_us = u64::try_from(now_us.saturating_sub(begin_us)).unwrap_or_default();
        self.transaction_us.fetch_add(duration_us, Ordering::Relaxed);
    }

    /// All of it now.
    pub(crate) fn work(&self, now_us: i64, logins: usize) -> Work {
        Work { total: self.total(), average: self.turn(now_us), logins }
    }

    fn total(&self) -> Traffic {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Traffic {
            transactions: of(&self.transactions),
            statements: of(&self.statements),
            received_bytes: of(&self.received_bytes),
            sent_bytes: of(&self.sent_bytes),
            transaction_us: of(&self.transaction_us),
            statement_us: of(&self.statement_us),
        }
    }

    /// Begins another period when this one is over, and gives the averages of the last that is.
    fn turn(&self, now_us: i64) -> Traffic {
        let mut period = self.period.lock().unwrap_or_else(PoisonError::into_inner);
        let elapsed_us = now_us.saturating_sub(period.begin_us);
        if elapsed_us >= PERIOD_US {
            let total = self.total();
            let average = average(&period.at_begin, &total, u64::try_from(elapsed_us).unwrap_or(u64::MAX));
            *period = Period { begin_us: now_us, at_begin: total, average };
        }
        period.average
    }
}

/// Counts and bytes a second; times of one.
fn average(before: &Traffic, after: &Traffic, elapsed_us: u64) -> Traffic {
    let seconds = (elapsed_us / 1_000_000).max(1);
    let transactions = after.transactions.saturating_sub(before.transactions);
    let statements = after.statements.saturating_sub(before.statements);
    Traffic {
        transactions: transactions / seconds,
        statements: statements / seconds,
        received_bytes: after.received_bytes.saturating_sub(before.received_bytes) / seconds,
        sent_bytes: after.sent_bytes.saturating_sub(before.sent_bytes) / seconds,
        transaction_us: after.transaction_us.saturating_sub(before.transaction_us) / transactions.max(1),
        statement_us: after.statement_us.saturating_sub(before.statement_us) / statements.max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_are_those_of_the_period_that_is_over() {
        let counters = Counters::new(0);
        for _ in 0..120 {
            counters.statement(2_000);
            counters.received(60);
            counters.transaction(1_000, 5_000);
        }
        assert_eq!(counters.work(PERIOD_US - 1, 0).average, Traffic::default());
        let work = counters.work(PERIOD_US, 3);
        assert_eq!((work.total.transactions, work.total.received_bytes, work.logins), (120, 7_200, 3));
        let wanted = Traffic {
            transactions: 2,
            statements: 2,
            received_bytes: 120,
            sent_bytes: 0,
            transaction_us: 4_000,
            statement_us: 2_000,
        };
        assert_eq!(work.average, wanted);
        assert_eq!(counters.work(2 * PERIOD_US, 0).average, Traffic::default());
    }
}
