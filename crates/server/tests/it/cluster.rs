//! Several processes with one catalog in etcd.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use libtest_mimic::Trial;
use switchyard_testkit::{ADMIN, ADMIN_PASSWORD, Client, Etcd, Login, Protocol, Refused, Server, call, psql, told};

use crate::client::beside;
use crate::fleet::{
    NAMES, PATIENCE, balance, last_reason, nth, on_fixed_ports, one, options, three, three_that_know_each_other, until,
    wait_for, wait_for_all, wait_for_state,
};
use crate::http::{answers_at, page};
use crate::python::interpreter;

/// Longer than any test: what happens in time does not wait for it.
const LONG_LEASE: &str = "600";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        crate::trial("three_members_have_one_catalog", three_members_have_one_catalog),
        crate::trial("a_live_nodes_name_is_refused", a_live_nodes_name_is_refused),
        crate::trial("a_killed_member_is_down_and_comes_back", a_killed_member_is_down),
        crate::trial("a_member_that_flaps_is_up_when_it_is_steady", a_member_that_flaps),
        crate::trial("a_frozen_member_is_down_and_comes_back", a_frozen_member_is_down),
        crate::trial("a_member_that_is_stopped_leaves_at_once", a_stopped_member_leaves),
        crate::trial("without_etcd_connections_are_served_and_writes_refused", without_etcd),
        crate::trial("members_that_commit_at_once_lose_nothing", members_commit_at_once),
        crate::trial("clients_are_sent_to_members_of_other_processes", clients_are_sent),
        crate::trial("a_catalog_moves_from_redb_to_etcd", a_catalog_moves),
        crate::trial("clusters_share_an_etcd", clusters_share_an_etcd),
        crate::trial("a_killed_member_is_seen_without_its_lease", a_killed_member_is_seen),
        crate::trial("sessions_of_other_processes_are_seen", sessions_are_seen),
        crate::trial("sessions_of_other_processes_are_ended", sessions_are_ended),
        crate::trial("statements_of_other_processes_are_stopped", statements_are_stopped),
        crate::trial("a_member_that_does_not_answer_is_named", a_silent_member_is_named),
        crate::trial("a_draining_member_finishes_what_it_has", a_draining_member_finishes),
        crate::trial("how_long_etcd_takes_to_tell_is_measured", how_long_etcd_takes),
        crate::trial("a_drain_has_its_time", a_drain_has_its_time),
        crate::trial("a_limit_on_the_database_counts_all_processes", a_limit_on_the_database),
        crate::trial("a_limit_on_the_database_holds_in_some_way_without_etcd", a_limit_without_etcd),
        crate::trial("a_subcluster_is_stopped_when_it_is_empty", a_subcluster_is_stopped),
        crate::trial("shutdown_ends_all_members", shutdown_ends_all_members),
        crate::trial("a_member_is_replaced_without_a_refused_connection", a_member_is_replaced),
        crate::trial("drivers_connect_while_all_members_are_restarted", drivers_connect_through_restarts),
    ]
}

fn three_members_have_one_catalog() -> Result<()> {
    let etcd = Etcd::start()?;
    let servers = three(&etcd, |options| options)?;
    let mut clients = servers.iter().map(Server::admin).collect::<Result<Vec<_>>>()?;
    for client in &mut clients {
        wait_for_all(client)?;
    }
    for (number, name) in NAMES.iter().enumerate() {
        nth(&mut clients, number)?.query(&format!("CREATE SUBCLUSTER of_{name}"))?;
        let version = one(nth(&mut clients, number)?, "SELECT max(version)::varchar FROM catalog_history")?;
        for client in &mut clients {
            wait_for(
                client,
                "SELECT max(version)::varchar FROM catalog_history",
                &version.clone().unwrap_or_default(),
            )?;
            wait_for(
                client,
                &format!("SELECT DISTINCT subcluster_name FROM subclusters WHERE subcluster_name = 'of_{name}'"),
                &format!("of_{name}"),
            )?;
        }
    }
    // A user that one member made logs in to another.
    nth(&mut clients, 0)?.query("CREATE USER mira IDENTIFIED BY 'pw-mira'")?;
    wait_for(nth(&mut clients, 1)?, "SELECT user_name FROM users WHERE user_name = 'mira'", "mira")?;
    servers[1].client("mira", "pw-mira")?.close()?;
    servers.into_iter().try_for_each(Server::finish)
}

fn a_live_nodes_name_is_refused() -> Result<()> {
    let etcd = Etcd::start()?;
    let server = options(&etcd, "North").start()?;
    let mut admin = server.admin()?;
    let version = one(&mut admin, "SELECT max(version)::varchar FROM catalog_history")?;
    let Err(refused) = options(&etcd, "north").start() else { bail!("two processes are one node") };
    let refused = format!("{refused:#}");
    let expected = format!(
        "node \"north\" cannot join: node \"North\" is already served by another process, at 127.0.0.1:{}",
        server.port()
    );
    ensure!(refused.contains(&expected), "{refused}");
    // Nothing has changed.
    ensure!(one(&mut admin, "SELECT max(version)::varchar FROM catalog_history")? == version);
    server.finish()
}

fn a_killed_member_is_down() -> Result<()> {
    let etcd = Etcd::start()?;
    let [north, mut east, south] = three(&etcd, |options| options)?;
    let (mut admin, mut other) = (north.admin()?, south.admin()?);
    wait_for_all(&mut admin)?;
    wait_for_all(&mut other)?;
    balance(&mut admin, &[&north, &east, &south])?;
    let port = east.port();
    east.kill()?;
    for client in [&mut admin, &mut other] {
        wait_for_state(client, "east", "DOWN")?;
    }
    let reason = last_reason(&mut admin, "east")?;
    ensure!(["its lease ended", "nobody listens at its address"].contains(&reason.as_str()), "{reason}");
    for _ in 0..6 {
        ensure!(told([127, 0, 0, 1].into(), north.port())? != Some(port), "sent to a member that is down");
    }
    east.restart()?;
    for client in [&mut admin, &mut other] {
        wait_for_state(client, "east", "UP")?;
    }
    [north, east, south].into_iter().try_for_each(Server::finish)
}

fn a_member_that_flaps() -> Result<()> {
    const DOWNS: usize = 3;
    let etcd = Etcd::start()?;
    let [north, mut east, south] = three(&etcd, |options| options)?;
    let mut admin = north.admin()?;
    wait_for_all(&mut admin)?;
    for _ in 1..DOWNS {
        east.kill()?;
        wait_for_state(&mut admin, "east", "DOWN")?;
        east.restart()?;
        wait_for_state(&mut admin, "east", "UP")?;
    }
    east.kill()?;
    wait_for_state(&mut admin, "east", "DOWN")?;
    let back = Instant::now();
    east.restart()?;
    // It answers already, and gets no clients yet.
    east.admin()?.close()?;
    wait_for_state(&mut admin, "east", "UP")?;
    ensure!(back.elapsed() >= Duration::from_secs(5), "it was up again after {:?}", back.elapsed());
    let ups = "SELECT count(*)::varchar FROM node_states WHERE node_name = 'east' AND node_state = 'UP'";
    ensure!(one(&mut admin, ups)? == Some((DOWNS + 1).to_string()), "{:?}", one(&mut admin, ups)?);
    [north, east, south].into_iter().try_for_each(Server::finish)
}

fn a_frozen_member_is_down() -> Result<()> {
    let etcd = Etcd::start()?;
    let [north, east, south] = three(&etcd, |options| options)?;
    let mut admin = north.admin()?;
    wait_for_all(&mut admin)?;
    east.freeze()?;
    wait_for_state(&mut admin, "east", "DOWN")?;
    ensure!(last_reason(&mut admin, "east")? == "its lease ended", "{}", last_reason(&mut admin, "east")?);
    // What it missed it learns.
    admin.query("CREATE SUBCLUSTER meanwhile")?;
    east.thaw()?;
    wait_for_state(&mut admin, "east", "UP")?;
    let mut east_admin = east.admin()?;
    wait_for(&mut east_admin, "SELECT count(*)::varchar FROM catalog_history WHERE statement LIKE '%meanwhile%'", "1")?;
    [north, east, south].into_iter().try_for_each(Server::finish)
}

fn a_stopped_member_leaves() -> Result<()> {
    let etcd = Etcd::start()?;
    let [north, mut east, south] = three(&etcd, |options| options.argument("--member-lease-s").argument(LONG_LEASE))?;
    let mut admin = north.admin()?;
    wait_for_all(&mut admin)?;
    ensure!(east.terminate()? == 0);
    wait_for_state(&mut admin, "east", "DOWN")?;
    ensure!(last_reason(&mut admin, "east")? == "it left", "{}", last_reason(&mut admin, "east")?);
    // Its name is free, though no lease has ended.
    east.restart()?;
    wait_for_state(&mut admin, "east", "UP")?;
    [north, east, south].into_iter().try_for_each(Server::finish)
}

fn without_etcd() -> Result<()> {
    let mut etcd = Etcd::start()?;
    let [mut north, mut east, south] = three(&etcd, |options| options.argument("--etcd-time-ms-max").argument("300"))?;
    let mut admin = north.admin()?;
    wait_for_all(&mut admin)?;
    wait_for_all(&mut south.admin()?)?;
    balance(&mut admin, &[&north, &east, &south])?;
    wait_for(&mut south.admin()?, "SELECT count(*)::varchar FROM routing_rules", "1")?;
    for server in [&mut north, &mut east] {
        server.expect_error("commit failed");
    }
    etcd.kill()?;
    for _ in 0..2 {
        let refused = admin.run("CREATE SUBCLUSTER late", Protocol::Simple)?.error.context("committed without etcd")?;
        ensure!(refused.code == "58030" && refused.message == "the catalog store cannot be reached", "{refused:?}");
        let detail = refused.detail.clone().unwrap_or_default();
        ensure!(detail.contains(&etcd.url()) && detail.ends_with("Nothing was changed."), "{refused:?}");
        ensure!(refused.hint.is_some(), "{refused:?}");
    }
    // Logins and decisions go on, and nobody is taken for dead.
    for server in [&north, &east, &south] {
        let mut client = server.admin()?;
        let up = one(&mut client, "SELECT count(*)::varchar FROM nodes WHERE node_state = 'UP'")?;
        ensure!(up.as_deref() == Some("3"), "{up:?} are up");
        let sent: BTreeSet<_> = (0..12).map(|_| told([127, 0, 0, 1].into(), server.port())).collect::<Result<_>>()?;
        ensure!(sent.len() == 3, "{sent:?}");
    }
    etcd.run()?;
    let deadline = Instant::now() + PATIENCE;
    while let Some(refused) = admin.run("CREATE SUBCLUSTER late", Protocol::Simple)?.error {
        ensure!(Instant::now() < deadline, "{refused:?}");
    }
    for server in [&east, &south] {
        let query = "SELECT count(*)::varchar FROM catalog_history WHERE statement = 'CREATE SUBCLUSTER late' AND outcome = 'committed'";
        wait_for(&mut server.admin()?, query, "1")?;
    }
    [north, east, south].into_iter().try_for_each(Server::finish)
}

fn members_commit_at_once() -> Result<()> {
    const EACH: usize = 40;
    let etcd = Etcd::start()?;
    let servers = three(&etcd, |options| options)?;
    let mut clients = servers.iter().map(Server::admin).collect::<Result<Vec<_>>>()?;
    nth(&mut clients, 0)?.query("CREATE SUBCLUSTER wanted")?;
    for client in &mut clients {
        wait_for(
            client,
            "SELECT DISTINCT subcluster_name FROM subclusters WHERE subcluster_name = 'wanted'",
            "wanted",
        )?;
    }
    let before: u64 =
        one(nth(&mut clients, 0)?, "SELECT max(version)::varchar FROM catalog_history")?.context("none")?.parse()?;
    let writers = clients.into_iter().zip(NAMES).map(|(mut client, name)| {
        thread::spawn(move || -> Result<(Client, bool)> {
            for number in 0..EACH {
                client.query(&format!("CREATE SUBCLUSTER {name}_{number}"))?;
            }
            // One object that all want to have: one of them gets it.
            let outcome = client.run(&format!("ALTER SUBCLUSTER wanted RENAME TO had_by_{name}"), Protocol::Simple)?;
            let code = outcome.code().map(str::to_owned);
            ensure!(code.as_deref().is_none_or(|code| ["40001", "42704"].contains(&code)), "{outcome:?}");
            Ok((client, code.is_none()))
        })
    });
    let writers: Vec<_> = writers.collect();
    let mut won = 0;
    let mut clients = Vec::new();
    for writer in writers {
        let Ok(written) = writer.join() else { bail!("a writer panicked") };
        let (client, has) = written?;
        won += usize::from(has);
        clients.push(client);
    }
    ensure!(won == 1, "{won} members renamed one object");
    let expected = before + u64::try_from(3 * EACH)? + 1;
    for client in &mut clients {
        wait_for(
            client,
            "SELECT max(version)::varchar FROM catalog_history WHERE outcome = 'committed'",
            &expected.to_string(),
        )?;
        wait_for(
            client,
            "SELECT count(*)::varchar FROM catalog_history WHERE statement LIKE 'CREATE SUBCLUSTER %\\_%' AND outcome = 'committed'",
            &(3 * EACH).to_string(),
        )?;
    }
    servers.into_iter().try_for_each(Server::finish)
}

fn clients_are_sent() -> Result<()> {
    let etcd = Etcd::start()?;
    let servers = three(&etcd, |options| options)?;
    let mut admin = servers[0].admin()?;
    wait_for_all(&mut admin)?;
    balance(&mut admin, &servers.iter().collect::<Vec<_>>())?;
    // PostgreSQL's are passed on, Vertica's are told.
    let login =
        Login::new(servers[0].port(), ADMIN, ADMIN_PASSWORD).parameter("options", "-c connection_load_balance=on");
    let mut served = BTreeSet::new();
    for _ in 0..3 {
        let mut client = Client::connect(&login)?;
        served.extend(one(&mut client, "SELECT node_name FROM current_session")?);
    }
    ensure!(served == NAMES.map(str::to_owned).into(), "{served:?}");
    let ports: BTreeSet<Option<u16>> =
        (0..3).map(|_| told([127, 0, 0, 1].into(), servers[0].port())).collect::<Result<_>>()?;
    ensure!(ports.len() == 3, "{ports:?}");
    servers.into_iter().try_for_each(Server::finish)
}

fn a_catalog_moves() -> Result<()> {
    let alone = crate::options().start()?;
    let statements = "CREATE SUBCLUSTER kept; CREATE NODE pg1 WITH '10.0.0.1' PORT 5432 SUBCLUSTER kept;\
                      CREATE NETWORK ADDRESS a ON pg1 WITH '10.0.0.1'; CREATE LOAD BALANCE GROUP g WITH ADDRESS a;\
                      CREATE ROUTING RULE r ROUTE '10.0.0.0/8' TO g; CREATE USER mira IDENTIFIED BY 'pw-mira';\
                      CREATE ROUTING RULE ROUTE WORKLOAD w TO SUBCLUSTER kept; GRANT USAGE ON WORKLOAD w TO mira";
    alone.admin()?.query(statements)?;
    let mut alone = alone;
    ensure!(alone.terminate()? == 0);
    let data = alone.data_directory();
    let dumped = alone.command(&["dump", "--data-dir", &data.display().to_string()]).output()?;
    ensure!(dumped.status.success(), "{}", String::from_utf8_lossy(&dumped.stderr));
    let script = data.join("catalog.sql");
    std::fs::write(&script, &dumped.stdout)?;

    let etcd = Etcd::start()?;
    let member = options(&etcd, switchyard_testkit::NODE).start()?;
    let ran = psql(&member, &["-v", "ON_ERROR_STOP=1", "--quiet", "-f", &script.display().to_string()], "")?;
    ensure!(ran.code == Some(0), "{}", ran.stderr);
    member.client("mira", "pw-mira")?.close()?;
    let url = etcd.url();
    let again = member.command(&["dump", "--store", "etcd", "--etcd", &url]).output()?;
    ensure!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
    // Where the member itself is has nothing to do with the catalog that was moved.
    let lines = |output: &[u8]| -> Vec<String> {
        let text = String::from_utf8_lossy(output).into_owned();
        text.lines().filter(|line| !line.contains(switchyard_testkit::NODE)).map(str::to_owned).collect()
    };
    ensure!(
        lines(&again.stdout) == lines(&dumped.stdout),
        "{}\nis not\n{}",
        String::from_utf8_lossy(&again.stdout),
        String::from_utf8_lossy(&dumped.stdout)
    );
    let by_url = member.command(&["dump", "--store", &url.replace("http", "etcd")]).output()?;
    ensure!(by_url.stdout == again.stdout, "{}", String::from_utf8_lossy(&by_url.stderr));
    member.finish()
}

fn clusters_share_an_etcd() -> Result<()> {
    let etcd = Etcd::start()?;
    let prefixed = |prefix: &str| options(&etcd, "only").argument("--etcd-prefix").argument(prefix).start();
    let (mut one_of_them, other) = (prefixed("/one")?, prefixed("/other")?);
    one_of_them.admin()?.query("CREATE SUBCLUSTER of_one")?;
    let there = "SELECT count(*)::varchar FROM catalog_history WHERE statement LIKE '%of\\_one%'";
    ensure!(one(&mut other.admin()?, there)?.as_deref() == Some("0"));
    one_of_them.kill()?;
    one_of_them.restart()?;
    ensure!(one(&mut one_of_them.admin()?, there)?.as_deref() == Some("1"));
    one_of_them.finish()?;
    other.finish()
}

fn a_killed_member_is_seen() -> Result<()> {
    let etcd = Etcd::start()?;
    let [north, mut east, south] = three(&etcd, |options| options.argument("--member-lease-s").argument(LONG_LEASE))?;
    for server in [&north, &south] {
        wait_for_all(&mut server.admin()?)?;
    }
    east.kill()?;
    for server in [&north, &south] {
        let mut admin = server.admin()?;
        wait_for_state(&mut admin, "east", "DOWN")?;
        let reason = last_reason(&mut admin, "east")?;
        ensure!(reason == "nobody listens at its address", "{reason}");
    }
    [north, south].into_iter().try_for_each(Server::finish)
}

fn sessions_are_seen() -> Result<()> {
    let etcd = Etcd::start()?;
    let servers = three_that_know_each_other(&etcd)?;
    servers[0].admin()?.query("CREATE USER mira IDENTIFIED BY 'pw-mira'")?;
    wait_for(&mut servers[2].admin()?, "SELECT user_name FROM users WHERE user_name = 'mira'", "mira")?;
    let mut others = servers.iter().map(Server::admin).collect::<Result<Vec<_>>>()?;
    let mut mira = servers[2].client("mira", "pw-mira")?;
    let id = one(&mut mira, "SELECT current_session()")?.context("no session")?;
    for client in &mut others {
        wait_for(client, &format!("SELECT node_name FROM sessions WHERE session_id = '{id}'"), "south")?;
        wait_for(client, "SELECT count(*)::varchar FROM pg_stat_activity WHERE usename = 'mira'", "1")?;
        let counts = "SELECT num_client_sessions::varchar FROM draining_status WHERE node_name = 'north'";
        ensure!(one(client, counts)?.is_some_and(|count| count != "0"));
    }
    // Whoever is no superuser sees his own, wherever they are.
    let mut same = servers[2].client("mira", "pw-mira")?;
    ensure!(one(&mut same, "SELECT count(*)::varchar FROM sessions")?.as_deref() == Some("2"));
    mira.close()?;
    wait_for(
        nth(&mut others, 0)?,
        &format!("SELECT count(*)::varchar FROM user_sessions WHERE session_id = '{id}' AND NOT is_active"),
        "1",
    )?;
    servers.into_iter().try_for_each(Server::finish)
}

fn sessions_are_ended() -> Result<()> {
    let etcd = Etcd::start()?;
    let servers = three_that_know_each_other(&etcd)?;
    let mut admin = servers[0].admin()?;
    for way in [
        "CLOSE_SESSION('{id}')",
        "pg_terminate_backend({pid})",
        "CLOSE_USER_SESSIONS('dbadmin')",
        "CLOSE_ALL_SESSIONS()",
    ] {
        let mut other = servers[1].admin()?;
        let id = one(&mut other, "SELECT current_session()")?.context("no session")?;
        let pid = one(&mut other, "SELECT pg_backend_pid()::varchar")?.context("no process")?;
        admin.query(&format!("SELECT {}", way.replace("{id}", &id).replace("{pid}", &pid)))?;
        wait_for(&mut admin, &format!("SELECT count(*)::varchar FROM sessions WHERE session_id = '{id}'"), "0")?;
        ensure!(other.query("SELECT 1").is_err(), "{way}: it goes on");
    }
    let absent = admin.run("SELECT CLOSE_SESSION('nowhere-1:0x1')", Protocol::Simple)?.error.context("closed")?;
    ensure!(absent.message == "Session \"nowhere-1:0x1\" does not exist" && absent.detail.is_none(), "{absent:?}");
    // The privilege is looked at where the session is.
    admin.query("CREATE USER mira IDENTIFIED BY 'pw-mira'")?;
    let mut other = servers[1].admin()?;
    let id = one(&mut other, "SELECT current_session()")?.context("no session")?;
    let mut mira = servers[0].client("mira", "pw-mira")?;
    let refused = mira.run(&format!("SELECT CLOSE_SESSION('{id}')"), Protocol::Simple)?;
    ensure!(refused.code() == Some("42501"), "{refused:?}");
    other.query("SELECT 1")?;
    servers.into_iter().try_for_each(Server::finish)
}

/// A statement that runs, and then its code.
type Running = thread::JoinHandle<Result<Option<String>>>;

/// A query without an end, and its client.
fn endless(server: &Server) -> Result<(String, (i32, i32), Running)> {
    let mut client = server.admin()?;
    let id = one(&mut client, "SELECT current_session()")?.context("no session")?;
    let process = client.process();
    let ended = thread::spawn(move || {
        let outcome = client.run(crate::limits::ENDLESS, Protocol::Simple)?;
        Ok(outcome.code().map(str::to_owned))
    });
    Ok((id, process, ended))
}

fn statements_are_stopped() -> Result<()> {
    let etcd = Etcd::start()?;
    let servers = three_that_know_each_other(&etcd)?;
    let mut admin = servers[0].admin()?;
    for way in 0..3 {
        let (id, (process_id, key), ended) = endless(&servers[1])?;
        let state = format!(
            "SELECT count(*)::varchar FROM sessions WHERE session_id = '{id}' AND current_statement IS NOT NULL"
        );
        wait_for(&mut admin, &state, "1")?;
        match way {
            0 => drop(admin.query(&format!("SELECT INTERRUPT_STATEMENT('{id}', 1)"))?),
            1 => drop(admin.query(&format!("SELECT pg_cancel_backend({process_id})"))?),
            // A request to cancel that comes to another member, as through a balancer.
            _ => {
                let mut stream = call([127, 0, 0, 1].into(), servers[2].port())?;
                let mut request = vec![0, 0, 0, 16, 4, 210, 22, 46];
                request.extend(process_id.to_be_bytes());
                request.extend(key.to_be_bytes());
                stream.write_all(&request)?;
                let _end = stream.read(&mut [0])?;
            }
        }
        let Ok(code) = ended.join() else { bail!("the client panicked") };
        ensure!(code?.as_deref() == Some("57014"), "{way}");
    }
    servers.into_iter().try_for_each(Server::finish)
}

fn a_silent_member_is_named() -> Result<()> {
    let etcd = Etcd::start()?;
    let [north, east, south] = three(&etcd, |options| options.argument("--member-lease-s").argument(LONG_LEASE))?;
    let mut admin = north.admin()?;
    wait_for_all(&mut admin)?;
    east.freeze()?;
    // It is a member as long as its lease lasts, and asked.
    let outcome = admin.run("SELECT count(*) FROM sessions", Protocol::Simple)?;
    let expected = "these members did not answer, and their sessions are missing: \"east\"";
    ensure!(outcome.notices.iter().any(|notice| notice.message == expected), "{outcome:?}");
    ensure!(!outcome.rows()?.is_empty());
    let outcome = admin.run("SELECT CLOSE_SESSION('nowhere-1:0x1')", Protocol::Simple)?.error.context("closed")?;
    let expected = "It is not known which sessions these have: \"east\".";
    ensure!(outcome.detail.as_deref() == Some(expected), "{outcome:?}");
    east.thaw()?;
    wait_for(&mut admin, "SELECT count(*)::varchar FROM sessions WHERE node_name = 'east'", "0")?;
    [north, east, south].into_iter().try_for_each(Server::finish)
}

fn a_draining_member_finishes() -> Result<()> {
    let etcd = Etcd::start()?;
    let servers = three_that_know_each_other(&etcd)?;
    let mut admin = servers[0].admin()?;
    balance(&mut admin, &servers.iter().collect::<Vec<_>>())?;
    admin.query("CREATE USER mira IDENTIFIED BY 'pw-mira'")?;
    let mut east_admin = servers[1].admin()?;
    wait_for(&mut east_admin, "SELECT user_name FROM users WHERE user_name = 'mira'", "mira")?;
    let mut old = servers[1].client("mira", "pw-mira")?;
    admin.query("ALTER NODE east DRAIN")?;
    let draining = "SELECT node_name FROM draining_status WHERE is_draining";
    wait_for(&mut east_admin, draining, "east")?;
    for _ in 0..6 {
        ensure!(told([127, 0, 0, 1].into(), servers[0].port())? != Some(servers[1].port()), "sent to who drains");
    }
    let refused = servers[1].client("mira", "pw-mira").err().context("let in")?;
    let Refused(report) = refused.downcast_ref::<Refused>().context("no refusal")?;
    ensure!(
        report.code == "57P03" && report.message == "node \"east\" is draining: it takes no new connections",
        "{report:?}"
    );
    // What is there goes on, and the superuser gets in.
    old.query("SELECT 1")?;
    servers[1].admin()?.close()?;
    admin.query("ALTER NODE east CANCEL DRAIN")?;
    wait_for(&mut east_admin, "SELECT count(*)::varchar FROM draining_status WHERE is_draining", "0")?;
    servers[1].client("mira", "pw-mira")?.close()?;
    // Whoever was drained and has ended comes back to serve.
    admin.query("ALTER NODE east DRAIN")?;
    wait_for(&mut east_admin, draining, "east")?;
    let [north, mut east, south] = servers;
    drop((old, east_admin));
    ensure!(east.terminate()? == 0);
    east.restart()?;
    wait_for(&mut admin, "SELECT count(*)::varchar FROM draining_status WHERE is_draining", "0")?;
    east.client("mira", "pw-mira")?.close()?;
    [north, east, south].into_iter().try_for_each(Server::finish)
}

fn how_long_etcd_takes() -> Result<()> {
    let etcd = Etcd::start()?;
    let server = options(&etcd, "north").argument("--http").argument("127.0.0.1:0").start()?;
    let mut admin = server.admin()?;
    let port = answers_at(&server)?;
    let count = || -> Result<u64> {
        let (_, body) = page(port, "/metrics")?;
        let line =
            body.lines().find_map(|line| line.strip_prefix("switchyard_watch_seconds_count ").map(str::to_owned));
        Ok(line.context("not measured")?.parse()?)
    };
    let before = count()?;
    for number in 0..3 {
        admin.query(&format!("CREATE SUBCLUSTER measured_{number}"))?;
    }
    until("etcd does not tell of commits", || Ok(count()? == before + 3))?;
    server.finish()
}

fn a_drain_has_its_time() -> Result<()> {
    let etcd = Etcd::start()?;
    let servers = three_that_know_each_other(&etcd)?;
    let mut admin = servers[0].admin()?;
    admin.query("CREATE USER mira IDENTIFIED BY 'pw-mira'")?;
    wait_for(&mut servers[1].admin()?, "SELECT user_name FROM users WHERE user_name = 'mira'", "mira")?;
    let mut old = servers[1].client("mira", "pw-mira")?;
    let of_east = |what: &str| format!("SELECT {what} FROM draining_status WHERE node_name = 'east'");
    wait_for(&mut admin, &of_east("num_client_sessions::varchar"), "1")?;
    // Without THEN CLOSE the time is only told.
    admin.query("ALTER NODE east DRAIN WITHIN '300 ms'")?;
    wait_for(&mut admin, &of_east("drain_state || ' ' || num_sessions_left::varchar"), "overdue 1")?;
    servers[1].wait_for_log("the time to drain is over, and sessions go on")?;
    old.query("SELECT 1")?;
    // Another time begins anew.
    admin.query("ALTER NODE east DRAIN WITHIN '1 hour' THEN CLOSE")?;
    let all =
        "drain_state || ' ' || num_sessions_at_start::varchar || ' ' || drain_within || ' ' || then_close::varchar";
    wait_for(&mut admin, &of_east(all), "draining 1 01:00 true")?;
    let mut later = servers[1].admin()?;
    admin.query("ALTER NODE east DRAIN WITHIN '200 ms' THEN CLOSE")?;
    servers[1].wait_for_log("the time to drain is over: closing the sessions left")?;
    let told = loop {
        match old.run("SELECT 1", Protocol::Simple) {
            Ok(outcome) => match outcome.error {
                Some(error) => break error.code,
                None => continue,
            },
            Err(_) => break "57P01".to_owned(),
        }
    };
    ensure!(told == "57P01", "{told}");
    // Whoever came before this drain began is closed too; superusers may come back.
    until("a superuser's session of before goes on", || Ok(later.query("SELECT 1").is_err()))?;
    wait_for(&mut admin, &of_east("drain_state"), "drained")?;
    servers[1].admin()?.query("SELECT 1")?;
    wait_for(&mut admin, &of_east("drain_state"), "drained")?;
    admin.query("ALTER NODE east CANCEL DRAIN")?;
    wait_for(&mut admin, &of_east("coalesce(drain_state, 'none')"), "none")?;
    servers.into_iter().try_for_each(Server::finish)
}

/// Logs a user in at all members at once; those who got in, and how many were refused for the limit.
fn log_in_everywhere(servers: &[Server], user: &str, times: usize) -> Result<(Vec<Client>, usize)> {
    let start = Arc::new(std::sync::Barrier::new(servers.len() * times));
    let logins: Vec<_> = servers
        .iter()
        .flat_map(|server| std::iter::repeat_n(server.port(), times))
        .map(|port| {
            let (start, login) = (Arc::clone(&start), Login::new(port, user, &format!("pw-{user}")));
            thread::spawn(move || {
                start.wait();
                Client::connect(&login)
            })
        })
        .collect();
    let (mut clients, mut refused) = (Vec::new(), 0);
    for login in logins {
        let Ok(login) = login.join() else { bail!("a login panicked") };
        match login {
            Ok(client) => clients.push(client),
            Err(error) => {
                let Refused(report) = error.downcast_ref::<Refused>().with_context(|| format!("{error:#}"))?;
                ensure!(report.code == "53300", "{report:?}");
                ensure!(report.detail.as_deref().is_some_and(|detail| detail.contains("MAXCONNECTIONS")), "{report:?}");
                refused += 1;
            }
        }
    }
    Ok((clients, refused))
}

fn is_refused(server: &Server, user: &str) -> Result<bool> {
    match server.client(user, &format!("pw-{user}")) {
        Ok(client) => client.close().map(|()| false),
        Err(error) => Ok(error.downcast_ref::<Refused>().is_some_and(|Refused(report)| report.code == "53300")),
    }
}

fn a_limit_on_the_database() -> Result<()> {
    const MOST: usize = 4;
    let etcd = Etcd::start()?;
    let mut servers = three_that_know_each_other(&etcd)?;
    let mut admin = servers[0].admin()?;
    for round in 0..3 {
        admin.query(&format!(
            "CREATE USER mira{round} IDENTIFIED BY 'pw-mira{round}' MAXCONNECTIONS {MOST} ON DATABASE"
        ))?;
    }
    admin.query("CREATE USER otto IDENTIFIED BY 'pw-otto'")?;
    for server in &servers {
        wait_for(&mut server.admin()?, "SELECT user_name FROM users WHERE user_name = 'otto'", "otto")?;
    }
    // Exactly as many as may, whoever comes at the same time and wherever.
    for round in 0..3 {
        let user = format!("mira{round}");
        let (mut clients, refused) = log_in_everywhere(&servers, &user, MOST)?;
        ensure!((clients.len(), refused) == (MOST, 2 * MOST), "round {round}: {} of {MOST}", clients.len());
        for server in &servers {
            ensure!(is_refused(server, &user)?, "one more is let in");
        }
        // One goes, and one may come.
        clients.pop().context("nobody")?.close()?;
        until("nobody may come for the one who went", || Ok(!is_refused(servers.get(round).context("none")?, &user)?))?;
        drop(clients);
        until("the places are not given back", || Ok(log_in_everywhere(&servers, &user, 2)?.0.len() == MOST))?;
    }
    // Sessions of before the limit count.
    let _otto = [servers[1].client("otto", "pw-otto")?, servers[2].client("otto", "pw-otto")?];
    admin.query("ALTER USER otto MAXCONNECTIONS 2 ON DATABASE")?;
    for server in &servers {
        until("sessions of before do not count", || is_refused(server, "otto"))?;
    }
    // Those of a member that dies are free when its lease ends.
    servers[2].kill()?;
    until("the dead keep their places", || Ok(!is_refused(&servers[0], "otto")?))?;
    servers[2].restart()?;
    servers.into_iter().try_for_each(Server::finish)
}

fn a_limit_without_etcd() -> Result<()> {
    let mut etcd = Etcd::start()?;
    let servers = three(&etcd, |options| options.argument("--etcd-time-ms-max").argument("500"))?;
    for server in &servers {
        wait_for_all(&mut server.admin()?)?;
    }
    servers[0].admin()?.query("CREATE USER mira IDENTIFIED BY 'pw-mira' MAXCONNECTIONS 2 ON DATABASE")?;
    for server in &servers {
        wait_for(&mut server.admin()?, "SELECT user_name FROM users WHERE user_name = 'mira'", "mira")?;
    }
    etcd.kill()?;
    // The members are asked, and logins go on.
    let first = servers[0].client("mira", "pw-mira")?;
    let _second = servers[1].client("mira", "pw-mira")?;
    ensure!(is_refused(&servers[2], "mira")?, "one more is let in");
    // Who got in meanwhile is counted when etcd is there again.
    etcd.run()?;
    until("what was taken meanwhile does not count", || is_refused(&servers[2], "mira"))?;
    first.close()?;
    until("what is given back counts", || Ok(!is_refused(&servers[2], "mira")?))?;
    servers.into_iter().try_for_each(Server::finish)
}

fn a_subcluster_is_stopped() -> Result<()> {
    let etcd = Etcd::start()?;
    options(&etcd, "north").start()?.admin()?.query("CREATE SUBCLUSTER outer_two")?;
    let start = |name: &str, inner: bool| {
        let options = options(&etcd, name);
        if inner { options.start() } else { options.argument("--subcluster").argument("outer_two").start() }
    };
    let (north, mut east, mut south) = (start("north", true)?, start("east", false)?, start("south", false)?);
    let mut admin = north.admin()?;
    wait_for_all(&mut admin)?;
    let client = east.admin()?;
    let stopping = thread::spawn(move || {
        let told = admin.run("SELECT SHUTDOWN_WITH_DRAIN('outer_two', 60)", Protocol::Simple);
        (admin, told)
    });
    let mut watching = north.admin()?;
    wait_for(&mut watching, "SELECT count(*)::varchar FROM draining_status WHERE is_draining", "2")?;
    wait_for_all(&mut watching)?;
    client.close()?;
    let Ok((mut admin, told)) = stopping.join() else { bail!("the client panicked") };
    let notices: Vec<String> = told?.notices.into_iter().map(|notice| notice.message).collect();
    let expected = ["Draining has started on subcluster (outer_two)", "Begin shutdown of subcluster (outer_two)"];
    ensure!(notices == expected, "{notices:?}");
    for server in [&mut east, &mut south] {
        ensure!(server.wait_for_end()? == 0);
    }
    for name in ["east", "south"] {
        wait_for_state(&mut admin, name, "DOWN")?;
        ensure!(last_reason(&mut admin, name)? == "it left", "{}", last_reason(&mut admin, name)?);
    }
    // With a session, and at once.
    east.restart()?;
    wait_for_state(&mut admin, "east", "UP")?;
    let mut client = east.admin()?;
    wait_for(&mut admin, "SELECT count(*)::varchar FROM sessions WHERE node_name = 'east'", "1")?;
    let told = admin.run("SELECT SHUTDOWN_SUBCLUSTER('outer_two')", Protocol::Simple)?;
    let notices: Vec<&str> = told.notices.iter().map(|notice| notice.message.as_str()).collect();
    let expected = ["1 sessions on subcluster (outer_two) are closed", "Begin shutdown of subcluster (outer_two)"];
    ensure!(notices == expected, "{notices:?}");
    ensure!(east.wait_for_end()? == 0);
    ensure!(client.query("SELECT 1").is_err());
    north.finish()
}

fn shutdown_ends_all_members() -> Result<()> {
    let etcd = Etcd::start()?;
    let mut servers = three_that_know_each_other(&etcd)?;
    let mut other = servers[2].admin()?;
    let mut admin = servers[0].admin()?;
    wait_for(&mut admin, "SELECT count(*)::varchar FROM sessions", "2")?;
    ensure!(one(&mut admin, "SELECT SHUTDOWN()")?.as_deref() == Some("Shutdown: aborting shutdown"));
    other.query("SELECT 1")?;
    other.close()?;
    wait_for(&mut admin, "SELECT count(*)::varchar FROM sessions", "1")?;
    ensure!(one(&mut admin, "SELECT SHUTDOWN()")?.as_deref() == Some("Shutdown: sync complete"));
    servers.iter_mut().try_for_each(|server| {
        ensure!(server.wait_for_end()? == 0);
        server.check_log()
    })
}

fn a_member_is_replaced() -> Result<()> {
    let etcd = Etcd::start()?;
    let shared = |name| crate::options().member(&etcd, name).argument("--takeover-ms-max").argument("60000");
    let mut old = shared("north").start()?;
    let east = shared("east").start()?;
    let mut watching = east.admin()?;
    let port = old.port();
    let running = Arc::new(AtomicBool::new(true));
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let running = Arc::clone(&running);
            thread::spawn(move || -> Result<usize> {
                let mut count = 0;
                while running.load(Ordering::Relaxed) {
                    let mut client = Client::connect(&Login::new(port, ADMIN, ADMIN_PASSWORD))?;
                    client.query("SELECT 1")?;
                    client.close()?;
                    count += 1;
                }
                Ok(count)
            })
        })
        .collect();
    // The new one listens, and waits for the name.
    let folder = tempfile::tempdir()?;
    let new = shared("north").port(port).below(folder.path());
    let starting = thread::spawn(move || new.start());
    wait_for_log_below(folder.path(), "waiting for the process that this one replaces")?;
    ensure!(old.terminate()? == 0);
    let Ok(new) = starting.join() else { bail!("a start panicked") };
    let new = new?;
    new.admin()?.close()?;
    // Nobody took the node for dead for longer than that.
    wait_for_state(&mut watching, "north", "UP")?;
    running.store(false, Ordering::Relaxed);
    for client in clients {
        let Ok(count) = client.join() else { bail!("a client panicked") };
        ensure!(count.context("a connection was refused")? > 0);
    }
    ensure!(new.port() == port);
    old.check_log()?;
    watching.close()?;
    east.finish()?;
    new.finish()
}

/// Waits until the log of the server below this folder says something.
fn wait_for_log_below(folder: &Path, text: &str) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        for server in std::fs::read_dir(folder)? {
            let log = std::fs::read_to_string(server?.path().join("server.log")).unwrap_or_default();
            if log.contains(text) {
                return Ok(());
            }
        }
        ensure!(Instant::now() < deadline, "the log does not say {text:?}");
    }
}

/// Members are stopped and started again, one after the other, while drivers that know all of them connect.
fn drivers_connect_through_restarts() -> Result<()> {
    let etcd = Etcd::start()?;
    let mut servers = on_fixed_ports(&etcd.url(), |options| options)?;
    let mut admin = nth(&mut servers, 0)?.admin()?;
    wait_for_all(&mut admin)?;
    balance(&mut admin, &servers.iter().collect::<Vec<_>>())?;
    admin.close()?;
    let ports: Vec<String> = servers.iter().map(|server| server.port().to_string()).collect();
    let mut drivers = Command::new(interpreter())
        .arg(beside("rolling_test.py"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("SWITCHYARD_TEST_PORTS", ports.join(","))
        .env("SWITCHYARD_TEST_USER", ADMIN)
        .env("SWITCHYARD_TEST_PASSWORD", ADMIN_PASSWORD)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    for (number, name) in NAMES.iter().enumerate() {
        let other = (number + 1) % NAMES.len();
        ensure!(nth(&mut servers, number)?.terminate()? == 0);
        nth(&mut servers, other)?.admin()?.query(&format!("CREATE SUBCLUSTER while_{name}_was_away"))?;
        nth(&mut servers, number)?.restart()?;
        let mut watching = nth(&mut servers, other)?.admin()?;
        wait_for_state(&mut watching, name, "UP")?;
        watching.close()?;
        // It is connected to again before the next one goes.
        wait_for(
            &mut nth(&mut servers, number)?.admin()?,
            "SELECT (count(*) > 3)::varchar FROM user_sessions",
            "true",
        )?;
    }
    drop(drivers.stdin.take());
    let done = drivers.wait_with_output()?;
    let said = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    ensure!(done.status.success(), "{said}");
    for server in &servers {
        let kept =
            "SELECT count(DISTINCT subcluster_name)::varchar FROM subclusters WHERE subcluster_name LIKE 'while\\_%'";
        wait_for(&mut server.admin()?, kept, "3")?;
    }
    servers.into_iter().try_for_each(Server::finish)
}
