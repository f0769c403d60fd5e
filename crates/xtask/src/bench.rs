//! Measurements of the server as it is shipped: a release build, its own process, real clients.

mod balance;
mod cluster;
mod commits;
mod connect;
mod connections;
mod decision;
mod idle;
mod prompt;
mod query;
mod rules;

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use switchyard_testkit::{Client, Protocol, ServerOptions, binary_beside, repository_root};

/// What can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Measurement {
    /// Single-statement commits against bare fsynced appends.
    Commits,
    /// 100,000 routing rules: script, dump, start, memory, cost of a commit.
    Rules,
    /// Where a connection goes, among 100 and 1,000,000 routing rules. Needs no server.
    Decision,
    /// Connections that ask where to go: while rules change, and how many a listener answers.
    Balance,
    /// Resident memory of a server that does nothing.
    Idle,
    /// What 10,000 idle sessions weigh.
    Connections,
    /// Queries over system tables against PostgreSQL.
    Query,
    /// Logins against PostgreSQL.
    Connect,
    /// Three members on etcd: when changes are visible, commits in a large catalog, joining.
    Cluster,
    /// From a fresh clone to the first answer.
    Prompt,
}

/// A figure beside its bar.
pub struct Figure {
    what: &'static str,
    measured: String,
    bar: String,
    reached: bool,
}

impl Figure {
    fn at_most(what: &'static str, measured: f64, bar: f64, unit: &str) -> Self {
        Self {
            what,
            measured: format!("{measured:.2} {unit}"),
            bar: format!("at most {bar} {unit}"),
            reached: measured <= bar,
        }
    }

    fn at_least(what: &'static str, measured: f64, bar: f64, unit: &str) -> Self {
        Self {
            what,
            measured: format!("{measured:.2} {unit}"),
            bar: format!("at least {bar} {unit}"),
            reached: measured >= bar,
        }
    }

    fn plain(what: &'static str, measured: String) -> Self {
        Self { what, measured, bar: String::new(), reached: true }
    }
}

/// Runs what is named and prints a table. A bar that was missed is an error.
pub fn run(named: &[Measurement]) -> Result<()> {
    let usual = [
        Measurement::Commits,
        Measurement::Rules,
        Measurement::Decision,
        Measurement::Balance,
        Measurement::Idle,
        Measurement::Connections,
        Measurement::Query,
        Measurement::Connect,
    ];
    let chosen = if named.is_empty() { &usual[..] } else { named };
    let needs_server = |one: &Measurement| !matches!(one, Measurement::Decision | Measurement::Prompt);
    let binary = if chosen.iter().any(needs_server) { build()? } else { PathBuf::new() };
    let mut figures = Vec::new();
    for measurement in chosen {
        figures.extend(match measurement {
            Measurement::Commits => commits::measure(&binary)?,
            Measurement::Rules => rules::measure(&binary)?,
            Measurement::Decision => decision::measure()?,
            Measurement::Connections => connections::measure(&binary)?,
            Measurement::Query => query::measure(&binary)?,
            Measurement::Connect => connect::measure(&binary)?,
            Measurement::Balance => balance::measure(&binary)?,
            Measurement::Idle => idle::measure(&binary)?,
            Measurement::Cluster => cluster::measure(&binary)?,
            Measurement::Prompt => prompt::measure()?,
        });
    }
    print(&figures)?;
    let missed = figures.iter().filter(|figure| !figure.reached).count();
    ensure!(missed == 0, "{missed} bars were missed");
    Ok(())
}

/// The release build, made now unless the variable `BENCH_BINARY` names one.
fn build() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("BENCH_BINARY") {
        return Ok(path.into());
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--locked", "--release", "--package", "switchyard-server"])
        .current_dir(repository_root())
        .status()
        .context("cargo cannot be started")?;
    ensure!(status.success(), "the server cannot be built");
    let program = std::env::current_exe()?;
    ensure!(program.iter().any(|part| part == "release"), "run this with cargo run --release");
    binary_beside(&program)
}

/// A server whose files are beside the build, on a real disk, where /tmp may be memory.
fn options(binary: &PathBuf) -> Result<ServerOptions> {
    let folder = binary.parent().context("the binary is in no folder")?;
    Ok(ServerOptions::new(binary).below(folder))
}

fn print(figures: &[Figure]) -> Result<()> {
    let width = |column: fn(&Figure) -> usize| figures.iter().map(column).max().unwrap_or(0);
    let (first, second) = (width(|figure| figure.what.len()), width(|figure| figure.measured.len()));
    println!("{}", machine()?);
    for figure in figures {
        let Figure { what, measured, bar, reached } = figure;
        let verdict = if bar.is_empty() {
            ""
        } else if *reached {
            "reached"
        } else {
            "MISSED"
        };
        println!("{what:first$}  {measured:>second$}  {bar:24}  {verdict}");
    }
    Ok(())
}

/// The processor and how many of it there are.
fn machine() -> Result<String> {
    let processors = std::fs::read_to_string("/proc/cpuinfo")?;
    let model = processors.lines().find(|line| line.starts_with("model name")).unwrap_or_default();
    let name = model.split(':').nth(1).unwrap_or("an unnamed processor").trim();
    Ok(format!("on {} cores of {name}", std::thread::available_parallelism()?))
}

/// Runs a statement that must not fail.
fn commit(client: &mut Client, sql: &str) -> Result<()> {
    client.run(sql, Protocol::Simple)?.rows().map(drop).with_context(|| sql.to_owned())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
