//! `v_monitor`: state and history (`reference/vertica-sql.md` §7).

use std::net::IpAddr;

use switchyard_catalog::{Node, NodeId};

use super::routing::stage_name;
use super::v_catalog::family;
use super::{Cell, Kind, Rows, RowsError, SystemTable, Visibility, column};
use crate::settings::{configuration_rows, interval};
use crate::snapshot::{DrainProgress, LiveSession, Snapshot};

pub(super) const TABLES: &[SystemTable] = &[
    SystemTable {
        schema: "v_monitor",
        name: "node_states",
        description: "The state changes of nodes, as this member saw them; bounded.",
        columns: &[
            column("event_timestamp", Kind::Timestamptz, "When."),
            column("node_id", Kind::Int, "The node's id."),
            column("node_name", Kind::Varchar, "The node's name then."),
            column("node_state", Kind::Varchar, "The state it went into."),
            column("reason", Kind::Varchar, "Why."),
        ],
        visibility: Visibility::All,
        rows: node_states,
    },
    SystemTable {
        schema: "v_monitor",
        name: "network_interfaces",
        description: "The network interfaces of the member's host; not the objects that CREATE NETWORK INTERFACE makes.",
        columns: &[
            column("node_id", Kind::Int, "The node's id."),
            column("node_name", Kind::Varchar, "The node's name."),
            column("interface", Kind::Varchar, "The interface, for example lo."),
            column("ip_address_family", Kind::Varchar, "ipv4 or ipv6."),
            column("ip_address", Kind::Varchar, "Its address."),
            column("subnet", Kind::Varchar, "The network it is in, without length."),
            column("mask", Kind::Varchar, "The network's mask."),
            column("broadcast_address", Kind::Varchar, "Its broadcast address; empty for IPv6."),
        ],
        visibility: Visibility::All,
        rows: network_interfaces,
    },
    SystemTable {
        schema: "v_monitor",
        name: "sessions",
        description: "The client sessions now; others than the superuser see their own.",
        columns: &[
            column("node_name", Kind::Varchar, "The connection node."),
            column("user_name", Kind::Varchar, "The user."),
            column("client_os_hostname", Kind::Varchar, "As the client tells it."),
            column("client_hostname", Kind::Varchar, "The client's address and port."),
            column("client_pid", Kind::Int, "The client's process, where it tells; else the backend process id."),
            column("login_timestamp", Kind::Timestamp, "When it logged in, in UTC."),
            column("session_id", Kind::Varchar, "What CLOSE_SESSION takes."),
            column("idle_session_timeout", Kind::Varchar, "The limit that holds for it."),
            column("grace_period", Kind::Varchar, "The limit that holds for it."),
            column("client_label", Kind::Varchar, "Set by the client."),
            column("transaction_start", Kind::Timestamp, "When its open transaction began, in UTC."),
            column("transaction_id", Kind::Int, "NULL outside of a transaction."),
            column("transaction_description", Kind::Varchar, "In words."),
            column("statement_start", Kind::Timestamp, "When its running or last statement began, in UTC."),
            column("statement_id", Kind::Int, "How many statements it has run."),
            column("last_statement_duration_us", Kind::Int, "In microseconds."),
            column("current_statement", Kind::Varchar, "What it runs, secrets redacted."),
            column("last_statement", Kind::Varchar, "What it ran before, secrets redacted."),
            column("ssl_state", Kind::Varchar, "None, Server or Mutual."),
            column("authentication_method", Kind::Varchar, "How it proved who it is: trust, hash or tls."),
            column("client_type", Kind::Varchar, "As the client tells it: client_type, or else application_name."),
            column("client_version", Kind::Varchar, "As the client tells it."),
            column("client_os", Kind::Varchar, "As the client tells it."),
            column("client_os_user_name", Kind::Varchar, "As the client tells it."),
            column(
                "client_authentication_name",
                Kind::Varchar,
                "The authentication record that let it in, as it was then called.",
            ),
            column("client_authentication", Kind::Int, "That record's id."),
            column("requested_protocol", Kind::Int, "major << 16 | minor."),
            column("effective_protocol", Kind::Int, "major << 16 | minor."),
            column("external_memory_kb", Kind::Int, "0."),
            column("workload", Kind::Varchar, "The workload in force; empty when none."),
            column("execution_node", Kind::Varchar, "Where its statements run."),
            column("execution_subcluster", Kind::Varchar, "The subcluster of that node."),
        ],
        visibility: Visibility::Own,
        rows: sessions,
    },
    SystemTable {
        schema: "v_monitor",
        name: "user_sessions",
        description: "The client sessions now and before, bounded; others than the superuser see their own.",
        columns: &[
            column("node_name", Kind::Varchar, "The connection node."),
            column("user_name", Kind::Varchar, "The user."),
            column("session_id", Kind::Varchar, "The session."),
            column("transaction_id", Kind::Int, "NULL outside of a transaction."),
            column("statement_id", Kind::Int, "How many statements it has run."),
            column("session_start_timestamp", Kind::Timestamptz, "When it logged in."),
            column("session_end_timestamp", Kind::Timestamptz, "When it ended; NULL while it is open."),
            column("is_active", Kind::Bool, "Whether it is open."),
            column("client_hostname", Kind::Varchar, "The client's address and port."),
            column("client_pid", Kind::Int, "The client's process, where it tells; else the backend process id."),
            column("client_label", Kind::Varchar, "Set by the client."),
            column("ssl_state", Kind::Varchar, "None, Server or Mutual."),
            column("authentication_method", Kind::Varchar, "How it proved who it is: trust, hash or tls."),
            column("client_type", Kind::Varchar, "As the client tells it: client_type, or else application_name."),
            column("client_version", Kind::Varchar, "As the client tells it."),
            column("client_os", Kind::Varchar, "As the client tells it."),
            column("client_os_user_name", Kind::Varchar, "As the client tells it."),
            column("client_os_hostname", Kind::Varchar, "As the client tells it."),
        ],
        visibility: Visibility::Own,
        rows: user_sessions,
    },
    SystemTable {
        schema: "v_monitor",
        name: "current_session",
        description: "The session that asks: one row.",
        columns: &[
            column("node_name", Kind::Varchar, "The connection node."),
            column("user_name", Kind::Varchar, "The user."),
            column("client_hostname", Kind::Varchar, "The client's address and port."),
            column("type", Kind::Int, "1: a client."),
            column("client_pid", Kind::Int, "The client's process, where it tells; else the backend process id."),
            column("login_timestamp", Kind::Timestamp, "When it logged in, in UTC."),
            column("session_id", Kind::Varchar, "What CLOSE_SESSION takes."),
            column("client_label", Kind::Varchar, "Set by the client."),
            column("transaction_start", Kind::Timestamp, "When its open transaction began, in UTC."),
            column("transaction_id", Kind::Int, "NULL outside of a transaction."),
            column("transaction_description", Kind::Varchar, "In words."),
            column("statement_start", Kind::Timestamp, "When its running statement began, in UTC."),
            column("statement_id", Kind::Int, "How many statements it has run."),
            column("last_statement_duration_us", Kind::Int, "In microseconds."),
            column("current_statement", Kind::Varchar, "What it runs, secrets redacted."),
            column("last_statement", Kind::Varchar, "What it ran before, secrets redacted."),
            column("execution_engine_profiling_configuration", Kind::Varchar, "Empty."),
            column("query_profiling_configuration", Kind::Varchar, "Empty."),
            column("session_profiling_configuration", Kind::Varchar, "Empty."),
            column("client_type", Kind::Varchar, "As the client tells it: client_type, or else application_name."),
            column("client_version", Kind::Varchar, "As the client tells it."),
            column("client_os", Kind::Varchar, "As the client tells it."),
            column("client_os_user_name", Kind::Varchar, "As the client tells it."),
            column("client_os_hostname", Kind::Varchar, "As the client tells it."),
            column("requested_protocol", Kind::Int, "major << 16 | minor."),
            column("effective_protocol", Kind::Int, "major << 16 | minor."),
        ],
        visibility: Visibility::Own,
        rows: current_session,
    },
    SystemTable {
        schema: "v_monitor",
        name: "configuration_parameters",
        description: "The configuration parameters and where their values come from.",
        columns: &[
            column("node_name", Kind::Varchar, "A node, or ALL."),
            column("parameter_name", Kind::Varchar, "The parameter."),
            column("current_value", Kind::Varchar, "The value in force; masked for others than the superuser."),
            column("restart_value", Kind::Varchar, "The value after a restart."),
            column("database_value", Kind::Varchar, "The value of the database."),
            column("default_value", Kind::Varchar, "The value when nothing is set."),
            column("current_level", Kind::Varchar, "NODE, DATABASE, SESSION or DEFAULT."),
            column("restart_level", Kind::Varchar, "The level after a restart."),
            column("is_mismatch", Kind::Bool, "Whether current and restart value differ."),
            column("groups", Kind::Varchar, "Empty."),
            column("allowed_levels", Kind::Varchar, "Where it can be set."),
            column("superuser_only", Kind::Bool, "Whether only the superuser sees and sets it."),
            column("change_under_support_guidance", Kind::Bool, "Always false."),
            column("change_requires_restart", Kind::Bool, "Whether a change counts only after a restart."),
            column("description", Kind::Varchar, "A sentence."),
        ],
        visibility: Visibility::All,
        rows: configuration_parameters,
    },
    SystemTable {
        schema: "v_monitor",
        name: "draining_status",
        description: "Which nodes are draining.",
        columns: &[
            column("node_name", Kind::Varchar, "The node."),
            column("subcluster_name", Kind::Varchar, "Its subcluster."),
            column("is_draining", Kind::Bool, "Whether new connections go elsewhere."),
            column("num_client_sessions", Kind::Int, "How many client sessions it has."),
            column("oldest_session_id", Kind::Varchar, "The oldest of them."),
            column(
                "drain_state",
                Kind::Varchar,
                "draining; drained, when the sessions that it had have ended; overdue, when they have not in the time named.",
            ),
            column("num_sessions_at_start", Kind::Int, "How many sessions it had when it began to drain."),
            column("num_sessions_left", Kind::Int, "How many of them have not ended."),
            column("drain_within", Kind::Varchar, "How long they may take."),
            column("time_left_s", Kind::Int, "How much of that is left, in seconds."),
            column("then_close", Kind::Bool, "Whether those that take longer are closed."),
        ],
        visibility: Visibility::All,
        rows: draining_status,
    },
    SystemTable {
        schema: "v_monitor",
        name: "load_balance_decisions",
        description: "Where the last connections that asked for load balancing were sent by the members of this process.",
        columns: &[
            column("timestamp", Kind::Timestamptz, "When."),
            column("node_name", Kind::Varchar, "The node that was asked."),
            column("client_address", Kind::Varchar, "The client's address and port."),
            column("rule", Kind::Varchar, "The routing rule that applied."),
            column("group_name", Kind::Varchar, "Its load balance group."),
            column("stage", Kind::Varchar, "What decided: routing rule, classic policy, interior rule or none."),
            column("target_address", Kind::Varchar, "Where the client was sent."),
            column("target_port", Kind::Int, "The port there."),
            column("outcome", Kind::Varchar, "redirect, proxy, own node or stay."),
        ],
        visibility: Visibility::Superuser,
        rows: load_balance_decisions,
    },
    SystemTable {
        schema: "v_monitor",
        name: "workload_routing_decisions",
        description: "The workloads that began or ceased to apply to sessions, bounded; others than the superuser see their own.",
        columns: &[
            column("timestamp", Kind::Timestamptz, "When."),
            column("session_id", Kind::Varchar, "The session."),
            column("user_name", Kind::Varchar, "The user."),
            column("workload", Kind::Varchar, "The workload; empty when none applies any more."),
            column("reason", Kind::Varchar, "Why."),
            column("subcluster_name", Kind::Varchar, "The subcluster of the execution node."),
            column(
                "execution_node",
                Kind::Varchar,
                "Where the session's statements run: in the console, the connection node.",
            ),
        ],
        visibility: Visibility::Own,
        rows: workload_routing_decisions,
    },
];

/// The name of a node.
pub(super) fn node_name(snapshot: &Snapshot, node: Option<NodeId>) -> Cell<'_> {
    node.and_then(|id| snapshot.catalog.nodes().find(id)).map(|node| node.name.as_str()).into()
}

/// The name of a node's subcluster.
fn subcluster_name(snapshot: &Snapshot, node: Option<NodeId>) -> Cell<'_> {
    let node = node.and_then(|id| snapshot.catalog.nodes().find(id));
    node.and_then(|node| snapshot.catalog.subclusters().find(node.subcluster)).map(|found| found.name.as_str()).into()
}

fn time<'a>(value: Option<i64>) -> Cell<'a> {
    value.map_or(Cell::Null, Cell::Time)
}

/// The sessions that the asking session may see.
pub(super) fn visible(snapshot: &Snapshot) -> impl Iterator<Item = &LiveSession> {
    let superuser = snapshot.superuser();
    let user = snapshot.catalog.users().find(snapshot.session.user_id);
    snapshot
        .live
        .sessions
        .iter()
        .filter(move |session| superuser || user.is_some_and(|user| user.name.as_str() == session.user))
}

fn node_states(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    for event in &snapshot.live.node_events {
        rows.push([
            Cell::Time(event.time_us),
            event.node.as_i64().into(),
            event.name.as_str().into(),
            event.state.into(),
            event.reason.as_str().into(),
        ])?;
    }
    Ok(())
}

fn network_interfaces(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    for interface in &snapshot.live.interfaces {
        let address = interface.address.to_string();
        let address_family = family(&address);
        let (network, mask, broadcast) = match interface.address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(interface.prefix_length.min(32))).unwrap_or(0);
                let network = u32::from(address) & mask;
                let text = |bits: u32| std::net::Ipv4Addr::from(bits).to_string();
                (text(network), text(mask), text(network | !mask))
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(interface.prefix_length.min(128))).unwrap_or(0);
                let text = |bits: u128| std::net::Ipv6Addr::from(bits).to_string();
                (text(u128::from(address) & mask), text(mask), String::new())
            }
        };
        rows.push([
            snapshot.live.node.map(NodeId::as_i64).into(),
            node_name(snapshot, snapshot.live.node),
            interface.name.as_str().into(),
            address_family.into(),
            address.into(),
            network.into(),
            mask.into(),
            broadcast.into(),
        ])?;
    }
    Ok(())
}

fn transaction_id<'a>(session: &LiveSession) -> Cell<'a> {
    if session.transaction_start_us.is_some() { session.process_id.into() } else { Cell::Null }
}

fn sessions(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    for session in visible(snapshot) {
        rows.push([
            node_name(snapshot, session.node),
            session.user.as_str().into(),
            session.told("client_os_hostname").into(),
            session.client.as_str().into(),
            session.client_pid().into(),
            Cell::Time(session.login_us),
            session.session_id.as_str().into(),
            session.idle_session_timeout.as_str().into(),
            session.grace_period.as_str().into(),
            session.label.as_str().into(),
            time(session.transaction_start_us),
            transaction_id(session),
            session.transaction_start_us.map(|_| "user transaction").into(),
            time(session.statement_start_us),
            session.statement_number.into(),
            session.last_duration_us.into(),
            session.current_statement.as_deref().into(),
            session.last_statement.as_deref().into(),
            session.ssl_state().into(),
            session.authentication_method.as_str().into(),
            session.client_type().into(),
            session.told("client_version").into(),
            session.told("client_os").into(),
            session.told("client_os_user_name").into(),
            session.authentication_name.as_str().into(),
            session.authentication_id.into(),
            session.protocol_requested.into(),
            session.protocol.into(),
            0i64.into(),
            session.workload.as_str().into(),
            node_name(snapshot, session.node),
            subcluster_name(snapshot, session.node),
        ])?;
    }
    Ok(())
}

fn user_sessions(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    let superuser = snapshot.superuser();
    let user = snapshot.catalog.users().find(snapshot.session.user_id);
    let own = |session: &LiveSession| superuser || user.is_some_and(|user| user.name.as_str() == session.user);
    let ended = snapshot.live.ended_sessions.iter().filter(|(session, _)| own(session));
    let ended = ended.map(|(session, end)| (session, Some(*end)));
    for (session, end) in ended.chain(visible(snapshot).map(|session| (session, None))) {
        rows.push([
            node_name(snapshot, session.node),
            session.user.as_str().into(),
            session.session_id.as_str().into(),
            transaction_id(session),
            session.statement_number.into(),
            Cell::Time(session.login_us),
            time(end),
            end.is_none().into(),
            session.client.as_str().into(),
            session.client_pid().into(),
            session.label.as_str().into(),
            session.ssl_state().into(),
            session.authentication_method.as_str().into(),
            session.client_type().into(),
            session.told("client_version").into(),
            session.told("client_os").into(),
            session.told("client_os_user_name").into(),
            session.told("client_os_hostname").into(),
        ])?;
    }
    Ok(())
}

fn current_session(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    let id = &snapshot.session.session_id;
    for session in snapshot.live.sessions.iter().filter(|session| session.session_id == *id) {
        rows.push([
            node_name(snapshot, session.node),
            session.user.as_str().into(),
            session.client.as_str().into(),
            1i64.into(),
            session.client_pid().into(),
            Cell::Time(session.login_us),
            session.session_id.as_str().into(),
            session.label.as_str().into(),
            time(session.transaction_start_us),
            transaction_id(session),
            session.transaction_start_us.map(|_| "user transaction").into(),
            time(session.statement_start_us),
            session.statement_number.into(),
            session.last_duration_us.into(),
            session.current_statement.as_deref().into(),
            session.last_statement.as_deref().into(),
            "".into(),
            "".into(),
            "".into(),
            session.client_type().into(),
            session.told("client_version").into(),
            session.told("client_os").into(),
            session.told("client_os_user_name").into(),
            session.told("client_os_hostname").into(),
            session.protocol_requested.into(),
            session.protocol.into(),
        ])?;
    }
    Ok(())
}

fn configuration_parameters(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    for row in configuration_rows(&snapshot.catalog, &snapshot.session) {
        rows.push([
            row.node_name.into(),
            row.parameter_name.into(),
            row.current_value.into(),
            row.restart_value.into(),
            row.database_value.into(),
            row.default_value.into(),
            row.current_level.into(),
            row.restart_level.into(),
            row.is_mismatch.into(),
            row.groups.into(),
            row.allowed_levels.into(),
            row.superuser_only.into(),
            row.change_under_support_guidance.into(),
            row.change_requires_restart.into(),
            row.description.into(),
        ])?;
    }
    Ok(())
}

/// The sessions of a node's member.
pub(super) fn sessions_of(snapshot: &Snapshot, node: NodeId) -> impl Iterator<Item = &LiveSession> {
    snapshot.live.sessions.iter().filter(move |session| session.node == Some(node))
}

fn draining_status(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    for node in snapshot.catalog.nodes().iter() {
        let oldest = sessions_of(snapshot, node.id).min_by_key(|session| session.login_us);
        let progress = snapshot.live.drains.iter().find(|progress| progress.node == node.id && node.draining);
        let time_left_s = progress.and_then(|progress| progress.time_left_ms).map(|ms| ms.div_ceil(1_000));
        rows.push([
            node.name.as_str().into(),
            snapshot.catalog.subclusters().find(node.subcluster).map(|found| found.name.as_str()).into(),
            node.draining.into(),
            sessions_of(snapshot, node.id).count().into(),
            oldest.map(|session| session.session_id.as_str()).into(),
            drain_state(node, progress).into(),
            progress.map(|progress| progress.sessions_at_start).into(),
            progress.map(|progress| progress.sessions_left).into(),
            node.drain.map(|terms| interval::show(terms.within_ms.saturating_mul(1_000))).into(),
            time_left_s.into(),
            node.drain.map(|terms| terms.then_close).into(),
        ])?;
    }
    Ok(())
}

/// What its member does not say, or a node without a member, is not known to be over.
fn drain_state(node: &Node, progress: Option<&DrainProgress>) -> Option<&'static str> {
    node.draining.then(|| match progress {
        Some(progress) if progress.sessions_left == 0 => "drained",
        Some(progress) if progress.time_left_ms == Some(0) => "overdue",
        _ => "draining",
    })
}

fn load_balance_decisions(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    for routed in &snapshot.live.routed {
        let target = routed.decision.target();
        rows.push([
            Cell::Time(routed.time_us),
            routed.member.as_str().into(),
            routed.client.to_string().into(),
            routed.rule.as_deref().into(),
            routed.group.as_deref().into(),
            stage_name(routed.decision.stage).into(),
            target.map(|target| target.host.to_string()).into(),
            target.map(|target| target.port).into(),
            routed.outcome().0.into(),
        ])?;
    }
    Ok(())
}

fn workload_routing_decisions(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    let superuser = snapshot.superuser();
    let own = snapshot.session.user_name(&snapshot.catalog);
    for decision in snapshot.live.workload_decisions.iter().filter(|decision| superuser || decision.user == own) {
        rows.push([
            Cell::Time(decision.time_us),
            decision.session_id.as_str().into(),
            decision.user.as_str().into(),
            decision.workload.as_str().into(),
            decision.reason.into(),
            subcluster_name(snapshot, decision.node),
            node_name(snapshot, decision.node),
        ])?;
    }
    Ok(())
}
