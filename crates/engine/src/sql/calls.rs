//! Calls of functions that DataFusion would take with other arguments, or give another type, than PostgreSQL.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, ExprSchemable};

use super::common;
use super::convert::Convert;
use super::error::QueryError;
use super::kinds::{is_text, name_of};
use super::places::Subject;
use super::widths::{Result, Typer, cast, field_of, is_address, is_unknown, rounded};
use crate::error::SqlState;

/// Functions whose first argument is a text, never a number that would be printed first.
const OF_TEXT: &[&str] = &[
    "ascii",
    "bit_length",
    "btrim",
    "char_length",
    "character_length",
    "initcap",
    "left",
    "length",
    "lower",
    "lpad",
    "ltrim",
    "md5",
    "octet_length",
    "regexp_replace",
    "repeat",
    "replace",
    "reverse",
    "right",
    "rpad",
    "rtrim",
    "split_part",
    "starts_with",
    "strpos",
    "substr",
    "translate",
    "trim",
    "upper",
];

/// A call with PostgreSQL's arguments and result.
pub(super) fn typed(mut call: ScalarFunction, schema: &DFSchema, typer: &Typer<'_>) -> Result<Expr> {
    let name = call.func.name().to_owned();
    let Ok(kinds) = call.args.iter().map(|argument| field_of(argument, schema)).collect::<Result<Vec<_>>>() else {
        return Ok(Expr::ScalarFunction(call));
    };
    if OF_TEXT.contains(&name.as_str())
        && let Some(first) = kinds.first()
        && !is_text(first.data_type())
        && !matches!(
            first.data_type(),
            DataType::Null | DataType::Binary | DataType::LargeBinary | DataType::BinaryView
        )
    {
        return Err(unknown(&name, &kinds));
    }
    match name.as_str() {
        "greatest" | "least" if kinds.iter().any(is_address) => return Err(of_addresses(name, &kinds)),
        "log" | "log10" | "log2" | "ln" => {
            call.args = call.args.into_iter().zip(&kinds).map(|(value, kind)| inexact(value, kind)).collect();
        }
        "coalesce" | "greatest" | "least" => {
            let shared = common::shared(&call.args, schema);
            call.args = common::matched(call.args, &name.to_uppercase(), schema, typer)?;
            return Ok(common::called(Expr::ScalarFunction(call), shared));
        }
        "nullif" => {
            if let [one, other] = kinds.as_slice() {
                let mut sides = std::mem::take(&mut call.args).into_iter();
                let left = sides.next().map(|side| typer.beside(side, Some(other)));
                let right = sides.next().map(|side| typer.beside(side, Some(one)));
                call.args = left.into_iter().chain(right).collect();
            }
        }
        "pg_typeof" => {
            let kind = match (call.args.first(), kinds.first()) {
                (Some(argument), _) if is_unknown(argument) => "unknown".to_owned(),
                (_, Some(kind)) if kind.data_type().is_null() => "unknown".to_owned(),
                (_, Some(kind)) => name_of(kind),
                (_, None) => return Ok(Expr::ScalarFunction(call)),
            };
            return Ok(Expr::Literal(ScalarValue::Utf8(Some(kind)), None));
        }
        "make_array" => {
            let shared = common::shared(&call.args, schema);
            call.args = common::matched(call.args, "ARRAY", schema, typer)?;
            let items = shared.map(|item| super::kinds::array_of(&item));
            return Ok(common::called(Expr::ScalarFunction(call), items));
        }
        "||" | "json_build_object" | "json_build_array" | "jsonb_build_object" | "jsonb_build_array" | "concat"
        | "concat_ws" | "format" => call.args = as_texts(&name, call.args, &kinds, typer),
        "array_length" | "cardinality" | "array_position" | "array_ndims" => {
            return Ok(cast(Expr::ScalarFunction(call), DataType::Int32));
        }
        "generate_series" if kinds.iter().any(|kind| is_moment(kind.data_type())) => {
            return Ok(moments(call, &kinds, typer));
        }
        "generate_series" | "range" if kinds.iter().all(|kind| is_narrow(kind.data_type())) => {
            let list = DataType::List(Arc::new(Field::new_list_field(DataType::Int32, true)));
            return Ok(cast(Expr::ScalarFunction(call), list));
        }
        "round" | "ceil" | "floor" | "trunc" => return Ok(whole(call, &kinds, schema)),
        "signum" if kinds.first().is_some_and(|kind| kind.data_type().is_integer()) => {
            return Ok(cast(Expr::ScalarFunction(call), DataType::Float64));
        }
        _ => {}
    }
    Ok(Expr::ScalarFunction(call))
}

fn is_moment(kind: &DataType) -> bool {
    matches!(kind, DataType::Timestamp(..) | DataType::Date32)
}

/// A series of moments: of days, too, they are points in time.
fn moments(mut call: ScalarFunction, kinds: &[Field], typer: &Typer<'_>) -> Expr {
    let civil = kinds.iter().any(|kind| matches!(kind.data_type(), DataType::Timestamp(_, None)));
    let own = if civil { super::kinds::timestamp() } else { super::kinds::timestamptz() };
    let (moment, step) = (Field::new("", own.clone(), true), Field::new("", super::kinds::interval(), true));
    let arguments = std::mem::take(&mut call.args).into_iter().zip(kinds).enumerate();
    call.args = arguments
        .map(|(index, (argument, kind))| match kind.data_type() {
            kind if index == 2 && is_text(kind) => typer.beside(argument, Some(&step)),
            _ if index == 2 => argument,
            kind if *kind == own => argument,
            _ => Convert::of(argument, kind, &moment, typer.current),
        })
        .collect();
    cast(Expr::ScalarFunction(call), DataType::List(Arc::new(Field::new_list_field(own, true))))
}

fn is_narrow(kind: &DataType) -> bool {
    matches!(kind, DataType::Int16 | DataType::Int32)
}

fn unknown(name: &str, kinds: &[Field]) -> datafusion::error::DataFusionError {
    let kinds: Vec<String> = kinds.iter().map(name_of).collect();
    QueryError::new(SqlState::UndefinedFunction, format!("function {name}({}) does not exist", kinds.join(", ")))
        .hinting("No function matches the given name and argument types. You might need to add explicit type casts.")
        .about(Subject::Function(name.to_owned()))
        .external()
}

/// Values that become parts of a text, or of JSON.
fn as_texts(name: &str, values: Vec<Expr>, kinds: &[Field], typer: &Typer<'_>) -> Vec<Expr> {
    let part = |(value, kind)| match name {
        "||" => typer.beside_text(value, kind),
        _ => in_json(value, kind, typer),
    };
    match name {
        "concat" | "concat_ws" | "format" => printed(values, kinds, typer),
        _ => values.into_iter().zip(kinds).map(part).collect(),
    }
}

/// The planner's logarithms of exact numbers have too few digits.
fn inexact(value: Expr, kind: &Field) -> Expr {
    if kind.data_type().is_decimal() { cast(value, DataType::Float64) } else { value }
}

/// Addresses do not come in the order of their texts.
fn of_addresses(name: String, kinds: &[Field]) -> datafusion::error::DataFusionError {
    let message = format!("{name} of type {} is not supported", kinds.first().map_or_else(String::new, name_of));
    QueryError::new(SqlState::FeatureNotSupported, message)
        .hinting("ORDER BY it, with LIMIT 1, gives the same.")
        .about(Subject::Function(name))
        .external()
}

/// Arguments as their types print them; a truth is `t` or `f` there.
fn printed(arguments: Vec<Expr>, kinds: &[Field], typer: &Typer<'_>) -> Vec<Expr> {
    let text = Field::new("", DataType::Utf8, true);
    arguments
        .into_iter()
        .zip(kinds)
        .map(|(argument, kind)| match kind.data_type() {
            kind if is_text(kind) || kind.is_null() => argument,
            DataType::Boolean => {
                let one = super::kinds::tagged(DataType::Utf8, "char", None);
                Convert::of(argument, kind, &one, typer.current)
            }
            _ => Convert::of(argument, kind, &text, typer.current),
        })
        .collect()
}

/// A value as JSON has it: a moment with a `T` before its time, and minutes in the distance of its zone.
fn in_json(value: Expr, kind: &Field, typer: &Typer<'_>) -> Expr {
    let text = |value: Expr| Convert::of(value, kind, &Field::new("", DataType::Utf8, true), typer.current);
    let literal = |text: &str| Expr::Literal(ScalarValue::Utf8(Some(text.to_owned())), None);
    let replaced = |value: Expr, from: &str, to: &str| {
        datafusion::functions::regex::expr_fn::regexp_replace(value, literal(from), literal(to), None)
    };
    match kind.data_type() {
        DataType::Interval(_) | DataType::Duration(_) | DataType::Date32 | DataType::Time64(_) => text(value),
        DataType::Timestamp(_, zone) => {
            let moment = replaced(text(value), " ", "T");
            if zone.is_some() { replaced(moment, "([+-][0-9][0-9])$", "\\1:00") } else { moment }
        }
        _ => value,
    }
}

/// Rounding: a float to the next even number, a decimal to as many digits as it is told.
fn whole(call: ScalarFunction, kinds: &[Field], schema: &DFSchema) -> Expr {
    let single = call.args.len() == 1;
    let is = |test: fn(&DataType) -> bool| kinds.first().is_some_and(|kind| test(kind.data_type()));
    if single && call.func.name() == "round" && is(|kind| kind.is_floating() || kind.is_integer()) {
        let argument = call.args.into_iter().next().unwrap_or_default();
        return rounded(cast(argument, DataType::Float64));
    }
    if single && is(DataType::is_integer) {
        return cast(Expr::ScalarFunction(call), DataType::Float64);
    }
    let digits = match call.args.get(1) {
        None => Some(0),
        Some(Expr::Literal(ScalarValue::Int32(Some(digits)), _)) => i8::try_from(*digits).ok(),
        Some(_) => None,
    };
    let decimal = call.args.first().and_then(|argument| argument.get_type(schema).ok());
    let whole = Expr::ScalarFunction(call);
    match (decimal, digits) {
        (Some(DataType::Decimal128(..)), Some(digits)) if (0..=20).contains(&digits) => {
            cast(whole, DataType::Decimal128(38, digits))
        }
        _ => whole,
    }
}
