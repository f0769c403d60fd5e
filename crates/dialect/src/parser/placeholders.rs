//! The parameters of Vertica's clients, `?`, as numbers.

use super::ParseLimits;
use super::cursor::Result;
use super::lexer::{Kind, Lexer};

/// A text with ` $1 `, ` $2 ` and so on in place of its question marks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Numbered {
    /// The text.
    pub text: String,
    /// Where the question marks were: characters, from 1.
    places: Vec<usize>,
}

impl Numbered {
    /// Where a character of the text, counted from 1, was before the question marks were replaced.
    pub fn original(&self, position: usize) -> usize {
        let mut grown = 0;
        for (index, place) in self.places.iter().enumerate() {
            let behind = position.saturating_sub(place + grown);
            if position <= place + grown {
                break;
            }
            let length = replacement(index).len();
            if behind < length {
                return *place;
            }
            grown += length - 1;
        }
        position.saturating_sub(grown)
    }
}

/// The blanks keep a word on either side of it apart.
fn replacement(index: usize) -> String {
    format!(" ${} ", index + 1)
}

/// Numbers the question marks of a text that stand for parameters, from the first to the last: those in texts, quoted
/// names and comments stay.
///
/// # Errors
/// If the text cannot be cut into tokens.
pub fn number_placeholders(text: &str) -> Result<Numbered> {
    super::check_length(text, ParseLimits::HIGHEST.statement_bytes_max)?;
    let mut lexer = Lexer::new(text);
    let mut tokens = Vec::new();
    let mut numbered = Numbered { text: String::with_capacity(text.len()), places: Vec::new() };
    let (mut copied, mut characters) = (0, 0);
    loop {
        let end = lexer.statement(&mut tokens)?;
        for token in tokens.iter().filter(|token| token.kind == Kind::Symbol && token.text(text) == "?") {
            let before = text.get(copied..token.start()).unwrap_or_default();
            characters += before.chars().count() + 1;
            numbered.text.push_str(before);
            numbered.text.push_str(&replacement(numbered.places.len()));
            numbered.places.push(characters);
            copied = token.end();
        }
        if end.kind == Kind::End {
            numbered.text.push_str(text.get(copied..).unwrap_or_default());
            return Ok(numbered);
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_what_is_a_parameter_is_numbered() {
        for (text, expected) in [
            ("SELECT ?", "SELECT  $1 "),
            ("SELECT a=?AND b=?::int", "SELECT a= $1 AND b= $2 ::int"),
            (
                "SELECT '?', \"?\", $$?$$, E'\\'?' -- ?\n/* ? */, ?; SELECT ?",
                "SELECT '?', \"?\", $$?$$, E'\\'?' -- ?\n/* ? */,  $1 ; SELECT  $2 ",
            ),
            ("COMMIT;", "COMMIT;"),
            ("", ""),
        ] {
            assert_eq!(number_placeholders(text).unwrap().text, expected);
        }
        assert!(number_placeholders("SELECT 'a").is_err());
    }

    #[test]
    fn positions_are_found_again() {
        let text = format!("SELECT \u{e9}, {} x", ["?"; 12].join(","));
        let numbered = number_placeholders(&text).unwrap();
        for (position, character) in text.chars().enumerate().filter(|(_, character)| *character != ',') {
            let shown = numbered.text.chars().count();
            let mapped: Vec<usize> = (1..=shown).filter(|at| numbered.original(*at) == position + 1).collect();
            assert!(!mapped.is_empty(), "{character} at {position}");
            if character != '?' {
                assert_eq!(numbered.text.chars().nth(mapped.first().unwrap() - 1), Some(character));
            }
        }
        assert_eq!(numbered.original(1), 1);
    }

    proptest! {
        #[test]
        fn no_text_panics(text: String, position in 0..100_usize) {
            if let Ok(numbered) = number_placeholders(&text) {
                prop_assert!(numbered.original(position) <= position);
                prop_assert!(text.contains('?') || numbered.text == text);
            }
        }
    }
}
