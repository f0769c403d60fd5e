//! What holds in every version of a catalog.

use std::collections::BTreeSet;

use crate::*;

/// Panics when the catalog is not in order.
pub(super) fn check_invariants(catalog: &Catalog) {
    check_ids(catalog);
    check_names(catalog);
    check_nodes(catalog);
    check_fault_groups(catalog);
    check_groups(catalog);
    check_rules(catalog);
    check_grants(catalog);
    check_table_groups(catalog);
}

fn check_ids(catalog: &Catalog) {
    let ids: Vec<u64> = catalog.entities().map(|entity| entity.id()).collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "an id is used twice");
    assert!(ids.iter().all(|id| *id < catalog.id_next()), "an id is not used up");
    // What is derived is what would be derived anew.
    let anew = Catalog::from_entities(catalog.version(), catalog.id_next(), catalog.entities()).unwrap();
    for rule in catalog.workload_rules().iter() {
        assert_eq!(catalog.rule_of_workload(&rule.workload), anew.rule_of_workload(&rule.workload));
    }
    assert_eq!(index_size(catalog), index_size(&anew));
}

fn index_size(catalog: &Catalog) -> [usize; 4] {
    let grantees = || {
        let users = catalog.users().iter().map(|user| Grantee::User(user.id));
        users.chain(catalog.roles().iter().map(|role| Grantee::Role(role.id)))
    };
    [
        catalog.workload_rules().iter().filter(|rule| catalog.rule_of_workload(&rule.workload).is_some()).count(),
        grantees().map(|grantee| catalog.role_grants_of(grantee).count()).sum(),
        grantees().map(|grantee| catalog.workload_grants_of(grantee).count()).sum(),
        catalog.table_groups().iter().map(|group| catalog.shards_of(group.id).count()).sum(),
    ]
}

fn check_names(catalog: &Catalog) {
    fn distinct<'a>(what: &str, names: impl Iterator<Item = &'a Name>) {
        let mut seen = BTreeSet::new();
        for name in names {
            assert!(seen.insert(name), "two {what} are named {name}");
        }
    }
    distinct("addresses", {
        let addresses = catalog.network_addresses().iter().map(|address| &address.name);
        addresses.chain(catalog.network_interfaces().iter().map(|interface| &interface.name))
    });
    distinct("rules", {
        let rules = catalog.routing_rules().iter().map(|rule| &rule.name);
        rules.chain(catalog.workload_rules().iter().map(|rule| &rule.name))
    });
    distinct("users or roles", {
        // The superuser may be named as a predefined role.
        let users = catalog.users().iter().filter(|user| !user.superuser).map(|user| &user.name);
        users.chain(catalog.roles().iter().map(|role| &role.name))
    });
    distinct("nodes", catalog.nodes().iter().map(|node| &node.name));
    distinct("subclusters", catalog.subclusters().iter().map(|subcluster| &subcluster.name));
    distinct("groups", catalog.load_balance_groups().iter().map(|group| &group.name));
    for node in catalog.nodes().iter() {
        assert_eq!(catalog.nodes().named(&node.name).unwrap().id, node.id);
    }
    assert_eq!(catalog.nodes().names().count(), catalog.nodes().len());
    assert_eq!(catalog.routing_rules().names().count(), catalog.routing_rules().len());
}

fn check_nodes(catalog: &Catalog) {
    let database = catalog.database();
    assert!(catalog.subclusters().find(database.default_subcluster).is_some());
    assert!(catalog.subclusters().iter().any(|subcluster| subcluster.primary));
    assert!(database.export_subnet.is_none_or(|subnet| catalog.subnets().find(subnet).is_some()));
    for node in catalog.nodes().iter() {
        assert!(catalog.subclusters().find(node.subcluster).is_some());
        assert!(node.port > 0 && !node.host.is_empty());
        if let Some(interface) = node.export_interface {
            assert_eq!(catalog.network_interfaces().find(interface).unwrap().node, node.id);
        }
        if let Some(other) = node.replaced_by {
            assert_eq!(catalog.nodes().find(other).unwrap().node_type, NodeType::Standby);
            let mut last = Some(other);
            for _ in 0..catalog.nodes().len() {
                last = last.and_then(|id| catalog.nodes().find(id).unwrap().replaced_by);
            }
            assert_eq!(last, None, "nodes replace each other");
        }
    }
    let replaced: Vec<_> = catalog.nodes().iter().filter_map(|node| node.replaced_by).collect();
    assert_eq!(replaced.iter().collect::<BTreeSet<_>>().len(), replaced.len());
    assert!(catalog.network_addresses().iter().all(|address| catalog.nodes().find(address.node).is_some()));
    assert!(catalog.network_interfaces().iter().all(|interface| catalog.nodes().find(interface.node).is_some()));
}

fn check_fault_groups(catalog: &Catalog) {
    let mut seen = BTreeSet::new();
    for group in catalog.fault_groups().iter() {
        for node in &group.nodes {
            assert!(catalog.nodes().find(*node).is_some());
            assert!(seen.insert(*node), "a node is in two fault groups");
        }
        let mut outer = group.parent;
        for _ in 0..=catalog.fault_groups().len() {
            outer = outer.and_then(|id| catalog.fault_groups().find(id).unwrap().parent);
        }
        assert_eq!(outer, None, "a fault group is in itself");
    }
}

fn check_groups(catalog: &Catalog) {
    for group in catalog.load_balance_groups().iter() {
        match &group.members {
            GroupMembers::Empty => {}
            GroupMembers::Addresses(ids) => {
                assert!(!ids.is_empty() && group.filter.is_none());
                let nodes: BTreeSet<_> =
                    ids.iter().map(|id| catalog.network_addresses().find(*id).unwrap().node).collect();
                assert_eq!(nodes.len(), ids.len(), "two addresses of one node");
            }
            GroupMembers::FaultGroups(ids) => {
                assert!(!ids.is_empty() && group.filter.is_some());
                assert!(ids.iter().all(|id| catalog.fault_groups().find(*id).is_some()));
                assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
            }
            GroupMembers::Subclusters(ids) => {
                assert!(!ids.is_empty() && group.filter.is_some());
                assert!(ids.iter().all(|id| catalog.subclusters().find(*id).is_some()));
                assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
            }
        }
    }
}

fn check_rules(catalog: &Catalog) {
    assert!(catalog.routing_rules().iter().all(|rule| catalog.load_balance_groups().find(rule.group).is_some()));
    let mut workloads = BTreeSet::new();
    for rule in catalog.workload_rules().iter() {
        assert!(!rule.subclusters.is_empty());
        assert!(rule.subclusters.iter().all(|id| catalog.subclusters().find(*id).is_some()));
        assert_eq!(rule.subclusters.iter().collect::<BTreeSet<_>>().len(), rule.subclusters.len());
        assert!(workloads.insert(rule.workload.clone()), "a workload has two rules");
        assert_eq!(catalog.rule_of_workload(&rule.workload).unwrap().id, rule.id);
    }
}

fn check_grants(catalog: &Catalog) {
    let exists = |grantee| match grantee {
        Grantee::User(id) => catalog.users().find(id).is_some(),
        Grantee::Role(id) => catalog.roles().find(id).is_some(),
    };
    assert_eq!(catalog.users().iter().filter(|user| user.superuser).count(), 1);
    assert_eq!(catalog.roles().iter().filter(|role| role.predefined).count(), PREDEFINED_ROLES.len());
    let mut seen = BTreeSet::new();
    for grant in catalog.role_grants().iter() {
        assert!(exists(grant.grantee) && catalog.roles().find(grant.role).is_some());
        assert!(catalog.users().find(grant.grantor).is_some());
        assert!(seen.insert((grant.grantee, grant.role)), "a role is granted twice");
        assert_ne!(Some(grant.role), catalog.public_role());
    }
    assert!(catalog.orphaned_role_grants().is_empty(), "a grant does not go back to the superuser");
    for role in catalog.roles().iter() {
        let mut direct = catalog.role_grants_of(Grantee::Role(role.id)).map(|grant| grant.role);
        assert!(direct.all(|inner| !reaches(catalog, inner, role.id)), "roles form a cycle");
    }
    for grant in catalog.workload_grants().iter() {
        assert!(exists(grant.grantee) && catalog.workload_rules().find(grant.rule).is_some());
        assert!(catalog.users().find(grant.grantor).is_some());
    }
    for grant in catalog.authentication_grants().iter() {
        assert!(exists(grant.grantee) && catalog.authentications().find(grant.authentication).is_some());
    }
    for user in catalog.users().iter() {
        match &user.default_roles {
            DefaultRoles::None => {}
            DefaultRoles::Listed(roles) => {
                assert!(!roles.is_empty() && roles.iter().all(|role| catalog.has_role(user.id, *role)));
            }
            DefaultRoles::AllExcept(roles) => assert!(roles.iter().all(|role| catalog.roles().find(*role).is_some())),
        }
    }
    for mapping in catalog.user_mappings().iter() {
        assert!(mapping.user.is_none_or(|user| catalog.users().find(user).is_some()));
        assert!(mapping.node.is_none_or(|node| catalog.nodes().find(node).is_some()));
        assert_eq!(catalog.user_mapping(mapping.user, mapping.node).unwrap().id, mapping.id);
    }
    for setting in catalog.settings().iter() {
        assert!(match setting.level {
            SettingLevel::Database => true,
            SettingLevel::Node(node) => catalog.nodes().find(node).is_some(),
            SettingLevel::User(user) => catalog.users().find(user).is_some(),
        });
        assert_eq!(catalog.setting(setting.level, &setting.name).unwrap().id, setting.id);
    }
}

fn reaches(catalog: &Catalog, from: RoleId, to: RoleId) -> bool {
    from == to || catalog.role_grants_of(Grantee::Role(from)).any(|grant| reaches(catalog, grant.role, to))
}

fn check_table_groups(catalog: &Catalog) {
    let default = catalog.database().default_table_group;
    assert_eq!(default.is_some(), !catalog.table_groups().is_empty());
    assert!(default.is_none_or(|id| catalog.table_groups().find(id).is_some()));
    let workers: BTreeSet<NodeId> =
        catalog.nodes().iter().filter(|node| node.is_worker() && !node.draining).map(|node| node.id).collect();
    let shards: usize = catalog.table_groups().iter().map(|group| catalog.shards_of(group.id).count()).sum();
    assert_eq!(shards, catalog.shards().len(), "a shard has no table group");
    for group in catalog.table_groups().iter() {
        let mut numbers = 0;
        for (shard, number) in catalog.shards_of(group.id).zip(0..) {
            numbers += 1;
            assert_eq!(shard.number, number);
            let replica_count = (group.replica_count as usize).min(workers.len());
            assert_eq!(shard.replicas.len(), replica_count);
            let placed: BTreeSet<NodeId> = shard.replicas.iter().map(|replica| replica.worker).collect();
            assert_eq!(placed.len(), replica_count, "two replicas on one worker");
            assert!(placed.is_subset(&workers));
            for (position, replica) in shard.replicas.iter().enumerate() {
                assert_eq!(replica.role == ReplicaRole::Leader, position == 0);
            }
        }
        assert_eq!(numbers, group.shard_count);
    }
}
