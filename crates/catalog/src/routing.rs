//! Which node a connection goes to (`reference/vertica-sql.md` §8).
//!
//! The decision is a function of the catalog, the client's address, the states of the nodes, the turns taken and
//! chance. It does no I/O; who asks tells it all of these.

mod counters;
mod lints;
mod rules;
mod states;
mod targets;
#[cfg(test)]
mod tests;
mod trace;
mod turns;

use std::net::IpAddr;
use std::sync::Arc;

use rand::{Rng, RngExt};

pub use counters::RuleCounters;
pub use lints::{Lint, Observed};
pub(crate) use rules::RuleIndex;
pub use states::{NodeState, NodeStates};
pub(crate) use targets::Targets;
pub use targets::{Family, Target};
pub use trace::{Candidate, RuleVerdict, RulesConsidered, Skip, StageTrace, Trace};
pub use turns::Turns;

use crate::catalog::Catalog;
use crate::entity::*;
use crate::id::*;
use targets::{Fleet, Pool};
use trace::Witness;
use turns::Circle;

/// Who connects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoutingClient {
    /// Where from. IPv4-mapped IPv6 is taken as IPv4.
    pub address: IpAddr,
    /// Whether it asks for load balancing. A connection that was redirected or proxied once does not.
    pub asks: bool,
    /// Whether it can be told to go elsewhere. PostgreSQL clients cannot.
    pub can_be_redirected: bool,
}

/// What the deciding member knows besides the catalog.
#[derive(Debug, Clone, Copy)]
pub struct RoutingView<'a> {
    /// Its own node, if it has one.
    pub here: Option<NodeId>,
    /// Which nodes take connections.
    pub states: &'a NodeStates,
    /// Its round-robin pointers.
    pub turns: &'a Turns,
}

/// Which part of the order decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The client did not ask.
    Unasked,
    /// The most specific routing rule. Nothing else is tried then.
    Rule {
        /// The rule.
        rule: RoutingRuleId,
        /// Its group.
        group: LoadBalanceGroupId,
    },
    /// The classic policy of the whole cluster.
    Classic,
    /// The interior rule of the member's subcluster.
    Interior {
        /// The subcluster.
        subcluster: SubclusterId,
    },
    /// Nothing applies to a member that has no node.
    Nothing,
}

/// Why a connection stays where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StayReason {
    /// The client did not ask.
    NotAsked,
    /// The policy of the rule's group is NONE.
    PolicyNone,
    /// Nobody there can be chosen.
    NoTarget,
    /// Nothing applies.
    Nothing,
}

impl StayReason {
    /// As a half sentence.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotAsked => "the client did not ask for load balancing",
            Self::PolicyNone => "the load balance group's policy is NONE",
            Self::NoTarget => "no target is available",
            Self::Nothing => "nothing applies",
        }
    }
}

/// How a connection gets to its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// It is there: the member chose its own node.
    Own,
    /// The client is told to connect there.
    Redirect,
    /// The member connects there and passes everything on: the client knows no redirect, or no switchyard process
    /// answers there, so that it would meet a protocol it does not speak.
    Proxy,
}

impl Delivery {
    /// As tables show it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Own => "own node",
            Self::Redirect => "redirect",
            Self::Proxy => "proxy",
        }
    }
}

/// Where a connection goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The member handles it.
    Stay(StayReason),
    /// To this target, which may be the member itself.
    Go(Arc<Target>, Delivery),
}

/// What was decided for one connection, and by which version of the catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The version.
    pub version: u64,
    /// The client's address, never a mapped one.
    pub client: IpAddr,
    /// What decided.
    pub stage: Stage,
    /// Where to.
    pub outcome: Outcome,
}

impl Decision {
    /// The target, if there is one.
    pub fn target(&self) -> Option<&Arc<Target>> {
        match &self.outcome {
            Outcome::Stay(_) => None,
            Outcome::Go(target, _) => Some(target),
        }
    }
}

/// Whether a decision takes its turn of a round robin, or only looks whose it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// It is a connection.
    Take,
    /// It is a question.
    Look,
}

/// One decision being made.
struct Deciding<'a, R, W> {
    catalog: &'a Catalog,
    view: &'a RoutingView<'a>,
    family: Family,
    turn: Turn,
    chance: &'a mut R,
    witness: &'a mut W,
}

impl Catalog {
    /// Decides where a connection goes, and takes its turn of the round robin.
    pub fn decide(&self, client: &RoutingClient, view: &RoutingView<'_>, chance: &mut impl Rng) -> Decision {
        self.decide_before(client, view, Turn::Take, chance, &mut ())
    }

    /// The same with all that led to it.
    pub fn decide_and_tell(
        &self,
        client: &RoutingClient,
        view: &RoutingView<'_>,
        turn: Turn,
        chance: &mut impl Rng,
    ) -> Trace {
        let mut stages = Vec::new();
        let decision = self.decide_before(client, view, turn, chance, &mut stages);
        Trace { decision, stages }
    }

    /// Makes ready what decisions in this version need, so that the first one need not wait for it.
    pub fn prepare_decisions(&self) {
        self.targets();
    }

    /// The number of this version's load balancing: 1 when the process starts, and one more with each commit that
    /// touches a node, network address, load balance group, routing rule or what they depend on.
    pub fn balancing_version(&self) -> u64 {
        self.index.balancing_version()
    }

    fn targets(&self) -> &Targets {
        self.index.targets.get_or_init(|| Targets::new(self))
    }

    fn decide_before<W: Witness>(
        &self,
        client: &RoutingClient,
        view: &RoutingView<'_>,
        turn: Turn,
        chance: &mut impl Rng,
        witness: &mut W,
    ) -> Decision {
        let address = client.address.to_canonical();
        let mut deciding = Deciding { catalog: self, view, family: Family::of(address), turn, chance, witness };
        let (stage, chosen) =
            if client.asks { deciding.stage(address) } else { (Stage::Unasked, Err(StayReason::NotAsked)) };
        let outcome = match chosen {
            Ok(target) => {
                let delivery = delivery(&target, client, view);
                Outcome::Go(target, delivery)
            }
            Err(reason) => Outcome::Stay(reason),
        };
        Decision { version: self.version, client: address, stage, outcome }
    }
}

/// By node, not by address: several nodes may share one behind a NAT router.
fn delivery(target: &Target, client: &RoutingClient, view: &RoutingView<'_>) -> Delivery {
    if view.here == Some(target.node) {
        Delivery::Own
    } else if client.can_be_redirected && target.member {
        Delivery::Redirect
    } else {
        Delivery::Proxy
    }
}

type Chosen = Result<Arc<Target>, StayReason>;

impl<R: Rng, W: Witness> Deciding<'_, R, W> {
    /// The order of the reference, §8.1: each stage is tried only if the one before does not apply.
    fn stage(&mut self, address: IpAddr) -> (Stage, Chosen) {
        if let Some(found) = self.catalog.index.rules.find(address) {
            let stage = Stage::Rule { rule: found.rule, group: found.group };
            return (stage, self.by_rule(stage, found.group));
        }
        let database = self.catalog.database();
        if database.policy != Policy::None {
            return (Stage::Classic, self.classic(database.policy));
        }
        let here = self.view.here.and_then(|node| self.catalog.nodes().find(node));
        let Some(subcluster) = here.map(|node| node.subcluster) else {
            return (Stage::Nothing, Err(StayReason::Nothing));
        };
        let stage = Stage::Interior { subcluster };
        (stage, self.interior(stage, subcluster))
    }

    fn by_rule(&mut self, stage: Stage, group: LoadBalanceGroupId) -> Chosen {
        if W::LISTENS {
            let Some(group) = self.catalog.load_balance_groups().find(group) else { return Err(StayReason::NoTarget) };
            self.witness.stage(stage, group.policy);
            let targets = Fleet::new(self.catalog).targets_of_group(group, self.family, self.witness);
            return self.choose(&targets, group.policy, group.id.0);
        }
        let Some((policy, pool)) = self.catalog.targets().group(group) else { return Err(StayReason::NoTarget) };
        self.choose(pool.targets(self.family), policy, group.0)
    }

    fn classic(&mut self, policy: Policy) -> Chosen {
        let circle = self.catalog.database().id;
        if W::LISTENS {
            self.witness.stage(Stage::Classic, policy);
            let targets = Fleet::new(self.catalog).classic_targets(self.family, self.witness);
            return self.choose(&targets, policy, circle);
        }
        self.choose(self.catalog.targets().classic().targets(self.family), policy, circle)
    }

    fn interior(&mut self, stage: Stage, subcluster: SubclusterId) -> Chosen {
        let policy = Policy::RoundRobin;
        if W::LISTENS {
            self.witness.stage(stage, policy);
            let targets = Fleet::new(self.catalog).interior_targets(subcluster, self.family, self.witness);
            return self.choose(&targets, policy, subcluster.0);
        }
        let pool = self.catalog.targets().interior(subcluster);
        self.choose(pool.map_or(&[], |pool: &Pool| pool.targets(self.family)), policy, subcluster.0)
    }

    /// One of those that are up.
    fn choose(&mut self, targets: &[Arc<Target>], policy: Policy, circle: u64) -> Chosen {
        if W::LISTENS {
            self.tell_states(targets);
        }
        let chosen = match policy {
            Policy::None => return Err(StayReason::PolicyNone),
            Policy::Random => self.any_of(targets),
            Policy::RoundRobin => self.next_of(targets, Circle { of: circle, family: self.family }),
        };
        let target = chosen.ok_or(StayReason::NoTarget)?;
        self.witness.chose(target);
        Ok(Arc::clone(target))
    }

    fn any_of<'t>(&mut self, targets: &'t [Arc<Target>]) -> Option<&'t Arc<Target>> {
        let states = self.view.states;
        let mut up = targets.iter().filter(|target| states.is_up(target.node));
        let count = up.clone().count();
        if count == 0 { None } else { up.nth(self.chance.random_range(0..count)) }
    }

    fn next_of<'t>(&self, targets: &'t [Arc<Target>], circle: Circle) -> Option<&'t Arc<Target>> {
        let after = |last| next_up(targets, last, self.view.states);
        match self.turn {
            Turn::Take => self.view.turns.take(circle, self.catalog, after),
            Turn::Look => after(self.view.turns.last(circle)),
        }
    }

    fn tell_states(&mut self, targets: &[Arc<Target>]) {
        for target in targets {
            match self.view.states.state(target.node) {
                NodeState::Up => self.witness.available(target),
                NodeState::Draining => self.witness.skipped(Candidate::from(&**target), Skip::Draining),
                NodeState::Down => self.witness.skipped(Candidate::from(&**target), Skip::Down),
            }
        }
    }
}

/// The first that is up behind the node that had the last turn. That one may be gone from the list.
fn next_up<'a>(targets: &'a [Arc<Target>], last: NodeId, states: &NodeStates) -> Option<&'a Arc<Target>> {
    let behind = targets.iter().position(|target| target.node == last).map(|place| place + 1);
    let start = behind.or_else(|| targets.iter().position(|target| target.node > last)).unwrap_or(0);
    let (before, behind) = targets.split_at_checked(start)?;
    behind.iter().chain(before).find(|target| states.is_up(target.node))
}
