//! Whether a string of statements may have one in it that is ours, at the cost of a look at its letters.

/// The first words of statements that may be ours, whatever follows.
const FIRST: [&[u8]; 7] = [b"SET", b"SHOW", b"CREATE", b"ALTER", b"DROP", b"GRANT", b"REVOKE"];
/// The last letters of our schemas' names.
const SCHEMAS: [&[u8]; 5] = [b"v_catalog", b"v_monitor", b"v_internal", b"hologres", b"switchyard"];

/// Whether it has to be looked at by somebody who knows statements. That it may be ours is said more often than it is.
pub(crate) fn may_be_ours(text: &[u8]) -> bool {
    let mut begins = true;
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        if begins {
            if byte.is_ascii_whitespace() || byte == b';' || byte == b'(' {
                at += 1;
                continue;
            }
            let rest = text.get(at..).unwrap_or_default();
            // A comment may hide what begins behind it.
            if byte == b'-' || byte == b'/' || FIRST.iter().any(|word| begins_with(rest, word)) {
                return true;
            }
            begins = false;
        }
        match byte {
            b';' => begins = true,
            b'.' if names_our_schema(text.get(..at).unwrap_or_default()) => return true,
            _ => {}
        }
        at += 1;
    }
    false
}

/// Words of what stays on a server beyond its transaction, and whose tag does not tell.
const LASTING: [&[u8]; 5] = [b" temp ", b" temporary ", b"pg_temp", b"advisory_lock", b"set_config"];

/// Whether a text may do what stays beyond its transaction, as `SELECT pg_advisory_lock(1)` does.
pub(crate) fn may_last(text: &[u8]) -> bool {
    text.iter().enumerate().any(|(at, byte)| {
        // The letters that they begin with.
        matches!(byte, b' ' | b'p' | b'P' | b'a' | b'A' | b's' | b'S')
            && LASTING.iter().any(|word| begins_with(text.get(at..).unwrap_or_default(), word))
    })
}

fn begins_with(text: &[u8], word: &[u8]) -> bool {
    text.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
}

/// Whether a text that stands before a point ends with one of our schemas.
fn names_our_schema(before: &[u8]) -> bool {
    let before = before.trim_ascii_end();
    let before = before.strip_suffix(b"\"").unwrap_or(before);
    SCHEMAS.iter().any(|schema| {
        let start = before.len().checked_sub(schema.len());
        start.and_then(|start| before.get(start..)).is_some_and(|end| end.eq_ignore_ascii_case(schema))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_be_ours_is_looked_at() {
        for ours in [
            "SET SESSION WORKLOAD x",
            "  show workload",
            "SELECT 1; SHOW WORKLOAD",
            "/* a */ SHOW WORKLOAD",
            "-- a\nSHOW WORKLOAD",
            "SELECT * FROM v_catalog.nodes",
            "SELECT * FROM \"V_Monitor\" . sessions",
            "(SELECT * FROM switchyard.settings)",
            "create subcluster x",
        ] {
            assert!(may_be_ours(ours.as_bytes()), "{ours}");
        }
        for theirs in [
            "",
            "SELECT abalance FROM pgbench_accounts WHERE aid = 1;",
            "SELECT a.b FROM c.d",
            "INSERT INTO t VALUES (1.5)",
            "BEGIN",
            "END;",
            "UPDATE t SET a = 1",
            "SELECT hologres",
        ] {
            assert!(!may_be_ours(theirs.as_bytes()), "{theirs}");
        }
    }

    #[test]
    fn what_stays_on_a_server_is_suspected() {
        for lasts in
            ["CREATE TEMP TABLE a AS SELECT 1", "select PG_advisory_lock(5)", "SELECT set_config('a.b','c',false)"]
        {
            assert!(may_last(lasts.as_bytes()), "{lasts}");
        }
        for passes in ["SELECT temperature FROM t", "SELECT abalance FROM pgbench_accounts WHERE aid = 1", ""] {
            assert!(!may_last(passes.as_bytes()), "{passes}");
        }
    }
}
