//! Opening and making the file.

use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use redb::backends::FileBackend;
use redb::{Builder, Database, DatabaseError, ReadableDatabase, StorageBackend, StorageError, TableError};

use super::disk::{Disk, Handle};
use super::format::{self, FORMAT, Fault, META};
use crate::contract::OpenError;

/// What redb may keep of the file in memory; half of it may be pages not yet written.
const CACHE_BYTES: usize = 16 * 1024 * 1024;

/// Only the owner may read the file: it holds password verifiers and the passwords of upstreams.
const FILE_MODE: u32 = 0o600;

/// Makes a backend of a file; tests put faults between.
pub(super) type Mount = dyn Fn(File) -> Box<dyn StorageBackend> + Send + Sync;

/// The file, open and locked.
pub(super) struct Opened {
    pub(super) database: Database,
    pub(super) disk: Arc<Disk>,
}

/// What the system lets us do with a file.
pub(super) fn mount(file: File) -> Result<Box<dyn StorageBackend>, DatabaseError> {
    Ok(Box::new(FileBackend::new(file)?))
}

/// Opens the file, or makes it if it is not there.
pub(super) fn open_or_create(path: &Path, faults: Option<&Mount>) -> Result<Opened, OpenError> {
    match OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => contained(path, || open(path, file, faults, false)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => create(path, faults),
        Err(error) => Err(io_error(path, &error)),
    }
}

/// Opens the file again after a failed write.
pub(super) fn reopen(path: &Path, faults: Option<&Mount>) -> Result<Opened, OpenError> {
    let file = OpenOptions::new().read(true).write(true).open(path).map_err(|error| io_error(path, &error))?;
    contained(path, || open(path, file, faults, true))
}

fn open(path: &Path, file: File, faults: Option<&Mount>, rewrite: bool) -> Result<Opened, OpenError> {
    let metadata = file.metadata().map_err(|error| io_error(path, &error))?;
    if !metadata.is_file() {
        return Err(OpenError::Io { path: shown(path), what: "it is not a regular file".to_owned() });
    }
    // redb would make a new database of an empty file. We never leave one behind, so something else emptied it.
    if metadata.len() == 0 {
        return Err(damaged(path, "the file is empty"));
    }
    let opened = hold(path, file, faults)?;
    check_format(path, &opened.database)?;
    if rewrite {
        opened.disk.rewrite().map_err(|error| io_error(path, &error))?;
    }
    opened.disk.release().map_err(|error| io_error(path, &error))?;
    Ok(opened)
}

/// Makes the file under another name and links it to its own when it is complete, so that there is never half a file,
/// and a file that somebody else has made meanwhile is left alone.
fn create(path: &Path, faults: Option<&Mount>) -> Result<Opened, OpenError> {
    let draft = draft_of(path);
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(FILE_MODE)
        .open(&draft)
        .map_err(|error| io_error(path, &error))?;
    let made = contained(path, || fill(path, file, faults)).and_then(|opened| {
        fs::hard_link(&draft, path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => OpenError::Locked { path: shown(path) },
            _ => io_error(path, &error),
        })?;
        Ok(opened)
    });
    let removed = fs::remove_file(&draft);
    let opened = made?;
    removed.and_then(|()| sync_parent(path)).map_err(|error| io_error(path, &error))?;
    Ok(opened)
}

fn fill(path: &Path, file: File, faults: Option<&Mount>) -> Result<Opened, OpenError> {
    let opened = hold(path, file, faults)?;
    let initialize = || {
        let transaction = opened.database.begin_write()?;
        format::initialize(&transaction)?;
        transaction.commit()?;
        Ok(())
    };
    initialize().map_err(|fault: Fault| OpenError::Io { path: shown(path), what: fault.to_string() })?;
    opened.disk.release().map_err(|error| io_error(path, &error))?;
    Ok(opened)
}

/// A name beside the file that nobody else uses. Process ids would not do: in containers all are 1.
fn draft_of(path: &Path) -> PathBuf {
    let chance = RandomState::new().build_hasher().finish();
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{chance:016x}.new"));
    path.with_file_name(name)
}

/// Makes the file's name as durable as its content.
fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent)?.sync_all()
}

/// Has redb lock, check and repair the file, all without writing to it.
fn hold(path: &Path, file: File, faults: Option<&Mount>) -> Result<Opened, OpenError> {
    let backend = match faults {
        Some(faults) => faults(file),
        None => mount(file).map_err(|error| refused(path, error))?,
    };
    let disk = Disk::holding(backend).map_err(|error| io_error(path, &error))?;
    let mut builder = Builder::new();
    // A plain open trusts a file that was closed properly, and may panic or answer wrongly when somebody else changed
    // it. The check reads all of it and compares each page with its checksum.
    builder.set_cache_size(CACHE_BYTES).set_check_integrity_on_open(true);
    let handle = Handle(Arc::clone(&disk));
    let database = builder.create_with_backend(handle).map_err(|error| refused(path, error))?;
    Ok(Opened { database, disk })
}

/// What redb has not foreseen in a damaged file ends in a panic; that must not end the process. Nothing that the panic
/// left half done is used again: the file is closed, and was not written to unless its content was sound.
fn contained(path: &Path, work: impl FnOnce() -> Result<Opened, OpenError>) -> Result<Opened, OpenError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(damaged(path, &panic_text(&*panic))))
}

fn check_format(path: &Path, database: &Database) -> Result<(), OpenError> {
    let found = || -> Result<Option<u64>, redb::Error> {
        let transaction = database.begin_read()?;
        let meta = match transaction.open_table(META) {
            Ok(meta) => meta,
            Err(TableError::TableDoesNotExist(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        Ok(meta.get("format")?.map(|format| format.value()))
    };
    match found() {
        Ok(Some(found)) if found > FORMAT => Err(OpenError::Newer { path: shown(path), found, known: FORMAT }),
        Ok(Some(1..)) => Ok(()),
        Ok(Some(0) | None) => Err(damaged(path, "it is a database, but not of a catalog")),
        Err(redb::Error::Io(error)) => Err(io_error(path, &error)),
        Err(error) => Err(damaged(path, &error.to_string())),
    }
}

/// Why redb did not open the file.
fn refused(path: &Path, error: DatabaseError) -> OpenError {
    match error {
        DatabaseError::DatabaseAlreadyOpen | DatabaseError::LockProtocolMismatch => {
            OpenError::Locked { path: shown(path) }
        }
        DatabaseError::Storage(StorageError::Corrupted(what)) => damaged(path, &what),
        DatabaseError::Storage(StorageError::Io(error)) => match error.kind() {
            io::ErrorKind::InvalidData => damaged(path, "it is not a redb database"),
            io::ErrorKind::UnexpectedEof => damaged(path, "it ends too early"),
            _ => io_error(path, &error),
        },
        other => damaged(path, &other.to_string()),
    }
}

/// What a panic said.
pub(super) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no reason given".to_owned())
}

fn damaged(path: &Path, what: &str) -> OpenError {
    OpenError::Damaged { path: shown(path), what: what.to_owned() }
}

fn io_error(path: &Path, error: &io::Error) -> OpenError {
    OpenError::Io { path: shown(path), what: error.to_string() }
}

/// The path as messages show it.
pub(super) fn shown(path: &Path) -> String {
    path.display().to_string()
}
