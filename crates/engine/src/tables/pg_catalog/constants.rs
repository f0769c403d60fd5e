//! What is the same everywhere.

use super::objects::{DEFAULT_COLLATION, DEFAULT_TABLESPACE, PG_CATALOG, database_oid, owner_oid};
use super::types::TYPES;
use crate::snapshot::Snapshot;
use crate::tables::{Cell, Rows, RowsError};

/// The language of functions that are built in.
pub(super) const INTERNAL: u32 = 12;
/// UTF-8 among PostgreSQL's encodings.
pub(crate) const UTF8: i64 = 6;

pub(super) fn types(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    let owner = owner_oid(&snapshot.catalog);
    for facts in TYPES {
        let [input, output, receive, send, modin, modout] = facts.functions;
        rows.push([
            facts.oid.into(),
            facts.name.into(),
            PG_CATALOG.into(),
            owner.into(),
            facts.len.into(),
            (facts.letter(0) == "t").into(),
            facts.letter(1).into(),
            facts.letter(2).into(),
            (facts.letter(3) == "t").into(),
            true.into(),
            ",".into(),
            0i64.into(),
            facts.subscript.into(),
            facts.element.into(),
            facts.array.into(),
            input.into(),
            output.into(),
            receive.into(),
            send.into(),
            modin.into(),
            modout.into(),
            0i64.into(),
            facts.letter(4).into(),
            facts.letter(5).into(),
            false.into(),
            0i64.into(),
            (-1i64).into(),
            0i64.into(),
            facts.collation.into(),
            Cell::Null,
            Cell::Null,
            Cell::Null,
        ])?;
    }
    Ok(())
}

pub(super) fn database(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    let catalog = &snapshot.catalog;
    rows.push_named([
        ("oid", database_oid(catalog).into()),
        ("datname", catalog.database().name.as_str().into()),
        ("datdba", owner_oid(catalog).into()),
        ("encoding", UTF8.into()),
        ("datlocprovider", "c".into()),
        ("datistemplate", false.into()),
        ("datallowconn", true.into()),
        ("datconnlimit", (-1i64).into()),
        ("datfrozenxid", 0i64.into()),
        ("datminmxid", 0i64.into()),
        ("dattablespace", DEFAULT_TABLESPACE.into()),
        ("datcollate", "C".into()),
        ("datctype", "C".into()),
    ])
}

pub(super) fn am(_: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    for (oid, name, kind) in [(2u32, "heap", "t"), (403, "btree", "i")] {
        rows.push([oid.into(), name.into(), 0i64.into(), kind.into()])?;
    }
    Ok(())
}

pub(super) fn tablespace(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    let owner = owner_oid(&snapshot.catalog);
    for (oid, name) in [(DEFAULT_TABLESPACE, "pg_default"), (1664, "pg_global")] {
        rows.push([oid.into(), name.into(), owner.into(), Cell::Null, Cell::Null])?;
    }
    Ok(())
}

pub(super) fn collation(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    let owner = owner_oid(&snapshot.catalog);
    for (oid, name, provider) in [(DEFAULT_COLLATION, "default", "d"), (950, "C", "c"), (951, "POSIX", "c")] {
        let locale = Some(name).filter(|_| provider == "c");
        rows.push_named([
            ("oid", oid.into()),
            ("collname", name.into()),
            ("collnamespace", PG_CATALOG.into()),
            ("collowner", owner.into()),
            ("collprovider", provider.into()),
            ("collisdeterministic", true.into()),
            ("collencoding", (-1i64).into()),
            ("collcollate", locale.into()),
            ("collctype", locale.into()),
        ])?;
    }
    Ok(())
}

pub(super) fn language(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    let owner = owner_oid(&snapshot.catalog);
    rows.push([
        INTERNAL.into(),
        "internal".into(),
        owner.into(),
        false.into(),
        false.into(),
        0i64.into(),
        0i64.into(),
        0i64.into(),
        Cell::Null,
    ])
}
