//! This process as one of a cluster's: its place among the members, what it hears of the others, and of their commits.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use switchyard_catalog::Name;
use switchyard_console::Console;
use switchyard_store::EtcdStore;
use switchyard_store::membership::{Member, Membership, Standing, watch_members};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tracing::{info, warn};

use crate::peers::Peers;
use crate::settings::{HostPort, Settings};

/// How long leaving may take: what is not said in that time is known when the lease ends.
const LEAVE_MAX: Duration = Duration::from_secs(1);

/// A place among the members. When it is dropped the others wait for the lease to end.
pub(crate) struct Cluster {
    store: Arc<EtcdStore>,
    membership: Membership,
    peers: Arc<Peers>,
    tasks: JoinSet<()>,
}

impl Cluster {
    /// Takes the name of a node, before anything is changed in the catalog.
    ///
    /// # Errors
    /// When another process that lives has it, or etcd cannot be reached.
    pub(crate) async fn join(
        store: Arc<EtcdStore>,
        settings: &Settings,
        name: &Name,
        advertised: &HostPort,
    ) -> anyhow::Result<Self> {
        let started_us = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let started_us = i64::try_from(started_us.as_micros()).unwrap_or(i64::MAX);
        let member = Member::new(name.as_str(), &advertised.host, advertised.port, started_us);
        let joined = Membership::join(store.link(), member, settings.member_lease_s.0).await;
        let membership = joined.with_context(|| format!("node \"{name}\" cannot join"))?;
        info!(lease_s = membership.ttl().as_secs(), "joined the cluster");
        Ok(Self { store, membership, peers: Arc::default(), tasks: JoinSet::new() })
    }

    /// Serves from now on, as all others are told, and follows what they do.
    pub(crate) async fn begin(&mut self, console: &Arc<Console>) {
        let mut events = watch_members(self.store.link());
        let own = self.membership.member().process;
        self.peers.serve(console);
        console.count_in(self.membership.places());
        let (hearing, peers) = (Arc::clone(console), Arc::clone(&self.peers));
        self.tasks.spawn(async move {
            while let Some(event) = events.recv().await {
                if event.process() != Some(own.as_str()) {
                    hearing.heard(event);
                    peers.settle(&hearing);
                }
            }
        });
        let (displaced, mut standings) = (Arc::clone(console), self.membership.standings());
        self.tasks.spawn(async move {
            while standings.changed().await.is_ok() {
                let by = match &*standings.borrow_and_update() {
                    Standing::Displaced { by } => Some(format!("{}:{}", by.host, by.port)),
                    // Whoever is cut off does not know what has become of its name.
                    Standing::CutOff => continue,
                    Standing::Member => None,
                };
                displaced.displaced(by);
            }
        });
        let following = Arc::clone(console);
        self.tasks.spawn(async move {
            let never = following.follow().await;
            match never {}
        });
        let Some(node) = console.node() else { return };
        if let Err(error) = self.membership.serves(node.as_i64()).await {
            warn!(error = &error as &dyn std::error::Error, "the other members are told later that this one serves");
        }
    }

    /// Leaves: all others know at once.
    pub(crate) async fn leave(self) {
        let Self { store, membership, peers, tasks } = self;
        peers.end();
        match timeout(LEAVE_MAX, membership.leave()).await {
            Ok(Ok(())) => info!("left the cluster"),
            Ok(Err(error)) => warn!(error = &error as &dyn std::error::Error, "the others are not told of the end"),
            Err(_) => warn!("the others are not told of the end: etcd does not answer"),
        }
        drop((store, tasks));
    }
}
