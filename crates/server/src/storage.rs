//! Which store is opened, and where.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use switchyard_store::{EtcdLink, EtcdOptions, EtcdStore, EtcdTls, MemoryStore, OpenError, RedbStore, Store};

use crate::first_start;
use crate::settings::{Settings, StoreKind};

/// A store that is open.
pub(crate) struct Opened {
    /// The store.
    pub(crate) store: Arc<dyn Store>,
    /// The same, when several processes share it.
    pub(crate) etcd: Option<Arc<EtcdStore>>,
}

/// What whoever starts a second server in one directory can do.
const IN_USE: &str = "stop the other process, or choose another directory with --data-dir";

/// The embedded store's file.
pub(crate) fn file(settings: &Settings) -> PathBuf {
    settings.data_dir.join("catalog.redb")
}

/// Opens the store, making it when there is none.
///
/// # Errors
/// When it cannot be made, is in use by another process, or cannot be read.
pub(crate) async fn open(settings: &Settings) -> anyhow::Result<Opened> {
    match &settings.store {
        StoreKind::Memory => Ok(Opened { store: Arc::new(MemoryStore::new()), etcd: None }),
        StoreKind::Redb => {
            first_start::make_data_dir(&settings.data_dir)?;
            let opened = RedbStore::open(file(settings)).map_err(|error| match error {
                OpenError::Locked { .. } => anyhow::anyhow!("{error}: {IN_USE}"),
                other => other.into(),
            });
            Ok(Opened { store: Arc::new(opened?), etcd: None })
        }
        StoreKind::Etcd(_) => {
            let etcd = Arc::new(EtcdStore::open(EtcdLink::new(etcd_options(settings)?)?).await?);
            Ok(Opened { store: Arc::clone(&etcd) as Arc<dyn Store>, etcd: Some(etcd) })
        }
    }
}

/// How etcd is reached, with the files that are named for it.
///
/// # Errors
/// When one of them cannot be read.
pub(crate) fn etcd_options(settings: &Settings) -> anyhow::Result<EtcdOptions> {
    let read = |path: &Path| std::fs::read(path).with_context(|| format!("cannot read {}", path.display()));
    let Some(authority) = &settings.etcd_ca else { return Ok(settings.etcd_options(None)) };
    let client = settings.etcd_certificate.as_ref().zip(settings.etcd_key.as_ref());
    let client =
        client.map(|(certificate, key)| Ok::<_, anyhow::Error>((read(certificate)?, read(key)?))).transpose()?;
    Ok(settings.etcd_options(Some(EtcdTls { authority: read(authority)?, client, server_name: None })))
}
