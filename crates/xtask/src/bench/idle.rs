//! What a server weighs that does nothing.

use std::path::PathBuf;

use anyhow::Result;

use super::{Figure, options};

const RESIDENT_MIB_MAX: f64 = 60.0;

/// Right after the start, and after somebody has looked at it.
pub fn measure(binary: &PathBuf) -> Result<Vec<Figure>> {
    let server = options(binary)?.start()?;
    let mib = |kib: u64| kib as f64 / 1024.0;
    let fresh = mib(server.resident_kib()?);
    let mut client = server.admin()?;
    client.query("SELECT * FROM nodes")?;
    client.close()?;
    let used = mib(server.resident_kib()?);
    server.finish()?;
    Ok(vec![
        Figure::at_most("resident memory of an idle server", fresh, RESIDENT_MIB_MAX, "MiB"),
        Figure::plain("the same after one login and one query", format!("{used:.2} MiB")),
    ])
}
