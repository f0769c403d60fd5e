//! The catalog as a value: tables of entities that share structure between versions.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::sync::Arc;

use imbl::OrdMap;
use serde::{Deserialize, Serialize};

use crate::entity::*;
use crate::id::*;
use crate::index::Index;
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

    /// Whether these are the very same as others, unchanged since they were cloned; told without a look at each.
    pub fn is_same(&self, other: &Self) -> bool {
        self.rows.ptr_eq(&other.rows)
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
        if let Some(old) = &before {
            self.forget_name(old, id);
        }
        if let Some(name) = entity.name() {
            // Removed first: the map would keep the old spelling of a key that compares equal.
            self.names.remove(name);
            self.names.insert(name.clone(), id);
        }
        before
    }

    /// Forgets a name, unless another entity has got it meanwhile: deltas may swap two names.
    fn forget_name(&mut self, entity: &E, id: I) {
        if let Some(name) = entity.name()
            && self.names.get(name) == Some(&id)
        {
            self.names.remove(name);
        }
    }

    /// Takes an entity out.
    pub(crate) fn take(&mut self, id: I) -> Option<Arc<E>> {
        let before = self.rows.remove(&id)?;
        self.forget_name(&before, id);
        Some(before)
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
            pub(crate) index: Index,
        }

        /// Any entity, as stores keep it.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(tag = "entity")]
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

            fn put_row(&mut self, entity: Entity) -> Option<Entity> {
                match entity {
                    Entity::Database(entity) => {
                        let before = std::mem::replace(&mut self.database, entity);
                        Some(Entity::Database(before))
                    }
                    $(Entity::$entity(entity) => self.$field.put(entity.id, entity).map(Entity::$entity),)*
                }
            }

            fn take_row(&mut self, entity: &Entity) -> Option<Entity> {
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
                    index: Index::default(),
                }
            }

            /// What makes of this catalog the other one.
            pub fn diff(&self, to: &Self) -> Vec<Delta> {
                let mut deltas = Vec::new();
                if !Arc::ptr_eq(&self.database, &to.database) {
                    deltas.push(Delta {
                        before: Some(Entity::Database(Arc::clone(&self.database))),
                        after: Some(Entity::Database(Arc::clone(&to.database))),
                    });
                }
                $(
                    let old = self.$field.rows.values();
                    deltas.extend(old.filter_map(|old| {
                        let new = to.$field.find(old.id);
                        (!new.is_some_and(|new| Arc::ptr_eq(old, new))).then(|| Delta {
                            before: Some(Entity::$entity(Arc::clone(old))),
                            after: new.map(|new| Entity::$entity(Arc::clone(new))),
                        })
                    }));
                    let new = to.$field.rows.values().filter(|new| self.$field.find(new.id).is_none());
                    deltas.extend(new.map(|new| Delta { before: None, after: Some(Entity::$entity(Arc::clone(new))) }));
                )*
                deltas.retain(|delta| !delta.is_empty());
                deltas
            }
        }

        $(impl From<$entity> for Entity {
            fn from(entity: $entity) -> Self {
                Self::$entity(Arc::new(entity))
            }
        })*

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

    /// Whether nothing changed, not even how a name is spelled.
    pub fn is_empty(&self) -> bool {
        match (&self.before, &self.after) {
            (None, None) => true,
            // Equal names may differ in case, which `Debug` shows and `==` does not.
            (Some(before), Some(after)) => before == after && format!("{before:?}") == format!("{after:?}"),
            _ => false,
        }
    }
}

/// Puts the deltas of several steps together: at most one an entity, from the first before to the last after. What
/// came back to where it was is left out.
pub fn merge_deltas(deltas: Vec<Delta>) -> Vec<Delta> {
    let mut merged: BTreeMap<u64, Delta> = BTreeMap::new();
    for delta in deltas {
        let Some(id) = delta.after.as_ref().or(delta.before.as_ref()).map(Entity::id) else { continue };
        match merged.entry(id) {
            Entry::Vacant(vacant) => {
                vacant.insert(delta);
            }
            Entry::Occupied(mut occupied) => occupied.get_mut().after = delta.after,
        }
    }
    merged.into_values().filter(|delta| !delta.is_empty()).collect()
}

impl From<Database> for Entity {
    fn from(database: Database) -> Self {
        Self::Database(Arc::new(database))
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
        catalog.index.settle();
        Some(catalog)
    }

    /// The same catalog under another version number.
    #[must_use]
    pub fn with_version(mut self, version: u64) -> Self {
        self.version = version;
        self.index.settle();
        self
    }

    /// Puts one entity in, without any check: for stores that load what was checked when it was made.
    pub(crate) fn put(&mut self, entity: Entity) -> Option<Entity> {
        let before = self.put_row(entity.clone());
        if let Some(before) = &before {
            self.index.forget(before);
        }
        self.index.learn(&entity);
        before
    }

    /// Takes out the entity that has the id and kind of this one. The database stays.
    pub(crate) fn take(&mut self, entity: &Entity) -> Option<Entity> {
        let before = self.take_row(entity)?;
        self.index.forget(&before);
        Some(before)
    }

    /// The next version as a store tells it: after these deltas, and with ids from `id_next` on.
    #[must_use]
    pub fn followed_by(&self, version: u64, id_next: u64, deltas: impl IntoIterator<Item = Delta>) -> Self {
        let mut next = self.with_deltas(version, deltas);
        next.id_next = next.id_next.max(id_next);
        next
    }

    /// The catalog after these deltas, as version `version`; for history, which goes backwards.
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
        next.index.settle();
        next
    }
}
