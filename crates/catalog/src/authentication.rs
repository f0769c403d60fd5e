//! Which authentication record decides how a client proves who it is (`design.md` §3 step 4).

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::net::IpAddr;
use std::sync::Arc;

use crate::catalog::Catalog;
use crate::entity::*;
use crate::id::*;
use crate::name::Name;

/// What a record may look at in a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuthenticationClient {
    /// Whether it came over the Unix socket; a client over loopback TCP did not.
    pub local: bool,
    /// Where it came from, if over TCP. IPv4-mapped IPv6 is taken as IPv4.
    pub address: Option<IpAddr>,
    /// Whether TLS is on.
    pub tls: bool,
}

/// Why a record was chosen or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthenticationReason {
    /// It decides.
    Chosen,
    /// It would do, but another goes before it.
    Outranked,
    /// It is granted neither to the user, nor to a role of his, nor to PUBLIC.
    NotGranted,
    /// It is for the other kind of socket, or another network.
    OtherAccess,
    /// It is for clients with TLS, or for those without.
    OtherTls,
    /// It is disabled.
    Disabled,
}

/// Which record decides, and why not another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthenticationDecision {
    /// The user, if there is one of that name.
    pub user: Option<Arc<User>>,
    /// The one that decides; without any the client is refused.
    pub record: Option<Arc<Authentication>>,
    /// No record decides, but one that asks for a password would if it were granted: a password is asked for in vain,
    /// so that nobody learns which users there are, and which of them are granted what.
    pub in_vain: bool,
    /// All: first those that match, in their order, then the rest.
    pub considered: Vec<(Arc<Authentication>, AuthenticationReason)>,
}

impl AuthenticationDecision {
    /// The records to try in turn: the one that decides, and as long as each says FALLTHROUGH, the next that matches.
    pub fn attempts(&self) -> impl Iterator<Item = &Arc<Authentication>> {
        let matching = self
            .considered
            .iter()
            .filter(|(_, reason)| matches!(reason, AuthenticationReason::Chosen | AuthenticationReason::Outranked));
        let mut more = true;
        matching.map(|(record, _)| record).take_while(move |record| std::mem::replace(&mut more, record.fallthrough))
    }
}

impl Catalog {
    /// Which record decides for a client that wants to be a user of this name: of those that are enabled, match the
    /// client and are granted to the user, to one of his roles (enabled or not) or to PUBLIC, the one of the greatest
    /// priority, then of the longest prefix, then the oldest. A user that does not exist has what everybody has.
    pub fn decide_authentication(&self, client: AuthenticationClient, user: &str) -> AuthenticationDecision {
        let user = Name::parse(user).ok().and_then(|name| self.users.named(&name)).cloned();
        let mut grantees: Vec<Grantee> = self.public_role().map(Grantee::Role).into_iter().collect();
        if let Some(user) = &user {
            grantees.push(Grantee::User(user.id));
            grantees.extend(self.granted_roles(user.id).into_keys().map(Grantee::Role));
        }
        let (mut matching, mut rest) = (Vec::new(), Vec::new());
        for record in self.authentications.iter() {
            match self.mismatch(record, client, &grantees) {
                None => matching.push(Arc::clone(record)),
                Some(reason) => rest.push((Arc::clone(record), reason)),
            }
        }
        matching.sort_by_key(|record| (Reverse(record.priority), Reverse(specificity(record)), record.id));
        let record = matching.first().cloned();
        let is_password_of_others = |(record, reason): &(Arc<Authentication>, AuthenticationReason)| {
            *reason == AuthenticationReason::NotGranted && record.method == AuthenticationMethod::Hash
        };
        let in_vain = record.is_none() && rest.iter().any(is_password_of_others);
        let reasons =
            std::iter::once(AuthenticationReason::Chosen).chain(std::iter::repeat(AuthenticationReason::Outranked));
        let considered = matching.into_iter().zip(reasons).chain(rest).collect();
        AuthenticationDecision { user, record, in_vain, considered }
    }

    /// Whether any client at all could log in as a user: one such as a record is for gets to a method other than
    /// reject.
    pub fn can_log_in(&self, user: &str) -> bool {
        let clients = self.authentications.iter().flat_map(|record| {
            let (local, address) = match &record.access {
                AuthenticationAccess::Local => (true, None),
                AuthenticationAccess::Host { network, .. } => (false, Some(network.net.addr())),
            };
            [false, true].map(|tls| AuthenticationClient { local, address, tls })
        });
        clients.into_iter().any(|client| self.lets_in(client, user))
    }

    /// Whether this client could log in as a user, if it proves who it is.
    pub fn lets_in(&self, client: AuthenticationClient, user: &str) -> bool {
        let decision = self.decide_authentication(client, user);
        decision.attempts().any(|record| record.method != AuthenticationMethod::Reject)
    }

    fn mismatch(
        &self,
        record: &Authentication,
        client: AuthenticationClient,
        grantees: &[Grantee],
    ) -> Option<AuthenticationReason> {
        if !record.enabled {
            return Some(AuthenticationReason::Disabled);
        }
        match &record.access {
            AuthenticationAccess::Local if !client.local => return Some(AuthenticationReason::OtherAccess),
            AuthenticationAccess::Local => {}
            AuthenticationAccess::Host { network, tls } => {
                let address = client.address.map(|address| address.to_canonical());
                if client.local || !address.is_some_and(|address| network.net.contains(&address)) {
                    return Some(AuthenticationReason::OtherAccess);
                }
                let suits = match tls {
                    TlsDemand::Any => true,
                    TlsDemand::Required => client.tls,
                    TlsDemand::Forbidden => !client.tls,
                };
                if !suits {
                    return Some(AuthenticationReason::OtherTls);
                }
            }
        }
        let granted = grantees.iter().any(|grantee| self.is_granted(*grantee, record.id));
        (!granted).then_some(AuthenticationReason::NotGranted)
    }

    fn is_granted(&self, grantee: Grantee, record: AuthenticationId) -> bool {
        self.authentication_grant(grantee, record).is_some()
    }
}

/// How narrow a record is: the length of its prefix.
fn specificity(record: &Authentication) -> u8 {
    match &record.access {
        AuthenticationAccess::Local => 0,
        AuthenticationAccess::Host { network, .. } => network.net.prefix_len(),
    }
}
