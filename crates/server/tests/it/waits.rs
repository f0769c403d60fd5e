//! How long a client is waited for: IDLESESSIONTIMEOUT, GRACEPERIOD and keepalive, each from whatever level sets it.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use libtest_mimic::Trial;
use switchyard_testkit::{ADMIN, ADMIN_PASSWORD, Client, Login, Protocol, Server};

use crate::fleet::{PATIENCE, one, until, wait_for};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        crate::with_server("silence_lasts_no_longer_than_each_level_allows", silence),
        crate::with_server("silence_between_messages_counts", silence_between_messages),
        crate::with_server("a_client_that_takes_nothing_is_left", grace),
        crate::with_server("connections_are_probed_as_each_level_says", probes),
        crate::with_server("a_statement_whose_client_is_gone_ends", statements_of_the_gone_end),
        crate::with_cluster("a_statement_whose_client_is_gone_ends_where_it_was_passed_on", passed_on_of_the_gone_end),
        crate::with_server("a_client_that_sends_nothing_more_is_answered", half_closed_is_answered),
    ]
}

/// What the server says before it closes, to a client that says nothing.
fn last_words(mut stream: TcpStream) -> Result<String> {
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    let mut said = Vec::new();
    stream.read_to_end(&mut said).context("the silent are not sent away")?;
    Ok(String::from_utf8_lossy(&said).into_owned())
}

fn is_sent_away(client: Client, code: &str, limit: &str) -> Result<()> {
    let said = last_words(client.into_stream())?;
    ensure!(said.contains(&format!("C{code}\0")), "{said}");
    ensure!(said.contains(&format!("The limit \"{limit}.")), "{said}");
    Ok(())
}

fn silence(server: &Server) -> Result<()> {
    const VERTICA: &str = "IDLESESSIONTIMEOUT\" is";
    let mut admin = server.admin()?;
    admin.query("CREATE USER mira IDENTIFIED BY 'pw-mira'")?;
    let mira = || server.client("mira", "pw-mira");
    let gone = |client, ms: u32| is_sent_away(client, "57P05", &format!("{VERTICA} {ms} ms"));
    // The defaults, of the database and of the node, which wins.
    admin.query("ALTER DATABASE DEFAULT SET DefaultIdleSessionTimeout = '300 ms'")?;
    gone(mira()?, 300)?;
    admin.query("ALTER DATABASE DEFAULT SET DefaultIdleSessionTimeout = '1 hour'")?;
    admin.query("ALTER NODE node01 SET DefaultIdleSessionTimeout = '200 ms'")?;
    gone(mira()?, 200)?;
    // The session's own, and the user's, which holds before both.
    let mut client = mira()?;
    client.query("SET SESSION IDLESESSIONTIMEOUT '150 ms'")?;
    gone(client, 150)?;
    admin.query("ALTER USER mira IDLESESSIONTIMEOUT '250 ms'")?;
    gone(mira()?, 250)?;
    let mut client = mira()?;
    ensure!(client.run("SET SESSION IDLESESSIONTIMEOUT '1 hour'", Protocol::Simple)?.error.is_some(), "raised");
    client.query("SET SESSION IDLESESSIONTIMEOUT '100 ms'")?;
    gone(client, 100)?;
    admin.query("ALTER USER mira IDLESESSIONTIMEOUT '1 hour'; ALTER NODE node01 CLEAR DefaultIdleSessionTimeout")?;
    // PostgreSQL's: outside of a transaction and in one.
    let mut client = mira()?;
    client.query("SET idle_in_transaction_session_timeout = 1; SET idle_session_timeout = '200 ms'")?;
    is_sent_away(client, "57P05", "idle_session_timeout\" is 200 ms")?;
    let mut client = mira()?;
    client.query("SET idle_in_transaction_session_timeout = '200 ms'; SET idle_session_timeout = '1 h'")?;
    client.query("BEGIN")?;
    is_sent_away(client, "25P03", "idle_in_transaction_session_timeout\" is 200 ms")?;
    // Defaults do not bind a superuser, who has been silent longer than others were let.
    ensure!(
        one(&mut admin, "SELECT idle_session_timeout FROM sessions WHERE user_name = 'dbadmin'")?.as_deref()
            == Some("unlimited")
    );
    wait_for(&mut admin, "SELECT count(*)::varchar FROM sessions", "1")
}

fn silence_between_messages(server: &Server) -> Result<()> {
    let mut client = server.admin()?;
    client.query("SET SESSION IDLESESSIONTIMEOUT '300 ms'")?;
    let mut stream = client.into_stream();
    stream.write_all(b"P\0\0\0\x10\0SELECT 1\0\0\0")?;
    let said = last_words(stream)?;
    ensure!(said.contains("C57P05\0") && said.contains("The limit \"IDLESESSIONTIMEOUT\" is 300 ms."), "{said}");
    Ok(())
}

/// Asks for more than sockets hold, reads none of it, and is gone.
fn takes_nothing(client: Client, watching: &mut Client) -> Result<()> {
    const LOTS: &str =
        "SELECT a.description, b.description FROM switchyard.system_columns a, switchyard.system_columns b";
    let mut stream = client.into_stream();
    let length = u32::try_from(LOTS.len() + 5)?.to_be_bytes();
    stream.write_all(&[b"Q", &length[..], LOTS.as_bytes(), b"\0"].concat())?;
    wait_for(watching, "SELECT count(*)::varchar FROM sessions WHERE user_name = 'slow'", "0")
}

fn grace(server: &Server) -> Result<()> {
    let mut admin = server.admin()?;
    admin.query("CREATE USER slow IDENTIFIED BY 'pw-slow' GRACEPERIOD '300 ms'")?;
    for set in ["", "SET SESSION GRACEPERIOD '200 ms'"] {
        let mut client = server.client("slow", "pw-slow")?;
        client.query(set)?;
        takes_nothing(client, &mut admin)?;
    }
    server.wait_for_log("the client took nothing of what it was sent for 300 ms, by GRACEPERIOD")?;
    server.wait_for_log("the client took nothing of what it was sent for 200 ms, by GRACEPERIOD")?;
    // The default, for those who have none.
    admin.query("ALTER USER slow GRACEPERIOD NONE; ALTER DATABASE DEFAULT SET DefaultGracePeriod = '100 ms'")?;
    takes_nothing(server.client("slow", "pw-slow")?, &mut admin)?;
    server.wait_for_log("the client took nothing of what it was sent for 100 ms, by GRACEPERIOD")
}

/// In how many seconds the system looks next whether a client is there; nothing while it does not.
fn probed_in(server: &Server, client: &Client) -> Result<Option<u64>> {
    let at = |port: u16| format!("0100007F:{port:04X}");
    let (local, remote) = (at(server.port()), at(client.local_address()?.port()));
    let table = std::fs::read_to_string("/proc/net/tcp")?;
    for line in table.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, own, other, _, _, timer, ..] = fields.as_slice() else { continue };
        if *own == local && *other == remote {
            let (kind, when) = timer.split_once(':').context("a timer")?;
            let ticks = u64::from_str_radix(when, 16)?;
            return Ok((kind == "02").then_some(ticks / 100));
        }
    }
    anyhow::bail!("there is no such connection")
}

fn probes(server: &Server) -> Result<()> {
    let mut admin = server.admin()?;
    admin.query("CREATE USER mira IDENTIFIED BY 'pw-mira'")?;
    let is = |client: &Client, seconds: u64| {
        until(&format!("not probed after {seconds} s"), || {
            let found = probed_in(server, client)?;
            Ok(found.is_some_and(|found| found <= seconds && found + 60 > seconds))
        })
    };
    let system: u64 = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_keepalive_time")?.trim().parse()?;
    let client = server.client("mira", "pw-mira")?;
    is(&client, system)?;
    for (statement, seconds) in [
        ("ALTER DATABASE DEFAULT SET KeepAliveIdleTime = 500", 500),
        ("ALTER NODE node01 SET KeepAliveIdleTime = 1000", 1_000),
        ("ALTER USER mira SET KeepAliveIdleTime = 2000", 2_000),
    ] {
        admin.query(statement)?;
        is(&server.client("mira", "pw-mira")?, seconds)?;
    }
    // The user's holds before the session's own.
    let mut client = server.client("mira", "pw-mira")?;
    client.query("ALTER SESSION SET KeepAliveIdleTime = 3000")?;
    is(&client, 2_000)?;
    admin.query("ALTER USER mira CLEAR KeepAliveIdleTime")?;
    let mut client = server.client("mira", "pw-mira")?;
    for (statement, seconds) in
        [("ALTER SESSION SET KeepAliveIdleTime = 3000", 3_000), ("ALTER SESSION SET KeepAliveIdleTime = 0", system)]
    {
        client.query(statement)?;
        is(&client, seconds)?;
    }
    Ok(())
}

/// Sends a message without waiting for what comes of it.
fn ask(stream: &mut TcpStream, query: &str) -> Result<()> {
    let length = u32::try_from(query.len() + 5)?.to_be_bytes();
    Ok(stream.write_all(&[b"Q", &length[..], query.as_bytes(), b"\0"].concat())?)
}

/// Each in its own way: in the middle of waiting, of computing, and with more sent already than is read ahead.
fn leave(admin: &mut Client, login: &Login) -> Result<()> {
    const ENDLESS: &str = "SELECT count(*) FROM generate_series(1, 3000000) a, generate_series(1, 300000) b";
    const RUNNING: &str = "SELECT count(*)::varchar FROM sessions WHERE user_name = 'mira' AND current_statement <> ''";
    for (statement, ahead, resets) in [
        ("SELECT pg_advisory_lock(7)", 0, true),
        ("SELECT pg_advisory_lock(7)", 0, false),
        (ENDLESS, 0, true),
        ("SELECT pg_advisory_lock(7)", 200, false),
        ("COPY (SELECT pg_advisory_lock(7)) TO STDOUT", 0, false),
        ("BEGIN; DECLARE c CURSOR FOR SELECT pg_advisory_lock(7); FETCH c", 0, false),
        ("PREPARE p AS SELECT $1::text; EXECUTE p(pg_advisory_lock(7)::text)", 0, false),
    ] {
        let mut stream = Client::connect(login)?.into_stream();
        ask(&mut stream, statement)?;
        wait_for(admin, RUNNING, "1").context(statement)?;
        for _ in 0..ahead {
            ask(&mut stream, &format!("SELECT '{}'", "x".repeat(1_000)))?;
        }
        if resets {
            socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
        }
        drop(stream);
        let left = "SELECT count(*)::varchar FROM sessions WHERE user_name = 'mira'";
        wait_for(admin, left, "0").with_context(|| format!("{statement}, {ahead} more, reset: {resets}"))?;
    }
    Ok(())
}

fn statements_of_the_gone_end(server: &Server) -> Result<()> {
    let mut admin = server.admin()?;
    admin
        .query("CREATE USER mira IDENTIFIED BY 'pw-mira'; ALTER DATABASE switchyard SET query_time_ms_max = 3600000")?;
    admin.query("SELECT pg_advisory_lock(7)")?;
    leave(&mut admin, &Login::new(server.port(), "mira", "pw-mira"))
}

fn passed_on_of_the_gone_end(server: &Server) -> Result<()> {
    let mut admin = server.admin()?;
    admin
        .query("CREATE USER mira IDENTIFIED BY 'pw-mira'; ALTER DATABASE switchyard SET query_time_ms_max = 3600000")?;
    // Whether members share their locks does not matter here.
    let mut holders = Vec::new();
    for port in server.ports() {
        let mut holder = Client::connect(&Login::new(*port, ADMIN, ADMIN_PASSWORD))?;
        holder.query("SELECT pg_try_advisory_lock(7)")?;
        holders.push(holder);
    }
    let login = Login::new(server.port(), "mira", "pw-mira").parameter("options", "-c connection_load_balance=on");
    leave(&mut admin, &login)
}

/// Also when it has to be looked for whether it is there still.
fn half_closed_is_answered(server: &Server) -> Result<()> {
    let mut admin = server.admin()?;
    admin.query("SELECT pg_advisory_lock(7)")?;
    let mut stream = server.admin()?.into_stream();
    ask(&mut stream, "SELECT pg_advisory_lock(7)")?;
    ask(&mut stream, "SELECT 'the ' || 'second'")?;
    stream.shutdown(Shutdown::Write)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let (mut said, mut chunk) = (Vec::new(), [0; 512]);
    while !String::from_utf8_lossy(&said).contains("standard_conforming_strings\0on\0") {
        let count = stream.read(&mut chunk).context("nobody asked whether it is there")?;
        ensure!(count > 0, "closed: {said:?}");
        said.extend(chunk.iter().take(count));
    }
    admin.query("SELECT pg_advisory_unlock(7)")?;
    stream.read_to_end(&mut said)?;
    let said = String::from_utf8_lossy(&said);
    ensure!(said.contains("the second") && said.matches("SELECT 1\0").count() == 2, "{said}");
    Ok(())
}
