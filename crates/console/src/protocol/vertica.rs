//! Vertica's protocol behind the login, where it differs from PostgreSQL's (`reference/vertica-wire.md` §4): parameters
//! are `?`, a statement is read when it is described and its values when it runs, all rows come at once, and each
//! statement is a transaction of its own.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use switchyard_dialect::{Numbered, Parsed, number_placeholders};
use switchyard_engine::{ClientError, OutputColumn, Parameter, Scalar, SqlState, Warning, settings};
use switchyard_session::{Session as Place, SessionEntry};
use switchyard_wire::frontend::{Frontend, Target};
use switchyard_wire::vertica::frontend::{self, Bind, Message};
use switchyard_wire::vertica::{Wishes, answer as own, startup};
use switchyard_wire::{WireError, answer};
use tokio::io::{AsyncRead, AsyncWrite};

use super::Served;
use super::copy::Copy;
use super::line::{Ended, Failure};
use super::portal::Reading;
use super::prepared::{Prepared, check_count};
use crate::Console;
use crate::encode::{client_text, vertica};
use crate::session::{Answer, Session};

/// The server's version that clients are told: the one whose statements are understood.
const SERVER_VERSION: &str = "v26.2.0-0";

/// Startup parameters that are read though they are no settings.
const TAKEN: [&str; 5] = ["user", "database", "options", "workload", "client_label"];

/// What a session keeps of its client besides statements.
#[derive(Debug)]
pub(super) struct Vertica {
    wishes: Wishes,
    /// The database as the client named it.
    database: String,
    /// Texts that were to be prepared and not yet read. A text that turns out wrong leaves the statement of its name.
    candidates: HashMap<String, String>,
    /// The texts of the statements that have parameters.
    numbered: HashMap<String, Arc<Numbered>>,
    portals: HashMap<String, Bound>,
    /// What the client was told by ParameterStatus.
    told: BTreeMap<&'static str, String>,
    /// Where Sync comes twice.
    again: Option<SyncAgain>,
}

/// The client that sends Sync right behind Execute, and once more when it reads that Execute failed. Both are for the
/// one statement: were each answered, the client would take the second answer for that of its next statement.
const SYNCS_AGAIN: &str = "Node.js Driver";

/// How far such a client has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SyncAgain {
    /// No Execute has failed.
    NotDue,
    /// One has; the Sync that was sent with it is still to come.
    BehindSync,
    /// The next message is the Sync that is not answered.
    Next,
}

impl SyncAgain {
    /// After a message of this kind was answered.
    fn after(self, kind: u8, failed: bool) -> Self {
        match (self, kind) {
            (_, b'E') if failed => Self::BehindSync,
            (Self::BehindSync, b'S') => Self::Next,
            (same, _) => same,
        }
    }
}

/// A portal.
#[derive(Debug, Clone)]
struct Bound {
    /// What it runs; or what was wrong with it, which is told when it runs; none for a text without a statement.
    work: Result<Option<Work>, ClientError>,
    numbered: Option<Arc<Numbered>>,
    bytes: usize,
}

#[derive(Debug, Clone)]
struct Work {
    prepared: Arc<Prepared>,
    parsed: Arc<Parsed>,
    values: Vec<Parameter>,
}

impl Vertica {
    /// Nothing, for clients that speak PostgreSQL's protocol.
    pub(super) fn of(entry: &SessionEntry) -> Option<Self> {
        Some(Self {
            wishes: entry.vertica?,
            database: entry.database.clone().unwrap_or_default(),
            candidates: HashMap::new(),
            numbered: HashMap::new(),
            portals: HashMap::new(),
            told: BTreeMap::new(),
            again: is_told(entry, "client_type", SYNCS_AGAIN).then_some(SyncAgain::NotDue),
        })
    }

    /// Whether a message is the Sync that a client sends for the second time.
    fn is_sync_again(&mut self, kind: u8) -> bool {
        if self.again != Some(SyncAgain::Next) || kind == b'H' {
            return false;
        }
        self.again = Some(SyncAgain::NotDue);
        kind == b'S'
    }

    /// Whether rows go in binary.
    pub(super) fn binary(&self) -> bool {
        self.wishes.binary
    }

    /// Forgets what was prepared and bound.
    pub(super) fn forget(&mut self) {
        self.candidates.clear();
        self.numbered.clear();
        self.portals.clear();
    }

    /// What the client must be told of, because it is new or other than last told.
    fn news(&mut self, session: &Session, entry: &SessionEntry) -> Vec<(&'static str, String)> {
        let activity = entry.activity();
        let fixed = |value: &str| value.to_owned();
        let all = [
            ("standard_conforming_strings", fixed("on")),
            ("server_version", fixed(SERVER_VERSION)),
            ("client_locale", session.setting("locale")),
            ("client_label", activity.label),
            ("long_string_types", fixed("on")),
            ("protocol_version", self.wishes.effective.code().to_string()),
            ("auto_commit", session.setting("autocommit")),
            ("mars", fixed("off")),
            ("timezone", session.setting("TimeZone")),
            ("database_name", self.database.clone()),
            ("request_complex_types", fixed("off")),
            ("extend_copy_reject_info", fixed("off")),
            ("workload", activity.workload.unwrap_or_default()),
        ];
        let news = all.into_iter().filter(|(name, value)| self.told.get(name) != Some(value)).collect::<Vec<_>>();
        self.told.extend(news.iter().cloned());
        news
    }

    fn bytes(&self) -> usize {
        let candidates: usize = self.candidates.values().map(String::len).sum();
        candidates + self.portals.values().map(|portal| portal.bytes).sum::<usize>()
    }
}

/// Opens the session of a client. Parameters that are unknown here are no mistake of a client of Vertica: their
/// drivers send what any version of the server may want. Secrets among them are kept nowhere.
pub(super) fn open(
    console: Arc<Console>,
    place: Place,
    parameters: Vec<(String, String)>,
) -> Result<(Session, Vec<Warning>), ClientError> {
    if place.vertica.is_none() {
        return Session::open(console, place, &parameters);
    }
    let known = |name: &str| TAKEN.contains(&name) || settings::declaration(name).is_ok();
    let mut taken: Vec<_> = parameters.iter().filter(|(name, _)| known(name)).cloned().collect();
    if !taken.iter().any(|(name, _)| name == "autocommit") {
        taken.push(("autocommit".to_owned(), "off".to_owned()));
    }
    let entry = Arc::clone(place.entry());
    let opened = Session::open(console, place, &taken)?;
    let shown: Vec<_> = parameters.into_iter().filter(|(name, _)| !startup::is_secret(name)).collect();
    entry.update(|activity| activity.startup = shown.into());
    Ok(opened)
}

/// Whether a client's startup packet has a parameter with this value.
fn is_told(entry: &SessionEntry, parameter: &str, value: &str) -> bool {
    entry.activity().startup.iter().any(|(name, told)| name == parameter && told == value)
}

/// An error, if there is one, with its place in the text that the client sent.
fn placed<T>(result: Result<T, Failure>, numbered: Option<&Numbered>) -> Result<T, Failure> {
    result.map_err(|mut failure| {
        if let (Failure::Told(error), Some(numbered)) = (&mut failure, numbered) {
            error.position = error.position.map(|position| numbered.original(position));
        }
        failure
    })
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Served<S> {
    /// Answers a message of a client of Vertica.
    pub(super) async fn vertica_message(&mut self, kind: u8, body: &[u8]) -> Result<(), Ended> {
        let message = match frontend::read(kind, body) {
            Err(error @ WireError::MessageKind(_)) => return Err(error.into()),
            message => message,
        };
        if self.vertica.as_mut().is_some_and(|vertica| vertica.is_sync_again(kind)) {
            return Ok(());
        }
        if self.skips && !matches!(message, Ok(Message::Common(Frontend::Sync | Frontend::Terminate))) {
            return Ok(());
        }
        let answered = match message {
            Ok(message) => self.vertica_answer(message).await,
            Err(error) => Err(ClientError::new(SqlState::ProtocolViolation, error.to_string()).into()),
        };
        if let Some(again) = self.vertica.as_mut().and_then(|vertica| vertica.again.as_mut()) {
            *again = again.after(kind, matches!(answered, Err(Failure::Told(_))));
        }
        self.answered(kind, answered).await
    }

    async fn vertica_answer(&mut self, message: Message<'_>) -> Result<(), Failure> {
        match message {
            Message::Common(Frontend::Parse { name, text, .. }) => self.vertica_parse(name, text),
            Message::Common(Frontend::Describe(target, name)) => self.vertica_describe(target, name).await,
            Message::Common(Frontend::Close(target, name)) => self.vertica_close(target, name),
            Message::Common(Frontend::Execute { portal, .. }) => self.vertica_execute(portal).await,
            Message::Bind(bind) => self.vertica_bind(&bind).await,
            Message::Common(same) => return self.answer(same).await,
        }?;
        Ok(self.line.drain().await?)
    }

    /// Tells of settings that are other than last told; clients look at some as soon as a statement is done.
    pub(super) fn vertica_reports(&mut self) -> Vec<(&'static str, String)> {
        self.vertica.as_mut().map(|vertica| vertica.news(&self.session, &self.entry)).unwrap_or_default()
    }

    /// Takes a text and says yes: clients get out of step when they are told here what is wrong with it.
    fn vertica_parse(&mut self, name: &[u8], text: &[u8]) -> Result<(), Failure> {
        let (name, text) = (client_text(name)?, client_text(text)?);
        let Some(vertica) = &mut self.vertica else { return Ok(()) };
        vertica.candidates.remove(name);
        let (count, bytes) = (self.statements.len() + vertica.candidates.len(), vertica.bytes() + text.len());
        let known = usize::from(self.statements.contains_key(name));
        self.check_room("prepared statements", count.saturating_sub(known), "prepared_statements_max", bytes)?;
        if let Some(vertica) = &mut self.vertica {
            vertica.candidates.insert(name.to_owned(), text.to_owned());
        }
        answer::parse_complete(&mut self.line.out);
        Ok(())
    }

    /// The statement of a name, from the text last sent for it, if that can be read.
    async fn vertica_statement(&mut self, name: &str) -> Result<Option<Arc<Prepared>>, Failure> {
        let candidate = self.vertica.as_mut().and_then(|vertica| vertica.candidates.remove(name));
        let Some(text) = candidate else { return Ok(self.statement(name)?) };
        let numbered = number_placeholders(&text).map_err(ClientError::from)?;
        let read = Prepared::read(&mut self.session, &numbered.text, &[]).await;
        let prepared = placed(read.map_err(Failure::from), Some(&numbered))?.map(Arc::new);
        if let Some(vertica) = &mut self.vertica {
            vertica.numbered.remove(name);
            if numbered.text != text {
                vertica.numbered.insert(name.to_owned(), Arc::new(numbered));
            }
        }
        self.statements.insert(name.to_owned(), prepared.clone());
        Ok(prepared)
    }

    async fn vertica_describe(&mut self, target: Target, name: &[u8]) -> Result<(), Failure> {
        let name = client_text(name)?;
        if target == Target::Portal {
            let columns = match self.vertica_portal(name)?.work? {
                Some(work) => self.columns_of(&work.prepared),
                None => Arc::default(),
            };
            self.vertica_columns(&columns);
            return Ok(());
        }
        let prepared = self.vertica_statement(name).await?;
        let described = prepared.as_ref().map(|prepared| &prepared.described);
        let kinds = described.map(|described| described.parameters.as_slice()).unwrap_or_default();
        own::parameter_description(&mut self.line.out, kinds.iter().map(|kind| vertica::kind(*kind)));
        let columns = prepared.as_ref().map(|prepared| self.columns_of(prepared)).unwrap_or_default();
        self.vertica_columns(&columns);
        own::command_description(&mut self.line.out, prepared.as_ref().map_or("", |prepared| &prepared.verb));
        Ok(())
    }

    fn vertica_columns(&mut self, columns: &[OutputColumn]) {
        if columns.is_empty() {
            answer::no_data(&mut self.line.out);
        } else {
            self.describe_rows(columns, &[]);
        }
    }

    /// Takes the values and says yes, even if something is wrong with them: clients want to be told when it runs.
    async fn vertica_bind(&mut self, bind: &Bind<'_>) -> Result<(), Failure> {
        let (name, statement) = (client_text(bind.common.portal)?, client_text(bind.common.statement)?);
        let work = match self.vertica_work(bind, statement).await {
            Ok(work) => Ok(work),
            Err(Failure::Told(error)) => Err(*error),
            Err(ended) => return Err(ended),
        };
        let bytes = bind.common.parameters.iter().flatten().map(|value| value.len()).sum();
        let Some(vertica) = &mut self.vertica else { return Ok(()) };
        vertica.portals.remove(name);
        let (count, kept) = (vertica.portals.len(), vertica.bytes());
        self.check_room("portals", count, "portals_max", kept + bytes)?;
        if let Some(vertica) = &mut self.vertica {
            let numbered = vertica.numbered.get(statement).cloned();
            vertica.portals.insert(name.to_owned(), Bound { work, numbered, bytes });
        }
        answer::bind_complete(&mut self.line.out);
        Ok(())
    }

    async fn vertica_work(&mut self, bind: &Bind<'_>, name: &str) -> Result<Option<Work>, Failure> {
        let Some(prepared) = self.vertica_statement(name).await? else {
            check_count(&bind.common, name, 0)?;
            return Ok(None);
        };
        let kinds = &prepared.described.parameters;
        check_count(&bind.common, name, kinds.len())?;
        if bind.common.parameter_formats.iter().any(|format| *format != 0) {
            return Err(ClientError::new(SqlState::FeatureNotSupported, "parameters are taken as text only").into());
        }
        let values = bind.common.parameters.iter().zip(kinds);
        let values: Vec<Scalar> =
            values.map(|(bytes, kind)| vertica::text_parameter(*bytes, *kind)).collect::<Result<_, _>>()?;
        let values = prepared.typed(values);
        let parsed = prepared.bound(&values)?;
        prepared.executions.fetch_add(1, Ordering::Relaxed);
        Ok(Some(Work { prepared, parsed, values }))
    }

    fn vertica_portal(&self, name: &str) -> Result<Bound, ClientError> {
        let found = self.vertica.as_ref().and_then(|vertica| vertica.portals.get(name));
        found
            .cloned()
            .ok_or_else(|| ClientError::new(SqlState::InvalidCursorName, format!("portal \"{name}\" does not exist")))
    }

    fn vertica_close(&mut self, target: Target, name: &[u8]) -> Result<(), Failure> {
        let own = client_text(name)?;
        if let Some(vertica) = &mut self.vertica {
            match target {
                Target::Statement => {
                    vertica.candidates.remove(own);
                    vertica.numbered.remove(own);
                }
                Target::Portal => drop(vertica.portals.remove(own)),
            }
        }
        self.close(target, name)
    }

    async fn vertica_execute(&mut self, name: &[u8]) -> Result<(), Failure> {
        let Bound { work, numbered, .. } = self.vertica_portal(client_text(name)?)?;
        let Some(work) = work? else {
            answer::empty_query(&mut self.line.out);
            return Ok(());
        };
        let result = self.vertica_run(work).await;
        let ended = self.end_implicit(result.is_err()).await;
        self.session.rest();
        placed(result, numbered.as_deref())?;
        ended
    }

    /// Runs a statement alone: what it did is lasting when its answer is sent, for not every client sends Sync.
    async fn vertica_run(&mut self, work: Work) -> Result<(), Failure> {
        let Work { prepared, parsed, values } = work;
        let source = Arc::clone(&prepared.source);
        if Copy::of(&parsed)?.is_some() {
            return Err(no_copy().into());
        }
        let entry = Arc::clone(&self.entry);
        let mut interrupted = std::pin::pin!(entry.interrupted());
        let mut reading = match self.start(&source, &parsed, &values, interrupted.as_mut()).await? {
            Answer::Tag(tag) => {
                self.complete(&tag);
                return Ok(());
            }
            Answer::Rows(rows) => Reading::of_rows(rows, source, &[], self.style()),
            Answer::Query(query) => Reading::of_query(query, source, &[], self.style()),
            Answer::Fetched(rows) => Reading::of_fetched(rows, source, &[], self.style()),
        };
        self.deliver(&mut reading, 0, interrupted.as_mut()).await?;
        self.reports();
        answer::portal_suspended(&mut self.line.out);
        Ok(())
    }
}

/// What LISTEN answers: there is no message for what would come of it.
pub(super) fn no_listen() -> ClientError {
    ClientError::new(SqlState::FeatureNotSupported, "LISTEN is not supported in Vertica's protocol")
        .with_hint("Listen with a client of PostgreSQL.")
}

/// What COPY answers: the message that begins it is another one in Vertica's protocol.
pub(super) fn no_copy() -> ClientError {
    ClientError::new(SqlState::FeatureNotSupported, "COPY is not supported in Vertica's protocol")
        .with_hint("Select the rows, or copy them with a client of PostgreSQL.")
}
