//! CALL of procedures, and SELECT of a meta-function (`reference/hologres.md` §1.1, `reference/vertica-sql.md` §5).

use super::cursor::{Cursor, Result};
use super::sql;
use crate::ast::{Ident, Literal, Statement};
use crate::error::{ErrorKind, SyntaxError};
use crate::function::{MetaFunction, Procedure};
use crate::words;

/// The schema of procedures.
const SCHEMA: &str = "hologres";

/// After CALL.
pub(super) fn call(cursor: &mut Cursor<'_>) -> Result<Statement> {
    // The vendor's procedures are found in its schema too.
    if cursor.at(SCHEMA) && cursor.symbol_ahead(1, '.') {
        cursor.advance();
        cursor.advance();
    }
    let start = cursor.index();
    let typed = cursor.name()?;
    cursor.expect_symbol('(')?;
    let arguments = arguments(cursor)?;
    cursor.finish()?;
    let Some(procedure) = Procedure::named(&typed.0) else {
        cursor.back_to(start);
        let near = words::nearest(&typed.0, Procedure::ALL.iter().map(|procedure| procedure.name()));
        let hint = near.map(|name| format!("Did you mean \"{name}\"?"));
        return Err(undefined(cursor, "procedure", &typed.0, &arguments, hint));
    };
    if !fits(procedure.arity(), &arguments) {
        cursor.back_to(start);
        let hint = arity_hint(procedure.name(), procedure.arity());
        return Err(undefined(cursor, "procedure", procedure.name(), &arguments, Some(hint)));
    }
    Ok(Statement::Call { procedure, arguments })
}

/// After SELECT: a meta-function with literals only, alone in the select list, and nothing behind it. All other
/// statements that begin so are for sqlparser.
pub(super) fn select(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let start = cursor.index();
    match meta_function(cursor) {
        Some((function, typed, arguments, alias)) => {
            if !fits(function.arity(), &arguments) {
                cursor.back_to(start);
                let hint = arity_hint(function.name(), function.arity());
                return Err(undefined(cursor, "function", function.name(), &arguments, Some(hint)));
            }
            Ok(Statement::Function { function, typed, arguments, alias })
        }
        None => {
            cursor.back_to(start);
            sql::delegate(cursor)
        }
    }
}

type Found = (MetaFunction, String, Vec<Literal>, Option<Ident>);

fn meta_function(cursor: &mut Cursor<'_>) -> Option<Found> {
    if !cursor.symbol_ahead(1, '(') {
        return None;
    }
    let typed = cursor.name().ok()?.0;
    let function = MetaFunction::named(&typed)?;
    cursor.advance();
    let arguments = arguments(cursor).ok()?;
    let explicit = cursor.accept("AS");
    let alias = match cursor.at_end() {
        true if !explicit => None,
        _ => Some(cursor.name().ok()?),
    };
    cursor.at_end().then_some((function, typed, arguments, alias))
}

/// Literals up to the closing parenthesis.
fn arguments(cursor: &mut Cursor<'_>) -> Result<Vec<Literal>> {
    if cursor.accept_symbol(')') {
        return Ok(Vec::new());
    }
    let arguments = cursor.list(literal)?;
    cursor.expect_symbol(')')?;
    Ok(arguments)
}

fn literal(cursor: &mut Cursor<'_>) -> Result<Literal> {
    if cursor.at_string() {
        return Ok(Literal::Text(cursor.string()?));
    }
    if let Some(number) = cursor.signed_number()? {
        return Ok(Literal::Number(number));
    }
    if cursor.accept("TRUE") {
        return Ok(Literal::Bool(true));
    }
    if cursor.accept("FALSE") {
        return Ok(Literal::Bool(false));
    }
    cursor.expect("NULL")?;
    Ok(Literal::Null)
}

fn fits((least, most): (usize, usize), arguments: &[Literal]) -> bool {
    (least..=most).contains(&arguments.len())
}

fn arity_hint(name: &str, (least, most): (usize, usize)) -> String {
    let plural = if most == 1 { "" } else { "s" };
    match most - least {
        0 if most == 0 => format!("{name} takes no arguments."),
        0 => format!("{name} takes {most} argument{plural}."),
        _ => format!("{name} takes {least} to {most} argument{plural}."),
    }
}

fn undefined(cursor: &Cursor<'_>, kind: &str, name: &str, arguments: &[Literal], hint: Option<String>) -> SyntaxError {
    let types: Vec<&str> = arguments.iter().map(type_name).collect();
    let message = format!("{kind} {name}({}) does not exist", types.join(", "));
    SyntaxError { hint, ..cursor.error_saying(ErrorKind::UndefinedFunction, message) }
}

/// As PostgreSQL names the type of a literal.
fn type_name(literal: &Literal) -> &'static str {
    match literal {
        Literal::Text(_) | Literal::Null => "unknown",
        Literal::Bool(_) => "boolean",
        Literal::Number(number) if number.contains(['.', 'e', 'E']) => "numeric",
        Literal::Number(_) => "integer",
    }
}
