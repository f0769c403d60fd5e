//! Settings, SHOW, transactions and routines.

use std::fmt;

use super::{Clause, Name, Parameter, Printer};
use crate::ast::{DiscardWhat, Ident, Literal, SetScope, SetValue, Show, Statement, WorkloadChoice};
use crate::function::MetaFunction;
use crate::secrets::is_secret;

impl Printer<'_, '_> {
    pub(super) fn set(&mut self, statement: &Statement) -> fmt::Result {
        match statement {
            Statement::SetSessionWorkload(WorkloadChoice::Named(workload)) => {
                write!(self.out, "SET SESSION WORKLOAD {}", Name(&workload.0))
            }
            Statement::SetSessionWorkload(WorkloadChoice::Default) => self.text("SET SESSION WORKLOAD DEFAULT"),
            Statement::SetSessionWorkload(WorkloadChoice::None) => self.text("SET SESSION WORKLOAD NONE"),
            Statement::SetRole(choice) => {
                self.text("SET ROLE ")?;
                self.roles(choice)
            }
            Statement::AlterSession(action) => {
                self.text("ALTER SESSION ")?;
                self.parameter_action(action)
            }
            Statement::Set { scope, name, values } => self.set_parameter(*scope, name, values),
            Statement::SetTransaction { session: true, modes } => {
                write!(self.out, "SET SESSION CHARACTERISTICS AS TRANSACTION {}", modes.join(", "))
            }
            Statement::SetTransaction { session: false, modes } => {
                write!(self.out, "SET TRANSACTION {}", modes.join(", "))
            }
            Statement::Reset(selection) => {
                self.text("RESET ")?;
                self.selection(selection)
            }
            Statement::Discard(what) => self.text(match what {
                DiscardWhat::All => "DISCARD ALL",
                DiscardWhat::Plans => "DISCARD PLANS",
                DiscardWhat::Sequences => "DISCARD SEQUENCES",
                DiscardWhat::Temp => "DISCARD TEMP",
            }),
            _ => Err(fmt::Error),
        }
    }

    fn set_parameter(&mut self, scope: SetScope, name: &Ident, values: &SetValue) -> fmt::Result {
        self.text(if scope == SetScope::Local { "SET LOCAL " } else { "SET " })?;
        write!(self.out, "{} TO ", Parameter(&name.0))?;
        match values {
            SetValue::Default => self.text("DEFAULT"),
            SetValue::Values(_) if self.redacted && is_secret(&name.0) => self.text("'********'"),
            SetValue::Values(values) => {
                for (index, value) in values.iter().enumerate() {
                    self.comma(index)?;
                    self.value(value)?;
                }
                Ok(())
            }
        }
    }

    pub(super) fn show(&mut self, show: &Show) -> fmt::Result {
        self.text("SHOW ")?;
        match show {
            Show::Workload => self.text("WORKLOAD"),
            Show::AvailableWorkloads => self.text("AVAILABLE WORKLOADS"),
            Show::AvailableRoles => self.text("AVAILABLE ROLES"),
            Show::EnabledRoles => self.text("ENABLED ROLES"),
            Show::All => self.text("ALL"),
            Show::Session(selection) => {
                self.text("SESSION ")?;
                self.selection(selection)
            }
            Show::Current(selection) => {
                self.text("CURRENT ")?;
                self.selection(selection)
            }
            Show::Database(database, selection) => {
                write!(self.out, "DATABASE {database} ")?;
                self.selection(selection)
            }
            Show::Node(node, selection) => {
                write!(self.out, "NODE {} ", Name(&node.0))?;
                self.selection(selection)
            }
            Show::User(user, selection) => {
                write!(self.out, "USER {} ", Name(&user.0))?;
                self.selection(selection)
            }
            Show::Parameter(Ident(name)) => {
                // SQL's names for three settings are several words.
                let words = ["TIME ZONE", "TRANSACTION ISOLATION LEVEL", "SESSION AUTHORIZATION"];
                if words.contains(&name.as_str()) { self.text(name) } else { write!(self.out, "{}", Parameter(name)) }
            }
        }
    }

    pub(super) fn transaction(&mut self, statement: &Statement) -> fmt::Result {
        match statement {
            Statement::Begin { start, modes } => {
                self.text(if *start { "START TRANSACTION" } else { "BEGIN" })?;
                self.text_if(!modes.is_empty(), " ")?;
                self.text(&modes.join(", "))
            }
            Statement::Commit => self.text("COMMIT"),
            Statement::Rollback => self.text("ROLLBACK"),
            Statement::Savepoint(name) => write!(self.out, "SAVEPOINT {}", Name(&name.0)),
            Statement::ReleaseSavepoint(name) => write!(self.out, "RELEASE SAVEPOINT {}", Name(&name.0)),
            Statement::RollbackTo(name) => write!(self.out, "ROLLBACK TO SAVEPOINT {}", Name(&name.0)),
            _ => Err(fmt::Error),
        }
    }

    pub(super) fn routine(&mut self, statement: &Statement) -> fmt::Result {
        match statement {
            Statement::Function { function, typed, arguments, alias } => {
                write!(self.out, "SELECT {}", Name(typed))?;
                self.arguments(arguments, secret_argument(*function, arguments))?;
                let alias = alias.as_ref().map(|alias| Name(&alias.0));
                write!(self.out, "{}", Clause(" AS ", &alias))
            }
            Statement::Call { procedure, arguments } => {
                write!(self.out, "CALL {}", procedure.name())?;
                self.arguments(arguments, None)
            }
            _ => Err(fmt::Error),
        }
    }

    fn arguments(&mut self, arguments: &[Literal], secret: Option<usize>) -> fmt::Result {
        self.text("(")?;
        for (index, argument) in arguments.iter().enumerate() {
            self.comma(index)?;
            match argument {
                Literal::Text(_) | Literal::Number(_) if self.redacted && secret == Some(index) => {
                    self.text("'********'")?;
                }
                argument => self.text(&super::literal(argument))?,
            }
        }
        self.text(")")
    }
}

/// The argument of SET_CONFIG_PARAMETER that holds what must not be shown.
fn secret_argument(function: MetaFunction, arguments: &[Literal]) -> Option<usize> {
    match (function, arguments) {
        (MetaFunction::SetConfigParameter, [Literal::Text(parameter), ..]) if is_secret(parameter) => Some(1),
        _ => None,
    }
}
