//! What the changes do when they are not refused.

use std::collections::BTreeSet;

use super::invariants::check_invariants;
use super::sample::*;
use crate::*;

fn after(changes: &[Change]) -> Catalog {
    let catalog = sample().apply(changes).unwrap().catalog;
    check_invariants(&catalog);
    catalog
}

fn group<'a>(catalog: &'a Catalog, group: &str) -> &'a LoadBalanceGroup {
    catalog.load_balance_groups().named(&name(group)).unwrap()
}

fn node<'a>(catalog: &'a Catalog, node: &str) -> &'a Node {
    catalog.nodes().named(&name(node)).unwrap()
}

fn user<'a>(catalog: &'a Catalog, user: &str) -> &'a User {
    catalog.users().named(&name(user)).unwrap()
}

fn role(catalog: &Catalog, role: &str) -> RoleId {
    catalog.roles().named(&name(role)).unwrap().id
}

#[test]
fn the_first_catalog_is_in_order() {
    let (catalog, deltas) = Catalog::initial(name("switchyard"), name("dbadmin"), None);
    check_invariants(&catalog);
    assert_eq!(catalog.version(), 0);
    assert_eq!(deltas.len(), catalog.entities().count());
    assert!(deltas.iter().all(|delta| delta.before.is_none()));
    let loaded = Catalog::from_entities(0, catalog.id_next(), deltas.into_iter().filter_map(|delta| delta.after));
    assert_eq!(loaded.unwrap().diff(&catalog), []);
    assert_eq!(catalog.database().default_table_group, None);
    assert_eq!(catalog.database().policy, Policy::None);
    assert!(catalog.authentications().iter().all(|record| record.method == AuthenticationMethod::Hash));
    for known in PREDEFINED_ROLES.into_iter().chain([FIRST_SUBCLUSTER]) {
        assert_eq!(Name::parse(known).unwrap().folded(), Name::known(known).folded());
    }
}

#[test]
fn the_sample_is_in_order() {
    check_invariants(&sample());
}

#[test]
fn a_dropped_address_leaves_its_groups() {
    let catalog = after(&[drop_address("a1", true)]);
    let a2 = catalog.network_addresses().named(&name("a2")).unwrap().id;
    assert_eq!(group(&catalog, "by_address").members, GroupMembers::Addresses(vec![a2]));
    let catalog = after(&[drop_address("a1", true), drop_address("a2", true)]);
    assert_eq!(group(&catalog, "by_address").members, GroupMembers::Empty);
    assert!(catalog.routing_rules().named(&name("campus")).is_some());
}

#[test]
fn a_loopback_address_suits_a_node_on_loopback() {
    let local = |host: &str| alter_node("n1", NodeChange::Address { host: host.to_owned(), port: None });
    let catalog = after(&[local("127.0.0.1"), create_address("new", "n1", "127.0.0.1")]);
    assert_eq!(node(&catalog, "n1").port, 5432);
    after(&[local("LocalHost"), create_address("new", "n1", "::1")]);
}

#[test]
fn set_without_port_keeps_the_port() {
    let set = AddressChange::Set { host: host("192.0.2.200"), port: None };
    let port = AddressChange::Set { host: host("192.0.2.200"), port: Some(15433) };
    let catalog = after(&[alter_address("a1", port), alter_address("a1", set)]);
    let address = catalog.network_addresses().named(&name("a1")).unwrap();
    assert_eq!((address.port, &address.host), (15433, &host("192.0.2.200")));
}

#[test]
fn a_rename_may_change_nothing_but_the_case() {
    let renamed = sample().apply(&[alter_address("a1", AddressChange::Rename(name("A1")))]).unwrap();
    assert_eq!(renamed.catalog.network_addresses().named(&name("a1")).unwrap().name.as_str(), "A1");
    assert_eq!(renamed.catalog.network_addresses().names().next().unwrap().as_str(), "A1");
    assert_eq!(renamed.deltas.len(), 1);
    assert_eq!(sample().diff(&renamed.catalog).len(), 1);
}

#[test]
fn what_changes_nothing_has_no_delta() {
    let same = [
        alter_address("a1", AddressChange::Enable(true)),
        Change::SetPolicy { policy: Policy::None },
        set_replica_count("tg", 2),
        set_setting(SettingTarget::Database, Some("50")),
        create_user("fleeting"),
        drop_user("fleeting", false),
        alter_node("n1", drain(false)),
    ];
    assert_eq!(sample().apply(&same).unwrap().deltas, []);
}

#[test]
fn an_interface_leaves_node_definitions_and_a_subnet_the_database() {
    let catalog = after(&[
        Change::DropNetworkInterface { name: name("i1"), if_exists: false, cascade: true },
        Change::DropSubnets { names: names(&["net", "net_free"]), if_exists: false, cascade: true },
    ]);
    assert_eq!(node(&catalog, "n1").export_interface, None);
    assert_eq!(catalog.database().export_subnet, None);
    assert!(catalog.subnets().is_empty());
}

#[test]
fn drop_if_exists_says_when_there_was_nothing() {
    let drop = |names| Change::DropUsers { names, if_exists: true, cascade: true };
    let applied = sample().apply(&[drop(names(&["nobody", "mira"]))]).unwrap();
    assert_eq!(applied.notices.first(), Some(&Notice::Skipped { kind: ObjectKind::User, name: name("nobody") }));
    assert_eq!(applied.notices.first().unwrap().to_string(), "user \"nobody\" does not exist, skipping");
    let nothing = sample().apply(&[drop(names(&["nobody"]))]).unwrap();
    assert_eq!(nothing.notices, [Notice::NothingDropped { kind: ObjectKind::User, name: name("nobody") }]);
    assert_eq!(nothing.notices.first().unwrap().to_string(), "Nothing was dropped");
    assert_eq!(applied.catalog.users().named(&name("mira")), None);
    let mapping = Change::DropUserMapping { user: Some(name("gone")), node: None, if_exists: true };
    let rule = Change::DropRoutingRule { target: RuleTarget::Workload(name("gone")), if_exists: true };
    let applied = sample().apply(&[mapping, rule]).unwrap();
    assert_eq!(applied.notices.len(), 2);
    assert_eq!(applied.deltas, []);
}

#[test]
fn an_empty_group_takes_any_kind() {
    use GroupChange::{Add, Drop, Filter};
    let filter = || alter_group("emptied", Filter(network("192.0.2.0/24")));
    let catalog = after(&[filter(), alter_group("emptied", Add(fault_groups(&["fg", "fg_free"])))]);
    assert!(matches!(group(&catalog, "emptied").members, GroupMembers::FaultGroups(_)));
    let catalog = after(&[
        filter(),
        alter_group("emptied", Add(subclusters(&["sc_a"]))),
        alter_group("emptied", Drop(subclusters(&["sc_a"]))),
        alter_group("emptied", Add(addresses(&["a1"]))),
    ]);
    assert_eq!(group(&catalog, "emptied").filter, None);
}

#[test]
fn a_dropped_group_takes_its_rules_along() {
    let catalog = after(&[drop_group("by_address", true)]);
    assert_eq!(catalog.routing_rules().names().map(Name::as_str).collect::<Vec<_>>(), ["campus_v6"]);
    after(&[drop_group("emptied", false)]);
}

#[test]
fn an_unnamed_workload_rule_has_the_workloads_name() {
    let catalog = after(&[drop_rule("analytics"), create_workload_rule(None, "Analytics", &["sc_b"], 4)]);
    let rule = catalog.rule_of_workload(&name("analytics")).unwrap();
    assert_eq!((rule.name.as_str(), rule.workload.as_str(), rule.priority), ("Analytics", "Analytics", 4));
    // The grants went with the old rule.
    assert_eq!(catalog.workload_grants().iter().filter(|grant| grant.rule == rule.id).count(), 0);
    assert_eq!(catalog.workload_grants().len(), 1);
}

#[test]
fn a_workload_rule_changes_its_workload_priority_and_subclusters() {
    let catalog = after(&[
        alter_rule("rule_of_qa", RuleChange::Workload(name("quality"))),
        alter_workload("quality", RuleChange::Priority(9)),
        alter_workload("quality", RuleChange::AddSubclusters(names(&["sc_b", "sc_empty"]))),
        alter_workload("quality", RuleChange::RemoveSubclusters(names(&["sc_a", "sc_b"]))),
        alter_workload("quality", RuleChange::Rename(name("q"))),
        create_workload_rule(None, "qa", &["sc_a"], 0),
    ]);
    let rule = catalog.workload_rules().named(&name("q")).unwrap();
    assert_eq!((rule.workload.as_str(), rule.priority, rule.subclusters.len()), ("quality", 9, 1));
}

#[test]
fn a_network_rule_changes_its_source_and_group() {
    let catalog = after(&[
        alter_rule("campus", RuleChange::Route(network("172.16.0.0/12"))),
        alter_rule("campus", RuleChange::Group(name("emptied"))),
        alter_rule("campus", RuleChange::Rename(name("lab"))),
    ]);
    let rule = catalog.routing_rules().named(&name("lab")).unwrap();
    assert_eq!((rule.source.typed.as_str(), rule.group), ("172.16.0.0/12", group(&catalog, "emptied").id));
}

#[test]
fn a_dropped_subcluster_is_taken_out_everywhere() {
    let catalog = after(&[drop_subcluster("sc_a", true)]);
    assert_eq!(node(&catalog, "n3").subcluster, catalog.database().default_subcluster);
    let sc_b = catalog.subclusters().named(&name("sc_b")).unwrap().id;
    assert_eq!(group(&catalog, "by_subcluster").members, GroupMembers::Subclusters(vec![sc_b]));
    assert_eq!(catalog.rule_of_workload(&name("analytics")).unwrap().subclusters, [sc_b]);
    // The rule that named no other is gone, with its grant.
    assert_eq!(catalog.rule_of_workload(&name("qa")), None);
    assert_eq!(catalog.workload_grants().len(), 1);
}

#[test]
fn the_default_subcluster_can_be_another() {
    use SubclusterChange::{AddNodes, DropNodes, Primary, SetDefault};
    let catalog = after(&[
        alter_subcluster("sc_empty", SetDefault),
        alter_subcluster("sc_empty", Primary(true)),
        drop_subcluster("default_subcluster", true),
        alter_subcluster("sc_a", AddNodes(names(&["n1"]))),
        alter_subcluster("sc_b", DropNodes(names(&["n4"]))),
    ]);
    let subcluster = |text: &str| catalog.subclusters().named(&name(text)).unwrap().id;
    let of = |text: &str| node(&catalog, text).subcluster;
    assert_eq!(
        [of("n1"), of("n2"), of("n3"), of("n4")],
        [subcluster("sc_a"), subcluster("sc_empty"), subcluster("sc_a"), subcluster("sc_empty"),]
    );
}

#[test]
fn a_dropped_fault_group_hands_its_nodes_to_its_parent() {
    let freed = alter_group("by_fault_group", GroupChange::Drop(fault_groups(&["fg_inner"])));
    let catalog = after(&[freed.clone(), drop_fault_group("fg_inner")]);
    let nodes = &catalog.fault_groups().named(&name("fg")).unwrap().nodes;
    assert_eq!(nodes.as_slice(), [node(&catalog, "n1").id, node(&catalog, "n2").id]);
    let catalog = after(&[freed.clone(), drop_fault_group("fg")]);
    assert_eq!(catalog.fault_groups().names().map(Name::as_str).collect::<Vec<_>>(), ["fg_free"]);
    let catalog = after(&[freed, Change::DropAllFaultGroups]);
    assert!(catalog.fault_groups().is_empty());
}

#[test]
fn a_dropped_node_takes_along_what_is_on_it() {
    let catalog = after(&[drop_node("n1", true)]);
    let left = |names: Vec<&Name>| names.into_iter().map(Name::as_str).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(left(catalog.network_addresses().names().collect()), ["a2", "a3", "a_free"]);
    assert_eq!(left(catalog.network_interfaces().names().collect()), ["i_free"]);
    assert_eq!(catalog.user_mappings().len(), 1);
    assert_eq!(catalog.settings().len(), 2);
    assert_eq!(catalog.fault_groups().named(&name("fg")).unwrap().nodes, []);
    let a2 = catalog.network_addresses().named(&name("a2")).unwrap().id;
    assert_eq!(group(&catalog, "by_address").members, GroupMembers::Addresses(vec![a2]));
}

fn drain(draining: bool) -> NodeChange {
    NodeChange::Drain { draining, terms: None }
}

#[test]
fn the_time_that_a_drain_may_take_ends_with_it() {
    let terms = Some(DrainTerms { within_ms: 5_000, then_close: true });
    let within = alter_node("n3", NodeChange::Drain { draining: true, terms });
    let kept = |changes: &[Change]| {
        let catalog = sample().apply(changes).unwrap().catalog;
        catalog.nodes().named(&name("n3")).map(|node| (node.draining, node.drain))
    };
    assert_eq!(kept(std::slice::from_ref(&within)), Some((true, terms)));
    let again = Change::DrainSubcluster { name: None, draining: true };
    assert_eq!(kept(&[within.clone(), again]), Some((true, terms)));
    let canceled = Change::DrainSubcluster { name: None, draining: false };
    for end in [alter_node("n3", drain(false)), canceled] {
        assert_eq!(kept(&[within.clone(), end]), Some((false, None)));
    }
}

#[test]
fn a_drained_node_is_dropped_without_cascade_when_nothing_is_on_it() {
    let bare = [drop_address("a3", false), alter_node("n3", drain(true)), drop_node("n3", false)];
    assert_eq!(after(&bare).nodes().len(), 3);
}

#[test]
fn a_standby_node_stands_in_until_it_is_reset() {
    let standby = |text: &str| alter_node(text, NodeChange::Type(NodeType::Standby));
    let replace = |text: &str, with: Option<&str>| alter_node(text, NodeChange::Replace(with.map(name)));
    let replaced = [standby("n4"), standby("n3"), replace("n1", None), replace("n2", Some("n4"))];
    let catalog = after(&replaced);
    assert_eq!(node(&catalog, "n1").replaced_by, Some(node(&catalog, "n3").id));
    assert_eq!(node(&catalog, "n2").replaced_by, Some(node(&catalog, "n4").id));
    assert_eq!(catalog.apply(&[replace("n1", Some("n4"))]).unwrap_err(), CatalogError::NotStandby { with: name("n4") });
    let ended = [
        alter_node("n1", NodeChange::Reset),
        alter_node("n4", NodeChange::Type(NodeType::Permanent)),
        alter_node("n1", NodeChange::Rename(name("n1_new"))),
    ];
    let catalog = after(&[&replaced[..], &ended[..]].concat());
    assert!(catalog.nodes().iter().all(|node| node.replaced_by.is_none()));
}

#[test]
fn a_member_takes_a_declared_node_over() {
    let url = || Some(Secret::new("postgresql://10.0.0.14/"));
    let join = |upstream| NodeChange::Join { host: "10.0.0.4".to_owned(), port: 5433, upstream };
    let catalog = after(&[
        alter_node("n4", drain(true)),
        alter_node("n4", NodeChange::Upstream(url())),
        alter_node("n4", join(None)),
        alter_node("n3", join(None)),
    ]);
    let joined = node(&catalog, "n4");
    assert_eq!(joined.kind, NodeKind::Member { upstream: url() });
    assert_eq!((joined.host.as_str(), joined.port, joined.draining), ("10.0.0.4", 5433, false));
    assert!(!node(&catalog, "n3").is_worker());
}

#[test]
fn draining_a_subcluster_moves_its_shards_away() {
    let catalog = after(&[Change::DrainSubcluster { name: Some(name("sc_a")), draining: true }]);
    assert!(node(&catalog, "n3").draining && !node(&catalog, "n4").draining);
    let n3 = node(&catalog, "n3").id;
    assert!(catalog.shards().iter().all(|shard| shard.replicas.iter().all(|replica| replica.worker != n3)));
    let all = after(&[Change::DrainSubcluster { name: None, draining: true }]);
    assert!(all.shards().iter().all(|shard| shard.replicas.is_empty()));
    let back = all.apply(&[Change::DrainSubcluster { name: None, draining: false }]).unwrap().catalog;
    check_invariants(&back);
}

#[test]
fn a_table_group_that_lacks_workers_keeps_its_replica_count() {
    let versions = |catalog: &Catalog| catalog.table_groups().named(&name("tg")).unwrap().version;
    let degraded = sample()
        .apply(&[set_replica_count("tg", 4), Change::DrainSubcluster { name: Some(name("sc_a")), draining: true }])
        .unwrap();
    assert_eq!(degraded.notices, [Notice::Degraded { table_groups: vec![(name("tg"), 4)], workers: 3 }]);
    assert_eq!(
        degraded.notices.first().unwrap().to_string(),
        r#"table group "tg" wants 4 replicas of each shard, but there are 3 workers"#
    );
    // Of many, one notice.
    let both = sample()
        .apply(&[
            set_replica_count("tg", 4),
            set_replica_count("tg_second", 4),
            Change::DrainSubcluster { name: Some(name("sc_a")), draining: true },
        ])
        .unwrap();
    assert_eq!(
        both.notices.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [r#"table groups want more replicas of each shard than there are workers (3): "tg" (4), "tg_second" (4)"#]
    );
    check_invariants(&degraded.catalog);
    assert_eq!(degraded.catalog.table_groups().named(&name("tg")).unwrap().replica_count, 4);
    assert_eq!(versions(&degraded.catalog), versions(&sample()) + 2);
}

#[test]
fn one_table_group_is_the_default_as_long_as_there_are_any() {
    let create = [create_table_group("one", 4, 1), create_table_group("two", 4, 1)];
    let applied = initial().apply(&create).unwrap();
    assert_eq!(applied.notices, [Notice::DefaultTableGroup { name: name("one") }]);
    let default = |catalog: &Catalog| catalog.database().default_table_group;
    let id = |catalog: &Catalog, text: &str| catalog.table_groups().named(&name(text)).map(|group| group.id);
    assert_eq!(default(&applied.catalog), id(&applied.catalog, "one"));
    let catalog = applied.catalog;
    let catalog = catalog.apply(&[Change::SetDefaultTableGroup { name: name("two") }]).unwrap().catalog;
    let catalog = catalog.apply(&[Change::DropTableGroup { name: name("one") }]).unwrap().catalog;
    assert_eq!(default(&catalog), id(&catalog, "two"));
    let catalog = catalog.apply(&[Change::DropTableGroup { name: name("two") }]).unwrap().catalog;
    assert_eq!((default(&catalog), catalog.shards().len()), (None, 0));
    check_invariants(&catalog);
}

#[test]
fn caps_follow_the_vendors_table() {
    let table = [(2, 20), (4, 40), (6, 60), (8, 80), (10, 80), (12, 80), (16, 120), (24, 160), (32, 160)];
    for (workers, shards) in table {
        assert_eq!(default_shard_count(workers), shards);
    }
    assert!((0..100).all(|workers| default_shard_count(workers) <= default_shard_count(workers + 1)));
    // Four workers: 80 shards a group, 320 in all, of which the sample has 11.
    let groups: Vec<Change> = (0..3).map(|i| create_table_group(&format!("t{i}"), 80, 1)).collect();
    let catalog = after(&groups);
    let error = catalog.apply(&[create_table_group("last", 70, 1)]).unwrap_err();
    assert_eq!(
        error,
        CatalogError::TooManyShards {
            table_group: name("last"),
            scope: ShardCap::Cluster,
            count: 321,
            cap: 320,
            workers: 4,
        }
    );
    catalog.apply(&[create_table_group("last", 69, 1)]).unwrap();
    let uncapped = Change::CreateTableGroup {
        name: name("last"),
        shard_count: 500,
        replica_count: 1,
        manually: true,
        shard_cap: false,
    };
    catalog.apply(&[uncapped]).unwrap();
}

#[test]
fn a_dropped_user_takes_along_what_is_his() {
    let catalog = after(&[drop_user("mira", true)]);
    // What she had, and what gunther had from her.
    let etl = role(&catalog, "etl");
    assert_eq!(catalog.role_grants().iter().filter(|grant| grant.role == etl).count(), 0);
    assert_eq!(user(&catalog, "gunther").default_roles, DefaultRoles::None);
    assert_eq!(catalog.workload_grants().len(), 1);
    assert_eq!(catalog.user_mappings().len(), 1);
    assert_eq!(catalog.settings().len(), 2);
    assert_eq!(catalog.authentication_grants().len(), 4);
    // Grants that he has and nobody has from him are not in the way.
    assert_eq!(after(&[drop_user("gunther", false)]).users().len(), 2);
}

#[test]
fn a_dropped_role_is_revoked_everywhere() {
    let catalog = after(&[drop_role("etl", true)]);
    assert_eq!(user(&catalog, "gunther").default_roles, DefaultRoles::None);
    assert_eq!(catalog.authentication_grants().len(), 4);
    let except = alter_user("gunther", UserChange::DefaultRolesAllExcept(names(&["etl", "qa_role"])));
    let catalog = after(&[except, drop_role("etl", true)]);
    assert_eq!(user(&catalog, "gunther").default_roles, DefaultRoles::AllExcept(vec![role(&catalog, "qa_role")]));
}

#[test]
fn a_revoked_role_is_no_default_role() {
    let catalog = after(&[revoke_role("etl", "gunther", false)]);
    assert_eq!(user(&catalog, "gunther").default_roles, DefaultRoles::None);
    let catalog = after(&[revoke_role("etl", "mira", true)]);
    assert_eq!(user(&catalog, "gunther").default_roles, DefaultRoles::None);
    assert!(!catalog.has_role(user(&catalog, "gunther").id, role(&catalog, "etl")));
}

#[test]
fn grants_that_only_hold_each_other_up_fall() {
    let catalog = after(&[grant_role("etl", "gunther", true, "mira"), grant_role("etl", "qa_role", true, "gunther")]);
    // Gunther has the role from mira, and from a role to which he granted it himself.
    let cascade = catalog.apply(&[revoke_role("etl", "mira", true)]).unwrap().catalog;
    check_invariants(&cascade);
    let etl = role(&cascade, "etl");
    assert!(cascade.role_grants().iter().all(|grant| grant.role != etl));
}

#[test]
fn grants_twice_and_revokes_of_nothing_are_told() {
    let applied = sample()
        .apply(&[
            grant_role("etl", "mira", false, "dbadmin"),
            revoke_role("inner", "mira", false),
            grant_workload("analytics", &["mira"]),
            revoke_workload("analytics", &["gunther"]),
            grant_authentication("from_office", &["mira"]),
            Change::RevokeAuthentication { name: name("from_office"), grantees: names(&["gunther"]) },
        ])
        .unwrap();
    let told: Vec<String> = applied.notices.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            r#"role "etl" is already granted to "mira""#,
            r#"role "inner" is not granted to "mira""#,
            r#"workload "analytics" is already granted to "mira""#,
            r#"workload "analytics" is not granted to "gunther""#,
            r#"authentication "from_office" is already granted to "mira""#,
            r#"authentication "from_office" is not granted to "gunther""#,
        ]
    );
    assert_eq!(applied.deltas, []);
}

#[test]
fn admin_option_comes_and_goes() {
    let (gunther, etl) = (user(&sample(), "gunther").id, role(&sample(), "etl"));
    let admin = grant_role("etl", "gunther", true, "dbadmin");
    let catalog = after(std::slice::from_ref(&admin));
    assert!(catalog.may_grant_role(gunther, etl));
    let no_admin =
        Change::RevokeRoles { roles: names(&["etl"]), grantees: names(&["gunther"]), admin_only: true, cascade: false };
    let catalog = after(&[admin, no_admin]);
    assert!(!catalog.may_grant_role(gunther, etl) && catalog.has_role(gunther, etl));
}

#[test]
fn a_password_ends_its_expiry() {
    let verifiers = Verifiers { scram: Secret::new("a"), sha512: Secret::new("b"), md5: None };
    let expired = after(&[alter_user("mira", UserChange::ExpirePassword)]);
    assert!(user(&expired, "mira").password_expired);
    let changes = vec![
        UserChange::Password(Some(verifiers.clone())),
        UserChange::MaxConnections(Some((5, LimitScope::Node))),
        UserChange::Lock(true),
        UserChange::SearchPath(Some(names(&["public"]))),
    ];
    let catalog = expired.apply(&[Change::AlterUser { name: name("mira"), changes }]).unwrap().catalog;
    let mira = user(&catalog, "mira");
    assert_eq!((&mira.verifiers, mira.password_expired, mira.locked), (&Some(verifiers), false, true));
    assert_eq!(mira.limits.max_connections, Some((5, LimitScope::Node)));
}

#[test]
fn authentications_change_and_go() {
    use AuthenticationChange::{Parameter, Priority};
    let alter = |change| Change::AlterAuthentication { name: name("from_office"), change };
    let parameter = |key: &str, value: Option<&str>| Parameter(key.to_owned(), value.map(str::to_owned));
    let catalog = after(&[
        alter(Priority(5)),
        alter(parameter("host", Some("a"))),
        alter(parameter("base", Some("b"))),
        alter(parameter("HOST", Some("c"))),
        alter(parameter("base", None)),
    ]);
    let record = catalog.authentications().named(&name("from_office")).unwrap();
    assert_eq!((record.priority, record.parameters.as_slice()), (5, &[("HOST".to_owned(), "c".to_owned())][..]));
    let drop = Change::DropAuthentications { names: names(&["from_office"]), if_exists: false, cascade: true };
    assert_eq!(after(&[drop]).authentication_grants().len(), 3);
}

#[test]
fn the_nearest_user_mapping_applies() {
    let catalog = after(&[create_mapping(Some("mira"), None), create_mapping(None, Some("n2"))]);
    let found = |who: &str, at: &str| {
        let mapping = catalog.login_on(user(&catalog, who).id, node(&catalog, at).id).unwrap();
        (mapping.user.is_some(), mapping.node.is_some())
    };
    assert_eq!(found("mira", "n1"), (true, true));
    assert_eq!(found("mira", "n2"), (true, false));
    assert_eq!(found("gunther", "n2"), (false, true));
    assert_eq!(found("gunther", "n1"), (false, false));
    let change = MappingChange { remote_user: Some("other".to_owned()), password: Some(None) };
    let alter = Change::AlterUserMapping { user: None, node: None, change };
    let catalog = after(&[alter]);
    let mapping = catalog.user_mapping(None, None).unwrap();
    assert_eq!((mapping.remote_user.as_str(), &mapping.password), ("other", &None));
}

#[test]
fn settings_are_by_level() {
    let node_level = SettingLevel::Node(node(&sample(), "n1").id);
    let catalog =
        after(&[set_setting(SettingTarget::Database, Some("60")), set_setting(SettingTarget::Node(name("n1")), None)]);
    assert_eq!(catalog.setting(SettingLevel::Database, "MaxClientSessions").unwrap().value, "60");
    assert_eq!(catalog.setting(node_level, "MaxClientSessions"), None);
    assert_eq!(sample().settings_at(node_level).map(|setting| setting.value.as_str()).collect::<Vec<_>>(), ["7"]);
}

#[test]
fn restoring_brings_everything_back_and_reuses_no_id() {
    let old = sample();
    let new = old
        .apply(&[drop_node("n1", true), drop_user("mira", true), drop_group("by_address", true), create_user("eve")])
        .unwrap()
        .catalog
        .with_version(8);
    let applied = new.apply(&[Change::Restore { to: Box::new(old.clone()) }]).unwrap();
    check_invariants(&applied.catalog);
    assert_eq!(applied.catalog.diff(&old), []);
    assert_eq!((applied.catalog.version(), applied.catalog.id_next()), (8, new.id_next()));
    assert!(new.id_next() > old.id_next());
    assert_eq!(new.with_deltas(9, applied.deltas).diff(&old), []);
}

#[test]
fn names_can_be_swapped_in_one_step() {
    let rename = |from: &str, to: &str| alter_group(from, GroupChange::Rename(name(to)));
    let old = sample();
    let applied =
        old.apply(&[rename("by_address", "x"), rename("emptied", "by_address"), rename("x", "emptied")]).unwrap();
    check_invariants(&applied.catalog);
    for deltas in [applied.deltas.clone(), applied.deltas.iter().rev().cloned().collect()] {
        let followed = old.with_deltas(1, deltas);
        check_invariants(&followed);
        assert_eq!(followed.diff(&applied.catalog), []);
    }
}

#[test]
fn deltas_of_several_steps_merge() {
    let old = sample();
    let mut catalog = old.clone();
    let mut deltas = Vec::new();
    let steps = [
        create_user("eve"),
        alter_user("eve", UserChange::Lock(true)),
        create_user("fleeting"),
        drop_user("fleeting", false),
        alter_user("mira", UserChange::Lock(true)),
        alter_user("mira", UserChange::Lock(false)),
        drop_user("gunther", false),
    ];
    for step in steps {
        let applied = catalog.apply(&[step]).unwrap();
        catalog = applied.catalog;
        deltas.extend(applied.deltas);
    }
    let merged = merge_deltas(deltas);
    let touched: Vec<u64> =
        merged.iter().filter_map(|delta| delta.after.as_ref().or(delta.before.as_ref())).map(Entity::id).collect();
    assert_eq!(touched.iter().collect::<BTreeSet<_>>().len(), touched.len());
    assert_eq!(merged.len(), old.diff(&catalog).len());
    assert_eq!(old.with_deltas(1, merged.clone()).diff(&catalog), []);
    assert_eq!(catalog.with_deltas(0, merged.into_iter().map(Delta::reversed)).diff(&old), []);
}

#[test]
fn entities_survive_json() {
    let catalog = sample();
    for entity in catalog.entities() {
        let json = serde_json::to_string(&entity).unwrap();
        let read: Entity = serde_json::from_str(&json).unwrap();
        assert_eq!(format!("{read:?}"), format!("{entity:?}"), "{json}");
        assert_eq!(read, entity);
    }
    let kinds: BTreeSet<&str> = catalog.entities().map(|entity| entity.kind()).collect();
    assert_eq!(kinds.len(), 20, "the sample lacks a kind of entity");
}
