//! The type that several expressions have in common, where they meet: in UNION, CASE and functions of any arguments.

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::DFSchema;
use datafusion::logical_expr::expr::Case;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use std::sync::Arc;

use super::error::{QueryError, not_boolean};
use super::functions::arithmetic::QUOTIENT;
use super::functions::tagged::tagged;
use super::kinds::{self, is_text, name_of};
use super::places::Subject;
use super::widths::{Result, Typer, cast, field_of, is_unknown};
use crate::error::SqlState;

/// Types of one category are turned into each other by themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Category {
    Text,
    Number,
    Bool,
    Moment,
    Span,
    Other,
}

fn category(kind: &DataType) -> Category {
    match kind {
        kind if is_text(kind) => Category::Text,
        kind if kind.is_numeric() => Category::Number,
        DataType::Boolean => Category::Bool,
        DataType::Date32 | DataType::Timestamp(..) => Category::Moment,
        DataType::Interval(_) | DataType::Duration(_) => Category::Span,
        _ => Category::Other,
    }
}

/// What literals in quotes are read as beside others; none where they are texts.
///
/// # Errors
/// When two of them cannot be matched: `what` says where.
fn common(kinds: &[(Field, bool)], what: &str, subject: impl Fn(usize) -> Option<Subject>) -> Result<Option<Field>> {
    let mut first: Option<&Field> = None;
    for (index, (kind, unknown)) in kinds.iter().enumerate() {
        if *unknown || kind.data_type().is_null() {
            continue;
        }
        match first {
            None => first = Some(kind),
            Some(other) if category(other.data_type()) != category(kind.data_type()) => {
                let message = format!("{what} types {} and {} cannot be matched", name_of(other), name_of(kind));
                let error = QueryError::new(SqlState::DatatypeMismatch, message);
                return Err(match subject(index) {
                    Some(subject) => error.about(subject).external(),
                    None => error.external(),
                });
            }
            Some(_) => {}
        }
    }
    let read = first.filter(|kind| !matches!(category(kind.data_type()), Category::Text | Category::Other));
    Ok(read.cloned())
}

/// The same expressions, those in quotes read as what the others are.
pub(super) fn matched(expressions: Vec<Expr>, what: &str, schema: &DFSchema, typer: &Typer<'_>) -> Result<Vec<Expr>> {
    let kinds = expressions.iter().map(|one| Ok((field_of(one, schema)?, is_unknown(one)))).collect::<Result<Vec<_>>>();
    let Ok(kinds) = kinds else { return Ok(expressions) };
    let mut read = common(&kinds, what, |index| expressions.get(index).and_then(Subject::of))?;
    let float = as_float(&kinds);
    if float {
        read = Some(Field::new("", DataType::Float64, true));
    }
    let one = |(one, (kind, unknown)): (Expr, &(Field, bool))| {
        let number = float && !unknown && kind.data_type().is_numeric();
        if number { cast(one, DataType::Float64) } else { typer.beside(one, read.as_ref()) }
    };
    Ok(expressions.into_iter().zip(&kinds).map(one).collect())
}

/// Whether exact numbers meet others, of which the exactness is given up.
fn as_float(kinds: &[(Field, bool)]) -> bool {
    let any = |test: fn(&DataType) -> bool| kinds.iter().any(|(kind, unknown)| !unknown && test(kind.data_type()));
    any(DataType::is_floating) && any(DataType::is_decimal)
}

/// The type that all of these texts have by its name, where it is not `text`; literals in quotes take that of the others.
pub(super) fn shared(expressions: &[Expr], schema: &DFSchema) -> Option<Field> {
    let mut shared: Option<Field> = None;
    for expression in expressions {
        let kind = field_of(expression, schema).ok()?;
        if is_unknown(expression) || kind.data_type().is_null() {
            continue;
        }
        let named = is_text(kind.data_type()) && !matches!(kinds::tag(&kind), "" | "text");
        match &shared {
            _ if !named => return None,
            None => shared = Some(kinds::tagged(kind.data_type().clone(), kinds::tag(&kind), length_of(&kind))),
            Some(other) if kinds::tag(other) != kinds::tag(&kind) => return None,
            Some(other) if kinds::length(other) != kinds::length(&kind) => {
                shared = Some(kinds::tagged(kind.data_type().clone(), kinds::tag(&kind), None));
            }
            Some(_) => {}
        }
    }
    shared
}

fn length_of(kind: &Field) -> Option<u64> {
    kinds::length(kind).and_then(|length| u64::try_from(length).ok())
}

/// An expression by the name of the type that it was made of.
pub(super) fn called(expression: Expr, kind: Option<Field>) -> Expr {
    match kind {
        Some(kind) => tagged(expression, kind),
        None => expression,
    }
}

pub(super) fn case(mut case: Case, schema: &DFSchema, typer: &Typer<'_>) -> Result<Expr> {
    if case.expr.is_none() {
        for (condition, _) in &case.when_then_expr {
            let kind = field_of(condition, schema)?;
            if !matches!(kind.data_type(), DataType::Boolean | DataType::Null) && !is_unknown(condition) {
                return Err(not_boolean("CASE/WHEN", &name_of(&kind)).external());
            }
        }
    }
    if let Some(operand) = &case.expr {
        let kind = field_of(operand, schema)?;
        for (value, _) in &mut case.when_then_expr {
            **value = typer.beside(std::mem::take(value.as_mut()), Some(&kind));
        }
    }
    let mut results: Vec<Expr> = case.else_expr.iter().map(|result| result.as_ref().clone()).collect();
    let has_else = !results.is_empty();
    results.extend(case.when_then_expr.iter().map(|(_, result)| result.as_ref().clone()));
    let shared = shared(&results, schema);
    let mut results = matched(results, "CASE", schema, typer)?.into_iter();
    if has_else {
        case.else_expr = results.next().map(Box::new);
    }
    for ((_, result), read) in case.when_then_expr.iter_mut().zip(results) {
        **result = read;
    }
    Ok(called(Expr::Case(case), shared))
}

/// The inputs of a UNION, literals in quotes read as what stands in the same place of the others.
pub(super) fn union_inputs(inputs: Vec<Arc<LogicalPlan>>, typer: &Typer<'_>) -> Result<Vec<Arc<LogicalPlan>>> {
    let width = inputs.first().map_or(0, |input| input.schema().fields().len());
    let mut read: Vec<Option<Field>> = Vec::with_capacity(width);
    let mut mixed: Vec<Option<DataType>> = Vec::with_capacity(width);
    for place in 0..width {
        let kinds: Vec<(Field, bool)> = inputs
            .iter()
            .filter_map(|input| {
                let field = input.schema().fields().get(place)?;
                Some((field.as_ref().clone(), is_unknown_column(input, place)))
            })
            .collect();
        let subject = |index: usize| inputs.get(index).and_then(|input| written(input, place)).and_then(Subject::of);
        read.push(common(&kinds, "UNION", subject)?);
        mixed.push(if as_float(&kinds) { Some(DataType::Float64) } else { mixed_scale(&kinds) });
    }
    let inputs = inputs.into_iter().map(|input| {
        let wanted = |place: usize| read.get(place).cloned().flatten().filter(|_| is_unknown_column(&input, place));
        let scaled = |place: usize| mixed.get(place).cloned().flatten();
        if (0..width).all(|place| wanted(place).is_none() && scaled(place).is_none()) {
            return Ok(input);
        }
        let columns: Vec<Expr> = input
            .schema()
            .columns()
            .into_iter()
            .enumerate()
            .map(|(place, column)| {
                let name = column.name.clone();
                let read = match wanted(place) {
                    Some(kind) => {
                        written(&input, place).map_or(Ok(()), |written| typer.readable(written, &kind))?;
                        typer.read(Expr::Column(column.clone()), &kind)
                    }
                    None => Expr::Column(column.clone()),
                };
                Ok(match (scaled(place), wanted(place)) {
                    (Some(kind), _) => cast(read, kind).alias(name),
                    (None, Some(_)) => read.alias(name),
                    (None, None) => read,
                })
            })
            .collect::<Result<_>>()?;
        LogicalPlanBuilder::from(input).project(columns)?.build().map(Arc::new)
    });
    inputs.collect()
}

/// What one column of a query is, where it says so itself.
fn written(input: &LogicalPlan, place: usize) -> Option<&Expr> {
    match input {
        LogicalPlan::Projection(projection) => projection.expr.get(place),
        _ => None,
    }
}

/// The type of numbers of which each keeps its scale; none where they are not all exact, or have the same.
fn mixed_scale(kinds: &[(Field, bool)]) -> Option<DataType> {
    let mut scales = Vec::with_capacity(kinds.len());
    for (kind, unknown) in kinds {
        match kind.data_type() {
            // What is computed has digits of its own.
            kind if *kind == QUOTIENT => return None,
            kind if kind.is_integer() => scales.push((0, 0)),
            DataType::Decimal128(_, scale) => scales.push((*scale, *scale)),
            kind @ DataType::Decimal256(_, scale) => {
                let least = kinds::least_scale(kind).and_then(|least| i8::try_from(least).ok());
                scales.push((least.unwrap_or(*scale), *scale));
            }
            DataType::Null => {}
            _ if *unknown => {}
            _ => return None,
        }
    }
    let least = scales.iter().map(|(least, _)| *least).min()?;
    let greatest = scales.iter().map(|(_, greatest)| *greatest).max()?;
    if least == greatest { None } else { kinds::mixed_scale(least, greatest) }
}

fn is_unknown_column(input: &LogicalPlan, place: usize) -> bool {
    written(input, place).is_some_and(is_unknown)
}
