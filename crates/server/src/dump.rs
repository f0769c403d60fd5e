//! `switchyard dump`.

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use anyhow::{Context, bail};
use switchyard_catalog::Catalog;

use crate::settings::{Settings, StoreKind};
use crate::{FAILURE, MISUSE, complain, storage};

/// Prints the catalog as SQL.
pub(crate) fn dump(settings: &Settings) -> ExitCode {
    if settings.store == StoreKind::Memory {
        complain("a memory store ends with its process: there is nothing to dump");
        return MISUSE.into();
    }
    match print(settings) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("{error:#}"));
            FAILURE.into()
        }
    }
}

fn print(settings: &Settings) -> anyhow::Result<()> {
    let path = storage::file(settings);
    // Opening would make one.
    if settings.store == StoreKind::Redb && !path.exists() {
        bail!("there is no store at {}", path.display());
    }
    let place = match settings.store {
        StoreKind::Redb => path.display().to_string(),
        _ => format!("in etcd under {}", settings.etcd_prefix.0),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let loaded = runtime.block_on(async { anyhow::Ok(storage::open(settings).await?.store.load().await?) })?;
    let loaded = loaded.with_context(|| format!("the store {place} is empty"))?;
    let catalog = Catalog::from_entities(loaded.version, loaded.id_next, loaded.entities)
        .with_context(|| format!("the store {place} is damaged: it has no database"))?;
    let mut output = BufWriter::new(io::stdout().lock());
    let written = output.write_all(switchyard_console::dump(&catalog).as_bytes()).and_then(|()| output.flush());
    written.context("cannot write to standard output")
}
