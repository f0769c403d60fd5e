//! GRANT and REVOKE of workloads, roles and authentications (`reference/vertica-sql.md` §4.1, §4.5).

use super::cursor::{Cursor, Result};
use super::sql;
use crate::ast::{Ident, Statement};

/// After GRANT.
pub(super) fn grant(cursor: &mut Cursor<'_>) -> Result<Statement> {
    if is_workload(cursor)? {
        let workload = cursor.name()?;
        cursor.expect("TO")?;
        return Ok(Statement::GrantWorkload { workload, grantees: cursor.names()? });
    }
    if is_authentication(cursor, "TO") {
        let name = cursor.name()?;
        cursor.expect("TO")?;
        return Ok(Statement::GrantAuthentication { name, grantees: cursor.names()? });
    }
    let Some(roles) = roles(cursor)? else { return sql::delegate(cursor) };
    cursor.expect("TO")?;
    let grantees = cursor.names()?;
    let admin = cursor.accept("WITH");
    if admin {
        cursor.expect_all(&["ADMIN", "OPTION"])?;
    }
    Ok(Statement::GrantRole { roles, grantees, admin })
}

/// After REVOKE.
pub(super) fn revoke(cursor: &mut Cursor<'_>) -> Result<Statement> {
    if is_workload(cursor)? {
        let workload = cursor.name()?;
        cursor.expect("FROM")?;
        return Ok(Statement::RevokeWorkload { workload, grantees: cursor.names()? });
    }
    if is_authentication(cursor, "FROM") {
        let name = cursor.name()?;
        cursor.expect("FROM")?;
        return Ok(Statement::RevokeAuthentication { name, grantees: cursor.names()? });
    }
    // Grant options do not exist; SQL has them, so sqlparser is not asked.
    if cursor.at("GRANT") {
        return Err(cursor.error());
    }
    // A role may be called "admin".
    let admin_only = cursor.at("ADMIN") && cursor.at_ahead(1, "OPTION");
    if admin_only {
        cursor.expect_all(&["ADMIN", "OPTION", "FOR"])?;
    }
    let Some(roles) = roles(cursor)? else { return sql::delegate(cursor) };
    cursor.expect("FROM")?;
    let grantees = cursor.names()?;
    let cascade = cursor.accept("CASCADE");
    Ok(Statement::RevokeRole { admin_only, roles, grantees, cascade })
}

/// Takes `USAGE ON WORKLOAD` or `USAGE ON ROUTING RULE`.
fn is_workload(cursor: &mut Cursor<'_>) -> Result<bool> {
    if cursor.accept_all(&["USAGE", "ON", "WORKLOAD"]) {
        return Ok(true);
    }
    if cursor.accept_all(&["USAGE", "ON", "ROUTING"]) {
        cursor.expect("RULE")?;
        return Ok(true);
    }
    Ok(false)
}

/// Takes AUTHENTICATION, unless it is the name of a role.
fn is_authentication(cursor: &mut Cursor<'_>, preposition: &str) -> bool {
    !cursor.at_ahead(1, preposition) && !cursor.symbol_ahead(1, ',') && cursor.accept("AUTHENTICATION")
}

/// Takes names of roles; `None` where they turn out to be privileges, which are for sqlparser to read.
fn roles(cursor: &mut Cursor<'_>) -> Result<Option<Vec<Ident>>> {
    if cursor.at("SELECT") || cursor.at("ALL") || cursor.at("CREATE") || cursor.at("REFERENCES") {
        return Ok(None);
    }
    let start = cursor.index();
    let roles = cursor.names()?;
    if cursor.at("ON") || cursor.at("PRIVILEGES") || cursor.symbol_ahead(0, '(') {
        cursor.back_to(start);
        return Ok(None);
    }
    Ok(Some(roles))
}
