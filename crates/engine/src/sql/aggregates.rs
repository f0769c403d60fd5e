//! How expressions are planned that mean something else in PostgreSQL than in DataFusion: averages, operators, EXTRACT.

use std::sync::Arc;

use datafusion::common::DFSchema;
use datafusion::error::DataFusionError;
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::expr::{AggregateFunction, ScalarFunction};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawAggregateExpr, RawBinaryExpr};
use datafusion::logical_expr::{AggregateUDF, Expr, Operator, ScalarUDF};
use sqlparser::ast::BinaryOperator;

use super::functions::arithmetic::Average;
use super::functions::declared;
use super::functions::temporal::EXTRACT;
use super::{Current, widths};

/// Plans them; averages as a sum divided by a count, exact for integers.
#[derive(Debug)]
pub(super) struct Planner {
    current: Current,
}

impl Planner {
    pub(super) fn new(current: &Current) -> Self {
        Self { current: Arc::clone(current) }
    }
}

impl ExprPlanner for Planner {
    /// What has no meaning is refused while its types are known as the client wrote them.
    fn plan_binary_op(
        &self,
        expression: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>, DataFusionError> {
        let op = match expression.op {
            BinaryOperator::Plus => Operator::Plus,
            BinaryOperator::Minus => Operator::Minus,
            BinaryOperator::Multiply => Operator::Multiply,
            BinaryOperator::Divide => Operator::Divide,
            BinaryOperator::Modulo => Operator::Modulo,
            BinaryOperator::Eq => Operator::Eq,
            BinaryOperator::NotEq => Operator::NotEq,
            BinaryOperator::Lt => Operator::Lt,
            BinaryOperator::LtEq => Operator::LtEq,
            BinaryOperator::Gt => Operator::Gt,
            BinaryOperator::GtEq => Operator::GtEq,
            BinaryOperator::And => Operator::And,
            BinaryOperator::Or => Operator::Or,
            _ => return Ok(PlannerResult::Original(expression)),
        };
        match widths::plan_operator(op, &expression.left, &expression.right, schema, &self.current)? {
            Some(planned) => Ok(PlannerResult::Planned(planned)),
            None => Ok(PlannerResult::Original(expression)),
        }
    }

    fn plan_extract(&self, arguments: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>, DataFusionError> {
        Ok(PlannerResult::Planned(declared::call(&EXTRACT, arguments, &self.current)))
    }

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
