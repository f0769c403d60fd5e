//! The database, settings, and going back to an older catalog.

use super::Outcome;
use super::draft::{Draft, with};
use crate::catalog::{Catalog, Entity};
use crate::change::SettingTarget;
use crate::entity::*;
use crate::name::Name;
use crate::secret::Secret;

impl Draft {
    pub(super) fn export_database_on(&mut self, subnet: &Option<Name>) -> Outcome {
        let subnet = subnet.as_ref().map(|name| self.subnet(name)).transpose()?.map(|subnet| subnet.id);
        self.put(with(self.catalog.database(), |database| database.export_subnet = subnet));
        Ok(())
    }

    pub(super) fn set_policy(&mut self, policy: Policy) -> Outcome {
        self.put(with(self.catalog.database(), |database| database.policy = policy));
        Ok(())
    }

    /// Does nothing when there is one: whoever joins second takes the first one's.
    pub(super) fn set_member_secret(&mut self, secret: &Secret) -> Outcome {
        if self.catalog.database().member_secret.is_none() {
            self.put(with(self.catalog.database(), |database| database.member_secret = Some(secret.clone())));
        }
        Ok(())
    }

    pub(super) fn set_setting(&mut self, target: &SettingTarget, name: &str, value: &Option<String>) -> Outcome {
        let level = match target {
            SettingTarget::Database => SettingLevel::Database,
            SettingTarget::Node(node) => SettingLevel::Node(self.node(node)?.id),
            SettingTarget::User(user) => SettingLevel::User(self.user(user)?.id),
        };
        match (self.catalog.setting(level, name).cloned(), value) {
            (Some(setting), Some(value)) => self.put(with(&*setting, |setting| setting.value.clone_from(value))),
            (Some(setting), None) => self.take(&Entity::Setting(setting)),
            (None, Some(value)) => {
                let id = self.next_id();
                self.put(Setting { id, level, name: name.to_owned(), value: value.clone() });
            }
            (None, None) => {}
        }
        Ok(())
    }

    pub(super) fn restore(&mut self, to: &Catalog) -> Outcome {
        let member_secret = self.catalog.database().member_secret.clone();
        for delta in self.catalog.diff(to) {
            match (delta.before, delta.after) {
                (_, Some(after)) => self.put(after),
                (Some(before), None) => self.take(&before),
                (None, None) => {}
            }
        }
        // Members that run go on knowing each other.
        if self.catalog.database().member_secret != member_secret {
            self.put(with(self.catalog.database(), |database| database.member_secret = member_secret));
        }
        // Ids stay used: what was made since then must not be taken for what will be made.
        self.catalog.id_next = self.catalog.id_next.max(to.id_next);
        // Shards are where they were, on the workers there were.
        self.workers_changed = false;
        Ok(())
    }
}
