//! A session whose SQL runs on a PostgreSQL server: from the login there to its end.

mod control;
mod extended;
mod flow;
mod moving;
mod own;
mod report;
mod spot;

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use switchyard_session::SessionEntry;
use switchyard_wire::message::{TransactionStatus, backend_key_data, parameter_status, ready_for_query};
use switchyard_wire::{CancelKey, frame, upstream as protocol};
use tokio::io::AsyncWriteExt;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tracing::debug;

use crate::line::Stream;
use crate::passage::Target;
use crate::pool::{Key, Pool};
use crate::upstream::{Upstream, UpstreamError};
use control::{Control, Shared};
use extended::Ours;
use flow::{Event, Flow, Shown};
use moving::State;

pub use own::{Own, Piece, Route};

/// How many servers are tried before the client is told that none takes it.
const SERVERS_MAX: usize = 5;
/// How long a client that is sent away may take to read why.
const FAREWELL_TIME: Duration = Duration::from_secs(1);

/// A client whose statements run on a PostgreSQL server, and who has been told AuthenticationOk and nothing after it.
#[derive(Debug)]
pub struct DataClient {
    /// What it sent ahead.
    pub leftover: BytesMut,
    /// The parameters that the server is to be given, in order, without the user: the database among them.
    pub parameters: Arc<[(String, String)]>,
    /// Its place among the sessions.
    pub entry: Arc<SessionEntry>,
    /// The key that cancels it.
    pub secret: CancelKey,
    /// How long a server may take to take a login, in milliseconds.
    pub login_ms_max: u64,
}

/// Why a session is over.
struct End;

type Step<T = ()> = Result<T, End>;

/// Where a session runs.
#[derive(Debug)]
struct Place {
    node: u64,
    name: String,
    target: Target,
    user: String,
    /// By what others could use the session there.
    key: Key,
    /// The key that cancels what it does.
    cancel: Option<(i32, CancelKey)>,
    /// The settings after the login.
    settings: Arc<[(String, String)]>,
}

/// The settings as the client was told.
#[derive(Debug, Default)]
struct Told {
    /// Shared by all sessions that began alike.
    first: Arc<[(String, String)]>,
    changed: Vec<(String, String)>,
}

impl Told {
    fn value(&self, name: &str) -> Option<&str> {
        let all = self.changed.iter().chain(&*self.first);
        all.clone().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn set(&mut self, name: String, value: String) {
        match self.changed.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
            None => self.changed.push((name, value)),
        }
    }
}

/// A session.
struct Data<O> {
    flow: Flow,
    own: O,
    shared: Arc<Shared>,
    entry: Arc<SessionEntry>,
    parameters: Arc<[(String, String)]>,
    login_ms_max: u64,
    place: Option<Place>,
    told: Told,
    pool: Arc<Pool>,
    /// The names with a point in them that were set: the server does not list them.
    custom: Vec<String>,
    /// What pins it, as the client was told last.
    pinned: Option<String>,
    /// What it had on its server when it was last looked at, for the one that takes the server's place.
    remembered: Option<Box<State>>,
    /// Which statements and portals are answered by the console; none for most clients.
    ours: Option<Box<Ours>>,
    /// What the next statement is told instead of an answer: the transaction that it would have been part of is gone.
    owed: Option<BytesMut>,
}

/// Serves a client to its end; its stream is made where the session is served. What a login takes is not held as long as
/// the session lasts.
pub fn serve<O: Own>(
    stream: impl FnOnce() -> Option<Stream> + Send + 'static,
    client: DataClient,
    own: O,
    pool: Arc<Pool>,
) -> impl Future<Output = ()> + Send + 'static {
    let begun = Box::pin(async move { Data::begin(stream().ok_or(End)?, client, own, pool).await });
    async move {
        let Ok(mut data) = begun.await else { return };
        let End = data.run().await;
        Box::pin(data.end()).await;
    }
}

impl<O: Own> Data<O> {
    /// Logs in on a server, and tells the client that it can begin.
    async fn begin(stream: Stream, client: DataClient, own: O, pool: Arc<Pool>) -> Result<Box<Self>, End> {
        let DataClient { leftover, parameters, entry, secret, login_ms_max } = client;
        let (control, shared) = Control::new(Handle::current(), login_ms_max);
        entry.watch(control);
        let flow = Flow::new(stream, leftover, Arc::clone(&shared), own.version());
        let mut data = Box::new(Self {
            flow,
            own,
            shared,
            entry,
            parameters,
            login_ms_max,
            place: None,
            told: Told::default(),
            pool,
            custom: Vec::new(),
            pinned: None,
            remembered: None,
            ours: None,
            owed: None,
        });
        if let Err(refused) = data.connect(None).await {
            data.flow.out().extend_from_slice(&report::fatal(&refused));
            data.farewell().await;
            return Err(End);
        }
        let notices = data.own.notices();
        let process_id = data.entry.process_id;
        let out = data.flow.out();
        out.extend_from_slice(&notices);
        backend_key_data(out, process_id, &secret);
        ready_for_query(out, TransactionStatus::Idle);
        Ok(data)
    }

    /// Moves messages, and does what cannot be moved. What that takes is not held while the client is silent.
    async fn run(&mut self) -> End {
        loop {
            let event = poll_fn(|cx| self.flow.poll(cx, true)).await;
            let done = match event {
                Event::ClientGone => Err(End),
                Event::Terminated => Box::pin(self.terminated()).await,
                Event::ServerGone(error) => Box::pin(self.lost(error.map(|error| error.to_string()))).await,
                Event::Boundary => Box::pin(self.settle()).await,
                Event::Look => Box::pin(self.look()).await,
                Event::Dirty => Box::pin(self.remember()).await,
                Event::SkipEnded => Box::pin(self.skip_ended()).await,
                Event::Settled => Ok(()),
            };
            if let Err(end) = done {
                return end;
            }
        }
    }

    /// Logs in where the session is to run, and tells the client what is set there; the error is what it is told instead.
    async fn connect(&mut self, here: Option<u64>) -> Result<(), BytesMut> {
        let (upstream, route) = self.open(here).await?;
        self.flow.seen = self.flow.newest();
        self.take_place(upstream, &route);
        Ok(())
    }

    /// A session on a server: the next one is tried when one does not answer.
    async fn open(&mut self, mut here: Option<u64>) -> Result<(Upstream, Route), BytesMut> {
        let mut failed = None;
        let mut again = true;
        for _ in 0..SERVERS_MAX {
            let mut route = match self.own.route(here) {
                Ok(route) => route,
                // Who did not answer says more than that nobody is left.
                Err(error) => return Err(failed.unwrap_or(error)),
            };
            route.login.parameters = Arc::clone(&self.parameters);
            if let Some(upstream) = self.pool.take(&Key::new(&route.server, &route.login)) {
                return Ok((upstream, route));
            }
            match Upstream::connect(&route.server, &route.login, self.login_ms_max).await {
                Ok(mut upstream) => {
                    upstream.settings = self.pool.shared(upstream.settings);
                    self.own.seen(route.node, None);
                    return Ok((upstream, route));
                }
                Err(error) => {
                    debug!(node = route.name, error = &error as &dyn std::error::Error, "no session on this server");
                    let told = report::refused(&route, &error, &self.own.console_database());
                    if !error.is_absence() || error.is_of_login() && !std::mem::take(&mut again) {
                        return Err(told);
                    }
                    if !error.is_of_login() {
                        self.own.seen(route.node, Some(&reason(&error)));
                    }
                    failed = Some(told);
                    here = None;
                }
            }
        }
        Err(failed.unwrap_or_default())
    }

    /// The session runs here from now on.
    fn take_place(&mut self, upstream: Upstream, route: &Route) {
        let Upstream { stream, target, settings, key } = upstream;
        let cancelled_by = key.clone().map(|(process_id, key)| (target.clone(), process_id, key));
        self.shared.settle(cancelled_by);
        self.flow.put_server(Some(stream));
        self.place = Some(Place::of(route, target, key, Arc::clone(&settings)));
        let first = self.told.first.is_empty();
        for (name, value) in &*settings {
            self.tell(name, value);
        }
        if first {
            self.told = Told { first: settings, changed: Vec::new() };
        }
    }

    /// Tells the client of a setting that is other than it was told.
    fn tell(&mut self, name: &str, value: &str) {
        if self.told.value(name) != Some(value) {
            parameter_status(self.flow.out(), name, value);
            self.learn(name.to_owned(), value.to_owned());
        }
    }

    /// The client knows a setting.
    fn learn(&mut self, name: String, value: String) {
        if name == "client_encoding" {
            self.own.speak(&value);
        }
        self.told.set(name, value);
    }

    fn learn_news(&mut self) {
        for (name, value) in std::mem::take(&mut self.flow.news) {
            self.learn(name, value);
        }
    }

    /// Between two transactions: makes sure that the session runs where it should.
    async fn settle(&mut self) -> Step {
        self.learn_news();
        if let Some(told) = self.owed.take() {
            return self.refuse_next(&told);
        }
        if !self.flow.has_server() {
            if let Err(refused) = self.connect(None).await {
                return self.refuse_next(&refused);
            }
            let notices = self.own.notices();
            self.flow.out().extend_from_slice(&notices);
            return self.replace().await;
        }
        self.flow.seen = self.flow.newest();
        self.flow.unsettled = false;
        self.move_if_due().await?;
        self.flow.admitted = self.flow.has_server();
        Ok(())
    }

    /// Answers the next message by an error: there is no server for it.
    fn refuse_next(&mut self, refused: &[u8]) -> Step {
        let kind = self.flow.held.first().copied().unwrap_or_default();
        self.flow.out().extend_from_slice(refused);
        match kind {
            b'Q' | b'F' | b'S' => {
                self.flow.leave_out();
                self.ready();
            }
            _ => self.flow.skips = true,
        }
        Ok(())
    }

    /// Says that the next statement may come.
    fn ready(&mut self) {
        let status = match self.flow.status {
            b'T' => TransactionStatus::Open,
            b'E' => TransactionStatus::Failed,
            _ => TransactionStatus::Idle,
        };
        ready_for_query(self.flow.out(), status);
    }

    async fn skip_ended(&mut self) -> Step {
        if self.flow.batch {
            // What came before the mistake was the server's: it says that it is ready.
            self.flow.batch = false;
            self.flow.ask(1, protocol::sync);
            return Ok(());
        }
        self.ready();
        Ok(())
    }

    /// The server has gone. Between transactions nobody has to know; else the client is told once, and goes on.
    async fn lost(&mut self, error: Option<String>) -> Step {
        self.learn_news();
        let (due, batch, idle) = (self.flow.due(), self.flow.batch, self.flow.is_at_boundary());
        let words = self.flow.last_words.take();
        let within = self.flow.is_within_message();
        let copying = self.flow.is_copying() && due == 0;
        self.flow.put_server(None);
        self.shared.settle(None);
        self.shared.set_ready(b'I');
        let name = self.place.as_ref().map_or("", |place| place.name.as_str()).to_owned();
        debug!(node = name, error, idle, "the server has gone");
        if within {
            // Half a message cannot be taken back.
            return Err(End);
        }
        if idle && !copying {
            return Ok(());
        }
        let told = report::lost(&name, words.as_deref(), error.as_deref());
        for _ in 0..due {
            self.flow.out().extend_from_slice(&told);
            ready_for_query(self.flow.out(), TransactionStatus::Idle);
        }
        if batch || copying {
            self.flow.out().extend_from_slice(&told);
            self.flow.skips = true;
        } else if due == 0 {
            // In a transaction, between its statements: the next one is told, and does not run.
            self.owed = Some(told);
        }
        Ok(())
    }

    /// The client's next message may be ours.
    async fn look(&mut self) -> Step {
        self.learn_news();
        match self.flow.message() {
            Some((b'Q', body)) => {
                let text = String::from_utf8_lossy(body.strip_suffix(b"\0").unwrap_or(body)).into_owned();
                let (pieces, custom) = self.own.cut(&text);
                self.note_custom(custom);
                if pieces.iter().all(|piece| !piece.ours) {
                    self.flow.passes = true;
                    return Ok(());
                }
                let _query = self.flow.take_message();
                self.until_answered().await?;
                self.run_pieces(pieces).await
            }
            Some(_) => self.look_at_extended().await,
            None => Err(End),
        }
    }

    fn note_custom(&mut self, custom: Vec<String>) {
        for name in custom {
            if !self.custom.contains(&name) {
                self.custom.push(name);
            }
        }
    }

    /// Runs a string of statements of both sides: one ReadyForQuery at the end.
    async fn run_pieces(&mut self, pieces: Vec<Piece>) -> Step {
        for piece in pieces {
            let failed = if piece.ours {
                self.run_ours(&piece).await?
            } else {
                self.run_theirs(&piece.text, Shown::NotReady).await?
            };
            if failed {
                break;
            }
        }
        self.ready();
        Ok(())
    }

    /// Answers statements of ours; says whether one has failed.
    async fn run_ours(&mut self, piece: &Piece) -> Step<bool> {
        if self.flow.status == b'E' {
            let refused = self.own.in_failed_transaction();
            self.flow.out().extend_from_slice(&refused);
            return Ok(true);
        }
        let mut body = piece.text.clone().into_bytes();
        body.push(0);
        let failed = self.answer(b'Q', &body).await?;
        if !failed && let Some(besides) = &piece.besides {
            return self.run_theirs(besides, Shown::Nothing).await;
        }
        Ok(failed)
    }

    /// Has the console answer a message; says whether by an error.
    async fn answer(&mut self, kind: u8, body: &[u8]) -> Step<bool> {
        let answer = self.own.answer(kind, body).await;
        let mut rest = &answer[..];
        let mut failed = false;
        while let Ok(Some(header)) = frame(rest, usize::MAX) {
            let (message, behind) = rest.split_at_checked(header.len).ok_or(End)?;
            failed |= header.kind == b'E';
            // Settings and transactions are the server's.
            if !matches!(header.kind, b'S' | b'Z') {
                self.flow.out().extend_from_slice(message);
            }
            rest = behind;
        }
        // Roles, workload, rules: any of them may have changed.
        self.flow.unsettled = true;
        Ok(failed)
    }

    /// Has the server run statements; says whether one has failed.
    async fn run_theirs(&mut self, text: &str, shown: Shown) -> Step<bool> {
        if self.flow.is_at_boundary() {
            Box::pin(self.settle_before()).await?;
        }
        self.flow.failed = false;
        self.flow.shown = shown;
        self.flow.ask(1, |out| protocol::query(out, text));
        let settled = self.until_settled().await;
        self.flow.shown = Shown::All;
        settled?;
        Ok(self.flow.failed)
    }

    /// As between two transactions of the client.
    async fn settle_before(&mut self) -> Step {
        if !self.flow.has_server() || self.flow.unsettled || self.flow.seen != self.flow.newest() {
            self.settle().await?;
            // What may come is asked for here, and not by the client.
            self.flow.admitted = false;
        }
        if self.flow.has_server() { Ok(()) } else { Err(End) }
    }

    /// Until the server has answered what the client asked for before, as if nothing were to come.
    async fn until_answered(&mut self) -> Step {
        while !self.flow.is_settled() {
            match poll_fn(|cx| self.flow.poll(cx, false)).await {
                Event::ServerGone(error) => Box::pin(self.lost(error.map(|error| error.to_string()))).await?,
                Event::Terminated => return self.terminated().await,
                Event::ClientGone => return Err(End),
                _ => {}
            }
        }
        Ok(())
    }

    /// Until the server has answered everything, without reading more of the client than it copies.
    async fn until_settled(&mut self) -> Step {
        loop {
            match poll_fn(|cx| self.flow.poll(cx, false)).await {
                Event::Settled => return Ok(()),
                Event::ServerGone(error) => {
                    self.lost_besides(error.map(|error| error.to_string()));
                    return Ok(());
                }
                Event::Terminated => return self.terminated().await,
                Event::ClientGone => return Err(End),
                _ => {}
            }
        }
    }

    /// The server went while it did one of several things.
    fn lost_besides(&mut self, error: Option<String>) {
        let words = self.flow.last_words.take();
        let name = self.place.as_ref().map_or("", |place| place.name.as_str()).to_owned();
        self.flow.put_server(None);
        self.shared.settle(None);
        let told = report::lost(&name, words.as_deref(), error.as_deref());
        self.flow.out().extend_from_slice(&told);
        self.flow.failed = true;
    }

    async fn terminated(&mut self) -> Step {
        self.flow.out().extend_from_slice(&report::terminated());
        self.farewell().await;
        Err(End)
    }

    async fn farewell(&mut self) {
        // The client may be gone, or not read: there is nobody else to tell.
        let _ = timeout(FAREWELL_TIME, poll_fn(|cx| self.flow.poll_out(cx))).await;
    }

    async fn end(mut self: Box<Self>) {
        debug!(session = self.entry.id, moved = ?self.flow.moved, "session ended");
        let Some(mut client) = self.flow.take_client() else { return };
        let _ = timeout(FAREWELL_TIME, client.shutdown()).await;
        drop(client);
        let as_new = self.pool.keeps() && timeout(FAREWELL_TIME, self.make_as_new()).await.is_ok_and(|done| done);
        let Self { mut flow, own, pool, place, entry, .. } = *self;
        // Nobody finds the session from now on.
        drop((own, entry));
        let Some(server) = flow.put_server(None) else { return };
        let left = match place.filter(|_| as_new) {
            Some(place) => pool.keep(place.key, server, place.cancel, place.settings),
            None => Some(server),
        };
        if let Some(server) = left {
            let _ = timeout(FAREWELL_TIME, goodbye(server)).await;
        }
    }

    /// Makes the session on the server as it was after the login; says whether it is.
    async fn make_as_new(&mut self) -> bool {
        // A request to cancel that is on its way would hit whoever comes next.
        self.shared.settle(None);
        if !self.flow.has_server() || !self.flow.is_at_boundary() || self.flow.is_within_message() {
            return false;
        }
        if !self.flow.is_untouched() {
            let reset = self.besides(|flow| flow.ask(1, |out| protocol::query(out, "DISCARD ALL"))).await;
            if !matches!(reset, Ok(false)) {
                return false;
            }
        }
        self.flow.has_server() && self.flow.is_at_boundary() && !self.shared.is_cancelling()
    }
}

impl Place {
    fn of(route: &Route, target: Target, cancel: Option<(i32, CancelKey)>, settings: Arc<[(String, String)]>) -> Self {
        let (name, user) = (route.name.clone(), route.login.user.clone());
        let key = Key::new(&route.server, &route.login);
        Self { node: route.node, name, target, user, key, cancel, settings }
    }
}

/// Tells a server that its session is over.
pub(crate) async fn goodbye(mut server: Stream) {
    let mut out = BytesMut::new();
    protocol::terminate(&mut out);
    // It ends by itself when it is not told.
    let _ = server.write_all_buf(&mut out).await;
    let _ = server.shutdown().await;
}

/// Why a server is taken to be down.
fn reason(error: &UpstreamError) -> String {
    let source = std::error::Error::source(error);
    source.map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}
