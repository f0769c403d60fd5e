//! What is known of PostgreSQL servers by looking at them: whether they are there, what they are, how far behind.

use switchyard_catalog::{Catalog, Name, Node, NodeId, NodeKind, Secret};
use switchyard_engine::settings;

use crate::Console;

/// How a node's PostgreSQL server is looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbePlan {
    /// The node.
    pub node: NodeId,
    /// Its name.
    pub name: Name,
    /// Where the server is, when no URL says more.
    pub host: String,
    /// The port there.
    pub port: u16,
    /// `postgresql://...`, if there is one.
    pub url: Option<Secret>,
    /// How often, in milliseconds.
    pub interval_ms: u64,
    /// How long an answer may take, in milliseconds.
    pub timeout_ms: u64,
}

/// What looking at a server has shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probe {
    /// It answers.
    Answers {
        /// Whether it is a standby, where that could be asked.
        in_recovery: Option<bool>,
        /// How far a standby is behind, in milliseconds.
        lag_ms: Option<u64>,
    },
    /// Nobody is there: that counts at once.
    Gone(String),
    /// It does not answer, or not as it should.
    Silent(String),
}

/// How often something must be seen until it counts.
#[derive(Debug, Clone, Copy)]
struct Limits {
    rise: u32,
    fall: u32,
    lag_ms_max: Option<u64>,
}

/// How a server has been.
#[derive(Debug, Default)]
pub(crate) struct Health {
    /// What counts now; nothing before the first look.
    shown: Option<(bool, String)>,
    good: u32,
    bad: u32,
}

impl Health {
    pub(crate) fn is_down(&self) -> bool {
        self.shown.as_ref().is_some_and(|(up, _)| !up)
    }

    /// A session could not reach it: it must be seen anew before others try.
    pub(crate) fn failed(&mut self, why: &str) {
        (self.good, self.bad) = (0, 0);
        self.shown = Some((false, why.to_owned()));
    }

    /// Takes in what was seen; what counts from now on, if that is something else than before.
    fn step(&mut self, seen: &Probe, limits: Limits) -> Option<(bool, String)> {
        let at_once = matches!(seen, Probe::Gone(_));
        let now = match seen {
            Probe::Gone(why) | Probe::Silent(why) => (false, format!("its PostgreSQL server does not answer: {why}")),
            Probe::Answers { lag_ms: Some(lag), .. } if limits.lag_ms_max.is_some_and(|most| *lag > most) => {
                let most = limits.lag_ms_max.unwrap_or_default();
                (false, format!("its PostgreSQL server is more than {most} ms behind its primary"))
            }
            Probe::Answers { in_recovery, .. } => {
                let what = in_recovery.map_or("", |standby| if standby { ", as a standby" } else { ", as a primary" });
                (true, format!("its PostgreSQL server answers{what}"))
            }
        };
        (self.good, self.bad) = if now.0 { (self.good.saturating_add(1), 0) } else { (0, self.bad.saturating_add(1)) };
        let enough = match &self.shown {
            None => true,
            Some((was, _)) if *was == now.0 => true,
            Some(_) if now.0 => self.good >= limits.rise,
            Some(_) => at_once || self.bad >= limits.fall,
        };
        // Why somebody is down is what was seen first.
        let same = self.shown.as_ref().is_some_and(|(was, why)| *was == now.0 && (!was || *why == now.1));
        if !enough || same {
            return None;
        }
        self.shown = Some(now.clone());
        Some(now)
    }
}

const INTERVAL: &str = "upstream_probe_interval_ms";

fn number(name: &str, node: NodeId, catalog: &Catalog) -> u64 {
    settings::node_value(name, node, catalog).and_then(|value| value.parse().ok()).unwrap_or_default()
}

fn limits(node: NodeId, catalog: &Catalog) -> Limits {
    let count = |name| u32::try_from(number(name, node, catalog)).unwrap_or(u32::MAX).max(1);
    let lag_ms_max = Some(number("replication_lag_ms_max", node, catalog)).filter(|most| *most > 0);
    Limits { rise: count("upstream_probe_rise"), fall: count("upstream_probe_fall"), lag_ms_max }
}

impl Console {
    /// Which servers are to be looked at now: those that a session was sent to once, and those whose interval was set.
    pub fn probe_plans(&self) -> Vec<ProbePlan> {
        let catalog = self.catalog();
        let wanted = |node: &&std::sync::Arc<Node>| {
            node.is_worker()
                && (self.members.is_looked_after(node.id) || settings::is_set_for_node(INTERVAL, node.id, &catalog))
        };
        let plan = |node: &std::sync::Arc<Node>| {
            let (NodeKind::Member { upstream } | NodeKind::Remote { upstream }) = &node.kind;
            ProbePlan {
                node: node.id,
                name: node.name.clone(),
                host: node.host.clone(),
                port: node.port,
                url: upstream.clone(),
                interval_ms: number(INTERVAL, node.id, &catalog),
                timeout_ms: number("upstream_probe_timeout_ms", node.id, &catalog).max(1),
            }
        };
        catalog.nodes().iter().filter(wanted).map(plan).filter(|plan| plan.interval_ms > 0).collect()
    }

    /// A session has been sent to a node's server, which is looked at from now on. What kept it out counts at once.
    pub(crate) fn look_after(&self, node: &Node, absent: Option<&str>) {
        if number(INTERVAL, node.id, &self.catalog()) > 0 {
            self.members.with_health(node.id, |health| {
                if let Some(why) = absent {
                    health.failed(why);
                }
            });
        }
    }

    /// A server has been looked at.
    pub fn probed(&self, node: NodeId, seen: &Probe) {
        let catalog = self.catalog();
        let Some(node) = catalog.nodes().find(node) else { return };
        let limits = limits(node.id, &catalog);
        if let Some((up, reason)) = self.members.with_health(node.id, |health| health.step(seen, limits)) {
            tracing::info!(node = %node.name, up, reason, "a PostgreSQL server's state has changed");
            self.members.server_is(node, up, &reason);
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may fail")]

    use super::*;

    const LIMITS: Limits = Limits { rise: 2, fall: 3, lag_ms_max: Some(1_000) };

    fn answers(in_recovery: bool, lag_ms: Option<u64>) -> Probe {
        Probe::Answers { in_recovery: Some(in_recovery), lag_ms }
    }

    #[test]
    fn a_server_falls_and_rises_by_its_counts() {
        let mut health = Health::default();
        let mut step = |seen: &Probe| health.step(seen, LIMITS).map(|(up, _)| up);
        let (good, silent, gone) =
            (answers(false, None), Probe::Silent("no answer".to_owned()), Probe::Gone("refused".to_owned()));
        // The first look counts, whatever it shows.
        assert_eq!(step(&good), Some(true));
        assert_eq!([&silent, &silent, &good, &silent, &silent].map(&mut step), [None; 5]);
        assert_eq!(step(&silent), Some(false));
        assert_eq!([&good, &silent, &good].map(&mut step), [None; 3]);
        assert_eq!(step(&good), Some(true));
        assert_eq!(step(&gone), Some(false));
        assert_eq!([&gone, &silent, &good].map(&mut step), [None; 3]);
        assert_eq!(step(&good), Some(true));
    }

    #[test]
    fn a_standby_that_is_far_behind_gets_nobody() {
        let mut health = Health::default();
        assert_eq!(
            health.step(&answers(true, Some(1_000)), LIMITS).unwrap().1,
            "its PostgreSQL server answers, as a standby"
        );
        assert_eq!([1, 2].map(|_| health.step(&answers(true, Some(1_001)), LIMITS)), [None, None]);
        let (up, reason) = health.step(&answers(true, Some(9_000)), LIMITS).unwrap();
        assert!(!up && reason == "its PostgreSQL server is more than 1000 ms behind its primary", "{reason}");
        assert_eq!(health.step(&answers(true, Some(0)), LIMITS), None);
        assert!(health.step(&answers(true, Some(0)), LIMITS).unwrap().0);
        // It is told when a standby has become the primary.
        let (up, reason) = health.step(&answers(false, None), LIMITS).unwrap();
        assert!(up && reason == "its PostgreSQL server answers, as a primary", "{reason}");
        health.failed("a session could not reach it");
        assert!(health.is_down());
    }
}
