//! Texts as `json`, which keeps them as they are, and `jsonb`, which writes them anew.

use std::iter::Peekable;
use std::str::Chars;

use super::error::QueryError;
use super::places::Subject;
use super::printed::plain_digits;
use crate::error::SqlState;

/// How deep values may lie in one another.
const DEPTH_MAX: usize = 200;

/// A value that was read.
enum Json {
    /// `null`, `true`, `false` and numbers.
    Plain(String),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

/// Looks whether a text is JSON.
///
/// # Errors
/// When it is not.
pub(super) fn check(text: &str) -> Result<(), QueryError> {
    read(text, "json").map(drop)
}

/// As `jsonb` keeps it: one form for equal values.
///
/// # Errors
/// When it is no JSON.
pub(super) fn normal(text: &str) -> Result<String, QueryError> {
    let mut out = String::new();
    write(&read(text, "jsonb")?, false, &mut out);
    Ok(out)
}

/// A text that is alike for equal values: numbers are, with zeros behind their point and without.
pub(super) fn key(text: &str) -> Result<String, QueryError> {
    let mut out = String::new();
    write(&read(text, "jsonb")?, true, &mut out);
    Ok(out)
}

fn read(text: &str, kind: &str) -> Result<Json, QueryError> {
    let mut reader = Reader { rest: text.chars().peekable(), deep: false, exact: kind == "jsonb" };
    let value = reader.value(0);
    reader.blanks();
    match value {
        Some(value) if reader.rest.peek().is_none() => Ok(value),
        _ if reader.deep => Err(QueryError::new(SqlState::StatementTooComplex, "JSON value is nested too deep")),
        _ => Err(QueryError::new(SqlState::InvalidTextRepresentation, "invalid input syntax for type json")
            .about(Subject::Literal(text.to_owned()))),
    }
}

struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
    deep: bool,
    /// Whether what is read is kept, and not only looked at.
    exact: bool,
}

impl Reader<'_> {
    fn blanks(&mut self) {
        while self.rest.next_if(|c| matches!(c, ' ' | '\t' | '\n' | '\r')).is_some() {}
    }

    fn value(&mut self, depth: usize) -> Option<Json> {
        if depth > DEPTH_MAX {
            self.deep = true;
            return None;
        }
        self.blanks();
        match *self.rest.peek()? {
            '{' => self.object(depth),
            '[' => self.list(depth),
            '"' => self.text().map(Json::Text),
            '-' | '0'..='9' => self.number().map(Json::Plain),
            _ => {
                let mut word = String::new();
                while let Some(letter) = self.rest.next_if(char::is_ascii_alphanumeric) {
                    word.push(letter);
                }
                matches!(word.as_str(), "null" | "true" | "false").then_some(Json::Plain(word))
            }
        }
    }

    fn list(&mut self, depth: usize) -> Option<Json> {
        self.rest.next();
        let mut items = Vec::new();
        self.blanks();
        if self.rest.next_if_eq(&']').is_some() {
            return Some(Json::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.blanks();
            match self.rest.next()? {
                ',' => {}
                ']' => return Some(Json::List(items)),
                _ => return None,
            }
        }
    }

    /// The last of equal keys counts; they stand in the order of their length.
    fn object(&mut self, depth: usize) -> Option<Json> {
        self.rest.next();
        let mut members: Vec<(String, Json)> = Vec::new();
        self.blanks();
        if self.rest.next_if_eq(&'}').is_some() {
            return Some(Json::Object(members));
        }
        loop {
            self.blanks();
            let key = self.rest.peek().filter(|c| **c == '"').is_some().then(|| self.text())??;
            self.blanks();
            self.rest.next_if_eq(&':')?;
            let value = self.value(depth + 1)?;
            members.push((key, value));
            self.blanks();
            match self.rest.next()? {
                ',' => {}
                '}' => return Some(Json::Object(in_order(members))),
                _ => return None,
            }
        }
    }

    fn text(&mut self) -> Option<String> {
        self.rest.next();
        let mut text = String::new();
        loop {
            match self.rest.next()? {
                '"' => return Some(text),
                '\\' => text.push(match self.rest.next()? {
                    'b' => '\u{8}',
                    'f' => '\u{c}',
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    'u' => self.code()?,
                    plain @ ('"' | '\\' | '/') => plain,
                    _ => return None,
                }),
                control if control < ' ' => return None,
                plain => text.push(plain),
            }
        }
    }

    /// What is behind `\u`; two of them are one character beyond the first 65,536.
    fn code(&mut self) -> Option<char> {
        let first = self.hexadecimal()?;
        if !(0xd800..0xdc00).contains(&first) {
            // A text holds no character zero.
            return char::from_u32(first).filter(|c| *c != '\0' || !self.exact);
        }
        self.rest.next_if_eq(&'\\')?;
        self.rest.next_if_eq(&'u')?;
        let second = self.hexadecimal().filter(|code| (0xdc00..0xe000).contains(code))?;
        char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00))
    }

    fn hexadecimal(&mut self) -> Option<u32> {
        let mut code = 0;
        for _ in 0..4 {
            code = code * 16 + self.rest.next()?.to_digit(16)?;
        }
        Some(code)
    }

    fn number(&mut self) -> Option<String> {
        let mut number = String::new();
        number.extend(self.rest.next_if_eq(&'-'));
        let whole = self.digits(&mut number);
        if whole == 0 || whole > 1 && number.trim_start_matches('-').starts_with('0') {
            return None;
        }
        if let Some(point) = self.rest.next_if_eq(&'.') {
            number.push(point);
            if self.digits(&mut number) == 0 {
                return None;
            }
        }
        if let Some(exponent) = self.rest.next_if(|c| matches!(c, 'e' | 'E')) {
            number.push(exponent);
            number.extend(self.rest.next_if(|c| matches!(c, '+' | '-')));
            if self.digits(&mut number) == 0 {
                return None;
            }
        }
        if self.rest.peek().is_some_and(char::is_ascii_alphanumeric) {
            return None;
        }
        if self.exact { plain_digits(&number) } else { Some(number) }
    }

    fn digits(&mut self, into: &mut String) -> usize {
        let mut count = 0;
        while let Some(digit) = self.rest.next_if(char::is_ascii_digit) {
            into.push(digit);
            count += 1;
        }
        count
    }
}

fn in_order(members: Vec<(String, Json)>) -> Vec<(String, Json)> {
    let mut members = members;
    // The sort keeps the order of equal keys, and of those the last one stays.
    members.sort_by(|(one, _), (other, _)| one.len().cmp(&other.len()).then_with(|| one.cmp(other)));
    members.reverse();
    members.dedup_by(|(one, _), (other, _)| one == other);
    members.reverse();
    members
}

fn write(value: &Json, key: bool, out: &mut String) {
    match value {
        Json::Plain(plain) => out.push_str(&number(plain, key)),
        Json::Text(text) => quote(text, out),
        Json::List(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                write(item, key, out);
            }
            out.push(']');
        }
        Json::Object(members) => {
            out.push('{');
            for (index, (name, value)) in members.iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                quote(name, out);
                out.push_str(": ");
                write(value, key, out);
            }
            out.push('}');
        }
    }
}

fn number(plain: &str, key: bool) -> String {
    let zero = plain.starts_with('-') && !plain.bytes().any(|b| matches!(b, b'1'..=b'9'));
    let plain = if zero { plain.trim_start_matches('-') } else { plain };
    if key && plain.contains('.') {
        return plain.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    plain.to_owned()
}

fn quote(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if control < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(control))),
            plain => out.push(plain),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_in_one_form() {
        for (text, expected) in [
            ("[1,2]", "[1, 2]"),
            ("{\"bb\":1,\"a\":2,\"a\":3}", "{\"a\": 3, \"bb\": 1}"),
            (" 1.50 ", "1.50"),
            ("1e2", "100"),
            ("\"\\u0041\\n\"", "\"A\\n\""),
            ("{}", "{}"),
        ] {
            assert_eq!(normal(text), Ok(expected.to_owned()), "{text}");
        }
        for text in ["", "{", "[1,]", "01", "nul", "'a'", "{a:1}", "1 2", "\"\\x\""] {
            assert_eq!(
                normal(text).map_err(|error| error.sqlstate),
                Err(SqlState::InvalidTextRepresentation),
                "{text}"
            );
        }
        assert_eq!(key("[1.0, 2.50]"), key("[1, 2.5]"));
        let deep = "[".repeat(5_000);
        assert_eq!(check(&deep).map_err(|error| error.sqlstate), Err(SqlState::StatementTooComplex));
    }
}
