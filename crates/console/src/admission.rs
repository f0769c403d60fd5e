//! MAXCONNECTIONS ON DATABASE: one user's sessions counted over all members.

use std::sync::Arc;
use std::time::Duration;

use switchyard_catalog::{Catalog, LimitScope, UserId};
use switchyard_session::{Admission, Permit, SessionEntry};
use switchyard_store::membership::Places;
use tokio::time::timeout;
use tracing::warn;

use crate::Console;
use crate::asking::{Answer, Question};
use crate::members::Members;

/// How long etcd may take to give a place: then it is taken to be away.
const CLAIM_MAX: Duration = Duration::from_secs(2);

impl Members {
    /// Takes a place for another session of a user who may have so many. While etcd is away the members are asked how many
    /// they have, and who does not answer has none: logins go on, and the limit is exact no longer.
    pub(crate) async fn admit(self: Arc<Self>, user: UserId, most: usize) -> Admission {
        let Some(places) = self.places.get().cloned() else { return Admission::Alone };
        self.count_in(&places, user).await;
        if !places.is_cut_off() {
            match timeout(CLAIM_MAX, places.claim(user.as_i64(), most)).await {
                Ok(Ok(Some(place))) => return Admission::Taken(Permit::new(place)),
                Ok(Ok(None)) => return Admission::Full,
                Ok(Err(error)) => {
                    warn!(error = &error as &dyn std::error::Error, "sessions are counted without etcd");
                }
                Err(_) => warn!("sessions are counted without etcd, which does not answer"),
            }
        }
        let answers = self.ask_peers(&Question::SessionsOf { user }).await.answers;
        let there = answers.iter().map(|answer| if let Answer::Count(count) = answer { *count } else { 0 });
        let here = self.here().iter().map(|member| member.registry.sessions_of(user)).sum::<usize>();
        if there.sum::<usize>().saturating_add(here) >= most {
            return Admission::Full;
        }
        places.hold(user.as_i64(), 1).await.pop().map_or(Admission::Alone, |place| Admission::Taken(Permit::new(place)))
    }

    /// Counts the sessions in that began when the user had no such limit.
    async fn count_in(&self, places: &Places, user: UserId) {
        let uncounted = |entry: &Arc<SessionEntry>| entry.user == user && !entry.has_permit();
        let sessions = self.sessions().into_iter().map(|(_, entry)| entry);
        let sessions: Vec<Arc<SessionEntry>> = sessions.filter(uncounted).collect();
        if sessions.is_empty() {
            return;
        }
        for (entry, place) in sessions.iter().zip(places.hold(user.as_i64(), sessions.len()).await) {
            entry.hold(Some(Permit::new(place)));
        }
    }
}

impl Console {
    /// Counts sessions with those of other processes from now on.
    pub fn count_in(&self, places: Arc<Places>) {
        // Whoever comes second is not needed.
        let _ = self.members.places.set(places);
    }

    /// Counts in what users have who are limited since this version.
    pub(crate) async fn count_limited(&self, before: &Catalog, now: &Catalog) {
        let Some(places) = self.members.places.get().filter(|_| !now.users().is_same(before.users())) else { return };
        for user in now.users().iter() {
            if matches!(user.limits.max_connections, Some((_, LimitScope::Database))) {
                self.members.count_in(places, user.id).await;
            }
        }
    }
}
