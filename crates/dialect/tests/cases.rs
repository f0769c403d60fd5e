//! Statements in text files, with what must come of them.
//!
//! Cases are apart by a blank line. In `good` files a case is a text, then for each statement a line `=> ` with its
//! canonical form. In `bad` files it is a text with a line under one of its lines that holds only blanks and a caret
//! (or, for the end of the text, behind it), then the message, then perhaps `HINT: `. A line `!kind` may come last.
//! With `UPDATE_CASES=1` in the environment the files are rewritten; read the difference before believing it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first surprise")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use switchyard_dialect::{ErrorKind, Statement, SyntaxError, parse};

fn files(prefix: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(prefix))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

/// Runs all cases of the files through `render` and compares.
fn check(prefix: &str, render: impl Fn(&str) -> String) {
    for path in files(prefix) {
        let content = std::fs::read_to_string(&path).unwrap();
        let mut rewritten = String::new();
        let mut differing = String::new();
        for case in content.split("\n\n").map(|case| case.trim_matches('\n')).filter(|case| !case.is_empty()) {
            if case.lines().all(|line| line.starts_with('#')) {
                write!(rewritten, "{case}\n\n").unwrap();
                continue;
            }
            let rendered = render(&input(case));
            if rendered != case {
                write!(differing, "--- expected\n{case}\n--- got\n{rendered}\n").unwrap();
            }
            write!(rewritten, "{rendered}\n\n").unwrap();
        }
        if std::env::var_os("UPDATE_CASES").is_some() {
            std::fs::write(&path, format!("{}\n", rewritten.trim_end())).unwrap();
        } else {
            assert!(differing.is_empty(), "{}:\n{differing}", path.display());
        }
    }
}

/// The text of a case: its lines without those that say what comes of it.
fn input(case: &str) -> String {
    let is_answer = |line: &&str| {
        line.starts_with("=> ") || line.starts_with("HINT: ") || line.starts_with('!') || line.trim() == "^"
    };
    let lines: Vec<&str> = case.lines().collect();
    let caret = lines.iter().position(|line| line.trim() == "^");
    // Behind the caret, other lines of the text come before the message, marked by `| `.
    let text: Vec<&str> = match caret {
        Some(caret) => {
            let behind = lines.iter().skip(caret + 1).filter_map(|line| line.strip_prefix("| "));
            lines.iter().take(caret).copied().chain(behind).collect()
        }
        None => lines.into_iter().filter(|line| !is_answer(line)).collect(),
    };
    text.join("\n")
}

#[test]
fn good() {
    check("good", |text| {
        let statements = parse(text).unwrap_or_else(|error| panic!("{text}\n{error:?}"));
        let mut rendered = text.to_owned();
        for parsed in &statements {
            let printed = parsed.statement.to_string();
            let kind = if matches!(parsed.statement, Statement::Sql(_)) { "sql: " } else { "" };
            write!(rendered, "\n=> {kind}{printed}").unwrap();
            let again = parse(&printed).unwrap_or_else(|error| panic!("{printed}\n{error:?}"));
            assert_eq!(again.len(), 1, "{printed}");
            assert_eq!(again.first().unwrap().statement, parsed.statement, "{printed}");
            let from: String = text.chars().skip(parsed.position - 1).collect();
            assert!(from.starts_with(&parsed.text), "{text}");
        }
        rendered
    });
}

#[test]
fn bad() {
    check("bad", |text| {
        let error = parse(text).err().unwrap_or_else(|| panic!("accepted: {text}"));
        render(text, &error)
    });
}

fn render(text: &str, error: &SyntaxError) -> String {
    let mut rendered = String::new();
    let mut before = 0;
    let mut placed = false;
    for line in text.split('\n') {
        let length = line.chars().count();
        let column = (error.position - 1).checked_sub(before).filter(|column| !placed && *column <= length);
        let mark = if placed { "| " } else { "" };
        writeln!(rendered, "{mark}{line}").unwrap();
        if let Some(column) = column {
            // Tabs stay, so that the caret stands where it should.
            let blanks: String = line.chars().take(column).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
            writeln!(rendered, "{blanks}^").unwrap();
            placed = true;
        }
        before += length + 1;
    }
    assert!(placed, "position {} is outside of {text}", error.position);
    rendered.push_str(&error.message);
    if let Some(hint) = &error.hint {
        write!(rendered, "\nHINT: {hint}").unwrap();
    }
    if error.kind != ErrorKind::Syntax {
        write!(rendered, "\n!{:?}", error.kind).unwrap();
    }
    rendered
}
