//! A session whose client is served by somebody else, who asks for single answers.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::BytesMut;
use switchyard_engine::{ClientError, Warning};
use switchyard_session::{KeepAlive, Session as Place};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::line::{Ended, Line};
use super::portal::Stock;
use super::{HashMap, Served};
use crate::Console;
use crate::encoding::Encoding;
use crate::session::Session;

/// Keeps what is written, and gives nothing to read.
#[derive(Debug, Default)]
pub(crate) struct Kept(BytesMut);

impl AsyncRead for Kept {
    fn poll_read(self: Pin<&mut Self>, _cx: &mut Context<'_>, _buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

impl AsyncWrite for Kept {
    fn poll_write(mut self: Pin<&mut Self>, _cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Such a session.
pub(crate) struct Aside(Box<Served<Kept>>);

/// There is no socket whose peer could be asked for a sign of life.
fn leave_as_it_is(_: &Kept, _: Option<KeepAlive>) -> io::Result<()> {
    Ok(())
}

/// Opens one; the warnings are for the client.
///
/// # Errors
/// When the client can have no session.
pub(crate) fn aside(
    console: Arc<Console>,
    place: Place,
    parameters: &[(String, String)],
) -> Result<(Aside, Vec<Warning>), ClientError> {
    let entry = Arc::clone(place.entry());
    let counters = Arc::clone(&console.live.query_log.counters);
    let stock = Stock::of_session(&console.live.kept_bytes);
    let message_bytes_max = console.context.limits.message_bytes_max;
    let line =
        Line::new(Kept::default(), BytesMut::new(), Arc::clone(&entry), counters, message_bytes_max, leave_as_it_is);
    let (session, warnings) = Session::open(console, place, parameters)?;
    let (statements, portals) = (HashMap::new(), HashMap::new());
    // Settings are what the other server says: none are told here.
    let served = Served { line, session, vertica: None, entry, statements, portals, stock, skips: false };
    Ok((Aside(Box::new(served)), warnings))
}

impl Aside {
    pub(crate) fn session(&mut self) -> &mut Session {
        &mut self.0.session
    }

    pub(crate) fn session_ref(&self) -> &Session {
        &self.0.session
    }

    /// Texts are in this encoding from now on.
    pub(crate) fn speak(&mut self, encoding: &str) {
        self.0.line.speak(Encoding::named(encoding));
    }

    /// Answers one message: the bytes for the client, with ReadyForQuery where one is due.
    pub(crate) async fn answer(&mut self, kind: u8, body: &[u8]) -> Result<BytesMut, Ended> {
        self.0.message(kind, body).await?;
        self.0.line.flush().await?;
        Ok(std::mem::take(&mut self.0.line.stream().0))
    }

    /// The session is over.
    pub(crate) fn end(&mut self) {
        self.0.session.end();
    }
}
