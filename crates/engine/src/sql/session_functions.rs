//! Functions that do something to sessions: settings, advisory locks, ends of statements and sessions, notifications.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::array::new_empty_array;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::DataFusionError;
use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::async_udf::{AsyncScalarUDF, AsyncScalarUDFImpl};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};

use super::catalog_functions::declared::setting_shown;
use super::error::QueryError;
use super::{Current, current};
use crate::effects::Effect;
use crate::error::{ClientError, PlanError, SqlState, Warning};
use crate::locks::{LockFault, LockKey, LockMode};
use crate::session_state::SessionChange;
use crate::settings::{Level, declaration, effective, int_of};
use crate::snapshot::Snapshot;

/// What a function does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Does {
    SetConfig,
    CurrentSetting,
    Cancel,
    Terminate,
    Notify,
    Lock { tries: bool, shared: bool, of_transaction: bool },
    Unlock { shared: bool },
    UnlockAll,
}

/// One function, with the numbers of arguments it takes and whether it tells true or false.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Function {
    name: &'static str,
    arguments: (usize, usize),
    does: Does,
}

const fn function(name: &'static str, arguments: (usize, usize), does: Does) -> Function {
    Function { name, arguments, does }
}

const fn lock(name: &'static str, tries: bool, shared: bool, of_transaction: bool) -> Function {
    function(name, (1, 2), Does::Lock { tries, shared, of_transaction })
}

/// `current_setting` where `set_config` is called too: each sees what those before it did.
pub(super) const CURRENT_SETTING: &str = "__current_setting";

static FUNCTIONS: &[Function] = &[
    function(CURRENT_SETTING, (1, 2), Does::CurrentSetting),
    function("set_config", (3, 3), Does::SetConfig),
    function("pg_cancel_backend", (1, 1), Does::Cancel),
    function("pg_terminate_backend", (1, 2), Does::Terminate),
    function("pg_notify", (2, 2), Does::Notify),
    lock("pg_advisory_lock", false, false, false),
    lock("pg_advisory_lock_shared", false, true, false),
    lock("pg_try_advisory_lock", true, false, false),
    lock("pg_try_advisory_lock_shared", true, true, false),
    lock("pg_advisory_xact_lock", false, false, true),
    lock("pg_advisory_xact_lock_shared", false, true, true),
    lock("pg_try_advisory_xact_lock", true, false, true),
    lock("pg_try_advisory_xact_lock_shared", true, true, true),
    function("pg_advisory_unlock", (1, 2), Does::Unlock { shared: false }),
    function("pg_advisory_unlock_shared", (1, 2), Does::Unlock { shared: true }),
    function("pg_advisory_unlock_all", (0, 0), Does::UnlockAll),
];

impl Does {
    /// PostgreSQL's `void` is an empty text here, as its clients see it.
    fn gives(self) -> DataType {
        match self {
            Self::Cancel | Self::Terminate | Self::Unlock { .. } | Self::Lock { tries: true, .. } => DataType::Boolean,
            Self::SetConfig
            | Self::CurrentSetting
            | Self::Notify
            | Self::UnlockAll
            | Self::Lock { tries: false, .. } => DataType::Utf8,
        }
    }
}

struct Udf {
    function: &'static Function,
    signature: Signature,
    current: Current,
}

impl std::fmt::Debug for Udf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Udf").field(&self.function.name).finish()
    }
}

impl PartialEq for Udf {
    fn eq(&self, other: &Self) -> bool {
        self.function == other.function
    }
}

impl Eq for Udf {}

impl Hash for Udf {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.function.hash(state);
    }
}

impl ScalarUDFImpl for Udf {
    fn name(&self) -> &str {
        self.function.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType, DataFusionError> {
        Ok(self.function.does.gives())
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue, DataFusionError> {
        Err(DataFusionError::Execution(format!("{} cannot be called here", self.function.name)))
    }
}

#[async_trait::async_trait]
impl AsyncScalarUDFImpl for Udf {
    async fn invoke_async_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue, DataFusionError> {
        let mut results = Vec::with_capacity(arguments.number_rows);
        for row in 0..arguments.number_rows {
            let values = arguments.args.iter().map(|argument| match argument {
                ColumnarValue::Scalar(scalar) => Ok(scalar.clone()),
                ColumnarValue::Array(array) => ScalarValue::try_from_array(array, row),
            });
            let values = values.collect::<Result<Vec<_>, _>>()?;
            // For each row: it may see what those before did.
            let snapshot = current(&self.current);
            let result = self.function.does.run(&snapshot, &values).await;
            results.push(result.map_err(|error| DataFusionError::External(Box::new(error)))?);
        }
        if results.is_empty() {
            return Ok(ColumnarValue::Array(new_empty_array(&self.function.does.gives())));
        }
        Ok(ColumnarValue::Array(ScalarValue::iter_to_array(results)?))
    }
}

impl Does {
    async fn run(self, snapshot: &Snapshot, arguments: &[ScalarValue]) -> Result<ScalarValue, QueryError> {
        let absent = arguments.iter().any(ScalarValue::is_null);
        // Of set_config, only the value may be NULL: that is the default.
        if absent && self != Self::SetConfig {
            return null(&self.gives());
        }
        match self {
            Self::SetConfig => set_config(snapshot, arguments),
            Self::CurrentSetting => {
                let name = text(arguments.first()).unwrap_or_default();
                let fine = arguments.get(1) == Some(&ScalarValue::Boolean(Some(true)));
                setting_shown(snapshot, &name, fine).map(ScalarValue::Utf8)
            }
            Self::Cancel => end(snapshot, arguments, Effect::Cancel, "cancel query"),
            Self::Terminate => end(snapshot, arguments, Effect::Terminate, "terminate process"),
            Self::Notify => {
                let channel = text(arguments.first()).unwrap_or_default();
                let payload = text(arguments.get(1)).unwrap_or_default();
                note(snapshot, Effect::Notify { channel, payload })?;
                Ok(void())
            }
            Self::Lock { tries, shared, of_transaction } => {
                let mode = LockMode { shared, depth: of_transaction.then(|| snapshot.session.savepoint_depth()) };
                let (process_id, key) = (snapshot.session.process_id, key(arguments)?);
                let locks = &snapshot.live.locks;
                if tries {
                    let got = locks.try_lock(process_id, key, mode).map_err(fault)?;
                    return Ok(ScalarValue::Boolean(Some(got)));
                }
                let timeout = u64::try_from(int_of("lock_timeout", &snapshot.session, &snapshot.catalog)).ok();
                let timeout = timeout.filter(|ms| *ms > 0).map(Duration::from_millis);
                locks.lock(process_id, key, mode, timeout).await.map_err(fault)?;
                Ok(void())
            }
            Self::Unlock { shared } => {
                let found = snapshot.live.locks.unlock(snapshot.session.process_id, key(arguments)?, shared);
                if !found {
                    let kind = if shared { "ShareLock" } else { "ExclusiveLock" };
                    note(snapshot, Effect::Warn(Warning::new(format!("you don't own a lock of type {kind}"))))?;
                }
                Ok(ScalarValue::Boolean(Some(found)))
            }
            Self::UnlockAll => {
                snapshot.live.locks.unlock_all(snapshot.session.process_id);
                Ok(void())
            }
        }
    }
}

fn void() -> ScalarValue {
    ScalarValue::Utf8(Some(String::new()))
}

fn null(kind: &DataType) -> Result<ScalarValue, QueryError> {
    Ok(ScalarValue::try_from(kind)?)
}

fn note(snapshot: &Snapshot, effect: Effect) -> Result<(), QueryError> {
    if snapshot.live.effects.push(effect) {
        return Ok(());
    }
    Err(QueryError::new(SqlState::ProgramLimitExceeded, "the query would change too much of the session"))
}

fn text(value: Option<&ScalarValue>) -> Option<String> {
    value.filter(|value| !value.is_null()).map(ToString::to_string)
}

fn number(value: &ScalarValue) -> Result<i64, QueryError> {
    match value.cast_to(&DataType::Int64)? {
        ScalarValue::Int64(Some(number)) => Ok(number),
        _ => Err(QueryError::new(SqlState::InvalidTextRepresentation, "a number is wanted")),
    }
}

fn key(arguments: &[ScalarValue]) -> Result<LockKey, QueryError> {
    let small = |value: &ScalarValue| {
        i32::try_from(number(value)?).map_err(|_| QueryError::new(SqlState::NumberOutOfRange, "integer out of range"))
    };
    match arguments {
        [high, low] => Ok(LockKey::Two(small(high)?, small(low)?)),
        [one] => Ok(LockKey::One(number(one)?)),
        _ => Err(QueryError::new(SqlState::UndefinedFunction, "a lock has one number, or two")),
    }
}

fn fault(fault: LockFault) -> QueryError {
    match fault {
        LockFault::Deadlock => QueryError::new(SqlState::DeadlockDetected, "deadlock detected"),
        LockFault::Timeout => QueryError::new(SqlState::LockNotAvailable, "canceling statement due to lock timeout"),
        LockFault::Locks { locks_max } => {
            let message = format!("too many advisory locks: there are {locks_max}");
            QueryError::new(SqlState::OutOfMemory, message)
        }
        LockFault::Waiters { waiters_max } => {
            let message = format!("too many sessions wait for advisory locks: there are {waiters_max}");
            QueryError::new(SqlState::ConfigurationLimitExceeded, message)
        }
    }
}

fn told(error: impl Into<PlanError>) -> QueryError {
    let ClientError { sqlstate, message, detail, hint, .. } = ClientError::from(error.into());
    QueryError { detail, hint, ..QueryError::new(sqlstate, message) }
}

fn set_config(snapshot: &Snapshot, arguments: &[ScalarValue]) -> Result<ScalarValue, QueryError> {
    let [name, value, local] = arguments else { return null(&DataType::Utf8) };
    let Some(name) = text(Some(name)) else {
        return Err(QueryError::new(SqlState::NullValueNotAllowed, "SET requires parameter name"));
    };
    let setting = declaration(&name).map_err(told)?;
    setting.allow(Level::Session, snapshot.superuser()).map_err(told)?;
    let of_transaction = setting.name.starts_with("transaction_");
    let local = of_transaction || *local == ScalarValue::Boolean(Some(true));
    let (change, kept) = match text(Some(value)) {
        Some(value) => {
            let value =
                crate::plan::checked_value(setting, &value, &snapshot.session, &snapshot.catalog).map_err(told)?;
            (SessionChange::Set { name: setting.name, value: value.clone(), local }, value)
        }
        None => {
            let mut after = (*snapshot.session).clone();
            after.apply(SessionChange::Reset(setting.name), &snapshot.catalog, &mut rand::rng());
            (SessionChange::Reset(setting.name), effective(setting, &after, &snapshot.catalog).0.into_owned())
        }
    };
    note(snapshot, Effect::Change(change))?;
    Ok(ScalarValue::Utf8(Some(setting.shown(&kept))))
}

/// Who may end what a session does, or the session: its user and a superuser.
fn end(
    snapshot: &Snapshot,
    arguments: &[ScalarValue],
    effect: fn(i32) -> Effect,
    what: &str,
) -> Result<ScalarValue, QueryError> {
    let wanted = arguments.first().map(number).transpose()?.unwrap_or_default();
    let found = snapshot.live.sessions.iter().find(|session| session.process_id == wanted);
    let (Some(session), Ok(process_id)) = (found, i32::try_from(wanted)) else {
        let warning = Warning::new(format!("PID {wanted} is not a PostgreSQL backend process"));
        note(snapshot, Effect::Warn(warning))?;
        return Ok(ScalarValue::Boolean(Some(false)));
    };
    let own = session.user == snapshot.session.user_name(&snapshot.catalog);
    if !own && !snapshot.superuser() {
        return Err(QueryError {
            detail: Some(format!("The session is that of user \"{}\".", session.user)),
            ..QueryError::new(SqlState::InsufficientPrivilege, format!("permission denied to {what}"))
        });
    }
    note(snapshot, effect(process_id))?;
    Ok(ScalarValue::Boolean(Some(true)))
}

/// Registers them in a session's context.
pub(super) fn register(context: &SessionContext, current_snapshot: &Current) {
    for function in FUNCTIONS {
        let (least, most) = function.arguments;
        let arities = (least..=most).map(|count| match count {
            0 => TypeSignature::Nullary,
            count => TypeSignature::Any(count),
        });
        let signature = Signature::one_of(arities.collect(), Volatility::Volatile);
        let udf = Udf { function, signature, current: Arc::clone(current_snapshot) };
        context.register_udf(AsyncScalarUDF::new(Arc::new(udf)).into_scalar_udf());
    }
}
