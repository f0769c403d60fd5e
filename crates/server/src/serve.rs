//! `switchyard serve`: from settings to a node that serves, and its end.

use std::convert::Infallible;
use std::future::Future;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use switchyard_catalog::Secret;
use switchyard_console::{Console, ConsoleOptions};
use switchyard_session::Tls;
use switchyard_store::Store;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tracing::{error, info, warn};

use crate::cluster::Cluster;
use crate::first_start::FirstPassword;
use crate::member::{DataPlane, Member};
use crate::settings::{HostPort, Settings, StoreKind};
use crate::stopping::{StopSignal, StopSignals};
use crate::takeover::Takeover;
use crate::{FAILURE, certificates, complain, health, http, listener, logging, open_files, storage};

/// What closing every session may take before the process ends regardless.
const CLOSE_MAX: Duration = Duration::from_secs(1);

/// The stack of a worker thread: planning a deeply nested query needs more than the usual 2 MiB. Only what is used is
/// ever resident.
const STACK_BYTES: usize = 8 << 20;

/// Runs a node until it is told to stop.
pub(crate) fn serve(settings: Settings) -> ExitCode {
    start(settings, run)
}

/// Runs what takes these settings on a runtime of its own.
pub(crate) fn start<F, R>(settings: Settings, run: F) -> ExitCode
where
    F: FnOnce(Settings) -> R,
    R: Future<Output = anyhow::Result<ExitCode>>,
{
    logging::start(&settings.log, settings.log_format);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().thread_stack_size(STACK_BYTES).build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            complain(&format!("cannot start: {error}"));
            return FAILURE.into();
        }
    };
    let ended = runtime.block_on(run(settings));
    // A commit that is being written gets to its end, so that the store closes in good order.
    runtime.shutdown_timeout(CLOSE_MAX);
    match ended {
        Ok(code) => code,
        Err(failure) => {
            error!("{failure:#}");
            FAILURE.into()
        }
    }
}

async fn run(settings: Settings) -> anyhow::Result<ExitCode> {
    let mut signals = StopSignals::catch().context("cannot catch signals")?;
    open_files::raise(settings.connections_max.count().saturating_add(settings.logins_max.count()));
    let tls = settings.tls().map(Tls::open).transpose()?.map(Arc::new);
    let takeover = Takeover::new(&settings);
    let listeners = match takeover.wait_max {
        Some(_) => listener::bind_shared(&settings.listen)?,
        None => listener::bind(&settings.listen).await?,
    };
    let watched = listener::bind(&settings.http).await?;
    let addresses: Vec<SocketAddr> = listeners.iter().map(|(address, _)| *address).collect();
    let storage::Opened { store, etcd } = takeover.retry(async || storage::open(&settings).await).await?;
    let advertised = advertised(settings.advertise.as_ref(), &addresses);
    let mut cluster = match etcd {
        Some(etcd) => {
            let name = settings.node_name()?;
            let join = async || Cluster::join(Arc::clone(&etcd), &settings, &name, &advertised).await;
            Some(takeover.retry(join).await?)
        }
        None => None,
    };
    let (console, first) = open_catalog(&settings, store, advertised, tls.clone()).await?;
    if let Some(tls) = tls {
        tokio::spawn(certificates::watch(tls));
    }
    if let Some(cluster) = &mut cluster {
        cluster.begin(&console).await;
    }
    http::serve(watched, &console);
    announce(&addresses).context("cannot write to standard output")?;

    tokio::spawn(health::look_after(Arc::downgrade(&console)));
    let member = Member::new(Arc::clone(&console), DataPlane::start(&settings)?);
    let sessions = member.accept(listeners);
    let (asked_by, drain_ms) = tokio::select! {
        signal = signals.next() => (signal.as_str(), settings.drain_ms_max.0),
        // The statement has its own ways to wait for sessions: they are over when it asks.
        () = console.shutdown_requested() => ("SHUTDOWN", 0),
    };
    info!(
        asked_by,
        sessions = console.sessions_active(),
        "stopping: no new connections; a second signal ends it at once"
    );
    if let Some(cluster) = cluster {
        // First of all: the others send nobody here any more.
        cluster.leave().await;
    }
    let drain = Duration::from_millis(drain_ms);
    let forced = sessions.finish(drain, &mut signals, || member.close_all()).await;
    if let (StoreKind::Memory, Some(first)) = (&settings.store, first) {
        // The user it is for is forgotten with the catalog.
        first.remove();
    }
    match forced {
        None => {
            info!("stopped");
            Ok(ExitCode::SUCCESS)
        }
        Some(signal) => {
            warn!(signal = signal.as_str(), sessions = console.sessions_active(), "stopping at once");
            Ok(signal.exit_code().into())
        }
    }
}

/// The password for a catalog that is about to be made; none when there is a catalog already.
pub(crate) async fn first_password(settings: &Settings, store: &dyn Store) -> anyhow::Result<Option<FirstPassword>> {
    // Every catalog has a first version in its history, and asking for it is cheaper than loading everything.
    if !store.history(0, 1).await?.is_empty() {
        if settings.password.is_some() {
            info!("the catalog exists: SWITCHYARD_PASSWORD is not used");
        }
        return Ok(None);
    }
    if let Some(chosen) = &settings.password {
        return Ok(Some(FirstPassword::chosen(chosen.0.clone())));
    }
    let first = FirstPassword::generate(&settings.data_dir)?;
    if let Some(path) = &first.path {
        info!(path = %path.display(), "the password of dbadmin was generated and written to a file");
    }
    Ok(Some(first))
}

/// Opens the catalog, or makes the first one; with its superuser's password.
async fn open_catalog(
    settings: &Settings,
    store: Arc<dyn Store>,
    advertised: HostPort,
    tls: Option<Arc<Tls>>,
) -> anyhow::Result<(Arc<Console>, Option<FirstPassword>)> {
    let mut first = first_password(settings, store.as_ref()).await?;
    let password = first.as_ref().map(|first| first.password.clone());
    match open_console(settings, Arc::clone(&store), advertised, password, tls).await {
        Ok(console) => {
            // Another member may have made the catalog meanwhile: then the password is the one that it was given.
            if !console.made_the_catalog()
                && let Some(first) = first.take()
            {
                info!("another member has made the catalog: the password of dbadmin is the one it was given");
                first.remove();
            }
            Ok((console, first))
        }
        Err(failure) => {
            // The password of a catalog that was not made opens nothing.
            if let Some(first) = first
                && store.history(0, 1).await.is_ok_and(|history| history.is_empty())
            {
                first.remove();
            }
            Err(failure)
        }
    }
}

async fn open_console(
    settings: &Settings,
    store: Arc<dyn Store>,
    advertised: HostPort,
    password: Option<Secret>,
    tls: Option<Arc<Tls>>,
) -> anyhow::Result<Arc<Console>> {
    let node_name = settings.node_name()?;
    info!(
        version = env!("CARGO_PKG_VERSION"),
        config = settings.config.as_deref().map(|path| path.display().to_string()),
        node = %node_name,
        store = settings.store.as_str(),
        data_dir = %settings.data_dir.display(),
        advertise = %advertised,
        "starting"
    );
    let options = ConsoleOptions {
        database: settings.database.clone(),
        node_name,
        advertise_host: advertised.host,
        advertise_port: advertised.port,
        upstream: settings.upstream.as_ref().map(|upstream| upstream.0.clone()),
        subcluster: settings.subcluster.clone(),
        password,
        limits: settings.limits(),
        tls,
        proxy_networks: settings.proxy_networks.0.clone(),
        process_settings: settings.shown.clone(),
    };
    Console::open(store, options).await.context("cannot open the catalog")
}

/// The address others are told: as set, else the first one listened on.
fn advertised(set: Option<&HostPort>, addresses: &[SocketAddr]) -> HostPort {
    if let Some(set) = set {
        return set.clone();
    }
    let first = addresses.first().copied().unwrap_or_else(|| (Ipv4Addr::LOCALHOST, 0).into());
    let host: IpAddr = if first.ip().is_unspecified() {
        warn!(
            "listening on every address and advertising 127.0.0.1, which only this machine reaches: set \"advertise\""
        );
        Ipv4Addr::LOCALHOST.into()
    } else {
        first.ip()
    };
    HostPort { host: host.to_string(), port: first.port() }
}

/// The ready lines: the only thing ever written to standard output.
pub(crate) fn announce(addresses: &[SocketAddr]) -> io::Result<()> {
    let mut output = io::stdout().lock();
    for address in addresses {
        writeln!(output, "listening on {address}")?;
    }
    output.flush()
}

/// All sessions, and the tasks that accept them.
pub(crate) struct Sessions {
    stop: watch::Sender<bool>,
    ended: mpsc::Receiver<Infallible>,
    accepting: Vec<JoinHandle<()>>,
}

impl Sessions {
    pub(crate) fn start<H, F>(listeners: Vec<(SocketAddr, TcpListener)>, handle: H) -> Self
    where
        H: Fn(TcpStream, SocketAddr) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let (stop, stopped) = watch::channel(false);
        let (alive, ended) = mpsc::channel(1);
        let accept =
            |(_, listener)| tokio::spawn(listener::accept(listener, stopped.clone(), alive.clone(), handle.clone()));
        Self { stop, ended, accepting: listeners.into_iter().map(accept).collect() }
    }

    /// Stops accepting, has the sessions closed, and is ready when nobody listens any more: what it gives is ready when
    /// the sessions have ended.
    pub(crate) async fn halt(self, close: impl Fn()) -> Closing {
        self.stop.send_replace(true);
        for accepting in self.accepting {
            // It ends by itself; a panic in it is logged where it happens.
            let _ = accepting.await;
        }
        close();
        Closing(self.ended)
    }

    /// Stops accepting, lets sessions go on for `drain`, then has them closed. Returns the signal that cut it short.
    async fn finish(mut self, drain: Duration, signals: &mut StopSignals, close: impl Fn()) -> Option<StopSignal> {
        self.stop.send_replace(true);
        let ended = async {
            if timeout(drain, self.ended.recv()).await.is_ok() {
                return;
            }
            warn!("closing the sessions that are left");
            close();
            if timeout(CLOSE_MAX, self.ended.recv()).await.is_err() {
                warn!("some sessions did not close in time");
            }
        };
        tokio::select! {
            () = ended => None,
            signal = signals.next() => Some(signal),
        }
    }
}

/// Sessions that were told to end.
pub(crate) struct Closing(mpsc::Receiver<Infallible>);

impl Closing {
    /// Waits until they have, so that each could tell its client; not for ever.
    pub(crate) async fn ended(mut self) {
        if timeout(CLOSE_MAX, self.0.recv()).await.is_err() {
            warn!("some sessions did not close in time");
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may fail")]

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[test]
    fn the_first_listener_is_advertised_unless_an_address_is_set() {
        let set = HostPort { host: "db.example.org".into(), port: 6000 };
        for (set, addresses, expected) in [
            (Some(&set), vec!["127.0.0.1:5433"], "db.example.org:6000"),
            (None, vec!["10.0.0.5:40001", "127.0.0.1:5433"], "10.0.0.5:40001"),
            (None, vec!["0.0.0.0:40001"], "127.0.0.1:40001"),
            (None, vec!["[::1]:40001"], "[::1]:40001"),
        ] {
            let addresses: Vec<SocketAddr> = addresses.iter().map(|address| address.parse().unwrap()).collect();
            let advertised = advertised(set, &addresses);
            assert_eq!(advertised.to_string(), expected);
        }
    }

    #[tokio::test]
    async fn sessions_are_closed_when_their_time_is_over() {
        let listeners = listener::bind(&["127.0.0.1:0".parse().unwrap()]).await.unwrap();
        let address = listeners.first().unwrap().0;
        let (closing, closed) = watch::channel(false);
        let sessions = Sessions::start(listeners, move |stream, _peer| {
            let mut closed = closed.clone();
            async move {
                let mut stream: TcpStream = stream;
                stream.write_u8(1).await.unwrap();
                closed.wait_for(|closed| *closed).await.unwrap();
            }
        });
        let mut client = TcpStream::connect(address).await.unwrap();
        // Only a connection that has been accepted can be left to finish.
        assert_eq!(client.read_u8().await.unwrap(), 1);
        let mut signals = StopSignals::catch().unwrap();
        let forced = sessions.finish(Duration::ZERO, &mut signals, || assert!(closing.send(true).is_ok())).await;
        assert_eq!(forced, None);
        assert_eq!(client.read(&mut [0]).await.unwrap(), 0);
    }
}
