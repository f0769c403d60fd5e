//! `switchyard check`.

use std::io::{self, Write};
use std::process::ExitCode;

use crate::settings::Located;
use crate::{FAILURE, MISUSE, is_misuse};

/// Prints every fault on a line of its own, place first, or that there is none.
pub(crate) fn report(settings: Result<(), &[Located]>) -> ExitCode {
    match settings {
        Ok(()) => match writeln!(io::stdout(), "the configuration is correct") {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => FAILURE.into(),
        },
        Err(faults) => {
            for fault in faults {
                // The exit code says it too.
                let _told = writeln!(io::stderr(), "{fault}");
            }
            if faults.iter().any(is_misuse) { MISUSE.into() } else { FAILURE.into() }
        }
    }
}
