//! Stores and other processes.
fn main() {}
