//! From statements to text.

mod access;
mod objects;
mod portal;
mod session;
mod topology;

use std::fmt;

use crate::ast::{Ident, Literal, SecretText, Statement, Value};
use crate::secrets::mask_login;
use crate::words;

/// Prints a statement with its secrets replaced by `'********'`.
#[derive(Debug)]
pub struct Redacted<'a>(pub &'a Statement);

impl fmt::Display for Redacted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Printer { out: f, redacted: true }.statement(self.0)
    }
}

impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Printer { out: f, redacted: false }.statement(self)
    }
}

/// A name as the parser takes it: in quotes if it is a keyword or holds anything but letters, digits and `_`.
pub fn quote_ident(name: &str) -> String {
    Name(name).to_string()
}

/// A string literal with this value.
pub fn quote_literal(text: &str) -> String {
    Quoted(text).to_string()
}

/// A literal, whatever it holds: a number that is none is printed as a string.
pub(crate) fn literal(literal: &Literal) -> String {
    let is_number = |text: &str| {
        text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte)) && text.parse::<f64>().is_ok()
    };
    match literal {
        Literal::Text(text) => quote_literal(text),
        Literal::Number(number) if is_number(number) => number.clone(),
        Literal::Number(text) => quote_literal(text),
        Literal::Bool(true) => "TRUE".to_owned(),
        Literal::Bool(false) => "FALSE".to_owned(),
        Literal::Null => "NULL".to_owned(),
    }
}

/// A name, quoted if need be.
struct Name<'a>(&'a str);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = self.0.bytes();
        let starts_well = bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
        let plain = starts_well && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if plain && !words::is_keyword(self.0) {
            f.write_str(self.0)
        } else {
            write!(f, "\"{}\"", self.0.replace('"', "\"\""))
        }
    }
}

/// A string literal.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}'", self.0.replace('\'', "''"))
    }
}

/// Names with commas between.
struct Names<'a>(&'a [Ident]);

impl fmt::Display for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, name) in self.0.iter().enumerate() {
            f.write_str(if index == 0 { "" } else { ", " })?;
            Name(&name.0).fmt(f)?;
        }
        Ok(())
    }
}

/// Names of those to whom something is granted; PUBLIC among them stands for everybody.
struct Grantees<'a>(&'a [Ident]);

impl fmt::Display for Grantees<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Ident(name)) in self.0.iter().enumerate() {
            f.write_str(if index == 0 { "" } else { ", " })?;
            if name.eq_ignore_ascii_case("PUBLIC") { f.write_str(name)? } else { Name(name).fmt(f)? }
        }
        Ok(())
    }
}

/// The keywords that are usual names of parameters, and never mean anything else where a parameter stands.
const PARAMETER_WORDS: [&str; 8] =
    ["SEARCH_PATH", "IDLESESSIONTIMEOUT", "GRACEPERIOD", "RUNTIMECAP", "MEMORYCAP", "TEMPSPACECAP", "HOST", "PORT"];

/// The name of a parameter, whose dots are kept.
struct Parameter<'a>(&'a str);

impl fmt::Display for Parameter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.split('.').any(str::is_empty) {
            return Name(self.0).fmt(f);
        }
        if PARAMETER_WORDS.iter().any(|word| self.0.eq_ignore_ascii_case(word)) {
            return f.write_str(self.0);
        }
        for (index, part) in self.0.split('.').enumerate() {
            f.write_str(if index == 0 { "" } else { "." })?;
            Name(part).fmt(f)?;
        }
        Ok(())
    }
}

/// Something that is printed if it is there: `Clause(" PORT ", port)`.
struct Clause<'a, T>(&'static str, &'a Option<T>);

impl<T: fmt::Display> fmt::Display for Clause<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            Some(value) => write!(f, "{}{value}", self.0),
            None => Ok(()),
        }
    }
}

struct Printer<'a, 'b> {
    out: &'a mut fmt::Formatter<'b>,
    redacted: bool,
}

impl Printer<'_, '_> {
    fn statement(&mut self, statement: &Statement) -> fmt::Result {
        use Statement as S;
        match statement {
            S::CreateNetworkAddress { .. } | S::AlterNetworkAddress { .. } | S::DropNetworkAddress { .. } => {
                self.address(statement)
            }
            S::CreateNetworkInterface { .. } | S::AlterNetworkInterface { .. } | S::DropNetworkInterface { .. } => {
                self.address(statement)
            }
            S::CreateSubnet { .. } | S::AlterSubnet { .. } | S::DropSubnet { .. } => self.subnet(statement),
            S::CreateLoadBalanceGroup { .. } | S::AlterLoadBalanceGroup { .. } | S::DropLoadBalanceGroup { .. } => {
                self.group(statement)
            }
            S::CreateRoutingRule { .. } | S::CreateWorkloadRule { .. } => self.create_rule(statement),
            S::AlterRoutingRule { target, action } => self.alter_rule(target, action),
            S::DropRoutingRule { if_exists, target } => self.drop_rule(*if_exists, target),
            S::GrantWorkload { .. } | S::RevokeWorkload { .. } | S::GrantRole { .. } | S::RevokeRole { .. } => {
                self.grant(statement)
            }
            S::GrantAuthentication { .. } | S::RevokeAuthentication { .. } => self.grant(statement),
            S::CreateUser { name, parameters } => self.create_user(name, parameters),
            S::AlterUser { name, action } => self.alter_user(name, action),
            S::CreateRole { .. } | S::AlterRole { .. } => self.role(statement),
            S::DropUser { if_exists, names, cascade } => self.drop_list("USER", *if_exists, names, *cascade),
            S::DropRole { if_exists, names, cascade } => self.drop_list("ROLE", *if_exists, names, *cascade),
            S::CreateAuthentication { .. } | S::AlterAuthentication { .. } => self.authentication(statement),
            S::DropAuthentication { if_exists, names, cascade } => {
                self.drop_list("AUTHENTICATION", *if_exists, names, *cascade)
            }
            S::CreateUserMapping { .. } | S::AlterUserMapping { .. } | S::DropUserMapping { .. } => {
                self.mapping(statement)
            }
            S::Function { .. } | S::Call { .. } => self.routine(statement),
            S::AlterDatabase { database, action } => self.alter_database(database, action),
            S::AlterNode { name, action } => self.alter_node(name, action),
            S::CreateNode { .. } | S::DropNode { .. } => self.node(statement),
            S::CreateFaultGroup { .. } | S::AlterFaultGroup { .. } | S::DropFaultGroup { .. } => {
                self.fault_group(statement)
            }
            S::CreateSubcluster { .. } | S::AlterSubcluster { .. } | S::DropSubcluster { .. } => {
                self.subcluster(statement)
            }
            S::SetSessionWorkload(_) | S::SetRole(_) | S::AlterSession(_) | S::Set { .. } => self.set(statement),
            S::SetTransaction { .. } | S::Reset(_) | S::Discard(_) => self.set(statement),
            S::Show(show) => self.show(show),
            S::Begin { .. } | S::Commit | S::Rollback => self.transaction(statement),
            S::Savepoint(_) | S::ReleaseSavepoint(_) | S::RollbackTo(_) => self.transaction(statement),
            S::DeclareCursor { .. } | S::FetchCursor { .. } | S::CloseCursor(_) => self.portal(statement),
            S::Prepare { .. } | S::Execute { .. } | S::Deallocate(_) => self.prepared(statement),
            S::Listen(_) | S::Unlisten(_) | S::Notify { .. } => self.channel(statement),
            S::RestoreCatalog { version } => write!(self.out, "RESTORE CATALOG TO VERSION {version}"),
            S::Sql(statement) => self.text(statement.shown()),
        }
    }

    fn text(&mut self, text: &str) -> fmt::Result {
        self.out.write_str(text)
    }

    fn text_if(&mut self, condition: bool, text: &str) -> fmt::Result {
        if condition { self.text(text) } else { Ok(()) }
    }

    fn secret(&mut self, secret: &SecretText) -> fmt::Result {
        if self.redacted { self.text("'********'") } else { write!(self.out, "{}", Quoted(secret.reveal())) }
    }

    /// Where a host belongs, somebody may have written a URL with a login in it.
    fn host(&mut self, host: &str) -> fmt::Result {
        if self.redacted {
            write!(self.out, "{}", Quoted(&mask_login(host)))
        } else {
            write!(self.out, "{}", Quoted(host))
        }
    }

    /// `DROP kind [IF EXISTS] a, b [CASCADE]`
    fn drop_list(&mut self, kind: &str, if_exists: bool, names: &[Ident], cascade: bool) -> fmt::Result {
        write!(self.out, "DROP {kind} ")?;
        self.text_if(if_exists, "IF EXISTS ")?;
        write!(self.out, "{}", Names(names))?;
        self.text_if(cascade, " CASCADE")
    }

    fn drop_one(&mut self, kind: &str, if_exists: bool, name: &Ident, cascade: bool) -> fmt::Result {
        self.drop_list(kind, if_exists, std::slice::from_ref(name), cascade)
    }

    fn value(&mut self, value: &Value) -> fmt::Result {
        match value {
            Value::Text(text) => write!(self.out, "{}", Quoted(text)),
            Value::Number(number) => self.text(number),
            // The words that are usual as values, and keywords elsewhere, need no quotes here.
            Value::Word(word) if !word.eq_ignore_ascii_case("DEFAULT") && words::is_keyword(word) => self.text(word),
            Value::Word(word) => write!(self.out, "{}", Name(word)),
        }
    }

    /// Separates the items of a list.
    fn comma(&mut self, index: usize) -> fmt::Result {
        self.text_if(index > 0, ", ")
    }
}
