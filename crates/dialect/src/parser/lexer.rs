//! Tokens, borrowed from the text and one statement at a time.
//!
//! sqlparser's tokenizer owns every token and every blank, some 90 bytes each, for the whole text at once: a script of
//! the longest length would take gigabytes. So it only sees the statements that are left to sqlparser.

use crate::error::{ErrorKind, SyntaxError};

/// The most tokens one statement may have.
pub(crate) const STATEMENT_TOKENS_MAX: usize = 1 << 20;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A bare word.
    Word,
    /// `"name"`
    Quoted,
    /// `'text'`
    Text,
    /// `E'text'`
    EscapedText,
    /// `$tag$text$tag$`
    DollarText,
    /// Digits, perhaps with a point and an exponent.
    Number,
    /// What only SQL knows: `B'..'`, `X'..'`, `N'..'`, `U&'..'`, `$1`, `12ab`.
    Foreign,
    /// Any other character.
    Symbol,
    /// The semicolon that ends the statement.
    Semicolon,
    /// The end of the text.
    End,
}

/// A token and where its bytes are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Token {
    /// What it is.
    pub kind: Kind,
    start: u32,
    end: u32,
}

impl Token {
    /// The offset of its first byte.
    pub fn start(self) -> usize {
        self.start as usize
    }

    /// The offset behind its last byte.
    pub fn end(self) -> usize {
        self.end as usize
    }

    /// Its bytes.
    pub fn text(self, whole: &str) -> &str {
        whole.get(self.start()..self.end()).unwrap_or_default()
    }
}

/// An error at a byte of the text.
pub(crate) fn error_at(text: &str, offset: usize, kind: ErrorKind, message: impl Into<String>) -> SyntaxError {
    let position = text.get(..offset).map_or(0, |before| before.chars().count()) + 1;
    SyntaxError { kind, message: message.into(), hint: None, position }
}

/// Walks over a text.
#[derive(Debug)]
pub(crate) struct Lexer<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Lexer<'a> {
    /// At the start of a text, which must be shorter than 4 GiB.
    pub fn new(text: &'a str) -> Self {
        Self { text, bytes: text.as_bytes(), at: 0 }
    }

    /// Replaces `tokens` by those of the next statement and returns the one behind them: a semicolon or the end.
    pub fn statement(&mut self, tokens: &mut Vec<Token>) -> Result<Token, SyntaxError> {
        tokens.clear();
        loop {
            self.skip_blanks()?;
            let start = self.at;
            let kind = self.token()?;
            let token = Token { kind, start: offset(start), end: offset(self.at) };
            if matches!(kind, Kind::Semicolon | Kind::End) {
                return Ok(token);
            }
            if tokens.len() == STATEMENT_TOKENS_MAX {
                return Err(self.error(start, ErrorKind::TooComplex, "statement has too many tokens"));
            }
            tokens.push(token);
        }
    }

    fn byte(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn error(&self, start: usize, kind: ErrorKind, message: &str) -> SyntaxError {
        error_at(self.text, start, kind, message)
    }

    /// Moves behind the bytes that `matches` takes.
    fn take_while(&mut self, matches: impl Fn(u8) -> bool) {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        self.at += rest.iter().position(|byte| !matches(*byte)).unwrap_or(rest.len());
    }

    fn skip_blanks(&mut self) -> Result<(), SyntaxError> {
        loop {
            match (self.byte(0), self.byte(1)) {
                (b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c, _) => self.at += 1,
                (b'-', b'-') => self.take_while(|byte| byte != b'\n' && byte != b'\r'),
                (b'/', b'*') => self.skip_comment()?,
                _ => return Ok(()),
            }
        }
    }

    /// Comments nest, as in PostgreSQL.
    fn skip_comment(&mut self) -> Result<(), SyntaxError> {
        let start = self.at;
        let mut depth = 0_usize;
        while self.at < self.bytes.len() {
            match (self.byte(0), self.byte(1)) {
                (b'/', b'*') => {
                    depth += 1;
                    self.at += 2;
                }
                (b'*', b'/') => {
                    depth -= 1;
                    self.at += 2;
                    if depth == 0 {
                        return Ok(());
                    }
                }
                _ => self.at += 1,
            }
        }
        Err(self.error(start, ErrorKind::Syntax, r#"unterminated /* comment at or near "/*""#))
    }

    fn token(&mut self) -> Result<Kind, SyntaxError> {
        let first = self.byte(0);
        match first {
            _ if self.at >= self.bytes.len() => Ok(Kind::End),
            b';' => Ok(self.symbol(Kind::Semicolon)),
            b'\'' => self.quoted(0, b'\'', false, Kind::Text),
            b'"' => self.quoted(0, b'"', false, Kind::Quoted),
            b'e' | b'E' if self.byte(1) == b'\'' => self.quoted(1, b'\'', true, Kind::EscapedText),
            b'b' | b'B' | b'x' | b'X' | b'n' | b'N' if self.byte(1) == b'\'' => {
                self.quoted(1, b'\'', false, Kind::Foreign)
            }
            b'u' | b'U' if self.byte(1) == b'&' && matches!(self.byte(2), b'\'' | b'"') => {
                self.quoted(2, self.byte(2), false, Kind::Foreign)
            }
            b'$' => self.dollar(),
            b'0'..=b'9' => Ok(self.number()),
            b'.' if self.byte(1).is_ascii_digit() => Ok(self.number()),
            _ if starts_word(first) => {
                self.take_while(continues_word);
                Ok(Kind::Word)
            }
            _ => Ok(self.symbol(Kind::Symbol)),
        }
    }

    fn symbol(&mut self, kind: Kind) -> Kind {
        self.at += 1;
        kind
    }

    /// What stands between two quotes; a quote inside is doubled, or behind a backslash if those escape.
    fn quoted(&mut self, prefix: usize, quote: u8, backslash: bool, kind: Kind) -> Result<Kind, SyntaxError> {
        let start = self.at;
        self.at += prefix + 1;
        loop {
            self.take_while(|byte| byte != quote && !(backslash && byte == b'\\'));
            if self.at >= self.bytes.len() {
                // What follows the quote is not shown: it may be a password.
                let message = match quote {
                    b'"' => r#"unterminated quoted identifier at or near """"#,
                    _ => r#"unterminated quoted string at or near "'""#,
                };
                return Err(self.error(start, ErrorKind::Syntax, message));
            }
            if self.byte(0) == b'\\' || self.byte(1) == quote {
                self.at += 2;
                continue;
            }
            self.at += 1;
            return Ok(kind);
        }
    }

    /// `$1`, `$$text$$`, `$tag$text$tag$`, or a dollar sign that is none of these.
    fn dollar(&mut self) -> Result<Kind, SyntaxError> {
        let start = self.at;
        self.at += 1;
        if self.byte(0).is_ascii_digit() {
            self.take_while(continues_word);
            return Ok(Kind::Foreign);
        }
        if starts_word(self.byte(0)) {
            self.take_while(|byte| continues_word(byte) && byte != b'$');
        }
        if self.byte(0) != b'$' {
            self.at = start + 1;
            return Ok(Kind::Symbol);
        }
        self.at += 1;
        let tag = self.text.get(start..self.at).unwrap_or_default();
        match self.text.get(self.at..).and_then(|rest| rest.find(tag)) {
            Some(length) => {
                self.at += length + tag.len();
                Ok(Kind::DollarText)
            }
            None => Err(self.error(start, ErrorKind::Syntax, r#"unterminated dollar-quoted string at or near "$""#)),
        }
    }

    fn number(&mut self) -> Kind {
        self.take_while(|byte| byte.is_ascii_digit());
        if self.byte(0) == b'.' {
            self.at += 1;
            self.take_while(|byte| byte.is_ascii_digit());
        }
        if matches!(self.byte(0), b'e' | b'E') {
            let sign = usize::from(matches!(self.byte(1), b'+' | b'-'));
            if self.byte(1 + sign).is_ascii_digit() {
                self.at += 1 + sign;
                self.take_while(|byte| byte.is_ascii_digit());
            }
        }
        if starts_word(self.byte(0)) {
            self.take_while(continues_word);
            return Kind::Foreign;
        }
        Kind::Number
    }
}

/// The parser refuses texts beyond 16 MiB before it makes a lexer.
fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// Every character beyond ASCII is a letter, as in PostgreSQL.
fn starts_word(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

fn continues_word(byte: u8) -> bool {
    starts_word(byte) || byte.is_ascii_digit() || byte == b'$'
}
