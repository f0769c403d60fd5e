//! A commit costs one fsync.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::{Figure, commit, options};

const COUNT: u32 = 1_000;
const APPEND_BYTES: usize = 4_096;

/// Commits and bare appends in turn, so that both meet the same disk.
pub fn measure(binary: &PathBuf) -> Result<Vec<Figure>> {
    let server = options(binary)?.start()?;
    let mut client = server.admin()?;
    commit(&mut client, "CREATE SUBCLUSTER sc; CREATE NODE n WITH '10.0.0.1' PORT 5432 SUBCLUSTER sc")?;
    commit(&mut client, "CREATE NETWORK ADDRESS a ON n WITH '10.0.0.1'; CREATE LOAD BALANCE GROUP g WITH ADDRESS a")?;
    let mut file = File::create(server.data_directory().join("appends"))?;
    let block = [0x5a_u8; APPEND_BYTES];
    let (mut committing, mut appending) = (Duration::ZERO, Duration::ZERO);
    for number in 0..COUNT {
        let (high, low) = (number / 256, number % 256);
        let sql = format!("CREATE ROUTING RULE r{number} ROUTE '10.{high}.{low}.0/24' TO g");
        let started = Instant::now();
        commit(&mut client, &sql)?;
        committing += started.elapsed();
        let started = Instant::now();
        file.write_all(&block)?;
        file.sync_data()?;
        appending += started.elapsed();
    }
    client.close()?;
    server.finish()?;
    let rate = |time: Duration| f64::from(COUNT) / time.as_secs_f64();
    Ok(vec![
        Figure::plain("1,000 commits, one statement each", format!("{:.0} /s", rate(committing))),
        Figure::plain("1,000 fsynced appends of 4 KiB", format!("{:.0} /s", rate(appending))),
        Figure::at_least("rate of commits over rate of appends", rate(committing) / rate(appending), 0.5, ""),
    ])
}
