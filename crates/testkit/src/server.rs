//! A server process of the test's own.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use tempfile::TempDir;

use crate::client::{Client, Login};
use crate::etcd::Etcd;
use crate::network::Network;

/// How long a line of the log may take.
const LOG_WAIT_MAX: Duration = Duration::from_secs(30);

const LOG_POLL_EVERY: Duration = Duration::from_millis(10);

/// The superuser a first start creates.
pub const ADMIN: &str = "dbadmin";
/// The password the tests give it.
pub const ADMIN_PASSWORD: &str = "a password for tests";
/// The console's database.
pub const DATABASE: &str = "switchyard";
/// The name the tests give the member.
pub const NODE: &str = "node01";

const READY_WITHIN: Duration = Duration::from_secs(60);
const EXIT_WITHIN: Duration = Duration::from_secs(30);
const POLL_EVERY: Duration = Duration::from_millis(2);

/// Where the catalog of a server is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Store {
    /// In memory, gone with the process.
    Memory,
    /// In one file, durable.
    Redb,
    /// In etcd, for several servers.
    Etcd,
}

impl Store {
    /// As `--store` takes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Redb => "redb",
            Self::Etcd => "etcd",
        }
    }
}

/// How to start a server.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    binary: PathBuf,
    store: Store,
    password: Option<String>,
    parent: Option<PathBuf>,
    quickstart: bool,
    node: String,
    /// The namespace to run in, and the address there.
    host: Option<String>,
    address: Ipv4Addr,
    port: u16,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
}

impl ServerOptions {
    /// Starts this binary, with a durable store and the tests' password.
    pub fn new(binary: impl Into<PathBuf>) -> Self {
        Self {
            binary: binary.into(),
            store: Store::Redb,
            password: Some(ADMIN_PASSWORD.to_owned()),
            parent: None,
            quickstart: false,
            node: NODE.to_owned(),
            host: None,
            address: Ipv4Addr::LOCALHOST,
            port: 0,
            arguments: Vec::new(),
            variables: Vec::new(),
        }
    }

    /// As the cluster of three members that `quickstart` runs.
    #[must_use]
    pub fn quickstart(mut self) -> Self {
        self.quickstart = true;
        self
    }

    /// With this store.
    #[must_use]
    pub fn store(mut self, store: Store) -> Self {
        self.store = store;
        self
    }

    /// As a member of the cluster that this etcd has, with this name.
    #[must_use]
    pub fn member(self, etcd: &Etcd, node: &str) -> Self {
        self.member_at(&etcd.url(), node)
    }

    /// The same, with these endpoints.
    #[must_use]
    pub fn member_at(mut self, endpoints: &str, node: &str) -> Self {
        self.store = Store::Etcd;
        node.clone_into(&mut self.node);
        self.argument("--etcd").argument(endpoints)
    }

    /// On a host of a network.
    #[must_use]
    pub fn at(mut self, network: &Network, host: u8) -> Self {
        self.host = Some(network.host(host));
        self.address = network.address(host);
        self
    }

    /// On this port, and not on a free one.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Without a password in the environment, so that a first start makes one.
    #[must_use]
    pub fn no_password(mut self) -> Self {
        self.password = None;
        self
    }

    /// With its files below this folder, where a measurement needs a certain file system.
    #[must_use]
    pub fn below(mut self, folder: impl Into<PathBuf>) -> Self {
        self.parent = Some(folder.into());
        self
    }

    /// With one more argument.
    #[must_use]
    pub fn argument(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// With one more variable.
    #[must_use]
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Starts the server and waits until it is ready.
    pub fn start(self) -> Result<Server> {
        Server::start(self)
    }
}

/// A running server. Dropping it ends the process and removes its files.
#[derive(Debug)]
pub struct Server {
    options: ServerOptions,
    folder: TempDir,
    process: Option<Child>,
    ports: Vec<u16>,
    ready_after: Duration,
    errors_announced: Vec<String>,
}

impl Server {
    fn start(options: ServerOptions) -> Result<Self> {
        let parent = options.parent.clone().unwrap_or_else(std::env::temp_dir);
        let folder = tempfile::Builder::new().prefix("switchyard-test-").tempdir_in(parent)?;
        let mut server = Self {
            options,
            folder,
            process: None,
            ports: vec![],
            ready_after: Duration::ZERO,
            errors_announced: vec![],
        };
        server.launch()?;
        Ok(server)
    }

    /// The port it listens on; the first one's, of several members.
    pub fn port(&self) -> u16 {
        self.ports.first().copied().unwrap_or_default()
    }

    /// The ports of all members.
    pub fn ports(&self) -> &[u16] {
        &self.ports
    }

    /// How long the last start took until the ready line.
    pub fn ready_after(&self) -> Duration {
        self.ready_after
    }

    /// The process's id, while it runs.
    pub fn process_id(&self) -> Option<u32> {
        self.process.as_ref().map(Child::id)
    }

    /// Its data directory.
    pub fn data_directory(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Waits until the log holds this text: it is written by another thread than the one that answers a client.
    ///
    /// # Errors
    /// When it has not come after half a minute, or the log cannot be read.
    pub fn wait_for_log(&self, text: &str) -> Result<()> {
        let deadline = Instant::now() + LOG_WAIT_MAX;
        while !self.log()?.contains(text) {
            ensure!(Instant::now() < deadline, "the log does not say \"{text}\"");
            std::thread::sleep(LOG_POLL_EVERY);
        }
        Ok(())
    }

    /// All it logged, over all its starts.
    pub fn log(&self) -> Result<String> {
        std::fs::read_to_string(self.log_path()).context("the log cannot be read")
    }

    /// A line of level ERROR that contains this text is meant by the test.
    pub fn expect_error(&mut self, text: &str) {
        self.errors_announced.push(text.to_owned());
    }

    /// The superuser's login.
    pub fn login(&self) -> Login {
        Login::new(self.port(), ADMIN, ADMIN_PASSWORD).to(self.options.address)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        (self.options.address, self.port()).into()
    }

    /// A session of the superuser.
    pub fn admin(&self) -> Result<Client> {
        Client::connect(&self.login())
    }

    /// A session of somebody else.
    pub fn client(&self, user: &str, password: &str) -> Result<Client> {
        Client::connect(&Login::new(self.port(), user, password).to(self.options.address))
    }

    /// What `tokio_postgres` needs to connect as the superuser.
    pub fn configuration(&self) -> tokio_postgres::Config {
        self.configuration_at(self.port())
    }

    /// The same for another port.
    pub fn configuration_at(&self, port: u16) -> tokio_postgres::Config {
        let mut configuration = tokio_postgres::Config::new();
        configuration.host("127.0.0.1").port(port).user(ADMIN).password(ADMIN_PASSWORD).dbname(DATABASE);
        configuration
    }

    /// Ends the process at once, as a crash would.
    pub fn kill(&mut self) -> Result<()> {
        let mut process = self.process.take().context("the server does not run")?;
        process.kill()?;
        process.wait()?;
        Ok(())
    }

    /// Stops the process without ending it.
    pub fn freeze(&self) -> Result<()> {
        self.signal(rustix::process::Signal::STOP)?;
        let tasks = format!("/proc/{}/task", self.process_id().context("the server does not run")?);
        let deadline = Instant::now() + EXIT_WITHIN;
        // The signal is sent, and some threads may still run.
        while !all_stopped(Path::new(&tasks))? {
            ensure!(Instant::now() < deadline, "the server does not stop");
        }
        Ok(())
    }

    /// Lets it go on.
    pub fn thaw(&self) -> Result<()> {
        self.signal(rustix::process::Signal::CONT)
    }

    fn signal(&self, signal: rustix::process::Signal) -> Result<()> {
        let process = self.process.as_ref().context("the server does not run")?;
        Ok(rustix::process::kill_process(rustix::process::Pid::from_child(process), signal)?)
    }

    /// Starts it again on the same data.
    pub fn restart(&mut self) -> Result<()> {
        ensure!(self.process.is_none(), "the server still runs");
        self.launch()
    }

    /// Sends SIGTERM and waits; gives the exit code.
    pub fn terminate(&mut self) -> Result<i32> {
        let mut process = self.process.take().context("the server does not run")?;
        let ended =
            rustix::process::kill_process(rustix::process::Pid::from_child(&process), rustix::process::Signal::TERM)
                .context("cannot signal the server")
                .and_then(|()| wait_for_exit(&mut process));
        match ended {
            Ok(code) => Ok(code),
            Err(error) => {
                process.kill()?;
                process.wait()?;
                Err(error.context(self.log_tail()))
            }
        }
    }

    /// Waits until the process has ended by itself; gives the exit code.
    pub fn wait_for_end(&mut self) -> Result<i32> {
        let mut process = self.process.take().context("the server does not run")?;
        wait_for_exit(&mut process).inspect_err(|_| {
            // The test has failed, and the process must not outlive it.
            let _dead = process.kill().and_then(|()| process.wait());
        })
    }

    /// Ends the server in good order; an exit code, an error in the log or a panic that nobody announced fails.
    pub fn finish(mut self) -> Result<()> {
        let code = self.terminate()?;
        ensure!(code == 0, "the server ended with exit code {code} after SIGTERM\n{}", self.log_tail());
        self.check_log()
    }

    /// Fails when the log has an error nobody announced.
    pub fn check_log(&self) -> Result<()> {
        let log = self.log()?;
        let unannounced: Vec<&str> = log
            .lines()
            .filter(|line| is_error(line) && !self.errors_announced.iter().any(|text| line.contains(text.as_str())))
            .collect();
        ensure!(unannounced.is_empty(), "the server logged errors:\n{}", unannounced.join("\n"));
        Ok(())
    }

    /// Its resident memory now, in KiB.
    pub fn resident_kib(&self) -> Result<u64> {
        let id = self.process_id().context("the server does not run")?;
        let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        Ok(line.trim().trim_end_matches(" kB").parse()?)
    }

    /// Runs the binary's other commands (`dump`, `check`) on this server's data.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.options.binary);
        command.args(arguments).current_dir(self.folder.path()).stdin(Stdio::null());
        clean_environment(&mut command);
        command
    }

    fn launch(&mut self) -> Result<()> {
        let started = Instant::now();
        let log = File::options().create(true).append(true).open(self.log_path())?;
        let mut command = match &self.options.host {
            Some(host) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", host]).arg(&self.options.binary);
                command
            }
            None => Command::new(&self.options.binary),
        };
        clean_environment(&mut command);
        let listen = format!("{}:{}", self.options.address, self.options.port);
        let (arguments, members): (&[&str], _) = if self.options.quickstart {
            (&["quickstart", "--port", "0"], 3)
        } else {
            (&["serve", "--listen", &listen, "--node", self.options.node.as_str()], 1)
        };
        command
            .args(arguments)
            .args(["--store", self.options.store.name(), "--data-dir"])
            .arg(self.data_directory())
            .args(&self.options.arguments)
            .envs(self.options.variables.iter().map(|(name, value)| (name, value)))
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log);
        if let Some(password) = &self.options.password {
            command.env("SWITCHYARD_PASSWORD", password);
        }
        let mut process = command.spawn().with_context(|| format!("cannot start {}", self.options.binary.display()))?;
        let lines = process.stdout.take().map(read_lines).context("the server has no standard output")?;
        self.process = Some(process);
        match wait_until_ready(&lines, members, started + READY_WITHIN) {
            Ok(ports) => {
                self.ports = ports;
                self.ready_after = started.elapsed();
                Ok(())
            }
            Err(error) => {
                let _dead = self.kill();
                Err(error.context(self.log_tail()))
            }
        }
    }

    fn log_path(&self) -> PathBuf {
        self.folder.path().join("server.log")
    }

    fn log_tail(&self) -> String {
        let log = self.log().unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let from = lines.len().saturating_sub(40);
        format!("the server's log ends:\n{}", lines.get(from..).unwrap_or_default().join("\n"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.process.is_some() {
            // A test that failed before it finished: the process must not outlive it.
            let _dead = self.kill();
        }
    }
}

fn all_stopped(tasks: &Path) -> Result<bool> {
    for task in std::fs::read_dir(tasks)? {
        // A thread may end meanwhile.
        let status = std::fs::read_to_string(task?.path().join("status")).unwrap_or_default();
        let state = status.lines().find_map(|line| line.strip_prefix("State:"));
        if state.is_some_and(|state| !state.trim_start().starts_with('T')) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Settings of whoever runs the tests must not reach the server.
fn clean_environment(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("SWITCHYARD_") {
            command.env_remove(name);
        }
    }
}

fn is_error(line: &str) -> bool {
    line.contains(" ERROR ") || line.contains("\"level\":\"ERROR\"") || line.contains("panicked at")
}

fn wait_for_exit(process: &mut Child) -> Result<i32> {
    let deadline = Instant::now() + EXIT_WITHIN;
    while Instant::now() < deadline {
        if let Some(status) = process.try_wait()? {
            return status.code().ok_or_else(|| anyhow!("the server was ended by a signal: {status}"));
        }
        std::thread::sleep(POLL_EVERY);
    }
    bail!("the server still runs {EXIT_WITHIN:?} after SIGTERM")
}

/// Reads on for ever, so that the server never waits for somebody to read what it prints.
fn read_lines(output: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(std::io::Result::ok) {
            let _nobody_listens_any_more = sender.send(line);
        }
    });
    receiver
}

fn wait_until_ready(lines: &Receiver<String>, members: usize, deadline: Instant) -> Result<Vec<u16>> {
    let mut ports = Vec::new();
    while ports.len() < members {
        let left = deadline.saturating_duration_since(Instant::now());
        let line = lines.recv_timeout(left).map_err(|error| match error {
            mpsc::RecvTimeoutError::Timeout => anyhow!("the server was not ready within {READY_WITHIN:?}"),
            mpsc::RecvTimeoutError::Disconnected => anyhow!("the server ended before it was ready"),
        })?;
        if let Some(address) = line.strip_prefix("listening on ") {
            let (_, port) = address.rsplit_once(':').with_context(|| format!("no port in {line:?}"))?;
            ports.push(port.trim().parse().with_context(|| format!("no port in {line:?}"))?);
        }
    }
    Ok(ports)
}

/// The server's binary beside the program that runs, for programs cargo does not tell.
pub fn binary_beside(program: &Path) -> Result<PathBuf> {
    program
        .ancestors()
        .map(|folder| folder.join("switchyard"))
        .find(|path| path.is_file())
        .context("the switchyard binary is not there: build it with cargo build -p switchyard-server")
}
