//! From one server to another, between two transactions.

use std::fmt::Write;
use std::sync::Arc;

use bytes::BytesMut;
use switchyard_wire::upstream as protocol;

use super::flow::Shown;
use super::{Data, Own, Place, Step, goodbye, report};

/// What the old server is asked for: what must go along, and what cannot. Rows of a kind, a name, and more.
const STATE: &str = "SELECT 'setting', name, setting, NULL FROM pg_catalog.pg_settings \
    WHERE source = 'session' AND context IN ('user', 'superuser') AND name NOT LIKE 'transaction\\_%' \
    UNION ALL SELECT 'setting', 'role', pg_catalog.current_setting('role'), NULL \
    WHERE pg_catalog.current_setting('role') <> 'none' \
    UNION ALL SELECT CASE WHEN from_sql THEN 'prepare' ELSE 'parse' END, name, statement, \
        pg_catalog.array_to_string(parameter_types::pg_catalog.oid[], ',') FROM pg_catalog.pg_prepared_statements \
    UNION ALL SELECT 'pin', 'a temporary table', NULL, NULL WHERE EXISTS (SELECT FROM pg_catalog.pg_class \
        WHERE relnamespace = pg_catalog.pg_my_temp_schema() AND pg_catalog.pg_my_temp_schema() <> 0) \
    UNION ALL SELECT 'pin', 'a cursor WITH HOLD', NULL, NULL \
        WHERE EXISTS (SELECT FROM pg_catalog.pg_cursors WHERE is_holdable) \
    UNION ALL SELECT 'pin', 'LISTEN', NULL, NULL WHERE EXISTS (SELECT FROM pg_catalog.pg_listening_channels()) \
    UNION ALL SELECT 'pin', 'an advisory lock', NULL, NULL WHERE EXISTS (SELECT FROM pg_catalog.pg_locks \
        WHERE locktype = 'advisory' AND pid = pg_catalog.pg_backend_pid())";

/// The types that are the same on every server.
const TYPE_ID_BUILT_IN_MAX: u32 = 16_383;

/// What a session takes along.
#[derive(Debug, Default)]
pub(super) struct State {
    settings: Vec<(String, String)>,
    /// PREPARE, as it was typed.
    prepare: Vec<String>,
    /// Name, text, types of parameters.
    parse: Vec<(String, String, Vec<u32>)>,
    pins: Vec<String>,
}

impl State {
    fn of_rows(rows: Vec<Vec<Option<String>>>) -> Self {
        let mut state = Self::default();
        for row in rows {
            let mut values = row.into_iter().map(Option::unwrap_or_default);
            let mut next = || values.next().unwrap_or_default();
            let (kind, name, value, types) = (next(), next(), next(), next());
            match kind.as_str() {
                "setting" => state.settings.push((name, value)),
                // PostgreSQL keeps the whole string: run again, it would do all that is in it.
                "prepare" if value.trim_end().trim_end_matches(';').contains(';') => {
                    state.pins.push(format!("the prepared statement \"{name}\", made among others,"));
                }
                "prepare" => state.prepare.push(value),
                "parse" => state.parse.push((name, value, type_ids(&types))),
                _ => state.pins.push(name),
            }
        }
        state
    }

    /// The statements that bring it about. Each PREPARE is alone: PostgreSQL keeps the string it came in.
    fn statements(&self) -> Vec<String> {
        let mut settings = String::new();
        for (name, value) in &self.settings {
            // A text can always be written to.
            let _ = write!(settings, "SELECT pg_catalog.set_config({}, {}, false);", quoted(name), quoted(value));
        }
        let settings = (!settings.is_empty()).then_some(settings);
        settings.into_iter().chain(self.prepare.iter().cloned()).collect()
    }
}

/// Writes them; how often the server will say that it is ready.
fn write_all(statements: &[String]) -> (u32, impl FnOnce(&mut BytesMut) + '_) {
    let count = u32::try_from(statements.len()).unwrap_or(u32::MAX);
    (count, |out: &mut BytesMut| statements.iter().for_each(|statement| protocol::query(out, statement)))
}

fn type_ids(list: &str) -> Vec<u32> {
    let known = |id: &str| id.parse().ok().filter(|id| *id <= TYPE_ID_BUILT_IN_MAX).unwrap_or(0);
    list.split(',').filter(|id| !id.is_empty()).map(known).collect()
}

/// A literal that means the same however strings are read.
fn quoted(text: &str) -> String {
    format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

impl<O: Own> Data<O> {
    /// Looks what the session has on its server: that may be gone when it is needed.
    pub(super) async fn remember(&mut self) -> Step {
        self.flow.dirty = false;
        self.learn_news();
        let state = self.state().await?;
        self.remembered = state.map(Box::new);
        Ok(())
    }

    /// A new server has taken the place of one that went: brings about what can be, and tells what cannot.
    pub(super) async fn replace(&mut self) -> Step {
        let state = self.remembered.take().unwrap_or_default();
        self.flow.dirty = false;
        let mut lost = state.pins.first().cloned();
        if self.flow.prepared.forgot {
            lost = Some("its prepared statements".to_owned());
        }
        let statements = state.statements();
        let (count, write) = write_all(&statements);
        if count > 0 && self.besides(|flow| flow.ask(count, write)).await? {
            lost = Some("its settings".to_owned());
        }
        let bodies: Vec<Vec<u8>> = self.flow.prepared.bodies().map(<[u8]>::to_vec).collect();
        if !bodies.is_empty() {
            let count = u32::try_from(bodies.len()).unwrap_or(u32::MAX);
            let write = |out: &mut BytesMut| {
                for body in &bodies {
                    protocol::raw(out, b'P', body);
                    protocol::sync(out);
                }
            };
            // One that was wrong then is wrong again, which the client knows.
            self.besides(|flow| flow.ask(count, write)).await?;
        }
        for (name, value) in std::mem::take(&mut self.flow.news) {
            self.tell(&name, &value);
        }
        self.remembered = (!state.settings.is_empty() || !state.prepare.is_empty())
            .then_some(State { pins: Vec::new(), ..*state })
            .map(Box::new);
        match lost {
            Some(what) => self.refuse_next(&report::forgotten(&what)),
            None => Ok(()),
        }
    }

    /// Moves the session, if it is to run elsewhere and can.
    pub(super) async fn move_if_due(&mut self) -> Step {
        let Some(place) = &self.place else { return Ok(()) };
        let (here, target, user) = (place.node, place.target.clone(), place.user.clone());
        let route = self.own.route(Some(here));
        let notices = self.own.notices();
        self.flow.out().extend_from_slice(&notices);
        // Where nobody else can take it, it stays as long as it can.
        let Ok(route) = route else { return Ok(()) };
        if route.node == here && route.server.target == target && route.login.user == user {
            self.pinned = None;
            return Ok(());
        }
        self.leave(here, &route.name).await
    }

    async fn leave(&mut self, here: u64, to: &str) -> Step {
        let Some(state) = self.state().await? else {
            // A short statement_timeout, or a request to cancel: it is asked again.
            self.flow.unsettled = true;
            return Ok(());
        };
        if let Some(pin) = state.pins.first() {
            // It is looked at again before the next transaction.
            self.flow.unsettled = true;
            if self.pinned.as_ref() != Some(pin) {
                let name = self.place.as_ref().map_or("", |place| place.name.as_str());
                let message = format!("session stays on node \"{name}\": {pin} cannot move to node \"{to}\"");
                self.flow.out().extend_from_slice(&report::notice(&message, None));
                self.pinned = Some(pin.clone());
            }
            return Ok(());
        }
        let Ok((upstream, route)) = self.open(Some(here)).await else {
            let why = format!("no session could be made on node \"{to}\"");
            if self.pinned.as_ref() != Some(&why) {
                let name = self.place.as_ref().map_or("", |place| place.name.as_str());
                self.flow
                    .out()
                    .extend_from_slice(&report::notice(&format!("session stays on node \"{name}\": {why}"), None));
                self.pinned = Some(why);
            }
            return Ok(());
        };
        if self.place.as_ref().is_some_and(|place| place.node == route.node && place.target == upstream.target) {
            // Whoever was to take it does not answer.
            goodbye(upstream.stream).await;
            return Ok(());
        }
        let (settings, new_name) = (Arc::clone(&upstream.settings), route.name.clone());
        let (old, old_place) = self.swap(upstream, &route);
        if let Some(why) = self.restore(&state).await? {
            self.go_back(old, old_place);
            let message = format!("session stays on node \"{}\"", self.place.as_ref().map_or("", |place| &place.name));
            let detail = format!("On node \"{new_name}\" its state cannot be made: {why}.");
            self.flow.out().extend_from_slice(&report::notice(&message, Some(&detail)));
            return Ok(());
        }
        self.pinned = None;
        self.tell_differences(&settings);
        if let Some(old) = old {
            tokio::spawn(goodbye(old.0));
        }
        Ok(())
    }

    /// What the session has on its server; nothing when the server has gone meanwhile.
    async fn state(&mut self) -> Step<Option<State>> {
        let mut statement = STATE.to_owned();
        for name in &self.custom {
            let name = quoted(name);
            let _ = write!(
                statement,
                " UNION ALL SELECT 'setting', {name}, pg_catalog.current_setting({name}, true), NULL \
                 WHERE pg_catalog.current_setting({name}, true) IS NOT NULL"
            );
        }
        self.flow.rows = Vec::new();
        let failed = self.besides(|flow| flow.ask(1, |out| protocol::query(out, &statement))).await?;
        let rows = std::mem::take(&mut self.flow.rows);
        Ok((!failed && self.flow.has_server()).then(|| State::of_rows(rows)))
    }

    /// Has the server do something that the client does not see; says whether that failed.
    pub(super) async fn besides(&mut self, ask: impl FnOnce(&mut super::Flow)) -> Step<bool> {
        self.flow.failed = false;
        self.flow.shown = Shown::Nothing;
        ask(&mut self.flow);
        let settled = self.until_settled().await;
        self.flow.shown = Shown::All;
        settled?;
        Ok(self.flow.failed)
    }

    fn swap(&mut self, upstream: super::Upstream, route: &super::Route) -> (Option<Old>, Option<Place>) {
        let super::Upstream { stream, target, settings, key } = upstream;
        let cancelled_by = key.clone().map(|(process_id, key)| (target.clone(), process_id, key));
        let before = self.shared.settle(cancelled_by);
        let old = self.flow.put_server(Some(stream)).map(|stream| Old(stream, before));
        (old, self.place.replace(Place::of(route, target, key, settings)))
    }

    fn go_back(&mut self, old: Option<Old>, place: Option<Place>) {
        let Some(Old(stream, key)) = old else { return };
        self.shared.settle(key);
        if let Some(new) = self.flow.put_server(Some(stream)) {
            tokio::spawn(goodbye(new));
        }
        self.flow.touch();
        self.place = place;
    }

    /// Brings about on the new server what the old one had; says why it cannot.
    async fn restore(&mut self, state: &State) -> Step<Option<String>> {
        let statements = state.statements();
        self.flow.news.clear();
        self.flow.error = None;
        let (count, write) = write_all(&statements);
        if count > 0 && self.besides(|flow| flow.ask(count, write)).await? {
            return Ok(Some(self.flow.error.take().unwrap_or_default()));
        }
        if !state.parse.is_empty() {
            let write = |out: &mut BytesMut| {
                for (name, text, types) in &state.parse {
                    protocol::parse(out, name, text, types);
                }
                protocol::sync(out);
            };
            if self.besides(|flow| flow.ask(1, write)).await? {
                return Ok(Some(self.flow.error.take().unwrap_or_default()));
            }
        }
        Ok(None)
    }

    /// Tells the client which settings are other than on the server before.
    fn tell_differences(&mut self, settings: &[(String, String)]) {
        let restored = std::mem::take(&mut self.flow.news);
        for (name, value) in settings {
            // What was set again is told as it is now, and only once.
            let now = restored.iter().rev().find(|(known, _)| known == name).map_or(value, |(_, value)| value);
            self.tell(name, now);
        }
        for (name, value) in restored {
            self.tell(&name, &value);
        }
    }
}

/// A server that was left, and the key that cancels what it does.
struct Old(crate::line::Stream, Option<(crate::passage::Target, i32, switchyard_wire::CancelKey)>);
