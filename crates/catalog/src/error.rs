//! What can be wrong with a change. Each variant carries facts; SQLSTATE and final text are chosen where a client is told.

use std::fmt;

use thiserror::Error;

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

    /// As Vertica's dependency messages name it: network addresses and interfaces are one class there.
    pub fn class(self) -> &'static str {
        match self {
            Self::Node => "Node",
            Self::Subcluster => "Subcluster",
            Self::FaultGroup => "FaultGroup",
            Self::NetworkAddress | Self::NetworkInterface => "NetworkInterface",
            Self::Subnet => "Subnet",
            Self::LoadBalanceGroup => "LoadBalanceGroup",
            Self::RoutingRule | Self::Workload => "RoutingRule",
            Self::User => "User",
            Self::Role | Self::Grantee => "Role",
            Self::Authentication => "Authentication",
            Self::UserMapping => "UserMapping",
            Self::TableGroup => "TableGroup",
            Self::Database => "Database",
        }
    }
}

impl fmt::Display for ObjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

/// Why a change was refused. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CatalogError {
    /// E_DUP.
    #[error("{kind} \"{name}\" already exists")]
    Exists { kind: ObjectKind, name: Name },
    /// E_NOOBJ.
    #[error("{kind} \"{name}\" does not exist")]
    Missing { kind: ObjectKind, name: Name, nearest: Option<Name> },
}
