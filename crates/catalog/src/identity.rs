//! Which users the holder of a certificate may be: `identity_map` of an authentication record of method `tls`.

use thiserror::Error;

use crate::entity::Authentication;
use crate::name::Name;

/// The parameter of an authentication record that holds the map.
pub const IDENTITY_MAP: &str = "identity_map";

/// A text that is no map.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum IdentityMapError {
    /// There is nothing in it.
    #[error("the map is empty")]
    Empty,
    /// A part is no `identity=user`.
    #[error("\"{0}\" is not of the form identity=user")]
    Pair(String),
    /// A part has more than one star on a side, or one for the user only.
    #[error("\"{0}\" may have one star for the identity, and then one for the user")]
    Star(String),
}

/// `identity=user`, with commas between. One star in an identity stands for any text, and one in the user for the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentityMap(Vec<(String, String)>);

impl IdentityMap {
    /// Reads a map.
    ///
    /// # Errors
    /// When the text is none.
    pub fn parse(text: &str) -> Result<Self, IdentityMapError> {
        if text.trim().is_empty() {
            return Err(IdentityMapError::Empty);
        }
        text.split(',').map(pair).collect::<Result<_, _>>().map(Self)
    }

    /// Whether the holder of this identity may be that user.
    pub fn admits(&self, identity: &str, user: &Name) -> bool {
        self.0.iter().any(|(pattern, mapped)| {
            let middle = match pattern.split_once('*') {
                None if pattern == identity => "",
                None => return false,
                Some((head, tail)) => {
                    let middle = identity.strip_prefix(head).and_then(|rest| rest.strip_suffix(tail));
                    let Some(middle) = middle else { return false };
                    middle
                }
            };
            is_name(&mapped.replacen('*', middle, 1), user)
        })
    }
}

impl Authentication {
    /// The first identity of a certificate whose holder this record lets in as a user: by the record's map, or without
    /// one whatever is the user's name.
    pub fn admits<'a>(&self, identities: &'a [String], user: &Name) -> Option<&'a str> {
        let map =
            self.parameters.iter().find(|(name, _)| name == IDENTITY_MAP).map(|(_, text)| IdentityMap::parse(text));
        let admits = |identity: &str| match &map {
            None => is_name(identity, user),
            Some(Ok(map)) => map.admits(identity, user),
            // It was read before it was kept: this one is damaged, and lets nobody in.
            Some(Err(_)) => false,
        };
        identities.iter().map(String::as_str).find(|identity| admits(identity))
    }
}

fn is_name(text: &str, user: &Name) -> bool {
    Name::parse(text).is_ok_and(|name| name == *user)
}

fn pair(text: &str) -> Result<(String, String), IdentityMapError> {
    // An identity may be a URI, and have the sign in it.
    let parts = text.rsplit_once('=').map(|(identity, user)| (identity.trim(), user.trim()));
    let (identity, user) = parts
        .filter(|(identity, user)| !identity.is_empty() && !user.is_empty())
        .ok_or_else(|| IdentityMapError::Pair(text.trim().to_owned()))?;
    let stars = |text: &str| text.matches('*').count();
    if stars(identity) > 1 || stars(user) > stars(identity) {
        return Err(IdentityMapError::Star(text.trim().to_owned()));
    }
    Ok((identity.to_owned(), user.to_owned()))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may")]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::parse(text).unwrap()
    }

    #[test]
    fn maps_name_users() {
        let map = IdentityMap::parse("ops.example.org=dbadmin, *@example.org=*,spiffe://a?b=c=mira").unwrap();
        for (identity, user, expected) in [
            ("ops.example.org", "dbadmin", true),
            ("ops.example.org", "DBADMIN", true),
            ("ops.example.org", "mira", false),
            ("Ops.example.org", "dbadmin", false),
            ("mira@example.org", "mira", true),
            ("mira@example.org", "dbadmin", false),
            ("mira@example.org.evil", "mira", false),
            ("@example.org", "mira", false),
            ("spiffe://a?b=c", "mira", true),
            ("mira", "mira", false),
        ] {
            assert_eq!(map.admits(identity, &name(user)), expected, "{identity} as {user}");
        }
        // What the star stands for does not overlap with what is around it.
        assert!(!IdentityMap::parse("ab*ba=x").unwrap().admits("aba", &name("x")));
    }

    #[test]
    fn broken_maps_are_refused() {
        let refused = |text: &str| IdentityMap::parse(text).unwrap_err();
        assert_eq!(refused(" "), IdentityMapError::Empty);
        for broken in ["x", "x=", "=x", "a=b,", "a=b,,c=d"] {
            assert!(matches!(refused(broken), IdentityMapError::Pair(_)), "{broken}");
        }
        for broken in ["**=x", "a=*", "*=**"] {
            assert!(matches!(refused(broken), IdentityMapError::Star(_)), "{broken}");
        }
    }
}
