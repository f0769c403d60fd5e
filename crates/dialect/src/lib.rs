//! Our statements as text: the syntax tree, its parser (sqlparser reads what is not ours) and its printer. No meaning.
//!
//! The law: `parse(print(statement)) == statement`, and the printed form with secrets redacted parses too.

mod ast;
mod error;
mod function;
mod grammar;
mod parser;
mod printer;
mod secrets;
mod sql;
mod words;

pub use ast::*;
pub use error::{ErrorKind, SyntaxError};
pub use function::{MetaFunction, Procedure};
pub use grammar::{PRODUCTIONS, Production};
pub use parser::{
    Cut, Cuts, Numbered, ParseLimits, Parsed, Statements, Whose, bind, cut, number_placeholders, parameter_count,
    parse, parse_first, parse_template, parse_within,
};
pub use printer::{Redacted, quote_ident, quote_literal};
pub use secrets::mask_login;
pub use sql::SqlStatement;
