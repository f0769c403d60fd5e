//! Where connections would go, and what is odd about the rules.

mod explain;

use std::collections::BTreeSet;

use switchyard_catalog::{Observed, Stage};

pub(crate) use self::explain::{EXPLAIN_ROUTE, ExplainRouteError, RouteQuestion, explain_route};
use super::{Cell, Kind, Rows, RowsError, SystemTable, Visibility, column};
use crate::routed::Candidates;
use crate::snapshot::Snapshot;

pub(super) const TABLES: &[SystemTable] = &[
    SystemTable {
        schema: "switchyard",
        name: "rule_lints",
        description: "What is odd about routing rules, workload rules and network addresses: allowed, and probably not meant.",
        columns: &[
            column("lint", Kind::Varchar, "shadowed, overlapping, unreachable, no live target and others."),
            column("object_type", Kind::Varchar, "routing rule, workload rule or network address."),
            column("object_name", Kind::Varchar, "Its name."),
            column("detail", Kind::Varchar, "What is odd."),
            column("hint", Kind::Varchar, "What can be done."),
        ],
        visibility: Visibility::All,
        rows: rule_lints,
    },
    SystemTable {
        schema: "switchyard",
        name: "rule_counters",
        description: "How often each routing rule decided on the members of this process since it started.",
        columns: &[
            column("rule_name", Kind::Varchar, "The rule."),
            column("rule_id", Kind::Int, "Its id."),
            column("source_address", Kind::Varchar, "Its network, as typed."),
            column("decisions", Kind::Int, "For how many connections it decided."),
        ],
        visibility: Visibility::All,
        rows: rule_counters,
    },
    SystemTable {
        schema: "switchyard",
        name: "routing_decisions",
        description: "The last 1,000 load-balance decisions of the members of this process, the oldest first. Names are those of then.",
        columns: &[
            column("decision_number", Kind::Int, "Rising, from 1 when the process starts."),
            column("decided_at", Kind::Timestamptz, "When."),
            column("member_name", Kind::Varchar, "The node of the member that decided."),
            column("client_address", Kind::Varchar, "Where the client is."),
            column("client_port", Kind::Int, "Its port."),
            column("catalog_version", Kind::Int, "The version of the catalog that decided."),
            column("stage", Kind::Varchar, "routing rule, classic policy, interior rule or none."),
            column("rule_name", Kind::Varchar, "The routing rule."),
            column("group_name", Kind::Varchar, "Its load balance group."),
            column("policy", Kind::Varchar, "How one was chosen."),
            column("outcome", Kind::Varchar, "redirect, proxy, own node or stay."),
            column("node_name", Kind::Varchar, "The node that was chosen."),
            column("address", Kind::Varchar, "Its address."),
            column("port", Kind::Int, "Its port."),
            column("reason", Kind::Varchar, "Why the connection stayed."),
            column("candidates", Kind::TextArray, "Who could be chosen."),
            column("skipped", Kind::TextArray, "Who could not, and why."),
        ],
        visibility: Visibility::Superuser,
        rows: routing_decisions,
    },
];

fn rule_lints(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    let states = snapshot.node_states();
    let up = snapshot.live.node_events.iter().filter(|event| event.state == "UP");
    let ever_up: BTreeSet<_> = up.map(|event| event.node).collect();
    let observed = Observed { states: &states, ever_up: &ever_up, counters: Some(&snapshot.live.rule_counters) };
    for lint in snapshot.catalog.lints(&observed) {
        let (object_type, name) = lint.subject();
        rows.push([
            lint.kind().into(),
            object_type.into(),
            name.as_str().into(),
            lint.to_string().into(),
            lint.hint().into(),
        ])?;
    }
    Ok(())
}

fn rule_counters(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    for rule in snapshot.catalog.routing_rules().iter() {
        rows.push([
            rule.name.as_str().into(),
            rule.id.as_i64().into(),
            rule.source.typed.as_str().into(),
            snapshot.live.rule_counters.count(rule.id).into(),
        ])?;
    }
    Ok(())
}

fn routing_decisions(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    for routed in &snapshot.live.routed {
        let (outcome, reason) = routed.outcome();
        let Candidates { available, skipped } = routed.candidates();
        let target = routed.decision.target();
        rows.push([
            routed.number.into(),
            Cell::Time(routed.time_us),
            routed.member.as_str().into(),
            routed.decision.client.to_string().into(),
            routed.client.port().into(),
            routed.decision.version.into(),
            stage_name(routed.decision.stage).into(),
            routed.rule.as_deref().into(),
            routed.group.as_deref().into(),
            routed.policy.into(),
            outcome.into(),
            routed.target_node.as_deref().into(),
            target.map(|target| target.host.to_string()).into(),
            target.map(|target| target.port).into(),
            reason.into(),
            available.into(),
            skipped.into(),
        ])?;
    }
    Ok(())
}

pub(super) fn stage_name(stage: Stage) -> &'static str {
    match stage {
        Stage::Rule { .. } => "routing rule",
        Stage::Classic => "classic policy",
        Stage::Interior { .. } => "interior rule",
        Stage::Unasked | Stage::Nothing => "none",
    }
}
