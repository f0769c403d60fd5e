//! What a session remembers between statements, as plain data: who it is, its roles, its workload, its settings.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

use jiff::Timestamp;
use rand::Rng;
use switchyard_catalog::{Catalog, Name, NodeId, RoleId, UserId};
use switchyard_dialect::DiscardWhat;

use crate::error::{PlanError, Warning};
use crate::settings::{self, Level, LevelValues, SETTINGS};

pub mod access;
mod limits;
mod startup;

pub use limits::{IdleLimit, IdleSetting, grace_period_ms, idle_limits, statement_time_ms};

/// Which workload a session wants.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum WorkloadWish {
    /// The one named at connect, else the granted one of the highest priority.
    #[default]
    Automatic,
    /// SET SESSION WORKLOAD name.
    Named(Name),
    /// SET SESSION WORKLOAD NONE.
    None,
}

/// What a statement does to its session; made by [`crate::plan::plan`], done by [`SessionState::apply`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionChange {
    /// SET, with a value that was checked.
    Set {
        /// The setting.
        name: &'static str,
        /// The value as it is kept.
        value: String,
        /// SET LOCAL.
        local: bool,
    },
    /// RESET name, SET name TO DEFAULT.
    Reset(&'static str),
    /// RESET ALL.
    ResetAll,
    /// DISCARD; the console drops statements and portals itself.
    Discard(DiscardWhat),
    /// SET ROLE: exactly these are enabled from now on, besides those that always are.
    Roles(BTreeSet<RoleId>),
    /// SET SESSION WORKLOAD.
    Workload(WorkloadWish),
    /// SET_CLIENT_LABEL.
    Label(String),
}

/// What is known of a session when its client has proved who it is.
#[derive(Debug, Clone)]
pub struct Login {
    /// The user.
    pub user: Name,
    /// `host-pid:0xN`.
    pub session_id: String,
    /// As in BackendKeyData.
    pub process_id: i32,
    /// Where the client is; absent for a Unix socket.
    pub client_address: Option<SocketAddr>,
    /// When.
    pub time: Timestamp,
    /// The connection node.
    pub node: Name,
}

/// A session.
#[derive(Debug, Clone)]
pub struct SessionState {
    /// The user.
    pub user_id: UserId,
    /// `host-pid:0xN`.
    pub session_id: String,
    /// As in BackendKeyData.
    pub process_id: i32,
    /// Where the client is; absent for a Unix socket.
    pub client_address: Option<SocketAddr>,
    /// When the client had proved who it is.
    pub login_time: Timestamp,
    /// The connection node.
    pub node_name: Name,
    /// SET_CLIENT_LABEL, or as the client named itself.
    pub client_label: String,
    start: Arc<Start>,
    scoped: Scoped,
    frames: Vec<Frame>,
    /// The workload that applies.
    workload: Option<Name>,
}

/// What RESET and DISCARD ALL go back to.
#[derive(Debug, Clone, Default)]
struct Start {
    levels: LevelValues,
    settings: BTreeMap<&'static str, String>,
    roles: BTreeSet<RoleId>,
    workload: Option<Name>,
}

/// What a rollback undoes.
#[derive(Debug, Clone, Default)]
struct Scoped {
    session: BTreeMap<&'static str, String>,
    local: BTreeMap<&'static str, String>,
    roles: BTreeSet<RoleId>,
    wish: WorkloadWish,
}

/// How things were at BEGIN, or at a savepoint.
#[derive(Debug, Clone)]
struct Frame {
    savepoint: Option<Name>,
    scoped: Scoped,
}

impl SessionState {
    /// A session whose client has just logged in: default roles are enabled, startup parameters are taken, and a
    /// workload applies. The warnings are for the client.
    ///
    /// # Errors
    /// When the user is gone, or a startup parameter is unknown or wrong.
    pub fn open(
        login: Login,
        parameters: &[(String, String)],
        catalog: &Catalog,
        rng: &mut dyn Rng,
    ) -> Result<(Self, Vec<Warning>), PlanError> {
        let user = catalog.users().named(&login.user).ok_or_else(|| PlanError::Missing {
            kind: switchyard_catalog::ObjectKind::User,
            name: login.user.clone(),
            nearest: None,
        })?;
        let mut session = Self {
            user_id: user.id,
            session_id: login.session_id,
            process_id: login.process_id,
            client_address: login.client_address,
            login_time: login.time,
            node_name: login.node,
            client_label: String::new(),
            start: Arc::default(),
            scoped: Scoped::default(),
            frames: Vec::new(),
            workload: None,
        };
        Arc::make_mut(&mut session.start).levels =
            LevelValues::read(catalog, session.node_id(catalog), session.user_id);
        let warnings = startup::take(&mut session, parameters, catalog)?;
        session.refresh_workload(catalog, rng);
        Ok((session, warnings))
    }

    /// A session of a user with nothing set: for tests and for tools without a client.
    pub fn of_user(user_id: UserId, node_name: Name) -> Self {
        Self {
            user_id,
            session_id: String::new(),
            process_id: 0,
            client_address: None,
            login_time: Timestamp::UNIX_EPOCH,
            node_name,
            client_label: String::new(),
            start: Arc::default(),
            scoped: Scoped::default(),
            frames: Vec::new(),
            workload: None,
        }
    }

    /// The user's name now; empty when the user is gone.
    pub fn user_name<'a>(&self, catalog: &'a Catalog) -> &'a str {
        catalog.users().find(self.user_id).map_or("", |user| user.name.as_str())
    }

    /// The connection node, when it is in the catalog.
    pub fn node_id(&self, catalog: &Catalog) -> Option<NodeId> {
        catalog.nodes().named(&self.node_name).map(|node| node.id)
    }

    /// Whether the user may do everything.
    pub fn is_superuser(&self, catalog: &Catalog) -> bool {
        catalog.is_superuser(self.user_id)
    }

    /// The roles that SET ROLE and login enabled; PUBLIC and the superuser's own are in effect besides.
    pub fn enabled_roles(&self) -> &BTreeSet<RoleId> {
        &self.scoped.roles
    }

    /// The workload that applies.
    pub fn workload(&self) -> Option<&Name> {
        self.workload.as_ref()
    }

    /// The workload the session asked for.
    pub fn workload_wish(&self) -> &WorkloadWish {
        &self.scoped.wish
    }

    /// The workload named at connect, if it was accepted.
    pub fn connect_workload(&self) -> Option<&Name> {
        self.start.workload.as_ref()
    }

    /// Decides the workload anew: after a login, a statement that changed roles or workload, a rollback, and whenever
    /// rules or grants changed. Sticky: among equals, the one that applies already stays.
    pub fn refresh_workload(&mut self, catalog: &Catalog, rng: &mut dyn Rng) {
        self.workload = access::choose_workload(self, catalog, rng);
    }

    /// Whether BEGIN was said, or several statements are one transaction.
    pub fn in_transaction(&self) -> bool {
        !self.frames.is_empty()
    }

    /// How many savepoints there are.
    pub fn savepoint_depth(&self) -> usize {
        self.frames.len().saturating_sub(1)
    }

    /// BEGIN: what is set from now on is undone by [`Self::rollback`].
    pub fn begin(&mut self) {
        let scoped = self.scoped.clone();
        self.begin_with(scoped);
    }

    /// The same, where the transaction began with statements before this one: all since it was as `then` is undone.
    pub fn begin_as(&mut self, then: &Self) {
        self.begin_with(then.scoped.clone());
    }

    fn begin_with(&mut self, scoped: Scoped) {
        if self.frames.is_empty() {
            self.frames.push(Frame { savepoint: None, scoped });
        }
    }

    /// Whether [`Self::commit`] would change anything.
    pub fn has_to_commit(&self) -> bool {
        self.in_transaction() || !self.scoped.local.is_empty()
    }

    /// SAVEPOINT.
    pub fn savepoint(&mut self, name: Name) {
        self.frames.push(Frame { savepoint: Some(name), scoped: self.scoped.clone() });
    }

    /// RELEASE SAVEPOINT; false when there is none of this name.
    pub fn release(&mut self, name: &Name) -> bool {
        let Some(at) = self.savepoint_index(name) else { return false };
        self.frames.truncate(at);
        true
    }

    /// ROLLBACK TO SAVEPOINT, which stays; false when there is none of this name. The workload is to be refreshed.
    pub fn rollback_to(&mut self, name: &Name) -> bool {
        let Some(at) = self.savepoint_index(name) else { return false };
        self.frames.truncate(at.saturating_add(1));
        if let Some(frame) = self.frames.last() {
            self.scoped = frame.scoped.clone();
        }
        true
    }

    /// COMMIT: what was SET LOCAL ends.
    pub fn commit(&mut self) {
        self.frames.clear();
        self.scoped.local.clear();
    }

    /// ROLLBACK: everything is as it was at BEGIN. The workload is to be refreshed.
    pub fn rollback(&mut self) {
        if let Some(first) = self.frames.drain(..).next() {
            self.scoped = first.scoped;
        }
        self.scoped.local.clear();
    }

    fn savepoint_index(&self, name: &Name) -> Option<usize> {
        self.frames.iter().rposition(|frame| frame.savepoint.as_ref() == Some(name))
    }

    /// Does what a plan says.
    pub fn apply(&mut self, change: SessionChange, catalog: &Catalog, rng: &mut dyn Rng) {
        match change {
            SessionChange::Set { name, value, local: true } => {
                self.scoped.local.insert(name, value);
            }
            SessionChange::Set { name, value, local: false } => {
                self.scoped.local.remove(name);
                self.scoped.session.insert(name, value);
            }
            SessionChange::Reset(name) => {
                self.scoped.local.remove(name);
                self.scoped.session.remove(name);
            }
            SessionChange::ResetAll => self.reset_all(),
            SessionChange::Discard(DiscardWhat::All) => {
                self.reset_all();
                self.scoped.roles = self.start.roles.clone();
                self.scoped.wish = WorkloadWish::Automatic;
                self.refresh_workload(catalog, rng);
            }
            SessionChange::Discard(_) => {}
            SessionChange::Roles(roles) => {
                self.scoped.roles = roles;
                self.refresh_workload(catalog, rng);
            }
            SessionChange::Workload(wish) => {
                self.scoped.wish = wish;
                self.refresh_workload(catalog, rng);
            }
            SessionChange::Label(label) => self.client_label = label,
        }
    }

    /// A transaction's own characteristics stay, as in PostgreSQL.
    fn reset_all(&mut self) {
        self.scoped.session.clear();
        self.scoped.local.retain(|name, _| name.starts_with("transaction_"));
    }

    /// The values clients must be told of (ParameterStatus) because they are new or other than last told.
    pub fn reports(&self, catalog: &Catalog, told: &mut BTreeMap<&'static str, String>) -> Vec<(&'static str, String)> {
        let mut changed = Vec::new();
        for setting in SETTINGS.iter().filter(|setting| setting.report) {
            let value = setting.shown(&settings::effective(setting, self, catalog).0);
            if told.get(setting.name) != Some(&value) {
                told.insert(setting.name, value.clone());
                changed.push((setting.name, value));
            }
        }
        changed
    }

    /// The lasting levels as they were at login.
    pub(crate) fn levels_at_login(&self) -> &LevelValues {
        &self.start.levels
    }

    /// The transaction's value and the session's, the latter from SET or from connecting.
    pub(crate) fn own_values(&self, name: &str) -> [Option<&String>; 2] {
        let session = self.scoped.session.get(name).or_else(|| self.start.settings.get(name));
        [self.scoped.local.get(name), session]
    }

    /// The values that follow from something else than a level.
    pub(crate) fn computed(&self, name: &str, catalog: &Catalog) -> Option<(String, Level)> {
        let on = |on: bool| if on { "on" } else { "off" }.to_owned();
        match name {
            "is_superuser" => Some((on(self.is_superuser(catalog)), Level::Default)),
            "session_authorization" => Some((self.user_name(catalog).to_owned(), Level::Default)),
            "transaction_isolation" | "transaction_read_only" | "transaction_deferrable" => {
                if let Some(value) = self.scoped.local.get(name) {
                    return Some((value.clone(), Level::Session));
                }
                let default = settings::declaration(&format!("default_{name}")).ok()?;
                let (value, level) = settings::effective(default, self, catalog);
                Some((value.into_owned(), level))
            }
            _ => limits::of_user(self, name, catalog),
        }
    }
}

#[cfg(test)]
mod tests;
