//! Objects by number and by name, and what is said of them.

use super::{Value, first};
use crate::error::SqlState;
use crate::snapshot::Snapshot;
use crate::sql::error::QueryError;
use crate::tables::pg_catalog::objects::{
    CLASS_CATALOG, NAMESPACE_CATALOG, may_read, relation_oid, relation_with_oid, role_oid, schema_oid, user_oid,
};
use crate::tables::pg_catalog::{functions, type_named, type_with_oid};
use crate::tables::{SCHEMAS, SystemTable, find, resolve, schema_description};

/// Whether a table is found by its bare name.
pub(super) fn is_visible(table: &SystemTable) -> bool {
    resolve(table.name).is_some_and(|found| found.schema == table.schema)
}

pub(super) fn format_type(arguments: &[Value]) -> Value {
    let [oid, modifier] = arguments else { return Value::Null };
    let Some(oid) = oid.oid() else { return Value::Null };
    let modifier = if let Value::Int(modifier) = modifier { *modifier } else { -1 };
    let Some(facts) = type_with_oid(oid) else { return if oid == 0 { "-" } else { "???" }.into() };
    match (facts.name, modifier) {
        ("varchar" | "bpchar", 4..) => format!("{}({})", facts.shown, modifier - 4).into(),
        ("numeric", 4..) => format!("numeric({},{})", (modifier - 4) >> 16, (modifier - 4) & 0xffff).into(),
        _ => facts.shown.into(),
    }
}

pub(super) fn obj_description(arguments: &[Value]) -> Value {
    let Some(oid) = first(arguments).oid() else { return Value::Null };
    let catalog = arguments.get(1).map(|name| match name.text() {
        Some("pg_class") => CLASS_CATALOG,
        Some("pg_namespace") => NAMESPACE_CATALOG,
        _ => 0,
    });
    let is = |wanted| catalog.is_none_or(|catalog| catalog == wanted);
    if let Some(table) = relation_with_oid(oid).filter(|_| is(CLASS_CATALOG)) {
        return table.description.into();
    }
    let schema = SCHEMAS.iter().find(|schema| is(NAMESPACE_CATALOG) && schema_oid(schema) == oid);
    schema.map(|schema| schema_description(schema)).into()
}

pub(super) fn col_description(arguments: &[Value]) -> Value {
    let [oid, Value::Int(position)] = arguments else { return Value::Null };
    let table = oid.oid().and_then(relation_with_oid);
    let index = usize::try_from(*position).ok().and_then(|position| position.checked_sub(1));
    let column = index.and_then(|index| table?.columns.get(index));
    column.map(|column| column.description).into()
}

pub(super) fn function_with(arguments: &[Value]) -> Option<&'static crate::tables::pg_catalog::FunctionRow> {
    let oid = first(arguments).oid()?;
    functions().iter().find(|function| function.oid == oid)
}

/// A type's name, given its number as text.
pub(super) fn type_named_by_number(oid: &str) -> String {
    let facts = oid.parse().ok().and_then(type_with_oid);
    facts.map_or_else(|| oid.to_owned(), |facts| facts.shown.to_owned())
}

pub(super) fn function_arguments(arguments: &[Value]) -> Option<String> {
    function_with(arguments).map(|function| function.shown_arguments())
}

pub(super) fn function_definition(arguments: &[Value]) -> Option<String> {
    let function = function_with(arguments)?;
    let shown = function_arguments(arguments)?;
    let (kind, result) = match function.shown_result() {
        Some(result) => ("FUNCTION", format!("\n RETURNS {result}")),
        None => ("PROCEDURE", String::new()),
    };
    let name = function.name;
    Some(format!(
        "CREATE OR REPLACE {kind} {}.{name}({shown}){result}\n LANGUAGE internal\nAS $function${name}$function$\n",
        function.schema
    ))
}

/// Whether the last argument names a privilege that everybody has.
pub(super) fn privilege_is(arguments: &[Value], granted: &[&str]) -> Value {
    let Some(wanted) = arguments.last().and_then(Value::text) else { return Value::Null };
    let has = |wanted: &str| granted.iter().any(|granted| granted.eq_ignore_ascii_case(wanted.trim()));
    wanted.split(',').any(has).into()
}

/// With a user before the table there is one argument more than `len`.
pub(super) fn table_privilege(snapshot: &Snapshot, arguments: &[Value], len: usize) -> Value {
    let table = arguments.get(arguments.len().saturating_sub(len));
    let table = table.and_then(|table| relation_named(table).ok().flatten()).and_then(relation_with_oid);
    match (table, privilege_is(arguments, &["SELECT"])) {
        (Some(table), Value::Bool(read)) => (read && may_read(snapshot, table)).into(),
        _ => Value::Null,
    }
}

pub(super) fn has_role(snapshot: &Snapshot, arguments: &[Value]) -> Value {
    let Some(role) = arguments.get(arguments.len().saturating_sub(2)) else { return Value::Null };
    let Ok(Some(oid)) = role_number(snapshot, role) else { return Value::Null };
    let user = snapshot.session.user_id;
    let granted = || snapshot.catalog.granted_roles(user).keys().any(|role| role_oid(*role) == oid);
    (snapshot.superuser() || user_oid(user) == oid || granted()).into()
}

/// The parts of a name with dots, quotes taken away and what is unquoted folded.
pub(super) fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut quoted = false;
    for character in name.trim().chars() {
        match character {
            '"' => quoted = !quoted,
            '.' if !quoted => parts.push(String::new()),
            other => {
                if let Some(last) = parts.last_mut() {
                    if quoted { last.push(other) } else { last.extend(other.to_lowercase()) }
                }
            }
        }
    }
    parts
}

fn table_named(name: &str) -> Option<&'static SystemTable> {
    match parts(name).as_slice() {
        [table] => resolve(table),
        [.., schema, table] => find(schema, table),
        [] => None,
    }
}

/// A relation's number, given that or its name.
pub(super) fn relation_named(value: &Value) -> Result<Option<u32>, QueryError> {
    match (value.oid(), value.text()) {
        (Some(oid), _) => Ok(Some(oid)),
        (None, None) => Ok(None),
        (None, Some(name)) => match table_named(name) {
            Some(table) => Ok(Some(relation_oid(table))),
            None => Err(QueryError::new(SqlState::UndefinedTable, format!("relation \"{name}\" does not exist"))),
        },
    }
}

pub(super) fn relation_shown(arguments: &[Value]) -> Result<Option<String>, QueryError> {
    let Some(oid) = relation_named(first(arguments))? else { return Ok(None) };
    Ok(Some(match relation_with_oid(oid) {
        Some(table) if is_visible(table) => table.name.to_owned(),
        Some(table) => format!("{}.{}", table.schema, table.name),
        None if oid == 0 => "-".to_owned(),
        None => oid.to_string(),
    }))
}

pub(super) fn type_number(value: &Value) -> Result<Option<u32>, QueryError> {
    match (value.oid(), value.text()) {
        (Some(oid), _) => Ok(Some(oid)),
        (None, None) => Ok(None),
        (None, Some(name)) => match type_named(name) {
            Some(facts) => Ok(Some(facts.oid)),
            None => Err(QueryError::new(SqlState::UndefinedObject, format!("type \"{name}\" does not exist"))),
        },
    }
}

pub(super) fn type_shown(value: &Value) -> Result<Option<String>, QueryError> {
    let Some(oid) = type_number(value)? else { return Ok(None) };
    let none = || if oid == 0 { "-".to_owned() } else { oid.to_string() };
    Ok(Some(type_with_oid(oid).map_or_else(none, |facts| facts.shown.to_owned())))
}

pub(super) fn function_number(value: &Value) -> Result<Option<u32>, QueryError> {
    match (value.oid(), value.text()) {
        (Some(oid), _) => Ok(Some(oid)),
        (None, None) => Ok(None),
        (None, Some(name)) => {
            let bare = name.split('(').next().unwrap_or(name);
            let last = parts(bare).pop().unwrap_or_default();
            let found = functions().iter().find(|function| function.name == last);
            match found {
                Some(function) => Ok(Some(function.oid)),
                None => {
                    Err(QueryError::new(SqlState::UndefinedFunction, format!("function \"{name}\" does not exist")))
                }
            }
        }
    }
}

pub(super) fn schema_number(value: &Value) -> Result<Option<u32>, QueryError> {
    match (value.oid(), value.text()) {
        (Some(oid), _) => Ok(Some(oid)),
        (None, None) => Ok(None),
        (None, Some(name)) => {
            let folded = parts(name).pop().unwrap_or_default();
            match SCHEMAS.iter().find(|schema| **schema == folded) {
                Some(schema) => Ok(Some(schema_oid(schema))),
                None => Err(QueryError::new(SqlState::UndefinedObject, format!("schema \"{name}\" does not exist"))),
            }
        }
    }
}

pub(super) fn role_number(snapshot: &Snapshot, value: &Value) -> Result<Option<u32>, QueryError> {
    let catalog = &snapshot.catalog;
    match (value.oid(), value.text()) {
        (Some(oid), _) => Ok(Some(oid)),
        (None, None) => Ok(None),
        (None, Some(name)) => {
            let parsed = switchyard_catalog::Name::parse(&parts(name).pop().unwrap_or_default()).ok();
            let user = parsed.as_ref().and_then(|name| catalog.users().named(name)).map(|user| user_oid(user.id));
            let role = || parsed.as_ref().and_then(|name| catalog.roles().named(name)).map(|role| role_oid(role.id));
            match user.or_else(role) {
                Some(oid) => Ok(Some(oid)),
                None => Err(QueryError::new(SqlState::UndefinedObject, format!("role \"{name}\" does not exist"))),
            }
        }
    }
}
