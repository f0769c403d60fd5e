//! What is calculated with dates, times and intervals.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use jiff::civil::{Date, DateTime};

use super::declared::{Call, Declared};
use super::{from_char, to_char};
use crate::error::SqlState;
use crate::sql::convert::{cut, interval_value};
use crate::sql::error::QueryError;
use crate::sql::kinds::{interval, is_text, time, timestamp, timestamptz};
use crate::sql::moments::{self, DAY_US, Interval};
use crate::sql::printed;

type Result<T> = std::result::Result<T, QueryError>;

/// The functions by the names that clients call them by.
pub(in crate::sql) const FUNCTIONS: &[Declared] = &[
    Declared {
        name: "date_part",
        arguments: &[2],
        gives: |kinds, _| (is_part_of(kinds)).then_some(DataType::Float64),
        answer: |call| {
            let digits = part(call)?.0;
            Ok(ScalarValue::Float64(digits.parse().ok()))
        },
        stable: true,
    },
    Declared {
        name: "date_trunc",
        arguments: &[2],
        gives: |kinds, _| match kinds {
            [_, DataType::Date32] => Some(timestamptz()),
            [_, DataType::Timestamp(_, None)] => Some(timestamp()),
            [_, DataType::Timestamp(_, Some(_)) | DataType::Null] => Some(timestamptz()),
            [_, DataType::Interval(_) | DataType::Duration(_)] => Some(interval()),
            [_, kind] if is_text(kind) => Some(timestamptz()),
            _ => None,
        },
        answer: truncated,
        stable: true,
    },
    Declared {
        name: "timezone",
        arguments: &[2],
        gives: |kinds, _| match kinds {
            [_, DataType::Timestamp(_, None)] => Some(timestamptz()),
            [_, DataType::Timestamp(_, Some(_)) | DataType::Date32] => Some(timestamp()),
            _ => None,
        },
        answer: in_zone,
        stable: true,
    },
    Declared {
        name: "to_char",
        arguments: &[2],
        gives: |kinds, _| match kinds {
            [kind, format] => {
                let known = matches!(
                    kind,
                    DataType::Date32 | DataType::Timestamp(..) | DataType::Interval(_) | DataType::Duration(_)
                ) || kind.is_numeric()
                    || kind.is_null();
                (known && (is_text(format) || format.is_null())).then_some(DataType::Utf8)
            }
            _ => None,
        },
        answer: |call| to_char::to_char(call).map(|text| ScalarValue::Utf8(Some(text))),
        stable: true,
    },
    Declared {
        name: "to_date",
        arguments: &[2],
        gives: |kinds, _| kinds.iter().all(|kind| is_text(kind) || kind.is_null()).then_some(DataType::Date32),
        answer: |call| {
            let days = from_char::read(text(call, 0), text(call, 1))?.div_euclid(DAY_US);
            Ok(ScalarValue::Date32(i32::try_from(days).ok()))
        },
        stable: false,
    },
    Declared {
        name: "to_timestamp",
        arguments: &[1, 2],
        gives: |kinds, _| match kinds {
            [seconds] => (seconds.is_numeric() || seconds.is_null()).then(timestamptz),
            _ => kinds.iter().all(|kind| is_text(kind) || kind.is_null()).then(timestamptz),
        },
        answer: |call| match call.values {
            [seconds] => since_1970(seconds),
            _ => Ok(point(moments::to_utc(from_char::read(text(call, 0), text(call, 1))?, &call.place.zone)?)),
        },
        stable: true,
    },
    Declared {
        name: "age",
        arguments: &[2],
        gives: |kinds, _| kinds.iter().all(is_moment).then(interval),
        answer: age,
        stable: true,
    },
    Declared {
        name: "now",
        arguments: &[0],
        gives: |_, _| Some(timestamptz()),
        answer: |call| Ok(point(call.place.now.as_microsecond())),
        stable: true,
    },
    Declared {
        name: "current_timestamp",
        arguments: &[0, 1],
        gives: |kinds, _| kinds.iter().all(DataType::is_integer).then(timestamptz),
        answer: |call| Ok(point(cut(call.place.now.as_microsecond(), digits(call)))),
        stable: true,
    },
    Declared {
        name: "transaction_timestamp",
        arguments: &[0],
        gives: |_, _| Some(timestamptz()),
        answer: |call| Ok(point(call.place.now.as_microsecond())),
        stable: true,
    },
    Declared {
        name: "statement_timestamp",
        arguments: &[0],
        gives: |_, _| Some(timestamptz()),
        answer: |call| Ok(point(call.place.now.as_microsecond())),
        stable: true,
    },
    Declared {
        name: "localtimestamp",
        arguments: &[0, 1],
        gives: |kinds, _| kinds.iter().all(DataType::is_integer).then(timestamp),
        answer: |call| {
            let civil_now = moments::to_civil(call.place.now.as_microsecond(), &call.place.zone)?;
            Ok(civil(cut(civil_now, digits(call))))
        },
        stable: true,
    },
    Declared {
        name: "localtime",
        arguments: &[0, 1],
        gives: |kinds, _| kinds.iter().all(DataType::is_integer).then(time),
        answer: |call| {
            let civil_now = moments::to_civil(call.place.now.as_microsecond(), &call.place.zone)?;
            Ok(ScalarValue::Time64Microsecond(Some(cut(civil_now.rem_euclid(DAY_US), digits(call)))))
        },
        stable: true,
    },
    Declared {
        name: "current_date",
        arguments: &[0],
        gives: |_, _| Some(DataType::Date32),
        answer: |call| {
            let civil = moments::to_civil(call.place.now.as_microsecond(), &call.place.zone)?;
            Ok(ScalarValue::Date32(i32::try_from(civil.div_euclid(DAY_US)).ok()))
        },
        stable: true,
    },
];

/// `extract(part FROM value)`: as `date_part`, in exact digits.
pub(in crate::sql) const EXTRACT: Declared = Declared {
    name: "extract",
    arguments: &[2],
    gives: |kinds, literals| {
        let name = literals.first().copied().flatten().and_then(|value| value.try_as_str().flatten());
        let digits = name.map_or(0, |name| scale_of(&name.to_lowercase()));
        (is_part_of(kinds)).then_some(DataType::Decimal128(38, digits))
    },
    answer: |call| {
        let (digits, _) = part(call)?;
        let DataType::Decimal128(precision, scale) = call.gives else { return Ok(ScalarValue::Null) };
        let places = usize::try_from(*scale).unwrap_or_default();
        let unscaled = printed::rescaled(&digits, places).map(|text| text.replace('.', ""));
        Ok(ScalarValue::Decimal128(unscaled.and_then(|text| text.parse().ok()), *precision, *scale))
    },
    stable: true,
};

/// A timestamp or point in time with an interval added.
pub(in crate::sql) const LATER: Declared = Declared {
    name: "plus",
    arguments: &[2],
    gives: |kinds, _| kinds.first().cloned().map(moment_kind),
    answer: |call| shifted(call, 1),
    stable: true,
};

/// A timestamp or point in time with an interval taken away.
pub(in crate::sql) const EARLIER: Declared = Declared {
    name: "minus",
    arguments: &[2],
    gives: |kinds, _| kinds.first().cloned().map(moment_kind),
    answer: |call| shifted(call, -1),
    stable: true,
};

/// The time between two timestamps, in days and less.
pub(in crate::sql) const SINCE: Declared = Declared {
    name: "minus",
    arguments: &[2],
    gives: |_, _| Some(interval()),
    answer: |call| {
        let between =
            instant(call, 0)?.checked_sub(instant(call, 1)?).ok_or_else(|| moments::out_of_range("interval"))?;
        let days = i32::try_from(between / DAY_US).map_err(|_| moments::out_of_range("interval"))?;
        Ok(interval_value(Interval { months: 0, days, microseconds: between % DAY_US }))
    },
    stable: true,
};

/// The sum of two intervals, part by part.
pub(in crate::sql) const LONGER: Declared = Declared {
    name: "plus",
    arguments: &[2],
    gives: |_, _| Some(interval()),
    answer: |call| combined(call, 1),
    stable: false,
};

/// The difference of two intervals, part by part.
pub(in crate::sql) const SHORTER: Declared = Declared {
    name: "minus",
    arguments: &[2],
    gives: |_, _| Some(interval()),
    answer: |call| combined(call, -1),
    stable: false,
};

/// An interval so many times.
pub(in crate::sql) const TIMES: Declared = Declared {
    name: "times",
    arguments: &[2],
    gives: |_, _| Some(interval()),
    answer: |call| multiplied(call, factor(call)?),
    stable: false,
};

/// A part of an interval.
pub(in crate::sql) const DIVIDED: Declared = Declared {
    name: "divided by",
    arguments: &[2],
    gives: |_, _| Some(interval()),
    answer: |call| {
        let by = factor(call)?;
        if by == 0.0 {
            return Err(QueryError::new(SqlState::DivisionByZero, "division by zero"));
        }
        multiplied(call, 1.0 / by)
    },
    stable: false,
};

/// An interval as a number to compare: a month is thirty days, a day is 24 hours.
pub(in crate::sql) const LENGTH: Declared = Declared {
    name: "length of interval",
    arguments: &[1],
    gives: |_, _| Some(DataType::Decimal128(38, 0)),
    answer: |call| {
        let Interval { months, days, microseconds } = interval_at(call, 0)?;
        let days = i128::from(months) * 30 + i128::from(days);
        Ok(ScalarValue::Decimal128(Some(days * i128::from(DAY_US) + i128::from(microseconds)), 38, 0))
    },
    stable: false,
};

/// The days from one date to another.
pub(in crate::sql) const DAYS_SINCE: Declared = Declared {
    name: "minus",
    arguments: &[2],
    gives: |_, _| Some(DataType::Int32),
    answer: |call| match (value(call, 0), value(call, 1)) {
        (ScalarValue::Date32(Some(one)), ScalarValue::Date32(Some(other))) => {
            Ok(ScalarValue::Int32(Some(one.checked_sub(*other).ok_or_else(|| moments::out_of_range("date"))?)))
        }
        _ => Ok(ScalarValue::Int32(None)),
    },
    stable: false,
};

/// The date so many days later.
pub(in crate::sql) const DAYS_LATER: Declared = Declared {
    name: "plus",
    arguments: &[2],
    gives: |_, _| Some(DataType::Date32),
    answer: |call| days_later(call, 1),
    stable: false,
};

/// The date so many days earlier.
pub(in crate::sql) const DAYS_EARLIER: Declared = Declared {
    name: "minus",
    arguments: &[2],
    gives: |_, _| Some(DataType::Date32),
    answer: |call| days_later(call, -1),
    stable: false,
};

fn days_later(call: &Call<'_>, sign: i64) -> Result<ScalarValue> {
    let range = || moments::out_of_range("date");
    let ScalarValue::Date32(Some(date)) = value(call, 0) else { return Ok(ScalarValue::Date32(None)) };
    let days: i64 = printed::digits(value(call, 1))?.parse().map_err(|_| range())?;
    let moved = days.checked_mul(sign).and_then(|days| days.checked_add(i64::from(*date))).ok_or_else(range)?;
    let moved = i32::try_from(moved).map_err(|_| range())?;
    moments::date_of(moved)?;
    Ok(ScalarValue::Date32(Some(moved)))
}

/// The point in time so many seconds after 1970-01-01 00:00 in Greenwich.
fn since_1970(seconds: &ScalarValue) -> Result<ScalarValue> {
    let range = || moments::out_of_range("timestamp");
    let seconds = match printed::double(seconds) {
        Some(seconds) => seconds,
        None => printed::digits(seconds)?.parse().map_err(|_| range())?,
    };
    let microseconds = (seconds * 1e6).round();
    // A double holds whole numbers up to this exactly; jiff's times end before.
    if !microseconds.is_finite() || microseconds.abs() > 9e18 {
        return Err(range());
    }
    let microseconds = microseconds as i64;
    moments::civil_of(microseconds)?;
    Ok(point(microseconds))
}

fn is_moment(kind: &DataType) -> bool {
    matches!(kind, DataType::Date32 | DataType::Timestamp(..) | DataType::Null)
}

fn moment_kind(kind: DataType) -> DataType {
    match kind {
        DataType::Timestamp(_, Some(_)) => timestamptz(),
        _ => timestamp(),
    }
}

fn is_part_of(kinds: &[DataType]) -> bool {
    match kinds {
        [name, kind] => {
            let spans = matches!(kind, DataType::Interval(_) | DataType::Duration(_) | DataType::Time64(_));
            (is_text(name) || name.is_null()) && (is_moment(kind) || spans)
        }
        _ => false,
    }
}

fn point(microseconds: i64) -> ScalarValue {
    ScalarValue::TimestampMicrosecond(Some(microseconds), Some(crate::sql::kinds::UTC.into()))
}

fn civil(microseconds: i64) -> ScalarValue {
    ScalarValue::TimestampMicrosecond(Some(microseconds), None)
}

fn value<'a>(call: &'a Call<'_>, index: usize) -> &'a ScalarValue {
    call.values.get(index).unwrap_or(&ScalarValue::Null)
}

fn text<'a>(call: &'a Call<'_>, index: usize) -> &'a str {
    value(call, index).try_as_str().flatten().unwrap_or_default()
}

fn interval_at(call: &Call<'_>, index: usize) -> Result<Interval> {
    printed::interval(value(call, index)).ok_or_else(|| moments::out_of_range("interval"))
}

/// How many digits of a second are wanted, where that is told.
fn digits(call: &Call<'_>) -> Option<usize> {
    match call.values.first()?.cast_to(&DataType::Int64) {
        Ok(ScalarValue::Int64(Some(digits))) => usize::try_from(digits).ok(),
        _ => None,
    }
}

/// What the clocks of the session's zone show, and the point in time where the value is one.
fn clocks(call: &Call<'_>, index: usize) -> Result<(i64, Option<i64>)> {
    match value(call, index) {
        ScalarValue::Date32(Some(days)) => Ok((i64::from(*days) * DAY_US, None)),
        other => match printed::microseconds(other) {
            Some((utc, true)) => Ok((moments::to_civil(utc, &call.place.zone)?, Some(utc))),
            Some((civil, false)) => Ok((civil, None)),
            None => Err(moments::out_of_range("timestamp")),
        },
    }
}

/// A point in time where the other side may be one too; else what the clocks show.
fn instant(call: &Call<'_>, index: usize) -> Result<i64> {
    let zoned = |index| matches!(printed::microseconds(value(call, index)), Some((_, true)));
    let (civil, utc) = clocks(call, index)?;
    match utc {
        Some(utc) => Ok(utc),
        None if zoned(1 - index.min(1)) => moments::to_utc(civil, &call.place.zone),
        None => Ok(civil),
    }
}

fn shifted(call: &Call<'_>, sign: i32) -> Result<ScalarValue> {
    let by = interval_at(call, 1)?;
    let by = Interval {
        months: by.months.saturating_mul(sign),
        days: by.days.saturating_mul(sign),
        microseconds: by.microseconds.saturating_mul(sign.into()),
    };
    match clocks(call, 0)? {
        (_, Some(utc)) => Ok(point(moments::moved_in_zone(utc, by, &call.place.zone)?)),
        (clock, None) => Ok(civil(moments::moved(clock, by)?)),
    }
}

fn combined(call: &Call<'_>, sign: i32) -> Result<ScalarValue> {
    let range = || moments::out_of_range("interval");
    let (one, other) = (interval_at(call, 0)?, interval_at(call, 1)?);
    let sum = |one: i32, other: i32| one.checked_add(other.checked_mul(sign)?);
    let microseconds = other.microseconds.checked_mul(sign.into()).and_then(|us| one.microseconds.checked_add(us));
    Ok(interval_value(Interval {
        months: sum(one.months, other.months).ok_or_else(range)?,
        days: sum(one.days, other.days).ok_or_else(range)?,
        microseconds: microseconds.ok_or_else(range)?,
    }))
}

fn factor(call: &Call<'_>) -> Result<f64> {
    let number = value(call, 1);
    match printed::double(number) {
        Some(number) => Ok(number),
        None => Ok(printed::digits(number)?.parse().unwrap_or(f64::NAN)),
    }
}

/// Fractions go down: of a month into days, of a day into microseconds.
fn multiplied(call: &Call<'_>, by: f64) -> Result<ScalarValue> {
    let range = || moments::out_of_range("interval");
    let Interval { months, days, microseconds } = interval_at(call, 0)?;
    let small = |value: f64| (value.abs() <= f64::from(i32::MAX)).then_some(value as i32).ok_or_else(range);
    let all_months = f64::from(months) * by;
    let month_days = rounded(all_months.fract() * 30.0);
    let all_days = f64::from(days) * by;
    let seconds = rounded((all_days.fract() + month_days.fract()) * 86_400.0);
    let (mut whole_days, mut seconds) = (all_days.trunc() + month_days.trunc(), seconds);
    if seconds.abs() >= 86_400.0 {
        whole_days += (seconds / 86_400.0).trunc();
        seconds %= 86_400.0;
    }
    let microseconds = (microseconds as f64 * by + seconds * 1e6).round();
    if !microseconds.is_finite() || microseconds.abs() > 9.2e18 {
        return Err(range());
    }
    Ok(interval_value(Interval {
        months: small(all_months.trunc())?,
        days: small(whole_days)?,
        microseconds: microseconds as i64,
    }))
}

/// To microseconds, so that a float's last digits do not show.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

fn in_zone(call: &Call<'_>) -> Result<ScalarValue> {
    let name = text(call, 0);
    let zone = match printed::interval(value(call, 0)) {
        Some(interval) => {
            let seconds = i32::try_from(interval.microseconds / 1_000_000).unwrap_or_default();
            jiff::tz::Offset::from_seconds(seconds).ok().map(jiff::tz::TimeZone::fixed)
        }
        None => moments::zone_named(name),
    };
    let zone = zone.ok_or_else(|| {
        QueryError::new(SqlState::InvalidParameterValue, format!("time zone \"{name}\" not recognized"))
    })?;
    match printed::microseconds(value(call, 1)) {
        Some((clock, false)) => Ok(point(moments::to_utc(clock, &zone)?)),
        Some((utc, true)) => Ok(civil(moments::to_civil(utc, &zone)?)),
        None => {
            // A date is midnight of the session's zone.
            let (clock, _) = clocks(call, 1)?;
            Ok(civil(moments::to_civil(moments::to_utc(clock, &call.place.zone)?, &zone)?))
        }
    }
}

fn unrecognized(unit: &str, call: &Call<'_>) -> QueryError {
    let kind = match value(call, 1) {
        ScalarValue::Date32(_) => "date",
        ScalarValue::IntervalMonthDayNano(_) => "interval",
        other if matches!(printed::microseconds(other), Some((_, true))) => "timestamp with time zone",
        _ => "timestamp without time zone",
    };
    QueryError::new(SqlState::InvalidParameterValue, format!("unit \"{unit}\" not recognized for type {kind}"))
}

/// The digits behind the point that a part has.
fn scale_of(unit: &str) -> i8 {
    match unit {
        "second" | "seconds" | "epoch" => 6,
        "millisecond" | "milliseconds" => 3,
        _ => 0,
    }
}

/// A part's digits, and how many of them are behind the point.
fn part(call: &Call<'_>) -> Result<(String, i8)> {
    let unit = text(call, 0).to_lowercase();
    let scale = scale_of(&unit);
    if let Some(interval) = printed::interval(value(call, 1)) {
        return Ok((interval_part(&unit, interval).ok_or_else(|| unrecognized(&unit, call))?, scale));
    }
    if let ScalarValue::Time64Microsecond(Some(time)) = value(call, 1) {
        let interval = Interval { microseconds: *time, ..Interval::default() };
        return Ok((interval_part(&unit, interval).ok_or_else(|| unrecognized(&unit, call))?, scale));
    }
    let (clock, utc) = clocks(call, 1)?;
    let offset = || Some((clock - utc?) / 1_000_000);
    let digits = match unit.as_str() {
        "epoch" => Some(decimal(utc.unwrap_or(clock), 1_000_000)),
        "timezone" => offset().map(|seconds| seconds.to_string()),
        "timezone_hour" => offset().map(|seconds| (seconds / 3_600).to_string()),
        "timezone_minute" => offset().map(|seconds| (seconds / 60 % 60).to_string()),
        _ => calendar_part(&unit, moments::civil_of(clock)?, clock),
    };
    Ok((digits.ok_or_else(|| unrecognized(&unit, call))?, scale))
}

/// Microseconds in a larger unit, exactly.
fn decimal(microseconds: i64, unit: i64) -> String {
    let sign = if microseconds < 0 { "-" } else { "" };
    let (value, unit) = (microseconds.unsigned_abs(), unit.unsigned_abs());
    let width = unit.to_string().len().saturating_sub(1);
    format!("{sign}{}.{:0width$}", value / unit, value % unit)
}

fn calendar_part(unit: &str, time: DateTime, clock: i64) -> Option<String> {
    let date = time.date();
    let year = i32::from(date.year());
    let week = date.iso_week_date();
    let in_minute = clock.rem_euclid(60_000_000);
    let number = match unit {
        "year" | "years" => year,
        "month" | "months" => date.month().into(),
        "day" | "days" => date.day().into(),
        "hour" | "hours" => time.hour().into(),
        "minute" | "minutes" => time.minute().into(),
        "second" | "seconds" => return Some(decimal(in_minute, 1_000_000)),
        "millisecond" | "milliseconds" => return Some(decimal(in_minute, 1_000)),
        "microsecond" | "microseconds" => return Some(in_minute.to_string()),
        "dow" => date.weekday().to_sunday_zero_offset().into(),
        "isodow" => date.weekday().to_monday_one_offset().into(),
        "doy" => date.day_of_year().into(),
        "week" => week.week().into(),
        "isoyear" => week.year().into(),
        "quarter" => (i32::from(date.month()) - 1) / 3 + 1,
        "decade" => year.div_euclid(10),
        "century" => (year + 99).div_euclid(100),
        "millennium" => (year + 999).div_euclid(1_000),
        _ => return None,
    };
    Some(number.to_string())
}

fn interval_part(unit: &str, interval: Interval) -> Option<String> {
    let Interval { months, days, microseconds } = interval;
    let number = match unit {
        "year" | "years" => i64::from(months / 12),
        "month" | "months" => i64::from(months % 12),
        "day" | "days" => days.into(),
        "hour" | "hours" => microseconds / 3_600_000_000,
        "minute" | "minutes" => microseconds / 60_000_000 % 60,
        "second" | "seconds" => return Some(decimal(microseconds % 60_000_000, 1_000_000)),
        "millisecond" | "milliseconds" => return Some(decimal(microseconds % 60_000_000, 1_000)),
        "microsecond" | "microseconds" => microseconds % 60_000_000,
        "quarter" => i64::from(months % 12 / 3 + 1),
        "decade" => i64::from(months / 120),
        "century" => i64::from(months / 1_200),
        "epoch" => {
            // A year is 365.25 days, a month of the rest thirty.
            let days = i64::from(months / 12) * 31_557_600 + (i64::from(months % 12) * 30 + i64::from(days)) * 86_400;
            return Some(decimal(days.checked_mul(1_000_000)?.checked_add(microseconds)?, 1_000_000));
        }
        _ => return None,
    };
    Some(number.to_string())
}

fn truncated(call: &Call<'_>) -> Result<ScalarValue> {
    let unit = text(call, 0).to_lowercase();
    if let Some(interval) = printed::interval(value(call, 1)) {
        let cut = cut_interval(&unit, interval).ok_or_else(|| unrecognized(&unit, call))?;
        return Ok(interval_value(cut));
    }
    let (clock, _) = match value(call, 1).try_as_str().flatten() {
        Some(text) => {
            let utc = moments::read_timestamptz(text, call.place.now, &call.place.zone)?;
            (moments::to_civil(utc, &call.place.zone)?, Some(utc))
        }
        None => clocks(call, 1)?,
    };
    let time = moments::civil_of(clock)?;
    let cut = cut_time(&unit, time, clock).ok_or_else(|| unrecognized(&unit, call))?;
    match call.gives {
        DataType::Timestamp(_, Some(_)) => Ok(point(moments::to_utc(cut, &call.place.zone)?)),
        _ => Ok(civil(cut)),
    }
}

fn cut_time(unit: &str, time: DateTime, clock: i64) -> Option<i64> {
    let date = time.date();
    let year = date.year();
    let first = |year: i16, month: i8| Date::new(year, month, 1).ok();
    let within = |unit: i64| Some(clock - clock.rem_euclid(unit));
    let day = match unit {
        "microsecond" | "microseconds" => return Some(clock),
        "millisecond" | "milliseconds" => return within(1_000),
        "second" | "seconds" => return within(1_000_000),
        "minute" | "minutes" => return within(60_000_000),
        "hour" | "hours" => return within(3_600_000_000),
        "day" | "days" => return within(DAY_US),
        "week" | "weeks" => {
            let back = i64::from(date.weekday().to_monday_zero_offset());
            return Some(clock - clock.rem_euclid(DAY_US) - back * DAY_US);
        }
        "month" | "months" => first(year, date.month())?,
        "quarter" => first(year, (date.month() - 1) / 3 * 3 + 1)?,
        "year" | "years" => first(year, 1)?,
        "decade" | "decades" => first(year.div_euclid(10) * 10, 1)?,
        "century" | "centuries" => first((year - 1).div_euclid(100) * 100 + 1, 1)?,
        "millennium" | "millennia" => first((year - 1).div_euclid(1_000) * 1_000 + 1, 1)?,
        _ => return None,
    };
    Some(moments::microseconds_of(day.to_datetime(jiff::civil::Time::midnight())))
}

fn cut_interval(unit: &str, interval: Interval) -> Option<Interval> {
    let Interval { months, days, microseconds } = interval;
    let years = |step: i32| Interval { months: months / (12 * step) * 12 * step, ..Interval::default() };
    let clock = |unit: i64| Interval { months, days, microseconds: microseconds - microseconds % unit };
    Some(match unit {
        "microsecond" | "microseconds" => interval,
        "millisecond" | "milliseconds" => clock(1_000),
        "second" | "seconds" => clock(1_000_000),
        "minute" | "minutes" => clock(60_000_000),
        "hour" | "hours" => clock(3_600_000_000),
        "day" | "days" => Interval { months, days, microseconds: 0 },
        "month" | "months" => Interval { months, ..Interval::default() },
        "quarter" => Interval { months: months / 3 * 3, ..Interval::default() },
        "year" | "years" => years(1),
        "decade" | "decades" => years(10),
        "century" | "centuries" => years(100),
        "millennium" | "millennia" => years(1_000),
        _ => return None,
    })
}

/// Years, months and days between two times: field by field, days borrowed from the month of the earlier one.
fn age(call: &Call<'_>) -> Result<ScalarValue> {
    let (later, earlier) = (moments::civil_of(clocks(call, 0)?.0)?, moments::civil_of(clocks(call, 1)?.0)?);
    let (from, to, sign) = if later >= earlier { (earlier, later, 1) } else { (later, earlier, -1) };
    let clock = |time: DateTime| moments::microseconds_of(time).rem_euclid(DAY_US);
    let count = |date: Date| i32::from(date.year()) * 12 + i32::from(date.month());
    let mut microseconds = clock(to) - clock(from);
    let mut days = i32::from(to.day()) - i32::from(from.day());
    let mut months = count(to.date()) - count(from.date());
    if microseconds < 0 {
        microseconds += DAY_US;
        days -= 1;
    }
    if days < 0 {
        days += i32::from(from.date().days_in_month());
        months -= 1;
    }
    Ok(interval_value(Interval {
        months: sign * months,
        days: sign * days,
        microseconds: microseconds * i64::from(sign),
    }))
}
