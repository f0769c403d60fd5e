//! PostgreSQL's functions that give rows, as far as clients of its catalog call them in FROM. What they are given does
//! not matter: they tell of everything, or there is nothing to tell.

use super::keywords::KEYWORDS;
use super::{columns, none};
use crate::snapshot::Snapshot;
use crate::tables::{Rows, RowsError, SystemTable, Visibility, find};

/// The schema that they are declared in; no client can name it.
pub(crate) const SCHEMA: &str = "__sets";

/// Functions that give what a view shows.
const OF_VIEWS: &[(&str, &str)] = &[
    ("pg_show_all_settings", "pg_settings"),
    ("pg_show_all_file_settings", "pg_file_settings"),
    ("pg_hba_file_rules", "pg_hba_file_rules"),
    ("pg_lock_status", "pg_locks"),
    ("pg_timezone_names", "pg_timezone_names"),
    ("pg_timezone_abbrevs", "pg_timezone_abbrevs"),
    ("pg_available_extensions", "pg_available_extensions"),
    ("pg_get_replication_slots", "pg_replication_slots"),
];

/// The table that a call of this function stands for.
pub(crate) fn set_named(name: &str) -> Option<&'static SystemTable> {
    let is = |own: &str| own.eq_ignore_ascii_case(name);
    let view = OF_VIEWS.iter().find(|(own, _)| is(own)).and_then(|(_, view)| find("pg_catalog", view));
    view.or_else(|| SETS.iter().chain(EMPTY_SETS).find(|set| is(set.name)))
}

macro_rules! set {
    ($rows:expr, $name:literal: $($columns:tt)+) => {
        SystemTable {
            schema: SCHEMA,
            name: $name,
            description: "As in PostgreSQL.",
            columns: columns![$($columns)+],
            visibility: Visibility::All,
            rows: $rows,
        }
    };
}

const SETS: &[SystemTable] = &[set!(keywords, "pg_get_keywords":
    word Text, catcode Char, barelabel Bool, catdesc Text, baredesc Text
)];

/// Those that never give a row.
pub(crate) const EMPTY_SETS: &[SystemTable] = &[
    set!(none, "aclexplode": grantor Oid, grantee Oid, privilege_type Text, is_grantable Bool),
    set!(none, "pg_options_to_table": option_name Text, option_value Text),
    set!(none, "pg_listening_channels": pg_listening_channels Text),
    set!(none, "pg_tablespace_databases": pg_tablespace_databases Oid),
    set!(none, "pg_partition_ancestors": relid Oid),
    set!(none, "pg_partition_tree": relid Oid, parentrelid Oid, isleaf Bool, level Int4),
    set!(none, "pg_get_publication_tables": relid Oid, attrs Int2Vector, qual Text),
    set!(none, "pg_prepared_xact": transaction Oid, gid Text, prepared Timestamptz, ownerid Oid, dbid Oid),
    set!(none, "pg_available_extension_versions":
        name Name, version Text, superuser Bool, trusted Bool, relocatable Bool, schema Name, requires NameArray,
        comment Text
    ),
    set!(none, "pg_extension_update_paths": source Text, target Text, path Text),
];

fn keywords(_: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    let mut words: Vec<(&str, &str, bool)> = Vec::new();
    for (category, label, list) in KEYWORDS {
        words.extend(list.split(' ').map(|word| (word, *category, *label)));
    }
    words.sort_unstable();
    for (word, category, label) in words {
        let described = match category {
            "U" => "unreserved",
            "C" => "unreserved (cannot be function or type name)",
            "T" => "reserved (can be function or type name)",
            _ => "reserved",
        };
        let as_label = if label { "can be bare label" } else { "requires AS" };
        rows.push([word.into(), category.into(), label.into(), described.into(), as_label.into()])?;
    }
    Ok(())
}
