//! From a statement to what is to be done. Everything is decided here; the console commits and reports.

use switchyard_catalog::{Catalog, Change, Name, Verifiers};
use switchyard_dialect::{SqlStatement, Statement};

use crate::error::{PlanError, Warning};
use crate::rights;
use crate::session_state::{SessionChange, SessionState};

mod fleet;
mod function;
mod lockout;
mod people;
mod policy;
mod procedure;
mod session;
mod user;
mod words;

pub use function::{SHUTDOWN_ABORTED, SHUTDOWN_ABORTED_NOTICE};
pub use lockout::{is_about_logins, lockout_warnings};
pub(crate) use session::{checked_value, nearest};
pub(crate) use words::database as words_database;
pub use words::{parse_network, parse_verifiers, verifiers_text};

/// What a statement is planned against.
pub struct PlanContext<'a> {
    /// The catalog, with the session's own uncommitted changes.
    pub catalog: &'a Catalog,
    /// The session.
    pub session: &'a SessionState,
    /// Makes what is kept of a password; with a user's name also for clients that prove by MD5.
    pub make_verifiers: &'a dyn Fn(&str, Option<&Name>) -> Verifiers,
    /// Says whether a password fits what is kept.
    pub check_password: &'a dyn Fn(&Verifiers, &str) -> bool,
}

impl std::fmt::Debug for PlanContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PlanContext").field("catalog", self.catalog).finish_non_exhaustive()
    }
}

impl PlanContext<'_> {
    fn is_superuser(&self) -> bool {
        self.session.is_superuser(self.catalog)
    }

    /// The session's user, as grantor.
    fn user(&self) -> Result<Name, PlanError> {
        Ok(Name::parse(self.session.user_name(self.catalog))?)
    }
}

/// What is to be done.
#[derive(Debug, Clone)]
pub enum Plan {
    /// The catalog changes.
    Changes(Changes),
    /// The session changes.
    Session(SessionStep),
    /// There is an answer already.
    Rows(Rows),
    /// A transaction begins or ends, wholly or in part.
    Transaction(Transaction),
    /// DataFusion answers; it has its own guard.
    Query(SqlStatement),
    /// The catalog becomes as it was in that version: the console reads it and commits [`Change::Restore`]. Tag
    /// `RESTORE CATALOG`.
    Restore {
        /// The version.
        version: u64,
    },
    /// Something is done once, outside the catalog.
    Order(Order, Rows),
    /// A cursor, a prepared statement or a channel of the session is made, used or given up: only the console has them.
    SessionObject,
}

/// Changes to the catalog, and what the client gets to read when they are done.
#[derive(Debug, Clone)]
pub struct Changes {
    /// In order; may be none, when there is nothing to do.
    pub changes: Vec<Change>,
    /// The command tag.
    pub tag: &'static str,
    /// A row: of meta-functions only.
    pub answer: Option<Rows>,
    /// Sent before the answer.
    pub warnings: Vec<Warning>,
}

/// Changes to the session, and what the client gets to read.
#[derive(Debug, Clone)]
pub struct SessionStep {
    /// In order.
    pub changes: Vec<SessionChange>,
    /// The command tag.
    pub tag: &'static str,
    /// A row: of meta-functions only.
    pub answer: Option<Rows>,
    /// Sent before the answer.
    pub warnings: Vec<Warning>,
}

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// `text`
    Text,
    /// `boolean`, with values `t` and `f`
    Bool,
}

/// A small result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rows {
    /// Names and types.
    pub columns: Vec<(String, ColumnKind)>,
    /// Text form; `None` is NULL.
    pub rows: Vec<Vec<Option<String>>>,
    /// The command tag.
    pub tag: &'static str,
}

impl Rows {
    /// The answer of a meta-function: one row, one text.
    fn answer(column: &str, text: impl Into<String>) -> Self {
        Self {
            columns: vec![(column.to_owned(), ColumnKind::Text)],
            rows: vec![vec![Some(text.into())]],
            tag: "SELECT 1",
        }
    }

    /// A table of texts.
    pub(crate) fn table<const N: usize>(columns: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> Self {
        Self {
            columns: columns.iter().map(|name| ((*name).to_owned(), ColumnKind::Text)).collect(),
            rows: rows.into_iter().map(|row| row.into_iter().map(Some).collect()).collect(),
            tag: "SHOW",
        }
    }
}

/// BEGIN and what follows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transaction {
    /// BEGIN, START TRANSACTION; the changes are SET LOCALs of `transaction_...`, to be applied after it began.
    Begin {
        /// `BEGIN` or `START TRANSACTION`.
        tag: &'static str,
        /// The modes.
        modes: Vec<SessionChange>,
    },
    /// COMMIT.
    Commit,
    /// ROLLBACK.
    Rollback,
    /// SAVEPOINT.
    Savepoint(Name),
    /// RELEASE.
    Release(Name),
    /// ROLLBACK TO; its tag is `ROLLBACK`.
    RollbackTo(Name),
}

/// What is done once, outside the catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// CLOSE_SESSION. With `only_user`, a session of another user is refused as a privilege the caller lacks.
    CloseSession {
        /// `host-pid:0xN`.
        session_id: String,
        /// The caller, unless a superuser.
        only_user: Option<Name>,
    },
    /// CLOSE_USER_SESSIONS: all of the user's but the caller's.
    CloseUserSessions {
        /// The user.
        user: Name,
    },
    /// CLOSE_ALL_SESSIONS: all but the caller's; with `only_user`, that user's only.
    CloseAllSessions {
        /// The caller, unless a superuser.
        only_user: Option<Name>,
    },
    /// INTERRUPT_STATEMENT.
    InterruptStatement {
        /// `host-pid:0xN`.
        session_id: String,
        /// The statement's number.
        statement: u64,
        /// The caller, unless a superuser.
        only_user: Option<Name>,
    },
    /// SHUTDOWN. Without `force`, and with other sessions open, the answer is [`SHUTDOWN_ABORTED`] instead, after the
    /// notice [`SHUTDOWN_ABORTED_NOTICE`].
    Shutdown {
        /// Whether sessions are ended.
        force: bool,
    },
    /// SHUTDOWN_SUBCLUSTER and SHUTDOWN_WITH_DRAIN: its members end, when they have no sessions any more or the time is
    /// over.
    StopSubcluster {
        /// Which.
        subcluster: Name,
        /// How long their sessions may go on, in seconds; without, they are not even drained.
        drain_s: Option<u64>,
    },
    /// DESCRIBE_LOAD_BALANCE_DECISION: the answer is made by [`crate::describe::describe`]; it takes a turn.
    DescribeDecision {
        /// The client's address.
        address: std::net::IpAddr,
        /// As it was typed.
        typed: String,
    },
    /// STOP_MEMBER and START_MEMBER: a member that this process runs serves no more, or again.
    Member {
        /// Its node.
        node: Name,
        /// Whether it shall serve.
        serve: bool,
    },
    /// RESET_LOAD_BALANCE_POLICY: all round-robin pointers of this member go back to the start.
    ResetPointers,
}

/// Decides what a statement means.
///
/// # Errors
/// Why it cannot be done; the session and the catalog stay as they are.
pub fn plan(statement: &Statement, context: &PlanContext<'_>) -> Result<Plan, PlanError> {
    rights::check(statement, context)?;
    let plan = dispatch(statement, context)?;
    let changes = match (&plan, statement) {
        (Plan::Changes(_), Statement::Function { function, .. }) => function.name(),
        (Plan::Changes(changes), _) => changes.tag,
        (Plan::Restore { .. }, _) => "RESTORE CATALOG",
        _ => return Ok(plan),
    };
    if crate::settings::is_on("transaction_read_only", context.session, context.catalog) {
        return Err(PlanError::ReadOnly { tag: changes });
    }
    Ok(plan)
}

fn dispatch(statement: &Statement, context: &PlanContext<'_>) -> Result<Plan, PlanError> {
    match statement {
        Statement::Sql(statement) => Ok(session::of_sql(statement)),
        Statement::RestoreCatalog { version } => Ok(Plan::Restore { version: *version }),
        Statement::DeclareCursor { .. }
        | Statement::FetchCursor { .. }
        | Statement::CloseCursor(_)
        | Statement::Prepare { .. }
        | Statement::Execute { .. }
        | Statement::Deallocate(_)
        | Statement::Listen(_)
        | Statement::Unlisten(_)
        | Statement::Notify { .. } => Ok(Plan::SessionObject),
        Statement::Show(show) => match crate::show::of_table(show) {
            Some(query) => Ok(Plan::Query(query)),
            None => crate::show::plan(show, context).map(Plan::Rows),
        },
        Statement::Function { function, typed, arguments, alias } => {
            let column = alias.as_ref().map_or(typed.as_str(), |alias| alias.0.as_str());
            function::plan(*function, column, arguments, context)
        }
        Statement::Call { procedure, arguments } => procedure::plan(*procedure, arguments, context),
        _ => match session::plan(statement, context)? {
            Some(plan) => Ok(plan),
            None => change(statement, context),
        },
    }
}

/// The statements that change the catalog, family by family.
fn change(statement: &Statement, context: &PlanContext<'_>) -> Result<Plan, PlanError> {
    let families = [policy::plan, fleet::plan, people::plan];
    for family in families {
        if let Some(changes) = family(statement, context)? {
            return Ok(Plan::Changes(changes));
        }
    }
    // Every statement is of one family; the test that walks all statements keeps it so.
    Err(PlanError::NotSupported { what: "this statement".to_owned(), hint: None })
}

/// A plan of one change.
fn one(tag: &'static str, change: Change) -> Changes {
    Changes { changes: vec![change], tag, answer: None, warnings: Vec::new() }
}

#[cfg(test)]
pub(crate) mod tests;
