//! Where a connection goes, among few rules and among a million.

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use switchyard_catalog::{
    Catalog, Change, Delta, Entity, GroupSource, Host, Name, Network, NodeId, NodeKind, NodeState, NodeStates, Policy,
    RoutingClient, RoutingRule, RoutingRuleId, RoutingView, Turns,
};

use switchyard_store::{Commit, Record, RedbStore, Retention, Store};

use super::{Figure, median};

const FEW: u32 = 100;
const AS_MANY_AS_A_SCRIPT_MAKES: u32 = 100_000;
const MANY: u32 = 1_000_000;
const FEW_NS_MAX: f64 = 150.0;
const MANY_NS_MAX: f64 = 1_000.0;
const NODES: u8 = 4;
const BATCHES: usize = 20_000;
/// Decisions timed together, since reading the clock takes as long as a decision.
const BATCH: usize = 16;
const CHANGES: u32 = 5_000;
const CHANGE_US_MAX: f64 = 100.0;
const START_SECONDS_MAX: f64 = 5.0;

/// Decisions, and what a change of a rule costs the catalog.
pub fn measure() -> Result<Vec<Figure>> {
    let mut chance = StdRng::seed_from_u64(7);
    let few = with_rules(FEW, &mut chance)?;
    let many = with_rules(MANY, &mut chance)?;
    let (few_ns, _) = decisions(&few, &mut chance)?;
    let (many_ns, hits) = decisions(&many, &mut chance)?;
    let start = tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(start_with(&many))?;
    let (changed, changes) = changes(&with_rules(AS_MANY_AS_A_SCRIPT_MAKES, &mut chance)?)?;
    let (mixed_ns, _) = decisions(&changed, &mut chance)?;
    let longest = changes.iter().max().copied().unwrap_or_default();
    let change_us = median(changes).as_secs_f64() * 1e6;
    Ok(vec![
        Figure::at_most("a decision among 100 rules", few_ns, FEW_NS_MAX, "ns"),
        Figure::at_most("a decision among 1,000,000 rules", many_ns, MANY_NS_MAX, "ns"),
        Figure::plain("matched by a rule", format!("{:.1} %", hits * 100.0)),
        Figure::at_most("1,000,000 rules read from the store", start.as_secs_f64(), START_SECONDS_MAX, "s"),
        Figure::at_most("one more rule beside 100,000", change_us, CHANGE_US_MAX, "us"),
        Figure::plain("the longest of these", format!("{longest:.2?}")),
        Figure::at_most("a decision after 5,000 changes", mixed_ns, MANY_NS_MAX, "ns"),
    ])
}

/// Four members, a group of their addresses in each family, and rules of which half are IPv4.
fn with_rules(count: u32, chance: &mut StdRng) -> Result<Catalog> {
    let name = |text: &str| Name::parse(text).with_context(|| text.to_owned());
    let (first, _) = Catalog::initial(name("switchyard")?, name("dbadmin")?, None);
    let mut changes = Vec::new();
    let mut members = (Vec::new(), Vec::new());
    for number in 1..=NODES {
        let node = name(&format!("n{number}"))?;
        let (v4, v6) = (name(&format!("a{number}"))?, name(&format!("b{number}"))?);
        let kind = NodeKind::Member { upstream: None };
        changes.push(Change::CreateNode {
            name: node.clone(),
            kind,
            host: format!("10.0.0.{number}"),
            port: 5433,
            subcluster: None,
        });
        for (address, host) in [(&v4, format!("192.0.2.{number}")), (&v6, format!("2001:db8::{number}"))] {
            let host = Host::Ip(host.parse()?);
            let (name, node) = (address.clone(), node.clone());
            changes.push(Change::CreateNetworkAddress { name, node, host, port: 5433, enabled: true });
        }
        members.0.push(v4);
        members.1.push(v6);
    }
    for (group, members) in [("g4", members.0), ("g6", members.1)] {
        let (source, policy) = (GroupSource::Addresses(members), Policy::RoundRobin);
        changes.push(Change::CreateLoadBalanceGroup { name: name(group)?, source, filter: None, policy });
    }
    let catalog = first.apply(&changes)?.catalog;
    let group =
        |text: &str| Ok::<_, anyhow::Error>(catalog.load_balance_groups().named(&name(text)?).context("no group")?.id);
    let (g4, g6) = (group("g4")?, group("g6")?);
    let mut entities: Vec<Entity> = catalog.entities().collect();
    for number in 0..count {
        let net = network(number, chance)?;
        let group = if matches!(net, IpNet::V4(_)) { g4 } else { g6 };
        let id = RoutingRuleId(catalog.id_next() + u64::from(number));
        let source = Network { typed: net.to_string(), net };
        entities.push(RoutingRule { id, name: name(&format!("r{number}"))?, source, group }.into());
    }
    Catalog::from_entities(1, catalog.id_next() + u64::from(count), entities).context("no database")
}

/// Networks of the sizes that organisations have.
fn network(number: u32, chance: &mut StdRng) -> Result<IpNet> {
    Ok(if number.is_multiple_of(2) {
        IpNet::V4(Ipv4Net::new(Ipv4Addr::from(chance.random::<u32>()), chance.random_range(20..=28))?.trunc())
    } else {
        let bits = (0b001 << 125) | (chance.random::<u128>() >> 3);
        IpNet::V6(Ipv6Net::new(Ipv6Addr::from(bits), chance.random_range(32..=64))?.trunc())
    })
}

/// The median time of a decision in nanoseconds, and the share of clients that a rule matched. Half of the clients are
/// in the network of a rule, the others anywhere.
fn decisions(catalog: &Catalog, chance: &mut StdRng) -> Result<(f64, f64)> {
    let clients = clients(catalog, chance);
    let up: Vec<NodeId> = catalog.nodes().iter().map(|node| node.id).collect();
    let states: NodeStates = up.iter().map(|node| (*node, NodeState::Up)).collect();
    let turns = Turns::default();
    let view = RoutingView { here: up.first().copied(), states: &states, turns: &turns };
    catalog.prepare_decisions();
    let mut times = Vec::with_capacity(BATCHES);
    let mut matched = 0_usize;
    for batch in clients.chunks(BATCH) {
        let started = Instant::now();
        for address in batch {
            let client = RoutingClient { address: *address, asks: true, can_be_redirected: true };
            let decision = black_box(catalog.decide(&client, &view, chance));
            matched += usize::from(matches!(decision.stage, switchyard_catalog::Stage::Rule { .. }));
        }
        times.push(started.elapsed());
    }
    Ok((median(times).as_secs_f64() * 1e9 / BATCH as f64, matched as f64 / clients.len() as f64))
}

fn clients(catalog: &Catalog, chance: &mut StdRng) -> Vec<IpAddr> {
    let nets: Vec<IpNet> = catalog.routing_rules().iter().map(|rule| rule.source.net).collect();
    let inside = |net: IpNet, chance: &mut StdRng| -> IpAddr {
        let host = chance.random::<u128>().checked_shr(u32::from(128 - net.max_prefix_len() + net.prefix_len()));
        match net {
            IpNet::V4(net) => Ipv4Addr::from(u32::from(net.network()) | host.unwrap_or(0) as u32).into(),
            IpNet::V6(net) => Ipv6Addr::from(u128::from(net.network()) | host.unwrap_or(0)).into(),
        }
    };
    let mut clients = Vec::with_capacity(BATCHES * BATCH);
    for number in 0..BATCHES * BATCH {
        clients.push(match (number % 4, nets.get(chance.random_range(0..nets.len().max(1)))) {
            (0 | 1, Some(net)) => inside(*net, chance),
            (2, _) => Ipv4Addr::from(chance.random::<u32>()).into(),
            _ => Ipv6Addr::from((0b001 << 125) | (chance.random::<u128>() >> 3)).into(),
        });
    }
    clients
}

/// How long it takes from the file of a store with this catalog to the first decision.
async fn start_with(catalog: &Catalog) -> Result<Duration> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("catalog.redb");
    let made = |entity| Delta { before: None, after: Some(entity) };
    let record =
        Record { time_us: 0, user: String::new(), client: String::new(), statements: vec!["-- many rules".to_owned()] };
    let commit = Commit {
        base: 0,
        id_next: catalog.id_next(),
        deltas: catalog.entities().map(made).collect(),
        record,
        retention: Retention::ALL,
    };
    RedbStore::open(&path)?.commit(commit).await?;
    let started = Instant::now();
    let loaded = RedbStore::open(&path)?.load().await?.context("nothing was kept")?;
    let read = Catalog::from_entities(loaded.version, loaded.id_next, loaded.entities).context("no database")?;
    read.prepare_decisions();
    let start = started.elapsed();
    ensure!(read.routing_rules().len() == catalog.routing_rules().len(), "rules were lost");
    Ok(start)
}

/// Rules made one by one, each in a version of its own while somebody holds the one before.
fn changes(catalog: &Catalog) -> Result<(Catalog, Vec<Duration>)> {
    let mut chance = StdRng::seed_from_u64(11);
    let (mut catalog, mut times) = (catalog.clone(), Vec::new());
    for number in 0..CHANGES {
        let net = network(number, &mut chance)?;
        let group = Name::parse(if matches!(net, IpNet::V4(_)) { "g4" } else { "g6" })?;
        let source = Network { typed: net.to_string(), net };
        let change = Change::CreateRoutingRule { name: Name::parse(&format!("changed{number}"))?, source, group };
        let started = Instant::now();
        let version = catalog.version() + 1;
        let next = catalog.apply(&[change])?.catalog.with_version(version);
        times.push(started.elapsed());
        catalog = next;
    }
    Ok((catalog, times))
}
