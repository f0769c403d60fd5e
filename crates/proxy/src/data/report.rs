//! What a client is told of servers.

use bytes::BytesMut;
use switchyard_wire::{FrameHeader, answer, upstream as protocol};

use super::own::Route;
use super::reason;
use crate::upstream::UpstreamError;

const CONNECTION_FAILURE: &str = "08006";
const INVALID_AUTHORIZATION: &str = "28000";
const INVALID_CATALOG_NAME: &str = "3D000";
const ADMIN_SHUTDOWN: &str = "57P01";

fn written(kind: u8, fields: &[(u8, &str)]) -> BytesMut {
    let mut out = BytesMut::new();
    answer::report(&mut out, kind, fields);
    out
}

fn error(code: &str, message: &str, detail: Option<&str>, hint: Option<&str>) -> BytesMut {
    let mut fields = vec![(b'S', "ERROR"), (b'V', "ERROR"), (b'C', code), (b'M', message)];
    fields.extend(detail.map(|detail| (b'D', detail)));
    fields.extend(hint.map(|hint| (b'H', hint)));
    written(b'E', &fields)
}

/// A NOTICE.
pub(super) fn notice(message: &str, detail: Option<&str>) -> BytesMut {
    let mut fields = vec![(b'S', "NOTICE"), (b'V', "NOTICE"), (b'C', "00000"), (b'M', message)];
    fields.extend(detail.map(|detail| (b'D', detail)));
    written(b'N', &fields)
}

/// The same error, as the end of the session.
pub(super) fn fatal(message: &[u8]) -> BytesMut {
    let fields = protocol::fields(message.get(FrameHeader::BYTES..).unwrap_or_default());
    let severe = |field: u8, value: &str| if matches!(field, b'S' | b'V') { "FATAL" } else { value }.to_owned();
    let fields: Vec<(u8, String)> = fields.iter().map(|(field, value)| (*field, severe(*field, value))).collect();
    let fields: Vec<(u8, &str)> = fields.iter().map(|(field, value)| (*field, value.as_str())).collect();
    written(b'E', &fields)
}

/// Somebody has ended the session.
pub(super) fn terminated() -> BytesMut {
    let message = "terminating connection due to administrator command";
    written(b'E', &[(b'S', "FATAL"), (b'V', "FATAL"), (b'C', ADMIN_SHUTDOWN), (b'M', message)])
}

/// A server took no login: which one, and what is missing.
pub(super) fn refused(route: &Route, refused: &UpstreamError, console: &str) -> BytesMut {
    let node = &route.name;
    let hop = format!("Node \"{node}\" is the PostgreSQL server {}.", route.server.target);
    match refused {
        UpstreamError::Refused { fields, .. } => of_server(fields, &hop, console),
        UpstreamError::ProofMissing { user, wanted, .. } => {
            let message = format!("node \"{node}\" asks user \"{user}\" for {wanted}, and there is none to show");
            error(INVALID_AUTHORIZATION, &message, Some(&hop), Some(&mapping_hint(route)))
        }
        UpstreamError::Proving { user, .. } => {
            let message = format!("login of user \"{user}\" on node \"{node}\" failed: {}", reason_of(refused));
            error(INVALID_AUTHORIZATION, &message, Some(&hop), Some(&mapping_hint(route)))
        }
        other => {
            let message = format!("connection to node \"{node}\" failed: {}", reason(other));
            error(CONNECTION_FAILURE, &message, Some(&hop), None)
        }
    }
}

fn reason_of(error: &UpstreamError) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

fn mapping_hint(route: &Route) -> String {
    if route.mapped {
        return format!("ALTER USER MAPPING gives the password for node \"{}\".", route.name);
    }
    format!(
        "Give the role on the server the verifier that switchyard keeps of the password, or CREATE USER MAPPING FOR \
         user SERVER \"{}\" OPTIONS (user '...', password '...').",
        route.name
    )
}

/// What the server said, with where it is, and what leads to the console where the database is not there.
fn of_server(fields: &[(u8, String)], hop: &str, console: &str) -> BytesMut {
    let code = fields.iter().find(|(field, _)| *field == b'C').map_or("", |(_, code)| code.as_str());
    let has = |wanted: u8| fields.iter().any(|(field, _)| *field == wanted);
    let hint = format!("The console is the database \"{console}\".");
    let mut out: Vec<(u8, &str)> = fields
        .iter()
        .filter(|(field, _)| !matches!(field, b'F' | b'L' | b'R'))
        .map(|(field, value)| (*field, if matches!(field, b'S' | b'V') { "ERROR" } else { value.as_str() }))
        .collect();
    if !has(b'D') {
        out.push((b'D', hop));
    }
    if code == INVALID_CATALOG_NAME && !has(b'H') {
        out.push((b'H', &hint));
    }
    written(b'E', &out)
}

/// The server of the session has gone, and with it what cannot be made again.
pub(super) fn forgotten(what: &str) -> BytesMut {
    let message = format!("the PostgreSQL server of this session has gone, and with it {what}");
    let hint = "The session goes on with its next statement, on another connection.";
    error(ADMIN_SHUTDOWN, &message, None, Some(hint))
}

/// The server of the session has gone while it had something to do.
pub(super) fn lost(node: &str, words: Option<&[(u8, String)]>, why: Option<&str>) -> BytesMut {
    let field = |wanted: u8| {
        let words = words.unwrap_or_default();
        words.iter().find(|(field, _)| *field == wanted).map(|(_, value)| value.as_str())
    };
    let message = format!("node \"{node}\" has closed the connection of this session");
    let said = field(b'M').map(|said| format!("It said: {said}."));
    let detail = said.or_else(|| why.map(|why| format!("The connection broke: {why}.")));
    let hint = "The transaction is lost unless it was being committed. The session goes on with its next statement.";
    error(field(b'C').unwrap_or(CONNECTION_FAILURE), &message, detail.as_deref(), Some(hint))
}
