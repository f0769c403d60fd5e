//! What every store promises, and what the file does besides.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed"
)]

#[path = "store/conformance.rs"]
mod conformance;
#[path = "store/file.rs"]
mod file;
#[expect(dead_code, reason = "shared with the tests of etcd")]
#[path = "etcd/server.rs"]
mod server;
#[path = "store/support.rs"]
mod support;
