//! The admin session: parse, plan, commit, answer rows.

mod balancer;
mod channels;
mod encode;
mod error;
mod live;
mod protocol;
mod query_log;
mod session;
mod transaction;

use std::sync::{Arc, PoisonError, RwLock};

use switchyard_catalog::{
    Catalog, CatalogError, Change, Name, NameError, NodeChange, NodeId, NodeKind, Secret, Verifiers,
};
pub use switchyard_engine::ProcessSetting;
use switchyard_session::{
    Client, Context, Elsewhere, Established, Limits, Peer, Registry, Routing, SessionError, Throttle, Tls,
    decide_login, establish, mock_secret,
};
use switchyard_store::{Commit, CommitError, Record, Retention, Store, StoreError};
use switchyard_wire::{CancelKey, ScramVerifier};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tracing::{debug, info, warn};

use switchyard_engine::{AdvisoryLocks, PlanCache};

use crate::live::LiveState;

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
struct Head(Arc<RwLock<Arc<Catalog>>>);

impl Head {
    fn load(&self) -> Arc<Catalog> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn replace(&self, catalog: Arc<Catalog>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = catalog;
    }
}

/// One member's console.
#[derive(Debug)]
pub struct Console {
    store: Arc<dyn Store>,
    head: Head,
    /// Held from the check of the version to the end of the commit.
    committing: tokio::sync::Mutex<()>,
    context: Context,
    /// This member's node.
    node_id: Option<NodeId>,
    /// Its name at the start.
    node_name_at_start: Name,
    live: LiveState,
    plans: Arc<PlanCache>,
    channels: Arc<channels::Channels>,
    locks: Arc<AdvisoryLocks>,
    shutdown: watch::Sender<bool>,
}

/// The superuser that every cluster starts with.
pub const SUPERUSER: &str = "dbadmin";

impl Console {
    /// Loads the catalog, or makes the first one, and joins this member's node.
    ///
    /// # Errors
    /// When the store cannot be read or written, or the node cannot join.
    pub async fn open(store: Arc<dyn Store>, options: ConsoleOptions) -> Result<Arc<Self>, ConsoleOpenError> {
        let (catalog, deltas) = match store.load().await? {
            Some(loaded) => {
                let catalog = Catalog::from_entities(loaded.version, loaded.id_next, loaded.entities);
                (catalog.ok_or(ConsoleOpenError::NoDatabase)?, Vec::new())
            }
            None => first_catalog(&options)?,
        };
        let catalog = join(store.as_ref(), catalog, deltas, &options).await?;
        info!(version = catalog.version(), node = %options.node_name, "catalog loaded");
        let head = Head(Arc::new(RwLock::new(Arc::new(catalog))));
        let registry = Registry::new(options.advertise_host.clone());
        let logins = head.clone();
        let context = Context {
            throttle: Arc::new(Throttle::default()),
            limits: options.limits,
            registry,
            mock_secret: mock_secret(&head.load(), &mut rand::rng()),
            scram_iterations: switchyard_wire::verifier::SCRAM_ITERATIONS,
            tls: options.tls,
            routing: Routing::default(),
            authenticate: Box::new(move |request| decide_login(&logins.load(), request)),
        };
        let node_id = head.load().nodes().named(&options.node_name).map(|node| node.id);
        let live = LiveState::start(&head.load(), &options.node_name, options.process_settings);
        Ok(Arc::new(Self {
            store,
            head,
            committing: tokio::sync::Mutex::new(()),
            context,
            node_id,
            node_name_at_start: options.node_name,
            live,
            plans: Arc::default(),
            channels: Arc::default(),
            locks: Arc::default(),
            shutdown: watch::Sender::new(false),
        }))
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

    /// Serves a client to its end.
    pub async fn serve<S>(self: Arc<Self>, client: Client<S>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + Sync + 'static,
    {
        protocol::run(self, client).await;
    }

    /// Stops what a session of this member does, if the key is that session's; says whether there is such a session.
    pub fn cancel(&self, process_id: i32, secret: &CancelKey) -> bool {
        self.context.registry.cancel(process_id, secret)
    }

    fn refused(&self, peer: Peer, error: &SessionError) {
        match (error, error.report()) {
            // What is wrong with a certificate is the operator's to know, whoever's it is.
            (SessionError::Handshake(_), _) => warn!(%peer, %error, "connection refused"),
            (_, None) => debug!(%peer, %error, "connection ended before login"),
            (_, Some(report)) => {
                warn!(%peer, %error, "login refused");
                self.live.login_failed(peer.to_string(), report.message);
            }
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
fn make_verifiers(password: &str) -> Verifiers {
    let (scram, sha512) = switchyard_wire::verifiers(password, &mut rand::rng());
    Verifiers { scram: Secret::new(scram), sha512: Secret::new(sha512) }
}

/// Whether a password fits what is kept.
fn check_password(kept: &Verifiers, password: &str) -> bool {
    ScramVerifier::parse(kept.scram.reveal()).is_ok_and(|verifier| verifier.fits(password))
}

fn first_catalog(options: &ConsoleOptions) -> Result<(Catalog, Vec<switchyard_catalog::Delta>), ConsoleOpenError> {
    let superuser = Name::parse(SUPERUSER)?;
    let verifiers = options.password.as_ref().map(|password| make_verifiers(password.reveal()));
    Ok(Catalog::initial(options.database.clone(), superuser, verifiers))
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
    if let Some(change) = change {
        let mut changes = vec![change];
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
