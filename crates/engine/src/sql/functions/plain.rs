//! Functions of numbers and texts that DataFusion does not have, or answers where PostgreSQL refuses.

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use md5::{Digest, Md5};

use super::declared::{Call, Declared};
use crate::error::SqlState;
use crate::sql::error::QueryError;
use crate::sql::kinds::is_text;
use crate::sql::printed;

type Result<T> = std::result::Result<T, QueryError>;

/// Its second argument.
pub(in crate::sql) const SAME: &str = "__same";

pub(super) const FUNCTIONS: &[Declared] = &[
    Declared {
        name: "md5",
        arguments: &[1],
        gives: |kinds, _| match kinds {
            [kind] => (is_text(kind) || matches!(kind, DataType::Binary | DataType::Null)).then_some(DataType::Utf8),
            _ => None,
        },
        answer: |call| {
            let digest = match call.values.first() {
                Some(ScalarValue::Binary(Some(bytes))) => Md5::digest(bytes),
                Some(value) => Md5::digest(value.try_as_str().flatten().unwrap_or_default()),
                None => return Ok(ScalarValue::Utf8(None)),
            };
            Ok(ScalarValue::Utf8(Some(digest.iter().map(|byte| format!("{byte:02x}")).collect())))
        },
        stable: false,
    },
    Declared {
        name: "chr",
        arguments: &[1],
        gives: |kinds, _| match kinds {
            [kind] => (kind.is_integer() || kind.is_null()).then_some(DataType::Utf8),
            _ => None,
        },
        answer: character,
        stable: false,
    },
    Declared { name: "ln", arguments: &[1], gives: of_number, answer: |call| logarithm(call, f64::ln), stable: false },
    Declared {
        name: "log10",
        arguments: &[1],
        gives: of_number,
        answer: |call| logarithm(call, f64::log10),
        stable: false,
    },
    Declared {
        name: "to_hex",
        arguments: &[1],
        gives: |kinds, _| match kinds {
            [kind] => (kind.is_integer() || kind.is_null()).then_some(DataType::Utf8),
            _ => None,
        },
        answer: |call| {
            let digits = match call.values.first() {
                Some(ScalarValue::Int64(Some(value))) => format!("{value:x}"),
                Some(ScalarValue::Int16(Some(value))) => format!("{:x}", i32::from(*value)),
                Some(ScalarValue::Int32(Some(value))) => format!("{value:x}"),
                other => format!("{:x}", number_of(other).unwrap_or_default()),
            };
            Ok(ScalarValue::Utf8(Some(digits)))
        },
        stable: false,
    },
    Declared {
        name: "array_dims",
        arguments: &[1],
        gives: |kinds, _| match kinds {
            [kind] => (kind.is_nested() || kind.is_null()).then_some(DataType::Utf8),
            _ => None,
        },
        answer: |call| {
            let count = items(call).map_or(0, |items| items.len());
            Ok(ScalarValue::Utf8((count > 0).then(|| format!("[1:{count}]"))))
        },
        stable: false,
    },
    Declared {
        name: "pg_typeof",
        arguments: &[1],
        gives: |_, _| Some(DataType::Utf8),
        // Told when the query is planned.
        answer: |_| Ok(ScalarValue::Utf8(None)),
        stable: true,
    },
    Declared {
        name: SAME,
        arguments: &[2],
        gives: |kinds, _| kinds.get(1).cloned(),
        answer: |call| Ok(call.values.get(1).cloned().unwrap_or(ScalarValue::Null)),
        stable: false,
    },
    Declared { name: "sqrt", arguments: &[1], gives: of_number, answer: root, stable: false },
];

/// The items of an array.
fn items(call: &Call<'_>) -> Option<ArrayRef> {
    match call.values.first() {
        Some(ScalarValue::List(list)) if !list.is_empty() => Some(list.value(0)),
        Some(ScalarValue::LargeList(list)) if !list.is_empty() => Some(list.value(0)),
        Some(ScalarValue::FixedSizeList(list)) if !list.is_empty() => Some(list.value(0)),
        _ => None,
    }
}

fn number_of(value: Option<&ScalarValue>) -> Option<i64> {
    match value?.cast_to(&DataType::Int64) {
        Ok(ScalarValue::Int64(number)) => number,
        _ => None,
    }
}

fn of_number(kinds: &[DataType], _: &[Option<&ScalarValue>]) -> Option<DataType> {
    match kinds {
        [kind] => (kind.is_numeric() || kind.is_null()).then_some(DataType::Float64),
        _ => None,
    }
}

fn number(call: &Call<'_>) -> Result<f64> {
    let value = call.values.first().unwrap_or(&ScalarValue::Null);
    match printed::double(value) {
        Some(number) => Ok(number),
        None => Ok(printed::digits(value)?.parse().unwrap_or(f64::NAN)),
    }
}

fn character(call: &Call<'_>) -> Result<ScalarValue> {
    let limit = |message: &str| QueryError::new(SqlState::ProgramLimitExceeded, message);
    let code = number(call)?;
    if code == 0.0 {
        return Err(limit("null character not permitted"));
    }
    let character = (code > 0.0 && code < 1_114_112.0).then_some(code as u32).and_then(char::from_u32);
    let character = character.ok_or_else(|| limit("requested character too large for encoding"))?;
    Ok(ScalarValue::Utf8(Some(character.to_string())))
}

fn logarithm(call: &Call<'_>, of: fn(f64) -> f64) -> Result<ScalarValue> {
    let refused = |what: &str| QueryError::new(SqlState::InvalidLogarithm, format!("cannot take logarithm of {what}"));
    let number = number(call)?;
    if number == 0.0 {
        return Err(refused("zero"));
    }
    if number < 0.0 {
        return Err(refused("a negative number"));
    }
    Ok(ScalarValue::Float64(Some(of(number))))
}

fn root(call: &Call<'_>) -> Result<ScalarValue> {
    let number = number(call)?;
    if number < 0.0 {
        return Err(QueryError::new(SqlState::InvalidPowerArgument, "cannot take square root of a negative number"));
    }
    Ok(ScalarValue::Float64(Some(number.sqrt())))
}
