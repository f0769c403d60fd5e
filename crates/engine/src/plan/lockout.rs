//! Warnings before a change of the authentication records locks somebody out who could mend it.

use switchyard_catalog::{AuthenticationClient, Catalog, Change};

use super::PlanContext;
use crate::error::Warning;

/// What to say of changes that are about to be made: that the superuser, or who makes them, could not log in again.
/// Sessions that are open go on.
pub(super) fn warnings(changes: &[Change], context: &PlanContext<'_>) -> Vec<Warning> {
    let before = context.catalog;
    // What cannot be applied is refused later.
    let Ok(applied) = before.apply(changes) else { return Vec::new() };
    let after = &applied.catalog;
    let mut warnings = Vec::new();
    for user in before.users().iter().filter(|user| user.superuser) {
        let name = user.name.as_str();
        if before.can_log_in(name) && !after.can_log_in(name) {
            warnings.push(Warning::new(format!(
                "no authentication record lets superuser \"{name}\" log in any more; sessions that are open go on"
            )));
        }
    }
    let name = context.session.user_name(before);
    if warnings.is_empty() && may_come_back(before, context) && !may_come_back(after, context) {
        let place =
            context.session.client_address.map_or("the local socket".to_owned(), |place| place.ip().to_string());
        warnings.push(Warning::new(format!(
            "no authentication record lets user \"{name}\" log in from {place} any more; sessions that are open go on"
        )));
    }
    warnings
}

/// Whether the session's user could log in again from where the session is, with TLS or without.
fn may_come_back(catalog: &Catalog, context: &PlanContext<'_>) -> bool {
    let address = context.session.client_address.map(|place| place.ip());
    let name = context.session.user_name(context.catalog);
    [false, true]
        .into_iter()
        .any(|tls| catalog.lets_in(AuthenticationClient { local: address.is_none(), address, tls }, name))
}
