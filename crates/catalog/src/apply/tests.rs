#![expect(clippy::unwrap_used, reason = "a test may")]

mod invariants;
pub(crate) mod random;
mod refusals;
mod rules;
pub(crate) mod sample;
