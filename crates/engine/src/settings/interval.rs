//! Durations as users write them: `10 mins`, `1 day 02:30`, `00:10`, `PT5M`.

const SECOND: i128 = 1_000_000;

/// The units, each with its names and its length in microseconds. A month is 30 days, a year 365.
const UNITS: [(&[&str], i128); 9] = [
    (&["microsecond", "microseconds", "usec", "usecs", "us"], 1),
    (&["millisecond", "milliseconds", "msec", "msecs", "ms"], 1_000),
    (&["second", "seconds", "sec", "secs", "s"], SECOND),
    (&["minute", "minutes", "min", "mins", "m"], 60 * SECOND),
    (&["hour", "hours", "hr", "hrs", "h"], 3_600 * SECOND),
    (&["day", "days", "d"], 86_400 * SECOND),
    (&["week", "weeks", "w"], 7 * 86_400 * SECOND),
    (&["month", "months", "mon", "mons"], 30 * 86_400 * SECOND),
    (&["year", "years", "yr", "yrs", "y"], 365 * 86_400 * SECOND),
];

/// Reads a duration that is not negative; microseconds. A bare number is seconds.
pub fn parse(text: &str) -> Option<u64> {
    let text = text.trim();
    let total = if text.starts_with(['P', 'p']) { iso(text)? } else { words(text)? };
    u64::try_from(total).ok()
}

/// The duration as Vertica's tables show it: `00:10`, `01:00:30`, `2 days 00:00`.
pub fn show(micros: u64) -> String {
    let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let mut text = match days {
        0 => String::new(),
        1 => "1 day ".to_owned(),
        _ => format!("{days} days "),
    };
    text.push_str(&format!("{:02}:{:02}", rest / 3_600, rest / 60 % 60));
    if rest % 60 != 0 || fraction != 0 {
        text.push_str(&format!(":{:02}", rest % 60));
    }
    if fraction != 0 {
        text.push_str(format!(".{fraction:06}").trim_end_matches('0'));
    }
    text
}

/// `number unit ...`, with a clock at the end or alone.
fn words(text: &str) -> Option<i128> {
    let mut total = 0_i128;
    let mut rest = text;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ':')).unwrap_or(rest.len());
        let (number, after) = rest.split_at_checked(end)?;
        if number.contains(':') {
            total = total.checked_add(clock(number)?)?;
            rest = after.trim_start();
            continue;
        }
        let after = after.trim_start();
        let end = after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at_checked(end)?;
        // A number alone is seconds, but only when it is all there is.
        let length = if unit.is_empty() && number.len() == text.len() { SECOND } else { unit_length(unit)? };
        total = total.checked_add(scaled(number, length)?)?;
        rest = after.trim_start();
        rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
    }
    Some(total)
}

fn unit_length(unit: &str) -> Option<i128> {
    let unit = unit.to_lowercase();
    UNITS.iter().find(|(names, _)| names.contains(&unit.as_str())).map(|(_, length)| *length)
}

/// A decimal number of units, rounded down to microseconds.
fn scaled(number: &str, length: i128) -> Option<i128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole: i128 = if whole.is_empty() && !fraction.is_empty() { 0 } else { digits(whole)? };
    let whole = whole.checked_mul(length)?;
    if fraction.is_empty() {
        return Some(whole);
    }
    let power = 10_i128.checked_pow(u32::try_from(fraction.len()).ok().filter(|len| *len <= 15)?)?;
    whole.checked_add(digits(fraction)?.checked_mul(length)? / power)
}

fn digits(text: &str) -> Option<i128> {
    (!text.is_empty() && text.len() <= 18 && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok())?
}

/// `hh:mm` or `hh:mm:ss[.fraction]`.
fn clock(text: &str) -> Option<i128> {
    let mut parts = text.split(':');
    let hours = digits(parts.next()?)?;
    let minutes = digits(parts.next()?).filter(|minutes| *minutes < 60)?;
    let seconds = match parts.next() {
        Some(seconds) => scaled(seconds, SECOND).filter(|seconds| *seconds < 60 * SECOND)?,
        None => 0,
    };
    if parts.next().is_some() {
        return None;
    }
    Some((hours * 3_600 + minutes * 60) * SECOND + seconds)
}

/// ISO 8601: `P1DT2H`.
fn iso(text: &str) -> Option<i128> {
    let mut rest = text.get(1..)?;
    let mut in_time = false;
    let mut total = None;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix(['T', 't'])
            && !in_time
        {
            (in_time, rest) = (true, after);
            continue;
        }
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
        let (number, after) = rest.split_at_checked(end)?;
        let mut letters = after.chars();
        let unit = match (letters.next()?.to_ascii_uppercase(), in_time) {
            ('Y', false) => "y",
            ('M', false) => "mon",
            ('W', false) => "w",
            ('D', false) => "d",
            ('H', true) => "h",
            ('M', true) => "m",
            ('S', true) => "s",
            _ => return None,
        };
        rest = letters.as_str();
        total = Some(scaled(number, unit_length(unit)?)?.checked_add(total.unwrap_or(0))?);
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        let minute = 60_000_000;
        for (text, micros) in [
            ("10 mins", 10 * minute),
            ("00:10", 10 * minute),
            ("1 day 02:30", 26 * 60 * minute + 30 * minute),
            ("1 day, 2 hours", 26 * 60 * minute),
            ("90", 90_000_000),
            ("1.5 h", 90 * minute),
            ("10min", 10 * minute),
            ("00:00:01.25", 1_250_000),
            ("PT5M", 5 * minute),
            ("P1DT1H", 25 * 60 * minute),
            ("1 year", 365 * 24 * 60 * minute),
            ("20 days", 20 * 24 * 60 * minute),
        ] {
            assert_eq!(parse(text), Some(micros), "{text}");
        }
    }

    #[test]
    fn refuses_the_rest() {
        for text in [
            "",
            "-1 day",
            "ten minutes",
            "10 fortnights",
            "1:2:3:4",
            "00:99",
            "P",
            "5 10",
            "P1H",
            "1e3",
            "9999999999999999999 years",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn shows_as_vertica_does() {
        for (text, shown) in
            [("10 mins", "00:10"), ("1 h 30 s", "01:00:30"), ("2 days", "2 days 00:00"), ("1500 ms", "00:00:01.5")]
        {
            assert_eq!(parse(text).map(show).as_deref(), Some(shown), "{text}");
        }
    }
}
