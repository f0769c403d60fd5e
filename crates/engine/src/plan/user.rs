//! CREATE USER and ALTER USER.

use switchyard_catalog::{Change, LimitScope, Name, ObjectKind, SettingTarget, UserChange, Verifiers};
use switchyard_dialect::{ConnectionScope, RoleChoice, SecretText, UserAction, UserParameter};

use super::words::{self, name, names};
use super::{Changes, PlanContext, fleet, one};
use crate::error::{PlanError, Warning};
use crate::settings::size::is_size;
use crate::settings::{self, interval};

/// CREATE USER.
pub(super) fn create(
    user: Name,
    parameters: &[UserParameter],
    context: &PlanContext<'_>,
) -> Result<Changes, PlanError> {
    let (changes, warnings) = user_changes(&user, parameters, context)?;
    let mut planned = one("CREATE USER", Change::CreateUser { name: user, superuser: false, changes });
    planned.warnings = warnings;
    Ok(planned)
}

/// ALTER USER.
pub(super) fn alter(user: Name, action: &UserAction, context: &PlanContext<'_>) -> Result<Changes, PlanError> {
    const TAG: &str = "ALTER USER";
    let (changes, warnings) = match action {
        UserAction::Parameters(parameters) => user_changes(&user, parameters, context)?,
        UserAction::DefaultRole(choice) => (vec![default_roles(choice)?], Vec::new()),
        UserAction::Rename(to) => (vec![UserChange::Rename(name(to)?)], Vec::new()),
        UserAction::Parameter(action) => {
            return fleet::parameters(TAG, &SettingTarget::User(user), action, context);
        }
        UserAction::RoleParameter(action) => {
            return fleet::parameters("ALTER ROLE", &SettingTarget::User(user), action, context);
        }
    };
    let mut planned = one(TAG, Change::AlterUser { name: user, changes });
    planned.warnings = warnings;
    Ok(planned)
}

fn default_roles(choice: &RoleChoice) -> Result<UserChange, PlanError> {
    Ok(match choice {
        RoleChoice::None => UserChange::NoDefaultRoles,
        RoleChoice::Named(roles) => UserChange::DefaultRoles(names(roles)?),
        RoleChoice::AllExcept(roles) => UserChange::DefaultRolesAllExcept(names(roles)?),
        RoleChoice::Default => {
            return Err(PlanError::NotSupported { what: "DEFAULT ROLE DEFAULT".to_owned(), hint: None });
        }
    })
}

fn user_changes(
    user: &Name,
    parameters: &[UserParameter],
    context: &PlanContext<'_>,
) -> Result<(Vec<UserChange>, Vec<Warning>), PlanError> {
    let mut changes: Vec<UserChange> = Vec::with_capacity(parameters.len());
    let mut warnings = Vec::new();
    let md5 = wants_md5(user, parameters, context)?;
    for parameter in parameters {
        changes.push(user_change(user, parameter, md5, context)?);
        warnings.extend(without_effect(parameter, context)?);
    }
    warnings.extend(md5_missing(user, &changes, context));
    Ok((changes, warnings))
}

/// Whether the user's security algorithm is MD5 once these parameters are set.
fn wants_md5(user: &Name, parameters: &[UserParameter], context: &PlanContext<'_>) -> Result<bool, PlanError> {
    let given = parameters.iter().find_map(|parameter| match parameter {
        UserParameter::SecurityAlgorithm(text) => Some(algorithm(text)),
        _ => None,
    });
    let stored = || context.catalog.users().named(user).is_some_and(|user| user.limits.wants_md5());
    Ok(given.transpose()?.map_or_else(stored, |algorithm| algorithm.as_deref() == Some("MD5")))
}

/// Whether verifiers for MD5 are kept at all.
fn md5_allowed(context: &PlanContext<'_>) -> bool {
    settings::database_value("password_md5_verifiers", context.catalog).as_deref() == Some("on")
}

/// SECURITY_ALGORITHM 'MD5' counts from the next password on, and only where it is allowed.
fn md5_missing(user: &Name, changes: &[UserChange], context: &PlanContext<'_>) -> Option<Warning> {
    let asked =
        |change: &UserChange| matches!(change, UserChange::SecurityAlgorithm(Some(algorithm)) if algorithm == "MD5");
    if !changes.iter().any(asked) {
        return None;
    }
    if !md5_allowed(context) {
        let text = "SECURITY_ALGORITHM 'MD5' has no effect while the setting password_md5_verifiers is off";
        return Some(Warning::new(text));
    }
    let given = changes.iter().rev().find_map(|change| match change {
        UserChange::Password(verifiers) => Some(verifiers.clone()),
        _ => None,
    });
    let stored = || context.catalog.users().named(user).and_then(|user| user.verifiers.clone());
    let kept = given.unwrap_or_else(stored).is_some_and(|verifiers| verifiers.md5.is_some());
    (!kept)
        .then(|| Warning::notice(format!("no MD5 verifier is kept of user \"{user}\" until the password is set anew")))
}

/// The parameter as the statement calls it.
fn word(parameter: &UserParameter) -> &'static str {
    match parameter {
        UserParameter::Lock(_) => "ACCOUNT",
        UserParameter::ExpirePassword => "PASSWORD EXPIRE",
        UserParameter::IdentifiedBy { .. } => "IDENTIFIED BY",
        UserParameter::GracePeriod(_) => "GRACEPERIOD",
        UserParameter::IdleSessionTimeout(_) => "IDLESESSIONTIMEOUT",
        UserParameter::RuntimeCap(_) => "RUNTIMECAP",
        UserParameter::MaxConnections(_) => "MAXCONNECTIONS",
        UserParameter::MemoryCap(_) => "MEMORYCAP",
        UserParameter::TempSpaceCap(_) => "TEMPSPACECAP",
        UserParameter::Profile(_) => "PROFILE",
        UserParameter::ResourcePool { .. } => "RESOURCE POOL",
        UserParameter::SearchPath(_) => "SEARCH_PATH",
        UserParameter::SecurityAlgorithm(_) => "SECURITY_ALGORITHM",
    }
}

fn user_change(
    user: &Name,
    parameter: &UserParameter,
    md5: bool,
    context: &PlanContext<'_>,
) -> Result<UserChange, PlanError> {
    let what = word(parameter);
    Ok(match parameter {
        UserParameter::Lock(locked) => UserChange::Lock(*locked),
        UserParameter::ExpirePassword => UserChange::ExpirePassword,
        UserParameter::IdentifiedBy { password, replace } => {
            UserChange::Password(verifiers(user, password, replace.as_ref(), md5, context)?)
        }
        UserParameter::GracePeriod(text) => UserChange::GracePeriod(cap(what, text.as_deref(), 20, "20 days")?),
        UserParameter::IdleSessionTimeout(text) => {
            let text = cap(what, text.as_deref(), 365, "365 days")?;
            only_lowered(user, text.as_deref(), context)?;
            UserChange::IdleSessionTimeout(text)
        }
        UserParameter::RuntimeCap(text) => UserChange::RuntimeCap(cap(what, text.as_deref(), 365, "1 year")?),
        UserParameter::MaxConnections(limit) => UserChange::MaxConnections(connections(*limit)?),
        UserParameter::MemoryCap(text) => UserChange::MemoryCap(size(what, text.as_deref())?),
        UserParameter::TempSpaceCap(text) => UserChange::TempSpaceCap(size(what, text.as_deref())?),
        UserParameter::Profile(profile) => UserChange::Profile(profile.as_ref().map(name).transpose()?),
        UserParameter::ResourcePool { pool, .. } => UserChange::ResourcePool(Some(name(pool)?)),
        UserParameter::SearchPath(schemas) => UserChange::SearchPath(schemas.as_deref().map(names).transpose()?),
        UserParameter::SecurityAlgorithm(text) => UserChange::SecurityAlgorithm(algorithm(text)?),
    })
}

/// Profiles and resource pools are kept as they are given, for the tables that show them; an empty password is none.
fn without_effect(parameter: &UserParameter, context: &PlanContext<'_>) -> Result<Option<Warning>, PlanError> {
    let kept = |what: &str| Some(Warning::new(format!("{what} is kept, and has no effect")));
    Ok(match parameter {
        UserParameter::IdentifiedBy { password, .. } if password.reveal().is_empty() => {
            Some(Warning::notice("empty string is not a valid password, clearing password"))
        }
        UserParameter::Profile(Some(profile)) if !profile.0.eq_ignore_ascii_case("default") => {
            kept(&format!("profile \"{}\"", profile.0))
        }
        UserParameter::ResourcePool { subcluster: Some(subcluster), .. } => {
            let subcluster = name(subcluster)?;
            let subclusters = context.catalog.subclusters();
            if subclusters.named(&subcluster).is_none() {
                let nearest = super::nearest(&subcluster, subclusters.names());
                return Err(PlanError::Missing { kind: ObjectKind::Subcluster, name: subcluster, nearest });
            }
            Some(Warning::new(format!("FOR SUBCLUSTER {subcluster} is ignored: the pool is kept for all")))
        }
        UserParameter::ResourcePool { pool, .. } if !pool.0.eq_ignore_ascii_case("general") => {
            kept(&format!("resource pool \"{}\"", pool.0))
        }
        _ => None,
    })
}

/// What is kept of the password; an empty one takes it away.
fn verifiers(
    user: &Name,
    password: &SecretText,
    replace: Option<&SecretText>,
    md5: bool,
    context: &PlanContext<'_>,
) -> Result<Option<Verifiers>, PlanError> {
    let stored = context.catalog.users().named(user).and_then(|user| user.verifiers.as_ref());
    match (replace, stored) {
        (Some(old), Some(stored)) if !(context.check_password)(stored, old.reveal()) => {
            return Err(PlanError::OldPasswordWrong { user: user.clone() });
        }
        (None, Some(_)) if !context.is_superuser() => return Err(PlanError::OldPasswordNeeded),
        _ => {}
    }
    if password.reveal().is_empty() {
        return Ok(None);
    }
    let given = words::parse_verifiers(password.reveal())?;
    // The verifier holds the name as the catalog spells it: what the client hashes must be written the same.
    let stored_name = context.catalog.users().named(user).map(|user| user.name.clone());
    let md5_of = (md5 && md5_allowed(context)).then(|| stored_name.as_ref().unwrap_or(user));
    Ok(Some(given.unwrap_or_else(|| (context.make_verifiers)(password.reveal(), md5_of))))
}

/// Who is no superuser can only lower the idle session timeout.
fn only_lowered(user: &Name, text: Option<&str>, context: &PlanContext<'_>) -> Result<(), PlanError> {
    let stored = context.catalog.users().named(user).and_then(|user| user.limits.idle_session_timeout.clone());
    let length = |text: Option<&str>| text.and_then(interval::parse).unwrap_or(u64::MAX);
    if context.is_superuser() || length(text) <= length(stored.as_deref()) {
        return Ok(());
    }
    Err(PlanError::Privilege { verb: "raise", kind: "IDLESESSIONTIMEOUT" })
}

/// An interval that must not be longer than so many days, in the form tables show.
fn cap(what: &'static str, text: Option<&str>, days: u64, max: &'static str) -> Result<Option<String>, PlanError> {
    let Some(text) = text else { return Ok(None) };
    match interval::parse(text) {
        None | Some(0) => Err(PlanError::Text {
            what,
            value: text.to_owned(),
            hint: Some("Write an interval, for example '10 mins', or NONE."),
        }),
        Some(micros) if micros > days.saturating_mul(86_400_000_000) => {
            Err(PlanError::IntervalTooLong { what, value: text.to_owned(), max })
        }
        Some(micros) => Ok(Some(interval::show(micros))),
    }
}

fn size(what: &'static str, text: Option<&str>) -> Result<Option<String>, PlanError> {
    match text {
        Some(text) if !is_size(text) => Err(PlanError::Text {
            what,
            value: text.to_owned(),
            hint: Some("Write a percentage, or a number with K, M, G or T, for example '2G', or NONE."),
        }),
        text => Ok(text.map(str::to_owned)),
    }
}

fn connections(limit: Option<(u64, ConnectionScope)>) -> Result<Option<(u32, LimitScope)>, PlanError> {
    let Some((count, scope)) = limit else { return Ok(None) };
    let max = u64::from(u32::MAX);
    let what = "MAXCONNECTIONS";
    let count = u32::try_from(count).map_err(|_| PlanError::Range { what, value: count.to_string(), min: 0, max })?;
    let scope = match scope {
        ConnectionScope::Database => LimitScope::Database,
        ConnectionScope::Node => LimitScope::Node,
    };
    Ok(Some((count, scope)))
}

fn algorithm(text: &str) -> Result<Option<String>, PlanError> {
    const ALGORITHMS: [&str; 3] = ["NONE", "SHA512", "MD5"];
    match ALGORITHMS.iter().find(|known| known.eq_ignore_ascii_case(text)) {
        Some(known) => Ok(Some((*known).to_owned())),
        None => Err(PlanError::Word {
            what: "SECURITY_ALGORITHM",
            value: text.to_owned(),
            available: ALGORITHMS.join(", "),
        }),
    }
}
