//! The order of the reference's §8.1, and each edge of §8.2.

use super::fleet::*;
use crate::apply::tests::sample::*;
use crate::*;

/// An address on each member, and a group and a rule for an office.
fn office() -> Vec<Change> {
    vec![
        create_address("a1", "n1", "192.0.2.1"),
        create_address("a2", "n2", "192.0.2.2"),
        create_address("a3", "n3", "192.0.2.3"),
        create_address("a4", "n4", "192.0.2.4"),
        create_group("pool", addresses(&["a2", "a3"]), None),
        create_rule("office", "10.0.0.0/8", "pool"),
    ]
}

fn office_and(changes: &[Change]) -> Scene {
    let mut scene = scene(&office());
    scene.change(changes);
    scene
}

fn disable(address: &str) -> Change {
    alter_address(address, AddressChange::Enable(false))
}

const OFFICE: &str = "10.8.3.7";
const STRANGER: &str = "203.0.113.9";
const STRANGER_V6: &str = "2001:db8:9::9";

#[test]
fn a_client_that_does_not_ask_stays() {
    let mut scene = office_and(&[]);
    let client = RoutingClient { asks: false, ..asking(OFFICE) };
    assert_eq!(scene.ask_as(&client), "unasked: stay, the client did not ask for load balancing");
}

#[test]
fn the_most_specific_rule_goes_first_and_only_it() {
    let mut scene = office_and(&[
        create_group("floor_pool", addresses(&["a4"]), None),
        create_rule("floor", "10.8.0.0/16", "floor_pool"),
        set_policy(Policy::RoundRobin),
    ]);
    assert_eq!(scene.ask(OFFICE), "rule floor: redirect n4 192.0.2.4:5433");
    assert_eq!(scene.ask("10.9.0.1"), "rule office: redirect n2 192.0.2.2:5433");
    scene.set("n4", NodeState::Down);
    assert_eq!(scene.ask(OFFICE), "rule floor: stay, no target is available");
    scene.change(&[drop_rule("floor")]);
    assert_eq!(scene.ask(OFFICE), "rule office: redirect n3 192.0.2.3:5433");
}

#[test]
fn of_equal_networks_the_older_rule_goes_first() {
    let mut scene = office_and(&[
        create_group("other", addresses(&["a4"]), None),
        create_rule("younger", "10.0.0.0/8", "other"),
        create_rule("youngest", "10.99.0.0/8", "other"),
    ]);
    assert_eq!(scene.ask(OFFICE), "rule office: redirect n2 192.0.2.2:5433");
    scene.change(&[drop_rule("office")]);
    assert_eq!(scene.ask(OFFICE), "rule younger: redirect n4 192.0.2.4:5433");
    scene.change(&[alter_rule("younger", RuleChange::Route(network("172.16.0.0/12")))]);
    assert_eq!(scene.ask(OFFICE), "rule youngest: redirect n4 192.0.2.4:5433");
}

#[test]
fn a_mapped_client_is_an_ipv4_client() {
    let mut scene = office_and(&[create_rule("all_v6", "::/0", "pool")]);
    assert_eq!(scene.ask("::ffff:10.8.3.7"), "rule office: redirect n2 192.0.2.2:5433");
    assert_eq!(scene.look(&asking("::ffff:10.8.3.7")).decision.client.to_string(), "10.8.3.7");
    scene.change(&[drop_rule("office"), create_rule("mapped", "::ffff:10.8.0.0/112", "pool")]);
    assert_eq!(scene.ask(OFFICE), "rule mapped: redirect n3 192.0.2.3:5433");
}

#[test]
fn the_family_decides_which_rules_are_asked() {
    let mut scene = office_and(&[
        create_rule("all_v4", "0.0.0.0/0", "pool"),
        create_address("b4", "n4", "2001:db8::4"),
        create_group("pool_v6", addresses(&["b4"]), None),
        create_rule("all_v6", "::/0", "pool_v6"),
    ]);
    assert_eq!(scene.ask(STRANGER), "rule all_v4: redirect n2 192.0.2.2:5433");
    assert_eq!(scene.ask(STRANGER_V6), "rule all_v6: redirect n4 2001:db8::4:5433");
    scene.change(&[drop_rule("all_v6")]);
    assert_eq!(scene.ask(STRANGER_V6), "interior default_subcluster: stay, no target is available");
}

#[test]
fn nobody_is_sent_to_an_address_of_the_other_family() {
    let mut scene = office_and(&[create_rule("all_v6", "::/0", "pool")]);
    assert_eq!(scene.ask(STRANGER_V6), "rule all_v6: stay, no target is available");
    let other = "the address is of another family than the client's";
    assert_eq!(scene.skipped(STRANGER_V6), [format!("n2 192.0.2.2: {other}"), format!("n3 192.0.2.3: {other}")]);
}

#[test]
fn a_host_name_is_for_either_family_and_in_no_filter() {
    let mut scene = office_and(&[
        create_address("named", "n4", "n4.example"),
        create_group("by_name", addresses(&["named"]), None),
        create_rule("v4", "203.0.113.0/24", "by_name"),
        create_rule("v6", "2001:db8::/32", "by_name"),
        create_group("filtered", subclusters(&["etl"]), Some("0.0.0.0/0")),
        create_rule("etl", "172.16.0.0/12", "filtered"),
        disable("a4"),
    ]);
    assert_eq!(scene.ask(STRANGER), "rule v4: redirect n4 n4.example:5433");
    assert_eq!(scene.ask(STRANGER_V6), "rule v6: redirect n4 n4.example:5433");
    assert_eq!(scene.ask("172.16.0.1"), "rule etl: redirect n3 192.0.2.3:5433");
    assert_eq!(
        scene.skipped("172.16.0.1"),
        [
            "n4 192.0.2.4: the network address is disabled",
            "n4 n4.example: a host name cannot be compared with the group's filter"
        ]
    );
}

#[test]
fn a_policy_of_none_keeps_the_connection() {
    let mut scene =
        office_and(&[alter_group("pool", GroupChange::Policy(Policy::None)), set_policy(Policy::RoundRobin)]);
    assert_eq!(scene.ask(OFFICE), "rule office: stay, the load balance group's policy is NONE");
    let trace = scene.look(&asking(OFFICE));
    assert_eq!((trace.stages.len(), trace.stages.first().unwrap().available.len()), (1, 2));
}

#[test]
fn random_choices_come_to_all() {
    let mut scene = office_and(&[alter_group("pool", GroupChange::Policy(Policy::Random))]);
    let nodes = scene.nodes(OFFICE, 400);
    let to_n2 = nodes.iter().filter(|node| *node == "n2").count();
    assert!((120..=280).contains(&to_n2), "{to_n2}");
    assert_eq!(nodes.len() - to_n2, nodes.iter().filter(|node| *node == "n3").count());
    // Chance takes no turns.
    assert_eq!(scene.turns.len(), 0);
}

#[test]
fn a_disabled_address_is_never_a_target() {
    let mut scene = office_and(&[disable("a2")]);
    assert_eq!(scene.nodes(OFFICE, 3), ["n3", "n3", "n3"]);
    assert_eq!(scene.skipped(OFFICE), ["n2 192.0.2.2: the network address is disabled"]);
    scene.change(&[disable("a3")]);
    assert_eq!(scene.ask(OFFICE), "rule office: stay, no target is available");
    scene.change(&[alter_address("a2", AddressChange::Enable(true))]);
    assert_eq!(scene.ask(OFFICE), "rule office: redirect n2 192.0.2.2:5433");
}

#[test]
fn the_interior_rule_takes_the_oldest_enabled_address() {
    let mut scene =
        office_and(&[create_address("a1_late", "n1", "198.51.100.1"), create_address("a2_late", "n2", "198.51.100.2")]);
    let answers = [scene.ask(STRANGER), scene.ask(STRANGER), scene.ask(STRANGER)];
    let (own, other) = (
        "interior default_subcluster: own node n1 192.0.2.1:5433",
        "interior default_subcluster: redirect n2 192.0.2.2:5433",
    );
    assert_eq!(answers, [own, other, own]);
    assert_eq!(
        scene.skipped(STRANGER),
        [
            "n1 198.51.100.1: an older network address of the node is used",
            "n2 198.51.100.2: an older network address of the node is used"
        ]
    );
    scene.change(&[disable("a2")]);
    assert_eq!(scene.ask(STRANGER), "interior default_subcluster: redirect n2 198.51.100.2:5433");
    scene.change(&[drop_address("a2", true)]);
    scene.change(&[create_address("a2", "n2", "192.0.2.2")]);
    scene.turns.reset();
    scene.nodes(STRANGER, 1);
    assert_eq!(scene.ask(STRANGER), "interior default_subcluster: redirect n2 198.51.100.2:5433");
}

#[test]
fn the_interior_rule_stays_within_the_subcluster() {
    let mut scene = office_and(&[]);
    scene.here = "n4";
    assert_eq!(scene.nodes(STRANGER, 4), ["n3", "n4", "n3", "n4"]);
    scene.here = "pg";
    assert_eq!(scene.ask(STRANGER), "interior servers: stay, no target is available");
    assert_eq!(scene.skipped(STRANGER), ["pg: the node has no network address"]);
}

#[test]
fn a_member_without_a_node_keeps_what_no_rule_matches() {
    let scene = office_and(&[]);
    let view = RoutingView { here: None, ..scene.view() };
    let decide = |address| scene.catalog.decide(&asking(address), &view, &mut scene.chance());
    assert_eq!(scene.text(&decide(STRANGER)), "nothing: stay, nothing applies");
    assert_eq!(scene.text(&decide(OFFICE)), "rule office: redirect n2 192.0.2.2:5433");
}

#[test]
fn classic_balancing_takes_every_node_that_is_up_at_its_export_address_and_port() {
    let mut scene = scene(&[set_policy(Policy::RoundRobin)]);
    let answers: Vec<String> = (0..6).map(|_| scene.ask(STRANGER)).collect();
    assert_eq!(
        answers,
        [
            "classic: own node n1 10.0.0.1:5433",
            "classic: redirect n2 10.0.0.2:5434",
            "classic: redirect n3 10.0.0.3:5433",
            "classic: redirect n4 10.0.0.4:5433",
            "classic: proxy pg pg.example:5432",
            "classic: own node n1 10.0.0.1:5433",
        ]
    );
    scene.change(&[
        alter_node("n2", NodeChange::Type(NodeType::Standby)),
        alter_node("n3", NodeChange::Type(NodeType::Ephemeral)),
    ]);
    scene.turns.reset();
    assert_eq!(scene.nodes(STRANGER, 5), ["n1", "n2", "n3", "n4", "pg"]);
}

#[test]
fn the_export_address_is_the_nodes_then_the_databases() {
    let interface = |interface: &str, node: &str, at: &str| Change::CreateNetworkInterface {
        name: name(interface),
        node: name(node),
        host: host(at),
        port: 9,
        enabled: true,
    };
    let mut scene = scene(&[
        set_policy(Policy::RoundRobin),
        interface("i1", "n1", "198.51.100.1"),
        interface("i2", "n2", "198.51.100.2"),
        interface("i2_other", "n2", "203.0.113.2"),
        Change::CreateSubnet { name: name("public"), prefix: "198.51.100.0".parse().unwrap() },
        Change::ExportDatabaseOn { subnet: Some(name("public")) },
    ]);
    assert_eq!(scene.ask(STRANGER), "classic: own node n1 198.51.100.1:5433");
    assert_eq!(scene.ask(STRANGER), "classic: redirect n2 198.51.100.2:5434");
    assert_eq!(scene.ask(STRANGER), "classic: redirect n3 10.0.0.3:5433");
    scene.change(&[alter_node("n2", NodeChange::ExportOn(Some(name("i2_other"))))]);
    scene.turns.reset();
    scene.nodes(STRANGER, 1);
    assert_eq!(scene.ask(STRANGER), "classic: redirect n2 203.0.113.2:5434");
}

#[test]
fn classic_balancing_leaves_a_family_without_addresses_alone_and_tries_no_interior_rule() {
    let mut scene = scene(&[
        Change::DropNode { name: name("pg"), if_exists: false, cascade: false },
        set_policy(Policy::RoundRobin),
        create_address("b1", "n1", "2001:db8::1"),
    ]);
    assert_eq!(scene.ask(STRANGER_V6), "classic: stay, no target is available");
    scene.change(&[set_policy(Policy::None)]);
    assert_eq!(scene.ask(STRANGER_V6), "interior default_subcluster: own node n1 2001:db8::1:5433");
    assert_eq!(scene.ask(STRANGER), "interior default_subcluster: stay, no target is available");
}

#[test]
fn a_node_without_a_network_address_is_for_classic_balancing_only() {
    let mut scene = scene(&[
        create_address("a1", "n1", "192.0.2.1"),
        create_group("all", subclusters(&["default_subcluster", "etl"]), Some("0.0.0.0/0")),
        create_rule("office", "10.0.0.0/8", "all"),
    ]);
    assert_eq!(scene.nodes(OFFICE, 3), ["n1", "n1", "n1"]);
    let no_address = ["n2", "n3", "n4"].map(|node| format!("{node}: the node has no network address"));
    assert_eq!(scene.skipped(OFFICE), no_address);
    assert_eq!(scene.nodes(STRANGER, 2), ["n1", "n1"]);
    scene.change(&[set_policy(Policy::RoundRobin)]);
    assert_eq!(scene.nodes(STRANGER, 5), ["n1", "n2", "n3", "n4", "pg"]);
}

#[test]
fn nodes_that_are_down_or_drain_are_skipped_in_every_stage() {
    let stages: [(&str, Vec<Change>); 3] = [
        (
            "10.8.3.7",
            vec![create_group("g", addresses(&["a1", "a2"]), None), create_rule("office_2", "10.8.0.0/16", "g")],
        ),
        (STRANGER, vec![set_policy(Policy::RoundRobin), drop_node("pg", false), drain("n3"), drain("n4")]),
        (STRANGER, vec![]),
    ];
    for (client, changes) in stages {
        let mut scene = office_and(&changes);
        assert_eq!(scene.nodes(client, 4), ["n1", "n2", "n1", "n2"]);
        for state in [NodeState::Down, NodeState::Draining] {
            scene.set("n2", state);
            assert_eq!(scene.nodes(client, 3), ["n1", "n1", "n1"]);
            scene.set("n1", state);
            assert_eq!(scene.nodes(client, 1), ["-"]);
            scene.set("n1", NodeState::Up);
            scene.set("n2", NodeState::Up);
        }
        scene.change(&[drain("n1")]);
        assert_eq!(scene.nodes(client, 2), ["n2", "n2"]);
        assert!(
            scene.skipped(client).iter().any(|skipped| skipped.starts_with("n1 ") && skipped.ends_with("draining"))
        );
    }
}

#[test]
fn a_node_of_which_nothing_is_known_is_down() {
    let mut scene = office_and(&[]);
    scene.states = NodeStates::default();
    assert_eq!(scene.ask(OFFICE), "rule office: stay, no target is available");
    assert_eq!(scene.skipped(OFFICE), ["n2 192.0.2.2: the node is not up", "n3 192.0.2.3: the node is not up"]);
}

#[test]
fn when_all_targets_of_a_rule_drain_the_member_serves_and_nothing_else_is_tried() {
    let mut scene = office_and(&[set_policy(Policy::RoundRobin), drain("n2"), drain("n3")]);
    assert_eq!(scene.ask(OFFICE), "rule office: stay, no target is available");
    assert_eq!(scene.look(&asking(OFFICE)).stages.len(), 1);
}

#[test]
fn an_empty_group_keeps_the_connection() {
    let mut scene = office_and(&[alter_group("pool", GroupChange::Drop(addresses(&["a2", "a3"])))]);
    assert_eq!(scene.ask(OFFICE), "rule office: stay, no target is available");
}

#[test]
fn the_filter_holds_addresses_of_nodes_and_one_of_each() {
    let mut scene = scene(&[
        create_address("a3", "n3", "192.0.2.3"),
        create_address("a3_public", "n3", "198.51.100.3"),
        create_address("a3_public_2", "n3", "198.51.100.33"),
        create_address("a4_public", "n4", "198.51.100.4"),
        create_group("public", subclusters(&["etl"]), Some("198.51.100.0/24")),
        create_rule("outside", "0.0.0.0/0", "public"),
    ]);
    assert_eq!(scene.ask(STRANGER), "rule outside: redirect n3 198.51.100.3:5433");
    assert_eq!(scene.ask(STRANGER), "rule outside: redirect n4 198.51.100.4:5433");
    assert_eq!(scene.nodes(STRANGER, 4), ["n3", "n4", "n3", "n4"]);
    assert_eq!(
        scene.skipped(STRANGER),
        [
            "n3 192.0.2.3: the network address is not in the group's filter",
            "n3 198.51.100.33: an older network address of the node is used"
        ]
    );
    scene.change(&[disable("a3_public")]);
    assert_eq!(scene.ask(STRANGER), "rule outside: redirect n3 198.51.100.33:5433");
    scene.change(&[alter_group("public", GroupChange::Filter(network("192.0.2.0/24")))]);
    assert_eq!(scene.ask(STRANGER), "rule outside: redirect n3 192.0.2.3:5433");
    scene.change(&[alter_group("public", GroupChange::Filter(network("::ffff:198.51.100.0/120"))), disable("a3")]);
    assert_eq!(scene.nodes(STRANGER, 2), ["n4", "n3"]);
}

#[test]
fn groups_follow_their_subclusters_and_fault_groups() {
    let mut scene = office_and(&[
        create_group("etl_pool", subclusters(&["etl"]), Some("192.0.2.0/24")),
        alter_rule("office", RuleChange::Group(name("etl_pool"))),
        Change::CreateFaultGroup { name: name("rack") },
        Change::CreateFaultGroup { name: name("shelf") },
        alter_fault_group("rack", FaultGroupChange::AddNode(name("n1"))),
        alter_fault_group("shelf", FaultGroupChange::AddNode(name("n3"))),
        alter_fault_group("rack", FaultGroupChange::AddChild(name("shelf"))),
        create_group("rack_pool", fault_groups(&["rack"]), Some("192.0.2.0/24")),
        create_rule("racks", "172.16.0.0/12", "rack_pool"),
    ]);
    assert_eq!(scene.nodes(OFFICE, 2), ["n3", "n4"]);
    assert_eq!(scene.nodes("172.16.0.1", 2), ["n1", "n3"]);
    scene.change(&[
        member("n5", "10.0.0.5", 5433, Some("etl")),
        create_address("a5", "n5", "192.0.2.5"),
        alter_fault_group("shelf", FaultGroupChange::AddNode(name("n4"))),
    ]);
    scene.set("n5", NodeState::Up);
    assert_eq!(scene.nodes(OFFICE, 6), ["n5", "n3", "n4", "n5", "n3", "n4"]);
    let mut reached = scene.nodes("172.16.0.1", 3);
    reached.sort();
    assert_eq!(reached, ["n1", "n3", "n4"]);
}

#[test]
fn nodes_behind_one_address_are_told_apart_by_port() {
    let at = |address: &str, node: &str, port| Change::CreateNetworkAddress {
        name: name(address),
        node: name(node),
        host: host("203.0.113.1"),
        port,
        enabled: true,
    };
    let mut scene = scene(&[
        at("nat1", "n1", 5433),
        at("nat2", "n2", 5434),
        create_group("nat", addresses(&["nat1", "nat2"]), None),
        create_rule("outside", "0.0.0.0/0", "nat"),
    ]);
    assert_eq!(scene.ask(STRANGER), "rule outside: own node n1 203.0.113.1:5433");
    assert_eq!(scene.ask(STRANGER), "rule outside: redirect n2 203.0.113.1:5434");
}

#[test]
fn who_cannot_be_redirected_is_proxied() {
    let mut scene = office_and(&[
        create_address("a_pg", "pg", "192.0.2.9"),
        create_group("server", addresses(&["a_pg"]), None),
        create_rule("bi", "10.20.0.0/16", "server"),
        alter_group("pool", GroupChange::Add(addresses(&["a1"]))),
    ]);
    let postgres = |address| RoutingClient { can_be_redirected: false, ..asking(address) };
    assert_eq!(scene.ask_as(&postgres(OFFICE)), "rule office: proxy n2 192.0.2.2:5433");
    assert_eq!(scene.ask_as(&asking(OFFICE)), "rule office: redirect n3 192.0.2.3:5433");
    assert_eq!(scene.ask_as(&postgres(OFFICE)), "rule office: own node n1 192.0.2.1:5433");
    // No member answers there: a client of another protocol would not be understood.
    assert_eq!(scene.ask_as(&postgres("10.20.0.1")), "rule bi: proxy pg 192.0.2.9:5433");
    assert_eq!(scene.ask_as(&asking("10.20.0.1")), "rule bi: proxy pg 192.0.2.9:5433");
}

#[test]
fn rules_are_considered_in_order_with_what_became_of_each() {
    let scene = office_and(&[
        create_rule("wide", "0.0.0.0/0", "pool"),
        create_rule("floor", "10.8.0.0/16", "pool"),
        create_rule("floor_again", "10.8.0.0/16", "pool"),
        create_rule("elsewhere", "10.9.0.0/16", "pool"),
        create_rule("six", "::/0", "pool"),
    ]);
    let considered = |count_max| {
        let considered = scene.catalog.rules_considered(OFFICE.parse().unwrap(), count_max);
        let verdicts = considered.rules.iter().map(|(rule, verdict)| (rule.name.to_string(), *verdict));
        (verdicts.collect::<Vec<_>>(), considered.unlisted)
    };
    let expected = [
        ("floor".to_owned(), RuleVerdict::Applied),
        ("floor_again".to_owned(), RuleVerdict::Younger),
        ("elsewhere".to_owned(), RuleVerdict::NoMatch),
        ("office".to_owned(), RuleVerdict::LessSpecific),
        ("wide".to_owned(), RuleVerdict::LessSpecific),
    ];
    assert_eq!(considered(9), (expected.to_vec(), 0));
    assert_eq!(considered(2), (expected.iter().take(2).cloned().collect(), 3));
    let wide = |count_max| scene.catalog.rules_considered(STRANGER.parse().unwrap(), count_max);
    assert_eq!((wide(2).unlisted, wide(2).unlisted_before, wide(9).unlisted_before), (3, 2, 0));
    assert_eq!(wide(0).applied.unwrap().name, name("wide"));
    let six = scene.catalog.rules_considered(STRANGER_V6.parse().unwrap(), 9);
    assert_eq!((six.rules.len(), six.applied.unwrap().name.clone()), (1, name("six")));
}

#[test]
fn the_balancing_version_rises_with_what_it_depends_on() {
    let mut scene = scene(&[]);
    let mut versions = vec![scene.catalog.balancing_version()];
    let steps: [&[Change]; 6] = [
        &office(),
        &[create_user("mira")],
        &[set_policy(Policy::Random)],
        &[create_rule("one", "10.1.0.0/16", "pool"), create_rule("two", "10.2.0.0/16", "pool")],
        &[drop_rule("two")],
        &[create_role("analyst")],
    ];
    for step in steps {
        scene.change(step);
        versions.push(scene.catalog.balancing_version());
    }
    assert_eq!(versions, [1, 2, 2, 3, 4, 5, 5]);
}
