//! `switchyard quickstart`: a cluster of three members in one process, with samples, to try everything.

use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use switchyard_catalog::Name;
use switchyard_console::{Console, ConsoleOptions, MemberOrder};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tracing::{info, warn};

use crate::first_start::FirstPassword;
use crate::member::Member;
use crate::serve::{Sessions, announce, first_password};
use crate::settings::{Settings, StoreKind};
use crate::stopping::{StopSignal, StopSignals};
use crate::{listener, open_files, storage};

/// How many members there are.
const MEMBERS: u16 = 3;

/// What is made at the first start.
const SAMPLE: &str = include_str!("quickstart.sql");

/// One of the members, and whether it serves.
struct Place {
    name: Name,
    address: SocketAddr,
    member: Arc<Member>,
    sessions: Option<Sessions>,
}

/// Runs the cluster until it is told to stop.
///
/// # Errors
/// When it cannot start.
pub(crate) async fn run(settings: Settings) -> anyhow::Result<ExitCode> {
    let mut signals = StopSignals::catch().context("cannot catch signals")?;
    open_files::raise(settings.connections_max.count().saturating_add(settings.logins_max.count()));
    let mut listeners = listener::bind(&wanted(settings.port.0)).await?;
    let addresses: Vec<SocketAddr> = listeners.iter().map(|(address, _)| *address).collect();
    let store = storage::open(&settings)?;
    let first = first_password(&settings, store.as_ref()).await?;
    let consoles = open(&settings, store, &addresses, first.as_ref()).await?;
    let Some(console) = consoles.first().cloned() else { anyhow::bail!("there is no member") };
    if first.is_some() {
        let script = sample(&settings, &addresses)?;
        console.run_script(&script).await.context("cannot make the samples")?;
    }
    let mut orders = console.orders();
    let mut places = Vec::new();
    for (console, (address, listener)) in consoles.into_iter().zip(listeners.drain(..)) {
        let name = node_name(&settings, places.len())?;
        let member = Member::new(console);
        let sessions = Some(member.accept(vec![(address, listener)]));
        places.push(Place { name, address, member, sessions });
    }
    announce(&addresses).context("cannot write to standard output")?;
    advise(&settings, &places).context("cannot write to standard output")?;
    let signal = stopped(&mut signals, &console, &mut orders, &mut places).await;
    info!(asked_by = signal.map_or("SHUTDOWN", StopSignal::as_str), "stopping");
    for place in &mut places {
        place.halt("the process stops").await;
    }
    if let (StoreKind::Memory, Some(first)) = (settings.store, first) {
        // The user it is for is forgotten with the catalog.
        first.remove();
    }
    Ok(ExitCode::SUCCESS)
}

fn wanted(port: u64) -> Vec<SocketAddr> {
    let port = u16::try_from(port).unwrap_or_default();
    let of = |number| if port == 0 { 0 } else { port.saturating_add(number) };
    (0..MEMBERS).map(|number| (Ipv4Addr::LOCALHOST, of(number)).into()).collect()
}

fn node_name(settings: &Settings, place: usize) -> anyhow::Result<Name> {
    Ok(Name::parse(&format!("v_{}_node{:04}", settings.database, place.saturating_add(1)))?)
}

async fn open(
    settings: &Settings,
    store: Arc<dyn switchyard_store::Store>,
    addresses: &[SocketAddr],
    first: Option<&FirstPassword>,
) -> anyhow::Result<Vec<Arc<Console>>> {
    let mut consoles: Vec<Arc<Console>> = Vec::new();
    for (place, address) in addresses.iter().enumerate() {
        let options = ConsoleOptions {
            database: settings.database.clone(),
            node_name: node_name(settings, place)?,
            advertise_host: address.ip().to_string(),
            advertise_port: address.port(),
            upstream: None,
            subcluster: None,
            password: first.map(|first| first.password.clone()),
            limits: settings.limits(),
            tls: None,
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
fn sample(settings: &Settings, addresses: &[SocketAddr]) -> anyhow::Result<String> {
    let mut script = SAMPLE.to_owned();
    for (place, address) in addresses.iter().enumerate() {
        let number = place.saturating_add(1);
        script = script
            .replace(&format!("{{node{number}}}"), &node_name(settings, place)?.to_string())
            .replace(&format!("{{port{number}}}"), &address.port().to_string());
    }
    Ok(script)
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
                        place.halt("stopped by a statement").await;
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
    /// Listens again.
    async fn start(&mut self) -> Result<(), String> {
        let failed = |error: io::Error| format!("cannot listen on {}: {error}", self.address);
        let listener = TcpListener::bind(self.address).await.map_err(failed)?;
        self.sessions = Some(self.member.accept(vec![(self.address, listener)]));
        self.member.console.serves(true, "started by a statement");
        info!(node = %self.name, "member started");
        Ok(())
    }

    /// Stops listening, and ends the sessions.
    async fn halt(&mut self, reason: &str) {
        let Some(sessions) = self.sessions.take() else { return };
        self.member.console.serves(false, reason);
        sessions.halt(|| self.member.close_all()).await;
        warn!(node = %self.name, reason, "member stopped");
    }
}

/// What to try.
fn advise(settings: &Settings, places: &[Place]) -> io::Result<()> {
    let [first, second, third] = places else { return Ok(()) };
    let (port, database) = (first.address.port(), &settings.database);
    let mut output = io::stdout().lock();
    writeln!(
        output,
        "
Three members serve on 127.0.0.1, ports {port}, {}, {}. dbadmin needs no password from this machine.

  psql -h 127.0.0.1 -p {port} -U dbadmin {database}                        talk to the first one
  SELECT node_name, node_state, subcluster_name FROM nodes;       who is there
  SELECT * FROM routing_rules;                                    where connections are sent
  SELECT DESCRIBE_LOAD_BALANCE_DECISION('127.0.0.2');             why

Connections that ask for it are balanced. psql's are passed on to the chosen member; run this a few times:
  PGOPTIONS='-c connection_load_balance=on' psql -h 127.0.0.1 -p {port} -U dbadmin {database} -c 'SELECT node_name FROM current_session'
Vertica's are redirected: vertica_python.connect(host='127.0.0.1', port={port}, user='dbadmin', connection_load_balance=True)

  SELECT STOP_MEMBER('{}');                       see the others take over
  SELECT START_MEMBER('{}');

Ctrl-C stops all three; {} keeps what was changed.",
        second.address.port(),
        third.address.port(),
        second.name,
        second.name,
        settings.data_dir.display(),
    )?;
    output.flush()
}
