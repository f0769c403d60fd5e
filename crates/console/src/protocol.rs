//! The protocol behind the login: messages in, answers out, statements and portals kept between them.

mod copy;
mod extended;
mod line;
mod portal;
mod prepared;
mod simple;

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;

use futures::stream::StreamExt;
use switchyard_dialect::{DiscardWhat, Parsed, Statement};
use switchyard_engine::{ClientError, OutputColumn, Scalar, Severity, SqlState};
use switchyard_session::{Client, SessionEntry};
use switchyard_wire::message::{TransactionStatus, backend_key_data, parameter_status, ready_for_query};
use switchyard_wire::{WireError, answer, frontend, frontend::Frontend};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::futures::Notified;
use tracing::debug;

use crate::Console;
use crate::encode::{FieldFormat, field};
use crate::error::{canceled, put_error};
use crate::session::{Answer, Outcome, PortalEvent, Session};
use line::{Ended, Failure, Line};
use portal::{Portal, Reading};
use prepared::Prepared;

/// Serves a client that has been told AuthenticationOk, until it goes or is sent away.
pub(crate) async fn run<S>(console: Arc<Console>, client: Client<S>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + Sync + 'static,
{
    let Client { stream, leftover, database, parameters, session: place, .. } = client;
    let entry = Arc::clone(place.entry());
    let secret = place.secret().to_vec();
    let mut line = Line::new(stream, leftover, Arc::clone(&entry));
    let opened = check_database(&console, database.as_deref(), parameters)
        .and_then(|parameters| Session::open(Arc::clone(&console), place, &parameters));
    let (session, warnings) = match opened {
        Ok(opened) => opened,
        Err(error) => return line.farewell(&error.fatal()).await,
    };
    let mut served = Served { line, session, entry, statements: HashMap::new(), portals: HashMap::new(), skips: false };
    served.line.notices(&warnings);
    served.reports();
    backend_key_data(&mut served.line.out, served.entry.process_id, &secret);
    let ended = match served.ready().await {
        Ok(()) => served.serve().await,
        Err(ended) => ended,
    };
    // Whoever looks for the session from now on does not find it, however long the client takes to read.
    let Served { mut line, mut session, entry, .. } = served;
    session.end();
    drop(session);
    if let Some(error) = ended.told() {
        line.farewell(&error).await;
    }
    debug!(error = &ended as &dyn std::error::Error, session = entry.id, "session ended");
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
    if name.to_lowercase() != own.folded() {
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
    /// By name; none for a text without a statement.
    statements: HashMap<String, Option<Arc<Prepared>>>,
    portals: HashMap<String, Portal>,
    /// After an error in the extended protocol: nothing is looked at until Sync.
    skips: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Served<S> {
    /// One message after the other, until the client goes or is sent away.
    async fn serve(&mut self) -> Ended {
        loop {
            let (kind, body) = match self.line.message().await {
                Ok(message) => message,
                Err(ended) => return ended,
            };
            if let Err(ended) = self.message(kind, &body).await {
                return ended;
            }
        }
    }

    async fn message(&mut self, kind: u8, body: &[u8]) -> Result<(), Ended> {
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
        put_error(&mut self.line.out, &error);
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
            self.portals.clear();
        }
        self.reports();
        let status = match (self.session.in_transaction(), self.session.failed()) {
            (false, _) => TransactionStatus::Idle,
            (true, false) => TransactionStatus::Open,
            (true, true) => TransactionStatus::Failed,
        };
        ready_for_query(&mut self.line.out, status);
        self.line.flush().await?;
        self.line.rest();
        Ok(())
    }

    /// Tells of settings that are other than last told.
    fn reports(&mut self) {
        for (name, value) in self.session.reports() {
            parameter_status(&mut self.line.out, name, &value);
        }
    }

    /// Runs one statement, as far as its first row; a cancel request stops it, if it is a query. What changes the
    /// catalog is never left half way.
    async fn start(
        &mut self,
        source: &str,
        parsed: &Parsed,
        values: &[Scalar],
        interrupted: Pin<&mut Notified<'_>>,
    ) -> Result<Answer, Failure> {
        let ran = if matches!(parsed.statement, Statement::Sql(_)) {
            tokio::select! {
                ran = self.session.run(source, parsed, values) => ran,
                () = interrupted => {
                    self.session.statement_failed();
                    Err(canceled())
                }
                () = self.entry.terminated() => return Err(Ended::Terminated.into()),
            }
        } else {
            self.session.run(source, parsed, values).await
        };
        self.settle(&parsed.statement, ran.is_ok());
        let Outcome { mut warnings, answer } = ran?;
        warnings.retain(|warning| self.session.wants(warning));
        self.line.notices(&warnings);
        Ok(answer)
    }

    /// Closes the portals, and forgets the statements, that do not outlive what a statement did.
    fn settle(&mut self, statement: &Statement, done: bool) {
        for event in self.session.portal_events() {
            match event {
                PortalEvent::Ended => self.portals.clear(),
                PortalEvent::Back(depth) => self.portals.retain(|_, portal| portal.depth <= depth),
                PortalEvent::Released(depth) => {
                    self.portals.values_mut().for_each(|portal| portal.depth = portal.depth.min(depth));
                }
            }
        }
        if done && matches!(statement, Statement::Discard(DiscardWhat::All)) {
            self.statements.clear();
            self.portals.clear();
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
                return Ok((count, true));
            }
            let row = tokio::select! {
                biased;
                () = interrupted.as_mut() => return Err(self.stopped(canceled())),
                () = terminated.as_mut() => return Err(Ended::Terminated.into()),
                row = reading.rows.next() => row,
            };
            let Some(row) = row else { return Ok((count, false)) };
            let written = row
                .map_err(|error| error.told(&reading.source))
                .and_then(|row| reading.shape.write(&mut self.line.out, &row));
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

    fn describe_rows(&mut self, columns: &[OutputColumn], formats: &[FieldFormat]) {
        let format = |index| formats.get(index).copied().unwrap_or(FieldFormat::Text);
        let fields = columns.iter().enumerate().map(|(index, column)| field(column, format(index)));
        answer::row_description(&mut self.line.out, fields);
    }
}
