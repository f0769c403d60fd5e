//! Hosts of the test's own: network namespaces on one bridge, whose links can be cut, each direction by itself.
//!
//! Nothing is changed in the namespace of whoever runs the tests: the bridge and all ends of the links are in those that are
//! made here. So a test runs inside, in the namespace of the bridge: [`Network::run_inside`].

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::getuid;

/// Which namespaces a test has that runs inside.
const VARIABLE: &str = "SWITCHYARD_TEST_NETWORK";
/// Nobody has this address: what is sent there is lost without a word.
const NOBODY: &str = "02:00:00:00:00:99";
/// The bridge's own host.
const HUB: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 254);

/// Some hosts and the bridge between them. They are gone when this is dropped.
#[derive(Debug)]
pub struct Network {
    prefix: String,
    hosts: u8,
    /// Whether it is to be removed: by whoever made it.
    owned: bool,
}

/// Whether network namespaces can be made: whoever is not root is told that they cannot, and nobody else.
pub fn may_make_networks() -> bool {
    getuid().is_root()
}

impl Network {
    /// Makes a network with so many hosts.
    ///
    /// # Errors
    /// When a namespace or a link cannot be made.
    pub fn new(name: &str, hosts: u8) -> Result<Self> {
        let network = Self { prefix: format!("swy{}{name}", std::process::id()), hosts, owned: true };
        let hub = network.hub();
        ip(&["netns", "add", &hub])?;
        ip(&["-n", &hub, "link", "set", "lo", "up"])?;
        ip(&["-n", &hub, "link", "add", "bridge", "type", "bridge"])?;
        ip(&["-n", &hub, "address", "add", &format!("{HUB}/24"), "dev", "bridge"])?;
        ip(&["-n", &hub, "link", "set", "bridge", "up"])?;
        for number in 1..=hosts {
            let (host, port) = (network.host(number), format!("port{number}"));
            ip(&["netns", "add", &host])?;
            ip(&["link", "add", "uplink", "netns", &host, "type", "veth", "peer", "name", &port, "netns", &hub])?;
            ip(&["-n", &hub, "link", "set", &port, "master", "bridge", "up"])?;
            ip(&["-n", &host, "link", "set", "lo", "up"])?;
            ip(&["-n", &host, "address", "add", &format!("{}/24", network.address(number)), "dev", "uplink"])?;
            ip(&["-n", &host, "link", "set", "uplink", "up"])?;
        }
        Ok(network)
    }

    /// The network that this process was started inside of; none when it was not.
    pub fn around() -> Option<Self> {
        let told = std::env::var(VARIABLE).ok()?;
        let (prefix, hosts) = told.split_once(',')?;
        Some(Self { prefix: prefix.to_owned(), hosts: hosts.parse().ok()?, owned: false })
    }

    /// Runs a program again at the bridge, which reaches all hosts.
    ///
    /// # Errors
    /// When it fails, with what it said.
    pub fn run_inside(&self, program: &Path, arguments: &[&str]) -> Result<()> {
        let output = Command::new("ip")
            .args(["netns", "exec", &self.hub()])
            .arg(program)
            .args(arguments)
            .env(VARIABLE, format!("{},{}", self.prefix, self.hosts))
            .stdin(Stdio::null())
            .output()?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success() && said.contains("1 passed"), "{said}");
        Ok(())
    }

    fn hub(&self) -> String {
        format!("{}hub", self.prefix)
    }

    /// The namespace of a host, from 1.
    pub fn host(&self, number: u8) -> String {
        format!("{}h{number}", self.prefix)
    }

    /// Its address.
    pub fn address(&self, number: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 77, 0, number)
    }

    /// What one host sends another is lost from now on; what that one sends is not.
    ///
    /// # Errors
    /// When there is no such host.
    pub fn cut(&self, from: u8, to: u8) -> Result<()> {
        let (host, address) = (self.host(from), self.address(to).to_string());
        ip(&["-n", &host, "neighbour", "replace", &address, "lladdr", NOBODY, "dev", "uplink", "nud", "permanent"])
    }

    /// The same for what a host sends to the bridge's own host, where the clients are.
    ///
    /// # Errors
    /// When there is no such host.
    pub fn cut_from_clients(&self, from: u8) -> Result<()> {
        let (host, address) = (self.host(from), HUB.to_string());
        ip(&["-n", &host, "neighbour", "replace", &address, "lladdr", NOBODY, "dev", "uplink", "nud", "permanent"])
    }

    /// A host's link goes down, as if its cable were pulled.
    ///
    /// # Errors
    /// When there is no such host.
    pub fn pull(&self, number: u8) -> Result<()> {
        ip(&["-n", &self.host(number), "link", "set", "uplink", "down"])
    }

    /// Everything gets where it should again.
    ///
    /// # Errors
    /// When a link cannot be mended.
    pub fn mend(&self) -> Result<()> {
        for number in 1..=self.hosts {
            let host = self.host(number);
            ip(&["-n", &host, "link", "set", "uplink", "up"])?;
            ip(&["-n", &host, "neighbour", "flush", "dev", "uplink", "nud", "permanent"])?;
        }
        Ok(())
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        if self.owned {
            for number in 1..=self.hosts {
                let _gone = ip(&["netns", "delete", &self.host(number)]);
            }
            let _gone = ip(&["netns", "delete", &self.hub()]);
        }
    }
}

fn ip(arguments: &[&str]) -> Result<()> {
    let output =
        Command::new("ip").args(arguments).stdin(Stdio::null()).output().context("iproute2 is not installed")?;
    if !output.status.success() {
        bail!("ip {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
