//! Output columns, named as PostgreSQL names them.

use std::collections::BTreeSet;

use datafusion::common::DFSchema;
use sqlparser::ast::{
    DataType, Expr, Ident, OrderByExpr, OrderByKind, Query, Select, SelectItem, SetExpr, Statement, TrimWhereField,
};

use super::OutputColumn;
use super::cells::{modifier, pg_type};
use super::empty::{is_expression, sources};
use super::guard::outer_select;
use crate::tables::SystemTable;
use crate::tables::pg_catalog::objects::relation_oid;

/// The columns of a statement's result.
pub(super) fn columns(statement: &Statement, schema: &DFSchema) -> Vec<OutputColumn> {
    let items = match statement {
        Statement::Query(query) => outer_select(query).map(|select| select.projection.as_slice()),
        _ => None,
    };
    let named: Option<Vec<String>> = items.and_then(|items| items.iter().map(name_of_item).collect());
    let fields = schema.fields();
    let named = named.filter(|names| names.len() == fields.len());
    let origins = Origins::of_statement(statement);
    fields
        .iter()
        .enumerate()
        .map(|(index, field)| {
            let own = named.as_ref().and_then(|names| names.get(index));
            let name = match own {
                Some(name) => name.clone(),
                None => shown(field.name()).to_owned(),
            };
            OutputColumn { name, kind: pg_type(field), modifier: modifier(field), origin: origins.of(index, schema) }
        })
        .collect()
}

/// Where the columns of a plain SELECT come from.
#[derive(Default)]
struct Origins<'a> {
    sources: Vec<(String, &'static SystemTable)>,
    items: &'a [SelectItem],
}

impl<'a> Origins<'a> {
    fn of_statement(statement: &'a Statement) -> Self {
        let Statement::Query(query) = statement else { return Self::default() };
        let SetExpr::Select(select) = query.body.as_ref() else { return Self::default() };
        let mut sources = sources(select);
        for hiding in query.with.iter().flat_map(|with| &with.cte_tables) {
            sources.retain(|(_, table)| !table.name.eq_ignore_ascii_case(&hiding.alias.name.value));
        }
        Self { sources, items: &select.projection }
    }

    fn of(&self, index: usize, schema: &DFSchema) -> Option<(u32, i16)> {
        let listed = self.items.len() == schema.fields().len() && self.items.iter().all(is_expression);
        if listed {
            let (SelectItem::UnnamedExpr(expression) | SelectItem::ExprWithAlias { expr: expression, .. }) =
                self.items.get(index)?
            else {
                return None;
            };
            return match expression {
                Expr::Identifier(name) => self.sources.iter().find_map(|(_, table)| place(table, &name.value)),
                Expr::CompoundIdentifier(names) => match names.as_slice() {
                    [.., source, name] => self.column(&source.value, &name.value),
                    _ => None,
                },
                _ => None,
            };
        }
        // What a wildcard stands for, the plan knows.
        let (source, field) = (index < schema.fields().len()).then(|| schema.qualified_field(index))?;
        self.column(source?.table(), field.name())
    }

    fn column(&self, source: &str, name: &str) -> Option<(u32, i16)> {
        let (_, table) = self.sources.iter().find(|(own, _)| own.eq_ignore_ascii_case(source))?;
        place(table, name)
    }
}

fn place(table: &SystemTable, name: &str) -> Option<(u32, i16)> {
    let index = table.columns.iter().position(|column| column.name.eq_ignore_ascii_case(name))?;
    Some((relation_oid(table), i16::try_from(index + 1).ok()?))
}

/// `None` for a wildcard, whose names the schema knows.
pub(super) fn name_of_item(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(folded(alias)),
        SelectItem::UnnamedExpr(expression) => Some(name_of(expression).unwrap_or_else(|| "?column?".to_owned())),
        _ => None,
    }
}

fn folded(ident: &Ident) -> String {
    if ident.quote_style.is_some() { ident.value.clone() } else { ident.value.to_lowercase() }
}

/// The name PostgreSQL gives an expression without alias, if it gives one.
fn name_of(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Identifier(ident) => Some(folded(ident)),
        Expr::CompoundIdentifier(idents) => idents.last().map(folded),
        Expr::CompoundFieldAccess { root, .. } => name_of(root),
        Expr::Function(function) => function.name.0.last().and_then(|part| part.as_ident()).map(folded),
        Expr::Cast { expr, data_type, .. } => {
            // What is named by its own type is named anew by the type it is cast to.
            let inner = name_of(expr).filter(|_| {
                !matches!(expr.as_ref(), Expr::Value(_) | Expr::Cast { .. } | Expr::TypedString(_) | Expr::Nested(_))
            });
            Some(inner.unwrap_or_else(|| type_name(&data_type.to_string())))
        }
        Expr::TypedString(typed) => Some(type_name(&typed.data_type.to_string())),
        Expr::Interval(_) => Some("interval".to_owned()),
        Expr::AtTimeZone { .. } => Some("timezone".to_owned()),
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => name_of(inner),
        // A type is no name for the whole.
        Expr::Case { else_result: Some(result), .. } if !named_by_type(result) => {
            Some(name_of(result).unwrap_or_else(|| "case".to_owned()))
        }
        Expr::Case { .. } => Some("case".to_owned()),
        Expr::Exists { negated: false, .. } => Some("exists".to_owned()),
        Expr::Subquery(query) => outer_select(query)
            .and_then(|select| select.projection.first())
            .and_then(name_of_item)
            .filter(|name| name != "?column?"),
        Expr::Array(_) => Some("array".to_owned()),
        Expr::Extract { .. } => Some("extract".to_owned()),
        Expr::Substring { shorthand: true, .. } => Some("substr".to_owned()),
        Expr::Substring { .. } => Some("substring".to_owned()),
        Expr::Trim { trim_where: Some(TrimWhereField::Leading), .. } => Some("ltrim".to_owned()),
        Expr::Trim { trim_where: Some(TrimWhereField::Trailing), .. } => Some("rtrim".to_owned()),
        Expr::Trim { .. } => Some("btrim".to_owned()),
        Expr::Position { .. } => Some("position".to_owned()),
        Expr::Ceil { .. } => Some("ceil".to_owned()),
        Expr::Floor { .. } => Some("floor".to_owned()),
        Expr::Overlay { .. } => Some("overlay".to_owned()),
        _ => None,
    }
}

/// Whether an expression is called by its type for want of a better name.
fn named_by_type(expression: &Expr) -> bool {
    match expression {
        Expr::Cast { expr, .. } => name_of(expr).is_none() || named_by_type(expr),
        Expr::TypedString(_) | Expr::Interval(_) => true,
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => named_by_type(inner),
        _ => false,
    }
}

/// PostgreSQL's own name of a type, which a cast without a better name is called.
fn type_name(written: &str) -> String {
    let word = written.to_lowercase();
    if let Some(kind) = super::rewrite::binary_digits(&word) {
        return if kind == DataType::Real { "float4" } else { "float8" }.to_owned();
    }
    let word = word.split(['(', '[']).next().unwrap_or_default().trim();
    let quoted = word.starts_with('"');
    let word = word.trim_matches('"');
    let word = word.strip_prefix("pg_catalog.").unwrap_or(word);
    match word {
        "char" | "character" if !quoted => "bpchar",
        "int" | "integer" => "int4",
        "bigint" => "int8",
        "smallint" => "int2",
        "boolean" => "bool",
        "double precision" | "double" | "float" => "float8",
        "real" => "float4",
        "varchar" | "character varying" => "varchar",
        "decimal" | "dec" => "numeric",
        "timestamp with time zone" => "timestamptz",
        "timestamp without time zone" => "timestamp",
        other => other,
    }
    .to_owned()
}

/// Marks the later ones of several columns of one name, which DataFusion refuses; what is behind it is not shown.
pub(super) const MARK: char = '\u{1}';

/// A column's name as the client knows it.
pub(super) fn shown(name: &str) -> &str {
    name.split(MARK).next().unwrap_or(name)
}

/// DataFusion refuses two output columns of one name; PostgreSQL does not. Later ones of equal text get an alias that
/// nothing can refer to; what the client sees is named by [`columns`].
pub(super) fn make_unique(query: &mut Query) {
    let ordered = order_names(query);
    match query.body.as_mut() {
        SetExpr::Select(select) => {
            let mut seen = BTreeSet::new();
            let wildcard = select.projection.iter().any(is_wildcard);
            for (index, item) in select.projection.iter_mut().enumerate() {
                let named = matches!(&*item, SelectItem::UnnamedExpr(expression)
                    if !matches!(expression, Expr::Identifier(_) | Expr::CompoundIdentifier(_)));
                let own = name_of_item(item).filter(|name| named && ordered.contains(name));
                match own {
                    // ORDER BY calls it by the name that it would have.
                    Some(name) if seen.insert(name.clone()) => alias(item, name),
                    _ if wildcard => mark_item(item, index, &ordered),
                    _ => unique_item(item, index, &mut seen),
                }
            }
        }
        body => name_arms(body),
    }
}

/// The plain names in ORDER BY.
fn order_names(query: &Query) -> BTreeSet<String> {
    let Some(OrderByKind::Expressions(items)) = query.order_by.as_ref().map(|order| &order.kind) else {
        return BTreeSet::new();
    };
    let name = |item: &OrderByExpr| match &item.expr {
        Expr::Identifier(ident) => Some(folded(ident)),
        _ => None,
    };
    items.iter().filter_map(name).collect()
}

fn alias(item: &mut SelectItem, name: String) {
    let taken = std::mem::replace(item, SelectItem::Wildcard(Default::default()));
    *item = match taken {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
            SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', name) }
        }
        other => other,
    };
}

fn is_wildcard(item: &SelectItem) -> bool {
    matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..))
}

/// A wildcard may stand for the same column, so each beside it is marked, but for one that ORDER BY names.
fn mark_item(item: &mut SelectItem, index: usize, ordered: &BTreeSet<String>) {
    let ordered = |name: &String| matches!(&*item, SelectItem::ExprWithAlias { .. }) && ordered.contains(name);
    if let Some(name) = name_of_item(item).filter(|name| !ordered(name)) {
        alias(item, format!("{name}{MARK}{index}"));
    }
}

fn unique_item(item: &mut SelectItem, index: usize, seen: &mut BTreeSet<String>) {
    let shown = match &*item {
        SelectItem::UnnamedExpr(Expr::Value(_) | Expr::Cast { .. }) => format!("literal {index}"),
        SelectItem::UnnamedExpr(expression) => name_of(expression).unwrap_or_else(|| expression.to_string()),
        SelectItem::ExprWithAlias { alias, .. } => folded(alias),
        _ => return,
    };
    // A cast is called by what is in it, for DataFusion.
    let literal = matches!(&*item, SelectItem::UnnamedExpr(Expr::Value(_) | Expr::Cast { .. }));
    if !seen.insert(shown) || literal {
        alias(item, format!("?column {index}?"));
    }
}

/// Gives every column of the query an alias that is its own: what the planner calls two expressions can be alike where
/// their texts are not.
pub(super) fn alias_all(statement: &mut Statement) {
    let Statement::Query(query) = statement else { return };
    let SetExpr::Select(select) = query.body.as_mut() else { return };
    for (index, item) in select.projection.iter_mut().enumerate() {
        if matches!(item, SelectItem::UnnamedExpr(_)) {
            alias(item, format!("?column {index}?"));
        }
    }
}

/// Names the columns of a query within another as PostgreSQL does, so that the outer one can call them so. Where several
/// have one name, they are all marked: to name one of them is ambiguous.
pub(super) fn name_columns(query: &mut Query) {
    name_arms(&mut query.body);
}

fn name_arms(body: &mut SetExpr) {
    match body {
        SetExpr::Select(select) => name_select(select),
        SetExpr::Query(query) => name_columns(query),
        SetExpr::SetOperation { left, right, .. } => {
            name_arms(left);
            name_arms(right);
        }
        _ => {}
    }
}

fn name_select(select: &mut Select) {
    let names: Vec<Option<String>> = select.projection.iter().map(name_of_item).collect();
    for (index, item) in select.projection.iter_mut().enumerate() {
        let Some(Some(name)) = names.get(index) else { continue };
        let alike = names.iter().flatten().filter(|other| *other == name).count();
        let plain = matches!(
            item,
            SelectItem::UnnamedExpr(Expr::Identifier(_) | Expr::CompoundIdentifier(_))
                | SelectItem::ExprWithAlias { .. }
        );
        if alike > 1 {
            alias(item, format!("{name}{MARK}{index}"));
        } else if !plain {
            alias(item, name.clone());
        }
    }
}
