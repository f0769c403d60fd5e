//! Where connections can be sent at all: what a group, a subcluster or the classic policy comes to in one catalog
//! version. Whether a node is up is asked with each decision.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use super::trace::{Candidate, Skip, Witness};
use crate::catalog::Catalog;
use crate::entity::*;
use crate::id::*;

/// The address family of a client. To load balancing they are two networks (seed: IPv4 and IPv6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// IPv4, also when it came mapped into IPv6.
    Ipv4,
    /// IPv6.
    Ipv6,
}

impl Family {
    /// The family of an address.
    pub fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(_) => Self::Ipv4,
            IpAddr::V6(_) => Self::Ipv6,
        }
    }

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ipv4 => "IPv4",
            Self::Ipv6 => "IPv6",
        }
    }

    /// Whether a client of this family can connect there. A host name may lead to either.
    pub(super) fn reaches(self, host: &Host) -> bool {
        match host {
            Host::Ip(ip) => Self::of(*ip) == self,
            Host::Dns(_) => true,
        }
    }
}

/// Where a connection can be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The node.
    pub node: NodeId,
    /// The network address; none when classic balancing takes the export address.
    pub address: Option<NetworkAddressId>,
    /// Where clients reach it.
    pub host: Host,
    /// 1..=65535.
    pub port: u16,
    /// Whether a switchyard process answers there.
    pub member: bool,
}

/// Targets by the client's family.
#[derive(Debug, Default)]
pub(super) struct Pool {
    ipv4: Vec<Arc<Target>>,
    ipv6: Vec<Arc<Target>>,
}

impl Pool {
    fn of(mut targets: impl FnMut(Family) -> Vec<Arc<Target>>) -> Self {
        Self { ipv4: targets(Family::Ipv4), ipv6: targets(Family::Ipv6) }
    }

    pub(super) fn targets(&self, family: Family) -> &[Arc<Target>] {
        match family {
            Family::Ipv4 => &self.ipv4,
            Family::Ipv6 => &self.ipv6,
        }
    }
}

/// All targets of one catalog version, made by the first decision that needs them.
#[derive(Debug)]
pub(crate) struct Targets {
    /// By id.
    groups: Vec<(LoadBalanceGroupId, Policy, Pool)>,
    /// By id.
    interiors: Vec<(SubclusterId, Pool)>,
    classic: Pool,
}

impl Targets {
    pub(super) fn new(catalog: &Catalog) -> Self {
        let fleet = Fleet::new(catalog);
        let groups = catalog
            .load_balance_groups()
            .iter()
            .map(|group| (group.id, group.policy, Pool::of(|family| fleet.targets_of_group(group, family, &mut ()))));
        let interiors = catalog.subclusters().iter().map(|subcluster| {
            (subcluster.id, Pool::of(|family| fleet.interior_targets(subcluster.id, family, &mut ())))
        });
        Self {
            groups: groups.collect(),
            interiors: interiors.collect(),
            classic: Pool::of(|family| fleet.classic_targets(family, &mut ())),
        }
    }

    pub(super) fn group(&self, id: LoadBalanceGroupId) -> Option<(Policy, &Pool)> {
        let found = self.groups.binary_search_by_key(&id, |(id, ..)| *id).ok();
        found.and_then(|place| self.groups.get(place)).map(|(_, policy, pool)| (*policy, pool))
    }

    pub(super) fn interior(&self, id: SubclusterId) -> Option<&Pool> {
        let found = self.interiors.binary_search_by_key(&id, |(id, _)| *id).ok();
        found.and_then(|place| self.interiors.get(place)).map(|(_, pool)| pool)
    }

    pub(super) fn classic(&self) -> &Pool {
        &self.classic
    }
}

/// The ways from subclusters and fault groups to nodes to addresses.
pub(super) struct Fleet<'a> {
    catalog: &'a Catalog,
    /// The oldest first.
    addresses: BTreeMap<NodeId, Vec<&'a NetworkAddress>>,
    nodes: BTreeMap<SubclusterId, Vec<NodeId>>,
    children: BTreeMap<FaultGroupId, Vec<FaultGroupId>>,
}

impl<'a> Fleet<'a> {
    pub(super) fn new(catalog: &'a Catalog) -> Self {
        let mut fleet = Self { catalog, addresses: BTreeMap::new(), nodes: BTreeMap::new(), children: BTreeMap::new() };
        for address in catalog.network_addresses().iter() {
            fleet.addresses.entry(address.node).or_default().push(address);
        }
        for node in catalog.nodes().iter() {
            fleet.nodes.entry(node.subcluster).or_default().push(node.id);
        }
        for group in catalog.fault_groups().iter() {
            if let Some(parent) = group.parent {
                fleet.children.entry(parent).or_default().push(group.id);
            }
        }
        fleet
    }

    /// The enabled addresses of a group that a client of this family can use, on nodes that do not drain: those listed,
    /// in their order, or one of each node of its fault groups or subclusters, the oldest that the filter lets through.
    pub(super) fn targets_of_group(
        &self,
        group: &LoadBalanceGroup,
        family: Family,
        witness: &mut impl Witness,
    ) -> Vec<Arc<Target>> {
        match &group.members {
            GroupMembers::Empty => Vec::new(),
            GroupMembers::Addresses(ids) => {
                let addresses = ids.iter().filter_map(|id| self.catalog.network_addresses().find(*id));
                addresses.filter_map(|address| self.target(address, family, None, witness)).collect()
            }
            GroupMembers::FaultGroups(ids) => {
                self.oldest_of_each(self.nodes_of_fault_groups(ids), family, group.filter.as_ref(), witness)
            }
            GroupMembers::Subclusters(ids) => {
                self.oldest_of_each(self.nodes_of_subclusters(ids), family, group.filter.as_ref(), witness)
            }
        }
    }

    /// The nodes of fault groups and of the groups in them.
    pub(super) fn nodes_of_fault_groups(&self, groups: &[FaultGroupId]) -> BTreeSet<NodeId> {
        let (mut seen, mut open, mut nodes) = (BTreeSet::new(), groups.to_vec(), BTreeSet::new());
        while let Some(id) = open.pop() {
            if !seen.insert(id) {
                continue;
            }
            nodes.extend(self.catalog.fault_groups().find(id).iter().flat_map(|group| &group.nodes));
            open.extend(self.children.get(&id).into_iter().flatten());
        }
        nodes
    }

    pub(super) fn nodes_of_subclusters(&self, subclusters: &[SubclusterId]) -> BTreeSet<NodeId> {
        subclusters.iter().filter_map(|id| self.nodes.get(id)).flatten().copied().collect()
    }

    /// The interior rule's: the oldest enabled address of each node of the subcluster.
    pub(super) fn interior_targets(
        &self,
        subcluster: SubclusterId,
        family: Family,
        witness: &mut impl Witness,
    ) -> Vec<Arc<Target>> {
        self.oldest_of_each(self.nodes_of_subclusters(&[subcluster]), family, None, witness)
    }

    /// The classic policy's: the export address of every node, at the node's own port.
    pub(super) fn classic_targets(&self, family: Family, witness: &mut impl Witness) -> Vec<Arc<Target>> {
        let mut targets = Vec::new();
        for node in self.catalog.nodes().iter() {
            let host = self.catalog.export_address(node);
            let skip =
                if !family.reaches(&host) { Some(Skip::OtherFamily) } else { node.draining.then_some(Skip::Draining) };
            let target = Target { node: node.id, address: None, host, port: node.port, member: is_member(node) };
            match skip {
                None => targets.push(Arc::new(target)),
                Some(skip) => witness.skipped(Candidate::from(&target), skip),
            }
        }
        targets
    }

    fn oldest_of_each(
        &self,
        nodes: BTreeSet<NodeId>,
        family: Family,
        filter: Option<&Network>,
        witness: &mut impl Witness,
    ) -> Vec<Arc<Target>> {
        let mut targets = Vec::new();
        for node in nodes {
            let Some(addresses) = self.addresses.get(&node) else {
                witness.skipped(Candidate::without_address(node), Skip::NoAddress);
                continue;
            };
            let mut found = None;
            for address in addresses {
                let Some(target) = self.target(address, family, filter, witness) else { continue };
                match found {
                    None => found = Some(target),
                    Some(_) => witness.skipped(Candidate::from(&*target), Skip::NotOldest),
                }
            }
            targets.extend(found);
        }
        targets
    }

    /// An address as a target, or why it is none.
    fn target(
        &self,
        address: &NetworkAddress,
        family: Family,
        filter: Option<&Network>,
        witness: &mut impl Witness,
    ) -> Option<Arc<Target>> {
        let node = self.catalog.nodes().find(address.node)?;
        let skip = if !address.enabled {
            Some(Skip::Disabled)
        } else if let Some(filter) = filter
            && !is_in(&address.host, filter)
        {
            Some(if matches!(address.host, Host::Dns(_)) { Skip::HostName } else { Skip::NotInFilter })
        } else if !family.reaches(&address.host) {
            Some(Skip::OtherFamily)
        } else {
            node.draining.then_some(Skip::Draining)
        };
        let target = Target {
            node: node.id,
            address: Some(address.id),
            host: address.host.clone(),
            port: address.port,
            member: is_member(node),
        };
        match skip {
            None => Some(Arc::new(target)),
            Some(skip) => {
                witness.skipped(Candidate::from(&target), skip);
                None
            }
        }
    }
}

fn is_member(node: &Node) -> bool {
    matches!(node.kind, NodeKind::Member { .. })
}

/// A host name is in no network: nothing is resolved here.
fn is_in(host: &Host, filter: &Network) -> bool {
    matches!(host, Host::Ip(ip) if super::rules::canonical(filter.net).contains(&ip.to_canonical()))
}

impl Catalog {
    /// The address that classic balancing gives to clients: the node's export interface, else an interface of the node
    /// in the database's export subnet, else the node's own address (`reference/vertica-sql.md` §6.2).
    pub fn export_address(&self, node: &Node) -> Host {
        if let Some(interface) = node.export_interface.and_then(|id| self.network_interfaces().find(id)) {
            return interface.host.clone();
        }
        let own = || node.host.parse().map_or_else(|_| Host::Dns(node.host.clone()), Host::Ip);
        let Some(subnet) = self.database().export_subnet.and_then(|id| self.subnets().find(id)) else { return own() };
        let mut interfaces = self.network_interfaces().iter().filter(|interface| interface.node == node.id);
        let in_subnet =
            interfaces.find(|interface| matches!(interface.host, Host::Ip(ip) if is_in_prefix(ip, subnet.prefix)));
        in_subnet.map_or_else(own, |interface| interface.host.clone())
    }
}

/// A subnet is a prefix without length: its trailing zero octets (or groups) are the host part.
fn is_in_prefix(address: IpAddr, prefix: IpAddr) -> bool {
    fn matches(address: &[u8], prefix: &[u8]) -> bool {
        let length = prefix.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        address.iter().zip(prefix).take(length).all(|(one, other)| one == other)
    }
    match (address, prefix) {
        (IpAddr::V4(address), IpAddr::V4(prefix)) => matches(&address.octets(), &prefix.octets()),
        (IpAddr::V6(address), IpAddr::V6(prefix)) => matches(&address.octets(), &prefix.octets()),
        _ => false,
    }
}
