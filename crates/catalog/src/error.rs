//! What can be wrong with a change. Each variant carries facts; SQLSTATE and final text are chosen where a client is
//! told.

use std::fmt;

use thiserror::Error;

use crate::initial::PUBLIC_ROLE;
use crate::name::Name;

/// The kinds of objects, as messages name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ObjectKind {
    /// A node.
    Node,
    /// A subcluster.
    Subcluster,
    /// A fault group.
    FaultGroup,
    /// A network address.
    NetworkAddress,
    /// A network interface.
    NetworkInterface,
    /// A subnet.
    Subnet,
    /// A load balance group.
    LoadBalanceGroup,
    /// A routing rule.
    RoutingRule,
    /// A workload.
    Workload,
    /// A user.
    User,
    /// A role.
    Role,
    /// A user or a role.
    Grantee,
    /// An authentication record.
    Authentication,
    /// A user mapping.
    UserMapping,
    /// A table group.
    TableGroup,
    /// The database.
    Database,
}

impl ObjectKind {
    /// In a sentence: `network address`.
    pub fn words(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Subcluster => "subcluster",
            Self::FaultGroup => "fault group",
            Self::NetworkAddress => "network address",
            Self::NetworkInterface => "network interface",
            Self::Subnet => "subnet",
            Self::LoadBalanceGroup => "load balance group",
            Self::RoutingRule => "routing rule",
            Self::Workload => "workload",
            Self::User => "user",
            Self::Role => "role",
            Self::Grantee => "user or role",
            Self::Authentication => "authentication",
            Self::UserMapping => "user mapping",
            Self::TableGroup => "table group",
            Self::Database => "database",
        }
    }

    /// At the start of a sentence: `Network address`.
    pub fn capitalised(self) -> &'static str {
        match self {
            Self::Node => "Node",
            Self::Subcluster => "Subcluster",
            Self::FaultGroup => "Fault group",
            Self::NetworkAddress => "Network address",
            Self::NetworkInterface => "Network interface",
            Self::Subnet => "Subnet",
            Self::LoadBalanceGroup => "Load balance group",
            Self::RoutingRule => "Routing rule",
            Self::Workload => "Workload",
            Self::User => "User",
            Self::Role => "Role",
            Self::Grantee => "User or role",
            Self::Authentication => "Authentication",
            Self::UserMapping => "User mapping",
            Self::TableGroup => "Table group",
            Self::Database => "Database",
        }
    }

    /// One of them, in a sentence: `an authentication`.
    fn with_article(self) -> String {
        let article = if self == Self::Authentication { "an" } else { "a" };
        format!("{article} {self}")
    }

    /// Several of them, in a sentence: `network addresses`.
    pub fn plural(self) -> String {
        match self {
            Self::NetworkAddress => "network addresses".to_owned(),
            other => format!("{other}s"),
        }
    }

    /// In the messages of a DROP that others stand against. Of these three kinds the vendor's texts are known, which name
    /// its internal classes, network addresses and interfaces being one; everywhere else the statement's words do.
    fn in_drop(self, dropped: Self) -> &'static str {
        if !matches!(dropped, Self::NetworkAddress | Self::NetworkInterface | Self::LoadBalanceGroup) {
            return self.words();
        }
        match self {
            Self::Node => "Node",
            Self::NetworkAddress | Self::NetworkInterface => "NetworkInterface",
            Self::LoadBalanceGroup => "LoadBalanceGroup",
            Self::RoutingRule => "RoutingRule",
            other => other.words(),
        }
    }
}

impl fmt::Display for ObjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

/// What is wrong with an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AddressFault {
    /// There is nothing.
    Empty,
    /// 127.0.0.0/8 or ::1, for a node that is not on loopback itself.
    Loopback,
    /// 0.0.0.0 or ::.
    Unspecified,
    /// 224.0.0.0/4 or ff00::/8.
    Multicast,
    /// 255.255.255.255.
    Broadcast,
}

/// Which of two caps on shards was met (`reference/hologres.md` §1.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ShardCap {
    /// Of one table group.
    TableGroup,
    /// Of all table groups together.
    Cluster,
}

/// Why a change was refused. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "each variant's fields are the facts of its text")]
pub enum CatalogError {
    /// E_DUP. `kind` is that of the object that has the name, [`ObjectKind::Workload`] when the workload has a rule.
    #[error("Object \"{name}\" already exists")]
    Exists { kind: ObjectKind, name: Name },
    /// A name of a user or role that means something else in the grammar.
    #[error("role name \"{name}\" is reserved")]
    Reserved { name: Name },
    /// E_NOOBJ. `namesake` is the kind of another object that has the name.
    #[error("{} \"{name}\" does not exist", kind.capitalised())]
    Missing { kind: ObjectKind, name: Name, nearest: Option<Name>, namesake: Option<ObjectKind> },
    /// A list names something twice.
    #[error("{} \"{name}\" is named more than once", kind.capitalised())]
    Repeated { kind: ObjectKind, name: Name },
    /// What should be taken out of something is not in it.
    #[error("{} \"{name}\" does not exist in {holder_kind} \"{holder}\"", kind.capitalised())]
    NotMember { kind: ObjectKind, name: Name, holder_kind: ObjectKind, holder: Name },
    /// What should be put into something is in it, or in another of its kind.
    #[error("{} \"{name}\" is already in {holder_kind} \"{holder}\"", kind.capitalised())]
    AlreadyMember { kind: ObjectKind, name: Name, holder_kind: ObjectKind, holder: Name },

    /// E_KIND.
    #[error("Load balance group \"{group}\" holds {}; {} cannot be added", holds.plural(), given.plural())]
    GroupKind { group: Name, holds: ObjectKind, given: ObjectKind },
    /// E_NODEDUP.
    #[error("Load balance group \"{group}\" already has an address on node \"{node}\"")]
    NodeDuplicate { group: Name, node: Name },
    /// Fault groups and subclusters need a filter.
    #[error("Load balance group \"{group}\" has no filter")]
    FilterMissing { group: Name },
    /// Network addresses take no filter.
    #[error("Load balance group \"{group}\" holds network addresses, which take no filter")]
    FilterForbidden { group: Name },
    /// CREATE with no member.
    #[error("Load balance group \"{group}\" needs at least one member")]
    NoMembers { group: Name },

    /// The action is for the other type of routing rule. `workload` says which type this one is.
    #[error("{action} does not apply to routing rule \"{rule}\"")]
    RuleType { rule: Name, workload: bool, action: &'static str },
    /// A workload rule keeps at least one subcluster.
    #[error("Routing rule \"{rule}\" needs at least one subcluster")]
    LastSubcluster { rule: Name },

    /// E_DEP. In the order of creation within each kind.
    #[error("DROP failed due to dependencies")]
    Dependents { kind: ObjectKind, name: Name, dependents: Vec<(ObjectKind, Name)> },
    /// The superuser, predefined roles, the default subcluster. `action` is a participle: `dropped`.
    #[error("{} \"{name}\" cannot be {action}", kind.capitalised())]
    Protected { kind: ObjectKind, name: Name, action: &'static str },
    /// At least one subcluster is primary.
    #[error("Subcluster \"{subcluster}\" is the only primary subcluster")]
    LastPrimary { subcluster: Name },
    /// Nodes dropped from a subcluster go to the default one, so this one's cannot be.
    #[error("Node \"{node}\" cannot be dropped from the default subcluster \"{subcluster}\"")]
    DefaultSubclusterNode { node: Name, subcluster: Name },
    /// A fault group cannot be inside itself.
    #[error("Fault group \"{child}\" cannot be added to \"{group}\": it would contain itself")]
    FaultGroupCycle { group: Name, child: Name },

    /// A role cannot be granted to itself, directly or by way of others.
    #[error("Role \"{role}\" cannot be granted to role \"{grantee}\": it would be granted to itself")]
    RoleCycle { role: Name, grantee: Name },
    /// DEFAULT ROLE of a role that the user was not granted.
    #[error("Role \"{role}\" has not been granted to user \"{user}\"")]
    RoleNotGranted { role: Name, user: Name },
    /// GRANT role by somebody who is no superuser and has no ADMIN OPTION.
    #[error("User \"{grantor}\" may not grant role \"{role}\"")]
    MayNotGrant { grantor: Name, role: Name },
    /// REVOKE without CASCADE from somebody who granted it on.
    #[error("dependent privileges exist")]
    GrantedOn { role: Name, grantor: Name, grantees: Vec<Name> },
    /// There is one superuser.
    #[error("User \"{name}\" cannot be a superuser: \"{superuser}\" is the only one")]
    SecondSuperuser { name: Name, superuser: Name },
    /// The pair of user and node has a mapping. `None` is PUBLIC, and every node.
    #[error("user mapping for {} already exists{}", person(user.as_ref()), server(node.as_ref()))]
    MappingExists { user: Option<Name>, node: Option<Name> },
    /// The pair of user and node has no mapping. `None` is PUBLIC, and every node.
    #[error("user mapping for {} does not exist{}", person(user.as_ref()), server(node.as_ref()))]
    MappingMissing { user: Option<Name>, node: Option<Name> },

    /// E_BADIP: an address that clients could not use.
    #[error("Invalid IP address \"{host}\"")]
    BadAddress { host: String, fault: AddressFault },
    /// A number beyond its limits.
    #[error("Invalid value {value} for {what}")]
    OutOfRange { what: &'static str, value: u64, min: u64, max: u64 },
    /// A node exports on its own interfaces only.
    #[error("Network interface \"{interface}\" is not on node \"{node}\"")]
    OtherNode { interface: Name, node: Name },
    /// ALTER NODE REPLACE found no standby node that is free.
    #[error("No standby node is free to replace node \"{node}\"")]
    NoStandby { node: Name },
    /// ALTER NODE REPLACE WITH a node that is not a free standby node.
    #[error("Node \"{with}\" is not a free standby node")]
    NotStandby { with: Name },

    /// Replicas of a shard are on different workers (`reference/hologres.md` §1.2).
    #[error("replica_count ({replica_count}) exceeds the number of workers ({workers})")]
    TooFewWorkers { replica_count: u32, workers: u32 },
    /// The caps of `reference/hologres.md` §1.3. `count` is what the scope would have.
    #[error("too many shards in this instance")]
    TooManyShards { table_group: Name, scope: ShardCap, count: u64, cap: u64, workers: u32 },
    /// The default table group is dropped last.
    #[error("Table group \"{name}\" is the default table group")]
    DefaultTableGroup { name: Name },
}

impl CatalogError {
    /// What else the client should know, as sentences.
    pub fn detail(&self) -> Option<String> {
        Some(match self {
            Self::Exists { kind: ObjectKind::Workload, name } => {
                format!("Workload \"{name}\" has a routing rule, and a workload has only one.")
            }
            Self::Exists { kind, name } => {
                format!("There is {} \"{name}\"{}.", kind.with_article(), shared_names(*kind))
            }
            Self::Dependents { kind, name, .. } => {
                format!("Cannot drop {} {name} because other objects depend on it", kind.in_drop(*kind))
            }
            Self::RuleType { workload: true, .. } => "The rule routes by workload.".to_owned(),
            Self::RuleType { workload: false, .. } => "The rule routes by client network.".to_owned(),
            Self::GrantedOn { role, grantor, grantees } => {
                let grantees: Vec<String> = grantees.iter().map(|name| format!("\"{name}\"")).collect();
                format!("User \"{grantor}\" granted role \"{role}\" to {}.", grantees.join(", "))
            }
            Self::BadAddress { fault, .. } => match fault {
                AddressFault::Empty => "The address is empty.",
                AddressFault::Loopback => {
                    "A loopback address leads back to the client, unless its node is on loopback."
                }
                AddressFault::Unspecified => "The unspecified address names no host.",
                AddressFault::Multicast => "A multicast address names no single host.",
                AddressFault::Broadcast => "The broadcast address names no single host.",
            }
            .to_owned(),
            Self::TooFewWorkers { .. } => "Two replicas of the same shard are never placed on one worker.".to_owned(),
            Self::TooManyShards { table_group, scope: ShardCap::TableGroup, count, cap, workers } => format!(
                "Table group \"{table_group}\" would have {count} shards; with {workers} workers a table group can have {cap}."
            ),
            Self::TooManyShards { table_group, scope: ShardCap::Cluster, count, cap, workers } => format!(
                "With table group \"{table_group}\" there would be {count} shards; with {workers} workers there can be {cap}."
            ),
            _ => return None,
        })
    }

    /// What the client could do, as sentences.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Missing { name, namesake: Some(kind), .. } => format!("There is {} \"{name}\".", kind.with_article()),
            Self::Missing { nearest: Some(nearest), .. } => format!("Did you mean \"{nearest}\"?"),
            Self::GroupKind { holds, .. } => {
                format!("Make another load balance group for them, or drop the {} from this one first.", holds.plural())
            }
            Self::NodeDuplicate { .. } => "A load balance group holds one address of each node.".to_owned(),
            Self::RuleType { workload: true, .. } => {
                "Its actions are SET WORKLOAD, SET SUBCLUSTER, ADD SUBCLUSTER, REMOVE SUBCLUSTER, SET PRIORITY and RENAME."
                    .to_owned()
            }
            Self::RuleType { workload: false, .. } => "Its actions are SET ROUTE, SET GROUP and RENAME.".to_owned(),
            Self::RoleNotGranted { role, user } => format!("Grant it first: GRANT {role} TO {user}."),
            Self::AlreadyMember { kind, name, holder_kind: ObjectKind::FaultGroup, holder } => {
                let words = kind.words().to_uppercase();
                format!("Take it out of there first: ALTER FAULT GROUP {holder} DROP {words} {name}.")
            }
            Self::MappingExists { .. } => "ALTER USER MAPPING changes it.".to_owned(),
            Self::MappingMissing { .. } => "switchyard.user_mappings lists those that there are.".to_owned(),
            Self::Exists { kind: ObjectKind::Workload, .. } => {
                "Change it with ALTER ROUTING RULE FOR WORKLOAD, or drop it first.".to_owned()
            }
            // DROP FAULT GROUP has no CASCADE.
            Self::Dependents { kind: ObjectKind::FaultGroup, .. } => {
                "Take the fault group and its children out of these load balance groups first: ALTER LOAD BALANCE GROUP \
                 ... DROP FAULT GROUP."
                    .to_owned()
            }
            Self::OutOfRange { min, max, .. } => format!("It must lie between {min} and {max}."),
            Self::FilterForbidden { .. } => {
                "SET FILTER TO is for groups of fault groups or subclusters; addresses are members by name.".to_owned()
            }
            Self::Dependents { .. } => "Use DROP ... CASCADE to drop the dependent objects too".to_owned(),
            Self::FilterMissing { group } => {
                format!("Set one first: ALTER LOAD BALANCE GROUP {group} SET FILTER TO '<network>'.")
            }
            Self::GrantedOn { .. } => "Use CASCADE to revoke them too.".to_owned(),
            Self::LastSubcluster { .. } => "Add another subcluster first, or drop the routing rule.".to_owned(),
            Self::LastPrimary { .. } => "Make another subcluster primary first.".to_owned(),
            Self::Protected { kind: ObjectKind::Subcluster, .. } => {
                "Make another subcluster the default first: ALTER SUBCLUSTER ... SET DEFAULT.".to_owned()
            }
            Self::DefaultSubclusterNode { .. } => {
                "Add it to another subcluster instead: ALTER SUBCLUSTER ... ADD NODE.".to_owned()
            }
            Self::NoStandby { .. } | Self::NotStandby { .. } => "ALTER NODE ... STANDBY makes one.".to_owned(),
            Self::TooFewWorkers { .. } => {
                "A worker is a node with a PostgreSQL server that is not draining.".to_owned()
            }
            Self::TooManyShards { .. } => "SET hg_experimental_enable_shard_count_cap = off lifts the caps.".to_owned(),
            Self::DefaultTableGroup { .. } => {
                "Make another one the default first: CALL hg_update_database_property('default_table_group', ...)."
                    .to_owned()
            }
            _ => return None,
        })
    }

    /// The notices that come before the error: one for each dependent object, and one that counts those beyond
    /// [`DEPENDENCY_NOTICES_MAX`].
    pub fn dependency_notices(&self) -> Vec<String> {
        let Self::Dependents { kind, name, dependents } = self else { return Vec::new() };
        let shown = dependents.iter().take(DEPENDENCY_NOTICES_MAX);
        let mut notices: Vec<String> = shown
            .map(|(by, dependent)| {
                format!("The {} {dependent} depends on {} {name}", by.in_drop(*kind), kind.in_drop(*kind))
            })
            .collect();
        let more = dependents.len().saturating_sub(DEPENDENCY_NOTICES_MAX);
        if more > 0 {
            notices.push(format!("{more} more objects depend on {} {name}", kind.in_drop(*kind)));
        }
        notices
    }
}

/// How many dependent objects an error names.
pub const DEPENDENCY_NOTICES_MAX: usize = 100;

/// With whom objects of this kind share their names.
fn shared_names(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::NetworkAddress | ObjectKind::NetworkInterface => {
            "; network addresses and network interfaces share their names"
        }
        ObjectKind::RoutingRule => "; routing rules of both types share their names",
        ObjectKind::User | ObjectKind::Role => "; users and roles share their names",
        _ => "",
    }
}

/// A user as PostgreSQL's messages about user mappings name one.
fn person(user: Option<&Name>) -> String {
    format!("\"{}\"", user.map_or(PUBLIC_ROLE, Name::as_str))
}

/// A node as PostgreSQL's messages about user mappings name a server; nothing for every node.
fn server(node: Option<&Name>) -> String {
    node.map_or_else(String::new, |node| format!(" for server \"{node}\""))
}
