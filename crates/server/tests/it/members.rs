//! Several members in one process: what one of them shows of the others, and does to them.

use std::net::Ipv4Addr;

use anyhow::{Context, Result, bail, ensure};
use libtest_mimic::Trial;
use switchyard_testkit::{ADMIN, Client, Login, Protocol, Server};

use crate::quickstart::node;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        crate::with_cluster("sessions_of_all_members_are_seen_from_each", sessions_are_seen_from_each),
        crate::with_cluster("sessions_are_closed_from_another_member", sessions_are_closed_from_another_member),
        crate::with_cluster("the_last_member_that_serves_is_not_stopped", the_last_member_is_not_stopped),
        crate::with_cluster("decisions_are_told_with_their_reasons", decisions_are_told_with_their_reasons),
        crate::with_cluster("a_count_survives_changes_of_other_rules", a_count_survives_changes_of_other_rules),
    ]
}

fn at(server: &Server, number: usize) -> Result<Client> {
    let port = *server.ports().get(number).context("no such member")?;
    Client::connect(&Login::new(port, ADMIN, ""))
}

fn one(client: &mut Client, query: &str) -> Result<String> {
    client.query(query)?.into_iter().flatten().next().flatten().with_context(|| format!("nothing from {query}"))
}

/// Rows with NULL as a word.
fn shown(rows: Vec<Vec<Option<String>>>) -> Vec<Vec<String>> {
    let cell = |cell: Option<String>| cell.unwrap_or_else(|| "NULL".to_owned());
    rows.into_iter().map(|row| row.into_iter().map(cell).collect()).collect()
}

fn sessions_are_seen_from_each(server: &Server) -> Result<()> {
    let mut members = [at(server, 0)?, at(server, 1)?, at(server, 2)?];
    let expected = [1, 2, 3].map(node);
    for client in &mut members {
        let nodes = client.query("SELECT node_name FROM sessions ORDER BY login_timestamp")?;
        let nodes: Vec<String> = nodes.into_iter().flatten().flatten().collect();
        ensure!(nodes == expected, "{nodes:?}");
        let own = one(client, "SELECT string_agg(node_name, ',') FROM current_session")?;
        ensure!(expected.contains(&own), "{own}");
        let ids = one(client, "SELECT count(DISTINCT session_id) FROM v_monitor.sessions")?;
        ensure!(ids == "3", "{ids}");
        let pids = one(client, "SELECT count(DISTINCT pid) FROM pg_stat_activity")?;
        ensure!(pids == "3", "{pids}");
    }
    let [first, _, third] = &mut members;
    let counts = "SELECT string_agg(num_client_sessions::varchar, ',' ORDER BY node_name) FROM draining_status";
    ensure!(one(first, counts)? == "1,1,1");
    // A session that has ended is remembered where it was.
    let id = one(third, "SELECT current_session()")?;
    let [mut first, _, third] = members;
    third.close()?;
    let ended = format!("SELECT node_name FROM user_sessions WHERE session_id = '{id}' AND NOT is_active");
    while first.query(&ended)?.is_empty() {}
    ensure!(one(&mut first, &ended)? == node(3));
    Ok(())
}

fn sessions_are_closed_from_another_member(server: &Server) -> Result<()> {
    let mut admin = at(server, 0)?;
    for way in ["CLOSE_SESSION('{id}')", "pg_terminate_backend({pid})", "CLOSE_ALL_SESSIONS()"] {
        let mut other = at(server, 2)?;
        let id = one(&mut other, "SELECT current_session()")?;
        let pid = one(&mut other, "SELECT pg_backend_pid()")?;
        admin.query(&format!("SELECT {}", way.replace("{id}", &id).replace("{pid}", &pid)))?;
        ensure!(other.query("SELECT 1").is_err(), "{way}: it goes on");
        let gone = format!("SELECT 1 FROM sessions WHERE session_id = '{id}'");
        while !admin.query(&gone)?.is_empty() {}
    }
    Ok(())
}

fn the_last_member_is_not_stopped(server: &Server) -> Result<()> {
    let mut admin = server.admin()?;
    for number in [2, 3] {
        admin.query(&format!("SELECT STOP_MEMBER('{}')", node(number)))?;
    }
    let error = admin.run(&format!("SELECT STOP_MEMBER('{}')", node(1)), Protocol::Simple)?.error.context("stopped")?;
    let expected = format!("node \"{}\" is the only member of this process that still serves", node(1));
    ensure!(error.code == "55000" && error.message == expected && error.hint.is_some(), "{error:?}");
    admin.query(&format!("SELECT START_MEMBER('{}')", node(2)))?;
    Ok(())
}

fn decisions_are_told_with_their_reasons(server: &Server) -> Result<()> {
    let balanced = server.login().parameter("options", "-c connection_load_balance=on");
    let desk = Ipv4Addr::new(127, 0, 0, 2);
    let mut admin = server.admin()?;
    admin.query(&format!("SELECT STOP_MEMBER('{}')", node(2)))?;
    Client::connect(&balanced.clone().from(desk))?.close()?;
    Client::connect(&balanced)?.close()?;
    admin.query("DROP ROUTING RULE loopback; DROP ROUTING RULE desk")?;
    Client::connect(&balanced)?.close()?;
    let told = admin.query(
        "SELECT decision_number, client_address, stage, rule_name, group_name, policy, outcome, node_name, reason, \
         candidates::text, skipped::text, member_name FROM switchyard.routing_decisions ORDER BY 1",
    )?;
    let [first, second, third] = server.ports() else { bail!("{:?}", server.ports()) };
    let (one, two, three) = (node(1), node(2), node(3));
    let down = format!("{two} 127.0.0.1:{second}: the node is not up");
    let expected = [
        [
            "1",
            "127.0.0.2",
            "routing rule",
            "desk",
            "reports",
            "ROUNDROBIN",
            "proxy",
            &three,
            "NULL",
            &format!("{{\"{three} 127.0.0.1:{third}\"}}"),
            &format!(
                "{{\"{two} ::1:{second}: {outside}\",\"{three} ::1:{third}: {outside}\",\"{down}\"}}",
                outside = "the network address is not in the group's filter"
            ),
            &one,
        ],
        [
            "2",
            "127.0.0.1",
            "routing rule",
            "loopback",
            "everyone",
            "ROUNDROBIN",
            "own node",
            &one,
            "NULL",
            &format!("{{\"{one} 127.0.0.1:{first}\",\"{three} 127.0.0.1:{third}\"}}"),
            &format!("{{\"{down}\"}}"),
            &one,
        ],
        [
            "3",
            "127.0.0.1",
            "interior rule",
            "NULL",
            "NULL",
            "ROUNDROBIN",
            "own node",
            &one,
            "NULL",
            &format!("{{\"{one} 127.0.0.1:{first}\"}}"),
            &format!("{{\"{one} ::1:{first}: the address is of another family than the client's\"}}"),
            &one,
        ],
    ];
    let told = shown(told);
    ensure!(told == expected, "{told:#?}");
    let vertica = admin.query("SELECT rule, target_port, outcome FROM load_balance_decisions ORDER BY timestamp")?;
    let port = vertica.first().and_then(|row| row.get(1)).cloned().flatten();
    ensure!(vertica.len() == 3 && port == Some(third.to_string()), "{vertica:?}");
    Ok(())
}

fn a_count_survives_changes_of_other_rules(server: &Server) -> Result<()> {
    let balanced = server.login().parameter("options", "-c connection_load_balance=on");
    let mut admin = server.admin()?;
    for _ in 0..3 {
        Client::connect(&balanced)?.close()?;
    }
    let counts = "SELECT string_agg(rule_name || '=' || decisions::varchar, ',' ORDER BY rule_name) FROM rule_counters";
    ensure!(one(&mut admin, counts)? == "desk=0,loopback=3,loopback_v6=0", "{}", one(&mut admin, counts)?);
    // The one that is dropped takes its count along, though another one is called so later.
    admin.query("DROP ROUTING RULE desk; CREATE ROUTING RULE desk ROUTE '127.0.0.3/32' TO reports")?;
    admin.query("ALTER ROUTING RULE loopback RENAME TO home")?;
    // A question is no connection.
    admin.query("SELECT * FROM switchyard.explain_route('127.0.0.1')")?;
    admin.query("SELECT DESCRIBE_LOAD_BALANCE_DECISION('127.0.0.1')")?;
    Client::connect(&balanced)?.close()?;
    ensure!(one(&mut admin, counts)? == "desk=0,home=4,loopback_v6=0", "{}", one(&mut admin, counts)?);
    Ok(())
}
