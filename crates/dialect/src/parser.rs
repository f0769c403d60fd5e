//! From text to statements.
//!
//! The words of a statement are looked at one by one; whatever turns out not to be ours is read by sqlparser, from its
//! first token on.

mod address;
mod authentication;
mod bounded;
mod call;
mod cursor;
mod cut;
mod grant;
mod group;
mod lexer;
mod limits;
mod parameters;
mod placeholders;
mod portal;
mod rule;
mod session;
mod sql;
mod topology;
mod transaction;
mod user;

use crate::ast::Statement;
use crate::error::{ErrorKind, SyntaxError};
use crate::function::{MetaFunction, Procedure};
use crate::words;
use cursor::{Cursor, Place, Result};
pub use cut::{Cut, Cuts, Whose, cut};
use lexer::Lexer;
pub use limits::ParseLimits;
pub use parameters::{bind, parameter_count, parse_template};
pub use placeholders::{Numbered, number_placeholders};

/// A statement and where it stands in the text.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// What it says.
    pub statement: Statement,
    /// Its text: from the first token to the last, without the semicolon.
    pub text: String,
    /// The character of the whole text at which it starts, from 1.
    pub position: usize,
}

/// Reads all statements of a text; empty ones are left out.
///
/// # Errors
/// At the first mistake; nothing of the text should be run then.
pub fn parse(text: &str) -> Result<Vec<Parsed>> {
    parse_within(text, ParseLimits::default())
}

/// The same, for a text that may not be more than these limits allow.
///
/// # Errors
/// As [`parse`], and at what is more.
pub fn parse_within(text: &str, limits: ParseLimits) -> Result<Vec<Parsed>> {
    Statements::new(text, limits)?.collect()
}

/// Reads all statements of a text, and returns the first of them, at most `kept_max`, with the number of all. A tree
/// takes a thousand times the memory of a short text: of many, none should be kept, and each read again when it is run.
///
/// # Errors
/// As [`parse_within`].
pub fn parse_first(text: &str, limits: ParseLimits, kept_max: usize) -> Result<(Vec<Parsed>, usize)> {
    let mut statements = Statements::new(text, limits)?;
    let mut kept = Vec::new();
    let mut count = 0;
    while let Some(parsed) = statements.next().transpose()? {
        count += 1;
        if kept.len() < kept_max {
            kept.push(parsed);
        }
    }
    Ok((kept, count))
}

/// The statements of a text, each read when it is asked for; empty ones are left out. Nothing comes after a mistake.
#[derive(Debug)]
pub struct Statements<'a> {
    text: &'a str,
    lexer: Lexer<'a>,
    tokens: Vec<lexer::Token>,
    limits: ParseLimits,
    /// How many bytes `position` and `place` count.
    counted: usize,
    position: usize,
    place: Place,
    ended: bool,
}

impl<'a> Statements<'a> {
    /// Before the first.
    ///
    /// # Errors
    /// When the text is longer than the limits allow.
    pub fn new(text: &'a str, limits: ParseLimits) -> Result<Self> {
        let limits = limits.safe();
        check_length(text, limits.statement_bytes_max)?;
        let (lexer, tokens) = (Lexer::new(text), Vec::new());
        Ok(Self { text, lexer, tokens, limits, counted: 0, position: 1, place: Place::START, ended: false })
    }

    /// Reads up to the next semicolon, and what is before it, if anything is.
    fn read(&mut self) -> Result<Option<Parsed>> {
        let end = self.lexer.statement(&mut self.tokens)?;
        self.ended = end.kind == lexer::Kind::End;
        let (Some(first), Some(last)) = (self.tokens.first(), self.tokens.last()) else { return Ok(None) };
        let before = self.text.get(self.counted..first.start()).unwrap_or_default();
        self.position += before.chars().count();
        self.place = self.place.after(before);
        self.counted = first.start();
        let statement = statement(&mut Cursor::new(self.text, &self.tokens, end, self.place, self.limits))?;
        let text = self.text.get(first.start()..last.end()).unwrap_or_default().to_owned();
        Ok(Some(Parsed { statement, text, position: self.position }))
    }
}

impl Iterator for Statements<'_> {
    type Item = Result<Parsed>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            let read = self.read();
            self.ended |= read.is_err();
            if let Some(read) = read.transpose() {
                return Some(read);
            }
        }
        None
    }
}

fn check_length(text: &str, bytes_max: usize) -> Result<()> {
    if text.len() <= bytes_max {
        return Ok(());
    }
    let message = format!("text is too long: {} bytes of {bytes_max}", text.len());
    let error = lexer::error_at(text, 0, ErrorKind::TooComplex, message);
    Err(with_hint(error, "The setting statement_bytes_max sets this limit."))
}

fn statement(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let statement = dispatch(cursor)?;
    cursor.finish()?;
    Ok(statement)
}

fn dispatch(cursor: &mut Cursor<'_>) -> Result<Statement> {
    if cursor.accept("CREATE") {
        create(cursor)
    } else if cursor.accept("ALTER") {
        alter(cursor)
    } else if cursor.accept("DROP") {
        drop(cursor)
    } else if cursor.accept("GRANT") {
        grant::grant(cursor)
    } else if cursor.accept("REVOKE") {
        grant::revoke(cursor)
    } else if cursor.accept("SET") {
        session::set(cursor)
    } else if cursor.accept("SHOW") {
        session::show(cursor)
    } else if cursor.at("SELECT") {
        cursor.advance();
        call::select(cursor)
    } else if cursor.accept("CALL") {
        call::call(cursor)
    } else if cursor.accept("RESET") {
        session::reset(cursor)
    } else if cursor.accept("DISCARD") {
        session::discard(cursor)
    } else if cursor.accept("RESTORE") {
        transaction::restore(cursor)
    } else {
        control(cursor)
    }
}

/// The statements that begin and end transactions, or else SQL.
fn control(cursor: &mut Cursor<'_>) -> Result<Statement> {
    if cursor.accept("BEGIN") {
        transaction::begin(cursor)
    } else if cursor.accept("START") {
        transaction::start(cursor)
    } else if cursor.accept("COMMIT") || cursor.accept("END") {
        transaction::commit(cursor)
    } else if cursor.accept("ROLLBACK") {
        transaction::rollback(cursor, true)
    } else if cursor.accept("ABORT") {
        transaction::rollback(cursor, false)
    } else if cursor.accept("SAVEPOINT") {
        transaction::savepoint(cursor)
    } else if cursor.accept("RELEASE") {
        transaction::release(cursor)
    } else {
        objects_of_session(cursor)
    }
}

/// Cursors, prepared statements and notifications, or else SQL.
fn objects_of_session(cursor: &mut Cursor<'_>) -> Result<Statement> {
    if cursor.accept("DECLARE") {
        portal::declare(cursor)
    } else if cursor.accept("FETCH") {
        portal::fetch(cursor, false)
    } else if cursor.accept("MOVE") {
        portal::fetch(cursor, true)
    } else if cursor.accept("CLOSE") {
        portal::close(cursor)
    } else if cursor.accept("PREPARE") {
        portal::prepare(cursor)
    } else if cursor.accept("EXECUTE") {
        portal::execute(cursor)
    } else if cursor.accept("DEALLOCATE") {
        portal::deallocate(cursor)
    } else if cursor.accept("LISTEN") {
        portal::listen(cursor)
    } else if cursor.accept("UNLISTEN") {
        portal::unlisten(cursor)
    } else if cursor.accept("NOTIFY") {
        portal::notify(cursor)
    } else {
        cursor.note(words::SQL_STATEMENTS);
        let hint = meant(cursor.token_text());
        sql::delegate(cursor).map_err(|error| SyntaxError { hint: hint.or(error.hint), ..error })
    }
}

/// What is meant by a first word that begins no statement here.
fn meant(first: &str) -> Option<String> {
    let is = |word: &&str| word.eq_ignore_ascii_case(first);
    if ["help", "describe", "desc"].iter().any(&is) {
        return Some(HELP.to_owned());
    }
    if let Some(function) = MetaFunction::named(first) {
        return Some(format!("It is a function: SELECT {}(...).", function.name()));
    }
    if let Some(procedure) = Procedure::named(first) {
        return Some(format!("It is a procedure: CALL {}(...).", procedure.name()));
    }
    PGBOUNCER.iter().any(is).then(|| PGBOUNCER_HINT.to_owned())
}

/// What pgbouncer's console takes besides SHOW.
const PGBOUNCER: [&str; 9] =
    ["pause", "resume", "disable", "enable", "kill", "reconnect", "reload", "suspend", "wait_close"];

const PGBOUNCER_HINT: &str =
    "Of pgbouncer's commands, SHOW is taken: SHOW POOLS, for example. Settings need no reload.";

/// For whoever asks for help in another system's words.
const HELP: &str = "SELECT * FROM switchyard.system_tables lists the tables, SHOW ALL the settings; in psql, \\? and \\d help. \
                    The statements are in docs/reference/statements.md.";

/// CREATE says when something is there already.
const IF_NOT_EXISTS: &str = "There is no IF NOT EXISTS: DROP ... IF EXISTS first, or go on after the error 42710.";

fn with_hint(error: SyntaxError, hint: &str) -> SyntaxError {
    SyntaxError { hint: Some(hint.to_owned()), ..error }
}

/// IF NOT EXISTS where our kinds of objects have none, which would be read as a name else.
fn refuse_if_not_exists(cursor: &mut Cursor<'_>) -> Result<()> {
    let ours = KINDS.iter().any(|kind| cursor.at(kind));
    // The longest kind has three words.
    let place =
        (1..=3).find(|ahead| ["IF", "NOT", "EXISTS"].iter().zip(*ahead..).all(|(word, at)| cursor.at_ahead(at, word)));
    match place {
        Some(ahead) if ours => {
            cursor.back_to(cursor.index() + ahead);
            Err(with_hint(cursor.error(), IF_NOT_EXISTS))
        }
        _ => Ok(()),
    }
}

/// The first words of our kinds of objects: none of them has OR REPLACE.
const KINDS: [&str; 10] =
    ["NETWORK", "LOAD", "ROUTING", "SUBNET", "FAULT", "SUBCLUSTER", "NODE", "USER", "ROLE", "AUTHENTICATION"];

fn create(cursor: &mut Cursor<'_>) -> Result<Statement> {
    refuse_if_not_exists(cursor)?;
    if cursor.accept("NETWORK") {
        address::create_network(cursor)
    } else if cursor.accept("ROUTING") {
        cursor.expect("RULE")?;
        rule::create(cursor)
    } else if cursor.accept("LOAD") {
        cursor.expect_all(&["BALANCE", "GROUP"])?;
        group::create(cursor)
    } else if cursor.accept("USER") {
        user::create(cursor)
    } else if cursor.accept("ROLE") {
        user::create_role(cursor)
    } else if cursor.accept("AUTHENTICATION") {
        authentication::create(cursor)
    } else if cursor.accept("NODE") {
        topology::create_node(cursor)
    } else if cursor.accept("SUBCLUSTER") {
        topology::create_subcluster(cursor)
    } else if cursor.accept("FAULT") {
        cursor.expect("GROUP")?;
        topology::create_fault_group(cursor)
    } else if cursor.accept("SUBNET") {
        address::create_subnet(cursor)
    } else if cursor.at("OR") && cursor.at_ahead(1, "REPLACE") && KINDS.iter().any(|kind| cursor.at_ahead(2, kind)) {
        Err(with_hint(cursor.error(), "There is no OR REPLACE: use ALTER, or DROP first."))
    } else {
        sql::delegate(cursor)
    }
}

fn alter(cursor: &mut Cursor<'_>) -> Result<Statement> {
    if cursor.accept("NETWORK") {
        address::alter_network(cursor)
    } else if cursor.accept("ROUTING") {
        cursor.expect("RULE")?;
        rule::alter(cursor)
    } else if cursor.accept("LOAD") {
        cursor.expect_all(&["BALANCE", "GROUP"])?;
        group::alter(cursor)
    } else if cursor.accept("USER") {
        user::alter(cursor)
    } else if cursor.accept("ROLE") {
        user::alter_role(cursor)
    } else if cursor.accept("AUTHENTICATION") {
        authentication::alter(cursor)
    } else if cursor.accept("DATABASE") {
        topology::alter_database(cursor)
    } else if cursor.accept("NODE") {
        topology::alter_node(cursor)
    } else if cursor.accept("SESSION") {
        session::alter(cursor)
    } else if cursor.accept("SUBCLUSTER") {
        topology::alter_subcluster(cursor)
    } else if cursor.accept("FAULT") {
        cursor.expect("GROUP")?;
        topology::alter_fault_group(cursor)
    } else if cursor.accept("SUBNET") {
        address::alter_subnet(cursor)
    } else {
        sql::delegate(cursor)
    }
}

fn drop(cursor: &mut Cursor<'_>) -> Result<Statement> {
    if cursor.accept("NETWORK") {
        address::drop_network(cursor)
    } else if cursor.accept("ROUTING") {
        cursor.expect("RULE")?;
        rule::drop(cursor)
    } else if cursor.accept("LOAD") {
        cursor.expect_all(&["BALANCE", "GROUP"])?;
        group::drop(cursor)
    } else if cursor.accept("USER") {
        user::drop(cursor)
    } else if cursor.accept("ROLE") {
        user::drop_role(cursor)
    } else if cursor.accept("AUTHENTICATION") {
        authentication::drop(cursor)
    } else if cursor.accept("NODE") {
        topology::drop_node(cursor)
    } else if cursor.accept("SUBCLUSTER") {
        topology::drop_subcluster(cursor)
    } else if cursor.accept("FAULT") {
        cursor.expect("GROUP")?;
        topology::drop_fault_group(cursor)
    } else if cursor.accept("SUBNET") {
        address::drop_subnet(cursor)
    } else {
        sql::delegate(cursor)
    }
}
