//! Who is being relayed, and to where.

use std::net::SocketAddr;
use std::sync::Arc;

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use rand::{CryptoRng, RngExt};
use subtle::ConstantTimeEq;
use switchyard_wire::CancelKey;
use tokio::sync::watch;

use crate::passage::{Target, cancel};

/// The clients of this member that another one serves.
#[derive(Debug, Default)]
pub struct Relays(DashMap<i32, Arc<RelayEntry>>);

/// A client that another member serves.
#[derive(Debug)]
pub struct RelayEntry {
    /// The process id that the client was given.
    pub process_id: i32,
    /// The key that belongs to it.
    pub secret: CancelKey,
    /// Where the client is; `None` on a Unix socket.
    pub client: Option<SocketAddr>,
    /// Who serves it.
    pub target: Target,
    end: watch::Sender<bool>,
}

/// A client's place among the relayed: it is given up when this is dropped.
#[derive(Debug)]
pub struct Relay {
    relays: Arc<Relays>,
    entry: Arc<RelayEntry>,
}

impl Relays {
    /// Takes a client in, and gives it a process id and a key of that many bytes.
    pub fn begin(
        self: &Arc<Self>,
        client: Option<SocketAddr>,
        target: Target,
        secret_bytes: usize,
        rng: &mut impl CryptoRng,
    ) -> Relay {
        let mut secret = vec![0; secret_bytes];
        rng.fill_bytes(&mut secret);
        loop {
            let process_id = rng.random_range(1..=i32::MAX);
            let Entry::Vacant(place) = self.0.entry(process_id) else { continue };
            let (secret, end) = (secret.into(), watch::Sender::new(false));
            let entry = Arc::new(RelayEntry { process_id, secret, client, target, end });
            place.insert(Arc::clone(&entry));
            return Relay { relays: Arc::clone(self), entry };
        }
    }

    /// Passes a request to cancel on to where the client is served; says whether there is such a client with this key.
    pub async fn cancel(&self, process_id: i32, secret: &CancelKey, ms_max: u64) -> bool {
        let entry = self.0.get(&process_id).map(|entry| Arc::clone(entry.value()));
        let Some(entry) = entry.filter(|entry| bool::from(entry.secret.ct_eq(secret))) else { return false };
        // Whoever asks is not told, whatever comes of it.
        let _ = cancel(&entry.target, process_id, secret, ms_max).await;
        true
    }

    /// All of them.
    pub fn entries(&self) -> Vec<Arc<RelayEntry>> {
        self.0.iter().map(|entry| Arc::clone(entry.value())).collect()
    }

    /// Ends every one.
    pub fn close_all(&self) {
        for entry in &self.0 {
            entry.end.send_replace(true);
        }
    }
}

impl Relay {
    /// What others see of it.
    pub fn entry(&self) -> &RelayEntry {
        &self.entry
    }

    /// Ready as soon as it has been closed from here.
    pub async fn closed(&self) {
        let mut end = self.entry.end.subscribe();
        // The sender lives as long as `self`: waiting cannot fail.
        let _ = end.wait_for(|&ended| ended).await;
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.relays.0.remove(&self.entry.process_id);
    }
}
