//! Patterns that DataFusion would read in another way, said in its own words; those it has no words for are refused.

use sqlparser::ast::{BinaryOperator, Expr, UnaryOperator, Value, ValueWithSpan};

use super::error::QueryError;
use super::rewrite::call;
use crate::error::SqlState;

/// The function that does with a pattern what [`like`] does with one that is known before.
pub(super) const LIKE_PATTERN: &str = "__like_pattern";

/// The longest LIKE pattern: what it is made into takes some thousand times its memory, and its length in steps for each
/// character of a text, in which nothing stops it.
const LIKE_BYTES_MAX: usize = 4_096;

type Result<T> = std::result::Result<T, QueryError>;

/// Rewrites one expression; those within it come by themselves.
pub(super) fn rewrite(expression: &mut Expr) -> Result<()> {
    match expression {
        Expr::Like { pattern, escape_char, .. } | Expr::ILike { pattern, escape_char, .. } => {
            let escape = match escape_char.take() {
                Some(escape) => escape_of(&escape)?,
                None => Some('\\'),
            };
            let taken = std::mem::replace(pattern.as_mut(), text(String::new()));
            **pattern = like_pattern(taken, escape)?;
            Ok(())
        }
        Expr::SimilarTo { negated, expr, pattern, escape_char } => {
            let escape = match escape_char {
                Some(escape) => escape_of(escape)?,
                None => Some('\\'),
            };
            let written = literal(pattern).ok_or_else(|| unsupported("SIMILAR TO a pattern that is no literal"))?;
            let matched = Expr::BinaryOp {
                left: Box::new(Expr::Nested(expr.clone())),
                op: BinaryOperator::PGRegexMatch,
                right: Box::new(text(similar(&written, escape)?)),
            };
            let matched = Expr::Nested(Box::new(matched));
            *expression =
                if *negated { Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(matched) } } else { matched };
            Ok(())
        }
        _ => Ok(()),
    }
}

/// What stands for a LIKE pattern: it has a backslash for its escape character, and is not too long.
///
/// # Errors
/// When it is, or ends with its escape character.
pub(super) fn like_pattern(pattern: Expr, escape: Option<char>) -> Result<Expr> {
    match literal(&pattern) {
        Some(written) => Ok(text(like(&written, escape)?)),
        None => Ok(call(LIKE_PATTERN, vec![pattern, text(escape.map(String::from).unwrap_or_default())])),
    }
}

fn unsupported(what: &str) -> QueryError {
    QueryError::new(SqlState::FeatureNotSupported, format!("{what} is not supported"))
}

fn literal(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) => Some(text.clone()),
        _ => None,
    }
}

fn text(pattern: String) -> Expr {
    Expr::value(Value::SingleQuotedString(pattern))
}

fn escape_of(escape: &ValueWithSpan) -> Result<Option<char>> {
    let Value::SingleQuotedString(written) = &escape.value else {
        return Err(unsupported("ESCAPE with something that is no literal"));
    };
    let mut characters = written.chars();
    match (characters.next(), characters.next()) {
        (first, None) => Ok(first),
        _ => Err(QueryError {
            hint: Some("Escape string must be empty or one character.".to_owned()),
            ..QueryError::new(SqlState::InvalidEscapeSequence, "invalid escape string")
        }),
    }
}

/// A LIKE pattern with a backslash for its escape character.
pub(super) fn like(pattern: &str, escape: Option<char>) -> Result<String> {
    if pattern.len() > LIKE_BYTES_MAX {
        let message = format!("LIKE pattern is too long: {} bytes of {LIKE_BYTES_MAX}", pattern.len());
        return Err(QueryError::new(SqlState::ProgramLimitExceeded, message));
    }
    let mut written = String::new();
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        let (character, escaped) = if Some(character) == escape {
            let next = characters.next().ok_or_else(|| {
                QueryError::new(SqlState::InvalidEscapeSequence, "LIKE pattern must not end with escape character")
            })?;
            (next, true)
        } else {
            (character, false)
        };
        if character == '\\' || escaped && matches!(character, '%' | '_') {
            written.push('\\');
        }
        written.push(character);
    }
    Ok(written)
}

/// A SIMILAR TO pattern as a regular expression.
fn similar(pattern: &str, escape: Option<char>) -> Result<String> {
    let mut written = String::from("^(?:");
    let mut characters = pattern.chars();
    let mut in_class = false;
    while let Some(character) = characters.next() {
        if Some(character) == escape {
            let next = characters.next().unwrap_or(character);
            if !next.is_alphanumeric() {
                written.push('\\');
            } else if Some(next) != escape {
                return Err(unsupported("this escape in SIMILAR TO"));
            }
            written.push(next);
            continue;
        }
        match character {
            '[' => in_class = true,
            ']' => in_class = false,
            _ => {}
        }
        match character {
            '%' if !in_class => written.push_str("(?s:.*)"),
            '_' if !in_class => written.push_str("(?s:.)"),
            '(' if !in_class => written.push_str("(?:"),
            '.' | '^' | '$' | '\\' if !in_class => {
                written.push('\\');
                written.push(character);
            }
            '\\' => written.push_str("\\\\"),
            other => written.push(other),
        }
    }
    written.push_str(")$");
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_become_backslashes() {
        for (pattern, expected) in [("a!%c", "a\\%c"), ("a!!%", "a!%"), ("a\\_", "a\\\\_"), ("a!b", "ab")] {
            assert_eq!(like(pattern, Some('!')), Ok(expected.to_owned()), "{pattern}");
        }
        assert_eq!(like("a!", Some('!')).map_err(|error| error.sqlstate), Err(SqlState::InvalidEscapeSequence));
    }

    #[test]
    fn similar_patterns_are_whole_regular_expressions() {
        for (pattern, expected) in
            [("a%", "^(?:a(?s:.*))$"), ("(a|b)_", "^(?:(?:a|b)(?s:.))$"), ("a.b", "^(?:a\\.b)$"), ("\\%", "^(?:\\%)$")]
        {
            assert_eq!(similar(pattern, Some('\\')), Ok(expected.to_owned()), "{pattern}");
        }
    }
}
