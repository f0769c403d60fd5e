//! From statements to text.

use crate::ast::Statement;

/// Prints a statement with its secrets replaced by `'********'`.
#[derive(Debug)]
pub struct Redacted<'a>(pub &'a Statement);
