//! A real etcd, on free ports of the loopback and with its data in a temporary folder.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use etcd_client::Client;
use rustix::process::{Pid, Signal, kill_process};
use switchyard_store::{EtcdLink, EtcdOptions, EtcdStore};
use tempfile::TempDir;

/// How long anything may take that must happen.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// One etcd process, or one of a cluster. It ends when this is dropped.
pub struct Etcd {
    _folder: TempDir,
    arguments: Vec<String>,
    pub url: String,
    child: Mutex<Option<Child>>,
}

pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Etcd {
    /// A cluster of one that answers.
    pub async fn start() -> Self {
        for _ in 0..5 {
            let etcd = Self::configured("http", &[]);
            if etcd.run(true).await {
                return etcd;
            }
        }
        panic!("etcd does not start");
    }

    /// Not running yet.
    pub fn configured(scheme: &str, more: &[&str]) -> Self {
        let (client, peer) = (free_port(), free_port());
        let peers = format!("one=http://127.0.0.1:{peer}");
        Self::of_cluster(scheme, "one", client, peer, &peers, more)
    }

    pub fn of_cluster(scheme: &str, name: &str, client: u16, peer: u16, peers: &str, more: &[&str]) -> Self {
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { tempfile::tempdir_in(memory).unwrap() } else { tempfile::tempdir().unwrap() };
        let url = format!("{scheme}://127.0.0.1:{client}");
        let peer = format!("http://127.0.0.1:{peer}");
        let data = folder.path().join("data").to_str().unwrap().to_owned();
        let mut arguments: Vec<String> = [
            ("name", name),
            ("data-dir", &data),
            ("listen-client-urls", &url),
            ("advertise-client-urls", &url),
            ("listen-peer-urls", &peer),
            ("initial-advertise-peer-urls", &peer),
            ("initial-cluster", peers),
            ("heartbeat-interval", "50"),
            ("election-timeout", "500"),
            ("logger", "zap"),
            ("log-level", "error"),
        ]
        .map(|(name, value)| format!("--{name}={value}"))
        .to_vec();
        arguments.extend(more.iter().map(|argument| (*argument).to_owned()));
        Self { _folder: folder, arguments, url, child: Mutex::default() }
    }

    /// Runs it, for the first time or again with the data it has. `false` when it ends at once.
    pub async fn run(&self, until_it_answers: bool) -> bool {
        let child = Command::new("etcd")
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("etcd-server is installed");
        *self.child() = Some(child);
        let deadline = Instant::now() + PATIENCE;
        if !until_it_answers {
            return true;
        }
        loop {
            if self.child().as_mut().unwrap().try_wait().unwrap().is_some() {
                return false;
            }
            if let Ok(mut client) = Client::connect([&self.url], None).await
                && client.get("health", None).await.is_ok()
            {
                return true;
            }
            assert!(Instant::now() < deadline, "etcd does not answer");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn child(&self) -> std::sync::MutexGuard<'_, Option<Child>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends it as a crash would.
    pub fn kill(&self) {
        if let Some(mut child) = self.child().take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    pub fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(self.child().as_ref().unwrap()), signal).unwrap();
    }

    pub async fn client(&self) -> Client {
        Client::connect([&self.url], None).await.unwrap()
    }

    pub fn options(&self, prefix: &str) -> EtcdOptions {
        let options = EtcdOptions::new(vec![self.url.clone()], prefix);
        EtcdOptions { staging_s: 1, ..options }
    }

    pub fn link(&self, prefix: &str) -> EtcdLink {
        EtcdLink::new(self.options(prefix)).unwrap()
    }

    pub async fn store(&self, prefix: &str) -> EtcdStore {
        EtcdStore::open(self.link(prefix)).await.unwrap()
    }

    /// All keys below a prefix, with their values.
    pub async fn dump(&self, prefix: &str) -> Vec<(String, Vec<u8>)> {
        let options = etcd_client::GetOptions::new().with_prefix();
        let mut client = self.client().await.kv_client().max_decoding_message_size(usize::MAX);
        let found = client.get(prefix, Some(options)).await.unwrap();
        let pairs = found.kvs().iter().map(|found| (found.key_str().unwrap().to_owned(), found.value().to_vec()));
        pairs.collect()
    }

    pub async fn put(&self, key: &str, value: &str) {
        self.client().await.put(key, value, None).await.unwrap();
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        self.kill();
    }
}

/// An etcd that the tests of this process share as long as one of them uses it, each with a prefix of its own.
pub async fn shared() -> Arc<Etcd> {
    static SHARED: tokio::sync::Mutex<Weak<Etcd>> = tokio::sync::Mutex::const_new(Weak::new());
    let mut shared = SHARED.lock().await;
    if let Some(etcd) = shared.upgrade() {
        return etcd;
    }
    let etcd = Arc::new(Etcd::start().await);
    *shared = Arc::downgrade(&etcd);
    etcd
}

/// Tries until it comes true.
pub async fn eventually(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so().await {
        assert!(Instant::now() < deadline, "never: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
