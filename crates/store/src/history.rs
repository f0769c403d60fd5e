//! What all stores do alike with history: its order, going backwards, and the size of what they keep.

use switchyard_catalog::{Catalog, Delta};

use crate::contract::{HistoryEntry, Outcome, Record};

/// The longest text, in bytes, kept of a refused statement; committed ones are kept whole.
pub const REFUSAL_BYTES_MAX: usize = 16 * 1024;

/// Puts commits and refusals in the order in which they happened, the clocks of those who made them notwithstanding:
/// a refusal comes with the newest version there was when it was noted, and so belongs between that commit and the next.
///
/// Reads no more than it returns. `refusals` start at those noted when `after` was the newest version. Commits before
/// `oldest`, the oldest version that is kept, are left out.
pub(crate) fn in_order<E>(
    after: u64,
    oldest: u64,
    head: u64,
    limit: usize,
    refusals: impl IntoIterator<Item = Result<(u64, HistoryEntry), E>>,
    mut commit: impl FnMut(u64) -> Result<HistoryEntry, E>,
) -> Result<Vec<HistoryEntry>, E> {
    let mut entries = Vec::new();
    if limit == 0 {
        return Ok(entries);
    }
    let mut version = after.max(oldest.saturating_sub(1));
    for refusal in refusals {
        let (noted_at, refusal) = refusal?;
        while version < noted_at.min(head) {
            version += 1;
            entries.push(commit(version)?);
            if entries.len() == limit {
                return Ok(entries);
            }
        }
        entries.push(refusal);
        if entries.len() == limit {
            return Ok(entries);
        }
    }
    while version < head && entries.len() < limit {
        version += 1;
        entries.push(commit(version)?);
    }
    Ok(entries)
}

/// The catalog as it was in `version`, unless that is older than `oldest`, which history keeps. `deltas_of` says what made
/// a version, if history has it.
pub(crate) fn backwards<E>(
    newest: &Catalog,
    version: u64,
    oldest: u64,
    mut deltas_of: impl FnMut(u64) -> Result<Option<Vec<Delta>>, E>,
) -> Result<Option<Catalog>, E> {
    // Nothing but emptiness came before the first commit, and a catalog always has a database.
    if version > newest.version() || (version < oldest.max(1) && newest.version() > 0) {
        return Ok(None);
    }
    let mut catalog = newest.clone();
    while catalog.version() > version {
        let Some(deltas) = deltas_of(catalog.version())? else {
            return Ok(None);
        };
        catalog = catalog.with_deltas(catalog.version() - 1, deltas.into_iter().rev().map(Delta::reversed));
    }
    Ok(Some(catalog))
}

/// The entry of a refused statement, its text cut to what is kept: whoever may connect can send refused statements.
pub(crate) fn refusal(version: u64, mut record: Record, mut outcome: Outcome) -> HistoryEntry {
    let mut left = REFUSAL_BYTES_MAX;
    let mut kept = Vec::new();
    for mut statement in record.statements {
        if left == 0 {
            break;
        }
        cut(&mut statement, left);
        left = left.saturating_sub(statement.len());
        kept.push(statement);
    }
    record.statements = kept;
    if let Outcome::Refused { message, .. } = &mut outcome {
        cut(message, REFUSAL_BYTES_MAX);
    }
    HistoryEntry { version, record, outcome }
}

fn cut(text: &mut String, bytes_max: usize) {
    const MARK: &str = "...";
    if text.len() > bytes_max {
        text.truncate(text.floor_char_boundary(bytes_max.saturating_sub(MARK.len())));
        text.push_str(MARK);
    }
}
