#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use super::*;
use crate::plan::tests::fleet;

#[test]
fn each_declaration_is_sound() {
    for (index, setting) in SETTINGS.iter().enumerate() {
        let others = &SETTINGS[index + 1..];
        assert!(!others.iter().any(|other| other.name.eq_ignore_ascii_case(setting.name)), "{} twice", setting.name);
        assert!(setting.description.ends_with('.'), "{}", setting.name);
        if setting.levels != Levels::NONE {
            assert_eq!(setting.read(setting.default).as_deref(), Ok(setting.default), "{}", setting.name);
        }
    }
}

#[test]
fn values_are_read_as_postgresql_does() {
    for (name, text, wanted) in [
        ("statement_timeout", "5s", Ok("5000")),
        ("statement_timeout", "1.5 min", Ok("90000")),
        ("statement_timeout", "2500us", Ok("2")),
        (
            "statement_timeout",
            "-5",
            Err("-5 ms is outside the valid range for parameter \"statement_timeout\" (0 .. 2147483647)"),
        ),
        ("statement_timeout", "5 parsecs", Err("invalid value for parameter \"statement_timeout\": \"5 parsecs\"")),
        ("extra_float_digits", "2.6", Ok("3")),
        ("hg_experimental_query_replica_leader_weight", "1e2", Ok("100")),
        (
            "HG_EXPERIMENTAL_QUERY_REPLICA_LEADER_WEIGHT",
            "0",
            Err(
                "0 is outside the valid range for parameter \"hg_experimental_query_replica_leader_weight\" (1 .. 10000)",
            ),
        ),
        (
            "hg_experimental_query_replica_leader_weight",
            "abc",
            Err("invalid value for parameter \"hg_experimental_query_replica_leader_weight\": \"abc\""),
        ),
        ("hg_experimental_query_replica_mode", "LEADER_Only", Ok("leader_only")),
        ("default_transaction_read_only", "tru", Ok("on")),
        (
            "default_transaction_read_only",
            "o",
            Err("parameter \"default_transaction_read_only\" requires a Boolean value"),
        ),
        ("EnableAllRolesOnLogin", "true", Ok("1")),
        ("DateStyle", "dmy", Ok("ISO, DMY")),
        ("DateStyle", "German", Err("invalid value for parameter \"DateStyle\": \"German\"")),
        ("client_encoding", "utf-8", Ok("UTF8")),
        ("client_encoding", "latin1", Ok("LATIN1")),
        ("client_encoding", "windows-1252", Ok("WIN1252")),
        ("client_encoding", "latin2", Err("invalid value for parameter \"client_encoding\": \"latin2\"")),
        ("TimeZone", "Europe/Berlin", Ok("Europe/Berlin")),
        ("TimeZone", "utc", Ok("UTC")),
        ("TimeZone", "GMT-02:00", Ok("-02:00")),
        ("TimeZone", "+05:30", Ok("+05:30")),
        ("TimeZone", "+03", Ok("-03:00")),
        ("TimeZone", "Middle/Earth", Err("invalid value for parameter \"TimeZone\": \"Middle/Earth\"")),
        (
            "standard_conforming_strings",
            "off",
            Err("invalid value for parameter \"standard_conforming_strings\": \"off\""),
        ),
        ("DefaultIdleSessionTimeout", "10 mins", Ok("00:10")),
        ("DefaultGracePeriod", "21 days", Err("invalid value for parameter \"DefaultGracePeriod\": \"21 days\"")),
        ("work_mem", "64MB", Ok("65536")),
    ] {
        let read = declaration(name).unwrap().read(text).map_err(|error| error.to_string());
        assert_eq!(read, wanted.map(str::to_owned).map_err(str::to_owned), "{name} = {text}");
    }
}

#[test]
fn wrong_words_get_a_hint() {
    let mut bench = fleet();
    let error = bench.refusal("SET hg_experimental_query_replica_mode = foo");
    assert_eq!(error.hint.as_deref(), Some("Available values: leader_follower, leader_only, follower_only."));
    let error = bench.refusal("SET hg_experimental_query_replica_mod = leader_only");
    assert_eq!(error.hint.as_deref(), Some("Did you mean \"hg_experimental_query_replica_mode\"?"));
    for (text, code) in [
        ("SET server_version = '9'", "55P02"),
        ("SET MaxClientSessions = 3", "55P02"),
        ("ALTER DATABASE shop SET locale = 'en_US'", "55P02"),
        ("SET application_name = a, b", "22023"),
        ("SET MaxClientSession = 3", "42704"),
    ] {
        assert_eq!(bench.refusal(text).sqlstate.code(), code, "{text}");
    }
}

#[test]
fn numbers_are_shown_with_units() {
    let mut bench = fleet();
    for (set, shown) in [("60000", "1min"), ("1500", "1500ms"), ("0", "0"), ("'2h'", "2h")] {
        bench.run(&format!("SET statement_timeout = {set}"));
        assert_eq!(bench.run("SHOW statement_timeout"), shown);
    }
}

#[test]
fn the_transaction_wins_over_session_user_and_database() {
    let mut admin = fleet();
    admin.run_all(
        "ALTER DATABASE shop SET hg_experimental_query_replica_leader_weight = 2;
         ALTER USER mira SET hg_experimental_query_replica_leader_weight = 3;",
    );
    let show = "SHOW hg_experimental_query_replica_leader_weight";
    // A change at a lasting level is for sessions to come.
    assert_eq!(admin.run(show), "100");
    assert_eq!(admin.log_in("otto", &[]).run(show), "2");
    let mut mira = admin.log_in("mira", &[]);
    assert_eq!(mira.run(show), "3");
    mira.run("SET hg_experimental_query_replica_leader_weight = 4");
    mira.run("BEGIN");
    mira.run("SET LOCAL hg_experimental_query_replica_leader_weight = 5");
    assert_eq!(mira.run(show), "5");
    mira.run("COMMIT");
    assert_eq!(mira.run(show), "4");
    mira.run("RESET hg_experimental_query_replica_leader_weight");
    assert_eq!(mira.run(show), "3");
    admin.run("ALTER DATABASE shop RESET hg_experimental_query_replica_leader_weight");
    assert_eq!(admin.log_in("otto", &[]).run(show), "100");
}

#[test]
fn the_user_wins_over_session_node_and_database_for_vertica_parameters() {
    let mut admin = fleet();
    let mut mira = admin.log_in("mira", &[]);
    let show = "SHOW CURRENT KeepAliveIdleTime";
    for (text, shown) in [
        ("ALTER DATABASE shop SET KeepAliveIdleTime = 1", "DATABASE|KeepAliveIdleTime|1"),
        ("ALTER NODE node1 SET KeepAliveIdleTime = 2", "NODE|KeepAliveIdleTime|2"),
        ("ALTER NODE node2 SET KeepAliveIdleTime = 9", "NODE|KeepAliveIdleTime|2"),
    ] {
        admin.run(text);
        mira.catalog = admin.catalog.clone();
        assert_eq!(mira.run(show), shown);
    }
    mira.run("ALTER SESSION SET KeepAliveIdleTime = 3");
    assert_eq!(mira.run(show), "SESSION|KeepAliveIdleTime|3");
    admin.run("ALTER USER mira SET KeepAliveIdleTime = 4");
    mira.catalog = admin.catalog.clone();
    assert_eq!(mira.run(show), "USER|KeepAliveIdleTime|4");
}

#[test]
fn configuration_rows_say_where_nodes_differ() {
    let mut admin = fleet();
    let rows = |bench: &crate::plan::tests::Bench| {
        let rows = configuration_rows(&bench.catalog, &bench.session);
        let rows = rows.into_iter().filter(|row| row.parameter_name == "MaxClientSessions");
        rows.map(|row| (row.node_name, row.current_value, row.current_level, row.is_mismatch)).collect::<Vec<_>>()
    };
    assert_eq!(rows(&admin), [("ALL".to_owned(), "50".to_owned(), "DEFAULT", false)]);
    admin.run("ALTER NODE node2 SET MaxClientSessions = 7");
    let row = |node: &str, value: &str, level| (node.to_owned(), value.to_owned(), level, true);
    assert_eq!(rows(&admin), [row("node1", "50", "DEFAULT"), row("node2", "7", "NODE"), row("node3", "50", "DEFAULT")]);
}

#[test]
fn values_for_superusers_are_masked() {
    let admin = fleet();
    let value = |bench: &crate::plan::tests::Bench| {
        let rows = setting_rows(&bench.catalog, &bench.session);
        rows.into_iter().find(|row| row.name == "query_time_ms_max").map(|row| row.value)
    };
    assert_eq!(value(&admin).as_deref(), Some("60000"));
    assert_eq!(value(&admin.log_in("otto", &[])).as_deref(), Some("********"));
    assert_eq!(admin.log_in("otto", &[]).run("SHOW query_time_ms_max"), "********");
}

/// What psql and the drivers say when they connect and in between (`reference/introspection.md`).
#[test]
fn what_clients_set_is_taken() {
    let mut bench = fleet();
    bench.run("BEGIN");
    for (text, answer) in [
        ("SET extra_float_digits = 3", "SET"),
        ("SET application_name = 'PostgreSQL JDBC Driver'", "SET"),
        ("SET DateStyle=ISO", "SET"),
        ("SET client_min_messages=notice", "SET"),
        ("SET client_encoding='utf-8'", "SET"),
        ("SET SESSION search_path TO \"$user\", public", "SET"),
        ("SHOW search_path", "\"$user\", public"),
        ("SET search_path = ''", "SET"),
        ("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ UNCOMMITTED", "SET"),
        ("SHOW default_transaction_isolation", "read uncommitted"),
        ("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", "SET"),
        ("show transaction isolation level", "serializable"),
        ("show standard_conforming_strings", "on"),
        ("SET TIME ZONE 'Europe/Berlin'", "SET"),
        ("show time zone", "Europe/Berlin"),
        ("SET TIME ZONE DEFAULT", "SET"),
        ("show time zone", "UTC"),
        ("SET NAMES 'UTF8'", "SET"),
        ("SET SESSION AUTOCOMMIT TO off", "SET"),
        ("SHOW autocommit", "autocommit|off"),
        ("SET idle_in_transaction_session_timeout = '5min'", "SET"),
        ("RESET ROLE", "RESET"),
        ("RESET SESSION AUTHORIZATION", "RESET"),
        ("SET hg_experimental_enable_fixed_dispatcher_affected_rows = off", "SET"),
    ] {
        assert_eq!(bench.run(text), answer, "{text}");
    }
}
