//! The catalog as a value: tables of entities that share structure between versions.

use std::fmt;
use std::sync::Arc;

use imbl::OrdMap;
use serde::{Deserialize, Serialize};

use crate::entity::*;
use crate::id::*;
use crate::name::Name;

/// An entity that has a name of its own kind.
pub trait Named {
    /// The name, if this kind of entity has one.
    fn name(&self) -> Option<&Name>;
}

/// All entities of one kind, by id (the order of creation) and by name. A clone is cheap.
#[derive(Clone)]
pub struct Entities<I, E> {
    rows: OrdMap<I, Arc<E>>,
    names: OrdMap<Name, I>,
}

impl<I, E> fmt::Debug for Entities<I, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} entities", self.rows.len())
    }
}

impl<I: Ord + Copy, E> Default for Entities<I, E> {
    fn default() -> Self {
        Self { rows: OrdMap::new(), names: OrdMap::new() }
    }
}

impl<I: Ord + Copy, E: Named> Entities<I, E> {
    /// The entity with this id.
    pub fn find(&self, id: I) -> Option<&Arc<E>> {
        self.rows.get(&id)
    }

    /// The entity with this name.
    pub fn named(&self, name: &Name) -> Option<&Arc<E>> {
        self.names.get(name).and_then(|id| self.rows.get(id))
    }

    /// All, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<E>> {
        self.rows.values()
    }

    /// All names, in order.
    pub fn names(&self) -> impl Iterator<Item = &Name> {
        self.names.keys()
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Puts an entity in, or in the place of the one with the same id; returns that one.
    pub(crate) fn put(&mut self, id: I, entity: Arc<E>) -> Option<Arc<E>> {
        let before = self.rows.insert(id, Arc::clone(&entity));
        let old_name = before.as_ref().and_then(|old| old.name().cloned());
        if let Some(old_name) = old_name
            && Some(&old_name) != entity.name()
        {
            self.forget(&old_name, id);
        }
        if let Some(name) = entity.name() {
            // Removed first: the map would keep the old spelling of a key that compares equal.
            self.names.remove(name);
            self.names.insert(name.clone(), id);
        }
        before
    }

    /// Takes an entity out.
    pub(crate) fn take(&mut self, id: I) -> Option<Arc<E>> {
        let before = self.rows.remove(&id)?;
        if let Some(name) = before.name() {
            self.forget(name, id);
        }
        Some(before)
    }

    /// Forgets a name, unless another entity has got it meanwhile: deltas may swap two names.
    fn forget(&mut self, name: &Name, id: I) {
        if self.names.get(name) == Some(&id) {
            self.names.remove(name);
        }
    }
}

macro_rules! entities {
    ($($field:ident: $entity:ident($id:ident) $named:ident),* $(,)?) => {
        /// One version of everything the cluster shares.
        #[derive(Debug, Clone)]
        pub struct Catalog {
            pub(crate) version: u64,
            pub(crate) id_next: u64,
            pub(crate) database: Arc<Database>,
            $(pub(crate) $field: Entities<$id, $entity>,)*
        }

        /// Any entity, as stores keep it.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(tag = "kind")]
        pub enum Entity {
            /// The database.
            Database(Arc<Database>),
            $(#[doc = concat!("See [`", stringify!($entity), "`].")] $entity(Arc<$entity>),)*
        }

        impl Entity {
            /// Its id.
            pub fn id(&self) -> u64 {
                match self {
                    Self::Database(entity) => entity.id,
                    $(Self::$entity(entity) => entity.id.into(),)*
                }
            }

            /// The name of its kind, as stores write it: for ever the same.
            pub fn kind(&self) -> &'static str {
                match self {
                    Self::Database(_) => "Database",
                    $(Self::$entity(_) => stringify!($entity),)*
                }
            }
        }

        impl Catalog {
            $(
                #[doc = concat!("All entities of the kind [`", stringify!($entity), "`].")]
                pub fn $field(&self) -> &Entities<$id, $entity> {
                    &self.$field
                }
            )*

            /// Every entity.
            pub fn entities(&self) -> impl Iterator<Item = Entity> {
                std::iter::once(Entity::Database(Arc::clone(&self.database)))
                    $(.chain(self.$field.iter().map(|entity| Entity::$entity(Arc::clone(entity)))))*
            }

            /// Puts one entity in, without any check: for stores that load what was checked when it was made.
            pub(crate) fn put(&mut self, entity: Entity) -> Option<Entity> {
                match entity {
                    Entity::Database(entity) => {
                        let before = std::mem::replace(&mut self.database, entity);
                        Some(Entity::Database(before))
                    }
                    $(Entity::$entity(entity) => self.$field.put(entity.id, entity).map(Entity::$entity),)*
                }
            }

            /// Takes out the entity that has the id and kind of this one. The database stays.
            pub(crate) fn take(&mut self, entity: &Entity) -> Option<Entity> {
                match entity {
                    Entity::Database(_) => None,
                    $(Entity::$entity(entity) => self.$field.take(entity.id).map(Entity::$entity),)*
                }
            }

            /// A catalog with nothing but a database.
            pub(crate) fn bare(database: Database) -> Self {
                Self {
                    version: 0,
                    id_next: ID_FIRST,
                    database: Arc::new(database),
                    $($field: Entities::default(),)*
                }
            }
        }

        $(entities!(@$named $entity);)*
    };
    (@named $entity:ident) => {
        impl Named for $entity {
            fn name(&self) -> Option<&Name> {
                Some(&self.name)
            }
        }
    };
    (@unnamed $entity:ident) => {
        impl Named for $entity {
            fn name(&self) -> Option<&Name> {
                None
            }
        }
    };
}

entities! {
    nodes: Node(NodeId) named,
    subclusters: Subcluster(SubclusterId) named,
    fault_groups: FaultGroup(FaultGroupId) named,
    network_addresses: NetworkAddress(NetworkAddressId) named,
    network_interfaces: NetworkInterface(NetworkInterfaceId) named,
    subnets: Subnet(SubnetId) named,
    load_balance_groups: LoadBalanceGroup(LoadBalanceGroupId) named,
    routing_rules: RoutingRule(RoutingRuleId) named,
    workload_rules: WorkloadRule(WorkloadRuleId) named,
    users: User(UserId) named,
    roles: Role(RoleId) named,
    role_grants: RoleGrant(RoleGrantId) unnamed,
    workload_grants: WorkloadGrant(WorkloadGrantId) unnamed,
    authentications: Authentication(AuthenticationId) named,
    authentication_grants: AuthenticationGrant(AuthenticationGrantId) unnamed,
    user_mappings: UserMapping(UserMappingId) unnamed,
    settings: Setting(SettingId) unnamed,
    table_groups: TableGroup(TableGroupId) named,
    shards: Shard(ShardId) unnamed,
}

/// One entity as it was and as it became. Stores write the second and keep the first for history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delta {
    /// Absent when it was made.
    pub before: Option<Entity>,
    /// Absent when it was dropped.
    pub after: Option<Entity>,
}

impl Delta {
    /// The same step backwards.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self { before: self.after, after: self.before }
    }
}

impl Catalog {
    /// The version: 0 before the first commit, and one more with each.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The id the next object gets.
    pub fn id_next(&self) -> u64 {
        self.id_next
    }

    /// The one database.
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// Puts together what a store kept. The entities are taken as they are: they were checked when they were made.
    /// `None` when there is no database among them.
    pub fn from_entities(version: u64, id_next: u64, entities: impl IntoIterator<Item = Entity>) -> Option<Self> {
        let mut rest = Vec::new();
        let mut found = None;
        for entity in entities {
            match entity {
                Entity::Database(database) => found = Some(database),
                other => rest.push(other),
            }
        }
        let mut catalog = Self::bare(Arc::unwrap_or_clone(found?));
        for entity in rest {
            catalog.put(entity);
        }
        catalog.version = version;
        catalog.id_next = id_next;
        Some(catalog)
    }

    /// The catalog after these deltas, as version `version`; for history, which goes backwards, and for followers of a store.
    #[must_use]
    pub fn with_deltas(&self, version: u64, deltas: impl IntoIterator<Item = Delta>) -> Self {
        let mut next = self.clone();
        for delta in deltas {
            match (delta.before, delta.after) {
                (_, Some(after)) => {
                    next.id_next = next.id_next.max(after.id().saturating_add(1));
                    next.put(after);
                }
                (Some(before), None) => {
                    next.take(&before);
                }
                (None, None) => {}
            }
        }
        next.version = version;
        next
    }
}
