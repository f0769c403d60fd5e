//! Cursors: portals that DECLARE makes and FETCH reads, as in PostgreSQL.

use std::pin::Pin;
use std::sync::Arc;

use switchyard_dialect::{CursorOptions, FetchCount, FetchDirection, Ident, Parsed, Redacted, SqlStatement, Statement};
use switchyard_engine::{ClientError, CursorRow, Parameter, Scalar, SqlState};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::futures::Notified;

use super::Served;
use super::extended::OVERHEAD_BYTES;
use super::line::Failure;
use super::portal::{Facts, Portal, Reading, Room, Work};
use crate::encode::FieldFormat;
use crate::error::canceled;
use crate::live::now_us;
use crate::session::{Answer, Fetched, Outcome};

/// What may be fetched at once, in bytes of its rows.
const FETCH_LIMIT: &str = "query_memory_bytes_max";

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Served<S> {
    /// Runs DECLARE, FETCH, MOVE or CLOSE.
    pub(super) async fn cursor_statement(
        &mut self,
        source: &str,
        parsed: &Parsed,
        values: &[Parameter],
        interrupted: Pin<&mut Notified<'_>>,
    ) -> Result<Outcome, Failure> {
        match &parsed.statement {
            Statement::DeclareCursor { name, options, query } => {
                let facts = Facts {
                    statement: Redacted(&parsed.statement).to_string().into(),
                    created_us: now_us(),
                    holds: options.hold,
                    binary: options.binary,
                    scrolls: options.scroll == Some(true),
                    outlives: false,
                };
                self.check_declare(name, *options, parsed)?;
                self.declare(name, facts, source, query, values, interrupted).await
            }
            Statement::FetchCursor { name, direction, moves } => {
                self.fetch(&name.0, *direction, *moves, interrupted).await
            }
            Statement::CloseCursor(Some(Ident(name))) => match self.portals.remove(name) {
                Some(_) => Ok(Outcome::tag("CLOSE CURSOR")),
                None => Err(no_cursor(name).into()),
            },
            _ => {
                self.portals.clear();
                Ok(Outcome::tag("CLOSE CURSOR ALL"))
            }
        }
    }

    fn check_declare(&self, Ident(name): &Ident, options: CursorOptions, parsed: &Parsed) -> Result<(), ClientError> {
        if !options.hold && !self.session.in_block() {
            let message = "DECLARE CURSOR can only be used in transaction blocks";
            return Err(ClientError::new(SqlState::NoActiveTransaction, message));
        }
        if self.portals.contains_key(name) {
            return Err(cursor_exists(name));
        }
        self.check_room("portals", self.portals.len(), "portals_max", parsed.text.len())
    }

    async fn declare(
        &mut self,
        Ident(name): &Ident,
        facts: Facts,
        source: &str,
        query: &SqlStatement,
        values: &[Parameter],
        interrupted: Pin<&mut Notified<'_>>,
    ) -> Result<Outcome, Failure> {
        let rows = tokio::select! {
            biased;
            rows = self.session.query(source, query, values) => rows?,
            () = interrupted => return Err(canceled().into()),
            ended = self.line.lost() => return Err(ended.into()),
        };
        let format = if facts.binary { FieldFormat::Binary } else { FieldFormat::Text };
        let formats = vec![format; rows.columns.len()];
        let mut reading = Reading::of_query(rows, source.into(), &formats, self.style());
        if facts.scrolls {
            reading = reading.scrolling(self.room());
        }
        let portal = Portal {
            columns: reading.columns.clone(),
            formats,
            work: Work::Reading(Box::new(reading)),
            bytes: OVERHEAD_BYTES + facts.statement.len(),
            depth: self.session.savepoint_depth(),
            facts,
        };
        self.portals.insert(name.clone(), portal);
        Ok(Outcome::tag("DECLARE CURSOR"))
    }

    async fn fetch(
        &mut self,
        name: &str,
        direction: FetchDirection,
        moves: bool,
        mut interrupted: Pin<&mut Notified<'_>>,
    ) -> Result<Outcome, Failure> {
        let Some(mut portal) = self.portals.remove(name) else { return Err(no_cursor(name).into()) };
        // A cursor that failed, or was stopped in the middle, is gone: nobody knows where it stands.
        self.open(&mut portal, name, interrupted.as_mut()).await?;
        let Work::Reading(reading) = &mut portal.work else {
            let message = format!("portal \"{name}\" cannot be run");
            return Err(ClientError::new(SqlState::ObjectNotInPrerequisiteState, message).into());
        };
        let mut taking = Taking {
            reading,
            taken: Vec::new(),
            bytes: 0,
            bytes_max: self.session.limit(FETCH_LIMIT),
            discards: moves,
        };
        let count = tokio::select! {
            biased;
            () = interrupted => return Err(canceled().into()),
            count = taking.take(direction) => count,
            ended = self.line.lost() => return Err(ended.into()),
        };
        let rows = taking.taken;
        let (columns, binary) = (portal.columns.clone(), portal.facts.binary);
        let refused_only = matches!(&count, Err(error) if error.sqlstate == SqlState::ObjectNotInPrerequisiteState);
        if count.is_ok() || refused_only {
            self.portals.insert(name.to_owned(), portal);
        }
        let count = count?;
        if moves {
            return Ok(Outcome::tag(format!("MOVE {count}")));
        }
        let answer = Answer::Fetched(Fetched { columns, rows, binary });
        Ok(Outcome { warnings: Vec::new(), answer })
    }

    /// Runs the statement of a portal that a message made and nobody has executed yet.
    async fn open(
        &mut self,
        portal: &mut Portal,
        name: &str,
        interrupted: Pin<&mut Notified<'_>>,
    ) -> Result<(), Failure> {
        let Work::Ready { prepared, parsed, values } = &portal.work else { return Ok(()) };
        let Statement::Sql(query) = &parsed.statement else {
            let message = format!("portal \"{name}\" cannot be run");
            return Err(ClientError::new(SqlState::ObjectNotInPrerequisiteState, message).into());
        };
        let source = Arc::clone(&prepared.source);
        let rows = tokio::select! {
            biased;
            rows = self.session.query(&source, query, values) => rows?,
            () = interrupted => return Err(canceled().into()),
            ended = self.line.lost() => return Err(ended.into()),
        };
        let reading = Reading::of_query(rows, source, &portal.formats, self.style());
        portal.work = Work::Reading(Box::new(reading));
        Ok(())
    }

    /// How much a cursor may keep from now on.
    fn room(&self) -> Room {
        Room {
            stock: Arc::clone(&self.stock),
            cursor_max: self.session.limit(FETCH_LIMIT),
            session_max: self.session.limit("cursors_bytes_max"),
            member_max: self.session.limit("cursors_member_bytes_max"),
        }
    }

    /// Reads what is left of the cursors WITH HOLD, before their transaction is committed.
    pub(super) async fn hold(&mut self) -> Result<(), Failure> {
        let room = self.room();
        let entry = Arc::clone(&self.entry);
        let mut interrupted = std::pin::pin!(entry.interrupted());
        for portal in self.portals.values_mut().filter(|portal| portal.facts.holds && !portal.facts.outlives) {
            let Work::Reading(reading) = &mut portal.work else { continue };
            tokio::select! {
                biased;
                () = interrupted.as_mut() => return Err(canceled().into()),
                held = reading.hold(&room) => held?,
                ended = self.line.lost() => return Err(ended.into()),
            }
        }
        Ok(())
    }

    /// Closes the cursors that end with a transaction which was committed.
    pub(super) fn keep_held(&mut self) {
        self.portals.retain(|_, portal| portal.facts.holds);
        for portal in self.portals.values_mut() {
            portal.facts.outlives = true;
            portal.depth = 0;
        }
    }

    /// The cursors and portals as `pg_cursors` shows them.
    pub(super) fn cursor_rows(&self) -> Arc<[CursorRow]> {
        let mut rows: Vec<CursorRow> = self
            .portals
            .iter()
            .map(|(name, portal)| CursorRow {
                name: name.clone(),
                statement: portal.facts.statement.to_string(),
                holds: portal.facts.holds,
                binary: portal.facts.binary,
                scrolls: portal.facts.scrolls,
                created_us: portal.facts.created_us,
            })
            .collect();
        rows.sort_by(|a, b| a.name.cmp(&b.name));
        rows.into()
    }
}

/// Rows that are being taken from a cursor.
struct Taking<'a> {
    reading: &'a mut Reading,
    taken: Vec<Vec<Scalar>>,
    bytes: usize,
    bytes_max: usize,
    /// MOVE: rows are only counted.
    discards: bool,
}

impl Taking<'_> {
    /// Goes as a FETCH says; how many rows it passed. Which rows are meant, PostgreSQL's manual says.
    async fn take(&mut self, direction: FetchDirection) -> Result<usize, ClientError> {
        match direction {
            FetchDirection::Forward(FetchCount::All) => self.forward(usize::MAX).await,
            FetchDirection::Backward(FetchCount::All) => self.backward(usize::MAX),
            FetchDirection::Forward(FetchCount::Rows(count)) => self.by(i64::from(count)).await,
            FetchDirection::Backward(FetchCount::Rows(count)) => self.by(-i64::from(count)).await,
            FetchDirection::Relative(0) | FetchDirection::Absolute(0) if self.reading.place() == 0 => Ok(0),
            FetchDirection::Relative(0) => self.again(),
            FetchDirection::Relative(count) => {
                let steps = amount(count) - 1;
                if count > 0 {
                    self.skip(steps).await?;
                    self.forward(1).await
                } else {
                    self.skip_back(steps)?;
                    self.backward(1)
                }
            }
            FetchDirection::Absolute(row @ 0..) => self.row(amount(row)).await,
            FetchDirection::Absolute(from_end) => {
                self.check_scrolls()?;
                self.skip(usize::MAX).await?;
                self.skip_back(amount(from_end) - 1)?;
                self.backward(1)
            }
        }
    }

    async fn by(&mut self, count: i64) -> Result<usize, ClientError> {
        let steps = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
        match count {
            0 => self.again(),
            1.. => self.forward(steps).await,
            _ => self.backward(steps),
        }
    }

    /// The row of a number, from 1; 0 is before the first.
    async fn row(&mut self, row: usize) -> Result<usize, ClientError> {
        if row <= self.reading.place() {
            self.check_scrolls()?;
            self.reading.rewind();
        }
        if row == 0 {
            return Ok(0);
        }
        self.skip(row - 1 - self.reading.place()).await?;
        self.forward(1).await
    }

    /// The row it stands on, once more.
    fn again(&mut self) -> Result<usize, ClientError> {
        if !self.reading.on_row() {
            return Ok(0);
        }
        if self.discards {
            return Ok(1);
        }
        self.check_scrolls()?;
        match self.reading.current() {
            Some(row) => self.keep(row).map(|()| 1),
            None => Ok(0),
        }
    }

    async fn forward(&mut self, count: usize) -> Result<usize, ClientError> {
        let mut passed = 0;
        while passed < count
            && let Some(row) = self.reading.next().await
        {
            self.keep(row?)?;
            passed += 1;
        }
        Ok(passed)
    }

    fn backward(&mut self, count: usize) -> Result<usize, ClientError> {
        self.check_scrolls()?;
        let mut passed = 0;
        while passed < count
            && let Some(row) = self.reading.prior()
        {
            self.keep(row)?;
            passed += 1;
        }
        Ok(passed)
    }

    async fn skip(&mut self, count: usize) -> Result<(), ClientError> {
        let mut passed = 0;
        while passed < count
            && let Some(row) = self.reading.next().await
        {
            row?;
            passed += 1;
        }
        Ok(())
    }

    fn skip_back(&mut self, count: usize) -> Result<(), ClientError> {
        self.check_scrolls()?;
        let mut passed = 0;
        while passed < count && self.reading.prior().is_some() {
            passed += 1;
        }
        Ok(())
    }

    fn keep(&mut self, row: Vec<Scalar>) -> Result<(), ClientError> {
        if self.discards {
            return Ok(());
        }
        self.bytes = self.bytes.saturating_add(row.iter().map(Scalar::bytes).sum());
        if self.bytes > self.bytes_max {
            let message = "out of memory for the rows fetched at once";
            return Err(ClientError::new(SqlState::OutOfMemory, message)
                .with_detail(format!("They take more than {} bytes.", self.bytes_max))
                .with_hint("Fetch fewer rows at once, or raise query_memory_bytes_max."));
        }
        self.taken.push(row);
        Ok(())
    }

    fn check_scrolls(&self) -> Result<(), ClientError> {
        if self.reading.scrolls() {
            return Ok(());
        }
        Err(ClientError::new(SqlState::ObjectNotInPrerequisiteState, "cursor can only scan forward")
            .with_hint("Declare it with SCROLL option to enable backward scan."))
    }
}

fn amount(count: i32) -> usize {
    usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX)
}

pub(super) fn cursor_exists(name: &str) -> ClientError {
    ClientError::new(SqlState::DuplicateCursor, format!("cursor \"{name}\" already exists"))
}

fn no_cursor(name: &str) -> ClientError {
    ClientError::new(SqlState::InvalidCursorName, format!("cursor \"{name}\" does not exist"))
}
