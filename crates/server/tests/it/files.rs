//! The files of SQL: each over each protocol, and on each store; those about routing with three members that are up.

use libtest_mimic::Trial;
use switchyard_testkit::{Protocol, Store, files_under, slt};

const RUNS: [(Store, Protocol); 3] =
    [(Store::Memory, Protocol::Simple), (Store::Redb, Protocol::Extended), (Store::Memory, Protocol::Binary)];

/// One test for each file and run.
pub fn trials() -> anyhow::Result<Vec<Trial>> {
    // Rewriting takes the first run only: three at once would write over each other.
    let runs = if std::env::var_os(slt::REWRITE).is_some() { &RUNS[..1] } else { &RUNS[..] };
    let mut trials = Vec::new();
    for file in files_under("sql-tests", "slt")? {
        if file.starts_with("sql-tests/fixtures") {
            continue;
        }
        for (store, protocol) in runs.iter().copied() {
            let name = format!("{} ({}, {})", file.display(), store.name(), protocol.name());
            let file = file.clone();
            trials.push(crate::trial(&name, move || {
                let mut options = crate::options().store(store);
                if file.starts_with("sql-tests/routing") {
                    options = options.quickstart();
                }
                let server = options.start()?;
                slt::run_file(&server, &file, protocol)?;
                server.finish()
            }));
        }
    }
    Ok(trials)
}
