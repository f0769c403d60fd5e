//! Vertica's protocol, seen from the server, where it differs from PostgreSQL's (`reference/vertica-wire.md`). What is
//! not here is the same in both: [`crate::message`], [`crate::answer`] and [`crate::frontend`] have it.

pub mod answer;
pub mod authentication;
pub mod frontend;
mod load_balance;
mod report;
pub mod startup;
mod types;
pub mod value;

pub use load_balance::{LOAD_BALANCE_HOST_BYTES_MAX, load_balance};
pub use report::{Fields, error_response, report};
pub use startup::Wishes;
pub use types::Type;
