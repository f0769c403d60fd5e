//! Members of a cluster that tests start, and what is waited for at them.

use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use switchyard_testkit::{Client, Etcd, Server, ServerOptions};

/// How long anything may take that must happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
pub(crate) const NAMES: [&str; 3] = ["north", "east", "south"];

/// A member that does not wait for clients that are still there at the end of a test.
pub(crate) fn options(etcd: &Etcd, name: &str) -> ServerOptions {
    crate::options().member(etcd, name).argument("--drain-ms-max").argument("0")
}

/// Three members, started at the same time on an etcd that is empty.
pub(crate) fn three(etcd: &Etcd, with: impl Fn(ServerOptions) -> ServerOptions) -> Result<[Server; 3]> {
    let [first, second, third] = NAMES.map(|name| {
        let options = with(options(etcd, name));
        thread::spawn(move || options.start())
    });
    let started = |server: thread::JoinHandle<Result<Server>>| match server.join() {
        Ok(server) => server,
        Err(_) => bail!("a start panicked"),
    };
    Ok([started(first)?, started(second)?, started(third)?])
}

/// The first value that a query gives.
pub(crate) fn one(client: &mut Client, query: &str) -> Result<Option<String>> {
    Ok(client.query(query)?.into_iter().flatten().next().flatten())
}

/// Waits until a query gives this.
pub(crate) fn wait_for(client: &mut Client, query: &str, expected: &str) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let given = one(client, query)?.unwrap_or_default();
        if given == expected {
            return Ok(());
        }
        ensure!(Instant::now() < deadline, "{query} gives {given:?}, not {expected:?}");
    }
}

pub(crate) fn wait_for_state(client: &mut Client, node: &str, state: &str) -> Result<()> {
    wait_for(client, &format!("SELECT node_state FROM nodes WHERE node_name = '{node}'"), state)
}

/// Waits until a member shows all three as up.
pub(crate) fn wait_for_all(client: &mut Client) -> Result<()> {
    wait_for(client, "SELECT count(*)::varchar FROM nodes WHERE node_state = 'UP'", "3")
}

pub(crate) fn last_reason(client: &mut Client, node: &str) -> Result<String> {
    let query =
        format!("SELECT reason FROM node_states WHERE node_name = '{node}' ORDER BY event_timestamp DESC LIMIT 1");
    one(client, &query)?.context("no reason")
}

/// One of several.
pub(crate) fn nth<T>(all: &mut [T], number: usize) -> Result<&mut T> {
    all.get_mut(number).context("there are not so many")
}

/// A rule that sends everybody on this machine to these servers in turn.
pub(crate) fn balance(admin: &mut Client, servers: &[&Server]) -> Result<()> {
    let mut script = String::from("ALTER DATABASE DEFAULT SET allow_loopback_addresses = on;");
    for (server, name) in servers.iter().zip(NAMES) {
        script
            .push_str(&format!("CREATE NETWORK ADDRESS at_{name} ON {name} WITH '127.0.0.1' PORT {};", server.port()));
    }
    script.push_str("CREATE LOAD BALANCE GROUP everyone WITH ADDRESS at_north, at_east, at_south;");
    script.push_str("CREATE ROUTING RULE anybody ROUTE '0.0.0.0/0' TO everyone");
    admin.query(&script).map(drop)
}

/// Three members, each of which knows that all are up.
pub(crate) fn three_that_know_each_other(etcd: &Etcd) -> Result<[Server; 3]> {
    let servers = three(etcd, |options| options)?;
    for server in &servers {
        wait_for_all(&mut server.admin()?)?;
    }
    Ok(servers)
}

/// Three members on ports that stay theirs when they are started again.
pub(crate) fn on_fixed_ports(endpoints: &str, with: impl Fn(ServerOptions) -> ServerOptions) -> Result<Vec<Server>> {
    let start = |name| {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        with(crate::options().member_at(endpoints, name).port(port)).start()
    };
    NAMES.into_iter().map(start).collect()
}

/// Waits until something is so.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> Result<bool>) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while !is_so()? {
        ensure!(Instant::now() < deadline, "{what}");
    }
    Ok(())
}
