//! Functions whose result can be far larger than what they are given. What a query reads counts against its memory limit;
//! a value that `repeat` makes would not, so these functions count what they make, and refuse before they make too much.
//! They are not kept in plans: what they count with is the session's.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array, StringArray};
use datafusion::arrow::compute::{cast, kernels::length::length};
use datafusion::arrow::datatypes::{
    DataType, FieldRef, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::DataFusionError;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use sqlparser::ast::BinaryOperator;

use super::QueryError;
use crate::error::SqlState;

/// What one call may make, over all rows of a batch.
const CALL_BYTES_MAX: u64 = 16 << 20;

/// What the functions of a statement may still make, in bytes.
#[derive(Debug, Default)]
pub(super) struct Budget(AtomicU64);

impl Budget {
    /// A statement begins.
    pub(super) fn begin(&self, bytes: usize) {
        self.0.store(u64::try_from(bytes).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn spend(&self, bytes: u64, function: &str) -> Result<(), DataFusionError> {
        let taken = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        taken.map(drop).map_err(|_| too_much(function, "The setting query_memory_bytes_max sets this limit."))
    }
}

fn too_much(function: &str, hint: &str) -> DataFusionError {
    DataFusionError::External(Box::new(QueryError {
        hint: Some(hint.to_owned()),
        ..QueryError::new(SqlState::OutOfMemory, format!("the result of {function} is too large"))
    }))
}

/// How many bytes a call would make at the most.
type Estimate = fn(&[ColumnarValue]) -> Result<u64, DataFusionError>;

/// A function and what it would make.
const BOUNDED: &[(&str, Estimate)] = &[
    ("repeat", |arguments| per_row([bytes(arguments, 0)?, number(arguments, 1)?], |[text, times]| text * times)),
    // A character has at most four bytes.
    ("lpad", |arguments| per_row([number(arguments, 1)?], |[characters]| characters * 4.0)),
    ("rpad", |arguments| per_row([number(arguments, 1)?], |[characters]| characters * 4.0)),
    ("replace", |arguments| {
        let sizes = [bytes(arguments, 0)?, bytes(arguments, 1)?, bytes(arguments, 2)?];
        per_row(sizes, |[text, from, to]| text + (text / from.max(1.0) + 1.0) * to)
    }),
    ("regexp_replace", |arguments| {
        per_row([bytes(arguments, 0)?, bytes(arguments, 2)?], |[text, to]| text + (text + 1.0) * to)
    }),
    ("encode", |arguments| per_row([bytes(arguments, 0)?], |[value]| value * 2.0)),
    ("array_to_string", |arguments| {
        per_row([bytes(arguments, 0)?, bytes(arguments, 1)?], |[list, between]| list + list * between)
    }),
    ("array_repeat", |arguments| {
        per_row([bytes(arguments, 0)?, number(arguments, 1)?], |[element, times]| (element + 8.0) * times)
    }),
    ("array_resize", |arguments| per_row([number(arguments, 1)?], |[elements]| elements * 16.0)),
    // No larger than what they are given; a chain of them doubles, and each link counts.
    ("array_concat", |_| Ok(0)),
    ("array_append", |_| Ok(0)),
    ("array_prepend", |_| Ok(0)),
    ("make_array", |_| Ok(0)),
    ("concat", |_| Ok(0)),
    ("concat_ws", |_| Ok(0)),
    ("range", series),
    ("generate_series", series),
];

/// The numbers from the first to the second argument by steps of the third; or the moments.
fn series(arguments: &[ColumnarValue]) -> Result<u64, DataFusionError> {
    if matches!(arguments.first().map(ColumnarValue::data_type), Some(DataType::Timestamp(..))) {
        let moments = [nanoseconds(arguments, 0)?, nanoseconds(arguments, 1)?, nanoseconds(arguments, 2)?];
        return per_row(moments, |[start, stop, step]| ((stop - start).abs() / step.abs().max(1.0) + 1.0) * 8.0);
    }
    let (one, two) = (signed(arguments, 0)?, signed(arguments, 1)?);
    match arguments.len() {
        0 | 1 => per_row([one], |[stop]| stop.abs() * 8.0),
        2 => per_row([one, two], |[start, stop]| ((stop - start).abs() + 1.0) * 8.0),
        _ => per_row([one, two, signed(arguments, 2)?], |[start, stop, step]| {
            ((stop - start).abs() / step.abs().max(1.0) + 1.0) * 8.0
        }),
    }
}

/// Sums over all rows; each column has a value for each row, or one for all.
fn per_row<const N: usize>(columns: [Vec<f64>; N], of: impl Fn([f64; N]) -> f64) -> Result<u64, DataFusionError> {
    let rows = columns.iter().map(Vec::len).max().unwrap_or_default();
    let value = |column: &Vec<f64>, row| column.get(row).or(column.first()).copied().unwrap_or_default();
    let sum: f64 = (0..rows).map(|row| of(columns.each_ref().map(|column| value(column, row))).max(0.0)).sum();
    // A number that is too large for the type is the largest one.
    Ok(sum as u64)
}

fn array(arguments: &[ColumnarValue], index: usize) -> Result<Option<ArrayRef>, DataFusionError> {
    match arguments.get(index) {
        None => Ok(None),
        Some(ColumnarValue::Array(array)) => Ok(Some(Arc::clone(array))),
        Some(ColumnarValue::Scalar(value)) => value.to_array_of_size(1).map(Some),
    }
}

/// The sizes of texts and lists in bytes; of everything else, eight.
fn bytes(arguments: &[ColumnarValue], index: usize) -> Result<Vec<f64>, DataFusionError> {
    let Some(array) = array(arguments, index)? else { return Ok(Vec::new()) };
    match array.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Binary | DataType::LargeBinary => {
            let lengths = cast(&length(&array)?, &DataType::Int64)?;
            Ok(values(lengths.as_primitive()))
        }
        DataType::Null => Ok(vec![0.0]),
        _ if array.is_empty() => Ok(Vec::new()),
        _ => Ok(vec![array.get_array_memory_size() as f64 / array.len() as f64]),
    }
}

fn number(arguments: &[ColumnarValue], index: usize) -> Result<Vec<f64>, DataFusionError> {
    Ok(signed(arguments, index)?.into_iter().map(|number| number.max(0.0)).collect())
}

fn signed(arguments: &[ColumnarValue], index: usize) -> Result<Vec<f64>, DataFusionError> {
    let Some(array) = array(arguments, index)? else { return Ok(Vec::new()) };
    if !array.data_type().is_numeric() && !array.data_type().is_null() {
        return Err(DataFusionError::NotImplemented("a series of this type in an expression".to_owned()));
    }
    Ok(values(cast(&array, &DataType::Int64)?.as_primitive::<Int64Type>()))
}

/// Moments and lengths of time in nanoseconds, about.
fn nanoseconds(arguments: &[ColumnarValue], index: usize) -> Result<Vec<f64>, DataFusionError> {
    const DAY: f64 = 86_400e9;
    let Some(array) = array(arguments, index)? else { return Ok(Vec::new()) };
    match array.data_type() {
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let length = |value: Option<IntervalMonthDayNano>| {
                let value = value.unwrap_or_default();
                f64::from(value.months) * 28.0 * DAY + f64::from(value.days) * DAY + value.nanoseconds as f64
            };
            Ok(array.as_primitive::<IntervalMonthDayNanoType>().iter().map(length).collect())
        }
        _ => {
            let moments = cast(&array, &DataType::Timestamp(TimeUnit::Nanosecond, None))?;
            Ok(values(cast(&moments, &DataType::Int64)?.as_primitive::<Int64Type>()))
        }
    }
}

fn values(numbers: &Int64Array) -> Vec<f64> {
    numbers.iter().map(|number| number.unwrap_or_default() as f64).collect()
}

/// Puts bounds on the functions of a session.
pub(super) fn register(context: &SessionContext, budget: &Arc<Budget>) {
    for (name, estimate) in BOUNDED {
        if let Ok(inner) = context.udf(name) {
            context.register_udf(ScalarUDF::new_from_impl(Bounded::new(inner, *estimate, budget)));
        }
    }
    let concat = ScalarUDF::new_from_impl(TextConcat { signature: Signature::any(2, Volatility::Stable) });
    let concat = Bounded::new(Arc::new(concat), |_| Ok(0), budget);
    let planner = TextConcatPlanner(Arc::new(ScalarUDF::new_from_impl(concat)));
    // A session's state takes every planner.
    let _ = context.state_ref().write().register_expr_planner(Arc::new(planner));
}

/// A function that counts what it makes.
#[derive(Debug)]
struct Bounded {
    inner: Arc<ScalarUDF>,
    signature: Signature,
    estimate: Estimate,
    budget: Arc<Budget>,
}

impl Bounded {
    fn new(inner: Arc<ScalarUDF>, estimate: Estimate, budget: &Arc<Budget>) -> Self {
        let signature = Signature { volatility: Volatility::Stable, ..inner.signature().clone() };
        Self { inner, signature, estimate, budget: Arc::clone(budget) }
    }
}

/// All in one session count together, so that the function alone makes the difference.
impl PartialEq for Bounded {
    fn eq(&self, other: &Self) -> bool {
        self.inner == other.inner
    }
}

impl Eq for Bounded {}

impl Hash for Bounded {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
    }
}

impl ScalarUDFImpl for Bounded {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType, DataFusionError> {
        self.inner.return_type(types)
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef, DataFusionError> {
        self.inner.return_field_from_args(arguments)
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>, DataFusionError> {
        self.inner.coerce_types(types)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue, DataFusionError> {
        let estimate = (self.estimate)(&arguments.args)?;
        if estimate > CALL_BYTES_MAX {
            return Err(too_much(self.name(), "One call makes at most 16 MiB."));
        }
        let made = self.inner.invoke_with_args(arguments)?;
        let size = match &made {
            ColumnarValue::Array(array) => array.get_array_memory_size(),
            ColumnarValue::Scalar(value) => value.size(),
        };
        self.budget.spend(u64::try_from(size).unwrap_or(u64::MAX), self.name())?;
        Ok(made)
    }
}

/// `||` of texts, as a function that can be counted.
#[derive(Debug, PartialEq, Eq, Hash)]
struct TextConcat {
    signature: Signature,
}

impl ScalarUDFImpl for TextConcat {
    fn name(&self) -> &str {
        "||"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType, DataFusionError> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue, DataFusionError> {
        let all_scalar = arguments.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        let rows = if all_scalar { 1 } else { arguments.number_rows };
        let text = |index: usize| -> Result<ArrayRef, DataFusionError> {
            let value = arguments
                .args
                .get(index)
                .map_or(Ok(ScalarValue::Utf8(None).to_array_of_size(rows)?), |value| value.to_array(rows))?;
            Ok(cast(&value, &DataType::Utf8)?)
        };
        let (left, right) = (text(0)?, text(1)?);
        let pairs = left.as_string::<i32>().iter().zip(right.as_string::<i32>());
        let joined: StringArray =
            pairs.map(|(left, right)| left.zip(right).map(|(left, right)| [left, right].concat())).collect();
        if all_scalar {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&joined, 0)?));
        }
        Ok(ColumnarValue::Array(Arc::new(joined)))
    }
}

/// Reads `||` of texts as [`TextConcat`]; that of lists is left as it is.
#[derive(Debug)]
struct TextConcatPlanner(Arc<ScalarUDF>);

impl ExprPlanner for TextConcatPlanner {
    fn plan_binary_op(
        &self,
        expression: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>, DataFusionError> {
        let is_text = |side: &Expr| {
            side.get_type(schema)
                .is_ok_and(|kind| matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View))
        };
        let is_list = |side: &Expr| side.get_type(schema).is_ok_and(|kind| kind.is_nested());
        let (left, right) = (&expression.left, &expression.right);
        let texts = (is_text(left) || is_text(right)) && !is_list(left) && !is_list(right);
        if expression.op == BinaryOperator::StringConcat {
            super::widths::forbid_joining(left, right, schema)?;
        }
        if expression.op != BinaryOperator::StringConcat || !texts || has_placeholder(left) || has_placeholder(right) {
            return Ok(PlannerResult::Original(expression));
        }
        Ok(PlannerResult::Planned(self.0.call(vec![expression.left, expression.right])))
    }
}

/// The planner finds the type of a parameter only beside an operator of its own.
fn has_placeholder(side: &Expr) -> bool {
    matches!(side, Expr::Placeholder(_))
}
