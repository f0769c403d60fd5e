//! The threads that data sessions are served by. Both sockets of a session belong to one of them, so that nothing ever
//! wakes another thread on the way from one to the other.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::pool::{Pool, PoolLimits};

/// The stack of each: queries of the console's tables are planned on it. Only what is used is ever resident.
const STACK_BYTES: usize = 8 << 20;

/// Some threads, each with a runtime of its own.
#[derive(Debug)]
pub struct Threads {
    runtimes: Vec<(Handle, Arc<Pool>)>,
    /// For sessions that stay with the runtime that accepted them.
    pool: Arc<Pool>,
    next: AtomicUsize,
    /// When these are dropped the threads end.
    _stops: Vec<oneshot::Sender<()>>,
}

impl Threads {
    /// Starts so many, within a runtime for all else.
    ///
    /// # Errors
    /// When the system has none left.
    pub fn start(count: usize, limits: PoolLimits) -> io::Result<Self> {
        let pool = Pool::new(limits);
        tokio::spawn(Arc::clone(&pool).look_after());
        let (mut runtimes, mut stops) = (Vec::new(), Vec::new());
        for number in 0..count.max(1) {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            let pool = Pool::new(limits);
            runtime.spawn(Arc::clone(&pool).look_after());
            runtimes.push((runtime.handle().clone(), pool));
            let (stop, stopped) = oneshot::channel::<()>();
            stops.push(stop);
            thread::Builder::new().name(format!("relay-{number}")).stack_size(STACK_BYTES).spawn(move || {
                // Ended by the sender's end: nothing is ever sent.
                let _ = runtime.block_on(stopped);
            })?;
        }
        Ok(Self { runtimes, pool, next: AtomicUsize::new(0), _stops: stops })
    }

    /// The pool of sessions that no thread of these serves.
    pub fn pool(&self) -> Arc<Pool> {
        Arc::clone(&self.pool)
    }

    /// Has a session served by the next of them, with its pool; what it gives is ready when the session is over.
    pub fn serve<F: Future<Output = ()> + Send + 'static>(
        &self,
        session: impl FnOnce(Arc<Pool>) -> F,
    ) -> Option<JoinHandle<()>> {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let (runtime, pool) = turn.checked_rem(self.runtimes.len()).and_then(|turn| self.runtimes.get(turn))?;
        Some(runtime.spawn(session(Arc::clone(pool))))
    }
}
