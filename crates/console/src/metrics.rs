//! What a member counts, in the form that Prometheus reads.

use std::fmt::{Display, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dashmap::DashMap;
use switchyard_catalog::{Catalog, Decision, Outcome, RoutingRuleId, Stage};

use crate::Console;
use crate::live::now_us;

/// The upper bounds of the histograms' buckets, in microseconds.
const BOUNDS_US: [u64; 12] =
    [500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 5_000_000];

/// How many events took how long.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    buckets: [AtomicU64; BOUNDS_US.len()],
    count: AtomicU64,
    sum_us: AtomicU64,
}

impl Histogram {
    pub(crate) fn note(&self, took: Duration) {
        let took_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        for (bucket, _) in self.buckets.iter().zip(BOUNDS_US).filter(|(_, bound_us)| took_us <= *bound_us) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.sum_us.fetch_add(took_us, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
    }
}

/// What no table counts.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// Connections that were accepted.
    pub(crate) connections: AtomicU64,
    /// Those that became sessions.
    pub(crate) sessions: AtomicU64,
    /// Those that did not, by cause.
    pub(crate) failures: DashMap<&'static str, u64>,
    /// Decisions by rule, or by the part of the order that decided, and by outcome.
    decisions: DashMap<(Option<RoutingRuleId>, &'static str, &'static str), u64>,
    /// Commits by outcome.
    pub(crate) commits: DashMap<&'static str, u64>,
    /// How long commits took.
    pub(crate) commit_time: Histogram,
    /// How long it took to take over what another member committed, once the store told of it.
    pub(crate) follow_time: Histogram,
    /// How long the store took to tell this member of its own commits.
    watch_time: Histogram,
}

impl Metrics {
    pub(crate) fn decided(&self, decision: &Decision) {
        let outcome = match &decision.outcome {
            Outcome::Stay(_) => "stay",
            Outcome::Go(_, delivery) => delivery.as_str(),
        };
        let (rule, stage) = match decision.stage {
            Stage::Rule { rule, .. } => (Some(rule), "routing rule"),
            Stage::Classic => (None, "classic policy"),
            Stage::Interior { .. } => (None, "interior rule"),
            Stage::Unasked | Stage::Nothing => (None, "nothing"),
        };
        *self.decisions.entry((rule, stage, outcome)).or_default() += 1;
    }

    pub(crate) fn count(counts: &DashMap<&'static str, u64>, what: &'static str) {
        *counts.entry(what).or_default() += 1;
    }
}

impl Console {
    /// Everything that is counted, as Prometheus reads it.
    pub fn metrics(&self) -> String {
        let catalog = self.catalog();
        let mut page = Page(String::new());
        self.put_clients(&mut page);
        self.put_fleet(&mut page, &catalog);
        let metrics = &self.metrics;
        page.family(
            "switchyard_decisions_total",
            "counter",
            "Load-balance decisions for connections, by what decided and outcome.",
        );
        let mut decisions: Vec<_> = metrics.decisions.iter().map(|entry| (*entry.key(), *entry.value())).collect();
        decisions.sort_unstable();
        for ((rule, stage, outcome), count) in decisions {
            let rule = rule.and_then(|rule| catalog.routing_rules().find(rule).map(|rule| rule.name.to_string()));
            let labels = [("rule", rule.as_deref().unwrap_or_default()), ("stage", stage), ("outcome", outcome)];
            page.sample("switchyard_decisions_total", &labels, count);
        }
        page.by(
            "switchyard_commits_total",
            "outcome",
            "Commits of this member, by what came of them.",
            &metrics.commits,
        );
        page.histogram("switchyard_commit_seconds", "How long commits took.", &metrics.commit_time);
        self.store.watch_times().into_iter().for_each(|took| metrics.watch_time.note(took));
        page.histogram(
            "switchyard_watch_seconds",
            "How long after this member sent a commit the store told it of it, as it tells all others.",
            &metrics.watch_time,
        );
        page.histogram(
            "switchyard_follow_seconds",
            "How long taking over another member's commits took, once the store told of them.",
            &metrics.follow_time,
        );
        page.0
    }

    fn put_clients(&self, page: &mut Page) {
        let metrics = &self.metrics;
        let work = self.live.query_log.counters.work(now_us(), self.context.registry.logins());
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        page.one("switchyard_connections_total", "counter", "Connections accepted.", of(&metrics.connections));
        page.one("switchyard_sessions_total", "counter", "Sessions begun.", of(&metrics.sessions));
        page.one("switchyard_sessions", "gauge", "Sessions open.", self.context.registry.len());
        page.one("switchyard_logins", "gauge", "Logins under way.", work.logins);
        page.by(
            "switchyard_login_failures_total",
            "cause",
            "Connections that did not become sessions.",
            &metrics.failures,
        );
        page.one("switchyard_statements_total", "counter", "Statements that ended.", work.total.statements);
        page.one("switchyard_transactions_total", "counter", "Transactions that ended.", work.total.transactions);
        page.one("switchyard_received_bytes_total", "counter", "Bytes that clients sent.", work.total.received_bytes);
        page.one("switchyard_sent_bytes_total", "counter", "Bytes that clients were sent.", work.total.sent_bytes);
    }

    fn put_fleet(&self, page: &mut Page, catalog: &Catalog) {
        let states = self.members.states();
        page.one(
            "switchyard_catalog_version",
            "gauge",
            "The newest version that this member knows.",
            catalog.version(),
        );
        page.family("switchyard_node_up", "gauge", "Whether this member takes the node to be up.");
        for node in catalog.nodes().iter() {
            page.sample("switchyard_node_up", &[("node", node.name.as_str())], u8::from(states.is_up(node.id)));
        }
        page.family("switchyard_node_draining", "gauge", "Whether the node takes no new connections.");
        for node in catalog.nodes().iter() {
            page.sample("switchyard_node_draining", &[("node", node.name.as_str())], u8::from(node.draining));
        }
    }

    /// Why this member takes no new connections, if it does not.
    pub fn not_ready(&self) -> Option<&'static str> {
        if *self.shutdown.borrow() {
            return Some("it is stopping");
        }
        if self.members.displaced_by().is_some() {
            return Some("another process has its name");
        }
        let Some(node) = self.node_id else { return Some("it has no node") };
        if !self.members.states().is_up(node) {
            return Some("it is stopped");
        }
        let catalog = self.catalog();
        catalog.nodes().find(node).filter(|node| node.draining).map(|_| "it is draining")
    }
}

/// Prometheus' text format.
struct Page(String);

impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string cannot fail.
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0.push_str(name);
        for (index, (label, text)) in labels.iter().enumerate() {
            let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.0, "{}{label}=\"{text}\"", if index == 0 { '{' } else { ',' });
        }
        let _ = writeln!(self.0, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }

    fn by(&mut self, name: &str, label: &str, help: &str, counts: &DashMap<&'static str, u64>) {
        self.family(name, "counter", help);
        let mut counts: Vec<_> = counts.iter().map(|entry| (*entry.key(), *entry.value())).collect();
        counts.sort_unstable();
        for (what, count) in counts {
            self.sample(name, &[(label, what)], count);
        }
    }

    fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) {
        self.family(name, "histogram", help);
        let count = histogram.count.load(Ordering::Relaxed);
        for (bucket, bound_us) in histogram.buckets.iter().zip(BOUNDS_US) {
            let bound = seconds(bound_us);
            self.sample(&format!("{name}_bucket"), &[("le", &bound)], bucket.load(Ordering::Relaxed));
        }
        self.sample(&format!("{name}_bucket"), &[("le", "+Inf")], count);
        self.sample(&format!("{name}_sum"), &[], seconds(histogram.sum_us.load(Ordering::Relaxed)));
        self.sample(&format!("{name}_count"), &[], count);
    }
}

fn seconds(us: u64) -> String {
    let text = format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_counts_what_is_below_each_bound() {
        let histogram = Histogram::default();
        for us in [400, 500, 2_000, 60_000_000] {
            histogram.note(Duration::from_micros(us));
        }
        let mut page = Page(String::new());
        page.histogram("t", "h", &histogram);
        let lines: Vec<&str> = page.0.lines().collect();
        assert_eq!(lines.first(), Some(&"# HELP t h"));
        for line in [
            "t_bucket{le=\"0.0005\"} 2",
            "t_bucket{le=\"0.0025\"} 3",
            "t_bucket{le=\"5\"} 3",
            "t_bucket{le=\"+Inf\"} 4",
            "t_sum 60.0029",
            "t_count 4",
        ] {
            assert!(lines.contains(&line), "{line} is not in {lines:#?}");
        }
    }

    #[test]
    fn labels_are_quoted() {
        let mut page = Page(String::new());
        page.sample("t", &[("a", "x\"y\\z\n"), ("b", "")], 1);
        assert_eq!(page.0, "t{a=\"x\\\"y\\\\z\\n\",b=\"\"} 1\n");
    }
}
