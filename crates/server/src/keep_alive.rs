//! When the system looks whether a silent client is still there.

use std::fs;
use std::io;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use switchyard_session::{KeepAlive, Secured};
use tokio::net::TcpStream;

/// Has the system look; when, it says itself unless it is told.
pub(crate) fn keep_alive(stream: &Secured<TcpStream>, settings: Option<KeepAlive>) -> io::Result<()> {
    let socket = SockRef::from(stream.socket());
    let Some(KeepAlive { idle_s, interval_s, probes }) = settings else { return socket.set_keepalive(true) };
    let seconds = |value: u32| Duration::from_secs(value.into());
    let mut wanted = TcpKeepalive::new();
    if let Some(idle_s) = or_systems(idle_s, "tcp_keepalive_time") {
        wanted = wanted.with_time(seconds(idle_s));
    }
    if let Some(interval_s) = or_systems(interval_s, "tcp_keepalive_intvl") {
        wanted = wanted.with_interval(seconds(interval_s));
    }
    if let Some(probes) = or_systems(probes, "tcp_keepalive_probes") {
        wanted = wanted.with_retries(probes);
    }
    socket.set_tcp_keepalive(&wanted)
}

/// 0 is what the system has: said out loud, since another value may have been set before.
fn or_systems(value: u32, name: &str) -> Option<u32> {
    if value > 0 {
        return Some(value);
    }
    fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).ok()?.trim().parse().ok()
}
