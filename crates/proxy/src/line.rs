//! A byte stream of a data session, to its client or to its server.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use switchyard_session::Secured;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// A byte stream.
#[derive(Debug)]
pub enum Stream {
    /// As it is.
    Plain(TcpStream),
    /// From a client that speaks TLS.
    OfClient(Box<Secured<TcpStream>>),
    /// To a server that speaks TLS.
    ToServer(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// Whether what is written goes out without being asked to.
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self, Self::Plain(_))
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::OfClient(stream) => Pin::new(stream.as_mut()).poll_read(cx, buf),
            Self::ToServer(stream) => Pin::new(stream.as_mut()).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::OfClient(stream) => Pin::new(stream.as_mut()).poll_write(cx, bytes),
            Self::ToServer(stream) => Pin::new(stream.as_mut()).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::OfClient(stream) => Pin::new(stream.as_mut()).poll_flush(cx),
            Self::ToServer(stream) => Pin::new(stream.as_mut()).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::OfClient(stream) => Pin::new(stream.as_mut()).poll_shutdown(cx),
            Self::ToServer(stream) => Pin::new(stream.as_mut()).poll_shutdown(cx),
        }
    }
}
