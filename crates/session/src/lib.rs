//! One connected client up to "authenticated": startup, authentication, limits, and the register of live sessions.
//!
//! [`establish`] takes a byte stream from its first byte to AuthenticationOk. Who may log in is decided by the catalog
//! ([`decide_login`]); what becomes of the session is the caller's.

mod admission;
mod connection;
mod error;
mod establish;
mod limits;
mod login;
mod registry;
mod routing;
mod secured;
mod throttle;
mod tls;

pub use admission::{Admission, Admit, Permit};
pub use error::{PasswordFailure, SessionError};
pub use establish::{Client, Context, Elsewhere, Established, establish};
pub use limits::{KeepAlive, Limits};
pub use login::{Attempt, Authenticate, LoginDecision, LoginRequest, Peer, decide_login, mock_secret};
pub use registry::{Activity, LoginSlot, NewSession, Registry, Session, SessionEntry, SessionState, Watcher};
pub use routing::{Balance, Decide, Destination, Routing};
pub use secured::{Rewound, Secured};
pub use throttle::Throttle;
pub use tls::{Reload, Tls, TlsError, TlsFacts, TlsOptions, TlsStatus, TlsVersion};
