//! Who gets in, and who does not: psql and psycopg against real certificates.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use libtest_mimic::Trial;
use switchyard_testkit::{ADMIN, ADMIN_PASSWORD, Authority, DATABASE, Server, Store, psql_with};

/// A change of a file is seen within this time; mostly within a second.
const SEEN_WITHIN: Duration = Duration::from_secs(30);

pub fn trials() -> Vec<Trial> {
    vec![
        crate::trial("psql_verifies_the_server_and_binds_its_proof", psql_verifies_and_binds),
        crate::trial("psycopg_binds_its_proof", psycopg_binds),
        crate::trial("a_certificate_logs_in_who_it_names", a_certificate_logs_in_who_it_names),
        crate::trial("a_record_for_tls_is_for_tls", a_record_for_tls_is_for_tls),
        crate::trial("a_new_certificate_is_shown_without_a_restart", a_new_certificate_is_shown),
        crate::trial("bad_tls_files_are_refused_at_start", bad_files_are_refused),
        crate::trial("half_open_connections_keep_nobody_out", half_open_connections),
        crate::trial("failed_logins_wait", failed_logins_wait),
    ]
}

/// A server with certificates, for clients with and without.
pub fn secured(authority: &Authority) -> anyhow::Result<Server> {
    authority.certify("server", "server")?;
    start(authority)
}

fn start(authority: &Authority) -> anyhow::Result<Server> {
    let path = |file: &str| authority.path(file).display().to_string();
    crate::options()
        .store(Store::Memory)
        .argument("--tls-certificate")
        .argument(path("server.crt"))
        .argument("--tls-key")
        .argument(path("server.key"))
        .argument("--tls-client-ca")
        .argument(path("ca.crt"))
        .start()
}

/// What libpq connects with; a later word overrides an earlier one.
fn connection(server: &Server, authority: &Authority, more: &str) -> String {
    let root = authority.path("ca.crt").display().to_string();
    format!(
        "host=127.0.0.1 port={} user={ADMIN} dbname={DATABASE} sslmode=verify-full sslrootcert={root} {more}",
        server.port()
    )
}

/// What one statement gives.
fn answer(server: &Server, authority: &Authority, more: &str, statement: &str) -> anyhow::Result<String> {
    let ran = psql_with(&connection(server, authority, more), statement)?;
    ensure!(ran.code == Some(0), "{more}: {ran:?}");
    Ok(ran.stdout.trim().to_owned())
}

/// Why psql could not connect.
fn refusal(server: &Server, authority: &Authority, more: &str) -> anyhow::Result<String> {
    let ran = psql_with(&connection(server, authority, more), "SELECT 1")?;
    ensure!(ran.code == Some(2), "{more} was let in: {ran:?}");
    Ok(ran.stderr)
}

const OWN: &str = "SELECT ssl_state, authentication_method, client_authentication_name, client_authentication = auth_oid \
                   FROM sessions JOIN client_auth ON auth_name = client_authentication_name \
                   WHERE session_id = (SELECT session_id FROM current_session)";

fn psql_verifies_and_binds() -> anyhow::Result<()> {
    let authority = Authority::new()?;
    let server = secured(&authority)?;
    for binding in ["require", "prefer", "disable"] {
        let own = answer(&server, &authority, &format!("channel_binding={binding}"), OWN)?;
        ensure!(own == "Server|hash|default_host_v4|t", "{own}");
    }
    let own = answer(&server, &authority, "sslmode=disable", OWN)?;
    ensure!(own == "None|hash|default_host_v4|t", "{own}");
    // The password alone is not enough where libpq wants the channel bound: it is not without TLS.
    let refused = refusal(&server, &authority, "sslmode=disable channel_binding=require")?;
    ensure!(refused.contains("channel binding"), "{refused}");
    let refused = refusal(&server, &authority, "password=wrong channel_binding=require")?;
    ensure!(refused.contains(&format!("password authentication failed for user \"{ADMIN}\"")), "{refused}");
    let other = Authority::new()?;
    let refused = refusal(&server, &other, "")?;
    ensure!(refused.contains("SSL error"), "{refused}");
    for version in ["TLSv1.2", "TLSv1.3"] {
        let only = format!("ssl_min_protocol_version={version} ssl_max_protocol_version={version}");
        ensure!(answer(&server, &authority, &only, "SELECT 1")? == "1", "{version}");
    }
    server.finish()
}

fn psycopg_binds() -> anyhow::Result<()> {
    let authority = Authority::new()?;
    let server = secured(&authority)?;
    let script = "import psycopg, sys\n\
                  with psycopg.connect(sys.argv[1]) as c:\n    \
                  print(c.execute(\"SELECT ssl_state FROM sessions WHERE session_id = (SELECT session_id FROM current_session)\").fetchone()[0], c.pgconn.ssl_in_use)\n";
    let output = Command::new(crate::python::interpreter())
        .args(["-c", script, &connection(&server, &authority, "channel_binding=require")])
        .env("PGPASSWORD", ADMIN_PASSWORD)
        .output()
        .context("python cannot be started; scripts/test makes it")?;
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(said.trim() == "Server True", "{said}{errors}");
    server.finish()
}

fn a_certificate_logs_in_who_it_names() -> anyhow::Result<()> {
    let authority = Authority::new()?;
    let server = secured(&authority)?;
    let mut admin = server.admin()?;
    for statement in [
        "CREATE USER mira",
        "CREATE USER nora",
        "CREATE AUTHENTICATION certified METHOD 'tls' HOST TLS '127.0.0.0/8'",
        "ALTER AUTHENTICATION certified PRIORITY 10",
        "GRANT AUTHENTICATION certified TO mira, nora",
    ] {
        admin.query(statement)?;
    }
    authority.certify("mira", "mira")?;
    authority.certify("nora", "n.nora@example.org")?;
    let shown = |user: &str, file: &str| {
        let path = |suffix: &str| authority.path(&format!("{file}.{suffix}")).display().to_string();
        format!("user={user} password=unused sslcert={} sslkey={}", path("crt"), path("key"))
    };
    let who = "SELECT current_user";
    ensure!(answer(&server, &authority, &shown("mira", "mira"), who)? == "mira");
    let refused = refusal(&server, &authority, &shown("nora", "mira"))?;
    ensure!(refused.contains("certificate authentication failed for user \"nora\""), "{refused}");
    ensure!(refusal(&server, &authority, &shown("nora", "nora"))?.contains("certificate authentication failed"));
    let refused = refusal(&server, &authority, "user=mira")?;
    ensure!(refused.contains("connection requires a valid client certificate"), "{refused}");
    admin.query("ALTER AUTHENTICATION certified SET identity_map = 'n.*@example.org=*'")?;
    ensure!(answer(&server, &authority, &shown("nora", "nora"), who)? == "nora");
    ensure!(refusal(&server, &authority, &shown("mira", "mira"))?.contains("certificate authentication failed"));
    let own = answer(
        &server,
        &authority,
        &shown("nora", "nora"),
        "SELECT ssl_state, authentication_method, client_authentication_name FROM sessions",
    )?;
    ensure!(own == "Mutual|tls|certified", "{own}");
    // Another authority's certificate is refused by TLS itself.
    let other = Authority::new()?;
    other.certify("mira", "mira")?;
    let foreign =
        format!("user=mira sslcert={} sslkey={}", other.path("mira.crt").display(), other.path("mira.key").display());
    refusal(&server, &authority, &foreign)?;
    server.wait_for_log("TLS handshake failed")?;
    server.finish()
}

fn a_record_for_tls_is_for_tls() -> anyhow::Result<()> {
    let authority = Authority::new()?;
    let server = secured(&authority)?;
    let mut admin = server.admin()?;
    for statement in [
        "CREATE USER mira IDENTIFIED BY 'sekret'",
        "CREATE AUTHENTICATION plain METHOD 'reject' HOST NO TLS '127.0.0.0/8'",
        "ALTER AUTHENTICATION plain PRIORITY 10",
        "GRANT AUTHENTICATION plain TO mira",
    ] {
        admin.query(statement)?;
    }
    ensure!(answer(&server, &authority, "user=mira password=sekret", "SELECT 1")? == "1");
    let refused = refusal(&server, &authority, "user=mira password=sekret sslmode=disable")?;
    ensure!(refused.contains("authentication record rejects connection"), "{refused}");
    ensure!(refused.contains("no encryption"), "{refused}");
    server.finish()
}

fn a_new_certificate_is_shown() -> anyhow::Result<()> {
    let authority = Authority::new()?;
    let server = secured(&authority)?;
    let subject = "SELECT subject FROM switchyard.tls_certificates";
    ensure!(answer(&server, &authority, "", subject)? == "CN=server");
    let wait_for = |statement: &str, wanted: &str| -> anyhow::Result<()> {
        let (mut admin, deadline) = (server.admin()?, Instant::now() + SEEN_WITHIN);
        while Instant::now() < deadline {
            let rows = admin.query(statement)?;
            if rows.first().and_then(|row| row.first()).and_then(|cell| cell.as_deref()) == Some(wanted) {
                return Ok(());
            }
            std::thread::yield_now();
        }
        bail!("{statement} did not become {wanted}\n{}", server.log()?)
    };
    authority.write("server.crt", "no certificate")?;
    let failed = "SELECT load_failure LIKE 'there is no certificate in %' FROM switchyard.tls_certificates";
    wait_for(failed, "t")?;
    server.wait_for_log("the certificate files have changed and are of no use")?;
    ensure!(answer(&server, &authority, "channel_binding=require", subject)? == "CN=server");
    authority.certify("server", "renewed")?;
    wait_for(subject, "CN=renewed")?;
    // The proof is bound to the new one.
    ensure!(answer(&server, &authority, "channel_binding=require", failed)?.is_empty());
    server.finish()
}

fn bad_files_are_refused() -> anyhow::Result<()> {
    let authority = Authority::new()?;
    let server = secured(&authority)?;
    let path = |file: &str| authority.path(file).display().to_string();
    let check = |arguments: &[&str]| -> anyhow::Result<(Option<i32>, String)> {
        let output = server.command(&[&["check"], arguments].concat()).output()?;
        Ok((output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned()))
    };
    let (certificate, key) = (path("server.crt"), path("server.key"));
    let good = check(&["--tls-certificate", &certificate, "--tls-key", &key])?;
    ensure!(good.0 == Some(0), "{good:?}");
    let swapped = check(&["--tls-certificate", &key, "--tls-key", &certificate])?;
    ensure!(swapped.0 == Some(1) && swapped.1.contains("there is no certificate in"), "{swapped:?}");
    let alone = check(&["--tls-certificate", &certificate])?;
    ensure!(alone.0 == Some(64) && alone.1.contains("is of no use without \"tls_key\""), "{alone:?}");
    let old = check(&["--tls-version-min", "1.1"])?;
    ensure!(old.0 == Some(64) && old.1.contains("expected \"1.2\" or \"1.3\""), "{old:?}");
    let missing = path("missing.crt");
    let started = server.command(&["serve", "--store", "memory", "--tls-certificate", &missing, "--tls-key", &key]);
    let mut started = started;
    let output = started.args(["--listen", "127.0.0.1:0"]).output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.code() == Some(1) && said.contains("cannot read") && said.contains("missing.crt"), "{said}");
    server.finish()
}

/// More than may be under way: silent, with half a packet, with half a handshake.
fn half_open_connections() -> anyhow::Result<()> {
    let authority = Authority::new()?;
    authority.certify("server", "server")?;
    let path = |file: &str| authority.path(file).display().to_string();
    let server = crate::options()
        .store(Store::Memory)
        .argument("--logins-max")
        .argument("50")
        .argument("--tls-certificate")
        .argument(path("server.crt"))
        .argument("--tls-key")
        .argument(path("server.key"))
        .start()?;
    // What the first query loads is no growth.
    server.admin()?.query("SELECT 1")?;
    let before = server.resident_kib()?;
    let mut held = Vec::new();
    for index in 0..800_usize {
        use std::io::Write;

        let mut stream = std::net::TcpStream::connect(("127.0.0.1", server.port()))?;
        let begin: &[u8] = match index % 4 {
            0 => b"",
            1 => b"\0\0\0\x40\0\x03",
            2 => b"\0\0\0\x08\x04\xd2\x16\x2f",
            _ => b"\x16\x03\x01\x02\0\x01",
        };
        stream.write_all(begin)?;
        held.push(stream);
        if index % 100 == 99 {
            ensure!(server.admin()?.query("SELECT 1")?.len() == 1);
        }
    }
    // Those that were cut have been told why, where they could be.
    let told = held.iter_mut().filter_map(|stream| {
        use std::io::Read;

        stream.set_read_timeout(Some(Duration::from_secs(30))).ok()?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok()?;
        String::from_utf8_lossy(&answer).contains("The limit \"logins_max\" is 50.").then_some(())
    });
    ensure!(told.take(100).count() == 100, "nobody was told");
    let grown = server.resident_kib()?.saturating_sub(before);
    ensure!(grown < 64 * 1024, "{grown} KiB more than before");
    drop(held);
    server.finish()
}

fn failed_logins_wait() -> anyhow::Result<()> {
    let server = crate::options()
        .store(Store::Memory)
        .argument("--throttle-delay-ms-min")
        .argument("100")
        .argument("--throttle-delay-ms-max")
        .argument("400")
        .start()?;
    let begun = Instant::now();
    for user in [ADMIN, "nobody", ADMIN] {
        let error = server.client(user, "wrong").err().context("a wrong password was let in")?;
        let expected = format!("password authentication failed for user \"{user}\"");
        ensure!(format!("{error:#}").contains(&expected), "{error:#}");
    }
    // 100, 200 and 400 milliseconds at least, however slow the machine is.
    ensure!(begun.elapsed() >= Duration::from_millis(700), "{:?}", begun.elapsed());
    ensure!(server.admin()?.query("SELECT 1")?.len() == 1);
    server.finish()
}
