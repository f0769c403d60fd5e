//! What a query sees: one catalog version and the live state, fixed when the statement starts.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};
use switchyard_catalog::{Catalog, Name, NodeId, NodeState, NodeStates, RuleCounters, Turns};

use crate::effects::Effects;
use crate::locks::AdvisoryLocks;
use crate::routed::RoutedConnection;
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

/// How far a member is that drains, as it says itself: the time is measured by its own clock.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DrainProgress {
    /// Its node.
    pub node: NodeId,
    /// How many sessions it had when it began.
    pub sessions_at_start: usize,
    /// How many of them it still has.
    pub sessions_left: usize,
    /// How long they may go on, in milliseconds; none where no time was named.
    pub time_left_ms: Option<u64>,
}

/// One connected client, as `SESSIONS` shows it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LiveSession {
    /// The node of the member that it is connected to.
    pub node: Option<NodeId>,
    /// `host-pid:0xN`.
    pub session_id: String,
    /// Backend process id.
    pub process_id: i64,
    /// The user.
    pub user: String,
    /// `ip:port`.
    pub client: String,
    /// Where the client has called, where that is known.
    pub local: Option<SocketAddr>,
    /// The database named at startup; none when none was.
    pub database: Option<String>,
    /// Since when it does what it does.
    pub state_since_us: i64,
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
    /// The record that let it in, as it was then called.
    pub authentication_name: String,
    /// That record's id.
    pub authentication_id: Option<i64>,
    /// What is known of its TLS; none without it.
    pub tls: Option<LiveTls>,
    /// `major << 16 | minor`.
    pub protocol: i64,
    /// The same, as the client asked for.
    pub protocol_requested: i64,
    /// The workload in force; empty when none.
    pub workload: String,
    /// How long it may wait for its client, in words.
    pub idle_session_timeout: String,
    /// How long its socket may block on the client, in words.
    pub grace_period: String,
    /// The parameters of the startup packet, in order.
    pub startup: Arc<[(String, String)]>,
}

/// The TLS of a session.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LiveTls {
    /// For example `TLSv1.3`.
    pub version: String,
    /// As IANA calls it.
    pub cipher: String,
    /// The client's certificate; none when it showed none.
    pub client: Option<ClientCertificate>,
}

/// A client's certificate, verified.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ClientCertificate {
    /// The subject, the most specific part first.
    pub subject: String,
    /// The authority that signed it.
    pub issuer: String,
    /// The serial number in hex.
    pub serial: String,
}

impl LiveSession {
    /// A parameter of the startup packet; empty when it was not given.
    pub(crate) fn told(&self, parameter: &str) -> &str {
        self.startup.iter().find(|(name, _)| name == parameter).map_or("", |(_, value)| value.as_str())
    }

    /// The process of the client, as Vertica's clients tell; of others, the one that serves it.
    pub(crate) fn client_pid(&self) -> i64 {
        self.told("client_pid").parse().unwrap_or(self.process_id)
    }

    /// What the client calls itself: most of PostgreSQL's by `application_name`.
    pub(crate) fn client_type(&self) -> &str {
        match self.told("client_type") {
            "" => &self.application,
            told => told,
        }
    }

    /// As `SESSIONS.SSL_STATE` has it.
    pub(crate) fn ssl_state(&self) -> &'static str {
        match &self.tls {
            None => "None",
            Some(LiveTls { client: None, .. }) => "Server",
            Some(LiveTls { client: Some(_), .. }) => "Mutual",
        }
    }
}

/// The member's certificate, as `switchyard.tls_certificates` shows it.
#[derive(Debug, Clone)]
pub struct ServerCertificate {
    /// Its file.
    pub path: String,
    /// The subject, the most specific part first.
    pub subject: String,
    /// The authority that signed it.
    pub issuer: String,
    /// The serial number in hex.
    pub serial: String,
    /// Common and alternative names.
    pub names: Vec<String>,
    /// When it begins to hold, in microseconds since 1970-01-01 UTC.
    pub not_before_us: i64,
    /// When it ceases to hold, in microseconds since 1970-01-01 UTC.
    pub not_after_us: i64,
    /// The file of the authorities for client certificates.
    pub client_ca: Option<String>,
    /// When it was loaded, in microseconds since 1970-01-01 UTC.
    pub loaded_us: i64,
    /// Why the files as they are now were not loaded.
    pub failure: Option<String>,
}

/// A statement that has ended, as `hologres.hg_query_log` shows it.
#[derive(Debug, Clone)]
pub struct LoggedStatement {
    /// Unique on this member, rising.
    pub number: u64,
    /// The user.
    pub user: String,
    /// Why it failed, if it did.
    pub failure: Option<String>,
    /// The command tag, or the word it begins with when it failed.
    pub command_tag: String,
    /// When it began, in microseconds since 1970-01-01 UTC.
    pub start_us: i64,
    /// How long it took until it was planned and its first row could be read.
    pub start_cost_us: i64,
    /// How long it took altogether.
    pub duration_us: i64,
    /// Its text, secrets redacted, cut where it is too long.
    pub statement: String,
    /// How many rows were sent, if it gives rows.
    pub result_rows: Option<u64>,
    /// The system tables it read, qualified.
    pub tables_read: Arc<[String]>,
    /// Backend process id.
    pub process_id: i32,
    /// `application_name`.
    pub application: String,
    /// The client's address; none on a Unix socket.
    pub client: Option<IpAddr>,
    /// `host-pid:0xN`.
    pub session_id: String,
    /// When the client logged in, in microseconds since 1970-01-01 UTC.
    pub session_start_us: i64,
    /// Which of the session's statements it was.
    pub statement_number: i64,
}

/// A workload that began, or ceased, to apply to a session.
#[derive(Debug, Clone)]
pub struct WorkloadDecision {
    /// The node of the session's member.
    pub node: Option<NodeId>,
    /// Microseconds since 1970-01-01 UTC.
    pub time_us: i64,
    /// `host-pid:0xN`.
    pub session_id: String,
    /// The user.
    pub user: String,
    /// The workload; empty when none applies any more.
    pub workload: String,
    /// Why.
    pub reason: &'static str,
}

/// A setting of the process, as it was started.
#[derive(Debug, Clone)]
pub struct ProcessSetting {
    /// As the file names it.
    pub name: &'static str,
    /// What holds; none for what is absent and for secrets.
    pub value: Option<String>,
    /// What holds when nothing is set, in words where there is no value.
    pub default: String,
    /// flag, variable, file or default.
    pub source: &'static str,
    /// Where it can be set.
    pub allowed_levels: String,
    /// A number, or a text.
    pub integer: bool,
    /// Sentences.
    pub description: &'static str,
}

/// A cursor or portal of the session, as `pg_cursors` shows it.
#[derive(Debug, Clone)]
pub struct CursorRow {
    /// Its name; empty for the portal without one.
    pub name: String,
    /// The statement it was made by, secrets redacted.
    pub statement: String,
    /// WITH HOLD.
    pub holds: bool,
    /// BINARY.
    pub binary: bool,
    /// Whether it can go back.
    pub scrolls: bool,
    /// When it was made, in microseconds since 1970-01-01 UTC.
    pub created_us: i64,
}

/// A prepared statement of the session, as `pg_prepared_statements` shows it.
#[derive(Debug, Clone)]
pub struct PreparedRow {
    /// Its name.
    pub name: String,
    /// The statement it was made by, secrets redacted.
    pub statement: String,
    /// When it was made, in microseconds since 1970-01-01 UTC.
    pub created_us: i64,
    /// The types of its parameters.
    pub parameters: Vec<u32>,
    /// Whether PREPARE made it, and not a message of the protocol.
    pub from_sql: bool,
    /// How often it was executed.
    pub executions: u64,
}

/// A login that failed.
#[derive(Debug, Clone)]
pub struct LoginFailure {
    /// The node of the member that refused.
    pub node: Option<NodeId>,
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

/// A part of the live state that is read when a query first looks at it: most look at none of them.
#[derive(Clone)]
pub struct Lazy<T>(Arc<LazyLock<T, Box<dyn FnOnce() -> T + Send>>>);

impl<T: Send + Sync + 'static> Lazy<T> {
    /// What is known already.
    pub fn known(value: T) -> Self {
        Self::new(move || value)
    }
}

impl<T> Lazy<T> {
    /// What this gives when it is first called for.
    pub fn new(read: impl FnOnce() -> T + Send + 'static) -> Self {
        Self(Arc::new(LazyLock::new(Box::new(read))))
    }
}

impl<T: Default + 'static> Default for Lazy<T> {
    fn default() -> Self {
        Self::new(T::default)
    }
}

impl<T> Deref for Lazy<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> fmt::Debug for Lazy<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lazy")
    }
}

impl<'a, T> IntoIterator for &'a Lazy<Vec<T>> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// What the sessions of this member have done since it started, and how much of it a second lately.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Transactions; a statement outside of one counts as one.
    pub transactions: u64,
    /// Statements.
    pub statements: u64,
    /// Bytes that clients sent.
    pub received_bytes: u64,
    /// Bytes that clients were sent.
    pub sent_bytes: u64,
    /// How long the transactions took, in microseconds.
    pub transaction_us: u64,
    /// How long the statements took, in microseconds.
    pub statement_us: u64,
}

/// The logins and the clients' work, as pgbouncer's SHOW tells of them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Work {
    /// Since the start.
    pub total: Traffic,
    /// A second in the last period; times are those of one transaction or statement.
    pub average: Traffic,
    /// Logins under way.
    pub logins: usize,
}

/// What is not in the catalog: filled by the member that answers.
#[derive(Debug, Clone, Default)]
pub struct Live {
    /// The answering member's node.
    pub node: Option<NodeId>,
    /// When the member started, in microseconds since 1970-01-01 UTC.
    pub start_us: i64,
    /// All sessions of the members that the process runs.
    pub sessions: Lazy<Vec<LiveSession>>,
    /// Sessions that ended, the newest last; bounded.
    pub ended_sessions: Lazy<Vec<(LiveSession, i64)>>,
    /// How far the members are that drain; filled when the statement reads tables of sessions.
    pub drains: Vec<DrainProgress>,
    /// Logins that failed, the newest last; bounded.
    pub login_failures: Lazy<Vec<LoginFailure>>,
    /// State changes, the newest last; bounded.
    pub node_events: Vec<NodeEvent>,
    /// Whose turn it is in each load balance group.
    pub turns: Arc<Turns>,
    /// How often each routing rule decided.
    pub rule_counters: Arc<RuleCounters>,
    /// Connections that a decision was made for, the newest last; bounded.
    pub routed: Lazy<Vec<Arc<RoutedConnection>>>,
    /// The host's interfaces.
    pub interfaces: Lazy<Vec<HostInterface>>,
    /// Workloads that began or ceased to apply, the newest last; bounded.
    pub workload_decisions: Lazy<Vec<WorkloadDecision>>,
    /// What clients have done.
    pub work: Lazy<Work>,
    /// How the process was started.
    pub process_settings: Arc<[ProcessSetting]>,
    /// The certificate shown to clients; none without TLS.
    pub certificate: Option<ServerCertificate>,
    /// The cursors of the session that asks; filled when the statement reads `pg_cursors`.
    pub cursors: Arc<[CursorRow]>,
    /// Its prepared statements; filled when the statement reads `pg_prepared_statements`.
    pub prepared: Arc<[PreparedRow]>,
    /// The advisory locks of the member.
    pub locks: Arc<AdvisoryLocks>,
    /// What functions of the session's queries have still to do.
    pub effects: Arc<Effects>,
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
    /// Filled when the statement reads `hg_query_log`.
    pub query_log: Arc<Vec<Arc<LoggedStatement>>>,
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

    /// Whether the session's user sees what all others do: a superuser, or one with PostgreSQL's role for that.
    pub fn sees_all_statements(&self) -> bool {
        let role = Name::parse("pg_read_all_stats").ok();
        let role = role.and_then(|name| self.catalog.roles().named(&name).map(|role| role.id));
        let granted = || self.catalog.granted_roles(self.session.user_id);
        self.superuser() || role.is_some_and(|role| granted().contains_key(&role))
    }

    /// The last known states of all nodes.
    pub fn node_states(&self) -> NodeStates {
        node_states(&self.live.node_events)
    }

    /// The last known state of a node.
    pub fn node_state(&self, node: NodeId) -> &'static str {
        self.live.node_events.iter().rev().find(|event| event.node == node).map_or("DOWN", |event| event.state)
    }
}

/// The states that events come to. Who is not up gets no connections.
pub fn node_states<'a>(events: impl IntoIterator<Item = &'a NodeEvent>) -> NodeStates {
    let state = |event: &NodeEvent| if event.state == "UP" { NodeState::Up } else { NodeState::Down };
    events.into_iter().map(|event| (event.node, state(event))).collect()
}
