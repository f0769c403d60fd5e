//! The protocol behind the login: pgwire's codec and query state machine, with our session in them.

use std::fmt::Debug;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::sink::{Sink, SinkExt};
use futures::stream::StreamExt;
use pgwire::api::portal::{Format, Portal};
use pgwire::api::query::{ExtendedQueryHandler, SimpleQueryHandler, send_ready_for_query};
use pgwire::api::results::{FieldFormat, FieldInfo, QueryResponse, Response, Tag};
use pgwire::api::stmt::QueryParser;
use pgwire::api::store::PortalStore;
use pgwire::api::{
    ClientInfo, ClientPortalStore, DEFAULT_NAME, DefaultClient, NoopHandler, PgWireConnectionState,
    PgWireServerHandlers, Type,
};
use pgwire::error::{PgWireError, PgWireResult};
use pgwire::messages::data::{DataRow, RowDescription};
use pgwire::messages::extendedquery::Sync as SyncMessage;
use pgwire::messages::response::{CommandComplete, EmptyQueryResponse, TransactionStatus};
use pgwire::messages::simplequery::Query;
use pgwire::messages::startup::{BackendKeyData, ParameterStatus, SecretKey};
use pgwire::messages::{PgWireBackendMessage, PgWireFrontendMessage, ProtocolVersion};
use pgwire::tokio::server::{PgWireMessageServerCodec, process_error, process_message};
use switchyard_dialect::{Parsed, Statement};
use switchyard_engine::plan::Rows;
use switchyard_engine::{ClientError, Described, OutputColumn, PgType, QueryRows, Scalar, SqlState, Warning};
use switchyard_session::{Client, Secured};
use switchyard_wire::WireError;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::sync::Mutex;
use tokio_util::codec::{Decoder, Framed, FramedParts};
use tracing::debug;

use crate::Console;
use crate::encode::{RowShape, field, kind_of, parameter, pg_type};
use crate::error::{canceled, info, notice, terminated, to_pgwire};
use crate::limiter::{Limited, TooLong};
use crate::session::{Answer, Outcome, Session, columns};

/// A statement that a client prepared.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    source: Arc<str>,
    /// Absent for a statement of our own with `$1`, which is read when the values are known.
    parsed: Option<Arc<Parsed>>,
    described: Arc<Described>,
}

type Codec = PgWireMessageServerCodec<Prepared>;
type Socket<S> = Framed<Limited<S>, Codec>;

/// Serves a client that has been told AuthenticationOk, until it goes or is sent away.
pub(crate) async fn run<S>(console: Arc<Console>, client: Client<S>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + Sync + 'static,
{
    let Client { stream, leftover, peer, database, parameters, version, session: place, .. } = client;
    let entry = Arc::clone(place.entry());
    let secret = Bytes::copy_from_slice(place.secret());
    let process_id = place.process_id;
    let address = peer.address().unwrap_or(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0));
    let mut codec = Codec::new(DefaultClient::new(address, false));
    codec.client_info.state = PgWireConnectionState::ReadyForQuery;
    codec.client_info.protocol_version = if version >= switchyard_wire::Version::V3_2 {
        ProtocolVersion::PROTOCOL3_2
    } else {
        ProtocolVersion::PROTOCOL3_0
    };
    let mut parts = FramedParts::new(Limited::new(stream, &leftover), codec);
    parts.read_buf = leftover;
    let mut socket: Socket<Secured<S>> = Framed::from_parts(parts);
    let opened = check_database(&console, database.as_deref(), parameters)
        .and_then(|parameters| Session::open(Arc::clone(&console), place, &parameters));
    let (mut session, warnings) = match opened {
        Ok(opened) => opened,
        Err(error) => return refuse(&mut socket, error.fatal()).await,
    };
    let secret_key = match <[u8; 4]>::try_from(secret.as_ref()) {
        Ok(secret) => SecretKey::I32(i32::from_be_bytes(secret)),
        Err(_) => SecretKey::Bytes(secret),
    };
    if let Err(error) = greet(&mut socket, &mut session, warnings, process_id, secret_key).await {
        debug!(%error, "client went during its greeting");
        return;
    }
    let session = Arc::new(Mutex::new(session));
    let handler = Arc::new(Handler { parser: Arc::new(Parser(Arc::clone(&session))), session });
    if let Err(error) = serve(&mut socket, &handler, &entry).await {
        debug!(%error, session = entry.id, "client connection failed");
    }
    handler.session.lock().await.end();
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

async fn refuse<S>(socket: &mut Socket<S>, error: ClientError)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    // The client may be gone already: there is nobody else to tell.
    let _ = socket.send(PgWireBackendMessage::ErrorResponse(info(error).into())).await;
    let _ = SinkExt::<PgWireBackendMessage>::close(socket).await;
}

async fn greet<S>(
    socket: &mut Socket<S>,
    session: &mut Session,
    warnings: Vec<Warning>,
    process_id: i32,
    secret_key: SecretKey,
) -> Result<(), std::io::Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    for (name, value) in session.reports() {
        let status = ParameterStatus::new(name.to_owned(), value);
        socket.feed(PgWireBackendMessage::ParameterStatus(status)).await?;
    }
    socket.feed(PgWireBackendMessage::BackendKeyData(BackendKeyData::new(process_id, secret_key))).await?;
    for warning in warnings {
        socket.feed(PgWireBackendMessage::NoticeResponse(notice(warning))).await?;
    }
    let ready = pgwire::messages::response::ReadyForQuery::new(TransactionStatus::Idle);
    socket.send(PgWireBackendMessage::ReadyForQuery(ready)).await
}

/// One message after the other, until the client goes or is sent away.
async fn serve<S>(
    socket: &mut Socket<S>,
    handler: &Arc<Handler>,
    entry: &switchyard_session::SessionEntry,
) -> Result<(), std::io::Error>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + Sync + 'static,
{
    let noop = Arc::new(NoopHandler);
    loop {
        let message = tokio::select! {
            message = read(socket) => message,
            () = entry.terminated() => {
                refuse(socket, terminated()).await;
                return Ok(());
            }
        };
        let message = match message {
            None | Some(Ok(PgWireFrontendMessage::Terminate(_))) => return Ok(()),
            Some(Ok(message)) => message,
            Some(Err(error)) => {
                if let Some(error) = unreadable(&error) {
                    refuse(socket, error).await;
                }
                return Ok(());
            }
        };
        let wait_for_sync = message.is_extended_query();
        let result = process_message(
            message,
            socket,
            Arc::clone(&noop),
            Arc::clone(handler),
            Arc::clone(handler),
            Arc::clone(&noop),
            Arc::clone(&noop),
        )
        .await;
        if let Err(error) = result {
            let status = status(&*handler.session.lock().await);
            socket.set_transaction_status(status);
            process_error(socket, error, wait_for_sync).await?;
            // pgwire takes every error in a transaction for the end of it; the session knows better.
            socket.set_transaction_status(status);
        }
    }
}

/// The next message. Its layout is checked before pgwire decodes it, which takes the layout for granted.
async fn read<S>(socket: &mut Socket<S>) -> Option<PgWireResult<PgWireFrontendMessage>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    loop {
        match decode(socket) {
            Ok(None) => {}
            Ok(Some(message)) => return Some(Ok(message)),
            Err(error) => return Some(Err(error)),
        }
        // A buffer of its own: what a cancelled read has not got must not be lost from the socket's.
        let mut chunk = [0; 8 * 1024];
        match socket.get_mut().read(&mut chunk).await {
            Ok(0) => return None,
            Ok(count) => socket.read_buffer_mut().extend_from_slice(chunk.get(..count).unwrap_or_default()),
            Err(error) => return Some(Err(error.into())),
        }
    }
}

fn decode<S>(socket: &mut Socket<S>) -> PgWireResult<Option<PgWireFrontendMessage>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let invalid = |error: WireError| PgWireError::ApiError(Box::new(error));
    let buffer = socket.read_buffer();
    let Some(header) = switchyard_wire::frame(buffer, usize::MAX).map_err(invalid)? else { return Ok(None) };
    let Some(body) = header.body(buffer) else { return Ok(None) };
    switchyard_wire::layout::check(header.kind, body).map_err(invalid)?;
    let mut taken = socket.read_buffer_mut().split_to(header.len);
    socket.codec_mut().decode(&mut taken)
}

/// What to tell a client whose bytes make no message; nothing when the connection itself is broken.
fn unreadable(error: &PgWireError) -> Option<ClientError> {
    if let PgWireError::IoError(error) = error {
        let too_long = error.get_ref()?.downcast_ref::<TooLong>()?;
        return Some(
            ClientError::new(SqlState::ProgramLimitExceeded, too_long.to_string())
                .with_hint("Split the statement.")
                .fatal(),
        );
    }
    let message = match error {
        PgWireError::ApiError(layout) => layout.to_string(),
        other => format!("invalid message: {other}"),
    };
    Some(ClientError::new(SqlState::ProtocolViolation, message).fatal())
}

fn status(session: &Session) -> TransactionStatus {
    match (session.in_transaction(), session.failed()) {
        (false, _) => TransactionStatus::Idle,
        (true, false) => TransactionStatus::Transaction,
        (true, true) => TransactionStatus::Error,
    }
}

/// A session as pgwire calls it.
pub(crate) struct Handler {
    session: Arc<Mutex<Session>>,
    parser: Arc<Parser>,
}

impl PgWireServerHandlers for Handler {}

/// The bound that pgwire's handlers put on a client.
trait ClientSink: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync {}

impl<C> ClientSink for C where C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync {}

#[async_trait]
impl SimpleQueryHandler for Handler {
    async fn on_query<C>(&self, client: &mut C, query: Query) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        if !matches!(client.state(), PgWireConnectionState::ReadyForQuery) {
            return Err(PgWireError::NotReadyForQuery);
        }
        let mut session = self.session.lock().await;
        let result = simple(client, &mut session, &query.query).await;
        session.rest();
        // The error itself goes out in the caller, which must know the state first.
        let status = status(&session);
        client.set_transaction_status(status);
        result?;
        for (name, value) in session.reports() {
            let status = ParameterStatus::new(name.to_owned(), value);
            client.feed(PgWireBackendMessage::ParameterStatus(status)).await?;
        }
        send_ready_for_query(client, status).await
    }

    async fn do_query<C>(&self, _: &mut C, _: &str) -> PgWireResult<Vec<Response>>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        // Everything is done in `on_query`, which sends each result before the next statement runs.
        Ok(Vec::new())
    }
}

/// Runs all statements of a string, each answered before the next; several are one transaction.
async fn simple<C>(client: &mut C, session: &mut Session, text: &str) -> PgWireResult<()>
where
    C: ClientSink,
    C::Error: Debug,
    PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
{
    let statements = match switchyard_dialect::parse(text) {
        Ok(statements) => statements,
        Err(error) => {
            session.syntax_failed();
            return Err(to_pgwire(error.into()));
        }
    };
    if statements.is_empty() {
        client.feed(PgWireBackendMessage::EmptyQueryResponse(EmptyQueryResponse::new())).await?;
        return Ok(());
    }
    let several = statements.len() > 1;
    let mut result = Ok(());
    for parsed in &statements {
        if several && !session.in_transaction() {
            session.begin_implicit();
        }
        result = one(client, session, text, parsed).await;
        if result.is_err() {
            break;
        }
    }
    let ended = session.end_implicit(result.is_err()).await;
    result?;
    ended.map_err(to_pgwire)
}

/// Runs one statement and sends its answer; a cancel request stops either.
async fn one<C>(client: &mut C, session: &mut Session, source: &str, parsed: &Parsed) -> PgWireResult<()>
where
    C: ClientSink,
    C::Error: Debug,
    PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
{
    let entry = Arc::clone(session.place.entry());
    let mut interrupted = std::pin::pin!(entry.interrupted());
    let outcome = run_interruptible(session, source, parsed, &[], interrupted.as_mut()).await;
    let Outcome { mut warnings, answer } = match outcome {
        Ok(outcome) => outcome,
        Err(error) => return fail(client, error).await,
    };
    warnings.retain(|warning| session.wants(warning));
    send_notices(client, warnings).await?;
    match answer {
        Answer::Tag(tag) => complete(client, &tag).await,
        Answer::Rows(rows) => {
            let shape = RowShape::new(text_columns(&columns(&rows)), session.zone());
            describe_rows(client, &columns(&rows)).await?;
            for row in &rows.rows {
                let values: Vec<Scalar> = row.iter().map(known).collect();
                client.feed(PgWireBackendMessage::DataRow(shape.row(&values).map_err(to_pgwire)?)).await?;
            }
            complete(client, rows.tag).await
        }
        Answer::Query(mut query) => {
            describe_rows(client, &query.columns).await?;
            let shape = RowShape::new(text_columns(&query.columns), session.zone());
            let mut count = 0usize;
            loop {
                let row = tokio::select! {
                    row = query.rows.next() => row,
                    () = &mut interrupted => return stopped(session, canceled()),
                };
                let Some(row) = row else { break };
                let row = match row.map_err(|error| error.told(source)).and_then(|row| shape.row(&row)) {
                    Ok(row) => row,
                    Err(error) => return stopped(session, error),
                };
                client.feed(PgWireBackendMessage::DataRow(row)).await?;
                count += 1;
            }
            complete(client, &format!("SELECT {count}")).await
        }
    }
}

/// A query that ended before its last row.
fn stopped(session: &mut Session, error: ClientError) -> PgWireResult<()> {
    session.statement_failed();
    Err(to_pgwire(error))
}

async fn fail<C>(client: &mut C, mut error: ClientError) -> PgWireResult<()>
where
    C: ClientSink,
    C::Error: Debug,
    PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
{
    let notices = std::mem::take(&mut error.notices_before);
    send_notices(client, notices.into_iter().map(Warning::notice).collect()).await?;
    Err(to_pgwire(error))
}

async fn send_notices<C>(client: &mut C, warnings: Vec<Warning>) -> PgWireResult<()>
where
    C: ClientSink,
    C::Error: Debug,
    PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
{
    for warning in warnings {
        client.feed(PgWireBackendMessage::NoticeResponse(notice(warning))).await?;
    }
    Ok(())
}

async fn complete<C>(client: &mut C, tag: &str) -> PgWireResult<()>
where
    C: ClientSink,
    C::Error: Debug,
    PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
{
    client.feed(PgWireBackendMessage::CommandComplete(CommandComplete::new(tag.to_owned()))).await?;
    Ok(())
}

async fn describe_rows<C>(client: &mut C, columns: &[OutputColumn]) -> PgWireResult<()>
where
    C: ClientSink,
    C::Error: Debug,
    PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
{
    let fields = fields(columns, &Format::UnifiedText);
    let description = RowDescription::new(fields.iter().map(Into::into).collect());
    client.feed(PgWireBackendMessage::RowDescription(description)).await?;
    Ok(())
}

fn text_columns(columns: &[OutputColumn]) -> Vec<(PgType, FieldFormat)> {
    columns.iter().map(|column| (column.kind, FieldFormat::Text)).collect()
}

/// A value that is known as text, `t` or `f`.
fn known(text: &Option<String>) -> Scalar {
    text.as_ref().map_or(Scalar::Null, |text| Scalar::Text(text.clone()))
}

/// The same for a column of truth in the binary format.
fn known_as(text: &Option<String>, kind: PgType) -> Scalar {
    match (text, kind) {
        (Some(text), PgType::Bool) => Scalar::Bool(text == "t"),
        _ => known(text),
    }
}

/// The format of a column; a list of formats that is too short counts as text.
fn format_of(format: &Format, index: usize) -> FieldFormat {
    match format {
        Format::UnifiedText => FieldFormat::Text,
        Format::UnifiedBinary => FieldFormat::Binary,
        Format::Individual(codes) => codes.get(index).map_or(FieldFormat::Text, |code| FieldFormat::from(*code)),
    }
}

fn fields(columns: &[OutputColumn], format: &Format) -> Vec<FieldInfo> {
    let field = |(index, column): (usize, &OutputColumn)| field(&column.name, column.kind, format_of(format, index));
    columns.iter().enumerate().map(field).collect()
}

/// Reads a statement to be prepared; for one of our own with parameters, as if they were all NULL.
fn read_text(sql: &str) -> Result<Vec<Parsed>, switchyard_dialect::SyntaxError> {
    let plain = switchyard_dialect::parse(sql);
    match switchyard_dialect::parameter_count(sql) {
        Ok(count @ 1..) => {
            let nothing = vec![switchyard_dialect::Literal::Null; count];
            let ours = switchyard_dialect::bind(sql, &nothing).and_then(|bound| switchyard_dialect::parse(&bound));
            match ours {
                Ok(statements) if !statements.iter().any(|one| matches!(one.statement, Statement::Sql(_))) => {
                    Ok(statements)
                }
                _ => plain,
            }
        }
        _ => plain,
    }
}

/// A parameter as a literal of our own statements.
fn literal(value: &Scalar) -> Result<switchyard_dialect::Literal, ClientError> {
    use switchyard_dialect::Literal;
    Ok(match value {
        Scalar::Null => Literal::Null,
        Scalar::Bool(value) => Literal::Bool(*value),
        Scalar::Int(value) => Literal::Number(value.to_string()),
        Scalar::Float4(value) => Literal::Number(value.to_string()),
        Scalar::Float8(value) => Literal::Number(value.to_string()),
        Scalar::Text(value) => Literal::Text(value.clone()),
        _ => {
            let message = "parameters of this type are not taken by management statements";
            return Err(ClientError::new(SqlState::FeatureNotSupported, message));
        }
    })
}

/// The statement with its values in it.
fn bound(prepared: &Prepared, values: &[Scalar]) -> Result<Arc<Parsed>, ClientError> {
    if let Some(parsed) = &prepared.parsed {
        return Ok(Arc::clone(parsed));
    }
    let literals = values.iter().map(literal).collect::<Result<Vec<_>, _>>()?;
    let text = switchyard_dialect::bind(&prepared.source, &literals)?;
    let parsed = switchyard_dialect::parse(&text)?.pop();
    parsed.map(Arc::new).ok_or_else(|| ClientError::new(SqlState::SyntaxError, "the statement is empty"))
}

/// Prepares statements for a session.
pub(crate) struct Parser(Arc<Mutex<Session>>);

#[async_trait]
impl QueryParser for Parser {
    type Statement = Prepared;

    async fn parse_sql<C>(&self, _: &C, sql: &str, types: &[Option<Type>]) -> PgWireResult<Option<Prepared>>
    where
        C: ClientInfo + Unpin + Send + Sync,
    {
        let mut session = self.0.lock().await;
        let mut statements = match read_text(sql) {
            Ok(statements) => statements,
            Err(error) => {
                session.syntax_failed();
                return Err(to_pgwire(error.into()));
            }
        };
        if statements.len() > 1 {
            session.syntax_failed();
            let message = "cannot insert multiple commands into a prepared statement";
            return Err(to_pgwire(ClientError::new(SqlState::SyntaxError, message)));
        }
        let Some(parsed) = statements.pop() else { return Ok(None) };
        let template = match parsed.statement {
            Statement::Sql(_) => 0,
            _ => switchyard_dialect::parameter_count(sql).unwrap_or_default(),
        };
        let declared: Vec<Option<PgType>> = types.iter().map(|own| own.as_ref().and_then(kind_of)).collect();
        let mut described = session.describe(sql, &parsed.statement, &declared).await.map_err(|error| {
            session.syntax_failed();
            to_pgwire(error)
        })?;
        if template > 0 {
            let kind = |index| declared.get(index).copied().flatten().unwrap_or(PgType::Text);
            described.parameters = (0..template).map(kind).collect();
        }
        let parsed = (template == 0).then(|| Arc::new(parsed));
        Ok(Some(Prepared { source: sql.into(), parsed, described: Arc::new(described) }))
    }

    fn get_parameter_types(&self, statement: &Prepared) -> PgWireResult<Vec<Type>> {
        Ok(statement.described.parameters.iter().map(|kind| pg_type(*kind).0).collect())
    }

    fn get_result_schema(&self, statement: &Prepared, format: Option<&Format>) -> PgWireResult<Vec<FieldInfo>> {
        Ok(fields(&statement.described.columns, format.unwrap_or(&Format::UnifiedText)))
    }
}

#[async_trait]
impl ExtendedQueryHandler for Handler {
    type Statement = Prepared;
    type QueryParser = Parser;

    fn query_parser(&self) -> Arc<Parser> {
        Arc::clone(&self.parser)
    }

    /// pgwire keeps the state of before the statement; the session knows the one after it.
    async fn on_sync<C>(&self, client: &mut C, _: SyncMessage) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Prepared>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let status = status(&*self.session.lock().await);
        client.set_transaction_status(status);
        client.portal_store().rm_portal(DEFAULT_NAME);
        send_ready_for_query(client, status).await
    }

    async fn do_query<C>(&self, client: &mut C, portal: &Portal<Prepared>, _: usize) -> PgWireResult<Response>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Prepared>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let mut session = self.session.lock().await;
        let prepared = &portal.statement.statement;
        let values = parameters(portal, &prepared.described);
        let ready = values.and_then(|values| Ok((bound(prepared, &values)?, values)));
        let parsed = ready.as_ref().ok().map(|(parsed, _)| Arc::clone(parsed));
        let outcome = match &ready {
            Ok((parsed, values)) => execute(&mut session, &prepared.source, parsed, values).await,
            Err(error) => {
                session.statement_failed();
                Err(error.clone())
            }
        };
        session.rest();
        client.set_transaction_status(status(&session));
        let Outcome { mut warnings, answer } = match outcome {
            Ok(outcome) => outcome,
            Err(error) => {
                fail(client, error).await?;
                return Ok(Response::EmptyQuery);
            }
        };
        warnings.retain(|warning| session.wants(warning));
        send_notices(client, warnings).await?;
        for (name, value) in session.reports() {
            let status = ParameterStatus::new(name.to_owned(), value);
            client.feed(PgWireBackendMessage::ParameterStatus(status)).await?;
        }
        let format = &portal.result_column_format;
        match answer {
            Answer::Tag(tag) => Ok(ended(&tag, parsed.as_deref())),
            Answer::Rows(rows) => {
                // pgwire would count these rows in the tag.
                for row in known_rows(&rows, format, &session)? {
                    client.feed(PgWireBackendMessage::DataRow(row)).await?;
                }
                Ok(Response::Execution(Tag::new(rows.tag)))
            }
            Answer::Query(query) => Ok(Response::Query(stream_rows(query, format, &session))),
        }
    }
}

/// Runs a statement; a cancel request stops it.
async fn execute(
    session: &mut Session,
    source: &str,
    parsed: &Parsed,
    parameters: &[Scalar],
) -> Result<Outcome, ClientError> {
    let entry = Arc::clone(session.place.entry());
    let interrupted = std::pin::pin!(entry.interrupted());
    run_interruptible(session, source, parsed, parameters, interrupted).await
}

/// Runs a statement; when it is a query, a cancel request stops it. What changes the catalog is never left half way.
async fn run_interruptible(
    session: &mut Session,
    source: &str,
    parsed: &Parsed,
    parameters: &[Scalar],
    interrupted: std::pin::Pin<&mut tokio::sync::futures::Notified<'_>>,
) -> Result<Outcome, ClientError> {
    if !matches!(parsed.statement, Statement::Sql(_)) {
        return session.run(source, parsed, parameters).await;
    }
    tokio::select! {
        outcome = session.run(source, parsed, parameters) => outcome,
        () = interrupted => {
            session.statement_failed();
            Err(canceled())
        }
    }
}

fn parameters(portal: &Portal<Prepared>, described: &Described) -> Result<Vec<Scalar>, ClientError> {
    if portal.parameters.len() != described.parameters.len() {
        let message = format!(
            "bind message supplies {} parameters, but prepared statement \"{}\" requires {}",
            portal.parameters.len(),
            portal.statement.id,
            described.parameters.len()
        );
        return Err(ClientError::new(SqlState::ProtocolViolation, message));
    }
    let read = |(index, (bytes, kind)): (usize, (&Option<Bytes>, &PgType))| {
        parameter(bytes.as_deref(), *kind, format_of(&portal.parameter_format, index))
    };
    portal.parameters.iter().zip(&described.parameters).enumerate().map(read).collect()
}

fn ended(tag: &str, parsed: Option<&Parsed>) -> Response {
    match parsed.map(|parsed| &parsed.statement) {
        Some(Statement::Begin { .. }) => Response::TransactionStart(Tag::new(tag)),
        Some(Statement::Commit | Statement::Rollback) => Response::TransactionEnd(Tag::new(tag)),
        _ => Response::Execution(Tag::new(tag)),
    }
}

fn known_rows(rows: &Rows, format: &Format, session: &Session) -> PgWireResult<Vec<DataRow>> {
    let columns = columns(rows);
    let shape = shape(&columns, format, session);
    let encode = |row: &Vec<Option<String>>| {
        let values: Vec<Scalar> = row.iter().zip(&columns).map(|(text, column)| known_as(text, column.kind)).collect();
        shape.row(&values).map_err(to_pgwire)
    };
    rows.rows.iter().map(encode).collect()
}

fn stream_rows(query: QueryRows, format: &Format, session: &Session) -> QueryResponse {
    let QueryRows { columns, rows } = query;
    let shape = shape(&columns, format, session);
    let rows =
        rows.map(move |row| row.map_err(|error| error.told("")).and_then(|row| shape.row(&row)).map_err(to_pgwire));
    QueryResponse::new(Arc::new(fields(&columns, format)), rows)
}

fn shape(columns: &[OutputColumn], format: &Format, session: &Session) -> RowShape {
    let columns = columns.iter().enumerate().map(|(index, column)| (column.kind, format_of(format, index)));
    RowShape::new(columns.collect(), session.zone())
}
