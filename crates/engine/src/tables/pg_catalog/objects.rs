//! Numbers for what has none of PostgreSQL's: the same in every member and after every start.

use switchyard_catalog::{Catalog, RoleId, UserId};

use crate::snapshot::Snapshot;
use crate::tables::{self, Kind, SystemTable};

/// `pg_class` as a catalog, for descriptions.
pub(crate) const CLASS_CATALOG: u32 = 1259;
/// `pg_namespace` as a catalog.
pub(crate) const NAMESPACE_CATALOG: u32 = 2615;

/// The schema `pg_catalog`.
pub(crate) const PG_CATALOG: u32 = 11;
/// The default collation.
pub(crate) const DEFAULT_COLLATION: u32 = 100;
/// The default tablespace.
pub(crate) const DEFAULT_TABLESPACE: u32 = 1663;

/// Where numbers of objects of ours begin: PostgreSQL keeps what is below for its own.
const FIRST: u32 = 16_384;
/// Where numbers of users, roles and the database begin.
const FIRST_OF_CATALOG: u64 = 1 << 30;
/// How many numbers declared objects share.
const DECLARED: u32 = 1 << 29;

/// The relations of PostgreSQL's that have a number for ever.
const RELATION_OIDS: &[(&str, u32)] = &[
    ("pg_default_acl", 826),
    ("pg_tablespace", 1213),
    ("pg_shdepend", 1214),
    ("pg_type", 1247),
    ("pg_attribute", 1249),
    ("pg_proc", 1255),
    ("pg_class", 1259),
    ("pg_authid", 1260),
    ("pg_auth_members", 1261),
    ("pg_database", 1262),
    ("pg_foreign_server", 1417),
    ("pg_user_mapping", 1418),
    ("pg_sequence", 2224),
    ("pg_foreign_data_wrapper", 2328),
    ("pg_shdescription", 2396),
    ("pg_aggregate", 2600),
    ("pg_am", 2601),
    ("pg_amop", 2602),
    ("pg_amproc", 2603),
    ("pg_attrdef", 2604),
    ("pg_cast", 2605),
    ("pg_constraint", 2606),
    ("pg_conversion", 2607),
    ("pg_depend", 2608),
    ("pg_description", 2609),
    ("pg_index", 2610),
    ("pg_inherits", 2611),
    ("pg_language", 2612),
    ("pg_namespace", 2615),
    ("pg_opclass", 2616),
    ("pg_operator", 2617),
    ("pg_rewrite", 2618),
    ("pg_trigger", 2620),
    ("pg_opfamily", 2753),
    ("pg_db_role_setting", 2964),
    ("pg_largeobject_metadata", 2995),
    ("pg_extension", 3079),
    ("pg_foreign_table", 3118),
    ("pg_policy", 3256),
    ("pg_partitioned_table", 3350),
    ("pg_statistic_ext", 3381),
    ("pg_init_privs", 3394),
    ("pg_collation", 3456),
    ("pg_event_trigger", 3466),
    ("pg_enum", 3501),
    ("pg_range", 3541),
    ("pg_transform", 3576),
    ("pg_shseclabel", 3592),
    ("pg_seclabel", 3596),
    ("pg_ts_dict", 3600),
    ("pg_ts_parser", 3601),
    ("pg_ts_config", 3602),
    ("pg_ts_config_map", 3603),
    ("pg_ts_template", 3764),
    ("pg_replication_origin", 6000),
    ("pg_subscription", 6100),
    ("pg_publication", 6104),
    ("pg_publication_rel", 6106),
    ("pg_publication_namespace", 6237),
    ("pg_parameter_acl", 6243),
];

/// A number made of a name (FNV-1a): a test sees to it that no two are the same.
fn number_of(kind: &str, name: &str) -> u32 {
    let mut hash = 0x811c_9dc5_u32;
    for byte in kind.bytes().chain([0]).chain(name.bytes()) {
        hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    }
    FIRST + hash % (DECLARED - FIRST)
}

/// A schema's number.
pub(crate) fn schema_oid(schema: &str) -> u32 {
    if schema == "pg_catalog" { PG_CATALOG } else { number_of("schema", schema) }
}

/// A relation's number.
pub(crate) fn relation_oid(table: &SystemTable) -> u32 {
    let own = RELATION_OIDS.iter().find(|(name, _)| table.schema == "pg_catalog" && *name == table.name);
    own.map_or_else(|| number_of("relation", &format!("{}.{}", table.schema, table.name)), |(_, oid)| *oid)
}

/// The relation with this number.
pub(crate) fn relation_with_oid(oid: u32) -> Option<&'static SystemTable> {
    tables::all().find(|table| relation_oid(table) == oid)
}

/// `r` for a table, `v` for what PostgreSQL has as a view.
pub(crate) fn relation_kind(table: &SystemTable) -> &'static str {
    let view = match table.schema {
        "information_schema" => true,
        "pg_catalog" => !RELATION_OIDS.iter().any(|(name, _)| *name == table.name),
        _ => false,
    };
    if view { "v" } else { "r" }
}

/// A function's number.
pub(crate) fn function_oid(name: &str) -> u32 {
    number_of("function", name)
}

/// The number of what the catalog gave an id.
fn catalog_oid(id: u64) -> u32 {
    let rank = id.saturating_sub(switchyard_catalog::ID_FIRST);
    u32::try_from(FIRST_OF_CATALOG.saturating_add(rank)).unwrap_or(u32::MAX)
}

/// A user's number.
pub(crate) fn user_oid(user: UserId) -> u32 {
    catalog_oid(user.0)
}

/// A role's number.
pub(crate) fn role_oid(role: RoleId) -> u32 {
    catalog_oid(role.0)
}

/// The database's number.
pub(crate) fn database_oid(catalog: &Catalog) -> u32 {
    catalog_oid(catalog.database().id)
}

/// The number of the user everything belongs to: the oldest superuser.
pub(crate) fn owner_oid(catalog: &Catalog) -> u32 {
    catalog.users().iter().find(|user| user.superuser).map_or(0, |user| user_oid(user.id))
}

/// The name of the user or role with this number.
pub(crate) fn role_name(catalog: &Catalog, oid: u32) -> Option<String> {
    let user = catalog.users().iter().find(|user| user_oid(user.id) == oid).map(|user| user.name.to_string());
    let role = || catalog.roles().iter().find(|role| role_oid(role.id) == oid).map(|role| role.name.to_string());
    user.or_else(role)
}

/// The type of a column, by its number.
pub(crate) fn type_oid(kind: Kind) -> u32 {
    match kind {
        Kind::Bool => 16,
        Kind::Char => 18,
        Kind::Name => 19,
        Kind::Int => 20,
        Kind::Int2 => 21,
        Kind::Int2Vector => 22,
        Kind::Int4 => 23,
        Kind::Text => 25,
        Kind::Oid => 26,
        Kind::OidVector => 30,
        Kind::Json => 114,
        Kind::Float4 => 700,
        Kind::Float => 701,
        Kind::CharArray => 1002,
        Kind::NameArray => 1003,
        Kind::Int2Array => 1005,
        Kind::Int4Array => 1007,
        Kind::TextArray => 1009,
        Kind::OidArray => 1028,
        Kind::Varchar => 1043,
        Kind::Timestamp => 1114,
        Kind::Timestamptz => 1184,
        Kind::Jsonb => 3802,
        Kind::Inet => 869,
    }
}

/// Whether the asking user may read a table.
pub(crate) fn may_read(snapshot: &Snapshot, table: &SystemTable) -> bool {
    table.visibility != tables::Visibility::Superuser || snapshot.superuser()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::tables::pg_catalog::type_with_oid;

    #[test]
    fn no_two_declared_objects_have_one_number() {
        let mut seen = BTreeMap::new();
        for table in tables::all() {
            let name = format!("{}.{}", table.schema, table.name);
            assert_eq!(seen.insert(relation_oid(table), name.clone()), None, "{name}");
        }
        for schema in tables::SCHEMAS {
            assert_eq!(seen.insert(schema_oid(schema), (*schema).to_owned()), None, "{schema}");
        }
    }

    #[test]
    fn every_column_has_a_type_that_is_listed_under_the_name_it_is_declared_with() {
        for column in tables::all().flat_map(|table| table.columns) {
            let facts = type_with_oid(type_oid(column.kind));
            assert_eq!(facts.map(|facts| facts.shown), Some(column.kind.sql_name()), "{}", column.name);
        }
    }
}
