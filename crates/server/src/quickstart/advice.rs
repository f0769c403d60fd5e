//! What the quickstart says when it is ready: what to try, as far as it is so in this catalog.

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr};

use switchyard_catalog::{
    AuthenticationClient, AuthenticationMethod, Catalog, NodeState, NodeStates, RoutingClient, RoutingView, Turn, Turns,
};
use switchyard_console::SUPERUSER;

use super::Place;
use crate::settings::{Settings, StoreKind};

/// Prints it.
///
/// # Errors
/// When nobody takes it.
pub(super) fn print(catalog: &Catalog, places: &[Place], settings: &Settings) -> io::Result<()> {
    let [first, second, third] = places else { return Ok(()) };
    let [port, second_port, third_port] =
        [first, second, third].map(|place| place.addresses.first().map_or(0, std::net::SocketAddr::port));
    let database = &catalog.database().name;
    let password = if is_trusted(catalog) {
        format!("{SUPERUSER} needs no password from this machine.")
    } else {
        format!("{SUPERUSER} logs in with its password.")
    };
    let mut output = io::stdout().lock();
    writeln!(
        output,
        "
Three members serve on 127.0.0.1, ports {port}, {second_port}, {third_port}. {password}

  psql -h 127.0.0.1 -p {port} -U {SUPERUSER} {database}  # talk to the first one
  SELECT node_name, node_state, subcluster_name FROM nodes;  -- who is there
  SELECT * FROM routing_rules;  -- where connections are sent
  SELECT DESCRIBE_LOAD_BALANCE_DECISION('127.0.0.1');  -- why
"
    )?;
    if is_balanced(catalog, places) {
        writeln!(
            output,
            "Connections that ask for it are balanced. psql's are passed on to the chosen member; run this a few times:
  PGOPTIONS='-c connection_load_balance=on' psql -h 127.0.0.1 -p {port} -U {SUPERUSER} {database} -c 'SELECT node_name FROM current_session'
Vertica's are redirected: vertica_python.connect(host='127.0.0.1', port={port}, user='{SUPERUSER}', tlsmode='disable', connection_load_balance=True)

  SELECT STOP_MEMBER('{name}');  -- see the others take over
  SELECT START_MEMBER('{name}');
",
            name = second.name,
        )?;
    } else {
        writeln!(
            output,
            "Nothing in this catalog sends connections from this machine to another member. Samples that do are made where there is
no catalog yet: start with another --data-dir to have them.
"
        )?;
    }
    let kept = match settings.store {
        StoreKind::Memory | StoreKind::Etcd(_) => "nothing keeps what was changed".to_owned(),
        StoreKind::Redb => format!("{} keeps what was changed", settings.data_dir.display()),
    };
    writeln!(output, "Ctrl-C stops all three; {kept}.")?;
    output.flush()
}

/// Whether the superuser gets in from this machine without showing anything.
fn is_trusted(catalog: &Catalog) -> bool {
    let client = AuthenticationClient { local: false, address: Some(Ipv4Addr::LOCALHOST.into()), tls: false };
    let decision = catalog.decide_authentication(client, SUPERUSER);
    decision.attempts().next().is_some_and(|record| record.method == AuthenticationMethod::Trust)
}

/// Whether clients from this machine that ask the first member may be sent to another one.
fn is_balanced(catalog: &Catalog, places: &[Place]) -> bool {
    let nodes: Vec<_> = places.iter().filter_map(|place| place.member.console.node()).collect();
    let states: NodeStates = nodes.iter().map(|node| (*node, NodeState::Up)).collect();
    let turns = Turns::default();
    let view = RoutingView { here: nodes.first().copied(), states: &states, turns: &turns };
    let client = RoutingClient { address: IpAddr::V4(Ipv4Addr::LOCALHOST), asks: true, can_be_redirected: true };
    let trace = catalog.decide_and_tell(&client, &view, Turn::Look, &mut rand::rng());
    let candidates = trace.stages.last().map_or(&[][..], |stage| &stage.available);
    trace.decision.target().is_some() && candidates.iter().any(|target| Some(target.node) != view.here)
}
