//! Everything has a limit, and the limit has a name.

use std::time::Duration;

use switchyard_wire::startup::STARTUP_BYTES_MAX;

/// When a connection on which nothing happens is probed, and given up. 0 is the operating system's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeepAlive {
    /// How long nothing must happen before the first probe, in seconds.
    pub idle_s: u32,
    /// Between two probes, in seconds.
    pub interval_s: u32,
    /// How many get no answer before the connection is given up.
    pub probes: u32,
}

/// The settings that bound what a client can do by logging in, and with every message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// From the first byte to AuthenticationOk, in milliseconds.
    pub login_time_ms_max: u64,
    /// The longest startup packet, in bytes.
    pub startup_bytes_max: usize,
    /// The longest message of a client that has logged in, in bytes.
    pub message_bytes_max: usize,
    /// Logins under way at once.
    pub logins_max: usize,
    /// Sessions at once.
    pub connections_max: usize,
    /// How many of them are kept for superusers.
    pub connections_reserved: usize,
    /// How long the first failed login from an address waits for its answer, in milliseconds. Each further one waits
    /// twice as long.
    pub throttle_delay_ms_min: u64,
    /// How long a failed login waits at most, in milliseconds.
    pub throttle_delay_ms_max: u64,
    /// How long after the last failed login an address is forgotten, in milliseconds.
    pub throttle_window_ms: u64,
    /// How many addresses with failed logins are told apart.
    pub throttle_addresses_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            login_time_ms_max: 60_000,
            startup_bytes_max: STARTUP_BYTES_MAX,
            message_bytes_max: 16 * 1024 * 1024 + 1024,
            logins_max: 1_000,
            connections_max: 10_000,
            connections_reserved: 3,
            throttle_delay_ms_min: 100,
            throttle_delay_ms_max: 5_000,
            throttle_window_ms: 600_000,
            throttle_addresses_max: 10_000,
        }
    }
}

impl Limits {
    pub(crate) fn login_time(&self) -> Duration {
        Duration::from_millis(self.login_time_ms_max)
    }
}
