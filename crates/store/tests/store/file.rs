//! What the file does besides what every store promises.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use redb::{Database, TableDefinition};
use switchyard_store::{HistoryEntry, OpenError, Outcome, RedbStore, Store};

use crate::support::*;

/// Makes a store of so many versions, with a refusal at each.
async fn filled(path: &Path, versions: u64) -> RedbStore {
    let store = RedbStore::open(path).unwrap();
    for base in 0..versions {
        store.commit(if base == 0 { first() } else { next(base) }).await.unwrap();
        let outcome = Outcome::Refused { sqlstate: "42704".to_owned(), message: "no such rule".to_owned() };
        store.note_refusal(base + 1, record("DROP ROUTING RULE nobody"), outcome).await.unwrap();
    }
    store
}

/// All that a store says.
async fn told(store: &RedbStore) -> (u64, Vec<switchyard_catalog::Entity>, Vec<HistoryEntry>) {
    let loaded = store.load().await.unwrap().unwrap();
    (loaded.version, sorted(loaded.entities), store.history(0, usize::MAX).await.unwrap())
}

/// Opens what must be refused, and sees that it is as it was.
fn refused(path: &Path) -> OpenError {
    let before = fs::read(path).unwrap();
    let error = RedbStore::open(path).unwrap_err();
    assert!(fs::read(path).unwrap() == before, "{error}: the file was changed");
    error
}

fn assert_damaged(path: &Path, part: &str) {
    let error = refused(path);
    assert!(matches!(&error, OpenError::Damaged { .. }) && error.to_string().contains(part), "{error:?}");
}

#[tokio::test]
async fn reopening_keeps_all() {
    let folder = folder();
    let path = folder.path().join("catalog");
    let store = filled(&path, 30).await;
    let before = told(&store).await;
    assert_eq!((before.0, &before.1, before.2.len()), (30, &entities_at(30), 60));
    drop(store);
    let store = RedbStore::open(&path).unwrap();
    assert_eq!(told(&store).await, before);
    store.commit(next(30)).await.unwrap();
    let newest = catalog(31, store.load().await.unwrap().unwrap().entities);
    for version in 1..=31 {
        let found = store.catalog_at(&newest, version).await.unwrap().unwrap();
        assert_eq!(sorted(found.entities()), entities_at(version));
    }
}

#[tokio::test]
async fn an_empty_store_stays_empty_when_reopened() {
    let folder = folder();
    let path = folder.path().join("catalog");
    drop(RedbStore::open(&path).unwrap());
    assert!(RedbStore::open(&path).unwrap().load().await.unwrap().is_none());
}

#[test]
fn only_the_owner_may_read_the_file_and_nothing_lies_beside_it() {
    let folder = folder();
    let path = folder.path().join("catalog");
    let _store = RedbStore::open(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
}

#[test]
fn what_is_no_store_is_damaged() {
    let folder = folder();
    let path = folder.path().join("catalog");
    fs::write(&path, "").unwrap();
    assert_damaged(&path, "the file is empty");
    fs::write(&path, "x").unwrap();
    assert_damaged(&path, "not a redb database");
    fs::write(&path, "CREATE ROUTING RULE r ROUTE '10.0.0.0/8' TO g;\n".repeat(1_000)).unwrap();
    assert_damaged(&path, "not a redb database");
    fs::write(&path, [0; 100_000]).unwrap();
    assert_damaged(&path, "not a redb database");
}

#[test]
fn a_database_of_something_else_is_refused() {
    let folder = folder();
    let path = folder.path().join("catalog");
    for table in ["other", "meta"] {
        let database = Database::create(&path).unwrap();
        let transaction = database.begin_write().unwrap();
        transaction.open_table(TableDefinition::<u64, u64>::new(table)).unwrap();
        transaction.commit().unwrap();
        drop(database);
        assert_damaged(&path, if table == "other" { "not of a catalog" } else { "meta" });
    }
}

#[tokio::test]
async fn a_newer_format_is_refused() {
    let folder = folder();
    let path = folder.path().join("catalog");
    drop(filled(&path, 3).await);
    for clean in [true, false] {
        let database = Database::create(&path).unwrap();
        let transaction = database.begin_write().unwrap();
        transaction.open_table(TableDefinition::<&str, u64>::new("meta")).unwrap().insert("format", 3).unwrap();
        transaction.commit().unwrap();
        if !clean {
            // As a killed process leaves it: redb would repair it.
            fs::copy(&path, folder.path().join("copy")).unwrap();
            drop(database);
            fs::rename(folder.path().join("copy"), &path).unwrap();
        } else {
            drop(database);
        }
        let error = refused(&path);
        assert!(matches!(error, OpenError::Newer { found: 3, known: 2, .. }), "{error:?}");
        assert!(error.to_string().ends_with("has format 3; this program reads up to 2"), "{error}");
    }
}

#[test]
fn what_the_system_forbids_is_said() {
    let folder = folder();
    let io = |path: &Path| match RedbStore::open(path).unwrap_err() {
        OpenError::Io { what, .. } => what,
        other => panic!("{other:?}"),
    };
    assert!(io(folder.path()).contains("Is a directory"));
    assert!(io(&folder.path().join("missing/catalog")).contains("No such file or directory"));
    fs::write(folder.path().join("text"), "text").unwrap();
    assert!(io(&folder.path().join("text/catalog")).contains("Not a directory"));
    symlink("loop", folder.path().join("loop")).unwrap();
    assert!(io(&folder.path().join("loop")).contains("symbolic links"));
    assert!(io(Path::new("/dev/null")).contains("not a regular file"));
    assert!(io(Path::new("/proc/catalog")).len() > 5);
}

#[tokio::test]
async fn a_store_is_open_once() {
    let folder = folder();
    let path = folder.path().join("catalog");
    let store = filled(&path, 2).await;
    assert!(matches!(refused(&path), OpenError::Locked { .. }));
    store.commit(next(2)).await.unwrap();
}

#[tokio::test]
async fn a_truncated_file_is_refused() {
    let folder = folder();
    let path = folder.path().join("catalog");
    drop(filled(&path, 40).await);
    let whole = fs::read(&path).unwrap();
    for len in [1, 9, 100, 319, 320, 4095, 4096, 4097, 8192, whole.len() / 2, whole.len() - 4096, whole.len() - 1] {
        fs::write(&path, &whole[..len]).unwrap();
        let error = refused(&path);
        assert!(matches!(error, OpenError::Damaged { .. }), "{len}: {error:?}");
    }
    fs::write(&path, [&whole[..], &[7; 1000]].concat()).unwrap();
    assert!(matches!(refused(&path), OpenError::Damaged { .. }));
}

/// Changes bytes of a file, and sees that it is refused untouched, or says nothing wrong. How often it was refused.
async fn with_changed_bytes(image: &[u8], first: usize, end: usize, chance: &mut Chance, versions: &[u64]) -> usize {
    let folder = folder();
    let path = folder.path().join("catalog");
    let mut refusals = 0;
    // Most of a file is room for what is to come, where no change matters.
    let written: Vec<usize> = (first..end).filter(|at| image[*at] != 0).collect();
    for _ in 0..60 {
        let mut changed = image.to_vec();
        let at = written[chance.below(written.len())];
        changed[at] ^= u8::try_from(1 + chance.below(255)).unwrap();
        fs::write(&path, &changed).unwrap();
        match RedbStore::open(&path) {
            Ok(store) => {
                let (version, entities, history) = told(&store).await;
                assert!(versions.contains(&version), "byte {at}: version {version}");
                assert_eq!(entities, entities_at(version), "byte {at}");
                let commits = history.iter().filter(|entry| entry.outcome == Outcome::Committed).count();
                assert_eq!(commits as u64, version, "byte {at}");
                store.commit(next(version)).await.unwrap();
            }
            Err(error) => {
                assert!(matches!(error, OpenError::Damaged { .. }), "byte {at}: {error:?}");
                assert!(fs::read(&path).unwrap() == changed, "byte {at}: the file was changed");
                refusals += 1;
            }
        }
    }
    refusals
}

#[tokio::test]
async fn changed_bytes_are_found() {
    let folder = folder();
    let path = folder.path().join("catalog");
    let store = filled(&path, 60).await;
    // As a killed process leaves it.
    let unclean = fs::read(&path).unwrap();
    drop(store);
    let clean = fs::read(&path).unwrap();
    let mut chance = Chance(4_711);
    assert!(with_changed_bytes(&clean, 0, 320, &mut chance, &[60]).await > 8);
    assert!(with_changed_bytes(&clean, 4096, clean.len(), &mut chance, &[60]).await > 8);
    // Damage to the newest commit of a killed process cannot be told from power loss while it was written.
    assert!(with_changed_bytes(&unclean, 0, 320, &mut chance, &[59, 60]).await > 0);
    assert!(with_changed_bytes(&unclean, 4096, unclean.len(), &mut chance, &[59, 60]).await > 8);
}
