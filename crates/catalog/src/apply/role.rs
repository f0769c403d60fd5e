//! Roles and who has them (`reference/vertica-sql.md` §4.5).

use std::sync::Arc;

use super::draft::{Draft, distinct, with};
use super::{Notice, Outcome};
use crate::catalog::Entity;
use crate::entity::*;
use crate::error::{CatalogError, ObjectKind};
use crate::id::*;
use crate::initial::RIGHTS_OF_SUPERUSER;
use crate::name::Name;

impl Draft {
    pub(super) fn create_role(&mut self, name: &Name) -> Outcome {
        self.grantee_name_free(name, None, None)?;
        let id = self.next_id();
        self.put(Role { id, name: name.clone(), predefined: false });
        Ok(())
    }

    pub(super) fn rename_role(&mut self, name: &Name, to: &Name) -> Outcome {
        let role = self.role(name)?;
        refuse_predefined(&role, "renamed")?;
        self.grantee_name_free(to, None, Some(&role.name))?;
        self.put(with(&*role, |role| role.name = to.clone()));
        Ok(())
    }

    /// What the role holds goes with it; that somebody holds the role needs CASCADE.
    pub(super) fn drop_roles(&mut self, names: &[Name], if_exists: bool, cascade: bool) -> Outcome {
        distinct(ObjectKind::Role, names)?;
        for name in names {
            let found = self.role(name);
            let Some(role) = self.found(found, if_exists)? else { continue };
            refuse_predefined(&role, "dropped")?;
            let held: Vec<Arc<RoleGrant>> =
                self.catalog.role_grants.iter().filter(|grant| grant.role == role.id).cloned().collect();
            let dependents = held.iter().filter_map(|grant| self.grantee_name(grant.grantee)).collect();
            self.refuse_dependents(ObjectKind::Role, &role.name, dependents, cascade)?;
            let of_role = self.grants_of(Grantee::Role(role.id));
            for grant in held.into_iter().map(Entity::RoleGrant).chain(of_role) {
                self.take(&grant);
            }
            self.take_from_default_roles(role.id);
            self.take(&Entity::Role(role));
            self.revoke_orphans();
        }
        Ok(())
    }

    fn take_from_default_roles(&mut self, role: RoleId) {
        let users: Vec<Arc<User>> = self.catalog.users.iter().cloned().collect();
        for user in users {
            let changed = match &user.default_roles {
                DefaultRoles::AllExcept(roles) if roles.contains(&role) => {
                    DefaultRoles::AllExcept(roles.iter().copied().filter(|id| *id != role).collect())
                }
                DefaultRoles::Listed(roles) if roles.contains(&role) => {
                    listed(roles.iter().copied().filter(|id| *id != role))
                }
                _ => continue,
            };
            self.put(with(&*user, |user| user.default_roles = changed));
        }
    }

    pub(super) fn grant_roles(&mut self, roles: &[Name], grantees: &[Name], admin: bool, grantor: &Name) -> Outcome {
        let (roles, grantor) = (self.roles_to_grant(roles, "granted")?, self.user(grantor)?);
        if let Some(own) = roles.iter().find(|role| is_the_superuser_s(role)) {
            // There is one superuser: whoever were given this role would have none of its rights.
            let action = "granted: its rights are the superuser's alone";
            return Err(CatalogError::Protected { kind: ObjectKind::Role, name: own.name.clone(), action });
        }
        for role in roles {
            if !self.catalog.may_grant_role(grantor.id, role.id) {
                return Err(CatalogError::MayNotGrant { grantor: grantor.name.clone(), role: role.name.clone() });
            }
            for (grantee, name) in self.grantees(grantees)? {
                self.grant_role(&role, (grantee, name), admin, grantor.id)?;
            }
        }
        Ok(())
    }

    fn grant_role(&mut self, role: &Role, to: (Grantee, &Name), admin: bool, grantor: UserId) -> Outcome {
        let (grantee, name) = to;
        match self.catalog.role_grant(grantee, role.id).cloned() {
            Some(grant) if grant.admin || !admin => {
                let (kind, role, grantee) = (ObjectKind::Role, role.name.clone(), name.clone());
                self.notices.push(Notice::AlreadyGranted { kind, name: role, grantee });
            }
            Some(grant) => self.put(with(&*grant, |grant| grant.admin = true)),
            None => {
                if let Grantee::Role(to) = grantee
                    && self.role_holds(role.id, to)
                {
                    return Err(CatalogError::RoleCycle { role: role.name.clone(), grantee: name.clone() });
                }
                let id = self.next_id();
                self.put(RoleGrant { id, role: role.id, grantee, admin, grantor });
            }
        }
        Ok(())
    }

    /// Whether a role is the other one, or has it through grants.
    fn role_holds(&self, holder: RoleId, held: RoleId) -> bool {
        // Grants form no cycle, so this ends; a role reached twice is only looked at twice.
        let mut seen = std::collections::BTreeSet::new();
        let mut open = vec![holder];
        while let Some(role) = open.pop() {
            if role == held {
                return true;
            }
            if seen.insert(role) {
                open.extend(self.catalog.role_grants_of(Grantee::Role(role)).map(|grant| grant.role));
            }
        }
        false
    }

    /// The roles of a GRANT or REVOKE. Everybody has PUBLIC, for ever.
    fn roles_to_grant(&self, names: &[Name], action: &'static str) -> Result<Vec<Arc<Role>>, CatalogError> {
        distinct(ObjectKind::Role, names)?;
        let roles: Vec<Arc<Role>> = names.iter().map(|name| self.role(name)).collect::<Result<_, _>>()?;
        match roles.iter().find(|role| Some(role.id) == self.catalog.public_role()) {
            Some(public) => Err(CatalogError::Protected { kind: ObjectKind::Role, name: public.name.clone(), action }),
            None => Ok(roles),
        }
    }

    pub(super) fn revoke(&mut self, roles: &[Name], grantees: &[Name], admin_only: bool, cascade: bool) -> Outcome {
        for role in self.roles_to_grant(roles, "revoked")? {
            for (grantee, name) in self.grantees(grantees)? {
                let Some(grant) = self.catalog.role_grant(grantee, role.id).cloned() else {
                    let (kind, grantee) = (ObjectKind::Role, name.clone());
                    self.notices.push(Notice::NotGranted { kind, name: role.name.clone(), grantee });
                    continue;
                };
                self.refuse_own_roles(&role, grantee)?;
                if admin_only {
                    self.put(with(&*grant, |grant| grant.admin = false));
                } else {
                    self.take(&Entity::RoleGrant(grant));
                }
            }
        }
        if !cascade && let Some(error) = self.granted_on() {
            return Err(error);
        }
        self.revoke_orphans();
        Ok(())
    }

    /// The superuser keeps its predefined roles.
    fn refuse_own_roles(&self, role: &Role, grantee: Grantee) -> Outcome {
        if let Grantee::User(user) = grantee
            && role.predefined
            && self.catalog.is_superuser(user)
        {
            let action = "revoked from the superuser";
            return Err(CatalogError::Protected { kind: ObjectKind::Role, name: role.name.clone(), action });
        }
        Ok(())
    }

    /// The first of those whose grants no longer stand, with all his grants of that role.
    fn granted_on(&self) -> Option<CatalogError> {
        let orphans = self.catalog.orphaned_role_grants();
        let first = orphans.first()?;
        let same = orphans.iter().filter(|grant| (grant.grantor, grant.role) == (first.grantor, first.role));
        Some(CatalogError::GrantedOn {
            role: self.catalog.roles.find(first.role)?.name.clone(),
            grantor: self.catalog.users.find(first.grantor)?.name.clone(),
            grantees: same.filter_map(|grant| Some(self.grantee_name(grant.grantee)?.1)).collect(),
        })
    }

    /// Revokes the role grants that no longer stand, and takes from the default roles what is no longer granted.
    pub(super) fn revoke_orphans(&mut self) {
        for grant in self.catalog.orphaned_role_grants() {
            self.take(&Entity::RoleGrant(grant));
        }
        let users: Vec<Arc<User>> = self.catalog.users.iter().cloned().collect();
        for user in users {
            let DefaultRoles::Listed(roles) = &user.default_roles else { continue };
            let left = listed(roles.iter().copied().filter(|role| self.catalog.has_role(user.id, *role)));
            if left != user.default_roles {
                self.put(with(&*user, |user| user.default_roles = left));
            }
        }
    }
}

fn listed(roles: impl Iterator<Item = RoleId>) -> DefaultRoles {
    let roles: Vec<RoleId> = roles.collect();
    if roles.is_empty() { DefaultRoles::None } else { DefaultRoles::Listed(roles) }
}

/// Whether a role stands for the superuser's rights.
fn is_the_superuser_s(role: &Role) -> bool {
    role.predefined && RIGHTS_OF_SUPERUSER.contains(&role.name.as_str())
}

fn refuse_predefined(role: &Role, action: &'static str) -> Outcome {
    if role.predefined {
        return Err(CatalogError::Protected { kind: ObjectKind::Role, name: role.name.clone(), action });
    }
    Ok(())
}
