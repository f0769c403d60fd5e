//! Authentication records, and the logins that users have on upstreams.

use std::sync::Arc;

use super::draft::{Draft, distinct};
use super::{Notice, Outcome};
use crate::catalog::Entity;
use crate::change::{AuthenticationChange, MappingChange};
use crate::entity::*;
use crate::error::{CatalogError, ObjectKind};
use crate::id::*;
use crate::initial::PUBLIC_ROLE;
use crate::name::Name;
use crate::secret::Secret;

impl Draft {
    pub(super) fn create_authentication(
        &mut self,
        name: &Name,
        method: AuthenticationMethod,
        access: &AuthenticationAccess,
        fallthrough: bool,
    ) -> Outcome {
        self.authentication_name_free(name, None)?;
        let id = self.next_id();
        let (name, access) = (name.clone(), access.clone());
        let parameters = Vec::new();
        self.put(Authentication { id, name, method, access, enabled: true, priority: 0, fallthrough, parameters });
        Ok(())
    }

    pub(super) fn alter_authentication(&mut self, name: &Name, change: &AuthenticationChange) -> Outcome {
        let mut record = Arc::unwrap_or_clone(self.authentication(name)?);
        match change {
            AuthenticationChange::Rename(to) => {
                self.authentication_name_free(to, Some(&record.name))?;
                record.name = to.clone();
            }
            AuthenticationChange::Enable(enabled) => record.enabled = *enabled,
            AuthenticationChange::Method(method) => {
                // Parameters are of one method.
                if record.method != *method {
                    record.parameters.clear();
                }
                record.method = *method;
            }
            AuthenticationChange::Access(access) => record.access = access.clone(),
            AuthenticationChange::Priority(priority) => record.priority = *priority,
            AuthenticationChange::Fallthrough(fallthrough) => record.fallthrough = *fallthrough,
            AuthenticationChange::Parameter(name, value) => {
                record.parameters.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
                record.parameters.extend(value.clone().map(|value| (name.clone(), value)));
                record.parameters.sort();
            }
        }
        self.put(record);
        Ok(())
    }

    pub(super) fn drop_authentications(&mut self, names: &[Name], if_exists: bool, cascade: bool) -> Outcome {
        distinct(ObjectKind::Authentication, names)?;
        for name in names {
            let found = self.authentication(name);
            let Some(record) = self.found(found, if_exists)? else { continue };
            let grants: Vec<Arc<AuthenticationGrant>> = self
                .catalog
                .authentication_grants
                .iter()
                .filter(|grant| grant.authentication == record.id)
                .cloned()
                .collect();
            let dependents = grants.iter().filter_map(|grant| self.grantee_name(grant.grantee)).collect();
            self.refuse_dependents(ObjectKind::Authentication, &record.name, dependents, cascade)?;
            for grant in grants {
                self.take(&Entity::AuthenticationGrant(grant));
            }
            self.take(&Entity::Authentication(record));
        }
        Ok(())
    }

    pub(super) fn grant_authentication(&mut self, name: &Name, grantees: &[Name]) -> Outcome {
        let record = self.authentication(name)?;
        for (grantee, to) in self.grantees(grantees)? {
            if self.catalog.authentication_grant(grantee, record.id).is_some() {
                let (kind, name) = (ObjectKind::Authentication, record.name.clone());
                self.notices.push(Notice::AlreadyGranted { kind, name, grantee: to.clone() });
                continue;
            }
            let id = self.next_id();
            self.put(AuthenticationGrant { id, authentication: record.id, grantee });
        }
        Ok(())
    }

    pub(super) fn revoke_authentication(&mut self, name: &Name, grantees: &[Name]) -> Outcome {
        let record = self.authentication(name)?;
        for (grantee, from) in self.grantees(grantees)? {
            let Some(grant) = self.catalog.authentication_grant(grantee, record.id).cloned() else {
                let (kind, name) = (ObjectKind::Authentication, record.name.clone());
                self.notices.push(Notice::NotGranted { kind, name, grantee: from.clone() });
                continue;
            };
            self.take(&Entity::AuthenticationGrant(grant));
        }
        Ok(())
    }

    /// The user and node of a user mapping. PUBLIC by name is PUBLIC.
    fn mapped(
        &self,
        user: &Option<Name>,
        node: &Option<Name>,
    ) -> Result<(Option<UserId>, Option<NodeId>), CatalogError> {
        let user = user.as_ref().filter(|name| **name != Name::known(PUBLIC_ROLE));
        let user = user.map(|name| self.user(name)).transpose()?;
        let node = node.as_ref().map(|name| self.node(name)).transpose()?;
        Ok((user.map(|user| user.id), node.map(|node| node.id)))
    }

    fn mapping(&self, user: &Option<Name>, node: &Option<Name>) -> Result<Arc<UserMapping>, CatalogError> {
        let (user_id, node_id) = self.mapped(user, node)?;
        self.catalog
            .user_mapping(user_id, node_id)
            .cloned()
            .ok_or_else(|| CatalogError::MappingMissing { user: user.clone(), node: node.clone() })
    }

    pub(super) fn create_mapping(
        &mut self,
        user: &Option<Name>,
        node: &Option<Name>,
        remote_user: &str,
        password: &Option<Secret>,
    ) -> Outcome {
        let (user_id, node_id) = self.mapped(user, node)?;
        if self.catalog.user_mapping(user_id, node_id).is_some() {
            return Err(CatalogError::MappingExists { user: user.clone(), node: node.clone() });
        }
        let (id, remote_user, password) = (self.next_id(), remote_user.to_owned(), password.clone());
        self.put(UserMapping { id, user: user_id, node: node_id, remote_user, password });
        Ok(())
    }

    pub(super) fn alter_mapping(
        &mut self,
        user: &Option<Name>,
        node: &Option<Name>,
        change: &MappingChange,
    ) -> Outcome {
        let mut mapping = Arc::unwrap_or_clone(self.mapping(user, node)?);
        if let Some(remote_user) = &change.remote_user {
            mapping.remote_user.clone_from(remote_user);
        }
        if let Some(password) = &change.password {
            mapping.password.clone_from(password);
        }
        self.put(mapping);
        Ok(())
    }

    pub(super) fn drop_mapping(&mut self, user: &Option<Name>, node: &Option<Name>, if_exists: bool) -> Outcome {
        match self.mapping(user, node) {
            Ok(mapping) => self.take(&Entity::UserMapping(mapping)),
            Err(CatalogError::MappingMissing { .. } | CatalogError::Missing { .. }) if if_exists => {
                let name = user.clone().unwrap_or_else(|| Name::known(PUBLIC_ROLE));
                self.notices.push(Notice::NothingDropped { kind: ObjectKind::UserMapping, name });
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
