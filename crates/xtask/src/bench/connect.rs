//! Logging in with a password, against PostgreSQL in the same run.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;
use switchyard_testkit::{Client, Login, Postgres};

use super::{Figure, commit, median, options};

const RUNS: usize = 200;
const RATIO_MAX: f64 = 1.0;
const PASSWORD: &str = "a password for both";

/// From the first byte to the first ReadyForQuery, with SCRAM-SHA-256 of 4096 iterations on both sides.
pub fn measure(binary: &PathBuf) -> Result<Vec<Figure>> {
    let server = options(binary)?.start()?;
    commit(&mut server.admin()?, &format!("CREATE USER bench IDENTIFIED BY '{PASSWORD}'"))?;
    let postgres = Postgres::start()?;
    let mut admin = postgres.client()?;
    for statement in [
        &format!("CREATE USER bench PASSWORD '{PASSWORD}'"),
        "CREATE TABLE hba (line text)",
        "INSERT INTO hba VALUES ('host all bench 127.0.0.1/32 scram-sha-256'), ('host all all 127.0.0.1/32 trust')",
    ] {
        admin.query(statement)?;
    }
    let file = admin.query("SHOW hba_file")?.into_iter().flatten().flatten().next().unwrap_or_default();
    admin.query(&format!("COPY hba TO '{file}'"))?;
    admin.query("SELECT pg_reload_conf()")?;
    // The new file counts from the first login on that is refused without a password.
    let wrong = postgres.login("bench", "wrong");
    while Client::connect(&wrong).is_ok() {}
    let ours = time(&Login::new(server.port(), "bench", PASSWORD))?;
    let theirs = time(&postgres.login("bench", PASSWORD))?;
    server.finish()?;
    let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
    Ok(vec![
        Figure::plain("a login with SCRAM", format!("{:.2} ms", ours.as_secs_f64() * 1_000.0)),
        Figure::at_most("the same against PostgreSQL", ratio, RATIO_MAX, "times"),
    ])
}

fn time(login: &Login) -> Result<Duration> {
    let mut times = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        let started = Instant::now();
        let client = Client::connect(login)?;
        times.push(started.elapsed());
        client.close()?;
    }
    Ok(median(times))
}
