#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use crate::plan::tests::{Bench, fleet};

/// A catalog without ids: what the dump of it says.
fn script(catalog: &Catalog) -> Vec<String> {
    dump(catalog).filter(|line| !line.starts_with("--")).collect()
}

/// Runs a dump on an initial catalog, and compares what that dumps.
fn same_again(bench: &Bench) {
    let first = script(&bench.catalog);
    let mut again = Bench::new();
    again.run_all(&dump(&bench.catalog).collect::<Vec<_>>().join("\n"));
    assert_eq!(script(&again.catalog), first);
    let counts = |catalog: &Catalog| {
        let mut counts = BTreeMap::new();
        for entity in catalog.entities() {
            let debug = format!("{entity:?}");
            *counts.entry(debug.split('(').next().unwrap().to_owned()).or_insert(0) += 1;
        }
        counts
    };
    assert_eq!(counts(&again.catalog), counts(&bench.catalog));
}

#[test]
fn an_initial_catalog_is_made_again() {
    same_again(&Bench::new());
}

#[test]
fn a_fleet_is_made_again() {
    same_again(&fleet());
}

#[test]
fn odd_things_are_made_again() {
    let mut bench = fleet();
    bench.run_all(
        r#"
        CREATE NODE "No de;3" WITH '127.0.0.1' PORT 1; ALTER NODE node3 STANDBY; ALTER NODE node2 REPLACE WITH node3;
        ALTER NODE node1 SET UPSTREAM TO 'postgresql://u:secret@h/db'; ALTER NODE node1 DRAIN;
        ALTER NODE node1 SET MaxClientSessions = 7; ALTER NODE node1 EXPORT ON i1; ALTER DATABASE shop EXPORT ON s1;
        ALTER DATABASE shop SET allow_loopback_addresses = on;
        CREATE NETWORK ADDRESS "select" ON "No de;3" WITH '127.0.0.1';
        ALTER DATABASE shop CLEAR allow_loopback_addresses;
        ALTER DATABASE shop SET hg_experimental_query_replica_fixed_plan_ha_mode = any;
        ALTER LOAD BALANCE GROUP g1 DROP ADDRESS a1, a2; ALTER LOAD BALANCE GROUP g2 DROP SUBCLUSTER sc_web;
        CREATE FAULT GROUP f2; ALTER FAULT GROUP f1 ADD FAULT GROUP f2; ALTER FAULT GROUP f2 ADD NODE node1;
        CREATE LOAD BALANCE GROUP g3 WITH FAULT GROUP f1 FILTER '10.1.2.3/8' POLICY 'NONE';
        CREATE ROUTING RULE named ROUTE WORKLOAD "default" TO SUBCLUSTER sc_web PRIORITY 7;
        GRANT USAGE ON WORKLOAD "default" TO PUBLIC; GRANT USAGE ON WORKLOAD etl TO etl_ops;
        ALTER USER dbadmin IDENTIFIED BY 'it''s'; ALTER USER mira PASSWORD EXPIRE, ACCOUNT LOCK;
        ALTER USER mira MAXCONNECTIONS 3 ON DATABASE, GRACEPERIOD '1 day', MEMORYCAP '2G', SEARCH_PATH a, "B c";
        ALTER USER mira DEFAULT ROLE ALL EXCEPT night; ALTER USER mira SET statement_timeout = '5s';
        GRANT etl_ops TO PUBLIC; GRANT SYSMONITOR TO otto WITH ADMIN OPTION;
        DROP AUTHENTICATION default_local CASCADE; ALTER AUTHENTICATION lan PRIORITY 5; ALTER AUTHENTICATION lan DISABLE;
        CREATE AUTHENTICATION wan METHOD 'reject' HOST NO TLS '::/0' FALLTHROUGH; GRANT AUTHENTICATION wan TO mira;
        CREATE USER MAPPING FOR PUBLIC OPTIONS (user 'all');
        CALL hg_create_table_group('tg2', 4, 2); CALL hg_update_database_property('default_table_group', 'tg2');
        SELECT set_load_balance_policy('random');
        ALTER SUBCLUSTER sc_web SET DEFAULT; SELECT promote_subcluster_to_primary('sc_etl');
        DROP SUBCLUSTER default_subcluster CASCADE;
        "#,
    );
    same_again(&bench);
    let text = dump(&bench.catalog).collect::<Vec<_>>().join("\n");
    assert!(!text.contains("secret@") && !text.contains("'pw'"), "{text}");
}

#[test]
fn members_are_expected_to_join_by_themselves() {
    let member = |catalog: &Catalog, port| {
        let kind = switchyard_catalog::NodeKind::Member { upstream: None };
        let name = crate::plan::tests::name("m1");
        let (host, subcluster) = ("10.9.0.1".to_owned(), None);
        let join = switchyard_catalog::Change::CreateNode { name, kind, host, port, subcluster };
        catalog.apply(&[join]).unwrap().catalog
    };
    for statements in [
        "CREATE SUBCLUSTER sc; ALTER SUBCLUSTER sc ADD NODE m1; CREATE NETWORK ADDRESS a ON m1 WITH '10.9.0.1'",
        "CREATE SUBCLUSTER sc; ALTER SUBCLUSTER sc SET DEFAULT",
        "CREATE SUBCLUSTER sc; ALTER SUBCLUSTER sc SET DEFAULT; ALTER SUBCLUSTER sc ADD NODE m1",
        "CREATE SUBCLUSTER sc; ALTER SUBCLUSTER sc SET DEFAULT; \
         SELECT promote_subcluster_to_primary('sc'); DROP SUBCLUSTER default_subcluster CASCADE",
        "CREATE SUBCLUSTER sc; ALTER SUBCLUSTER sc ADD NODE m1; CREATE SUBCLUSTER sd; ALTER SUBCLUSTER sd SET DEFAULT; \
         SELECT promote_subcluster_to_primary('sc'); DROP SUBCLUSTER default_subcluster CASCADE",
    ] {
        let mut first = Bench::new();
        first.catalog = member(&first.catalog, 1);
        first.run_all(statements);
        let script: Vec<String> = dump(&first.catalog).collect();
        let mut second = Bench::new();
        second.catalog = member(&second.catalog, 2);
        second.run_all(&script.join("\n"));
        // Where a member is called, its own process says.
        let again: Vec<String> = dump(&second.catalog).map(|line| line.replace("PORT 2;", "PORT 1;")).collect();
        assert_eq!(again, script, "{statements}");
    }
}

#[test]
fn definitions_name_their_objects() {
    let found = definitions(&fleet().catalog);
    let rule = found.iter().find(|definition| definition.name == "r1").unwrap();
    assert_eq!((rule.kind, rule.sql.as_str()), ("routing rule", "CREATE ROUTING RULE r1 ROUTE '192.168.0.0/16' TO g1"));
}

/// Statements over few names, so that they meet: `n` chooses the statement, `a` and `b` the names.
fn statement(n: u8, a: u8, b: u8) -> String {
    let (a, b) = (a % 3, b % 3);
    match n % 34 {
        0 => format!("CREATE SUBCLUSTER sc{a}"),
        1 => format!("CREATE NODE n{a} WITH '10.0.0.{b}1' SUBCLUSTER sc{b}"),
        2 => format!("CREATE NODE n{a} WITH 'host{b}.example' PORT 54{a}2"),
        3 => format!("CREATE NETWORK ADDRESS a{a} ON n{b} WITH '10.0.{b}.1' DISABLED"),
        4 => format!("CREATE NETWORK ADDRESS a{a} ON n{b} WITH '2001:db8::{b}'"),
        5 => format!("CREATE LOAD BALANCE GROUP g{a} WITH ADDRESS a{a}, a{b}"),
        6 => format!("CREATE LOAD BALANCE GROUP g{a} WITH SUBCLUSTER sc{b} FILTER '10.0.0.0/{a}' POLICY 'RANDOM'"),
        7 => format!("CREATE LOAD BALANCE GROUP g{a} WITH FAULT GROUP f{b} FILTER '::/0'"),
        8 => format!("ALTER LOAD BALANCE GROUP g{a} DROP SUBCLUSTER sc{b}"),
        9 => format!("DROP NETWORK ADDRESS a{a} CASCADE"),
        10 => format!("CREATE ROUTING RULE r{a} ROUTE '192.168.{b}.0/24' TO g{b}"),
        11 => format!("CREATE ROUTING RULE ROUTE WORKLOAD w{a} TO SUBCLUSTER sc{b} PRIORITY {b}"),
        12 => format!("CREATE ROUTING RULE x{a} ROUTE WORKLOAD w{b} TO SUBCLUSTER sc0, sc{b}"),
        13 => format!("DROP SUBCLUSTER sc{a} CASCADE"),
        14 => format!("CREATE USER u{a} IDENTIFIED BY 'p{b}'"),
        15 => format!("CREATE ROLE role{a}"),
        16 => format!("GRANT role{a} TO u{b} WITH ADMIN OPTION"),
        17 => format!("GRANT role{a} TO role{b}"),
        18 => format!("GRANT USAGE ON WORKLOAD w{a} TO role{b}"),
        19 => format!("GRANT USAGE ON WORKLOAD w{a} TO u{b}"),
        20 => format!("ALTER USER u{a} DEFAULT ROLE role{b}"),
        21 => format!("ALTER USER u{a} SET statement_timeout = {b}"),
        22 => format!("DROP USER u{a} CASCADE"),
        23 => format!("DROP ROLE role{a} CASCADE"),
        24 => format!("CREATE AUTHENTICATION auth{a} METHOD 'hash' HOST '10.{b}.0.0/16'"),
        25 => format!("GRANT AUTHENTICATION auth{a} TO u{b}"),
        26 => format!("DROP AUTHENTICATION IF EXISTS auth{a}, default_local CASCADE"),
        27 => format!("CREATE USER MAPPING FOR u{a} SERVER n{b} OPTIONS (user 'x')"),
        28 => format!("CALL hg_create_table_group('tg{a}', {}, {})", b + 1, b + 1),
        29 => format!("CREATE FAULT GROUP f{a}"),
        30 => format!("ALTER FAULT GROUP f{a} ADD NODE n{b}"),
        31 => format!("ALTER FAULT GROUP f{a} ADD FAULT GROUP f{b}"),
        32 => format!("DROP NODE n{a} CASCADE"),
        _ => format!("ALTER SUBCLUSTER sc{a} SET DEFAULT"),
    }
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(64))]

    #[test]
    fn any_catalog_is_made_again(steps in proptest::collection::vec(proptest::prelude::any::<(u8, u8, u8)>(), 0..120)) {
        let mut bench = Bench::new();
        for (n, a, b) in steps {
            // Those that are refused change nothing.
            let _ = bench.try_run(&statement(n, a, b));
        }
        same_again(&bench);
    }
}
