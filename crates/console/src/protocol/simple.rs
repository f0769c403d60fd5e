//! The simple protocol: a string of statements, each answered before the next; several are one transaction.

use std::sync::Arc;

use switchyard_dialect::{ParseLimits, Parsed, Statements};
use switchyard_engine::ClientError;
use switchyard_wire::answer;
use tokio::io::{AsyncRead, AsyncWrite};

use super::Served;
use super::copy::Copy;
use super::line::Failure;
use super::portal::Reading;
use crate::encode::FieldFormat;
use crate::session::Answer;
use crate::texts::Script;

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Served<S> {
    pub(super) async fn query(&mut self, text: &[u8]) -> Result<(), Failure> {
        self.statements.remove("");
        self.portals.remove("");
        let result = self.run_all(text).await;
        let ended = self.end_implicit(result.is_err()).await;
        self.session.rest();
        result?;
        ended?;
        Ok(self.ready().await?)
    }

    async fn run_all(&mut self, text: &[u8]) -> Result<(), Failure> {
        let encoding = self.line.encoding;
        let text = &*encoding.read(text)?;
        let limits = self.session.parse_limits();
        let read = self.session.console.texts.read(text, limits);
        let Script { source, count, held } = read.map_err(ClientError::from)?;
        if count == 0 {
            answer::empty_query(&mut self.line.out);
        }
        let Some(statements) = held else {
            return self.run_many(&source, limits).await;
        };
        for parsed in &*statements {
            if count > 1 && !self.session.in_transaction() {
                self.session.begin_implicit();
            }
            self.run_one(&source, parsed).await?;
        }
        Ok(())
    }

    /// Runs a string of so many statements that only the one that runs is held.
    async fn run_many(&mut self, source: &Arc<str>, limits: ParseLimits) -> Result<(), Failure> {
        for parsed in Statements::new(source, limits).map_err(ClientError::from)? {
            let parsed = parsed.map_err(ClientError::from)?;
            if !self.session.in_transaction() {
                self.session.begin_implicit();
            }
            self.run_one(source, &parsed).await?;
            self.line.drain().await?;
        }
        Ok(())
    }

    async fn run_one(&mut self, source: &Arc<str>, parsed: &Parsed) -> Result<(), Failure> {
        if let Some(copy) = Copy::of(parsed)? {
            return self.copy(&copy, source, &[]).await;
        }
        let entry = Arc::clone(&self.entry);
        let mut interrupted = std::pin::pin!(entry.interrupted());
        let mut formats = Vec::new();
        let mut reading = match self.start(source, parsed, &[], interrupted.as_mut()).await? {
            Answer::Tag(tag) => {
                self.complete(&tag);
                return Ok(());
            }
            Answer::Rows(rows) => Reading::of_rows(rows, Arc::clone(source), &[], self.style()),
            Answer::Query(query) => Reading::of_query(query, Arc::clone(source), &[], self.style()),
            Answer::Fetched(rows) => {
                let format = if rows.binary { FieldFormat::Binary } else { FieldFormat::Text };
                formats = vec![format; rows.columns.len()];
                Reading::of_fetched(rows, Arc::clone(source), &formats, self.style())
            }
        };
        self.describe_rows(&reading.columns, &formats);
        let (count, _) = self.deliver(&mut reading, 0, interrupted.as_mut()).await?;
        let tag = reading.tag(count);
        self.complete(&tag);
        Ok(())
    }
}
