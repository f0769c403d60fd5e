//! Three members on one etcd, whose data is in memory: what members add is measured, and not etcd's disk.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use switchyard_testkit::{Client, Etcd, Server, psql};

use super::rules::{self, GROUP, RULES};
use super::{Figure, commit, options};

const CHANGES: u64 = 500;
const VISIBLE_MS_MAX: f64 = 50.0;
const COMMITS: u32 = 10_000;
/// The first and the last so many of them are compared.
const COMPARED: u32 = 1_000;
const SLOWER_MAX: f64 = 1.2;
const JOIN_SECONDS_MAX: f64 = 3.0;
const PATIENCE: Duration = Duration::from_secs(60);

/// When changes are visible elsewhere, whether commits become slower, how long joining takes.
pub fn measure(binary: &PathBuf) -> Result<Vec<Figure>> {
    let etcd = Etcd::start()?;
    let members = ["first", "second", "third"].map(|name| options(binary)?.member(&etcd, name).start());
    let [first, second, third] = members;
    let (first, others) = (first?, [second?, third?]);
    commit(&mut first.admin()?, GROUP)?;
    let visible = visible(&first, &others)?;
    let script = rules::script()?;
    let script = script.strip_prefix(GROUP).context("the script begins otherwise")?;
    let ran = psql(&first, &["--single-transaction", "--quiet", "-v", "ON_ERROR_STOP=1"], script)?;
    ensure!(ran.code == Some(0), "{}", ran.stderr);
    let slower = slower(&first)?;
    let fourth = options(binary)?.member(&etcd, "fourth").start()?;
    ensure!(count(&mut fourth.admin()?)? >= u64::from(RULES), "the member that joined does not have all rules");
    let joined = fourth.ready_after();
    fourth.finish()?;
    let [second, third] = others;
    [first, second, third].into_iter().try_for_each(Server::finish)?;
    Ok(vec![
        Figure::at_most("a change is visible on two other members, 99 of 100", visible, VISIBLE_MS_MAX, "ms"),
        Figure::at_most("the last 1,000 of 10,000 commits, against the first", slower, SLOWER_MAX, "times"),
        Figure::at_most("a member joins with 100,000 rules", joined.as_secs_f64(), JOIN_SECONDS_MAX, "s"),
    ])
}

fn count(client: &mut Client) -> Result<u64> {
    let rows = client.query("SELECT count(*) FROM routing_rules")?;
    let text = rows.into_iter().flatten().flatten().next().context("no count")?;
    Ok(text.parse()?)
}

/// From the acknowledgement of a change to the first answer of the slower one of the others that has it, in milliseconds.
fn visible(first: &Server, others: &[Server; 2]) -> Result<f64> {
    let stop = Arc::new(AtomicBool::new(false));
    let mut seen = Vec::new();
    let mut watching = Vec::new();
    for other in others {
        let (mut client, known, stop) = (other.admin()?, Arc::new(AtomicU64::new(0)), Arc::clone(&stop));
        seen.push(Arc::clone(&known));
        watching.push(thread::spawn(move || -> Result<()> {
            while !stop.load(Ordering::Relaxed) {
                known.store(count(&mut client)?, Ordering::Relaxed);
            }
            client.close()
        }));
    }
    let mut client = first.admin()?;
    let before = count(&mut client)?;
    let mut times = Vec::new();
    for number in 1..=CHANGES {
        commit(&mut client, &format!("CREATE ROUTING RULE seen{number} ROUTE '10.9.0.{}/32' TO g", number % 256))?;
        let acknowledged = Instant::now();
        while seen.iter().any(|known| known.load(Ordering::Relaxed) < before.saturating_add(number)) {
            ensure!(acknowledged.elapsed() < PATIENCE, "a change is not seen");
            thread::yield_now();
        }
        times.push(acknowledged.elapsed());
    }
    stop.store(true, Ordering::Relaxed);
    for watcher in watching {
        watcher.join().ok().context("a watcher panicked")??;
    }
    times.sort_unstable();
    let most = times.get(times.len().saturating_mul(99) / 100).copied().unwrap_or_default();
    Ok(most.as_secs_f64() * 1_000.0)
}

fn slower(server: &Server) -> Result<f64> {
    let mut client = server.admin()?;
    let mut marks = vec![Instant::now()];
    for number in 0..COMMITS {
        commit(&mut client, &format!("CREATE SUBCLUSTER one_of_many{number}"))?;
        if [COMPARED, COMMITS - COMPARED, COMMITS].contains(&(number + 1)) {
            marks.push(Instant::now());
        }
    }
    let [began, first, before_last, last] = marks[..] else { anyhow::bail!("no marks") };
    Ok((last - before_last).as_secs_f64() / (first - began).as_secs_f64())
}
