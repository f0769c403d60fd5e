//! Programs that people use, on databases behind a member.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use libtest_mimic::Trial;
use switchyard_testkit::Server;

use super::{PASSWORD, fleet, member};
use crate::python::interpreter;

pub(super) fn trials() -> Vec<Trial> {
    vec![
        crate::trial("upstream_pgbench_in_all_modes", pgbench),
        crate::trial("upstream_dump_and_restore", dump),
        crate::trial("upstream_psql_features", psql),
        crate::trial("upstream_python_drivers", python),
    ]
}

/// One of PostgreSQL's programs, for a database behind the member.
fn program(server: &Server, name: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(name);
    command
        .args(["-h", "127.0.0.1", "-p", &server.port().to_string(), "-U", "mira"])
        .args(arguments)
        .env("PGPASSWORD", PASSWORD)
        .stdin(Stdio::null());
    command
}

fn succeeds(mut command: Command) -> Result<String> {
    let output =
        command.output().with_context(|| format!("{command:?} cannot be started; scripts/test installs it"))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{command:?} ended with {}: {said}", output.status);
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A database that is mira's, on the server that the member fronts.
fn database(name: &str) -> Result<()> {
    let fleet = fleet()?;
    let mut admin = fleet.0.first().context("there is no server")?.client()?;
    admin.query(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"))?;
    admin.query(&format!("CREATE DATABASE {name} OWNER mira"))?;
    Ok(())
}

fn pgbench() -> Result<()> {
    let server = member(&*fleet()?, Some(0))?;
    database("bench")?;
    succeeds(program(&server, "pgbench", &["-i", "-q", "bench"]))?;
    for mode in ["simple", "extended", "prepared"] {
        for script in [&["-S"][..], &["-C"], &[]] {
            let common = ["-n", "-M", mode, "-c", "4", "-t", "20", "bench"];
            let said = succeeds(program(&server, "pgbench", &[script, &common].concat()))?;
            ensure!(said.contains("number of transactions actually processed: 80/80"), "{mode}: {said}");
            ensure!(said.contains("number of failed transactions: 0"), "{mode}: {said}");
        }
    }
    server.finish()
}

fn dump() -> Result<()> {
    let server = member(&*fleet()?, Some(0))?;
    database("original")?;
    database("copy")?;
    let fill = "CREATE TABLE t (a int PRIMARY KEY, b text); INSERT INTO t SELECT g, repeat('x', g % 100) FROM \
                generate_series(1, 20000) g; CREATE VIEW v AS SELECT a FROM t; SELECT lo_from_bytea(4711, 'large')";
    succeeds(program(&server, "psql", &["-qAtc", fill, "original"]))?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("dump").display().to_string();
    succeeds(program(&server, "pg_dump", &["-Fc", "-f", &file, "original"]))?;
    succeeds(program(&server, "pg_restore", &["-d", "copy", &file]))?;
    let count = "SELECT count(*), sum(length(b)), (SELECT count(*) FROM v), lo_get(4711) FROM t";
    let [original, copy] = ["original", "copy"].map(|name| succeeds(program(&server, "psql", &["-qAtc", count, name])));
    ensure!(original? == copy?);
    server.finish()
}

fn psql() -> Result<()> {
    let server = member(&*fleet()?, Some(0))?;
    database("features")?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("rows").display().to_string();
    let script = format!(
        "CREATE TABLE t (a int, b text);\n\
         INSERT INTO t VALUES (1, 'x'), (2, 'y');\n\
         \\copy t TO '{file}'\n\
         \\copy t FROM '{file}'\n\
         SELECT 'SELECT ' || a || ' AS generated' FROM t ORDER BY a LIMIT 1 \\gexec\n\
         SELECT a, b, count(*) FROM t GROUP BY 1, 2 ORDER BY 1 \\crosstabview\n\
         SELECT count(*) AS rows FROM t \\gset\n\
         \\echo rows :rows\n\
         \\d t\n\
         \\dt\n\
         SELECT $1 + 1 \\bind 41 \\g\n"
    );
    let path = folder.path().join("script.sql");
    // \bind is of a newer psql than some have.
    std::fs::write(&path, script.replace("SELECT $1 + 1 \\bind 41 \\g\n", ""))?;
    let said =
        succeeds(program(&server, "psql", &["-v", "ON_ERROR_STOP=1", "-f", &path.display().to_string(), "features"]))?;
    for wanted in ["COPY 2", "generated", "rows 4", "Table \"public.t\""] {
        ensure!(said.contains(wanted), "{wanted}: {said}");
    }
    server.finish()
}

fn python() -> Result<()> {
    let server = member(&*fleet()?, Some(0))?;
    database("drivers")?;
    let mut python = Command::new(interpreter());
    python
        .arg(crate::client::beside("upstreams/drivers_test.py"))
        .env("TEST_URL", format!("postgresql://mira@127.0.0.1:{}/drivers", server.port()))
        .env("PGPASSWORD", PASSWORD)
        .stdin(Stdio::null());
    succeeds(python)?;
    server.finish()
}
