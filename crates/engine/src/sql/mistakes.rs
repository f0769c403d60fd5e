//! Mistakes that can be seen in the text of a query alone, told as PostgreSQL tells them. The planner would find most of
//! them too, in other words and without a place; some it would overlook.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Ident,
    JoinConstraint, JoinOperator, LimitClause, OrderByKind, Query, Select, SelectItem, SetExpr, Spanned, TableFactor,
    TableWithJoins, UnaryOperator, Value, Visit, Visitor,
};
use sqlparser::tokenizer::Span;

use super::error::QueryError;
use super::guard::last_part;
use super::places::Subject;
use crate::error::SqlState;
use crate::tables::SCHEMAS;
use crate::tables::pg_catalog::functions;

type Found = ControlFlow<QueryError>;

/// Looks for mistakes.
///
/// # Errors
/// The first one.
pub(super) fn check(query: &Query) -> Result<(), QueryError> {
    match query.visit(&mut Mistakes) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

pub(super) fn at(span: Span, sqlstate: SqlState, message: impl Into<String>) -> QueryError {
    let known = span.start.line > 0;
    QueryError { location: known.then_some((span.start.line, span.start.column)), ..QueryError::new(sqlstate, message) }
}

/// A mistake at a word behind an expression.
pub(super) fn behind(span: Span, word: &str, sqlstate: SqlState, message: impl Into<String>) -> QueryError {
    at(Span::new(span.end, span.end), sqlstate, message).about(Subject::Operator(word.to_owned()))
}

struct Mistakes;

impl Visitor for Mistakes {
    type Break = QueryError;

    fn pre_visit_query(&mut self, query: &Query) -> Found {
        common_names(query)?;
        row_counts(query)?;
        rows_of_one_length(query)?;
        if let SetExpr::Select(select) = query.body.as_ref()
            && let Some(order) = &query.order_by
            && let OrderByKind::Expressions(items) = &order.kind
        {
            for item in items {
                position(&item.expr, select, "ORDER BY")?;
            }
        }
        if let Some(span) = super::distinct::misplaced(query) {
            let message = "for SELECT DISTINCT, ORDER BY expressions must appear in select list";
            return ControlFlow::Break(at(span, SqlState::InvalidColumnReference, message));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> Found {
        let mut names = BTreeSet::new();
        for from in &select.from {
            sources(from, &mut names)?;
        }
        clauses(select)?;
        let star = select.projection.iter().any(|item| matches!(item, SelectItem::Wildcard(_)));
        if star && select.from.is_empty() {
            let span = select.projection.first().map_or(Span::empty(), Spanned::span);
            let message = "SELECT * with no tables specified is not valid";
            return ControlFlow::Break(at(span, SqlState::SyntaxError, message));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> Found {
        match expression {
            Expr::Subquery(query) if width(query).is_some_and(|width| width > 1) => {
                let message = "subquery must return only one column";
                let error = at(query.span(), SqlState::SyntaxError, message);
                ControlFlow::Break(error.about(Subject::Before("(".to_owned())))
            }
            Expr::InSubquery { expr, subquery, negated } if !matches!(expr.as_ref(), Expr::Tuple(_)) => {
                match width(subquery) {
                    Some(width) if width > 1 => {
                        let message = "subquery has too many columns";
                        let word = if *negated { "NOT" } else { "IN" };
                        ControlFlow::Break(behind(expr.span(), word, SqlState::SyntaxError, message))
                    }
                    _ => ControlFlow::Continue(()),
                }
            }
            Expr::Function(function) => call(function),
            Expr::Substring { substring_from: None, substring_for: None, .. } => {
                let message = "function substring needs a position";
                ControlFlow::Break(at(expression.span(), SqlState::UndefinedFunction, message))
            }
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> Found {
        if let TableFactor::Table { name, args: Some(_), .. } | TableFactor::Function { name, .. } = factor
            && let [part] = name.0.as_slice()
            && let Some(ident) = part.as_ident().filter(|ident| ident.value.eq_ignore_ascii_case("range"))
        {
            let error = super::error::invalid_function("range");
            let location = at(ident.span, SqlState::UndefinedFunction, "").location;
            return ControlFlow::Break(QueryError { location, ..error });
        }
        if let TableFactor::Table { name, .. } = factor
            && let Some(ident) = name.0.first().and_then(|part| part.as_ident())
            && ident.quote_style.is_none()
            && RESERVED.contains(&ident.value.to_uppercase().as_str())
        {
            let message = format!("syntax error at or near \"{}\"", ident.value);
            return ControlFlow::Break(at(ident.span, SqlState::SyntaxError, message));
        }
        ControlFlow::Continue(())
    }
}

/// Words that begin something else, and are no names.
const RESERVED: [&str; 16] = [
    "WHERE",
    "SELECT",
    "FROM",
    "GROUP",
    "ORDER",
    "HAVING",
    "UNION",
    "EXCEPT",
    "INTERSECT",
    "LIMIT",
    "OFFSET",
    "WITH",
    "ON",
    "USING",
    "AND",
    "OR",
];

fn common_names(query: &Query) -> Found {
    let mut names = BTreeSet::new();
    for table in query.with.iter().flat_map(|with| &with.cte_tables) {
        let name = &table.alias.name;
        if !names.insert(folded(name)) {
            let message = format!("WITH query name \"{}\" specified more than once", folded(name));
            return ControlFlow::Break(at(name.span, SqlState::DuplicateAlias, message));
        }
    }
    ControlFlow::Continue(())
}

fn folded(ident: &Ident) -> String {
    if ident.quote_style.is_some() { ident.value.clone() } else { ident.value.to_lowercase() }
}

fn rows_of_one_length(query: &Query) -> Found {
    let SetExpr::Values(values) = query.body.as_ref() else { return ControlFlow::Continue(()) };
    let width = values.rows.first().map_or(0, |row| row.content.len());
    match values.rows.iter().find(|row| row.content.len() != width) {
        None => ControlFlow::Continue(()),
        Some(row) => {
            let span = row.content.first().map_or(Span::empty(), Spanned::span);
            ControlFlow::Break(at(span, SqlState::SyntaxError, "VALUES lists must all be the same length"))
        }
    }
}

fn row_counts(query: &Query) -> Found {
    if let Some(LimitClause::LimitOffset { limit, offset, .. }) = &query.limit_clause {
        if let Some(limit) = limit {
            row_count(limit, "LIMIT", SqlState::InvalidRowCountInLimit)?;
        }
        if let Some(offset) = offset {
            row_count(&offset.value, "OFFSET", SqlState::InvalidRowCountInOffset)?;
        }
    }
    match query.fetch.as_ref().and_then(|fetch| fetch.quantity.as_ref()) {
        Some(quantity) => row_count(quantity, "LIMIT", SqlState::InvalidRowCountInLimit),
        None => ControlFlow::Continue(()),
    }
}

fn row_count(count: &Expr, clause: &str, negative: SqlState) -> Found {
    let found = |sqlstate, message: String| ControlFlow::Break(at(count.span(), sqlstate, message));
    match count {
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } if matches!(expr.as_ref(), Expr::Value(value) if matches!(value.value, Value::Number(..))) =>
        {
            // PostgreSQL finds it when the query runs, and has no place for it then.
            ControlFlow::Break(QueryError::new(negative, format!("{clause} must not be negative")))
        }
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) => match number.to_string().parse::<f64>() {
                Ok(number) if number >= 9_223_372_036_854_775_807.0 => {
                    found(SqlState::NumberOutOfRange, "bigint out of range".to_owned())
                }
                _ => ControlFlow::Continue(()),
            },
            Value::SingleQuotedString(text) => match text.trim().parse::<i64>() {
                Ok(_) => ControlFlow::Continue(()),
                Err(_) => {
                    let message = format!("invalid input syntax for type bigint: \"{text}\"");
                    found(SqlState::InvalidTextRepresentation, message)
                }
            },
            Value::Boolean(_) => {
                found(SqlState::DatatypeMismatch, format!("argument of {clause} must be type bigint, not type boolean"))
            }
            _ => ControlFlow::Continue(()),
        },
        _ => ControlFlow::Continue(()),
    }
}

/// A number in ORDER BY or GROUP BY is the place of an output column.
fn position(expression: &Expr, select: &Select, clause: &str) -> Found {
    let Expr::Value(value) = expression else { return ControlFlow::Continue(()) };
    match &value.value {
        Value::Number(number, _) => {
            let plain = select.projection.iter().all(is_expression);
            let count = select.projection.len();
            let number = number.to_string();
            match number.parse::<usize>() {
                Ok(place) if plain && (place == 0 || place > count) => {
                    let message = format!("{clause} position {place} is not in select list");
                    ControlFlow::Break(at(value.span, SqlState::InvalidColumnReference, message))
                }
                Err(_) => {
                    let message = format!("non-integer constant in {clause}");
                    ControlFlow::Break(at(value.span, SqlState::SyntaxError, message))
                }
                _ => ControlFlow::Continue(()),
            }
        }
        Value::SingleQuotedString(_) | Value::Boolean(_) => {
            let message = format!("non-integer constant in {clause}");
            ControlFlow::Break(at(value.span, SqlState::SyntaxError, message))
        }
        _ => ControlFlow::Continue(()),
    }
}

fn is_expression(item: &SelectItem) -> bool {
    matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. })
}

/// The number of a query's columns, when it is written in full.
fn width(query: &Query) -> Option<usize> {
    match query.body.as_ref() {
        SetExpr::Select(select) => select.projection.iter().all(is_expression).then_some(select.projection.len()),
        SetExpr::Query(query) => width(query),
        _ => None,
    }
}

fn sources(from: &TableWithJoins, names: &mut BTreeSet<String>) -> Found {
    source(&from.relation, names)?;
    for join in &from.joins {
        source(&join.relation, names)?;
        let constraint = match &join.join_operator {
            JoinOperator::Join(constraint)
            | JoinOperator::Inner(constraint)
            | JoinOperator::Left(constraint)
            | JoinOperator::LeftOuter(constraint)
            | JoinOperator::Right(constraint)
            | JoinOperator::RightOuter(constraint)
            | JoinOperator::FullOuter(constraint) => constraint,
            _ => continue,
        };
        match constraint {
            JoinConstraint::On(condition) => plain(condition, "JOIN conditions")?,
            JoinConstraint::None => {
                let error = at(Span::empty(), SqlState::SyntaxError, "a join needs ON or USING");
                return ControlFlow::Break(error.hinting("Every row with every other is CROSS JOIN."));
            }
            _ => {}
        }
    }
    ControlFlow::Continue(())
}

fn source(factor: &TableFactor, names: &mut BTreeSet<String>) -> Found {
    let (name, span) = match factor {
        TableFactor::Table { alias: Some(alias), .. } | TableFactor::Derived { alias: Some(alias), .. } => {
            (folded(&alias.name), alias.name.span)
        }
        TableFactor::Table { name, alias: None, .. } => match name.0.last().and_then(|part| part.as_ident()) {
            Some(ident) => (folded(ident), ident.span),
            None => return ControlFlow::Continue(()),
        },
        TableFactor::NestedJoin { table_with_joins, alias: None } => return sources(table_with_joins, names),
        _ => return ControlFlow::Continue(()),
    };
    // Functions may stand several times under their own name here.
    if !names.insert(name.clone()) && !matches!(factor, TableFactor::Table { args: Some(_), .. }) {
        let message = format!("table name \"{name}\" specified more than once");
        return ControlFlow::Break(at(span, SqlState::DuplicateAlias, message));
    }
    ControlFlow::Continue(())
}

fn clauses(select: &Select) -> Found {
    if let Some(condition) = &select.selection {
        plain(condition, "WHERE")?;
    }
    if let GroupByExpr::Expressions(expressions, _) = &select.group_by {
        for expression in expressions {
            position(expression, select, "GROUP BY")?;
            plain(expression, "GROUP BY")?;
        }
    }
    if let Some(condition) = &select.having
        && let Some(span) = calls(condition).window
    {
        let message = "window functions are not allowed in HAVING";
        return ControlFlow::Break(at(span, SqlState::WindowingError, message));
    }
    ControlFlow::Continue(())
}

/// Refuses aggregates and window functions where there are no groups yet.
fn plain(expression: &Expr, clause: &str) -> Found {
    let calls = calls(expression);
    if let Some(span) = calls.aggregate {
        let message = format!("aggregate functions are not allowed in {clause}");
        return ControlFlow::Break(at(span, SqlState::GroupingError, message));
    }
    if let Some(span) = calls.window {
        let message = format!("window functions are not allowed in {clause}");
        return ControlFlow::Break(at(span, SqlState::WindowingError, message));
    }
    ControlFlow::Continue(())
}

/// The functions that make one value of many rows.
pub(super) const AGGREGATES: &[&str] = &[
    "array_agg",
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bool_and",
    "bool_or",
    "corr",
    "count",
    "covar_pop",
    "covar_samp",
    "every",
    "json_agg",
    "json_object_agg",
    "jsonb_agg",
    "jsonb_object_agg",
    "max",
    "min",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "string_agg",
    "sum",
    "var_pop",
    "var_samp",
    "variance",
];

/// The functions that only a window makes sense of.
const WINDOW_ONLY: [&str; 11] = [
    "cume_dist",
    "dense_rank",
    "first_value",
    "lag",
    "last_value",
    "lead",
    "nth_value",
    "ntile",
    "percent_rank",
    "rank",
    "row_number",
];

/// Where an expression calls an aggregate or a window function of its own level first.
#[derive(Default)]
struct Calls {
    aggregate: Option<Span>,
    window: Option<Span>,
    depth: usize,
}

fn calls<T: Visit>(expression: &T) -> Calls {
    let mut calls = Calls::default();
    let _: ControlFlow<()> = expression.visit(&mut calls);
    calls
}

impl Visitor for Calls {
    type Break = ();

    // What a subquery counts is its own matter.
    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = expression
            && self.depth == 0
        {
            if function.over.is_some() {
                self.window.get_or_insert(function.name.span());
            } else if is_aggregate(function) {
                self.aggregate.get_or_insert(function.name.span());
            }
        }
        ControlFlow::Continue(())
    }
}

/// What PostgreSQL's grammar knows, and its catalog does not.
const OF_GRAMMAR: [&str; 22] = [
    "array",
    "ceiling",
    "coalesce",
    "current_date",
    "current_role",
    "current_time",
    "current_timestamp",
    "current_user",
    "extract",
    "floor",
    "greatest",
    "grouping",
    "least",
    "localtime",
    "localtimestamp",
    "nullif",
    "row",
    "session_user",
    "trim",
    "unnest",
    "user",
    "within",
];

/// PostgreSQL's functions that work with some of their arguments, or are not in `pg_catalog`.
const BESIDE: [&str; 19] = [
    "_pg_expandarray",
    "array_append",
    "array_cat",
    "array_position",
    "array_positions",
    "array_prepend",
    "array_remove",
    "array_replace",
    "decode",
    "encode",
    "factorial",
    "make_time",
    "network_sub",
    "network_subeq",
    "network_sup",
    "network_supeq",
    "percentile_cont",
    "regexp_count",
    "regexp_instr",
];

/// Refuses what the planner would find though PostgreSQL, and the dialect, have no such function or schema.
fn is_there(function: &Function, name: &str) -> Found {
    let span = function.name.span();
    let schema = match function.name.0.as_slice() {
        [.., schema, _] => schema.as_ident().map(|ident| ident.value.to_lowercase()),
        _ => None,
    };
    if let Some(schema) = schema.filter(|schema| !SCHEMAS.contains(&schema.as_str())) {
        let message = format!("schema \"{schema}\" does not exist");
        return ControlFlow::Break(at(span, SqlState::InvalidSchemaName, message));
    }
    let known = [&OF_GRAMMAR[..], &BESIDE, AGGREGATES, &WINDOW_ONLY].iter().any(|names| names.contains(&name));
    if known || functions().iter().any(|own| own.name.eq_ignore_ascii_case(name)) {
        return ControlFlow::Continue(());
    }
    ControlFlow::Break(QueryError {
        location: at(span, SqlState::UndefinedFunction, "").location,
        ..super::error::invalid_function(name)
    })
}

fn is_aggregate(function: &Function) -> bool {
    let name = last_part(&function.name).unwrap_or_default().to_lowercase();
    AGGREGATES.contains(&name.as_str())
}

fn call(function: &Function) -> Found {
    let span = function.name.span();
    let name = last_part(&function.name).unwrap_or_default().to_lowercase();
    is_there(function, &name)?;
    if function.over.is_none() && WINDOW_ONLY.contains(&name.as_str()) {
        let message = format!("window function {name} requires an OVER clause");
        return ControlFlow::Break(at(span, SqlState::WrongObjectType, message));
    }
    if !is_aggregate(function) {
        return ControlFlow::Continue(());
    }
    let FunctionArguments::List(list) = &function.args else { return ControlFlow::Continue(()) };
    let star = list.args.iter().any(|argument| {
        matches!(argument, FunctionArg::Unnamed(FunctionArgExpr::Wildcard | FunctionArgExpr::QualifiedWildcard(_)))
    });
    if name == "count" && list.args.is_empty() {
        let message = "count(*) must be used to call a parameterless aggregate function";
        return ControlFlow::Break(at(span, SqlState::WrongObjectType, message));
    }
    if star && list.duplicate_treatment == Some(DuplicateTreatment::Distinct) {
        return ControlFlow::Break(at(span, SqlState::SyntaxError, "syntax error at or near \"*\""));
    }
    let within = calls(&list.args);
    if let Some(inner) = within.aggregate.filter(|_| function.over.is_none()) {
        let message = "aggregate function calls cannot be nested";
        return ControlFlow::Break(at(inner, SqlState::GroupingError, message));
    }
    if let Some(inner) = within.window {
        let message = "aggregate function calls cannot contain window function calls";
        return ControlFlow::Break(at(inner, SqlState::GroupingError, message));
    }
    match &function.filter {
        Some(condition) => plain(condition, "FILTER"),
        None => ControlFlow::Continue(()),
    }
}
