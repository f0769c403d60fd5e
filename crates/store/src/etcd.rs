//! How etcd is reached: several endpoints, one at a time, each call within a limit of time.

use std::error::Error as _;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use etcd_client::{Certificate, Client, ConnectOptions, Error, Identity, TlsOptions, Txn, TxnResponse};
use rand::RngExt;
use thiserror::Error;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::contract::StoreError;

/// How long a call may take at most, unless the options say otherwise.
pub const REQUEST_MS_MAX: u64 = 2_000;
/// Between two rounds through all endpoints.
const ROUND_PAUSE: Duration = Duration::from_millis(50);
/// etcd cuts off whoever pings more often than every 5 s.
const PING_EVERY: Duration = Duration::from_secs(6);
const PING_WAIT: Duration = Duration::from_secs(3);
/// No answer is longer: pages are cut by number, values by size.
const MESSAGE_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Where etcd is, who we are there, and which part of it is ours.
#[derive(Clone)]
pub struct EtcdOptions {
    /// `http://host:port` or, with TLS, `https://host:port`; one of them is enough to go on.
    pub endpoints: Vec<String>,
    /// What all keys of the cluster begin with, without the last slash. Clusters with different ones share an etcd.
    pub prefix: String,
    /// For `https`.
    pub tls: Option<EtcdTls>,
    /// User and password, where etcd asks for them.
    pub login: Option<(String, String)>,
    /// How long a call may take, all endpoints and attempts included; a commit makes at most three after it was staged.
    pub request_ms_max: u64,
    /// How long what a crash left staged is kept from being swept, in seconds; etcd does not go below 2.
    pub staging_s: u64,
}

impl EtcdOptions {
    /// Without TLS or login, and with usual limits.
    pub fn new(endpoints: Vec<String>, prefix: &str) -> Self {
        let prefix = prefix.to_owned();
        Self { endpoints, prefix, tls: None, login: None, request_ms_max: REQUEST_MS_MAX, staging_s: 10 }
    }
}

/// Never shows the password or the key.
impl fmt::Debug for EtcdOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdOptions")
            .field("endpoints", &self.endpoints)
            .field("prefix", &self.prefix)
            .field("tls", &self.tls.is_some())
            .field("login", &self.login.as_ref().map(|(user, _)| user))
            .field("request_ms_max", &self.request_ms_max)
            .finish_non_exhaustive()
    }
}

/// Certificates and keys, each as PEM.
#[derive(Clone)]
pub struct EtcdTls {
    /// Who signs etcd's certificate.
    pub authority: Vec<u8>,
    /// Our own certificate and its key, where etcd wants one.
    pub client: Option<(Vec<u8>, Vec<u8>)>,
    /// The name in etcd's certificate, where it is not the endpoint's host.
    pub server_name: Option<String>,
}

/// Options that cannot be used.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum EtcdOptionsError {
    /// Nothing to connect to.
    #[error("no etcd endpoint is given")]
    NoEndpoint,
    /// Not of the form that is known.
    #[error("etcd endpoint \"{endpoint}\" is not {scheme}://host:port")]
    Endpoint {
        /// As given.
        endpoint: String,
        /// `http`, or with TLS `https`.
        scheme: &'static str,
    },
    /// Keys could not be told from those of others.
    #[error(
        "etcd prefix \"{prefix}\" does not begin with a slash and go on with letters, digits, \"/\", \"_\", \"-\", \".\""
    )]
    Prefix {
        /// As given.
        prefix: String,
    },
    /// A limit of nothing.
    #[error("the limit of time for requests to etcd must be above 0")]
    NoTime,
}

/// A call that came to nothing.
#[derive(Debug, Error)]
pub(crate) enum LinkError {
    /// etcd answered: no.
    #[error("{error}")]
    Answered {
        /// What it said.
        error: Error,
        /// Whether it was the first attempt. Else one before it got no answer, and may have been successful.
        first: bool,
    },
    /// Nobody answered in time, and what was asked may have been done.
    #[error("no answer within {ms_max} ms")]
    Lost {
        ms_max: u64,
        #[source]
        last: Option<Error>,
    },
}

impl LinkError {
    /// Whether what was to be read is there no longer, as etcd has compacted it.
    pub(crate) fn is_compacted(&self) -> bool {
        matches!(self, Self::Answered { error: Error::GRpcStatus(status), .. } if status.message().contains("compacted"))
    }

    pub(crate) fn is_lost(&self) -> bool {
        matches!(self, Self::Lost { .. })
    }

    /// Whether what was asked may have been done in spite of it.
    pub(crate) fn may_be_done(&self) -> bool {
        !matches!(self, Self::Answered { first: true, .. })
    }

    /// What is wrong with an answer.
    pub(crate) fn nonsense(what: String) -> Self {
        Self::Answered { error: Error::Internal(what), first: true }
    }
}

/// The way to etcd, for all that one process does there.
#[derive(Clone)]
pub struct EtcdLink {
    shared: Arc<Shared>,
}

struct Shared {
    options: EtcdOptions,
    connect: ConnectOptions,
    current: Mutex<Current>,
}

/// The endpoint that answered last, and the client for it.
struct Current {
    index: usize,
    client: Option<Client>,
}

impl fmt::Debug for EtcdLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EtcdLink").field(&self.shared.options).finish()
    }
}

impl EtcdLink {
    /// Checks the options; nothing is sent yet.
    ///
    /// # Errors
    /// When they cannot be used.
    pub fn new(mut options: EtcdOptions) -> Result<Self, EtcdOptionsError> {
        check(&options)?;
        options.prefix.push('/');
        let mut connect = ConnectOptions::new()
            .with_require_leader(true)
            .with_auto_token_refresh(true)
            .with_keep_alive(PING_EVERY, PING_WAIT)
            .with_connect_timeout(Duration::from_millis(options.request_ms_max));
        if let Some((user, password)) = &options.login {
            connect = connect.with_user(user, password);
        }
        if let Some(EtcdTls { authority, client, server_name }) = &options.tls {
            let mut tls = TlsOptions::new().ca_certificate(Certificate::from_pem(authority));
            if let Some((certificate, key)) = client {
                tls = tls.identity(Identity::from_pem(certificate, key));
            }
            if let Some(name) = server_name {
                tls = tls.domain_name(name);
            }
            connect = connect.with_tls(tls);
        }
        // Not everybody begins with the first.
        let index = rand::rng().random_range(0..options.endpoints.len());
        let current = Mutex::new(Current { index, client: None });
        Ok(Self { shared: Arc::new(Shared { options, connect, current }) })
    }

    /// What all keys begin with, with a slash at the end.
    pub(crate) fn prefix(&self) -> &str {
        &self.shared.options.prefix
    }

    pub(crate) fn options(&self) -> &EtcdOptions {
        &self.shared.options
    }

    /// For messages: where it is.
    pub(crate) fn shown(&self) -> String {
        format!("etcd at {}", self.shared.options.endpoints.join(", "))
    }

    /// A client for the endpoint in use, and its number.
    pub(crate) async fn client(&self) -> Result<(usize, Client), Error> {
        let (index, known) = {
            let current = self.current();
            (current.index, current.client.clone())
        };
        if let Some(client) = known {
            return Ok((index, client));
        }
        let endpoints = &self.shared.options.endpoints;
        let Some(endpoint) = endpoints.get(index % endpoints.len().max(1)) else {
            return Err(Error::InvalidArgs("no endpoint".to_owned()));
        };
        let client = Client::connect([endpoint], Some(self.shared.connect.clone())).await?;
        let mut current = self.current();
        if current.index == index {
            current.client = Some(client.clone());
        }
        Ok((index, client))
    }

    /// Takes the next endpoint, unless somebody has done so since.
    pub(crate) fn give_up(&self, index: usize) {
        let mut current = self.current();
        if current.index == index {
            *current = Current { index: index.wrapping_add(1), client: None };
        }
    }

    fn current(&self) -> std::sync::MutexGuard<'_, Current> {
        self.shared.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a transaction done; it may be done twice, as with [`Self::call`].
    pub(crate) async fn transact(&self, transaction: &Txn) -> Result<TxnResponse, LinkError> {
        self.call(|client| {
            let transaction = transaction.clone();
            async move { keys_and_values(&client).txn(transaction).await }
        })
        .await
    }

    /// Calls until somebody answers or the time is over. What is called may thus be done twice.
    pub(crate) async fn call<T, F, Answer>(&self, call: F) -> Result<T, LinkError>
    where
        F: Fn(Client) -> Answer,
        Answer: Future<Output = Result<T, Error>>,
    {
        let EtcdOptions { request_ms_max: ms_max, endpoints, .. } = &self.shared.options;
        let deadline = Instant::now() + Duration::from_millis(*ms_max);
        // One that is frozen leaves time for another.
        let attempt = Duration::from_millis(*ms_max) / if endpoints.len() > 1 { 2 } else { 1 };
        let (mut last, mut first) = (None, true);
        loop {
            for _ in endpoints {
                let index = self.current().index;
                let answer = async {
                    let (_, client) = self.client().await?;
                    call(client).await
                };
                match timeout(attempt, timeout_at(deadline, answer)).await {
                    Ok(Ok(Ok(done))) => return Ok(done),
                    Ok(Ok(Err(error))) if is_answer(&error) => return Err(LinkError::Answered { error, first }),
                    Ok(Ok(Err(error))) => last = Some(error),
                    Ok(Err(_)) | Err(_) => {}
                }
                first = false;
                self.give_up(index);
                if Instant::now() >= deadline {
                    return Err(LinkError::Lost { ms_max: *ms_max, last });
                }
            }
            sleep(ROUND_PAUSE).await;
        }
    }

    /// An error as the store's users see it.
    pub(crate) fn describe(&self, doing: &str, error: &LinkError) -> String {
        let why = match error {
            LinkError::Answered { error: Error::GRpcStatus(status), .. } => status.message().to_owned(),
            LinkError::Lost { last: Some(last), .. } => format!("{error} ({})", root(last)),
            other => other.to_string(),
        };
        format!("cannot {doing} {}: {why}", self.shown())
    }

    pub(crate) fn error(&self, doing: &str, error: LinkError) -> StoreError {
        StoreError { what: self.describe(doing, &error), source: Some(Box::new(error)) }
    }
}

/// What is at the bottom of an error: the layers above it say "transport error" and the like.
fn root(error: &Error) -> String {
    let mut deepest: Option<&dyn std::error::Error> = match error {
        Error::GRpcStatus(status) => status.source(),
        Error::TransportError(error) => error.source(),
        _ => None,
    };
    while let Some(below) = deepest.and_then(std::error::Error::source) {
        deepest = Some(below);
    }
    deepest.map_or_else(|| error.to_string(), ToString::to_string)
}

/// Key-value calls whose answers may be long.
pub(crate) fn keys_and_values(client: &Client) -> etcd_client::KvClient {
    client.kv_client().max_decoding_message_size(MESSAGE_BYTES_MAX).max_encoding_message_size(MESSAGE_BYTES_MAX)
}

/// Watches whose messages may be long.
pub(crate) fn watches(client: &Client) -> etcd_client::WatchClient {
    client.watch_client().max_decoding_message_size(MESSAGE_BYTES_MAX)
}

fn check(options: &EtcdOptions) -> Result<(), EtcdOptionsError> {
    let scheme = if options.tls.is_some() { "https" } else { "http" };
    for endpoint in &options.endpoints {
        let host = endpoint.strip_prefix(scheme).and_then(|rest| rest.strip_prefix("://"));
        let port = host.and_then(|host| host.rsplit_once(':')).filter(|(host, _)| !host.is_empty());
        if port.is_none_or(|(_, port)| port.trim_end_matches('/').parse::<u16>().is_err()) {
            return Err(EtcdOptionsError::Endpoint { endpoint: endpoint.clone(), scheme });
        }
    }
    if options.endpoints.is_empty() {
        return Err(EtcdOptionsError::NoEndpoint);
    }
    let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '-' | '.');
    let path = options.prefix.strip_prefix('/').unwrap_or_default();
    if path.is_empty() || path.ends_with('/') || !path.chars().all(known) {
        return Err(EtcdOptionsError::Prefix { prefix: options.prefix.clone() });
    }
    if options.request_ms_max == 0 {
        return Err(EtcdOptionsError::NoTime);
    }
    Ok(())
}

/// Whether etcd has answered for good, so that neither another endpoint nor another attempt would help.
fn is_answer(error: &Error) -> bool {
    // gRPC's numbers: invalid argument, not found, already exists, permission denied, resource exhausted, failed
    // precondition, out of range.
    const FOR_GOOD: [i32; 7] = [3, 5, 6, 7, 8, 9, 11];
    match error {
        // Whoever has logged in before rights were changed must do so again.
        Error::GRpcStatus(status) if status.message().contains("revision of auth store is old") => false,
        Error::GRpcStatus(status) => FOR_GOOD.contains(&i32::from(status.code())),
        Error::TransportError(_) | Error::IoError(_) | Error::WatchError(_) => false,
        _ => true,
    }
}
