//! How long a fresh clone takes to its first answer, by the README's one command.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use switchyard_testkit::{ADMIN, Client, Login, repository_root};

use super::Figure;

const MINUTES_MAX: f64 = 10.0;
const GIVE_UP_AFTER: Duration = Duration::from_secs(3_600);
const POLL_EVERY: Duration = Duration::from_millis(200);

/// Clones what is committed, runs `scripts/start` in it, and waits until a query is answered.
pub fn measure() -> Result<Vec<Figure>> {
    let folder = tempfile::Builder::new().prefix("switchyard-clone-").tempdir_in(repository_root().join("target"))?;
    let clone = folder.path().join("switchyard");
    let started = Instant::now();
    let status = Command::new("git").arg("clone").arg("--quiet").arg(repository_root()).arg(&clone).status()?;
    ensure!(status.success(), "git clone failed");
    let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
    let mut server = Command::new(clone.join("scripts/start"))
        .env("SWITCHYARD_PORT", port.to_string())
        .env_remove("CARGO_TARGET_DIR")
        .stdin(Stdio::null())
        .spawn()
        .context("scripts/start cannot be started")?;
    let answered = wait_for_an_answer(&mut server, &clone.join("switchyard-quickstart/dbadmin.password"), port);
    // The script has become the server, so this ends no build.
    server.kill()?;
    server.wait()?;
    answered?;
    let minutes = started.elapsed().as_secs_f64() / 60.0;
    Ok(vec![Figure::at_most("fresh clone to the first answer", minutes, MINUTES_MAX, "min")])
}

fn wait_for_an_answer(server: &mut Child, password: &Path, port: u16) -> Result<()> {
    let deadline = Instant::now() + GIVE_UP_AFTER;
    while Instant::now() < deadline {
        if let Some(status) = server.try_wait()? {
            bail!("scripts/start ended: {status}");
        }
        let answer = std::fs::read_to_string(password)
            .map_err(anyhow::Error::from)
            .and_then(|password| Client::connect(&Login::new(port, ADMIN, password.trim())));
        if let Ok(mut client) = answer {
            return client.query("SELECT 1").map(drop);
        }
        std::thread::sleep(POLL_EVERY);
    }
    bail!("no answer after {GIVE_UP_AFTER:?}")
}
