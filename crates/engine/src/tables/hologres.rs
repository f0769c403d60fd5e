//! `hologres` (`reference/hologres.md` §2).

use switchyard_catalog::NodeId;

use super::{Cell, Column, Kind, Rows, RowsError, SystemTable, Visibility, column};
use crate::snapshot::Snapshot;

const TABLE_INFO: &[Column] = &[
    column("db_name", Kind::Text, "The database."),
    column("schema_name", Kind::Text, "The table's schema."),
    column("table_name", Kind::Text, "The table."),
    column("table_id", Kind::Text, "The table's id."),
    column("type", Kind::Text, "TABLE, VIEW, ..."),
    column("table_group", Kind::Text, "The table group."),
];

pub(super) const TABLES: &[SystemTable] = &[
    SystemTable {
        schema: "hologres",
        name: "hg_table_group_properties",
        description: "Six rows for each table group: its properties as key and value.",
        columns: &[
            column("tablegroup_name", Kind::Text, "The table group."),
            column(
                "property_key",
                Kind::Text,
                "tg_version, table_num, is_default_tg, shard_count, replica_count or created_manually.",
            ),
            column("property_value", Kind::Text, "As text."),
        ],
        visibility: Visibility::All,
        rows: table_group_properties,
    },
    SystemTable {
        schema: "hologres",
        name: "hg_table_properties",
        description: "The properties of distributed tables as key and value; no table can be distributed yet.",
        columns: &[
            column("table_namespace", Kind::Text, "The table's schema."),
            column("table_name", Kind::Text, "The table."),
            column("property_key", Kind::Text, "For example table_group or distribution_key."),
            column("property_value", Kind::Text, "As text; lists are joined by commas."),
        ],
        visibility: Visibility::All,
        rows: none,
    },
    SystemTable {
        schema: "hologres",
        name: "hg_worker_info",
        description: "One row for each shard replica and its worker, and one for each worker without any.",
        columns: &[
            column("worker_id", Kind::Text, "The worker: ten hexadecimal digits."),
            column("table_group_name", Kind::Text, "The table group."),
            column("shard_id", Kind::Int, "The shard's number, from 0."),
            column("warehouse_id", Kind::Int, "NULL: there are no warehouses."),
        ],
        visibility: Visibility::All,
        rows: worker_info,
    },
    SystemTable {
        schema: "hologres",
        name: "hg_table_info",
        description: "The distributed tables; no table can be distributed yet.",
        columns: TABLE_INFO,
        visibility: Visibility::All,
        rows: none,
    },
];

/// A worker's id in the shape Hologres has: ten hexadecimal digits, the same as long as the node lives.
pub(super) fn worker_id(node: NodeId) -> String {
    // Multiplying by an odd number permutes 40-bit values: no two nodes of a catalog get the same id.
    let mixed = node.0.wrapping_mul(0x9E_3779_B97F) & 0xFF_FFFF_FFFF;
    format!("{mixed:010x}")
}

fn none(_: &Snapshot, _: &mut Rows) -> Result<(), RowsError> {
    Ok(())
}

fn table_group_properties(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    let catalog = &snapshot.catalog;
    for group in catalog.table_groups().iter() {
        let truth = |value: bool| if value { "1".to_owned() } else { "0".to_owned() };
        for (key, value) in [
            ("tg_version", group.version.to_string()),
            ("table_num", "0".to_owned()),
            ("is_default_tg", truth(catalog.database().default_table_group == Some(group.id))),
            ("shard_count", group.shard_count.to_string()),
            ("replica_count", group.replica_count.to_string()),
            ("created_manually", truth(group.created_manually)),
        ] {
            rows.push([group.name.as_str().into(), key.into(), value.into()])?;
        }
    }
    Ok(())
}

fn worker_info(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    let catalog = &snapshot.catalog;
    let mut used = std::collections::BTreeSet::new();
    let mut replicas = Vec::new();
    for shard in catalog.shards().iter() {
        for replica in &shard.replicas {
            used.insert(replica.worker);
            replicas.push((replica.worker, shard));
        }
    }
    replicas.sort_by_key(|(worker, shard)| (*worker, shard.table_group, shard.number));
    for (worker, shard) in replicas {
        rows.push([
            worker_id(worker).into(),
            catalog.table_groups().find(shard.table_group).map(|group| group.name.as_str()).into(),
            shard.number.into(),
            Cell::Null,
        ])?;
    }
    for node in catalog.nodes().iter().filter(|node| node.is_worker() && !used.contains(&node.id)) {
        rows.push([worker_id(node.id).into(), Cell::Null, Cell::Null, Cell::Null])?;
    }
    Ok(())
}
