//! Settings: one declaration of each, how a value is read, and which of several levels counts.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use switchyard_catalog::{Catalog, NodeId, SettingLevel, UserId};
use switchyard_dialect::Value;
use thiserror::Error;

use crate::session_state::SessionState;

pub mod interval;
mod rows;
pub mod size;
mod table;
mod value;

pub use rows::{ConfigurationRow, SettingRow, configuration_rows, setting_rows};
pub use table::SETTINGS;

/// Whose setting it is: this decides precedence and the shape of SHOW.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Vertica's: user > session > node > database > default, read from the catalog at each use.
    Vertica,
    /// PostgreSQL's: transaction > session > user > node > database > default, levels read at login.
    PostgreSql,
    /// Hologres': as PostgreSQL's.
    Hologres,
    /// Ours: PostgreSQL's precedence, read from the catalog at each use.
    Switchyard,
}

impl Family {
    /// As `switchyard.settings` shows it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Vertica => "vertica",
            Self::PostgreSql => "postgresql",
            Self::Hologres => "hologres",
            Self::Switchyard => "switchyard",
        }
    }

    /// Whether a change at a lasting level counts in sessions that are open already.
    fn is_live(self) -> bool {
        matches!(self, Self::Vertica | Self::Switchyard)
    }
}

/// The unit of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// None.
    None,
    /// Milliseconds, shown in the largest unit that divides them.
    Ms,
    /// Kilobytes, shown likewise.
    Kb,
}

/// Reads a text of its own kind: the form SHOW prints, or a hint on what is taken.
pub type Check = fn(&str) -> Result<String, Option<&'static str>>;

/// What values a setting takes.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// `on`, `off`.
    Bool,
    /// The same, shown `1` and `0`.
    Flag,
    /// A whole number.
    Int {
        /// The least.
        min: i64,
        /// The greatest.
        max: i64,
        /// Its unit.
        unit: Unit,
    },
    /// One of these, in any case.
    Enum(&'static [&'static str]),
    /// Any text.
    Text,
    /// A duration, or `unlimited`; stored as typed.
    Interval {
        /// The longest, in days.
        max_days: u64,
    },
    /// A text with rules of its own.
    Checked(Check),
    /// The same, written as a list.
    List(Check),
}

impl Kind {
    /// As `pg_settings.vartype` names it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bool | Self::Flag => "bool",
            Self::Int { .. } => "integer",
            Self::Enum(_) => "enum",
            Self::Text | Self::Checked(_) | Self::List(_) => "string",
            Self::Interval { .. } => "interval",
        }
    }
}

/// A set of levels at which a setting can have a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Levels(u8);

impl Levels {
    /// Nowhere: the value is given.
    pub const NONE: Self = Self(0);
    /// ALTER DATABASE.
    pub const DATABASE: Self = Self(1);
    /// ALTER NODE.
    pub const NODE: Self = Self(2);
    /// ALTER USER.
    pub const USER: Self = Self(4);
    /// SET, ALTER SESSION, and at connect.
    pub const SESSION: Self = Self(8);

    /// Both.
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of the other are in this one.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// As `CONFIGURATION_PARAMETERS.ALLOWED_LEVELS` shows it.
    pub fn words(self) -> String {
        let all =
            [(Self::NODE, "NODE"), (Self::DATABASE, "DATABASE"), (Self::SESSION, "SESSION"), (Self::USER, "USER")];
        let words: Vec<&str> = all.iter().filter(|(level, _)| self.contains(*level)).map(|(_, word)| *word).collect();
        words.join(", ")
    }
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The declaration.
    Default,
    /// ALTER DATABASE.
    Database,
    /// ALTER NODE.
    Node,
    /// ALTER USER.
    User,
    /// SET, or at connect.
    Session,
    /// SET LOCAL.
    Transaction,
}

impl Level {
    /// As SHOW CURRENT shows it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Default => "DEFAULT",
            Self::Database => "DATABASE",
            Self::Node => "NODE",
            Self::User => "USER",
            Self::Session | Self::Transaction => "SESSION",
        }
    }

    pub(crate) fn allowed(self) -> Levels {
        match self {
            Self::Default => Levels::NONE,
            Self::Database => Levels::DATABASE,
            Self::Node => Levels::NODE,
            Self::User => Levels::USER,
            Self::Session | Self::Transaction => Levels::SESSION,
        }
    }
}

/// A setting as declared.
#[derive(Debug, Clone, Copy)]
pub struct Declaration {
    /// The name, in the spelling that is shown.
    pub name: &'static str,
    /// Whose it is.
    pub family: Family,
    /// What values it takes.
    pub kind: Kind,
    /// The value where none is set, as SHOW prints it but without a unit.
    pub default: &'static str,
    /// Where it can be set.
    pub levels: Levels,
    /// Whether a change counts from the next start of a member only.
    pub restart: bool,
    /// Whether only a superuser may set it and see its value.
    pub superuser: bool,
    /// Whether clients are told of its changes (ParameterStatus).
    pub report: bool,
    /// A sentence.
    pub description: &'static str,
}

impl Declaration {
    const fn report(mut self) -> Self {
        self.report = true;
        self
    }

    const fn superuser(mut self) -> Self {
        self.superuser = true;
        self
    }

    /// Reads one value: the form in which it is kept.
    ///
    /// # Errors
    /// When it is none of the setting's values.
    pub fn read(&self, text: &str) -> Result<String, SettingError> {
        value::read(self, text)
    }

    /// Reads the values of a SET; only lists take several.
    ///
    /// # Errors
    /// When they are none of the setting's.
    pub fn read_values(&self, values: &[Value]) -> Result<String, SettingError> {
        match values {
            [word @ Value::Word(_)] if matches!(self.kind, Kind::List(_)) => self.read(&value::list_part(self, word)),
            [one] => self.read(value::text_of(one)),
            many if matches!(self.kind, Kind::List(_)) => {
                let parts: Vec<String> = many.iter().map(|part| value::list_part(self, part)).collect();
                self.read(&parts.join(", "))
            }
            _ => Err(SettingError::TooManyValues { name: self.name }),
        }
    }

    /// A kept value as SHOW prints it: numbers get their unit.
    pub fn shown(&self, kept: &str) -> String {
        value::shown(self, kept)
    }

    /// Whether it can be set at a level by this user.
    ///
    /// # Errors
    /// When it can be set by nobody, not there, or not by him.
    pub fn allow(&self, level: Level, superuser: bool) -> Result<(), SettingError> {
        if self.levels == Levels::NONE {
            return Err(SettingError::Fixed { name: self.name });
        }
        if !self.levels.contains(level.allowed()) {
            return Err(SettingError::Level { name: self.name, level, allowed: self.levels.words() });
        }
        if self.superuser && !superuser {
            return Err(SettingError::Superuser { name: self.name });
        }
        Ok(())
    }
}

/// What is wrong with a SET.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}", crate::error::ClientError::from(crate::error::PlanError::from(self.clone())))]
#[expect(missing_docs, reason = "the fields are the facts their variant's line names")]
pub enum SettingError {
    /// No such setting.
    Unknown { name: String, nearest: Option<&'static str> },
    /// No setting but something else; the hint says how to see it.
    Elsewhere { name: String, hint: String },
    /// A number out of range; the value as typed, with its unit.
    OutOfRange { name: &'static str, value: String, min: i64, max: i64 },
    /// Not a value of this setting.
    Invalid { name: &'static str, value: String, hint: Option<String> },
    /// Not a value of a Boolean setting.
    NotBoolean { name: &'static str },
    /// Several values for a setting that is no list.
    TooManyValues { name: &'static str },
    /// Nobody can set it.
    Fixed { name: &'static str },
    /// Not at this level.
    Level { name: &'static str, level: Level, allowed: String },
    /// Only a superuser may.
    Superuser { name: &'static str },
    /// A session's limit above that of its user.
    AboveUser { name: &'static str, value: String, user_value: String },
    /// A startup option that is not `-c name=value`.
    CommandLine { text: String },
}

/// The declaration of a setting, by name in any case. `TIME ZONE` and the like are PostgreSQL's words for some.
///
/// # Errors
/// When there is none.
pub fn declaration(name: &str) -> Result<&'static Declaration, SettingError> {
    let mut wanted = name.to_ascii_lowercase();
    match wanted.as_str() {
        "time zone" => "timezone".clone_into(&mut wanted),
        "transaction isolation level" => "transaction_isolation".clone_into(&mut wanted),
        "session authorization" => "session_authorization".clone_into(&mut wanted),
        "names" => "client_encoding".clone_into(&mut wanted),
        _ => {}
    }
    // Looked for many times with each statement.
    static BY_NAME: LazyLock<HashMap<String, &'static Declaration>> =
        LazyLock::new(|| SETTINGS.iter().map(|row| (row.name.to_ascii_lowercase(), row)).collect());
    BY_NAME.get(&wanted).copied().ok_or_else(|| unknown(name))
}

/// What is no parameter, though it is shown or set like one.
fn unknown(name: &str) -> SettingError {
    let name = name.to_owned();
    match name.to_ascii_lowercase().as_str() {
        "workload" => SettingError::Elsewhere {
            name,
            hint: "SET SESSION WORKLOAD chooses the workload, SHOW WORKLOAD shows it.".to_owned(),
        },
        "role" | "roles" => {
            SettingError::Elsewhere { name, hint: "SET ROLE enables roles, SHOW ENABLED ROLES shows them.".to_owned() }
        }
        _ => SettingError::Unknown { nearest: nearest(&name), name },
    }
}

fn nearest(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase();
    SETTINGS
        .iter()
        .map(|row| (strsim::damerau_levenshtein(&name, &row.name.to_lowercase()), row.name))
        .min()
        .filter(|(distance, other)| *distance <= 2.max(other.len() / 5))
        .map(|(_, other)| other)
}

/// The values of settings at the lasting levels, as one session sees them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LevelValues {
    /// ALTER DATABASE.
    pub database: BTreeMap<String, String>,
    /// ALTER NODE of the connection node.
    pub node: BTreeMap<String, String>,
    /// ALTER USER of the session's user.
    pub user: BTreeMap<String, String>,
}

impl LevelValues {
    /// Reads them from a catalog.
    pub fn read(catalog: &Catalog, node: Option<NodeId>, user: UserId) -> Self {
        let at = |level| {
            let settings = catalog.settings_at(level);
            settings.map(|setting| (setting.name.clone(), setting.value.clone())).collect()
        };
        Self {
            database: at(SettingLevel::Database),
            node: node.map(|node| at(SettingLevel::Node(node))).unwrap_or_default(),
            user: at(SettingLevel::User(user)),
        }
    }
}

/// Where the lasting levels are looked up.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LastingLevels<'a> {
    /// In the catalog of now.
    Now { catalog: &'a Catalog, node: Option<NodeId>, user: UserId },
    /// In what was read before.
    Read(&'a LevelValues),
}

impl<'a> LastingLevels<'a> {
    /// The user's, the node's and the database's value.
    fn values(self, name: &str) -> [Option<&'a str>; 3] {
        match self {
            Self::Now { catalog, node, user } => {
                let at = |level| catalog.setting(level, name).map(|setting| setting.value.as_str());
                let of_node = node.and_then(|node| at(SettingLevel::Node(node)));
                [at(SettingLevel::User(user)), of_node, at(SettingLevel::Database)]
            }
            Self::Read(values) => {
                [&values.user, &values.node, &values.database].map(|level| level.get(name).map(String::as_str))
            }
        }
    }
}

/// The value of a setting that counts in a session, as it is kept (numbers bare), and where it comes from.
pub fn effective<'a>(
    setting: &'static Declaration,
    session: &'a SessionState,
    catalog: &'a Catalog,
) -> (Cow<'a, str>, Level) {
    let levels = if setting.family.is_live() {
        LastingLevels::Now { catalog, node: session.node_id(catalog), user: session.user_id }
    } else {
        LastingLevels::Read(session.levels_at_login())
    };
    effective_at(setting, session, catalog, levels)
}

/// The same, with the lasting levels of elsewhere.
pub(crate) fn effective_at<'a>(
    setting: &'static Declaration,
    session: &'a SessionState,
    catalog: &'a Catalog,
    levels: LastingLevels<'a>,
) -> (Cow<'a, str>, Level) {
    if let Some((value, level)) = session.computed(setting.name, catalog) {
        return (value.into(), level);
    }
    let [local, own] = session.own_values(setting.name).map(|value| value.map(String::as_str));
    let [user, node, database] = levels.values(setting.name);
    let found = match setting.family {
        Family::Vertica => user
            .map(|value| (value, Level::User))
            .or(local.map(|value| (value, Level::Transaction)))
            .or(own.map(|value| (value, Level::Session))),
        _ => local
            .map(|value| (value, Level::Transaction))
            .or(own.map(|value| (value, Level::Session)))
            .or(user.map(|value| (value, Level::User))),
    };
    let (value, level) = found
        .or(node.map(|value| (value, Level::Node)))
        .or(database.map(|value| (value, Level::Database)))
        .unwrap_or((setting.default, Level::Default));
    (value.into(), level)
}

/// A setting by name, as it is kept; empty for a name that is not declared.
fn value<'a>(name: &str, session: &'a SessionState, catalog: &'a Catalog) -> Cow<'a, str> {
    declaration(name).map(|setting| effective(setting, session, catalog).0).unwrap_or_default()
}

/// The value of a setting by name, as it is kept; empty for a name that is not declared.
pub fn value_of(name: &str, session: &SessionState, catalog: &Catalog) -> String {
    value(name, session, catalog).into_owned()
}

/// The zone that a session's times are shown and read in.
pub fn zone_of(session: &SessionState, catalog: &Catalog) -> jiff::tz::TimeZone {
    let name = value("TimeZone", session, catalog);
    let eastwards = match name.split_at_checked(1) {
        Some(("+", offset)) => Cow::Owned(format!("-{offset}")),
        Some(("-", offset)) => Cow::Owned(format!("+{offset}")),
        _ => name,
    };
    crate::sql::zone_named(&eastwards).unwrap_or(jiff::tz::TimeZone::UTC)
}

/// A Boolean setting by name.
pub fn is_on(name: &str, session: &SessionState, catalog: &Catalog) -> bool {
    matches!(&*value(name, session, catalog), "on" | "1")
}

/// A whole number by name.
pub fn int_of(name: &str, session: &SessionState, catalog: &Catalog) -> i64 {
    value(name, session, catalog).parse().unwrap_or_default()
}

/// How many clients a node lets in: `MaxClientSessions` of the node, or of the database. Where it was set at neither,
/// the process's own limit is the only one.
pub fn client_sessions_max(catalog: &Catalog, node: Option<NodeId>) -> Option<usize> {
    let setting = declaration("MaxClientSessions").ok()?;
    let of_node = node.and_then(|node| catalog.setting(SettingLevel::Node(node), setting.name));
    let set = of_node.or_else(|| catalog.setting(SettingLevel::Database, setting.name))?;
    set.value.parse().ok()
}

/// A setting's value for the whole cluster, where there is no session; `None` for a name that is not declared.
pub fn database_value(name: &str, catalog: &Catalog) -> Option<String> {
    let setting = declaration(name).ok()?;
    let set = catalog.setting(SettingLevel::Database, setting.name);
    Some(set.map_or_else(|| setting.default.to_owned(), |row| row.value.clone()))
}

/// A setting's value for a node: its own, or the cluster's; `None` for a name that is not declared.
pub fn node_value(name: &str, node: NodeId, catalog: &Catalog) -> Option<String> {
    let setting = declaration(name).ok()?;
    let of_node = catalog.setting(SettingLevel::Node(node), setting.name).map(|row| row.value.clone());
    of_node.or_else(|| database_value(name, catalog))
}

/// Whether a setting was set for a node, or for the whole cluster.
pub fn is_set_for_node(name: &str, node: NodeId, catalog: &Catalog) -> bool {
    [SettingLevel::Node(node), SettingLevel::Database]
        .into_iter()
        .any(|level| declaration(name).is_ok_and(|setting| catalog.setting(level, setting.name).is_some()))
}

#[cfg(test)]
mod tests;
