//! Keeps the certificate up with its files.

use std::sync::Arc;
use std::time::Duration;

use switchyard_session::{Reload, Tls};
use tokio::time::{MissedTickBehavior, interval};
use tracing::{info, warn};

/// How often the files are looked at: they are small, and mostly in the system's cache.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Looks at the files for as long as the process runs.
pub(crate) async fn watch(tls: Arc<Tls>) {
    let mut clock = interval(LOOK_EVERY);
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        clock.tick().await;
        let looked_at = Arc::clone(&tls);
        // Ends early only when the process does.
        let Ok(reload) = tokio::task::spawn_blocking(move || looked_at.reload()).await else { return };
        match reload {
            Reload::Unchanged => {}
            Reload::Loaded => {
                let status = tls.status();
                info!(
                    path = %status.options.certificate.display(),
                    subject = status.certificate.subject,
                    serial = status.certificate.serial,
                    "certificate loaded"
                );
            }
            Reload::Kept(error) => {
                warn!(%error, "the certificate files have changed and are of no use: the old ones stay")
            }
        }
    }
}
