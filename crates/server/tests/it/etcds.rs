//! etcd as operators run it: three that lose their leader, one that is full, one that asks who somebody is, one with what is
//! not ours in it.

use anyhow::{Context, Result, bail, ensure};
use libtest_mimic::Trial;
use switchyard_testkit::{Authority, Client, Etcd, Protocol, Server};

use crate::fleet::{PATIENCE, one, options, until, wait_for, wait_for_all};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        crate::trial("three_etcds_lose_their_leader", three_etcds_lose_their_leader),
        crate::trial("a_full_etcd_refuses_commits_and_nothing_else", a_full_etcd),
        crate::trial("etcd_asks_for_certificates_and_passwords", etcd_asks_who_it_is),
        crate::trial("what_is_not_ours_in_etcd_does_no_harm", what_is_not_ours),
    ]
}

/// Two members with these endpoints.
fn two(endpoints: &str) -> Result<[Server; 2]> {
    let start = |name: &str| {
        let options = crate::options().member_at(endpoints, name).argument("--drain-ms-max").argument("0");
        options.argument("--etcd-time-ms-max").argument("2000").start()
    };
    Ok([start("north")?, start("east")?])
}

/// Commits as soon as that is possible.
fn commits(client: &mut Client, statement: &str) -> Result<()> {
    until(&format!("{statement} is refused"), || {
        let outcome = client.run(statement, Protocol::Simple)?;
        let code = outcome.code().map(str::to_owned);
        // What got lost may have been done.
        ensure!(code.as_deref().is_none_or(|code| ["58030", "08007", "42710"].contains(&code)), "{outcome:?}");
        Ok(code.is_none_or(|code| code == "42710"))
    })
}

fn has(client: &mut Client, subcluster: &str) -> Result<()> {
    let query = format!(
        "SELECT count(*)::varchar FROM catalog_history WHERE statement LIKE '% {subcluster}' AND outcome = 'committed'"
    );
    wait_for(client, &query, "1")
}

fn three_etcds_lose_their_leader() -> Result<()> {
    let mut etcds = Etcd::three()?;
    let endpoints: Vec<String> = etcds.iter().map(Etcd::url).collect();
    let servers = two(&endpoints.join(","))?;
    let [mut north, mut east] = [servers[0].admin()?, servers[1].admin()?];
    wait_for(&mut north, "SELECT count(*)::varchar FROM nodes WHERE node_state = 'UP'", "2")?;
    // One of them leads.
    for (number, etcd) in etcds.iter_mut().enumerate() {
        etcd.kill()?;
        commits(&mut north, &format!("CREATE SUBCLUSTER by_north_{number}"))?;
        commits(&mut east, &format!("CREATE SUBCLUSTER by_east_{number}"))?;
        etcd.run()?;
        has(&mut east, &format!("by_north_{number}"))?;
        has(&mut north, &format!("by_east_{number}"))?;
    }
    // Without a majority nothing is committed, and everything else goes on.
    let [first, second, _] = &mut etcds;
    first.kill()?;
    second.kill()?;
    let refused = north.run("CREATE SUBCLUSTER by_nobody", Protocol::Simple)?;
    ensure!(matches!(refused.code(), Some("58030" | "08007")), "{refused:?}");
    servers[1].admin()?.query("SELECT 1")?;
    first.run()?;
    commits(&mut north, "CREATE SUBCLUSTER by_two_of_three")?;
    has(&mut east, "by_two_of_three")?;
    second.run()?;
    for mut server in servers {
        server.expect_error("commit failed");
        server.finish()?;
    }
    Ok(())
}

fn a_full_etcd() -> Result<()> {
    let etcd = Etcd::start_with(&["--quota-backend-bytes=4194304"])?;
    let servers = two(&etcd.url())?;
    let [mut north, mut east] = [servers[0].admin()?, servers[1].admin()?];
    let filler = "x".repeat(100_000);
    let full = (0..200).any(|number| etcd.control(&["put", &format!("/filler/{number}"), &filler]).is_err());
    ensure!(full, "etcd does not become full");
    let refused = north.run("CREATE SUBCLUSTER too_much", Protocol::Simple)?.error.context("committed")?;
    ensure!(refused.code == "58030", "{refused:?}");
    ensure!(refused.detail.as_deref().is_some_and(|detail| detail.contains("database space exceeded")), "{refused:?}");
    // Nobody is taken for dead, and logins go on.
    for server in &servers {
        let mut admin = server.admin()?;
        let up = "SELECT count(*)::varchar FROM nodes WHERE node_state = 'UP'";
        ensure!(one(&mut admin, up)?.as_deref() == Some("2"));
    }
    // As docs/operations.md says: compact, defragment, disarm.
    etcd.control(&["del", "/filler/", "--prefix"])?;
    let status = etcd.control(&["endpoint", "status", "--write-out=json"])?;
    let revision =
        status.split("\"revision\":").nth(1).and_then(|rest| rest.split([',', '}']).next()).context("none")?;
    etcd.control(&["compact", revision])?;
    etcd.control(&["defrag"])?;
    etcd.control(&["alarm", "disarm"])?;
    commits(&mut north, "CREATE SUBCLUSTER enough")?;
    has(&mut east, "enough")?;
    for mut server in servers {
        server.expect_error("commit failed");
        server.finish()?;
    }
    Ok(())
}

fn etcd_asks_who_it_is() -> Result<()> {
    let authority = Authority::new()?;
    authority.certify("client", "client")?;
    let etcd = Etcd::start_secured(&authority)?;
    let file = |name: &str| authority.path(name).display().to_string();
    let (ca, certificate, key) = (file("ca.crt"), file("client.crt"), file("client.key"));
    let control = |arguments: &[&str]| {
        etcd.control(&[&["--cacert", &ca, "--cert", &certificate, "--key", &key][..], arguments].concat())
    };
    for arguments in [
        &["user", "add", "root:secret of root"][..],
        &["user", "grant-role", "root", "root"],
        &["role", "add", "fleet"],
        &["role", "grant-permission", "fleet", "--prefix=true", "readwrite", "/switchyard/"],
        &["user", "add", "fleet:secret of the fleet"],
        &["user", "grant-role", "fleet", "fleet"],
        &["auth", "enable"],
    ] {
        control(arguments)?;
    }
    let member = |name: &str, password: &str| {
        let options =
            options(&etcd, name).argument("--etcd-ca").argument(&ca).argument("--etcd-user").argument("fleet");
        let options =
            options.argument("--etcd-certificate").argument(&certificate).argument("--etcd-key").argument(&key);
        options.variable("SWITCHYARD_ETCD_PASSWORD", password)
    };
    let north = member("north", "secret of the fleet").start()?;
    let east = member("east", "secret of the fleet").start()?;
    north.admin()?.query("CREATE SUBCLUSTER by_whoever_is_known")?;
    has(&mut east.admin()?, "by_whoever_is_known")?;
    let refused = |options: switchyard_testkit::ServerOptions| match options.start() {
        Ok(_) => bail!("let in"),
        Err(error) => Ok(format!("{error:#}")),
    };
    let said = refused(member("south", "a guess"))?;
    ensure!(said.contains("authentication failed") && !said.contains("a guess"), "{said}");
    let stranger = Authority::new()?;
    let other = stranger.path("ca.crt").display().to_string();
    let said = refused(options(&etcd, "south").argument("--etcd-ca").argument(other))?;
    ensure!(said.contains("etcd"), "{said}");
    north.finish()?;
    east.finish()
}

fn what_is_not_ours() -> Result<()> {
    let etcd = Etcd::start()?;
    let servers = two(&etcd.url())?;
    let [mut north, mut east] = [servers[0].admin()?, servers[1].admin()?];
    for (key, value) in [
        ("/switchyard/members/alien", "no member"),
        ("/switchyard/members/north-2", "{\"name\": 7}"),
        ("/switchyard/connections/x/y", "nobody"),
        ("/switchyard/of-somebody-else", "anything"),
        ("/switchyardish/head", "another cluster's"),
    ] {
        etcd.control(&["put", key, value])?;
    }
    commits(&mut north, "CREATE SUBCLUSTER in_spite_of_it")?;
    has(&mut east, "in_spite_of_it")?;
    let third = options(&etcd, "south").start()?;
    wait_for_all(&mut north)?;
    has(&mut third.admin()?, "in_spite_of_it")?;
    third.finish()?;
    // What is somebody else's where ours should be is named, and left alone.
    etcd.control(&["put", "/busy/head", "somebody else's"])?;
    let Err(refused) = options(&etcd, "only").argument("--etcd-prefix").argument("/busy").start() else {
        bail!("started on what is not ours")
    };
    let refused = format!("{refused:#}");
    ensure!(refused.contains("/busy/head"), "{refused} within {PATIENCE:?}");
    ensure!(etcd.control(&["get", "/busy/head"])?.contains("somebody else's"));
    servers.into_iter().try_for_each(Server::finish)
}
