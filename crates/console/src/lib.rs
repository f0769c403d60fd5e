//! The admin session: parse, plan, commit, answer rows.

mod admission;
mod asking;
mod channels;
mod counters;
mod data;
mod decision_log;
mod draining;
mod encode;
mod encoding;
mod error;
mod following;
mod health;
mod live;
mod members;
mod metrics;
mod protocol;
mod query_log;
mod router;
mod session;
mod texts;
mod transaction;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ipnet::IpNet;
use rand::CryptoRng;
use switchyard_catalog::{
    AuthenticationMethod, Catalog, CatalogError, Change, Name, NameError, NodeChange, NodeId, NodeKind, Secret,
    Verifiers,
};
pub use switchyard_engine::ProcessSetting;
use switchyard_session::{
    Client, Context, Elsewhere, Established, KeepAlive, Limits, LoginDecision, NewSession, Peer, Registry, Routing,
    Secured, SessionError, Throttle, Tls, decide_login, establish, mock_secret,
};
use switchyard_store::{Commit, CommitError, Record, Retention, Store, StoreError};
use switchyard_wire::{CancelKey, Md5Verifier, ScramVerifier, Version};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, watch};
use tracing::{debug, info, warn};

use switchyard_engine::{AdvisoryLocks, ClientError, PlanCache, Queries, QueryLimits, SqlState, settings};

pub use crate::asking::AskPeer;
pub use crate::data::{Attached, DataPiece, DataTarget};
use crate::following::take;
pub use crate::health::{Probe, ProbePlan};
use crate::live::LiveState;
use crate::members::{Here, Members};
pub use crate::members::{MemberOrder, PeerPlace, Reach};
use crate::metrics::Metrics;
use crate::router::Router;

/// What a member is started with.
#[derive(Debug)]
pub struct ConsoleOptions {
    /// The database's name, when the store is empty.
    pub database: Name,
    /// This member's node.
    pub node_name: Name,
    /// Where clients and other members reach it.
    pub advertise_host: String,
    /// The port there.
    pub advertise_port: u16,
    /// The PostgreSQL server it fronts.
    pub upstream: Option<Secret>,
    /// The subcluster it joins, when it is new.
    pub subcluster: Option<Name>,
    /// The superuser's password, when the store is empty.
    pub password: Option<Secret>,
    /// Limits of connections and logins.
    pub limits: Limits,
    /// TLS, if it is spoken.
    pub tls: Option<Arc<Tls>>,
    /// From where PROXY headers are believed.
    pub proxy_networks: Vec<IpNet>,
    /// How the process was started, for `switchyard.settings`.
    pub process_settings: Vec<ProcessSetting>,
}

/// Why a member cannot start.
#[derive(Debug, Error)]
pub enum ConsoleOpenError {
    /// The store does not answer.
    #[error("cannot read the catalog")]
    Store(#[from] StoreError),
    /// The store holds entities but no database.
    #[error("the store holds no database")]
    NoDatabase,
    /// The node cannot join.
    #[error("node \"{node}\" cannot join")]
    Join {
        /// The node.
        node: Name,
        /// Why.
        #[source]
        source: CatalogError,
    },
    /// The first commit failed.
    #[error("cannot write the catalog")]
    Commit(#[from] CommitError),
    /// The superuser's name is none; it is one of ours.
    #[error(transparent)]
    Name(#[from] NameError),
}

/// The newest catalog of this member.
#[derive(Debug, Clone)]
struct Head {
    catalog: Arc<watch::Sender<Arc<Catalog>>>,
    /// The same catalog's version, for those who ask with each transaction of their clients.
    version: Arc<AtomicU64>,
}

impl Head {
    fn new(catalog: Catalog) -> Self {
        let version = Arc::new(AtomicU64::new(catalog.version()));
        Self { catalog: Arc::new(watch::Sender::new(Arc::new(catalog))), version }
    }

    fn load(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog.borrow())
    }

    /// Tells of each version that is newer than the one that there is now.
    fn changed(&self) -> watch::Receiver<Arc<Catalog>> {
        self.catalog.subscribe()
    }

    /// Takes a newer version; an older one comes too late. Of one version there is only one catalog.
    fn replace(&self, catalog: Arc<Catalog>) {
        self.catalog.send_if_modified(|head| {
            let newer = head.version() < catalog.version();
            if newer {
                let version = catalog.version();
                *head = catalog;
                self.version.store(version, Ordering::Release);
            }
            newer
        });
    }
}

/// One member's console.
#[derive(Debug)]
pub struct Console {
    store: Arc<dyn Store>,
    head: Head,
    /// Held from the check of the version to the end of the commit.
    committing: Arc<tokio::sync::Mutex<()>>,
    members: Arc<Members>,
    router: Arc<Router>,
    metrics: Arc<Metrics>,
    context: Context,
    /// This member's node.
    node_id: Option<NodeId>,
    /// Its name at the start.
    node_name_at_start: Name,
    live: Arc<LiveState>,
    /// Query engines that no session needs at the moment: most sessions are idle, and an engine is large.
    engines: Mutex<Vec<Queries>>,
    texts: texts::Texts,
    plans: Arc<PlanCache>,
    channels: Arc<channels::Channels>,
    locks: Arc<AdvisoryLocks>,
    shutdown: watch::Sender<bool>,
    /// Whether this process made the first catalog.
    made: bool,
}

/// What members of one process share.
struct Shared {
    store: Arc<dyn Store>,
    head: Head,
    committing: Arc<tokio::sync::Mutex<()>>,
    members: Arc<Members>,
    plans: Arc<PlanCache>,
    channels: Arc<channels::Channels>,
    locks: Arc<AdvisoryLocks>,
    shutdown: watch::Sender<bool>,
    made: bool,
}

/// How many query engines are kept for the sessions that will ask next.
const ENGINES_MAX: usize = 16;

/// The superuser that every cluster starts with.
pub const SUPERUSER: &str = "dbadmin";

impl Console {
    /// Loads the catalog, or makes the first one, and joins this member's node.
    ///
    /// # Errors
    /// When the store cannot be read or written, or the node cannot join.
    pub async fn open(store: Arc<dyn Store>, options: ConsoleOptions) -> Result<Arc<Self>, ConsoleOpenError> {
        let (catalog, made) = load_and_join(store.as_ref(), &options).await?;
        info!(version = catalog.version(), node = %options.node_name, "catalog loaded");
        let shared = Shared {
            store,
            head: Head::new(catalog),
            committing: Arc::default(),
            members: Arc::default(),
            plans: Arc::default(),
            channels: Arc::default(),
            locks: Arc::default(),
            shutdown: watch::Sender::new(false),
            made,
        };
        Ok(Self::start(shared, options))
    }

    /// Joins another member that this process runs: both have one store and one catalog.
    ///
    /// # Errors
    /// When the store cannot be written, or the node cannot join.
    pub async fn open_beside(&self, options: ConsoleOptions) -> Result<Arc<Self>, ConsoleOpenError> {
        let one_at_a_time = self.committing.lock().await;
        let head = self.head.load();
        let catalog = join(self.store.as_ref(), Catalog::clone(&head), Vec::new(), &options).await?;
        self.head.replace(Arc::new(catalog));
        drop(one_at_a_time);
        let shared = Shared {
            store: Arc::clone(&self.store),
            head: self.head.clone(),
            committing: Arc::clone(&self.committing),
            members: Arc::clone(&self.members),
            plans: Arc::clone(&self.plans),
            channels: Arc::clone(&self.channels),
            locks: Arc::clone(&self.locks),
            shutdown: self.shutdown.clone(),
            made: false,
        };
        Ok(Self::start(shared, options))
    }

    fn start(shared: Shared, options: ConsoleOptions) -> Arc<Self> {
        let Shared { store, head, committing, members, plans, channels, locks, shutdown, made } = shared;
        let catalog = head.load();
        let registry = match members.here().first() {
            None => Registry::new(options.advertise_host.clone()),
            Some(first) => first.registry.beside(options.advertise_host.clone()),
        };
        let live = Arc::new(LiveState::start(options.process_settings));
        let node = catalog.nodes().named(&options.node_name);
        if let Some(node) = node {
            members.joined(Here { node: node.id, registry: Arc::clone(&registry), live: Arc::clone(&live) });
            members.changed(node, true, "the member started");
        }
        let node_id = node.map(|node| node.id);
        let metrics = Arc::new(Metrics::default());
        let router = Arc::new(Router::new(head.clone(), Arc::clone(&members), node_id, Arc::clone(&metrics)));
        let (logins, secrets, draining) = (head.clone(), head.clone(), head.clone());
        let (displaced, name) = (Arc::clone(&members), options.node_name.clone());
        let deciding = Arc::clone(&router);
        let context = Context {
            throttle: Arc::new(Throttle::default()),
            limits: options.limits,
            registry: Arc::clone(&registry),
            mock_secret: mock_secret(&catalog, &mut rand::rng()),
            scram_iterations: switchyard_wire::verifier::SCRAM_ITERATIONS,
            tls: options.tls,
            routing: Routing {
                proxy_networks: options.proxy_networks,
                member_secret: Box::new(move || secrets.load().database().member_secret.clone()),
                decide: Box::new(move |peer, can_be_redirected| deciding.decide(peer, can_be_redirected)),
                draining: Box::new(move || {
                    let catalog = draining.load();
                    let node = node_id.and_then(|id| catalog.nodes().find(id)).filter(|node| node.draining);
                    node.map(|node| node.name.clone())
                }),
                displaced: Box::new(move || displaced.displaced_by().map(|by| (name.clone(), by))),
            },
            authenticate: Box::new(move |request| {
                let catalog = logins.load();
                let client_sessions_max = settings::client_sessions_max(&catalog, node_id);
                let md5 = settings::database_value("password_md5_verifiers", &catalog).as_deref() == Some("on");
                LoginDecision { client_sessions_max, md5, ..decide_login(&catalog, request) }
            }),
            admit: {
                let members = Arc::clone(&members);
                Box::new(move |user, most| Box::pin(Arc::clone(&members).admit(user, most)))
            },
        };
        let console = Arc::new(Self {
            store,
            head,
            committing,
            members,
            router,
            metrics,
            context,
            node_id,
            node_name_at_start: options.node_name,
            live,
            engines: Mutex::default(),
            texts: texts::Texts::default(),
            plans,
            channels,
            locks,
            shutdown,
            made,
        });
        console.watch_catalog();
        console
    }

    /// Whether the store was empty, and the superuser has the password that this member was given.
    pub fn made_the_catalog(&self) -> bool {
        self.made
    }

    /// Runs a script as the superuser, as one transaction.
    ///
    /// # Errors
    /// The first thing that is wrong with it; nothing has happened then.
    pub async fn run_script(self: &Arc<Self>, script: &str) -> Result<(), ClientError> {
        let catalog = self.head.load();
        let superuser = Name::parse(SUPERUSER).ok().and_then(|name| catalog.users().named(&name).cloned());
        let missing = || ClientError::new(SqlState::UndefinedObject, format!("user \"{SUPERUSER}\" does not exist"));
        let superuser = superuser.ok_or_else(missing)?;
        let new = NewSession {
            user: superuser.id,
            user_name: superuser.name.clone(),
            superuser: true,
            user_sessions_max: None,
            client_sessions_max: None,
            client: None,
            local: None,
            database: None,
            version: Version::V3_0,
            vertica: None,
            application: String::new(),
            tls: None,
            method: AuthenticationMethod::Trust,
            record: None,
            given: None,
        };
        let place = self.context.registry.register(new, &self.context.limits, &mut rand::rng());
        let place = place.map_err(|error| ClientError::new(SqlState::InternalError, error.to_string()))?;
        let (mut session, _) = session::Session::open(Arc::clone(self), place, &[])?;
        session.begin_implicit();
        for parsed in &switchyard_dialect::parse(script)? {
            session.run(script, parsed, &[]).await?;
        }
        session.end_implicit(false).await
    }

    /// The orders by which statements stop members of this process, and have them serve again. Without anybody who takes
    /// them such statements are refused.
    pub fn orders(&self) -> mpsc::Receiver<MemberOrder> {
        self.members.orders()
    }

    /// This member's node.
    pub fn node(&self) -> Option<NodeId> {
        self.node_id
    }

    /// Says to all that this member serves from now on, or does not any more.
    pub fn serves(&self, serves: bool, reason: &str) {
        let catalog = self.head.load();
        if let Some(node) = self.node_id.and_then(|id| catalog.nodes().find(id)) {
            self.members.changed(node, serves, reason);
        }
    }

    /// Takes a connection from its first byte to what it is for; nothing when it is over already. It is counted among the
    /// logins at once, before the future is first polled: which is the oldest, the order of accepting says.
    pub fn establish<S>(
        self: Arc<Self>,
        stream: S,
        peer: Peer,
    ) -> impl Future<Output = Option<Established<S>>> + Send + 'static
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + Sync + 'static,
    {
        let slot = self.context.begin_login();
        self.metrics.connections.fetch_add(1, Ordering::Relaxed);
        async move {
            let established = establish(stream, peer, slot, &self.context).await;
            established.map_err(|error| self.refused(peer, &error)).ok()
        }
    }

    /// The same for a client that another member was to serve and cannot.
    pub async fn establish_here<S>(&self, elsewhere: Elsewhere<S>) -> Option<Established<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + Sync + 'static,
    {
        let peer = elsewhere.peer();
        elsewhere.establish_here(&self.context).await.map_err(|error| self.refused(peer, &error)).ok()
    }

    /// Serves a client to its end; `keep_alive` says to its socket when it is probed.
    pub async fn serve<S>(
        self: Arc<Self>,
        client: Client<S>,
        keep_alive: fn(&Secured<S>, Option<KeepAlive>) -> std::io::Result<()>,
    ) where
        S: AsyncRead + AsyncWrite + Unpin + Send + Sync + 'static,
    {
        self.metrics.sessions.fetch_add(1, Ordering::Relaxed);
        protocol::run(self, client, keep_alive).await;
    }

    /// Stops what a session of this member does, if the key is that session's; says whether there is such a session.
    pub fn cancel(&self, process_id: i32, secret: &CancelKey) -> bool {
        self.context.registry.cancel(process_id, secret)
    }

    fn refused(&self, peer: Peer, error: &SessionError) {
        Metrics::count(&self.metrics.failures, error.cause());
        match (error, error.report()) {
            // What is wrong with a certificate is the operator's to know, whoever's it is.
            (SessionError::Handshake(_), _) => warn!(%peer, %error, "connection refused"),
            (_, None) => debug!(%peer, %error, "connection ended before login"),
            (_, Some(report)) => {
                warn!(%peer, %error, "login refused");
                self.live.login_failed(self.node_id, peer.to_string(), report.message);
            }
        }
    }

    /// An engine that nobody needs, if there is one with these limits.
    fn idle_engine(&self, limits: QueryLimits) -> Option<Queries> {
        let mut engines = self.engines.lock().unwrap_or_else(PoisonError::into_inner);
        let at = engines.iter().position(|engine| engine.limits() == limits)?;
        Some(engines.swap_remove(at))
    }

    /// Takes back the engine of a session that has nothing left to read.
    fn keep_engine(&self, engine: Queries) {
        let mut engines = self.engines.lock().unwrap_or_else(PoisonError::into_inner);
        if engines.len() >= ENGINES_MAX {
            // The last that came have the limits that are in use.
            engines.remove(0);
        }
        engines.push(engine);
    }

    /// Another process has this one's name, and is there; or has no longer. There is one process to a node: who has come
    /// back finds no sessions here, and makes none.
    pub fn displaced(&self, by: Option<String>) {
        let is_there = by.is_some();
        if self.members.displace(by) && is_there {
            self.close_all();
        }
    }

    /// How many clients are logged in.
    pub fn sessions_active(&self) -> usize {
        self.context.registry.len()
    }

    /// Ends every session, after the statement it runs.
    pub fn close_all(&self) {
        for session in self.context.registry.sessions() {
            session.terminate();
        }
    }

    /// Ready when somebody has asked for a shutdown by statement.
    pub async fn shutdown_requested(&self) {
        let mut asked = self.shutdown.subscribe();
        // The sender lives as long as `self`: waiting cannot fail.
        let _ = asked.wait_for(|asked| *asked).await;
    }

    /// What this member's node is called in a catalog: it may have been renamed since the start.
    fn node_name(&self, catalog: &Catalog) -> Name {
        let node = self.node_id.and_then(|id| catalog.nodes().find(id));
        node.map_or_else(|| self.node_name_at_start.clone(), |node| node.name.clone())
    }

    /// The newest catalog.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.head.load()
    }
}

/// What is kept of a password.
fn make_verifiers(password: &str, md5_of: Option<&Name>) -> Verifiers {
    let (scram, sha512) = switchyard_wire::verifiers(password, &mut rand::rng());
    let md5 = md5_of.map(|user| Secret::new(Md5Verifier::make(password, user.as_str()).text()));
    Verifiers { scram: Secret::new(scram), sha512: Secret::new(sha512), md5 }
}

/// Whether a password fits what is kept.
fn check_password(kept: &Verifiers, password: &str) -> bool {
    ScramVerifier::parse(kept.scram.reveal()).is_ok_and(|verifier| verifier.fits(password))
}

fn first_catalog(options: &ConsoleOptions) -> Result<(Catalog, Vec<switchyard_catalog::Delta>), ConsoleOpenError> {
    let superuser = Name::parse(SUPERUSER)?;
    let verifiers = options.password.as_ref().map(|password| make_verifiers(password.reveal(), None));
    Ok(Catalog::initial(options.database.clone(), superuser, verifiers))
}

/// How often a member that starts tries again because others, who start too, were first.
const JOINS_MAX: usize = 1_000;

/// The catalog with this member's node in it, and whether there was none before.
async fn load_and_join(store: &dyn Store, options: &ConsoleOptions) -> Result<(Catalog, bool), ConsoleOpenError> {
    let mut attempts = 0..JOINS_MAX;
    loop {
        let Some(loaded) = store.load().await? else {
            let (catalog, deltas) = first_catalog(options)?;
            match join(store, catalog, deltas, options).await {
                // Somebody else has made the first one.
                Err(ConsoleOpenError::Commit(CommitError::Stale { .. })) if attempts.next().is_some() => continue,
                joined => return Ok((joined?, true)),
            }
        };
        let catalog = Catalog::from_entities(loaded.version, loaded.id_next, loaded.entities);
        let head = Head::new(catalog.ok_or(ConsoleOpenError::NoDatabase)?);
        loop {
            let catalog = head.load();
            match join(store, Catalog::clone(&catalog), Vec::new(), options).await {
                // Only what came since is read: to read everything takes so long that others would always be first.
                Err(ConsoleOpenError::Commit(CommitError::Stale { .. })) if attempts.next().is_some() => {
                    take(&head, store.newer(catalog.version()).await?);
                }
                joined => return Ok((joined?, false)),
            }
        }
    }
}

/// Commits the first catalog, if it is new, and this member's node, if it is new or somewhere else than it was.
async fn join(
    store: &dyn Store,
    catalog: Catalog,
    mut deltas: Vec<switchyard_catalog::Delta>,
    options: &ConsoleOptions,
) -> Result<Catalog, ConsoleOpenError> {
    let name = options.node_name.clone();
    let (host, port) = (options.advertise_host.clone(), options.advertise_port);
    let upstream = options.upstream.clone();
    let change = match catalog.nodes().named(&name) {
        None => Some(Change::CreateNode {
            name,
            kind: NodeKind::Member { upstream },
            host,
            port,
            subcluster: options.subcluster.clone(),
        }),
        Some(node)
            if node.host == host
                && node.port == port
                && node.kind == (NodeKind::Member { upstream: upstream.clone() }) =>
        {
            None
        }
        Some(_) => Some(Change::AlterNode { name, change: NodeChange::Join { host, port, upstream } }),
    };
    let mut joined = catalog.clone();
    let mut changes: Vec<_> = change.into_iter().collect();
    // Whoever was drained and has ended comes back to serve.
    if let Some(node) = catalog.nodes().named(&options.node_name).filter(|node| node.draining) {
        changes.push(Change::AlterNode {
            name: node.name.clone(),
            change: NodeChange::Drain { draining: false, terms: None },
        });
    }
    if catalog.database().member_secret.is_none() {
        changes.push(Change::SetMemberSecret { secret: new_member_secret(&mut rand::rng()) });
    }
    if !changes.is_empty() {
        // On an empty store nobody can have made the subcluster that the first member is to join.
        if let Some(name) = options.subcluster.clone().filter(|name| catalog.subclusters().named(name).is_none())
            && !deltas.is_empty()
        {
            changes.insert(0, Change::CreateSubcluster { name, primary: false });
        }
        let applied = catalog
            .apply(&changes)
            .map_err(|source| ConsoleOpenError::Join { node: options.node_name.clone(), source })?;
        joined = applied.catalog;
        deltas.extend(applied.deltas);
    }
    if deltas.is_empty() {
        return Ok(joined);
    }
    let commit = Commit {
        retention: retention(&joined),
        base: catalog.version(),
        id_next: joined.id_next(),
        deltas: switchyard_catalog::merge_deltas(deltas),
        record: Record {
            time_us: live::now_us(),
            user: SUPERUSER.to_owned(),
            client: "[member]".to_owned(),
            statements: vec![format!("-- node {} joins", options.node_name)],
        },
    };
    let committed = store.commit(commit).await?;
    Ok(joined.with_version(committed.version))
}

/// 256 bits, in hex.
fn new_member_secret(rng: &mut impl CryptoRng) -> Secret {
    let mut bytes = [0_u8; 32];
    rng.fill_bytes(&mut bytes);
    Secret::new(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

/// What history keeps, by the settings of this catalog.
fn retention(catalog: &Catalog) -> Retention {
    const DAY_US: i64 = 86_400_000_000;
    let number = |name| {
        let value = switchyard_engine::settings::database_value(name, catalog);
        value.and_then(|value| value.parse::<i64>().ok()).unwrap_or_default()
    };
    let days = number("history_days_max");
    Retention {
        versions_max: u64::try_from(number("history_versions_max")).unwrap_or_default().max(1),
        age_us_max: (days > 0).then(|| days.saturating_mul(DAY_US)),
    }
}

/// The catalog as a script of our own statements, secrets as verifiers: `psql -f` on a new cluster makes it again.
pub fn dump(catalog: &Catalog) -> String {
    let mut script = String::new();
    for line in switchyard_engine::dump::dump(catalog) {
        script.push_str(&line);
        script.push('\n');
    }
    script
}
