//! Three members on one etcd, whose data is in memory: what members add is measured, and not etcd's disk.

use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use switchyard_testkit::{ADMIN, ADMIN_PASSWORD, Client, Etcd, Login, Server, psql};

use super::rules::{self, GROUP, RULES};
use super::{Figure, commit, options};

const CHANGES: u64 = 500;
const VISIBLE_MS_MAX: f64 = 50.0;
const COMMITS: u32 = 10_000;
/// The first and the last so many of them are compared.
const COMPARED: u32 = 1_000;
const SLOWER_MAX: f64 = 1.2;
const JOIN_SECONDS_MAX: f64 = 3.0;
/// How many connections a second there are to be, by how many clients, and which part of that is enough to count.
const RATE: f64 = 200.0;
const RATE_MET: f64 = 0.9;
const CLIENTS: u32 = 32;
const CHANGES_MEANWHILE: u64 = 20;
const PATIENCE: Duration = Duration::from_secs(60);

/// When changes are visible elsewhere, whether commits become slower, how long joining takes, what a rolling restart costs.
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
    let Restarted { connections, failed, lost } = rolling_restart(binary)?;
    Ok(vec![
        Figure::at_most("a change is visible on two other members, 99 of 100", visible, VISIBLE_MS_MAX, "ms"),
        Figure::at_most("the last 1,000 of 10,000 commits, against the first", slower, SLOWER_MAX, "times"),
        Figure::at_most("a member joins with 100,000 rules", joined.as_secs_f64(), JOIN_SECONDS_MAX, "s"),
        Figure::at_least("connections a second while members restart", connections, RATE * RATE_MET, "per second"),
        Figure::at_most("connections that failed then", failed, 0.0, ""),
        Figure::at_most("acknowledged changes that were lost then", lost, 0.0, ""),
    ])
}

/// What came of a rolling restart.
struct Restarted {
    connections: f64,
    failed: f64,
    lost: f64,
}

/// Three members are stopped and started again, one after the other, while clients that know all three connect at a steady
/// rate and each member is told to change the catalog.
fn rolling_restart(binary: &PathBuf) -> Result<Restarted> {
    let etcd = Etcd::start()?;
    let mut servers = Vec::new();
    for name in ["first", "second", "third"] {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        servers
            .push(options(binary)?.member(&etcd, name).port(port).argument("--drain-ms-max").argument("5000").start()?);
    }
    let ports: Vec<u16> = servers.iter().map(Server::port).collect();
    let clients = Arc::new(Clients::default());
    let begun = Instant::now();
    let workers: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let (clients, ports) = (Arc::clone(&clients), ports.clone());
            thread::spawn(move || clients.connect(begun, number, &ports))
        })
        .collect();
    let mut changes = 0;
    for number in 0..servers.len() {
        let other = (number + 1) % servers.len();
        let stopped = servers.get_mut(number).context("no member")?;
        ensure!(stopped.terminate()? == 0, "a member does not end in good order");
        let mut admin = servers.get(other).context("no member")?.admin()?;
        for _ in 0..CHANGES_MEANWHILE {
            commit(&mut admin, &format!("CREATE SUBCLUSTER meanwhile{changes}"))?;
            changes += 1;
        }
        servers.get_mut(number).context("no member")?.restart()?;
        let up = "SELECT count(*) FROM nodes WHERE node_state = 'UP'";
        while admin.query(up)? != [[Some("3".to_owned())]] {
            ensure!(begun.elapsed() < PATIENCE, "a member is not up again");
        }
    }
    let took = begun.elapsed();
    clients.stop.store(true, Ordering::Relaxed);
    for worker in workers {
        worker.join().ok().context("a client panicked")?;
    }
    let mut lost: u64 = 0;
    for server in &servers {
        let kept = "SELECT count(DISTINCT subcluster_name) FROM subclusters WHERE subcluster_name LIKE 'meanwhile%'";
        let rows = server.admin()?.query(kept)?;
        let kept: u64 = rows.into_iter().flatten().flatten().next().context("no count")?.parse()?;
        lost = lost.max(changes - kept);
    }
    servers.into_iter().try_for_each(Server::finish)?;
    let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed) as f64;
    Ok(Restarted {
        connections: of(&clients.made) / took.as_secs_f64(),
        failed: of(&clients.failed),
        lost: lost as f64,
    })
}

/// Clients that connect, ask something and go.
#[derive(Default)]
struct Clients {
    stop: AtomicBool,
    made: AtomicU64,
    failed: AtomicU64,
}

impl Clients {
    /// Each in its turn, so that together they keep the rate, whatever one of them waits for.
    fn connect(&self, begun: Instant, number: u32, ports: &[u16]) {
        let every = Duration::from_secs_f64(f64::from(CLIENTS) / RATE);
        let mut next = begun + every.mul_f64(f64::from(number) / f64::from(CLIENTS));
        let mut turn = usize::try_from(number).unwrap_or_default();
        while !self.stop.load(Ordering::Relaxed) {
            thread::sleep(next.saturating_duration_since(Instant::now()));
            next += every;
            turn += 1;
            // As drivers do with backup hosts: whoever does not take it is passed over. Once it is taken it must be served.
            let mut hosts = ports.iter().cycle().skip(turn % ports.len()).take(ports.len());
            let client = hosts.find_map(|port| Client::connect(&Login::new(*port, ADMIN, ADMIN_PASSWORD)).ok());
            let served = client.is_some_and(|mut client| client.query("SELECT 1").is_ok() && client.close().is_ok());
            let counter = if served { &self.made } else { &self.failed };
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }
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
