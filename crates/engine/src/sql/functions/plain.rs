//! Functions of numbers and texts that DataFusion does not have, or answers where PostgreSQL refuses.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use md5::{Digest, Md5};

use super::declared::{Call, Declared};
use crate::error::SqlState;
use crate::sql::error::QueryError;
use crate::sql::kinds::is_text;
use crate::sql::printed;

type Result<T> = std::result::Result<T, QueryError>;

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
    Declared { name: "sqrt", arguments: &[1], gives: of_number, answer: root, stable: false },
];

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
