//! The protocol behind the login: messages in, answers out, statements and portals kept between them.

mod attached;
mod copy;
mod cursors;
mod extended;
mod line;
mod portal;
mod prepared;
mod simple;
mod statements;
mod vertica;

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;

use switchyard_catalog::Catalog;
use switchyard_dialect::{DiscardWhat, Parsed, SqlStatement, Statement};
use switchyard_engine::{ClientError, OutputColumn, Parameter, Severity, SqlState};
use switchyard_session::{Client, Secured, SessionEntry};
use switchyard_wire::message::{TransactionStatus, backend_key_data, parameter_status, ready_for_query};
use switchyard_wire::{WireError, answer, frontend, frontend::Frontend};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::futures::Notified;
use tracing::{debug, info};

use crate::Console;
use crate::channels::Notification;
use crate::encode;
use crate::encode::{FieldFormat, Style, field};
use crate::encoding::Encoding;
use crate::error::canceled;
use crate::session::{Answer, Outcome, PortalEvent, Session};
pub(crate) use line::Waits;
use line::{Ended, Failure, KeepAliveBy, Line};
use portal::{Portal, Reading, Stock};
use prepared::Prepared;
use vertica::Vertica;

pub(crate) use attached::{Aside, aside};

/// Serves a client that has been told AuthenticationOk, until it goes or is sent away.
pub(crate) async fn run<S>(console: Arc<Console>, client: Client<S>, keep_alive: KeepAliveBy<Secured<S>>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + Sync + 'static,
{
    let mut served = match begin(console, client, keep_alive) {
        Ok(served) => served,
        Err(refused) => {
            let (line, error) = *refused;
            return Box::pin(farewell(line, error.fatal())).await;
        }
    };
    let ended = match Box::pin(served.ready()).await {
        Ok(()) => served.serve().await,
        Err(ended) => ended,
    };
    // Whoever looks for the session from now on does not find it, however long the client takes to read.
    let line = finish(*served, &ended);
    if let Some(error) = ended.told() {
        Box::pin(farewell(line, error)).await;
    }
}

fn finish<S>(served: Served<S>, ended: &Ended) -> Line<S> {
    let Served { line, mut session, entry, .. } = served;
    session.end();
    match ended {
        // Whoever asks why a client is gone must not have asked for everything to be told.
        Ended::Idle(_) | Ended::Blocked(_) => {
            info!(error = ended as &dyn std::error::Error, session = entry.id, "session ended");
        }
        _ => debug!(error = ended as &dyn std::error::Error, session = entry.id, "session ended"),
    }
    line
}

async fn farewell<S: AsyncRead + AsyncWrite + Unpin + Send>(mut line: Line<S>, error: ClientError) {
    line.farewell(&error).await;
}

/// A client that is served over a stream, be it in TLS or not; or what it is told, and over what.
type Begun<S> = Result<Box<Served<Secured<S>>>, Box<(Line<Secured<S>>, ClientError)>>;

/// Makes the session of a client, in a box: it is as large as all that is needed to wait for the next message. Where there
/// can be none, the client is to be told why.
fn begin<S>(console: Arc<Console>, client: Client<S>, keep_alive: KeepAliveBy<Secured<S>>) -> Begun<S>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + Sync + 'static,
{
    let Client { stream, leftover, database, parameters, session: place, .. } = client;
    let entry = Arc::clone(place.entry());
    let secret = place.secret().to_vec();
    let counters = Arc::clone(&console.live.query_log.counters);
    let stock = Stock::of_session(&console.live.kept_bytes);
    let message_bytes_max = console.context.limits.message_bytes_max;
    let line = Line::new(stream, leftover, Arc::clone(&entry), counters, message_bytes_max, keep_alive);
    let opened = check_database(&console, database.as_deref(), parameters)
        .and_then(|parameters| vertica::open(Arc::clone(&console), place, parameters));
    let (session, warnings) = match opened {
        Ok(opened) => opened,
        Err(error) => return Err(Box::new((line, error))),
    };
    let mut served = Box::new(Served {
        line,
        session,
        vertica: Vertica::of(&entry),
        entry,
        statements: HashMap::new(),
        portals: HashMap::new(),
        stock,
        skips: false,
    });
    served.line.notices(&warnings);
    served.reports();
    backend_key_data(&mut served.line.out, served.entry.process_id, &secret);
    Ok(served)
}

/// The console's other name: what watches pgbouncer asks there.
const PGBOUNCER: &str = "pgbouncer";

impl Console {
    /// Whether this is a name of the console.
    pub(crate) fn is_console(&self, catalog: &Catalog, name: &str) -> bool {
        name.to_lowercase() == catalog.database().name.folded() || name == PGBOUNCER
    }
}

/// The console is the database of the cluster's own name; `name@workload` names a workload too (`design.md` §3).
fn check_database(
    console: &Console,
    database: Option<&str>,
    mut parameters: Vec<(String, String)>,
) -> Result<Vec<(String, String)>, ClientError> {
    let catalog = console.catalog();
    let own = &catalog.database().name;
    let Some(named) = database else { return Ok(parameters) };
    let (name, workload) = match named.rsplit_once('@') {
        Some((name, workload)) => (name, Some(workload)),
        None => (named, None),
    };
    if !console.is_console(&catalog, name) {
        return Err(ClientError::new(SqlState::InvalidCatalogName, format!("database \"{name}\" does not exist"))
            .with_hint(format!("The console is the database \"{own}\".")));
    }
    if let Some(workload) = workload
        && !parameters.iter().any(|(name, _)| name == "workload")
    {
        parameters.push(("workload".to_owned(), workload.to_owned()));
    }
    Ok(parameters)
}

/// A client that is being served.
struct Served<S> {
    line: Line<S>,
    session: Session,
    entry: Arc<SessionEntry>,
    /// What is kept besides of a client of Vertica.
    vertica: Option<Vertica>,
    /// By name; none for a text without a statement.
    statements: HashMap<String, Option<Arc<Prepared>>>,
    portals: HashMap<String, Portal>,
    /// What they keep of rows.
    stock: Arc<Stock>,
    /// After an error in the extended protocol: nothing is looked at until Sync.
    skips: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Served<S> {
    /// One message after the other, until the client goes or is sent away.
    async fn serve(&mut self) -> Ended {
        loop {
            let quiet = !self.session.has_transaction() && !self.skips;
            let message = tokio::select! {
                biased;
                message = self.line.message() => message,
                notification = self.session.listening.next(), if quiet => {
                    self.notify(&notification);
                    match self.line.flush().await {
                        Ok(()) => continue,
                        Err(ended) => return ended,
                    }
                }
            };
            let (kind, body) = match message {
                Ok(message) => message,
                Err(ended) => return ended,
            };
            // In a box of its own: what answering takes is not held while the client is silent.
            if let Err(ended) = Box::pin(self.message(kind, &body)).await {
                return ended;
            }
        }
    }

    fn notify(&mut self, notification: &Notification) {
        let Notification { process_id, channel, payload } = notification;
        answer::notification(&mut self.line.out, *process_id, channel, payload);
    }

    async fn message(&mut self, kind: u8, body: &[u8]) -> Result<(), Ended> {
        if self.vertica.is_some() {
            return self.vertica_message(kind, body).await;
        }
        let message = match frontend::read(kind, body) {
            Err(error @ WireError::MessageKind(_)) => return Err(error.into()),
            message => message,
        };
        if self.skips && !matches!(message, Ok(Frontend::Sync | Frontend::Terminate)) {
            return Ok(());
        }
        let answered = match message {
            Ok(message) => self.answer(message).await,
            Err(error) => Err(ClientError::new(SqlState::ProtocolViolation, error.to_string()).into()),
        };
        self.answered(kind, answered).await
    }

    async fn answered(&mut self, kind: u8, answered: Result<(), Failure>) -> Result<(), Ended> {
        match answered {
            Ok(()) => Ok(()),
            Err(Failure::Ended(ended)) => Err(ended),
            Err(Failure::Told(error)) => self.fail(*error, matches!(kind, b'Q' | b'S')).await,
        }
    }

    async fn answer(&mut self, message: Frontend<'_>) -> Result<(), Failure> {
        match message {
            Frontend::Query(text) => self.query(text).await,
            Frontend::Parse { name, text, types } => self.parse(name, text, &types).await,
            Frontend::Bind(bind) => self.bind(&bind),
            Frontend::Describe(target, name) => self.describe(target, name),
            Frontend::Close(target, name) => self.close(target, name),
            Frontend::Execute { portal, rows_max } => self.execute(portal, rows_max).await,
            Frontend::Flush => Ok(self.line.flush().await?),
            Frontend::Sync => self.sync().await,
            Frontend::Terminate => Err(Ended::Closed.into()),
            // As PostgreSQL: what is left of a COPY that failed may still be on its way.
            Frontend::Copy => Ok(()),
        }?;
        Ok(self.line.drain().await?)
    }

    /// Tells of a mistake. A string of statements, or Sync, has been answered with that.
    async fn fail(&mut self, mut error: ClientError, answered: bool) -> Result<(), Ended> {
        self.session.mistake();
        let notices = std::mem::take(&mut error.notices_before);
        let notices: Vec<_> = notices.into_iter().map(switchyard_engine::Warning::notice).collect();
        self.line.notices(&notices);
        self.line.error(&error);
        if error.severity == Severity::Fatal {
            self.line.flush().await?;
            return Err(Ended::Closed);
        }
        if answered {
            return self.ready().await;
        }
        self.skips = true;
        self.line.flush().await
    }

    /// Says that the next statement may come.
    async fn ready(&mut self) -> Result<(), Ended> {
        if !self.session.in_transaction() {
            self.portals.retain(|_, portal| portal.facts.outlives);
            if self.portals.is_empty() {
                self.session.release();
            }
            while let Some(notification) = self.session.listening.pending() {
                self.notify(&notification);
            }
        }
        self.reports();
        let status = match (self.session.in_transaction(), self.session.failed()) {
            (false, _) => TransactionStatus::Idle,
            (true, false) => TransactionStatus::Open,
            (true, true) => TransactionStatus::Failed,
        };
        ready_for_query(&mut self.line.out, status);
        let waits = self.session.waits();
        self.line.wait_as(waits);
        self.line.flush().await?;
        self.line.rest();
        Ok(())
    }

    /// Tells of settings that are other than last told.
    fn reports(&mut self) {
        let news = if self.vertica.is_some() { self.vertica_reports() } else { self.session.reports() };
        for (name, value) in news {
            parameter_status(&mut self.line.out, name, &value);
            if name == "client_encoding" {
                self.line.speak(Encoding::named(&value));
            }
        }
    }

    /// Runs one statement, as far as its first row; a cancel request stops it, if it is a query. What changes the
    /// catalog is never left half way.
    async fn start(
        &mut self,
        source: &str,
        parsed: &Parsed,
        values: &[Parameter],
        mut interrupted: Pin<&mut Notified<'_>>,
    ) -> Result<Answer, Failure> {
        if self.vertica.is_some() && matches!(parsed.statement, Statement::Listen(_)) {
            return Err(vertica::no_listen().into());
        }
        if let Statement::Execute { name, arguments } = &parsed.statement {
            let bound = self.bind_prepared(&name.0, arguments, values, interrupted.as_mut()).await?;
            return self.start_one(&bound.source, &bound.parsed, &bound.values, interrupted).await;
        }
        self.start_one(source, parsed, values, interrupted).await
    }

    async fn start_one(
        &mut self,
        source: &str,
        parsed: &Parsed,
        values: &[Parameter],
        interrupted: Pin<&mut Notified<'_>>,
    ) -> Result<Answer, Failure> {
        let ran = match &parsed.statement {
            Statement::Sql(sql) => {
                self.show_objects(sql);
                tokio::select! {
                    // Nobody is looked for while the statement can go on.
                    biased;
                    ran = self.session.run(source, parsed, values) => ran,
                    () = interrupted => {
                        self.session.statement_failed();
                        Err(canceled())
                    }
                    ended = self.line.lost() => return Err(ended.into()),
                }
            }
            statement if is_of_session(statement) => self.run_own(source, parsed, values, interrupted).await?,
            Statement::Commit if !self.session.failed() => self.run_commit(source, parsed).await?,
            _ => self.session.run(source, parsed, values).await,
        };
        self.settle(&parsed.statement, ran.is_ok());
        let Outcome { mut warnings, answer } = ran?;
        warnings.retain(|warning| self.session.wants(warning));
        self.line.notices(&warnings);
        if !matches!(answer, Answer::Query(_)) {
            self.do_effects()?;
        }
        Ok(answer)
    }

    /// Does what the functions of a query have noted.
    fn do_effects(&mut self) -> Result<(), ClientError> {
        let warnings = self.session.do_effects()?;
        self.line.notices(&warnings);
        Ok(())
    }

    /// Runs a statement about what only the protocol knows: cursors and prepared statements.
    async fn run_own(
        &mut self,
        source: &str,
        parsed: &Parsed,
        values: &[Parameter],
        interrupted: Pin<&mut Notified<'_>>,
    ) -> Result<Result<Outcome, ClientError>, Failure> {
        let running = self.session.begin_statement(&parsed.statement);
        let ran = match self.session.admit(&parsed.statement) {
            Err(error) => Err(error.into()),
            Ok(()) if matches!(parsed.statement, Statement::Prepare { .. } | Statement::Deallocate(_)) => {
                self.prepared_statement(source, parsed).await
            }
            Ok(())
                if matches!(
                    parsed.statement,
                    Statement::Listen(_) | Statement::Unlisten(_) | Statement::Notify { .. }
                ) =>
            {
                self.session.channel_statement(&parsed.statement).map_err(Failure::from)
            }
            Ok(()) => self.cursor_statement(source, parsed, values, interrupted).await,
        };
        let ran = match ran {
            Ok(outcome) => Ok(outcome),
            Err(Failure::Told(error)) => Err(*error),
            Err(ended) => return Err(ended),
        };
        Ok(self.session.finish(running, ran))
    }

    /// Commits, after the cursors that stay have got their rows. If they cannot, nothing is committed.
    async fn run_commit(&mut self, source: &str, parsed: &Parsed) -> Result<Result<Outcome, ClientError>, Failure> {
        if let Err(failure) = self.hold().await {
            self.session.abort();
            self.settle(&parsed.statement, false);
            return Err(failure);
        }
        Ok(self.session.run(source, parsed, &[]).await)
    }

    /// Ends the transaction of one string, or of all up to Sync, if BEGIN has not made it a real one.
    async fn end_implicit(&mut self, failed: bool) -> Result<(), Failure> {
        if self.session.in_transaction() {
            return Ok(());
        }
        let held = if failed { Ok(()) } else { self.hold().await };
        let failed = failed || held.is_err();
        let ended = self.session.end_implicit(failed).await;
        self.follow_transaction();
        held?;
        ended?;
        if !failed {
            // A statement alone has no transaction that could tell of its end.
            self.keep_held();
        }
        Ok(())
    }

    /// Lets a query see the session's cursors and prepared statements, if it reads them.
    fn show_objects(&mut self, sql: &SqlStatement) {
        let facts = switchyard_engine::facts(sql);
        let needs = facts.needs();
        if needs.cursors || needs.prepared {
            self.session.show_objects(self.cursor_rows(), self.prepared_rows());
        }
    }

    /// Closes the portals, and forgets the statements, that do not outlive what a statement did.
    fn settle(&mut self, statement: &Statement, done: bool) {
        self.follow_transaction();
        if done && matches!(statement, Statement::Discard(DiscardWhat::All)) {
            self.statements.clear();
            self.portals.clear();
            self.session.let_go();
            self.vertica.iter_mut().for_each(Vertica::forget);
        }
    }

    /// Closes the portals that do not outlive what happened to the transaction.
    fn follow_transaction(&mut self) {
        for event in self.session.portal_events() {
            match event {
                PortalEvent::Committed => self.keep_held(),
                PortalEvent::RolledBack => self.portals.retain(|_, portal| portal.facts.outlives),
                PortalEvent::Back(depth) => {
                    self.portals.retain(|_, portal| portal.depth <= depth || portal.facts.outlives);
                }
                PortalEvent::Released(depth) => {
                    self.portals.values_mut().for_each(|portal| portal.depth = portal.depth.min(depth));
                }
            }
        }
    }

    /// Sends rows, at most `rows_max` of them unless that is 0. Says how many, and whether there may be more.
    async fn deliver(
        &mut self,
        reading: &mut Reading,
        rows_max: usize,
        mut interrupted: Pin<&mut Notified<'_>>,
    ) -> Result<(usize, bool), Failure> {
        let entry = Arc::clone(&self.entry);
        let mut terminated = std::pin::pin!(entry.terminated());
        let mut count = 0;
        loop {
            if rows_max > 0 && count == rows_max {
                self.do_effects()?;
                return Ok((count, true));
            }
            let row = tokio::select! {
                biased;
                () = interrupted.as_mut() => return Err(self.stopped(canceled())),
                () = terminated.as_mut() => return Err(Ended::Terminated.into()),
                row = reading.next() => row,
                ended = self.line.gone() => return Err(ended.into()),
            };
            let Some(row) = row else {
                self.do_effects()?;
                return Ok((count, false));
            };
            let written = row.and_then(|row| reading.shape.write(&mut self.line.out, &row));
            if let Err(error) = written {
                return Err(self.stopped(error));
            }
            self.line.drain().await?;
            count += 1;
        }
    }

    /// A query that ended before its last row.
    fn stopped(&mut self, error: ClientError) -> Failure {
        self.session.statement_failed();
        error.into()
    }

    /// How the rows of this session are written.
    fn style(&mut self) -> Style {
        Style { vertica: self.vertica.as_ref().map(Vertica::binary), ..self.session.style() }
    }

    /// Says that a statement is done. Clients of Vertica are told no counts, but what has changed by it.
    fn complete(&mut self, tag: &str) {
        let mut tag = tag;
        if self.vertica.is_some() {
            self.reports();
            tag = tag.trim_end_matches(|character: char| character.is_ascii_digit() || character == ' ');
        }
        answer::command_complete(&mut self.line.out, tag);
    }

    fn describe_rows(&mut self, columns: &[OutputColumn], formats: &[FieldFormat]) {
        if let Some(vertica) = &self.vertica {
            let fields = columns.iter().map(|column| encode::vertica::field(column, vertica.binary()));
            return switchyard_wire::vertica::answer::row_description(&mut self.line.out, fields);
        }
        let format = |index| formats.get(index).copied().unwrap_or(FieldFormat::Text);
        let fields = columns.iter().enumerate().map(|(index, column)| field(column, format(index)));
        answer::row_description(&mut self.line.out, fields);
    }
}

/// Whether a statement is about cursors, prepared statements or channels.
fn is_of_session(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::DeclareCursor { .. }
            | Statement::FetchCursor { .. }
            | Statement::CloseCursor(_)
            | Statement::Prepare { .. }
            | Statement::Deallocate(_)
            | Statement::Listen(_)
            | Statement::Unlisten(_)
            | Statement::Notify { .. }
    )
}
