//! Aggregates that the planner calls alike and are not: a cast is no part of the name that it gives a call.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Statement, Value, visit_expressions_mut};

use super::functions::plain::SAME;
use super::guard::last_part;
use super::mistakes::AGGREGATES;
use super::rewrite::call;

/// Gives what aggregates are called with a number that is part of their names; what is alike keeps being so.
pub(super) fn tell_apart(statement: &mut Statement) {
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    let _: ControlFlow<()> = visit_expressions_mut(statement, |expression| {
        let Expr::Function(function) = expression else { return ControlFlow::Continue(()) };
        let name = last_part(&function.name).unwrap_or_default().to_lowercase();
        if !AGGREGATES.contains(&name.as_str()) {
            return ControlFlow::Continue(());
        }
        let FunctionArguments::List(list) = &mut function.args else { return ControlFlow::Continue(()) };
        for argument in &mut list.args {
            if let FunctionArg::Unnamed(FunctionArgExpr::Expr(value @ Expr::Cast { .. })) = argument {
                let next = numbers.len();
                let number = *numbers.entry(value.to_string()).or_insert(next);
                let taken = std::mem::replace(value, Expr::value(Value::Null));
                *value = call(SAME, vec![Expr::value(Value::Number(number.to_string(), false)), taken]);
            }
        }
        ControlFlow::Continue(())
    });
}
