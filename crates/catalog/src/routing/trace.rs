//! How a decision came about, told only to who asked.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::IpAddr;
use std::sync::Arc;

use super::rules::canonical;
use super::targets::{Family, Target};
use super::{Decision, Stage};
use crate::catalog::Catalog;
use crate::entity::*;
use crate::id::*;

/// A node, or one of its addresses, that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The node.
    pub node: NodeId,
    /// The network address, if it is one.
    pub address: Option<NetworkAddressId>,
    /// Where it is; none for a node without a network address.
    pub place: Option<(Host, u16)>,
}

impl Candidate {
    pub(super) fn without_address(node: NodeId) -> Self {
        Self { node, address: None, place: None }
    }
}

impl From<&Target> for Candidate {
    fn from(target: &Target) -> Self {
        Self { node: target.node, address: target.address, place: Some((target.host.clone(), target.port)) }
    }
}

/// Why a candidate cannot be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Skip {
    /// The node has no network address.
    NoAddress,
    /// The network address is disabled.
    Disabled,
    /// The group's filter does not hold it.
    NotInFilter,
    /// It is a host name, of which the filter cannot say anything.
    HostName,
    /// It is of the other address family than the client.
    OtherFamily,
    /// The node has an older address that is taken.
    NotOldest,
    /// The node drains.
    Draining,
    /// The node is not up.
    Down,
}

impl Skip {
    /// As a half sentence.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoAddress => "the node has no network address",
            Self::Disabled => "the network address is disabled",
            Self::NotInFilter => "the network address is not in the group's filter",
            Self::HostName => "a host name cannot be compared with the group's filter",
            Self::OtherFamily => "the address is of another family than the client's",
            Self::NotOldest => "an older network address of the node is used",
            Self::Draining => "the node is draining",
            Self::Down => "the node is not up",
        }
    }
}

/// Is told what a decision looks at. The one that hears nothing costs nothing.
pub(super) trait Witness {
    /// Whether it wants to hear anything: only then are targets gone through anew.
    const LISTENS: bool;
    /// A stage of the decision begins.
    fn stage(&mut self, _stage: Stage, _policy: Policy) {}
    /// A candidate cannot be chosen.
    fn skipped(&mut self, _candidate: Candidate, _skip: Skip) {}
    /// A target could be chosen.
    fn available(&mut self, _target: &Arc<Target>) {}
    /// One of those available was chosen.
    fn chose(&mut self, _target: &Arc<Target>) {}
}

impl Witness for () {
    const LISTENS: bool = false;
}

/// One stage of a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageTrace {
    /// Which.
    pub stage: Stage,
    /// The policy there. The interior rule is always round robin.
    pub policy: Policy,
    /// Who cannot be chosen, and why.
    pub skipped: Vec<(Candidate, Skip)>,
    /// Who can be.
    pub available: Vec<Arc<Target>>,
    /// Which of these was.
    pub chosen: Option<usize>,
}

/// A decision with all that led to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// The decision.
    pub decision: Decision,
    /// The stages gone through; the last one decided.
    pub stages: Vec<StageTrace>,
}

impl Witness for Vec<StageTrace> {
    const LISTENS: bool = true;

    fn stage(&mut self, stage: Stage, policy: Policy) {
        self.push(StageTrace { stage, policy, skipped: Vec::new(), available: Vec::new(), chosen: None });
    }

    fn skipped(&mut self, candidate: Candidate, skip: Skip) {
        if let Some(stage) = self.last_mut() {
            stage.skipped.push((candidate, skip));
        }
    }

    fn available(&mut self, target: &Arc<Target>) {
        if let Some(stage) = self.last_mut() {
            stage.available.push(Arc::clone(target));
        }
    }

    fn chose(&mut self, target: &Arc<Target>) {
        if let Some(stage) = self.last_mut() {
            stage.chosen = stage.available.iter().position(|available| Arc::ptr_eq(available, target));
        }
    }
}

/// What became of a rule in a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleVerdict {
    /// Its network does not hold the client.
    NoMatch,
    /// It is the one that counts.
    Applied,
    /// Its network holds the client, but that of another rule is more specific.
    LessSpecific,
    /// An older rule has the same network.
    Younger,
}

impl RuleVerdict {
    /// As a half sentence.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoMatch => "the network does not hold the client's address",
            Self::Applied => "the most specific rule that matches",
            Self::LessSpecific => "matches, but another rule is more specific",
            Self::Younger => "matches, but an older rule has the same network",
        }
    }
}

/// The rules that a decision is between.
#[derive(Debug, Clone, Default)]
pub struct RulesConsidered {
    /// The most specific first, of equally specific ones the oldest.
    pub rules: Vec<(Arc<RoutingRule>, RuleVerdict)>,
    /// How many more there are, even less specific, after those listed.
    pub unlisted: usize,
    /// How many of these come before the one that is applied.
    pub unlisted_before: usize,
    /// The one that is applied.
    pub applied: Option<Arc<RoutingRule>>,
}

/// How specific a rule is: the order in which rules are considered.
fn rank(rule: &RoutingRule) -> (Reverse<u8>, RoutingRuleId) {
    (Reverse(canonical(rule.source.net).prefix_len()), rule.id)
}

impl Catalog {
    /// The rules of the client's address family in the order of consideration, and what becomes of each. At most
    /// `count_max` of them.
    pub fn rules_considered(&self, client: IpAddr, count_max: usize) -> RulesConsidered {
        let (client, family) = (client.to_canonical(), Family::of(client));
        let is_of_family = |rule: &&Arc<RoutingRule>| Family::of(canonical(rule.source.net).addr()) == family;
        let found = self.index.rules.find(client);
        let applied = found.and_then(|found| self.routing_rules().find(found.rule)).cloned();
        let comes_before = |rule: &RoutingRule| applied.as_ref().is_none_or(|applied| rank(rule) < rank(applied));
        let mut first = BinaryHeap::new();
        let (mut total, mut before) = (0_usize, 0_usize);
        for rule in self.routing_rules().iter().filter(is_of_family) {
            total += 1;
            before += usize::from(comes_before(rule));
            first.push((rank(rule), rule.id));
            if first.len() > count_max {
                first.pop();
            }
        }
        let verdict = |rule: &RoutingRule| match (canonical(rule.source.net).contains(&client), &applied) {
            (true, Some(applied)) if applied.id == rule.id => RuleVerdict::Applied,
            (true, Some(applied)) if rank(applied).0 == rank(rule).0 => RuleVerdict::Younger,
            (true, _) => RuleVerdict::LessSpecific,
            (false, _) => RuleVerdict::NoMatch,
        };
        let listed = first.into_sorted_vec();
        let (unlisted, unlisted_before) = (total.saturating_sub(listed.len()), before.saturating_sub(listed.len()));
        let rules = listed.into_iter().filter_map(|(_, id)| self.routing_rules().find(id).cloned());
        let rules = rules.map(|rule| (Arc::clone(&rule), verdict(&rule))).collect();
        RulesConsidered { rules, unlisted, unlisted_before, applied }
    }
}
