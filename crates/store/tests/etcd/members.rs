//! Who is there, and how others learn that somebody is not.

use std::time::{Duration, Instant};

use switchyard_store::membership::{JoinError, LeftReason, Member, MemberEvent, Membership, Standing, watch_members};
use switchyard_store::{EtcdLink, EtcdOptions};
use tokio::sync::mpsc::Receiver;
use tokio::time::timeout;

use crate::proxy::Proxy;
use crate::server::{Etcd, PATIENCE, eventually, shared};

fn member(name: &str, port: u16) -> Member {
    Member::new(name, "10.0.0.1", port, 1_700_000_000_000_000)
}

async fn joined(etcd: &Etcd, prefix: &str, name: &str, port: u16) -> Membership {
    Membership::join(&etcd.link(prefix), member(name, port), 2).await.unwrap()
}

async fn heard(events: &mut Receiver<MemberEvent>) -> MemberEvent {
    timeout(PATIENCE, events.recv()).await.expect("something happens").unwrap()
}

/// What happens to one member, with all else left out.
async fn heard_of(events: &mut Receiver<MemberEvent>, name: &str) -> MemberEvent {
    loop {
        let event = heard(events).await;
        match &event {
            MemberEvent::Joined(member) | MemberEvent::Left { member, .. } if member.name == name => return event,
            _ => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn members_see_each_other_come_and_go() {
    let etcd = shared().await;
    let one = joined(&etcd, "/come", "one", 1).await;
    let mut events = watch_members(&etcd.link("/come"));
    assert_eq!(heard(&mut events).await, MemberEvent::Joined(one.member()));
    let two = joined(&etcd, "/come", "Two", 2).await;
    let before = two.member();
    assert_eq!(heard(&mut events).await, MemberEvent::Joined(before.clone()));
    assert!(two.ttl() >= Duration::from_secs(1));
    assert_eq!(two.standing(), Standing::Member);

    two.change("10.0.0.9", 9).await.unwrap();
    let after = Member { host: "10.0.0.9".to_owned(), port: 9, ..before.clone() };
    assert_eq!(heard(&mut events).await, MemberEvent::Changed { before, after: after.clone() });
    assert_eq!(two.member(), after);

    two.leave().await.unwrap();
    let leaving = Member { leaving: true, ..after.clone() };
    assert_eq!(heard(&mut events).await, MemberEvent::Changed { before: after, after: leaving.clone() });
    assert_eq!(heard(&mut events).await, MemberEvent::Left { member: leaving, reason: LeftReason::Left });

    // Whoever comes later hears of those who are there only.
    let mut later = watch_members(&etcd.link("/come"));
    assert_eq!(heard(&mut later).await, MemberEvent::Joined(one.member()));
    let other = joined(&etcd, "/come-not", "three", 3).await;
    let three = joined(&etcd, "/come", "three", 3).await;
    assert_eq!(heard(&mut later).await, MemberEvent::Joined(three.member()));
    drop(other);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_killed_is_gone_when_its_lease_ends() {
    let etcd = shared().await;
    let one = joined(&etcd, "/killed", "one", 1).await;
    let two = Membership::join(&etcd.link("/killed"), member("two", 2), 4).await.unwrap();
    let mut events = watch_members(&etcd.link("/killed"));
    assert_eq!(heard(&mut events).await, MemberEvent::Joined(one.member()));
    assert_eq!(heard(&mut events).await, MemberEvent::Joined(two.member()));
    // Longer than its lease, nothing happens to one that lives.
    assert!(timeout(two.ttl() * 3 / 2, events.recv()).await.is_err());
    let (dead, ttl, killed) = (two.member(), two.ttl(), Instant::now());
    drop(two);
    assert_eq!(heard(&mut events).await, MemberEvent::Left { member: dead, reason: LeftReason::LeaseEnded });
    assert!(killed.elapsed() >= ttl / 3, "not before its time: {:?}", killed.elapsed());
    let again = joined(&etcd, "/killed", "two", 2).await;
    assert_eq!(heard(&mut events).await, MemberEvent::Joined(again.member()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_held_once() {
    let etcd = shared().await;
    let one = joined(&etcd, "/name", "node1", 1).await;
    match Membership::join(&etcd.link("/name"), member("NODE1", 2), 2).await.unwrap_err() {
        JoinError::Taken { by } => assert_eq!(*by, one.member()),
        other => panic!("{other:?}"),
    }
    let error = Membership::join(&etcd.link("/name"), member("node1", 2), 2).await.unwrap_err().to_string();
    assert_eq!(error, "node \"node1\" is already served by another process, at 10.0.0.1:1");
    assert_eq!(one.standing(), Standing::Member);
    // When it is dead, another takes its place, without being asked to try again.
    let mut events = watch_members(&etcd.link("/name"));
    let dead = one.member();
    assert_eq!(heard(&mut events).await, MemberEvent::Joined(dead.clone()));
    drop(one);
    let two = joined(&etcd, "/name", "node1", 2).await;
    assert_eq!(heard(&mut events).await, MemberEvent::Left { member: dead, reason: LeftReason::LeaseEnded });
    assert_eq!(heard(&mut events).await, MemberEvent::Joined(two.member()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_taken_out_by_hand_comes_back() {
    let etcd = shared().await;
    let one = joined(&etcd, "/hand", "one", 1).await;
    let mut events = watch_members(&etcd.link("/hand"));
    assert_eq!(heard(&mut events).await, MemberEvent::Joined(one.member()));
    let mut client = etcd.client().await;
    client.delete("/hand/members/one", None).await.unwrap();
    assert!(matches!(heard(&mut events).await, MemberEvent::Left { .. }));
    assert_eq!(heard(&mut events).await, MemberEvent::Joined(one.member()));
    // So it does when its lease is revoked: then with another.
    let lease = client.get("/hand/members/one", None).await.unwrap().kvs()[0].lease();
    client.lease_client().revoke(lease).await.unwrap();
    assert!(matches!(heard(&mut events).await, MemberEvent::Left { .. }));
    assert_eq!(heard(&mut events).await, MemberEvent::Joined(one.member()));
    assert_ne!(client.get("/hand/members/one", None).await.unwrap().kvs()[0].lease(), lease);
    // Foreign keys are no members, and a name under one is not taken.
    etcd.put("/hand/members/nonsense", "nonsense").await;
    let error = Membership::join(&etcd.link("/hand"), member("nonsense", 3), 2).await.unwrap_err().to_string();
    assert!(error.contains("key \"/hand/members/nonsense\" has a value that makes no sense"), "{error}");
    assert_eq!(etcd.dump("/hand/members/nonsense").await[0].1, b"nonsense");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_displaced_waits() {
    let etcd = shared().await;
    let one = joined(&etcd, "/displaced", "one", 1).await;
    let thief = member("one", 2);
    etcd.put("/displaced/members/one", &serde_json::to_string(&thief).unwrap()).await;
    let by = Box::new(thief.clone());
    eventually("it is displaced", async || one.standing() == Standing::Displaced { by: by.clone() }).await;
    let mut events = watch_members(&etcd.link("/displaced"));
    assert_eq!(heard(&mut events).await, MemberEvent::Joined(thief.clone()));
    etcd.client().await.delete("/displaced/members/one", None).await.unwrap();
    assert!(matches!(heard(&mut events).await, MemberEvent::Left { .. }));
    assert_eq!(heard(&mut events).await, MemberEvent::Joined(one.member()));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_cut_off_comes_back() {
    let etcd = shared().await;
    let proxy = Proxy::to(&etcd.url).await;
    let options = EtcdOptions { request_ms_max: 500, ..EtcdOptions::new(vec![proxy.url.clone()], "/cut") };
    let one = Membership::join(&EtcdLink::new(options).unwrap(), member("one", 1), 2).await.unwrap();
    let mut events = watch_members(&etcd.link("/cut"));
    assert_eq!(heard(&mut events).await, MemberEvent::Joined(one.member()));
    proxy.close();
    let left = MemberEvent::Left { member: one.member(), reason: LeftReason::LeaseEnded };
    assert_eq!(heard(&mut events).await, left);
    assert_eq!(one.standing(), Standing::CutOff);
    proxy.open();
    assert_eq!(heard(&mut events).await, MemberEvent::Joined(one.member()));
    eventually("it knows", async || one.standing() == Standing::Member).await;

    // Or not, when another has its name meanwhile.
    proxy.close();
    assert_eq!(heard(&mut events).await, left);
    let other = joined(&etcd, "/cut", "one", 2).await;
    proxy.open();
    let by = Box::new(other.member());
    eventually("it is displaced", async || one.standing() == Standing::Displaced { by: by.clone() }).await;
    assert_eq!(heard(&mut events).await, MemberEvent::Joined(other.member()));
    assert_eq!(other.standing(), Standing::Member);
}

#[tokio::test(flavor = "multi_thread")]
async fn members_outlive_etcd() {
    let etcd = Etcd::start().await;
    let link = EtcdLink::new(EtcdOptions { request_ms_max: 500, ..etcd.options("/outlive") }).unwrap();
    let one = Membership::join(&link, member("one", 1), 2).await.unwrap();
    let mut events = watch_members(&link);
    assert_eq!(heard(&mut events).await, MemberEvent::Joined(one.member()));
    for how in ["killed", "frozen"] {
        if how == "killed" {
            etcd.kill()
        } else {
            etcd.freeze()
        }
        match heard(&mut events).await {
            MemberEvent::Blind { why } => assert!(why.contains("etcd at"), "{why}"),
            other => panic!("{how}: {other:?}"),
        }
        eventually("it knows that it is cut off", async || one.standing() == Standing::CutOff).await;
        // Longer than any lease.
        tokio::time::sleep(one.ttl() * 2).await;
        if how == "killed" {
            assert!(etcd.run(true).await);
        } else {
            etcd.thaw();
        }
        eventually("it is a member again", async || one.standing() == Standing::Member).await;
        eventually("its record is there", async || !etcd.dump("/outlive/members/one").await.is_empty()).await;
        while heard(&mut events).await != MemberEvent::Seeing {}
    }
    // One that died while nobody could see it is missed afterwards.
    let two = Membership::join(&link, member("two", 2), 2).await.unwrap();
    assert_eq!(heard_of(&mut events, "two").await, MemberEvent::Joined(two.member()));
    etcd.kill();
    let dead = two.member();
    drop(two);
    assert!(etcd.run(true).await);
    match heard_of(&mut events, "two").await {
        MemberEvent::Left { member, .. } => assert_eq!(member, dead),
        other => panic!("{other:?}"),
    }
}
