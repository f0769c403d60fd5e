//! etcd processes of the test's own.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::certificates::Authority;
use crate::network::Network;

const READY_WITHIN: Duration = Duration::from_secs(60);
const POLL_EVERY: Duration = Duration::from_millis(20);

/// How often it is started on other ports because somebody took one meanwhile.
const STARTS_MAX: usize = 5;

/// An etcd, with its data in memory where there is a file system for that. It ends when this is dropped.
#[derive(Debug)]
pub struct Etcd {
    folder: TempDir,
    name: String,
    /// The namespace that it runs in, and its address there.
    host: Option<String>,
    address: Ipv4Addr,
    secured: bool,
    port: u16,
    peer_port: u16,
    /// Where it says how it is, without TLS.
    watched_port: u16,
    /// All of its cluster, as etcd wants to know them.
    cluster: String,
    arguments: Vec<String>,
    process: Option<Child>,
}

impl Etcd {
    /// Starts one alone, and waits until it answers.
    ///
    /// # Errors
    /// When it is not installed, or does not answer.
    pub fn start() -> Result<Self> {
        Self::start_with(&[])
    }

    /// The same, with more arguments.
    ///
    /// # Errors
    /// When it is not installed, or does not answer.
    pub fn start_with(arguments: &[&str]) -> Result<Self> {
        Self::first_that_starts(|| {
            let mut etcd = Self::new("one", None, Ipv4Addr::LOCALHOST)?;
            etcd.arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
            Ok(etcd)
        })
    }

    /// One that speaks TLS alone, and only with whom this authority has signed.
    ///
    /// # Errors
    /// When it is not installed, or does not answer.
    pub fn start_secured(authority: &Authority) -> Result<Self> {
        authority.certify("etcd", "127.0.0.1")?;
        let file = |name: &str| authority.path(name).display().to_string();
        let arguments = [
            format!("--cert-file={}", file("etcd.crt")),
            format!("--key-file={}", file("etcd.key")),
            format!("--trusted-ca-file={}", file("ca.crt")),
            "--client-cert-auth".to_owned(),
        ];
        Self::first_that_starts(|| {
            let mut etcd = Self::new("one", None, Ipv4Addr::LOCALHOST)?;
            etcd.secured = true;
            etcd.arguments = arguments.to_vec();
            Ok(etcd)
        })
    }

    /// One on a host of a network.
    ///
    /// # Errors
    /// When it is not installed, or does not answer.
    pub fn start_at(network: &Network, host: u8) -> Result<Self> {
        let mut etcd = Self::new("one", Some(network.host(host)), network.address(host))?;
        etcd.run()?;
        Ok(etcd)
    }

    /// Three that are one cluster.
    ///
    /// # Errors
    /// When they are not installed, or do not answer.
    pub fn three() -> Result<[Self; 3]> {
        for _ in 0..STARTS_MAX {
            let mut all = [
                Self::new("one", None, Ipv4Addr::LOCALHOST)?,
                Self::new("two", None, Ipv4Addr::LOCALHOST)?,
                Self::new("three", None, Ipv4Addr::LOCALHOST)?,
            ];
            let cluster: Vec<String> = all.iter().map(|etcd| etcd.cluster.clone()).collect();
            for etcd in &mut all {
                etcd.cluster = cluster.join(",");
            }
            // None answers before there is another.
            if all.iter_mut().try_for_each(Self::spawn).and_then(|()| all.iter_mut().try_for_each(Self::wait)).is_ok() {
                return Ok(all);
            }
        }
        bail!("three etcds do not start")
    }

    fn first_that_starts(make: impl Fn() -> Result<Self>) -> Result<Self> {
        for _ in 0..STARTS_MAX {
            let mut etcd = make()?;
            if etcd.run().is_ok() {
                return Ok(etcd);
            }
        }
        bail!("etcd does not start")
    }

    fn new(name: &str, host: Option<String>, address: Ipv4Addr) -> Result<Self> {
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { tempfile::tempdir_in(memory)? } else { tempfile::tempdir()? };
        let (port, peer_port, watched_port) = (free_port()?, free_port()?, free_port()?);
        Ok(Self {
            folder,
            name: name.to_owned(),
            host,
            address,
            secured: false,
            port,
            peer_port,
            watched_port,
            cluster: format!("{name}=http://{address}:{peer_port}"),
            arguments: Vec::new(),
            process: None,
        })
    }

    /// Its endpoint.
    pub fn url(&self) -> String {
        format!("{}://{}:{}", if self.secured { "https" } else { "http" }, self.address, self.port)
    }

    /// Runs it, with the data it has.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn run(&mut self) -> Result<()> {
        self.spawn()?;
        self.wait()
    }

    /// Runs it, and does not wait for it: alone, it answers only when another of its cluster runs.
    ///
    /// # Errors
    /// When it is not installed, or runs.
    pub fn spawn(&mut self) -> Result<()> {
        ensure!(self.process.is_none(), "etcd still runs");
        let (client, peer) = (self.url(), format!("http://{}:{}", self.address, self.peer_port));
        let mut command = match &self.host {
            Some(host) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", host, "etcd"]);
                command
            }
            None => Command::new("etcd"),
        };
        command
            .arg(format!("--data-dir={}", self.folder.path().join("data").display()))
            .arg(format!("--name={}", self.name))
            .args(["--logger=zap", "--log-level=error"])
            .args(["--heartbeat-interval=50", "--election-timeout=500"])
            .arg(format!("--listen-client-urls={client}"))
            .arg(format!("--advertise-client-urls={client}"))
            .arg(format!("--listen-peer-urls={peer}"))
            .arg(format!("--initial-advertise-peer-urls={peer}"))
            .arg(format!("--initial-cluster={}", self.cluster))
            .arg(format!("--listen-metrics-urls=http://{}:{}", self.address, self.watched_port))
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        self.process = Some(command.spawn().context("etcd-server is not installed")?);
        Ok(())
    }

    /// Waits until it answers.
    ///
    /// # Errors
    /// When it does not.
    pub fn wait(&mut self) -> Result<()> {
        let (address, port) = (self.address, self.watched_port);
        let process = self.process.as_mut().context("etcd does not run")?;
        let deadline = Instant::now() + READY_WITHIN;
        while !is_healthy(address, port) {
            let ended = process.try_wait()?.is_some();
            if ended {
                self.process = None;
                bail!("etcd ended at once");
            }
            ensure!(Instant::now() < deadline, "etcd does not answer");
            std::thread::sleep(POLL_EVERY);
        }
        Ok(())
    }

    /// Has `etcdctl` do something; gives what it says.
    ///
    /// # Errors
    /// When it fails.
    pub fn control(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new("etcdctl");
        command.env("ETCDCTL_API", "3").args(["--endpoints", &self.url(), "--command-timeout=20s"]).args(arguments);
        let output = command.stdin(Stdio::null()).output().context("etcd-client is not installed")?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "etcdctl {}: {said}", arguments.join(" "));
        Ok(said)
    }

    /// Ends it as a crash would; its data stays.
    ///
    /// # Errors
    /// When it does not run.
    pub fn kill(&mut self) -> Result<()> {
        let mut process = self.process.take().context("etcd does not run")?;
        process.kill()?;
        process.wait()?;
        Ok(())
    }

    /// Stops it without ending it.
    ///
    /// # Errors
    /// When it does not run.
    pub fn freeze(&self) -> Result<()> {
        self.signal(Signal::STOP)
    }

    /// Lets it go on.
    ///
    /// # Errors
    /// When it does not run.
    pub fn thaw(&self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let process = self.process.as_ref().context("etcd does not run")?;
        Ok(kill_process(Pid::from_child(process), signal)?)
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        if self.process.is_some() {
            let _dead = self.kill();
        }
    }
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn is_healthy(address: Ipv4Addr, port: u16) -> bool {
    let asked = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect((address, port))?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        stream.write_all(b"GET /health HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    asked().is_ok_and(|answer| answer.contains("\"health\":\"true\""))
}
