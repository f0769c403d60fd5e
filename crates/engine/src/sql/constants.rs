//! What a plan computes of constants alone. PostgreSQL computes it when it plans, so that what cannot be computed is an
//! error before a result begins; DataFusion leaves it to the execution.

use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::Schema;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion, TreeNodeVisitor};
use datafusion::error::DataFusionError;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, Volatility};

use super::error::QueryError;

/// Computes the constants of an optimised plan.
///
/// # Errors
/// What is wrong with the first that cannot be computed.
pub(super) fn check(plan: &LogicalPlan, state: &SessionState) -> Result<(), QueryError> {
    let mut wrong = None;
    plan.apply_with_subqueries(|step| {
        step.apply_expressions(|whole| {
            let mut constants = Constants::default();
            whole.visit(&mut constants)?;
            wrong = constants.found.into_iter().find_map(|constant| compute(constant, state));
            Ok(if wrong.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })
    })?;
    match wrong {
        // It was computed: no place in the statement is wrong.
        Some(error) => Err(QueryError { subject: None, ..error }),
        None => Ok(()),
    }
}

/// The error of a constant. What cannot be planned by itself is left to the execution.
fn compute(constant: &Expr, state: &SessionState) -> Option<QueryError> {
    let computed = state.create_physical_expr(constant.clone(), &DFSchema::empty()).ok()?;
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    let row = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options).ok()?;
    computed.evaluate(&row).err().map(QueryError::from)
}

/// The largest parts of an expression that are constant, and no literals.
#[derive(Default)]
struct Constants<'n> {
    found: Vec<&'n Expr>,
    open: Vec<Open<'n>>,
}

/// A part whose own parts are being looked at.
struct Open<'n> {
    constant: bool,
    within: Vec<&'n Expr>,
}

impl<'n> TreeNodeVisitor<'n> for Constants<'n> {
    type Node = Expr;

    fn f_down(&mut self, part: &'n Expr) -> Result<TreeNodeRecursion, DataFusionError> {
        self.open.push(Open { constant: may_be_constant(part), within: Vec::new() });
        Ok(TreeNodeRecursion::Continue)
    }

    fn f_up(&mut self, part: &'n Expr) -> Result<TreeNodeRecursion, DataFusionError> {
        let Some(Open { constant, within }) = self.open.pop() else { return Ok(TreeNodeRecursion::Continue) };
        let trivial = matches!(part, Expr::Literal(..));
        if constant {
            match self.open.last_mut() {
                Some(outer) if !trivial => outer.within.push(part),
                None if !trivial => self.found.push(part),
                _ => {}
            }
            return Ok(TreeNodeRecursion::Continue);
        }
        self.found.extend(within);
        if let Some(outer) = self.open.last_mut() {
            outer.constant = false;
        }
        Ok(TreeNodeRecursion::Continue)
    }
}

fn may_be_constant(part: &Expr) -> bool {
    match part {
        // What depends on the time or the session PostgreSQL leaves to the execution.
        Expr::ScalarFunction(call) => call.func.signature().volatility == Volatility::Immutable,
        Expr::Literal(..)
        | Expr::Alias(_)
        | Expr::BinaryExpr(_)
        | Expr::Not(_)
        | Expr::Negative(_)
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::Between(_)
        | Expr::InList(_)
        | Expr::Like(_)
        | Expr::Case(_)
        | Expr::Cast(_)
        | Expr::TryCast(_) => true,
        _ => false,
    }
}
