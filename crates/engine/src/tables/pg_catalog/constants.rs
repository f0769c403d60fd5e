//! What is the same everywhere, and functions.

use switchyard_dialect::{MetaFunction, Procedure};

use super::objects::{
    DEFAULT_COLLATION, DEFAULT_TABLESPACE, PG_CATALOG, database_oid, function_oid, owner_oid, schema_oid, type_oid,
};
use super::types::{IO_FUNCTIONS, TYPES};
use crate::snapshot::Snapshot;
use crate::tables::{Cell, Rows, RowsError};

/// The language of functions that are built in.
const INTERNAL: u32 = 12;
/// The type `boolean`.
const BOOL: u32 = 16;
/// The type `text`.
const TEXT: u32 = 25;
/// The type `character varying`.
const VARCHAR: u32 = 1043;
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

/// A function, as `pg_proc` shows it.
#[derive(Debug, Clone)]
pub(crate) struct FunctionRow {
    pub(crate) oid: u32,
    pub(crate) name: &'static str,
    pub(crate) schema: &'static str,
    /// `f` or `p`.
    pub(crate) kind: &'static str,
    /// The type of the result.
    pub(crate) result: u32,
    /// The types of the arguments.
    pub(crate) arguments: Vec<u32>,
    /// How many of them may be left out, from the last on.
    pub(crate) optional: usize,
}

/// The functions that clients look for, and those of the dialect.
pub(crate) fn functions() -> Vec<FunctionRow> {
    let io = IO_FUNCTIONS.iter().map(|(oid, name, result, arguments)| FunctionRow {
        oid: *oid,
        name,
        schema: "pg_catalog",
        kind: "f",
        result: *result,
        arguments: arguments.to_vec(),
        optional: 0,
    });
    let own = crate::sql::catalog_functions().map(|function| FunctionRow {
        oid: function_oid(function.name),
        name: function.name,
        schema: "pg_catalog",
        kind: "f",
        result: type_oid(function.gives),
        arguments: function.arguments.iter().map(|takes| takes.oid()).collect(),
        optional: function.optional,
    });
    let meta = MetaFunction::ALL.iter().map(|function| FunctionRow {
        oid: function_oid(function.name()),
        name: function.name(),
        schema: "v_catalog",
        kind: "f",
        result: if *function == MetaFunction::HasRole { BOOL } else { VARCHAR },
        arguments: vec![VARCHAR; function.arity().1],
        optional: function.arity().1 - function.arity().0,
    });
    let procedures = Procedure::ALL.iter().map(|procedure| FunctionRow {
        oid: function_oid(procedure.name()),
        name: procedure.name(),
        schema: "hologres",
        kind: "p",
        result: 2278,
        arguments: vec![TEXT; procedure.arity().1],
        optional: procedure.arity().1 - procedure.arity().0,
    });
    io.chain(own).chain(meta).chain(procedures).collect()
}

pub(super) fn proc(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    let owner = owner_oid(&snapshot.catalog);
    for function in functions() {
        let arguments: Vec<i64> = function.arguments.iter().map(|oid| i64::from(*oid)).collect();
        rows.push_named([
            ("oid", function.oid.into()),
            ("proname", function.name.into()),
            ("pronamespace", schema_oid(function.schema).into()),
            ("proowner", owner.into()),
            ("prolang", INTERNAL.into()),
            ("procost", Cell::Float(1.0)),
            ("prorows", Cell::Float(0.0)),
            ("provariadic", 0i64.into()),
            ("prosupport", 0i64.into()),
            ("prokind", function.kind.into()),
            ("prosecdef", false.into()),
            ("proleakproof", false.into()),
            ("proisstrict", false.into()),
            ("proretset", false.into()),
            ("provolatile", if function.schema == "pg_catalog" { "s" } else { "v" }.into()),
            ("proparallel", "u".into()),
            ("pronargs", arguments.len().into()),
            ("pronargdefaults", function.optional.into()),
            ("prorettype", function.result.into()),
            ("proargtypes", arguments.into()),
            ("prosrc", function.name.into()),
        ])?;
    }
    Ok(())
}
