//! What a statement means: AST and catalog to plan; system tables and queries through DataFusion.

pub mod dump;
pub mod error;
pub mod plan;
pub mod rights;
pub mod session_state;
pub mod settings;
pub mod show;

pub use error::{ClientError, PlanError, Severity, SqlState, Warning};
pub use plan::{Plan, PlanContext, plan};
pub use session_state::{Login, SessionChange, SessionState};
