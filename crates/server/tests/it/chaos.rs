//! Members and etcds that die, freeze and come back while everybody commits, by drivers too: nothing acknowledged is lost,
//! versions only rise, and nobody is sent to a member that is down.
//!
//! `SWITCHYARD_TEST_CHAOS_S` sets for how many seconds there are faults, `SWITCHYARD_TEST_CHAOS_SEED` which.

use std::collections::BTreeSet;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use libtest_mimic::Trial;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use switchyard_testkit::{ADMIN, ADMIN_PASSWORD, Client, Etcd, Login, Protocol, Server, told};

use crate::client::beside;
use crate::fleet::{NAMES, balance, on_fixed_ports, one, until, wait_for_state};
use crate::python::interpreter;

/// How long there are faults.
const FAULTS_S: u64 = 60;
/// No answer takes longer, unless it is lost.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);

pub(crate) fn trials() -> Vec<Trial> {
    vec![crate::trial("faults_at_random_lose_nothing", faults_at_random)]
}

fn number(variable: &str, default: u64) -> Result<u64> {
    match std::env::var(variable) {
        Ok(text) => text.parse().with_context(|| format!("{variable} is no number")),
        Err(_) => Ok(default),
    }
}

/// What is known while it goes on.
#[derive(Default)]
struct Seen {
    stop: AtomicBool,
    acknowledged: Mutex<BTreeSet<String>>,
}

/// Everybody who commits and watches, at each of some members.
pub(crate) struct Work {
    seen: Arc<Seen>,
    workers: Vec<JoinHandle<Result<()>>>,
    drivers: Child,
}

impl Drop for Work {
    fn drop(&mut self) {
        // A test that failed: nobody may outlive it.
        self.seen.stop.store(true, Ordering::Relaxed);
        let _gone = self.drivers.kill();
        let _reaped = self.drivers.wait();
    }
}

impl Work {
    /// Begins.
    pub(crate) fn start(servers: &[Server]) -> Result<Self> {
        let seen = Arc::new(Seen::default());
        let workers = servers
            .iter()
            .enumerate()
            .flat_map(|(member, server)| {
                let login = server.login().waiting(ANSWER_WITHIN);
                let (other, writing, watching) = (login.clone(), Arc::clone(&seen), Arc::clone(&seen));
                [
                    thread::spawn(move || write(&login, member, &writing)),
                    thread::spawn(move || watch(&other, &watching)),
                ]
            })
            .collect();
        let hosts: Vec<String> = servers.iter().map(|server| server.address().to_string()).collect();
        let drivers = Command::new(interpreter())
            .arg(beside("faults_test.py"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("SWITCHYARD_TEST_HOSTS", hosts.join(","))
            .env("SWITCHYARD_TEST_USER", ADMIN)
            .env("SWITCHYARD_TEST_PASSWORD", ADMIN_PASSWORD)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        Ok(Self { seen, workers, drivers })
    }

    /// Waits until somebody commits.
    pub(crate) fn goes_on(&self) -> Result<()> {
        let before = count(&self.seen)?;
        until("nobody commits any more", || Ok(count(&self.seen)? > before))
    }

    /// Ends, and looks whether all members have all that anybody was told to be committed.
    pub(crate) fn end(mut self, servers: &[Server]) -> Result<()> {
        self.seen.stop.store(true, Ordering::Relaxed);
        for worker in std::mem::take(&mut self.workers) {
            let Ok(worked) = worker.join() else { bail!("a worker panicked") };
            worked?;
        }
        drop(self.drivers.stdin.take());
        let (mut said, mut complaints) = (String::new(), String::new());
        std::io::Read::read_to_string(&mut self.drivers.stdout.take().context("no output")?, &mut said)?;
        std::io::Read::read_to_string(&mut self.drivers.stderr.take().context("no errors")?, &mut complaints)?;
        ensure!(self.drivers.wait()?.success(), "{complaints}");
        for driver in ["bypsycopg", "byvertica"] {
            ensure!(said.lines().any(|line| line.starts_with(driver)), "{driver} has committed nothing: {complaints}");
        }
        let mut acknowledged = self.seen.acknowledged.lock().ok().context("a worker panicked")?.clone();
        acknowledged.extend(said.lines().map(str::to_owned));
        all_agree(servers, &acknowledged)
    }
}

fn faults_at_random() -> Result<()> {
    let seconds = number("SWITCHYARD_TEST_CHAOS_S", FAULTS_S)?;
    let seed = number("SWITCHYARD_TEST_CHAOS_SEED", rand::random())?;
    run(Duration::from_secs(seconds), seed).with_context(|| format!("SWITCHYARD_TEST_CHAOS_SEED={seed}"))
}

fn run(time: Duration, seed: u64) -> Result<()> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut etcds = Etcd::three()?;
    let endpoints: Vec<String> = etcds.iter().map(Etcd::url).collect();
    let quick = |options: switchyard_testkit::ServerOptions| options.argument("--etcd-time-ms-max").argument("1000");
    let mut servers = on_fixed_ports(&endpoints.join(","), quick)?;
    balance(&mut servers.first().context("none")?.admin()?, &servers.iter().collect::<Vec<_>>())?;
    let work = Work::start(&servers)?;
    let begun = Instant::now();
    let mut faults = 0;
    while begun.elapsed() < time {
        let fault = rng.random_range(0..6);
        let (member, etcd) = (rng.random_range(0..servers.len()), rng.random_range(0..etcds.len()));
        one_fault(fault, member, etcd, &mut servers, &mut etcds)
            .and_then(|()| work.goes_on())
            .with_context(|| format!("fault {faults}: {fault} at member {member}, etcd {etcd}"))?;
        faults += 1;
    }
    work.end(&servers)?;
    for mut server in servers {
        ensure!(server.terminate()? == 0);
        ensure!(!server.log()?.contains("panicked at"), "{}", server.log()?);
    }
    Ok(())
}

/// Breaks something, looks at what must follow, and mends it.
fn one_fault(fault: u32, member: usize, etcd: usize, servers: &mut [Server], etcds: &mut [Etcd]) -> Result<()> {
    let other = (member + 1) % servers.len();
    let name = NAMES.get(member).context("no such member")?;
    let at = |servers: &[Server]| servers.get(other).context("none").and_then(Server::admin);
    match fault {
        0 | 1 => down_and_up(fault == 0, member, servers),
        2 => {
            // One of three, which may lead: the others go on.
            let etcd = etcds.get_mut(etcd).context("none")?;
            etcd.kill()?;
            at(servers)?.close()?;
            etcd.run()
        }
        3 => {
            let etcd = etcds.get(etcd).context("none")?;
            etcd.freeze()?;
            at(servers)?.close()?;
            etcd.thaw()
        }
        4 => {
            // All of them. Logins go on meanwhile.
            etcds.iter_mut().try_for_each(Etcd::kill)?;
            at(servers)?.close()?;
            etcds.iter_mut().try_for_each(Etcd::spawn)?;
            etcds.iter_mut().try_for_each(Etcd::wait)
        }
        _ => {
            let server = servers.get_mut(member).context("none")?;
            ensure!(server.terminate()? == 0);
            server.restart()?;
            wait_for_state(&mut at(servers)?, name, "UP")
        }
    }
}

/// A member is killed or frozen: nobody is sent there until it is back.
fn down_and_up(kill: bool, member: usize, servers: &mut [Server]) -> Result<()> {
    let other = (member + 1) % servers.len();
    let (name, port) = (NAMES.get(member).context("no such member")?, servers.get(member).context("none")?.port());
    let server = servers.get_mut(member).context("none")?;
    if kill {
        server.kill()?
    } else {
        server.freeze()?
    }
    let mut watching = servers.get(other).context("none")?.admin()?;
    wait_for_state(&mut watching, name, "DOWN")?;
    let there = servers.get(other).context("none")?.port();
    for _ in 0..6 {
        ensure!(told([127, 0, 0, 1].into(), there)? != Some(port), "sent to {name}, which is down");
    }
    let server = servers.get_mut(member).context("none")?;
    if kill {
        server.restart()?
    } else {
        server.thaw()?
    }
    wait_for_state(&mut watching, name, "UP")
}

fn count(seen: &Seen) -> Result<usize> {
    Ok(seen.acknowledged.lock().ok().context("a worker panicked")?.len())
}

/// Commits for as long as it may, whatever happens to its member.
fn write(login: &Login, member: usize, seen: &Seen) -> Result<()> {
    let mut number = 0_u64;
    while !seen.stop.load(Ordering::Relaxed) {
        let Ok(mut client) = Client::connect(login) else { continue };
        while !seen.stop.load(Ordering::Relaxed) {
            number += 1;
            let name = format!("w{member}_{number}");
            let Ok(outcome) = client.run(&format!("CREATE SUBCLUSTER {name}"), Protocol::Simple) else { break };
            match outcome.code() {
                None => drop(seen.acknowledged.lock().ok().context("a worker panicked")?.insert(name)),
                // Another member was faster too often; etcd is away; the answer got lost; the member stops.
                Some("40001" | "58030" | "08007") => {}
                Some("57P01" | "57P03") => break,
                Some(_) => bail!("{outcome:?}"),
            }
        }
    }
    Ok(())
}

/// The version that a member knows never falls, not even when it starts anew.
fn watch(login: &Login, seen: &Seen) -> Result<()> {
    let mut newest = 0;
    while !seen.stop.load(Ordering::Relaxed) {
        let Ok(mut client) = Client::connect(login) else { continue };
        // None is ever dropped: a newer version has as many, or more.
        while let Ok(Some(count)) = one(&mut client, "SELECT count(DISTINCT subcluster_name)::varchar FROM subclusters")
        {
            let count: u64 = count.parse()?;
            ensure!(count >= newest, "{count} objects after {newest}");
            newest = count;
            if seen.stop.load(Ordering::Relaxed) {
                break;
            }
        }
    }
    Ok(())
}

/// All members have the same catalog, with all that was acknowledged.
fn all_agree(servers: &[Server], acknowledged: &BTreeSet<String>) -> Result<()> {
    let query = "SELECT DISTINCT subcluster_name FROM subclusters";
    let mut clients = servers.iter().map(Server::admin).collect::<Result<Vec<_>>>()?;
    until("the members do not agree", || {
        let of =
            |client: &mut Client| Ok(client.query(query)?.into_iter().flatten().flatten().collect::<BTreeSet<_>>());
        let known = clients.iter_mut().map(of).collect::<Result<Vec<BTreeSet<String>>>>()?;
        for known in &known {
            let lost: Vec<&String> = acknowledged.difference(known).collect();
            if !lost.is_empty() {
                return Ok(false);
            }
        }
        Ok(known.iter().all(|one| Some(one) == known.first()))
    })
}
