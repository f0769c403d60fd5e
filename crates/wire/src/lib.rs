//! Protocol bytes: startup packets, SCRAM steps, SQLSTATEs. No sockets.
//!
//! Everything here is a function of bytes: "not yet" is `Ok(None)`, and a limit is checked before memory is taken.

pub mod answer;
pub mod certificate;
mod error;
pub mod frame;
pub mod frontend;
pub mod member;
pub mod message;
pub mod options;
pub mod proxy_header;
pub mod scram;
pub mod sqlstate;
pub mod startup;
pub mod upstream;
pub mod utf8;
pub mod verifier;
pub mod vertica;

pub use certificate::{Certificate, CertificateError};
pub use error::WireError;
pub use frame::{FrameHeader, frame};
pub use message::{Report, Severity};
pub use proxy_header::{PROXY_HEADER_BYTES_MAX, Proxied, proxy_header};
pub use sqlstate::SqlState;
pub use startup::{CancelKey, Startup, Untyped, Version, untyped};
pub use utf8::{InvalidUtf8, utf8};
pub use verifier::{Md5Verifier, ScramVerifier, Sha512Verifier, VerifierError, verifiers, verifiers_with};
