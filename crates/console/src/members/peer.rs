//! A member that another process runs: what is known of it, and what that comes to.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use switchyard_store::membership::{LeftReason, Member};

/// Whoever goes down this often within [`FLAPPING_TIME`] is taken to be up again only when it has been so for
/// [`STEADY_TIME`].
const FLAPPING_DOWNS: usize = 3;
const FLAPPING_TIME: Duration = Duration::from_secs(60);
const STEADY_TIME: Duration = Duration::from_secs(5);

/// What etcd says of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lease {
    /// It shows signs of life.
    Held,
    /// It is not there any more.
    Ended(LeftReason),
}

/// What calling a member came to the last time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Nobody has called yet.
    Unknown,
    /// It answered.
    Answers,
    /// Nobody listens there.
    Refused,
    /// It does not answer: it is frozen, or the network between is cut.
    Silent,
}

/// Where a member is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerPlace {
    /// What its process is called, once.
    pub process: String,
    /// Its node's name when it started.
    pub name: String,
    /// Its host.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Whether it has left by itself, or made room for another.
    pub gone: bool,
    /// Whether it gets connections.
    pub up: bool,
}

/// A member that another process runs.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) member: Member,
    pub(crate) lease: Lease,
    pub(crate) reach: Reach,
    pub(crate) history: History,
}

/// How the member of a name has been, whichever process it was.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// What was shown of it last.
    shown: Option<(bool, String)>,
    /// When it went down, the last times.
    downs: VecDeque<Instant>,
    /// Since when it is up again, while that is not shown yet.
    up_since: Option<Instant>,
}

impl History {
    /// What is to be shown now, if that is something else than before.
    pub(crate) fn show(&mut self, now: (bool, String), at: Instant) -> Option<(bool, String)> {
        if self.shown.as_ref() == Some(&now) {
            self.up_since = None;
            return None;
        }
        let was_up = self.is_up();
        if now.0 && !was_up {
            self.downs.retain(|down| at.saturating_duration_since(*down) < FLAPPING_TIME);
            let since = *self.up_since.get_or_insert(at);
            if self.downs.len() >= FLAPPING_DOWNS && at.saturating_duration_since(since) < STEADY_TIME {
                return None;
            }
        }
        self.up_since = None;
        if !now.0 && was_up {
            self.downs.push_back(at);
            if self.downs.len() > FLAPPING_DOWNS {
                self.downs.pop_front();
            }
        }
        self.shown = Some(now.clone());
        Some(now)
    }

    pub(crate) fn is_up(&self) -> bool {
        self.shown.as_ref().is_some_and(|(up, _)| *up)
    }
}

impl Peer {
    pub(crate) fn new(member: Member, history: History) -> Self {
        Self { member, lease: Lease::Held, reach: Reach::Unknown, history }
    }

    /// Whether it is up, and why. While it is not known who is there (`blind`), what was known holds, and only what is
    /// seen of the member itself can end it.
    pub(crate) fn state(&self, blind: bool) -> (bool, String) {
        let (up, reason) = match (self.lease, self.reach) {
            (Lease::Ended(reason @ (LeftReason::Left | LeftReason::Replaced)), _) => (false, reason.text()),
            (_, Reach::Refused) => (false, "nobody listens at its address"),
            (Lease::Held, Reach::Silent) if blind => (false, "it does not answer, and etcd cannot be reached"),
            (Lease::Held, _) => (true, "it is a member"),
            (Lease::Ended(_), Reach::Answers) => (true, "it is cut off from etcd, but answers"),
            (Lease::Ended(reason), _) => (false, reason.text()),
        };
        (up, reason.to_owned())
    }

    pub(crate) fn place(&self) -> PeerPlace {
        PeerPlace {
            process: self.member.process.clone(),
            name: self.member.name.clone(),
            host: self.member.host.clone(),
            port: self.member.port,
            gone: matches!(self.lease, Lease::Ended(LeftReason::Left | LeftReason::Replaced)),
            up: self.history.is_up(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_comes_to_a_state() {
        let left = Lease::Ended(LeftReason::Left);
        let ended = Lease::Ended(LeftReason::LeaseEnded);
        for (lease, reach, blind, up) in [
            (Lease::Held, Reach::Unknown, false, true),
            (Lease::Held, Reach::Answers, false, true),
            // The network between two members may be cut: etcd knows better.
            (Lease::Held, Reach::Silent, false, true),
            (Lease::Held, Reach::Silent, true, false),
            (Lease::Held, Reach::Unknown, true, true),
            // At once, and not when the lease has ended.
            (Lease::Held, Reach::Refused, false, false),
            (ended, Reach::Answers, false, true),
            (ended, Reach::Silent, false, false),
            (ended, Reach::Unknown, false, false),
            (left, Reach::Answers, false, false),
        ] {
            let member = Member::new("n1", "10.0.0.1", 5433, 0);
            let peer = Peer { lease, reach, ..Peer::new(member, History::default()) };
            assert_eq!(peer.state(blind).0, up, "{lease:?} {reach:?} {blind}");
        }
    }

    #[test]
    fn whoever_flaps_must_be_steady_to_be_up_again() {
        let began = Instant::now();
        let mut history = History::default();
        let mut show =
            |up: bool, s: u64| history.show((up, String::new()), began + Duration::from_secs(s)).map(|(up, _)| up);
        // Twice is bad luck.
        for s in [0, 2] {
            assert_eq!(show(true, s), Some(true), "{s}");
            assert_eq!(show(true, s), None, "{s}");
            assert_eq!(show(false, s + 1), Some(false), "{s}");
        }
        assert_eq!(show(true, 4), Some(true));
        assert_eq!(show(false, 5), Some(false));
        assert_eq!(show(true, 6), None);
        assert_eq!(show(true, 10), None);
        // Down again meanwhile: it begins anew.
        assert_eq!(show(false, 10), None);
        assert_eq!(show(true, 11), None);
        assert_eq!(show(true, 15), None);
        assert_eq!(show(true, 16), Some(true));
        // Long ago does not count.
        assert_eq!(show(false, 200), Some(false));
        assert_eq!(show(true, 201), Some(true));
    }
}
