//! LATERAL: what stands beside it and takes columns from what is before it. DataFusion makes a join of the plainest;
//! everything else is run for each row, once for each combination of the values it takes, and its rows are put beside.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::common::tree_node::TreeNode;
use datafusion::common::{Column, JoinType, ScalarValue, TableReference, UnnestOptions};
use datafusion::error::DataFusionError;
use datafusion::functions::core::get_field;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, Join, LogicalPlan, LogicalPlanBuilder, Subquery, lit};
use sqlparser::ast::{Expr as Written, Query, Select, SetExpr, TableAlias, TableFactor};

use super::error::QueryError;
use super::subquery::{Runner, rows_of, takes_by_equality};
use crate::error::SqlState;

/// Makes functions in FROM lateral that take columns from what is before them: they need no word for it.
pub(super) fn mark_functions(select: &mut Select) {
    let mut first = true;
    for from in &mut select.from {
        if !std::mem::take(&mut first) {
            mark(&mut from.relation);
        }
        for join in &mut from.joins {
            mark(&mut join.relation);
        }
    }
}

fn mark(factor: &mut TableFactor) {
    let TableFactor::UNNEST { alias, array_exprs, .. } = &*factor else { return };
    if !array_exprs.iter().any(takes_columns) {
        return;
    }
    let alias = alias.as_ref().map(|alias| TableAlias { columns: Vec::new(), ..alias.clone() });
    if let Some(mut subquery) = whole_of_something()
        && let SetExpr::Select(select) = subquery.body.as_mut()
        && let Some(from) = select.from.first_mut()
    {
        std::mem::swap(&mut from.relation, factor);
        *factor = TableFactor::Derived { lateral: true, subquery: Box::new(subquery), alias, sample: None };
    }
}

/// Whether an expression names a column.
pub(super) fn takes_columns(expression: &Written) -> bool {
    let visited = sqlparser::ast::visit_expressions(expression, |part| match part {
        Written::Identifier(_) | Written::CompoundIdentifier(_) => std::ops::ControlFlow::Break(()),
        _ => std::ops::ControlFlow::Continue(()),
    });
    visited.is_break()
}

fn whole_of_something() -> Option<Query> {
    let parser = sqlparser::parser::Parser::new(&sqlparser::dialect::PostgreSqlDialect {});
    let parsed = parser.try_with_sql("SELECT * FROM something").and_then(|mut parser| parser.parse_query());
    parsed.ok().map(|query| *query)
}

/// A join whose right side takes columns of its left side, with the right side run for each row.
///
/// # Errors
/// When it is a kind of join that has no such meaning here.
pub(super) fn run_apart(join: Join, runner: &Runner) -> Result<Result<LogicalPlan, Join>, DataFusionError> {
    let Some(subquery) = lateral(&join.right).cloned() else { return Ok(Err(join)) };
    if becomes_join(&subquery.subquery) {
        return Ok(Err(join));
    }
    let condition = condition(&join);
    let outer = match join.join_type {
        JoinType::Inner => false,
        JoinType::Left if condition.is_none() => true,
        JoinType::Left => return Err(not_supported("LEFT JOIN LATERAL with a condition other than true")),
        _ => return Err(not_supported("LATERAL on this side of an outer join")),
    };
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let name = format!("__lateral_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    let (left, right) = (Arc::unwrap_or_clone(join.left), join.right);
    let kept: Vec<Expr> = left.schema().columns().into_iter().map(Expr::Column).collect();
    let rows = rows_of(&subquery, left.schema(), outer, runner);
    let list = kept.iter().cloned().chain([rows.alias(&name)]);
    let options = UnnestOptions::new().with_preserve_nulls(outer);
    let beside =
        LogicalPlanBuilder::from(left).project(list)?.unnest_column_with_options(Column::from_name(&name), options)?;
    let row = Expr::Column(Column::from_name(&name));
    let fields = right.schema().iter().enumerate().map(|(index, (qualifier, field))| {
        let value = get_field().call(vec![row.clone(), lit(field_name(index))]);
        match qualifier {
            Some(qualifier) => value.alias_qualified(Some(TableReference::clone(qualifier)), field.name()),
            None => value.alias(field.name()),
        }
    });
    let joined = beside.project(kept.iter().cloned().chain(fields))?;
    match condition {
        Some(condition) => joined.filter(condition)?.build().map(Ok),
        None => joined.build().map(Ok),
    }
}

/// What a column is called among the fields of a row.
pub(super) fn field_name(index: usize) -> String {
    format!("c{index}")
}

fn not_supported(what: &str) -> DataFusionError {
    QueryError::new(SqlState::FeatureNotSupported, format!("{what} is not supported")).external()
}

/// The subquery that takes columns from the other side.
fn lateral(right: &LogicalPlan) -> Option<&Subquery> {
    match right {
        LogicalPlan::Subquery(subquery) if !subquery.outer_ref_columns.is_empty() => Some(subquery),
        LogicalPlan::SubqueryAlias(alias) => lateral(&alias.input),
        _ => None,
    }
}

/// What the sides are joined on; none for what is always true.
fn condition(join: &Join) -> Option<Expr> {
    let equal = join.on.iter().map(|(left, right)| left.clone().eq(right.clone()));
    let always = |part: &Expr| matches!(part, Expr::Literal(ScalarValue::Boolean(Some(true)), _));
    conjunction(equal.chain(join.filter.clone()).filter(|part| !always(part)))
}

/// Whether DataFusion makes a join of it: it only chooses among the rows of tables, by what equals a column from outside.
fn becomes_join(plan: &LogicalPlan) -> bool {
    let plain = |step: &LogicalPlan| {
        matches!(
            step,
            LogicalPlan::Projection(_)
                | LogicalPlan::Filter(_)
                | LogicalPlan::SubqueryAlias(_)
                | LogicalPlan::TableScan(_)
        )
    };
    !plan.exists(|step| Ok(!plain(step) || !takes_by_equality(step))).unwrap_or(true)
}
