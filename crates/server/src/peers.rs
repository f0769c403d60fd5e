//! A connection to each member of another process: by it they are asked, and by its end it is seen at once that one died.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use switchyard_console::{Console, PeerPlace, Reach};
use switchyard_proxy::{Channel, Target};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tracing::debug;

/// How long another member may take to be called, and to answer, in milliseconds.
const ANSWER_MS_MAX: u64 = 1_000;
/// How often each is asked for a sign of life.
const ALIVE_EVERY: Duration = Duration::from_secs(1);
/// Between two attempts to call one that does not answer.
const RETRY_AFTER: Duration = Duration::from_millis(200);
/// How many questions may wait for one.
const QUESTIONS_MAX: usize = 256;

/// A question, and who waits for the answer.
type Asked = (Vec<u8>, oneshot::Sender<Vec<u8>>);

/// The members of other processes that are called, by process.
#[derive(Debug, Default)]
pub(crate) struct Peers(Mutex<HashMap<String, Called>>);

#[derive(Debug)]
struct Called {
    questions: mpsc::Sender<Asked>,
    task: AbortHandle,
}

impl Peers {
    /// Has a console ask by this.
    pub(crate) fn serve(self: &Arc<Self>, console: &Console) {
        let peers = Arc::downgrade(self);
        console.ask_by(Arc::new(move |process: &str, question: Vec<u8>| {
            let questions = peers.upgrade().and_then(|peers| peers.questions(process));
            Box::pin(async move {
                let (sender, answer) = oneshot::channel();
                questions?.send((question, sender)).await.ok()?;
                answer.await.ok()
            })
        }));
    }

    /// Calls those that are there now, and no others any more.
    pub(crate) fn settle(&self, console: &Arc<Console>) {
        let there: Vec<PeerPlace> = console.peers().into_iter().filter(|peer| !peer.gone).collect();
        let mut called = self.called();
        called.retain(|process, called| {
            let stays = there.iter().any(|peer| peer.process == *process);
            if !stays {
                called.task.abort();
            }
            stays
        });
        for peer in there {
            called.entry(peer.process.clone()).or_insert_with(|| {
                let (questions, asked) = mpsc::channel(QUESTIONS_MAX);
                let task = tokio::spawn(call_for_ever(Arc::clone(console), peer, asked)).abort_handle();
                Called { questions, task }
            });
        }
    }

    /// Calls nobody any more.
    pub(crate) fn end(&self) {
        for (_, called) in self.called().drain() {
            called.task.abort();
        }
    }

    fn questions(&self, process: &str) -> Option<mpsc::Sender<Asked>> {
        self.called().get(process).map(|called| called.questions.clone())
    }

    fn called(&self) -> MutexGuard<'_, HashMap<String, Called>> {
        // Nothing that can panic runs while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn call_for_ever(console: Arc<Console>, peer: PeerPlace, mut asked: mpsc::Receiver<Asked>) {
    let target = Target { host: peer.host.clone(), port: peer.port };
    loop {
        let secret = console.catalog().database().member_secret.clone();
        let Some(secret) = secret else {
            sleep(RETRY_AFTER).await;
            continue;
        };
        match Channel::open(&target, secret.reveal().as_bytes(), ANSWER_MS_MAX).await {
            Ok(channel) => {
                console.reached(&peer.process, Reach::Answers);
                let answered = || console.reached(&peer.process, Reach::Answers);
                if let Some(reach) = ask_while_it_answers(channel, &mut asked, answered).await {
                    console.reached(&peer.process, reach);
                }
            }
            Err(error) => {
                debug!(member = peer.name, %error, "another member cannot be called");
                let reach = if error.is_refused() { Reach::Refused } else { Reach::Silent };
                console.reached(&peer.process, reach);
                // Whoever waits is told now, and not when it has waited long enough.
                while asked.try_recv().is_ok() {}
                sleep(RETRY_AFTER).await;
            }
        }
    }
}

/// Asks what there is to ask, and now and then for a sign of life. Says how the member is reached then, if that is known
/// before it is called again.
async fn ask_while_it_answers(
    mut channel: Channel,
    asked: &mut mpsc::Receiver<Asked>,
    answered: impl Fn(),
) -> Option<Reach> {
    let mut alive = interval(ALIVE_EVERY);
    alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let (question, sender) = tokio::select! {
            () = channel.gone() => return None,
            asked = asked.recv() => {
                let (question, sender) = asked?;
                (question, Some(sender))
            }
            _ = alive.tick() => (Console::sign_of_life(), None),
        };
        match channel.ask(&question, ANSWER_MS_MAX).await {
            Ok(answer) => {
                answered();
                // Whoever asked may not wait any longer.
                let _ = sender.map(|sender| sender.send(answer.to_vec()));
            }
            Err(error) if error.kind() == std::io::ErrorKind::TimedOut => return Some(Reach::Silent),
            Err(_) => return None,
        }
    }
}
