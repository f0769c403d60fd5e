//! The declarations.

use std::net::SocketAddr;

use super::json::{self, object};
use super::objects::{
    self, format_type, function_arguments, function_definition, function_number, function_with, has_role, is_visible,
    parts, privilege_is, relation_named, relation_shown, role_number, schema_number, table_privilege, type_number,
    type_shown,
};
use super::{CatalogFunction, Takes, Value, first};
use crate::error::SqlState;
use crate::settings::{declaration, effective};
use crate::snapshot::{LiveSession, Snapshot};
use crate::sql::error::QueryError;
use crate::sql::patterns::{LIKE_PATTERN, like};
use crate::tables::pg_catalog::objects::{relation_with_oid, role_name, schema_oid};
use crate::tables::pg_catalog::{UTF8, functions, must_be_quoted, type_named};
use crate::tables::{Kind, SCHEMAS, search_path};

const BOOL: Takes = Takes::Only(Kind::Bool);
const INT4: Takes = Takes::Only(Kind::Int4);
const INT8: Takes = Takes::Only(Kind::Int);
const NAME: Takes = Takes::Only(Kind::Name);
const OID: Takes = Takes::Only(Kind::Oid);
const OIDVECTOR: Takes = Takes::Only(Kind::OidVector);
const TEXT: Takes = Takes::Only(Kind::Text);
use Takes::{Any, AnyArray, AnyNumber};

const fn function(
    name: &'static str,
    arguments: &'static [Takes],
    gives: Kind,
    answer: fn(&Snapshot, &[Value]) -> Result<Value, QueryError>,
) -> CatalogFunction {
    CatalogFunction { name, arguments, optional: 0, gives, answer }
}

impl CatalogFunction {
    /// The same, and that many of its arguments may be left out.
    const fn optional(self, optional: usize) -> Self {
        Self { optional, ..self }
    }
}

/// What is `PREFIX_is_visible` for objects that there are none of, or all of one schema.
const fn visible(name: &'static str) -> CatalogFunction {
    function(name, &[OID], Kind::Bool, yes)
}

/// What describes objects that there are none of.
const fn absent(name: &'static str, arguments: &'static [Takes]) -> CatalogFunction {
    function(name, arguments, Kind::Text, |_, _| Ok(Value::Null))
}

/// Bytes on disk: no table here takes any.
const fn size(name: &'static str) -> CatalogFunction {
    function(name, &[OID, TEXT], Kind::Int, |_, _| Ok(Value::Int(0))).optional(1)
}

/// A privilege on objects that anybody may use, with or without the user who is asked about.
const fn privilege(
    name: &'static str,
    answer: fn(&Snapshot, &[Value]) -> Result<Value, QueryError>,
) -> CatalogFunction {
    function(name, &[NAME, TEXT, TEXT], Kind::Bool, answer).optional(1)
}

pub(super) static FUNCTIONS: &[CatalogFunction] = &[
    function("format_type", &[OID, INT4], Kind::Text, |_, arguments| Ok(format_type(arguments))),
    function("pg_get_userbyid", &[OID], Kind::Name, |snapshot, arguments| {
        let Some(oid) = first(arguments).oid() else { return Ok(Value::Null) };
        Ok(role_name(&snapshot.catalog, oid).unwrap_or_else(|| format!("unknown (OID={oid})")).into())
    }),
    function("pg_table_is_visible", &[OID], Kind::Bool, |_, arguments| {
        let table = first(arguments).oid().and_then(relation_with_oid);
        Ok(table.map(is_visible).into())
    }),
    visible("pg_type_is_visible"),
    visible("pg_function_is_visible"),
    visible("pg_operator_is_visible"),
    visible("pg_opclass_is_visible"),
    visible("pg_opfamily_is_visible"),
    visible("pg_collation_is_visible"),
    visible("pg_conversion_is_visible"),
    visible("pg_statistics_obj_is_visible"),
    visible("pg_ts_config_is_visible"),
    visible("pg_ts_dict_is_visible"),
    visible("pg_ts_parser_is_visible"),
    visible("pg_ts_template_is_visible"),
    function("obj_description", &[OID, NAME], Kind::Text, |_, arguments| Ok(objects::obj_description(arguments)))
        .optional(1),
    function("shobj_description", &[OID, NAME], Kind::Text, |_, _| Ok(Value::Null)),
    function("col_description", &[OID, INT4], Kind::Text, |_, arguments| Ok(objects::col_description(arguments))),
    function("pg_get_expr", &[TEXT, OID, BOOL], Kind::Text, |_, arguments| Ok(first(arguments).text().into()))
        .optional(1),
    absent("pg_get_viewdef", &[OID, BOOL]).optional(1),
    absent("pg_get_ruledef", &[OID, BOOL]).optional(1),
    absent("pg_get_triggerdef", &[OID, BOOL]).optional(1),
    absent("pg_get_indexdef", &[OID, INT4, BOOL]).optional(2),
    absent("pg_get_constraintdef", &[OID, BOOL]).optional(1),
    absent("pg_get_partkeydef", &[OID]),
    absent("pg_get_partition_constraintdef", &[OID]),
    absent("pg_get_statisticsobjdef", &[OID]),
    absent("pg_get_statisticsobjdef_columns", &[OID]),
    absent("pg_get_serial_sequence", &[TEXT, TEXT]),
    absent("pg_get_function_sqlbody", &[OID]),
    absent("pg_get_function_arg_default", &[OID, INT4]),
    absent("pg_tablespace_location", &[OID]),
    function("pg_relation_filenode", &[OID], Kind::Oid, |_, _| Ok(Value::Null)),
    function("pg_get_function_result", &[OID], Kind::Text, |_, arguments| {
        Ok(function_with(arguments).and_then(|function| function.shown_result()).into())
    }),
    function("pg_get_function_arguments", &[OID], Kind::Text, |_, arguments| Ok(function_arguments(arguments).into())),
    function("pg_get_function_identity_arguments", &[OID], Kind::Text, |_, arguments| {
        Ok(function_arguments(arguments).into())
    }),
    function("pg_get_functiondef", &[OID], Kind::Text, |_, arguments| Ok(function_definition(arguments).into())),
    function("oidvectortypes", &[OIDVECTOR], Kind::Text, |_, arguments| {
        let Some(items) = first(arguments).items() else { return Ok(Value::Null) };
        let shown = items.iter().flatten().map(|oid| objects::type_named_by_number(oid));
        Ok(shown.collect::<Vec<_>>().join(", ").into())
    }),
    size("pg_table_size"),
    size("pg_relation_size"),
    size("pg_total_relation_size"),
    size("pg_indexes_size"),
    size("pg_database_size"),
    size("pg_tablespace_size"),
    size("pg_stat_get_numscans"),
    function("pg_size_pretty", &[INT8], Kind::Text, |_, arguments| Ok(size_pretty(first(arguments)))),
    privilege("has_database_privilege", |_, arguments| Ok(privilege_is(arguments, &["CONNECT"]))),
    privilege("has_schema_privilege", |_, arguments| Ok(privilege_is(arguments, &["USAGE"]))),
    privilege("has_function_privilege", |_, arguments| Ok(privilege_is(arguments, &["EXECUTE"]))),
    privilege("has_language_privilege", |_, arguments| Ok(privilege_is(arguments, &["USAGE"]))),
    privilege("has_type_privilege", |_, arguments| Ok(privilege_is(arguments, &["USAGE"]))),
    privilege("has_tablespace_privilege", |_, arguments| Ok(privilege_is(arguments, &[]))),
    privilege("has_sequence_privilege", |_, arguments| Ok(privilege_is(arguments, &[]))),
    privilege("has_table_privilege", |snapshot, arguments| Ok(table_privilege(snapshot, arguments, 2))),
    privilege("has_any_column_privilege", |snapshot, arguments| Ok(table_privilege(snapshot, arguments, 2))),
    function("has_column_privilege", &[NAME, TEXT, TEXT, TEXT], Kind::Bool, |snapshot, arguments| {
        Ok(table_privilege(snapshot, arguments, 3))
    })
    .optional(1),
    privilege("pg_has_role", |snapshot, arguments| Ok(has_role(snapshot, arguments))),
    function("pg_encoding_to_char", &[INT4], Kind::Name, |_, arguments| {
        let known = ENCODINGS.iter().find(|(number, _)| first(arguments) == &Value::Int(*number));
        Ok(known.map_or("", |(_, name)| *name).into())
    }),
    function("pg_char_to_encoding", &[NAME], Kind::Int4, |_, arguments| {
        let plain = |name: &str| name.replace(['-', '_'], "").to_uppercase();
        let wanted = first(arguments).text().map(plain);
        let known = ENCODINGS.iter().find(|(_, name)| wanted.as_ref() == Some(&plain(name)));
        Ok(known.map_or(-1, |(number, _)| *number).into())
    }),
    function("getdatabaseencoding", &[], Kind::Name, |_, _| Ok("UTF8".into())),
    function("pg_client_encoding", &[], Kind::Name, |snapshot, _| {
        Ok(setting_shown(snapshot, "client_encoding", true)?.into())
    }),
    function("current_database", &[], Kind::Name, database),
    function("current_catalog", &[], Kind::Name, database),
    function("current_user", &[], Kind::Name, user),
    function("session_user", &[], Kind::Name, user),
    function("user", &[], Kind::Name, user),
    function("current_role", &[], Kind::Name, user),
    function("inet_client_addr", &[], Kind::Inet, |snapshot, _| {
        Ok(snapshot.session.client_address.map(|client| client.ip().to_string()).into())
    }),
    function("inet_client_port", &[], Kind::Int4, |snapshot, _| {
        Ok(snapshot.session.client_address.map(|client| i64::from(client.port())).into())
    }),
    function("inet_server_addr", &[], Kind::Inet, |snapshot, _| {
        Ok(called(snapshot).map(|local| local.ip().to_string()).into())
    }),
    function("inet_server_port", &[], Kind::Int4, |snapshot, _| {
        Ok(called(snapshot).map(|local| i64::from(local.port())).into())
    }),
    // What a query sees is a version of the catalog; what a transaction commits will be the next one.
    function("txid_current", &[], Kind::Int, |snapshot, _| {
        Ok(i64::try_from(snapshot.catalog.version().saturating_add(1)).ok().into())
    }),
    function("current_schema", &[], Kind::Name, |snapshot, _| Ok(search_path(snapshot).first().copied().into())),
    function("current_schemas", &[BOOL], Kind::NameArray, |snapshot, arguments| {
        let implicit = (first(arguments) == &Value::Bool(true)).then_some("pg_catalog");
        let path = implicit.into_iter().chain(search_path(snapshot));
        Ok(Value::Texts(path.map(|name| Some(name.to_owned())).collect()))
    }),
    function("array_upper", &[AnyArray, INT4], Kind::Int4, |_, arguments| {
        let Some(items) = first(arguments).items() else { return Ok(Value::Null) };
        Ok(i64::try_from(items.len()).ok().filter(|len| *len > 0).into())
    }),
    function("array_lower", &[AnyArray, INT4], Kind::Int4, |_, arguments| {
        let Some(items) = first(arguments).items() else { return Ok(Value::Null) };
        Ok((!items.is_empty()).then_some(1i64).into())
    }),
    function("quote_ident", &[TEXT], Kind::Text, |_, arguments| Ok(first(arguments).text().map(quote_ident).into())),
    function("quote_literal", &[TEXT], Kind::Text, |_, arguments| {
        Ok(json::shown(first(arguments)).map(|text| quote_literal(&text)).into())
    }),
    function("quote_nullable", &[TEXT], Kind::Text, |_, arguments| {
        Ok(json::shown(first(arguments)).map_or_else(|| "NULL".to_owned(), |text| quote_literal(&text)).into())
    }),
    function("parse_ident", &[TEXT, BOOL], Kind::TextArray, |_, arguments| {
        let Some(name) = first(arguments).text() else { return Ok(Value::Null) };
        Ok(Value::Texts(parts(name).into_iter().map(Some).collect()))
    })
    .optional(1),
    function("current_setting", &[TEXT, BOOL], Kind::Text, current_setting).optional(1),
    function("format", &[TEXT, AnyNumber], Kind::Text, |_, arguments| Ok(format_text(arguments)?.into())).optional(1),
    function("json_build_object", &[AnyNumber], Kind::Json, |_, arguments| Ok(object(arguments, false)?.into()))
        .optional(1),
    function("jsonb_build_object", &[AnyNumber], Kind::Jsonb, |_, arguments| Ok(object(arguments, true)?.into()))
        .optional(1),
    function("pg_relation_is_publishable", &[OID], Kind::Bool, no),
    function("pg_is_in_recovery", &[], Kind::Bool, no),
    function("pg_is_wal_replay_paused", &[], Kind::Bool, no),
    function("pg_is_other_temp_schema", &[OID], Kind::Bool, no),
    function("pg_my_temp_schema", &[], Kind::Oid, |_, _| Ok(Value::Int(0))),
    function("row_security_active", &[OID], Kind::Bool, no),
    function("pg_blocking_pids", &[INT4], Kind::Int4Array, |_, _| Ok(Value::Texts(Vec::new()))),
    function("pg_postmaster_start_time", &[], Kind::Timestamptz, |snapshot, _| Ok(Value::Int(snapshot.live.start_us))),
    function("pg_conf_load_time", &[], Kind::Timestamptz, |snapshot, _| Ok(Value::Int(snapshot.live.start_us))),
    function("to_regclass", &[TEXT], Kind::Oid, |_, arguments| {
        Ok(relation_named(first(arguments)).ok().flatten().into())
    }),
    function("to_regtype", &[TEXT], Kind::Oid, |_, arguments| {
        Ok(first(arguments).text().and_then(type_named).map(|facts| facts.oid).into())
    }),
    function("to_regproc", &[TEXT], Kind::Oid, |_, arguments| {
        Ok(function_number(first(arguments)).ok().flatten().into())
    }),
    function("to_regnamespace", &[TEXT], Kind::Oid, |_, arguments| {
        Ok(schema_number(first(arguments)).ok().flatten().into())
    }),
    function("to_regrole", &[TEXT], Kind::Oid, |snapshot, arguments| {
        Ok(role_number(snapshot, first(arguments)).ok().flatten().into())
    }),
    // What casts to PostgreSQL's types of objects become; no client can name these.
    function("__regclass", &[Any], Kind::Oid, |_, arguments| Ok(relation_named(first(arguments))?.into())),
    function("__regclass_name", &[Any], Kind::Text, |_, arguments| Ok(relation_shown(arguments)?.into())),
    function("__regtype", &[Any], Kind::Oid, |_, arguments| Ok(type_number(first(arguments))?.into())),
    function("__regtype_name", &[Any], Kind::Text, |_, arguments| Ok(type_shown(first(arguments))?.into())),
    function("__regtype_names", &[Any], Kind::TextArray, |_, arguments| {
        let Some(items) = first(arguments).items() else { return Ok(Value::Null) };
        let shown = |item: &Option<String>| item.as_ref().map(|oid| objects::type_named_by_number(oid));
        Ok(Value::Texts(items.iter().map(shown).collect()))
    }),
    function("__regproc", &[Any], Kind::Oid, |_, arguments| Ok(function_number(first(arguments))?.into())),
    function("__regproc_name", &[Any], Kind::Text, |_, arguments| {
        let Some(oid) = function_number(first(arguments))? else { return Ok(Value::Null) };
        let found = functions().iter().find(|function| function.oid == oid);
        let none = if oid == 0 { "-".to_owned() } else { oid.to_string() };
        Ok(found.map_or(none, |function| function.name.to_owned()).into())
    }),
    function("__regnamespace", &[Any], Kind::Oid, |_, arguments| Ok(schema_number(first(arguments))?.into())),
    function("__regnamespace_name", &[Any], Kind::Text, |_, arguments| {
        let Some(oid) = schema_number(first(arguments))? else { return Ok(Value::Null) };
        let found = SCHEMAS.iter().find(|schema| schema_oid(schema) == oid);
        Ok(found.map_or_else(|| oid.to_string(), |schema| (*schema).to_owned()).into())
    }),
    function("__regrole", &[Any], Kind::Oid, |snapshot, arguments| Ok(role_number(snapshot, first(arguments))?.into())),
    function("__regrole_name", &[Any], Kind::Text, |snapshot, arguments| {
        let Some(oid) = role_number(snapshot, first(arguments))? else { return Ok(Value::Null) };
        Ok(role_name(&snapshot.catalog, oid).unwrap_or_else(|| oid.to_string()).into())
    }),
    function(LIKE_PATTERN, &[Any, Any], Kind::Text, |_, arguments| match arguments {
        [Value::Text(pattern), Value::Text(escape)] => Ok(like(pattern, escape.chars().next())?.into()),
        _ => Ok(Value::Null),
    }),
    function("__no_texts", &[], Kind::TextArray, |_, _| Ok(Value::Texts(Vec::new()))),
];

fn database(snapshot: &Snapshot, _: &[Value]) -> Result<Value, QueryError> {
    Ok(snapshot.catalog.database().name.to_string().into())
}

fn user(snapshot: &Snapshot, _: &[Value]) -> Result<Value, QueryError> {
    let user = snapshot.catalog.users().find(snapshot.session.user_id);
    Ok(user.map(|user| user.name.to_string()).into())
}

/// Where the session's client has called.
fn called(snapshot: &Snapshot) -> Option<SocketAddr> {
    let own = i64::from(snapshot.session.process_id);
    let (here, client) = (snapshot.live.node, snapshot.session.client_address?.to_string());
    let is_own = |session: &&LiveSession| session.process_id == own && session.node == here && session.client == client;
    snapshot.live.sessions.iter().find(is_own)?.local
}

/// PostgreSQL's numbers of the encodings that are known here.
const ENCODINGS: [(i64, &str); 4] = [(0, "SQL_ASCII"), (UTF8, "UTF8"), (8, "LATIN1"), (24, "WIN1252")];

fn yes(_: &Snapshot, arguments: &[Value]) -> Result<Value, QueryError> {
    Ok(first(arguments).oid().map(|_| true).into())
}

fn no(_: &Snapshot, _: &[Value]) -> Result<Value, QueryError> {
    Ok(false.into())
}

fn size_pretty(bytes: &Value) -> Value {
    let Value::Int(mut size) = *bytes else { return Value::Null };
    let units = ["kB", "MB", "GB", "TB", "PB"];
    if size.abs() < 10 * 1024 {
        return format!("{size} bytes").into();
    }
    // As PostgreSQL: a unit counts from 10240 of the one before, and halves are rounded up.
    size >>= 9;
    for unit in units {
        if size.abs() < 20 * 1024 - 1 || unit == "PB" {
            return format!("{} {unit}", (size + size.signum()) / 2).into();
        }
        size >>= 10;
    }
    Value::Null
}

fn current_setting(snapshot: &Snapshot, arguments: &[Value]) -> Result<Value, QueryError> {
    let Some(name) = first(arguments).text() else { return Ok(Value::Null) };
    let shown = setting_shown(snapshot, name, arguments.get(1) == Some(&Value::Bool(true)))?;
    Ok(shown.map_or(Value::Null, Value::from))
}

/// A setting's value as SHOW writes it; none when there is no such setting and that is `fine`.
pub(in crate::sql) fn setting_shown(snapshot: &Snapshot, name: &str, fine: bool) -> Result<Option<String>, QueryError> {
    let setting = match declaration(name) {
        Ok(setting) => setting,
        Err(_) if fine => return Ok(None),
        Err(error) => return Err(QueryError::new(SqlState::UndefinedObject, error.to_string())),
    };
    let hidden = setting.superuser && !snapshot.superuser();
    let changed = snapshot.live.effects.changed(setting.name);
    let kept = || effective(setting, &snapshot.session, &snapshot.catalog).0.into_owned();
    let value = changed.unwrap_or_else(kept);
    Ok(Some(if hidden { crate::show::MASK.to_owned() } else { setting.shown(&value) }))
}

/// `format` with `%s`, `%I`, `%L` and `%%`.
fn format_text(arguments: &[Value]) -> Result<Option<String>, QueryError> {
    let Some(pattern) = first(arguments).text() else { return Ok(None) };
    let mut values = arguments.iter().skip(1);
    let mut text = String::new();
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        if character != '%' {
            text.push(character);
            continue;
        }
        let conversion = characters.next();
        if conversion == Some('%') {
            text.push('%');
            continue;
        }
        let Some(value) = values.next() else {
            return Err(QueryError::new(SqlState::InvalidParameterValue, "too few arguments for format()"));
        };
        if value.items().is_some() {
            return Err(QueryError::refused("format() of an array"));
        }
        let shown = json::shown(value).unwrap_or_default();
        match conversion {
            Some('s') => text.push_str(&shown),
            Some('I') => text.push_str(&quote_ident(&shown)),
            Some('L') if *value == Value::Null => text.push_str("NULL"),
            Some('L') => text.push_str(&quote_literal(&shown)),
            _ => return Err(QueryError::refused("a conversion of format() other than %s, %I, %L and %%")),
        }
    }
    Ok(Some(text))
}

fn quote_ident(text: &str) -> String {
    let plain = text.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if plain && !must_be_quoted(text) { text.to_owned() } else { format!("\"{}\"", text.replace('"', "\"\"")) }
}

fn quote_literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if text.contains('\\') { format!("E'{}'", quoted.replace('\\', "\\\\")) } else { format!("'{quoted}'") }
}
