//! The members of the cluster that this process runs, and what is known of them.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use switchyard_catalog::{Name, Node, NodeId, NodeState, NodeStates};
use switchyard_engine::NodeEvent;
use tokio::sync::{mpsc, oneshot};

use crate::live::now_us;

/// How many state changes of nodes are remembered.
const NODE_EVENTS_MAX: usize = 10_000;
/// How many orders may wait for the server.
const ORDERS_MAX: usize = 16;

/// That a member of this process shall stop to serve, or serve again.
#[derive(Debug)]
pub struct MemberOrder {
    /// Its node.
    pub node: NodeId,
    /// Whether it shall serve.
    pub serve: bool,
    /// Told what came of it.
    pub done: oneshot::Sender<Result<(), String>>,
}

/// What the members of one process share besides the catalog.
#[derive(Debug, Default)]
pub(crate) struct Members {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// Those this process runs, whether they serve now or not.
    here: BTreeSet<NodeId>,
    /// State changes, the newest last; bounded.
    events: VecDeque<NodeEvent>,
    /// What they come to.
    states: Arc<NodeStates>,
    orders: Option<mpsc::Sender<MemberOrder>>,
}

impl Members {
    /// A member serves from now on, or does not any more.
    pub(crate) fn changed(&self, node: &Node, up: bool, reason: &str) {
        let mut known = self.known();
        known.here.insert(node.id);
        let state = if up { "UP" } else { "DOWN" };
        let (name, reason) = (node.name.to_string(), reason.to_owned());
        while known.events.len() >= NODE_EVENTS_MAX {
            known.events.pop_front();
        }
        known.events.push_back(NodeEvent { node: node.id, name, state, time_us: now_us(), reason });
        let serves = |event: &NodeEvent| if event.state == "UP" { NodeState::Up } else { NodeState::Down };
        known.states = Arc::new(known.events.iter().map(|event| (event.node, serves(event))).collect());
    }

    /// Whether this process runs a member.
    pub(crate) fn runs(&self, node: NodeId) -> bool {
        self.known().here.contains(&node)
    }

    /// How many members this process runs.
    pub(crate) fn count(&self) -> usize {
        self.known().here.len()
    }

    /// Who serves.
    pub(crate) fn states(&self) -> Arc<NodeStates> {
        Arc::clone(&self.known().states)
    }

    /// All state changes that are remembered.
    pub(crate) fn events(&self) -> Vec<NodeEvent> {
        self.known().events.iter().cloned().collect()
    }

    /// The orders from now on: who has them carries them out.
    pub(crate) fn orders(&self) -> mpsc::Receiver<MemberOrder> {
        let (sender, receiver) = mpsc::channel(ORDERS_MAX);
        self.known().orders = Some(sender);
        receiver
    }

    /// Has a member serve, or stop to; says why that was not done.
    pub(crate) async fn order(&self, name: &Name, node: NodeId, serve: bool) -> Result<(), String> {
        let sender = self.known().orders.clone();
        let (done, answer) = oneshot::channel();
        let order = MemberOrder { node, serve, done };
        let gone = || format!("nobody here can do that to node \"{name}\"");
        sender.ok_or_else(gone)?.send(order).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Nothing that can panic runs while it is held.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
