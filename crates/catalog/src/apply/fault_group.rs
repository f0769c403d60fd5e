//! Fault groups (`reference/vertica-sql.md` §6.3).

use std::sync::Arc;

use super::Outcome;
use super::draft::{Draft, with};
use crate::catalog::Entity;
use crate::change::FaultGroupChange;
use crate::entity::*;
use crate::error::{CatalogError, ObjectKind};
use crate::id::*;
use crate::name::Name;

impl Draft {
    pub(super) fn create_fault_group(&mut self, name: &Name) -> Outcome {
        self.fault_group_name_free(name, None)?;
        let id = self.next_id();
        self.put(FaultGroup { id, name: name.clone(), parent: None, nodes: Vec::new() });
        Ok(())
    }

    pub(super) fn alter_fault_group(&mut self, name: &Name, change: &FaultGroupChange) -> Outcome {
        let group = self.fault_group(name)?;
        match change {
            FaultGroupChange::Rename(to) => {
                self.fault_group_name_free(to, Some(&group.name))?;
                self.put(with(&*group, |group| group.name = to.clone()));
            }
            FaultGroupChange::AddNode(name) => {
                let node = self.node(name)?;
                if let Some(holder) = self.fault_group_of(node.id).and_then(|id| self.catalog.fault_groups.find(id)) {
                    return Err(already_in(ObjectKind::Node, &node.name, holder));
                }
                self.put(with(&*group, |group| group.nodes.push(node.id)));
            }
            FaultGroupChange::DropNode(name) => {
                let node = self.node(name)?;
                if !group.nodes.contains(&node.id) {
                    return Err(not_in(ObjectKind::Node, &node.name, &group));
                }
                self.leave_fault_group(node.id);
            }
            FaultGroupChange::AddChild(name) => {
                let child = self.fault_group(name)?;
                self.refuse_child(&group, &child)?;
                self.put(with(&*child, |child| child.parent = Some(group.id)));
            }
            FaultGroupChange::DropChild(name) => {
                let child = self.fault_group(name)?;
                if child.parent != Some(group.id) {
                    return Err(not_in(ObjectKind::FaultGroup, &child.name, &group));
                }
                self.put(with(&*child, |child| child.parent = None));
            }
        }
        Ok(())
    }

    /// A fault group is in one other at most, and never in itself.
    fn refuse_child(&self, group: &FaultGroup, child: &FaultGroup) -> Outcome {
        if let Some(holder) = child.parent.and_then(|id| self.catalog.fault_groups.find(id)) {
            return Err(already_in(ObjectKind::FaultGroup, &child.name, holder));
        }
        if self.with_descendants(child.id).iter().any(|inside| inside.id == group.id) {
            return Err(CatalogError::FaultGroupCycle { group: group.name.clone(), child: child.name.clone() });
        }
        Ok(())
    }

    /// A fault group and all inside it, the outer ones first.
    fn with_descendants(&self, id: FaultGroupId) -> Vec<Arc<FaultGroup>> {
        let groups = &self.catalog.fault_groups;
        let mut found: Vec<Arc<FaultGroup>> = groups.find(id).cloned().into_iter().collect();
        let mut outer = vec![id];
        while let Some(id) = outer.pop() {
            for inner in groups.iter().filter(|group| group.parent == Some(id)) {
                outer.push(inner.id);
                found.push(Arc::clone(inner));
            }
        }
        found
    }

    /// The fault group that a node is in itself.
    pub(super) fn fault_group_of(&self, node: NodeId) -> Option<FaultGroupId> {
        self.catalog.fault_groups.iter().find(|group| group.nodes.contains(&node)).map(|group| group.id)
    }

    /// Takes a node out of its fault group, if it is in one.
    pub(super) fn leave_fault_group(&mut self, node: NodeId) {
        let group = self.fault_group_of(node).and_then(|id| self.catalog.fault_groups.find(id)).cloned();
        if let Some(group) = group {
            self.put(with(&*group, |group| group.nodes.retain(|id| *id != node)));
        }
    }

    /// The groups inside go too, and all their nodes to the parent. There is no CASCADE: a load balance group that
    /// holds one of them is always in the way.
    pub(super) fn drop_fault_group(&mut self, name: &Name, if_exists: bool) -> Outcome {
        let found = self.fault_group(name);
        let Some(group) = self.found(found, if_exists)? else { return Ok(()) };
        let dropped = self.with_descendants(group.id);
        let ids: Vec<u64> = dropped.iter().map(|group| group.id.0).collect();
        let dependents = self.groups_with(ObjectKind::FaultGroup, &ids);
        self.refuse_dependents(ObjectKind::FaultGroup, &group.name, dependents, false)?;
        if let Some(parent) = group.parent.and_then(|id| self.catalog.fault_groups.find(id)).cloned() {
            let nodes = dropped.iter().flat_map(|group| group.nodes.iter().copied());
            self.put(with(&*parent, |parent| parent.nodes.extend(nodes)));
        }
        for group in dropped {
            self.take(&Entity::FaultGroup(group));
        }
        Ok(())
    }

    pub(super) fn drop_all_fault_groups(&mut self) -> Outcome {
        let groups: Vec<Arc<FaultGroup>> = self.catalog.fault_groups.iter().cloned().collect();
        for group in &groups {
            let dependents = self.groups_with(ObjectKind::FaultGroup, &[group.id.0]);
            self.refuse_dependents(ObjectKind::FaultGroup, &group.name, dependents, false)?;
        }
        for group in groups {
            self.take(&Entity::FaultGroup(group));
        }
        Ok(())
    }
}

fn already_in(kind: ObjectKind, name: &Name, holder: &FaultGroup) -> CatalogError {
    let (name, holder) = (name.clone(), holder.name.clone());
    CatalogError::AlreadyMember { kind, name, holder_kind: ObjectKind::FaultGroup, holder }
}

fn not_in(kind: ObjectKind, name: &Name, holder: &FaultGroup) -> CatalogError {
    let (name, holder) = (name.clone(), holder.name.clone());
    CatalogError::NotMember { kind, name, holder_kind: ObjectKind::FaultGroup, holder }
}
