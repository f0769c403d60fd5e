//! Values as they are, with what their PostgreSQL type is called: functions of any type lose it.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::utils::take_function_args;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

#[derive(Debug, PartialEq, Eq, Hash)]
struct Tagged {
    to: FieldRef,
    signature: Signature,
}

/// An expression as a field of this type, which is its own but for what the field says.
pub(in crate::sql) fn tagged(expression: Expr, to: Field) -> Expr {
    let function = Tagged { to: Arc::new(to.with_nullable(true)), signature: Signature::any(1, Volatility::Immutable) };
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::from(function)), vec![expression]))
}

impl ScalarUDFImpl for Tagged {
    fn name(&self) -> &str {
        "tagged"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType, DataFusionError> {
        Ok(kinds.first().cloned().unwrap_or(DataType::Null))
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef, DataFusionError> {
        let kind = arguments.arg_fields.first().map_or(DataType::Null, |field| field.data_type().clone());
        Ok(Arc::new(self.to.as_ref().clone().with_data_type(kind)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue, DataFusionError> {
        let [argument] = take_function_args(self.name(), arguments.args)?;
        Ok(argument)
    }
}
