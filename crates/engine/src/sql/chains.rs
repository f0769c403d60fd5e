//! Long chains of AND and OR, as tools write them: planning takes time with the square of how deep a tree is.

use sqlparser::ast::{BinaryOperator, Expr, Value};

/// A chain of fewer links is left as it is.
const LINKS_MIN: usize = 8;

/// A chain as a tree that is as flat as can be, in the same order. `x = 1 OR x = 2 OR ...` is a list.
pub(super) fn balance(expression: &mut Expr) {
    let op = match expression {
        Expr::BinaryOp { op: op @ (BinaryOperator::And | BinaryOperator::Or), .. } => op.clone(),
        _ => return,
    };
    if length(expression, &op) < LINKS_MIN {
        return;
    }
    let mut links = Vec::new();
    unchain(std::mem::replace(expression, Expr::value(Value::Null)), &op, &mut links);
    *expression = match op {
        BinaryOperator::Or => listed(links).unwrap_or_else(|links| joined(links, &op)),
        _ => joined(links, &op),
    };
}

/// How many links hang on the left side: what is flat already has few there.
fn length(mut expression: &Expr, op: &BinaryOperator) -> usize {
    let mut links = 1;
    while let Expr::BinaryOp { left, op: own, .. } = expression
        && own == op
    {
        links += 1;
        expression = left;
    }
    links
}

fn unchain(mut expression: Expr, op: &BinaryOperator, links: &mut Vec<Expr>) {
    let from = links.len();
    loop {
        match expression {
            Expr::BinaryOp { left, op: own, right } if own == *op => {
                links.push(*right);
                expression = *left;
            }
            first => {
                links.push(first);
                break;
            }
        }
    }
    if let Some(read) = links.get_mut(from..) {
        read.reverse();
    }
}

fn joined(mut links: Vec<Expr>, op: &BinaryOperator) -> Expr {
    if links.len() > 1 {
        let later = links.split_off(links.len() / 2);
        let (left, right) = (Box::new(joined(links, op)), Box::new(joined(later, op)));
        return Expr::BinaryOp { left, op: op.clone(), right };
    }
    links.pop().unwrap_or_else(|| Expr::value(Value::Null))
}

/// Comparisons of one expression with literals as a list; the links where they are something else.
fn listed(links: Vec<Expr>) -> Result<Expr, Vec<Expr>> {
    let subject = match links.first() {
        Some(Expr::BinaryOp { left, .. }) if is_column(left) => left.clone(),
        _ => return Err(links),
    };
    let fits = |link: &Expr| match link {
        Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => *left == subject && is_literal(right),
        _ => false,
    };
    if !links.iter().all(fits) {
        return Err(links);
    }
    let literals = links.into_iter().filter_map(|link| match link {
        Expr::BinaryOp { right, .. } => Some(*right),
        _ => None,
    });
    Ok(Expr::InList { expr: subject, list: literals.collect(), negated: false })
}

fn is_column(expression: &Expr) -> bool {
    matches!(expression, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
}

fn is_literal(expression: &Expr) -> bool {
    matches!(expression, Expr::Value(value) if !matches!(value.value, Value::Placeholder(_)))
}
