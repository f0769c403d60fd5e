//! A member that drains: which sessions it had when that began, how long they may go on, and what becomes of those that
//! take longer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use switchyard_catalog::{Catalog, DrainTerms, NodeId};
use switchyard_engine::DrainProgress;
use switchyard_session::{Registry, SessionEntry};
use tokio::time::sleep_until;
use tracing::{info, warn};

use crate::Console;

/// What a member knows of its own drain; none while it does not drain.
#[derive(Debug, Default)]
pub(crate) struct Draining(Mutex<Option<Drain>>);

#[derive(Debug)]
struct Drain {
    begun: Instant,
    terms: Option<DrainTerms>,
    /// The newest session that there was.
    newest: u64,
    sessions: usize,
    /// Whether the time was over, and has been acted upon.
    over: bool,
}

impl Draining {
    fn locked(&self) -> MutexGuard<'_, Option<Drain>> {
        // Nothing that can panic runs while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How far a member is; none when it does not drain, or does not know of it yet.
    pub(crate) fn progress(&self, node: NodeId, registry: &Registry, catalog: &Catalog) -> Option<DrainProgress> {
        let drain = self.locked();
        let drain = drain.as_ref()?;
        let left_ms = drain.terms.map(|terms| {
            let left = Duration::from_millis(terms.within_ms).saturating_sub(drain.begun.elapsed());
            u64::try_from(left.as_millis()).unwrap_or(u64::MAX)
        });
        Some(DrainProgress {
            node,
            sessions_at_start: drain.sessions,
            sessions_left: drain.left(registry, catalog).len(),
            time_left_ms: left_ms,
        })
    }
}

impl Drain {
    fn begin(terms: Option<DrainTerms>, registry: &Registry) -> Self {
        let sessions = registry.sessions();
        let newest = sessions.iter().map(|entry| entry.number()).max().unwrap_or_default();
        Self { begun: Instant::now(), terms, newest, sessions: sessions.len(), over: false }
    }

    /// Those that are to end: superusers who came later know what they do. Whoever else came later had begun to log in
    /// before.
    fn left(&self, registry: &Registry, catalog: &Catalog) -> Vec<Arc<SessionEntry>> {
        let superuser = |entry: &SessionEntry| catalog.users().find(entry.user).is_some_and(|user| user.superuser);
        let mut sessions = registry.sessions();
        sessions.retain(|entry| entry.number() <= self.newest || !superuser(entry));
        sessions
    }
}

impl Console {
    /// Sees to it that this member's sessions are counted, and end, as the catalog says, for as long as the member is
    /// there.
    pub(crate) fn watch_catalog(self: &Arc<Self>) {
        let (weak, mut changed) = (Arc::downgrade(self), self.head.changed());
        tokio::spawn(async move {
            let mut before = Arc::clone(&changed.borrow());
            loop {
                let Some(console) = weak.upgrade() else { return };
                let now = console.catalog();
                console.count_limited(&before, &now).await;
                before = now;
                let deadline = console.settle_draining();
                drop(console);
                tokio::select! {
                    changed = changed.changed() => if changed.is_err() { return },
                    () = at(deadline) => {}
                }
            }
        });
    }

    /// Begins to drain, or drains no more; closes what has taken too long. Says when it is to be looked again.
    fn settle_draining(&self) -> Option<Instant> {
        let catalog = self.catalog();
        let (live, registry) = (&self.live.draining, &self.context.registry);
        let mut known = live.locked();
        let Some(node) = self.node_id.and_then(|id| catalog.nodes().find(id)).filter(|node| node.draining) else {
            *known = None;
            return None;
        };
        let drain = match known.take() {
            Some(drain) if drain.terms == node.drain => drain,
            _ => {
                let drain = Drain::begin(node.drain, registry);
                info!(node = %node.name, sessions = drain.sessions, terms = ?node.drain, "draining");
                drain
            }
        };
        let drain = known.insert(drain);
        let terms = drain.terms.filter(|_| !drain.over)?;
        let deadline = drain.begun.checked_add(Duration::from_millis(terms.within_ms))?;
        if Instant::now() < deadline {
            return Some(deadline);
        }
        drain.over = true;
        let left = drain.left(registry, &catalog);
        if terms.then_close {
            info!(node = %node.name, sessions = left.len(), "the time to drain is over: closing the sessions left");
            left.iter().for_each(|entry| entry.terminate());
        } else if !left.is_empty() {
            warn!(node = %node.name, sessions = left.len(), "the time to drain is over, and sessions go on");
        }
        None
    }
}

/// Ready at that time; never, if there is none.
async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}
