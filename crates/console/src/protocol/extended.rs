//! The extended protocol: statements are prepared, bound to values and run in portions; all up to Sync is one
//! transaction.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use switchyard_engine::{ClientError, SqlState};
use switchyard_wire::answer;
use switchyard_wire::frontend::{Bind, Target};
use tokio::io::{AsyncRead, AsyncWrite};

use super::Served;
use super::copy::Copy;
use super::cursors::cursor_exists;
use super::line::Failure;
use super::portal::{Facts, Portal, Reading, Work};
use super::prepared::{Prepared, check_count};
use super::statements::no_statement;
use crate::encode::pg_type;
use crate::error::aborted;
use crate::session::Answer;

/// What a statement or portal takes besides the client's own bytes, about.
pub(super) const OVERHEAD_BYTES: usize = 1_024;

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Served<S> {
    pub(super) async fn parse(&mut self, name: &[u8], text: &[u8], types: &[u32]) -> Result<(), Failure> {
        let encoding = self.line.encoding;
        let (name, text) = (&*encoding.read(name)?, &*encoding.read(text)?);
        if name.is_empty() {
            self.statements.remove(name);
        }
        let mut prepared = Prepared::read(&mut self.session, text, types).await?;
        if let Some(prepared) = &mut prepared {
            prepared.described.columns = self.columns_of(prepared);
        }
        self.add_statement(name, text.len(), prepared)?;
        answer::parse_complete(&mut self.line.out);
        Ok(())
    }

    /// Refuses what would make the session keep too much.
    pub(super) fn check_room(&self, what: &str, count: usize, setting: &str, bytes: usize) -> Result<(), ClientError> {
        let limit = self.session.limit(setting);
        if count >= limit {
            let message = format!("too many {what}: the session has {count}");
            return Err(ClientError::new(SqlState::ConfigurationLimitExceeded, message)
                .with_hint(format!("Close some of them, or raise {setting}.")));
        }
        let statements = self
            .statements
            .values()
            .map(|statement| OVERHEAD_BYTES + statement.as_ref().map_or(0, |statement| statement.source.len()));
        let kept: usize = statements.chain(self.portals.values().map(|portal| portal.bytes)).sum();
        let limit = self.session.limit("prepared_bytes_max");
        if kept.saturating_add(bytes) > limit {
            let message = format!("the {what} of the session would take more than {limit} bytes");
            return Err(ClientError::new(SqlState::ConfigurationLimitExceeded, message)
                .with_hint("Close some of them, or raise prepared_bytes_max."));
        }
        Ok(())
    }

    pub(super) fn statement(&self, name: &str) -> Result<Option<Arc<Prepared>>, ClientError> {
        self.statements.get(name).cloned().ok_or_else(|| no_statement(name))
    }

    pub(super) fn bind(&mut self, bind: &Bind<'_>) -> Result<(), Failure> {
        let encoding = self.line.encoding;
        let (name, statement_name) = (&*encoding.read(bind.portal)?, &*encoding.read(bind.statement)?);
        let statement = self.statement(statement_name)?;
        if name.is_empty() {
            self.portals.remove(name);
        } else if self.portals.contains_key(name) {
            return Err(cursor_exists(name).into());
        }
        let bytes = bind.parameters.iter().flatten().map(|value| value.len()).sum();
        self.check_room("portals", self.portals.len(), "portals_max", bytes)?;
        let portal = match statement {
            None => {
                check_count(bind, statement_name, 0)?;
                let facts = Facts::of_message(Arc::default());
                Portal { work: Work::Empty, columns: Arc::default(), formats: Vec::new(), bytes, depth: 0, facts }
            }
            Some(prepared) => self.portal(bind, statement_name, prepared, bytes)?,
        };
        self.portals.insert(name.to_owned(), portal);
        answer::bind_complete(&mut self.line.out);
        Ok(())
    }

    fn portal(
        &self,
        bind: &Bind<'_>,
        name: &str,
        prepared: Arc<Prepared>,
        bytes: usize,
    ) -> Result<Portal, ClientError> {
        if self.session.failed() && !prepared.ends_transaction {
            return Err(aborted());
        }
        let values = prepared.values(bind, name, self.line.encoding)?;
        // Other than when it was prepared, perhaps.
        let columns = self.columns_of(&prepared);
        let formats = Prepared::formats(&bind.result_formats, columns.len())?;
        let parsed = prepared.bound(&values)?;
        prepared.executions.fetch_add(1, Ordering::Relaxed);
        Ok(Portal {
            columns,
            formats,
            facts: Facts::of_message(Arc::clone(&prepared.shown)),
            work: Work::Ready { prepared, parsed, values },
            bytes: OVERHEAD_BYTES + bytes,
            depth: self.session.savepoint_depth(),
        })
    }

    pub(super) fn describe(&mut self, target: Target, name: &[u8]) -> Result<(), Failure> {
        let encoding = self.line.encoding;
        let name = &*encoding.read(name)?;
        let (columns, formats) = match target {
            Target::Statement => {
                let statement = self.statement(name)?;
                let described = statement.as_ref().map(|statement| &statement.described);
                let kinds = described.map(|described| described.parameters.as_slice()).unwrap_or_default();
                let types: Vec<u32> = kinds.iter().map(|kind| pg_type(*kind).0.oid()).collect();
                answer::parameter_description(&mut self.line.out, &types);
                (described.map(|described| described.columns.clone()).unwrap_or_default(), Vec::new())
            }
            Target::Portal => {
                let portal = self.portals.get(name).ok_or_else(|| no_portal(name))?;
                (portal.columns.clone(), portal.formats.clone())
            }
        };
        if columns.is_empty() {
            answer::no_data(&mut self.line.out);
            return Ok(());
        }
        if self.session.failed() {
            return Err(aborted().into());
        }
        self.describe_rows(&columns, &formats);
        Ok(())
    }

    pub(super) fn close(&mut self, target: Target, name: &[u8]) -> Result<(), Failure> {
        let encoding = self.line.encoding;
        let name = &*encoding.read(name)?;
        match target {
            Target::Statement => drop(self.statements.remove(name)),
            Target::Portal => drop(self.portals.remove(name)),
        }
        answer::close_complete(&mut self.line.out);
        Ok(())
    }

    pub(super) async fn execute(&mut self, name: &[u8], rows_max: i32) -> Result<(), Failure> {
        let encoding = self.line.encoding;
        let name = &*encoding.read(name)?;
        let Some(mut portal) = self.portals.remove(name) else { return Err(no_portal(name).into()) };
        let result = self.run_portal(&mut portal, name, usize::try_from(rows_max).unwrap_or_default()).await;
        self.session.rest();
        result?;
        // What ended its transaction is gone with it.
        if !matches!(&portal.work, Work::Done) || self.session.has_transaction() {
            self.portals.insert(name.to_owned(), portal);
        }
        Ok(())
    }

    async fn run_portal(&mut self, portal: &mut Portal, name: &str, rows_max: usize) -> Result<(), Failure> {
        let entry = Arc::clone(&self.entry);
        let mut interrupted = std::pin::pin!(entry.interrupted());
        match &portal.work {
            Work::Empty => {
                answer::empty_query(&mut self.line.out);
                return Ok(());
            }
            Work::Done => {
                let message = format!("portal \"{name}\" cannot be run");
                return Err(ClientError::new(SqlState::ObjectNotInPrerequisiteState, message).into());
            }
            Work::Reading(_) if self.session.failed() => return Err(aborted().into()),
            Work::Reading(_) => {}
            Work::Ready { prepared, parsed, values } => {
                self.session.begin_pipelined();
                let source = Arc::clone(&prepared.source);
                if let Some(copy) = Copy::of(parsed)? {
                    self.copy(&copy, &source, values).await?;
                    portal.work = Work::Done;
                    return Ok(());
                }
                let reading = match self.start(&source, parsed, values, interrupted.as_mut()).await? {
                    Answer::Tag(tag) => {
                        answer::command_complete(&mut self.line.out, &tag);
                        portal.work = Work::Done;
                        return Ok(());
                    }
                    Answer::Rows(rows) => Reading::of_rows(rows, source, &portal.formats, self.style()),
                    Answer::Query(query) => Reading::of_query(query, source, &portal.formats, self.style()),
                    Answer::Fetched(rows) => Reading::of_fetched(rows, source, &portal.formats, self.style()),
                };
                portal.work = Work::Reading(Box::new(reading));
            }
        }
        let Work::Reading(reading) = &mut portal.work else { return Ok(()) };
        let (count, more) = self.deliver(reading, rows_max, interrupted.as_mut()).await?;
        if more {
            answer::portal_suspended(&mut self.line.out);
        } else {
            answer::command_complete(&mut self.line.out, &reading.tag(count));
        }
        Ok(())
    }

    pub(super) async fn sync(&mut self) -> Result<(), Failure> {
        let failed = std::mem::take(&mut self.skips);
        let ended = self.end_implicit(failed).await;
        self.session.rest();
        ended?;
        Ok(self.ready().await?)
    }
}

fn no_portal(name: &str) -> ClientError {
    ClientError::new(SqlState::InvalidCursorName, format!("portal \"{name}\" does not exist"))
}
