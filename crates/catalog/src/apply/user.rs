//! Users (`reference/vertica-sql.md` §4.4).

use std::sync::Arc;

use super::draft::{Draft, distinct};
use super::{Notice, Outcome};
use crate::catalog::Entity;
use crate::change::UserChange;
use crate::entity::*;
use crate::error::{CatalogError, ObjectKind};
use crate::id::*;
use crate::name::Name;

impl Draft {
    /// Users and roles share their names. Those that stand for something else where a user or role is named are nobody's.
    pub(super) fn grantee_name_free(&self, name: &Name, own_user: Option<&Name>, own_role: Option<&Name>) -> Outcome {
        if RESERVED_NAMES.contains(&name.folded()) {
            return Err(CatalogError::Reserved { name: name.clone() });
        }
        self.user_name_free(name, own_user)?;
        self.role_name_free(name, own_role)
    }

    pub(super) fn create_user(&mut self, name: &Name, superuser: bool, changes: &[UserChange]) -> Outcome {
        self.grantee_name_free(name, None, None)?;
        if superuser && let Some(only) = self.catalog.users.iter().find(|user| user.superuser) {
            return Err(CatalogError::SecondSuperuser { name: name.clone(), superuser: only.name.clone() });
        }
        let mut user = User {
            id: self.next_id(),
            name: name.clone(),
            superuser,
            verifiers: None,
            locked: false,
            password_expired: false,
            default_roles: DefaultRoles::None,
            limits: UserLimits::default(),
        };
        for change in changes {
            self.change_user(&mut user, change)?;
        }
        self.put(user);
        Ok(())
    }

    pub(super) fn alter_user(&mut self, name: &Name, changes: &[UserChange]) -> Outcome {
        let mut user = Arc::unwrap_or_clone(self.user(name)?);
        for change in changes {
            self.change_user(&mut user, change)?;
        }
        self.put(user);
        Ok(())
    }

    fn change_user(&mut self, user: &mut User, change: &UserChange) -> Outcome {
        match change {
            UserChange::Rename(to) => {
                refuse_superuser(user, "renamed")?;
                self.grantee_name_free(to, Some(&user.name), None)?;
                if user.name.as_str() != to.as_str()
                    && let Some(verifiers) = &mut user.verifiers
                    && verifiers.md5.take().is_some()
                {
                    self.notices.push(Notice::Md5VerifierCleared { user: to.clone() });
                }
                user.name = to.clone();
            }
            UserChange::Password(verifiers) => {
                user.verifiers = verifiers.clone();
                user.password_expired = false;
            }
            UserChange::ExpirePassword => user.password_expired = true,
            UserChange::Lock(locked) => {
                if *locked {
                    refuse_superuser(user, "locked")?;
                }
                user.locked = *locked;
            }
            UserChange::NoDefaultRoles => user.default_roles = DefaultRoles::None,
            UserChange::DefaultRoles(names) => user.default_roles = self.granted_default_roles(user, names)?,
            UserChange::DefaultRolesAllExcept(names) => {
                user.default_roles = DefaultRoles::AllExcept(self.role_ids(names)?);
            }
            UserChange::SecurityAlgorithm(algorithm) => {
                user.limits.security_algorithm.clone_from(algorithm);
                if !user.limits.wants_md5()
                    && let Some(verifiers) = &mut user.verifiers
                {
                    verifiers.md5 = None;
                }
            }
            other => change_limits(&mut user.limits, other),
        }
        Ok(())
    }

    fn granted_default_roles(&self, user: &User, names: &[Name]) -> Result<DefaultRoles, CatalogError> {
        let roles = self.role_ids(names)?;
        for (role, name) in roles.iter().zip(names) {
            if !self.catalog.has_role(user.id, *role) {
                return Err(CatalogError::RoleNotGranted { role: name.clone(), user: user.name.clone() });
            }
        }
        Ok(if roles.is_empty() { DefaultRoles::None } else { DefaultRoles::Listed(roles) })
    }

    pub(super) fn role_ids(&self, names: &[Name]) -> Result<Vec<RoleId>, CatalogError> {
        distinct(ObjectKind::Role, names)?;
        names.iter().map(|name| Ok(self.role(name)?.id)).collect()
    }

    /// What the user holds goes with him. What others have from him does not, without CASCADE: roles and workloads he
    /// granted; nor do his user mappings, which are objects of their own.
    pub(super) fn drop_users(&mut self, names: &[Name], if_exists: bool, cascade: bool) -> Outcome {
        distinct(ObjectKind::User, names)?;
        for name in names {
            let found = self.user(name);
            let Some(user) = self.found(found, if_exists)? else { continue };
            refuse_superuser(&user, "dropped")?;
            self.refuse_dependents(ObjectKind::User, &user.name, self.dependents_of_user(&user), cascade)?;
            self.take_of_user(user.id);
            self.take(&Entity::User(user));
            // Others may have had roles from those who had them from him.
            self.revoke_orphans();
        }
        Ok(())
    }

    fn dependents_of_user(&self, user: &User) -> Vec<(ObjectKind, Name)> {
        let catalog = &self.catalog;
        let own = Grantee::User(user.id);
        let mappings = catalog.user_mappings.iter().filter(|mapping| mapping.user == Some(user.id));
        let roles = catalog.role_grants.iter().filter(|grant| grant.grantor == user.id && grant.grantee != own);
        let workloads = catalog.workload_grants.iter().filter(|grant| grant.grantor == user.id && grant.grantee != own);
        let mut dependents: Vec<_> = mappings.map(|_| (ObjectKind::UserMapping, user.name.clone())).collect();
        for role in roles.filter_map(|grant| catalog.roles.find(grant.role)) {
            dependents.push((ObjectKind::Role, role.name.clone()));
        }
        for rule in workloads.filter_map(|grant| catalog.workload_rules.find(grant.rule)) {
            dependents.push((ObjectKind::Workload, rule.workload.clone()));
        }
        dependents.dedup();
        dependents
    }

    /// Takes out all that is of a user: grants to and by him, mappings, settings.
    fn take_of_user(&mut self, user: UserId) {
        let catalog = &self.catalog;
        let mut gone = self.grants_of(Grantee::User(user));
        let by_user = catalog.role_grants.iter().filter(|grant| grant.grantor == user);
        gone.extend(by_user.cloned().map(Entity::RoleGrant));
        let by_user = catalog.workload_grants.iter().filter(|grant| grant.grantor == user);
        gone.extend(by_user.cloned().map(Entity::WorkloadGrant));
        let mappings = catalog.user_mappings.iter().filter(|mapping| mapping.user == Some(user));
        gone.extend(mappings.cloned().map(Entity::UserMapping));
        gone.extend(catalog.settings_at(SettingLevel::User(user)).cloned().map(Entity::Setting));
        for entity in gone {
            self.take(&entity);
        }
    }

    /// All grants that one grantee holds.
    pub(super) fn grants_of(&self, grantee: Grantee) -> Vec<Entity> {
        let catalog = &self.catalog;
        let roles = catalog.role_grants_of(grantee).cloned().map(Entity::RoleGrant);
        let workloads = catalog.workload_grants_of(grantee).cloned().map(Entity::WorkloadGrant);
        let authentications = catalog.authentication_grants.iter().filter(|grant| grant.grantee == grantee);
        roles.chain(workloads).chain(authentications.cloned().map(Entity::AuthenticationGrant)).collect()
    }
}

/// What GRANT, SET ROLE and DEFAULT ROLE have words for.
const RESERVED_NAMES: [&str; 4] = ["all", "default", "none", "public"];

fn refuse_superuser(user: &User, action: &'static str) -> Outcome {
    if user.superuser {
        return Err(CatalogError::Protected { kind: ObjectKind::User, name: user.name.clone(), action });
    }
    Ok(())
}

/// The parameters that are kept as given.
fn change_limits(limits: &mut UserLimits, change: &UserChange) {
    match change {
        UserChange::MaxConnections(value) => limits.max_connections = *value,
        UserChange::IdleSessionTimeout(value) => limits.idle_session_timeout.clone_from(value),
        UserChange::GracePeriod(value) => limits.grace_period.clone_from(value),
        UserChange::RuntimeCap(value) => limits.runtime_cap.clone_from(value),
        UserChange::MemoryCap(value) => limits.memory_cap.clone_from(value),
        UserChange::TempSpaceCap(value) => limits.temp_space_cap.clone_from(value),
        UserChange::Profile(value) => limits.profile.clone_from(value),
        UserChange::ResourcePool(value) => limits.resource_pool.clone_from(value),
        UserChange::SearchPath(value) => limits.search_path.clone_from(value),
        UserChange::Rename(_)
        | UserChange::SecurityAlgorithm(_)
        | UserChange::Password(_)
        | UserChange::ExpirePassword
        | UserChange::Lock(_)
        | UserChange::NoDefaultRoles
        | UserChange::DefaultRoles(_)
        | UserChange::DefaultRolesAllExcept(_) => {}
    }
}
