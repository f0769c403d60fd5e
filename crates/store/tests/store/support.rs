//! Commits to try stores with.

use std::path::Path;
use std::sync::Arc;

use switchyard_catalog::{
    Catalog, Database, Delta, Entity, LoadBalanceGroupId, Name, Network, Policy, RoutingRule, RoutingRuleId,
    SubclusterId,
};
use switchyard_store::{Commit, Record, Retention};
use tempfile::TempDir;

/// A folder in memory where there is one: what is tested here does not depend on the disk, but waits for it.
pub fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory).unwrap() } else { tempfile::tempdir().unwrap() }
}

/// Numbers that look random and are the same in each run.
pub struct Chance(pub u64);

impl Chance {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap()
    }
}

/// The first id of a rule.
pub const RULE_FIRST: u64 = 1_000;

pub fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

pub fn database() -> Entity {
    Entity::Database(Arc::new(Database {
        id: 1,
        name: name("switchyard"),
        policy: Policy::None,
        export_subnet: None,
        default_subcluster: SubclusterId::from(2),
        default_table_group: None,
        member_secret: None,
    }))
}

pub fn rule(id: u64, called: &str) -> Entity {
    let typed = format!("10.{}.{}.{}/32", id >> 16 & 255, id >> 8 & 255, id & 255);
    Entity::RoutingRule(Arc::new(RoutingRule {
        id: RoutingRuleId::from(id),
        name: name(called),
        source: Network { net: typed.parse().unwrap(), typed },
        group: LoadBalanceGroupId::from(7),
    }))
}

pub fn made(after: Entity) -> Delta {
    Delta { before: None, after: Some(after) }
}

pub fn record(statement: &str) -> Record {
    Record {
        time_us: 1_700_000_000_000_000,
        user: "dbadmin".to_owned(),
        client: "127.0.0.1:50000".to_owned(),
        statements: vec![statement.to_owned()],
    }
}

pub fn commit(base: u64, deltas: Vec<Delta>) -> Commit {
    let record = record(&format!("statement {}", base + 1));
    Commit { base, id_next: RULE_FIRST + base + 1, deltas, record, retention: Retention::ALL }
}

/// The first commit: the database alone.
pub fn first() -> Commit {
    commit(0, vec![made(database())])
}

/// A commit after the first that makes one rule, whose id and name come from the version.
pub fn next(base: u64) -> Commit {
    let id = RULE_FIRST + base;
    commit(base, vec![made(rule(id, &format!("rule{id}")))])
}

/// What there is after [`first`] and so many of [`next`].
pub fn entities_at(version: u64) -> Vec<Entity> {
    let rules = (1..version).map(|base| rule(RULE_FIRST + base, &format!("rule{}", RULE_FIRST + base)));
    sorted(rules.chain((version > 0).then(database)))
}

/// The entities of a catalog in an order of their own.
pub fn sorted(entities: impl IntoIterator<Item = Entity>) -> Vec<Entity> {
    let mut entities: Vec<Entity> = entities.into_iter().collect();
    entities.sort_by_key(|entity| (entity.kind(), entity.id()));
    entities
}

pub fn catalog(version: u64, entities: Vec<Entity>) -> Catalog {
    Catalog::from_entities(version, RULE_FIRST + version, entities).unwrap()
}
