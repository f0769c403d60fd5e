//! A client that shows what others hide: tags, states, every field of errors and notices, both formats.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::IsNull;
use postgres_protocol::authentication::sasl::{ChannelBinding, ScramSha256};
use postgres_protocol::message::backend::{DataRowBody, ErrorFields, Message, RowDescriptionBody};
use postgres_protocol::message::frontend;
use postgres_types::{FromSql, Type};

use crate::server::DATABASE;

/// No answer takes this long; a test that waits longer has found a hang.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// Nor does it take this long to connect, unless packets are lost.
const CONNECTED_WITHIN: Duration = Duration::from_secs(10);

/// Who connects, to what.
#[derive(Debug, Clone)]
pub struct Login {
    source: Ipv4Addr,
    host: Ipv4Addr,
    port: u16,
    answer_within: Duration,
    user: String,
    password: String,
    database: String,
    parameters: Vec<(String, String)>,
    header: Vec<u8>,
}

impl Login {
    /// To the console's database on loopback.
    pub fn new(port: u16, user: &str, password: &str) -> Self {
        Self {
            source: Ipv4Addr::LOCALHOST,
            host: Ipv4Addr::LOCALHOST,
            port,
            answer_within: ANSWER_WITHIN,
            user: user.to_owned(),
            password: password.to_owned(),
            database: DATABASE.to_owned(),
            parameters: Vec::new(),
            header: Vec::new(),
        }
    }

    /// With bytes before the startup packet, as a balancer in front sends them.
    #[must_use]
    pub fn behind(mut self, header: impl Into<Vec<u8>>) -> Self {
        self.header = header.into();
        self
    }

    /// From another address of this machine.
    #[must_use]
    pub fn from(mut self, source: Ipv4Addr) -> Self {
        self.source = source;
        self
    }

    /// To another machine, from whatever address leads there.
    #[must_use]
    pub fn to(mut self, host: Ipv4Addr) -> Self {
        self.host = host;
        if !host.is_loopback() {
            self.source = Ipv4Addr::UNSPECIFIED;
        }
        self
    }

    /// No longer than this waiting for an answer: what is sent may be lost.
    #[must_use]
    pub fn waiting(mut self, answer_within: Duration) -> Self {
        self.answer_within = answer_within;
        self
    }

    /// To another database.
    #[must_use]
    pub fn database(mut self, name: &str) -> Self {
        name.clone_into(&mut self.database);
        self
    }

    /// With one more startup parameter.
    #[must_use]
    pub fn parameter(mut self, name: &str, value: &str) -> Self {
        self.parameters.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// Connects to a port of this machine from one of its addresses.
///
/// # Errors
/// When nobody listens there.
pub fn call(source: Ipv4Addr, port: u16) -> Result<TcpStream> {
    call_at(source, SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
}

fn call_at(source: Ipv4Addr, to: SocketAddr) -> Result<TcpStream> {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
    socket.bind(&SocketAddr::from((source, 0)).into())?;
    socket.connect_timeout(&to.into(), CONNECTED_WITHIN).context("cannot connect")?;
    Ok(socket.into())
}

/// What a client of Vertica sends first that asks to be balanced.
pub const LOAD_BALANCE_REQUEST: &[u8] = &[0, 0, 0, 8, 0x04, 0xd3, 0, 0];

/// The port of this machine that a client of Vertica from this address is told to call; none when it is to stay.
///
/// # Errors
/// When there is no answer, or another address is told than 127.0.0.1.
pub fn told(source: Ipv4Addr, port: u16) -> Result<Option<u16>> {
    let told = told_by(source, SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
    told.map(|(host, port)| {
        ensure!(host == "127.0.0.1", "{host}");
        Ok(port)
    })
    .transpose()
}

/// The host and port that a client of Vertica is told to call by the member there; none when it is to stay.
///
/// # Errors
/// When there is no answer.
pub fn told_by(source: Ipv4Addr, member: SocketAddr) -> Result<Option<(String, u16)>> {
    let mut stream = call_at(source, member)?;
    stream.set_read_timeout(Some(ANSWER_WITHIN))?;
    stream.write_all(LOAD_BALANCE_REQUEST)?;
    let mut kind = [0; 1];
    stream.read_exact(&mut kind)?;
    match &kind {
        b"N" => Ok(None),
        b"Y" => {
            let mut head = [0; 8];
            stream.read_exact(&mut head)?;
            let [0, 0, 0, length, 0, 0, high, low] = head else { bail!("{head:?}") };
            let mut host = vec![0; usize::from(length).checked_sub(head.len()).context("a length")?];
            stream.read_exact(&mut host)?;
            let host = host.strip_suffix(b"\0").context("a host without an end")?;
            Ok(Some((String::from_utf8(host.to_vec())?, u16::from_be_bytes([high, low]))))
        }
        other => bail!("{other:?}"),
    }
}

/// How a statement is sent and its rows come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Query.
    Simple,
    /// Parse, Describe, Bind, Execute, Sync; values as text.
    Extended,
    /// The same; values in binary where this client reads it.
    Binary,
}

impl Protocol {
    /// In a test's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Simple => "simple",
            Self::Extended => "extended",
            Self::Binary => "binary",
        }
    }
}

/// An error or a notice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// `S`: ERROR, FATAL, NOTICE, ...
    pub severity: String,
    /// `C`.
    pub code: String,
    /// `M`.
    pub message: String,
    /// `D`.
    pub detail: Option<String>,
    /// `H`.
    pub hint: Option<String>,
    /// `P`.
    pub position: Option<String>,
}

impl Report {
    fn read(mut fields: ErrorFields<'_>) -> Result<Self> {
        let mut report = Self::default();
        while let Some(field) = fields.next()? {
            let value = String::from_utf8(field.value_bytes().to_vec()).context("a report is not UTF-8")?;
            match field.type_() {
                b'S' => report.severity = value,
                b'C' => report.code = value,
                b'M' => report.message = value,
                b'D' => report.detail = Some(value),
                b'H' => report.hint = Some(value),
                b'P' => report.position = Some(value),
                _ => {}
            }
        }
        Ok(report)
    }

    /// `SEVERITY: message`, then `DETAIL:`, `HINT:` and `POSITION:` where there are any.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("{}: {}", self.severity, self.message)];
        lines.extend(self.detail.as_ref().map(|text| format!("DETAIL: {text}")));
        lines.extend(self.hint.as_ref().map(|text| format!("HINT: {text}")));
        lines.extend(self.position.as_ref().map(|text| format!("POSITION: {text}")));
        lines
    }
}

/// A column of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type's id.
    pub type_id: u32,
    /// The type's size; negative when it varies.
    pub size: i16,
    /// The type's modifier; -1 for none.
    pub modifier: i32,
    binary: bool,
}

impl Column {
    /// The type's name in PostgreSQL, `int8` for example.
    pub fn type_name(&self) -> String {
        Type::from_oid(self.type_id).map_or_else(|| format!("type {}", self.type_id), |known| known.name().to_owned())
    }
}

/// What one statement answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// None for a statement that returns no rows.
    pub columns: Option<Vec<Column>>,
    /// Values as PostgreSQL prints them; none is NULL.
    pub rows: Vec<Vec<Option<String>>>,
    /// The command tag; none after an empty statement.
    pub tag: Option<String>,
}

/// What came between a request and ReadyForQuery.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// One answer for each statement that was completed.
    pub answers: Vec<Answer>,
    /// Why it stopped.
    pub error: Option<Report>,
    /// In the order they came.
    pub notices: Vec<Report>,
    /// `I`, `T` or `E`.
    pub status: char,
}

impl Outcome {
    /// The rows of the last answer, or the error as an error.
    pub fn rows(self) -> Result<Vec<Vec<Option<String>>>> {
        match self.error {
            Some(error) => bail!("[{}] {}", error.code, error.lines().join("; ")),
            None => Ok(self.answers.into_iter().next_back().unwrap_or_default().rows),
        }
    }

    /// The SQLSTATE of the error.
    pub fn code(&self) -> Option<&str> {
        self.error.as_ref().map(|error| error.code.as_str())
    }
}

/// A message to be sent as it is.
#[derive(Debug, Clone, Copy)]
pub enum Send<'a> {
    /// Query.
    Query(&'a str),
    /// Parse: the statement's name, its text.
    Parse(&'a str, &'a str),
    /// Bind: portal, statement, parameters as text.
    Bind(&'a str, &'a str, &'a [&'a [u8]]),
    /// Describe: `S` or `P`, and a name.
    Describe(u8, &'a str),
    /// Close: `S` or `P`, and a name.
    Close(u8, &'a str),
    /// Execute: portal, most rows.
    Execute(&'a str, i32),
    /// Sync.
    Sync,
    /// A type and a body.
    Raw(u8, &'a [u8]),
}

impl Send<'_> {
    fn write(self, buffer: &mut BytesMut) -> std::io::Result<()> {
        match self {
            Self::Query(text) => frontend::query(text, buffer),
            Self::Parse(name, text) => frontend::parse(name, text, [], buffer),
            Self::Bind(portal, statement, values) => {
                let write = |value: &&[u8], buffer: &mut BytesMut| {
                    buffer.extend_from_slice(value);
                    Ok(IsNull::No)
                };
                frontend::bind(portal, statement, [], values.iter(), write, [], buffer)
                    .map_err(|_| std::io::Error::other("bind"))
            }
            Self::Describe(kind, name) => frontend::describe(kind, name, buffer),
            Self::Close(kind, name) => frontend::close(kind, name, buffer),
            Self::Execute(portal, rows_max) => frontend::execute(portal, rows_max, buffer),
            Self::Sync => {
                frontend::sync(buffer);
                Ok(())
            }
            Self::Raw(kind, body) => {
                buffer.extend_from_slice(&[kind]);
                buffer.extend_from_slice(&u32::try_from(body.len() + 4).unwrap_or(u32::MAX).to_be_bytes());
                buffer.extend_from_slice(body);
                Ok(())
            }
        }
    }
}

/// One session.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    received: BytesMut,
    /// What the server said with ParameterStatus.
    pub parameters: BTreeMap<String, String>,
    /// What came before the first ReadyForQuery.
    pub greetings: Vec<Report>,
    process: (i32, i32),
}

/// A login that was refused, as the server said it.
#[derive(Debug, thiserror::Error)]
#[error("[{}] {}", .0.code, .0.message)]
pub struct Refused(pub Report);

impl Client {
    /// Logs in. A refusal is an error that downcasts to [`Refused`].
    pub fn connect(login: &Login) -> Result<Self> {
        let stream = call_at(login.source, SocketAddr::from((login.host, login.port)))?;
        stream.set_read_timeout(Some(login.answer_within))?;
        stream.set_nodelay(true)?;
        let mut client = Self {
            stream,
            received: BytesMut::new(),
            parameters: BTreeMap::new(),
            greetings: Vec::new(),
            process: (0, 0),
        };
        client.start(login)?;
        Ok(client)
    }

    /// Where it calls from.
    pub fn local_address(&self) -> Result<SocketAddr> {
        Ok(self.stream.local_addr()?)
    }

    /// The process id and secret a cancel request needs.
    pub fn process(&self) -> (i32, i32) {
        self.process
    }

    /// Sends a statement, or several, and reads until ReadyForQuery.
    pub fn run(&mut self, sql: &str, protocol: Protocol) -> Result<Outcome> {
        match protocol {
            Protocol::Simple => {
                self.send(|buffer| frontend::query(sql, buffer))?;
                self.collect(Vec::new())
            }
            Protocol::Extended | Protocol::Binary => self.run_extended(sql, protocol == Protocol::Binary),
        }
    }

    /// As [`Client::run`] over the simple protocol, with an error as an error.
    pub fn query(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>> {
        self.run(sql, Protocol::Simple)?.rows().with_context(|| format!("in {sql}"))
    }

    /// Sends messages, all at once, and shows what comes back up to the last ReadyForQuery they ask for: a word for each
    /// message, with what it says.
    pub fn exchange(&mut self, messages: &[Send<'_>]) -> Result<Vec<String>> {
        self.send(|buffer| messages.iter().try_for_each(|message| message.write(buffer)))?;
        let mut wanted =
            messages.iter().filter(|one| matches!(one, Send::Query(_) | Send::Raw(b'Q', _) | Send::Sync)).count();
        let mut shown = Vec::new();
        while wanted > 0 {
            let message = self.receive()?;
            wanted -= usize::from(matches!(message, Message::ReadyForQuery(_)));
            shown.push(show(message)?);
        }
        Ok(shown)
    }

    /// The bare connection, logged in, for what no client would send.
    pub fn into_stream(self) -> TcpStream {
        self.stream
    }

    /// Says goodbye.
    pub fn close(mut self) -> Result<()> {
        self.send(|buffer| {
            frontend::terminate(buffer);
            Ok(())
        })
    }

    fn start(&mut self, login: &Login) -> Result<()> {
        let mut parameters = vec![
            ("user", login.user.as_str()),
            ("database", login.database.as_str()),
            ("client_encoding", "UTF8"),
            ("application_name", "testkit"),
        ];
        parameters.extend(login.parameters.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        self.send(|buffer| {
            buffer.extend_from_slice(&login.header);
            frontend::startup_message(parameters, buffer)
        })?;
        let mut scram = ScramSha256::new(login.password.as_bytes(), ChannelBinding::unsupported());
        loop {
            match self.receive()? {
                Message::AuthenticationSasl(body) => {
                    let offered: Vec<String> = body.mechanisms().map(|name| Ok(name.to_owned())).collect()?;
                    ensure!(offered.iter().any(|name| name == "SCRAM-SHA-256"), "only {offered:?} is offered");
                    let first = scram.message().to_vec();
                    self.send(|buffer| frontend::sasl_initial_response("SCRAM-SHA-256", &first, buffer))?;
                }
                Message::AuthenticationSaslContinue(body) => {
                    scram.update(body.data())?;
                    let proof = scram.message().to_vec();
                    self.send(|buffer| frontend::sasl_response(&proof, buffer))?;
                }
                Message::AuthenticationSaslFinal(body) => scram.finish(body.data())?,
                Message::AuthenticationOk => {}
                Message::BackendKeyData(body) => self.process = (body.process_id(), body.secret_key()),
                Message::NoticeResponse(body) => self.greetings.push(Report::read(body.fields())?),
                Message::ErrorResponse(body) => return Err(Refused(Report::read(body.fields())?).into()),
                Message::ReadyForQuery(body) => {
                    ensure!(body.status() == b'I', "a new session is not idle");
                    return Ok(());
                }
                _ => bail!("an unexpected message during login"),
            }
        }
    }

    fn run_extended(&mut self, sql: &str, binary: bool) -> Result<Outcome> {
        self.send(|buffer| {
            frontend::parse("", sql, [], buffer)?;
            frontend::describe(b'S', "", buffer)?;
            frontend::sync(buffer);
            Ok(())
        })?;
        let (described, mut outcome) = self.describe()?;
        if outcome.error.is_some() {
            return Ok(outcome);
        }
        let columns: Option<Vec<Column>> = described.map(|columns| {
            let readable = |column: Column| Column { binary: binary && reads_binary(column.type_id), ..column };
            columns.into_iter().map(readable).collect()
        });
        let formats: Vec<i16> = columns.iter().flatten().map(|column| i16::from(column.binary)).collect();
        self.send(|buffer| {
            frontend::bind("", "", [], std::iter::empty::<()>(), |(), _| Ok(IsNull::Yes), formats, buffer)
                .map_err(|_| std::io::Error::other("bind"))?;
            frontend::execute("", 0, buffer)?;
            frontend::sync(buffer);
            Ok(())
        })?;
        let executed = self.collect(columns.map_or_else(Vec::new, |columns| vec![columns]))?;
        outcome.notices.extend(executed.notices);
        Ok(Outcome { notices: outcome.notices, ..executed })
    }

    fn describe(&mut self) -> Result<(Option<Vec<Column>>, Outcome)> {
        let mut columns = None;
        let mut outcome = Outcome::default();
        loop {
            match self.receive()? {
                Message::ParseComplete | Message::ParameterDescription(_) | Message::NoData => {}
                Message::RowDescription(body) => columns = Some(read_columns(&body)?),
                Message::ErrorResponse(body) => outcome.error = Some(Report::read(body.fields())?),
                Message::NoticeResponse(body) => outcome.notices.push(Report::read(body.fields())?),
                Message::ReadyForQuery(body) => {
                    outcome.status = char::from(body.status());
                    return Ok((columns, outcome));
                }
                _ => bail!("an unexpected message after Describe"),
            }
        }
    }

    /// Reads until ReadyForQuery. In the extended protocol the columns are known before.
    fn collect(&mut self, mut described: Vec<Vec<Column>>) -> Result<Outcome> {
        let mut outcome = Outcome::default();
        let mut answer = Answer { columns: described.pop(), ..Answer::default() };
        loop {
            match self.receive()? {
                Message::RowDescription(body) => answer.columns = Some(read_columns(&body)?),
                Message::DataRow(body) => {
                    let columns = answer.columns.as_deref().context("a row without a description")?;
                    answer.rows.push(read_row(&body, columns)?);
                }
                Message::CommandComplete(body) => {
                    answer.tag = Some(body.tag()?.to_owned());
                    outcome.answers.push(std::mem::take(&mut answer));
                }
                Message::EmptyQueryResponse => outcome.answers.push(std::mem::take(&mut answer)),
                Message::ErrorResponse(body) => {
                    ensure!(outcome.error.is_none(), "two errors for one request");
                    outcome.error = Some(Report::read(body.fields())?);
                }
                Message::NoticeResponse(body) => outcome.notices.push(Report::read(body.fields())?),
                Message::BindComplete => {}
                Message::ReadyForQuery(body) => {
                    outcome.status = char::from(body.status());
                    return Ok(outcome);
                }
                _ => bail!("an unexpected message in an answer"),
            }
        }
    }

    fn send(&mut self, fill: impl FnOnce(&mut BytesMut) -> std::io::Result<()>) -> Result<()> {
        let mut buffer = BytesMut::new();
        fill(&mut buffer)?;
        self.stream.write_all(&buffer).context("the server closed the connection")
    }

    fn receive(&mut self) -> Result<Message> {
        loop {
            match Message::parse(&mut self.received)? {
                Some(Message::ParameterStatus(body)) => {
                    self.parameters.insert(body.name()?.to_owned(), body.value()?.to_owned());
                }
                Some(message) => return Ok(message),
                None => {
                    let mut chunk = [0; 16 * 1024];
                    let count = self.stream.read(&mut chunk).context("no answer")?;
                    ensure!(count > 0, "the server closed the connection");
                    self.received.extend_from_slice(chunk.get(..count).unwrap_or_default());
                }
            }
        }
    }
}

/// A message in few words.
fn show(message: Message) -> Result<String> {
    Ok(match message {
        Message::ParseComplete => "parsed".to_owned(),
        Message::BindComplete => "bound".to_owned(),
        Message::CloseComplete => "closed".to_owned(),
        Message::NotificationResponse(body) => {
            format!("notification {} {} {}", body.process_id(), body.channel()?, body.message()?)
        }
        Message::NoData => "no data".to_owned(),
        Message::PortalSuspended => "suspended".to_owned(),
        Message::EmptyQueryResponse => "empty".to_owned(),
        Message::CopyDone => "copied".to_owned(),
        Message::CopyData(body) => format!("data {}", String::from_utf8_lossy(body.data())),
        Message::CopyOutResponse(body) => format!("copy {}", body.column_formats().count()?),
        Message::CommandComplete(body) => format!("done {}", body.tag()?),
        Message::ReadyForQuery(body) => format!("ready {}", char::from(body.status())),
        Message::ParameterDescription(body) => {
            let types: Vec<String> = body.parameters().map(|type_id| Ok(type_id.to_string())).collect()?;
            format!("parameters {}", types.join(" "))
        }
        Message::RowDescription(body) => {
            let columns = read_columns(&body)?;
            let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
            format!("columns {}", names.join(" "))
        }
        Message::DataRow(body) => {
            let value = |range: Option<std::ops::Range<usize>>| {
                let bytes = range.and_then(|range| body.buffer().get(range));
                bytes.map_or_else(|| "NULL".to_owned(), |bytes| String::from_utf8_lossy(bytes).into_owned())
            };
            let values: Vec<String> = body.ranges().map(|range| Ok(value(range))).collect()?;
            format!("row {}", values.join(" "))
        }
        Message::ErrorResponse(body) => {
            let report = Report::read(body.fields())?;
            format!("error {} {}", report.code, report.message)
        }
        Message::NoticeResponse(body) => format!("notice {}", Report::read(body.fields())?.message),
        _ => bail!("an unexpected message"),
    })
}

fn read_columns(body: &RowDescriptionBody) -> Result<Vec<Column>> {
    let columns = body.fields().map(|field| {
        Ok(Column {
            name: field.name().to_owned(),
            type_id: field.type_oid(),
            size: field.type_size(),
            modifier: field.type_modifier(),
            binary: field.format() == 1,
        })
    });
    Ok(columns.collect()?)
}

fn read_row(body: &DataRowBody, columns: &[Column]) -> Result<Vec<Option<String>>> {
    let ranges: Vec<_> = body.ranges().collect()?;
    ensure!(ranges.len() == columns.len(), "{} values for {} columns", ranges.len(), columns.len());
    ranges
        .into_iter()
        .zip(columns)
        .map(|(range, column)| match range.and_then(|range| body.buffer().get(range)) {
            None => Ok(None),
            Some(bytes) if column.binary => read_binary(column.type_id, bytes).map(Some),
            Some(bytes) => Ok(Some(String::from_utf8(bytes.to_vec()).context("a value is not UTF-8")?)),
        })
        .collect()
}

fn reads_binary(type_id: u32) -> bool {
    Type::from_oid(type_id).is_some_and(|kind| {
        [Type::BOOL, Type::INT2, Type::INT4, Type::INT8, Type::TEXT, Type::VARCHAR, Type::NAME, Type::FLOAT8]
            .contains(&kind)
    })
}

fn read_binary(type_id: u32, bytes: &[u8]) -> Result<String> {
    fn shown<'a, T: FromSql<'a> + ToString>(kind: &Type, bytes: &'a [u8]) -> Result<String> {
        T::from_sql(kind, bytes).map(|value| value.to_string()).map_err(|error| anyhow::anyhow!("bad {kind}: {error}"))
    }
    let kind = Type::from_oid(type_id).context("an unknown type in binary")?;
    match kind {
        Type::BOOL => Ok(shown::<bool>(&kind, bytes)?.get(..1).unwrap_or_default().to_owned()),
        Type::INT2 => shown::<i16>(&kind, bytes),
        Type::INT4 => shown::<i32>(&kind, bytes),
        Type::INT8 => shown::<i64>(&kind, bytes),
        Type::FLOAT8 => shown::<f64>(&kind, bytes),
        _ => shown::<String>(&kind, bytes),
    }
}
