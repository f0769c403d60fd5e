//! Types of expressions as PostgreSQL has them, where DataFusion has others: an integer literal is as narrow as it can
//! be, arithmetic is checked, a literal in quotes takes the type of what it meets.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    BinaryExpr, Cast, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, ScalarUDF, Union,
};

use super::error::QueryError;
use super::functions::arithmetic::{Arithmetic, Rounded};
use crate::error::SqlState;

type Result<T> = std::result::Result<T, DataFusionError>;

/// Gives a plan PostgreSQL's types. It must not have been analysed yet: the analyser puts DataFusion's coercions in.
pub(super) fn apply(plan: LogicalPlan) -> Result<LogicalPlan> {
    // The working table of a recursive query keeps the types it was planned with.
    let recursive = plan.exists(|step| Ok(matches!(step, LogicalPlan::RecursiveQuery(_))))?;
    plan.transform_up_with_subqueries(|step| step_types(step, !recursive)).map(|done| done.data)
}

fn step_types(step: LogicalPlan, narrow: bool) -> Result<Transformed<LogicalPlan>> {
    match step {
        LogicalPlan::Limit(_)
        | LogicalPlan::Explain(_)
        | LogicalPlan::RecursiveQuery(_)
        | LogicalPlan::TableScan(_) => Ok(Transformed::no(step)),
        LogicalPlan::Union(union) => {
            Ok(Transformed::yes(LogicalPlan::Union(Union::try_new_with_loose_types(union.inputs)?)))
        }
        LogicalPlan::Values(values) if narrow => {
            let empty = DFSchema::empty();
            let rows = values
                .values
                .into_iter()
                .map(|row| row.into_iter().map(|value| expression(value, &empty, narrow)).collect::<Result<Vec<_>>>());
            LogicalPlanBuilder::values(rows.collect::<Result<_>>()?)?.build().map(Transformed::yes)
        }
        step => {
            let schema = merge_schema(&step.inputs());
            let names = NamePreserver::new(&step);
            let mapped = step.map_expressions(|whole| {
                let name = names.save(&whole);
                Ok(Transformed::yes(name.restore(expression(whole, &schema, narrow)?)))
            })?;
            mapped.map_data(LogicalPlan::recompute_schema)
        }
    }
}

fn expression(whole: Expr, schema: &DFSchema, narrow: bool) -> Result<Expr> {
    whole.transform_up(|part| part_types(part, schema, narrow).map(Transformed::yes)).map(|done| done.data)
}

fn part_types(part: Expr, schema: &DFSchema, narrow: bool) -> Result<Expr> {
    match part {
        Expr::Literal(ScalarValue::Int64(Some(value)), metadata) if narrow => Ok(match i32::try_from(value) {
            Ok(value) => Expr::Literal(ScalarValue::Int32(Some(value)), metadata),
            Err(_) => Expr::Literal(ScalarValue::Int64(Some(value)), metadata),
        }),
        Expr::Literal(ScalarValue::UInt64(Some(value)), metadata) => {
            Ok(Expr::Literal(ScalarValue::Decimal128(Some(value.into()), 20, 0), metadata))
        }
        Expr::BinaryExpr(binary) => operator(binary, schema),
        Expr::Between(mut between) => {
            let kind = between.expr.get_type(schema).ok();
            for bound in [&mut between.low, &mut between.high] {
                let taken = std::mem::take(bound.as_mut());
                **bound = beside(taken, kind.as_ref());
            }
            Ok(Expr::Between(between))
        }
        Expr::InList(mut list) => {
            let kind = list.expr.get_type(schema).ok();
            list.list = list.list.into_iter().map(|item| beside(item, kind.as_ref())).collect();
            Ok(Expr::InList(list))
        }
        Expr::Cast(cast) => casted(cast, schema),
        Expr::AggregateFunction(mut call) if call.func.name() == "sum" => {
            call.params.args = wide(std::mem::take(&mut call.params.args), schema);
            Ok(Expr::AggregateFunction(call))
        }
        Expr::WindowFunction(mut call) if call.fun.name() == "sum" => {
            call.params.args = wide(std::mem::take(&mut call.params.args), schema);
            Ok(Expr::WindowFunction(call))
        }
        other => Ok(other),
    }
}

/// The sum of bigints is numeric: it cannot overflow.
fn wide(arguments: Vec<Expr>, schema: &DFSchema) -> Vec<Expr> {
    let wide = |argument: Expr| match argument.get_type(schema) {
        Ok(DataType::Int64 | DataType::UInt64) => cast(argument, DataType::Decimal128(38, 0)),
        _ => argument,
    };
    arguments.into_iter().map(wide).collect()
}

fn cast(expression: Expr, kind: DataType) -> Expr {
    Expr::Cast(Cast::new(Box::new(expression), kind))
}

/// A literal in quotes beside a value that is no text is read as one of the value's type.
fn beside(expression: Expr, kind: Option<&DataType>) -> Expr {
    match (&expression, kind) {
        (Expr::Literal(ScalarValue::Utf8(Some(_)), _), Some(kind)) if is_number(kind) || is_plain(kind) => {
            cast(expression, kind.clone())
        }
        _ => expression,
    }
}

fn is_plain(kind: &DataType) -> bool {
    matches!(kind, DataType::Boolean | DataType::Date32 | DataType::Timestamp(..))
}

fn is_integer(kind: &DataType) -> bool {
    kind.is_integer()
}

fn is_number(kind: &DataType) -> bool {
    kind.is_numeric()
}

fn is_text(kind: &DataType) -> bool {
    matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

fn is_arithmetic(operator: Operator) -> bool {
    matches!(operator, Operator::Plus | Operator::Minus | Operator::Multiply | Operator::Divide | Operator::Modulo)
}

fn is_comparison(operator: Operator) -> bool {
    matches!(operator, Operator::Eq | Operator::NotEq | Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq)
}

fn operator(binary: BinaryExpr, schema: &DFSchema) -> Result<Expr> {
    let BinaryExpr { left, op, right } = binary;
    if !is_arithmetic(op) && !is_comparison(op) {
        return Ok(Expr::BinaryExpr(BinaryExpr { left, op, right }));
    }
    let (Ok(left_kind), Ok(right_kind)) = (left.get_type(schema), right.get_type(schema)) else {
        return Ok(Expr::BinaryExpr(BinaryExpr { left, op, right }));
    };
    let interval = |kind: &DataType| matches!(kind, DataType::Interval(_));
    let literal = |kind: &DataType| Some(kind).filter(|kind| !interval(kind)).cloned();
    let left = beside(*left, literal(&right_kind).as_ref());
    let right = beside(*right, literal(&left_kind).as_ref());
    let (left_kind, right_kind) = (left.get_type(schema)?, right.get_type(schema)?);
    if is_comparison(op) {
        let foreign = |one: &DataType, other: &DataType| {
            is_text(one) && (is_number(other) || is_plain(other)) || *one == DataType::Boolean && is_number(other)
        };
        if foreign(&left_kind, &right_kind) || foreign(&right_kind, &left_kind) {
            return Err(no_operator(&left_kind, op, &right_kind));
        }
        return Ok(Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right: Box::new(right) }));
    }
    calculation(left, &left_kind, op, right, &right_kind)
}

fn calculation(left: Expr, left_kind: &DataType, op: Operator, right: Expr, right_kind: &DataType) -> Result<Expr> {
    let number_or_null = |kind: &DataType| is_number(kind) || kind.is_null();
    let sum = |left, op, right| Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right: Box::new(right) });
    if number_or_null(left_kind) && number_or_null(right_kind) {
        return Ok(arithmetic(op, left, right));
    }
    match (left_kind, op, right_kind) {
        (DataType::Date32, Operator::Minus, DataType::Date32) => {
            Ok(arithmetic(op, cast(left, DataType::Int32), cast(right, DataType::Int32)))
        }
        (DataType::Date32, Operator::Plus | Operator::Minus, kind) if is_integer(kind) => {
            Ok(cast(arithmetic(op, cast(left, DataType::Int32), cast(right, DataType::Int32)), DataType::Date32))
        }
        (kind, Operator::Plus, DataType::Date32) if is_integer(kind) => {
            Ok(cast(arithmetic(op, cast(left, DataType::Int32), cast(right, DataType::Int32)), DataType::Date32))
        }
        (DataType::Date32, Operator::Plus | Operator::Minus, DataType::Interval(_)) => {
            Ok(sum(cast(left, DataType::Timestamp(TimeUnit::Microsecond, None)), op, right))
        }
        (DataType::Interval(_), Operator::Plus, DataType::Date32) => {
            Ok(sum(left, op, cast(right, DataType::Timestamp(TimeUnit::Microsecond, None))))
        }
        (DataType::Interval(IntervalUnit::MonthDayNano), Operator::Multiply | Operator::Divide, kind)
        | (kind, Operator::Multiply, DataType::Interval(IntervalUnit::MonthDayNano))
            if is_number(kind) =>
        {
            let message = "multiplication and division of intervals are not supported".to_owned();
            Err(DataFusionError::External(Box::new(QueryError::new(SqlState::FeatureNotSupported, message))))
        }
        (one, _, other)
            if [one, other].iter().all(|kind| is_text(kind) || is_number(kind) || is_plain(kind))
                && !matches!((one, op, other), (DataType::Timestamp(..), Operator::Minus, DataType::Timestamp(..)))
                && !matches!((one, other), (DataType::Timestamp(..), DataType::Date32))
                && !matches!((one, other), (DataType::Date32, DataType::Timestamp(..))) =>
        {
            Err(no_operator(one, op, other))
        }
        _ => Ok(sum(left, op, right)),
    }
}

fn arithmetic(op: Operator, left: Expr, right: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::from(Arithmetic::new(op))), vec![left, right]))
}

/// Casts to integers round, and `numeric` alone keeps the digits that are there.
fn casted(whole: Cast, schema: &DFSchema) -> Result<Expr> {
    let Ok(from) = whole.expr.get_type(schema) else { return Ok(Expr::Cast(whole)) };
    let to = whole.field.data_type().clone();
    if is_integer(&to) && (from.is_floating() || from.is_decimal()) {
        let rounded = ScalarFunction::new_udf(Arc::new(ScalarUDF::from(Rounded::new())), vec![*whole.expr]);
        return Ok(Expr::Cast(Cast::new_from_field(Box::new(Expr::ScalarFunction(rounded)), whole.field)));
    }
    if to != NUMERIC {
        return Ok(Expr::Cast(whole));
    }
    match (whole.expr.as_ref(), &from) {
        (_, kind) if kind.is_decimal() => Ok(*whole.expr),
        (_, kind) if is_integer(kind) => Ok(cast(*whole.expr, DataType::Decimal128(20, 0))),
        (Expr::Literal(ScalarValue::Utf8(Some(text)), _), _) => {
            let digits = text.trim();
            let scale = digits.split_once('.').map_or(0, |(_, fraction)| fraction.len());
            let plain =
                digits.len() <= 37 && digits.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '-' | '+'));
            let scale = if plain { i8::try_from(scale).unwrap_or(10) } else { 10 };
            Ok(cast(*whole.expr, DataType::Decimal128(38, scale)))
        }
        _ => Ok(Expr::Cast(whole)),
    }
}

/// What DataFusion takes `numeric` without digits for.
const NUMERIC: DataType = DataType::Decimal128(38, 10);

fn no_operator(left: &DataType, op: Operator, right: &DataType) -> DataFusionError {
    let message = format!("operator does not exist: {} {op} {}", type_name(left), type_name(right));
    let error = QueryError {
        hint: Some(
            "No operator matches the given name and argument types. You might need to add explicit type casts."
                .to_owned(),
        ),
        ..QueryError::new(SqlState::UndefinedFunction, message)
    };
    DataFusionError::External(Box::new(error))
}

/// A type as PostgreSQL's messages call it.
pub(super) fn type_name(kind: &DataType) -> &'static str {
    match kind {
        DataType::Boolean => "boolean",
        DataType::Int8 | DataType::Int16 | DataType::UInt8 => "smallint",
        DataType::Int32 | DataType::UInt16 => "integer",
        DataType::UInt32 => "oid",
        DataType::Int64 | DataType::UInt64 => "bigint",
        DataType::Float16 | DataType::Float32 => "real",
        DataType::Float64 => "double precision",
        DataType::Date32 => "date",
        DataType::Timestamp(_, None) => "timestamp without time zone",
        DataType::Timestamp(_, Some(_)) => "timestamp with time zone",
        DataType::Interval(_) | DataType::Duration(_) => "interval",
        kind if kind.is_decimal() => "numeric",
        _ => "text",
    }
}
