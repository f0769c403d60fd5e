//! Where connections go, decided on the newest catalog by what this member knows.

use std::sync::Arc;

use switchyard_catalog::{
    Catalog, Decision, Delivery, NodeId, Outcome, RoutingClient, RoutingView, Trace, Turn, Turns,
};
use switchyard_session::{Balance, Destination, Peer};

use crate::Head;
use crate::members::Members;
use crate::metrics::Metrics;

/// One member's part in balancing.
#[derive(Debug)]
pub(crate) struct Router {
    head: Head,
    members: Arc<Members>,
    here: Option<NodeId>,
    metrics: Arc<Metrics>,
    /// Whose turn it is in each group.
    pub(crate) turns: Arc<Turns>,
}

impl Router {
    pub(crate) fn new(head: Head, members: Arc<Members>, here: Option<NodeId>, metrics: Arc<Metrics>) -> Self {
        Self { head, members, here, metrics, turns: Arc::default() }
    }

    /// A decision as DESCRIBE_LOAD_BALANCE_DECISION makes it: it takes its turn, and no connection comes of it.
    pub(crate) fn describe(&self, catalog: &Catalog, client: &RoutingClient) -> Trace {
        let states = self.members.states();
        let view = RoutingView { here: self.here, states: &states, turns: &self.turns };
        catalog.decide_and_tell(client, &view, Turn::Take, &mut rand::rng())
    }

    /// Decides for one connection that asks, and takes its turn.
    pub(crate) fn decide(&self, peer: Peer, can_be_redirected: bool) -> Balance {
        // A client on this machine's own socket has no address that a rule could be for.
        let Some(address) = peer.address() else { return Balance::Here };
        let catalog = self.head.load();
        let states = self.members.states();
        let view = RoutingView { here: self.here, states: &states, turns: &self.turns };
        let client = RoutingClient { address: address.ip(), asks: true, can_be_redirected };
        let decision = catalog.decide(&client, &view, &mut rand::rng());
        self.members.counters.note(&decision, &catalog);
        self.metrics.decided(&decision);
        let balance = balance(&catalog, &decision);
        self.members.routed.note(address, decision, self.here, catalog, states);
        balance
    }
}

/// What is done about a decision.
fn balance(catalog: &Catalog, decision: &Decision) -> Balance {
    let Outcome::Go(target, delivery) = &decision.outcome else { return Balance::Here };
    let told = Destination { host: target.host.to_string(), port: target.port };
    if *delivery == Delivery::Own {
        return Balance::Chosen(told);
    }
    // Members reach each other where they say, whatever address clients are told.
    match catalog.nodes().find(target.node).filter(|_| target.member) {
        Some(node) => Balance::Elsewhere { told, passed: Destination { host: node.host.clone(), port: node.port } },
        // A server that speaks its own protocol only serves sessions, not connections.
        None => Balance::Here,
    }
}
