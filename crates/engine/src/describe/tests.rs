#![expect(clippy::unwrap_used, reason = "a test may")]

use rand::SeedableRng;
use rand::rngs::StdRng;
use switchyard_catalog::{
    AddressChange, Catalog, Change, GroupChange, GroupSource, Name, Network, NodeKind, NodeState, NodeStates, Policy,
    RoutingClient, RoutingView, Turn, Turns,
};

use super::describe;

fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

fn rule(rule: &str, typed: &str, group: &str) -> Change {
    let net: ipnet::IpNet = typed.parse().unwrap();
    let source = Network { typed: typed.to_owned(), net };
    Change::CreateRoutingRule { name: name(rule), source, group: name(group) }
}

fn policy(policy: Policy) -> Change {
    Change::AlterLoadBalanceGroup { name: name("lab_pool"), change: GroupChange::Policy(policy) }
}

/// Two members of one subcluster, each with an address, and a group of both.
struct Bench {
    catalog: Catalog,
    turns: Turns,
    up: bool,
}

impl Bench {
    fn new() -> Self {
        let mut changes = Vec::new();
        for number in 1..=2 {
            let (kind, host) = (NodeKind::Member { upstream: None }, format!("172.20.9.{number}"));
            let node = name(&format!("n{number}"));
            changes.push(Change::CreateNode { name: node.clone(), kind, host, port: 5433, subcluster: None });
            let host = switchyard_catalog::Host::Ip(format!("172.20.1.{number}").parse().unwrap());
            let name = name(&format!("a{number}"));
            changes.push(Change::CreateNetworkAddress { name, node, host, port: 5433, enabled: true });
        }
        let source = GroupSource::Addresses(vec![name("a1"), name("a2")]);
        let policy = Policy::RoundRobin;
        changes.push(Change::CreateLoadBalanceGroup { name: name("lab_pool"), source, filter: None, policy });
        let catalog = Catalog::initial(name("switchyard"), name("dbadmin"), None).0.with_version(1);
        let mut bench = Self { catalog, turns: Turns::default(), up: true };
        bench.change(&changes);
        bench
    }

    fn change(&mut self, changes: &[Change]) {
        let version = self.catalog.version() + 1;
        self.catalog = self.catalog.apply(changes).unwrap().catalog.with_version(version);
    }

    /// The lines but the first two.
    fn decision(&self, typed: &str) -> Vec<String> {
        let lines = self.lines(typed);
        let (head, rest) = lines.split_at(2);
        let version = self.catalog.balancing_version();
        assert_eq!(
            head,
            [
                format!("Describing load balance decision for address [{typed}]"),
                format!("Load balance cache internal version id (node-local): [{version}]"),
            ]
        );
        rest.to_vec()
    }

    fn lines(&self, typed: &str) -> Vec<String> {
        let state = if self.up { NodeState::Up } else { NodeState::Down };
        let states: NodeStates = self.catalog.nodes().iter().map(|node| (node.id, state)).collect();
        let here = self.catalog.nodes().named(&name("n1")).map(|node| node.id);
        let view = RoutingView { here, states: &states, turns: &self.turns };
        let client = RoutingClient { address: typed.parse().unwrap(), asks: true, can_be_redirected: true };
        let trace = self.catalog.decide_and_tell(&client, &view, Turn::Take, &mut StdRng::seed_from_u64(1));
        describe(&self.catalog, typed, &trace).lines().map(str::to_owned).collect()
    }
}

const NO_RULE: [&str; 2] = [
    "Routing table decision: No matching routing rules: input address does not match any routing rule source filters. Details: [Tried some rules but no matching]",
    "No rules matched. Falling back to classic load balancing.",
];
const NO_CLASSIC: &str = "Classic load balance decision: Classic load balancing considered, but either the policy was NONE or no target was available. Details: [NONE or invalid]";
const MISS: &str = "Considered rule [lab] source ip filter [172.20.5.0/24]... input address does not match source ip filter for this rule.";

#[test]
fn a_rule_that_matches() {
    let mut bench = Bench::new();
    bench.change(&[rule("lab", "172.20.5.0/24", "lab_pool")]);
    let lines = |position, address| {
        vec![
            "Considered rule [lab] source ip filter [172.20.5.0/24]... input address matches this rule".to_owned(),
            "Matched to load balance group [lab_pool] the group has policy [ROUNDROBIN] number of addresses [2]"
                .to_owned(),
            "(0) LB Address: [172.20.1.1]:5433".to_owned(),
            "(1) LB Address: [172.20.1.2]:5433".to_owned(),
            format!("Chose address at position [{position}]"),
            format!("Routing table decision: Success. Load balance redirect to: [{address}] port [5433]"),
        ]
    };
    assert_eq!(bench.lines("172.20.5.9").get(1).unwrap(), "Load balance cache internal version id (node-local): [3]");
    // Each description takes a turn, as a connection would: that was the first.
    assert_eq!(bench.decision("172.20.5.9"), lines(1, "172.20.1.2"));
    assert_eq!(bench.decision("::ffff:172.20.5.9"), lines(0, "172.20.1.1"));
    let disable = AddressChange::Enable(false);
    bench.change(&[Change::AlterNetworkAddress { name: name("a1"), change: disable }]);
    assert_eq!(
        bench.decision("172.20.5.9").iter().skip(1).collect::<Vec<_>>(),
        [
            "Matched to load balance group [lab_pool] the group has policy [ROUNDROBIN] number of addresses [1]",
            "(0) LB Address: [172.20.1.2]:5433",
            "Chose address at position [0]",
            "Routing table decision: Success. Load balance redirect to: [172.20.1.2] port [5433]",
        ]
    );
}

#[test]
fn rules_are_listed_as_far_as_the_first_match() {
    let mut bench = Bench::new();
    bench.change(&[
        rule("all", "0.0.0.0/0", "lab_pool"),
        rule("wide", "172.0.0.0/8", "lab_pool"),
        rule("lab", "172.20.5.0/24", "lab_pool"),
        rule("office", "10.1.1.0/24", "lab_pool"),
        rule("six", "::/0", "lab_pool"),
    ]);
    assert_eq!(
        bench.decision("172.21.0.1").iter().take(4).collect::<Vec<_>>(),
        [
            MISS,
            "Considered rule [office] source ip filter [10.1.1.0/24]... input address does not match source ip filter for this rule.",
            "Considered rule [wide] source ip filter [172.0.0.0/8]... input address matches this rule",
            "Matched to load balance group [lab_pool] the group has policy [ROUNDROBIN] number of addresses [2]",
        ]
    );
}

#[test]
fn a_rule_that_leads_nowhere_is_the_end() {
    let mut bench = Bench::new();
    let classic = Change::SetPolicy { policy: Policy::RoundRobin };
    bench.change(&[rule("lab", "172.20.5.0/24", "lab_pool"), policy(Policy::Random), classic]);
    bench.up = false;
    assert_eq!(
        bench.decision("172.20.5.9").iter().skip(1).collect::<Vec<_>>(),
        [
            "Matched to load balance group [lab_pool] the group has policy [RANDOM] number of addresses [0]",
            "Routing table decision: No available targets in the matched group; connection stays on the current node.",
        ]
    );
    bench.up = true;
    bench.change(&[policy(Policy::None)]);
    assert_eq!(
        bench.decision("172.20.5.9").iter().skip(1).collect::<Vec<_>>(),
        [
            "Matched to load balance group [lab_pool] the group has policy [NONE] number of addresses [2]",
            "(0) LB Address: [172.20.1.1]:5433",
            "(1) LB Address: [172.20.1.2]:5433",
            "Routing table decision: The policy of the matched group is NONE; connection stays on the current node.",
        ]
    );
}

#[test]
fn without_a_matching_rule() {
    let mut bench = Bench::new();
    bench.change(&[rule("lab", "172.20.5.0/24", "lab_pool")]);
    let [no_rule, falling_back] = NO_RULE;
    let interior = "Default subcluster interior load balance decision: Success. Load balance redirect to: [172.20.1.1] port [5433]";
    assert_eq!(bench.decision("10.0.0.1"), [MISS, no_rule, falling_back, NO_CLASSIC, interior]);
    bench.change(&[Change::SetPolicy { policy: Policy::RoundRobin }]);
    let classic = "Classic load balance decision: Success. Load balance redirect to: [172.20.9.1] port [5433]";
    assert_eq!(bench.decision("10.0.0.1"), [MISS, no_rule, falling_back, classic]);
    bench.up = false;
    assert_eq!(bench.decision("10.0.0.1"), [MISS, no_rule, falling_back, NO_CLASSIC]);
    bench.change(&[Change::SetPolicy { policy: Policy::None }]);
    assert_eq!(bench.decision("10.0.0.1"), [MISS, no_rule, falling_back, NO_CLASSIC]);
}

#[test]
fn without_any_rule() {
    let mut bench = Bench::new();
    bench.up = false;
    let [no_rule, falling_back] = NO_RULE;
    let no_rule = no_rule.replace("Tried some rules but no matching", "No routing rules defined");
    assert_eq!(bench.decision("10.0.0.1"), [no_rule.as_str(), falling_back, NO_CLASSIC]);
}

#[test]
fn a_great_many_rules_are_counted_and_not_listed() {
    let mut bench = Bench::new();
    let mut rules: Vec<Change> = (0..1_200)
        .map(|number| rule(&format!("r{number}"), &format!("10.{}.{}.0/24", number / 200, number % 200), "lab_pool"))
        .collect();
    rules.push(rule("wide", "172.0.0.0/8", "lab_pool"));
    bench.change(&rules);
    let lines = bench.decision("172.20.5.9");
    let more = "Considered 200 more rules... input address does not match source ip filter for any of them.";
    assert_eq!(lines.iter().position(|line| line == more), Some(1_000));
    assert!(lines.get(1_001).unwrap().starts_with("Considered rule [wide]"));
}
