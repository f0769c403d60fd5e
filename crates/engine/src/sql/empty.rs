//! Queries over tables that are always empty, told without running them: clients look for indexes, triggers, policies
//! and the like with queries that are hard to plan, and there are none.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use sqlparser::ast::{
    CastKind, DataType, Expr, FunctionArguments, GroupByExpr, Ident, JoinOperator, Query, Select, SelectItem, SetExpr,
    Statement, TableFactor, TableWithJoins, Value, Visit, VisitMut, Visitor, VisitorMut,
};

use super::mistakes::AGGREGATES;
use super::{guard, names};
use crate::tables::pg_catalog::objects::relation_oid;
use crate::tables::pg_catalog::{is_empty, set_named};
use crate::tables::{Kind, SystemTable};

/// Puts what comes of always empty tables in the place of the queries over them.
pub(super) fn replace(statement: &mut Statement) {
    let mut names = CommonNames::default();
    let _: ControlFlow<()> = Visit::visit(statement, &mut names);
    let _: ControlFlow<()> = VisitMut::visit(statement, &mut Replacer(names.0));
}

/// The names of WITH queries, which hide tables of the same name.
#[derive(Default)]
struct CommonNames(BTreeSet<String>);

impl Visitor for CommonNames {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        for table in query.with.iter().flat_map(|with| &with.cte_tables) {
            self.0.insert(table.alias.name.value.to_lowercase());
        }
        ControlFlow::Continue(())
    }
}

struct Replacer(BTreeSet<String>);

impl VisitorMut for Replacer {
    type Break = ();

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        let replaced = match expression {
            Expr::Subquery(query) if self.is_empty(query) => Some(null_of(query)),
            Expr::Exists { subquery, negated } if self.is_empty(subquery) => Some(truth(*negated)),
            Expr::InSubquery { subquery, negated, .. } if self.is_empty(subquery) => Some(truth(*negated)),
            Expr::Function(function) => match &function.args {
                FunctionArguments::Subquery(query) if self.is_empty(query) => Some(super::rewrite::no_values()),
                _ => None,
            },
            _ => None,
        };
        if let Some(replaced) = replaced {
            *expression = replaced;
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        number_tables(&mut query.body);
        if let SetExpr::Select(select) = query.body.as_mut() {
            if self.is_empty_select(select) {
                clear(select);
                query.order_by = None;
            }
        } else {
            self.clear_arms(&mut query.body);
        }
        ControlFlow::Continue(())
    }
}

impl Replacer {
    fn clear_arms(&self, body: &mut SetExpr) {
        match body {
            SetExpr::Select(select) if self.is_empty_select(select) => clear(select),
            SetExpr::SetOperation { left, right, .. } => {
                self.clear_arms(left);
                self.clear_arms(right);
            }
            _ => {}
        }
    }

    fn is_empty(&self, query: &Query) -> bool {
        matches!(query.body.as_ref(), SetExpr::Select(select) if self.is_empty_select(select))
    }

    /// Whether no row can come of it: it reads an always empty table, and does not count rows.
    fn is_empty_select(&self, select: &Select) -> bool {
        let item = |item: &SelectItem| match item {
            SelectItem::UnnamedExpr(expression) | SelectItem::ExprWithAlias { expr: expression, .. } => {
                !aggregates(expression)
            }
            _ => false,
        };
        let grouped = !matches!(&select.group_by, GroupByExpr::Expressions(expressions, _) if expressions.is_empty());
        select.from.iter().any(|from| self.gives_nothing(from))
            && (select.projection.iter().all(item) || grouped && select.projection.iter().all(is_expression))
    }

    fn gives_nothing(&self, from: &TableWithJoins) -> bool {
        let mut empty = self.is_empty_factor(&from.relation);
        for join in &from.joins {
            let joined = self.is_empty_factor(&join.relation);
            empty = match join.join_operator {
                JoinOperator::Join(_) | JoinOperator::Inner(_) | JoinOperator::CrossJoin(_) => empty || joined,
                JoinOperator::Left(_) | JoinOperator::LeftOuter(_) => empty,
                JoinOperator::Right(_) | JoinOperator::RightOuter(_) => joined,
                _ => empty && joined,
            };
        }
        empty
    }

    fn is_empty_factor(&self, factor: &TableFactor) -> bool {
        match factor {
            TableFactor::Table { args: None, .. } => self.table(factor).is_some_and(is_empty),
            TableFactor::Table { name, args: Some(_), .. } => {
                guard::last_part(name).and_then(set_named).is_some_and(is_empty)
            }
            TableFactor::Derived { subquery, .. } => self.is_empty(subquery),
            TableFactor::NestedJoin { table_with_joins, .. } => self.gives_nothing(table_with_joins),
            _ => false,
        }
    }

    fn table(&self, factor: &TableFactor) -> Option<&'static SystemTable> {
        let TableFactor::Table { name, .. } = factor else { return None };
        let hidden =
            name.0.len() == 1 && guard::last_part(name).is_some_and(|name| self.0.contains(&name.to_lowercase()));
        if hidden { None } else { guard::table_named(name) }
    }
}

/// `alias.tableoid` is the number of the table behind the alias.
fn number_tables(body: &mut SetExpr) {
    match body {
        SetExpr::Select(select) => {
            let sources = sources(select);
            let _: ControlFlow<()> = sqlparser::ast::visit_expressions_mut(select, |expression| {
                if let Some(table) = numbered(expression, &sources) {
                    let number = relation_oid(table).to_string();
                    *expression = Expr::Cast {
                        kind: CastKind::Cast,
                        expr: Box::new(Expr::Value(Value::Number(number, false).into())),
                        data_type: DataType::IntUnsigned(None),
                        array: false,
                        format: None,
                    };
                }
                ControlFlow::Continue(())
            });
        }
        SetExpr::SetOperation { left, right, .. } => {
            number_tables(left);
            number_tables(right);
        }
        _ => {}
    }
}

/// The table whose number an expression asks for.
fn numbered(expression: &Expr, sources: &[(String, &'static SystemTable)]) -> Option<&'static SystemTable> {
    match expression {
        Expr::CompoundIdentifier(names) => match names.as_slice() {
            [.., source, name] if name.value.eq_ignore_ascii_case("tableoid") => {
                let source = source.value.to_lowercase();
                sources.iter().find(|(own, _)| *own == source).map(|(_, table)| *table)
            }
            _ => None,
        },
        Expr::Identifier(name) if name.value.eq_ignore_ascii_case("tableoid") => match sources {
            [(_, only)] => Some(only),
            _ => None,
        },
        _ => None,
    }
}

pub(super) fn is_expression(item: &SelectItem) -> bool {
    matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. })
}

fn truth(value: bool) -> Expr {
    Expr::Value(Value::Boolean(value).into())
}

fn aggregates(expression: &Expr) -> bool {
    #[derive(Default)]
    struct Found {
        found: bool,
        depth: usize,
    }
    impl Visitor for Found {
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
            if let Expr::Function(function) = expression {
                let name = guard::last_part(&function.name).unwrap_or_default().to_lowercase();
                self.found |= self.depth == 0 && function.over.is_none() && AGGREGATES.contains(&name.as_str());
            }
            ControlFlow::Continue(())
        }
    }
    let mut found = Found::default();
    let _: ControlFlow<()> = expression.visit(&mut found);
    found.found
}

fn null_of(query: &Query) -> Expr {
    let SetExpr::Select(select) = query.body.as_ref() else { return Expr::Value(Value::Null.into()) };
    match select.projection.first() {
        Some(SelectItem::UnnamedExpr(expression) | SelectItem::ExprWithAlias { expr: expression, .. }) => {
            null_like(expression, &sources(select))
        }
        _ => Expr::Value(Value::Null.into()),
    }
}

/// Makes a SELECT give its columns and no row, reading nothing.
fn clear(select: &mut Select) {
    let sources = sources(select);
    let mut seen = BTreeSet::new();
    for (index, item) in select.projection.iter_mut().enumerate() {
        let (SelectItem::UnnamedExpr(expression) | SelectItem::ExprWithAlias { expr: expression, .. }) = &*item else {
            continue;
        };
        let name = names::name_of_item(item).unwrap_or_else(|| "?column?".to_owned());
        let name = if seen.insert(name.clone()) { name } else { format!("?column {index}?") };
        let expr = null_like(expression, &sources);
        *item = SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', name) };
    }
    select.from.clear();
    select.distinct = None;
    select.group_by = GroupByExpr::Expressions(Vec::new(), Vec::new());
    select.having = None;
    select.qualify = None;
    select.named_window.clear();
    select.selection = Some(truth(false));
}

/// The tables a SELECT names, with the names they go by in it.
pub(super) fn sources(select: &Select) -> Vec<(String, &'static SystemTable)> {
    let factors = select
        .from
        .iter()
        .flat_map(|from| std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation)));
    factors
        .filter_map(|factor| match factor {
            TableFactor::Table { name, alias, args: None, .. } => {
                let table = guard::table_named(name)?;
                let own = alias.as_ref().map_or(table.name, |alias| alias.name.value.as_str());
                Some((own.to_lowercase(), table))
            }
            _ => None,
        })
        .collect()
}

/// NULL of the type an expression has, where that is easily told.
fn null_like(expression: &Expr, sources: &[(String, &'static SystemTable)]) -> Expr {
    let null = Expr::Value(Value::Null.into());
    let column = match expression {
        Expr::Identifier(name) => sources.iter().find_map(|(_, table)| kind_of(table, &name.value)),
        Expr::CompoundIdentifier(names) => match names.as_slice() {
            [.., source, name] => {
                let source = source.value.to_lowercase();
                sources.iter().filter(|(own, _)| *own == source).find_map(|(_, table)| kind_of(table, &name.value))
            }
            _ => None,
        },
        Expr::Cast { data_type, .. } => {
            return Expr::Cast {
                kind: CastKind::Cast,
                expr: Box::new(null),
                data_type: data_type.clone(),
                array: false,
                format: None,
            };
        }
        _ => None,
    };
    let data_type = match column {
        Some(Kind::Bool) => DataType::Boolean,
        Some(Kind::Int) => DataType::BigInt(None),
        Some(Kind::Int4) => DataType::Integer(None),
        Some(Kind::Int2) => DataType::SmallInt(None),
        Some(Kind::Oid) => DataType::IntUnsigned(None),
        Some(Kind::Varchar | Kind::Text | Kind::Name | Kind::Char | Kind::Json | Kind::Jsonb | Kind::Inet) => {
            DataType::Text
        }
        _ => return null,
    };
    Expr::Cast { kind: CastKind::Cast, expr: Box::new(null), data_type, array: false, format: None }
}

fn kind_of(table: &SystemTable, name: &str) -> Option<Kind> {
    table.columns.iter().find(|column| column.name.eq_ignore_ascii_case(name)).map(|column| column.kind)
}
