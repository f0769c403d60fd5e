//! Which statements of a string are ours, where the rest is another server's: only their first words, and the schemas
//! that they name, are looked at.

use super::lexer::{Kind, Lexer, Token};

/// The schemas whose tables are ours when a statement names them.
const SCHEMAS: [&str; 5] = ["v_catalog", "v_monitor", "v_internal", "hologres", "switchyard"];
/// What begins a statement that only reads.
const READS: [&str; 6] = ["SELECT", "WITH", "TABLE", "VALUES", "EXPLAIN", "CALL"];
/// Our kinds of objects that no other server has.
const KINDS: [&[&str]; 9] = [
    &["NETWORK", "ADDRESS"],
    &["NETWORK", "INTERFACE"],
    &["LOAD", "BALANCE", "GROUP"],
    &["ROUTING", "RULE"],
    &["SUBCLUSTER"],
    &["NODE"],
    &["FAULT", "GROUP"],
    &["SUBNET"],
    &["AUTHENTICATION"],
];
/// What is granted that no other server has.
const GRANTED: [&[&str]; 3] = [&["USAGE", "ON", "WORKLOAD"], &["USAGE", "ON", "ROUTING", "RULE"], &["AUTHENTICATION"]];
/// What only our sessions show.
const SHOWN: [&[&str]; 6] = [
    &["WORKLOAD"],
    &["AVAILABLE", "WORKLOADS"],
    &["AVAILABLE", "ROLES"],
    &["ENABLED", "ROLES"],
    &["AVAILABLE_ROLES"],
    &["ENABLED_ROLES"],
];

/// Whose a statement is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whose {
    /// The other server's.
    Theirs,
    /// Ours.
    Ours,
    /// Whoever has the first of these roles: SET ROLE.
    Role(String),
    /// Both sides': SET ROLE NONE.
    Both,
}

/// Statements that stand together and are of one side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// Whose.
    pub whose: Whose,
    /// Their text, with the semicolons.
    pub text: String,
}

/// What a string of statements consists of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cuts {
    /// The statements in order. What is the other server's is one piece until one of ours comes.
    pub pieces: Vec<Cut>,
    /// The names with a point in them that the other server's statements set.
    pub custom: Vec<String>,
}

impl Cuts {
    /// Whether nothing is ours.
    pub fn is_theirs(&self) -> bool {
        self.pieces.iter().all(|piece| piece.whose == Whose::Theirs)
    }
}

/// Cuts a string of statements. What cannot be cut, as a text that does not end, is the other server's as a whole: it says
/// what is wrong.
pub fn cut(text: &str) -> Cuts {
    let mut cuts = Cuts::default();
    let mut lexer = Lexer::new(text);
    let mut tokens = Vec::new();
    let mut begin = 0;
    loop {
        let Ok(end) = lexer.statement(&mut tokens) else {
            let whole = Cut { whose: Whose::Theirs, text: text.to_owned() };
            return Cuts { pieces: vec![whole], custom: Vec::new() };
        };
        let words = Words { text, tokens: &tokens };
        let whose = words.whose();
        cuts.custom.extend(words.custom_setting());
        let piece = text.get(begin..end.end()).unwrap_or_default();
        begin = end.end();
        match cuts.pieces.last_mut() {
            Some(last) if last.whose == Whose::Theirs && whose == Whose::Theirs => last.text.push_str(piece),
            // What is empty joins whatever is before it.
            Some(last) if tokens.is_empty() => last.text.push_str(piece),
            _ => cuts.pieces.push(Cut { whose, text: piece.to_owned() }),
        }
        if end.kind == Kind::End {
            return cuts;
        }
    }
}

/// The tokens of one statement.
struct Words<'a> {
    text: &'a str,
    tokens: &'a [Token],
}

impl<'a> Words<'a> {
    fn whose(&self) -> Whose {
        let Some(first) = self.word(0) else { return Whose::Theirs };
        let is = |word: &str| first.eq_ignore_ascii_case(word);
        let ours = if is("SET") {
            if self.at(1, &["ROLE"]) {
                return self.role();
            }
            self.at(1, &["SESSION", "WORKLOAD"])
        } else if is("SHOW") {
            SHOWN.iter().any(|shown| self.at(1, shown) && self.tokens.len() == shown.len() + 1)
        } else if is("CREATE") || is("ALTER") || is("DROP") {
            KINDS.iter().any(|kind| self.at(1, kind))
        } else if is("GRANT") || is("REVOKE") {
            GRANTED.iter().any(|granted| self.at(1, granted))
        } else {
            READS.iter().any(|read| is(read)) && self.names_our_schema()
        };
        if ours { Whose::Ours } else { Whose::Theirs }
    }

    fn role(&self) -> Whose {
        let bare = |words: &[&str]| words.iter().any(|word| self.at(2, &[word]));
        if self.tokens.len() == 3 && bare(&["NONE"]) {
            return Whose::Both;
        }
        if bare(&["ALL", "DEFAULT"]) {
            return Whose::Ours;
        }
        self.name(2).map_or(Whose::Theirs, Whose::Role)
    }

    /// The name in `SET [SESSION | LOCAL] name.name`.
    fn custom_setting(&self) -> Option<String> {
        self.word(0).filter(|word| word.eq_ignore_ascii_case("SET"))?;
        let at = if self.at(1, &["SESSION"]) || self.at(1, &["LOCAL"]) { 2 } else { 1 };
        let (first, second) = (self.name(at)?, self.name(at + 2)?);
        self.is_point(at + 1).then(|| format!("{first}.{second}"))
    }

    fn names_our_schema(&self) -> bool {
        (0..self.tokens.len()).any(|at| {
            self.is_point(at + 1)
                // Not behind a point: that would be a column or a table of something else.
                && (at == 0 || !self.is_point(at - 1))
                && self.name(at).is_some_and(|name| SCHEMAS.contains(&name.to_lowercase().as_str()))
        })
    }

    fn is_point(&self, at: usize) -> bool {
        self.tokens.get(at).is_some_and(|token| token.kind == Kind::Symbol && token.text(self.text) == ".")
    }

    /// The bare word there.
    fn word(&self, at: usize) -> Option<&'a str> {
        let token = self.tokens.get(at).filter(|token| token.kind == Kind::Word)?;
        Some(token.text(self.text))
    }

    /// The name there, as it is written in the catalog.
    fn name(&self, at: usize) -> Option<String> {
        let token = self.tokens.get(at)?;
        match token.kind {
            Kind::Word => Some(token.text(self.text).to_owned()),
            Kind::Quoted => {
                let inner = token.text(self.text).strip_prefix('"')?.strip_suffix('"')?;
                Some(inner.replace("\"\"", "\""))
            }
            _ => None,
        }
    }

    fn at(&self, from: usize, words: &[&str]) -> bool {
        words.iter().zip(from..).all(|(word, at)| self.word(at).is_some_and(|own| own.eq_ignore_ascii_case(word)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(text: &str) -> Vec<(Whose, String)> {
        cut(text).pieces.into_iter().map(|piece| (piece.whose, piece.text)).collect()
    }

    #[test]
    fn what_is_ours_is_told_from_what_is_not() {
        for ours in [
            "SET SESSION WORKLOAD reporting",
            "set session workload to none;",
            "SHOW WORKLOAD",
            "SHOW available workloads",
            "/* a comment */ CREATE SUBCLUSTER s",
            "ALTER ROUTING RULE FOR WORKLOAD w SET PRIORITY TO 3",
            "GRANT USAGE ON WORKLOAD w TO mira",
            "SELECT node_name FROM v_catalog.nodes",
            "WITH n AS (SELECT * FROM \"switchyard\".settings) TABLE n",
            "SELECT switchyard.explain_route('10.0.0.1')",
            "SET ROLE ALL",
        ] {
            assert!(cut(ours).pieces.iter().all(|piece| piece.whose == Whose::Ours), "{ours}");
        }
        for theirs in [
            "",
            "SELECT 1",
            "SELECT 'v_catalog.nodes'",
            "SELECT a.switchyard.b FROM a",
            "SELECT switchyard FROM t",
            "SHOW search_path",
            "SHOW workload.x",
            "SET search_path TO switchyard",
            "CREATE USER mira",
            "GRANT SELECT ON t TO mira",
            "GRANT USAGE ON SCHEMA s TO mira",
            "INSERT INTO switchyard.t VALUES (1)",
            "SELECT 'not ended; SHOW WORKLOAD",
            "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; END; SELECT 2",
        ] {
            assert!(cut(theirs).is_theirs(), "{theirs}");
        }
    }

    #[test]
    fn a_mixed_string_is_cut_in_order() {
        assert_eq!(
            pieces("SELECT 1; SELECT 2; SHOW WORKLOAD; ; SELECT 'a;b';"),
            [
                (Whose::Theirs, "SELECT 1; SELECT 2;".to_owned()),
                (Whose::Ours, " SHOW WORKLOAD; ;".to_owned()),
                (Whose::Theirs, " SELECT 'a;b';".to_owned()),
            ]
        );
        assert_eq!(pieces("SET ROLE \"A b\""), [(Whose::Role("A b".to_owned()), "SET ROLE \"A b\"".to_owned())]);
        assert_eq!(pieces("SET ROLE NONE"), [(Whose::Both, "SET ROLE NONE".to_owned())]);
    }

    #[test]
    fn settings_with_a_point_are_told() {
        assert_eq!(cut("SET my.name TO 1; SET LOCAL a.b = 2; SET c = 3").custom, ["my.name", "a.b"]);
    }
}
