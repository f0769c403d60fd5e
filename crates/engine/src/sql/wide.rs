//! Constants that become columns. A value that stands in a statement is held once, but an engine that works on columns
//! writes it out for each row of a batch, and counts none of these bytes against the query's memory. So a plan is looked
//! through before it runs.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, FetchType, LogicalPlan};

use super::QueryError;
use crate::error::SqlState;

/// How many rows there are in a batch: few, since each is as wide as its widest constant.
pub(super) const BATCH_ROWS: usize = 1_024;

/// What is as small as this does not count.
const SMALL_BYTES: u64 = 64;

/// Refuses a plan whose constants would take more memory than this, written out for one batch at each step.
pub(super) fn check(plan: &LogicalPlan, bytes_max: usize) -> Result<(), QueryError> {
    let mut bytes = 0;
    step(plan, &mut bytes)?;
    if bytes <= u64::try_from(bytes_max).unwrap_or(u64::MAX) {
        return Ok(());
    }
    Err(QueryError {
        detail: Some(format!("They would be written out for up to {BATCH_ROWS} rows at a time, in {bytes} bytes.")),
        hint: Some("The setting query_memory_bytes_max sets this limit.".to_owned()),
        ..QueryError::new(SqlState::OutOfMemory, "the constants of the query are too large for its rows")
    })
}

/// What a step gives: how many rows at the most, or those of a batch, and how many bytes of constants are in each.
#[derive(Debug, Clone, Copy)]
struct Given {
    rows: u64,
    width: u64,
}

fn batch() -> u64 {
    u64::try_from(BATCH_ROWS).unwrap_or(u64::MAX)
}

fn step(plan: &LogicalPlan, bytes: &mut u64) -> Result<Given, QueryError> {
    let inputs = plan.inputs().into_iter().map(|input| step(input, bytes)).collect::<Result<Vec<_>, _>>()?;
    let width = inputs.iter().fold(0_u64, |sum, input| sum.saturating_add(input.width));
    let rows = inputs.iter().map(|input| input.rows).max().unwrap_or_else(batch).min(batch());
    let mut write = |width: u64, rows: u64| *bytes = bytes.saturating_add(width.saturating_mul(rows));
    Ok(match plan {
        LogicalPlan::EmptyRelation(_) => Given { rows: 1, width: 0 },
        LogicalPlan::Values(values) => {
            let rows = u64::try_from(values.values.len()).unwrap_or(u64::MAX).min(batch());
            let widths = values.values.iter().map(|row| constants(row)).collect::<Result<Vec<_>, _>>()?;
            Given { rows, width: widths.into_iter().max().unwrap_or_default() }
        }
        LogicalPlan::Projection(projection) => {
            let own = constants(&projection.expr)?;
            write(own, rows);
            Given { rows, width: own.saturating_add(passed_on(&projection.expr, width)) }
        }
        LogicalPlan::Aggregate(aggregate) => {
            let own = constants(&aggregate.aggr_expr)?.saturating_add(constants(&aggregate.group_expr)?);
            write(own, rows);
            let rows = if aggregate.group_expr.is_empty() { 1 } else { rows };
            Given { rows, width: own.saturating_add(width) }
        }
        LogicalPlan::Join(join) => {
            let filter: Vec<Expr> = join.filter.iter().cloned().collect();
            let rows = inputs.iter().fold(1_u64, |product, input| product.saturating_mul(input.rows)).min(batch());
            write(width.saturating_add(branches(&filter)?), rows);
            Given { rows, width }
        }
        LogicalPlan::Union(_) => {
            let rows = inputs.iter().fold(0_u64, |sum, input| sum.saturating_add(input.rows)).min(batch());
            Given { rows, width: inputs.iter().map(|input| input.width).max().unwrap_or_default() }
        }
        LogicalPlan::Filter(filter) => {
            write(branches(std::slice::from_ref(&filter.predicate))?, rows);
            Given { rows, width }
        }
        LogicalPlan::Limit(limit) => match limit.get_fetch_type() {
            Ok(FetchType::Literal(Some(most))) => {
                Given { rows: rows.min(u64::try_from(most).unwrap_or(u64::MAX)), width }
            }
            _ => Given { rows, width },
        },
        other => {
            write(constants(&other.expressions())?, rows);
            Given { rows, width }
        }
    })
}

/// The bytes of constants that are written out for each row.
fn constants(expressions: &[Expr]) -> Result<u64, QueryError> {
    let mut bytes = 0_u64;
    for expression in expressions {
        expression.apply(|part| {
            if let Expr::Literal(value, _) = part {
                let size = u64::try_from(value.size()).unwrap_or(u64::MAX);
                bytes = bytes.saturating_add(if size > SMALL_BYTES { size } else { 0 });
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    Ok(bytes)
}

/// The same of what does not only compare with a constant: a CASE writes it out.
fn branches(expressions: &[Expr]) -> Result<u64, QueryError> {
    let mut bytes = 0_u64;
    for expression in expressions {
        expression.apply(|part| {
            if matches!(part, Expr::Case(_) | Expr::ScalarFunction(_) | Expr::Cast(_)) {
                bytes = bytes.saturating_add(constants(std::slice::from_ref(part)).unwrap_or(u64::MAX));
                return Ok(TreeNodeRecursion::Jump);
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    Ok(bytes)
}

/// What expressions that name columns keep of the constants in their input.
fn passed_on(expressions: &[Expr], width: u64) -> u64 {
    if expressions.iter().any(|expression| !expression.column_refs().is_empty()) { width } else { 0 }
}
