//! ORDER BY of a SELECT DISTINCT: what rows are ordered by must be in the select list, or rows that are one for DISTINCT
//! could stand in several places. PostgreSQL finds an expression there that means the same; DataFusion takes columns only.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Distinct, Expr, Ident, OrderByKind, Query, Select, SelectItem, SetExpr, Spanned, Value, VisitMut, VisitorMut,
};
use sqlparser::tokenizer::Span;

use super::names::{MARK, name_of_item};

/// The expression that a SELECT DISTINCT is ordered by without having it, if there is one, and where it stands.
pub(super) fn misplaced(query: &Query) -> Option<Span> {
    let (select, orders) = ordered(query)?;
    let open = select.projection.iter().any(is_wildcard);
    let orders = orders.into_iter().filter(|order| {
        // What a wildcard stands for is known later.
        let column = matches!(order, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
        !(open && column || is_output(order, select)) && place(order, select).is_none()
    });
    orders.map(Spanned::span).next()
}

/// Has the query ordered by its columns where it is ordered by what they are.
pub(super) fn order_by_columns(query: &mut Query) {
    let Some((select, orders)) = ordered(query) else { return };
    let wildcard = select.projection.iter().any(is_wildcard);
    let places: Vec<Option<usize>> =
        orders.into_iter().map(|order| place(order, select).filter(|_| !is_output(order, select))).collect();
    let mut wanted = Vec::with_capacity(places.len());
    for place in places {
        wanted.push(match place {
            // With a wildcard before it, nobody knows the column's number.
            Some(place) if wildcard => named(query, place),
            Some(place) => Some(Expr::value(Value::Number((place + 1).to_string(), false))),
            None => None,
        });
    }
    let Some(OrderByKind::Expressions(items)) = query.order_by.as_mut().map(|order| &mut order.kind) else { return };
    for (item, wanted) in items.iter_mut().zip(wanted) {
        if let Some(wanted) = wanted {
            item.expr = wanted;
        }
    }
}

/// A SELECT DISTINCT and the expressions it is ordered by.
fn ordered(query: &Query) -> Option<(&Select, Vec<&Expr>)> {
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    if !matches!(select.distinct, Some(Distinct::Distinct)) {
        return None;
    }
    match &query.order_by.as_ref()?.kind {
        OrderByKind::Expressions(items) => Some((select, items.iter().map(|item| &item.expr).collect())),
        OrderByKind::All(_) => None,
    }
}

fn is_wildcard(item: &SelectItem) -> bool {
    matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..))
}

/// Whether it is a column's number, or its name in the result.
fn is_output(order: &Expr, select: &Select) -> bool {
    match order {
        Expr::Value(_) => true,
        Expr::Identifier(ident) => {
            let name = folded(ident).value;
            select.projection.iter().any(|item| name_of_item(item).is_some_and(|own| own == name))
        }
        _ => false,
    }
}

/// Where the select list has this expression.
fn place(order: &Expr, select: &Select) -> Option<usize> {
    // With one table, it does not matter whether a column's name has the table's before it.
    let one = select.from.len() <= 1 && select.from.iter().all(|from| from.joins.is_empty());
    let wanted = normal(order, one);
    select.projection.iter().position(|item| match item {
        SelectItem::UnnamedExpr(expression) | SelectItem::ExprWithAlias { expr: expression, .. } => {
            normal(expression, one) == wanted
        }
        _ => false,
    })
}

/// The name by which the query can be ordered by the column at a place; one without a name gets one that is not shown.
fn named(query: &mut Query, place: usize) -> Option<Expr> {
    let SetExpr::Select(select) = query.body.as_mut() else { return None };
    let item = select.projection.get_mut(place)?;
    let alias = match item {
        SelectItem::ExprWithAlias { alias, .. } => alias.clone(),
        SelectItem::UnnamedExpr(expression) => {
            let expr = expression.clone();
            let alias = Ident::with_quote('"', format!("{}{MARK}{place}", name_of_item(item).unwrap_or_default()));
            *item = SelectItem::ExprWithAlias { expr, alias: alias.clone() };
            alias
        }
        _ => return None,
    };
    Some(Expr::Identifier(alias))
}

/// The expression as all are written that mean the same to PostgreSQL's parser.
fn normal(expression: &Expr, one_table: bool) -> Expr {
    let mut normal = expression.clone();
    let _: ControlFlow<()> = VisitMut::visit(&mut normal, &mut Normal { one_table });
    normal
}

struct Normal {
    one_table: bool,
}

impl VisitorMut for Normal {
    type Break = ();

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        match expression {
            Expr::Nested(inner) => *expression = std::mem::replace(inner.as_mut(), Expr::value(Value::Null)),
            Expr::Identifier(ident) => *ident = folded(ident),
            Expr::CompoundIdentifier(idents) => match idents.last() {
                Some(last) if self.one_table => *expression = Expr::Identifier(folded(last)),
                _ => idents.iter_mut().for_each(|ident| *ident = folded(ident)),
            },
            Expr::Function(function) => {
                for part in &mut function.name.0 {
                    if let sqlparser::ast::ObjectNamePart::Identifier(ident) = part {
                        *ident = folded(ident);
                    }
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

fn folded(ident: &Ident) -> Ident {
    Ident::new(if ident.quote_style.is_some() { ident.value.clone() } else { ident.value.to_lowercase() })
}
