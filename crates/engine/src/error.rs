//! What a client reads when something is refused: severity, SQLSTATE and text are chosen here, in one place.

use std::fmt;

use switchyard_catalog::{CatalogError, Name, NameError, ObjectKind};
use switchyard_dialect::{ErrorKind, SyntaxError};
use thiserror::Error;

use crate::settings::SettingError;

mod catalog;

macro_rules! states {
    ($($(#[$doc:meta])* $variant:ident = $code:literal),* $(,)?) => {
        /// The SQLSTATEs this crate chooses.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[expect(missing_docs, reason = "the names are those of PostgreSQL's appendix A; others say what they are")]
        pub enum SqlState { $($(#[$doc])* $variant),* }

        impl SqlState {
            /// The five characters.
            pub fn code(self) -> &'static str {
                match self { $(Self::$variant => $code),* }
            }
        }
    };
}

states! {
    Warning = "01000",
    FeatureNotSupported = "0A000",
    CardinalityViolation = "21000",
    NumberOutOfRange = "22003",
    NullValueNotAllowed = "22004",
    InvalidDatetimeFormat = "22007",
    SubstringError = "22011",
    InvalidRegularExpression = "2201B",
    InvalidLogarithm = "2201E",
    InvalidPowerArgument = "2201F",
    InvalidRowCountInLimit = "2201W",
    InvalidRowCountInOffset = "2201X",
    DivisionByZero = "22012",
    InvalidEscapeSequence = "22025",
    InvalidParameterValue = "22023",
    InvalidTextRepresentation = "22P02",
    ActiveTransaction = "25001",
    ReadOnlyTransaction = "25006",
    NoActiveTransaction = "25P01",
    FailedTransaction = "25P02",
    InvalidAuthorization = "28000",
    InvalidPassword = "28P01",
    /// Vertica's code for objects that others depend on.
    DependentObjects = "2BV01",
    InvalidGrantOperation = "0LP01",
    DependentPrivileges = "2BP01",
    InvalidCatalogName = "3D000",
    InvalidSchemaName = "3F000",
    InvalidSavepoint = "3B001",
    SerializationFailure = "40001",
    DeadlockDetected = "40P01",
    InsufficientPrivilege = "42501",
    SyntaxError = "42601",
    InvalidName = "42602",
    NameTooLong = "42622",
    UndefinedColumn = "42703",
    UndefinedObject = "42704",
    AmbiguousColumn = "42702",
    DuplicateObject = "42710",
    WrongObjectType = "42809",
    ReservedName = "42939",
    UndefinedFunction = "42883",
    UndefinedTable = "42P01",
    InvalidColumnReference = "42P10",
    DuplicateAlias = "42712",
    WindowingError = "42P20",
    AmbiguousFunction = "42725",
    DatatypeMismatch = "42804",
    OutOfMemory = "53200",
    ProgramLimitExceeded = "54000",
    StatementTooComplex = "54001",
    /// Too many columns.
    TooManyColumns = "54011",
    ObjectNotInPrerequisiteState = "55000",
    ObjectInUse = "55006",
    CannotChangeParameter = "55P02",
    LockNotAvailable = "55P03",
    QueryCanceled = "57014",
    ConfigurationLimitExceeded = "53400",
    InvalidStatementName = "26000",
    InvalidCursorName = "34000",
    InvalidCursorState = "24000",
    DuplicateCursor = "42P03",
    DuplicatePreparedStatement = "42P05",
    DuplicateColumn = "42701",
    GroupingError = "42803",
    IndeterminateDatatype = "42P18",
    CannotCoerce = "42846",
    SyntaxErrorOrAccessRuleViolation = "42000",
    DataException = "22000",
    DatetimeFieldOverflow = "22008",
    IntervalFieldOverflow = "22015",
    UndefinedParameter = "42P02",
    CharacterNotInRepertoire = "22021",
    UntranslatableCharacter = "22P05",
    InvalidBinaryRepresentation = "22P03",
    IoError = "58030",
    TransactionResolutionUnknown = "08007",
    AdminShutdown = "57P01",
    IdleSessionTimeout = "57P05",
    IdleInTransactionSessionTimeout = "25P03",
    CannotConnectNow = "57P03",
    ProtocolViolation = "08P01",
    InternalError = "XX000",
}

impl fmt::Display for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// How grave a refusal is, as the protocol's `S` field says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Severity {
    /// The statement failed.
    #[default]
    Error,
    /// Vertica's word for an error that ends the transaction too.
    Rollback,
    /// The session ends.
    Fatal,
}

impl Severity {
    /// In capitals.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "ERROR",
            Self::Rollback => "ROLLBACK",
            Self::Fatal => "FATAL",
        }
    }
}

/// An error as a client is told it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct ClientError {
    /// How grave.
    pub severity: Severity,
    /// The code.
    pub sqlstate: SqlState,
    /// The primary message.
    pub message: String,
    /// A sentence of facts.
    pub detail: Option<String>,
    /// A sentence of advice.
    pub hint: Option<String>,
    /// The character of the query string it is about, from 1.
    pub position: Option<usize>,
    /// Notices that go to the client before the error.
    pub notices_before: Vec<String>,
}

impl ClientError {
    /// An error with nothing but a code and a message.
    pub fn new(sqlstate: SqlState, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            sqlstate,
            message: message.into(),
            detail: None,
            hint: None,
            position: None,
            notices_before: Vec::new(),
        }
    }

    /// With a detail.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// With a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// With a hint, if there is one.
    #[must_use]
    pub(crate) fn with_hint_if(mut self, hint: Option<String>) -> Self {
        self.hint = hint.or(self.hint);
        self
    }

    /// With a position.
    #[must_use]
    pub fn at(mut self, position: usize) -> Self {
        self.position = Some(position);
        self
    }

    /// As an error that ends the session: during login.
    #[must_use]
    pub fn fatal(mut self) -> Self {
        self.severity = Severity::Fatal;
        self
    }
}

/// A word for the client that is no error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Whether it is a WARNING or only a NOTICE.
    pub notice: bool,
    /// The code; `00000` goes with notices.
    pub sqlstate: SqlState,
    /// The text.
    pub message: String,
}

impl Warning {
    /// A warning, class 01.
    pub fn new(message: impl Into<String>) -> Self {
        Self { notice: false, sqlstate: SqlState::Warning, message: message.into() }
    }

    /// A notice.
    pub fn notice(message: impl Into<String>) -> Self {
        Self { notice: true, sqlstate: SqlState::Warning, message: message.into() }
    }
}

/// What is wrong with an address as it was typed; the catalog knows more that can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostFault {
    /// It is none.
    Malformed,
    /// It is none, where a host name would not do either.
    NoAddress,
    /// 127.0.0.0/8, ::1, localhost, while `allow_loopback_addresses` is off.
    Loopback,
    /// A subnet is named by its prefix alone.
    NoPrefix,
}

/// Why a statement cannot be planned. Facts only: [`ClientError::from`] makes the text.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}", ClientError::from(self.clone()))]
#[expect(missing_docs, reason = "the fields are the facts their variant's line names")]
pub enum PlanError {
    /// Only a superuser may do this to that kind of thing.
    Privilege { verb: &'static str, kind: &'static str },
    /// Who is not superuser needs the admin option of the role.
    AdminOption { role: Name },
    /// Nothing of this kind has this name.
    Missing { kind: ObjectKind, name: Name, nearest: Option<Name> },
    /// Not the name of the database.
    WrongDatabase { name: String, database: Name },
    /// No name.
    Name(NameError),
    /// SET ROLE, or a default role, that the user does not have.
    RoleNotGranted { role: Name },
    /// SET SESSION WORKLOAD without USAGE.
    WorkloadNotGranted { workload: Name },
    /// No IP address or host name, or one that cannot be used.
    Address { text: String, fault: HostFault },
    /// No CIDR.
    Network { text: String },
    /// A port, a priority or a count out of range.
    Range { what: &'static str, value: String, min: u64, max: u64 },
    /// A word that is not one of those that fit.
    Word { what: &'static str, value: String, available: String },
    /// A text that does not read as what it should be.
    Text { what: &'static str, value: String, hint: Option<&'static str> },
    /// An interval above what is allowed.
    IntervalTooLong { what: &'static str, value: String, max: &'static str },
    /// The same parameter twice in one statement.
    Redundant { what: &'static str },
    /// Part of the dialect, but of no use here.
    NotSupported { what: String, hint: Option<String> },
    /// ALTER USER ... IDENTIFIED BY of oneself without REPLACE.
    OldPasswordNeeded,
    /// A REPLACE password that does not fit.
    OldPasswordWrong { user: Name },
    /// A text that begins as a verifier does and goes on otherwise.
    Verifier,
    /// A user mapping without a login.
    MappingWithoutUser,
    /// A wrong number of arguments.
    Arity { routine: &'static str, min: usize, max: usize, given: usize },
    /// An argument of the wrong type.
    Argument { routine: &'static str, number: usize, expected: &'static str },
    /// A text that should be a number.
    Integer { text: String },
    /// CALL with a table that does not exist.
    NoTable { name: String },
    /// CALL with a property that does not exist, or that is fixed: one of those that are known.
    Property { owner: &'static str, key: String, known: &'static [&'static str] },
    /// Something about a setting.
    Setting(SettingError),
    /// A change in a read-only transaction.
    ReadOnly { tag: &'static str },
    /// Not within BEGIN ... COMMIT.
    InTransaction { what: &'static str },
    /// What came back from applying changes.
    Catalog(CatalogError),
    /// What came back from reading the text.
    Syntax(SyntaxError),
}

impl From<SettingError> for PlanError {
    fn from(error: SettingError) -> Self {
        Self::Setting(error)
    }
}

impl From<CatalogError> for PlanError {
    fn from(error: CatalogError) -> Self {
        Self::Catalog(error)
    }
}

impl From<SyntaxError> for PlanError {
    fn from(error: SyntaxError) -> Self {
        Self::Syntax(error)
    }
}

impl From<NameError> for PlanError {
    fn from(error: NameError) -> Self {
        Self::Name(error)
    }
}

impl From<PlanError> for ClientError {
    fn from(error: PlanError) -> Self {
        use SqlState as S;
        match error {
            PlanError::Privilege { verb, kind } => {
                Self::new(S::InsufficientPrivilege, format!("Must be superuser to {verb} {kind}")).with_hint(AS_SUPERUSER)
            }
            PlanError::AdminOption { role } => {
                Self::new(S::InsufficientPrivilege, format!("Must have admin option on role \"{role}\""))
                    .with_hint(format!("GRANT {role} TO ... WITH ADMIN OPTION gives it; a superuser has it of every role."))
            }
            PlanError::Missing { kind, name, nearest } => missing(kind, &name, nearest.as_ref()),
            PlanError::WrongDatabase { name, database } => {
                Self::new(S::InvalidCatalogName, format!("Database \"{name}\" does not exist"))
                    .with_hint(format!("The database is named \"{database}\"; DEFAULT means it too."))
            }
            PlanError::Name(error) => name_error(&error),
            PlanError::RoleNotGranted { role } => {
                Self::new(S::InsufficientPrivilege, format!("Role \"{role}\" has not been granted"))
                    .with_hint("SHOW AVAILABLE ROLES lists the roles that are granted to you.")
            }
            PlanError::WorkloadNotGranted { workload } => {
                Self::new(S::InsufficientPrivilege, format!("Permission denied for workload \"{workload}\""))
                    .with_hint("SHOW AVAILABLE WORKLOADS lists the workloads open to you and your enabled roles.")
            }
            PlanError::Address { text, fault } => address_error(&text, fault),
            PlanError::Network { text } => {
                Self::new(S::InvalidParameterValue, format!("Invalid network address range \"{text}\""))
                    .with_hint("Write an IPv4 or IPv6 network in CIDR notation, for example 10.20.0.0/16.")
            }
            PlanError::Range { what, value, min, max } => {
                Self::new(S::InvalidParameterValue, format!("Invalid value {value} for {what}"))
                    .with_hint(format!("It must lie between {min} and {max}."))
            }
            PlanError::Word { what, value, available } => {
                Self::new(S::InvalidParameterValue, format!("Invalid value \"{value}\" for {what}"))
                    .with_hint(format!("Available values: {available}."))
            }
            PlanError::Text { what, value, hint } => {
                Self::new(S::InvalidParameterValue, format!("Invalid value \"{value}\" for {what}"))
                    .with_hint_if(hint.map(str::to_owned))
            }
            PlanError::IntervalTooLong { what, value, max } => {
                Self::new(S::InvalidParameterValue, format!("Invalid value \"{value}\" for {what}"))
                    .with_detail(format!("It cannot be longer than {max}."))
            }
            PlanError::Redundant { what } => Self::new(S::SyntaxError, format!("{what} specified more than once")),
            PlanError::NotSupported { what, hint } => {
                Self::new(S::FeatureNotSupported, format!("{what} is not supported")).with_hint_if(hint)
            }
            PlanError::OldPasswordNeeded => {
                Self::new(S::InsufficientPrivilege, "Must give the current password to change it")
                    .with_hint("Use IDENTIFIED BY 'new password' REPLACE 'current password'.")
            }
            PlanError::OldPasswordWrong { user } => {
                Self::new(S::InvalidPassword, format!("Invalid REPLACE password for user \"{user}\""))
                    .with_hint("REPLACE takes the current password; a superuser sets a new one without it.")
            }
            PlanError::Verifier => Self::new(S::InvalidParameterValue, "Invalid password verifier").with_hint(
                "A verifier reads SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>[;sha512:<hash>:<salt>[;md5:<hash>]]; \
                 a password cannot begin with SCRAM-SHA-256$.",
            ),
            PlanError::MappingWithoutUser => {
                Self::new(S::InvalidParameterValue, "User mapping for PUBLIC needs the option user")
                    .with_hint("Write OPTIONS (user 'name', ...).")
            }
            PlanError::Arity { routine, min, max, given } => arity_error(routine, min, max, given),
            PlanError::Argument { routine, number, expected } => {
                Self::new(S::InvalidParameterValue, format!("Argument {number} of {routine} must be {expected}"))
            }
            PlanError::Integer { text } => {
                Self::new(S::InvalidTextRepresentation, format!("invalid input syntax for type integer: \"{text}\""))
            }
            PlanError::NoTable { name } => Self::new(S::UndefinedTable, format!("table \"{name}\" does not exist"))
                .with_hint("The console holds no tables of its own; switchyard.system_tables lists what it shows."),
            PlanError::Property { owner, key, known } => property_error(owner, &key, known),
            PlanError::Setting(error) => setting_error(error),
            PlanError::ReadOnly { tag } => {
                Self::new(S::ReadOnlyTransaction, format!("cannot execute {tag} in a read-only transaction"))
            }
            PlanError::InTransaction { what } => {
                Self::new(S::ActiveTransaction, format!("{what} cannot run inside a transaction block"))
            }
            PlanError::Catalog(error) => catalog::client_error(&error),
            PlanError::Syntax(error) => syntax_error(error),
        }
    }
}

impl From<CatalogError> for ClientError {
    fn from(error: CatalogError) -> Self {
        PlanError::from(error).into()
    }
}

impl From<SyntaxError> for ClientError {
    fn from(error: SyntaxError) -> Self {
        PlanError::from(error).into()
    }
}

/// The first letter in upper case, as Vertica's messages begin.
pub(crate) fn capitalised(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// What whoever lacks a right can do.
pub const AS_SUPERUSER: &str = "Connect as the superuser, dbadmin, or ask somebody who may.";

/// Of a property that is not known, or of one that is and is fixed.
fn property_error(owner: &str, key: &str, known: &[&'static str]) -> ClientError {
    if known.contains(&key.to_lowercase().as_str()) {
        let message = format!("{owner} property \"{key}\" cannot be changed");
        return ClientError::new(SqlState::InvalidParameterValue, message).with_detail("It is fixed at creation.");
    }
    let hint = match crate::nearest(key, known.iter().copied()) {
        Some(nearest) => format!("Did you mean \"{nearest}\"?"),
        None => format!("Known properties: {}.", known.join(", ")),
    };
    let message = format!("unrecognized {owner} property \"{key}\"");
    ClientError::new(SqlState::InvalidParameterValue, message).with_hint(hint)
}

fn missing(kind: ObjectKind, name: &Name, nearest: Option<&Name>) -> ClientError {
    ClientError::new(SqlState::UndefinedObject, format!("{} \"{name}\" does not exist", capitalised(kind.words())))
        .with_hint_if(nearest.map(|nearest| format!("Did you mean \"{nearest}\"?")))
}

fn name_error(error: &NameError) -> ClientError {
    let state = match error {
        NameError::TooLong(_) => SqlState::NameTooLong,
        NameError::Empty | NameError::Control(_) => SqlState::InvalidName,
    };
    ClientError::new(state, error.to_string())
}

fn address_error(text: &str, fault: HostFault) -> ClientError {
    let shown = switchyard_dialect::mask_login(text);
    let error = ClientError::new(SqlState::InvalidParameterValue, format!("Invalid IP address \"{shown}\""));
    match fault {
        HostFault::Malformed => error.with_hint("Write an IPv4 or IPv6 address, or a host name."),
        HostFault::NoAddress => {
            error.with_hint("Write an IPv4 or IPv6 address; a client is never known by a host name.")
        }
        HostFault::Loopback => error
            .with_detail("A loopback address cannot be reached from other hosts.")
            .with_hint("To allow it, use ALTER DATABASE DEFAULT SET allow_loopback_addresses = on."),
        HostFault::NoPrefix => error.with_hint("Write the subnet's prefix without its length, for example 10.10.10.0."),
    }
}

fn arity_error(routine: &str, min: usize, max: usize, given: usize) -> ClientError {
    let takes = if min == max { min.to_string() } else { format!("{min} to {max}") };
    let noun = if max == 1 { "argument" } else { "arguments" };
    ClientError::new(SqlState::UndefinedFunction, format!("{routine} takes {takes} {noun}, not {given}"))
}

fn syntax_error(error: SyntaxError) -> ClientError {
    let state = match error.kind {
        ErrorKind::Syntax => SqlState::SyntaxError,
        ErrorKind::NameTooLong => SqlState::NameTooLong,
        ErrorKind::TooComplex => SqlState::StatementTooComplex,
        ErrorKind::UndefinedFunction => SqlState::UndefinedFunction,
        ErrorKind::NumberOutOfRange => SqlState::NumberOutOfRange,
    };
    ClientError::new(state, error.message).with_hint_if(error.hint).at(error.position)
}

fn setting_error(error: SettingError) -> ClientError {
    use SqlState as S;
    match error {
        SettingError::Unknown { name, nearest } => {
            let hint = match nearest {
                Some(nearest) => format!("Did you mean \"{nearest}\"?"),
                None => "SHOW ALL lists the parameters.".to_owned(),
            };
            ClientError::new(S::UndefinedObject, format!("unrecognized configuration parameter \"{name}\""))
                .with_hint(hint)
        }
        SettingError::Elsewhere { name, hint } => {
            ClientError::new(S::UndefinedObject, format!("unrecognized configuration parameter \"{name}\""))
                .with_hint(hint)
        }
        SettingError::OutOfRange { name, value, min, max } => ClientError::new(
            S::InvalidParameterValue,
            format!("{value} is outside the valid range for parameter \"{name}\" ({min} .. {max})"),
        ),
        SettingError::Invalid { name, value, hint } => {
            ClientError::new(S::InvalidParameterValue, format!("invalid value for parameter \"{name}\": \"{value}\""))
                .with_hint_if(hint)
        }
        SettingError::NotBoolean { name } => {
            ClientError::new(S::InvalidParameterValue, format!("parameter \"{name}\" requires a Boolean value"))
                .with_hint("Available values: on, off.")
        }
        SettingError::TooManyValues { name } => {
            ClientError::new(S::InvalidParameterValue, format!("SET {name} takes only one argument"))
        }
        SettingError::Fixed { name } => {
            ClientError::new(S::CannotChangeParameter, format!("parameter \"{name}\" cannot be changed"))
        }
        SettingError::Level { name, level, allowed } => ClientError::new(
            S::CannotChangeParameter,
            format!("parameter \"{name}\" cannot be set at level {}", level.as_str()),
        )
        .with_hint(format!("Allowed levels: {allowed}.")),
        SettingError::Superuser { name } => {
            ClientError::new(S::InsufficientPrivilege, format!("Must be superuser to set parameter \"{name}\""))
                .with_hint(AS_SUPERUSER)
        }
        SettingError::AboveUser { name, value, user_value } => ClientError::new(
            S::InsufficientPrivilege,
            format!("Must be superuser to set parameter \"{name}\" to \"{value}\""),
        )
        .with_detail(format!("The user's own value, \"{user_value}\", can only be lowered."))
        .with_hint(AS_SUPERUSER),
        SettingError::CommandLine { text } => {
            ClientError::new(S::SyntaxError, format!("invalid command-line argument for server process: {text}"))
                .with_hint("Startup options read -c name=value.")
        }
    }
}

#[cfg(test)]
mod tests;
