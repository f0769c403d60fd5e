//! A client's byte stream: whole messages in, bytes out, never waiting longer than the session may live.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use switchyard_engine::{ClientError, IdleLimit, SqlState, Warning};
use switchyard_session::{KeepAlive, SessionEntry};
use switchyard_wire::{WireError, frame};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, Sleep, sleep, sleep_until, timeout};
use tracing::debug;

use crate::counters::Counters;
use crate::encoding::Encoding;
use crate::error::{idle, put_error, put_notice, terminated};

/// How much is read at once, in bytes.
const READ_BYTES: usize = 8 * 1024;

/// How much room a session keeps that waits for a message, in bytes.
const IDLE_BYTES: usize = 512;

/// How much is written before it is sent, in bytes.
const WRITE_BYTES: usize = 16 * 1024;

/// How much is read ahead while a statement runs, in bytes.
const AHEAD_BYTES_MAX: usize = 64 * 1024;

/// What is sent to find out whether a client that sends nothing more still listens: what it was told before, which asks
/// for no answer and may come between any two messages.
const PROBE: &[u8] = b"S\0\0\0\x23standard_conforming_strings\0on\0";

/// How long a statement runs before the first probe; each time it is twice as long to the next.
const PROBE_TIME: Duration = Duration::from_millis(500);

/// The longest time between two.
const PROBE_TIME_MAX: Duration = Duration::from_secs(8);

/// As good as for ever.
const FAR: Duration = Duration::from_secs(365 * 86_400);

/// How long a client that is sent away may take to read why.
const FAREWELL_TIME: Duration = Duration::from_secs(1);

/// Why there is nothing more to read or write.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Ended {
    /// The client has gone.
    #[error("the client closed the connection")]
    Closed,
    /// Somebody closed the session.
    #[error("the session was closed")]
    Terminated,
    /// The client was silent for too long.
    #[error("the client was silent for longer than {} ms, by {}", .0.0, .0.1.as_str())]
    Idle(IdleLimit),
    /// The client did not take what it was sent.
    #[error("the client took nothing of what it was sent for {0} ms, by GRACEPERIOD")]
    Blocked(u64),
    /// The connection broke.
    #[error("the connection broke")]
    Io(#[from] std::io::Error),
    /// What the client sends cannot be cut into messages.
    #[error(transparent)]
    Wire(#[from] WireError),
}

impl Ended {
    /// What the client is told, if it can be.
    pub(crate) fn told(&self) -> Option<ClientError> {
        match self {
            Self::Closed | Self::Io(_) | Self::Blocked(_) => None,
            Self::Idle(limit) => Some(idle(*limit)),
            Self::Terminated => Some(terminated()),
            Self::Wire(WireError::MessageLength { length, bytes_max, .. })
                if usize::try_from(*length).is_ok_and(|length| length >= *bytes_max) =>
            {
                let message = format!("message of {length} bytes is longer than {bytes_max} bytes");
                let error = ClientError::new(SqlState::ProgramLimitExceeded, message);
                let detail = format!("The limit \"message_bytes_max\" is {bytes_max}.");
                Some(error.with_detail(detail).with_hint("Split the statement.").fatal())
            }
            Self::Wire(error) => Some(ClientError::new(SqlState::ProtocolViolation, error.to_string()).fatal()),
        }
    }
}

/// Ready when a silence was too long; never, if it may last.
async fn over(silence: &mut Option<(Pin<Box<Sleep>>, IdleLimit)>) -> IdleLimit {
    match silence {
        Some((sleep, limit)) => {
            sleep.await;
            *limit
        }
        None => std::future::pending().await,
    }
}

/// Why a message could not be answered as it asks.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The client is told, and may go on.
    Told(Box<ClientError>),
    /// The session is over.
    Ended(Ended),
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        Self::Told(Box::new(error))
    }
}

impl From<Ended> for Failure {
    fn from(ended: Ended) -> Self {
        Self::Ended(ended)
    }
}

/// The stream of one session.
#[derive(Debug)]
pub(crate) struct Line<S> {
    stream: S,
    read: BytesMut,

    pub(crate) out: BytesMut,
    /// What the client's texts are in.
    pub(crate) encoding: Encoding,
    entry: Arc<SessionEntry>,
    counters: Arc<Counters>,
    message_bytes_max: usize,
    /// Most sessions are waited for as long as they like, and have nothing here.
    waiting: Option<Box<Waiting>>,
    keep_alive: KeepAliveBy<S>,
    /// Whether the client has said that it sends nothing more.
    half_closed: bool,
    /// What is left to send of a probe.
    probe_left: &'static [u8],
}

/// How a stream's socket is told to look whether the client is there; and when, if it is not the system's to say.
pub(crate) type KeepAliveBy<S> = fn(&S, Option<KeepAlive>) -> std::io::Result<()>;

/// How long a client is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Waits {
    /// For its next message.
    pub(crate) idle: Option<IdleLimit>,
    /// To take what it is sent, in milliseconds.
    pub(crate) grace_ms: Option<u64>,
    /// For a sign of its system's.
    pub(crate) keep_alive: KeepAlive,
}

/// How long the client is waited for, and has been.
#[derive(Debug)]
struct Waiting {
    waits: Waits,
    /// Since when nothing has come that was waited for.
    silent_since: Option<Instant>,
}

impl Waiting {
    /// Until when there may be silence, and by which limit. Whoever hears something else meanwhile does not wait anew.
    fn silent_until(&mut self) -> Option<(Instant, IdleLimit)> {
        let limit = self.waits.idle?;
        let since = *self.silent_since.get_or_insert_with(Instant::now);
        Some((since.checked_add(Duration::from_millis(limit.0)).unwrap_or_else(|| since + FAR), limit))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Line<S> {
    /// A stream of which `leftover` has been read already.
    pub(crate) fn new(
        stream: S,
        leftover: BytesMut,
        entry: Arc<SessionEntry>,
        counters: Arc<Counters>,
        message_bytes_max: usize,
        keep_alive: KeepAliveBy<S>,
    ) -> Self {
        let line = Self {
            stream,
            read: leftover,
            out: BytesMut::new(),
            encoding: Encoding::Utf8,
            entry,
            counters,
            message_bytes_max,
            waiting: None,
            keep_alive,
            half_closed: false,
            probe_left: &[],
        };
        line.probe(None);
        line
    }

    /// Waits so long from now on.
    pub(crate) fn wait_as(&mut self, waits: Waits) {
        let before = self.waiting.as_ref().map_or_else(Waits::default, |waiting| waiting.waits);
        if waits != before {
            if waits.keep_alive != before.keep_alive {
                self.probe(Some(waits.keep_alive));
            }
            let waiting = (waits != Waits::default()).then(|| Box::new(Waiting { waits, silent_since: None }));
            self.waiting = waiting;
        }
    }

    fn heard(&mut self) {
        if let Some(waiting) = &mut self.waiting {
            waiting.silent_since = None;
        }
    }

    fn probe(&self, keep_alive: Option<KeepAlive>) {
        if let Err(error) = (self.keep_alive)(&self.stream, keep_alive) {
            debug!(%error, session = self.entry.id, "when the connection is probed cannot be set");
        }
    }

    /// The next message: its type and its body.
    pub(crate) async fn message(&mut self) -> Result<(u8, BytesMut), Ended> {
        let entry = Arc::clone(&self.entry);
        loop {
            // The length is looked at before there is memory for it.
            if let Some(header) = frame(&self.read, self.message_bytes_max)?
                && header.body(&self.read).is_some()
            {
                self.heard();
                let mut message = self.read.split_to(header.len);
                return Ok((header.kind, message.split_off(switchyard_wire::FrameHeader::BYTES)));
            }
            // Most sessions are idle most of the time: they keep room for a header only.
            self.read.reserve(if self.read.is_empty() { IDLE_BYTES } else { READ_BYTES });
            let silence = self.waiting.as_mut().and_then(|waiting| waiting.silent_until());
            let mut silence = silence.map(|(until, limit)| (Box::pin(sleep_until(until)), limit));
            let count = tokio::select! {
                biased;
                () = entry.terminated() => return Err(Ended::Terminated),
                count = self.stream.read_buf(&mut self.read) => count?,
                limit = over(&mut silence) => return Err(Ended::Idle(limit)),
            };
            if count == 0 {
                return Err(Ended::Closed);
            }
            self.heard();
            self.counters.received(count);
        }
    }

    /// Ready when there is nobody to run a statement for any more. May be dropped at any time.
    pub(crate) async fn lost(&mut self) -> Ended {
        let entry = Arc::clone(&self.entry);
        tokio::select! {
            biased;
            () = entry.terminated() => Ended::Terminated,
            ended = self.gone() => ended,
        }
    }

    /// Ready when the client is gone; what it sends meanwhile is read ahead. Whoever has sent all that it wants to send
    /// may still listen: only a probe that finds nobody tells.
    pub(crate) async fn gone(&mut self) -> Ended {
        while !self.half_closed && self.read.len() < AHEAD_BYTES_MAX {
            self.read.reserve(if self.read.is_empty() { IDLE_BYTES } else { READ_BYTES });
            match self.stream.read_buf(&mut self.read).await {
                Ok(0) => self.half_closed = true,
                Ok(count) => {
                    self.heard();
                    self.counters.received(count);
                }
                Err(error) => return error.into(),
            }
        }
        let mut pause = PROBE_TIME;
        loop {
            sleep(pause).await;
            if let Err(error) = self.ask_whether_there().await {
                return error.into();
            }
            pause = PROBE_TIME_MAX.min(pause.saturating_mul(2));
        }
    }

    async fn ask_whether_there(&mut self) -> std::io::Result<()> {
        if self.probe_left.is_empty() {
            self.probe_left = PROBE;
        }
        while !self.probe_left.is_empty() {
            let count = self.stream.write(self.probe_left).await?;
            if count == 0 {
                return Err(std::io::ErrorKind::WriteZero.into());
            }
            self.counters.sent(count);
            self.probe_left = self.probe_left.get(count..).unwrap_or_default();
        }
        self.stream.flush().await
    }

    /// The stream.
    pub(crate) fn stream(&mut self) -> &mut S {
        &mut self.stream
    }

    /// Gives the memory of long messages back.
    pub(crate) fn rest(&mut self) {
        if self.read.is_empty() && self.read.capacity() > IDLE_BYTES {
            self.read = BytesMut::new();
        }
        if self.out.is_empty() && self.out.capacity() > IDLE_BYTES {
            self.out = BytesMut::new();
        }
    }

    /// Sends what there is, if it is much.
    pub(crate) async fn drain(&mut self) -> Result<(), Ended> {
        if self.out.len() < WRITE_BYTES { Ok(()) } else { self.flush().await }
    }

    /// Sends what there is. A client that does not read cannot keep its session from being closed.
    pub(crate) async fn flush(&mut self) -> Result<(), Ended> {
        let entry = Arc::clone(&self.entry);
        tokio::select! {
            biased;
            sent = self.send() => sent,
            () = entry.terminated() => Err(Ended::Terminated),
        }
    }

    /// Goes on in an encoding.
    pub(crate) fn speak(&mut self, encoding: Encoding) {
        self.encoding.rewrite_messages(&mut self.out);
        self.encoding = encoding;
    }

    async fn send(&mut self) -> Result<(), Ended> {
        self.encoding.rewrite_messages(&mut self.out);
        if !self.probe_left.is_empty() {
            // What was begun must end, or the rest cannot be read.
            let rest = std::mem::take(&mut self.out);
            self.out.extend_from_slice(self.probe_left);
            self.out.extend_from_slice(&rest);
            self.probe_left = &[];
        }
        self.counters.sent(self.out.len());
        let Some(grace_ms) = self.waiting.as_ref().and_then(|waiting| waiting.waits.grace_ms) else {
            self.stream.write_all_buf(&mut self.out).await?;
            return Ok(self.stream.flush().await?);
        };
        // Whoever takes something has time anew for the rest.
        let (grace, blocked) = (Duration::from_millis(grace_ms), |_| Ended::Blocked(grace_ms));
        while !self.out.is_empty() {
            if timeout(grace, self.stream.write_buf(&mut self.out)).await.map_err(blocked)?? == 0 {
                return Err(Ended::Closed);
            }
        }
        Ok(timeout(grace, self.stream.flush()).await.map_err(blocked)??)
    }

    /// Writes an error.
    pub(crate) fn error(&mut self, error: &ClientError) {
        put_error(&mut self.out, error, self.entry.vertica.is_some());
    }

    /// Tells the client why it is sent away, if it listens.
    pub(crate) async fn farewell(&mut self, error: &ClientError) {
        self.error(error);
        let said = async {
            self.send().await?;
            Ok::<_, Ended>(self.stream.shutdown().await?)
        };
        // The client may be gone already, or not read: there is nobody else to tell.
        let _ = timeout(FAREWELL_TIME, said).await;
    }

    pub(crate) fn notices(&mut self, warnings: &[Warning]) {
        for warning in warnings {
            put_notice(&mut self.out, warning, self.entry.vertica.is_some());
        }
    }
}
