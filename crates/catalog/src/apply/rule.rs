//! Routing rules of both types, and grants on workloads (`reference/vertica-sql.md` §3, §4.1).

use std::sync::Arc;

use super::draft::{AnyRule, Draft, distinct, with};
use super::{Notice, Outcome};
use crate::catalog::Entity;
use crate::change::{RuleChange, RuleTarget};
use crate::entity::*;
use crate::error::{CatalogError, ObjectKind};
use crate::id::*;
use crate::name::Name;

impl RuleChange {
    /// The words of the statement.
    fn words(&self) -> &'static str {
        match self {
            Self::Rename(_) => "RENAME TO",
            Self::Route(_) => "SET ROUTE",
            Self::Group(_) => "SET GROUP",
            Self::Workload(_) => "SET WORKLOAD",
            Self::Subclusters(_) => "SET SUBCLUSTER",
            Self::Priority(_) => "SET PRIORITY",
            Self::AddSubclusters(_) => "ADD SUBCLUSTER",
            Self::RemoveSubclusters(_) => "REMOVE SUBCLUSTER",
        }
    }
}

impl Draft {
    /// Rules of both types share their names.
    fn rule_name_free(&self, name: &Name, own: Option<&Name>) -> Outcome {
        let network = self.catalog.routing_rules.named(name).map(|rule| &rule.name);
        let workload = self.catalog.workload_rules.named(name).map(|rule| &rule.name);
        match network.or(workload) {
            Some(other) if own != Some(other) => {
                Err(CatalogError::Exists { kind: ObjectKind::RoutingRule, name: name.clone() })
            }
            _ => Ok(()),
        }
    }

    fn workload_free(&self, workload: &Name, own: Option<WorkloadRuleId>) -> Outcome {
        match self.catalog.rule_of_workload(workload) {
            Some(rule) if own != Some(rule.id) => {
                Err(CatalogError::Exists { kind: ObjectKind::Workload, name: workload.clone() })
            }
            _ => Ok(()),
        }
    }

    fn subcluster_ids(&self, names: &[Name]) -> Result<Vec<SubclusterId>, CatalogError> {
        distinct(ObjectKind::Subcluster, names)?;
        names.iter().map(|name| Ok(self.subcluster(name)?.id)).collect()
    }

    pub(super) fn create_rule(&mut self, name: &Name, source: &Network, group: &Name) -> Outcome {
        self.rule_name_free(name, None)?;
        let group = self.load_balance_group(group)?.id;
        let id = self.next_id();
        self.put(RoutingRule { id, name: name.clone(), source: source.clone(), group });
        Ok(())
    }

    pub(super) fn create_workload_rule(
        &mut self,
        name: &Option<Name>,
        workload: &Name,
        subclusters: &[Name],
        priority: u32,
    ) -> Outcome {
        let name = name.as_ref().unwrap_or(workload);
        self.workload_free(workload, None)?;
        self.rule_name_free(name, None)?;
        let subclusters = self.subcluster_ids(subclusters)?;
        if subclusters.is_empty() {
            return Err(CatalogError::LastSubcluster { rule: name.clone() });
        }
        let id = self.next_id();
        self.put(WorkloadRule { id, name: name.clone(), workload: workload.clone(), subclusters, priority });
        Ok(())
    }

    fn rule(&self, target: &RuleTarget) -> Result<AnyRule, CatalogError> {
        match target {
            RuleTarget::Named(name) => self.rule_named(name),
            RuleTarget::Workload(workload) => self.rule_of_workload(workload).map(AnyRule::Workload),
        }
    }

    pub(super) fn alter_rule(&mut self, target: &RuleTarget, change: &RuleChange) -> Outcome {
        match self.rule(target)? {
            AnyRule::Network(rule) => self.alter_network_rule(Arc::unwrap_or_clone(rule), change),
            AnyRule::Workload(rule) => self.alter_workload_rule(Arc::unwrap_or_clone(rule), change),
        }
    }

    fn alter_network_rule(&mut self, mut rule: RoutingRule, change: &RuleChange) -> Outcome {
        match change {
            RuleChange::Rename(to) => {
                self.rule_name_free(to, Some(&rule.name))?;
                rule.name = to.clone();
            }
            RuleChange::Route(source) => rule.source = source.clone(),
            RuleChange::Group(group) => rule.group = self.load_balance_group(group)?.id,
            RuleChange::Workload(_)
            | RuleChange::Subclusters(_)
            | RuleChange::Priority(_)
            | RuleChange::AddSubclusters(_)
            | RuleChange::RemoveSubclusters(_) => {
                return Err(CatalogError::RuleType { rule: rule.name, workload: false, action: change.words() });
            }
        }
        self.put(rule);
        Ok(())
    }

    fn alter_workload_rule(&mut self, mut rule: WorkloadRule, change: &RuleChange) -> Outcome {
        match change {
            RuleChange::Rename(to) => {
                self.rule_name_free(to, Some(&rule.name))?;
                rule.name = to.clone();
            }
            RuleChange::Workload(workload) => {
                self.workload_free(workload, Some(rule.id))?;
                rule.workload = workload.clone();
            }
            RuleChange::Priority(priority) => rule.priority = *priority,
            RuleChange::Subclusters(names) => rule.subclusters = self.subcluster_ids(names)?,
            RuleChange::AddSubclusters(names) => {
                let added = self.subcluster_ids(names)?;
                refuse_subclusters(true, &rule, &added, names)?;
                rule.subclusters.extend(added);
            }
            RuleChange::RemoveSubclusters(names) => {
                let removed = self.subcluster_ids(names)?;
                refuse_subclusters(false, &rule, &removed, names)?;
                rule.subclusters.retain(|id| !removed.contains(id));
            }
            RuleChange::Route(_) | RuleChange::Group(_) => {
                return Err(CatalogError::RuleType { rule: rule.name, workload: true, action: change.words() });
            }
        }
        if rule.subclusters.is_empty() {
            return Err(CatalogError::LastSubcluster { rule: rule.name });
        }
        self.put(rule);
        Ok(())
    }

    pub(super) fn drop_rule(&mut self, target: &RuleTarget, if_exists: bool) -> Outcome {
        let found = self.rule(target);
        match self.found(found, if_exists)? {
            Some(AnyRule::Network(rule)) => self.take(&Entity::RoutingRule(rule)),
            Some(AnyRule::Workload(rule)) => self.take_workload_rule(rule),
            None => {}
        }
        Ok(())
    }

    /// Takes a workload rule out, with the grants on it.
    fn take_workload_rule(&mut self, rule: Arc<WorkloadRule>) {
        let grants: Vec<Arc<WorkloadGrant>> =
            self.catalog.workload_grants.iter().filter(|grant| grant.rule == rule.id).cloned().collect();
        for grant in grants {
            self.take(&Entity::WorkloadGrant(grant));
        }
        self.take(&Entity::WorkloadRule(rule));
    }

    /// The workload rules that name a subcluster.
    pub(super) fn workload_rules_to(&self, subcluster: SubclusterId) -> Vec<Arc<WorkloadRule>> {
        let rules = self.catalog.workload_rules.iter();
        rules.filter(|rule| rule.subclusters.contains(&subcluster)).cloned().collect()
    }

    /// Takes a subcluster out of the workload rules. One that has no other left is dropped.
    pub(super) fn leave_workload_rules(&mut self, subcluster: SubclusterId) {
        for rule in self.workload_rules_to(subcluster) {
            let left = with(&*rule, |rule| rule.subclusters.retain(|id| *id != subcluster));
            if left.subclusters.is_empty() {
                self.take_workload_rule(rule);
            } else {
                self.put(left);
            }
        }
    }

    pub(super) fn grant_workload(&mut self, workload: &Name, grantees: &[Name], grantor: &Name) -> Outcome {
        let (rule, grantor) = (self.rule_of_workload(workload)?, self.user(grantor)?.id);
        for (grantee, name) in self.grantees(grantees)? {
            if self.catalog.workload_grant(grantee, rule.id).is_some() {
                let (kind, grantee) = (ObjectKind::Workload, name.clone());
                self.notices.push(Notice::AlreadyGranted { kind, name: rule.workload.clone(), grantee });
                continue;
            }
            let id = self.next_id();
            self.put(WorkloadGrant { id, rule: rule.id, grantee, grantor });
        }
        Ok(())
    }

    pub(super) fn revoke_workload(&mut self, workload: &Name, grantees: &[Name]) -> Outcome {
        let rule = self.rule_of_workload(workload)?;
        for (grantee, name) in self.grantees(grantees)? {
            let Some(grant) = self.catalog.workload_grant(grantee, rule.id).cloned() else {
                let (kind, grantee) = (ObjectKind::Workload, name.clone());
                self.notices.push(Notice::NotGranted { kind, name: rule.workload.clone(), grantee });
                continue;
            };
            self.take(&Entity::WorkloadGrant(grant));
        }
        Ok(())
    }
}

/// Refuses the first subcluster that is, or is not, in the rule.
fn refuse_subclusters(is_in: bool, rule: &WorkloadRule, ids: &[SubclusterId], names: &[Name]) -> Outcome {
    let Some((_, name)) = ids.iter().zip(names).find(|(id, _)| rule.subclusters.contains(id) == is_in) else {
        return Ok(());
    };
    let (kind, name, holder) = (ObjectKind::Subcluster, name.clone(), rule.name.clone());
    let holder_kind = ObjectKind::RoutingRule;
    Err(if is_in {
        CatalogError::AlreadyMember { kind, name, holder_kind, holder }
    } else {
        CatalogError::NotMember { kind, name, holder_kind, holder }
    })
}
