//! Clients of Vertica: two of its drivers, unmodified, and what a third one sends.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};
use libtest_mimic::Trial;
use switchyard_testkit::{ADMIN, ADMIN_PASSWORD, Authority, Server, repository_root};

use crate::client::made;
use crate::python::interpreter;

pub fn trials() -> Vec<Trial> {
    vec![
        crate::with_server("vertica_python", vertica_python),
        crate::trial("vertica_python_speaks_through_tls", vertica_python_speaks_through_tls),
        crate::with_server("vertica_python_proves_by_md5", vertica_python_proves_by_md5),
        crate::with_server("vertica_nodejs", vertica_nodejs),
        crate::with_server("a_client_of_vertica_does_without_sync", does_without_sync),
        crate::with_server("a_client_of_vertica_is_told_errors_in_time", is_told_errors_in_time),
        crate::with_server("a_client_of_vertica_is_greeted", is_greeted),
    ]
}

fn run(mut command: Command, server: &Server) -> anyhow::Result<()> {
    let output = command
        .env("VERTICA_TEST_PORT", server.port().to_string())
        .env("VERTICA_TEST_USER", ADMIN)
        .env("VERTICA_TEST_PASSWORD", ADMIN_PASSWORD)
        .output()
        .with_context(|| format!("{command:?} cannot be started; scripts/test installs it"))?;
    let [told, wrong] = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    ensure!(output.status.success(), "{told}{wrong}");
    Ok(())
}

fn script(name: &str) -> PathBuf {
    repository_root().join("crates/server/tests/it").join(name)
}

fn vertica_python(server: &Server) -> anyhow::Result<()> {
    let mut command = Command::new(interpreter());
    command.arg(script("vertica_python_test.py")).arg("VerticaPython");
    run(command, server)
}

/// Of "sekret", as psql leaves it: nothing that clients of Vertica could prove by a hash.
const VERIFIER: &str = "SCRAM-SHA-256$4096:XvY2RkaYBWlUGIpLj/xSgg==$UHkte8fx2XcwFbjpAsLKN2KqV1NABlwVai7JO3k1TKo=:\
                        H79GhFM5o6VE64Xh0/SqG08WIIAYH7If9C1ts1Ir6Bo=";

fn vertica_python_speaks_through_tls() -> anyhow::Result<()> {
    let authority = Authority::new()?;
    let server = crate::access::secured(&authority)?;
    server.admin()?.query(&format!("CREATE USER mira IDENTIFIED BY '{VERIFIER}'"))?;
    let mut command = Command::new(interpreter());
    command
        .arg(script("vertica_python_test.py"))
        .arg("VerticaPythonThroughTls")
        .env("VERTICA_TEST_AUTHORITY", authority.path("ca.crt"));
    run(command, &server)?;
    server.finish()
}

/// Of users whose security algorithm it is: one as he was made, and one who was renamed.
fn vertica_python_proves_by_md5(server: &Server) -> anyhow::Result<()> {
    let mut admin = server.admin()?;
    admin.query("ALTER DATABASE DEFAULT SET password_md5_verifiers = on")?;
    for user in ["Moritz", "max"] {
        admin.query(&format!("CREATE USER {user} IDENTIFIED BY 'sekret', SECURITY_ALGORITHM 'MD5'"))?;
    }
    admin.query("ALTER USER max RENAME TO lena")?;
    let mut command = Command::new(interpreter());
    command.arg(script("vertica_python_test.py")).arg("VerticaPythonByMd5");
    run(command, server)
}

fn vertica_nodejs(server: &Server) -> anyhow::Result<()> {
    let mut command = Command::new("node");
    command
        .arg(script("vertica_nodejs_test.js"))
        .env("NODE_PATH", made("SWITCHYARD_TEST_NODE_MODULES", "node/node_modules"));
    run(command, server)
}

/// A connection whose bytes are written here.
struct Raw(TcpStream);

impl Raw {
    /// Asks for a better server, and logs in a user who is trusted.
    fn connect(server: &Server, parameters: &[(&str, &str)]) -> anyhow::Result<Self> {
        let mut admin = server.admin()?;
        for statement in [
            "CREATE USER vera",
            "CREATE AUTHENTICATION open METHOD 'trust' HOST '127.0.0.1/32'",
            "GRANT AUTHENTICATION open TO vera",
        ] {
            admin.query(statement)?;
        }
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port()))?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        stream.set_nodelay(true)?;
        let mut raw = Self(stream);
        // The length and the rest in two writes, as vertica-sql-go does.
        raw.0.write_all(&[0, 0, 0, 8])?;
        raw.0.write_all(&[0x04, 0xd3, 0, 0])?;
        raw.expect(b"N")?;
        let mut body = b"\0\x03\0\x05protocol_version\0\0\x03\0\x0f\0user\0vera\0protocol_compat\0VER\0".to_vec();
        for (name, value) in parameters {
            body.extend_from_slice(format!("{name}\0{value}\0").as_bytes());
        }
        body.push(0);
        raw.0.write_all(&u32::try_from(body.len() + 4)?.to_be_bytes())?;
        raw.0.write_all(&body)?;
        raw.expect(b"R\0\0\0\x08\0\0\0\0")?;
        Ok(raw)
    }

    fn send(&mut self, messages: &[(u8, &[u8])]) -> anyhow::Result<()> {
        for (kind, body) in messages {
            let length = u32::try_from(body.len() + 4)?.to_be_bytes();
            self.0.write_all(&[&[*kind][..], &length, body].concat())?;
        }
        Ok(())
    }

    fn expect(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        let mut found = vec![0; bytes.len()];
        self.0.read_exact(&mut found)?;
        ensure!(found == bytes, "{}", found.escape_ascii());
        Ok(())
    }

    /// The next message.
    fn message(&mut self) -> anyhow::Result<(u8, Vec<u8>)> {
        let mut head = [0; 5];
        self.0.read_exact(&mut head)?;
        let [kind, length @ ..] = head;
        let mut body = vec![0; usize::try_from(u32::from_be_bytes(length))? - 4];
        self.0.read_exact(&mut body)?;
        Ok((kind, body))
    }

    /// The types of the messages up to the one of a type, and the body of that.
    fn until(&mut self, last: u8) -> anyhow::Result<(String, Vec<u8>)> {
        let mut kinds = String::new();
        loop {
            let (kind, body) = self.message()?;
            kinds.push(kind.into());
            if kind == last {
                return Ok((kinds, body));
            }
        }
    }
}

fn is_greeted(server: &Server) -> anyhow::Result<()> {
    let parameters = [
        ("oauth_access_token", "s3cret-1"),
        ("password", "s3cret-2"),
        ("Totp", "s3cret-3"),
        // What PostgreSQL's protocol refuses means nothing in this one.
        ("replication", "database"),
        ("unheard_of", "x"),
        ("client_label", "job"),
    ];
    let mut raw = Raw::connect(server, &parameters)?;
    let mut told = Vec::new();
    loop {
        let (kind, body) = raw.message()?;
        match kind {
            b'S' => told.push(String::from_utf8(body)?.trim_end_matches('\0').replace('\0', "=")),
            b'K' => ensure!(body.len() == 8, "a key of {} bytes", body.len()),
            b'Z' => break,
            other => anyhow::bail!("a message {}", char::from(other)),
        }
    }
    for wanted in ["protocol_version=196623", "auto_commit=off", "client_label=job", "request_complex_types=off"] {
        ensure!(told.iter().any(|line| line == wanted), "{wanted} is not in {told:?}");
    }
    let mut admin = server.admin()?;
    let sent = admin.query("SELECT contents FROM dc_client_server_messages WHERE user_name = 'vera'")?;
    let sent: Vec<String> = sent.into_iter().flatten().flatten().collect();
    ensure!(sent.contains(&"unheard_of: x".to_owned()), "{sent:?}");
    ensure!(!sent.iter().any(|line| line.contains("s3cret")), "{sent:?}");
    Ok(())
}

/// vertica-sql-go flushes, and expects that what it did is lasting.
fn does_without_sync(server: &Server) -> anyhow::Result<()> {
    let mut raw = Raw::connect(server, &[])?;
    raw.until(b'Z')?;
    raw.send(&[
        (b'P', b"s\0SELECT CAST(7 AS bigint) AS a FROM nodes WHERE node_id > ?\0\0\0"),
        (b'D', b"Ss\0"),
        (b'H', b""),
    ])?;
    raw.expect(b"1\0\0\0\x04")?;
    raw.expect(b"t\0\0\0\x15\0\x01\0\0\0\0\0\0\0\0\x06\xff\xff\xff\xff\0\0")?;
    let row_description =
        [&b"T\0\0\0\x27\0\x01\0\0\0\0a\0"[..], &[0; 10], b"\0\0\0\0\x06\0\x08\0\x01\0\0\xff\xff\xff\xff\0\0"];
    raw.expect(&row_description.concat())?;
    raw.expect(b"m\0\0\0\x0eSELECT\0\0\0\0")?;
    for number in [b'0', b'1'] {
        let bind = [&b"\0s\0\0\0\0\x01\0\0\0\x06\0\0\0\x01"[..], &[number], b"\0\0"].concat();
        raw.send(&[(b'B', &bind), (b'E', b"\0\0\0\0\0"), (b'H', b"")])?;
        raw.expect(b"2\0\0\0\x04D\0\0\0\x0b\0\x01\0\0\0\x017s\0\0\0\x04")?;
    }
    raw.send(&[(b'C', b"Ss\0"), (b'H', b"")])?;
    raw.expect(b"3\0\0\0\x04")?;
    raw.send(&[(b'P', b"\0SET client_min_messages TO warning\0\0\0"), (b'D', b"S\0"), (b'H', b"")])?;
    raw.expect(b"1\0\0\0\x04t\0\0\0\x0a\0\0\0\0\0\0n\0\0\0\x04m\0\0\0\x0bSET\0\0\0\0")?;
    raw.send(&[(b'B', b"\0\0\0\0\0\0\0\0"), (b'E', b"\0\0\0\0\0"), (b'H', b"")])?;
    raw.expect(b"2\0\0\0\x04C\0\0\0\x08SET\0")?;
    Ok(())
}

fn is_told_errors_in_time(server: &Server) -> anyhow::Result<()> {
    let mut raw = Raw::connect(server, &[])?;
    raw.until(b'Z')?;
    // What is wrong with a text is told when it is described.
    raw.send(&[(b'P', b"s\0SELECT a FROM missing\0\0\0"), (b'H', b"")])?;
    raw.expect(b"1\0\0\0\x04")?;
    raw.send(&[(b'D', b"Ss\0"), (b'H', b""), (b'S', b"")])?;
    let (kinds, _) = raw.until(b'Z')?;
    ensure!(kinds == "EZ", "{kinds}");
    // What is wrong with values is told when they are used.
    raw.send(&[(b'P', b"s\0SELECT CAST(? AS bigint)\0\0\0"), (b'D', b"Ss\0"), (b'H', b"")])?;
    raw.until(b'm')?;
    raw.send(&[(b'B', b"\0s\0\0\0\0\x01\0\0\0\x06\0\0\0\x01x\0\0"), (b'H', b"")])?;
    raw.expect(b"2\0\0\0\x04")?;
    raw.send(&[(b'E', b"\0\0\0\0\0"), (b'S', b"")])?;
    let (kinds, _) = raw.until(b'Z')?;
    ensure!(kinds == "EZ", "{kinds}");
    raw.send(&[(b'B', b"\0s\0\0\x01\0\x01\0\x01\0\0\0\x06\0\0\0\x017\0\0"), (b'E', b"\0\0\0\0\0"), (b'S', b"")])?;
    let (_, error) = raw.until(b'E')?;
    ensure!(error.escape_ascii().to_string().contains("parameters are taken as text only"), "{}", error.escape_ascii());
    raw.until(b'Z')?;
    // A text that is wrong leaves the one before it; one that is right replaces it.
    raw.send(&[(b'P', b"s\0SELEKT\0\0\0"), (b'D', b"Ss\0"), (b'S', b"")])?;
    ensure!(raw.until(b'Z')?.0 == "1EZ");
    raw.send(&[(b'B', b"\0s\0\0\0\0\x01\0\0\0\x06\0\0\0\x017\0\0"), (b'E', b"\0\0\0\0\0"), (b'S', b"")])?;
    ensure!(raw.until(b'Z')?.0 == "2DsZ");
    raw.send(&[(b'P', b"s\0SELECT 1, 2\0\0\0"), (b'B', b"\0s\0\0\0\0\0\0\0"), (b'E', b"\0\0\0\0\0"), (b'S', b"")])?;
    ensure!(raw.until(b'Z')?.0 == "12DsZ");
    // After a mistake nothing is looked at until Sync.
    raw.send(&[(b'D', b"Snone\0"), (b'H', b""), (b'P', b"x\0SELECT 1\0\0\0"), (b'S', b"")])?;
    ensure!(raw.until(b'Z')?.0 == "EZ");
    raw.send(&[(b'z', b"")])?;
    let (kinds, error) = raw.until(b'E')?;
    ensure!(kinds == "E" && error.starts_with(b"SFATAL\0C08P01\0"), "{}", error.escape_ascii());
    Ok(())
}
