//! Values as bytes of the protocol, in text and binary.

mod array;
mod interval;
mod numeric;
pub(crate) mod vertica;

use bytes::{BufMut, BytesMut};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use postgres_types::Type;
use switchyard_engine::{ClientError, OutputColumn, PgType, Scalar, SqlState, time_text};
use switchyard_wire::answer::Field;

use crate::encoding::Encoding;

pub(crate) use interval::IntervalStyle;

/// Days from 1970-01-01 to 2000-01-01, from where binary dates count.
const DAYS_TO_2000: i32 = 10_957;
/// Microseconds from 1970-01-01 to 2000-01-01, from where binary timestamps count.
const MICROSECONDS_TO_2000: i64 = 946_684_800_000_000;

/// What binary jsonb begins with.
const JSONB_VERSION: u8 = 1;

/// The type as the protocol names it, and its size.
pub(crate) fn pg_type(kind: PgType) -> (Type, i16) {
    match kind {
        PgType::Bool => (Type::BOOL, 1),
        PgType::Int2 => (Type::INT2, 2),
        PgType::Int4 => (Type::INT4, 4),
        PgType::Int8 => (Type::INT8, 8),
        PgType::Float4 => (Type::FLOAT4, 4),
        PgType::Float8 => (Type::FLOAT8, 8),
        PgType::Numeric => (Type::NUMERIC, -1),
        PgType::Text => (Type::TEXT, -1),
        PgType::Varchar => (Type::VARCHAR, -1),
        PgType::Bytea => (Type::BYTEA, -1),
        PgType::Date => (Type::DATE, 4),
        PgType::Timestamp => (Type::TIMESTAMP, 8),
        PgType::Timestamptz => (Type::TIMESTAMPTZ, 8),
        PgType::Time => (Type::TIME, 8),
        PgType::Interval => (Type::INTERVAL, 16),
        PgType::Inet => (Type::INET, -1),
        PgType::Cidr => (Type::CIDR, -1),
        PgType::Bpchar => (Type::BPCHAR, -1),
        PgType::Oid => (Type::OID, 4),
        PgType::Name => (Type::NAME, 64),
        PgType::Char => (Type::CHAR, 1),
        PgType::Json => (Type::JSON, -1),
        PgType::Jsonb => (Type::JSONB, -1),
        PgType::TextArray => (Type::TEXT_ARRAY, -1),
        PgType::VarcharArray => (Type::VARCHAR_ARRAY, -1),
        PgType::NumericArray => (Type::NUMERIC_ARRAY, -1),
        PgType::Float4Array => (Type::FLOAT4_ARRAY, -1),
        PgType::Float8Array => (Type::FLOAT8_ARRAY, -1),
        PgType::NameArray => (Type::NAME_ARRAY, -1),
        PgType::CharArray => (Type::CHAR_ARRAY, -1),
        PgType::BoolArray => (Type::BOOL_ARRAY, -1),
        PgType::Int2Array => (Type::INT2_ARRAY, -1),
        PgType::Int4Array => (Type::INT4_ARRAY, -1),
        PgType::Int8Array => (Type::INT8_ARRAY, -1),
        PgType::OidArray => (Type::OID_ARRAY, -1),
        PgType::Int2Vector => (Type::INT2_VECTOR, -1),
        PgType::OidVector => (Type::OID_VECTOR, -1),
    }
}

/// The type a client declared a parameter with, when it is one we know.
pub(crate) fn kind_of(declared: u32) -> Option<PgType> {
    Some(match Type::from_oid(declared)? {
        Type::BOOL => PgType::Bool,
        Type::INT2 => PgType::Int2,
        Type::INT4 => PgType::Int4,
        Type::INT8 => PgType::Int8,
        Type::OID | Type::REGCLASS | Type::REGTYPE | Type::REGPROC | Type::REGNAMESPACE => PgType::Oid,
        Type::FLOAT4 => PgType::Float4,
        Type::FLOAT8 => PgType::Float8,
        Type::NUMERIC => PgType::Numeric,
        Type::TEXT | Type::BPCHAR => PgType::Text,
        Type::NAME => PgType::Name,
        Type::CHAR => PgType::Char,
        Type::JSON => PgType::Json,
        Type::JSONB => PgType::Jsonb,
        Type::VARCHAR => PgType::Varchar,
        Type::BYTEA => PgType::Bytea,
        Type::DATE => PgType::Date,
        Type::TIME => PgType::Time,
        Type::INTERVAL => PgType::Interval,
        Type::INET => PgType::Inet,
        Type::CIDR => PgType::Cidr,
        Type::TIMESTAMP => PgType::Timestamp,
        Type::TIMESTAMPTZ => PgType::Timestamptz,
        Type::TEXT_ARRAY | Type::VARCHAR_ARRAY | Type::BPCHAR_ARRAY => PgType::TextArray,
        Type::NAME_ARRAY => PgType::NameArray,
        Type::CHAR_ARRAY => PgType::CharArray,
        Type::BOOL_ARRAY => PgType::BoolArray,
        Type::INT2_ARRAY => PgType::Int2Array,
        Type::INT4_ARRAY => PgType::Int4Array,
        Type::INT8_ARRAY => PgType::Int8Array,
        Type::OID_ARRAY => PgType::OidArray,
        Type::INT2_VECTOR => PgType::Int2Vector,
        Type::OID_VECTOR => PgType::OidVector,
        _ => return None,
    })
}

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldFormat {
    Text,
    Binary,
}

impl FieldFormat {
    fn code(self) -> i16 {
        match self {
            Self::Text => 0,
            Self::Binary => 1,
        }
    }
}

/// How a session's rows are written.
#[derive(Debug, Clone)]
pub(crate) struct Style {
    /// The zone that moments are shown in.
    pub(crate) zone: TimeZone,
    /// How intervals are shown.
    pub(crate) interval: IntervalStyle,
    /// Whether bytes are shown as text with escapes, and not in hexadecimal digits.
    pub(crate) bytes_escaped: bool,
    /// How many digits floats have beyond those that always count; above 0, so many that they can be read back.
    pub(crate) float_digits: i32,
    /// What the client's texts are in.
    pub(crate) encoding: Encoding,
    /// For clients of Vertica: whether in binary. They want the same of all columns.
    pub(crate) vertica: Option<bool>,
}

/// What is needed to write a row: the types, the formats, the style.
#[derive(Debug, Clone)]
pub(crate) struct RowShape {
    columns: Vec<(PgType, FieldFormat)>,
    style: Style,
}

impl RowShape {
    pub(crate) fn new(columns: Vec<(PgType, FieldFormat)>, style: Style) -> Self {
        Self { columns, style }
    }

    /// What the client's texts are in.
    pub(crate) fn encoding(&self) -> Encoding {
        self.style.encoding
    }

    /// Writes a row as the protocol sends it; nothing, when there is an error.
    ///
    /// # Errors
    /// When a value has no binary form.
    pub(crate) fn write(&self, out: &mut BytesMut, values: &[Scalar]) -> Result<(), ClientError> {
        if let Some(binary) = self.style.vertica {
            return vertica::write_row(out, values, &self.columns, &self.style.zone, binary);
        }
        let start = out.len();
        out.put_u8(b'D');
        out.put_u32(0);
        let written = self.write_values(out, values).and_then(|()| put_length(out, start + 1, true));
        if written.is_err() {
            out.truncate(start);
        }
        written
    }

    /// The number of values, and each with its length before it: a row, here and in a binary COPY.
    pub(crate) fn write_values(&self, out: &mut BytesMut, values: &[Scalar]) -> Result<(), ClientError> {
        let count = u16::try_from(self.columns.len())
            .map_err(|_| ClientError::new(SqlState::ProgramLimitExceeded, "too many columns"))?;
        out.put_u16(count);
        for (value, (kind, format)) in values.iter().zip(&self.columns) {
            let at = out.len();
            out.put_i32(-1);
            if matches!(value, Scalar::Null) {
                continue;
            }
            match format {
                FieldFormat::Text => text(out, value, *kind, &self.style),
                FieldFormat::Binary => binary(out, value, *kind)?,
            }
            if *format == FieldFormat::Text || matches!(value, Scalar::Text(_)) {
                self.style.encoding.rewrite(out, at + 4)?;
            }
            put_length(out, at, false)?;
        }
        Ok(())
    }

    /// Each value as text; none is NULL.
    pub(crate) fn texts(&self, values: &[Scalar]) -> Vec<Option<String>> {
        let shown = |(value, (kind, _)): (&Scalar, &(PgType, FieldFormat))| {
            let mut bytes = BytesMut::new();
            text(&mut bytes, value, *kind, &self.style);
            (!matches!(value, Scalar::Null)).then(|| String::from_utf8_lossy(&bytes).into_owned())
        };
        values.iter().zip(&self.columns).map(shown).collect()
    }
}

/// Writes the length of what follows a place of four bytes, with or without those, into that place.
fn put_length(out: &mut BytesMut, at: usize, own: bool) -> Result<(), ClientError> {
    let length = out.len() - at - if own { 0 } else { 4 };
    let length = i32::try_from(length)
        .map_err(|_| ClientError::new(SqlState::ProgramLimitExceeded, "value is longer than 2 GiB"))?;
    if let Some(place) = out.get_mut(at..at + 4) {
        place.copy_from_slice(&length.to_be_bytes());
    }
    Ok(())
}

/// The description of a column in a format.
pub(crate) fn field(column: &OutputColumn, format: FieldFormat) -> Field<'_> {
    let (datatype, size) = pg_type(column.kind);
    let (table_id, place) = column.origin.unwrap_or_default();
    let (type_id, modifier, format) = (datatype.oid(), column.modifier, format.code());
    Field { name: &column.name, table_id, place, type_id, size, modifier, format }
}

fn text(bytes: &mut BytesMut, value: &Scalar, kind: PgType, style: &Style) {
    let shown = match value {
        Scalar::Null => return,
        Scalar::Bool(value) => if *value { "t" } else { "f" }.to_owned(),
        Scalar::Int(value) => value.to_string(),
        Scalar::Float4(value) if style.float_digits <= 0 => rounded(f64::from(*value), 6 + style.float_digits),
        Scalar::Float8(value) if style.float_digits <= 0 => rounded(*value, 15 + style.float_digits),
        Scalar::Float4(value) => float(f64::from(*value), &value.to_string(), 6),
        Scalar::Float8(value) => float(*value, &value.to_string(), 15),
        Scalar::Text(value) => {
            bytes.put_slice(value.as_bytes());
            return;
        }
        Scalar::Bytes(value) if style.bytes_escaped => value.iter().map(|byte| escaped(*byte)).collect(),
        Scalar::Bytes(value) => {
            let digits: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("\\x{digits}")
        }
        Scalar::Date(days) => date(*days),
        Scalar::Time(microseconds) if kind == PgType::Time => time_text(*microseconds),
        Scalar::Time(microseconds) => timestamp(*microseconds, (kind == PgType::Timestamptz).then_some(&style.zone)),
        Scalar::Interval { months, days, microseconds } => style.interval.show(*months, *days, *microseconds),
        Scalar::Ints(values) if matches!(kind, PgType::Int2Vector | PgType::OidVector) => {
            values.iter().flatten().map(i64::to_string).collect::<Vec<_>>().join(" ")
        }
        Scalar::Texts(values) => braced(values.iter().map(|value| value.as_deref().map(quoted))),
        Scalar::Ints(values) => braced(values.iter().map(|value| value.map(|value| value.to_string()))),
    };
    bytes.put_slice(shown.as_bytes());
}

/// As PostgreSQL prints floats: the shortest text that reads back, with an exponent where the number is long.
fn float(value: f64, shortest: &str, digits: i32) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let exponent: i32 = scientific.rsplit('e').next().and_then(|text| text.parse().ok()).unwrap_or(0);
    if (-4..digits).contains(&exponent) {
        return shortest.to_owned();
    }
    let mantissa = scientific.split('e').next().unwrap_or_default();
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

/// A float with so many digits that count, at least one, and no zeros at its end.
fn rounded(value: f64, digits: i32) -> String {
    if !value.is_finite() {
        return float(value, "", 15);
    }
    let digits = usize::try_from(digits).unwrap_or_default().max(1);
    let scientific = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let trimmed = |number: &str| match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => number.to_owned(),
    };
    let behind_point = i32::try_from(digits).unwrap_or(i32::MAX).saturating_sub(exponent).saturating_sub(1);
    match usize::try_from(behind_point) {
        Ok(places) if exponent >= -4 => trimmed(&format!("{value:.places$}")),
        _ => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{}e{sign}{:02}", trimmed(mantissa), exponent.abs())
        }
    }
}

/// A byte as text: itself, where it is a character that can be seen.
fn escaped(byte: u8) -> String {
    match byte {
        b'\\' => "\\\\".to_owned(),
        b' '..=b'~' => char::from(byte).to_string(),
        byte => format!("\\{byte:03o}"),
    }
}

/// The point and what is behind it, where a second has a fraction.
fn fraction(microseconds: u64) -> String {
    if microseconds == 0 { String::new() } else { format!(".{microseconds:06}").trim_end_matches('0').to_owned() }
}

/// An address in PostgreSQL's binary form: family, bits, whether it is a network, length, bytes.
fn address(bytes: &mut BytesMut, text: &str, kind: PgType) -> Result<(), ClientError> {
    let malformed = || ClientError::new(SqlState::InternalError, "address value is malformed");
    let (host, bits) = text.split_once('/').map_or((text, None), |(host, bits)| (host, bits.parse::<u8>().ok()));
    let (family, octets) = match host.parse::<std::net::IpAddr>().map_err(|_| malformed())? {
        std::net::IpAddr::V4(address) => (2, address.octets().to_vec()),
        std::net::IpAddr::V6(address) => (3, address.octets().to_vec()),
    };
    let length = u8::try_from(octets.len()).map_err(|_| malformed())?;
    bytes.put_u8(family);
    bytes.put_u8(bits.unwrap_or(length.saturating_mul(8)));
    bytes.put_u8(u8::from(kind == PgType::Cidr));
    bytes.put_u8(length);
    bytes.put_slice(&octets);
    Ok(())
}

fn date(days: i32) -> String {
    let seconds = i64::from(days) * 86_400;
    match Timestamp::from_second(seconds) {
        Ok(time) => time.to_zoned(TimeZone::UTC).date().to_string(),
        Err(_) => format!("{days} days"),
    }
}

/// `2026-01-31 12:00:00.5`, with `+00` behind it when there is a zone.
fn timestamp(microseconds: i64, zone: Option<&TimeZone>) -> String {
    let Ok(time) = Timestamp::from_microsecond(microseconds) else { return format!("{microseconds} us") };
    let zoned = time.to_zoned(zone.cloned().unwrap_or(TimeZone::UTC));
    let mut shown = zoned.strftime("%Y-%m-%d %H:%M:%S").to_string();
    let fraction = microseconds.rem_euclid(1_000_000);
    if fraction != 0 {
        shown.push_str(format!(".{fraction:06}").trim_end_matches('0'));
    }
    if zone.is_some() {
        let seconds = zoned.offset().seconds();
        let (hours, minutes) = (seconds.abs() / 3600, seconds.abs() % 3600 / 60);
        shown.push(if seconds < 0 { '-' } else { '+' });
        shown.push_str(&format!("{hours:02}"));
        if minutes != 0 {
            shown.push_str(&format!(":{minutes:02}"));
        }
    }
    shown
}

fn braced(items: impl Iterator<Item = Option<String>>) -> String {
    let items: Vec<String> = items.map(|item| item.unwrap_or_else(|| "NULL".to_owned())).collect();
    format!("{{{}}}", items.join(","))
}

/// An array element in quotes, where it needs them.
fn quoted(text: &str) -> String {
    let plain = !text.is_empty()
        && !text.eq_ignore_ascii_case("null")
        && !text.chars().any(|c| c.is_whitespace() || matches!(c, '{' | '}' | ',' | '"' | '\\'));
    if plain { text.to_owned() } else { format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")) }
}

fn binary(bytes: &mut BytesMut, value: &Scalar, kind: PgType) -> Result<(), ClientError> {
    match (value, kind) {
        (Scalar::Bool(value), _) => bytes.put_u8(u8::from(*value)),
        (Scalar::Int(value), PgType::Int2) => bytes.put_i16(narrow(*value)?),
        (Scalar::Int(value), PgType::Int4) => bytes.put_i32(narrow(*value)?),
        (Scalar::Int(value), PgType::Oid) => bytes.put_u32(narrow(*value)?),
        (Scalar::Int(value), _) => bytes.put_i64(*value),
        (Scalar::Float4(value), _) => bytes.put_f32(*value),
        (Scalar::Float8(value), _) => bytes.put_f64(*value),
        (Scalar::Text(value), PgType::Numeric) => numeric(bytes, value)?,
        (Scalar::Interval { months, days, microseconds }, _) => {
            bytes.put_i64(*microseconds);
            bytes.put_i32(*days);
            bytes.put_i32(*months);
        }
        (Scalar::Text(value), PgType::Inet | PgType::Cidr) => address(bytes, value, kind)?,
        (Scalar::Text(value), PgType::Jsonb) => {
            bytes.put_u8(JSONB_VERSION);
            bytes.put_slice(value.as_bytes());
        }
        (Scalar::Text(value), PgType::Char) => bytes.put_u8(value.as_bytes().first().copied().unwrap_or_default()),
        (Scalar::Text(value), _) => bytes.put_slice(value.as_bytes()),
        (Scalar::Bytes(value), _) => bytes.put_slice(value),
        (Scalar::Date(days), _) => bytes.put_i32(days.saturating_sub(DAYS_TO_2000)),
        (Scalar::Time(microseconds), PgType::Time) => bytes.put_i64(*microseconds),
        (Scalar::Time(microseconds), _) => bytes.put_i64(microseconds.saturating_sub(MICROSECONDS_TO_2000)),
        (Scalar::Texts(values), _) => binary_texts(bytes, values, kind)?,
        (Scalar::Ints(values), _) => binary_ints(bytes, values, kind)?,
        (Scalar::Null, _) => {}
    }
    Ok(())
}

fn binary_texts(bytes: &mut BytesMut, values: &[Option<String>], kind: PgType) -> Result<(), ClientError> {
    let element = match kind {
        PgType::NameArray => Type::NAME,
        PgType::CharArray => Type::CHAR,
        PgType::BoolArray => Type::BOOL,
        PgType::VarcharArray => Type::VARCHAR,
        PgType::NumericArray => Type::NUMERIC,
        PgType::Float4Array => Type::FLOAT4,
        PgType::Float8Array => Type::FLOAT8,
        _ => Type::TEXT,
    };
    binary_array(bytes, &element, 1, values, |bytes, value| {
        match kind {
            PgType::BoolArray => bytes.put_u8(u8::from(value == "t")),
            PgType::CharArray => bytes.put_u8(value.as_bytes().first().copied().unwrap_or_default()),
            PgType::NumericArray => numeric(bytes, value)?,
            PgType::Float4Array => bytes.put_f32(value.parse().unwrap_or(f32::NAN)),
            PgType::Float8Array => bytes.put_f64(value.parse().unwrap_or(f64::NAN)),
            _ => bytes.put_slice(value.as_bytes()),
        }
        Ok(())
    })
}

fn binary_ints(bytes: &mut BytesMut, values: &[Option<i64>], kind: PgType) -> Result<(), ClientError> {
    let (element, first) = match kind {
        PgType::Int2Array => (Type::INT2, 1),
        PgType::Int2Vector => (Type::INT2, 0),
        PgType::Int4Array => (Type::INT4, 1),
        PgType::OidArray => (Type::OID, 1),
        PgType::OidVector => (Type::OID, 0),
        _ => (Type::INT8, 1),
    };
    binary_array(bytes, &element, first, values, |bytes, value| {
        match kind {
            PgType::Int2Array | PgType::Int2Vector => bytes.put_i16(narrow(*value)?),
            PgType::Int4Array => bytes.put_i32(narrow(*value)?),
            PgType::OidArray | PgType::OidVector => bytes.put_u32(narrow(*value)?),
            _ => bytes.put_i64(*value),
        }
        Ok(())
    })
}

fn narrow<T: TryFrom<i64>>(value: i64) -> Result<T, ClientError> {
    T::try_from(value).map_err(|_| ClientError::new(SqlState::NumberOutOfRange, "integer out of range"))
}

/// An array of one dimension, whose first element has the number `first`.
fn binary_array<T>(
    bytes: &mut BytesMut,
    element: &Type,
    first: i32,
    values: &[Option<T>],
    put: impl Fn(&mut BytesMut, &T) -> Result<(), ClientError>,
) -> Result<(), ClientError> {
    let count = narrow::<i32>(i64::try_from(values.len()).unwrap_or(i64::MAX))?;
    bytes.put_i32(i32::from(count > 0));
    bytes.put_i32(i32::from(values.iter().any(Option::is_none)));
    bytes.put_u32(element.oid());
    if count > 0 {
        bytes.put_i32(count);
        bytes.put_i32(first);
    }
    for value in values {
        let Some(value) = value else {
            bytes.put_i32(-1);
            continue;
        };
        let mut item = BytesMut::new();
        put(&mut item, value)?;
        bytes.put_i32(narrow(i64::try_from(item.len()).unwrap_or(i64::MAX))?);
        bytes.put_slice(&item);
    }
    Ok(())
}

/// A decimal text as groups of four digits, PostgreSQL's binary numeric.
fn numeric(bytes: &mut BytesMut, text: &str) -> Result<(), ClientError> {
    let malformed = || ClientError::new(SqlState::InternalError, "numeric value is malformed");
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if !whole.chars().chain(fraction.chars()).all(|c| c.is_ascii_digit()) {
        return Err(malformed());
    }
    let pad = (4 - whole.len() % 4) % 4;
    let padded = format!("{}{whole}{fraction}{}", "0".repeat(pad), "0".repeat((4 - fraction.len() % 4) % 4));
    let mut groups: Vec<i16> = padded
        .as_bytes()
        .chunks(4)
        .map(|group| group.iter().fold(0, |sum, digit| sum * 10 + i16::from(digit - b'0')))
        .collect();
    let mut weight = narrow::<i16>(i64::try_from((whole.len() + pad) / 4).unwrap_or(i64::MAX))? - 1;
    while groups.first() == Some(&0) {
        groups.remove(0);
        weight -= 1;
    }
    while groups.last() == Some(&0) {
        groups.pop();
    }
    if groups.is_empty() {
        weight = 0;
    }
    bytes.put_i16(narrow(i64::try_from(groups.len()).unwrap_or(i64::MAX))?);
    bytes.put_i16(weight);
    bytes.put_u16(if negative && !groups.is_empty() { 0x4000 } else { 0 });
    bytes.put_i16(narrow(i64::try_from(fraction.len()).unwrap_or(i64::MAX))?);
    for group in groups {
        bytes.put_i16(group);
    }
    Ok(())
}

/// Reads a parameter's bytes.
///
/// # Errors
/// When they are no value of the type.
pub(crate) fn parameter(
    bytes: Option<&[u8]>,
    kind: PgType,
    format: FieldFormat,
    encoding: Encoding,
) -> Result<Scalar, ClientError> {
    let Some(bytes) = bytes else { return Ok(Scalar::Null) };
    let texts = [PgType::Text, PgType::Varchar, PgType::Name, PgType::Char, PgType::Json];
    match format {
        FieldFormat::Text => text_parameter(&encoding.read(bytes)?, kind),
        FieldFormat::Binary if texts.contains(&kind) => Ok(Scalar::Text(encoding.read(bytes)?.into_owned())),
        FieldFormat::Binary => binary_parameter(bytes, kind),
    }
}

/// Bytes of a client as text.
///
/// # Errors
/// When they are no UTF-8, or have a NUL.
pub(crate) fn client_text(bytes: &[u8]) -> Result<&str, ClientError> {
    switchyard_wire::utf8(bytes)
        .map_err(|error| ClientError::new(SqlState::CharacterNotInRepertoire, error.to_string()))
}

fn text_parameter(text: &str, kind: PgType) -> Result<Scalar, ClientError> {
    let invalid = |name: &str| {
        ClientError::new(
            SqlState::InvalidTextRepresentation,
            format!("invalid input syntax for type {name}: \"{}\"", text.chars().take(60).collect::<String>()),
        )
    };
    let trimmed = text.trim();
    if let Some(element) = array::element(kind) {
        let items = array::split(text, kind).ok_or_else(|| {
            let message = format!("malformed array literal: \"{}\"", text.chars().take(60).collect::<String>());
            ClientError::new(SqlState::InvalidTextRepresentation, message)
        })?;
        let read = |item: Option<String>| item.map_or(Ok(Scalar::Null), |item| text_parameter(&item, element));
        return array::gather(items.into_iter().map(read).collect::<Result<_, _>>()?, element);
    }
    Ok(match kind {
        PgType::Bool => match trimmed.to_lowercase().as_str() {
            "t" | "true" | "y" | "yes" | "on" | "1" => Scalar::Bool(true),
            "f" | "false" | "n" | "no" | "off" | "0" => Scalar::Bool(false),
            _ => return Err(invalid("boolean")),
        },
        PgType::Int2 | PgType::Int4 | PgType::Int8 | PgType::Oid => {
            let value: i64 = trimmed.parse().map_err(|_| invalid(integer_name(kind)))?;
            Scalar::Int(in_range(value, kind)?)
        }
        PgType::Float4 => Scalar::Float4(trimmed.parse().map_err(|_| invalid("real"))?),
        PgType::Float8 => Scalar::Float8(trimmed.parse().map_err(|_| invalid("double precision"))?),
        PgType::Numeric => Scalar::Text(trimmed.to_owned()),
        PgType::Date => Scalar::Date(
            trimmed
                .parse::<jiff::civil::Date>()
                .ok()
                .and_then(|date| date.to_zoned(TimeZone::UTC).ok())
                .and_then(|zoned| i32::try_from(zoned.timestamp().as_second().div_euclid(86_400)).ok())
                .ok_or_else(|| invalid("date"))?,
        ),
        PgType::Timestamp | PgType::Timestamptz => {
            let civil = || trimmed.parse::<jiff::civil::DateTime>().ok()?.to_zoned(TimeZone::UTC).ok();
            let time = trimmed.parse::<Timestamp>().ok().or_else(|| civil().map(|zoned| zoned.timestamp()));
            Scalar::Time(time.ok_or_else(|| invalid("timestamp"))?.as_microsecond())
        }
        _ => Scalar::Text(text.to_owned()),
    })
}

fn integer_name(kind: PgType) -> &'static str {
    match kind {
        PgType::Int2 => "smallint",
        PgType::Int4 => "integer",
        PgType::Oid => "oid",
        _ => "bigint",
    }
}

fn in_range(value: i64, kind: PgType) -> Result<i64, ClientError> {
    let fits = match kind {
        PgType::Int2 => i16::try_from(value).is_ok(),
        PgType::Int4 => i32::try_from(value).is_ok(),
        PgType::Oid => u32::try_from(value).is_ok(),
        _ => true,
    };
    if fits {
        return Ok(value);
    }
    let message = format!("value \"{value}\" is out of range for type {}", integer_name(kind));
    Err(ClientError::new(SqlState::NumberOutOfRange, message))
}

fn binary_parameter(bytes: &[u8], kind: PgType) -> Result<Scalar, ClientError> {
    fn exact<const N: usize>(bytes: &[u8]) -> Result<[u8; N], ClientError> {
        bytes.try_into().map_err(|_| {
            ClientError::new(SqlState::InvalidBinaryRepresentation, "incorrect binary data format in bind parameter")
        })
    }
    if let Some(element) = array::element(kind) {
        let items = array::parts(bytes).ok_or_else(|| {
            ClientError::new(SqlState::InvalidBinaryRepresentation, "incorrect binary data format in bind parameter")
                .with_hint("Arrays have one dimension here.")
        })?;
        let read = |item: Option<&[u8]>| item.map_or(Ok(Scalar::Null), |item| binary_parameter(item, element));
        return array::gather(items.into_iter().map(read).collect::<Result<_, _>>()?, element);
    }
    Ok(match kind {
        PgType::Bool => Scalar::Bool(exact::<1>(bytes)? != [0]),
        PgType::Int2 => Scalar::Int(i16::from_be_bytes(exact(bytes)?).into()),
        PgType::Int4 => Scalar::Int(i32::from_be_bytes(exact(bytes)?).into()),
        PgType::Int8 => Scalar::Int(i64::from_be_bytes(exact(bytes)?)),
        PgType::Oid => Scalar::Int(u32::from_be_bytes(exact(bytes)?).into()),
        PgType::Float4 => Scalar::Float4(f32::from_be_bytes(exact(bytes)?)),
        PgType::Float8 => Scalar::Float8(f64::from_be_bytes(exact(bytes)?)),
        PgType::Numeric => Scalar::Text(numeric::text(bytes).ok_or_else(malformed)?),
        PgType::Time => Scalar::Text(time_text(i64::from_be_bytes(exact(bytes)?))),
        PgType::Interval => {
            let [a, b, c, d, e, f, g, h, days @ .., m, n, o, p] = exact::<16>(bytes)?;
            Scalar::Interval {
                months: i32::from_be_bytes([m, n, o, p]),
                days: i32::from_be_bytes(days),
                microseconds: i64::from_be_bytes([a, b, c, d, e, f, g, h]),
            }
        }
        PgType::Inet | PgType::Cidr => Scalar::Text(address_of(bytes).ok_or_else(malformed)?),
        PgType::Bytea => Scalar::Bytes(bytes.to_owned()),
        PgType::Date => Scalar::Date(i32::from_be_bytes(exact(bytes)?).saturating_add(DAYS_TO_2000)),
        PgType::Timestamp | PgType::Timestamptz => {
            Scalar::Time(i64::from_be_bytes(exact(bytes)?).saturating_add(MICROSECONDS_TO_2000))
        }
        PgType::Text | PgType::Varchar | PgType::Name | PgType::Char | PgType::Json => {
            Scalar::Text(client_text(bytes)?.to_owned())
        }
        PgType::Jsonb if bytes.first() == Some(&JSONB_VERSION) => {
            Scalar::Text(client_text(bytes.get(1..).unwrap_or_default())?.to_owned())
        }
        _ => {
            return Err(ClientError::new(
                SqlState::FeatureNotSupported,
                "parameters of this type are taken in the text format only",
            ));
        }
    })
}

fn malformed() -> ClientError {
    ClientError::new(SqlState::InvalidBinaryRepresentation, "incorrect binary data format in bind parameter")
}

/// An address with its prefix: family, bits, whether it is a network, and how many bytes follow.
fn address_of(bytes: &[u8]) -> Option<String> {
    let [_, bits, _, _, host @ ..] = bytes else { return None };
    let host = match host.len() {
        4 => std::net::IpAddr::from(<[u8; 4]>::try_from(host).ok()?),
        _ => std::net::IpAddr::from(<[u8; 16]>::try_from(host).ok()?),
    };
    Some(format!("{host}/{bits}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STYLE: Style = Style {
        encoding: Encoding::Utf8,
        zone: TimeZone::UTC,
        interval: IntervalStyle::Postgres,
        bytes_escaped: false,
        float_digits: 1,
        vertica: None,
    };

    fn shown(value: &Scalar, kind: PgType) -> String {
        shown_as(value, kind, &STYLE)
    }

    fn shown_as(value: &Scalar, kind: PgType, style: &Style) -> String {
        let mut bytes = BytesMut::new();
        text(&mut bytes, value, kind, style);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    #[test]
    fn values_print_as_the_session_wants_them() {
        let escaped = Style { bytes_escaped: true, ..STYLE };
        let bytes = Scalar::Bytes(b"a\\\x00 \xff'".to_vec());
        assert_eq!(shown_as(&bytes, PgType::Bytea, &escaped), "a\\\\\\000 \\377'");
        for (digits, value, expected) in [
            (0, 0.1 + 0.2, "0.3"),
            (1, 0.1 + 0.2, "0.30000000000000004"),
            (0, 1e20, "1e+20"),
            (0, 1e15, "1e+15"),
            (0, 123_456_789_012_345.0, "123456789012345"),
            (-12, 1234.5, "1.23e+03"),
            (-15, 0.000_15, "0.0001"),
            (0, 1e-7, "1e-07"),
            (0, -2.5, "-2.5"),
            (0, f64::INFINITY, "Infinity"),
        ] {
            let style = Style { float_digits: digits, ..STYLE };
            assert_eq!(shown_as(&Scalar::Float8(value), PgType::Float8, &style), expected, "{digits}");
        }
        let style = Style { float_digits: 0, ..STYLE };
        assert_eq!(shown_as(&Scalar::Float4(0.1), PgType::Float4, &style), "0.1");
    }

    #[test]
    fn values_print_as_postgresql_prints_them() {
        for (value, kind, expected) in [
            (Scalar::Bool(true), PgType::Bool, "t"),
            (Scalar::Float8(1.0), PgType::Float8, "1"),
            (Scalar::Float8(0.1), PgType::Float8, "0.1"),
            (Scalar::Float8(1e20), PgType::Float8, "1e+20"),
            (Scalar::Float8(1e-7), PgType::Float8, "1e-07"),
            (Scalar::Float8(f64::NEG_INFINITY), PgType::Float8, "-Infinity"),
            (Scalar::Bytes(vec![0, 255]), PgType::Bytea, "\\x00ff"),
            (Scalar::Date(0), PgType::Date, "1970-01-01"),
            (Scalar::Time(1_500_000), PgType::Timestamptz, "1970-01-01 00:00:01.5+00"),
            (Scalar::Time(0), PgType::Timestamp, "1970-01-01 00:00:00"),
            (
                Scalar::Texts(vec![Some("a b".into()), None, Some("x".into()), Some("null".into())]),
                PgType::TextArray,
                "{\"a b\",NULL,x,\"null\"}",
            ),
        ] {
            assert_eq!(shown(&value, kind), expected);
        }
    }

    #[test]
    fn numerics_are_groups_of_four_digits() {
        for (written, expected) in [
            ("0", vec![0, 0, 0, 0]),
            ("12345.678", vec![3, 1, 0, 3, 1, 2345, 6780]),
            ("-0.0001", vec![1, -1, 0x4000, 4, 1]),
            ("10000", vec![1, 1, 0, 0, 1]),
        ] {
            let mut bytes = BytesMut::new();
            assert_eq!(numeric(&mut bytes, written), Ok(()));
            let groups: Vec<i16> =
                bytes.chunks(2).filter_map(|pair| pair.try_into().ok()).map(i16::from_be_bytes).collect();
            assert_eq!(groups, expected, "{written}");
        }
    }

    #[test]
    fn values_that_are_none_of_their_type_are_told() {
        let told = |value: Scalar, kind| {
            let mut bytes = BytesMut::new();
            binary(&mut bytes, &value, kind).map_err(|error| error.message)
        };
        for (value, kind, message) in [
            (Scalar::Int(i64::MAX), PgType::Int4, "integer out of range"),
            (Scalar::Ints(vec![Some(i64::MAX)]), PgType::Int2Array, "integer out of range"),
            (Scalar::Text("twelve".into()), PgType::Numeric, "numeric value is malformed"),
            (Scalar::Text("twelve".into()), PgType::Inet, "address value is malformed"),
        ] {
            assert_eq!(told(value, kind), Err(message.to_owned()), "{kind:?}");
        }
    }

    #[test]
    fn parameters_are_checked() {
        assert_eq!(parameter(Some(b" 7 "), PgType::Int4, FieldFormat::Text, Encoding::Utf8), Ok(Scalar::Int(7)));
        for (bytes, kind, format, code) in [
            (&b"x"[..], PgType::Int8, FieldFormat::Text, SqlState::InvalidTextRepresentation),
            (b"40000", PgType::Int2, FieldFormat::Text, SqlState::NumberOutOfRange),
            (b"\xff", PgType::Text, FieldFormat::Text, SqlState::CharacterNotInRepertoire),
            (b"123", PgType::Int8, FieldFormat::Binary, SqlState::InvalidBinaryRepresentation),
        ] {
            assert_eq!(parameter(Some(bytes), kind, format, Encoding::Utf8).map_err(|error| error.sqlstate), Err(code));
        }
    }
}
