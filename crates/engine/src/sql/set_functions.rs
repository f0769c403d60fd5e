//! Our own functions that give rows, in FROM: what each takes and gives, declared once. Their rows are made when a query
//! is planned, so the values of parameters are put in their place before.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::Schema;
use datafusion::catalog::{Session, TableFunctionArgs, TableProvider};
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{ColumnarValue, Expr as Planned};
use sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, ObjectName, Spanned, Statement, TableFactor, Value, ValueWithSpan, Visit,
    VisitMut, Visitor, VisitorMut,
};

use switchyard_dialect::SqlStatement;

use super::cells::{Parameter, PgType, Scalar, pg_type};
use super::error::QueryError;
use super::guard::last_part;
use super::places::Subject;
use crate::error::SqlState;
use crate::tables::{self, Column, Kind};

/// One function.
#[derive(Debug)]
pub(crate) struct SetFunction {
    pub(crate) name: &'static str,
    /// Its arguments by name.
    pub(crate) arguments: &'static [(&'static str, Kind)],
    /// How many of them may be left out, from the last on.
    pub(crate) optional: usize,
    pub(crate) columns: &'static [Column],
}

/// All of them.
pub(crate) static SET_FUNCTIONS: &[SetFunction] = &[
    SetFunction { name: "catalog_at", arguments: &[("version", Kind::Int)], optional: 0, columns: tables::CATALOG_AT },
    SetFunction {
        name: "explain_route",
        arguments: &[
            ("address", Kind::Text),
            ("user", Kind::Text),
            ("workload", Kind::Text),
            ("database", Kind::Text),
            ("roles", Kind::Text),
        ],
        optional: 4,
        columns: tables::EXPLAIN_ROUTE,
    },
    SetFunction {
        name: "test_authentication",
        arguments: &[("address", Kind::Text), ("user", Kind::Text), ("tls", Kind::Bool)],
        optional: 0,
        columns: tables::TEST_AUTHENTICATION,
    },
];

impl SetFunction {
    fn named(name: &ObjectName) -> Option<&'static Self> {
        let name = last_part(name)?;
        SET_FUNCTIONS.iter().find(|function| function.name.eq_ignore_ascii_case(name))
    }

    /// The arguments of a call in their order. Those left out in between are NULL.
    fn in_order(&self, given: Vec<FunctionArg>) -> Result<Vec<FunctionArg>, QueryError> {
        let null = || FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::value(Value::Null)));
        let mut ordered: Vec<FunctionArg> = Vec::with_capacity(self.arguments.len());
        let (mut named, mut positional) = (BTreeSet::new(), 0);
        for argument in given {
            let (name, value) = match argument {
                FunctionArg::Named { name, arg, .. } => (name, arg),
                FunctionArg::ExprNamed { name: Expr::Identifier(name), arg, .. } => (name, arg),
                other if named.is_empty() => {
                    ordered.push(other);
                    positional = ordered.len();
                    continue;
                }
                other => {
                    let message = "positional argument cannot follow named argument";
                    return Err(super::mistakes::at(other.span(), SqlState::SyntaxError, message));
                }
            };
            let place = self.arguments.iter().position(|(own, _)| own.eq_ignore_ascii_case(&name.value));
            let Some(place) = place else { return Err(self.unknown_argument(&name.value)) };
            if place < positional || !named.insert(place) {
                let message = format!("argument name \"{}\" used more than once", name.value);
                return Err(super::mistakes::at(name.span, SqlState::SyntaxError, message));
            }
            while ordered.len() <= place {
                ordered.push(null());
            }
            if let Some(slot) = ordered.get_mut(place) {
                *slot = FunctionArg::Unnamed(value);
            }
        }
        Ok(ordered)
    }

    fn unknown_argument(&self, name: &str) -> QueryError {
        let message = format!("function {}({name} => unknown) does not exist", self.name);
        let near = crate::nearest(name, self.arguments.iter().map(|(own, _)| *own));
        let names: Vec<&str> = self.arguments.iter().map(|(own, _)| *own).collect();
        let hint = match near {
            Some(near) => format!("Did you mean \"{near}\"?"),
            None => format!("Its arguments are {}.", names.join(", ")),
        };
        QueryError::new(SqlState::UndefinedFunction, message)
            .hinting(hint)
            .about(Subject::Function(self.name.to_owned()))
    }
}

/// The function and the arguments that a factor calls.
fn called(factor: &TableFactor) -> Option<(&'static SetFunction, &[FunctionArg])> {
    match factor {
        TableFactor::Table { name, args: Some(arguments), .. } => Some((SetFunction::named(name)?, &arguments.args)),
        TableFactor::Function { name, args, .. } => Some((SetFunction::named(name)?, args)),
        _ => None,
    }
}

fn called_mut(factor: &mut TableFactor) -> Option<(&'static SetFunction, &mut Vec<FunctionArg>)> {
    match factor {
        TableFactor::Table { name, args: Some(arguments), .. } => {
            Some((SetFunction::named(name)?, &mut arguments.args))
        }
        TableFactor::Function { name, args, .. } => Some((SetFunction::named(name)?, args)),
        _ => None,
    }
}

/// Puts the arguments of a call in their order.
///
/// # Errors
/// When one is not known or given twice.
pub(super) fn arrange(factor: &mut TableFactor) -> Result<(), QueryError> {
    if let Some((function, arguments)) = called_mut(factor) {
        *arguments = function.in_order(std::mem::take(arguments))?;
    }
    Ok(())
}

/// The argument of `catalog_at`, wherever it is called with a number.
pub(super) fn version_of(factor: &TableFactor) -> Option<u64> {
    let (function, [FunctionArg::Unnamed(value) | FunctionArg::Named { arg: value, .. }]) = called(factor)? else {
        return None;
    };
    match value {
        FunctionArgExpr::Expr(Expr::Value(value)) if function.name == "catalog_at" => match &value.value {
            Value::Number(number, _) => number.to_string().parse().ok(),
            _ => None,
        },
        _ => None,
    }
}

/// The declared types of parameters, with those that are arguments of such functions.
pub(super) fn with_arguments(statement: &Statement, declared: &[Option<PgType>]) -> Vec<Option<PgType>> {
    let mut kinds = Kinds(declared.to_vec());
    let _: ControlFlow<()> = statement.visit(&mut kinds);
    kinds.0
}

struct Kinds(Vec<Option<PgType>>);

impl Visitor for Kinds {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        let Some((function, arguments)) = called(factor) else { return ControlFlow::Continue(()) };
        let Ok(ordered) = function.in_order(arguments.to_vec()) else { return ControlFlow::Continue(()) };
        for (argument, (_, kind)) in ordered.iter().zip(function.arguments) {
            let FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(value))) = argument else { continue };
            let Some(index) = parameter_index(value) else { continue };
            if self.0.len() <= index {
                self.0.resize(index.saturating_add(1), None);
            }
            if let Some(known) = self.0.get_mut(index) {
                known.get_or_insert(pg_type(&kind.field("")));
            }
        }
        ControlFlow::Continue(())
    }
}

/// Which parameter a value is, from 0.
fn parameter_index(value: &ValueWithSpan) -> Option<usize> {
    let Value::Placeholder(name) = &value.value else { return None };
    let number: u16 = name.strip_prefix('$')?.parse().ok()?;
    usize::from(number).checked_sub(1)
}

/// The statement with the values of parameters in the calls of such functions.
pub fn with_values<'a>(statement: &'a SqlStatement, values: &[Parameter]) -> Cow<'a, SqlStatement> {
    if values.is_empty() || !calls_one(statement) {
        return Cow::Borrowed(statement);
    }
    let mut filled = Statement::clone(statement);
    let _: ControlFlow<()> = VisitMut::visit(&mut filled, &mut Filler { values });
    Cow::Owned(filled.into())
}

fn calls_one(statement: &Statement) -> bool {
    let mut any = Any;
    statement.visit(&mut any).is_break()
}

/// Breaks where one is called.
struct Any;

impl Visitor for Any {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        if called(factor).is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

struct Filler<'a> {
    values: &'a [Parameter],
}

impl VisitorMut for Filler<'_> {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let Some((_, arguments)) = called_mut(factor) {
            let mut within = Within { values: self.values };
            let _: ControlFlow<()> = VisitMut::visit(arguments, &mut within);
        }
        ControlFlow::Continue(())
    }
}

/// Fills in the values of the parameters within a call.
struct Within<'a> {
    values: &'a [Parameter],
}

impl VisitorMut for Within<'_> {
    type Break = ();

    fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<()> {
        let known = parameter_index(value).and_then(|index| self.values.get(index));
        if let Some(literal) = known.and_then(|parameter| literal(&parameter.value)) {
            value.value = literal;
        }
        ControlFlow::Continue(())
    }
}

/// A value as it is written; none for what no such function takes.
fn literal(value: &Scalar) -> Option<Value> {
    Some(match value {
        Scalar::Null => Value::Null,
        Scalar::Bool(value) => Value::Boolean(*value),
        Scalar::Int(value) => Value::Number(value.to_string(), false),
        Scalar::Text(value) => Value::SingleQuotedString(value.clone()),
        _ => return None,
    })
}

/// What a call is given.
pub(super) enum Given {
    /// Values.
    Values(Vec<ScalarValue>),
    /// Parameters whose values are not known yet: the query is only described.
    Later,
}

/// Computes the arguments of a call.
///
/// # Errors
/// When one is no constant, or cannot be computed.
pub(super) fn given(name: &str, arguments: &TableFunctionArgs<'_, '_>) -> Result<Given, DataFusionError> {
    let placeholder = |whole: &Planned| whole.exists(|part| Ok(matches!(part, Planned::Placeholder(_))));
    for argument in arguments.exprs() {
        if placeholder(argument)? {
            return Ok(Given::Later);
        }
    }
    let values = arguments.exprs().iter().map(|argument| value_of(name, argument, arguments.session()));
    values.collect::<Result<_, _>>().map(Given::Values)
}

fn value_of(name: &str, argument: &Planned, session: &dyn Session) -> Result<ScalarValue, DataFusionError> {
    if let Planned::Literal(value, _) = argument {
        return Ok(value.clone());
    }
    let constant = !argument.any_column_refs() && !argument.is_volatile();
    let computed = session.create_physical_expr(argument.clone(), &DFSchema::empty()).ok().filter(|_| constant);
    let Some(computed) = computed else {
        let message = format!("function {name} takes constants");
        return Err(QueryError::new(SqlState::FeatureNotSupported, message)
            .about(Subject::Function(name.to_owned()))
            .external());
    };
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    let row = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options)?;
    match computed.evaluate(&row)? {
        ColumnarValue::Scalar(value) => Ok(value),
        ColumnarValue::Array(array) => ScalarValue::try_from_array(&array, 0),
    }
}

/// The function's columns without rows.
///
/// # Errors
/// When there is no such function.
pub(super) fn without_rows(name: &str) -> Result<Arc<dyn TableProvider>, DataFusionError> {
    let columns = SET_FUNCTIONS.iter().find(|function| function.name == name).map_or(&[][..], |own| own.columns);
    tables::without_rows(columns)
}
