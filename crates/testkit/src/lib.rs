//! Real servers for tests: processes on free ports, clients that see every protocol field, files of SQL with answers.
//!
//! Nothing here links the engine: the tests speak to the binary the way an operator's tools do.

mod certificates;
mod client;
mod etcd;
mod network;
mod open_files;
mod postgres;
mod psql;
mod repository;
mod server;
pub mod slt;

pub use certificates::Authority;
pub use client::{
    Answer, Client, Column, LOAD_BALANCE_REQUEST, Login, Outcome, Protocol, Refused, Report, Send, call, told, told_by,
};
pub use etcd::Etcd;
pub use network::{Network, may_make_networks};
pub use open_files::raise_open_files;
pub use postgres::Postgres;
pub use psql::{Ran, psql, psql_with};
pub use repository::{files_under, repository_root, tracked_files};
pub use server::{ADMIN, ADMIN_PASSWORD, DATABASE, NODE, Server, ServerOptions, Store, binary_beside};
