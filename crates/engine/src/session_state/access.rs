//! Which workloads are open to a session, and which applies.

use rand::Rng;
use switchyard_catalog::{Catalog, Grantee, Name, WorkloadRule};

use super::{SessionState, WorkloadWish};
use crate::settings;

/// Whether a session may name a workload. `None` when there is no rule for it.
pub fn may_use(session: &SessionState, catalog: &Catalog, workload: &Name) -> Option<bool> {
    let rule = catalog.rule_of_workload(workload)?;
    Some(
        !settings::is_on("workload_usage_required", session, catalog)
            || catalog.may_use_workload(session.user_id, session.enabled_roles(), rule.id),
    )
}

/// The workloads open to a session, by descending priority, then by name.
pub fn available_workloads(session: &SessionState, catalog: &Catalog) -> Vec<Name> {
    if settings::is_on("workload_usage_required", session, catalog) {
        let rules = catalog.usable_workloads(session.user_id, session.enabled_roles());
        return rules.into_iter().map(|rule| rule.workload.clone()).collect();
    }
    let mut rules: Vec<&WorkloadRule> = catalog.workload_rules().iter().map(AsRef::as_ref).collect();
    rules.sort_by(|a, b| b.priority.cmp(&a.priority).then_with(|| a.workload.cmp(&b.workload)));
    rules.into_iter().map(|rule| rule.workload.clone()).collect()
}

/// The workload that applies to a session (`reference/vertica-sql.md` §9). The spelling is the rule's.
pub(super) fn choose_workload(session: &SessionState, catalog: &Catalog, mut rng: &mut dyn Rng) -> Option<Name> {
    let usable = |name: &Name| {
        let rule = catalog.rule_of_workload(name)?;
        may_use(session, catalog, name)?.then(|| rule.workload.clone())
    };
    let named = match session.workload_wish() {
        WorkloadWish::None => return None,
        // A rule that is gone, or no longer granted, leaves the choice to the rest.
        WorkloadWish::Named(name) => usable(name),
        WorkloadWish::Automatic => None,
    };
    if let Some(name) = named.or_else(|| session.connect_workload().and_then(usable)) {
        return Some(name);
    }
    let best = catalog.effective_workload(session.user_id, session.enabled_roles(), &mut rng)?;
    Some(applies_already(session, catalog, &best).unwrap_or_else(|| best.workload.clone()))
}

/// The workload that applies now, if it is as good as the best: a session is not moved without need.
fn applies_already(session: &SessionState, catalog: &Catalog, best: &WorkloadRule) -> Option<Name> {
    let now = catalog.rule_of_workload(session.workload()?)?;
    let roles = catalog.roles_in_effect(session.user_id, session.enabled_roles()).into_iter().map(Grantee::Role);
    let granted = std::iter::once(Grantee::User(session.user_id))
        .chain(roles)
        .any(|grantee| catalog.workload_grant(grantee, now.id).is_some());
    (granted && now.priority == best.priority).then(|| now.workload.clone())
}
