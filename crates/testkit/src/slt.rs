//! Files of SQL with the answers they must get, one server for each run of a file.
//!
//! Besides what sqllogictest knows (`statement ok|error|count`, `query`, `connection`, `include`), a file may ask about
//! what the statement before left behind, as a `query T`:
//!
//! | text | answer |
//! |---|---|
//! | `\notices` | every notice's lines |
//! | `\error` | the error's lines |
//! | `\tag` | the command tags |
//! | `\columns` | name and type of each column |
//! | `\status` | `I`, `T` or `E` |
//! | `\reconnect` | nothing; the connection is made anew |
//!
//! `connection user:mira` logs in as `mira` with the password `pw-mira`; `connection user:mira#2` is her second session.
//! `connection NAME` without `user:` is another session of the superuser. Errors read
//! `[SQLSTATE] message; DETAIL: ...; HINT: ...; POSITION: ...`. An answer of one value with several lines is one row for
//! each line.
#![expect(clippy::result_large_err, reason = "the runner's own error type; it is made once a failing record")]

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use sqllogictest::{ColumnType, Connection, DB, DBOutput, Record, Runner};

use crate::client::{Client, Login, Outcome, Protocol, Refused, Report};
use crate::repository::repository_root;
use crate::server::{ADMIN, ADMIN_PASSWORD, Server};

/// With this variable set, files are rewritten to what the server answers.
pub const REWRITE: &str = "SWITCHYARD_TEST_REWRITE";

/// Runs a file, named from the repository's root, against a server nothing was done to.
pub fn run_file(server: &Server, file: &Path, protocol: Protocol) -> Result<()> {
    let path = repository_root().join(file);
    let current = Arc::new(Mutex::new(None));
    let maker = Maker { port: server.port(), protocol, connection: Arc::clone(&current) };
    let mut runner = Runner::new(move || {
        let session = maker.make();
        async { session }
    });
    runner.with_column_validator(same_types);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    if std::env::var_os(REWRITE).is_some() {
        return runtime.block_on(rewrite(&mut runner, &path, &current));
    }
    let records = sqllogictest::parse_file::<Kind>(&path).map_err(|error| anyhow::anyhow!("{error}"))?;
    runtime.block_on(async {
        for record in records {
            announce(&record, &current);
            runner.run_async(record).await.map_err(|error| anyhow::anyhow!("{error}"))?;
        }
        runner.shutdown_async().await;
        Ok(())
    })
}

async fn rewrite<M>(runner: &mut Runner<Session, M>, path: &Path, current: &Current) -> Result<()>
where
    M: sqllogictest::MakeConnection<Conn = Session>,
{
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let name = path.display().to_string();
    let records = sqllogictest::parse_with_name::<Kind>(&text, name).map_err(|error| anyhow::anyhow!("{error}"))?;
    let mut written = Vec::new();
    for record in records {
        for included in with_included(&record, path)? {
            announce(&included, current);
            let _only_the_effect_counts = runner.apply_record(included).await;
        }
        announce(&record, current);
        let output = runner.apply_record(record.clone()).await;
        let updated = sqllogictest::update_record_with_output(
            &record,
            &output,
            " ",
            sqllogictest::default_validator,
            sqllogictest::default_normalizer,
            same_types,
        );
        written.push(updated.unwrap_or(record).to_string());
    }
    runner.shutdown_async().await;
    std::fs::write(path, written.join("\n") + "\n")?;
    Ok(())
}

fn with_included(record: &Record<Kind>, path: &Path) -> Result<Vec<Record<Kind>>> {
    let Record::Include { filename, .. } = record else { return Ok(Vec::new()) };
    let included = path.parent().unwrap_or(path).join(filename);
    sqllogictest::parse_file::<Kind>(&included).map_err(|error| anyhow::anyhow!("{error}"))
}

type Current = Arc<Mutex<Option<String>>>;

/// The runner does not tell whoever makes a connection its name.
fn announce(record: &Record<Kind>, current: &Current) {
    let connection = match record {
        Record::Statement { connection, .. } | Record::Query { connection, .. } => connection,
        Record::Let { connection, .. } => connection,
        _ => return,
    };
    let name = match connection {
        Connection::Default => None,
        Connection::Named(name) => Some(name.clone()),
    };
    *current.lock().unwrap_or_else(PoisonError::into_inner) = name;
}

/// The letters of a `query` line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Integer,
    Real,
    Boolean,
    Time,
    Any,
}

impl Kind {
    fn of(type_name: &str) -> Self {
        match type_name {
            "text" | "varchar" | "name" | "bpchar" => Self::Text,
            "int2" | "int4" | "int8" | "oid" => Self::Integer,
            "float4" | "float8" | "numeric" => Self::Real,
            "bool" => Self::Boolean,
            "timestamp" | "timestamptz" | "date" | "time" => Self::Time,
            _ => Self::Any,
        }
    }
}

impl ColumnType for Kind {
    fn from_char(letter: char) -> Option<Self> {
        match letter {
            'T' => Some(Self::Text),
            'I' => Some(Self::Integer),
            'R' => Some(Self::Real),
            'B' => Some(Self::Boolean),
            'D' => Some(Self::Time),
            '?' => Some(Self::Any),
            _ => None,
        }
    }

    fn to_char(&self) -> char {
        match self {
            Self::Text => 'T',
            Self::Integer => 'I',
            Self::Real => 'R',
            Self::Boolean => 'B',
            Self::Time => 'D',
            Self::Any => '?',
        }
    }
}

#[expect(clippy::ptr_arg, reason = "the runner's signature")]
fn same_types(actual: &Vec<Kind>, expected: &Vec<Kind>) -> bool {
    let same = |(actual, expected): (&Kind, &Kind)| *expected == Kind::Any || actual == expected;
    actual.len() == expected.len() && actual.iter().zip(expected).all(same)
}

/// Why a record failed.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("[{}] {}", .0.code, said(.0))]
    Refused(Report),
    #[error("{0:#}")]
    Broken(anyhow::Error),
    #[error("{0} is not one of the questions this runner knows")]
    UnknownQuestion(String),
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        match error.downcast::<Refused>() {
            Ok(Refused(report)) => Self::Refused(report),
            Err(error) => Self::Broken(error),
        }
    }
}

fn said(report: &Report) -> String {
    let mut lines = report.lines();
    if let Some(first) = lines.first_mut() {
        first.clone_from(&report.message);
    }
    lines.join("; ").replace('\n', "; ")
}

struct Maker {
    port: u16,
    protocol: Protocol,
    connection: Current,
}

impl Maker {
    fn make(&self) -> Result<Session, Failure> {
        let name = self.connection.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let login = match name.as_deref().and_then(|name| name.strip_prefix("user:")) {
            None => Login::new(self.port, ADMIN, ADMIN_PASSWORD),
            Some(user) => {
                let user = user.split('#').next().unwrap_or(user);
                Login::new(self.port, user, &format!("pw-{user}"))
            }
        };
        Ok(Session { client: None, login, protocol: self.protocol, last: Outcome::default() })
    }
}

/// A connection is made when the first statement needs it, so that a login that is refused can be expected.
struct Session {
    client: Option<Client>,
    login: Login,
    protocol: Protocol,
    last: Outcome,
}

impl Session {
    fn execute(&mut self, sql: &str) -> Result<Outcome> {
        let client = match &mut self.client {
            Some(client) => client,
            empty => empty.insert(Client::connect(&self.login)?),
        };
        let outcome = client.run(sql, self.protocol)?;
        let several = self.protocol != Protocol::Simple
            && outcome.error.as_ref().is_some_and(|error| error.message.contains("multiple commands"));
        if several {
            // The extended protocol takes one statement only; what the text means is the simple protocol's matter.
            return client.run(sql, Protocol::Simple);
        }
        Ok(outcome)
    }

    fn answer_question(&mut self, question: &str) -> Result<DBOutput<Kind>, Failure> {
        let lines: Vec<Vec<String>> = match question {
            "notices" => one_column(self.last.notices.iter().flat_map(Report::lines)),
            "error" => one_column(self.last.error.iter().flat_map(Report::lines)),
            "tag" => one_column(self.last.answers.iter().filter_map(|answer| answer.tag.clone())),
            "status" => one_column([self.last.status.to_string()]),
            "columns" => {
                let columns = self.last.answers.last().and_then(|answer| answer.columns.as_ref());
                columns.into_iter().flatten().map(|column| vec![column.name.clone(), column.type_name()]).collect()
            }
            "reconnect" => {
                if let Some(client) = self.client.take() {
                    client.close()?;
                }
                return Ok(DBOutput::StatementComplete(0));
            }
            unknown => return Err(Failure::UnknownQuestion(unknown.to_owned())),
        };
        let width = if question == "columns" { 2 } else { 1 };
        Ok(DBOutput::Rows { types: vec![Kind::Text; width], rows: lines })
    }
}

fn one_column(lines: impl IntoIterator<Item = String>) -> Vec<Vec<String>> {
    lines.into_iter().map(|line| vec![line]).collect()
}

impl DB for Session {
    type Error = Failure;
    type ColumnType = Kind;

    fn run(&mut self, sql: &str) -> Result<DBOutput<Kind>, Failure> {
        if let Some(question) = sql.trim().strip_prefix('\\') {
            return self.answer_question(question);
        }
        self.last = Outcome::default();
        self.last = self.execute(sql)?;
        if let Some(error) = &self.last.error {
            return Err(Failure::Refused(error.clone()));
        }
        Ok(shown(&self.last))
    }

    fn shutdown(&mut self) {
        if let Some(client) = self.client.take() {
            // The server may have closed it already; a file ends here anyway.
            let _closed = client.close();
        }
    }

    fn error_sql_state(failure: &Failure) -> Option<String> {
        match failure {
            Failure::Refused(report) => Some(report.code.clone()),
            Failure::Broken(_) | Failure::UnknownQuestion(_) => None,
        }
    }
}

/// The last answer that has columns; else how many rows the last tag counts.
fn shown(outcome: &Outcome) -> DBOutput<Kind> {
    let Some((answer, columns)) =
        outcome.answers.iter().rev().find_map(|answer| Some((answer, answer.columns.as_ref()?)))
    else {
        let tag = outcome.answers.last().and_then(|answer| answer.tag.as_deref()).unwrap_or_default();
        let count = tag.rsplit(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0);
        return DBOutput::StatementComplete(count);
    };
    let types: Vec<Kind> = columns.iter().map(|column| Kind::of(&column.type_name())).collect();
    let print = |value: &Option<String>| match value.as_deref() {
        None => "NULL".to_owned(),
        Some("") => "(empty)".to_owned(),
        Some(text) => text.to_owned(),
    };
    let mut rows: Vec<Vec<String>> = answer.rows.iter().map(|row| row.iter().map(print).collect()).collect();
    if let [row] = rows.as_slice()
        && let [value] = row.as_slice()
        && value.contains('\n')
    {
        rows = one_column(value.lines().map(str::to_owned));
    }
    DBOutput::Rows { types, rows }
}
