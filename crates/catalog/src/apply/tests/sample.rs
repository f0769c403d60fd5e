//! A catalog with one of everything, and short words for changes.

use std::net::IpAddr;

use crate::*;

pub(crate) fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

pub(crate) fn names(texts: &[&str]) -> Vec<Name> {
    texts.iter().map(|text| name(text)).collect()
}

pub(crate) fn network(typed: &str) -> Network {
    let net: ipnet::IpNet = typed.parse().unwrap();
    Network { typed: typed.to_owned(), net: net.trunc() }
}

pub(crate) fn host(text: &str) -> Host {
    text.parse::<IpAddr>().map_or_else(|_| Host::Dns(text.to_owned()), Host::Ip)
}

pub(crate) fn addresses(texts: &[&str]) -> GroupSource {
    GroupSource::Addresses(names(texts))
}

pub(crate) fn fault_groups(texts: &[&str]) -> GroupSource {
    GroupSource::FaultGroups(names(texts))
}

pub(crate) fn subclusters(texts: &[&str]) -> GroupSource {
    GroupSource::Subclusters(names(texts))
}

pub(crate) fn create_node(node: &str, subcluster: Option<&str>) -> Change {
    let (host, kind) = (format!("{node}.example"), NodeKind::Remote { upstream: None });
    Change::CreateNode { name: name(node), kind, host, port: 5432, subcluster: subcluster.map(name) }
}

pub(crate) fn alter_node(node: &str, change: NodeChange) -> Change {
    Change::AlterNode { name: name(node), change }
}

pub(crate) fn drop_node(node: &str, cascade: bool) -> Change {
    Change::DropNode { name: name(node), if_exists: false, cascade }
}

pub(crate) fn create_address(address: &str, node: &str, at: &str) -> Change {
    Change::CreateNetworkAddress { name: name(address), node: name(node), host: host(at), port: 5433, enabled: true }
}

pub(crate) fn alter_address(address: &str, change: AddressChange) -> Change {
    Change::AlterNetworkAddress { name: name(address), change }
}

pub(crate) fn drop_address(address: &str, cascade: bool) -> Change {
    Change::DropNetworkAddress { name: name(address), if_exists: false, cascade }
}

pub(crate) fn create_interface(interface: &str, node: &str) -> Change {
    let host = host("192.0.2.77");
    Change::CreateNetworkInterface { name: name(interface), node: name(node), host, port: 5433, enabled: true }
}

pub(crate) fn create_group(group: &str, source: GroupSource, filter: Option<&str>) -> Change {
    let (filter, policy) = (filter.map(network), Policy::RoundRobin);
    Change::CreateLoadBalanceGroup { name: name(group), source, filter, policy }
}

pub(crate) fn alter_group(group: &str, change: GroupChange) -> Change {
    Change::AlterLoadBalanceGroup { name: name(group), change }
}

pub(crate) fn drop_group(group: &str, cascade: bool) -> Change {
    Change::DropLoadBalanceGroup { name: name(group), if_exists: false, cascade }
}

pub(crate) fn create_rule(rule: &str, source: &str, group: &str) -> Change {
    Change::CreateRoutingRule { name: name(rule), source: network(source), group: name(group) }
}

pub(crate) fn create_workload_rule(rule: Option<&str>, workload: &str, to: &[&str], priority: u32) -> Change {
    Change::CreateWorkloadRule { name: rule.map(name), workload: name(workload), subclusters: names(to), priority }
}

pub(crate) fn alter_rule(rule: &str, change: RuleChange) -> Change {
    Change::AlterRoutingRule { target: RuleTarget::Named(name(rule)), change }
}

pub(crate) fn alter_workload(workload: &str, change: RuleChange) -> Change {
    Change::AlterRoutingRule { target: RuleTarget::Workload(name(workload)), change }
}

pub(crate) fn drop_rule(rule: &str) -> Change {
    Change::DropRoutingRule { target: RuleTarget::Named(name(rule)), if_exists: false }
}

pub(crate) fn grant_workload(workload: &str, to: &[&str]) -> Change {
    Change::GrantWorkload { workload: name(workload), grantees: names(to), grantor: name("dbadmin") }
}

pub(crate) fn revoke_workload(workload: &str, from: &[&str]) -> Change {
    Change::RevokeWorkload { workload: name(workload), grantees: names(from) }
}

pub(crate) fn create_user(user: &str) -> Change {
    Change::CreateUser { name: name(user), superuser: false, changes: Vec::new() }
}

pub(crate) fn alter_user(user: &str, change: UserChange) -> Change {
    Change::AlterUser { name: name(user), changes: vec![change] }
}

pub(crate) fn drop_user(user: &str, cascade: bool) -> Change {
    Change::DropUsers { names: names(&[user]), if_exists: false, cascade }
}

pub(crate) fn create_role(role: &str) -> Change {
    Change::CreateRole { name: name(role) }
}

pub(crate) fn drop_role(role: &str, cascade: bool) -> Change {
    Change::DropRoles { names: names(&[role]), if_exists: false, cascade }
}

pub(crate) fn grant_role(role: &str, to: &str, admin: bool, by: &str) -> Change {
    Change::GrantRoles { roles: names(&[role]), grantees: names(&[to]), admin, grantor: name(by) }
}

pub(crate) fn revoke_role(role: &str, from: &str, cascade: bool) -> Change {
    Change::RevokeRoles { roles: names(&[role]), grantees: names(&[from]), admin_only: false, cascade }
}

pub(crate) fn create_subcluster(subcluster: &str) -> Change {
    Change::CreateSubcluster { name: name(subcluster), primary: false }
}

pub(crate) fn alter_subcluster(subcluster: &str, change: SubclusterChange) -> Change {
    Change::AlterSubcluster { name: name(subcluster), change }
}

pub(crate) fn drop_subcluster(subcluster: &str, cascade: bool) -> Change {
    Change::DropSubcluster { name: name(subcluster), if_exists: false, cascade }
}

pub(crate) fn alter_fault_group(group: &str, change: FaultGroupChange) -> Change {
    Change::AlterFaultGroup { name: name(group), change }
}

pub(crate) fn drop_fault_group(group: &str) -> Change {
    Change::DropFaultGroup { name: name(group), if_exists: false }
}

pub(crate) fn create_table_group(group: &str, shard_count: u32, replica_count: u32) -> Change {
    Change::CreateTableGroup { name: name(group), shard_count, replica_count, manually: true, shard_cap: true }
}

pub(crate) fn set_replica_count(group: &str, replica_count: u32) -> Change {
    let property = TableGroupProperty::ReplicaCount(replica_count);
    Change::SetTableGroupProperty { name: name(group), property }
}

pub(crate) fn set_setting(level: SettingTarget, value: Option<&str>) -> Change {
    Change::SetSetting { level, name: "MaxClientSessions".to_owned(), value: value.map(str::to_owned) }
}

pub(crate) fn create_mapping(user: Option<&str>, node: Option<&str>) -> Change {
    let (remote_user, password) = ("app".to_owned(), Some(Secret::new("s3cret")));
    Change::CreateUserMapping { user: user.map(name), node: node.map(name), remote_user, password }
}

pub(crate) fn create_authentication(record: &str, access: AuthenticationAccess) -> Change {
    let method = AuthenticationMethod::Trust;
    Change::CreateAuthentication { name: name(record), method, access, fallthrough: false }
}

pub(crate) fn grant_authentication(record: &str, to: &[&str]) -> Change {
    Change::GrantAuthentication { name: name(record), grantees: names(to) }
}

/// A new catalog.
pub(crate) fn initial() -> Catalog {
    let verifiers =
        Verifiers { scram: Secret::new("SCRAM-SHA-256$1:s$k:k"), sha512: Secret::new("sha512:h:s"), md5: None };
    Catalog::initial(name("switchyard"), name("dbadmin"), Some(verifiers)).0
}

/// One of everything, with every dependency that there is.
pub(crate) fn sample() -> Catalog {
    let changes = [topology(), policy(), people()].concat();
    initial().apply(&changes).unwrap().catalog
}

fn topology() -> Vec<Change> {
    vec![
        create_subcluster("sc_a"),
        create_subcluster("sc_b"),
        create_subcluster("sc_empty"),
        create_node("n1", None),
        create_node("n2", None),
        create_node("n3", Some("sc_a")),
        create_node("n4", Some("sc_b")),
        Change::CreateFaultGroup { name: name("fg") },
        Change::CreateFaultGroup { name: name("fg_inner") },
        Change::CreateFaultGroup { name: name("fg_free") },
        alter_fault_group("fg", FaultGroupChange::AddNode(name("n1"))),
        alter_fault_group("fg_inner", FaultGroupChange::AddNode(name("n2"))),
        alter_fault_group("fg", FaultGroupChange::AddChild(name("fg_inner"))),
        create_address("a1", "n1", "192.0.2.1"),
        create_address("a1_public", "n1", "198.51.100.1"),
        create_address("a2", "n2", "192.0.2.2"),
        create_address("a3", "n3", "2001:db8::3"),
        create_address("a_free", "n4", "pg4.example"),
        create_interface("i1", "n1"),
        create_interface("i_free", "n2"),
        alter_node("n1", NodeChange::ExportOn(Some(name("i1")))),
        Change::CreateSubnet { name: name("net"), prefix: "10.10.10.0".parse().unwrap() },
        Change::CreateSubnet { name: name("net_free"), prefix: "fd9b::".parse().unwrap() },
        Change::ExportDatabaseOn { subnet: Some(name("net")) },
        create_table_group("tg", 8, 2),
        create_table_group("tg_second", 3, 1),
        set_setting(SettingTarget::Node(name("n1")), Some("7")),
        set_setting(SettingTarget::Database, Some("50")),
    ]
}

fn policy() -> Vec<Change> {
    vec![
        create_group("by_address", addresses(&["a1", "a2"]), None),
        create_group("by_fault_group", fault_groups(&["fg_inner"]), Some("192.0.2.0/24")),
        create_group("by_subcluster", subclusters(&["sc_a", "sc_b"]), Some("192.0.2.0/24")),
        create_group("emptied", addresses(&["a_free"]), None),
        alter_group("emptied", GroupChange::Drop(addresses(&["a_free"]))),
        create_rule("campus", "10.0.0.0/8", "by_address"),
        create_rule("campus_v6", "2001:db8::/32", "by_subcluster"),
        create_workload_rule(None, "analytics", &["sc_a", "sc_b"], 0),
        create_workload_rule(Some("rule_of_qa"), "qa", &["sc_a"], 2),
    ]
}

fn people() -> Vec<Change> {
    vec![
        create_user("mira"),
        create_user("gunther"),
        create_role("etl"),
        create_role("qa_role"),
        create_role("inner"),
        grant_role("etl", "mira", true, "dbadmin"),
        grant_role("etl", "gunther", false, "mira"),
        grant_role("inner", "qa_role", false, "dbadmin"),
        grant_role("qa_role", "gunther", false, "dbadmin"),
        alter_user("gunther", UserChange::DefaultRoles(names(&["etl"]))),
        grant_workload("analytics", &["mira"]),
        grant_workload("qa", &["inner"]),
        create_authentication(
            "from_office",
            AuthenticationAccess::Host { network: network("10.8.0.0/16"), tls: TlsDemand::Required },
        ),
        grant_authentication("from_office", &["etl", "mira"]),
        create_mapping(Some("mira"), Some("n1")),
        create_mapping(None, None),
        set_setting(SettingTarget::User(name("mira")), Some("3")),
    ]
}
