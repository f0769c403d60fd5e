//! What functions of a query do besides answering. They note it, and the console does it when it has the rows that came
//! with it: a query that fails does nothing.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::Warning;
use crate::session_state::SessionChange;

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// `set_config`.
    Change(SessionChange),
    /// `pg_cancel_backend`: the session stops what it does.
    Cancel(i32),
    /// `pg_terminate_backend`: the session ends.
    Terminate(i32),
    /// `pg_notify`.
    Notify {
        /// The channel.
        channel: String,
        /// What is said.
        payload: String,
    },
    /// The client is told.
    Warn(Warning),
}

/// How many there can be between two portions of a result.
const EFFECTS_MAX: usize = 10_000;

/// What is to be done, in order.
#[derive(Debug, Default)]
pub struct Effects(Mutex<Vec<Effect>>);

impl Effects {
    fn locked(&self) -> MutexGuard<'_, Vec<Effect>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes one; false when there are too many.
    pub fn push(&self, effect: Effect) -> bool {
        let mut effects = self.locked();
        let room = effects.len() < EFFECTS_MAX;
        if room {
            effects.push(effect);
        }
        room
    }

    /// What `set_config` has changed of a setting so far.
    pub(crate) fn changed(&self, setting: &str) -> Option<String> {
        self.locked().iter().rev().find_map(|effect| match effect {
            Effect::Change(SessionChange::Set { name, value, .. }) if *name == setting => Some(value.clone()),
            _ => None,
        })
    }

    /// Takes all.
    pub fn take(&self) -> Vec<Effect> {
        std::mem::take(&mut *self.locked())
    }
}
