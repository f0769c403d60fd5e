//! What is let through to DataFusion: queries.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, LimitClause, ObjectName, Query, Select, SetExpr,
    Statement, TableFactor, Value, ValueWithSpan, Visit, VisitMut, Visitor, VisitorMut, visit_relations,
};

use super::cells::PgType;
use super::error::QueryError;
use crate::error::SqlState;
use crate::tables;

/// What a statement reads that must be fetched before it runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Needs {
    /// `catalog_history`.
    pub history: bool,
    /// `hg_query_log`.
    pub query_log: bool,
    /// `pg_cursors`.
    pub cursors: bool,
    /// `pg_prepared_statements`.
    pub prepared: bool,
    /// The sessions of all members, wherever they run.
    pub sessions: bool,
    /// The versions named by `catalog_at`.
    pub versions: BTreeSet<u64>,
}

/// The tables that show sessions of all members.
const TABLES_OF_SESSIONS: [&str; 10] = [
    "sessions",
    "user_sessions",
    "draining_status",
    "dc_session_starts",
    "dc_session_ends",
    "dc_startups",
    "vs_client_connections",
    "vs_sessions",
    "pg_stat_activity",
    "pg_stat_database",
];
/// The functions that look for one.
const FUNCTIONS_OF_SESSIONS: [&str; 2] = ["pg_cancel_backend", "pg_terminate_backend"];

/// Finds what a statement reads besides the catalog and the live state.
pub fn needs(statement: &Statement) -> Needs {
    let mut needs = Needs::default();
    let _: ControlFlow<()> = visit_relations(statement, |name| {
        let is = |table: &str| last_part(name).is_some_and(|name| name.eq_ignore_ascii_case(table));
        needs.history |= is("catalog_history");
        needs.query_log |= is("hg_query_log");
        needs.cursors |= is("pg_cursors");
        needs.prepared |= is("pg_prepared_statements");
        needs.sessions |= TABLES_OF_SESSIONS.into_iter().any(is);
        ControlFlow::Continue(())
    });
    let mut calls = Calls(&mut needs.versions, &mut needs.sessions);
    let _: ControlFlow<()> = statement.visit(&mut calls);
    needs
}

/// The system table a name means.
pub(super) fn table_named(name: &ObjectName) -> Option<&'static tables::SystemTable> {
    let parts: Vec<&str> = name.0.iter().filter_map(|part| part.as_ident()).map(|ident| ident.value.as_str()).collect();
    match parts.as_slice() {
        [.., schema, table] => tables::find(schema, table),
        [table] => tables::resolve(table),
        [] => None,
    }
}

/// The system tables a statement names, qualified, each once, in order.
pub fn tables_read(statement: &Statement) -> Vec<String> {
    let mut read = Vec::new();
    let _: ControlFlow<()> = visit_relations(statement, |name| {
        if let Some(table) = table_named(name) {
            let shown = format!("{}.{}", table.schema, table.name);
            if !read.contains(&shown) {
                read.push(shown);
            }
        }
        ControlFlow::Continue(())
    });
    read
}

/// The declared types of parameters, with those of LIMIT and OFFSET, which the planner leaves open.
pub(super) fn with_row_counts(statement: &Statement, declared: &[Option<PgType>]) -> Vec<Option<PgType>> {
    let mut counts = RowCounts(declared.to_vec());
    let _: ControlFlow<()> = statement.visit(&mut counts);
    counts.0
}

struct RowCounts(Vec<Option<PgType>>);

impl RowCounts {
    fn note(&mut self, expression: Option<&Expr>) {
        let Some(Expr::Value(value)) = expression else { return };
        let Value::Placeholder(name) = &value.value else { return };
        let number = name.strip_prefix('$').and_then(|digits| digits.parse::<u16>().ok());
        let Some(index) = number.and_then(|number| usize::from(number).checked_sub(1)) else { return };
        if self.0.len() <= index {
            self.0.resize(index.saturating_add(1), None);
        }
        if let Some(kind) = self.0.get_mut(index) {
            kind.get_or_insert(PgType::Int8);
        }
    }
}

impl Visitor for RowCounts {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        if let Some(LimitClause::LimitOffset { limit, offset, .. }) = &query.limit_clause {
            self.note(limit.as_ref());
            self.note(offset.as_ref().map(|offset| &offset.value));
        }
        self.note(query.fetch.as_ref().and_then(|fetch| fetch.quantity.as_ref()));
        ControlFlow::Continue(())
    }
}

pub(super) fn last_part(name: &ObjectName) -> Option<&str> {
    name.0.last().and_then(|part| part.as_ident()).map(|ident| ident.value.as_str())
}

/// The arguments of a call, if they are all given by position.
pub(super) fn plain_arguments(function: &Function) -> Option<Vec<Expr>> {
    let FunctionArguments::List(list) = &function.args else { return None };
    let value = |argument: &FunctionArg| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value.clone()),
        _ => None,
    };
    list.args.iter().map(value).collect()
}

struct Calls<'a>(&'a mut BTreeSet<u64>, &'a mut bool);

impl Visitor for Calls<'_> {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        self.0.extend(super::set_functions::version_of(factor));
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = expression {
            let is = |name: &str| last_part(&function.name).is_some_and(|last| last.eq_ignore_ascii_case(name));
            *self.1 |= FUNCTIONS_OF_SESSIONS.into_iter().any(is);
        }
        ControlFlow::Continue(())
    }
}

/// Refuses all but queries. What EXPLAIN would show is of the engine's insides, and nothing that an operator could act on.
pub(super) fn check(statement: &Statement, depth_max: u64) -> Result<(), QueryError> {
    match statement {
        Statement::Query(query) => check_query(query, depth_max),
        Statement::Explain { .. } => Err(QueryError {
            hint: Some(
                "Tables here are small, and read whole. describe_load_balance_decision says why a client goes where."
                    .to_owned(),
            ),
            ..QueryError::refused("EXPLAIN")
        }),
        other => Err(QueryError::refused(&keyword(other))),
    }
}

/// The words a statement begins with.
fn keyword(statement: &Statement) -> String {
    let text = statement.to_string();
    let words: Vec<&str> = text.split_whitespace().take(2).collect();
    match words.as_slice() {
        [first @ ("CREATE" | "ALTER" | "DROP"), second] => format!("{first} {second}"),
        [first, ..] => (*first).to_uppercase(),
        [] => "this statement".to_owned(),
    }
}

/// Refuses a query that would be planned for ever. A WITH query is written out by the planner wherever it is used: a chain
/// of them doubles with each link, and each becomes a part of the plan inside the one before, which takes memory with the
/// square of that depth.
fn check_size(query: &Query, depth_max: u64) -> Result<(), QueryError> {
    let (chain_max, references_max) = (depth_max.saturating_mul(8) / 5, depth_max.saturating_mul(25) / 4);
    let refused = |message: String| {
        QueryError::new(SqlState::StatementTooComplex, message)
            .hinting(format!("The setting parse_depth_max is {depth_max}."))
    };
    let mut count = 0usize;
    let _: ControlFlow<()> = query.visit(&mut Counted(&mut count));
    if count > LISTED_MAX {
        return Err(QueryError::new(
            SqlState::StatementTooComplex,
            format!("VALUES and WITH of a query have more than {LISTED_MAX} rows and queries"),
        ));
    }
    let mut sizes = Sizes::default();
    let _: ControlFlow<()> = query.visit(&mut sizes);
    if sizes.depth_max > chain_max {
        return Err(refused(format!("WITH queries refer to one another over more than {chain_max} steps")));
    }
    if sizes.of(query) > references_max {
        return Err(refused(format!(
            "the query refers to more than {references_max} tables once its WITH queries are written out"
        )));
    }
    Ok(())
}

/// How many rows of VALUES and queries of WITH a query may have: each is planned by itself, in which nothing stops it.
const LISTED_MAX: usize = 10_000;

/// Counts them; a query of WITH is planned with the square of their number.
struct Counted<'a>(&'a mut usize);

impl Visitor for Counted<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let rows = if let SetExpr::Values(values) = query.body.as_ref() { values.rows.len() } else { 0 };
        let queries = query.with.as_ref().map_or(0, |with| with.cte_tables.len());
        *self.0 = self.0.saturating_add(rows).saturating_add(queries.saturating_mul(20));
        if *self.0 > LISTED_MAX { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// WITH queries by name, with the table references each stands for, and over how many steps it refers to others.
#[derive(Default)]
struct Sizes {
    named: BTreeMap<String, (u64, u64)>,
    depth_max: u64,
}

impl Sizes {
    fn of(&self, query: &Query) -> u64 {
        let mut total = 0u64;
        let _: ControlFlow<()> = visit_relations(query, |name| {
            let own = last_part(name).and_then(|name| self.named.get(&name.to_lowercase()).copied());
            total = total.saturating_add(own.map_or(1, |(size, _)| size));
            ControlFlow::Continue(())
        });
        total
    }

    /// The steps from a query to the last WITH query it refers to.
    fn depth(&self, query: &Query) -> u64 {
        let mut depth = 0;
        let _: ControlFlow<()> = visit_relations(query, |name| {
            let own = last_part(name).and_then(|name| self.named.get(&name.to_lowercase()).copied());
            depth = depth.max(own.map_or(0, |(_, depth)| depth));
            ControlFlow::Continue(())
        });
        depth
    }
}

impl Visitor for Sizes {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        for table in query.with.iter().flat_map(|with| &with.cte_tables) {
            let (size, depth) = (self.of(&table.query).max(1), self.depth(&table.query).saturating_add(1));
            self.depth_max = self.depth_max.max(depth);
            let name = table.alias.name.value.to_lowercase();
            let known = self.named.entry(name).or_default();
            *known = (known.0.max(size), known.1.max(depth));
        }
        ControlFlow::Continue(())
    }
}

/// PostgreSQL's limit; planning takes time with the square of their number.
const ENTRIES_MAX: usize = 1_664;

/// Breaks at a select list that is too long.
struct LongLists;

impl Visitor for LongLists {
    type Break = ();

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        if select.projection.len() > ENTRIES_MAX { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

fn check_query(query: &Query, depth_max: u64) -> Result<(), QueryError> {
    check_size(query, depth_max)?;
    if query.visit(&mut LongLists).is_break() {
        let message = format!("target lists can have at most {ENTRIES_MAX} entries");
        return Err(QueryError::new(SqlState::TooManyColumns, message));
    }
    super::mistakes::check(query)?;
    super::refused::check(query)?;
    let mut found = None;
    let mut visitor = Forbidden(&mut found);
    let _: ControlFlow<()> = query.visit(&mut visitor);
    match found {
        Some(what) => Err(QueryError::refused(what)),
        None => Ok(()),
    }
}

struct Forbidden<'a>(&'a mut Option<&'static str>);

impl Visitor for Forbidden<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        if !query.locks.is_empty() {
            return self.found("SELECT ... FOR UPDATE");
        }
        match body(&query.body) {
            None => ControlFlow::Continue(()),
            Some(what) => self.found(what),
        }
    }
}

impl Forbidden<'_> {
    fn found(&mut self, what: &'static str) -> ControlFlow<()> {
        *self.0 = Some(what);
        ControlFlow::Break(())
    }
}

/// The part of a query that would write.
fn body(expression: &SetExpr) -> Option<&'static str> {
    match expression {
        SetExpr::Select(select) if select.into.is_some() => Some("SELECT INTO"),
        SetExpr::Select(_) | SetExpr::Values(_) | SetExpr::Query(_) | SetExpr::Table(_) => None,
        SetExpr::SetOperation { left, right, .. } => body(left).or_else(|| body(right)),
        _ => Some("a statement that writes"),
    }
}

/// Makes a statement fit for DataFusion without changing what it means.
///
/// # Errors
/// When it cannot be said to DataFusion.
pub(super) fn rewrite(mut statement: Statement) -> Result<Statement, QueryError> {
    if let ControlFlow::Break(error) = VisitMut::visit(&mut statement, &mut Rewriter) {
        return Err(error);
    }
    super::rewrite::rewrite(&mut statement);
    if let Statement::Query(query) = &mut statement {
        super::order::hide_aliases(query);
        super::names::make_unique(query);
    }
    Ok(statement)
}

struct Rewriter;

impl VisitorMut for Rewriter {
    type Break = QueryError;

    /// Names of schemas and tables are found in any case, even quoted; functions live in no schema.
    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<QueryError> {
        if let TableFactor::Table { name, args: Some(_), .. } = factor
            && name.0.len() > 1
            && let Some(last) = name.0.last().cloned()
        {
            name.0 = vec![last];
        }
        if let TableFactor::Derived { subquery, .. } = factor {
            super::names::name_columns(subquery);
        }
        match super::set_functions::arrange(factor) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<QueryError> {
        if let Err(error) = fetch_as_limit(query) {
            return ControlFlow::Break(error);
        }
        super::distinct::order_by_columns(query);
        whole_table(query);
        for table in query.with.iter_mut().flat_map(|with| &mut with.cte_tables) {
            super::names::name_columns(&mut table.query);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<QueryError> {
        super::row_values::spread_groups(select);
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, name: &mut ObjectName) -> ControlFlow<QueryError> {
        let known =
            last_part(name).is_some_and(|last| tables::all().any(|table| table.name.eq_ignore_ascii_case(last)));
        if known {
            for part in &mut name.0 {
                if let sqlparser::ast::ObjectNamePart::Identifier(ident) = part {
                    ident.value = ident.value.to_lowercase();
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<QueryError> {
        // Its escapes are read already.
        if let Value::UnicodeStringLiteral(text) = &mut value.value {
            value.value = Value::SingleQuotedString(std::mem::take(text));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<QueryError> {
        if let Expr::Function(function) = expression
            && function.name.0.len() > 1
            && let Some(last) = function.name.0.last().cloned()
        {
            function.name.0 = vec![last];
        }
        match super::row_values::rewrite(expression).and_then(|()| super::patterns::rewrite(expression)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }
}

/// `TABLE x` is `SELECT * FROM x`.
fn whole_table(query: &mut Query) {
    let SetExpr::Table(table) = query.body.as_ref() else { return };
    let schema = table.schema_name.iter().map(|schema| format!("{schema}."));
    let name: String = schema.chain(table.table_name.clone()).collect();
    let parser = sqlparser::parser::Parser::new(&sqlparser::dialect::PostgreSqlDialect {});
    let parsed = parser.try_with_sql(&format!("SELECT * FROM {name}")).and_then(|mut parser| parser.parse_query());
    if let Ok(whole) = parsed {
        query.body = whole.body;
    }
}

/// `FETCH FIRST n ROWS ONLY` is the standard's LIMIT.
fn fetch_as_limit(query: &mut Query) -> Result<(), QueryError> {
    let Some(fetch) = query.fetch.take() else { return Ok(()) };
    if fetch.with_ties || fetch.percent {
        let what = if fetch.with_ties { "FETCH FIRST ... WITH TIES" } else { "FETCH FIRST ... PERCENT" };
        return Err(QueryError::new(SqlState::FeatureNotSupported, format!("{what} is not supported")));
    }
    let one = || Expr::value(Value::Number("1".into(), false));
    let wanted = fetch.quantity.unwrap_or_else(one);
    match &mut query.limit_clause {
        Some(LimitClause::LimitOffset { limit, .. }) => *limit = Some(wanted),
        Some(LimitClause::OffsetCommaLimit { .. }) => {}
        None => {
            query.limit_clause =
                Some(LimitClause::LimitOffset { limit: Some(wanted), offset: None, limit_by: Vec::new() });
        }
    }
    Ok(())
}

/// The outermost SELECT of a query, when there is one.
pub(super) fn outer_select(query: &Query) -> Option<&Select> {
    match query.body.as_ref() {
        SetExpr::Select(select) => Some(select),
        SetExpr::Query(query) => outer_select(query),
        SetExpr::SetOperation { left, .. } => first_select(left),
        _ => None,
    }
}

fn first_select(body: &SetExpr) -> Option<&Select> {
    match body {
        SetExpr::Select(select) => Some(select),
        SetExpr::Query(query) => outer_select(query),
        SetExpr::SetOperation { left, .. } => first_select(left),
        _ => None,
    }
}
