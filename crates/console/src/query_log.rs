//! The statements that have ended on this member, for `hologres.hg_query_log`.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use futures::stream::{BoxStream, Stream, StreamExt};
use switchyard_engine::{LoggedStatement, QueryError, Scalar};

use crate::counters::Counters;
use crate::live::now_us;

/// How much of a statement's text is kept, in bytes.
const STATEMENT_BYTES_MAX: usize = 4_096;

/// The ended statements, the newest last.
#[derive(Debug)]
pub(crate) struct QueryLog {
    statements: Mutex<VecDeque<Arc<LoggedStatement>>>,
    number_next: AtomicU64,
    /// All statements, whether they are kept or not.
    pub(crate) counters: Arc<Counters>,
}

/// Which ended statements are kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Keep {
    /// How many at most.
    pub(crate) statements_max: usize,
    /// How long one that did not fail must have taken; none keeps only those that fail.
    pub(crate) duration_us_min: Option<i64>,
}

impl QueryLog {
    /// Numbers begin with the time: they go on rising when the member is started again.
    pub(crate) fn new(start_us: i64) -> Self {
        Self {
            statements: Mutex::default(),
            counters: Arc::new(Counters::new(start_us)),
            number_next: AtomicU64::new(u64::try_from(start_us).unwrap_or_default().saturating_mul(1_000)),
        }
    }

    /// All of them now.
    pub(crate) fn statements(&self) -> Vec<Arc<LoggedStatement>> {
        self.statements.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// A statement begins; what is not known yet is left empty.
    pub(crate) fn begin(self: &Arc<Self>, mut statement: LoggedStatement, keep: Keep) -> Arc<Running> {
        statement.number = self.number_next.fetch_add(1, Ordering::Relaxed);
        let end = statement.statement.floor_char_boundary(STATEMENT_BYTES_MAX);
        statement.statement.truncate(end);
        Arc::new(Running { log: Arc::clone(self), keep, statement: Mutex::new(Some(statement)) })
    }

    fn add(&self, statement: LoggedStatement, statements_max: usize) {
        let mut statements = self.statements.lock().unwrap_or_else(PoisonError::into_inner);
        while statements.len() >= statements_max.max(1) {
            statements.pop_front();
        }
        if statements_max > 0 {
            statements.push_back(Arc::new(statement));
        }
    }
}

/// A statement that has not ended; the first end that it is told counts.
#[derive(Debug)]
pub(crate) struct Running {
    log: Arc<QueryLog>,
    keep: Keep,
    statement: Mutex<Option<LoggedStatement>>,
}

impl Running {
    /// The statement was planned, and its rows can be read.
    pub(crate) fn started(&self) {
        if let Some(statement) = self.statement.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            statement.start_cost_us = now_us().saturating_sub(statement.start_us);
        }
    }

    /// The statement did what it says.
    pub(crate) fn succeeded(&self, tag: &str, rows: Option<u64>) {
        self.end(|statement| {
            tag.clone_into(&mut statement.command_tag);
            statement.result_rows = rows;
        });
    }

    /// The statement failed.
    pub(crate) fn failed(&self, message: &str) {
        self.end(|statement| statement.failure = Some(message.to_owned()));
    }

    fn end(&self, tell: impl FnOnce(&mut LoggedStatement)) {
        let taken = self.statement.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut statement) = taken else { return };
        tell(&mut statement);
        statement.duration_us = now_us().saturating_sub(statement.start_us);
        if statement.start_cost_us == 0 {
            statement.start_cost_us = statement.duration_us;
        }
        self.log.counters.statement(statement.duration_us);
        let long = self.keep.duration_us_min.is_some_and(|least| statement.duration_us >= least);
        if long || statement.failure.is_some() {
            self.log.add(statement, self.keep.statements_max);
        }
    }

    /// The rows of a statement, which ends with them: with the last one, with a mistake, or when nobody reads on.
    pub(crate) fn follow(
        self: Arc<Self>,
        rows: BoxStream<'static, Result<Vec<Scalar>, QueryError>>,
    ) -> BoxStream<'static, Result<Vec<Scalar>, QueryError>> {
        Followed { running: self, rows, count: 0 }.boxed()
    }
}

impl Drop for Running {
    /// Nobody has told how it ended: the client went in the middle of it.
    fn drop(&mut self) {
        self.failed("connection to client lost");
    }
}

struct Followed {
    running: Arc<Running>,
    rows: BoxStream<'static, Result<Vec<Scalar>, QueryError>>,
    count: u64,
}

impl Stream for Followed {
    type Item = Result<Vec<Scalar>, QueryError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let row = ready!(self.rows.poll_next_unpin(context));
        match &row {
            Some(Ok(_)) => self.count += 1,
            Some(Err(error)) => self.running.failed(&error.message),
            None => self.running.succeeded("SELECT", Some(self.count)),
        }
        Poll::Ready(row)
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.running.succeeded("SELECT", Some(self.count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(log: &Arc<QueryLog>, text: &str, statements_max: usize) -> Arc<Running> {
        let statement = LoggedStatement {
            number: 0,
            user: String::new(),
            failure: None,
            command_tag: String::new(),
            start_us: now_us(),
            start_cost_us: 0,
            duration_us: 0,
            statement: text.to_owned(),
            result_rows: None,
            tables_read: Arc::default(),
            process_id: 1,
            application: String::new(),
            client: None,
            session_id: String::new(),
            session_start_us: 0,
            statement_number: 1,
        };
        log.begin(statement, Keep { statements_max, duration_us_min: Some(0) })
    }

    #[test]
    fn the_oldest_go_and_the_first_end_counts() {
        let log = Arc::new(QueryLog::new(7));
        for text in ["one", "two", "three"] {
            let running = begin(&log, text, 2);
            running.succeeded("SELECT", Some(1));
            running.failed("too late");
        }
        let kept = log.statements();
        let texts: Vec<&str> = kept.iter().map(|kept| kept.statement.as_str()).collect();
        assert_eq!(texts, ["two", "three"]);
        assert!(kept.iter().all(|kept| kept.failure.is_none()));
        begin(&log, "four", 0).failed("no");
        assert_eq!(log.statements().len(), 0);
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let log = Arc::new(QueryLog::new(0));
        begin(&log, &format!("{}\u{e4}", "x".repeat(STATEMENT_BYTES_MAX - 1)), 9).succeeded("SELECT", None);
        assert!(log.statements().iter().all(|kept| kept.statement.len() == STATEMENT_BYTES_MAX - 1));
    }

    #[tokio::test]
    async fn rows_are_counted_and_those_not_read_are_not() {
        let log = Arc::new(QueryLog::new(0));
        let rows = || futures::stream::iter((0..3).map(|n| Ok(vec![Scalar::Int(n)]))).boxed();
        let mut whole = begin(&log, "all", 9).follow(rows());
        while whole.next().await.is_some() {}
        let mut some = begin(&log, "some", 9).follow(rows());
        assert!(some.next().await.is_some());
        drop(some);
        let counts: Vec<Option<u64>> = log.statements().iter().map(|kept| kept.result_rows).collect();
        assert_eq!(counts, [Some(3), Some(1)]);
    }
}
