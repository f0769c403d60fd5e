#![expect(clippy::unwrap_used, reason = "a test may")]

mod fleet;
mod lints;
mod oracle;
mod table;
mod turns;
