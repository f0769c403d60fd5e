//! What the fleet is and where a connection or a query goes.
//!
//! Everything here is pure: no I/O, no clock, no async, no SQL. A [`Catalog`] is an immutable, versioned value;
//! [`Catalog::apply`] turns it and a list of [`Change`]s into the next one, or says what is wrong and changes nothing.

mod apply;
mod authentication;
mod catalog;
mod change;
mod entity;
mod error;
mod id;
mod identity;
mod index;
mod initial;
mod name;
mod placement;
mod roles;
mod routing;
mod secret;

pub use apply::{Applied, Notice, SHARDS_PER_GROUP_MAX, default_shard_count};
pub use authentication::{AuthenticationClient, AuthenticationDecision, AuthenticationReason};
pub use catalog::{Catalog, Delta, Entities, Entity, Named, merge_deltas};
pub use change::{
    AddressChange, AuthenticationChange, Change, FaultGroupChange, GroupChange, GroupSource, InterfaceChange,
    MappingChange, NodeChange, RuleChange, RuleTarget, SettingTarget, SubclusterChange, TableGroupProperty, UserChange,
};
pub use entity::*;
pub use error::{AddressFault, CatalogError, DEPENDENCY_NOTICES_MAX, ObjectKind, ShardCap};
pub use id::*;
pub use identity::{IDENTITY_MAP, IdentityMap, IdentityMapError};
pub use initial::{FIRST_SUBCLUSTER, PREDEFINED_ROLES, PUBLIC_ROLE, SUPERUSER_ROLES};
pub use name::{Name, NameError};
pub use placement::place;
pub use routing::{
    Candidate, Decision, Delivery, Family, Lint, NodeState, NodeStates, Observed, Outcome, RoutingClient, RoutingView,
    RuleCounters, RuleVerdict, RulesConsidered, Skip, Stage, StageTrace, StayReason, Target, Trace, Turn, Turns,
};
pub use secret::Secret;
