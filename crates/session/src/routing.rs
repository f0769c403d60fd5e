//! Where a connection goes: asked before anybody logs in.

use std::fmt;

use ipnet::IpNet;
use switchyard_catalog::{Name, Secret};

use crate::login::Peer;

/// Another member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// Its host, as clients are told.
    pub host: String,
    /// Its port, as clients are told.
    pub port: u16,
}

/// Where a connection is to be served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Balance {
    /// By this member: nothing says that another is better.
    Here,
    /// By this member, which was chosen; with the address it was chosen for.
    Chosen(Destination),
    /// By another one.
    Elsewhere {
        /// Where clients are told to go.
        told: Destination,
        /// Where members reach it.
        passed: Destination,
    },
}

/// Decides where a connection is to be served, once for each that asks; whether it can be told to go elsewhere, the
/// second argument says.
pub type Decide = dyn Fn(Peer, bool) -> Balance + Send + Sync;

/// What a member knows of its cluster before anybody logs in.
pub struct Routing {
    /// From where PROXY headers are believed.
    pub proxy_networks: Vec<IpNet>,
    /// What members prove to each other with; none when no member takes clients from another.
    pub member_secret: Box<dyn Fn() -> Option<Secret> + Send + Sync>,
    /// Decides.
    pub decide: Box<Decide>,
    /// This member's node, while it drains: only superusers still log in.
    pub draining: Box<dyn Fn() -> Option<Name> + Send + Sync>,
    /// This member's node and where another process is that has its name, while there is one: nobody logs in here.
    pub displaced: Box<dyn Fn() -> Option<(Name, String)> + Send + Sync>,
}

impl Default for Routing {
    /// Everything stays here, and nobody is believed.
    fn default() -> Self {
        Self {
            proxy_networks: Vec::new(),
            member_secret: Box::new(|| None),
            decide: Box::new(|_, _| Balance::Here),
            draining: Box::new(|| None),
            displaced: Box::new(|| None),
        }
    }
}

impl fmt::Debug for Routing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Routing").field("proxy_networks", &self.proxy_networks).finish_non_exhaustive()
    }
}

impl Routing {
    /// Whether what this peer says of a client is believed.
    pub(crate) fn trusts(&self, peer: Peer) -> bool {
        peer.ip().is_some_and(|ip| self.proxy_networks.iter().any(|network| network.contains(&ip)))
    }
}
