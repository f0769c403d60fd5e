//! What in a statement must not be shown.

use std::borrow::Cow;

/// Whether the value of a parameter of this name is secret.
pub(crate) fn is_secret(parameter: &str) -> bool {
    let name = parameter.to_ascii_lowercase();
    ["password", "passwd", "secret"].iter().any(|part| name.contains(part))
}

/// Whether a secret may follow this word.
pub(crate) fn announces(word: &str) -> bool {
    ["IDENTIFIED", "UPSTREAM"].iter().any(|known| word.eq_ignore_ascii_case(known))
}

/// A text with what may be a password in front of a URL's host replaced: `postgresql://user:password@host`. Where the
/// host is cannot be told from a password that is not escaped, so all up to the last `@` counts.
pub fn mask_login(text: &str) -> Cow<'_, str> {
    const SCHEME_END: &str = "://";
    let masked = || {
        let start = text.find(SCHEME_END)? + SCHEME_END.len();
        let (before, rest) = text.split_at_checked(start)?;
        let (login, host) = rest.rsplit_once('@')?;
        let user = login.split_once(':')?.0;
        Some(format!("{before}{user}:********@{host}"))
    };
    masked().map_or(Cow::Borrowed(text), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_of_a_url_is_masked_and_nothing_else() {
        for (text, shown) in [
            ("postgresql://u:pw@h:5432/d", "postgresql://u:********@h:5432/d"),
            ("postgresql://u:p@w/x@h", "postgresql://u:********@h"),
            ("postgresql://u@h", "postgresql://u@h"),
            ("postgresql://h:5432/d", "postgresql://h:5432/d"),
            ("a:b@c", "a:b@c"),
            ("", ""),
        ] {
            assert_eq!(mask_login(text), shown);
        }
    }
}
