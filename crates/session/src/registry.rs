//! The live sessions of this member: who they are, what they do, and how they are stopped.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{SystemTime, UNIX_EPOCH};

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use rand::{CryptoRng, RngExt};
use subtle::ConstantTimeEq;
use switchyard_catalog::{Authentication, AuthenticationMethod, LimitScope, Name, UserId};
use switchyard_wire::vertica::Wishes;
use switchyard_wire::{CancelKey, Version};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::sync::watch;

use crate::admission::Permit;
use crate::error::SessionError;
use crate::limits::Limits;
use crate::tls::TlsFacts;

/// How many sessions superusers may have beyond `MaxClientSessions` (`reference/vertica-sql.md` §5.5).
const SUPERUSER_SESSIONS: usize = 5;

/// The live sessions of this member.
#[derive(Debug)]
pub struct Registry {
    host: String,
    sessions: DashMap<i32, Arc<SessionEntry>>,
    sessions_count: AtomicUsize,
    /// The logins under way by number: the lowest is the oldest.
    logins: Mutex<BTreeMap<u64, Arc<Notify>>>,
    logins_next: AtomicU64,
    /// Shared with the other members of the process: an id is never used twice.
    number_next: Arc<AtomicU64>,
    family: Arc<Family>,
}

/// The registries of one process.
#[derive(Debug, Default)]
struct Family {
    /// Held while the sessions of one user are counted and another is taken in.
    admission: Mutex<()>,
    registries: Mutex<Vec<Weak<Registry>>>,
}

impl Family {
    fn sessions_of(&self, user: UserId) -> usize {
        let registries = self.registries.lock().unwrap_or_else(PoisonError::into_inner);
        registries.iter().filter_map(Weak::upgrade).map(|registry| registry.sessions_of(user)).sum()
    }
}

/// What is known of a session when it begins.
#[derive(Debug, Clone)]
pub struct NewSession {
    /// The user.
    pub user: UserId,
    /// The user's name.
    pub user_name: Name,
    /// Whether the user may have a reserved connection.
    pub superuser: bool,
    /// How many sessions the user may have, if the catalog says so: with this member, or with all.
    pub user_sessions_max: Option<(usize, LimitScope)>,
    /// How many clients may be here, if the catalog says so; superusers may be a few more.
    pub client_sessions_max: Option<usize>,
    /// The client's address and port; `None` on a Unix socket.
    pub client: Option<SocketAddr>,
    /// Where the client has called, where that is known.
    pub local: Option<SocketAddr>,
    /// The database named at startup.
    pub database: Option<String>,
    /// The protocol spoken: it decides how long the key for cancelling is.
    pub version: Version,
    /// What the client asked for, if it speaks Vertica's protocol.
    pub vertica: Option<Wishes>,
    /// `application_name` or Vertica's `client_label`.
    pub application: String,
    /// What is known of TLS; none without it.
    pub tls: Option<TlsFacts>,
    /// How the user proved who it is.
    pub method: AuthenticationMethod,
    /// The authentication record that let the client in, as it was then.
    pub record: Option<Arc<Authentication>>,
    /// The process id and key that the member gave it which the client is connected to; none for one's own clients.
    pub given: Option<(i32, CancelKey)>,
}

/// One live session, as others see it.
#[derive(Debug)]
pub struct SessionEntry {
    /// As BackendKeyData names it; unique among the live sessions of this member.
    pub process_id: i32,
    /// As system tables name it: `host-process:0xnumber`, never used twice.
    pub id: String,
    /// The user.
    pub user: UserId,
    /// The user's name at login.
    pub user_name: Name,
    /// The client's address and port; `None` on a Unix socket.
    pub client: Option<SocketAddr>,
    /// Where the client has called, where that is known.
    pub local: Option<SocketAddr>,
    /// The database named at startup.
    pub database: Option<String>,
    /// The protocol spoken.
    pub version: Version,
    /// What the client asked for, if it speaks Vertica's protocol.
    pub vertica: Option<Wishes>,
    /// Microseconds since 1970-01-01 UTC.
    pub login_time_us: i64,
    /// What is known of TLS; none without it.
    pub tls: Option<TlsFacts>,
    /// How the user proved who it is.
    pub method: AuthenticationMethod,
    /// The authentication record that let the client in, as it was then.
    pub record: Option<Arc<Authentication>>,
    number: u64,
    secret: CancelKey,
    activity: Mutex<Activity>,
    cancel: Notify,
    end: watch::Sender<bool>,
    permit: Mutex<Option<Permit>>,
    watcher: OnceLock<Arc<dyn Watcher>>,
}

/// Told what others want of a session that cannot wait for it all the time.
pub trait Watcher: fmt::Debug + Send + Sync {
    /// [`SessionEntry::interrupt`] was called.
    fn interrupted(&self);
    /// [`SessionEntry::terminate`] was called.
    fn terminated(&self);
    /// What the session is doing now.
    fn state(&self) -> SessionState;
}

/// What a session is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activity {
    /// In one word.
    pub state: SessionState,
    /// Since when, in microseconds since 1970-01-01 UTC.
    pub state_since_us: i64,
    /// The statement that runs, or ran last.
    pub statement: Option<Arc<str>>,
    /// The one before it.
    pub statement_before: Option<Arc<str>>,
    /// When it began, in microseconds since 1970-01-01 UTC.
    pub statement_since_us: Option<i64>,
    /// When the transaction began, if one is open, in microseconds since 1970-01-01 UTC.
    pub transaction_since_us: Option<i64>,
    /// `application_name` or Vertica's `client_label`.
    pub application: String,
    /// The workload, if one applies.
    pub workload: Option<String>,
    /// How the client calls its session, with SET_CLIENT_LABEL.
    pub label: String,
    /// How long it may wait for its client, in words.
    pub idle_session_timeout: String,
    /// How long its socket may block on the client, in words.
    pub grace_period: String,
    /// How many statements were begun.
    pub statements: u64,
    /// How long the last statement took that has ended, in microseconds.
    pub last_duration_us: Option<i64>,
    /// The parameters of the startup packet, in order.
    pub startup: Arc<[(String, String)]>,
}

/// What a session is doing, in PostgreSQL's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SessionState {
    /// Waiting for a statement, outside a transaction.
    Idle,
    /// Running a statement.
    Active,
    /// Waiting for a statement, in a transaction.
    IdleInTransaction,
    /// Waiting for the end of a failed transaction.
    IdleInFailedTransaction,
}

impl SessionState {
    /// As `pg_stat_activity.state` has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Active => "active",
            Self::IdleInTransaction => "idle in transaction",
            Self::IdleInFailedTransaction => "idle in transaction (aborted)",
        }
    }
}

/// A session's place in the registry: it is given up when this is dropped.
#[derive(Debug)]
pub struct Session {
    registry: Arc<Registry>,
    entry: Arc<SessionEntry>,
}

/// One of the logins under way: it is over when this is dropped.
#[derive(Debug)]
pub struct LoginSlot {
    registry: Arc<Registry>,
    number: u64,
    cut: Arc<Notify>,
}

impl Registry {
    /// An empty registry; `host` begins the sessions' ids.
    pub fn new(host: impl Into<String>) -> Arc<Self> {
        Self::counting(host.into(), Arc::new(AtomicU64::new(1)), Arc::default())
    }

    /// An empty registry of another member of this process.
    pub fn beside(&self, host: impl Into<String>) -> Arc<Self> {
        Self::counting(host.into(), Arc::clone(&self.number_next), Arc::clone(&self.family))
    }

    fn counting(host: String, number_next: Arc<AtomicU64>, family: Arc<Family>) -> Arc<Self> {
        let registry = Arc::new(Self {
            host,
            sessions: DashMap::new(),
            sessions_count: AtomicUsize::new(0),
            logins: Mutex::new(BTreeMap::new()),
            logins_next: AtomicU64::new(0),
            number_next,
            family,
        });
        let mut registries = registry.family.registries.lock().unwrap_or_else(PoisonError::into_inner);
        registries.push(Arc::downgrade(&registry));
        drop(registries);
        registry
    }

    /// How many sessions a user has here.
    pub fn sessions_of(&self, user: UserId) -> usize {
        self.sessions.iter().filter(|entry| entry.user == user).count()
    }

    /// The live sessions, the oldest first.
    pub fn sessions(&self) -> Vec<Arc<SessionEntry>> {
        let mut sessions: Vec<_> = self.sessions.iter().map(|entry| Arc::clone(entry.value())).collect();
        sessions.sort_by_key(|session| session.number);
        sessions
    }

    /// The session with this process id.
    pub fn session(&self, process_id: i32) -> Option<Arc<SessionEntry>> {
        self.sessions.get(&process_id).map(|entry| Arc::clone(entry.value()))
    }

    /// The session with this id, as system tables show it.
    pub fn session_named(&self, id: &str) -> Option<Arc<SessionEntry>> {
        self.sessions.iter().find(|entry| entry.id == id).map(|entry| Arc::clone(entry.value()))
    }

    /// How many sessions there are.
    pub fn len(&self) -> usize {
        self.sessions_count.load(Ordering::Relaxed)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Stops what a session is doing, if the key is that session's; says whether it was.
    pub fn cancel(&self, process_id: i32, secret: &[u8]) -> bool {
        let Some(session) = self.session(process_id) else { return false };
        let known = bool::from(session.secret.ct_eq(secret));
        if known {
            session.interrupt();
        }
        known
    }

    /// Takes a session in.
    ///
    /// # Errors
    /// When there are too many already.
    pub fn register(
        self: &Arc<Self>,
        new: NewSession,
        limits: &Limits,
        rng: &mut impl CryptoRng,
    ) -> Result<Session, SessionError> {
        // Of two logins of one user only one may take his last place.
        let _alone =
            new.user_sessions_max.map(|_| self.family.admission.lock().unwrap_or_else(PoisonError::into_inner));
        self.count_session(&new, limits)?;
        // Vertica's clients read four bytes, whatever the version.
        let secret_bytes = if new.vertica.is_none() && new.version >= Version::V3_2 { 32 } else { 4 };
        let (mut process_id, secret) = match new.given {
            Some((process_id, secret)) => (Some(process_id), secret),
            None => (None, new_secret(secret_bytes, rng)),
        };
        let number = self.number_next.fetch_add(1, Ordering::Relaxed);
        let now = now_us();
        loop {
            // By chance and not in order: an id tells nobody how many there were, and hardly comes twice in a cluster.
            let process_id = process_id.take().unwrap_or_else(|| rng.random_range(1..=i32::MAX));
            let Entry::Vacant(place) = self.sessions.entry(process_id) else { continue };
            let entry = Arc::new(SessionEntry {
                process_id,
                id: format!("{}-{}:{number:#x}", self.host, std::process::id()),
                user: new.user,
                user_name: new.user_name,
                client: new.client,
                local: new.local,
                database: new.database,
                version: new.version,
                vertica: new.vertica,
                login_time_us: now,
                tls: new.tls,
                method: new.method,
                record: new.record,
                number,
                secret,
                activity: Mutex::new(Activity {
                    state: SessionState::Idle,
                    state_since_us: now,
                    statement: None,
                    statement_before: None,
                    statement_since_us: None,
                    transaction_since_us: None,
                    application: new.application,
                    workload: None,
                    label: String::new(),
                    idle_session_timeout: String::new(),
                    grace_period: String::new(),
                    statements: 0,
                    last_duration_us: None,
                    startup: Arc::new([]),
                }),
                cancel: Notify::new(),
                end: watch::Sender::new(false),
                permit: Mutex::new(None),
                watcher: OnceLock::new(),
            });
            place.insert(Arc::clone(&entry));
            return Ok(Session { registry: Arc::clone(self), entry });
        }
    }

    fn count_session(&self, new: &NewSession, limits: &Limits) -> Result<(), SessionError> {
        if let Some((sessions_max, scope)) = new.user_sessions_max {
            let own = match scope {
                LimitScope::Node => self.sessions_of(new.user),
                LimitScope::Database => self.family.sessions_of(new.user),
            };
            if own >= sessions_max {
                return Err(SessionError::UserSessionsMax { user: new.user_name.clone(), sessions_max });
            }
        }
        let reserved = if new.superuser { 0 } else { limits.connections_reserved };
        let room = limits.connections_max.saturating_sub(reserved);
        let above = if new.superuser { SUPERUSER_SESSIONS } else { 0 };
        let admitted = new.client_sessions_max.map_or(usize::MAX, |sessions_max| sessions_max.saturating_add(above));
        let Err(count) = count_below(&self.sessions_count, room.min(admitted)) else { return Ok(()) };
        if let Some(sessions_max) = new.client_sessions_max.filter(|_| count >= admitted) {
            return Err(SessionError::ClientSessionsMax { sessions_max });
        }
        Err(if count < limits.connections_max {
            SessionError::ConnectionsReserved { connections_reserved: limits.connections_reserved }
        } else {
            SessionError::ConnectionsMax { connections_max: limits.connections_max }
        })
    }

    /// Takes a login in. When there are too many, the oldest is cut and not the newest refused: whoever means it is
    /// logged in within moments, and the oldest are those that keep connections half open.
    pub(crate) fn begin_login(self: &Arc<Self>, limits: &Limits) -> LoginSlot {
        let number = self.logins_next.fetch_add(1, Ordering::Relaxed);
        let cut = Arc::new(Notify::new());
        let mut logins = self.logins_under_way();
        while logins.len() >= limits.logins_max.max(1)
            && let Some((_, oldest)) = logins.pop_first()
        {
            oldest.notify_one();
        }
        logins.insert(number, Arc::clone(&cut));
        drop(logins);
        LoginSlot { registry: Arc::clone(self), number, cut }
    }

    /// How many logins are under way.
    pub fn logins(&self) -> usize {
        self.logins_under_way().len()
    }

    fn logins_under_way(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Notify>>> {
        // Nothing that can panic runs while it is held.
        self.logins.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn new_secret(bytes: usize, rng: &mut impl CryptoRng) -> CancelKey {
    let mut secret = vec![0; bytes];
    rng.fill_bytes(&mut secret);
    secret.into()
}

/// Counts one more, unless that would be more than `max`; the count is the error.
fn count_below(counter: &AtomicUsize, max: usize) -> Result<usize, usize> {
    counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| (count < max).then(|| count.saturating_add(1)))
}

impl SessionEntry {
    /// Rising with the sessions of the process.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// What it is doing.
    pub fn activity(&self) -> Activity {
        let mut activity = self.locked().clone();
        if let Some(watcher) = self.watcher.get() {
            activity.state = watcher.state();
        }
        activity
    }

    /// Changes what it is shown to be doing.
    pub fn update(&self, change: impl FnOnce(&mut Activity)) {
        change(&mut self.locked());
    }

    /// A statement begins.
    pub fn begin_statement(&self, statement: impl Into<Arc<str>>) {
        let now = now_us();
        self.update(|activity| {
            activity.state = SessionState::Active;
            activity.state_since_us = now;
            activity.statement_before = activity.statement.replace(statement.into());
            activity.statements = activity.statements.saturating_add(1);
            activity.statement_since_us = Some(now);
        });
    }

    /// A statement has ended, and left the session in this state.
    pub fn end_statement(&self, state: SessionState) {
        let now = now_us();
        self.update(|activity| {
            if activity.state == SessionState::Active {
                activity.last_duration_us = activity.statement_since_us.map(|since| now.saturating_sub(since));
            }
            activity.state = state;
            activity.state_since_us = now;
            activity.transaction_since_us = match state {
                SessionState::Idle => None,
                _ => activity.transaction_since_us.or(activity.statement_since_us),
            };
        });
    }

    /// Has a place in the cluster for as long as it lasts.
    pub fn hold(&self, permit: Option<Permit>) {
        *self.permit.lock().unwrap_or_else(PoisonError::into_inner) = permit;
    }

    /// Whether it has one.
    pub fn has_permit(&self) -> bool {
        self.permit.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Stops the statement that runs; does nothing when none does.
    pub fn interrupt(&self) {
        self.cancel.notify_waiters();
        if let Some(watcher) = self.watcher.get() {
            watcher.interrupted();
        }
    }

    /// Has somebody told from now on what others want of the session. There can be one only.
    pub fn watch(&self, watcher: Arc<dyn Watcher>) {
        let _ = self.watcher.set(watcher);
        if *self.end.borrow()
            && let Some(watcher) = self.watcher.get()
        {
            watcher.terminated();
        }
    }

    /// Ready when [`SessionEntry::interrupt`] is called after this was made, even if it was not yet awaited: make it
    /// when the statement begins.
    pub fn interrupted(&self) -> Notified<'_> {
        self.cancel.notified()
    }

    /// Ends the session.
    pub fn terminate(&self) {
        self.end.send_replace(true);
        if let Some(watcher) = self.watcher.get() {
            watcher.terminated();
        }
    }

    /// Ready as soon as [`SessionEntry::terminate`] has been called, before this or after.
    pub async fn terminated(&self) {
        let mut end = self.end.subscribe();
        // The sender lives as long as `self`: waiting cannot fail.
        let _ = end.wait_for(|&ended| ended).await;
    }

    fn locked(&self) -> MutexGuard<'_, Activity> {
        // No code that can panic runs while it is held but a caller's change; what that left is still an activity.
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    /// The entry that others see too.
    pub fn entry(&self) -> &Arc<SessionEntry> {
        &self.entry
    }

    /// The key that cancels it: 4 bytes in protocol 3.0, 32 in 3.2.
    pub fn secret(&self) -> &[u8] {
        &self.entry.secret
    }
}

impl Deref for Session {
    type Target = SessionEntry;

    fn deref(&self) -> &SessionEntry {
        &self.entry
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.registry.sessions.remove(&self.entry.process_id);
        self.entry.hold(None);
        self.registry.sessions_count.fetch_sub(1, Ordering::Relaxed);
    }
}

impl LoginSlot {
    /// Ready when the login must make room for others.
    pub(crate) async fn cut(&self) {
        self.cut.notified().await;
    }
}

impl Drop for LoginSlot {
    fn drop(&mut self) {
        self.registry.logins_under_way().remove(&self.number);
    }
}

fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
