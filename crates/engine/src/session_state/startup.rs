//! What a client says when it connects.

use std::sync::Arc;

use switchyard_catalog::{Catalog, Name};

use super::{SessionState, access};
use crate::error::{PlanError, Warning};
use crate::settings::{self, Level, SettingError};

/// Startup parameters that are no settings: read elsewhere, or said for information only (`reference/vertica-wire.md` §2).
const NOT_SETTINGS: [&str; 19] = [
    "user",
    "database",
    "options",
    "replication",
    "workload",
    "client_label",
    "client_type",
    "client_version",
    "client_os",
    "client_os_user_name",
    "client_os_hostname",
    "client_pid",
    "protocol_version",
    "protocol_compat",
    "protocol_features",
    "request_complex_types",
    "binary_data_protocol",
    "auth_category",
    "mars",
];

/// Takes them all: settings, roles that are on at login, the client's label and its workload.
pub(super) fn take(
    session: &mut SessionState,
    parameters: &[(String, String)],
    catalog: &Catalog,
) -> Result<Vec<Warning>, PlanError> {
    let mut warnings = Vec::new();
    let mut workload = None;
    let mut named = Vec::new();
    for (name, value) in parameters {
        match name.to_ascii_lowercase().as_str() {
            "options" => named.extend(options(value)?),
            "client_label" => session.client_label.clone_from(value),
            "replication" if settings_off(value) => {}
            "replication" => return Err(PlanError::NotSupported { what: "replication".to_owned(), hint: None }),
            _ => named.push((name.clone(), value.clone())),
        }
    }
    let superuser = session.is_superuser(catalog);
    for (name, value) in named {
        let lower = name.to_ascii_lowercase();
        if lower == "workload" {
            workload = Some(value);
        } else if !NOT_SETTINGS.contains(&lower.as_str()) && !lower.starts_with("_pq_.") {
            let setting = settings::declaration(&name)?;
            setting.allow(Level::Session, superuser)?;
            Arc::make_mut(&mut session.start).settings.insert(setting.name, setting.read(&value)?);
        }
    }
    enable_roles(session, catalog);
    if let Some(workload) = workload.filter(|workload| !workload.is_empty()) {
        warnings.extend(take_workload(session, &workload, catalog));
    }
    Ok(warnings)
}

fn settings_off(value: &str) -> bool {
    ["", "false", "off", "no", "0"].iter().any(|off| off.eq_ignore_ascii_case(value))
}

fn enable_roles(session: &mut SessionState, catalog: &Catalog) {
    let all = settings::is_on("EnableAllRolesOnLogin", session, catalog);
    let roles = catalog.roles_at_login(session.user_id, all);
    Arc::make_mut(&mut session.start).roles.clone_from(&roles);
    session.scoped.roles = roles;
}

/// A workload that is unknown or not granted is no error: the session has none then, and is told.
fn take_workload(session: &mut SessionState, workload: &str, catalog: &Catalog) -> Option<Warning> {
    let name = Name::parse(workload).ok();
    match name.as_ref().and_then(|name| access::may_use(session, catalog, name)) {
        Some(true) => {
            Arc::make_mut(&mut session.start).workload = name;
            None
        }
        Some(false) => Some(Warning::notice(format!("Permission denied for workload \"{workload}\""))),
        None => Some(Warning::notice(format!("Workload \"{workload}\" does not exist"))),
    }
}

/// Reads PostgreSQL's `options`: `-c name=value`, `-cname=value` and `--name=value`; a backslash takes the next
/// character as it is.
pub(super) fn options(text: &str) -> Result<Vec<(String, String)>, PlanError> {
    let wrong = |word: &str| PlanError::from(SettingError::CommandLine { text: word.to_owned() });
    let mut found = Vec::new();
    let mut words = split(text).into_iter();
    while let Some(word) = words.next() {
        let (assignment, dashes) = if word == "-c" {
            (words.next().ok_or_else(|| wrong(&word))?, false)
        } else if let Some(rest) = word.strip_prefix("--") {
            (rest.to_owned(), true)
        } else if let Some(rest) = word.strip_prefix("-c") {
            (rest.to_owned(), false)
        } else {
            return Err(wrong(&word));
        };
        let (name, value) =
            assignment.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(|| wrong(&word))?;
        let name = if dashes { name.replace('-', "_") } else { name.to_owned() };
        found.push((name, value.to_owned()));
    }
    Ok(found)
}

fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => word.get_or_insert_default().extend(letters.next()),
            space if space.is_whitespace() => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn options_read_as_in_postgresql() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        for (text, wanted) in [
            ("", vec![]),
            ("-c workload=etl", vec![pair("workload", "etl")]),
            (
                "-cstatement_timeout=5s  --client-min-messages=warning",
                vec![pair("statement_timeout", "5s"), pair("client_min_messages", "warning")],
            ),
            (r"-c application_name=a\ b\\c", vec![pair("application_name", r"a b\c")]),
        ] {
            assert_eq!(options(text).unwrap(), wanted, "{text}");
        }
        for text in ["-c", "-x", "workload=etl", "-c workload", "-c =x"] {
            assert!(options(text).is_err(), "{text}");
        }
    }
}
