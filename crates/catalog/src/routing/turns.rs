//! Whose turn it is: the round-robin pointers of one member. They are no part of the catalog (seed: each host keeps its
//! own), and a restart forgets them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::catalog::Catalog;
use crate::id::*;

use super::{Family, Target};

/// Among whom turns are taken. The address families have turns of their own: else two kinds of clients that alternate
/// would each meet every second target only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Circle {
    /// The load balance group, the subcluster (the interior rule) or the database (the classic policy). Ids are unique
    /// over all kinds.
    pub(super) of: u64,
    pub(super) family: Family,
}

/// The round-robin pointers.
#[derive(Debug, Default)]
pub struct Turns {
    /// Who was chosen last, by id. It is no count: what a node that is down would get goes to all others alike, and the
    /// order goes on where it was when one comes back.
    last: RwLock<BTreeMap<Circle, AtomicU64>>,
}

/// From how many pointers on those of dropped groups are looked for.
const SWEPT_FROM: usize = 64;

/// Before anybody was chosen.
const NOBODY: NodeId = NodeId(0);

impl Turns {
    /// Passes the turn from who had it last to the one that comes `after`. Whoever asks at the same time, each gets the
    /// turn after another's.
    pub(super) fn take<'a>(
        &self,
        circle: Circle,
        catalog: &Catalog,
        after: impl Fn(NodeId) -> Option<&'a Arc<Target>>,
    ) -> Option<&'a Arc<Target>> {
        let pointers = self.last.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = pointers.get(&circle) {
            return pass(last, after);
        }
        drop(pointers);
        let mut pointers = self.last.write().unwrap_or_else(PoisonError::into_inner);
        if pointers.len() >= SWEPT_FROM.max(4 * (catalog.load_balance_groups().len() + catalog.subclusters().len())) {
            pointers.retain(|circle, _| circle.exists_in(catalog));
        }
        pass(pointers.entry(circle).or_insert(AtomicU64::new(NOBODY.0)), after)
    }

    /// Who had the turn last; it stays there.
    pub(super) fn last(&self, circle: Circle) -> NodeId {
        let pointers = self.last.read().unwrap_or_else(PoisonError::into_inner);
        pointers.get(&circle).map_or(NOBODY, |last| NodeId(last.load(Ordering::Relaxed)))
    }

    /// Puts every pointer back to its start (RESET_LOAD_BALANCE_POLICY).
    pub fn reset(&self) {
        self.last.write().unwrap_or_else(PoisonError::into_inner).clear();
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.last.read().unwrap_or_else(PoisonError::into_inner).len()
    }
}

fn pass<'a>(last: &AtomicU64, after: impl Fn(NodeId) -> Option<&'a Arc<Target>>) -> Option<&'a Arc<Target>> {
    let mut seen = last.load(Ordering::Relaxed);
    loop {
        let next = after(NodeId(seen))?;
        match last.compare_exchange_weak(seen, next.node.0, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return Some(next),
            Err(now) => seen = now,
        }
    }
}

impl Circle {
    fn exists_in(self, catalog: &Catalog) -> bool {
        catalog.database().id == self.of
            || catalog.load_balance_groups().find(LoadBalanceGroupId(self.of)).is_some()
            || catalog.subclusters().find(SubclusterId(self.of)).is_some()
    }
}
