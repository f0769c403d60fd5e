//! What we believe about the repository, without a server: the arrows between crates, sizes, words, files of SQL.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may end here"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use switchyard_dialect::{MetaFunction, Procedure};
use switchyard_testkit::{files_under, repository_root, tracked_files};

/// ARCHITECTURE.md, "Crates": who may know whom.
const ARROWS: &[(&str, &[&str])] = &[
    ("catalog", &[]),
    ("dialect", &[]),
    ("wire", &[]),
    ("store", &["catalog"]),
    ("engine", &["catalog", "dialect"]),
    ("session", &["catalog", "wire"]),
    ("console", &["catalog", "dialect", "engine", "session", "store", "wire"]),
    ("proxy", &["session", "wire"]),
    ("server", &["catalog", "console", "proxy", "session", "store", "wire"]),
];

const LINES_MAX: usize = 70;

fn packages() -> Vec<serde_json::Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(repository_root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON");
    metadata["packages"].as_array().expect("packages").clone()
}

fn dependencies(package: &serde_json::Value) -> impl Iterator<Item = (&str, bool)> {
    let list = package["dependencies"].as_array().expect("dependencies");
    list.iter().map(|dependency| (dependency["name"].as_str().expect("name"), dependency["kind"] == "dev"))
}

#[test]
fn only_the_arrows_of_the_architecture_exist() {
    let allowed: BTreeMap<&str, &[&str]> = ARROWS.iter().copied().collect();
    for package in packages() {
        let package_name = package["name"].as_str().expect("name");
        let name = package_name.strip_prefix("switchyard-").unwrap_or(package_name);
        for (dependency, for_tests) in dependencies(&package) {
            let Some(dependency) = dependency.strip_prefix("switchyard-") else { continue };
            match name {
                "testkit" | "xtask" => assert_ne!(dependency, "engine", "{name} must not link the engine"),
                _ if for_tests && dependency == "testkit" => {}
                _ => {
                    let known = allowed.get(name).unwrap_or_else(|| panic!("{name} is not in the architecture"));
                    assert!(known.contains(&dependency), "{name} must not know {dependency}");
                }
            }
        }
    }
}

#[test]
fn only_the_engine_knows_datafusion() {
    for package in packages() {
        let name = package["name"].as_str().expect("name");
        for (dependency, _) in dependencies(&package) {
            let foreign = dependency.starts_with("datafusion") || dependency.starts_with("arrow");
            assert!(!foreign || name == "switchyard-engine", "{name} knows {dependency}");
        }
    }
}

fn sources() -> Vec<(String, String)> {
    files_under("crates", "rs")
        .expect("crates/ is there")
        .into_iter()
        .map(|path| {
            (path.display().to_string(), std::fs::read_to_string(repository_root().join(&path)).expect("readable"))
        })
        .collect()
}

/// The functions of a formatted source file with their lengths in lines.
fn functions(source: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = source.lines().collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let words: Vec<&str> = code.split_whitespace().collect();
        let modifier = |word: &&str| word.starts_with("pub") || ["const", "async", "unsafe"].contains(word);
        let Some(keyword) = words.iter().position(|word| !modifier(word)) else { continue };
        let named_by_macro = words.get(keyword + 1).is_some_and(|name| name.starts_with('$'));
        if words[keyword] != "fn" || named_by_macro || code.ends_with(';') || code.ends_with('}') {
            continue;
        }
        let name = words.get(keyword + 1).copied().unwrap_or_default();
        let name = name.split(['(', '<']).next().unwrap_or(name).to_owned();
        let closing = format!("{}}}", " ".repeat(line.len() - code.len()));
        if let Some(length) = lines[start..].iter().position(|later| *later == closing) {
            found.push((name, length + 1));
        }
    }
    found
}

#[test]
fn functions_are_short_or_on_the_list() {
    let list = std::fs::read_to_string(repository_root().join("crates/testkit/tests/long_functions.txt")).unwrap();
    let mut allowed: BTreeMap<String, usize> = BTreeMap::new();
    for line in list.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (name, length) = line.rsplit_once(' ').expect("each line is a function and its length");
        allowed.insert(name.to_owned(), length.parse().expect("a length"));
    }
    let mut wrong = Vec::new();
    for (path, source) in sources() {
        for (name, length) in functions(&source).into_iter().filter(|(_, length)| *length > LINES_MAX) {
            let full = format!("{path}::{name}");
            match allowed.remove(&full) {
                Some(limit) if length == limit => {}
                Some(limit) if length < limit => {
                    wrong.push(format!("{full} has shrunk to {length}: say so in the list"))
                }
                Some(limit) => wrong.push(format!("{full} has grown from {limit} to {length} lines")),
                None => wrong.push(format!("{full} has {length} lines")),
            }
        }
    }
    wrong.extend(allowed.into_keys().map(|name| format!("{name} is short or gone: take it off the list")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn nothing_unfinished_is_left_in_the_code() {
    let words = [concat!("to", "do!("), concat!("unimplemented", "!("), concat!("db", "g!("), concat!("#[", "ignore")];
    let allow = [concat!("#[", "allow("), concat!("#![", "allow(")];
    for (path, source) in sources() {
        for word in words.iter().chain(&allow) {
            assert!(!source.contains(word), "{path} has {word}");
        }
    }
}

#[test]
fn no_file_names_a_place_on_this_machine() {
    let mut places = vec![repository_root().display().to_string()];
    places.extend(std::env::var("HOME").ok().filter(|home| home.len() > 1).map(|home| format!("{home}/")));
    places.extend([concat!("/ho", "me/"), concat!("/Us", "ers/")].map(str::to_owned));
    for path in tracked_files().expect("git lists the files") {
        // What is no UTF-8 text has no path that a reader sees; what git still lists may be deleted.
        let Ok(text) = std::fs::read_to_string(repository_root().join(&path)) else { continue };
        for place in &places {
            assert!(!text.contains(place.as_str()), "{} names {place}", path.display());
        }
    }
}

/// The statements as the syntax tree declares them, in the spelling of file names.
fn statement_families() -> BTreeSet<String> {
    let path = repository_root().join("crates/dialect/src/ast.rs");
    let source = std::fs::read_to_string(path).expect("the syntax tree is there");
    let (_, body) = source.split_once("pub enum Statement {").expect("the statements are an enum");
    let (body, _) = body.split_once("\n}").expect("the enum ends");
    let mut families = BTreeSet::new();
    for line in body.lines().filter(|line| line.starts_with("    ") && !line.starts_with("     ")) {
        let name: String = line.trim().chars().take_while(|letter| letter.is_ascii_alphanumeric()).collect();
        match name.as_str() {
            "" => {}
            "Function" => families.extend(MetaFunction::ALL.iter().map(|function| function.name().to_owned())),
            "Call" => families.extend(Procedure::ALL.iter().map(|procedure| procedure.name().to_owned())),
            "Sql" => families.extend(["select".to_owned()]),
            variant => families.extend([snake_case(variant)]),
        }
    }
    families
}

fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

fn stem(path: &Path) -> String {
    path.file_stem().expect("a name").to_string_lossy().into_owned()
}

#[test]
fn every_statement_has_its_file_of_sql() {
    let families = statement_families();
    assert!(families.len() > 60, "the syntax tree was not read: {families:?}");
    let files: BTreeSet<String> =
        files_under("sql-tests/statements", "slt").expect("listed").iter().map(|path| stem(path)).collect();
    let untested: Vec<_> = families.difference(&files).collect();
    let stray: Vec<_> = files.difference(&families).collect();
    assert!(untested.is_empty(), "no file in sql-tests/statements for {untested:?}");
    assert!(stray.is_empty(), "no statement for the files {stray:?} in sql-tests/statements");
}

#[test]
fn every_file_of_sql_belongs_somewhere() {
    let known = [
        "statements",
        "system",
        "seeds",
        "functions",
        "refusals",
        "regressions",
        "fixtures",
        "routing",
        "clients",
        "through",
    ];
    let all = files_under("sql-tests", "slt").expect("listed");
    let texts: Vec<String> =
        all.iter().map(|path| std::fs::read_to_string(repository_root().join(path)).expect("readable")).collect();
    for path in &all {
        let folder = path.components().nth(1).map(|part| part.as_os_str().to_string_lossy().into_owned());
        let folder = folder.unwrap_or_default();
        assert!(known.contains(&folder.as_str()), "{} is in no folder the runner knows", path.display());
        let included = format!("include ../fixtures/{}.slt", stem(path));
        assert!(folder != "fixtures" || texts.iter().any(|text| text.contains(&included)), "{included}: nobody does");
    }
}
