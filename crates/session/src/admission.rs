//! A limit on one user's sessions that counts those of other processes too.

use std::any::Any;
use std::fmt;
use std::pin::Pin;

use switchyard_catalog::UserId;

/// A place in the cluster that a session of a user with such a limit takes: given back when it is dropped.
pub struct Permit(Box<dyn Any + Send + Sync>);

impl Permit {
    /// What is kept as long as the session lasts.
    pub fn new(place: impl Any + Send + Sync) -> Self {
        Self(Box::new(place))
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Permit").field(&(*self.0).type_id()).finish()
    }
}

/// What came of asking for a place.
#[derive(Debug)]
pub enum Admission {
    /// Nobody else is to be asked.
    Alone,
    /// A place was taken.
    Taken(Permit),
    /// None is left.
    Full,
}

/// Takes a place for a session of this user, of whom there may be so many in the cluster.
pub type Admit = dyn Fn(UserId, usize) -> Pin<Box<dyn Future<Output = Admission> + Send>> + Send + Sync;
