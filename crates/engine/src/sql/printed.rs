//! How values print, and the digits of numbers.

use datafusion::arrow::array::Array;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::ScalarValue;

use super::convert::Place;
use super::error::QueryError;
use super::functions::arithmetic::QUOTIENT;
use super::kinds::least_scale;
use super::moments::{self, DAY_US, Interval};

type Result<T> = std::result::Result<T, QueryError>;

/// A value as text, as its type's output has it; truths are `true` and `false`, as casts have them.
pub(super) fn show(value: &ScalarValue, from: &Field, place: &Place) -> Result<String> {
    if let Some(Some(text)) = value.try_as_str() {
        return Ok(text.to_owned());
    }
    if let Some((microseconds, zoned)) = microseconds(value) {
        return match zoned {
            true => moments::show_timestamptz(microseconds, &place.zone),
            false => moments::show_timestamp(microseconds),
        };
    }
    if let Some(interval) = interval(value) {
        return Ok(moments::show_interval(interval));
    }
    match value {
        ScalarValue::Boolean(Some(value)) => Ok(value.to_string()),
        ScalarValue::Float32(Some(value)) => Ok(float(f64::from(*value), &value.to_string(), 6)),
        ScalarValue::Float64(Some(value)) => Ok(float(*value, &value.to_string(), 15)),
        ScalarValue::Date32(Some(days)) => moments::show_date(*days),
        ScalarValue::Time64Microsecond(Some(time)) => Ok(moments::time_text(*time)),
        ScalarValue::Time64Nanosecond(Some(time)) => Ok(moments::time_text(time / 1_000)),
        ScalarValue::Binary(Some(bytes)) => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            Ok(format!("\\x{digits}"))
        }
        ScalarValue::List(_) | ScalarValue::LargeList(_) | ScalarValue::FixedSizeList(_) => list(value, from, place),
        _ => digits(value),
    }
}

fn list(value: &ScalarValue, from: &Field, place: &Place) -> Result<String> {
    let array = value.to_array()?;
    let items = match array.data_type() {
        DataType::LargeList(_) => datafusion::arrow::array::AsArray::as_list::<i64>(&array).value(0),
        DataType::FixedSizeList(..) => datafusion::arrow::array::AsArray::as_fixed_size_list(&array).value(0),
        _ => datafusion::arrow::array::AsArray::as_list::<i32>(&array).value(0),
    };
    let texts = (0..items.len()).map(|index| {
        let item = ScalarValue::try_from_array(&items, index)?;
        Ok(match (item.is_null(), &item) {
            (true, _) => "NULL".to_owned(),
            (_, ScalarValue::Boolean(Some(value))) => if *value { "t" } else { "f" }.to_owned(),
            (_, ScalarValue::List(_)) => show(&item, from, place)?,
            _ => quoted(&show(&item, from, place)?),
        })
    });
    Ok(format!("{{{}}}", texts.collect::<Result<Vec<_>>>()?.join(",")))
}

/// An array element in quotes, where it needs them.
fn quoted(text: &str) -> String {
    let plain = !text.is_empty()
        && !text.eq_ignore_ascii_case("null")
        && !text.chars().any(|c| c.is_whitespace() || matches!(c, '{' | '}' | ',' | '"' | '\\'));
    if plain { text.to_owned() } else { format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")) }
}

/// As PostgreSQL prints floats: the shortest text that reads back, with an exponent where the number is long.
fn float(value: f64, shortest: &str, digits: i32) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let scientific = if digits == 6 { format!("{:e}", value as f32) } else { format!("{value:e}") };
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..digits).contains(&exponent) {
        return shortest.to_owned();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

/// A float's value.
pub(super) fn double(value: &ScalarValue) -> Option<f64> {
    match value {
        ScalarValue::Float64(value) => *value,
        ScalarValue::Float32(value) => value.map(f64::from),
        _ => None,
    }
}

/// A number written out in digits, without an exponent.
pub(super) fn digits(value: &ScalarValue) -> Result<String> {
    if let Some(double) = double(value) {
        // A double is worth fifteen digits, a single six.
        let digits = if matches!(value, ScalarValue::Float32(_)) { 5 } else { 14 };
        let written = plain_digits(&format!("{double:.digits$e}"));
        return Ok(written.map_or_else(|| "NaN".to_owned(), trimmed));
    }
    let array = value.to_array()?;
    let exact = ArrayFormatter::try_new(&array, &FormatOptions::default())?.value(0).to_string();
    Ok(in_postgresql_s_digits(exact, &value.data_type()))
}

/// A decimal with as many digits behind the point as PostgreSQL has there.
pub(super) fn in_postgresql_s_digits(exact: String, kind: &DataType) -> String {
    if *kind == QUOTIENT {
        return super::cells::quotient(&exact);
    }
    match (least_scale(kind), exact.split_once('.')) {
        (Some(least), Some((whole, fraction))) => {
            let counting = fraction.trim_end_matches('0').len().max(least);
            let kept = fraction.get(..counting).unwrap_or(fraction);
            if kept.is_empty() { whole.to_owned() } else { format!("{whole}.{kept}") }
        }
        _ => exact,
    }
}

fn trimmed(digits: String) -> String {
    match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => digits,
    }
}

/// `1.5e3` and the like without the exponent; none for what is no number.
pub(super) fn plain_digits(text: &str) -> Option<String> {
    let lower = text.to_lowercase();
    let (mantissa, exponent) = lower.split_once('e').unwrap_or((&lower, "0"));
    let exponent: i32 = exponent.parse().ok().filter(|exponent: &i32| exponent.abs() <= 80)?;
    let (negative, mantissa) = match mantissa.strip_prefix('-') {
        Some(positive) => (true, positive),
        None => (false, mantissa.strip_prefix('+').unwrap_or(mantissa)),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    if all.is_empty() || !all.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let point = i32::try_from(whole.len()).ok()?.checked_add(exponent)?;
    let (left, right) = if point <= 0 {
        let zeros = "0".repeat(usize::try_from(-point).ok()?);
        ("0".to_owned(), format!("{zeros}{all}"))
    } else {
        let point = usize::try_from(point).ok()?;
        let padded = format!("{all:0<point$}");
        let (left, right) = padded.split_at_checked(point)?;
        (left.to_owned(), right.to_owned())
    };
    let left = left.trim_start_matches('0');
    let left = if left.is_empty() { "0" } else { left };
    let sign = if negative { "-" } else { "" };
    Some(if right.is_empty() { format!("{sign}{left}") } else { format!("{sign}{left}.{right}") })
}

/// Digits with so many behind the point, rounded half away from zero.
pub(super) fn rescaled(digits: &str, places: usize) -> Option<String> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if !whole.trim_start_matches('-').bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit()) {
        return None;
    }
    let padded = format!("{fraction:0<places$}");
    let (kept, rest) = padded.split_at_checked(places)?;
    let up = rest.starts_with(|c: char| c >= '5');
    Some(super::cells::rounded(whole, kept, up))
}

/// Microseconds of a timestamp, and whether it is a point in time.
pub(super) fn microseconds(value: &ScalarValue) -> Option<(i64, bool)> {
    Some(match value {
        ScalarValue::TimestampMicrosecond(Some(value), zone) => (*value, zone.is_some()),
        ScalarValue::TimestampNanosecond(Some(value), zone) => (value.div_euclid(1_000), zone.is_some()),
        ScalarValue::TimestampMillisecond(Some(value), zone) => (value.checked_mul(1_000)?, zone.is_some()),
        ScalarValue::TimestampSecond(Some(value), zone) => (value.checked_mul(1_000_000)?, zone.is_some()),
        _ => return None,
    })
}

/// An interval's parts; of a time between two timestamps, PostgreSQL counts the days.
pub(super) fn interval(value: &ScalarValue) -> Option<Interval> {
    let counted = |microseconds: i64| {
        let days = i32::try_from(microseconds / DAY_US).ok()?;
        Some(Interval { months: 0, days, microseconds: microseconds % DAY_US })
    };
    match value {
        ScalarValue::IntervalMonthDayNano(Some(value)) => {
            Some(Interval { months: value.months, days: value.days, microseconds: value.nanoseconds / 1_000 })
        }
        ScalarValue::DurationMicrosecond(Some(value)) => counted(*value),
        ScalarValue::DurationNanosecond(Some(value)) => counted(value / 1_000),
        ScalarValue::DurationMillisecond(Some(value)) => counted(value.checked_mul(1_000)?),
        ScalarValue::DurationSecond(Some(value)) => counted(value.checked_mul(1_000_000)?),
        _ => None,
    }
}

/// The elements of an array's text, `{a,"b c",NULL}`, of one dimension; none when it is malformed.
pub(super) fn split_array(text: &str) -> Option<Vec<Option<String>>> {
    let inner = text.trim().strip_prefix('{')?.strip_suffix('}')?;
    let mut items = Vec::new();
    if inner.trim().is_empty() {
        return Some(items);
    }
    let mut rest = inner.chars().peekable();
    loop {
        while rest.next_if(|c| c.is_whitespace()).is_some() {}
        let mut item = String::new();
        if rest.next_if_eq(&'"').is_some() {
            loop {
                match rest.next()? {
                    '"' => break,
                    '\\' => item.push(rest.next()?),
                    other => item.push(other),
                }
            }
            items.push(Some(item));
        } else {
            while let Some(character) = rest.next_if(|c| *c != ',') {
                match character {
                    '{' | '}' | '"' => return None,
                    '\\' => item.push(rest.next()?),
                    other => item.push(other),
                }
            }
            let item = item.trim_end();
            if item.is_empty() {
                return None;
            }
            items.push((!item.eq_ignore_ascii_case("null")).then(|| item.to_owned()));
        }
        while rest.next_if(|c| c.is_whitespace()).is_some() {}
        match rest.next() {
            None => return Some(items),
            Some(',') => {}
            Some(_) => return None,
        }
    }
}
