//! Keywords, and which words must be quoted to be names.

/// What PostgreSQL reserves, but PRIMARY: no place of our grammar confuses that one with a name, and subclusters are
/// called so. Sorted.
const RESERVED: &[&str] = &[
    "ALL",
    "ANALYSE",
    "ANALYZE",
    "AND",
    "ANY",
    "ARRAY",
    "AS",
    "ASC",
    "ASYMMETRIC",
    "BOTH",
    "CASE",
    "CAST",
    "CHECK",
    "COLLATE",
    "COLUMN",
    "CONSTRAINT",
    "CREATE",
    "CURRENT_CATALOG",
    "CURRENT_DATE",
    "CURRENT_ROLE",
    "CURRENT_TIME",
    "CURRENT_TIMESTAMP",
    "CURRENT_USER",
    "DEFAULT",
    "DEFERRABLE",
    "DESC",
    "DISTINCT",
    "DO",
    "ELSE",
    "END",
    "EXCEPT",
    "FALSE",
    "FETCH",
    "FOR",
    "FOREIGN",
    "FROM",
    "GRANT",
    "GROUP",
    "HAVING",
    "IN",
    "INITIALLY",
    "INTERSECT",
    "INTO",
    "LATERAL",
    "LEADING",
    "LIMIT",
    "LOCALTIME",
    "LOCALTIMESTAMP",
    "NOT",
    "NULL",
    "OFFSET",
    "ON",
    "ONLY",
    "OR",
    "ORDER",
    "PLACING",
    "REFERENCES",
    "RETURNING",
    "SELECT",
    "SESSION_USER",
    "SOME",
    "SYMMETRIC",
    "SYSTEM_USER",
    "TABLE",
    "THEN",
    "TO",
    "TRAILING",
    "TRUE",
    "UNION",
    "UNIQUE",
    "USER",
    "USING",
    "VARIADIC",
    "WHEN",
    "WHERE",
    "WINDOW",
    "WITH",
];

/// Every other word of our grammar. As a name such a word is taken wherever one more token tells what is meant; the
/// printer quotes it always. Sorted.
pub(crate) const KEYWORDS: &[&str] = &[
    "ABORT",
    "ABSOLUTE",
    "ACCOUNT",
    "ADD",
    "ADDRESS",
    "ADMIN",
    "ALTER",
    "ASENSITIVE",
    "AUTHENTICATION",
    "AUTHORIZATION",
    "AVAILABLE",
    "AVAILABLE_ROLES",
    "BACKWARD",
    "BALANCE",
    "BEGIN",
    "BINARY",
    "BY",
    "CALL",
    "CANCEL",
    "CASCADE",
    "CATALOG",
    "CHAIN",
    "CHARACTERISTICS",
    "CLEAR",
    "CLOSE",
    "COMMIT",
    "COMMITTED",
    "CONSTRAINTS",
    "COPY",
    "CURRENT",
    "CURSOR",
    "DATABASE",
    "DEALLOCATE",
    "DECLARE",
    "DISABLE",
    "DISABLED",
    "DISCARD",
    "DRAIN",
    "DROP",
    "ENABLE",
    "ENABLED",
    "ENABLED_ROLES",
    "ENCRYPTED",
    "EPHEMERAL",
    "EXECUTE",
    "EXISTS",
    "EXPIRE",
    "EXPORT",
    "FALLTHROUGH",
    "FAULT",
    "FILTER",
    "FIRST",
    "FORWARD",
    "GRACEPERIOD",
    "HOLD",
    "HOST",
    "IDENTIFIED",
    "IDLESESSIONTIMEOUT",
    "IF",
    "INSENSITIVE",
    "INTERFACE",
    "IS",
    "ISOLATION",
    "LAST",
    "LEVEL",
    "LISTEN",
    "LOAD",
    "LOCAL",
    "LOCK",
    "MAPPING",
    "MAXCONNECTIONS",
    "MEMORYCAP",
    "METHOD",
    "MOVE",
    "NAMES",
    "NETWORK",
    "NEXT",
    "NO",
    "NODE",
    "NONE",
    "NOTIFY",
    "OPTION",
    "OPTIONS",
    "PARAMETER",
    "PASSWORD",
    "PERMANENT",
    "PLANS",
    "POLICY",
    "POOL",
    "PORT",
    "PREPARE",
    "PRIMARY",
    "PRIOR",
    "PRIORITY",
    "PRIVILEGES",
    "PROFILE",
    "PUBLIC",
    "READ",
    "RELATIVE",
    "RELEASE",
    "REMOVE",
    "RENAME",
    "REPEATABLE",
    "REPLACE",
    "RESET",
    "RESOURCE",
    "RESTORE",
    "REVOKE",
    "ROLE",
    "ROLES",
    "ROLLBACK",
    "ROUTE",
    "ROUTING",
    "RULE",
    "RUNTIMECAP",
    "SAVEPOINT",
    "SCHEMA",
    "SCROLL",
    "SEARCH_PATH",
    "SECONDARY",
    "SECURITY_ALGORITHM",
    "SEQUENCES",
    "SERIALIZABLE",
    "SERVER",
    "SESSION",
    "SET",
    "SHOW",
    "STANDBY",
    "START",
    "SUBCLUSTER",
    "SUBNET",
    "TEMP",
    "TEMPORARY",
    "TEMPSPACECAP",
    "TIME",
    "TLS",
    "TRANSACTION",
    "UNCOMMITTED",
    "UNLISTEN",
    "UNLOCK",
    "UPSTREAM",
    "USAGE",
    "VERSION",
    "WITHIN",
    "WITHOUT",
    "WORK",
    "WORKLOAD",
    "WORKLOADS",
    "WRITE",
    "ZONE",
];

/// The words that begin a statement of SQL's own; sqlparser reads those, but a near miss is ours to notice.
pub(crate) const SQL_STATEMENTS: &[&str] =
    &["COPY", "DELETE", "EXPLAIN", "INSERT", "SELECT", "TABLE", "TRUNCATE", "UPDATE", "VACUUM", "VALUES", "WITH"];

/// The longest word of both lists fits in this many bytes.
const WORD_BYTES_MAX: usize = 24;

fn is_in(list: &[&str], word: &str) -> bool {
    let mut buffer = [0; WORD_BYTES_MAX];
    let Some(upper) = buffer.get_mut(..word.len()) else { return false };
    upper.copy_from_slice(word.as_bytes());
    upper.make_ascii_uppercase();
    list.binary_search_by(|candidate| candidate.as_bytes().cmp(upper)).is_ok()
}

/// Whether a bare word can never be a name.
pub(crate) fn is_reserved(word: &str) -> bool {
    is_in(RESERVED, word)
}

/// Whether a word has a meaning somewhere in the grammar, reserved or not.
pub(crate) fn is_keyword(word: &str) -> bool {
    is_in(RESERVED, word) || is_in(KEYWORDS, word)
}

/// The word of `expected` that somebody who typed `typed` probably meant.
pub(crate) fn nearest<'a>(typed: &str, expected: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    /// No word of ours is longer; comparing takes time by the product of the lengths.
    const TYPED_BYTES_MAX: usize = 64;
    if typed.len() > TYPED_BYTES_MAX {
        return None;
    }
    let typed = typed.to_ascii_uppercase();
    let allowed = (typed.len() / 3).clamp(1, 3);
    expected
        .into_iter()
        .map(|word| (strsim::damerau_levenshtein(&typed, &word.to_ascii_uppercase()), word))
        .filter(|(distance, word)| *distance > 0 && *distance <= allowed && *distance < word.len().min(typed.len()))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every word in capitals that the parser's source compares with.
    fn words_of_the_parser() -> Vec<&'static str> {
        let sources = [
            include_str!("parser.rs"),
            include_str!("parser/address.rs"),
            include_str!("parser/authentication.rs"),
            include_str!("parser/call.rs"),
            include_str!("parser/cursor.rs"),
            include_str!("parser/grant.rs"),
            include_str!("parser/group.rs"),
            include_str!("parser/portal.rs"),
            include_str!("parser/rule.rs"),
            include_str!("parser/session.rs"),
            include_str!("parser/topology.rs"),
            include_str!("parser/transaction.rs"),
            include_str!("parser/user.rs"),
        ];
        let is_word =
            |text: &&str| text.len() > 1 && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
        sources.iter().flat_map(|source| source.split('"')).filter(is_word).collect()
    }

    #[test]
    fn lists_are_sorted_and_apart() {
        for list in [RESERVED, KEYWORDS] {
            assert!(list.is_sorted());
            assert!(list.iter().all(|word| word.len() <= WORD_BYTES_MAX));
        }
        assert!(KEYWORDS.iter().all(|word| !is_reserved(word)));
        assert!(is_reserved("wItH") && !is_keyword("workloads_") && !is_keyword(""));
    }

    #[test]
    fn every_word_of_the_grammar_is_listed_and_every_listed_one_is_used() {
        let used = words_of_the_parser();
        assert!(used.len() > 100);
        for word in &used {
            assert!(is_keyword(word), "{word} is missing");
        }
        for word in KEYWORDS {
            assert!(used.contains(word), "{word} is not used");
        }
    }

    #[test]
    fn near_misses() {
        let expected = ["ROUTE", "REMOVE", "SET", "ADD"];
        assert_eq!(nearest("ROUTTE", expected), Some("ROUTE"));
        assert_eq!(nearest("routr", expected), Some("ROUTE"));
        assert_eq!(nearest("SAT", expected), Some("SET"));
        assert_eq!(nearest("nothing", expected), None);
        assert_eq!(nearest("to", expected), None);
        assert_eq!(nearest(&"x".repeat(100_000), expected), None);
    }
}
