//! One member of the cluster in this process: what becomes of a connection that it takes.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use bytes::BytesMut;
use switchyard_catalog::Secret;
use switchyard_console::Console;
use switchyard_proxy::{Channel, Passage, PoolLimits, Relay, Relays, Stream, Target, Threads, relay};
use switchyard_session::{Client, Elsewhere, Established, Peer, Secured};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tracing::{debug, info, warn};

use crate::data;
use crate::keep_alive::keep_alive;
use crate::serve::Sessions;
use crate::settings::Settings;

/// How long another member may take to answer, in milliseconds.
const PASSAGE_MS_MAX: u64 = 3_000;

/// A member.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) console: Arc<Console>,
    pub(crate) relays: Arc<Relays>,
    sessions: Arc<DataPlane>,
}

/// What data sessions of all members of the process are served by.
#[derive(Debug)]
pub(crate) struct DataPlane {
    threads: Threads,
    login_ms_max: u64,
}

impl DataPlane {
    /// Starts its threads.
    ///
    /// # Errors
    /// When the system has none left.
    pub(crate) fn start(settings: &Settings) -> anyhow::Result<Arc<Self>> {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let count = match settings.relay_threads.count() {
            0 => cores.div_ceil(2),
            count => count,
        };
        let limits =
            PoolLimits { idle_max: settings.upstream_idle_max.count(), idle_ms_max: settings.upstream_idle_ms_max.0 };
        let threads = Threads::start(count, limits).context("cannot start the threads of data sessions")?;
        Ok(Arc::new(Self { threads, login_ms_max: settings.upstream_login_ms_max.0 }))
    }
}

impl Member {
    pub(crate) fn new(console: Arc<Console>, sessions: Arc<DataPlane>) -> Arc<Self> {
        Arc::new(Self { console, relays: Arc::default(), sessions })
    }

    /// Accepts from now on.
    pub(crate) fn accept(self: &Arc<Self>, listeners: Vec<(SocketAddr, TcpListener)>) -> Sessions {
        let member = Arc::clone(self);
        Sessions::start(listeners, move |stream: TcpStream, peer: SocketAddr| {
            let peer = Peer::tcp(peer);
            let peer = stream.local_addr().map_or(peer, |local| peer.calling(local));
            Arc::clone(&member).handle(stream, peer)
        })
    }

    /// Ends every session, and every relay.
    pub(crate) fn close_all(&self) {
        self.console.close_all();
        self.relays.close_all();
    }

    /// The whole life of one connection. It is counted as soon as this is called, not when the future is first polled.
    pub(crate) fn handle(self: Arc<Self>, stream: TcpStream, peer: Peer) -> impl Future<Output = ()> + Send + 'static {
        // In a box already here: what a task is given keeps its place in it to the end.
        let established = Box::pin(Arc::clone(&self.console).establish(stream, peer));
        async move {
            // In boxes: what a login needs is not held as long as the session lasts. What is matched on is.
            let established = established.await;
            match established {
                Some(Established::Client(client)) if self.is_data(&client) => self.serve_data(client).await,
                Some(Established::Elsewhere(elsewhere)) => Box::pin(self.pass_on(*elsewhere)).await,
                Some(established) => Box::pin(self.serve(established, peer)).await,
                None => {}
            }
        }
    }

    async fn serve(&self, established: Established<TcpStream>, peer: Peer) {
        match established {
            Established::Client(client) if self.is_data(&client) => self.serve_data(client).await,
            Established::Client(client) => Arc::clone(&self.console).serve(*client, keep_alive).await,
            Established::Cancel { process_id, secret, stream } => {
                let known = self.console.cancel(process_id, &secret)
                    || self.relays.cancel(process_id, &secret, PASSAGE_MS_MAX).await
                    || self.console.cancel_elsewhere(process_id, &secret).await;
                debug!(%peer, process_id, known, "cancel request");
                // Whoever asked waits for this.
                drop(stream);
            }
            Established::Member { stream, ahead, nonces } => {
                let Some(secret) = self.secret() else { return };
                let channel = Channel::new(stream, ahead, secret.reveal().as_bytes(), nonces);
                if let Err(error) = self.answer(channel).await {
                    debug!(%peer, %error, "another member asks no more");
                }
            }
            // It is here because it could not be passed on.
            Established::Elsewhere(_) => {}
        }
    }

    /// Whether a client's statements run on a PostgreSQL server.
    fn is_data(&self, client: &Client<TcpStream>) -> bool {
        client.session.vertica.is_none() && self.console.is_data(client.database.as_deref())
    }

    /// Serves a client whose statements run on a PostgreSQL server. While that lasts nothing is held here.
    async fn serve_data(&self, client: Box<Client<TcpStream>>) {
        let served = Box::pin(self.begin_data(client)).await;
        if let Some(served) = served {
            // A panic in it is logged where it happens.
            let _ = served.await;
        }
    }

    /// Has it served; what it gives is ready when that is over.
    async fn begin_data(&self, client: Box<Client<TcpStream>>) -> Option<JoinHandle<()>> {
        let (stream, client, own) = data::attach(&self.console, *client, self.sessions.login_ms_max).await?;
        let threads = &self.sessions.threads;
        match stream {
            Secured::Plain(stream) => {
                let stream = stream.into_std().ok()?;
                let stream = move || TcpStream::from_std(stream).ok().map(Stream::Plain);
                threads.serve(|pool| switchyard_proxy::serve(stream, client, own, pool))
            }
            // What TLS knows of its socket cannot be taken to another thread.
            secured @ Secured::Tls(_) => {
                let stream = move || Some(Stream::OfClient(Box::new(secured)));
                Some(tokio::spawn(switchyard_proxy::serve(stream, client, own, threads.pool())))
            }
        }
    }

    /// Answers another member for as long as it asks.
    async fn answer(&self, mut channel: Channel<Secured<TcpStream>>) -> std::io::Result<()> {
        while let Some(question) = channel.question().await? {
            let answer = self.console.answer(&question);
            channel.answer(&answer).await?;
        }
        Ok(())
    }

    fn secret(&self) -> Option<Secret> {
        self.console.catalog().database().member_secret.clone()
    }

    /// Passes a client on to the member that is to serve it, or serves it here when that one cannot.
    async fn pass_on(&self, elsewhere: Elsewhere<TcpStream>) {
        let peer = elsewhere.peer();
        match self.open(&elsewhere).await {
            Some((passage, place)) => {
                let Some((client, ahead)) = elsewhere.into_parts() else { return };
                self.relay(client, ahead, passage, place, peer).await;
            }
            None => {
                if let Some(established) = self.console.establish_here(elsewhere).await {
                    self.serve(established, peer).await;
                }
            }
        }
    }

    async fn open(&self, elsewhere: &Elsewhere<TcpStream>) -> Option<(Passage, Relay)> {
        let secret = self.secret()?;
        let destination = elsewhere.destination();
        let target = Target { host: destination.host.clone(), port: destination.port };
        let client = elsewhere.peer().address();
        let place = self.relays.begin(client, target.clone(), elsewhere.secret_bytes(), &mut rand::rng());
        let introduction = elsewhere.introduction(place.entry().process_id, place.entry().secret.clone());
        match Passage::open(target, secret.reveal().as_bytes(), &introduction, PASSAGE_MS_MAX).await {
            Ok(passage) => Some((passage, place)),
            Err(error) => {
                let reason = format!("{:#}", anyhow::Error::from(error));
                warn!(peer = %elsewhere.peer(), reason, "the chosen member cannot take the client: served here");
                None
            }
        }
    }

    async fn relay(&self, client: Secured<TcpStream>, ahead: BytesMut, passage: Passage, place: Relay, peer: Peer) {
        let Passage { stream, target } = passage;
        debug!(%peer, %target, "client passed on");
        tokio::select! {
            moved = relay(client, &ahead, stream) => debug!(%peer, %target, ?moved, "client gone"),
            () = place.closed() => info!(%peer, %target, "connection closed"),
        }
    }
}
