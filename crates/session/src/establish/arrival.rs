//! What comes before a startup packet, and what is known when it is there.

use std::sync::Arc;

use bytes::{BufMut, Bytes};
use rand::Rng;
use switchyard_wire::member::{self, IntroducedCertificate, IntroducedTls, Introduction, Nonces};
use switchyard_wire::message::{ENCRYPTION_REFUSED, TLS_ACCEPTED};
use switchyard_wire::vertica::load_balance;
use switchyard_wire::{CancelKey, Certificate, Proxied, Startup, Untyped, Version, WireError, options};
use tokio::io::{AsyncRead, AsyncWrite};

use super::Context;
use crate::connection::Connection;
use crate::error::SessionError;
use crate::login::Peer;
use crate::routing::{Balance, Destination};
use crate::tls::TlsFacts;

/// The highest minor version of the protocol that is Vertica's (`reference/vertica-wire.md` §6).
const VERTICA_MINOR_MAX: u16 = 99;
/// The setting by which a client asks to be balanced whose protocol has no packet for that.
const LOAD_BALANCE_SETTING: &str = "connection_load_balance";

/// What a connection is for.
pub(super) enum First {
    Cancel { process_id: i32, secret: CancelKey },
    Channel(Nonces),
    Startup(Box<Arrival>),
}

/// A client that has said how its session shall begin.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) startup: Startup,
    /// The packet as it came.
    packet: Bytes,
    /// Where the client is: as others that are believed say, when it came through them.
    pub(super) peer: Peer,
    pub(super) channel: Option<TlsChannel>,
    /// What the member gave it that it came through.
    pub(super) given: Option<(i32, CancelKey)>,
    /// Whether it was told that it stays, while it is another member that serves it.
    destination: Option<Destination>,
    /// Whether it has asked already.
    balanced: bool,
    /// Whether it asked so that it must be a client of Vertica.
    pub(super) asked_vertica: bool,
}

/// The TLS a client speaks through.
#[derive(Debug)]
pub(super) struct TlsChannel {
    pub(super) facts: TlsFacts,
    /// What a proof may be bound to: of the certificate in force when TLS began.
    pub(super) end_point: Option<Vec<u8>>,
}

/// What has come so far.
struct Before {
    asked: Vec<&'static str>,
    /// Whether a balancer has said who the client is.
    proxied: bool,
    peer: Peer,
    channel: Option<TlsChannel>,
    given: Option<(i32, CancelKey)>,
    nonces: Option<Nonces>,
    destination: Option<Destination>,
}

impl Before {
    fn new(peer: Peer) -> Self {
        let (asked, proxied, channel, given) = (Vec::new(), false, None, None);
        Self { asked, proxied, peer, channel, given, nonces: None, destination: None }
    }

    /// Each request may come once.
    fn ask(&mut self, request: &'static str) -> Result<(), SessionError> {
        if self.asked.contains(&request) {
            return Err(SessionError::RequestRepeated(request));
        }
        self.asked.push(request);
        Ok(())
    }
}

/// Answers requests until the client says what it is here for. `peer` becomes where the client is, as soon as somebody
/// who is believed says so.
pub(super) async fn first_packet<S>(
    connection: &mut Connection<S>,
    peer: &mut Peer,
    context: &Context,
) -> Result<First, SessionError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut before = Before::new(*peer);
    loop {
        *peer = before.peer;
        let (packet, bytes) = match connection.untyped(context.limits.startup_bytes_max).await {
            // TLS without having asked for it: only as the very first thing.
            Err(SessionError::Wire(WireError::DirectTls)) if before.asked.is_empty() && context.tls.is_some() => {
                before.ask("SSL")?;
                before.channel = begin_tls(connection, context).await?;
                if !connection.has_named_protocol() {
                    return Err(SessionError::ProtocolUnnamed);
                }
                continue;
            }
            Err(SessionError::Wire(WireError::ProxyHeader))
                if before.proxied || context.routing.trusts(before.peer) =>
            {
                if before.proxied || !before.asked.is_empty() {
                    return Err(WireError::ProxyHeaderLate.into());
                }
                before.proxied = true;
                if let Proxied::Client(client) = connection.proxy_header().await? {
                    before.peer = Peer::tcp(client);
                }
                continue;
            }
            packet => packet?,
        };
        match packet {
            Untyped::CancelRequest { process_id, secret } => return Ok(First::Cancel { process_id, secret }),
            Untyped::Startup(startup) => {
                let Before { asked, peer, channel, given, destination, .. } = before;
                let balanced = asked.contains(&LOAD_BALANCE);
                let packet = bytes.freeze();
                let asked_vertica = balanced;
                let arrival = Arrival { startup, packet, peer, channel, given, destination, balanced, asked_vertica };
                return Ok(First::Startup(Box::new(arrival)));
            }
            Untyped::MemberHello(hello) => welcome(connection, &mut before, hello, context).await?,
            Untyped::MemberIntroduction(body) => introduce(&mut before, &body, context)?,
            Untyped::MemberChannel(body) => return channel(&mut before, &body, context).map(First::Channel),
            Untyped::LoadBalanceRequest => balance(connection, &mut before, context).await?,
            Untyped::SslRequest if context.tls.is_some() && before.given.is_none() => {
                answer(connection, &mut before, "SSL", TLS_ACCEPTED).await?;
                before.channel = begin_tls(connection, context).await?;
            }
            Untyped::SslRequest => answer(connection, &mut before, "SSL", ENCRYPTION_REFUSED).await?,
            Untyped::GssEncRequest => answer(connection, &mut before, "GSSAPI encryption", ENCRYPTION_REFUSED).await?,
        }
    }
}

const LOAD_BALANCE: &str = "load balance";

/// Answers a request for encryption by one byte.
async fn answer<S>(
    connection: &mut Connection<S>,
    before: &mut Before,
    request: &'static str,
    answer: u8,
) -> Result<(), SessionError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    before.ask(request)?;
    // What comes behind a request for encryption is not encrypted, and may be from somebody on the way.
    if connection.has_unread() {
        return Err(SessionError::BytesAfterRequest(request));
    }
    connection.out().put_u8(answer);
    connection.flush().await
}

/// Tells a Vertica client whether another member is to serve it, in one write: some read the answer by single bytes
/// and do not wait for the rest (`reference/vertica-wire.md` §1.2).
async fn balance<S>(connection: &mut Connection<S>, before: &mut Before, context: &Context) -> Result<(), SessionError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    connection.speak_vertica();
    before.ask(LOAD_BALANCE)?;
    let told = match (context.routing.decide)(before.peer, true) {
        // Whoever hears the address that it has called stays without a word; any other would make it call again.
        Balance::Chosen(own) => Some(own).filter(|own| before.peer.called(own)),
        // Go's driver cannot call an IPv6 address, and says nothing: such clients are passed on instead (§7.3).
        Balance::Elsewhere { told, passed } if told.host.contains(':') => {
            before.destination = Some(passed);
            None
        }
        Balance::Elsewhere { told, .. } => Some(told),
        Balance::Here => None,
    };
    load_balance(connection.out(), told.as_ref().map(|told| (told.host.as_str(), told.port)));
    connection.flush().await
}

/// Another member has a client: it is told that this is one of its cluster.
async fn welcome<S>(
    connection: &mut Connection<S>,
    before: &mut Before,
    hello: member::Nonce,
    context: &Context,
) -> Result<(), SessionError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    // Only as the very first thing: whoever says it is no client.
    if !before.asked.is_empty() {
        return Err(WireError::MemberProof.into());
    }
    before.ask("member")?;
    let secret = (context.routing.member_secret)().ok_or(WireError::MemberProof)?;
    let mut nonces = Nonces { hello, welcome: [0; 32] };
    rand::rng().fill_bytes(&mut nonces.welcome);
    member::welcome(connection.out(), secret.reveal().as_bytes(), &nonces);
    connection.flush().await?;
    before.nonces = Some(nonces);
    Ok(())
}

/// The other member says who its client is.
fn introduce(before: &mut Before, body: &[u8], context: &Context) -> Result<(), SessionError> {
    let nonces = before.nonces.take().ok_or(WireError::MemberProof)?;
    let secret = (context.routing.member_secret)().ok_or(WireError::MemberProof)?;
    let introduction = member::introduced(secret.reveal().as_bytes(), &nonces, body)?;
    let Introduction { client, process_id, secret, tls } = introduction;
    before.peer = client.map_or_else(Peer::unix, Peer::tcp);
    before.channel = tls.map(TlsChannel::introduced);
    before.given = Some((process_id, secret));
    Ok(())
}

/// The other member has questions.
fn channel(before: &mut Before, body: &[u8], context: &Context) -> Result<Nonces, SessionError> {
    let nonces = before.nonces.take().ok_or(WireError::MemberProof)?;
    let secret = (context.routing.member_secret)().ok_or(WireError::MemberProof)?;
    if !member::channel_opened(secret.reveal().as_bytes(), &nonces, body) {
        return Err(WireError::MemberProof.into());
    }
    Ok(nonces)
}

async fn begin_tls<S>(connection: &mut Connection<S>, context: &Context) -> Result<Option<TlsChannel>, SessionError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let Some(tls) = &context.tls else { return Ok(None) };
    // What is in force now: a new certificate is for new connections.
    let loaded = tls.loaded();
    let facts = connection.secure(Arc::clone(&loaded.config)).await?;
    Ok(Some(TlsChannel { facts, end_point: loaded.certificate.end_point.clone() }))
}

impl TlsChannel {
    fn introduced(tls: IntroducedTls) -> Self {
        let IntroducedTls { version, cipher, end_point, certificate } = tls;
        let client = certificate.map(|certificate| {
            let IntroducedCertificate { serial, subject, issuer, not_before, not_after, identities } = certificate;
            Certificate { serial, subject, issuer, not_before, not_after, identities, end_point: None }
        });
        let end_point = Some(end_point).filter(|hash| !hash.is_empty());
        Self { facts: TlsFacts { version, cipher, client }, end_point }
    }

    fn introduction(&self) -> IntroducedTls {
        let TlsFacts { version, cipher, client } = self.facts.clone();
        let certificate = client.map(|certificate| {
            let Certificate { serial, subject, issuer, not_before, not_after, identities, .. } = certificate;
            IntroducedCertificate { serial, subject, issuer, not_before, not_after, identities }
        });
        IntroducedTls { version, cipher, end_point: self.end_point.clone().unwrap_or_default(), certificate }
    }
}

impl Arrival {
    /// The other member that is to serve this client, if any. A client that another member passed on stays, and so does
    /// one that has been asked about before: nobody is balanced twice.
    pub(super) fn destination(&mut self, context: &Context) -> Option<Destination> {
        if self.given.is_some() {
            return None;
        }
        if let Some(destination) = self.destination.take() {
            return Some(destination);
        }
        if self.balanced || !wants_balance(&self.startup) {
            return None;
        }
        self.balanced = true;
        match (context.routing.decide)(self.peer, false) {
            Balance::Here | Balance::Chosen(_) => None,
            Balance::Elsewhere { passed, .. } => Some(passed),
        }
    }

    /// What another member is told of this client.
    pub(super) fn introduction(&self, process_id: i32, secret: CancelKey) -> Introduction {
        let tls = self.channel.as_ref().map(TlsChannel::introduction);
        Introduction { client: self.peer.address(), process_id, secret, tls }
    }

    /// How many bytes the key for cancelling will have.
    pub(super) fn secret_bytes(&self) -> usize {
        // Vertica's clients name minor versions up to 99, and know keys of 4 bytes only.
        let minor = self.startup.version.minor;
        if minor == Version::V3_2.minor || minor > VERTICA_MINOR_MAX { 32 } else { 4 }
    }

    /// The startup packet as it came.
    pub(super) fn packet(&self) -> &Bytes {
        &self.packet
    }
}

/// Whether a client of a protocol that has no packet for it asks to be balanced.
fn wants_balance(startup: &Startup) -> bool {
    let in_options = || {
        let given = options::settings(startup.parameter("options")?).ok()?;
        given
            .into_iter()
            .rev()
            .find(|(name, _)| name.eq_ignore_ascii_case(LOAD_BALANCE_SETTING))
            .map(|(_, value)| value)
    };
    let value = startup.parameter(LOAD_BALANCE_SETTING).map(str::to_owned).or_else(in_options);
    value.is_some_and(|value| ["on", "true", "yes", "1", "t", "y"].iter().any(|on| on.eq_ignore_ascii_case(&value)))
}
