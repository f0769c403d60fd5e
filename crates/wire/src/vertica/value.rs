//! Values as text and in binary (`reference/vertica-wire.md` §4.11), and rows of them.

use bytes::{BufMut, BytesMut};

use super::types::Type;
use crate::error::WireError;

/// The Julian day of 1970-01-01.
const JULIAN_1970: i64 = 2_440_588;
/// Microseconds from 1970-01-01 to 2000-01-01, from where binary timestamps count.
const MICROSECONDS_TO_2000: i64 = 946_684_800_000_000;
const MICROSECONDS_A_SECOND: i64 = 1_000_000;
const SECONDS_A_DAY: i64 = 86_400;
/// Floats with more digits before the point have an exponent.
const FLOAT_DIGITS: i32 = 15;

/// A value that is not NULL.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// BOOLEAN.
    Boolean(bool),
    /// INTEGER.
    Integer(i64),
    /// FLOAT.
    Float(f64),
    /// VARCHAR, LONG VARCHAR, and NUMERIC, whose text it is.
    Text(&'a str),
    /// VARBINARY.
    Bytes(&'a [u8]),
    /// DATE: days since 1970-01-01.
    Date(i32),
    /// TIMESTAMP: microseconds since 1970-01-01.
    Timestamp(i64),
    /// TIMESTAMPTZ.
    Moment {
        /// Microseconds since 1970-01-01 UTC.
        microseconds: i64,
        /// The zone it is shown in, in seconds east of UTC.
        offset_seconds: i32,
    },
    /// INTERVAL DAY TO SECOND: microseconds.
    Interval(i64),
}

/// Writes one row: each value with its type, none for NULL. In binary those that have such a form, if `binary`.
///
/// # Errors
/// When there are more values than a row can count, or one is longer than 2 GiB. Nothing is written then.
pub fn row<'a>(
    out: &mut BytesMut,
    values: impl ExactSizeIterator<Item = (Option<Value<'a>>, Type)>,
    binary: bool,
) -> Result<(), WireError> {
    let start = out.len();
    let written = put_row(out, values, binary);
    if written.is_none() {
        out.truncate(start);
    }
    written.ok_or(WireError::Layout("DataRow"))
}

fn put_row<'a>(
    out: &mut BytesMut,
    values: impl ExactSizeIterator<Item = (Option<Value<'a>>, Type)>,
    binary: bool,
) -> Option<()> {
    out.put_u8(b'D');
    let start = out.len();
    out.put_u32(0);
    out.put_u16(u16::try_from(values.len()).ok()?);
    for (value, kind) in values {
        let at = out.len();
        out.put_i32(-1);
        let Some(value) = value else { continue };
        if binary && kind.has_binary {
            put_binary(out, value);
        } else {
            put_text(out, value);
        }
        put_length(out, at, at + 4)?;
    }
    put_length(out, start, start)
}

/// Puts the length of what follows `from` into four bytes.
fn put_length(out: &mut BytesMut, at: usize, from: usize) -> Option<()> {
    let length = i32::try_from(out.len().checked_sub(from)?).ok()?;
    out.get_mut(at..at + 4)?.copy_from_slice(&length.to_be_bytes());
    Some(())
}

fn put_binary(out: &mut BytesMut, value: Value<'_>) {
    match value {
        Value::Boolean(value) => out.put_u8(value.into()),
        Value::Integer(value) | Value::Interval(value) => out.put_i64(value),
        Value::Float(value) => out.put_f64(value),
        Value::Text(value) => out.put_slice(value.as_bytes()),
        Value::Bytes(value) => out.put_slice(value),
        Value::Date(days) => out.put_i64(i64::from(days) + JULIAN_1970),
        Value::Timestamp(microseconds) | Value::Moment { microseconds, .. } => {
            out.put_i64(microseconds.saturating_sub(MICROSECONDS_TO_2000));
        }
    }
}

fn put_text(out: &mut BytesMut, value: Value<'_>) {
    let shown = match value {
        Value::Boolean(value) => if value { "t" } else { "f" }.to_owned(),
        Value::Integer(value) => value.to_string(),
        Value::Float(value) => float(value),
        Value::Text(value) => return out.put_slice(value.as_bytes()),
        Value::Bytes(value) => return value.iter().for_each(|byte| put_escaped(out, *byte)),
        Value::Date(days) => {
            let (date, era) = date(days.into());
            format!("{date}{era}")
        }
        Value::Timestamp(microseconds) => timestamp(microseconds, ""),
        Value::Moment { microseconds, offset_seconds } => {
            let local = microseconds.saturating_add(i64::from(offset_seconds) * MICROSECONDS_A_SECOND);
            timestamp(local, &offset(offset_seconds))
        }
        Value::Interval(microseconds) => interval(microseconds),
    };
    out.put_slice(shown.as_bytes());
}

/// Printable ASCII as it is, a backslash twice, all else in octal.
fn put_escaped(out: &mut BytesMut, byte: u8) {
    match byte {
        b'\\' => out.put_slice(b"\\\\"),
        b' '..=b'~' => out.put_u8(byte),
        byte => out.put_slice(format!("\\{byte:03o}").as_bytes()),
    }
}

/// Reads bytes that were written so, as clients send them: a byte that is no backslash is itself.
///
/// # Errors
/// When a backslash is followed by neither another nor three octal digits.
pub fn bytes(text: &[u8]) -> Result<Vec<u8>, WireError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((byte, behind)) = rest.split_first() {
        rest = match (byte, behind) {
            (b'\\', [b'\\', behind @ ..]) => {
                bytes.push(b'\\');
                behind
            }
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', behind @ ..]) => {
                bytes.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                behind
            }
            (b'\\', _) => return Err(WireError::Layout("VARBINARY")),
            (byte, behind) => {
                bytes.push(*byte);
                behind
            }
        };
    }
    Ok(bytes)
}

/// The shortest text that reads back, with an exponent where the number is long.
fn float(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..FLOAT_DIGITS).contains(&exponent) {
        return value.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

/// The day in the Gregorian calendar, and ` BC` for those before it began.
fn date(days: i64) -> (String, &'static str) {
    // Years begin in March, so that the day that is sometimes missing is the last one; 400 of them are an era.
    let shifted = days + 719_468;
    let (era, day) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = 400 * era + year_of_era + i64::from(month <= 2);
    let (year, era) = if year > 0 { (year, "") } else { (1 - year, " BC") };
    (format!("{year:04}-{month:02}-{day:02}"), era)
}

fn timestamp(microseconds: i64, zone: &str) -> String {
    let day = MICROSECONDS_A_SECOND * SECONDS_A_DAY;
    let (date, era) = date(microseconds.div_euclid(day));
    format!("{date} {}{zone}{era}", time(microseconds.rem_euclid(day).unsigned_abs()))
}

/// `13:14:15`, with a fraction where there is one.
fn time(microseconds: u64) -> String {
    let second = microseconds / 1_000_000;
    let time = format!("{:02}:{:02}:{:02}", second / 3_600, second / 60 % 60, second % 60);
    match microseconds % 1_000_000 {
        0 => time,
        fraction => time + format!(".{fraction:06}").trim_end_matches('0'),
    }
}

/// `[-][days ]13:14:15`.
fn interval(microseconds: i64) -> String {
    let sign = if microseconds < 0 { "-" } else { "" };
    let day = 86_400_000_000;
    let (days, rest) = (microseconds.unsigned_abs() / day, microseconds.unsigned_abs() % day);
    match days {
        0 => format!("{sign}{}", time(rest)),
        days => format!("{sign}{days} {}", time(rest)),
    }
}

/// `+00`, `-05:30`, and seconds where they are not zero.
fn offset(seconds: i32) -> String {
    let sign = if seconds < 0 { '-' } else { '+' };
    let seconds = seconds.unsigned_abs();
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    match (minutes, seconds) {
        (0, 0) => format!("{sign}{hours:02}"),
        (minutes, 0) => format!("{sign}{hours:02}:{minutes:02}"),
        (minutes, seconds) => format!("{sign}{hours:02}:{minutes:02}:{seconds:02}"),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(value: Value<'_>) -> String {
        let mut out = BytesMut::new();
        put_text(&mut out, value);
        String::from_utf8(out.to_vec()).unwrap()
    }

    fn binary(value: Value<'_>) -> Vec<u8> {
        let mut out = BytesMut::new();
        put_binary(&mut out, value);
        out.to_vec()
    }

    /// 2024-02-29 13:14:15.
    const LEAP: i64 = 1_709_212_455_000_000;

    #[test]
    fn values_are_shown_as_vertica_shows_them() {
        for (value, expected) in [
            (Value::Boolean(true), "t"),
            (Value::Boolean(false), "f"),
            (Value::Integer(i64::MIN), "-9223372036854775808"),
            (Value::Float(1.5), "1.5"),
            (Value::Float(1e20), "1e+20"),
            (Value::Float(-1e-7), "-1e-07"),
            (Value::Float(f64::INFINITY), "Infinity"),
            (Value::Float(f64::NEG_INFINITY), "-Infinity"),
            (Value::Float(f64::NAN), "NaN"),
            (Value::Text("h\u{e9}"), "h\u{e9}"),
            (Value::Bytes(b"a\\\0\xff~"), "a\\\\\\000\\377~"),
            (Value::Date(19_782), "2024-02-29"),
            (Value::Date(0), "1970-01-01"),
            (Value::Date(-719_162), "0001-01-01"),
            (Value::Date(-719_163), "0001-12-31 BC"),
            (Value::Date(-719_529), "0002-12-31 BC"),
            (Value::Date(2_932_897), "10000-01-01"),
            (Value::Timestamp(LEAP), "2024-02-29 13:14:15"),
            (Value::Timestamp(LEAP + 123_400), "2024-02-29 13:14:15.1234"),
            (Value::Timestamp(-1), "1969-12-31 23:59:59.999999"),
            (Value::Timestamp(-719_163 * 86_400_000_000), "0001-12-31 00:00:00 BC"),
            (Value::Interval(7_384_500_000), "02:03:04.5"),
            (Value::Interval(-180_000_000_000), "-2 02:00:00"),
            (Value::Interval(-1), "-00:00:00.000001"),
            (Value::Moment { microseconds: LEAP, offset_seconds: 0 }, "2024-02-29 13:14:15+00"),
            (Value::Moment { microseconds: LEAP, offset_seconds: -19_800 }, "2024-02-29 07:44:15-05:30"),
            (Value::Moment { microseconds: LEAP, offset_seconds: 3_661 }, "2024-02-29 14:15:16+01:01:01"),
        ] {
            assert_eq!(text(value), expected);
        }
    }

    #[test]
    fn binary_has_eight_bytes_for_all_numbers_and_times() {
        for (value, expected) in [
            (Value::Boolean(true), &[1][..]),
            (Value::Integer(-2), &(-2_i64).to_be_bytes()),
            (Value::Float(1.5), &1.5_f64.to_be_bytes()),
            (Value::Interval(-7), &(-7_i64).to_be_bytes()),
            (Value::Text("h\u{e9}"), b"h\xc3\xa9"),
            (Value::Bytes(b"\\\xff"), b"\\\xff"),
            (Value::Date(19_782), &2_460_370_i64.to_be_bytes()),
            (Value::Timestamp(LEAP), &762_527_655_000_000_i64.to_be_bytes()),
            (Value::Moment { microseconds: LEAP, offset_seconds: 7 }, &762_527_655_000_000_i64.to_be_bytes()),
        ] {
            assert_eq!(binary(value), expected, "{value:?}");
        }
    }

    #[test]
    fn a_row_has_a_length_before_each_value() {
        let values = [
            (Some(Value::Integer(7)), Type::INTEGER),
            (None, Type::VARCHAR),
            (Some(Value::Text("1.50")), Type::NUMERIC),
        ];
        let mut out = BytesMut::new();
        row(&mut out, values.into_iter(), false).unwrap();
        assert_eq!(&out[..], b"D\0\0\0\x17\0\x03\0\0\0\x017\xff\xff\xff\xff\0\0\0\x041.50");
        out.clear();
        row(&mut out, values.into_iter(), true).unwrap();
        assert_eq!(&out[..], b"D\0\0\0\x1e\0\x03\0\0\0\x08\0\0\0\0\0\0\0\x07\xff\xff\xff\xff\0\0\0\x041.50");
        let many = vec![(None, Type::VARCHAR); 65_536];
        out.clear();
        assert_eq!(row(&mut out, many.into_iter(), true), Err(WireError::Layout("DataRow")));
        assert!(out.is_empty());
    }

    #[test]
    fn bytes_are_read_as_clients_send_them() {
        assert_eq!(bytes(b"a\\134\xff\0\\\\\\377"), Ok(b"a\\\xff\0\\\xff".to_vec()));
        for wrong in [&b"\\"[..], b"\\1", b"\\12", b"\\400", b"\\18a", b"\\x41"] {
            assert_eq!(bytes(wrong), Err(WireError::Layout("VARBINARY")), "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn no_value_panics(number: i64, days: i32, offset_seconds in -90_000..90_000, float: f64, raw: Vec<u8>) {
            for value in [
                Value::Integer(number),
                Value::Float(float),
                Value::Bytes(&raw),
                Value::Date(days),
                Value::Timestamp(number),
                Value::Interval(number),
                Value::Moment { microseconds: number, offset_seconds },
            ] {
                prop_assert!(!text(value).contains('\0'));
                binary(value);
            }
            let _ = bytes(&raw);
        }

        #[test]
        fn bytes_are_read_as_they_are_written(raw: Vec<u8>) {
            prop_assert_eq!(bytes(text(Value::Bytes(&raw)).as_bytes()), Ok(raw));
        }

        #[test]
        fn floats_are_read_as_they_are_written(value: f64) {
            let read: f64 = text(Value::Float(value)).parse().unwrap();
            prop_assert!(read.to_bits() == value.to_bits() || value.is_nan());
        }

        #[test]
        fn days_follow_each_other(days in -3_000_000..3_000_000_i64) {
            let (today, tomorrow) = (date(days), date(days + 1));
            prop_assert_ne!(&today, &tomorrow);
            let day = |(shown, _): &(String, _)| shown.rsplit('-').next().unwrap().parse::<u32>().unwrap();
            prop_assert!(day(&tomorrow) == day(&today) + 1 || (day(&tomorrow) == 1 && day(&today) >= 28));
        }
    }
}
