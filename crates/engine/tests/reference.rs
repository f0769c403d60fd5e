//! The reference pages of what the engine declares are what is declared; `UPDATE_REFERENCE=1` writes them.

use std::fmt::Write;
use std::path::Path;

use switchyard_dialect::{MetaFunction, PRODUCTIONS, Procedure, parse};
use switchyard_engine::{rights, settings::SETTINGS, system_tables};

fn compare(file: &str, expected: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(file);
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        assert!(std::fs::write(&path, expected).is_ok(), "cannot write {file}");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == expected, "docs/reference/{file} is not what the code declares");
}

#[test]
fn system_tables_page() {
    let mut page = "# System tables\n\nMade from the declarations in `crates/engine/src/tables`. Names are found unqualified and in any \
                    case.\n"
        .to_owned();
    let described = |schema: &str| schema != "pg_catalog" && schema != "information_schema";
    for table in system_tables().filter(|table| described(table.schema)) {
        let _ = write!(
            page,
            "\n## {}.{}\n\n{}\n\n| column | type | meaning |\n|---|---|---|\n",
            table.schema, table.name, table.description
        );
        for column in table.columns {
            let _ = writeln!(page, "| `{}` | {} | {} |", column.name, column.kind.sql_name(), column.description);
        }
    }
    page.push_str(
        "\n## pg_catalog and information_schema\n\nThe same tables, described as PostgreSQL 15 describes its own.\n",
    );
    page.push_str("\n| table | meaning |\n|---|---|\n");
    for table in system_tables().filter(|table| !described(table.schema)) {
        let _ = writeln!(page, "| `{}.{}` | {} |", table.schema, table.name, table.description);
    }
    compare("system-tables.md", &page);
}

#[test]
fn settings_page() {
    let mut page = "# Settings\n\nMade from the declarations in `crates/engine/src/settings`. `SET`, `ALTER DATABASE`, `ALTER NODE` and \
                    `ALTER USER` set them at the levels named.\n\n| setting | type | default | levels | meaning |\n|---|---|---|---|---|\n"
        .to_owned();
    let mut settings: Vec<_> = SETTINGS.iter().collect();
    settings.sort_by_key(|setting| setting.name.to_lowercase());
    for setting in settings {
        let levels = setting.levels.words();
        let levels = if levels.is_empty() { "fixed" } else { &levels };
        let default = if setting.default.is_empty() { String::new() } else { format!("`{}`", setting.default) };
        let kind = setting.kind.as_str();
        let _ = writeln!(page, "| `{}` | {kind} | {default} | {levels} | {} |", setting.name, setting.description);
    }
    compare("settings.md", &page);
}

/// Who may run a statement, by the rights that planning decides by.
fn who_may(text: &str) -> &'static str {
    let parsed = parse(text).unwrap_or_default();
    let Some(first) = parsed.first() else { unreachable!("{text} is read") };
    let who = format!("{:?}", rights::required(&first.statement).who);
    match who.split('(').next().unwrap_or_default() {
        "Anyone" => "everybody",
        "Superuser" => "the superuser",
        "Himself" => "the superuser, and the user himself",
        "AdminOf" | "AdminOption" => "the superuser, and who has the roles with ADMIN OPTION",
        "Grantee" => "the superuser, and who was granted it",
        "OwnSession" => "the superuser, and everybody for the own sessions",
        other => unreachable!("{text}: {other}"),
    }
}

#[test]
fn statements_page() {
    let mut page = "# Statements\n\nMade from `crates/dialect/src/grammar.rs`, which tests hold against the parser, and the rights that \
                    planning decides by. `[ ]` may be left out, one of `{ | }` is taken, `[, ...]` repeats what is before it. Words \
                    may be written in any case; names with other characters than letters, digits and `_` stand in double quotes.\n"
        .to_owned();
    for production in PRODUCTIONS {
        let _ = write!(
            page,
            "\n## {}\n\n```\n{}\n```\n\nFor {}. For example:\n\n```sql\n{};\n```\n",
            production.title,
            production.grammar,
            who_may(production.example),
            production.example
        );
        if !production.notes.is_empty() {
            let _ = write!(page, "\n{}\n", production.notes);
        }
    }
    let routine = |page: &mut String, call: &str, name: &str, (min, max): (usize, usize)| {
        let arguments = vec!["'1'"; min].join(", ");
        let count = if min == max { min.to_string() } else { format!("{min} to {max}") };
        let _ = writeln!(page, "| `{name}` | {count} | {} |", who_may(&format!("{call} {name}({arguments})")));
    };
    page.push_str("\n## Functions\n\nThe whole select list: `SELECT set_load_balance_policy('RANDOM')`.\n");
    page.push_str("\n| function | arguments | for |\n|---|---|---|\n");
    for function in MetaFunction::ALL {
        routine(&mut page, "SELECT", function.name(), function.arity());
    }
    page.push_str("\n## Procedures\n\n`CALL hg_create_table_group('tg', 8)`.\n");
    page.push_str("\n| procedure | arguments | for |\n|---|---|---|\n");
    for procedure in Procedure::ALL {
        routine(&mut page, "CALL", procedure.name(), procedure.arity());
    }
    compare("statements.md", &page);
}
