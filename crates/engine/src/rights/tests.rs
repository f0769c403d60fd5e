#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use crate::error::{ClientError, SqlState};
use crate::plan::tests::fleet;

/// A sample of every statement, with whether everybody may.
const SAMPLES: &[(&str, bool)] = &[
    ("CREATE NETWORK ADDRESS x ON node1 WITH '10.0.0.9'", false),
    ("ALTER NETWORK ADDRESS a1 DISABLE", false),
    ("DROP NETWORK ADDRESS a1 CASCADE", false),
    ("CREATE NETWORK INTERFACE x ON node1 WITH '10.0.0.9'", false),
    ("ALTER NETWORK INTERFACE i1 RENAME TO i2", false),
    ("DROP NETWORK INTERFACE i1", false),
    ("CREATE SUBNET x WITH '10.0.0.0'", false),
    ("ALTER SUBNET s1 RENAME TO s2", false),
    ("DROP SUBNET s1", false),
    ("CREATE LOAD BALANCE GROUP x WITH ADDRESS a1", false),
    ("ALTER LOAD BALANCE GROUP g1 SET POLICY TO 'RANDOM'", false),
    ("DROP LOAD BALANCE GROUP g1 CASCADE", false),
    ("CREATE ROUTING RULE x ROUTE '10.0.0.0/8' TO g1", false),
    ("CREATE ROUTING RULE ROUTE WORKLOAD x TO SUBCLUSTER sc_web", false),
    ("ALTER ROUTING RULE r1 RENAME TO r2", false),
    ("DROP ROUTING RULE r1", false),
    ("GRANT USAGE ON WORKLOAD web TO otto", false),
    ("REVOKE USAGE ON WORKLOAD web FROM otto", false),
    ("SET SESSION WORKLOAD NONE", true),
    ("SET ROLE NONE", true),
    ("SHOW WORKLOAD", true),
    ("SHOW ALL", true),
    ("SHOW USER mira ALL", false),
    ("CREATE USER x", false),
    ("ALTER USER mira ACCOUNT LOCK", false),
    ("DROP USER mira CASCADE", false),
    ("CREATE ROLE x", false),
    ("ALTER ROLE night RENAME TO day", false),
    ("DROP ROLE night CASCADE", false),
    ("GRANT night TO otto", false),
    ("REVOKE night FROM etl_ops", false),
    ("CREATE AUTHENTICATION x METHOD 'hash' LOCAL", false),
    ("ALTER AUTHENTICATION lan DISABLE", false),
    ("DROP AUTHENTICATION lan", false),
    ("GRANT AUTHENTICATION lan TO otto", false),
    ("REVOKE AUTHENTICATION lan FROM otto", false),
    ("CREATE USER MAPPING FOR otto SERVER node1 OPTIONS (user 'x')", false),
    ("ALTER USER MAPPING FOR mira SERVER node2 OPTIONS (user 'y')", false),
    ("DROP USER MAPPING FOR mira SERVER node2", false),
    ("ALTER DATABASE shop SET MaxClientSessions = 1", false),
    ("CREATE NODE x WITH '10.0.0.9'", false),
    ("ALTER NODE node1 RENAME TO x", false),
    ("DROP NODE node3 CASCADE", false),
    ("ALTER SESSION SET KeepAliveIdleTime = 1", true),
    ("CREATE FAULT GROUP x", false),
    ("ALTER FAULT GROUP f1 ADD NODE node1", false),
    ("DROP FAULT GROUP f1", false),
    ("CREATE SUBCLUSTER x", false),
    ("ALTER SUBCLUSTER sc_web RENAME TO x", false),
    ("DROP SUBCLUSTER sc_web CASCADE", false),
    ("CALL hg_create_table_group('x', 2)", false),
    ("CALL hg_drop_table_group('tg')", false),
    ("CALL hg_set_table_group_property('tg', 'replica_count', '2')", false),
    ("CALL hg_update_database_property('default_table_group', 'tg')", false),
    ("SET application_name = 'x'", true),
    ("RESET application_name", true),
    ("DISCARD PLANS", true),
    ("SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE", true),
    ("BEGIN", true),
    ("COMMIT", true),
    ("ROLLBACK", true),
    ("SAVEPOINT s", true),
    ("RELEASE SAVEPOINT s", true),
    ("ROLLBACK TO SAVEPOINT s", true),
    ("DECLARE c CURSOR FOR SELECT 1", true),
    ("FETCH c", true),
    ("CLOSE c", true),
    ("PREPARE p AS SELECT 1", true),
    ("EXECUTE p", true),
    ("DEALLOCATE p", true),
    ("LISTEN a", true),
    ("UNLISTEN a", true),
    ("NOTIFY a", true),
    ("RESTORE CATALOG TO VERSION 1", false),
    ("SELECT 1", true),
    ("SELECT set_load_balance_policy('none')", false),
    ("SELECT reset_load_balance_policy()", false),
    ("SELECT set_config_parameter('MaxClientSessions', 1)", false),
    ("SELECT get_client_label()", true),
    ("SELECT current_session()", true),
    ("SELECT set_client_label('x')", true),
    ("SELECT close_session('x')", true),
    ("SELECT close_user_sessions('otto')", false),
    ("SELECT close_all_sessions()", true),
    ("SELECT interrupt_statement('x', 1)", true),
    ("SELECT shutdown()", false),
    ("SELECT start_drain_subcluster('sc_web')", false),
    ("SELECT cancel_drain_subcluster('sc_web')", false),
    ("SELECT shutdown_with_drain('sc_web', -1)", false),
    ("SELECT promote_subcluster_to_primary('sc_web')", false),
    ("SELECT demote_subcluster_to_secondary('sc_web')", false),
    ("SELECT has_role('night')", true),
    ("SELECT has_role('mira', 'night')", false),
];

#[test]
fn each_statement_is_for_those_it_is_for() {
    let admin = fleet();
    let plain = admin.log_in("otto", &[]);
    for (text, everybody) in SAMPLES {
        if let Err(error) = admin.plan(text) {
            assert_eq!(error, ClientError::new(SqlState::Warning, "a superuser may do all"), "{text}");
        }
        match plain.plan(text) {
            Ok(_) => assert!(*everybody, "{text}"),
            Err(error) => {
                assert_eq!(error.sqlstate, SqlState::InsufficientPrivilege, "{text}: {error:?}");
                assert!(!*everybody, "{text}");
            }
        }
    }
}

#[test]
fn no_statement_is_left_out() {
    let kinds: std::collections::BTreeSet<String> = SAMPLES
        .iter()
        .map(|(text, _)| {
            let statement = &switchyard_dialect::parse(text).unwrap()[0].statement;
            let debug = format!("{statement:?}");
            debug.split([' ', '(', '{']).next().unwrap_or_default().to_owned()
        })
        .collect();
    // Counted from the syntax tree's source, since an enum does not know its variants.
    let source = include_str!("../../../dialect/src/ast.rs");
    let body = source.split("pub enum Statement {").nth(1).unwrap().split("\n}").next().unwrap();
    let variants = body.lines().filter_map(|line| {
        let line = line.strip_prefix("    ")?;
        let word = line.split([' ', '(', '{', ',']).next()?;
        word.starts_with(|c: char| c.is_ascii_uppercase()).then(|| word.to_owned())
    });
    for variant in variants {
        assert!(kinds.contains(&variant), "{variant} has no sample");
    }
}

#[test]
fn who_has_the_admin_option_grants() {
    let admin = fleet();
    let mira = admin.log_in("mira", &[]);
    assert!(mira.plan("GRANT etl_ops TO otto").is_ok());
    assert_eq!(mira.plan("GRANT night TO otto").unwrap_err().message, "Must have admin option on role \"night\"");
    assert_eq!(mira.plan("GRANT nights TO otto").unwrap_err().hint.as_deref(), Some("Did you mean \"night\"?"));
}
