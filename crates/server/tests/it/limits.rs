//! What a session cannot do to the server: run for ever, fill its memory, send it nonsense.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use libtest_mimic::Trial;
use switchyard_testkit::{ADMIN, Client, Protocol, Refused, Report, Server, Store};
use tokio_postgres::NoTls;
use tokio_postgres::error::SqlState;

/// Runs for hours if nobody stops it: some 500 columns, five times joined with themselves.
pub(crate) const ENDLESS: &str = "SELECT count(*) FROM switchyard.system_columns a, switchyard.system_columns b, \
                       switchyard.system_columns c, switchyard.system_columns d, switchyard.system_columns e \
                       WHERE a.column_name || b.column_name || c.column_name || d.column_name = e.column_name";

/// Waits until the server shows that another session runs [`ENDLESS`].
pub(crate) async fn until_endless_runs(watching: &tokio_postgres::Client) -> anyhow::Result<()> {
    let shown = "SELECT count(*) FROM sessions WHERE current_statement LIKE '%a.column_name || b.column_name%' \
                 AND session_id <> (SELECT session_id FROM current_session)";
    let deadline = Instant::now() + ANSWER_WITHIN;
    while watching.query_one(shown, &[]).await?.try_get::<_, i64>(0)? == 0 {
        ensure!(Instant::now() < deadline, "the query is not shown in sessions");
    }
    Ok(())
}

/// No socket is waited for longer than this.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_secs(30);

pub fn trials() -> Vec<Trial> {
    vec![
        crate::with_server("startup_options_have_their_form", startup_options_have_their_form),
        crate::with_server("a_query_ends_at_its_time_limit", a_query_ends_at_its_time_limit),
        crate::with_server("a_query_ends_at_its_memory_limit", a_query_ends_at_its_memory_limit),
        crate::with_server("a_query_is_cancelled", a_query_is_cancelled),
        crate::with_server("a_long_key_cancels_queries_and_results", a_long_key_cancels),
        crate::with_server("nonsense_before_login_is_survived", nonsense_before_login_is_survived),
        crate::with_server("nonsense_after_login_is_survived", nonsense_after_login_is_survived),
        crate::with_server("a_deeply_nested_statement_is_refused", a_deeply_nested_statement_is_refused),
        crate::with_server("limits_of_statements_are_named_in_what_is_refused", limits_of_statements),
        crate::with_server("a_string_of_many_statements_is_not_held", a_string_of_many_statements),
        crate::trial("limits_of_connections_are_named_in_what_is_refused", limits_of_connections),
        crate::trial("the_limit_on_login_time_is_named_to_who_is_too_slow", limit_of_login_time),
        crate::with_server("each_limit_of_the_catalog_says_so", limits_of_the_catalog),
    ]
}

/// A tree takes a thousand times the memory of a short statement: no more of them are held than the one that runs.
fn a_string_of_many_statements(server: &Server) -> anyhow::Result<()> {
    let mut client = server.admin()?;
    let before = server.resident_kib()?;
    // All of it is read before the first is run, which fails.
    let text = format!("SELECT 1/0;{}", "select 1;".repeat(50_000));
    let outcome = client.run(&text, Protocol::Simple)?;
    ensure!(outcome.code() == Some("22012") && outcome.answers.is_empty(), "{outcome:?}");
    let grown_kib = server.resident_kib()?.saturating_sub(before);
    ensure!(grown_kib < 100 << 10, "{grown_kib} KiB for a text of {} bytes", text.len());
    // Nothing runs when the last is wrong, or stays when one fails.
    let text = format!("CREATE SUBCLUSTER early;{}SELEC", "select 1;".repeat(200));
    ensure!(client.run(&text, Protocol::Simple)?.code() == Some("42601"));
    let text = format!("CREATE SUBCLUSTER early;{}SELECT 1/0", "select 1;".repeat(200));
    let outcome = client.run(&text, Protocol::Simple)?;
    ensure!(outcome.code() == Some("22012") && outcome.answers.len() == 201, "{outcome:?}");
    ensure!(client.query("SELECT 1 FROM subclusters WHERE subcluster_name = 'early'")?.is_empty());
    let outcome = client.run(&"SHOW workload;".repeat(300), Protocol::Simple)?;
    ensure!(outcome.error.is_none() && outcome.answers.len() == 300, "{outcome:?}");
    Ok(())
}

fn a_query_ends_at_its_time_limit(server: &Server) -> anyhow::Result<()> {
    let mut client = server.admin()?;
    client.query("SET statement_timeout = '200ms'")?;
    let started = Instant::now();
    let outcome = client.run(ENDLESS, Protocol::Simple)?;
    ensure!(outcome.code() == Some("57014"), "{outcome:?}");
    ensure!(started.elapsed() < Duration::from_secs(10), "it took {:?}", started.elapsed());
    client.query("SET statement_timeout = 0")?;
    client.query("ALTER DATABASE switchyard SET query_time_ms_max = 200")?;
    let outcome = client.run(ENDLESS, Protocol::Extended)?;
    ensure!(outcome.code() == Some("57014"), "{outcome:?}");
    ensure!(client.query("SELECT 1")?.len() == 1);
    Ok(())
}

fn a_query_ends_at_its_memory_limit(server: &Server) -> anyhow::Result<()> {
    let mut client = server.admin()?;
    client.query("ALTER DATABASE switchyard SET query_memory_bytes_max = 1048576")?;
    let hungry = "SELECT a.description || b.description || c.column_name FROM switchyard.system_columns a, \
                  switchyard.system_columns b, switchyard.system_columns c ORDER BY 1";
    let outcome = client.run(hungry, Protocol::Simple)?;
    ensure!(outcome.code() == Some("53200"), "{:?}", outcome.error);
    ensure!(client.query("SELECT 1")?.len() == 1);
    Ok(())
}

fn a_query_is_cancelled(server: &Server) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let (client, connection) = server.configuration().connect(NoTls).await?;
        let connection = tokio::spawn(connection);
        let token = client.cancel_token();
        let watcher = server.configuration().connect(NoTls).await?;
        let (watching, watched) = (watcher.0, tokio::spawn(watcher.1));
        let running = tokio::spawn(async move { client.simple_query(ENDLESS).await });
        // The request must not overtake the query: it is sent when the server shows that it runs.
        until_endless_runs(&watching).await?;
        token.cancel_query(NoTls).await?;
        let error = running.await?.err().context("the query was not cancelled")?;
        ensure!(error.code() == Some(&SqlState::QUERY_CANCELED), "{error:?}");
        let message = error.as_db_error().map(tokio_postgres::error::DbError::message);
        ensure!(message == Some("canceling statement due to user request"), "{error:?}");
        drop(watching);
        connection.await??;
        watched.await??;
        Ok(())
    })
}

/// The next message: its type and its body.
fn message(stream: &mut TcpStream) -> anyhow::Result<(u8, Vec<u8>)> {
    let mut head = [0; 5];
    stream.read_exact(&mut head)?;
    let [kind, length @ ..] = head;
    let mut body = vec![0; usize::try_from(u32::from_be_bytes(length))?.checked_sub(4).context("a length")?];
    stream.read_exact(&mut body)?;
    Ok((kind, body))
}

fn until(stream: &mut TcpStream, wanted: u8) -> anyhow::Result<Vec<u8>> {
    loop {
        let (kind, body) = message(stream)?;
        if kind == wanted {
            return Ok(body);
        }
    }
}

fn framed(head: &[u8], body: &[u8]) -> anyhow::Result<Vec<u8>> {
    Ok([head, &u32::try_from(body.len() + 4)?.to_be_bytes(), body].concat())
}

fn a_long_key_cancels(server: &Server) -> anyhow::Result<()> {
    let mut watcher = server.admin()?;
    watcher.query("CREATE USER plain")?;
    watcher.query("CREATE AUTHENTICATION near METHOD 'trust' HOST '127.0.0.1/32'")?;
    watcher.query("GRANT AUTHENTICATION near TO plain")?;
    let connect = || -> anyhow::Result<TcpStream> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port()))?;
        stream.set_read_timeout(Some(ANSWER_WITHIN))?;
        Ok(stream)
    };
    let mut stream = connect()?;
    let version = (3_u32 << 16 | 2).to_be_bytes();
    stream.write_all(&framed(&[], &[&version[..], b"user\0plain\0database\0switchyard\0\0"].concat())?)?;
    let key = until(&mut stream, b'K')?;
    ensure!(key.len() == 4 + 32, "{} bytes of a key", key.len());
    until(&mut stream, b'Z')?;
    stream.write_all(&framed(b"Q", &[ENDLESS.as_bytes(), b"\0"].concat())?)?;
    let shown = "SELECT 1 FROM sessions WHERE user_name = 'plain' AND current_statement <> ''";
    let deadline = Instant::now() + ANSWER_WITHIN;
    while watcher.query(shown)?.is_empty() {
        ensure!(Instant::now() < deadline, "the query is not shown in sessions");
    }
    // Another key does nothing: the query is still running when the right one comes.
    let cancel = |key: &[u8]| -> anyhow::Result<()> {
        let mut stream = connect()?;
        stream.write_all(&framed(&[], &[&80_877_102_u32.to_be_bytes()[..], key].concat())?)?;
        wait_for_the_end(&mut stream)
    };
    let mut wrong = key.clone();
    wrong.iter_mut().rev().take(1).for_each(|byte| *byte ^= 1);
    cancel(&wrong)?;
    cancel(key.get(..8).context("a key")?)?;
    ensure!(!watcher.query(shown)?.is_empty(), "a wrong key stopped the query");
    cancel(&key)?;
    let stopped = |stream: &mut TcpStream| -> anyhow::Result<()> {
        let error = until(stream, b'E')?;
        ensure!(error.windows(6).any(|part| part == b"C57014"), "{}", String::from_utf8_lossy(&error));
        until(stream, b'Z').map(drop)
    };
    stopped(&mut stream)?;
    // In the middle of a result too.
    let many = "SELECT a.description, b.description FROM switchyard.system_columns a, switchyard.system_columns b";
    stream.write_all(&framed(b"Q", &[many.as_bytes(), b"\0"].concat())?)?;
    until(&mut stream, b'D')?;
    cancel(&key)?;
    stopped(&mut stream)?;
    stream.write_all(&framed(b"Q", b"SELECT 1\0")?)?;
    ensure!(until(&mut stream, b'D')?.ends_with(b"1"));
    Ok(())
}

/// Every answer must end: in an error and a closed socket, or in a closed socket.
fn nonsense_before_login_is_survived(server: &Server) -> anyhow::Result<()> {
    let mut inputs: Vec<Vec<u8>> = vec![
        Vec::new(),
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        vec![0; 8],
        vec![0xff; 64],
        // Lengths below what a packet has, and far above what is read.
        [3_i32.to_be_bytes(), 196_608_i32.to_be_bytes()].concat(),
        [i32::MAX.to_be_bytes(), 196_608_i32.to_be_bytes()].concat(),
        [(-1_i32).to_be_bytes(), 196_608_i32.to_be_bytes()].concat(),
        // A version nobody speaks, and a startup packet without its end.
        [8_i32.to_be_bytes(), 0x0900_0000_i32.to_be_bytes()].concat(),
        [&12_i32.to_be_bytes()[..], &196_608_i32.to_be_bytes(), b"user"].concat(),
        [&13_i32.to_be_bytes()[..], &196_608_i32.to_be_bytes(), b"\xff\xfe\0\0\0"].concat(),
    ];
    inputs.extend((0..200).map(noise));
    for input in inputs {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port()))?;
        stream.set_read_timeout(Some(ANSWER_WITHIN))?;
        // The server may have closed the socket before it was sent everything.
        let _closed_early = stream.write_all(&input);
        let _closed_already = stream.shutdown(Shutdown::Write);
        wait_for_the_end(&mut stream).with_context(|| format!("after {input:?}"))?;
    }
    ensure!(server.admin()?.query("SELECT 1")?.len() == 1);
    Ok(())
}

fn nonsense_after_login_is_survived(server: &Server) -> anyhow::Result<()> {
    let mut inputs: Vec<Vec<u8>> = vec![
        b"Q\0\0\0\x03".to_vec(),
        b"Q\xff\xff\xff\xff".to_vec(),
        b"Q\x7f\xff\xff\xff".to_vec(),
        b"Q\0\0\0\x08\xff\xfe\xfd\0".to_vec(),
        b"\0\0\0\0\x04".to_vec(),
        b"z\0\0\0\x04".to_vec(),
        // Bind that counts more than it has; Execute of nothing; CopyData out of place; a password out of place.
        b"B\0\0\0\x0c\0\0\0\x01\0\x01\xff\xff".to_vec(),
        b"E\0\0\0\x0dnothing\0\0S\0\0\0\x04".to_vec(),
        b"d\0\0\0\x05x".to_vec(),
        b"p\0\0\0\x05x".to_vec(),
        b"Q\0\0\0\x0dSELECT 1".to_vec(),
    ];
    inputs.extend((0..100).map(noise));
    for input in inputs {
        let mut stream = server.admin()?.into_stream();
        let _closed_early = stream.write_all(&input);
        let _closed_already = stream.shutdown(Shutdown::Write);
        wait_for_the_end(&mut stream).with_context(|| format!("after {input:?}"))?;
    }
    ensure!(server.admin()?.query("SELECT 1")?.len() == 1);
    Ok(())
}

fn wait_for_the_end(stream: &mut TcpStream) -> anyhow::Result<()> {
    let mut chunk = [0; 4096];
    loop {
        match stream.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            // A reset says the same as an end: the server had bytes left it did not want.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return Ok(()),
            Err(error) => return Err(error).context("the server did not close the connection"),
        }
    }
}

/// The same bytes in every run.
fn noise(seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let length = next() % 64;
    (0..length).map(|_| next().to_be_bytes()[0]).collect()
}

fn a_deeply_nested_statement_is_refused(server: &Server) -> anyhow::Result<()> {
    let mut client = server.admin()?;
    let deep = 50_000;
    let statements = [
        format!("SELECT {}1{}", "(".repeat(deep), ")".repeat(deep)),
        format!("SELECT {} 1", "NOT ".repeat(deep)),
        format!("SELECT 1 {}", "+ 1 ".repeat(deep)),
        format!("{}SELECT 1{}", "SELECT * FROM (".repeat(deep), ") t".repeat(deep)),
        format!("/*{} {}*/ SELECT 1", "/*".repeat(deep), "*/".repeat(deep)),
    ];
    for statement in statements {
        let outcome = client.run(&statement, Protocol::Simple)?;
        let code = outcome.code().unwrap_or("00000").to_owned();
        // What is answered is as good as what is refused; only the server must live.
        ensure!(["00000", "54001", "42601", "57014"].contains(&code.as_str()), "{}: {code}", &statement[..40]);
        ensure!(client.query("SELECT 1")?.len() == 1);
    }
    Ok(())
}

/// What a login was refused with.
fn refused(login: anyhow::Result<Client>) -> anyhow::Result<Report> {
    let error = login.err().context("the login was not refused")?;
    Ok(error.downcast::<Refused>()?.0)
}

fn is(report: &Report, code: &str, message: &str, detail: &str) -> anyhow::Result<()> {
    let found = (report.code.as_str(), report.message.as_str(), report.detail.as_deref());
    ensure!(found == (code, message, Some(detail)), "{report:?}");
    Ok(())
}

fn startup_options_have_their_form(server: &Server) -> anyhow::Result<()> {
    let login = server.login().parameter("options", "-x nonsense");
    let report = refused(Client::connect(&login))?;
    ensure!(report.code == "42601", "{report:?}");
    ensure!(report.message == "invalid command-line argument for server process: -x", "{report:?}");
    ensure!(report.hint.as_deref() == Some("Startup options read -c name=value."), "{report:?}");
    Ok(())
}

fn limits_of_the_catalog(server: &Server) -> anyhow::Result<()> {
    let mut admin = server.admin()?;
    for statement in [
        "CREATE USER otto IDENTIFIED BY 'pw-otto' MAXCONNECTIONS 1 ON DATABASE",
        "CREATE USER mira IDENTIFIED BY 'pw-mira'",
    ] {
        admin.query(statement)?;
    }
    let _otto = server.client("otto", "pw-otto")?;
    let report = refused(server.client("otto", "pw-otto"))?;
    is(&report, "53300", "too many connections for user \"otto\"", "The limit \"MAXCONNECTIONS\" is 1.")?;
    let _mira = server.client("mira", "pw-mira")?;
    admin.query("ALTER DATABASE switchyard SET MaxClientSessions = 3")?;
    let message = "New session rejected due to limit, already 3 sessions active";
    let report = refused(server.client("mira", "pw-mira"))?;
    is(&report, "53300", message, "The limit \"MaxClientSessions\" is 3.")?;
    // The superuser can still come, and raise it.
    let mut another = server.client(ADMIN, switchyard_testkit::ADMIN_PASSWORD)?;
    another.query("ALTER DATABASE switchyard CLEAR MaxClientSessions")?;
    ensure!(server.client("mira", "pw-mira")?.query("SELECT 1")?.len() == 1);
    Ok(())
}

/// Sets a limit, runs into it, and goes on when it is not set any more.
fn limits_of_statements(server: &Server) -> anyhow::Result<()> {
    let nested = format!("SELECT {}1{}", "(".repeat(11), ")".repeat(11));
    let chained = (1..30).map(|n| format!(", a{n} AS (SELECT c FROM a{})", n - 1)).collect::<String>();
    let rows = "BEGIN; DECLARE c CURSOR FOR SELECT a.description, b.description FROM switchyard.system_columns a, \
                switchyard.system_columns b; FETCH ALL IN c";
    let cases = [
        (
            ("statement_bytes_max", "1024"),
            format!("SHOW ALL;{}", " ".repeat(1016)),
            ["54001", "text is too long: 1025 bytes of 1024", "The setting statement_bytes_max sets this limit."],
        ),
        (
            ("query_bytes_max", "1024"),
            format!("SELECT 1{}+1", " ".repeat(1015)),
            ["54001", "query is too long: 1025 bytes of 1024", "The setting query_bytes_max sets this limit."],
        ),
        (
            ("parse_depth_max", "10"),
            nested,
            ["54001", "statement is nested too deep", "The setting parse_depth_max is 10."],
        ),
        (
            ("parse_depth_max", "10"),
            format!("WITH a0 AS (SELECT 1 AS c){chained} SELECT c FROM a29"),
            [
                "54001",
                "WITH queries refer to one another over more than 16 steps",
                "The setting parse_depth_max is 10.",
            ],
        ),
        (
            ("query_memory_bytes_max", "1048576"),
            rows.to_owned(),
            [
                "53200",
                "out of memory for the rows fetched at once",
                "Fetch fewer rows at once, or raise query_memory_bytes_max.",
            ],
        ),
    ];
    let mut client = server.admin()?;
    for ((setting, value), statement, [code, message, hint]) in cases {
        for protocol in [Protocol::Simple, Protocol::Extended] {
            // A string of several statements cannot be prepared.
            if protocol == Protocol::Extended && statement.starts_with("BEGIN") {
                continue;
            }
            client.query(&format!("ALTER DATABASE switchyard SET {setting} = {value}"))?;
            let error = client.run(&statement, protocol)?.error.context("it was not refused")?;
            let told = (error.code.as_str(), error.message.as_str(), error.hint.as_deref());
            ensure!(told == (code, message, Some(hint)), "{protocol:?} {setting}: {error:?}");
            client.query("ROLLBACK")?;
            client.query(&format!("ALTER DATABASE switchyard CLEAR {setting}"))?;
            if !statement.starts_with("BEGIN") {
                let outcome = client.run(&statement, protocol)?;
                ensure!(outcome.error.is_none(), "{setting}: {:?}", outcome.error);
            }
        }
    }
    Ok(())
}

fn limits_of_connections() -> anyhow::Result<()> {
    let arguments =
        ["--connections-max", "3", "--connections-reserved", "0", "--startup-bytes-max", "2000", "--message-bytes-max"];
    let options =
        arguments.into_iter().fold(crate::options().store(Store::Memory), |options, one| options.argument(one));
    let server = options.argument("65536").start()?;
    let said = |mut stream: TcpStream, bytes: &[u8]| -> anyhow::Result<String> {
        stream.set_read_timeout(Some(ANSWER_WITHIN))?;
        stream.write_all(bytes)?;
        let mut said = Vec::new();
        stream.read_to_end(&mut said)?;
        Ok(String::from_utf8_lossy(&said).into_owned())
    };
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port()))?;
    let told = said(stream, &[2_001_i32.to_be_bytes(), 196_608_i32.to_be_bytes()].concat())?;
    ensure!(told.contains("C08P01") && told.contains("The limit \"startup_bytes_max\" is 2000."), "{told}");
    // The length alone is refused: nothing more is sent.
    let told = said(server.admin()?.into_stream(), &[&b"Q"[..], &65_536_i32.to_be_bytes()].concat())?;
    ensure!(
        told.contains("C54000")
            && told.contains("bytes is longer than 65536 bytes")
            && told.contains("The limit \"message_bytes_max\" is 65536."),
        "{told}"
    );
    let held = (0..3).map(|_| server.admin()).collect::<anyhow::Result<Vec<_>>>()?;
    let error = server.admin().err().context("one more than may be connected was let in")?;
    let Refused(report) = error.downcast_ref().with_context(|| format!("{error:#}"))?;
    ensure!(report.code == "53300", "{report:?}");
    ensure!(report.detail.as_deref() == Some("The limit \"connections_max\" is 3."), "{report:?}");
    drop(held);
    server.finish()
}

fn limit_of_login_time() -> anyhow::Result<()> {
    let options = crate::options().store(Store::Memory).argument("--login-time-ms-max").argument("100");
    let server = options.start()?;
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port()))?;
    stream.set_read_timeout(Some(ANSWER_WITHIN))?;
    // Half a packet.
    stream.write_all(&[0, 0, 0, 40, 0, 3])?;
    let mut said = Vec::new();
    stream.read_to_end(&mut said)?;
    let told = String::from_utf8_lossy(&said).into_owned();
    ensure!(told.contains("C57014") && told.contains("The limit \"login_time_ms_max\" is 100."), "{told}");
    server.finish()
}
