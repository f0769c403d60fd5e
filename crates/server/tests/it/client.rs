//! Programs that are clients of the server.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use switchyard_testkit::{ADMIN, ADMIN_PASSWORD, DATABASE, Server, repository_root};

/// A file beside this one.
pub fn beside(name: &str) -> PathBuf {
    repository_root().join("crates/server/tests/it").join(name)
}

/// What `scripts/test` made, named by a variable when it is elsewhere than in `target`.
pub fn made(variable: &str, usual: &str) -> PathBuf {
    match std::env::var_os(variable) {
        Some(path) => path.into(),
        None => repository_root().join("target").join(usual),
    }
}

/// Runs a program, which finds the server as the superuser by the variables of libpq; it must succeed.
pub fn succeeds(server: &Server, program: &Path, configure: impl FnOnce(&mut Command)) -> anyhow::Result<()> {
    let mut command = Command::new(program);
    configure(&mut command);
    let output = command
        .env("PGHOST", "127.0.0.1")
        .env("PGPORT", server.port().to_string())
        .env("PGUSER", ADMIN)
        .env("PGPASSWORD", ADMIN_PASSWORD)
        .env("PGDATABASE", DATABASE)
        .output()
        .with_context(|| format!("{} cannot be started; scripts/test installs it", program.display()))?;
    let (said, complained) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "{said}{complained}");
    Ok(())
}
