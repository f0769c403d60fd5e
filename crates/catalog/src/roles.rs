//! Who may use what: roles and workloads (`reference/vertica-sql.md` §4.2, §4.3, §9).

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rand::Rng;
use rand::seq::IndexedRandom;

use crate::catalog::Catalog;
use crate::entity::*;
use crate::id::*;

impl Catalog {
    /// Every role a user has been granted, directly, through other roles or through PUBLIC, and whether he may grant it
    /// on. PUBLIC itself is left out.
    pub fn granted_roles(&self, user: UserId) -> BTreeMap<RoleId, bool> {
        self.reached_roles(user, |_| true)
    }

    /// The same, going by some of the grants only.
    fn reached_roles(&self, user: UserId, counts: impl Fn(&RoleGrant) -> bool) -> BTreeMap<RoleId, bool> {
        let mut reached = BTreeMap::new();
        let mut open = vec![Grantee::User(user)];
        open.extend(self.public_role().map(Grantee::Role));
        while let Some(grantee) = open.pop() {
            for grant in self.role_grants_of(grantee).filter(|grant| counts(grant)) {
                let admin = reached.entry(grant.role).or_insert_with(|| {
                    open.push(Grantee::Role(grant.role));
                    false
                });
                *admin |= grant.admin;
            }
        }
        reached
    }

    /// Whether a user has a role, directly or not. Everybody has PUBLIC.
    pub fn has_role(&self, user: UserId, role: RoleId) -> bool {
        self.public_role() == Some(role) || self.granted_roles(user).contains_key(&role)
    }

    /// Whether a user may grant and revoke a role: the superuser, and who has it with ADMIN OPTION.
    pub fn may_grant_role(&self, user: UserId, role: RoleId) -> bool {
        self.is_superuser(user) || self.granted_roles(user).get(&role) == Some(&true)
    }

    /// Whether this is the superuser.
    pub fn is_superuser(&self, user: UserId) -> bool {
        self.users.find(user).is_some_and(|user| user.superuser)
    }

    /// The roles that are on when a user logs in: those granted that are predefined, and the default ones; all that are
    /// granted when `enable_all` (the setting `EnableAllRolesOnLogin`). PUBLIC is always on, and not among them.
    pub fn roles_at_login(&self, user: UserId, enable_all: bool) -> BTreeSet<RoleId> {
        let is_predefined = |role: &RoleId| self.roles.find(*role).is_some_and(|role| role.predefined);
        let granted = self.granted_roles(user);
        let mut enabled = self.default_roles(user);
        enabled.extend(granted.keys().filter(|role| enable_all || is_predefined(role)));
        enabled
    }

    /// The roles that SET ROLE DEFAULT puts on: the default ones of those that are granted.
    pub fn default_roles(&self, user: UserId) -> BTreeSet<RoleId> {
        let granted = self.granted_roles(user).into_keys();
        match self.users.find(user).map(|user| &user.default_roles) {
            None | Some(DefaultRoles::None) => BTreeSet::new(),
            Some(DefaultRoles::Listed(roles)) => granted.filter(|role| roles.contains(role)).collect(),
            Some(DefaultRoles::AllExcept(roles)) => granted.filter(|role| !roles.contains(role)).collect(),
        }
    }

    /// All roles in effect when a session has put these on: they, the roles granted to them, PUBLIC, and for the
    /// superuser its own predefined ones. Roles that the user has not been granted, or no longer, do not count.
    pub fn roles_in_effect(&self, user: UserId, enabled: &BTreeSet<RoleId>) -> BTreeSet<RoleId> {
        let granted = self.granted_roles(user);
        let mut open: Vec<RoleId> = enabled.iter().copied().filter(|role| granted.contains_key(role)).collect();
        open.extend(self.public_role());
        if self.is_superuser(user) {
            let direct = self.role_grants_of(Grantee::User(user)).map(|grant| grant.role);
            open.extend(direct.filter(|role| self.roles.find(*role).is_some_and(|role| role.predefined)));
        }
        let mut in_effect = BTreeSet::new();
        while let Some(role) = open.pop() {
            if in_effect.insert(role) {
                open.extend(self.role_grants_of(Grantee::Role(role)).map(|grant| grant.role));
            }
        }
        in_effect
    }

    /// The workload rules open to a user who has put these roles on: the greatest priority first, then by the
    /// workload's name. To the superuser all are.
    pub fn usable_workloads(&self, user: UserId, enabled: &BTreeSet<RoleId>) -> Vec<Arc<WorkloadRule>> {
        let mut rules: Vec<Arc<WorkloadRule>> = if self.is_superuser(user) {
            self.workload_rules.iter().cloned().collect()
        } else {
            self.granted_workloads(user, enabled)
        };
        rules.sort_by(|a, b| b.priority.cmp(&a.priority).then_with(|| a.workload.cmp(&b.workload)));
        rules
    }

    /// Those that are granted to a user, or to a role in effect when he has put these on.
    pub fn granted_workloads(&self, user: UserId, enabled: &BTreeSet<RoleId>) -> Vec<Arc<WorkloadRule>> {
        let roles = self.roles_in_effect(user, enabled).into_iter().map(Grantee::Role);
        let grantees = std::iter::once(Grantee::User(user)).chain(roles);
        let granted: BTreeSet<WorkloadRuleId> =
            grantees.flat_map(|grantee| self.workload_grants_of(grantee).map(|grant| grant.rule)).collect();
        granted.into_iter().filter_map(|rule| self.workload_rules.find(rule).cloned()).collect()
    }

    /// Whether a user who has put these roles on may use the workload of this rule.
    pub fn may_use_workload(&self, user: UserId, enabled: &BTreeSet<RoleId>, rule: WorkloadRuleId) -> bool {
        self.is_superuser(user)
            || self.workload_grant(Grantee::User(user), rule).is_some()
            || self
                .roles_in_effect(user, enabled)
                .into_iter()
                .any(|role| self.workload_grant(Grantee::Role(role), rule).is_some())
    }

    /// The rule that applies to a session that named no workload: of those granted to the user or to a role in effect
    /// the one of the greatest priority, any of them when there are several (seed: Priorities). To the superuser, who
    /// may use all, only those apply that were granted too: nothing moves it away from where it logged in unasked.
    pub fn effective_workload(
        &self,
        user: UserId,
        enabled: &BTreeSet<RoleId>,
        rng: &mut impl Rng,
    ) -> Option<Arc<WorkloadRule>> {
        let granted = self.granted_workloads(user, enabled);
        let greatest = granted.iter().map(|rule| rule.priority).max()?;
        let equals: Vec<Arc<WorkloadRule>> = granted.into_iter().filter(|rule| rule.priority == greatest).collect();
        equals.choose(rng).cloned()
    }

    /// The role grants that no longer go back to the superuser, because who made them lost the right to.
    pub(crate) fn orphaned_role_grants(&self) -> Vec<Arc<RoleGrant>> {
        let (stand, mut orphans): (Vec<_>, Vec<_>) =
            self.role_grants.iter().cloned().partition(|grant| self.is_superuser(grant.grantor));
        let mut standing: BTreeSet<RoleGrantId> = stand.iter().map(|grant| grant.id).collect();
        loop {
            let may_grant = |grant: &Arc<RoleGrant>| {
                let reached = self.reached_roles(grant.grantor, |grant| standing.contains(&grant.id));
                reached.get(&grant.role) == Some(&true)
            };
            let (more, rest): (Vec<_>, Vec<_>) = orphans.into_iter().partition(may_grant);
            if more.is_empty() {
                return rest;
            }
            standing.extend(more.iter().map(|grant| grant.id));
            orphans = rest;
        }
    }
}
