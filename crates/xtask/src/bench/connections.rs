//! What idle sessions weigh.

use std::net::TcpStream;
use std::path::PathBuf;

use anyhow::Result;
use switchyard_testkit::{Login, raise_open_files};

use super::{Figure, commit, options};

const CLIENTS: u32 = 10_000;
const CLIENT_KIB_MAX: f64 = 16.0;
/// So many ask first: what all sessions share is not counted.
const CLIENTS_BEFORE: usize = 20;

/// 10,000 clients, each idle after one query. Trusted, since what a proof costs is measured elsewhere.
pub fn measure(binary: &PathBuf) -> Result<Vec<Figure>> {
    raise_open_files()?;
    let server = options(binary)?.argument("--connections-max").argument("20000").start()?;
    let mut admin = server.admin()?;
    for statement in [
        "CREATE USER idler",
        "CREATE AUTHENTICATION trusted METHOD 'trust' HOST '127.0.0.0/8'",
        "ALTER AUTHENTICATION trusted PRIORITY 10",
        "GRANT AUTHENTICATION trusted TO idler",
    ] {
        commit(&mut admin, statement)?;
    }
    let login = Login::new(server.port(), "idler", "");
    let ask = || -> Result<TcpStream> {
        let mut client = switchyard_testkit::Client::connect(&login)?;
        client.query("SELECT * FROM nodes")?;
        Ok(client.into_stream())
    };
    let _first = (0..CLIENTS_BEFORE).map(|_| ask()).collect::<Result<Vec<_>>>()?;
    let before = server.resident_kib()?;
    let held = (0..CLIENTS).map(|_| ask()).collect::<Result<Vec<_>>>()?;
    let after = server.resident_kib()?;
    let each = after.saturating_sub(before) as f64 / f64::from(CLIENTS);
    drop(held);
    server.finish()?;
    Ok(vec![Figure::at_most("an idle connection of 10,000, after one query", each, CLIENT_KIB_MAX, "KiB")])
}
