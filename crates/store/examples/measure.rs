//! Prints what the redb store costs: `cargo run --release -p switchyard-store --example measure [FOLDER]`.
//!
//! The folder, by default the system's one for temporary files, should be on the disk that matters.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a measurement that fails has nothing to say")]

use std::env;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use switchyard_catalog::Catalog;
use switchyard_store::{Loaded, RedbStore, Store};

#[expect(dead_code, reason = "shared with the tests")]
#[path = "../tests/store/support.rs"]
mod support;

use support::{commit, database, first, made, rule};

const RULES: u64 = 100_000;
const COMMITS: u64 = 1_000;
/// The first id of the rules that single commits make.
const SINGLE_FIRST: u64 = 10_000_000;

#[tokio::main]
async fn main() {
    let parent = env::args_os().nth(1).unwrap_or_else(|| env::temp_dir().into());
    let folder = tempfile::tempdir_in(parent).unwrap();

    let empty = RedbStore::open(folder.path().join("empty")).unwrap();
    empty.commit(first()).await.unwrap();
    commits_and_appends("an empty catalog", &empty, folder.path()).await;

    let path = folder.path().join("full");
    let full = RedbStore::open(&path).unwrap();
    let mut large = commit(0, (0..RULES).map(|n| made(rule(1_000 + n, &format!("rule{n}")))).collect());
    large.deltas.push(made(database()));
    large.record.statements =
        (0..RULES).map(|n| format!("CREATE ROUTING RULE rule{n} ROUTE '10.0.0.1' TO g")).collect();
    let start = Instant::now();
    full.commit(large).await.unwrap();
    println!("one commit of {RULES} rules: {:.2?}", start.elapsed());
    commits_and_appends(&format!("a catalog of {RULES} rules"), &full, folder.path()).await;
    drop(full);

    println!("the file: {} MB", fs::metadata(&path).unwrap().len() / 1_000_000);
    let start = Instant::now();
    let full = RedbStore::open(&path).unwrap();
    println!("open, with every page checked: {:.0?}", start.elapsed());
    let start = Instant::now();
    let Loaded { version, id_next, entities } = full.load().await.unwrap().unwrap();
    println!("load {} entities: {:.0?}", entities.len(), start.elapsed());
    let start = Instant::now();
    let newest = Catalog::from_entities(version, id_next, entities).unwrap();
    println!("put the catalog together: {:.0?}", start.elapsed());
    let start = Instant::now();
    let entries = full.history(1, usize::MAX).await.unwrap().len();
    println!("history of {entries} commits: {:.1?}", start.elapsed());
    let start = Instant::now();
    full.catalog_at(&newest, 1).await.unwrap().unwrap();
    println!("{entries} versions back: {:.1?}", start.elapsed());
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    println!("{}", status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default());
}

/// Commits of one statement, and bare appends of 4 KiB, each with an fsync, by turns.
async fn commits_and_appends(to: &str, store: &RedbStore, folder: &Path) {
    let mut bare = File::create(folder.join("bare")).unwrap();
    let (mut commits, mut appends) = (Vec::new(), Vec::new());
    let version = store.load().await.unwrap().unwrap().version;
    for base in version..version + COMMITS {
        let id = SINGLE_FIRST + base;
        let single = commit(base, vec![made(rule(id, &format!("single{id}")))]);
        let start = Instant::now();
        store.commit(single).await.unwrap();
        commits.push(start.elapsed());
        let start = Instant::now();
        bare.write_all(&[7; 4096]).unwrap();
        bare.sync_data().unwrap();
        appends.push(start.elapsed());
    }
    let [commit_ms, append_ms] = [commits, appends].map(summary);
    println!("commits to {to}: {commit_ms}");
    println!("bare appends by turns: {append_ms}");
}

fn summary(mut times: Vec<Duration>) -> String {
    let sum: Duration = times.iter().sum();
    times.sort_unstable();
    let rate = times.len() as f64 / sum.as_secs_f64();
    format!("{rate:.0} a second, p50 {:.0?}, p99 {:.0?}", times[times.len() / 2], times[times.len() * 99 / 100])
}
