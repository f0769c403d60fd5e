//! Members and etcd that die, freeze and come back while everybody commits: nothing acknowledged is lost, versions only
//! rise, and nobody is sent to a member that is down.
//!
//! `SWITCHYARD_TEST_CHAOS_ROUNDS` sets how many faults there are, `SWITCHYARD_TEST_CHAOS_SEED` which.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result, bail, ensure};
use libtest_mimic::Trial;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use switchyard_testkit::{ADMIN, ADMIN_PASSWORD, Client, Etcd, Login, Protocol, Server, told};

use crate::fleet::{NAMES, balance, on_fixed_ports, one, until, wait_for_state};

const ROUNDS: u64 = 10;

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

fn faults_at_random() -> Result<()> {
    let (rounds, seed) =
        (number("SWITCHYARD_TEST_CHAOS_ROUNDS", ROUNDS)?, number("SWITCHYARD_TEST_CHAOS_SEED", rand::random())?);
    run(rounds, seed).with_context(|| format!("SWITCHYARD_TEST_CHAOS_SEED={seed}"))
}

fn run(rounds: u64, seed: u64) -> Result<()> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut etcd = Etcd::start()?;
    let mut servers = on_fixed_ports(&etcd, |options| options.argument("--etcd-time-ms-max").argument("500"))?;
    balance(&mut servers.first().context("none")?.admin()?, &servers.iter().collect::<Vec<_>>())?;
    let seen = Arc::new(Seen::default());
    let workers: Vec<JoinHandle<Result<()>>> = servers
        .iter()
        .enumerate()
        .flat_map(|(member, server)| {
            let (port, writing, watching) = (server.port(), Arc::clone(&seen), Arc::clone(&seen));
            [thread::spawn(move || write(port, member, &writing)), thread::spawn(move || watch(port, &watching))]
        })
        .collect();
    let mut faults = BTreeMap::new();
    let mut broken = Ok(());
    for _ in 0..rounds {
        let fault = rng.random_range(0..5);
        let member = rng.random_range(0..servers.len());
        broken =
            one_fault(fault, member, &mut servers, &mut etcd).with_context(|| format!("fault {fault} at {member}"));
        if broken.is_err() {
            break;
        }
        *faults.entry(fault).or_insert(0) += 1;
        let before = count(&seen)?;
        broken = until("nobody commits any more", || Ok(count(&seen)? > before));
        if broken.is_err() {
            break;
        }
    }
    seen.stop.store(true, Ordering::Relaxed);
    for worker in workers {
        let Ok(worked) = worker.join() else { bail!("a worker panicked") };
        worked?;
    }
    broken?;
    all_agree(&servers, &seen)?;
    for mut server in servers {
        ensure!(server.terminate()? == 0);
        ensure!(!server.log()?.contains("panicked at"), "{}", server.log()?);
    }
    Ok(())
}

/// Breaks something, looks at what must follow, and mends it.
fn one_fault(fault: u32, member: usize, servers: &mut [Server], etcd: &mut Etcd) -> Result<()> {
    let other = (member + 1) % servers.len();
    let (name, port) = (NAMES.get(member).context("no such member")?, servers.get(member).context("none")?.port());
    let at = |servers: &[Server]| servers.get(other).context("none").and_then(Server::admin);
    match fault {
        0 | 1 => {
            let server = servers.get_mut(member).context("none")?;
            if fault == 0 {
                server.kill()?
            } else {
                server.freeze()?
            }
            let mut watching = at(servers)?;
            wait_for_state(&mut watching, name, "DOWN")?;
            let there = servers.get(other).context("none")?.port();
            for _ in 0..6 {
                ensure!(told([127, 0, 0, 1].into(), there)? != Some(port), "sent to {name}, which is down");
            }
            let server = servers.get_mut(member).context("none")?;
            if fault == 0 {
                server.restart()?
            } else {
                server.thaw()?
            }
            wait_for_state(&mut watching, name, "UP")
        }
        2 => {
            etcd.kill()?;
            // Logins go on meanwhile.
            at(servers)?.close()?;
            etcd.run()
        }
        3 => {
            etcd.freeze()?;
            at(servers)?.close()?;
            etcd.thaw()
        }
        _ => {
            let server = servers.get_mut(member).context("none")?;
            ensure!(server.terminate()? == 0);
            server.restart()?;
            wait_for_state(&mut at(servers)?, name, "UP")
        }
    }
}

fn count(seen: &Seen) -> Result<usize> {
    Ok(seen.acknowledged.lock().ok().context("a worker panicked")?.len())
}

/// Commits for as long as it may, whatever happens to its member.
fn write(port: u16, member: usize, seen: &Seen) -> Result<()> {
    let login = Login::new(port, ADMIN, ADMIN_PASSWORD);
    let mut number = 0_u64;
    while !seen.stop.load(Ordering::Relaxed) {
        let Ok(mut client) = Client::connect(&login) else { continue };
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
fn watch(port: u16, seen: &Seen) -> Result<()> {
    let login = Login::new(port, ADMIN, ADMIN_PASSWORD);
    let mut newest = 0;
    while !seen.stop.load(Ordering::Relaxed) {
        let Ok(mut client) = Client::connect(&login) else { continue };
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
fn all_agree(servers: &[Server], seen: &Seen) -> Result<()> {
    let query = "SELECT DISTINCT subcluster_name FROM subclusters";
    let mut clients = servers.iter().map(Server::admin).collect::<Result<Vec<_>>>()?;
    until("the members do not agree", || {
        let of =
            |client: &mut Client| Ok(client.query(query)?.into_iter().flatten().flatten().collect::<BTreeSet<_>>());
        let known = clients.iter_mut().map(of).collect::<Result<Vec<BTreeSet<String>>>>()?;
        let acknowledged = seen.acknowledged.lock().ok().context("a worker panicked")?;
        for known in &known {
            let lost: Vec<&String> = acknowledged.difference(known).collect();
            if !lost.is_empty() {
                return Ok(false);
            }
        }
        Ok(known.iter().all(|one| Some(one) == known.first()))
    })
}
