//! Clients that mean harm: thousands of half-open connections, broken TLS, guessed passwords, messages that are cut or too
//! long in every state of a session. Nobody else may notice.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use libtest_mimic::Trial;
use switchyard_testkit::{ADMIN, Authority, Client, Protocol, Server, Store};

/// No socket is waited for longer than this.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// How many connections are held half open.
const HALF_OPEN: usize = 10_000;

/// What each of them may weigh in a build without optimisation, in KiB.
const HALF_OPEN_KIB_MAX: u64 = 16;

pub fn trials() -> Vec<Trial> {
    vec![
        crate::trial("ten_thousand_half_open_connections_are_borne", half_open),
        crate::trial("broken_tls_is_survived", broken_tls),
        crate::with_server("guesses_hold_up_nobody_else", guesses),
        crate::with_server("unknown_users_look_like_wrong_passwords", unknown_users),
        crate::with_server("broken_messages_are_survived_in_every_state", every_state),
        crate::with_server("sessions_that_went_leave_nothing", sessions_leave_nothing),
    ]
}

fn connect(server: &Server) -> Result<TcpStream> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port()))?;
    stream.set_read_timeout(Some(ANSWER_WITHIN))?;
    Ok(stream)
}

fn still_serves(server: &Server) -> Result<()> {
    ensure!(server.admin()?.query("SELECT 1")?.len() == 1);
    Ok(())
}

/// What comes until the server closes; a reset is an end too.
fn rest_of(stream: &mut TcpStream) -> Result<Vec<u8>> {
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Err(error) if error.kind() != std::io::ErrorKind::ConnectionReset => {
            Err(error).context("the server did not close the connection")
        }
        _ => Ok(answer),
    }
}

fn half_open() -> Result<()> {
    switchyard_testkit::raise_open_files()?;
    let logins_max = (HALF_OPEN + 100).to_string();
    let server = crate::options().store(Store::Memory).argument("--logins-max").argument(logins_max).start()?;
    let mut bystander = server.admin()?;
    bystander.query("SELECT 1")?;
    let before = server.resident_kib()?;
    let mut held = Vec::with_capacity(HALF_OPEN);
    for index in 0..HALF_OPEN {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port()))?;
        let begin: &[u8] = match index % 3 {
            0 => b"",
            1 => b"\0\0\0\x40\0\x03\0\0user\0",
            _ => b"\0\0\0\x40\x04\xd2",
        };
        stream.write_all(begin)?;
        held.push(stream);
    }
    still_serves(&server)?;
    ensure!(bystander.query("SELECT 1")?.len() == 1);
    // All of them are counted: none was turned away, and none is served.
    let waiting = bystander.query("SELECT items FROM switchyard.pgbouncer_lists WHERE list = 'login_clients'")?;
    ensure!(waiting == [[Some(HALF_OPEN.to_string())]], "{waiting:?}");
    let grown = server.resident_kib()?.saturating_sub(before);
    let allowed = HALF_OPEN_KIB_MAX * u64::try_from(HALF_OPEN)?;
    ensure!(grown < allowed, "{grown} KiB for {HALF_OPEN} connections");
    drop(held);
    still_serves(&server)?;
    server.finish()
}

/// The same bytes in every run.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_be_bytes()[0]
    };
    (0..length).map(|_| next()).collect()
}

fn broken_tls() -> Result<()> {
    let authority = Authority::new()?;
    authority.certify("server", "server")?;
    let path = |file: &str| authority.path(file).display().to_string();
    let server = crate::options()
        .store(Store::Memory)
        .argument("--tls-certificate")
        .argument(path("server.crt"))
        .argument("--tls-key")
        .argument(path("server.key"))
        .start()?;
    let ssl_request: &[u8] = b"\0\0\0\x08\x04\xd2\x16\x2f";
    let mut inputs: Vec<Vec<u8>> = vec![
        Vec::new(),
        b"\x16\x03\x01".to_vec(),
        // A record that is longer than any, an alert, a record of an unknown type, a hello that is nothing but its frame.
        b"\x16\x03\x01\xff\xff".to_vec(),
        b"\x15\x03\x01\0\x02\x02\x28".to_vec(),
        b"\x42\x03\x01\0\x01\0".to_vec(),
        b"\x16\x03\x01\0\x04\x01\0\0\0".to_vec(),
        // The startup packet in plain text, where TLS was agreed on.
        b"\0\0\0\x16\0\x03\0\0user\0dbadmin\0\0".to_vec(),
    ];
    inputs.extend((0..60).map(|seed| noise(seed, 1 + usize::try_from(seed).unwrap_or(0) * 7)));
    inputs.extend((0..30).map(|seed| [b"\x16\x03\x01\x01\0".to_vec(), noise(seed, 256)].concat()));
    for input in inputs {
        let mut stream = connect(&server)?;
        stream.write_all(ssl_request)?;
        let mut accepted = [0];
        stream.read_exact(&mut accepted)?;
        ensure!(accepted == *b"S");
        let _closed_early = stream.write_all(&input);
        let _closed_already = stream.shutdown(Shutdown::Write);
        let answer = rest_of(&mut stream).with_context(|| format!("after {input:?}"))?;
        ensure!(!answer.starts_with(b"R"), "plain text was answered after {input:?}");
        // The same as the first bytes: TLS without having asked for it, or nonsense.
        let mut stream = connect(&server)?;
        let _closed_early = stream.write_all(&input);
        let _closed_already = stream.shutdown(Shutdown::Write);
        rest_of(&mut stream).with_context(|| format!("after {input:?} at once"))?;
    }
    still_serves(&server)?;
    server.finish()
}

fn startup(user: &str) -> Vec<u8> {
    let body = [&b"\0\x03\0\0user\0"[..], user.as_bytes(), b"\0database\0switchyard\0\0"].concat();
    let length = u32::try_from(body.len() + 4).unwrap_or_default();
    [&length.to_be_bytes()[..], &body].concat()
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap_or_default();
    [&[kind][..], &length.to_be_bytes(), body].concat()
}

/// Reads one message.
fn receive(stream: &mut TcpStream) -> Result<(u8, Vec<u8>)> {
    let mut header = [0; 5];
    stream.read_exact(&mut header)?;
    let [kind, length @ ..] = header;
    let length = usize::try_from(u32::from_be_bytes(length))?.checked_sub(4).context("a message without a length")?;
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok((kind, body))
}

/// Goes through SCRAM as far as a proof that does not hold, and gives what the server sent, but for what is by chance.
fn guess(server: &Server, user: &str) -> Result<(TcpStream, Vec<String>)> {
    let mut stream = connect(server)?;
    stream.write_all(&startup(user))?;
    let mut seen = Vec::new();
    let (kind, body) = receive(&mut stream)?;
    seen.push(format!("{} {}", char::from(kind), String::from_utf8_lossy(&body)));
    let first = b"n,,n=,r=abcdefghijklmnopqrstuvwx";
    let length = u32::try_from(first.len())?.to_be_bytes();
    stream.write_all(&message(b'p', &[&b"SCRAM-SHA-256\0"[..], &length, first].concat()))?;
    let (kind, body) = receive(&mut stream)?;
    let challenge = String::from_utf8_lossy(body.get(4..).unwrap_or_default()).into_owned();
    let nonce = challenge.strip_prefix("r=").and_then(|rest| rest.split(',').next()).context("no nonce")?.to_owned();
    let salt = challenge.split(",s=").nth(1).and_then(|rest| rest.split(',').next()).context("no salt")?;
    let shape = challenge.replace(&nonce, "NONCE").replace(salt, &format!("SALT {}", salt.len()));
    seen.push(format!("{} {} {shape}", char::from(kind), nonce.len()));
    let proof = format!("c=biws,r={nonce},p=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
    stream.write_all(&message(b'p', proof.as_bytes()))?;
    Ok((stream, seen))
}

/// Those that guess wait for their answers; whoever knows the password does not.
fn guesses(server: &Server) -> Result<()> {
    let waiting: Vec<_> = (0..300).map(|_| guess(server, ADMIN)).collect::<Result<_>>()?;
    let started = Instant::now();
    for _ in 0..5 {
        still_serves(server)?;
    }
    // The guesses at the end wait for five seconds each.
    ensure!(started.elapsed() < Duration::from_secs(4), "a login took {:?}", started.elapsed() / 5);
    drop(waiting);
    still_serves(server)
}

fn unknown_users(server: &Server) -> Result<()> {
    server.admin()?.query("CREATE USER mira IDENTIFIED BY 'pw-mira'; CREATE USER nora")?;
    let answers = |user: &str| -> Result<Vec<String>> {
        let (mut stream, mut seen) = guess(server, user)?;
        let (kind, body) = receive(&mut stream)?;
        seen.push(format!("{} {}", char::from(kind), String::from_utf8_lossy(&body).replace(user, "USER")));
        ensure!(rest_of(&mut stream)?.is_empty(), "there is more after the refusal");
        Ok(seen)
    };
    let wrong = answers("mira")?;
    ensure!(wrong.iter().any(|line| line.contains("password authentication failed for user \"USER\"")), "{wrong:?}");
    for user in ["unknown", "nora", "UnKnown2", "w\u{e4}hler"] {
        let other = answers(user)?;
        ensure!(other == wrong, "{user}: {other:?}, but {wrong:?}");
    }
    Ok(())
}

/// A state of a connection, and how it is reached.
type State = (&'static str, fn(&Server) -> Result<TcpStream>);

fn logged_in(server: &Server, messages: &[Vec<u8>], until: u8) -> Result<TcpStream> {
    let mut stream = server.admin()?.into_stream();
    stream.set_read_timeout(Some(ANSWER_WITHIN))?;
    stream.write_all(&messages.concat())?;
    if !messages.is_empty() {
        while receive(&mut stream)?.0 != until {}
    }
    Ok(stream)
}

fn parse(text: &str) -> Vec<u8> {
    message(b'P', &[b"\0", text.as_bytes(), b"\0\0\0"].concat())
}

const STATES: &[State] = &[
    ("before the startup packet", connect),
    ("where a password is expected", |server| {
        let mut stream = connect(server)?;
        stream.write_all(&startup(ADMIN))?;
        receive(&mut stream)?;
        Ok(stream)
    }),
    ("where a proof is expected", |server| {
        let mut stream = connect(server)?;
        stream.write_all(&startup(ADMIN))?;
        receive(&mut stream)?;
        stream.write_all(&message(b'p', b"SCRAM-SHA-256\0\0\0\0\x20n,,n=,r=abcdefghijklmnopqrstuvwx"))?;
        receive(&mut stream)?;
        Ok(stream)
    }),
    ("idle", |server| logged_in(server, &[], b'Z')),
    ("in a transaction", |server| logged_in(server, &[message(b'Q', b"BEGIN\0")], b'Z')),
    ("in a failed transaction", |server| {
        logged_in(server, &[message(b'Q', b"BEGIN\0"), message(b'Q', b"SELECT nothing\0")], b'E')
    }),
    ("after Parse", |server| logged_in(server, &[parse("SELECT 1"), message(b'H', b"")], b'1')),
    ("after a mistake, before Sync", |server| logged_in(server, &[parse("SELECT nothing"), message(b'H', b"")], b'E')),
    ("with a portal half read", |server| {
        let bind = message(b'B', b"\0\0\0\0\0\0\0\0");
        let execute = message(b'E', b"\0\0\0\0\x01");
        let select = parse("SELECT * FROM switchyard.system_columns");
        logged_in(server, &[select, bind, execute, message(b'H', b"")], b's')
    }),
    ("while rows are sent", |server| {
        let mut stream = logged_in(server, &[], b'Z')?;
        stream.write_all(&message(b'Q', b"SELECT * FROM switchyard.system_columns, generate_series(1, 8)\0"))?;
        receive(&mut stream)?;
        Ok(stream)
    }),
];

/// What no client would send: cut, too long, of no kind, with counts of what is not there.
fn broken() -> Vec<Vec<u8>> {
    let mut inputs = vec![
        b"".to_vec(),
        b"Q".to_vec(),
        b"Q\0\0".to_vec(),
        b"Q\0\0\0\0".to_vec(),
        b"Q\0\0\0\x03".to_vec(),
        b"Q\x7f\xff\xff\xff".to_vec(),
        b"Q\xff\xff\xff\xff".to_vec(),
        b"p\x7f\xff\xff\xff".to_vec(),
        message(b'Q', b"SELECT 1"),
        message(b'Q', b"SELECT 1\0\0\0"),
        message(b'Q', b"\xff\xfe\0"),
        message(b'P', b""),
        message(b'P', b"\0SELECT 1\0\x7f\xff"),
        message(b'B', b"\0\0\x7f\xff"),
        message(b'B', b"\0\0\0\x01\0\x01\0\x01\x7f\xff\xff\xff"),
        message(b'E', b"\0"),
        message(b'D', b"X\0"),
        message(b'C', b""),
        message(b'F', b"\0\0\0\x01\0\0\0\0\0\0"),
        message(b'p', b"SCRAM-SHA-256"),
        message(b'p', b"SCRAM-SHA-256\0\x7f\xff\xff\xff"),
        message(b'd', b"x"),
        message(0, b""),
        message(0xff, b"x"),
        b"\0\0\0\x08\x04\xd2\x16\x2f".to_vec(),
    ];
    inputs.extend((0..12).map(|seed| noise(seed, 5 + usize::try_from(seed).unwrap_or(0) * 11)));
    inputs
}

fn every_state(server: &Server) -> Result<()> {
    let mut bystander = server.admin()?;
    for (state, reach) in STATES {
        for input in broken() {
            let mut stream = reach(server).with_context(|| (*state).to_owned())?;
            let _closed_early = stream.write_all(&input);
            let _closed_already = stream.shutdown(Shutdown::Write);
            rest_of(&mut stream).with_context(|| format!("{state}, after {input:?}"))?;
        }
        ensure!(bystander.query("SELECT 1")?.len() == 1, "{state}");
    }
    Ok(())
}

/// Clients that vanish in the middle of things are forgotten.
fn sessions_leave_nothing(server: &Server) -> Result<()> {
    let mut bystander = server.admin()?;
    for (state, reach) in STATES {
        drop(reach(server).with_context(|| (*state).to_owned())?);
    }
    let deadline = Instant::now() + ANSWER_WITHIN;
    let count = |bystander: &mut Client| -> Result<Option<String>> {
        let lists =
            "SELECT sum(items)::bigint FROM switchyard.pgbouncer_lists WHERE list IN ('used_clients', 'login_clients')";
        let outcome = bystander.run(lists, Protocol::Simple)?;
        Ok(outcome.rows()?.into_iter().flatten().flatten().next())
    };
    while count(&mut bystander)?.as_deref() != Some("1") {
        ensure!(Instant::now() < deadline, "{:?} connections are left", count(&mut bystander)?);
        std::thread::yield_now();
    }
    Ok(())
}
