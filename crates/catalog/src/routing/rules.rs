//! Which routing rule is the most specific for a client: longest-prefix match over tries that versions share.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use imbl::OrdMap;
use ipnet::{IpNet, Ipv4Net};
use prefix_trie::joint::JointPrefixMap;

use crate::entity::RoutingRule;
use crate::id::*;

/// How many networks each trie above the base may hold before they move into the next one.
const RECENT_MAX: [usize; 3] = [64, 1024, 16 * 1024];

/// A rule and where it leads: what a decision needs of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RuleRef {
    pub(crate) rule: RoutingRuleId,
    pub(crate) group: LoadBalanceGroupId,
}

/// The rules of one network.
#[derive(Debug, Clone)]
enum Slot {
    One(RuleRef),
    /// Only the first, the oldest, is ever applied. A network may have very many.
    Several(OrdMap<RoutingRuleId, LoadBalanceGroupId>),
    /// Dropped here; what a trie further down says no longer holds.
    Gone,
}

impl Slot {
    fn first(&self) -> Option<RuleRef> {
        match self {
            Self::One(rule) => Some(*rule),
            Self::Several(rules) => rules.get_min().map(|(rule, group)| RuleRef { rule: *rule, group: *group }),
            Self::Gone => None,
        }
    }

    fn with(self, rule: RuleRef) -> Self {
        let mut rules = match self {
            Self::One(other) if other.rule != rule.rule => OrdMap::unit(other.rule, other.group),
            Self::One(_) | Self::Gone => return Self::One(rule),
            Self::Several(rules) => rules,
        };
        rules.insert(rule.rule, rule.group);
        Self::Several(rules)
    }

    fn without(self, rule: RoutingRuleId) -> Self {
        match self {
            Self::One(one) if one.rule == rule => Self::Gone,
            Self::Several(mut rules) => {
                rules.remove(&rule);
                let last = rules.get_min().map(|(rule, group)| RuleRef { rule: *rule, group: *group });
                last.filter(|_| rules.len() == 1).map_or(Self::Several(rules), Self::One)
            }
            other => other,
        }
    }
}

type Trie = JointPrefixMap<IpNet, Slot>;

/// The rules by client network. A trie cannot share parts of itself with its next version, and copying one of 100,000
/// rules for each commit would cost more than the commit. So there are four: a change goes into the smallest, which is
/// copied, and moves into the next one with others when that is full. What is loaded at once goes to the base.
#[derive(Clone, Default)]
pub(crate) struct RuleIndex {
    recent: [Arc<Trie>; 3],
    base: Arc<Trie>,
}

impl fmt::Debug for RuleIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second, third] = &self.recent;
        write!(f, "networks: {} + {} + {} + {}", self.base.len(), third.len(), second.len(), first.len())
    }
}

/// The network as clients are compared with it: those in IPv6 that hold mapped IPv4 addresses only are IPv4, since
/// such clients are.
pub(crate) fn canonical(net: IpNet) -> IpNet {
    const MAPPED_LENGTH: u8 = 96;
    if let IpNet::V6(v6) = net
        && let Some(v4) = v6.network().to_ipv4_mapped()
        && let Some(length) = v6.prefix_len().checked_sub(MAPPED_LENGTH)
        && let Ok(v4) = Ipv4Net::new(v4, length)
    {
        return IpNet::V4(v4);
    }
    net.trunc()
}

impl RuleIndex {
    pub(crate) fn insert(&mut self, rule: &RoutingRule) {
        let net = canonical(rule.source.net);
        let slot = self.slot(&net).cloned().unwrap_or(Slot::Gone);
        self.set(net, slot.with(RuleRef { rule: rule.id, group: rule.group }));
    }

    pub(crate) fn remove(&mut self, rule: &RoutingRule) {
        let net = canonical(rule.source.net);
        if let Some(slot) = self.slot(&net).cloned() {
            self.set(net, slot.without(rule.id));
        }
    }

    /// The most specific rule whose network holds this address, which is not a mapped one.
    pub(crate) fn find(&self, address: IpAddr) -> Option<RuleRef> {
        let address = IpNet::from(address);
        let mut best: Option<(u8, &Slot)> = None;
        for trie in self.tries() {
            let Some((net, slot)) = trie.get_lpm(&address) else { continue };
            if matches!(slot, Slot::Gone) {
                return self.find_behind_gone(&address);
            }
            // Of equal networks the first found is the newest state.
            if best.is_none_or(|(length, _)| net.prefix_len() > length) {
                best = Some((net.prefix_len(), slot));
            }
        }
        best.and_then(|(_, slot)| slot.first())
    }

    /// The same where the longest match of a trie is one that was dropped: all matches must be compared.
    fn find_behind_gone(&self, address: &IpNet) -> Option<RuleRef> {
        let mut by_length: BTreeMap<u8, &Slot> = BTreeMap::new();
        for trie in self.tries() {
            for (net, slot) in trie.cover(address) {
                by_length.entry(net.prefix_len()).or_insert(slot);
            }
        }
        by_length.into_values().rev().find_map(|slot| slot.first())
    }

    /// Those that hold anything, the newest first.
    fn tries(&self) -> impl Iterator<Item = &Trie> {
        let all = self.recent.iter().chain(std::iter::once(&self.base));
        all.map(Arc::as_ref).filter(|trie| !trie.is_empty())
    }

    /// What the newest trie that knows of exactly this network says.
    fn slot(&self, net: &IpNet) -> Option<&Slot> {
        self.tries().find_map(|trie| trie.get(net))
    }

    fn set(&mut self, net: IpNet, slot: Slot) {
        if self.recent.iter().all(|trie| trie.is_empty())
            && let Some(base) = Arc::get_mut(&mut self.base)
        {
            put(base, net, slot, true);
            return;
        }
        let [first, second, third] = &mut self.recent;
        put(Arc::make_mut(first), net, slot, false);
        let [first_max, second_max, third_max] = RECENT_MAX;
        spill(first, second, first_max, false);
        spill(second, third, second_max, false);
        spill(third, &mut self.base, third_max, true);
    }
}

/// Below the base there is nothing that a dropped network could hide.
fn put(trie: &mut Trie, net: IpNet, slot: Slot, is_base: bool) {
    if is_base && matches!(slot, Slot::Gone) {
        trie.remove(&net);
    } else {
        trie.insert(net, slot);
    }
}

fn spill(from: &mut Arc<Trie>, to: &mut Arc<Trie>, max: usize, to_base: bool) {
    if from.len() <= max {
        return;
    }
    let from = std::mem::take(from);
    let to = Arc::make_mut(to);
    for (net, slot) in from.iter() {
        put(to, net, slot.clone(), to_base);
    }
}
