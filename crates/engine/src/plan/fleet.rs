//! The database, nodes, subclusters, fault groups.

use switchyard_catalog::{
    Change, DrainTerms, FaultGroupChange, Name, NodeChange, NodeKind, NodeType as CatalogNodeType, Secret,
    SettingLevel, SettingTarget, SubclusterChange,
};
use switchyard_dialect::{
    DatabaseAction, FaultGroupAction, Ident, NodeAction, NodeType, OrDefault, ParameterAction, SecretText, Selection,
    Statement, SubclusterAction,
};

use super::words::{self, PORT_DEFAULT, name, names};
use super::{Changes, PlanContext, one};
use crate::error::{PlanError, Warning};
use crate::settings::{self, Level, interval};

/// Plans a statement of this family; `None` for others.
pub(super) fn plan(statement: &Statement, context: &PlanContext<'_>) -> Result<Option<Changes>, PlanError> {
    Ok(Some(match statement {
        Statement::AlterDatabase { database, action } => {
            words::database(database, context)?;
            database_changes(action, context)?
        }
        Statement::AlterNode { name: node, action } => node_changes(&name(node)?, action, context)?,
        Statement::CreateNode { name: node, host, port, subcluster } => {
            create_node(name(node)?, host, *port, subcluster.as_ref())?
        }
        Statement::DropNode { if_exists, name: node, cascade } => {
            one("DROP NODE", Change::DropNode { name: name(node)?, if_exists: *if_exists, cascade: *cascade })
        }
        Statement::CreateSubcluster { name: subcluster, primary } => one(
            "CREATE SUBCLUSTER",
            Change::CreateSubcluster { name: name(subcluster)?, primary: primary.unwrap_or(false) },
        ),
        Statement::AlterSubcluster { name: subcluster, action } => one(
            "ALTER SUBCLUSTER",
            Change::AlterSubcluster {
                name: name(subcluster)?,
                change: match action {
                    SubclusterAction::Rename(to) => SubclusterChange::Rename(name(to)?),
                    SubclusterAction::SetDefault => SubclusterChange::SetDefault,
                    SubclusterAction::AddNodes(nodes) => SubclusterChange::AddNodes(names(nodes)?),
                    SubclusterAction::DropNodes(nodes) => SubclusterChange::DropNodes(names(nodes)?),
                },
            },
        ),
        Statement::DropSubcluster { if_exists, name: subcluster, cascade } => one(
            "DROP SUBCLUSTER",
            Change::DropSubcluster { name: name(subcluster)?, if_exists: *if_exists, cascade: *cascade },
        ),
        Statement::CreateFaultGroup { name: group } => {
            one("CREATE FAULT GROUP", Change::CreateFaultGroup { name: name(group)? })
        }
        Statement::AlterFaultGroup { name: group, action } => one(
            "ALTER FAULT GROUP",
            Change::AlterFaultGroup {
                name: name(group)?,
                change: match action {
                    FaultGroupAction::Rename(to) => FaultGroupChange::Rename(name(to)?),
                    FaultGroupAction::AddNode(node) => FaultGroupChange::AddNode(name(node)?),
                    FaultGroupAction::DropNode(node) => FaultGroupChange::DropNode(name(node)?),
                    FaultGroupAction::AddChild(child) => FaultGroupChange::AddChild(name(child)?),
                    FaultGroupAction::DropChild(child) => FaultGroupChange::DropChild(name(child)?),
                },
            },
        ),
        Statement::DropFaultGroup { if_exists, name: group } => {
            one("DROP FAULT GROUP", Change::DropFaultGroup { name: name(group)?, if_exists: *if_exists })
        }
        _ => return Ok(None),
    }))
}

fn or_default(choice: &OrDefault) -> Result<Option<Name>, PlanError> {
    match choice {
        OrDefault::Default => Ok(None),
        OrDefault::Named(ident) => name(ident).map(Some),
    }
}

fn database_changes(action: &DatabaseAction, context: &PlanContext<'_>) -> Result<Changes, PlanError> {
    const TAG: &str = "ALTER DATABASE";
    match action {
        DatabaseAction::ExportOn(subnet) => Ok(one(TAG, Change::ExportDatabaseOn { subnet: or_default(subnet)? })),
        DatabaseAction::DropAllFaultGroups => Ok(one(TAG, Change::DropAllFaultGroups)),
        DatabaseAction::ResetStandby => {
            let replaced = context.catalog.nodes().iter().filter(|node| node.replaced_by.is_some());
            let reset = |node: Name| Change::AlterNode { name: node, change: NodeChange::Reset };
            let changes = replaced.map(|node| reset(node.name.clone())).collect();
            Ok(Changes { changes, tag: TAG, answer: None, warnings: Vec::new() })
        }
        DatabaseAction::Parameter(action) => parameters(TAG, &SettingTarget::Database, action, context),
        DatabaseAction::Reset(Selection::Named(named)) => {
            parameters(TAG, &SettingTarget::Database, &ParameterAction::Clear(named.clone()), context)
        }
        DatabaseAction::Reset(Selection::All) => {
            let set = context.catalog.settings_at(SettingLevel::Database);
            let named = set.map(|setting| Ident(setting.name.clone())).collect();
            parameters(TAG, &SettingTarget::Database, &ParameterAction::Clear(named), context)
        }
    }
}

/// SET and CLEAR at a lasting level.
pub(super) fn parameters(
    tag: &'static str,
    target: &SettingTarget,
    action: &ParameterAction,
    context: &PlanContext<'_>,
) -> Result<Changes, PlanError> {
    let level = match target {
        SettingTarget::Database => Level::Database,
        SettingTarget::Node(_) => Level::Node,
        SettingTarget::User(_) => Level::User,
    };
    let mut planned = Changes { changes: Vec::new(), tag, answer: None, warnings: Vec::new() };
    let pairs: Vec<(&Ident, Option<&switchyard_dialect::Value>)> = match action {
        ParameterAction::Set(assignments) => assignments.iter().map(|one| (&one.name, Some(&one.value))).collect(),
        ParameterAction::Clear(named) => named.iter().map(|one| (one, None)).collect(),
    };
    for (ident, value) in pairs {
        let setting = settings::declaration(&ident.0)?;
        setting.allow(level, context.is_superuser())?;
        let value = value.map(|value| setting.read_values(std::slice::from_ref(value))).transpose()?;
        planned.changes.push(Change::SetSetting { level: target.clone(), name: setting.name.to_owned(), value });
        if setting.restart {
            planned.warnings.push(Warning::notice(format!("parameter \"{}\" changes at the next start", setting.name)));
        }
    }
    Ok(planned)
}

fn node_changes(node: &Name, action: &NodeAction, context: &PlanContext<'_>) -> Result<Changes, PlanError> {
    const TAG: &str = "ALTER NODE";
    let change = match action {
        NodeAction::Parameter(action) => {
            return parameters(TAG, &SettingTarget::Node(node.clone()), action, context);
        }
        NodeAction::ExportOn(interface) => NodeChange::ExportOn(or_default(interface)?),
        NodeAction::Type(kind) => NodeChange::Type(match kind {
            NodeType::Permanent => CatalogNodeType::Permanent,
            NodeType::Ephemeral => CatalogNodeType::Ephemeral,
            NodeType::Standby => CatalogNodeType::Standby,
            NodeType::Execute => CatalogNodeType::Execute,
        }),
        NodeAction::Replace(with) => NodeChange::Replace(with.as_ref().map(name).transpose()?),
        NodeAction::Reset => NodeChange::Reset,
        NodeAction::Address { host, port } => {
            NodeChange::Address { host: words::host(host)?.to_string(), port: words::port(*port)? }
        }
        NodeAction::Upstream(url) => NodeChange::Upstream(url.as_ref().map(upstream).transpose()?),
        NodeAction::Rename(to) => NodeChange::Rename(name(to)?),
        NodeAction::Drain { within, then_close } => {
            let terms = within.as_ref().map(|within| drain_terms(node, within, *then_close, context)).transpose()?;
            NodeChange::Drain { draining: true, terms }
        }
        NodeAction::CancelDrain => NodeChange::Drain { draining: false, terms: None },
    };
    Ok(one(TAG, Change::AlterNode { name: node.clone(), change }))
}

/// Only a member can measure how long its sessions take, and close them.
fn drain_terms(
    node: &Name,
    within: &str,
    then_close: bool,
    context: &PlanContext<'_>,
) -> Result<DrainTerms, PlanError> {
    let Some(within_us) = interval::parse(within) else {
        return Err(PlanError::Text {
            what: "DRAIN WITHIN",
            value: within.to_owned(),
            hint: Some("Write an interval, for example '10 mins'."),
        });
    };
    let found = context.catalog.nodes().named(node);
    if found.is_some_and(|node| matches!(node.kind, NodeKind::Remote { .. })) {
        return Err(PlanError::NotSupported {
            what: "DRAIN WITHIN for a node that is no member".to_owned(),
            hint: Some("ALTER NODE ... DRAIN without a time has new connections go elsewhere.".to_owned()),
        });
    }
    Ok(DrainTerms { within_ms: within_us.div_ceil(1_000), then_close })
}

/// `postgresql://[user[:password]@]host[:port][/database][?parameters]`
fn upstream(url: &SecretText) -> Result<Secret, PlanError> {
    let text = url.reveal();
    let rest = text.strip_prefix("postgresql://").or_else(|| text.strip_prefix("postgres://"));
    let authority = rest.and_then(|rest| rest.split(['/', '?']).next());
    let place = authority.and_then(|authority| authority.rsplit('@').next()).unwrap_or_default();
    if place.is_empty() || place.starts_with(':') || text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(PlanError::Text {
            what: "upstream",
            // The text may hold a password.
            value: "********".to_owned(),
            hint: Some("Write a URL of the form postgresql://host:port/."),
        });
    }
    Ok(Secret::new(text))
}

fn create_node(node: Name, host: &str, port: Option<u64>, subcluster: Option<&Ident>) -> Result<Changes, PlanError> {
    let host = words::host(host)?.to_string();
    let port = words::port(port)?.unwrap_or(PORT_DEFAULT);
    let subcluster = subcluster.map(name).transpose()?;
    let kind = NodeKind::Remote { upstream: None };
    Ok(one("CREATE NODE", Change::CreateNode { name: node, kind, host, port, subcluster }))
}
