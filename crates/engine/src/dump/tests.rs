#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use crate::plan::tests::{Bench, fleet};

/// A catalog without ids: what the dump of it says.
fn script(catalog: &Catalog) -> Vec<String> {
    dump(catalog).skip(1).filter(|line| !line.starts_with("--")).collect()
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
fn definitions_name_their_objects() {
    let found = definitions(&fleet().catalog);
    let rule = found.iter().find(|definition| definition.name == "r1").unwrap();
    assert_eq!((rule.kind, rule.sql.as_str()), ("routing rule", "CREATE ROUTING RULE r1 ROUTE '192.168.0.0/16' TO g1"));
}
