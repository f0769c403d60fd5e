//! Long and deep texts: an answer in reasonable time, and trees that a thread's usual stack can walk.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::thread;
use std::time::Instant;

use switchyard_dialect::{ErrorKind, ParseLimits, parse, parse_within};

/// Without optimisation the slowest of these takes some 30 s on a busy machine; quadratic ones would take hours.
const SECONDS_MAX: u64 = 200;

fn kind(text: &str) -> Option<ErrorKind> {
    let start = Instant::now();
    let kind = parse(text).err().map(|error| {
        assert!(error.position >= 1 && error.position <= text.chars().count() + 1);
        assert!(error.message.len() < 500, "{}", error.message.len());
        error.kind
    });
    let shown: String = text.chars().take(40).collect();
    assert!(start.elapsed().as_secs() < SECONDS_MAX, "{shown}");
    kind
}

#[test]
fn a_megabyte_of_anything() {
    const SIZE: usize = 1_000_000;
    let repeated = |unit: &str| unit.repeat(SIZE / unit.len());
    assert_eq!(kind(&repeated("(")), Some(ErrorKind::TooComplex));
    assert_eq!(kind(&repeated(";")), None);
    assert_eq!(kind(&repeated(" ;\n")), None);
    assert_eq!(kind(&repeated("/**/")), None);
    for unit in ["a,", "/*"] {
        assert!(kind(&repeated(unit)).is_some(), "{unit}");
    }
    for unit in ["'", "\"", "$", "$a", "$a$", "$a$$b$", "a", "1", "E'\\", "é", "-- \n)", "\\", "\0", ".", "a."] {
        assert!(kind(&unit.repeat(100_000)).is_some(), "{unit}");
    }
    for start in ["DROP ROLE a", "SET x TO a", "CREATE USER u SEARCH_PATH a", "CALL f('a'", "SHOW SESSION a"] {
        kind(&format!("{start}{}", repeated(",a")));
    }
    assert_eq!(kind(&format!("{}{}", "/*".repeat(SIZE / 4), "*/".repeat(SIZE / 4))), None);
    assert_eq!(kind(&format!("DROP ROLE {}a", repeated("a,"))), None);
    assert_eq!(kind(&format!("CREATE NODE n 'a' PORT {}", repeated("9"))), Some(ErrorKind::NumberOutOfRange));
    assert_eq!(kind(&format!("CREATE ROLE {}", repeated("a"))), Some(ErrorKind::NameTooLong));
    assert_eq!(kind(&format!("SELECT {}1", "a,".repeat(100_000))), None);
}

#[test]
fn nested_calls_do_not_double_the_time_for_ever() {
    let nested = |unit: &str, count: usize| unit.repeat(count);
    assert_eq!(kind(&format!("SELECT {}1{}", nested("f(", 8), nested(")", 8))), None);
    assert_eq!(kind(&format!("SELECT {}1{}", nested("f(", 20), nested(")", 20))), Some(ErrorKind::TooComplex));
    assert_eq!(kind(&format!("SELECT {}", nested("position(", 20))), Some(ErrorKind::TooComplex));
    assert_eq!(kind(&format!("SELECT {}1{}", nested("(", 20), nested(")", 20))), None);
    assert_eq!(kind(&format!("SELECT {}1", nested("(", 60))), Some(ErrorKind::TooComplex));
    // Here sqlparser itself meets its limit, and reports another error than that.
    assert_eq!(kind(&format!("SELECT {}1", nested("NOT ", 60))), Some(ErrorKind::Syntax));
    let many = format!("{}1{},", nested("f(", 8), nested(")", 8)).repeat(2_000);
    assert_eq!(kind(&format!("SELECT {many}1")), Some(ErrorKind::TooComplex));
}

#[test]
fn trees_fit_on_a_stack() {
    let chains = [
        ("SELECT a", " OR a"),
        ("SELECT a", " AND a = 1"),
        ("SELECT 1", "+1"),
        ("SELECT 1", "::int"),
        ("SELECT 1", " IS NULL"),
        ("SELECT 1", " BETWEEN 1 AND 2"),
        ("SELECT 1", " LIKE 2"),
        ("SELECT on", " + on"),
        ("SELECT a", "[1]"),
        ("SELECT 1", " UNION SELECT 1"),
        ("SELECT 1, 2", " UNION SELECT 1, 2"),
        ("SELECT * FROM a", " JOIN a ON b"),
        ("SELECT a", " AT TIME ZONE 'x'"),
        ("SELECT a", " COLLATE x"),
        ("SELECT a", " || (b, c)"),
        ("SELECT a", " IN (1, 2)"),
        ("SELECT ", "-"),
        ("SELECT ", "EXISTS (SELECT "),
        ("", "EXPLAIN "),
        ("SELECT a", "!"),
        ("SELECT a", " -> 'b'"),
        ("VALUES (1)", " INTERSECT VALUES (1)"),
    ];
    let nests = [
        ("SELECT ", "(", "1", ")"),
        ("SELECT ", "(SELECT ", "1", ")"),
        ("SELECT ", "EXISTS (SELECT ", "1", ")"),
        ("SELECT ", "a IN (SELECT ", "1", ")"),
        ("SELECT ", "* FROM (SELECT ", "1", ") a"),
        ("SELECT ", "* FROM a JOIN LATERAL (SELECT ", "1", ") b ON c"),
        ("SELECT * FROM ", "(", "a JOIN b ON c", ")"),
        ("SELECT ", "CASE WHEN ", "1", " THEN 1 END"),
        ("SELECT ", "ARRAY[", "1", "]"),
        ("SELECT ", "CAST(", "1", " AS int)"),
        ("SELECT ", "NOT ", "1", ""),
        ("SELECT ", "- ", "1", ""),
        ("SELECT ", "(1 + ", "1", ")"),
        ("SELECT ", "f(", "1", ")"),
        ("", "(", "SELECT 1", ")"),
        ("", "(SELECT 1 UNION ", "SELECT 1", ")"),
        ("", "WITH a AS (", "SELECT 1", ") SELECT 1"),
        ("", "EXPLAIN ", "SELECT 1", ""),
        ("", "PREPARE a AS ", "SELECT 1", ""),
        ("INSERT INTO t ", "WITH a AS (INSERT INTO t ", "SELECT 1", ") SELECT 1"),
        ("CREATE VIEW v AS SELECT ", "(SELECT ", "1", ")"),
        ("", "IF a THEN ", "SELECT 1", " END IF"),
        ("CREATE TABLE t (a ", "STRUCT<b ", "int", ">)"),
    ];
    let walk = move || {
        for (start, link) in chains {
            walk_longest(start, link, "", "");
        }
        for (start, open, middle, close) in nests {
            walk_longest(start, open, middle, close);
        }
    };
    // What threads have by default, as the runtime's do.
    thread::Builder::new().stack_size(2 << 20).spawn(walk).unwrap().join().unwrap();
}

/// Clones, compares, prints and drops the longest statement of this kind that is taken.
fn walk_longest(start: &str, open: &str, middle: &str, close: &str) {
    const REPETITIONS_MAX: usize = 2_000;
    let text = |count: usize| format!("{start}{}{middle}{}", open.repeat(count), close.repeat(count));
    // Bigger steps first; what is taken need not be everything below the longest.
    let mut longest = 1;
    let mut step = 1_024;
    while step > 0 {
        if parse(&text(longest + step)).is_ok() {
            longest += step;
        }
        step /= 2;
    }
    assert!(longest < REPETITIONS_MAX, "{start}{open}: {longest}");
    for count in [longest, longest / 2 + 1] {
        if let Ok(parsed) = parse(&text(count)) {
            assert_eq!(parsed.clone(), parsed);
            assert!(!parsed.first().unwrap().statement.to_string().is_empty());
        }
    }
}

#[test]
fn ordinary_statements_are_far_from_the_limits() {
    let list = (0..50_000).map(|number| number.to_string()).collect::<Vec<_>>().join(", ");
    assert_eq!(kind(&format!("SELECT * FROM t WHERE a IN ({list}) OR b = ANY(ARRAY[{list}])")), None);
    assert_eq!(kind(&format!("SELECT a FROM t WHERE {}b", "a = 1 OR ".repeat(300))), None);
    assert_eq!(kind(&format!("SELECT CASE {}END", "WHEN a = 'b' THEN 'c' ".repeat(120))), None);
    assert_eq!(kind(&format!("SELECT 1 {}", "UNION ALL SELECT a, b FROM t WHERE c = 1 ".repeat(50))), None);
    assert_eq!(kind(&format!("SELECT * FROM a {}", "LEFT JOIN b ON a.x = b.x AND a.y = b.y ".repeat(70))), None);
    assert_eq!(kind(&format!("INSERT INTO t VALUES {}(1, 2)", "(1, f(g('x'), -1)), ".repeat(5_000))), None);
}

#[test]
fn too_long() {
    let text = " ".repeat(ParseLimits::HIGHEST.statement_bytes_max + 1);
    assert_eq!(kind(&text), Some(ErrorKind::TooComplex));
    assert_eq!(kind(text.get(1..).unwrap()), None);
    assert_eq!(kind(&format!("SELECT 1 {}+ 1", " ".repeat(1 << 20))), Some(ErrorKind::TooComplex));
    assert_eq!(kind(&format!("DROP ROLE a{}", ",a".repeat(1 << 19))), Some(ErrorKind::TooComplex));
}

#[test]
fn lower_limits_hold() {
    let limits = ParseLimits { statement_bytes_max: 2_000, query_bytes_max: 1_000, depth_max: 10 };
    let refused = |text: &str| parse_within(text, limits).err().map(|error| (error.message, error.hint.unwrap()));
    let refusal = |message: &str, hint: &str| Some((message.to_owned(), hint.to_owned()));
    let nested = |count: usize| format!("SELECT {}1{}", "(".repeat(count), ")".repeat(count));
    let deep = refusal("statement is nested too deep", "The setting parse_depth_max is 10.");
    assert_eq!(refused(&nested(10)), None);
    assert_eq!(refused(&nested(11)), deep);
    let chain = |count: usize| format!("SELECT 1{}", "+1".repeat(count));
    assert_eq!(refused(&chain(60)), None);
    assert_eq!(refused(&chain(200)), deep);
    assert_eq!(refused(&format!("{}SELECT 1", "EXPLAIN ".repeat(4))), deep);
    let long = refusal("query is too long: 1001 bytes of 1000", "The setting query_bytes_max sets this limit.");
    assert_eq!(refused(&format!("SELECT 1{}+1", " ".repeat(991))), long);
    assert_eq!(refused(&format!("DROP ROLE a{}", ",a".repeat(900))), None);
    let long = refusal("text is too long: 2001 bytes of 2000", "The setting statement_bytes_max sets this limit.");
    assert_eq!(refused(&" ".repeat(2_001)), long);
    let above = ParseLimits { depth_max: 1_000, ..ParseLimits::default() };
    assert!(parse_within(&nested(41), above).is_err());
}

#[test]
fn a_hundred_thousand_rules_in_one_text() {
    let mut text = String::new();
    for number in 0..100_000 {
        let [a, b] = [number / 256 % 256, number % 256];
        text += &format!("CREATE ROUTING RULE rule_{number} ROUTE '10.{a}.{b}.0/24' TO group_{b};\n");
    }
    let start = Instant::now();
    let parsed = parse(&text).unwrap();
    assert_eq!(parsed.len(), 100_000);
    let last = parsed.last().unwrap();
    assert_eq!(text.get(last.position - 1..last.position - 1 + last.text.len()), Some(last.text.as_str()));
    assert!(start.elapsed().as_secs() < 30);
}

#[test]
fn a_statement_has_no_more_tokens_than_it_may() {
    let error = parse(&"a ".repeat(1_100_000)).unwrap_err();
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::TooComplex, "statement has too many tokens"));
}

#[test]
fn parameters_have_numbers_that_fit() {
    let error = switchyard_dialect::parameter_count("SHOW $65536").unwrap_err();
    assert_eq!(error.message, "there is no parameter $65536");
}
