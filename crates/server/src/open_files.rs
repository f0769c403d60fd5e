//! How many files, and so connections, the system lets the process open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::{debug, warn};

/// What the process opens besides client connections: the store, listeners, standard streams, the runtime's own.
const OTHERS: u64 = 64;

/// Takes as many as the system gives without asking anybody, and says when that is too few for `connections_max`
/// sessions and `logins_max` logins.
pub(crate) fn raise(connections: usize) {
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }) {
        debug!(%error, "cannot raise the number of open files");
    }
    let allowed = getrlimit(Resource::Nofile).current;
    let wanted = u64::try_from(connections).unwrap_or(u64::MAX).saturating_add(OTHERS);
    if let Some(allowed) = allowed
        && allowed < wanted
    {
        warn!(allowed, wanted, "the system allows fewer open files than \"connections_max\" and \"logins_max\" need");
    }
}
