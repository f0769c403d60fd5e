//! Casts as PostgreSQL makes them: what texts mean as values, how values print, which numbers fit.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, new_empty_array};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, IntervalMonthDayNanoType, TimeUnit, i256};
use datafusion::common::ScalarValue;
use datafusion::common::utils::take_function_args;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::error::QueryError;
use super::kinds::{interval_digits, is_text, length, name_of, tag};
use super::moments::{self, DAY_US, Interval, invalid};
use super::{Current, current, json_text, printed};
use crate::error::SqlState;
use crate::snapshot::Snapshot;

type Result<T> = std::result::Result<T, QueryError>;

/// The longest `name`, in bytes.
const NAME_BYTES_MAX: usize = 63;

/// What readings depend on besides their text.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) now: Timestamp,
    pub(super) zone: TimeZone,
}

impl Place {
    pub(super) fn of(snapshot: &Snapshot) -> Self {
        let zone = crate::settings::zone_of(&snapshot.session, &snapshot.catalog);
        Self { now: Timestamp::from_microsecond(snapshot.now_us).unwrap_or_default(), zone }
    }
}

/// A cast to one type.
pub(super) struct Convert {
    to: FieldRef,
    signature: Signature,
    current: Current,
}

impl Convert {
    /// The cast of an expression of a type.
    pub(super) fn of(expression: Expr, from: &Field, to: &Field, current_snapshot: &Current) -> Expr {
        let zoned = |field: &Field| matches!(field.data_type(), DataType::Timestamp(_, Some(_)));
        let dated = is_text(from.data_type()) && matches!(to.data_type(), DataType::Timestamp(..) | DataType::Date32);
        let volatility = if dated || zoned(from) || zoned(to) { Volatility::Stable } else { Volatility::Immutable };
        let function = Self {
            to: Arc::new(to.clone().with_nullable(true)),
            signature: Signature::any(1, volatility),
            current: Arc::clone(current_snapshot),
        };
        Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::from(function)), vec![expression]))
    }

    /// The type it casts to.
    pub(super) fn to(&self) -> &Field {
        &self.to
    }

    fn one(&self, value: &ScalarValue, from: &Field, place: &Place) -> Result<ScalarValue> {
        convert(value, from, &self.to, place)
    }
}

impl std::fmt::Debug for Convert {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Convert").field(&self.to).finish()
    }
}

impl PartialEq for Convert {
    fn eq(&self, other: &Self) -> bool {
        self.to == other.to
    }
}

impl Eq for Convert {}

impl Hash for Convert {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.to.hash(state);
    }
}

impl ScalarUDFImpl for Convert {
    fn name(&self) -> &str {
        "convert"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> std::result::Result<DataType, DataFusionError> {
        Ok(self.to.data_type().clone())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> std::result::Result<FieldRef, DataFusionError> {
        Ok(Arc::clone(&self.to))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> std::result::Result<ColumnarValue, DataFusionError> {
        let place = Place::of(&current(&self.current));
        let nothing = Arc::new(Field::new("", DataType::Null, true));
        let from = arguments.arg_fields.first().cloned().unwrap_or(nothing);
        let [argument] = take_function_args(self.name(), arguments.args)?;
        match argument {
            ColumnarValue::Scalar(value) => {
                let value = self.one(&value, &from, &place).map_err(QueryError::external)?;
                Ok(ColumnarValue::Scalar(value))
            }
            ColumnarValue::Array(array) => Ok(ColumnarValue::Array(self.all(&array, &from, &place)?)),
        }
    }
}

impl Convert {
    fn all(&self, array: &ArrayRef, from: &Field, place: &Place) -> std::result::Result<ArrayRef, DataFusionError> {
        if is_text(from.data_type()) && from.data_type() == self.to.data_type() && is_plain_text(from, &self.to) {
            return Ok(Arc::clone(array));
        }
        if array.is_empty() {
            return Ok(new_empty_array(self.to.data_type()));
        }
        let values = (0..array.len()).map(|row| {
            let value = ScalarValue::try_from_array(array, row)?;
            self.one(&value, from, place).map_err(QueryError::external)
        });
        ScalarValue::iter_to_array(values.collect::<std::result::Result<Vec<_>, _>>()?)
    }
}

/// Whether texts stay as they are.
fn is_plain_text(from: &Field, to: &Field) -> bool {
    let open = |field: &Field| matches!(tag(field), "" | "text" | "varchar" | "name" | "json" | "jsonb");
    open(from) && matches!(tag(to), "" | "text" | "varchar") && length(to).is_none()
}

/// Whether PostgreSQL has such a cast.
pub(super) fn is_allowed(from: &Field, to: &Field) -> bool {
    let (one, other) = (from.data_type(), to.data_type());
    let number = |kind: &DataType| kind.is_numeric();
    let moment = |kind: &DataType| matches!(kind, DataType::Timestamp(..) | DataType::Date32);
    let clock = |kind: &DataType| matches!(kind, DataType::Time64(_) | DataType::Interval(_) | DataType::Duration(_));
    match (one, other) {
        (DataType::Null, _) => true,
        (_, kind) | (kind, _) if is_text(kind) => true,
        (DataType::Boolean, DataType::Boolean) => true,
        (DataType::Boolean, DataType::Int32) | (DataType::Int32 | DataType::Int64, DataType::Boolean) => true,
        (one, other) if number(one) && number(other) => true,
        (one, other) if moment(one) && moment(other) => true,
        (DataType::Timestamp(..), DataType::Time64(_)) => true,
        (one, other) if clock(one) && clock(other) => true,
        (DataType::Binary, DataType::Binary) => true,
        (one, other) => one.is_nested() && other.is_nested(),
    }
}

/// One value as another type.
pub(super) fn convert(value: &ScalarValue, from: &Field, to: &Field, place: &Place) -> Result<ScalarValue> {
    if value.is_null() {
        return null_of(to);
    }
    if let Some(Some(text)) = value.try_as_str() {
        let text =
            if is_text(to.data_type()) && !is_plain_text(from, to) { with_prefix(text, from) } else { text.to_owned() };
        return read(&text, to, place);
    }
    if is_text(to.data_type()) {
        return Ok(ScalarValue::Utf8(Some(fitted(&printed::show(value, from, place)?, to))));
    }
    match to.data_type() {
        DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::UInt32 => integer(value, to),
        DataType::Boolean => Ok(ScalarValue::Boolean(Some(whole_of(value)? != 0))),
        DataType::Float32 | DataType::Float64 => float(value, to),
        kind if kind.is_decimal() => decimal(&printed::digits(value)?, to),
        _ => Ok(shortened(moment(value, to, place)?, to)),
    }
}

/// An interval with no more digits of its seconds than its type has.
fn shortened(value: ScalarValue, to: &Field) -> ScalarValue {
    match (value, interval_digits(to)) {
        (ScalarValue::IntervalMonthDayNano(Some(value)), Some(digits)) => {
            let nanoseconds = cut(value.nanoseconds / 1_000, Some(digits)).saturating_mul(1_000);
            let value = IntervalMonthDayNanoType::make_value(value.months, value.days, nanoseconds);
            ScalarValue::IntervalMonthDayNano(Some(value))
        }
        (value, _) => value,
    }
}

fn null_of(to: &Field) -> Result<ScalarValue> {
    ScalarValue::try_from(to.data_type()).map_err(QueryError::from)
}

/// An address shows its network where it is a text: `10.0.0.1/32`.
fn with_prefix(text: &str, from: &Field) -> String {
    match tag(from) {
        "inet" | "cidr" if !text.contains('/') => format!("{text}/{}", if text.contains(':') { 128 } else { 32 }),
        _ => text.to_owned(),
    }
}

/// A text as its type's length allows: a cast cuts without a word.
fn fitted(text: &str, to: &Field) -> String {
    match (tag(to), length(to)) {
        ("varchar", Some(length)) => text.chars().take(length).collect(),
        ("bpchar", Some(length)) => {
            let cut: String = text.chars().take(length).collect();
            format!("{cut:<length$}")
        }
        ("char", _) => text.chars().take(1).collect(),
        ("name", _) if text.len() > NAME_BYTES_MAX => {
            let end = (0..=NAME_BYTES_MAX).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
            text.get(..end).unwrap_or_default().to_owned()
        }
        _ => text.to_owned(),
    }
}

fn truth(text: &str) -> Option<bool> {
    let word = text.trim().to_lowercase();
    let begins = |whole: &str, least: usize| word.len() >= least && whole.starts_with(&word);
    if begins("true", 1) || begins("yes", 1) || word == "on" || word == "1" {
        return Some(true);
    }
    (begins("false", 1) || begins("no", 1) || begins("off", 2) || word == "0").then_some(false)
}

/// A text as a value of a type.
fn read(text: &str, to: &Field, place: &Place) -> Result<ScalarValue> {
    let Place { now, zone } = place;
    Ok(match to.data_type() {
        DataType::Boolean => ScalarValue::Boolean(Some(truth(text).ok_or_else(|| invalid("boolean", text))?)),
        DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::UInt32 => read_integer(text, to)?,
        DataType::Float32 | DataType::Float64 => read_float(text, to)?,
        kind if kind.is_decimal() => {
            let digits = printed::plain_digits(text.trim()).ok_or_else(|| invalid("numeric", text))?;
            decimal(&digits, to)?
        }
        DataType::Date32 => ScalarValue::Date32(Some(moments::read_date(text, *now, zone)?)),
        DataType::Timestamp(_, None) => stamp(moments::read_timestamp(text, *now, zone)?, to),
        DataType::Timestamp(_, Some(_)) => stamp(moments::read_timestamptz(text, *now, zone)?, to),
        DataType::Time64(_) => {
            ScalarValue::Time64Microsecond(Some(cut(moments::read_time(text, *now, zone)?, length(to))))
        }
        DataType::Interval(_) => {
            let interval = moments::read_interval(text)?;
            let microseconds = cut(interval.microseconds, interval_digits(to));
            interval_value(Interval { microseconds, ..interval })
        }
        DataType::Binary => ScalarValue::Binary(Some(bytes(text)?)),
        DataType::List(item) => items(text, item, place)?,
        _ => match tag(to) {
            kind @ ("inet" | "cidr") => ScalarValue::Utf8(Some(address(text, kind)?)),
            "json" => {
                json_text::check(text)?;
                ScalarValue::Utf8(Some(text.to_owned()))
            }
            "jsonb" => ScalarValue::Utf8(Some(json_text::normal(text)?)),
            _ => ScalarValue::Utf8(Some(fitted(text, to))),
        },
    })
}

fn stamp(microseconds: i64, to: &Field) -> ScalarValue {
    let microseconds = cut(microseconds, length(to));
    match to.data_type() {
        DataType::Timestamp(_, zone) => ScalarValue::TimestampMicrosecond(Some(microseconds), zone.clone()),
        _ => ScalarValue::Null,
    }
}

/// Seconds with no more digits behind the point than wanted.
pub(super) fn cut(microseconds: i64, digits: Option<usize>) -> i64 {
    let Some(left) = digits.and_then(|digits| 6usize.checked_sub(digits)).filter(|left| *left > 0) else {
        return microseconds;
    };
    let unit = 10i64.pow(u32::try_from(left).unwrap_or(6));
    microseconds.saturating_add(unit / 2).div_euclid(unit).saturating_mul(unit)
}

pub(super) fn interval_value(interval: Interval) -> ScalarValue {
    let nanoseconds = interval.microseconds.saturating_mul(1_000);
    let value = IntervalMonthDayNanoType::make_value(interval.months, interval.days, nanoseconds);
    ScalarValue::IntervalMonthDayNano(Some(value))
}

fn read_integer(text: &str, to: &Field) -> Result<ScalarValue> {
    let name = name_of(to);
    let trimmed = text.trim();
    let number = trimmed.strip_prefix('+').unwrap_or(trimmed);
    let digits = number.strip_prefix('-').unwrap_or(number);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(invalid(&name, text));
    }
    let outside = || {
        let message = format!("value \"{text}\" is out of range for type {name}");
        QueryError::new(SqlState::NumberOutOfRange, message).about(super::places::Subject::Literal(text.to_owned()))
    };
    let whole: i128 = number.parse().map_err(|_| outside())?;
    narrowed(whole, to).ok_or_else(outside)
}

fn narrowed(whole: i128, to: &Field) -> Option<ScalarValue> {
    Some(match to.data_type() {
        DataType::Int16 => ScalarValue::Int16(Some(whole.try_into().ok()?)),
        DataType::Int32 => ScalarValue::Int32(Some(whole.try_into().ok()?)),
        DataType::UInt32 => ScalarValue::UInt32(Some(whole.try_into().ok()?)),
        _ => ScalarValue::Int64(Some(whole.try_into().ok()?)),
    })
}

/// A number without its fraction: floats are rounded half to even, decimals half away from zero.
fn whole_of(value: &ScalarValue) -> Result<i128> {
    let range = || QueryError::new(SqlState::NumberOutOfRange, "bigint out of range");
    match value {
        ScalarValue::Boolean(Some(value)) => Ok(i128::from(*value)),
        ScalarValue::Float32(_) | ScalarValue::Float64(_) => {
            let number = printed::double(value).unwrap_or(f64::NAN).round_ties_even();
            (number.abs() < 1e30).then_some(number as i128).ok_or_else(range)
        }
        _ => {
            let digits = printed::digits(value)?;
            printed::rescaled(&digits, 0).ok_or_else(range)?.parse().map_err(|_| range())
        }
    }
}

fn integer(value: &ScalarValue, to: &Field) -> Result<ScalarValue> {
    let outside = || QueryError::new(SqlState::NumberOutOfRange, format!("{} out of range", name_of(to)));
    narrowed(whole_of(value).map_err(|_| outside())?, to).ok_or_else(outside)
}

fn read_float(text: &str, to: &Field) -> Result<ScalarValue> {
    let name = name_of(to);
    let word = text.trim();
    let known = word.parse::<f64>().ok().filter(|_| !word.is_empty());
    let value = known.ok_or_else(|| invalid(&name, text))?;
    let spelled = word.trim_start_matches(['+', '-']).to_lowercase();
    let endless = spelled.starts_with("inf");
    let (single, double) = (value as f32, value);
    let overflow = match to.data_type() {
        DataType::Float32 => single.is_infinite(),
        _ => double.is_infinite(),
    };
    if overflow && !endless {
        let message = format!("\"{word}\" is out of range for type {name}");
        return Err(QueryError::new(SqlState::NumberOutOfRange, message));
    }
    Ok(match to.data_type() {
        DataType::Float32 => ScalarValue::Float32(Some(single)),
        _ => ScalarValue::Float64(Some(double)),
    })
}

fn float(value: &ScalarValue, to: &Field) -> Result<ScalarValue> {
    let double = match printed::double(value) {
        Some(double) => double,
        None => printed::digits(value)?.parse().unwrap_or(f64::NAN),
    };
    Ok(match to.data_type() {
        DataType::Float32 => {
            let single = double as f32;
            if single.is_infinite() && double.is_finite() {
                return Err(QueryError::new(SqlState::NumberOutOfRange, "value out of range: overflow"));
            }
            ScalarValue::Float32(Some(single))
        }
        _ => ScalarValue::Float64(Some(double)),
    })
}

/// Digits as a decimal of a precision and scale.
fn decimal(digits: &str, to: &Field) -> Result<ScalarValue> {
    let overflow = || QueryError::new(SqlState::NumberOutOfRange, "numeric field overflow");
    let (precision, scale, wide) = match to.data_type() {
        DataType::Decimal128(precision, scale) => (*precision, *scale, false),
        DataType::Decimal256(precision, scale) => (*precision, *scale, true),
        _ => return Err(overflow()),
    };
    let places = usize::try_from(scale).unwrap_or_default();
    let scaled = printed::rescaled(digits, places).ok_or_else(overflow)?;
    let unscaled: String = scaled.chars().filter(|c| *c != '.').collect();
    let count = unscaled.trim_start_matches('-').trim_start_matches('0').len();
    if count > usize::from(precision) {
        return Err(overflow());
    }
    Ok(match wide {
        true => ScalarValue::Decimal256(Some(i256::from_string(&unscaled).ok_or_else(overflow)?), precision, scale),
        false => ScalarValue::Decimal128(Some(unscaled.parse().map_err(|_| overflow())?), precision, scale),
    })
}

/// Dates, times and intervals as one another.
fn moment(value: &ScalarValue, to: &Field, place: &Place) -> Result<ScalarValue> {
    let zone = &place.zone;
    let unfit = || QueryError::new(SqlState::CannotCoerce, format!("cannot cast to type {}", name_of(to)));
    // What the clocks show, and the point in time where it is one.
    let (civil, point) = match value {
        ScalarValue::Date32(Some(days)) => (Some(i64::from(*days) * DAY_US), None),
        ScalarValue::Time64Microsecond(Some(time)) => (Some(*time), None),
        _ => match printed::microseconds(value) {
            Some((utc, true)) => (Some(moments::to_civil(utc, zone)?), Some(utc)),
            Some((civil, false)) => (Some(civil), None),
            None => (None, None),
        },
    };
    match (to.data_type(), civil, printed::interval(value)) {
        (DataType::Date32, Some(civil), _) => {
            let days = i32::try_from(civil.div_euclid(DAY_US)).map_err(|_| moments::out_of_range("date"))?;
            Ok(ScalarValue::Date32(Some(days)))
        }
        (DataType::Timestamp(TimeUnit::Microsecond, None), Some(civil), _) => Ok(stamp(civil, to)),
        (DataType::Timestamp(TimeUnit::Microsecond, Some(_)), Some(civil), _) => {
            let utc = match point {
                Some(utc) => utc,
                None => moments::to_utc(civil, zone)?,
            };
            Ok(stamp(utc, to))
        }
        (DataType::Time64(_), Some(civil), _) => {
            Ok(ScalarValue::Time64Microsecond(Some(cut(civil.rem_euclid(DAY_US), length(to)))))
        }
        (DataType::Interval(_), Some(time), None) => {
            Ok(interval_value(Interval { microseconds: time, ..Interval::default() }))
        }
        (DataType::Interval(_), _, Some(interval)) => Ok(interval_value(interval)),
        (DataType::Time64(_), _, Some(interval)) => {
            Ok(ScalarValue::Time64Microsecond(Some(interval.microseconds.rem_euclid(DAY_US))))
        }
        _ => Err(unfit()),
    }
}

/// `\x` and hexadecimal digits, or characters with backslashes and octal digits.
fn bytes(text: &str) -> Result<Vec<u8>> {
    if let Some(hex) = text.strip_prefix("\\x") {
        let digits: Vec<u8> = hex.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
        let value = |digit: &u8| char::from(*digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let wrong = |message: &str| QueryError::new(SqlState::InvalidTextRepresentation, message);
        if digits.len() % 2 == 1 {
            return Err(wrong("invalid hexadecimal data: odd number of digits"));
        }
        let pairs = digits.chunks_exact(2).map(|pair| match pair {
            [high, low] => Some(value(high)? * 16 + value(low)?),
            _ => None,
        });
        return pairs.collect::<Option<_>>().ok_or_else(|| wrong("invalid hexadecimal digit"));
    }
    let mut out = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        let octal: String = rest.clone().take(3).map(char::from).collect();
        if rest.clone().next() == Some(b'\\') {
            out.push(b'\\');
            rest.next();
        } else if let Some(value) = Some(&octal).filter(|o| o.len() == 3).and_then(|o| u8::from_str_radix(o, 8).ok()) {
            out.push(value);
            rest.nth(2);
        } else {
            return Err(invalid("bytea", text));
        }
    }
    Ok(out)
}

/// An address, without the prefix of a single host.
fn address(text: &str, kind: &str) -> Result<String> {
    let word = text.trim();
    let (host, bits) = match word.split_once('/') {
        Some((host, bits)) => (host, Some(bits.parse::<u8>().map_err(|_| invalid(kind, text))?)),
        None => (word, None),
    };
    let host: std::net::IpAddr = host.parse().map_err(|_| invalid(kind, text))?;
    let full = if host.is_ipv4() { 32 } else { 128 };
    let bits = bits.unwrap_or(full);
    let network = ipnet::IpNet::new(host, bits).map_err(|_| invalid(kind, text))?;
    if kind == "cidr" && network.network() != host {
        let detail = "Value has bits set to right of mask.".to_owned();
        let message = format!("invalid cidr value: \"{text}\"");
        return Err(QueryError {
            detail: Some(detail),
            ..QueryError::new(SqlState::InvalidTextRepresentation, message)
        });
    }
    Ok(if bits == full && kind == "inet" { host.to_string() } else { format!("{host}/{bits}") })
}

/// `{1,2,NULL}` as a list of a type.
fn items(text: &str, item: &FieldRef, place: &Place) -> Result<ScalarValue> {
    let malformed = || {
        let message = format!("malformed array literal: \"{text}\"");
        QueryError::new(SqlState::InvalidTextRepresentation, message)
            .about(super::places::Subject::Literal(text.to_owned()))
    };
    let texts = printed::split_array(text).ok_or_else(malformed)?;
    let values = texts.into_iter().map(|value| match value {
        Some(value) => read(&value, item, place),
        None => null_of(item),
    });
    let values = values.collect::<Result<Vec<_>>>()?;
    Ok(ScalarValue::List(ScalarValue::new_list(&values, item.data_type(), true)))
}
