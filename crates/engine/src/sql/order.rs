//! ORDER BY an expression: a name within it is an input column, as in PostgreSQL; alone it is an output column first.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use sqlparser::ast::{Expr, GroupByExpr, Ident, OrderByKind, Query, SelectItem, SetExpr, Value, visit_expressions};

use super::error::QueryError;
use crate::error::SqlState;

/// Hides the aliases that the planner would take names within expressions for. What the client sees is named by the
/// statement as it was written.
pub(super) fn hide_aliases(query: &mut Query) {
    let clashing = clashing(query);
    if clashing.is_empty() {
        return;
    }
    let hidden = |name: &Ident| {
        let place = clashing.iter().position(|own| *own == folded(name))?;
        Some(Ident::with_quote('"', format!("?order {place}?")))
    };
    if let SetExpr::Select(select) = query.body.as_mut() {
        for item in &mut select.projection {
            if let SelectItem::ExprWithAlias { alias, .. } = item
                && let Some(own) = hidden(alias)
            {
                *alias = own;
            }
        }
    }
    if let Some(OrderByKind::Expressions(items)) = query.order_by.as_mut().map(|order| &mut order.kind) {
        for item in items {
            if let Expr::Identifier(name) = &item.expr
                && let Some(own) = hidden(name)
            {
                item.expr = Expr::Identifier(own);
            }
        }
    }
}

/// Within another query the aliases are seen from outside.
///
/// # Errors
/// When the planner would order by the wrong column.
pub(super) fn check_inner(query: &Query) -> Result<(), QueryError> {
    match clashing(query).first() {
        None => Ok(()),
        Some(name) => {
            let message =
                format!("ORDER BY an expression with \"{name}\" in it, which is an alias too, is not supported");
            Err(QueryError::new(SqlState::FeatureNotSupported, message).hinting("Give the output column another name."))
        }
    }
}

/// The aliases of other expressions than the column of that name, where ORDER BY has the name within an expression.
fn clashing(query: &Query) -> Vec<String> {
    let SetExpr::Select(select) = query.body.as_ref() else { return Vec::new() };
    let Some(OrderByKind::Expressions(items)) = query.order_by.as_ref().map(|order| &order.kind) else {
        return Vec::new();
    };
    let mut within = BTreeSet::new();
    for item in items.iter().filter(|item| !matches!(item.expr, Expr::Identifier(_))) {
        let _: ControlFlow<()> = visit_expressions(&item.expr, |part| {
            if let Expr::Identifier(name) = part {
                within.insert(folded(name));
            }
            ControlFlow::Continue(())
        });
    }
    let clashes = |item: &SelectItem| match item {
        SelectItem::ExprWithAlias { expr, alias } => {
            let own = match expr {
                Expr::Identifier(name) => folded(name) == folded(alias),
                Expr::CompoundIdentifier(names) => names.last().is_some_and(|name| folded(name) == folded(alias)),
                _ => false,
            };
            Some(folded(alias)).filter(|name| !own && within.contains(name))
        }
        _ => None,
    };
    select.projection.iter().filter_map(clashes).collect()
}

/// `GROUP BY x ORDER BY 1`, where the first column is an expression: the planner would look for it among the groups. It
/// is named, and what is ordered by is that name; the client sees the name that the statement as it was written gives.
pub(super) fn name_places(query: &mut Query) {
    let SetExpr::Select(select) = query.body.as_mut() else { return };
    let Some(OrderByKind::Expressions(items)) = query.order_by.as_mut().map(|order| &mut order.kind) else { return };
    let grouped = !matches!(&select.group_by, GroupByExpr::Expressions(groups, _) if groups.is_empty());
    if !grouped {
        return;
    }
    for item in items {
        let Expr::Value(value) = &item.expr else { continue };
        let Value::Number(number, _) = &value.value else { continue };
        let place = number.to_string().parse::<usize>().ok().and_then(|place| place.checked_sub(1));
        let Some(output) = place.and_then(|place| select.projection.get_mut(place)) else { continue };
        if let SelectItem::UnnamedExpr(expression) = output
            && !matches!(expression, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
        {
            let alias = Ident::with_quote('"', format!("?place {number}?"));
            let expr = std::mem::replace(expression, Expr::value(Value::Null));
            *output = SelectItem::ExprWithAlias { expr, alias: alias.clone() };
            item.expr = Expr::Identifier(alias);
        }
    }
}

fn folded(ident: &Ident) -> String {
    if ident.quote_style.is_some() { ident.value.clone() } else { ident.value.to_lowercase() }
}
