#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::mem::discriminant;

use super::PRODUCTIONS;
use crate::{Statement, parse, words};

/// A piece of a grammar.
#[derive(Debug, Clone)]
enum Piece {
    Word(String),
    /// One of these, or nothing when it is optional.
    Choice(Vec<Vec<Piece>>, bool),
    /// What is before it once more, behind a comma.
    Again,
}

fn pieces<'a>(tokens: &mut impl Iterator<Item = &'a str>, close: Option<&str>) -> Vec<Vec<Piece>> {
    let mut branches = vec![Vec::new()];
    while let Some(token) = tokens.next() {
        let piece = match token {
            _ if Some(token) == close => return branches,
            "[," => {
                assert_eq!(tokens.next(), Some("...]"));
                Piece::Again
            }
            "[" => Piece::Choice(pieces(tokens, Some("]")), true),
            "{" => Piece::Choice(pieces(tokens, Some("}")), false),
            "|" => {
                branches.push(Vec::new());
                continue;
            }
            word => Piece::Word(word.to_owned()),
        };
        branches.last_mut().unwrap().push(piece);
    }
    assert_eq!(close, None, "a bracket is left open");
    branches
}

/// A word of ours stands for itself, a lower-case one for a name or a number.
fn written(word: &str) -> String {
    match word {
        "number" => "7".to_owned(),
        name if name.starts_with(|first: char| first.is_ascii_lowercase()) => format!("a_{name}"),
        itself => itself.to_owned(),
    }
}

/// Texts in which each branch is taken at least once.
fn texts(sequence: &[Piece]) -> Vec<String> {
    let mut parts: Vec<Vec<String>> = Vec::new();
    for piece in sequence {
        match piece {
            Piece::Word(word) => parts.push(vec![written(word)]),
            Piece::Choice(branches, optional) => {
                let none = optional.then(String::new);
                parts.push(none.into_iter().chain(branches.iter().flat_map(|branch| texts(branch))).collect());
            }
            Piece::Again => {
                // What repeats in `a = b [, ...]` is the assignment.
                let assignment = parts.len() >= 3 && parts[parts.len() - 2] == ["="];
                let unit = &parts[parts.len() - if assignment { 3 } else { 1 }..];
                let unit: Vec<&str> = unit.iter().map(|part| part[0].as_str()).collect();
                let again = format!(", {}", unit.join(" "));
                parts.push(vec![String::new(), again]);
            }
        }
    }
    let count = parts.iter().map(Vec::len).max().unwrap_or_default();
    let text = |index: usize| parts.iter().map(|part| part[index % part.len()].as_str()).collect::<Vec<_>>().join(" ");
    (0..count).map(text).collect()
}

fn only(text: &str) -> Statement {
    let mut parsed = parse(text).unwrap_or_else(|error| unreachable!("{text}: {error:?}"));
    assert_eq!(parsed.len(), 1, "{text}");
    parsed.remove(0).statement
}

#[test]
fn what_the_grammars_make_is_read() {
    let mut made = 0;
    for production in PRODUCTIONS {
        let example = only(production.example);
        assert!(!matches!(example, Statement::Sql(_)), "{}", production.example);
        let branches = pieces(&mut production.grammar.split_whitespace(), None);
        assert_eq!(branches.len(), 1, "{}", production.title);
        for text in texts(&branches[0]) {
            made += 1;
            assert_eq!(discriminant(&only(&text)), discriminant(&example), "{text}");
        }
    }
    assert!(made > 250, "{made}");
}

#[test]
fn every_word_of_the_parser_is_in_a_grammar() {
    let used: BTreeSet<&str> = PRODUCTIONS.iter().flat_map(|row| row.grammar.split_whitespace()).collect();
    // These belong to what is described elsewhere: procedures, and what sqlparser reads.
    let elsewhere = ["CALL", "CONSTRAINTS", "COPY", "PRIVILEGES"];
    let missing: Vec<_> =
        words::KEYWORDS.iter().filter(|word| !used.contains(*word) && !elsewhere.contains(*word)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let ours = |word: &&&str| word.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    let unknown: Vec<_> = used.iter().filter(ours).filter(|word| !words::is_keyword(word)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn titles_are_apart() {
    let titles: BTreeSet<&str> = PRODUCTIONS.iter().map(|row| row.title).collect();
    assert_eq!(titles.len(), PRODUCTIONS.len());
}
