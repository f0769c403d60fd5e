//! The files of `sql-tests/through`: each block is sent to a PostgreSQL server directly and through a member, and both
//! clients get the same bytes. A line `-- copy: text` before a block is what is copied into the server.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use libtest_mimic::Trial;
use switchyard_testkit::{Client, Login, Protocol, Server, files_under, repository_root};

use super::{Fleet, PASSWORD, fleet, member};

/// No answer takes this long.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

pub(super) fn trials() -> Result<Vec<Trial>> {
    let files = files_under("sql-tests/through", "sql")?;
    let trial = |path: std::path::PathBuf| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        crate::trial(&format!("upstream_through_{name}"), move || {
            let text = std::fs::read_to_string(repository_root().join(&path))?;
            compare(&name, &text)
        })
    };
    Ok(files.into_iter().map(trial).collect())
}

/// A request, and what is copied into the server if it asks for it.
struct Block {
    text: String,
    copied: Vec<u8>,
}

fn blocks(text: &str) -> Vec<Block> {
    let block = |part: &str| {
        let (mut lines, mut copied) = (Vec::new(), Vec::new());
        for line in part.lines() {
            match line.strip_prefix("-- copy: ") {
                Some(data) => {
                    copied = data.replace("\\t", "\t").replace("\\n", "\n").replace("\\\\", "\\").into_bytes()
                }
                None => lines.push(line),
            }
        }
        Block { text: lines.join("\n"), copied }
    };
    text.trim_end().split("\n\n").map(block).collect()
}

fn compare(name: &str, text: &str) -> Result<()> {
    let fleet = fleet()?;
    let server = member(&fleet, Some(0))?;
    let mut faults = Vec::new();
    for protocol in [Protocol::Simple, Protocol::Extended, Protocol::Binary] {
        let schema = format!("through_{name}_{}", protocol.name());
        // One after the other, in a database that looks the same to both.
        let mut direct = Vec::new();
        for through in [false, true] {
            anew(&fleet, &schema)?;
            let login = if through { Login::new(server.port(), "mira", PASSWORD) } else { direct_login(&fleet)? };
            let mut stream = Client::connect(&login.database(&schema))?.into_stream();
            stream.set_read_timeout(Some(ANSWER_WITHIN))?;
            for (index, block) in blocks(text).iter().enumerate() {
                let answer = ask(&mut stream, block, protocol).with_context(|| format!("in {}", block.text))?;
                match (through, direct.get(index)) {
                    (false, _) => direct.push(answer),
                    (true, Some(expected)) if *expected == answer => {}
                    (true, expected) => faults.push(format!(
                        "{} ({}):\n  directly: {}\n  through:  {}",
                        block.text,
                        protocol.name(),
                        shown(expected.map_or(&[], Vec::as_slice)),
                        shown(&answer)
                    )),
                }
            }
        }
    }
    drop_databases(&fleet, name)?;
    ensure!(faults.is_empty(), "{} differences:\n{}", faults.len(), faults.join("\n"));
    Server::finish(server)
}

fn shown(bytes: &[u8]) -> String {
    bytes.iter().take(300).copied().collect::<Vec<u8>>().escape_ascii().to_string()
}

fn direct_login(fleet: &Fleet) -> Result<Login> {
    Ok(fleet.0.first().context("there is no server")?.login("mira", ""))
}

/// A new database of this name.
fn anew(fleet: &Fleet, database: &str) -> Result<()> {
    let mut admin = fleet.0.first().context("there is no server")?.client()?;
    admin.query(&format!("DROP DATABASE IF EXISTS {database} WITH (FORCE)"))?;
    admin.query(&format!("CREATE DATABASE {database} OWNER mira"))?;
    admin.query("ALTER ROLE mira SUPERUSER")?;
    Ok(())
}

fn drop_databases(fleet: &Fleet, name: &str) -> Result<()> {
    let mut admin = fleet.0.first().context("there is no server")?.client()?;
    for protocol in [Protocol::Simple, Protocol::Extended, Protocol::Binary] {
        admin.query(&format!("DROP DATABASE through_{name}_{} WITH (FORCE)", protocol.name()))?;
    }
    Ok(())
}

/// Sends a block and gives all that comes back, up to ReadyForQuery, without what is another number each time.
fn ask(stream: &mut TcpStream, block: &Block, protocol: Protocol) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    match protocol {
        Protocol::Simple => message(&mut out, b'Q', &[block.text.as_bytes(), b"\0"]),
        Protocol::Extended | Protocol::Binary => {
            let formats: &[u8] = if protocol == Protocol::Binary { &[0, 1, 0, 1] } else { &[0, 0] };
            message(&mut out, b'P', &[b"\0", block.text.as_bytes(), b"\0\0\0"]);
            message(&mut out, b'B', &[b"\0\0\0\0\0\0", formats]);
            message(&mut out, b'D', &[b"P\0"]);
            message(&mut out, b'E', &[b"\0\0\0\0\0"]);
            message(&mut out, b'S', &[]);
        }
    }
    stream.write_all(&out)?;
    let mut answer = Vec::new();
    loop {
        let mut header = [0; 5];
        stream.read_exact(&mut header)?;
        let [kind, a, b, c, d] = header;
        let length = usize::try_from(u32::from_be_bytes([a, b, c, d]))?;
        let mut body = vec![0; length.checked_sub(4).context("a length makes no sense")?];
        stream.read_exact(&mut body)?;
        answer.extend(header);
        answer.extend(if kind == b'T' { without_tables(&body)? } else { body });
        match kind {
            b'G' => copy(stream, block, protocol)?,
            b'Z' => return Ok(answer),
            _ => {}
        }
    }
}

fn copy(stream: &mut TcpStream, block: &Block, protocol: Protocol) -> Result<()> {
    let mut out = Vec::new();
    message(&mut out, b'd', &[&block.copied]);
    message(&mut out, b'c', &[]);
    if protocol != Protocol::Simple {
        // The first Sync was not read as one by a server that copies.
        message(&mut out, b'S', &[]);
    }
    Ok(stream.write_all(&out)?)
}

fn message(out: &mut Vec<u8>, kind: u8, parts: &[&[u8]]) {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    out.push(kind);
    out.extend(u32::try_from(length + 4).unwrap_or(u32::MAX).to_be_bytes());
    parts.iter().for_each(|part| out.extend(*part));
}

/// A RowDescription without the ids of tables and types that were made anew.
fn without_tables(body: &[u8]) -> Result<Vec<u8>> {
    let mut shown = Vec::new();
    let Some((count, mut rest)) = body.split_first_chunk::<2>() else { bail!("a description is cut") };
    shown.extend(count);
    for _ in 0..u16::from_be_bytes(*count) {
        let end = rest.iter().position(|byte| *byte == 0).context("a name does not end")?;
        let (name, behind) = rest.split_at(end + 1);
        let Some((fields, behind)) = behind.split_first_chunk::<18>() else { bail!("a description is cut") };
        let [_, _, _, _, column @ .., _, _, _, _, _, _, _, _, _, _, _, _] = *fields;
        let [.., t1, t2, t3, t4, s1, s2, m1, m2, m3, m4, f1, f2] = *fields;
        let type_id = u32::from_be_bytes([t1, t2, t3, t4]);
        shown.extend(name);
        shown.extend(column);
        shown.extend(if type_id < 16_384 { type_id } else { 0 }.to_be_bytes());
        shown.extend([s1, s2, m1, m2, m3, m4, f1, f2]);
        rest = behind;
    }
    Ok(shown)
}
