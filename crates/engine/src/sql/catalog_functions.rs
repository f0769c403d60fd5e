//! The functions that clients ask PostgreSQL's catalog with (`reference/introspection.md`), one declaration each.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::ListArray;
use datafusion::arrow::datatypes::{DataType, Field, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::error::DataFusionError;
use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};

use super::error::QueryError;
use super::{Current, current};
use crate::error::SqlState;
use crate::settings::{declaration, effective};
use crate::snapshot::Snapshot;
use crate::tables::pg_catalog::objects::{
    CLASS_CATALOG, NAMESPACE_CATALOG, may_read, relation_oid, relation_with_oid, role_name, role_oid, schema_oid,
    user_oid,
};
use crate::tables::pg_catalog::{UTF8, functions, type_named, type_with_oid};
use crate::tables::{SCHEMAS, SEARCH_PATH, SystemTable, find, resolve, schema_description};

/// What a function gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gives {
    Bool,
    Int4,
    Int8,
    Text,
    Oid,
    Texts,
    Time,
}

/// One function.
#[derive(Debug)]
pub(crate) struct CatalogFunction {
    pub(crate) name: &'static str,
    pub(crate) arguments_min: usize,
    arguments_max: usize,
    gives: Gives,
    answer: fn(&Snapshot, &[Value]) -> Result<Value, QueryError>,
}

impl CatalogFunction {
    /// The number of the result's type.
    pub(crate) fn result_oid(&self) -> u32 {
        match self.gives {
            Gives::Bool => 16,
            Gives::Int4 => 23,
            Gives::Int8 => 20,
            Gives::Text => 25,
            Gives::Oid => 26,
            Gives::Texts => 1009,
            Gives::Time => 1184,
        }
    }

    fn arrow(&self) -> DataType {
        match self.gives {
            Gives::Bool => DataType::Boolean,
            Gives::Int4 => DataType::Int32,
            Gives::Int8 => DataType::Int64,
            Gives::Text => DataType::Utf8,
            Gives::Oid => DataType::UInt32,
            Gives::Texts => DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true))),
            Gives::Time => DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into())),
        }
    }
}

/// An argument or a result.
#[derive(Debug, Clone, PartialEq)]
enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Text(String),
    Texts(Vec<Option<String>>),
}

impl Value {
    fn read(scalar: &ScalarValue) -> Self {
        match scalar {
            scalar if scalar.is_null() => Self::Null,
            ScalarValue::Boolean(Some(value)) => Self::Bool(*value),
            ScalarValue::List(list) => Self::Texts(items(list)),
            scalar => match scalar.cast_to(&DataType::Int64) {
                Ok(ScalarValue::Int64(Some(value))) if scalar.data_type().is_numeric() => Self::Int(value),
                _ => Self::Text(scalar.to_string()),
            },
        }
    }

    fn scalar(self, function: &CatalogFunction) -> Result<ScalarValue, DataFusionError> {
        Ok(match (self, function.gives) {
            (Self::Bool(value), Gives::Bool) => ScalarValue::Boolean(Some(value)),
            (Self::Int(value), Gives::Int4) => ScalarValue::Int32(i32::try_from(value).ok()),
            (Self::Int(value), Gives::Int8) => ScalarValue::Int64(Some(value)),
            (Self::Int(value), Gives::Oid) => ScalarValue::UInt32(u32::try_from(value).ok()),
            (Self::Int(value), Gives::Time) => ScalarValue::TimestampMicrosecond(Some(value), Some("+00:00".into())),
            (Self::Text(value), Gives::Text) => ScalarValue::Utf8(Some(value)),
            (Self::Texts(values), Gives::Texts) => {
                let values: Vec<ScalarValue> = values.into_iter().map(ScalarValue::Utf8).collect();
                ScalarValue::List(ScalarValue::new_list_nullable(&values, &DataType::Utf8))
            }
            _ => ScalarValue::try_from(&function.arrow())?,
        })
    }

    fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// An object number, as such or as text.
    fn oid(&self) -> Option<u32> {
        match self {
            Self::Int(value) => u32::try_from(*value).ok(),
            Self::Text(text) => text.trim().parse().ok(),
            _ => None,
        }
    }
}

fn items(list: &ListArray) -> Vec<Option<String>> {
    let flat = ScalarValue::convert_array_to_scalar_vec(list).unwrap_or_default();
    let shown = |item: &ScalarValue| (!item.is_null()).then(|| item.to_string());
    flat.iter().flatten().flatten().map(shown).collect()
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<u32> for Value {
    fn from(value: u32) -> Self {
        Self::Int(value.into())
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// All of them.
pub(crate) fn catalog_functions() -> impl Iterator<Item = &'static CatalogFunction> {
    FUNCTIONS.iter().filter(|function| !function.name.starts_with("__"))
}

const fn function(
    name: &'static str,
    [arguments_min, arguments_max]: [usize; 2],
    gives: Gives,
    answer: fn(&Snapshot, &[Value]) -> Result<Value, QueryError>,
) -> CatalogFunction {
    CatalogFunction { name, arguments_min, arguments_max, gives, answer }
}

/// What is `PREFIX_is_visible` for objects that there are none of, or all of one schema.
const fn visible(name: &'static str) -> CatalogFunction {
    function(name, [1, 1], Gives::Bool, yes)
}

/// What describes objects that there are none of.
const fn absent(name: &'static str, arguments: [usize; 2]) -> CatalogFunction {
    function(name, arguments, Gives::Text, |_, _| Ok(Value::Null))
}

/// Bytes on disk: no table here takes any.
const fn size(name: &'static str) -> CatalogFunction {
    function(name, [1, 2], Gives::Int8, |_, _| Ok(Value::Int(0)))
}

/// A privilege on objects that anybody may use.
const fn privilege(
    name: &'static str,
    answer: fn(&Snapshot, &[Value]) -> Result<Value, QueryError>,
) -> CatalogFunction {
    function(name, [2, 4], Gives::Bool, answer)
}

static FUNCTIONS: &[CatalogFunction] = &[
    function("format_type", [2, 2], Gives::Text, |_, arguments| Ok(format_type(arguments))),
    function("pg_get_userbyid", [1, 1], Gives::Text, |snapshot, arguments| {
        let Some(oid) = first(arguments).oid() else { return Ok(Value::Null) };
        Ok(role_name(&snapshot.catalog, oid).unwrap_or_else(|| format!("unknown (OID={oid})")).into())
    }),
    function("pg_table_is_visible", [1, 1], Gives::Bool, |_, arguments| {
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
    function("obj_description", [1, 2], Gives::Text, |_, arguments| Ok(obj_description(arguments))),
    function("shobj_description", [2, 2], Gives::Text, |_, _| Ok(Value::Null)),
    function("col_description", [2, 2], Gives::Text, |_, arguments| Ok(col_description(arguments))),
    function("pg_get_expr", [2, 3], Gives::Text, |_, arguments| Ok(first(arguments).text().into())),
    absent("pg_get_viewdef", [1, 2]),
    absent("pg_get_ruledef", [1, 2]),
    absent("pg_get_triggerdef", [1, 2]),
    absent("pg_get_indexdef", [1, 3]),
    absent("pg_get_constraintdef", [1, 2]),
    absent("pg_get_partkeydef", [1, 1]),
    absent("pg_get_statisticsobjdef", [1, 1]),
    absent("pg_get_statisticsobjdef_columns", [1, 1]),
    absent("pg_get_serial_sequence", [2, 2]),
    absent("pg_get_function_sqlbody", [1, 1]),
    absent("pg_tablespace_location", [1, 1]),
    function("pg_get_function_result", [1, 1], Gives::Text, |_, arguments| {
        let function = function_with(arguments).filter(|function| function.kind == "f");
        Ok(function.and_then(|function| type_with_oid(function.result)).map(|facts| facts.shown).into())
    }),
    function("pg_get_function_arguments", [1, 1], Gives::Text, |_, arguments| Ok(function_arguments(arguments).into())),
    function("pg_get_function_identity_arguments", [1, 1], Gives::Text, |_, arguments| {
        Ok(function_arguments(arguments).into())
    }),
    function("pg_get_functiondef", [1, 1], Gives::Text, |_, arguments| Ok(function_definition(arguments).into())),
    size("pg_table_size"),
    size("pg_relation_size"),
    size("pg_total_relation_size"),
    size("pg_indexes_size"),
    size("pg_database_size"),
    size("pg_tablespace_size"),
    size("pg_stat_get_numscans"),
    function("pg_size_pretty", [1, 1], Gives::Text, |_, arguments| Ok(size_pretty(first(arguments)))),
    privilege("has_database_privilege", |_, arguments| Ok(privilege_is(arguments, &["CONNECT"]))),
    privilege("has_schema_privilege", |_, arguments| Ok(privilege_is(arguments, &["USAGE"]))),
    privilege("has_function_privilege", |_, arguments| Ok(privilege_is(arguments, &["EXECUTE"]))),
    privilege("has_language_privilege", |_, arguments| Ok(privilege_is(arguments, &["USAGE"]))),
    privilege("has_type_privilege", |_, arguments| Ok(privilege_is(arguments, &["USAGE"]))),
    privilege("has_tablespace_privilege", |_, arguments| Ok(privilege_is(arguments, &[]))),
    privilege("has_sequence_privilege", |_, arguments| Ok(privilege_is(arguments, &[]))),
    privilege("has_table_privilege", |snapshot, arguments| Ok(table_privilege(snapshot, arguments, 2))),
    privilege("has_any_column_privilege", |snapshot, arguments| Ok(table_privilege(snapshot, arguments, 2))),
    privilege("has_column_privilege", |snapshot, arguments| Ok(table_privilege(snapshot, arguments, 3))),
    privilege("pg_has_role", |snapshot, arguments| Ok(has_role(snapshot, arguments))),
    function("pg_encoding_to_char", [1, 1], Gives::Text, |_, arguments| {
        Ok(if first(arguments) == &Value::Int(UTF8) { "UTF8" } else { "" }.into())
    }),
    function("pg_char_to_encoding", [1, 1], Gives::Int4, |_, arguments| {
        let utf8 =
            first(arguments).text().is_some_and(|name| ["utf8", "utf-8"].contains(&name.to_lowercase().as_str()));
        Ok(if utf8 { UTF8 } else { -1 }.into())
    }),
    function("getdatabaseencoding", [0, 0], Gives::Text, |_, _| Ok("UTF8".into())),
    function("pg_client_encoding", [0, 0], Gives::Text, |_, _| Ok("UTF8".into())),
    function("current_schemas", [1, 1], Gives::Texts, |_, arguments| {
        let implicit = (first(arguments) == &Value::Bool(true)).then_some("pg_catalog");
        Ok(Value::Texts(implicit.iter().chain(SEARCH_PATH).map(|name| Some((*name).to_owned())).collect()))
    }),
    function("array_upper", [2, 2], Gives::Int4, |_, arguments| {
        let Value::Texts(items) = first(arguments) else { return Ok(Value::Null) };
        Ok(i64::try_from(items.len()).ok().filter(|len| *len > 0).into())
    }),
    function("array_lower", [2, 2], Gives::Int4, |_, arguments| {
        let Value::Texts(items) = first(arguments) else { return Ok(Value::Null) };
        Ok((!items.is_empty()).then_some(1i64).into())
    }),
    function("quote_ident", [1, 1], Gives::Text, |_, arguments| Ok(first(arguments).text().map(quote_ident).into())),
    function("quote_literal", [1, 1], Gives::Text, |_, arguments| {
        Ok(first(arguments).text().map(|text| format!("'{}'", text.replace('\'', "''"))).into())
    }),
    function("current_setting", [1, 2], Gives::Text, current_setting),
    function("format", [1, 20], Gives::Text, |_, arguments| Ok(format_text(arguments)?.into())),
    function("pg_relation_is_publishable", [1, 1], Gives::Bool, no),
    function("pg_is_in_recovery", [0, 0], Gives::Bool, no),
    function("pg_is_wal_replay_paused", [0, 0], Gives::Bool, no),
    function("pg_is_other_temp_schema", [1, 1], Gives::Bool, no),
    function("pg_my_temp_schema", [0, 0], Gives::Oid, |_, _| Ok(Value::Int(0))),
    function("pg_postmaster_start_time", [0, 0], Gives::Time, |snapshot, _| Ok(Value::Int(snapshot.live.start_us))),
    function("pg_conf_load_time", [0, 0], Gives::Time, |snapshot, _| Ok(Value::Int(snapshot.live.start_us))),
    function("to_regclass", [1, 1], Gives::Oid, |_, arguments| {
        Ok(relation_named(first(arguments)).ok().flatten().into())
    }),
    function("to_regtype", [1, 1], Gives::Oid, |_, arguments| {
        Ok(first(arguments).text().and_then(type_named).map(|facts| facts.oid).into())
    }),
    // What casts to PostgreSQL's types of objects become; no client can name these.
    function("__regclass", [1, 1], Gives::Oid, |_, arguments| Ok(relation_named(first(arguments))?.into())),
    function("__regclass_name", [1, 1], Gives::Text, |_, arguments| Ok(relation_shown(arguments)?.into())),
    function("__regtype", [1, 1], Gives::Oid, |_, arguments| Ok(type_number(first(arguments))?.into())),
    function("__regtype_name", [1, 1], Gives::Text, |_, arguments| Ok(type_shown(first(arguments))?.into())),
    function("__regtype_names", [1, 1], Gives::Texts, |_, arguments| {
        let Value::Texts(items) = first(arguments) else { return Ok(Value::Null) };
        let shown = |item: &Option<String>| {
            let oid = item.as_ref().and_then(|item| item.parse().ok());
            oid.and_then(type_with_oid).map(|facts| facts.shown.to_owned()).or_else(|| item.clone())
        };
        Ok(Value::Texts(items.iter().map(shown).collect()))
    }),
    function("__regproc", [1, 1], Gives::Oid, |_, arguments| Ok(function_number(first(arguments))?.into())),
    function("__regproc_name", [1, 1], Gives::Text, |_, arguments| {
        let Some(oid) = function_number(first(arguments))? else { return Ok(Value::Null) };
        let found = functions().into_iter().find(|function| function.oid == oid);
        let none = if oid == 0 { "-".to_owned() } else { oid.to_string() };
        Ok(found.map_or(none, |function| function.name.to_owned()).into())
    }),
    function("__regnamespace", [1, 1], Gives::Oid, |_, arguments| Ok(schema_number(first(arguments))?.into())),
    function("__regnamespace_name", [1, 1], Gives::Text, |_, arguments| {
        let Some(oid) = schema_number(first(arguments))? else { return Ok(Value::Null) };
        let found = SCHEMAS.iter().find(|schema| schema_oid(schema) == oid);
        Ok(found.map_or_else(|| oid.to_string(), |schema| (*schema).to_owned()).into())
    }),
    function(
        "__regrole",
        [1, 1],
        Gives::Oid,
        |snapshot, arguments| Ok(role_number(snapshot, first(arguments))?.into()),
    ),
    function("__regrole_name", [1, 1], Gives::Text, |snapshot, arguments| {
        let Some(oid) = role_number(snapshot, first(arguments))? else { return Ok(Value::Null) };
        Ok(role_name(&snapshot.catalog, oid).unwrap_or_else(|| oid.to_string()).into())
    }),
    function("__no_texts", [0, 0], Gives::Texts, |_, _| Ok(Value::Texts(Vec::new()))),
];

/// Whether a table is found by its bare name.
fn is_visible(table: &SystemTable) -> bool {
    resolve(table.name).is_some_and(|found| found.schema == table.schema)
}

fn first(arguments: &[Value]) -> &Value {
    arguments.first().unwrap_or(&Value::Null)
}

fn yes(_: &Snapshot, arguments: &[Value]) -> Result<Value, QueryError> {
    Ok(first(arguments).oid().map(|_| true).into())
}

fn no(_: &Snapshot, _: &[Value]) -> Result<Value, QueryError> {
    Ok(false.into())
}

fn format_type(arguments: &[Value]) -> Value {
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

fn obj_description(arguments: &[Value]) -> Value {
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

fn col_description(arguments: &[Value]) -> Value {
    let [oid, Value::Int(position)] = arguments else { return Value::Null };
    let table = oid.oid().and_then(relation_with_oid);
    let index = usize::try_from(*position).ok().and_then(|position| position.checked_sub(1));
    let column = index.and_then(|index| table?.columns.get(index));
    column.map(|column| column.description).into()
}

fn function_with(arguments: &[Value]) -> Option<crate::tables::pg_catalog::FunctionRow> {
    let oid = first(arguments).oid()?;
    functions().into_iter().find(|function| function.oid == oid)
}

fn function_arguments(arguments: &[Value]) -> Option<String> {
    let function = function_with(arguments)?;
    let shown = function.arguments.iter().map(|oid| type_with_oid(*oid).map_or("???", |facts| facts.shown));
    Some(shown.collect::<Vec<_>>().join(", "))
}

fn function_definition(arguments: &[Value]) -> Option<String> {
    let function = function_with(arguments)?;
    let shown = function_arguments(arguments)?;
    let (kind, result) = match (function.kind, type_with_oid(function.result)) {
        ("f", Some(facts)) => ("FUNCTION", format!("\n RETURNS {}", facts.shown)),
        _ => ("PROCEDURE", String::new()),
    };
    let name = function.name;
    Some(format!(
        "CREATE OR REPLACE {kind} {}.{name}({shown}){result}\n LANGUAGE internal\nAS $function${name}$function$\n",
        function.schema
    ))
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

/// Whether the last argument names a privilege that everybody has.
fn privilege_is(arguments: &[Value], granted: &[&str]) -> Value {
    let Some(wanted) = arguments.last().and_then(Value::text) else { return Value::Null };
    let has = |wanted: &str| granted.iter().any(|granted| granted.eq_ignore_ascii_case(wanted.trim()));
    wanted.split(',').any(has).into()
}

/// With a user before the table there is one argument more than `len`.
fn table_privilege(snapshot: &Snapshot, arguments: &[Value], len: usize) -> Value {
    let table = arguments.get(arguments.len().saturating_sub(len));
    let table = table.and_then(|table| relation_named(table).ok().flatten()).and_then(relation_with_oid);
    match (table, privilege_is(arguments, &["SELECT"])) {
        (Some(table), Value::Bool(read)) => (read && may_read(snapshot, table)).into(),
        _ => Value::Null,
    }
}

fn has_role(snapshot: &Snapshot, arguments: &[Value]) -> Value {
    let Some(role) = arguments.get(arguments.len().saturating_sub(2)) else { return Value::Null };
    let Ok(Some(oid)) = role_number(snapshot, role) else { return Value::Null };
    let user = snapshot.session.user_id;
    let granted = || snapshot.catalog.granted_roles(user).keys().any(|role| role_oid(*role) == oid);
    (snapshot.superuser() || user_oid(user) == oid || granted()).into()
}

fn current_setting(snapshot: &Snapshot, arguments: &[Value]) -> Result<Value, QueryError> {
    let Some(name) = first(arguments).text() else { return Ok(Value::Null) };
    let setting = match declaration(name) {
        Ok(setting) => setting,
        Err(_) if arguments.get(1) == Some(&Value::Bool(true)) => return Ok(Value::Null),
        Err(error) => return Err(QueryError::new(SqlState::UndefinedObject, error.to_string())),
    };
    let hidden = setting.superuser && !snapshot.superuser();
    let changed = snapshot.live.effects.changed(setting.name);
    let value = changed.unwrap_or_else(|| effective(setting, &snapshot.session, &snapshot.catalog).0);
    Ok(if hidden { crate::show::MASK.to_owned() } else { setting.shown(&value) }.into())
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
        let shown = match value {
            Value::Null => String::new(),
            Value::Bool(value) => if *value { "t" } else { "f" }.to_owned(),
            Value::Int(value) => value.to_string(),
            Value::Text(text) => text.clone(),
            Value::Texts(_) => return Err(QueryError::refused("format() of an array")),
        };
        match conversion {
            Some('s') => text.push_str(&shown),
            Some('I') => text.push_str(&quote_ident(&shown)),
            Some('L') if *value == Value::Null => text.push_str("NULL"),
            Some('L') => text.push_str(&format!("'{}'", shown.replace('\'', "''"))),
            _ => return Err(QueryError::refused("a conversion of format() other than %s, %I, %L and %%")),
        }
    }
    Ok(Some(text))
}

fn quote_ident(text: &str) -> String {
    let plain = text.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if plain { text.to_owned() } else { format!("\"{}\"", text.replace('"', "\"\"")) }
}

/// The parts of a name with dots, quotes taken away and what is unquoted folded.
fn parts(name: &str) -> Vec<String> {
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
fn relation_named(value: &Value) -> Result<Option<u32>, QueryError> {
    match (value.oid(), value.text()) {
        (Some(oid), _) => Ok(Some(oid)),
        (None, None) => Ok(None),
        (None, Some(name)) => match table_named(name) {
            Some(table) => Ok(Some(relation_oid(table))),
            None => Err(QueryError::new(SqlState::UndefinedTable, format!("relation \"{name}\" does not exist"))),
        },
    }
}

fn relation_shown(arguments: &[Value]) -> Result<Option<String>, QueryError> {
    let Some(oid) = relation_named(first(arguments))? else { return Ok(None) };
    Ok(Some(match relation_with_oid(oid) {
        Some(table) if is_visible(table) => table.name.to_owned(),
        Some(table) => format!("{}.{}", table.schema, table.name),
        None if oid == 0 => "-".to_owned(),
        None => oid.to_string(),
    }))
}

fn type_number(value: &Value) -> Result<Option<u32>, QueryError> {
    match (value.oid(), value.text()) {
        (Some(oid), _) => Ok(Some(oid)),
        (None, None) => Ok(None),
        (None, Some(name)) => match type_named(name) {
            Some(facts) => Ok(Some(facts.oid)),
            None => Err(QueryError::new(SqlState::UndefinedObject, format!("type \"{name}\" does not exist"))),
        },
    }
}

fn type_shown(value: &Value) -> Result<Option<String>, QueryError> {
    let Some(oid) = type_number(value)? else { return Ok(None) };
    let none = || if oid == 0 { "-".to_owned() } else { oid.to_string() };
    Ok(Some(type_with_oid(oid).map_or_else(none, |facts| facts.shown.to_owned())))
}

fn function_number(value: &Value) -> Result<Option<u32>, QueryError> {
    match (value.oid(), value.text()) {
        (Some(oid), _) => Ok(Some(oid)),
        (None, None) => Ok(None),
        (None, Some(name)) => {
            let bare = name.split('(').next().unwrap_or(name);
            let last = parts(bare).pop().unwrap_or_default();
            let found = functions().into_iter().find(|function| function.name == last);
            match found {
                Some(function) => Ok(Some(function.oid)),
                None => {
                    Err(QueryError::new(SqlState::UndefinedFunction, format!("function \"{name}\" does not exist")))
                }
            }
        }
    }
}

fn schema_number(value: &Value) -> Result<Option<u32>, QueryError> {
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

fn role_number(snapshot: &Snapshot, value: &Value) -> Result<Option<u32>, QueryError> {
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

/// A declaration as DataFusion calls it.
struct Udf {
    function: &'static CatalogFunction,
    signature: Signature,
    current: Current,
}

impl std::fmt::Debug for Udf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.function.name)
    }
}

impl PartialEq for Udf {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.function, other.function)
    }
}

impl Eq for Udf {}

impl Hash for Udf {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.function.name.hash(state);
    }
}

impl ScalarUDFImpl for Udf {
    fn name(&self) -> &str {
        self.function.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType, DataFusionError> {
        Ok(self.function.arrow())
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue, DataFusionError> {
        let snapshot = current(&self.current);
        let answer = |values: &[Value]| -> Result<ScalarValue, DataFusionError> {
            let value = (self.function.answer)(&snapshot, values);
            value.map_err(|error| DataFusionError::External(Box::new(error)))?.scalar(self.function)
        };
        if arguments.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_))) {
            let values: Vec<Value> = arguments
                .args
                .iter()
                .map(|argument| match argument {
                    ColumnarValue::Scalar(scalar) => Value::read(scalar),
                    ColumnarValue::Array(_) => Value::Null,
                })
                .collect();
            return Ok(ColumnarValue::Scalar(answer(&values)?));
        }
        let mut results = Vec::with_capacity(arguments.number_rows);
        for row in 0..arguments.number_rows {
            let values: Vec<Value> = arguments
                .args
                .iter()
                .map(|argument| match argument {
                    ColumnarValue::Scalar(scalar) => Ok(Value::read(scalar)),
                    ColumnarValue::Array(array) => Ok(Value::read(&ScalarValue::try_from_array(array, row)?)),
                })
                .collect::<Result<_, DataFusionError>>()?;
            results.push(answer(&values)?);
        }
        if results.is_empty() {
            return Ok(ColumnarValue::Array(datafusion::arrow::array::new_empty_array(&self.function.arrow())));
        }
        Ok(ColumnarValue::Array(ScalarValue::iter_to_array(results)?))
    }
}

/// Registers them in a session's context.
pub(super) fn register(context: &SessionContext, current_snapshot: &Current) {
    for function in FUNCTIONS {
        let arities = (function.arguments_min..=function.arguments_max).map(|count| match count {
            0 => TypeSignature::Nullary,
            count => TypeSignature::Any(count),
        });
        // The same query may have set it just before.
        let changes = function.name == "current_setting";
        let volatility = if changes { Volatility::Volatile } else { Volatility::Stable };
        let signature = Signature::one_of(arities.collect(), volatility);
        let current = Arc::clone(current_snapshot);
        context.register_udf(ScalarUDF::new_from_impl(Udf { function, signature, current }));
    }
}
