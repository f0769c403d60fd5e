//! One suite for all stores.

use std::sync::Arc;

use switchyard_catalog::{Catalog, Delta, Entity};
use switchyard_store::{
    Commit, CommitError, Committed, HistoryEntry, Loaded, NEWS_MAX, News, Outcome, REFUSAL_BYTES_MAX, REFUSALS_MAX,
    Record, Retention, Store,
};

use crate::support::*;

macro_rules! conformance {
    ($($case:ident),* $(,)?) => {
        mod memory {
            use super::*;
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $case() {
                super::$case(Arc::new(switchyard_store::MemoryStore::new())).await;
            })*
        }

        mod redb {
            use super::*;
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $case() {
                let folder = folder();
                super::$case(Arc::new(switchyard_store::RedbStore::open(folder.path().join("catalog")).unwrap())).await;
            })*
        }

        mod etcd {
            use super::*;
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $case() {
                let server = crate::server::shared().await;
                super::$case(Arc::new(server.store(concat!("/", stringify!($case))).await)).await;
            })*
        }
    };
}

conformance!(
    an_empty_store_loads_nothing,
    the_first_commit_is_on_version_0,
    a_stale_commit_writes_nothing,
    what_was_committed_is_loaded,
    history_is_in_order_and_limited,
    every_version_can_be_read,
    names_may_change_places,
    refusals_stand_where_they_happened,
    the_oldest_refusals_are_forgotten,
    refusals_are_cut,
    a_commit_may_be_large,
    one_of_many_commits_on_a_version_wins,
    a_commit_may_be_empty,
    the_oldest_versions_are_given_up,
    old_versions_are_given_up,
    a_lower_limit_is_reached_by_and_by,
    news_come_in_order,
    who_missed_too_much_reads_all,
    news_are_waited_for,
);

fn dropped(before: Entity) -> Delta {
    Delta { before: Some(before), after: None }
}

fn changed(before: Entity, after: Entity) -> Delta {
    Delta { before: Some(before), after: Some(after) }
}

type Tested = Arc<dyn Store>;

async fn loaded(store: &Tested) -> Loaded {
    store.load().await.unwrap().unwrap()
}

async fn committed(store: &Tested, commit: Commit) {
    let version = commit.base + 1;
    assert_eq!(store.commit(commit).await.unwrap(), Committed { version });
}

async fn an_empty_store_loads_nothing(store: Tested) {
    assert!(store.load().await.unwrap().is_none());
    assert_eq!(store.history(0, usize::MAX).await.unwrap(), []);
}

async fn the_first_commit_is_on_version_0(store: Tested) {
    let refused = store.commit(next(1)).await.unwrap_err();
    assert!(matches!(refused, CommitError::Stale { base: 1, head: 0 }), "{refused:?}");
    committed(&store, first()).await;
    let Loaded { version, id_next, entities } = loaded(&store).await;
    assert_eq!((version, id_next, entities), (1, RULE_FIRST + 1, vec![database()]));
}

async fn a_stale_commit_writes_nothing(store: Tested) {
    committed(&store, first()).await;
    committed(&store, next(1)).await;
    for base in [0, 1, 3, u64::MAX] {
        let commit = Commit { base, id_next: 9, ..commit(7, vec![dropped(database()), made(rule(5, "other"))]) };
        match store.commit(commit).await.unwrap_err() {
            CommitError::Stale { base: named, head: 2 } => assert_eq!(named, base),
            other => panic!("{other:?}"),
        }
    }
    let Loaded { version, id_next, entities } = loaded(&store).await;
    assert_eq!((version, id_next), (2, RULE_FIRST + 2));
    assert_eq!(sorted(entities), sorted([database(), rule(RULE_FIRST + 1, "rule1001")]));
    assert_eq!(store.history(0, usize::MAX).await.unwrap().len(), 2);
}

/// Makes, changes and drops rules, and says which entities there were in each version from 1 on.
async fn with_past(store: &Tested) -> Vec<Vec<Entity>> {
    let mut entities = vec![database()];
    committed(store, first()).await;
    let mut past = vec![entities.clone()];
    for base in 1..60 {
        let id = RULE_FIRST + base;
        let mut deltas: Vec<Delta> = (0..3).map(|n| made(rule(id * 10 + n, &format!("r{id}_{n}")))).collect();
        if base % 3 == 0 {
            let at = 1 + usize::try_from(base).unwrap() % (entities.len() - 1);
            deltas.push(changed(entities[at].clone(), rule(entities[at].id(), &format!("renamed{base}"))));
            entities[at] = deltas.last().unwrap().after.clone().unwrap();
        }
        if base % 4 == 0 {
            let at = 1 + usize::try_from(base * 7).unwrap() % (entities.len() - 1);
            // At most one delta an entity: what was renamed just now stays.
            if !deltas.iter().any(|delta| delta.after.as_ref().unwrap().id() == entities[at].id()) {
                deltas.push(dropped(entities.remove(at)));
            }
        }
        entities.extend(deltas.iter().filter(|delta| delta.before.is_none()).map(|delta| delta.after.clone().unwrap()));
        committed(store, commit(base, deltas)).await;
        past.push(entities.clone());
    }
    past
}

async fn what_was_committed_is_loaded(store: Tested) {
    let past = with_past(&store).await;
    let Loaded { version, id_next, entities } = loaded(&store).await;
    assert_eq!((version, id_next), (60, RULE_FIRST + 60));
    assert_eq!(sorted(entities), sorted(past.last().unwrap().clone()));
}

async fn history_is_in_order_and_limited(store: Tested) {
    with_past(&store).await;
    let all = store.history(0, usize::MAX).await.unwrap();
    let expected = |version| HistoryEntry {
        version,
        record: record(&format!("statement {version}")),
        outcome: Outcome::Committed,
    };
    assert_eq!(all, (1..=60).map(expected).collect::<Vec<_>>());
    assert_eq!(store.history(0, 0).await.unwrap(), []);
    assert_eq!(store.history(0, 7).await.unwrap(), all[..7]);
    assert_eq!(store.history(33, 5).await.unwrap(), all[33..38]);
    assert_eq!(store.history(58, usize::MAX).await.unwrap(), all[58..]);
    assert_eq!(store.history(60, usize::MAX).await.unwrap(), []);
    assert_eq!(store.history(u64::MAX, usize::MAX).await.unwrap(), []);
}

async fn every_version_can_be_read(store: Tested) {
    let past = with_past(&store).await;
    let newest = catalog(60, loaded(&store).await.entities);
    for (index, entities) in past.iter().enumerate() {
        let version = index as u64 + 1;
        let found = store.catalog_at(&newest, version).await.unwrap().unwrap();
        assert_eq!(found.version(), version);
        assert_eq!(sorted(found.entities()), sorted(entities.clone()), "version {version}");
        assert!(found.id_next() >= newest.id_next(), "ids are never given again");
    }
    assert!(store.catalog_at(&newest, 61).await.unwrap().is_none());
    assert!(store.catalog_at(&newest, u64::MAX).await.unwrap().is_none());
    assert!(store.catalog_at(&newest, 0).await.unwrap().is_none());
    // Going back may begin at an older catalog than the newest of the store.
    let older = catalog(30, past[29].clone());
    assert!(store.catalog_at(&older, 31).await.unwrap().is_none());
    let found = store.catalog_at(&older, 2).await.unwrap().unwrap();
    assert_eq!(sorted(found.entities()), sorted(past[1].clone()));
}

fn named(catalog: &Catalog, called: &str) -> u64 {
    catalog.routing_rules().named(&name(called)).unwrap().id.into()
}

async fn names_may_change_places(store: Tested) {
    committed(&store, commit(0, vec![made(database()), made(rule(11, "a")), made(rule(12, "b"))])).await;
    let swap = vec![changed(rule(11, "a"), rule(11, "b")), changed(rule(12, "b"), rule(12, "a"))];
    committed(&store, commit(1, swap)).await;
    committed(&store, commit(2, vec![dropped(rule(11, "b")), made(rule(13, "b"))])).await;
    let newest = catalog(3, loaded(&store).await.entities);
    assert_eq!((named(&newest, "a"), named(&newest, "b")), (12, 13));
    let swapped = store.catalog_at(&newest, 2).await.unwrap().unwrap();
    assert_eq!((named(&swapped, "a"), named(&swapped, "b")), (12, 11));
    let before = store.catalog_at(&newest, 1).await.unwrap().unwrap();
    assert_eq!((named(&before, "a"), named(&before, "b")), (11, 12));
}

fn refused() -> Outcome {
    Outcome::Refused { sqlstate: "42710".to_owned(), message: "rule \"r\" already exists".to_owned() }
}

async fn refuse(store: &Tested, version: u64, statement: &str) -> HistoryEntry {
    store.note_refusal(version, record(statement), refused()).await.unwrap();
    HistoryEntry { version, record: record(statement), outcome: refused() }
}

async fn refusals_stand_where_they_happened(store: Tested) {
    let mut expected = vec![refuse(&store, 0, "too early").await];
    for base in 0..4 {
        committed(&store, if base == 0 { first() } else { next(base) }).await;
        let statement = format!("statement {}", base + 1);
        expected.push(HistoryEntry { version: base + 1, record: record(&statement), outcome: Outcome::Committed });
        expected.push(refuse(&store, base + 1, "no").await);
        // Planned on an older version, refused when there was a newer one.
        expected.push(refuse(&store, base, "no again").await);
    }
    assert_eq!(store.history(0, usize::MAX).await.unwrap(), expected);
    for limit in 0..expected.len() {
        assert_eq!(store.history(0, limit).await.unwrap(), expected[..limit]);
    }
    // After version 2 was made come its refusals, but not version 2.
    assert_eq!(store.history(2, usize::MAX).await.unwrap(), expected[5..]);
    assert_eq!(store.history(2, 3).await.unwrap(), expected[5..8]);
    assert_eq!(store.history(4, usize::MAX).await.unwrap(), expected[11..]);
    assert_eq!(store.history(5, usize::MAX).await.unwrap(), []);
    assert_eq!(loaded(&store).await.version, 4);
}

async fn the_oldest_refusals_are_forgotten(store: Tested) {
    committed(&store, first()).await;
    let surplus = 20;
    for number in 0..REFUSALS_MAX + surplus {
        store.note_refusal(1, record(&number.to_string()), refused()).await.unwrap();
    }
    let history = store.history(1, usize::MAX).await.unwrap();
    assert_eq!(history.len(), REFUSALS_MAX);
    assert_eq!(history[0].record.statements, [surplus.to_string()]);
    assert_eq!(history[REFUSALS_MAX - 1].record.statements, [(REFUSALS_MAX + surplus - 1).to_string()]);
    committed(&store, next(1)).await;
    assert_eq!(store.history(0, usize::MAX).await.unwrap().len(), REFUSALS_MAX + 2);
}

async fn refusals_are_cut(store: Tested) {
    let mut long = record("short");
    long.statements.extend(["ä".repeat(REFUSAL_BYTES_MAX), "left out".to_owned()]);
    let message = "é".repeat(REFUSAL_BYTES_MAX);
    store.note_refusal(0, long, Outcome::Refused { sqlstate: "42601".to_owned(), message }).await.unwrap();
    let history = store.history(0, 1).await.unwrap();
    let statements = &history[0].record.statements;
    assert_eq!((statements.len(), statements[0].as_str()), (2, "short"));
    assert!(statements[1].starts_with("ää") && statements[1].ends_with("ä..."));
    assert!((REFUSAL_BYTES_MAX - 8..=REFUSAL_BYTES_MAX).contains(&(statements[0].len() + statements[1].len())));
    match &history[0].outcome {
        Outcome::Refused { message, .. } => assert!(message.len() <= REFUSAL_BYTES_MAX && message.ends_with("é...")),
        Outcome::Committed => panic!("it was refused"),
    }
}

async fn a_commit_may_be_large(store: Tested) {
    const RULES: u64 = 100_000;
    committed(&store, first()).await;
    let rules: Vec<Entity> = (0..RULES).map(|n| rule(RULE_FIRST + n, &format!("rule{n}"))).collect();
    let mut large = commit(1, rules.iter().cloned().map(made).collect());
    large.record.statements =
        (0..RULES).map(|n| format!("CREATE ROUTING RULE rule{n} ROUTE '10.0.0.{n}' TO g")).collect();
    // One statement alone may be long too.
    large.record.statements[5].extend(std::iter::repeat_n('x', 20_000_000));
    let statements = large.record.statements.clone();
    committed(&store, large).await;
    committed(&store, commit(2, vec![dropped(rule(RULE_FIRST, "rule0"))])).await;

    let loaded = loaded(&store).await;
    assert_eq!(loaded.entities.len() as u64, RULES);
    let newest = catalog(3, loaded.entities);
    let history = store.history(1, 1).await.unwrap();
    assert!(history[0].record.statements == statements);
    let before = store.catalog_at(&newest, 2).await.unwrap().unwrap();
    assert!(sorted(before.entities()) == sorted(rules.into_iter().chain([database()])));
    let bare = store.catalog_at(&newest, 1).await.unwrap().unwrap();
    assert_eq!(sorted(bare.entities()), [database()]);
}

async fn one_of_many_commits_on_a_version_wins(store: Tested) {
    const TASKS: u64 = 8;
    const VERSIONS: u64 = 40;
    committed(&store, first()).await;
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let (mut base, mut won) = (1, Vec::new());
                while base < VERSIONS {
                    let id = base * TASKS + task;
                    let mut commit = commit(base, vec![made(rule(id, &format!("rule{id}")))]);
                    commit.record.user = format!("task{task}");
                    match store.commit(commit).await {
                        Ok(Committed { version }) => {
                            assert_eq!(version, base + 1);
                            won.push((version, id));
                            base = version;
                        }
                        Err(CommitError::Stale { head, .. }) => base = head,
                        Err(other) => panic!("{other:?}"),
                    }
                }
                won
            })
        })
        .collect();
    let mut won = Vec::new();
    for (task, joined) in tasks.into_iter().enumerate() {
        won.extend(joined.await.unwrap().into_iter().map(|(version, id)| (version, id, format!("task{task}"))));
    }
    won.sort();
    assert_eq!(won.iter().map(|(version, ..)| *version).collect::<Vec<_>>(), (2..=VERSIONS).collect::<Vec<_>>());
    let entities = won.iter().map(|(_, id, _)| rule(*id, &format!("rule{id}"))).chain([database()]);
    assert_eq!(sorted(loaded(&store).await.entities), sorted(entities));
    let users = store.history(1, usize::MAX).await.unwrap().into_iter().map(|entry| entry.record.user);
    assert_eq!(users.collect::<Vec<_>>(), won.into_iter().map(|(_, _, user)| user).collect::<Vec<_>>());
}

async fn a_commit_may_be_empty(store: Tested) {
    committed(&store, first()).await;
    let mut empty = commit(1, Vec::new());
    empty.record.statements = Vec::new();
    let record = empty.record.clone();
    committed(&store, empty).await;
    let newest = catalog(2, loaded(&store).await.entities);
    assert_eq!(store.history(1, 9).await.unwrap(), [HistoryEntry { version: 2, record, outcome: Outcome::Committed }]);
    assert_eq!(store.catalog_at(&newest, 1).await.unwrap().unwrap().version(), 1);
}

async fn the_oldest_versions_are_given_up(store: Tested) {
    assert_eq!(store.oldest_version().await.unwrap(), 0);
    let keep = Retention { versions_max: 4, age_us_max: None };
    let mut catalogs = Vec::new();
    for base in 0..10 {
        let commit = if base == 0 { first() } else { next(base) };
        committed(&store, Commit { retention: keep, ..commit }).await;
        let Loaded { version, id_next, entities } = loaded(&store).await;
        catalogs.push(Catalog::from_entities(version, id_next, entities).unwrap());
    }
    assert_eq!(store.oldest_version().await.unwrap(), 7);
    let versions = |entries: Vec<HistoryEntry>| entries.iter().map(|entry| entry.version).collect::<Vec<_>>();
    assert_eq!(versions(store.history(0, usize::MAX).await.unwrap()), [7, 8, 9, 10]);
    assert_eq!(versions(store.history(0, 2).await.unwrap()), [7, 8]);
    assert_eq!(versions(store.history(8, 9).await.unwrap()), [9, 10]);
    let newest = catalogs.last().unwrap();
    for version in 0..=10 {
        let found = store.catalog_at(newest, version).await.unwrap();
        assert_eq!(found.is_some(), version >= 7, "{version}");
        if let Some(found) = found {
            let wanted = &catalogs[usize::try_from(version).unwrap() - 1];
            assert_eq!((found.version(), found.diff(wanted)), (version, Vec::new()));
        }
    }
    // A refusal is not given up with the version it was refused on.
    store.note_refusal(10, record("refused"), refused()).await.unwrap();
    assert_eq!(store.history(0, usize::MAX).await.unwrap().len(), 5);
}

async fn old_versions_are_given_up(store: Tested) {
    let at = |base: u64, time_us| {
        let commit = if base == 0 { first() } else { next(base) };
        let retention = Retention { versions_max: u64::MAX, age_us_max: Some(1_000) };
        Commit { record: Record { time_us, ..commit.record }, retention, ..commit }
    };
    for (base, time_us) in [(0, 10), (1, 500), (2, 1_010), (3, 1_011), (4, 9_000)] {
        committed(&store, at(base, time_us)).await;
        let oldest = [1, 1, 1, 2, 5][usize::try_from(base).unwrap()];
        assert_eq!(store.oldest_version().await.unwrap(), oldest, "{base}");
    }
}

/// Many rows of history, and few of them with each commit.
async fn a_lower_limit_is_reached_by_and_by(store: Tested) {
    committed(&store, first()).await;
    let many = 30_000;
    let large = (0..many).map(|n| made(rule(RULE_FIRST * 1_000 + n, &format!("r{n}")))).collect();
    committed(&store, Commit { id_next: RULE_FIRST * 1_000 + many, ..commit(1, large) }).await;
    let mut oldest = vec![store.oldest_version().await.unwrap()];
    for base in 2..60 {
        let retention = Retention { versions_max: 1, age_us_max: None };
        committed(&store, Commit { retention, ..commit(base, Vec::new()) }).await;
        oldest.push(store.oldest_version().await.unwrap());
        // What is half gone is gone.
        let kept = store.history(0, usize::MAX).await.unwrap();
        assert_eq!(kept.first().map(|entry| entry.version), oldest.last().copied());
    }
    assert!(oldest.is_sorted(), "{oldest:?}");
    assert_eq!(oldest.last(), Some(&60));
}

/// Takes what is new until that version.
async fn followed(store: &Tested, mut catalog: Catalog, until: u64) -> Catalog {
    while catalog.version() < until {
        let news = store.newer(catalog.version()).await.unwrap();
        assert!((1..=NEWS_MAX).contains(&news.len()));
        for news in news {
            catalog = match news {
                News::Next { version, id_next, deltas } => {
                    assert_eq!(version, catalog.version() + 1);
                    assert!(id_next >= RULE_FIRST + version);
                    catalog.followed_by(version, id_next, deltas)
                }
                News::Whole(Loaded { version, id_next, entities }) => {
                    assert!(version > catalog.version());
                    Catalog::from_entities(version, id_next, entities).unwrap()
                }
            };
        }
    }
    catalog
}

async fn news_come_in_order(store: Tested) {
    let past = with_past(&store).await;
    for known in [1, 2, 30, 59] {
        let catalog = catalog(known, past[usize::try_from(known).unwrap() - 1].clone());
        let newest = followed(&store, catalog, 60).await;
        assert_eq!(newest.version(), 60);
        assert_eq!(sorted(newest.entities()), sorted(past[59].clone()));
    }
}

async fn who_missed_too_much_reads_all(store: Tested) {
    committed(&store, first()).await;
    let known = catalog(1, loaded(&store).await.entities);
    let keep = Retention { versions_max: 3, age_us_max: None };
    for base in 1..20 {
        committed(&store, Commit { retention: keep, ..next(base) }).await;
    }
    let newest = followed(&store, known, 20).await;
    assert_eq!(sorted(newest.entities()), entities_at(20));
}

async fn news_are_waited_for(store: Tested) {
    let follower = Arc::clone(&store);
    let following = tokio::spawn(async move {
        let known = match follower.newer(0).await.unwrap().remove(0) {
            News::Next { version: 1, deltas, .. } => {
                catalog(1, deltas.into_iter().filter_map(|delta| delta.after).collect())
            }
            News::Whole(Loaded { version, id_next, entities }) => {
                Catalog::from_entities(version, id_next, entities).unwrap()
            }
            other => panic!("{other:?}"),
        };
        followed(&follower, known, 500).await
    });
    for base in 0..500 {
        committed(&store, if base == 0 { first() } else { next(base) }).await;
    }
    assert_eq!(sorted(following.await.unwrap().entities()), entities_at(500));
    let nothing = tokio::time::timeout(std::time::Duration::from_millis(1), store.newer(500)).await;
    assert!(nothing.is_err(), "{nothing:?}");
}
