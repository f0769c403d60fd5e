//! Tests of the running server: every test starts one of its own.
//!
//! `cargo test -p switchyard-server --test it -- NAME` runs those whose name contains NAME. With
//! `SWITCHYARD_TEST_REWRITE=1`, the files of SQL are rewritten to what the server answers.

#[path = "it/access.rs"]
mod access;
#[path = "it/attacks.rs"]
mod attacks;
#[path = "it/balanced.rs"]
mod balanced;
#[path = "it/chaos.rs"]
mod chaos;
#[path = "it/client.rs"]
mod client;
#[path = "it/cluster.rs"]
mod cluster;
#[path = "it/command_line.rs"]
mod command_line;
#[path = "it/differential.rs"]
mod differential;
#[path = "it/docker.rs"]
mod docker;
#[path = "it/driver.rs"]
mod driver;
#[path = "it/etcds.rs"]
mod etcds;
#[path = "it/families.rs"]
mod families;
#[path = "it/files.rs"]
mod files;
#[path = "it/fleet.rs"]
mod fleet;
#[path = "it/health.rs"]
mod health;
#[path = "it/http.rs"]
mod http;
#[path = "it/jdbc.rs"]
mod jdbc;
#[path = "it/limits.rs"]
mod limits;
#[path = "it/links.rs"]
mod links;
#[path = "it/members.rs"]
mod members;
#[path = "it/node.rs"]
mod node;
#[path = "it/pipeline.rs"]
mod pipeline;
#[path = "it/protocol.rs"]
mod protocol;
#[path = "it/psql.rs"]
mod psql;
#[path = "it/python.rs"]
mod python;
#[path = "it/quickstart.rs"]
mod quickstart;
#[path = "it/reports.rs"]
mod reports;
#[path = "it/restart.rs"]
mod restart;
#[path = "it/rights.rs"]
mod rights;
#[path = "it/upstreams.rs"]
mod upstreams;
#[path = "it/vertica.rs"]
mod vertica;
#[path = "it/waits.rs"]
mod waits;

use libtest_mimic::{Arguments, Failed, Trial};
use switchyard_testkit::{Server, ServerOptions, Store};

fn main() -> anyhow::Result<()> {
    let mut arguments = Arguments::from_args();
    if arguments.test_threads.is_none() {
        // A test mostly waits for its server, which uses a core of its own.
        arguments.test_threads = std::thread::available_parallelism().ok().map(|cores| cores.get() + 1);
    }
    // What takes longest begins first, and goes on beside the others.
    let mut trials = chaos::trials();
    trials.extend(links::trials());
    trials.extend(files::trials()?);
    trials.extend(families::trials());
    trials.extend(access::trials());
    trials.extend(attacks::trials());
    trials.extend(balanced::trials());
    trials.extend(cluster::trials());
    trials.extend(command_line::trials());
    trials.extend(differential::trials());
    trials.extend(docker::trials());
    trials.extend(driver::trials());
    trials.extend(etcds::trials());
    trials.extend(health::trials());
    trials.extend(http::trials());
    trials.extend(jdbc::trials());
    trials.extend(limits::trials());
    trials.extend(node::trials());
    trials.extend(pipeline::trials());
    trials.extend(protocol::trials());
    trials.extend(psql::trials());
    trials.extend(python::trials());
    trials.extend(members::trials());
    trials.extend(quickstart::trials());
    trials.extend(reports::trials());
    trials.extend(restart::trials());
    trials.extend(rights::trials());
    trials.extend(upstreams::trials()?);
    trials.extend(vertica::trials());
    trials.extend(waits::trials());
    let conclusion = libtest_mimic::run(&arguments, trials);
    upstreams::end();
    conclusion.exit()
}

/// A server with a durable store.
fn options() -> ServerOptions {
    ServerOptions::new(env!("CARGO_BIN_EXE_switchyard"))
}

/// A test that gets a server in memory, which must end in good order afterwards.
fn with_server(name: &str, test: fn(&Server) -> anyhow::Result<()>) -> Trial {
    trial(name, move || {
        let server = options().store(Store::Memory).start()?;
        test(&server)?;
        server.finish()
    })
}

/// The same with three members in one process.
fn with_cluster(name: &str, test: fn(&Server) -> anyhow::Result<()>) -> Trial {
    trial(name, move || {
        let server = options().store(Store::Memory).quickstart().start()?;
        test(&server)?;
        server.finish()
    })
}

/// A test whose error is shown with all its causes.
fn trial(name: &str, test: impl FnOnce() -> anyhow::Result<()> + Send + 'static) -> Trial {
    Trial::test(name, move || test().map_err(|error| Failed::from(format!("{error:#}"))))
}
