//! Values between DataFusion's columns and the rows of the protocol.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, ListArray, RecordBatch};
use datafusion::arrow::datatypes::{
    DataType, Date32Type, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType, DurationSecondType,
    Field, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, IntervalMonthDayNanoType, IntervalUnit,
    Time64MicrosecondType, Time64NanosecondType, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::ScalarValue;

use super::convert::Place;
use super::error::QueryError;
use super::printed::in_postgresql_s_digits;
use crate::error::SqlState;
use crate::tables::PG_TYPE;

/// The types that results and parameters have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "PostgreSQL's names of its types")]
pub enum PgType {
    Bool,
    Int2,
    Int4,
    Int8,
    Float4,
    Float8,
    Numeric,
    Text,
    Varchar,
    Bytea,
    Date,
    Timestamp,
    Timestamptz,
    Time,
    Interval,
    Inet,
    Cidr,
    Bpchar,
    Oid,
    Name,
    Char,
    Json,
    Jsonb,
    TextArray,
    VarcharArray,
    NameArray,
    CharArray,
    NumericArray,
    Float4Array,
    Float8Array,
    BoolArray,
    Int2Array,
    Int4Array,
    Int8Array,
    OidArray,
    Int2Vector,
    OidVector,
}

/// One value of a result or parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Scalar {
    /// NULL.
    Null,
    /// A truth.
    Bool(bool),
    /// An integer of any width.
    Int(i64),
    /// Single precision, kept apart since its text is shorter.
    Float4(f32),
    /// Double precision.
    Float8(f64),
    /// Text, and every type that is sent as text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// Days since 1970-01-01.
    Date(i32),
    /// Microseconds since 1970-01-01, or since midnight where the type is a time of day.
    Time(i64),
    /// An interval: its parts do not turn into each other.
    #[expect(missing_docs, reason = "the names say it")]
    Interval { months: i32, days: i32, microseconds: i64 },
    /// A one-dimensional array of texts.
    Texts(Vec<Option<String>>),
    /// A one-dimensional array of integers.
    Ints(Vec<Option<i64>>),
}

impl Scalar {
    /// About how much memory it takes, in bytes.
    pub fn bytes(&self) -> usize {
        let more = match self {
            Self::Text(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
            Self::Texts(texts) => {
                texts.iter().map(|text| size_of::<Option<String>>() + text.as_ref().map_or(0, String::len)).sum()
            }
            Self::Ints(numbers) => size_of::<Option<i64>>() * numbers.len(),
            _ => 0,
        };
        size_of::<Self>() + more
    }
}

/// A value that a client binds to a parameter, and the type the parameter has.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// The value.
    pub value: Scalar,
    /// The parameter's type: what an expression gives depends on it, and clients were told.
    pub kind: PgType,
}

/// The PostgreSQL type of a result column.
pub(super) fn pg_type(field: &Field) -> PgType {
    match field.data_type() {
        DataType::Boolean => PgType::Bool,
        DataType::Int8 | DataType::Int16 | DataType::UInt8 => PgType::Int2,
        DataType::Int32 | DataType::UInt16 => PgType::Int4,
        DataType::UInt32 => PgType::Oid,
        DataType::Int64 | DataType::UInt64 => PgType::Int8,
        DataType::Float16 | DataType::Float32 => PgType::Float4,
        DataType::Float64 => PgType::Float8,
        DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) | DataType::Decimal256(..) => {
            PgType::Numeric
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => PgType::Bytea,
        DataType::Date32 => PgType::Date,
        DataType::Timestamp(_, None) => PgType::Timestamp,
        DataType::Timestamp(_, Some(_)) => PgType::Timestamptz,
        DataType::Time64(_) => PgType::Time,
        DataType::Interval(_) | DataType::Duration(_) => PgType::Interval,
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => array_type(field, item),
        _ => match told(field) {
            "varchar" => PgType::Varchar,
            "name" => PgType::Name,
            "char" => PgType::Char,
            "inet" => PgType::Inet,
            "cidr" => PgType::Cidr,
            "bpchar" => PgType::Bpchar,
            "json" => PgType::Json,
            "jsonb" => PgType::Jsonb,
            _ => PgType::Text,
        },
    }
}

/// What PostgreSQL tells of a type besides its number: how long its texts may be, how many digits its numbers have.
pub(super) fn modifier(field: &Field) -> i32 {
    let told = super::kinds::length(field).and_then(|told| i32::try_from(told).ok());
    let Some(told) = told else { return -1 };
    match field.data_type() {
        DataType::Timestamp(..) | DataType::Time64(_) | DataType::Interval(_) => told,
        // PostgreSQL counts the bytes of a length.
        _ => told.saturating_add(4),
    }
}

/// What the field itself says of its PostgreSQL type, where several look alike to DataFusion.
fn told(field: &Field) -> &str {
    field.metadata().get(PG_TYPE).map_or("", String::as_str)
}

fn array_type(field: &Field, item: &Field) -> PgType {
    match item.data_type() {
        DataType::Boolean => PgType::BoolArray,
        DataType::Int8 | DataType::Int16 | DataType::UInt8 if told(field) == "int2vector" => PgType::Int2Vector,
        DataType::Int8 | DataType::Int16 | DataType::UInt8 => PgType::Int2Array,
        DataType::Int32 | DataType::UInt16 => PgType::Int4Array,
        DataType::UInt32 if told(field) == "oidvector" => PgType::OidVector,
        DataType::UInt32 => PgType::OidArray,
        DataType::Int64 | DataType::UInt64 => PgType::Int8Array,
        DataType::Float32 => PgType::Float4Array,
        DataType::Float64 => PgType::Float8Array,
        kind if kind.is_decimal() => PgType::NumericArray,
        _ if told(field) == "varchar[]" || told(item) == "varchar" => PgType::VarcharArray,
        _ if told(field) == "char[]" || told(item) == "char" => PgType::CharArray,
        _ if told(field) == "name[]" || told(item) == "name" => PgType::NameArray,
        _ => PgType::TextArray,
    }
}

/// A NULL of a type, for planning.
pub(super) fn null_of(kind: PgType) -> ScalarValue {
    match kind {
        PgType::Bool => ScalarValue::Boolean(None),
        PgType::Int2 => ScalarValue::Int16(None),
        PgType::Int4 => ScalarValue::Int32(None),
        PgType::Int8 => ScalarValue::Int64(None),
        PgType::Float4 => ScalarValue::Float32(None),
        PgType::Float8 => ScalarValue::Float64(None),
        PgType::Numeric => ScalarValue::Decimal128(None, 38, 10),
        PgType::Bytea => ScalarValue::Binary(None),
        PgType::Date => ScalarValue::Date32(None),
        PgType::Timestamp => ScalarValue::TimestampMicrosecond(None, None),
        PgType::Timestamptz => ScalarValue::TimestampMicrosecond(None, Some("+00:00".into())),
        PgType::Oid => ScalarValue::UInt32(None),
        PgType::Text
        | PgType::Varchar
        | PgType::Interval
        | PgType::Time
        | PgType::Inet
        | PgType::Cidr
        | PgType::Bpchar
        | PgType::Name
        | PgType::Char
        | PgType::Json
        | PgType::Jsonb => ScalarValue::Utf8(None),
        PgType::TextArray | PgType::VarcharArray | PgType::NameArray | PgType::CharArray | PgType::NumericArray => {
            list_of(DataType::Utf8)
        }
        PgType::Float4Array | PgType::Float8Array => list_of(DataType::Utf8),
        PgType::BoolArray => list_of(DataType::Boolean),
        PgType::Int2Array | PgType::Int2Vector => list_of(DataType::Int16),
        PgType::Int4Array => list_of(DataType::Int32),
        PgType::Int8Array => list_of(DataType::Int64),
        PgType::OidArray | PgType::OidVector => list_of(DataType::UInt32),
    }
}

/// A NULL that is a list of such items.
fn list_of(item: DataType) -> ScalarValue {
    ScalarValue::List(Arc::new(ListArray::new_null(Arc::new(Field::new_list_field(item, true)), 1)))
}

/// A parameter's value as DataFusion takes it.
/// A parameter as DataFusion has it.
pub(super) fn bound(parameter: &Parameter) -> Result<ScalarValue, QueryError> {
    let value = to_value(&parameter.value);
    if matches!(parameter.value, Scalar::Interval { .. }) {
        return Ok(value);
    }
    if let (PgType::Numeric, Scalar::Text(text)) = (parameter.kind, &parameter.value) {
        return exact(text);
    }
    Ok(value.cast_to(&null_of(parameter.kind).data_type())?)
}

/// A number with the digits that it was sent with.
fn exact(text: &str) -> Result<ScalarValue, QueryError> {
    let digits = super::printed::plain_digits(text.trim()).ok_or_else(|| super::moments::invalid("numeric", text))?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    let overflow = || QueryError::new(SqlState::NumberOutOfRange, "value overflows numeric format");
    let scale = i8::try_from(fraction.len()).ok().filter(|scale| *scale <= 38).ok_or_else(overflow)?;
    let unscaled: i128 = format!("{whole}{fraction}").parse().map_err(|_| overflow())?;
    if unscaled.unsigned_abs() >= 10u128.pow(38) {
        return Err(overflow());
    }
    Ok(ScalarValue::Decimal128(Some(unscaled), 38, scale))
}

fn to_value(scalar: &Scalar) -> ScalarValue {
    match scalar {
        Scalar::Null => ScalarValue::Null,
        Scalar::Bool(value) => ScalarValue::Boolean(Some(*value)),
        Scalar::Int(value) => ScalarValue::Int64(Some(*value)),
        Scalar::Float4(value) => ScalarValue::Float32(Some(*value)),
        Scalar::Float8(value) => ScalarValue::Float64(Some(*value)),
        Scalar::Text(value) => ScalarValue::Utf8(Some(value.clone())),
        Scalar::Bytes(value) => ScalarValue::Binary(Some(value.clone())),
        Scalar::Date(value) => ScalarValue::Date32(Some(*value)),
        Scalar::Time(value) => ScalarValue::TimestampMicrosecond(Some(*value), Some("+00:00".into())),
        Scalar::Interval { months, days, microseconds } => ScalarValue::IntervalMonthDayNano(Some(
            IntervalMonthDayNanoType::make_value(*months, *days, microseconds.saturating_mul(1_000)),
        )),
        Scalar::Texts(values) => ScalarValue::List(ScalarValue::new_list(
            &values.iter().map(|value| ScalarValue::Utf8(value.clone())).collect::<Vec<_>>(),
            &DataType::Utf8,
            true,
        )),
        Scalar::Ints(values) => ScalarValue::List(ScalarValue::new_list(
            &values.iter().map(|value| ScalarValue::Int64(*value)).collect::<Vec<_>>(),
            &DataType::Int64,
            true,
        )),
    }
}

/// The rows of a batch.
pub(super) fn rows(batch: &RecordBatch, kinds: &[PgType]) -> Vec<Result<Vec<Scalar>, QueryError>> {
    (0..batch.num_rows())
        .map(|row| batch.columns().iter().zip(kinds).map(|(column, kind)| scalar(column, row, *kind)).collect())
        .collect()
}

fn scalar(column: &ArrayRef, row: usize, kind: PgType) -> Result<Scalar, QueryError> {
    if column.is_null(row) {
        return Ok(Scalar::Null);
    }
    Ok(match column.data_type() {
        DataType::Null => Scalar::Null,
        DataType::Boolean => Scalar::Bool(column.as_boolean().value(row)),
        DataType::Int8 => Scalar::Int(column.as_primitive::<Int8Type>().value(row).into()),
        DataType::Int16 => Scalar::Int(column.as_primitive::<Int16Type>().value(row).into()),
        DataType::Int32 => Scalar::Int(column.as_primitive::<Int32Type>().value(row).into()),
        DataType::Int64 => Scalar::Int(column.as_primitive::<Int64Type>().value(row)),
        DataType::UInt8 => Scalar::Int(column.as_primitive::<UInt8Type>().value(row).into()),
        DataType::UInt16 => Scalar::Int(column.as_primitive::<UInt16Type>().value(row).into()),
        DataType::UInt32 => Scalar::Int(column.as_primitive::<UInt32Type>().value(row).into()),
        DataType::UInt64 => Scalar::Int(
            i64::try_from(column.as_primitive::<UInt64Type>().value(row))
                .map_err(|_| QueryError::new(SqlState::NumberOutOfRange, "bigint out of range"))?,
        ),
        DataType::Float32 => Scalar::Float4(column.as_primitive::<Float32Type>().value(row)),
        DataType::Float64 => Scalar::Float8(column.as_primitive::<Float64Type>().value(row)),
        DataType::Utf8 => Scalar::Text(column.as_string::<i32>().value(row).to_owned()),
        DataType::LargeUtf8 => Scalar::Text(column.as_string::<i64>().value(row).to_owned()),
        DataType::Utf8View => Scalar::Text(column.as_string_view().value(row).to_owned()),
        DataType::Binary => Scalar::Bytes(column.as_binary::<i32>().value(row).to_owned()),
        DataType::Date32 => Scalar::Date(column.as_primitive::<Date32Type>().value(row)),
        DataType::Timestamp(unit, _) => Scalar::Time(microseconds(column, row, unit)?),
        DataType::Time64(TimeUnit::Microsecond) => {
            Scalar::Time(column.as_primitive::<Time64MicrosecondType>().value(row))
        }
        DataType::Time64(_) => Scalar::Time(column.as_primitive::<Time64NanosecondType>().value(row) / 1_000),
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => list(column, row, kind)?,
        kind if kind.is_decimal() => {
            let exact = ArrayFormatter::try_new(column, &FormatOptions::default())?.value(row).to_string();
            Scalar::Text(in_postgresql_s_digits(exact, kind))
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let value = column.as_primitive::<IntervalMonthDayNanoType>().value(row);
            Scalar::Interval { months: value.months, days: value.days, microseconds: value.nanoseconds / 1_000 }
        }
        DataType::Duration(unit) => duration(column, row, unit)?,
        _ => Scalar::Text(ArrayFormatter::try_new(column, &FormatOptions::default())?.value(row).to_string()),
    })
}

/// A quotient with as many digits as PostgreSQL gives it: at least sixteen that count, in groups of four.
pub(super) fn quotient(exact: &str) -> String {
    let Some((whole, fraction)) = exact.split_once('.') else { return exact.to_owned() };
    let digits = whole.trim_start_matches('-').trim_start_matches('0').len();
    let shown = match digits {
        0 => 20,
        count => 20usize.saturating_sub(count.div_ceil(4).saturating_mul(4)),
    };
    let Some((kept, rest)) = fraction.split_at_checked(shown) else { return exact.to_owned() };
    if rest.is_empty() {
        return exact.to_owned();
    }
    let up = rest.starts_with(|c: char| c >= '5');
    rounded(whole, kept, up)
}

/// Digits with the last one raised, or not.
pub(super) fn rounded(whole: &str, fraction: &str, up: bool) -> String {
    let mut digits: Vec<char> = format!("{whole}.{fraction}").chars().collect();
    let mut carry = up;
    for digit in digits.iter_mut().rev().filter(|c| c.is_ascii_digit()) {
        if !carry {
            break;
        }
        carry = *digit == '9';
        *digit = if carry { '0' } else { char::from_u32(u32::from(*digit) + 1).unwrap_or('9') };
    }
    let text: String = digits.into_iter().collect();
    let text = match (carry, text.strip_prefix('-')) {
        (false, _) => text,
        (true, Some(positive)) => format!("-1{positive}"),
        (true, None) => format!("1{text}"),
    };
    text.trim_end_matches('.').to_owned()
}

/// The time between two timestamps; PostgreSQL counts its days.
fn duration(column: &ArrayRef, row: usize, unit: &TimeUnit) -> Result<Scalar, QueryError> {
    let range = || QueryError::new(SqlState::DatetimeFieldOverflow, "interval out of range");
    let microseconds = match unit {
        TimeUnit::Second => column.as_primitive::<DurationSecondType>().value(row).checked_mul(1_000_000),
        TimeUnit::Millisecond => column.as_primitive::<DurationMillisecondType>().value(row).checked_mul(1_000),
        TimeUnit::Microsecond => Some(column.as_primitive::<DurationMicrosecondType>().value(row)),
        TimeUnit::Nanosecond => Some(column.as_primitive::<DurationNanosecondType>().value(row) / 1_000),
    }
    .ok_or_else(range)?;
    let days = i32::try_from(microseconds / MICROSECONDS_A_DAY).map_err(|_| range())?;
    Ok(Scalar::Interval { months: 0, days, microseconds: microseconds % MICROSECONDS_A_DAY })
}

const MICROSECONDS_A_DAY: i64 = 86_400_000_000;

fn microseconds(column: &ArrayRef, row: usize, unit: &TimeUnit) -> Result<i64, QueryError> {
    let range = || QueryError::new(SqlState::DatetimeFieldOverflow, "timestamp out of range");
    match unit {
        TimeUnit::Second => {
            column.as_primitive::<TimestampSecondType>().value(row).checked_mul(1_000_000).ok_or_else(range)
        }
        TimeUnit::Millisecond => {
            column.as_primitive::<TimestampMillisecondType>().value(row).checked_mul(1_000).ok_or_else(range)
        }
        TimeUnit::Microsecond => Ok(column.as_primitive::<TimestampMicrosecondType>().value(row)),
        TimeUnit::Nanosecond => Ok(column.as_primitive::<TimestampNanosecondType>().value(row).div_euclid(1_000)),
    }
}

fn list(column: &ArrayRef, row: usize, kind: PgType) -> Result<Scalar, QueryError> {
    let items = match column.data_type() {
        DataType::LargeList(_) => column.as_list::<i64>().value(row),
        DataType::FixedSizeList(..) => column.as_fixed_size_list().value(row),
        _ => column.as_list::<i32>().value(row),
    };
    let scalars = (0..items.len()).map(|index| scalar(&items, index, PgType::Text));
    if matches!(
        kind,
        PgType::Int2Array
            | PgType::Int4Array
            | PgType::Int8Array
            | PgType::OidArray
            | PgType::Int2Vector
            | PgType::OidVector
    ) {
        let ints = scalars.map(|item| {
            Ok(match item? {
                Scalar::Int(value) => Some(value),
                _ => None,
            })
        });
        return Ok(Scalar::Ints(ints.collect::<Result<_, QueryError>>()?));
    }
    if kind == PgType::BoolArray {
        let truths =
            scalars.map(|item| Ok(matches!(item?, Scalar::Bool(true)).then_some("t").unwrap_or("f").to_owned()));
        let truths: Vec<String> = truths.collect::<Result<_, QueryError>>()?;
        let known = truths.into_iter().enumerate().map(|(index, truth)| (!items.is_null(index)).then_some(truth));
        return Ok(Scalar::Texts(known.collect()));
    }
    let place = Place { now: jiff::Timestamp::UNIX_EPOCH, zone: jiff::tz::TimeZone::UTC };
    let field = Field::new("", items.data_type().clone(), true);
    let texts = (0..items.len()).map(|index| {
        let item = ScalarValue::try_from_array(&items, index)?;
        if item.is_null() { Ok(None) } else { super::printed::show(&item, &field, &place).map(Some) }
    });
    Ok(Scalar::Texts(texts.collect::<Result<_, QueryError>>()?))
}
