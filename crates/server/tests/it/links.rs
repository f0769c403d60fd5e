//! Links between members, to etcd and to clients that are cut, in each direction, on hosts of the test's own. After each:
//! nothing acknowledged is lost, versions have only risen, and nobody was sent to a member that was down.
//!
//! The hosts are network namespaces, which only root may make: whoever else runs the tests is told that this one was not.

use std::net::Ipv4Addr;

use anyhow::{Context, Result, ensure};
use libtest_mimic::Trial;
use switchyard_testkit::{Client, Etcd, Network, Protocol, Refused, Server, may_make_networks, told_by};

use crate::chaos::Work;
use crate::fleet::{NAMES, last_reason, nth, one, until, wait_for, wait_for_all, wait_for_state};

/// On each host.
const PORT: u16 = 5433;
/// The host that etcd is on.
const ETCD: u8 = 4;
const INSIDE: &str = "links_are_cut_inside";

pub(crate) fn trials() -> Vec<Trial> {
    match Network::around() {
        Some(network) => vec![crate::trial(INSIDE, move || inside(&network))],
        None => vec![crate::trial("links_that_are_cut_lose_nothing", outside)],
    }
}

fn outside() -> Result<()> {
    if !may_make_networks() {
        eprintln!("NOT RUN: links_that_are_cut_lose_nothing makes network namespaces, which only root may");
        return Ok(());
    }
    Network::new("l", ETCD)?.run_inside(&std::env::current_exe()?, &["--exact", INSIDE])
}

fn inside(network: &Network) -> Result<()> {
    let etcd = Etcd::start_at(network, ETCD)?;
    let start = |name: &str, host: u8, port: u16| {
        let options = crate::options().member(&etcd, name).at(network, host).port(port);
        options.argument("--etcd-time-ms-max").argument("1000").argument("--drain-ms-max").argument("0").start()
    };
    let mut servers = Vec::new();
    for (name, host) in NAMES.iter().zip(1..) {
        servers.push(start(name, host, PORT)?);
    }
    let mut script = String::new();
    for (name, host) in NAMES.iter().zip(1..) {
        let address = network.address(host);
        script.push_str(&format!("CREATE NETWORK ADDRESS at_{name} ON {name} WITH '{address}' PORT {PORT};"));
    }
    script.push_str(
        "CREATE LOAD BALANCE GROUP everyone WITH ADDRESS at_north, at_east, at_south;\
         CREATE ROUTING RULE anybody ROUTE '0.0.0.0/0' TO everyone;\
         CREATE USER mira IDENTIFIED BY 'pw-mira';\
         ALTER USER mira SET KeepAliveIdleTime = 1;\
         ALTER USER mira SET KeepAliveProbeInterval = 1;\
         ALTER USER mira SET KeepAliveProbeCount = 2",
    );
    nth(&mut servers, 0)?.admin()?.query(&script)?;
    for server in &servers {
        wait_for_all(&mut server.admin()?)?;
    }
    let work = Work::start(&servers)?;
    between_members(network, &servers, &work)?;
    to_etcd(network, &servers, &work)?;
    to_a_client(network, &servers, &work)?;
    pulled(network, &servers, &work, || start("north", 2, PORT + 1))?;
    work.end(&servers)?;
    servers.into_iter().try_for_each(|mut server| {
        // As it must, without etcd.
        server.expect_error("commit failed");
        server.finish()
    })
}

fn at(servers: &[Server], number: usize) -> Result<Client> {
    servers.get(number).context("no such member")?.admin()
}

/// Whether a member misses the answers of others.
fn misses_somebody(client: &mut Client) -> Result<bool> {
    let outcome = client.run("SELECT count(*) FROM sessions", Protocol::Simple)?;
    Ok(outcome.notices.iter().any(|notice| notice.message.starts_with("these members did not answer")))
}

/// etcd knows better than members that do not hear each other.
fn between_members(network: &Network, servers: &[Server], work: &Work) -> Result<()> {
    let mut north = at(servers, 0)?;
    for cuts in [&[(1, 2)][..], &[(2, 1)], &[(1, 2), (2, 1)]] {
        for (from, to) in cuts {
            network.cut(*from, *to)?;
        }
        until("north still hears east", || misses_somebody(&mut north))?;
        work.goes_on()?;
        for number in 0..servers.len() {
            wait_for_all(&mut at(servers, number)?)?;
        }
        network.mend()?;
        until("north hears east no more", || Ok(!misses_somebody(&mut north)?))?;
        work.goes_on()?;
    }
    Ok(())
}

/// Whoever is cut off from etcd serves on, is shown to be so, and commits nothing.
fn to_etcd(network: &Network, servers: &[Server], work: &Work) -> Result<()> {
    let mut east = at(servers, 1)?;
    for cuts in [&[(1, ETCD)][..], &[(ETCD, 1)], &[(1, ETCD), (ETCD, 1)]] {
        for (from, to) in cuts {
            network.cut(*from, *to)?;
        }
        let cut_off = "it is cut off from etcd, but answers";
        until("north is not shown to be cut off", || Ok(last_reason(&mut east, "north")? == cut_off))?;
        wait_for_state(&mut east, "north", "UP")?;
        let mut north = at(servers, 0)?;
        let refused = north.run("CREATE SUBCLUSTER by_whoever_is_cut_off", Protocol::Simple)?;
        ensure!(refused.code() == Some("58030"), "{refused:?}");
        work.goes_on()?;
        network.mend()?;
        until("north is not seen again", || Ok(last_reason(&mut east, "north")? == "it is a member"))?;
        let seen = one(&mut east, "SELECT max(version)::varchar FROM catalog_history")?.context("no version")?;
        let query = format!("SELECT (max(version) >= {seen})::varchar FROM catalog_history");
        wait_for(&mut at(servers, 0)?, &query, "true")?;
        work.goes_on()?;
    }
    Ok(())
}

/// A client that does not answer the system's probes is given up, and its session ends.
fn to_a_client(network: &Network, servers: &[Server], work: &Work) -> Result<()> {
    let client = servers.first().context("no member")?.client("mira", "pw-mira")?;
    let mut east = at(servers, 1)?;
    let sessions = "SELECT count(*)::varchar FROM sessions WHERE user_name = 'mira'";
    wait_for(&mut east, sessions, "1")?;
    network.cut_from_clients(1)?;
    wait_for(&mut east, sessions, "0")?;
    drop(client);
    network.mend()?;
    work.goes_on()
}

/// A member without a network is down for all others, and its name is free for another process, of which there is one.
fn pulled(network: &Network, servers: &[Server], work: &Work, another: impl Fn() -> Result<Server>) -> Result<()> {
    let mut east = at(servers, 1)?;
    network.pull(1)?;
    wait_for_state(&mut east, "north", "DOWN")?;
    let gone = network.address(1).to_string();
    for server in servers.iter().skip(1) {
        wait_for_state(&mut server.admin()?, "north", "DOWN")?;
        for _ in 0..6 {
            let told = told_by(Ipv4Addr::UNSPECIFIED, server.address())?;
            ensure!(told.is_none_or(|(host, _)| host != gone), "sent to north, which is down");
        }
    }
    work.goes_on()?;
    let stand_in = another()?;
    wait_for_state(&mut east, "north", "UP")?;
    network.mend()?;
    for server in servers.iter().skip(1).chain([&stand_in]) {
        let nodes = "SELECT count(*)::varchar FROM nodes WHERE node_name = 'north'";
        ensure!(one(&mut server.admin()?, nodes)?.as_deref() == Some("1"));
    }
    // There is one process to a node: who has come back serves nobody.
    let first = servers.first().context("no member")?;
    until("the first process serves on", || {
        let Err(error) = first.admin() else { return Ok(false) };
        let Some(Refused(report)) = error.downcast_ref::<Refused>() else { return Ok(false) };
        ensure!(report.code == "57P03", "{report:?}");
        Ok(report.message == format!("node \"north\" is served by another process, at {}", stand_in.address()))
    })?;
    work.goes_on()?;
    stand_in.finish()?;
    // Now the first process may have its name again.
    until("north is not back", || {
        let reason = last_reason(&mut east, "north")?;
        Ok(reason == "it is a member"
            && one(&mut east, "SELECT node_state FROM nodes WHERE node_name = 'north'")?.as_deref() == Some("UP"))
    })?;
    until("the first process serves nobody", || Ok(first.admin().is_ok()))?;
    work.goes_on()
}
