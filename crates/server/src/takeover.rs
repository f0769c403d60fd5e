//! A start that replaces a process that still runs: it waits for what only one process can have at a time.

use std::time::Duration;

use switchyard_store::OpenError;
use switchyard_store::membership::JoinError;
use tokio::time::{Instant, sleep};
use tracing::info;

use crate::settings::Settings;

/// Between two attempts.
const RETRY_AFTER: Duration = Duration::from_millis(50);

/// How long there is to wait.
pub(crate) struct Takeover {
    /// None when nobody is to be replaced.
    pub(crate) wait_max: Option<Duration>,
    began: Instant,
}

impl Takeover {
    /// From now on.
    pub(crate) fn new(settings: &Settings) -> Self {
        let wait_max = Some(Duration::from_millis(settings.takeover_ms_max.0)).filter(|wait| !wait.is_zero());
        Self { wait_max, began: Instant::now() }
    }

    /// Tries until it is no longer the process that is to be replaced that stands in the way, or the time is over.
    ///
    /// # Errors
    /// Those of the last attempt.
    pub(crate) async fn retry<T>(&self, attempt: impl AsyncFn() -> anyhow::Result<T>) -> anyhow::Result<T> {
        let mut said = false;
        loop {
            let error = match attempt().await {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            if !is_in_use(&error) || self.wait_max.is_none_or(|wait_max| self.began.elapsed() >= wait_max) {
                return Err(error);
            }
            if !std::mem::replace(&mut said, true) {
                info!(reason = format!("{error:#}"), "waiting for the process that this one replaces");
            }
            sleep(RETRY_AFTER).await;
        }
    }
}

/// Whether another process has what is wanted.
fn is_in_use(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        matches!(cause.downcast_ref(), Some(OpenError::Locked { .. }))
            || matches!(cause.downcast_ref(), Some(JoinError::Taken { .. }))
    })
}
