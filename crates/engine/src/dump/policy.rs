//! Subnets, interfaces, addresses, load balance groups, routing rules.

use switchyard_catalog::{Catalog, GroupMembers as Members, LoadBalanceGroup, Policy};
use switchyard_dialect::{GroupAction, GroupMembers, Ident, Statement};

use super::fleet::{STAND_IN_ADDRESS, free_names, stand_in_node};
use super::{Line, ident, idents};

pub(super) fn subnets(catalog: &Catalog) -> Vec<Line> {
    let make = |subnet: &switchyard_catalog::Subnet| {
        let prefix = subnet.prefix.to_string();
        Line::new("subnet", &subnet.name, Statement::CreateSubnet { name: ident(&subnet.name), prefix })
    };
    catalog.subnets().iter().map(|subnet| make(subnet)).collect()
}

fn node_ident(catalog: &Catalog, id: switchyard_catalog::NodeId) -> Ident {
    Ident(catalog.nodes().find(id).map(|node| node.name.to_string()).unwrap_or_default())
}

pub(super) fn interfaces(catalog: &Catalog) -> Vec<Line> {
    let rows = catalog.network_interfaces().iter();
    rows.map(|row| {
        Line::new(
            "network interface",
            &row.name,
            Statement::CreateNetworkInterface {
                name: ident(&row.name),
                node: node_ident(catalog, row.node),
                address: row.host.to_string(),
                port: Some(row.port.into()),
                enabled: (!row.enabled).then_some(false),
            },
        )
    })
    .collect()
}

pub(super) fn addresses(catalog: &Catalog) -> Vec<Line> {
    let rows = catalog.network_addresses().iter();
    rows.map(|row| {
        Line::new(
            "network address",
            &row.name,
            Statement::CreateNetworkAddress {
                name: ident(&row.name),
                node: node_ident(catalog, row.node),
                address: row.host.to_string(),
                port: Some(row.port.into()),
                enabled: (!row.enabled).then_some(false),
            },
        )
    })
    .collect()
}

/// A group is never made empty, so an empty one is made with a member that is dropped again.
pub(super) fn groups(catalog: &Catalog) -> Vec<Line> {
    let bare = |group: &LoadBalanceGroup| group.members == Members::Empty && group.filter.is_none();
    let needed = catalog.load_balance_groups().iter().any(|group| bare(group));
    let stand_in = free_names(catalog, usize::from(needed)).pop();
    let mut lines = Vec::new();
    if let Some(name) = &stand_in {
        lines.push(Line::Comment("only for groups that are empty; dropped below".to_owned()));
        lines.push(stand_in_node(name));
        lines.push(Line::new(
            "network address",
            &name.0,
            Statement::CreateNetworkAddress {
                name: name.clone(),
                node: name.clone(),
                address: STAND_IN_ADDRESS.to_owned(),
                port: None,
                enabled: None,
            },
        ));
    }
    for group in catalog.load_balance_groups().iter() {
        lines.extend(make_group(catalog, group, stand_in.as_ref()));
    }
    if let Some(name) = stand_in {
        let drop = Statement::DropNode { if_exists: false, name: name.clone(), cascade: true };
        lines.push(Line::new("node", &name.0, drop));
    }
    lines
}

fn make_group(catalog: &Catalog, group: &LoadBalanceGroup, stand_in: Option<&Ident>) -> Vec<Line> {
    const KIND: &str = "load balance group";
    let default = catalog.subclusters().find(catalog.database().default_subcluster);
    let passing: Vec<Ident> = default.map(|row| ident(&row.name)).into_iter().collect();
    let mut dropped = None;
    let members = match &group.members {
        Members::Addresses(ids) => {
            GroupMembers::Addresses(idents(ids, |id| catalog.network_addresses().find(id).cloned(), |row| &row.name))
        }
        Members::FaultGroups(ids) => {
            GroupMembers::FaultGroups(idents(ids, |id| catalog.fault_groups().find(id).cloned(), |row| &row.name))
        }
        Members::Subclusters(ids) => {
            GroupMembers::Subclusters(idents(ids, |id| catalog.subclusters().find(id).cloned(), |row| &row.name))
        }
        Members::Empty if group.filter.is_none() => GroupMembers::Addresses(stand_in.cloned().into_iter().collect()),
        Members::Empty => {
            dropped = Some(GroupMembers::Subclusters(passing.clone()));
            GroupMembers::Subclusters(passing)
        }
    };
    let create = Statement::CreateLoadBalanceGroup {
        name: ident(&group.name),
        members,
        filter: group.filter.as_ref().map(|filter| filter.typed.clone()),
        policy: (group.policy != Policy::default()).then(|| group.policy.as_str().to_owned()),
    };
    let mut lines = vec![Line::new(KIND, &group.name, create)];
    if let Some(members) = dropped {
        let action = GroupAction::Drop(members);
        lines.push(Line::new(KIND, &group.name, Statement::AlterLoadBalanceGroup { name: ident(&group.name), action }));
    }
    lines
}

/// Rules by client network, then by workload; within each the oldest first, since age decides between equals.
pub(super) fn rules(catalog: &Catalog) -> Vec<Line> {
    const KIND: &str = "routing rule";
    let by_network = catalog.routing_rules().iter().map(|rule| {
        let group = catalog.load_balance_groups().find(rule.group);
        Line::new(
            KIND,
            &rule.name,
            Statement::CreateRoutingRule {
                name: ident(&rule.name),
                route: rule.source.typed.clone(),
                group: Ident(group.map(|group| group.name.to_string()).unwrap_or_default()),
            },
        )
    });
    let by_workload = catalog.workload_rules().iter().map(|rule| {
        let named = rule.name.as_str() != rule.workload.as_str();
        let subclusters = idents(&rule.subclusters, |id| catalog.subclusters().find(id).cloned(), |row| &row.name);
        Line::new(
            KIND,
            &rule.name,
            Statement::CreateWorkloadRule {
                name: named.then(|| ident(&rule.name)),
                workload: ident(&rule.workload),
                subclusters,
                priority: (rule.priority > 0).then(|| rule.priority.into()),
            },
        )
    });
    by_network.chain(by_workload).collect()
}
