//! An etcd process of the test's own.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

const READY_WITHIN: Duration = Duration::from_secs(60);
const POLL_EVERY: Duration = Duration::from_millis(20);

/// How often it is started on other ports because somebody took one meanwhile.
const STARTS_MAX: usize = 5;

/// An etcd of one, on free ports of the loopback, with its data in memory where there is a file system for that. It ends
/// when this is dropped.
#[derive(Debug)]
pub struct Etcd {
    folder: TempDir,
    port: u16,
    peer_port: u16,
    process: Option<Child>,
}

impl Etcd {
    /// Starts one, and waits until it answers.
    ///
    /// # Errors
    /// When it is not installed, or does not answer.
    pub fn start() -> Result<Self> {
        let memory = Path::new("/dev/shm");
        for _ in 0..STARTS_MAX {
            let folder = if memory.is_dir() { tempfile::tempdir_in(memory)? } else { tempfile::tempdir()? };
            let mut etcd = Self { folder, port: free_port()?, peer_port: free_port()?, process: None };
            if etcd.run().is_ok() {
                return Ok(etcd);
            }
        }
        bail!("etcd does not start")
    }

    /// Its endpoint.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Runs it, with the data it has.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn run(&mut self) -> Result<()> {
        ensure!(self.process.is_none(), "etcd still runs");
        let (client, peer) = (self.url(), format!("http://127.0.0.1:{}", self.peer_port));
        let process = Command::new("etcd")
            .arg(format!("--data-dir={}", self.folder.path().join("data").display()))
            .args(["--name=one", "--logger=zap", "--log-level=error"])
            .args(["--heartbeat-interval=50", "--election-timeout=500"])
            .arg(format!("--listen-client-urls={client}"))
            .arg(format!("--advertise-client-urls={client}"))
            .arg(format!("--listen-peer-urls={peer}"))
            .arg(format!("--initial-advertise-peer-urls={peer}"))
            .arg(format!("--initial-cluster=one={peer}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("etcd-server is not installed")?;
        let process = self.process.insert(process);
        let deadline = Instant::now() + READY_WITHIN;
        while !is_healthy(self.port) {
            ensure!(process.try_wait()?.is_none(), "etcd ended at once");
            ensure!(Instant::now() < deadline, "etcd does not answer");
            std::thread::sleep(POLL_EVERY);
        }
        Ok(())
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

fn is_healthy(port: u16) -> bool {
    let asked = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        stream.write_all(b"GET /health HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    asked().is_ok_and(|answer| answer.contains("\"health\":\"true\""))
}
