//! Stores and other processes: who has the file, and what is left when a process is killed.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};

use libtest_mimic::{Arguments, Trial};
use switchyard_store::{OpenError, Outcome, RedbStore, Store};
use tokio::runtime::{Builder, Runtime};

use crate::support::*;

#[path = "store/support.rs"]
mod support;

/// Says which part a child plays.
const ROLE: &str = "SWITCHYARD_STORE_TEST_ROLE";
/// Says on which file.
const PATH: &str = "SWITCHYARD_STORE_TEST_PATH";

fn main() -> ExitCode {
    if let (Ok(role), Some(path)) = (env::var(ROLE), env::var_os(PATH)) {
        match role.as_str() {
            "hold" => hold(path.as_ref()),
            _ => commit_for_ever(path.as_ref()),
        }
        return ExitCode::SUCCESS;
    }
    let tests = vec![
        Trial::test("another_process_is_locked_out", || {
            another_process_is_locked_out();
            Ok(())
        }),
        Trial::test("what_was_acknowledged_survives_kill", || {
            what_was_acknowledged_survives_kill();
            Ok(())
        }),
    ];
    libtest_mimic::run(&Arguments::from_args(), tests).exit_code()
}

fn child(role: &str, path: &Path) -> Child {
    Command::new(env::current_exe().unwrap())
        .env(ROLE, role)
        .env(PATH, path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).build().unwrap()
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // One write a line, so that no half line is ever read.
    out.write_all(format!("{line}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

/// The child that opens the store and waits until its input ends.
fn hold(path: &Path) {
    let _store = RedbStore::open(path).unwrap();
    say("open");
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

fn another_process_is_locked_out() {
    let folder = folder();
    let path = folder.path().join("catalog");
    let mut holder = child("hold", &path);
    let mut line = String::new();
    BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "open\n");
    let before = fs::read(&path).unwrap();
    let error = RedbStore::open(&path).unwrap_err();
    assert!(matches!(error, OpenError::Locked { .. }), "{error:?}");
    assert_eq!(error.to_string(), format!("the store {} is in use by another process", path.display()));
    assert!(fs::read(&path).unwrap() == before);
    drop(holder.stdin.take());
    assert!(holder.wait().unwrap().success());
    RedbStore::open(&path).unwrap();
}

/// The child that commits until it is killed, and says what was acknowledged.
fn commit_for_ever(path: &Path) {
    let store = RedbStore::open(path).unwrap();
    runtime().block_on(async {
        let mut head = store.load().await.unwrap().map_or(0, |loaded| loaded.version);
        loop {
            head = store.commit(if head == 0 { first() } else { next(head) }).await.unwrap().version;
            say(&head.to_string());
            if head.is_multiple_of(3) {
                let outcome = Outcome::Refused { sqlstate: "42601".to_owned(), message: "syntax error".to_owned() };
                store.note_refusal(head, record("CREATE"), outcome).await.unwrap();
            }
        }
    });
}

/// Starts the child, kills it after some commits, and says what it acknowledged last, if anything.
fn killed(path: &Path, commits: usize, turns: usize) -> Option<u64> {
    let mut child = child("commit", path);
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut lines = String::new();
    for _ in 0..commits {
        assert!(out.read_line(&mut lines).unwrap() > 0, "the child ended by itself");
    }
    // Somewhere in the next commit.
    for turn in 0..turns {
        std::hint::black_box(turn);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    out.read_to_string(&mut lines).unwrap();
    lines.lines().last().map(|line| line.parse().unwrap())
}

fn what_was_acknowledged_survives_kill() {
    let folder = folder();
    let path = folder.path().join("catalog");
    let mut chance = Chance(u64::from(std::process::id()) + 1);
    let mut acknowledged = 0;
    for round in 0..24 {
        // The first ones are killed while they make the file, or read it.
        let commits = if round < 4 { 0 } else { chance.below(12) };
        if let Some(last) = killed(&path, commits, chance.below(2_000_000)) {
            assert!(last > acknowledged, "{last} came after {acknowledged}");
            acknowledged = last;
        }
        // Every other time the next child finds what the killed one left.
        if round % 2 == 1 {
            acknowledged = check(&path, acknowledged);
        }
    }
    assert!(acknowledged > 50, "only {acknowledged} commits in all");
}

/// Looks whether all that was acknowledged is there, and nothing by half. The newest version.
fn check(path: &Path, acknowledged: u64) -> u64 {
    let store = RedbStore::open(path).unwrap();
    runtime().block_on(async {
        let Some(loaded) = store.load().await.unwrap() else {
            assert_eq!(acknowledged, 0);
            return 0;
        };
        // Each child may have committed once more than it could say.
        let version = loaded.version;
        assert!(version >= acknowledged, "version {version} of {acknowledged}");
        assert_eq!(loaded.id_next, RULE_FIRST + version);
        assert_eq!(sorted(loaded.entities.clone()), entities_at(version));
        let history = store.history(0, usize::MAX).await.unwrap();
        let commits = history.iter().filter(|entry| entry.outcome == Outcome::Committed).map(|entry| entry.version);
        assert_eq!(commits.collect::<Vec<_>>(), (1..=version).collect::<Vec<_>>());
        let newest = catalog(version, loaded.entities);
        let first = store.catalog_at(&newest, 1).await.unwrap().unwrap();
        assert_eq!(sorted(first.entities()), entities_at(1));
        version
    })
}
