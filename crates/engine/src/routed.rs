//! What was decided for a connection, as `switchyard.routing_decisions` shows it.

use std::net::SocketAddr;
use std::sync::Arc;

use rand::SeedableRng;
use rand::rngs::StdRng;
use switchyard_catalog::{
    Catalog, Decision, NodeId, NodeStates, Outcome, RoutingClient, RoutingView, Stage, StageTrace, Turn, Turns,
};

/// How many candidates of one decision are told.
const CANDIDATES_MAX: usize = 100;

/// Who could be chosen, and who could not and why, by node and address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Candidates {
    /// Who could.
    pub available: Vec<String>,
    /// Who could not, each with the reason.
    pub skipped: Vec<String>,
}

/// From what the candidates are known.
#[derive(Debug, Clone)]
enum Known {
    /// By looking again at the catalog and the states that decided.
    Anew { here: Option<NodeId>, catalog: Arc<Catalog>, states: Arc<NodeStates> },
    /// They were found when the catalog was given up.
    Found(Candidates),
}

/// A connection that a load-balance decision was made for. Names are those of then.
#[derive(Debug, Clone)]
pub struct RoutedConnection {
    /// Unique in the process, rising.
    pub number: u64,
    /// Microseconds since 1970-01-01 UTC.
    pub time_us: i64,
    /// The member that decided.
    pub member: String,
    /// The client's address and port.
    pub client: SocketAddr,
    /// What was decided.
    pub decision: Decision,
    /// The routing rule, if one decided.
    pub rule: Option<String>,
    /// Its load balance group.
    pub group: Option<String>,
    /// How one was chosen; none when nobody was to be.
    pub policy: Option<&'static str>,
    /// The node that was chosen, if one was.
    pub target_node: Option<String>,
    known: Known,
}

impl RoutedConnection {
    /// What the member whose node is `here` decided at that time on this catalog and these states.
    pub fn new(
        (number, time_us): (u64, i64),
        client: SocketAddr,
        decision: Decision,
        here: Option<NodeId>,
        catalog: Arc<Catalog>,
        states: Arc<NodeStates>,
    ) -> Self {
        let node = |id| catalog.nodes().find(id).map(|node| node.name.to_string());
        let (rule, group) = match decision.stage {
            Stage::Rule { rule, group } => {
                (catalog.routing_rules().find(rule), catalog.load_balance_groups().find(group))
            }
            _ => (None, None),
        };
        let policy = match decision.stage {
            Stage::Rule { .. } => group.map(|group| group.policy),
            Stage::Classic => Some(catalog.database().policy),
            Stage::Interior { .. } => Some(switchyard_catalog::Policy::RoundRobin),
            Stage::Unasked | Stage::Nothing => None,
        };
        Self {
            number,
            time_us,
            member: here.and_then(node).unwrap_or_default(),
            client,
            rule: rule.map(|rule| rule.name.to_string()),
            group: group.map(|group| group.name.to_string()),
            policy: policy.map(|policy| policy.as_str()),
            target_node: decision.target().and_then(|target| node(target.node)),
            decision,
            known: Known::Anew { here, catalog, states },
        }
    }

    /// How it ended, and why the connection stayed where it did.
    pub fn outcome(&self) -> (&'static str, Option<&'static str>) {
        match &self.decision.outcome {
            Outcome::Stay(reason) => ("stay", Some(reason.as_str())),
            Outcome::Go(_, delivery) => (delivery.as_str(), None),
        }
    }

    /// Who was there to choose from.
    pub fn candidates(&self) -> Candidates {
        match &self.known {
            Known::Found(candidates) => candidates.clone(),
            Known::Anew { here, catalog, states } => look(&self.decision, *here, catalog, states),
        }
    }

    /// The same without the catalog.
    #[must_use]
    pub fn without_catalog(&self) -> Self {
        Self { known: Known::Found(self.candidates()), ..self.clone() }
    }

    /// Whether it keeps a catalog.
    pub fn has_catalog(&self) -> bool {
        matches!(self.known, Known::Anew { .. })
    }
}

fn look(decision: &Decision, here: Option<NodeId>, catalog: &Catalog, states: &NodeStates) -> Candidates {
    let asks = decision.stage != Stage::Unasked;
    let client = RoutingClient { address: decision.client, asks, can_be_redirected: true };
    let view = RoutingView { here, states, turns: &Turns::default() };
    // What chance says is not looked at.
    let trace = catalog.decide_and_tell(&client, &view, Turn::Look, &mut StdRng::seed_from_u64(0));
    trace.stages.last().map(|stage| of_stage(catalog, stage)).unwrap_or_default()
}

fn of_stage(catalog: &Catalog, stage: &StageTrace) -> Candidates {
    let node = |id| catalog.nodes().find(id).map_or("", |node| node.name.as_str());
    let available =
        stage.available.iter().map(|target| format!("{} {}:{}", node(target.node), target.host, target.port));
    let skipped = stage.skipped.iter().map(|(candidate, skip)| match &candidate.place {
        Some((host, port)) => format!("{} {host}:{port}: {}", node(candidate.node), skip.as_str()),
        None => format!("{}: {}", node(candidate.node), skip.as_str()),
    });
    Candidates { available: bounded(available), skipped: bounded(skipped) }
}

fn bounded(told: impl ExactSizeIterator<Item = String>) -> Vec<String> {
    let more = told.len().saturating_sub(CANDIDATES_MAX);
    let more = (more > 0).then(|| format!("and {more} more"));
    told.take(CANDIDATES_MAX).chain(more).collect()
}
