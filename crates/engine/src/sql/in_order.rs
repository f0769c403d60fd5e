//! The arms of a UNION ALL in the order in which they are written, as PostgreSQL answers them. DataFusion runs them at the
//! same time and takes rows as they come; here they run one after the other, each only when the one before has ended.

use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning, PlanProperties,
};
use futures::TryStreamExt;

type Result<T> = std::result::Result<T, DataFusionError>;
type Plan = Arc<dyn ExecutionPlan>;

/// Puts [`InOrder`] wherever the rows of several partitions become one stream. It is the last rule.
#[derive(Debug)]
pub(super) struct InOrderRule;

impl PhysicalOptimizerRule for InOrderRule {
    fn optimize(&self, plan: Plan, _: &ConfigOptions) -> Result<Plan> {
        let plan = plan.transform_up(|step| {
            Ok(match step.downcast_ref::<CoalescePartitionsExec>() {
                Some(merge) => Transformed::yes(merged(merge.input(), merge.fetch())),
                None => Transformed::no(step),
            })
        })?;
        // What is left would be merged when it is executed.
        Ok(merged(&plan.data, None))
    }

    fn name(&self) -> &str {
        "in_order"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn merged(input: &Plan, rows_max: Option<usize>) -> Plan {
    let one = match input.output_partitioning().partition_count() {
        1 => Arc::clone(input),
        _ => Arc::new(InOrder::new(Arc::clone(input))),
    };
    match rows_max {
        Some(_) => Arc::new(GlobalLimitExec::new(one, 0, rows_max)),
        None => one,
    }
}

/// All partitions of its input, from the first to the last.
#[derive(Debug)]
struct InOrder {
    input: Plan,
    properties: Arc<PlanProperties>,
}

impl InOrder {
    fn new(input: Plan) -> Self {
        let mut equivalences = input.equivalence_properties().clone();
        equivalences.clear_orderings();
        equivalences.clear_per_partition_constants();
        let properties = PlanProperties::new(
            equivalences,
            Partitioning::UnknownPartitioning(1),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        Self { input, properties: Arc::new(properties) }
    }
}

impl DisplayAs for InOrder {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl ExecutionPlan for InOrder {
    fn name(&self) -> &str {
        "InOrder"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn children(&self) -> Vec<&Plan> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Plan>) -> Result<Plan> {
        match <[Plan; 1]>::try_from(children) {
            Ok([input]) => Ok(Arc::new(Self::new(input))),
            Err(_) => Err(DataFusionError::Internal("InOrder has one child".to_owned())),
        }
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (input, schema) = (Arc::clone(&self.input), self.schema());
        let partitions = 0..input.output_partitioning().partition_count();
        let streams = partitions.map(move |partition| input.execute(partition, Arc::clone(&context)));
        let rows = futures::stream::iter(streams).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}
