//! The SQLSTATEs in use: PostgreSQL's, and Vertica's where its clients know them (`reference/vertica-sql.md` §0).

use std::fmt;

macro_rules! sqlstates {
    ($($(#[doc = $doc:literal])+ $name:ident = $code:literal,)*) => {
        /// Five characters that say what kind of outcome this is.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum SqlState {
            $($(#[doc = $doc])+ #[doc = ""] #[doc = concat!("`", $code, "`")] $name,)*
        }

        impl SqlState {
            /// All of them, by code.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The five characters.
            pub const fn code(self) -> &'static str {
                match self {
                    $(Self::$name => $code,)*
                }
            }

            /// Finds one by its five characters.
            pub fn parse(code: &str) -> Option<Self> {
                match code {
                    $($code => Some(Self::$name),)*
                    _ => None,
                }
            }
        }
    };
}

sqlstates! {
    /// Success.
    SuccessfulCompletion = "00000",
    /// A warning.
    Warning = "01000",
    /// A warning: a privilege was not granted.
    PrivilegeNotGranted = "01007",
    /// A warning: a privilege was not revoked.
    PrivilegeNotRevoked = "01006",
    /// No data.
    NoData = "02000",
    /// The connection failed.
    ConnectionFailure = "08006",
    /// The server refused to establish the connection.
    ConnectionRejected = "08004",
    /// The bytes do not follow the protocol.
    ProtocolViolation = "08P01",
    /// Not supported.
    FeatureNotSupported = "0A000",
    /// The grantor may not grant.
    InvalidGrantor = "0L000",
    /// A grant that can never be made.
    InvalidGrantOperation = "0LP01",
    /// Vertica: a grant that can never be made.
    InvalidGrantOperationVertica = "0LV01",
    /// A role that may not be set or granted.
    InvalidRoleSpecification = "0P000",
    /// A text is longer than its column.
    StringDataRightTruncation = "22001",
    /// A number is too large or too small.
    NumericValueOutOfRange = "22003",
    /// A null where none may be.
    NullValueNotAllowed = "22004",
    /// A date or time makes no sense.
    InvalidDatetimeFormat = "22007",
    /// A date or time is out of range.
    DatetimeFieldOverflow = "22008",
    /// Division by zero.
    DivisionByZero = "22012",
    /// A value is refused.
    InvalidParameterValue = "22023",
    /// Bytes are no text of the encoding.
    CharacterNotInRepertoire = "22021",
    /// A character is not in the other encoding.
    UntranslatableCharacter = "22P05",
    /// A text is no value of the type.
    InvalidTextRepresentation = "22P02",
    /// Bytes are no value of the type.
    InvalidBinaryRepresentation = "22P03",
    /// COPY data is refused.
    BadCopyFileFormat = "22P04",
    /// A constraint is violated.
    IntegrityConstraintViolation = "23000",
    /// A key is not unique.
    UniqueViolation = "23505",
    /// A cursor is not in the right state.
    InvalidCursorState = "24000",
    /// The transaction is not in the right state.
    InvalidTransactionState = "25000",
    /// Not inside a transaction block.
    ActiveTransaction = "25001",
    /// Not in a read-only transaction.
    ReadOnlyTransaction = "25006",
    /// Only inside a transaction block.
    NoActiveTransaction = "25P01",
    /// The transaction has failed; only its end is taken.
    InFailedTransaction = "25P02",
    /// The session was idle in its transaction for too long.
    IdleInTransactionTimeout = "25P03",
    /// No such prepared statement.
    InvalidStatementName = "26000",
    /// The login is refused.
    InvalidAuthorization = "28000",
    /// The password is wrong.
    InvalidPassword = "28P01",
    /// PostgreSQL: other objects depend on it.
    DependentObjects = "2BP01",
    /// Vertica: other objects depend on it.
    DependentObjectsVertica = "2BV01",
    /// No such cursor or portal.
    InvalidCursorName = "34000",
    /// No such savepoint.
    InvalidSavepoint = "3B001",
    /// No such database.
    InvalidCatalogName = "3D000",
    /// No such schema.
    InvalidSchemaName = "3F000",
    /// Somebody else changed the same; try again.
    SerializationFailure = "40001",
    /// It is not known whether the statement was completed.
    StatementCompletionUnknown = "40003",
    /// A deadlock.
    DeadlockDetected = "40P01",
    /// No privilege.
    InsufficientPrivilege = "42501",
    /// A syntax error.
    SyntaxError = "42601",
    /// A name that is no name.
    InvalidName = "42602",
    /// A name is too long.
    NameTooLong = "42622",
    /// A name is reserved.
    ReservedName = "42939",
    /// A column comes twice.
    DuplicateColumn = "42701",
    /// A column could be any of several.
    AmbiguousColumn = "42702",
    /// No such column.
    UndefinedColumn = "42703",
    /// No such object.
    UndefinedObject = "42704",
    /// The object exists already.
    DuplicateObject = "42710",
    /// An alias comes twice.
    DuplicateAlias = "42712",
    /// A function could be any of several.
    AmbiguousFunction = "42725",
    /// A column is neither grouped nor aggregated.
    GroupingError = "42803",
    /// Types do not fit.
    DatatypeMismatch = "42804",
    /// The object is of another kind.
    WrongObjectType = "42809",
    /// A window function where none may be.
    WindowingError = "42P20",
    /// A value cannot be cast to the type.
    CannotCoerce = "42846",
    /// No such function.
    UndefinedFunction = "42883",
    /// No such table.
    UndefinedTable = "42P01",
    /// No such parameter.
    UndefinedParameter = "42P02",
    /// The cursor exists already.
    DuplicateCursor = "42P03",
    /// The database exists already.
    DuplicateDatabase = "42P04",
    /// The prepared statement exists already.
    DuplicatePreparedStatement = "42P05",
    /// The schema exists already.
    DuplicateSchema = "42P06",
    /// The table exists already.
    DuplicateTable = "42P07",
    /// A column reference makes no sense here.
    InvalidColumnReference = "42P10",
    /// A definition makes no sense.
    InvalidObjectDefinition = "42P17",
    /// The type of a parameter cannot be told.
    IndeterminateDatatype = "42P18",
    /// Vertica: no such table.
    UndefinedTableVertica = "42V01",
    /// Resources are used up.
    InsufficientResources = "53000",
    /// The disk is full.
    DiskFull = "53100",
    /// The memory is used up.
    OutOfMemory = "53200",
    /// Too many connections.
    TooManyConnections = "53300",
    /// A configured limit is reached.
    ConfigurationLimitExceeded = "53400",
    /// A limit of the program is reached.
    ProgramLimitExceeded = "54000",
    /// A statement is nested too deeply.
    StatementTooComplex = "54001",
    /// Too many columns.
    TooManyColumns = "54011",
    /// Too many arguments.
    TooManyArguments = "54023",
    /// The object is not in the state that this needs.
    ObjectNotInPrerequisiteState = "55000",
    /// The object is in use.
    ObjectInUse = "55006",
    /// The setting cannot be changed now.
    CantChangeRuntimeParam = "55P02",
    /// A lock was not to be had.
    LockNotAvailable = "55P03",
    /// Cancelled.
    QueryCanceled = "57014",
    /// An administrator ended the session.
    AdminShutdown = "57P01",
    /// The server crashed.
    CrashShutdown = "57P02",
    /// Not now: starting or shutting down.
    CannotConnectNow = "57P03",
    /// The session was idle for too long.
    IdleSessionTimeout = "57P05",
    /// The system failed.
    SystemError = "58000",
    /// Reading or writing failed.
    IoError = "58030",
    /// A configuration file is wrong.
    ConfigFileError = "F0000",
    /// A fault of ours.
    InternalError = "XX000",
    /// Stored data is damaged.
    DataCorrupted = "XX001",
    /// Vertica: a lock was not to be had.
    LockFailureVertica = "55V03",
}

impl fmt::Display for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_code_is_five_characters_and_comes_once() {
        let codes: HashSet<_> = SqlState::ALL.iter().map(|state| state.code()).collect();
        assert_eq!(codes.len(), SqlState::ALL.len());
        for &state in SqlState::ALL {
            assert_eq!(state.code().len(), 5, "{state}");
            assert!(state.code().bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase()), "{state}");
            assert_eq!(SqlState::parse(state.code()), Some(state));
        }
        assert_eq!(SqlState::parse("zzzzz"), None);
    }
}
