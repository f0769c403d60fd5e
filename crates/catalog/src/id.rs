//! Typed ids. All objects draw from one sequence, so that a smaller id is an older object.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The id of the first object of a new catalog; Vertica's OIDs look like this.
pub const ID_FIRST: u64 = 45_035_996_273_704_962;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// The id as the 64-bit integer that system tables show.
            pub fn as_i64(self) -> i64 {
                i64::try_from(self.0).unwrap_or(i64::MAX)
            }
        }

        impl From<u64> for $name {
            fn from(raw: u64) -> Self {
                Self(raw)
            }
        }

        impl From<$name> for u64 {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

ids! {
    /// A node.
    NodeId,
    /// A subcluster.
    SubclusterId,
    /// A fault group.
    FaultGroupId,
    /// A network address.
    NetworkAddressId,
    /// A network interface.
    NetworkInterfaceId,
    /// A subnet.
    SubnetId,
    /// A load balance group.
    LoadBalanceGroupId,
    /// A routing rule by client network.
    RoutingRuleId,
    /// A routing rule by workload.
    WorkloadRuleId,
    /// A user.
    UserId,
    /// A role.
    RoleId,
    /// A role granted to a user or role.
    RoleGrantId,
    /// USAGE on a workload granted to a user or role.
    WorkloadGrantId,
    /// An authentication record.
    AuthenticationId,
    /// An authentication record granted to a user or role.
    AuthenticationGrantId,
    /// The login a user has on upstreams.
    UserMappingId,
    /// The value of a setting at one level.
    SettingId,
    /// A table group.
    TableGroupId,
    /// A shard of a table group.
    ShardId,
}
