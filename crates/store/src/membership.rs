//! Who is a member of the cluster: a record in etcd under a lease, for as long as its process lives.
//!
//! A member keeps its lease alive three times within its time to live. When that fails for longer, etcd takes the record
//! out, and all others hear of it; the member itself goes on, and is there again as soon as it reaches etcd. Nothing is
//! decided by a clock of anybody's: only etcd measures the time.
//!
//! Whoever watches keeps what it knew while etcd is away ([`MemberEvent::Blind`]): silence of etcd's is no member's end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use etcd_client::{
    Client, Compare, CompareOp, Error, EventType, GetOptions, KeyValue, PutOptions, Txn, TxnOp, TxnOpResponse,
    WatchOptions,
};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};
use tracing::{debug, warn};

use crate::contract::StoreError;
use crate::etcd::{EtcdLink, LinkError, keys_and_values, watches};
use crate::etcd_store::nonce;

mod places;

pub use self::places::{Place, Places};

/// The time to live that members ask for, unless the options say otherwise.
pub const MEMBER_TTL_S: u64 = 3;
/// Between two attempts to see or be seen again.
const RETRY_AFTER: Duration = Duration::from_millis(100);
/// Between two looks at whoever holds a name.
const HOLDER_LOOK_EVERY: Duration = Duration::from_millis(200);
/// etcd looks for leases that have ended twice a second, and may have begun to count anew.
const HOLDER_GRACE: Duration = Duration::from_millis(1_500);
/// How many events wait for whoever does not listen; then the watch waits too.
const EVENTS_MAX: usize = 1_024;
/// How often it is looked whether etcd still answers.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A member as all others see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its node's name; without regard to case there is only one at a time.
    pub name: String,
    /// Where it can be reached.
    pub host: String,
    /// And on which port.
    pub port: u16,
    /// Used once: another process of the same name is another member.
    pub process: String,
    /// When it started, in microseconds since 1970-01-01 UTC by its own clock: to be shown, not to be compared.
    pub started_us: i64,
    /// The id of its node, as soon as the catalog has that: until then it takes no connections.
    #[serde(default)]
    pub node: Option<i64>,
    /// It is about to leave by itself.
    #[serde(default)]
    pub leaving: bool,
}

impl Member {
    /// A member that is this process.
    pub fn new(name: &str, host: &str, port: u16, started_us: i64) -> Self {
        let (name, host) = (name.to_owned(), host.to_owned());
        Self { name, host, port, process: nonce(), started_us, node: None, leaving: false }
    }
}

/// Why a member could not join.
#[derive(Debug, Error)]
pub enum JoinError {
    /// Another process has the name, and lives.
    #[error("node \"{}\" is already served by another process, at {}:{}", .by.name, .by.host, .by.port)]
    Taken {
        /// Whoever has it.
        by: Box<Member>,
    },
    /// etcd cannot be reached, or holds something else.
    #[error(transparent)]
    Store(StoreError),
}

/// Why a member is no longer there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftReason {
    /// It said so.
    Left,
    /// Its lease ended: it was killed, is frozen, or does not reach etcd.
    LeaseEnded,
    /// Another process has its name.
    Replaced,
    /// It was gone when etcd could be reached again.
    GoneMeanwhile,
}

impl LeftReason {
    /// In words, for tables and logs.
    pub fn text(self) -> &'static str {
        match self {
            Self::Left => "it left",
            Self::LeaseEnded => "its lease ended",
            Self::Replaced => "another process took its name",
            Self::GoneMeanwhile => "it was gone when etcd could be reached again",
        }
    }
}

/// What happens to members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberEvent {
    /// It is there.
    Joined(Member),
    /// It is the same process, and says something else.
    Changed {
        /// What it said before.
        before: Member,
        /// What it says now.
        after: Member,
    },
    /// It is not there any more.
    Left {
        /// What it said last.
        member: Member,
        /// Why.
        reason: LeftReason,
    },
    /// etcd cannot be reached from here: nothing is known of the members until it can.
    Blind {
        /// In words.
        why: String,
    },
    /// etcd can be reached again; what happened meanwhile was told just before.
    Seeing,
}

impl MemberEvent {
    /// The process that it is about.
    pub fn process(&self) -> Option<&str> {
        match self {
            Self::Joined(member) | Self::Changed { after: member, .. } | Self::Left { member, .. } => {
                Some(&member.process)
            }
            Self::Blind { .. } | Self::Seeing => None,
        }
    }
}

/// This process's place among the members. When it is dropped the lease is no longer kept alive, as if the process had
/// been killed; to go in good order there is [`Membership::leave`].
#[derive(Debug)]
pub struct Membership {
    seat: Arc<Seat>,
    places: Arc<Places>,
    _tasks: JoinSet<()>,
}

#[derive(Debug)]
struct Seat {
    link: EtcdLink,
    key: String,
    ttl_asked: i64,
    held: Mutex<Held>,
    standings: watch::Sender<Standing>,
}

#[derive(Debug)]
struct Held {
    member: Member,
    lease: i64,
    ttl: Duration,
    standing: Standing,
    /// The keys of the places that sessions have.
    places: BTreeSet<String>,
    /// The lease under which they were all written last.
    places_lease: i64,
}

/// How a member stands with etcd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// All others can see it.
    Member,
    /// It does not reach etcd; others may hold it for dead.
    CutOff,
    /// While it was away another process took its name. It is a member again when that is gone.
    Displaced {
        /// Whoever has the name.
        by: Box<Member>,
    },
}

/// What came of an attempt to take a name.
enum Taken {
    Ours,
    Theirs { record: Member, lease: i64 },
}

/// Whoever has the name that is wanted.
struct Holder {
    lease: i64,
    /// How long its lease has still to go, in seconds. Only one that is kept alive becomes longer.
    left: i64,
    /// When its lease must have ended if it is kept alive no more.
    free_by: Instant,
}

impl Membership {
    /// Joins. A name that a dead process held is free when its lease has ended, for which this waits; when it is kept
    /// alive meanwhile, its holder lives, and joining is refused.
    ///
    /// # Errors
    /// When another process has the name, or etcd cannot be used.
    pub async fn join(link: &EtcdLink, member: Member, ttl_s: u64) -> Result<Self, JoinError> {
        let key = format!("{}{}", family(link), member.name.to_lowercase());
        let store = |error| JoinError::Store(link.error("join on", error));
        let ttl_asked = i64::try_from(ttl_s.max(1)).unwrap_or(i64::MAX);
        let (mut lease, mut ttl) = grant(link, ttl_asked).await.map_err(store)?;
        let mut holder: Option<Holder> = None;
        loop {
            let (record, their_lease) = match take(link, &key, &member, lease).await.map_err(store)? {
                Taken::Ours => break,
                Taken::Theirs { record, lease } => (record, lease),
            };
            let left = time_left(link, their_lease).await.map_err(store)?;
            let free_by = Instant::now() + Duration::from_secs(u64::try_from(left).unwrap_or(0)) + HOLDER_GRACE;
            let first = holder.get_or_insert(Holder { lease: their_lease, left, free_by });
            if first.lease != their_lease || left > first.left || Instant::now() > first.free_by {
                revoke(link, lease).await;
                return Err(JoinError::Taken { by: Box::new(record) });
            }
            first.left = left;
            sleep(HOLDER_LOOK_EVERY).await;
            match keep_alive(link, lease).await {
                Ok(true) => {}
                Ok(false) => (lease, ttl) = grant(link, ttl_asked).await.map_err(store)?,
                Err(error) => return Err(store(error)),
            }
        }
        let (places, places_lease) = (BTreeSet::new(), lease);
        let held = Mutex::new(Held { member, lease, ttl, standing: Standing::Member, places, places_lease });
        let standings = watch::Sender::new(Standing::Member);
        let seat = Arc::new(Seat { link: link.clone(), key, ttl_asked, held, standings });
        let mut tasks = JoinSet::new();
        let keeper = Arc::clone(&seat);
        tasks.spawn(async move { keeper.keep_for_ever().await });
        let (places, given_back) = Places::new(&seat);
        let taker = Arc::clone(&seat);
        tasks.spawn(async move { taker.take_back(given_back).await });
        Ok(Self { seat, places: Arc::new(places), _tasks: tasks })
    }

    /// What others see.
    pub fn member(&self) -> Member {
        self.seat.held().member.clone()
    }

    /// The time to live that etcd granted: it does not go below 2 s.
    pub fn ttl(&self) -> Duration {
        self.seat.held().ttl
    }

    /// The places of this process's sessions.
    pub fn places(&self) -> Arc<Places> {
        Arc::clone(&self.places)
    }

    /// How it stands with etcd, as of the last attempt to keep the lease alive.
    pub fn standing(&self) -> Standing {
        self.seat.held().standing.clone()
    }

    /// The same, and how it changes.
    pub fn standings(&self) -> watch::Receiver<Standing> {
        self.seat.standings.subscribe()
    }

    /// Says another address to all.
    ///
    /// # Errors
    /// When etcd cannot be reached. It is said when the lease is next renewed.
    pub async fn change(&self, host: &str, port: u16) -> Result<(), StoreError> {
        {
            let mut held = self.seat.held();
            held.member.host = host.to_owned();
            held.member.port = port;
        }
        self.seat.say().await.map(|_| ()).map_err(|error| self.seat.link.error("write to", error))
    }

    /// Says to all that it serves from now on, as the node with this id.
    ///
    /// # Errors
    /// When etcd cannot be reached. It is said when the lease is next renewed.
    pub async fn serves(&self, node: i64) -> Result<(), StoreError> {
        self.seat.held().member.node = Some(node);
        self.seat.say().await.map(|_| ()).map_err(|error| self.seat.link.error("write to", error))
    }

    /// Leaves, so that all others know at once and why.
    ///
    /// # Errors
    /// When etcd cannot be reached. The lease then ends by itself.
    pub async fn leave(self) -> Result<(), StoreError> {
        let Self { seat, places: _, _tasks: tasks } = self;
        drop(tasks);
        seat.held().member.leaving = true;
        let said = seat.say().await;
        let lease = seat.held().lease;
        let revoked = seat.link.call(|client| async move { client.lease_client().revoke(lease).await }).await;
        said.and(revoked.map(|_| true)).map(|_| ()).map_err(|error| seat.link.error("leave", error))
    }
}

impl Seat {
    fn held(&self) -> std::sync::MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn keep_for_ever(&self) {
        let mut tick = interval(self.held().ttl / 3);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            let standing = match self.keep().await {
                Ok(standing) => standing,
                Err(error) => {
                    debug!(error = %self.link.describe("keep the lease on", &error), "the member is cut off");
                    Standing::CutOff
                }
            };
            let before = std::mem::replace(&mut self.held().standing, standing.clone());
            if before != standing {
                self.standings.send_replace(standing.clone());
                warn!(?standing, "how this member stands with etcd has changed");
            }
        }
    }

    /// Keeps the lease alive, or asks for another when it has ended.
    async fn keep(&self) -> Result<Standing, LinkError> {
        let lease = self.held().lease;
        if keep_alive(&self.link, lease).await? {
            // The record may have been taken out by hand; then it comes back.
            if self.say().await? {
                self.publish_all().await?;
                return Ok(Standing::Member);
            }
        } else {
            let (lease, ttl) = grant(&self.link, self.ttl_asked).await?;
            let mut held = self.held();
            held.lease = lease;
            held.ttl = ttl;
        }
        let (member, lease) = {
            let held = self.held();
            (held.member.clone(), held.lease)
        };
        match take(&self.link, &self.key, &member, lease).await? {
            Taken::Ours => {
                self.publish_all().await?;
                Ok(Standing::Member)
            }
            Taken::Theirs { record, .. } => Ok(Standing::Displaced { by: Box::new(record) }),
        }
    }

    /// Sees to it that the record is there and says what it should. `false` when it is not ours, or not there.
    async fn say(&self) -> Result<bool, LinkError> {
        let (member, lease) = {
            let held = self.held();
            (held.member.clone(), held.lease)
        };
        let key = self.key.as_str();
        let found = self.link.call(|client| async move { keys_and_values(&client).get(key, None).await }).await?;
        let Some(found) = found.kvs().first().filter(|found| found.lease() == lease) else { return Ok(false) };
        let value = encode(&member);
        if found.value() == value.as_slice() {
            return Ok(true);
        }
        let ours = Compare::lease(key, CompareOp::Equal, lease);
        let put = TxnOp::put(key, value, Some(PutOptions::new().with_lease(lease)));
        let transaction = Txn::new().when([ours]).and_then([put]);
        let answer = self.link.transact(&transaction).await?;
        Ok(answer.succeeded())
    }
}

fn family(link: &EtcdLink) -> String {
    format!("{}members/", link.prefix())
}

fn encode(member: &Member) -> Vec<u8> {
    // Text and numbers always can be.
    serde_json::to_vec(member).unwrap_or_default()
}

async fn grant(link: &EtcdLink, asked: i64) -> Result<(i64, Duration), LinkError> {
    let granted = link.call(|client| async move { client.lease_client().grant(asked, None).await }).await?;
    Ok((granted.id(), Duration::from_secs(u64::try_from(granted.ttl()).unwrap_or(1).max(1))))
}

/// `false` when the lease has ended.
async fn keep_alive(link: &EtcdLink, lease: i64) -> Result<bool, LinkError> {
    match link.call(|client| async move { client.lease_client().keep_alive(lease).await }).await {
        Ok(_) => Ok(true),
        // That is how the client tells an answer with a time to live of 0.
        Err(LinkError::Answered { error: Error::LeaseKeepAliveError(_), .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// How long a lease has still to go, in seconds; below 0 when it has ended.
async fn time_left(link: &EtcdLink, lease: i64) -> Result<i64, LinkError> {
    let answer = link.call(|client| async move { client.lease_client().time_to_live(lease, None).await }).await?;
    Ok(answer.ttl())
}

async fn revoke(link: &EtcdLink, lease: i64) {
    // What cannot be revoked ends by itself.
    let _ = link.call(|client| async move { client.lease_client().revoke(lease).await }).await;
}

/// Takes a name that is free, or says who has it. What this very process has is its own, under whatever lease.
async fn take(link: &EtcdLink, key: &str, member: &Member, lease: i64) -> Result<Taken, LinkError> {
    let put = TxnOp::put(key, encode(member), Some(PutOptions::new().with_lease(lease)));
    let mut condition = Compare::create_revision(key, CompareOp::Equal, 0);
    loop {
        let transaction = Txn::new().when([condition]).and_then([put.clone()]).or_else([TxnOp::get(key, None)]);
        let answer = link
            .call(|client| {
                let transaction = transaction.clone();
                async move { keys_and_values(&client).txn(transaction).await }
            })
            .await?;
        if answer.succeeded() {
            return Ok(Taken::Ours);
        }
        let Some(TxnOpResponse::Get(found)) = answer.op_responses().pop() else {
            return Err(LinkError::nonsense("an answer to another question".to_owned()));
        };
        condition = match found.kvs().first() {
            // It went just now.
            None => Compare::create_revision(key, CompareOp::Equal, 0),
            Some(found) => match parse(found) {
                Some(record) if record.process != member.process => {
                    return Ok(Taken::Theirs { record, lease: found.lease() });
                }
                Some(_) => Compare::mod_revision(key, CompareOp::Equal, found.mod_revision()),
                None => {
                    return Err(LinkError::nonsense(format!("key \"{key}\" has a value that makes no sense")));
                }
            },
        };
    }
}

fn parse(found: &KeyValue) -> Option<Member> {
    serde_json::from_slice(found.value()).ok()
}

/// Tells what happens to members, beginning with those that are there, until the receiver is dropped.
pub fn watch_members(link: &EtcdLink) -> mpsc::Receiver<MemberEvent> {
    let (events, receiver) = mpsc::channel(EVENTS_MAX);
    let mut watcher = Watcher { link: link.clone(), known: BTreeMap::new(), seeing: true, events };
    tokio::spawn(async move {
        let gone = watcher.events.clone();
        tokio::select! {
            () = gone.closed() => {}
            () = watcher.watch_for_ever() => {}
        }
    });
    receiver
}

struct Watcher {
    link: EtcdLink,
    /// By key.
    known: BTreeMap<Vec<u8>, Member>,
    seeing: bool,
    events: mpsc::Sender<MemberEvent>,
}

impl Watcher {
    async fn watch_for_ever(&mut self) {
        loop {
            let (index, error) = self.watch().await;
            if let Some(error) = error
                && std::mem::replace(&mut self.seeing, false)
            {
                let why = self.link.describe("watch the members on", &error);
                self.tell(MemberEvent::Blind { why }).await;
            }
            if let Some(index) = index {
                self.link.give_up(index);
            }
            sleep(RETRY_AFTER).await;
        }
    }

    async fn tell(&self, event: MemberEvent) {
        // Whoever hears no more has dropped the receiver, which ends the watch.
        let _ = self.events.send(event).await;
    }

    fn lost(&self, last: Option<Error>) -> Option<LinkError> {
        Some(LinkError::Lost { ms_max: self.link.options().request_ms_max, last })
    }

    /// Watches until something is wrong. Says with which endpoint, and what; nothing when it must only begin anew.
    async fn watch(&mut self) -> (Option<usize>, Option<LinkError>) {
        let revision = match self.list().await {
            Ok(revision) => revision,
            Err(error) => return (None, Some(error)),
        };
        let (index, client): (usize, Client) = match self.link.client().await {
            Ok(found) => found,
            Err(error) => return (None, self.lost(Some(error))),
        };
        let options = WatchOptions::new().with_prefix().with_start_revision(revision.saturating_add(1));
        let wait = Duration::from_millis(self.link.options().request_ms_max);
        let mut stream = match timeout(wait, watches(&client).watch(family(&self.link), Some(options))).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return (Some(index), self.lost(Some(error))),
            Err(_) => return (Some(index), self.lost(None)),
        };
        if !std::mem::replace(&mut self.seeing, true) {
            self.tell(MemberEvent::Seeing).await;
        }
        let mut look = interval(LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                message = stream.message() => match message {
                    Ok(Some(message)) if message.canceled() => {
                        let error = Error::WatchError(message.cancel_reason().to_owned());
                        let error = if message.compact_revision() == 0 { self.lost(Some(error)) } else { None };
                        return (Some(index), error);
                    }
                    Ok(Some(message)) => {
                        for event in message.events() {
                            let Some(found) = event.kv() else { continue };
                            let now = if event.event_type() == EventType::Put { parse(found) } else { None };
                            self.see(found.key(), now, LeftReason::LeaseEnded).await;
                        }
                    }
                    Ok(None) => return (Some(index), self.lost(None)),
                    Err(error) => return (Some(index), self.lost(Some(error))),
                },
                _ = look.tick() => {
                    // A stream that nobody writes to looks like one on which nothing happens.
                    let options = GetOptions::new().with_count_only();
                    let key = family(&self.link);
                    let looked = self.link.call(|client| {
                        let (key, options) = (key.clone(), options.clone());
                        async move { keys_and_values(&client).get(key, Some(options)).await }
                    });
                    if let Err(error) = looked.await {
                        return (Some(index), Some(error));
                    }
                }
            }
        }
    }

    /// Looks who is there, and says as of when.
    async fn list(&mut self) -> Result<i64, LinkError> {
        let key = family(&self.link);
        let found = self
            .link
            .call(|client| {
                let key = key.clone();
                async move { keys_and_values(&client).get(key, Some(GetOptions::new().with_prefix())).await }
            })
            .await?;
        let now: BTreeMap<Vec<u8>, Member> =
            found.kvs().iter().filter_map(|found| Some((found.key().to_vec(), parse(found)?))).collect();
        let gone: Vec<Vec<u8>> = self.known.keys().filter(|key| !now.contains_key(*key)).cloned().collect();
        for key in gone {
            self.see(&key, None, LeftReason::GoneMeanwhile).await;
        }
        for (key, member) in now {
            self.see(&key, Some(member), LeftReason::GoneMeanwhile).await;
        }
        Ok(found.header().map_or(0, |header| header.revision()))
    }

    /// Tells how a record differs from what was known.
    async fn see(&mut self, key: &[u8], now: Option<Member>, reason: LeftReason) {
        let before = self.known.get(key).cloned();
        match (before, now) {
            (Some(before), Some(now)) if before == now => {}
            (Some(before), Some(after)) if before.process == after.process => {
                self.known.insert(key.to_vec(), after.clone());
                self.tell(MemberEvent::Changed { before, after }).await;
            }
            (before, Some(now)) => {
                if let Some(member) = before {
                    self.tell(MemberEvent::Left { member, reason: LeftReason::Replaced }).await;
                }
                self.known.insert(key.to_vec(), now.clone());
                self.tell(MemberEvent::Joined(now)).await;
            }
            (Some(member), None) => {
                self.known.remove(key);
                let reason = if member.leaving { LeftReason::Left } else { reason };
                self.tell(MemberEvent::Left { member, reason }).await;
            }
            (None, None) => {}
        }
    }
}
