//! What every store promises, and what the file does besides.
#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that panics has failed")]

#[path = "store/conformance.rs"]
mod conformance;
#[path = "store/file.rs"]
mod file;
#[path = "store/support.rs"]
mod support;
