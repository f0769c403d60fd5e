//! What `--http` answers.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use libtest_mimic::Trial;
use switchyard_testkit::{Client, Login, Server, Store};

use crate::limits::ANSWER_WITHIN;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        crate::trial("metrics_health_and_readiness_are_told", told),
        crate::trial("bad_requests_are_answered", bad_requests),
        crate::trial("half_sent_requests_hold_up_nobody", half_sent_requests),
    ]
}

/// A server, and where it answers by HTTP.
fn watched() -> Result<(Server, u16)> {
    let server = crate::options().store(Store::Memory).argument("--http").argument("127.0.0.1:0").start()?;
    let port = answers_at(&server)?;
    Ok((server, port))
}

/// Where a server answers by HTTP.
pub(crate) fn answers_at(server: &Server) -> Result<u16> {
    let log = server.log()?;
    let line = log.lines().find(|line| line.contains("answering by HTTP")).context("no HTTP")?;
    Ok(line.rsplit(':').next().context("no port")?.trim().parse()?)
}

fn exchange(port: u16, request: &[u8]) -> Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(ANSWER_WITHIN))?;
    stream.write_all(request)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

pub(crate) fn page(port: u16, path: &str) -> Result<(String, String)> {
    let answer = exchange(port, format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes())?;
    let (head, body) = answer.split_once("\r\n\r\n").context("no body")?;
    let length = format!("Content-Length: {}", body.len());
    ensure!(head.lines().any(|line| line == length), "{head}");
    Ok((head.lines().next().unwrap_or_default().to_owned(), body.to_owned()))
}

fn told() -> Result<()> {
    let (server, port) = watched()?;
    let mut admin = server.admin()?;
    ensure!(Client::connect(&Login::new(server.port(), "nobody", "wrong")).is_err());
    admin.query(&format!(
        "ALTER DATABASE DEFAULT SET allow_loopback_addresses = on;\
         CREATE NETWORK ADDRESS here ON node01 WITH '127.0.0.1' PORT {};\
         CREATE LOAD BALANCE GROUP all_of_them WITH ADDRESS here;\
         CREATE ROUTING RULE \"any \"\"one\"\"\" ROUTE '0.0.0.0/0' TO all_of_them",
        server.port()
    ))?;
    Client::connect(&server.login().parameter("options", "-c connection_load_balance=on"))?.close()?;
    let (status, body) = page(port, "/metrics?x=y")?;
    ensure!(status == "HTTP/1.1 200 OK", "{status}");
    for line in [
        "switchyard_connections_total 3",
        "switchyard_sessions_total 2",
        "switchyard_login_failures_total{cause=\"password\"} 1",
        "switchyard_node_up{node=\"node01\"} 1",
        "switchyard_node_draining{node=\"node01\"} 0",
        "switchyard_decisions_total{rule=\"any \\\"one\\\"\",stage=\"routing rule\",outcome=\"own node\"} 1",
        "switchyard_commits_total{outcome=\"committed\"} 1",
        "switchyard_commit_seconds_count 1",
        "# TYPE switchyard_commit_seconds histogram",
    ] {
        ensure!(body.lines().any(|own| own == line), "{line} is not in\n{body}");
    }
    // Each family is declared once, before its samples.
    let mut declared = std::collections::BTreeSet::new();
    for line in body.lines() {
        if let Some(family) = line.strip_prefix("# TYPE ") {
            ensure!(declared.insert(family.split(' ').next().unwrap_or_default().to_owned()), "{line} comes twice");
        } else if !line.starts_with('#') {
            let name = line.split(['{', ' ']).next().unwrap_or_default();
            let stem = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
            ensure!(declared.contains(stem) || declared.contains(name), "{line} is of no family");
        }
    }
    ensure!(page(port, "/healthz")? == ("HTTP/1.1 200 OK".to_owned(), "ok\n".to_owned()));
    ensure!(page(port, "/readyz")? == ("HTTP/1.1 200 OK".to_owned(), "ready\n".to_owned()));
    admin.query("ALTER NODE node01 DRAIN")?;
    let expected = ("HTTP/1.1 503 Service Unavailable".to_owned(), "not ready: it is draining\n".to_owned());
    ensure!(page(port, "/readyz")? == expected);
    ensure!(page(port, "/healthz")?.0 == "HTTP/1.1 200 OK");
    server.finish()
}

/// More than may be under way; those who watch have to be answered while all of them are kept open.
fn half_sent_requests() -> Result<()> {
    let (server, port) = watched()?;
    let mut held = Vec::new();
    for _ in 0..600 {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nX: ")?;
        held.push(stream);
    }
    // The first are closed at once, not when their time is over: it began when the last of them had not even called.
    let oldest = held.first_mut().context("none")?;
    oldest.set_read_timeout(Some(ANSWER_WITHIN))?;
    let mut said = Vec::new();
    // A reset says the same as an end.
    let _closed = oldest.read_to_end(&mut said);
    ensure!(said.is_empty(), "{said:?}");
    let begun = Instant::now();
    ensure!(page(port, "/healthz")?.0 == "HTTP/1.1 200 OK");
    ensure!(begun.elapsed() < Duration::from_secs(5), "answered after {:?}", begun.elapsed());
    drop(held);
    server.finish()
}

fn bad_requests() -> Result<()> {
    let (server, port) = watched()?;
    for (request, status) in [
        (&b"GET /nothing HTTP/1.1\r\n\r\n"[..], "404"),
        (b"POST /metrics HTTP/1.1\r\n\r\n", "405"),
        (b"GET /metrics\r\n\r\n", "400"),
        (b"\0\xff\r\n\r\n", "400"),
        (&[b'x'; 8_192], "400"),
    ] {
        let answer = exchange(port, request)?;
        ensure!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{status}: {answer}");
    }
    let head = exchange(port, b"HEAD /healthz HTTP/1.1\r\n\r\n")?;
    ensure!(head.starts_with("HTTP/1.1 200 OK") && head.ends_with("\r\n\r\n"), "{head}");
    ensure!(page(port, "/healthz")?.0 == "HTTP/1.1 200 OK");
    server.finish()
}
