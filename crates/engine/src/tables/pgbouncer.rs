//! What pgbouncer's SHOW tells, for what watches pgbouncer: the columns of its version 1.18, filled from this member's
//! sessions. `SHOW POOLS` is `SELECT * FROM switchyard.pgbouncer_pools`, and so on.

use std::collections::BTreeMap;

use super::v_monitor::visible;
use super::{Cell, Column, Kind, Rows, RowsError, SystemTable, Visibility, column};
use crate::snapshot::{LiveSession, Snapshot};

/// The words after SHOW, each with the name of its table.
pub(crate) const WORDS: [(&str, &str); 8] = [
    ("POOLS", "pgbouncer_pools"),
    ("CLIENTS", "pgbouncer_clients"),
    ("SERVERS", "pgbouncer_servers"),
    ("STATS", "pgbouncer_stats"),
    ("DATABASES", "pgbouncer_databases"),
    ("LISTS", "pgbouncer_lists"),
    ("CONFIG", "pgbouncer_config"),
    ("VERSION", "pgbouncer_version"),
];

const CLIENTS: &[Column] = &[
    column("type", Kind::Text, "C for a client, S for a server."),
    column("user", Kind::Text, "The user."),
    column("database", Kind::Text, "The database."),
    column("state", Kind::Text, "active or waiting; every client here is active."),
    column("addr", Kind::Text, "The address at the other end."),
    column("port", Kind::Int4, "The port there."),
    column("local_addr", Kind::Text, "The address at this end."),
    column("local_port", Kind::Int4, "The port at this end."),
    column("connect_time", Kind::Text, "When it was connected, in UTC."),
    column("request_time", Kind::Text, "When it last asked for something, in UTC."),
    column("wait", Kind::Int4, "Seconds that it has waited for a server."),
    column("wait_us", Kind::Int4, "Microseconds besides these seconds."),
    column("close_needed", Kind::Int4, "1 when it is to be closed as soon as it is free."),
    column("ptr", Kind::Text, "Tells it from others: the session."),
    column("link", Kind::Text, "The server that the client is linked to; empty when none."),
    column("remote_pid", Kind::Int4, "The process at the other end; 0 where it is not known."),
    column("tls", Kind::Text, "TLS version and cipher; empty without."),
    column("application_name", Kind::Text, "As the client calls itself."),
];

pub(super) const TABLES: &[SystemTable] = &[
    SystemTable {
        schema: "switchyard",
        name: "pgbouncer_pools",
        description: "SHOW POOLS: one row for each database and user with clients.",
        columns: &[
            column("database", Kind::Text, "The database."),
            column("user", Kind::Text, "The user."),
            column("cl_active", Kind::Int4, "Clients that are served, or idle."),
            column("cl_waiting", Kind::Int4, "Clients that wait for a server."),
            column("cl_active_cancel_req", Kind::Int4, "Cancel requests sent on."),
            column("cl_waiting_cancel_req", Kind::Int4, "Cancel requests that wait."),
            column("sv_active", Kind::Int4, "Servers that are linked to a client."),
            column("sv_active_cancel", Kind::Int4, "Servers that a cancel request is sent to."),
            column("sv_being_canceled", Kind::Int4, "Servers that wait for their cancel requests."),
            column("sv_idle", Kind::Int4, "Servers that can be used at once."),
            column("sv_used", Kind::Int4, "Servers that must be checked before."),
            column("sv_tested", Kind::Int4, "Servers that are being checked or reset."),
            column("sv_login", Kind::Int4, "Servers that are logging in."),
            column("maxwait", Kind::Int4, "Seconds that the first client has waited."),
            column("maxwait_us", Kind::Int4, "Microseconds besides these seconds."),
            column("pool_mode", Kind::Text, "session: a client keeps what it has."),
        ],
        visibility: Visibility::Own,
        rows: pools,
    },
    SystemTable {
        schema: "switchyard",
        name: "pgbouncer_clients",
        description: "SHOW CLIENTS: the sessions of this member.",
        columns: CLIENTS,
        visibility: Visibility::Own,
        rows: clients,
    },
    SystemTable {
        schema: "switchyard",
        name: "pgbouncer_servers",
        description: "SHOW SERVERS: the connections to upstream servers; none is held yet.",
        columns: CLIENTS,
        visibility: Visibility::All,
        rows: |_, _| Ok(()),
    },
    SystemTable {
        schema: "switchyard",
        name: "pgbouncer_stats",
        description: "SHOW STATS: what clients have done since the start, and a second in the last full minute.",
        columns: &[
            column("database", Kind::Text, "The database."),
            column("total_xact_count", Kind::Int, "Transactions."),
            column("total_query_count", Kind::Int, "Statements."),
            column("total_received", Kind::Int, "Bytes from clients."),
            column("total_sent", Kind::Int, "Bytes to clients."),
            column("total_xact_time", Kind::Int, "Microseconds in transactions."),
            column("total_query_time", Kind::Int, "Microseconds in statements."),
            column("total_wait_time", Kind::Int, "Microseconds that clients have waited for a server."),
            column("avg_xact_count", Kind::Int, "Transactions a second."),
            column("avg_query_count", Kind::Int, "Statements a second."),
            column("avg_recv", Kind::Int, "Bytes from clients a second."),
            column("avg_sent", Kind::Int, "Bytes to clients a second."),
            column("avg_xact_time", Kind::Int, "Microseconds of a transaction."),
            column("avg_query_time", Kind::Int, "Microseconds of a statement."),
            column("avg_wait_time", Kind::Int, "Microseconds that a client waits for a server, a second."),
        ],
        visibility: Visibility::All,
        rows: stats,
    },
    SystemTable {
        schema: "switchyard",
        name: "pgbouncer_databases",
        description: "SHOW DATABASES: the console.",
        columns: &[
            column("name", Kind::Text, "As clients name it."),
            column("host", Kind::Text, "Where it is; NULL for the console, which is here."),
            column("port", Kind::Int4, "The port there."),
            column("database", Kind::Text, "As it is called there."),
            column("force_user", Kind::Text, "The user that all clients become; NULL: they stay who they are."),
            column("pool_size", Kind::Int4, "The most servers."),
            column("min_pool_size", Kind::Int4, "The fewest servers."),
            column("reserve_pool", Kind::Int4, "Servers more when clients wait."),
            column("pool_mode", Kind::Text, "NULL: as everywhere."),
            column("max_connections", Kind::Int4, "The most connections."),
            column("current_connections", Kind::Int4, "The connections."),
            column("paused", Kind::Int4, "1 when it is paused."),
            column("disabled", Kind::Int4, "1 when it is disabled."),
        ],
        visibility: Visibility::All,
        rows: databases,
    },
    SystemTable {
        schema: "switchyard",
        name: "pgbouncer_lists",
        description: "SHOW LISTS: how much there is of what.",
        columns: &[column("list", Kind::Text, "Of what."), column("items", Kind::Int4, "How many.")],
        visibility: Visibility::All,
        rows: lists,
    },
    SystemTable {
        schema: "switchyard",
        name: "pgbouncer_config",
        description: "SHOW CONFIG: what this member was started with.",
        columns: &[
            column("key", Kind::Text, "The setting."),
            column("value", Kind::Text, "Its value; masked for others than the superuser."),
            column("default", Kind::Text, "Its value when it is not set."),
            column("changeable", Kind::Text, "yes when a change needs no restart."),
        ],
        visibility: Visibility::All,
        rows: config,
    },
    SystemTable {
        schema: "switchyard",
        name: "pgbouncer_version",
        description: "SHOW VERSION: the version of pgbouncer whose columns these are, and ours.",
        columns: &[column("version", Kind::Text, "In words.")],
        visibility: Visibility::All,
        rows: |_, rows| rows.push([concat!("PgBouncer 1.18.0 (Switchyard ", env!("CARGO_PKG_VERSION"), ")").into()]),
    },
];

/// The database that a session is connected to, as it is called.
fn database<'a>(snapshot: &'a Snapshot, session: &'a LiveSession) -> &'a str {
    match session.database.as_deref() {
        Some(named) => named.split('@').next().unwrap_or(named),
        None => snapshot.catalog.database().name.as_str(),
    }
}

fn pools(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    let mut clients: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for session in visible(snapshot) {
        *clients.entry((database(snapshot, session), &session.user)).or_default() += 1;
    }
    for ((database, user), active) in clients {
        let none = || Cell::Int(0);
        rows.push([
            database.into(),
            user.into(),
            active.into(),
            none(),
            none(),
            none(),
            none(),
            none(),
            none(),
            none(),
            none(),
            none(),
            none(),
            none(),
            none(),
            "session".into(),
        ])?;
    }
    Ok(())
}

fn clients(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    for session in visible(snapshot) {
        let remote = session.client.parse::<std::net::SocketAddr>().ok();
        let tls = session.tls.as_ref().map(|tls| format!("{}/{}", tls.version, tls.cipher));
        rows.push([
            "C".into(),
            session.user.as_str().into(),
            database(snapshot, session).into(),
            "active".into(),
            remote.map_or_else(|| "unix".to_owned(), |address| address.ip().to_string()).into(),
            remote.map_or(0, |address| address.port()).into(),
            session.local.map_or_else(|| "unix".to_owned(), |address| address.ip().to_string()).into(),
            session.local.map_or(0, |address| address.port()).into(),
            in_utc(session.login_us).into(),
            in_utc(session.statement_start_us.unwrap_or(session.login_us)).into(),
            0i64.into(),
            0i64.into(),
            0i64.into(),
            session.session_id.as_str().into(),
            "".into(),
            0i64.into(),
            tls.unwrap_or_default().into(),
            session.application.as_str().into(),
        ])?;
    }
    Ok(())
}

/// As pgbouncer writes times.
fn in_utc(time_us: i64) -> String {
    let time = jiff::Timestamp::from_microsecond(time_us).unwrap_or_default();
    time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

fn stats(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    let (total, average) = (&snapshot.live.work.total, &snapshot.live.work.average);
    rows.push([
        snapshot.catalog.database().name.as_str().into(),
        total.transactions.into(),
        total.statements.into(),
        total.received_bytes.into(),
        total.sent_bytes.into(),
        total.transaction_us.into(),
        total.statement_us.into(),
        0i64.into(),
        average.transactions.into(),
        average.statements.into(),
        average.received_bytes.into(),
        average.sent_bytes.into(),
        average.transaction_us.into(),
        average.statement_us.into(),
        0i64.into(),
    ])
}

/// How many clients this member takes at most, as it was started.
fn connections_max(snapshot: &Snapshot) -> i64 {
    let set = snapshot.live.process_settings.iter().find(|setting| setting.name == "connections_max");
    set.and_then(|setting| setting.value.as_deref()).and_then(|value| value.parse().ok()).unwrap_or_default()
}

fn databases(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    let name = snapshot.catalog.database().name.as_str();
    let node = snapshot.live.node.and_then(|id| snapshot.catalog.nodes().find(id));
    rows.push([
        name.into(),
        Cell::Null,
        node.map(|node| node.port).into(),
        name.into(),
        Cell::Null,
        0i64.into(),
        0i64.into(),
        0i64.into(),
        Cell::Null,
        connections_max(snapshot).into(),
        snapshot.live.sessions.len().into(),
        0i64.into(),
        0i64.into(),
    ])
}

fn lists(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    let live = &snapshot.live;
    let pools: std::collections::BTreeSet<_> =
        live.sessions.iter().map(|session| (database(snapshot, session), session.user.as_str())).collect();
    let used = i64::try_from(live.sessions.len()).unwrap_or(i64::MAX);
    for (list, items) in [
        ("databases", Cell::Int(1)),
        ("users", snapshot.catalog.users().iter().count().into()),
        ("pools", pools.len().into()),
        ("free_clients", connections_max(snapshot).saturating_sub(used).max(0).into()),
        ("used_clients", used.into()),
        ("login_clients", live.work.logins.into()),
        ("free_servers", Cell::Int(0)),
        ("used_servers", Cell::Int(0)),
        ("dns_names", Cell::Int(0)),
        ("dns_zones", Cell::Int(0)),
        ("dns_queries", Cell::Int(0)),
        ("dns_pending", Cell::Int(0)),
    ] {
        rows.push([list.into(), items])?;
    }
    Ok(())
}

/// What is set under pgbouncer's name for it too.
const ALIKE: [(&str, &str); 3] =
    [("max_client_conn", "connections_max"), ("client_login_timeout", "login_time_ms_max"), ("listen_addr", "listen")];

fn config(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    let superuser = snapshot.superuser();
    for setting in snapshot.live.process_settings.iter() {
        let alike = ALIKE.iter().filter(|(_, own)| *own == setting.name).map(|(name, _)| *name);
        for key in std::iter::once(setting.name).chain(alike) {
            // pgbouncer counts seconds there.
            let seconds =
                |text: &str| text.parse::<u64>().map_or_else(|_| text.to_owned(), |ms| (ms / 1000).to_string());
            let shown = |text: &str| if key == "client_login_timeout" { seconds(text) } else { text.to_owned() };
            let value = setting.value.as_deref().map(shown);
            rows.push([
                key.into(),
                if superuser { value } else { value.map(|_| crate::show::MASK.to_owned()) }.into(),
                shown(setting.default.trim_matches('`')).into(),
                "no".into(),
            ])?;
        }
    }
    Ok(())
}
