//! The extended protocol's parameters, `$1` and so on, in our statements: their grammar has literals only, so values
//! are put into the text. Statements of SQL keep theirs, and get the values when they run.

use super::cursor::Result;
use super::lexer::{Kind, Lexer, Token, error_at};
use super::{ParseLimits, Parsed};
use crate::ast::Literal;
use crate::error::ErrorKind;
use crate::printer;

/// The highest number of a parameter in a text; 0 if it has none.
///
/// # Errors
/// If the text cannot be cut into tokens, or a number is above what the protocol can bind.
pub fn parameter_count(text: &str) -> Result<usize> {
    let mut count = 0;
    for (_, number) in parameters(text)? {
        count = count.max(number);
    }
    Ok(count)
}

/// The text with literals for its parameters, ready for [`parse`](crate::parse). Positions in it are other ones.
///
/// # Errors
/// As [`parameter_count`], and if a value is missing.
pub fn bind(text: &str, values: &[Literal]) -> Result<String> {
    let mut bound = String::with_capacity(text.len());
    let mut copied = 0;
    for (token, number) in parameters(text)? {
        let Some(value) = number.checked_sub(1).and_then(|index| values.get(index)) else {
            return Err(undefined(text, token));
        };
        bound.push_str(text.get(copied..token.start()).unwrap_or_default());
        // The blanks keep a sign before it, and a word behind it, apart.
        bound.push(' ');
        bound.push_str(&printer::literal(value));
        bound.push(' ');
        copied = token.end();
    }
    bound.push_str(text.get(copied..).unwrap_or_default());
    Ok(bound)
}

/// Reads a text that may have parameters: a statement of our own as if they were all NULL. Of more than two statements,
/// the first two are returned: no more than one can be prepared.
///
/// # Errors
/// As [`parse_within`](crate::parse_within).
pub fn parse_template(text: &str, limits: ParseLimits) -> Result<Vec<Parsed>> {
    let two = |text: &str| super::parse_first(text, limits, 2).map(|(statements, _)| statements);
    let plain = two(text);
    match parameter_count(text) {
        Ok(count @ 1..) => {
            let nothing = vec![Literal::Null; count];
            let ours = bind(text, &nothing).and_then(|bound| two(&bound));
            match ours {
                Ok(statements) if !statements.iter().any(|one| one.statement.takes_values()) => Ok(statements),
                _ => plain,
            }
        }
        _ => plain,
    }
}

/// The parameters and their numbers, in the text's order.
fn parameters(text: &str) -> Result<Vec<(Token, usize)>> {
    super::check_length(text, ParseLimits::HIGHEST.statement_bytes_max)?;
    let mut lexer = Lexer::new(text);
    let mut tokens = Vec::new();
    let mut parameters = Vec::new();
    loop {
        let end = lexer.statement(&mut tokens)?;
        for token in &tokens {
            let Some(digits) = token.text(text).strip_prefix('$').filter(|_| token.kind == Kind::Foreign) else {
                continue;
            };
            match digits.parse::<u16>() {
                Ok(number) => parameters.push((*token, usize::from(number))),
                Err(_) => return Err(undefined(text, *token)),
            }
        }
        if end.kind == Kind::End {
            return Ok(parameters);
        }
    }
}

fn undefined(text: &str, token: Token) -> crate::error::SyntaxError {
    let shown: String = token.text(text).chars().take(12).collect();
    error_at(text, token.start(), ErrorKind::Syntax, format!("there is no parameter {shown}"))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Procedure, Statement, parse};

    #[test]
    fn counts_only_what_is_a_parameter() {
        let text = "CALL f($1, '$2', \"$3\", $$ $4 $$) -- $5\n /* $6 */; SELECT a$7, $a$ $8 $a$; SELECT $9";
        assert_eq!(parameter_count(text).unwrap(), 9);
        assert_eq!(parameter_count("SHOW ALL").unwrap(), 0);
        let error = parameter_count("SHOW $65536").unwrap_err();
        assert_eq!((error.kind, error.position), (ErrorKind::Syntax, 6));
        assert_eq!(error.message, "there is no parameter $65536");
    }

    #[test]
    fn binds_every_kind_of_literal() {
        let values = [Literal::Text("it's".into()), Literal::Number("-5".into()), Literal::Bool(true), Literal::Null];
        let bound = bind("CALL f($1,$2,-$2,$3,$4,$1)", &values).unwrap();
        assert_eq!(bound, "CALL f( 'it''s' , -5 ,- -5 , TRUE , NULL , 'it''s' )");
        let error = bind("CALL f($5)", &values).unwrap_err();
        assert_eq!(error.message, "there is no parameter $5");
        assert!(bind("CALL f($0)", &values).is_err());
    }

    proptest! {
        #[test]
        fn a_value_stays_one_value(text in any::<String>(), number in any::<String>()) {
            let values = [Literal::Text(text), Literal::Number(number.clone()), Literal::Text(number)];
            let bound = bind("CALL hg_table_group_set_warehouse_replica_count($1, $2, $3)", &values).unwrap();
            let parsed = parse(&bound).unwrap();
            prop_assert_eq!(parsed.len(), 1);
            let Statement::Call { procedure, arguments } = &parsed.first().unwrap().statement else {
                return Err(TestCaseError::fail(bound));
            };
            prop_assert_eq!(*procedure, Procedure::TableGroupSetWarehouseReplicaCount);
            prop_assert_eq!(arguments.len(), 3);
            prop_assert_eq!(arguments.first(), values.first());
            prop_assert_eq!(arguments.last(), values.last());
        }
    }
}
