//! Arrays of one dimension, as clients send them.

use switchyard_engine::{ClientError, PgType, Scalar, SqlState};

/// The type of an array's elements; none when it is no array.
pub(super) fn element(kind: PgType) -> Option<PgType> {
    Some(match kind {
        PgType::TextArray => PgType::Text,
        PgType::NameArray => PgType::Name,
        PgType::CharArray => PgType::Char,
        PgType::BoolArray => PgType::Bool,
        PgType::Int2Array | PgType::Int2Vector => PgType::Int2,
        PgType::Int4Array => PgType::Int4,
        PgType::Int8Array => PgType::Int8,
        PgType::OidArray | PgType::OidVector => PgType::Oid,
        _ => return None,
    })
}

/// The elements of an array's text, `{a,"b c",NULL}`, or of a vector's, `1 2`; none when it is neither.
pub(super) fn split(text: &str, kind: PgType) -> Option<Vec<Option<String>>> {
    if matches!(kind, PgType::Int2Vector | PgType::OidVector) {
        return Some(text.split_whitespace().map(|item| Some(item.to_owned())).collect());
    }
    let inner = text.trim().strip_prefix('{')?.strip_suffix('}')?;
    let mut items = Vec::new();
    if inner.trim().is_empty() {
        return Some(items);
    }
    let mut characters = inner.chars().peekable();
    loop {
        while characters.next_if(|c| c.is_whitespace()).is_some() {}
        items.push(if characters.next_if_eq(&'"').is_some() {
            Some(quoted(&mut characters)?)
        } else {
            bare(&mut characters)?
        });
        while characters.next_if(|c| c.is_whitespace()).is_some() {}
        match characters.next() {
            None => return Some(items),
            Some(',') => {}
            Some(_) => return None,
        }
    }
}

type Characters<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn quoted(characters: &mut Characters<'_>) -> Option<String> {
    let mut item = String::new();
    loop {
        match characters.next()? {
            '"' => return Some(item),
            '\\' => item.push(characters.next()?),
            other => item.push(other),
        }
    }
}

/// Nested arrays are not taken.
fn bare(characters: &mut Characters<'_>) -> Option<Option<String>> {
    let mut item = String::new();
    while let Some(character) = characters.next_if(|c| *c != ',') {
        match character {
            '{' | '}' | '"' => return None,
            '\\' => item.push(characters.next()?),
            other => item.push(other),
        }
    }
    let item = item.trim_end();
    if item.is_empty() {
        return None;
    }
    Some((!item.eq_ignore_ascii_case("null")).then(|| item.to_owned()))
}

/// The elements of a binary array; none when it is malformed or has more than one dimension.
pub(super) fn parts(bytes: &[u8]) -> Option<Vec<Option<&[u8]>>> {
    let (dimensions, rest) = number(bytes)?;
    let (_has_nulls, rest) = number(rest)?;
    let (_element, mut rest) = number(rest)?;
    let mut items = Vec::new();
    if dimensions == 0 {
        return rest.is_empty().then_some(items);
    }
    if dimensions != 1 {
        return None;
    }
    let count;
    (count, rest) = number(rest)?;
    (_, rest) = number(rest)?;
    for _ in 0..count {
        let length;
        (length, rest) = number(rest)?;
        if length == -1 {
            items.push(None);
            continue;
        }
        let item;
        (item, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
        items.push(Some(item));
    }
    rest.is_empty().then_some(items)
}

fn number(bytes: &[u8]) -> Option<(i32, &[u8])> {
    let (first, rest) = bytes.split_first_chunk::<4>()?;
    Some((i32::from_be_bytes(*first), rest))
}

/// Elements that were read, as one value.
pub(super) fn gather(items: Vec<Scalar>, element: PgType) -> Result<Scalar, ClientError> {
    if matches!(element, PgType::Text | PgType::Name | PgType::Char | PgType::Bool) {
        let texts = items.into_iter().map(|item| match item {
            Scalar::Text(text) => Some(text),
            Scalar::Bool(value) => Some(if value { "t" } else { "f" }.to_owned()),
            _ => None,
        });
        return Ok(Scalar::Texts(texts.collect()));
    }
    let ints = items.into_iter().map(|item| match item {
        Scalar::Int(value) => Ok(Some(value)),
        Scalar::Null => Ok(None),
        _ => Err(ClientError::new(SqlState::InternalError, "an array element has another type than its array")),
    });
    Ok(Scalar::Ints(ints.collect::<Result<_, _>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_arrays_are_split() {
        let some = |text: &str| Some(text.to_owned());
        for (text, expected) in [
            ("{}", Some(vec![])),
            ("{a, b}", Some(vec![some("a"), some("b")])),
            (r#"{"a,b","c\"d",NULL,"null"}"#, Some(vec![some("a,b"), some("c\"d"), None, some("null")])),
            ("a,b", None),
            ("{a,}", None),
            ("{{a}}", None),
            ("{\"a}", None),
        ] {
            assert_eq!(split(text, PgType::TextArray), expected, "{text}");
        }
        assert_eq!(split("1 2", PgType::Int2Vector), Some(vec![some("1"), some("2")]));
    }

    #[test]
    fn elements_are_of_one_type() {
        let gathered = gather(vec![Scalar::Int(1), Scalar::Bool(true)], PgType::Int4).map_err(|error| error.message);
        assert_eq!(gathered, Err("an array element has another type than its array".to_owned()));
    }

    #[test]
    fn binary_arrays_are_checked() {
        let array = |numbers: &[i32]| numbers.iter().flat_map(|number| number.to_be_bytes()).collect::<Vec<u8>>();
        let two = array(&[1, 0, 23, 2, 1, 4, 7, -1]);
        assert_eq!(parts(&two), Some(vec![Some(&7i32.to_be_bytes()[..]), None]));
        assert_eq!(parts(&array(&[0, 0, 23])), Some(vec![]));
        for wrong in [
            array(&[1, 0, 23, 2, 1, 4, 7]),
            array(&[2, 0, 23, 1, 1, 4, 7]),
            array(&[1, 0, 23, 1, 1, -5]),
            two.iter().take(9).copied().collect(),
        ] {
            assert_eq!(parts(&wrong), None);
        }
    }
}
