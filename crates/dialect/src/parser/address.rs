//! NETWORK ADDRESS, NETWORK INTERFACE and SUBNET (`reference/vertica-sql.md` §1, §6.1).

use super::cursor::{Cursor, Result};
use crate::ast::{AddressAction, Statement};

/// After CREATE NETWORK.
pub(super) fn create_network(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let interface = is_interface(cursor)?;
    let name = cursor.name()?;
    cursor.expect("ON")?;
    let node = cursor.name()?;
    if interface {
        cursor.accept("WITH");
    } else {
        cursor.expect("WITH")?;
    }
    let address = cursor.string()?;
    let port = port(cursor)?;
    let enabled = if cursor.accept("ENABLED") {
        Some(true)
    } else if cursor.accept("DISABLED") {
        Some(false)
    } else {
        None
    };
    Ok(match interface {
        true => Statement::CreateNetworkInterface { name, node, address, port, enabled },
        false => Statement::CreateNetworkAddress { name, node, address, port, enabled },
    })
}

/// After ALTER NETWORK.
pub(super) fn alter_network(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let interface = is_interface(cursor)?;
    let name = cursor.name()?;
    let action = if cursor.accept("RENAME") {
        cursor.expect("TO")?;
        AddressAction::Rename(cursor.name()?)
    } else if cursor.accept("SET") {
        cursor.expect("TO")?;
        AddressAction::Set { address: cursor.string()?, port: port(cursor)? }
    } else if cursor.accept("ENABLE") {
        AddressAction::Enable(true)
    } else {
        cursor.expect("DISABLE")?;
        AddressAction::Enable(false)
    };
    Ok(match interface {
        true => Statement::AlterNetworkInterface { name, action },
        false => Statement::AlterNetworkAddress { name, action },
    })
}

/// After DROP NETWORK.
pub(super) fn drop_network(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let interface = is_interface(cursor)?;
    let if_exists = cursor.if_exists()?;
    let name = cursor.name()?;
    let cascade = cursor.accept("CASCADE");
    Ok(match interface {
        true => Statement::DropNetworkInterface { if_exists, name, cascade },
        false => Statement::DropNetworkAddress { if_exists, name, cascade },
    })
}

fn is_interface(cursor: &mut Cursor<'_>) -> Result<bool> {
    if cursor.accept("ADDRESS") {
        return Ok(false);
    }
    cursor.expect("INTERFACE")?;
    Ok(true)
}

/// `[PORT n]`
pub(super) fn port(cursor: &mut Cursor<'_>) -> Result<Option<u64>> {
    if cursor.accept("PORT") { cursor.natural().map(Some) } else { Ok(None) }
}

/// After CREATE SUBNET.
pub(super) fn create_subnet(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let name = cursor.name()?;
    cursor.expect("WITH")?;
    Ok(Statement::CreateSubnet { name, prefix: cursor.string()? })
}

/// After ALTER SUBNET.
pub(super) fn alter_subnet(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let name = cursor.name()?;
    cursor.expect_all(&["RENAME", "TO"])?;
    Ok(Statement::AlterSubnet { name, rename_to: cursor.name()? })
}

/// After DROP SUBNET.
pub(super) fn drop_subnet(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let if_exists = cursor.if_exists()?;
    Ok(Statement::DropSubnet { if_exists, names: cursor.names()?, cascade: cursor.accept("CASCADE") })
}
