//! A fleet to ask, and its answers as text.

use std::net::IpAddr;

use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::apply::tests::sample::*;
use crate::*;

/// A catalog, a member that decides, and what it knows.
pub(super) struct Scene {
    pub(super) catalog: Catalog,
    pub(super) here: &'static str,
    pub(super) states: NodeStates,
    pub(super) turns: Turns,
    /// The seed of the next decision's chance.
    pub(super) seed: u64,
}

pub(super) fn member(node: &str, host: &str, port: u16, subcluster: Option<&str>) -> Change {
    let (name, host, kind) = (name(node), host.to_owned(), NodeKind::Member { upstream: None });
    Change::CreateNode { name, kind, host, port, subcluster: subcluster.map(crate::apply::tests::sample::name) }
}

/// Four members, two of them in a subcluster of their own, and a PostgreSQL server; all are up.
pub(super) fn scene(changes: &[Change]) -> Scene {
    let first = [
        create_subcluster("etl"),
        member("n1", "10.0.0.1", 5433, None),
        member("n2", "10.0.0.2", 5434, None),
        member("n3", "10.0.0.3", 5433, Some("etl")),
        member("n4", "10.0.0.4", 5433, Some("etl")),
        create_subcluster("servers"),
        create_node("pg", Some("servers")),
    ];
    let catalog = initial().apply(&first).unwrap().catalog;
    let states = catalog.nodes().iter().map(|node| (node.id, NodeState::Up)).collect();
    let (turns, seed) = (Turns::default(), 1);
    let mut scene = Scene { catalog, here: "n1", states, turns, seed };
    scene.change(changes);
    scene
}

pub(super) fn set_policy(policy: Policy) -> Change {
    Change::SetPolicy { policy }
}

pub(super) fn drain(node: &str) -> Change {
    alter_node(node, NodeChange::Drain { draining: true, terms: None })
}

/// What Vertica's drivers are.
pub(super) fn asking(address: &str) -> RoutingClient {
    RoutingClient { address: address.parse().unwrap(), asks: true, can_be_redirected: true }
}

impl Scene {
    pub(super) fn change(&mut self, changes: &[Change]) {
        let version = self.catalog.version() + 1;
        self.catalog = self.catalog.apply(changes).unwrap().catalog.with_version(version);
    }

    pub(super) fn node(&self, node: &str) -> NodeId {
        self.catalog.nodes().named(&name(node)).unwrap().id
    }

    pub(super) fn set(&mut self, node: &str, state: NodeState) {
        let (id, states) = (self.node(node), &self.states);
        let others = self.catalog.nodes().iter().map(|node| (node.id, states.state(node.id)));
        self.states = others.chain([(id, state)]).collect();
    }

    pub(super) fn view(&self) -> RoutingView<'_> {
        RoutingView { here: Some(self.node(self.here)), states: &self.states, turns: &self.turns }
    }

    pub(super) fn decide(&mut self, client: &RoutingClient) -> Decision {
        let decision = self.catalog.decide(client, &self.view(), &mut self.chance());
        self.seed += 1;
        decision
    }

    pub(super) fn chance(&self) -> StdRng {
        StdRng::seed_from_u64(self.seed)
    }

    pub(super) fn look(&mut self, client: &RoutingClient) -> Trace {
        self.catalog.decide_and_tell(client, &self.view(), Turn::Look, &mut self.chance())
    }

    /// The decision for a client that asks and can be redirected, as text.
    pub(super) fn ask(&mut self, address: &str) -> String {
        self.ask_as(&asking(address))
    }

    pub(super) fn ask_as(&mut self, client: &RoutingClient) -> String {
        let looked = self.look(client);
        let decision = self.decide(client);
        assert_eq!(looked.decision, decision, "the question and the deed differ");
        if let Some(last) = looked.stages.last() {
            let told = last.chosen.and_then(|chosen| last.available.get(chosen));
            assert_eq!((last.stage, told), (decision.stage, decision.target()));
        }
        self.text(&decision)
    }

    pub(super) fn text(&self, decision: &Decision) -> String {
        let stage = match decision.stage {
            Stage::Unasked => "unasked".to_owned(),
            Stage::Rule { rule, .. } => format!("rule {}", self.catalog.routing_rules().find(rule).unwrap().name),
            Stage::Classic => "classic".to_owned(),
            Stage::Interior { subcluster } => {
                format!("interior {}", self.catalog.subclusters().find(subcluster).unwrap().name)
            }
            Stage::Nothing => "nothing".to_owned(),
        };
        match &decision.outcome {
            Outcome::Stay(reason) => format!("{stage}: stay, {}", reason.as_str()),
            Outcome::Go(target, delivery) => {
                let node = &self.catalog.nodes().find(target.node).unwrap().name;
                format!("{stage}: {} {node} {}:{}", delivery.as_str(), target.host, target.port)
            }
        }
    }

    /// The nodes that a number of clients come to, in order.
    pub(super) fn nodes(&mut self, address: &str, count: usize) -> Vec<String> {
        let client = RoutingClient { address: address.parse::<IpAddr>().unwrap(), ..asking("::") };
        let nodes = (0..count).map(|_| self.decide(&client).target().map(|target| target.node));
        let nodes: Vec<Option<NodeId>> = nodes.collect();
        let name = |node: Option<NodeId>| {
            node.map_or("-".to_owned(), |id| self.catalog.nodes().find(id).unwrap().name.to_string())
        };
        nodes.into_iter().map(name).collect()
    }

    /// Who cannot be chosen in the last stage, and why.
    pub(super) fn skipped(&mut self, address: &str) -> Vec<String> {
        let trace = self.look(&asking(address));
        let last = trace.stages.last().unwrap();
        let text = |(candidate, skip): &(Candidate, Skip)| {
            let node = &self.catalog.nodes().find(candidate.node).unwrap().name;
            match &candidate.place {
                Some((host, _)) => format!("{node} {host}: {}", skip.as_str()),
                None => format!("{node}: {}", skip.as_str()),
            }
        };
        last.skipped.iter().map(text).collect()
    }
}
