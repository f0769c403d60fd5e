//! LOAD BALANCE GROUP (`reference/vertica-sql.md` §2).

use super::cursor::{Cursor, Result};
use crate::ast::{GroupAction, GroupMembers, Ident, Statement};

/// After CREATE LOAD BALANCE GROUP.
pub(super) fn create(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let name = cursor.name()?;
    cursor.expect("WITH")?;
    let members = members(cursor)?;
    let filter = if matches!(members, GroupMembers::Addresses(_)) {
        None
    } else {
        cursor.expect("FILTER")?;
        Some(cursor.string()?)
    };
    let policy = if cursor.accept("POLICY") { Some(cursor.string()?) } else { None };
    Ok(Statement::CreateLoadBalanceGroup { name, members, filter, policy })
}

/// After ALTER LOAD BALANCE GROUP.
pub(super) fn alter(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let name = cursor.name()?;
    let action = if cursor.accept("RENAME") {
        cursor.expect("TO")?;
        GroupAction::Rename(cursor.name()?)
    } else if cursor.accept("SET") {
        set_action(cursor)?
    } else if cursor.accept("ADD") {
        GroupAction::Add(members(cursor)?)
    } else {
        cursor.expect("DROP")?;
        GroupAction::Drop(members(cursor)?)
    };
    Ok(Statement::AlterLoadBalanceGroup { name, action })
}

fn set_action(cursor: &mut Cursor<'_>) -> Result<GroupAction> {
    let filter = cursor.accept("FILTER");
    if !filter {
        cursor.expect("POLICY")?;
    }
    cursor.expect("TO")?;
    let value = cursor.string()?;
    Ok(if filter { GroupAction::Filter(value) } else { GroupAction::Policy(value) })
}

/// After DROP LOAD BALANCE GROUP.
pub(super) fn drop(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let if_exists = cursor.if_exists()?;
    Ok(Statement::DropLoadBalanceGroup { if_exists, name: cursor.name()?, cascade: cursor.accept("CASCADE") })
}

fn members(cursor: &mut Cursor<'_>) -> Result<GroupMembers> {
    if cursor.accept("ADDRESS") {
        Ok(GroupMembers::Addresses(cursor.list(member)?))
    } else if cursor.accept("FAULT") {
        cursor.expect("GROUP")?;
        Ok(GroupMembers::FaultGroups(cursor.list(member)?))
    } else {
        cursor.expect("SUBCLUSTER")?;
        Ok(GroupMembers::Subclusters(cursor.list(member)?))
    }
}

/// A bare FILTER or POLICY is the clause, never a member.
fn member(cursor: &mut Cursor<'_>) -> Result<Ident> {
    if cursor.at("FILTER") || cursor.at("POLICY") { Err(cursor.error()) } else { cursor.name() }
}
