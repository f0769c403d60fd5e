//! What the fleet is and where a connection or a query goes.
//!
//! Everything here is pure: no I/O, no clock, no async, no SQL. A [`Catalog`] is an immutable, versioned value;
//! [`Catalog::apply`] turns it and a list of [`Change`]s into the next one, or says what is wrong and changes nothing.

mod apply;
mod catalog;
mod change;
mod entity;
mod error;
mod id;
mod name;
mod placement;
mod roles;
mod secret;

pub use apply::{Applied, Notice};
pub use catalog::{Catalog, Delta, Entities, Entity, Named};
pub use change::{
    AddressChange, AuthenticationChange, Change, FaultGroupChange, GroupChange, GroupSource, InterfaceChange,
    MappingChange, NodeChange, RuleChange, RuleTarget, SettingTarget, SubclusterChange, TableGroupProperty, UserChange,
};
pub use entity::*;
pub use error::{CatalogError, ObjectKind};
pub use id::*;
pub use name::{Name, NameError};
pub use secret::Secret;
