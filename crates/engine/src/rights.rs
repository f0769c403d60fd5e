//! Who may do what: the rights table. One row for each statement, function and procedure, and for each function that a
//! query can call; system tables carry theirs in their declaration. Planning decides by these rows, the reference page
//! is made from them, and a test walks that page with real users.

use switchyard_catalog::{Name, ObjectKind, UserId};
use switchyard_dialect::{Ident, Literal, MetaFunction, Procedure, Show, Statement, UserAction, UserParameter};

use crate::error::PlanError;
use crate::plan::{PlanContext, nearest};
use crate::snapshot::Snapshot;
use crate::tables::Visibility;

mod queries;

pub use queries::{QUERY_FUNCTIONS, QueryFunctions, Reads};

/// Who may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Who {
    /// Everybody; what remains to be checked is checked when the statement is planned.
    Anyone,
    /// A superuser.
    Superuser,
    /// A superuser, and the user whom it is about.
    Himself,
    /// A superuser, and whoever has all the roles it names with ADMIN OPTION.
    AdminOption,
    /// A superuser, and whoever was granted what it names, by himself or by a role.
    Grantee,
    /// Whoever has the role it names; superusers too must have it.
    Member,
    /// A superuser, and the user whose session it is.
    OwnSession,
}

/// What one class of users gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is done, or all rows are shown.
    Allowed,
    /// Only the user's own rows are shown.
    OwnRows,
    /// 42501.
    Refused,
    /// There is no such class.
    None,
}

impl Outcome {
    /// As the reference page has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "yes",
            Self::OwnRows => "own rows",
            Self::Refused => "42501",
            Self::None => "",
        }
    }
}

impl Who {
    /// What superusers, owners, grantees and plain users get, in this order.
    pub fn outcomes(self) -> [Outcome; 4] {
        use Outcome::{Allowed, None, Refused};
        match self {
            Self::Anyone => [Allowed, None, None, Allowed],
            Self::Superuser => [Allowed, None, None, Refused],
            Self::Himself | Self::OwnSession => [Allowed, Allowed, None, Refused],
            Self::AdminOption | Self::Grantee => [Allowed, None, Allowed, Refused],
            Self::Member => [Refused, None, Allowed, Refused],
        }
    }
}

impl Visibility {
    /// What superusers, owners, grantees and plain users get, in this order.
    pub fn outcomes(self) -> [Outcome; 4] {
        match self {
            Self::All => Who::Anyone.outcomes(),
            Self::Own => [Outcome::Allowed, Outcome::None, Outcome::None, Outcome::OwnRows],
            Self::Superuser => Who::Superuser.outcomes(),
        }
    }
}

/// One row: what a statement needs. The message of a refusal is `Must be superuser to <verb> <kind>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Right {
    /// The statement, function or procedure.
    pub what: &'static str,
    /// Who may.
    pub who: Who,
    /// For the message.
    pub verb: &'static str,
    /// For the message.
    pub kind: &'static str,
}

/// Declares the rows of an enum, one a variant, and the function that finds them. Variants with several rows, or whose
/// rows are elsewhere, come first, each with the expression that finds its row.
macro_rules! rights {
    (
        $(#[$doc:meta])* $rows:ident, $find:ident($of:ty);
        elsewhere { $($special:pat $(if $condition:expr)? => $row:expr,)* }
        $($variant:ident: $what:expr, $who:ident, $verb:literal, $kind:literal;)+
    ) => {
        $(#[$doc])*
        pub const $rows: &[Right] = &[$(Right { what: $what, who: Who::$who, verb: $verb, kind: $kind }),+];

        fn $find(of: &$of) -> &'static Right {
            type Of = $of;
            match of {
                $($special $(if $condition)? => $row,)*
                $(Of::$variant { .. } => {
                    const ROW: Right = Right { what: $what, who: Who::$who, verb: $verb, kind: $kind };
                    &ROW
                })+
            }
        }
    };
}

/// The rows of statements of which only some forms are for everybody.
pub const FORMS: &[Right] = &[ALTER_OWN_USER, SHOW_USER, HAS_OWN_ROLE, SET_ROLE_GRANTED, SET_WORKLOAD_GRANTED];

/// Users change their own password (and must know the old one), their own search path and settings, and lower their own
/// idle session timeout.
const ALTER_OWN_USER: Right =
    Right { what: "ALTER USER (own password, timeout, settings)", who: Who::Himself, verb: "alter", kind: "user" };
const SHOW_USER: Right = Right { what: "SHOW USER", who: Who::Himself, verb: "show", kind: "user" };
/// One's own roles anyone may ask for.
const HAS_OWN_ROLE: Right =
    Right { what: "has_role(role), has_role(own name, role)", who: Who::Anyone, verb: "examine", kind: "role" };
const SET_ROLE_GRANTED: Right = Right { what: "SET ROLE role", who: Who::Member, verb: "set", kind: "role" };
const SET_WORKLOAD_GRANTED: Right =
    Right { what: "SET SESSION WORKLOAD workload", who: Who::Grantee, verb: "set", kind: "workload" };

rights! {
    /// The rows of statements.
    STATEMENTS, of_statement(Statement);
    elsewhere {
        Statement::Call { procedure, .. } => of_procedure(procedure),
        Statement::Function { function: MetaFunction::HasRole, arguments, .. } if arguments.len() < 2 => &HAS_OWN_ROLE,
        Statement::Function { function, .. } => of_function(function),
        Statement::Show(Show::User(..)) => &SHOW_USER,
        Statement::AlterUser { action, .. } if is_own(action) => &ALTER_OWN_USER,
        Statement::SetRole(switchyard_dialect::RoleChoice::Named(_)) => &SET_ROLE_GRANTED,
        Statement::SetSessionWorkload(switchyard_dialect::WorkloadChoice::Named(_)) => &SET_WORKLOAD_GRANTED,
    }
    CreateNetworkAddress: "CREATE NETWORK ADDRESS", Superuser, "create", "network address";
    AlterNetworkAddress: "ALTER NETWORK ADDRESS", Superuser, "alter", "network address";
    DropNetworkAddress: "DROP NETWORK ADDRESS", Superuser, "drop", "network address";
    CreateNetworkInterface: "CREATE NETWORK INTERFACE", Superuser, "create", "network interface";
    AlterNetworkInterface: "ALTER NETWORK INTERFACE", Superuser, "alter", "network interface";
    DropNetworkInterface: "DROP NETWORK INTERFACE", Superuser, "drop", "network interface";
    CreateSubnet: "CREATE SUBNET", Superuser, "create", "subnet";
    AlterSubnet: "ALTER SUBNET", Superuser, "alter", "subnet";
    DropSubnet: "DROP SUBNET", Superuser, "drop", "subnet";
    CreateLoadBalanceGroup: "CREATE LOAD BALANCE GROUP", Superuser, "create", "load balance group";
    AlterLoadBalanceGroup: "ALTER LOAD BALANCE GROUP", Superuser, "alter", "load balance group";
    DropLoadBalanceGroup: "DROP LOAD BALANCE GROUP", Superuser, "drop", "load balance group";
    CreateRoutingRule: "CREATE ROUTING RULE", Superuser, "create", "routing rule";
    CreateWorkloadRule: "CREATE ROUTING RULE ROUTE WORKLOAD", Superuser, "create", "routing rule";
    AlterRoutingRule: "ALTER ROUTING RULE", Superuser, "alter", "routing rule";
    DropRoutingRule: "DROP ROUTING RULE", Superuser, "drop", "routing rule";
    GrantWorkload: "GRANT USAGE ON WORKLOAD", Superuser, "grant", "workload";
    RevokeWorkload: "REVOKE USAGE ON WORKLOAD", Superuser, "revoke", "workload";
    CreateUser: "CREATE USER", Superuser, "create", "user";
    AlterUser: "ALTER USER", Superuser, "alter", "user";
    DropUser: "DROP USER", Superuser, "drop", "user";
    CreateRole: "CREATE ROLE", Superuser, "create", "role";
    AlterRole: "ALTER ROLE", Superuser, "alter", "role";
    DropRole: "DROP ROLE", Superuser, "drop", "role";
    GrantRole: "GRANT role", AdminOption, "grant", "role";
    RevokeRole: "REVOKE role", AdminOption, "revoke", "role";
    CreateAuthentication: "CREATE AUTHENTICATION", Superuser, "create", "authentication";
    AlterAuthentication: "ALTER AUTHENTICATION", Superuser, "alter", "authentication";
    DropAuthentication: "DROP AUTHENTICATION", Superuser, "drop", "authentication";
    GrantAuthentication: "GRANT AUTHENTICATION", Superuser, "grant", "authentication";
    RevokeAuthentication: "REVOKE AUTHENTICATION", Superuser, "revoke", "authentication";
    CreateUserMapping: "CREATE USER MAPPING", Superuser, "create", "user mapping";
    AlterUserMapping: "ALTER USER MAPPING", Superuser, "alter", "user mapping";
    DropUserMapping: "DROP USER MAPPING", Superuser, "drop", "user mapping";
    AlterDatabase: "ALTER DATABASE", Superuser, "alter", "database";
    CreateNode: "CREATE NODE", Superuser, "create", "node";
    AlterNode: "ALTER NODE", Superuser, "alter", "node";
    DropNode: "DROP NODE", Superuser, "drop", "node";
    CreateFaultGroup: "CREATE FAULT GROUP", Superuser, "create", "fault group";
    AlterFaultGroup: "ALTER FAULT GROUP", Superuser, "alter", "fault group";
    DropFaultGroup: "DROP FAULT GROUP", Superuser, "drop", "fault group";
    CreateSubcluster: "CREATE SUBCLUSTER", Superuser, "create", "subcluster";
    AlterSubcluster: "ALTER SUBCLUSTER", Superuser, "alter", "subcluster";
    DropSubcluster: "DROP SUBCLUSTER", Superuser, "drop", "subcluster";
    RestoreCatalog: "RESTORE CATALOG", Superuser, "restore", "catalog";
    Show: "SHOW", Anyone, "show", "parameter";
    SetSessionWorkload: "SET SESSION WORKLOAD NONE, DEFAULT", Anyone, "set", "workload";
    SetRole: "SET ROLE NONE, DEFAULT, ALL", Anyone, "set", "role";
    AlterSession: "ALTER SESSION", Anyone, "alter", "session";
    Set: "SET", Anyone, "alter", "session";
    Reset: "RESET", Anyone, "alter", "session";
    Discard: "DISCARD", Anyone, "alter", "session";
    SetTransaction: "SET TRANSACTION", Anyone, "begin", "transaction";
    Begin: "BEGIN", Anyone, "begin", "transaction";
    Commit: "COMMIT", Anyone, "begin", "transaction";
    Rollback: "ROLLBACK", Anyone, "begin", "transaction";
    Savepoint: "SAVEPOINT", Anyone, "begin", "transaction";
    ReleaseSavepoint: "RELEASE SAVEPOINT", Anyone, "begin", "transaction";
    RollbackTo: "ROLLBACK TO SAVEPOINT", Anyone, "begin", "transaction";
    DeclareCursor: "DECLARE", Anyone, "use", "cursor";
    FetchCursor: "FETCH, MOVE", Anyone, "use", "cursor";
    CloseCursor: "CLOSE", Anyone, "use", "cursor";
    Prepare: "PREPARE", Anyone, "use", "prepared statement";
    Execute: "EXECUTE", Anyone, "use", "prepared statement";
    Deallocate: "DEALLOCATE", Anyone, "use", "prepared statement";
    Listen: "LISTEN", Anyone, "use", "channel";
    Unlisten: "UNLISTEN", Anyone, "use", "channel";
    Notify: "NOTIFY", Anyone, "use", "channel";
    Sql: "SELECT", Anyone, "query", "system table";
}

rights! {
    /// The rows of the functions that are the whole of a SELECT.
    FUNCTIONS, of_function(MetaFunction);
    elsewhere {}
    SetLoadBalancePolicy: "set_load_balance_policy", Superuser, "set", "load balance policy";
    ResetLoadBalancePolicy: "reset_load_balance_policy", Superuser, "reset", "load balance policy";
    DescribeLoadBalanceDecision: "describe_load_balance_decision", Anyone, "describe", "load balance decision";
    SetConfigParameter: "set_config_parameter", Superuser, "set", "configuration parameter";
    GetClientLabel: "get_client_label", Anyone, "get", "client label";
    SetClientLabel: "set_client_label", Anyone, "set", "client label";
    CurrentSession: "current_session", Anyone, "get", "session";
    CloseSession: "close_session", OwnSession, "close", "session";
    // Others than superusers close their own.
    CloseAllSessions: "close_all_sessions", Anyone, "close", "session";
    InterruptStatement: "interrupt_statement", OwnSession, "interrupt", "statement";
    CloseUserSessions: "close_user_sessions", Superuser, "close", "user sessions";
    Shutdown: "shutdown", Superuser, "shut down", "database";
    StartDrainSubcluster: "start_drain_subcluster", Superuser, "drain", "subcluster";
    CancelDrainSubcluster: "cancel_drain_subcluster", Superuser, "drain", "subcluster";
    ShutdownSubcluster: "shutdown_subcluster", Superuser, "shut down", "subcluster";
    ShutdownWithDrain: "shutdown_with_drain", Superuser, "shut down", "subcluster";
    StopMember: "stop_member", Superuser, "stop", "member";
    StartMember: "start_member", Superuser, "start", "member";
    PromoteSubclusterToPrimary: "promote_subcluster_to_primary", Superuser, "promote", "subcluster";
    DemoteSubclusterToSecondary: "demote_subcluster_to_secondary", Superuser, "demote", "subcluster";
    HasRole: "has_role(user, role)", Superuser, "examine", "roles of another user";
}

rights! {
    /// The rows of procedures.
    PROCEDURES, of_procedure(Procedure);
    elsewhere {}
    CreateTableGroup: "hg_create_table_group", Superuser, "create", "table group";
    DropTableGroup: "hg_drop_table_group", Superuser, "drop", "table group";
    SetTableGroupProperty: "hg_set_table_group_property", Superuser, "alter", "table group";
    TableGroupSetWarehouseReplicaCount:
        "hg_table_group_set_warehouse_replica_count", Superuser, "alter", "table group";
    UpdateDatabaseProperty: "hg_update_database_property", Superuser, "alter", "database";
    MoveTableToTableGroup: "hg_move_table_to_table_group", Superuser, "move", "table";
    UpdateTableShardCount: "hg_update_table_shard_count", Superuser, "move", "table";
    // Who may, depends on the table.
    SetTableProperty: "set_table_property", Anyone, "alter", "table";
}

/// The row of a statement.
pub fn required(statement: &Statement) -> &'static Right {
    of_statement(statement)
}

/// Whether everybody may do this to his own user.
fn is_own(action: &UserAction) -> bool {
    match action {
        UserAction::Parameters(parameters) => parameters.iter().all(|parameter| {
            matches!(
                parameter,
                UserParameter::IdentifiedBy { .. }
                    | UserParameter::SearchPath(_)
                    | UserParameter::IdleSessionTimeout(_)
            )
        }),
        UserAction::Parameter(_) | UserAction::RoleParameter(_) => true,
        UserAction::DefaultRole(_) | UserAction::Rename(_) => false,
    }
}

/// Checks that the session's user may do what a statement says.
///
/// # Errors
/// When not.
pub(crate) fn check(statement: &Statement, context: &PlanContext<'_>) -> Result<(), PlanError> {
    let Right { who, verb, kind, .. } = *required(statement);
    if context.session.is_superuser(context.catalog) {
        return Ok(());
    }
    match (who, statement) {
        // Which sessions, roles and workloads are his, is known when the names are.
        (Who::Anyone | Who::Grantee | Who::Member | Who::OwnSession, _) => Ok(()),
        (Who::Himself, Statement::AlterUser { name, .. } | Statement::Show(Show::User(name, _)))
            if is_user(name, context.session.user_id, context) =>
        {
            Ok(())
        }
        (_, Statement::Function { function: MetaFunction::HasRole, arguments, .. }) if matches!(arguments.first(), Some(Literal::Text(user)) if is_user(&Ident(user.clone()), context.session.user_id, context)) => {
            Ok(())
        }
        (Who::AdminOption, Statement::GrantRole { roles, .. } | Statement::RevokeRole { roles, .. }) => {
            roles.iter().try_for_each(|role| check_admin_option(role, context))
        }
        _ => Err(PlanError::Privilege { verb, kind }),
    }
}

fn is_user(ident: &Ident, user: UserId, context: &PlanContext<'_>) -> bool {
    let users = context.catalog.users();
    Name::parse(&ident.0).is_ok_and(|name| users.named(&name).is_some_and(|row| row.id == user))
}

fn check_admin_option(role: &Ident, context: &PlanContext<'_>) -> Result<(), PlanError> {
    let catalog = context.catalog;
    let name = Name::parse(&role.0)?;
    match catalog.roles().named(&name) {
        Some(role) if catalog.may_grant_role(context.session.user_id, role.id) => Ok(()),
        Some(_) => Err(PlanError::AdminOption { role: name }),
        None => {
            let nearest = nearest(&name, catalog.roles().names());
            Err(PlanError::Missing { kind: ObjectKind::Role, name, nearest })
        }
    }
}

/// Whether the session of a snapshot may call a function in a query.
pub(crate) fn may_call(function: &str, snapshot: &Snapshot) -> bool {
    match queries::reads(function) {
        Some(Reads::Superuser) => snapshot.superuser(),
        _ => true,
    }
}

#[cfg(test)]
mod tests;
