//! The types of parameters: as the client declared them, else as the query tells by what it does with them, else text.

use std::collections::HashMap;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};

use super::catalog_functions::CatalogFunction;
use super::cells::{PgType, pg_type};
use super::error::QueryError;

/// The most parameters a statement can have, as in PostgreSQL's protocol.
const PARAMETERS_MAX: usize = 65_535;

/// The types of a plan's parameters.
pub(super) fn types(plan: &LogicalPlan, declared: &[Option<PgType>]) -> Result<Vec<PgType>, QueryError> {
    let found = found(plan)?;
    let mut count = declared.len();
    for name in found.keys() {
        let number = name.strip_prefix('$').and_then(|digits| digits.parse::<usize>().ok());
        match number {
            Some(number) if (1..=PARAMETERS_MAX).contains(&number) => count = count.max(number),
            _ => return Err(super::error::no_parameter(name)),
        }
    }
    let kind = |index: usize| {
        let own = declared.get(index).copied().flatten();
        own.or_else(|| found.get(&format!("${}", index + 1)).copied().flatten()).unwrap_or(PgType::Text)
    };
    Ok((0..count).map(kind).collect())
}

/// The parameters a plan has, with the type that is told first: by what is done with them, or by the planner.
fn found(plan: &LogicalPlan) -> Result<HashMap<String, Option<PgType>>, DataFusionError> {
    let mut found = HashMap::new();
    plan.apply_with_subqueries(|step| {
        let schema = merge_schema(&step.inputs());
        step.apply_expressions(|whole| {
            whole.apply(|part| {
                note(part, &schema, &mut found);
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(found)
}

fn note(expression: &Expr, schema: &DFSchema, found: &mut HashMap<String, Option<PgType>>) {
    let mut known = |expression: &Expr, kind: PgType| {
        if let Expr::Placeholder(placeholder) = expression {
            found.entry(placeholder.id.clone()).or_default().get_or_insert(kind);
        }
    };
    match expression {
        Expr::Placeholder(placeholder) => {
            // As PostgreSQL, whose varchar has no operators of its own.
            let told = placeholder.field.as_ref().map(|field| pg_type(field));
            let told = told.map(|kind| if kind == PgType::Varchar { PgType::Text } else { kind });
            let known = found.entry(placeholder.id.clone()).or_default();
            *known = known.or(told);
        }
        Expr::Cast(cast) => known(&cast.expr, pg_type(&cast.field)),
        Expr::ScalarFunction(call) => match (call.func.name(), call.args.as_slice()) {
            ("array_has", [array, item]) => {
                if let Some(kind) = item.to_field(schema).ok().and_then(|(_, field)| array_of(pg_type(&field))) {
                    known(array, kind);
                }
            }
            (name, arguments) => {
                let Some(function) = CatalogFunction::named(name) else { return };
                for (argument, kind) in arguments.iter().zip(function.takes()) {
                    known(argument, kind);
                }
            }
        },
        _ => {}
    }
}

/// The type of arrays of such items.
fn array_of(item: PgType) -> Option<PgType> {
    Some(match item {
        PgType::Bool => PgType::BoolArray,
        PgType::Int2 => PgType::Int2Array,
        PgType::Int4 => PgType::Int4Array,
        PgType::Int8 => PgType::Int8Array,
        PgType::Oid => PgType::OidArray,
        PgType::Name => PgType::NameArray,
        PgType::Char => PgType::CharArray,
        PgType::Text | PgType::Varchar => PgType::TextArray,
        _ => return None,
    })
}

/// A parameter that is cast to `numeric` keeps the digits of its value.
pub(super) fn exact(plan: LogicalPlan) -> Result<LogicalPlan, DataFusionError> {
    let kept = plan.transform_up_with_subqueries(|step| {
        super::subquery::rewritten(step, |part| match part {
            Expr::Cast(cast) if *cast.field.data_type() == super::widths::NUMERIC && is_decimal(&cast.expr) => {
                Ok(Transformed::yes(*cast.expr))
            }
            other => Ok(Transformed::no(other)),
        })
    })?;
    Ok(kept.data)
}

fn is_decimal(expression: &Expr) -> bool {
    matches!(expression, Expr::Literal(ScalarValue::Decimal128(..), _))
}
