//! Each refusal that a client can meet is met by a line of sql-tests/, or by a test in Rust where no statement leads to it.
#![expect(clippy::unwrap_used, reason = "a test may end here")]

use std::path::PathBuf;

use switchyard_testkit::{files_under, repository_root};

/// Refusals that nothing meets, with the reason.
const NOT_MET: &[(&str, &str)] = &[
    ("needs at least one member", "the grammar wants a member"),
    ("may not grant role", "the admin option is asked for before anything is planned"),
    ("cannot be a superuser:", "no statement makes a superuser"),
    ("too many columns", "a query of so many columns is refused before"),
    ("row has too many columns or is too long", "the same, in Vertica's protocol"),
    ("value is longer than 2 GiB", "a query has less memory than that"),
    ("the statement is empty", "one with parameters is not"),
    ("COPY names no table", "the table's name was parsed before"),
    ("this statement is not about channels", "only those that are come there"),
    ("this statement cannot be run from here", "what the session cannot run the protocol does"),
    ("no query engine", "there is one since the line before"),
    ("there is no such user", "only the log has it: the client is told of a password that failed"),
    ("no authentication record is granted to the user", "the same"),
    ("the user has no password", "the same"),
    ("the stored verifier is of another kind than the client proves; set the password anew, or use TLS", "the same"),
    ("the stored verifier of the user is damaged", "the same"),
    ("the MD5 verifier is of the user's name as the catalog spells it,", "the same"),
    ("the password is wrong", "the same"),
    ("the client closed the connection", "nobody is left to be told"),
    ("cannot reach the client", "the same"),
    ("the client certificate cannot be read", "TLS has read it before"),
    ("the catalog is at version", "clients are told of a transaction that is to be run again"),
];

/// Refusals that no statement meets, with the test in Rust that does, and what it has of them.
const MET_IN_RUST: &[(&str, &str, &str)] = &[
    ("integer out of range", "crates/console/src/encode.rs", "integer out of range"),
    ("numeric value is malformed", "crates/console/src/encode.rs", "numeric value is malformed"),
    ("address value is malformed", "crates/console/src/encode.rs", "address value is malformed"),
    (
        "an array element has another type than its array",
        "crates/console/src/encode/array.rs",
        "an array element has another type than its array",
    ),
    (
        "invalid input syntax for type varbinary",
        "crates/console/src/encode/vertica.rs",
        "invalid input syntax for type varbinary",
    ),
    (
        "the catalog store refused the commit",
        "crates/console/src/transaction.rs",
        "the catalog store refused the commit",
    ),
    (
        "the outcome of the commit is unknown",
        "crates/console/src/transaction.rs",
        "the outcome of the commit is unknown",
    ),
    ("the catalog store cannot be read", "crates/console/src/session.rs", "the catalog store cannot be read"),
    (
        "incorrect binary data format in bind parameter",
        "crates/server/tests/it/pipeline.rs",
        "incorrect binary data format in bind parameter",
    ),
    (
        "parameters of this type are taken in the text format only",
        "crates/server/tests/it/pipeline.rs",
        "parameters of this type are taken in the text format only",
    ),
    (
        "parameters of this type are not taken by management statements",
        "crates/server/tests/it/pipeline.rs",
        "parameters of this type are not taken by management statements",
    ),
    (
        "too many notifications in the NOTIFY queue",
        "crates/server/tests/it/pipeline.rs",
        "too many notifications in the NOTIFY queue",
    ),
    (": the session has", "crates/server/tests/it/pipeline.rs", "too many prepared statements: the session has 3"),
    (
        "terminating connection due to administrator command",
        "crates/server/tests/it/quickstart.rs",
        "terminating connection due to administrator command",
    ),
    ("the catalog store cannot be reached", "crates/server/tests/it/cluster.rs", "the catalog store cannot be reached"),
    ("no node of workload", "crates/server/tests/it/upstreams.rs", "no node of workload"),
    (
        "no node with a PostgreSQL server is up",
        "crates/server/tests/it/health.rs",
        "no node with a PostgreSQL server is up",
    ),
    ("is served by another process, at", "crates/server/tests/it/links.rs", "is served by another process, at"),
    ("is draining: it takes no new connections", "crates/server/tests/it/cluster.rs", "takes no new connections"),
    (
        "has no equivalent in encoding",
        "crates/server/tests/it/pipeline.rs",
        "0x81 in encoding \\\"WIN1252\\\" has no equivalent in encoding",
    ),
    (
        "in encoding \"UTF8\" has no equivalent in encoding",
        "crates/server/tests/it/pipeline.rs",
        "in encoding \\\"UTF8\\\" has no equivalent in encoding \\\"LATIN1",
    ),
    (
        "invalid byte sequence for encoding",
        "crates/server/tests/it/pipeline.rs",
        "invalid byte sequence for encoding \\\"WIN1252\\\": 0x00",
    ),
    ("the session listens on", "crates/server/tests/it/pipeline.rs", "the session listens on"),
    (
        "of the session would take more than",
        "crates/server/tests/it/pipeline.rs",
        "of the session would take more than",
    ),
    ("cannot be run", "crates/server/tests/it/pipeline.rs", "cannot be run"),
    ("cannot be run by EXECUTE", "crates/server/tests/it/pipeline.rs", "cannot be run by EXECUTE"),
    ("result formats but query has", "crates/server/tests/it/pipeline.rs", "result formats but query has"),
    ("unsupported format code:", "crates/server/tests/it/pipeline.rs", "unsupported format code:"),
    ("parameter formats but", "crates/server/tests/it/pipeline.rs", "parameter formats but"),
    ("parameters, but prepared statement", "crates/server/tests/it/pipeline.rs", "parameters, but prepared statement"),
    (
        "canceling statement due to user request",
        "crates/server/tests/it/limits.rs",
        "canceling statement due to user request",
    ),
    (
        "out of memory for the rows fetched at once",
        "crates/server/tests/it/limits.rs",
        "out of memory for the rows fetched at once",
    ),
    ("bytes is longer than", "crates/server/tests/it/limits.rs", "bytes is longer than"),
    ("query is too long:", "crates/server/tests/it/limits.rs", "query is too long:"),
    ("parameters are taken as text only", "crates/server/tests/it/vertica.rs", "parameters are taken as text only"),
    (
        "LISTEN is not supported in Vertica's protocol",
        "crates/server/tests/it/vertica_python_test.py",
        "LISTEN is not supported in Vertica's protocol",
    ),
    (
        "COPY is not supported in Vertica's protocol",
        "crates/server/tests/it/vertica_python_test.py",
        "COPY is not supported in Vertica's protocol",
    ),
    (
        "Cannot insert multiple commands into a prepared statement",
        "crates/server/tests/it/vertica_python_test.py",
        "Cannot insert multiple commands into a prepared statement",
    ),
    ("statement has too many tokens", "crates/dialect/tests/limits.rs", "statement has too many tokens"),
    ("there is no parameter", "crates/dialect/tests/limits.rs", "there is no parameter"),
    (
        "canceling authentication due to timeout",
        "crates/session/src/establish/tests.rs",
        "canceling authentication due to timeout",
    ),
    ("TLS handshake failed:", "crates/server/tests/it/access.rs", "TLS handshake failed"),
    (
        "received direct TLS connection request without ALPN protocol negotiation extension",
        "crates/session/src/establish/tests/encrypted.rs",
        "SessionError::ProtocolUnnamed",
    ),
    ("received unencrypted data after", "crates/session/src/establish/tests.rs", "received unencrypted data after"),
    ("request twice", "crates/session/src/establish/tests/encrypted.rs", "request twice"),
    (
        "no PostgreSQL user name specified in startup packet",
        "crates/session/src/establish/tests.rs",
        "no PostgreSQL user name specified in startup packet",
    ),
    (
        "replication connections are not supported",
        "crates/session/src/establish/tests.rs",
        "replication connections are not supported",
    ),
    (
        "sorry, too many logins are under way already",
        "crates/session/src/establish/tests.rs",
        "sorry, too many logins are under way already",
    ),
    ("sorry, too many clients already", "crates/session/src/registry/tests.rs", "sorry, too many clients already"),
    (
        "remaining connection slots are reserved for superusers",
        "crates/session/src/registry/tests.rs",
        "remaining connection slots are reserved for superusers",
    ),
    ("no authentication record for", "crates/session/src/establish/tests.rs", "no authentication record for"),
    (
        "connection requires a valid client certificate",
        "crates/session/src/establish/tests.rs",
        "connection requires a valid client certificate",
    ),
    (
        "certificate authentication failed for user",
        "crates/session/src/establish/tests/encrypted.rs",
        "certificate authentication failed for user",
    ),
    (
        "client selected an invalid SASL authentication mechanism",
        "crates/session/src/establish/tests.rs",
        "client selected an invalid SASL authentication mechanism",
    ),
    (
        "expected password response, got message type",
        "crates/session/src/establish/tests/vertica.rs",
        "expected password response, got message type",
    ),
    (
        "expected SASL response, got message type",
        "crates/session/src/establish/tests.rs",
        "expected SASL response, got message type",
    ),
    ("is in use by another process", "crates/server/tests/command_line.rs", "is in use by another process"),
    ("; this program reads up to", "crates/store/tests/store/file.rs", "this program reads up to"),
    ("is damaged:", "crates/store/tests/store/file.rs", "OpenError::Damaged"),
    ("cannot open the store", "crates/store/tests/store/file.rs", "OpenError::Io"),
    (
        "invalid command-line argument for server process:",
        "crates/server/tests/it/limits.rs",
        "invalid command-line argument for server process:",
    ),
];

/// Where refusals are made: files or folders, and how the calls or attributes begin that hold their texts.
const SOURCES: &[(&str, &[&str])] = &[
    ("crates/catalog/src/error.rs", &["#[error("]),
    ("crates/engine/src/error.rs", &["ClientError::new(", "Self::new("]),
    ("crates/console/src", &["ClientError::new(", " invalid(", " violation(", " refused("]),
    ("crates/dialect/src", &["error_saying(", "error_at(", "self.error(", "too_complex("]),
    ("crates/session/src/error.rs", &["#[error("]),
    ("crates/store/src/contract.rs", &["#[error("]),
];

/// The string literal that begins at or after `at`, and where it ends.
fn literal(source: &str, at: usize) -> Option<(String, usize)> {
    let mut text = String::new();
    let is_character = |index: usize| source.get(index.checked_sub(1)?..index + 2).map(|around| around == "'\"'");
    let starts = source.get(at..)?.match_indices('"').map(|(index, _)| at + index);
    let at = starts.into_iter().find(|index| is_character(*index) != Some(true))?;
    let mut rest = source.get(at..)?.char_indices().skip(1);
    while let Some((index, character)) = rest.next() {
        match character {
            '"' => return Some((text, at + index)),
            '\\' => match rest.next()?.1 {
                // The text goes on at the next line's first word.
                '\n' => text.push(' '),
                escaped => text.push(escaped),
            },
            other => text.push(other),
        }
    }
    None
}

/// What is between the parenthesis at `at` and the one that closes it.
fn arguments(source: &str, at: usize) -> &str {
    let (mut depth, mut index) = (0, at);
    let bytes = source.as_bytes();
    while let Some(byte) = bytes.get(index) {
        match byte {
            b'"' => index = literal(source, index).map_or(bytes.len(), |(_, end)| end),
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return source.get(at..=index).unwrap_or_default();
        }
        index += 1;
    }
    source.get(at..).unwrap_or_default()
}

/// The text that a call is given: its first literal, or that of the variable it names.
fn message(source: &str, at: usize) -> Option<String> {
    let arguments = arguments(source, at);
    // What ends with a full stop is a hint.
    if let Some((text, _)) = literal(arguments, 0).filter(|(text, _)| !text.ends_with('.')) {
        return Some(text);
    }
    let words = arguments.split(|c: char| !c.is_alphanumeric() && c != '_');
    let variable = words.into_iter().find(|word| ["message", "text"].contains(word))?;
    let before = source.get(..at)?;
    let made = before.get(before.rfind(&format!("let {variable} ="))?..)?;
    literal(made.get(..made.find(";\n")?)?, 0).map(|(text, _)| text)
}

/// The texts of a file, without those of its tests.
fn messages(source: &str, marks: &[&str]) -> Vec<String> {
    let product = source.split("#[cfg(test)]\nmod").next().unwrap_or_default();
    let found = marks
        .iter()
        .flat_map(|mark| product.match_indices(mark).filter_map(|(at, _)| message(product, at + mark.len() - 1)));
    found.collect()
}

/// The longest piece of a message between what is filled in.
fn longest_piece(message: &str) -> String {
    let pieces = message.split('{').flat_map(|piece| piece.split_once('}').map_or([piece, ""], |(_, rest)| [rest, ""]));
    let piece = pieces.max_by_key(|piece| piece.len()).unwrap_or_default();
    piece.split_whitespace().collect::<Vec<_>>().join(" ").trim_matches(['"', ' ']).to_owned()
}

fn read(path: impl Into<PathBuf>) -> String {
    std::fs::read_to_string(repository_root().join(path.into())).unwrap()
}

/// The texts that are wanted, each with the file that has it.
fn wanted() -> Vec<(String, String)> {
    let mut wanted = Vec::new();
    for (place, marks) in SOURCES {
        let files = match place.ends_with(".rs") {
            true => vec![PathBuf::from(place)],
            false => files_under(place, "rs").unwrap(),
        };
        for file in files.into_iter().filter(|file| !file.to_string_lossy().contains("tests")) {
            let texts = messages(&read(&file), marks);
            wanted.extend(texts.into_iter().map(|text| (text, file.display().to_string())));
        }
    }
    wanted
}

/// What the lines of sql-tests/ say of errors.
fn lines() -> String {
    let mut lines = String::new();
    for file in files_under("sql-tests", "slt").unwrap() {
        let text = read(file);
        let errors = text.lines().filter(|line| line.starts_with("statement error"));
        lines.extend(errors.flat_map(|line| [line.replace('\\', ""), "\n".to_owned()]));
    }
    lines
}

#[test]
fn every_refusal_is_met() {
    let wanted = wanted();
    assert!(wanted.len() > 200, "{wanted:?}");
    let lines = lines();
    let mut wrong = Vec::new();
    for (message, file) in &wanted {
        let piece = longest_piece(message);
        let elsewhere = NOT_MET.iter().any(|(text, _)| *text == piece) || MET_IN_RUST.iter().any(|met| met.0 == piece);
        if !piece.is_empty() && lines.contains(&piece) == elsewhere {
            wrong.push(format!("{file}: {message:?}"));
        }
    }
    assert!(wrong.is_empty(), "no line, or one where none was thought possible: {wrong:#?}");
    let pieces: Vec<String> = wanted.iter().map(|(message, _)| longest_piece(message)).collect();
    for text in NOT_MET.iter().map(|met| met.0).chain(MET_IN_RUST.iter().map(|met| met.0)) {
        assert!(pieces.iter().any(|piece| piece == text), "nobody says {text:?} any more");
    }
    for (_, file, mark) in MET_IN_RUST {
        let text = read(*file);
        // Where the code and its tests are in one file, only the tests count.
        let tests = if file.contains("/tests") {
            Some(text.as_str())
        } else {
            text.split_once("#[cfg(test)]\n").map(|halves| halves.1)
        };
        assert!(tests.is_some_and(|tests| tests.contains(mark)), "the tests of {file} do not have {mark:?}");
    }
}
