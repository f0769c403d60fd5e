//! `to_date` and `to_timestamp`: texts read by a pattern. What is not known here is refused: a wrong time is worse than none.

use jiff::civil::{Date, DateTime};

use crate::error::SqlState;
use crate::sql::error::QueryError;
use crate::sql::moments;

type Result<T> = std::result::Result<T, QueryError>;

/// The fields with the digits that each has, longer ones before those that they begin with.
const FIELDS: &[(&str, usize)] = &[
    ("YYYY", 4),
    ("MONTH", 0),
    ("MON", 0),
    ("MM", 2),
    ("MI", 2),
    ("MS", 3),
    ("DDD", 3),
    ("DD", 2),
    ("HH24", 2),
    ("HH12", 2),
    ("HH", 2),
    ("SS", 2),
    ("US", 6),
    ("AM", 0),
    ("PM", 0),
];

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// What is read, part by part.
#[derive(Default)]
struct Read {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    hour: Option<i64>,
    twelve: bool,
    afternoon: Option<bool>,
    minute: Option<i64>,
    second: Option<i64>,
    microsecond: Option<i64>,
}

/// What the clocks show, in microseconds since 1970-01-01 00:00.
pub(super) fn read(text: &str, pattern: &str) -> Result<i64> {
    let mut read = Read::default();
    let (mut rest, mut template) = (text.trim_start(), pattern);
    while let Some(first) = template.chars().next() {
        template = template.strip_prefix("FM").or_else(|| template.strip_prefix("fm")).unwrap_or(template);
        let upper = template.to_ascii_uppercase();
        if let Some((field, digits)) = FIELDS.iter().find(|(field, _)| upper.starts_with(field)) {
            template = template.get(field.len()..).unwrap_or_default();
            if rest.trim_start().is_empty() {
                // What is not there is left open.
                break;
            }
            rest = read.field(field, *digits, rest.trim_start(), next_is_digits(template))?;
            continue;
        }
        if first.is_alphanumeric() || first == '"' {
            let message = format!("pattern \"{template}\" of to_timestamp is not supported");
            return Err(QueryError::new(SqlState::FeatureNotSupported, message));
        }
        // A separator stands for any other, for several, or for none.
        template = template.get(first.len_utf8()..).unwrap_or_default();
        rest = rest.trim_start_matches(|c: char| !c.is_alphanumeric());
    }
    read.moment(text)
}

/// Whether digits follow without anything between: a field has no more than its own then.
fn next_is_digits(template: &str) -> bool {
    let upper = template.to_ascii_uppercase();
    FIELDS.iter().any(|(field, digits)| *digits > 0 && upper.starts_with(field))
}

impl Read {
    /// Reads one field, and says what is left.
    fn field<'a>(&mut self, field: &str, digits: usize, rest: &'a str, adjacent: bool) -> Result<&'a str> {
        if digits == 0 {
            return self.word(field, rest);
        }
        let fraction = matches!(field, "MS" | "US");
        let most = if adjacent || fraction { digits } else { usize::MAX };
        if adjacent && rest.len() < digits {
            let message = format!("source string too short for \"{field}\" formatting field");
            return Err(QueryError::new(SqlState::InvalidDatetimeFormat, message));
        }
        let end = rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
        let (number, behind) = rest.split_at_checked(end).unwrap_or((rest, ""));
        let value: i64 = number.parse().map_err(|_| not_read(rest, digits, field))?;
        let length = u32::try_from(number.len()).unwrap_or_default();
        let place = match field {
            "YYYY" => &mut self.year,
            "MM" => &mut self.month,
            "DD" => &mut self.day,
            "DDD" => &mut self.day_of_year,
            "MI" => &mut self.minute,
            "SS" => &mut self.second,
            "MS" | "US" => &mut self.microsecond,
            _ => &mut self.hour,
        };
        *place = Some(if fraction { value * 10_i64.pow(6_u32.saturating_sub(length)) } else { value });
        self.twelve |= matches!(field, "HH" | "HH12");
        Ok(behind)
    }

    fn word<'a>(&mut self, field: &str, rest: &'a str) -> Result<&'a str> {
        let lower = rest.to_ascii_lowercase();
        let found = match field {
            "AM" | "PM" => {
                let found = [("am", false), ("pm", true)].into_iter().find(|(word, _)| lower.starts_with(word));
                found.map(|(word, afternoon)| {
                    self.afternoon = Some(afternoon);
                    word.len()
                })
            }
            _ => {
                let shown = |month: &'static str| if field == "MON" { month.get(..3).unwrap_or(month) } else { month };
                let months = MONTHS.iter().copied().map(shown).zip(1..);
                let found = months.into_iter().find(|(month, _)| lower.starts_with(month));
                found.map(|(month, number)| {
                    self.month = Some(number);
                    month.len()
                })
            }
        };
        let length = found.ok_or_else(|| not_read(rest, 0, field))?;
        Ok(rest.get(length..).unwrap_or_default())
    }

    fn moment(&self, text: &str) -> Result<i64> {
        let range = || {
            let message = format!("date/time field value out of range: \"{text}\"");
            QueryError::new(SqlState::DatetimeFieldOverflow, message)
        };
        let Some(year) = self.year else {
            let message = "a pattern of to_timestamp without YYYY is not supported";
            return Err(QueryError::new(SqlState::FeatureNotSupported, message));
        };
        let hour = match (self.hour.unwrap_or(if self.twelve { 12 } else { 0 }), self.twelve) {
            (hour @ 1..=12, true) => match self.afternoon {
                Some(true) => hour % 12 + 12,
                Some(false) => hour % 12,
                None => hour,
            },
            (hour, true) => {
                let message = format!("hour \"{hour}\" is invalid for the 12-hour clock");
                return Err(QueryError::new(SqlState::InvalidDatetimeFormat, message)
                    .hinting("Use the 24-hour clock, or give an hour between 1 and 12."));
            }
            (hour, false) => hour,
        };
        let small = |value: Option<i64>, least: i64| i8::try_from(value.unwrap_or(least)).map_err(|_| range());
        let year = i16::try_from(year).map_err(|_| range())?;
        let date = match self.day_of_year {
            Some(day) => {
                let first = Date::new(year, 1, 1).map_err(|_| range())?;
                let last = i64::from(first.days_in_year());
                let day = i16::try_from(day).ok().filter(|day| (1..=last).contains(&i64::from(*day)));
                first.with().day_of_year(day.ok_or_else(range)?).build().map_err(|_| range())?
            }
            None => Date::new(year, small(self.month, 1)?, small(self.day, 1)?).map_err(|_| range())?,
        };
        let hour = i8::try_from(hour).map_err(|_| range())?;
        let time = jiff::civil::Time::new(hour, small(self.minute, 0)?, small(self.second, 0)?, 0);
        let clock = DateTime::from_parts(date, time.map_err(|_| range())?);
        Ok(moments::microseconds_of(clock) + self.microsecond.unwrap_or_default())
    }
}

/// As PostgreSQL says it.
fn not_read(rest: &str, digits: usize, field: &str) -> QueryError {
    let shown: String = if digits > 0 { rest.chars().take(digits).collect() } else { rest.chars().take(12).collect() };
    QueryError::new(SqlState::InvalidDatetimeFormat, format!("invalid value \"{shown}\" for \"{field}\""))
}
