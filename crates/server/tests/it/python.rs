//! Python's drivers and what is built on them, each with a script of its own.

use std::path::PathBuf;

use libtest_mimic::Trial;
use switchyard_testkit::Server;

use crate::client::{beside, made, succeeds};

pub fn trials() -> Vec<Trial> {
    vec![
        crate::with_server("psycopg", |server| script(server, "psycopg_test.py")),
        crate::with_server("psycopg2", |server| script(server, "psycopg2_test.py")),
        crate::with_server("asyncpg", |server| script(server, "asyncpg_test.py")),
        crate::with_server("sqlalchemy", |server| script(server, "sqlalchemy_test.py")),
        crate::with_server("pyodbc", |server| script(server, "pyodbc_test.py")),
        crate::with_server("pgcli", |server| script(server, "pgcli_test.py")),
    ]
}

/// The interpreter that has the drivers: `scripts/test` makes it.
pub fn interpreter() -> PathBuf {
    made("SWITCHYARD_TEST_PYTHON", "python/bin/python")
}

fn script(server: &Server, name: &str) -> anyhow::Result<()> {
    succeeds(server, &interpreter(), |python| {
        python.arg(beside(name)).env("PYTHONDONTWRITEBYTECODE", "1");
    })
}
