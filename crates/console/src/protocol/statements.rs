//! PREPARE, EXECUTE and DEALLOCATE: their statements are those of the protocol's messages.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::stream::StreamExt;
use sqlparser::ast::Expr;
use switchyard_dialect::{Ident, Parsed, Redacted, Statement};
use switchyard_engine::{ClientError, OutputColumn, Parameter, PreparedRow, Scalar, SqlState, type_oid};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::futures::Notified;

use super::line::Failure;
use super::prepared::{Prepared, values_query};
use super::{Served, is_of_session};
use crate::encode::{kind_of, pg_type};
use crate::error::{aborted, canceled};
use crate::session::Outcome;

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Served<S> {
    /// Runs PREPARE or DEALLOCATE.
    pub(super) async fn prepared_statement(&mut self, source: &str, parsed: &Parsed) -> Result<Outcome, Failure> {
        match &parsed.statement {
            Statement::Prepare { name: Ident(name), types, text, .. } => {
                self.prepare(name, types, text.reveal(), source, parsed).await?;
                Ok(Outcome::tag("PREPARE"))
            }
            Statement::Deallocate(Some(Ident(name))) => match self.statements.remove(name) {
                Some(_) => Ok(Outcome::tag("DEALLOCATE")),
                None => Err(no_statement(name).into()),
            },
            _ => {
                self.statements.clear();
                Ok(Outcome::tag("DEALLOCATE ALL"))
            }
        }
    }

    async fn prepare(
        &mut self,
        name: &str,
        types: &[String],
        text: &str,
        source: &str,
        parsed: &Parsed,
    ) -> Result<(), ClientError> {
        let types = types.iter().map(|name| type_number(name)).collect::<Result<Vec<u32>, _>>()?;
        // Blanks stand for what is before the statement, so that mistakes are told where they are in the whole text.
        let inner = parsed.text.len().saturating_sub(text.len());
        let before = parsed.text.get(..inner).unwrap_or_default().chars().count();
        let mut padded = source.chars().take(parsed.position.saturating_sub(1)).fold(String::new(), blank);
        padded = parsed.text.chars().take(before).fold(padded, blank);
        padded.push_str(text);
        let read = Prepared::read(&mut self.session, &padded, &types).await?;
        let shown = Redacted(&parsed.statement).to_string();
        self.add_statement(name, text.len(), read.map(|prepared| prepared.by_prepare(shown)))
    }

    /// Keeps a prepared statement.
    pub(super) fn add_statement(
        &mut self,
        name: &str,
        bytes: usize,
        prepared: Option<Prepared>,
    ) -> Result<(), ClientError> {
        if self.statements.contains_key(name) {
            let message = format!("prepared statement \"{name}\" already exists");
            return Err(ClientError::new(SqlState::DuplicatePreparedStatement, message));
        }
        self.check_room("prepared statements", self.statements.len(), "prepared_statements_max", bytes)?;
        self.statements.insert(name.to_owned(), prepared.map(Arc::new));
        Ok(())
    }

    /// Finds what EXECUTE runs, and computes its values.
    pub(super) async fn bind_prepared(
        &mut self,
        name: &str,
        arguments: &[Expr],
        values: &[Parameter],
        interrupted: Pin<&mut Notified<'_>>,
    ) -> Result<Bound, Failure> {
        if self.session.failed() {
            return Err(aborted().into());
        }
        let empty = || ClientError::new(SqlState::SyntaxError, format!("prepared statement \"{name}\" is empty"));
        let prepared = self.statement(name)?.ok_or_else(empty)?;
        let (given, wanted) = (arguments.len(), prepared.described.parameters.len());
        if given != wanted {
            let message = format!("wrong number of parameters for prepared statement \"{name}\"");
            return Err(ClientError::new(SqlState::SyntaxError, message)
                .with_detail(format!("Expected {wanted} parameters but got {given}."))
                .into());
        }
        let values = match values_query(arguments, &prepared.described.parameters)? {
            None => Vec::new(),
            Some(query) => {
                let computed = self.compute(&query, values, interrupted).await?;
                prepared.typed(computed)
            }
        };
        let parsed = prepared.bound(&values)?;
        if is_of_session(&parsed.statement) {
            let message = format!("prepared statement \"{name}\" cannot be run by EXECUTE");
            return Err(ClientError::new(SqlState::FeatureNotSupported, message).into());
        }
        prepared.executions.fetch_add(1, Ordering::Relaxed);
        Ok(Bound { source: Arc::clone(&prepared.source), parsed, values })
    }

    /// The one row of a query.
    async fn compute(
        &mut self,
        query: &Statement,
        values: &[Parameter],
        interrupted: Pin<&mut Notified<'_>>,
    ) -> Result<Vec<Scalar>, Failure> {
        let Statement::Sql(query) = query else { return Ok(Vec::new()) };
        let session = &mut self.session;
        let row = async {
            let mut query = session.query("", query, values).await?;
            match query.rows.next().await {
                Some(row) => row.map_err(|error| error.told("")),
                None => Ok(Vec::new()),
            }
        };
        tokio::select! {
            biased;
            row = row => Ok(row?),
            () = interrupted => Err(canceled().into()),
            ended = self.line.lost() => Err(ended.into()),
        }
    }

    /// The columns of what a statement gives, where that is another one's of the session.
    pub(super) fn columns_of(&self, prepared: &Prepared) -> Arc<[OutputColumn]> {
        let columns = match prepared.statement() {
            Some(Statement::FetchCursor { name: Ident(name), moves: false, .. }) => {
                self.portals.get(name).map(|portal| portal.columns.clone())
            }
            Some(Statement::Execute { name: Ident(name), .. }) => {
                let statement = self.statements.get(name).and_then(Option::as_ref);
                statement.map(|statement| statement.described.columns.clone())
            }
            _ => return prepared.described.columns.clone(),
        };
        columns.unwrap_or_default()
    }

    /// The prepared statements as `pg_prepared_statements` shows them.
    pub(super) fn prepared_rows(&self) -> Arc<[PreparedRow]> {
        let named = self.statements.iter().filter(|(name, _)| !name.is_empty());
        let mut rows: Vec<PreparedRow> = named
            .filter_map(|(name, prepared)| {
                let prepared = prepared.as_ref()?;
                Some(PreparedRow {
                    name: name.clone(),
                    statement: prepared.shown.to_string(),
                    created_us: prepared.created_us,
                    parameters: prepared.described.parameters.iter().map(|kind| pg_type(*kind).0.oid()).collect(),
                    from_sql: prepared.from_sql,
                    executions: prepared.executions.load(Ordering::Relaxed),
                })
            })
            .collect();
        rows.sort_by(|a, b| a.name.cmp(&b.name));
        rows.into()
    }
}

/// A prepared statement with its values.
pub(super) struct Bound {
    pub(super) source: Arc<str>,
    pub(super) parsed: Arc<Parsed>,
    pub(super) values: Vec<Parameter>,
}

/// Adds a blank for a character; lines stay lines.
fn blank(mut blanks: String, character: char) -> String {
    blanks.push(if character == '\n' { '\n' } else { ' ' });
    blanks
}

fn type_number(name: &str) -> Result<u32, ClientError> {
    let Some(oid) = type_oid(name) else {
        return Err(ClientError::new(SqlState::UndefinedObject, format!("type \"{name}\" does not exist")));
    };
    if kind_of(oid).is_none() {
        let message = format!("parameters of type {name} are not supported");
        return Err(ClientError::new(SqlState::FeatureNotSupported, message));
    }
    Ok(oid)
}

pub(super) fn no_statement(name: &str) -> ClientError {
    let message = match name {
        "" => "unnamed prepared statement does not exist".to_owned(),
        name => format!("prepared statement \"{name}\" does not exist"),
    };
    ClientError::new(SqlState::InvalidStatementName, message)
}
