//! From one catalog to the next.

mod address;
mod authentication;
mod database;
mod draft;
mod fault_group;
mod group;
mod node;
mod role;
mod rule;
mod subcluster;
mod table_group;
#[cfg(test)]
pub(crate) mod tests;
mod user;

use std::fmt;

pub(crate) use draft::Draft;
pub use table_group::{SHARDS_PER_GROUP_MAX, default_shard_count};

use crate::catalog::{Catalog, Delta};
use crate::change::Change::{self, *};
use crate::error::{CatalogError, ObjectKind};
use crate::name::Name;

/// What came of a list of changes.
#[derive(Debug, Clone)]
pub struct Applied {
    /// The catalog after them; its version is still the old one: the store's commit makes the new one.
    pub catalog: Catalog,
    /// What they did, one delta an entity, in an order in which they can be applied (any order is).
    pub deltas: Vec<Delta>,
    /// What the client should be told besides.
    pub notices: Vec<Notice>,
}

/// Something worth telling that is no error.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// DROP ... IF EXISTS of something that is not there.
    NothingDropped {
        /// Of what kind.
        kind: ObjectKind,
        /// By what name.
        name: Name,
    },
    /// The same in a list of which something else was dropped.
    Skipped {
        /// Of what kind.
        kind: ObjectKind,
        /// By what name.
        name: Name,
    },
    /// GRANT of what is granted.
    AlreadyGranted {
        /// Role, workload or authentication.
        kind: ObjectKind,
        /// Its name.
        name: Name,
        /// To whom.
        grantee: Name,
    },
    /// REVOKE of what is not granted.
    NotGranted {
        /// Role, workload or authentication.
        kind: ObjectKind,
        /// Its name.
        name: Name,
        /// From whom.
        grantee: Name,
    },
    /// The first table group is the default one.
    DefaultTableGroup {
        /// Its name.
        name: Name,
    },
    /// There are fewer workers than the groups' replica counts: their shards have fewer replicas.
    Degraded {
        /// The table groups, each with what it wants.
        table_groups: Vec<(Name, u32)>,
        /// What there is.
        workers: u32,
    },
    /// A user's new name is not the one in what was kept for clients that prove by MD5.
    Md5VerifierCleared {
        /// The new name.
        user: Name,
    },
    /// DROP ... CASCADE did something to what depends on the object.
    Cascaded {
        /// What was dropped.
        kind: ObjectKind,
        /// Its name.
        name: Name,
        /// Whether the dependents were dropped as well, and not changed only.
        dropped: bool,
        /// In the order of creation within each kind.
        dependents: Vec<(ObjectKind, Name)>,
    },
}

impl Notice {
    /// Whether it is a warning, and not just for information.
    pub fn is_warning(&self) -> bool {
        matches!(self, Self::Degraded { .. })
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingDropped { .. } => f.write_str("Nothing was dropped"),
            Self::Skipped { kind, name } => write!(f, "{kind} \"{name}\" does not exist, skipping"),
            Self::AlreadyGranted { kind, name, grantee } => {
                write!(f, "{kind} \"{name}\" is already granted to \"{grantee}\"")
            }
            Self::NotGranted { kind, name, grantee } => write!(f, "{kind} \"{name}\" is not granted to \"{grantee}\""),
            Self::DefaultTableGroup { name } => write!(f, "table group \"{name}\" is now the default table group"),
            Self::Degraded { table_groups, workers } => match table_groups.as_slice() {
                [(table_group, replica_count)] => write!(
                    f,
                    "table group \"{table_group}\" wants {replica_count} replicas of each shard, but there are {workers} workers"
                ),
                many => {
                    let names = many.iter().map(|(name, replica_count)| format!("\"{name}\" ({replica_count})"));
                    let names = listed(names.collect());
                    write!(
                        f,
                        "table groups want more replicas of each shard than there are workers ({workers}): {names}"
                    )
                }
            },
            Self::Md5VerifierCleared { user } => {
                write!(f, "MD5 verifier of user \"{user}\" cleared because of the new name")
            }
            Self::Cascaded { kind, name, dropped, dependents } => {
                let names = listed(dependents.iter().map(|(by, name)| format!("{by} \"{name}\"")).collect());
                let done = if *dropped { "dropped" } else { "changed" };
                write!(f, "also {done} with the drop of {kind} \"{name}\": {names}")
            }
        }
    }
}

/// How many objects a notice names.
const NAMED_MAX: usize = 20;

/// Joined by commas; those beyond [`NAMED_MAX`] are counted.
fn listed(mut names: Vec<String>) -> String {
    let more = names.len().saturating_sub(NAMED_MAX);
    names.truncate(NAMED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", names.join(", "))
}

/// What a single change comes to.
type Outcome = Result<(), CatalogError>;

impl Catalog {
    /// Applies changes in order, all or none. Each sees what those before it did.
    ///
    /// # Errors
    /// The first thing that is wrong. This catalog is unchanged, as always.
    pub fn apply(&self, changes: &[Change]) -> Result<Applied, CatalogError> {
        let mut draft = Draft::new(self);
        for change in changes {
            let before = (draft.notices.len(), draft.touched());
            draft.change(change)?;
            draft.say_what_was_skipped(before);
            draft.place_shards();
        }
        Ok(draft.finish())
    }
}

impl Draft {
    /// A flat list, so that the compiler misses no statement.
    fn change(&mut self, change: &Change) -> Outcome {
        match change {
            CreateNetworkAddress { name, node, host, port, enabled } => {
                self.create_address(name, node, host, *port, *enabled)
            }
            AlterNetworkAddress { name, change } => self.alter_address(name, change),
            DropNetworkAddress { name, if_exists, cascade } => self.drop_address(name, *if_exists, *cascade),
            CreateNetworkInterface { name, node, host, port, enabled } => {
                self.create_interface(name, node, host, *port, *enabled)
            }
            AlterNetworkInterface { name, change } => self.alter_interface(name, change),
            DropNetworkInterface { name, if_exists, cascade } => self.drop_interface(name, *if_exists, *cascade),
            CreateSubnet { name, prefix } => self.create_subnet(name, *prefix),
            RenameSubnet { name, to } => self.rename_subnet(name, to),
            DropSubnets { names, if_exists, cascade } => self.drop_subnets(names, *if_exists, *cascade),
            CreateLoadBalanceGroup { name, source, filter, policy } => self.create_group(name, source, filter, *policy),
            AlterLoadBalanceGroup { name, change } => self.alter_group(name, change),
            DropLoadBalanceGroup { name, if_exists, cascade } => self.drop_group(name, *if_exists, *cascade),
            CreateRoutingRule { name, source, group } => self.create_rule(name, source, group),
            CreateWorkloadRule { name, workload, subclusters, priority } => {
                self.create_workload_rule(name, workload, subclusters, *priority)
            }
            AlterRoutingRule { target, change } => self.alter_rule(target, change),
            DropRoutingRule { target, if_exists } => self.drop_rule(target, *if_exists),
            GrantWorkload { workload, grantees, grantor } => self.grant_workload(workload, grantees, grantor),
            RevokeWorkload { workload, grantees } => self.revoke_workload(workload, grantees),
            CreateUser { name, superuser, changes } => self.create_user(name, *superuser, changes),
            AlterUser { name, changes } => self.alter_user(name, changes),
            DropUsers { names, if_exists, cascade } => self.drop_users(names, *if_exists, *cascade),
            CreateRole { name } => self.create_role(name),
            RenameRole { name, to } => self.rename_role(name, to),
            DropRoles { names, if_exists, cascade } => self.drop_roles(names, *if_exists, *cascade),
            GrantRoles { roles, grantees, admin, grantor } => self.grant_roles(roles, grantees, *admin, grantor),
            RevokeRoles { roles, grantees, admin_only, cascade } => self.revoke(roles, grantees, *admin_only, *cascade),
            CreateAuthentication { name, method, access, fallthrough } => {
                self.create_authentication(name, *method, access, *fallthrough)
            }
            AlterAuthentication { name, change } => self.alter_authentication(name, change),
            DropAuthentications { names, if_exists, cascade } => self.drop_authentications(names, *if_exists, *cascade),
            GrantAuthentication { name, grantees } => self.grant_authentication(name, grantees),
            RevokeAuthentication { name, grantees } => self.revoke_authentication(name, grantees),
            CreateUserMapping { user, node, remote_user, password } => {
                self.create_mapping(user, node, remote_user, password)
            }
            AlterUserMapping { user, node, change } => self.alter_mapping(user, node, change),
            DropUserMapping { user, node, if_exists } => self.drop_mapping(user, node, *if_exists),
            ExportDatabaseOn { subnet } => self.export_database_on(subnet),
            DropAllFaultGroups => self.drop_all_fault_groups(),
            SetPolicy { policy } => self.set_policy(*policy),
            SetMemberSecret { secret } => self.set_member_secret(secret),
            SetSetting { level, name, value } => self.set_setting(level, name, value),
            CreateNode { name, kind, host, port, subcluster } => self.create_node(name, kind, host, *port, subcluster),
            AlterNode { name, change } => self.alter_node(name, change),
            DropNode { name, if_exists, cascade } => self.drop_node(name, *if_exists, *cascade),
            CreateSubcluster { name, primary } => self.create_subcluster(name, *primary),
            AlterSubcluster { name, change } => self.alter_subcluster(name, change),
            DropSubcluster { name, if_exists, cascade } => self.drop_subcluster(name, *if_exists, *cascade),
            DrainSubcluster { name, draining } => self.drain_subcluster(name, *draining),
            CreateFaultGroup { name } => self.create_fault_group(name),
            AlterFaultGroup { name, change } => self.alter_fault_group(name, change),
            DropFaultGroup { name, if_exists } => self.drop_fault_group(name, *if_exists),
            CreateTableGroup { name, shard_count, replica_count, manually, shard_cap } => {
                self.create_table_group(name, *shard_count, *replica_count, *manually, *shard_cap)
            }
            DropTableGroup { name } => self.drop_table_group(name),
            SetTableGroupProperty { name, property } => self.set_table_group_property(name, *property),
            SetDefaultTableGroup { name } => self.set_default_table_group(name),
            Restore { to } => self.restore(to),
        }
    }
}
