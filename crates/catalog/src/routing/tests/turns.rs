//! Round robin: whose turn it is.

use std::collections::BTreeMap;
use std::net::IpAddr;

use rand::SeedableRng;
use rand::rngs::StdRng;

use super::fleet::*;
use crate::apply::tests::sample::*;
use crate::*;

const CLIENT: &str = "203.0.113.9";

/// A rule to an address of each of the four members, in both families.
fn four() -> Scene {
    let mut changes = Vec::new();
    for node in 1..=4 {
        changes.push(create_address(&format!("a{node}"), &format!("n{node}"), &format!("192.0.2.{node}")));
        changes.push(create_address(&format!("b{node}"), &format!("n{node}"), &format!("2001:db8::{node}")));
    }
    changes.push(create_group("v4", addresses(&["a1", "a2", "a3", "a4"]), None));
    changes.push(create_group("v6", subclusters(&["default_subcluster", "etl"]), Some("2001:db8::/32")));
    changes.push(create_rule("all_v4", "0.0.0.0/0", "v4"));
    changes.push(create_rule("all_v6", "::/0", "v6"));
    scene(&changes)
}

/// How many of many connections, decided by several threads at once, each node gets.
fn shares(scene: &Scene, threads: usize, each: usize) -> BTreeMap<NodeId, usize> {
    let client: IpAddr = CLIENT.parse().unwrap();
    let decide_many = |seed| {
        let (view, mut chance) = (scene.view(), StdRng::seed_from_u64(seed));
        let client = RoutingClient { address: client, ..asking("::") };
        (0..each).map(|_| scene.catalog.decide(&client, &view, &mut chance).target().unwrap().node).collect::<Vec<_>>()
    };
    let mut shares = BTreeMap::new();
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads as u64).map(|seed| scope.spawn(move || decide_many(seed))).collect();
        for node in running.into_iter().flat_map(|thread| thread.join().unwrap()) {
            *shares.entry(node).or_default() += 1;
        }
    });
    shares
}

#[test]
fn n_targets_get_three_each_of_3n_connections() {
    let mut scene = four();
    assert_eq!(scene.nodes(CLIENT, 12).concat(), "n1n2n3n4".repeat(3));
    scene.turns.reset();
    let shares = shares(&scene, 6, 2);
    assert_eq!(shares.into_values().collect::<Vec<_>>(), [3, 3, 3, 3]);
}

#[test]
fn shares_are_exact_under_concurrency_also_with_a_node_down() {
    let mut scene = four();
    assert_eq!(shares(&scene, 8, 3_000).into_values().collect::<Vec<_>>(), [6_000; 4]);
    scene.set("n3", NodeState::Down);
    let shares = shares(&scene, 8, 3_000);
    assert!(!shares.contains_key(&scene.node("n3")));
    assert_eq!(shares.into_values().collect::<Vec<_>>(), [8_000; 3]);
}

#[test]
fn shares_stay_even_while_a_node_comes_and_goes() {
    let mut scene = four();
    let mut shares: BTreeMap<String, usize> = BTreeMap::new();
    for round in 0..600 {
        scene.set("n2", if round % 2 == 0 { NodeState::Up } else { NodeState::Down });
        for node in scene.nodes(CLIENT, 10) {
            *shares.entry(node).or_default() += 1;
        }
    }
    let steady = ["n1", "n3", "n4"].map(|node| shares.get(node).copied().unwrap());
    let mean = steady.iter().sum::<usize>() / steady.len();
    assert!(steady.iter().all(|share| share.abs_diff(mean) * 50 <= mean), "{shares:?}");
}

#[test]
fn each_group_and_each_family_has_a_pointer_of_its_own() {
    let mut scene = four();
    let mut nodes = Vec::new();
    for _ in 0..4 {
        nodes.extend(scene.nodes(CLIENT, 1));
        nodes.extend(scene.nodes("2001:db8:1::1", 1));
    }
    assert_eq!(nodes.concat(), "n1n1n2n2n3n3n4n4");
    scene.change(&[
        create_group("second", addresses(&["a4", "a3"]), None),
        create_rule("office", "10.0.0.0/8", "second"),
    ]);
    scene.nodes(CLIENT, 1);
    assert_eq!(scene.nodes("10.0.0.1", 3), ["n4", "n3", "n4"]);
    assert_eq!(scene.nodes(CLIENT, 1), ["n2"]);
}

#[test]
fn a_question_takes_no_turn_and_a_reset_starts_anew() {
    let mut scene = four();
    scene.nodes(CLIENT, 1);
    for _ in 0..5 {
        assert_eq!(scene.look(&asking(CLIENT)).decision.target().unwrap().node, scene.node("n2"));
    }
    assert_eq!(scene.nodes(CLIENT, 2), ["n2", "n3"]);
    scene.turns.reset();
    assert_eq!(scene.nodes(CLIENT, 1), ["n1"]);
}

#[test]
fn pointers_of_dropped_groups_are_forgotten() {
    let mut scene = four();
    let address = |number: usize| format!("10.0.{number}.1");
    for number in 0..200 {
        scene.change(&[
            create_group("passing", addresses(&["a1", "a2"]), None),
            create_rule("passing", &format!("10.0.{number}.0/24"), "passing"),
        ]);
        assert_eq!(scene.nodes(&address(number), 3), ["n1", "n2", "n1"]);
        scene.change(&[drop_group("passing", true)]);
    }
    assert!(scene.turns.len() <= 64, "{}", scene.turns.len());
}

#[test]
fn counts_of_rules_survive_changes_of_other_rules() {
    let mut scene = four();
    let counters = RuleCounters::default();
    let count = |scene: &mut Scene| {
        let decision = scene.decide(&asking(CLIENT));
        counters.note(&decision, &scene.catalog);
    };
    count(&mut scene);
    count(&mut scene);
    let rule = scene.catalog.routing_rules().named(&name("all_v4")).unwrap().id;
    scene.change(&[
        create_rule("office", "10.0.0.0/8", "v4"),
        drop_rule("all_v6"),
        alter_rule("all_v4", RuleChange::Rename(name("everybody"))),
    ]);
    count(&mut scene);
    counters.note(&scene.decide(&asking("10.0.0.1")), &scene.catalog);
    let office = scene.catalog.routing_rules().named(&name("office")).unwrap().id;
    assert_eq!((counters.count(rule), counters.count(office)), (3, 1));
}
