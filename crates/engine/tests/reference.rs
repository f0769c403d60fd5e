//! The reference pages of what the engine declares are what is declared; `UPDATE_REFERENCE=1` writes them.

use std::fmt::Write;
use std::path::Path;

use switchyard_dialect::{MetaFunction, PRODUCTIONS, Procedure, parse};
use switchyard_engine::rights::{self, Outcome};
use switchyard_engine::settings::{Kind, SETTINGS};
use switchyard_engine::system_tables;

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
        let kind = match setting.kind {
            Kind::Int { min, max, .. } => format!("integer, {min} to {max}"),
            kind => kind.as_str().to_owned(),
        };
        let _ = writeln!(page, "| `{}` | {kind} | {default} | {levels} | {} |", setting.name, setting.description);
    }
    compare("settings.md", &page);
}

/// What a class of users gets, for superusers, owners, grantees and plain users.
type Row = (String, [Outcome; 4]);

fn section(title: &str, text: &str, mut rows: Vec<Row>) -> String {
    rows.sort_by(|left, right| left.0.cmp(&right.0));
    let mut section = format!(
        "\n## {title}\n\n{text}\n\n| | superuser | owner | granted | everybody else |\n|---|---|---|---|---|\n"
    );
    for (what, outcomes) in rows {
        let _ = writeln!(section, "| `{what}` | {} |", outcomes.map(Outcome::as_str).join(" | "));
    }
    section
}

#[test]
fn rights_page() {
    let mut page = "# Rights\n\nMade from the declarations in `crates/engine/src/rights.rs` and `crates/engine/src/tables`, by which \
                    the server decides; a test tries each of them with a real user of each kind.\n\nAn *owner* is the user whom a \
                    statement is about, or whose session it is. *Granted* is who has what the statement names: the role, with \
                    ADMIN OPTION to grant it, or the workload, by himself or by a role. 42501 is the SQLSTATE of a refusal, after \
                    which nothing has changed. *Own rows* are those about the user himself. An empty cell says that there is no \
                    such user.\n\nThere is one superuser. The roles that stand for its rights, `DBADMIN` and `PSEUDOSUPERUSER`, \
                    cannot be granted; no right depends on the other predefined roles.\n"
        .to_owned();
    let row = |right: &rights::Right| (right.what.to_owned(), right.who.outcomes());
    let (functions, forms): (Vec<_>, Vec<_>) =
        rights::FORMS.iter().partition(|right| right.what.starts_with("has_role"));
    let statements = rights::STATEMENTS.iter().chain(forms).map(row).collect();
    page += &section("Statements", "What a session does to itself, everybody may do.", statements);
    let functions = rights::FUNCTIONS.iter().chain(functions).map(row).collect();
    page += &section("Functions that do something", "Each is the whole of a SELECT.", functions);
    let procedures = rights::PROCEDURES.iter().map(row).collect();
    page += &section("Procedures", "Each is called with CALL.", procedures);
    page += "\n## Functions of queries\n\nThose that are not named here compute from their arguments alone, and everybody may call them.\n";
    for group in rights::QUERY_FUNCTIONS {
        let rows = group.names.iter().map(|name| ((*name).to_owned(), group.reads.outcomes())).collect();
        page += &section(group.description, "", rows).replace("\n## ", "\n### ").replace("\n\n\n", "\n");
    }
    let tables = system_tables();
    let tables =
        tables.map(|table| (format!("{}.{}", table.schema, table.name), table.visibility.outcomes())).collect();
    page += &section("System tables", "Their columns everybody may see.", tables);
    compare("rights.md", &page);
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
        "Member" => "who has the role",
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
