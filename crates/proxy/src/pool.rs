//! Sessions on servers that nobody uses at the moment, kept for the next client that would log in alike.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use switchyard_wire::CancelKey;
use tokio::io::{AsyncRead, ReadBuf};

use crate::line::Stream;
use crate::upstream::{Proof, Server, ServerLogin, Upstream};

/// How often it is looked for sessions that have been idle for too long.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What sessions must have in common to be used one for the other.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    server: Server,
    user: String,
    /// What was shown to the server: who has something else to show gets no session of who had this.
    proof: Option<[u8; 32]>,
    parameters: Arc<[(String, String)]>,
}

impl Key {
    pub(crate) fn new(server: &Server, login: &ServerLogin) -> Self {
        Self {
            server: server.clone(),
            user: login.user.clone(),
            proof: login.proof.as_ref().map(Proof::fingerprint),
            parameters: Arc::clone(&login.parameters),
        }
    }
}

#[derive(Debug)]
struct Idle {
    stream: Stream,
    key: Option<(i32, CancelKey)>,
    since: Instant,
}

#[derive(Debug, Default)]
struct Shelf {
    settings: Arc<[(String, String)]>,
    idle: Vec<Idle>,
}

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolLimits {
    /// How many sessions of one kind; 0 keeps none.
    pub idle_max: usize,
    /// For how long, in milliseconds.
    pub idle_ms_max: u64,
}

/// The sessions that belong to one thread.
#[derive(Debug)]
pub struct Pool {
    limits: PoolLimits,
    shelves: Mutex<HashMap<Key, Shelf>>,
    /// The settings after the last login: most servers say the same to all, and it is held once.
    settings: Mutex<Arc<[(String, String)]>>,
}

impl Pool {
    /// An empty one.
    pub fn new(limits: PoolLimits) -> Arc<Self> {
        Arc::new(Self { limits, shelves: Mutex::default(), settings: Mutex::default() })
    }

    /// The same settings, where possible as others have them already.
    pub(crate) fn shared(&self, settings: Arc<[(String, String)]>) -> Arc<[(String, String)]> {
        let mut last = self.settings.lock().unwrap_or_else(PoisonError::into_inner);
        if *last != settings {
            *last = settings;
        }
        Arc::clone(&last)
    }

    fn shelves(&self) -> MutexGuard<'_, HashMap<Key, Shelf>> {
        // Nothing that can panic runs while it is held.
        self.shelves.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends what has been idle for too long, as long as the pool is there.
    pub async fn look_after(self: Arc<Self>) {
        let pool = Arc::downgrade(&self);
        drop(self);
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let Some(pool) = pool.upgrade() else { return };
            let expired = pool.expired();
            for idle in expired {
                tokio::spawn(crate::data::goodbye(idle.stream));
            }
        }
    }

    fn expired(&self) -> Vec<Idle> {
        let idle_max = Duration::from_millis(self.limits.idle_ms_max);
        let mut expired = Vec::new();
        let mut shelves = self.shelves();
        for shelf in shelves.values_mut() {
            expired.extend(shelf.idle.extract_if(.., |idle| idle.since.elapsed() >= idle_max));
        }
        shelves.retain(|_, shelf| !shelf.idle.is_empty());
        expired
    }

    /// A session like this, if one is idle and its server is there.
    pub(crate) fn take(&self, key: &Key) -> Option<Upstream> {
        let mut shelves = self.shelves();
        let shelf = shelves.get_mut(key)?;
        loop {
            let Idle { mut stream, key: cancel, .. } = shelf.idle.pop()?;
            if is_quiet(&mut stream) {
                let settings = Arc::clone(&shelf.settings);
                return Some(Upstream { stream, target: key.server.target.clone(), settings, key: cancel });
            }
        }
    }

    /// Keeps a session that is as after a login; gives it back when there are enough.
    pub(crate) fn keep(
        &self,
        key: Key,
        stream: Stream,
        cancel: Option<(i32, CancelKey)>,
        settings: Arc<[(String, String)]>,
    ) -> Option<Stream> {
        let mut shelves = self.shelves();
        let shelf = shelves.entry(key).or_default();
        if shelf.idle.len() >= self.limits.idle_max {
            return Some(stream);
        }
        shelf.settings = settings;
        shelf.idle.push(Idle { stream, key: cancel, since: Instant::now() });
        None
    }

    /// Whether anything is kept at all.
    pub(crate) fn keeps(&self) -> bool {
        self.limits.idle_max > 0
    }
}

/// Whether a server has said nothing, and not gone.
fn is_quiet(stream: &mut Stream) -> bool {
    let mut byte = [0];
    let mut buffer = ReadBuf::new(&mut byte);
    let mut context = Context::from_waker(Waker::noop());
    matches!(Pin::new(stream).poll_read(&mut context, &mut buffer), Poll::Pending)
}
