//! `switchyard`: what is ours (`design.md` §5).

use super::hologres::worker_id;
use super::{Cell, Column, Kind, Rows, RowsError, SystemTable, Visibility, all, column};
use crate::dump::definitions;
use crate::settings::setting_rows;
use crate::show::MASK;
use crate::snapshot::Snapshot;

/// The columns of the function `catalog_at(version)`.
pub(crate) const CATALOG_AT: &[Column] = &[
    column("version", Kind::Int, "The catalog version asked for."),
    column("object_type", Kind::Varchar, "For example routing rule."),
    column("object_name", Kind::Varchar, "The object's name."),
    column("definition", Kind::Varchar, "The statement that makes it."),
];

pub(super) const TABLES: &[SystemTable] = &[
    SystemTable {
        schema: "switchyard",
        name: "catalog_history",
        description: "Who changed the catalog, and who was refused; secrets are redacted.",
        columns: &[
            column("version", Kind::Int, "The version the statement is part of, or was refused on."),
            column("time", Kind::Timestamptz, "When."),
            column("user_name", Kind::Varchar, "The user."),
            column("client", Kind::Varchar, "The client's address and port."),
            column("statement", Kind::Varchar, "The statement."),
            column("outcome", Kind::Varchar, "committed, or refused with SQLSTATE and message."),
        ],
        visibility: Visibility::Superuser,
        rows: catalog_history,
    },
    SystemTable {
        schema: "switchyard",
        name: "settings",
        description: "Every setting, its value and where that comes from.",
        columns: &[
            column("name", Kind::Varchar, "The setting."),
            column(
                "setting",
                Kind::Varchar,
                "The value in force for this session; NULL where there is none; masked for others than the superuser.",
            ),
            column("default_value", Kind::Varchar, "The value when nothing is set."),
            column(
                "source",
                Kind::Varchar,
                "default, database, node, user or session; for the process: default, file, variable or flag.",
            ),
            column("value_type", Kind::Varchar, "bool, integer, enum, string or interval."),
            column(
                "family",
                Kind::Varchar,
                "Whose it is: vertica, postgresql, hologres, switchyard, or process: what the member was started with.",
            ),
            column("allowed_levels", Kind::Varchar, "Where it can be set."),
            column("needs_restart", Kind::Bool, "Whether a change counts only after a restart."),
            column("description", Kind::Varchar, "A sentence."),
        ],
        visibility: Visibility::All,
        rows: settings,
    },
    SystemTable {
        schema: "switchyard",
        name: "shard_replicas",
        description: "One row for each replica of each shard.",
        columns: &[
            column("table_group_name", Kind::Varchar, "The table group."),
            column("shard_id", Kind::Int, "The shard's number, from 0."),
            column("worker_id", Kind::Varchar, "The worker, as in hologres.hg_worker_info."),
            column("node_name", Kind::Varchar, "The worker's node."),
            column("role", Kind::Varchar, "leader or follower."),
            column("state", Kind::Varchar, "planned: placed, no data was moved yet."),
        ],
        visibility: Visibility::All,
        rows: shard_replicas,
    },
    SystemTable {
        schema: "switchyard",
        name: "declared_interfaces",
        description: "What CREATE NETWORK INTERFACE declared; v_monitor.network_interfaces shows what the host has.",
        columns: &[
            column("name", Kind::Varchar, "The interface."),
            column("node_name", Kind::Varchar, "Its node."),
            column("address", Kind::Varchar, "Its address, or a host name."),
            column("port", Kind::Int, "1 to 65535."),
            column("is_enabled", Kind::Bool, "Whether it may be used."),
        ],
        visibility: Visibility::All,
        rows: declared_interfaces,
    },
    SystemTable {
        schema: "switchyard",
        name: "user_mappings",
        description: "The logins that are used on PostgreSQL servers; a password is never shown.",
        columns: &[
            column("user_name", Kind::Varchar, "Whose; PUBLIC is everybody without one of his own."),
            column("node_name", Kind::Varchar, "Where; NULL is every node without one of its own."),
            column("remote_user", Kind::Varchar, "The login there."),
            column("has_password", Kind::Bool, "Whether a password is kept for it."),
        ],
        visibility: Visibility::Superuser,
        rows: user_mappings,
    },
    SystemTable {
        schema: "switchyard",
        name: "system_tables",
        description: "The system tables.",
        columns: &[
            column("schema_name", Kind::Varchar, "The schema."),
            column("table_name", Kind::Varchar, "The table."),
            column("description", Kind::Varchar, "A sentence."),
        ],
        visibility: Visibility::All,
        rows: system_tables,
    },
    SystemTable {
        schema: "switchyard",
        name: "system_columns",
        description: "The columns of the system tables.",
        columns: &[
            column("schema_name", Kind::Varchar, "The schema."),
            column("table_name", Kind::Varchar, "The table."),
            column("column_name", Kind::Varchar, "The column."),
            column("data_type", Kind::Varchar, "The type's PostgreSQL name."),
            column("ordinal_position", Kind::Int, "From 1."),
            column("description", Kind::Varchar, "A sentence."),
        ],
        visibility: Visibility::All,
        rows: system_columns,
    },
];

fn catalog_history(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    for row in snapshot.history.iter() {
        rows.push([
            row.version.into(),
            Cell::Time(row.time_us),
            row.user.as_str().into(),
            row.client.as_str().into(),
            row.statement.as_str().into(),
            row.outcome.as_str().into(),
        ])?;
    }
    Ok(())
}

fn settings(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    for row in setting_rows(&snapshot.catalog, &snapshot.session) {
        rows.push([
            row.name.into(),
            row.value.into(),
            row.default.into(),
            row.source.to_lowercase().into(),
            row.kind.into(),
            row.family.into(),
            row.allowed_levels.into(),
            row.needs_restart.into(),
            row.description.into(),
        ])?;
    }
    let superuser = snapshot.superuser();
    for setting in snapshot.live.process_settings.iter() {
        let value = setting.value.as_deref();
        rows.push([
            setting.name.into(),
            if superuser { value } else { value.map(|_| MASK) }.into(),
            setting.default.as_str().into(),
            setting.source.into(),
            if setting.integer { "integer" } else { "string" }.into(),
            "process".into(),
            setting.allowed_levels.as_str().into(),
            true.into(),
            setting.description.into(),
        ])?;
    }
    Ok(())
}

fn declared_interfaces(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    let catalog = &snapshot.catalog;
    for interface in catalog.network_interfaces().iter() {
        rows.push([
            interface.name.as_str().into(),
            catalog.nodes().find(interface.node).map(|node| node.name.as_str()).into(),
            interface.host.to_string().into(),
            interface.port.into(),
            interface.enabled.into(),
        ])?;
    }
    Ok(())
}

fn user_mappings(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    let catalog = &snapshot.catalog;
    for mapping in catalog.user_mappings().iter() {
        let user = match mapping.user {
            None => Some("PUBLIC"),
            Some(user) => catalog.users().find(user).map(|user| user.name.as_str()),
        };
        rows.push([
            user.into(),
            mapping.node.and_then(|node| catalog.nodes().find(node)).map(|node| node.name.as_str()).into(),
            mapping.remote_user.as_str().into(),
            mapping.password.is_some().into(),
        ])?;
    }
    Ok(())
}

fn shard_replicas(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    let catalog = &snapshot.catalog;
    for shard in catalog.shards().iter() {
        for replica in &shard.replicas {
            rows.push([
                catalog.table_groups().find(shard.table_group).map(|group| group.name.as_str()).into(),
                shard.number.into(),
                worker_id(replica.worker).into(),
                catalog.nodes().find(replica.worker).map(|node| node.name.as_str()).into(),
                replica.role.as_str().into(),
                replica.state.as_str().into(),
            ])?;
        }
    }
    Ok(())
}

fn system_tables(_: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    for table in all() {
        rows.push([table.schema.into(), table.name.into(), table.description.into()])?;
    }
    Ok(())
}

fn system_columns(_: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    for table in all() {
        for (position, column) in table.columns.iter().enumerate() {
            rows.push([
                table.schema.into(),
                table.name.into(),
                column.name.into(),
                column.kind.sql_name().into(),
                (position + 1).into(),
                column.description.into(),
            ])?;
        }
    }
    Ok(())
}

/// The rows of `catalog_at(version)`.
pub(crate) fn catalog_at(snapshot: &Snapshot, version: u64, rows: &mut Rows) -> Result<(), RowsError> {
    if let Some(catalog) = snapshot.versions.get(&version) {
        for made in definitions(catalog) {
            rows.push([version.into(), made.kind.into(), made.name.into(), made.sql.into()])?;
        }
    }
    Ok(())
}
