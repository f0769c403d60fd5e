//! JSON made of values.

use super::Value;
use crate::error::SqlState;
use crate::sql::error::QueryError;

/// A value as text; none for NULL.
pub(super) fn shown(value: &Value) -> Option<String> {
    match value {
        Value::Null | Value::Texts(_) | Value::Numbers(_) => None,
        Value::Bool(value) => Some(if *value { "t" } else { "f" }.to_owned()),
        Value::Int(value) => Some(value.to_string()),
        Value::Number(text) | Value::Text(text) => Some(text.clone()),
    }
}

/// `json_build_object` of keys and values in turn.
pub(super) fn object(arguments: &[Value], binary: bool) -> Result<String, QueryError> {
    let mistaken = |message: &str| Err(QueryError::new(SqlState::InvalidParameterValue, message));
    let mut members = Vec::new();
    for pair in arguments.chunks(2) {
        let [key, value] = pair else { return mistaken("argument list must have even number of elements") };
        let Some(key) = shown(key) else { return mistaken("null value not allowed for object key") };
        members.push((key, written(value)));
    }
    if !binary {
        let members = members.iter().map(|(key, value)| format!("{} : {value}", quoted(key)));
        return Ok(format!("{{{}}}", members.collect::<Vec<_>>().join(", ")));
    }
    // As jsonb keeps objects: the last of equal keys, in the order of their length.
    let mut kept: Vec<(String, String)> = Vec::new();
    for (key, value) in members {
        kept.retain(|(own, _)| *own != key);
        kept.push((key, value));
    }
    kept.sort_by(|(one, _), (other, _)| one.len().cmp(&other.len()).then_with(|| one.cmp(other)));
    let members = kept.iter().map(|(key, value)| format!("{}: {value}", quoted(key)));
    crate::sql::json_text::normal(&format!("{{{}}}", members.collect::<Vec<_>>().join(", ")))
}

fn written(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Number(text) if text.contains(|c: char| c.is_ascii_digit()) => text.clone(),
        Value::Number(text) | Value::Text(text) => quoted(text),
        Value::Numbers(items) => {
            let items = items.iter().map(|item| item.as_deref().unwrap_or("null"));
            format!("[{}]", items.collect::<Vec<_>>().join(","))
        }
        Value::Texts(items) => {
            let items = items.iter().map(|item| item.as_ref().map_or_else(|| "null".to_owned(), |item| quoted(item)));
            format!("[{}]", items.collect::<Vec<_>>().join(","))
        }
    }
}

fn quoted(text: &str) -> String {
    let mut shown = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => shown.push_str("\\\""),
            '\\' => shown.push_str("\\\\"),
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            control if control.is_control() => shown.push_str(&format!("\\u{:04x}", u32::from(control))),
            plain => shown.push(plain),
        }
    }
    shown.push('"');
    shown
}
