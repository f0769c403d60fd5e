//! What members of other processes are asked, and what this one answers.

use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, join_all};
use serde::{Deserialize, Serialize};
use switchyard_catalog::{Name, NodeId, UserId};
use switchyard_engine::{AS_SUPERUSER, ClientError, DrainProgress, LiveSession, SqlState};
use switchyard_session::SessionEntry;
use tokio::time::timeout;
use tracing::debug;

use crate::Console;
use crate::live::shown;
use crate::members::{Members, PeerPlace};

/// How long another member may take to answer: what it does not say in that time is missing.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// Asks the member of a process a question and gives its answer; nothing when there is none.
pub type AskPeer = dyn Fn(&str, Vec<u8>) -> BoxFuture<'static, Option<Vec<u8>>> + Send + Sync;

/// What is asked. A newer version may ask what this one does not know.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Question {
    /// A sign of life.
    Alive,
    /// All sessions, and those that ended lately.
    Sessions,
    /// A session's end, or only that of its statement.
    Session { id: String, only_user: Option<String>, close: bool },
    /// The end of all sessions, or of one user's.
    CloseSessions { only_user: Option<String> },
    /// The same by process id, as PostgreSQL's functions have it: who may has been looked at.
    Process { process_id: i32, close: bool },
    /// The end of the members that have these nodes.
    Stop { nodes: Vec<NodeId> },
    /// How many sessions a user has.
    SessionsOf { user: UserId },
    /// A request to cancel, with the key that proves that the sender may.
    Cancel { process_id: i32, secret: Vec<u8> },
}

/// What is answered.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// Done.
    Done,
    /// There is no such session.
    NotHere,
    /// The session is another user's.
    Denied,
    /// Those that are open, and those that ended, with when.
    Sessions {
        open: Vec<LiveSession>,
        ended: Vec<(LiveSession, i64)>,
        /// How far its members are that drain.
        #[serde(default)]
        drains: Vec<DrainProgress>,
    },
    /// So many.
    Count(usize),
    /// It does not know the question.
    Unknown,
}

/// What the members of other processes said.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    pub(crate) answers: Vec<Answer>,
    /// The names of those that did not answer.
    pub(crate) silent: Vec<String>,
}

impl Answers {
    /// Who is missing, in words; nothing when all answered.
    pub(crate) fn missing(&self) -> Option<String> {
        let quoted: Vec<String> = self.silent.iter().map(|name| format!("\"{name}\"")).collect();
        (!quoted.is_empty()).then(|| quoted.join(", "))
    }
}

impl Console {
    /// What another member is answered.
    pub fn answer(&self, question: &[u8]) -> Vec<u8> {
        let answer = match serde_json::from_slice(question) {
            Ok(question) => self.answered(question),
            Err(error) => {
                debug!(%error, "another member asks what this one does not know");
                Answer::Unknown
            }
        };
        // Texts and numbers always can be.
        serde_json::to_vec(&answer).unwrap_or_default()
    }

    /// The question to which every member that lives has an answer.
    pub fn sign_of_life() -> Vec<u8> {
        serde_json::to_vec(&Question::Alive).unwrap_or_default()
    }

    fn answered(&self, question: Question) -> Answer {
        match question {
            Question::Alive => Answer::Done,
            Question::Sessions => Answer::Sessions {
                open: self.own_sessions(),
                ended: self.members.ended(),
                drains: self.members.drains(&self.catalog()),
            },
            Question::Session { id, only_user, close } => match self.members.session_named(&id) {
                None => Answer::NotHere,
                Some(entry) if !is_of(&entry, only_user.as_deref()) => Answer::Denied,
                Some(entry) => end(&entry, close),
            },
            Question::CloseSessions { only_user } => {
                for (_, entry) in self.members.sessions() {
                    if is_of(&entry, only_user.as_deref()) {
                        entry.terminate();
                    }
                }
                Answer::Done
            }
            Question::Process { process_id, close } => {
                let entries = self.members.sessions_numbered(process_id);
                entries.iter().map(|entry| end(entry, close)).next_back().unwrap_or(Answer::NotHere)
            }
            Question::Stop { nodes } => {
                self.stop(&nodes);
                Answer::Done
            }
            Question::SessionsOf { user } => {
                Answer::Count(self.members.here().iter().map(|member| member.registry.sessions_of(user)).sum())
            }
            Question::Cancel { process_id, secret } => {
                if self.members.cancel(process_id, &secret) {
                    Answer::Done
                } else {
                    Answer::NotHere
                }
            }
        }
    }

    /// Ends the members of this process that have these nodes: the process, when it has no other that serves.
    pub(crate) fn stop(&self, nodes: &[NodeId]) {
        let here: Vec<NodeId> = self.members.here().iter().map(|member| member.node).collect();
        let states = self.members.states();
        if here.iter().all(|node| nodes.contains(node) || !states.is_up(*node)) {
            if here.iter().any(|node| nodes.contains(node)) {
                self.shutdown.send_replace(true);
            }
            return;
        }
        let catalog = self.catalog();
        for node in catalog.nodes().iter().filter(|node| here.contains(&node.id) && nodes.contains(&node.id)) {
            let (members, node) = (Arc::clone(&self.members), Arc::clone(node));
            tokio::spawn(async move {
                if let Err(why) = members.order(&node.name, node.id, false).await {
                    tracing::warn!(node = %node.name, why, "the member goes on");
                }
            });
        }
    }

    /// The sessions of this process's members.
    pub(crate) fn own_sessions(&self) -> Vec<LiveSession> {
        self.members.sessions().iter().map(|(node, entry)| shown(Some(*node), entry)).collect()
    }

    /// By what members of other processes are asked.
    pub fn ask_by(&self, ask: Arc<AskPeer>) {
        self.members.ask_by(ask);
    }

    /// Asks all members of other processes that are up, all at once.
    pub(crate) async fn ask_peers(&self, question: &Question) -> Answers {
        self.members.ask_peers(question).await
    }

    /// Stops what a session of another process does, if the key is that session's; says whether there is such a session.
    pub async fn cancel_elsewhere(&self, process_id: i32, secret: &[u8]) -> bool {
        let question = Question::Cancel { process_id, secret: secret.to_vec() };
        self.ask_peers(&question).await.answers.iter().any(|answer| matches!(answer, Answer::Done))
    }

    /// Ends a session of another process, or its statement.
    pub(crate) async fn end_elsewhere(
        &self,
        id: &str,
        only_user: Option<&Name>,
        close: bool,
    ) -> Result<(), ClientError> {
        let only_user = only_user.map(Name::to_string);
        let answers = self.ask_peers(&Question::Session { id: id.to_owned(), only_user, close }).await;
        if answers.answers.iter().any(|answer| matches!(answer, Answer::Done)) {
            return Ok(());
        }
        if answers.answers.iter().any(|answer| matches!(answer, Answer::Denied)) {
            return Err(denied());
        }
        let error = ClientError::new(SqlState::UndefinedObject, format!("Session \"{id}\" does not exist"))
            .with_hint("v_monitor.sessions lists the sessions.");
        Err(match answers.missing() {
            Some(missing) => error.with_detail(format!("It is not known which sessions these have: {missing}.")),
            None => error,
        })
    }
}

impl Members {
    /// Asks all members of other processes that are up, all at once.
    pub(crate) async fn ask_peers(&self, question: &Question) -> Answers {
        let (Some(ask), Ok(question)) = (self.asker(), serde_json::to_vec(question)) else {
            return Answers::default();
        };
        let peers = self.peers().into_iter().filter(|peer| peer.up);
        let asked = peers.map(|peer: PeerPlace| {
            let answer = timeout(ANSWER_MAX, ask(&peer.process, question.clone()));
            async move {
                let answer = answer.await.ok().flatten();
                (peer.name, answer.and_then(|answer| serde_json::from_slice(&answer).ok()))
            }
        });
        let mut answers = Answers::default();
        for (name, answer) in join_all(asked).await {
            match answer {
                Some(answer) => answers.answers.push(answer),
                None => answers.silent.push(name),
            }
        }
        answers
    }
}

/// That somebody who is no superuser means the session of another.
pub(crate) fn denied() -> ClientError {
    let message = "Must be superuser to close or interrupt the session of another user";
    ClientError::new(SqlState::InsufficientPrivilege, message).with_hint(AS_SUPERUSER)
}

fn is_of(entry: &SessionEntry, only_user: Option<&str>) -> bool {
    only_user.is_none_or(|only| Name::parse(only).is_ok_and(|only| only == entry.user_name))
}

fn end(entry: &SessionEntry, close: bool) -> Answer {
    if close {
        entry.terminate();
    } else {
        entry.interrupt();
    }
    Answer::Done
}
