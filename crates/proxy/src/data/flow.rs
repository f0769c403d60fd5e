//! The two streams of a session, and where in their messages they are. Nothing is kept while they wait.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf, BufMut, BytesMut};
use switchyard_wire::{FrameHeader, frame, upstream as protocol};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::control::Shared;
use super::spot::{may_be_ours, may_last};
use crate::line::Stream;

/// How much is read at once, in bytes.
const READ_BYTES: usize = 64 * 1024;
/// The longest statement, and the longest message of the server besides rows, that is looked into. Longer ones are moved.
const LOOK_BYTES_MAX: usize = READ_BYTES;

thread_local! {
    /// What is read is moved at once, so that all sessions of a thread can share the room for it.
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_BYTES].into_boxed_slice());
}

/// The tags of statements that may leave something behind in the session.
const LASTING: [&[u8]; 18] = [
    b"SET",
    b"RESET",
    b"DISCARD ALL",
    b"DISCARD TEMP",
    b"PREPARE",
    b"DEALLOCATE",
    b"DEALLOCATE ALL",
    b"LISTEN",
    b"UNLISTEN",
    b"CREATE TABLE",
    b"CREATE VIEW",
    b"CREATE SEQUENCE",
    b"CREATE FUNCTION",
    b"CREATE TYPE",
    b"DO",
    b"CALL",
    b"DECLARE CURSOR",
    b"CLOSE CURSOR",
];

/// A message of so many bytes is looked at all the same where statements of ours are prepared.
const WATCHED_BYTES_MAX: usize = 16 << 20;

/// How many bytes of prepared statements are remembered.
const PREPARED_BYTES_MAX: usize = 256 * 1024;

/// Statements that a client has prepared by name, as it sent them.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    statements: BTreeMap<Vec<u8>, Vec<u8>>,
    bytes: usize,
    /// Whether there were more than are remembered.
    pub(crate) forgot: bool,
}

impl Prepared {
    /// Takes the body of a Parse in.
    fn add(&mut self, body: &[u8]) {
        let name = body.split(|byte| *byte == 0).next().unwrap_or_default();
        if name.is_empty() {
            return;
        }
        if self.bytes.saturating_add(body.len()) > PREPARED_BYTES_MAX {
            self.forgot = true;
            return;
        }
        self.bytes += body.len();
        if let Some(before) = self.statements.insert(name.to_vec(), body.to_vec()) {
            self.bytes -= before.len();
        }
    }

    /// Takes the body of a Close in.
    fn remove(&mut self, body: &[u8]) {
        let name = body.strip_prefix(b"S").and_then(|name| name.strip_suffix(b"\0"));
        if let Some(body) = name.and_then(|name| self.statements.remove(name)) {
            self.bytes -= body.len();
        }
    }

    /// The bodies of the messages.
    pub(crate) fn bodies(&self) -> impl Iterator<Item = &[u8]> {
        self.statements.values().map(Vec::as_slice)
    }
}

/// What the streams cannot settle by themselves.
#[derive(Debug)]
pub(crate) enum Event {
    /// The client has gone, or said goodbye.
    ClientGone,
    /// The server has gone.
    ServerGone(Option<io::Error>),
    /// The client's next message, the first of what is held, may be ours.
    Look,
    /// The client's next message begins a transaction, and the session may have to run elsewhere.
    Boundary,
    /// Everything that was asked for has been answered.
    Settled,
    /// The session has something new on its server that must outlive it.
    Dirty,
    /// The Sync has come up to which the client's messages were left out.
    SkipEnded,
    /// Somebody has ended the session.
    Terminated,
}

/// What of the server's answers the client is to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Shown {
    /// All of it.
    #[default]
    All,
    /// All but ReadyForQuery: more of the same string follows.
    NotReady,
    /// Nothing.
    Nothing,
}

/// Both streams.
#[derive(Debug)]
pub(crate) struct Flow {
    /// None when it has gone.
    client: Option<Stream>,
    /// None while there is no server.
    server: Option<Stream>,
    control: Arc<Shared>,
    registered: Option<Waker>,
    to_client: BytesMut,
    to_server: BytesMut,
    /// What the client sent and nobody has moved yet.
    pub(crate) held: BytesMut,
    /// The beginning of a message of the server.
    kept: BytesMut,
    /// How much is left of a message that is being moved, or left out.
    client_rest: usize,
    drops_rest: bool,
    server_rest: usize,
    /// How many ReadyForQuery are due.
    due: u32,
    /// What the last one said of the transaction.
    pub(crate) status: u8,
    /// Whether messages of the extended protocol came since the last Sync.
    pub(crate) batch: bool,
    /// Whether the last request was one of the extended protocol.
    extended: bool,
    /// Whether the client copies into the server.
    copies: bool,
    /// Whether the next message is to be moved without a look at it.
    pub(crate) passes: bool,
    /// Whether statements or portals of the client are ours, so that each message has to be looked at.
    pub(crate) watches: bool,
    /// Whether the client's messages are left out up to the next Sync.
    pub(crate) skips: bool,
    /// Rises when something may have changed that decides where the session runs; and what it was at the last look.
    newest: Arc<AtomicU64>,
    pub(crate) seen: u64,
    /// Whether the session is to run elsewhere as soon as it can.
    pub(crate) unsettled: bool,
    /// Whether the next message may begin a transaction all the same.
    pub(crate) admitted: bool,
    /// The settings the server has told of.
    pub(crate) news: Vec<(String, String)>,
    pub(crate) shown: Shown,
    /// Whether the server has told of an error since this was cleared.
    pub(crate) failed: bool,
    /// The rows of what is not shown.
    pub(crate) rows: Vec<Vec<Option<String>>>,
    /// Whether something was done since this was cleared that lasts beyond the transaction.
    pub(crate) dirty: bool,
    /// Whether the server has told of an error since it was ready last.
    pub(crate) mistaken: bool,
    /// Whether a statement that runs may do such a thing, though its tag will not say so.
    suspects: bool,
    /// The client's prepared statements, by name, as it sent them.
    pub(crate) prepared: Prepared,
    /// What that error said.
    pub(crate) error: Option<String>,
    /// What the server said before it went.
    pub(crate) last_words: Option<Vec<(u8, String)>>,
    needs_flush: bool,
    touched: bool,
    pub(crate) moved: (u64, u64),
}

/// How far a look at bytes went.
struct Looked {
    /// So many are to be moved.
    moves: usize,
    /// So many behind them are done with.
    drops: usize,
    event: Option<Event>,
}

impl Flow {
    pub(crate) fn new(client: Stream, held: BytesMut, control: Arc<Shared>, newest: Arc<AtomicU64>) -> Self {
        Self {
            client: Some(client),
            server: None,
            control,
            registered: None,
            to_client: BytesMut::new(),
            to_server: BytesMut::new(),
            held,
            kept: BytesMut::new(),
            client_rest: 0,
            drops_rest: false,
            server_rest: 0,
            due: 0,
            status: b'I',
            batch: false,
            extended: false,
            copies: false,
            passes: false,
            watches: false,
            skips: false,
            newest,
            seen: 0,
            unsettled: false,
            admitted: false,
            news: Vec::new(),
            shown: Shown::All,
            failed: false,
            dirty: false,
            mistaken: false,
            suspects: false,
            prepared: Prepared::default(),
            error: None,
            rows: Vec::new(),
            last_words: None,
            needs_flush: false,
            touched: false,
            moved: (0, 0),
        }
    }

    /// Has the session go on with this server, which waits for its first statement; gives the one before.
    pub(crate) fn put_server(&mut self, server: Option<Stream>) -> Option<Stream> {
        (self.kept, self.to_server) = (BytesMut::new(), BytesMut::new());
        (self.server_rest, self.due, self.status) = (0, 0, b'I');
        (self.batch, self.copies, self.last_words, self.touched) = (false, false, None, false);
        self.mistaken = false;
        std::mem::replace(&mut self.server, server)
    }

    pub(crate) fn has_server(&self) -> bool {
        self.server.is_some()
    }

    /// The number that rises, as it is now.
    pub(crate) fn newest(&self) -> u64 {
        self.newest.load(Ordering::Acquire)
    }

    /// Whether no statement runs and no transaction is open.
    pub(crate) fn is_at_boundary(&self) -> bool {
        self.due == 0 && !self.batch && self.status == b'I'
    }

    /// Whether the server owes nothing.
    pub(crate) fn is_settled(&self) -> bool {
        self.due == 0
    }

    /// How many ReadyForQuery the client waits for.
    pub(crate) fn due(&self) -> u32 {
        self.due
    }

    /// Whether the client copies into the server, or the server to it, after an Execute.
    pub(crate) fn is_copying(&self) -> bool {
        self.copies
    }

    /// What the server was asked for before is not forgotten with the server that was to take its place.
    pub(crate) fn touch(&mut self) {
        self.touched = true;
    }

    /// Whether the client has got half a message.
    pub(crate) fn is_within_message(&self) -> bool {
        self.server_rest > 0
    }

    /// What is sent to the client as soon as it reads.
    pub(crate) fn out(&mut self) -> &mut BytesMut {
        &mut self.to_client
    }

    /// Has the server do something besides: what is written makes it say so often that it is ready.
    pub(crate) fn ask(&mut self, ready: u32, write: impl FnOnce(&mut BytesMut)) {
        write(&mut self.to_server);
        self.touched = true;
        self.due = self.due.saturating_add(ready);
        self.extended = false;
    }

    /// Takes the client's next message, which has been received whole.
    pub(crate) fn take_message(&mut self) -> Option<(u8, BytesMut)> {
        let header = frame(&self.held, usize::MAX).ok().flatten().filter(|header| header.len <= self.held.len())?;
        let mut message = self.held.split_to(header.len);
        Some((header.kind, message.split_off(FrameHeader::BYTES)))
    }

    /// Leaves the client's next message out, however long it is.
    pub(crate) fn leave_out(&mut self) {
        let Some(header) = frame(&self.held, usize::MAX).ok().flatten() else { return };
        let here = header.len.min(self.held.len());
        self.held.advance(here);
        (self.client_rest, self.drops_rest) = (header.len - here, true);
    }

    /// The client's next message, which has been received whole.
    pub(crate) fn message(&self) -> Option<(u8, &[u8])> {
        let header = frame(&self.held, usize::MAX).ok().flatten()?;
        Some((header.kind, header.body(&self.held)?))
    }

    /// The client has gone: what is still said to it is left out.
    pub(crate) fn take_client(&mut self) -> Option<Stream> {
        self.to_client = BytesMut::new();
        self.client.take()
    }

    /// Whether the server has been asked for nothing.
    pub(crate) fn is_untouched(&self) -> bool {
        !self.touched
    }

    /// Moves what there is to move, until somebody else has to do something. The client's messages are left alone unless
    /// `reads` is set; then it is also said when the server has answered everything.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, reads: bool) -> Poll<Event> {
        if !self.registered.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            self.control.register(cx.waker());
            self.registered = Some(cx.waker().clone());
        }
        if self.control.is_terminated() {
            return Poll::Ready(Event::Terminated);
        }
        loop {
            let heard = match self.poll_server(cx) {
                Poll::Ready(Some(event)) => return Poll::Ready(event),
                heard => heard.is_ready(),
            };
            if !reads && self.due == 0 && self.to_client.is_empty() {
                return Poll::Ready(Event::Settled);
            }
            if reads && self.dirty && self.server.is_some() && self.is_at_boundary() {
                return Poll::Ready(Event::Dirty);
            }
            let from_client = if reads || self.copies {
                self.poll_client(cx)
            } else {
                self.send_to_server(cx).map(|sent| sent.err().map(|error| Event::ServerGone(Some(error))))
            };
            match from_client {
                Poll::Ready(Some(event)) => return Poll::Ready(event),
                _ if heard => {}
                Poll::Pending => return Poll::Pending,
                // Without reading there is nothing but answers to wait for.
                Poll::Ready(None) if !reads && !self.copies => return Poll::Pending,
                Poll::Ready(None) => {}
            }
        }
    }

    /// Sends what is left for the client; nothing is read.
    pub(crate) fn poll_out(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.send_to_client(cx)
    }

    fn send_to_client(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(client) = &mut self.client else {
            self.to_client.clear();
            return Poll::Ready(Ok(()));
        };
        while !self.to_client.is_empty() {
            let count = ready!(Pin::new(&mut *client).poll_write(cx, &self.to_client))?;
            self.to_client.advance(count);
            self.needs_flush = !client.is_plain();
        }
        if self.to_client.capacity() > 0 {
            self.to_client = BytesMut::new();
        }
        if self.needs_flush {
            ready!(Pin::new(client).poll_flush(cx))?;
            self.needs_flush = false;
        }
        Poll::Ready(Ok(()))
    }

    fn send_to_server(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(server) = &mut self.server else { return Poll::Ready(Ok(())) };
        if self.to_server.is_empty() {
            return if server.is_plain() { Poll::Ready(Ok(())) } else { Pin::new(server).poll_flush(cx) };
        }
        self.control.set_busy(true);
        while !self.to_server.is_empty() {
            let count = ready!(Pin::new(&mut *server).poll_write(cx, &self.to_server))?;
            self.to_server.advance(count);
        }
        self.to_server = BytesMut::new();
        Pin::new(server).poll_flush(cx)
    }

    /// One step of what comes from the server: `None` when something was moved.
    fn poll_server(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        // A client that does not read is waited for: nothing more is taken from the server.
        if ready!(self.send_to_client(cx)).is_err() {
            return Poll::Ready(Some(Event::ClientGone));
        }
        SCRATCH.with_borrow_mut(|scratch| {
            let Some(server) = &mut self.server else { return Poll::Pending };
            let mut buffer = ReadBuf::new(scratch);
            match ready!(Pin::new(server).poll_read(cx, &mut buffer)) {
                Err(error) => Poll::Ready(Some(Event::ServerGone(Some(error)))),
                Ok(()) if buffer.filled().is_empty() => Poll::Ready(Some(Event::ServerGone(None))),
                Ok(()) => Poll::Ready(self.heard_from_server(cx, buffer.filled())),
            }
        })
    }

    fn heard_from_server(&mut self, cx: &mut Context<'_>, read: &[u8]) -> Option<Event> {
        let moved = if self.kept.is_empty() {
            self.move_to_client(cx, read)
        } else {
            let mut kept = std::mem::take(&mut self.kept);
            kept.put_slice(read);
            self.move_to_client(cx, &kept)
        };
        moved.err().map(|_| Event::ClientGone)
    }

    /// Moves messages of the server, and keeps the beginning of one that has to be looked at.
    fn move_to_client(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> io::Result<()> {
        let mut done = 0;
        loop {
            let rest = bytes.get(done..).unwrap_or_default();
            let Looked { moves, drops, .. } = self.look_at_server(rest);
            self.write_to_client(cx, rest.get(..moves).unwrap_or_default())?;
            done += moves + drops;
            if moves + drops == 0 || done == bytes.len() {
                self.kept.put_slice(bytes.get(done..).unwrap_or_default());
                return Ok(());
            }
        }
    }

    /// Sends, and keeps what the client does not take at once.
    fn write_to_client(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> io::Result<()> {
        let Some(client) = self.client.as_mut().filter(|_| !bytes.is_empty() && self.shown != Shown::Nothing) else {
            return Ok(());
        };
        self.moved.1 = self.moved.1.saturating_add(u64::try_from(bytes.len()).unwrap_or_default());
        let mut rest = bytes;
        while !rest.is_empty() && self.to_client.is_empty() {
            match Pin::new(&mut *client).poll_write(cx, rest) {
                Poll::Ready(count) => rest = rest.get(count?..).unwrap_or_default(),
                Poll::Pending => break,
            }
        }
        self.to_client.put_slice(rest);
        self.needs_flush = !client.is_plain();
        Ok(())
    }

    /// Goes over messages of the server as far as they are all the client's to see.
    fn look_at_server(&mut self, bytes: &[u8]) -> Looked {
        let mut at = self.server_rest.min(bytes.len());
        self.server_rest -= at;
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            // What has no length that makes sense is the client's to be astonished at.
            let header = match frame(rest, usize::MAX) {
                Ok(Some(header)) => header,
                Ok(None) => return Looked { moves: at, drops: 0, event: None },
                Err(_) => return Looked { moves: bytes.len(), drops: 0, event: None },
            };
            let besides = self.shown == Shown::Nothing;
            let watched =
                matches!(header.kind, b'Z' | b'S' | b'E' | b'C') || (besides && matches!(header.kind, b'D' | b'A'));
            // However much it says, it is an error.
            self.failed |= header.kind == b'E';
            self.mistaken |= header.kind == b'E';
            if watched && header.len <= LOOK_BYTES_MAX {
                let Some(body) = header.body(rest) else { return Looked { moves: at, drops: 0, event: None } };
                if besides && header.kind == b'A' {
                    // Whatever else is not shown: what was notified meanwhile is.
                    self.to_client.put_slice(rest.get(..header.len).unwrap_or_default());
                }
                if self.note_from_server(header.kind, body) {
                    return Looked { moves: at, drops: header.len, event: None };
                }
            } else if matches!(header.kind, b'G' | b'W') {
                self.copies = true;
                // What was asked for behind it is not read as a request by a server that copies.
                self.due = if self.extended { 0 } else { self.due };
            }
            let here = header.len.min(rest.len());
            at += here;
            self.server_rest = header.len - here;
            if here == rest.len() {
                return Looked { moves: at, drops: 0, event: None };
            }
        }
    }

    /// Takes in what a message says; says whether the client is not to see it.
    fn note_from_server(&mut self, kind: u8, body: &[u8]) -> bool {
        match kind {
            b'Z' => {
                self.due = self.due.saturating_sub(1);
                self.status = body.first().copied().unwrap_or(b'I');
                (self.copies, self.mistaken) = (false, false);
                self.dirty |= self.shown == Shown::All && std::mem::take(&mut self.suspects);
                if self.due == 0 {
                    self.control.set_ready(self.status);
                }
                self.shown != Shown::All
            }
            b'S' => {
                self.news.extend(protocol::parameter(body).map(|(name, value)| (name.to_owned(), value.to_owned())));
                false
            }
            b'C' => {
                self.note_tag(body);
                false
            }
            b'A' => false,
            b'D' => {
                self.rows.extend(protocol::row(body));
                true
            }
            _ => self.note_error(protocol::fields(body)),
        }
    }

    fn note_tag(&mut self, tag: &[u8]) {
        // Nearly all tags begin with another letter, and are not looked at any further.
        if !matches!(tag.first(), Some(b'S' | b'R' | b'D' | b'P' | b'L' | b'C' | b'U')) || self.shown == Shown::Nothing
        {
            return;
        }
        let tag = tag.strip_suffix(b"\0").unwrap_or(tag);
        self.dirty |= LASTING.contains(&tag);
        if matches!(tag, b"DISCARD ALL" | b"DEALLOCATE ALL") {
            self.prepared = Prepared::default();
        }
    }

    fn note_error(&mut self, fields: Vec<(u8, String)>) -> bool {
        self.failed = true;
        self.copies = false;
        if self.shown == Shown::Nothing {
            self.error = fields.iter().find(|(field, _)| *field == b'M').map(|(_, message)| message.clone());
        }
        let severe = fields.iter().any(|(field, value)| *field == b'V' && (value == "FATAL" || value == "PANIC"));
        if severe {
            // The session here goes on: what is said of its end is told in other words.
            self.last_words = Some(fields);
        }
        severe
    }

    /// One step of what comes from the client: `None` when something was moved.
    fn poll_client(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        // A server that does not read is waited for: nothing more is taken from the client.
        if let Err(error) = ready!(self.send_to_server(cx)) {
            return Poll::Ready(Some(Event::ServerGone(Some(error))));
        }
        // A statement that is sent now could be hit by a cancel request that is meant for the one before.
        if self.due == 0 && self.control.is_cancelling() {
            return Poll::Pending;
        }
        if !self.held.is_empty() {
            let held = std::mem::take(&mut self.held);
            let (done, event) = self.move_to_server(cx, &held);
            self.hold(held, done);
            if event.is_some() || done > 0 {
                return Poll::Ready(event);
            }
        }
        SCRATCH.with_borrow_mut(|scratch| {
            let mut buffer = ReadBuf::new(scratch);
            let Some(client) = &mut self.client else { return Poll::Ready(Some(Event::ClientGone)) };
            match ready!(Pin::new(client).poll_read(cx, &mut buffer)) {
                Err(_) => Poll::Ready(Some(Event::ClientGone)),
                Ok(()) if buffer.filled().is_empty() => Poll::Ready(Some(Event::ClientGone)),
                Ok(()) => Poll::Ready(self.heard_from_client(cx, buffer.filled())),
            }
        })
    }

    fn heard_from_client(&mut self, cx: &mut Context<'_>, read: &[u8]) -> Option<Event> {
        if self.held.is_empty() {
            let (done, event) = self.move_to_server(cx, read);
            self.held.put_slice(read.get(done..).unwrap_or_default());
            return event;
        }
        let mut held = std::mem::take(&mut self.held);
        held.put_slice(read);
        let (done, event) = self.move_to_server(cx, &held);
        self.hold(held, done);
        event
    }

    fn hold(&mut self, mut held: BytesMut, done: usize) {
        if done < held.len() {
            held.advance(done);
            self.held = held;
        }
    }

    /// Moves messages of the client; says how many bytes are done with.
    fn move_to_server(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> (usize, Option<Event>) {
        let mut done = 0;
        loop {
            let rest = bytes.get(done..).unwrap_or_default();
            let Looked { moves, drops, event } = self.look_at_client(rest);
            let written = self.write_to_server(cx, rest.get(..moves).unwrap_or_default());
            done += moves + drops;
            if let Err(error) = written {
                return (done, Some(Event::ServerGone(Some(error))));
            }
            if event.is_some() || moves + drops == 0 || done == bytes.len() {
                return (done, event);
            }
        }
    }

    fn write_to_server(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> io::Result<()> {
        let Some(server) = self.server.as_mut().filter(|_| !bytes.is_empty()) else { return Ok(()) };
        self.touched = true;
        self.moved.0 = self.moved.0.saturating_add(u64::try_from(bytes.len()).unwrap_or_default());
        self.control.set_busy(true);
        let mut rest = bytes;
        while !rest.is_empty() {
            match Pin::new(&mut *server).poll_write(cx, rest) {
                Poll::Ready(count) => rest = rest.get(count?..).unwrap_or_default(),
                Poll::Pending => break,
            }
        }
        self.to_server.put_slice(rest);
        if !server.is_plain() {
            let _ = Pin::new(server).poll_flush(cx)?;
        }
        Ok(())
    }

    /// Goes over messages of the client as far as they are all the server's.
    fn look_at_client(&mut self, bytes: &[u8]) -> Looked {
        let mut at = self.client_rest.min(bytes.len());
        self.client_rest -= at;
        let stop = |at, event| Looked { moves: at, drops: 0, event };
        if at > 0 && self.drops_rest {
            return Looked { moves: 0, drops: at, event: None };
        }
        self.drops_rest = false;
        while at < bytes.len() {
            let rest = bytes.get(at..).unwrap_or_default();
            let header = match frame(rest, usize::MAX) {
                Ok(Some(header)) => header,
                Ok(None) => return stop(at, None),
                // Nothing can be told apart behind it.
                Err(_) => return stop(at, Some(Event::ClientGone)),
            };
            if header.kind == b'X' {
                return stop(at, Some(Event::ClientGone));
            }
            if self.drops(header.kind) {
                let drops = header.len.min(rest.len());
                (self.client_rest, self.drops_rest) = (header.len - drops, true);
                let ended = header.kind == b'S' && std::mem::take(&mut self.skips);
                return Looked { moves: at, drops, event: ended.then_some(Event::SkipEnded) };
            }
            if !std::mem::take(&mut self.admitted) && self.stops(header.kind) {
                return stop(at, Some(Event::Boundary));
            }
            // Where a name may stand for a statement of ours, no message of any length may be taken for one of it.
            let looks_max = if self.watches { WATCHED_BYTES_MAX } else { LOOK_BYTES_MAX };
            if header.len <= looks_max && self.is_looked_at(header.kind) {
                let Some(body) = header.body(rest) else { return stop(at, None) };
                self.suspects |= matches!(header.kind, b'Q' | b'P') && may_last(body);
                if !std::mem::take(&mut self.passes) && self.may_be_ours(header.kind, body) {
                    return stop(at, Some(Event::Look));
                }
                self.note_prepared(header.kind, body);
            }
            self.note_from_client(header.kind);
            let here = header.len.min(rest.len());
            at += here;
            self.client_rest = header.len - here;
        }
        stop(at, None)
    }

    /// Whether nobody waits for this message.
    fn drops(&self, kind: u8) -> bool {
        // What is left of a COPY into a server that is gone may still be on its way.
        self.skips || (self.server.is_none() && matches!(kind, b'd' | b'c' | b'f'))
    }

    fn stops(&self, kind: u8) -> bool {
        if self.server.is_none() {
            return true;
        }
        let moves = self.unsettled || self.seen != self.newest.load(Ordering::Acquire);
        moves && self.is_at_boundary() && !matches!(kind, b'S' | b'H' | b'd' | b'c' | b'f')
    }

    fn note_prepared(&mut self, kind: u8, body: &[u8]) {
        match kind {
            b'P' => self.prepared.add(body),
            b'C' => self.prepared.remove(body),
            _ => {}
        }
    }

    fn is_looked_at(&self, kind: u8) -> bool {
        matches!(kind, b'Q' | b'P' | b'C') || (self.watches && matches!(kind, b'B' | b'D' | b'E' | b'C' | b'S' | b'H'))
    }

    fn may_be_ours(&self, kind: u8, body: &[u8]) -> bool {
        match kind {
            b'Q' => may_be_ours(body),
            // The text stands behind the name.
            b'P' if !self.watches => {
                let name = body.iter().position(|byte| *byte == 0).unwrap_or_default();
                may_be_ours(body.get(name.saturating_add(1)..).unwrap_or_default())
            }
            b'C' => self.watches,
            _ => true,
        }
    }

    fn note_from_client(&mut self, kind: u8) {
        match kind {
            b'Q' | b'F' => {
                self.due = self.due.saturating_add(1);
                self.extended = false;
            }
            // A server that copies does not read it as a request.
            b'S' if self.copies => {}
            b'S' => {
                self.due = self.due.saturating_add(1);
                (self.batch, self.extended) = (false, true);
            }
            b'P' | b'B' | b'D' | b'E' | b'C' | b'H' => (self.batch, self.extended) = (true, true),
            b'c' | b'f' => self.copies = false,
            _ => {}
        }
    }
}
