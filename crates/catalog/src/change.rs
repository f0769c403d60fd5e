//! What can be done to a catalog, in domain words. Changes name objects, so that one planned on an older version can be
//! tried again on a newer one.

use std::net::IpAddr;

use crate::entity::*;
use crate::name::Name;
use crate::secret::Secret;

/// One change. [`crate::Catalog::apply`] says what each needs and does.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "each variant's fields are the statement's words; its own line says which statement")]
pub enum Change {
    /// CREATE NETWORK ADDRESS.
    CreateNetworkAddress { name: Name, node: Name, host: Host, port: u16, enabled: bool },
    /// ALTER NETWORK ADDRESS.
    AlterNetworkAddress { name: Name, change: AddressChange },
    /// DROP NETWORK ADDRESS; CASCADE takes it out of its groups.
    DropNetworkAddress { name: Name, if_exists: bool, cascade: bool },
    /// CREATE NETWORK INTERFACE.
    CreateNetworkInterface { name: Name, node: Name, host: Host, port: u16, enabled: bool },
    /// ALTER NETWORK INTERFACE.
    AlterNetworkInterface { name: Name, change: InterfaceChange },
    /// DROP NETWORK INTERFACE; CASCADE takes it out of node definitions.
    DropNetworkInterface { name: Name, if_exists: bool, cascade: bool },
    /// CREATE SUBNET.
    CreateSubnet { name: Name, prefix: IpAddr },
    /// ALTER SUBNET ... RENAME TO.
    RenameSubnet { name: Name, to: Name },
    /// DROP SUBNET; CASCADE takes it out of the database definition.
    DropSubnets { names: Vec<Name>, if_exists: bool, cascade: bool },

    /// CREATE LOAD BALANCE GROUP.
    CreateLoadBalanceGroup { name: Name, source: GroupSource, filter: Option<Network>, policy: Policy },
    /// ALTER LOAD BALANCE GROUP.
    AlterLoadBalanceGroup { name: Name, change: GroupChange },
    /// DROP LOAD BALANCE GROUP; CASCADE drops its routing rules too.
    DropLoadBalanceGroup { name: Name, if_exists: bool, cascade: bool },

    /// CREATE ROUTING RULE ... ROUTE 'cidr' TO group.
    CreateRoutingRule { name: Name, source: Network, group: Name },
    /// CREATE ROUTING RULE \[name\] ROUTE WORKLOAD ...; without a name it gets the workload's.
    CreateWorkloadRule { name: Option<Name>, workload: Name, subclusters: Vec<Name>, priority: u32 },
    /// ALTER ROUTING RULE.
    AlterRoutingRule { target: RuleTarget, change: RuleChange },
    /// DROP ROUTING RULE, with the grants on it.
    DropRoutingRule { target: RuleTarget, if_exists: bool },

    /// GRANT USAGE ON WORKLOAD.
    GrantWorkload { workload: Name, grantees: Vec<Name>, grantor: Name },
    /// REVOKE USAGE ON WORKLOAD.
    RevokeWorkload { workload: Name, grantees: Vec<Name> },

    /// CREATE USER. There is one superuser; `superuser` makes the first.
    CreateUser { name: Name, superuser: bool, changes: Vec<UserChange> },
    /// ALTER USER.
    AlterUser { name: Name, changes: Vec<UserChange> },
    /// DROP USER; CASCADE also drops the user's mappings and revokes what the user granted.
    DropUsers { names: Vec<Name>, if_exists: bool, cascade: bool },
    /// CREATE ROLE.
    CreateRole { name: Name },
    /// ALTER ROLE ... RENAME TO.
    RenameRole { name: Name, to: Name },
    /// DROP ROLE; CASCADE revokes it from whoever holds it.
    DropRoles { names: Vec<Name>, if_exists: bool, cascade: bool },
    /// GRANT role TO.
    GrantRoles { roles: Vec<Name>, grantees: Vec<Name>, admin: bool, grantor: Name },
    /// REVOKE role FROM; `admin_only` is ADMIN OPTION FOR.
    RevokeRoles { roles: Vec<Name>, grantees: Vec<Name>, admin_only: bool, cascade: bool },

    /// CREATE AUTHENTICATION.
    CreateAuthentication { name: Name, method: AuthenticationMethod, access: AuthenticationAccess, fallthrough: bool },
    /// ALTER AUTHENTICATION.
    AlterAuthentication { name: Name, change: AuthenticationChange },
    /// DROP AUTHENTICATION; CASCADE revokes it from whoever holds it.
    DropAuthentications { names: Vec<Name>, if_exists: bool, cascade: bool },
    /// GRANT AUTHENTICATION.
    GrantAuthentication { name: Name, grantees: Vec<Name> },
    /// REVOKE AUTHENTICATION.
    RevokeAuthentication { name: Name, grantees: Vec<Name> },

    /// CREATE USER MAPPING; no user is PUBLIC, no node is every node.
    CreateUserMapping { user: Option<Name>, node: Option<Name>, remote_user: String, password: Option<Secret> },
    /// ALTER USER MAPPING.
    AlterUserMapping { user: Option<Name>, node: Option<Name>, change: MappingChange },
    /// DROP USER MAPPING.
    DropUserMapping { user: Option<Name>, node: Option<Name>, if_exists: bool },

    /// ALTER DATABASE ... EXPORT ON; `None` is DEFAULT.
    ExportDatabaseOn { subnet: Option<Name> },
    /// ALTER DATABASE ... DROP ALL FAULT GROUP.
    DropAllFaultGroups,
    /// SET_LOAD_BALANCE_POLICY.
    SetPolicy { policy: Policy },
    /// The secret of the cluster's members, if there is none yet. No statement does this: the first member that joins
    /// does.
    SetMemberSecret { secret: Secret },
    /// A setting's value at one level; `None` clears it. The value was checked against the setting's declaration.
    SetSetting { level: SettingTarget, name: String, value: Option<String> },

    /// CREATE NODE, or a member that joins.
    CreateNode { name: Name, kind: NodeKind, host: String, port: u16, subcluster: Option<Name> },
    /// ALTER NODE.
    AlterNode { name: Name, change: NodeChange },
    /// DROP NODE; CASCADE drops its network addresses, interfaces, user mappings and shard replicas too.
    DropNode { name: Name, if_exists: bool, cascade: bool },
    /// CREATE SUBCLUSTER.
    CreateSubcluster { name: Name, primary: bool },
    /// ALTER SUBCLUSTER.
    AlterSubcluster { name: Name, change: SubclusterChange },
    /// DROP SUBCLUSTER; CASCADE moves its nodes to the default one and takes it out of groups and rules.
    DropSubcluster { name: Name, if_exists: bool, cascade: bool },
    /// START_DRAIN_SUBCLUSTER and CANCEL_DRAIN_SUBCLUSTER; `None` is every subcluster.
    DrainSubcluster { name: Option<Name>, draining: bool },

    /// CREATE FAULT GROUP.
    CreateFaultGroup { name: Name },
    /// ALTER FAULT GROUP.
    AlterFaultGroup { name: Name, change: FaultGroupChange },
    /// DROP FAULT GROUP, with its children; the nodes go to the parent. Refused while a load balance group holds one.
    DropFaultGroup { name: Name, if_exists: bool },

    /// CALL hg_create_table_group. `shard_cap` lifts the caps when false. The first one becomes the default.
    CreateTableGroup { name: Name, shard_count: u32, replica_count: u32, manually: bool, shard_cap: bool },
    /// CALL hg_drop_table_group. The default one goes last.
    DropTableGroup { name: Name },
    /// CALL hg_set_table_group_property.
    SetTableGroupProperty { name: Name, property: TableGroupProperty },
    /// CALL hg_update_database_property('default_table_group', ...).
    SetDefaultTableGroup { name: Name },

    /// RESTORE CATALOG: everything becomes as it was in that version. Ids stay used; the version rises by one.
    Restore { to: Box<crate::Catalog> },
}

/// What ALTER NETWORK ADDRESS does.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are the statement's words")]
pub enum AddressChange {
    /// RENAME TO.
    Rename(Name),
    /// SET TO; without a port the stored one stays.
    Set { host: Host, port: Option<u16> },
    /// ENABLE, DISABLE.
    Enable(bool),
}

/// What ALTER NETWORK INTERFACE does.
pub type InterfaceChange = AddressChange;

/// The members a load balance group is made of, or gets, or loses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupSource {
    /// ADDRESS.
    Addresses(Vec<Name>),
    /// FAULT GROUP.
    FaultGroups(Vec<Name>),
    /// SUBCLUSTER.
    Subclusters(Vec<Name>),
}

/// What ALTER LOAD BALANCE GROUP does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupChange {
    /// RENAME TO.
    Rename(Name),
    /// SET FILTER TO.
    Filter(Network),
    /// SET POLICY TO.
    Policy(Policy),
    /// ADD.
    Add(GroupSource),
    /// DROP.
    Drop(GroupSource),
}

/// The rule a statement speaks of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleTarget {
    /// By its name.
    Named(Name),
    /// FOR WORKLOAD.
    Workload(Name),
}

/// What ALTER ROUTING RULE does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleChange {
    /// RENAME TO.
    Rename(Name),
    /// SET ROUTE TO.
    Route(Network),
    /// SET GROUP TO.
    Group(Name),
    /// SET WORKLOAD TO.
    Workload(Name),
    /// SET SUBCLUSTER TO.
    Subclusters(Vec<Name>),
    /// SET PRIORITY TO.
    Priority(u32),
    /// ADD SUBCLUSTER.
    AddSubclusters(Vec<Name>),
    /// REMOVE SUBCLUSTER.
    RemoveSubclusters(Vec<Name>),
}

/// One parameter of CREATE USER or ALTER USER.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserChange {
    /// RENAME TO.
    Rename(Name),
    /// IDENTIFIED BY: also ends the expiry of the old password. `None` takes the password away.
    Password(Option<Verifiers>),
    /// PASSWORD EXPIRE.
    ExpirePassword,
    /// ACCOUNT LOCK, ACCOUNT UNLOCK.
    Lock(bool),
    /// DEFAULT ROLE NONE.
    NoDefaultRoles,
    /// DEFAULT ROLE role, ...; each must be granted already.
    DefaultRoles(Vec<Name>),
    /// DEFAULT ROLE ALL [EXCEPT role, ...].
    DefaultRolesAllExcept(Vec<Name>),
    /// MAXCONNECTIONS.
    MaxConnections(Option<(u32, LimitScope)>),
    /// IDLESESSIONTIMEOUT.
    IdleSessionTimeout(Option<String>),
    /// GRACEPERIOD.
    GracePeriod(Option<String>),
    /// RUNTIMECAP.
    RuntimeCap(Option<String>),
    /// MEMORYCAP.
    MemoryCap(Option<String>),
    /// TEMPSPACECAP.
    TempSpaceCap(Option<String>),
    /// PROFILE.
    Profile(Option<Name>),
    /// RESOURCE POOL.
    ResourcePool(Option<Name>),
    /// SEARCH_PATH.
    SearchPath(Option<Vec<Name>>),
    /// SECURITY_ALGORITHM.
    SecurityAlgorithm(Option<String>),
}

/// What ALTER AUTHENTICATION does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthenticationChange {
    /// RENAME TO.
    Rename(Name),
    /// ENABLE, DISABLE.
    Enable(bool),
    /// METHOD.
    Method(AuthenticationMethod),
    /// LOCAL, HOST.
    Access(AuthenticationAccess),
    /// PRIORITY.
    Priority(u32),
    /// FALLTHROUGH, NO FALLTHROUGH.
    Fallthrough(bool),
    /// SET parameter = value; `None` clears it.
    Parameter(String, Option<String>),
}

/// What ALTER USER MAPPING does: what is `Some` is replaced; an inner `None` takes the password away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappingChange {
    /// The login there.
    pub remote_user: Option<String>,
    /// The password there.
    pub password: Option<Option<Secret>>,
}

/// Where a setting gets its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingTarget {
    /// ALTER DATABASE.
    Database,
    /// ALTER NODE.
    Node(Name),
    /// ALTER USER.
    User(Name),
}

/// What ALTER NODE does.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are the statement's words")]
pub enum NodeChange {
    /// RENAME TO.
    Rename(Name),
    /// SET ADDRESS TO; without a port the stored one stays.
    Address { host: String, port: Option<u16> },
    /// SET UPSTREAM TO; `None` takes it away.
    Upstream(Option<Secret>),
    /// EXPORT ON; `None` is DEFAULT.
    ExportOn(Option<Name>),
    /// \[IS\] PERMANENT, EPHEMERAL, STANDBY, EXECUTE.
    Type(NodeType),
    /// REPLACE [WITH node].
    Replace(Option<Name>),
    /// RESET.
    Reset,
    /// DRAIN, with how long it may take, and its end.
    Drain { draining: bool, terms: Option<DrainTerms> },
    /// A member that joins under this name takes the node over.
    Join { host: String, port: u16, upstream: Option<Secret> },
}

/// What ALTER SUBCLUSTER does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubclusterChange {
    /// RENAME TO.
    Rename(Name),
    /// SET DEFAULT.
    SetDefault,
    /// ADD NODE.
    AddNodes(Vec<Name>),
    /// DROP NODE: the nodes go to the default subcluster.
    DropNodes(Vec<Name>),
    /// PROMOTE_SUBCLUSTER_TO_PRIMARY, DEMOTE_SUBCLUSTER_TO_SECONDARY.
    Primary(bool),
}

/// What ALTER FAULT GROUP does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultGroupChange {
    /// RENAME TO.
    Rename(Name),
    /// ADD NODE.
    AddNode(Name),
    /// DROP NODE.
    DropNode(Name),
    /// ADD FAULT GROUP.
    AddChild(Name),
    /// DROP FAULT GROUP.
    DropChild(Name),
}

/// A property of a table group that can be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableGroupProperty {
    /// From 1 to the number of workers.
    ReplicaCount(u32),
}
