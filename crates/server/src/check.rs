//! `switchyard check`.

use std::io::{self, Write};
use std::process::ExitCode;

use switchyard_session::Tls;

use crate::settings::{Located, Settings};
use crate::{FAILURE, MISUSE, is_misuse, storage};

/// Prints every fault on a line of its own, place first, or that there is none.
pub(crate) fn report(settings: Result<&Settings, &[Located]>) -> ExitCode {
    match settings {
        Ok(settings) => match settings.tls().map(Tls::open) {
            Some(Err(error)) => {
                // The exit code says it too.
                let _told = writeln!(io::stderr(), "{error}");
                FAILURE.into()
            }
            _ => match storage::etcd_options(settings) {
                Err(error) => {
                    let _told = writeln!(io::stderr(), "{error:#}");
                    FAILURE.into()
                }
                Ok(_) => correct(),
            },
        },
        Err(faults) => {
            for fault in faults {
                let _told = writeln!(io::stderr(), "{fault}");
            }
            if faults.iter().any(is_misuse) { MISUSE.into() } else { FAILURE.into() }
        }
    }
}

fn correct() -> ExitCode {
    match writeln!(io::stdout(), "the configuration is correct") {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => FAILURE.into(),
    }
}
