//! Functions of single values, declared in tables: their result's type and how it is found, row by row. NULL gives NULL.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::new_empty_array;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::DataFusionError;
use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};

use crate::error::SqlState;
use crate::sql::convert::Place;
use crate::sql::error::QueryError;
use crate::sql::places::Subject;
use crate::sql::{Current, current, kinds};

/// What a call is made with.
pub(in crate::sql) struct Call<'a> {
    pub(in crate::sql) values: &'a [ScalarValue],
    pub(in crate::sql) place: &'a Place,
    pub(in crate::sql) gives: &'a DataType,
}

/// One function.
#[derive(Debug)]
pub(in crate::sql) struct Declared {
    pub(in crate::sql) name: &'static str,
    pub(in crate::sql) arguments: &'static [usize],
    /// The result's type, from the arguments' and those that are literals; none where there is no such function.
    pub(in crate::sql) gives: fn(&[DataType], &[Option<&ScalarValue>]) -> Option<DataType>,
    pub(in crate::sql) answer: fn(&Call<'_>) -> Result<ScalarValue, QueryError>,
    /// Whether the answer depends on the session's zone or on the time.
    pub(in crate::sql) stable: bool,
}

/// Registers functions in a session's context.
pub(in crate::sql) fn register(context: &SessionContext, functions: &'static [Declared], snapshot: &Current) {
    for declared in functions {
        context.register_udf(udf(declared, snapshot));
    }
}

fn udf(declared: &'static Declared, snapshot: &Current) -> ScalarUDF {
    let volatility = if declared.stable { Volatility::Stable } else { Volatility::Immutable };
    let counts = declared.arguments.iter().map(|count| match count {
        0 => TypeSignature::Nullary,
        count => TypeSignature::Any(*count),
    });
    let signature = Signature::one_of(counts.collect(), volatility);
    ScalarUDF::from(Function { declared, signature, current: Arc::clone(snapshot) })
}

/// A call of a function, planned.
pub(in crate::sql) fn call(declared: &'static Declared, arguments: Vec<Expr>, snapshot: &Current) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(udf(declared, snapshot)), arguments))
}

struct Function {
    declared: &'static Declared,
    signature: Signature,
    current: Current,
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.declared.name)
    }
}

// Operators of one name differ by what they are given.
impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.declared.name == other.declared.name
    }
}

impl Eq for Function {}

impl Hash for Function {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.declared.name.hash(state);
    }
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        self.declared.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType, DataFusionError> {
        (self.declared.gives)(kinds, &[]).ok_or_else(|| self.unknown(kinds))
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef, DataFusionError> {
        let kinds: Vec<DataType> = arguments.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let kind = (self.declared.gives)(&kinds, arguments.scalar_arguments).ok_or_else(|| self.unknown(&kinds))?;
        Ok(Arc::new(Field::new(self.name(), kind, true)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue, DataFusionError> {
        let place = Place::of(&current(&self.current));
        let gives = arguments.return_field.data_type();
        let one = |values: &[ScalarValue]| {
            if values.iter().any(ScalarValue::is_null) {
                return ScalarValue::try_from(gives);
            }
            (self.declared.answer)(&Call { values, place: &place, gives }).map_err(QueryError::external)
        };
        let scalars: Option<Vec<ScalarValue>> = arguments
            .args
            .iter()
            .map(|argument| match argument {
                ColumnarValue::Scalar(value) => Some(value.clone()),
                ColumnarValue::Array(_) => None,
            })
            .collect();
        if let Some(values) = scalars {
            return Ok(ColumnarValue::Scalar(one(&values)?));
        }
        if arguments.number_rows == 0 {
            return Ok(ColumnarValue::Array(new_empty_array(gives)));
        }
        let rows = (0..arguments.number_rows).map(|row| {
            let values = arguments.args.iter().map(|argument| match argument {
                ColumnarValue::Scalar(value) => Ok(value.clone()),
                ColumnarValue::Array(array) => ScalarValue::try_from_array(array, row),
            });
            one(&values.collect::<Result<Vec<_>, _>>()?)
        });
        Ok(ColumnarValue::Array(ScalarValue::iter_to_array(rows.collect::<Result<Vec<_>, _>>()?)?))
    }
}

impl Function {
    fn unknown(&self, types: &[DataType]) -> DataFusionError {
        let shown: Vec<String> = types.iter().map(|kind| kinds::name_of(&Field::new("", kind.clone(), true))).collect();
        let message = format!("function {}({}) does not exist", self.name(), shown.join(", "));
        QueryError::new(SqlState::UndefinedFunction, message)
            .hinting(
                "No function matches the given name and argument types. You might need to add explicit type casts.",
            )
            .about(Subject::Function(self.name().to_owned()))
            .external()
    }
}
