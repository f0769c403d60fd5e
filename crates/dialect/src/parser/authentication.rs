//! AUTHENTICATION: who may log in from where, and how.

use super::cursor::{Cursor, Result};
use super::topology;
use crate::ast::{AuthenticationAccess, AuthenticationAction, ParameterAction, Statement};

/// After CREATE AUTHENTICATION.
pub(super) fn create(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let name = cursor.name()?;
    cursor.expect("METHOD")?;
    let method = cursor.string()?;
    let access = match access(cursor)? {
        Some(access) => access,
        None => return Err(cursor.error()),
    };
    Ok(Statement::CreateAuthentication { name, method, access, fallthrough: cursor.accept("FALLTHROUGH") })
}

/// After ALTER AUTHENTICATION.
pub(super) fn alter(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let name = cursor.name()?;
    let action = if let Some(access) = access(cursor)? {
        AuthenticationAction::Access(access)
    } else if let Some(setting) = topology::setting(cursor)? {
        match setting {
            ParameterAction::Set(assignments) => AuthenticationAction::Set(assignments),
            ParameterAction::Clear(names) => AuthenticationAction::Clear(names),
        }
    } else {
        action(cursor)?
    };
    Ok(Statement::AlterAuthentication { name, action })
}

fn action(cursor: &mut Cursor<'_>) -> Result<AuthenticationAction> {
    if cursor.accept("RENAME") {
        cursor.expect("TO")?;
        Ok(AuthenticationAction::Rename(cursor.name()?))
    } else if cursor.accept("ENABLE") {
        Ok(AuthenticationAction::Enable(true))
    } else if cursor.accept("DISABLE") {
        Ok(AuthenticationAction::Enable(false))
    } else if cursor.accept("METHOD") {
        Ok(AuthenticationAction::Method(cursor.string()?))
    } else if cursor.accept("PRIORITY") {
        Ok(AuthenticationAction::Priority(cursor.natural()?))
    } else {
        let fallthrough = !cursor.accept("NO");
        cursor.expect("FALLTHROUGH")?;
        Ok(AuthenticationAction::Fallthrough(fallthrough))
    }
}

/// After DROP AUTHENTICATION.
pub(super) fn drop(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let if_exists = cursor.if_exists()?;
    Ok(Statement::DropAuthentication { if_exists, names: cursor.names()?, cascade: cursor.accept("CASCADE") })
}

/// `LOCAL | HOST [TLS | NO TLS] 'network'`
fn access(cursor: &mut Cursor<'_>) -> Result<Option<AuthenticationAccess>> {
    if cursor.accept("LOCAL") {
        return Ok(Some(AuthenticationAccess::Local));
    }
    if !cursor.accept("HOST") {
        return Ok(None);
    }
    let tls = if cursor.accept("TLS") {
        Some(true)
    } else if cursor.accept("NO") {
        cursor.expect("TLS")?;
        Some(false)
    } else {
        None
    };
    Ok(Some(AuthenticationAccess::Host { tls, network: cursor.string()? }))
}
