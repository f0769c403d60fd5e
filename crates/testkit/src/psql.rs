//! The real psql.

use std::io::Write;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::server::{ADMIN, ADMIN_PASSWORD, DATABASE, Server};

/// What a program printed and how it ended.
#[derive(Debug)]
pub struct Ran {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// The exit code; none if a signal ended it.
    pub code: Option<i32>,
}

/// Runs psql as the superuser with `arguments`, feeding it `input`.
pub fn psql(server: &Server, arguments: &[&str], input: &str) -> Result<Ran> {
    let port = server.port().to_string();
    let connection = ["--host", "127.0.0.1", "--port", &port, "--username", ADMIN, "--dbname", DATABASE];
    run(&[&connection, arguments].concat(), input)
}

/// Runs psql with a connection string of libpq's, completed by the superuser's password, and one statement.
pub fn psql_with(connection: &str, statement: &str) -> Result<Ran> {
    run(&["--dbname", connection, "--no-align", "--tuples-only", "--command", statement], "")
}

fn run(arguments: &[&str], input: &str) -> Result<Ran> {
    let mut child = Command::new("psql")
        .args(["--no-psqlrc", "--no-password"])
        .args(arguments)
        .env("PGPASSWORD", ADMIN_PASSWORD)
        .env("LC_ALL", "C")
        .env_remove("PGOPTIONS")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("psql cannot be started; scripts/test installs it")?;
    let mut standard_input = child.stdin.take().context("psql has no standard input")?;
    let text = input.to_owned();
    // A thread, because psql may answer more than a pipe holds before it has read everything. It stops reading early
    // when it ends on an error: a closed pipe is then no fault of the test.
    let feeder = std::thread::spawn(move || {
        let _closed_early = standard_input.write_all(text.as_bytes());
    });
    let output = child.wait_with_output()?;
    let _joined = feeder.join();
    Ok(Ran {
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        code: output.status.code(),
    })
}
