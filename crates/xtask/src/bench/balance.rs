//! Connections that ask where to go.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use switchyard_testkit::{Client, LOAD_BALANCE_REQUEST, Server, Store, told};

use super::{Figure, commit, options};

/// How many connections ask while rules change.
const CONNECTIONS: u64 = 20_000;
const CHANGES: u16 = 500;
/// How far the ones may be ahead of the others.
const AHEAD_MAX: u64 = 200;
const CLIENTS: u8 = 4;

/// The port that the version of a change tells is this many above.
const PORTS_FROM: u16 = 20_000;
/// The port of the address that the version's rule does not lead to.
const WRONG_PORT: u16 = 1;

/// How many answers are timed in one go, in turn by the server and by a bare loop.
const ANSWERS: u64 = 5_000;
const ROUNDS: u64 = 4;
const ANSWERS_PER_SECOND_MIN: f64 = 5_000.0;

/// Linux counts a process's time in hundredths of a second.
const TICKS_PER_SECOND: f64 = 100.0;

/// Decisions under changing rules, and the rate of answers.
pub fn measure(binary: &PathBuf) -> Result<Vec<Figure>> {
    let server = options(binary)?.store(Store::Memory).quickstart().start()?;
    let mut admin = server.admin()?;
    commit(
        &mut admin,
        &format!(
            "CREATE NETWORK ADDRESS even ON v_switchyard_node0002 WITH '127.0.0.1' PORT {PORTS_FROM};
             CREATE NETWORK ADDRESS odd ON v_switchyard_node0002 WITH '127.0.0.1' PORT {WRONG_PORT};
             CREATE LOAD BALANCE GROUP even WITH ADDRESS even;
             CREATE LOAD BALANCE GROUP odd WITH ADDRESS odd;
             CREATE ROUTING RULE changing ROUTE '127.0.0.0/16' TO even"
        ),
    )?;
    let mut figures = while_rules_change(&server, &mut admin)?;
    figures.extend(rate_of_answers(&server)?);
    admin.close()?;
    server.finish()?;
    Ok(figures)
}

/// The changes and the connections, as all threads see them.
#[derive(Default)]
struct Progress {
    asked: AtomicU64,
    begun: AtomicU16,
    committed: AtomicU16,
    failed: AtomicU64,
    mixed: AtomicU64,
}

/// Connections and changes go side by side: neither gets far ahead of the other.
fn while_rules_change(server: &Server, admin: &mut Client) -> Result<Vec<Figure>> {
    let progress = Progress::default();
    let started = Instant::now();
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let progress = &progress;
            scope.spawn(
                move || {
                    while ask(server.port(), source(client, progress.asked.load(Ordering::SeqCst)), progress) {}
                },
            );
        }
        let changed = (1..=CHANGES).try_for_each(|number| {
            while progress.asked.load(Ordering::SeqCst) < due(number - 1) {
                std::thread::yield_now();
            }
            change(admin, number, &progress)
        });
        // Those who wait for a change that has failed would wait for ever.
        progress.committed.store(CHANGES, Ordering::SeqCst);
        changed
    })?;
    let rate = CONNECTIONS as f64 / started.elapsed().as_secs_f64();
    let count = |counter: &AtomicU64| counter.load(Ordering::SeqCst) as f64;
    Ok(vec![
        Figure::at_most("20,000 connections while 500 rules changed: failed", count(&progress.failed), 0.0, ""),
        Figure::at_most("the same: decided by no single version", count(&progress.mixed), 0.0, ""),
        Figure::plain("the same: connections per second", format!("{rate:.0} /s")),
    ])
}

/// How many connections have asked when this many changes are made.
fn due(changes: u16) -> u64 {
    CONNECTIONS * u64::from(changes) / u64::from(CHANGES)
}

/// Each version leads to another address, at a port of its own: one transaction changes all of it.
fn change(admin: &mut Client, number: u16, progress: &Progress) -> Result<()> {
    let (right, wrong) = if number.is_multiple_of(2) { ("even", "odd") } else { ("odd", "even") };
    progress.begun.store(number, Ordering::SeqCst);
    let port = PORTS_FROM + number;
    commit(
        admin,
        &format!(
            "ALTER NETWORK ADDRESS {right} SET TO '127.0.0.1' PORT {port};
             ALTER NETWORK ADDRESS {wrong} SET TO '127.0.0.1' PORT {WRONG_PORT};
             ALTER ROUTING RULE changing SET GROUP TO {right}"
        ),
    )?;
    progress.committed.store(number, Ordering::SeqCst);
    Ok(())
}

/// Asks once, and says whether to go on.
fn ask(port: u16, source: Ipv4Addr, progress: &Progress) -> bool {
    let place = progress.asked.fetch_add(1, Ordering::SeqCst);
    if place >= CONNECTIONS {
        return false;
    }
    while place > due(progress.committed.load(Ordering::SeqCst)) + AHEAD_MAX {
        std::thread::yield_now();
    }
    let committed = progress.committed.load(Ordering::SeqCst);
    match told(source, port) {
        Ok(Some(told)) => {
            let versions = PORTS_FROM + committed..=PORTS_FROM + progress.begun.load(Ordering::SeqCst);
            progress.mixed.fetch_add(u64::from(!versions.contains(&told)), Ordering::SeqCst);
        }
        Ok(None) | Err(_) => {
            progress.failed.fetch_add(1, Ordering::SeqCst);
        }
    }
    true
}

/// One of many addresses: from one alone there are fewer free ports than connections that have just been closed.
fn source(client: u8, place: u64) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 1 + client, 1 + u8::try_from(place % 100).unwrap_or_default())
}

/// The server's listener against a loop that does nothing but accept, read, write and close; in turn, so that both meet
/// the same machine.
fn rate_of_answers(server: &Server) -> Result<Vec<Figure>> {
    let bare = Bare::start()?;
    let (mut answering, mut looping, mut worked) = (Duration::ZERO, Duration::ZERO, 0.0);
    for _ in 0..ROUNDS {
        let before = processor_seconds(server)?;
        answering += answers_of(server.port())?;
        worked += processor_seconds(server)? - before;
        looping += answers_of(bare.port)?;
    }
    bare.end()?;
    let rate = |seconds: f64| (ANSWERS * ROUNDS) as f64 / seconds;
    let (answered, looped) = (rate(answering.as_secs_f64()), rate(looping.as_secs_f64()));
    Ok(vec![
        Figure::at_least("redirect answers per second and core", rate(worked), ANSWERS_PER_SECOND_MIN, "/s"),
        Figure::plain("redirect answers per second, four clients", format!("{answered:.0} /s")),
        Figure::plain("a bare loop of accept, read, write, close", format!("{looped:.0} /s")),
        Figure::plain("rate of answers over rate of the bare loop", format!("{:.2}", answered / looped)),
    ])
}

/// How long some clients take to be answered so often in all.
fn answers_of(port: u16) -> Result<Duration> {
    let started = Instant::now();
    std::thread::scope(|scope| {
        let each = ANSWERS / u64::from(CLIENTS);
        let asking = |client| move || (0..each).try_for_each(|place| told(source(client, place), port).map(drop));
        let clients: Vec<_> = (0..CLIENTS).map(|client| scope.spawn(asking(client))).collect();
        for client in clients {
            client.join().ok().context("a client panicked")??;
        }
        Ok::<_, anyhow::Error>(())
    })?;
    Ok(started.elapsed())
}

/// The processor time that the server has used, in seconds.
fn processor_seconds(server: &Server) -> Result<f64> {
    let id = server.process_id().context("the server does not run")?;
    let text = std::fs::read_to_string(format!("/proc/{id}/stat"))?;
    // Behind the program's name, which may hold anything: utime and stime are the 12th and 13th.
    let (_, rest) = text.rsplit_once(')').context("no program's name")?;
    let ticks: Vec<u64> = rest.split_whitespace().skip(11).take(2).map(str::parse).collect::<Result<_, _>>()?;
    ensure!(ticks.len() == 2, "no processor time in {rest:?}");
    Ok(ticks.iter().sum::<u64>() as f64 / TICKS_PER_SECOND)
}

/// The loop, in a thread of its own.
struct Bare {
    port: u16,
    over: std::sync::Arc<AtomicBool>,
    thread: std::thread::JoinHandle<std::io::Result<()>>,
}

impl Bare {
    fn start() -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let over = std::sync::Arc::new(AtomicBool::new(false));
        let ends = std::sync::Arc::clone(&over);
        let answer = [&b"Y\0\0\0\x12\0\0"[..], &port.to_be_bytes(), b"127.0.0.1\0"].concat();
        let thread = std::thread::spawn(move || {
            loop {
                let (mut stream, _) = listener.accept()?;
                if ends.load(Ordering::SeqCst) {
                    return Ok(());
                }
                let mut request = [0; LOAD_BALANCE_REQUEST.len()];
                stream.read_exact(&mut request)?;
                stream.write_all(&answer)?;
            }
        });
        Ok(Self { port, over, thread })
    }

    fn end(self) -> Result<()> {
        self.over.store(true, Ordering::SeqCst);
        // It waits for one more.
        std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?;
        self.thread.join().ok().context("the loop panicked")??;
        Ok(())
    }
}
