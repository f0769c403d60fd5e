//! What clients are told of settings without asking: at the start, and whenever one is another than they were told.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};

use anyhow::{Context, ensure};
use libtest_mimic::Trial;
use switchyard_testkit::{Protocol, Server};

use crate::limits::ANSWER_WITHIN;

pub fn trials() -> Vec<Trial> {
    vec![
        crate::with_server("settings_are_told_at_the_start", settings_are_told_at_the_start),
        crate::with_server("settings_are_told_when_they_change", settings_are_told_when_they_change),
        crate::with_server("values_are_shown_as_settings_want_them", values_are_shown_as_settings_want_them),
    ]
}

/// Protocol 3.0 and 3.2.
const VERSIONS: [u32; 2] = [3 << 16, 3 << 16 | 2];

type Told = Vec<(String, String)>;

/// A connection that keeps what it is told of settings.
struct Listener(TcpStream);

impl Listener {
    /// Logs in without a password.
    fn connect(server: &Server, version: u32, parameters: &[(&str, &str)]) -> anyhow::Result<(Self, Told)> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port()))?;
        stream.set_read_timeout(Some(ANSWER_WITHIN))?;
        let mut body = version.to_be_bytes().to_vec();
        for (name, value) in [("user", "plain"), ("database", "switchyard")].iter().chain(parameters) {
            body.extend([name.as_bytes(), b"\0", value.as_bytes(), b"\0"].concat());
        }
        body.push(0);
        stream.write_all(&[&u32::try_from(body.len() + 4)?.to_be_bytes()[..], &body].concat())?;
        let mut listener = Self(stream);
        let told = listener.listen(1)?;
        Ok((listener, told))
    }

    /// Sends messages, and says what is told of settings up to so many ReadyForQuery.
    fn ask(&mut self, messages: &[(u8, &[u8])], answers: usize) -> anyhow::Result<Told> {
        for (kind, body) in messages {
            let length = u32::try_from(body.len() + 4)?.to_be_bytes();
            self.0.write_all(&[&[*kind], &length[..], *body].concat())?;
        }
        self.listen(answers)
    }

    fn simple(&mut self, sql: &str) -> anyhow::Result<Told> {
        self.ask(&[(b'Q', &[sql.as_bytes(), b"\0"].concat())], 1)
    }

    fn extended(&mut self, sql: &str) -> anyhow::Result<Told> {
        let parse = [b"\0", sql.as_bytes(), b"\0\0\0"].concat();
        let execute = b"\0\0\0\0\0";
        self.ask(&[(b'P', &parse), (b'B', &[0; 8]), (b'E', execute), (b'S', b"")], 1)
    }

    fn listen(&mut self, mut answers: usize) -> anyhow::Result<Told> {
        let mut told = Vec::new();
        while answers > 0 {
            let mut head = [0; 5];
            self.0.read_exact(&mut head)?;
            let [kind, length @ ..] = head;
            let mut body = vec![0; usize::try_from(u32::from_be_bytes(length))?.checked_sub(4).context("a length")?];
            self.0.read_exact(&mut body)?;
            match kind {
                b'Z' => answers -= 1,
                b'S' => {
                    let text = String::from_utf8(body)?;
                    let mut parts = text.split('\0').map(str::to_owned);
                    told.push(parts.next().zip(parts.next()).context("a name and a value")?);
                }
                _ => {}
            }
        }
        Ok(told)
    }
}

fn prepare(server: &Server) -> anyhow::Result<()> {
    let mut admin = server.admin()?;
    admin.query("CREATE USER plain")?;
    admin.query("CREATE AUTHENTICATION near METHOD 'trust' HOST '127.0.0.1/32'")?;
    admin.query("GRANT AUTHENTICATION near TO plain")?;
    Ok(())
}

fn settings_are_told_at_the_start(server: &Server) -> anyhow::Result<()> {
    prepare(server)?;
    let defaults = [
        ("application_name", ""),
        ("client_encoding", "UTF8"),
        ("DateStyle", "ISO, MDY"),
        ("default_transaction_read_only", "off"),
        ("in_hot_standby", "off"),
        ("integer_datetimes", "on"),
        ("IntervalStyle", "postgres"),
        ("is_superuser", "off"),
        ("server_encoding", "UTF8"),
        ("session_authorization", "plain"),
        ("standard_conforming_strings", "on"),
        ("TimeZone", "UTC"),
    ];
    let wished = [
        ("application_name", "tool"),
        ("DateStyle", "ISO, DMY"),
        ("TimeZone", "Europe/Berlin"),
        ("options", "-c default_transaction_read_only=on"),
    ];
    for version in VERSIONS {
        for wishes in [&[][..], &wished[..]] {
            let (_, told) = Listener::connect(server, version, wishes)?;
            let count = told.len();
            let mut told: BTreeMap<String, String> = told.into_iter().collect();
            ensure!(told.len() == count, "something is told twice");
            let server_version = told.remove("server_version").context("no server_version")?;
            ensure!(server_version.starts_with("15."), "{server_version}");
            let mut expected: BTreeMap<&str, &str> = defaults.into();
            expected.extend(wishes.iter().copied().filter(|(name, _)| *name != "options"));
            if !wishes.is_empty() {
                expected.insert("default_transaction_read_only", "on");
            }
            let told: BTreeMap<&str, &str> = told.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            ensure!(told == expected, "{told:?}");
        }
    }
    Ok(())
}

/// What is sent, and what of it changes a setting that clients are told of.
const CHANGES: &[(&str, &[(&str, &str)])] = &[
    ("SET application_name = 'one'", &[("application_name", "one")]),
    ("SET application_name = 'one'", &[]),
    ("SELECT set_config('application_name', 'two', false)", &[("application_name", "two")]),
    ("RESET application_name", &[("application_name", "")]),
    ("SET DateStyle = 'DMY'", &[("DateStyle", "ISO, DMY")]),
    ("SET DateStyle TO DEFAULT", &[("DateStyle", "ISO, MDY")]),
    ("SET IntervalStyle = 'postgres'", &[]),
    ("SET TIME ZONE 'Europe/Berlin'", &[("TimeZone", "Europe/Berlin")]),
    ("SET client_encoding = 'SQL_ASCII'", &[("client_encoding", "SQL_ASCII")]),
    ("SET NAMES 'UTF8'", &[("client_encoding", "UTF8")]),
    ("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", &[("default_transaction_read_only", "on")]),
    // Of no interest to clients.
    ("SET extra_float_digits = 3", &[]),
    ("SET search_path = v_monitor", &[]),
    ("RESET ALL", &[("TimeZone", "UTC"), ("default_transaction_read_only", "off")]),
    // What a transaction changed goes with it, and what it changed for itself alone too.
    ("BEGIN", &[]),
    ("SET TimeZone = 'America/New_York'", &[("TimeZone", "America/New_York")]),
    ("ROLLBACK", &[("TimeZone", "UTC")]),
    ("BEGIN", &[]),
    ("SET LOCAL application_name = 'local'", &[("application_name", "local")]),
    ("COMMIT", &[("application_name", "")]),
    ("BEGIN", &[]),
    ("SELECT set_config('application_name', 'local', true)", &[("application_name", "local")]),
    ("SAVEPOINT here", &[]),
    ("SET application_name = 'later'", &[("application_name", "later")]),
    ("ROLLBACK TO here", &[("application_name", "local")]),
    ("SET DateStyle = 'YMD'", &[("DateStyle", "ISO, YMD")]),
    ("SELECT 1 / 0", &[]),
    ("ROLLBACK", &[("DateStyle", "ISO, MDY"), ("application_name", "")]),
    ("SET application_name = 'three'", &[("application_name", "three")]),
    ("SET TimeZone = '+02:00'", &[("TimeZone", "+02:00")]),
    ("DISCARD ALL", &[("TimeZone", "UTC"), ("application_name", "")]),
    // Nobody becomes another user.
    ("SET SESSION AUTHORIZATION DEFAULT", &[]),
    ("RESET SESSION AUTHORIZATION", &[]),
    // What cannot be set changes nothing.
    ("SET standard_conforming_strings = off", &[]),
    ("SET server_version = '9.6'", &[]),
];

fn settings_are_told_when_they_change(server: &Server) -> anyhow::Result<()> {
    prepare(server)?;
    for version in VERSIONS {
        for extended in [false, true] {
            let (mut listener, _) = Listener::connect(server, version, &[])?;
            for (sql, expected) in CHANGES {
                let mut told = if extended { listener.extended(sql)? } else { listener.simple(sql)? };
                told.sort();
                let told: Vec<(&str, &str)> =
                    told.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
                ensure!(told == *expected, "{sql}: {told:?}");
            }
            // A string is one transaction: what it undoes is not told.
            let told = listener.simple("SET application_name = 'x'; SELECT 1 / 0")?;
            ensure!(told.is_empty(), "{told:?}");
            let told = listener.simple("SET application_name = 'x'; SET application_name = 'y'")?;
            ensure!(told == [("application_name".to_owned(), "y".to_owned())], "{told:?}");
        }
    }
    Ok(())
}

/// Settings that clients send, with a value that looks otherwise by each.
fn values_are_shown_as_settings_want_them(server: &Server) -> anyhow::Result<()> {
    let (interval, bytes, float) = (
        "SELECT interval '1 year 3 days -04:05:06.5'",
        "SELECT 'a\\\\\\001'::bytea",
        "SELECT 0.1::float8 + 0.2::float8",
    );
    let moment = "SELECT TIMESTAMPTZ '2026-07-01 12:00:00+00'";
    let mut client = server.admin()?;
    for (setting, sql, expected) in [
        ("IntervalStyle = postgres", interval, "1 year 3 days -04:05:06.5"),
        ("IntervalStyle = postgres_verbose", interval, "@ 1 year 3 days -4 hours -5 mins -6.5 secs"),
        ("IntervalStyle = sql_standard", interval, "+1-0 +3 -4:05:06.5"),
        ("IntervalStyle = iso_8601", interval, "P1Y3DT-4H-5M-6.5S"),
        ("bytea_output = escape", bytes, "a\\\\\\001"),
        ("bytea_output = hex", bytes, "\\x615c01"),
        ("extra_float_digits = 0", float, "0.3"),
        ("extra_float_digits = 3", float, "0.30000000000000004"),
        ("TimeZone = 'Europe/Berlin'", moment, "2026-07-01 14:00:00+02"),
        ("TimeZone = 'UTC'", moment, "2026-07-01 12:00:00+00"),
    ] {
        client.query(&format!("SET {setting}"))?;
        for protocol in [Protocol::Simple, Protocol::Extended] {
            let rows = client.run(sql, protocol)?.rows()?;
            ensure!(rows == [[Some(expected.to_owned())]], "{setting}: {rows:?}");
        }
    }
    Ok(())
}
