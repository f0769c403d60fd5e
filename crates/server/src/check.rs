//! `switchyard check`.

use std::io::{self, Write};
use std::process::ExitCode;

use switchyard_session::Tls;

use crate::settings::{Located, Settings};
use crate::{FAILURE, MISUSE, is_misuse, storage};

/// Prints every fault on a line of its own, place first, or that there is none.
pub(crate) fn report(settings: Result<&Settings, &[Located]>) -> ExitCode {
    match settings {
        Ok(settings) => {
            let tls = settings.tls().map_or_else(Vec::new, |options| Tls::check(&options));
            let mut faults: Vec<String> = tls.iter().map(ToString::to_string).collect();
            faults.extend(storage::etcd_options(settings).err().map(|error| format!("{error:#}")));
            if faults.is_empty() {
                return correct();
            }
            for fault in faults {
                // The exit code says it too.
                let _told = writeln!(io::stderr(), "{fault}");
            }
            FAILURE.into()
        }
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
