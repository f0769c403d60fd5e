//! Dates, times and intervals as PostgreSQL reads and prints them.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, ToSpan};

use super::error::QueryError;
use super::places::Subject;
use crate::error::SqlState;

type Result<T> = std::result::Result<T, QueryError>;

pub(super) const DAY_US: i64 = 86_400_000_000;
const HOUR_US: i64 = 3_600_000_000;
const MINUTE_US: i64 = 60_000_000;
const SECOND_US: i64 = 1_000_000;

/// An interval: its parts do not turn into each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Interval {
    pub(super) months: i32,
    pub(super) days: i32,
    pub(super) microseconds: i64,
}

/// A text that is no value of its type.
pub(super) fn invalid(kind: &str, text: &str) -> QueryError {
    let sqlstate = match kind {
        "date" | "timestamp" | "timestamp with time zone" | "time" | "interval" => SqlState::InvalidDatetimeFormat,
        _ => SqlState::InvalidTextRepresentation,
    };
    let shown: String = text.chars().take(60).collect();
    QueryError::new(sqlstate, format!("invalid input syntax for type {kind}: \"{shown}\""))
        .about(Subject::Literal(text.to_owned()))
}

fn out_of_field(text: &str) -> QueryError {
    QueryError::new(SqlState::DatetimeFieldOverflow, format!("date/time field value out of range: \"{text}\""))
        .about(Subject::Literal(text.to_owned()))
}

/// A result that no date can be.
pub(super) fn out_of_range(kind: &str) -> QueryError {
    QueryError::new(SqlState::DatetimeFieldOverflow, format!("{kind} out of range"))
}

/// What a text says of a moment.
#[derive(Debug, Default, Clone)]
struct Read {
    date: Option<Date>,
    time: Option<i64>,
    zone: Option<TimeZone>,
}

fn read(text: &str, kind: &str, now: Timestamp, zone: &TimeZone) -> Result<Read> {
    let trimmed = text.trim();
    let wrong = || invalid(kind, text);
    let today = || now.to_zoned(zone.clone()).date();
    match trimmed.to_lowercase().as_str() {
        "now" => {
            let here = now.to_zoned(zone.clone()).datetime();
            return Ok(Read { date: Some(here.date()), time: Some(time_us(here.time())), zone: None });
        }
        "today" => return Ok(Read { date: Some(today()), time: Some(0), zone: None }),
        "tomorrow" => return Ok(Read { date: today().tomorrow().ok(), time: Some(0), zone: None }),
        "yesterday" => return Ok(Read { date: today().yesterday().ok(), time: Some(0), zone: None }),
        "epoch" => {
            return Ok(Read { date: Some(Date::constant(1970, 1, 1)), time: Some(0), zone: Some(TimeZone::UTC) });
        }
        "infinity" | "-infinity" => {
            return Err(QueryError::new(SqlState::FeatureNotSupported, format!("an infinite {kind} is not supported")));
        }
        _ => {}
    }
    let mut result = Read::default();
    let mut rest = trimmed;
    if let Some((date, behind)) = leading_date(rest) {
        result.date = Some(date.ok_or_else(|| out_of_field(text))?);
        rest = behind;
    }
    let rest = rest.strip_prefix(['T', 't', ' ']).unwrap_or(rest).trim();
    let length = rest.find(|c: char| !(c.is_ascii_digit() || matches!(c, ':' | '.'))).unwrap_or(rest.len());
    let (clock, behind) = rest.split_at_checked(length).ok_or_else(wrong)?;
    if !clock.is_empty() {
        result.time = Some(clock_us(clock).ok_or_else(wrong)?.ok_or_else(|| out_of_field(text))?);
    }
    if !behind.trim().is_empty() {
        result.zone = Some(zone_named(behind.trim()).ok_or_else(wrong)?);
    }
    if result.date.is_none() && result.time.is_none() {
        return Err(wrong());
    }
    Ok(result)
}

/// `2024-01-31` or `20240131` at the beginning; the date is none where there is no such day.
fn leading_date(text: &str) -> Option<(Option<Date>, &str)> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let first = digits(text);
    let (year, rest) = text.split_at_checked(first)?;
    let (year, month, day, rest) = if first == 8 {
        (year.get(..4)?, year.get(4..6)?, year.get(6..)?, rest)
    } else {
        let rest = rest.strip_prefix(['-', '/'])?;
        let (month, rest) = rest.split_at_checked(digits(rest))?;
        let rest = rest.strip_prefix(['-', '/'])?;
        let (day, rest) = rest.split_at_checked(digits(rest))?;
        (year, month, day, rest)
    };
    if year.len() < 3 || month.is_empty() || day.is_empty() {
        return None;
    }
    let date = || Date::new(year.parse().ok()?, month.parse().ok()?, day.parse().ok()?).ok();
    Some((date(), rest))
}

/// Microseconds of `12:34`, `12:34:56.789`; the inner value is none where there is no such time.
fn clock_us(text: &str) -> Option<Option<i64>> {
    let mut parts = text.split(':');
    let hours: i64 = parts.next()?.parse().ok()?;
    let minutes: i64 = parts.next()?.parse().ok()?;
    let seconds = match parts.next() {
        Some(seconds) => seconds_us(seconds)?,
        None => 0,
    };
    if parts.next().is_some() {
        return None;
    }
    let whole = hours.checked_mul(HOUR_US)?.checked_add(minutes.checked_mul(MINUTE_US)?)?.checked_add(seconds)?;
    let good = minutes < 60 && seconds <= MINUTE_US && whole <= DAY_US;
    Some(good.then_some(whole))
}

/// `5`, `5.25`, rounded to microseconds.
fn seconds_us(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    if !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let fraction = if fraction.is_empty() { 0.0 } else { format!("0.{fraction}").parse::<f64>().ok()? };
    whole.checked_mul(SECOND_US)?.checked_add((fraction * 1e6).round() as i64)
}

/// A zone by name or by its distance from Greenwich.
pub(crate) fn zone_named(name: &str) -> Option<TimeZone> {
    if matches!(name.to_ascii_lowercase().as_str(), "z" | "utc" | "gmt" | "zulu") {
        return Some(TimeZone::UTC);
    }
    let sign = match name.as_bytes().first() {
        Some(b'+') => 1,
        Some(b'-') => -1,
        _ => return TimeZone::get(name).ok(),
    };
    let digits = name.get(1..)?;
    let (hours, minutes) = match digits.split_once(':') {
        Some((hours, minutes)) => (hours, minutes.split(':').next()?),
        None if digits.len() > 2 => digits.split_at_checked(digits.len().checked_sub(2)?)?,
        None => (digits, "0"),
    };
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    if hours > 15 || minutes > 59 {
        return None;
    }
    Offset::from_seconds(sign * (hours * 3_600 + minutes * 60)).ok().map(TimeZone::fixed)
}

fn time_us(time: Time) -> i64 {
    i64::from(time.hour()) * HOUR_US
        + i64::from(time.minute()) * MINUTE_US
        + i64::from(time.second()) * SECOND_US
        + i64::from(time.subsec_nanosecond()) / 1_000
}

/// Days since 1970-01-01.
pub(super) fn days_of(date: Date) -> i32 {
    let span = Date::constant(1970, 1, 1).until(date).map(|span| span.get_days());
    span.unwrap_or_default()
}

/// The date so many days after 1970-01-01.
pub(super) fn date_of(days: i32) -> Result<Date> {
    Date::constant(1970, 1, 1).checked_add(days.days()).map_err(|_| out_of_range("date"))
}

/// The date and time so many microseconds after 1970-01-01.
pub(super) fn civil_of(microseconds: i64) -> Result<DateTime> {
    let days = i32::try_from(microseconds.div_euclid(DAY_US)).map_err(|_| out_of_range("timestamp"))?;
    Ok(date_of(days).map_err(|_| out_of_range("timestamp"))?.to_datetime(clock_of(microseconds.rem_euclid(DAY_US))))
}

/// Microseconds since 1970-01-01.
pub(super) fn microseconds_of(civil: DateTime) -> i64 {
    i64::from(days_of(civil.date())) * DAY_US + time_us(civil.time())
}

fn clock_of(microseconds: i64) -> Time {
    let part = |unit: i64, of: i64| i8::try_from(microseconds / unit % of).unwrap_or_default();
    let nanoseconds = i32::try_from(microseconds % SECOND_US * 1_000).unwrap_or_default();
    Time::new(part(HOUR_US, 24), part(MINUTE_US, 60), part(SECOND_US, 60), nanoseconds).unwrap_or(Time::midnight())
}

/// A time of a zone's clocks as a point in time.
pub(super) fn to_utc(civil: i64, zone: &TimeZone) -> Result<i64> {
    let civil = civil_of(civil)?;
    let zoned = zone.to_ambiguous_timestamp(civil).compatible();
    zoned.map(|time| time.as_microsecond()).map_err(|_| out_of_range("timestamp"))
}

/// A point in time as a zone's clocks show it.
pub(super) fn to_civil(utc: i64, zone: &TimeZone) -> Result<i64> {
    let time = Timestamp::from_microsecond(utc).map_err(|_| out_of_range("timestamp"))?;
    Ok(microseconds_of(zone.to_datetime(time)))
}

pub(super) fn read_date(text: &str, now: Timestamp, zone: &TimeZone) -> Result<i32> {
    let read = read(text, "date", now, zone)?;
    read.date.map(days_of).ok_or_else(|| invalid("date", text))
}

pub(super) fn read_timestamp(text: &str, now: Timestamp, zone: &TimeZone) -> Result<i64> {
    let read = read(text, "timestamp", now, zone)?;
    let date = read.date.ok_or_else(|| invalid("timestamp", text))?;
    Ok(i64::from(days_of(date)) * DAY_US + read.time.unwrap_or_default())
}

pub(super) fn read_timestamptz(text: &str, now: Timestamp, zone: &TimeZone) -> Result<i64> {
    let kind = "timestamp with time zone";
    let read = read(text, kind, now, zone)?;
    let date = read.date.ok_or_else(|| invalid(kind, text))?;
    let civil = i64::from(days_of(date)) * DAY_US + read.time.unwrap_or_default();
    to_utc(civil, read.zone.as_ref().unwrap_or(zone))
}

pub(super) fn read_time(text: &str, now: Timestamp, zone: &TimeZone) -> Result<i64> {
    read(text, "time", now, zone)?.time.ok_or_else(|| invalid("time", text))
}

/// What each unit of an interval is: months, days, microseconds.
fn unit(word: &str) -> Option<(f64, f64, f64)> {
    let word = word.to_lowercase();
    let singular = if word.len() > 2 { word.trim_end_matches('s') } else { word.as_str() };
    Some(match singular {
        "microsecond" | "us" | "usec" => (0.0, 0.0, 1.0),
        "millisecond" | "ms" | "msec" => (0.0, 0.0, 1e3),
        "second" | "sec" | "s" => (0.0, 0.0, 1e6),
        "minute" | "min" | "m" => (0.0, 0.0, 6e7),
        "hour" | "hr" | "h" => (0.0, 0.0, 3.6e9),
        "day" | "d" => (0.0, 1.0, 0.0),
        "week" | "w" => (0.0, 7.0, 0.0),
        "month" | "mon" => (1.0, 0.0, 0.0),
        "year" | "yr" | "y" => (12.0, 0.0, 0.0),
        "decade" | "dec" => (120.0, 0.0, 0.0),
        "century" | "centurie" | "cent" | "c" => (1_200.0, 0.0, 0.0),
        "millennium" | "millennia" | "mil" => (12_000.0, 0.0, 0.0),
        _ => return None,
    })
}

/// An interval being put together, its fractions carried down.
#[derive(Default)]
struct Sum {
    months: f64,
    days: f64,
    microseconds: f64,
}

impl Sum {
    fn add(&mut self, count: f64, (months, days, microseconds): (f64, f64, f64)) {
        let all_months = count * months;
        self.months += all_months.trunc();
        let all_days = count * days + if months >= 12.0 { 0.0 } else { all_months.fract() * 30.0 };
        if months >= 12.0 {
            self.months += all_months.fract().round();
        }
        self.days += all_days.trunc();
        self.microseconds += all_days.fract() * DAY_US as f64 + count * microseconds;
    }

    fn finish(self, text: &str) -> Result<Interval> {
        let wide = || {
            let message = format!("interval field value out of range: \"{text}\"");
            QueryError::new(SqlState::IntervalFieldOverflow, message).about(Subject::Literal(text.to_owned()))
        };
        let small = |value: f64| (value.abs() <= f64::from(i32::MAX)).then_some(value as i32).ok_or_else(wide);
        let microseconds = self.microseconds.round();
        if microseconds.abs() >= 9.2e18 {
            return Err(wide());
        }
        Ok(Interval { months: small(self.months)?, days: small(self.days)?, microseconds: microseconds as i64 })
    }
}

pub(super) fn read_interval(text: &str) -> Result<Interval> {
    let wrong = || invalid("interval", text);
    let mut trimmed = text.trim().to_lowercase();
    if let Some(iso) = trimmed.strip_prefix('p') {
        return read_iso(iso, text);
    }
    let ago = trimmed.ends_with(" ago");
    if ago {
        trimmed.truncate(trimmed.len().saturating_sub(4));
    }
    let mut sum = Sum::default();
    let words = words_of(trimmed.trim_start_matches('@'));
    let mut words = words.iter().map(String::as_str).peekable();
    if words.peek().is_none() {
        return Err(wrong());
    }
    while let Some(word) = words.next() {
        if let Some((negative, clock)) = signed_clock(word) {
            let clock = interval_clock(clock).ok_or_else(wrong)?;
            sum.microseconds += if negative { -clock } else { clock };
            continue;
        }
        let count: f64 = word.parse().map_err(|_| wrong())?;
        match words.next() {
            Some(name) => sum.add(count, unit(name).ok_or_else(wrong)?),
            None => sum.add(count, (0.0, 0.0, 1e6)),
        }
    }
    if ago {
        sum = Sum { months: -sum.months, days: -sum.days, microseconds: -sum.microseconds };
    }
    sum.finish(text)
}

/// Words, numbers apart from the letters that follow them.
fn words_of(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let letters = word.find(|c: char| c.is_alphabetic()).unwrap_or(word.len());
        let (number, letters) = word.split_at_checked(letters).unwrap_or((word, ""));
        words.extend([number, letters].iter().filter(|part| !part.is_empty()).map(|part| (*part).to_owned()));
    }
    words
}

fn signed_clock(word: &str) -> Option<(bool, &str)> {
    if !word.contains(':') {
        return None;
    }
    match word.strip_prefix('-') {
        Some(clock) => Some((true, clock)),
        None => Some((false, word.strip_prefix('+').unwrap_or(word))),
    }
}

/// `100:00:00` is a hundred hours.
fn interval_clock(text: &str) -> Option<f64> {
    let mut parts = text.split(':');
    let hours: i64 = parts.next()?.parse().ok()?;
    let minutes: i64 = parts.next()?.parse().ok()?;
    let seconds = match parts.next() {
        Some(seconds) => seconds_us(seconds)?,
        None => 0,
    };
    if parts.next().is_some() || minutes > 59 {
        return None;
    }
    Some(hours as f64 * 3.6e9 + minutes as f64 * 6e7 + seconds as f64)
}

/// `1y2m3dt4h5m6s`, ISO 8601 without its P.
fn read_iso(iso: &str, text: &str) -> Result<Interval> {
    let wrong = || invalid("interval", text);
    let mut sum = Sum::default();
    let (mut rest, mut clock) = (iso, false);
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        if let Some(behind) = rest.strip_prefix('t') {
            (rest, clock) = (behind, true);
            continue;
        }
        let length = rest.find(|c: char| c.is_alphabetic()).ok_or_else(wrong)?;
        let (number, behind) = rest.split_at_checked(length).ok_or_else(wrong)?;
        let count: f64 = number.parse().map_err(|_| wrong())?;
        let name = behind.chars().next().ok_or_else(wrong)?;
        let part = match (name, clock) {
            ('y', false) => (12.0, 0.0, 0.0),
            ('m', false) => (1.0, 0.0, 0.0),
            ('w', false) => (0.0, 7.0, 0.0),
            ('d', false) => (0.0, 1.0, 0.0),
            ('h', true) => (0.0, 0.0, 3.6e9),
            ('m', true) => (0.0, 0.0, 6e7),
            ('s', true) => (0.0, 0.0, 1e6),
            _ => return Err(wrong()),
        };
        sum.add(count, part);
        rest = behind.get(1..).unwrap_or_default();
    }
    sum.finish(text)
}

/// `.5` behind seconds, or nothing.
fn fraction(microseconds: i64) -> String {
    if microseconds == 0 {
        return String::new();
    }
    format!(".{microseconds:06}").trim_end_matches('0').to_owned()
}

/// A time of day, or an interval without its days, in PostgreSQL's text: `04:05:06.5`.
pub fn time_text(microseconds: i64) -> String {
    let (hours, minutes) = (microseconds / HOUR_US, microseconds / MINUTE_US % 60);
    let seconds = microseconds / SECOND_US % 60;
    format!("{hours:02}:{minutes:02}:{seconds:02}{}", fraction(microseconds % SECOND_US))
}

pub(super) fn show_date(days: i32) -> Result<String> {
    Ok(date_of(days)?.to_string())
}

pub(super) fn show_timestamp(microseconds: i64) -> Result<String> {
    let date = civil_of(microseconds)?.date();
    Ok(format!("{date} {}", time_text(microseconds.rem_euclid(DAY_US))))
}

pub(super) fn show_timestamptz(microseconds: i64, zone: &TimeZone) -> Result<String> {
    let time = Timestamp::from_microsecond(microseconds).map_err(|_| out_of_range("timestamp"))?;
    let offset = zone.to_offset(time).seconds();
    Ok(format!("{}{}", show_timestamp(to_civil(microseconds, zone)?)?, show_offset(offset)))
}

/// `+02`, `-03:30`.
pub(super) fn show_offset(seconds: i32) -> String {
    let (hours, minutes) = (seconds.abs() / 3_600, seconds.abs() % 3_600 / 60);
    let sign = if seconds < 0 { '-' } else { '+' };
    if minutes == 0 { format!("{sign}{hours:02}") } else { format!("{sign}{hours:02}:{minutes:02}") }
}

pub(super) fn show_interval(interval: Interval) -> String {
    interval_text(interval.months, interval.days, interval.microseconds)
}

/// An interval in PostgreSQL's text: `1 year 2 mons -3 days +04:05:06.5`. A part that follows a negative one shows its
/// sign.
pub fn interval_text(months: i32, days: i32, microseconds: i64) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut negative = false;
    for (value, one, many) in [(months / 12, "year", "years"), (months % 12, "mon", "mons"), (days, "day", "days")] {
        if value != 0 {
            let sign = if negative && value > 0 { "+" } else { "" };
            parts.push(format!("{sign}{value} {}", if value == 1 { one } else { many }));
            negative = value < 0;
        }
    }
    if microseconds != 0 || parts.is_empty() {
        let sign = match (microseconds < 0, negative) {
            (true, _) => "-",
            (false, true) => "+",
            (false, false) => "",
        };
        parts.push(format!("{sign}{}", time_text(i64::try_from(microseconds.unsigned_abs()).unwrap_or(i64::MAX))));
    }
    parts.join(" ")
}

/// A time with an interval added: months first, then days, on the clocks' calendar; then what is left.
pub(super) fn moved(civil: i64, by: Interval) -> Result<i64> {
    let range = || out_of_range("timestamp");
    let date = civil_of(civil)?;
    let date = date.checked_add(by.months.months()).map_err(|_| range())?;
    let date = date.checked_add(by.days.days()).map_err(|_| range())?;
    let moved = microseconds_of(date).checked_add(by.microseconds).ok_or_else(range)?;
    civil_of(moved).map(|_| moved)
}

/// The same of a point in time: months and days are those of the zone's calendar.
pub(super) fn moved_in_zone(utc: i64, by: Interval, zone: &TimeZone) -> Result<i64> {
    let civil = moved(to_civil(utc, zone)?, Interval { microseconds: 0, ..by })?;
    let at = if by.months == 0 && by.days == 0 { utc } else { to_utc(civil, zone)? };
    at.checked_add(by.microseconds).ok_or_else(|| out_of_range("timestamp"))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may fail")]

    use super::*;

    #[test]
    fn intervals_are_read_and_printed() {
        for (text, expected) in [
            ("1 day", "1 day"),
            ("1 month 2 days 03:04:05", "1 mon 2 days 03:04:05"),
            ("90 minutes", "01:30:00"),
            ("1 year 2 months", "1 year 2 mons"),
            ("-1 day", "-1 days"),
            ("1.5 hours", "01:30:00"),
            ("100 hours", "100:00:00"),
            ("1 week", "7 days"),
            ("1.5 months", "1 mon 15 days"),
            ("1.5 days", "1 day 12:00:00"),
            ("2 days ago", "-2 days"),
            ("P1Y2M3DT4H5M6S", "1 year 2 mons 3 days 04:05:06"),
            ("5", "00:00:05"),
            ("1day 2hours", "1 day 02:00:00"),
            ("-1 days +02:03:00", "-1 days +02:03:00"),
            ("0", "00:00:00"),
        ] {
            assert_eq!(show_interval(read_interval(text).unwrap()), expected, "{text}");
        }
        for wrong in ["", "x", "1 fortnight", "1 day x"] {
            assert_eq!(read_interval(wrong).map_err(|error| error.sqlstate), Err(SqlState::InvalidDatetimeFormat));
        }
    }

    #[test]
    fn moments_are_read_in_their_zone() {
        let (now, berlin) = (Timestamp::UNIX_EPOCH, TimeZone::get("Europe/Berlin").unwrap());
        let shown = |text: &str| show_timestamptz(read_timestamptz(text, now, &berlin).unwrap(), &berlin).unwrap();
        for (text, expected) in [
            ("2024-01-31 12:00:00", "2024-01-31 12:00:00+01"),
            ("2024-07-01T12:00:00Z", "2024-07-01 14:00:00+02"),
            ("2024-07-01 12:00:00.25-03:30", "2024-07-01 17:30:00.25+02"),
            ("2024-07-01", "2024-07-01 00:00:00+02"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
        let refused = |text: &str| read_date(text, now, &berlin).unwrap_err().sqlstate;
        assert_eq!(refused("x"), SqlState::InvalidDatetimeFormat);
        assert_eq!(refused("2024-02-30"), SqlState::DatetimeFieldOverflow);
    }
}
