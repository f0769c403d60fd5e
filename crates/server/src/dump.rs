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
    if !path.exists() {
        bail!("there is no store at {}", path.display());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let store = storage::open(settings)?;
    let loaded = runtime.block_on(store.load())?;
    let loaded = loaded.with_context(|| format!("the store {} is empty", path.display()))?;
    let catalog = Catalog::from_entities(loaded.version, loaded.id_next, loaded.entities)
        .with_context(|| format!("the store {} is damaged: it has no database", path.display()))?;
    let mut output = BufWriter::new(io::stdout().lock());
    let written = output.write_all(switchyard_console::dump(&catalog).as_bytes()).and_then(|()| output.flush());
    written.context("cannot write to standard output")
}
