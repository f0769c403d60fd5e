//! The catalog kept durable and agreed on: memory, redb and etcd; and who is a member of the cluster.
//!
//! A store keeps the newest catalog, entity by entity, and the history of commits, each with its deltas, so that any
//! older version can be put together by going backwards.

mod contract;
mod etcd;
mod etcd_store;
mod history;
pub mod membership;
mod memory;
mod redb_store;

pub use contract::{
    Commit, CommitError, Committed, HistoryEntry, Loaded, NEWS_MAX, News, OpenError, Outcome, REFUSALS_MAX, Record,
    Retention, Store, StoreError,
};
pub use etcd::{EtcdLink, EtcdOptions, EtcdOptionsError, EtcdTls, REQUEST_MS_MAX};
pub use etcd_store::{EtcdState, EtcdStore};
pub use history::REFUSAL_BYTES_MAX;
pub use memory::MemoryStore;
pub use redb_store::RedbStore;
