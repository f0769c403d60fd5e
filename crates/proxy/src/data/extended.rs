//! Statements of ours in the extended protocol: which of the client's statements and portals they are.

use std::collections::BTreeSet;

use switchyard_wire::upstream as protocol;

use super::flow::Shown;
use super::{Data, End, Own, Step};

/// The client's statements and portals that the console answers.
#[derive(Debug, Default)]
pub(super) struct Ours {
    statements: BTreeSet<Vec<u8>>,
    portals: BTreeSet<Vec<u8>>,
    /// Whether the console has answered something since the last Sync.
    answered: bool,
}

/// The texts at the start of a message.
fn texts(body: &[u8]) -> (&[u8], &[u8]) {
    let mut parts = body.splitn(3, |byte| *byte == 0);
    (parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
}

impl<O: Own> Data<O> {
    pub(super) async fn look_at_extended(&mut self) -> Step {
        let Some((kind, body)) = self.flow.message() else { return Err(End) };
        let ours = match kind {
            b'P' => return self.parse().await,
            b'B' => {
                let (portal, statement) = texts(body);
                let is_ours = self.has(|ours| ours.statements.contains(statement));
                let portal = portal.to_vec();
                self.note(|ours| {
                    if is_ours {
                        ours.portals.insert(portal)
                    } else {
                        ours.portals.remove(&portal)
                    };
                });
                is_ours
            }
            b'E' => {
                let (portal, _) = texts(body);
                self.has(|ours| ours.portals.contains(portal))
            }
            b'D' | b'C' => {
                let (name, _) = texts(body.get(1..).unwrap_or_default());
                let portal = body.first() == Some(&b'P');
                let is_ours = self.has(|ours| if portal { &ours.portals } else { &ours.statements }.contains(name));
                if kind == b'C' {
                    let name = name.to_vec();
                    self.note(|ours| {
                        if portal {
                            ours.portals.remove(&name)
                        } else {
                            ours.statements.remove(&name)
                        };
                    });
                }
                is_ours
            }
            b'S' => return self.sync().await,
            _ => false,
        };
        if ours {
            return self.answer_extended().await;
        }
        self.flow.passes = true;
        Ok(())
    }

    fn has(&self, is: impl FnOnce(&Ours) -> bool) -> bool {
        self.ours.as_deref().is_some_and(is)
    }

    fn note(&mut self, change: impl FnOnce(&mut Ours)) {
        if let Some(ours) = &mut self.ours {
            change(ours);
        }
    }

    async fn parse(&mut self) -> Step {
        let Some((_, body)) = self.flow.message() else { return Err(End) };
        let (name, text) = texts(body);
        let (name, text) = (name.to_vec(), String::from_utf8_lossy(text).into_owned());
        let (pieces, custom) = self.own.cut(&text);
        self.note_custom(custom);
        if !matches!(pieces.as_slice(), [piece] if piece.ours) {
            self.note(|ours| {
                ours.statements.remove(&name);
            });
            self.flow.passes = true;
            return Ok(());
        }
        self.ours.get_or_insert_default().statements.insert(name);
        self.flow.watches = true;
        self.answer_extended().await
    }

    /// Has the console answer the next message, after what the server was asked for before it.
    async fn answer_extended(&mut self) -> Step {
        // Those of the batches before are the client's to see.
        self.until_answered().await?;
        if self.flow.batch {
            self.flow.failed = self.flow.mistaken;
            self.flow.shown = Shown::NotReady;
            self.flow.batch = false;
            self.flow.ask(1, protocol::sync);
            let settled = self.until_settled().await;
            self.flow.shown = Shown::All;
            settled?;
            if self.flow.failed {
                self.flow.skips = true;
                return Ok(());
            }
        }
        let Some((kind, body)) = self.flow.take_message() else { return Err(End) };
        if self.flow.status == b'E' && kind != b'C' {
            let refused = self.own.in_failed_transaction();
            self.flow.out().extend_from_slice(&refused);
            self.flow.skips = true;
            return Ok(());
        }
        self.note(|ours| ours.answered = true);
        if self.answer(kind, &body).await? {
            // The console waits for Sync as well.
            let _ = self.own.answer(b'S', &[]).await;
            self.note(|ours| ours.answered = false);
            self.flow.skips = true;
        }
        Ok(())
    }

    async fn sync(&mut self) -> Step {
        if !self.has(|ours| ours.answered) {
            self.flow.passes = true;
            return Ok(());
        }
        self.note(|ours| {
            ours.answered = false;
            ours.portals.clear();
        });
        let failed = self.answer(b'S', &[]).await?;
        if self.flow.batch && !failed {
            self.flow.passes = true;
        } else {
            let _sync = self.flow.take_message();
            self.ready();
        }
        // Most drivers forget a statement that they ran once.
        let forgets = self.has(|ours| ours.statements.iter().all(Vec::is_empty));
        if forgets && !self.has(|ours| ours.statements.contains(&Vec::new()[..])) {
            self.ours = None;
            // Sync is not looked at any more: it would not take leave to pass, but the next message.
            (self.flow.watches, self.flow.passes) = (false, false);
        }
        Ok(())
    }
}
