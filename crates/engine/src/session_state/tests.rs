use std::collections::BTreeMap;

use crate::plan::tests::{Bench, fleet};

/// The fleet of the seed's priorities: Gunther has `reporting` himself, and two roles with a workload each.
fn gunther() -> Bench {
    let mut bench = fleet();
    bench.run_all(
        "CREATE USER Gunther; CREATE ROLE analytics_role; CREATE ROLE qa_role;
         GRANT analytics_role, qa_role TO Gunther;
         CREATE ROUTING RULE ROUTE WORKLOAD reporting TO SUBCLUSTER sc_web;
         CREATE ROUTING RULE ROUTE WORKLOAD analytics TO SUBCLUSTER sc_web PRIORITY 1;
         CREATE ROUTING RULE ROUTE WORKLOAD qa TO SUBCLUSTER sc_web PRIORITY 2;
         GRANT USAGE ON WORKLOAD reporting TO Gunther;
         GRANT USAGE ON WORKLOAD analytics TO analytics_role;
         GRANT USAGE ON WORKLOAD qa TO qa_role;",
    );
    bench
}

#[test]
fn the_workload_follows_roles_priorities_and_choice() {
    let mut admin = gunther();
    let mut user = admin.log_in("gunther", &[]);
    for (text, workload) in [
        ("SHOW WORKLOAD", "reporting"),
        ("SET ROLE analytics_role", "analytics"),
        ("SET ROLE qa_role", "qa"),
        ("SET SESSION WORKLOAD analytics", "analytics"),
        ("SET SESSION WORKLOAD NONE", ""),
        ("SET SESSION WORKLOAD DEFAULT", "qa"),
        ("SET ROLE NONE", "reporting"),
        ("SET ROLE ALL EXCEPT qa_role", "analytics"),
    ] {
        user.run(text);
        assert_eq!(user.run("SHOW WORKLOAD"), format!("workload|{workload}"), "{text}");
    }
    admin.run("ALTER ROUTING RULE FOR WORKLOAD reporting SET PRIORITY TO 3");
    user.catalog = admin.catalog.clone();
    user.run("SHOW ALL");
    assert_eq!(user.run("SHOW WORKLOAD"), "workload|reporting");
}

#[test]
fn a_workload_that_is_not_granted_is_refused_and_the_old_one_stays() {
    let mut user = gunther().log_in("gunther", &[]);
    assert_eq!(user.refusal("SET SESSION WORKLOAD qa").sqlstate.code(), "42501");
    assert_eq!(user.refusal("SET SESSION WORKLOAD nothing").sqlstate.code(), "42704");
    assert_eq!(user.run("SHOW WORKLOAD"), "workload|reporting");
    assert_eq!(user.run("SHOW AVAILABLE WORKLOADS"), "available workloads|reporting");
    user.run("SET ROLE ALL");
    assert_eq!(user.run("SHOW AVAILABLE WORKLOADS"), "available workloads|qa, analytics, reporting");
}

#[test]
fn usage_need_not_be_asked_for() {
    let mut admin = gunther();
    admin.run("ALTER DATABASE shop SET workload_usage_required = off");
    let mut user = admin.log_in("otto", &[]);
    assert_eq!(user.run("SHOW WORKLOAD"), "workload|");
    user.run("SET SESSION WORKLOAD qa");
    assert_eq!(user.run("SHOW WORKLOAD"), "workload|qa");
}

#[test]
fn the_workload_named_at_connect_applies_if_it_may() {
    let admin = gunther();
    for (parameters, workload) in [
        (&[("workload", "reporting")][..], "reporting"),
        (&[("workload", "qa")], "reporting"),
        (&[("workload", "nothing")], "reporting"),
        (&[("options", "-c workload=REPORTING")], "reporting"),
    ] {
        let mut user = admin.log_in("gunther", parameters);
        assert_eq!(user.run("SHOW WORKLOAD"), format!("workload|{workload}"), "{parameters:?}");
    }
    let mut user = admin.log_in("gunther", &[("workload", "reporting")]);
    user.run("SET ROLE qa_role");
    // Named by the client: the priority of others does not matter.
    assert_eq!(user.run("SHOW WORKLOAD"), "workload|reporting");
}

#[test]
fn among_equals_the_session_stays() {
    let mut admin = gunther();
    admin.run("ALTER ROUTING RULE FOR WORKLOAD qa SET PRIORITY TO 1");
    let mut user = admin.log_in("gunther", &[]);
    user.run("SET ROLE ALL");
    let first = user.run("SHOW WORKLOAD");
    for _ in 0..50 {
        user.run("SET application_name = 'x'");
        assert_eq!(user.run("SHOW WORKLOAD"), first);
    }
}

#[test]
fn default_roles_are_on_at_login() {
    let mut admin = gunther();
    admin.run("ALTER USER Gunther DEFAULT ROLE qa_role");
    assert_eq!(admin.log_in("gunther", &[]).run("SHOW WORKLOAD"), "workload|qa");
    assert_eq!(admin.log_in("gunther", &[]).run("SHOW ENABLED ROLES"), "enabled roles|qa_role");
    assert_eq!(admin.log_in("mira", &[]).run("SHOW AVAILABLE_ROLES"), "available roles|etl_ops*, night");
    admin.run("ALTER DATABASE shop SET EnableAllRolesOnLogin = 1");
    assert_eq!(admin.log_in("gunther", &[]).run("SHOW ENABLED ROLES"), "enabled roles|analytics_role, qa_role");
}

#[test]
fn a_rollback_undoes_what_was_set() {
    let mut user = gunther().log_in("gunther", &[]);
    user.run("SET application_name = 'before'");
    user.run("BEGIN");
    user.run("SET application_name = 'inside'");
    user.run("SAVEPOINT s");
    user.run("SET ROLE qa_role");
    user.run("SET application_name = 'deeper'");
    user.run("ROLLBACK TO SAVEPOINT s");
    assert_eq!(user.run("SHOW application_name"), "inside");
    assert_eq!(user.run("SHOW WORKLOAD"), "workload|reporting");
    user.run("SET ROLE qa_role");
    user.run("ROLLBACK");
    assert_eq!(user.run("SHOW application_name"), "before");
    assert_eq!(user.run("SHOW ENABLED ROLES"), "enabled roles|");
    user.run("BEGIN");
    user.run("SET application_name = 'kept'");
    user.run("SET LOCAL statement_timeout = '5s'");
    user.run("COMMIT");
    assert_eq!(user.run("SHOW application_name"), "kept");
    assert_eq!(user.run("SHOW statement_timeout"), "0");
}

#[test]
fn startup_parameters_are_what_reset_goes_back_to() {
    let mut user = gunther().log_in("gunther", &[("application_name", "psql"), ("client_label", "job")]);
    user.run("SET application_name = 'x'");
    user.run("DISCARD ALL");
    assert_eq!(user.run("SHOW application_name"), "psql");
    assert_eq!(user.run("SELECT get_client_label()"), "job");
}

#[test]
fn clients_are_told_what_changed() {
    let mut bench = gunther();
    let mut told = BTreeMap::new();
    let first = bench.session.reports(&bench.catalog, &mut told);
    assert!(first.contains(&("is_superuser", "on".to_owned())));
    assert!(first.contains(&("session_authorization", "dbadmin".to_owned())));
    assert_eq!(bench.session.reports(&bench.catalog, &mut told), []);
    bench.run("SET DateStyle = 'DMY'");
    assert_eq!(bench.session.reports(&bench.catalog, &mut told), [("DateStyle", "ISO, DMY".to_owned())]);
}

#[test]
fn the_idle_timeout_is_the_users_own_or_less() {
    let mut admin = gunther();
    admin.run("ALTER DATABASE shop SET DefaultIdleSessionTimeout = '1 hour'");
    admin.run("ALTER USER mira IDLESESSIONTIMEOUT '10 mins'");
    assert_eq!(admin.run("SHOW idlesessiontimeout"), "idlesessiontimeout|unlimited");
    assert_eq!(admin.log_in("otto", &[]).run("SHOW idlesessiontimeout"), "idlesessiontimeout|01:00");
    let mut mira = admin.log_in("mira", &[]);
    assert_eq!(mira.run("SHOW idlesessiontimeout"), "idlesessiontimeout|00:10");
    assert_eq!(mira.refusal("SET SESSION IDLESESSIONTIMEOUT '20 mins'").sqlstate.code(), "42501");
    mira.run("SET SESSION IDLESESSIONTIMEOUT '5 mins'");
    let limit = Some((300_000, super::IdleSetting::IdleSession));
    assert_eq!(super::idle_limits(&mira.session, &mira.catalog), [limit, limit]);
    assert_eq!(mira.refusal("ALTER USER mira IDLESESSIONTIMEOUT '1 day'").sqlstate.code(), "42501");
}
