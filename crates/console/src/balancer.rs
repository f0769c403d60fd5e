//! This member's part in load balancing: its pointers and counters.

use std::sync::Arc;

use switchyard_catalog::{Catalog, NodeId, NodeStates, RoutingClient, RoutingView, RuleCounters, Trace, Turn, Turns};

/// The balancing member.
#[derive(Debug)]
pub(crate) struct Balancer {
    /// This member's node.
    here: Option<NodeId>,
    states: NodeStates,
    /// Whose turn it is in each group.
    pub(crate) turns: Arc<Turns>,
    /// How often each rule decided.
    pub(crate) counters: Arc<RuleCounters>,
}

impl Balancer {
    pub(crate) fn new(here: Option<NodeId>, states: NodeStates) -> Self {
        Self { here, states, turns: Arc::default(), counters: Arc::default() }
    }

    /// A decision as DESCRIBE_LOAD_BALANCE_DECISION makes it: it takes its turn, and no connection comes of it.
    pub(crate) fn describe(&self, catalog: &Catalog, client: &RoutingClient) -> Trace {
        let view = RoutingView { here: self.here, states: &self.states, turns: &self.turns };
        catalog.decide_and_tell(client, &view, Turn::Take, &mut rand::rng())
    }
}
