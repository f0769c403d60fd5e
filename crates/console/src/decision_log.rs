//! The last load-balance decisions of the members of this process.

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use switchyard_catalog::{Catalog, Decision, NodeId, NodeStates};
use switchyard_engine::RoutedConnection;

use crate::live::now_us;

/// How many decisions are remembered.
const DECISIONS_MAX: usize = 1_000;
/// How many versions of the catalog they may hold on to: of older ones the candidates are written down.
const VERSIONS_MAX: usize = 16;

/// Bounded, the newest last.
#[derive(Debug, Default)]
pub(crate) struct DecisionLog(Mutex<Log>);

#[derive(Debug, Default)]
struct Log {
    number_last: u64,
    routed: VecDeque<Arc<RoutedConnection>>,
}

impl DecisionLog {
    /// What the member whose node is `here` decided.
    pub(crate) fn note(
        &self,
        client: SocketAddr,
        decision: Decision,
        here: Option<NodeId>,
        catalog: Arc<Catalog>,
        states: Arc<NodeStates>,
    ) {
        let mut log = self.locked();
        log.number_last = log.number_last.saturating_add(1);
        let place = (log.number_last, now_us());
        let version_before = log.routed.back().map(|routed| routed.decision.version);
        let routed = RoutedConnection::new(place, client, decision, here, catalog, states);
        let changed = version_before != Some(routed.decision.version);
        while log.routed.len() >= DECISIONS_MAX {
            log.routed.pop_front();
        }
        log.routed.push_back(Arc::new(routed));
        let old = if changed { log.on_old_versions() } else { Vec::new() };
        drop(log);
        // Others decide meanwhile.
        for routed in old {
            self.replace(routed.without_catalog());
        }
    }

    fn replace(&self, routed: RoutedConnection) {
        let mut log = self.locked();
        let Ok(place) = log.routed.binary_search_by_key(&routed.number, |kept| kept.number) else { return };
        if let Some(kept) = log.routed.get_mut(place) {
            *kept = Arc::new(routed);
        }
    }

    /// All that are remembered, the oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<RoutedConnection>> {
        self.locked().routed.iter().cloned().collect()
    }

    fn locked(&self) -> MutexGuard<'_, Log> {
        // Nothing that can panic runs while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log {
    /// Those that hold on to versions other than the newest few.
    fn on_old_versions(&self) -> Vec<Arc<RoutedConnection>> {
        let kept = || self.routed.iter().filter(|routed| routed.has_catalog());
        let versions: BTreeSet<u64> = kept().map(|routed| routed.decision.version).collect();
        let Some(oldest) = versions.iter().rev().nth(VERSIONS_MAX.saturating_sub(1)) else { return Vec::new() };
        kept().filter(|routed| routed.decision.version < *oldest).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may fail")]

    use switchyard_catalog::{Change, Name, NodeKind, RoutingClient, RoutingView, Turns};

    use super::*;

    fn decide(log: &DecisionLog, catalog: &Catalog, version: u64) {
        let catalog = Arc::new(catalog.clone().with_version(version));
        let states = Arc::new(NodeStates::default());
        let client: SocketAddr = "10.8.3.7:4000".parse().unwrap();
        let asked = RoutingClient { address: client.ip(), asks: true, can_be_redirected: true };
        let turns = Turns::default();
        let here = catalog.nodes().iter().next().map(|node| node.id);
        let view = RoutingView { here, states: &states, turns: &turns };
        let decision = catalog.decide(&asked, &view, &mut rand::rng());
        log.note(client, decision, here, catalog, states);
    }

    fn catalog() -> Catalog {
        let (catalog, _) = Catalog::initial(Name::parse("d").unwrap(), Name::parse(crate::SUPERUSER).unwrap(), None);
        let name = Name::parse("n1").unwrap();
        let (host, subcluster) = ("10.0.0.1".to_owned(), None);
        let change =
            Change::CreateNode { name, kind: NodeKind::Member { upstream: None }, host, port: 5433, subcluster };
        catalog.apply(&[change]).unwrap().catalog
    }

    #[test]
    fn few_versions_are_held_and_nothing_of_the_decisions_is_lost() {
        let (log, catalog) = (DecisionLog::default(), catalog());
        for version in 1..=40 {
            decide(&log, &catalog, version);
        }
        let all = log.all();
        assert_eq!(all.len(), 40);
        let held: Vec<u64> =
            all.iter().filter(|routed| routed.has_catalog()).map(|routed| routed.decision.version).collect();
        assert_eq!(held, (25..=40).collect::<Vec<_>>());
        let told: Vec<_> = all.iter().map(|routed| routed.candidates()).collect();
        assert!(told.iter().all(|candidates| Some(candidates) == told.last()));
        assert_eq!(told.first().unwrap().skipped, ["n1: the node has no network address"]);
    }

    #[test]
    fn the_newest_thousand_are_kept() {
        let (log, catalog) = (DecisionLog::default(), catalog());
        for _ in 0..1_005 {
            decide(&log, &catalog, 1);
        }
        let numbers: Vec<u64> = log.all().iter().map(|routed| routed.number).collect();
        assert_eq!(numbers, (6..=1_005).collect::<Vec<_>>());
    }
}
