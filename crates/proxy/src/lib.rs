//! The data plane: connections to other servers, and the relay between a client and one.
//!
//! A client that is to be served by another member is passed on to it: [`Passage::open`] connects and introduces the
//! client, [`relay`] then moves bytes both ways, without looking at them, until one side ends. [`Relays`] knows who is
//! being relayed, so that requests to cancel find their way. On a [`Channel`] members ask each other.

mod channel;
mod passage;
mod relay;
mod relays;

pub use channel::Channel;
pub use passage::{Passage, PassageError, Target};
pub use relay::{Moved, relay};
pub use relays::{Relay, RelayEntry, Relays};
