//! `v_catalog`: definitions (`reference/vertica-sql.md` §7).

use std::net::IpAddr;

use switchyard_catalog::{
    AuthenticationMethod, Catalog, DefaultRoles, Grantee, GroupMembers, Host, Name, Node, RoleId, User,
};

use super::access::described;
use super::{Cell, Kind, Rows, RowsError, SystemTable, Visibility, column};
use crate::settings::size::show_kilobytes;
use crate::snapshot::Snapshot;

pub(super) const TABLES: &[SystemTable] = &[
    SystemTable {
        schema: "v_catalog",
        name: "nodes",
        description: "The nodes of the cluster and their state.",
        columns: &[
            column("node_name", Kind::Varchar, "The node's name."),
            column("node_id", Kind::Int, "The node's id."),
            column("node_state", Kind::Varchar, "UP, DOWN or another of Vertica's states."),
            column("is_primary", Kind::Bool, "Whether its subcluster is primary."),
            column("is_readonly", Kind::Bool, "Whether the node takes no writes."),
            column("node_address", Kind::Varchar, "The host name or address of the node."),
            column("node_address_family", Kind::Varchar, "ipv4 or ipv6; empty for a host name."),
            column("export_address", Kind::Varchar, "The address that classic balancing gives to clients."),
            column("export_address_family", Kind::Varchar, "ipv4 or ipv6; empty for a host name."),
            column("catalog_path", Kind::Varchar, "Empty: the catalog is shared by the cluster."),
            column("node_type", Kind::Varchar, "PERMANENT, EPHEMERAL, STANDBY or EXECUTE."),
            column("is_ephemeral", Kind::Bool, "Whether the node is of the type EPHEMERAL."),
            column("standing_in_for", Kind::Varchar, "The node that this one replaces."),
            column("subcluster_name", Kind::Varchar, "The subcluster the node belongs to."),
            column("sandbox", Kind::Varchar, "Empty: there are no sandboxes."),
            column("last_msg_from_node_at", Kind::Timestamptz, "When the node was last heard of."),
            column("node_down_since", Kind::Timestamptz, "Since when it is down."),
            column("build_info", Kind::Varchar, "The program version the node runs."),
        ],
        visibility: Visibility::All,
        rows: nodes,
    },
    SystemTable {
        schema: "v_catalog",
        name: "databases",
        description: "The one database, with what holds for the whole cluster.",
        columns: &[
            column("database_id", Kind::Int, "The database's id."),
            column("database_name", Kind::Varchar, "The database's name."),
            column("owner_id", Kind::Int, "The id of the superuser."),
            column("owner_name", Kind::Varchar, "The name of the superuser."),
            column("start_time", Kind::Timestamptz, "When the answering member started."),
            column("compliance_message", Kind::Varchar, "Empty."),
            column("export_subnet", Kind::Varchar, "The prefix that export addresses are taken from, 0 when unset."),
            column("load_balance_policy", Kind::Varchar, "The classic policy: none, roundrobin or random."),
            column("backend_address_family", Kind::Varchar, "The address family members use among themselves."),
            column("branch_name", Kind::Varchar, "Empty."),
        ],
        visibility: Visibility::All,
        rows: databases,
    },
    SystemTable {
        schema: "v_catalog",
        name: "subclusters",
        description: "One row for each node of each subcluster, and one for each empty subcluster.",
        columns: &[
            column("subcluster_oid", Kind::Int, "The subcluster's id."),
            column("subcluster_name", Kind::Varchar, "The subcluster's name."),
            column("node_oid", Kind::Int, "The node's id."),
            column("node_name", Kind::Varchar, "The node's name."),
            column("parent_oid", Kind::Int, "The database's id."),
            column("parent_name", Kind::Varchar, "The database's name."),
            column("is_default", Kind::Bool, "Whether nodes go here that name no subcluster."),
            column("is_primary", Kind::Bool, "Whether it is primary."),
            column("control_set_size", Kind::Int, "-1: off."),
        ],
        visibility: Visibility::All,
        rows: subclusters,
    },
    SystemTable {
        schema: "v_catalog",
        name: "network_addresses",
        description: "The addresses that load balance groups are made of.",
        columns: &[
            column("name", Kind::Varchar, "The address's name."),
            column("node", Kind::Varchar, "The node it leads to."),
            column("address", Kind::Varchar, "IP address or host name."),
            column("port", Kind::Int, "Client port."),
            column("address_family", Kind::Varchar, "ipv4 or ipv6; empty for a host name."),
            column("is_enabled", Kind::Bool, "Whether it may be chosen."),
            column("is_auto_detected", Kind::Bool, "Whether the server made it by itself."),
        ],
        visibility: Visibility::All,
        rows: network_addresses,
    },
    SystemTable {
        schema: "v_catalog",
        name: "load_balance_groups",
        description: "One row for each member of each load balance group.",
        columns: &[
            column("name", Kind::Varchar, "The group's name."),
            column("policy", Kind::Varchar, "ROUNDROBIN, RANDOM or NONE."),
            column("filter", Kind::Varchar, "The network that node addresses must be in."),
            column("type", Kind::Varchar, "Fault Group, Subcluster, Network Address Group or Empty Group."),
            column("object_name", Kind::Varchar, "The member's name."),
        ],
        visibility: Visibility::All,
        rows: load_balance_groups,
    },
    SystemTable {
        schema: "v_catalog",
        name: "routing_rules",
        description: "The rules by client network.",
        columns: &[
            column("name", Kind::Varchar, "The rule's name."),
            column("source_address", Kind::Varchar, "The client network, as typed."),
            column("destination_name", Kind::Varchar, "The load balance group."),
        ],
        visibility: Visibility::All,
        rows: routing_rules,
    },
    SystemTable {
        schema: "v_catalog",
        name: "workload_routing_rules",
        description: "One row for each subcluster of each workload rule.",
        columns: &[
            column("oid", Kind::Int, "The rule's id."),
            column("workload", Kind::Varchar, "The workload."),
            column("subcluster_oid", Kind::Int, "The subcluster's id."),
            column("subcluster_name", Kind::Varchar, "The subcluster's name."),
            column("priority", Kind::Int, "The greater wins."),
        ],
        visibility: Visibility::Superuser,
        rows: workload_routing_rules,
    },
    SystemTable {
        schema: "v_catalog",
        name: "subnets",
        description: "The named network prefixes.",
        columns: &[
            column("name", Kind::Varchar, "The subnet's name."),
            column("prefix", Kind::Varchar, "The prefix, without length."),
            column("address_family", Kind::Varchar, "ipv4 or ipv6."),
        ],
        visibility: Visibility::All,
        rows: subnets,
    },
    SystemTable {
        schema: "v_catalog",
        name: "fault_groups",
        description: "One row for each member of each fault group.",
        columns: &[
            column("member_type", Kind::Varchar, "NODE or FAULT GROUP."),
            column("member_id", Kind::Int, "The member's id."),
            column("member_name", Kind::Varchar, "The member's name."),
            column("parent_type", Kind::Varchar, "FAULT GROUP or DATABASE."),
            column("parent_id", Kind::Int, "The parent's id."),
            column("parent_name", Kind::Varchar, "The parent's name."),
            column("is_automatically_generated", Kind::Bool, "Always false."),
        ],
        visibility: Visibility::All,
        rows: fault_groups,
    },
    SystemTable {
        schema: "v_catalog",
        name: "cluster_layout",
        description: "Where each node stands.",
        columns: &[
            column("cluster_position", Kind::Int, "From 0."),
            column("node_id", Kind::Int, "The node's id."),
            column("node_name", Kind::Varchar, "The node's name."),
            column("fault_group_id", Kind::Int, "The id of its fault group."),
            column("fault_group_name", Kind::Varchar, "The name of its fault group."),
            column("fault_group_tier", Kind::Int, "How deep that group is: 0 at the top; NULL without one."),
            column("subcluster_id", Kind::Int, "The id of its subcluster."),
            column("subcluster_name", Kind::Varchar, "The name of its subcluster."),
        ],
        visibility: Visibility::All,
        rows: cluster_layout,
    },
    SystemTable {
        schema: "v_catalog",
        name: "users",
        description: "The users; others than the superuser see themselves.",
        columns: &[
            column("user_id", Kind::Int, "The user's id."),
            column("user_name", Kind::Varchar, "The user's name."),
            column("is_super_user", Kind::Bool, "Whether it is the superuser."),
            column("profile_name", Kind::Varchar, "The profile."),
            column("is_locked", Kind::Bool, "Whether login is refused."),
            column("lock_time", Kind::Timestamptz, "NULL: not kept."),
            column("resource_pool", Kind::Varchar, "The resource pool."),
            column("memory_cap_kb", Kind::Varchar, "Kilobytes, or a percentage, or unlimited."),
            column("temp_space_cap_kb", Kind::Varchar, "Kilobytes, or a percentage, or unlimited."),
            column("run_time_cap", Kind::Varchar, "As set, or unlimited."),
            column("max_connections", Kind::Varchar, "A number, or unlimited."),
            column("connection_limit_mode", Kind::Varchar, "node or database."),
            column("idle_session_timeout", Kind::Varchar, "As set, or unlimited."),
            column("grace_period", Kind::Varchar, "As set, or unlimited."),
            column("all_roles", Kind::Varchar, "The roles granted directly; * marks the admin option."),
            column("default_roles", Kind::Varchar, "The roles that are on at login."),
            column("search_path", Kind::Varchar, "Schemas, as set."),
            column("ldap_dn", Kind::Varchar, "Empty."),
            column("ldap_uri_hash", Kind::Int, "0."),
            column("is_orphaned_from_ldap", Kind::Bool, "Always false."),
        ],
        visibility: Visibility::Own,
        rows: users,
    },
    SystemTable {
        schema: "v_catalog",
        name: "roles",
        description: "The roles.",
        columns: &[
            column("role_id", Kind::Int, "The role's id."),
            column("name", Kind::Varchar, "The role's name."),
            column("assigned_roles", Kind::Varchar, "The roles granted to it; * marks the admin option."),
            column("ldap_dn", Kind::Varchar, "Empty."),
            column("ldap_uri_hash", Kind::Int, "0."),
            column("is_orphaned_from_ldap", Kind::Bool, "Always false."),
        ],
        visibility: Visibility::All,
        rows: roles,
    },
    SystemTable {
        schema: "v_catalog",
        name: "grants",
        description: "Roles, workloads and authentications granted; others than the superuser see what is granted to them.",
        columns: &[
            column("grantee", Kind::Varchar, "Who holds it."),
            column("grantee_id", Kind::Int, "The holder's id."),
            column("grant_id", Kind::Int, "The grant's id."),
            column("grantor", Kind::Varchar, "Who granted it."),
            column("grantor_id", Kind::Int, "The grantor's id."),
            column("object_id", Kind::Int, "The id of what is granted."),
            column("object_name", Kind::Varchar, "The name of what is granted."),
            column("object_schema", Kind::Varchar, "Empty."),
            column("object_type", Kind::Varchar, "ROLE, WORKLOAD or CLIENTAUTHENTICATION."),
            column(
                "privileges_description",
                Kind::Varchar,
                "USAGE for workloads; empty for roles, * with admin option.",
            ),
        ],
        visibility: Visibility::Own,
        rows: grants,
    },
    SystemTable {
        schema: "v_catalog",
        name: "client_auth",
        description: "The authentication records.",
        columns: &[
            column("auth_oid", Kind::Int, "The record's id."),
            column("auth_name", Kind::Varchar, "The record's name."),
            column("is_auth_enabled", Kind::Bool, "Whether it is considered."),
            column("auth_host_type", Kind::Varchar, "LOCAL, HOST, HOSTSSL or HOSTNOSSL."),
            column("auth_host_address", Kind::Varchar, "The client network, as typed."),
            column("auth_method", Kind::Varchar, "TRUST, REJECT, HASH or TLS."),
            column("auth_parameters", Kind::Varchar, "name=value, joined by commas."),
            column("auth_priority", Kind::Int, "The greater wins."),
            column("method_priority", Kind::Int, "The greater wins among equal priorities."),
            column("address_priority", Kind::Int, "Bits of the network: the greater is more specific."),
            column("is_fallthrough_enabled", Kind::Bool, "Whether the next record is tried when this one fails."),
        ],
        visibility: Visibility::Superuser,
        rows: client_auth,
    },
];

/// `ipv4` or `ipv6`, or nothing for a host name.
pub(super) fn family(host: &str) -> &'static str {
    host.parse().map_or("", family_of)
}

/// As decisions take it: a mapped address is one of IPv4.
fn family_of(address: IpAddr) -> &'static str {
    if address.to_canonical().is_ipv4() { "ipv4" } else { "ipv6" }
}

fn host_family(host: &Host) -> &'static str {
    match host {
        Host::Ip(address) => family_of(*address),
        Host::Dns(_) => "",
    }
}

fn nodes(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    let catalog = &snapshot.catalog;
    for node in catalog.nodes().iter() {
        let subcluster = catalog.subclusters().find(node.subcluster);
        let export = catalog.export_address(node);
        let export_family = host_family(&export);
        let replaced = catalog.nodes().iter().find(|other| other.replaced_by == Some(node.id));
        let state = snapshot.node_state(node.id);
        let here = snapshot.live.node == Some(node.id);
        let down_since = snapshot.live.node_events.iter().rev().find(|event| event.node == node.id);
        rows.push([
            node.name.as_str().into(),
            node.id.as_i64().into(),
            state.into(),
            subcluster.is_some_and(|subcluster| subcluster.primary).into(),
            false.into(),
            node.host.as_str().into(),
            family(&node.host).into(),
            export.to_string().into(),
            export_family.into(),
            "".into(),
            node.node_type.as_str().into(),
            (node.node_type == switchyard_catalog::NodeType::Ephemeral).into(),
            replaced.map(|other| other.name.as_str()).into(),
            subcluster.map(|subcluster| subcluster.name.as_str()).into(),
            "".into(),
            if here { Cell::Time(snapshot.now_us) } else { Cell::Null },
            match down_since {
                Some(event) if state == "DOWN" => Cell::Time(event.time_us),
                _ => Cell::Null,
            },
            if here { snapshot.live.build.as_str().into() } else { "".into() },
        ])?;
    }
    Ok(())
}

fn databases(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    let catalog = &snapshot.catalog;
    let database = catalog.database();
    let owner = catalog.users().iter().find(|user| user.superuser);
    let subnet = database.export_subnet.and_then(|id| catalog.subnets().find(id));
    let node = snapshot.live.node.and_then(|id| catalog.nodes().find(id));
    let backend = node.map_or("", |node| family(&node.host));
    rows.push([
        database.id.into(),
        database.name.as_str().into(),
        owner.map(|user| user.id.as_i64()).into(),
        owner.map(|user| user.name.as_str()).into(),
        Cell::Time(snapshot.live.start_us),
        "".into(),
        subnet.map_or_else(|| "0".to_owned(), |subnet| subnet.prefix.to_string()).into(),
        database.policy.as_str().to_lowercase().into(),
        if backend.is_empty() { "ipv4" } else { backend }.into(),
        "".into(),
    ])
}

fn subclusters(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    let catalog = &snapshot.catalog;
    let database = catalog.database();
    for subcluster in catalog.subclusters().iter() {
        let mut nodes = catalog.nodes().iter().filter(|node| node.subcluster == subcluster.id).peekable();
        let mut push = |node: Option<&Node>| {
            rows.push([
                subcluster.id.as_i64().into(),
                subcluster.name.as_str().into(),
                node.map(|node| node.id.as_i64()).into(),
                node.map(|node| node.name.as_str()).into(),
                database.id.into(),
                database.name.as_str().into(),
                (database.default_subcluster == subcluster.id).into(),
                subcluster.primary.into(),
                (-1i64).into(),
            ])
        };
        if nodes.peek().is_none() {
            push(None)?;
        }
        nodes.try_for_each(|node| push(Some(node)))?;
    }
    Ok(())
}

fn network_addresses(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    for address in snapshot.catalog.network_addresses().iter() {
        rows.push([
            address.name.as_str().into(),
            snapshot.catalog.nodes().find(address.node).map(|node| node.name.as_str()).into(),
            address.host.to_string().into(),
            address.port.into(),
            host_family(&address.host).into(),
            address.enabled.into(),
            false.into(),
        ])?;
    }
    Ok(())
}

fn load_balance_groups(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    let catalog = &snapshot.catalog;
    for group in catalog.load_balance_groups().iter() {
        let (kind, names): (_, Vec<Option<&Name>>) = match &group.members {
            GroupMembers::Empty => ("Empty Group", vec![None]),
            GroupMembers::Addresses(ids) => (
                "Network Address Group",
                ids.iter().map(|id| catalog.network_addresses().find(*id).map(|address| &address.name)).collect(),
            ),
            GroupMembers::FaultGroups(ids) => (
                "Fault Group",
                ids.iter().map(|id| catalog.fault_groups().find(*id).map(|group| &group.name)).collect(),
            ),
            GroupMembers::Subclusters(ids) => (
                "Subcluster",
                ids.iter().map(|id| catalog.subclusters().find(*id).map(|subcluster| &subcluster.name)).collect(),
            ),
        };
        let filter = match group.members {
            GroupMembers::Addresses(_) => None,
            _ => group.filter.as_ref().map(|filter| filter.typed.as_str()),
        };
        for name in names {
            rows.push([
                group.name.as_str().into(),
                group.policy.as_str().into(),
                filter.into(),
                kind.into(),
                name.map(Name::as_str).into(),
            ])?;
        }
    }
    Ok(())
}

fn routing_rules(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    for rule in snapshot.catalog.routing_rules().iter() {
        rows.push([
            rule.name.as_str().into(),
            rule.source.typed.as_str().into(),
            snapshot.catalog.load_balance_groups().find(rule.group).map(|group| group.name.as_str()).into(),
        ])?;
    }
    Ok(())
}

fn workload_routing_rules(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    for rule in snapshot.catalog.workload_rules().iter() {
        for subcluster in &rule.subclusters {
            rows.push([
                rule.id.as_i64().into(),
                rule.workload.as_str().into(),
                subcluster.as_i64().into(),
                snapshot.catalog.subclusters().find(*subcluster).map(|subcluster| subcluster.name.as_str()).into(),
                rule.priority.into(),
            ])?;
        }
    }
    Ok(())
}

fn subnets(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    for subnet in snapshot.catalog.subnets().iter() {
        let prefix = subnet.prefix.to_string();
        let prefix_family = family(&prefix);
        rows.push([subnet.name.as_str().into(), prefix.into(), prefix_family.into()])?;
    }
    Ok(())
}

fn fault_groups(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    let catalog = &snapshot.catalog;
    let database = catalog.database();
    for group in catalog.fault_groups().iter() {
        let parent = group.parent.and_then(|id| catalog.fault_groups().find(id));
        rows.push([
            "FAULT GROUP".into(),
            group.id.as_i64().into(),
            group.name.as_str().into(),
            if parent.is_some() { "FAULT GROUP" } else { "DATABASE" }.into(),
            parent.map_or_else(|| database.id.into(), |parent| parent.id.as_i64().into()),
            parent.map_or_else(|| database.name.as_str(), |parent| parent.name.as_str()).into(),
            false.into(),
        ])?;
        for node in group.nodes.iter().filter_map(|id| catalog.nodes().find(*id)) {
            rows.push([
                "NODE".into(),
                node.id.as_i64().into(),
                node.name.as_str().into(),
                "FAULT GROUP".into(),
                group.id.as_i64().into(),
                group.name.as_str().into(),
                false.into(),
            ])?;
        }
    }
    Ok(())
}

fn cluster_layout(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    let catalog = &snapshot.catalog;
    let permanent = catalog.nodes().iter().filter(|node| node.node_type != switchyard_catalog::NodeType::Ephemeral);
    for (position, node) in permanent.enumerate() {
        let group = catalog.fault_groups().iter().find(|group| group.nodes.contains(&node.id));
        let tier = group.map(|group| {
            let mut tier = 0i64;
            let mut parent = group.parent;
            while let Some(above) = parent.and_then(|id| catalog.fault_groups().find(id)) {
                tier += 1;
                parent = above.parent;
            }
            tier
        });
        let subcluster = catalog.subclusters().find(node.subcluster);
        rows.push([
            position.into(),
            node.id.as_i64().into(),
            node.name.as_str().into(),
            group.map(|group| group.id.as_i64()).into(),
            group.map(|group| group.name.as_str()).into(),
            tier.into(),
            node.subcluster.as_i64().into(),
            subcluster.map(|subcluster| subcluster.name.as_str()).into(),
        ])?;
    }
    Ok(())
}

/// The roles granted directly, `, `-joined, `*` behind those with the admin option.
fn granted_list(catalog: &Catalog, grantee: Grantee) -> String {
    let mut roles: Vec<String> = catalog
        .role_grants()
        .iter()
        .filter(|grant| grant.grantee == grantee)
        .filter_map(|grant| {
            let role = catalog.roles().find(grant.role)?;
            Some(format!("{}{}", role.name, if grant.admin { "*" } else { "" }))
        })
        .collect();
    roles.sort_by_key(|role| role.to_lowercase());
    roles.join(", ")
}

fn default_roles(catalog: &Catalog, user: &User) -> String {
    let names = |ids: Vec<RoleId>| {
        let names: Vec<&str> =
            ids.iter().filter_map(|id| catalog.roles().find(*id)).map(|role| role.name.as_str()).collect();
        names.join(", ")
    };
    match &user.default_roles {
        DefaultRoles::None => String::new(),
        DefaultRoles::Listed(ids) => names(ids.clone()),
        DefaultRoles::AllExcept(except) => names(
            catalog
                .role_grants()
                .iter()
                .filter(|grant| grant.grantee == Grantee::User(user.id) && !except.contains(&grant.role))
                .map(|grant| grant.role)
                .collect(),
        ),
    }
}

fn users(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    let catalog = &snapshot.catalog;
    let superuser = snapshot.superuser();
    for user in catalog.users().iter().filter(|user| superuser || user.id == snapshot.session.user_id) {
        let limits = &user.limits;
        let unlimited = |value: &Option<String>| value.clone().unwrap_or_else(|| "unlimited".to_owned());
        let path = limits.search_path.as_ref().map(|path| path.iter().map(Name::as_str).collect::<Vec<_>>().join(", "));
        rows.push([
            user.id.as_i64().into(),
            user.name.as_str().into(),
            user.superuser.into(),
            limits.profile.as_ref().map_or("default", Name::as_str).into(),
            user.locked.into(),
            Cell::Null,
            limits.resource_pool.as_ref().map_or("general", Name::as_str).into(),
            unlimited(&limits.memory_cap.as_deref().map(show_kilobytes)).into(),
            unlimited(&limits.temp_space_cap.as_deref().map(show_kilobytes)).into(),
            unlimited(&limits.runtime_cap).into(),
            limits.max_connections.map_or_else(|| "unlimited".to_owned(), |(most, _)| most.to_string()).into(),
            limits.max_connections.map_or("database", |(_, scope)| scope.as_str()).into(),
            unlimited(&limits.idle_session_timeout).into(),
            limits.grace_period.as_deref().unwrap_or("unlimited").into(),
            granted_list(catalog, Grantee::User(user.id)).into(),
            default_roles(catalog, user).into(),
            path.unwrap_or_default().into(),
            "".into(),
            0i64.into(),
            false.into(),
        ])?;
    }
    Ok(())
}

fn roles(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    for role in snapshot.catalog.roles().iter() {
        rows.push([
            role.id.as_i64().into(),
            role.name.as_str().into(),
            granted_list(&snapshot.catalog, Grantee::Role(role.id)).into(),
            "".into(),
            0i64.into(),
            false.into(),
        ])?;
    }
    Ok(())
}

fn grants(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    let catalog = &snapshot.catalog;
    let superuser = snapshot.superuser();
    let owner = catalog.users().iter().find(|user| user.superuser).map(|user| user.id);
    let visible = |grantee: Grantee| {
        superuser
            || match grantee {
                Grantee::User(user) => user == snapshot.session.user_id,
                Grantee::Role(role) => catalog.granted_roles(snapshot.session.user_id).contains_key(&role),
            }
    };
    let mut push = |grantee: Grantee, grant: i64, grantor, object: i64, name: &str, kind: &str, text: &str| {
        let (holder, holder_id) = match grantee {
            Grantee::User(id) => (catalog.users().find(id).map(|user| user.name.as_str()), id.as_i64()),
            Grantee::Role(id) => (catalog.roles().find(id).map(|role| role.name.as_str()), id.as_i64()),
        };
        let grantor: Option<&User> =
            Option::or(grantor, owner).and_then(|id| catalog.users().find(id)).map(AsRef::as_ref);
        rows.push([
            holder.into(),
            holder_id.into(),
            grant.into(),
            grantor.map(|user| user.name.as_str()).into(),
            grantor.map(|user| user.id.as_i64()).into(),
            object.into(),
            name.into(),
            "".into(),
            kind.into(),
            text.into(),
        ])
    };
    for grant in catalog.role_grants().iter().filter(|grant| visible(grant.grantee)) {
        let name = catalog.roles().find(grant.role).map_or("", |role| role.name.as_str());
        let text = if grant.admin { "*" } else { "" };
        push(grant.grantee, grant.id.as_i64(), Some(grant.grantor), grant.role.as_i64(), name, "ROLE", text)?;
    }
    for grant in catalog.workload_grants().iter().filter(|grant| visible(grant.grantee)) {
        let name = catalog.workload_rules().find(grant.rule).map_or("", |rule| rule.workload.as_str());
        push(grant.grantee, grant.id.as_i64(), Some(grant.grantor), grant.rule.as_i64(), name, "WORKLOAD", "USAGE")?;
    }
    for grant in catalog.authentication_grants().iter().filter(|grant| visible(grant.grantee)) {
        let name = catalog.authentications().find(grant.authentication).map_or("", |record| record.name.as_str());
        let object = grant.authentication.as_i64();
        push(grant.grantee, grant.id.as_i64(), None, object, name, "CLIENTAUTHENTICATION", "")?;
    }
    Ok(())
}

fn client_auth(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    for record in snapshot.catalog.authentications().iter() {
        let (host_type, network, bits) = described(record);
        let parameters: Vec<String> = record.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let method_priority = match record.method {
            AuthenticationMethod::Trust => 0i64,
            AuthenticationMethod::Hash => 2,
            AuthenticationMethod::Tls => 5,
            AuthenticationMethod::Reject => 10,
        };
        rows.push([
            record.id.as_i64().into(),
            record.name.as_str().into(),
            record.enabled.into(),
            host_type.into(),
            network.into(),
            record.method.as_str().to_uppercase().into(),
            parameters.join(",").into(),
            record.priority.into(),
            method_priority.into(),
            bits.into(),
            record.fallthrough.into(),
        ])?;
    }
    Ok(())
}
