//! What is left to sqlparser: everything that is SQL's and not ours.

use sqlparser::ast::{Expr, Statement as SqlStatement};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::keywords::{Keyword, RESERVED_FOR_COLUMN_ALIAS};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Token as SqlToken, TokenWithSpan, Tokenizer};

use super::bounded::Bounded;
use super::cursor::{Cursor, Place, Result};
use super::lexer::{Kind, Token};
use crate::ast::Statement;
use crate::error::{ErrorKind, SyntaxError};

/// What the deepest nest needs in a build without optimisation, some 60 KiB for each bracket, and as much again.
/// sqlparser's own growing of the stack leaves less than one of its calls may take in such a build.
const STACK_BYTES: usize = 6 << 20;

/// Has sqlparser read the statement from its first token.
pub(super) fn delegate(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let one = |parser: &mut Parser<'_>| match &parser.peek_token_ref().token {
        SqlToken::Word(word) if word.keyword == Keyword::TABLE => parser.parse_query().map(SqlStatement::Query),
        _ => parser.parse_statement(),
    };
    read(cursor, 0, one).map(|statement| Statement::Sql(statement.into()))
}

/// Has sqlparser read a statement from the token at which the cursor stands.
pub(super) fn rest(cursor: &mut Cursor<'_>) -> Result<crate::SqlStatement> {
    read(cursor, cursor.index(), |parser| parser.parse_statement()).map(Into::into)
}

/// Has sqlparser read expressions, with commas between, and the closing parenthesis behind them.
pub(super) fn arguments(cursor: &mut Cursor<'_>) -> Result<Vec<Expr>> {
    read(cursor, cursor.index(), |parser| {
        let arguments = parser.parse_comma_separated(Parser::parse_expr)?;
        parser.expect_token(&SqlToken::RParen)?;
        Ok(arguments)
    })
}

/// Where a piece of the text begins. sqlparser counts from the piece's first character.
#[derive(Clone, Copy)]
struct Origin(Place);

impl Origin {
    fn to_whole(self, place: Location) -> Location {
        match place.line {
            0 => place,
            1 => Location { line: self.0.line, column: place.column + self.0.column - 1 },
            line => Location { line: line + self.0.line - 1, ..place },
        }
    }

    fn to_piece(self, place: Location) -> Location {
        let line = (place.line + 1).saturating_sub(self.0.line);
        match line {
            1 => Location { line, column: (place.column + 1).saturating_sub(self.0.column) },
            line => Location { line, ..place },
        }
    }
}

/// Has sqlparser read the tokens from this one to the last.
fn read<T>(
    cursor: &mut Cursor<'_>,
    from: usize,
    one: impl FnOnce(&mut Parser<'_>) -> std::result::Result<T, ParserError>,
) -> Result<T> {
    let (Some(first), Some(last)) = (cursor.tokens().get(from), cursor.tokens().last()) else {
        return Err(cursor.error());
    };
    if from == 0 && first.kind != Kind::Word && first.text(cursor.text()) != "(" {
        return Err(cursor.error_at_token(*first, &[]));
    }
    let sql = cursor.text().get(first.start()..last.end()).unwrap_or_default();
    let bytes_max = cursor.limits().query_bytes_max;
    if sql.len() > bytes_max {
        let message = format!("query is too long: {} bytes of {bytes_max}", sql.len());
        return Err(too_complex(cursor, *first, message, "The setting query_bytes_max sets this limit.".to_owned()));
    }
    check_depth(cursor)?;
    let piece = Piece { sql, start: first.start(), origin: Origin(cursor.place_of(*first)) };
    let read = stacker::maybe_grow(STACK_BYTES, STACK_BYTES, || piece.read(cursor, one))?;
    cursor.back_to(cursor.tokens().len());
    Ok(read)
}

/// What sqlparser is given, and where it is in the whole text.
#[derive(Clone, Copy)]
struct Piece<'a> {
    sql: &'a str,
    start: usize,
    origin: Origin,
}

impl Piece<'_> {
    fn read<T>(
        &self,
        cursor: &Cursor<'_>,
        one: impl FnOnce(&mut Parser<'_>) -> std::result::Result<T, ParserError>,
    ) -> Result<T> {
        let mut tokens = Tokenizer::new(&PostgreSqlDialect {}, self.sql)
            .tokenize_with_location()
            .map_err(|error| self.located(cursor, error.location))?;
        if let Some(place) = number_with_letters(&tokens, self.sql) {
            return Err(self.located(cursor, place));
        }
        tokens = network_operators(typed_texts(null_tests(tokens)));
        // Later mistakes are told by these, and are about the whole text.
        for token in &mut tokens {
            token.span.start = self.origin.to_whole(token.span.start);
            token.span.end = self.origin.to_whole(token.span.end);
        }
        let limits = cursor.limits();
        let dialect = Bounded::new(limits.expressions_max(cursor.tokens().len()), limits.statements_max());
        let parser = Parser::new(&dialect).with_recursion_limit(limits.recursion_max());
        let mut parser = parser.with_tokens_with_locations(tokens);
        let statement = match one(&mut parser) {
            Ok(statement) => statement,
            Err(_) if dialect.is_exhausted() => {
                return Err(self.converted(cursor, &ParserError::RecursionLimitExceeded));
            }
            Err(error) => return Err(self.converted(cursor, &error)),
        };
        let rest = parser.peek_token_ref();
        match rest.token {
            SqlToken::EOF => Ok(statement),
            _ => Err(self.located(cursor, self.origin.to_piece(rest.span.start))),
        }
    }

    fn converted(&self, cursor: &Cursor<'_>, error: &ParserError) -> SyntaxError {
        match error {
            ParserError::RecursionLimitExceeded => too_deep(cursor, cursor.token()),
            ParserError::TokenizerError(message) | ParserError::ParserError(message) => {
                let location = location(message);
                let text = message.rsplit_once(" at Line: ").map_or(message.as_str(), |(before, _)| before);
                match location {
                    Some(location) => self.located(cursor, self.origin.to_piece(location)),
                    None => unlocated(cursor, text),
                }
            }
        }
    }

    /// The error at our token that stands where sqlparser points; the end has line 0.
    fn located(&self, cursor: &Cursor<'_>, location: Location) -> SyntaxError {
        let Some(offset) = offset_of(self.sql, location) else {
            return cursor.error_at_token(cursor.end_token(), &[]);
        };
        let tokens = cursor.tokens();
        let offset = offset + self.start;
        let index = tokens.partition_point(|token| token.end() <= offset);
        let token = tokens.get(index).copied().unwrap_or(cursor.end_token());
        let expected = if token.start() == cursor.token().start() { cursor.expected() } else { &[] };
        cursor.error_at_token(token, expected)
    }
}

/// A number with letters behind it, `1_000` or `0x10`, would be a number and its alias, or bytes.
fn number_with_letters(tokens: &[TokenWithSpan], sql: &str) -> Option<Location> {
    let apart =
        tokens.iter().filter(|token| matches!(&token.token, SqlToken::Number(digits, _) if digits.contains('_')));
    let pairs = tokens.windows(2).filter_map(|pair| match pair {
        [number, word]
            if matches!(number.token, SqlToken::Number(..))
                && matches!(&word.token, SqlToken::Word(word) if word.quote_style.is_none())
                && number.span.end == word.span.start =>
        {
            Some(number.span.start)
        }
        _ => None,
    });
    let hexadecimal = tokens.iter().filter(|token| matches!(token.token, SqlToken::HexStringLiteral(_)));
    let begins = |place: &Location| {
        offset_of(sql, *place).and_then(|at| sql.get(at..)).is_some_and(|text| text.starts_with('0'))
    };
    let apart = apart.map(|token| token.span.start);
    pairs.chain(apart).chain(hexadecimal.map(|token| token.span.start).filter(begins)).next()
}

/// PostgreSQL's types whose names sqlparser does not expect before a text.
const TYPES_BEFORE_TEXTS: [&str; 12] = [
    "bpchar",
    "cidr",
    "inet",
    "macaddr",
    "name",
    "oid",
    "regclass",
    "regnamespace",
    "regproc",
    "regrole",
    "regtype",
    "timestamptz",
];

/// `inet '10.0.0.1'` as `'10.0.0.1'::inet`, where sqlparser would take the text for the alias of a column.
fn typed_texts(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut read: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    for token in tokens {
        let behind = match &token.token {
            SqlToken::SingleQuotedString(_) => {
                read.iter().rposition(|before| !matches!(before.token, SqlToken::Whitespace(_)))
            }
            _ => None,
        };
        let behind = behind.filter(|index| {
            let named = read.get(*index).is_some_and(|token| names_type(&token.token));
            let part = index.checked_sub(1).and_then(|before| read.get(before));
            named && part.is_none_or(|before| before.token != SqlToken::Period)
        });
        let Some(index) = behind else {
            read.push(token);
            continue;
        };
        let name = read.remove(index);
        read.truncate(index);
        let colons = TokenWithSpan { token: SqlToken::DoubleColon, span: name.span };
        read.extend([token, colons, name]);
    }
    read
}

/// `<<=` and `>>=`, of networks, which sqlparser reads as two operators.
fn network_operators(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut read: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    for token in tokens {
        let joined = match (read.last(), &token.token) {
            (Some(before), SqlToken::Eq) if before.span.end == token.span.start => match before.token {
                SqlToken::ShiftLeft => Some("<<="),
                SqlToken::ShiftRight => Some(">>="),
                _ => None,
            },
            _ => None,
        };
        match (joined, read.last_mut()) {
            (Some(operator), Some(before)) => before.token = SqlToken::CustomBinaryOperator(operator.to_owned()),
            _ => read.push(token),
        }
    }
    read
}

fn names_type(token: &SqlToken) -> bool {
    match token {
        SqlToken::Word(word) => {
            word.quote_style.is_none() && TYPES_BEFORE_TEXTS.contains(&word.value.to_lowercase().as_str())
        }
        _ => false,
    }
}

/// `x ISNULL` as `x IS NULL`, which sqlparser knows, where it would take the word for an alias.
fn null_tests(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut read: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let mut behind_value = false;
    for token in tokens {
        let is_test = matches!(&token.token, SqlToken::Word(word) if word.value.eq_ignore_ascii_case("isnull") && word.quote_style.is_none());
        if is_test && behind_value {
            for word in ["IS", "NULL"] {
                read.push(TokenWithSpan { token: SqlToken::make_keyword(word), span: token.span });
            }
            continue;
        }
        behind_value = match &token.token {
            SqlToken::Whitespace(_) => behind_value,
            SqlToken::Word(word) => {
                word.quote_style.is_some()
                    || matches!(word.keyword, Keyword::NoKeyword | Keyword::NULL | Keyword::TRUE | Keyword::FALSE)
                    || !RESERVED_FOR_COLUMN_ALIAS.contains(&word.keyword) && !NO_VALUES.contains(&word.keyword)
            }
            SqlToken::Number(..) | SqlToken::SingleQuotedString(_) | SqlToken::EscapedStringLiteral(_) => true,
            SqlToken::RParen | SqlToken::RBracket | SqlToken::Placeholder(_) => true,
            _ => false,
        };
        read.push(token);
    }
    read
}

/// Words behind which a name begins, and not a test of a value.
const NO_VALUES: [Keyword; 9] = [
    Keyword::AS,
    Keyword::SELECT,
    Keyword::DISTINCT,
    Keyword::AND,
    Keyword::OR,
    Keyword::NOT,
    Keyword::BY,
    Keyword::ON,
    Keyword::WHEN,
];

fn too_complex(cursor: &Cursor<'_>, token: Token, message: String, hint: String) -> SyntaxError {
    let error = cursor.error_at_token(token, &[]);
    SyntaxError { kind: ErrorKind::TooComplex, message, hint: Some(hint), ..error }
}

fn too_deep(cursor: &Cursor<'_>, token: Token) -> SyntaxError {
    let hint = format!("The setting parse_depth_max is {}.", cursor.limits().depth_max);
    too_complex(cursor, token, "statement is nested too deep".to_owned(), hint)
}

/// sqlparser says where only in the text: `... at Line: 1, Column: 8`.
fn location(message: &str) -> Option<Location> {
    let (_, place) = message.rsplit_once(" at Line: ")?;
    let (line, column) = place.split_once(", Column: ")?;
    Some(Location { line: line.parse().ok()?, column: column.parse().ok()? })
}

/// Some of sqlparser's errors have no place; the statement's beginning is the best there is.
fn unlocated(cursor: &Cursor<'_>, text: &str) -> SyntaxError {
    let token = cursor.tokens().first().copied().unwrap_or(cursor.end_token());
    if text.ends_with("found: EOF") {
        return cursor.error_at_token(cursor.end_token(), &[]);
    }
    // What sqlparser found is in its text.
    let message = match cursor.is_secret(cursor.end_token()) {
        true => "Syntax error".to_owned(),
        false => format!("Syntax error: {text}"),
    };
    SyntaxError { message, ..cursor.error_at_token(token, &[]) }
}

/// The byte at which a line and column, both from 1 and in characters, begin.
fn offset_of(sql: &str, location: Location) -> Option<usize> {
    let mut place = Location { line: 1, column: 1 };
    for (offset, character) in sql.char_indices() {
        if place == location {
            return Some(offset);
        }
        if character == '\n' {
            place = Location { line: place.line + 1, column: 1 };
        } else {
            place.column += 1;
        }
    }
    None
}

/// How deep the tree may become in one pair of brackets.
#[derive(Default, Clone, Copy)]
struct Depth {
    /// Links that a comma begins anew.
    links: usize,
    /// Tokens since the last link; every other one may be an operator that binds tighter.
    tokens: usize,
    /// Links across commas: `SELECT a, b UNION SELECT c, d UNION ...`.
    sets: usize,
}

impl Depth {
    fn total(self) -> usize {
        2 * self.links + self.tokens + 10 * self.sets
    }
}

/// Refuses what would take sqlparser too long, or would make a tree too deep to walk.
fn check_depth(cursor: &Cursor<'_>) -> Result<()> {
    let mut outer: Vec<Depth> = Vec::new();
    let mut outer_total = 0;
    let mut depth = Depth::default();
    let limits = cursor.limits();
    for token in cursor.tokens() {
        let text = token.text(cursor.text());
        match (token.kind, text) {
            (Kind::Symbol, "(" | "[" | "{") => {
                outer.push(depth);
                outer_total += depth.total();
                depth = Depth::default();
            }
            (Kind::Symbol, ")" | "]" | "}") => {
                depth = outer.pop().unwrap_or_default();
                outer_total = outer_total.saturating_sub(depth.total());
                depth.tokens += 1;
            }
            (Kind::Symbol, ",") => depth = Depth { sets: depth.sets, ..Depth::default() },
            (Kind::Word, word) if is_set_operator(word) => {
                depth = Depth { sets: depth.sets + 1, ..Depth::default() };
            }
            (Kind::Word, word) if is_link(word) => {
                depth.links += 1;
                depth.tokens = 0;
            }
            _ => depth.tokens += 1,
        }
        if outer.len() > limits.depth_max || outer_total + depth.total() > limits.chain_max() {
            return Err(too_deep(cursor, *token));
        }
    }
    Ok(())
}

fn is_set_operator(word: &str) -> bool {
    ["UNION", "INTERSECT", "EXCEPT", "MINUS"].iter().any(|operator| word.eq_ignore_ascii_case(operator))
}

/// Words that begin a part of which the whole is made; each may be a level of the tree.
fn is_link(word: &str) -> bool {
    ["AND", "OR", "SELECT", "FROM", "WHERE", "JOIN", "ON", "WHEN", "THEN", "ELSE"]
        .iter()
        .any(|link| word.eq_ignore_ascii_case(link))
}
