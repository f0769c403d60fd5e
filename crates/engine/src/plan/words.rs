//! Words of statements as values: names, addresses, networks, numbers.

use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net};
use switchyard_catalog::{Host, Name, Network, Policy, Secret, Verifiers};
use switchyard_dialect::{Ident, OrDefault};

use super::PlanContext;
use crate::error::{HostFault, PlanError, Warning};
use crate::settings;

/// The port of a node or an address that names none.
pub(super) const PORT_DEFAULT: u16 = 5433;

pub(super) fn name(ident: &Ident) -> Result<Name, PlanError> {
    Ok(Name::parse(&ident.0)?)
}

pub(super) fn names(idents: &[Ident]) -> Result<Vec<Name>, PlanError> {
    idents.iter().map(name).collect()
}

/// Checks that a statement about the database names it, or says DEFAULT.
pub(crate) fn database(named: &OrDefault, context: &PlanContext<'_>) -> Result<(), PlanError> {
    let OrDefault::Named(ident) = named else { return Ok(()) };
    let database = &context.catalog.database().name;
    match Name::parse(&ident.0) {
        Ok(name) if name == *database => Ok(()),
        _ => Err(PlanError::WrongDatabase { name: ident.0.clone(), database: database.clone() }),
    }
}

pub(super) fn port(port: Option<u64>) -> Result<Option<u16>, PlanError> {
    let Some(port) = port else { return Ok(None) };
    match u16::try_from(port) {
        Ok(port) if port > 0 => Ok(Some(port)),
        _ => Err(PlanError::Range { what: "port", value: port.to_string(), min: 1, max: u64::from(u16::MAX) }),
    }
}

pub(super) fn priority(priority: u64) -> Result<u32, PlanError> {
    u32::try_from(priority).map_err(|_| PlanError::Range {
        what: "priority",
        value: priority.to_string(),
        min: 0,
        max: u64::from(u32::MAX),
    })
}

pub(super) fn policy(text: &str) -> Result<Policy, PlanError> {
    Policy::parse(text).ok_or_else(|| PlanError::Word {
        what: "load balance policy",
        value: text.to_owned(),
        available: Policy::ALL.map(Policy::as_str).join(", "),
    })
}

/// The address of a network address or interface: loopback only where the operator allowed it.
pub(super) fn client_host(text: &str, context: &PlanContext<'_>) -> Result<Host, PlanError> {
    let host = host(text)?;
    let loopback = match &host {
        Host::Ip(ip) => ip.to_canonical().is_loopback(),
        Host::Dns(name) => name.eq_ignore_ascii_case("localhost"),
    };
    if loopback && !settings::is_on("allow_loopback_addresses", context.session, context.catalog) {
        return Err(PlanError::Address { text: text.to_owned(), fault: HostFault::Loopback });
    }
    Ok(host)
}

/// The address of a client.
pub(super) fn parse_address(text: &str) -> Result<IpAddr, PlanError> {
    text.trim().parse().map_err(|_| PlanError::Address { text: text.to_owned(), fault: HostFault::NoAddress })
}

/// An IP address or a host name.
pub(super) fn host(text: &str) -> Result<Host, PlanError> {
    if let Ok(ip) = text.parse::<IpAddr>() {
        return Ok(Host::Ip(ip));
    }
    if is_host_name(text) {
        return Ok(Host::Dns(text.to_owned()));
    }
    Err(PlanError::Address { text: text.to_owned(), fault: HostFault::Malformed })
}

/// Letters, digits, hyphens and underscores in labels; not digits alone, which are an address gone wrong.
fn is_host_name(text: &str) -> bool {
    let text = text.strip_suffix('.').unwrap_or(text);
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let last = text.rsplit('.').next().unwrap_or_default();
    text.len() <= 253 && text.split('.').all(label) && !last.bytes().all(|b| b.is_ascii_digit())
}

/// A subnet's prefix: an address, without a length.
pub(super) fn prefix(text: &str) -> Result<IpAddr, PlanError> {
    text.parse().map_err(|_| PlanError::Address { text: text.to_owned(), fault: HostFault::NoPrefix })
}

/// That a network without a length is one address is right, and seldom what was meant.
pub(super) fn single_address(text: &str) -> Option<Warning> {
    let network = parse_network(text).filter(|_| !text.contains('/'))?;
    Some(Warning::notice(format!("\"{text}\" has no length and is the single address {}", network.net)))
}

pub(super) fn network(text: &str) -> Result<Network, PlanError> {
    parse_network(text).ok_or_else(|| PlanError::Network { text: text.to_owned() })
}

/// Reads a network in CIDR notation; a bare address is /32 or /128, host bits are masked off, and an IPv4-mapped
/// network is the IPv4 one, since clients' addresses are unmapped too.
pub fn parse_network(text: &str) -> Option<Network> {
    // "/08" may be meant as octal, or be a slip.
    if text.split_once('/').is_some_and(|(_, length)| length.len() > 1 && length.starts_with('0')) {
        return None;
    }
    let net = match text.parse::<IpNet>() {
        Ok(net) => net,
        Err(_) => IpNet::from(text.parse::<IpAddr>().ok()?),
    };
    let net = match net {
        IpNet::V6(v6) if v6.prefix_len() >= 96 && v6.network().to_ipv4_mapped().is_some() => {
            let address = v6.network().to_ipv4_mapped()?;
            IpNet::V4(Ipv4Net::new(address, v6.prefix_len().checked_sub(96)?).ok()?)
        }
        other => other,
    };
    Some(Network { typed: text.to_owned(), net: net.trunc() })
}

/// Where a text begins like this, it is verifiers and no password.
const SCRAM_PREFIX: &str = "SCRAM-SHA-256$";

/// All verifiers in one text, as dumps print it and IDENTIFIED BY takes it:
/// `SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>;sha512:<hash>:<salt>[;md5:<hash>]`. The first alone is what
/// psql's `\password` sends; such a user cannot log in with Vertica's protocol, but for TLS.
pub fn verifiers_text(verifiers: &Verifiers) -> String {
    let others = [Some(&verifiers.sha512), verifiers.md5.as_ref()];
    let mut text = verifiers.scram.reveal().to_owned();
    for other in others.into_iter().flatten().map(|other| other.reveal()).filter(|other| !other.is_empty()) {
        text.push(';');
        text.push_str(other);
    }
    text
}

/// Reads that text: `None` when it is a password, an error when it is neither.
///
/// # Errors
/// When the text begins like verifiers and goes on otherwise.
pub fn parse_verifiers(text: &str) -> Result<Option<Verifiers>, PlanError> {
    if !text.starts_with(SCRAM_PREFIX) {
        return Ok(None);
    }
    let parts: Vec<&str> = text.split(';').collect();
    let (scram, sha512, md5) = match parts.as_slice() {
        [scram] => (*scram, "", None),
        [scram, sha512] if is_sha512(sha512) => (*scram, *sha512, None),
        [scram, sha512, md5] if is_sha512(sha512) && is_md5(md5) => (*scram, *sha512, Some(*md5)),
        _ => return Err(PlanError::Verifier),
    };
    if !is_scram(scram) {
        return Err(PlanError::Verifier);
    }
    Ok(Some(Verifiers { scram: Secret::new(scram), sha512: Secret::new(sha512), md5: md5.map(Secret::new) }))
}

fn is_scram(text: &str) -> bool {
    let base64 = |text: &str, len: Option<usize>| {
        len.is_none_or(|len| text.len() == len)
            && !text.is_empty()
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/=".contains(&b))
    };
    let parts: Vec<&str> = text.strip_prefix(SCRAM_PREFIX).unwrap_or_default().split(['$', ':']).collect();
    match parts.as_slice() {
        [iterations, salt, stored, server] => {
            let iterations = iterations.parse::<u32>().is_ok_and(|count| (1..=10_000_000).contains(&count));
            // 32 bytes are 44 characters of base64.
            iterations && base64(salt, None) && base64(stored, Some(44)) && base64(server, Some(44))
        }
        _ => false,
    }
}

fn hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit())
}

fn is_md5(text: &str) -> bool {
    text.strip_prefix("md5:").is_some_and(|hash| hash.len() == 32 && hex(hash))
}

fn is_sha512(text: &str) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    matches!(parts.as_slice(), ["sha512", hash, salt] if hash.len() == 128 && hex(hash) && hex(salt))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_read_as_typed_and_match_masked() {
        for (text, net) in [
            ("10.1.2.3/8", Some("10.0.0.0/8")),
            ("10.1.2.3", Some("10.1.2.3/32")),
            ("2001:db8::1", Some("2001:db8::1/128")),
            ("::/0", Some("::/0")),
            ("::ffff:10.0.0.0/104", Some("10.0.0.0/8")),
            ("10.0.0.0/33", None),
            ("10.0.0.0/08", None),
            ("10.0.0.0/00", None),
            ("10.0.0.0/0", Some("0.0.0.0/0")),
            ("300.0.0.0/8", None),
            ("10.0.0.0/-1", None),
            ("example.com", None),
            ("", None),
        ] {
            let parsed = parse_network(text);
            assert_eq!(parsed.as_ref().map(|network| network.net.to_string()).as_deref(), net, "{text}");
            assert!(parsed.is_none_or(|network| network.typed == text));
        }
    }

    #[test]
    fn hosts_are_addresses_or_names() {
        for good in ["10.0.0.1", "::1", "router.example.com", "node_1", "a-b.c."] {
            assert!(host(good).is_ok(), "{good}");
        }
        for bad in ["", "300.1.1.1", "10.0.0", "a b", "-a.example", "a..b", "10.0.0.1/8", "x;drop"] {
            assert!(host(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn verifiers_are_told_from_passwords() {
        let scram = format!("SCRAM-SHA-256$4096:c2FsdA==${}:{}", "A".repeat(44), "B".repeat(44));
        let good = format!("{scram};sha512:{}:00ff", "a".repeat(128));
        assert!(matches!(parse_verifiers(&good), Ok(Some(verifiers)) if verifiers_text(&verifiers) == good));
        assert!(matches!(parse_verifiers(&scram), Ok(Some(verifiers)) if verifiers_text(&verifiers) == scram));
        let all = format!("{good};md5:{}", "0".repeat(32));
        assert!(matches!(parse_verifiers(&all), Ok(Some(verifiers)) if verifiers_text(&verifiers) == all));
        assert_eq!(parse_verifiers(&format!("{scram};md5:{}", "0".repeat(32))), Err(PlanError::Verifier));
        assert_eq!(parse_verifiers(&format!("{good};md5:0")), Err(PlanError::Verifier));
        assert!(matches!(parse_verifiers("a password"), Ok(None)));
        for bad in [&format!("{scram};"), "SCRAM-SHA-256$", "SCRAM-SHA-256$4096:x$y:z;sha512:a:b"] {
            assert_eq!(parse_verifiers(bad), Err(PlanError::Verifier), "{bad}");
        }
    }
}
