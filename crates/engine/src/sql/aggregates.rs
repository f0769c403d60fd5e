//! Aggregates whose results have other types in PostgreSQL than in DataFusion.

use std::sync::Arc;

use datafusion::error::DataFusionError;
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::expr::{AggregateFunction, ScalarFunction};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawAggregateExpr};
use datafusion::logical_expr::{AggregateUDF, Expr, ScalarUDF};

use super::functions::arithmetic::Average;

/// Plans `avg` as a sum divided by a count, exact for integers.
#[derive(Debug)]
pub(super) struct Aggregates;

impl ExprPlanner for Aggregates {
    fn plan_aggregate(&self, call: RawAggregateExpr) -> Result<PlannerResult<RawAggregateExpr>, DataFusionError> {
        if call.func.name() != "avg" {
            return Ok(PlannerResult::Original(call));
        }
        let part = |function: Arc<AggregateUDF>| {
            let (arguments, order) = (call.args.clone(), call.order_by.clone());
            let whole = AggregateFunction::new_udf(
                function,
                arguments,
                call.distinct,
                call.filter.clone(),
                order,
                call.null_treatment,
            );
            Expr::AggregateFunction(whole)
        };
        let parts = vec![part(sum_udaf()), part(count_udaf())];
        let average = ScalarFunction::new_udf(Arc::new(ScalarUDF::from(Average::new())), parts);
        Ok(PlannerResult::Planned(Expr::ScalarFunction(average)))
    }
}
