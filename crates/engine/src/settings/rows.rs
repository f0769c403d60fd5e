//! The rows of `switchyard.settings` and `v_monitor.CONFIGURATION_PARAMETERS`.

use std::collections::BTreeMap;

use switchyard_catalog::{Catalog, SettingLevel};

use super::{Declaration, Family, LastingLevels, Level, LevelValues, SETTINGS, effective_at};
use crate::session_state::SessionState;
use crate::show::MASK;

/// One row of `switchyard.settings`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingRow {
    /// The name.
    pub name: &'static str,
    /// The value that counts in this session, as SHOW prints it.
    pub value: String,
    /// The value where none is set.
    pub default: String,
    /// The level the value comes from: DEFAULT, DATABASE, NODE, USER or SESSION.
    pub source: &'static str,
    /// bool, integer, enum, string or interval.
    pub kind: &'static str,
    /// vertica, postgresql, hologres or switchyard.
    pub family: &'static str,
    /// Where it can be set: `NODE, DATABASE`; empty for what cannot be set.
    pub allowed_levels: String,
    /// Whether a change counts from the next start only.
    pub needs_restart: bool,
    /// Whether only a superuser may set and see it.
    pub superuser_only: bool,
    /// A sentence.
    pub description: &'static str,
}

/// All settings as one session sees them, by name.
pub fn setting_rows(catalog: &Catalog, session: &SessionState) -> Vec<SettingRow> {
    let live = LevelValues::read(catalog, session.node_id(catalog), session.user_id);
    let superuser = session.is_superuser(catalog);
    let mut rows: Vec<SettingRow> = SETTINGS
        .iter()
        .map(|setting| {
            let levels = if setting.family.is_live() { &live } else { session.levels_at_login() };
            let (value, level) = effective_at(setting, session, catalog, LastingLevels::Read(levels));
            SettingRow {
                name: setting.name,
                value: masked(setting, superuser, setting.shown(&value)),
                default: setting.shown(setting.default),
                source: level.as_str(),
                kind: setting.kind.as_str(),
                family: setting.family.as_str(),
                allowed_levels: setting.levels.words(),
                needs_restart: setting.restart,
                superuser_only: setting.superuser,
                description: setting.description,
            }
        })
        .collect();
    rows.sort_by_cached_key(|row| row.name.to_lowercase());
    rows
}

fn masked(setting: &Declaration, superuser: bool, value: String) -> String {
    if setting.superuser && !superuser { MASK.to_owned() } else { value }
}

/// One row of `v_monitor.CONFIGURATION_PARAMETERS`; the fields are its columns, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "reference/vertica-sql.md §7 says what each column holds")]
pub struct ConfigurationRow {
    pub node_name: String,
    pub parameter_name: &'static str,
    pub current_value: String,
    pub restart_value: String,
    pub database_value: String,
    pub default_value: String,
    pub current_level: &'static str,
    pub restart_level: &'static str,
    pub is_mismatch: bool,
    pub groups: String,
    pub allowed_levels: String,
    pub superuser_only: bool,
    pub change_under_support_guidance: bool,
    pub change_requires_restart: bool,
    pub description: &'static str,
}

/// Vertica's parameters, Hologres' and ours: one row where all nodes have the same value, else one a node.
pub fn configuration_rows(catalog: &Catalog, session: &SessionState) -> Vec<ConfigurationRow> {
    let live = LevelValues::read(catalog, None, session.user_id);
    let nodes = node_values(catalog);
    let superuser = session.is_superuser(catalog);
    let mut rows = Vec::new();
    for setting in SETTINGS.iter().filter(|setting| setting.family != Family::PostgreSql) {
        let [local, own] = session.own_values(setting.name);
        let database = live.database.get(setting.name);
        let at_node = nodes.get(setting.name);
        let names: Vec<String> = match at_node {
            None => vec!["ALL".to_owned()],
            Some(_) => catalog.nodes().iter().map(|node| node.name.to_string()).collect(),
        };
        for node_name in names {
            let node = at_node.and_then(|values| values.get(&node_name));
            let (value, level) = [(local.or(own), Level::Session), (node, Level::Node), (database, Level::Database)]
                .into_iter()
                .find_map(|(value, level)| Some((value?.as_str(), level)))
                .unwrap_or((setting.default, Level::Default));
            let shown = |kept: &str| masked(setting, superuser, setting.shown(kept));
            rows.push(ConfigurationRow {
                node_name,
                parameter_name: setting.name,
                current_value: shown(value),
                restart_value: shown(value),
                database_value: shown(database.map_or(setting.default, String::as_str)),
                default_value: setting.shown(setting.default),
                current_level: level.as_str(),
                restart_level: level.as_str(),
                is_mismatch: at_node.is_some(),
                groups: String::new(),
                allowed_levels: setting.levels.words(),
                superuser_only: setting.superuser,
                change_under_support_guidance: false,
                change_requires_restart: setting.restart,
                description: setting.description,
            });
        }
    }
    rows.sort_by_cached_key(|row| (row.parameter_name.to_lowercase(), row.node_name.clone()));
    rows
}

/// Setting, then node, then value.
fn node_values(catalog: &Catalog) -> BTreeMap<&str, BTreeMap<String, String>> {
    let mut values: BTreeMap<&str, BTreeMap<String, String>> = BTreeMap::new();
    for row in catalog.settings().iter() {
        if let SettingLevel::Node(id) = row.level
            && let Some(node) = catalog.nodes().find(id)
        {
            values.entry(row.name.as_str()).or_default().insert(node.name.to_string(), row.value.clone());
        }
    }
    values
}
