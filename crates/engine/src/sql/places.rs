//! Where in a statement a mistake is that the planner or an execution told without a place.

use std::ops::ControlFlow;

use sqlparser::ast::{BinaryOperator, DataType, Expr, Spanned, Statement, Value, Visit, Visitor};
use sqlparser::tokenizer::{Location, Span};

use super::error::QueryError;
use super::guard::last_part;

/// What a mistake is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A call of this function.
    Function(String),
    /// This text in quotes.
    Literal(String),
    /// A cast to this type.
    Type(String),
    /// An operator between two expressions.
    Operator(String),
}

/// An error with the place of what it is about.
pub(super) fn located(error: QueryError, statement: &Statement) -> QueryError {
    let (None, Some(subject)) = (error.location, &error.subject) else { return error };
    let mut finder = Finder { subject, found: None };
    let _: ControlFlow<()> = statement.visit(&mut finder);
    let location = finder.found.filter(|place| place.line > 0).map(|place| (place.line, place.column));
    QueryError { location, ..error }
}

struct Finder<'a> {
    subject: &'a Subject,
    found: Option<Location>,
}

impl Visitor for Finder<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        self.found = match (self.subject, expression) {
            (Subject::Function(name), Expr::Function(function))
                if last_part(&function.name).is_some_and(|own| own.eq_ignore_ascii_case(name)) =>
            {
                Some(function.name.span().start)
            }
            (Subject::Literal(text), Expr::Value(value)) if matches!(&value.value, Value::SingleQuotedString(own) if own == text) => {
                Some(value.span.start)
            }
            (Subject::Literal(text), Expr::TypedString(typed)) if matches!(&typed.value.value, Value::SingleQuotedString(own) if own == text) => {
                Some(typed.value.span.start)
            }
            (Subject::Literal(text), Expr::Interval(interval)) => match interval.value.as_ref() {
                Expr::Value(value) if matches!(&value.value, Value::SingleQuotedString(own) if own == text) => {
                    Some(value.span.start)
                }
                _ => None,
            },
            (Subject::Type(name), Expr::Cast { data_type, .. }) if is_named(data_type, name) => type_place(data_type),
            (Subject::Operator(operator), Expr::BinaryOp { left, op, .. }) if is_operator(op, operator) => {
                Some(left.span().end)
            }
            (Subject::Operator(operator), Expr::Like { expr, .. }) if operator.ends_with("~~") => Some(expr.span().end),
            _ => None,
        };
        if self.found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

fn is_operator(op: &BinaryOperator, written: &str) -> bool {
    op.to_string() == written || *op == BinaryOperator::NotEq && written == "!="
}

fn is_named(data_type: &DataType, name: &str) -> bool {
    data_type.to_string().eq_ignore_ascii_case(name)
}

fn type_place(data_type: &DataType) -> Option<Location> {
    let DataType::Custom(name, _) = data_type else { return None };
    let span: Span = name.span();
    Some(span.start)
}
