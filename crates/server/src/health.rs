//! Looks after the PostgreSQL servers of the cluster, as its settings say.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use switchyard_catalog::NodeId;
use switchyard_console::{Console, Probe, ProbePlan};
use switchyard_proxy::{Probed, Prober, Proof, Server, ServerLogin};
use tokio::task::AbortHandle;
use tokio::time::sleep;
use tracing::warn;

/// How often it is looked whether others are to be looked at.
const SETTLE_EVERY: Duration = Duration::from_millis(200);

/// Looks after them for as long as the console is there.
pub(crate) async fn look_after(console: Weak<Console>) {
    let mut running: HashMap<NodeId, (ProbePlan, AbortHandle)> = HashMap::new();
    while let Some(here) = console.upgrade() {
        let plans = here.probe_plans();
        running.retain(|_, (plan, task)| {
            let stays = plans.contains(plan);
            if !stays {
                task.abort();
            }
            stays
        });
        for plan in plans {
            running.entry(plan.node).or_insert_with(|| {
                let task = tokio::spawn(probe_for_ever(Weak::clone(&console), plan.clone()));
                (plan, task.abort_handle())
            });
        }
        drop(here);
        sleep(SETTLE_EVERY).await;
    }
}

async fn probe_for_ever(console: Weak<Console>, plan: ProbePlan) {
    let Some(mut prober) = prober(&plan) else { return };
    loop {
        let seen = match prober.probe(plan.timeout_ms).await {
            Probed::Answers { in_recovery, lag_ms } => Probe::Answers { in_recovery, lag_ms },
            Probed::Gone(why) => Probe::Gone(why),
            Probed::Silent(why) => Probe::Silent(why),
        };
        let Some(console) = console.upgrade() else { return };
        Arc::clone(&console).probed(plan.node, &seen);
        drop(console);
        tokio::select! {
            () = sleep(Duration::from_millis(plan.interval_ms)) => {}
            // A server that ends is seen at once.
            () = prober.broken() => {}
        }
    }
}

/// Whom the server's URL names logs in. Without one it is only seen whether the server is there.
fn prober(plan: &ProbePlan) -> Option<Prober> {
    let Some(url) = &plan.url else { return Some(Prober::new(Server::new(&plan.host, plan.port), None)) };
    let (server, login) = match Server::of_url(url.reveal()) {
        Ok(read) => read,
        Err(error) => {
            warn!(node = %plan.name, %error, "the node's server cannot be looked at");
            return None;
        }
    };
    let login = login.map(|login| {
        let database = login.database.clone().unwrap_or_else(|| login.user.clone());
        let parameters = [("database", database), ("application_name", "switchyard".to_owned())];
        ServerLogin {
            user: login.user.clone(),
            proof: login.password.as_ref().map(|password| Proof::Password(password.clone())),
            parameters: parameters.map(|(name, value)| (name.to_owned(), value)).into(),
        }
    });
    Some(Prober::new(server, login))
}
