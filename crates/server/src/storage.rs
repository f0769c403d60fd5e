//! Which store is opened, and where.

use std::path::PathBuf;
use std::sync::Arc;

use switchyard_store::{MemoryStore, RedbStore, Store};

use crate::first_start;
use crate::settings::{Settings, StoreKind};

/// The embedded store's file.
pub(crate) fn file(settings: &Settings) -> PathBuf {
    settings.data_dir.join("catalog.redb")
}

/// Opens the store, making it when there is none.
///
/// # Errors
/// When it cannot be made, is in use by another process, or cannot be read.
pub(crate) fn open(settings: &Settings) -> anyhow::Result<Arc<dyn Store>> {
    match settings.store {
        StoreKind::Memory => Ok(Arc::new(MemoryStore::new())),
        StoreKind::Redb => {
            first_start::make_data_dir(&settings.data_dir)?;
            Ok(Arc::new(RedbStore::open(file(settings))?))
        }
    }
}
