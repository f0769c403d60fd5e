//! Warnings before a change of the authentication records locks somebody out who could mend it.

use switchyard_catalog::{AuthenticationClient, Catalog};
use switchyard_dialect::Statement;

use crate::error::Warning;
use crate::session_state::SessionState;

/// Whether a statement may decide who can log in.
pub fn is_about_logins(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::AlterAuthentication { .. }
            | Statement::DropAuthentication { .. }
            | Statement::GrantAuthentication { .. }
            | Statement::RevokeAuthentication { .. }
            | Statement::RevokeRole { .. }
    )
}

/// What to say of a change from one catalog to another: that the superuser, or who makes it, could not log in again.
/// Sessions that are open go on. Of a transaction only the end counts: in between, records may be made anew.
pub fn lockout_warnings(before: &Catalog, after: &Catalog, session: &SessionState) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for user in before.users().iter().filter(|user| user.superuser) {
        let name = user.name.as_str();
        if before.can_log_in(name) && !after.can_log_in(name) {
            warnings.push(Warning::new(format!(
                "no authentication record lets superuser \"{name}\" log in any more; sessions that are open go on"
            )));
        }
    }
    let name = session.user_name(before);
    if warnings.is_empty() && may_come_back(before, session) && !may_come_back(after, session) {
        let place = session.client_address.map_or("the local socket".to_owned(), |place| place.ip().to_string());
        warnings.push(Warning::new(format!(
            "no authentication record lets user \"{name}\" log in from {place} any more; sessions that are open go on"
        )));
    }
    warnings
}

/// Whether the session's user could log in again from where the session is, with TLS or without.
fn may_come_back(catalog: &Catalog, session: &SessionState) -> bool {
    let address = session.client_address.map(|place| place.ip());
    let name = session.user_name(catalog);
    [false, true]
        .into_iter()
        .any(|tls| catalog.lets_in(AuthenticationClient { local: address.is_none(), address, tls }, name))
}
