//! The store and the members on real etcd servers, and what becomes of them when those fail.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed"
)]

#[path = "etcd/faults.rs"]
mod faults;
#[path = "etcd/members.rs"]
mod members;
#[path = "etcd/proxy.rs"]
mod proxy;
#[path = "etcd/server.rs"]
mod server;
#[path = "etcd/shared.rs"]
mod shared;
#[expect(dead_code, reason = "shared with the tests of all stores")]
#[path = "store/support.rs"]
mod support;
