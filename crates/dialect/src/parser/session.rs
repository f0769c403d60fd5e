//! SET, SHOW, RESET, DISCARD and ALTER SESSION (`reference/vertica-sql.md` §4.3, `reference/hologres.md` §3).

use super::cursor::{Cursor, Result};
use super::lexer::Kind;
use super::topology::{or_default, parameter, selection, setting, value};
use super::{sql, transaction, user};
use crate::ast::{DiscardWhat, Ident, RoleChoice, Selection, SetScope, SetValue, Show, Statement, WorkloadChoice};

/// Vertica's parameters whose value follows without TO.
const BARE_VALUED: [&str; 5] = ["IDLESESSIONTIMEOUT", "GRACEPERIOD", "RUNTIMECAP", "MEMORYCAP", "TEMPSPACECAP"];

/// After SET.
pub(super) fn set(cursor: &mut Cursor<'_>) -> Result<Statement> {
    // A setting may be called like the word that begins another form: TO or `=` follows it then.
    let plain = is_assignment_ahead(cursor, 1);
    if !plain && cursor.accept("ROLE") {
        let choice = if cursor.accept("DEFAULT") { RoleChoice::Default } else { user::roles(cursor)? };
        return Ok(Statement::SetRole(choice));
    }
    if !plain && cursor.accept("TRANSACTION") {
        return Ok(Statement::SetTransaction { session: false, modes: transaction::some_modes(cursor)? });
    }
    if !plain && cursor.at("CONSTRAINTS") {
        return sql::delegate(cursor);
    }
    if !plain && cursor.accept_all(&["SESSION", "AUTHORIZATION"]) {
        return authorization(cursor, SetScope::Session);
    }
    let mut scope = SetScope::Session;
    if !plain && cursor.accept("SESSION") {
        if let Some(statement) = set_session(cursor)? {
            return Ok(statement);
        }
    } else if !plain && cursor.accept("LOCAL") {
        scope = SetScope::Local;
    }
    if scope == SetScope::Local && cursor.accept_all(&["SESSION", "AUTHORIZATION"]) {
        return authorization(cursor, scope);
    }
    set_parameter(cursor, scope)
}

/// Whether the token so many further on is `=` or TO.
fn is_assignment_ahead(cursor: &Cursor<'_>, count: usize) -> bool {
    cursor.symbol_ahead(count, '=') || cursor.at_ahead(count, "TO")
}

/// What only follows SET SESSION.
fn set_session(cursor: &mut Cursor<'_>) -> Result<Option<Statement>> {
    if cursor.accept("WORKLOAD") {
        cursor.accept("TO");
        return Ok(Some(Statement::SetSessionWorkload(workload(cursor)?)));
    }
    if is_assignment_ahead(cursor, 1) {
        return Ok(None);
    }
    if cursor.accept_all(&["SESSION", "AUTHORIZATION"]) {
        return authorization(cursor, SetScope::Session).map(Some);
    }
    if cursor.accept("CHARACTERISTICS") {
        cursor.expect_all(&["AS", "TRANSACTION"])?;
        return Ok(Some(Statement::SetTransaction { session: true, modes: transaction::some_modes(cursor)? }));
    }
    if BARE_VALUED.iter().any(|word| cursor.at(word)) {
        let name = cursor.name()?;
        let values = values(cursor)?;
        return Ok(Some(Statement::Set { scope: SetScope::Session, name, values }));
    }
    Ok(None)
}

/// A workload, DEFAULT or NONE; no string.
fn workload(cursor: &mut Cursor<'_>) -> Result<WorkloadChoice> {
    if cursor.accept("DEFAULT") {
        return Ok(WorkloadChoice::Default);
    }
    if cursor.accept("NONE") {
        return Ok(WorkloadChoice::None);
    }
    Ok(WorkloadChoice::Named(cursor.name()?))
}

/// `name (TO | =) value, ...`, or one of the forms that SQL has for some names.
fn set_parameter(cursor: &mut Cursor<'_>, scope: SetScope) -> Result<Statement> {
    let special = !is_assignment_ahead(cursor, 1);
    if special && cursor.accept("TIME") {
        cursor.expect("ZONE")?;
        let values = if cursor.accept("LOCAL") { SetValue::Default } else { one_value(cursor)? };
        return Ok(Statement::Set { scope, name: named("timezone"), values });
    }
    if special && cursor.accept("NAMES") {
        let values = if cursor.at_end() { SetValue::Default } else { one_value(cursor)? };
        return Ok(Statement::Set { scope, name: named("client_encoding"), values });
    }
    if special && cursor.accept("SCHEMA") {
        return Ok(Statement::Set { scope, name: named("search_path"), values: one_value(cursor)? });
    }
    let name = parameter(cursor)?;
    if !cursor.accept_symbol('=') {
        cursor.expect("TO")?;
    }
    Ok(Statement::Set { scope, name, values: values(cursor)? })
}

/// After SET SESSION AUTHORIZATION.
fn authorization(cursor: &mut Cursor<'_>, scope: SetScope) -> Result<Statement> {
    Ok(Statement::Set { scope, name: named("session_authorization"), values: one_value(cursor)? })
}

fn named(name: &str) -> Ident {
    Ident(name.to_owned())
}

fn one_value(cursor: &mut Cursor<'_>) -> Result<SetValue> {
    if cursor.accept("DEFAULT") { Ok(SetValue::Default) } else { Ok(SetValue::Values(vec![value(cursor)?])) }
}

fn values(cursor: &mut Cursor<'_>) -> Result<SetValue> {
    if cursor.accept("DEFAULT") { Ok(SetValue::Default) } else { Ok(SetValue::Values(cursor.list(value)?)) }
}

/// After ALTER SESSION.
pub(super) fn alter(cursor: &mut Cursor<'_>) -> Result<Statement> {
    match setting(cursor)? {
        Some(action) => Ok(Statement::AlterSession(action)),
        None => Err(cursor.error()),
    }
}

/// After SHOW.
pub(super) fn show(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let last = matches!(cursor.kind_ahead(1), Kind::Semicolon | Kind::End);
    if last {
        return show_one(cursor).map(Statement::Show);
    }
    let show = if cursor.accept("AVAILABLE") {
        if cursor.accept("WORKLOADS") {
            Show::AvailableWorkloads
        } else {
            cursor.expect("ROLES")?;
            Show::AvailableRoles
        }
    } else if cursor.accept("ENABLED") {
        cursor.expect("ROLES")?;
        Show::EnabledRoles
    } else if cursor.accept("TIME") {
        cursor.expect("ZONE")?;
        Show::Parameter(named("TIME ZONE"))
    } else if cursor.accept("TRANSACTION") {
        cursor.expect_all(&["ISOLATION", "LEVEL"])?;
        Show::Parameter(named("TRANSACTION ISOLATION LEVEL"))
    } else if cursor.accept_all(&["SESSION", "AUTHORIZATION"]) {
        Show::Parameter(named("SESSION AUTHORIZATION"))
    } else if cursor.accept("SESSION") {
        Show::Session(selection(cursor)?)
    } else if cursor.accept("CURRENT") {
        Show::Current(selection(cursor)?)
    } else if cursor.accept("DATABASE") {
        Show::Database(or_default(cursor)?, selection(cursor)?)
    } else if cursor.accept("NODE") {
        Show::Node(cursor.name()?, selection(cursor)?)
    } else if cursor.accept("USER") {
        Show::User(cursor.name()?, selection(cursor)?)
    } else {
        show_one(cursor)?
    };
    Ok(Statement::Show(show))
}

/// What is one word.
fn show_one(cursor: &mut Cursor<'_>) -> Result<Show> {
    if cursor.accept("ALL") {
        return Ok(Show::All);
    }
    if cursor.accept("WORKLOAD") {
        return Ok(Show::Workload);
    }
    if cursor.accept("AVAILABLE_ROLES") {
        return Ok(Show::AvailableRoles);
    }
    if cursor.accept("ENABLED_ROLES") {
        return Ok(Show::EnabledRoles);
    }
    // These begin longer forms, and nothing is called so.
    const UNFINISHED: [&str; 7] = ["AVAILABLE", "ENABLED", "SESSION", "CURRENT", "DATABASE", "NODE", "TIME"];
    if UNFINISHED.iter().any(|word| cursor.at(word)) {
        cursor.advance();
        return Err(cursor.error());
    }
    Ok(Show::Parameter(parameter(cursor)?))
}

/// After RESET.
pub(super) fn reset(cursor: &mut Cursor<'_>) -> Result<Statement> {
    if cursor.accept("ALL") {
        return Ok(Statement::Reset(Selection::All));
    }
    let name = if cursor.accept_all(&["TIME", "ZONE"]) {
        named("timezone")
    } else if cursor.accept_all(&["TRANSACTION", "ISOLATION", "LEVEL"]) {
        named("transaction_isolation")
    } else if cursor.accept_all(&["SESSION", "AUTHORIZATION"]) {
        named("session_authorization")
    } else {
        parameter(cursor)?
    };
    Ok(Statement::Reset(Selection::Named(vec![name])))
}

/// After DISCARD.
pub(super) fn discard(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let what = if cursor.accept("ALL") {
        DiscardWhat::All
    } else if cursor.accept("PLANS") {
        DiscardWhat::Plans
    } else if cursor.accept("SEQUENCES") {
        DiscardWhat::Sequences
    } else if cursor.accept("TEMP") {
        DiscardWhat::Temp
    } else {
        cursor.expect("TEMPORARY")?;
        DiscardWhat::Temp
    };
    Ok(Statement::Discard(what))
}
