//! What is said to be odd.

use std::collections::BTreeSet;

use super::fleet::*;
use crate::apply::tests::sample::*;
use crate::*;

fn lints(scene: &Scene, counters: Option<&RuleCounters>) -> Vec<String> {
    let ever_up: BTreeSet<NodeId> =
        scene.catalog.nodes().iter().map(|node| node.id).filter(|node| scene.states.is_up(*node)).collect();
    let observed = Observed { states: &scene.states, ever_up: &ever_up, counters };
    let text = |lint: Lint| format!("{}: {} \"{}\": {lint}", lint.kind(), lint.subject().0, lint.subject().1);
    scene.catalog.lints(&observed).into_iter().map(text).collect()
}

/// A group in each family.
fn pools() -> Scene {
    scene(&[
        create_address("a1", "n1", "192.0.2.1"),
        create_address("b1", "n1", "2001:db8::1"),
        create_group("v4", addresses(&["a1"]), None),
        create_group("v6", addresses(&["b1"]), None),
    ])
}

#[test]
fn nothing_is_odd_about_good_rules() {
    let mut scene = pools();
    scene.change(&[
        create_rule("all_v4", "0.0.0.0/0", "v4"),
        create_rule("all_v6", "::/0", "v6"),
        create_rule("half", "10.0.0.0/9", "v4"),
        create_workload_rule(None, "nightly", &["etl"], 0),
        create_user("mira"),
        grant_workload("nightly", &["mira"]),
    ]);
    assert_eq!(lints(&scene, None), Vec::<String>::new());
}

#[test]
fn rules_that_others_take_everything_from() {
    let mut scene = pools();
    scene.change(&[
        create_rule("office", "10.0.0.0/8", "v4"),
        create_rule("low", "10.0.0.0/9", "v4"),
        create_rule("high_a", "10.128.0.0/10", "v4"),
        create_rule("high_b", "10.192.0.0/10", "v4"),
        create_rule("low_again", "10.0.0.0/9", "v4"),
        create_rule("mapped", "::ffff:10.0.0.0/105", "v4"),
        create_rule("everybody", "::/0", "v6"),
        create_rule("one_half", "::/1", "v6"),
        create_rule("other_half", "8000::/1", "v6"),
        create_rule("almost", "172.16.0.0/31", "v4"),
        create_rule("first", "172.16.0.0/32", "v4"),
        create_rule("narrow", "172.17.0.0/31", "v4"),
        create_rule("narrow_1", "172.17.0.0/32", "v4"),
        create_rule("narrow_2", "172.17.0.1/32", "v4"),
    ]);
    assert_eq!(
        lints(&scene, None),
        [
            "shadowed: routing rule \"office\": every address of 10.0.0.0/8 is taken by 3 more specific rules, \"low\" among them",
            "overlapping: routing rule \"low_again\": 10.0.0.0/9 is the network of the older rule \"low\" too, which goes first",
            "overlapping: routing rule \"mapped\": ::ffff:10.0.0.0/105 is the network of the older rule \"low\" too, which goes first",
            "shadowed: routing rule \"everybody\": every address of ::/0 is taken by 2 more specific rules, \"one_half\" among them",
            "shadowed: routing rule \"narrow\": every address of 172.17.0.0/31 is taken by 2 more specific rules, \"narrow_1\" among them",
        ]
    );
    scene.change(&[drop_rule("other_half"), drop_rule("high_b"), drop_rule("narrow_1"), drop_rule("low")]);
    assert_eq!(
        lints(&scene, None),
        [
            "overlapping: routing rule \"mapped\": ::ffff:10.0.0.0/105 is the network of the older rule \"low_again\" too, which goes first"
        ]
    );
}

#[test]
fn rules_that_lead_nowhere() {
    let mut scene = pools();
    scene.change(&[
        create_rule("wrong_family", "2001:db8::/32", "v4"),
        create_address("off", "n2", "192.0.2.2"),
        alter_address("off", AddressChange::Enable(false)),
        create_group("disabled", addresses(&["off"]), None),
        create_rule("to_disabled", "10.0.0.0/8", "disabled"),
        create_group("emptied", addresses(&["off"]), None),
        alter_group("emptied", GroupChange::Drop(addresses(&["off"]))),
        create_rule("to_nothing", "10.1.0.0/16", "emptied"),
        create_group("filtered", subclusters(&["default_subcluster"]), Some("198.51.100.0/24")),
        create_rule("to_filtered", "10.2.0.0/16", "filtered"),
        create_group("by_family", subclusters(&["default_subcluster"]), Some("192.0.2.0/24")),
        create_rule("to_other_family", "2001:db8:1::/48", "by_family"),
    ]);
    assert_eq!(
        lints(&scene, None),
        [
            "address family missing: routing rule \"wrong_family\": 2001:db8::/32 is a network of IPv6 clients, and load balance group \"v4\" has no IPv6 address",
            "unreachable: routing rule \"to_disabled\": load balance group \"disabled\" has no network address that can be chosen",
            "unreachable: routing rule \"to_nothing\": load balance group \"emptied\" is empty",
            "unreachable: routing rule \"to_filtered\": load balance group \"filtered\" has no network address that can be chosen",
            "address family missing: routing rule \"to_other_family\": 2001:db8:1::/48 is a network of IPv6 clients, and load balance group \"by_family\" has no IPv6 address",
        ]
    );
}

#[test]
fn rules_and_workloads_whose_nodes_are_gone() {
    let mut scene = pools();
    scene.change(&[
        create_address("a3", "n3", "192.0.2.3"),
        create_group("etl_pool", addresses(&["a3"]), None),
        create_rule("etl", "10.0.0.0/8", "etl_pool"),
        create_subcluster("vacant"),
        create_workload_rule(None, "nightly", &["etl"], 0),
        create_workload_rule(Some("rule_of_daily"), "daily", &["vacant"], 0),
        create_user("mira"),
        grant_workload("nightly", &["mira"]),
    ]);
    let always = [
        "unreachable: workload rule \"rule_of_daily\": no node is in the subclusters of workload \"daily\"",
        "workload nobody may use: workload rule \"rule_of_daily\": workload \"daily\" is granted to no user and no role",
    ];
    assert_eq!(lints(&scene, None), always);
    scene.change(&[drain("n3")]);
    assert_eq!(
        lints(&scene, None).first().unwrap(),
        "no live target: routing rule \"etl\": every node of load balance group \"etl_pool\" is down or draining"
    );
    scene.change(&[alter_node("n3", NodeChange::Drain { draining: false, terms: None })]);
    scene.set("n3", NodeState::Down);
    scene.set("n4", NodeState::Draining);
    let gone = [
        "no live target: routing rule \"etl\": every node of load balance group \"etl_pool\" is down or draining",
        "no live target: workload rule \"nightly\": every node that serves workload \"nightly\" is down or draining",
    ];
    let never = "node never up: network address \"a3\": node \"n3\" was never up";
    assert_eq!(lints(&scene, None), [&gone[..], &always, &[never]].concat());
}

#[test]
fn workloads_of_roles_that_nobody_has() {
    let mut scene = pools();
    scene.change(&[
        create_workload_rule(None, "nightly", &["etl"], 0),
        create_role("inner"),
        create_role("outer"),
        grant_role("inner", "outer", false, "dbadmin"),
        grant_workload("nightly", &["inner"]),
        create_user("mira"),
    ]);
    let nobody = [
        "workload nobody may use: workload rule \"nightly\": workload \"nightly\" is granted only to roles that nobody has, or to users who are locked",
    ];
    assert_eq!(lints(&scene, None), nobody);
    scene.change(&[grant_role("outer", "mira", false, "dbadmin")]);
    assert_eq!(lints(&scene, None), Vec::<String>::new());
    scene.change(&[alter_user("mira", UserChange::Lock(true))]);
    assert_eq!(lints(&scene, None), nobody);
    scene.change(&[grant_role("outer", "public", false, "dbadmin"), create_user("lena")]);
    assert_eq!(lints(&scene, None), Vec::<String>::new());
}

#[test]
fn rules_that_never_matched() {
    let mut scene = pools();
    scene.change(&[
        create_rule("office", "10.0.0.0/8", "v4"),
        create_rule("floor", "10.8.0.0/16", "v4"),
        create_rule("floor_again", "10.8.0.0/16", "v4"),
    ]);
    let counters = RuleCounters::default();
    let decision = scene.decide(&asking("10.1.1.1"));
    counters.note(&decision, &scene.catalog);
    let lints = lints(&scene, Some(&counters));
    let silent = "never matched: routing rule \"floor\": no connection has matched the rule since the server started";
    assert_eq!(lints.iter().filter(|lint| lint.starts_with("never")).collect::<Vec<_>>(), [silent]);
    assert!(lints.iter().any(|lint| lint.starts_with("overlapping: routing rule \"floor_again\"")));
}
