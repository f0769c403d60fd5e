//! Clients that ask for load balancing, and what they find: drivers, psql, balancers in front, and rules that change.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use libtest_mimic::Trial;
use switchyard_testkit::{
    ADMIN, ADMIN_PASSWORD, Authority, Client, DATABASE, LOAD_BALANCE_REQUEST, Login, Refused, Server, Store, call, told,
};

use crate::client::{beside, made, succeeds};
use crate::limits::ANSWER_WITHIN;
use crate::python::interpreter;
use crate::quickstart::{balanced, node, served_by, spread};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        crate::with_cluster("vertica_python_is_balanced", vertica_python),
        crate::trial("vertica_python_is_balanced_and_speaks_tls", vertica_python_through_tls),
        crate::with_cluster("vertica_nodejs_among_members", vertica_nodejs),
        crate::with_cluster("psql_is_passed_on", psql_is_passed_on),
        crate::trial("psql_is_passed_on_through_tls", psql_is_passed_on_through_tls),
        crate::with_cluster("psycopg_is_passed_on", psycopg),
        crate::with_cluster("nobody_is_balanced_twice", nobody_is_balanced_twice),
        crate::trial("a_balancer_in_front_is_believed_by_rules", a_balancer_in_front_is_believed),
        crate::with_cluster("a_balancer_that_nobody_trusts_is_refused", a_stranger_is_refused),
        crate::with_cluster("each_decision_is_of_one_version", each_decision_is_of_one_version),
        crate::trial("network_addresses_follow_their_members", network_addresses_follow),
        crate::trial("network_addresses_that_may_not_follow_are_told", network_addresses_that_may_not_follow),
        crate::trial("what_quickstart_advises_works", advice_works),
        crate::trial("quickstart_takes_a_catalog_of_serve_as_it_is", a_catalog_of_serve_is_taken),
    ]
}

fn ports(server: &Server) -> String {
    server.ports().iter().map(u16::to_string).collect::<Vec<_>>().join(",")
}

fn vertica_variables<'a>(command: &'a mut Command, server: &Server) -> &'a mut Command {
    command
        .env("VERTICA_TEST_PORTS", ports(server))
        .env("VERTICA_TEST_USER", ADMIN)
        .env("VERTICA_TEST_PASSWORD", ADMIN_PASSWORD)
}

fn vertica_python(server: &Server) -> Result<()> {
    succeeds(server, &interpreter(), |python| {
        vertica_variables(python, server).arg(beside("vertica_python_balance_test.py")).arg("Balanced");
    })
}

/// Three members that have a certificate.
fn secured(authority: &Authority) -> Result<Server> {
    authority.certify("server", "server")?;
    let path = |file: &str| authority.path(file).display().to_string();
    crate::options()
        .store(Store::Memory)
        .quickstart()
        .argument("--tls-certificate")
        .argument(path("server.crt"))
        .argument("--tls-key")
        .argument(path("server.key"))
        .start()
}

fn vertica_python_through_tls() -> Result<()> {
    let authority = Authority::new()?;
    let server = secured(&authority)?;
    succeeds(&server, &interpreter(), |python| {
        vertica_variables(python, &server)
            .env("VERTICA_TEST_AUTHORITY", authority.path("ca.crt"))
            .arg(beside("vertica_python_balance_test.py"))
            .arg("BalancedThroughTls");
    })?;
    server.finish()
}

fn vertica_nodejs(server: &Server) -> Result<()> {
    let modules = made("SWITCHYARD_TEST_NODE_MODULES", "node/node_modules");
    succeeds(server, std::path::Path::new("node"), |program| {
        vertica_variables(program, server).arg(beside("vertica_nodejs_balance_test.js")).env("NODE_PATH", &modules);
    })
}

fn psycopg(server: &Server) -> Result<()> {
    succeeds(server, &interpreter(), |python| {
        python
            .arg(beside("psycopg_balance_test.py"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("VERTICA_TEST_PORTS", ports(server));
    })
}

/// What psql prints that asks to be balanced.
fn psql(server: &Server, more: &str, statement: &str) -> Result<String> {
    let connection = format!("host=127.0.0.1 port={} user={ADMIN} dbname={DATABASE} {more}", server.port());
    let output = Command::new("psql")
        .args(["--no-psqlrc", "--no-password", "--no-align", "--tuples-only", "--dbname", &connection])
        .args(["--command", statement])
        .env("PGPASSWORD", ADMIN_PASSWORD)
        .env("PGOPTIONS", "-c connection_load_balance=on")
        .env("LC_ALL", "C")
        .output()
        .context("psql cannot be started; scripts/test installs it")?;
    let (said, complained) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "{said}{complained}");
    Ok(said.trim().to_owned())
}

fn psql_is_passed_on(server: &Server) -> Result<()> {
    let mut served = BTreeMap::new();
    for _ in 0..6 {
        let own = "SELECT node_name, user_name, client_type FROM sessions \
                   WHERE session_id = (SELECT session_id FROM current_session)";
        let answer = psql(server, "application_name=by_hand", own)?;
        *served.entry(answer).or_insert(0) += 1;
    }
    let expected: BTreeMap<_, _> = [1, 2, 3].map(|number| (format!("{}|{ADMIN}|by_hand", node(number)), 2)).into();
    ensure!(served == expected, "{served:?}");
    Ok(())
}

fn psql_is_passed_on_through_tls() -> Result<()> {
    let authority = Authority::new()?;
    let server = secured(&authority)?;
    server.admin()?.query("DROP AUTHENTICATION quickstart CASCADE")?;
    let root = authority.path("ca.crt").display().to_string();
    let mut served = BTreeMap::new();
    for _ in 0..3 {
        let own = "SELECT node_name, ssl_state, authentication_method FROM sessions \
                   WHERE session_id = (SELECT session_id FROM current_session)";
        // The proof is bound to the channel, which ends at the first member and not at the one that checks it.
        let more = format!("sslmode=verify-full sslrootcert={root} channel_binding=require");
        *served.entry(psql(&server, &more, own)?).or_insert(0) += 1;
    }
    let expected: BTreeMap<_, _> = [1, 2, 3].map(|number| (format!("{}|Server|hash", node(number)), 1)).into();
    ensure!(served == expected, "{served:?}");
    server.finish()
}

fn nobody_is_balanced_twice(server: &Server) -> Result<()> {
    let mut admin = server.admin()?;
    admin.query("ALTER LOAD BALANCE GROUP everyone DROP ADDRESS address1")?;
    let second = *server.ports().get(1).context("no second member")?;
    // By the first member's first turn: to the second one.
    ensure!(spread(1, &balanced(server))? == BTreeMap::from([(node(2), 1)]));
    // Which has taken none of its own, though the client told it, too, that it wants to be balanced.
    ensure!(told(Ipv4Addr::LOCALHOST, second)? == Some(second), "the second member has balanced it again");
    let at_the_second = Login::new(second, ADMIN, ADMIN_PASSWORD).parameter("connection_load_balance", "on");
    ensure!(spread(1, &at_the_second)? == BTreeMap::from([(node(3), 1)]));
    Ok(())
}

const FIRST: &[u8] = b"PROXY TCP4 10.8.3.7 10.0.0.1 50123 5433\r\n";
const FIRST_V6: &[u8] = b"PROXY TCP6 2001:db8:77::7 2001:db8::1 50123 5433\r\n";

/// The header in the second version: the same clients.
fn second(body: &[u8]) -> Vec<u8> {
    let family = if body.len() == 12 { 0x11 } else { 0x21 };
    let length = u16::try_from(body.len()).unwrap_or_default().to_be_bytes();
    [&b"\r\n\r\n\0\r\nQUIT\n\x21"[..], &[family], &length, body].concat()
}

fn second_v4() -> Vec<u8> {
    second(&[10, 8, 3, 7, 10, 0, 0, 1, 0xC3, 0xCB, 0x15, 0x39])
}

fn second_v6() -> Vec<u8> {
    let address = |subnet: u8, last: u8| [&[0x20, 0x01, 0x0d, 0xb8, 0, subnet][..], &[0; 9], &[last]].concat();
    second(&[&address(0x77, 7)[..], &address(0, 1), &[0xC3, 0xCB, 0x15, 0x39]].concat())
}

/// What comes first of the answer to a client of Vertica that asks, behind a balancer.
fn answered(source: Ipv4Addr, server: &Server, header: &[u8]) -> Result<u8> {
    let mut stream = call(source, server.port())?;
    stream.set_read_timeout(Some(ANSWER_WITHIN))?;
    stream.write_all(header)?;
    stream.write_all(LOAD_BALANCE_REQUEST)?;
    let mut kind = [0];
    stream.read_exact(&mut kind)?;
    let [kind] = kind;
    Ok(kind)
}

fn a_balancer_in_front_is_believed() -> Result<()> {
    let balancer = Ipv4Addr::new(127, 0, 0, 9);
    let server = crate::options()
        .store(Store::Memory)
        .quickstart()
        .argument("--proxy-networks")
        .argument("127.0.0.9/32")
        .start()?;
    server.admin()?.query(&format!(
        "CREATE LOAD BALANCE GROUP second WITH ADDRESS address2;
         CREATE ROUTING RULE office ROUTE '10.8.0.0/16' TO second;
         CREATE NETWORK ADDRESS third_v6 ON {} WITH '2001:db8::3';
         CREATE LOAD BALANCE GROUP third WITH ADDRESS third_v6;
         CREATE ROUTING RULE campus ROUTE '2001:db8:77::/48' TO third;",
        node(3)
    ))?;
    let login = server.login().from(balancer).parameter("connection_load_balance", "on");
    for (header, number, client) in [
        (FIRST.to_vec(), 2, "10.8.3.7:50123"),
        (second_v4(), 2, "10.8.3.7:50123"),
        (FIRST_V6.to_vec(), 3, "[2001:db8:77::7]:50123"),
        (second_v6(), 3, "[2001:db8:77::7]:50123"),
    ] {
        let mut session = Client::connect(&login.clone().behind(header.as_slice()))?;
        let served = served_by(&mut session)?;
        ensure!(served == (node(number), client.to_owned()), "{served:?} for {}", header.escape_ascii());
        // By IPv6 nobody is told an address: not every driver can call it.
        let expected = if number == 2 { b'Y' } else { b'N' };
        ensure!(answered(balancer, &server, &header)? == expected, "{}", header.escape_ascii());
    }
    // It may speak for itself.
    let mut session = Client::connect(&server.login().from(balancer))?;
    let (_, client) = served_by(&mut session)?;
    ensure!(client == session.local_address()?.to_string(), "{client}");
    // The member that the client is passed on to believes the one that passes it on, and nobody else.
    for port in server.ports() {
        refuses(&Login::new(*port, ADMIN, ADMIN_PASSWORD).behind(FIRST))?;
        let twice = [b"PROXY TCP4 127.0.0.9 10.0.0.1 1 2\r\n", FIRST].concat();
        refuses(&Login::new(*port, ADMIN, ADMIN_PASSWORD).from(balancer).behind(twice))?;
    }
    server.finish()
}

fn refuses(login: &Login) -> Result<()> {
    let refused = Client::connect(login).err().context("a header was believed")?;
    let report = &refused.downcast_ref::<Refused>().with_context(|| format!("{refused:#}"))?.0;
    ensure!(report.code == "28000", "{report:?}");
    let first = "a PROXY protocol header is accepted from trusted networks only";
    let again = "a PROXY protocol header is accepted once, before anything else";
    ensure!(report.message == first || report.message == again, "{report:?}");
    Ok(())
}

fn a_stranger_is_refused(server: &Server) -> Result<()> {
    for header in [FIRST.to_vec(), second_v4(), FIRST_V6.to_vec(), second_v6()] {
        for source in [Ipv4Addr::LOCALHOST, Ipv4Addr::new(127, 0, 0, 9)] {
            refuses(&server.login().from(source).behind(header.as_slice()))?;
            ensure!(answered(source, server, &header)? == b'E');
        }
    }
    server.admin()?.query("SELECT 1")?;
    Ok(())
}

/// The port that version `number` tells is this many above.
const PORTS_FROM: u16 = 20_000;
/// The port of the address that the version's rule does not lead to.
const WRONG_PORT: u16 = 1;
const CLIENTS: usize = 4;
/// How often each client asks at least.
const ASKED_MIN: usize = 100;
/// How many versions each client sees at least.
const SEEN_MIN: usize = 10;
const ENDS_WITHIN: Duration = Duration::from_secs(120);

/// The changes, as all threads see them.
#[derive(Default)]
struct Changes {
    /// The last that was begun.
    begun: AtomicU16,
    /// The last that was acknowledged.
    committed: AtomicU16,
    over: AtomicBool,
}

/// Every version has another rule target, and another port at it. A decision by the rule of one version and the addresses
/// of another would tell a port that no version tells.
fn each_decision_is_of_one_version(server: &Server) -> Result<()> {
    let mut admin = server.admin()?;
    let member = node(2);
    admin.query(&format!(
        "CREATE NETWORK ADDRESS even ON {member} WITH '127.0.0.1' PORT {PORTS_FROM};
         CREATE NETWORK ADDRESS odd ON {member} WITH '127.0.0.1' PORT {WRONG_PORT};
         CREATE LOAD BALANCE GROUP even WITH ADDRESS even;
         CREATE LOAD BALANCE GROUP odd WITH ADDRESS odd;
         CREATE ROUTING RULE changing ROUTE '127.0.0.0/16' TO even;"
    ))?;
    let changes = Changes::default();
    std::thread::scope(|scope| {
        let clients: Vec<_> =
            (0..CLIENTS).map(|_| scope.spawn(|| client_while_rules_change(server, &changes))).collect();
        let mut changing = Ok(());
        while changing.is_ok() && !clients.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            changing = change(&mut admin, &changes);
        }
        changes.over.store(true, Ordering::SeqCst);
        for client in clients {
            client.join().map_err(|_| anyhow::anyhow!("a client panicked"))??;
        }
        changing
    })
}

fn change(admin: &mut Client, changes: &Changes) -> Result<()> {
    let number = changes.begun.load(Ordering::SeqCst) + 1;
    changes.begun.store(number, Ordering::SeqCst);
    let (right, wrong) = if number.is_multiple_of(2) { ("even", "odd") } else { ("odd", "even") };
    admin.query(&format!(
        "ALTER NETWORK ADDRESS {right} SET TO '127.0.0.1' PORT {};
         ALTER NETWORK ADDRESS {wrong} SET TO '127.0.0.1' PORT {WRONG_PORT};
         ALTER ROUTING RULE changing SET GROUP TO {right};",
        PORTS_FROM + number
    ))?;
    changes.committed.store(number, Ordering::SeqCst);
    Ok(())
}

fn client_while_rules_change(server: &Server, changes: &Changes) -> Result<()> {
    let deadline = Instant::now() + ENDS_WITHIN;
    let (mut asked, mut seen, mut last) = (0, BTreeSet::new(), 0);
    while asked < ASKED_MIN || seen.len() < SEEN_MIN {
        ensure!(Instant::now() < deadline, "{} versions were seen in {asked} answers", seen.len());
        ensure!(!changes.over.load(Ordering::SeqCst), "the changes ended early");
        let committed = changes.committed.load(Ordering::SeqCst);
        let port = told(Ipv4Addr::LOCALHOST, server.port())?.context("told to stay")?;
        let begun = changes.begun.load(Ordering::SeqCst);
        let Some(version) = port.checked_sub(PORTS_FROM) else { bail!("no version tells port {port}") };
        // No older than what was there before it asked, no newer than what is there, and never back.
        ensure!((committed..=begun).contains(&version), "version {version} is none of {committed} to {begun}");
        ensure!(version >= last, "version {version} after {last}");
        (asked, last) = (asked + 1, version);
        seen.insert(version);
        if asked % 10 == 0 {
            // Whoever is passed on gets through, whichever version decides.
            ensure!(spread(1, &balanced(server))? == BTreeMap::from([(node(2), 1)]));
        }
    }
    Ok(())
}

/// Name, address and port of each network address.
fn addresses(server: &Server) -> Result<BTreeMap<String, u16>> {
    let rows = server.admin()?.query("SELECT name, port FROM network_addresses")?;
    rows.into_iter()
        .map(|row| match row.as_slice() {
            [Some(name), Some(port)] => Ok((name.clone(), port.parse()?)),
            other => bail!("{other:?}"),
        })
        .collect()
}

fn network_addresses_follow() -> Result<()> {
    let mut server = crate::options().store(Store::Redb).quickstart().start()?;
    let before = server.port();
    server.admin()?.query(&format!(
        "CREATE NETWORK ADDRESS \"Behind a \"\"router\"\"\" ON {} WITH '192.0.2.1' PORT {};
         CREATE NETWORK ADDRESS other ON {0} WITH '127.0.0.1' PORT 7 DISABLED;
         CREATE NETWORK ADDRESS \"an \"\"odd\"\" name\" ON {0} WITH '127.0.0.1' PORT {1} DISABLED;",
        node(1),
        server.port(),
    ))?;
    ensure!(server.terminate()? == 0);
    server.restart()?;
    let [first, second, third] = *server.ports() else { bail!("{:?}", server.ports()) };
    let mut expected = BTreeMap::from([
        ("address1".to_owned(), first),
        ("address2".to_owned(), second),
        ("address3".to_owned(), third),
        ("an \"odd\" name".to_owned(), first),
        ("other".to_owned(), 7),
        // It is a router's port, and no member's.
        ("Behind a \"router\"".to_owned(), before),
    ]);
    let found = addresses(&server)?;
    if found.contains_key("address1_v6") {
        expected.extend(
            [first, second, third].iter().zip(1..).map(|(port, number)| (format!("address{number}_v6"), *port)),
        );
    }
    ensure!(found == expected, "{found:?} and not {expected:?}");
    let mut ports = BTreeSet::new();
    for _ in 0..3 {
        ports.insert(told(Ipv4Addr::LOCALHOST, server.port())?.context("told to stay")?);
    }
    ensure!(ports == BTreeSet::from([first, second, third]), "{ports:?}");
    ensure!(spread(6, &balanced(&server))?.len() == 3);
    let rows = server.admin()?.query("SELECT 1 FROM network_addresses WHERE NOT is_enabled")?;
    ensure!(rows.len() == 2, "{rows:?}");
    server.finish()
}

fn network_addresses_that_may_not_follow() -> Result<()> {
    let mut server = crate::options().store(Store::Redb).quickstart().start()?;
    let before = addresses(&server)?;
    server.admin()?.query("ALTER DATABASE DEFAULT SET allow_loopback_addresses = off")?;
    ensure!(server.terminate()? == 0);
    server.restart()?;
    ensure!(addresses(&server)? == before);
    server.wait_for_log("network addresses still name the ports of the last start")?;
    server.finish()
}

/// A quickstart, and what it printed.
struct Quickstart {
    process: std::process::Child,
    lines: Vec<String>,
}

impl Drop for Quickstart {
    fn drop(&mut self) {
        // A test that failed: the process must not outlive it.
        let _gone = self.process.kill();
        let _reaped = self.process.wait();
    }
}

/// A quickstart on the files of a server that has ended.
fn quickstart_on(server: &Server) -> Result<Quickstart> {
    let folder = server.data_directory();
    let folder = folder.to_str().context("a path that is not UTF-8")?;
    let process = server
        .command(&["quickstart", "--port", "0", "--data-dir", folder])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut started = Quickstart { process, lines: Vec::new() };
    let output = started.process.stdout.take().context("no standard output")?;
    for line in BufReader::new(output).lines() {
        let line = line?;
        let last = line.starts_with("Ctrl-C");
        started.lines.push(line);
        if last {
            return Ok(started);
        }
    }
    bail!("it ended after {:?}", started.lines)
}

impl Quickstart {
    fn port(&self) -> Result<u16> {
        let line = self.lines.iter().find_map(|line| line.strip_prefix("listening on 127.0.0.1:"));
        Ok(line.context("no ready line")?.parse()?)
    }

    /// Ends it in good order.
    fn end(mut self) -> Result<()> {
        let id = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(id, rustix::process::Signal::TERM)?;
        let status = self.process.wait()?;
        ensure!(status.success(), "{status}");
        Ok(())
    }
}

/// Runs every command and statement that is printed.
fn advice_works() -> Result<()> {
    let mut server = crate::options().store(Store::Redb).quickstart().start()?;
    ensure!(server.terminate()? == 0);
    let started = quickstart_on(&server)?;
    let lines = &started.lines;
    let told: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("  ")).collect();
    ensure!(told.len() == 7, "{lines:?}");
    let mut admin = Client::connect(&Login::new(started.port()?, ADMIN, ""))?;
    let (mut commands, mut statements) = (0, 0);
    for line in told {
        if let Some((statement, _)) = line.split_once(';') {
            let rows = admin.query(statement)?;
            ensure!(!rows.is_empty(), "{statement}: no rows");
            statements += 1;
            continue;
        }
        let (command, _) = line.split_once("  ").unwrap_or((line, ""));
        let command = if command.contains(" -c '") { command.to_owned() } else { format!("{command} -c 'SELECT 1'") };
        let output = Command::new("sh").args(["-c", &format!("{command} --no-password")]).output()?;
        ensure!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        commands += 1;
    }
    ensure!((commands, statements) == (2, 5));
    ensure!(lines.iter().any(|line| line.contains("dbadmin needs no password from this machine.")), "{lines:?}");
    drop(admin);
    started.end()
}

fn a_catalog_of_serve_is_taken() -> Result<()> {
    let mut server = crate::options().store(Store::Redb).start()?;
    server.admin()?.query("CREATE SUBCLUSTER mine")?;
    ensure!(server.terminate()? == 0);
    let started = quickstart_on(&server)?;
    let text = started.lines.join("\n");
    ensure!(text.contains("dbadmin logs in with its password."), "{text}");
    ensure!(text.contains("Nothing in this catalog sends connections from this machine to another member."), "{text}");
    ensure!(!text.contains("needs no password") && !text.contains("PGOPTIONS"), "{text}");
    let port = started.port()?;
    let refused = Client::connect(&Login::new(port, ADMIN, "")).err().context("anybody is let in")?;
    ensure!(refused.downcast_ref::<Refused>().is_some_and(|refused| refused.0.code == "28P01"), "{refused:#}");
    let login = Login::new(port, ADMIN, ADMIN_PASSWORD).parameter("connection_load_balance", "on");
    ensure!(spread(3, &login)? == BTreeMap::from([(node(1), 3)]));
    let mut admin = Client::connect(&login)?;
    let nodes = admin.query("SELECT node_name, node_state FROM nodes ORDER BY node_name")?;
    let mut expected = vec![vec![Some(switchyard_testkit::NODE.to_owned()), Some("DOWN".to_owned())]];
    expected.extend([1, 2, 3].map(|number| vec![Some(node(number)), Some("UP".to_owned())]));
    ensure!(nodes == expected, "{nodes:?}");
    ensure!(admin.query("SELECT 1 FROM subclusters WHERE subcluster_name = 'mine'")?.len() == 1);
    ensure!(admin.query("SELECT 1 FROM routing_rules")?.is_empty(), "samples were made");
    drop(admin);
    started.end()
}
