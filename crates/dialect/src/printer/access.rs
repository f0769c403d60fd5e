//! Users, roles, grants, authentications and user mappings.

use std::fmt;

use super::{Clause, Grantees, Name, Names, Printer, Quoted};
use crate::ast::{
    AuthenticationAccess, AuthenticationAction, ConnectionScope, Ident, MappingOptions, ParameterAction, RoleChoice,
    Statement, UserAction, UserParameter,
};

impl Printer<'_, '_> {
    pub(super) fn grant(&mut self, statement: &Statement) -> fmt::Result {
        match statement {
            Statement::GrantWorkload { workload, grantees } => {
                write!(self.out, "GRANT USAGE ON WORKLOAD {} TO {}", Name(&workload.0), Grantees(grantees))
            }
            Statement::RevokeWorkload { workload, grantees } => {
                write!(self.out, "REVOKE USAGE ON WORKLOAD {} FROM {}", Name(&workload.0), Grantees(grantees))
            }
            Statement::GrantAuthentication { name, grantees } => {
                write!(self.out, "GRANT AUTHENTICATION {} TO {}", Name(&name.0), Grantees(grantees))
            }
            Statement::RevokeAuthentication { name, grantees } => {
                write!(self.out, "REVOKE AUTHENTICATION {} FROM {}", Name(&name.0), Grantees(grantees))
            }
            Statement::GrantRole { roles, grantees, admin } => {
                write!(self.out, "GRANT {} TO {}", Names(roles), Grantees(grantees))?;
                self.text_if(*admin, " WITH ADMIN OPTION")
            }
            Statement::RevokeRole { admin_only, roles, grantees, cascade } => {
                self.text("REVOKE ")?;
                self.text_if(*admin_only, "ADMIN OPTION FOR ")?;
                write!(self.out, "{} FROM {}", Names(roles), Grantees(grantees))?;
                self.text_if(*cascade, " CASCADE")
            }
            _ => Err(fmt::Error),
        }
    }

    pub(super) fn create_user(&mut self, name: &Ident, parameters: &[UserParameter]) -> fmt::Result {
        write!(self.out, "CREATE USER {}", Name(&name.0))?;
        self.text_if(!parameters.is_empty(), " ")?;
        self.user_parameters(parameters)
    }

    pub(super) fn alter_user(&mut self, name: &Ident, action: &UserAction) -> fmt::Result {
        let kind = if matches!(action, UserAction::RoleParameter(_)) { "ROLE" } else { "USER" };
        write!(self.out, "ALTER {kind} {} ", Name(&name.0))?;
        match action {
            UserAction::Parameters(parameters) => self.user_parameters(parameters),
            UserAction::DefaultRole(choice) => {
                self.text("DEFAULT ROLE ")?;
                self.roles(choice)
            }
            UserAction::Rename(to) => write!(self.out, "RENAME TO {}", Name(&to.0)),
            UserAction::Parameter(action) | UserAction::RoleParameter(action) => self.parameter_action(action),
        }
    }

    fn user_parameters(&mut self, parameters: &[UserParameter]) -> fmt::Result {
        for (index, parameter) in parameters.iter().enumerate() {
            self.comma(index)?;
            self.user_parameter(parameter)?;
        }
        Ok(())
    }

    fn user_parameter(&mut self, parameter: &UserParameter) -> fmt::Result {
        match parameter {
            UserParameter::Lock(true) => self.text("ACCOUNT LOCK"),
            UserParameter::Lock(false) => self.text("ACCOUNT UNLOCK"),
            UserParameter::ExpirePassword => self.text("PASSWORD EXPIRE"),
            UserParameter::IdentifiedBy { password, replace } => {
                self.text("IDENTIFIED BY ")?;
                self.secret(password)?;
                let Some(old) = replace else { return Ok(()) };
                self.text(" REPLACE ")?;
                self.secret(old)
            }
            UserParameter::GracePeriod(cap) => self.cap("GRACEPERIOD", cap),
            UserParameter::IdleSessionTimeout(cap) => self.cap("IDLESESSIONTIMEOUT", cap),
            UserParameter::RuntimeCap(cap) => self.cap("RUNTIMECAP", cap),
            UserParameter::MemoryCap(cap) => self.cap("MEMORYCAP", cap),
            UserParameter::TempSpaceCap(cap) => self.cap("TEMPSPACECAP", cap),
            UserParameter::MaxConnections(None) => self.text("MAXCONNECTIONS NONE"),
            UserParameter::MaxConnections(Some((limit, scope))) => {
                let scope = match scope {
                    ConnectionScope::Database => "DATABASE",
                    ConnectionScope::Node => "NODE",
                };
                write!(self.out, "MAXCONNECTIONS {limit} ON {scope}")
            }
            UserParameter::Profile(None) => self.text("PROFILE DEFAULT"),
            UserParameter::Profile(Some(profile)) => write!(self.out, "PROFILE {}", Name(&profile.0)),
            UserParameter::ResourcePool { pool, subcluster } => {
                let subcluster = subcluster.as_ref().map(|subcluster| Name(&subcluster.0));
                write!(self.out, "RESOURCE POOL {}{}", Name(&pool.0), Clause(" FOR SUBCLUSTER ", &subcluster))
            }
            UserParameter::SearchPath(None) => self.text("SEARCH_PATH DEFAULT"),
            UserParameter::SearchPath(Some(schemas)) => write!(self.out, "SEARCH_PATH {}", Names(schemas)),
            UserParameter::SecurityAlgorithm(name) => write!(self.out, "SECURITY_ALGORITHM {}", Quoted(name)),
        }
    }

    fn cap(&mut self, word: &str, cap: &Option<String>) -> fmt::Result {
        match cap {
            Some(cap) => write!(self.out, "{word} {}", Quoted(cap)),
            None => write!(self.out, "{word} NONE"),
        }
    }

    pub(super) fn roles(&mut self, choice: &RoleChoice) -> fmt::Result {
        match choice {
            RoleChoice::Named(roles) => write!(self.out, "{}", Names(roles)),
            RoleChoice::None => self.text("NONE"),
            RoleChoice::AllExcept(roles) if roles.is_empty() => self.text("ALL"),
            RoleChoice::AllExcept(roles) => write!(self.out, "ALL EXCEPT {}", Names(roles)),
            RoleChoice::Default => self.text("DEFAULT"),
        }
    }

    pub(super) fn role(&mut self, statement: &Statement) -> fmt::Result {
        match statement {
            Statement::CreateRole { name } => write!(self.out, "CREATE ROLE {}", Name(&name.0)),
            Statement::AlterRole { name, rename_to } => {
                write!(self.out, "ALTER ROLE {} RENAME TO {}", Name(&name.0), Name(&rename_to.0))
            }
            _ => Err(fmt::Error),
        }
    }

    pub(super) fn authentication(&mut self, statement: &Statement) -> fmt::Result {
        match statement {
            Statement::CreateAuthentication { name, method, access, fallthrough } => {
                write!(self.out, "CREATE AUTHENTICATION {} METHOD {} {access}", Name(&name.0), Quoted(method))?;
                self.text_if(*fallthrough, " FALLTHROUGH")
            }
            Statement::AlterAuthentication { name, action } => {
                write!(self.out, "ALTER AUTHENTICATION {} ", Name(&name.0))?;
                self.authentication_action(action)
            }
            _ => Err(fmt::Error),
        }
    }

    fn authentication_action(&mut self, action: &AuthenticationAction) -> fmt::Result {
        match action {
            AuthenticationAction::Rename(to) => write!(self.out, "RENAME TO {}", Name(&to.0)),
            AuthenticationAction::Enable(true) => self.text("ENABLE"),
            AuthenticationAction::Enable(false) => self.text("DISABLE"),
            AuthenticationAction::Method(method) => write!(self.out, "METHOD {}", Quoted(method)),
            AuthenticationAction::Access(access) => write!(self.out, "{access}"),
            AuthenticationAction::Priority(priority) => write!(self.out, "PRIORITY {priority}"),
            AuthenticationAction::Fallthrough(true) => self.text("FALLTHROUGH"),
            AuthenticationAction::Fallthrough(false) => self.text("NO FALLTHROUGH"),
            AuthenticationAction::Set(assignments) => self.parameter_set(assignments),
            AuthenticationAction::Clear(names) => self.parameter_action(&ParameterAction::Clear(names.clone())),
        }
    }

    pub(super) fn mapping(&mut self, statement: &Statement) -> fmt::Result {
        match statement {
            Statement::CreateUserMapping { user, server, options } => {
                self.mapping_head("CREATE USER MAPPING FOR ", user, server)?;
                self.mapping_options(options)
            }
            Statement::AlterUserMapping { user, server, options } => {
                self.mapping_head("ALTER USER MAPPING FOR ", user, server)?;
                self.mapping_options(options)
            }
            Statement::DropUserMapping { if_exists, user, server } => {
                let head = if *if_exists { "DROP USER MAPPING IF EXISTS FOR " } else { "DROP USER MAPPING FOR " };
                self.mapping_head(head, user, server)
            }
            _ => Err(fmt::Error),
        }
    }

    fn mapping_head(&mut self, head: &str, user: &Option<Ident>, server: &Option<Ident>) -> fmt::Result {
        self.text(head)?;
        match user {
            Some(user) => write!(self.out, "{}", Name(&user.0))?,
            None => self.text("PUBLIC")?,
        }
        let server = server.as_ref().map(|server| Name(&server.0));
        write!(self.out, "{}", Clause(" SERVER ", &server))
    }

    fn mapping_options(&mut self, options: &MappingOptions) -> fmt::Result {
        self.text(" OPTIONS (")?;
        let mut count = 0;
        if let Some(user) = &options.user {
            write!(self.out, "user {}", Quoted(user))?;
            count += 1;
        }
        if let Some(password) = &options.password {
            self.comma(count)?;
            self.text("password ")?;
            self.secret(password)?;
            count += 1;
        }
        if options.drop_password {
            self.comma(count)?;
            self.text("DROP password")?;
        }
        self.text(")")
    }
}

impl fmt::Display for AuthenticationAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local => f.write_str("LOCAL"),
            Self::Host { tls: None, network } => write!(f, "HOST {}", Quoted(network)),
            Self::Host { tls: Some(true), network } => write!(f, "HOST TLS {}", Quoted(network)),
            Self::Host { tls: Some(false), network } => write!(f, "HOST NO TLS {}", Quoted(network)),
        }
    }
}
