//! Subclusters (`reference/vertica-sql.md` §6.4).

use std::sync::Arc;

use super::Outcome;
use super::draft::{Draft, distinct, with};
use crate::catalog::Entity;
use crate::change::SubclusterChange;
use crate::entity::*;
use crate::error::{CatalogError, ObjectKind};
use crate::id::*;
use crate::name::Name;

impl Draft {
    pub(super) fn create_subcluster(&mut self, name: &Name, primary: bool) -> Outcome {
        self.subcluster_name_free(name, None)?;
        let id = self.next_id();
        self.put(Subcluster { id, name: name.clone(), primary });
        Ok(())
    }

    pub(super) fn alter_subcluster(&mut self, name: &Name, change: &SubclusterChange) -> Outcome {
        let mut subcluster = Arc::unwrap_or_clone(self.subcluster(name)?);
        match change {
            SubclusterChange::Rename(to) => {
                self.subcluster_name_free(to, Some(&subcluster.name))?;
                subcluster.name = to.clone();
                self.put(subcluster);
            }
            SubclusterChange::SetDefault => {
                self.put(with(self.catalog.database(), |database| database.default_subcluster = subcluster.id));
            }
            SubclusterChange::AddNodes(names) => self.add_nodes(&subcluster, names)?,
            SubclusterChange::DropNodes(names) => self.drop_nodes(&subcluster, names)?,
            SubclusterChange::Primary(primary) => {
                if !primary {
                    self.refuse_last_primary(&subcluster)?;
                }
                subcluster.primary = *primary;
                self.put(subcluster);
            }
        }
        Ok(())
    }

    fn refuse_last_primary(&self, subcluster: &Subcluster) -> Outcome {
        let is_another = |other: &Arc<Subcluster>| other.primary && other.id != subcluster.id;
        if subcluster.primary && !self.catalog.subclusters.iter().any(is_another) {
            return Err(CatalogError::LastPrimary { subcluster: subcluster.name.clone() });
        }
        Ok(())
    }

    fn add_nodes(&mut self, subcluster: &Subcluster, names: &[Name]) -> Outcome {
        distinct(ObjectKind::Node, names)?;
        for name in names {
            let node = self.node(name)?;
            if node.subcluster == subcluster.id {
                let (kind, name, holder) = (ObjectKind::Node, node.name.clone(), subcluster.name.clone());
                let holder_kind = ObjectKind::Subcluster;
                return Err(CatalogError::AlreadyMember { kind, name, holder_kind, holder });
            }
            self.put(with(&*node, |node| node.subcluster = subcluster.id));
        }
        Ok(())
    }

    fn drop_nodes(&mut self, subcluster: &Subcluster, names: &[Name]) -> Outcome {
        distinct(ObjectKind::Node, names)?;
        let default = self.catalog.database.default_subcluster;
        for name in names {
            let node = self.node(name)?;
            if node.subcluster != subcluster.id {
                let (kind, name, holder) = (ObjectKind::Node, node.name.clone(), subcluster.name.clone());
                let holder_kind = ObjectKind::Subcluster;
                return Err(CatalogError::NotMember { kind, name, holder_kind, holder });
            }
            if subcluster.id == default {
                let (node, subcluster) = (node.name.clone(), subcluster.name.clone());
                return Err(CatalogError::DefaultSubclusterNode { node, subcluster });
            }
            self.put(with(&*node, |node| node.subcluster = default));
        }
        Ok(())
    }

    fn nodes_in(&self, subcluster: SubclusterId) -> Vec<Arc<Node>> {
        self.catalog.nodes.iter().filter(|node| node.subcluster == subcluster).cloned().collect()
    }

    pub(super) fn drop_subcluster(&mut self, name: &Name, if_exists: bool, cascade: bool) -> Outcome {
        let found = self.subcluster(name);
        let Some(subcluster) = self.found(found, if_exists)? else { return Ok(()) };
        let default = self.catalog.database.default_subcluster;
        if subcluster.id == default {
            let (kind, name) = (ObjectKind::Subcluster, subcluster.name.clone());
            return Err(CatalogError::Protected { kind, name, action: "dropped" });
        }
        self.refuse_last_primary(&subcluster)?;
        let nodes = self.nodes_in(subcluster.id);
        let mut dependents: Vec<_> = nodes.iter().map(|node| (ObjectKind::Node, node.name.clone())).collect();
        dependents.extend(self.groups_with(ObjectKind::Subcluster, &[subcluster.id.0]));
        let rules = self.workload_rules_to(subcluster.id);
        dependents.extend(rules.iter().map(|rule| (ObjectKind::RoutingRule, rule.name.clone())));
        self.refuse_dependents(ObjectKind::Subcluster, &subcluster.name, dependents, cascade)?;
        for node in nodes {
            self.put(with(&*node, |node| node.subcluster = default));
        }
        self.leave_groups(ObjectKind::Subcluster, &[subcluster.id.0]);
        self.leave_workload_rules(subcluster.id);
        self.take(&Entity::Subcluster(subcluster));
        Ok(())
    }

    pub(super) fn drain_subcluster(&mut self, name: &Option<Name>, draining: bool) -> Outcome {
        let subcluster = name.as_ref().map(|name| self.subcluster(name)).transpose()?.map(|found| found.id);
        let nodes: Vec<Arc<Node>> = self.catalog.nodes.iter().cloned().collect();
        for node in nodes.into_iter().filter(|node| subcluster.is_none_or(|id| node.subcluster == id)) {
            if node.draining != draining {
                self.put(with(&*node, |node| {
                    node.draining = draining;
                    node.drain = None;
                }));
            }
        }
        Ok(())
    }
}
