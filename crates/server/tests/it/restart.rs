//! What was acknowledged is there after a crash, and nothing is there by half.

use std::collections::BTreeSet;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;

use anyhow::{Context, ensure};
use libtest_mimic::Trial;
use switchyard_testkit::{Client, Protocol, Server};

/// How often the server is killed.
const ROUNDS: usize = 200;
/// How many sessions commit at the same time.
const WRITERS: usize = 3;

pub fn trials() -> Vec<Trial> {
    vec![
        crate::trial("nothing_acknowledged_is_lost_to_a_kill", nothing_acknowledged_is_lost_to_a_kill),
        crate::trial("a_restart_keeps_the_catalog", a_restart_keeps_the_catalog),
    ]
}

fn nothing_acknowledged_is_lost_to_a_kill() -> anyhow::Result<()> {
    let mut server = crate::options().start()?;
    let mut acknowledged = BTreeSet::new();
    for round in 0..ROUNDS {
        let in_round = one_round(&mut server, round).with_context(|| format!("round {round}"))?;
        server.restart().with_context(|| format!("after round {round}"))?;
        let there = names(&server, &format!("r{round}_%"))?;
        check(&in_round, &there).with_context(|| format!("after round {round}"))?;
        acknowledged.extend(in_round);
    }
    check(&acknowledged, &names(&server, "r%")?).context("after the last round")?;
    ensure!(acknowledged.len() > ROUNDS, "only {} transactions were acknowledged", acknowledged.len());
    server.finish()
}

/// Lets the writers commit, kills the server after some acknowledgements, and gives what was acknowledged.
fn one_round(server: &mut Server, round: usize) -> anyhow::Result<BTreeSet<String>> {
    let (sender, receiver) = mpsc::channel();
    // All are logged in before one commits: the server must not be killed in the middle of a login.
    let clients = (0..WRITERS).map(|_| server.admin()).collect::<anyhow::Result<Vec<Client>>>()?;
    let start = |(writer, client): (usize, Client)| -> JoinHandle<anyhow::Result<()>> {
        let sender = sender.clone();
        std::thread::spawn(move || write(client, &format!("r{round}_w{writer}"), &sender))
    };
    let writers: Vec<_> = clients.into_iter().enumerate().map(start).collect();
    drop(sender);
    // A different moment in every round, at which all writers are in the middle of something.
    let mut acknowledged = take(&receiver, 2 + round % 9);
    server.kill()?;
    for writer in writers {
        writer.join().map_err(|_| anyhow::anyhow!("a writer panicked"))??;
    }
    acknowledged.extend(receiver.iter());
    ensure!(!acknowledged.is_empty(), "nothing was acknowledged before the server was killed");
    Ok(acknowledged)
}

fn take(receiver: &Receiver<String>, count: usize) -> BTreeSet<String> {
    receiver.iter().take(count).collect()
}

/// Commits pairs until the connection breaks.
fn write(mut client: Client, prefix: &str, acknowledged: &Sender<String>) -> anyhow::Result<()> {
    for number in 0.. {
        let name = format!("{prefix}_{number}");
        let text = format!("BEGIN; CREATE SUBCLUSTER {name}_a; CREATE SUBCLUSTER {name}_b; COMMIT");
        let Ok(outcome) = client.run(&text, Protocol::Simple) else { return Ok(()) };
        match outcome.code() {
            None => acknowledged.send(name)?,
            // Another writer was faster: the transaction did not happen, and the next one may.
            Some("40001") => {}
            // The server may say that it goes down.
            Some("57P01") => return Ok(()),
            Some(_) => anyhow::bail!("{text}: {outcome:?}"),
        }
        if outcome.status == 'E' && client.query("ROLLBACK").is_err() {
            return Ok(());
        }
    }
    Ok(())
}

fn names(server: &Server, pattern: &str) -> anyhow::Result<BTreeSet<String>> {
    let sql = format!("SELECT subcluster_name FROM subclusters WHERE subcluster_name LIKE '{pattern}'");
    Ok(server.admin()?.query(&sql)?.into_iter().flatten().flatten().collect())
}

fn check(acknowledged: &BTreeSet<String>, there: &BTreeSet<String>) -> anyhow::Result<()> {
    for name in acknowledged {
        ensure!(there.contains(&format!("{name}_a")), "{name} was acknowledged and is lost");
    }
    for half in there {
        let (name, side) = half.rsplit_once('_').context("a name nobody gave")?;
        let other = format!("{name}_{}", if side == "a" { "b" } else { "a" });
        ensure!(there.contains(&other), "{half} is there without {other}");
    }
    Ok(())
}

fn a_restart_keeps_the_catalog() -> anyhow::Result<()> {
    let mut server = crate::options().start()?;
    let statements = "CREATE SUBCLUSTER kept; CREATE NODE pg1 WITH '10.0.0.1' PORT 5432 SUBCLUSTER kept;\
                      CREATE NETWORK ADDRESS a ON pg1 WITH '10.0.0.1'; CREATE LOAD BALANCE GROUP g WITH ADDRESS a;\
                      CREATE ROUTING RULE r ROUTE '10.0.0.0/8' TO g; CREATE USER mira IDENTIFIED BY 'pw-mira'";
    server.admin()?.query(statements)?;
    let questions = [
        "SELECT name, policy, type, object_name FROM load_balance_groups",
        "SELECT name, source_address, destination_name FROM routing_rules",
        "SELECT name, node, address, port, is_enabled FROM network_addresses",
        "SELECT subcluster_name, node_name FROM subclusters ORDER BY 1, 2",
        // A member that comes back on another port joins anew, which the history tells in a comment.
        "SELECT version, user_name, statement FROM switchyard.catalog_history WHERE statement NOT LIKE '--%' ORDER BY 1",
    ];
    let ask = |server: &Server| {
        let mut client = server.admin()?;
        questions.iter().map(|question| client.query(question)).collect::<anyhow::Result<Vec<_>>>()
    };
    let before = ask(&server)?;
    server.kill()?;
    server.restart()?;
    let after = ask(&server)?;
    ensure!(before == after, "{before:?}\nbecame\n{after:?}");
    server.client("mira", "pw-mira")?.close()?;
    server.finish()
}
