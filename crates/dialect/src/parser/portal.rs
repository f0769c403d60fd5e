//! Cursors, prepared statements and notifications, as in PostgreSQL.

use sqlparser::ast::Statement as SqlStatement;

use super::cursor::{Cursor, Result};
use super::lexer::Kind;
use super::{parameters, sql};
use crate::ast::{CursorOptions, FetchCount, FetchDirection, Ident, SecretText, Statement};

/// After DECLARE.
pub(super) fn declare(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let name = exact_name(cursor)?;
    let mut options = CursorOptions::default();
    loop {
        if options.scroll.is_none() && cursor.accept("SCROLL") {
            options.scroll = Some(true);
        } else if options.scroll.is_none() && cursor.accept("NO") {
            cursor.expect("SCROLL")?;
            options.scroll = Some(false);
        } else if cursor.accept("BINARY") {
            options.binary = true;
        } else if !cursor.accept("INSENSITIVE") && !cursor.accept("ASENSITIVE") {
            break;
        }
    }
    cursor.expect("CURSOR")?;
    if cursor.accept("WITH") {
        cursor.expect("HOLD")?;
        options.hold = true;
    } else if cursor.accept("WITHOUT") {
        cursor.expect("HOLD")?;
    }
    cursor.expect("FOR")?;
    let at = cursor.index();
    let query = sql::rest(cursor)?;
    if !matches!(*query, SqlStatement::Query(_)) {
        cursor.back_to(at);
        return Err(cursor.error());
    }
    Ok(Statement::DeclareCursor { name, options, query })
}

/// After FETCH or MOVE.
pub(super) fn fetch(cursor: &mut Cursor<'_>, moves: bool) -> Result<Statement> {
    let direction = direction(cursor)?;
    if !cursor.accept("FROM") {
        cursor.accept("IN");
    }
    Ok(Statement::FetchCursor { name: exact_name(cursor)?, direction, moves })
}

fn direction(cursor: &mut Cursor<'_>) -> Result<FetchDirection> {
    // The words are names as well: the last one is the cursor's.
    let named = matches!(cursor.kind_ahead(1), Kind::Semicolon | Kind::End);
    if named {
        return Ok(FetchDirection::Forward(FetchCount::Rows(1)));
    }
    if let Some(count) = count(cursor)? {
        return Ok(FetchDirection::Forward(FetchCount::Rows(count)));
    }
    Ok(if cursor.accept("NEXT") {
        FetchDirection::Forward(FetchCount::Rows(1))
    } else if cursor.accept("PRIOR") {
        FetchDirection::Backward(FetchCount::Rows(1))
    } else if cursor.accept("FIRST") {
        FetchDirection::Absolute(1)
    } else if cursor.accept("LAST") {
        FetchDirection::Absolute(-1)
    } else if cursor.accept("ABSOLUTE") {
        FetchDirection::Absolute(count(cursor)?.ok_or_else(|| cursor.error())?)
    } else if cursor.accept("RELATIVE") {
        FetchDirection::Relative(count(cursor)?.ok_or_else(|| cursor.error())?)
    } else if cursor.accept("ALL") {
        FetchDirection::Forward(FetchCount::All)
    } else if cursor.accept("FORWARD") {
        FetchDirection::Forward(count_or_all(cursor)?)
    } else if cursor.accept("BACKWARD") {
        FetchDirection::Backward(count_or_all(cursor)?)
    } else {
        FetchDirection::Forward(FetchCount::Rows(1))
    })
}

fn count_or_all(cursor: &mut Cursor<'_>) -> Result<FetchCount> {
    if cursor.accept("ALL") {
        return Ok(FetchCount::All);
    }
    Ok(FetchCount::Rows(count(cursor)?.unwrap_or(1)))
}

/// A whole number with its sign, if there is one.
fn count(cursor: &mut Cursor<'_>) -> Result<Option<i32>> {
    let at = cursor.index();
    let Some(number) = cursor.signed_number()? else { return Ok(None) };
    number.parse().map(Some).map_err(|_| {
        cursor.back_to(at);
        cursor.error()
    })
}

/// After CLOSE.
pub(super) fn close(cursor: &mut Cursor<'_>) -> Result<Statement> {
    Ok(Statement::CloseCursor(name_or_all(cursor)?))
}

/// After DEALLOCATE.
pub(super) fn deallocate(cursor: &mut Cursor<'_>) -> Result<Statement> {
    if !matches!(cursor.kind_ahead(1), Kind::Semicolon | Kind::End) {
        cursor.expect("PREPARE")?;
    }
    Ok(Statement::Deallocate(name_or_all(cursor)?))
}

fn name_or_all(cursor: &mut Cursor<'_>) -> Result<Option<Ident>> {
    if cursor.accept("ALL") { Ok(None) } else { exact_name(cursor).map(Some) }
}

/// The statements that cannot be prepared, since they are about preparing, cursors or transactions themselves.
const NOT_PREPARED: [&str; 20] = [
    "PREPARE",
    "EXECUTE",
    "DEALLOCATE",
    "DECLARE",
    "FETCH",
    "MOVE",
    "CLOSE",
    "BEGIN",
    "START",
    "COMMIT",
    "END",
    "ROLLBACK",
    "ABORT",
    "SAVEPOINT",
    "RELEASE",
    "LISTEN",
    "UNLISTEN",
    "NOTIFY",
    "DISCARD",
    "COPY",
];

/// After PREPARE.
pub(super) fn prepare(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let name = exact_name(cursor)?;
    let types = if cursor.accept_symbol('(') { types(cursor)? } else { Vec::new() };
    cursor.expect("AS")?;
    let (first, Some(last)) = (cursor.token(), cursor.tokens().last()) else { return Err(cursor.error()) };
    if cursor.at_end() || NOT_PREPARED.iter().any(|word| cursor.at(word)) {
        return Err(cursor.error());
    }
    let text = cursor.text().get(first.start()..last.end()).unwrap_or_default();
    let before = cursor.text().get(..first.start()).map_or(0, |before| before.chars().count());
    let mut statements = parameters::parse_template(text, cursor.limits()).map_err(|mut error| {
        error.position += before;
        error
    })?;
    let Some(parsed) = statements.pop() else { return Err(cursor.error()) };
    cursor.back_to(cursor.tokens().len());
    Ok(Statement::Prepare { name, types, text: SecretText::new(text), statement: Box::new(parsed.statement) })
}

/// The names of types, as typed, up to the closing parenthesis.
fn types(cursor: &mut Cursor<'_>) -> Result<Vec<String>> {
    let types = cursor.list(one_type)?;
    cursor.expect_symbol(')')?;
    Ok(types)
}

fn one_type(cursor: &mut Cursor<'_>) -> Result<String> {
    let (start, mut end, mut depth) = (cursor.token().start(), cursor.token().start(), 0_usize);
    loop {
        match (cursor.token().kind, cursor.token_text()) {
            (Kind::Symbol, "(") if end > start => depth += 1,
            (Kind::Symbol, ")") if depth > 0 => depth -= 1,
            (Kind::Symbol, ")" | ",") if depth == 0 && end > start => break,
            (Kind::Symbol, ",") if depth > 0 => {}
            (Kind::Symbol, "[" | "]" | ".") if end > start => {}
            (Kind::Number, _) if depth > 0 || end > start => {}
            (Kind::Word | Kind::Quoted, _) => {}
            _ => return Err(cursor.error()),
        }
        end = cursor.token().end();
        cursor.advance();
    }
    Ok(cursor.text().get(start..end).unwrap_or_default().to_owned())
}

/// After EXECUTE.
pub(super) fn execute(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let name = exact_name(cursor)?;
    let arguments = if cursor.accept_symbol('(') { sql::arguments(cursor)? } else { Vec::new() };
    Ok(Statement::Execute { name, arguments })
}

/// After LISTEN.
pub(super) fn listen(cursor: &mut Cursor<'_>) -> Result<Statement> {
    Ok(Statement::Listen(exact_name(cursor)?))
}

/// After UNLISTEN.
pub(super) fn unlisten(cursor: &mut Cursor<'_>) -> Result<Statement> {
    if cursor.accept_symbol('*') {
        return Ok(Statement::Unlisten(None));
    }
    Ok(Statement::Unlisten(Some(exact_name(cursor)?)))
}

/// After NOTIFY.
pub(super) fn notify(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let channel = exact_name(cursor)?;
    let payload = if cursor.accept_symbol(',') { Some(cursor.string()?) } else { None };
    Ok(Statement::Notify { channel, payload })
}

/// A name as PostgreSQL folds it: protocol messages give the same names, and know no case.
fn exact_name(cursor: &mut Cursor<'_>) -> Result<Ident> {
    let quoted = cursor.token().kind == Kind::Quoted;
    let Ident(name) = cursor.name()?;
    Ok(Ident(if quoted { name } else { name.to_ascii_lowercase() }))
}
