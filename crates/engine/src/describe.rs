//! What DESCRIBE_LOAD_BALANCE_DECISION says, line by line (`reference/vertica-sql.md` §5.3). Lines that are known from
//! the vendor are kept word for word: there are clients that read them.

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use switchyard_catalog::{Catalog, Outcome, RoutingRule, RuleVerdict, Stage, StageTrace, StayReason, Target, Trace};

/// How many rules that do not match are listed; of more there is one line with their number.
const RULES_LISTED_MAX: usize = 1_000;

/// The lines for a decision on this address, as it was typed.
pub fn describe(catalog: &Catalog, typed: &str, trace: &Trace) -> String {
    let mut lines = vec![
        format!("Describing load balance decision for address [{typed}]"),
        format!("Load balance cache internal version id (node-local): [{}]", catalog.balancing_version()),
    ];
    rules(catalog, trace, &mut lines);
    match trace.decision.stage {
        Stage::Rule { .. } => by_rule(catalog, trace, &mut lines),
        _ => without_rule(catalog, trace, &mut lines),
    }
    lines.join("\n")
}

fn rules(catalog: &Catalog, trace: &Trace, lines: &mut Vec<String>) {
    let considered = catalog.rules_considered(trace.decision.client, RULES_LISTED_MAX);
    let line = |rule: &RoutingRule, result: &str| {
        format!("Considered rule [{}] source ip filter [{}]... {result}", rule.name, rule.source.typed)
    };
    for (rule, verdict) in &considered.rules {
        if *verdict != RuleVerdict::NoMatch {
            break;
        }
        lines.push(line(rule, "input address does not match source ip filter for this rule."));
    }
    if considered.unlisted_before > 0 {
        lines.push(format!(
            "Considered {} more rules... input address does not match source ip filter for any of them.",
            considered.unlisted_before
        ));
    }
    if let Some(rule) = &considered.applied {
        lines.push(line(rule, "input address matches this rule"));
    }
}

fn by_rule(catalog: &Catalog, trace: &Trace, lines: &mut Vec<String>) {
    let Some(stage) = trace.stages.last() else { return };
    if let Stage::Rule { group, .. } = stage.stage
        && let Some(group) = catalog.load_balance_groups().find(group)
    {
        lines.push(format!(
            "Matched to load balance group [{}] the group has policy [{}] number of addresses [{}]",
            group.name,
            group.policy.as_str(),
            stage.available.len()
        ));
    }
    for (index, target) in stage.available.iter().enumerate() {
        lines.push(format!("({index}) LB Address: [{}]:{}", target.host, target.port));
    }
    if let Outcome::Go(..) = &trace.decision.outcome {
        lines.extend(stage.chosen.map(|index| format!("Chose address at position [{index}]")));
    }
    lines.push(match &trace.decision.outcome {
        Outcome::Go(target, _) => success("Routing table decision", target),
        Outcome::Stay(StayReason::PolicyNone) => "Routing table decision: The policy of the matched group is NONE; \
                                                  connection stays on the current node."
            .to_owned(),
        Outcome::Stay(_) => "Routing table decision: No available targets in the matched group; connection stays on \
                             the current node."
            .to_owned(),
    });
}

fn without_rule(catalog: &Catalog, trace: &Trace, lines: &mut Vec<String>) {
    let details = if catalog.routing_rules().is_empty() {
        "No routing rules defined"
    } else {
        "Tried some rules but no matching"
    };
    lines.push(format!(
        "Routing table decision: No matching routing rules: input address does not match any routing rule source \
         filters. Details: [{details}]"
    ));
    lines.push("No rules matched. Falling back to classic load balancing.".to_owned());
    let target = trace.decision.target();
    match (trace.decision.stage, target) {
        (Stage::Classic, Some(target)) => lines.push(success("Classic load balance decision", target)),
        (stage, target) => {
            lines.push(
                "Classic load balance decision: Classic load balancing considered, but either the policy was NONE or \
                 no target was available. Details: [NONE or invalid]"
                    .to_owned(),
            );
            if let (Stage::Interior { .. }, Some(target)) = (stage, target) {
                lines.push(success("Default subcluster interior load balance decision", target));
            }
        }
    }
}

fn success(what: impl fmt::Display, target: &Arc<Target>) -> String {
    format!("{what}: Success. Load balance redirect to: [{}] port [{}]", target.host, target.port)
}

/// Who was chosen, among how many: for the reason that a table shows.
pub(crate) fn chosen_among(stage: &StageTrace) -> String {
    match (stage.policy, stage.available.len()) {
        (_, 1) => "the only one that is available".to_owned(),
        (switchyard_catalog::Policy::Random, count) => format!("by chance, of {count} with equal chance"),
        (_, count) => format!("its turn of {count}"),
    }
}
