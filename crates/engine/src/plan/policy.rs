//! Network addresses, load balance groups, routing rules.

use switchyard_catalog::{
    AddressChange, Change, GroupChange, GroupSource, Policy, RuleChange, RuleTarget as CatalogTarget,
};
use switchyard_dialect::{AddressAction, GroupAction, GroupMembers, RuleAction, RuleTarget, Statement};

use super::words::{self, PORT_DEFAULT, name, names};
use super::{Changes, PlanContext, one};
use crate::error::PlanError;

/// Plans a statement of this family; `None` for others.
pub(super) fn plan(statement: &Statement, context: &PlanContext<'_>) -> Result<Option<Changes>, PlanError> {
    Ok(Some(match statement {
        Statement::CreateNetworkAddress { name: address, node, address: host, port, enabled } => one(
            "CREATE NETWORK ADDRESS",
            Change::CreateNetworkAddress {
                name: name(address)?,
                node: name(node)?,
                host: words::client_host(host, context)?,
                port: words::port(*port)?.unwrap_or(PORT_DEFAULT),
                enabled: enabled.unwrap_or(true),
            },
        ),
        Statement::AlterNetworkAddress { name: address, action } => one(
            "ALTER NETWORK ADDRESS",
            Change::AlterNetworkAddress { name: name(address)?, change: address_change(action, context)? },
        ),
        Statement::DropNetworkAddress { if_exists, name: address, cascade } => one(
            "DROP NETWORK ADDRESS",
            Change::DropNetworkAddress { name: name(address)?, if_exists: *if_exists, cascade: *cascade },
        ),
        Statement::CreateNetworkInterface { name: interface, node, address: host, port, enabled } => one(
            "CREATE NETWORK INTERFACE",
            Change::CreateNetworkInterface {
                name: name(interface)?,
                node: name(node)?,
                host: words::client_host(host, context)?,
                port: words::port(*port)?.unwrap_or(PORT_DEFAULT),
                enabled: enabled.unwrap_or(true),
            },
        ),
        Statement::AlterNetworkInterface { name: interface, action } => one(
            "ALTER NETWORK INTERFACE",
            Change::AlterNetworkInterface { name: name(interface)?, change: address_change(action, context)? },
        ),
        Statement::DropNetworkInterface { if_exists, name: interface, cascade } => one(
            "DROP NETWORK INTERFACE",
            Change::DropNetworkInterface { name: name(interface)?, if_exists: *if_exists, cascade: *cascade },
        ),
        Statement::CreateSubnet { name: subnet, prefix } => {
            one("CREATE SUBNET", Change::CreateSubnet { name: name(subnet)?, prefix: words::prefix(prefix)? })
        }
        Statement::AlterSubnet { name: subnet, rename_to } => {
            one("ALTER SUBNET", Change::RenameSubnet { name: name(subnet)?, to: name(rename_to)? })
        }
        Statement::DropSubnet { if_exists, names: subnets, cascade } => {
            one("DROP SUBNET", Change::DropSubnets { names: names(subnets)?, if_exists: *if_exists, cascade: *cascade })
        }
        _ => return group_or_rule(statement),
    }))
}

fn address_change(action: &AddressAction, context: &PlanContext<'_>) -> Result<AddressChange, PlanError> {
    Ok(match action {
        AddressAction::Rename(to) => AddressChange::Rename(name(to)?),
        AddressAction::Set { address, port } => {
            AddressChange::Set { host: words::client_host(address, context)?, port: words::port(*port)? }
        }
        AddressAction::Enable(enabled) => AddressChange::Enable(*enabled),
    })
}

fn group_or_rule(statement: &Statement) -> Result<Option<Changes>, PlanError> {
    Ok(Some(match statement {
        Statement::CreateLoadBalanceGroup { name: group, members, filter, policy } => one(
            "CREATE LOAD BALANCE GROUP",
            Change::CreateLoadBalanceGroup {
                name: name(group)?,
                source: source(members)?,
                filter: filter.as_deref().map(words::network).transpose()?,
                policy: policy.as_deref().map_or(Ok(Policy::default()), words::policy)?,
            },
        ),
        Statement::AlterLoadBalanceGroup { name: group, action } => one(
            "ALTER LOAD BALANCE GROUP",
            Change::AlterLoadBalanceGroup { name: name(group)?, change: group_change(action)? },
        ),
        Statement::DropLoadBalanceGroup { if_exists, name: group, cascade } => one(
            "DROP LOAD BALANCE GROUP",
            Change::DropLoadBalanceGroup { name: name(group)?, if_exists: *if_exists, cascade: *cascade },
        ),
        Statement::CreateRoutingRule { name: rule, route, group } => Changes {
            warnings: words::single_address(route).into_iter().collect(),
            ..one(
                "CREATE ROUTING RULE",
                Change::CreateRoutingRule { name: name(rule)?, source: words::network(route)?, group: name(group)? },
            )
        },
        Statement::CreateWorkloadRule { name: rule, workload, subclusters, priority } => one(
            "CREATE ROUTING RULE",
            Change::CreateWorkloadRule {
                name: rule.as_ref().map(name).transpose()?,
                workload: name(workload)?,
                subclusters: names(subclusters)?,
                priority: words::priority(priority.unwrap_or(0))?,
            },
        ),
        Statement::AlterRoutingRule { target: rule, action } => Changes {
            warnings: match action {
                RuleAction::Route(route) => words::single_address(route).into_iter().collect(),
                _ => Vec::new(),
            },
            ..one(
                "ALTER ROUTING RULE",
                Change::AlterRoutingRule { target: target(rule)?, change: rule_change(action)? },
            )
        },
        Statement::DropRoutingRule { if_exists, target: rule } => {
            one("DROP ROUTING RULE", Change::DropRoutingRule { target: target(rule)?, if_exists: *if_exists })
        }
        _ => return Ok(None),
    }))
}

fn source(members: &GroupMembers) -> Result<GroupSource, PlanError> {
    Ok(match members {
        GroupMembers::Addresses(members) => GroupSource::Addresses(names(members)?),
        GroupMembers::FaultGroups(members) => GroupSource::FaultGroups(names(members)?),
        GroupMembers::Subclusters(members) => GroupSource::Subclusters(names(members)?),
    })
}

fn group_change(action: &GroupAction) -> Result<GroupChange, PlanError> {
    Ok(match action {
        GroupAction::Rename(to) => GroupChange::Rename(name(to)?),
        GroupAction::Filter(filter) => GroupChange::Filter(words::network(filter)?),
        GroupAction::Policy(policy) => GroupChange::Policy(words::policy(policy)?),
        GroupAction::Add(members) => GroupChange::Add(source(members)?),
        GroupAction::Drop(members) => GroupChange::Drop(source(members)?),
    })
}

fn target(rule: &RuleTarget) -> Result<CatalogTarget, PlanError> {
    Ok(match rule {
        RuleTarget::Named(rule) => CatalogTarget::Named(name(rule)?),
        RuleTarget::Workload(workload) => CatalogTarget::Workload(name(workload)?),
    })
}

fn rule_change(action: &RuleAction) -> Result<RuleChange, PlanError> {
    Ok(match action {
        RuleAction::Rename(to) => RuleChange::Rename(name(to)?),
        RuleAction::Route(route) => RuleChange::Route(words::network(route)?),
        RuleAction::Group(group) => RuleChange::Group(name(group)?),
        RuleAction::Workload(workload) => RuleChange::Workload(name(workload)?),
        RuleAction::Subclusters(subclusters) => RuleChange::Subclusters(names(subclusters)?),
        RuleAction::Priority(priority) => RuleChange::Priority(words::priority(*priority)?),
        RuleAction::AddSubclusters(subclusters) => RuleChange::AddSubclusters(names(subclusters)?),
        RuleAction::RemoveSubclusters(subclusters) => RuleChange::RemoveSubclusters(names(subclusters)?),
    })
}
