//! Results that a client reads, at once or in portions.

use std::sync::Arc;

use futures::stream::{BoxStream, StreamExt};
use jiff::tz::TimeZone;
use switchyard_dialect::Parsed;
use switchyard_engine::plan::Rows;
use switchyard_engine::{OutputColumn, PgType, QueryError, QueryRows, Scalar};

use super::prepared::Prepared;
use crate::encode::{FieldFormat, RowShape};
use crate::session::columns;

/// A statement with its values, and how far it was run.
pub(crate) struct Portal {
    pub(crate) work: Work,
    /// The columns, as far as they are known before it runs; none when it gives no rows.
    pub(crate) columns: Vec<OutputColumn>,
    pub(crate) formats: Vec<FieldFormat>,
    /// What it keeps of the client, in bytes.
    pub(crate) bytes: usize,
    /// How many savepoints there were when it was made: going back to one of them closes it.
    pub(crate) depth: usize,
}

/// How far a portal was run.
pub(crate) enum Work {
    /// There is nothing to run.
    Empty,
    /// Not yet.
    Ready { prepared: Arc<Prepared>, parsed: Arc<Parsed>, values: Vec<Scalar> },
    /// Some rows may be left.
    Reading(Box<Reading>),
    /// All of it, and it gave no rows.
    Done,
}

/// Rows that are being read.
pub(crate) struct Reading {
    pub(crate) columns: Vec<OutputColumn>,
    pub(crate) rows: BoxStream<'static, Result<Vec<Scalar>, QueryError>>,
    pub(crate) shape: RowShape,
    /// The text that errors point into.
    pub(crate) source: Arc<str>,
    tag: &'static str,
}

impl Reading {
    /// The rows of a query.
    pub(crate) fn of_query(query: QueryRows, source: Arc<str>, formats: &[FieldFormat], zone: TimeZone) -> Self {
        let QueryRows { columns, rows } = query;
        // A portal that was read to its end may be asked again.
        let rows = rows.fuse().boxed();
        Self { shape: shape(&columns, formats, zone), columns, rows, source, tag: "SELECT" }
    }

    /// A few rows that are known.
    pub(crate) fn of_rows(rows: Rows, source: Arc<str>, formats: &[FieldFormat], zone: TimeZone) -> Self {
        let columns = columns(&rows);
        let kinds: Vec<PgType> = columns.iter().map(|column| column.kind).collect();
        let known = rows.rows.into_iter().map(move |row| {
            let value = |(text, kind): (Option<String>, &PgType)| known(text, *kind);
            Ok(row.into_iter().zip(&kinds).map(value).collect())
        });
        let known = futures::stream::iter(known.collect::<Vec<_>>()).fuse().boxed();
        Self { shape: shape(&columns, formats, zone), columns, rows: known, source, tag: rows.tag }
    }

    /// The command tag after this many rows.
    pub(crate) fn tag(&self, count: usize) -> String {
        match self.tag.split_once(' ').map_or(self.tag, |(verb, _)| verb) {
            "SELECT" => format!("SELECT {count}"),
            _ => self.tag.to_owned(),
        }
    }
}

/// A value that is known as text; a truth is `t` or `f`.
fn known(text: Option<String>, kind: PgType) -> Scalar {
    match (text, kind) {
        (None, _) => Scalar::Null,
        (Some(text), PgType::Bool) => Scalar::Bool(text == "t"),
        (Some(text), _) => Scalar::Text(text),
    }
}

fn shape(columns: &[OutputColumn], formats: &[FieldFormat], zone: TimeZone) -> RowShape {
    let format = |index| formats.get(index).copied().unwrap_or(FieldFormat::Text);
    RowShape::new(columns.iter().enumerate().map(|(index, column)| (column.kind, format(index))).collect(), zone)
}
