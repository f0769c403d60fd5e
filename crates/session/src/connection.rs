//! A byte stream with what was read from it and not yet used.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use rustls::ServerConfig;
use switchyard_wire::{
    FrameHeader, Proxied, Report, Untyped, WireError, frame, message, proxy_header, untyped, vertica,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::error::SessionError;
use crate::secured::{Rewound, Secured};
use crate::tls::{ALPN, TlsFacts};

/// How much is asked of the stream at once, in bytes. Startup packets are shorter.
const READ_BYTES: usize = 1024;
/// How long a client that is refused may take to read why and to go.
const FAREWELL_TIME: Duration = Duration::from_secs(1);
/// How many bytes of a client that is refused are read and thrown away.
const FAREWELL_BYTES_MAX: usize = 64 * 1024;

#[derive(Debug)]
pub(crate) struct Connection<S> {
    /// None while TLS begins, and when it could not.
    stream: Option<Secured<S>>,
    read: BytesMut,
    write: BytesMut,
    /// Whether the client speaks Vertica's protocol, as far as is known yet.
    vertica: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream: Some(Secured::Plain(stream)), read: BytesMut::new(), write: BytesMut::new(), vertica: false }
    }

    /// Begins TLS: with the bytes read already, which can be nothing else.
    pub(crate) async fn secure(&mut self, config: Arc<ServerConfig>) -> Result<TlsFacts, SessionError> {
        let Some(Secured::Plain(stream)) = self.stream.take() else { return Err(SessionError::Closed) };
        let stream = Rewound::new(self.read.split(), stream);
        let stream = TlsAcceptor::from(config).accept(stream).await.map_err(SessionError::Handshake)?;
        let facts = TlsFacts::of(stream.get_ref().1);
        self.stream = Some(Secured::Tls(Box::new(stream)));
        facts.map_err(SessionError::ClientCertificate)
    }

    /// Whether the client named PostgreSQL's protocol when TLS began.
    pub(crate) fn has_named_protocol(&self) -> bool {
        matches!(&self.stream, Some(Secured::Tls(stream)) if stream.get_ref().1.alpn_protocol() == Some(ALPN))
    }

    /// The next packet without a type byte, and its bytes.
    pub(crate) async fn untyped(&mut self, bytes_max: usize) -> Result<(Untyped, BytesMut), SessionError> {
        loop {
            if let Some((packet, len)) = untyped(&self.read, bytes_max)? {
                return Ok((packet, self.read.split_to(len)));
            }
            self.fill().await?;
        }
    }

    /// The header that a balancer sends first.
    pub(crate) async fn proxy_header(&mut self) -> Result<Proxied, SessionError> {
        loop {
            if let Some((proxied, len)) = proxy_header(&self.read)? {
                let _ = self.read.split_to(len);
                return Ok(proxied);
            }
            self.fill().await?;
        }
    }

    /// The next message of this type: its body.
    pub(crate) async fn message(&mut self, kind: u8, bytes_max: usize) -> Result<Bytes, SessionError> {
        loop {
            match self.read.first() {
                Some(b'X') => return Err(SessionError::Closed),
                Some(&other) if other != kind => return Err(SessionError::MessageUnexpected(other)),
                _ => {}
            }
            if let Some(header) = frame(&self.read, bytes_max)?
                && header.len <= self.read.len()
            {
                let message = self.read.split_to(header.len).freeze();
                return Ok(message.slice(FrameHeader::BYTES..));
            }
            self.fill().await?;
        }
    }

    /// What is to be written at the next [`Connection::flush`].
    pub(crate) fn out(&mut self) -> &mut BytesMut {
        &mut self.write
    }

    pub(crate) async fn flush(&mut self) -> Result<(), SessionError> {
        let stream = self.stream.as_mut().ok_or(SessionError::Closed)?;
        stream.write_all_buf(&mut self.write).await?;
        stream.flush().await?;
        Ok(())
    }

    /// The client speaks Vertica's protocol, and is told what goes wrong in it.
    pub(crate) fn speak_vertica(&mut self) {
        self.vertica = true;
    }

    /// Whether bytes are here that were not used yet.
    pub(crate) fn has_unread(&self) -> bool {
        !self.read.is_empty()
    }

    /// The stream, and the bytes read from it but not used; nothing when the stream is gone.
    pub(crate) fn into_parts(self) -> Option<(Secured<S>, BytesMut)> {
        Some((self.stream?, self.read))
    }

    /// Tells the client why it is refused, if that takes no waiting, and closes.
    pub(crate) async fn abandon(&mut self, report: Option<&Report>) {
        self.write_only(report);
        let _ = timeout(Duration::ZERO, self.flush()).await;
        self.stream = None;
    }

    fn write_only(&mut self, report: Option<&Report>) {
        self.write.clear();
        match report {
            Some(report) if self.vertica => vertica::error_response(&mut self.write, report),
            Some(report) => message::error_response(&mut self.write, report),
            None => {}
        }
    }

    /// Tells the client why it is refused and closes.
    pub(crate) async fn refuse(&mut self, report: Option<&Report>) {
        self.write_only(report);
        // The client may be gone, or never read: neither matters any more.
        let _ = timeout(FAREWELL_TIME, self.farewell()).await;
    }

    async fn farewell(&mut self) -> Result<(), SessionError> {
        self.flush().await?;
        self.stream.as_mut().ok_or(SessionError::Closed)?.shutdown().await?;
        // A socket that is closed with bytes unread is reset, and the client would not see the message.
        let mut left = FAREWELL_BYTES_MAX;
        while left > 0 {
            self.read.clear();
            let count = self.read_some().await?;
            left = if count == 0 { 0 } else { left.saturating_sub(count) };
        }
        Ok(())
    }

    async fn fill(&mut self) -> Result<(), SessionError> {
        match self.read_some().await? {
            0 if self.read.is_empty() => Err(SessionError::Closed),
            0 => Err(SessionError::Wire(WireError::Incomplete)),
            _ => Ok(()),
        }
    }

    async fn read_some(&mut self) -> Result<usize, SessionError> {
        self.read.reserve(READ_BYTES);
        let stream = self.stream.as_mut().ok_or(SessionError::Closed)?;
        Ok(stream.read_buf(&mut self.read).await?)
    }
}
