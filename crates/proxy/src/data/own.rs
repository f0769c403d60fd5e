//! What a data session needs of the console of its node.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bytes::BytesMut;

use crate::upstream::{Server, ServerLogin};

/// A server on which a session is to run.
#[derive(Debug, Clone)]
pub struct Route {
    /// The node's number.
    pub node: u64,
    /// The node's name.
    pub name: String,
    /// The server.
    pub server: Server,
    /// The login there; the parameters of the startup packet are the session's to add.
    pub login: ServerLogin,
    /// Whether the login is what a user mapping says.
    pub mapped: bool,
}

/// Statements that stand together and have one answerer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Whether the console answers.
    pub ours: bool,
    /// The statements.
    pub text: String,
    /// What the server is told besides; nobody sees its answer.
    pub besides: Option<String>,
}

/// The console, as far as a data session needs it.
pub trait Own: Send + 'static {
    /// The number that is another than before when something may have changed that decides where the session runs.
    fn version(&self) -> Arc<AtomicU64>;

    /// Where the session is to run now: where it is, if that is as good as any other.
    ///
    /// # Errors
    /// When nobody can take it: the message that says so.
    fn route(&mut self, here: Option<u64>) -> Result<Route, BytesMut>;

    /// A node's server did not answer, for this reason, or has taken a login.
    fn seen(&mut self, node: u64, absent: Option<&str>);

    /// What the client is to be told, besides answers.
    fn notices(&mut self) -> BytesMut;

    /// Cuts a string of statements into what is ours and what is not; also the names with a point in them that are set.
    fn cut(&mut self, text: &str) -> (Vec<Piece>, Vec<String>);

    /// Answers a message with statements of ours.
    fn answer(&mut self, kind: u8, body: &[u8]) -> impl Future<Output = BytesMut> + Send;

    /// What statements of ours are told in a transaction that has failed.
    fn in_failed_transaction(&self) -> BytesMut;

    /// The client's texts are in this encoding from now on.
    fn speak(&mut self, encoding: &str);

    /// The database that the console is.
    fn console_database(&self) -> String;
}
