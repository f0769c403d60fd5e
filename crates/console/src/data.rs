//! What a session whose SQL runs on a PostgreSQL server has of the console: its workload, the node that it leads to, and
//! the answers to statements that are ours.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bytes::BytesMut;
use rand::seq::{IndexedRandom, SliceRandom};
use switchyard_catalog::{Catalog, Name, Node, NodeId, NodeKind, Secret, SubclusterId};
use switchyard_dialect::{Whose, quote_literal};
use switchyard_engine::{ClientError, SqlState, Warning, settings};
use switchyard_session::Session as Place;

use crate::Console;
use crate::error::{aborted, put_error, put_notice};
use crate::protocol::{Aside, aside};

/// A PostgreSQL server for a session, and how the session's user logs in there.
#[derive(Debug, Clone)]
pub struct DataTarget {
    /// Its node.
    pub node: NodeId,
    /// The node's name.
    pub name: Name,
    /// Where it is, when no URL says more.
    pub host: String,
    /// The port there.
    pub port: u16,
    /// `postgresql://...`, if there is one.
    pub url: Option<Secret>,
    /// The login that a user mapping says, and its password.
    pub mapping: Option<(String, Option<Secret>)>,
    /// The workload that leads there.
    pub workload: Option<Name>,
}

/// Statements that stand together and have one answerer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataPiece {
    /// Whether the console answers.
    pub ours: bool,
    /// The statements.
    pub text: String,
    /// What the PostgreSQL server is told besides; nobody sees its answer.
    pub besides: Option<String>,
}

/// The console's part in a data session.
pub struct Attached {
    console: Arc<Console>,
    aside: Aside,
    user: switchyard_catalog::UserId,
    /// What the client was told last of a workload that nobody serves.
    warned: Option<Name>,
    /// What the client is to be told at the next opportunity.
    notices: Vec<Warning>,
}

impl std::fmt::Debug for Attached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attached").field("user", &self.user).finish_non_exhaustive()
    }
}

impl Console {
    /// Whether sessions on this database run on a PostgreSQL server: where any node has one, all but the console's do.
    pub fn is_data(&self, database: Option<&str>) -> bool {
        let Some(named) = database else { return false };
        let name = named.rsplit_once('@').map_or(named, |(name, _)| name);
        let catalog = self.catalog();
        !self.is_console(&catalog, name) && catalog.nodes().iter().any(|node| node.is_worker())
    }

    /// The database that the console is.
    pub fn database(&self) -> Name {
        self.catalog().database().name.clone()
    }

    /// Opens the console's part of a session; what is given besides is for the client.
    ///
    /// # Errors
    /// When there can be no session: the error, as the client is told.
    pub fn attach(
        self: &Arc<Self>,
        place: Place,
        workload: Option<&str>,
        shown: &[(String, String)],
    ) -> Result<Attached, BytesMut> {
        self.metrics.sessions.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let (user, entry) = (place.user, Arc::clone(place.entry()));
        let parameters: Vec<_> =
            workload.map(|workload| ("workload".to_owned(), workload.to_owned())).into_iter().collect();
        let opened = aside(Arc::clone(self), place, &parameters);
        let (aside, notices) = opened.map_err(|error| written(&error.fatal()))?;
        entry.update(|activity| {
            activity.startup = shown.into();
            if let Some((_, name)) = shown.iter().find(|(name, _)| name == "application_name") {
                activity.application.clone_from(name);
            }
        });
        Ok(Attached { console: Arc::clone(self), aside, user, warned: None, notices })
    }

    /// A node's PostgreSQL server did not answer, or has.
    pub fn server_seen(&self, node: NodeId, absent: Option<&str>) {
        let catalog = self.catalog();
        let Some(node) = catalog.nodes().find(node) else { return };
        self.look_after(node, absent);
        match absent {
            Some(reason) => self.members.server_absent(node, reason),
            None => self.members.server_present(node),
        }
    }
}

fn written(error: &ClientError) -> BytesMut {
    let mut out = BytesMut::new();
    put_error(&mut out, error, false);
    out
}

impl Attached {
    /// The newest version of the catalog: while it stays, nothing changes where the session runs.
    pub fn version(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.console.head.version)
    }

    /// Where the session is to run now: where it is, if that is as good as any other.
    ///
    /// # Errors
    /// When no node can take it: the error, as the client is told.
    pub fn target(&mut self, here: Option<NodeId>) -> Result<DataTarget, BytesMut> {
        self.aside.session().refresh_now();
        let catalog = self.console.catalog();
        let workload = self.aside.session_ref().workload();
        let node = self.choose(&catalog, workload.as_ref(), here).map_err(|error| written(&error))?;
        let url = match &node.kind {
            NodeKind::Member { upstream } | NodeKind::Remote { upstream } => upstream.clone(),
        };
        let mapping = catalog.login_on(self.user, node.id);
        Ok(DataTarget {
            node: node.id,
            name: node.name.clone(),
            host: node.host.clone(),
            port: node.port,
            url,
            mapping: mapping.map(|mapping| (mapping.remote_user.clone(), mapping.password.clone())),
            workload,
        })
    }

    fn choose(
        &mut self,
        catalog: &Catalog,
        workload: Option<&Name>,
        here: Option<NodeId>,
    ) -> Result<Arc<Node>, ClientError> {
        let fleet = Fleet { console: &self.console, catalog, here };
        let Some(workload) = workload else {
            self.warned = None;
            return fleet.local().ok_or_else(|| no_server(catalog));
        };
        if let Some(node) = catalog.rule_of_workload(workload).and_then(|rule| fleet.of_rule(&rule.subclusters)) {
            self.warned = None;
            return Ok(node);
        }
        let message = format!("no node of workload \"{workload}\" is up");
        let falls_back = settings::database_value("workload_fallback", catalog).as_deref() != Some("error");
        let local = fleet.local().filter(|_| falls_back);
        let local = local.ok_or_else(|| {
            ClientError::new(SqlState::CannotConnectNow, message.clone()).with_hint(
                "SELECT * FROM v_monitor.node_states says since when. SET SESSION WORKLOAD NONE does without.",
            )
        })?;
        // Said once, and not before each transaction.
        if self.warned.as_ref() != Some(workload) {
            self.warned = Some(workload.clone());
            self.notices.push(Warning::new(format!("{message}: running on node \"{}\"", local.name)));
        }
        Ok(local)
    }

    /// What the client is to be told now, besides answers.
    pub fn notices(&mut self) -> BytesMut {
        let mut out = BytesMut::new();
        for warning in std::mem::take(&mut self.notices) {
            put_notice(&mut out, &warning, false);
        }
        out
    }

    /// Cuts a string of statements into what is answered here and what is not. Also the names with a point in them that the
    /// server's statements set.
    pub fn cut(&self, text: &str) -> (Vec<DataPiece>, Vec<String>) {
        let cuts = switchyard_dialect::cut(text);
        let catalog = self.console.catalog();
        let is_role = |name: &str| Name::parse(name).is_ok_and(|name| catalog.roles().named(&name).is_some());
        let piece = |cut: switchyard_dialect::Cut| {
            let (ours, besides) = match cut.whose {
                Whose::Theirs => (false, None),
                Whose::Ours => (true, None),
                Whose::Both => (true, Some("SET ROLE NONE".to_owned())),
                Whose::Role(name) if is_role(&name) => (true, Some(set_role(&name))),
                Whose::Role(_) => (false, None),
            };
            DataPiece { ours, text: cut.text, besides }
        };
        (cuts.pieces.into_iter().map(piece).collect(), cuts.custom)
    }

    /// Answers a message of the client with statements of ours. ReadyForQuery and settings are among the messages: they
    /// are not the client's to see.
    pub async fn answer(&mut self, kind: u8, body: &[u8]) -> BytesMut {
        match self.aside.answer(kind, body).await {
            Ok(answer) => answer,
            // The session is being closed, which is told otherwise.
            Err(_) => BytesMut::new(),
        }
    }

    /// What is answered within a transaction that has failed.
    pub fn in_failed_transaction() -> BytesMut {
        written(&aborted())
    }

    /// The client's texts are in this encoding from now on.
    pub fn speak(&mut self, encoding: &str) {
        self.aside.speak(encoding);
    }

    /// The session is over.
    pub fn end(&mut self) {
        self.aside.end();
    }
}

/// Has the server set a role that it knows too, and says nothing where it does not.
fn set_role(name: &str) -> String {
    format!(
        "SELECT pg_catalog.set_config('role', rolname, false) FROM pg_catalog.pg_roles WHERE rolname = {} \
         AND pg_catalog.pg_has_role(session_user, oid, 'member')",
        quote_literal(name)
    )
}

fn no_server(catalog: &Catalog) -> ClientError {
    let console = &catalog.database().name;
    ClientError::new(SqlState::CannotConnectNow, "no node with a PostgreSQL server is up").with_hint(format!(
        "SELECT * FROM v_monitor.node_states says since when. The console is the database \"{console}\"."
    ))
}

/// The nodes among which one is chosen.
struct Fleet<'a> {
    console: &'a Console,
    catalog: &'a Catalog,
    here: Option<NodeId>,
}

impl Fleet<'_> {
    fn takes(&self, node: &Node) -> bool {
        // A session stays on a node that drains, and none begins there.
        let open = !node.draining || self.here == Some(node.id);
        open && node.is_worker() && self.console.members.takes_sessions(node)
    }

    /// A node of one of these subclusters: one subcluster by chance, one of its nodes by chance.
    fn of_rule(&self, subclusters: &[SubclusterId]) -> Option<Arc<Node>> {
        if let Some(here) = self.here.and_then(|here| self.catalog.nodes().find(here))
            && subclusters.contains(&here.subcluster)
            && self.takes(here)
        {
            return Some(Arc::clone(here));
        }
        let mut order = subclusters.to_vec();
        order.shuffle(&mut rand::rng());
        order.into_iter().find_map(|subcluster| self.any_of(subcluster))
    }

    fn any_of(&self, subcluster: SubclusterId) -> Option<Arc<Node>> {
        let nodes = self.catalog.nodes().iter();
        let open: Vec<_> = nodes.filter(|node| node.subcluster == subcluster && self.takes(node)).collect();
        open.choose(&mut rand::rng()).map(|node| Arc::clone(node))
    }

    /// The member's own server; else one of its subcluster, else one of the default subcluster.
    fn local(&self) -> Option<Arc<Node>> {
        let own = self.console.node_id.and_then(|node| self.catalog.nodes().find(node));
        if let Some(own) = own.filter(|own| self.takes(own)) {
            return Some(Arc::clone(own));
        }
        let default = self.catalog.database().default_subcluster;
        let subclusters = own.map(|own| own.subcluster).into_iter().chain([default]);
        for subcluster in subclusters {
            let here = self.here.and_then(|here| self.catalog.nodes().find(here));
            if let Some(here) = here.filter(|here| here.subcluster == subcluster && self.takes(here)) {
                return Some(Arc::clone(here));
            }
            if let Some(node) = self.any_of(subcluster) {
                return Some(node);
            }
        }
        None
    }
}
