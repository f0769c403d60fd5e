//! Places that sessions take: a key in etcd for each, below its user's, under the lease of the member that serves it. So
//! they are counted exactly whoever asks at the same time, and those of a member that dies are free when its lease ends.

use std::sync::Arc;
use std::time::Duration;

use etcd_client::{Compare, CompareOp, GetOptions, PutOptions, Txn, TxnOp};
use tokio::sync::mpsc;
use tokio::time::sleep;
use tracing::debug;

use super::{Seat, Standing};
use crate::contract::StoreError;
use crate::etcd::{LinkError, keys_and_values};
use crate::etcd_store::nonce;

/// How many keys one transaction writes or deletes; etcd takes 128 operations.
const BATCH_MAX: usize = 100;
/// Between two attempts to give places back.
const RETRY_AFTER: Duration = Duration::from_millis(200);

/// The places of this process's sessions.
#[derive(Debug)]
pub struct Places {
    seat: Arc<Seat>,
    given_back: mpsc::UnboundedSender<String>,
    /// One after the other: what two of one process want they would only take from each other.
    claiming: tokio::sync::Mutex<()>,
}

/// A session's place; it is given back when this is dropped.
#[derive(Debug)]
pub struct Place {
    seat: Arc<Seat>,
    key: String,
    given_back: mpsc::UnboundedSender<String>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.seat.held().places.remove(&self.key);
        // Without the membership the lease ends, and the key with it.
        let _ = self.given_back.send(std::mem::take(&mut self.key));
    }
}

impl Places {
    pub(super) fn new(seat: &Arc<Seat>) -> (Self, mpsc::UnboundedReceiver<String>) {
        let (given_back, receiver) = mpsc::unbounded_channel();
        (Self { seat: Arc::clone(seat), given_back, claiming: tokio::sync::Mutex::default() }, receiver)
    }

    /// Whether etcd was last seen to be away: then it need not be asked.
    pub fn is_cut_off(&self) -> bool {
        self.seat.held().standing == Standing::CutOff
    }

    /// Takes a place of a user who may have so many; nothing when all are taken.
    ///
    /// # Errors
    /// When etcd does not say. Nothing is held then.
    pub async fn claim(&self, user: i64, most: usize) -> Result<Option<Place>, StoreError> {
        let _alone = self.claiming.lock().await;
        let place = self.place(user);
        let claimed = self.try_claim(&place, &self.family(user), most).await;
        let claimed = claimed.map_err(|error| self.seat.link.error("take a place in", error))?;
        Ok(claimed.then_some(place))
    }

    async fn try_claim(&self, place: &Place, family: &str, most: usize) -> Result<bool, LinkError> {
        let link = &self.seat.link;
        let options = GetOptions::new().with_prefix().with_keys_only();
        loop {
            let found = link
                .call(|client| {
                    let options = options.clone();
                    async move { keys_and_values(&client).get(family, Some(options)).await }
                })
                .await?;
            // An attempt whose answer got lost may have been successful.
            if found.kvs().iter().any(|found| found.key() == place.key.as_bytes()) {
                return Ok(true);
            }
            if found.kvs().len() >= most {
                return Ok(false);
            }
            let revision = found.header().map_or(0, |header| header.revision());
            let nobody_came = Compare::mod_revision(family, CompareOp::Less, revision.saturating_add(1)).with_prefix();
            let transaction = Txn::new().when([nobody_came]).and_then([self.put(&place.key)]);
            if link.transact(&transaction).await?.succeeded() {
                return Ok(true);
            }
        }
    }

    /// Takes places, however many are taken: of sessions that are there already, or that nobody could be asked about. While
    /// etcd is away they are only noted.
    pub async fn hold(&self, user: i64, count: usize) -> Vec<Place> {
        let places: Vec<Place> = (0..count).map(|_| self.place(user)).collect();
        let keys: Vec<String> = places.iter().map(|place| place.key.clone()).collect();
        if let Err(error) = self.seat.publish(&keys).await {
            debug!(error = %self.seat.link.describe("take places in", &error), "places are taken later");
            self.seat.held().places_lease = 0;
        }
        places
    }

    fn family(&self, user: i64) -> String {
        format!("{}connections/{user}/", self.seat.link.prefix())
    }

    fn place(&self, user: i64) -> Place {
        let key = format!("{}{}", self.family(user), nonce());
        self.seat.held().places.insert(key.clone());
        Place { seat: Arc::clone(&self.seat), key, given_back: self.given_back.clone() }
    }

    fn put(&self, key: &str) -> TxnOp {
        TxnOp::put(key, "", Some(PutOptions::new().with_lease(self.seat.held().lease)))
    }
}

impl Seat {
    /// Writes keys under the lease there is now.
    async fn publish(&self, keys: &[String]) -> Result<(), LinkError> {
        let lease = self.held().lease;
        for batch in keys.chunks(BATCH_MAX) {
            let puts = batch.iter().map(|key| TxnOp::put(key.as_str(), "", Some(PutOptions::new().with_lease(lease))));
            self.link.transact(&Txn::new().and_then(puts.collect::<Vec<_>>())).await?;
        }
        Ok(())
    }

    /// With a new lease all places are written anew. Those that are given back meanwhile are taken out again.
    pub(super) async fn publish_all(&self) -> Result<(), LinkError> {
        let (lease, keys) = {
            let held = self.held();
            if held.places_lease == held.lease {
                return Ok(());
            }
            (held.lease, held.places.iter().cloned().collect::<Vec<_>>())
        };
        self.publish(&keys).await?;
        let gone: Vec<String> = {
            let mut held = self.held();
            held.places_lease = lease;
            keys.into_iter().filter(|key| !held.places.contains(key)).collect()
        };
        self.delete(&gone).await
    }

    async fn delete(&self, keys: &[String]) -> Result<(), LinkError> {
        for batch in keys.chunks(BATCH_MAX) {
            let deletes: Vec<TxnOp> = batch.iter().map(|key| TxnOp::delete(key.as_str(), None)).collect();
            self.link.transact(&Txn::new().and_then(deletes)).await?;
        }
        Ok(())
    }

    /// Takes out what is given back, for as long as there is anybody who may give something back.
    pub(super) async fn take_back(&self, mut given_back: mpsc::UnboundedReceiver<String>) {
        let mut keys = Vec::new();
        while given_back.recv_many(&mut keys, BATCH_MAX).await > 0 {
            while let Err(error) = self.delete(&keys).await {
                debug!(error = %self.link.describe("give places back to", &error), "places are given back later");
                sleep(RETRY_AFTER).await;
            }
            keys.clear();
        }
    }
}
