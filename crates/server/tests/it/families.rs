//! Every system table has its file of SQL, and every such file its table.

use std::collections::BTreeSet;

use anyhow::{Context, ensure};
use libtest_mimic::Trial;
use switchyard_testkit::{Server, files_under};

pub fn trials() -> Vec<Trial> {
    vec![crate::with_server("every_system_table_has_its_file", every_system_table_has_its_file)]
}

fn every_system_table_has_its_file(server: &Server) -> anyhow::Result<()> {
    // Those that describe the others as PostgreSQL and the standard do are asked in `sql-tests/clients`.
    let rows = server.admin()?.query(
        "SELECT schema_name || '.' || table_name FROM switchyard.system_tables \
         WHERE schema_name NOT IN ('pg_catalog', 'information_schema')",
    )?;
    let tables: BTreeSet<String> = rows.into_iter().flatten().flatten().collect();
    ensure!(!tables.is_empty(), "switchyard.system_tables is empty");
    let mut files = BTreeSet::new();
    for path in files_under("sql-tests/system", "slt")? {
        let stem = path.file_stem().context("a file without a name")?;
        files.insert(stem.to_string_lossy().into_owned());
    }
    let untested: Vec<_> = tables.difference(&files).collect();
    let stray: Vec<_> = files.difference(&tables).collect();
    ensure!(untested.is_empty(), "no file in sql-tests/system for {untested:?}");
    ensure!(stray.is_empty(), "no system table for the files {stray:?} in sql-tests/system");
    Ok(())
}
