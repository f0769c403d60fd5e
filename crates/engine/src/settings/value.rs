//! How a value is read and shown.

use datafusion::arrow::array::timezone::Tz;
use switchyard_dialect::Value;

use super::{Declaration, Kind, SettingError, Unit, interval};

/// The units of a number of milliseconds and of kilobytes, the largest first.
const MS_UNITS: [(&str, i64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000), ("ms", 1)];
const KB_UNITS: [(&str, i64); 4] = [("TB", 1 << 30), ("GB", 1 << 20), ("MB", 1 << 10), ("kB", 1)];

/// The value's text, whichever way it was written.
pub(super) fn text_of(value: &Value) -> &str {
    match value {
        Value::Text(text) | Value::Number(text) | Value::Word(text) => text,
    }
}

/// A part of a list: quoted when its text would read otherwise.
pub(super) fn list_part(setting: &Declaration, value: &Value) -> String {
    let text = text_of(value);
    let plain = !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_');
    if setting.name == "search_path" && !plain { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

pub(super) fn read(setting: &Declaration, text: &str) -> Result<String, SettingError> {
    match setting.kind {
        Kind::Bool => boolean(text)
            .map(|on| if on { "on" } else { "off" }.to_owned())
            .ok_or(SettingError::NotBoolean { name: setting.name }),
        Kind::Flag => boolean(text)
            .map(|on| if on { "1" } else { "0" }.to_owned())
            .ok_or(SettingError::NotBoolean { name: setting.name }),
        Kind::Int { min, max, unit } => integer(setting, text, (min, max), unit),
        Kind::Enum(words) => words
            .iter()
            .find(|word| word.eq_ignore_ascii_case(text))
            .map(|word| (*word).to_owned())
            .ok_or_else(|| invalid(setting, text, Some(format!("Available values: {}.", words.join(", "))))),
        Kind::Text => Ok(text.to_owned()),
        Kind::Interval { max_days } => duration(setting, text, max_days),
        Kind::Checked(check) | Kind::List(check) => {
            check(text).map_err(|hint| invalid(setting, text, hint.map(str::to_owned)))
        }
    }
}

pub(super) fn shown(setting: &Declaration, kept: &str) -> String {
    let units: &[(&str, i64)] = match setting.kind {
        Kind::Int { unit: Unit::Ms, .. } => &MS_UNITS,
        Kind::Int { unit: Unit::Kb, .. } => &KB_UNITS,
        _ => return kept.to_owned(),
    };
    let Ok(number) = kept.parse::<i64>() else { return kept.to_owned() };
    match units.iter().find(|(_, size)| number != 0 && number % size == 0) {
        Some((unit, size)) => format!("{}{unit}", number / size),
        None => kept.to_owned(),
    }
}

fn invalid(setting: &Declaration, text: &str, hint: Option<String>) -> SettingError {
    SettingError::Invalid { name: setting.name, value: text.to_owned(), hint }
}

/// PostgreSQL's Boolean words, and any beginning that fits only one.
pub(super) fn boolean(text: &str) -> Option<bool> {
    let text = text.trim().to_ascii_lowercase();
    let begins = |word: &str, least: usize| text.len() >= least && word.starts_with(&text);
    if begins("true", 1) || begins("yes", 1) || begins("on", 2) || text == "1" {
        return Some(true);
    }
    (begins("false", 1) || begins("no", 1) || begins("off", 2) || text == "0").then_some(false)
}

/// A number, perhaps with a fraction, an exponent and a unit; fractions round, halves to even.
fn integer(setting: &Declaration, text: &str, (min, max): (i64, i64), unit: Unit) -> Result<String, SettingError> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || "+-.".contains(c))).unwrap_or(text.len());
    let (mut number, mut suffix) = text.split_at_checked(end).unwrap_or((text, ""));
    if suffix.starts_with(['e', 'E']) && text.parse::<f64>().is_ok() {
        (number, suffix) = (text, "");
    }
    let value: f64 = number.parse().map_err(|_| invalid(setting, text, None))?;
    let suffix = suffix.trim();
    let (units, base, valid): (&[(&str, i64)], &str, &str) = match unit {
        Unit::None => (&[], "", ""),
        Unit::Ms => {
            (&MS_UNITS, "ms", "Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\".")
        }
        Unit::Kb => (&KB_UNITS, "kB", "Valid units for this parameter are \"B\", \"kB\", \"MB\", \"GB\", and \"TB\"."),
    };
    let factor = match suffix {
        "" => 1.0,
        "us" if unit == Unit::Ms => 0.001,
        "B" if unit == Unit::Kb => 1.0 / 1024.0,
        _ => match units.iter().find(|(word, _)| *word == suffix) {
            Some((_, factor)) => *factor as f64,
            None => return Err(invalid(setting, text, (!valid.is_empty()).then(|| valid.to_owned()))),
        },
    };
    let value = (value * factor).round_ties_even();
    if !value.is_finite() || value.abs() > 9.0e15 {
        return Err(invalid(setting, text, Some("Value exceeds integer range.".to_owned())));
    }
    // Checked just above: the number is whole and small.
    let value = value as i64;
    if (min..=max).contains(&value) {
        return Ok(value.to_string());
    }
    let value = if base.is_empty() { value.to_string() } else { format!("{value} {base}") };
    Err(SettingError::OutOfRange { name: setting.name, value, min, max })
}

fn duration(setting: &Declaration, text: &str, max_days: u64) -> Result<String, SettingError> {
    let text = text.trim();
    if text.is_empty() || text.eq_ignore_ascii_case("none") || text.eq_ignore_ascii_case("unlimited") {
        return Ok("unlimited".to_owned());
    }
    let hint = || Some(format!("Write an interval up to {max_days} days, for example '10 mins', or NONE."));
    match interval::parse(text) {
        Some(micros) if micros > 0 && micros <= max_days * 86_400_000_000 => Ok(interval::show(micros)),
        _ => Err(invalid(setting, text, hint())),
    }
}

pub(super) fn locale(text: &str) -> Result<String, Option<&'static str>> {
    if text.starts_with("en_US") || text.is_empty() {
        return Ok("en_US@collation=binary (LEN_KBINARY)".to_owned());
    }
    Err(Some("Available values: en_US@collation=binary."))
}

/// The form PostgreSQL keeps: at most 63 bytes of printable ASCII.
pub(super) fn application_name(text: &str) -> Result<String, Option<&'static str>> {
    Ok(text.chars().map(|c| if (' '..='~').contains(&c) { c } else { '?' }).take(63).collect())
}

pub(super) fn client_encoding(text: &str) -> Result<String, Option<&'static str>> {
    let plain: String = text.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    match plain.as_str() {
        "utf8" | "unicode" => Ok("UTF8".to_owned()),
        "sqlascii" => Ok("SQL_ASCII".to_owned()),
        "latin1" | "iso88591" => Ok("LATIN1".to_owned()),
        "win1252" | "windows1252" => Ok("WIN1252".to_owned()),
        _ => Err(Some("Available values: UTF8, LATIN1, WIN1252, SQL_ASCII.")),
    }
}

/// The output style ISO and one of the orders MDY, DMY, YMD.
pub(super) fn date_style(text: &str) -> Result<String, Option<&'static str>> {
    let mut order = "MDY";
    for word in text.split(',').map(str::trim) {
        match word.to_ascii_lowercase().as_str() {
            "iso" | "default" => {}
            "mdy" | "us" | "noneuro" | "noneuropean" => order = "MDY",
            "dmy" | "euro" | "european" => order = "DMY",
            "ymd" => order = "YMD",
            _ => return Err(Some("Available values: ISO with MDY, DMY or YMD.")),
        }
    }
    Ok(format!("ISO, {order}"))
}

pub(super) fn c_locale(text: &str) -> Result<String, Option<&'static str>> {
    ["C.UTF-8", "C", "POSIX", ""]
        .iter()
        .find(|known| known.eq_ignore_ascii_case(text))
        .map(|known| (*known).to_owned())
        .ok_or(Some("Available values: C.UTF-8, C, POSIX."))
}

/// Schemas, separated by commas. An empty one stands for no schema at all.
pub(super) fn search_path(text: &str) -> Result<String, Option<&'static str>> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    if parts.iter().any(|part| part.len() > 130 || part.chars().any(char::is_control)) {
        return Err(None);
    }
    Ok(parts.join(", "))
}

/// Shards by number, separated by commas.
pub(super) fn shard_list(text: &str) -> Result<String, Option<&'static str>> {
    let good = text.trim().is_empty() || text.split(',').all(|shard| shard.trim().parse::<u32>().is_ok());
    if good { Ok(text.trim().to_owned()) } else { Err(Some("Write shard numbers, separated by commas.")) }
}

pub(super) fn always_on(text: &str) -> Result<String, Option<&'static str>> {
    match boolean(text) {
        Some(true) => Ok("on".to_owned()),
        _ => Err(Some("Available values: on.")),
    }
}

/// UTC, a name such as Europe/Berlin, or an offset. The offset of a setting is POSIX's, which counts to the west: what is
/// shown means the same when it is set again.
pub(super) fn time_zone(text: &str) -> Result<String, Option<&'static str>> {
    const UTC: [&str; 6] = ["utc", "gmt", "z", "zulu", "local", "default"];
    let text = text.trim();
    if UTC.contains(&text.to_ascii_lowercase().as_str()) {
        return Ok(if text.eq_ignore_ascii_case("gmt") { "GMT" } else { "UTC" }.to_owned());
    }
    let zone = match text.split_at_checked(1) {
        Some(("+" | "-", offset)) if offset.contains(':') => posix_offset(&format!("UTC{text}")),
        // A number is hours to the east.
        Some(("+", hours)) => posix_offset(&format!("UTC-{hours}")),
        Some(("-", hours)) => posix_offset(&format!("UTC+{hours}")),
        _ => posix_offset(text),
    };
    let zone = zone.unwrap_or_else(|| text.to_owned());
    if zone.parse::<Tz>().is_ok() {
        return Ok(zone);
    }
    Err(Some("Write UTC, or a name such as Europe/Berlin."))
}

/// The offset of `GMT-02:00` and the like, which pgjdbc sends: two hours east of Greenwich.
fn posix_offset(text: &str) -> Option<String> {
    let at = text.find(['+', '-']).filter(|at| *at >= 3)?;
    let (name, offset) = text.split_at_checked(at)?;
    if !name.bytes().all(|b| b.is_ascii_alphabetic()) {
        return None;
    }
    let (hours, minutes) = offset.get(1..)?.split_once(':').unwrap_or((offset.get(1..)?, "0"));
    let (hours, minutes): (u8, u8) = (hours.parse().ok()?, minutes.parse().ok()?);
    let sign = if offset.starts_with('-') { '-' } else { '+' };
    (hours < 15 && minutes < 60).then(|| format!("{sign}{hours:02}:{minutes:02}"))
}
