//! The catalog kept durable: memory and redb.
//!
//! A store keeps the newest catalog, entity by entity, and the history of commits, each with its deltas, so that any
//! older version can be put together by going backwards.

mod contract;
mod history;
mod memory;
mod redb_store;

pub use contract::{
    Commit, CommitError, Committed, HistoryEntry, Loaded, OpenError, Outcome, REFUSALS_MAX, Record, Retention, Store,
    StoreError,
};
pub use history::REFUSAL_BYTES_MAX;
pub use memory::MemoryStore;
pub use redb_store::RedbStore;
