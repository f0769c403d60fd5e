//! Users, roles and user mappings (`reference/vertica-sql.md` §4.4, §4.5).

use super::cursor::{Cursor, Result};
use super::{topology, with_hint};
use crate::ast::{
    ConnectionScope, Ident, MappingOptions, ParameterAction, RoleChoice, SecretText, Statement, UserAction,
    UserParameter,
};
use crate::error::{ErrorKind, SyntaxError};
use crate::words;

/// The words with which a parameter of a user begins.
const PARAMETERS: [&str; 15] = [
    "ACCOUNT",
    "PASSWORD",
    "ENCRYPTED",
    "IDENTIFIED",
    "GRACEPERIOD",
    "IDLESESSIONTIMEOUT",
    "RUNTIMECAP",
    "MAXCONNECTIONS",
    "MEMORYCAP",
    "TEMPSPACECAP",
    "PROFILE",
    "RESOURCE",
    "SEARCH_PATH",
    "SECURITY_ALGORITHM",
    "WITH",
];

const CONFLICT: &str = "conflicting or redundant options";

/// After CREATE USER.
pub(super) fn create(cursor: &mut Cursor<'_>) -> Result<Statement> {
    if cursor.accept_all(&["MAPPING", "FOR"]) {
        let (user, server) = mapping(cursor)?;
        return Ok(Statement::CreateUserMapping { user, server, options: mapping_options(cursor, false)? });
    }
    let name = user_name(cursor)?;
    let parameters = if cursor.at_end() { Vec::new() } else { parameters(cursor)? };
    Ok(Statement::CreateUser { name, parameters })
}

/// The user's name; no user's name stands before FOR, as MAPPING does.
fn user_name(cursor: &mut Cursor<'_>) -> Result<Ident> {
    let start = cursor.index();
    let name = cursor.name()?;
    if cursor.at("FOR") && words::nearest(&name.0, ["MAPPING"]).is_some() {
        cursor.back_to(start);
        return Err(cursor.error_at_token(cursor.token(), &["MAPPING"]));
    }
    Ok(name)
}

/// After ALTER USER.
pub(super) fn alter(cursor: &mut Cursor<'_>) -> Result<Statement> {
    if cursor.accept_all(&["MAPPING", "FOR"]) {
        let (user, server) = mapping(cursor)?;
        return Ok(Statement::AlterUserMapping { user, server, options: mapping_options(cursor, true)? });
    }
    let name = user_name(cursor)?;
    let action = if cursor.accept("DEFAULT") {
        cursor.expect("ROLE")?;
        UserAction::DefaultRole(default_roles(cursor)?)
    } else if cursor.accept("RENAME") {
        cursor.expect("TO")?;
        UserAction::Rename(cursor.name()?)
    } else if let Some(action) = setting(cursor)? {
        UserAction::Parameter(action)
    } else {
        UserAction::Parameters(parameters(cursor)?)
    };
    Ok(Statement::AlterUser { name, action })
}

/// After DROP USER.
pub(super) fn drop(cursor: &mut Cursor<'_>) -> Result<Statement> {
    if cursor.at("MAPPING") && (cursor.at_ahead(1, "IF") || cursor.at_ahead(1, "FOR")) {
        cursor.expect("MAPPING")?;
        let if_exists = cursor.if_exists()?;
        cursor.expect("FOR")?;
        let (user, server) = mapping(cursor)?;
        return Ok(Statement::DropUserMapping { if_exists, user, server });
    }
    if cursor.at_ahead(1, "FOR") {
        user_name(cursor)?;
    }
    let if_exists = cursor.if_exists()?;
    Ok(Statement::DropUser { if_exists, names: cursor.names()?, cascade: cursor.accept("CASCADE") })
}

/// After CREATE ROLE.
pub(super) fn create_role(cursor: &mut Cursor<'_>) -> Result<Statement> {
    Ok(Statement::CreateRole { name: cursor.name()? })
}

/// After ALTER ROLE. A user is a role to PostgreSQL's clients: their SET is that of ALTER USER.
pub(super) fn alter_role(cursor: &mut Cursor<'_>) -> Result<Statement> {
    if cursor.at("ALL") {
        return Err(with_hint(cursor.error(), "For all users: ALTER DATABASE DEFAULT SET name = value."));
    }
    let name = cursor.name()?;
    if cursor.at("IN") && cursor.at_ahead(1, "DATABASE") {
        return Err(with_hint(cursor.error(), "There is one database: leave IN DATABASE out."));
    }
    if let Some(action) = setting(cursor)? {
        return Ok(Statement::AlterUser { name, action: UserAction::RoleParameter(action) });
    }
    cursor.expect_all(&["RENAME", "TO"])?;
    Ok(Statement::AlterRole { name, rename_to: cursor.name()? })
}

/// After DROP ROLE.
pub(super) fn drop_role(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let if_exists = cursor.if_exists()?;
    Ok(Statement::DropRole { if_exists, names: cursor.names()?, cascade: cursor.accept("CASCADE") })
}

/// SET, CLEAR, and PostgreSQL's RESET of one parameter.
fn setting(cursor: &mut Cursor<'_>) -> Result<Option<ParameterAction>> {
    if cursor.accept("RESET") {
        if cursor.at("ALL") {
            return Err(with_hint(cursor.error(), "Name each setting; SHOW USER ... ALL lists those that are set."));
        }
        return Ok(Some(ParameterAction::Clear(vec![topology::parameter(cursor)?])));
    }
    topology::setting(cursor)
}

/// `NONE | role, ... | ALL [EXCEPT role, ...]`
pub(super) fn roles(cursor: &mut Cursor<'_>) -> Result<RoleChoice> {
    if cursor.accept("NONE") {
        return Ok(RoleChoice::None);
    }
    if cursor.accept("ALL") {
        let except = if cursor.accept("EXCEPT") { cursor.names()? } else { Vec::new() };
        return Ok(RoleChoice::AllExcept(except));
    }
    Ok(RoleChoice::Named(cursor.names()?))
}

/// The roles of DEFAULT ROLE, which stands alone: the parameter of a user that follows is the mistake, and no role.
fn default_roles(cursor: &mut Cursor<'_>) -> Result<RoleChoice> {
    let start = cursor.index();
    let roles = roles(cursor)?;
    if cursor.at_end() {
        return Ok(roles);
    }
    let end = cursor.index();
    let is_parameter = |cursor: &Cursor<'_>| PARAMETERS.iter().any(|word| cursor.at(word));
    if end >= start + 2 {
        cursor.back_to(end - 2);
        let after_comma = cursor.accept_symbol(',');
        if !(after_comma && is_parameter(cursor)) {
            cursor.back_to(end);
        }
    }
    let alone =
        is_parameter(cursor).then(|| "DEFAULT ROLE is a statement of its own; write another ALTER USER.".to_owned());
    let error = cursor.error();
    Err(SyntaxError { hint: alone.or(error.hint), ..error })
}

/// The syntax page has commas between the parameters, the vendor's examples blanks: both are taken.
fn parameters(cursor: &mut Cursor<'_>) -> Result<Vec<UserParameter>> {
    cursor.accept("WITH");
    let mut parameters: Vec<UserParameter> = Vec::new();
    loop {
        let start = cursor.index();
        let parameter = parameter(cursor)?;
        let kind = std::mem::discriminant(&parameter);
        if parameters.iter().any(|earlier| std::mem::discriminant(earlier) == kind) {
            cursor.back_to(start);
            return Err(cursor.error_saying(ErrorKind::Syntax, CONFLICT));
        }
        parameters.push(parameter);
        if !cursor.accept_symbol(',') && cursor.at_end() {
            return Ok(parameters);
        }
    }
}

fn parameter(cursor: &mut Cursor<'_>) -> Result<UserParameter> {
    if cursor.accept("ACCOUNT") {
        let lock = cursor.accept("LOCK");
        if !lock {
            cursor.expect("UNLOCK")?;
        }
        return Ok(UserParameter::Lock(lock));
    }
    if cursor.accept("PASSWORD") || cursor.at("ENCRYPTED") {
        return password(cursor);
    }
    if cursor.accept("IDENTIFIED") {
        cursor.expect("BY")?;
        let password = SecretText::new(cursor.string()?);
        let replace = if cursor.accept("REPLACE") { Some(SecretText::new(cursor.string()?)) } else { None };
        return Ok(UserParameter::IdentifiedBy { password, replace });
    }
    if cursor.accept("MAXCONNECTIONS") {
        return max_connections(cursor);
    }
    if cursor.accept("PROFILE") {
        let default = cursor.accept("DEFAULT");
        return Ok(UserParameter::Profile(if default { None } else { Some(cursor.name()?) }));
    }
    if cursor.accept("RESOURCE") {
        cursor.expect("POOL")?;
        let pool = cursor.name()?;
        let subcluster = if cursor.accept("FOR") {
            cursor.expect("SUBCLUSTER")?;
            Some(cursor.name()?)
        } else {
            None
        };
        return Ok(UserParameter::ResourcePool { pool, subcluster });
    }
    if cursor.accept("SEARCH_PATH") {
        return search_path(cursor);
    }
    if cursor.accept("SECURITY_ALGORITHM") {
        return Ok(UserParameter::SecurityAlgorithm(cursor.string()?));
    }
    cap(cursor)
}

/// The parameters with a text or NONE.
fn cap(cursor: &mut Cursor<'_>) -> Result<UserParameter> {
    let make = if cursor.accept("GRACEPERIOD") {
        UserParameter::GracePeriod
    } else if cursor.accept("IDLESESSIONTIMEOUT") {
        UserParameter::IdleSessionTimeout
    } else if cursor.accept("RUNTIMECAP") {
        UserParameter::RuntimeCap
    } else if cursor.accept("MEMORYCAP") {
        UserParameter::MemoryCap
    } else {
        cursor.expect("TEMPSPACECAP")?;
        UserParameter::TempSpaceCap
    };
    let none = cursor.accept("NONE");
    Ok(make(if none { None } else { Some(cursor.string()?) }))
}

/// `PASSWORD EXPIRE`, and PostgreSQL's `[ENCRYPTED] PASSWORD 'text'`.
fn password(cursor: &mut Cursor<'_>) -> Result<UserParameter> {
    if cursor.accept("ENCRYPTED") {
        cursor.expect("PASSWORD")?;
    } else if cursor.accept("EXPIRE") {
        return Ok(UserParameter::ExpirePassword);
    }
    Ok(UserParameter::IdentifiedBy { password: SecretText::new(cursor.string()?), replace: None })
}

fn max_connections(cursor: &mut Cursor<'_>) -> Result<UserParameter> {
    if cursor.accept("NONE") {
        return Ok(UserParameter::MaxConnections(None));
    }
    let limit = cursor.natural()?;
    cursor.expect("ON")?;
    let scope = if cursor.accept("DATABASE") {
        ConnectionScope::Database
    } else {
        cursor.expect("NODE")?;
        ConnectionScope::Node
    };
    Ok(UserParameter::MaxConnections(Some((limit, scope))))
}

/// A comma may separate schemas or parameters: the word behind it tells.
fn search_path(cursor: &mut Cursor<'_>) -> Result<UserParameter> {
    if cursor.accept("DEFAULT") {
        return Ok(UserParameter::SearchPath(None));
    }
    let mut schemas = vec![cursor.name()?];
    while cursor.symbol_ahead(0, ',') && !PARAMETERS.iter().any(|word| cursor.at_ahead(1, word)) {
        cursor.advance();
        schemas.push(cursor.name()?);
    }
    Ok(UserParameter::SearchPath(Some(schemas)))
}

/// `(user | PUBLIC) [SERVER node]`
fn mapping(cursor: &mut Cursor<'_>) -> Result<(Option<Ident>, Option<Ident>)> {
    let user = if cursor.accept("PUBLIC") { None } else { Some(cursor.name()?) };
    let server = if cursor.accept("SERVER") { Some(cursor.name()?) } else { None };
    Ok((user, server))
}

/// `OPTIONS (user 'u', password 'p')`; to alter, each may have ADD or SET in front, and `DROP password` is one.
fn mapping_options(cursor: &mut Cursor<'_>, alter: bool) -> Result<MappingOptions> {
    let mut options = MappingOptions::default();
    cursor.expect("OPTIONS")?;
    cursor.expect_symbol('(')?;
    loop {
        let start = cursor.index();
        let drop = alter && cursor.accept("DROP");
        if alter && !drop && !cursor.accept("SET") {
            cursor.accept("ADD");
        }
        let redundant = if drop {
            cursor.expect("PASSWORD")?;
            std::mem::replace(&mut options.drop_password, true) || options.password.is_some()
        } else if cursor.accept("USER") {
            options.user.replace(cursor.string()?).is_some()
        } else {
            cursor.expect("PASSWORD")?;
            options.password.replace(SecretText::new(cursor.string()?)).is_some() || options.drop_password
        };
        if redundant {
            cursor.back_to(start);
            return Err(cursor.error_saying(ErrorKind::Syntax, CONFLICT));
        }
        if !cursor.accept_symbol(',') {
            cursor.expect_symbol(')')?;
            return Ok(options);
        }
    }
}
