//! Who may do what: one row a statement.

use switchyard_catalog::{Name, ObjectKind};
use switchyard_dialect::{Ident, MetaFunction, Procedure, Show, Statement, UserAction, UserParameter};

use crate::error::PlanError;
use crate::plan::{PlanContext, nearest};

/// Who may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Who {
    /// Everybody; what remains to be checked is checked when the statement is planned.
    Anyone,
    /// A superuser.
    Superuser,
    /// A superuser, and the user himself.
    Himself(Ident),
    /// A superuser, and whoever has all of these roles with ADMIN OPTION.
    AdminOf(Vec<Ident>),
}

/// What a statement needs. The message of a refusal is `Must be superuser to <verb> <kind>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Right {
    /// Who may.
    pub who: Who,
    /// For the message.
    pub verb: &'static str,
    /// For the message.
    pub kind: &'static str,
}

fn superuser(verb: &'static str, kind: &'static str) -> Right {
    Right { who: Who::Superuser, verb, kind }
}

fn anyone(verb: &'static str, kind: &'static str) -> Right {
    Right { who: Who::Anyone, verb, kind }
}

/// The right a statement needs: the table.
pub fn required(statement: &Statement) -> Right {
    use Statement as S;
    match statement {
        S::CreateNetworkAddress { .. } => superuser("create", "network address"),
        S::AlterNetworkAddress { .. } => superuser("alter", "network address"),
        S::DropNetworkAddress { .. } => superuser("drop", "network address"),
        S::CreateNetworkInterface { .. } => superuser("create", "network interface"),
        S::AlterNetworkInterface { .. } => superuser("alter", "network interface"),
        S::DropNetworkInterface { .. } => superuser("drop", "network interface"),
        S::CreateSubnet { .. } => superuser("create", "subnet"),
        S::AlterSubnet { .. } => superuser("alter", "subnet"),
        S::DropSubnet { .. } => superuser("drop", "subnet"),
        S::CreateLoadBalanceGroup { .. } => superuser("create", "load balance group"),
        S::AlterLoadBalanceGroup { .. } => superuser("alter", "load balance group"),
        S::DropLoadBalanceGroup { .. } => superuser("drop", "load balance group"),
        S::CreateRoutingRule { .. } | S::CreateWorkloadRule { .. } => superuser("create", "routing rule"),
        S::AlterRoutingRule { .. } => superuser("alter", "routing rule"),
        S::DropRoutingRule { .. } => superuser("drop", "routing rule"),
        S::GrantWorkload { .. } => superuser("grant", "workload"),
        S::RevokeWorkload { .. } => superuser("revoke", "workload"),
        S::CreateUser { .. } => superuser("create", "user"),
        S::AlterUser { name, action } => Right { who: alter_user(name, action), verb: "alter", kind: "user" },
        S::DropUser { .. } => superuser("drop", "user"),
        S::CreateRole { .. } => superuser("create", "role"),
        S::AlterRole { .. } => superuser("alter", "role"),
        S::DropRole { .. } => superuser("drop", "role"),
        S::GrantRole { roles, .. } => Right { who: Who::AdminOf(roles.clone()), verb: "grant", kind: "role" },
        S::RevokeRole { roles, .. } => Right { who: Who::AdminOf(roles.clone()), verb: "revoke", kind: "role" },
        S::CreateAuthentication { .. } => superuser("create", "authentication"),
        S::AlterAuthentication { .. } => superuser("alter", "authentication"),
        S::DropAuthentication { .. } => superuser("drop", "authentication"),
        S::GrantAuthentication { .. } => superuser("grant", "authentication"),
        S::RevokeAuthentication { .. } => superuser("revoke", "authentication"),
        S::CreateUserMapping { .. } => superuser("create", "user mapping"),
        S::AlterUserMapping { .. } => superuser("alter", "user mapping"),
        S::DropUserMapping { .. } => superuser("drop", "user mapping"),
        S::AlterDatabase { .. } => superuser("alter", "database"),
        S::CreateNode { .. } => superuser("create", "node"),
        S::AlterNode { .. } => superuser("alter", "node"),
        S::DropNode { .. } => superuser("drop", "node"),
        S::CreateFaultGroup { .. } => superuser("create", "fault group"),
        S::AlterFaultGroup { .. } => superuser("alter", "fault group"),
        S::DropFaultGroup { .. } => superuser("drop", "fault group"),
        S::CreateSubcluster { .. } => superuser("create", "subcluster"),
        S::AlterSubcluster { .. } => superuser("alter", "subcluster"),
        S::DropSubcluster { .. } => superuser("drop", "subcluster"),
        S::RestoreCatalog { .. } => superuser("restore", "catalog"),
        S::Call { procedure, .. } => of_procedure(*procedure),
        S::Function { function, arguments, .. } => of_function(*function, arguments.len()),
        S::Show(Show::User(user, _)) => Right { who: Who::Himself(user.clone()), verb: "show", kind: "user" },
        S::Show(_) => anyone("show", "parameter"),
        S::SetSessionWorkload(_) => anyone("set", "workload"),
        S::SetRole(_) => anyone("set", "role"),
        S::AlterSession(_) | S::Set { .. } | S::Reset(_) | S::Discard(_) => anyone("alter", "session"),
        S::SetTransaction { .. }
        | S::Begin { .. }
        | S::Commit
        | S::Rollback
        | S::Savepoint(_)
        | S::ReleaseSavepoint(_)
        | S::RollbackTo(_) => anyone("begin", "transaction"),
        S::Sql(_) => anyone("query", "system table"),
    }
}

/// Users change their own password (and must know the old one), their own search path, their own settings, and
/// lower their own idle session timeout.
fn alter_user(user: &Ident, action: &UserAction) -> Who {
    let own = match action {
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
    };
    if own { Who::Himself(user.clone()) } else { Who::Superuser }
}

fn of_procedure(procedure: Procedure) -> Right {
    match procedure {
        Procedure::CreateTableGroup => superuser("create", "table group"),
        Procedure::DropTableGroup => superuser("drop", "table group"),
        Procedure::SetTableGroupProperty | Procedure::TableGroupSetWarehouseReplicaCount => {
            superuser("alter", "table group")
        }
        Procedure::UpdateDatabaseProperty => superuser("alter", "database"),
        Procedure::MoveTableToTableGroup | Procedure::UpdateTableShardCount => superuser("move", "table"),
        // Who may, depends on the table.
        Procedure::SetTableProperty => anyone("alter", "table"),
    }
}

fn of_function(function: MetaFunction, arguments: usize) -> Right {
    match function {
        MetaFunction::SetLoadBalancePolicy => superuser("set", "load balance policy"),
        MetaFunction::ResetLoadBalancePolicy => superuser("reset", "load balance policy"),
        MetaFunction::DescribeLoadBalanceDecision => anyone("describe", "load balance decision"),
        MetaFunction::SetConfigParameter => superuser("set", "configuration parameter"),
        MetaFunction::GetClientLabel | MetaFunction::SetClientLabel => anyone("set", "client label"),
        // Others' sessions need a superuser; the order says whose may be touched.
        MetaFunction::CloseSession | MetaFunction::CloseAllSessions => anyone("close", "session"),
        MetaFunction::InterruptStatement => anyone("interrupt", "statement"),
        MetaFunction::CloseUserSessions => superuser("close", "user sessions"),
        MetaFunction::Shutdown => superuser("shut down", "database"),
        MetaFunction::StartDrainSubcluster | MetaFunction::CancelDrainSubcluster => superuser("drain", "subcluster"),
        MetaFunction::ShutdownSubcluster | MetaFunction::ShutdownWithDrain => superuser("shut down", "subcluster"),
        MetaFunction::StopMember => superuser("stop", "member"),
        MetaFunction::StartMember => superuser("start", "member"),
        MetaFunction::PromoteSubclusterToPrimary => superuser("promote", "subcluster"),
        MetaFunction::DemoteSubclusterToSecondary => superuser("demote", "subcluster"),
        // One's own roles anyone may ask for.
        MetaFunction::HasRole if arguments < 2 => anyone("examine", "role"),
        MetaFunction::HasRole => superuser("examine", "roles of another user"),
    }
}

/// Checks that the session's user may do what a statement says.
///
/// # Errors
/// When not.
pub(crate) fn check(statement: &Statement, context: &PlanContext<'_>) -> Result<(), PlanError> {
    let Right { who, verb, kind } = required(statement);
    let catalog = context.catalog;
    let user = context.session.user_id;
    if who == Who::Anyone || context.session.is_superuser(catalog) {
        return Ok(());
    }
    match who {
        Who::Himself(ident)
            if Name::parse(&ident.0)
                .is_ok_and(|name| catalog.users().named(&name).is_some_and(|row| row.id == user)) =>
        {
            Ok(())
        }
        Who::AdminOf(roles) => roles.iter().try_for_each(|ident| {
            let name = Name::parse(&ident.0)?;
            match catalog.roles().named(&name) {
                Some(role) if catalog.may_grant_role(user, role.id) => Ok(()),
                Some(_) => Err(PlanError::AdminOption { role: name }),
                None => {
                    let nearest = nearest(&name, catalog.roles().names());
                    Err(PlanError::Missing { kind: ObjectKind::Role, name, nearest })
                }
            }
        }),
        _ => Err(PlanError::Privilege { verb, kind }),
    }
}

#[cfg(test)]
mod tests;
