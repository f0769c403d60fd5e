//! A way to etcd on which things get lost.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// What becomes of a commit's request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It arrives, and so does the answer.
    Arrives,
    /// It arrives, and the connection breaks before the answer does.
    AnswerLost,
    /// It is held back until [`Proxy::release`], and the connection breaks.
    Delayed,
    /// It does not arrive.
    Lost,
}

pub struct Proxy {
    pub url: String,
    shared: Arc<Shared>,
    _task: JoinSet<()>,
}

struct Shared {
    target: SocketAddr,
    fate: Mutex<Fate>,
    /// After a commit met its fate nobody comes through any more.
    then_closed: AtomicBool,
    closed: watch::Sender<bool>,
    /// What the connection that was held back sent from its beginning.
    held: Mutex<Option<Vec<u8>>>,
}

/// In a commit's request and in no other: the statement of its record.
const MARK: &[u8] = b"\"statement ";

impl Proxy {
    pub async fn to(url: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let own = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            target: url.strip_prefix("http://").unwrap().parse().unwrap(),
            fate: Mutex::new(Fate::Arrives),
            then_closed: AtomicBool::new(false),
            closed: watch::Sender::new(false),
            held: Mutex::default(),
        });
        let mut task = JoinSet::new();
        let accepting = Arc::clone(&shared);
        task.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (client, _) = listener.accept().await.unwrap();
                if !*accepting.closed.borrow() {
                    connections.spawn(Arc::clone(&accepting).carry(client));
                }
            }
        });
        Self { url: format!("http://{own}"), shared, _task: task }
    }

    /// What becomes of the next commit, and whether it is the last thing that comes through.
    pub fn next(&self, fate: Fate, then_closed: bool) {
        self.shared.then_closed.store(then_closed, Ordering::SeqCst);
        *self.shared.fate.lock().unwrap() = fate;
    }

    pub fn close(&self) {
        self.shared.closed.send_replace(true);
    }

    pub fn open(&self) {
        self.shared.closed.send_replace(false);
    }

    /// Whether the next commit has met its fate.
    pub fn is_met(&self) -> bool {
        *self.shared.fate.lock().unwrap() == Fate::Arrives
    }

    /// Sends what was held back, and waits until etcd has done with it.
    pub async fn release(&self) {
        let held = self.shared.held.lock().unwrap().take().unwrap();
        let mut server = TcpStream::connect(self.shared.target).await.unwrap();
        server.write_all(&held).await.unwrap();
        // Answers to all that the connection asked come before this one's.
        let mut heard = 0;
        let mut buffer = vec![0; 64 * 1024];
        while heard < 64 {
            heard += server.read(&mut buffer).await.unwrap();
        }
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    }
}

impl Shared {
    async fn carry(self: Arc<Self>, client: TcpStream) {
        let Ok(server) = TcpStream::connect(self.target).await else { return };
        let (mut from_client, mut to_client) = client.into_split();
        let (mut from_server, mut to_server) = server.into_split();
        let mut closed = self.closed.subscribe();
        let muted = Arc::new(AtomicBool::new(false));
        let mute = Arc::clone(&muted);
        let (mut up, mut down) = (vec![0; 256 * 1024], vec![0; 256 * 1024]);
        let mut all = Vec::new();
        let requests = async {
            loop {
                let len = from_client.read(&mut up).await.unwrap_or(0);
                if len == 0 {
                    return;
                }
                all.extend_from_slice(&up[..len]);
                let fate = if up[..len].windows(MARK.len()).any(|window| window == MARK) {
                    std::mem::replace(&mut *self.fate.lock().unwrap(), Fate::Arrives)
                } else {
                    Fate::Arrives
                };
                match fate {
                    Fate::Arrives => {}
                    Fate::AnswerLost => mute.store(true, Ordering::SeqCst),
                    Fate::Delayed => *self.held.lock().unwrap() = Some(std::mem::take(&mut all)),
                    Fate::Lost => {}
                }
                if matches!(fate, Fate::Arrives | Fate::AnswerLost) && to_server.write_all(&up[..len]).await.is_err() {
                    return;
                }
                if matches!(fate, Fate::Delayed | Fate::Lost) {
                    self.met();
                    return;
                }
            }
        };
        let answers = async {
            loop {
                let len = from_server.read(&mut down).await.unwrap_or(0);
                if len == 0 || muted.load(Ordering::SeqCst) {
                    if len > 0 {
                        self.met();
                    }
                    return;
                }
                if to_client.write_all(&down[..len]).await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            () = requests => {}
            () = answers => {}
            _ = closed.wait_for(|closed| *closed) => {}
        }
    }

    fn met(&self) {
        if self.then_closed.load(Ordering::SeqCst) {
            self.closed.send_replace(true);
        }
    }
}
