//! The law `parse(print(statement)) == statement`, plain and with secrets redacted, and that no text makes the parser
//! panic.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first surprise")]

#[path = "law/strategies.rs"]
mod strategies;

use proptest::prelude::*;
use switchyard_dialect::{Redacted, Statement, parse, quote_ident, quote_literal};

fn only(text: &str) -> Statement {
    let parsed = parse(text).unwrap_or_else(|error| panic!("{text}\n{error:?}"));
    assert_eq!(parsed.len(), 1, "{text}");
    let parsed = parsed.into_iter().next().unwrap();
    assert_eq!(parsed.text, text);
    assert_eq!(parsed.position, 1);
    parsed.statement
}

/// Enough to meet every kind of statement several times; `PROPTEST_CASES` asks for more.
fn config() -> ProptestConfig {
    let config = ProptestConfig::default();
    ProptestConfig { cases: config.cases.max(1_000), ..config }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn printed_statements_parse_to_themselves(statement in strategies::statement()) {
        prop_assert_eq!(only(&statement.to_string()), statement);
    }

    #[test]
    fn redacted_statements_parse_and_show_no_secret(statement in strategies::statement()) {
        let text = Redacted(&statement).to_string();
        prop_assert!(!text.contains(strategies::SECRET_MARK), "{}", text);
        let once = only(&text);
        // Redacting is done once and for all.
        prop_assert_eq!(Redacted(&once).to_string(), text.clone());
        prop_assert_eq!(once.to_string(), text);
    }

    #[test]
    fn several_statements_with_comments_between(
        statements in prop::collection::vec(strategies::statement(), 0..4),
        gap in r"( |\n|\t|;|-- [a-z';]*\n|/\* [a-z';\*]{0,5} \*/){0,4}",
    ) {
        let mut text = gap.clone();
        for statement in &statements {
            text += &format!("{statement}{gap};{gap}");
        }
        let parsed = parse(&text).unwrap();
        prop_assert_eq!(parsed.len(), statements.len());
        for (parsed, statement) in parsed.iter().zip(&statements) {
            prop_assert_eq!(&parsed.statement, statement);
            let from: String = text.chars().skip(parsed.position - 1).collect();
            prop_assert!(from.starts_with(&parsed.text));
        }
    }

    #[test]
    fn quoted_names_and_literals_are_read_back(name in strategies::name(), text in any::<String>()) {
        let statement = format!("CREATE SUBNET {} WITH {}", quote_ident(&name), quote_literal(&text));
        prop_assert_eq!(only(&statement), Statement::CreateSubnet { name: switchyard_dialect::Ident(name), prefix: text });
    }

    #[test]
    fn any_text_gets_an_answer(text in any::<String>()) {
        check(&text)?;
    }

    #[test]
    fn words_and_signs_in_any_order_get_an_answer(words in prop::collection::vec(strategies::token(), 0..20)) {
        check(&words.join(" "))?;
        check(&words.concat())?;
    }

    #[test]
    fn mutated_statements_get_an_answer(
        statement in strategies::statement(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..5_u8, strategies::token()), 1..4),
    ) {
        let mut text: Vec<char> = statement.to_string().chars().collect();
        for (at, kind, token) in changes {
            let at = at.index(text.len() + 1);
            match kind {
                0 => text.truncate(at),
                1 => drop(text.splice(at..(at + 1).min(text.len()), [])),
                2 => drop(text.splice(at..at, token.chars())),
                3 => drop(text.splice(at..(at + 3).min(text.len()), token.chars())),
                _ => text.rotate_left(at),
            }
            if text.is_empty() {
                text.push(' ');
            }
        }
        check(&String::from_iter(text))?;
    }
}

/// Whatever comes of it: a place within the text, and statements that obey the law.
fn check(text: &str) -> Result<(), TestCaseError> {
    match parse(text) {
        Err(error) => {
            prop_assert!((1..=text.chars().count() + 1).contains(&error.position), "{}", text);
            prop_assert!(!error.message.is_empty());
        }
        Ok(parsed) => {
            for parsed in parsed {
                // What sqlparser prints, it does not always read as the same.
                if parsed.statement.takes_values() && !matches!(parsed.statement, Statement::Prepare { .. }) {
                    continue;
                }
                let printed = parsed.statement.to_string();
                prop_assert_eq!(only(&printed), parsed.statement, "{}", text);
            }
        }
    }
    Ok(())
}
