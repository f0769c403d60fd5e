//! The TOML file: one key a setting, no sections.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use toml::de::{DeTable, DeValue};

use super::declaration::{Declaration, Source};
use super::fault::{Fault, Located, Place};
use super::value::Shape;
use super::{Given, nearest};

/// Reads all settings in a text; what is wrong is added to `faults`.
pub(super) fn parse(path: &Path, text: &str, faults: &mut Vec<Located>) -> BTreeMap<&'static str, Given> {
    let place = |span: Option<Range<usize>>| Place::File {
        path: path.to_owned(),
        line: span.map(|span| line_of(text, span.start)),
    };
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let message = error.message().trim().replace('\n', "; ");
        let fault = Located { place: place(error.span()), fault: Fault::Syntax(message) };
        // What follows from the first mistake of a line is no mistake of its own.
        if faults.last().is_none_or(|before| before.place != fault.place) {
            faults.push(fault);
        }
    }
    let mut found = BTreeMap::new();
    for (key, value) in table.get_ref() {
        let name: &str = key.get_ref();
        let place = place(Some(key.span()));
        let Some(declaration) = Declaration::find(name) else {
            let nearest = nearest(name, Source::File).map(|known| known.name.to_owned());
            // What the parser made of a broken line is no key that somebody wrote.
            if errors.is_empty() || nearest.is_some() {
                faults.push(Located { place, fault: Fault::UnknownKey { name: name.to_owned(), nearest } });
            }
            continue;
        };
        if !declaration.sources.contains(&Source::File) {
            let fault = Fault::NotInFile { name: declaration.name, instead: declaration.variable() };
            faults.push(Located { place, fault });
            continue;
        }
        // Nor is what the parser made of a broken value one that somebody wrote.
        let written = key.span().start..=value.span().end;
        if errors.iter().filter_map(|error| error.span()).any(|span| written.contains(&span.start)) {
            continue;
        }
        let (shape, texts) = taken(value.get_ref());
        found.insert(declaration.name, Given { place, shape, texts });
    }
    found
}

fn taken(value: &DeValue<'_>) -> (Shape, Vec<String>) {
    match value {
        DeValue::String(text) => (Shape::Text, vec![text.to_string()]),
        DeValue::Integer(integer) => match i64::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(number) => (Shape::Integer, vec![number.to_string()]),
            Err(_) => (Shape::Integer, vec![integer.as_str().to_owned()]),
        },
        DeValue::Array(items) => {
            let texts: Option<Vec<_>> = items.iter().map(|item| item.get_ref().as_str().map(str::to_owned)).collect();
            texts.map_or((Shape::Other("an array of something else"), Vec::new()), |texts| (Shape::List, texts))
        }
        DeValue::Table(_) => (Shape::Other("a table"), Vec::new()),
        DeValue::Boolean(_) => (Shape::Other("a boolean"), Vec::new()),
        DeValue::Float(_) => (Shape::Other("a float"), Vec::new()),
        DeValue::Datetime(_) => (Shape::Other("a date or time"), Vec::new()),
    }
}

/// The line, from 1, that the byte at `offset` is on.
fn line_of(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}
