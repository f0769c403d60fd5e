//! What a statement means: AST and catalog to plan; system tables and queries through DataFusion.

pub mod describe;
pub mod dump;
mod effects;
pub mod error;
mod locks;
pub mod plan;
pub mod rights;
mod routed;
pub mod session_state;
pub mod settings;
pub mod show;
mod snapshot;
mod sql;
mod tables;
pub use effects::{Effect, Effects};
pub use error::{AS_SUPERUSER, ClientError, PlanError, Severity, SqlState, Warning};
pub use locks::{AdvisoryLocks, LockFault, LockKey, LockMode, LockRow};
pub use routed::{Candidates, RoutedConnection};
pub use session_state::{
    IdleLimit, IdleSetting, Login, SessionChange, SessionState, WorkloadWish, grace_period_ms, idle_limits,
    statement_time_ms,
};
pub use snapshot::{
    ClientCertificate, CursorRow, DrainProgress, HistoryRow, HostInterface, Lazy, Live, LiveSession, LiveTls,
    LoggedStatement, LoginFailure, NodeEvent, PreparedRow, ProcessSetting, ServerCertificate, Snapshot, Traffic, Work,
    WorkloadDecision, node_states,
};
pub use sql::{
    Described, Needs, OutputColumn, Parameter, PgType, PlanCache, Queries, QueryError, QueryLimits, QueryRows, Scalar,
    TimeSetting, facts, interval_text, time_text, with_values,
};
pub use tables::pg_catalog::type_oid;
pub use tables::{Column, Kind as ColumnKind, SEARCH_PATH, SystemTable, Visibility, all as system_tables};

/// The candidate most like a word, when one is alike enough to be meant.
pub(crate) fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    candidates
        .map(|candidate| (strsim::damerau_levenshtein(&word, &candidate.to_lowercase()), candidate))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, _)| *distance <= (word.chars().count() / 3).clamp(1, 3))
        .map(|(_, candidate)| candidate)
}

/// Whether a statement is meant to change the catalog: history notes when it is refused.
pub fn changes_catalog(statement: &switchyard_dialect::Statement) -> bool {
    use switchyard_dialect::{MetaFunction as F, Statement as S};
    match statement {
        S::Function { function, .. } => matches!(
            function,
            F::SetLoadBalancePolicy
                | F::SetConfigParameter
                | F::StartDrainSubcluster
                | F::CancelDrainSubcluster
                | F::ShutdownSubcluster
                | F::ShutdownWithDrain
                | F::PromoteSubclusterToPrimary
                | F::DemoteSubclusterToSecondary
        ),
        S::SetSessionWorkload(_)
        | S::SetRole(_)
        | S::Show(_)
        | S::AlterSession(_)
        | S::Set { .. }
        | S::Reset(_)
        | S::Discard(_)
        | S::Begin { .. }
        | S::Commit
        | S::Rollback
        | S::Savepoint(_)
        | S::ReleaseSavepoint(_)
        | S::RollbackTo(_)
        | S::DeclareCursor { .. }
        | S::FetchCursor { .. }
        | S::CloseCursor(_)
        | S::Prepare { .. }
        | S::Execute { .. }
        | S::Deallocate(_)
        | S::Listen(_)
        | S::Unlisten(_)
        | S::Notify { .. }
        | S::Sql(_) => false,
        _ => true,
    }
}
