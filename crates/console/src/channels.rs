//! LISTEN and NOTIFY between the sessions of this member, as in PostgreSQL: what a transaction says counts when it is
//! committed.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use switchyard_engine::{ClientError, SqlState};
use tokio::sync::mpsc::{self, OwnedPermit, Receiver, Sender};

/// How many notifications may wait for a session.
const NOTIFICATIONS_MAX: usize = 1_024;

/// The longest payload, in bytes; PostgreSQL's limit.
const PAYLOAD_BYTES_MAX: usize = 7_999;

/// How many channels a session may listen on.
const CHANNELS_MAX: usize = 1_000;

/// One notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notification {
    pub(crate) process_id: i32,
    pub(crate) channel: String,
    pub(crate) payload: String,
}

/// Both ends of what waits for one session.
type Queue = (Sender<Arc<Notification>>, Receiver<Arc<Notification>>);
/// Who listens, by channel and process id.
type Listeners = HashMap<String, BTreeMap<i32, Sender<Arc<Notification>>>>;

/// Who listens to what, by channel and session.
#[derive(Debug, Default)]
pub(crate) struct Channels(Mutex<Listeners>);

impl Channels {
    fn locked(&self) -> MutexGuard<'_, Listeners> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says whether the session did not listen there before.
    fn listen(&self, channel: &str, process_id: i32, sender: Sender<Arc<Notification>>) -> bool {
        self.locked().entry(channel.to_owned()).or_default().insert(process_id, sender).is_none()
    }

    fn unlisten(&self, channel: &str, process_id: i32) {
        let mut channels = self.locked();
        if let Some(listeners) = channels.get_mut(channel) {
            listeners.remove(&process_id);
            if listeners.is_empty() {
                channels.remove(channel);
            }
        }
    }

    fn unlisten_all(&self, process_id: i32) {
        self.locked().retain(|_, listeners| {
            listeners.remove(&process_id);
            !listeners.is_empty()
        });
    }

    /// Takes a place in the queue of every session that listens.
    fn reserve(&self, notification: &Arc<Notification>, room: &mut Reserved) -> Result<(), ClientError> {
        let channels = self.locked();
        for sender in channels.get(&notification.channel).into_iter().flat_map(BTreeMap::values) {
            match sender.clone().try_reserve_owned() {
                Ok(permit) => room.0.push((permit, Arc::clone(notification))),
                // The session is just ending.
                Err(mpsc::error::TrySendError::Closed(_)) => {}
                Err(mpsc::error::TrySendError::Full(_)) => {
                    let message = "too many notifications in the NOTIFY queue";
                    return Err(ClientError::new(SqlState::ProgramLimitExceeded, message).with_detail(format!(
                        "{NOTIFICATIONS_MAX} of them wait for a session that listens on channel \"{}\".",
                        notification.channel
                    )));
                }
            }
        }
        Ok(())
    }
}

/// Places in queues, taken before a commit and filled after it.
#[derive(Debug, Default)]
pub(crate) struct Reserved(Vec<(OwnedPermit<Arc<Notification>>, Arc<Notification>)>);

impl Reserved {
    fn send(self) {
        for (permit, notification) in self.0 {
            permit.send(notification);
        }
    }
}

/// What a transaction says about channels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wish {
    Listen(String),
    /// `None` is all.
    Unlisten(Option<String>),
    Notify(Arc<Notification>),
}

/// One session's part.
#[derive(Debug)]
pub(crate) struct Listening {
    channels: Arc<Channels>,
    process_id: i32,
    queue: Option<Queue>,
    heard: Vec<String>,
    /// With the number of savepoints there were.
    wishes: Vec<(usize, Wish)>,
}

impl Listening {
    pub(crate) fn new(channels: Arc<Channels>, process_id: i32) -> Self {
        Self { channels, process_id, queue: None, heard: Vec::new(), wishes: Vec::new() }
    }

    /// Notes what is to be done at the commit.
    pub(crate) fn wish(&mut self, wish: Wish, depth: usize) -> Result<(), ClientError> {
        let invalid = |message: &str| Err(ClientError::new(SqlState::InvalidParameterValue, message));
        match &wish {
            Wish::Notify(notification) if notification.channel.is_empty() => {
                return invalid("channel name cannot be empty");
            }
            Wish::Notify(notification) if notification.payload.len() > PAYLOAD_BYTES_MAX => {
                return invalid("payload string too long");
            }
            // Equal ones of a transaction are one.
            Wish::Notify(_) if self.wishes.iter().any(|(_, other)| *other == wish) => return Ok(()),
            Wish::Listen(_) if self.heard.len() >= CHANNELS_MAX => {
                let message = format!("the session listens on {CHANNELS_MAX} channels already");
                return Err(ClientError::new(SqlState::ProgramLimitExceeded, message));
            }
            _ if self.wishes.len() >= NOTIFICATIONS_MAX => {
                let message = format!("the transaction has {NOTIFICATIONS_MAX} notifications already");
                return Err(ClientError::new(SqlState::ProgramLimitExceeded, message));
            }
            _ => {}
        }
        self.wishes.push((depth, wish));
        Ok(())
    }

    /// Savepoints were released: so many are left.
    pub(crate) fn released(&mut self, depth: usize) {
        for (own, _) in &mut self.wishes {
            *own = depth.min(*own);
        }
    }

    /// The transaction went back to where it had so many savepoints.
    pub(crate) fn back(&mut self, depth: usize) {
        self.wishes.retain(|(own, _)| *own <= depth);
    }

    /// The transaction was rolled back.
    pub(crate) fn forget(&mut self) {
        self.wishes.clear();
    }

    /// Before the commit: the session listens from now on, and there is room for what is said.
    pub(crate) fn prepare(&mut self) -> Result<Reserved, ClientError> {
        let mut room = Reserved::default();
        let mut new = Vec::new();
        for (_, wish) in &self.wishes {
            match wish {
                Wish::Listen(channel) => {
                    let (sender, _) = self.queue.get_or_insert_with(|| mpsc::channel(NOTIFICATIONS_MAX));
                    if self.channels.listen(channel, self.process_id, sender.clone()) {
                        new.push(channel.clone());
                    }
                }
                Wish::Unlisten(_) => {}
                Wish::Notify(notification) => {
                    if let Err(error) = self.channels.reserve(notification, &mut room) {
                        new.iter().for_each(|channel| self.channels.unlisten(channel, self.process_id));
                        return Err(error);
                    }
                }
            }
        }
        self.heard.append(&mut new);
        Ok(room)
    }

    /// After the commit.
    pub(crate) fn settle(&mut self, room: Reserved) {
        room.send();
        for (_, wish) in std::mem::take(&mut self.wishes) {
            match wish {
                Wish::Unlisten(None) => self.unlisten_all(),
                Wish::Unlisten(Some(channel)) => {
                    self.channels.unlisten(&channel, self.process_id);
                    self.heard.retain(|own| *own != channel);
                }
                Wish::Listen(_) | Wish::Notify(_) => {}
            }
        }
    }

    /// UNLISTEN *, at once.
    pub(crate) fn unlisten_all(&mut self) {
        if !self.heard.is_empty() {
            self.channels.unlisten_all(self.process_id);
            self.heard.clear();
        }
    }

    /// A notification that has come.
    pub(crate) fn pending(&mut self) -> Option<Arc<Notification>> {
        self.queue.as_mut().and_then(|(_, receiver)| receiver.try_recv().ok())
    }

    /// The next notification; for ever, if there can be none.
    pub(crate) async fn next(&mut self) -> Arc<Notification> {
        let next = match &mut self.queue {
            Some((_, receiver)) => receiver.recv().await,
            None => None,
        };
        match next {
            Some(notification) => notification,
            None => std::future::pending().await,
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.unlisten_all();
    }
}
