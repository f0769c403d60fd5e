//! etcd goes away, comes back, freezes, and answers get lost.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use switchyard_store::{
    Commit, CommitError, EtcdLink, EtcdOptions, EtcdState, EtcdStore, Loaded, News, OpenError, Retention, Store,
};
use tokio::io::AsyncWriteExt;

use crate::proxy::{Fate, Proxy};
use crate::server::{Etcd, eventually, free_port};
use crate::support::*;

async fn version(store: &EtcdStore) -> u64 {
    store.load().await.unwrap().map_or(0, |loaded| loaded.version)
}

/// Everything that is there belongs together.
async fn is_whole(store: &EtcdStore) -> u64 {
    let Loaded { version, entities, .. } = store.load().await.unwrap().unwrap();
    assert_eq!(sorted(entities), entities_at(version));
    let history = store.history(0, usize::MAX).await.unwrap();
    assert_eq!(history.iter().map(|entry| entry.version).collect::<Vec<_>>(), (1..=version).collect::<Vec<_>>());
    version
}

async fn committed_until(store: &EtcdStore, from: u64, until: u64) {
    for base in from..until {
        store.commit(if base == 0 { first() } else { next(base) }).await.unwrap();
    }
}

/// Follows until a version, without a gap.
async fn followed(store: &EtcdStore, mut seen: u64, until: u64) {
    while seen < until {
        for news in store.newer(seen).await.unwrap() {
            let News::Next { version, .. } = news else { panic!("nothing was given up") };
            assert_eq!(version, seen + 1);
            seen = version;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn etcd_is_started_anew_between_commits() {
    let etcd = Etcd::start().await;
    let (one, two) = (etcd.store("/again").await, Arc::new(etcd.store("/again").await));
    let follower = Arc::clone(&two);
    let following = tokio::spawn(async move {
        followed(&follower, 0, 1).await;
        followed(&follower, 1, 12).await;
    });
    let mut version = 0;
    for _ in 0..3 {
        committed_until(&one, version, version + 4).await;
        version += 4;
        etcd.kill();
        assert!(etcd.run(true).await);
        eventually("it is there again", async || one.load().await.is_ok()).await;
        assert_eq!(is_whole(&one).await, version);
    }
    following.await.unwrap();
    eventually("it is followed again", async || *two.state().borrow() == EtcdState::Reachable).await;
    assert_eq!(is_whole(&two).await, 12);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_etcd_commits_fail_in_time_and_what_was_loaded_can_be_read() {
    let etcd = Etcd::start().await;
    let options = EtcdOptions { request_ms_max: 500, ..etcd.options("/gone") };
    let link = EtcdLink::new(options).unwrap();
    let store = EtcdStore::open(link.clone()).await.unwrap();
    let mut state = store.state();
    committed_until(&store, 0, 5).await;
    followed(&store, 0, 5).await;
    let newest = catalog(5, entities_at(5));
    let history = store.history(2, 99).await.unwrap();
    etcd.kill();

    let began = Instant::now();
    match store.commit(next(5)).await.unwrap_err() {
        CommitError::Refused(error) => {
            let expected = format!("cannot write to etcd at {}: no answer within 500 ms", etcd.url);
            assert!(error.to_string().starts_with(&expected), "{error}");
            assert!(error.to_string().contains("Connection refused"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    state.wait_for(|state| matches!(state, EtcdState::Unreachable { .. })).await.unwrap();
    assert_eq!(store.history(2, 99).await.unwrap(), history);
    assert_eq!(store.catalog_at(&newest, 2).await.unwrap().unwrap().entities().count(), 2);
    assert_eq!(store.oldest_version().await.unwrap(), 1);
    assert!(store.load().await.unwrap_err().to_string().contains("cannot read etcd at"));
    match EtcdStore::open(link).await.unwrap_err() {
        OpenError::Io { path, what } => assert!(path.starts_with("/gone/ on etcd at") && what.contains("no answer")),
        other => panic!("{other:?}"),
    }

    assert!(etcd.run(true).await);
    state.wait_for(|state| *state == EtcdState::Reachable).await.unwrap();
    store.commit(next(5)).await.unwrap();
    assert_eq!(is_whole(&store).await, 6);
    followed(&store, 5, 6).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_etcd_is_noticed() {
    let etcd = Etcd::start().await;
    let options = EtcdOptions { request_ms_max: 500, ..etcd.options("/frozen") };
    let store = EtcdStore::open(EtcdLink::new(options).unwrap()).await.unwrap();
    committed_until(&store, 0, 3).await;
    let mut state = store.state();
    etcd.freeze();
    let began = Instant::now();
    let error = store.commit(next(3)).await.unwrap_err();
    assert!(matches!(error, CommitError::Refused(_)), "{error:?}");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    state.wait_for(|state| matches!(state, EtcdState::Unreachable { .. })).await.unwrap();
    etcd.thaw();
    state.wait_for(|state| *state == EtcdState::Reachable).await.unwrap();
    let base = version(&store).await;
    assert_eq!(base, 3);
    store.commit(next(base)).await.unwrap();
    assert_eq!(is_whole(&store).await, 4);
}

async fn through(proxy: &Proxy) -> EtcdStore {
    let options = EtcdOptions::new(vec![proxy.url.clone()], "/lost");
    EtcdStore::open(EtcdLink::new(EtcdOptions { request_ms_max: 700, ..options }).unwrap()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_is_asked_after() {
    let etcd = Etcd::start().await;
    let proxy = Proxy::to(&etcd.url).await;
    let store = through(&proxy).await;
    committed_until(&store, 0, 2).await;
    // It is done once, and known to be done.
    proxy.next(Fate::AnswerLost, false);
    assert_eq!(store.commit(next(2)).await.unwrap().version, 3);
    assert!(proxy.is_met());
    proxy.next(Fate::Lost, false);
    assert_eq!(store.commit(next(3)).await.unwrap().version, 4);
    assert!(proxy.is_met());
    assert_eq!(is_whole(&store).await, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_outcome_is_settled_later() {
    let etcd = Etcd::start().await;
    let proxy = Proxy::to(&etcd.url).await;
    let store = through(&proxy).await;
    committed_until(&store, 0, 2).await;
    let mut base = 2;
    for (fate, arrived) in [(Fate::AnswerLost, true), (Fate::Lost, false), (Fate::AnswerLost, true)] {
        proxy.next(fate, true);
        let error = store.commit(next(base)).await.unwrap_err();
        assert!(matches!(error, CommitError::Unknown(_)), "{fate:?}: {error:?}");
        proxy.open();
        let found = version(&store).await;
        assert_eq!(found, base + u64::from(arrived), "{fate:?}");
        base = store.commit(next(found)).await.unwrap().version;
        assert_eq!(is_whole(&store).await, base);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_too_late_does_not_come() {
    let etcd = Etcd::start().await;
    let proxy = Proxy::to(&etcd.url).await;
    let store = through(&proxy).await;
    committed_until(&store, 0, 2).await;
    proxy.next(Fate::Delayed, true);
    let error = store.commit(next(2)).await.unwrap_err();
    assert!(matches!(error, CommitError::Unknown(_)), "{error:?}");
    proxy.open();
    // Whoever reads version 2 now has been told that the commit did not happen.
    assert_eq!(version(&store).await, 2);
    proxy.release().await;
    assert_eq!(version(&store).await, 2);
    assert_eq!(etcd.store("/lost").await.load().await.unwrap().unwrap().version, 2);
    store.commit(next(2)).await.unwrap();
    assert_eq!(is_whole(&store).await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_late_and_was_not_asked_after_counts() {
    let etcd = Etcd::start().await;
    let proxy = Proxy::to(&etcd.url).await;
    let store = through(&proxy).await;
    committed_until(&store, 0, 2).await;
    proxy.next(Fate::Delayed, true);
    assert!(matches!(store.commit(next(2)).await, Err(CommitError::Unknown(_))));
    proxy.release().await;
    proxy.open();
    assert_eq!(version(&store).await, 3);
    followed(&store, 0, 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_was_away_catches_up() {
    let etcd = Etcd::start().await;
    let proxy = Proxy::to(&etcd.url).await;
    let away = through(&proxy).await;
    let here = etcd.store("/lost").await;
    committed_until(&here, 0, 3).await;
    followed(&away, 0, 3).await;
    let mut state = away.state();

    proxy.close();
    state.wait_for(|state| matches!(state, EtcdState::Unreachable { .. })).await.unwrap();
    committed_until(&here, 3, 20).await;
    let revision = etcd.client().await.get("x", None).await.unwrap().header().unwrap().revision();
    etcd.client().await.compact(revision, None).await.unwrap();
    proxy.open();
    followed(&away, 3, 20).await;

    // For so long that history has given up what it missed.
    proxy.close();
    let keep = Retention { versions_max: 3, age_us_max: None };
    for base in 20..40 {
        here.commit(Commit { retention: keep, ..next(base) }).await.unwrap();
    }
    here.snapshot().await.unwrap();
    here.commit(Commit { retention: keep, ..next(40) }).await.unwrap();
    assert_eq!(etcd.dump("/lost/log/").await.len(), 3);
    proxy.open();
    match &away.newer(20).await.unwrap()[..] {
        [News::Whole(Loaded { version: 41, entities, .. })] => assert_eq!(sorted(entities.clone()), entities_at(41)),
        other => panic!("{other:?}"),
    }
    here.commit(next(41)).await.unwrap();
    followed(&away, 41, 42).await;
    away.commit(next(42)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_etcd_is_refused_in_time() {
    let answers: [&[u8]; 3] = [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", &[0; 1_000]];
    for answer in answers {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let serving = tokio::spawn(async move {
            let mut clients = Vec::new();
            loop {
                let (mut client, _) = listener.accept().await.unwrap();
                let _ = client.write_all(answer).await;
                clients.push(client);
            }
        });
        let options = EtcdOptions { request_ms_max: 300, ..EtcdOptions::new(vec![url], "/no") };
        let began = Instant::now();
        match EtcdStore::open(EtcdLink::new(options).unwrap()).await.unwrap_err() {
            OpenError::Io { what, .. } => assert!(what.contains("no answer within 300 ms"), "{what}"),
            other => panic!("{other:?}"),
        }
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        serving.abort();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_three_servers_may_go() {
    let names = ["one", "two", "three"];
    let ports = names.map(|_| (free_port(), free_port()));
    let peers: Vec<String> =
        names.iter().zip(ports).map(|(name, (_, peer))| format!("{name}=http://127.0.0.1:{peer}")).collect();
    let peers = peers.join(",");
    let servers =
        names.iter().zip(ports).map(|(name, (client, peer))| Etcd::of_cluster("http", name, client, peer, &peers, &[]));
    let servers: Vec<Etcd> = servers.collect();
    for server in &servers {
        server.run(false).await;
    }
    let endpoints: Vec<String> = servers.iter().map(|server| server.url.clone()).collect();
    let options = EtcdOptions { request_ms_max: 5_000, ..EtcdOptions::new(endpoints, "/three") };
    let open = async || EtcdStore::open(EtcdLink::new(options.clone()).unwrap()).await;
    eventually("the servers agree", async || open().await.is_ok()).await;
    let (one, two) = (open().await.unwrap(), open().await.unwrap());
    let mut version = 0;
    for (round, server) in servers.iter().enumerate() {
        committed_until(&one, version, version + 3).await;
        version += 3;
        // Each of them once: so the leader is among them, and the one in use.
        if round == 1 {
            server.freeze();
        } else {
            server.kill();
        }
        committed_until(&one, version, version + 3).await;
        committed_until(&two, version + 3, version + 6).await;
        version += 6;
        if round == 1 {
            server.thaw();
        } else {
            assert!(server.run(true).await);
        }
    }
    followed(&two, 0, version).await;
    assert_eq!(is_whole(&one).await, version);
    assert_eq!(is_whole(&two).await, version);
}

/// What a member of the test knows of its commits: the id of the rule that each made.
#[derive(Default)]
struct Known {
    acknowledged: Vec<u64>,
    refused: Vec<u64>,
    unknown: usize,
}

impl Known {
    async fn commit(&mut self, store: &EtcdStore, commit: Commit, id: u64) -> Option<u64> {
        let base = commit.base;
        match store.commit(commit).await {
            Ok(committed) => {
                assert_eq!(committed.version, base + 1);
                self.acknowledged.push(id);
                Some(committed.version)
            }
            Err(CommitError::Stale { head, .. }) => {
                self.refused.push(id);
                assert!(head >= base, "versions go on");
                Some(head)
            }
            Err(CommitError::Refused(_)) => {
                self.refused.push(id);
                Some(base)
            }
            Err(CommitError::Unknown(_)) => {
                self.unknown += 1;
                None
            }
        }
    }
}

/// Commits until told to stop, each time a rule of its own, on the way that the proxy lets through.
async fn commit_through_it_all(proxy: &Proxy, seed: u64, number: u64, stop: &AtomicBool) -> Known {
    let options = EtcdOptions::new(vec![proxy.url.clone()], "/chaos");
    let link = EtcdLink::new(EtcdOptions { request_ms_max: 400, ..options }).unwrap();
    let store = loop {
        if let Ok(store) = EtcdStore::open(link.clone()).await {
            break store;
        }
    };
    let mut chance = Chance(seed * 1_000 + number + 1);
    let mut known = Known::default();
    let (mut base, mut id) = (0, number * 1_000_000);
    while !stop.load(Ordering::Relaxed) {
        let fates = [Fate::AnswerLost, Fate::Lost, Fate::Arrives, Fate::Arrives, Fate::Arrives];
        proxy.next(fates[chance.below(fates.len())], chance.below(3) == 0);
        id += 1;
        let mut commit = commit(base, vec![made(rule(id, &format!("rule{id}")))]);
        if base == 0 {
            commit.deltas.push(made(database()));
        }
        if chance.below(8) == 0 {
            // Too large for one request.
            commit.record.statements.push("x".repeat(200_000));
        }
        let newest = known.commit(&store, commit, id).await;
        proxy.open();
        base = match newest {
            Some(newest) => newest,
            None => store.load().await.ok().flatten().map_or(base, |loaded| loaded.version),
        };
    }
    known
}

/// Freezes and ends etcd now and then.
async fn trouble(etcd: &Etcd, seed: u64, time: Duration) {
    let mut chance = Chance(seed);
    let end = Instant::now() + time;
    while Instant::now() < end {
        tokio::time::sleep(Duration::from_millis(200 + chance.below(1_500) as u64)).await;
        if chance.below(2) == 0 {
            etcd.freeze();
            tokio::time::sleep(Duration::from_millis(chance.below(900) as u64)).await;
            etcd.thaw();
        } else {
            etcd.kill();
            assert!(etcd.run(true).await);
        }
    }
}

/// Follows until told to stop, and sees no version twice or backwards, and none left out.
async fn follow_through_it_all(store: &EtcdStore, stop: &AtomicBool) {
    let mut seen = 0;
    while !stop.load(Ordering::Relaxed) {
        let news = tokio::time::timeout(Duration::from_millis(100), store.newer(seen)).await;
        for news in news.ok().and_then(Result::ok).unwrap_or_default() {
            seen = match news {
                News::Next { version, .. } => {
                    assert_eq!(version, seen + 1);
                    version
                }
                News::Whole(Loaded { version, .. }) => {
                    assert!(version > seen);
                    version
                }
            };
        }
    }
}

/// How long, in seconds, and with which seed: `SWITCHYARD_CHAOS_S`, `SWITCHYARD_CHAOS_SEED`.
fn from_environment(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(usual)
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_and_nothing_refused_comes() {
    let seed = from_environment("SWITCHYARD_CHAOS_SEED", 1);
    let time = Duration::from_secs(from_environment("SWITCHYARD_CHAOS_S", 8));
    let etcd = Etcd::start().await;
    let stop = Arc::new(AtomicBool::new(false));
    let mut members = Vec::new();
    for number in 1..=3 {
        let proxy = Proxy::to(&etcd.url).await;
        let stop = Arc::clone(&stop);
        members.push(tokio::spawn(async move { commit_through_it_all(&proxy, seed, number, &stop).await }));
    }
    let watching = Arc::new(etcd.store("/chaos").await);
    let (follower, until) = (Arc::clone(&watching), Arc::clone(&stop));
    let following = tokio::spawn(async move { follow_through_it_all(&follower, &until).await });
    trouble(&etcd, seed, time).await;
    stop.store(true, Ordering::Relaxed);
    following.await.unwrap();
    let mut all = Vec::new();
    for member in members {
        all.push(member.await.unwrap());
    }
    let Loaded { version, entities, .. } = watching.load().await.unwrap().unwrap();
    let rules: BTreeSet<u64> = entities.iter().map(|entity| entity.id()).collect();
    let (mut acknowledged, mut unknown) = (0, 0);
    for known in &all {
        assert!(known.acknowledged.iter().all(|id| rules.contains(id)), "seed {seed}: what was acknowledged is lost");
        assert!(!known.refused.iter().any(|id| rules.contains(id)), "seed {seed}: what was refused is there");
        acknowledged += known.acknowledged.len() as u64;
        unknown += known.unknown as u64;
    }
    println!("{version} versions, {acknowledged} acknowledged, {unknown} unknown");
    // The database is one more, and came with a rule.
    assert_eq!(rules.len() as u64, version + 1);
    assert!(acknowledged <= version && version <= acknowledged + unknown);
    let history = watching.history(0, usize::MAX).await.unwrap();
    assert_eq!(history.iter().map(|entry| entry.version).collect::<Vec<_>>(), (1..=version).collect::<Vec<_>>());
    assert!(acknowledged > 0, "something was committed");
}
