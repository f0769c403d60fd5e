//! Load balance groups (`reference/vertica-sql.md` §2).

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Outcome;
use super::draft::{Draft, distinct, with};
use crate::catalog::Entity;
use crate::change::{GroupChange, GroupSource};
use crate::entity::*;
use crate::error::{CatalogError, ObjectKind};
use crate::id::*;
use crate::name::Name;

impl GroupMembers {
    /// The kind of the members, if there are any, and their ids.
    fn parts(&self) -> (Option<ObjectKind>, Vec<u64>) {
        match self {
            Self::Empty => (None, Vec::new()),
            Self::Addresses(ids) => (Some(ObjectKind::NetworkAddress), ids.iter().map(|id| id.0).collect()),
            Self::FaultGroups(ids) => (Some(ObjectKind::FaultGroup), ids.iter().map(|id| id.0).collect()),
            Self::Subclusters(ids) => (Some(ObjectKind::Subcluster), ids.iter().map(|id| id.0).collect()),
        }
    }

    /// Members of one kind: addresses, fault groups, or else subclusters.
    fn of(kind: ObjectKind, ids: Vec<u64>) -> Self {
        match kind {
            _ if ids.is_empty() => Self::Empty,
            ObjectKind::NetworkAddress => Self::Addresses(ids.into_iter().map(NetworkAddressId).collect()),
            ObjectKind::FaultGroup => Self::FaultGroups(ids.into_iter().map(FaultGroupId).collect()),
            _ => Self::Subclusters(ids.into_iter().map(SubclusterId).collect()),
        }
    }
}

/// What a statement names: a kind, names of it, and their ids in the same order.
struct Source<'a> {
    kind: ObjectKind,
    names: &'a [Name],
    ids: Vec<u64>,
}

impl Source<'_> {
    /// The error that `make` makes of the first one that is, or is not, in the group.
    fn refuse(&self, is_in: bool, group: &LoadBalanceGroup, ids: &[u64]) -> Outcome {
        let Some((_, name)) = self.ids.iter().zip(self.names).find(|(id, _)| ids.contains(id) == is_in) else {
            return Ok(());
        };
        let (kind, name, holder) = (self.kind, name.clone(), group.name.clone());
        let holder_kind = ObjectKind::LoadBalanceGroup;
        Err(if is_in {
            CatalogError::AlreadyMember { kind, name, holder_kind, holder }
        } else {
            CatalogError::NotMember { kind, name, holder_kind, holder }
        })
    }
}

impl Draft {
    fn source<'a>(&self, source: &'a GroupSource) -> Result<Source<'a>, CatalogError> {
        let (kind, names) = match source {
            GroupSource::Addresses(names) => (ObjectKind::NetworkAddress, names),
            GroupSource::FaultGroups(names) => (ObjectKind::FaultGroup, names),
            GroupSource::Subclusters(names) => (ObjectKind::Subcluster, names),
        };
        distinct(kind, names)?;
        let id = |name: &Name| match source {
            GroupSource::Addresses(_) => self.network_address(name).map(|address| address.id.0),
            GroupSource::FaultGroups(_) => self.fault_group(name).map(|group| group.id.0),
            GroupSource::Subclusters(_) => self.subcluster(name).map(|subcluster| subcluster.id.0),
        };
        Ok(Source { kind, names, ids: names.iter().map(id).collect::<Result<_, _>>()? })
    }

    /// Refuses two addresses of one node.
    fn check_one_per_node(&self, group: &Name, ids: &[u64]) -> Outcome {
        let mut nodes = BTreeSet::new();
        for address in ids.iter().filter_map(|id| self.catalog.network_addresses.find(NetworkAddressId(*id))) {
            if !nodes.insert(address.node) {
                let node = self.catalog.nodes.find(address.node).map_or(&address.name, |node| &node.name);
                return Err(CatalogError::NodeDuplicate { group: group.clone(), node: node.clone() });
            }
        }
        Ok(())
    }

    pub(super) fn create_group(
        &mut self,
        name: &Name,
        source: &GroupSource,
        filter: &Option<Network>,
        policy: Policy,
    ) -> Outcome {
        self.load_balance_group_name_free(name, None)?;
        let source = self.source(source)?;
        if source.ids.is_empty() {
            return Err(CatalogError::NoMembers { group: name.clone() });
        }
        match (source.kind, filter) {
            (ObjectKind::NetworkAddress, None) => self.check_one_per_node(name, &source.ids)?,
            (ObjectKind::NetworkAddress, Some(_)) => return Err(CatalogError::FilterForbidden { group: name.clone() }),
            (_, None) => return Err(CatalogError::FilterMissing { group: name.clone() }),
            (_, Some(_)) => {}
        }
        let (id, members) = (self.next_id(), GroupMembers::of(source.kind, source.ids));
        self.put(LoadBalanceGroup { id, name: name.clone(), policy, members, filter: filter.clone() });
        Ok(())
    }

    pub(super) fn alter_group(&mut self, name: &Name, change: &GroupChange) -> Outcome {
        let mut group = Arc::unwrap_or_clone(self.load_balance_group(name)?);
        match change {
            GroupChange::Rename(to) => {
                self.load_balance_group_name_free(to, Some(&group.name))?;
                group.name = to.clone();
            }
            GroupChange::Filter(_) if matches!(group.members, GroupMembers::Addresses(_)) => {
                return Err(CatalogError::FilterForbidden { group: group.name });
            }
            GroupChange::Filter(filter) => group.filter = Some(filter.clone()),
            GroupChange::Policy(policy) => group.policy = *policy,
            GroupChange::Add(source) => {
                let source = self.source(source)?;
                self.add_members(&mut group, &source)?;
            }
            GroupChange::Drop(source) => {
                let source = self.source(source)?;
                let (holds, mut ids) = group.members.parts();
                if holds.is_some_and(|kind| kind != source.kind) {
                    ids.clear();
                }
                source.refuse(false, &group, &ids)?;
                ids.retain(|id| !source.ids.contains(id));
                // The filter stays: the group may get members of the same kind again.
                group.members = GroupMembers::of(source.kind, ids);
            }
        }
        self.put(group);
        Ok(())
    }

    fn add_members(&self, group: &mut LoadBalanceGroup, source: &Source<'_>) -> Outcome {
        let (holds, mut ids) = group.members.parts();
        if let Some(holds) = holds
            && holds != source.kind
        {
            return Err(CatalogError::GroupKind { group: group.name.clone(), holds, given: source.kind });
        }
        source.refuse(true, group, &ids)?;
        ids.extend(&source.ids);
        if source.kind == ObjectKind::NetworkAddress {
            self.check_one_per_node(&group.name, &ids)?;
            // Left over from when the group held another kind.
            group.filter = None;
        } else if group.filter.is_none() {
            return Err(CatalogError::FilterMissing { group: group.name.clone() });
        }
        group.members = GroupMembers::of(source.kind, ids);
        Ok(())
    }

    pub(super) fn drop_group(&mut self, name: &Name, if_exists: bool, cascade: bool) -> Outcome {
        let found = self.load_balance_group(name);
        let Some(group) = self.found(found, if_exists)? else { return Ok(()) };
        let rules: Vec<Arc<RoutingRule>> =
            self.catalog.routing_rules.iter().filter(|rule| rule.group == group.id).cloned().collect();
        let dependents = rules.iter().map(|rule| (ObjectKind::RoutingRule, rule.name.clone())).collect();
        self.refuse_dependents(ObjectKind::LoadBalanceGroup, &group.name, dependents, cascade)?;
        for rule in rules {
            self.take(&Entity::RoutingRule(rule));
        }
        self.take(&Entity::LoadBalanceGroup(group));
        Ok(())
    }

    /// The load balance groups that hold any of these.
    pub(super) fn groups_with(&self, kind: ObjectKind, ids: &[u64]) -> Vec<(ObjectKind, Name)> {
        let holds = |group: &&Arc<LoadBalanceGroup>| {
            let (holds, members) = group.members.parts();
            holds == Some(kind) && members.iter().any(|id| ids.contains(id))
        };
        let groups = self.catalog.load_balance_groups.iter().filter(holds);
        groups.map(|group| (ObjectKind::LoadBalanceGroup, group.name.clone())).collect()
    }

    /// Takes these out of all load balance groups, which may become empty.
    pub(super) fn leave_groups(&mut self, kind: ObjectKind, ids: &[u64]) {
        let groups: Vec<Arc<LoadBalanceGroup>> = self.catalog.load_balance_groups.iter().cloned().collect();
        for group in groups {
            let (holds, mut members) = group.members.parts();
            let before = members.len();
            members.retain(|id| !ids.contains(id));
            if holds == Some(kind) && members.len() < before {
                self.put(with(&*group, |group| group.members = GroupMembers::of(kind, members)));
            }
        }
    }
}
