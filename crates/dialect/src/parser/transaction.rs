//! Transactions and savepoints, as in PostgreSQL, and RESTORE CATALOG.

use super::cursor::{Cursor, Result};
use crate::ast::Statement;

/// After BEGIN.
pub(super) fn begin(cursor: &mut Cursor<'_>) -> Result<Statement> {
    work(cursor);
    Ok(Statement::Begin { start: false, modes: modes(cursor)? })
}

/// After START.
pub(super) fn start(cursor: &mut Cursor<'_>) -> Result<Statement> {
    cursor.expect("TRANSACTION")?;
    Ok(Statement::Begin { start: true, modes: modes(cursor)? })
}

/// After COMMIT or END.
pub(super) fn commit(cursor: &mut Cursor<'_>) -> Result<Statement> {
    work(cursor);
    no_chain(cursor)?;
    Ok(Statement::Commit)
}

/// After ROLLBACK or ABORT; only the former knows savepoints.
pub(super) fn rollback(cursor: &mut Cursor<'_>, savepoints: bool) -> Result<Statement> {
    work(cursor);
    if savepoints && cursor.accept("TO") {
        savepoint_word(cursor);
        return Ok(Statement::RollbackTo(cursor.name()?));
    }
    no_chain(cursor)?;
    Ok(Statement::Rollback)
}

/// After SAVEPOINT.
pub(super) fn savepoint(cursor: &mut Cursor<'_>) -> Result<Statement> {
    Ok(Statement::Savepoint(cursor.name()?))
}

/// After RELEASE.
pub(super) fn release(cursor: &mut Cursor<'_>) -> Result<Statement> {
    savepoint_word(cursor);
    Ok(Statement::ReleaseSavepoint(cursor.name()?))
}

/// After RESTORE.
pub(super) fn restore(cursor: &mut Cursor<'_>) -> Result<Statement> {
    cursor.expect_all(&["CATALOG", "TO", "VERSION"])?;
    Ok(Statement::RestoreCatalog { version: cursor.natural()? })
}

/// `[WORK | TRANSACTION]`
fn work(cursor: &mut Cursor<'_>) {
    if !cursor.accept("WORK") {
        cursor.accept("TRANSACTION");
    }
}

/// `[SAVEPOINT]`, unless that is the savepoint's name.
fn savepoint_word(cursor: &mut Cursor<'_>) {
    let index = cursor.index();
    if cursor.accept("SAVEPOINT") && cursor.at_end() {
        cursor.back_to(index);
    }
}

/// `[AND NO CHAIN]`; transactions are not chained.
fn no_chain(cursor: &mut Cursor<'_>) -> Result<()> {
    if cursor.accept("AND") { cursor.expect_all(&["NO", "CHAIN"]) } else { Ok(()) }
}

/// At least one mode.
pub(super) fn some_modes(cursor: &mut Cursor<'_>) -> Result<Vec<String>> {
    if cursor.at_end() { Err(cursor.error()) } else { modes(cursor) }
}

/// Modes up to the end of the statement, with commas or blanks between.
fn modes(cursor: &mut Cursor<'_>) -> Result<Vec<String>> {
    let mut modes = Vec::new();
    if cursor.at_end() {
        return Ok(modes);
    }
    loop {
        modes.push(mode(cursor)?.to_owned());
        if !cursor.accept_symbol(',') && cursor.at_end() {
            return Ok(modes);
        }
    }
}

fn mode(cursor: &mut Cursor<'_>) -> Result<&'static str> {
    if cursor.accept("ISOLATION") {
        cursor.expect("LEVEL")?;
        return isolation(cursor);
    }
    if cursor.accept("READ") {
        if cursor.accept("ONLY") {
            return Ok("READ ONLY");
        }
        cursor.expect("WRITE")?;
        return Ok("READ WRITE");
    }
    if cursor.accept("NOT") {
        cursor.expect("DEFERRABLE")?;
        return Ok("NOT DEFERRABLE");
    }
    cursor.expect("DEFERRABLE")?;
    Ok("DEFERRABLE")
}

fn isolation(cursor: &mut Cursor<'_>) -> Result<&'static str> {
    if cursor.accept("SERIALIZABLE") {
        return Ok("ISOLATION LEVEL SERIALIZABLE");
    }
    if cursor.accept("REPEATABLE") {
        cursor.expect("READ")?;
        return Ok("ISOLATION LEVEL REPEATABLE READ");
    }
    cursor.expect("READ")?;
    if cursor.accept("COMMITTED") {
        return Ok("ISOLATION LEVEL READ COMMITTED");
    }
    cursor.expect("UNCOMMITTED")?;
    Ok("ISOLATION LEVEL READ UNCOMMITTED")
}
