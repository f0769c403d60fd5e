//! What the planner takes and answers otherwise than PostgreSQL, without a word: refused with the place where it stands.

use std::ops::ControlFlow;

use sqlparser::ast::{
    CharacterLength, DataType, Expr, Ident, JoinConstraint, JoinOperator, ObjectName, Query, Select, SelectItem,
    SetExpr, SetOperator, SetQuantifier, Spanned, TableFactor, Value, Visit, Visitor,
};
use sqlparser::tokenizer::Span;

use super::error::QueryError;
use super::guard::last_part;
use super::mistakes::{at, behind};
use crate::error::SqlState;

type Found = ControlFlow<QueryError>;

/// Looks for it.
///
/// # Errors
/// The first that is found.
pub(super) fn check(query: &Query) -> Result<(), QueryError> {
    let mut refused = Refused { outer: true };
    match query.visit(&mut refused) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Refused {
    outer: bool,
}

impl Visitor for Refused {
    type Break = QueryError;

    fn pre_visit_query(&mut self, query: &Query) -> Found {
        let outer = std::mem::replace(&mut self.outer, false);
        set_operations(&query.body)?;
        if !outer && let Err(error) = super::order::check_inner(query) {
            return ControlFlow::Break(error);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> Found {
        for item in &select.projection {
            if let SelectItem::ExprWithAlias { alias, expr } = item {
                text_as_alias(alias, expr.span())?;
            }
        }
        for join in select.from.iter().flat_map(|from| &from.joins) {
            merged(&join.join_operator, join.relation.span())?;
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> Found {
        match factor {
            TableFactor::Table { sample: Some(_), .. } | TableFactor::Derived { sample: Some(_), .. } => {
                not_supported(factor.span(), "TABLESAMPLE")?;
            }
            TableFactor::Derived { alias: None, subquery, .. } => unnamed(subquery)?,
            _ => {}
        }
        if let TableFactor::NestedJoin { table_with_joins, .. } = factor {
            for join in &table_with_joins.joins {
                merged(&join.join_operator, join.relation.span())?;
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> Found {
        match expression {
            Expr::Collate { expr, collation } => collated(collation, expr.span()),
            Expr::Cast { expr, data_type, .. } => {
                empty_length(data_type, expr.span())?;
                padded(data_type, expression.span())
            }
            Expr::TypedString(typed) => padded(&typed.data_type, typed.value.span),
            Expr::Array(array) if array.elem.iter().any(is_array) => {
                not_supported(expression.span(), "an array of more than one dimension")
            }
            Expr::Value(value) if matches!(value.value, Value::HexStringLiteral(_)) => {
                not_supported(value.span, "a bit string")
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

/// `FROM (SELECT ...)` needs a name.
fn unnamed(subquery: &Query) -> Found {
    let what = if matches!(subquery.body.as_ref(), SetExpr::Values(_)) { "VALUES" } else { "subquery" };
    let example = if what == "VALUES" { "VALUES ..." } else { "SELECT ..." };
    let error = at(subquery.span(), SqlState::SyntaxError, format!("{what} in FROM must have an alias"));
    let error = error.about(super::places::Subject::Before("(".to_owned()));
    ControlFlow::Break(error.hinting(format!("For example, FROM ({example}) [AS] foo.")))
}

fn not_supported(span: Span, what: &str) -> Found {
    ControlFlow::Break(at(span, SqlState::FeatureNotSupported, format!("{what} is not supported")))
}

/// The planner keeps all rows of the one side that are in the other, however often they are there.
fn set_operations(body: &SetExpr) -> Found {
    let SetExpr::SetOperation { left, op, right, set_quantifier } = body else { return ControlFlow::Continue(()) };
    let all = matches!(set_quantifier, SetQuantifier::All | SetQuantifier::AllByName);
    match op {
        SetOperator::Except | SetOperator::Minus if all => not_supported(right.span(), "EXCEPT ALL")?,
        SetOperator::Intersect if all => not_supported(right.span(), "INTERSECT ALL")?,
        _ => {}
    }
    set_operations(left)?;
    set_operations(right)
}

/// The one column of both sides would be that of the left side, which may be missing.
fn merged(operator: &JoinOperator, span: Span) -> Found {
    let (constraint, kind) = match operator {
        JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => (constraint, "RIGHT"),
        JoinOperator::FullOuter(constraint) => (constraint, "FULL"),
        _ => return ControlFlow::Continue(()),
    };
    let what = match constraint {
        JoinConstraint::Using(_) => format!("{kind} JOIN ... USING is not supported"),
        JoinConstraint::Natural => format!("NATURAL {kind} JOIN is not supported"),
        _ => return ControlFlow::Continue(()),
    };
    let error = at(span, SqlState::FeatureNotSupported, what);
    ControlFlow::Break(error.hinting("Write ON, and coalesce() of the two columns where one is wanted."))
}

/// `SELECT 'a' 'b'`.
fn text_as_alias(alias: &Ident, span: Span) -> Found {
    if alias.quote_style != Some('\'') {
        return ControlFlow::Continue(());
    }
    let text = format!("'{}'", alias.value.replace('\'', "''"));
    let message = format!("syntax error at or near \"{text}\"");
    ControlFlow::Break(behind(span, &text, SqlState::SyntaxError, message))
}

/// The collations there are; all of them compare bytes here.
const COLLATIONS: [&str; 4] = ["default", "C", "POSIX", "ucs_basic"];

fn collated(name: &ObjectName, span: Span) -> Found {
    let Some(ident) = name.0.last().and_then(|part| part.as_ident()) else { return ControlFlow::Continue(()) };
    let own = if ident.quote_style.is_some() { ident.value.clone() } else { ident.value.to_lowercase() };
    if COLLATIONS.contains(&own.as_str()) {
        return ControlFlow::Continue(());
    }
    let message = format!("collation \"{own}\" for encoding \"UTF8\" does not exist");
    ControlFlow::Break(behind(span, "COLLATE", SqlState::UndefinedObject, message))
}

/// A text of no length, cast from what is at this place.
fn empty_length(data_type: &DataType, span: Span) -> Found {
    let (word, length) = match data_type {
        DataType::Varchar(Some(length)) => ("varchar", length),
        DataType::CharacterVarying(Some(length)) => ("character", length),
        _ => return ControlFlow::Continue(()),
    };
    if !matches!(length, CharacterLength::IntegerLength { length: 0, .. }) {
        return ControlFlow::Continue(());
    }
    let message = "length for type varchar must be at least 1";
    ControlFlow::Break(behind(span, word, SqlState::InvalidParameterValue, message))
}

/// `char(n)` is filled up with blanks that most of its operators do not see.
fn padded(data_type: &DataType, span: Span) -> Found {
    let (DataType::Char(length) | DataType::Character(length)) = data_type else { return ControlFlow::Continue(()) };
    match length {
        Some(CharacterLength::IntegerLength { length, .. }) if *length != 1 => {
            let error =
                at(span, SqlState::FeatureNotSupported, format!("type character({length}) is not supported here"));
            ControlFlow::Break(error.hinting(format!("Use varchar({length}) or text.")))
        }
        _ => ControlFlow::Continue(()),
    }
}

fn is_array(element: &Expr) -> bool {
    match element {
        Expr::Array(_) => true,
        Expr::Nested(inner) => is_array(inner),
        Expr::Cast { data_type, .. } => data_type.to_string().ends_with("[]"),
        Expr::Function(function) => last_part(&function.name).is_some_and(|name| name.eq_ignore_ascii_case("array")),
        _ => false,
    }
}
