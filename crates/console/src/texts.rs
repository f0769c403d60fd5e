//! Texts that clients send again and again, read once: to read a query takes longer than to answer many of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use switchyard_dialect::{ParseLimits, Parsed, Statement, SyntaxError, parse_first, parse_template};

/// So many texts are kept; when there are more, all are forgotten and the keeping begins anew.
const TEXTS_MAX: usize = 256;

/// A text of more bytes is not kept.
const BYTES_MAX: usize = 4_096;

/// Of a text with more statements none is held: each is read again when its turn comes.
const STATEMENTS_HELD_MAX: usize = 64;

/// The texts that all sessions of a member share. Only queries are kept: other statements change things, and may hold
/// secrets.
#[derive(Debug, Default)]
pub(crate) struct Texts(Mutex<HashMap<Arc<str>, Text>>);

/// A text that was read.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) source: Arc<str>,
    /// How many statements it has.
    pub(crate) count: usize,
    /// All of them, or none if they are too many.
    pub(crate) held: Option<Arc<[Arc<Parsed>]>>,
}

/// A text and its statements.
type Known = (Arc<str>, Arc<[Arc<Parsed>]>);

#[derive(Debug, Clone)]
struct Text {
    source: Arc<str>,
    statements: Arc<[Arc<Parsed>]>,
    /// Those within which it was read.
    limits: ParseLimits,
}

impl Texts {
    /// The text, and its statements.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn read(&self, text: &str, limits: ParseLimits) -> Result<Script, SyntaxError> {
        if let Some((source, statements)) = self.known(text, limits) {
            return Ok(Script { source, count: statements.len(), held: Some(statements) });
        }
        let (statements, count) = parse_first(text, limits, STATEMENTS_HELD_MAX)?;
        if count > STATEMENTS_HELD_MAX {
            return Ok(Script { source: text.into(), count, held: None });
        }
        let (source, statements) = self.keep(text, limits, statements);
        Ok(Script { source, count, held: Some(statements) })
    }

    /// The same for a statement that is to be prepared: its text and it. Of several there are two.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn read_template(&self, text: &str, limits: ParseLimits) -> Result<Known, SyntaxError> {
        match self.known(text, limits) {
            Some(known) => Ok(known),
            None => Ok(self.keep(text, limits, parse_template(text, limits)?)),
        }
    }

    /// A text of one query without parameters means the same in both ways.
    fn known(&self, text: &str, limits: ParseLimits) -> Option<Known> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(text).cloned();
        known.filter(|known| known.limits == limits).map(|known| (known.source, known.statements))
    }

    fn keep(&self, text: &str, limits: ParseLimits, statements: Vec<Parsed>) -> Known {
        let statements: Arc<[Arc<Parsed>]> = statements.into_iter().map(Arc::new).collect();
        let source: Arc<str> = text.into();
        if let [statement] = &*statements
            && matches!(statement.statement, Statement::Sql(_))
            && text.len() <= BYTES_MAX
            && !text.contains(['$', '?'])
        {
            let kept = Text { source: Arc::clone(&source), statements: Arc::clone(&statements), limits };
            let mut texts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if texts.len() >= TEXTS_MAX {
                texts.clear();
            }
            texts.insert(Arc::clone(&source), kept);
        }
        (source, statements)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may fail")]

    use super::*;

    fn kept(texts: &Texts) -> usize {
        texts.0.lock().unwrap().len()
    }

    #[test]
    fn a_query_is_read_once_and_within_its_limits() {
        let (texts, limits) = (Texts::default(), ParseLimits::default());
        let held = |text: &str| texts.read(text, limits).unwrap().held.unwrap();
        let (first, again) = (held("SELECT (1)"), held("SELECT (1)"));
        assert!(Arc::ptr_eq(&first, &again));
        let (_, template) = texts.read_template("SELECT (1)", limits).unwrap();
        assert!(Arc::ptr_eq(&first, &template));
        texts.read("SELECT (1)", ParseLimits { query_bytes_max: 3, ..limits }).unwrap_err();
    }

    #[test]
    fn only_single_short_queries_without_parameters_are_kept_and_not_too_many() {
        let (texts, limits) = (Texts::default(), ParseLimits::default());
        let long = format!("SELECT '{}'", "x".repeat(BYTES_MAX));
        for text in ["", "SELECT 1; SELECT 2", "CREATE USER u IDENTIFIED BY 'secret'", "SELECT $1", &long] {
            texts.read_template(text, limits).ok();
            texts.read(text, limits).ok();
            assert_eq!(kept(&texts), 0, "{text}");
        }
        for number in 0..TEXTS_MAX + 9 {
            texts.read(&format!("SELECT {number}"), limits).unwrap();
        }
        assert_eq!(kept(&texts), 9);
    }
}
