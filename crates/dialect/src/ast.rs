//! The syntax tree.

use std::fmt;

use zeroize::Zeroize;

use crate::function::{MetaFunction, Procedure};
use crate::sql::SqlStatement;

/// An identifier as typed, without its quotes. Whether it was quoted is not kept: the printer quotes where it must.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Ident(pub String);

/// A string literal that must not be shown, such as a password.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(String);

impl SecretText {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("********")
    }
}

impl Drop for SecretText {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// A literal argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Literal {
    /// `'text'`
    Text(String),
    /// A number as typed, with its sign.
    Number(String),
    /// `TRUE` or `FALSE`.
    Bool(bool),
    /// `NULL`.
    Null,
}

/// A value of SET or of a configuration parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// `'text'`
    Text(String),
    /// A number as typed, with its sign.
    Number(String),
    /// A bare word, for example `on`, or `any`, which no SQL grammar takes but the vendor documents.
    Word(String),
}

/// One or several named things, or all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// `ALL`
    All,
    /// `a, b`
    Named(Vec<Ident>),
}

/// A name, or the word DEFAULT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrDefault {
    /// `DEFAULT`
    Default,
    /// A name.
    Named(Ident),
}

/// A parameter and its value: `name = value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The parameter; dots are kept.
    pub name: Ident,
    /// Its value.
    pub value: Value,
}

/// SET [PARAMETER] and CLEAR [PARAMETER], alike for databases, nodes, sessions and users.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParameterAction {
    /// `SET [PARAMETER] p = v, ...`
    Set(Vec<Assignment>),
    /// `CLEAR [PARAMETER] p, ...`
    Clear(Vec<Ident>),
}

/// A statement of the management dialect, or one of SQL's.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the variants are the statements; reference/vertica-sql.md gives each its grammar")]
pub enum Statement {
    // §1, §6.1
    CreateNetworkAddress { name: Ident, node: Ident, address: String, port: Option<u64>, enabled: Option<bool> },
    AlterNetworkAddress { name: Ident, action: AddressAction },
    DropNetworkAddress { if_exists: bool, name: Ident, cascade: bool },
    CreateNetworkInterface { name: Ident, node: Ident, address: String, port: Option<u64>, enabled: Option<bool> },
    AlterNetworkInterface { name: Ident, action: AddressAction },
    DropNetworkInterface { if_exists: bool, name: Ident, cascade: bool },
    CreateSubnet { name: Ident, prefix: String },
    AlterSubnet { name: Ident, rename_to: Ident },
    DropSubnet { if_exists: bool, names: Vec<Ident>, cascade: bool },
    // §2
    CreateLoadBalanceGroup { name: Ident, members: GroupMembers, filter: Option<String>, policy: Option<String> },
    AlterLoadBalanceGroup { name: Ident, action: GroupAction },
    DropLoadBalanceGroup { if_exists: bool, name: Ident, cascade: bool },
    // §3
    CreateRoutingRule { name: Ident, route: String, group: Ident },
    CreateWorkloadRule { name: Option<Ident>, workload: Ident, subclusters: Vec<Ident>, priority: Option<u64> },
    AlterRoutingRule { target: RuleTarget, action: RuleAction },
    DropRoutingRule { if_exists: bool, target: RuleTarget },
    // §4.1; `ON ROUTING RULE` means the same and prints as `ON WORKLOAD`
    GrantWorkload { workload: Ident, grantees: Vec<Ident> },
    RevokeWorkload { workload: Ident, grantees: Vec<Ident> },
    // §4.3
    SetSessionWorkload(WorkloadChoice),
    SetRole(RoleChoice),
    Show(Show),
    // §4.4
    CreateUser { name: Ident, parameters: Vec<UserParameter> },
    AlterUser { name: Ident, action: UserAction },
    DropUser { if_exists: bool, names: Vec<Ident>, cascade: bool },
    // §4.5
    CreateRole { name: Ident },
    AlterRole { name: Ident, rename_to: Ident },
    DropRole { if_exists: bool, names: Vec<Ident>, cascade: bool },
    GrantRole { roles: Vec<Ident>, grantees: Vec<Ident>, admin: bool },
    RevokeRole { admin_only: bool, roles: Vec<Ident>, grantees: Vec<Ident>, cascade: bool },
    // authentication: as in Vertica
    CreateAuthentication { name: Ident, method: String, access: AuthenticationAccess, fallthrough: bool },
    AlterAuthentication { name: Ident, action: AuthenticationAction },
    DropAuthentication { if_exists: bool, names: Vec<Ident>, cascade: bool },
    GrantAuthentication { name: Ident, grantees: Vec<Ident> },
    RevokeAuthentication { name: Ident, grantees: Vec<Ident> },
    // logins on upstreams; a user of `None` is PUBLIC, a server of `None` is every node
    CreateUserMapping { user: Option<Ident>, server: Option<Ident>, options: MappingOptions },
    AlterUserMapping { user: Option<Ident>, server: Option<Ident>, options: MappingOptions },
    DropUserMapping { if_exists: bool, user: Option<Ident>, server: Option<Ident> },
    // §5: meta-functions, alone in a select list
    Function { function: MetaFunction, typed: String, arguments: Vec<Literal>, alias: Option<Ident> },
    // §6.2
    AlterDatabase { database: OrDefault, action: DatabaseAction },
    AlterNode { name: Ident, action: NodeAction },
    AlterSession(ParameterAction),
    // §6.3
    CreateFaultGroup { name: Ident },
    AlterFaultGroup { name: Ident, action: FaultGroupAction },
    DropFaultGroup { if_exists: bool, name: Ident },
    // §6.4
    CreateSubcluster { name: Ident, primary: Option<bool> },
    AlterSubcluster { name: Ident, action: SubclusterAction },
    DropSubcluster { if_exists: bool, name: Ident, cascade: bool },
    CreateNode { name: Ident, host: String, port: Option<u64>, subcluster: Option<Ident> },
    DropNode { if_exists: bool, name: Ident, cascade: bool },
    // Hologres
    Call { procedure: Procedure, arguments: Vec<Literal> },
    // settings of the session
    Set { scope: SetScope, name: Ident, values: SetValue },
    // SET TRANSACTION modes, and for the session: SET SESSION CHARACTERISTICS AS TRANSACTION modes; modes as in Begin
    SetTransaction { session: bool, modes: Vec<String> },
    Reset(Selection),
    Discard(DiscardWhat),
    // transactions; modes in upper case, for example `ISOLATION LEVEL SERIALIZABLE`, `READ ONLY`
    Begin { start: bool, modes: Vec<String> },
    Commit,
    Rollback,
    Savepoint(Ident),
    ReleaseSavepoint(Ident),
    RollbackTo(Ident),
    // cursors, prepared statements and notifications, as in PostgreSQL; their names keep their case
    DeclareCursor { name: Ident, options: CursorOptions, query: SqlStatement },
    // MOVE too
    FetchCursor { name: Ident, direction: FetchDirection, moves: bool },
    // `None` is ALL
    CloseCursor(Option<Ident>),
    // the statement's own text, and what it says when all its parameters are NULL
    Prepare { name: Ident, types: Vec<String>, text: SecretText, statement: Box<Statement> },
    Execute { name: Ident, arguments: Vec<sqlparser::ast::Expr> },
    // `None` is ALL
    Deallocate(Option<Ident>),
    Listen(Ident),
    // `None` is `*`
    Unlisten(Option<Ident>),
    Notify { channel: Ident, payload: Option<String> },
    // ours: everything becomes as it was in that version, as a new version
    RestoreCatalog { version: u64 },
    // whatever sqlparser's PostgreSQL dialect takes and none of the above is
    Sql(SqlStatement),
}

impl Statement {
    /// Whether parameters are kept in it, for values that it gets when it runs; into all others, values are written.
    pub fn takes_values(&self) -> bool {
        matches!(self, Self::Sql(_) | Self::DeclareCursor { .. } | Self::Prepare { .. } | Self::Execute { .. })
    }
}

/// After ALTER NETWORK ADDRESS name, and ALTER NETWORK INTERFACE name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AddressAction {
    /// RENAME TO
    Rename(Ident),
    /// SET TO 'address' [PORT n]
    Set {
        /// The new address.
        address: String,
        /// The new port, if it changes.
        port: Option<u64>,
    },
    /// ENABLE or DISABLE
    Enable(bool),
}

/// ADDRESS, FAULT GROUP or SUBCLUSTER with names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupMembers {
    /// ADDRESS a, b
    Addresses(Vec<Ident>),
    /// FAULT GROUP a, b
    FaultGroups(Vec<Ident>),
    /// SUBCLUSTER a, b
    Subclusters(Vec<Ident>),
}

/// After ALTER LOAD BALANCE GROUP name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupAction {
    /// RENAME TO
    Rename(Ident),
    /// SET FILTER TO 'cidr'
    Filter(String),
    /// SET POLICY TO 'policy'
    Policy(String),
    /// ADD kind names
    Add(GroupMembers),
    /// DROP kind names
    Drop(GroupMembers),
}

/// A rule by name or by workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleTarget {
    /// name
    Named(Ident),
    /// FOR WORKLOAD name
    Workload(Ident),
}

/// After ALTER ROUTING RULE target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleAction {
    /// RENAME TO
    Rename(Ident),
    /// SET ROUTE TO 'cidr'
    Route(String),
    /// SET GROUP TO
    Group(Ident),
    /// SET WORKLOAD TO
    Workload(Ident),
    /// SET SUBCLUSTER TO
    Subclusters(Vec<Ident>),
    /// SET PRIORITY TO
    Priority(u64),
    /// ADD SUBCLUSTER
    AddSubclusters(Vec<Ident>),
    /// REMOVE SUBCLUSTER
    RemoveSubclusters(Vec<Ident>),
}

/// After SET SESSION WORKLOAD [TO].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkloadChoice {
    /// A workload; one named DEFAULT or NONE must be quoted.
    Named(Ident),
    /// DEFAULT
    Default,
    /// NONE
    None,
}

/// After SET ROLE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RoleChoice {
    /// role, ...: these too
    Named(Vec<Ident>),
    /// NONE
    None,
    /// ALL [EXCEPT role, ...]
    AllExcept(Vec<Ident>),
    /// DEFAULT
    Default,
}

/// After SHOW.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Show {
    /// WORKLOAD
    Workload,
    /// AVAILABLE WORKLOADS
    AvailableWorkloads,
    /// AVAILABLE ROLES, AVAILABLE_ROLES
    AvailableRoles,
    /// ENABLED ROLES, ENABLED_ROLES
    EnabledRoles,
    /// ALL
    All,
    /// SESSION ALL, SESSION parameter, ...
    Session(Selection),
    /// CURRENT ALL, CURRENT parameter, ...
    Current(Selection),
    /// DATABASE name ALL, ...
    Database(OrDefault, Selection),
    /// NODE name ALL, ...
    Node(Ident, Selection),
    /// USER name ALL, ...
    User(Ident, Selection),
    /// parameter; several words are joined by blanks (`TIME ZONE`)
    Parameter(Ident),
}

/// One parameter of CREATE USER or ALTER USER; `None` is NONE or DEFAULT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserParameter {
    /// ACCOUNT LOCK, ACCOUNT UNLOCK
    Lock(bool),
    /// PASSWORD EXPIRE
    ExpirePassword,
    /// IDENTIFIED BY 'password' [REPLACE 'old']
    IdentifiedBy {
        /// The new password.
        password: SecretText,
        /// The old one.
        replace: Option<SecretText>,
    },
    /// GRACEPERIOD
    GracePeriod(Option<String>),
    /// IDLESESSIONTIMEOUT
    IdleSessionTimeout(Option<String>),
    /// RUNTIMECAP
    RuntimeCap(Option<String>),
    /// MAXCONNECTIONS n ON DATABASE|NODE, MAXCONNECTIONS NONE
    MaxConnections(Option<(u64, ConnectionScope)>),
    /// MEMORYCAP
    MemoryCap(Option<String>),
    /// TEMPSPACECAP
    TempSpaceCap(Option<String>),
    /// PROFILE
    Profile(Option<Ident>),
    /// RESOURCE POOL name [FOR SUBCLUSTER sc]
    ResourcePool {
        /// The pool.
        pool: Ident,
        /// Where it applies; everywhere if `None`.
        subcluster: Option<Ident>,
    },
    /// SEARCH_PATH
    SearchPath(Option<Vec<Ident>>),
    /// SECURITY_ALGORITHM
    SecurityAlgorithm(String),
}

/// ON DATABASE, ON NODE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionScope {
    /// ON DATABASE
    Database,
    /// ON NODE
    Node,
}

/// After ALTER USER name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserAction {
    /// parameter, ...
    Parameters(Vec<UserParameter>),
    /// DEFAULT ROLE NONE | role, ... | ALL [EXCEPT role, ...]; never `RoleChoice::Default`
    DefaultRole(RoleChoice),
    /// RENAME TO
    Rename(Ident),
    /// SET, CLEAR
    Parameter(ParameterAction),
    /// The same by ALTER ROLE, as PostgreSQL's clients write it.
    RoleParameter(ParameterAction),
}

/// LOCAL, or HOST [TLS | NO TLS] 'network'.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthenticationAccess {
    /// LOCAL
    Local,
    /// HOST [TLS | NO TLS] 'network'
    Host {
        /// TLS, NO TLS, or either.
        tls: Option<bool>,
        /// An address or a network.
        network: String,
    },
}

/// After ALTER AUTHENTICATION name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthenticationAction {
    /// RENAME TO
    Rename(Ident),
    /// ENABLE, DISABLE
    Enable(bool),
    /// METHOD 'method'
    Method(String),
    /// LOCAL, HOST ...
    Access(AuthenticationAccess),
    /// PRIORITY n
    Priority(u64),
    /// FALLTHROUGH, NO FALLTHROUGH
    Fallthrough(bool),
    /// SET name = value, ...
    Set(Vec<Assignment>),
    /// CLEAR name, ...
    Clear(Vec<Ident>),
}

/// OPTIONS ( user 'u', password 'p' ) of a user mapping.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MappingOptions {
    /// user 'u'
    pub user: Option<String>,
    /// password 'p'
    pub password: Option<SecretText>,
    /// ALTER only: DROP password
    pub drop_password: bool,
}

/// After ALTER DATABASE name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatabaseAction {
    /// EXPORT ON
    ExportOn(OrDefault),
    /// DROP ALL FAULT GROUP
    DropAllFaultGroups,
    /// RESET STANDBY
    ResetStandby,
    /// SET, CLEAR; also PostgreSQL's `SET name TO value`
    Parameter(ParameterAction),
    /// RESET name, RESET ALL: PostgreSQL's word for CLEAR
    Reset(Selection),
}

/// After ALTER NODE name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeAction {
    /// EXPORT ON
    ExportOn(OrDefault),
    /// [IS] PERMANENT | EPHEMERAL | STANDBY | EXECUTE
    Type(NodeType),
    /// REPLACE [WITH node]
    Replace(Option<Ident>),
    /// RESET
    Reset,
    /// SET, CLEAR
    Parameter(ParameterAction),
    /// SET ADDRESS TO 'host' [PORT n]
    Address {
        /// The new host.
        host: String,
        /// The new port, if it changes.
        port: Option<u64>,
    },
    /// SET UPSTREAM TO 'url', SET UPSTREAM TO NONE
    Upstream(Option<SecretText>),
    /// RENAME TO
    Rename(Ident),
    /// DRAIN [WITHIN 'interval' [THEN CLOSE]]
    Drain {
        /// How long the sessions may take.
        within: Option<String>,
        /// Whether those that took longer are closed.
        then_close: bool,
    },
    /// CANCEL DRAIN
    CancelDrain,
}

/// Vertica's node types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the words themselves")]
pub enum NodeType {
    Permanent,
    Ephemeral,
    Standby,
    Execute,
}

/// After ALTER FAULT GROUP name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultGroupAction {
    /// RENAME TO
    Rename(Ident),
    /// ADD NODE
    AddNode(Ident),
    /// DROP NODE
    DropNode(Ident),
    /// ADD FAULT GROUP
    AddChild(Ident),
    /// DROP FAULT GROUP
    DropChild(Ident),
}

/// After ALTER SUBCLUSTER name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubclusterAction {
    /// RENAME TO
    Rename(Ident),
    /// SET DEFAULT
    SetDefault,
    /// ADD NODE n, ...
    AddNodes(Vec<Ident>),
    /// DROP NODE n, ...
    DropNodes(Vec<Ident>),
}

/// SET [SESSION | LOCAL].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetScope {
    /// SET, SET SESSION
    Session,
    /// SET LOCAL
    Local,
}

/// After SET name TO.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetValue {
    /// DEFAULT
    Default,
    /// value, ...
    Values(Vec<Value>),
}

/// After DISCARD.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the words themselves")]
pub enum DiscardWhat {
    All,
    Plans,
    Sequences,
    Temp,
}

/// Between DECLARE name and FOR. INSENSITIVE is not kept: all cursors are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CursorOptions {
    /// BINARY
    pub binary: bool,
    /// SCROLL, NO SCROLL
    pub scroll: Option<bool>,
    /// WITH HOLD
    pub hold: bool,
}

/// After FETCH and MOVE. NEXT and PRIOR are one row, FIRST and LAST the rows 1 and -1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetchDirection {
    /// FORWARD
    Forward(FetchCount),
    /// BACKWARD
    Backward(FetchCount),
    /// ABSOLUTE n
    Absolute(i32),
    /// RELATIVE n
    Relative(i32),
}

/// How many rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetchCount {
    /// n; a negative number goes the other way
    Rows(i32),
    /// ALL
    All,
}
