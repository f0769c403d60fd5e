//! Network addresses, groups and rules.

use std::fmt;

use super::{Clause, Name, Names, Printer, Quoted};
use crate::ast::{AddressAction, GroupAction, GroupMembers, Ident, RuleAction, RuleTarget, Statement};

impl Printer<'_, '_> {
    pub(super) fn address(&mut self, statement: &Statement) -> fmt::Result {
        match statement {
            Statement::CreateNetworkAddress { name, node, address, port, enabled } => {
                self.create_address("ADDRESS", [name, node], address, *port, *enabled)
            }
            Statement::CreateNetworkInterface { name, node, address, port, enabled } => {
                self.create_address("INTERFACE", [name, node], address, *port, *enabled)
            }
            Statement::AlterNetworkAddress { name, action } => self.alter_address("ADDRESS", name, action),
            Statement::AlterNetworkInterface { name, action } => self.alter_address("INTERFACE", name, action),
            Statement::DropNetworkAddress { if_exists, name, cascade } => {
                self.drop_one("NETWORK ADDRESS", *if_exists, name, *cascade)
            }
            Statement::DropNetworkInterface { if_exists, name, cascade } => {
                self.drop_one("NETWORK INTERFACE", *if_exists, name, *cascade)
            }
            _ => Err(fmt::Error),
        }
    }

    fn create_address(
        &mut self,
        kind: &str,
        [name, node]: [&Ident; 2],
        address: &str,
        port: Option<u64>,
        enabled: Option<bool>,
    ) -> fmt::Result {
        write!(self.out, "CREATE NETWORK {kind} {} ON {}", Name(&name.0), Name(&node.0))?;
        self.text(" WITH ")?;
        self.host(address)?;
        write!(self.out, "{}", Clause(" PORT ", &port))?;
        self.text(match enabled {
            Some(true) => " ENABLED",
            Some(false) => " DISABLED",
            None => "",
        })
    }

    fn alter_address(&mut self, kind: &str, name: &Ident, action: &AddressAction) -> fmt::Result {
        write!(self.out, "ALTER NETWORK {kind} {} ", Name(&name.0))?;
        match action {
            AddressAction::Rename(to) => write!(self.out, "RENAME TO {}", Name(&to.0)),
            AddressAction::Set { address, port } => {
                self.text("SET TO ")?;
                self.host(address)?;
                write!(self.out, "{}", Clause(" PORT ", port))
            }
            AddressAction::Enable(true) => self.text("ENABLE"),
            AddressAction::Enable(false) => self.text("DISABLE"),
        }
    }

    pub(super) fn subnet(&mut self, statement: &Statement) -> fmt::Result {
        match statement {
            Statement::CreateSubnet { name, prefix } => {
                write!(self.out, "CREATE SUBNET {} WITH {}", Name(&name.0), Quoted(prefix))
            }
            Statement::AlterSubnet { name, rename_to } => {
                write!(self.out, "ALTER SUBNET {} RENAME TO {}", Name(&name.0), Name(&rename_to.0))
            }
            Statement::DropSubnet { if_exists, names, cascade } => {
                self.drop_list("SUBNET", *if_exists, names, *cascade)
            }
            _ => Err(fmt::Error),
        }
    }

    pub(super) fn group(&mut self, statement: &Statement) -> fmt::Result {
        match statement {
            Statement::CreateLoadBalanceGroup { name, members, filter, policy } => {
                write!(self.out, "CREATE LOAD BALANCE GROUP {} WITH {members}", Name(&name.0))?;
                let [filter, policy] = [filter, policy].map(|text| text.as_deref().map(Quoted));
                write!(self.out, "{}{}", Clause(" FILTER ", &filter), Clause(" POLICY ", &policy))
            }
            Statement::AlterLoadBalanceGroup { name, action } => {
                write!(self.out, "ALTER LOAD BALANCE GROUP {} ", Name(&name.0))?;
                match action {
                    GroupAction::Rename(to) => write!(self.out, "RENAME TO {}", Name(&to.0)),
                    GroupAction::Filter(filter) => write!(self.out, "SET FILTER TO {}", Quoted(filter)),
                    GroupAction::Policy(policy) => write!(self.out, "SET POLICY TO {}", Quoted(policy)),
                    GroupAction::Add(members) => write!(self.out, "ADD {members}"),
                    GroupAction::Drop(members) => write!(self.out, "DROP {members}"),
                }
            }
            Statement::DropLoadBalanceGroup { if_exists, name, cascade } => {
                self.drop_one("LOAD BALANCE GROUP", *if_exists, name, *cascade)
            }
            _ => Err(fmt::Error),
        }
    }

    pub(super) fn create_rule(&mut self, statement: &Statement) -> fmt::Result {
        match statement {
            Statement::CreateRoutingRule { name, route, group } => {
                write!(self.out, "CREATE ROUTING RULE {}", Name(&name.0))?;
                write!(self.out, " ROUTE {} TO {}", Quoted(route), Name(&group.0))
            }
            Statement::CreateWorkloadRule { name, workload, subclusters, priority } => {
                let name = name.as_ref().map(|name| Name(&name.0));
                write!(self.out, "CREATE ROUTING RULE{}", Clause(" ", &name))?;
                write!(self.out, " ROUTE WORKLOAD {}", Name(&workload.0))?;
                write!(self.out, " TO SUBCLUSTER {}{}", Names(subclusters), Clause(" PRIORITY ", priority))
            }
            _ => Err(fmt::Error),
        }
    }

    pub(super) fn alter_rule(&mut self, target: &RuleTarget, action: &RuleAction) -> fmt::Result {
        write!(self.out, "ALTER ROUTING RULE {target} ")?;
        match action {
            RuleAction::Rename(to) => write!(self.out, "RENAME TO {}", Name(&to.0)),
            RuleAction::Route(route) => write!(self.out, "SET ROUTE TO {}", Quoted(route)),
            RuleAction::Group(group) => write!(self.out, "SET GROUP TO {}", Name(&group.0)),
            RuleAction::Workload(workload) => write!(self.out, "SET WORKLOAD TO {}", Name(&workload.0)),
            RuleAction::Subclusters(names) => write!(self.out, "SET SUBCLUSTER TO {}", Names(names)),
            RuleAction::Priority(priority) => write!(self.out, "SET PRIORITY TO {priority}"),
            RuleAction::AddSubclusters(names) => write!(self.out, "ADD SUBCLUSTER {}", Names(names)),
            RuleAction::RemoveSubclusters(names) => write!(self.out, "REMOVE SUBCLUSTER {}", Names(names)),
        }
    }

    pub(super) fn drop_rule(&mut self, if_exists: bool, target: &RuleTarget) -> fmt::Result {
        self.text("DROP ROUTING RULE ")?;
        self.text_if(if_exists, "IF EXISTS ")?;
        write!(self.out, "{target}")
    }
}

impl fmt::Display for GroupMembers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Addresses(names) => write!(f, "ADDRESS {}", Names(names)),
            Self::FaultGroups(names) => write!(f, "FAULT GROUP {}", Names(names)),
            Self::Subclusters(names) => write!(f, "SUBCLUSTER {}", Names(names)),
        }
    }
}

impl fmt::Display for RuleTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => write!(f, "{}", Name(&name.0)),
            Self::Workload(workload) => write!(f, "FOR WORKLOAD {}", Name(&workload.0)),
        }
    }
}
