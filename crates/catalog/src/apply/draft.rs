//! A catalog that is being changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Applied, Notice, Outcome};
use crate::catalog::{Catalog, Delta, Entity};
use crate::entity::*;
use crate::error::{CatalogError, ObjectKind};
use crate::name::Name;

/// A catalog that is being changed, and what was changed so far.
pub(crate) struct Draft {
    pub(crate) catalog: Catalog,
    /// By id; ids are unique over all kinds.
    touched: BTreeMap<u64, Delta>,
    pub(super) notices: Vec<Notice>,
    /// Whether shards may have to move.
    pub(super) workers_changed: bool,
}

/// How many names are looked through for the one that was meant.
const NEAREST_SEARCHED_MAX: usize = 10_000;

/// The existing name that was probably meant: within a third of the length, and the nearest.
fn nearest<'a>(name: &Name, names: impl Iterator<Item = &'a Name>) -> Option<Name> {
    let distance_max = (name.folded().chars().count() / 3).max(1);
    names
        .take(NEAREST_SEARCHED_MAX)
        .map(|candidate| (strsim::osa_distance(name.folded(), candidate.folded()), candidate))
        .filter(|(distance, _)| *distance <= distance_max)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate.clone())
}

/// Whether two names are the same but for digits.
fn only_numbers_differ(one: &Name, other: &Name) -> bool {
    let letters = |name: &Name| name.folded().chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
    letters(one) == letters(other)
}

/// Refuses a list that names something twice.
pub(super) fn distinct<'a>(kind: ObjectKind, names: impl IntoIterator<Item = &'a Name>) -> Outcome {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(CatalogError::Repeated { kind, name: name.clone() });
        }
    }
    Ok(())
}

/// A changed copy.
pub(super) fn with<T: Clone>(entity: &T, change: impl FnOnce(&mut T)) -> T {
    let mut copy = entity.clone();
    change(&mut copy);
    copy
}

/// Whether shard replicas can be on it now.
fn takes_shards(entity: Option<&Entity>) -> bool {
    matches!(entity, Some(Entity::Node(node)) if node.is_worker() && !node.draining)
}

impl Draft {
    pub(crate) fn new(catalog: &Catalog) -> Self {
        Self { catalog: catalog.clone(), touched: BTreeMap::new(), notices: Vec::new(), workers_changed: false }
    }

    pub(crate) fn finish(self) -> Applied {
        let deltas = self.touched.into_values().filter(|delta| !delta.is_empty()).collect();
        Applied { catalog: self.catalog, deltas, notices: self.notices }
    }

    /// An id that was never used.
    pub(crate) fn next_id<I: From<u64>>(&mut self) -> I {
        let id = self.catalog.id_next;
        self.catalog.id_next = id.saturating_add(1);
        I::from(id)
    }

    /// Puts an entity in, or in the place of the one with its id.
    pub(crate) fn put(&mut self, entity: impl Into<Entity>) {
        let entity = entity.into();
        let before = self.catalog.put(entity.clone());
        self.note(entity.id(), before, Some(entity));
    }

    /// Takes an entity out.
    pub(super) fn take(&mut self, entity: &Entity) {
        if let Some(before) = self.catalog.take(entity) {
            self.note(entity.id(), Some(before), None);
        }
    }

    fn note(&mut self, id: u64, before: Option<Entity>, after: Option<Entity>) {
        self.workers_changed |= takes_shards(before.as_ref()) != takes_shards(after.as_ref());
        self.touched.entry(id).or_insert(Delta { before, after: None }).after = after;
    }

    /// How many entities differ from those of the catalog it began with.
    pub(super) fn touched(&self) -> usize {
        self.touched.len()
    }

    /// "Nothing was dropped" is true only of a list of which nothing was. `before` is how many notices there were, and
    /// how many entities were touched.
    pub(super) fn say_what_was_skipped(&mut self, (notices, touched): (usize, usize)) {
        if self.touched() == touched {
            return;
        }
        for notice in self.notices.iter_mut().skip(notices) {
            if let Notice::NothingDropped { kind, name } = notice {
                *notice = Notice::Skipped { kind: *kind, name: name.clone() };
            }
        }
    }

    /// Refuses to drop what others depend on, unless they may be dropped or changed too; that they are is noted.
    pub(super) fn refuse_dependents(
        &mut self,
        kind: ObjectKind,
        name: &Name,
        dependents: Vec<(ObjectKind, Name)>,
        cascade: bool,
    ) -> Outcome {
        if dependents.is_empty() {
            return Ok(());
        }
        if !cascade {
            return Err(CatalogError::Dependents { kind, name: name.clone(), dependents });
        }
        let (dropped, changed): (Vec<_>, Vec<_>) =
            dependents.into_iter().partition(|(by, name)| self.goes_with(kind, *by, name));
        for (dropped, dependents) in [(true, dropped), (false, changed)] {
            if !dependents.is_empty() {
                self.notices.push(Notice::Cascaded { kind, name: name.clone(), dropped, dependents });
            }
        }
        Ok(())
    }

    /// Whether CASCADE drops a dependent; others it takes out of something, moves or revokes.
    fn goes_with(&self, dropped: ObjectKind, dependent: ObjectKind, name: &Name) -> bool {
        match dropped {
            ObjectKind::LoadBalanceGroup => dependent == ObjectKind::RoutingRule,
            ObjectKind::Node => dependent != ObjectKind::TableGroup,
            ObjectKind::User => dependent == ObjectKind::UserMapping,
            // A rule goes with its last subcluster.
            ObjectKind::Subcluster if dependent == ObjectKind::RoutingRule => {
                self.catalog.workload_rules.named(name).is_some_and(|rule| rule.subclusters.len() < 2)
            }
            _ => false,
        }
    }

    /// Takes the missing of a DROP ... IF EXISTS for nothing to do. Otherwise no sibling is suggested that only has
    /// another number, as `pg2` for `pg1`: that one exists is no sign that it was meant, and following the hint would
    /// drop it.
    pub(super) fn found<T>(
        &mut self,
        found: Result<T, CatalogError>,
        if_exists: bool,
    ) -> Result<Option<T>, CatalogError> {
        match found {
            Err(CatalogError::Missing { kind, name, .. }) if if_exists => {
                self.notices.push(Notice::NothingDropped { kind, name });
                Ok(None)
            }
            Err(CatalogError::Missing { kind, name, nearest, namesake }) => {
                let nearest = nearest.filter(|nearest| !only_numbers_differ(&name, nearest));
                Err(CatalogError::Missing { kind, name, nearest, namesake })
            }
            other => other.map(Some),
        }
    }
}

macro_rules! kinds {
    ($($find:ident, $free:ident: $field:ident $entity:ident;)*) => {$(
        impl Draft {
            pub(super) fn $find(&self, name: &Name) -> Result<Arc<$entity>, CatalogError> {
                let rows = &self.catalog.$field;
                rows.named(name).cloned().ok_or_else(|| CatalogError::Missing {
                    kind: ObjectKind::$entity,
                    name: name.clone(),
                    nearest: nearest(name, rows.names()),
                    namesake: self.namesake(ObjectKind::$entity, name),
                })
            }

            /// Refuses a name that another entity of the kind has; `own` is the name that is given up for it.
            pub(super) fn $free(&self, name: &Name, own: Option<&Name>) -> Outcome {
                match self.catalog.$field.named(name) {
                    Some(other) if own != Some(&other.name) => {
                        Err(CatalogError::Exists { kind: ObjectKind::$entity, name: name.clone() })
                    }
                    _ => Ok(()),
                }
            }
        }
    )*};
}

kinds! {
    node, node_name_free: nodes Node;
    subcluster, subcluster_name_free: subclusters Subcluster;
    fault_group, fault_group_name_free: fault_groups FaultGroup;
    network_address, network_address_name_free: network_addresses NetworkAddress;
    network_interface, network_interface_name_free: network_interfaces NetworkInterface;
    subnet, subnet_name_free: subnets Subnet;
    load_balance_group, load_balance_group_name_free: load_balance_groups LoadBalanceGroup;
    user, user_name_free: users User;
    role, role_name_free: roles Role;
    authentication, authentication_name_free: authentications Authentication;
    table_group, table_group_name_free: table_groups TableGroup;
}

/// A routing rule of either type.
pub(super) enum AnyRule {
    Network(Arc<RoutingRule>),
    Workload(Arc<WorkloadRule>),
}

impl Draft {
    /// The routing rule with this name, of either type.
    pub(super) fn rule_named(&self, name: &Name) -> Result<AnyRule, CatalogError> {
        let (rules, workload_rules) = (&self.catalog.routing_rules, &self.catalog.workload_rules);
        let network = rules.named(name).cloned().map(AnyRule::Network);
        network.or_else(|| workload_rules.named(name).cloned().map(AnyRule::Workload)).ok_or_else(|| {
            CatalogError::Missing {
                kind: ObjectKind::RoutingRule,
                name: name.clone(),
                nearest: nearest(name, workload_rules.names().chain(rules.names())),
                namesake: self.namesake(ObjectKind::RoutingRule, name),
            }
        })
    }

    /// The rule of a workload.
    pub(super) fn rule_of_workload(&self, workload: &Name) -> Result<Arc<WorkloadRule>, CatalogError> {
        self.catalog.rule_of_workload(workload).cloned().ok_or_else(|| CatalogError::Missing {
            kind: ObjectKind::Workload,
            name: workload.clone(),
            nearest: nearest(workload, self.catalog.index.workloads.keys()),
            namesake: self.namesake(ObjectKind::Workload, workload),
        })
    }

    /// What else has a name, among the kinds that are taken for one another.
    fn namesake(&self, kind: ObjectKind, name: &Name) -> Option<ObjectKind> {
        use ObjectKind as K;
        let catalog = &self.catalog;
        let others: &[K] = match kind {
            K::User => &[K::Role],
            K::Role => &[K::User],
            K::NetworkAddress => &[K::NetworkInterface, K::LoadBalanceGroup, K::Node],
            K::NetworkInterface => &[K::NetworkAddress, K::Node],
            K::LoadBalanceGroup => &[K::NetworkAddress, K::Subcluster, K::FaultGroup, K::TableGroup],
            K::Subcluster => &[K::FaultGroup, K::LoadBalanceGroup, K::Node],
            K::FaultGroup => &[K::Subcluster, K::LoadBalanceGroup, K::Node],
            K::RoutingRule => &[K::Workload, K::LoadBalanceGroup],
            K::Workload => &[K::RoutingRule],
            K::Node => &[K::Subcluster, K::NetworkAddress],
            _ => &[],
        };
        let is_there = |kind: &K| match kind {
            K::User => catalog.users.named(name).is_some(),
            K::Role => catalog.roles.named(name).is_some(),
            K::NetworkAddress => catalog.network_addresses.named(name).is_some(),
            K::NetworkInterface => catalog.network_interfaces.named(name).is_some(),
            K::LoadBalanceGroup => catalog.load_balance_groups.named(name).is_some(),
            K::Subcluster => catalog.subclusters.named(name).is_some(),
            K::FaultGroup => catalog.fault_groups.named(name).is_some(),
            K::TableGroup => catalog.table_groups.named(name).is_some(),
            K::Node => catalog.nodes.named(name).is_some(),
            K::Workload => catalog.rule_of_workload(name).is_some(),
            K::RoutingRule => {
                catalog.routing_rules.named(name).is_some() || catalog.workload_rules.named(name).is_some()
            }
            _ => false,
        };
        others.iter().copied().find(is_there)
    }

    /// The user or role with this name. A user goes first: the superuser's name may be that of a predefined role.
    pub(super) fn grantee(&self, name: &Name) -> Result<Grantee, CatalogError> {
        if let Some(user) = self.catalog.users.named(name) {
            return Ok(Grantee::User(user.id));
        }
        if let Some(role) = self.catalog.roles.named(name) {
            return Ok(Grantee::Role(role.id));
        }
        Err(CatalogError::Missing {
            kind: ObjectKind::Grantee,
            name: name.clone(),
            nearest: nearest(name, self.catalog.users.names().chain(self.catalog.roles.names())),
            namesake: None,
        })
    }

    /// The users and roles with these names.
    pub(super) fn grantees<'a>(&self, names: &'a [Name]) -> Result<Vec<(Grantee, &'a Name)>, CatalogError> {
        distinct(ObjectKind::Grantee, names)?;
        names.iter().map(|name| Ok((self.grantee(name)?, name))).collect()
    }

    /// The name of whoever holds a grant, with its kind.
    pub(super) fn grantee_name(&self, grantee: Grantee) -> Option<(ObjectKind, Name)> {
        match grantee {
            Grantee::User(id) => self.catalog.users.find(id).map(|user| (ObjectKind::User, user.name.clone())),
            Grantee::Role(id) => self.catalog.roles.find(id).map(|role| (ObjectKind::Role, role.name.clone())),
        }
    }
}
