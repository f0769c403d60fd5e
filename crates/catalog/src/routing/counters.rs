//! How often each rule decided on this member.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use super::{Decision, Stage};
use crate::catalog::Catalog;
use crate::id::RoutingRuleId;

/// Counts by rule, which changes of other rules leave alone: ids are never used again.
#[derive(Debug, Default)]
pub struct RuleCounters {
    counts: RwLock<BTreeMap<RoutingRuleId, AtomicU64>>,
}

/// From how many counts on those of dropped rules are looked for.
const SWEPT_FROM: usize = 1024;

impl RuleCounters {
    /// Counts a decision, if a rule made it.
    pub fn note(&self, decision: &Decision, catalog: &Catalog) {
        let Stage::Rule { rule, .. } = decision.stage else { return };
        let counts = self.counts.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get(&rule) {
            count.fetch_add(1, Ordering::Relaxed);
            return;
        }
        drop(counts);
        let mut counts = self.counts.write().unwrap_or_else(PoisonError::into_inner);
        if counts.len() >= SWEPT_FROM.max(2 * catalog.routing_rules().len()) {
            counts.retain(|rule, _| catalog.routing_rules().find(*rule).is_some());
        }
        counts.entry(rule).or_default().fetch_add(1, Ordering::Relaxed);
    }

    /// How often a rule decided.
    pub fn count(&self, rule: RoutingRuleId) -> u64 {
        let counts = self.counts.read().unwrap_or_else(PoisonError::into_inner);
        counts.get(&rule).map_or(0, |count| count.load(Ordering::Relaxed))
    }
}
