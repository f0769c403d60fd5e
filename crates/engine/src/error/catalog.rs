//! The catalog's errors as clients read them.

use switchyard_catalog::CatalogError;

use super::{ClientError, Severity, SqlState};

/// Code and text for what [`switchyard_catalog::Catalog::apply`] refused. A new kind of error does not compile until it
/// has a code.
pub(super) fn client_error(error: &CatalogError) -> ClientError {
    ClientError {
        severity: match error {
            CatalogError::Dependents { .. } => Severity::Rollback,
            _ => Severity::Error,
        },
        sqlstate: sqlstate(error),
        message: error.to_string(),
        detail: error.detail(),
        hint: error.hint(),
        position: None,
        notices_before: error.dependency_notices(),
    }
}

fn sqlstate(error: &CatalogError) -> SqlState {
    use CatalogError as E;
    match error {
        E::Exists { .. }
        | E::Repeated { .. }
        | E::AlreadyMember { .. }
        | E::NodeDuplicate { .. }
        | E::MappingExists { .. } => SqlState::DuplicateObject,
        E::Reserved { .. } => SqlState::ReservedName,
        E::Missing { .. } | E::NotMember { .. } | E::MappingMissing { .. } => SqlState::UndefinedObject,
        E::GroupKind { .. } | E::RuleType { .. } | E::FilterForbidden { .. } => SqlState::WrongObjectType,
        E::FilterMissing { .. }
        | E::NoMembers { .. }
        | E::LastSubcluster { .. }
        | E::FaultGroupCycle { .. }
        | E::BadAddress { .. }
        | E::OutOfRange { .. }
        | E::OtherNode { .. }
        | E::NotStandby { .. }
        | E::TooFewWorkers { .. } => SqlState::InvalidParameterValue,
        E::Dependents { .. } => SqlState::DependentObjects,
        E::GrantedOn { .. } => SqlState::DependentPrivileges,
        E::Protected { .. }
        | E::LastPrimary { .. }
        | E::DefaultSubclusterNode { .. }
        | E::NoStandby { .. }
        | E::DefaultTableGroup { .. } => SqlState::ObjectNotInPrerequisiteState,
        E::RoleCycle { .. } => SqlState::InvalidGrantOperation,
        E::RoleNotGranted { .. } | E::MayNotGrant { .. } => SqlState::InsufficientPrivilege,
        E::SecondSuperuser { .. } => SqlState::FeatureNotSupported,
        E::TooManyShards { .. } => SqlState::ProgramLimitExceeded,
    }
}
