//! Several statements as one version of the catalog, or none.

use std::sync::Arc;

use switchyard_catalog::{Catalog, Change, Delta, Name, Notice, merge_deltas};
use switchyard_engine::{ClientError, SqlState};
use switchyard_store::{Commit, CommitError, Record};

use crate::Console;
use crate::live::now_us;

/// An open transaction.
#[derive(Debug)]
pub(crate) struct Transaction {
    base: Arc<Catalog>,
    working: Arc<Catalog>,
    changes: Vec<Change>,
    deltas: Vec<Delta>,
    statements: Vec<String>,
    savepoints: Vec<(Name, Mark)>,
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
            explicit,
            start_us: now_us(),
        }
    }

    /// The catalog as the transaction sees it.
    pub(crate) fn catalog(&self) -> &Arc<Catalog> {
        &self.working
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
    /// Makes a transaction durable as the next version. When another one came first, it is tried again on that one's
    /// catalog, and refused when it does not apply there.
    pub(crate) async fn commit(&self, transaction: Transaction, author: &Author) -> Result<(), ClientError> {
        if transaction.deltas.is_empty() {
            return Ok(());
        }
        let _one_at_a_time = self.committing.lock().await;
        let head = self.head.load();
        let (working, deltas) = if head.version() == transaction.base.version() {
            (transaction.working, transaction.deltas)
        } else {
            let applied = head.apply(&transaction.changes).map_err(|error| {
                let cause = ClientError::from(error);
                ClientError::new(SqlState::SerializationFailure, "could not serialize access due to concurrent update")
                    .with_detail(format!("Another session has changed the catalog since: {cause}."))
                    .with_hint("Run the transaction again.")
            })?;
            (Arc::new(applied.catalog), applied.deltas)
        };
        let commit = Commit {
            retention: crate::retention(&working),
            base: head.version(),
            id_next: working.id_next(),
            deltas: merge_deltas(deltas),
            record: author.record(transaction.statements),
        };
        let committed = self.store.commit(commit).await.map_err(|error| commit_error(&error))?;
        let catalog = Arc::unwrap_or_clone(working).with_version(committed.version);
        self.head.replace(Arc::new(catalog));
        Ok(())
    }
}

fn commit_error(error: &CommitError) -> ClientError {
    tracing::error!(error = error as &dyn std::error::Error, "commit failed");
    match error {
        CommitError::Stale { .. } => {
            ClientError::new(SqlState::SerializationFailure, "could not serialize access due to concurrent update")
                .with_hint("Run the transaction again.")
        }
        CommitError::Refused(cause) => ClientError::new(SqlState::IoError, "the catalog store refused the commit")
            .with_detail(format!("{cause}. Nothing was changed.")),
        CommitError::Unknown(cause) => {
            ClientError::new(SqlState::TransactionResolutionUnknown, "the outcome of the commit is unknown")
                .with_detail(format!("{cause}."))
                .with_hint("Read switchyard.catalog_history after the member was restarted.")
        }
    }
}
