//! Sessions and settings.

use super::objects::{database_oid, user_oid};
use crate::locks::LockKey;
use crate::settings::setting_rows;
use crate::snapshot::{LiveSession, Snapshot};
use crate::tables::{Cell, Rows, RowsError};

fn time<'a>(value: Option<i64>) -> Cell<'a> {
    value.map_or(Cell::Null, Cell::Time)
}

/// The client's address and port.
fn client(session: &LiveSession) -> (Option<String>, i64) {
    match session.client.parse::<std::net::SocketAddr>() {
        Ok(address) => (Some(address.ip().to_string()), i64::from(address.port())),
        Err(_) => (None, -1),
    }
}

pub(super) fn stat_activity(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    let catalog = &snapshot.catalog;
    let all = snapshot.sees_all_statements();
    let own = snapshot.session.user_name(catalog);
    for session in &snapshot.live.sessions {
        let user = switchyard_catalog::Name::parse(&session.user).ok();
        let user = user.and_then(|name| catalog.users().named(&name).map(|user| user_oid(user.id)));
        let shown = all || session.user == own;
        let (address, port) = client(session);
        let active = session.current_statement.is_some();
        let statement = session.current_statement.as_deref().or(session.last_statement.as_deref());
        let state = match (active, session.transaction_start_us) {
            (true, _) => "active",
            (false, Some(_)) => "idle in transaction",
            (false, None) => "idle",
        };
        rows.push_named([
            ("datid", database_oid(catalog).into()),
            ("datname", catalog.database().name.as_str().into()),
            ("pid", session.process_id.into()),
            ("usesysid", user.into()),
            ("usename", session.user.as_str().into()),
            ("application_name", session.application.as_str().into()),
            ("client_addr", address.filter(|_| shown).into()),
            ("client_port", Some(port).filter(|_| shown).into()),
            ("backend_start", time(Some(session.login_us).filter(|_| shown))),
            ("xact_start", time(session.transaction_start_us.filter(|_| shown))),
            ("query_start", time(session.statement_start_us.filter(|_| shown))),
            ("state_change", time(session.statement_start_us.filter(|_| shown))),
            ("wait_event_type", (shown && !active).then_some("Client").into()),
            ("wait_event", (shown && !active).then_some("ClientRead").into()),
            ("state", shown.then_some(state).into()),
            ("query", if shown { statement.unwrap_or_default() } else { "<insufficient privilege>" }.into()),
            ("backend_type", "client backend".into()),
        ])?;
    }
    Ok(())
}

pub(super) fn stat_database(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    rows.push_named([
        ("datid", database_oid(&snapshot.catalog).into()),
        ("datname", snapshot.catalog.database().name.as_str().into()),
        ("numbackends", snapshot.live.sessions.len().into()),
        ("stats_reset", Cell::Time(snapshot.live.start_us)),
    ])
}

pub(super) fn settings(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    for row in setting_rows(&snapshot.catalog, &snapshot.session) {
        let context = match (row.allowed_levels.as_str(), row.needs_restart, row.superuser_only) {
            ("", ..) => "internal",
            (_, true, _) => "postmaster",
            (_, false, true) => "superuser",
            (_, false, false) => "user",
        };
        let source = match row.source {
            "DATABASE" | "NODE" => "database",
            "USER" => "user",
            "SESSION" => "session",
            _ => "default",
        };
        let value_type = if row.kind == "interval" { "string" } else { row.kind };
        rows.push_named([
            ("name", row.name.into()),
            ("setting", row.value.into()),
            ("category", row.family.into()),
            ("short_desc", row.description.into()),
            ("context", context.into()),
            ("vartype", value_type.into()),
            ("source", source.into()),
            ("boot_val", row.default.clone().into()),
            ("reset_val", row.default.into()),
            ("pending_restart", false.into()),
        ])?;
    }
    Ok(())
}

pub(super) fn cursors(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    for cursor in snapshot.live.cursors.iter() {
        rows.push_named([
            ("name", cursor.name.as_str().into()),
            ("statement", cursor.statement.as_str().into()),
            ("is_holdable", cursor.holds.into()),
            ("is_binary", cursor.binary.into()),
            ("is_scrollable", cursor.scrolls.into()),
            ("creation_time", Cell::Time(cursor.created_us)),
        ])?;
    }
    Ok(())
}

/// Every execution has a plan of its own, or one that all sessions share: PostgreSQL's distinction is not made here.
pub(super) fn prepared_statements(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    for prepared in snapshot.live.prepared.iter() {
        rows.push_named([
            ("name", prepared.name.as_str().into()),
            ("statement", prepared.statement.as_str().into()),
            ("prepare_time", Cell::Time(prepared.created_us)),
            ("parameter_types", Cell::Numbers(prepared.parameters.iter().map(|oid| i64::from(*oid)).collect())),
            ("from_sql", prepared.from_sql.into()),
            ("generic_plans", Cell::Int(0)),
            ("custom_plans", Cell::Int(i64::try_from(prepared.executions).unwrap_or(i64::MAX))),
        ])?;
    }
    Ok(())
}

/// The numbers of a key are shown as PostgreSQL does: one as two halves.
pub(super) fn locks(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    for lock in snapshot.live.locks.rows() {
        let (class, object, parts) = match lock.key {
            LockKey::One(number) => (number >> 32, number, 1),
            LockKey::Two(class, object) => (i64::from(class), i64::from(object), 2),
        };
        let unsigned = |number: i64| Cell::Int(number & i64::from(u32::MAX));
        rows.push_named([
            ("locktype", "advisory".into()),
            ("database", database_oid(&snapshot.catalog).into()),
            ("classid", unsigned(class)),
            ("objid", unsigned(object)),
            ("objsubid", Cell::Int(parts)),
            ("pid", lock.process_id.into()),
            ("mode", if lock.shared { "ShareLock" } else { "ExclusiveLock" }.into()),
            ("granted", lock.granted.into()),
            ("fastpath", false.into()),
        ])?;
    }
    Ok(())
}
