//! The functions that clients ask PostgreSQL's catalog with (`reference/introspection.md`), one declaration each.

pub(super) mod declared;
mod json;
mod objects;

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::ListArray;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::DataFusionError;
use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};

use self::declared::FUNCTIONS;
use super::cells::{PgType, pg_type};
use super::error::QueryError;
use super::{Current, current};
use crate::snapshot::Snapshot;
use crate::tables::Kind;
use crate::tables::pg_catalog::objects::type_oid;

/// What an argument may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    Only(Kind),
    /// An array of whatever.
    AnyArray,
    Any,
    /// Any number of whatever, none too.
    AnyNumber,
}

impl Takes {
    /// The number of the type, as `pg_proc` shows it.
    pub(crate) fn oid(self) -> u32 {
        match self {
            Self::Only(kind) => type_oid(kind),
            Self::AnyArray => 2277,
            Self::Any | Self::AnyNumber => 2276,
        }
    }
}

/// One function.
#[derive(Debug)]
pub(crate) struct CatalogFunction {
    pub(crate) name: &'static str,
    pub(crate) arguments: &'static [Takes],
    /// How many of them may be left out. Where one is a user who is asked about, that is the first.
    pub(crate) optional: usize,
    pub(crate) gives: Kind,
    answer: fn(&Snapshot, &[Value]) -> Result<Value, QueryError>,
}

impl CatalogFunction {
    /// The function of that name.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        FUNCTIONS.iter().find(|function| function.name == name)
    }

    /// The types of its arguments up to the first that may be anything.
    pub(super) fn takes(&self) -> impl Iterator<Item = PgType> {
        let kind = |takes: &Takes| match takes {
            Takes::Only(kind) => Some(pg_type(&kind.field(""))),
            _ => None,
        };
        self.arguments.iter().map_while(kind)
    }

    fn arrow(&self) -> DataType {
        self.gives.arrow()
    }

    fn signature(&self) -> Signature {
        let most = self.arguments.len();
        let least = most.saturating_sub(self.optional);
        let mut forms: Vec<TypeSignature> = (least..=most)
            .map(|count| match count {
                0 => TypeSignature::Nullary,
                count => TypeSignature::Any(count),
            })
            .collect();
        if self.arguments.last() == Some(&Takes::AnyNumber) {
            forms.push(TypeSignature::VariadicAny);
        }
        Signature::one_of(forms, Volatility::Stable)
    }
}

/// All that a client may name.
pub(crate) fn catalog_functions() -> impl Iterator<Item = &'static CatalogFunction> {
    FUNCTIONS.iter().filter(|function| !function.name.starts_with("__"))
}

/// An argument or a result.
#[derive(Debug, Clone, PartialEq)]
enum Value {
    Null,
    Bool(bool),
    Int(i64),
    /// What is no integer, as it is written.
    Number(String),
    Text(String),
    Texts(Vec<Option<String>>),
    /// Numbers or truths, as they are written.
    Numbers(Vec<Option<String>>),
}

impl Value {
    fn read(scalar: &ScalarValue) -> Self {
        match scalar {
            scalar if scalar.is_null() => Self::Null,
            ScalarValue::Boolean(Some(value)) => Self::Bool(*value),
            ScalarValue::List(list) => {
                let kind = list.value_type();
                let plain = kind.is_numeric() || kind == DataType::Boolean;
                if plain { Self::Numbers(items(list)) } else { Self::Texts(items(list)) }
            }
            scalar if scalar.data_type().is_integer() => match scalar.cast_to(&DataType::Int64) {
                Ok(ScalarValue::Int64(Some(value))) => Self::Int(value),
                _ => Self::Number(scalar.to_string()),
            },
            scalar if scalar.data_type().is_numeric() => Self::Number(scalar.to_string()),
            scalar => Self::Text(scalar.to_string()),
        }
    }

    fn scalar(self, function: &CatalogFunction) -> Result<ScalarValue, DataFusionError> {
        let texts = |values: Vec<Option<String>>| {
            let values: Vec<ScalarValue> = values.into_iter().map(ScalarValue::Utf8).collect();
            ScalarValue::List(ScalarValue::new_list_nullable(&values, &DataType::Utf8))
        };
        Ok(match (self, function.arrow()) {
            (Self::Bool(value), DataType::Boolean) => ScalarValue::Boolean(Some(value)),
            (Self::Int(value), DataType::Timestamp(..)) => {
                ScalarValue::TimestampMicrosecond(Some(value), Some("+00:00".into()))
            }
            (Self::Int(value), integer) if integer.is_integer() => {
                ScalarValue::Int64(Some(value)).cast_to(&integer).or_else(|_| ScalarValue::try_from(&integer))?
            }
            (Self::Text(value), DataType::Utf8) => ScalarValue::Utf8(Some(value)),
            (Self::Texts(values) | Self::Numbers(values), list @ DataType::List(_)) => texts(values).cast_to(&list)?,
            (_, other) => ScalarValue::try_from(&other)?,
        })
    }

    /// The items of an array.
    fn items(&self) -> Option<&[Option<String>]> {
        match self {
            Self::Texts(items) | Self::Numbers(items) => Some(items),
            _ => None,
        }
    }

    fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// An object number, as such or as text.
    fn oid(&self) -> Option<u32> {
        match self {
            Self::Int(value) => u32::try_from(*value).ok(),
            Self::Text(text) => text.trim().parse().ok(),
            _ => None,
        }
    }
}

fn items(list: &ListArray) -> Vec<Option<String>> {
    let flat = ScalarValue::convert_array_to_scalar_vec(list).unwrap_or_default();
    let shown = |item: &ScalarValue| (!item.is_null()).then(|| item.to_string());
    flat.iter().flatten().flatten().map(shown).collect()
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<u32> for Value {
    fn from(value: u32) -> Self {
        Self::Int(value.into())
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

fn first(arguments: &[Value]) -> &Value {
    arguments.first().unwrap_or(&Value::Null)
}

/// A declaration as DataFusion calls it.
struct Udf {
    function: &'static CatalogFunction,
    signature: Signature,
    current: Current,
}

impl std::fmt::Debug for Udf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.function.name)
    }
}

impl PartialEq for Udf {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.function, other.function)
    }
}

impl Eq for Udf {}

impl Hash for Udf {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.function.name.hash(state);
    }
}

impl ScalarUDFImpl for Udf {
    fn name(&self) -> &str {
        self.function.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType, DataFusionError> {
        Ok(self.function.arrow())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> Result<FieldRef, DataFusionError> {
        Ok(Arc::new(self.function.gives.field(self.function.name)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue, DataFusionError> {
        let snapshot = current(&self.current);
        let answer = |values: &[Value]| -> Result<ScalarValue, DataFusionError> {
            let value = (self.function.answer)(&snapshot, values);
            value.map_err(|error| DataFusionError::External(Box::new(error)))?.scalar(self.function)
        };
        if arguments.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_))) {
            let values: Vec<Value> = arguments
                .args
                .iter()
                .map(|argument| match argument {
                    ColumnarValue::Scalar(scalar) => Value::read(scalar),
                    ColumnarValue::Array(_) => Value::Null,
                })
                .collect();
            return Ok(ColumnarValue::Scalar(answer(&values)?));
        }
        let mut results = Vec::with_capacity(arguments.number_rows);
        for row in 0..arguments.number_rows {
            let values: Vec<Value> = arguments
                .args
                .iter()
                .map(|argument| match argument {
                    ColumnarValue::Scalar(scalar) => Ok(Value::read(scalar)),
                    ColumnarValue::Array(array) => Ok(Value::read(&ScalarValue::try_from_array(array, row)?)),
                })
                .collect::<Result<_, DataFusionError>>()?;
            results.push(answer(&values)?);
        }
        if results.is_empty() {
            return Ok(ColumnarValue::Array(datafusion::arrow::array::new_empty_array(&self.function.arrow())));
        }
        Ok(ColumnarValue::Array(ScalarValue::iter_to_array(results)?))
    }
}

/// Registers them in a session's context.
pub(super) fn register(context: &SessionContext, current_snapshot: &Current) {
    for function in FUNCTIONS {
        let (signature, current) = (function.signature(), Arc::clone(current_snapshot));
        context.register_udf(ScalarUDF::new_from_impl(Udf { function, signature, current }));
    }
}
