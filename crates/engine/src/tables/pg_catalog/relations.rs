//! Schemas, relations, columns and what they mean.

use super::objects::{
    CLASS_CATALOG, NAMESPACE_CATALOG, owner_oid, relation_kind, relation_oid, role_name, schema_oid, type_oid,
};
use super::type_with_oid;
use crate::snapshot::Snapshot;
use crate::tables::{Cell, Kind, Rows, RowsError, SCHEMAS, all, schema_description};

fn no<'a>() -> Cell<'a> {
    false.into()
}

pub(super) fn namespace(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    let owner = owner_oid(&snapshot.catalog);
    for schema in SCHEMAS {
        rows.push([schema_oid(schema).into(), (*schema).into(), owner.into(), Cell::Null])?;
    }
    Ok(())
}

pub(super) fn class(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    let owner = owner_oid(&snapshot.catalog);
    for table in all() {
        rows.push_named([
            ("oid", relation_oid(table).into()),
            ("relname", table.name.into()),
            ("relnamespace", schema_oid(table.schema).into()),
            ("reltype", 0i64.into()),
            ("reloftype", 0i64.into()),
            ("relowner", owner.into()),
            ("relam", 0i64.into()),
            ("relfilenode", 0i64.into()),
            ("reltablespace", 0i64.into()),
            ("relpages", 0i64.into()),
            ("reltuples", Cell::Float(-1.0)),
            ("relallvisible", 0i64.into()),
            ("reltoastrelid", 0i64.into()),
            ("relhasindex", no()),
            ("relisshared", no()),
            ("relpersistence", "p".into()),
            ("relkind", relation_kind(table).into()),
            ("relnatts", table.columns.len().into()),
            ("relchecks", 0i64.into()),
            ("relhasrules", no()),
            ("relhastriggers", no()),
            ("relhassubclass", no()),
            ("relrowsecurity", no()),
            ("relforcerowsecurity", no()),
            ("relispopulated", true.into()),
            ("relreplident", if table.schema == "pg_catalog" { "n" } else { "d" }.into()),
            ("relispartition", no()),
            ("relrewrite", 0i64.into()),
            ("relfrozenxid", 0i64.into()),
            ("relminmxid", 0i64.into()),
        ])?;
    }
    Ok(())
}

pub(super) fn attribute(_: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    for table in all() {
        let relation = relation_oid(table);
        for (position, column) in table.columns.iter().enumerate() {
            let oid = type_oid(column.kind);
            let facts = type_with_oid(oid);
            let letter = |index| facts.map_or("", |facts| facts.letter(index));
            rows.push_named([
                ("attrelid", relation.into()),
                ("attname", column.name.into()),
                ("atttypid", oid.into()),
                ("attstattarget", (-1i64).into()),
                ("attlen", facts.map_or(-1, |facts| facts.len).into()),
                ("attnum", (position + 1).into()),
                ("attndims", i64::from(letter(2) == "A").into()),
                ("attcacheoff", (-1i64).into()),
                ("atttypmod", (-1i64).into()),
                ("attbyval", (letter(0) == "t").into()),
                ("attalign", letter(4).into()),
                ("attstorage", letter(5).into()),
                ("attcompression", "".into()),
                ("attnotnull", no()),
                ("atthasdef", no()),
                ("atthasmissing", no()),
                ("attidentity", "".into()),
                ("attgenerated", "".into()),
                ("attisdropped", no()),
                ("attislocal", true.into()),
                ("attinhcount", 0i64.into()),
                ("attcollation", facts.map_or(0, |facts| facts.collation).into()),
            ])?;
        }
    }
    Ok(())
}

pub(super) fn description(_: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    for schema in SCHEMAS {
        let text = schema_description(schema);
        rows.push([schema_oid(schema).into(), NAMESPACE_CATALOG.into(), 0i64.into(), text.into()])?;
    }
    for table in all() {
        let relation = relation_oid(table);
        rows.push([relation.into(), CLASS_CATALOG.into(), 0i64.into(), table.description.into()])?;
        for (position, column) in table.columns.iter().enumerate() {
            let position = position + 1;
            rows.push([relation.into(), CLASS_CATALOG.into(), position.into(), column.description.into()])?;
        }
    }
    Ok(())
}

fn owner_name(snapshot: &Snapshot) -> Option<String> {
    role_name(&snapshot.catalog, owner_oid(&snapshot.catalog))
}

pub(super) fn tables(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    let owner = owner_name(snapshot);
    for table in all().filter(|table| relation_kind(table) == "r") {
        rows.push([table.schema.into(), table.name.into(), owner.clone().into(), Cell::Null, no(), no(), no(), no()])?;
    }
    Ok(())
}

pub(super) fn views(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    let owner = owner_name(snapshot);
    for table in all().filter(|table| relation_kind(table) == "v") {
        rows.push([table.schema.into(), table.name.into(), owner.clone().into(), Cell::Null])?;
    }
    Ok(())
}

/// Bytes a value of a column takes at most, where that is fixed: for `information_schema`.
pub(crate) fn precision(kind: Kind) -> Option<i64> {
    match kind {
        Kind::Int2 => Some(16),
        Kind::Int4 => Some(32),
        Kind::Int => Some(64),
        Kind::Float4 => Some(24),
        Kind::Float => Some(53),
        _ => None,
    }
}
