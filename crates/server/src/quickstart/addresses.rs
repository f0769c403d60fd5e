//! Where the members listen, and how their network addresses follow them there.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use anyhow::{Context, bail};
use switchyard_catalog::{Catalog, Host, Name, NetworkAddress};
use switchyard_console::Console;
use tokio::net::TcpListener;
use tracing::{info, warn};

use super::{MEMBERS, Seat};
use crate::listener;

/// How often a free port is looked for that is free by IPv6 too.
const ATTEMPTS_MAX: u32 = 100;

/// The listeners of all members, from this port on; of 0, where there is room.
///
/// # Errors
/// When a port is in use.
pub(super) async fn bind(port: u64) -> anyhow::Result<Vec<Vec<(SocketAddr, TcpListener)>>> {
    let port = u16::try_from(port).unwrap_or_default();
    let mut members = Vec::new();
    for number in 0..MEMBERS {
        members.push(bind_one(if port == 0 { 0 } else { port.saturating_add(number) }).await?);
    }
    Ok(members)
}

/// By IPv4, and at the same port by IPv6 where this machine has it.
async fn bind_one(port: u16) -> anyhow::Result<Vec<(SocketAddr, TcpListener)>> {
    for _ in 0..ATTEMPTS_MAX {
        let mut bound = listener::bind(&[(Ipv4Addr::LOCALHOST, port).into()]).await?;
        let Some(chosen) = bound.first().map(|(address, _)| address.port()) else { continue };
        let address = SocketAddr::from((Ipv6Addr::LOCALHOST, chosen));
        match TcpListener::bind(address).await {
            Ok(listener) => bound.push((address, listener)),
            Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
                info!(%error, "this machine has no IPv6: listening on IPv4 only");
            }
            // Another free one will do.
            Err(_) if port == 0 => continue,
            Err(error) => return Err(error).with_context(|| format!("cannot listen on {address}")),
        }
        return Ok(bound);
    }
    bail!("no port is free both by IPv4 and by IPv6")
}

/// Has the network addresses of members that are at other ports than they were follow them.
///
/// # Errors
/// When a member listens nowhere.
pub(super) async fn follow(console: &std::sync::Arc<Console>, before: &Catalog, seats: &[Seat]) -> anyhow::Result<()> {
    let mut script = String::new();
    for seat in seats {
        let port = seat.address()?.port();
        for address in left_behind(before, &seat.name, port) {
            let statement =
                format!("ALTER NETWORK ADDRESS {} SET TO '{}' PORT {port};", quoted(&address.name), address.host);
            info!(statement, "the member is at another port than at the last start");
            script.push_str(&statement);
        }
    }
    if !script.is_empty()
        && let Err(error) = console.run_script(&script).await
    {
        // The members serve all the same, and whoever forbade it may want it so.
        warn!(
            reason = error.message,
            "network addresses still name the ports of the last start, where nobody listens: alter or drop them"
        );
    }
    Ok(())
}

/// The addresses by which a member was called on this machine, where it is not any more.
fn left_behind<'a>(before: &'a Catalog, member: &Name, port: u16) -> Vec<&'a NetworkAddress> {
    let Some(node) = before.nodes().named(member).filter(|node| node.port != port) else { return Vec::new() };
    let own = |address: &NetworkAddress| {
        address.node == node.id
            && address.port == node.port
            && matches!(address.host, Host::Ip(ip) if ip.to_canonical().is_loopback())
    };
    before.network_addresses().iter().map(AsRef::as_ref).filter(|address| own(address)).collect()
}

/// A name as a statement has it.
pub(super) fn quoted(name: &Name) -> String {
    format!("\"{}\"", name.as_str().replace('"', "\"\""))
}
