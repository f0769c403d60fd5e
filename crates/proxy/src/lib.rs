//! The data plane: connections to other servers, and the relay between a client and one.
//!
//! A client that is to be served by another member is passed on to it: [`Passage::open`] connects and introduces the
//! client, [`relay`] then moves bytes both ways, without looking at them, until one side ends. [`Relays`] knows who is
//! being relayed, so that requests to cancel find their way. On a [`Channel`] members ask each other.
//!
//! A client whose SQL runs on a PostgreSQL server is served by [`serve`]: it logs in there ([`Upstream::connect`]), and
//! moves the messages of both sides, on one of a few [`Threads`]. What is for the console is answered by an [`Own`].

mod channel;
mod data;
mod line;
mod passage;
mod pool;
mod probe;
mod relay;
mod relays;
mod threads;
mod upstream;

pub use channel::Channel;
pub use data::{DataClient, Own, Piece, Route, serve};
pub use line::Stream;
pub use passage::{Passage, PassageError, Target};
pub use pool::{Pool, PoolLimits};
pub use probe::{Probed, Prober};
pub use relay::{Moved, relay};
pub use relays::{Relay, RelayEntry, Relays};
pub use threads::Threads;
pub use upstream::{
    Proof, Server, ServerLogin, SslMode, Upstream, UpstreamError, UpstreamTlsError, UrlError, UrlLogin,
};
