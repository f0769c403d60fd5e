//! Random changes: nothing panics, everything stays in order, and deltas lead both ways.

use proptest::prelude::*;

use super::invariants::check_invariants;
use super::sample::*;
use crate::*;

const NODES: [&str; 6] = ["n1", "n2", "n3", "n4", "n5", "n6"];
const SUBCLUSTERS: [&str; 4] = ["sc_a", "sc_b", "sc_empty", "default_subcluster"];
const FAULT_GROUPS: [&str; 3] = ["fg", "fg_inner", "fg_free"];
const ADDRESSES: [&str; 8] = ["a1", "a1_public", "a2", "a3", "a_free", "i1", "i_free", "new"];
const GROUPS: [&str; 4] = ["by_address", "by_fault_group", "by_subcluster", "emptied"];
const RULES: [&str; 5] = ["campus", "campus_v6", "analytics", "rule_of_qa", "qa"];
const PEOPLE: [&str; 8] = ["mira", "gunther", "etl", "qa_role", "inner", "dbadmin", "public", "eve"];
const TABLE_GROUPS: [&str; 3] = ["tg", "tg_second", "tg_third"];

fn one(pool: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    proptest::sample::select(pool)
}

fn some(pool: &'static [&'static str]) -> impl Strategy<Value = Vec<&'static str>> {
    proptest::sample::subsequence(pool, 1..=pool.len().min(3))
}

fn maybe(pool: &'static [&'static str]) -> impl Strategy<Value = Option<&'static str>> {
    proptest::option::of(one(pool))
}

fn source() -> impl Strategy<Value = GroupSource> {
    prop_oneof![
        some(&ADDRESSES).prop_map(|texts| addresses(&texts)),
        some(&FAULT_GROUPS).prop_map(|texts| fault_groups(&texts)),
        some(&SUBCLUSTERS).prop_map(|texts| subclusters(&texts)),
    ]
}

fn address_change() -> impl Strategy<Value = AddressChange> {
    prop_oneof![
        one(&ADDRESSES).prop_map(|to| AddressChange::Rename(name(to))),
        any::<bool>().prop_map(AddressChange::Enable),
        (0_u8..255, proptest::option::of(any::<u16>()))
            .prop_map(|(last, port)| AddressChange::Set { host: host(&format!("192.0.2.{last}")), port }),
    ]
}

fn addressing() -> impl Strategy<Value = Change> {
    let flags = (any::<bool>(), any::<bool>());
    prop_oneof![
        (one(&ADDRESSES), one(&NODES)).prop_map(|(address, node)| create_address(address, node, "192.0.2.50")),
        (one(&ADDRESSES), address_change()).prop_map(|(address, change)| alter_address(address, change)),
        (one(&ADDRESSES), flags).prop_map(|(address, (if_exists, cascade))| Change::DropNetworkAddress {
            name: name(address),
            if_exists,
            cascade,
        }),
        (one(&ADDRESSES), one(&NODES)).prop_map(|(interface, node)| create_interface(interface, node)),
        (one(&ADDRESSES), address_change())
            .prop_map(|(interface, change)| Change::AlterNetworkInterface { name: name(interface), change }),
        (one(&ADDRESSES), flags).prop_map(|(interface, (if_exists, cascade))| Change::DropNetworkInterface {
            name: name(interface),
            if_exists,
            cascade,
        }),
        one(&["net", "net_free"])
            .prop_map(|subnet| Change::CreateSubnet { name: name(subnet), prefix: "10.0.0.0".parse().unwrap() }),
        (one(&["net", "net_free"]), flags).prop_map(|(subnet, (if_exists, cascade))| Change::DropSubnets {
            names: names(&[subnet]),
            if_exists,
            cascade,
        }),
        maybe(&["net", "net_free"]).prop_map(|subnet| Change::ExportDatabaseOn { subnet: subnet.map(name) }),
    ]
}

fn policy() -> impl Strategy<Value = Change> {
    let rule_change = prop_oneof![
        one(&RULES).prop_map(|to| RuleChange::Rename(name(to))),
        Just(RuleChange::Route(network("172.16.0.0/12"))),
        one(&GROUPS).prop_map(|group| RuleChange::Group(name(group))),
        one(&RULES).prop_map(|workload| RuleChange::Workload(name(workload))),
        some(&SUBCLUSTERS).prop_map(|to| RuleChange::Subclusters(names(&to))),
        (0_u32..4).prop_map(RuleChange::Priority),
        some(&SUBCLUSTERS).prop_map(|to| RuleChange::AddSubclusters(names(&to))),
        some(&SUBCLUSTERS).prop_map(|to| RuleChange::RemoveSubclusters(names(&to))),
    ];
    let group_change = prop_oneof![
        one(&GROUPS).prop_map(|to| GroupChange::Rename(name(to))),
        Just(GroupChange::Filter(network("192.0.2.0/24"))),
        source().prop_map(GroupChange::Add),
        source().prop_map(GroupChange::Drop),
    ];
    let target = || {
        prop_oneof![
            one(&RULES).prop_map(|rule| RuleTarget::Named(name(rule))),
            one(&RULES).prop_map(|workload| RuleTarget::Workload(name(workload))),
        ]
    };
    prop_oneof![
        (one(&GROUPS), source(), maybe(&["192.0.2.0/24"]))
            .prop_map(|(group, source, filter)| create_group(group, source, filter)),
        (one(&GROUPS), group_change).prop_map(|(group, change)| alter_group(group, change)),
        (one(&GROUPS), any::<bool>()).prop_map(|(group, cascade)| drop_group(group, cascade)),
        (one(&RULES), one(&GROUPS)).prop_map(|(rule, group)| create_rule(rule, "10.0.0.0/8", group)),
        (maybe(&RULES), one(&RULES), some(&SUBCLUSTERS), 0_u32..4)
            .prop_map(|(rule, workload, to, priority)| create_workload_rule(rule, workload, &to, priority)),
        (target(), rule_change).prop_map(|(target, change)| Change::AlterRoutingRule { target, change }),
        (target(), any::<bool>()).prop_map(|(target, if_exists)| Change::DropRoutingRule { target, if_exists }),
        Just(Change::SetPolicy { policy: Policy::Random }),
    ]
}

fn people() -> impl Strategy<Value = Change> {
    let user_change = prop_oneof![
        one(&PEOPLE).prop_map(|to| UserChange::Rename(name(to))),
        some(&PEOPLE).prop_map(|roles| UserChange::DefaultRoles(names(&roles))),
        some(&PEOPLE).prop_map(|roles| UserChange::DefaultRolesAllExcept(names(&roles))),
        any::<bool>().prop_map(UserChange::Lock),
    ];
    prop_oneof![
        one(&PEOPLE).prop_map(create_user),
        (one(&PEOPLE), user_change).prop_map(|(user, change)| alter_user(user, change)),
        (one(&PEOPLE), any::<bool>()).prop_map(|(user, cascade)| drop_user(user, cascade)),
        one(&PEOPLE).prop_map(create_role),
        (one(&PEOPLE), one(&PEOPLE)).prop_map(|(role, to)| Change::RenameRole { name: name(role), to: name(to) }),
        (one(&PEOPLE), any::<bool>()).prop_map(|(role, cascade)| drop_role(role, cascade)),
        (one(&PEOPLE), one(&PEOPLE), any::<bool>(), one(&PEOPLE))
            .prop_map(|(role, to, admin, by)| grant_role(role, to, admin, by)),
        (one(&PEOPLE), one(&PEOPLE), any::<bool>(), any::<bool>()).prop_map(|(role, from, admin_only, cascade)| {
            Change::RevokeRoles { roles: names(&[role]), grantees: names(&[from]), admin_only, cascade }
        }),
        (one(&RULES), some(&PEOPLE), one(&PEOPLE)).prop_map(|(workload, to, by)| Change::GrantWorkload {
            workload: name(workload),
            grantees: names(&to),
            grantor: name(by),
        }),
        (one(&RULES), some(&PEOPLE)).prop_map(|(workload, from)| revoke_workload(workload, &from)),
        (one(&["default_local", "from_office"]), some(&PEOPLE))
            .prop_map(|(record, to)| grant_authentication(record, &to)),
        (one(&["default_local", "from_office"]), any::<bool>()).prop_map(|(record, cascade)| {
            Change::DropAuthentications { names: names(&[record]), if_exists: true, cascade }
        }),
        (maybe(&PEOPLE), maybe(&NODES)).prop_map(|(user, node)| create_mapping(user, node)),
        (maybe(&PEOPLE), maybe(&NODES), any::<bool>()).prop_map(|(user, node, if_exists)| Change::DropUserMapping {
            user: user.map(name),
            node: node.map(name),
            if_exists,
        }),
        (one(&PEOPLE), maybe(&["1", "2"]))
            .prop_map(|(user, value)| set_setting(SettingTarget::User(name(user)), value)),
    ]
}

fn topology() -> impl Strategy<Value = Change> {
    let node_change = prop_oneof![
        one(&NODES).prop_map(|to| NodeChange::Rename(name(to))),
        maybe(&["postgresql://h/"]).prop_map(|url| NodeChange::Upstream(url.map(Secret::new))),
        maybe(&ADDRESSES).prop_map(|interface| NodeChange::ExportOn(interface.map(name))),
        proptest::sample::select(&[NodeType::Permanent, NodeType::Standby][..]).prop_map(NodeChange::Type),
        maybe(&NODES).prop_map(|with| NodeChange::Replace(with.map(name))),
        Just(NodeChange::Reset),
        (any::<bool>(), proptest::option::of((0_u64..9, any::<bool>()))).prop_map(|(draining, terms)| {
            let terms = terms.map(|(within_ms, then_close)| DrainTerms { within_ms, then_close });
            NodeChange::Drain { draining, terms }
        }),
        maybe(&["postgresql://h/"]).prop_map(|url| NodeChange::Join {
            host: "10.0.0.9".to_owned(),
            port: 5433,
            upstream: url.map(Secret::new),
        }),
    ];
    let subcluster_change = prop_oneof![
        one(&SUBCLUSTERS).prop_map(|to| SubclusterChange::Rename(name(to))),
        Just(SubclusterChange::SetDefault),
        some(&NODES).prop_map(|nodes| SubclusterChange::AddNodes(names(&nodes))),
        some(&NODES).prop_map(|nodes| SubclusterChange::DropNodes(names(&nodes))),
        any::<bool>().prop_map(SubclusterChange::Primary),
    ];
    let fault_group_change = prop_oneof![
        one(&NODES).prop_map(|node| FaultGroupChange::AddNode(name(node))),
        one(&NODES).prop_map(|node| FaultGroupChange::DropNode(name(node))),
        one(&FAULT_GROUPS).prop_map(|group| FaultGroupChange::AddChild(name(group))),
        one(&FAULT_GROUPS).prop_map(|group| FaultGroupChange::DropChild(name(group))),
    ];
    prop_oneof![
        (one(&NODES), maybe(&SUBCLUSTERS)).prop_map(|(node, subcluster)| create_node(node, subcluster)),
        (one(&NODES), node_change).prop_map(|(node, change)| alter_node(node, change)),
        (one(&NODES), any::<bool>()).prop_map(|(node, cascade)| drop_node(node, cascade)),
        one(&SUBCLUSTERS).prop_map(create_subcluster),
        (one(&SUBCLUSTERS), subcluster_change).prop_map(|(subcluster, change)| alter_subcluster(subcluster, change)),
        (one(&SUBCLUSTERS), any::<bool>()).prop_map(|(subcluster, cascade)| drop_subcluster(subcluster, cascade)),
        (maybe(&SUBCLUSTERS), any::<bool>())
            .prop_map(|(subcluster, draining)| Change::DrainSubcluster { name: subcluster.map(name), draining }),
        one(&FAULT_GROUPS).prop_map(|group| Change::CreateFaultGroup { name: name(group) }),
        (one(&FAULT_GROUPS), fault_group_change).prop_map(|(group, change)| alter_fault_group(group, change)),
        one(&FAULT_GROUPS).prop_map(drop_fault_group),
        Just(Change::DropAllFaultGroups),
        (one(&TABLE_GROUPS), 1_u32..9, 1_u32..4)
            .prop_map(|(group, shards, replicas)| create_table_group(group, shards, replicas)),
        one(&TABLE_GROUPS).prop_map(|group| Change::DropTableGroup { name: name(group) }),
        (one(&TABLE_GROUPS), 1_u32..5).prop_map(|(group, replicas)| set_replica_count(group, replicas)),
        one(&TABLE_GROUPS).prop_map(|group| Change::SetDefaultTableGroup { name: name(group) }),
        (one(&NODES), maybe(&["1", "2"])).prop_map(|(node, value)| set_setting(SettingTarget::Node(name(node)), value)),
        Just(Change::Restore { to: Box::new(sample()) }),
    ]
}

pub(crate) fn change() -> impl Strategy<Value = Change> {
    prop_oneof![addressing(), policy(), people(), topology()]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_changes_leave_a_catalog_in_order(changes in proptest::collection::vec(change(), 1..60)) {
        let first = sample();
        let mut catalog = first.clone();
        let mut deltas = Vec::new();
        for change in changes {
            let Ok(applied) = catalog.apply(std::slice::from_ref(&change)) else { continue };
            check_invariants(&applied.catalog);
            let forward = catalog.with_deltas(1, applied.deltas.clone());
            prop_assert_eq!(forward.diff(&applied.catalog), vec![]);
            let backward = applied.catalog.with_deltas(0, applied.deltas.iter().cloned().map(Delta::reversed));
            prop_assert_eq!(backward.diff(&catalog), vec![]);
            prop_assert_eq!(catalog.diff(&applied.catalog).len(), applied.deltas.len());
            deltas.extend(applied.deltas);
            catalog = applied.catalog;
        }
        let merged = merge_deltas(deltas);
        prop_assert_eq!(first.with_deltas(1, merged.clone()).diff(&catalog), vec![]);
        prop_assert_eq!(merged.len(), first.diff(&catalog).len());
    }

    #[test]
    fn changes_at_once_come_to_the_same_as_one_by_one(changes in proptest::collection::vec(change(), 1..6)) {
        let first = sample();
        let one_by_one = changes.iter().try_fold(first.clone(), |catalog, change| {
            catalog.apply(std::slice::from_ref(change)).map(|applied| applied.catalog)
        });
        let at_once = first.apply(&changes).map(|applied| applied.catalog);
        prop_assert_eq!(at_once.as_ref().err(), one_by_one.as_ref().err());
        if let (Ok(at_once), Ok(one_by_one)) = (at_once, one_by_one) {
            prop_assert_eq!(at_once.diff(&one_by_one), vec![]);
        }
    }
}
