//! `ANY` and `ALL` of an array. What an array with NULL in it does not settle is NULL, and not false.

use sqlparser::ast::{BinaryOperator, Expr, UnaryOperator, Value};

use super::functions::null_within::NULL_WITHIN;
use super::guard::{last_part, plain_arguments};
use super::rewrite::call;

/// How many items are compared one by one.
const ITEMS_MAX: usize = 64;

/// `left op ANY (array)`.
pub(super) fn any(left: Expr, op: BinaryOperator, array: Expr) -> Expr {
    match items(&array) {
        Some(list) if op == BinaryOperator::Eq => {
            Expr::InList { expr: Box::new(nested(left)), list: list.into_iter().map(nested).collect(), negated: false }
        }
        Some(list) if list.len() <= ITEMS_MAX => {
            let one = |item: Expr| nested(compared(nested(left.clone()), op.clone(), nested(item)));
            let any = list.into_iter().map(one).reduce(|one, other| compared(one, BinaryOperator::Or, other));
            nested(any.unwrap_or_else(|| Expr::value(Value::Boolean(false))))
        }
        _ => open(left, op, array),
    }
}

/// `left op ALL (array)`: none for which it is not so.
pub(super) fn all(left: Expr, op: BinaryOperator, array: Expr) -> Expr {
    let opposite = match op {
        BinaryOperator::Eq => BinaryOperator::NotEq,
        BinaryOperator::NotEq => BinaryOperator::Eq,
        BinaryOperator::Lt => BinaryOperator::GtEq,
        BinaryOperator::GtEq => BinaryOperator::Lt,
        BinaryOperator::Gt => BinaryOperator::LtEq,
        BinaryOperator::LtEq => BinaryOperator::Gt,
        other => return Expr::AllOp { left: Box::new(left), compare_op: other, right: Box::new(array) },
    };
    Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(nested(any(left, opposite, array))) }
}

/// With an array that is known only when the query runs. A parameter is left alone: its type is found beside `ANY`.
fn open(left: Expr, op: BinaryOperator, array: Expr) -> Expr {
    let known = |side: &Expr| !matches!(side, Expr::Value(value) if matches!(value.value, Value::Placeholder(_)));
    let settled = known(&left) && known(&array);
    let within = call(NULL_WITHIN, vec![array.clone()]);
    let plain = Expr::AnyOp { left: Box::new(left), compare_op: op, right: Box::new(array), is_some: false };
    if settled { nested(compared(nested(plain), BinaryOperator::Or, within)) } else { plain }
}

/// The items of an array that is written out; none where there is none.
fn items(array: &Expr) -> Option<Vec<Expr>> {
    let list = match array {
        Expr::Nested(inner) => items(inner)?,
        Expr::Array(array) => array.elem.clone(),
        Expr::Function(function) if last_part(&function.name) == Some("make_array") => plain_arguments(function)?,
        _ => return None,
    };
    (!list.is_empty()).then_some(list)
}

fn compared(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

fn nested(expression: Expr) -> Expr {
    Expr::Nested(Box::new(expression))
}
