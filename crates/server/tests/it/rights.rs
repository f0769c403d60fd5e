//! Who may do what: each row of `docs/reference/rights.md`, which is made from the declarations that the server decides
//! by, is tried by a superuser, an owner, a grantee and a plain user.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use libtest_mimic::Trial;
use switchyard_testkit::{ADMIN, Client, Protocol, Server, repository_root};

pub fn trials() -> Vec<Trial> {
    vec![
        crate::with_server("rights_of_statements", statements),
        crate::with_server("rights_of_system_tables", tables),
        crate::with_server("rights_of_functions_in_queries", functions),
    ]
}

/// One row of the page.
struct Row {
    section: String,
    what: String,
    /// For the superuser, the owner, the grantee and the plain user.
    outcomes: [String; 4],
}

fn rows() -> Result<Vec<Row>> {
    let page = std::fs::read_to_string(repository_root().join("docs/reference/rights.md"))?;
    let (mut rows, mut section) = (Vec::new(), String::new());
    for line in page.lines() {
        if let Some(title) = line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#')) {
            title.clone_into(&mut section);
        }
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if let [_, what, superuser, owner, granted, plain, _] = cells.as_slice()
            && what.starts_with('`')
        {
            let outcomes = [superuser, owner, granted, plain].map(|cell| (*cell).to_owned());
            rows.push(Row { section: section.clone(), what: what.trim_matches('`').to_owned(), outcomes });
        }
    }
    ensure!(rows.len() > 200, "the page has only {} rows", rows.len());
    Ok(rows)
}

/// The users, in the order of the page.
const USERS: [&str; 4] = [ADMIN, "olga", "gina", "otto"];

const FIXTURE: &[&str] = &[
    "CREATE SUBCLUSTER sc_a",
    "CREATE NODE pg1 WITH '10.20.0.1' SUBCLUSTER sc_a",
    "CREATE NETWORK ADDRESS a1 ON pg1 WITH '10.20.0.1'",
    "CREATE NETWORK INTERFACE i1 ON pg1 WITH '10.20.0.7'",
    "CREATE SUBNET s1 WITH '10.20.0.0'",
    "CREATE LOAD BALANCE GROUP g1 WITH ADDRESS a1",
    "CREATE ROUTING RULE r1 ROUTE '10.0.0.0/8' TO g1",
    "CREATE ROUTING RULE w1 ROUTE WORKLOAD web TO SUBCLUSTER sc_a",
    "CREATE FAULT GROUP f1",
    "CREATE USER olga IDENTIFIED BY 'pw-olga'",
    "CREATE USER gina IDENTIFIED BY 'pw-gina'",
    "CREATE USER otto IDENTIFIED BY 'pw-otto'",
    "CREATE USER nobody",
    "CREATE ROLE night",
    "CREATE ROLE readers",
    "GRANT night TO gina WITH ADMIN OPTION",
    "GRANT readers TO gina, olga",
    "GRANT USAGE ON WORKLOAD web TO readers",
    "CREATE AUTHENTICATION lan METHOD 'hash' HOST '10.0.0.0/8'",
    "CREATE USER MAPPING FOR nobody SERVER pg1 OPTIONS (user 'x', password 'y')",
    "CALL hg_create_table_group('tg', 2)",
];

/// A statement for each row. `{session}` is a session of the owner for the owner, and the superuser's for others.
const SAMPLES: &[(&str, &str)] = &[
    ("ALTER AUTHENTICATION", "ALTER AUTHENTICATION lan DISABLE"),
    ("ALTER DATABASE", "ALTER DATABASE switchyard SET MaxClientSessions = 40"),
    ("ALTER FAULT GROUP", "ALTER FAULT GROUP f1 ADD NODE pg1"),
    ("ALTER LOAD BALANCE GROUP", "ALTER LOAD BALANCE GROUP g1 SET POLICY TO 'RANDOM'"),
    ("ALTER NETWORK ADDRESS", "ALTER NETWORK ADDRESS a1 DISABLE"),
    ("ALTER NETWORK INTERFACE", "ALTER NETWORK INTERFACE i1 RENAME TO i2"),
    ("ALTER NODE", "ALTER NODE pg1 RENAME TO pg2"),
    ("ALTER ROLE", "ALTER ROLE night RENAME TO day"),
    ("ALTER ROUTING RULE", "ALTER ROUTING RULE r1 RENAME TO r2"),
    ("ALTER SESSION", "ALTER SESSION SET KeepAliveIdleTime = 1"),
    ("ALTER SUBCLUSTER", "ALTER SUBCLUSTER sc_a RENAME TO sc_b"),
    ("ALTER SUBNET", "ALTER SUBNET s1 RENAME TO s2"),
    ("ALTER USER", "ALTER USER olga ACCOUNT LOCK"),
    ("ALTER USER (own password, timeout, settings)", "ALTER USER olga SET application_name = 'x'"),
    ("ALTER USER MAPPING", "ALTER USER MAPPING FOR nobody SERVER pg1 OPTIONS (user 'z')"),
    ("BEGIN", "BEGIN"),
    ("COMMIT", "COMMIT"),
    ("CREATE AUTHENTICATION", "CREATE AUTHENTICATION new METHOD 'hash' LOCAL"),
    ("CREATE FAULT GROUP", "CREATE FAULT GROUP new"),
    ("CREATE LOAD BALANCE GROUP", "CREATE LOAD BALANCE GROUP new WITH ADDRESS a1"),
    ("CREATE NETWORK ADDRESS", "CREATE NETWORK ADDRESS new ON pg1 WITH '10.20.0.9'"),
    ("CREATE NETWORK INTERFACE", "CREATE NETWORK INTERFACE new ON pg1 WITH '10.20.0.8'"),
    ("CREATE NODE", "CREATE NODE new WITH '10.20.0.4'"),
    ("CREATE ROLE", "CREATE ROLE new"),
    ("CREATE ROUTING RULE", "CREATE ROUTING RULE new ROUTE '10.1.0.0/16' TO g1"),
    ("CREATE ROUTING RULE ROUTE WORKLOAD", "CREATE ROUTING RULE ROUTE WORKLOAD new TO SUBCLUSTER sc_a"),
    ("CREATE SUBCLUSTER", "CREATE SUBCLUSTER new"),
    ("CREATE SUBNET", "CREATE SUBNET new WITH '10.30.0.0'"),
    ("CREATE USER", "CREATE USER new"),
    ("CREATE USER MAPPING", "CREATE USER MAPPING FOR otto SERVER pg1 OPTIONS (user 'x')"),
    ("DISCARD", "DISCARD PLANS"),
    ("DROP AUTHENTICATION", "DROP AUTHENTICATION lan"),
    ("DROP FAULT GROUP", "DROP FAULT GROUP f1"),
    ("DROP LOAD BALANCE GROUP", "DROP LOAD BALANCE GROUP g1 CASCADE"),
    ("DROP NETWORK ADDRESS", "DROP NETWORK ADDRESS a1 CASCADE"),
    ("DROP NETWORK INTERFACE", "DROP NETWORK INTERFACE i1"),
    ("DROP NODE", "DROP NODE pg1 CASCADE"),
    ("DROP ROLE", "DROP ROLE night CASCADE"),
    ("DROP ROUTING RULE", "DROP ROUTING RULE r1"),
    ("DROP SUBCLUSTER", "DROP SUBCLUSTER sc_a CASCADE"),
    ("DROP SUBNET", "DROP SUBNET s1"),
    ("DROP USER", "DROP USER nobody CASCADE"),
    ("DROP USER MAPPING", "DROP USER MAPPING FOR nobody SERVER pg1"),
    ("GRANT AUTHENTICATION", "GRANT AUTHENTICATION lan TO otto"),
    ("GRANT USAGE ON WORKLOAD", "GRANT USAGE ON WORKLOAD web TO otto"),
    ("GRANT role", "GRANT night TO otto"),
    ("RELEASE SAVEPOINT", "RELEASE SAVEPOINT s"),
    ("RESET", "RESET application_name"),
    ("RESTORE CATALOG", "RESTORE CATALOG TO VERSION 2"),
    ("REVOKE AUTHENTICATION", "REVOKE AUTHENTICATION lan FROM otto"),
    ("REVOKE USAGE ON WORKLOAD", "REVOKE USAGE ON WORKLOAD web FROM readers"),
    ("REVOKE role", "REVOKE night FROM otto"),
    ("ROLLBACK", "ROLLBACK"),
    ("ROLLBACK TO SAVEPOINT", "ROLLBACK TO SAVEPOINT s"),
    ("SAVEPOINT", "SAVEPOINT t"),
    ("SELECT", "SELECT 1"),
    ("CLOSE", "CLOSE ALL"),
    ("DEALLOCATE", "DEALLOCATE ALL"),
    ("DECLARE", "DECLARE c CURSOR FOR SELECT 1"),
    ("EXECUTE", "PREPARE p AS SELECT 1; EXECUTE p"),
    ("FETCH, MOVE", "DECLARE c CURSOR FOR SELECT 1; FETCH c"),
    ("LISTEN", "LISTEN a"),
    ("NOTIFY", "NOTIFY a"),
    ("PREPARE", "PREPARE p AS SELECT 1"),
    ("UNLISTEN", "UNLISTEN *"),
    ("SET", "SET application_name = 'x'"),
    ("SET ROLE NONE, DEFAULT, ALL", "SET ROLE NONE"),
    ("SET ROLE role", "SET ROLE night"),
    ("SET SESSION WORKLOAD NONE, DEFAULT", "SET SESSION WORKLOAD NONE"),
    ("SET SESSION WORKLOAD workload", "SET ROLE ALL; SET SESSION WORKLOAD web"),
    ("SET TRANSACTION", "SET TRANSACTION READ ONLY"),
    ("SHOW", "SHOW ALL"),
    ("SHOW USER", "SHOW USER olga ALL"),
    ("cancel_drain_subcluster", "SELECT cancel_drain_subcluster('sc_a')"),
    ("close_all_sessions", "SELECT close_all_sessions()"),
    ("close_session", "SELECT close_session('{session}')"),
    ("close_user_sessions", "SELECT close_user_sessions('nobody')"),
    ("demote_subcluster_to_secondary", "SELECT demote_subcluster_to_secondary('sc_a')"),
    ("describe_load_balance_decision", "SELECT describe_load_balance_decision('10.0.0.1')"),
    ("get_client_label", "SELECT get_client_label()"),
    ("current_session", "SELECT current_session()"),
    ("has_role(role), has_role(own name, role)", "SELECT has_role('night')"),
    ("has_role(user, role)", "SELECT has_role('gina', 'night')"),
    ("hg_create_table_group", "CALL hg_create_table_group('new', 2)"),
    ("hg_drop_table_group", "CALL hg_drop_table_group('tg')"),
    ("hg_move_table_to_table_group", "CALL hg_move_table_to_table_group('t', 'tg')"),
    ("hg_set_table_group_property", "CALL hg_set_table_group_property('tg', 'replica_count', '1')"),
    (
        "hg_table_group_set_warehouse_replica_count",
        "CALL hg_table_group_set_warehouse_replica_count('switchyard.tg', 1, 'init_warehouse')",
    ),
    ("hg_update_database_property", "CALL hg_update_database_property('default_table_group', 'tg')"),
    ("hg_update_table_shard_count", "CALL hg_update_table_shard_count('t', 'tg')"),
    ("interrupt_statement", "SELECT interrupt_statement('{session}', 1)"),
    ("promote_subcluster_to_primary", "SELECT promote_subcluster_to_primary('sc_a')"),
    ("reset_load_balance_policy", "SELECT reset_load_balance_policy()"),
    ("set_client_label", "SELECT set_client_label('x')"),
    ("set_config_parameter", "SELECT set_config_parameter('MaxClientSessions', 40)"),
    ("set_load_balance_policy", "SELECT set_load_balance_policy('none')"),
    ("set_table_property", "CALL set_table_property('t', 'table_group', 'tg')"),
    ("shutdown", "SELECT shutdown()"),
    ("shutdown_subcluster", "SELECT shutdown_subcluster('sc_a')"),
    ("shutdown_with_drain", "SELECT shutdown_with_drain('sc_a', -1)"),
    ("start_drain_subcluster", "SELECT start_drain_subcluster('sc_a')"),
    ("start_member", "SELECT start_member('pg1')"),
    ("stop_member", "SELECT stop_member('pg1')"),
];

/// What the superuser is refused for other reasons than rights: there is nothing yet that it could be done to.
const NOT_YET: [&str; 7] = [
    "shutdown_subcluster",
    "hg_move_table_to_table_group",
    "hg_update_table_shard_count",
    "hg_table_group_set_warehouse_replica_count",
    "set_table_property",
    "start_member",
    "stop_member",
];

fn prepare(server: &Server) -> Result<Client> {
    let mut admin = server.admin()?;
    FIXTURE.iter().try_for_each(|statement| admin.query(statement).map(drop))?;
    Ok(admin)
}

fn log_in(server: &Server, user: &str) -> Result<Client> {
    if user == ADMIN { server.admin() } else { server.client(user, &format!("pw-{user}")) }
}

fn session_of(client: &mut Client) -> Result<String> {
    let rows = client.query("SELECT current_session()")?;
    rows.into_iter().flatten().flatten().next().context("no session")
}

fn statements(server: &Server) -> Result<()> {
    let mut admin = prepare(server)?;
    let samples: BTreeMap<&str, &str> = SAMPLES.iter().copied().collect();
    let sections = ["Statements", "Functions that do something", "Procedures"];
    let rows: Vec<Row> = rows()?.into_iter().filter(|row| sections.contains(&row.section.as_str())).collect();
    let known: BTreeSet<&str> = rows.iter().map(|row| row.what.as_str()).collect();
    for (what, _) in SAMPLES {
        ensure!(known.contains(what), "\"{what}\" is no row of the page");
    }
    for row in rows {
        let sample = samples.get(row.what.as_str()).with_context(|| format!("\"{}\" has no sample", row.what))?;
        for (user, expected) in USERS.iter().zip(&row.outcomes).filter(|(_, expected)| !expected.is_empty()) {
            // What others than the superuser close may be their own only.
            let mut other = log_in(server, if *user == "olga" { "olga" } else { ADMIN })?;
            let sample = sample.replace("{session}", &session_of(&mut other)?);
            let mut client = log_in(server, user)?;
            client.query("BEGIN; SAVEPOINT s")?;
            if row.what == "DISCARD" || row.what == "BEGIN" {
                client.query("ROLLBACK")?;
            }
            let outcome = client.run(&sample, Protocol::Simple)?;
            let code = outcome.code().unwrap_or("00000").to_owned();
            let refused = code == "42501";
            ensure!(refused == (expected == "42501"), "{user}: {sample}: {code}, not {expected}: {:?}", outcome.error);
            let fine = refused || code == "00000" || NOT_YET.contains(&row.what.as_str());
            ensure!(fine, "{user}: {sample}: {:?}", outcome.error);
            client.query("ROLLBACK")?;
        }
        if row.what == "close_all_sessions" {
            admin = server.admin()?;
        }
    }
    // Nothing that was tried has lasted.
    let names = admin.query("SELECT user_name FROM users ORDER BY 1")?;
    let names: Vec<String> = names.into_iter().flatten().flatten().collect();
    ensure!(names == [ADMIN, "gina", "nobody", "olga", "otto"], "{names:?}");
    Ok(())
}

/// Tables in which everybody, superusers too, sees what is his session's alone.
const ALWAYS_OWN: [&str; 3] =
    ["v_monitor.current_session", "pg_catalog.pg_cursors", "pg_catalog.pg_prepared_statements"];

fn tables(server: &Server) -> Result<()> {
    let mut admin = prepare(server)?;
    admin.query("SET SESSION WORKLOAD web")?;
    let listed = admin.query("SELECT table_schema || '.' || table_name FROM information_schema.tables")?;
    let listed: BTreeSet<String> = listed.into_iter().flatten().flatten().collect();
    let rows: Vec<Row> = rows()?.into_iter().filter(|row| row.section == "System tables").collect();
    let known: BTreeSet<String> = rows.iter().map(|row| row.what.clone()).collect();
    ensure!(listed == known, "{:?}", listed.symmetric_difference(&known).collect::<Vec<_>>());
    let mut plain = log_in(server, "otto")?;
    log_in(server, "olga")?.close()?;
    for row in rows {
        let select = format!("SELECT * FROM {}", row.what);
        let all = admin.query(&select)?;
        let outcome = plain.run(&select, Protocol::Simple)?;
        let [superuser, _, _, expected] = &row.outcomes;
        ensure!(superuser == "yes", "{}: {superuser}", row.what);
        if expected == "42501" {
            ensure!(outcome.code() == Some("42501"), "{}: {outcome:?}", row.what);
            continue;
        }
        let own = outcome.rows().with_context(|| row.what.clone())?;
        if expected == "own rows" && !ALWAYS_OWN.contains(&row.what.as_str()) {
            ensure!(own.len() < all.len(), "{}: {} rows of {}", row.what, own.len(), all.len());
        }
        if expected == "own rows" {
            let of_others = |cell: &Option<String>| {
                cell.as_deref().is_some_and(|cell| [ADMIN, "olga", "gina", "nobody"].contains(&cell))
            };
            let strange = own.iter().find(|row| row.iter().any(of_others));
            ensure!(strange.is_none(), "{}: {strange:?}", row.what);
        }
    }
    Ok(())
}

/// Whether this is one of the sections about functions of queries.
fn of_queries(section: &str) -> bool {
    ["Reads", "Changes", "Ends", "Takes"].iter().any(|start| section.starts_with(start))
}

/// Functions that take what is not a few texts.
const CALLS: &[(&str, &str)] = &[
    ("catalog_at", "SELECT count(*) FROM catalog_at(2)"),
    ("test_authentication", "SELECT count(*) FROM test_authentication('10.0.0.1', 'otto', false)"),
    ("current_setting", "SELECT current_setting('query_time_ms_max')"),
    ("set_config", "SELECT set_config('application_name', 'x', false)"),
    ("pg_cancel_backend", "SELECT pg_cancel_backend(0)"),
    ("pg_terminate_backend", "SELECT pg_terminate_backend(0)"),
    ("pg_advisory_lock", "SELECT pg_advisory_lock(1)"),
    ("pg_notify", "SELECT pg_notify('a', 'b')"),
];

fn functions(server: &Server) -> Result<()> {
    let mut admin = prepare(server)?;
    let mut plain = log_in(server, "otto")?;
    let rows: Vec<Row> = rows()?.into_iter().filter(|row| of_queries(&row.section)).collect();
    ensure!(rows.len() > 80, "only {} functions", rows.len());
    for row in &rows {
        let named = CALLS.iter().find(|(name, _)| *name == row.what).map(|(_, call)| (*call).to_owned());
        // Without arguments most are refused; but not for want of rights.
        let call = named.unwrap_or_else(|| format!("SELECT {}()", row.what));
        for (client, expected) in [(&mut admin, &row.outcomes[0]), (&mut plain, &row.outcomes[3])] {
            let outcome = client.run(&call, Protocol::Simple)?;
            ensure!((outcome.code() == Some("42501")) == (expected == "42501"), "{call}: {outcome:?}");
        }
    }
    let masked = plain.query("SELECT current_setting('query_time_ms_max')")?;
    ensure!(masked == [[Some("********".to_owned())]], "{masked:?}");
    ensure!(admin.query("SELECT current_setting('query_time_ms_max')")? == [[Some("60000".to_owned())]]);
    Ok(())
}
