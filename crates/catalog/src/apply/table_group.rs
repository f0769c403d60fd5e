//! Table groups and their shards (`reference/hologres.md` §1).

use std::sync::Arc;

use super::draft::{Draft, with};
use super::{Notice, Outcome};
use crate::catalog::Entity;
use crate::change::TableGroupProperty;
use crate::entity::*;
use crate::error::{CatalogError, ShardCap};
use crate::id::*;
use crate::name::Name;
use crate::placement::place;

/// The most shards of one table group, with the caps lifted too.
pub const SHARDS_PER_GROUP_MAX: u32 = 10_000;

/// How many times the default shard count one table group may have.
const GROUP_CAP_FACTOR: u64 = 2;

/// How many times the default shard count all table groups together may have.
const CLUSTER_CAP_FACTOR: u64 = 8;

/// The vendor's default shard count for an instance of so many workers, of 16 CU each (`reference/hologres.md` §1.3).
/// The rows of its table are met exactly, and between them the count rises evenly: 10 a worker up to 8 workers, none
/// to 12, 10 a worker to 16, 5 a worker to 24, none to 32; beyond the table 5 a worker, as in its last row. A cluster
/// without workers counts as having one.
pub fn default_shard_count(workers: u32) -> u32 {
    match workers {
        0..=1 => 10,
        2..=8 => workers.saturating_mul(10),
        9..=12 => 80,
        13..=16 => 80_u32.saturating_add(workers.saturating_sub(12).saturating_mul(10)),
        17..=24 => 120_u32.saturating_add(workers.saturating_sub(16).saturating_mul(5)),
        25..=32 => 160,
        _ => workers.saturating_mul(5),
    }
}

impl Draft {
    /// The nodes that shard replicas can be on, the oldest first.
    fn workers(&self) -> Vec<NodeId> {
        let nodes = self.catalog.nodes.iter();
        nodes.filter(|node| node.is_worker() && !node.draining).map(|node| node.id).collect()
    }

    fn worker_count(&self) -> u32 {
        u32::try_from(self.workers().len()).unwrap_or(u32::MAX)
    }

    /// One replica is always allowed: without workers it has no place yet.
    fn check_replica_count(&self, replica_count: u32) -> Outcome {
        let workers = self.worker_count();
        if replica_count == 0 {
            let max = u64::from(workers.max(1));
            return Err(CatalogError::OutOfRange { what: "replica_count", value: 0, min: 1, max });
        }
        if replica_count > workers.max(1) {
            return Err(CatalogError::TooFewWorkers { replica_count, workers });
        }
        Ok(())
    }

    /// Replicas do not count.
    fn check_caps(&self, name: &Name, shard_count: u32) -> Outcome {
        let workers = self.worker_count();
        let default = u64::from(default_shard_count(workers));
        let others: u64 = self.catalog.table_groups.iter().map(|group| u64::from(group.shard_count)).sum();
        let scopes = [
            (ShardCap::TableGroup, u64::from(shard_count), default.saturating_mul(GROUP_CAP_FACTOR)),
            (ShardCap::Cluster, others.saturating_add(shard_count.into()), default.saturating_mul(CLUSTER_CAP_FACTOR)),
        ];
        match scopes.into_iter().find(|(_, count, cap)| count > cap) {
            Some((scope, count, cap)) => {
                Err(CatalogError::TooManyShards { table_group: name.clone(), scope, count, cap, workers })
            }
            None => Ok(()),
        }
    }

    /// The first table group becomes the default one: a database that has any has exactly one default (§0, §1.4). Later
    /// ones do not, until they are made it.
    pub(super) fn create_table_group(
        &mut self,
        name: &Name,
        shard_count: u32,
        replica_count: u32,
        manually: bool,
        shard_cap: bool,
    ) -> Outcome {
        self.table_group_name_free(name, None)?;
        let out_of_range = || {
            let (value, max) = (u64::from(shard_count), u64::from(SHARDS_PER_GROUP_MAX));
            CatalogError::OutOfRange { what: "shard_count", value, min: 1, max }
        };
        if shard_count == 0 {
            return Err(out_of_range());
        }
        self.check_replica_count(replica_count)?;
        if shard_cap {
            self.check_caps(name, shard_count)?;
        }
        if shard_count > SHARDS_PER_GROUP_MAX {
            return Err(out_of_range());
        }
        let id: TableGroupId = self.next_id();
        let (name, created_manually) = (name.clone(), manually);
        self.put(TableGroup { id, name: name.clone(), shard_count, replica_count, created_manually, version: 1 });
        for (number, replicas) in (0..).zip(place(shard_count, replica_count, &self.workers(), &[])) {
            let shard = self.next_id();
            self.put(Shard { id: shard, table_group: id, number, replicas: replicas_on(&replicas, &[]) });
        }
        if self.catalog.database.default_table_group.is_none() {
            self.put(with(self.catalog.database(), |database| database.default_table_group = Some(id)));
            self.notices.push(Notice::DefaultTableGroup { name });
        }
        Ok(())
    }

    /// The default table group is dropped last: as long as there are others, tables must have somewhere to go.
    pub(super) fn drop_table_group(&mut self, name: &Name) -> Outcome {
        let group = self.table_group(name)?;
        if self.catalog.database.default_table_group == Some(group.id) {
            if self.catalog.table_groups.len() > 1 {
                return Err(CatalogError::DefaultTableGroup { name: group.name.clone() });
            }
            self.put(with(self.catalog.database(), |database| database.default_table_group = None));
        }
        let shards: Vec<Arc<Shard>> = self.catalog.shards_of(group.id).cloned().collect();
        for shard in shards {
            self.take(&Entity::Shard(shard));
        }
        self.take(&Entity::TableGroup(group));
        Ok(())
    }

    pub(super) fn set_table_group_property(&mut self, name: &Name, property: TableGroupProperty) -> Outcome {
        let group = self.table_group(name)?;
        match property {
            TableGroupProperty::ReplicaCount(replica_count) if replica_count == group.replica_count => Ok(()),
            TableGroupProperty::ReplicaCount(replica_count) => {
                self.check_replica_count(replica_count)?;
                let group = with(&*group, |group| group.replica_count = replica_count);
                self.place_group(&group, true, &self.workers());
                Ok(())
            }
        }
    }

    pub(super) fn set_default_table_group(&mut self, name: &Name) -> Outcome {
        let id = self.table_group(name)?.id;
        self.put(with(self.catalog.database(), |database| database.default_table_group = Some(id)));
        Ok(())
    }

    /// Places the shards of all table groups anew, if workers came or went.
    pub(super) fn place_shards(&mut self) {
        if !std::mem::take(&mut self.workers_changed) {
            return;
        }
        let workers = self.workers();
        let groups: Vec<Arc<TableGroup>> = self.catalog.table_groups.iter().cloned().collect();
        let count = self.worker_count();
        let mut table_groups = Vec::new();
        for group in groups {
            self.place_group(&group, false, &workers);
            if group.replica_count > count {
                table_groups.push((group.name.clone(), group.replica_count));
            }
        }
        if !table_groups.is_empty() {
            self.notices.push(Notice::Degraded { table_groups, workers: count });
        }
    }

    /// Places the shards of one table group anew; what can stay where it is does. Raises its version if it, or a shard,
    /// changed.
    fn place_group(&mut self, group: &TableGroup, changed: bool, workers: &[NodeId]) {
        let shards: Vec<Arc<Shard>> = self.catalog.shards_of(group.id).cloned().collect();
        let previous: Vec<Vec<NodeId>> =
            shards.iter().map(|shard| shard.replicas.iter().map(|replica| replica.worker).collect()).collect();
        let placed = place(group.shard_count, group.replica_count, workers, &previous);
        let mut changed = changed;
        for (shard, workers) in shards.iter().zip(placed) {
            let replicas = replicas_on(&workers, &shard.replicas);
            if replicas != shard.replicas {
                self.put(with(&**shard, |shard| shard.replicas = replicas));
                changed = true;
            }
        }
        if changed {
            self.put(with(group, |group| group.version = group.version.saturating_add(1)));
        }
    }
}

/// Replicas on these workers, the leader first. Those that were there before are as far as they were.
fn replicas_on(workers: &[NodeId], before: &[Replica]) -> Vec<Replica> {
    let role = |position| if position == 0 { ReplicaRole::Leader } else { ReplicaRole::Follower };
    let state = |worker| {
        let known = before.iter().find(|replica| replica.worker == worker);
        known.map_or(ReplicaState::Planned, |replica| replica.state)
    };
    let replicas = workers.iter().enumerate();
    replicas
        .map(|(position, worker)| Replica { worker: *worker, role: role(position), state: state(*worker) })
        .collect()
}
