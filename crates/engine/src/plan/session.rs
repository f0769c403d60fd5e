//! Statements about the session itself: SET, RESET, DISCARD, roles, workload, transactions.

use std::collections::BTreeSet;

use switchyard_catalog::{Catalog, Name, ObjectKind, RoleId};
use switchyard_dialect::{
    DiscardWhat, Ident, ParameterAction, RoleChoice, Selection, SetScope, SetValue, SqlStatement, Statement, Value,
    WorkloadChoice,
};

use super::words::name;
use super::{Plan, PlanContext, SessionStep, Transaction};
use crate::error::{PlanError, Warning};
use crate::session_state::{SessionChange, SessionState, WorkloadWish, access};
use crate::settings::{self, Declaration, Level, SettingError, interval};

fn step(tag: &'static str, changes: Vec<SessionChange>) -> Plan {
    Plan::Session(SessionStep { changes, tag, answer: None, warnings: Vec::new() })
}

/// Plans a statement of this family; `None` for others.
pub(super) fn plan(statement: &Statement, context: &PlanContext<'_>) -> Result<Option<Plan>, PlanError> {
    Ok(Some(match statement {
        Statement::SetSessionWorkload(choice) => step("SET", vec![SessionChange::Workload(workload(choice, context)?)]),
        Statement::SetRole(choice) => step("SET", vec![SessionChange::Roles(roles(choice, context)?)]),
        Statement::AlterSession(action) => alter_session(action, context)?,
        Statement::Set { scope, name, values } => set(*scope, name, values, context)?,
        Statement::SetTransaction { session, modes } => set_transaction(*session, modes, context)?,
        Statement::Reset(selection) => reset(selection, context)?,
        Statement::Discard(what) => discard(*what, context)?,
        Statement::Begin { start, modes } => Plan::Transaction(Transaction::Begin {
            tag: if *start { "START TRANSACTION" } else { "BEGIN" },
            modes: transaction_modes(modes, "transaction_")?
                .into_iter()
                .map(|(name, value)| SessionChange::Set { name, value, local: true })
                .collect(),
        }),
        Statement::Commit => Plan::Transaction(Transaction::Commit),
        Statement::Rollback => Plan::Transaction(Transaction::Rollback),
        Statement::Savepoint(savepoint) => Plan::Transaction(Transaction::Savepoint(name(savepoint)?)),
        Statement::ReleaseSavepoint(savepoint) => Plan::Transaction(Transaction::Release(name(savepoint)?)),
        Statement::RollbackTo(savepoint) => Plan::Transaction(Transaction::RollbackTo(name(savepoint)?)),
        _ => return Ok(None),
    }))
}

/// SQL of sqlparser's: all of it goes to DataFusion's guard.
pub(super) fn of_sql(statement: &SqlStatement) -> Plan {
    Plan::Query(statement.clone())
}

fn workload(choice: &WorkloadChoice, context: &PlanContext<'_>) -> Result<WorkloadWish, PlanError> {
    let workload = match choice {
        WorkloadChoice::Default => return Ok(WorkloadWish::Automatic),
        WorkloadChoice::None => return Ok(WorkloadWish::None),
        WorkloadChoice::Named(workload) => name(workload)?,
    };
    match access::may_use(context.session, context.catalog, &workload) {
        Some(true) => Ok(WorkloadWish::Named(workload)),
        Some(false) => Err(PlanError::WorkloadNotGranted { workload }),
        None => {
            // Only those that the user may know of are suggested.
            let open = access::available_workloads(context.session, context.catalog);
            let nearest = nearest(&workload, open.iter());
            Err(PlanError::Missing { kind: ObjectKind::Workload, name: workload, nearest })
        }
    }
}

/// The name most like a wrong one, if any is.
pub(crate) fn nearest<'a>(wrong: &Name, names: impl Iterator<Item = &'a Name>) -> Option<Name> {
    names
        .map(|name| (strsim::damerau_levenshtein(wrong.folded(), name.folded()), name))
        .filter(|(distance, name)| *distance <= 2 && *distance < name.folded().chars().count())
        .min()
        .map(|(_, name)| name.clone())
}

/// The roles that are enabled after SET ROLE; naming some adds them to those that are.
fn roles(choice: &RoleChoice, context: &PlanContext<'_>) -> Result<BTreeSet<RoleId>, PlanError> {
    let user = context.session.user_id;
    let granted = context.catalog.granted_roles(user);
    match choice {
        RoleChoice::None => Ok(BTreeSet::new()),
        RoleChoice::Default => Ok(context.catalog.default_roles(user)),
        RoleChoice::Named(named) => {
            let mut enabled = context.session.enabled_roles().clone();
            enabled.retain(|role| granted.contains_key(role));
            for ident in named {
                let role = role(ident, context)?;
                if !context.catalog.has_role(user, role) {
                    return Err(PlanError::RoleNotGranted { role: name(ident)? });
                }
                enabled.insert(role);
            }
            Ok(enabled)
        }
        RoleChoice::AllExcept(except) => {
            let mut enabled: BTreeSet<RoleId> = granted.into_keys().collect();
            for ident in except {
                enabled.remove(&role(ident, context)?);
            }
            Ok(enabled)
        }
    }
}

/// A role by name.
pub(super) fn role(ident: &Ident, context: &PlanContext<'_>) -> Result<RoleId, PlanError> {
    let wanted = name(ident)?;
    let roles = context.catalog.roles();
    match roles.named(&wanted) {
        Some(role) => Ok(role.id),
        None => {
            let nearest = nearest(&wanted, roles.names());
            Err(PlanError::Missing { kind: ObjectKind::Role, name: wanted, nearest })
        }
    }
}

fn alter_session(action: &ParameterAction, context: &PlanContext<'_>) -> Result<Plan, PlanError> {
    let mut changes = Vec::new();
    match action {
        ParameterAction::Set(assignments) => {
            for one in assignments {
                let setting = settable(&one.name, context)?;
                let value = session_value(setting, std::slice::from_ref(&one.value), context)?;
                changes.push(SessionChange::Set { name: setting.name, value, local: false });
            }
        }
        ParameterAction::Clear(named) => {
            for one in named {
                changes.push(SessionChange::Reset(settable(one, context)?.name));
            }
        }
    }
    Ok(step("ALTER SESSION", changes))
}

fn settable(ident: &Ident, context: &PlanContext<'_>) -> Result<&'static Declaration, PlanError> {
    let setting = settings::declaration(&ident.0)?;
    setting.allow(Level::Session, context.is_superuser())?;
    Ok(setting)
}

fn session_value(
    setting: &'static Declaration,
    values: &[Value],
    context: &PlanContext<'_>,
) -> Result<String, PlanError> {
    let value = setting.read_values(values)?;
    not_above_user(setting, &value, context.session, context.catalog)?;
    Ok(value)
}

/// A value of a setting for a session, from its text.
pub(crate) fn checked_value(
    setting: &'static Declaration,
    text: &str,
    session: &SessionState,
    catalog: &Catalog,
) -> Result<String, PlanError> {
    let value = setting.read(text)?;
    not_above_user(setting, &value, session, catalog)?;
    Ok(value)
}

/// A limit that the user has can be lowered for a session, not raised.
fn not_above_user(
    setting: &'static Declaration,
    value: &str,
    session: &SessionState,
    catalog: &Catalog,
) -> Result<(), PlanError> {
    if session.is_superuser(catalog) {
        return Ok(());
    }
    let user = catalog.users().find(session.user_id);
    let limits = user.map(|user| &user.limits);
    let own = match setting.name {
        "idlesessiontimeout" => limits.and_then(|limits| limits.idle_session_timeout.clone()),
        "graceperiod" => limits.and_then(|limits| limits.grace_period.clone()),
        "runtimecap" => limits.and_then(|limits| limits.runtime_cap.clone()),
        _ => None,
    };
    let Some(user_value) = own else { return Ok(()) };
    let (asked, most) = (interval::parse(value).unwrap_or(u64::MAX), interval::parse(&user_value).unwrap_or(u64::MAX));
    if asked <= most {
        return Ok(());
    }
    Err(SettingError::AboveUser { name: setting.name, value: value.to_owned(), user_value }.into())
}

fn set(scope: SetScope, ident: &Ident, values: &SetValue, context: &PlanContext<'_>) -> Result<Plan, PlanError> {
    if is_authorization(ident) {
        return set_authorization(values, context);
    }
    let setting = settable(ident, context)?;
    let of_transaction = setting.name.starts_with("transaction_");
    let local = scope == SetScope::Local || of_transaction;
    let change = match values {
        SetValue::Default if local => {
            SessionChange::Set { name: setting.name, value: default_of(setting, context), local: true }
        }
        SetValue::Default => SessionChange::Reset(setting.name),
        SetValue::Values(values) => {
            SessionChange::Set { name: setting.name, value: session_value(setting, values, context)?, local }
        }
    };
    if local && !context.session.in_transaction() {
        let what = if of_transaction { "SET TRANSACTION" } else { "SET LOCAL" };
        return Ok(only_in_transaction(what));
    }
    Ok(step("SET", vec![change]))
}

fn is_authorization(ident: &Ident) -> bool {
    ["session authorization", "session_authorization"].iter().any(|name| ident.0.eq_ignore_ascii_case(name))
}

/// The session stays its user's: who else it could become is refused.
fn set_authorization(values: &SetValue, context: &PlanContext<'_>) -> Result<Plan, PlanError> {
    let SetValue::Values(values) = values else { return Ok(step("SET", Vec::new())) };
    let wanted = settings::declaration("session_authorization")?.read_values(values)?;
    let wanted = Name::parse(&wanted)?;
    let own = context.catalog.users().find(context.session.user_id);
    match context.catalog.users().named(&wanted) {
        Some(user) if own.is_some_and(|own| own.id == user.id) => Ok(step("SET", Vec::new())),
        _ if !context.is_superuser() => Err(PlanError::Privilege { verb: "set", kind: "session authorization" }),
        Some(_) => Err(PlanError::NotSupported {
            what: "SET SESSION AUTHORIZATION to another user".to_owned(),
            hint: Some("Connect as that user.".to_owned()),
        }),
        None => {
            let nearest = nearest(&wanted, context.catalog.users().names());
            Err(PlanError::Missing { kind: ObjectKind::User, name: wanted, nearest })
        }
    }
}

/// The value a setting had without SET.
fn default_of(setting: &'static Declaration, context: &PlanContext<'_>) -> String {
    let levels = context.session.levels_at_login();
    let lasting = [&levels.user, &levels.node, &levels.database];
    let found = lasting.into_iter().find_map(|level| level.get(setting.name));
    found.cloned().unwrap_or_else(|| setting.default.to_owned())
}

/// As in PostgreSQL, a warning and no effect.
fn only_in_transaction(what: &str) -> Plan {
    let mut warning = Warning::new(format!("{what} can only be used in transaction blocks"));
    warning.sqlstate = crate::error::SqlState::NoActiveTransaction;
    Plan::Session(SessionStep { changes: Vec::new(), tag: "SET", answer: None, warnings: vec![warning] })
}

/// Reads `ISOLATION LEVEL x`, `READ ONLY`, `READ WRITE`, `DEFERRABLE`, `NOT DEFERRABLE` as settings.
fn transaction_modes(modes: &[String], prefix: &str) -> Result<Vec<(&'static str, String)>, PlanError> {
    let mut found: Vec<(&'static str, String)> = Vec::new();
    for mode in modes {
        let upper = mode.to_uppercase();
        let (suffix, value) = match upper.as_str() {
            "READ ONLY" => ("read_only", "on".to_owned()),
            "READ WRITE" => ("read_only", "off".to_owned()),
            "DEFERRABLE" => ("deferrable", "on".to_owned()),
            "NOT DEFERRABLE" => ("deferrable", "off".to_owned()),
            other => ("isolation", other.strip_prefix("ISOLATION LEVEL ").unwrap_or(other).to_lowercase()),
        };
        let setting = settings::declaration(&format!("{prefix}{suffix}"))?;
        if found.iter().any(|(name, _)| *name == setting.name) {
            return Err(PlanError::Redundant { what: "transaction mode" });
        }
        found.push((setting.name, setting.read(&value)?));
    }
    Ok(found)
}

fn set_transaction(session: bool, modes: &[String], context: &PlanContext<'_>) -> Result<Plan, PlanError> {
    let prefix = if session { "default_transaction_" } else { "transaction_" };
    let changes: Vec<SessionChange> = transaction_modes(modes, prefix)?
        .into_iter()
        .map(|(name, value)| SessionChange::Set { name, value, local: !session })
        .collect();
    if !session && !context.session.in_transaction() {
        return Ok(only_in_transaction("SET TRANSACTION"));
    }
    Ok(step("SET", changes))
}

fn reset(selection: &Selection, context: &PlanContext<'_>) -> Result<Plan, PlanError> {
    let Selection::Named(named) = selection else { return Ok(step("RESET", vec![SessionChange::ResetAll])) };
    let mut changes = Vec::new();
    for ident in named {
        // The session's user never changes, so there is nothing to go back to.
        if is_authorization(ident) {
            continue;
        }
        changes.push(if ident.0.eq_ignore_ascii_case("role") {
            SessionChange::Roles(context.catalog.default_roles(context.session.user_id))
        } else {
            SessionChange::Reset(settable(ident, context)?.name)
        });
    }
    Ok(step("RESET", changes))
}

fn discard(what: DiscardWhat, context: &PlanContext<'_>) -> Result<Plan, PlanError> {
    let tag = match what {
        DiscardWhat::All => "DISCARD ALL",
        DiscardWhat::Plans => "DISCARD PLANS",
        DiscardWhat::Sequences => "DISCARD SEQUENCES",
        DiscardWhat::Temp => "DISCARD TEMP",
    };
    if what == DiscardWhat::All && context.session.in_transaction() {
        return Err(PlanError::InTransaction { what: tag });
    }
    Ok(step(tag, vec![SessionChange::Discard(what)]))
}
