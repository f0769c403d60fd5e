//! Commits to try stores with.

use std::sync::Arc;

use switchyard_catalog::{
    Catalog, Database, Delta, Entity, LoadBalanceGroupId, Name, Network, Policy, RoutingRule, RoutingRuleId,
    SubclusterId,
};
use switchyard_store::{Commit, Record};

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

pub fn dropped(before: Entity) -> Delta {
    Delta { before: Some(before), after: None }
}

pub fn changed(before: Entity, after: Entity) -> Delta {
    Delta { before: Some(before), after: Some(after) }
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
    Commit { base, id_next: RULE_FIRST + base + 1, deltas, record: record(&format!("statement {}", base + 1)) }
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

/// The entities of a catalog in an order of their own.
pub fn sorted(entities: impl IntoIterator<Item = Entity>) -> Vec<Entity> {
    let mut entities: Vec<Entity> = entities.into_iter().collect();
    entities.sort_by_key(|entity| (entity.kind(), entity.id()));
    entities
}

pub fn catalog(version: u64, entities: Vec<Entity>) -> Catalog {
    Catalog::from_entities(version, RULE_FIRST + version, entities).unwrap()
}
