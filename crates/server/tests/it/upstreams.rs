//! Sessions that run on real PostgreSQL servers: where, as whom, and what the client sees of it.

#[path = "upstreams/clients.rs"]
mod clients;
#[path = "upstreams/through.rs"]
mod through;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, ensure};
use libtest_mimic::Trial;
use switchyard_testkit::{Client, Login, Postgres, Protocol, Refused, Send, Server, Store};

pub(crate) fn trials() -> anyhow::Result<Vec<Trial>> {
    let mut trials = vec![
        crate::trial("upstream_gunther_is_led_by_priority_role_and_statement", gunther),
        crate::trial("upstream_workload_is_named_in_three_ways", named_at_connect),
        crate::trial("upstream_logins", logins),
        crate::trial("upstream_statements_of_both_sides_in_one_string", mixed),
        crate::trial("upstream_statements_of_ours_by_the_extended_protocol", extended),
        crate::trial("upstream_cancel", cancel),
        crate::trial("upstream_session_takes_its_state_along", moving),
        crate::trial("upstream_session_that_cannot_move_stays", pinned),
        crate::trial("upstream_that_dies", dying),
        crate::trial("upstream_connection_that_ends", cut_off),
        crate::trial("upstream_session_is_new_to_the_next_client", kept_as_new),
        crate::trial("upstream_answers_come_in_order", in_order),
        crate::trial("upstream_that_is_full_for_one_is_there_for_others", full_for_one),
        crate::trial("upstream_none_is_up", none_up),
    ];
    trials.extend(through::trials()?);
    trials.extend(clients::trials());
    Ok(trials)
}

/// Three PostgreSQL servers that the tests of this process share.
struct Fleet([Postgres; 3]);

static FLEET: Mutex<Option<Arc<Fleet>>> = Mutex::new(None);

/// Ends them.
pub(crate) fn end() {
    FLEET.lock().unwrap_or_else(PoisonError::into_inner).take();
}

fn fleet() -> Result<Arc<Fleet>> {
    let mut shared = FLEET.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(fleet) = &*shared {
        return Ok(Arc::clone(fleet));
    }
    let fleet = Arc::new(Fleet([Postgres::start()?, Postgres::start()?, Postgres::start()?]));
    for server in &fleet.0 {
        prepare(server)?;
    }
    *shared = Some(Arc::clone(&fleet));
    Ok(fleet)
}

/// The database and the roles of the tests.
fn prepare(server: &Postgres) -> Result<()> {
    let mut admin = server.client()?;
    for statement in [
        "CREATE DATABASE shop",
        "CREATE ROLE mira LOGIN",
        "ALTER DATABASE shop OWNER TO mira",
        "CREATE ROLE \"MIRA\" LOGIN SUPERUSER",
        "CREATE ROLE gunther LOGIN",
        "CREATE ROLE narrow LOGIN CONNECTION LIMIT 1",
        "CREATE ROLE analytics_role",
        "GRANT analytics_role TO gunther",
        "SET password_encryption TO 'scram-sha-256'",
        "CREATE ROLE sofia LOGIN PASSWORD 'of her own'",
        "CREATE ROLE app LOGIN PASSWORD 'of the app'",
        "SET password_encryption TO 'md5'",
        "CREATE ROLE old LOGIN PASSWORD 'of the old'",
    ] {
        admin.query(statement)?;
    }
    server.authenticate(
        "host all sofia 127.0.0.1/32 scram-sha-256\nhost all app 127.0.0.1/32 scram-sha-256\nhost all old 127.0.0.1/32 md5",
    )
}

const PASSWORD: &str = "a password of clients";

/// A member that leads to the fleet: a subcluster with a node for each server, and users.
fn member(fleet: &Fleet, own: Option<usize>) -> Result<Server> {
    let mut options = crate::options().store(Store::Memory);
    if let Some(server) = own.and_then(|own| fleet.0.get(own)) {
        options = options.argument("--upstream").argument(server.url());
    }
    let server = options.start()?;
    let mut admin = server.admin()?;
    for (name, postgres) in ["reporting", "analytics", "qa"].iter().zip(&fleet.0) {
        admin.query(&format!("CREATE SUBCLUSTER sc_{name}"))?;
        let port = postgres.port();
        admin.query(&format!("CREATE NODE pg_{name} WITH '127.0.0.1' PORT {port} SUBCLUSTER sc_{name}"))?;
        admin.query(&format!("CREATE ROUTING RULE ROUTE WORKLOAD {name} TO SUBCLUSTER sc_{name}"))?;
    }
    for user in ["mira", "gunther", "sofia", "old", "narrow"] {
        admin.query(&format!("CREATE USER {user} IDENTIFIED BY '{PASSWORD}'"))?;
    }
    Ok(server)
}

fn login(server: &Server, user: &str) -> Login {
    Login::new(server.port(), user, PASSWORD).database("shop")
}

fn one(client: &mut Client, sql: &str) -> Result<String> {
    let rows = client.query(sql)?;
    let value = rows.first().and_then(|row| row.last()).context("there is no row")?;
    Ok(value.clone().unwrap_or_default())
}

/// The port of the server that a statement runs on.
fn port(client: &mut Client) -> Result<u16> {
    Ok(one(client, "SELECT inet_server_port()")?.parse()?)
}

fn ports(fleet: &Fleet) -> [u16; 3] {
    fleet.0.each_ref().map(Postgres::port)
}

/// The seed's example of priorities.
fn gunther() -> Result<()> {
    let fleet = fleet()?;
    let server = member(&fleet, None)?;
    let [reporting, analytics, qa] = ports(&fleet);
    let mut admin = server.admin()?;
    for statement in [
        "CREATE ROLE analytics_role",
        "CREATE ROLE qa_role",
        "GRANT analytics_role, qa_role TO gunther",
        "GRANT USAGE ON WORKLOAD reporting TO gunther",
        "GRANT USAGE ON WORKLOAD analytics TO analytics_role",
        "GRANT USAGE ON WORKLOAD qa TO qa_role",
        "ALTER ROUTING RULE FOR WORKLOAD analytics SET PRIORITY TO 1",
        "ALTER ROUTING RULE FOR WORKLOAD qa SET PRIORITY TO 2",
    ] {
        admin.query(statement)?;
    }
    let mut client = Client::connect(&login(&server, "gunther"))?;
    ensure!(port(&mut client)? == reporting);
    ensure!(one(&mut client, "SHOW WORKLOAD")? == "reporting");
    client.query("SET ROLE analytics_role")?;
    ensure!(port(&mut client)? == analytics);
    // The role is known on the server too.
    ensure!(one(&mut client, "SELECT current_user")? == "analytics_role");
    client.query("SET ROLE qa_role")?;
    ensure!(port(&mut client)? == qa);
    ensure!(one(&mut client, "SELECT current_user")? == "analytics_role");
    admin.query("ALTER ROUTING RULE FOR WORKLOAD reporting SET PRIORITY TO 3")?;
    ensure!(port(&mut client)? == reporting);
    client.query("SET SESSION WORKLOAD analytics")?;
    ensure!(port(&mut client)? == analytics);
    ensure!(one(&mut client, "SHOW AVAILABLE WORKLOADS")? == "reporting, qa, analytics");
    // Within a transaction nothing moves.
    client.query("BEGIN")?;
    client.query("SET SESSION WORKLOAD qa")?;
    ensure!(port(&mut client)? == analytics);
    client.query("COMMIT")?;
    ensure!(port(&mut client)? == qa);
    client.query("SET ROLE NONE")?;
    ensure!(one(&mut client, "SELECT current_user")? == "gunther");
    admin.query("REVOKE USAGE ON WORKLOAD reporting FROM gunther")?;
    // The sessions table shows what applies.
    client.query("SET SESSION WORKLOAD DEFAULT")?;
    let refused = client.run("SELECT 1", Protocol::Simple)?;
    ensure!(refused.error.is_none(), "{refused:?}");
    ensure!(one(&mut client, "SHOW WORKLOAD")?.is_empty());
    client.close()?;
    server.finish()
}

fn named_at_connect() -> Result<()> {
    let fleet = fleet()?;
    let server = member(&fleet, Some(0))?;
    let [own, analytics, _] = ports(&fleet);
    server.admin()?.query("GRANT USAGE ON WORKLOAD analytics TO mira")?;
    server.admin()?.query("ALTER DATABASE DEFAULT SET workload_usage_required = on")?;
    for named in [
        login(&server, "mira").parameter("workload", "analytics"),
        login(&server, "mira").parameter("options", "-c workload=analytics -c geqo=off"),
        login(&server, "mira").database("shop@analytics"),
    ] {
        let mut client = Client::connect(&named)?;
        ensure!(port(&mut client)? == analytics, "{named:?}");
        ensure!(one(&mut client, "SELECT current_database()")? == "shop");
        ensure!(one(&mut client, "SHOW WORKLOAD")? == "analytics");
        client.close()?;
    }
    let all = login(&server, "mira")
        .parameter("options", "-c workload=analytics -c geqo=off -c search_path=a\\\\b,c")
        .parameter("extra_float_digits", "2");
    let mut client = Client::connect(&all)?;
    for (setting, value) in [("geqo", "off"), ("extra_float_digits", "2"), ("search_path", "a\\b,c")] {
        ensure!(one(&mut client, &format!("SHOW {setting}"))? == value, "{setting}");
    }
    ensure!(client.parameters.contains_key("application_name"));
    // Neither unknown nor ungranted workloads keep anybody out: the member's own server it is then.
    for workload in ["unknown", "qa"] {
        let mut client = Client::connect(&login(&server, "mira").parameter("workload", workload))?;
        ensure!(port(&mut client)? == own || port(&mut client)? == analytics);
        ensure!(client.greetings.len() == 1, "{:?}", client.greetings);
    }
    let mut plain = Client::connect(&login(&server, "gunther"))?;
    ensure!(port(&mut plain)? == own);
    let sessions = server.admin()?.query("SELECT user_name FROM sessions ORDER BY 1")?;
    let users: BTreeSet<String> = sessions.into_iter().flatten().flatten().collect();
    ensure!(users.contains("mira") && users.contains("gunther"), "{users:?}");
    server.finish()
}

fn refusal(login: &Login) -> Result<switchyard_testkit::Report> {
    match Client::connect(login) {
        Ok(_) => anyhow::bail!("{login:?} was let in"),
        Err(error) => Ok(error.downcast::<Refused>()?.0),
    }
}

fn logins() -> Result<()> {
    let fleet = fleet()?;
    let server = member(&fleet, Some(0))?;
    let mut admin = server.admin()?;
    let first = fleet.0.first().context("there is no server")?;
    // The server keeps another verifier of the password than the cluster.
    let refused = refusal(&login(&server, "sofia"))?;
    ensure!(refused.code == "28000" && refused.message.contains("another verifier"), "{refused:?}");
    ensure!(refused.hint.as_deref().unwrap_or_default().contains("CREATE USER MAPPING"), "{refused:?}");
    // With the same one it takes the proof that the client has given.
    let verifier = one(&mut first.client()?, "SELECT rolpassword FROM pg_authid WHERE rolname = 'sofia'")?;
    admin.query(&format!("ALTER USER sofia IDENTIFIED BY '{verifier}'"))?;
    let of_sofia = Login::new(server.port(), "sofia", "of her own").database("shop");
    ensure!(one(&mut Client::connect(&of_sofia)?, "SELECT current_user")? == "sofia");
    // A mapping says who somebody is there, by SCRAM and by MD5.
    for (user, password) in [("app", "of the app"), ("old", "of the old")] {
        admin.query(&format!(
            "CREATE USER MAPPING FOR mira SERVER node01 OPTIONS (user '{user}', password '{password}')"
        ))?;
        ensure!(one(&mut Client::connect(&login(&server, "mira"))?, "SELECT current_user")? == user);
        admin.query("DROP USER MAPPING FOR mira SERVER node01")?;
    }
    admin.query("CREATE USER MAPPING FOR mira SERVER node01 OPTIONS (user 'app', password 'wrong')")?;
    let refused = refusal(&login(&server, "mira"))?;
    ensure!(refused.code == "28P01" && refused.severity == "FATAL", "{refused:?}");
    ensure!(!format!("{refused:?}").contains("wrong"), "{refused:?}");
    admin.query("DROP USER MAPPING FOR mira SERVER node01")?;
    // What is asked for by MD5 cannot be proved by the key of another kind.
    let refused = refusal(&login(&server, "old"))?;
    ensure!(refused.code == "28000" && refused.message.contains("by MD5"), "{refused:?}");
    let refused = refusal(&login(&server, "mira").database("nowhere"))?;
    ensure!(refused.code == "3D000" && refused.message == "database \"nowhere\" does not exist", "{refused:?}");
    ensure!(refused.hint.as_deref() == Some("The console is the database \"switchyard\"."), "{refused:?}");
    // Who is not let in here is let in nowhere.
    let refused = refusal(&Login::new(server.port(), "mira", "wrong").database("shop"))?;
    ensure!(refused.code == "28P01", "{refused:?}");
    server.finish()
}

fn mixed() -> Result<()> {
    let fleet = fleet()?;
    let server = member(&fleet, Some(0))?;
    let [own, analytics, _] = ports(&fleet);
    server.admin()?.query("GRANT USAGE ON WORKLOAD analytics TO mira")?;
    let mut client = Client::connect(&login(&server, "mira"))?;
    client.query("SET SESSION WORKLOAD NONE")?;
    let text = "SELECT inet_server_port(); SET SESSION WORKLOAD analytics; SELECT inet_server_port(); SHOW WORKLOAD; \
                SELECT node_name FROM v_catalog.nodes ORDER BY 1 LIMIT 1";
    let outcome = client.run(text, Protocol::Simple)?;
    ensure!(outcome.error.is_none(), "{outcome:?}");
    let answers: Vec<Option<String>> = outcome
        .answers
        .iter()
        .map(|answer| answer.rows.first().and_then(|row| row.last().cloned()).flatten())
        .collect();
    let wanted = [Some(own.to_string()), None, Some(analytics.to_string()), Some("analytics".to_owned())];
    ensure!(answers.get(..4) == Some(&wanted[..]), "{answers:?}");
    ensure!(answers.get(4).cloned().flatten().as_deref() == Some("node01"), "{answers:?}");
    // An error on either side ends the string.
    for (text, code, count) in [
        ("SHOW WORKLOAD; SELECT 1/0; SHOW WORKLOAD", "22012", 1),
        ("SELECT 1; SET SESSION WORKLOAD nowhere; SELECT 2", "42704", 1),
    ] {
        let outcome = client.run(text, Protocol::Simple)?;
        ensure!(outcome.code() == Some(code) && outcome.answers.len() == count, "{outcome:?}");
        ensure!(outcome.status == 'I', "{outcome:?}");
    }
    client.query("BEGIN")?;
    let outcome = client.run("SHOW WORKLOAD", Protocol::Simple)?;
    ensure!(outcome.status == 'T', "{outcome:?}");
    let _ = client.run("SELECT 1/0", Protocol::Simple)?;
    let outcome = client.run("SHOW WORKLOAD", Protocol::Simple)?;
    ensure!(outcome.code() == Some("25P02") && outcome.status == 'E', "{outcome:?}");
    client.query("ROLLBACK")?;
    server.finish()
}

fn extended() -> Result<()> {
    let fleet = fleet()?;
    let server = member(&fleet, Some(0))?;
    let mut client = Client::connect(&login(&server, "mira"))?;
    for protocol in [Protocol::Extended, Protocol::Binary] {
        let shown = client.run("SHOW WORKLOAD", protocol)?;
        ensure!(shown.error.is_none() && shown.status == 'I', "{shown:?}");
        let names = client.run("SELECT node_name FROM v_catalog.nodes ORDER BY 1", protocol)?.rows()?;
        ensure!(names.len() == 4, "{names:?}");
        let theirs = client.run("SELECT 41 + 1", protocol)?.rows()?;
        ensure!(theirs == [[Some("42".to_owned())]], "{theirs:?}");
        let refused = client.run("SET SESSION WORKLOAD nowhere", protocol)?;
        ensure!(refused.code() == Some("42704"), "{refused:?}");
        ensure!(client.run("SELECT 1", protocol)?.error.is_none());
    }
    // Both sides in one batch, answered in order.
    let shown = client.exchange(&[
        Send::Parse("", "SELECT 1"),
        Send::Bind("", "", &[]),
        Send::Execute("", 0),
        Send::Parse("ours", "SHOW WORKLOAD"),
        Send::Bind("p", "ours", &[]),
        Send::Execute("p", 0),
        Send::Parse("", "SELECT 2"),
        Send::Bind("", "", &[]),
        Send::Execute("", 0),
        Send::Sync,
    ])?;
    let kinds: Vec<&str> = shown.iter().map(|line| line.split([' ', ':', '(']).next().unwrap_or_default()).collect();
    ensure!(kinds.len() == 13, "{shown:?}");
    let shown = client.exchange(&[Send::Bind("", "ours", &[]), Send::Execute("", 0), Send::Sync])?;
    ensure!(shown.len() == 4, "{shown:?}");
    server.finish()
}

fn cancel() -> Result<()> {
    let fleet = fleet()?;
    let server = member(&fleet, Some(0))?;
    let mut client = Client::connect(&login(&server, "mira"))?;
    let (process_id, secret) = client.process();
    let (port, (tell, told)) = (server.port(), std::sync::mpsc::channel());
    let running = std::thread::spawn(move || -> Result<()> {
        let outcome = client.run("SELECT pg_sleep(60)", Protocol::Simple)?;
        ensure!(outcome.code() == Some("57014"), "{outcome:?}");
        tell.send(())?;
        ensure!(client.query("SELECT 1")?.len() == 1);
        Ok(())
    });
    // It hits only what runs: until then it is asked again.
    while told.recv_timeout(std::time::Duration::from_millis(50)).is_err() {
        ensure!(!running.is_finished(), "the statement ended by itself");
        let mut stream = switchyard_testkit::call(std::net::Ipv4Addr::LOCALHOST, port)?;
        let mut request = vec![0, 0, 0, 16, 4, 0xd2, 0x16, 0x2e];
        request.extend(process_id.to_be_bytes());
        request.extend(secret.to_be_bytes());
        std::io::Write::write_all(&mut stream, &request)?;
        std::io::Read::read_to_end(&mut stream, &mut Vec::new())?;
    }
    running.join().map_err(|_| anyhow::anyhow!("the client panicked"))??;
    server.finish()
}

fn moving() -> Result<()> {
    let fleet = fleet()?;
    let server = member(&fleet, Some(0))?;
    let [_, analytics, _] = ports(&fleet);
    server.admin()?.query("GRANT USAGE ON WORKLOAD analytics TO mira")?;
    let mut client = Client::connect(&login(&server, "mira"))?;
    client.query("SET SESSION WORKLOAD NONE")?;
    for statement in [
        "SET TimeZone TO 'Europe/Vienna'",
        "SET search_path TO \"a'b\", public",
        "SET my.own TO 'a\\b'",
        "SET statement_timeout TO '90s'",
        "PREPARE typed(int) AS SELECT $1 + 1",
    ] {
        client.query(statement)?;
    }
    client.exchange(&[Send::Parse("named", "SELECT $1::text || inet_server_port()"), Send::Sync])?;
    client.query("SET SESSION WORKLOAD analytics")?;
    ensure!(port(&mut client)? == analytics);
    for (setting, value) in [
        ("TimeZone", "Europe/Vienna"),
        ("search_path", "\"a'b\", public"),
        ("my.own", "a\\b"),
        ("statement_timeout", "90s"),
    ] {
        ensure!(one(&mut client, &format!("SHOW {setting}"))? == value, "{setting}");
    }
    ensure!(one(&mut client, "EXECUTE typed(41)")? == "42");
    let shown = client.exchange(&[Send::Bind("", "named", &[b"port "]), Send::Execute("", 0), Send::Sync])?;
    ensure!(shown.iter().any(|line| line.contains(&format!("port {analytics}"))), "{shown:?}");
    server.finish()
}

fn pinned() -> Result<()> {
    let fleet = fleet()?;
    let server = member(&fleet, Some(0))?;
    let [own, analytics, _] = ports(&fleet);
    server.admin()?.query("GRANT USAGE ON WORKLOAD analytics TO mira")?;
    for (pin, pinning, unpinning) in [
        ("a temporary table", "CREATE TEMPORARY TABLE t (a int)", "DROP TABLE t"),
        ("LISTEN", "LISTEN c", "UNLISTEN c"),
        ("an advisory lock", "SELECT pg_advisory_lock(4711)", "SELECT pg_advisory_unlock(4711)"),
        ("the prepared statement \"among\"", "SELECT 1; PREPARE among AS SELECT 1", "DEALLOCATE among"),
        ("a cursor WITH HOLD", "DECLARE h CURSOR WITH HOLD FOR SELECT 1", "CLOSE h"),
    ] {
        let mut client = Client::connect(&login(&server, "mira"))?;
        client.query("SET SESSION WORKLOAD NONE")?;
        client.query(pinning)?;
        client.query("SET SESSION WORKLOAD analytics")?;
        let outcome = client.run("SELECT inet_server_port()", Protocol::Simple)?;
        let told: Vec<&str> = outcome.notices.iter().map(|notice| notice.message.as_str()).collect();
        ensure!(told.len() == 1 && told.concat().contains(pin), "{told:?}");
        ensure!(outcome.rows()? == [[Some(own.to_string())]]);
        // Said once.
        ensure!(client.run(unpinning, Protocol::Simple)?.notices.is_empty());
        ensure!(port(&mut client)? == analytics, "{pin}");
        client.close()?;
    }
    server.finish()
}

/// Ends the connection of a session on its server, and waits until it has ended.
fn terminate(postgres: &Postgres, client: &mut Client) -> Result<()> {
    let process_id = one(client, "SELECT pg_backend_pid()")?;
    let mut admin = postgres.client()?;
    admin.query(&format!("SELECT pg_terminate_backend({process_id})"))?;
    while one(&mut admin, &format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {process_id}"))? != "0" {}
    Ok(())
}

/// What a statement gives on another connection; it may be the one that finds the connection gone.
fn on_another(client: &mut Client, sql: &str) -> Result<String> {
    let outcome = client.run(sql, Protocol::Simple)?;
    match outcome.code() {
        Some("57P01" | "08006") => one(client, sql),
        _ => Ok(outcome.rows()?.first().and_then(|row| row.last()).cloned().flatten().unwrap_or_default()),
    }
}

fn cut_off() -> Result<()> {
    let fleet = fleet()?;
    let server = member(&fleet, Some(0))?;
    let own = fleet.0.first().context("there is no server")?;
    let mut client = Client::connect(&login(&server, "mira"))?;
    client.query("CREATE TABLE cut (n int)")?;
    // A transaction is gone as a whole: what would have been its next statement does not run by itself.
    client.query("BEGIN")?;
    client.query("INSERT INTO cut VALUES (1)")?;
    terminate(own, &mut client)?;
    let outcome = client.run("INSERT INTO cut VALUES (2)", Protocol::Simple)?;
    ensure!(matches!(outcome.code(), Some("57P01" | "08006")), "{outcome:?}");
    ensure!(outcome.answers.is_empty() && outcome.status == 'I', "{outcome:?}");
    client.query("COMMIT")?;
    ensure!(one(&mut client, "SELECT count(*) FROM cut")? == "0");
    // What can be brought about again is.
    for statement in ["SET search_path TO other, public", "SET my.own TO 'mine'", "PREPARE kept AS SELECT 42"] {
        client.query(statement)?;
    }
    client.query("SELECT set_config('my.too', 'set', false)")?;
    terminate(own, &mut client)?;
    ensure!(on_another(&mut client, "SHOW search_path")? == "other, public");
    ensure!(one(&mut client, "SHOW my.own")? == "mine");
    ensure!(one(&mut client, "EXECUTE kept")? == "42");
    // What cannot is told before anything runs without it.
    client.query("INSERT INTO cut VALUES (1), (2)")?;
    client.query("CREATE TEMP TABLE cut AS SELECT n FROM cut LIMIT 0")?;
    terminate(own, &mut client)?;
    let outcome = client.run("DELETE FROM cut", Protocol::Simple)?;
    ensure!(outcome.error.is_some() && outcome.answers.is_empty(), "{outcome:?}");
    ensure!(on_another(&mut client, "SELECT count(*) FROM public.cut")? == "2");
    client.query("DROP TABLE public.cut")?;
    // One user is one role, however the client spells it.
    let mut spelled = Client::connect(&login(&server, "MIRA"))?;
    ensure!(one(&mut spelled, "SELECT current_user")? == "mira");
    server.finish()
}

fn kept_as_new() -> Result<()> {
    let fleet = fleet()?;
    let server = member(&fleet, Some(0))?;
    server.admin()?.query("GRANT USAGE ON WORKLOAD analytics TO mira")?;
    let mut client = Client::connect(&login(&server, "mira"))?;
    client.query("SET SESSION WORKLOAD NONE")?;
    client.query("CREATE TABLE here_only (n int)")?;
    client.query("SET my.secret TO 'of the first'")?;
    client.query("PREPARE of_the_first AS SELECT n FROM here_only")?;
    let process_id = one(&mut client, "SELECT pg_backend_pid()")?;
    // The other node has no such table: the session comes back, and asks the server for nothing any more.
    let mut told = client.run("SET SESSION WORKLOAD analytics", Protocol::Simple)?.notices;
    told.extend(client.run("SHOW WORKLOAD; SHOW WORKLOAD", Protocol::Simple)?.notices);
    ensure!(told.iter().any(|notice| notice.message.contains("stays")), "{told:?}");
    client.close()?;
    let mut found = false;
    for _ in 0..100 {
        let mut next = Client::connect(&login(&server, "mira"))?;
        next.query("SET SESSION WORKLOAD NONE")?;
        if one(&mut next, "SELECT pg_backend_pid()")? == process_id {
            ensure!(one(&mut next, "SELECT current_setting('my.secret', true)")?.is_empty());
            ensure!(one(&mut next, "SELECT count(*) FROM pg_prepared_statements")? == "0");
            next.query("DROP TABLE here_only")?;
            found = true;
            break;
        }
        next.close()?;
    }
    ensure!(found, "the connection was not kept");
    server.finish()
}

/// A limit of one login says nothing of the server.
fn full_for_one() -> Result<()> {
    let fleet = fleet()?;
    let server = member(&fleet, None)?;
    for user in ["narrow", "mira"] {
        server.admin()?.query(&format!("GRANT USAGE ON WORKLOAD analytics TO {user}"))?;
    }
    let [_, analytics, _] = ports(&fleet);
    let mut first = Client::connect(&login(&server, "narrow"))?;
    ensure!(one(&mut first, "SELECT current_user")? == "narrow");
    let refused = refusal(&login(&server, "narrow"))?;
    ensure!(refused.code == "53300", "{refused:?}");
    ensure!(port(&mut Client::connect(&login(&server, "mira"))?)? == analytics);
    let states = "SELECT count(*) FROM node_states WHERE node_name = 'pg_analytics' AND node_state = 'DOWN'";
    ensure!(one(&mut server.admin()?, states)? == "0");
    server.finish()
}

/// A statement of ours waits for what was asked for before it.
fn in_order() -> Result<()> {
    let fleet = fleet()?;
    let server = member(&fleet, Some(0))?;
    let mut client = Client::connect(&login(&server, "mira"))?;
    let answer = client.exchange(&[
        Send::Query("SELECT 'first' FROM pg_sleep(0.3)"),
        Send::Query("SHOW workload; SELECT 'second'"),
        Send::Query("SELECT 'third'"),
    ])?;
    let told: Vec<&str> =
        answer.iter().map(String::as_str).filter(|line| line.starts_with("row") || line.starts_with("ready")).collect();
    let expected = ["row first", "ready I", "row ", "row second", "ready I", "row third", "ready I"];
    ensure!(
        told.len() == expected.len() && told.iter().zip(expected).all(|(one, other)| one.starts_with(other)),
        "{answer:?}"
    );
    // Each batch has its ReadyForQuery, and what stands behind a mistake does not run.
    let (parse, bind, run) = (Send::Parse("", "SELECT 'theirs'"), Send::Bind("", "", &[]), Send::Execute("", 0));
    let ours = Send::Parse("", "SHOW workload");
    let answer = client.exchange(&[parse, bind, run, Send::Sync, parse, bind, run, ours, bind, run, Send::Sync])?;
    ensure!(answer.iter().filter(|line| *line == "ready I").count() == 2, "{answer:?}");
    let wrong = Send::Parse("", "SELECT 1/0");
    let answer = client.exchange(&[wrong, bind, run, ours, bind, run, Send::Sync])?;
    ensure!(answer.iter().any(|line| line.starts_with("error 22012")), "{answer:?}");
    ensure!(!answer.iter().any(|line| line.starts_with("done SHOW")), "{answer:?}");
    let answer = client.exchange(&[
        Send::Query("BEGIN"),
        Send::Query("SELECT 1/0"),
        Send::Query("SHOW workload"),
        Send::Query("ROLLBACK"),
    ])?;
    ensure!(answer.iter().any(|line| line.starts_with("error 25P02")), "{answer:?}");
    server.finish()
}

/// With servers of its own, which it kills.
fn dying() -> Result<()> {
    let fleet = Fleet([Postgres::start()?, Postgres::start()?, Postgres::start()?]);
    for server in &fleet.0 {
        prepare(server)?;
    }
    let server = member(&fleet, None)?;
    let mut admin = server.admin()?;
    admin.query("ALTER ROUTING RULE FOR WORKLOAD reporting ADD SUBCLUSTER sc_analytics")?;
    admin.query("GRANT USAGE ON WORKLOAD reporting TO mira")?;
    let [reporting, analytics, _] = ports(&fleet);
    let mut idle = Client::connect(&login(&server, "mira"))?;
    let here = port(&mut idle)?;
    let mut active = Client::connect(&login(&server, "mira"))?;
    while port(&mut active)? != here {
        active = Client::connect(&login(&server, "mira"))?;
    }
    let mut open = Client::connect(&login(&server, "mira"))?;
    while port(&mut open)? != here {
        open = Client::connect(&login(&server, "mira"))?;
    }
    open.query("BEGIN")?;
    let (index, other) = if here == reporting { (0, analytics) } else { (1, reporting) };
    let running = std::thread::spawn(move || -> Result<()> {
        let outcome = active.run("SELECT pg_sleep(60)", Protocol::Simple)?;
        ensure!(matches!(outcome.code(), Some("57P01" | "57P02" | "08006")), "{outcome:?}");
        ensure!(outcome.error.as_ref().is_some_and(|error| error.severity == "ERROR"), "{outcome:?}");
        ensure!(outcome.status == 'I', "{outcome:?}");
        // The session lives on.
        ensure!(port(&mut active)? == other);
        Ok(())
    });
    let dying = fleet.0.get(index).context("there is no such server")?;
    let mut watcher = dying.client()?;
    while one(&mut watcher, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%'")? == "0" {}
    dying.kill()?;
    running.join().map_err(|_| anyhow::anyhow!("the client panicked"))??;
    ensure!(port(&mut idle)? == other);
    // Whoever was in a transaction is told of its end, once.
    let told = open.run("SELECT 1", Protocol::Simple)?;
    ensure!(told.error.is_some(), "{told:?}");
    ensure!(port(&mut open)? == other);
    // New sessions go to the other one only.
    for _ in 0..10 {
        ensure!(port(&mut Client::connect(&login(&server, "mira"))?)? == other);
    }
    server.finish()
}

fn none_up() -> Result<()> {
    let fleet = fleet()?;
    let server = member(&fleet, Some(0))?;
    let [own, ..] = ports(&fleet);
    let mut admin = server.admin()?;
    let free = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    for statement in [
        "CREATE SUBCLUSTER sc_gone",
        &format!("CREATE NODE pg_gone WITH '127.0.0.1' PORT {free} SUBCLUSTER sc_gone"),
        "CREATE ROUTING RULE ROUTE WORKLOAD gone TO SUBCLUSTER sc_gone",
        "GRANT USAGE ON WORKLOAD gone TO mira",
    ] {
        admin.query(statement)?;
    }
    let mut client = Client::connect(&login(&server, "mira"))?;
    ensure!(client.greetings.iter().any(|told| told.message.contains("no node of workload \"gone\" is up")));
    ensure!(port(&mut client)? == own);
    let states = admin.query("SELECT node_state FROM nodes WHERE node_name = 'pg_gone'")?;
    ensure!(states == [[Some("DOWN".to_owned())]], "{states:?}");
    admin.query("ALTER DATABASE DEFAULT SET workload_fallback = 'error'")?;
    let refused = refusal(&login(&server, "mira"))?;
    ensure!(refused.code == "57P03" || refused.code == "08006", "{refused:?}");
    ensure!(refused.message.contains("gone"), "{refused:?}");
    server.finish()
}
