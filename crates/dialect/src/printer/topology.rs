//! Databases, nodes, subclusters, fault groups and their parameters.

use std::fmt;

use super::{Clause, Name, Names, Parameter, Printer, Quoted};
use crate::ast::{
    Assignment, DatabaseAction, FaultGroupAction, Ident, NodeAction, NodeType, OrDefault, ParameterAction, Selection,
    Statement, SubclusterAction,
};
use crate::secrets::is_secret;

impl Printer<'_, '_> {
    pub(super) fn parameter_action(&mut self, action: &ParameterAction) -> fmt::Result {
        match action {
            ParameterAction::Set(assignments) => self.parameter_set(assignments),
            ParameterAction::Clear(names) => {
                self.text("CLEAR ")?;
                self.parameters(names)
            }
        }
    }

    pub(super) fn parameter_set(&mut self, assignments: &[Assignment]) -> fmt::Result {
        self.text("SET ")?;
        for (index, Assignment { name, value }) in assignments.iter().enumerate() {
            self.comma(index)?;
            write!(self.out, "{} = ", Parameter(&name.0))?;
            if self.redacted && is_secret(&name.0) {
                self.text("'********'")?;
            } else {
                self.value(value)?;
            }
        }
        Ok(())
    }

    fn parameters(&mut self, names: &[Ident]) -> fmt::Result {
        for (index, name) in names.iter().enumerate() {
            self.comma(index)?;
            write!(self.out, "{}", Parameter(&name.0))?;
        }
        Ok(())
    }

    pub(super) fn selection(&mut self, selection: &Selection) -> fmt::Result {
        match selection {
            Selection::All => self.text("ALL"),
            Selection::Named(names) => self.parameters(names),
        }
    }

    pub(super) fn alter_database(&mut self, database: &OrDefault, action: &DatabaseAction) -> fmt::Result {
        write!(self.out, "ALTER DATABASE {database} ")?;
        match action {
            DatabaseAction::ExportOn(subnet) => write!(self.out, "EXPORT ON {subnet}"),
            DatabaseAction::DropAllFaultGroups => self.text("DROP ALL FAULT GROUP"),
            DatabaseAction::ResetStandby => self.text("RESET STANDBY"),
            DatabaseAction::Parameter(action) => self.parameter_action(action),
            DatabaseAction::Reset(selection) => {
                self.text("RESET ")?;
                self.selection(selection)
            }
        }
    }

    pub(super) fn alter_node(&mut self, name: &Ident, action: &NodeAction) -> fmt::Result {
        write!(self.out, "ALTER NODE {} ", Name(&name.0))?;
        match action {
            NodeAction::ExportOn(interface) => write!(self.out, "EXPORT ON {interface}"),
            NodeAction::Type(NodeType::Permanent) => self.text("IS PERMANENT"),
            NodeAction::Type(NodeType::Ephemeral) => self.text("IS EPHEMERAL"),
            NodeAction::Type(NodeType::Standby) => self.text("IS STANDBY"),
            NodeAction::Type(NodeType::Execute) => self.text("IS EXECUTE"),
            NodeAction::Replace(with) => {
                let with = with.as_ref().map(|with| Name(&with.0));
                write!(self.out, "REPLACE{}", Clause(" WITH ", &with))
            }
            NodeAction::Reset => self.text("RESET"),
            NodeAction::Parameter(action) => self.parameter_action(action),
            NodeAction::Address { host, port } => {
                self.text("SET ADDRESS TO ")?;
                self.host(host)?;
                write!(self.out, "{}", Clause(" PORT ", port))
            }
            NodeAction::Upstream(None) => self.text("SET UPSTREAM TO NONE"),
            NodeAction::Upstream(Some(url)) => {
                self.text("SET UPSTREAM TO ")?;
                self.secret(url)
            }
            NodeAction::Rename(to) => write!(self.out, "RENAME TO {}", Name(&to.0)),
            NodeAction::Drain { within, then_close } => {
                let within = within.as_deref().map(Quoted);
                write!(self.out, "DRAIN{}", Clause(" WITHIN ", &within))?;
                self.text_if(*then_close, " THEN CLOSE")
            }
            NodeAction::CancelDrain => self.text("CANCEL DRAIN"),
        }
    }

    pub(super) fn node(&mut self, statement: &Statement) -> fmt::Result {
        match statement {
            Statement::CreateNode { name, host, port, subcluster } => {
                let subcluster = subcluster.as_ref().map(|subcluster| Name(&subcluster.0));
                write!(self.out, "CREATE NODE {} WITH ", Name(&name.0))?;
                self.host(host)?;
                write!(self.out, "{}{}", Clause(" PORT ", port), Clause(" SUBCLUSTER ", &subcluster))
            }
            Statement::DropNode { if_exists, name, cascade } => self.drop_one("NODE", *if_exists, name, *cascade),
            _ => Err(fmt::Error),
        }
    }

    pub(super) fn fault_group(&mut self, statement: &Statement) -> fmt::Result {
        match statement {
            Statement::CreateFaultGroup { name } => write!(self.out, "CREATE FAULT GROUP {}", Name(&name.0)),
            Statement::AlterFaultGroup { name, action } => {
                let (verb, object) = match action {
                    FaultGroupAction::Rename(to) => ("RENAME TO", to),
                    FaultGroupAction::AddNode(node) => ("ADD NODE", node),
                    FaultGroupAction::DropNode(node) => ("DROP NODE", node),
                    FaultGroupAction::AddChild(child) => ("ADD FAULT GROUP", child),
                    FaultGroupAction::DropChild(child) => ("DROP FAULT GROUP", child),
                };
                write!(self.out, "ALTER FAULT GROUP {} {verb} {}", Name(&name.0), Name(&object.0))
            }
            Statement::DropFaultGroup { if_exists, name } => self.drop_one("FAULT GROUP", *if_exists, name, false),
            _ => Err(fmt::Error),
        }
    }

    pub(super) fn subcluster(&mut self, statement: &Statement) -> fmt::Result {
        match statement {
            Statement::CreateSubcluster { name, primary } => {
                write!(self.out, "CREATE SUBCLUSTER {}", Name(&name.0))?;
                self.text(match primary {
                    Some(true) => " PRIMARY",
                    Some(false) => " SECONDARY",
                    None => "",
                })
            }
            Statement::AlterSubcluster { name, action } => {
                write!(self.out, "ALTER SUBCLUSTER {} ", Name(&name.0))?;
                match action {
                    SubclusterAction::Rename(to) => write!(self.out, "RENAME TO {}", Name(&to.0)),
                    SubclusterAction::SetDefault => self.text("SET DEFAULT"),
                    SubclusterAction::AddNodes(nodes) => write!(self.out, "ADD NODE {}", Names(nodes)),
                    SubclusterAction::DropNodes(nodes) => write!(self.out, "DROP NODE {}", Names(nodes)),
                }
            }
            Statement::DropSubcluster { if_exists, name, cascade } => {
                self.drop_one("SUBCLUSTER", *if_exists, name, *cascade)
            }
            _ => Err(fmt::Error),
        }
    }
}

impl fmt::Display for OrDefault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("DEFAULT"),
            Self::Named(name) => write!(f, "{}", Name(&name.0)),
        }
    }
}
