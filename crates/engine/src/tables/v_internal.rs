//! `v_internal`: what drivers' own tests look at (`reference/vertica-sql.md` §7, Data collector).

use super::v_monitor::{node_name, sessions_of, visible};
use super::{Cell, Column, Kind, Rows, RowsError, SystemTable, Visibility, column};
use crate::snapshot::{LiveSession, Snapshot};

const SESSION_START: &[Column] = &[
    column("time", Kind::Timestamptz, "When."),
    column("node_name", Kind::Varchar, "The connection node."),
    column("session_id", Kind::Varchar, "The session."),
    column("user_name", Kind::Varchar, "The user."),
    column("client_hostname", Kind::Varchar, "The client's address and port."),
    column("client_pid", Kind::Int, "The client's process, where it tells; else the backend process id."),
    column("client_label", Kind::Varchar, "Set by the client."),
    column("authentication_method", Kind::Varchar, "How it proved who it is."),
    column("client_type", Kind::Varchar, "As the client tells it: client_type, or else application_name."),
    column("client_version", Kind::Varchar, "As the client tells it."),
    column("client_os", Kind::Varchar, "As the client tells it."),
    column("client_os_user_name", Kind::Varchar, "As the client tells it."),
    column("client_os_hostname", Kind::Varchar, "As the client tells it."),
];

pub(super) const TABLES: &[SystemTable] = &[
    SystemTable {
        schema: "v_internal",
        name: "dc_session_starts",
        description: "The logins, bounded; others than the superuser see their own.",
        columns: SESSION_START,
        visibility: Visibility::Own,
        rows: session_starts,
    },
    SystemTable {
        schema: "v_internal",
        name: "dc_session_ends",
        description: "The ends of sessions, bounded; others than the superuser see their own.",
        columns: SESSION_START,
        visibility: Visibility::Own,
        rows: session_ends,
    },
    SystemTable {
        schema: "v_internal",
        name: "dc_client_server_messages",
        description: "What clients sent at startup, a row a parameter; others than the superuser see their own.",
        columns: &[
            column("time", Kind::Timestamptz, "When the client had logged in."),
            column("node_name", Kind::Varchar, "The connection node."),
            column("session_id", Kind::Varchar, "The session."),
            column("user_name", Kind::Varchar, "The user."),
            column("message_type", Kind::Varchar, "^+: the startup packet."),
            column("contents", Kind::Varchar, "The parameter and its value: name: value."),
        ],
        visibility: Visibility::Own,
        rows: client_server_messages,
    },
    SystemTable {
        schema: "v_internal",
        name: "dc_login_failures",
        description: "The logins that failed, bounded.",
        columns: &[
            column("time", Kind::Timestamptz, "When."),
            column("node_name", Kind::Varchar, "The connection node."),
            column("client_hostname", Kind::Varchar, "The client's address and port."),
            column("reason", Kind::Varchar, "Why, as the client was told."),
        ],
        visibility: Visibility::Superuser,
        rows: login_failures,
    },
    SystemTable {
        schema: "v_internal",
        name: "dc_startups",
        description: "When this member started.",
        columns: &[
            column("time", Kind::Timestamptz, "When."),
            column("node_name", Kind::Varchar, "The member's node."),
            column("version", Kind::Varchar, "The program and its version."),
        ],
        visibility: Visibility::All,
        rows: startups,
    },
    SystemTable {
        schema: "v_internal",
        name: "vs_client_connections",
        description: "How many clients each node has.",
        columns: &[
            column("node_name", Kind::Varchar, "The node."),
            column("user_sessions", Kind::Int, "How many client sessions."),
            column("paused_sessions", Kind::Int, "0."),
        ],
        visibility: Visibility::All,
        rows: client_connections,
    },
    SystemTable {
        schema: "v_internal",
        name: "vs_sessions",
        description: "The client sessions now, in short; others than the superuser see their own.",
        columns: &[
            column("node_name", Kind::Varchar, "The connection node."),
            column("user_name", Kind::Varchar, "The user."),
            column("session_id", Kind::Varchar, "What CLOSE_SESSION takes."),
            column("client_hostname", Kind::Varchar, "The client's address and port."),
            column("client_pid", Kind::Int, "The client's process, where it tells; else the backend process id."),
            column("login_timestamp", Kind::Timestamp, "When it logged in, in UTC."),
            column("client_label", Kind::Varchar, "Set by the client."),
            column("is_paused", Kind::Bool, "Always false: a drain pauses no session."),
        ],
        visibility: Visibility::Own,
        rows: vs_sessions,
    },
];

fn push(snapshot: &Snapshot, rows: &mut Rows, session: &LiveSession, time_us: i64) -> Result<(), RowsError> {
    rows.push([
        Cell::Time(time_us),
        node_name(snapshot, session.node),
        session.session_id.as_str().into(),
        session.user.as_str().into(),
        session.client.as_str().into(),
        session.client_pid().into(),
        session.label.as_str().into(),
        session.authentication_method.as_str().into(),
        session.client_type().into(),
        session.told("client_version").into(),
        session.told("client_os").into(),
        session.told("client_os_user_name").into(),
        session.told("client_os_hostname").into(),
    ])
}

/// The ended sessions that the asking session may see, with their ends.
fn visible_ended(snapshot: &Snapshot) -> impl Iterator<Item = &(LiveSession, i64)> {
    let superuser = snapshot.superuser();
    let user = snapshot.catalog.users().find(snapshot.session.user_id);
    let own = move |name: &str| superuser || user.is_some_and(|user| user.name.as_str() == name);
    snapshot.live.ended_sessions.iter().filter(move |(session, _)| own(&session.user))
}

fn session_starts(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    let ended = visible_ended(snapshot).map(|(session, _)| session);
    for session in ended.chain(visible(snapshot)) {
        push(snapshot, rows, session, session.login_us)?;
    }
    Ok(())
}

fn session_ends(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    for (session, end) in visible_ended(snapshot) {
        push(snapshot, rows, session, *end)?;
    }
    Ok(())
}

fn client_server_messages(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    let ended = visible_ended(snapshot).map(|(session, _)| session);
    for session in ended.chain(visible(snapshot)) {
        for (name, value) in session.startup.iter() {
            rows.push([
                Cell::Time(session.login_us),
                node_name(snapshot, session.node),
                session.session_id.as_str().into(),
                session.user.as_str().into(),
                "^+".into(),
                format!("{name}: {value}").into(),
            ])?;
        }
    }
    Ok(())
}

fn login_failures(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    for failure in &snapshot.live.login_failures {
        rows.push([
            Cell::Time(failure.time_us),
            node_name(snapshot, failure.node),
            failure.client.as_str().into(),
            failure.reason.as_str().into(),
        ])?;
    }
    Ok(())
}

fn startups(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    let node = node_name(snapshot, snapshot.live.node);
    rows.push([Cell::Time(snapshot.live.start_us), node, snapshot.live.build.as_str().into()])
}

fn client_connections(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    for node in snapshot.catalog.nodes().iter() {
        let sessions = sessions_of(snapshot, node.id).count();
        rows.push([node.name.as_str().into(), sessions.into(), 0i64.into()])?;
    }
    Ok(())
}

fn vs_sessions(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    for session in visible(snapshot) {
        rows.push([
            node_name(snapshot, session.node),
            session.user.as_str().into(),
            session.session_id.as_str().into(),
            session.client.as_str().into(),
            session.client_pid().into(),
            Cell::Time(session.login_us),
            session.label.as_str().into(),
            false.into(),
        ])?;
    }
    Ok(())
}
