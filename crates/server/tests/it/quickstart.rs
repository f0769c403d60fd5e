//! Three members in one process: connections go where the rules say.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use anyhow::{Context, Result, bail, ensure};
use libtest_mimic::Trial;
use switchyard_testkit::{ADMIN, Client, Login, NODE, Refused, Server, Store, call, told};
use tokio_postgres::NoTls;
use tokio_postgres::error::SqlState;

use crate::limits::{ENDLESS, until_endless_runs};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        crate::with_cluster("clients_that_ask_are_spread_over_the_members", clients_that_ask_are_spread),
        crate::with_cluster("clients_that_do_not_ask_stay", clients_that_do_not_ask_stay),
        crate::with_cluster("vertica_clients_are_told_where_to_go", vertica_clients_are_told_where_to_go),
        crate::with_cluster("the_most_specific_rule_decides", the_most_specific_rule_decides),
        crate::with_cluster("a_stopped_member_gets_no_connection", a_stopped_member_gets_no_connection),
        crate::with_cluster("a_member_that_died_unseen_is_stood_in_for", a_member_that_died_unseen_is_stood_in_for),
        crate::with_cluster("a_passed_on_client_is_cancelled_by_its_own_way", a_passed_on_client_is_cancelled),
        crate::with_cluster("a_change_holds_on_all_members_at_once", a_change_holds_on_all_members_at_once),
        crate::with_cluster(
            "members_that_do_not_run_here_are_not_stopped",
            members_that_do_not_run_here_are_not_stopped,
        ),
        crate::trial("the_samples_are_made_once", the_samples_are_made_once),
        crate::trial("sessions_are_told_that_the_process_ends", sessions_are_told_that_the_process_ends),
        crate::trial("a_dump_is_loaded_where_members_are_declared", a_dump_is_loaded_where_members_are_declared),
    ]
}

pub(crate) fn balanced(server: &Server) -> Login {
    server.login().parameter("options", "-c connection_load_balance=on")
}

/// The node that serves a session, and what it takes the client's address for.
pub(crate) fn served_by(client: &mut Client) -> Result<(String, String)> {
    let rows = client.query("SELECT node_name, client_hostname FROM current_session")?;
    let [row] = rows.as_slice() else { bail!("{} rows", rows.len()) };
    match row.as_slice() {
        [Some(node), Some(client)] => Ok((node.clone(), client.clone())),
        other => bail!("{other:?}"),
    }
}

/// How often each node serves one of `count` connections.
pub(crate) fn spread(count: usize, login: &Login) -> Result<BTreeMap<String, usize>> {
    let mut nodes = BTreeMap::new();
    for _ in 0..count {
        let mut client = Client::connect(login)?;
        *nodes.entry(served_by(&mut client)?.0).or_default() += 1;
        client.close()?;
    }
    Ok(nodes)
}

pub(crate) fn node(number: usize) -> String {
    format!("v_switchyard_node{number:04}")
}

fn clients_that_ask_are_spread(server: &Server) -> Result<()> {
    let expected: BTreeMap<_, _> = [1, 2, 3].map(|number| (node(number), 3)).into();
    ensure!(spread(9, &balanced(server))? == expected);
    // All of them are who they are, wherever they are served.
    for _ in 0..3 {
        let stream = Client::connect(&balanced(server))?;
        let mut client = stream;
        let (node, address) = served_by(&mut client)?;
        let own = client.local_address()?;
        ensure!(address == own.to_string(), "{node} takes {own} for {address}");
    }
    Ok(())
}

fn clients_that_do_not_ask_stay(server: &Server) -> Result<()> {
    ensure!(spread(4, &server.login())? == BTreeMap::from([(node(1), 4)]));
    let declined = server.login().parameter("connection_load_balance", "off");
    ensure!(spread(4, &declined)? == BTreeMap::from([(node(1), 4)]));
    Ok(())
}

fn vertica_clients_are_told_where_to_go(server: &Server) -> Result<()> {
    let mut ports = BTreeMap::new();
    for _ in 0..9 {
        // The member itself, too: it is told as the address that was called.
        *ports.entry(told(Ipv4Addr::LOCALHOST, server.port())?.context("told to stay")?).or_insert(0) += 1;
    }
    ensure!(ports.len() == 3 && ports.values().all(|count| *count == 3), "{ports:?}");
    ensure!(ports.into_keys().collect::<BTreeSet<_>>() == server.ports().iter().copied().collect());
    Ok(())
}

fn the_most_specific_rule_decides(server: &Server) -> Result<()> {
    // The rule for 127.0.0.2 leads to the reporting subcluster, which the first member is not in.
    let desk = Ipv4Addr::new(127, 0, 0, 2);
    let reporting: BTreeSet<u16> = server.ports().iter().skip(1).copied().collect();
    let mut seen = BTreeSet::new();
    for _ in 0..4 {
        seen.insert(told(desk, server.port())?.context("told to stay")?);
    }
    ensure!(seen == reporting, "{seen:?}");
    let nodes = spread(4, &balanced(server).from(desk))?;
    ensure!(nodes == [2, 3].map(|number| (node(number), 2)).into(), "{nodes:?}");
    // Nothing of it is left when the rule is gone.
    server.admin()?.query("DROP ROUTING RULE desk; DROP ROUTING RULE loopback")?;
    // The members of the own subcluster remain, which is one.
    ensure!(told(desk, server.port())? == Some(server.port()));
    Ok(())
}

fn state(admin: &mut Client, number: usize) -> Result<Option<String>> {
    let rows = admin.query(&format!("SELECT node_state FROM nodes WHERE node_name = '{}'", node(number)))?;
    Ok(rows.into_iter().flatten().next().flatten())
}

fn a_stopped_member_gets_no_connection(server: &Server) -> Result<()> {
    let mut admin = server.admin()?;
    let second = *server.ports().get(1).context("no second member")?;
    let mut client = Client::connect(&Login::new(second, ADMIN, ""))?;
    admin.query(&format!("SELECT STOP_MEMBER('{}')", node(2)))?;
    ensure!(state(&mut admin, 2)?.as_deref() == Some("DOWN"));
    ensure!(call(Ipv4Addr::LOCALHOST, second).is_err(), "somebody still listens");
    ensure!(client.query("SELECT 1").is_err(), "its sessions go on");
    let nodes = spread(8, &balanced(server))?;
    ensure!(nodes == [1, 3].map(|number| (node(number), 4)).into(), "{nodes:?}");
    admin.query(&format!("SELECT START_MEMBER('{}')", node(2)))?;
    ensure!(state(&mut admin, 2)?.as_deref() == Some("UP"));
    let nodes = spread(9, &balanced(server))?;
    ensure!(nodes.len() == 3, "{nodes:?}");
    let history = admin.query(&format!(
        "SELECT node_state, event_timestamp IS NOT NULL FROM node_states WHERE node_name = '{}' ORDER BY event_timestamp",
        node(2)
    ))?;
    let states: Vec<_> = history.iter().filter_map(|row| row.first()?.as_deref()).collect();
    ensure!(states == ["UP", "DOWN", "UP"], "{states:?}");
    Ok(())
}

/// An address that nobody listens on, of a node that is taken to be up.
fn a_member_that_died_unseen_is_stood_in_for(server: &Server) -> Result<()> {
    let mut admin = server.admin()?;
    let dead = {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.local_addr()?.port()
    };
    admin.query(&format!("ALTER NODE {} SET ADDRESS TO '127.0.0.1' PORT {dead}", node(3)))?;
    let nodes = spread(9, &balanced(server))?;
    ensure!(nodes == [(node(1), 6), (node(2), 3)].into(), "{nodes:?}");
    server.wait_for_log("the chosen member cannot take the client")
}

fn a_passed_on_client_is_cancelled(server: &Server) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        loop {
            let mut configuration = server.configuration();
            let (client, connection) = configuration.options("-c connection_load_balance=on").connect(NoTls).await?;
            let connection = tokio::spawn(connection);
            let served: String = client.query_one("SELECT node_name FROM current_session", &[]).await?.try_get(0)?;
            let Some(place) = (2..=3).find(|number| node(*number) == served) else { continue };
            let token = client.cancel_token();
            let running = tokio::spawn(async move { client.simple_query(ENDLESS).await });
            let port = *server.ports().get(place - 1).context("no such member")?;
            let (watching, watched) = server.configuration_at(port).connect(NoTls).await?;
            let watched = tokio::spawn(watched);
            until_endless_runs(&watching).await?;
            // To the member that the client is connected to.
            token.cancel_query(NoTls).await?;
            let error = running.await?.err().context("the query was not cancelled")?;
            ensure!(error.code() == Some(&SqlState::QUERY_CANCELED), "{error:?}");
            drop(watching);
            connection.await??;
            watched.await??;
            return Ok(());
        }
    })
}

fn a_change_holds_on_all_members_at_once(server: &Server) -> Result<()> {
    let mut clients =
        server.ports().iter().map(|port| Client::connect(&Login::new(*port, ADMIN, ""))).collect::<Result<Vec<_>>>()?;
    for number in 0..3 {
        let client = clients.get_mut(number).context("no such client")?;
        client.query(&format!("CREATE SUBCLUSTER s{number}"))?;
        for other in &mut clients {
            let rows = other.query(&format!("SELECT 1 FROM subclusters WHERE subcluster_name = 's{number}'"))?;
            ensure!(!rows.is_empty());
        }
    }
    Ok(())
}

fn members_that_do_not_run_here_are_not_stopped(server: &Server) -> Result<()> {
    let mut admin = server.admin()?;
    admin.query("CREATE NODE pg4 WITH '10.0.0.14' PORT 5432; CREATE USER mira IDENTIFIED BY 'a password'")?;
    let mut refused = |sql: &str| -> Result<String> {
        let error = admin.query(sql).err().with_context(|| format!("{sql} was done"))?;
        Ok(format!("{error:#}"))
    };
    ensure!(refused("SELECT STOP_MEMBER('pg4')")?.contains("55000"));
    ensure!(refused("SELECT START_MEMBER('v_switchyard_node0001')")?.contains("is up already"));
    ensure!(refused("SELECT STOP_MEMBER('v_switchyard_node0009')")?.contains("42704"));
    let mut mira = server.client("mira", "a password")?;
    let error = mira.query("SELECT STOP_MEMBER('v_switchyard_node0001')").err().context("anybody may")?;
    ensure!(format!("{error:#}").contains("42501"), "{error:#}");
    Ok(())
}

fn the_samples_are_made_once() -> Result<()> {
    let mut server = crate::options().store(Store::Redb).quickstart().start()?;
    server.admin()?.query("DROP ROUTING RULE desk; CREATE SUBCLUSTER mine")?;
    let code = server.terminate()?;
    ensure!(code == 0, "exit code {code}");
    server.restart()?;
    let mut admin = server.admin()?;
    let rules = admin.query("SELECT name FROM routing_rules WHERE source_address LIKE '%.%' ORDER BY name")?;
    ensure!(rules == [[Some("loopback".to_owned())]], "{rules:?}");
    ensure!(!admin.query("SELECT 1 FROM subclusters WHERE subcluster_name = 'mine'")?.is_empty());
    // Only dbadmin is trusted, and only from here.
    admin.query("CREATE USER mira IDENTIFIED BY 'a password'")?;
    let refused = server.client("mira", "wrong").err().context("anybody is let in")?;
    ensure!(refused.downcast_ref::<Refused>().is_some_and(|refused| refused.0.code == "28P01"), "{refused:#}");
    server.finish()
}

fn sessions_are_told_that_the_process_ends() -> Result<()> {
    let mut server = crate::options().quickstart().start()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let mut sessions = Vec::new();
    for port in server.ports() {
        let (client, connection) = runtime.block_on(server.configuration_at(*port).connect(NoTls))?;
        sessions.push((client, runtime.spawn(connection)));
    }
    let code = server.terminate()?;
    ensure!(code == 0, "exit code {code}");
    for (_client, connection) in sessions {
        let error = runtime.block_on(connection)?.err().context("a session ends without a word")?;
        ensure!(error.code() == Some(&SqlState::ADMIN_SHUTDOWN), "{error:?}");
        let message = error.as_db_error().map(tokio_postgres::error::DbError::message);
        ensure!(message == Some("terminating connection due to administrator command"), "{error:?}");
    }
    Ok(())
}

/// The members that a server of one's own does not have are declared by the lines that the dump leaves out.
fn a_dump_is_loaded_where_members_are_declared() -> Result<()> {
    let mut quickstart = crate::options().store(Store::Redb).quickstart().start()?;
    quickstart.terminate()?;
    let script = crate::command_line::dump(&quickstart)?.replace(&node(1), NODE);
    let declared: Vec<&str> = script
        .lines()
        .map(|line| line.strip_prefix("-- ").filter(|rest| rest.starts_with("CREATE NODE")).unwrap_or(line))
        .filter(|line| !line.starts_with(&format!("CREATE NODE {NODE} ")))
        .collect();
    let server = crate::options().start()?;
    let mut admin = server.admin()?;
    admin.query(&declared.join("\n"))?;
    let rows = admin.query("SELECT node_name, subcluster_name FROM nodes ORDER BY node_name")?;
    let reporting = |number| vec![Some(node(number)), Some("reporting".to_owned())];
    ensure!(rows.get(1..) == Some(&[reporting(2), reporting(3)][..]), "{rows:?}");
    ensure!(admin.query("SELECT name FROM routing_rules")?.len() >= 2);
    server.finish()
}
