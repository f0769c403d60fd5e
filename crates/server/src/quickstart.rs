//! `switchyard quickstart`: a cluster of three members in one process, with samples, to try everything.

mod addresses;
mod advice;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use switchyard_catalog::{Catalog, Name};
use switchyard_console::{Console, ConsoleOptions, MemberOrder};
use switchyard_session::Tls;
use switchyard_store::Store;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tracing::{info, warn};

use crate::first_start::FirstPassword;
use crate::member::{DataPlane, Member};
use crate::serve::{Closing, Sessions, announce, first_password};
use crate::settings::{Settings, StoreKind};
use crate::stopping::{StopSignal, StopSignals};
use crate::{certificates, health, listener, open_files, storage};

/// How many members there are.
const MEMBERS: u16 = 3;

/// What is made at the first start.
const SAMPLE: &str = include_str!("quickstart/sample.sql");
/// What is made besides where there is IPv6, which is a network of its own.
const SAMPLE_IPV6: &str = include_str!("quickstart/sample_ipv6.sql");

/// One of the members, and whether it serves.
struct Place {
    name: Name,
    addresses: Vec<SocketAddr>,
    member: Arc<Member>,
    sessions: Option<Sessions>,
}

/// Where one of the members is to be.
struct Seat {
    name: Name,
    listeners: Vec<(SocketAddr, TcpListener)>,
}

impl Seat {
    /// Where it is called at: by IPv4 first.
    fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners.iter().map(|(address, _)| *address).collect()
    }

    /// The address that others are told.
    fn address(&self) -> anyhow::Result<SocketAddr> {
        self.listeners.first().map(|(address, _)| *address).context("a member listens nowhere")
    }
}

/// Runs the cluster until it is told to stop.
///
/// # Errors
/// When it cannot start.
pub(crate) async fn run(settings: Settings) -> anyhow::Result<ExitCode> {
    let mut signals = StopSignals::catch().context("cannot catch signals")?;
    open_files::raise(settings.connections_max.count().saturating_add(settings.logins_max.count()));
    let tls = settings.tls().map(Tls::open).transpose()?.map(Arc::new);
    let bound = addresses::bind(settings.port.0).await?;
    if settings.store.is_etcd() {
        anyhow::bail!("the quickstart is one process: it keeps its catalog in redb or in memory");
    }
    let store = storage::open(&settings).await?.store;
    let before = kept(store.as_ref()).await?;
    let database = before.as_ref().map_or(&settings.database, |catalog| &catalog.database().name).clone();
    let named = (1_usize..).zip(bound).map(|(number, listeners)| {
        Ok(Seat { name: Name::parse(&format!("v_{database}_node{number:04}"))?, listeners })
    });
    let seats = named.collect::<anyhow::Result<Vec<_>>>()?;
    let first = first_password(&settings, store.as_ref()).await?;
    let consoles = open(&settings, store, &seats, first.as_ref(), tls.as_ref()).await?;
    let Some(console) = consoles.first().cloned() else { anyhow::bail!("there is no member") };
    match &before {
        None => console.run_script(&sample(&seats)?).await.context("cannot make the samples")?,
        Some(before) => addresses::follow(&console, before, &seats).await?,
    }
    if let Some(tls) = tls {
        tokio::spawn(certificates::watch(tls));
    }
    let mut orders = console.orders();
    let data_plane = DataPlane::start(&settings)?;
    tokio::spawn(health::look_after(Arc::downgrade(&console)));
    let mut places: Vec<Place> =
        consoles.into_iter().zip(seats).map(|(console, seat)| Place::new(console, seat, &data_plane)).collect();
    announce(&in_order(&places)).context("cannot write to standard output")?;
    advice::print(&console.catalog(), &places, &settings).context("cannot write to standard output")?;
    let signal = stopped(&mut signals, &console, &mut orders, &mut places).await;
    info!(asked_by = signal.map_or("SHUTDOWN", StopSignal::as_str), "stopping");
    let mut closing = Vec::new();
    for place in &mut places {
        closing.extend(place.halt("the process stops").await);
    }
    for sessions in closing {
        sessions.ended().await;
    }
    if let (StoreKind::Memory, Some(first)) = (&settings.store, first) {
        // The user it is for is forgotten with the catalog.
        first.remove();
    }
    Ok(ExitCode::SUCCESS)
}

/// The catalog as the last start left it, whoever made it.
async fn kept(store: &dyn Store) -> anyhow::Result<Option<Catalog>> {
    let Some(loaded) = store.load().await? else { return Ok(None) };
    let catalog = Catalog::from_entities(loaded.version, loaded.id_next, loaded.entities);
    Ok(Some(catalog.context("the store holds no database")?))
}

async fn open(
    settings: &Settings,
    store: Arc<dyn Store>,
    seats: &[Seat],
    first: Option<&FirstPassword>,
    tls: Option<&Arc<Tls>>,
) -> anyhow::Result<Vec<Arc<Console>>> {
    let mut consoles: Vec<Arc<Console>> = Vec::new();
    for seat in seats {
        let address = seat.address()?;
        let options = ConsoleOptions {
            database: settings.database.clone(),
            node_name: seat.name.clone(),
            advertise_host: address.ip().to_string(),
            advertise_port: address.port(),
            upstream: None,
            subcluster: None,
            password: first.map(|first| first.password.clone()),
            limits: settings.limits(),
            tls: tls.cloned(),
            proxy_networks: settings.proxy_networks.0.clone(),
            process_settings: settings.shown.clone(),
        };
        let opened = match consoles.first() {
            None => Console::open(Arc::clone(&store), options).await,
            Some(beside) => beside.open_beside(options).await,
        };
        consoles.push(opened.context("cannot open the catalog")?);
    }
    Ok(consoles)
}

/// The samples, with the members' names and ports.
fn sample(seats: &[Seat]) -> anyhow::Result<String> {
    let mut script = SAMPLE.to_owned();
    if seats.iter().all(|seat| seat.addresses().iter().any(SocketAddr::is_ipv6)) {
        script.push_str(SAMPLE_IPV6);
    }
    for (number, seat) in (1_usize..).zip(seats) {
        script = script
            .replace(&format!("{{node{number}}}"), &addresses::quoted(&seat.name))
            .replace(&format!("{{port{number}}}"), &seat.address()?.port().to_string());
    }
    Ok(script)
}

/// All addresses: the one that others are told of each member first.
fn in_order(places: &[Place]) -> Vec<SocketAddr> {
    let mut addresses: Vec<SocketAddr> = places.iter().flat_map(|place| place.addresses.clone()).collect();
    addresses.sort_by_key(|address| address.is_ipv6());
    addresses
}

/// Carries out orders until the process is to stop; the signal that says so, if one does.
async fn stopped(
    signals: &mut StopSignals,
    console: &Console,
    orders: &mut mpsc::Receiver<MemberOrder>,
    places: &mut [Place],
) -> Option<StopSignal> {
    loop {
        tokio::select! {
            signal = signals.next() => return Some(signal),
            () = console.shutdown_requested() => return None,
            Some(order) = orders.recv() => {
                let place = places.iter_mut().find(|place| place.member.console.node() == Some(order.node));
                let outcome = match place {
                    None => Err("there is no such member".to_owned()),
                    Some(place) if order.serve => place.start().await,
                    Some(place) => {
                        // Nobody waits for the sessions: whoever asked may have one of them.
                        drop(place.halt("stopped by a statement").await);
                        Ok(())
                    }
                };
                // Whoever asked may be gone.
                let _ = order.done.send(outcome);
            }
        }
    }
}

impl Place {
    /// Accepts from now on.
    fn new(console: Arc<Console>, seat: Seat, data_plane: &Arc<DataPlane>) -> Self {
        let (addresses, member) = (seat.addresses(), Member::new(console, Arc::clone(data_plane)));
        let sessions = Some(member.accept(seat.listeners));
        Self { name: seat.name, addresses, member, sessions }
    }

    /// Listens again.
    async fn start(&mut self) -> Result<(), String> {
        let listeners = listener::bind(&self.addresses).await.map_err(|error| format!("{error:#}"))?;
        self.sessions = Some(self.member.accept(listeners));
        self.member.console.serves(true, "started by a statement");
        info!(node = %self.name, "member started");
        Ok(())
    }

    /// Stops listening, and tells the sessions to end.
    async fn halt(&mut self, reason: &str) -> Option<Closing> {
        let sessions = self.sessions.take()?;
        self.member.console.serves(false, reason);
        let closing = sessions.halt(|| self.member.close_all()).await;
        warn!(node = %self.name, reason, "member stopped");
        Some(closing)
    }
}
