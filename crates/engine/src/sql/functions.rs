//! Functions that PostgreSQL and Vertica clients expect and DataFusion does not have.

pub(super) mod arithmetic;
pub(super) mod declared;
mod from_char;
pub(super) mod networks;
pub(super) mod null_within;
pub(super) mod plain;
pub(super) mod tagged;
pub(super) mod temporal;
mod to_char;

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionImplementation, ScalarUDF, Volatility, create_udf};

use super::provider::{CatalogAt, ExplainRoute, TestAuthentication};
use super::{Current, current};
use crate::snapshot::Snapshot;

/// Whether a function stands for an operator or a cast.
pub(super) fn is_operator(name: &str) -> bool {
    let words = ["plus", "minus", "times", "divided by", "modulo", "length of interval", "order of address"];
    words.contains(&name) || ["value of jsonb", "convert", "rounded", "tagged", "||"].contains(&name)
}

/// What `version()` answers: drivers look for the word PostgreSQL and a number behind it.
pub const VERSION: &str =
    concat!("PostgreSQL 15.0 (Switchyard ", env!("CARGO_PKG_VERSION"), ") on x86_64-linux, compiled by rustc, 64-bit");

/// Registers them in a session's context.
pub(super) fn register(context: &SessionContext, current_snapshot: &Current) {
    context.register_udtf("catalog_at", Arc::new(CatalogAt::new(Arc::clone(current_snapshot))));
    context.register_udtf("explain_route", Arc::new(ExplainRoute::new(Arc::clone(current_snapshot))));
    context.register_udtf("test_authentication", Arc::new(TestAuthentication::new(Arc::clone(current_snapshot))));
    declared::register(context, temporal::FUNCTIONS, current_snapshot);
    declared::register(context, plain::FUNCTIONS, current_snapshot);
    declared::register(context, networks::FUNCTIONS, current_snapshot);
    context.register_udf(ScalarUDF::new_from_impl(null_within::NullWithin::new()));
    let text = |name: &str, value: fn(&Snapshot) -> Option<String>| {
        let seen = Arc::clone(current_snapshot);
        let function: ScalarFunctionImplementation =
            Arc::new(move |_| Ok(ColumnarValue::Scalar(ScalarValue::Utf8(value(&current(&seen))))));
        context.register_udf(create_udf(name, vec![], DataType::Utf8, Volatility::Stable, function));
    };
    text("version", |_| Some(VERSION.to_owned()));
    text("current_session", |snapshot| Some(snapshot.session.session_id.clone()));
    let seen = Arc::clone(current_snapshot);
    let pid: ScalarFunctionImplementation =
        Arc::new(move |_| Ok(ColumnarValue::Scalar(ScalarValue::Int32(Some(current(&seen).session.process_id)))));
    context.register_udf(create_udf("pg_backend_pid", vec![], DataType::Int32, Volatility::Stable, pid));
}
