//! node-postgres, the driver of JavaScript's servers.

use std::path::Path;

use libtest_mimic::Trial;
use switchyard_testkit::Server;

use crate::client::{beside, made, succeeds};

pub fn trials() -> Vec<Trial> {
    vec![crate::with_server("node_postgres", node_postgres)]
}

fn node_postgres(server: &Server) -> anyhow::Result<()> {
    let modules = made("SWITCHYARD_TEST_NODE_MODULES", "node/node_modules");
    succeeds(server, Path::new("node"), |node| {
        node.arg("--test").arg(beside("node_postgres_test.js")).env("NODE_PATH", &modules);
    })
}
