//! The file under redb.
//!
//! redb writes as soon as it opens a file: it repairs, checks and marks it as in use. A file that we then refuse must
//! stay as it was, byte for byte, so what redb writes is held back until the content is known to be ours.
//!
//! Later, redb's header, which says where the newest commit is, is written last of all before a sync. redb itself writes
//! it first, since its checksums make the order indifferent; but then a full disk would leave every commit in doubt,
//! while so most failures come before anything that could be taken for a commit.

use std::fmt;
use std::io;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use redb::{BackendError, StorageBackend};

/// Where redb keeps which of its two roots is the newest: a commit that has not written here has not happened.
const HEADER_BYTES: u64 = 4096;

/// How much of the file is rewritten at once.
const REWRITE_BYTES: usize = 1024 * 1024;

/// A file that redb reads, and writes when it may.
pub(super) struct Disk {
    file: Box<dyn StorageBackend>,
    phase: RwLock<Phase>,
    /// Writes to the header since the last sync.
    header: Mutex<Vec<(u64, Vec<u8>)>>,
    header_written: AtomicBool,
}

enum Phase {
    /// What redb did is remembered, and shown to it, but not done.
    Holding(Held),
    /// All goes through.
    Writing,
    /// Nothing goes through any more.
    Sealed,
}

struct Held {
    file_len: u64,
    operations: Vec<Operation>,
}

enum Operation {
    Write { offset: u64, data: Vec<u8> },
    Resize(u64),
    Sync,
}

impl Disk {
    /// Takes a file; nothing is written to it before [`Disk::release`].
    pub(super) fn holding(file: Box<dyn StorageBackend>) -> io::Result<Arc<Self>> {
        let held = Held { file_len: file.len()?, operations: Vec::new() };
        let phase = RwLock::new(Phase::Holding(held));
        Ok(Arc::new(Self { file, phase, header: Mutex::default(), header_written: AtomicBool::new(false) }))
    }

    /// Does what was held back, in the order in which redb did it, so that a crash in between is one that redb knows
    /// how to repair. All later writes go through.
    pub(super) fn release(&self) -> io::Result<()> {
        let mut phase = self.phase_mut();
        let Phase::Holding(held) = std::mem::replace(&mut *phase, Phase::Sealed) else {
            return Err(sealed());
        };
        for operation in held.operations {
            match operation {
                Operation::Write { offset, data } => self.file.write(offset, &data)?,
                Operation::Resize(len) => self.file.set_len(len)?,
                Operation::Sync => self.file.sync_data()?,
            }
        }
        *phase = Phase::Writing;
        Ok(())
    }

    /// Lets nothing through from here on, not even what redb does when it is closed.
    pub(super) fn seal(&self) {
        *self.phase_mut() = Phase::Sealed;
    }

    /// Writes the file onto itself and syncs it. After a sync that failed, the system may show content that it has
    /// given up writing; only a sync after new writes says whether what we read is what is there.
    pub(super) fn rewrite(&self) -> io::Result<()> {
        let len = self.file.len()?;
        let mut buffer = vec![0; REWRITE_BYTES];
        let mut offset = 0;
        while offset < len {
            let left = usize::try_from(len - offset).unwrap_or(usize::MAX);
            let chunk_len = left.min(REWRITE_BYTES);
            let (chunk, _) = buffer.split_at_mut(chunk_len);
            self.file.read(offset, chunk)?;
            self.file.write(offset, chunk)?;
            offset += chunk_len as u64;
        }
        self.file.sync_data()
    }

    /// Forgets that the header was written.
    pub(super) fn watch_header(&self) {
        self.header_written.store(false, Ordering::Release);
    }

    /// Whether we tried to write the header since [`Disk::watch_header`].
    pub(super) fn header_written(&self) -> bool {
        self.header_written.load(Ordering::Acquire)
    }

    fn header(&self) -> MutexGuard<'_, Vec<(u64, Vec<u8>)>> {
        self.header.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sync(&self) -> io::Result<()> {
        for (offset, data) in self.header().drain(..) {
            self.header_written.store(true, Ordering::Release);
            self.file.write(offset, &data)?;
        }
        self.file.sync_data()
    }

    fn phase(&self) -> RwLockReadGuard<'_, Phase> {
        self.phase.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn phase_mut(&self) -> RwLockWriteGuard<'_, Phase> {
        self.phase.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds an operation back if we must, or says that the caller is to do it.
    fn hold(&self, operation: impl FnOnce() -> Operation) -> io::Result<bool> {
        match &*self.phase() {
            Phase::Writing => return Ok(false),
            Phase::Sealed => return Err(sealed()),
            Phase::Holding(_) => {}
        }
        match &mut *self.phase_mut() {
            Phase::Holding(held) => held.operations.push(operation()),
            Phase::Writing | Phase::Sealed => return Err(sealed()),
        }
        Ok(true)
    }
}

impl Held {
    fn len(&self) -> u64 {
        self.operations.iter().fold(self.file_len, |len, operation| match operation {
            Operation::Write { offset, data } => len.max(offset.saturating_add(data.len() as u64)),
            Operation::Resize(len) => *len,
            Operation::Sync => len,
        })
    }

    /// Reads the file as it would be had all been done.
    fn read(&self, file: &dyn StorageBackend, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if offset.saturating_add(out.len() as u64) > self.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let (in_file, beyond) = out.split_at_mut(position(self.file_len, offset, out.len()));
        file.read(offset, in_file)?;
        beyond.fill(0);
        for operation in &self.operations {
            match operation {
                Operation::Write { offset: start, data } => overlay(out, offset, data, *start),
                Operation::Resize(len) => {
                    let (_, cut_off) = out.split_at_mut(position(*len, offset, out.len()));
                    cut_off.fill(0);
                }
                Operation::Sync => {}
            }
        }
        Ok(())
    }
}

/// Where in a buffer of `len` bytes that was read at `offset` the byte `at` of the file is, or would be.
fn position(at: u64, offset: u64, len: usize) -> usize {
    usize::try_from(at.saturating_sub(offset)).unwrap_or(usize::MAX).min(len)
}

/// Copies what `data`, written at `start`, has in common with `out`, read at `offset`.
fn overlay(out: &mut [u8], offset: u64, data: &[u8], start: u64) {
    let skipped = position(offset, start, data.len());
    let first = position(start, offset, out.len());
    if let (Some(target), Some(source)) = (out.get_mut(first..), data.get(skipped..)) {
        for (target, source) in target.iter_mut().zip(source) {
            *target = *source;
        }
    }
}

fn sealed() -> io::Error {
    io::Error::other("the file is closed to writes")
}

/// The disk as redb holds it.
pub(super) struct Handle(pub(super) Arc<Disk>);

impl fmt::Debug for Handle {
    /// What is held back may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Handle").field(&self.0.file).finish()
    }
}

impl StorageBackend for Handle {
    fn len(&self) -> io::Result<u64> {
        match &*self.0.phase() {
            Phase::Holding(held) => Ok(held.len()),
            Phase::Writing | Phase::Sealed => self.0.file.len(),
        }
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        match &*self.0.phase() {
            Phase::Holding(held) => held.read(&*self.0.file, offset, out)?,
            Phase::Writing | Phase::Sealed => self.0.file.read(offset, out)?,
        }
        if offset < HEADER_BYTES {
            for (start, data) in &*self.0.header() {
                overlay(out, offset, data, *start);
            }
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        if self.0.hold(|| Operation::Resize(len))? { Ok(()) } else { self.0.file.set_len(len) }
    }

    fn sync_data(&self) -> io::Result<()> {
        if self.0.hold(|| Operation::Sync)? { Ok(()) } else { self.0.sync() }
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        if self.0.hold(|| Operation::Write { offset, data: data.to_vec() })? {
            return Ok(());
        }
        if offset < HEADER_BYTES {
            self.0.header().push((offset, data.to_vec()));
            return Ok(());
        }
        self.0.file.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.0.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.file.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.file.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.file.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.file.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.file.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.file.query_lock_range(start, end)
    }
}
