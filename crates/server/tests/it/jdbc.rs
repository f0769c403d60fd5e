//! pgjdbc, the driver of Java's tools.

use std::path::Path;

use libtest_mimic::Trial;
use switchyard_testkit::Server;

use crate::client::{beside, succeeds};

/// Debian's; `scripts/test` installs it.
const DRIVER: &str = "/usr/share/java/postgresql.jar";

pub fn trials() -> Vec<Trial> {
    vec![
        crate::with_server("pgjdbc (extended)", |server| pgjdbc(server, "extended")),
        crate::with_server("pgjdbc (simple)", |server| pgjdbc(server, "simple")),
    ]
}

fn pgjdbc(server: &Server, mode: &str) -> anyhow::Result<()> {
    succeeds(server, Path::new("java"), |java| {
        java.args(["-XX:TieredStopAtLevel=1", "-cp", DRIVER]).arg(beside("Pgjdbc.java")).arg(mode);
    })
}
