//! Roles, users, grants, authentication records, user mappings.

use switchyard_catalog::{
    Authentication, AuthenticationAccess as Access, Catalog, DefaultRoles, Grantee, LimitScope, NodeId, RoleId,
    SettingLevel, TlsDemand, User,
};
use switchyard_dialect::{
    AuthenticationAccess, AuthenticationAction, ConnectionScope, Ident, MappingOptions, ParameterAction, RoleChoice,
    SecretText, Statement, UserAction, UserParameter,
};

use super::fleet::set_action;
use super::{Line, assignments, ident, idents, initial};
use crate::plan::verifiers_text;

pub(super) fn roles(catalog: &Catalog) -> Vec<Line> {
    let made = catalog.roles().iter().filter(|role| !role.predefined);
    made.map(|role| Line::new("role", &role.name, Statement::CreateRole { name: ident(&role.name) })).collect()
}

/// The users, the oldest first; the superuser is there already and is altered.
pub(super) fn users(catalog: &Catalog) -> Vec<Line> {
    const KIND: &str = "user";
    let mut lines = Vec::new();
    for user in catalog.users().iter() {
        let (name, parameters) = (ident(&user.name), parameters(user));
        if user.superuser {
            if !parameters.is_empty() {
                let action = UserAction::Parameters(parameters);
                lines.push(Line::new(KIND, &user.name, Statement::AlterUser { name, action }));
            }
        } else {
            lines.push(Line::new(KIND, &user.name, Statement::CreateUser { name, parameters }));
        }
        for pair in assignments(catalog.settings_at(SettingLevel::User(user.id))) {
            let action = UserAction::Parameter(set_action([pair]));
            lines.push(Line::new(KIND, &user.name, Statement::AlterUser { name: ident(&user.name), action }));
        }
    }
    lines
}

/// What differs from a user that was just made. A new password ends its expiry, so the expiry comes after it.
fn parameters(user: &User) -> Vec<UserParameter> {
    use UserParameter as P;
    let limits = &user.limits;
    let mut parameters = Vec::new();
    match &user.verifiers {
        Some(verifiers) => parameters.push(identified_by(&verifiers_text(verifiers))),
        // An initial catalog's superuser has a password.
        None if user.superuser => parameters.push(identified_by("")),
        None => {}
    }
    parameters.extend(user.password_expired.then_some(P::ExpirePassword));
    parameters.extend(user.locked.then_some(P::Lock(true)));
    parameters.extend(limits.max_connections.map(|(count, scope)| {
        let scope = match scope {
            LimitScope::Node => ConnectionScope::Node,
            LimitScope::Database => ConnectionScope::Database,
        };
        P::MaxConnections(Some((count.into(), scope)))
    }));
    let text = |text: &Option<String>, make: fn(Option<String>) -> P| text.is_some().then(|| make(text.clone()));
    parameters.extend(text(&limits.idle_session_timeout, P::IdleSessionTimeout));
    parameters.extend(text(&limits.grace_period, P::GracePeriod));
    parameters.extend(text(&limits.runtime_cap, P::RuntimeCap));
    parameters.extend(text(&limits.memory_cap, P::MemoryCap));
    parameters.extend(text(&limits.temp_space_cap, P::TempSpaceCap));
    parameters.extend(limits.profile.as_ref().map(|profile| P::Profile(Some(ident(profile)))));
    parameters
        .extend(limits.resource_pool.as_ref().map(|pool| P::ResourcePool { pool: ident(pool), subcluster: None }));
    let path = limits.search_path.as_ref();
    parameters.extend(path.map(|schemas| P::SearchPath(Some(schemas.iter().map(ident).collect()))));
    parameters.extend(limits.security_algorithm.clone().map(P::SecurityAlgorithm));
    parameters
}

fn identified_by(text: &str) -> UserParameter {
    UserParameter::IdentifiedBy { password: SecretText::new(text), replace: None }
}

fn grantee_ident(catalog: &Catalog, grantee: Grantee) -> Ident {
    let name = match grantee {
        Grantee::User(id) => catalog.users().find(id).map(|user| user.name.to_string()),
        Grantee::Role(id) => catalog.roles().find(id).map(|role| role.name.to_string()),
    };
    Ident(name.unwrap_or_default())
}

fn role_ident(catalog: &Catalog, role: RoleId) -> Ident {
    Ident(catalog.roles().find(role).map(|role| role.name.to_string()).unwrap_or_default())
}

/// The role grants that an initial catalog has not.
pub(super) fn role_grants(catalog: &Catalog) -> Vec<Line> {
    let from_start = |row: &switchyard_catalog::RoleGrant| {
        let of_superuser = matches!(row.grantee, Grantee::User(user) if catalog.is_superuser(user));
        of_superuser && catalog.roles().find(row.role).is_some_and(|role| role.predefined && is_own(role.name.as_str()))
    };
    let grants = catalog.role_grants().iter().filter(|row| !from_start(row));
    grants
        .map(|grant| {
            let role = role_ident(catalog, grant.role);
            Line::new(
                "role grant",
                role.0.clone(),
                Statement::GrantRole {
                    roles: vec![role],
                    grantees: vec![grantee_ident(catalog, grant.grantee)],
                    admin: grant.admin,
                },
            )
        })
        .collect()
}

fn is_own(role: &str) -> bool {
    switchyard_catalog::SUPERUSER_ROLES.iter().any(|own| own.eq_ignore_ascii_case(role))
}

pub(super) fn default_roles(catalog: &Catalog) -> Vec<Line> {
    let names = |ids: &[RoleId]| idents(ids, |id| catalog.roles().find(id).cloned(), |role| &role.name);
    let mut lines = Vec::new();
    for user in catalog.users().iter() {
        let choice = match &user.default_roles {
            DefaultRoles::None => continue,
            DefaultRoles::Listed(ids) => match names(ids) {
                // ALTER USER cannot say an empty list; it means NONE.
                listed if listed.is_empty() => continue,
                listed => RoleChoice::Named(listed),
            },
            DefaultRoles::AllExcept(ids) => RoleChoice::AllExcept(names(ids)),
        };
        let action = UserAction::DefaultRole(choice);
        lines.push(Line::new("user", &user.name, Statement::AlterUser { name: ident(&user.name), action }));
    }
    lines
}

pub(super) fn workload_grants(catalog: &Catalog) -> Vec<Line> {
    let mut lines = Vec::new();
    for grant in catalog.workload_grants().iter() {
        if let Some(rule) = catalog.workload_rules().find(grant.rule) {
            lines.push(Line::new(
                "workload grant",
                &rule.workload,
                Statement::GrantWorkload {
                    workload: ident(&rule.workload),
                    grantees: vec![grantee_ident(catalog, grant.grantee)],
                },
            ));
        }
    }
    lines
}

/// Those an initial catalog has are dropped, and all of this one are made, so that their order is the same.
pub(super) fn authentications(catalog: &Catalog) -> Vec<Line> {
    const KIND: &str = "authentication";
    let from_start: Vec<Ident> = initial(catalog).authentications().iter().map(|row| ident(&row.name)).collect();
    let mut lines =
        vec![Line::new(KIND, "", Statement::DropAuthentication { if_exists: true, names: from_start, cascade: true })];
    for record in catalog.authentications().iter() {
        lines.extend(make_authentication(record));
    }
    for grant in catalog.authentication_grants().iter() {
        if let Some(record) = catalog.authentications().find(grant.authentication) {
            lines.push(Line::new(
                "authentication grant",
                &record.name,
                Statement::GrantAuthentication {
                    name: ident(&record.name),
                    grantees: vec![grantee_ident(catalog, grant.grantee)],
                },
            ));
        }
    }
    lines
}

fn make_authentication(record: &Authentication) -> Vec<Line> {
    let access = match &record.access {
        Access::Local => AuthenticationAccess::Local,
        Access::Host { network, tls } => AuthenticationAccess::Host {
            tls: match tls {
                TlsDemand::Any => None,
                TlsDemand::Required => Some(true),
                TlsDemand::Forbidden => Some(false),
            },
            network: network.typed.clone(),
        },
    };
    let line = |statement| Line::new("authentication", &record.name, statement);
    let mut lines = vec![line(Statement::CreateAuthentication {
        name: ident(&record.name),
        method: record.method.as_str().to_owned(),
        access,
        fallthrough: record.fallthrough,
    })];
    let mut actions = Vec::new();
    if record.priority > 0 {
        actions.push(AuthenticationAction::Priority(record.priority.into()));
    }
    let parameters = record.parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    if let ParameterAction::Set(assignments) = set_action(parameters)
        && !assignments.is_empty()
    {
        actions.push(AuthenticationAction::Set(assignments));
    }
    if !record.enabled {
        actions.push(AuthenticationAction::Enable(false));
    }
    lines.extend(
        actions.into_iter().map(|action| line(Statement::AlterAuthentication { name: ident(&record.name), action })),
    );
    lines
}

pub(super) fn mappings(catalog: &Catalog) -> Vec<Line> {
    let node = |id: NodeId| catalog.nodes().find(id).map(|node| ident(&node.name));
    let mut lines = Vec::new();
    for mapping in catalog.user_mappings().iter() {
        let user = mapping.user.and_then(|id| catalog.users().find(id)).map(|user| ident(&user.name));
        if mapping.password.is_some() {
            lines.push(Line::Comment("the user mapping's password is left out".to_owned()));
        }
        let name = user.as_ref().map_or("PUBLIC", |user| user.0.as_str()).to_owned();
        lines.push(Line::new(
            "user mapping",
            name,
            Statement::CreateUserMapping {
                user,
                server: mapping.node.and_then(node),
                options: MappingOptions { user: Some(mapping.remote_user.clone()), ..MappingOptions::default() },
            },
        ));
    }
    lines
}
