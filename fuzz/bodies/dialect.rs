//! Statements as text.

use switchyard_dialect::{Statement, parse};

/// Reads a string; what was read and is ours is printed and read again as the same.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match parse(text) {
        Err(error) => assert!((1..=text.chars().count() + 1).contains(&error.position)),
        Ok(statements) => {
            for parsed in statements.into_iter().filter(|parsed| !matches!(parsed.statement, Statement::Sql(_))) {
                let printed = parsed.statement.to_string();
                let again = parse(&printed);
                let again = again.as_ref().ok().and_then(|again| again.first()).map(|again| &again.statement);
                assert_eq!(again, Some(&parsed.statement), "{printed}");
            }
        }
    }
}
