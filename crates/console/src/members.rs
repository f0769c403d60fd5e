//! The members of the cluster that this process runs, and what is known of them.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use switchyard_catalog::{Catalog, Name, Node, NodeId, NodeKind, NodeState, NodeStates, RuleCounters};
use switchyard_engine::{DrainProgress, LiveSession, NodeEvent};
use switchyard_session::{Registry, SessionEntry};
use switchyard_store::membership::{MemberEvent, Places};
use tokio::sync::{mpsc, oneshot};

use crate::asking::AskPeer;
use crate::decision_log::DecisionLog;
use crate::health::Health;
use crate::live::{LiveState, now_us};

mod peer;

use self::peer::{Lease, Peer};
pub use self::peer::{PeerPlace, Reach};

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
    asker: Asker,
    /// Where the process is that has this one's name.
    displaced: Mutex<Option<String>>,
    /// Where sessions are counted with those of other processes.
    pub(crate) places: OnceLock<Arc<Places>>,
    /// The nodes whose PostgreSQL server did not answer lately, and until when nobody is sent there.
    absent: Mutex<BTreeMap<NodeId, Instant>>,
    /// What looking at PostgreSQL servers has shown, of those that are looked at.
    health: Mutex<BTreeMap<NodeId, Health>>,
}

/// How long nobody is sent to a server that did not answer, unless it is found again before.
const ABSENT_FOR: Duration = Duration::from_secs(2);

/// By what members of other processes are asked.
#[derive(Default)]
struct Asker(OnceLock<Arc<AskPeer>>);

impl fmt::Debug for Asker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Asker")
    }
}

#[derive(Debug, Default)]
struct Known {
    /// Those this process runs, whether they serve now or not.
    here: Vec<Here>,
    /// State changes, the newest last; bounded.
    events: VecDeque<NodeEvent>,
    /// What they come to, by node.
    last: BTreeMap<NodeId, NodeState>,
    /// The same, for decisions.
    states: Arc<NodeStates>,
    orders: Option<mpsc::Sender<MemberOrder>>,
    /// Those that other processes run, by name.
    peers: BTreeMap<String, Peer>,
    /// Whether it is known who else is there.
    blind: bool,
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

    /// The sessions that ended lately, with when, the oldest first.
    pub(crate) fn ended(&self) -> Vec<(LiveSession, i64)> {
        let mut ended: Vec<_> = self.here().iter().flat_map(|member| member.live.ended_sessions()).collect();
        ended.sort_by_key(|(_, end_us)| *end_us);
        ended
    }

    /// How far those are that drain.
    pub(crate) fn drains(&self, catalog: &Catalog) -> Vec<DrainProgress> {
        let of = |member: &Here| member.live.draining.progress(member.node, &member.registry, catalog);
        self.here().iter().filter_map(of).collect()
    }

    /// Stops what a session does, if the key is that session's; says whether there is such a session.
    pub(crate) fn cancel(&self, process_id: i32, secret: &[u8]) -> bool {
        self.here().iter().any(|member| member.registry.cancel(process_id, secret))
    }

    /// A node's PostgreSQL server does not answer: nobody is sent there for a while.
    pub(crate) fn server_absent(&self, node: &Node, reason: &str) {
        let until = Instant::now() + ABSENT_FOR;
        let before = self.absent.lock().unwrap_or_else(PoisonError::into_inner).insert(node.id, until);
        // What a member's own state is, its process says.
        if before.is_none() && matches!(node.kind, NodeKind::Remote { .. }) {
            self.known().note(node, false, reason);
        }
    }

    /// Does something with what is known of a node's PostgreSQL server, which is looked at from now on.
    pub(crate) fn with_health<T>(&self, node: NodeId, change: impl FnOnce(&mut Health) -> T) -> T {
        change(self.health.lock().unwrap_or_else(PoisonError::into_inner).entry(node).or_default())
    }

    /// Whether a node's PostgreSQL server is looked at, since a session was sent there once.
    pub(crate) fn is_looked_after(&self, node: NodeId) -> bool {
        self.health.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&node)
    }

    /// What counts of a node's PostgreSQL server is something else than before. A member is up whatever becomes of its
    /// server: only why nobody is sent to that is told.
    pub(crate) fn server_is(&self, node: &Node, up: bool, reason: &str) {
        let mut known = self.known();
        match node.kind {
            NodeKind::Remote { .. } => known.note(node, up, reason),
            NodeKind::Member { .. } => {
                let is_up = known.states.is_up(node.id);
                known.note(node, is_up, reason);
            }
        }
    }

    /// A node's PostgreSQL server has taken a login.
    pub(crate) fn server_present(&self, node: &Node) {
        let known = self.absent.lock().unwrap_or_else(PoisonError::into_inner).remove(&node.id);
        if matches!(node.kind, NodeKind::Remote { .. }) {
            let mut all = self.known();
            if known.is_some() || !all.last.contains_key(&node.id) {
                all.note(node, true, "a session logged in");
            }
        }
    }

    /// Whether sessions can be sent to a node's PostgreSQL server, as far as is known.
    pub(crate) fn takes_sessions(&self, node: &Node) -> bool {
        let absent = self.absent.lock().unwrap_or_else(PoisonError::into_inner).get(&node.id).copied();
        if absent.is_some_and(|until| Instant::now() < until) {
            return false;
        }
        let health = self.health.lock().unwrap_or_else(PoisonError::into_inner);
        if health.get(&node.id).is_some_and(Health::is_down) {
            return false;
        }
        drop(health);
        match node.kind {
            NodeKind::Member { .. } => self.states().is_up(node.id),
            NodeKind::Remote { .. } => true,
        }
    }

    /// Where another process is that has this one's name, while there is one.
    pub(crate) fn displaced_by(&self) -> Option<String> {
        self.displaced.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Another process has this one's name, or has no longer; says whether that is new.
    pub(crate) fn displace(&self, by: Option<String>) -> bool {
        let mut displaced = self.displaced.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = *displaced != by;
        *displaced = by;
        is_new
    }

    /// By what members of other processes are asked, from now on.
    pub(crate) fn ask_by(&self, ask: Arc<AskPeer>) {
        // Whoever comes second is not needed.
        let _ = self.asker.0.set(ask);
    }

    pub(crate) fn asker(&self) -> Option<Arc<AskPeer>> {
        self.asker.0.get().cloned()
    }

    /// A member serves from now on, or does not any more.
    pub(crate) fn changed(&self, node: &Node, up: bool, reason: &str) {
        self.known().note(node, up, reason);
    }

    /// Something is told of members that other processes run.
    pub(crate) fn heard(&self, event: MemberEvent, catalog: &Catalog) {
        let mut known = self.known();
        match event {
            MemberEvent::Joined(member) => {
                // What was shown of the one before goes on to be what is known of the node.
                let before = known.peers.remove(&member.name.to_lowercase());
                let history = before.map(|peer| peer.history).unwrap_or_default();
                known.peers.insert(member.name.to_lowercase(), Peer::new(member, history));
            }
            MemberEvent::Changed { after, .. } => {
                if let Some(peer) = known.peers.get_mut(&after.name.to_lowercase()) {
                    peer.member = after;
                }
            }
            MemberEvent::Left { member, reason } => {
                if let Some(peer) = known.peers.get_mut(&member.name.to_lowercase()) {
                    peer.lease = Lease::Ended(reason);
                }
            }
            MemberEvent::Blind { why } => {
                tracing::warn!(why, "who else is a member is not known until etcd can be reached");
                known.blind = true;
            }
            MemberEvent::Seeing => known.blind = false,
        }
        known.settle(catalog);
    }

    /// Somebody has called a member that another process runs.
    pub(crate) fn reached(&self, process: &str, reach: Reach, catalog: &Catalog) {
        let mut known = self.known();
        if let Some(peer) = known.peers.values_mut().find(|peer| peer.member.process == process) {
            peer.reach = reach;
            known.settle(catalog);
        }
    }

    /// Nodes may have come, or be called otherwise, in this catalog.
    pub(crate) fn followed(&self, catalog: &Catalog) {
        self.known().settle(catalog);
    }

    /// Where the members are that other processes run, whether they are up or not.
    pub(crate) fn peers(&self) -> Vec<PeerPlace> {
        self.known().peers.values().map(Peer::place).collect()
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

impl Known {
    fn note(&mut self, node: &Node, up: bool, reason: &str) {
        let state = if up { "UP" } else { "DOWN" };
        let (name, reason) = (node.name.to_string(), reason.to_owned());
        while self.events.len() >= NODE_EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back(NodeEvent { node: node.id, name, state, time_us: now_us(), reason });
        self.last.insert(node.id, if up { NodeState::Up } else { NodeState::Down });
        self.states = Arc::new(self.last.iter().map(|(node, state)| (*node, *state)).collect());
    }

    /// Shows what the members that other processes run have come to.
    fn settle(&mut self, catalog: &Catalog) {
        let (blind, at) = (self.blind, Instant::now());
        let changed: Vec<(Arc<Node>, bool, String)> = self
            .peers
            .values_mut()
            .filter_map(|peer| {
                let node = catalog.nodes().iter().find(|node| Some(node.id.as_i64()) == peer.member.node)?;
                let now = peer.state(blind);
                let (up, reason) = peer.history.show(now, at)?;
                Some((Arc::clone(node), up, reason))
            })
            .collect();
        for (node, up, reason) in changed {
            tracing::info!(node = %node.name, up, reason, "a member's state has changed");
            self.note(&node, up, &reason);
        }
    }
}
