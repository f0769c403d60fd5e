//! `docs/reference/server-settings.md` is made from the declarations. `UPDATE_REFERENCE=1 cargo test -p
//! switchyard-server` writes it anew.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::fmt::Write;
use std::path::Path;

use super::*;

const INTRODUCTION: &str = "\
<!-- Made from crates/server/src/settings.rs. UPDATE_REFERENCE=1 cargo test -p switchyard-server writes it anew. -->

# Settings of the process

What `switchyard serve`, `check` and `dump` are told from outside. Each setting has a flag, an environment variable and
a key in a TOML file, unless it says otherwise. A flag wins over a variable, a variable over the file, the file over the
default. An unknown flag, variable that begins with `SWITCHYARD_` or key is refused. A change takes effect with the next
start.

In the file a setting is a line `key = value`, without sections: integers bare, everything else in quotes, several
values as an array. In a variable several values have commas between.
";

fn reference() -> String {
    let mut text = INTRODUCTION.to_owned();
    for declaration in DECLARATIONS.iter().filter(|declaration| declaration.available()) {
        let has = |source| declaration.sources.contains(&source);
        let quoted = |default: DefaultValue| match default {
            DefaultValue::Text(text) => format!("`{text}`"),
            DefaultValue::Absent(words) => words.to_owned(),
        };
        let mut rows = Vec::new();
        if has(Source::Flag) {
            let commands: Vec<_> =
                declaration.commands.iter().map(|command| format!("`{}`", command.as_str())).collect();
            let flag = format!("`{} {}`", declaration.flag(), declaration.placeholder);
            rows.push(("flag", format!("{} of {}", flag.replace('|', "\\|"), commands.join(", "))));
        }
        if has(Source::Variable) {
            rows.push(("variable", format!("`{}`", declaration.variable())));
        }
        if has(Source::File) {
            rows.push(("key", format!("`{}`", declaration.name)));
        }
        let range = declaration.range.map(|(min, max)| format!(" between {min} and {max}")).unwrap_or_default();
        rows.push(("value", format!("{}{range}", declaration.expects)));
        rows.push(("default", quoted(declaration.default)));
        write!(text, "\n## {}\n\n{}\n\n| | |\n|---|---|\n", declaration.name, declaration.doc.trim()).unwrap();
        for (what, value) in rows {
            writeln!(text, "| {what} | {value} |").unwrap();
        }
    }
    text
}

#[test]
fn the_reference_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/server-settings.md");
    let made = reference();
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &made).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == made, "docs/reference/server-settings.md is not up to date; run this test with UPDATE_REFERENCE=1");
}
