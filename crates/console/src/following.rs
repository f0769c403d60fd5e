//! What other members do: their commits, and whether they are there.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use switchyard_catalog::Catalog;
use switchyard_store::membership::MemberEvent;
use switchyard_store::{News, StoreError};
use tokio::time::{sleep, timeout};
use tracing::warn;

use crate::members::{PeerPlace, Reach};
use crate::{Console, Head};

/// Between two attempts to follow a store that does not answer.
const RETRY_AFTER: Duration = Duration::from_millis(200);

impl Console {
    /// Follows what others commit, for as long as this is polled.
    pub async fn follow(&self) -> Infallible {
        let mut said = false;
        loop {
            match self.store.newer(self.head.load().version()).await {
                Ok(news) => {
                    said = false;
                    let begun = Instant::now();
                    take(&self.head, news);
                    self.metrics.follow_time.note(begun.elapsed());
                    self.members.followed(&self.head.load());
                }
                Err(error) => {
                    if !std::mem::replace(&mut said, true) {
                        warn!(error = &error as &dyn std::error::Error, "cannot follow what others commit");
                    }
                    sleep(RETRY_AFTER).await;
                }
            }
        }
    }

    /// Waits for the commit after this version; says whether it was seen in time.
    pub(crate) async fn catch_up(&self, version: u64, wait: Duration) -> Result<bool, StoreError> {
        if self.head.load().version() > version {
            return Ok(true);
        }
        match timeout(wait, self.store.newer(version)).await {
            Ok(news) => {
                take(&self.head, news?);
                self.members.followed(&self.head.load());
                Ok(true)
            }
            Err(_) => Ok(false),
        }
    }

    /// Something is told of the members that other processes run.
    pub fn heard(&self, event: MemberEvent) {
        self.members.heard(event, &self.head.load());
    }

    /// Somebody has called a member that another process runs.
    pub fn reached(&self, process: &str, reach: Reach) {
        self.members.reached(process, reach, &self.head.load());
    }

    /// The members that other processes run.
    pub fn peers(&self) -> Vec<PeerPlace> {
        self.members.peers()
    }
}

/// Makes the head what the store tells. What is known already is told to whoever made it too.
pub(crate) fn take(head: &Head, news: Vec<News>) {
    for item in news {
        let now = head.load();
        let next = match item {
            News::Next { version, id_next, deltas } if version == now.version().saturating_add(1) => {
                now.followed_by(version, id_next, deltas)
            }
            News::Next { .. } => continue,
            News::Whole(loaded) if loaded.version > now.version() => {
                match Catalog::from_entities(loaded.version, loaded.id_next, loaded.entities) {
                    Some(catalog) => catalog,
                    None => {
                        tracing::error!(version = loaded.version, "the store holds no database any more");
                        continue;
                    }
                }
            }
            News::Whole(_) => continue,
        };
        head.replace(Arc::new(next));
    }
}
