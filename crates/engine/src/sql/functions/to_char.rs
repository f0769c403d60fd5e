//! `to_char`: dates, times and intervals by a pattern. What is not known here is refused: a wrong text is worse than none.

use datafusion::common::ScalarValue;
use jiff::civil::DateTime;

use super::declared::Call;
use crate::error::SqlState;
use crate::sql::error::QueryError;
use crate::sql::moments::{self, DAY_US};
use crate::sql::printed;

type Result<T> = std::result::Result<T, QueryError>;

/// The patterns, longer ones before those that they begin with.
const PATTERNS: &[&str] = &[
    "YYYY", "yyyy", "YYY", "yyy", "YY", "yy", "Y,YYY", "IYYY", "iyyy", "IW", "iw", "ID", "id", "MONTH", "Month",
    "month", "MON", "Mon", "mon", "MM", "mm", "MI", "mi", "MS", "ms", "DAY", "Day", "day", "DDD", "ddd", "DD", "dd",
    "DY", "Dy", "dy", "D", "d", "HH24", "hh24", "HH12", "hh12", "HH", "hh", "SSSS", "ssss", "SS", "ss", "US", "us",
    "AM", "PM", "am", "pm", "A.M.", "P.M.", "Q", "WW", "ww", "W", "TZ", "OF", "CC",
];

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

fn unsupported(pattern: &str) -> QueryError {
    let message = format!("pattern \"{pattern}\" of to_char is not supported");
    QueryError::new(SqlState::FeatureNotSupported, message)
}

/// What is printed: what the clocks show, and how far they are from Greenwich.
struct Shown {
    time: DateTime,
    microseconds: i64,
    offset: Option<i32>,
    zone: String,
}

pub(super) fn to_char(call: &Call<'_>) -> Result<String> {
    let [value, pattern] = call.values else { return Err(unsupported("")) };
    let pattern = pattern.try_as_str().flatten().unwrap_or_default();
    if value.data_type().is_numeric() {
        return number(value, pattern);
    }
    let zone = &call.place.zone;
    let (clock, offset) = match (value, printed::microseconds(value)) {
        (ScalarValue::Date32(Some(days)), _) => (i64::from(*days) * DAY_US, None),
        (_, Some((utc, true))) => {
            let clock = moments::to_civil(utc, zone)?;
            (clock, i32::try_from((clock - utc) / 1_000_000).ok())
        }
        (_, Some((clock, false))) => (clock, None),
        _ => return Err(unsupported(pattern)),
    };
    let abbreviation = || {
        let time = jiff::Timestamp::from_microsecond(clock).unwrap_or_default();
        zone.to_offset_info(time).abbreviation().to_owned()
    };
    let zone = if offset.is_some() { abbreviation() } else { String::new() };
    let shown = Shown { time: moments::civil_of(clock)?, microseconds: clock.rem_euclid(DAY_US), offset, zone };
    written(pattern, &shown)
}

fn written(pattern: &str, shown: &Shown) -> Result<String> {
    let mut out = String::new();
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        if first == '"' {
            let behind = rest.get(1..).unwrap_or_default();
            let (quoted, behind) = behind.split_once('"').unwrap_or((behind, ""));
            if quoted.contains('\\') {
                return Err(unsupported(pattern));
            }
            out.push_str(quoted);
            rest = behind;
            continue;
        }
        let (fill, body) = match rest.strip_prefix("FM").or_else(|| rest.strip_prefix("fm")) {
            Some(body) => (false, body),
            None => (true, rest),
        };
        if let Some(part) = PATTERNS.iter().find(|part| body.starts_with(**part)) {
            let text = field(part, fill, shown).ok_or_else(|| unsupported(part))?;
            out.push_str(&text);
            rest = body.get(part.len()..).unwrap_or_default();
            for (suffix, upper) in [("TH", true), ("th", false)] {
                if let Some(behind) = rest.strip_prefix(suffix) {
                    let ending = ordinal(&text);
                    out.push_str(&if upper { ending.to_uppercase() } else { ending.to_owned() });
                    rest = behind;
                }
            }
            continue;
        }
        if first.is_alphabetic() {
            return Err(unsupported(pattern));
        }
        out.push(first);
        rest = rest.get(first.len_utf8()..).unwrap_or_default();
    }
    Ok(out)
}

fn ordinal(number: &str) -> &'static str {
    let teen = number.chars().rev().nth(1) == Some('1');
    match number.chars().last() {
        Some('1') if !teen => "st",
        Some('2') if !teen => "nd",
        Some('3') if !teen => "rd",
        _ => "th",
    }
}

/// A name in the case of its pattern, filled up to nine letters where it is a long one.
fn name(part: &str, name: &str, fill: bool) -> String {
    let name = if part.len() <= 3 && part.to_lowercase() != "day" { name.get(..3).unwrap_or(name) } else { name };
    let short = name.len() == 3 && part.to_lowercase() != "day" && part.to_lowercase() != "month";
    let cased = match (part.chars().next(), part.chars().nth(1)) {
        (Some(first), Some(second)) if first.is_uppercase() && second.is_uppercase() => name.to_uppercase(),
        (Some(first), _) if first.is_uppercase() => name.to_owned(),
        _ => name.to_lowercase(),
    };
    if fill && !short { format!("{cased:<9}") } else { cased }
}

fn field(part: &str, fill: bool, shown: &Shown) -> Option<String> {
    let Shown { time, microseconds, .. } = shown;
    let date = time.date();
    let year = i64::from(date.year());
    let digits = |value: i64, width: usize| if fill { format!("{value:0width$}") } else { value.to_string() };
    let half = if time.hour() % 12 == 0 { 12 } else { time.hour() % 12 };
    let upper = part.to_uppercase();
    Some(match upper.as_str() {
        "YYYY" => digits(year, 4),
        "YYY" => digits(year % 1_000, 3),
        "YY" => digits(year % 100, 2),
        "Y,YYY" => format!("{},{:03}", year / 1_000, year % 1_000),
        "IYYY" => digits(date.iso_week_date().year().into(), 4),
        "IW" => digits(date.iso_week_date().week().into(), 2),
        "ID" => date.weekday().to_monday_one_offset().to_string(),
        "MONTH" | "MON" => name(part, MONTHS.get(usize::try_from(date.month() - 1).ok()?)?, fill),
        "DAY" | "DY" => name(part, DAYS.get(usize::try_from(date.weekday().to_sunday_zero_offset()).ok()?)?, fill),
        "MM" => digits(date.month().into(), 2),
        "DDD" => digits(date.day_of_year().into(), 3),
        "DD" => digits(date.day().into(), 2),
        "D" => date.weekday().to_sunday_one_offset().to_string(),
        "HH24" => digits(time.hour().into(), 2),
        "HH12" | "HH" => digits(half.into(), 2),
        "MI" => digits(time.minute().into(), 2),
        "SS" => digits(time.second().into(), 2),
        "SSSS" => (microseconds / 1_000_000).to_string(),
        "MS" => digits(microseconds / 1_000 % 1_000, 3),
        "US" => digits(microseconds % 1_000_000, 6),
        "AM" | "PM" | "A.M." | "P.M." => {
            let half = if time.hour() < 12 { "AM" } else { "PM" };
            let text = if part.contains('.') { format!("{}.M.", half.get(..1)?) } else { half.to_owned() };
            if part.starts_with(char::is_uppercase) { text } else { text.to_lowercase() }
        }
        "Q" => ((date.month() - 1) / 3 + 1).to_string(),
        "WW" => digits((i64::from(date.day_of_year()) - 1) / 7 + 1, 2),
        "W" => ((date.day() - 1) / 7 + 1).to_string(),
        "CC" => digits((year + 99).div_euclid(100), 2),
        "TZ" => shown.zone.clone(),
        "OF" => moments::show_offset(shown.offset.unwrap_or_default()),
        _ => return None,
    })
}

/// Numbers by `9`, `0`, `.`, `,` and FM.
fn number(value: &ScalarValue, pattern: &str) -> Result<String> {
    let (fill, body) = match pattern.strip_prefix("FM") {
        Some(body) => (false, body),
        None => (true, pattern),
    };
    if body.is_empty() || !body.chars().all(|c| matches!(c, '9' | '0' | '.' | ',')) || body.matches('.').count() > 1 {
        return Err(unsupported(pattern));
    }
    let (whole_pattern, fraction_pattern) = body.split_once('.').unwrap_or((body, ""));
    let digits =
        printed::rescaled(&printed::digits(value)?, fraction_pattern.len()).ok_or_else(|| unsupported(pattern))?;
    let (negative, digits) = match digits.strip_prefix('-') {
        Some(positive) => (digits.bytes().any(|b| matches!(b, b'1'..=b'9')), positive),
        None => (false, digits.as_str()),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let whole = whole.trim_start_matches('0');
    let places = whole_pattern.chars().filter(|c| *c != ',').count();
    let overflow = whole.len() > places;
    let mut left: Vec<char> = Vec::new();
    let mut source = whole.chars().rev();
    let mut zeros = whole_pattern.chars().filter(|c| *c != ',').position(|c| c == '0').map_or(0, |at| places - at);
    for character in whole_pattern.chars().rev() {
        if character == ',' {
            left.push(if source.clone().next().is_some() || zeros > 0 { ',' } else { ' ' });
            continue;
        }
        let digit = source.next().or((zeros > 0).then_some('0'));
        left.push(if overflow { '#' } else { digit.unwrap_or(' ') });
        zeros = zeros.saturating_sub(1);
    }
    let left: String = left.into_iter().rev().collect();
    let sign = if negative { "-" } else { "" };
    let filled = left.trim_start();
    let bare = if filled.is_empty() && fraction.is_empty() { "0" } else { filled };
    let body = format!("{sign}{bare}");
    let width = left.chars().count() + 1;
    let front = if fill { format!("{body:>width$}") } else { body };
    let fraction = if overflow { "#".repeat(fraction.len()) } else { fraction.to_owned() };
    let fraction = if fill {
        fraction
    } else {
        let kept = fraction_pattern.rfind('0').map_or(0, |at| at + 1).max(fraction.trim_end_matches('0').len());
        fraction.get(..kept).unwrap_or(&fraction).to_owned()
    };
    Ok(if body_has_point(fraction_pattern, pattern) { format!("{front}.{fraction}") } else { front })
}

fn body_has_point(fraction_pattern: &str, pattern: &str) -> bool {
    !fraction_pattern.is_empty() || pattern.ends_with('.')
}
