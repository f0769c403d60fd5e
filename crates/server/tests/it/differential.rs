//! The console and a real PostgreSQL answer the same queries over equal tables: columns, types, values, SQLSTATEs.
//!
//! `differential/queries.sql` has the queries, one a line. `differential/known.sql` has those that are answered
//! otherwise on purpose, below the reason; one that is answered alike again must leave it. `differential/mistakes.sql` has
//! wrong ones, whose errors are compared with the place where the caret stands.

#[path = "differential/generated.rs"]
mod generated;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, ensure};
use libtest_mimic::Trial;
use switchyard_testkit::{Client, Column, Outcome, Postgres, Protocol, Server};

const QUERIES: &str = include_str!("differential/queries.sql");
const MISTAKES: &str = include_str!("differential/mistakes.sql");
const KNOWN: &str = include_str!("differential/known.sql");

/// What the queries read: the console's own, copied.
const TABLES: [&str; 3] = ["nodes", "subclusters", "network_addresses"];

/// PostgreSQL's own functions as the catalog shows them.
const FUNCTIONS: &str = "SELECT oid, proname, prokind, prorettype, proargtypes, provariadic, provolatile, proisstrict, \
                         proretset FROM pg_proc WHERE oid < 10000 AND proname NOT LIKE '%in' AND proname NOT LIKE '%out' \
                         AND proname NOT LIKE '%recv' AND proname NOT LIKE '%send'";

const FIXTURE: [&str; 8] = [
    "CREATE SUBCLUSTER sc_a",
    "CREATE SUBCLUSTER sc_b",
    "CREATE NODE n1 WITH '10.0.0.1' PORT 5433 SUBCLUSTER sc_a",
    "CREATE NODE n2 WITH '10.0.0.2' PORT 5433 SUBCLUSTER sc_a",
    "CREATE NODE n3 WITH '10.0.0.3' PORT 5434 SUBCLUSTER sc_b",
    "CREATE NETWORK ADDRESS a1 ON n1 WITH '10.0.0.1' PORT 5440",
    "CREATE NETWORK ADDRESS a2 ON n2 WITH '10.0.0.2' PORT 5440",
    "CREATE NETWORK ADDRESS a3 ON n3 WITH '10.0.0.3' PORT 5441",
];

pub fn trials() -> Vec<Trial> {
    vec![crate::with_server("answers_like_postgresql", answers_like_postgresql)]
}

fn answers_like_postgresql(server: &Server) -> anyhow::Result<()> {
    let postgres = Postgres::start()?;
    let (mut ours, mut theirs) = (server.admin()?, postgres.client()?);
    ours.query("SET timezone TO 'UTC'")?;
    for statement in FIXTURE {
        ours.query(statement)?;
    }
    for table in TABLES {
        copy(&mut ours, &mut theirs, table)?;
    }
    let known = known();
    let mut faults = Vec::new();
    for query in QUERIES.lines().filter(|line| !line.is_empty() && !line.starts_with("--")) {
        let found = difference(&mut ours, &mut theirs, query)?;
        match (found, known.get(query)) {
            (Some(difference), None) => faults.push(difference),
            (None, Some(reason)) => faults.push(format!("{query}\n  is answered alike, and not different: {reason}")),
            _ => {}
        }
    }
    for query in generated::queries() {
        faults.extend(difference(&mut ours, &mut theirs, &query)?);
    }
    for query in MISTAKES.lines().filter(|line| !line.is_empty() && !line.starts_with("--")) {
        let (expected, found) = (mistake(&mut theirs, query)?, mistake(&mut ours, query)?);
        if found != expected {
            faults.push(format!("{query}\n  PostgreSQL: {expected}\n  ours: {found}"));
        }
    }
    let theirs_too: BTreeSet<_> = theirs.query(FUNCTIONS)?.into_iter().collect();
    for function in ours.query(FUNCTIONS)? {
        if !theirs_too.contains(&function) {
            faults.push(format!("no function of PostgreSQL's: {function:?}"));
        }
    }
    let strangers: Vec<&&str> = known.keys().filter(|known| !QUERIES.lines().any(|query| query == **known)).collect();
    ensure!(strangers.is_empty(), "known differences of no query: {strangers:?}");
    ensure!(faults.is_empty(), "{} differences:\n{}", faults.len(), faults.join("\n"));
    Ok(())
}

/// Queries with the reason why they are answered otherwise.
fn known() -> BTreeMap<&'static str, &'static str> {
    let mut reason = "";
    let mut known = BTreeMap::new();
    for line in KNOWN.lines() {
        match line.strip_prefix("-- ") {
            Some(text) => reason = text,
            None if line.is_empty() => {}
            None => {
                known.insert(line, reason);
            }
        }
    }
    known
}

fn copy(from: &mut Client, to: &mut Client, table: &str) -> anyhow::Result<()> {
    let answer = from.run(&format!("SELECT * FROM {table}"), Protocol::Simple)?.answers.pop().context("no answer")?;
    let columns: Vec<String> = answer
        .columns
        .context("no columns")?
        .iter()
        .map(|column| {
            let kind = column.type_name();
            let kind = if kind == "char" { "\"char\"" } else { &kind };
            format!("\"{}\" {kind}", column.name)
        })
        .collect();
    to.query(&format!("CREATE TABLE {table} ({})", columns.join(", ")))?;
    for row in answer.rows {
        let values: Vec<String> = row
            .into_iter()
            .map(|value| value.map_or_else(|| "NULL".to_owned(), |value| format!("'{}'", value.replace('\'', "''"))))
            .collect();
        to.query(&format!("INSERT INTO {table} VALUES ({})", values.join(", ")))?;
    }
    Ok(())
}

fn difference(ours: &mut Client, theirs: &mut Client, query: &str) -> anyhow::Result<Option<String>> {
    for protocol in [Protocol::Simple, Protocol::Binary] {
        let expected = shown(&theirs.run(query, protocol)?);
        let found = shown(&ours.run(query, protocol).with_context(|| format!("in {query}"))?);
        if found != expected {
            return Ok(Some(format!("{query}\n  PostgreSQL: {expected}\n  {}: {found}", protocol.name())));
        }
    }
    Ok(None)
}

/// The SQLSTATE and the caret's place.
fn mistake(client: &mut Client, query: &str) -> anyhow::Result<String> {
    let outcome = client.run(query, Protocol::Simple).with_context(|| format!("in {query}"))?;
    let error = outcome.error.with_context(|| format!("{query} is no mistake"))?;
    Ok(format!("[{}] at {}", error.code, error.position.as_deref().unwrap_or("no place")))
}

/// Column names, types with their modifiers and sizes, and rows, or the SQLSTATE. Rows are put in order unless the query says in which they come.
fn shown(outcome: &Outcome) -> String {
    if let Some(error) = &outcome.error {
        return format!("[{}]", error.code);
    }
    let Some(answer) = outcome.answers.last() else { return "nothing".to_owned() };
    let column = |column: &Column| {
        let modifier = if column.modifier >= 0 { format!(" of {}", column.modifier) } else { String::new() };
        format!("{} {}{modifier} in {} bytes", column.name, column.type_name(), column.size)
    };
    let columns: Vec<String> = answer.columns.iter().flatten().map(column).collect();
    let mut rows: Vec<String> = answer
        .rows
        .iter()
        .map(|row| row.iter().map(|value| value.as_deref().unwrap_or("NULL")).collect::<Vec<_>>().join("|"))
        .collect();
    rows.sort();
    format!("({}) {}", columns.join(", "), rows.join(" / "))
}
