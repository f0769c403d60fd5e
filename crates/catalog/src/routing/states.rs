//! Which nodes can take connections now, as the deciding member knows it.

use crate::id::NodeId;

/// Whether a node takes connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeState {
    /// It does.
    Up,
    /// It serves those it has, and gets no more.
    Draining,
    /// It does not, or nobody knows.
    Down,
}

/// The states of all nodes that are known of.
#[derive(Debug, Clone, Default)]
pub struct NodeStates {
    /// By id.
    known: Vec<(NodeId, NodeState)>,
}

impl FromIterator<(NodeId, NodeState)> for NodeStates {
    /// Of two states of one node the later counts.
    fn from_iter<T: IntoIterator<Item = (NodeId, NodeState)>>(states: T) -> Self {
        let mut known: Vec<_> = states.into_iter().collect();
        known.reverse();
        known.sort_by_key(|(node, _)| *node);
        known.dedup_by_key(|(node, _)| *node);
        Self { known }
    }
}

impl NodeStates {
    /// A node's state: down when nothing is known of it.
    pub fn state(&self, node: NodeId) -> NodeState {
        let found = self.known.binary_search_by_key(&node, |(known, _)| *known);
        found.ok().and_then(|place| self.known.get(place)).map_or(NodeState::Down, |(_, state)| *state)
    }

    /// Whether it is up and not draining.
    pub fn is_up(&self, node: NodeId) -> bool {
        self.state(node) == NodeState::Up
    }
}
