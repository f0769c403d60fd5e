//! The question whether somebody may log in, and the catalog's answer.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use rand::CryptoRng;
use switchyard_catalog::{Authentication, AuthenticationClient, AuthenticationMethod, Catalog, User};
use switchyard_wire::verifier::MockSecret;

use crate::error::PasswordFailure;
use crate::routing::Destination;

/// Where a client is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    address: Option<SocketAddr>,
    /// Where it has called.
    local: Option<SocketAddr>,
}

impl Peer {
    /// A client at an address. An IPv4 address written as IPv6 is taken as what it is.
    pub fn tcp(address: SocketAddr) -> Self {
        Self { address: Some(canonical(address)), local: None }
    }

    /// The same client, which has called this address of ours.
    #[must_use]
    pub fn calling(self, local: SocketAddr) -> Self {
        Self { local: Some(canonical(local)), ..self }
    }

    /// Whether it has called this very address, as far as is known here: behind a translation of addresses it has not.
    pub(crate) fn called(self, destination: &Destination) -> bool {
        let ip = destination.host.parse::<IpAddr>();
        self.local.is_some_and(|local| Ok(local.ip()) == ip && local.port() == destination.port)
    }

    /// A client on a Unix socket.
    pub fn unix() -> Self {
        Self { address: None, local: None }
    }

    /// Its address, if it has one.
    pub fn address(self) -> Option<SocketAddr> {
        self.address
    }

    /// Where it has called, where that is known.
    pub fn local(self) -> Option<SocketAddr> {
        self.local
    }

    pub(crate) fn ip(self) -> Option<IpAddr> {
        self.address.map(|address| address.ip())
    }
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
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

impl LoginRequest<'_> {
    fn client(&self) -> AuthenticationClient {
        AuthenticationClient { local: self.peer.address.is_none(), address: self.peer.ip(), tls: self.tls }
    }
}

/// One proof to ask for.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// The proof.
    pub method: AuthenticationMethod,
    /// The record that asks for it; none when it is asked for in vain.
    pub record: Option<Arc<Authentication>>,
}

/// How somebody may log in.
#[derive(Debug, Clone)]
pub struct LoginDecision {
    /// The proofs to ask for, the next when the client cannot give the one before. None when no authentication record
    /// is for this login.
    pub attempts: Vec<Attempt>,
    /// The user; or why no password will do, which the client is not told.
    pub user: Result<Arc<User>, PasswordFailure>,
    /// How many clients the operator lets in, if there is such a limit.
    pub client_sessions_max: Option<usize>,
    /// Whether clients of Vertica may prove by MD5.
    pub md5: bool,
}

/// Decides a login.
pub type Authenticate = dyn Fn(&LoginRequest<'_>) -> LoginDecision + Send + Sync;

/// Decides a login by the authentication records of a catalog.
pub fn decide_login(catalog: &Catalog, request: &LoginRequest<'_>) -> LoginDecision {
    let decision = catalog.decide_authentication(request.client(), request.user);
    let attempts =
        decision.attempts().map(|record| Attempt { method: record.method, record: Some(Arc::clone(record)) });
    let mut attempts: Vec<_> = attempts.collect();
    let in_vain = decision.in_vain;
    let mut user = decision.user.ok_or(PasswordFailure::UserUnknown);
    if in_vain {
        attempts.push(Attempt { method: AuthenticationMethod::Hash, record: None });
        user = user.and(Err(PasswordFailure::RecordMissing));
    }
    LoginDecision { attempts, user, client_sessions_max: None, md5: false }
}

/// What unknown users are made to look like known ones with: from what the catalog keeps of the first superuser's
/// password, so that it outlives the process and all members have the same; by chance when there is none.
pub fn mock_secret(catalog: &Catalog, rng: &mut impl CryptoRng) -> MockSecret {
    let superusers = catalog.users().iter().filter(|user| user.superuser);
    match superusers.filter_map(|user| user.verifiers.as_ref()).next() {
        Some(verifiers) => MockSecret::derive(verifiers.scram.reveal().as_bytes()),
        None => MockSecret::random(rng),
    }
}

#[cfg(test)]
mod tests;
