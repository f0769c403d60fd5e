//! Where in a statement a mistake is that the planner or an execution told without a place.

use std::ops::ControlFlow;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::Expr as Planned;
use sqlparser::ast::{
    BinaryOperator, CastKind, DataType, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, JoinConstraint,
    JoinOperator, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, Spanned, Statement, TableFactor,
    UnaryOperator, Value, ValueWithSpan, Visit, VisitMut, Visitor, VisitorMut,
};
use sqlparser::tokenizer::{Location, Span};

use super::error::QueryError;
use super::guard::{last_part, outer_select};
use crate::tables::pg_catalog::type_named;

/// What a mistake is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A call of this function.
    Function(String),
    /// This text in quotes.
    Literal(String),
    /// This number.
    Number(String),
    /// A column of this name.
    Column(String),
    /// This parameter.
    Parameter(String),
    /// `name.*`.
    Wildcard(String),
    /// A cast to this type, which does not exist.
    Type(String),
    /// A cast to this type.
    Cast(String),
    /// An operator between two expressions, or a word that stands behind one.
    Operator(String),
    /// A word or operator before an expression.
    Before(String),
    /// What must be true or false in this clause, and is neither.
    Condition(String),
    /// Arms of UNION, EXCEPT or INTERSECT with different numbers of columns.
    Arms,
}

impl Subject {
    /// What an expression begins with, where PostgreSQL puts its caret.
    pub(super) fn of(expression: &Planned) -> Option<Self> {
        match expression {
            Planned::Column(column) => Some(Self::Column(super::names::shown(&column.name).to_owned())),
            Planned::Literal(ScalarValue::Utf8(Some(text)), _) => Some(Self::Literal(text.clone())),
            Planned::Literal(value, _) if value.data_type().is_numeric() => Some(Self::Number(value.to_string())),
            Planned::Alias(alias) => Self::of(&alias.expr),
            Planned::Cast(cast) => Self::of(&cast.expr),
            Planned::BinaryExpr(binary) => Self::of(&binary.left),
            Planned::Not(inner) | Planned::Negative(inner) | Planned::IsNull(inner) | Planned::IsNotNull(inner) => {
                Self::of(inner)
            }
            Planned::AggregateFunction(call) => Some(Self::Function(call.func.name().to_owned())),
            Planned::ScalarFunction(call) => match call.args.first() {
                // Operators and casts are functions here.
                Some(first) if super::functions::is_operator(call.func.name()) => Self::of(first),
                _ => Some(Self::Function(call.func.name().to_owned())),
            },
            _ => None,
        }
    }
}

/// An error with the place of what it is about.
pub(super) fn located(error: QueryError, statement: &Statement) -> QueryError {
    let (None, Some(subject)) = (error.location, error.subject.as_deref()) else { return error };
    let found = find(statement, subject).or_else(|| match subject {
        Subject::Literal(text) => within_array(statement, text),
        _ => None,
    });
    let Some(Found { place, subject }) = found else { return error };
    let location = (place.line > 0).then_some((place.line, place.column));
    QueryError { location, subject: subject.map(Box::new).or(error.subject), ..error }
}

/// The statement once for each place where a text stands that it holds several times, with the text marked there: the
/// mistake is where the marked text is told. None where it stands once.
pub(super) fn marked(statement: &Statement, text: &str) -> Vec<(Location, Statement)> {
    let mark = format!("{text}{MARK}");
    let mut marker = Marker { text, mark: &mark, wanted: usize::MAX, seen: Vec::new() };
    let mut copy = statement.clone();
    let _: ControlFlow<()> = VisitMut::visit(&mut copy, &mut marker);
    let places = marker.seen;
    if places.len() < 2 {
        return Vec::new();
    }
    let one = |(wanted, place)| {
        let mut copy = statement.clone();
        let mut marker = Marker { text, mark: &mark, wanted, seen: Vec::new() };
        let _: ControlFlow<()> = VisitMut::visit(&mut copy, &mut marker);
        (place, copy)
    };
    places.into_iter().take(MARKED_MAX).enumerate().map(one).collect()
}

/// Whether two messages are one but for the mark.
pub(super) fn is_alike(marked: &str, plain: &str) -> bool {
    marked != plain && marked.replace(MARK, "") == plain
}

/// For private use in Unicode.
const MARK: char = '\u{f8ff}';

/// Each is planned once more.
const MARKED_MAX: usize = 4;

struct Marker<'a> {
    text: &'a str,
    mark: &'a str,
    wanted: usize,
    seen: Vec<Location>,
}

impl VisitorMut for Marker<'_> {
    type Break = ();

    fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<()> {
        if let Value::SingleQuotedString(own) = &mut value.value
            && own == self.text
        {
            if self.seen.len() == self.wanted {
                *own = self.mark.to_owned();
            }
            self.seen.push(value.span.start);
        }
        ControlFlow::Continue(())
    }
}

/// A place, and what the caret has to be moved to from there.
struct Found {
    place: Location,
    subject: Option<Subject>,
}

impl From<Span> for Found {
    fn from(span: Span) -> Self {
        Self { place: span.start, subject: None }
    }
}

fn find(statement: &Statement, subject: &Subject) -> Option<Found> {
    match statement.visit(&mut Finder { subject }) {
        ControlFlow::Break(found) => Some(found),
        ControlFlow::Continue(()) => None,
    }
}

/// An item of an array that is written as one text.
fn within_array(statement: &Statement, item: &str) -> Option<Found> {
    let visited = sqlparser::ast::visit_expressions(statement, |expression| match expression {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) if text.trim().starts_with('{') && text.contains(item) => {
                ControlFlow::Break(value.span)
            }
            _ => ControlFlow::Continue(()),
        },
        _ => ControlFlow::Continue(()),
    });
    match visited {
        ControlFlow::Break(span) => Some(span.into()),
        ControlFlow::Continue(()) => None,
    }
}

struct Finder<'a> {
    subject: &'a Subject,
}

impl Visitor for Finder<'_> {
    type Break = Found;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Found> {
        match self.subject {
            Subject::Arms => broken(arms(&query.body)),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Found> {
        broken(match self.subject {
            Subject::Condition(clause) if clause == "WHERE" => condition(select.selection.as_ref()),
            Subject::Condition(clause) if clause == "HAVING" => condition(select.having.as_ref()),
            Subject::Condition(clause) if clause == "JOIN/ON" => {
                let joins = select.from.iter().flat_map(|from| &from.joins);
                joins.filter_map(|join| condition(joined_on(&join.join_operator))).next()
            }
            Subject::Wildcard(name) => {
                select.projection.iter().find_map(|item| wildcard_of(item, name)).map(Into::into)
            }
            _ => None,
        })
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Found> {
        broken(match (self.subject, factor) {
            (Subject::Function(name), TableFactor::Table { name: own, args: Some(_), .. })
            | (Subject::Function(name), TableFactor::Function { name: own, .. })
                if last_part(own).is_some_and(|own| own.eq_ignore_ascii_case(name)) =>
            {
                Some(own.span().into())
            }
            _ => None,
        })
    }

    fn pre_visit_value(&mut self, value: &ValueWithSpan) -> ControlFlow<Found> {
        let is = match (self.subject, &value.value) {
            (Subject::Literal(text), Value::SingleQuotedString(own) | Value::EscapedStringLiteral(own)) => own == text,
            (Subject::Number(number), Value::Number(own, _)) => own == number,
            (Subject::Parameter(name), Value::Placeholder(own)) => own == name,
            _ => false,
        };
        if is { ControlFlow::Break(value.span.into()) } else { ControlFlow::Continue(()) }
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<Found> {
        broken(of_expression(self.subject, expression))
    }
}

fn broken(found: Option<Found>) -> ControlFlow<Found> {
    found.map_or(ControlFlow::Continue(()), ControlFlow::Break)
}

fn of_expression(subject: &Subject, expression: &Expr) -> Option<Found> {
    match (subject, expression) {
        (Subject::Function(name), Expr::Function(function)) if is_called(last_part(&function.name)?, name) => {
            Some(function.name.span().into())
        }
        (Subject::Type(name), Expr::Cast { data_type, .. }) if data_type.to_string().eq_ignore_ascii_case(name) => {
            type_place(data_type)
        }
        (Subject::Cast(name), Expr::Cast { kind, expr, data_type, .. }) if is_type(data_type, name) => {
            Some(match kind {
                CastKind::DoubleColon => behind(expr, "::"),
                _ => before(expr, "CAST"),
            })
        }
        (Subject::Column(name), Expr::Identifier(ident)) if ident.value.eq_ignore_ascii_case(name) => {
            Some(ident.span.into())
        }
        (Subject::Column(name), Expr::CompoundIdentifier(idents))
            if idents.last().is_some_and(|ident| ident.value.eq_ignore_ascii_case(name)) =>
        {
            Some(expression.span().into())
        }
        (Subject::Operator(operator), Expr::BinaryOp { left, op, .. }) if is_operator(op, operator) => {
            Some(behind(left, operator))
        }
        (Subject::Operator(operator), Expr::Like { expr, .. } | Expr::ILike { expr, .. })
            if operator.contains("~~") =>
        {
            Some(behind(expr, operator))
        }
        (Subject::Before(operator), Expr::UnaryOp { op: UnaryOperator::Minus, expr }) if operator == "-" => {
            Some(before(expr, operator))
        }
        (Subject::Condition(clause), expression) => of_condition(clause, expression),
        _ => None,
    }
}

/// What must be true or false within an expression.
fn of_condition(clause: &str, expression: &Expr) -> Option<Found> {
    match (clause, expression) {
        ("NOT", Expr::UnaryOp { op: UnaryOperator::Not, expr }) => condition(Some(expr)),
        ("AND", Expr::BinaryOp { left, op: BinaryOperator::And, right })
        | ("OR", Expr::BinaryOp { left, op: BinaryOperator::Or, right }) => {
            condition(Some(left)).or_else(|| condition(Some(right)))
        }
        ("CASE/WHEN", Expr::Case { operand: None, conditions, .. }) => {
            conditions.iter().find_map(|when| condition(Some(&when.condition)))
        }
        _ => None,
    }
}

/// The place of what does not look as if it were true or false.
fn condition(expression: Option<&Expr>) -> Option<Found> {
    let expression = expression?;
    match expression {
        Expr::Nested(inner) => condition(Some(inner)),
        Expr::BinaryOp { op, .. } if !is_calculation(op) => None,
        Expr::Value(value) if matches!(value.value, Value::Boolean(_) | Value::Null) => None,
        Expr::Value(_)
        | Expr::Identifier(_)
        | Expr::CompoundIdentifier(_)
        | Expr::Function(_)
        | Expr::Cast { .. }
        | Expr::TypedString(_)
        | Expr::Array(_)
        | Expr::BinaryOp { .. } => Some(expression.span().into()),
        _ => None,
    }
}

fn is_calculation(operator: &BinaryOperator) -> bool {
    use BinaryOperator::{Divide, Minus, Modulo, Multiply, PGExp, Plus, StringConcat};
    matches!(operator, Plus | Minus | Multiply | Divide | Modulo | PGExp | StringConcat)
}

fn joined_on(operator: &JoinOperator) -> Option<&Expr> {
    match operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint) => match constraint {
            JoinConstraint::On(condition) => Some(condition),
            _ => None,
        },
        _ => None,
    }
}

fn wildcard_of(item: &SelectItem, name: &str) -> Option<Span> {
    let SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(own), _) = item else { return None };
    last_part(own).is_some_and(|own| own.eq_ignore_ascii_case(name)).then(|| own.span())
}

/// Where the second arm begins to be another.
fn arms(body: &SetExpr) -> Option<Found> {
    let SetExpr::SetOperation { left, right, .. } = body else { return None };
    let inner = arms(left).or_else(|| arms(right));
    if inner.is_some() {
        return inner;
    }
    let (one, other) = (first_select(left)?, first_select(right)?);
    let listed = |select: &Select| select.projection.iter().all(super::empty::is_expression);
    if listed(one) && listed(other) && one.projection.len() == other.projection.len() {
        return None;
    }
    other.projection.first().map(|item| item.span().into())
}

fn first_select(body: &SetExpr) -> Option<&Select> {
    match body {
        SetExpr::Select(select) => Some(select),
        SetExpr::Query(query) => outer_select(query),
        SetExpr::SetOperation { left, .. } => first_select(left),
        _ => None,
    }
}

fn behind(expression: &Expr, word: &str) -> Found {
    Found { place: end(expression), subject: Some(Subject::Operator(word.to_owned())) }
}

/// Where an expression ends, as far as it is known: parentheses and the types of casts are left out.
fn end(expression: &Expr) -> Location {
    match expression {
        // A call ends behind its arguments.
        Expr::Function(function) => match &function.args {
            FunctionArguments::List(list) => match list.args.last() {
                Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(last))) => end(last),
                _ => expression.span().end,
            },
            _ => expression.span().end,
        },
        _ => expression.span().end,
    }
}

fn before(expression: &Expr, word: &str) -> Found {
    Found { place: expression.span().start, subject: Some(Subject::Before(word.to_owned())) }
}

/// Whether a function that is written `own` is the planner's `name`.
fn is_called(own: &str, name: &str) -> bool {
    let aliases = [("length", "character_length"), ("char_length", "character_length"), ("substring", "substr")];
    own.eq_ignore_ascii_case(name)
        || aliases.iter().any(|(written, known)| own.eq_ignore_ascii_case(written) && *known == name)
}

fn is_operator(op: &BinaryOperator, written: &str) -> bool {
    op.to_string() == written || *op == BinaryOperator::NotEq && written == "!="
}

fn is_type(data_type: &DataType, name: &str) -> bool {
    let oid = |name: &str| type_named(name).map(|facts| facts.oid);
    oid(&data_type.to_string().to_lowercase()).is_some_and(|own| oid(name) == Some(own))
}

fn type_place(data_type: &DataType) -> Option<Found> {
    let DataType::Custom(name, _) = data_type else { return None };
    Some(name.span().into())
}
