//! Network addresses, network interfaces and subnets (`reference/vertica-sql.md` §1, §6.1).

use std::net::IpAddr;
use std::sync::Arc;

use super::Outcome;
use super::draft::{Draft, distinct, with};
use crate::catalog::Entity;
use crate::change::{AddressChange, InterfaceChange};
use crate::entity::*;
use crate::error::{AddressFault, CatalogError, ObjectKind};
use crate::id::*;
use crate::name::Name;

/// Refuses port 0.
pub(super) fn check_port(port: u16) -> Outcome {
    if port == 0 {
        return Err(CatalogError::OutOfRange { what: "port", value: 0, min: 1, max: u64::from(u16::MAX) });
    }
    Ok(())
}

/// Refuses addresses at which clients could not reach the node. A node on loopback is reached on loopback.
fn check_host(host: &Host, node: &Node) -> Outcome {
    let fault = match host {
        Host::Dns(name) if name.is_empty() => AddressFault::Empty,
        Host::Dns(_) => return Ok(()),
        Host::Ip(ip) => match ip.to_canonical() {
            ip if ip.is_unspecified() => AddressFault::Unspecified,
            ip if ip.is_multicast() && !is_of_examples(ip) => AddressFault::Multicast,
            IpAddr::V4(ip) if ip.is_broadcast() => AddressFault::Broadcast,
            ip if ip.is_loopback() && !is_on_loopback(node) => AddressFault::Loopback,
            _ => return Ok(()),
        },
    };
    Err(CatalogError::BadAddress { host: host.to_string(), fault })
}

/// MCAST-TEST-NET (RFC 6676): no group has such an address, and the seeds' examples call nodes by them.
fn is_of_examples(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V4(ip) if ip.octets().starts_with(&[233, 252, 0]))
}

fn is_on_loopback(node: &Node) -> bool {
    node.host.eq_ignore_ascii_case("localhost")
        || node.host.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
}

/// What network addresses and interfaces have in common, and can be changed.
struct Place<'a> {
    name: &'a mut Name,
    host: &'a mut Host,
    port: &'a mut u16,
    enabled: &'a mut bool,
}

impl Draft {
    /// Addresses and interfaces share their names.
    fn address_name_free(&self, name: &Name, own: Option<&Name>) -> Outcome {
        self.network_address_name_free(name, own)?;
        self.network_interface_name_free(name, own)
    }

    /// The node that a new address or interface is on.
    fn place(&self, name: &Name, node: &Name, host: &Host, port: u16) -> Result<NodeId, CatalogError> {
        self.address_name_free(name, None)?;
        let node = self.node(node)?;
        check_host(host, &node)?;
        check_port(port)?;
        Ok(node.id)
    }

    /// Changes an address or interface of this node.
    fn alter_place(&self, node: NodeId, place: Place<'_>, change: &AddressChange) -> Outcome {
        match change {
            AddressChange::Rename(to) => {
                self.address_name_free(to, Some(place.name))?;
                *place.name = to.clone();
            }
            AddressChange::Set { host, port } => {
                self.catalog.nodes.find(node).map_or(Ok(()), |node| check_host(host, node))?;
                *place.host = host.clone();
                *place.port = port.unwrap_or(*place.port);
                check_port(*place.port)?;
            }
            AddressChange::Enable(enabled) => *place.enabled = *enabled,
        }
        Ok(())
    }

    pub(super) fn create_address(
        &mut self,
        name: &Name,
        node: &Name,
        host: &Host,
        port: u16,
        enabled: bool,
    ) -> Outcome {
        let node = self.place(name, node, host, port)?;
        let id = self.next_id();
        self.put(NetworkAddress { id, name: name.clone(), node, host: host.clone(), port, enabled });
        Ok(())
    }

    pub(super) fn alter_address(&mut self, name: &Name, change: &AddressChange) -> Outcome {
        let mut address = Arc::unwrap_or_clone(self.network_address(name)?);
        let NetworkAddress { name, host, port, enabled, node, .. } = &mut address;
        self.alter_place(*node, Place { name, host, port, enabled }, change)?;
        self.put(address);
        Ok(())
    }

    pub(super) fn drop_address(&mut self, name: &Name, if_exists: bool, cascade: bool) -> Outcome {
        let found = self.network_address(name);
        let Some(address) = self.found(found, if_exists)? else { return Ok(()) };
        let dependents = self.groups_with(ObjectKind::NetworkAddress, &[address.id.0]);
        self.refuse_dependents(ObjectKind::NetworkAddress, &address.name, dependents, cascade)?;
        self.leave_groups(ObjectKind::NetworkAddress, &[address.id.0]);
        self.take(&Entity::NetworkAddress(address));
        Ok(())
    }

    pub(super) fn create_interface(
        &mut self,
        name: &Name,
        node: &Name,
        host: &Host,
        port: u16,
        enabled: bool,
    ) -> Outcome {
        let node = self.place(name, node, host, port)?;
        let id = self.next_id();
        self.put(NetworkInterface { id, name: name.clone(), node, host: host.clone(), port, enabled });
        Ok(())
    }

    pub(super) fn alter_interface(&mut self, name: &Name, change: &InterfaceChange) -> Outcome {
        let mut interface = Arc::unwrap_or_clone(self.network_interface(name)?);
        let NetworkInterface { name, host, port, enabled, node, .. } = &mut interface;
        self.alter_place(*node, Place { name, host, port, enabled }, change)?;
        self.put(interface);
        Ok(())
    }

    pub(super) fn drop_interface(&mut self, name: &Name, if_exists: bool, cascade: bool) -> Outcome {
        let found = self.network_interface(name);
        let Some(interface) = self.found(found, if_exists)? else { return Ok(()) };
        let exported: Vec<Arc<Node>> =
            self.catalog.nodes.iter().filter(|node| node.export_interface == Some(interface.id)).cloned().collect();
        let dependents = exported.iter().map(|node| (ObjectKind::Node, node.name.clone())).collect();
        self.refuse_dependents(ObjectKind::NetworkInterface, &interface.name, dependents, cascade)?;
        for node in exported {
            self.put(with(&*node, |node| node.export_interface = None));
        }
        self.take(&Entity::NetworkInterface(interface));
        Ok(())
    }

    pub(super) fn create_subnet(&mut self, name: &Name, prefix: IpAddr) -> Outcome {
        self.subnet_name_free(name, None)?;
        let id = self.next_id();
        self.put(Subnet { id, name: name.clone(), prefix });
        Ok(())
    }

    pub(super) fn rename_subnet(&mut self, name: &Name, to: &Name) -> Outcome {
        let subnet = self.subnet(name)?;
        self.subnet_name_free(to, Some(&subnet.name))?;
        self.put(with(&*subnet, |subnet| subnet.name = to.clone()));
        Ok(())
    }

    pub(super) fn drop_subnets(&mut self, names: &[Name], if_exists: bool, cascade: bool) -> Outcome {
        distinct(ObjectKind::Subnet, names)?;
        for name in names {
            let found = self.subnet(name);
            let Some(subnet) = self.found(found, if_exists)? else { continue };
            if self.catalog.database.export_subnet == Some(subnet.id) {
                let database = (ObjectKind::Database, self.catalog.database.name.clone());
                self.refuse_dependents(ObjectKind::Subnet, &subnet.name, vec![database], cascade)?;
                self.export_database_on(&None)?;
            }
            self.take(&Entity::Subnet(subnet));
        }
        Ok(())
    }
}
