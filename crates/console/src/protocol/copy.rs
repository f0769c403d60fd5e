//! COPY ... TO STDOUT: the rows of a query as lines of text or CSV, or in binary.

use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use sqlparser::ast::{CopyLegacyCsvOption, CopyLegacyOption, CopyOption, CopySource, CopyTarget, Statement as Sql};
use switchyard_dialect::{Parsed, Statement};
use switchyard_engine::{ClientError, Parameter, Scalar, SqlState};
use switchyard_wire::answer;
use tokio::io::{AsyncRead, AsyncWrite};

use super::Served;
use super::line::{Ended, Failure};
use super::portal::Reading;
use crate::encode::{FieldFormat, RowShape};
use crate::error::canceled;
use crate::session::Answer;

/// What a binary COPY begins with: a signature, no flags, nothing more.
const BINARY_HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// What a binary COPY ends with.
const BINARY_END: &[u8] = b"\xff\xff";

/// A COPY to the client.
#[derive(Debug, Clone)]
pub(crate) struct Copy {
    /// The query whose rows are copied.
    pub(crate) query: Parsed,
    layout: Layout,
}

/// How the rows are written.
#[derive(Debug, Clone)]
struct Layout {
    format: CopyFormat,
    delimiter: Option<char>,
    null: Option<String>,
    header: bool,
    quote: char,
    escape: Option<char>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CopyFormat {
    Text,
    Csv,
    Binary,
}

fn refused(what: &str) -> ClientError {
    ClientError::new(SqlState::FeatureNotSupported, format!("{what} is not supported here"))
}

impl Copy {
    /// The COPY that a statement is, if it is one.
    ///
    /// # Errors
    /// When it does not go to the client, or has an option that is unknown here.
    pub(crate) fn of(parsed: &Parsed) -> Result<Option<Self>, ClientError> {
        let Statement::Sql(sql) = &parsed.statement else { return Ok(None) };
        let Sql::Copy { source, to, target, options, legacy_options, .. } = &**sql else { return Ok(None) };
        if !to {
            return Err(refused("COPY FROM").with_hint("The console holds no tables of its own to copy rows into."));
        }
        if *target != CopyTarget::Stdout {
            return Err(
                refused("COPY to a file or program").with_hint("COPY ... TO STDOUT sends the rows to the client.")
            );
        }
        let mut layout =
            Layout { format: CopyFormat::Text, delimiter: None, null: None, header: false, quote: '"', escape: None };
        options.iter().try_for_each(|option| layout.take(option))?;
        legacy_options.iter().try_for_each(|option| layout.take_legacy(option))?;
        let statement = match source {
            CopySource::Query(query) => Statement::Sql(Sql::Query(query.clone()).into()),
            CopySource::Table { table_name, columns } => {
                let columns: Vec<String> = columns.iter().map(ToString::to_string).collect();
                let columns = if columns.is_empty() { "*".to_owned() } else { columns.join(", ") };
                let read = switchyard_dialect::parse(&format!("SELECT {columns} FROM {table_name}"))?.pop();
                read.map(|read| read.statement)
                    .ok_or_else(|| ClientError::new(SqlState::SyntaxError, "COPY names no table"))?
            }
        };
        Ok(Some(Self { query: Parsed { statement, ..parsed.clone() }, layout }))
    }
}

impl Layout {
    fn take(&mut self, option: &CopyOption) -> Result<(), ClientError> {
        match option {
            CopyOption::Format(name) => {
                self.format = match name.value.to_lowercase().as_str() {
                    "text" => CopyFormat::Text,
                    "csv" => CopyFormat::Csv,
                    "binary" => CopyFormat::Binary,
                    other => {
                        let message = format!("COPY format \"{other}\" not recognized");
                        return Err(ClientError::new(SqlState::InvalidParameterValue, message)
                            .with_hint("The formats are text, csv and binary."));
                    }
                }
            }
            CopyOption::Delimiter(delimiter) => self.delimiter = Some(*delimiter),
            CopyOption::Null(null) => self.null = Some(null.clone()),
            CopyOption::Header(header) => self.header = *header,
            CopyOption::Quote(quote) => self.quote = *quote,
            CopyOption::Escape(escape) => self.escape = Some(*escape),
            CopyOption::Encoding(encoding) if matches!(encoding.to_lowercase().as_str(), "utf8" | "utf-8") => {}
            other => return Err(refused(&format!("COPY option {other}"))),
        }
        Ok(())
    }

    fn take_legacy(&mut self, option: &CopyLegacyOption) -> Result<(), ClientError> {
        match option {
            CopyLegacyOption::Binary => self.format = CopyFormat::Binary,
            CopyLegacyOption::Delimiter(delimiter) => self.delimiter = Some(*delimiter),
            CopyLegacyOption::Null(null) => self.null = Some(null.clone()),
            CopyLegacyOption::Csv(options) => {
                self.format = CopyFormat::Csv;
                for option in options {
                    match option {
                        CopyLegacyCsvOption::Header => self.header = true,
                        CopyLegacyCsvOption::Quote(quote) => self.quote = *quote,
                        CopyLegacyCsvOption::Escape(escape) => self.escape = Some(*escape),
                        other => return Err(refused(&format!("COPY option {other}"))),
                    }
                }
            }
            other => return Err(refused(&format!("COPY option {other}"))),
        }
        Ok(())
    }

    /// A line of text or CSV.
    fn line(&self, values: &[Option<String>]) -> String {
        let csv = self.format == CopyFormat::Csv;
        let delimiter = self.delimiter.unwrap_or(if csv { ',' } else { '\t' });
        let null = self.null.as_deref().unwrap_or(if csv { "" } else { "\\N" });
        let mut line = String::new();
        for (index, value) in values.iter().enumerate() {
            if index > 0 {
                line.push(delimiter);
            }
            match value {
                None => line.push_str(null),
                Some(value) if csv => self.quoted(&mut line, value, delimiter, null, values.len() == 1),
                Some(value) => escaped(&mut line, value, delimiter),
            }
        }
        line.push('\n');
        line
    }

    fn quoted(&self, line: &mut String, value: &str, delimiter: char, null: &str, alone: bool) {
        let special = |character| [delimiter, self.quote, '\n', '\r'].contains(&character);
        if value != null && !value.contains(special) && !(alone && value == "\\.") {
            line.push_str(value);
            return;
        }
        let escape = self.escape.unwrap_or(self.quote);
        line.push(self.quote);
        for character in value.chars() {
            if character == self.quote || character == escape {
                line.push(escape);
            }
            line.push(character);
        }
        line.push(self.quote);
    }
}

fn escaped(line: &mut String, value: &str, delimiter: char) {
    for character in value.chars() {
        match character {
            '\\' => line.push_str("\\\\"),
            '\u{8}' => line.push_str("\\b"),
            '\u{c}' => line.push_str("\\f"),
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            '\t' => line.push_str("\\t"),
            '\u{b}' => line.push_str("\\v"),
            character if character == delimiter => line.extend(['\\', character]),
            character => line.push(character),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Served<S> {
    /// Runs a COPY and sends what it copies.
    pub(super) async fn copy(&mut self, copy: &Copy, source: &Arc<str>, values: &[Parameter]) -> Result<(), Failure> {
        if self.vertica.is_some() {
            return Err(super::vertica::no_copy().into());
        }
        let entry = Arc::clone(&self.entry);
        let mut interrupted = std::pin::pin!(entry.interrupted());
        let mut terminated = std::pin::pin!(entry.terminated());
        let query = match self.start(source, &copy.query, values, interrupted.as_mut()).await? {
            Answer::Query(query) => query,
            _ => return Err(refused("COPY of this statement").into()),
        };
        let binary = copy.layout.format == CopyFormat::Binary;
        let format = if binary { FieldFormat::Binary } else { FieldFormat::Text };
        let formats = vec![format; query.columns.len()];
        let mut reading = Reading::of_query(query, Arc::clone(source), &formats, self.style());
        answer::copy_out(&mut self.line.out, binary, reading.columns.len());
        // Clients look for the header at the start of the first row's message, where PostgreSQL has it.
        let mut head = if binary { BINARY_HEADER } else { &[] };
        if !binary && copy.layout.header {
            let names: Vec<_> = reading.columns.iter().map(|column| Some(column.name.clone())).collect();
            answer::copy_data(&mut self.line.out, &self.line.encoding.written(&copy.layout.line(&names))?);
        }
        let mut count = 0_u64;
        loop {
            let row = tokio::select! {
                biased;
                () = interrupted.as_mut() => return Err(self.stopped(canceled())),
                () = terminated.as_mut() => return Err(Ended::Terminated.into()),
                row = reading.next() => row,
                ended = self.line.gone() => return Err(ended.into()),
            };
            let Some(row) = row else { break };
            let data = row.and_then(|row| data(&copy.layout, &reading.shape, &row));
            match data {
                Ok(data) => answer::copy_data(&mut self.line.out, &[std::mem::take(&mut head), &data].concat()),
                Err(error) => return Err(self.stopped(error)),
            }
            self.line.drain().await?;
            count += 1;
        }
        self.do_effects()?;
        if binary {
            answer::copy_data(&mut self.line.out, &[head, BINARY_END].concat());
        }
        answer::copy_done(&mut self.line.out);
        answer::command_complete(&mut self.line.out, &format!("COPY {count}"));
        Ok(())
    }
}

/// One row as CopyData has it.
fn data(layout: &Layout, shape: &RowShape, row: &[Scalar]) -> Result<BytesMut, ClientError> {
    let mut bytes = BytesMut::new();
    if layout.format == CopyFormat::Binary {
        shape.write_values(&mut bytes, row)?;
    } else {
        bytes.put_slice(&shape.encoding().written(&layout.line(&shape.texts(row)))?);
    }
    Ok(bytes)
}
