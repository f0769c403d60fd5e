//! The entities of the catalog (`design.md` §4).

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::id::*;
use crate::name::Name;
use crate::secret::Secret;

/// How one target is chosen among several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Policy {
    /// No balancing.
    None,
    /// The next of a circular list; each member has its own pointer.
    #[default]
    RoundRobin,
    /// Any, with equal chance.
    Random,
}

impl Policy {
    /// All policies, in the order in which messages list them.
    pub const ALL: [Self; 3] = [Self::None, Self::RoundRobin, Self::Random];

    /// The policy's name in capitals, as `LOAD_BALANCE_GROUPS` shows it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::RoundRobin => "ROUNDROBIN",
            Self::Random => "RANDOM",
        }
    }

    /// Reads a policy in any case.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.as_str().eq_ignore_ascii_case(text))
    }
}

/// What all share: the one row of `DATABASES`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Database {
    /// Its id.
    pub id: u64,
    /// Its name; a client that names it gets the console.
    pub name: Name,
    /// The classic policy.
    pub policy: Policy,
    /// The subnet that export addresses are taken from.
    pub export_subnet: Option<SubnetId>,
    /// Where nodes go that name no subcluster.
    pub default_subcluster: SubclusterId,
    /// Where tables go that name no table group.
    pub default_table_group: Option<TableGroupId>,
    /// What members of this cluster prove to each other with that they are; made when the first one joins. It is in no
    /// dump: another cluster has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member_secret: Option<Secret>,
}

/// What kind of server a node is (`design.md` §2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum NodeKind {
    /// A switchyard process, with the PostgreSQL server it fronts, if any.
    Member {
        /// `postgresql://...`
        upstream: Option<Secret>,
    },
    /// A PostgreSQL server with no switchyard beside it, with its URL when more than host and port was given.
    Remote {
        /// `postgresql://...`
        upstream: Option<Secret>,
    },
}

/// Vertica's kinds of nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum NodeType {
    /// The usual kind.
    #[default]
    Permanent,
    /// Holds no data of its own.
    Ephemeral,
    /// Stands ready to replace another.
    Standby,
    /// Executes only.
    Execute,
}

impl NodeType {
    /// As `NODES.NODE_TYPE` shows it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Permanent => "PERMANENT",
            Self::Ephemeral => "EPHEMERAL",
            Self::Standby => "STANDBY",
            Self::Execute => "EXECUTE",
        }
    }
}

/// How long the sessions of a node that drains may go on. Its member measures the time, from when it hears of it: clocks
/// of other machines do not matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrainTerms {
    /// In milliseconds.
    pub within_ms: u64,
    /// Whether those that took longer are closed.
    pub then_close: bool,
}

/// A named SQL server of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Its id.
    pub id: NodeId,
    /// Its name.
    pub name: Name,
    /// Member or remote, and the upstream.
    pub kind: NodeKind,
    /// Vertica's type.
    pub node_type: NodeType,
    /// IP address or host name.
    pub host: String,
    /// Client port, 1..=65535.
    pub port: u16,
    /// The subcluster it belongs to.
    pub subcluster: SubclusterId,
    /// The interface whose address is exported instead of `host`.
    pub export_interface: Option<NetworkInterfaceId>,
    /// Whether new connections go elsewhere.
    pub draining: bool,
    /// How long its sessions may go on, if that was said when it began to drain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<DrainTerms>,
    /// The node that stands in for this one, by `ALTER NODE ... REPLACE`.
    pub replaced_by: Option<NodeId>,
}

impl Node {
    /// Whether shard replicas can be placed here: it is, or has, a PostgreSQL server.
    pub fn is_worker(&self) -> bool {
        match &self.kind {
            NodeKind::Member { upstream } => upstream.is_some(),
            NodeKind::Remote { .. } => true,
        }
    }
}

/// A named set of nodes; every node is in exactly one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subcluster {
    /// Its id.
    pub id: SubclusterId,
    /// Its name.
    pub name: Name,
    /// Primary or secondary.
    pub primary: bool,
}

/// A named set of nodes and of other fault groups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultGroup {
    /// Its id.
    pub id: FaultGroupId,
    /// Its name.
    pub name: Name,
    /// The group that holds this one.
    pub parent: Option<FaultGroupId>,
    /// Its own nodes, in the order they were added.
    pub nodes: Vec<NodeId>,
}

/// A host as typed: an IP address, or a host name that is resolved when it is used.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Host {
    /// IPv4 or IPv6.
    Ip(IpAddr),
    /// A host name.
    Dns(String),
}

impl std::fmt::Display for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ip(ip) => ip.fmt(f),
            Self::Dns(name) => f.write_str(name),
        }
    }
}

/// An address and port at which clients reach a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkAddress {
    /// Its id.
    pub id: NetworkAddressId,
    /// Its name; the name space is shared with network interfaces.
    pub name: Name,
    /// The node.
    pub node: NodeId,
    /// Where.
    pub host: Host,
    /// 1..=65535.
    pub port: u16,
    /// Disabled addresses are never chosen.
    pub enabled: bool,
}

/// An address of a node for import and export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkInterface {
    /// Its id.
    pub id: NetworkInterfaceId,
    /// Its name; the name space is shared with network addresses.
    pub name: Name,
    /// The node.
    pub node: NodeId,
    /// Where.
    pub host: Host,
    /// 1..=65535.
    pub port: u16,
    /// Whether it may be used.
    pub enabled: bool,
}

/// A named network prefix without length.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subnet {
    /// Its id.
    pub id: SubnetId,
    /// Its name.
    pub name: Name,
    /// The prefix, for example `10.10.10.0`.
    pub prefix: IpAddr,
}

/// What a load balance group holds; never two kinds at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum GroupMembers {
    /// Nothing: the last member was dropped.
    Empty,
    /// Network addresses, at most one of each node.
    Addresses(Vec<NetworkAddressId>),
    /// Fault groups, with their nested children.
    FaultGroups(Vec<FaultGroupId>),
    /// Subclusters.
    Subclusters(Vec<SubclusterId>),
}

/// A network as typed, and as it is matched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    /// As typed; host bits and a missing length are kept.
    pub typed: String,
    /// Host bits masked off; a bare address is /32 or /128.
    pub net: IpNet,
}

/// Where connections may be sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadBalanceGroup {
    /// Its id.
    pub id: LoadBalanceGroupId,
    /// Its name.
    pub name: Name,
    /// How one is chosen.
    pub policy: Policy,
    /// Among whom.
    pub members: GroupMembers,
    /// Which node addresses qualify; always there when the members are fault groups or subclusters.
    pub filter: Option<Network>,
}

/// Which client networks go to which group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoutingRule {
    /// Its id; the older of two equal networks wins.
    pub id: RoutingRuleId,
    /// Its name; the name space is shared with workload rules.
    pub name: Name,
    /// The client network.
    pub source: Network,
    /// The target.
    pub group: LoadBalanceGroupId,
}

/// Which subclusters serve a workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkloadRule {
    /// Its id.
    pub id: WorkloadRuleId,
    /// Its name; the workload's name when none was given.
    pub name: Name,
    /// The workload; no two rules have the same.
    pub workload: Name,
    /// At least one, in the order they were added.
    pub subclusters: Vec<SubclusterId>,
    /// The greater wins.
    pub priority: u32,
}

/// What is kept of a password: never the password.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verifiers {
    /// `SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>`, as in PostgreSQL.
    pub scram: Secret,
    /// `sha512:<hash>:<salt>`, both in hex: what Vertica clients prove. Empty where only the other one was given.
    pub sha512: Secret,
    /// `md5:<hash>`, in hex, of password and name: for Vertica clients of users whose security algorithm is MD5. It
    /// ends with the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub md5: Option<Secret>,
}

/// Where a limit of connections is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LimitScope {
    /// On each member.
    Node,
    /// In the whole cluster.
    Database,
}

impl LimitScope {
    /// As `USERS.CONNECTION_LIMIT_MODE` shows it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Database => "database",
        }
    }
}

/// The roles that are on at login.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum DefaultRoles {
    /// None but the predefined ones.
    #[default]
    None,
    /// These.
    Listed(Vec<RoleId>),
    /// All that are granted, but for these.
    AllExcept(Vec<RoleId>),
}

/// A user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// Its id.
    pub id: UserId,
    /// Its name.
    pub name: Name,
    /// True for `dbadmin` alone.
    pub superuser: bool,
    /// Absent when no password was set.
    pub verifiers: Option<Verifiers>,
    /// Whether login is refused.
    pub locked: bool,
    /// Whether the password must be changed at the next login.
    pub password_expired: bool,
    /// On at login.
    pub default_roles: DefaultRoles,
    /// Everything else that CREATE USER and ALTER USER set.
    pub limits: UserLimits,
}

/// The parameters of a user that are kept as given; `None` is NONE or DEFAULT.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct UserLimits {
    /// Connections, and where they are counted.
    pub max_connections: Option<(u32, LimitScope)>,
    /// An interval as typed.
    pub idle_session_timeout: Option<String>,
    /// An interval as typed.
    pub grace_period: Option<String>,
    /// An interval as typed.
    pub runtime_cap: Option<String>,
    /// A size as typed.
    pub memory_cap: Option<String>,
    /// A size as typed.
    pub temp_space_cap: Option<String>,
    /// A profile.
    pub profile: Option<Name>,
    /// A resource pool.
    pub resource_pool: Option<Name>,
    /// Schemas.
    pub search_path: Option<Vec<Name>>,
    /// `NONE`, `SHA512` or `MD5`.
    pub security_algorithm: Option<String>,
}

impl UserLimits {
    /// Whether a verifier is to be kept for clients that prove by MD5.
    pub fn wants_md5(&self) -> bool {
        self.security_algorithm.as_deref() == Some("MD5")
    }
}

/// A role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Role {
    /// Its id.
    pub id: RoleId,
    /// Its name; the name space is shared with users.
    pub name: Name,
    /// Predefined roles cannot be dropped or renamed.
    pub predefined: bool,
}

/// Who holds a grant; PUBLIC is the predefined role of that name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Grantee {
    /// A user.
    User(UserId),
    /// A role.
    Role(RoleId),
}

/// A role granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoleGrant {
    /// Its id.
    pub id: RoleGrantId,
    /// The role.
    pub role: RoleId,
    /// To whom.
    pub grantee: Grantee,
    /// Whether the grantee may grant it on.
    pub admin: bool,
    /// By whom.
    pub grantor: UserId,
}

/// USAGE on a workload granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkloadGrant {
    /// Its id.
    pub id: WorkloadGrantId,
    /// The rule of the workload.
    pub rule: WorkloadRuleId,
    /// To whom.
    pub grantee: Grantee,
    /// By whom.
    pub grantor: UserId,
}

/// Which connections an authentication record is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum AuthenticationAccess {
    /// The Unix socket; a client over loopback TCP is a host.
    Local,
    /// A network, with or without TLS.
    Host {
        /// The client network.
        network: Network,
        /// Whether TLS matters.
        tls: TlsDemand,
    },
}

/// Whether an authentication record looks at TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TlsDemand {
    /// HOST: with TLS or without.
    Any,
    /// HOST TLS: only with.
    Required,
    /// HOST NO TLS: only without.
    Forbidden,
}

/// How a client proves who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum AuthenticationMethod {
    /// No proof asked.
    Trust,
    /// Refused.
    Reject,
    /// A password: SCRAM-SHA-256 for PostgreSQL clients, SHA512 for Vertica clients.
    Hash,
    /// A client certificate.
    Tls,
}

impl AuthenticationMethod {
    /// All methods.
    pub const ALL: [Self; 4] = [Self::Trust, Self::Reject, Self::Hash, Self::Tls];

    /// The name in lower case, as CREATE AUTHENTICATION takes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Trust => "trust",
            Self::Reject => "reject",
            Self::Hash => "hash",
            Self::Tls => "tls",
        }
    }

    /// Reads a method in any case; `scram-sha-256` and `password` are other words for `hash`.
    pub fn parse(text: &str) -> Option<Self> {
        if ["scram-sha-256", "scram", "password"].iter().any(|alias| alias.eq_ignore_ascii_case(text)) {
            return Some(Self::Hash);
        }
        Self::ALL.into_iter().find(|method| method.as_str().eq_ignore_ascii_case(text))
    }
}

/// Who may log in from where, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Authentication {
    /// Its id.
    pub id: AuthenticationId,
    /// Its name.
    pub name: Name,
    /// The proof asked for.
    pub method: AuthenticationMethod,
    /// The connections it is for.
    pub access: AuthenticationAccess,
    /// Disabled records are never considered.
    pub enabled: bool,
    /// The greater wins.
    pub priority: u32,
    /// Whether the next record is tried when this one fails.
    pub fallthrough: bool,
    /// `SET name = value` of ALTER AUTHENTICATION, by name.
    pub parameters: Vec<(String, String)>,
}

/// An authentication record granted: it counts only for those it is granted to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthenticationGrant {
    /// Its id.
    pub id: AuthenticationGrantId,
    /// The record.
    pub authentication: AuthenticationId,
    /// To whom.
    pub grantee: Grantee,
}

/// The login a user (or everybody) has on one upstream (or on all).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserMapping {
    /// Its id.
    pub id: UserMappingId,
    /// The user; `None` is PUBLIC: everybody without a mapping of his own.
    pub user: Option<UserId>,
    /// The node; `None` is every node without a mapping of its own.
    pub node: Option<NodeId>,
    /// The login there.
    pub remote_user: String,
    /// The password there; never shown, and absent from dumps.
    pub password: Option<Secret>,
}

/// Where a setting has a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum SettingLevel {
    /// The whole cluster.
    Database,
    /// One member.
    Node(NodeId),
    /// One user.
    User(UserId),
}

/// The value of a setting at one level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// Its id.
    pub id: SettingId,
    /// The level.
    pub level: SettingLevel,
    /// The setting's name, in the spelling of its declaration.
    pub name: String,
    /// The value, already checked and in the form that SHOW prints.
    pub value: String,
}

/// A set of shards that share placement and replica count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableGroup {
    /// Its id.
    pub id: TableGroupId,
    /// Its name.
    pub name: Name,
    /// Fixed at creation.
    pub shard_count: u32,
    /// Leader and followers together, at least 1.
    pub replica_count: u32,
    /// Whether a person made it.
    pub created_manually: bool,
    /// Rises by one with each change.
    pub version: u64,
}

/// One shard of a table group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// Its id.
    pub id: ShardId,
    /// The table group.
    pub table_group: TableGroupId,
    /// From 0.
    pub number: u32,
    /// The leader first; no two on one worker. Fewer than the group's replica count when workers are missing.
    pub replicas: Vec<Replica>,
}

/// What a replica is to its shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReplicaRole {
    /// Takes the writes.
    Leader,
    /// Follows the leader.
    Follower,
}

impl ReplicaRole {
    /// As `switchyard.shard_replicas` shows it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Leader => "leader",
            Self::Follower => "follower",
        }
    }
}

/// How far a replica is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReplicaState {
    /// Placed; no data has been moved yet.
    Planned,
}

impl ReplicaState {
    /// As `switchyard.shard_replicas` shows it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Planned => "planned",
        }
    }
}

/// One copy of a shard on one worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replica {
    /// The worker.
    pub worker: NodeId,
    /// Leader or follower.
    pub role: ReplicaRole,
    /// How far it is.
    pub state: ReplicaState,
}
