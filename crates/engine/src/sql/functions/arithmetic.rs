//! Arithmetic that is checked, as PostgreSQL's: an overflow or a division by zero is an error, for every type.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Decimal256Array, Float64Array};
use datafusion::arrow::compute::kernels::numeric;
use datafusion::arrow::compute::{CastOptions, cast, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Decimal256Type, Field, FieldRef, Float64Type, i256};
use datafusion::common::utils::take_function_args;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{
    ColumnarValue, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use crate::error::SqlState;
use crate::sql::error::QueryError;

type Result<T> = std::result::Result<T, DataFusionError>;

/// The digits behind the point of a quotient; [`crate::sql::cells`] shows so many as PostgreSQL would.
pub(in crate::sql) const QUOTIENT: DataType = DataType::Decimal256(76, 20);

/// One operator between two numbers.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::sql) struct Arithmetic {
    operator: Operator,
    signature: Signature,
}

impl Arithmetic {
    /// `+`, `-`, `*`, `/` or `%`.
    pub(in crate::sql) fn new(operator: Operator) -> Self {
        Self { operator, signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Arithmetic {
    fn name(&self) -> &str {
        match self.operator {
            Operator::Plus => "plus",
            Operator::Minus => "minus",
            Operator::Multiply => "times",
            Operator::Divide => "divided by",
            _ => "modulo",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, kinds: &[DataType]) -> Result<Vec<DataType>> {
        let [left, right] = take_function_args(self.name(), kinds)?;
        let (left, right) = operands(left, right);
        Ok(vec![left, right])
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        let [left, right] = take_function_args(self.name(), kinds)?;
        let (left, right) = operands(left, right);
        Ok(match (&left, &right) {
            (DataType::Decimal256(..), _) if self.operator == Operator::Divide => QUOTIENT,
            (DataType::Decimal128(..), _) if self.operator == Operator::Divide => QUOTIENT,
            (DataType::Decimal128(_, a), DataType::Decimal128(_, b)) => match self.operator {
                Operator::Multiply => DataType::Decimal128(38, a + b),
                _ => DataType::Decimal128(38, *a.max(b)),
            },
            (DataType::Decimal256(_, a), DataType::Decimal256(_, b)) => match self.operator {
                Operator::Multiply => DataType::Decimal256(76, a + b),
                _ => DataType::Decimal256(76, *a.max(b)),
            },
            _ => left,
        })
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let kinds: Vec<DataType> = arguments.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        Ok(Arc::new(Field::new(self.name(), self.return_type(&kinds)?, true)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let kind = arguments.return_field.data_type().clone();
        let single = arguments.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        let arrays = ColumnarValue::values_to_arrays(&arguments.args)?;
        let [left, right] = take_function_args(self.name(), arrays)?;
        let (left_kind, right_kind) = operands(left.data_type(), right.data_type());
        let (left, right) = (fitting(&left, &left_kind)?, fitting(&right, &right_kind)?);
        let answer = match self.operator {
            Operator::Divide if kind.is_decimal() => quotients(&left, &right)?,
            _ => self.kernel(&left, &right, &kind)?,
        };
        let answer = fitting(&answer, &kind)?;
        check_digits(&answer)?;
        Ok(if single {
            ColumnarValue::Scalar(datafusion::common::ScalarValue::try_from_array(&answer, 0)?)
        } else {
            ColumnarValue::Array(answer)
        })
    }
}

impl Arithmetic {
    fn kernel(&self, left: &ArrayRef, right: &ArrayRef, kind: &DataType) -> Result<ArrayRef> {
        if matches!(self.operator, Operator::Divide | Operator::Modulo) && kind.is_floating() {
            forbid_zero(right)?;
        }
        let answer = match self.operator {
            Operator::Plus => numeric::add(left, right),
            Operator::Minus => numeric::sub(left, right),
            Operator::Multiply => numeric::mul(left, right),
            Operator::Divide => numeric::div(left, right),
            _ => numeric::rem(left, right),
        };
        let answer = answer.map_err(|error| match error {
            datafusion::arrow::error::ArrowError::DivideByZero => error.into(),
            _ => mistake(SqlState::NumberOutOfRange, out_of_range(kind)),
        })?;
        if kind.is_floating() {
            forbid_infinite(left, right, &answer)?;
        }
        Ok(answer)
    }
}

/// The same values as another type, which must hold them.
fn fitting(array: &ArrayRef, kind: &DataType) -> Result<ArrayRef> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(array, kind, &options).map_err(|error| match kind.is_decimal() {
        true => mistake(SqlState::NumberOutOfRange, out_of_range(kind)),
        false => error.into(),
    })
}

/// A decimal can be counted beyond the digits that it shows.
fn check_digits(array: &ArrayRef) -> Result<()> {
    let checked = match array.data_type() {
        DataType::Decimal128(precision, _) => {
            array.as_primitive::<Decimal128Type>().validate_decimal_precision(*precision)
        }
        DataType::Decimal256(precision, _) => {
            array.as_primitive::<Decimal256Type>().validate_decimal_precision(*precision)
        }
        _ => Ok(()),
    };
    checked.map_err(|_| mistake(SqlState::NumberOutOfRange, out_of_range(array.data_type())))
}

fn mistake(sqlstate: SqlState, message: &str) -> DataFusionError {
    DataFusionError::External(Box::new(QueryError::new(sqlstate, message)))
}

fn out_of_range(kind: &DataType) -> &'static str {
    match kind {
        DataType::Int16 => "smallint out of range",
        DataType::Int32 => "integer out of range",
        DataType::Int64 => "bigint out of range",
        kind if kind.is_decimal() => "value overflows numeric format",
        _ => "value out of range: overflow",
    }
}

fn doubles(array: &ArrayRef) -> Result<Float64Array> {
    Ok(cast(array, &DataType::Float64)?.as_primitive::<Float64Type>().clone())
}

fn forbid_zero(right: &ArrayRef) -> Result<()> {
    if doubles(right)?.iter().any(|value| value == Some(0.0)) {
        return Err(mistake(SqlState::DivisionByZero, "division by zero"));
    }
    Ok(())
}

fn forbid_infinite(left: &ArrayRef, right: &ArrayRef, answer: &ArrayRef) -> Result<()> {
    let (left, right, answer) = (doubles(left)?, doubles(right)?, doubles(answer)?);
    let finite = |value: Option<f64>| value.is_none_or(f64::is_finite);
    let arose = left.iter().zip(right.iter()).zip(answer.iter());
    for ((left, right), answer) in arose {
        if finite(left) && finite(right) && !finite(answer) {
            return Err(mistake(SqlState::NumberOutOfRange, "value out of range: overflow"));
        }
    }
    Ok(())
}

/// The types that two numbers are calculated in.
fn operands(left: &DataType, right: &DataType) -> (DataType, DataType) {
    let (left, right) = match (left.is_null(), right.is_null()) {
        (true, true) => (&DataType::Int32, &DataType::Int32),
        (true, false) => (right, right),
        (false, true) => (left, left),
        (false, false) => (left, right),
    };
    if left.is_floating() || right.is_floating() {
        let single = left == right && *left == DataType::Float32;
        let kind = if single { DataType::Float32 } else { DataType::Float64 };
        return (kind.clone(), kind);
    }
    if left.is_decimal() || right.is_decimal() {
        let (left, right) = (scale(left), scale(right));
        return match left.0 || right.0 || left.1.saturating_add(right.1) > 28 {
            true => (DataType::Decimal256(76, left.1), DataType::Decimal256(76, right.1)),
            false => (DataType::Decimal128(38, left.1), DataType::Decimal128(38, right.1)),
        };
    }
    let kind = match width(left).max(width(right)) {
        0 => DataType::Int16,
        1 => DataType::Int32,
        _ => DataType::Int64,
    };
    (kind.clone(), kind)
}

/// Whether it needs the wider decimals, and the digits behind its point.
fn scale(kind: &DataType) -> (bool, i8) {
    match kind {
        DataType::Decimal256(_, scale) => (true, *scale.max(&0)),
        // `1e3` has fewer digits than none behind its point.
        DataType::Decimal128(_, scale) | DataType::Decimal64(_, scale) | DataType::Decimal32(_, scale) => {
            (false, *scale.max(&0))
        }
        _ => (false, 0),
    }
}

fn width(kind: &DataType) -> u8 {
    match kind {
        DataType::Int8 | DataType::Int16 | DataType::UInt8 => 0,
        DataType::Int32 | DataType::UInt16 => 1,
        _ => 2,
    }
}

/// Quotients of decimals with the digits of [`QUOTIENT`], rounded half away from zero.
fn quotients(left: &ArrayRef, right: &ArrayRef) -> Result<ArrayRef> {
    let (left_scale, right_scale) = (scale(left.data_type()).1, scale(right.data_type()).1);
    let wide = |array: &ArrayRef, scale| cast(array, &DataType::Decimal256(76, scale));
    let (left, right) = (wide(left, left_scale)?, wide(right, right_scale)?);
    let (left, right) = (left.as_primitive::<Decimal256Type>(), right.as_primitive::<Decimal256Type>());
    let shift = 20 + i32::from(right_scale) - i32::from(left_scale);
    let values = left.iter().zip(right.iter()).map(|(left, right)| {
        let (Some(left), Some(right)) = (left, right) else { return Ok(None) };
        quotient(left, right, shift).map(Some)
    });
    let values: Vec<Option<i256>> = values.collect::<Result<_>>()?;
    Ok(Arc::new(Decimal256Array::from(values).with_precision_and_scale(76, 20)?))
}

fn quotient(left: i256, right: i256, shift: i32) -> Result<i256> {
    let overflow = || mistake(SqlState::NumberOutOfRange, "value overflows numeric format");
    if right == i256::ZERO {
        return Err(mistake(SqlState::DivisionByZero, "division by zero"));
    }
    let power = |exponent: u32| i256::from_i128(10).checked_pow(exponent).ok_or_else(overflow);
    let exponent = shift.unsigned_abs();
    let (left, right) = if shift >= 0 {
        (left.checked_mul(power(exponent)?).ok_or_else(overflow)?, right)
    } else {
        (left, right.checked_mul(power(exponent)?).ok_or_else(overflow)?)
    };
    let (whole, rest) = (left.wrapping_div(right), left.wrapping_rem(right));
    let doubled = rest.wrapping_abs().checked_mul(i256::from_i128(2)).ok_or_else(overflow)?;
    if doubled < right.wrapping_abs() {
        return Ok(whole);
    }
    let away = if (left < i256::ZERO) == (right < i256::ZERO) { i256::ONE } else { i256::MINUS_ONE };
    Ok(whole.wrapping_add(away))
}

/// A number without its fraction: what casts to integers take. Floats round half to even, decimals half away from zero.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::sql) struct Rounded {
    signature: Signature,
}

impl Rounded {
    pub(in crate::sql) fn new() -> Self {
        Self { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Rounded {
    fn name(&self) -> &str {
        "rounded"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, kinds: &[DataType]) -> Result<Vec<DataType>> {
        Ok(kinds.to_vec())
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        let [kind] = take_function_args(self.name(), kinds)?;
        Ok(if kind.is_decimal() { DataType::Decimal256(76, 0) } else { DataType::Float64 })
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let kind = arguments.return_field.data_type().clone();
        let [argument] = take_function_args(self.name(), arguments.args)?;
        let array = cast(&argument.to_array(arguments.number_rows)?, &kind)?;
        let answer: ArrayRef = match kind {
            DataType::Float64 => {
                Arc::new(array.as_primitive::<Float64Type>().unary::<_, Float64Type>(f64::round_ties_even))
            }
            _ => array,
        };
        Ok(ColumnarValue::Array(answer))
    }
}

/// What `avg` ends with: a sum divided by a count, numeric unless it is of floats.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::sql) struct Average {
    signature: Signature,
}

impl Average {
    pub(in crate::sql) fn new() -> Self {
        Self { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Average {
    fn name(&self) -> &str {
        "average"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, kinds: &[DataType]) -> Result<Vec<DataType>> {
        Ok(kinds.to_vec())
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        let [sum, _count] = take_function_args(self.name(), kinds)?;
        Ok(if sum.is_floating() { DataType::Float64 } else { QUOTIENT })
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let kind = arguments.return_field.data_type().clone();
        let arrays = ColumnarValue::values_to_arrays(&arguments.args)?;
        let [sum, count] = take_function_args(self.name(), arrays)?;
        // Nothing was summed where the count is zero.
        let nothing = datafusion::arrow::compute::is_null(&sum)?;
        let count = datafusion::arrow::compute::nullif(&count, &nothing)?;
        if kind.is_floating() {
            let (sum, count) = (cast(&sum, &DataType::Float64)?, cast(&count, &DataType::Float64)?);
            return Ok(ColumnarValue::Array(numeric::div(&sum, &count)?));
        }
        let sum = if sum.data_type().is_decimal() { sum } else { cast(&sum, &DataType::Decimal128(38, 0))? };
        let count = cast(&count, &DataType::Decimal128(38, 0))?;
        Ok(ColumnarValue::Array(quotients(&sum, &count)?))
    }
}
