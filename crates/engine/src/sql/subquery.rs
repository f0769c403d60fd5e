//! Subqueries that DataFusion cannot make a join of: those are run for each row of the outer query, once for each
//! combination of the values they take from it. Clients that read PostgreSQL's catalog ask so all the time, of small tables.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use datafusion::arrow::array::{Array, ListArray, RecordBatch, StructArray, new_empty_array};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::{cast, concat};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ExprSchema, JoinType, ScalarValue};
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SessionState, TaskContext};
use datafusion::logical_expr::async_udf::{AsyncScalarUDF, AsyncScalarUDFImpl};
use datafusion::logical_expr::expr::{Case, Exists, InSubquery, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, LogicalPlan, LogicalPlanBuilder, Operator, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDFImpl, Signature, Subquery, Volatility,
};
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use futures::TryStreamExt;

use super::error::QueryError;
use super::kinds::{array_of, is_text, tag};
use crate::error::SqlState;

/// The function that `ARRAY(SELECT ...)` is written as for the planner.
pub(super) const ARRAY: &str = "__array";

/// Puts functions in the place of the subqueries that have to be run apart.
pub(super) fn run_apart(plan: LogicalPlan, runner: &Runner) -> Result<Transformed<LogicalPlan>, DataFusionError> {
    plan.transform_up(|node| {
        let filter = matches!(node, LogicalPlan::Filter(_));
        let node = match node {
            LogicalPlan::Join(join) => match super::lateral::run_apart(join, runner)? {
                Ok(run) => return Ok(Transformed::yes(run)),
                Err(join) => LogicalPlan::Join(join),
            },
            node => node,
        };
        rewritten(node, |expression| apart(expression, filter, None, runner))
    })
}

/// What a subquery that is run apart needs: how to plan, and what to read.
#[derive(Clone)]
pub(super) struct Runner {
    state: Arc<SessionState>,
    context: Arc<TaskContext>,
}

impl Runner {
    pub(super) fn new(state: &SessionState, context: Arc<TaskContext>) -> Self {
        Self { state: Arc::new(state.clone()), context }
    }
}

/// A node with its expressions rewritten from the outside in, which keep their names.
pub(super) fn rewritten(
    node: LogicalPlan,
    rewrite: impl Fn(Expr) -> Result<Transformed<Expr>, DataFusionError>,
) -> Result<Transformed<LogicalPlan>, DataFusionError> {
    let names = NamePreserver::new(&node);
    let mut changed = false;
    let node = node.map_expressions(|expression| {
        let name = names.save(&expression);
        let replaced = expression.transform_down(&rewrite)?;
        changed |= replaced.transformed;
        Ok(replaced.update_data(|expression| name.restore(expression)))
    })?;
    let data = if changed { node.data.recompute_schema()? } else { node.data };
    Ok(Transformed::new(data, changed, TreeNodeRecursion::Continue))
}

/// Replaces one subquery; those inside of it come when it is run. It is run for the rows only for which `guard` is true.
fn apart(
    expression: Expr,
    filter: bool,
    guard: Option<&Expr>,
    runner: &Runner,
) -> Result<Transformed<Expr>, DataFusionError> {
    let replaced = |expression| Transformed::new(expression, true, TreeNodeRecursion::Jump);
    let call = |subquery: &Subquery, mode, wanted, runner: &Runner| call(subquery, mode, wanted, guard, runner);
    Ok(match expression {
        Expr::ScalarFunction(ScalarFunction { func, args }) if func.name() == ARRAY => match args.as_slice() {
            [Expr::ScalarSubquery(subquery)] => replaced(call(subquery, Mode::Array, None, runner)),
            _ => Transformed::no(Expr::ScalarFunction(ScalarFunction { func, args })),
        },
        Expr::ScalarSubquery(subquery) if correlated(&subquery) && !joins(&subquery.subquery) => {
            replaced(call(&subquery, Mode::Scalar, None, runner))
        }
        Expr::ScalarSubquery(subquery) => replaced(Expr::ScalarSubquery(inside(subquery, runner)?)),
        // Those in a filter DataFusion makes joins of.
        Expr::Exists(Exists { subquery, negated }) if filter => {
            replaced(Expr::Exists(Exists { subquery: inside(subquery, runner)?, negated }))
        }
        Expr::InSubquery(InSubquery { expr, subquery, negated }) if filter => {
            replaced(Expr::InSubquery(InSubquery { expr, subquery: inside(subquery, runner)?, negated }))
        }
        Expr::Exists(Exists { subquery, negated }) => {
            let exists = call(&subquery, Mode::Exists, None, runner);
            replaced(if negated { Expr::Not(Box::new(exists)) } else { exists })
        }
        Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
            let contains = call(&subquery, Mode::In, Some(*expr), runner);
            replaced(if negated { Expr::Not(Box::new(contains)) } else { contains })
        }
        Expr::Case(case) if guard.is_none() => guarded(case, filter, runner)?,
        other => Transformed::no(other),
    })
}

/// A CASE whose results are computed where they are wanted.
fn guarded(mut case: Case, filter: bool, runner: &Runner) -> Result<Transformed<Expr>, DataFusionError> {
    let has_subquery = |expression: &Expr| {
        expression.exists(|part| Ok(matches!(part, Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_))))
    };
    for (when, then) in &mut case.when_then_expr {
        if !has_subquery(then)? || has_subquery(when)? {
            continue;
        }
        let condition = match &case.expr {
            Some(operand) if has_subquery(operand)? => continue,
            Some(operand) => operand.as_ref().clone().eq(when.as_ref().clone()),
            None => when.as_ref().clone(),
        };
        let taken = std::mem::take(then.as_mut());
        **then = taken.transform_down(|part| apart(part, filter, Some(&condition), runner))?.data;
    }
    // What is left in it has no condition, or one that is no plain value.
    Ok(Transformed::yes(Expr::Case(case)))
}

/// A subquery that stays, with the same done in it.
fn inside(mut subquery: Subquery, runner: &Runner) -> Result<Subquery, DataFusionError> {
    subquery.subquery = Arc::new(run_apart(Arc::unwrap_or_clone(subquery.subquery), runner)?.data);
    Ok(subquery)
}

fn correlated(subquery: &Subquery) -> bool {
    !subquery.outer_ref_columns.is_empty()
}

/// Whether DataFusion can make a join of a query: it gives one row in any case, and takes from outside only what it
/// compares its own columns with for equality.
fn joins(plan: &LogicalPlan) -> bool {
    aggregates(plan) && plan.exists(|step| Ok(!takes_by_equality(step))).is_ok_and(|other| !other)
}

pub(super) fn takes_by_equality(step: &LogicalPlan) -> bool {
    let outer = |expression: &Expr| expression.exists(|part| Ok(matches!(part, Expr::OuterReferenceColumn(..))));
    let takes = |expression: &Expr| outer(expression).unwrap_or(true);
    match step {
        LogicalPlan::Filter(filter) => split_conjunction(&filter.predicate).into_iter().all(|part| match part {
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => !(takes(left) && takes(right)),
            part => !takes(part),
        }),
        step => step.expressions().iter().all(|expression| !takes(expression)),
    }
}

/// The same plan, with a row of NULL where it has none: its column is then known to be able to be NULL.
pub(super) fn nullable(mut subquery: Subquery) -> Result<Subquery, DataFusionError> {
    let known = subquery.subquery.schema().fields().first().is_none_or(|field| field.is_nullable());
    if known || correlated(&subquery) || aggregates(&subquery.subquery) {
        return Ok(subquery);
    }
    let row = LogicalPlanBuilder::empty(true);
    let values = Arc::unwrap_or_clone(subquery.subquery);
    let joined = row.join_on(values, JoinType::Left, [Expr::Literal(ScalarValue::Boolean(Some(true)), None)])?;
    subquery.subquery = Arc::new(joined.build()?);
    Ok(subquery)
}

/// The same subquery, with the types that the outer query's columns have by now.
pub(super) fn refreshed(mut subquery: Subquery, schema: &DFSchema) -> Result<Subquery, DataFusionError> {
    let fresh = |expression: Expr| match &expression {
        Expr::OuterReferenceColumn(known, column) => match schema.field_from_column(column) {
            Ok(own) if own.data_type() != known.data_type() => {
                Ok(Transformed::yes(Expr::OuterReferenceColumn(Arc::clone(own), column.clone())))
            }
            _ => Ok(Transformed::no(expression)),
        },
        _ => Ok(Transformed::no(expression)),
    };
    for column in &mut subquery.outer_ref_columns {
        *column = fresh(std::mem::take(column))?.data;
    }
    if correlated(&subquery) {
        let plan = Arc::unwrap_or_clone(subquery.subquery);
        subquery.subquery = Arc::new(plan.transform_up_with_subqueries(|step| rewritten(step, fresh))?.data);
    }
    Ok(subquery)
}

/// Whether a query gives one row in any case.
fn aggregates(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => aggregates(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => aggregates(&alias.input),
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        _ => false,
    }
}

/// What is made of a subquery's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// The value of its one row; NULL when there is none.
    Scalar,
    /// The values of all rows.
    Array,
    /// Whether there is a row.
    Exists,
    /// Whether the last argument is among its values.
    In,
    /// All rows, as values of several fields; NULL instead of none where the row beside them is kept.
    Rows { kept: bool },
}

/// The rows of a lateral subquery, for each row of what is before it.
pub(super) fn rows_of(subquery: &Subquery, before: &DFSchema, kept: bool, runner: &Runner) -> Expr {
    let Expr::ScalarFunction(mut called) = call(subquery, Mode::Rows { kept }, None, None, runner) else {
        return Expr::default();
    };
    // What is not before it is from outside of the whole.
    for argument in &mut called.args {
        let outer = subquery.outer_ref_columns.iter().find(|outer| {
            matches!((outer, &*argument), (Expr::OuterReferenceColumn(_, one), Expr::Column(other)) if one == other)
        });
        if let (Expr::Column(column), Some(outer)) = (&*argument, outer)
            && !before.has_column(column)
        {
            *argument = outer.clone();
        }
    }
    Expr::ScalarFunction(called)
}

/// The columns of a query as the fields of one value.
fn row_type(plan: &LogicalPlan) -> DataType {
    let field = |(index, field): (usize, &FieldRef)| {
        Field::new(super::lateral::field_name(index), field.data_type().clone(), true)
            .with_metadata(field.metadata().clone())
    };
    DataType::Struct(plan.schema().fields().iter().enumerate().map(field).collect())
}

fn call(subquery: &Subquery, mode: Mode, wanted: Option<Expr>, guard: Option<&Expr>, runner: &Runner) -> Expr {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let columns: Vec<Column> = subquery
        .outer_ref_columns
        .iter()
        .filter_map(|expression| match expression {
            Expr::OuterReferenceColumn(_, column) => Some(column.clone()),
            _ => None,
        })
        .collect();
    let first = || subquery.subquery.schema().fields().first().map(|field| field.data_type().clone());
    let value = match mode {
        Mode::Rows { .. } => row_type(&subquery.subquery),
        _ => first().unwrap_or(DataType::Null),
    };
    let result = match mode {
        Mode::Scalar => value.clone(),
        Mode::Array | Mode::Rows { .. } => DataType::List(Arc::new(Field::new_list_field(value.clone(), true))),
        Mode::Exists | Mode::In => DataType::Boolean,
    };
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let count = columns.len() + usize::from(wanted.is_some()) + usize::from(guard.is_some());
    let arguments = columns.iter().cloned().map(Expr::Column).chain(wanted).chain(guard.cloned()).collect();
    let signature = match count {
        0 => Signature::nullary(Volatility::Volatile),
        count => Signature::any(count, Volatility::Volatile),
    };
    let function = Apart {
        number,
        name: format!("__subquery_{number}"),
        signature,
        plan: (*subquery.subquery).clone(),
        columns,
        mode,
        guarded: guard.is_some(),
        value,
        result,
        runner: runner.clone(),
    };
    let function = AsyncScalarUDF::new(Arc::new(function)).into_scalar_udf();
    Expr::ScalarFunction(ScalarFunction { func: Arc::new(function), args: arguments })
}

/// A subquery as a function of the columns it takes from outside.
struct Apart {
    number: u64,
    name: String,
    signature: Signature,
    plan: LogicalPlan,
    columns: Vec<Column>,
    mode: Mode,
    /// Whether the last argument says if it is wanted at all.
    guarded: bool,
    value: DataType,
    result: DataType,
    runner: Runner,
}

impl std::fmt::Debug for Apart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

impl PartialEq for Apart {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Apart {}

impl Hash for Apart {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

impl ScalarUDFImpl for Apart {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType, DataFusionError> {
        Ok(self.result.clone())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> Result<FieldRef, DataFusionError> {
        let field = Field::new(self.name(), self.result.clone(), true);
        // Its one value is of the column's own type.
        let column = self.plan.schema().fields().first().filter(|_| self.mode == Mode::Scalar);
        Ok(Arc::new(match column {
            Some(column) => field.with_metadata(column.metadata().clone()),
            None if self.mode == Mode::Array => match self.plan.schema().fields().first() {
                Some(column) if is_text(column.data_type()) && !matches!(tag(column), "" | "text") => {
                    field.with_metadata(array_of(column).metadata().clone())
                }
                _ => field,
            },
            None => field,
        }))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue, DataFusionError> {
        Err(DataFusionError::NotImplemented("a subquery in this place is not supported".to_owned()))
    }
}

#[async_trait]
impl AsyncScalarUDFImpl for Apart {
    async fn invoke_async_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue, DataFusionError> {
        let reservation = MemoryConsumer::new("subquery").register(self.runner.context.memory_pool());
        let mut known: HashMap<Vec<ScalarValue>, ScalarValue> = HashMap::new();
        let mut results = Vec::with_capacity(arguments.number_rows);
        for row in 0..arguments.number_rows {
            let mut values = arguments
                .args
                .iter()
                .map(|argument| match argument {
                    ColumnarValue::Scalar(scalar) => Ok(scalar.clone()),
                    ColumnarValue::Array(array) => ScalarValue::try_from_array(array, row),
                })
                .collect::<Result<Vec<_>, _>>()?;
            if self.guarded && values.pop() != Some(ScalarValue::Boolean(Some(true))) {
                results.push(ScalarValue::try_from(&self.result)?);
                continue;
            }
            let result = match known.get(&values) {
                Some(result) => result.clone(),
                None => {
                    let result = self.answer(&values, &reservation).await?;
                    known.insert(values, result.clone());
                    result
                }
            };
            results.push(result);
        }
        if results.is_empty() {
            return Ok(ColumnarValue::Array(datafusion::arrow::array::new_empty_array(&self.result)));
        }
        Ok(ColumnarValue::Array(ScalarValue::iter_to_array(results)?))
    }
}

impl Apart {
    /// All rows of a plan, within the memory of the query. They are held several times until they are one value.
    async fn collect(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        reservation: &MemoryReservation,
    ) -> Result<Vec<RecordBatch>, DataFusionError> {
        let mut stream = execute_stream(plan, Arc::clone(&self.runner.context))?;
        let mut batches = Vec::new();
        while let Some(batch) = stream.try_next().await? {
            reservation.try_grow(batch.get_array_memory_size().saturating_mul(3))?;
            batches.push(batch);
        }
        Ok(batches)
    }

    /// Runs the subquery with these values for the columns from outside.
    async fn answer(
        &self,
        values: &[ScalarValue],
        reservation: &MemoryReservation,
    ) -> Result<ScalarValue, DataFusionError> {
        let plan = run_apart(filled_in(self.plan.clone(), &self.columns, values)?, &self.runner)?.data;
        let plan = self.runner.state.create_physical_plan(&plan).await?;
        let batches = self.collect(plan, reservation).await?;
        if let Mode::Rows { kept } = self.mode {
            return self.rows(&batches, kept);
        }
        let mut rows = Vec::new();
        for batch in batches {
            for row in 0..batch.num_rows() {
                rows.push(match batch.columns().first() {
                    Some(column) => ScalarValue::try_from_array(column, row)?,
                    None => ScalarValue::Null,
                });
            }
        }
        match self.mode {
            Mode::Rows { .. } => ScalarValue::try_from(&self.result),
            Mode::Exists => Ok(ScalarValue::Boolean(Some(!rows.is_empty()))),
            Mode::Array => Ok(ScalarValue::List(ScalarValue::new_list_nullable(&rows, &self.value))),
            Mode::In => {
                let wanted = values.last().unwrap_or(&ScalarValue::Null).cast_to(&self.value)?;
                let unknown = !rows.is_empty() && (wanted.is_null() || rows.iter().any(ScalarValue::is_null));
                Ok(ScalarValue::Boolean(if !wanted.is_null() && rows.contains(&wanted) {
                    Some(true)
                } else {
                    (!unknown).then_some(false)
                }))
            }
            Mode::Scalar if rows.len() > 1 => {
                let message = "more than one row returned by a subquery used as an expression";
                let error = QueryError::new(SqlState::CardinalityViolation, message);
                Err(DataFusionError::External(Box::new(error)))
            }
            Mode::Scalar => match rows.pop() {
                Some(value) => Ok(value),
                None => ScalarValue::try_from(&self.value),
            },
        }
    }
}

impl Apart {
    /// The rows as one list.
    fn rows(&self, batches: &[RecordBatch], kept: bool) -> Result<ScalarValue, DataFusionError> {
        let DataType::Struct(fields) = &self.value else { return ScalarValue::try_from(&self.result) };
        let count: usize = batches.iter().map(RecordBatch::num_rows).sum();
        if count == 0 && kept {
            return ScalarValue::try_from(&self.result);
        }
        let mut columns = Vec::with_capacity(fields.len());
        for (index, field) in fields.iter().enumerate() {
            let parts = batches.iter().filter_map(|batch| batch.columns().get(index));
            let parts = parts.map(|part| cast(part, field.data_type())).collect::<Result<Vec<_>, _>>()?;
            let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
            columns.push(if parts.is_empty() { new_empty_array(field.data_type()) } else { concat(&parts)? });
        }
        let values = StructArray::try_new_with_length(fields.clone(), columns, None, count)?;
        let item = Arc::new(Field::new_list_field(self.value.clone(), true));
        let list = ListArray::try_new(item, OffsetBuffer::from_lengths([count]), Arc::new(values), None)?;
        Ok(ScalarValue::List(Arc::new(list)))
    }
}

/// The plan with values in the place of columns from outside, in its own subqueries too.
fn filled_in(plan: LogicalPlan, columns: &[Column], values: &[ScalarValue]) -> Result<LogicalPlan, DataFusionError> {
    let value_of = |expression: &Expr| match expression {
        Expr::OuterReferenceColumn(_, column) => {
            let index = columns.iter().position(|own| own == column)?;
            values.get(index).cloned()
        }
        _ => None,
    };
    let filled = plan.transform_down_with_subqueries(|node| {
        // What was lateral is a plain input once it takes nothing from outside.
        let mut node = node;
        while let LogicalPlan::Subquery(subquery) = node {
            node = Arc::unwrap_or_clone(subquery.subquery);
        }
        rewritten(node, |expression| {
            Ok(match value_of(&expression) {
                Some(value) => Transformed::yes(Expr::Literal(value, None)),
                None => match expression {
                    Expr::ScalarSubquery(subquery) => {
                        Transformed::yes(Expr::ScalarSubquery(without(subquery, columns)))
                    }
                    other => Transformed::no(other),
                },
            })
        })
    })?;
    Ok(filled.data)
}

/// A subquery that does not take these columns from outside any more.
fn without(mut subquery: Subquery, columns: &[Column]) -> Subquery {
    subquery
        .outer_ref_columns
        .retain(|expression| !matches!(expression, Expr::OuterReferenceColumn(_, column) if columns.contains(column)));
    subquery
}

/// Stands for `ARRAY(SELECT ...)` until [`run_apart`] has seen it.
pub(super) fn array_function() -> datafusion::logical_expr::ScalarUDF {
    datafusion::logical_expr::ScalarUDF::new_from_impl(ArrayOf { signature: Signature::any(1, Volatility::Stable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ArrayOf {
    signature: Signature,
}

impl ScalarUDFImpl for ArrayOf {
    fn name(&self) -> &str {
        ARRAY
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType, DataFusionError> {
        let value = arguments.first().cloned().unwrap_or(DataType::Null);
        Ok(DataType::List(Arc::new(Field::new_list_field(value, true))))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue, DataFusionError> {
        Err(DataFusionError::NotImplemented("ARRAY(SELECT ...) in this place is not supported".to_owned()))
    }
}
