//! What is in the file: its tables, keys and values. The module above says how they hang together.

use redb::{ReadTransaction, ReadableTable, ReadableTableMetadata, Table, TableDefinition, WriteTransaction};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use switchyard_catalog::{Delta, Entity};
use thiserror::Error;

use crate::contract::{Commit, HistoryEntry, Loaded, NEWS_MAX, News, Outcome, REFUSALS_MAX, Record};

/// The format this program writes, and the newest it reads. In format 1, `id_next` was in [`META`] only.
pub(super) const FORMAT: u64 = 2;

/// `format`, and in a file that began with format 1 the `id_next` of the versions made then. Its name and types stay the
/// same in every format, so that any program can read `format`.
pub(super) const META: TableDefinition<&str, u64> = TableDefinition::new("meta");
/// The newest catalog: kind and id -> the entity as JSON.
const ENTITIES: TableDefinition<(&str, u64), &[u8]> = TableDefinition::new("entities");
/// Version, section, part -> JSON.
const HISTORY: TableDefinition<(u64, u8, u32), &[u8]> = TableDefinition::new("history");
/// The newest version when it was noted, and a number that rises -> a [`HistoryEntry`] as JSON.
const REFUSALS: TableDefinition<(u64, u64), &[u8]> = TableDefinition::new("refusals");

/// Section of [`HISTORY`]: one part, a [`RecordHead`].
const SECTION_RECORD: u8 = 0;
/// Section of [`HISTORY`]: lists of statements.
const SECTION_STATEMENTS: u8 = 1;
/// Section of [`HISTORY`]: lists of deltas.
const SECTION_DELTAS: u8 = 2;

/// A part of a list is closed when it is longer than this. redb gives a value a power of two of pages: the rest of the
/// 64 KiB is for the last item.
const PART_BYTES: usize = 56 * 1024;

/// How many rows of [`HISTORY`] one commit gives up: more than it makes, as a commit of one statement makes three.
const GIVEN_UP_ROWS_MAX: usize = 48;

/// Why the file could not be read or written.
#[derive(Debug, Error)]
pub(super) enum Fault {
    /// redb says so.
    #[error(transparent)]
    Redb(redb::Error),
    /// A value is not what was written. Nothing of it is shown: it may be a secret.
    #[error("table \"{table}\" has a value that makes no sense at byte {byte}")]
    Value {
        /// Where.
        table: &'static str,
        /// Where in the value.
        byte: usize,
    },
    /// Something cannot be written as JSON.
    #[error("cannot be written as JSON")]
    Json(#[source] serde_json::Error),
    /// A row is not there.
    #[error("table \"{table}\" lacks a row for version {version}")]
    Missing {
        /// Where.
        table: &'static str,
        /// Of which version.
        version: u64,
    },
    /// redb panicked.
    #[error("the storage engine failed: {0}")]
    Panicked(String),
}

macro_rules! from_redb {
    ($($error:ident),*) => {$(
        impl From<redb::$error> for Fault {
            fn from(error: redb::$error) -> Self {
                Self::Redb(error.into())
            }
        }
    )*};
}

from_redb!(StorageError, TableError, TransactionError, CommitError);

impl Fault {
    /// Whether the file is still as good as before: it was the data that could not be written.
    pub(super) fn harmless(&self) -> bool {
        match self {
            Self::Redb(redb::Error::ValueTooLarge(_)) | Self::Json(_) | Self::Value { .. } | Self::Missing { .. } => {
                true
            }
            Self::Redb(_) | Self::Panicked(_) => false,
        }
    }
}

#[derive(Serialize, Deserialize)]
struct RecordHead {
    time_us: i64,
    user: String,
    client: String,
    /// The id that comes next; not there in format 1. A table of its own for it would cost every commit a page.
    id_next: Option<u64>,
}

/// Makes the tables of a new file.
pub(super) fn initialize(transaction: &WriteTransaction) -> Result<(), Fault> {
    transaction.open_table(META)?.insert("format", FORMAT)?;
    transaction.open_table(ENTITIES)?;
    transaction.open_table(HISTORY)?;
    transaction.open_table(REFUSALS)?;
    Ok(())
}

/// The newest version, as a transaction that writes sees it; 0 when there is none.
pub(super) fn head_to_write_on(transaction: &WriteTransaction) -> Result<u64, Fault> {
    newest(&transaction.open_table(HISTORY)?)
}

/// The newest version; 0 when there is none.
fn head(transaction: &ReadTransaction) -> Result<u64, Fault> {
    newest(&transaction.open_table(HISTORY)?)
}

/// History always has the newest version.
fn newest(history: &impl ReadableTable<(u64, u8, u32), &'static [u8]>) -> Result<u64, Fault> {
    Ok(history.last()?.map_or(0, |(key, _)| key.value().0))
}

/// The id that comes next after a version, which must be the newest if it was made in format 1.
fn id_next(transaction: &ReadTransaction, version: u64) -> Result<u64, Fault> {
    if let Some(id_next) = read_head(transaction, version)?.id_next {
        return Ok(id_next);
    }
    let known = transaction.open_table(META)?.get("id_next")?.map(|id_next| id_next.value());
    known.ok_or(Fault::Missing { table: "meta", version })
}

/// Writes all of a commit.
pub(super) fn write_commit(transaction: &WriteTransaction, version: u64, commit: &Commit) -> Result<(), Fault> {
    let format = transaction.open_table(META)?.get("format")?.map(|format| format.value());
    if format != Some(FORMAT) {
        transaction.open_table(META)?.insert("format", FORMAT)?;
    }
    write_entities(transaction, &commit.deltas)?;

    let Record { time_us, user, client, statements } = &commit.record;
    let id_next = Some(commit.id_next);
    let head = RecordHead { time_us: *time_us, user: user.clone(), client: client.clone(), id_next };
    let mut history = transaction.open_table(HISTORY)?;
    history.insert((version, SECTION_RECORD, 0), serde_json::to_vec(&head).map_err(Fault::Json)?.as_slice())?;
    write_list(&mut history, version, SECTION_STATEMENTS, statements)?;
    write_list(&mut history, version, SECTION_DELTAS, &commit.deltas)?;
    give_up(&mut history, version, commit)
}

/// Takes out what history keeps no longer, from the oldest row on.
fn give_up(
    history: &mut Table<'_, (u64, u8, u32), &[u8]>,
    newest: u64,
    Commit { record, retention, .. }: &Commit,
) -> Result<(), Fault> {
    for _ in 0..GIVEN_UP_ROWS_MAX {
        let Some((key, value)) = history.first()? else { return Ok(()) };
        let (version, section, _) = key.value();
        // What lacks its first row has begun to go.
        let made_us = || {
            let head = (section == SECTION_RECORD).then(|| parse::<RecordHead>("history", value.value()));
            head.and_then(Result::ok).map(|head| head.time_us)
        };
        let begun = section != SECTION_RECORD;
        let drops = begun && version < newest || retention.drops(version, made_us, newest, record.time_us);
        if !drops {
            return Ok(());
        }
        drop((key, value));
        history.pop_first()?;
    }
    Ok(())
}

/// The oldest version that is kept whole; 0 when there is none.
pub(super) fn oldest_version(transaction: &ReadTransaction) -> Result<u64, Fault> {
    let history = transaction.open_table(HISTORY)?;
    let oldest = history.first()?.map_or(0, |(key, _)| match key.value() {
        (version, SECTION_RECORD, _) => version,
        (version, ..) => version.saturating_add(1),
    });
    Ok(oldest)
}

fn write_entities(transaction: &WriteTransaction, deltas: &[Delta]) -> Result<(), Fault> {
    let mut entities = transaction.open_table(ENTITIES)?;
    let mut value = Vec::new();
    for delta in deltas {
        match (&delta.before, &delta.after) {
            (_, Some(after)) => {
                value.clear();
                serde_json::to_writer(&mut value, after).map_err(Fault::Json)?;
                entities.insert((after.kind(), after.id()), value.as_slice())?;
            }
            (Some(before), None) => {
                entities.remove((before.kind(), before.id()))?;
            }
            (None, None) => {}
        }
    }
    Ok(())
}

/// Writes a list in parts, so that no value is much longer than [`PART_BYTES`] unless a single item is.
fn write_list<T: Serialize>(
    history: &mut Table<'_, (u64, u8, u32), &[u8]>,
    version: u64,
    section: u8,
    items: &[T],
) -> Result<(), Fault> {
    let mut part = 0;
    let mut value = Vec::new();
    for (index, item) in items.iter().enumerate() {
        value.push(if value.is_empty() { b'[' } else { b',' });
        serde_json::to_writer(&mut value, item).map_err(Fault::Json)?;
        if value.len() > PART_BYTES || index + 1 == items.len() {
            value.push(b']');
            history.insert((version, section, part), value.as_slice())?;
            value.clear();
            part += 1;
        }
    }
    Ok(())
}

/// Writes a refusal and forgets the oldest if there are too many.
pub(super) fn write_refusal(transaction: &WriteTransaction, entry: &HistoryEntry) -> Result<(), Fault> {
    let head = head_to_write_on(transaction)?;
    let mut refusals = transaction.open_table(REFUSALS)?;
    let sequence = refusals.last()?.map_or(0, |(key, _)| key.value().1.saturating_add(1));
    refusals.insert((head, sequence), serde_json::to_vec(entry).map_err(Fault::Json)?.as_slice())?;
    if refusals.len()? > REFUSALS_MAX as u64 {
        refusals.pop_first()?;
    }
    Ok(())
}

/// Reads the newest catalog.
pub(super) fn read_newest(transaction: &ReadTransaction) -> Result<Option<Loaded>, Fault> {
    let version = head(transaction)?;
    if version == 0 {
        return Ok(None);
    }
    let id_next = id_next(transaction, version)?;
    let table = transaction.open_table(ENTITIES)?;
    let mut entities: Vec<Entity> = Vec::with_capacity(usize::try_from(table.len()?).unwrap_or(0));
    for row in table.iter()? {
        entities.push(parse("entities", row?.1.value())?);
    }
    Ok(Some(Loaded { version, id_next, entities }))
}

/// Reads what happened after version `after` was made.
pub(super) fn read_history(
    transaction: &ReadTransaction,
    after: u64,
    limit: usize,
) -> Result<Vec<HistoryEntry>, Fault> {
    let refusals = transaction.open_table(REFUSALS)?;
    let refusals = refusals.range((after, 0)..)?.map(|row| {
        let (key, value) = row?;
        Ok((key.value().0, parse("refusals", value.value())?))
    });
    let commit = |version| {
        let record = read_record(transaction, version)?;
        Ok(HistoryEntry { version, record, outcome: Outcome::Committed })
    };
    crate::history::in_order(after, oldest_version(transaction)?, head(transaction)?, limit, refusals, commit)
}

fn read_record(transaction: &ReadTransaction, version: u64) -> Result<Record, Fault> {
    let RecordHead { time_us, user, client, .. } = read_head(transaction, version)?;
    Ok(Record { time_us, user, client, statements: read_list(transaction, version, SECTION_STATEMENTS)? })
}

fn read_head(transaction: &ReadTransaction, version: u64) -> Result<RecordHead, Fault> {
    let history = transaction.open_table(HISTORY)?;
    let head = history.get((version, SECTION_RECORD, 0))?.ok_or(Fault::Missing { table: "history", version })?;
    parse("history", head.value())
}

/// Reads what made a version; `None` when history does not have it.
pub(super) fn read_deltas(transaction: &ReadTransaction, version: u64) -> Result<Option<Vec<Delta>>, Fault> {
    if transaction.open_table(HISTORY)?.get((version, SECTION_RECORD, 0))?.is_none() {
        return Ok(None);
    }
    read_list(transaction, version, SECTION_DELTAS).map(Some)
}

/// Reads what came after a version, some at a time.
pub(super) fn read_news(transaction: &ReadTransaction, after: u64) -> Result<Vec<News>, Fault> {
    let head = head(transaction)?;
    if after >= head {
        return Ok(Vec::new());
    }
    let first = after.saturating_add(1);
    if first < oldest_version(transaction)? {
        return Ok(read_newest(transaction)?.map(News::Whole).into_iter().collect());
    }
    let id_next = id_next(transaction, head)?;
    let mut news = Vec::new();
    for version in (first..=head).take(NEWS_MAX) {
        let deltas = read_deltas(transaction, version)?.ok_or(Fault::Missing { table: "history", version })?;
        news.push(News::Next { version, id_next, deltas });
    }
    Ok(news)
}

fn read_list<T: DeserializeOwned>(transaction: &ReadTransaction, version: u64, section: u8) -> Result<Vec<T>, Fault> {
    let mut items = Vec::new();
    for row in transaction.open_table(HISTORY)?.range((version, section, 0)..=(version, section, u32::MAX))? {
        items.append(&mut parse::<Vec<T>>("history", row?.1.value())?);
    }
    Ok(items)
}

fn parse<T: DeserializeOwned>(table: &'static str, value: &[u8]) -> Result<T, Fault> {
    serde_json::from_slice(value).map_err(|error| Fault::Value { table, byte: error.column() })
}
