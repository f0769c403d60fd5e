//! Several statements as one version of the catalog, or none.

use std::sync::Arc;
use std::time::{Duration, Instant};

use switchyard_catalog::{Catalog, Change, Delta, Name, Notice, merge_deltas};
use switchyard_engine::{ClientError, SqlState};
use switchyard_store::{Commit, CommitError, Committed, Record};

use crate::Console;
use crate::live::now_us;
use crate::metrics::Metrics;

/// An open transaction.
#[derive(Debug)]
pub(crate) struct Transaction {
    base: Arc<Catalog>,
    working: Arc<Catalog>,
    changes: Vec<Change>,
    deltas: Vec<Delta>,
    statements: Vec<String>,
    savepoints: Vec<(Name, Mark)>,
    /// Whether a statement of it may have decided who can log in.
    pub(crate) about_logins: bool,
    /// Begun by BEGIN, and not only for the statements of one string.
    pub(crate) explicit: bool,
    /// When it began, in microseconds since 1970-01-01 UTC.
    pub(crate) start_us: i64,
}

/// How far a transaction was.
#[derive(Debug, Clone)]
struct Mark {
    working: Arc<Catalog>,
    changes: usize,
    deltas: usize,
    statements: usize,
}

/// Who commits, for history.
#[derive(Debug, Clone)]
pub(crate) struct Author {
    pub(crate) user: String,
    pub(crate) client: String,
}

impl Author {
    pub(crate) fn record(&self, statements: Vec<String>) -> Record {
        Record { time_us: now_us(), user: self.user.clone(), client: self.client.clone(), statements }
    }
}

impl Transaction {
    pub(crate) fn begin(catalog: Arc<Catalog>, explicit: bool) -> Self {
        Self {
            working: Arc::clone(&catalog),
            base: catalog,
            changes: Vec::new(),
            deltas: Vec::new(),
            statements: Vec::new(),
            savepoints: Vec::new(),
            about_logins: false,
            explicit,
            start_us: now_us(),
        }
    }

    /// The catalog as the transaction sees it.
    pub(crate) fn catalog(&self) -> &Arc<Catalog> {
        &self.working
    }

    /// Whether its catalog is another one than that at its begin.
    pub(crate) fn changed(&self) -> bool {
        !Arc::ptr_eq(&self.base, &self.working)
    }

    /// The catalog that it began with.
    pub(crate) fn base(&self) -> &Arc<Catalog> {
        &self.base
    }

    /// Does what a statement says, for this transaction only.
    pub(crate) fn apply(&mut self, changes: Vec<Change>, statement: String) -> Result<Vec<Notice>, ClientError> {
        let applied = self.working.apply(&changes)?;
        self.working = Arc::new(applied.catalog);
        self.changes.extend(changes);
        self.deltas.extend(applied.deltas);
        self.statements.push(statement);
        Ok(applied.notices)
    }

    fn mark(&self) -> Mark {
        Mark {
            working: Arc::clone(&self.working),
            changes: self.changes.len(),
            deltas: self.deltas.len(),
            statements: self.statements.len(),
        }
    }

    pub(crate) fn savepoint(&mut self, name: Name) {
        let mark = self.mark();
        self.savepoints.push((name, mark));
    }

    /// Forgets a savepoint and those after it.
    pub(crate) fn release(&mut self, name: &Name) {
        if let Some(at) = self.savepoints.iter().rposition(|(own, _)| own == name) {
            self.savepoints.truncate(at);
        }
    }

    /// Goes back to a savepoint, which stays.
    pub(crate) fn rollback_to(&mut self, name: &Name) {
        let Some(at) = self.savepoints.iter().rposition(|(own, _)| own == name) else { return };
        self.savepoints.truncate(at + 1);
        if let Some((_, mark)) = self.savepoints.last() {
            self.working = Arc::clone(&mark.working);
            self.changes.truncate(mark.changes);
            self.deltas.truncate(mark.deltas);
            self.statements.truncate(mark.statements);
        }
    }
}

impl Console {
    /// Makes a transaction durable as the next version. When another one came first, of this member or of another, it is
    /// tried again on that one's catalog, and refused when it does not apply there.
    pub(crate) async fn commit(&self, transaction: Transaction, author: &Author) -> Result<(), ClientError> {
        if transaction.deltas.is_empty() {
            return Ok(());
        }
        let Transaction { base, mut working, changes, mut deltas, statements, .. } = transaction;
        let record = author.record(statements);
        let mut based_on = base.version();
        let mut attempts = 0..COMMITS_MAX;
        let _one_at_a_time = self.committing.lock().await;
        loop {
            let head = self.head.load();
            if head.version() != based_on {
                let applied = head.apply(&changes).map_err(|error| {
                    let cause = ClientError::from(error);
                    concurrent_update()
                        .with_detail(format!("Another session has changed the catalog since: {cause}."))
                        .with_hint("Run the transaction again.")
                })?;
                (working, deltas) = (Arc::new(applied.catalog), applied.deltas);
                based_on = head.version();
            }
            let commit = Commit {
                retention: crate::retention(&working),
                base: based_on,
                id_next: working.id_next(),
                deltas: merge_deltas(std::mem::take(&mut deltas)),
                record: record.clone(),
            };
            let begun = Instant::now();
            let outcome = self.store.commit(commit).await;
            self.metrics.commit_time.note(begun.elapsed());
            Metrics::count(&self.metrics.commits, outcome_name(&outcome));
            match outcome {
                Ok(committed) => {
                    let catalog = Arc::unwrap_or_clone(working).with_version(committed.version);
                    self.head.replace(Arc::new(catalog));
                    return Ok(());
                }
                // A member of another process was first: its commit is here in a moment.
                Err(error @ CommitError::Stale { .. }) => {
                    let again =
                        attempts.next().is_some() && self.catch_up(based_on, CATCH_UP_MAX).await.unwrap_or(false);
                    if !again {
                        return Err(commit_error(&error));
                    }
                }
                Err(error) => return Err(commit_error(&error)),
            }
        }
    }
}

fn outcome_name(outcome: &Result<Committed, CommitError>) -> &'static str {
    match outcome {
        Ok(_) => "committed",
        Err(CommitError::Stale { .. }) => "stale",
        Err(CommitError::Refused(_)) => "refused",
        Err(CommitError::Unknown(_)) => "unknown",
    }
}

/// How often a commit is tried again because another member was first.
const COMMITS_MAX: usize = 100;
/// How long the commit of the member that was first may take to be seen here.
const CATCH_UP_MAX: Duration = Duration::from_secs(2);

fn concurrent_update() -> ClientError {
    ClientError::new(SqlState::SerializationFailure, "could not serialize access due to concurrent update")
}

fn commit_error(error: &CommitError) -> ClientError {
    tracing::error!(error = error as &dyn std::error::Error, "commit failed");
    match error {
        CommitError::Stale { .. } => concurrent_update().with_hint("Run the transaction again."),
        CommitError::Refused(cause) if cause.is_unreachable() => {
            ClientError::new(SqlState::IoError, "the catalog store cannot be reached")
                .with_detail(format!("{cause}. Nothing was changed."))
                .with_hint("Logins and routing go on with the catalog as it was. Try again when the store answers.")
        }
        CommitError::Refused(cause) => ClientError::new(SqlState::IoError, "the catalog store refused the commit")
            .with_detail(format!("{cause}. Nothing was changed.")),
        CommitError::Unknown(cause) => {
            ClientError::new(SqlState::TransactionResolutionUnknown, "the outcome of the commit is unknown")
                .with_detail(format!("{cause}."))
                .with_hint("Read switchyard.catalog_history, of an embedded store after the member was restarted.")
        }
    }
}

#[cfg(test)]
mod tests {
    use switchyard_store::StoreError;

    use super::*;

    #[test]
    fn what_a_store_answers_has_its_code() {
        let cause = || StoreError { what: "cannot write the store f".to_owned(), source: None };
        for (error, sqlstate, message) in [
            (
                CommitError::Stale { base: 1, head: 2 },
                SqlState::SerializationFailure,
                "could not serialize access due to concurrent update",
            ),
            (CommitError::Refused(cause()), SqlState::IoError, "the catalog store refused the commit"),
            (
                CommitError::Unknown(cause()),
                SqlState::TransactionResolutionUnknown,
                "the outcome of the commit is unknown",
            ),
        ] {
            let told = commit_error(&error);
            assert_eq!((told.sqlstate, told.message.as_str()), (sqlstate, message));
            assert!(told.detail.is_some() || told.hint.is_some());
        }
    }
}
