//! A catalog of 100,000 routing rules.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use switchyard_testkit::{Client, Server, psql};

use super::{Figure, commit, median, options};

pub(super) const RULES: u32 = 100_000;
const COMMITS: u32 = 200;
const SCRIPT_SECONDS_MAX: f64 = 60.0;
const DUMP_SECONDS_MAX: f64 = 2.0;
const START_SECONDS_MAX: f64 = 2.0;
const RESIDENT_MIB_MAX: f64 = 300.0;
const COMMIT_RATIO_MAX: f64 = 2.0;

pub(super) const GROUP: &str = "CREATE SUBCLUSTER sc; CREATE NODE n WITH '10.0.0.1' PORT 5432 SUBCLUSTER sc;
CREATE NETWORK ADDRESS a ON n WITH '10.0.0.1'; CREATE LOAD BALANCE GROUP g WITH ADDRESS a;
";

/// Script, dump, start, memory, cost of a commit.
pub fn measure(binary: &PathBuf) -> Result<Vec<Figure>> {
    let empty = options(binary)?.start()?;
    commit(&mut empty.admin()?, GROUP)?;
    let in_empty = cost_of_a_commit(&empty)?;
    empty.finish()?;

    let mut server = options(binary)?.start()?;
    let folder = server.data_directory();
    std::fs::write(folder.join("rules.sql"), script()?)?;
    let started = Instant::now();
    let path = folder.join("rules.sql");
    let path = path.to_str().unwrap_or_default();
    let ran = psql(&server, &["--single-transaction", "--quiet", "-v", "ON_ERROR_STOP=1", "-f", path], "")?;
    let scripted = started.elapsed();
    ensure!(ran.code == Some(0), "{}", ran.stderr);
    let after_script = server.resident_kib()?;
    server.terminate()?;

    let started = Instant::now();
    let folder = folder.to_str().unwrap_or_default();
    let dump = server.command(&["dump", "--data-dir", folder]).output()?;
    let dumped = started.elapsed();
    ensure!(dump.status.success(), "{}", String::from_utf8_lossy(&dump.stderr));
    let rules = String::from_utf8_lossy(&dump.stdout).matches("CREATE ROUTING RULE").count();
    ensure!(rules == RULES as usize, "{rules} rules were dumped");

    server.restart()?;
    let ready = server.ready_after();
    let resident = server.resident_kib()? as f64 / 1024.0;
    let in_full = cost_of_a_commit(&server)?;
    server.finish()?;
    let ratio = in_full.as_secs_f64() / in_empty.as_secs_f64();
    Ok(vec![
        Figure::at_most("100,000 rules by a script", scripted.as_secs_f64(), SCRIPT_SECONDS_MAX, "s"),
        Figure::plain("resident memory after the script", format!("{:.2} MiB", after_script as f64 / 1024.0)),
        Figure::at_most("dump of 100,000 rules", dumped.as_secs_f64(), DUMP_SECONDS_MAX, "s"),
        Figure::at_most("start with 100,000 rules", ready.as_secs_f64(), START_SECONDS_MAX, "s"),
        Figure::at_most("resident memory after the start", resident, RESIDENT_MIB_MAX, "MiB"),
        Figure::plain("a commit in an empty catalog", format!("{in_empty:.2?}")),
        Figure::plain("a commit among 100,000 rules", format!("{in_full:.2?}")),
        Figure::at_most("the second over the first", ratio, COMMIT_RATIO_MAX, ""),
    ])
}

pub(super) fn script() -> Result<String> {
    let mut script = GROUP.to_owned();
    for number in 0..RULES {
        let (high, middle, low) = (number >> 16, (number >> 8) & 0xff, number & 0xff);
        writeln!(script, "CREATE ROUTING RULE r{number} ROUTE '{}.{middle}.{low}.0/24' TO g;", 10 + high)?;
    }
    Ok(script)
}

/// The median, over a session of its own.
fn cost_of_a_commit(server: &Server) -> Result<Duration> {
    let mut client: Client = server.admin()?;
    let mut times = Vec::new();
    for number in 0..COMMITS {
        let sql = format!("CREATE ROUTING RULE cost{number} ROUTE '2001:db8:{number:x}::/48' TO g");
        let started = Instant::now();
        commit(&mut client, &sql)?;
        times.push(started.elapsed());
    }
    client.close()?;
    Ok(median(times))
}
