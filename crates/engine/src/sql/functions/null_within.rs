//! What `ANY` of an array is when no item settles it: NULL where an item is NULL, else false.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, BooleanArray, GenericListArray, OffsetSizeTrait, new_null_array};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::common::cast::{as_fixed_size_list_array, as_large_list_array, as_list_array};
use datafusion::common::utils::take_function_args;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

/// The function, as rewritten queries call it.
pub(in crate::sql) const NULL_WITHIN: &str = "__null_within";

/// It is asked of each pair of rows in joins over the catalog, and so of whole columns at once.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct NullWithin {
    signature: Signature,
}

impl NullWithin {
    pub(super) fn new() -> Self {
        Self { signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for NullWithin {
    fn name(&self) -> &str {
        NULL_WITHIN
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType, DataFusionError> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue, DataFusionError> {
        let [argument] = take_function_args(self.name(), arguments.args)?;
        Ok(match argument {
            ColumnarValue::Array(array) => ColumnarValue::Array(within(&array)?),
            ColumnarValue::Scalar(value) => {
                let answer = within(&value.to_array()?)?;
                ColumnarValue::Scalar(ScalarValue::try_from_array(&answer, 0)?)
            }
        })
    }
}

fn within(array: &ArrayRef) -> Result<ArrayRef, DataFusionError> {
    Ok(match array.data_type() {
        DataType::List(_) => Arc::new(of_lists(as_list_array(array)?)),
        DataType::LargeList(_) => Arc::new(of_lists(as_large_list_array(array)?)),
        DataType::FixedSizeList(..) => {
            let lists = as_fixed_size_list_array(array)?;
            let open = |row| lists.is_null(row) || lists.value(row).null_count() > 0;
            Arc::new((0..lists.len()).map(|row| (!open(row)).then_some(false)).collect::<BooleanArray>())
        }
        _ => new_null_array(&DataType::Boolean, array.len()),
    })
}

fn of_lists<O: OffsetSizeTrait>(lists: &GenericListArray<O>) -> BooleanArray {
    let some = lists.values().null_count() > 0;
    let open = |row| lists.is_null(row) || some && lists.value(row).null_count() > 0;
    (0..lists.len()).map(|row| (!open(row)).then_some(false)).collect()
}
