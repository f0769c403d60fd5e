//! The same decisions, made by going through everything.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::fleet::asking;
use crate::apply::tests::random::change;
use crate::apply::tests::sample::*;
use crate::routing::RuleIndex;
use crate::*;

/// The most specific of these, of equal ones the oldest.
fn most_specific(rules: &[RoutingRule], client: IpAddr) -> Option<RoutingRuleId> {
    let matching = rules.iter().filter(|rule| rule.source.net.contains(&client));
    matching.max_by_key(|rule| (rule.source.net.prefix_len(), Reverse(rule.id))).map(|rule| rule.id)
}

fn rule(id: u64, net: IpNet) -> RoutingRule {
    let source = Network { typed: net.to_string(), net };
    RoutingRule { id: RoutingRuleId(id), name: name("r"), source, group: LoadBalanceGroupId(id) }
}

/// Few addresses, many networks: nested and equal ones are frequent.
fn crowded_net(chance: &mut StdRng) -> IpNet {
    if chance.random::<bool>() {
        let bits = 0x0a00_0000 | u32::from(chance.random::<u16>());
        IpNet::V4(Ipv4Net::new(Ipv4Addr::from(bits), chance.random_range(14..=32)).unwrap().trunc())
    } else {
        let bits = (0x2001_0db8 << 96) | u128::from(chance.random::<u16>());
        IpNet::V6(Ipv6Net::new(Ipv6Addr::from(bits), chance.random_range(110..=128)).unwrap().trunc())
    }
}

fn crowded_client(chance: &mut StdRng) -> IpAddr {
    match crowded_net(chance) {
        IpNet::V4(net) => net.addr().into(),
        IpNet::V6(net) => net.addr().into(),
    }
}

/// Rules come and go one by one, some versions are kept, and each of these still says what it said.
fn compare(seed: u64, steps: usize, checked_every: usize) {
    let chance = &mut StdRng::seed_from_u64(seed);
    let (mut index, mut rules): (RuleIndex, Vec<RoutingRule>) = Default::default();
    let mut kept: Vec<(RuleIndex, Vec<RoutingRule>)> = Vec::new();
    for step in 0..steps {
        if !rules.is_empty() && chance.random_range(0..5) < 2 {
            let dropped = rules.swap_remove(chance.random_range(0..rules.len()));
            index.remove(&dropped);
        } else {
            let made = rule(step as u64, crowded_net(chance));
            index.insert(&made);
            rules.push(made);
        }
        if step % checked_every == 0 {
            kept.push((index.clone(), rules.clone()));
            if kept.len() > 3 {
                kept.remove(chance.random_range(0..3));
            }
            for (index, rules) in &kept {
                for _ in 0..8 {
                    let client = crowded_client(chance);
                    let found = index.find(client).map(|found| found.rule);
                    assert_eq!(found, most_specific(rules, client), "step {step}, {client}, {index:?}");
                }
            }
        }
    }
    assert!(!format!("{index:?}").starts_with("networks: 0 "), "nothing came down to the base: {index:?}");
}

#[test]
fn the_index_finds_what_a_search_finds_through_all_its_levels() {
    compare(3, 40_000, 2_500);
}

#[test]
fn an_index_loaded_at_once_finds_the_same() {
    let chance = &mut StdRng::seed_from_u64(5);
    let rules: Vec<RoutingRule> = (0..3_000).map(|id| rule(id, crowded_net(chance))).collect();
    let mut index = RuleIndex::default();
    rules.iter().for_each(|rule| index.insert(rule));
    for _ in 0..3_000 {
        let client = crowded_client(chance);
        assert_eq!(index.find(client).map(|found| found.rule), most_specific(&rules, client), "{client}");
    }
}

#[test]
fn a_network_may_have_very_many_rules() {
    const RULES: u64 = 20_000;
    let net: IpNet = "10.0.0.0/8".parse().unwrap();
    let client: IpAddr = "10.1.1.1".parse().unwrap();
    let mut index = RuleIndex::default();
    let mut kept = index.clone();
    for id in 0..RULES {
        index.insert(&rule(id, net));
        kept = index.clone();
    }
    for id in 0..RULES {
        assert_eq!(index.find(client).map(|found| found.rule), Some(RoutingRuleId(id)));
        index.remove(&rule(id, net));
        index.remove(&rule(id, net));
    }
    assert_eq!(index.find(client), None);
    assert_eq!(kept.find(client).map(|found| found.rule), Some(RoutingRuleId(0)));
}

type Places = BTreeSet<(NodeId, String, u16)>;

/// The stage, and every place a connection may go to; none when it stays.
fn permitted(catalog: &Catalog, client: IpAddr, here: Option<NodeId>, states: &NodeStates) -> (Stage, Places) {
    let rules: Vec<RoutingRule> = catalog.routing_rules().iter().map(|rule| (**rule).clone()).collect();
    if let Some(found) = most_specific(&rules, client) {
        let rule = catalog.routing_rules().find(found).unwrap();
        let group = catalog.load_balance_groups().find(rule.group).unwrap();
        let mut places = places_of_group(catalog, group, client, states);
        if group.policy == Policy::None {
            places.clear();
        }
        return (Stage::Rule { rule: found, group: rule.group }, places);
    }
    if catalog.database().policy != Policy::None {
        let nodes = catalog.nodes().iter().filter(|node| takes(node, states));
        let places = nodes.map(|node| (node.id, catalog.export_address(node), node.port));
        let places = places.filter(|(_, host, _)| same_family(host, client));
        return (Stage::Classic, places.map(|(id, host, port)| (id, host.to_string(), port)).collect());
    }
    let Some(here) = here.and_then(|id| catalog.nodes().find(id)) else { return (Stage::Nothing, Places::new()) };
    let places = oldest_of(catalog, client, states, |node| node.subcluster == here.subcluster, |_| true);
    (Stage::Interior { subcluster: here.subcluster }, places)
}

fn takes(node: &Node, states: &NodeStates) -> bool {
    states.state(node.id) == NodeState::Up && !node.draining
}

fn same_family(host: &Host, client: IpAddr) -> bool {
    match host {
        Host::Ip(ip) => ip.is_ipv4() == client.is_ipv4(),
        Host::Dns(_) => true,
    }
}

fn oldest_of(
    catalog: &Catalog,
    client: IpAddr,
    states: &NodeStates,
    belongs: impl Fn(&Node) -> bool,
    qualifies: impl Fn(&NetworkAddress) -> bool,
) -> Places {
    let nodes = catalog.nodes().iter().filter(|node| belongs(node) && takes(node, states));
    let oldest = nodes.filter_map(|node| {
        let mut addresses = catalog.network_addresses().iter();
        addresses.find(|address| {
            address.node == node.id && address.enabled && same_family(&address.host, client) && qualifies(address)
        })
    });
    oldest.map(|address| (address.node, address.host.to_string(), address.port)).collect()
}

fn is_within(catalog: &Catalog, node: NodeId, groups: &[FaultGroupId]) -> bool {
    let mut holder = catalog.fault_groups().iter().find(|group| group.nodes.contains(&node));
    while let Some(group) = holder {
        if groups.contains(&group.id) {
            return true;
        }
        holder = group.parent.and_then(|parent| catalog.fault_groups().find(parent));
    }
    false
}

fn places_of_group(catalog: &Catalog, group: &LoadBalanceGroup, client: IpAddr, states: &NodeStates) -> Places {
    let in_filter = |address: &NetworkAddress| match (&group.filter, &address.host) {
        (Some(filter), Host::Ip(ip)) => filter.net.contains(ip),
        _ => false,
    };
    match &group.members {
        GroupMembers::Empty => Places::new(),
        GroupMembers::Addresses(ids) => {
            let addresses = ids.iter().map(|id| catalog.network_addresses().find(*id).unwrap());
            let usable = addresses.filter(|address| address.enabled && same_family(&address.host, client));
            let up = usable.filter(|address| takes(catalog.nodes().find(address.node).unwrap(), states));
            up.map(|address| (address.node, address.host.to_string(), address.port)).collect()
        }
        GroupMembers::FaultGroups(ids) => {
            oldest_of(catalog, client, states, |node| is_within(catalog, node.id, ids), in_filter)
        }
        GroupMembers::Subclusters(ids) => {
            oldest_of(catalog, client, states, |node| ids.contains(&node.subcluster), in_filter)
        }
    }
}

const CLIENTS: [&str; 6] = ["10.1.2.3", "::ffff:10.1.2.3", "172.16.5.5", "203.0.113.1", "2001:db8::7", "fd00::1"];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn decisions_are_those_of_a_search_in_any_catalog(
        changes in proptest::collection::vec(change(), 1..60),
        draw in proptest::collection::vec(0_u8..4, 12),
        here in 0_usize..8,
        seed in any::<u64>(),
    ) {
        let mut catalog = sample();
        let mut seed = seed;
        let turns = Turns::default();
        for change in changes {
            if let Ok(applied) = catalog.apply(&[change]) {
                // Asked in between, so that what one version has made ready is there when the next one is made.
                catalog.prepare_decisions();
                catalog = applied.catalog.with_version(catalog.version() + 1);
            }
        }
        let state = |draw: u8| match draw { 0 => NodeState::Down, 1 => NodeState::Draining, _ => NodeState::Up };
        let states: NodeStates = catalog.nodes().iter().zip(&draw).map(|(node, draw)| (node.id, state(*draw))).collect();
        let here = catalog.nodes().iter().nth(here).map(|node| node.id);
        let view = RoutingView { here, states: &states, turns: &turns };
        for client in CLIENTS {
            let asking = asking(client);
            let (stage, places) = permitted(&catalog, asking.address.to_canonical(), here, &states);
            let mut reached = Places::new();
            for _ in 0..places.len().max(1) {
                seed = seed.wrapping_add(1);
                let chance = || StdRng::seed_from_u64(seed);
                let looked = catalog.decide_and_tell(&asking, &view, Turn::Look, &mut chance());
                let told = catalog.decide_and_tell(&asking, &view, Turn::Look, &mut chance());
                prop_assert_eq!(&looked, &told);
                let decision = catalog.decide(&asking, &view, &mut chance());
                prop_assert_eq!(&looked.decision, &decision);
                prop_assert_eq!(decision.stage, stage);
                let target = decision.target().map(|target| (target.node, target.host.to_string(), target.port));
                prop_assert_eq!(target.is_none(), places.is_empty());
                prop_assert!(target.iter().all(|target| places.contains(target)), "{:?} of {:?}", target, places);
                reached.extend(target);
            }
            let random = match stage {
                Stage::Rule { group, .. } => catalog.load_balance_groups().find(group).unwrap().policy == Policy::Random,
                Stage::Classic => catalog.database().policy == Policy::Random,
                _ => false,
            };
            prop_assert!(random || reached == places, "{:?} is not all of {:?}", reached, places);
        }
    }
}
