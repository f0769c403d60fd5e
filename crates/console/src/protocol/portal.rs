//! Results that a client reads, at once or in portions.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::stream::{BoxStream, StreamExt};
use switchyard_dialect::Parsed;
use switchyard_engine::plan::Rows;
use switchyard_engine::{ClientError, OutputColumn, Parameter, PgType, QueryError, QueryRows, Scalar, SqlState};

use super::prepared::Prepared;
use crate::encode::{FieldFormat, RowShape, Style};
use crate::live::now_us;
use crate::session::{Fetched, columns};

/// A statement with its values, and how far it was run. Cursors of SQL are portals too.
pub(crate) struct Portal {
    pub(crate) work: Work,
    /// The columns, as far as they are known before it runs; none when it gives no rows.
    pub(crate) columns: Arc<[OutputColumn]>,
    pub(crate) formats: Vec<FieldFormat>,
    /// What it keeps of the client, in bytes.
    pub(crate) bytes: usize,
    /// How many savepoints there were when it was made: going back to one of them closes it.
    pub(crate) depth: usize,
    pub(crate) facts: Facts,
}

/// What a portal was made as.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    /// The statement, secrets redacted.
    pub(crate) statement: Arc<str>,
    pub(crate) created_us: i64,
    /// WITH HOLD.
    pub(crate) holds: bool,
    /// BINARY.
    pub(crate) binary: bool,
    /// SCROLL.
    pub(crate) scrolls: bool,
    /// The transaction it was declared in is over.
    pub(crate) outlives: bool,
}

impl Facts {
    /// Of a portal that a message made.
    pub(crate) fn of_message(statement: Arc<str>) -> Self {
        let created_us = now_us();
        Self { statement, created_us, holds: false, binary: false, scrolls: false, outlives: false }
    }
}

/// How far a portal was run.
pub(crate) enum Work {
    /// There is nothing to run.
    Empty,
    /// Not yet.
    Ready { prepared: Arc<Prepared>, parsed: Arc<Parsed>, values: Vec<Parameter> },
    /// Some rows may be left.
    Reading(Box<Reading>),
    /// All of it, and it gave no rows.
    Done,
}

/// Rows that are being read.
pub(crate) struct Reading {
    pub(crate) columns: Arc<[OutputColumn]>,
    rows: BoxStream<'static, Result<Vec<Scalar>, QueryError>>,
    pub(crate) shape: RowShape,
    /// The text that errors point into.
    source: Arc<str>,
    tag: &'static str,
    /// Where it stands: on the row of this number, from 1; before the first at 0, behind the last at one more than theirs.
    place: usize,
    /// How many rows there are, once that is known.
    len: Option<usize>,
    /// The rows that were read, where it can go back to them.
    back: Option<Kept>,
}

/// How many bytes the rows take that a session's cursors keep, beside what those of all sessions of the member keep.
#[derive(Debug)]
pub(crate) struct Stock {
    session: AtomicUsize,
    member: Arc<AtomicUsize>,
}

impl Stock {
    /// Of a session that keeps nothing yet.
    pub(crate) fn of_session(member: &Arc<AtomicUsize>) -> Arc<Self> {
        Arc::new(Self { session: AtomicUsize::new(0), member: Arc::clone(member) })
    }
}

/// How much a cursor may keep, in bytes: by itself, with the session's others, and with those of all sessions.
#[derive(Debug, Clone)]
pub(crate) struct Room {
    pub(crate) stock: Arc<Stock>,
    pub(crate) cursor_max: usize,
    pub(crate) session_max: usize,
    pub(crate) member_max: usize,
}

/// Rows that are kept. Their bytes are given back when it is dropped.
struct Kept {
    rows: Vec<Vec<Scalar>>,
    bytes: usize,
    room: Room,
}

impl Kept {
    fn new(room: Room) -> Self {
        Self { rows: Vec::new(), bytes: 0, room }
    }

    fn push(&mut self, row: Vec<Scalar>) -> Result<(), ClientError> {
        let bytes = size_of::<Vec<Scalar>>() + row.iter().map(Scalar::bytes).sum::<usize>();
        // Counted before it is looked at, so that two at once cannot both take the last of it.
        self.bytes = self.bytes.saturating_add(bytes);
        let in_session = self.room.stock.session.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        let in_member = self.room.stock.member.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        let Room { cursor_max, session_max, member_max, .. } = self.room;
        if self.bytes > cursor_max {
            let hint = "The setting query_memory_bytes_max sets this limit.";
            return Err(no_room("the rows of the cursor", cursor_max, hint));
        }
        if in_session > session_max {
            let hint = "Close some of them, or raise cursors_bytes_max.";
            return Err(no_room("the rows of the session's cursors", session_max, hint));
        }
        if in_member > member_max {
            let hint = "Close some of them, or raise cursors_member_bytes_max.";
            return Err(no_room("the rows of the cursors of all sessions", member_max, hint));
        }
        self.rows.push(row);
        Ok(())
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        for counted in [&self.room.stock.session, &*self.room.stock.member] {
            counted.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}

fn no_room(what: &str, bytes_max: usize, hint: &str) -> ClientError {
    ClientError::new(SqlState::OutOfMemory, format!("out of memory for {what}"))
        .with_detail(format!("They take more than {bytes_max} bytes."))
        .with_hint(hint)
}

impl Reading {
    /// The rows of a query.
    pub(crate) fn of_query(query: QueryRows, source: Arc<str>, formats: &[FieldFormat], style: Style) -> Self {
        let QueryRows { columns, rows } = query;
        Self::new(columns, rows, source, "SELECT", formats, style)
    }

    /// A few rows that are known.
    pub(crate) fn of_rows(rows: Rows, source: Arc<str>, formats: &[FieldFormat], style: Style) -> Self {
        let columns: Arc<[OutputColumn]> = columns(&rows).into();
        let kinds: Vec<PgType> = columns.iter().map(|column| column.kind).collect();
        let known = rows.rows.into_iter().map(move |row| {
            let value = |(text, kind): (Option<String>, &PgType)| known(text, *kind);
            Ok(row.into_iter().zip(&kinds).map(value).collect())
        });
        let known = futures::stream::iter(known.collect::<Vec<_>>()).boxed();
        Self::new(columns, known, source, rows.tag, formats, style)
    }

    /// Rows that were fetched from a cursor.
    pub(crate) fn of_fetched(fetched: Fetched, source: Arc<str>, formats: &[FieldFormat], style: Style) -> Self {
        let rows = futures::stream::iter(fetched.rows.into_iter().map(Ok)).boxed();
        Self::new(fetched.columns, rows, source, "FETCH", formats, style)
    }

    fn new(
        columns: Arc<[OutputColumn]>,
        rows: BoxStream<'static, Result<Vec<Scalar>, QueryError>>,
        source: Arc<str>,
        tag: &'static str,
        formats: &[FieldFormat],
        style: Style,
    ) -> Self {
        let shape = shape(&columns, formats, style);
        Self { shape, columns, rows, source, tag, place: 0, len: None, back: None }
    }

    /// Lets it go back, keeping rows as far as there is room.
    pub(crate) fn scrolling(mut self, room: Room) -> Self {
        self.back = Some(Kept::new(room));
        self
    }

    /// Whether it can go back.
    pub(crate) fn scrolls(&self) -> bool {
        self.back.is_some()
    }

    /// Where it stands; see the field.
    pub(crate) fn place(&self) -> usize {
        self.place
    }

    /// Whether it stands on a row.
    pub(crate) fn on_row(&self) -> bool {
        self.place > 0 && self.len.is_none_or(|len| self.place <= len)
    }

    /// Goes before the first row; it must scroll.
    pub(crate) fn rewind(&mut self) {
        self.place = 0;
    }

    /// The next row; none behind the last.
    pub(crate) async fn next(&mut self) -> Option<Result<Vec<Scalar>, ClientError>> {
        if self.len.is_some_and(|len| self.place >= len) {
            self.place = self.len.unwrap_or_default().saturating_add(1);
            return None;
        }
        if let Some(row) = self.back.as_ref().and_then(|back| back.rows.get(self.place)) {
            self.place = self.place.saturating_add(1);
            return Some(Ok(row.clone()));
        }
        let Some(row) = self.rows.next().await else {
            self.len = Some(self.place);
            self.place = self.place.saturating_add(1);
            return None;
        };
        self.place = self.place.saturating_add(1);
        let row = match row {
            Ok(row) => row,
            Err(error) => return Some(Err(error.told(&self.source))),
        };
        match self.back.as_mut().map(|back| back.push(row.clone())) {
            Some(Err(error)) => Some(Err(error)),
            _ => Some(Ok(row)),
        }
    }

    /// The row before; none before the first.
    pub(crate) fn prior(&mut self) -> Option<Vec<Scalar>> {
        self.place = self.place.saturating_sub(1);
        let index = self.place.checked_sub(1)?;
        self.back.as_ref()?.rows.get(index).cloned()
    }

    /// The row it stands on, if it can go back to it.
    pub(crate) fn current(&self) -> Option<Vec<Scalar>> {
        self.back.as_ref()?.rows.get(self.place.checked_sub(1)?).cloned()
    }

    /// Reads the rows that are left, as far as there is room: what they are read from may change from now on.
    pub(crate) async fn hold(&mut self, room: &Room) -> Result<(), ClientError> {
        let place = self.place;
        if self.back.is_some() {
            while let Some(row) = self.next().await {
                row?;
            }
            self.place = place;
            return Ok(());
        }
        if self.len.is_some() {
            return Ok(());
        }
        let mut left = Kept::new(room.clone());
        while let Some(row) = self.rows.next().await {
            left.push(row.map_err(|error| error.told(&self.source))?)?;
        }
        let rows = std::mem::take(&mut left.rows);
        // What it keeps counts until it is closed, however much of it has been read.
        let kept = move |row| {
            let _counted = &left;
            Ok(row)
        };
        self.rows = futures::stream::iter(rows.into_iter().map(kept)).boxed();
        Ok(())
    }

    /// The command tag after this many rows.
    pub(crate) fn tag(&self, count: usize) -> String {
        match self.tag.split_once(' ').map_or(self.tag, |(verb, _)| verb) {
            verb @ ("SELECT" | "FETCH") => format!("{verb} {count}"),
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

fn shape(columns: &[OutputColumn], formats: &[FieldFormat], style: Style) -> RowShape {
    let format = |index| formats.get(index).copied().unwrap_or(FieldFormat::Text);
    RowShape::new(columns.iter().enumerate().map(|(index, column)| (column.kind, format(index))).collect(), style)
}
