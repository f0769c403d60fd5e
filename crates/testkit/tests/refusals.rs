//! Each refusal that the catalog or the planner can make is met by a line of sql-tests/.
#![expect(clippy::unwrap_used, reason = "a test may end here")]

use switchyard_testkit::{files_under, repository_root};

/// Refusals that no statement meets.
const NOT_MET: &[(&str, &str)] = &[
    ("needs at least one member", "the grammar wants a member"),
    ("may not grant role", "the admin option is asked for before anything is planned"),
    ("cannot be a superuser:", "no statement makes a superuser"),
    ("invalid command-line argument for server process:", "startup packets have it"),
];

/// The string literal that begins at or after `at`, and where it ends.
fn literal(source: &str, at: usize) -> Option<(String, usize)> {
    let mut text = String::new();
    let mut rest = source.get(at..)?.char_indices().skip_while(|(_, c)| *c != '"').skip(1);
    while let Some((index, character)) = rest.next() {
        match character {
            '"' => return Some((text, at + index)),
            '\\' => match rest.next()?.1 {
                // The text goes on at the next line's first word.
                '\n' => text.push(' '),
                escaped => text.push(escaped),
            },
            other => text.push(other),
        }
    }
    None
}

/// The first literal after each of the marks, before the statement's or attribute's end.
fn messages(source: &str, marks: &[&str], ends: &str) -> Vec<String> {
    let mut found = Vec::new();
    for mark in marks {
        for (at, _) in source.match_indices(mark) {
            let Some((text, _)) = literal(source, at) else { continue };
            let before_end = source[at..].find(ends).is_none_or(|end| source[at..at + end].contains('"'));
            if before_end {
                found.push(text);
            }
        }
    }
    found
}

/// The longest piece of a message between what is filled in.
fn longest_piece(message: &str) -> String {
    let pieces = message.split('{').flat_map(|piece| piece.split_once('}').map_or([piece, ""], |(_, rest)| [rest, ""]));
    let piece = pieces.max_by_key(|piece| piece.len()).unwrap_or_default();
    piece.split_whitespace().collect::<Vec<_>>().join(" ").trim_matches(['"', ' ']).to_owned()
}

#[test]
fn every_refusal_is_met_by_a_line() {
    let read = |path: &str| std::fs::read_to_string(repository_root().join(path)).unwrap();
    let mut wanted = messages(&read("crates/catalog/src/error.rs"), &["#[error("], "]");
    let planner = read("crates/engine/src/error.rs");
    wanted.extend(messages(&planner, &["ClientError::new(", "Self::new("], ";"));
    assert!(wanted.len() > 60, "{wanted:?}");
    let mut lines = String::new();
    for file in files_under("sql-tests", "slt").unwrap() {
        let text = std::fs::read_to_string(repository_root().join(file)).unwrap();
        let errors = text.lines().filter(|line| line.starts_with("statement error"));
        lines.extend(errors.flat_map(|line| [line.replace('\\', ""), "\n".to_owned()]));
    }
    let mut wrong = Vec::new();
    for message in wanted {
        let piece = longest_piece(&message);
        let excused = NOT_MET.iter().any(|(text, _)| *text == piece);
        if !piece.is_empty() && lines.contains(&piece) == excused {
            wrong.push(message);
        }
    }
    assert!(wrong.is_empty(), "no line, or one where none was thought possible: {wrong:#?}");
}
