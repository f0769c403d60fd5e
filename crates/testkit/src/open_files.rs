//! How many files, sockets among them, a test may hold open.

use anyhow::Result;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Lets this process, and those it starts, open as many files as the system lets it.
pub fn raise_open_files() -> Result<()> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?)
}
