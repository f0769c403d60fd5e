//! psycopg, the driver of most scripts.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, ensure};
use libtest_mimic::Trial;
use switchyard_testkit::{ADMIN, ADMIN_PASSWORD, DATABASE, Server, repository_root};

pub fn trials() -> Vec<Trial> {
    vec![crate::with_server("psycopg", psycopg)]
}

/// The interpreter that has psycopg: `scripts/test` makes it.
pub fn interpreter() -> PathBuf {
    match std::env::var_os("SWITCHYARD_TEST_PYTHON") {
        Some(path) => path.into(),
        None => repository_root().join("target/python/bin/python"),
    }
}

fn psycopg(server: &Server) -> anyhow::Result<()> {
    let output = Command::new(interpreter())
        .arg(repository_root().join("crates/server/tests/it/psycopg_test.py"))
        .env("PGHOST", "127.0.0.1")
        .env("PGPORT", server.port().to_string())
        .env("PGUSER", ADMIN)
        .env("PGPASSWORD", ADMIN_PASSWORD)
        .env("PGDATABASE", DATABASE)
        .output()
        .with_context(|| format!("{} cannot be started; scripts/test makes it", interpreter().display()))?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
