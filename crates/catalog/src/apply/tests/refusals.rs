//! Every refusal, and what it says. None changes anything, by construction: the catalog is immutable.

use super::sample::*;
use crate::*;

/// Asserts that each change is refused with this text.
fn refused(cases: &[(Change, &str)]) {
    let catalog = sample();
    for (change, text) in cases {
        let error = catalog.apply(std::slice::from_ref(change));
        assert_eq!(&error.map(|applied| applied.deltas).unwrap_err().to_string(), text, "{change:?}");
    }
}

#[test]
fn network_addresses() {
    refused(&[
        (create_address("A1", "n1", "192.0.2.9"), r#"Object "A1" already exists"#),
        (create_address("i1", "n1", "192.0.2.9"), r#"Object "i1" already exists"#),
        (create_address("new", "n9", "192.0.2.9"), r#"Node "n9" does not exist"#),
        (create_address("new", "n1", "127.0.0.1"), r#"Invalid IP address "127.0.0.1""#),
        (create_address("new", "n1", "127.8.0.1"), r#"Invalid IP address "127.8.0.1""#),
        (create_address("new", "n1", "::1"), r#"Invalid IP address "::1""#),
        (create_address("new", "n1", "::ffff:127.0.0.1"), r#"Invalid IP address "::ffff:127.0.0.1""#),
        (create_address("new", "n1", "0.0.0.0"), r#"Invalid IP address "0.0.0.0""#),
        (create_address("new", "n1", "::"), r#"Invalid IP address "::""#),
        (create_address("new", "n1", "224.0.0.1"), r#"Invalid IP address "224.0.0.1""#),
        (create_address("new", "n1", "ff02::1"), r#"Invalid IP address "ff02::1""#),
        (create_address("new", "n1", "255.255.255.255"), r#"Invalid IP address "255.255.255.255""#),
        (create_address("new", "n1", ""), r#"Invalid IP address """#),
        (
            Change::CreateNetworkAddress {
                name: name("new"),
                node: name("n1"),
                host: host("192.0.2.9"),
                port: 0,
                enabled: true,
            },
            "Invalid value 0 for port",
        ),
        (alter_address("a9", AddressChange::Enable(true)), r#"Network address "a9" does not exist"#),
        (alter_address("i1", AddressChange::Enable(true)), r#"Network address "i1" does not exist"#),
        (alter_address("a1", AddressChange::Rename(name("a2"))), r#"Object "a2" already exists"#),
        (alter_address("a1", AddressChange::Rename(name("i1"))), r#"Object "i1" already exists"#),
        (
            alter_address("a1", AddressChange::Set { host: host("127.0.0.1"), port: None }),
            r#"Invalid IP address "127.0.0.1""#,
        ),
        (
            alter_address("a1", AddressChange::Set { host: host("192.0.2.9"), port: Some(0) }),
            "Invalid value 0 for port",
        ),
        (drop_address("a9", false), r#"Network address "a9" does not exist"#),
        (drop_address("a1", false), "DROP failed due to dependencies"),
    ]);
}

#[test]
fn interfaces_and_subnets() {
    let alter = |interface: &str, change| Change::AlterNetworkInterface { name: name(interface), change };
    let drop = |texts: &[&str]| Change::DropSubnets { names: names(texts), if_exists: false, cascade: false };
    refused(&[
        (create_interface("a1", "n1"), r#"Object "a1" already exists"#),
        (create_interface("new", "n9"), r#"Node "n9" does not exist"#),
        (alter("i9", AddressChange::Enable(true)), r#"Network interface "i9" does not exist"#),
        (alter("i1", AddressChange::Rename(name("a1"))), r#"Object "a1" already exists"#),
        (alter("i1", AddressChange::Set { host: host("0.0.0.0"), port: None }), r#"Invalid IP address "0.0.0.0""#),
        (
            Change::DropNetworkInterface { name: name("i1"), if_exists: true, cascade: false },
            "DROP failed due to dependencies",
        ),
        (
            Change::CreateSubnet { name: name("NET"), prefix: "10.0.0.0".parse().unwrap() },
            r#"Object "NET" already exists"#,
        ),
        (Change::RenameSubnet { name: name("net"), to: name("net_free") }, r#"Object "net_free" already exists"#),
        (drop(&["net_fre"]), r#"Subnet "net_fre" does not exist"#),
        (drop(&["net_free", "net_free"]), r#"Subnet "net_free" is named more than once"#),
        (drop(&["net_free", "net"]), "DROP failed due to dependencies"),
        (Change::ExportDatabaseOn { subnet: Some(name("nope")) }, r#"Subnet "nope" does not exist"#),
    ]);
}

#[test]
fn load_balance_groups() {
    use GroupChange::{Add, Drop, Filter, Rename};
    refused(&[
        (create_group("BY_ADDRESS", addresses(&["a3"]), None), r#"Object "BY_ADDRESS" already exists"#),
        (create_group("new", addresses(&["a9"]), None), r#"Network address "a9" does not exist"#),
        (create_group("new", fault_groups(&["fg9"]), Some("::/0")), r#"Fault group "fg9" does not exist"#),
        (create_group("new", subclusters(&["sc_9"]), Some("::/0")), r#"Subcluster "sc_9" does not exist"#),
        (create_group("new", addresses(&["a3", "A3"]), None), r#"Network address "A3" is named more than once"#),
        (
            create_group("new", addresses(&["a2", "a1", "a1_public"]), None),
            r#"Load balance group "new" already has an address on node "n1""#,
        ),
        (
            create_group("new", addresses(&["a3"]), Some("::/0")),
            r#"Load balance group "new" holds network addresses, which take no filter"#,
        ),
        (create_group("new", subclusters(&["sc_a"]), None), r#"Load balance group "new" has no filter"#),
        (create_group("new", fault_groups(&["fg"]), None), r#"Load balance group "new" has no filter"#),
        (create_group("new", addresses(&[]), None), r#"Load balance group "new" needs at least one member"#),
        (alter_group("by_addres", Rename(name("new"))), r#"Load balance group "by_addres" does not exist"#),
        (alter_group("by_address", Rename(name("emptied"))), r#"Object "emptied" already exists"#),
        (
            alter_group("by_address", Filter(network("::/0"))),
            r#"Load balance group "by_address" holds network addresses, which take no filter"#,
        ),
        (
            alter_group("by_address", Add(subclusters(&["sc_a"]))),
            r#"Load balance group "by_address" holds network addresses; subclusters cannot be added"#,
        ),
        (
            alter_group("by_subcluster", Add(fault_groups(&["fg"]))),
            r#"Load balance group "by_subcluster" holds subclusters; fault groups cannot be added"#,
        ),
        (
            alter_group("by_fault_group", Add(addresses(&["a1"]))),
            r#"Load balance group "by_fault_group" holds fault groups; network addresses cannot be added"#,
        ),
        (
            alter_group("by_address", Add(addresses(&["a3", "a1_public"]))),
            r#"Load balance group "by_address" already has an address on node "n1""#,
        ),
        (
            alter_group("by_address", Add(addresses(&["a1"]))),
            r#"Network address "a1" is already in load balance group "by_address""#,
        ),
        (
            alter_group("by_subcluster", Add(subclusters(&["sc_b"]))),
            r#"Subcluster "sc_b" is already in load balance group "by_subcluster""#,
        ),
        (alter_group("emptied", Add(subclusters(&["sc_a"]))), r#"Load balance group "emptied" has no filter"#),
        (
            alter_group("by_address", Drop(addresses(&["a1", "a3"]))),
            r#"Network address "a3" does not exist in load balance group "by_address""#,
        ),
        (
            alter_group("by_address", Drop(subclusters(&["sc_a"]))),
            r#"Subcluster "sc_a" does not exist in load balance group "by_address""#,
        ),
        (
            alter_group("emptied", Drop(addresses(&["a1"]))),
            r#"Network address "a1" does not exist in load balance group "emptied""#,
        ),
        (drop_group("nope", true), r#"Load balance group "nope" does not exist"#),
        (drop_group("by_address", false), "DROP failed due to dependencies"),
    ]);
}

#[test]
fn routing_rules() {
    use RuleChange::*;
    let by_client = |action: &str| format!(r#"{action} does not apply to routing rule "campus""#);
    refused(&[
        (create_rule("CAMPUS", "10.0.0.0/8", "by_address"), r#"Object "CAMPUS" already exists"#),
        (create_rule("analytics", "10.0.0.0/8", "by_address"), r#"Object "analytics" already exists"#),
        (create_rule("new", "10.0.0.0/8", "by_adress"), r#"Load balance group "by_adress" does not exist"#),
        (create_workload_rule(None, "Analytics", &["sc_a"], 0), r#"Object "Analytics" already exists"#),
        (create_workload_rule(Some("new"), "qa", &["sc_a"], 0), r#"Object "qa" already exists"#),
        (create_workload_rule(None, "campus", &["sc_a"], 0), r#"Object "campus" already exists"#),
        (create_workload_rule(Some("rule_of_qa"), "new", &["sc_a"], 0), r#"Object "rule_of_qa" already exists"#),
        (create_workload_rule(None, "new", &["sc_a", "sc_c"], 0), r#"Subcluster "sc_c" does not exist"#),
        (create_workload_rule(None, "new", &["sc_a", "SC_A"], 0), r#"Subcluster "SC_A" is named more than once"#),
        (create_workload_rule(None, "new", &[], 0), r#"Routing rule "new" needs at least one subcluster"#),
        (alter_rule("nope", Priority(1)), r#"Routing rule "nope" does not exist"#),
        (alter_workload("campus", Priority(1)), r#"Workload "campus" does not exist"#),
        (alter_rule("campus", Rename(name("analytics"))), r#"Object "analytics" already exists"#),
        (alter_workload("analytics", Rename(name("campus"))), r#"Object "campus" already exists"#),
        (alter_rule("campus", Group(name("nope"))), r#"Load balance group "nope" does not exist"#),
        (alter_rule("campus", Workload(name("w"))), &by_client("SET WORKLOAD")),
        (alter_rule("campus", Priority(1)), &by_client("SET PRIORITY")),
        (alter_rule("campus", Subclusters(names(&["sc_a"]))), &by_client("SET SUBCLUSTER")),
        (alter_rule("campus", AddSubclusters(names(&["sc_a"]))), &by_client("ADD SUBCLUSTER")),
        (alter_rule("campus", RemoveSubclusters(names(&["sc_a"]))), &by_client("REMOVE SUBCLUSTER")),
        (
            alter_workload("analytics", Route(network("::/0"))),
            r#"SET ROUTE does not apply to routing rule "analytics""#,
        ),
        (
            alter_rule("rule_of_qa", Group(name("by_address"))),
            r#"SET GROUP does not apply to routing rule "rule_of_qa""#,
        ),
        (alter_workload("qa", Workload(name("analytics"))), r#"Object "analytics" already exists"#),
        (alter_workload("qa", Subclusters(names(&["sc_9"]))), r#"Subcluster "sc_9" does not exist"#),
        (alter_workload("qa", Subclusters(Vec::new())), r#"Routing rule "rule_of_qa" needs at least one subcluster"#),
        (
            alter_workload("qa", AddSubclusters(names(&["sc_a"]))),
            r#"Subcluster "sc_a" is already in routing rule "rule_of_qa""#,
        ),
        (
            alter_workload("qa", RemoveSubclusters(names(&["sc_b"]))),
            r#"Subcluster "sc_b" does not exist in routing rule "rule_of_qa""#,
        ),
        (
            alter_workload("qa", RemoveSubclusters(names(&["sc_a"]))),
            r#"Routing rule "rule_of_qa" needs at least one subcluster"#,
        ),
        (drop_rule("nope"), r#"Routing rule "nope" does not exist"#),
        (
            Change::DropRoutingRule { target: RuleTarget::Workload(name("rule_of_qa")), if_exists: false },
            r#"Workload "rule_of_qa" does not exist"#,
        ),
        (grant_workload("campus", &["mira"]), r#"Workload "campus" does not exist"#),
        (grant_workload("qa", &["nobody"]), r#"User or role "nobody" does not exist"#),
        (grant_workload("qa", &["mira", "MIRA"]), r#"User or role "MIRA" is named more than once"#),
        (revoke_workload("nope", &["mira"]), r#"Workload "nope" does not exist"#),
        (revoke_workload("qa", &["nobody"]), r#"User or role "nobody" does not exist"#),
    ]);
}

#[test]
fn users() {
    let default_roles = |texts: &[&str]| alter_user("mira", UserChange::DefaultRoles(names(texts)));
    refused(&[
        (create_user("MIRA"), r#"Object "MIRA" already exists"#),
        (create_user("etl"), r#"Object "etl" already exists"#),
        (create_user("public"), r#"role name "public" is reserved"#),
        (
            Change::CreateUser { name: name("root"), superuser: true, changes: Vec::new() },
            r#"User "root" cannot be a superuser: "dbadmin" is the only one"#,
        ),
        (alter_user("miro", UserChange::ExpirePassword), r#"User "miro" does not exist"#),
        (alter_user("etl", UserChange::ExpirePassword), r#"User "etl" does not exist"#),
        (alter_user("mira", UserChange::Rename(name("gunther"))), r#"Object "gunther" already exists"#),
        (alter_user("mira", UserChange::Rename(name("etl"))), r#"Object "etl" already exists"#),
        (alter_user("dbadmin", UserChange::Rename(name("root"))), r#"User "dbadmin" cannot be renamed"#),
        (alter_user("dbadmin", UserChange::Lock(true)), r#"User "dbadmin" cannot be locked"#),
        (default_roles(&["qa_role"]), r#"Role "qa_role" has not been granted to user "mira""#),
        (default_roles(&["etl", "nope"]), r#"Role "nope" does not exist"#),
        (default_roles(&["etl", "ETL"]), r#"Role "ETL" is named more than once"#),
        (alter_user("mira", UserChange::DefaultRolesAllExcept(names(&["nope"]))), r#"Role "nope" does not exist"#),
        (drop_user("nobody", true), r#"User "nobody" does not exist"#),
        (drop_user("dbadmin", true), r#"User "dbadmin" cannot be dropped"#),
        (drop_user("mira", false), "DROP failed due to dependencies"),
    ]);
}

#[test]
fn roles() {
    let rename = |role: &str, to: &str| Change::RenameRole { name: name(role), to: name(to) };
    refused(&[
        (create_role("mira"), r#"Object "mira" already exists"#),
        (create_role("ETL"), r#"Object "ETL" already exists"#),
        (rename("nope", "new"), r#"Role "nope" does not exist"#),
        (rename("etl", "mira"), r#"Object "mira" already exists"#),
        (rename("sysmonitor", "new"), r#"Role "SYSMONITOR" cannot be renamed"#),
        (drop_role("public", true), r#"Role "PUBLIC" cannot be dropped"#),
        (drop_role("udxdeveloper", true), r#"Role "UDXDEVELOPER" cannot be dropped"#),
        (drop_role("nope", true), r#"Role "nope" does not exist"#),
        (drop_role("etl", false), "DROP failed due to dependencies"),
        (grant_role("nope", "mira", false, "dbadmin"), r#"Role "nope" does not exist"#),
        (grant_role("mira", "gunther", false, "dbadmin"), r#"Role "mira" does not exist"#),
        (grant_role("etl", "nope", false, "dbadmin"), r#"User or role "nope" does not exist"#),
        (grant_role("etl", "mira", false, "nope"), r#"User "nope" does not exist"#),
        (grant_role("public", "mira", false, "dbadmin"), r#"Role "PUBLIC" cannot be granted"#),
        (grant_role("etl", "qa_role", false, "gunther"), r#"User "gunther" may not grant role "etl""#),
        (
            grant_role("etl", "etl", false, "dbadmin"),
            r#"Role "etl" cannot be granted to role "etl": it would be granted to itself"#,
        ),
        (
            grant_role("qa_role", "inner", false, "dbadmin"),
            r#"Role "qa_role" cannot be granted to role "inner": it would be granted to itself"#,
        ),
        (revoke_role("public", "mira", true), r#"Role "PUBLIC" cannot be revoked"#),
        (revoke_role("dbadmin", "dbadmin", true), r#"Role "DBADMIN" cannot be revoked from the superuser"#),
        (revoke_role("etl", "mira", false), "dependent privileges exist"),
        (
            Change::RevokeRoles {
                roles: names(&["etl"]),
                grantees: names(&["mira"]),
                admin_only: true,
                cascade: false,
            },
            "dependent privileges exist",
        ),
    ]);
}

#[test]
fn authentications_and_mappings() {
    let alter = |record: &str, change| Change::AlterAuthentication { name: name(record), change };
    let drop = |record: &str| Change::DropAuthentications { names: names(&[record]), if_exists: false, cascade: false };
    let change = MappingChange { remote_user: None, password: Some(None) };
    refused(&[
        (
            create_authentication("DEFAULT_LOCAL", AuthenticationAccess::Local),
            r#"Object "DEFAULT_LOCAL" already exists"#,
        ),
        (alter("nope", AuthenticationChange::Enable(false)), r#"Authentication "nope" does not exist"#),
        (
            alter("from_office", AuthenticationChange::Rename(name("default_local"))),
            r#"Object "default_local" already exists"#,
        ),
        (drop("nope"), r#"Authentication "nope" does not exist"#),
        (drop("from_office"), "DROP failed due to dependencies"),
        (grant_authentication("nope", &["mira"]), r#"Authentication "nope" does not exist"#),
        (grant_authentication("from_office", &["nope"]), r#"User or role "nope" does not exist"#),
        (
            Change::RevokeAuthentication { name: name("nope"), grantees: names(&["mira"]) },
            r#"Authentication "nope" does not exist"#,
        ),
        (create_mapping(Some("MIRA"), Some("N1")), r#"user mapping for "MIRA" already exists for server "N1""#),
        (create_mapping(None, None), r#"user mapping for "PUBLIC" already exists"#),
        (create_mapping(Some("public"), None), r#"user mapping for "public" already exists"#),
        (create_mapping(Some("nope"), None), r#"User "nope" does not exist"#),
        (create_mapping(Some("mira"), Some("n9")), r#"Node "n9" does not exist"#),
        (
            Change::AlterUserMapping { user: Some(name("mira")), node: None, change },
            r#"user mapping for "mira" does not exist"#,
        ),
        (
            Change::DropUserMapping { user: None, node: Some(name("n1")), if_exists: false },
            r#"user mapping for "PUBLIC" does not exist for server "n1""#,
        ),
        (set_setting(SettingTarget::Node(name("n9")), Some("1")), r#"Node "n9" does not exist"#),
        (set_setting(SettingTarget::User(name("nope")), Some("1")), r#"User "nope" does not exist"#),
    ]);
}

#[test]
fn nodes() {
    let kind = NodeKind::Member { upstream: None };
    let join = NodeChange::Join { host: String::new(), port: 1, upstream: None };
    refused(&[
        (create_node("N1", None), r#"Object "N1" already exists"#),
        (create_node("new", Some("sc_9")), r#"Subcluster "sc_9" does not exist"#),
        (
            Change::CreateNode { name: name("new"), kind, host: "h".to_owned(), port: 0, subcluster: None },
            "Invalid value 0 for port",
        ),
        (alter_node("n9", NodeChange::Reset), r#"Node "n9" does not exist"#),
        (alter_node("n1", NodeChange::Rename(name("n2"))), r#"Object "n2" already exists"#),
        (alter_node("n1", NodeChange::Address { host: String::new(), port: None }), r#"Invalid IP address """#),
        (alter_node("n1", join), r#"Invalid IP address """#),
        (alter_node("n1", NodeChange::ExportOn(Some(name("a1")))), r#"Network interface "a1" does not exist"#),
        (
            alter_node("n1", NodeChange::ExportOn(Some(name("i_free")))),
            r#"Network interface "i_free" is not on node "n1""#,
        ),
        (alter_node("n1", NodeChange::Replace(None)), r#"No standby node is free to replace node "n1""#),
        (alter_node("n1", NodeChange::Replace(Some(name("n2")))), r#"Node "n2" is not a free standby node"#),
        (alter_node("n1", NodeChange::Replace(Some(name("n9")))), r#"Node "n9" does not exist"#),
        (drop_node("n9", true), r#"Node "n9" does not exist"#),
        (drop_node("n4", false), "DROP failed due to dependencies"),
    ]);
}

#[test]
fn subclusters_and_fault_groups() {
    use FaultGroupChange::{AddChild, AddNode, DropChild, DropNode};
    use SubclusterChange::{AddNodes, DropNodes, Primary};
    refused(&[
        (create_subcluster("SC_A"), r#"Object "SC_A" already exists"#),
        (alter_subcluster("nope", SubclusterChange::SetDefault), r#"Subcluster "nope" does not exist"#),
        (alter_subcluster("sc_a", SubclusterChange::Rename(name("sc_b"))), r#"Object "sc_b" already exists"#),
        (alter_subcluster("sc_a", AddNodes(names(&["n9"]))), r#"Node "n9" does not exist"#),
        (alter_subcluster("sc_a", AddNodes(names(&["n1", "n1"]))), r#"Node "n1" is named more than once"#),
        (alter_subcluster("sc_a", AddNodes(names(&["n3"]))), r#"Node "n3" is already in subcluster "sc_a""#),
        (alter_subcluster("sc_a", DropNodes(names(&["n1"]))), r#"Node "n1" does not exist in subcluster "sc_a""#),
        (
            alter_subcluster("default_subcluster", DropNodes(names(&["n1"]))),
            r#"Node "n1" cannot be dropped from the default subcluster "default_subcluster""#,
        ),
        (
            alter_subcluster("default_subcluster", Primary(false)),
            r#"Subcluster "default_subcluster" is the only primary subcluster"#,
        ),
        (drop_subcluster("nope", false), r#"Subcluster "nope" does not exist"#),
        (drop_subcluster("default_subcluster", true), r#"Subcluster "default_subcluster" cannot be dropped"#),
        (drop_subcluster("sc_a", false), "DROP failed due to dependencies"),
        (Change::DrainSubcluster { name: Some(name("nope")), draining: true }, r#"Subcluster "nope" does not exist"#),
        (Change::CreateFaultGroup { name: name("FG") }, r#"Object "FG" already exists"#),
        (alter_fault_group("nope", AddNode(name("n1"))), r#"Fault group "nope" does not exist"#),
        (alter_fault_group("fg", FaultGroupChange::Rename(name("fg_inner"))), r#"Object "fg_inner" already exists"#),
        (alter_fault_group("fg", AddNode(name("n9"))), r#"Node "n9" does not exist"#),
        (alter_fault_group("fg_free", AddNode(name("n1"))), r#"Node "n1" is already in fault group "fg""#),
        (alter_fault_group("fg_free", DropNode(name("n1"))), r#"Node "n1" does not exist in fault group "fg_free""#),
        (
            alter_fault_group("fg_free", AddChild(name("fg_inner"))),
            r#"Fault group "fg_inner" is already in fault group "fg""#,
        ),
        (
            alter_fault_group("fg_inner", AddChild(name("fg"))),
            r#"Fault group "fg" cannot be added to "fg_inner": it would contain itself"#,
        ),
        (
            alter_fault_group("fg", AddChild(name("fg"))),
            r#"Fault group "fg" cannot be added to "fg": it would contain itself"#,
        ),
        (
            alter_fault_group("fg", DropChild(name("fg_free"))),
            r#"Fault group "fg_free" does not exist in fault group "fg""#,
        ),
        (drop_fault_group("nope"), r#"Fault group "nope" does not exist"#),
        // The group that is in the way holds the inner one.
        (drop_fault_group("fg"), "DROP failed due to dependencies"),
        (Change::DropAllFaultGroups, "DROP failed due to dependencies"),
    ]);
}

#[test]
fn table_groups() {
    let uncapped = |shard_count| Change::CreateTableGroup {
        name: name("new"),
        shard_count,
        replica_count: 1,
        manually: true,
        shard_cap: false,
    };
    refused(&[
        (create_table_group("TG", 8, 1), r#"Object "TG" already exists"#),
        (create_table_group("new", 0, 1), "Invalid value 0 for shard_count"),
        (uncapped(10_001), "Invalid value 10001 for shard_count"),
        (create_table_group("new", 8, 0), "Invalid value 0 for replica_count"),
        (create_table_group("new", 8, 5), "replica_count (5) exceeds the number of workers (4)"),
        (create_table_group("new", 81, 1), "too many shards in this instance"),
        (set_replica_count("nope", 1), r#"Table group "nope" does not exist"#),
        (set_replica_count("tg", 0), "Invalid value 0 for replica_count"),
        (set_replica_count("tg", 5), "replica_count (5) exceeds the number of workers (4)"),
        (Change::DropTableGroup { name: name("nope") }, r#"Table group "nope" does not exist"#),
        (Change::DropTableGroup { name: name("tg") }, r#"Table group "tg" is the default table group"#),
        (Change::SetDefaultTableGroup { name: name("nope") }, r#"Table group "nope" does not exist"#),
    ]);
}

/// The notices, detail and hint that come with the first refusal of each kind that has them.
#[test]
fn refusals_say_what_to_do() {
    let refusal = |change: Change| sample().apply(&[change]).unwrap_err();
    let said = |change: Change| {
        let error = refusal(change);
        (error.detail().unwrap_or_default(), error.hint().unwrap_or_default())
    };
    let error = refusal(drop_address("a1", false));
    assert_eq!(error.dependency_notices(), ["The LoadBalanceGroup by_address depends on NetworkInterface a1"]);
    assert_eq!(error.detail().unwrap(), "Cannot drop NetworkInterface a1 because other objects depend on it");
    assert_eq!(error.hint().unwrap(), "Use DROP ... CASCADE to drop the dependent objects too");
    let error = refusal(drop_group("by_address", false));
    assert_eq!(error.dependency_notices(), ["The RoutingRule campus depends on LoadBalanceGroup by_address"]);
    assert_eq!(
        refusal(drop_node("n1", false)).dependency_notices(),
        [
            "The table group tg depends on node n1",
            "The table group tg_second depends on node n1",
            "The network address a1 depends on node n1",
            "The network address a1_public depends on node n1",
            "The network interface i1 depends on node n1",
            "The user mapping mira depends on node n1",
        ]
    );
    assert_eq!(
        refusal(drop_subcluster("sc_a", false)).dependency_notices(),
        [
            "The node n3 depends on subcluster sc_a",
            "The load balance group by_subcluster depends on subcluster sc_a",
            "The routing rule analytics depends on subcluster sc_a",
            "The routing rule rule_of_qa depends on subcluster sc_a",
        ]
    );
    assert!(refusal(drop_fault_group("fg")).hint().unwrap().contains("ALTER LOAD BALANCE GROUP"));
    assert_eq!(said(alter_group("by_adres", GroupChange::Policy(Policy::None))).1, r#"Did you mean "by_address"?"#);
    // What a DROP names wrongly is not guessed at by its number.
    assert_eq!(said(drop_address("a1_publc", false)).1, r#"Did you mean "a1_public"?"#);
    assert_eq!(said(drop_address("a7", false)).1, "");
    assert_eq!(said(alter_group("zzz", GroupChange::Policy(Policy::None))).1, "");
    assert_eq!(
        said(create_address("i1", "n1", "192.0.2.9")).0,
        r#"There is a network interface "i1"; network addresses and network interfaces share their names."#
    );
    assert!(said(alter_group("emptied", GroupChange::Add(subclusters(&["sc_a"])))).1.contains("SET FILTER TO"));
    assert_eq!(said(revoke_role("etl", "mira", false)).0, r#"User "mira" granted role "etl" to "gunther"."#);
    assert!(said(set_replica_count("tg", 5)).0.contains("never placed on one worker"));
    assert_eq!(
        said(create_table_group("new", 81, 1)).0,
        r#"Table group "new" would have 81 shards; with 4 workers a table group can have 80."#
    );
}

#[test]
fn many_dependents_are_counted() {
    let rules = (0..DEPENDENCY_NOTICES_MAX + 5).map(|i| create_rule(&format!("r{i}"), "10.0.0.0/8", "emptied"));
    let catalog = sample().apply(&rules.collect::<Vec<_>>()).unwrap().catalog;
    let notices = catalog.apply(&[drop_group("emptied", false)]).unwrap_err().dependency_notices();
    assert_eq!(notices.len(), DEPENDENCY_NOTICES_MAX + 1);
    assert_eq!(notices.last().unwrap(), "5 more objects depend on LoadBalanceGroup emptied");
}

#[test]
fn one_refusal_undoes_what_came_before_it() {
    let catalog = sample();
    let error = catalog.apply(&[create_user("new"), create_user("other"), create_user("NEW")]).unwrap_err();
    assert_eq!(error, CatalogError::Exists { kind: ObjectKind::User, name: name("new") });
    assert_eq!(catalog.users().named(&name("new")), None);
}

#[test]
fn cascade_says_what_it_did() {
    let told = |change: Change| {
        let notices = sample().apply(&[change]).unwrap().notices;
        notices.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        told(drop_address("a1", true)),
        [r#"also changed with the drop of network address "a1": load balance group "by_address""#]
    );
    assert_eq!(
        told(drop_group("by_address", true)),
        [r#"also dropped with the drop of load balance group "by_address": routing rule "campus""#]
    );
    let node = told(drop_node("n1", true));
    let starts = |place: usize, start: &str| node.get(place).is_some_and(|notice| notice.starts_with(start));
    assert!(starts(0, r#"also dropped with the drop of node "n1": network address "a1", "#), "{node:?}");
    assert!(starts(1, r#"also changed with the drop of node "n1": table group "tg", "#), "{node:?}");
}

#[test]
fn some_names_are_nobody_s() {
    for reserved in ["none", "ALL", "Public", "default"] {
        for change in
            [create_user(reserved), create_role(reserved), alter_user("mira", UserChange::Rename(name(reserved)))]
        {
            let error = sample().apply(&[change]).unwrap_err();
            assert_eq!(error, CatalogError::Reserved { name: name(reserved) });
        }
    }
}
