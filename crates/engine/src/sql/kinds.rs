//! PostgreSQL's types among DataFusion's: several that look alike there are told apart by what their fields say.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, IntervalUnit, TimeUnit};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::planner::TypePlanner;
use sqlparser::ast::{CharacterLength, DataType as SqlType, ExactNumberInfo, ObjectName, TimezoneInfo};

use super::error::undefined_type;
use super::guard::last_part;
use crate::tables::PG_TYPE;

/// How long a text may be, or how many digits a second may have; of numbers and intervals, PostgreSQL's modifier of the type.
pub(super) const LENGTH: &str = "length";

/// The zone that points in time are kept in.
pub(super) const UTC: &str = "+00:00";

pub(super) fn timestamp() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, None)
}

pub(super) fn timestamptz() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into()))
}

pub(super) fn time() -> DataType {
    DataType::Time64(TimeUnit::Microsecond)
}

pub(super) fn interval() -> DataType {
    DataType::Interval(IntervalUnit::MonthDayNano)
}

/// What a field says of its PostgreSQL type beyond DataFusion's.
pub(super) fn tag(field: &Field) -> &str {
    field.metadata().get(PG_TYPE).map_or("", String::as_str)
}

/// A field of a type that is told by its tag.
pub(super) fn tagged(kind: DataType, tag: &str, length: Option<u64>) -> Field {
    let mut metadata = std::collections::HashMap::from([(PG_TYPE.to_owned(), tag.to_owned())]);
    if let Some(length) = length {
        metadata.insert(LENGTH.to_owned(), length.to_string());
    }
    Field::new("", kind, true).with_metadata(metadata)
}

pub(super) fn length(field: &Field) -> Option<usize> {
    field.metadata().get(LENGTH).and_then(|length| length.parse().ok())
}

/// Reads the names of types as PostgreSQL does.
#[derive(Debug)]
pub(super) struct Types;

impl TypePlanner for Types {
    fn plan_type_field(&self, written: &SqlType) -> Result<Option<FieldRef>, DataFusionError> {
        let characters = |length: &Option<CharacterLength>| match length {
            Some(CharacterLength::IntegerLength { length, .. }) => Some(*length),
            _ => None,
        };
        let field = match written {
            SqlType::Varchar(length) | SqlType::CharacterVarying(length) | SqlType::CharVarying(length) => {
                tagged(DataType::Utf8, "varchar", characters(length))
            }
            SqlType::Char(length) | SqlType::Character(length) => {
                tagged(DataType::Utf8, "bpchar", Some(characters(length).unwrap_or(1)))
            }
            SqlType::Text => tagged(DataType::Utf8, "text", None),
            SqlType::JSON => tagged(DataType::Utf8, "json", None),
            SqlType::JSONB => tagged(DataType::Utf8, "jsonb", None),
            SqlType::Timestamp(digits, zone) => {
                let zoned = matches!(zone, TimezoneInfo::Tz | TimezoneInfo::WithTimeZone);
                tagged(if zoned { timestamptz() } else { timestamp() }, "", *digits)
            }
            SqlType::Time(digits, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => tagged(time(), "", *digits),
            SqlType::Interval { precision, .. } => tagged(interval(), "", precision.map(|digits| ALL_FIELDS | digits)),
            SqlType::Numeric(digits) | SqlType::Decimal(digits) | SqlType::Dec(digits) => match numeric(digits) {
                Some(field) => field,
                None => return Ok(None),
            },
            SqlType::Custom(name, _) => custom(name)?,
            _ => return Ok(None),
        };
        Ok(Some(Arc::new(field)))
    }
}

/// An array of a type that is told by its tag.
pub(super) fn array_of(item: &Field) -> Field {
    let told = format!("{}[]", tag(item));
    let length = length(item).and_then(|length| u64::try_from(length).ok());
    let list = DataType::List(Arc::new(Field::new_list_field(item.data_type().clone(), true)));
    tagged(list, &told, length)
}

/// Of an interval that keeps all its fields.
const ALL_FIELDS: u64 = 0x7fff << 16;

/// How many digits the seconds of an interval may have.
pub(super) fn interval_digits(field: &Field) -> Option<usize> {
    length(field).map(|told| told & 0xffff)
}

/// A number with so many digits; none without, or where they are more than are kept.
fn numeric(digits: &ExactNumberInfo) -> Option<Field> {
    let (precision, scale) = match digits {
        ExactNumberInfo::Precision(precision) => (*precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision, u64::try_from(*scale).ok()?),
        ExactNumberInfo::None => return None,
    };
    let kind = DataType::Decimal128(u8::try_from(precision).ok()?, i8::try_from(scale).ok()?);
    (1..=38).contains(&precision).then_some(())?;
    (scale <= precision).then(|| tagged(kind, "", Some(precision << 16 | scale)))
}

fn custom(name: &ObjectName) -> Result<Field, DataFusionError> {
    let word = last_part(name).unwrap_or_default().to_lowercase();
    Ok(match word.as_str() {
        "name" | "inet" | "cidr" | "varchar" | "bpchar" | "json" | "jsonb" | "text" => {
            tagged(DataType::Utf8, &word, None)
        }
        "char" => tagged(DataType::Utf8, "char", None),
        "timestamptz" => tagged(timestamptz(), "", None),
        "timestamp" => tagged(timestamp(), "", None),
        "time" => tagged(time(), "", None),
        "interval" => tagged(interval(), "", None),
        "bytea" => tagged(DataType::Binary, "", None),
        _ => return Err(undefined_type(&name.to_string()).external()),
    })
}

/// A type as PostgreSQL's messages call it.
pub(super) fn name_of(field: &Field) -> String {
    let own = match (field.data_type(), tag(field)) {
        (kind, "varchar") if is_text(kind) => "character varying",
        (kind, "bpchar") if is_text(kind) => "character",
        (kind, "char") if is_text(kind) => "\"char\"",
        (kind, own @ ("name" | "json" | "jsonb" | "inet" | "cidr")) if is_text(kind) => own,
        (DataType::Boolean, _) => "boolean",
        (DataType::Int8 | DataType::Int16 | DataType::UInt8, _) => "smallint",
        (DataType::Int32 | DataType::UInt16, _) => "integer",
        (DataType::UInt32, _) => "oid",
        (DataType::Int64 | DataType::UInt64, _) => "bigint",
        (DataType::Float16 | DataType::Float32, _) => "real",
        (DataType::Float64, _) => "double precision",
        (DataType::Date32, _) => "date",
        (DataType::Timestamp(_, None), _) => "timestamp without time zone",
        (DataType::Timestamp(_, Some(_)), _) => "timestamp with time zone",
        (DataType::Time32(_) | DataType::Time64(_), _) => "time without time zone",
        (DataType::Interval(_) | DataType::Duration(_), _) => "interval",
        (kind, _) if kind.is_decimal() => "numeric",
        (DataType::Binary | DataType::LargeBinary, _) => "bytea",
        (DataType::List(item), _) => return format!("{}[]", name_of(item)),
        _ => "text",
    };
    own.to_owned()
}

/// Where numbers of different scales meet, PostgreSQL's keep their own, DataFusion's have the greatest. Of those of this type
/// only so many digits behind the point are shown as the least scale has, and as count. Nothing else gives this type:
/// arithmetic has 76 digits or at most 38.
pub(super) fn mixed_scale(least: i8, greatest: i8) -> Option<DataType> {
    let least = u8::try_from(least).ok()?;
    let fits = least <= MIXED_SCALE_MAX.unsigned_abs() && greatest <= MIXED_SCALE_MAX;
    fits.then(|| DataType::Decimal256(MIXED_PRECISION - least, greatest))
}

/// The least scale of such a type.
pub(super) fn least_scale(kind: &DataType) -> Option<usize> {
    match kind {
        DataType::Decimal256(precision, _) => {
            let least = MIXED_PRECISION.checked_sub(*precision)?;
            (least <= MIXED_SCALE_MAX.unsigned_abs()).then_some(usize::from(least))
        }
        _ => None,
    }
}

const MIXED_PRECISION: u8 = 75;

/// What is larger leaves no room for 38 digits.
const MIXED_SCALE_MAX: i8 = 18;

pub(super) fn is_text(kind: &DataType) -> bool {
    matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}
