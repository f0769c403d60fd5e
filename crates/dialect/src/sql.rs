//! Statements that are SQL's own.

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// A statement that is SQL's own, with what has been found out about it: the same ones are run again and again. Its copies
/// share both.
#[derive(Clone)]
pub struct SqlStatement(Arc<Known>);

struct Known {
    statement: sqlparser::ast::Statement,
    shown: OnceLock<String>,
    facts: OnceLock<Arc<dyn Any + Send + Sync>>,
}

impl SqlStatement {
    /// The statement as text.
    pub fn shown(&self) -> &str {
        self.0.shown.get_or_init(|| self.0.statement.to_string())
    }

    /// What has been found out about it, or is now. It is asked for with one type only.
    pub fn facts<T: Any + Send + Sync>(&self, find: impl Fn(&sqlparser::ast::Statement) -> T) -> Arc<T> {
        let found = self.0.facts.get_or_init(|| Arc::new(find(&self.0.statement)));
        Arc::clone(found).downcast().unwrap_or_else(|_| Arc::new(find(&self.0.statement)))
    }
}

impl From<sqlparser::ast::Statement> for SqlStatement {
    fn from(statement: sqlparser::ast::Statement) -> Self {
        Self(Arc::new(Known { statement, shown: OnceLock::new(), facts: OnceLock::new() }))
    }
}

impl Deref for SqlStatement {
    type Target = sqlparser::ast::Statement;

    fn deref(&self) -> &sqlparser::ast::Statement {
        &self.0.statement
    }
}

impl PartialEq for SqlStatement {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.statement == other.0.statement
    }
}

impl fmt::Debug for SqlStatement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.statement.fmt(f)
    }
}
