//! The functions that there are: PostgreSQL's own that work, with its numbers, those of its catalog, those that give rows,
//! and those of the dialect.

mod built_in;

use std::sync::LazyLock;

use switchyard_dialect::{MetaFunction, Procedure};

use self::built_in::BUILT_IN;
use super::constants::INTERNAL;
use super::objects::{function_oid, owner_oid, schema_oid, type_oid};
use super::type_with_oid;
use super::types::IO_FUNCTIONS;
use crate::snapshot::Snapshot;
use crate::sql::SET_FUNCTIONS;
use crate::tables::{Cell, Rows, RowsError};

/// The type `boolean`.
const BOOL: u32 = 16;
/// The type `text`.
const TEXT: u32 = 25;
/// The type `character varying`.
const VARCHAR: u32 = 1043;
/// The type of rows of any columns.
const RECORD: u32 = 2249;
/// What gives nothing.
const VOID: u32 = 2278;

/// A function, as `pg_proc` shows it.
#[derive(Debug, Clone)]
pub(crate) struct FunctionRow {
    pub(crate) oid: u32,
    pub(crate) name: &'static str,
    pub(crate) schema: &'static str,
    /// `f`, `p`, `a` or `w`.
    pub(crate) kind: &'static str,
    /// `i`, `s` or `v`.
    volatile: &'static str,
    strict: bool,
    /// The type of the result.
    pub(crate) result: u32,
    /// The types of the arguments.
    pub(crate) arguments: Vec<u32>,
    /// How many of them may be left out, from the last on.
    optional: usize,
    /// The type of those that may be given any number of times; 0 for none.
    variadic: u32,
    /// Whether it gives rows.
    pub(crate) sets: bool,
    /// The names of arguments and columns, where they have names.
    names: Vec<&'static str>,
    /// The types of the columns.
    columns: Vec<u32>,
}

impl FunctionRow {
    fn new(name: &'static str, schema: &'static str, result: u32, arguments: Vec<u32>) -> Self {
        Self {
            oid: function_oid(name),
            name,
            schema,
            kind: "f",
            volatile: if schema == "pg_catalog" { "s" } else { "v" },
            strict: false,
            result,
            arguments,
            optional: 0,
            variadic: 0,
            sets: false,
            names: Vec::new(),
            columns: Vec::new(),
        }
    }

    /// Whether it is PostgreSQL's, and clients call it.
    #[cfg(test)]
    pub(crate) fn is_built_in(&self) -> bool {
        BUILT_IN.iter().any(|(oid, ..)| *oid == self.oid)
    }

    /// The arguments as `\\df` shows them.
    pub(crate) fn shown_arguments(&self) -> String {
        let shown = self.arguments.iter().enumerate().map(|(index, oid)| match self.names.get(index) {
            Some(name) => format!("{name} {}", shown_type(*oid)),
            None if index + 1 == self.arguments.len() && self.variadic != 0 => {
                format!("VARIADIC {}", shown_type(*oid))
            }
            None => shown_type(*oid).to_owned(),
        });
        shown.collect::<Vec<_>>().join(", ")
    }

    /// The result as `\\df` shows it; none of a procedure.
    pub(crate) fn shown_result(&self) -> Option<String> {
        if self.kind == "p" {
            return None;
        }
        if !self.columns.is_empty() {
            let names = self.names.iter().skip(self.arguments.len());
            let columns = names.zip(&self.columns).map(|(name, oid)| format!("{name} {}", shown_type(*oid)));
            return Some(format!("TABLE({})", columns.collect::<Vec<_>>().join(", ")));
        }
        let shown = shown_type(self.result);
        Some(if self.sets { format!("SETOF {shown}") } else { shown.to_owned() })
    }
}

fn shown_type(oid: u32) -> &'static str {
    type_with_oid(oid).map_or("???", |facts| facts.shown)
}

/// The functions that clients look for, and those of the dialect.
pub(crate) fn functions() -> &'static [FunctionRow] {
    static ALL: LazyLock<Vec<FunctionRow>> = LazyLock::new(all);
    &ALL
}

fn all() -> Vec<FunctionRow> {
    let io = IO_FUNCTIONS.iter().map(|(oid, name, result, arguments)| FunctionRow {
        oid: *oid,
        ..FunctionRow::new(name, "pg_catalog", *result, arguments.to_vec())
    });
    let built_in = BUILT_IN.iter().map(|(oid, name, letters, result, arguments, variadic)| {
        let letter = |index: usize| letters.get(index..=index).unwrap_or_default();
        FunctionRow {
            oid: *oid,
            kind: letter(0),
            volatile: letter(1),
            strict: letter(2) == "t",
            sets: letter(3) == "t",
            variadic: *variadic,
            ..FunctionRow::new(name, "pg_catalog", *result, arguments.to_vec())
        }
    });
    let known = |name: &str| BUILT_IN.iter().any(|(_, own, ..)| *own == name);
    let own = crate::sql::catalog_functions().filter(move |function| !known(function.name)).map(|function| {
        let arguments = function.arguments.iter().map(|takes| takes.oid()).collect();
        let row = FunctionRow::new(function.name, "pg_catalog", type_oid(function.gives), arguments);
        FunctionRow { optional: function.optional, ..row }
    });
    let sets = SET_FUNCTIONS.iter().map(|function| {
        let arguments = function.arguments.iter().map(|(_, kind)| type_oid(*kind)).collect();
        let names = function.arguments.iter().map(|(name, _)| *name);
        FunctionRow {
            optional: function.optional,
            sets: true,
            names: names.chain(function.columns.iter().map(|column| column.name)).collect(),
            columns: function.columns.iter().map(|column| type_oid(column.kind)).collect(),
            ..FunctionRow::new(function.name, "switchyard", RECORD, arguments)
        }
    });
    let meta = MetaFunction::ALL.iter().map(|function| {
        let result = if *function == MetaFunction::HasRole { BOOL } else { VARCHAR };
        let row = FunctionRow::new(function.name(), "v_catalog", result, vec![VARCHAR; function.arity().1]);
        FunctionRow { optional: function.arity().1 - function.arity().0, ..row }
    });
    let procedures = Procedure::ALL.iter().map(|procedure| FunctionRow {
        kind: "p",
        optional: procedure.arity().1 - procedure.arity().0,
        ..FunctionRow::new(procedure.name(), "hologres", VOID, vec![TEXT; procedure.arity().1])
    });
    io.chain(built_in).chain(own).chain(sets).chain(meta).chain(procedures).collect()
}

pub(super) fn proc(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    let owner = owner_oid(&snapshot.catalog);
    for function in functions() {
        let numbers = |oids: &[u32]| oids.iter().map(|oid| i64::from(*oid)).collect::<Vec<i64>>();
        let arguments = numbers(&function.arguments);
        let (mut all, mut modes, mut names) = (Cell::Null, Cell::Null, Cell::Null);
        if !function.columns.is_empty() {
            all = [arguments.clone(), numbers(&function.columns)].concat().into();
            let of = |mode: &str, count| vec![mode.to_owned(); count];
            modes = [of("i", arguments.len()), of("t", function.columns.len())].concat().into();
        }
        if !function.names.is_empty() {
            names = function.names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>().into();
        }
        rows.push_named([
            ("oid", function.oid.into()),
            ("proname", function.name.into()),
            ("pronamespace", schema_oid(function.schema).into()),
            ("proowner", owner.into()),
            ("prolang", INTERNAL.into()),
            ("procost", Cell::Float(1.0)),
            ("prorows", Cell::Float(if function.sets { 1000.0 } else { 0.0 })),
            ("provariadic", function.variadic.into()),
            ("prosupport", 0i64.into()),
            ("prokind", function.kind.into()),
            ("prosecdef", false.into()),
            ("proleakproof", false.into()),
            ("proisstrict", function.strict.into()),
            ("proretset", function.sets.into()),
            ("provolatile", function.volatile.into()),
            ("proparallel", "u".into()),
            ("pronargs", arguments.len().into()),
            ("pronargdefaults", function.optional.into()),
            ("prorettype", function.result.into()),
            ("proargtypes", arguments.into()),
            ("proallargtypes", all),
            ("proargmodes", modes),
            ("proargnames", names),
            ("prosrc", function.name.into()),
        ])?;
    }
    Ok(())
}
