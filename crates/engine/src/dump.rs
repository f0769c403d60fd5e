//! The catalog as a script of our own statements that makes it anew.
//!
//! What it cannot say is said in comments: the passwords of user mappings and upstream URLs are left out. Members are
//! not made but join by themselves, before the script is run. Replicas are placed anew, and all grants are made by whoever
//! runs the script.

use std::collections::BTreeMap;
use std::sync::Arc;

use switchyard_catalog::{Catalog, Name, Subcluster};
use switchyard_dialect::{Ident, Redacted, Statement};

mod fleet;
mod people;
mod policy;

/// What makes one object, or a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// For example `routing rule`.
    pub kind: &'static str,
    /// The object's name.
    pub name: String,
    /// A statement without semicolon.
    pub sql: String,
}

/// One line of a dump.
enum Line {
    Make { kind: &'static str, name: String, statement: Box<Statement> },
    Comment(String),
}

impl Line {
    fn new(kind: &'static str, name: impl ToString, statement: Statement) -> Self {
        Self::Make { kind, name: name.to_string(), statement: Box::new(statement) }
    }

    fn text(self) -> String {
        match self {
            Self::Make { statement, .. } => format!("{statement};"),
            Self::Comment(text) => format!("-- {text}"),
        }
    }
}

/// Sections in the order of dependency; each is made when its turn comes.
type Section = fn(&Catalog) -> Vec<Line>;

const SECTIONS: [Section; 18] = [
    fleet::settings,
    fleet::subclusters,
    fleet::nodes,
    fleet::fault_groups,
    policy::subnets,
    policy::interfaces,
    policy::addresses,
    fleet::exports,
    policy::groups,
    policy::rules,
    people::roles,
    people::users,
    people::role_grants,
    people::default_roles,
    people::workload_grants,
    people::authentications,
    people::mappings,
    fleet::table_groups,
];

/// The lines of a script, without line ends, that makes an initial catalog (with the members of this one) equal to this
/// one but for its version, its ids, and what the comments say. It is one transaction.
pub fn dump(catalog: &Catalog) -> impl Iterator<Item = String> + '_ {
    let head = [
        format!(
            "-- The catalog of database {}: run this on a new one, when its members have joined or are declared",
            catalog.database().name
        ),
        "BEGIN;".to_owned(),
    ];
    let opening = fleet::opening(catalog);
    let body = SECTIONS.into_iter().flat_map(move |section| section(catalog));
    let closing = fleet::closing(catalog);
    let lines = opening.into_iter().chain(body).chain(closing).map(Line::text);
    head.into_iter().chain(lines).chain(std::iter::once("COMMIT;".to_owned()))
}

/// What makes each object, in the order of dependency, with secrets redacted: for comparing versions.
pub fn definitions(catalog: &Catalog) -> Vec<Definition> {
    let lines = SECTIONS.into_iter().flat_map(|section| section(catalog));
    lines
        .filter_map(|line| match line {
            Line::Make { kind, name, statement } => {
                Some(Definition { kind, name, sql: Redacted(&statement).to_string() })
            }
            Line::Comment(_) => None,
        })
        .collect()
}

fn ident(name: &Name) -> Ident {
    Ident(name.as_str().to_owned())
}

/// The names of entities by their ids, as identifiers; ids without an entity are left out.
fn idents<I: Copy, E>(ids: &[I], find: impl Fn(I) -> Option<Arc<E>>, name: impl Fn(&E) -> &Name) -> Vec<Ident> {
    ids.iter().filter_map(|id| find(*id)).map(|entity| ident(name(&entity))).collect()
}

fn subcluster_ident(catalog: &Catalog, id: switchyard_catalog::SubclusterId) -> Option<Ident> {
    catalog.subclusters().find(id).map(|subcluster: &Arc<Subcluster>| ident(&subcluster.name))
}

/// An initial catalog with the same database and superuser: what a script starts from.
fn initial(catalog: &Catalog) -> Catalog {
    let superuser = catalog.users().iter().find(|user| user.superuser).map(|user| user.name.clone());
    let database = catalog.database().name.clone();
    let superuser = superuser.unwrap_or_else(|| database.clone());
    Catalog::initial(database, superuser, None).0
}

/// The settings of one level, for SET.
fn assignments<'a>(settings: impl Iterator<Item = &'a Arc<switchyard_catalog::Setting>>) -> BTreeMap<&'a str, &'a str> {
    settings.map(|setting| (setting.name.as_str(), setting.value.as_str())).collect()
}

#[cfg(test)]
mod tests;
