//! Roles, grants, authentication records, user mappings; users are in `user`.

use switchyard_catalog::{
    AuthenticationAccess as CatalogAccess, AuthenticationChange, AuthenticationMethod, Change, IDENTITY_MAP,
    IdentityMap, MappingChange, Name, ObjectKind, Secret, TlsDemand,
};
use switchyard_dialect::{
    AuthenticationAccess, AuthenticationAction, Ident, MappingOptions, SecretText, Statement, Value,
};

use super::words::{self, name, names};
use super::{Changes, PlanContext, one, user};
use crate::error::{PlanError, Warning};

/// Methods that other systems have and this one does not.
const METHODS_ELSEWHERE: [&str; 8] = ["ident", "gss", "kerberos", "ldap", "oauth", "md5", "pam", "radius"];

/// Plans a statement of this family; `None` for others.
pub(super) fn plan(statement: &Statement, context: &PlanContext<'_>) -> Result<Option<Changes>, PlanError> {
    Ok(Some(match statement {
        Statement::GrantWorkload { workload, grantees } => one(
            "GRANT PRIVILEGE",
            Change::GrantWorkload { workload: name(workload)?, grantees: names(grantees)?, grantor: context.user()? },
        ),
        Statement::RevokeWorkload { workload, grantees } => {
            one("REVOKE PRIVILEGE", Change::RevokeWorkload { workload: name(workload)?, grantees: names(grantees)? })
        }
        Statement::CreateUser { name: user, parameters } => user::create(name(user)?, parameters, context)?,
        Statement::AlterUser { name: user, action } => user::alter(name(user)?, action, context)?,
        Statement::DropUser { if_exists, names: users, cascade } => {
            one("DROP USER", Change::DropUsers { names: names(users)?, if_exists: *if_exists, cascade: *cascade })
        }
        Statement::CreateRole { name: role } => one("CREATE ROLE", Change::CreateRole { name: name(role)? }),
        Statement::AlterRole { name: role, rename_to } => {
            one("ALTER ROLE", Change::RenameRole { name: name(role)?, to: name(rename_to)? })
        }
        Statement::DropRole { if_exists, names: roles, cascade } => {
            one("DROP ROLE", Change::DropRoles { names: names(roles)?, if_exists: *if_exists, cascade: *cascade })
        }
        Statement::GrantRole { roles, grantees, admin } => one(
            "GRANT ROLE",
            Change::GrantRoles {
                roles: names(roles)?,
                grantees: names(grantees)?,
                admin: *admin,
                grantor: context.user()?,
            },
        ),
        Statement::RevokeRole { admin_only, roles, grantees, cascade } => one(
            "REVOKE ROLE",
            Change::RevokeRoles {
                roles: names(roles)?,
                grantees: names(grantees)?,
                admin_only: *admin_only,
                cascade: *cascade,
            },
        ),
        Statement::CreateAuthentication { .. }
        | Statement::AlterAuthentication { .. }
        | Statement::DropAuthentication { .. }
        | Statement::GrantAuthentication { .. }
        | Statement::RevokeAuthentication { .. } => return authentication(statement, context),
        Statement::CreateUserMapping { .. }
        | Statement::AlterUserMapping { .. }
        | Statement::DropUserMapping { .. } => return mapping(statement),
        _ => return Ok(None),
    }))
}

fn authentication(statement: &Statement, context: &PlanContext<'_>) -> Result<Option<Changes>, PlanError> {
    Ok(Some(match statement {
        Statement::CreateAuthentication { name: record, method: proof, access: from, fallthrough } => {
            let mut planned = one(
                "CREATE AUTHENTICATION",
                Change::CreateAuthentication {
                    name: name(record)?,
                    method: method(proof)?,
                    access: access(from)?,
                    fallthrough: *fallthrough,
                },
            );
            planned.warnings.extend(beyond_loopback(method(proof)?, from));
            planned
        }
        Statement::AlterAuthentication { name: record, action } => {
            alter_authentication(&name(record)?, action, context)?
        }
        Statement::DropAuthentication { if_exists, names: records, cascade } => one(
            "DROP AUTHENTICATION",
            Change::DropAuthentications { names: names(records)?, if_exists: *if_exists, cascade: *cascade },
        ),
        Statement::GrantAuthentication { name: record, grantees } => {
            one("GRANT AUTHENTICATION", Change::GrantAuthentication { name: name(record)?, grantees: names(grantees)? })
        }
        Statement::RevokeAuthentication { name: record, grantees } => one(
            "REVOKE AUTHENTICATION",
            Change::RevokeAuthentication { name: name(record)?, grantees: names(grantees)? },
        ),
        _ => return Ok(None),
    }))
}

/// Trust from other hosts is what the operator may want, and should be told of.
fn beyond_loopback(method: AuthenticationMethod, access: &AuthenticationAccess) -> Option<Warning> {
    let AuthenticationAccess::Host { network, .. } = access else { return None };
    let loopback = words::parse_network(network)
        .is_some_and(|network| network.net.addr().is_loopback() && network.net.broadcast().is_loopback());
    (method == AuthenticationMethod::Trust && !loopback)
        .then(|| Warning::new(format!("clients in {network} can log in without a password once this is granted")))
}

fn alter_authentication(
    record: &Name,
    action: &AuthenticationAction,
    context: &PlanContext<'_>,
) -> Result<Changes, PlanError> {
    let change = match action {
        AuthenticationAction::Rename(to) => AuthenticationChange::Rename(name(to)?),
        AuthenticationAction::Enable(enabled) => AuthenticationChange::Enable(*enabled),
        AuthenticationAction::Method(proof) => AuthenticationChange::Method(method(proof)?),
        AuthenticationAction::Access(from) => AuthenticationChange::Access(access(from)?),
        AuthenticationAction::Priority(priority) => AuthenticationChange::Priority(words::priority(*priority)?),
        AuthenticationAction::Fallthrough(fallthrough) => AuthenticationChange::Fallthrough(*fallthrough),
        AuthenticationAction::Set(assignments) => {
            let pairs = assignments.iter().map(|one| (&one.name, Some(&one.value)));
            return parameters(record, pairs.collect(), context);
        }
        AuthenticationAction::Clear(named) => {
            return parameters(record, named.iter().map(|one| (one, None)).collect(), context);
        }
    };
    Ok(one("ALTER AUTHENTICATION", Change::AlterAuthentication { name: record.clone(), change }))
}

/// Only records of method `tls` have a parameter: taking another would be to ignore it.
fn parameters(
    record: &Name,
    pairs: Vec<(&Ident, Option<&Value>)>,
    context: &PlanContext<'_>,
) -> Result<Changes, PlanError> {
    let records = context.catalog.authentications();
    let Some(found) = records.named(record) else {
        let nearest = super::nearest(record, records.names());
        return Err(PlanError::Missing { kind: ObjectKind::Authentication, name: record.clone(), nearest });
    };
    let mut changes = Vec::new();
    for (parameter, value) in pairs {
        if found.method != AuthenticationMethod::Tls || !parameter.0.eq_ignore_ascii_case(IDENTITY_MAP) {
            let method = found.method.as_str();
            let hint = (found.method == AuthenticationMethod::Tls)
                .then(|| format!("The parameter of this method is {IDENTITY_MAP}."));
            let what = format!("parameter \"{}\" of authentication method \"{method}\"", parameter.0);
            return Err(PlanError::NotSupported { what, hint });
        }
        let value = value.map(|(Value::Text(text) | Value::Number(text) | Value::Word(text))| text.clone());
        if let Some(text) = value.as_deref().filter(|text| IdentityMap::parse(text).is_err()) {
            return Err(PlanError::Text {
                what: IDENTITY_MAP,
                value: text.to_owned(),
                hint: Some(
                    "Write identity=user, with commas between. One star in an identity stands for any text, and one in \
                     the user for the same.",
                ),
            });
        }
        let change = AuthenticationChange::Parameter(IDENTITY_MAP.to_owned(), value);
        changes.push(Change::AlterAuthentication { name: record.clone(), change });
    }
    Ok(Changes { changes, tag: "ALTER AUTHENTICATION", answer: None, warnings: Vec::new() })
}

fn method(text: &str) -> Result<AuthenticationMethod, PlanError> {
    let available = || AuthenticationMethod::ALL.map(AuthenticationMethod::as_str).join(", ");
    AuthenticationMethod::parse(text).ok_or_else(|| {
        if METHODS_ELSEWHERE.iter().any(|other| other.eq_ignore_ascii_case(text)) {
            PlanError::NotSupported {
                what: format!("authentication method \"{text}\""),
                hint: Some(format!("Available values: {}.", available())),
            }
        } else {
            PlanError::Word { what: "authentication method", value: text.to_owned(), available: available() }
        }
    })
}

fn access(from: &AuthenticationAccess) -> Result<CatalogAccess, PlanError> {
    Ok(match from {
        AuthenticationAccess::Local => CatalogAccess::Local,
        AuthenticationAccess::Host { tls, network } => CatalogAccess::Host {
            network: words::network(network)?,
            tls: match tls {
                None => TlsDemand::Any,
                Some(true) => TlsDemand::Required,
                Some(false) => TlsDemand::Forbidden,
            },
        },
    })
}

fn mapping(statement: &Statement) -> Result<Option<Changes>, PlanError> {
    let secret = |text: &SecretText| Secret::new(text.reveal());
    Ok(Some(match statement {
        Statement::CreateUserMapping { user, server, options } => one(
            "CREATE USER MAPPING",
            Change::CreateUserMapping {
                user: optional(user.as_ref())?,
                node: optional(server.as_ref())?,
                remote_user: remote_user(user.as_ref(), options)?,
                password: options.password.as_ref().map(secret),
            },
        ),
        Statement::AlterUserMapping { user, server, options } => {
            let password = match (&options.password, options.drop_password) {
                (Some(password), _) => Some(Some(secret(password))),
                (None, true) => Some(None),
                (None, false) => None,
            };
            one(
                "ALTER USER MAPPING",
                Change::AlterUserMapping {
                    user: optional(user.as_ref())?,
                    node: optional(server.as_ref())?,
                    change: MappingChange { remote_user: options.user.clone(), password },
                },
            )
        }
        Statement::DropUserMapping { if_exists, user, server } => one(
            "DROP USER MAPPING",
            Change::DropUserMapping {
                user: optional(user.as_ref())?,
                node: optional(server.as_ref())?,
                if_exists: *if_exists,
            },
        ),
        _ => return Ok(None),
    }))
}

fn optional(ident: Option<&Ident>) -> Result<Option<Name>, PlanError> {
    ident.map(name).transpose()
}

/// The login there; the user's own name when none is given.
fn remote_user(user: Option<&Ident>, options: &MappingOptions) -> Result<String, PlanError> {
    let login = options.user.clone().or_else(|| user.map(|user| user.0.clone()));
    login.filter(|login| !login.is_empty()).ok_or(PlanError::MappingWithoutUser)
}
