//! Prints what the etcd store costs, on an etcd that it starts: `cargo run --release -p switchyard-store --example
//! measure_etcd [COMMITS]`.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a measurement that fails has nothing to say"
)]

use std::env;
use std::sync::Arc;
use std::time::{Duration, Instant};

use switchyard_catalog::Catalog;
use switchyard_store::{EtcdStore, Loaded, News, Store};
use tokio::sync::mpsc;

#[expect(dead_code, reason = "shared with the tests")]
#[path = "../tests/etcd/server.rs"]
mod server;
#[expect(dead_code, reason = "shared with the tests")]
#[path = "../tests/store/support.rs"]
mod support;

use server::Etcd;
use support::{commit, database, made, rule};

const RULES: u64 = 100_000;
/// The first id of the rules that single commits make.
const SINGLE_FIRST: u64 = 10_000_000;

#[tokio::main]
async fn main() {
    let commits: u64 = env::args().nth(1).map_or(1_000, |count| count.parse().unwrap());
    let etcd = Etcd::start().await;
    let store = etcd.store("/measure").await;
    let others = [Arc::new(etcd.store("/measure").await), Arc::new(etcd.store("/measure").await)];

    let mut large = commit(0, (0..RULES).map(|n| made(rule(1_000 + n, &format!("rule{n}")))).collect());
    large.deltas.push(made(database()));
    large.id_next = SINGLE_FIRST;
    let start = Instant::now();
    store.commit(large).await.unwrap();
    println!("one commit of {RULES} rules: {:.0?}", start.elapsed());
    load(&etcd, "from history").await;
    let start = Instant::now();
    store.snapshot().await.unwrap();
    println!("snapshot, unless the store was faster: {:.0?}", start.elapsed());
    load(&etcd, "from the snapshot").await;

    let (seen, mut all_seen) = mpsc::unbounded_channel();
    for other in &others {
        tokio::spawn(follow(Arc::clone(other), seen.clone()));
    }
    let mut before = 1;
    for part in 0..4 {
        let (mut took, mut visible) = (Vec::new(), Vec::new());
        for base in before..before + commits / 4 {
            let start = Instant::now();
            store.commit(commit(base, vec![made(rule(SINGLE_FIRST + base, &format!("s{base}")))])).await.unwrap();
            took.push(start.elapsed());
            for _ in &others {
                let (version, at): (u64, Instant) = all_seen.recv().await.unwrap();
                assert_eq!(version, base + 1);
                visible.push(at.saturating_duration_since(start));
            }
        }
        before += commits / 4;
        println!("commits, quarter {part}: {}; seen by two others, from the start: {}", of(took), of(visible));
    }
    load(&etcd, "after all commits").await;
    let found = etcd.dump("/measure/").await;
    let bytes: usize = found.iter().map(|(key, value)| key.len() + value.len()).sum();
    println!("{} keys, {} kB", found.len(), bytes / 1_000);
}

async fn load(etcd: &Etcd, what: &str) {
    let start = Instant::now();
    let store = etcd.store("/measure").await;
    let Loaded { version, id_next, entities } = store.load().await.unwrap().unwrap();
    let loaded = start.elapsed();
    let catalog = Catalog::from_entities(version, id_next, entities).unwrap();
    println!("open and load {what}: {loaded:.0?}, with the catalog put together: {:.0?}", start.elapsed());
    drop(catalog);
}

async fn follow(store: Arc<EtcdStore>, seen: mpsc::UnboundedSender<(u64, Instant)>) {
    let mut known = 1;
    loop {
        for news in store.newer(known).await.unwrap() {
            let News::Next { version, .. } = news else { panic!("nothing was given up") };
            known = version;
            if seen.send((version, Instant::now())).is_err() {
                return;
            }
        }
    }
}

fn of(mut times: Vec<Duration>) -> String {
    times.sort();
    format!("p50 {:.2?}, p99 {:.2?}", times[times.len() / 2], times[times.len() * 99 / 100])
}
