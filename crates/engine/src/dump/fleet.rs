//! Settings, subclusters, nodes, fault groups, table groups, the database.

use std::sync::Arc;

use switchyard_catalog::{Catalog, FIRST_SUBCLUSTER, Host, Name, Node, NodeKind, NodeType, SettingLevel, SubclusterId};
use switchyard_dialect::{
    Assignment, DatabaseAction, FaultGroupAction, Ident, Literal, MetaFunction, NodeAction, NodeType as TypedNodeType,
    OrDefault, ParameterAction, Procedure, SecretText, SetScope, SetValue, Statement, SubclusterAction, Value,
};

use super::{Line, assignments, ident, idents, subcluster_ident};
use crate::settings;

pub(super) fn set_action<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> ParameterAction {
    let one =
        |(name, value): (&str, &str)| Assignment { name: Ident(name.to_owned()), value: Value::Text(value.to_owned()) };
    ParameterAction::Set(pairs.into_iter().map(one).collect())
}

fn alter_database(action: DatabaseAction) -> Statement {
    Statement::AlterDatabase { database: OrDefault::Default, action }
}

pub(super) fn function(function: MetaFunction, argument: &str) -> Statement {
    Statement::Function {
        function,
        typed: function.name().to_owned(),
        arguments: vec![Literal::Text(argument.to_owned())],
        alias: None,
    }
}

fn is_loopback(host: &Host) -> bool {
    match host {
        Host::Ip(ip) => ip.to_canonical().is_loopback(),
        Host::Dns(name) => name.eq_ignore_ascii_case("localhost"),
    }
}

/// Whether there are loopback addresses from a time when they were allowed.
fn needs_loopback(catalog: &Catalog) -> bool {
    let addresses = catalog.network_addresses().iter().map(|row| &row.host);
    let interfaces = catalog.network_interfaces().iter().map(|row| &row.host);
    let allowed = settings::database_value("allow_loopback_addresses", catalog).as_deref() == Some("on");
    !allowed && addresses.chain(interfaces).any(is_loopback)
}

/// What must be so while the script runs: shards without caps, loopback addresses.
pub(super) fn opening(catalog: &Catalog) -> Vec<Line> {
    let mut lines = Vec::new();
    if !catalog.table_groups().is_empty() {
        lines.push(Line::new(
            "setting",
            "",
            Statement::Set {
                scope: SetScope::Local,
                name: Ident("hg_experimental_enable_shard_count_cap".to_owned()),
                values: SetValue::Values(vec![Value::Word("off".to_owned())]),
            },
        ));
    }
    if needs_loopback(catalog) {
        let action = set_action([("allow_loopback_addresses", "on")]);
        lines.push(Line::new("setting", "", alter_database(DatabaseAction::Parameter(action))));
    }
    lines
}

/// What must be so again when it ends, and what an initial catalog has that this one has not.
pub(super) fn closing(catalog: &Catalog) -> Vec<Line> {
    let mut lines = Vec::new();
    if needs_loopback(catalog) {
        const NAME: &str = "allow_loopback_addresses";
        let action = match catalog.setting(SettingLevel::Database, NAME) {
            Some(setting) => set_action([(NAME, setting.value.as_str())]),
            None => ParameterAction::Clear(vec![Ident(NAME.to_owned())]),
        };
        lines.push(Line::new("setting", "", alter_database(DatabaseAction::Parameter(action))));
    }
    lines
}

/// ALTER DATABASE ... SET, and the classic policy.
pub(super) fn settings(catalog: &Catalog) -> Vec<Line> {
    let database = &catalog.database().name;
    let pairs = assignments(catalog.settings_at(SettingLevel::Database));
    let set = pairs.into_iter().filter(|(name, _)| !(*name == "allow_loopback_addresses" && needs_loopback(catalog)));
    let mut lines: Vec<Line> = set
        .map(|pair| {
            let action = DatabaseAction::Parameter(set_action([pair]));
            Line::new("setting", pair.0, alter_database(action))
        })
        .collect();
    if catalog.database().policy != switchyard_catalog::Policy::None {
        let policy = catalog.database().policy.as_str();
        lines.push(Line::new("database", database, function(MetaFunction::SetLoadBalancePolicy, policy)));
    }
    lines
}

/// The subclusters, the oldest first, and which is the default.
pub(super) fn subclusters(catalog: &Catalog) -> Vec<Line> {
    const KIND: &str = "subcluster";
    let is_first = |name: &str| name.eq_ignore_ascii_case(FIRST_SUBCLUSTER);
    let all = || catalog.subclusters().iter();
    let mut lines = Vec::new();
    for subcluster in all().filter(|row| !is_first(row.name.as_str())) {
        let primary = subcluster.primary.then_some(true);
        let create = Statement::CreateSubcluster { name: ident(&subcluster.name), primary };
        lines.push(Line::new(KIND, &subcluster.name, create));
    }
    if let Some(default) = catalog.subclusters().find(catalog.database().default_subcluster)
        && !is_first(default.name.as_str())
    {
        let action = SubclusterAction::SetDefault;
        lines.push(Line::new(KIND, &default.name, Statement::AlterSubcluster { name: ident(&default.name), action }));
    }
    match all().find(|row| is_first(row.name.as_str())) {
        None => lines.push(Line::new(
            KIND,
            FIRST_SUBCLUSTER,
            Statement::DropSubcluster { if_exists: true, name: Ident(FIRST_SUBCLUSTER.to_owned()), cascade: true },
        )),
        Some(first) if !first.primary => {
            let demote = function(MetaFunction::DemoteSubclusterToSecondary, first.name.as_str());
            lines.push(Line::new(KIND, &first.name, demote));
        }
        Some(_) => {}
    }
    lines
}

/// The nodes, the oldest first, and then what they need others for.
pub(super) fn nodes(catalog: &Catalog) -> Vec<Line> {
    const KIND: &str = "node";
    let mut lines = Vec::new();
    for node in catalog.nodes().iter() {
        let alter = |action| Line::new(KIND, &node.name, Statement::AlterNode { name: ident(&node.name), action });
        lines.extend(create_node(catalog, node));
        let settings = assignments(catalog.settings_at(SettingLevel::Node(node.id)));
        lines.extend(settings.into_iter().map(|pair| alter(NodeAction::Parameter(set_action([pair])))));
        if node.draining {
            // How long it may take is for the process that does it: whoever joins later drains no more.
            lines.push(alter(NodeAction::Drain { within: None, then_close: false }));
        }
        let typed = match node.node_type {
            NodeType::Permanent => continue,
            NodeType::Ephemeral => TypedNodeType::Ephemeral,
            NodeType::Standby => TypedNodeType::Standby,
            NodeType::Execute => TypedNodeType::Execute,
        };
        lines.push(alter(NodeAction::Type(typed)));
    }
    for node in catalog.nodes().iter() {
        if let Some(with) = node.replaced_by.and_then(|id| catalog.nodes().find(id)) {
            let action = NodeAction::Replace(Some(ident(&with.name)));
            lines.push(Line::new(KIND, &node.name, Statement::AlterNode { name: ident(&node.name), action }));
        }
    }
    lines
}

/// Where a member is that has joined before all this is run: in the first subcluster, and in the default one when the
/// first is dropped.
fn joins(catalog: &Catalog) -> SubclusterId {
    let first = catalog.subclusters().iter().find(|row| row.name.as_str().eq_ignore_ascii_case(FIRST_SUBCLUSTER));
    first.map_or(catalog.database().default_subcluster, |first| first.id)
}

/// What is to be read of a member, and what declares it where it has not joined, to be taken over when it does.
fn member(node: &Node) -> Vec<Line> {
    let declared = Statement::CreateNode {
        name: ident(&node.name),
        host: node.host.clone(),
        port: Some(node.port.into()),
        subcluster: None,
    };
    vec![
        Line::Comment(format!("node {} is a member; where it has not joined, run the next line too", node.name)),
        Line::Comment(format!("{declared};")),
    ]
}

/// A member has its address and upstream from its own flags; only the subcluster is the catalog's to say.
fn create_node(catalog: &Catalog, node: &Arc<Node>) -> Vec<Line> {
    let subcluster = subcluster_ident(catalog, node.subcluster);
    let upstream = match &node.kind {
        NodeKind::Member { .. } => {
            let mut lines = member(node);
            if node.subcluster != joins(catalog)
                && let Some(name) = subcluster
            {
                let action = SubclusterAction::AddNodes(vec![ident(&node.name)]);
                lines.push(Line::new("node", &node.name, Statement::AlterSubcluster { name, action }));
            }
            return lines;
        }
        NodeKind::Remote { upstream } => upstream,
    };
    let mut lines = vec![Line::new(
        "node",
        &node.name,
        Statement::CreateNode {
            name: ident(&node.name),
            host: node.host.clone(),
            port: Some(node.port.into()),
            subcluster,
        },
    )];
    if let Some(upstream) = upstream {
        let (url, hidden) = without_password(upstream.reveal());
        if hidden {
            lines.push(Line::Comment("the upstream's password is left out".to_owned()));
        }
        let action = NodeAction::Upstream(Some(SecretText::new(url)));
        lines.push(Line::new("node", &node.name, Statement::AlterNode { name: ident(&node.name), action }));
    }
    lines
}

/// A URL without its password, and whether it had one.
fn without_password(url: &str) -> (String, bool) {
    let mut hidden = false;
    let mut plain = url.to_owned();
    if let Some((scheme, rest)) = url.split_once("://") {
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
        if let Some((login, place)) = authority.rsplit_once('@')
            && let Some((user, _)) = login.split_once(':')
        {
            hidden = true;
            plain = format!("{scheme}://{user}@{place}{after}");
        }
    }
    if let Some((base, query)) = plain.clone().split_once('?') {
        let kept: Vec<&str> = query.split('&').filter(|pair| !pair.starts_with("password=")).collect();
        if kept.len() < query.split('&').count() {
            hidden = true;
            plain = if kept.is_empty() { base.to_owned() } else { format!("{base}?{}", kept.join("&")) };
        }
    }
    (plain, hidden)
}

/// The fault groups, then what they hold.
pub(super) fn fault_groups(catalog: &Catalog) -> Vec<Line> {
    const KIND: &str = "fault group";
    let groups = || catalog.fault_groups().iter();
    let mut lines: Vec<Line> = groups()
        .map(|group| Line::new(KIND, &group.name, Statement::CreateFaultGroup { name: ident(&group.name) }))
        .collect();
    for group in groups() {
        if let Some(parent) = group.parent.and_then(|id| catalog.fault_groups().find(id)) {
            let action = FaultGroupAction::AddChild(ident(&group.name));
            lines.push(Line::new(KIND, &parent.name, Statement::AlterFaultGroup { name: ident(&parent.name), action }));
        }
        for node in idents(&group.nodes, |id| catalog.nodes().find(id).cloned(), |node| &node.name) {
            let action = FaultGroupAction::AddNode(node);
            lines.push(Line::new(KIND, &group.name, Statement::AlterFaultGroup { name: ident(&group.name), action }));
        }
    }
    lines
}

/// EXPORT ON of nodes and the database.
pub(super) fn exports(catalog: &Catalog) -> Vec<Line> {
    let mut lines = Vec::new();
    for node in catalog.nodes().iter() {
        if let Some(interface) = node.export_interface.and_then(|id| catalog.network_interfaces().find(id)) {
            let action = NodeAction::ExportOn(OrDefault::Named(ident(&interface.name)));
            lines.push(Line::new("node", &node.name, Statement::AlterNode { name: ident(&node.name), action }));
        }
    }
    if let Some(subnet) = catalog.database().export_subnet.and_then(|id| catalog.subnets().find(id)) {
        let action = DatabaseAction::ExportOn(OrDefault::Named(ident(&subnet.name)));
        lines.push(Line::new("database", &catalog.database().name, alter_database(action)));
    }
    lines
}

/// The table groups, the oldest first, and which is the default. Where one wants more replicas than there are workers
/// now, nodes that are drained and dropped again stand in for those that are gone.
pub(super) fn table_groups(catalog: &Catalog) -> Vec<Line> {
    const KIND: &str = "table group";
    let workers = catalog.nodes().iter().filter(|node| node.is_worker() && !node.draining).count();
    let wanted = catalog.table_groups().iter().map(|group| group.replica_count).max().unwrap_or(1);
    let wanted = if wanted > 1 { usize::try_from(wanted).unwrap_or(usize::MAX) } else { 0 };
    let stand_ins = free_names(catalog, wanted.saturating_sub(workers));
    let mut lines = Vec::new();
    if !stand_ins.is_empty() {
        lines.push(Line::Comment("only for table groups that want more replicas than there are workers".to_owned()));
    }
    lines.extend(stand_ins.iter().map(stand_in_node));
    for group in catalog.table_groups().iter() {
        let number = |number: u32| Literal::Number(number.to_string());
        let mut arguments = vec![Literal::Text(group.name.to_string()), number(group.shard_count)];
        if group.replica_count > 1 {
            arguments.push(number(group.replica_count));
        }
        let procedure = Procedure::CreateTableGroup;
        lines.push(Line::new(KIND, &group.name, Statement::Call { procedure, arguments }));
    }
    for name in stand_ins {
        let action = NodeAction::Drain { within: None, then_close: false };
        lines.push(Line::new("node", &name.0, Statement::AlterNode { name: name.clone(), action }));
        let drop = Statement::DropNode { if_exists: false, name: name.clone(), cascade: false };
        lines.push(Line::new("node", &name.0, drop));
    }
    let oldest = catalog.table_groups().iter().next().map(|group| group.id);
    if let Some(default) = catalog.database().default_table_group
        && Some(default) != oldest
        && let Some(group) = catalog.table_groups().find(default)
    {
        let arguments = vec![Literal::Text("default_table_group".to_owned()), Literal::Text(group.name.to_string())];
        let procedure = Procedure::UpdateDatabaseProperty;
        lines.push(Line::new("database", &catalog.database().name, Statement::Call { procedure, arguments }));
    }
    lines
}

/// The address of nodes that are there only while the script runs; no server has it.
pub(super) const STAND_IN_ADDRESS: &str = "192.0.2.1";

/// A node that is there only while the script runs.
pub(super) fn stand_in_node(name: &Ident) -> Line {
    Line::new(
        "node",
        &name.0,
        Statement::CreateNode { name: name.clone(), host: STAND_IN_ADDRESS.to_owned(), port: None, subcluster: None },
    )
}

/// Names that no node, address or interface has.
pub(super) fn free_names(catalog: &Catalog, count: usize) -> Vec<Ident> {
    let taken = |name: &Name| {
        catalog.nodes().named(name).is_some()
            || catalog.network_addresses().named(name).is_some()
            || catalog.network_interfaces().named(name).is_some()
    };
    let numbered = (1..).map(|number: u64| format!("stand_in_{number}"));
    let free = numbered.filter_map(|text| Name::parse(&text).ok()).filter(|name| !taken(name));
    free.take(count).map(|name| ident(&name)).collect()
}

#[cfg(test)]
mod tests {
    use super::without_password;

    #[test]
    fn urls_lose_their_passwords_and_nothing_else() {
        for (url, plain, hidden) in [
            ("postgresql://h:5432/db", "postgresql://h:5432/db", false),
            ("postgresql://u:p@h/db", "postgresql://u@h/db", true),
            ("postgresql://u:p@q@h/db", "postgresql://u@h/db", true),
            ("postgresql://h/db?password=x&sslmode=require", "postgresql://h/db?sslmode=require", true),
            ("postgresql://u:p@h?password=x", "postgresql://u@h", true),
        ] {
            assert_eq!(without_password(url), (plain.to_owned(), hidden), "{url}");
        }
    }
}
