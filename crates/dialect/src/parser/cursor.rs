//! Looking at the tokens of one statement, and taking them.

use super::ParseLimits;
use super::lexer::{Kind, Token, error_at};
use crate::ast::Ident;
use crate::error::{ErrorKind, SyntaxError};
use crate::{secrets, words};

/// The longest name, in bytes of UTF-8 (`reference/vertica-sql.md` §0).
pub(crate) const NAME_BYTES_MAX: usize = 128;

/// The most characters of a token that an error shows.
const SHOWN_CHARS_MAX: usize = 64;

pub(crate) type Result<T> = std::result::Result<T, SyntaxError>;

/// A line and a column of the whole text, both from 1 and in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// The line.
    pub line: u64,
    /// The column.
    pub column: u64,
}

impl Place {
    /// The first character's.
    pub const START: Self = Self { line: 1, column: 1 };

    /// The place behind a text that begins at this one.
    pub fn after(mut self, text: &str) -> Self {
        for character in text.chars() {
            if character == '\n' {
                self = Self { line: self.line + 1, column: 1 };
            } else {
                self.column += 1;
            }
        }
        self
    }
}

/// Stands at one token of a statement.
pub(crate) struct Cursor<'a> {
    text: &'a str,
    tokens: &'a [Token],
    end: Token,
    /// Where the first token begins.
    place: Place,
    limits: ParseLimits,
    index: usize,
    /// The words that would have done at this token, for the hint.
    expected: Vec<&'static str>,
}

impl<'a> Cursor<'a> {
    /// At the first of a statement's tokens; `end` is the semicolon or the end of the text behind them.
    pub fn new(text: &'a str, tokens: &'a [Token], end: Token, place: Place, limits: ParseLimits) -> Self {
        Self { text, tokens, end, place, limits, index: 0, expected: Vec::new() }
    }

    /// How much the statement may ask of the parser.
    pub fn limits(&self) -> ParseLimits {
        self.limits
    }

    /// Where one of the statement's tokens begins.
    pub fn place_of(&self, token: Token) -> Place {
        let start = self.tokens.first().map_or(0, |first| first.start());
        self.place.after(self.text.get(start..token.start()).unwrap_or_default())
    }

    /// The whole text.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// All tokens of the statement.
    pub fn tokens(&self) -> &'a [Token] {
        self.tokens
    }

    /// What stands behind the statement.
    pub fn end_token(&self) -> Token {
        self.end
    }

    /// The token at which it stands.
    pub fn token(&self) -> Token {
        self.ahead(0)
    }

    fn ahead(&self, count: usize) -> Token {
        self.tokens.get(self.index + count).copied().unwrap_or(self.end)
    }

    /// The kind of the token so many further on.
    pub fn kind_ahead(&self, count: usize) -> Kind {
        self.ahead(count).kind
    }

    /// The bytes of the token.
    pub fn token_text(&self) -> &'a str {
        self.token().text(self.text)
    }

    /// Moves to the next token.
    pub fn advance(&mut self) {
        self.index += 1;
        self.expected.clear();
    }

    /// Where it stands, for [`Cursor::back_to`].
    pub fn index(&self) -> usize {
        self.index
    }

    /// Moves back to where it stood.
    pub fn back_to(&mut self, index: usize) {
        self.index = index;
        self.expected.clear();
    }

    fn is_word(&self, token: Token, word: &str) -> bool {
        token.kind == Kind::Word && token.text(self.text).eq_ignore_ascii_case(word)
    }

    /// Whether the token is this bare word.
    pub fn at(&self, word: &str) -> bool {
        self.is_word(self.token(), word)
    }

    /// Whether the token so many further on is this bare word.
    pub fn at_ahead(&self, count: usize, word: &str) -> bool {
        self.is_word(self.ahead(count), word)
    }

    /// Whether the token so many further on is this character.
    pub fn symbol_ahead(&self, count: usize, symbol: char) -> bool {
        let token = self.ahead(count);
        token.kind == Kind::Symbol && token.text(self.text).starts_with(symbol)
    }

    /// Whether nothing is left.
    pub fn at_end(&self) -> bool {
        self.index >= self.tokens.len()
    }

    /// Takes this word, if it is there.
    pub fn accept(&mut self, word: &'static str) -> bool {
        let found = self.at(word);
        if found {
            self.advance();
        } else {
            self.expected.push(word);
        }
        found
    }

    /// Takes these words, if they are all there.
    pub fn accept_all(&mut self, expected: &[&'static str]) -> bool {
        let found = expected.iter().enumerate().all(|(count, word)| self.at_ahead(count, word));
        if found {
            self.index += expected.len();
            self.expected.clear();
        } else {
            self.expected.extend(expected.first());
        }
        found
    }

    /// Takes this word.
    pub fn expect(&mut self, word: &'static str) -> Result<()> {
        if self.accept(word) { Ok(()) } else { Err(self.error()) }
    }

    /// Takes these words.
    pub fn expect_all(&mut self, expected: &[&'static str]) -> Result<()> {
        expected.iter().try_for_each(|word| self.expect(word))
    }

    /// Says that this word would have done as well.
    pub fn note(&mut self, words: &[&'static str]) {
        self.expected.extend(words);
    }

    /// Takes this character, if it is there.
    pub fn accept_symbol(&mut self, symbol: char) -> bool {
        let found = self.symbol_ahead(0, symbol);
        if found {
            self.advance();
        }
        found
    }

    /// Takes this character.
    pub fn expect_symbol(&mut self, symbol: char) -> Result<()> {
        if self.accept_symbol(symbol) { Ok(()) } else { Err(self.error()) }
    }

    /// Takes the end of the statement.
    pub fn finish(&self) -> Result<()> {
        if self.at_end() { Ok(()) } else { Err(self.error()) }
    }

    /// Takes `[IF EXISTS]`. An object called `if` is told apart by what follows.
    pub fn if_exists(&mut self) -> Result<bool> {
        let clause = self.at("IF") && self.kind_ahead(1) == Kind::Word && !self.at_ahead(1, "CASCADE");
        if clause {
            self.expect_all(&["IF", "EXISTS"])?;
        }
        Ok(clause)
    }

    /// Whether the token can be a name.
    pub fn at_name(&self) -> bool {
        match self.token().kind {
            Kind::Quoted => true,
            Kind::Word => !words::is_reserved(self.token_text()),
            _ => false,
        }
    }

    /// Takes a name.
    pub fn name(&mut self) -> Result<Ident> {
        if self.at_name() { self.any_name() } else { Err(self.error()) }
    }

    /// Takes a word, reserved or not, or a quoted name.
    pub fn any_name(&mut self) -> Result<Ident> {
        let token = self.token();
        let name = match token.kind {
            Kind::Word => self.token_text().to_owned(),
            Kind::Quoted => unquote(self.token_text(), "\"\""),
            _ => return Err(self.error()),
        };
        if name.is_empty() {
            return Err(self.error_saying(ErrorKind::Syntax, r#"zero-length delimited identifier at or near """""#));
        }
        if name.len() > NAME_BYTES_MAX {
            let shown = if self.is_secret(token) { HIDDEN.to_owned() } else { shorten(&name) };
            let message = format!("identifier \"{shown}\" is too long: {} bytes of {NAME_BYTES_MAX}", name.len());
            return Err(self.error_saying(ErrorKind::NameTooLong, message));
        }
        self.advance();
        Ok(Ident(name))
    }

    /// Takes names, one or several, with commas between.
    pub fn names(&mut self) -> Result<Vec<Ident>> {
        self.list(Self::name)
    }

    /// Takes one or several of something, with commas between.
    pub fn list<T>(&mut self, mut one: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut list = vec![one(self)?];
        while self.accept_symbol(',') {
            list.push(one(self)?);
        }
        Ok(list)
    }

    /// Whether the token is a string literal.
    pub fn at_string(&self) -> bool {
        matches!(self.token().kind, Kind::Text | Kind::EscapedText | Kind::DollarText)
    }

    /// Takes a string literal.
    pub fn string(&mut self) -> Result<String> {
        let raw = self.token_text();
        let value = match self.token().kind {
            Kind::Text => unquote(raw, "''"),
            Kind::EscapedText => match unescape(raw) {
                Some(value) => value,
                None => return Err(self.error_saying(ErrorKind::Syntax, "invalid escape sequence in string")),
            },
            Kind::DollarText => undollar(raw),
            _ => return Err(self.error()),
        };
        self.advance();
        Ok(value)
    }

    /// Takes a number of digits only; the system tables show numbers as `bigint`.
    pub fn natural(&mut self) -> Result<u64> {
        let digits = self.token_text();
        if self.token().kind != Kind::Number || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(self.error());
        }
        let Some(number) = digits.parse().ok().filter(|number| i64::try_from(*number).is_ok()) else {
            let message = format!("value \"{}\" is out of range for type bigint", self.shown(self.token()));
            return Err(self.error_saying(ErrorKind::NumberOutOfRange, message));
        };
        self.advance();
        Ok(number)
    }

    /// Takes a number with its sign, if there is one.
    pub fn signed_number(&mut self) -> Result<Option<String>> {
        let sign = ['-', '+'].into_iter().find(|sign| self.symbol_ahead(0, *sign));
        if self.kind_ahead(usize::from(sign.is_some())) != Kind::Number {
            return Ok(None);
        }
        if sign.is_some() {
            self.advance();
        }
        let mut number = String::from_iter(sign);
        number.push_str(self.token_text());
        self.advance();
        Ok(Some(number))
    }

    /// The error that this token cannot stand here.
    pub fn error(&self) -> SyntaxError {
        self.error_at_token(self.token(), &self.expected)
    }

    /// The same about another token, and the words expected there.
    pub fn error_at_token(&self, token: Token, expected: &[&'static str]) -> SyntaxError {
        let message = match token.kind {
            Kind::End => "Syntax error at end of input".to_owned(),
            _ => format!("Syntax error at or near \"{}\"", self.shown(token)),
        };
        let hint = match token.kind {
            Kind::Word => words::nearest(token.text(self.text), expected.iter().copied()),
            _ => None,
        };
        let hint = hint.map(|word| format!("Did you mean \"{word}\"?"));
        SyntaxError { hint, ..error_at(self.text, token.start(), ErrorKind::Syntax, message) }
    }

    /// The words expected at this token.
    pub fn expected(&self) -> &[&'static str] {
        &self.expected
    }

    /// An error at this token with a text of its own.
    pub fn error_saying(&self, kind: ErrorKind, message: impl Into<String>) -> SyntaxError {
        error_at(self.text, self.token().start(), kind, message)
    }

    /// A token as an error may show it. In a statement about passwords, what is no word of the grammar may be one, or
    /// a piece of one that was not quoted.
    fn shown(&self, token: Token) -> String {
        let text = token.text(self.text);
        let hidden = match token.kind {
            Kind::Symbol | Kind::Semicolon | Kind::End => false,
            Kind::Word => self.is_secret(token) && !words::is_keyword(text),
            Kind::Quoted | Kind::Number => self.is_secret(token),
            _ => self.is_secret(token) || self.is_about_people(),
        };
        if hidden { HIDDEN.to_owned() } else { shorten(&secrets::mask_login(text)) }
    }

    /// Whether a secret may begin at or before this token: somewhere before it stands a word that announces one.
    pub fn is_secret(&self, token: Token) -> bool {
        let before = self.tokens.iter().take_while(|earlier| earlier.start() < token.start());
        before.filter(|earlier| !matches!(earlier.kind, Kind::Number | Kind::Symbol)).any(|earlier| {
            let word = earlier.text(self.text).trim_matches(['\'', '"']);
            secrets::announces(word) || secrets::is_secret(word)
        })
    }

    /// Where passwords are, a text out of place may be one too.
    fn is_about_people(&self) -> bool {
        self.tokens.iter().any(|word| self.is_word(*word, "USER") || self.is_word(*word, "UPSTREAM"))
    }
}

/// In place of what must not be shown.
const HIDDEN: &str = "'********'";

fn shorten(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((at, _)) => format!("{}...", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Removes the quotes around, and one of every two inside.
fn unquote(raw: &str, doubled: &str) -> String {
    let inner = raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default();
    inner.replace(doubled, doubled.get(1..).unwrap_or_default())
}

fn undollar(raw: &str) -> String {
    let tag = raw.get(1..).and_then(|rest| rest.find('$')).map_or(0, |at| at + 2);
    raw.get(tag..raw.len().saturating_sub(tag)).unwrap_or_default().to_owned()
}

/// The value of `E'...'`; `None` if an escape in it stands for no character.
fn unescape(raw: &str) -> Option<String> {
    let inner = raw.get(2..raw.len().saturating_sub(1))?;
    let mut value = String::with_capacity(inner.len());
    let mut rest = inner.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '\'' => {
                rest.next();
                value.push('\'');
            }
            '\\' => {
                let escaped = match rest.next()? {
                    'b' => '\u{8}',
                    'f' => '\u{c}',
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    'x' => code(&mut rest, 0, 1, 2, 16)?,
                    'u' => code(&mut rest, 0, 4, 4, 16)?,
                    'U' => code(&mut rest, 0, 8, 8, 16)?,
                    digit @ '0'..='7' => code(&mut rest, digit.to_digit(8)?, 0, 2, 8)?,
                    other => other,
                };
                value.push(escaped);
            }
            other => value.push(other),
        }
    }
    Some(value)
}

/// The character whose number `first` begins and the digits that follow end. No text holds the character 0, and the
/// single bytes beyond ASCII that PostgreSQL would put together to characters are no characters alone.
fn code(
    rest: &mut std::iter::Peekable<std::str::Chars<'_>>,
    first: u32,
    least: usize,
    most: usize,
    radix: u32,
) -> Option<char> {
    let mut number = first;
    let mut count = 0;
    while count < most
        && let Some(digit) = rest.peek().and_then(|next| next.to_digit(radix))
    {
        number = number.checked_mul(radix)?.checked_add(digit)?;
        count += 1;
        rest.next();
    }
    let single_byte = most == 2;
    let representable = number > 0 && !(single_byte && number > 0x7f);
    if count >= least && representable { char::from_u32(number) } else { None }
}
