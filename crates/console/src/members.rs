//! The members of the cluster that this process runs, and what is known of them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use switchyard_catalog::{Name, Node, NodeId, NodeState, NodeStates, RuleCounters};
use switchyard_engine::NodeEvent;
use switchyard_session::{Registry, SessionEntry};
use tokio::sync::{mpsc, oneshot};

use crate::decision_log::DecisionLog;
use crate::live::{LiveState, now_us};

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
    /// How often each rule decided.
    pub(crate) counters: Arc<RuleCounters>,
    /// What was decided last.
    pub(crate) routed: DecisionLog,
}

#[derive(Debug, Default)]
struct Known {
    /// Those this process runs, whether they serve now or not.
    here: Vec<Here>,
    /// State changes, the newest last; bounded.
    events: VecDeque<NodeEvent>,
    /// What they come to.
    states: Arc<NodeStates>,
    orders: Option<mpsc::Sender<MemberOrder>>,
}

/// A member that this process runs.
#[derive(Debug, Clone)]
pub(crate) struct Here {
    /// Its node.
    pub(crate) node: NodeId,
    /// Its sessions.
    pub(crate) registry: Arc<Registry>,
    /// What it remembers.
    pub(crate) live: Arc<LiveState>,
}

impl Members {
    /// A member is there from now on.
    pub(crate) fn joined(&self, member: Here) {
        self.known().here.push(member);
    }

    /// Those this process runs, in the order in which they joined.
    pub(crate) fn here(&self) -> Vec<Here> {
        self.known().here.clone()
    }

    /// The sessions of them all, each with its node, the oldest first.
    pub(crate) fn sessions(&self) -> Vec<(NodeId, Arc<SessionEntry>)> {
        let of = |member: Here| member.registry.sessions().into_iter().map(move |entry| (member.node, entry));
        let mut sessions: Vec<_> = self.here().into_iter().flat_map(of).collect();
        sessions.sort_by_key(|(_, entry)| entry.number());
        sessions
    }

    /// The session with this id, as system tables show it.
    pub(crate) fn session_named(&self, id: &str) -> Option<Arc<SessionEntry>> {
        self.here().iter().find_map(|member| member.registry.session_named(id))
    }

    /// The sessions with this process id: that of a session that one member has passed on to another is its own.
    pub(crate) fn sessions_numbered(&self, process_id: i32) -> Vec<Arc<SessionEntry>> {
        self.here().iter().filter_map(|member| member.registry.session(process_id)).collect()
    }

    /// A member serves from now on, or does not any more.
    pub(crate) fn changed(&self, node: &Node, up: bool, reason: &str) {
        let mut known = self.known();
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
        self.known().here.iter().any(|member| member.node == node)
    }

    /// How many members this process runs.
    pub(crate) fn count(&self) -> usize {
        self.known().here.len()
    }

    /// How many of them serve.
    pub(crate) fn serving(&self) -> usize {
        let known = self.known();
        known.here.iter().filter(|member| known.states.is_up(member.node)).count()
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
