//! Queries over system tables against PostgreSQL, which answers equal tables in the same run.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use switchyard_testkit::{Client, Postgres, Send, psql};

use super::{Figure, median, options};

const RUNS: usize = 500;
const JOIN_RUNS: usize = 20;
const ADDRESSES: u32 = 10_000;
const NODES_RATIO_MAX: f64 = 2.0;
const NODES_MS_MAX: f64 = 1.0;
const JOIN_MS_MAX: f64 = 100.0;

const SELECT: &str = "SELECT * FROM nodes";
const JOIN: &str = "SELECT n.node_name, count(*) FROM network_addresses a JOIN nodes n ON n.node_name = a.node \
                    GROUP BY n.node_name ORDER BY n.node_name";

/// `SELECT * FROM nodes`, simple and prepared; 10,000 addresses joined with their nodes and grouped.
pub fn measure(binary: &PathBuf) -> Result<Vec<Figure>> {
    let server = options(binary)?.start()?;
    let mut script = "CREATE NODE n2 WITH '10.0.0.2';\nCREATE NODE n3 WITH '10.0.0.3';\n".to_owned();
    for number in 0..ADDRESSES {
        let node = ["n2", "n3"].get((number % 2) as usize).copied().unwrap_or_default();
        let (high, low) = (number / 250, number % 250);
        writeln!(script, "CREATE NETWORK ADDRESS a{number} ON {node} WITH '10.1.{high}.{low}';")?;
    }
    let ran = psql(&server, &["--single-transaction", "--quiet", "-v", "ON_ERROR_STOP=1"], &script)?;
    ensure!(ran.code == Some(0), "{}", ran.stderr);

    let postgres = Postgres::start()?;
    let (mut ours, mut theirs) = (server.admin()?, postgres.client()?);
    for table in ["nodes", "network_addresses"] {
        copy(&mut ours, &mut theirs, table)?;
    }
    theirs.query("ANALYZE")?;
    ensure!(ours.query(JOIN)? == theirs.query(JOIN)?, "the servers do not answer alike");

    let simple = [time_simple(&mut ours, SELECT, RUNS)?, time_simple(&mut theirs, SELECT, RUNS)?];
    let prepared = [time_prepared(&mut ours)?, time_prepared(&mut theirs)?];
    let join = [time_simple(&mut ours, JOIN, JOIN_RUNS)?, time_simple(&mut theirs, JOIN, JOIN_RUNS)?];
    server.finish()?;
    let ms = |time: Duration| time.as_secs_f64() * 1_000.0;
    let ratio = |[ours, theirs]: [Duration; 2]| ours.as_secs_f64() / theirs.as_secs_f64();
    Ok(vec![
        Figure::at_most("SELECT * FROM nodes, simple", ms(simple[0]), NODES_MS_MAX, "ms"),
        Figure::at_most("the same against PostgreSQL", ratio(simple), NODES_RATIO_MAX, "times"),
        Figure::at_most("SELECT * FROM nodes, prepared", ms(prepared[0]), NODES_MS_MAX, "ms"),
        Figure::at_most("the same against PostgreSQL", ratio(prepared), NODES_RATIO_MAX, "times"),
        Figure::at_most("10,000 addresses joined and grouped", ms(join[0]), JOIN_MS_MAX, "ms"),
        Figure::plain("the same against PostgreSQL", format!("{:.2} times", ratio(join))),
    ])
}

/// Makes a table of the other server equal to one of the first.
fn copy(from: &mut Client, to: &mut Client, table: &str) -> Result<()> {
    let columns = from.query(&format!(
        "SELECT column_name, data_type FROM switchyard.system_columns \
         WHERE schema_name = 'v_catalog' AND table_name = '{table}' ORDER BY ordinal_position"
    ))?;
    let column = |row: &Vec<Option<String>>| -> Result<String> {
        let [Some(name), Some(kind)] = row.as_slice() else { anyhow::bail!("a column without a name") };
        Ok(format!("\"{name}\" {kind}"))
    };
    let declared = columns.iter().map(column).collect::<Result<Vec<_>>>()?.join(", ");
    to.query(&format!("CREATE TABLE {table} ({declared})"))?;
    let literal = |cell: &Option<String>| match cell {
        None => "NULL".to_owned(),
        Some(text) => format!("'{}'", text.replace('\'', "''")),
    };
    let rows = from.query(&format!("SELECT * FROM {table}"))?;
    let rows: Vec<String> =
        rows.iter().map(|row| format!("({})", row.iter().map(literal).collect::<Vec<_>>().join(", "))).collect();
    to.query(&format!("INSERT INTO {table} VALUES {}", rows.join(", ")))?;
    Ok(())
}

fn time_simple(client: &mut Client, sql: &str, runs: usize) -> Result<Duration> {
    let mut times = Vec::with_capacity(runs);
    for _ in 0..runs {
        let started = Instant::now();
        client.query(sql)?;
        times.push(started.elapsed());
    }
    Ok(median(times))
}

fn time_prepared(client: &mut Client) -> Result<Duration> {
    client.exchange(&[Send::Parse("nodes", SELECT), Send::Sync])?;
    let mut times = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        let started = Instant::now();
        let answer = client.exchange(&[Send::Bind("", "nodes", &[]), Send::Execute("", 0), Send::Sync])?;
        times.push(started.elapsed());
        let done = answer.iter().find(|line| line.starts_with("done")).context("no answer")?;
        ensure!(done == "done SELECT 3", "{done}");
    }
    Ok(median(times))
}
