//! `hologres` (`reference/hologres.md` §2).

use jiff::Timestamp;
use jiff::tz::TimeZone;
use md5::{Digest, Md5};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Token, Tokenizer};
use switchyard_catalog::NodeId;

use super::{Cell, Kind, Rows, RowsError, SystemTable, Visibility, column};
use crate::snapshot::{LoggedStatement, Snapshot};

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
        name: "hg_query_log",
        description: "The statements that have ended on this member, bounded; others than the superuser, and those with the role pg_read_all_stats, see their own. A text that could not be parsed is not kept: nothing in it could be redacted.",
        columns: &[
            column("usename", Kind::Text, "The user."),
            column("status", Kind::Text, "SUCCESS or FAILED."),
            column("query_id", Kind::Text, "The statement's number on this member."),
            column("digest", Kind::Text, "MD5 of the statement's text with its values left out."),
            column("datname", Kind::Text, "The database."),
            column("command_tag", Kind::Text, "The command tag; the first word of a statement that failed."),
            column("warehouse_id", Kind::Int4, "NULL: there are no warehouses."),
            column("warehouse_name", Kind::Text, "NULL: there are no warehouses."),
            column("warehouse_cluster_id", Kind::Int4, "NULL: there are no warehouses."),
            column("duration", Kind::Int4, "How long it took, in milliseconds."),
            column("message", Kind::Text, "Why it failed."),
            column("query_start", Kind::Timestamptz, "When it began."),
            column("query_date", Kind::Text, "The day it began, in UTC: yyyymmdd."),
            column("query", Kind::Text, "Its text, secrets redacted, at most 4096 bytes of it."),
            column("result_rows", Kind::Int, "How many rows were sent."),
            column("result_bytes", Kind::Int, "NULL: not counted."),
            column("read_rows", Kind::Int, "NULL: not counted."),
            column("read_bytes", Kind::Int, "NULL: not counted."),
            column("affected_rows", Kind::Int, "NULL: not counted."),
            column("affected_bytes", Kind::Int, "NULL: not counted."),
            column("memory_bytes", Kind::Int, "NULL: not measured."),
            column("shuffle_bytes", Kind::Int, "NULL: not measured."),
            column("cpu_time_ms", Kind::Int, "NULL: not measured."),
            column("physical_reads", Kind::Int, "NULL: not measured."),
            column("pid", Kind::Int4, "The session's backend process id."),
            column("application_name", Kind::Text, "As the client calls itself."),
            column("engine_type", Kind::TextArray, "PG: done by the member itself."),
            column("client_addr", Kind::Text, "The client's address; NULL on a Unix socket."),
            column("table_write", Kind::Text, "NULL: no table is written here."),
            column("table_read", Kind::TextArray, "The system tables it read."),
            column("session_id", Kind::Text, "The session."),
            column("session_start", Kind::Timestamptz, "When the client logged in."),
            column("command_id", Kind::Text, "Which of the session's statements it was."),
            column("optimization_cost", Kind::Int4, "NULL: not measured apart from start_query_cost."),
            column("start_query_cost", Kind::Int4, "Milliseconds until its first row could be read."),
            column("get_next_cost", Kind::Int4, "Milliseconds in which its rows were read and sent."),
            column("extended_cost", Kind::Text, "NULL: not measured."),
            column("plan", Kind::Text, "NULL: not kept."),
            column("statistics", Kind::Text, "NULL: not measured."),
            column("visualization_info", Kind::Text, "NULL: not kept."),
            column("query_detail", Kind::Text, "NULL: not kept."),
            column("query_extinfo", Kind::TextArray, "NULL: not kept."),
            column("calls", Kind::Int4, "1: each statement has a row of its own."),
            column("agg_stats", Kind::Jsonb, "NULL: each statement has a row of its own."),
            column("extended_info", Kind::Jsonb, "NULL: not kept."),
        ],
        visibility: Visibility::Own,
        rows: query_log,
    },
    SystemTable {
        schema: "hologres",
        name: "hg_table_info",
        description: "The distributed tables; no table can be distributed yet.",
        columns: &[
            column("db_name", Kind::Text, "The database."),
            column("schema_name", Kind::Text, "The table's schema."),
            column("table_name", Kind::Text, "The table."),
            column("table_id", Kind::Text, "The table's id."),
            column("type", Kind::Text, "TABLE, VIEW, ..."),
            column("partition_spec", Kind::Text, "Which part of its parent it holds."),
            column("is_partition", Kind::Bool, "Whether it is a part of another table."),
            column("owner_name", Kind::Text, "Its owner."),
            column("create_time", Kind::Timestamptz, "When it was made."),
            column("last_ddl_time", Kind::Timestamptz, "When its definition changed last."),
            column("last_modify_time", Kind::Timestamptz, "When its rows changed last."),
            column("last_access_time", Kind::Timestamptz, "When it was used last."),
            column("view_def", Kind::Text, "The query of a view."),
            column("comment", Kind::Text, "Its comment."),
            column("hot_storage_size", Kind::Int, "Bytes on fast storage."),
            column("cold_storage_size", Kind::Int, "Bytes on slow storage."),
            column("hot_file_count", Kind::Int, "Files on fast storage."),
            column("cold_file_count", Kind::Int, "Files on slow storage."),
            column("table_meta", Kind::Jsonb, "More of it, with the key table_group."),
            column("row_count", Kind::Int, "How many rows it has."),
            column("collect_time", Kind::Timestamptz, "When all this was looked at."),
            column("partition_count", Kind::Int, "How many parts it has."),
            column("parent_schema_name", Kind::Text, "The schema of the table it is a part of."),
            column("parent_table_name", Kind::Text, "The table it is a part of."),
            column("total_read_count", Kind::Int, "Reads, since it was made."),
            column("total_write_count", Kind::Int, "Writes, since it was made."),
            column("read_sql_count_1d", Kind::Int, "Statements that read it, in a day."),
            column("write_sql_count_1d", Kind::Int, "Statements that wrote it, in a day."),
        ],
        visibility: Visibility::All,
        rows: none,
    },
    SystemTable {
        schema: "hologres",
        name: "hg_resharding_properties",
        description: "The tables that are being moved to another table group; no table can be distributed yet.",
        columns: &[
            column("schema_name", Kind::Text, "The table's schema."),
            column("reshard_table_name", Kind::Text, "The table that moves."),
            column("target_temp_table_name", Kind::Text, "The table it is copied into."),
            column("is_parent_table", Kind::Bool, "Whether it has parts."),
            column("is_sub_table", Kind::Bool, "Whether it is a part."),
        ],
        visibility: Visibility::All,
        rows: none,
    },
    SystemTable {
        schema: "hologres",
        name: "hg_warehouses",
        description: "The warehouses. There are none: subclusters are not warehouses, and replicas are counted by hg_set_table_group_property.",
        columns: &[
            column("warehouse_id", Kind::Int4, "The warehouse's id."),
            column("warehouse_name", Kind::Text, "The warehouse."),
            column("cpu", Kind::Int4, "Its cores."),
            column("mem", Kind::Int4, "Its memory."),
            column("cluster_min_count", Kind::Int4, "The fewest clusters it has."),
            column("cluster_max_count", Kind::Int4, "The most clusters it has."),
            column("target_status", Kind::Int4, "1 to run, 2 to stop."),
            column("status", Kind::Int4, "0 to 4: starting, running, stopped, failed, changing."),
            column("status_detail", Kind::Text, "In words."),
            column("is_default", Kind::Bool, "Whether sessions go here that name no warehouse."),
            column("config", Kind::Text, "Its configuration."),
            column("comment", Kind::Text, "Its comment."),
        ],
        visibility: Visibility::All,
        rows: none,
    },
    SystemTable {
        schema: "hologres",
        name: "hg_warehouse_table_groups",
        description: "Which warehouse has which table group loaded; there are no warehouses.",
        columns: &[
            column("warehouse_name", Kind::Text, "The warehouse."),
            column("warehouse_id", Kind::Int4, "The warehouse's id."),
            column("database_name", Kind::Text, "The database."),
            column("tablegroup_name", Kind::Text, "The table group."),
            column("leader", Kind::Bool, "Whether it writes there."),
            column("replica_count", Kind::Int4, "How many replicas it holds."),
        ],
        visibility: Visibility::All,
        rows: none,
    },
    SystemTable {
        schema: "hologres",
        name: "hg_warehouse_users",
        description: "Who may use which warehouse; there are no warehouses.",
        columns: &[
            column("warehouse_name", Kind::Text, "The warehouse."),
            column("warehouse_id", Kind::Int4, "The warehouse's id."),
            column("username", Kind::Text, "The user."),
        ],
        visibility: Visibility::All,
        rows: none,
    },
    SystemTable {
        schema: "hologres",
        name: "hg_user_default_warehouse",
        description: "The warehouses that users start in; there are no warehouses.",
        columns: &[
            column("warehouse_name", Kind::Text, "The warehouse."),
            column("warehouse_id", Kind::Int4, "The warehouse's id."),
            column("username", Kind::Text, "The user."),
        ],
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

/// MD5 of a statement's tokens with `?` for each value; none when it is cut inside of a token.
fn digest(text: &str) -> Option<String> {
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize().ok()?;
    let mut hash = Md5::new();
    for token in tokens {
        match token {
            Token::Whitespace(_) | Token::SemiColon => continue,
            Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::DollarQuotedString(_)
            | Token::EscapedStringLiteral(_)
            | Token::NationalStringLiteral(_)
            | Token::HexStringLiteral(_)
            | Token::Placeholder(_) => hash.update("?"),
            Token::Word(word) if word.quote_style.is_none() => hash.update(word.value.to_lowercase()),
            other => hash.update(other.to_string()),
        }
        hash.update(" ");
    }
    Some(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

fn milliseconds<'a>(microseconds: i64) -> Cell<'a> {
    i32::try_from(microseconds / 1_000).unwrap_or(i32::MAX).into()
}

fn query_log(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    let all = snapshot.sees_all_statements();
    let own = snapshot.session.user_name(&snapshot.catalog);
    for statement in snapshot.query_log.iter().filter(|statement| all || statement.user == own) {
        push_statement(snapshot, statement, rows)?;
    }
    Ok(())
}

fn push_statement(snapshot: &Snapshot, logged: &LoggedStatement, rows: &mut Rows) -> Result<(), RowsError> {
    let start = Timestamp::from_microsecond(logged.start_us).ok().map(|time| time.to_zoned(TimeZone::UTC));
    rows.push([
        logged.user.as_str().into(),
        if logged.failure.is_some() { "FAILED" } else { "SUCCESS" }.into(),
        logged.number.to_string().into(),
        digest(&logged.statement).into(),
        snapshot.catalog.database().name.as_str().into(),
        logged.command_tag.as_str().into(),
        Cell::Null,
        Cell::Null,
        Cell::Null,
        milliseconds(logged.duration_us),
        logged.failure.as_deref().into(),
        Cell::Time(logged.start_us),
        start.map(|start| start.strftime("%Y%m%d").to_string()).into(),
        logged.statement.as_str().into(),
        logged.result_rows.into(),
        Cell::Null,
        Cell::Null,
        Cell::Null,
        Cell::Null,
        Cell::Null,
        Cell::Null,
        Cell::Null,
        Cell::Null,
        Cell::Null,
        logged.process_id.into(),
        logged.application.as_str().into(),
        vec!["PG".to_owned()].into(),
        logged.client.map(|client| client.to_string()).into(),
        Cell::Null,
        logged.tables_read.to_vec().into(),
        logged.session_id.as_str().into(),
        Cell::Time(logged.session_start_us),
        logged.statement_number.to_string().into(),
        Cell::Null,
        milliseconds(logged.start_cost_us),
        milliseconds(logged.duration_us.saturating_sub(logged.start_cost_us)),
        Cell::Null,
        Cell::Null,
        Cell::Null,
        Cell::Null,
        Cell::Null,
        Cell::Null,
        1i32.into(),
        Cell::Null,
        Cell::Null,
    ])
}

#[cfg(test)]
mod tests {
    use super::digest;

    #[test]
    fn statements_that_differ_in_values_alone_have_one_digest() {
        let first = digest("SELECT * FROM nodes WHERE node_id = 1 AND node_name = 'a'");
        assert_eq!(first.as_deref().map(str::len), Some(32));
        assert_eq!(first, digest("select *  from NODES where node_id=22 and node_name='b c';"));
        assert_ne!(first, digest("SELECT * FROM nodes WHERE node_id > 1 AND node_name = 'a'"));
        assert_eq!(digest("SELECT 'cut"), None);
    }
}
