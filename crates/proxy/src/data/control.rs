//! What comes to a data session from elsewhere than its two sockets.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;

use switchyard_session::{SessionState, Watcher};
use switchyard_wire::CancelKey;
use tokio::runtime::Handle;

use crate::passage::{Target, cancel};

/// Shared between a session and those who want something of it.
#[derive(Debug)]
pub(crate) struct Control {
    runtime: Handle,
    shared: Arc<Shared>,
    cancel_ms_max: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Shared {
    waker: Mutex<Option<Waker>>,
    terminated: AtomicBool,
    /// Whether the server works for the client.
    busy: AtomicBool,
    /// What the server said last of the transaction.
    status: AtomicU8,
    /// How many requests to cancel are on their way: no statement is sent meanwhile, which they could hit.
    cancelling: AtomicU32,
    /// Where the session runs, and the key that cancels what it does there.
    place: Mutex<Option<(Target, i32, CancelKey)>>,
}

impl Control {
    /// For a session that is served by this runtime.
    pub(crate) fn new(runtime: Handle, cancel_ms_max: u64) -> (Arc<Self>, Arc<Shared>) {
        let shared = Arc::<Shared>::default();
        (Arc::new(Self { runtime, shared: Arc::clone(&shared), cancel_ms_max }), shared)
    }
}

impl Watcher for Control {
    fn interrupted(&self) {
        if !self.shared.busy.load(Ordering::Acquire) {
            return;
        }
        let place = self.shared.place.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some((target, process_id, key)) = place else { return };
        let (shared, ms_max) = (Arc::clone(&self.shared), self.cancel_ms_max);
        shared.cancelling.fetch_add(1, Ordering::AcqRel);
        self.runtime.spawn(async move {
            if let Err(error) = cancel(&target, process_id, &key, ms_max).await {
                tracing::debug!(%target, %error, "a request to cancel did not get through");
            }
            shared.cancelling.fetch_sub(1, Ordering::AcqRel);
            shared.wake();
        });
    }

    fn terminated(&self) {
        self.shared.terminated.store(true, Ordering::Release);
        self.shared.wake();
    }

    fn state(&self) -> SessionState {
        if self.shared.busy.load(Ordering::Acquire) {
            return SessionState::Active;
        }
        match self.shared.status.load(Ordering::Acquire) {
            b'T' => SessionState::IdleInTransaction,
            b'E' => SessionState::IdleInFailedTransaction,
            _ => SessionState::Idle,
        }
    }
}

impl Shared {
    /// Wakes the session by this from now on.
    pub(crate) fn register(&self, waker: &Waker) {
        self.waker.lock().unwrap_or_else(PoisonError::into_inner).replace(waker.clone());
    }

    fn wake(&self) {
        let waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(crate) fn set_busy(&self, busy: bool) {
        self.busy.store(busy, Ordering::Release);
    }

    /// The server has answered everything, and says this of the transaction.
    pub(crate) fn set_ready(&self, status: u8) {
        self.status.store(status, Ordering::Release);
        self.set_busy(false);
    }

    pub(crate) fn is_terminated(&self) -> bool {
        self.terminated.load(Ordering::Acquire)
    }

    /// Whether a request to cancel is on its way.
    pub(crate) fn is_cancelling(&self) -> bool {
        self.cancelling.load(Ordering::Acquire) > 0
    }

    /// The session runs here from now on; gives where it ran.
    pub(crate) fn settle(&self, place: Option<(Target, i32, CancelKey)>) -> Option<(Target, i32, CancelKey)> {
        std::mem::replace(&mut self.place.lock().unwrap_or_else(PoisonError::into_inner), place)
    }
}
