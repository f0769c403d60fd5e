//! Looking after PostgreSQL servers: when they fall and rise, what they are, how far behind, and that they notice nothing.

use anyhow::{Context, Result, ensure};
use libtest_mimic::Trial;
use switchyard_testkit::{Client, Postgres, Refused, Server, Store};

use crate::fleet::{last_reason, one, until, wait_for, wait_for_state};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        crate::trial("servers_fall_and_rise", servers_fall_and_rise),
        crate::trial("standbys_are_known_and_left_out_when_they_are_behind", standbys),
    ]
}

/// A member that looks at its nodes' servers all the time.
fn looking(nodes: &[(&str, &Postgres, bool)]) -> Result<(Server, Client)> {
    let server = crate::options().store(Store::Memory).start()?;
    let mut admin = server.admin()?;
    for (name, postgres, with_login) in nodes {
        let port = postgres.port();
        admin.query(&format!("CREATE NODE {name} WITH '127.0.0.1' PORT {port}"))?;
        if *with_login {
            let url = format!("postgresql://postgres@127.0.0.1:{port}/postgres");
            admin.query(&format!("ALTER NODE {name} SET UPSTREAM TO '{url}'"))?;
        }
    }
    admin.query("ALTER DATABASE DEFAULT SET upstream_probe_interval_ms = 50")?;
    Ok((server, admin))
}

fn wait_for_reason(admin: &mut Client, node: &str, reason: &str) -> Result<()> {
    until(&format!("{node} is not said to be so: {reason}"), || {
        Ok(last_reason(admin, node).is_ok_and(|told| told.contains(reason)))
    })
}

fn servers_fall_and_rise() -> Result<()> {
    let (asked, knocked) = (Postgres::start()?, Postgres::start()?);
    let (server, mut admin) = looking(&[("asked", &asked, true), ("knocked", &knocked, false)])?;
    wait_for_state(&mut admin, "asked", "UP")?;
    wait_for_state(&mut admin, "knocked", "UP")?;
    ensure!(last_reason(&mut admin, "asked")? == "its PostgreSQL server answers, as a primary");
    ensure!(last_reason(&mut admin, "knocked")? == "its PostgreSQL server answers");
    // One session for all looks, and nothing in the log.
    let mut watching = asked.client()?;
    let sessions = "SELECT count(*)::varchar || ' ' || (count(DISTINCT pid))::varchar FROM pg_stat_activity \
                    WHERE application_name = 'switchyard'";
    let began = one(
        &mut watching,
        "SELECT max(query_start)::varchar FROM pg_stat_activity WHERE application_name = 'switchyard'",
    )?;
    until("it is looked at once only", || {
        let now = one(
            &mut watching,
            "SELECT max(query_start)::varchar FROM pg_stat_activity WHERE application_name = 'switchyard'",
        )?;
        Ok(now > began)
    })?;
    ensure!(one(&mut watching, sessions)?.as_deref() == Some("1 1"));
    for postgres in [&asked, &knocked] {
        let log = postgres.log()?;
        ensure!(!["FATAL", "ERROR", "packet", "reset"].iter().any(|word| log.contains(word)), "{log}");
    }
    // Whoever is gone is down at once, and up again after its count.
    admin.query("ALTER NODE asked SET upstream_probe_rise = 5")?;
    for (name, postgres) in [("asked", &asked), ("knocked", &knocked)] {
        postgres.kill()?;
        wait_for_state(&mut admin, name, "DOWN")?;
        let reason = last_reason(&mut admin, name)?;
        ensure!(reason.starts_with("its PostgreSQL server does not answer: "), "{reason}");
        postgres.run()?;
        wait_for_state(&mut admin, name, "UP")?;
    }
    // Without any, sessions are refused and told why.
    for (name, postgres) in [("asked", &asked), ("knocked", &knocked)] {
        postgres.kill()?;
        wait_for_state(&mut admin, name, "DOWN")?;
    }
    let refused = Client::connect(&server.login().database("postgres")).err().context("served by nobody")?;
    let Refused(report) = refused.downcast_ref::<Refused>().context("no refusal")?;
    ensure!(report.code == "57P03" && report.message == "no node with a PostgreSQL server is up", "{report:?}");
    // What cannot be a server is told to be none.
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    admin.query("ALTER DATABASE DEFAULT SET upstream_probe_timeout_ms = 100")?;
    admin.query(&format!("CREATE NODE mute WITH '127.0.0.1' PORT {}", listener.local_addr()?.port()))?;
    wait_for_reason(&mut admin, "mute", "no answer within 100 ms")?;
    wait_for_state(&mut admin, "mute", "DOWN")?;
    server.finish()
}

fn standbys() -> Result<()> {
    let primary = Postgres::start()?;
    let standby = primary.standby()?;
    let (server, mut admin) = looking(&[("first", &primary, true), ("second", &standby, true)])?;
    wait_for_reason(&mut admin, "first", "its PostgreSQL server answers, as a primary")?;
    wait_for_reason(&mut admin, "second", "its PostgreSQL server answers, as a standby")?;
    admin.query("ALTER NODE second SET replication_lag_ms_max = 300")?;
    let (mut writing, mut reading) = (primary.client()?, standby.client()?);
    writing.query("CREATE TABLE kept (n int)")?;
    wait_for(&mut reading, "SELECT count(*)::varchar FROM pg_class WHERE relname = 'kept'", "1")?;
    reading.query("SELECT pg_wal_replay_pause()")?;
    writing.query("INSERT INTO kept VALUES (1)")?;
    wait_for_reason(&mut admin, "second", "its PostgreSQL server is more than 300 ms behind its primary")?;
    wait_for_state(&mut admin, "second", "DOWN")?;
    reading.query("SELECT pg_wal_replay_resume()")?;
    wait_for_state(&mut admin, "second", "UP")?;
    // What is a primary is known as soon as it is.
    primary.kill()?;
    wait_for_state(&mut admin, "first", "DOWN")?;
    reading.query("SELECT pg_promote()")?;
    wait_for_reason(&mut admin, "second", "its PostgreSQL server answers, as a primary")?;
    server.finish()
}
