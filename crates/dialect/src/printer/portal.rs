//! Cursors, prepared statements and notifications.

use std::fmt;

use super::{Name, Printer, Quoted, Redacted};
use crate::ast::{FetchCount, FetchDirection, Ident, Statement};

/// A name that keeps its case.
struct Exact<'a>(&'a str);

impl fmt::Display for Exact<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.bytes().any(|byte| byte.is_ascii_uppercase()) {
            write!(f, "\"{}\"", self.0.replace('"', "\"\""))
        } else {
            Name(self.0).fmt(f)
        }
    }
}

impl Printer<'_, '_> {
    pub(super) fn portal(&mut self, statement: &Statement) -> fmt::Result {
        match statement {
            Statement::DeclareCursor { name, options, query } => {
                write!(self.out, "DECLARE {} ", Exact(&name.0))?;
                self.text_if(options.binary, "BINARY ")?;
                self.text(match options.scroll {
                    None => "",
                    Some(true) => "SCROLL ",
                    Some(false) => "NO SCROLL ",
                })?;
                self.text("CURSOR ")?;
                self.text_if(options.hold, "WITH HOLD ")?;
                write!(self.out, "FOR {}", query.shown())
            }
            Statement::FetchCursor { name, direction, moves } => {
                self.text(if *moves { "MOVE " } else { "FETCH " })?;
                self.direction(*direction)?;
                write!(self.out, " FROM {}", Exact(&name.0))
            }
            Statement::CloseCursor(name) => {
                self.text("CLOSE ")?;
                self.or_all(name.as_ref())
            }
            _ => Err(fmt::Error),
        }
    }

    fn direction(&mut self, direction: FetchDirection) -> fmt::Result {
        match direction {
            FetchDirection::Forward(FetchCount::All) => self.text("FORWARD ALL"),
            FetchDirection::Forward(FetchCount::Rows(count)) => write!(self.out, "FORWARD {count}"),
            FetchDirection::Backward(FetchCount::All) => self.text("BACKWARD ALL"),
            FetchDirection::Backward(FetchCount::Rows(count)) => write!(self.out, "BACKWARD {count}"),
            FetchDirection::Absolute(row) => write!(self.out, "ABSOLUTE {row}"),
            FetchDirection::Relative(row) => write!(self.out, "RELATIVE {row}"),
        }
    }

    fn or_all(&mut self, name: Option<&Ident>) -> fmt::Result {
        match name {
            Some(name) => write!(self.out, "{}", Exact(&name.0)),
            None => self.text("ALL"),
        }
    }

    pub(super) fn prepared(&mut self, statement: &Statement) -> fmt::Result {
        match statement {
            Statement::Prepare { name, types, text, statement } => {
                write!(self.out, "PREPARE {}", Exact(&name.0))?;
                if !types.is_empty() {
                    write!(self.out, " ({})", types.join(", "))?;
                }
                self.text(" AS ")?;
                if self.redacted { write!(self.out, "{}", Redacted(statement)) } else { self.text(text.reveal()) }
            }
            Statement::Execute { name, arguments } => {
                write!(self.out, "EXECUTE {}", Exact(&name.0))?;
                for (index, argument) in arguments.iter().enumerate() {
                    self.text(if index == 0 { " (" } else { ", " })?;
                    // It may be a password.
                    if self.redacted { self.text("'********'")? } else { write!(self.out, "{argument}")? }
                }
                self.text_if(!arguments.is_empty(), ")")
            }
            Statement::Deallocate(name) => {
                self.text("DEALLOCATE ")?;
                self.or_all(name.as_ref())
            }
            _ => Err(fmt::Error),
        }
    }

    pub(super) fn channel(&mut self, statement: &Statement) -> fmt::Result {
        match statement {
            Statement::Listen(channel) => write!(self.out, "LISTEN {}", Exact(&channel.0)),
            Statement::Unlisten(None) => self.text("UNLISTEN *"),
            Statement::Unlisten(Some(channel)) => write!(self.out, "UNLISTEN {}", Exact(&channel.0)),
            Statement::Notify { channel, payload } => {
                write!(self.out, "NOTIFY {}", Exact(&channel.0))?;
                match payload {
                    Some(payload) => write!(self.out, ", {}", Quoted(payload)),
                    None => Ok(()),
                }
            }
            _ => Err(fmt::Error),
        }
    }
}
