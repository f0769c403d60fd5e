//! Syntax errors.

use thiserror::Error;

/// What a text has wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct SyntaxError {
    /// For the SQLSTATE.
    pub kind: ErrorKind,
    /// For example `Syntax error at or near "ROUTTE"`.
    pub message: String,
    /// A sentence, for example `Did you mean "ROUTE"?`.
    pub hint: Option<String>,
    /// Characters from 1, as PostgreSQL's `P` field counts them, over the whole string that was sent.
    pub position: usize,
}

/// What kind of mistake a [`SyntaxError`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// 42601.
    Syntax,
    /// 42622: an identifier over 128 bytes.
    NameTooLong,
    /// 54001: nested too deep, or too long.
    TooComplex,
    /// 42883: a procedure or meta-function that does not exist.
    UndefinedFunction,
    /// 22003: a number too large for what it is for.
    NumberOutOfRange,
}
