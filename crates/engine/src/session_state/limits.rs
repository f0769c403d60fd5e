//! Limits that a user, a session and the defaults have together.

use switchyard_catalog::{Catalog, UserLimits};

use super::SessionState;
use crate::settings::{self, Level, interval};
use crate::sql::TimeSetting;

const UNLIMITED: &str = "unlimited";

/// The limits of SHOW whose values come from the user, or from user and session together.
pub(super) fn of_user(session: &SessionState, name: &str, catalog: &Catalog) -> Option<(String, Level)> {
    let limits = |pick: fn(&UserLimits) -> Option<String>| {
        catalog.users().find(session.user_id).and_then(|user| pick(&user.limits))
    };
    let given = |value: Option<String>, default: &str| match value {
        Some(value) => (value, Level::User),
        None => (default.to_owned(), Level::Default),
    };
    match name {
        "resource_pool" => {
            Some(given(limits(|limits| limits.resource_pool.as_ref().map(ToString::to_string)), "general"))
        }
        // SET, and ALTER USER ... SET, win over ALTER USER ... SEARCH_PATH.
        "search_path"
            if session.own_values(name) == [None, None] && !session.levels_at_login().user.contains_key(name) =>
        {
            let path = catalog.users().find(session.user_id)?.limits.search_path.as_ref()?;
            let schemas: Vec<String> = path.iter().map(ToString::to_string).collect();
            Some((schemas.join(", "), Level::User))
        }
        "memorycap" => Some(given(limits(|limits| limits.memory_cap.clone()), UNLIMITED)),
        "tempspacecap" => Some(given(limits(|limits| limits.temp_space_cap.clone()), UNLIMITED)),
        "runtimecap" => Some(smaller(session, name, limits(|limits| limits.runtime_cap.clone()), None, catalog)),
        "idlesessiontimeout" => {
            let user = limits(|limits| limits.idle_session_timeout.clone());
            Some(smaller(session, name, user, Some("DefaultIdleSessionTimeout"), catalog))
        }
        "graceperiod" => {
            let user = limits(|limits| limits.grace_period.clone());
            Some(smaller(session, name, user, Some("DefaultGracePeriod"), catalog))
        }
        _ => None,
    }
}

/// The smaller of the user's value and the session's; else the default, which does not bind superusers.
fn smaller(
    session: &SessionState,
    name: &str,
    user: Option<String>,
    default: Option<&str>,
    catalog: &Catalog,
) -> (String, Level) {
    let [local, own] = session.own_values(name);
    let user = user.and_then(|text| interval::parse(&text)).map(|micros| (micros, Level::User));
    let own = local.or(own).and_then(|text| interval::parse(text)).map(|micros| (micros, Level::Session));
    if let Some((micros, level)) = [user, own].into_iter().flatten().min() {
        return (interval::show(micros), level);
    }
    match default {
        Some(default) if !session.is_superuser(catalog) => settings::declaration(default)
            .map(|setting| settings::effective(setting, session, catalog))
            .map(|(value, level)| (value.into_owned(), level))
            .unwrap_or_else(|_| (UNLIMITED.to_owned(), Level::Default)),
        _ => (UNLIMITED.to_owned(), Level::Default),
    }
}

fn limit_ms(name: &str, session: &SessionState, catalog: &Catalog) -> Option<u64> {
    // Rounded up: a limit below a millisecond is not no limit.
    interval::parse(&settings::value_of(name, session, catalog)).map(|micros| micros.div_ceil(1_000))
}

/// Which setting says how long the session may wait for its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdleSetting {
    /// IDLESESSIONTIMEOUT of the user or the session, or DefaultIdleSessionTimeout.
    IdleSession,
    /// PostgreSQL's, outside of a transaction.
    Postgres,
    /// PostgreSQL's, in a transaction.
    InTransaction,
}

impl IdleSetting {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::IdleSession => "IDLESESSIONTIMEOUT",
            Self::Postgres => "idle_session_timeout",
            Self::InTransaction => "idle_in_transaction_session_timeout",
        }
    }
}

/// A limit in milliseconds, and what sets it.
pub type IdleLimit = (u64, IdleSetting);

/// How long the session may wait for its client, outside of a transaction and in one; `None` is for ever. The smaller of
/// IDLESESSIONTIMEOUT, which counts in both, and PostgreSQL's own setting.
pub fn idle_limits(session: &SessionState, catalog: &Catalog) -> [Option<IdleLimit>; 2] {
    let vertica = limit_ms("idlesessiontimeout", session, catalog).map(|ms| (ms, IdleSetting::IdleSession));
    [IdleSetting::Postgres, IdleSetting::InTransaction].map(|setting| {
        let ms = u64::try_from(settings::int_of(setting.as_str(), session, catalog)).ok().filter(|ms| *ms > 0);
        [vertica, ms.map(|ms| (ms, setting))].into_iter().flatten().min_by_key(|(ms, _)| *ms)
    })
}

/// How long the socket may block on the client, in milliseconds; `None` is for ever.
pub fn grace_period_ms(session: &SessionState, catalog: &Catalog) -> Option<u64> {
    limit_ms("graceperiod", session, catalog)
}

/// How long a statement may run, in milliseconds, and what says so; `None` is for ever. The smallest of the
/// administrator's limit, which holds whatever the session sets for itself, statement_timeout and RUNTIMECAP.
pub fn statement_time_ms(session: &SessionState, catalog: &Catalog) -> Option<(u64, TimeSetting)> {
    let number = |name| u64::try_from(settings::int_of(name, session, catalog)).ok().filter(|ms| *ms > 0);
    let limits = [
        (number("query_time_ms_max"), TimeSetting::QueryTimeMax),
        (number("statement_timeout"), TimeSetting::StatementTimeout),
        (limit_ms("runtimecap", session, catalog), TimeSetting::RuntimeCap),
    ];
    limits.into_iter().filter_map(|(ms, setting)| Some((ms?, setting))).min()
}
