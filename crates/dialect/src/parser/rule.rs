//! ROUTING RULE (`reference/vertica-sql.md` §3).

use super::cursor::{Cursor, Result};
use crate::ast::{Ident, RuleAction, RuleTarget, Statement};

/// After CREATE ROUTING RULE.
pub(super) fn create(cursor: &mut Cursor<'_>) -> Result<Statement> {
    // A rule may be called "route": then the word comes twice.
    let unnamed = cursor.at("ROUTE") && !cursor.at_ahead(1, "ROUTE");
    let name = if unnamed { None } else { Some(cursor.name()?) };
    cursor.expect("ROUTE")?;
    match name {
        Some(name) if !cursor.accept("WORKLOAD") => {
            let route = cursor.string()?;
            cursor.expect("TO")?;
            Ok(Statement::CreateRoutingRule { name, route, group: cursor.name()? })
        }
        Some(name) => workload_rule(cursor, Some(name)),
        None => {
            cursor.expect("WORKLOAD")?;
            workload_rule(cursor, None)
        }
    }
}

fn workload_rule(cursor: &mut Cursor<'_>, name: Option<Ident>) -> Result<Statement> {
    let workload = cursor.name()?;
    cursor.expect_all(&["TO", "SUBCLUSTER"])?;
    let subclusters = cursor.names()?;
    let priority = if cursor.accept("PRIORITY") { Some(cursor.natural()?) } else { None };
    Ok(Statement::CreateWorkloadRule { name, workload, subclusters, priority })
}

/// After ALTER ROUTING RULE.
pub(super) fn alter(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let target = target(cursor)?;
    let action = if cursor.accept("RENAME") {
        cursor.expect("TO")?;
        RuleAction::Rename(cursor.name()?)
    } else if cursor.accept("SET") {
        set_action(cursor)?
    } else if cursor.accept("ADD") {
        cursor.expect("SUBCLUSTER")?;
        RuleAction::AddSubclusters(cursor.names()?)
    } else {
        cursor.expect_all(&["REMOVE", "SUBCLUSTER"])?;
        RuleAction::RemoveSubclusters(cursor.names()?)
    };
    Ok(Statement::AlterRoutingRule { target, action })
}

fn set_action(cursor: &mut Cursor<'_>) -> Result<RuleAction> {
    if cursor.accept("ROUTE") {
        cursor.expect("TO")?;
        Ok(RuleAction::Route(cursor.string()?))
    } else if cursor.accept("GROUP") {
        cursor.expect("TO")?;
        Ok(RuleAction::Group(cursor.name()?))
    } else if cursor.accept("WORKLOAD") {
        cursor.expect("TO")?;
        Ok(RuleAction::Workload(cursor.name()?))
    } else if cursor.accept("SUBCLUSTER") {
        cursor.expect("TO")?;
        Ok(RuleAction::Subclusters(cursor.names()?))
    } else {
        cursor.expect_all(&["PRIORITY", "TO"])?;
        Ok(RuleAction::Priority(cursor.natural()?))
    }
}

/// After DROP ROUTING RULE.
pub(super) fn drop(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let if_exists = cursor.if_exists()?;
    Ok(Statement::DropRoutingRule { if_exists, target: target(cursor)? })
}

fn target(cursor: &mut Cursor<'_>) -> Result<RuleTarget> {
    if cursor.accept("FOR") {
        cursor.expect("WORKLOAD")?;
        return Ok(RuleTarget::Workload(cursor.name()?));
    }
    Ok(RuleTarget::Named(cursor.name()?))
}
