//! Nodes (`reference/vertica-sql.md` §6.2, §6.4).

use std::sync::Arc;

use super::Outcome;
use super::address::check_port;
use super::draft::{Draft, with};
use crate::catalog::Entity;
use crate::change::NodeChange;
use crate::entity::*;
use crate::error::{AddressFault, CatalogError, ObjectKind};
use crate::id::*;
use crate::name::Name;

fn check_address(host: &str, port: u16) -> Outcome {
    if host.is_empty() {
        return Err(CatalogError::BadAddress { host: String::new(), fault: AddressFault::Empty });
    }
    check_port(port)
}

impl Draft {
    pub(super) fn create_node(
        &mut self,
        name: &Name,
        kind: &NodeKind,
        host: &str,
        port: u16,
        subcluster: &Option<Name>,
    ) -> Outcome {
        self.node_name_free(name, None)?;
        check_address(host, port)?;
        let subcluster = match subcluster {
            Some(name) => self.subcluster(name)?.id,
            None => self.catalog.database.default_subcluster,
        };
        let id = self.next_id();
        self.put(Node {
            id,
            name: name.clone(),
            kind: kind.clone(),
            node_type: NodeType::Permanent,
            host: host.to_owned(),
            port,
            subcluster,
            export_interface: None,
            draining: false,
            drain: None,
            replaced_by: None,
        });
        Ok(())
    }

    pub(super) fn alter_node(&mut self, name: &Name, change: &NodeChange) -> Outcome {
        let mut node = Arc::unwrap_or_clone(self.node(name)?);
        match change {
            NodeChange::Rename(to) => {
                self.node_name_free(to, Some(&node.name))?;
                node.name = to.clone();
            }
            NodeChange::Address { host, port } => {
                node.host.clone_from(host);
                node.port = port.unwrap_or(node.port);
                check_address(&node.host, node.port)?;
            }
            NodeChange::Upstream(new) => match &mut node.kind {
                NodeKind::Member { upstream } | NodeKind::Remote { upstream } => upstream.clone_from(new),
            },
            NodeChange::ExportOn(interface) => node.export_interface = self.interface_of(&node, interface)?,
            NodeChange::Type(node_type) => {
                node.node_type = *node_type;
                if *node_type != NodeType::Standby {
                    self.stand_down(node.id);
                }
            }
            NodeChange::Replace(with) => node.replaced_by = Some(self.standby(&node, with)?),
            NodeChange::Reset => {
                node.replaced_by = None;
                self.stand_down(node.id);
            }
            NodeChange::Drain { draining, terms } => {
                node.draining = *draining;
                node.drain = terms.filter(|_| *draining);
            }
            NodeChange::Join { host, port, upstream } => {
                check_address(host, *port)?;
                node.host.clone_from(host);
                node.port = *port;
                join(&mut node, upstream.clone());
            }
        }
        self.put(node);
        Ok(())
    }

    fn interface_of(&self, node: &Node, name: &Option<Name>) -> Result<Option<NetworkInterfaceId>, CatalogError> {
        let Some(name) = name else { return Ok(None) };
        let interface = self.network_interface(name)?;
        if interface.node != node.id {
            let (interface, node) = (interface.name.clone(), node.name.clone());
            return Err(CatalogError::OtherNode { interface, node });
        }
        Ok(Some(interface.id))
    }

    /// The standby node that replaces a node: the one named, or the oldest that is free, of the same fault group if
    /// any.
    fn standby(&self, node: &Node, with: &Option<Name>) -> Result<NodeId, CatalogError> {
        let nodes = &self.catalog.nodes;
        let is_free = |other: &Node| {
            other.node_type == NodeType::Standby
                && other.id != node.id
                && other.replaced_by.is_none()
                && !nodes.iter().any(|third| third.id != node.id && third.replaced_by == Some(other.id))
        };
        if let Some(name) = with {
            let other = self.node(name)?;
            let with = other.name.clone();
            return if is_free(&other) { Ok(other.id) } else { Err(CatalogError::NotStandby { with }) };
        }
        let fault_group = self.fault_group_of(node.id);
        let near = |other: &&Arc<Node>| fault_group.is_some() && self.fault_group_of(other.id) == fault_group;
        let free = || nodes.iter().filter(|other| is_free(other));
        let chosen = free().find(near).or_else(|| free().next());
        chosen.map(|other| other.id).ok_or_else(|| CatalogError::NoStandby { node: node.name.clone() })
    }

    /// Ends the service of a standby node for others.
    fn stand_down(&mut self, standby: NodeId) {
        let replaced: Vec<Arc<Node>> =
            self.catalog.nodes.iter().filter(|node| node.replaced_by == Some(standby)).cloned().collect();
        for node in replaced {
            self.put(with(&*node, |node| node.replaced_by = None));
        }
    }

    /// Its addresses, interfaces and user mappings depend on a node, and so do table groups with a shard replica on it:
    /// draining it first moves those away. Its settings and its place in a fault group go with it.
    pub(super) fn drop_node(&mut self, name: &Name, if_exists: bool, cascade: bool) -> Outcome {
        let found = self.node(name);
        let Some(node) = self.found(found, if_exists)? else { return Ok(()) };
        let catalog = &self.catalog;
        let addresses: Vec<_> = catalog.network_addresses.iter().filter(|row| row.node == node.id).cloned().collect();
        let interfaces: Vec<_> = catalog.network_interfaces.iter().filter(|row| row.node == node.id).cloned().collect();
        let mappings: Vec<_> = catalog.user_mappings.iter().filter(|row| row.node == Some(node.id)).cloned().collect();
        let mut dependents = self.groups_placed_on(node.id);
        dependents.extend(addresses.iter().map(|row| (ObjectKind::NetworkAddress, row.name.clone())));
        dependents.extend(interfaces.iter().map(|row| (ObjectKind::NetworkInterface, row.name.clone())));
        for mapping in &mappings {
            let user = mapping.user.and_then(|user| catalog.users.find(user)).map(|user| user.name.clone());
            dependents.push((ObjectKind::UserMapping, user.unwrap_or_else(|| Name::known(crate::PUBLIC_ROLE))));
        }
        self.refuse_dependents(ObjectKind::Node, &node.name, dependents, cascade)?;
        let mut gone: Vec<Entity> = mappings.into_iter().map(Entity::UserMapping).collect();
        gone.extend(self.catalog.settings_at(SettingLevel::Node(node.id)).cloned().map(Entity::Setting));
        let ids: Vec<u64> = addresses.iter().map(|address| address.id.0).collect();
        gone.extend(addresses.into_iter().map(Entity::NetworkAddress));
        gone.extend(interfaces.into_iter().map(Entity::NetworkInterface));
        self.leave_groups(ObjectKind::NetworkAddress, &ids);
        self.leave_fault_group(node.id);
        self.stand_down(node.id);
        for entity in gone {
            self.take(&entity);
        }
        self.take(&Entity::Node(node));
        Ok(())
    }

    /// The table groups with a shard replica on a node.
    fn groups_placed_on(&self, node: NodeId) -> Vec<(ObjectKind, Name)> {
        let is_on = |group: &&Arc<TableGroup>| {
            let mut replicas = self.catalog.shards_of(group.id).flat_map(|shard| &shard.replicas);
            replicas.any(|replica| replica.worker == node)
        };
        let groups = self.catalog.table_groups.iter().filter(is_on);
        groups.map(|group| (ObjectKind::TableGroup, group.name.clone())).collect()
    }
}

/// A member takes a node over: a declared one keeps its upstream if the member brings none, and is not draining.
fn join(node: &mut Node, upstream: Option<crate::Secret>) {
    let (NodeKind::Member { upstream: known } | NodeKind::Remote { upstream: known }) = &node.kind;
    node.kind = NodeKind::Member { upstream: upstream.or_else(|| known.clone()) };
    node.draining = false;
    node.drain = None;
}
