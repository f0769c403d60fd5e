//! Between the data plane and the console, which do not know each other: the one's questions are the other's answers.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bytes::BytesMut;
use switchyard_catalog::{NodeId, Secret};
use switchyard_console::{Attached, Console, DataTarget};
use switchyard_proxy::{DataClient, Own, Piece, Proof, Route, Server, ServerLogin, UrlError};
use switchyard_session::{Client, Secured};
use switchyard_wire::ScramVerifier;
use switchyard_wire::message::{Report, Severity, error_response};
use switchyard_wire::{SqlState, options};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use zeroize::Zeroizing;

/// What a startup packet says that is no server's to know.
const OURS: [&str; 4] = ["user", "database", "workload", "connection_load_balance"];

/// The console's part in one session.
pub(crate) struct OfConsole {
    attached: Attached,
    console: Arc<Console>,
    /// The user as the catalog spells it: whoever logs in as `MIRA` is `mira` on a server too.
    user: String,
    /// What the user has proved, for servers that keep the same verifier.
    proof: Option<Proof>,
}

/// A client that has logged in, made ready for its server; nothing when there can be no session.
pub(crate) async fn attach(
    console: &Arc<Console>,
    client: Client<TcpStream>,
    login_ms_max: u64,
) -> Option<(Secured<TcpStream>, DataClient, OfConsole)> {
    let Client { mut stream, leftover, user, database, parameters, session, client_key, .. } = client;
    let named = database.unwrap_or_default();
    let (database, in_name) = match named.rsplit_once('@') {
        Some((name, workload)) => (name.to_owned(), Some(workload.to_owned())),
        None => (named, None),
    };
    let own = |name: &str| parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    let given = own("options").unwrap_or_default();
    let given = options::settings(&given).unwrap_or_default();
    let in_options = given.iter().rev().find(|(name, _)| name.eq_ignore_ascii_case("workload"));
    let workload = own("workload").or_else(|| in_options.map(|(_, workload)| workload.clone())).or(in_name);
    let entry = Arc::clone(session.entry());
    let secret = session.secret().to_vec().into();
    let spelled = user.name.to_string();
    let attached = match console.attach(session, workload.as_deref(), &parameters) {
        Ok(attached) => attached,
        Err(mut refused) => {
            // The client may be gone.
            let _ = stream.write_all_buf(&mut refused).await;
            let _ = stream.shutdown().await;
            return None;
        }
    };
    let verifier = user.verifiers.as_ref().and_then(|kept| ScramVerifier::parse(kept.scram.reveal()).ok());
    let proof = client_key.zip(verifier).map(|(key, verifier)| Proof::Key(key, verifier));
    let parameters = for_server(database, parameters, &given).into();
    let client = DataClient { leftover, parameters, entry, secret, login_ms_max };
    Some((stream, client, OfConsole { attached, console: Arc::clone(console), user: spelled, proof }))
}

/// The parameters that a server is given.
fn for_server(
    database: String,
    parameters: Vec<(String, String)>,
    given: &[(String, String)],
) -> Vec<(String, String)> {
    let is_ours = |name: &str| OURS.iter().any(|own| own.eq_ignore_ascii_case(name));
    let mut kept = vec![("database".to_owned(), database)];
    for (name, value) in parameters {
        if name.eq_ignore_ascii_case("options") && given.iter().any(|(name, _)| is_ours(name)) {
            let rest = given.iter().filter(|(name, _)| !is_ours(name));
            let words: Vec<String> = rest.map(|(name, value)| format!("-c {name}={}", escaped(value))).collect();
            kept.push((name, words.join(" ")));
        } else if !is_ours(&name) {
            kept.push((name, value));
        }
    }
    kept
}

/// A value among options: a backslash stands before what would end it.
fn escaped(value: &str) -> String {
    let mut escaped = String::new();
    for letter in value.chars() {
        if letter.is_whitespace() || letter == '\\' {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}

impl Own for OfConsole {
    fn version(&self) -> Arc<AtomicU64> {
        self.attached.version()
    }

    fn route(&mut self, here: Option<u64>) -> Result<Route, BytesMut> {
        let target = self.attached.target(here.map(NodeId))?;
        let name = target.name.to_string();
        self.routed(target).map_err(|error| {
            let message = format!("node \"{name}\" cannot be reached: {error}");
            let report = Report::new(Severity::Error, SqlState::ConfigFileError, message);
            let mut out = BytesMut::new();
            error_response(&mut out, &report.with_hint("ALTER NODE ... SET UPSTREAM TO corrects it."));
            out
        })
    }

    fn seen(&mut self, node: u64, absent: Option<&str>) {
        self.console.server_seen(NodeId(node), absent);
    }

    fn notices(&mut self) -> BytesMut {
        self.attached.notices()
    }

    fn cut(&mut self, text: &str) -> (Vec<Piece>, Vec<String>) {
        let (pieces, custom) = self.attached.cut(text);
        let piece =
            |piece: switchyard_console::DataPiece| Piece { ours: piece.ours, text: piece.text, besides: piece.besides };
        (pieces.into_iter().map(piece).collect(), custom)
    }

    async fn answer(&mut self, kind: u8, body: &[u8]) -> BytesMut {
        self.attached.answer(kind, body).await
    }

    fn in_failed_transaction(&self) -> BytesMut {
        Attached::in_failed_transaction()
    }

    fn speak(&mut self, encoding: &str) {
        self.attached.speak(encoding);
    }

    fn console_database(&self) -> String {
        self.console.database().to_string()
    }
}

impl Drop for OfConsole {
    fn drop(&mut self) {
        self.attached.end();
    }
}

impl OfConsole {
    fn routed(&self, target: DataTarget) -> Result<Route, UrlError> {
        let DataTarget { node, name, host, port, url, mapping, .. } = target;
        let server = match &url {
            // Whom the URL names is for looking after the server: everybody logs in as themselves.
            Some(url) => Server::of_url(url.reveal())?.0,
            None => Server::new(&host, port),
        };
        let mapped = mapping.is_some();
        let (user, proof) = match mapping {
            Some((user, password)) => (user, password.as_ref().map(by_password)),
            None => (self.user.clone(), self.proof.clone()),
        };
        let login = ServerLogin { user, proof, parameters: Arc::default() };
        Ok(Route { node: node.0, name: name.to_string(), server, login, mapped })
    }
}

fn by_password(password: &Secret) -> Proof {
    Proof::Password(Zeroizing::new(password.reveal().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_told_all_that_is_not_ours() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let given = "-c workload=w -c search_path=a\\ b --geqo=off";
        let parameters = vec![
            pair("user", "mira"),
            pair("database", "shop@w"),
            pair("application_name", "x"),
            pair("options", given),
            pair("workload", "w"),
        ];
        let read = options::settings(given).unwrap_or_default();
        assert_eq!(
            for_server("shop".to_owned(), parameters, &read),
            [
                pair("database", "shop"),
                pair("application_name", "x"),
                pair("options", "-c search_path=a\\ b -c geqo=off"),
            ]
        );
        let untouched = vec![pair("options", "-c geqo=off")];
        let read = options::settings("-c geqo=off").unwrap_or_default();
        let kept = for_server("shop".to_owned(), untouched, &read);
        assert_eq!(kept, [pair("database", "shop"), pair("options", "-c geqo=off")]);
    }
}
