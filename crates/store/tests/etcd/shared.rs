//! Several stores on one etcd that works.

use std::sync::Arc;
use std::time::Duration;

use etcd_client::{GetOptions, PutOptions};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use switchyard_catalog::Catalog;
use switchyard_store::{
    Commit, CommitError, EtcdLink, EtcdOptions, EtcdOptionsError, EtcdStore, EtcdTls, Loaded, News, OpenError, Outcome,
    Retention, Store,
};

use crate::server::{Etcd, eventually, shared};
use crate::support::*;

const OBJECTS: u64 = 5_000;

fn large(base: u64, objects: u64) -> Commit {
    let rules = (0..objects).map(|n| made(rule(1_000_000 + n, &format!("large{n}"))));
    let mut commit = commit(base, rules.collect());
    commit.id_next = 1_000_000 + objects;
    commit
}

async fn loaded(store: &EtcdStore) -> Loaded {
    store.load().await.unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_stores_agree() {
    let etcd = shared().await;
    let (one, two) = (etcd.store("/agree").await, etcd.store("/agree").await);
    one.commit(first()).await.unwrap();
    two.commit(next(1)).await.unwrap();
    match one.commit(next(1)).await.unwrap_err() {
        CommitError::Stale { base: 1, head: 2 } => {}
        other => panic!("{other:?}"),
    }
    one.commit(next(2)).await.unwrap();
    for store in [&one, &two] {
        let Loaded { version, id_next, entities } = loaded(store).await;
        assert_eq!((version, id_next, sorted(entities)), (3, RULE_FIRST + 3, entities_at(3)));
        assert_eq!(store.history(0, usize::MAX).await.unwrap().len(), 3);
    }
    // What one member's users were refused, all members' see.
    let refused = Outcome::Refused { sqlstate: "42710".to_owned(), message: "no".to_owned() };
    one.note_refusal(3, record("of one"), refused).await.unwrap();
    assert_eq!(one.history(3, 9).await.unwrap()[0].record.statements, ["of one"]);
    one.flush().await.unwrap();
    assert_eq!(one.history(0, 9).await.unwrap(), two.history(0, 9).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn many_commits_of_two_stores_are_one_history() {
    const VERSIONS: u64 = 200;
    let etcd = shared().await;
    let stores = [etcd.store("/race").await, etcd.store("/race").await].map(Arc::new);
    let watching = etcd.store("/race").await;
    stores[0].commit(first()).await.unwrap();
    let tasks = stores.map(|store| {
        tokio::spawn(async move {
            let (mut base, mut won) = (1, 0);
            while base < VERSIONS {
                match store.commit(next(base)).await {
                    Ok(committed) => (base, won) = (committed.version, won + 1),
                    Err(CommitError::Stale { head, .. }) => base = head,
                    Err(other) => panic!("{other:?}"),
                }
            }
            won
        })
    });
    let mut seen = 0;
    while seen < VERSIONS {
        for news in watching.newer(seen).await.unwrap() {
            match news {
                News::Next { version, .. } => assert_eq!(version, seen + 1),
                News::Whole(Loaded { version, .. }) => assert!(seen == 0 && version > 0),
            }
            seen += 1;
        }
    }
    let mut won = Vec::new();
    for task in tasks {
        won.push(task.await.unwrap());
    }
    assert_eq!(won.iter().sum::<u64>(), VERSIONS - 1, "{won:?}");
    assert_eq!(sorted(loaded(&watching).await.entities), entities_at(VERSIONS));
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_sees_half_of_a_large_commit() {
    let etcd = shared().await;
    let (one, two) = (etcd.store("/half").await, Arc::new(etcd.store("/half").await));
    one.commit(first()).await.unwrap();
    let reader = Arc::clone(&two);
    let reading = tokio::spawn(async move {
        let mut both = [0, 0];
        while both[1] == 0 {
            let Loaded { version, entities, .. } = loaded(&reader).await;
            assert_eq!(entities.len() as u64, if version == 1 { 1 } else { 1 + OBJECTS }, "version {version}");
            both[usize::from(version == 2)] += 1;
        }
        both
    });
    let follower = Arc::clone(&two);
    let following = tokio::spawn(async move { follower.newer(1).await.unwrap() });
    one.commit(large(1, OBJECTS)).await.unwrap();
    match &following.await.unwrap()[..] {
        [News::Next { version: 2, id_next, deltas }] => {
            assert_eq!((deltas.len() as u64, *id_next), (OBJECTS, 1_000_000 + OBJECTS));
        }
        other => panic!("{} news", other.len()),
    }
    assert!(reading.await.unwrap()[0] > 0, "it was read before too");
    assert!(etcd.dump("/half/stage/").await.is_empty(), "nothing is left staged");
    assert_eq!(one.sweep().await.unwrap(), 0, "and nothing of it is swept");
    assert_eq!(loaded(&two).await.entities.len() as u64, 1 + OBJECTS);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_crash_leaves_staged_is_swept() {
    let etcd = shared().await;
    let (one, two) = (etcd.store("/crash").await, etcd.store("/crash").await);
    one.commit(first()).await.unwrap();
    let mut client = etcd.client().await;
    let staged = async || !etcd.dump("/crash/parts/").await.is_empty();
    {
        let mut huge = commit(1, Vec::new());
        huge.record.statements = (0..64).map(|_| "x".repeat(512 * 1024)).collect();
        let committing = one.commit(huge);
        tokio::select! {
            biased;
            () = eventually("something is staged", staged) => {}
            done = committing => panic!("too fast: {done:?}"),
        }
    }
    // As long as its lease runs nobody can know that it is dead.
    let marker = etcd.dump("/crash/stage/").await;
    if marker.len() == 1 {
        let swept = two.sweep().await.unwrap();
        let still_there = !etcd.dump("/crash/stage/").await.is_empty();
        assert!(swept == 0 || !still_there, "a live one was swept");
    }
    eventually("the lease ends", async || etcd.dump("/crash/stage/").await.is_empty()).await;
    // The store's own keeper may have been faster.
    two.sweep().await.unwrap();
    assert_eq!(etcd.dump("/crash/parts/").await, []);
    one.commit(large(1, OBJECTS)).await.unwrap();
    assert_eq!(loaded(&two).await.version, 2);

    // One that lives is not swept, however old its version, and one that is part of history neither.
    let parts = etcd.dump("/crash/parts/").await.len();
    assert!(parts > 0);
    let id = format!("{:020}-{}", 3, "a".repeat(32));
    client.put(format!("/crash/parts/{id}/d00000000"), "[]", None).await.unwrap();
    let lease = client.lease_client().grant(60, None).await.unwrap().id();
    let marker = format!("/crash/stage/parts-{id}");
    client.put(marker.as_str(), "", Some(PutOptions::new().with_lease(lease))).await.unwrap();
    assert_eq!(two.sweep().await.unwrap(), 0);
    assert_eq!(etcd.dump("/crash/parts/").await.len(), parts + 1);
    client.lease_client().revoke(lease).await.unwrap();
    two.sweep().await.unwrap();
    assert_eq!(etcd.dump("/crash/parts/").await.len(), parts);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_stands_for_what_is_given_up() {
    // More than 1 MiB.
    const MANY: u64 = 10_000;
    let etcd = shared().await;
    let one = etcd.store("/snapshot").await;
    one.commit(first()).await.unwrap();
    one.commit(large(1, MANY)).await.unwrap();
    eventually("a snapshot is written", async || !etcd.dump("/snapshot/snapshot/").await.is_empty()).await;
    let keep = Retention { versions_max: 5, age_us_max: None };
    for base in 2..40 {
        one.commit(Commit { retention: keep, id_next: 2_000_000, ..next(base) }).await.unwrap();
    }
    one.snapshot().await.unwrap();
    assert!(!one.snapshot().await.unwrap(), "it is there already");
    one.commit(Commit { retention: keep, id_next: 2_000_000, ..next(40) }).await.unwrap();
    assert_eq!(etcd.dump("/snapshot/log/").await.len(), 5);
    assert_eq!(etcd.dump("/snapshot/parts/").await, []);
    let snapshots: Vec<String> = etcd.dump("/snapshot/snapshot/").await.into_iter().map(|(key, _)| key).collect();
    assert!(snapshots.iter().all(|key| key.contains(&format!("{:020}", 40))), "{snapshots:?}");

    let two = etcd.store("/snapshot").await;
    let Loaded { version, id_next, entities } = loaded(&two).await;
    assert_eq!((version, id_next, entities.len() as u64), (41, 2_000_000, 1 + MANY + 39));
    let newest = Catalog::from_entities(version, id_next, entities).unwrap();
    assert_eq!(two.oldest_version().await.unwrap(), 37);
    assert!(two.catalog_at(&newest, 36).await.unwrap().is_none());
    let older = two.catalog_at(&newest, 37).await.unwrap().unwrap();
    assert_eq!(older.entities().count() as u64, 1 + MANY + 35);
    // Whoever was away for too long gets all at once.
    match &two.newer(3).await.unwrap()[..] {
        [News::Whole(Loaded { version: 41, .. })] => {}
        other => panic!("{} news", other.len()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clusters_share_an_etcd() {
    let etcd = shared().await;
    let prefixes = ["/shared/one", "/shared/two", "/shared/one-more", "/shared/one/below"];
    let mut stores = Vec::new();
    for (index, prefix) in prefixes.iter().enumerate() {
        let store = etcd.store(prefix).await;
        for base in 0..=index as u64 {
            store.commit(if base == 0 { first() } else { next(base) }).await.unwrap();
        }
        stores.push(store);
    }
    for (index, (store, prefix)) in stores.iter().zip(prefixes).enumerate() {
        let version = index as u64 + 1;
        assert_eq!(sorted(loaded(store).await.entities), entities_at(version));
        assert_eq!(store.history(0, 99).await.unwrap().len() as u64, version);
        assert_eq!(loaded(&etcd.store(prefix).await).await.version, version);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_others_are_left_alone() {
    let etcd = shared().await;
    etcd.put("/foreign/some/thing", "else").await;
    let before = etcd.dump("/foreign/").await;
    match EtcdStore::open(etcd.link("/foreign")).await.unwrap_err() {
        OpenError::Damaged { path, what } => {
            assert_eq!(path, format!("/foreign/ on etcd at {}", etcd.url));
            assert_eq!(what, "key \"/foreign/some/thing\" is not of Switchyard");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(etcd.dump("/foreign/").await, before);
    // But they do not stand in the way of a cluster that is there.
    let store = etcd.store("/foreign-not").await;
    store.commit(first()).await.unwrap();
    etcd.put("/foreign-not/some/thing", "else").await;
    assert_eq!(loaded(&etcd.store("/foreign-not").await).await.version, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_is_named_and_not_overwritten() {
    let etcd = shared().await;
    let garbage = ["", "{", "nonsense", "[1]", "{\"format\":\"one\"}", "{\"format\":1}"];
    for (index, value) in garbage.iter().enumerate() {
        let prefix = format!("/garbage/{index}");
        let store = etcd.store(&prefix).await;
        store.commit(first()).await.unwrap();
        etcd.put(&format!("{prefix}/head"), value).await;
        let before = etcd.dump(&prefix).await;
        let open = EtcdStore::open(etcd.link(&prefix)).await.unwrap_err();
        assert!(matches!(open, OpenError::Damaged { .. }), "{open:?}");
        let told = store.load().await.unwrap_err().to_string();
        assert!(told.contains(&format!("key \"{prefix}/head\" has a value that makes no sense")), "{told}");
        match store.commit(next(1)).await.unwrap_err() {
            CommitError::Refused(error) => assert!(error.to_string().contains("makes no sense"), "{error}"),
            other => panic!("{other:?}"),
        }
        assert_eq!(etcd.dump(&prefix).await, before);
    }
    let store = etcd.store("/garbage/newer").await;
    store.commit(first()).await.unwrap();
    let head = String::from_utf8(etcd.dump("/garbage/newer/head").await.remove(0).1).unwrap();
    etcd.put("/garbage/newer/head", &head.replace("\"format\":1", "\"format\":7")).await;
    match EtcdStore::open(etcd.link("/garbage/newer")).await.unwrap_err() {
        OpenError::Newer { found: 7, known: 1, .. } => {}
        other => panic!("{other:?}"),
    }
    assert!(matches!(store.commit(next(1)).await, Err(CommitError::Refused(_))));

    // An entry of history in the middle: what needs it says so, the rest goes on.
    let store = etcd.store("/garbage/log").await;
    for base in 0..4 {
        store.commit(if base == 0 { first() } else { next(base) }).await.unwrap();
    }
    let key = format!("/garbage/log/log/{:020}", 2);
    etcd.put(&key, "{}").await;
    for told in [store.load().await.unwrap_err(), store.history(0, 9).await.unwrap_err()] {
        assert!(told.to_string().contains(&format!("key \"{key}\" has a value that makes no sense")), "{told}");
    }
    assert_eq!(store.history(2, 9).await.unwrap().len(), 2);
    store.commit(next(4)).await.unwrap();
    assert_eq!(etcd.dump(&key).await[0].1, b"{}");

    // What is in the place of the next version is not overwritten.
    let key = format!("/garbage/log/log/{:020}", 6);
    etcd.put(&key, "foreign").await;
    for commit in [next(5), large(5, OBJECTS)] {
        let told = store.commit(commit).await.unwrap_err().to_string();
        assert!(told.contains(&format!("key \"{key}\" is not of Switchyard")), "{told}");
    }
    assert_eq!(etcd.dump(&key).await[0].1, b"foreign");
    etcd.client().await.delete(key, None).await.unwrap();

    // An older head, as after restoring a backup, is not taken for the newest.
    let old = String::from_utf8(etcd.dump("/garbage/log/head").await.remove(0).1).unwrap();
    store.commit(next(5)).await.unwrap();
    etcd.put("/garbage/log/head", &old).await;
    let told = store.commit(next(6)).await.unwrap_err().to_string();
    assert!(told.contains("version 5 is the newest, but version 6 was known before"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn options_are_checked() {
    let refused = |endpoint: &str, prefix: &str, tls: bool| {
        let mut options = EtcdOptions::new(vec![endpoint.to_owned()], prefix);
        options.tls = tls.then(|| EtcdTls { authority: Vec::new(), client: None, server_name: None });
        EtcdLink::new(options).err()
    };
    assert_eq!(refused("http://127.0.0.1:2379", "/switchyard/main", false), None);
    for endpoint in
        ["127.0.0.1:2379", "http://127.0.0.1", "http://:1", "http://a:b", "https://a:1", "", "http://a:99999"]
    {
        let endpoint_error = EtcdOptionsError::Endpoint { endpoint: endpoint.to_owned(), scheme: "http" };
        assert_eq!(refused(endpoint, "/a", false), Some(endpoint_error));
    }
    let endpoint = "http://a:1".to_owned();
    assert_eq!(refused("http://a:1", "/a", true), Some(EtcdOptionsError::Endpoint { endpoint, scheme: "https" }));
    for prefix in ["", "/", "a", "/a/", "/a b", "/ä"] {
        let prefix_error = EtcdOptionsError::Prefix { prefix: prefix.to_owned() };
        assert_eq!(refused("http://a:1", prefix, false), Some(prefix_error));
    }
    let none = EtcdLink::new(EtcdOptions::new(Vec::new(), "/a"));
    assert_eq!(none.err(), Some(EtcdOptionsError::NoEndpoint));
    let mut secret = EtcdOptions::new(vec!["http://a:1".to_owned()], "/a");
    secret.login = Some(("root".to_owned(), "geheim".to_owned()));
    let shown = format!("{:?}", EtcdLink::new(secret).unwrap());
    assert!(shown.contains("root") && !shown.contains("geheim"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn compaction_loses_nothing() {
    let etcd = shared().await;
    let (one, two) = (etcd.store("/compact").await, etcd.store("/compact").await);
    let mut client = etcd.client().await;
    for base in 0..100 {
        one.commit(if base == 0 { first() } else { next(base) }).await.unwrap();
        if base % 7 == 0 {
            let revision = client.get("x", None).await.unwrap().header().unwrap().revision();
            // Another test may have been faster.
            let _ = client.compact(revision, None).await;
        }
    }
    let mut seen = 0;
    while seen < 100 {
        for news in two.newer(seen).await.unwrap() {
            let News::Next { version, .. } = news else { panic!("nothing was given up") };
            assert_eq!(version, seen + 1);
            seen = version;
        }
    }
    let three = etcd.store("/compact").await;
    assert_eq!(sorted(loaded(&three).await.entities), entities_at(100));
    assert_eq!(three.history(0, 999).await.unwrap().len(), 100);
    let newest = catalog(100, entities_at(100));
    assert_eq!(three.catalog_at(&newest, 1).await.unwrap().unwrap().entities().count(), 1);
}

struct Certificates {
    authority: String,
    server: (String, String),
    client: (String, String),
}

fn certificates() -> Certificates {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let signed = |name: &str| {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &authority).unwrap().pem(), key.serialize_pem())
    };
    Certificates { server: signed("127.0.0.1"), client: signed("client"), authority: authority.pem() }
}

/// A user that may use what begins with `/tls/`, and one that may not; from now on etcd asks who somebody is.
async fn make_users(etcd: &Etcd, authority: &str, client: &(String, String)) {
    let tls_options = etcd_client::TlsOptions::new()
        .ca_certificate(etcd_client::Certificate::from_pem(authority))
        .identity(etcd_client::Identity::from_pem(&client.0, &client.1));
    let connect = etcd_client::ConnectOptions::new().with_tls(tls_options);
    let mut admin = etcd_client::Client::connect([&etcd.url], Some(connect)).await.unwrap();
    admin.role_add("switchyard").await.unwrap();
    let all = etcd_client::Permission::read_write("/tls/").with_prefix();
    admin.role_grant_permission("switchyard", all).await.unwrap();
    for (user, role) in [("root", "root"), ("switchyard", "switchyard"), ("nobody", "nobody")] {
        admin.user_add(user, "geheim", None).await.unwrap();
        if role == "nobody" {
            admin.role_add(role).await.unwrap();
        }
        admin.user_grant_role(user, role).await.unwrap();
    }
    admin.auth_enable().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_and_passwords() {
    let Certificates { authority, server, client } = certificates();
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let arguments = [
        format!("--cert-file={}", file("cert.pem", &server.0)),
        format!("--key-file={}", file("key.pem", &server.1)),
        format!("--trusted-ca-file={}", file("ca.pem", &authority)),
        "--client-cert-auth".to_owned(),
        // What it checks of names in the client's certificate would need one for each.
        "--auth-token-ttl=1".to_owned(),
    ];
    let etcd = Etcd::configured("https", &arguments.each_ref().map(String::as_str));
    etcd.run(false).await;
    let tls = |authority: &str, client: Option<&(String, String)>| {
        Some(EtcdTls {
            authority: authority.as_bytes().to_vec(),
            client: client.map(|(certificate, key)| (certificate.as_bytes().to_vec(), key.as_bytes().to_vec())),
            server_name: None,
        })
    };
    let good = EtcdOptions { tls: tls(&authority, Some(&client)), ..etcd.options("/tls") };
    let open = async |options: EtcdOptions| EtcdStore::open(EtcdLink::new(options).unwrap()).await;
    eventually("etcd answers with TLS", async || open(good.clone()).await.is_ok()).await;
    let store = open(good.clone()).await.unwrap();
    store.commit(first()).await.unwrap();

    let fast = EtcdOptions { request_ms_max: 500, ..good.clone() };
    let stranger = certificates();
    for (what, tls) in [
        ("no certificate of our own", tls(&authority, None)),
        ("one of another authority", tls(&authority, Some(&stranger.client))),
        ("a server of another authority", tls(&stranger.authority, Some(&client))),
        ("no certificate at all", tls("nonsense", None)),
    ] {
        let error = open(EtcdOptions { tls, ..fast.clone() }).await.unwrap_err();
        assert!(matches!(error, OpenError::Io { .. }), "{what}: {error:?}");
    }

    make_users(&etcd, &authority, &client).await;
    let as_user = |user: &str, password: &str| EtcdOptions {
        login: Some((user.to_owned(), password.to_owned())),
        ..good.clone()
    };
    let error = open(as_user("switchyard", "wrong")).await.unwrap_err().to_string();
    assert!(error.contains("authentication failed") && !error.contains("wrong"), "{error}");
    let error = open(as_user("nobody", "geheim")).await.unwrap_err().to_string();
    assert!(error.contains("permission denied"), "{error}");
    let mine = open(as_user("switchyard", "geheim")).await.unwrap();
    mine.commit(next(1)).await.unwrap();
    let other = open(as_user("switchyard", "geheim")).await.unwrap();
    let error = open(EtcdOptions { prefix: "/tls-other".to_owned(), ..as_user("switchyard", "geheim") }).await;
    assert!(error.unwrap_err().to_string().contains("permission denied"));
    // A token that is no longer good is got anew, by those who follow too.
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    mine.commit(next(2)).await.unwrap();
    etcd.kill();
    assert!(etcd.run(false).await);
    eventually("it commits again", async || mine.commit(next(3)).await.is_ok()).await;
    let mut seen = 2;
    while seen < 4 {
        seen += other.newer(seen).await.unwrap().len() as u64;
    }
    assert_eq!(sorted(loaded(&other).await.entities), entities_at(4));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_without_rights_to_be_written_is_a_refusal() {
    // What is above etcd's limits would be too; this is what it says when its disk is full.
    let etcd = Etcd::configured("http", &["--quota-backend-bytes=2000000"]);
    assert!(etcd.run(true).await);
    let store = etcd.store("/full").await;
    store.commit(first()).await.unwrap();
    let mut base = 1;
    let error = loop {
        let mut commit = commit(base, Vec::new());
        commit.record.statements = vec!["x".repeat(400_000)];
        match store.commit(commit).await {
            Ok(committed) => base = committed.version,
            Err(error) => break error,
        }
        assert!(base < 100);
    };
    match error {
        CommitError::Refused(error) => assert!(error.to_string().contains("database space exceeded"), "{error}"),
        other => panic!("{other:?}"),
    }
    let Loaded { version, entities, .. } = loaded(&store).await;
    assert_eq!((version, entities), (base, vec![database()]));
    let found =
        etcd.client().await.get("/full/", Some(GetOptions::new().with_prefix().with_count_only())).await.unwrap();
    assert!(found.count() > 0);
}
