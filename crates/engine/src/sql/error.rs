//! Mistakes in queries, with PostgreSQL's SQLSTATEs.

use datafusion::arrow::error::ArrowError;
use datafusion::common::{Column, SchemaError};
use datafusion::error::DataFusionError;
use switchyard_dialect::MetaFunction;
use thiserror::Error;

use super::places::Subject;
use super::rewrite::gives_rows;
use super::{TimeLimit, TimeSetting};
use crate::error::{ClientError, SqlState};

/// A query that cannot be planned or run.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct QueryError {
    /// The code.
    pub sqlstate: SqlState,
    /// The primary message.
    pub message: String,
    /// More facts.
    pub detail: Option<String>,
    /// What to do.
    pub hint: Option<String>,
    /// Line and column in the statement, both from 1.
    pub location: Option<(u64, u64)>,
    /// What to look for in the statement when the place is not known.
    pub subject: Option<Box<Subject>>,
}

/// A table or function that the session's user may not read.
#[derive(Debug, Error)]
#[error("permission denied for {kind} {name}")]
pub(super) struct Forbidden {
    pub(super) kind: &'static str,
    pub(super) name: &'static str,
}

/// A version that history does not hold.
#[derive(Debug, Error)]
#[error("catalog version {version} does not exist")]
pub(super) struct NoVersion {
    pub(super) version: i64,
}

impl QueryError {
    pub(super) fn new(sqlstate: SqlState, message: impl Into<String>) -> Self {
        Self { sqlstate, message: message.into(), detail: None, hint: None, location: None, subject: None }
    }

    /// About something that the statement holds.
    #[must_use]
    pub(super) fn about(mut self, subject: Subject) -> Self {
        self.subject.get_or_insert_with(|| Box::new(subject));
        self
    }

    #[must_use]
    pub(super) fn hinting(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// As an error of DataFusion's, on its way through it.
    pub(super) fn external(self) -> DataFusionError {
        DataFusionError::External(Box::new(self))
    }

    pub(super) fn refused(what: &str) -> Self {
        Self {
            hint: Some("The console answers queries over the system tables; it holds no data of its own.".to_owned()),
            ..Self::new(SqlState::FeatureNotSupported, format!("{what} is not supported"))
        }
    }

    pub(super) fn time_limit(limit: TimeLimit) -> Self {
        let ran = format!("canceling statement: it ran longer than {} ms", limit.ms_max);
        let (message, hint) = match limit.setting {
            TimeSetting::QueryTimeMax => (ran, "The setting query_time_ms_max sets this limit."),
            TimeSetting::StatementTimeout => (
                "canceling statement due to statement timeout".to_owned(),
                "The setting statement_timeout sets this limit.",
            ),
            TimeSetting::RuntimeCap => (ran, "RUNTIMECAP, of the user or the session, sets this limit."),
        };
        Self { hint: Some(hint.to_owned()), ..Self::new(SqlState::QueryCanceled, message) }
    }
}

impl QueryError {
    /// As the client is told it; `source` is the whole string that was sent.
    pub fn told(self, source: &str) -> ClientError {
        let position = self.location.and_then(|(line, column)| character_of(source, line, column));
        let position = match (self.subject.as_deref(), position) {
            (Some(Subject::Operator(operator)), Some(behind)) => operator_behind(source, behind, operator),
            (Some(Subject::Before(word)), Some(place)) => word_before(source, place, word).or(Some(place)),
            (_, position) => position,
        };
        ClientError { detail: self.detail, hint: self.hint, position, ..ClientError::new(self.sqlstate, self.message) }
    }
}

/// The character, from 1, at a line and column, both from 1.
fn character_of(source: &str, line: u64, column: u64) -> Option<usize> {
    let (line, column) = (usize::try_from(line).ok()?, usize::try_from(column).ok()?);
    let before =
        source.split_inclusive('\n').take(line.checked_sub(1)?).map(|line| line.chars().count()).sum::<usize>();
    Some(before.saturating_add(column))
}

/// The place of an operator behind its left side, which may end in parentheses.
fn operator_behind(source: &str, behind: usize, operator: &str) -> Option<usize> {
    let rest: String = source.chars().skip(behind.saturating_sub(1)).collect();
    let written = rest.contains(operator);
    let word = match operator {
        "~~" if !written => "LIKE",
        "!~~" if !written => "NOT",
        "~~*" if !written => "ILIKE",
        "!~~*" if !written => "NOT",
        "<>" if !written => "!=",
        operator => operator,
    };
    let (upper, word) = (rest.to_ascii_uppercase(), word.to_ascii_uppercase());
    let before = upper.get(..upper.find(&word)?)?;
    Some(behind.saturating_add(before.chars().count()))
}

/// The place of the last such word before an expression.
fn word_before(source: &str, place: usize, word: &str) -> Option<usize> {
    let before: String = source.chars().take(place.saturating_sub(1)).collect();
    let (upper, word) = (before.to_ascii_uppercase(), word.to_ascii_uppercase());
    let before = upper.get(..upper.rfind(&word)?)?;
    Some(before.chars().count().saturating_add(1))
}

impl From<ArrowError> for QueryError {
    fn from(error: ArrowError) -> Self {
        arrow(&error)
    }
}

impl From<DataFusionError> for QueryError {
    fn from(error: DataFusionError) -> Self {
        let told = classify(&error);
        // It has the whole of what is united, of which one arm is wrong.
        let whole = told.subject.as_deref() == Some(&Subject::Arms);
        Self { location: told.location.or_else(|| span(&error).filter(|_| !whole)), ..told }
    }
}

/// Where DataFusion says the mistake is.
fn span(error: &DataFusionError) -> Option<(u64, u64)> {
    match error {
        DataFusionError::Diagnostic(diagnostic, _) => diagnostic.span.map(|span| (span.start.line, span.start.column)),
        DataFusionError::Context(_, inner) => span(inner),
        DataFusionError::Collection(errors) => errors.iter().find_map(span),
        DataFusionError::Shared(inner) => span(inner),
        _ => None,
    }
}

fn classify(error: &DataFusionError) -> QueryError {
    match error {
        DataFusionError::Diagnostic(_, inner) | DataFusionError::Context(_, inner) => classify(inner),
        DataFusionError::Shared(inner) => classify(inner),
        DataFusionError::Collection(errors) => {
            errors.first().map_or_else(|| QueryError::new(SqlState::InternalError, "the query failed"), classify)
        }
        DataFusionError::SchemaError(error, _) => schema(error),
        DataFusionError::ArrowError(error, _) => arrow(error),
        DataFusionError::SQL(error, _) => QueryError::new(SqlState::SyntaxError, error.to_string()),
        DataFusionError::NotImplemented(text) => not_implemented(text),
        DataFusionError::ResourcesExhausted(text) => QueryError {
            detail: Some(sentence(text)),
            hint: Some("The setting query_memory_bytes_max sets this limit.".to_owned()),
            ..QueryError::new(SqlState::OutOfMemory, "out of memory for the query")
        },
        DataFusionError::Plan(text) => plan(text),
        DataFusionError::Execution(text) => execution(text),
        DataFusionError::External(error) => external(error.as_ref()),
        other => internal(&other.to_string()),
    }
}

/// What the planner calls its own fault can be a question it was not made for.
fn internal(text: &str) -> QueryError {
    if text.contains("Physical plan does not support") || text.contains("Unsupported") {
        return QueryError::new(SqlState::FeatureNotSupported, "this form of query is not supported");
    }
    QueryError::new(SqlState::InternalError, sentence(text))
}

fn not_implemented(text: &str) -> QueryError {
    if let Some((_, name)) = text.split_once("Unsupported SQL type ") {
        return undefined_type(name);
    }
    // A number of more digits, before or behind the point, than the planner's exact ones have.
    if text.contains("decimal scale") || text.contains("decimal precision") {
        return QueryError::new(SqlState::NumberOutOfRange, "value out of range");
    }
    // Trees are shown to nobody.
    let tree = text.contains(" { ") || text.contains("({") || text.contains(": [");
    if tree || text.contains("Physical plan does not support") {
        return QueryError::new(SqlState::FeatureNotSupported, "this form of query is not supported");
    }
    QueryError::new(SqlState::FeatureNotSupported, sentence(text))
}

/// A type that is not known here.
pub(super) fn undefined_type(name: &str) -> QueryError {
    let shown = name.to_lowercase();
    QueryError::new(SqlState::UndefinedObject, format!("type \"{shown}\" does not exist"))
        .about(Subject::Type(name.to_owned()))
}

fn external(error: &(dyn std::error::Error + Send + Sync + 'static)) -> QueryError {
    if error.downcast_ref::<Forbidden>().is_some() {
        return QueryError {
            hint: Some("Only the superuser may read it.".to_owned()),
            ..QueryError::new(SqlState::InsufficientPrivilege, error.to_string())
        };
    }
    if let Some(error) = error.downcast_ref::<crate::settings::SettingError>() {
        return QueryError::new(SqlState::UndefinedObject, error.to_string());
    }
    if let Some(error) = error.downcast_ref::<QueryError>() {
        return error.clone();
    }
    if error.downcast_ref::<NoVersion>().is_some() {
        return QueryError {
            hint: Some("switchyard.catalog_history lists the versions that are kept.".to_owned()),
            ..QueryError::new(SqlState::UndefinedObject, error.to_string())
        };
    }
    let text = error.to_string();
    if text.contains("regex parse error") {
        return QueryError::new(SqlState::InvalidRegularExpression, "invalid regular expression");
    }
    QueryError::new(SqlState::InternalError, text)
}

fn schema(error: &SchemaError) -> QueryError {
    match error {
        SchemaError::AmbiguousReference { field } => {
            QueryError::new(SqlState::AmbiguousColumn, format!("column reference \"{}\" is ambiguous", field.name))
        }
        SchemaError::DuplicateQualifiedField { name, .. } | SchemaError::DuplicateUnqualifiedField { name } => {
            QueryError::new(SqlState::DuplicateColumn, format!("column \"{name}\" specified more than once"))
        }
        SchemaError::FieldNotFound { field, valid_fields } => {
            if let Some(error) = hidden(field, valid_fields) {
                return error;
            }
            let shown = match &field.relation {
                Some(relation) => format!("{}.{}", relation.table(), field.name),
                None => format!("\"{}\"", field.name),
            };
            let names = valid_fields.iter().map(|field| field.name.as_str());
            let hint = crate::nearest(&field.name, names).map(|name| format!("Did you mean \"{name}\"?"));
            QueryError { hint, ..QueryError::new(SqlState::UndefinedColumn, format!("column {shown} does not exist")) }
                .about(Subject::Column(field.name.clone()))
        }
    }
}

/// A column that is there several times, or of a table that is not in FROM.
fn hidden(field: &Column, valid: &[Column]) -> Option<QueryError> {
    let alike = valid.iter().any(|other| other.name != field.name && super::names::shown(&other.name) == field.name);
    if alike {
        let message = format!("column reference \"{}\" is ambiguous", field.name);
        return Some(QueryError::new(SqlState::AmbiguousColumn, message));
    }
    let table = field.relation.as_ref()?.table();
    let relations = || valid.iter().filter_map(|column| column.relation.as_ref()).map(|relation| relation.table());
    if relations().any(|relation| relation == table) {
        return None;
    }
    let message = format!("missing FROM-clause entry for table \"{table}\"");
    let hint = crate::nearest(table, relations()).map(|name| format!("Did you mean \"{name}\"?"));
    Some(QueryError { hint, ..QueryError::new(SqlState::UndefinedTable, message) })
}

fn arrow(error: &ArrowError) -> QueryError {
    match error {
        ArrowError::DivideByZero => QueryError::new(SqlState::DivisionByZero, "division by zero"),
        ArrowError::ArithmeticOverflow(_) => QueryError::new(SqlState::NumberOutOfRange, "integer out of range"),
        ArrowError::CastError(text) | ArrowError::ParseError(text) => {
            QueryError::new(SqlState::InvalidTextRepresentation, sentence(text))
        }
        ArrowError::MemoryError(_) => QueryError::new(SqlState::OutOfMemory, "out of memory for the query"),
        ArrowError::ExternalError(error) => match error.downcast_ref::<DataFusionError>() {
            Some(error) => classify(error),
            None => external(error.as_ref()),
        },
        ArrowError::ComputeError(text) => execution(text),
        other => QueryError::new(SqlState::DataException, sentence(&other.to_string())),
    }
}

/// Functions of PostgreSQL's that clients call, and that need what is not here: whole rows as values, arrays of rows.
const NOT_HERE: [&str; 12] = [
    "array_to_json",
    "json_agg",
    "json_each",
    "json_object_agg",
    "jsonb_agg",
    "jsonb_object_agg",
    "pg_sleep",
    "regexp_matches",
    "regexp_split_to_table",
    "row_to_json",
    "to_json",
    "to_jsonb",
];

/// What can be called, but not like this; or what nobody knows.
pub(super) fn invalid_function(name: &str) -> QueryError {
    match MetaFunction::named(name) {
        Some(function) => QueryError {
            hint: Some("Its arguments must be literals, and nothing may stand beside it.".to_owned()),
            ..QueryError::new(
                SqlState::FeatureNotSupported,
                format!("function {0} can only be called alone, as SELECT {0}(...)", function.name()),
            )
        },
        None if gives_rows(name) => QueryError {
            hint: Some(format!("SELECT * FROM {name}(...) reads them.")),
            ..QueryError::new(
                SqlState::FeatureNotSupported,
                format!("function {name} gives rows, and can only be called in FROM"),
            )
        }
        .about(Subject::Function(name.to_owned())),
        None if NOT_HERE.contains(&name) => {
            QueryError::new(SqlState::FeatureNotSupported, format!("function {name} is not supported"))
                .about(Subject::Function(name.to_owned()))
        }
        None => QueryError {
            hint: crate::nearest(name, crate::tables::pg_catalog::functions().iter().map(|function| function.name))
                .map(|near| format!("Perhaps you meant the function {near}.")),
            ..QueryError::new(SqlState::UndefinedFunction, format!("function {name} does not exist"))
        }
        .about(Subject::Function(name.to_owned())),
    }
}

/// DataFusion's planner tells most mistakes only in words; these are the beginnings it uses.
fn plan(text: &str) -> QueryError {
    if let Some(rest) = text.strip_prefix("table '")
        && let Some((name, _)) = rest.split_once('\'')
    {
        return undefined_table(name);
    }
    if let Some(rest) = text.strip_prefix("table function '") {
        let name = rest.split('\'').next().unwrap_or_default();
        return QueryError::new(SqlState::UndefinedFunction, format!("function {name} does not exist"))
            .about(Subject::Function(name.to_owned()));
    }
    if let Some(rest) = text.strip_prefix("Invalid function '") {
        let name = rest.split('\'').next().unwrap_or_default();
        return invalid_function(name);
    }
    if let Some(error) = no_function(text) {
        return error;
    }
    if text.contains("must appear in the GROUP BY clause") || text.contains("must be in GROUP BY") {
        let column = text.split_once("column \"").and_then(|(_, rest)| rest.split_once('"')).map(|(column, _)| column);
        let message = column.map(|column| {
            format!("column \"{column}\" must appear in the GROUP BY clause or be used in an aggregate function")
        });
        return QueryError::new(SqlState::GroupingError, message.unwrap_or_else(|| sentence(text)));
    }
    if text.contains("Column in SELECT must be in GROUP BY")
        || text.contains("could not be resolved from available columns")
    {
        return QueryError::new(SqlState::GroupingError, sentence(text));
    }
    if text.contains("Projections require unique expression names") {
        return QueryError::new(SqlState::FeatureNotSupported, "two columns of the query cannot be told apart")
            .hinting("Give one of them an alias.");
    }
    if let Some(error) = told_otherwise(text) {
        return error;
    }
    for (words, sqlstate) in [
        ("requires a boolean expression", SqlState::DatatypeMismatch),
        ("Unary operator", SqlState::UndefinedFunction),
        ("was not provided a value", SqlState::UndefinedParameter),
        ("Cannot create filter with non-boolean predicate", SqlState::DatatypeMismatch),
        ("Failed to coerce then", SqlState::DatatypeMismatch),
        ("Failed to coerce arguments", SqlState::UndefinedFunction),
        ("Error during planning: Failed to coerce", SqlState::UndefinedFunction),
        ("does not support zero arguments", SqlState::UndefinedFunction),
        ("Cannot infer common argument type", SqlState::UndefinedFunction),
        ("Placeholder", SqlState::IndeterminateDatatype),
        ("placeholder", SqlState::IndeterminateDatatype),
        ("Cannot coerce", SqlState::CannotCoerce),
        ("Unsupported SQL type", SqlState::FeatureNotSupported),
        ("SELECT DISTINCT, ORDER BY expressions", SqlState::InvalidColumnReference),
        ("SELECT DISTINCT ON expressions must match", SqlState::InvalidColumnReference),
    ] {
        if text.contains(words) {
            let error = QueryError::new(sqlstate, sentence(text));
            let minus = text.contains("Unary operator '-'");
            return if minus { error.about(Subject::Before("-".to_owned())) } else { error };
        }
    }
    QueryError::new(SqlState::SyntaxErrorOrAccessRuleViolation, sentence(text))
}

/// What is neither true nor false where it must be.
pub(super) fn not_boolean(clause: &str, kind: &str) -> QueryError {
    let message = format!("argument of {clause} must be type boolean, not type {kind}");
    QueryError::new(SqlState::DatatypeMismatch, message).about(Subject::Condition(clause.to_owned()))
}

/// A parameter that nobody gave.
pub(super) fn no_parameter(name: &str) -> QueryError {
    QueryError::new(SqlState::UndefinedParameter, format!("there is no parameter {name}"))
        .about(Subject::Parameter(name.to_owned()))
}

/// What the planner tells with its own names of types, in PostgreSQL's words.
fn told_otherwise(text: &str) -> Option<QueryError> {
    let boolean = |clause: &str, kind: &str| Some(not_boolean(clause, type_of(kind)));
    if let Some((_, kind)) = text.split_once("Cannot create filter with non-boolean predicate ") {
        return boolean("WHERE", kind.rsplit_once("returning ")?.1);
    }
    if let Some((_, kind)) = text.split_once("Unary operator 'NOT' requires a boolean expression, got ") {
        return boolean("NOT", kind);
    }
    if let Some((_, kind)) = text.split_once("oin condition must be boolean type, but got ") {
        return boolean("JOIN/ON", kind);
    }
    if let Some((_, rest)) = text.split_once("must be an INTEGER or NULL, got Literal(Utf8(\"") {
        let (text, _) = rest.split_once("\")")?;
        return Some(super::moments::invalid("integer", text));
    }
    if let Some((_, name)) = text.split_once("Invalid qualifier ") {
        let message = format!("missing FROM-clause entry for table \"{name}\"");
        return Some(QueryError::new(SqlState::UndefinedTable, message).about(Subject::Wildcard(name.to_owned())));
    }
    if let Some((before, _)) = text.split_once(" queries have different number of columns") {
        let operation = before.rsplit(' ').next().unwrap_or_default();
        let message = format!("each {operation} query must have the same number of columns");
        return Some(QueryError::new(SqlState::SyntaxError, message).about(Subject::Arms));
    }
    let (_, rest) = text.split_once("Source table contains ")?;
    let (there, rest) = rest.split_once(" columns but only ")?;
    let (named, _) = rest.split_once(" names given as column alias")?;
    if there.parse::<usize>().ok()? > named.parse::<usize>().ok()? {
        let message = "an alias with fewer columns than its table has is not supported";
        return Some(QueryError::new(SqlState::FeatureNotSupported, message).hinting("Name all of its columns."));
    }
    let message = format!("table has {there} columns available but {named} columns specified");
    Some(QueryError::new(SqlState::InvalidColumnReference, message))
}

fn execution(text: &str) -> QueryError {
    if text.contains("Divide by zero") || text.contains("divide by zero") {
        return QueryError::new(SqlState::DivisionByZero, "division by zero");
    }
    for (words, sqlstate, message) in [
        ("square root of a negative", SqlState::InvalidPowerArgument, "cannot take square root of a negative number"),
        ("logarithm of zero", SqlState::InvalidLogarithm, "cannot take logarithm of zero"),
        ("logarithm of a negative", SqlState::InvalidLogarithm, "cannot take logarithm of a negative number"),
        ("field position must not be zero", SqlState::InvalidParameterValue, "field position must not be zero"),
        ("overflow on abs(", SqlState::NumberOutOfRange, "value out of range"),
        (
            "zero raised to a negative power",
            SqlState::InvalidPowerArgument,
            "zero raised to a negative power is undefined",
        ),
        ("negative count not allowed", SqlState::SubstringError, "negative substring length not allowed"),
        ("regex parse error", SqlState::InvalidRegularExpression, "invalid regular expression"),
        ("Regular expression did not compile", SqlState::InvalidRegularExpression, "invalid regular expression"),
    ] {
        if text.contains(words) {
            return QueryError::new(sqlstate, message);
        }
    }
    for (before, kind) in
        [("date part '", "timestamp with time zone"), ("date_trunc granularity: '", "timestamp with time zone")]
    {
        if let Some((_, rest)) = text.split_once(before) {
            let unit = rest.split('\'').next().unwrap_or_default();
            let message = format!("unit \"{unit}\" not recognized for type {kind}");
            return QueryError::new(SqlState::InvalidParameterValue, message);
        }
    }
    if text.contains("was not provided a value") {
        let name = text.split('\'').nth(1).unwrap_or("$1");
        return no_parameter(name);
    }
    if text.contains("returned more than one row") || text.contains("more than one row") {
        return QueryError::new(
            SqlState::CardinalityViolation,
            "more than one row returned by a subquery used as an expression",
        );
    }
    QueryError::new(SqlState::DataException, sentence(text))
}

/// A function that is not there for such arguments.
fn no_function(text: &str) -> Option<QueryError> {
    let (_, rest) = text.split_once("No function matches the given name and argument types '")?;
    let (name, rest) = rest.split_once('(')?;
    let kinds = rest.get(..rest.find(")'")?)?;
    let kinds: Vec<&str> = kinds.split(", ").filter(|kind| !kind.is_empty()).map(type_of).collect();
    let message = format!("function {name}({}) does not exist", kinds.join(", "));
    Some(
        QueryError::new(SqlState::UndefinedFunction, message)
            .hinting(
                "No function matches the given name and argument types. You might need to add explicit type casts.",
            )
            .about(Subject::Function(name.to_owned())),
    )
}

/// PostgreSQL's name of a type that the planner names.
fn type_of(kind: &str) -> &'static str {
    match kind.split('(').next().unwrap_or_default() {
        "Int16" => "smallint",
        // As it was planned, before literals became as narrow as they can be.
        "Int32" | "Int64" => "integer",
        "Float32" => "real",
        "Float64" => "double precision",
        "Boolean" => "boolean",
        "Date32" => "date",
        "Timestamp" => "timestamp",
        "Interval" => "interval",
        "Decimal128" | "Decimal256" => "numeric",
        "Null" => "unknown",
        _ => "text",
    }
}

/// `switchyard.v_catalog.x`, `switchyard.public.x` or `x`, as the client wrote it.
fn undefined_table(name: &str) -> QueryError {
    let parts: Vec<&str> = name.split('.').collect();
    let shown = match parts.as_slice() {
        [_, schema, table] if *schema == super::provider::DEFAULT_SCHEMA => (*table).to_owned(),
        [_, schema, table] => format!("{schema}.{table}"),
        _ => name.to_owned(),
    };
    let table = parts.last().copied().unwrap_or(name);
    let hint = crate::nearest(table, crate::tables::all().map(|table| table.name))
        .map(|name| format!("Did you mean \"{name}\"?"));
    QueryError { hint, ..QueryError::new(SqlState::UndefinedTable, format!("relation \"{shown}\" does not exist")) }
}

/// The first line of a foreign message, beginning small, without its source's own label.
fn sentence(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let line = ["Error during planning: ", "Execution error: ", "Arrow error: ", "Cast error: "]
        .iter()
        .fold(line, |line, label| line.strip_prefix(label).unwrap_or(line));
    let mut characters = line.chars();
    match characters.next() {
        // A keyword stays as it is.
        Some(first) if characters.clone().next().is_some_and(char::is_uppercase) => {
            format!("{first}{}", characters.as_str()).trim_end_matches('.').to_owned()
        }
        Some(first) => first.to_lowercase().chain(characters).collect::<String>().trim_end_matches('.').to_owned(),
        None => "the query failed".to_owned(),
    }
}
