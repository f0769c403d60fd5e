//! Logs, to standard error: standard output belongs to the ready line.

use std::io::{self, IsTerminal};

use crate::settings::{LogFilter, LogFormat};

/// Starts logging. A second call has no effect.
pub(crate) fn start(filter: &LogFilter, format: LogFormat) {
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter.filter())
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal() && format == LogFormat::Text);
    // The only failure is that logging has been started before.
    let _already = match format {
        LogFormat::Text => lines.try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
}
