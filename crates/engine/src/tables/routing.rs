//! Where connections would go, and what is odd about the rules.

mod explain;

use std::collections::BTreeSet;

use switchyard_catalog::{Observed, Stage};

pub(crate) use self::explain::{EXPLAIN_ROUTE, ExplainRouteError, RouteQuestion, explain_route};
use super::{Kind, Rows, RowsError, SystemTable, Visibility, column};
use crate::snapshot::Snapshot;

pub(super) const TABLES: &[SystemTable] = &[SystemTable {
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
}];

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

fn stage_name(stage: Stage) -> &'static str {
    match stage {
        Stage::Rule { .. } => "routing rule",
        Stage::Classic => "classic policy",
        Stage::Interior { .. } => "interior rule",
        Stage::Unasked | Stage::Nothing => "none",
    }
}
