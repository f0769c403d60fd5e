//! Failed logins wait for their answer, the longer the more of them came from one address. Only the failed login itself
//! waits: one that succeeds is never held up by what others from its address did.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use dashmap::DashMap;
use tokio::time::Instant;

use crate::limits::Limits;

/// All peers without an address, and all addresses there is no room for.
const SHARED: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// The failed logins of each address.
#[derive(Debug, Default)]
pub struct Throttle {
    addresses: DashMap<IpAddr, Failures>,
}

#[derive(Debug, Clone, Copy)]
struct Failures {
    count: u32,
    last: Instant,
}

impl Throttle {
    /// Notes a failed login and says how long it shall wait for its answer.
    pub fn failed(&self, address: Option<IpAddr>, now: Instant, limits: &Limits) -> Duration {
        let key = self.key(address, now, limits);
        let mut failures = self.addresses.entry(key).or_insert(Failures { count: 0, last: now });
        let stale = is_stale(&failures, now, limits);
        failures.count = if stale { 1 } else { failures.count.saturating_add(1) };
        failures.last = now;
        let factor = 1_u64.checked_shl(failures.count.saturating_sub(1)).unwrap_or(u64::MAX);
        let delay_ms = limits.throttle_delay_ms_min.saturating_mul(factor).min(limits.throttle_delay_ms_max);
        Duration::from_millis(delay_ms)
    }

    /// How many addresses have failed lately.
    pub fn addresses(&self) -> usize {
        self.addresses.len()
    }

    fn key(&self, address: Option<IpAddr>, now: Instant, limits: &Limits) -> IpAddr {
        let key = address.map_or(SHARED, network);
        if self.addresses.contains_key(&key) || self.addresses.len() < limits.throttle_addresses_max {
            return key;
        }
        self.addresses.retain(|_, failures| !is_stale(failures, now, limits));
        if self.addresses.len() < limits.throttle_addresses_max { key } else { SHARED }
    }
}

fn is_stale(failures: &Failures, now: Instant, limits: &Limits) -> bool {
    now.saturating_duration_since(failures.last) > Duration::from_millis(limits.throttle_window_ms)
}

/// A host with IPv6 has a whole /64 to come from.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn ip(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn delays_grow_to_a_maximum_and_are_forgotten() {
        let (throttle, limits, now) = (Throttle::default(), Limits::default(), Instant::now());
        let delays: Vec<_> = (0..70).map(|_| throttle.failed(ip("10.0.0.1"), now, &limits).as_millis()).collect();
        assert_eq!(delays.iter().take(8).copied().collect::<Vec<_>>(), [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        assert_eq!(delays.last(), Some(&5000));
        assert_eq!(throttle.failed(ip("10.0.0.2"), now, &limits).as_millis(), 100);
        let later = now + Duration::from_millis(limits.throttle_window_ms + 1);
        assert_eq!(throttle.failed(ip("10.0.0.1"), later, &limits).as_millis(), 100);
    }

    #[test]
    fn a_network_of_ipv6_counts_as_one() {
        let (throttle, limits, now) = (Throttle::default(), Limits::default(), Instant::now());
        assert_eq!(throttle.failed(ip("fd00::1"), now, &limits).as_millis(), 100);
        assert_eq!(throttle.failed(ip("fd00::ffff:2"), now, &limits).as_millis(), 200);
        assert_eq!(throttle.failed(ip("fd00:0:0:1::1"), now, &limits).as_millis(), 100);
    }

    #[test]
    fn memory_is_bounded() {
        let limits = Limits { throttle_addresses_max: 2, ..Limits::default() };
        let (throttle, now) = (Throttle::default(), Instant::now());
        for host in 1..=50 {
            throttle.failed(ip(&format!("10.0.0.{host}")), now, &limits);
        }
        assert_eq!(throttle.addresses(), 3, "two of their own, and the rest as one");
        assert_eq!(throttle.failed(ip("10.0.0.77"), now, &limits).as_millis(), 5000);
        let later = now + Duration::from_millis(limits.throttle_window_ms + 1);
        assert_eq!(throttle.failed(ip("10.0.0.77"), later, &limits).as_millis(), 100);
        assert_eq!(throttle.addresses(), 1);
    }
}
