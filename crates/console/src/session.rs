//! What one session does with statements: plan, run, and tell what came of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::StreamExt;
use jiff::tz::TimeZone;
use switchyard_catalog::{Catalog, Change, Name, NodeChange, NodeId, RoutingClient, User};
use switchyard_dialect::{
    MetaFunction, ParseLimits, Parsed, Redacted, SqlStatement, Statement, UserAction, UserParameter,
};
use switchyard_engine::plan::{
    Changes, Order, Plan, PlanContext, Rows, SHUTDOWN_ABORTED, SHUTDOWN_ABORTED_NOTICE, Transaction as TransactionPlan,
    is_about_logins, lockout_warnings,
};
use switchyard_engine::{
    AdvisoryLocks, ClientError, CursorRow, Described, DrainProgress, Effect, Effects, HistoryRow, Lazy, Live,
    LiveSession, LoggedStatement, Login, OutputColumn, Parameter, PgType, PreparedRow, Queries, QueryLimits, QueryRows,
    Scalar, SessionChange, SessionState, Snapshot, SqlState, TimeSetting, Warning, WorkloadDecision, WorkloadWish,
    settings,
};
use switchyard_session::{KeepAlive, Session as Place, SessionState as PlaceState};
use switchyard_store::Outcome as StoreOutcome;
use tokio::time::{Instant, sleep};

use crate::Console;
use crate::asking::{Answer as PeerAnswer, Question, denied};
use crate::channels::{Listening, Notification, Wish};
use crate::encode::{IntervalStyle, Style};
use crate::encoding::Encoding;
use crate::error::aborted;
use crate::live::{now_us, shown};
use crate::protocol::Waits;
use crate::query_log::{Keep, Running};
use crate::transaction::{Author, Transaction};

/// How often it is looked whether sessions that drain are over.
const DRAIN_LOOK_EVERY: Duration = Duration::from_millis(100);

/// How many versions back `catalog_history` reads.
const HISTORY_VERSIONS_MAX: u64 = 100_000;

/// One logged-in client.
pub(crate) struct Session {
    pub(crate) console: Arc<Console>,
    /// The place in the registry, given up with the session.
    pub(crate) place: Place,
    /// Shared with what queries see of it.
    state: Arc<SessionState>,
    transaction: Option<Transaction>,
    failed: bool,
    queries: Option<Queries>,
    seen_version: u64,
    /// As the client was last told of settings.
    reported: Seen,
    told: BTreeMap<&'static str, String>,
    /// Before the first statement of a transaction that may be that of one statement alone.
    before: Option<Arc<SessionState>>,
    kept_settings: Option<StatementSettings>,
    /// As others were last shown what the session does.
    shown: Seen,
    author: Author,
    /// The statement that runs, or ran last.
    running: Option<Arc<Running>>,
    portal_events: Vec<PortalEvent>,
    cursors: Arc<[CursorRow]>,
    prepared: Arc<[PreparedRow]>,
    pub(crate) listening: Listening,
    effects: Arc<Effects>,
    locks: Locks,
    /// When the transaction began, or the statement outside of one, in microseconds since 1970-01-01 UTC.
    unit_begin_us: Option<i64>,
}

/// What each statement asks of the settings.
struct StatementSettings {
    seen: Seen,
    parse: ParseLimits,
    query: QueryLimits,
    keep: Keep,
    style: Style,
    /// Outside of a transaction, and in one; nothing where the client is waited for as long as it likes.
    waits: Option<Box<[Waits; 2]>>,
}

/// The version of the catalog, and the state of a session.
type Seen = Option<(u64, Arc<SessionState>)>;

/// The advisory locks of one session, which end with it.
struct Locks {
    table: Arc<AdvisoryLocks>,
    process_id: i32,
}

impl Drop for Locks {
    fn drop(&mut self) {
        self.table.end_session(self.process_id);
    }
}

/// What happened to the transaction that portals live in.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PortalEvent {
    /// It was committed.
    Committed,
    /// It was rolled back.
    RolledBack,
    /// It went back: those made under more savepoints than these are closed.
    Back(usize),
    /// Savepoints were released: those made under them are as if made under so many.
    Released(usize),
}

/// What came of a statement.
pub(crate) struct Outcome {
    /// Sent before the answer.
    pub(crate) warnings: Vec<Warning>,
    /// The answer.
    pub(crate) answer: Answer,
}

/// The answer to a statement.
pub(crate) enum Answer {
    /// A command tag.
    Tag(String),
    /// A few rows that are known, with the tag.
    Rows(Rows),
    /// The rows of a query.
    Query(QueryRows),
    /// Rows that were fetched from a cursor.
    Fetched(Fetched),
}

/// The sessions of all members, and how far those are that drain.
struct AllSessions {
    open: Vec<LiveSession>,
    ended: Vec<(LiveSession, i64)>,
    drains: Vec<DrainProgress>,
}

/// Rows of a cursor.
pub(crate) struct Fetched {
    pub(crate) columns: Arc<[OutputColumn]>,
    pub(crate) rows: Vec<Vec<Scalar>>,
    /// A cursor that was declared BINARY.
    pub(crate) binary: bool,
}

impl Outcome {
    pub(crate) fn tag(tag: impl Into<String>) -> Self {
        Self { warnings: Vec::new(), answer: Answer::Tag(tag.into()) }
    }
}

impl Session {
    /// A session of a client that has proved who it is; the warnings are for the client.
    pub(crate) fn open(
        console: Arc<Console>,
        place: Place,
        parameters: &[(String, String)],
    ) -> Result<(Self, Vec<Warning>), ClientError> {
        let catalog = console.head.load();
        let login = Login {
            user: place.user_name.clone(),
            session_id: place.id.clone(),
            process_id: place.process_id,
            client_address: place.client,
            time: jiff::Timestamp::now(),
            node: console.node_name(&catalog),
        };
        let (state, warnings) = SessionState::open(login, parameters, &catalog, &mut rand::rng())?;
        let author = Author {
            user: place.user_name.to_string(),
            client: place.client.map_or_else(|| "[local]".to_owned(), |client| client.to_string()),
        };
        place.update(|activity| activity.startup = parameters.into());
        let seen_version = catalog.version();
        let listening = Listening::new(Arc::clone(&console.channels), place.process_id);
        let locks = Locks { table: Arc::clone(&console.locks), process_id: place.process_id };
        let mut session = Self {
            console,
            place,
            state: Arc::new(state),
            transaction: None,
            failed: false,
            queries: None,
            seen_version,
            reported: None,
            told: BTreeMap::new(),
            before: None,
            kept_settings: None,
            shown: None,
            author,
            running: None,
            portal_events: Vec::new(),
            cursors: Arc::default(),
            prepared: Arc::default(),
            listening,
            effects: Arc::default(),
            locks,
            unit_begin_us: None,
        };
        session.show_activity();
        Ok((session, warnings))
    }

    /// The session waits outside of a transaction, with no result open: another may have what it needs for queries only.
    pub(crate) fn release(&mut self) {
        self.running = None;
        if let Some(begin_us) = self.unit_begin_us.take() {
            self.console.live.query_log.counters.transaction(begin_us, now_us());
        }
        match self.queries.take() {
            Some(queries) if queries.is_idle() => self.console.keep_engine(queries),
            // Something runs there that nobody waits for: it ends with it.
            _ => {}
        }
    }

    /// The state, to be changed: what queries see of it stays as it was.
    fn state_mut(&mut self) -> &mut SessionState {
        Arc::make_mut(&mut self.state)
    }

    /// Settings the client must be told of.
    pub(crate) fn reports(&mut self) -> Vec<(&'static str, String)> {
        if self.is_as_at(&self.reported) {
            return Vec::new();
        }
        let catalog = self.catalog();
        let news = self.state.reports(&catalog, &mut self.told);
        self.reported = self.now();
        news
    }

    /// What settings follow from.
    fn now(&self) -> Seen {
        let changed = self.transaction.as_ref().is_some_and(Transaction::changed);
        (!changed).then(|| (self.catalog().version(), Arc::clone(&self.state)))
    }

    /// Whether nothing that settings follow from is other than it was then.
    fn is_as_at(&self, then: &Seen) -> bool {
        let now = self.now();
        let same = |(version, state): &(u64, Arc<SessionState>)| {
            now.as_ref().is_some_and(|(current, own)| version == current && Arc::ptr_eq(state, own))
        };
        then.as_ref().is_some_and(same)
    }

    /// Whether a transaction is open that BEGIN began.
    pub(crate) fn in_transaction(&self) -> bool {
        self.transaction.as_ref().is_some_and(|transaction| transaction.explicit)
    }

    /// Whether that transaction can only be rolled back.
    pub(crate) fn failed(&self) -> bool {
        self.failed
    }

    /// The catalog as this session sees it now.
    fn catalog(&self) -> Arc<Catalog> {
        match &self.transaction {
            Some(transaction) => Arc::clone(transaction.catalog()),
            None => self.console.head.load(),
        }
    }

    /// The session's time zone.
    pub(crate) fn zone(&self) -> TimeZone {
        settings::zone_of(&self.state, &self.catalog())
    }

    /// Rules and grants may have changed since the last statement.
    fn refresh(&mut self) {
        let catalog = self.catalog();
        let changed =
            self.transaction.as_ref().is_some_and(|transaction| transaction.explicit || transaction.changed());
        if catalog.version() != self.seen_version || changed {
            self.seen_version = catalog.version();
            self.state_mut().refresh_workload(&catalog, &mut rand::rng());
        }
        let node = self.console.node_name(&catalog);
        if self.state.node_name != node {
            self.state_mut().node_name = node;
        }
    }

    /// Rules and grants may have changed: others see what applies now.
    pub(crate) fn refresh_now(&mut self) {
        self.refresh();
        self.show_workload();
    }

    fn show_workload(&self) {
        let workload = self.state.workload().map(Name::to_string);
        self.note_workload(workload.as_deref().unwrap_or_default());
        self.place.update(|activity| activity.workload = workload);
    }

    /// The workload that applies.
    pub(crate) fn workload(&self) -> Option<Name> {
        self.state.workload().cloned()
    }

    /// Whether the client speaks Vertica's protocol.
    pub(crate) fn speaks_vertica(&self) -> bool {
        self.place.vertica.is_some()
    }

    fn show_activity(&mut self) {
        if self.is_as_at(&self.shown) {
            return;
        }
        self.shown = self.now();
        let workload = self.state.workload().map(Name::to_string);
        self.note_workload(workload.as_deref().unwrap_or_default());
        let label = self.state.client_label.clone();
        let catalog = self.catalog();
        let value = |name| settings::value_of(name, &self.state, &catalog);
        let (application, idle, grace) = (value("application_name"), value("idlesessiontimeout"), value("graceperiod"));
        self.place.update(|activity| {
            activity.workload = workload;
            activity.label = label;
            activity.application = application;
            activity.idle_session_timeout = idle;
            activity.grace_period = grace;
        });
    }

    /// Notes that another workload applies than did, or none any more.
    fn note_workload(&self, workload: &str) {
        if self.place.activity().workload.as_deref().unwrap_or_default() == workload {
            return;
        }
        let named = |name: &Name| name.as_str().eq_ignore_ascii_case(workload);
        let reason = match self.state.workload_wish() {
            WorkloadWish::None => "SET SESSION WORKLOAD NONE",
            WorkloadWish::Named(name) if named(name) => "SET SESSION WORKLOAD",
            _ if workload.is_empty() => "no rule is granted",
            _ if self.state.connect_workload().is_some_and(named) => "named at connect",
            _ => "granted, of the highest priority",
        };
        self.console.live.workload_decided(WorkloadDecision {
            node: self.console.node_id,
            time_us: now_us(),
            session_id: self.place.id.clone(),
            user: self.author.user.clone(),
            workload: workload.to_owned(),
            reason,
        });
    }

    /// Opens a transaction for the statements of one string.
    pub(crate) fn begin_implicit(&mut self) {
        if self.transaction.is_none() {
            self.transaction = Some(Transaction::begin(self.console.head.load(), false));
            self.state_mut().begin();
        }
    }

    /// Opens a transaction for the statements up to Sync: the first of them is alone in it until there is another.
    pub(crate) fn begin_pipelined(&mut self) {
        match &self.transaction {
            Some(transaction) if transaction.explicit => {}
            Some(_) => self.begin_state(),
            None => {
                self.transaction = Some(Transaction::begin(self.console.head.load(), false));
                // Nothing is undone yet: most statements are alone up to Sync, and set nothing.
                self.before = Some(Arc::clone(&self.state));
            }
        }
    }

    fn begin_state(&mut self) {
        match self.before.take() {
            Some(before) => self.state_mut().begin_as(&before),
            None => self.state_mut().begin(),
        }
    }

    /// LISTEN, UNLISTEN and NOTIFY: at once, or when the transaction is committed.
    pub(crate) fn channel_statement(&mut self, statement: &Statement) -> Result<Outcome, ClientError> {
        let (tag, wish) = match statement {
            Statement::Listen(channel) => ("LISTEN", Wish::Listen(channel.0.clone())),
            Statement::Unlisten(channel) => ("UNLISTEN", Wish::Unlisten(channel.as_ref().map(|name| name.0.clone()))),
            Statement::Notify { channel, payload } => {
                ("NOTIFY", self.notification(channel.0.clone(), payload.clone().unwrap_or_default()))
            }
            _ => return Err(ClientError::new(SqlState::FeatureNotSupported, "this statement is not about channels")),
        };
        self.wish(wish)?;
        Ok(Outcome::tag(tag))
    }

    fn notification(&self, channel: String, payload: String) -> Wish {
        Wish::Notify(Arc::new(Notification { process_id: self.place.process_id, channel, payload }))
    }

    fn wish(&mut self, wish: Wish) -> Result<(), ClientError> {
        self.listening.wish(wish, self.state.savepoint_depth())?;
        if self.transaction.is_none() {
            let room = self.listening.prepare().inspect_err(|_| self.listening.forget());
            // Two steps, since the second borrows what the first may have to clear.
            self.listening.settle(room?);
        }
        Ok(())
    }

    /// Does what functions of a query have noted, which has given its rows; the warnings are for the client.
    pub(crate) fn do_effects(&mut self) -> Result<Vec<Warning>, ClientError> {
        let mut warnings = Vec::new();
        let effects = self.effects.take();
        if effects.is_empty() {
            return Ok(warnings);
        }
        let catalog = self.catalog();
        for effect in effects {
            match effect {
                // What counts until the end of the transaction ends with the statement, where there is none.
                Effect::Change(SessionChange::Set { local: true, .. }) if self.transaction.is_none() => {}
                Effect::Change(change) => self.state_mut().apply(change, &catalog, &mut rand::rng()),
                Effect::Cancel(process_id) => self.end_process(process_id, false),
                Effect::Terminate(process_id) => self.end_process(process_id, true),
                Effect::Notify { channel, payload } => self.wish(self.notification(channel, payload))?,
                Effect::Warn(warning) => warnings.push(warning),
            }
        }
        warnings.retain(|warning| self.wants(warning));
        self.show_activity();
        Ok(warnings)
    }

    fn end_process(&self, process_id: i32, close: bool) {
        let found = self.console.members.sessions_numbered(process_id);
        if !found.is_empty() {
            let end =
                |entry: &switchyard_session::SessionEntry| if close { entry.terminate() } else { entry.interrupt() };
            return found.iter().for_each(|entry| end(entry));
        }
        // It runs elsewhere, or has ended by itself meanwhile. Whether it was told is not said, as PostgreSQL does not.
        let console = Arc::clone(&self.console);
        tokio::spawn(async move { console.ask_peers(&Question::Process { process_id, close }).await });
    }

    /// Gives up the advisory locks that are not the transaction's, and all channels.
    pub(crate) fn let_go(&mut self) {
        self.listening.unlisten_all();
        self.locks.table.unlock_all(self.locks.process_id);
    }

    /// Whether more than one statement can see what this one leaves behind in its transaction.
    pub(crate) fn in_block(&self) -> bool {
        self.state.in_transaction()
    }

    /// Gives the transaction up.
    pub(crate) fn abort(&mut self) {
        self.roll_back();
    }

    /// What the next query of the session reads of its own objects.
    pub(crate) fn show_objects(&mut self, cursors: Arc<[CursorRow]>, prepared: Arc<[PreparedRow]>) {
        self.cursors = cursors;
        self.prepared = prepared;
    }

    /// Whether a transaction is open, of any kind.
    pub(crate) fn has_transaction(&self) -> bool {
        self.transaction.is_some()
    }

    /// How many savepoints there are.
    pub(crate) fn savepoint_depth(&self) -> usize {
        self.state.savepoint_depth()
    }

    /// What has happened to transactions since this was last asked.
    pub(crate) fn portal_events(&mut self) -> Vec<PortalEvent> {
        std::mem::take(&mut self.portal_events)
    }

    /// The value of a setting that limits something.
    pub(crate) fn limit(&self, setting: &str) -> usize {
        usize::try_from(settings::int_of(setting, &self.state, &self.catalog())).unwrap_or(usize::MAX)
    }

    /// What the texts that a client sends may be at the most.
    pub(crate) fn parse_limits(&mut self) -> ParseLimits {
        self.statement_settings().parse
    }

    /// How rows are written, but for what the protocol wants.
    pub(crate) fn style(&mut self) -> Style {
        self.statement_settings().style.clone()
    }

    /// The settings that each statement asks for, looked up when they may have changed.
    fn statement_settings(&mut self) -> &StatementSettings {
        let kept = self.kept_settings.take().filter(|kept| self.is_as_at(&kept.seen));
        let current = kept.unwrap_or_else(|| self.look_up());
        self.kept_settings.insert(current)
    }

    fn look_up(&self) -> StatementSettings {
        let catalog = self.catalog();
        let number = |name| settings::int_of(name, &self.state, &catalog);
        let size = |name| usize::try_from(number(name)).unwrap_or(usize::MAX);
        let small = |name| u32::try_from(number(name)).unwrap_or_default();
        let time = switchyard_engine::statement_time_ms(&self.state, &catalog);
        let (time_ms_max, time_setting) = time.unwrap_or((0, TimeSetting::QueryTimeMax));
        StatementSettings {
            seen: self.now(),
            parse: ParseLimits {
                statement_bytes_max: size("statement_bytes_max"),
                query_bytes_max: size("query_bytes_max"),
                depth_max: size("parse_depth_max"),
            },
            query: QueryLimits {
                memory_bytes_max: size("query_memory_bytes_max"),
                time_ms_max,
                time_setting,
                depth_max: u64::try_from(number("parse_depth_max")).unwrap_or_default(),
            },
            keep: Keep {
                statements_max: usize::try_from(number("query_log_statements_max")).unwrap_or_default(),
                duration_us_min: Some(number("log_min_duration_statement").saturating_mul(1_000)).filter(|us| *us >= 0),
            },
            style: Style {
                zone: self.zone(),
                interval: IntervalStyle::named(&self.setting("IntervalStyle")),
                bytes_escaped: self.setting("bytea_output") == "escape",
                float_digits: self.setting("extra_float_digits").parse().unwrap_or(1),
                encoding: Encoding::named(&self.setting("client_encoding")),
                vertica: None,
            },
            waits: {
                let grace_ms = switchyard_engine::grace_period_ms(&self.state, &catalog);
                let keep_alive = KeepAlive {
                    idle_s: small("KeepAliveIdleTime"),
                    interval_s: small("KeepAliveProbeInterval"),
                    probes: small("KeepAliveProbeCount"),
                };
                let idle = switchyard_engine::idle_limits(&self.state, &catalog);
                let waits = idle.map(|idle| Waits { idle, grace_ms, keep_alive });
                (waits != [Waits::default(); 2]).then(|| Box::new(waits))
            },
        }
    }

    /// How long the client is waited for, as it is now.
    pub(crate) fn waits(&mut self) -> Waits {
        let in_transaction = self.in_transaction();
        let Some(waits) = &self.statement_settings().waits else { return Waits::default() };
        let [outside, inside] = **waits;
        if in_transaction { inside } else { outside }
    }

    /// The value of a setting, as SHOW has it.
    pub(crate) fn setting(&self, name: &str) -> String {
        settings::value_of(name, &self.state, &self.catalog())
    }

    /// Ends the transaction of one string, if BEGIN has not made it a real one.
    pub(crate) async fn end_implicit(&mut self, failed: bool) -> Result<(), ClientError> {
        if self.transaction.as_ref().is_none_or(|transaction| transaction.explicit) {
            return Ok(());
        }
        if failed {
            self.roll_back();
            return Ok(());
        }
        self.commit().await
    }

    /// Runs one statement and tells what came of it; a mistake in a transaction makes that one fail.
    pub(crate) async fn run(
        &mut self,
        source: &str,
        parsed: &Parsed,
        parameters: &[Parameter],
    ) -> Result<Outcome, ClientError> {
        let running = self.begin_statement(&parsed.statement);
        let result = self.run_inner(source, parsed, parameters).await;
        self.finish(running, result)
    }

    /// A statement begins: others see it from now on.
    pub(crate) fn begin_statement(&mut self, statement: &Statement) -> Arc<Running> {
        let text = Redacted(statement).to_string();
        self.place.begin_statement(text.as_str());
        let running = self.begin_logging(text, statement);
        self.running = Some(Arc::clone(&running));
        self.unit_begin_us.get_or_insert_with(now_us);
        running
    }

    /// A statement was run, but for its rows.
    pub(crate) fn finish(
        &mut self,
        running: Arc<Running>,
        mut result: Result<Outcome, ClientError>,
    ) -> Result<Outcome, ClientError> {
        log_outcome(running, &mut result);
        if result.is_err() && self.transaction.is_some() {
            self.failed |= self.in_transaction();
        }
        self.show_activity();
        result
    }

    fn begin_logging(&mut self, text: String, statement: &Statement) -> Arc<Running> {
        let keep = self.statement_settings().keep;
        let activity = self.place.activity();
        let first_word = text.split_whitespace().next().unwrap_or_default().to_uppercase();
        let statement = LoggedStatement {
            number: 0,
            user: self.author.user.clone(),
            failure: None,
            command_tag: first_word,
            start_us: now_us(),
            start_cost_us: 0,
            duration_us: 0,
            statement: text,
            result_rows: None,
            tables_read: match statement {
                Statement::Sql(statement) | Statement::DeclareCursor { query: statement, .. } => {
                    switchyard_engine::facts(statement).tables_read()
                }
                _ => Arc::default(),
            },
            process_id: self.place.process_id,
            application: activity.application,
            client: self.place.client.map(|client| client.ip()),
            session_id: self.place.id.clone(),
            session_start_us: self.place.login_time_us,
            statement_number: i64::try_from(activity.statements).unwrap_or(i64::MAX),
        };
        self.console.live.query_log.begin(statement, keep)
    }

    /// The client was told of a mistake.
    pub(crate) fn mistake(&mut self) {
        self.effects.take();
        self.failed |= self.in_transaction();
    }

    /// A mistake was found outside of [`Self::run`].
    pub(crate) fn statement_failed(&mut self) {
        self.failed |= self.in_transaction();
        // What has ended already stays as it ended; this one was canceled, then.
        if let Some(running) = &self.running {
            running.failed("canceling statement due to user request");
        }
    }

    /// The session waits for the next statement.
    pub(crate) fn rest(&self) {
        if self.transaction.is_none() {
            self.locks.table.end_transaction(self.locks.process_id);
        }
        self.place.end_statement(match (self.in_transaction(), self.failed) {
            (false, _) => PlaceState::Idle,
            (true, false) => PlaceState::IdleInTransaction,
            (true, true) => PlaceState::IdleInFailedTransaction,
        });
    }

    async fn run_inner(
        &mut self,
        source: &str,
        parsed: &Parsed,
        parameters: &[Parameter],
    ) -> Result<Outcome, ClientError> {
        self.admit(&parsed.statement)?;
        match self.plan(&parsed.statement) {
            Ok(plan) => self.execute(plan, source, parsed, parameters).await,
            Err(error) => {
                self.note_refusal(&parsed.statement, &error).await;
                Err(error)
            }
        }
    }

    /// What must hold before any statement runs.
    pub(crate) fn admit(&mut self, statement: &Statement) -> Result<(), ClientError> {
        if self.failed && !ends_failed_transaction(statement) {
            return Err(aborted());
        }
        self.refresh();
        self.check_user(statement)
    }

    /// The user may have been dropped since the login, or must choose a new password first.
    fn check_user(&self, statement: &Statement) -> Result<(), ClientError> {
        let catalog = self.catalog();
        let name = &self.place.user_name;
        let Some(user) = catalog.users().find(self.state.user_id) else {
            let message = format!("user \"{name}\" has been dropped");
            return Err(ClientError::new(SqlState::InvalidAuthorization, message));
        };
        if !user.password_expired || renews_password(statement, &user.name) {
            return Ok(());
        }
        let message = format!("the password of user \"{name}\" has expired");
        Err(ClientError::new(SqlState::InvalidPassword, message)
            .with_hint(format!("ALTER USER {name} IDENTIFIED BY 'new' REPLACE 'old' sets a new one.")))
    }

    fn plan(&self, statement: &Statement) -> Result<Plan, ClientError> {
        let catalog = self.catalog();
        let context = PlanContext {
            catalog: &catalog,
            session: &self.state,
            make_verifiers: &crate::make_verifiers,
            check_password: &crate::check_password,
        };
        Ok(switchyard_engine::plan::plan(statement, &context)?)
    }

    async fn execute(
        &mut self,
        plan: Plan,
        source: &str,
        parsed: &Parsed,
        parameters: &[Parameter],
    ) -> Result<Outcome, ClientError> {
        match plan {
            Plan::Changes(changes) => self.change(changes, &parsed.statement).await,
            Plan::Session(step) => {
                let catalog = self.catalog();
                for change in step.changes {
                    self.state_mut().apply(change, &catalog, &mut rand::rng());
                }
                let answer = step.answer.map_or_else(|| Answer::Tag(step.tag.to_owned()), Answer::Rows);
                Ok(Outcome { warnings: step.warnings, answer })
            }
            Plan::Rows(rows) => Ok(Outcome { warnings: Vec::new(), answer: Answer::Rows(rows) }),
            Plan::Transaction(step) => self.transact(step).await,
            Plan::Query(statement) => {
                let rows = self.query(source, &statement, parameters).await?;
                Ok(Outcome { warnings: Vec::new(), answer: Answer::Query(rows) })
            }
            Plan::Restore { version } => self.restore(version, &parsed.statement).await,
            Plan::Order(Order::Member { node, serve }, rows) => self.member(&node, serve, rows).await,
            Plan::Order(Order::StopSubcluster { subcluster, drain_s }, rows) => {
                let warnings = self.stop_subcluster(&subcluster, drain_s, &parsed.statement).await?;
                Ok(Outcome { warnings, answer: Answer::Rows(rows) })
            }
            Plan::Order(order, rows) => self.order(order, rows).await,
            Plan::SessionObject => {
                Err(ClientError::new(SqlState::FeatureNotSupported, "this statement cannot be run from here"))
            }
        }
    }

    async fn change(&mut self, plan: Changes, statement: &Statement) -> Result<Outcome, ClientError> {
        self.keep_own_node(&plan.changes)?;
        let mut warnings = plan.warnings;
        warnings.extend(self.own_node_renamed(&plan.changes));
        let text = Redacted(statement).to_string();
        let alone = self.transaction.is_none();
        let transaction = self.transaction.get_or_insert_with(|| Transaction::begin(self.console.head.load(), false));
        let before = Arc::clone(transaction.catalog());
        let result = transaction.apply(plan.changes, text);
        let notices = match result {
            Ok(notices) => notices,
            Err(error) => {
                if alone {
                    self.transaction = None;
                }
                self.note_refusal(statement, &error).await;
                return Err(error);
            }
        };
        if is_about_logins(statement) {
            warnings.extend(self.lockout_warnings(&before));
        }
        warnings.extend(notices.iter().map(warning));
        if alone {
            let result = self.commit().await;
            if let Err(error) = result {
                self.note_refusal(statement, &error).await;
                return Err(error);
            }
        }
        let answer = plan.answer.map_or_else(|| Answer::Tag(plan.tag.to_owned()), Answer::Rows);
        self.refresh();
        Ok(Outcome { warnings, answer })
    }

    /// What is to be said of who cannot log in any more, compared to before a statement; of an open transaction nothing,
    /// until it is committed.
    fn lockout_warnings(&mut self, before: &Catalog) -> Vec<Warning> {
        match &mut self.transaction {
            Some(transaction) if transaction.explicit => {
                transaction.about_logins = true;
                Vec::new()
            }
            Some(transaction) => lockout_warnings(before, transaction.catalog(), &self.state),
            None => Vec::new(),
        }
    }

    /// A member that runs cannot be taken out of the catalog from under itself.
    fn keep_own_node(&self, changes: &[Change]) -> Result<(), ClientError> {
        let own = &self.console.node_name(&self.catalog());
        let drops = |change: &Change| matches!(change, Change::DropNode { name, .. } if name == own);
        if changes.iter().any(drops) {
            return Err(ClientError::new(
                SqlState::ObjectInUse,
                format!("node \"{own}\" is this member and is running"),
            )
            .with_hint("Stop the member first, and drop its node on another one."));
        }
        Ok(())
    }

    /// A member goes by the name it is started with: under the old one it would join as another node.
    fn own_node_renamed(&self, changes: &[Change]) -> Option<Warning> {
        let own = self.console.node_name(&self.catalog());
        changes.iter().find_map(|change| match change {
            Change::AlterNode { name, change: NodeChange::Rename(to) } if *name == own && *to != own => {
                Some(Warning::notice(format!("this member is to be started with the node name \"{to}\" from now on")))
            }
            _ => None,
        })
    }

    /// Whether notices are sent: `client_min_messages` may ask for warnings or errors only.
    pub(crate) fn wants(&self, warning: &Warning) -> bool {
        match settings::value_of("client_min_messages", &self.state, &self.catalog()).as_str() {
            "error" => false,
            "warning" => !warning.notice,
            _ => true,
        }
    }

    async fn commit(&mut self) -> Result<(), ClientError> {
        let Some(transaction) = self.transaction.take() else { return Ok(()) };
        let room = match self.listening.prepare() {
            Ok(room) => room,
            Err(error) => {
                self.roll_back();
                return Err(error);
            }
        };
        let console = Arc::clone(&self.console);
        match console.commit(transaction, &self.author).await {
            Ok(()) => {
                self.listening.settle(room);
                self.portal_events.push(PortalEvent::Committed);
                self.locks.table.end_transaction(self.locks.process_id);
                self.before = None;
                if self.state.has_to_commit() {
                    self.state_mut().commit();
                }
                self.refresh();
                Ok(())
            }
            Err(error) => {
                self.roll_back();
                Err(error)
            }
        }
    }

    fn roll_back(&mut self) {
        self.portal_events.push(PortalEvent::RolledBack);
        self.locks.table.end_transaction(self.locks.process_id);
        self.listening.forget();
        self.transaction = None;
        self.failed = false;
        if let Some(before) = self.before.take() {
            self.state_mut().begin_as(&before);
        }
        self.state_mut().rollback();
        self.refresh_after_rollback();
    }

    fn refresh_after_rollback(&mut self) {
        let catalog = self.catalog();
        self.seen_version = catalog.version();
        self.state_mut().refresh_workload(&catalog, &mut rand::rng());
    }

    async fn transact(&mut self, step: TransactionPlan) -> Result<Outcome, ClientError> {
        match step {
            TransactionPlan::Begin { tag, modes } => Ok(self.begin(tag, modes)),
            TransactionPlan::Commit => self.end_by_commit().await,
            TransactionPlan::Rollback => {
                let warnings = self.missing_transaction();
                self.roll_back();
                Ok(Outcome { warnings, ..Outcome::tag("ROLLBACK") })
            }
            TransactionPlan::Savepoint(name) => {
                self.open_transaction("SAVEPOINT")?.savepoint(name.clone());
                self.state_mut().savepoint(name);
                Ok(Outcome::tag("SAVEPOINT"))
            }
            TransactionPlan::Release(name) => {
                self.open_transaction("RELEASE SAVEPOINT")?;
                if !self.state_mut().release(&name) {
                    return Err(no_savepoint(&name));
                }
                self.open_transaction("RELEASE SAVEPOINT")?.release(&name);
                self.listening.released(self.state.savepoint_depth());
                self.locks.table.released(self.locks.process_id, self.state.savepoint_depth());
                self.portal_events.push(PortalEvent::Released(self.state.savepoint_depth()));
                Ok(Outcome::tag("RELEASE"))
            }
            TransactionPlan::RollbackTo(name) => {
                self.open_transaction("ROLLBACK TO SAVEPOINT")?;
                if !self.state_mut().rollback_to(&name) {
                    return Err(no_savepoint(&name));
                }
                self.open_transaction("ROLLBACK TO SAVEPOINT")?.rollback_to(&name);
                let depth = self.state.savepoint_depth().saturating_sub(1);
                self.listening.back(depth);
                self.locks.table.back(self.locks.process_id, Some(depth));
                self.portal_events.push(PortalEvent::Back(depth));
                self.failed = false;
                self.refresh_after_rollback();
                Ok(Outcome::tag("ROLLBACK"))
            }
        }
    }

    fn begin(&mut self, tag: &'static str, modes: Vec<switchyard_engine::SessionChange>) -> Outcome {
        let mut warnings = Vec::new();
        match &mut self.transaction {
            Some(transaction) if transaction.explicit => {
                warnings.push(Warning {
                    notice: false,
                    sqlstate: SqlState::ActiveTransaction,
                    message: "there is already a transaction in progress".to_owned(),
                });
            }
            Some(transaction) => {
                transaction.explicit = true;
                self.begin_state();
            }
            None => {
                self.transaction = Some(Transaction::begin(self.console.head.load(), true));
                self.state_mut().begin();
            }
        }
        let catalog = self.catalog();
        for mode in modes {
            self.state_mut().apply(mode, &catalog, &mut rand::rng());
        }
        Outcome { warnings, ..Outcome::tag(tag) }
    }

    async fn end_by_commit(&mut self) -> Result<Outcome, ClientError> {
        if self.failed {
            self.roll_back();
            return Ok(Outcome::tag("ROLLBACK"));
        }
        let mut warnings = self.missing_transaction();
        if let Some(transaction) = self.transaction.as_ref().filter(|transaction| transaction.about_logins) {
            warnings.extend(lockout_warnings(transaction.base(), transaction.catalog(), &self.state));
        }
        self.commit().await?;
        Ok(Outcome { warnings, ..Outcome::tag("COMMIT") })
    }

    /// What a session is told that ends a transaction where there is none: nothing, when its statements are not to
    /// commit by themselves. They do, but its client must say COMMIT again and again.
    fn missing_transaction(&self) -> Vec<Warning> {
        if self.in_transaction() || self.setting("autocommit") == "off" { Vec::new() } else { vec![no_transaction()] }
    }

    fn open_transaction(&mut self, verb: &str) -> Result<&mut Transaction, ClientError> {
        let error = || {
            ClientError::new(SqlState::NoActiveTransaction, format!("{verb} can only be used in transaction blocks"))
        };
        self.transaction.as_mut().filter(|transaction| transaction.explicit).ok_or_else(error)
    }

    async fn restore(&mut self, version: u64, statement: &Statement) -> Result<Outcome, ClientError> {
        let head = self.console.head.load();
        let found = self.console.store.catalog_at(&head, version).await.map_err(|error| store_error(&error))?;
        let Some(catalog) = found else {
            let oldest = self.console.store.oldest_version().await.map_err(|error| store_error(&error))?;
            return Err(no_version(version, oldest));
        };
        let changes = Changes {
            warnings: older_passwords(&self.catalog(), &catalog, version).into_iter().collect(),
            changes: vec![Change::Restore { to: Box::new(catalog) }],
            tag: "RESTORE CATALOG",
            answer: None,
        };
        self.change(changes, statement).await
    }

    /// Has a member of this process stop to serve, or serve again.
    async fn member(&self, name: &Name, serve: bool, rows: Rows) -> Result<Outcome, ClientError> {
        let catalog = self.catalog();
        let members = &self.console.members;
        let node = catalog.nodes().named(name).map(|node| node.id).filter(|node| members.runs(*node));
        let refused = |text: String| ClientError::new(SqlState::ObjectNotInPrerequisiteState, text);
        let Some(node) = node else {
            return Err(refused(format!("node \"{name}\" is not a member that this process runs"))
                .with_hint("A member of its own process is stopped by SIGTERM."));
        };
        if members.states().is_up(node) == serve {
            let state = if serve { "up" } else { "down" };
            return Err(refused(format!("node \"{name}\" is {state} already")));
        }
        if members.count() < 2 {
            return Err(refused(format!("node \"{name}\" is the only member that this process runs"))
                .with_hint("SELECT SHUTDOWN() stops the process."));
        }
        if !serve && members.serving() < 2 {
            return Err(refused(format!("node \"{name}\" is the only member of this process that still serves"))
                .with_hint("SELECT SHUTDOWN() stops the process."));
        }
        members.order(name, node, serve).await.map_err(refused)?;
        Ok(Outcome { warnings: Vec::new(), answer: Answer::Rows(rows) })
    }

    async fn order(&self, order: Order, mut rows: Rows) -> Result<Outcome, ClientError> {
        let mut warnings = Vec::new();
        match order {
            Order::CloseSession { session_id, only_user } => self.end_session(&session_id, only_user, true).await?,
            Order::InterruptStatement { session_id, only_user, .. } => {
                self.end_session(&session_id, only_user, false).await?;
            }
            Order::CloseUserSessions { user } => warnings.extend(self.close_others(Some(user)).await),
            Order::CloseAllSessions { only_user } => warnings.extend(self.close_others(only_user).await),
            Order::Shutdown { force } => {
                if !force && self.all_sessions().await.open.len() > 1 {
                    warnings.push(Warning::notice(SHUTDOWN_ABORTED_NOTICE));
                    for cell in rows.rows.iter_mut().flatten() {
                        *cell = Some(SHUTDOWN_ABORTED.to_owned());
                    }
                } else {
                    let nodes = self.catalog().nodes().iter().map(|node| node.id).collect();
                    warnings.extend(self.stop(nodes).await);
                }
            }
            Order::ResetPointers => self.console.router.turns.reset(),
            Order::DescribeDecision { address, typed } => {
                let text = self.described(address, &typed);
                rows.rows.iter_mut().flatten().for_each(|cell| *cell = Some(text.clone()));
            }
            // They take time, and are done before.
            Order::Member { .. } | Order::StopSubcluster { .. } => {}
        }
        Ok(Outcome { warnings, answer: Answer::Rows(rows) })
    }

    /// Ends the members of a subcluster, once their sessions are over or have had their time; tells what came of it.
    async fn stop_subcluster(
        &mut self,
        name: &Name,
        drain_s: Option<u64>,
        statement: &Statement,
    ) -> Result<Vec<Warning>, ClientError> {
        let states = self.console.members.states();
        if !self.nodes_of(name).iter().any(|node| states.is_up(*node)) {
            return Ok(vec![Warning::new(format!("no member of subcluster ({name}) is running"))]);
        }
        let mut warnings = Vec::new();
        if let Some(drain_s) = drain_s.filter(|drain_s| *drain_s > 0) {
            let change = Change::DrainSubcluster { name: Some(name.clone()), draining: true };
            let drain = Changes { changes: vec![change], tag: "SELECT", answer: None, warnings: Vec::new() };
            self.change(drain, statement).await?;
            warnings.push(Warning::notice(format!("Draining has started on subcluster ({name})")));
            let deadline = Instant::now() + Duration::from_secs(drain_s);
            while Instant::now() < deadline && self.sessions_there(name).await > 0 {
                sleep(DRAIN_LOOK_EVERY).await;
            }
        }
        let left = self.sessions_there(name).await;
        if left > 0 {
            warnings.push(Warning::notice(format!("{left} sessions on subcluster ({name}) are closed")));
        }
        warnings.push(Warning::notice(format!("Begin shutdown of subcluster ({name})")));
        let nodes = self.nodes_of(name);
        warnings.extend(self.stop(nodes).await);
        Ok(warnings)
    }

    fn nodes_of(&self, subcluster: &Name) -> Vec<NodeId> {
        let catalog = self.catalog();
        let wanted = catalog.subclusters().named(subcluster).map(|found| found.id);
        catalog.nodes().iter().filter(|node| Some(node.subcluster) == wanted).map(|node| node.id).collect()
    }

    /// How many sessions a subcluster has, but for this one.
    async fn sessions_there(&self, subcluster: &Name) -> usize {
        let nodes = self.nodes_of(subcluster);
        let AllSessions { open, .. } = self.all_sessions().await;
        let there = |session: &&LiveSession| session.node.is_some_and(|node| nodes.contains(&node));
        open.iter().filter(there).filter(|session| session.session_id != self.place.id).count()
    }

    /// Ends the members that have these nodes; tells which could not be told.
    async fn stop(&self, nodes: Vec<NodeId>) -> Option<Warning> {
        // The others first: with this member the session ends.
        let mut answers = self.console.ask_peers(&Question::Stop { nodes: nodes.clone() }).await;
        // Whoever has gone meanwhile has heard.
        let up = self.console.peers();
        answers.silent.retain(|name| up.iter().any(|peer| peer.up && !peer.gone && peer.name == *name));
        self.console.stop(&nodes);
        answers.missing().map(|missing| Warning::new(format!("these members did not answer, and may go on: {missing}")))
    }

    /// What a client there would be told, if it asked now.
    fn described(&self, address: std::net::IpAddr, typed: &str) -> String {
        let catalog = self.catalog();
        let client = RoutingClient { address, asks: true, can_be_redirected: true };
        let trace = self.console.router.describe(&catalog, &client);
        switchyard_engine::describe::describe(&catalog, typed, &trace)
    }

    /// Ends all sessions but this one, or one user's, on all members; tells who could not be asked.
    async fn close_others(&self, only_user: Option<Name>) -> Option<Warning> {
        for (_, entry) in self.console.members.sessions() {
            if entry.id != self.place.id && only_user.as_ref().is_none_or(|only| *only == entry.user_name) {
                entry.terminate();
            }
        }
        let only_user = only_user.as_ref().map(Name::to_string);
        let missing = self.console.ask_peers(&Question::CloseSessions { only_user }).await.missing()?;
        Some(Warning::new(format!("these members did not answer, and their sessions go on: {missing}")))
    }

    /// Ends a session of whatever member, or its statement.
    async fn end_session(&self, id: &str, only_user: Option<Name>, close: bool) -> Result<(), ClientError> {
        let Some(entry) = self.console.members.session_named(id) else {
            return self.console.end_elsewhere(id, only_user.as_ref(), close).await;
        };
        if only_user.is_some_and(|only| only != entry.user_name) {
            return Err(denied());
        }
        if close {
            entry.terminate();
        } else {
            entry.interrupt();
        }
        Ok(())
    }

    /// The sessions of all members, open and ended; the client is told whose are missing.
    async fn all_sessions(&self) -> AllSessions {
        let answers = self.console.ask_peers(&Question::Sessions).await;
        if let Some(missing) = answers.missing() {
            let warning =
                Warning::new(format!("these members did not answer, and their sessions are missing: {missing}"));
            self.effects.push(Effect::Warn(warning));
        }
        let members = &self.console.members;
        let drains = members.drains(&self.console.catalog());
        let mut all = AllSessions { open: self.console.own_sessions(), ended: members.ended(), drains };
        for answer in answers.answers {
            if let PeerAnswer::Sessions { open, ended, drains } = answer {
                all.open.extend(open);
                all.ended.extend(ended);
                all.drains.extend(drains);
            }
        }
        all.open.sort_by_key(|session| session.login_us);
        all.ended.sort_by_key(|(_, end_us)| *end_us);
        all
    }

    async fn note_refusal(&self, statement: &Statement, error: &ClientError) {
        if !switchyard_engine::changes_catalog(statement) {
            return;
        }
        let record = self.author.record(vec![Redacted(statement).to_string()]);
        let outcome = StoreOutcome::Refused { sqlstate: error.sqlstate.to_string(), message: error.message.clone() };
        let version = self.console.head.load().version();
        if let Err(error) = self.console.store.note_refusal(version, record, outcome).await {
            tracing::warn!(error = &error as &dyn std::error::Error, "a refusal could not be noted");
        }
    }

    /// What a query of this session sees.
    async fn snapshot(&self, statement: &SqlStatement) -> Result<Arc<Snapshot>, ClientError> {
        let catalog = self.catalog();
        let facts = switchyard_engine::facts(statement);
        let needs = facts.needs();
        let superuser = self.state.is_superuser(&catalog);
        let history = if needs.history && superuser { self.history().await? } else { Vec::new() };
        let mut versions = BTreeMap::new();
        if superuser {
            let head = self.console.head.load();
            for version in needs.versions.iter().copied() {
                let found = self.console.store.catalog_at(&head, version).await.map_err(|error| store_error(&error))?;
                versions.extend(found.map(|catalog| (version, Arc::new(catalog))));
            }
        }
        let query_log = if needs.query_log { self.console.live.query_log.statements() } else { Vec::new() };
        let live = self.console.live.now(
            self.console.node_id,
            &self.console.members,
            &self.console.router,
            &self.console.context.registry,
            self.console.context.tls.as_deref(),
        );
        let live = if needs.sessions {
            let AllSessions { open, ended, drains } = self.all_sessions().await;
            Live { sessions: Lazy::known(open), ended_sessions: Lazy::known(ended), drains, ..live }
        } else {
            live
        };
        let live = Live {
            cursors: Arc::clone(&self.cursors),
            prepared: Arc::clone(&self.prepared),
            locks: Arc::clone(&self.locks.table),
            effects: Arc::clone(&self.effects),
            ..live
        };
        Ok(Arc::new(Snapshot {
            live: Arc::new(live),
            session: Arc::clone(&self.state),
            history: Arc::new(history),
            query_log: Arc::new(query_log),
            versions: Arc::new(versions),
            now_us: self.transaction.as_ref().map_or_else(now_us, |transaction| transaction.start_us),
            catalog,
        }))
    }

    async fn history(&self) -> Result<Vec<HistoryRow>, ClientError> {
        let after = self.console.head.load().version().saturating_sub(HISTORY_VERSIONS_MAX);
        let entries = self.console.store.history(after, usize::MAX).await.map_err(|error| store_error(&error))?;
        let mut rows = Vec::new();
        for entry in entries {
            let outcome = match &entry.outcome {
                StoreOutcome::Committed => "committed".to_owned(),
                StoreOutcome::Refused { sqlstate, message } => format!("refused: {sqlstate} {message}"),
            };
            for statement in entry.record.statements {
                rows.push(HistoryRow {
                    version: entry.version,
                    time_us: entry.record.time_us,
                    user: entry.record.user.clone(),
                    client: entry.record.client.clone(),
                    statement,
                    outcome: outcome.clone(),
                });
            }
        }
        Ok(rows)
    }

    /// The session's query engine, reading this snapshot.
    fn queries(&mut self, snapshot: Arc<Snapshot>) -> Result<&Queries, ClientError> {
        let limits = self.statement_settings().query;
        match &mut self.queries {
            Some(queries) if queries.limits() == limits => {
                queries.read(snapshot);
            }
            stale => match self.console.idle_engine(limits) {
                Some(queries) => {
                    queries.read(snapshot);
                    *stale = Some(queries);
                }
                None => {
                    let plans = Arc::clone(&self.console.plans);
                    *stale = Some(Queries::new(snapshot, limits, plans).map_err(|error| error.told(""))?);
                }
            },
        }
        self.queries.as_ref().ok_or_else(|| ClientError::new(SqlState::InternalError, "no query engine"))
    }

    pub(crate) async fn query(
        &mut self,
        source: &str,
        statement: &SqlStatement,
        parameters: &[Parameter],
    ) -> Result<QueryRows, ClientError> {
        let statement = switchyard_engine::with_values(statement, parameters);
        let snapshot = self.snapshot(&statement).await?;
        self.queries(snapshot)?.run(&statement, parameters).await.map_err(|error| error.told(source))
    }

    /// The parameters and columns of a statement, without running it. One that cannot be prepared has ended with that.
    pub(crate) async fn describe(
        &mut self,
        source: &str,
        statement: &Statement,
        declared: &[Option<PgType>],
    ) -> Result<Described, ClientError> {
        let described = self.describe_inner(source, statement, declared).await;
        if let Err(error) = &described {
            self.begin_logging(Redacted(statement).to_string(), statement).failed(&error.message);
        }
        described
    }

    async fn describe_inner(
        &mut self,
        source: &str,
        statement: &Statement,
        declared: &[Option<PgType>],
    ) -> Result<Described, ClientError> {
        if let Statement::Sql(statement) = statement {
            let snapshot = self.snapshot(statement).await?;
            return self.queries(snapshot)?.describe(statement, declared).await.map_err(|error| error.told(source));
        }
        // A mistake is told when the statement runs, as PostgreSQL does with its own management statements.
        let rows = match self.plan(statement) {
            Ok(Plan::Query(statement)) => {
                let snapshot = self.snapshot(&statement).await?;
                let described = self.queries(snapshot)?.describe(&statement, declared).await;
                return described.map_err(|error| error.told(source));
            }
            Ok(Plan::Rows(rows) | Plan::Order(_, rows)) => Some(rows),
            Ok(Plan::Changes(changes)) => changes.answer,
            Ok(Plan::Session(step)) => step.answer,
            _ => None,
        };
        let columns = match (rows, statement) {
            (Some(rows), _) => columns(&rows),
            (None, Statement::Function { function, typed, alias, .. }) => {
                let name = alias.as_ref().map_or(typed, |alias| &alias.0).clone();
                let kind = if *function == MetaFunction::HasRole { PgType::Bool } else { PgType::Varchar };
                vec![OutputColumn { name, kind, modifier: -1, origin: None }]
            }
            _ => Vec::new(),
        };
        Ok(Described { parameters: Vec::new(), columns: columns.into() })
    }

    /// The session is over.
    pub(crate) fn end(&mut self) {
        self.transaction = None;
        self.console.live.ended(shown(self.console.node_id, self.place.entry()));
    }
}

/// Notes what came of a statement; a query ends with its rows.
fn log_outcome(running: Arc<Running>, result: &mut Result<Outcome, ClientError>) {
    match result {
        Err(error) => running.failed(&error.message),
        Ok(Outcome { answer: Answer::Tag(tag), .. }) => running.succeeded(tag, None),
        Ok(Outcome { answer: Answer::Rows(rows), .. }) => {
            running.succeeded(rows.tag, u64::try_from(rows.rows.len()).ok());
        }
        Ok(Outcome { answer: Answer::Fetched(fetched), .. }) => {
            running.succeeded("FETCH", u64::try_from(fetched.rows.len()).ok());
        }
        Ok(Outcome { answer: Answer::Query(query), .. }) => {
            running.started();
            let rows = std::mem::replace(&mut query.rows, futures::stream::empty().boxed());
            query.rows = running.follow(rows);
        }
    }
}

/// The columns of a small result.
pub(crate) fn columns(rows: &Rows) -> Vec<OutputColumn> {
    let kind = |kind: switchyard_engine::plan::ColumnKind| match kind {
        switchyard_engine::plan::ColumnKind::Text => PgType::Varchar,
        switchyard_engine::plan::ColumnKind::Bool => PgType::Bool,
    };
    let column =
        |(name, own): &(String, _)| OutputColumn { name: name.clone(), kind: kind(*own), modifier: -1, origin: None };
    rows.columns.iter().map(column).collect()
}

/// Whether a statement is the one that ends the expiry of the user's own password.
fn renews_password(statement: &Statement, user: &Name) -> bool {
    let Statement::AlterUser { name, action: UserAction::Parameters(parameters) } = statement else { return false };
    name.0.to_lowercase() == user.folded()
        && parameters.iter().all(|parameter| matches!(parameter, UserParameter::IdentifiedBy { .. }))
}

pub(crate) fn ends_failed_transaction(statement: &Statement) -> bool {
    matches!(statement, Statement::Commit | Statement::Rollback | Statement::RollbackTo(_))
}

fn warning(notice: &switchyard_catalog::Notice) -> Warning {
    let text = notice.to_string();
    if notice.is_warning() { Warning::new(text) } else { Warning::notice(text) }
}

fn no_transaction() -> Warning {
    Warning {
        notice: false,
        sqlstate: SqlState::NoActiveTransaction,
        message: "there is no transaction in progress".to_owned(),
    }
}

fn no_savepoint(name: &Name) -> ClientError {
    ClientError::new(SqlState::InvalidSavepoint, format!("savepoint \"{name}\" does not exist"))
}

/// Passwords go back with the rest, and whoever has changed his since should know.
fn older_passwords(now: &Catalog, then: &Catalog, version: u64) -> Option<Warning> {
    const NAMED_MAX: usize = 20;
    let other = |user: &User| now.users().find(user.id).is_some_and(|same| same.verifiers != user.verifiers);
    let names: Vec<String> =
        then.users().iter().filter(|user| other(user)).map(|user| format!("\"{}\"", user.name)).collect();
    let named = names.get(..NAMED_MAX.min(names.len())).unwrap_or_default().join(", ");
    let more = names.len().saturating_sub(NAMED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!names.is_empty()).then(|| Warning::new(format!("passwords are again those of version {version}: {named}{more}")))
}

/// `oldest` is the oldest version that history keeps.
fn no_version(version: u64, oldest: u64) -> ClientError {
    if version == 0 || version >= oldest {
        return ClientError::new(SqlState::UndefinedObject, format!("catalog version {version} does not exist"))
            .with_hint("switchyard.catalog_history lists the versions that are kept.");
    }
    ClientError::new(SqlState::UndefinedObject, format!("catalog version {version} is no longer kept"))
        .with_detail(format!("History goes back to version {oldest}."))
        .with_hint("The settings history_versions_max and history_days_max say how much is kept.")
}

fn store_error(error: &switchyard_store::StoreError) -> ClientError {
    tracing::error!(error = error as &dyn std::error::Error, "the catalog store cannot be read");
    ClientError::new(SqlState::IoError, "the catalog store cannot be read").with_detail(format!("{error}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_cannot_be_read_is_told() {
        let error = switchyard_store::StoreError { what: "cannot read the store f".to_owned(), source: None };
        let told = store_error(&error);
        assert_eq!((told.sqlstate, told.message.as_str()), (SqlState::IoError, "the catalog store cannot be read"));
        assert_eq!(told.detail.as_deref(), Some("cannot read the store f."));
    }
}
