//! What is odd about the rules: nothing that is refused, and probably nothing that was meant.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use ipnet::IpNet;

use super::counters::RuleCounters;
use super::rules::canonical;
use super::states::NodeStates;
use super::targets::{Family, Fleet};
use super::trace::{Candidate, Skip, Witness};
use crate::catalog::Catalog;
use crate::entity::*;
use crate::id::*;
use crate::name::Name;

/// What the member has seen.
#[derive(Debug, Clone, Copy)]
pub struct Observed<'a> {
    /// The nodes now.
    pub states: &'a NodeStates,
    /// The nodes that were up at any time.
    pub ever_up: &'a BTreeSet<NodeId>,
    /// How often each rule decided; none when nothing was counted.
    pub counters: Option<&'a RuleCounters>,
}

/// Something odd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lint {
    /// More specific rules take every address of the rule's network.
    Shadowed {
        /// The rule.
        rule: Arc<RoutingRule>,
        /// How many rules do that.
        by_count: usize,
        /// One of them.
        by: Name,
    },
    /// An older rule has the same network.
    SameNetwork {
        /// The younger rule, which is never applied.
        rule: Arc<RoutingRule>,
        /// The older one.
        older: Name,
    },
    /// The rule's group holds no address that could ever be chosen.
    Unreachable {
        /// The rule.
        rule: Arc<RoutingRule>,
        /// Its group.
        group: Name,
        /// Whether the group is empty.
        empty: bool,
    },
    /// The rule's group has no address of the family of the rule's network.
    FamilyMissing {
        /// The rule.
        rule: Arc<RoutingRule>,
        /// Its group.
        group: Name,
        /// The family.
        family: Family,
    },
    /// Every target of the rule is down or draining.
    NoLiveTarget {
        /// The rule.
        rule: Arc<RoutingRule>,
        /// Its group.
        group: Name,
    },
    /// No node is in the subclusters of a workload.
    WorkloadWithoutNodes {
        /// The rule.
        rule: Arc<WorkloadRule>,
    },
    /// Every node that serves a workload is down or draining.
    WorkloadWithoutLiveNodes {
        /// The rule.
        rule: Arc<WorkloadRule>,
    },
    /// The workload is granted to nobody.
    WorkloadGrantedToNobody {
        /// The rule.
        rule: Arc<WorkloadRule>,
    },
    /// The workload is granted, but to nobody who can log in.
    WorkloadUsableByNobody {
        /// The rule.
        rule: Arc<WorkloadRule>,
    },
    /// An enabled address is on a node that was never up.
    NeverUp {
        /// The address.
        address: Arc<NetworkAddress>,
        /// The node.
        node: Name,
    },
    /// The rule has decided nothing since the member started.
    NeverMatched {
        /// The rule.
        rule: Arc<RoutingRule>,
    },
}

impl Lint {
    /// The kind of oddity, as tables show it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Shadowed { .. } => "shadowed",
            Self::SameNetwork { .. } => "overlapping",
            Self::Unreachable { .. } | Self::WorkloadWithoutNodes { .. } => "unreachable",
            Self::FamilyMissing { .. } => "address family missing",
            Self::NoLiveTarget { .. } | Self::WorkloadWithoutLiveNodes { .. } => "no live target",
            Self::WorkloadGrantedToNobody { .. } | Self::WorkloadUsableByNobody { .. } => "workload nobody may use",
            Self::NeverUp { .. } => "node never up",
            Self::NeverMatched { .. } => "never matched",
        }
    }

    /// The kind and name of what is odd.
    pub fn subject(&self) -> (&'static str, &Name) {
        match self {
            Self::Shadowed { rule, .. }
            | Self::SameNetwork { rule, .. }
            | Self::Unreachable { rule, .. }
            | Self::FamilyMissing { rule, .. }
            | Self::NoLiveTarget { rule, .. }
            | Self::NeverMatched { rule } => ("routing rule", &rule.name),
            Self::WorkloadWithoutNodes { rule }
            | Self::WorkloadWithoutLiveNodes { rule }
            | Self::WorkloadGrantedToNobody { rule }
            | Self::WorkloadUsableByNobody { rule } => ("workload rule", &rule.name),
            Self::NeverUp { address, .. } => ("network address", &address.name),
        }
    }

    /// What can be done.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Shadowed { .. } => "Drop the rule, or narrow the more specific ones.",
            Self::SameNetwork { .. } => "Drop one of the two rules, or change its network.",
            Self::Unreachable { empty: true, .. } => "Add members with ALTER LOAD BALANCE GROUP ... ADD.",
            Self::Unreachable { empty: false, .. } => {
                "Give its nodes enabled network addresses that the group's filter holds."
            }
            Self::FamilyMissing { .. } => {
                "Add an address of that family, or make a group and a rule of its own for it."
            }
            Self::NoLiveTarget { .. } | Self::WorkloadWithoutLiveNodes { .. } => {
                "Look at NODES and NODE_STATES for the reason."
            }
            Self::WorkloadWithoutNodes { .. } => "Add nodes with ALTER SUBCLUSTER ... ADD NODE.",
            Self::WorkloadGrantedToNobody { .. } => "Grant it with GRANT USAGE ON WORKLOAD.",
            Self::WorkloadUsableByNobody { .. } => {
                "Grant the roles that hold it to users, or unlock those who have it."
            }
            Self::NeverUp { .. } => "Start the node, or disable or drop the address.",
            Self::NeverMatched { .. } => "Compare its network with CLIENT_HOSTNAME in SESSIONS.",
        }
    }
}

impl fmt::Display for Lint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shadowed { rule, by_count: 1, by } => {
                write!(f, "every address of {} is taken by the more specific rule \"{by}\"", rule.source.typed)
            }
            Self::Shadowed { rule, by_count, by } => write!(
                f,
                "every address of {} is taken by {by_count} more specific rules, \"{by}\" among them",
                rule.source.typed
            ),
            Self::SameNetwork { rule, older } => {
                write!(f, "{} is the network of the older rule \"{older}\" too, which goes first", rule.source.typed)
            }
            Self::Unreachable { group, empty: true, .. } => write!(f, "load balance group \"{group}\" is empty"),
            Self::Unreachable { group, empty: false, .. } => {
                write!(f, "load balance group \"{group}\" has no network address that can be chosen")
            }
            Self::FamilyMissing { rule, group, family } => write!(
                f,
                "{} is a network of {} clients, and load balance group \"{group}\" has no {} address",
                rule.source.typed,
                family.as_str(),
                family.as_str()
            ),
            Self::NoLiveTarget { group, .. } => {
                write!(f, "every node of load balance group \"{group}\" is down or draining")
            }
            Self::WorkloadWithoutNodes { rule } => {
                write!(f, "no node is in the subclusters of workload \"{}\"", rule.workload)
            }
            Self::WorkloadWithoutLiveNodes { rule } => {
                write!(f, "every node that serves workload \"{}\" is down or draining", rule.workload)
            }
            Self::WorkloadGrantedToNobody { rule } => {
                write!(f, "workload \"{}\" is granted to no user and no role", rule.workload)
            }
            Self::WorkloadUsableByNobody { rule } => {
                write!(
                    f,
                    "workload \"{}\" is granted only to roles that nobody has, or to users who are locked",
                    rule.workload
                )
            }
            Self::NeverUp { node, .. } => write!(f, "node \"{node}\" was never up"),
            Self::NeverMatched { .. } => f.write_str("no connection has matched the rule since the server started"),
        }
    }
}

/// What a group comes to for one family.
enum Standing {
    Live,
    NoneLive,
    FamilyMissing,
    Unreachable,
}

/// Remembers which reasons there were.
#[derive(Default)]
struct Reasons {
    draining: bool,
    family: bool,
}

impl Witness for Reasons {
    const LISTENS: bool = true;

    fn skipped(&mut self, _candidate: Candidate, skip: Skip) {
        self.draining |= skip == Skip::Draining;
        self.family |= skip == Skip::OtherFamily;
    }
}

impl Catalog {
    /// Everything odd about rules, workloads and addresses: by object, the oldest first.
    pub fn lints(&self, observed: &Observed<'_>) -> Vec<Lint> {
        let mut lints = Vec::new();
        let taken = self.lint_networks(&mut lints);
        self.lint_targets(observed, &mut lints);
        if let Some(counters) = observed.counters {
            let silent = self.routing_rules().iter().filter(|rule| counters.count(rule.id) == 0);
            // Of a rule that cannot match it has been said already.
            let silent = silent.filter(|rule| !taken.contains(&rule.id));
            lints.extend(silent.map(|rule| Lint::NeverMatched { rule: Arc::clone(rule) }));
        }
        self.lint_workloads(observed.states, &mut lints);
        for address in self.network_addresses().iter().filter(|address| address.enabled) {
            if let Some(node) = self.nodes().find(address.node)
                && !observed.ever_up.contains(&node.id)
            {
                lints.push(Lint::NeverUp { address: Arc::clone(address), node: node.name.clone() });
            }
        }
        lints
    }

    /// Rules that are never applied, because others take all that they match.
    fn lint_networks(&self, lints: &mut Vec<Lint>) -> BTreeSet<RoutingRuleId> {
        let mut oldest: BTreeMap<IpNet, &Arc<RoutingRule>> = BTreeMap::new();
        let mut found: BTreeMap<RoutingRuleId, Lint> = BTreeMap::new();
        for rule in self.routing_rules().iter() {
            let older = oldest.entry(canonical(rule.source.net)).or_insert(rule);
            if older.id != rule.id {
                let lint = Lint::SameNetwork { rule: Arc::clone(rule), older: older.name.clone() };
                found.insert(rule.id, lint);
            }
        }
        for (rule, by_count, by) in shadowed(&oldest) {
            let lint = Lint::Shadowed { rule: Arc::clone(rule), by_count, by: by.name.clone() };
            found.insert(rule.id, lint);
        }
        let taken = found.keys().copied().collect();
        lints.extend(found.into_values());
        taken
    }

    fn lint_targets(&self, observed: &Observed<'_>, lints: &mut Vec<Lint>) {
        let fleet = Fleet::new(self);
        let mut standings: BTreeMap<(LoadBalanceGroupId, Family), Standing> = BTreeMap::new();
        for rule in self.routing_rules().iter() {
            let Some(found) = self.load_balance_groups().find(rule.group) else { continue };
            let family = Family::of(canonical(rule.source.net).addr());
            let standing =
                standings.entry((found.id, family)).or_insert_with(|| standing(&fleet, found, family, observed.states));
            let (rule, group) = (Arc::clone(rule), found.name.clone());
            lints.extend(match standing {
                Standing::Live => None,
                Standing::NoneLive => Some(Lint::NoLiveTarget { rule, group }),
                Standing::FamilyMissing => Some(Lint::FamilyMissing { rule, group, family }),
                Standing::Unreachable => {
                    Some(Lint::Unreachable { rule, group, empty: found.members == GroupMembers::Empty })
                }
            });
        }
    }

    fn lint_workloads(&self, states: &NodeStates, lints: &mut Vec<Lint>) {
        let fleet = Fleet::new(self);
        let granted: BTreeSet<WorkloadRuleId> = self.workload_grants().iter().map(|grant| grant.rule).collect();
        let usable = self.workloads_of_anybody();
        for rule in self.workload_rules().iter() {
            let nodes = fleet.nodes_of_subclusters(&rule.subclusters);
            let takes =
                |node: &NodeId| states.is_up(*node) && self.nodes().find(*node).is_some_and(|node| !node.draining);
            if nodes.is_empty() {
                lints.push(Lint::WorkloadWithoutNodes { rule: Arc::clone(rule) });
            } else if !nodes.iter().any(takes) {
                lints.push(Lint::WorkloadWithoutLiveNodes { rule: Arc::clone(rule) });
            }
            if !granted.contains(&rule.id) {
                lints.push(Lint::WorkloadGrantedToNobody { rule: Arc::clone(rule) });
            } else if !usable.contains(&rule.id) {
                lints.push(Lint::WorkloadUsableByNobody { rule: Arc::clone(rule) });
            }
        }
    }

    /// The workloads that are granted to somebody who can log in, by whatever roles he can put on.
    fn workloads_of_anybody(&self) -> BTreeSet<WorkloadRuleId> {
        let users = self.users().iter().filter(|user| !user.locked);
        users
            .flat_map(|user| {
                let roles: BTreeSet<RoleId> = self.granted_roles(user.id).into_keys().collect();
                self.granted_workloads(user.id, &roles)
            })
            .map(|rule| rule.id)
            .collect()
    }
}

fn standing(fleet: &Fleet<'_>, group: &LoadBalanceGroup, family: Family, states: &NodeStates) -> Standing {
    let mut reasons = Reasons::default();
    let targets = fleet.targets_of_group(group, family, &mut reasons);
    if targets.iter().any(|target| states.is_up(target.node)) {
        Standing::Live
    } else if !targets.is_empty() || reasons.draining {
        Standing::NoneLive
    } else if reasons.family {
        Standing::FamilyMissing
    } else {
        Standing::Unreachable
    }
}

/// A network on the way to those within it.
struct Open<'a> {
    net: IpNet,
    rule: &'a Arc<RoutingRule>,
    /// How many addresses the networks right below it have.
    taken: u128,
    by_count: usize,
    by: Option<&'a Arc<RoutingRule>>,
}

/// The addresses of a network. All of IPv6 are one more than fit, and come to 0, as their sum does.
fn size(net: IpNet) -> u128 {
    1_u128.checked_shl(u32::from(net.max_prefix_len() - net.prefix_len())).unwrap_or(0)
}

/// The rules whose networks the networks of others within them fill, with how many do and one of them.
fn shadowed<'a>(
    rules: &BTreeMap<IpNet, &'a Arc<RoutingRule>>,
) -> Vec<(&'a Arc<RoutingRule>, usize, &'a Arc<RoutingRule>)> {
    let mut found = Vec::new();
    let mut open: Vec<Open<'a>> = Vec::new();
    let mut close = |closed: Open<'a>| {
        if let Some(by) = closed.by
            && closed.taken == size(closed.net)
        {
            found.push((closed.rule, closed.by_count, by));
        }
    };
    // A network comes right before those within it.
    for (net, rule) in rules {
        while let Some(last) = open.pop_if(|last| !last.net.contains(net)) {
            close(last);
        }
        if let Some(parent) = open.last_mut() {
            parent.taken = parent.taken.wrapping_add(size(*net));
            parent.by_count += 1;
            parent.by.get_or_insert(rule);
        }
        open.push(Open { net: *net, rule, taken: 0, by_count: 0, by: None });
    }
    while let Some(last) = open.pop() {
        close(last);
    }
    found
}
