//! SHOW. Vertica's own words answer `name | setting` (CURRENT: `level | name | setting`); PostgreSQL's and Hologres'
//! settings answer one column named after the setting, as psql and the drivers expect. SHOW ALL lists Vertica's rows in
//! Vertica's order, then the rest by name.

use switchyard_catalog::{Catalog, Name, NodeId, RoleId, SettingLevel, UserId};
use switchyard_dialect::{Ident, Selection, Show, SqlStatement, Statement};

use crate::error::PlanError;
use crate::plan::{PlanContext, Rows, words_database};
use crate::session_state::{SessionState, access};
use crate::settings::{self, Declaration, Family, Level, SETTINGS, SettingError};
use crate::tables::pgbouncer;

/// What others than superusers see instead of values that are not for them.
pub const MASK: &str = "********";

/// Vertica's rows of SHOW ALL before the roles (`reference/vertica-sql.md` §4.3).
const SESSION_ROWS: [&str; 16] = [
    "locale",
    "autocommit",
    "standard_conforming_strings",
    "escape_string_warning",
    "DateStyle",
    "IntervalStyle",
    "TimeZone",
    "search_path",
    "transaction_isolation",
    "transaction_read_only",
    "resource_pool",
    "memorycap",
    "tempspacecap",
    "runtimecap",
    "idlesessiontimeout",
    "graceperiod",
];

/// The words of SHOW that are no settings.
const WORDS: [&str; 4] = ["enabled roles", "available roles", "workload", "available workloads"];

/// The query that a SHOW in pgbouncer's words stands for.
pub(crate) fn of_table(show: &Show) -> Option<SqlStatement> {
    let Show::Parameter(word) = show else { return None };
    let (_, table) = pgbouncer::WORDS.iter().find(|(own, _)| own.eq_ignore_ascii_case(&word.0))?;
    match switchyard_dialect::parse(&format!("SELECT * FROM switchyard.{table}")).ok()?.pop()?.statement {
        Statement::Sql(query) => Some(query),
        _ => None,
    }
}

/// Answers a SHOW.
pub(crate) fn plan(show: &Show, context: &PlanContext<'_>) -> Result<Rows, PlanError> {
    let view = View { catalog: context.catalog, session: context.session };
    match show {
        Show::Workload => Ok(pairs([view.word("workload")])),
        Show::AvailableWorkloads => Ok(pairs([view.word("available workloads")])),
        Show::AvailableRoles => Ok(pairs([view.word("available roles")])),
        Show::EnabledRoles => Ok(pairs([view.word("enabled roles")])),
        Show::All => Ok(pairs(view.all())),
        Show::Session(Selection::All) => Ok(pairs(view.session_all())),
        Show::Session(Selection::Named(named)) => {
            let rows = declared(named)?.into_iter().map(|setting| [setting.name.to_owned(), view.shown(setting).0]);
            Ok(pairs(rows))
        }
        Show::Current(selection) => view.current(selection),
        Show::Database(database, selection) => {
            words_database(database, context)?;
            view.at_level(Level::Database, SettingLevel::Database, selection)
        }
        Show::Node(node, selection) => {
            let node = view.node(node)?;
            view.at_level(Level::Node, SettingLevel::Node(node), selection)
        }
        Show::User(user, selection) => {
            let user = view.user(user)?;
            view.at_level(Level::User, SettingLevel::User(user), selection)
        }
        Show::Parameter(ident) => view.parameter(ident),
    }
}

/// Other systems show tables, and everything in them, with SHOW.
fn not_a_setting(name: &str, error: SettingError) -> SettingError {
    let hint = match name.to_lowercase().as_str() {
        "help" => format!(
            "SHOW ALL lists the settings; {} and {} are shown too. switchyard.system_tables lists the tables.",
            WORDS.map(str::to_uppercase).join(", "),
            pgbouncer::WORDS.map(|(word, _)| word).join(", ")
        ),
        "workloads" => "SHOW AVAILABLE WORKLOADS lists those that are open to you.".to_owned(),
        "roles" => "SHOW AVAILABLE ROLES lists yours; SELECT * FROM v_catalog.roles shows all.".to_owned(),
        "tables" | "schemas" | "views" => "SELECT * FROM switchyard.system_tables lists the tables.".to_owned(),
        "grants" | "privileges" => "SELECT * FROM grants lists what is granted.".to_owned(),
        lower => match crate::tables::resolve(lower) {
            Some(table) => format!("SELECT * FROM {}.{} shows it.", table.schema, table.name),
            None => match (&error, nearest_word(lower)) {
                (SettingError::Unknown { nearest: None, .. }, Some(word)) => format!("Did you mean \"{word}\"?"),
                _ => return error,
            },
        },
    };
    SettingError::Elsewhere { name: name.to_owned(), hint }
}

/// The word of SHOW, other than a setting, that a wrong one is most like.
fn nearest_word(wrong: &str) -> Option<String> {
    let words = WORDS.into_iter().chain(pgbouncer::WORDS.map(|(word, _)| word));
    let words: Vec<String> = words.map(str::to_uppercase).collect();
    crate::nearest(&wrong.to_uppercase(), words.iter().map(String::as_str)).map(str::to_owned)
}

fn pairs(rows: impl IntoIterator<Item = [String; 2]>) -> Rows {
    Rows::table(["name", "setting"], rows)
}

fn declared(named: &[Ident]) -> Result<Vec<&'static Declaration>, PlanError> {
    named.iter().map(|ident| Ok(settings::declaration(&ident.0)?)).collect()
}

struct View<'a> {
    catalog: &'a Catalog,
    session: &'a SessionState,
}

impl View<'_> {
    fn masked(&self, setting: &Declaration, kept: &str) -> String {
        if setting.superuser && !self.session.is_superuser(self.catalog) {
            MASK.to_owned()
        } else {
            setting.shown(kept)
        }
    }

    fn shown(&self, setting: &'static Declaration) -> (String, Level) {
        let (value, level) = settings::effective(setting, self.session, self.catalog);
        (self.masked(setting, &value), level)
    }

    fn word(&self, name: &str) -> [String; 2] {
        let value = match name {
            "workload" => self.session.workload().map(ToString::to_string).unwrap_or_default(),
            "available workloads" => joined(access::available_workloads(self.session, self.catalog)),
            "available roles" => self.roles(self.catalog.granted_roles(self.session.user_id).into_keys()),
            _ => {
                let in_effect = self.enabled();
                self.roles(in_effect.into_iter())
            }
        };
        [name.to_owned(), value]
    }

    /// The enabled roles that are still granted; the superuser's own are always on.
    fn enabled(&self) -> Vec<RoleId> {
        let granted = self.catalog.granted_roles(self.session.user_id);
        let in_effect = self.catalog.roles_in_effect(self.session.user_id, self.session.enabled_roles());
        in_effect.into_iter().filter(|role| granted.contains_key(role)).collect()
    }

    /// By name, as `USERS.ALL_ROLES` lists them; a star marks the admin option.
    fn roles(&self, roles: impl Iterator<Item = RoleId>) -> String {
        let granted = self.catalog.granted_roles(self.session.user_id);
        let mut named: Vec<(&Name, &str)> = roles
            .filter_map(|id| {
                let star = if granted.get(&id) == Some(&true) { "*" } else { "" };
                Some((&self.catalog.roles().find(id)?.name, star))
            })
            .collect();
        named.sort();
        joined(named.into_iter().map(|(name, star)| format!("{name}{star}")))
    }

    /// Vertica's rows, in Vertica's order and spelling.
    fn session_all(&self) -> Vec<[String; 2]> {
        let settings = SESSION_ROWS.iter().filter_map(|name| settings::declaration(name).ok());
        let rows = settings.map(|setting| [setting.name.to_lowercase(), self.shown(setting).0]);
        rows.chain(WORDS.iter().map(|word| self.word(word))).collect()
    }

    fn all(&self) -> Vec<[String; 2]> {
        let mut rows = self.session_all();
        let mut rest: Vec<&Declaration> = SETTINGS.iter().filter(|row| !SESSION_ROWS.contains(&row.name)).collect();
        rest.sort_by_cached_key(|setting| setting.name.to_lowercase());
        rows.extend(rest.into_iter().map(|setting| [setting.name.to_owned(), self.shown(setting).0]));
        rows
    }

    fn current(&self, selection: &Selection) -> Result<Rows, PlanError> {
        let chosen: Vec<&Declaration> = match selection {
            Selection::Named(named) => declared(named)?,
            Selection::All => {
                let mut all: Vec<&Declaration> = SETTINGS.iter().collect();
                all.sort_by_cached_key(|setting| setting.name.to_lowercase());
                all
            }
        };
        Ok(Rows::table(
            ["level", "name", "setting"],
            chosen.into_iter().map(|setting| {
                let (value, level) = self.shown(setting);
                [level.as_str().to_owned(), setting.name.to_owned(), value]
            }),
        ))
    }

    /// ALL lists what has a value at the level; a name shows its value there, else its default.
    fn at_level(&self, level: Level, at: SettingLevel, selection: &Selection) -> Result<Rows, PlanError> {
        let chosen: Vec<&Declaration> = match selection {
            Selection::Named(named) => declared(named)?,
            Selection::All => {
                let set = self.catalog.settings_at(at);
                set.filter_map(|setting| settings::declaration(&setting.name).ok()).collect()
            }
        };
        let mut rows = Vec::with_capacity(chosen.len());
        for setting in chosen {
            let value = self.catalog.setting(at, setting.name).map(|row| row.value.clone());
            if value.is_none() && !setting.levels.contains(level.allowed()) {
                setting.allow(level, true)?;
            }
            let value = value.unwrap_or_else(|| setting.default.to_owned());
            rows.push([setting.name.to_owned(), self.masked(setting, &value)]);
        }
        Ok(pairs(rows))
    }

    fn parameter(&self, ident: &Ident) -> Result<Rows, PlanError> {
        let word = ident.0.to_lowercase().replace('_', " ");
        if WORDS.contains(&word.as_str()) {
            return Ok(pairs([self.word(&word)]));
        }
        if word == "all" {
            return Ok(pairs(self.all()));
        }
        let setting = settings::declaration(&ident.0).map_err(|error| not_a_setting(&ident.0, error))?;
        let value = self.shown(setting).0;
        Ok(match setting.family {
            Family::Vertica => pairs([[setting.name.to_owned(), value]]),
            Family::PostgreSql | Family::Hologres | Family::Switchyard => Rows::table([setting.name], [[value]]),
        })
    }

    fn node(&self, ident: &Ident) -> Result<NodeId, PlanError> {
        let name = Name::parse(&ident.0)?;
        let nodes = self.catalog.nodes();
        let missing =
            |nearest| PlanError::Missing { kind: switchyard_catalog::ObjectKind::Node, name: name.clone(), nearest };
        nodes.named(&name).map(|node| node.id).ok_or_else(|| missing(crate::plan::nearest(&name, nodes.names())))
    }

    fn user(&self, ident: &Ident) -> Result<UserId, PlanError> {
        let name = Name::parse(&ident.0)?;
        let users = self.catalog.users();
        let missing =
            |nearest| PlanError::Missing { kind: switchyard_catalog::ObjectKind::User, name: name.clone(), nearest };
        users.named(&name).map(|user| user.id).ok_or_else(|| missing(crate::plan::nearest(&name, users.names())))
    }
}

fn joined<T: ToString>(items: impl IntoIterator<Item = T>) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use crate::plan::Plan;
    use crate::plan::tests::fleet;

    #[test]
    fn columns_are_vertica_s_or_postgresql_s() {
        let bench = fleet();
        for (text, columns) in [
            ("SHOW WORKLOAD", &["name", "setting"][..]),
            ("SHOW ALL", &["name", "setting"]),
            ("SHOW MaxClientSessions", &["name", "setting"]),
            ("SHOW CURRENT ALL", &["level", "name", "setting"]),
            ("SHOW DATABASE shop ALL", &["name", "setting"]),
            ("SHOW DATABASE DEFAULT MaxClientSessions", &["name", "setting"]),
            ("SHOW server_version", &["server_version"]),
            ("SHOW TIME ZONE", &["TimeZone"]),
            ("SHOW transaction isolation level", &["transaction_isolation"]),
            ("SHOW hg_experimental_query_replica_mode", &["hg_experimental_query_replica_mode"]),
        ] {
            let plan = bench.plan(text);
            let Ok(Plan::Rows(rows)) = plan else { unreachable!("{text}: {plan:?}") };
            let found: Vec<&str> = rows.columns.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(found, columns, "{text}");
            assert_eq!(rows.tag, "SHOW");
        }
    }

    #[test]
    fn show_all_begins_as_vertica_s_does() {
        let mut bench = fleet();
        let all = bench.run("SHOW ALL");
        let names: Vec<&str> = all.lines().filter_map(|line| line.split('|').next()).collect();
        let wanted = [
            "locale",
            "autocommit",
            "standard_conforming_strings",
            "escape_string_warning",
            "datestyle",
            "intervalstyle",
            "timezone",
            "search_path",
            "transaction_isolation",
            "transaction_read_only",
            "resource_pool",
            "memorycap",
            "tempspacecap",
            "runtimecap",
            "idlesessiontimeout",
            "graceperiod",
            "enabled roles",
            "available roles",
            "workload",
            "available workloads",
        ];
        assert!(names.starts_with(&wanted), "{names:?}");
        assert!(names.contains(&"server_version") && names.contains(&"MaxClientSessions"));
    }

    #[test]
    fn levels_show_what_is_set_there() {
        let mut bench = fleet();
        bench.run("ALTER DATABASE shop SET MaxClientSessions = 9");
        for (text, answer) in [
            ("SHOW DATABASE shop ALL", "MaxClientSessions|9"),
            ("SHOW NODE node1 ALL", ""),
            ("SHOW NODE node1 MaxClientSessions", "MaxClientSessions|50"),
            (
                "SHOW CURRENT MaxClientSessions, locale",
                "DATABASE|MaxClientSessions|9\nDEFAULT|locale|en_US@collation=binary (LEN_KBINARY)",
            ),
        ] {
            assert_eq!(bench.run(text), answer, "{text}");
        }
        assert_eq!(bench.refusal("SHOW DATABASE nope ALL").sqlstate.code(), "3D000");
        assert_eq!(bench.refusal("SHOW NODE nope ALL").sqlstate.code(), "42704");
    }
}
