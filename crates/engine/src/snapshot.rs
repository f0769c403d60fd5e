//! What a query sees: one catalog version and the live state, fixed when the statement starts.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use switchyard_catalog::{Catalog, NodeId};

use crate::session_state::SessionState;

/// One commit or refusal, as `switchyard.catalog_history` shows it.
#[derive(Debug, Clone)]
pub struct HistoryRow {
    /// The version made, or refused on.
    pub version: u64,
    /// Microseconds since 1970-01-01 UTC.
    pub time_us: i64,
    /// The user.
    pub user: String,
    /// The client's address and port.
    pub client: String,
    /// The statement, secrets redacted.
    pub statement: String,
    /// `committed`, or the SQLSTATE and message of the refusal.
    pub outcome: String,
}

/// One connected client, as `SESSIONS` shows it.
#[derive(Debug, Clone)]
pub struct LiveSession {
    /// `host-pid:0xN`.
    pub session_id: String,
    /// Backend process id.
    pub process_id: i64,
    /// The user.
    pub user: String,
    /// `ip:port`.
    pub client: String,
    /// Microseconds since 1970-01-01 UTC.
    pub login_us: i64,
    /// Set by the client.
    pub label: String,
    /// `application_name`.
    pub application: String,
    /// When the open transaction began.
    pub transaction_start_us: Option<i64>,
    /// When the running or last statement began.
    pub statement_start_us: Option<i64>,
    /// How many statements were run.
    pub statement_number: i64,
    /// The running statement, secrets redacted.
    pub current_statement: Option<String>,
    /// The one before, secrets redacted.
    pub last_statement: Option<String>,
    /// How long the last one took.
    pub last_duration_us: Option<i64>,
    /// How the client proved who it is.
    pub authentication_method: String,
    /// The record that let it in.
    pub authentication_name: String,
    /// `major << 16 | minor`.
    pub protocol: i64,
    /// The workload in force; empty when none.
    pub workload: String,
    /// The parameters of the startup packet, in order.
    pub startup: Arc<[(String, String)]>,
}

/// A login that failed.
#[derive(Debug, Clone)]
pub struct LoginFailure {
    /// Microseconds since 1970-01-01 UTC.
    pub time_us: i64,
    /// The client's address and port.
    pub client: String,
    /// Why, as the client was told.
    pub reason: String,
}

/// A node's state as the members see it.
#[derive(Debug, Clone)]
pub struct NodeEvent {
    /// The node.
    pub node: NodeId,
    /// Its name then.
    pub name: String,
    /// `UP`, `DOWN`, ...
    pub state: &'static str,
    /// Microseconds since 1970-01-01 UTC.
    pub time_us: i64,
    /// Why.
    pub reason: String,
}

/// A network interface of the host.
#[derive(Debug, Clone)]
pub struct HostInterface {
    /// Its name, for example `lo`.
    pub name: String,
    /// Its address.
    pub address: IpAddr,
    /// Bits of the network.
    pub prefix_length: u8,
}

/// What is not in the catalog: filled by the member that answers.
#[derive(Debug, Clone, Default)]
pub struct Live {
    /// The answering member's node.
    pub node: Option<NodeId>,
    /// When the member started, in microseconds since 1970-01-01 UTC.
    pub start_us: i64,
    /// All sessions.
    pub sessions: Vec<LiveSession>,
    /// Sessions that ended, the newest last; bounded.
    pub ended_sessions: Vec<(LiveSession, i64)>,
    /// Logins that failed, the newest last; bounded.
    pub login_failures: Vec<LoginFailure>,
    /// State changes, the newest last; bounded.
    pub node_events: Vec<NodeEvent>,
    /// The host's interfaces.
    pub interfaces: Vec<HostInterface>,
    /// The program's version.
    pub build: String,
}

/// All of it.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The catalog, with the session's own uncommitted changes.
    pub catalog: Arc<Catalog>,
    /// The rest.
    pub live: Arc<Live>,
    /// The session that asks.
    pub session: Arc<SessionState>,
    /// Filled when the statement reads `catalog_history`.
    pub history: Arc<Vec<HistoryRow>>,
    /// Filled with the versions that the statement's `catalog_at` calls name.
    pub versions: Arc<BTreeMap<u64, Arc<Catalog>>>,
    /// Microseconds since 1970-01-01 UTC, when the statement (or its transaction) began.
    pub now_us: i64,
}

impl Snapshot {
    /// Whether the session's user is a superuser.
    pub fn superuser(&self) -> bool {
        self.catalog.users().find(self.session.user_id).is_some_and(|user| user.superuser)
    }

    /// The last known state of a node.
    pub fn node_state(&self, node: NodeId) -> &'static str {
        self.live.node_events.iter().rev().find(|event| event.node == node).map_or("DOWN", |event| event.state)
    }
}
