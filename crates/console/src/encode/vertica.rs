//! Values as clients of Vertica read and send them.

use bytes::BytesMut;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use switchyard_engine::{ClientError, OutputColumn, PgType, Scalar, SqlState};
use switchyard_wire::vertica::Type;
use switchyard_wire::vertica::answer::Field;
use switchyard_wire::vertica::value::{self, Value};

use super::{FieldFormat, parameter};
use crate::encoding::Encoding;

/// How long a month is in an interval from days to seconds.
const DAYS_A_MONTH: i64 = 30;
const MICROSECONDS_A_DAY: i64 = 86_400_000_000;

/// The type as Vertica has it. Arrays and what else has no counterpart goes as text.
pub(crate) fn kind(kind: PgType) -> Type {
    match kind {
        PgType::Bool => Type::BOOLEAN,
        PgType::Int2 | PgType::Int4 | PgType::Int8 | PgType::Oid => Type::INTEGER,
        PgType::Float4 | PgType::Float8 => Type::FLOAT,
        PgType::Numeric => Type::NUMERIC,
        // A time of day is written as text, too.
        PgType::Text | PgType::Varchar | PgType::Bpchar | PgType::Name | PgType::Char => Type::VARCHAR,
        PgType::Time | PgType::Inet | PgType::Cidr => Type::VARCHAR,
        PgType::Bytea => Type::VARBINARY,
        PgType::Date => Type::DATE,
        PgType::Timestamp => Type::TIMESTAMP,
        PgType::Timestamptz => Type::TIMESTAMPTZ,
        PgType::Interval => Type::INTERVAL,
        PgType::Json
        | PgType::Jsonb
        | PgType::TextArray
        | PgType::VarcharArray
        | PgType::NumericArray
        | PgType::Float4Array
        | PgType::Float8Array
        | PgType::NameArray
        | PgType::CharArray
        | PgType::BoolArray
        | PgType::Int2Array
        | PgType::Int4Array
        | PgType::Int8Array
        | PgType::OidArray
        | PgType::Int2Vector
        | PgType::OidVector => Type::LONG_VARCHAR,
    }
}

/// The description of a column.
pub(crate) fn field(column: &OutputColumn, binary: bool) -> Field<'_> {
    let kind = kind(column.kind);
    Field { name: &column.name, kind, format: kind.format(binary) }
}

/// Writes a row; nothing, when there is an error.
///
/// # Errors
/// When the row has too many values, or one is too long.
pub(super) fn write_row(
    out: &mut BytesMut,
    values: &[Scalar],
    columns: &[(PgType, FieldFormat)],
    zone: &TimeZone,
    binary: bool,
) -> Result<(), ClientError> {
    let arrays: Vec<Option<String>> =
        values.iter().zip(columns).map(|(value, (kind, _))| array(value, *kind)).collect();
    let count = columns.len().min(values.len());
    let all = (0..count).filter_map(|index| {
        let (own, _) = columns.get(index)?;
        let scalar = values.get(index)?;
        let value = match arrays.get(index)? {
            Some(text) => Some(Value::Text(text)),
            None => value_of(scalar, *own, zone),
        };
        Some((value, kind(*own)))
    });
    let all: Vec<_> = all.collect();
    value::row(out, all.into_iter(), binary)
        .map_err(|_| ClientError::new(SqlState::ProgramLimitExceeded, "row has too many columns or is too long"))
}

fn value_of<'a>(scalar: &'a Scalar, kind: PgType, zone: &TimeZone) -> Option<Value<'a>> {
    Some(match scalar {
        // Arrays are written as text before.
        Scalar::Null | Scalar::Texts(_) | Scalar::Ints(_) => return None,
        Scalar::Bool(value) => Value::Boolean(*value),
        Scalar::Int(value) => Value::Integer(*value),
        // Its own shortest text says best which number is meant.
        Scalar::Float4(value) => Value::Float(value.to_string().parse().unwrap_or(f64::from(*value))),
        Scalar::Float8(value) => Value::Float(*value),
        Scalar::Text(value) => Value::Text(value),
        Scalar::Bytes(value) => Value::Bytes(value),
        Scalar::Date(days) => Value::Date(*days),
        Scalar::Time(microseconds) if kind == PgType::Timestamptz => {
            Value::Moment { microseconds: *microseconds, offset_seconds: offset_seconds(*microseconds, zone) }
        }
        Scalar::Time(microseconds) => Value::Timestamp(*microseconds),
        Scalar::Interval { months, days, microseconds } => Value::Interval(
            (i64::from(*months) * DAYS_A_MONTH + i64::from(*days))
                .saturating_mul(MICROSECONDS_A_DAY)
                .saturating_add(*microseconds),
        ),
    })
}

fn offset_seconds(microseconds: i64, zone: &TimeZone) -> i32 {
    Timestamp::from_microsecond(microseconds).map_or(0, |time| zone.to_offset(time).seconds())
}

/// What has no form of its own, as text: a time of day; an array as Vertica shows it, in brackets, texts in quotes.
fn array(value: &Scalar, kind: PgType) -> Option<String> {
    let items: Vec<String> = match value {
        Scalar::Time(microseconds) if kind == PgType::Time => return Some(switchyard_engine::time_text(*microseconds)),
        Scalar::Ints(items) => items.iter().map(|item| item.map_or_else(null, |item| item.to_string())).collect(),
        Scalar::Texts(items) if kind == PgType::BoolArray => {
            let truth = |item: &str| if item == "t" { "true" } else { "false" }.to_owned();
            items.iter().map(|item| item.as_deref().map_or_else(null, truth)).collect()
        }
        Scalar::Texts(items) if matches!(kind, PgType::NumericArray | PgType::Float4Array | PgType::Float8Array) => {
            items.iter().map(|item| item.clone().unwrap_or_else(null)).collect()
        }
        Scalar::Texts(items) => items.iter().map(|item| item.as_deref().map_or_else(null, quoted)).collect(),
        _ => return None,
    };
    Some(format!("[{}]", items.join(",")))
}

fn null() -> String {
    "null".to_owned()
}

/// A text as JSON has it.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            control if control < ' ' => quoted.push_str(&format!("\\u{:04x}", u32::from(control))),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// Reads a parameter's bytes, which are text.
///
/// # Errors
/// When they are no value of the type.
pub(crate) fn text_parameter(bytes: Option<&[u8]>, kind: PgType) -> Result<Scalar, ClientError> {
    match (bytes, kind) {
        (Some(bytes), PgType::Bytea) => value::bytes(bytes).map(Scalar::Bytes).map_err(|_| {
            ClientError::new(SqlState::InvalidTextRepresentation, "invalid input syntax for type varbinary")
                .with_hint("Behind a backslash goes another one, or three octal digits.")
        }),
        _ => parameter(bytes, kind, FieldFormat::Text, Encoding::Utf8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(value: Scalar, kind: PgType) -> String {
        let mut out = BytesMut::new();
        let zone = TimeZone::fixed(jiff::tz::offset(-5));
        let columns = [(kind, FieldFormat::Text)];
        assert_eq!(write_row(&mut out, &[value], &columns, &zone, false), Ok(()));
        String::from_utf8_lossy(out.get(11..).unwrap_or_default()).into_owned()
    }

    #[test]
    fn values_are_shown_as_vertica_shows_them() {
        let texts = |items: &[Option<&str>]| Scalar::Texts(items.iter().map(|item| item.map(str::to_owned)).collect());
        for (value, kind, expected) in [
            (Scalar::Bool(true), PgType::Bool, "t"),
            (Scalar::Int(7), PgType::Int2, "7"),
            (Scalar::Float4(0.1), PgType::Float4, "0.1"),
            (Scalar::Text("1.50".into()), PgType::Numeric, "1.50"),
            (Scalar::Bytes(vec![0, 65]), PgType::Bytea, "\\000A"),
            (Scalar::Date(1), PgType::Date, "1970-01-02"),
            (Scalar::Time(0), PgType::Timestamp, "1970-01-01 00:00:00"),
            (Scalar::Time(0), PgType::Timestamptz, "1969-12-31 19:00:00-05"),
            (Scalar::Interval { months: 1, days: -1, microseconds: 1_500_000 }, PgType::Interval, "29 00:00:01.5"),
            (Scalar::Ints(vec![Some(1), None]), PgType::Int4Array, "[1,null]"),
            (texts(&[Some("a\"\n\u{1}"), None]), PgType::TextArray, "[\"a\\\"\\n\\u0001\",null]"),
            (texts(&[Some("t"), Some("f")]), PgType::BoolArray, "[true,false]"),
        ] {
            assert_eq!(shown(value, kind), expected);
        }
    }

    #[test]
    fn parameters_are_text() {
        assert_eq!(text_parameter(Some(b"1"), PgType::Bool), Ok(Scalar::Bool(true)));
        assert_eq!(text_parameter(Some(b"a\\134\xff"), PgType::Bytea), Ok(Scalar::Bytes(b"a\\\xff".to_vec())));
        assert_eq!(text_parameter(None, PgType::Date), Ok(Scalar::Null));
        let time = Scalar::Time(1_709_212_455_123_000);
        for text in ["2024-02-29 13:14:15.123", "2024-02-29T15:14:15.123+02:00", "2024-02-29 13:14:15.123000+00:00"] {
            assert_eq!(text_parameter(Some(text.as_bytes()), PgType::Timestamptz), Ok(time.clone()), "{text}");
        }
        for text in ["2024-02-29", "2024-02-29T00:00:00.000+00:00"] {
            assert_eq!(text_parameter(Some(text.as_bytes()), PgType::Date), Ok(Scalar::Date(19_782)), "{text}");
        }
        let wrong = text_parameter(Some(b"\\x"), PgType::Bytea).map_err(|error| (error.sqlstate, error.message));
        let message = "invalid input syntax for type varbinary".to_owned();
        assert_eq!(wrong, Err((SqlState::InvalidTextRepresentation, message)));
    }
}
