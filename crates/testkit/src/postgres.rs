//! A throw-away PostgreSQL, to compare answers with.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::client::{Client, Login};

/// The superuser of the cluster, who needs no password.
const SUPERUSER: &str = "postgres";

/// A cluster of its own, removed when it is dropped.
#[derive(Debug)]
pub struct Postgres {
    folder: tempfile::TempDir,
    programs: PathBuf,
    port: u16,
}

impl Postgres {
    /// Makes a cluster and starts it on a free port of loopback.
    pub fn start() -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("switchyard-postgres-").tempdir()?;
        let programs = programs()?;
        // Found free and left again: PostgreSQL cannot be told to choose.
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let server = Self { folder, programs, port };
        if is_root() {
            run(Command::new("chown").arg(SUPERUSER).arg(server.folder.path()))?;
        }
        let data = server.data();
        run(server
            .command("initdb")
            .args(["--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C", "--username", SUPERUSER, "--pgdata"])
            .arg(&data))?;
        server.run()?;
        Ok(server)
    }

    /// A standby of this one, that follows it.
    pub fn standby(&self) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("switchyard-postgres-").tempdir()?;
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let standby = Self { folder, programs: programs()?, port };
        if is_root() {
            run(Command::new("chown").arg(SUPERUSER).arg(standby.folder.path()))?;
        }
        let (data, primary) = (standby.data(), self.port.to_string());
        run(standby
            .command("pg_basebackup")
            .args(["--host=127.0.0.1", "--port", &primary, "--username", SUPERUSER, "--write-recovery-conf"])
            .args(["--checkpoint=fast", "--wal-method=stream", "--no-sync", "--pgdata"])
            .arg(&data))?;
        standby.run()?;
        Ok(standby)
    }

    /// All it logged.
    pub fn log(&self) -> Result<String> {
        std::fs::read_to_string(self.folder.path().join("log")).context("the log cannot be read")
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its URL, as a member is told.
    pub fn url(&self) -> String {
        format!("postgresql://127.0.0.1:{}", self.port)
    }

    /// Has these lines of `pg_hba.conf` come first from now on.
    pub fn authenticate(&self, lines: &str) -> Result<()> {
        let path = self.data().join("pg_hba.conf");
        let before = std::fs::read_to_string(&path)?;
        std::fs::write(&path, format!("{lines}\n{before}"))?;
        self.client()?.query("SELECT pg_reload_conf()")?;
        Ok(())
    }

    /// Ends every process of it at once, as a crash does.
    pub fn kill(&self) -> Result<()> {
        self.control("immediate", "stop")
    }

    /// Starts it again.
    pub fn run(&self) -> Result<()> {
        let options = self.options();
        run(self
            .command("pg_ctl")
            .args(["--wait", "--silent", "--options", &options, "--log"])
            .arg(self.folder.path().join("log"))
            .arg("--pgdata")
            .arg(self.data())
            .arg("start"))
    }

    fn control(&self, mode: &str, what: &str) -> Result<()> {
        let mode = format!("--mode={mode}");
        run(self.command("pg_ctl").args([mode.as_str(), "--silent", "--wait", "--pgdata"]).arg(self.data()).arg(what))
    }

    fn options(&self) -> String {
        let (port, sockets) = (self.port, self.folder.path().display());
        format!(
            "-p {port} -h 127.0.0.1 -k {sockets} -c fsync=off -c timezone=UTC -c max_connections=200 \
             -c shared_buffers=16MB"
        )
    }

    /// A session of the superuser.
    pub fn client(&self) -> Result<Client> {
        Client::connect(&self.login(SUPERUSER, ""))
    }

    /// Somebody's login.
    pub fn login(&self, user: &str, password: &str) -> Login {
        Login::new(self.port, user, password).database("postgres")
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// PostgreSQL's programs refuse to be run by root.
    fn command(&self, program: &str) -> Command {
        let program = self.programs.join(program);
        let mut command = if is_root() {
            let mut command = Command::new("setpriv");
            command.args(["--reuid", SUPERUSER, "--regid", SUPERUSER, "--init-groups"]).arg(program);
            command
        } else {
            Command::new(program)
        };
        command.env("LC_ALL", "C").current_dir(self.folder.path());
        command
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let data = self.data();
        let stopped =
            self.command("pg_ctl").args(["--mode=immediate", "--silent", "--pgdata"]).arg(data).arg("stop").status();
        if let Err(error) = stopped {
            eprintln!("PostgreSQL was not stopped: {error}");
        }
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn run(command: &mut Command) -> Result<()> {
    // The server inherits what pg_ctl has: a pipe would stay open as long as it runs.
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
    let status = status.with_context(|| format!("{command:?} cannot be started; scripts/test installs it"))?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}

/// Where initdb is: Debian keeps the programs of each version in a folder of its own.
fn programs() -> Result<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .filter(|folder| folder.join("initdb").exists())
        .collect();
    found.sort();
    let preferred = Path::new("/usr/lib/postgresql/15/bin").to_owned();
    if found.contains(&preferred) {
        return Ok(preferred);
    }
    found.pop().context("there is no initdb below /usr/lib/postgresql; scripts/test installs it")
}
