//! A member that another process runs: what is known of it, and what that comes to.

use switchyard_store::membership::{LeftReason, Member};

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
    /// What was shown of it last.
    pub(crate) shown: Option<(bool, String)>,
}

impl Peer {
    pub(crate) fn new(member: Member, shown: Option<(bool, String)>) -> Self {
        Self { member, lease: Lease::Held, reach: Reach::Unknown, shown }
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
            up: self.shown.as_ref().is_some_and(|(up, _)| *up),
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
            let peer = Peer { lease, reach, ..Peer::new(member, None) };
            assert_eq!(peer.state(blind).0, up, "{lease:?} {reach:?} {blind}");
        }
    }
}
