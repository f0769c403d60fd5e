//! The binary's contract: ready line, exit codes, first start, dump.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use anyhow::{Context, ensure};
use libtest_mimic::Trial;
use switchyard_testkit::{Server, psql};

pub fn trials() -> Vec<Trial> {
    vec![
        crate::trial("sigterm_ends_with_zero", sigterm_ends_with_zero),
        crate::trial("a_first_start_makes_a_password_for_its_owner_alone", first_start_makes_a_password),
        crate::trial("a_password_is_only_set_once", a_password_is_only_set_once),
        crate::trial("a_locked_store_is_refused", a_locked_store_is_refused),
        crate::trial("a_damaged_store_is_refused_and_kept", a_damaged_store_is_refused_and_kept),
        crate::trial("misuse_ends_with_64", misuse_ends_with_64),
        crate::trial("a_dump_makes_the_same_catalog", a_dump_makes_the_same_catalog),
        crate::trial("no_secret_is_shown", no_secret_is_shown),
    ]
}

fn sigterm_ends_with_zero() -> anyhow::Result<()> {
    let mut server = crate::options().start()?;
    server.admin()?.query("SELECT 1")?;
    let code = server.terminate()?;
    ensure!(code == 0, "exit code {code}");
    server.check_log()
}

fn first_start_makes_a_password() -> anyhow::Result<()> {
    let server = crate::options().no_password().start()?;
    let file = std::fs::read_dir(server.data_directory())?
        .filter_map(Result::ok)
        .find(|entry| entry.file_name().to_string_lossy().contains("password"))
        .context("no file with the password")?;
    let mode = file.metadata()?.permissions().mode() & 0o777;
    ensure!(mode == 0o600, "mode {mode:o}");
    let password = std::fs::read_to_string(file.path())?;
    server.client("dbadmin", password.trim())?.query("SELECT 1")?;
    ensure!(!server.log()?.contains(password.trim()), "the password is in the log");
    server.finish()
}

fn a_password_is_only_set_once() -> anyhow::Result<()> {
    let mut server = crate::options().start()?;
    server.admin()?.query("ALTER USER dbadmin IDENTIFIED BY 'another'")?;
    server.terminate()?;
    server.restart()?;
    ensure!(server.admin().is_err(), "SWITCHYARD_PASSWORD set the password of an existing user");
    server.client("dbadmin", "another")?.query("SELECT 1")?;
    server.finish()
}

fn serve_again(server: &Server) -> anyhow::Result<std::process::Output> {
    let data = server.data_directory();
    let data = data.to_str().context("a path that is not UTF-8")?;
    Ok(server.command(&["serve", "--listen", "127.0.0.1:0", "--data-dir", data]).output()?)
}

fn a_locked_store_is_refused() -> anyhow::Result<()> {
    let server = crate::options().start()?;
    let second = serve_again(&server)?;
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    ensure!(!second.status.success(), "two servers on one file");
    ensure!(said.contains("another process") || said.contains("in use") || said.contains("locked"), "{said}");
    server.finish()
}

fn a_damaged_store_is_refused_and_kept() -> anyhow::Result<()> {
    let mut server = crate::options().start()?;
    server.terminate()?;
    let file = std::fs::read_dir(server.data_directory())?
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|ending| ending == "redb"))
        .context("no .redb file")?;
    std::fs::write(&file, b"not a catalog at all")?;
    let ran = serve_again(&server)?;
    ensure!(!ran.status.success(), "a damaged file was taken");
    ensure!(!String::from_utf8_lossy(&ran.stderr).contains("panicked"), "{}", String::from_utf8_lossy(&ran.stderr));
    ensure!(std::fs::read(&file)? == b"not a catalog at all", "the damaged file was written over");
    Ok(())
}

fn misuse_ends_with_64() -> anyhow::Result<()> {
    for arguments in [&["sevre"][..], &["serve", "--lissten", "127.0.0.1:0"], &["serve", "--listen", "nowhere"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_switchyard")).args(arguments).output()?;
        ensure!(output.status.code() == Some(64), "{arguments:?} ended with {:?}", output.status);
        ensure!(!output.stderr.is_empty(), "{arguments:?} said nothing");
    }
    let output = Command::new(env!("CARGO_BIN_EXE_switchyard")).args(["serve", "--lissten", "x"]).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(said.contains("--listen"), "no suggestion in {said}");
    Ok(())
}

const CATALOG: &str = "
CREATE SUBCLUSTER reporting; CREATE SUBCLUSTER \"Odd name\" PRIMARY;
CREATE NODE pg4 WITH '10.0.0.14' PORT 5432 SUBCLUSTER reporting;
CREATE NODE pg5 WITH 'db.example.com' SUBCLUSTER \"Odd name\";
CREATE NETWORK ADDRESS a4 ON pg4 WITH '10.0.0.14' PORT 5432;
CREATE NETWORK ADDRESS a5 ON pg5 WITH '2001:db8::5' DISABLED;
CREATE FAULT GROUP rack; ALTER FAULT GROUP rack ADD NODE pg4;
CREATE LOAD BALANCE GROUP g WITH ADDRESS a4, a5 POLICY 'RANDOM';
CREATE LOAD BALANCE GROUP f WITH FAULT GROUP rack FILTER '10.0.0.0/8';
CREATE ROUTING RULE lan ROUTE '10.0.0.0/8' TO g;
CREATE ROUTING RULE ROUTE WORKLOAD nightly TO SUBCLUSTER reporting, \"Odd name\" PRIORITY 4;
CREATE ROLE etl; CREATE USER mira IDENTIFIED BY 'pw-mira' MAXCONNECTIONS 3 ON NODE;
GRANT etl TO mira WITH ADMIN OPTION; ALTER USER mira DEFAULT ROLE etl;
GRANT USAGE ON WORKLOAD nightly TO etl;
CREATE AUTHENTICATION from_lan METHOD 'hash' HOST '10.0.0.0/8'; GRANT AUTHENTICATION from_lan TO mira;
CREATE SUBNET private WITH '10.0.0.0'; ALTER DATABASE switchyard EXPORT ON private;
SELECT SET_LOAD_BALANCE_POLICY('ROUNDROBIN');
CALL hg_create_table_group('tg', 4);
ALTER DATABASE switchyard SET MaxClientSessions = 77;
";

pub(crate) fn dump(server: &Server) -> anyhow::Result<String> {
    let data = server.data_directory();
    let data = data.to_str().context("a path that is not UTF-8")?;
    let output = server.command(&["dump", "--data-dir", data]).output()?;
    ensure!(output.status.success(), "dump failed: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

fn a_dump_makes_the_same_catalog() -> anyhow::Result<()> {
    let mut first = crate::options().start()?;
    let ran = psql(&first, &["-v", "ON_ERROR_STOP=1", "--quiet"], CATALOG)?;
    ensure!(ran.code == Some(0), "{}", ran.stderr);
    first.terminate()?;
    let script = dump(&first)?;
    ensure!(!script.contains("pw-mira"), "a password is in the dump");

    let mut second = crate::options().start()?;
    let ran = psql(&second, &["-v", "ON_ERROR_STOP=1", "--quiet"], &script)?;
    ensure!(ran.code == Some(0), "the dump does not apply: {}\n{script}", ran.stderr);
    second.client("mira", "pw-mira").context("the verifier was not carried over")?.close()?;
    second.terminate()?;
    let again = dump(&second)?;
    // Where the member itself is, its own process says.
    let port = |server: &Server| format!("PORT {};", server.port());
    let again = again.replace(&port(&second), &port(&first));
    ensure!(again == script, "dumped again:\n{again}\nis not\n{script}");
    Ok(())
}

fn no_secret_is_shown() -> anyhow::Result<()> {
    let secret = "xyzzy-plugh";
    let server = crate::options().variable("RUST_LOG", "info").start()?;
    let mut client = server.admin()?;
    client.query(&format!("CREATE USER mira IDENTIFIED BY '{secret}'"))?;
    client.query(&format!("ALTER USER mira IDENTIFIED BY '{secret}2' REPLACE '{secret}'"))?;
    client.query(&format!("CREATE USER MAPPING FOR mira OPTIONS (user 'm', password '{secret}')"))?;
    let wrong =
        client.run(&format!("CREATE USER mira IDENTIFIED BY '{secret}'"), switchyard_testkit::Protocol::Simple)?;
    ensure!(!format!("{wrong:?}").contains(secret), "{wrong:?}");
    let rows = client.query("SELECT * FROM switchyard.catalog_history")?;
    let history = format!("{rows:?}");
    ensure!(history.contains("CREATE USER"), "{history}");
    ensure!(!history.contains(secret), "{history}");
    ensure!(!server.log()?.contains(secret), "the log has it");
    client.close()?;
    server.finish()
}
