//! Disks that fail.
#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that panics has failed")]

use std::fs::File;
use std::io;
use std::ops::Bound;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use redb::backends::FileBackend;
use redb::{BackendError, StorageBackend};
use switchyard_catalog::{
    Catalog, Database, Delta, Entity, LoadBalanceGroupId, Name, Network, Policy, RoutingRule, RoutingRuleId,
    SubclusterId,
};
use tempfile::TempDir;

use super::disk::{Disk, Handle};
use super::*;
use crate::contract::Retention;

/// What becomes of writes that were not synced when a sync fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unsynced {
    /// They are there.
    Kept,
    /// None is there.
    Lost,
    /// Every other one is there.
    Torn,
}

#[derive(Debug)]
struct Faults {
    /// The operation that fails, counted from 1 and downwards; 0 is never.
    countdown: AtomicU64,
    /// Whether all after it fail too.
    lasting: bool,
    /// Whether it panics instead.
    panics: bool,
    unsynced: Unsynced,
    syncs: AtomicU64,
    resizes: AtomicU64,
}

impl Faults {
    fn new(countdown: u64, lasting: bool, unsynced: Unsynced) -> Arc<Self> {
        let [countdown, syncs, resizes] = [countdown, 0, 0].map(AtomicU64::new);
        Arc::new(Self { countdown, lasting, panics: false, unsynced, syncs, resizes })
    }

    /// The same, but that it panics.
    fn panicking(countdown: u64) -> Arc<Self> {
        let faults = Arc::into_inner(Self::new(countdown, false, Unsynced::Kept)).unwrap();
        Arc::new(Self { panics: true, ..faults })
    }

    fn mend(&self) {
        self.countdown.store(0, Ordering::Relaxed);
    }

    fn strikes(&self) -> bool {
        match self.countdown.load(Ordering::Relaxed) {
            0 => false,
            1 => {
                if !self.lasting {
                    self.mend();
                }
                assert!(!self.panics, "the disk is on fire");
                true
            }
            left => {
                self.countdown.store(left - 1, Ordering::Relaxed);
                false
            }
        }
    }

    fn step(&self) -> io::Result<()> {
        if self.strikes() { Err(io::Error::from(io::ErrorKind::StorageFull)) } else { Ok(()) }
    }
}

/// A disk with a cache that a failed sync may lose.
#[derive(Debug)]
struct FaultyDisk {
    file: FileBackend,
    faults: Arc<Faults>,
    /// What was there before each write since the last sync, and the length of the file.
    undo: Mutex<Vec<(u64, Vec<u8>, u64)>>,
}

impl FaultyDisk {
    fn lose(&self) {
        let undo = std::mem::take(&mut *self.undo.lock().unwrap());
        for (index, (offset, before, len)) in undo.into_iter().enumerate().rev() {
            if self.faults.unsynced == Unsynced::Lost || index % 2 == 0 {
                self.file.write(offset, &before).unwrap();
                if self.faults.unsynced == Unsynced::Lost {
                    self.file.set_len(len).unwrap();
                }
            }
        }
    }

    fn remember(&self, offset: u64, len: usize) {
        let file_len = self.file.len().unwrap();
        let mut before = vec![0; len.min(usize::try_from(file_len.saturating_sub(offset)).unwrap())];
        self.file.read(offset, &mut before).unwrap();
        self.undo.lock().unwrap().push((offset, before, file_len));
    }
}

impl StorageBackend for FaultyDisk {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.faults.resizes.fetch_add(1, Ordering::Relaxed);
        self.faults.step()?;
        self.remember(0, 0);
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.faults.syncs.fetch_add(1, Ordering::Relaxed);
        if let Err(error) = self.faults.step() {
            if self.faults.unsynced != Unsynced::Kept {
                self.lose();
            }
            return Err(error);
        }
        self.undo.lock().unwrap().clear();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.faults.step()?;
        self.remember(offset, data.len());
        self.file.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }
}

fn open_on(path: &Path, faults: &Arc<Faults>) -> Result<RedbStore, OpenError> {
    let faults = Arc::clone(faults);
    let mount = move |file: File| -> Box<dyn StorageBackend> {
        let file = FileBackend::new(file).unwrap();
        Box::new(FaultyDisk { file, faults: Arc::clone(&faults), undo: Mutex::default() })
    };
    RedbStore::open_with(path, Some(Box::new(mount)))
}

fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory).unwrap() } else { tempfile::tempdir().unwrap() }
}

fn database() -> Entity {
    Entity::Database(Arc::new(Database {
        id: 1,
        name: Name::parse("switchyard").unwrap(),
        policy: Policy::None,
        export_subnet: None,
        default_subcluster: SubclusterId::from(2),
        default_table_group: None,
        member_secret: None,
    }))
}

fn rule(id: u64) -> Entity {
    Entity::RoutingRule(Arc::new(RoutingRule {
        id: RoutingRuleId::from(id),
        name: Name::parse(&format!("rule{id}")).unwrap(),
        source: Network { typed: "10.0.0.0/8".to_owned(), net: "10.0.0.0/8".parse().unwrap() },
        group: LoadBalanceGroupId::from(7),
    }))
}

fn record() -> Record {
    Record { time_us: 0, user: "u".to_owned(), client: "c".to_owned(), statements: vec!["s".to_owned()] }
}

/// Makes the database, or rule number `base`.
fn commit(base: u64) -> Commit {
    let after = Some(if base == 0 { database() } else { rule(base) });
    Commit {
        base,
        id_next: 0,
        deltas: vec![Delta { before: None, after }],
        record: record(),
        retention: Retention::ALL,
    }
}

/// The newest version, after a look at whether it and its history are whole.
async fn head(store: &RedbStore) -> u64 {
    let Some(Loaded { version, entities, .. }) = store.load().await.unwrap() else { return 0 };
    let rules = (1..version).map(rule);
    assert_eq!(entities, std::iter::once(database()).chain(rules).collect::<Vec<_>>());
    let history = store.history(0, usize::MAX).await.unwrap();
    assert_eq!(history.iter().map(|entry| entry.version).collect::<Vec<_>>(), (1..=version).collect::<Vec<_>>());
    let newest = Catalog::from_entities(version, 0, entities).unwrap();
    assert!(store.catalog_at(&newest, 1).await.unwrap().is_some());
    version
}

#[tokio::test]
async fn a_commit_is_one_sync() {
    let folder = folder();
    let faults = Faults::new(0, false, Unsynced::Kept);
    let store = open_on(&folder.path().join("catalog"), &faults).unwrap();
    let counted = || [&faults.syncs, &faults.resizes].map(|count| count.load(Ordering::Relaxed));
    let (mut with_one, mut grown) = (0, 0);
    for base in 0..200 {
        let [syncs, resizes] = counted();
        store.commit(commit(base)).await.unwrap();
        let [syncs_after, resizes_after] = counted();
        if resizes_after == resizes {
            assert_eq!(syncs_after - syncs, 1, "version {}", base + 1);
            with_one += 1;
        } else {
            assert!(syncs_after - syncs <= 2, "version {}", base + 1);
            grown += 1;
        }
    }
    assert!(grown < 6, "{grown} of {with_one}");
    let [syncs, _] = counted();
    for _ in 0..REFUSALS_UNSYNCED_MAX {
        store.note_refusal(1, record(), Outcome::Committed).await.unwrap();
    }
    let [syncs_after, _] = counted();
    assert!(syncs_after - syncs <= 2, "refusals are not durable at once");
    for _ in 0..REFUSALS_UNSYNCED_MAX {
        store.note_refusal(1, record(), Outcome::Committed).await.unwrap();
    }
    assert!(counted()[0] > syncs_after, "but after a while");
}

/// Commits until the disk fails, and follows what comes then. How the commit failed, if it did.
async fn commit_until_fault(faults: &Arc<Faults>) -> Option<&'static str> {
    let folder = folder();
    let path = folder.path().join("catalog");
    let countdown = faults.countdown.swap(0, Ordering::Relaxed);
    let store = open_on(&path, faults).unwrap();
    faults.countdown.store(countdown, Ordering::Relaxed);
    let mut acknowledged = 0;
    let error = loop {
        match store.commit(commit(acknowledged)).await {
            Ok(committed) => acknowledged = committed.version,
            Err(error) => break error,
        }
        if acknowledged == 12 {
            return None;
        }
    };
    if faults.lasting {
        assert!(store.load().await.is_err(), "the disk still fails");
        assert!(matches!(store.commit(commit(acknowledged)).await, Err(CommitError::Refused(_))));
        faults.mend();
    }
    let kind = match error {
        CommitError::Refused(_) => {
            // Nothing was written, and the store goes on by itself.
            assert_eq!(store.commit(commit(acknowledged)).await.unwrap().version, acknowledged + 1);
            acknowledged += 1;
            "refused"
        }
        CommitError::Unknown(_) => {
            let newest = Catalog::from_entities(1, 0, [database()]).unwrap();
            let told = match store.commit(commit(acknowledged)).await.unwrap_err() {
                CommitError::Refused(error) => error.to_string(),
                other => panic!("{other:?}"),
            };
            assert!(told.contains("the outcome of a commit to the store"), "{told}");
            assert!(store.history(0, 1).await.is_err());
            assert!(store.catalog_at(&newest, 1).await.is_err());
            assert!(store.note_refusal(0, record(), Outcome::Committed).await.is_err());
            let found = head(&store).await;
            assert!(found == acknowledged || found == acknowledged + 1, "{found} after {acknowledged}");
            acknowledged = store.commit(commit(found)).await.unwrap().version;
            "unknown"
        }
        CommitError::Stale { .. } => panic!("{error:?}"),
    };
    assert_eq!(head(&store).await, acknowledged);
    drop(store);
    assert_eq!(head(&RedbStore::open(&path).unwrap()).await, acknowledged);
    Some(kind)
}

async fn every_operation_fails_once(lasting: bool, unsynced: Unsynced) {
    let (mut refused, mut unknown) = (0, 0);
    for countdown in 1.. {
        match commit_until_fault(&Faults::new(countdown, lasting, unsynced)).await {
            Some("refused") => refused += 1,
            Some(_) => unknown += 1,
            None => break,
        }
    }
    assert!(refused > 12 && unknown >= 12, "{refused} refused, {unknown} unknown");
}

#[tokio::test]
async fn a_failing_disk_loses_nothing_acknowledged() {
    every_operation_fails_once(false, Unsynced::Kept).await;
}

#[tokio::test]
async fn a_disk_that_stays_broken_loses_nothing_acknowledged() {
    every_operation_fails_once(true, Unsynced::Kept).await;
}

#[tokio::test]
async fn a_disk_that_loses_its_cache_loses_nothing_acknowledged() {
    every_operation_fails_once(false, Unsynced::Lost).await;
}

#[tokio::test]
async fn a_disk_that_loses_half_its_cache_loses_nothing_acknowledged() {
    every_operation_fails_once(false, Unsynced::Torn).await;
}

#[tokio::test]
async fn a_panic_of_the_engine_stays_in_the_store() {
    let folder = folder();
    let path = folder.path().join("catalog");
    let faults = Faults::panicking(0);
    let store = open_on(&path, &faults).unwrap();
    store.commit(commit(0)).await.unwrap();
    faults.countdown.store(1, Ordering::Relaxed);
    assert!(store.commit(commit(1)).await.is_err());
    let found = head(&store).await;
    assert!(found == 1 || found == 2);
    assert_eq!(store.commit(commit(found)).await.unwrap().version, found + 1);
}

#[tokio::test]
async fn a_fault_while_opening_leaves_a_store_that_opens() {
    let folder = folder();
    let path = folder.path().join("catalog");
    let store = RedbStore::open(&path).unwrap();
    for base in 0..5 {
        store.commit(commit(base)).await.unwrap();
    }
    let left_by_kill = std::fs::read(&path).unwrap();
    drop(store);
    for panics in [false, true] {
        for countdown in 1.. {
            std::fs::write(&path, &left_by_kill).unwrap();
            let failing = Faults::new(countdown, false, Unsynced::Torn);
            let faults = if panics { Faults::panicking(countdown) } else { failing };
            let opened = open_on(&path, &faults);
            match &opened {
                Ok(_) => assert!(countdown > 5, "opening writes"),
                Err(OpenError::Damaged { what, .. }) if panics => assert_eq!(what, "the disk is on fire"),
                Err(OpenError::Io { .. }) if !panics => {}
                Err(other) => panic!("{other:?}"),
            }
            let failed = opened.is_err();
            faults.mend();
            drop(opened);
            assert_eq!(head(&RedbStore::open(&path).unwrap()).await, 5);
            if !failed {
                break;
            }
        }
    }
}

#[test]
fn a_fault_while_making_the_file_leaves_none() {
    let folder = folder();
    let path = folder.path().join("catalog");
    for countdown in 1.. {
        match open_on(&path, &Faults::new(countdown, true, Unsynced::Kept)) {
            Ok(_) => {
                assert!(countdown > 5, "making it writes");
                break;
            }
            Err(error) => {
                assert!(matches!(error, OpenError::Io { .. }), "{error:?}");
                assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
            }
        }
    }
}

/// What is held back shows as if it were done, and is the same when it is.
#[test]
fn what_is_held_back_shows() {
    let mut seed = 99_u64;
    let mut chance = |limit: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % limit
    };
    let folder = folder();
    let path = folder.path().join("file");
    for _ in 0..200 {
        let mut model: Vec<u8> = (0..1 + chance(200)).map(|n| u8::try_from(n).unwrap()).collect();
        std::fs::write(&path, &model).unwrap();
        let untouched = model.clone();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        let disk = Disk::holding(Box::new(FileBackend::new(file).unwrap())).unwrap();
        let held = Handle(Arc::clone(&disk));
        for step in 0..chance(30) {
            let offset = usize::try_from(chance(model.len() as u64)).unwrap();
            if chance(3) == 0 {
                let len = 1 + chance(300);
                held.set_len(len).unwrap();
                model.resize(usize::try_from(len).unwrap(), 0);
            } else {
                let len = usize::try_from(1 + chance(50)).unwrap().min(model.len() - offset);
                let data = vec![u8::try_from(200 + step).unwrap(); len];
                held.write(offset as u64, &data).unwrap();
                model[offset..offset + len].copy_from_slice(&data);
            }
            held.sync_data().unwrap();
            assert_eq!(all(&held), model);
            assert_eq!(std::fs::read(&path).unwrap(), untouched);
            let part = model.len().div_ceil(2);
            let mut out = vec![9; part];
            held.read((model.len() - part) as u64, &mut out).unwrap();
            assert_eq!(out, model[model.len() - part..]);
            assert!(held.read(model.len() as u64, &mut [0]).is_err());
        }
        disk.release().unwrap();
        assert_eq!(all(&held), model);
        assert_eq!(std::fs::read(&path).unwrap(), model);
        // The header waits for the sync, and shows before.
        held.write(0, &[77]).unwrap();
        assert!(!disk.header_written() && std::fs::read(&path).unwrap() == model);
        model[0] = 77;
        assert_eq!(all(&held), model);
        held.sync_data().unwrap();
        assert!(disk.header_written() && std::fs::read(&path).unwrap() == model);
        disk.seal();
        assert!(held.write(0, &[]).is_err() && held.set_len(1).is_err() && held.sync_data().is_err());
    }
}

fn all(disk: &Handle) -> Vec<u8> {
    let mut out = vec![9; usize::try_from(disk.len().unwrap()).unwrap()];
    disk.read(0, &mut out).unwrap();
    out
}

#[tokio::test]
async fn a_file_of_format_1_goes_on() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("catalog.redb");
    let store = RedbStore::open(&path).unwrap();
    for base in 0..3 {
        store.commit(commit(base)).await.unwrap();
    }
    drop(store);
    make_format_1(&path, 3, 55);

    let store = RedbStore::open(&path).unwrap();
    assert_eq!(store.load().await.unwrap().unwrap().id_next, 55);
    assert_eq!(head(&store).await, 3);
    let News::Next { version: 3, id_next: 55, .. } = store.newer(2).await.unwrap().pop().unwrap() else {
        panic!("no news of the newest version");
    };
    assert_eq!(format_of(&path, store), 1);
    let store = RedbStore::open(&path).unwrap();
    store.commit(Commit { id_next: 60, ..commit(3) }).await.unwrap();
    assert_eq!(store.load().await.unwrap().unwrap().id_next, 60);
    assert_eq!(head(&store).await, 4);
    assert_eq!(format_of(&path, store), 2);
}

/// Puts the numbers where format 1 had them.
fn make_format_1(path: &Path, version: u64, id_next: u64) {
    let history: redb::TableDefinition<'_, (u64, u8, u32), &[u8]> = redb::TableDefinition::new("history");
    let database = redb::Database::open(path).unwrap();
    let transaction = database.begin_write().unwrap();
    {
        let mut meta = transaction.open_table(format::META).unwrap();
        for (name, value) in [("format", 1), ("version", version), ("id_next", id_next)] {
            meta.insert(name, value).unwrap();
        }
        let mut history = transaction.open_table(history).unwrap();
        for version in 1..=version {
            let row = br#"{"time_us":0,"user":"u","client":"c"}"#;
            history.insert((version, 0, 0), row.as_slice()).unwrap();
        }
    }
    transaction.commit().unwrap();
}

fn format_of(path: &Path, store: RedbStore) -> u64 {
    drop(store);
    let database = redb::Database::open(path).unwrap();
    let transaction = database.begin_read().unwrap();
    transaction.open_table(format::META).unwrap().get("format").unwrap().unwrap().value()
}
