//! The `switchyard` binary: flags, wiring, signals. No logic.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

mod certificates;
mod check;
mod cluster;
mod command_line;
mod data;
mod dump;
mod first_start;
mod health;
mod http;
mod keep_alive;
mod listener;
mod logging;
mod member;
mod open_files;
mod peers;
mod quickstart;
mod serve;
mod settings;
mod stopping;
mod storage;
mod takeover;

use settings::{Command, Flags, Located, Place, Settings, Sources};

/// The exit code of misuse, as in `sysexits.h`.
const MISUSE: u8 = 64;

/// The exit code of everything else that goes wrong.
const FAILURE: u8 = 1;

fn main() -> ExitCode {
    let invocation = match command_line::parse(std::env::args_os()) {
        Ok(invocation) => invocation,
        Err(error) => {
            // Help and version are "errors" that go to standard output. Nothing can be done when printing fails.
            let _printed = error.print();
            return if error.use_stderr() { MISUSE.into() } else { ExitCode::SUCCESS };
        }
    };
    let settings = resolve(invocation.command, invocation.flags);
    match (invocation.command, settings) {
        (Command::Check, settings) => check::report(settings.as_ref().map_err(Vec::as_slice)),
        (Command::Quickstart, Ok(settings)) => serve::start(settings, quickstart::run),
        (Command::Serve, Ok(settings)) => serve::serve(settings),
        (Command::Dump, Ok(settings)) => dump::dump(&settings),
        (_, Err(faults)) => {
            for fault in &faults {
                complain(&fault.to_string());
            }
            MISUSE.into()
        }
    }
}

fn resolve(command: Command, flags: Flags) -> Result<Settings, Vec<Located>> {
    let variables: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    Settings::resolve(Sources { command, flags, variables, read: |path: &Path| std::fs::read_to_string(path) })
}

/// Says what is wrong, to whoever typed the command.
fn complain(what: &str) {
    // With standard error closed there is nobody to tell.
    let _told = writeln!(io::stderr(), "switchyard: {what}");
}

/// Whether a fault is of the command line.
fn is_misuse(fault: &Located) -> bool {
    matches!(fault.place, Place::Flag(_))
}
