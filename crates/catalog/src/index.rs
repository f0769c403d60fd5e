//! Ways to find entities other than by id and name. Derived: nothing here is stored.

use std::fmt;
use std::sync::{Arc, OnceLock};

use imbl::OrdMap;

use crate::catalog::{Catalog, Entity};
use crate::entity::*;
use crate::id::*;
use crate::name::Name;
use crate::routing::{RuleIndex, Targets};

/// The derived ways to find entities. A clone is cheap.
#[derive(Clone, Default)]
pub(crate) struct Index {
    pub(crate) workloads: OrdMap<Name, WorkloadRuleId>,
    role_grants: OrdMap<(Grantee, RoleId), RoleGrantId>,
    workload_grants: OrdMap<(Grantee, WorkloadRuleId), WorkloadGrantId>,
    authentication_grants: OrdMap<(Grantee, AuthenticationId), AuthenticationGrantId>,
    user_mappings: OrdMap<(Option<UserId>, Option<NodeId>), UserMappingId>,
    settings: OrdMap<(SettingLevel, String), SettingId>,
    shards: OrdMap<(TableGroupId, u32), ShardId>,
    pub(crate) rules: RuleIndex,
    /// Shared by all versions with the same nodes, addresses and groups.
    pub(crate) targets: Arc<OnceLock<Targets>>,
    /// How often a commit before this version touched load balancing, and whether the changes since do.
    balancing: (u64, bool),
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index").finish_non_exhaustive()
    }
}

impl Index {
    pub(crate) fn learn(&mut self, entity: &Entity) {
        self.touch_balancing(entity);
        match entity {
            Entity::RoutingRule(rule) => self.rules.insert(rule),
            Entity::WorkloadRule(rule) => {
                // Removed first: the map would keep the old spelling of a key that compares equal.
                self.workloads.remove(&rule.workload);
                self.workloads.insert(rule.workload.clone(), rule.id);
            }
            Entity::RoleGrant(grant) => {
                self.role_grants.insert((grant.grantee, grant.role), grant.id);
            }
            Entity::WorkloadGrant(grant) => {
                self.workload_grants.insert((grant.grantee, grant.rule), grant.id);
            }
            Entity::AuthenticationGrant(grant) => {
                self.authentication_grants.insert((grant.grantee, grant.authentication), grant.id);
            }
            Entity::UserMapping(mapping) => {
                self.user_mappings.insert((mapping.user, mapping.node), mapping.id);
            }
            Entity::Setting(setting) => {
                self.settings.insert((setting.level, setting.name.clone()), setting.id);
            }
            Entity::Shard(shard) => {
                self.shards.insert((shard.table_group, shard.number), shard.id);
            }
            _ => {}
        }
    }

    pub(crate) fn forget(&mut self, entity: &Entity) {
        self.touch_balancing(entity);
        match entity {
            Entity::RoutingRule(rule) => self.rules.remove(rule),
            Entity::WorkloadRule(rule) => forget(&mut self.workloads, &rule.workload, rule.id),
            Entity::RoleGrant(grant) => forget(&mut self.role_grants, &(grant.grantee, grant.role), grant.id),
            Entity::WorkloadGrant(grant) => forget(&mut self.workload_grants, &(grant.grantee, grant.rule), grant.id),
            Entity::AuthenticationGrant(grant) => {
                forget(&mut self.authentication_grants, &(grant.grantee, grant.authentication), grant.id);
            }
            Entity::UserMapping(mapping) => {
                forget(&mut self.user_mappings, &(mapping.user, mapping.node), mapping.id);
            }
            Entity::Setting(setting) => forget(&mut self.settings, &(setting.level, setting.name.clone()), setting.id),
            Entity::Shard(shard) => forget(&mut self.shards, &(shard.table_group, shard.number), shard.id),
            _ => {}
        }
    }
}

impl Index {
    /// What load balancing depends on: rules, and what leads from a group to an address.
    fn touch_balancing(&mut self, entity: &Entity) {
        match entity {
            Entity::RoutingRule(_) => self.balancing.1 = true,
            Entity::Database(_)
            | Entity::Node(_)
            | Entity::Subcluster(_)
            | Entity::FaultGroup(_)
            | Entity::NetworkAddress(_)
            | Entity::NetworkInterface(_)
            | Entity::Subnet(_)
            | Entity::LoadBalanceGroup(_) => {
                self.balancing.1 = true;
                // Never emptied in place: a version that shares it may be about to fill it.
                self.targets = Arc::default();
            }
            _ => {}
        }
    }

    /// A version has been made of the changes so far.
    pub(crate) fn settle(&mut self) {
        let (version, touched) = self.balancing;
        self.balancing = (version + u64::from(touched), false);
    }

    /// The first version is 1.
    pub(crate) fn balancing_version(&self) -> u64 {
        self.balancing.0.max(1)
    }
}

/// Forgets a key, unless another entity has taken it: so that deltas can be applied in any order.
fn forget<K: Ord + Clone, I: Eq + Clone>(map: &mut OrdMap<K, I>, key: &K, id: I) {
    if map.get(key) == Some(&id) {
        map.remove(key);
    }
}

impl Catalog {
    /// The rule of a workload.
    pub fn rule_of_workload(&self, workload: &Name) -> Option<&Arc<WorkloadRule>> {
        self.index.workloads.get(workload).and_then(|id| self.workload_rules.find(*id))
    }

    /// The roles granted to one grantee directly.
    pub fn role_grants_of(&self, grantee: Grantee) -> impl Iterator<Item = &Arc<RoleGrant>> {
        let range = (grantee, RoleId(u64::MIN))..=(grantee, RoleId(u64::MAX));
        self.index.role_grants.range(range).filter_map(|(_, id)| self.role_grants.find(*id))
    }

    /// The grant of one role to one grantee.
    pub fn role_grant(&self, grantee: Grantee, role: RoleId) -> Option<&Arc<RoleGrant>> {
        self.index.role_grants.get(&(grantee, role)).and_then(|id| self.role_grants.find(*id))
    }

    /// The workloads granted to one grantee directly.
    pub fn workload_grants_of(&self, grantee: Grantee) -> impl Iterator<Item = &Arc<WorkloadGrant>> {
        let range = (grantee, WorkloadRuleId(u64::MIN))..=(grantee, WorkloadRuleId(u64::MAX));
        self.index.workload_grants.range(range).filter_map(|(_, id)| self.workload_grants.find(*id))
    }

    /// The grant of one workload rule to one grantee.
    pub fn workload_grant(&self, grantee: Grantee, rule: WorkloadRuleId) -> Option<&Arc<WorkloadGrant>> {
        self.index.workload_grants.get(&(grantee, rule)).and_then(|id| self.workload_grants.find(*id))
    }

    /// The grant of one authentication record to one grantee.
    pub fn authentication_grant(&self, to: Grantee, record: AuthenticationId) -> Option<&Arc<AuthenticationGrant>> {
        self.index.authentication_grants.get(&(to, record)).and_then(|id| self.authentication_grants.find(*id))
    }

    /// The user mapping for exactly this user and node.
    pub fn user_mapping(&self, user: Option<UserId>, node: Option<NodeId>) -> Option<&Arc<UserMapping>> {
        self.index.user_mappings.get(&(user, node)).and_then(|id| self.user_mappings.find(*id))
    }

    /// The login a user has on a node: his own there, his own anywhere, everybody's there, everybody's anywhere.
    pub fn login_on(&self, user: UserId, node: NodeId) -> Option<&Arc<UserMapping>> {
        let keys = [(Some(user), Some(node)), (Some(user), None), (None, Some(node)), (None, None)];
        keys.into_iter().find_map(|(user, node)| self.user_mapping(user, node))
    }

    /// The value of a setting at one level.
    pub fn setting(&self, level: SettingLevel, name: &str) -> Option<&Arc<Setting>> {
        // Asked many times with each statement, and most catalogs have none.
        if self.index.settings.is_empty() {
            return None;
        }
        self.index.settings.get(&(level, name.to_owned())).and_then(|id| self.settings.find(*id))
    }

    /// The settings that have a value at one level, by name.
    pub fn settings_at(&self, level: SettingLevel) -> impl Iterator<Item = &Arc<Setting>> {
        let values = self.index.settings.range((level, String::new())..);
        values.take_while(move |((at, _), _)| *at == level).filter_map(|(_, id)| self.settings.find(*id))
    }

    /// The shards of a table group, by number.
    pub fn shards_of(&self, table_group: TableGroupId) -> impl Iterator<Item = &Arc<Shard>> {
        let range = (table_group, u32::MIN)..=(table_group, u32::MAX);
        self.index.shards.range(range).filter_map(|(_, id)| self.shards.find(*id))
    }
}
