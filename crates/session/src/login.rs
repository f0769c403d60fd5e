//! The question whether somebody may log in, and the catalog's answer.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use switchyard_catalog::{AuthenticationMethod, User};

/// Where a client is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    address: Option<SocketAddr>,
}

impl Peer {
    /// A client at an address. An IPv4 address written as IPv6 is taken as what it is.
    pub fn tcp(address: SocketAddr) -> Self {
        Self { address: Some(SocketAddr::new(address.ip().to_canonical(), address.port())) }
    }

    /// A client on a Unix socket.
    pub fn unix() -> Self {
        Self { address: None }
    }

    /// Its address, if it has one.
    pub fn address(self) -> Option<SocketAddr> {
        self.address
    }

    /// Whether it is on this machine: a Unix socket or loopback.
    pub fn is_local(self) -> bool {
        self.address.is_none_or(|address| address.ip().is_loopback())
    }

    pub(crate) fn ip(self) -> Option<IpAddr> {
        self.address.map(|address| address.ip())
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            Some(address) => address.fmt(f),
            None => f.write_str("[local]"),
        }
    }
}

/// Who wants to log in, and from where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoginRequest<'a> {
    /// The user named at startup.
    pub user: &'a str,
    /// Where the client is.
    pub peer: Peer,
    /// Whether the connection is encrypted.
    pub tls: bool,
}

/// How somebody may log in.
#[derive(Debug, Clone)]
pub struct LoginDecision {
    /// The proof asked for; `None` when no authentication record is for this login.
    pub method: Option<AuthenticationMethod>,
    /// The user, if there is one of that name.
    pub user: Option<Arc<User>>,
}

/// Decides a login.
pub type Authenticate = dyn Fn(&LoginRequest<'_>) -> LoginDecision + Send + Sync;
