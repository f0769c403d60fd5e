//! Messages of the extended protocol in every order, as the bytes say them.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use libtest_mimic::Trial;
use switchyard_testkit::{Client, Send, Server};

use Send::{Bind, Close, Describe, Execute, Parse, Query, Raw, Sync};

pub fn trials() -> Vec<Trial> {
    vec![
        crate::with_server("a_pipeline_is_one_transaction", a_pipeline_is_one_transaction),
        crate::with_server("statements_and_portals_have_names", statements_and_portals_have_names),
        crate::with_server("a_bind_message_is_checked", a_bind_message_is_checked),
        crate::with_server("values_must_have_their_format", values_must_have_their_format),
        crate::with_server("channels_are_limited", channels_are_limited),
        crate::with_server("texts_must_be_utf8", texts_must_be_utf8),
        crate::with_server("texts_have_the_encoding_of_their_client", texts_have_the_encoding_of_their_client),
        crate::with_server("a_portal_is_read_in_portions", a_portal_is_read_in_portions),
        crate::with_server("portals_end_with_their_transaction", portals_end_with_their_transaction),
        crate::with_server("what_a_session_keeps_is_limited", what_a_session_keeps_is_limited),
        crate::with_server("messages_must_have_their_layout", messages_must_have_their_layout),
        crate::with_server("results_before_an_error_are_sent", results_before_an_error_are_sent),
        crate::with_server("what_constants_give_is_known_before_rows", what_constants_give_is_known_before_rows),
        crate::with_server("parameters_have_types", parameters_have_types),
        crate::with_server("rows_are_copied_to_the_client", rows_are_copied_to_the_client),
        crate::with_server("notifications_come_with_the_commit", notifications_come_with_the_commit),
        crate::with_server("cursors_are_portals", cursors_are_portals),
        crate::with_server("prepared_statements_are_those_of_sql", prepared_statements_are_those_of_sql),
        crate::with_server("a_connection_is_reset_as_asyncpg_does", a_connection_is_reset_as_asyncpg_does),
        crate::with_server("a_lock_is_waited_for_until_it_is_free", a_lock_is_waited_for_until_it_is_free),
        crate::with_server("the_end_of_a_session_frees_its_locks", the_end_of_a_session_frees_its_locks),
        crate::with_server("a_client_that_never_reads_is_closed", a_client_that_never_reads_is_closed),
        crate::trial("a_client_that_never_reads_does_not_keep_the_server", a_client_that_never_reads_is_left),
    ]
}

/// Sends messages and compares what comes back.
pub fn check(client: &mut Client, messages: &[Send<'_>], expected: &[&str]) -> anyhow::Result<()> {
    let answer = client.exchange(messages)?;
    ensure!(answer == expected, "after {messages:?}:\n{answer:#?}\nis not\n{expected:#?}");
    Ok(())
}

/// The messages of one statement without parameters, but Sync.
fn run(text: &str) -> [Send<'_>; 3] {
    [Parse("", text), Bind("", "", &[]), Execute("", 0)]
}

fn pipeline<'a>(texts: &[&'a str]) -> Vec<Send<'a>> {
    texts.iter().flat_map(|text| run(text)).chain([Sync]).collect()
}

fn subclusters(client: &mut Client) -> anyhow::Result<Vec<String>> {
    let rows = client.query("SELECT subcluster_name FROM subclusters WHERE NOT is_default ORDER BY 1")?;
    Ok(rows.into_iter().flatten().flatten().collect())
}

/// As PostgreSQL, which computes constants when it plans: only the error is sent. What depends on rows comes later.
fn what_constants_give_is_known_before_rows(server: &Server) -> anyhow::Result<()> {
    let mut client = server.admin()?;
    for query in ["SELECT 1/0", "SELECT node_name, 1/0 FROM nodes", "SELECT 'x'::int", "SELECT ('a' || 'b')::int"] {
        let answer = client.exchange(&[Query(query)])?;
        ensure!(
            answer.len() == 2 && answer.first().is_some_and(|line| line.starts_with("error 22")),
            "{query}: {answer:?}"
        );
    }
    let answer = client.exchange(&[Query("SELECT 1/(node_id - node_id) FROM nodes")])?;
    ensure!(answer.len() == 3 && answer.get(1).is_some_and(|line| line.starts_with("error 22012")), "{answer:?}");
    Ok(())
}

fn a_pipeline_is_one_transaction(server: &Server) -> anyhow::Result<()> {
    let (mut client, mut other) = (server.admin()?, server.admin()?);
    let made = ["parsed", "bound", "done CREATE SUBCLUSTER"];
    let failed =
        pipeline(&["CREATE SUBCLUSTER a", "SET application_name = 'undone'", "SELECT 1/0", "CREATE SUBCLUSTER b"]);
    let answer = client.exchange(&failed)?;
    ensure!(answer.iter().any(|line| line.starts_with("error 22012")), "{answer:?}");
    ensure!(answer.last().map(String::as_str) == Some("ready I"), "{answer:?}");
    ensure!(subclusters(&mut client)?.is_empty(), "a failed pipeline left something behind");
    ensure!(client.query("SHOW application_name")? == [[Some("testkit".to_owned())]]);

    // The statements see what those before them did; nobody else does before Sync.
    let messages: Vec<_> = run("CREATE SUBCLUSTER a").into_iter().chain([Send::Raw(b'H', b"")]).collect();
    client.exchange(&messages)?;
    ensure!(subclusters(&mut other)?.is_empty(), "a pipeline was seen before its Sync");
    let count = "SELECT count(*) FROM subclusters WHERE subcluster_name = 'a'";
    let answer = client.exchange(&pipeline(&[count]))?;
    ensure!(answer == [&made[..], &["parsed", "bound", "row 1", "done SELECT 1", "ready I"]].concat(), "{answer:?}");
    ensure!(subclusters(&mut other)? == ["a"]);

    // BEGIN makes it a real one, and COMMIT ends it.
    let answer = client.exchange(&pipeline(&["CREATE SUBCLUSTER b", "BEGIN", "CREATE SUBCLUSTER c"]))?;
    ensure!(answer.last().map(String::as_str) == Some("ready T"), "{answer:?}");
    let answer = client.exchange(&pipeline(&["ROLLBACK"]))?;
    ensure!(answer.last().map(String::as_str) == Some("ready I"), "{answer:?}");
    ensure!(subclusters(&mut other)? == ["a"]);

    // What cannot run in a transaction can run alone.
    check(&mut client, &pipeline(&["DISCARD ALL"]), &["parsed", "bound", "done DISCARD ALL", "ready I"])?;
    let answer = client.exchange(&pipeline(&["SELECT 1", "DISCARD ALL"]))?;
    ensure!(answer.iter().any(|line| line.starts_with("error 25001")), "{answer:?}");
    Ok(())
}

fn statements_and_portals_have_names(server: &Server) -> anyhow::Result<()> {
    let mut client = server.admin()?;
    let ready = "ready I";
    check(&mut client, &[Parse("s", "SELECT 1"), Sync], &["parsed", ready])?;
    let twice = "error 42P05 prepared statement \"s\" already exists";
    check(&mut client, &[Parse("s", "SELECT 2"), Sync], &[twice, ready])?;
    check(&mut client, &[Parse("", "SELECT 2"), Parse("", "SELECT 3"), Sync], &["parsed", "parsed", ready])?;
    let missing = "error 26000 prepared statement \"t\" does not exist";
    check(&mut client, &[Bind("", "t", &[]), Sync], &[missing, ready])?;
    check(&mut client, &[Describe(b'S', "t"), Sync], &[missing, ready])?;
    let missing = "error 34000 portal \"p\" does not exist";
    check(&mut client, &[Execute("p", 0), Sync], &[missing, ready])?;
    check(&mut client, &[Describe(b'P', "p"), Sync], &[missing, ready])?;
    let twice = "error 42P03 cursor \"p\" already exists";
    check(&mut client, &[Bind("p", "s", &[]), Bind("p", "s", &[]), Sync], &["bound", twice, ready])?;
    check(
        &mut client,
        &[Bind("p", "s", &[]), Close(b'P', "p"), Bind("p", "s", &[]), Execute("p", 0), Sync],
        &["bound", "closed", "bound", "row 1", "done SELECT 1", ready],
    )?;
    check(
        &mut client,
        &[Close(b'S', "s"), Close(b'S', "s"), Parse("s", "SELECT 4"), Sync],
        &["closed", "closed", "parsed", ready],
    )?;
    check(
        &mut client,
        &[Describe(b'S', "s"), Bind("", "s", &[]), Describe(b'P', ""), Sync],
        &["parameters ", "columns ?column?", "bound", "columns ?column?", ready],
    )?;
    check(
        &mut client,
        &[Parse("", ""), Describe(b'S', ""), Bind("", "", &[]), Describe(b'P', ""), Execute("", 0), Sync],
        &["parsed", "parameters ", "no data", "bound", "no data", "empty", ready],
    )?;
    let two = "error 42601 cannot insert multiple commands into a prepared statement";
    check(&mut client, &[Parse("", "SELECT 1; SELECT 2"), Sync], &[two, ready])?;
    // A simple query forgets the unnamed statement.
    client.exchange(&[Parse("", "SELECT 1"), Sync, Query("SELECT 1")])?;
    check(&mut client, &[Bind("", "", &[]), Sync], &["error 26000 unnamed prepared statement does not exist", ready])?;
    client.query("DISCARD ALL")?;
    check(&mut client, &[Parse("s", "SELECT 5"), Sync], &["parsed", ready])
}

fn a_bind_message_is_checked(server: &Server) -> anyhow::Result<()> {
    let mut client = server.admin()?;
    let text = "SELECT node_id, node_name FROM nodes WHERE node_name = $1 OR node_name = $2";
    client.exchange(&[Parse("x", text), Parse("", text), Sync])?;
    let mut refused = |bind: Send<'_>, expected: &str| {
        check(&mut client, &[bind, Sync], &[&format!("error 08P01 {expected}"), "ready I"])
    };
    refused(Bind("", "x", &[b"a"]), "bind message supplies 1 parameters, but prepared statement \"x\" requires 2")?;
    refused(
        Bind("", "", &[b"a", b"b", b"c"]),
        "bind message supplies 3 parameters, but prepared statement \"\" requires 2",
    )?;
    let values = b"\0\x02\0\0\0\x01a\0\0\0\x01b";
    let body = |formats: &[u8], results: &[u8]| [b"\0x\0", formats, values, results].concat();
    let three = body(b"\0\x03\0\0\0\0\0\0", b"\0\0");
    refused(Raw(b'B', &three), "bind message has 3 parameter formats but 2 parameters")?;
    let odd = body(b"\0\x01\0\x02", b"\0\0");
    refused(Raw(b'B', &odd), "unsupported format code: 2")?;
    let three = body(b"\0\0", b"\0\x03\0\0\0\0\0\0");
    refused(Raw(b'B', &three), "bind message has 3 result formats but query has 2 columns")?;
    let odd = body(b"\0\0", b"\0\x01\xff\xff");
    refused(Raw(b'B', &odd), "unsupported format code: -1")
}

fn values_must_have_their_format(server: &Server) -> anyhow::Result<()> {
    let mut client = server.admin()?;
    let parse = |text: &str, oid: u32| [b"\0", text.as_bytes(), b"\0\0\x01", &oid.to_be_bytes()].concat();
    let binary = |value: &[u8]| {
        let length = u32::try_from(value.len()).unwrap_or_default().to_be_bytes();
        [&b"\0\0\0\x01\0\x01\0\x01"[..], &length, value, b"\0\0"].concat()
    };
    let mut refused = |oid: u32, text: &str, bind: &[u8], expected: &str| {
        let parse = parse(text, oid);
        check(&mut client, &[Raw(b'P', &parse), Raw(b'B', bind), Sync], &["parsed", expected, "ready I"])
    };
    let malformed = "error 22P03 incorrect binary data format in bind parameter";
    for (oid, value) in [(23, &b"123"[..]), (1007, b"123"), (1700, b"1")] {
        refused(oid, "SELECT $1", &binary(value), malformed)?;
    }
    let text_only = "error 0A000 parameters of this type are taken in the text format only";
    refused(3802, "SELECT $1", &binary(b"\x02{}"), text_only)?;
    let bind = b"\0\0\0\0\0\x01\0\0\0\x03{1}\0\0";
    let not_taken = "error 0A000 parameters of this type are not taken by management statements";
    refused(1007, "ALTER DATABASE switchyard SET history_days_max = $1", bind, not_taken)
}

fn channels_are_limited(server: &Server) -> anyhow::Result<()> {
    let (mut hears, mut says) = (server.admin()?, server.admin()?);
    let listen: Vec<String> = (0..1_000).map(|number| format!("LISTEN c{number}")).collect();
    hears.query(&listen.join(";"))?;
    let full = "error 54000 the session listens on 1000 channels already";
    check(&mut hears, &[Query("LISTEN one_more")], &[full, "ready I"])?;
    // Notifications wait for the end of a transaction, but not without limit.
    hears.query("BEGIN")?;
    let notify = |count: u32| format!("SELECT count(pg_notify('c1', g::text)) FROM generate_series(1, {count}) g");
    says.query(&notify(1_024))?;
    let answer = says.exchange(&[Query(&notify(1))])?;
    let full = "error 54000 too many notifications in the NOTIFY queue";
    ensure!(answer.iter().any(|line| line == full), "{answer:?}");
    let heard = hears.exchange(&[Query("ROLLBACK")])?;
    ensure!(heard.iter().filter(|line| line.starts_with("notification")).count() == 1_024, "{}", heard.len());
    Ok(())
}

fn texts_must_be_utf8(server: &Server) -> anyhow::Result<()> {
    let mut client = server.admin()?;
    let error = |bytes: &str| format!("error 22021 invalid byte sequence for encoding \"UTF8\": {bytes}");
    check(&mut client, &[Raw(b'Q', b"SELECT '\xff'\0"), Sync], &[&error("0xff"), "ready I", "ready I"])?;
    check(&mut client, &[Raw(b'P', b"\0SELECT '\xc3('\0\0\0"), Sync], &[&error("0xc3 0x28"), "ready I"])?;
    check(&mut client, &[Raw(b'P', b"\xe2\x82\0SELECT 1\0\0\0"), Sync], &[&error("0xe2 0x82"), "ready I"])?;
    client.exchange(&[Parse("s", "SELECT count(*) FROM nodes WHERE node_name = $1"), Sync])?;
    for (value, bytes) in [(&b"a\xff"[..], "0xff"), (b"a\0b", "0x00")] {
        check(&mut client, &[Bind("", "s", &[value]), Sync], &[&error(bytes), "ready I"])?;
    }
    check(
        &mut client,
        &[Bind("", "s", &["\u{e4}".as_bytes()]), Execute("", 0), Sync],
        &["bound", "row 0", "done SELECT 1", "ready I"],
    )
}

/// What an encoding cannot say is refused by name, and the bytes of it.
fn texts_have_the_encoding_of_their_client(server: &Server) -> anyhow::Result<()> {
    let mut client = server.admin()?;
    client.query("SET client_encoding = 'WIN1252'")?;
    let unknown =
        "error 22P05 character with byte sequence 0x81 in encoding \"WIN1252\" has no equivalent in encoding \"UTF8\"";
    check(&mut client, &[Raw(b'Q', b"SELECT '\x81'\0"), Sync], &[unknown, "ready I", "ready I"])?;
    client.exchange(&[Parse("s", "SELECT count(*) FROM nodes WHERE node_name = $1"), Sync])?;
    let nul = "error 22021 invalid byte sequence for encoding \"WIN1252\": 0x00";
    check(&mut client, &[Bind("", "s", &[b"\xe4\0"]), Sync], &[nul, "ready I"])?;
    client.query("SET client_encoding = 'LATIN1'")?;
    let answer = client.exchange(&[Query("SELECT chr(8364)")])?;
    let foreign = "error 22P05 character with byte sequence 0xe2 0x82 0xac in encoding \"UTF8\" has no equivalent in encoding \"LATIN1\"";
    ensure!(answer.iter().any(|line| line == foreign), "{answer:?}");
    ensure!(answer.last().is_some_and(|line| line == "ready I"), "{answer:?}");
    Ok(())
}

fn a_portal_is_read_in_portions(server: &Server) -> anyhow::Result<()> {
    let mut client = server.admin()?;
    let three = Parse("", "SELECT n FROM (VALUES (1), (2), (3)) AS v (n) ORDER BY n");
    check(
        &mut client,
        &[three, Bind("p", "", &[]), Execute("p", 2), Execute("p", 2), Execute("p", 2), Sync],
        &["parsed", "bound", "row 1", "row 2", "suspended", "row 3", "done SELECT 1", "done SELECT 0", "ready I"],
    )?;
    // As many as there are is not known to be all.
    check(
        &mut client,
        &[three, Bind("", "", &[]), Execute("", 3), Execute("", 0), Sync],
        &["parsed", "bound", "row 1", "row 2", "row 3", "suspended", "done SELECT 0", "ready I"],
    )?;
    let answer = client.exchange(&[Parse("", "SHOW ALL"), Bind("", "", &[]), Execute("", 1), Sync])?;
    ensure!(answer.len() == 5 && answer.get(3).is_some_and(|line| line == "suspended"), "{answer:?}");
    let done = "error 55000 portal \"p\" cannot be run";
    check(
        &mut client,
        &[Parse("", "SET extra_float_digits = 1"), Bind("p", "", &[]), Execute("p", 0), Execute("p", 0), Sync],
        &["parsed", "bound", "done SET", done, "ready I"],
    )
}

fn portals_end_with_their_transaction(server: &Server) -> anyhow::Result<()> {
    let mut client = server.admin()?;
    let missing = "error 34000 portal \"p\" does not exist";
    let start = [Parse("s", "SELECT n FROM (VALUES (1), (2)) AS v (n)"), Bind("p", "s", &[]), Execute("p", 1), Sync];
    client.exchange(&start)?;
    check(&mut client, &[Execute("p", 1), Sync], &[missing, "ready I"])?;
    for end in ["COMMIT", "ROLLBACK"] {
        client.query("BEGIN")?;
        client.exchange(&[Bind("p", "s", &[]), Execute("p", 1), Sync])?;
        check(&mut client, &[Execute("p", 1), Sync], &["row 2", "suspended", "ready T"])?;
        client.query(end)?;
        check(&mut client, &[Execute("p", 1), Sync], &[missing, "ready I"])?;
    }
    // The same within one pipeline.
    let answer = client.exchange(&[
        Bind("p", "s", &[]),
        Parse("c", "COMMIT"),
        Bind("", "c", &[]),
        Execute("", 0),
        Execute("p", 1),
        Sync,
    ])?;
    ensure!(answer.iter().any(|line| line == missing), "{answer:?}");
    // Going back to a savepoint closes what was made after it.
    client.query("BEGIN")?;
    client.exchange(&[Bind("early", "s", &[]), Sync])?;
    client.query("SAVEPOINT a")?;
    client.exchange(&[Bind("p", "s", &[]), Sync])?;
    client.query("ROLLBACK TO a")?;
    check(&mut client, &[Execute("early", 1), Sync], &["row 1", "suspended", "ready T"])?;
    check(&mut client, &[Execute("p", 1), Sync], &[missing, "ready E"])?;
    client.query("ROLLBACK")?;
    Ok(())
}

fn what_a_session_keeps_is_limited(server: &Server) -> anyhow::Result<()> {
    let mut client = server.admin()?;
    client.query("ALTER DATABASE switchyard SET prepared_statements_max = 3")?;
    client.query("ALTER DATABASE switchyard SET portals_max = 2")?;
    let few = [Parse("a", "SELECT 1"), Parse("b", "SELECT 1"), Parse("c", "SELECT 1"), Parse("d", "SELECT 1"), Sync];
    let full = "error 53400 too many prepared statements: the session has 3";
    check(&mut client, &few, &["parsed", "parsed", "parsed", full, "ready I"])?;
    let few = [Bind("p", "a", &[]), Bind("q", "a", &[]), Bind("r", "a", &[]), Sync];
    check(&mut client, &few, &["bound", "bound", "error 53400 too many portals: the session has 2", "ready I"])?;
    check(&mut client, &[Close(b'S', "a"), Parse("d", "SELECT 1"), Sync], &["closed", "parsed", "ready I"])?;
    client.query("DISCARD ALL")?;
    client.query("ALTER DATABASE switchyard SET prepared_bytes_max = 65536")?;
    let long = format!("SELECT '{}'", "x".repeat(40_000));
    let answer = client.exchange(&[Parse("a", &long), Parse("b", &long), Sync])?;
    ensure!(answer.first().map(String::as_str) == Some("parsed"), "{answer:?}");
    ensure!(
        answer.get(1).is_some_and(|line| line
            .starts_with("error 53400 the prepared statements of the session would take more than 65536 bytes")),
        "{answer:?}"
    );
    client.query("DISCARD ALL")?;
    client.exchange(&[Parse("s", "SELECT count(*) FROM nodes WHERE node_name = $1"), Sync])?;
    let value = vec![b'x'; 70_000];
    let answer = client.exchange(&[Bind("", "s", &[&value]), Sync])?;
    ensure!(answer.first().is_some_and(|line| line.starts_with("error 53400")), "{answer:?}");
    Ok(())
}

fn messages_must_have_their_layout(server: &Server) -> anyhow::Result<()> {
    let mut client = server.admin()?;
    check(&mut client, &[Raw(b'B', b"\0\0\0\0"), Sync], &["error 08P01 invalid Bind message", "ready I"])?;
    check(&mut client, &[Raw(b'D', b"X\0"), Sync], &["error 08P01 invalid Describe message", "ready I"])?;
    check(
        &mut client,
        &[Raw(b'Q', b"SELECT 1\0rest"), Sync],
        &["error 08P01 invalid Query message", "ready I", "ready I"],
    )?;
    // What belongs to a COPY is passed over when there is none.
    check(&mut client, &[Raw(b'd', b"x"), Raw(b'c', b""), Sync], &["ready I"])
}

fn results_before_an_error_are_sent(server: &Server) -> anyhow::Result<()> {
    let mut client = server.admin()?;
    let answer = client.exchange(&[Query("SELECT 1; SELECT * FROM nothing; SELECT 2")])?;
    ensure!(
        answer.get(..3) == Some(&["columns ?column?", "row 1", "done SELECT 1"].map(str::to_owned)[..]),
        "{answer:?}"
    );
    ensure!(answer.len() == 5 && answer.get(3).is_some_and(|line| line.starts_with("error 42P01")), "{answer:?}");
    Ok(())
}

fn parameters_have_types(server: &Server) -> anyhow::Result<()> {
    let mut client = server.admin()?;
    for (text, types) in [
        ("SELECT node_name FROM nodes LIMIT $1", "20"),
        ("SELECT node_name FROM nodes LIMIT $1 OFFSET $2", "20 20"),
        ("SELECT node_name FROM nodes WHERE node_id = $2 AND node_name = $1 OFFSET $3", "25 20 20"),
    ] {
        let answer = client.exchange(&[Parse("", text), Describe(b'S', ""), Sync])?;
        ensure!(answer.get(1) == Some(&format!("parameters {types}")), "{text}: {answer:?}");
    }
    check(
        &mut client,
        &[Parse("", "SELECT 7 LIMIT $1"), Bind("", "", &[b"0"]), Execute("", 0), Sync],
        &["parsed", "bound", "done SELECT 0", "ready I"],
    )
}

fn rows_are_copied_to_the_client(server: &Server) -> anyhow::Result<()> {
    let mut client = server.admin()?;
    let query = "(SELECT 1 AS a, 'x,\t\"y' AS b UNION ALL SELECT 2, NULL ORDER BY 1)";
    let mut copied = |options: &str, expected: &[&str]| {
        let text = format!("COPY {query} TO STDOUT {options}");
        let rows = [&["copy 2"], expected, &["copied", "done COPY 2"]].concat();
        check(&mut client, &[Query(&text)], &[&rows[..], &["ready I"]].concat())?;
        let extended = [&["parsed", "bound", "no data"][..], &rows[..], &["ready I"]].concat();
        check(&mut client, &[Parse("", &text), Bind("", "", &[]), Describe(b'P', ""), Execute("", 0), Sync], &extended)
    };
    copied("", &["data 1\tx,\\t\"y\n", "data 2\t\\N\n"])?;
    copied("WITH (FORMAT csv, HEADER)", &["data a,b\n", "data 1,\"x,\t\"\"y\"\n", "data 2,\n"])?;
    copied("CSV HEADER", &["data a,b\n", "data 1,\"x,\t\"\"y\"\n", "data 2,\n"])?;
    let answer = client.exchange(&[Query("COPY (SELECT 7::int4 AS a) TO STDOUT (FORMAT binary)")])?;
    let row = "\0\u{1}\0\0\0\u{4}\0\0\0\u{7}";
    ensure!(answer.get(1).is_some_and(|line| line.starts_with("data PGCOPY\n") && line.ends_with(row)), "{answer:?}");
    for (text, code) in [
        ("COPY nodes FROM STDIN", "0A000"),
        ("COPY nodes TO '/tmp/x'", "0A000"),
        ("COPY nodes TO PROGRAM 'x'", "0A000"),
        ("COPY nodes TO STDOUT (FORMAT xml)", "22023"),
        ("COPY (SELECT * FROM nothing) TO STDOUT", "42P01"),
    ] {
        let answer = client.exchange(&[Query(text)])?;
        ensure!(answer.first().is_some_and(|line| line.starts_with(&format!("error {code}"))), "{text}: {answer:?}");
        ensure!(answer.len() == 2, "{text}: {answer:?}");
    }
    check(
        &mut client,
        &[Query("COPY nodes (node_name) TO STDOUT")],
        &["copy 1", &format!("data {}\n", switchyard_testkit::NODE), "copied", "done COPY 1", "ready I"],
    )
}

/// Asks for far more than the buffers on the way take, and reads nothing of it.
fn flood(client: Client) -> anyhow::Result<TcpStream> {
    let mut stream = client.into_stream();
    let text = "SELECT a.description, b.description FROM switchyard.system_columns a, switchyard.system_columns b";
    let body = [text.as_bytes(), b"\0"].concat();
    stream.write_all(&[b"Q", &u32::try_from(body.len() + 4)?.to_be_bytes()[..], &body].concat())?;
    // The first byte of the answer shows that it is being sent.
    stream.read_exact(&mut [0])?;
    Ok(stream)
}

fn a_client_that_never_reads_is_closed(server: &Server) -> anyhow::Result<()> {
    let mut watcher = server.admin()?;
    let before = server.resident_kib()?;
    let _idle = flood(server.admin()?)?;
    let closed = watcher.query("SELECT close_all_sessions()")?;
    ensure!(closed.len() == 1, "{closed:?}");
    let deadline = Instant::now() + Duration::from_secs(20);
    while watcher.query("SELECT session_id FROM sessions")?.len() > 1 {
        ensure!(Instant::now() < deadline, "the session outlives its closing");
    }
    let grown = server.resident_kib()?.saturating_sub(before);
    ensure!(grown < 200 * 1024, "{grown} KiB more for a client that does not read");
    Ok(())
}

fn a_client_that_never_reads_is_left() -> anyhow::Result<()> {
    let server = crate::options().argument("--drain-ms-max").argument("0").start()?;
    let idle = flood(server.admin()?)?;
    server.finish().context("with a client that does not read")?;
    drop(idle);
    Ok(())
}

fn notifications_come_with_the_commit(server: &Server) -> anyhow::Result<()> {
    let (mut hears, mut says) = (server.admin()?, server.admin()?);
    let process_id: String = says.query("SELECT pg_backend_pid()")?.into_iter().flatten().flatten().collect();
    hears.query("LISTEN news")?;
    // In a transaction that is rolled back, or goes back, nothing was said.
    for text in ["BEGIN", "NOTIFY news, 'undone'", "ROLLBACK", "BEGIN", "NOTIFY news, 'one'", "NOTIFY news, 'one'"] {
        says.query(text)?;
    }
    for text in ["SAVEPOINT s", "NOTIFY news, 'undone'", "ROLLBACK TO s", "NOTIFY other, 'unheard'", "NOTIFY news"] {
        says.query(text)?;
    }
    check(&mut hears, &[Sync], &["ready I"])?;
    says.query("COMMIT")?;
    let said = |payload: &str| format!("notification {process_id} news {payload}");
    check(&mut hears, &[Sync], &[&said("one"), &said(""), "ready I"])?;
    // In a transaction they wait for its end.
    hears.query("BEGIN")?;
    says.query("NOTIFY news, 'two'")?;
    check(&mut hears, &[Sync], &["ready T"])?;
    check(&mut hears, &[Query("COMMIT")], &["done COMMIT", &said("two"), "ready I"])?;
    hears.query("UNLISTEN news")?;
    says.query("NOTIFY news, 'three'")?;
    check(&mut hears, &[Sync], &["ready I"])?;
    // Who speaks hears himself.
    let answer = hears.exchange(&[Query("LISTEN own; NOTIFY own, 'me'")])?;
    ensure!(answer.iter().any(|line| line.starts_with("notification") && line.ends_with(" own me")), "{answer:?}");
    // DISCARD ALL ends it.
    hears.query("DISCARD ALL")?;
    says.query("NOTIFY own")?;
    check(&mut hears, &[Sync], &["ready I"])
}

fn cursors_are_portals(server: &Server) -> anyhow::Result<()> {
    let mut client = server.admin()?;
    let query = "SELECT n FROM (VALUES (1), (2), (3), (4)) AS v (n) ORDER BY n";
    client.query("BEGIN")?;
    client.query(&format!("DECLARE c CURSOR FOR {query}"))?;
    let twice = "error 42P03 cursor \"c\" already exists";
    client.query("SAVEPOINT a")?;
    check(&mut client, &[Parse("", query), Bind("c", "", &[]), Sync], &["parsed", twice, "ready E"])?;
    client.query("ROLLBACK TO a")?;
    // A cursor is described, read and closed by messages ...
    check(
        &mut client,
        &[Describe(b'P', "c"), Execute("c", 1), Parse("", "FETCH 1 FROM c"), Bind("", "", &[]), Sync],
        &["columns n", "row 1", "suspended", "parsed", "bound", "ready T"],
    )?;
    check(
        &mut client,
        &[Parse("f", "FETCH 2 FROM c"), Describe(b'S', "f"), Bind("", "f", &[]), Execute("", 0), Sync],
        &["parsed", "parameters ", "columns n", "bound", "row 2", "row 3", "done FETCH 2", "ready T"],
    )?;
    check(
        &mut client,
        &[Close(b'P', "c"), Bind("", "f", &[]), Execute("", 0), Sync],
        &["closed", "bound", "error 34000 cursor \"c\" does not exist", "ready E"],
    )?;
    client.query("ROLLBACK TO a")?;
    // ... and a portal by statements.
    check(
        &mut client,
        &[Parse("", query), Bind("p", "", &[]), Execute("p", 1), Sync],
        &["parsed", "bound", "row 1", "suspended", "ready T"],
    )?;
    check(&mut client, &[Query("FETCH p")], &["columns n", "row 2", "done FETCH 1", "ready T"])?;
    check(&mut client, &[Query("CLOSE p")], &["done CLOSE CURSOR", "ready T"])?;
    client.query("COMMIT")?;
    // Values are bound to the query of a cursor.
    client.query("BEGIN")?;
    check(
        &mut client,
        &[
            Parse("", "DECLARE c BINARY CURSOR FOR SELECT n FROM (VALUES (1), (2)) AS v (n) WHERE n > $1::int4"),
            Bind("", "", &[b"1"]),
            Execute("", 0),
            Sync,
        ],
        &["parsed", "bound", "done DECLARE CURSOR", "ready T"],
    )?;
    check(&mut client, &[Query("FETCH c")], &["columns n", "row \0\0\0\u{2}", "done FETCH 1", "ready T"])?;
    client.query("COMMIT")?;
    // A string of statements is a transaction to a cursor, and one statement is none.
    let answer = client.exchange(&[Query("DECLARE c CURSOR FOR SELECT 1; FETCH c")])?;
    ensure!(answer == ["done DECLARE CURSOR", "columns ?column?", "row 1", "done FETCH 1", "ready I"], "{answer:?}");
    let alone = "error 25P01 DECLARE CURSOR can only be used in transaction blocks";
    check(&mut client, &[Query("DECLARE c CURSOR FOR SELECT 1")], &[alone, "ready I"])?;
    // The limit is one for both.
    client.query("ALTER DATABASE switchyard SET portals_max = 2")?;
    let full = "error 53400 too many portals: the session has 2";
    let declare = |name: &str| format!("DECLARE {name} CURSOR WITH HOLD FOR SELECT 1");
    client.query(&declare("a"))?;
    client.query(&declare("b"))?;
    check(&mut client, &[Query(&declare("c"))], &[full, "ready I"])
}

fn prepared_statements_are_those_of_sql(server: &Server) -> anyhow::Result<()> {
    let mut client = server.admin()?;
    client.query("PREPARE s (int) AS SELECT $1 + 1 AS n")?;
    check(
        &mut client,
        &[Describe(b'S', "s"), Bind("", "s", &[b"41"]), Execute("", 0), Sync],
        &["parameters 23", "columns n", "bound", "row 42", "done SELECT 1", "ready I"],
    )?;
    let twice = "error 42P05 prepared statement \"s\" already exists";
    check(&mut client, &[Parse("s", "SELECT 1"), Sync], &[twice, "ready I"])?;
    check(
        &mut client,
        &[Parse("", "EXECUTE s ($1)"), Describe(b'S', ""), Bind("", "", &[b"1"]), Execute("", 0), Sync],
        &["parsed", "parameters 25", "columns n", "bound", "row 2", "done SELECT 1", "ready I"],
    )?;
    client.exchange(&[Parse("l", "LISTEN news"), Sync])?;
    let refused = "error 0A000 prepared statement \"l\" cannot be run by EXECUTE";
    check(&mut client, &[Query("EXECUTE l")], &[refused, "ready I"])?;
    client.query("DEALLOCATE l")?;
    client.exchange(&[Parse("m", "SELECT 7 AS x"), Sync])?;
    check(&mut client, &[Query("EXECUTE m")], &["columns x", "row 7", "done SELECT 1", "ready I"])?;
    check(&mut client, &[Query("DEALLOCATE m")], &["done DEALLOCATE", "ready I"])?;
    let missing = "error 26000 prepared statement \"m\" does not exist";
    check(&mut client, &[Bind("", "m", &[]), Sync], &[missing, "ready I"])?;
    check(&mut client, &[Close(b'S', "s"), Sync], &["closed", "ready I"])?;
    client.query("ALTER DATABASE switchyard SET prepared_statements_max = 1")?;
    client.query("PREPARE a AS SELECT 1")?;
    let full = "error 53400 too many prepared statements: the session has 1";
    check(&mut client, &[Query("PREPARE b AS SELECT 1")], &[full, "ready I"])
}

fn a_connection_is_reset_as_asyncpg_does(server: &Server) -> anyhow::Result<()> {
    let (mut client, mut other) = (server.admin()?, server.admin()?);
    client.query("SELECT pg_advisory_lock(1)")?;
    client.query("DECLARE c CURSOR WITH HOLD FOR SELECT 1")?;
    client.query("LISTEN news")?;
    client.query("SET extra_float_digits = 3")?;
    let reset = "SELECT pg_advisory_unlock_all();\nCLOSE ALL;\nUNLISTEN *;\nRESET ALL;";
    check(
        &mut client,
        &[Query(reset)],
        &[
            "columns pg_advisory_unlock_all",
            "row ",
            "done SELECT 1",
            "done CLOSE CURSOR ALL",
            "done UNLISTEN",
            "done RESET",
            "ready I",
        ],
    )?;
    let kept = "SELECT (SELECT count(*) FROM pg_locks) + (SELECT count(*) FROM pg_cursors), \
                current_setting('extra_float_digits')";
    ensure!(client.query(kept)? == [[Some("0".to_owned()), Some("1".to_owned())]]);
    other.query("SELECT pg_notify('news', 'unheard')")?;
    check(&mut client, &[Sync], &["ready I"])
}

/// Waits until a session waits for a lock.
fn until_one_waits(client: &mut Client) -> anyhow::Result<()> {
    let deadline = Instant::now() + Duration::from_secs(20);
    while client.query("SELECT 1 FROM pg_locks WHERE NOT granted")?.is_empty() {
        ensure!(Instant::now() < deadline, "nobody waits for the lock");
    }
    Ok(())
}

fn a_lock_is_waited_for_until_it_is_free(server: &Server) -> anyhow::Result<()> {
    let (mut holder, mut waiter) = (server.admin()?, server.admin()?);
    let waiter_id: String = waiter.query("SELECT pg_backend_pid()")?.into_iter().flatten().flatten().collect();
    holder.query("SELECT pg_advisory_lock(1)")?;
    let (mut waiter, got) = std::thread::scope(|scope| {
        let waiting = scope.spawn(move || {
            let got = waiter.query("SELECT pg_advisory_lock(1)");
            (waiter, got)
        });
        until_one_waits(&mut holder)?;
        holder.query("SELECT pg_advisory_unlock(1)")?;
        waiting.join().map_err(|_| anyhow::anyhow!("the waiter panicked"))
    })?;
    ensure!(got?.len() == 1);
    // Each would wait for the other: the second is told.
    holder.query("SELECT pg_advisory_lock(2)")?;
    let (waiter, got) = std::thread::scope(|scope| {
        let waiting = scope.spawn(move || {
            let got = waiter.run("SELECT pg_advisory_lock(2)", switchyard_testkit::Protocol::Simple);
            (waiter, got)
        });
        until_one_waits(&mut holder)?;
        let refused = holder.run("SELECT pg_advisory_lock(1)", switchyard_testkit::Protocol::Simple)?;
        ensure!(refused.code() == Some("40P01"), "{refused:?}");
        // Who waits can be told to stop.
        holder.query(&format!("SELECT pg_cancel_backend({waiter_id})"))?;
        waiting.join().map_err(|_| anyhow::anyhow!("the waiter panicked"))
    })?;
    ensure!(got?.code() == Some("57014"));
    drop(waiter);
    Ok(())
}

fn the_end_of_a_session_frees_its_locks(server: &Server) -> anyhow::Result<()> {
    let (mut watcher, mut client) = (server.admin()?, server.admin()?);
    client.query("SELECT pg_advisory_lock(1)")?;
    let gone = watcher.query("SELECT pg_terminate_backend(pid) FROM pg_locks")?;
    ensure!(gone == [[Some("t".to_owned())]], "{gone:?}");
    watcher.query("SELECT pg_advisory_lock(1)")?;
    ensure!(client.query("SELECT 1").is_err(), "the session outlives its end");
    Ok(())
}
