//! Queries over the system tables, through DataFusion, which never sees a statement that was not let through
//! [`guard`]: no files, no DDL or DML of its own, memory and time limits for each query, nothing shared by sessions but
//! the system tables themselves (`reference/crates.md` §3, "Safety").

mod aggregates;
mod alike;
mod bounded;
mod calls;
mod catalog_functions;
mod cells;
mod chains;
mod common;
mod constants;
mod convert;
mod direct;
mod distinct;
mod empty;
mod error;
mod functions;
mod guard;
mod in_order;
mod json_text;
mod kinds;
mod lateral;
mod mistakes;
mod moments;
mod names;
mod order;
mod parameters;
mod patterns;
mod places;
mod plans;
mod printed;
mod provider;
mod quantified;
mod refused;
mod rewrite;
mod row_values;
mod session_functions;
mod set_functions;
mod subquery;
mod typed;
mod wide;
mod widths;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::DataFusionError;
use datafusion::execution::SessionStateDefaults;
use datafusion::execution::TaskContext;
use datafusion::execution::context::{SQLOptions, SessionContext};
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::{SendableRecordBatchStream, execute_stream};
use datafusion::prelude::SessionConfig;
use datafusion::sql::parser::Statement as DataFusionStatement;
use futures::stream::{BoxStream, StreamExt};
use sqlparser::ast::Statement;
use switchyard_dialect::SqlStatement;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

pub(crate) use catalog_functions::catalog_functions;
pub use cells::{Parameter, PgType, Scalar};
pub use error::QueryError;
pub use guard::Needs;
pub(crate) use moments::zone_named;
pub use moments::{interval_text, time_text};
pub use plans::{PlanCache, facts};
pub(crate) use set_functions::SET_FUNCTIONS;
pub use set_functions::with_values;

use bounded::Budget;
use direct::Direct;
use places::Subject;
use plans::{Planned, is_repeatable};

use crate::error::SqlState;
use crate::snapshot::Snapshot;

/// What limits the time of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimeSetting {
    /// The administrator's setting.
    QueryTimeMax,
    /// PostgreSQL's, of the session.
    StatementTimeout,
    /// Vertica's, of the user or the session.
    RuntimeCap,
}

/// What one query may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueryLimits {
    /// Bytes of memory for sorts, joins and groups.
    pub memory_bytes_max: usize,
    /// Wall time in milliseconds; 0 is no limit.
    pub time_ms_max: u64,
    /// What says so, for the error.
    pub time_setting: TimeSetting,
    /// How deep brackets may nest: over how many steps WITH queries may refer to one another follows from it.
    pub depth_max: u64,
}

/// One column of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputColumn {
    /// As PostgreSQL would name it.
    pub name: String,
    /// Its type.
    pub kind: PgType,
    /// The type's modifier, as PostgreSQL tells it: a length, or digits; -1 for none.
    pub modifier: i32,
    /// The number of the table whose column it is, and the column's place in it; none for what is computed.
    pub origin: Option<(u32, i16)>,
}

/// What is known of a query before it runs.
#[derive(Debug, Clone)]
pub struct Described {
    /// The types of `$1`, `$2`, ...
    pub parameters: Vec<PgType>,
    /// The result's columns.
    pub columns: Arc<[OutputColumn]>,
}

/// A result that is being read.
pub struct QueryRows {
    /// Its columns.
    pub columns: Arc<[OutputColumn]>,
    /// Its rows.
    pub rows: BoxStream<'static, Result<Vec<Scalar>, QueryError>>,
}

impl std::fmt::Debug for QueryRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QueryRows").field("columns", &self.columns).finish_non_exhaustive()
    }
}

/// The snapshot that the tables and functions of one session read.
type Current = Arc<Mutex<Arc<Snapshot>>>;

fn current(current: &Current) -> Arc<Snapshot> {
    Arc::clone(&current.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The query engine of one session.
pub struct Queries(Arc<Engine>);

struct Engine {
    config: SessionConfig,
    runtime: Arc<RuntimeEnv>,
    /// Made when something must be planned: it knows hundreds of functions, and most sessions ask what others have asked.
    context: OnceLock<SessionContext>,
    current: Current,
    limits: QueryLimits,
    budget: Arc<Budget>,
    plans: Arc<PlanCache>,
}

impl std::fmt::Debug for Queries {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queries").field("limits", &self.0.limits).finish_non_exhaustive()
    }
}

impl Queries {
    /// An engine that reads `snapshot` until it is given another. It shares its plans with all that have the same `plans`.
    ///
    /// # Errors
    /// When DataFusion cannot be set up.
    pub fn new(snapshot: Arc<Snapshot>, limits: QueryLimits, plans: Arc<PlanCache>) -> Result<Self, QueryError> {
        let database = snapshot.catalog.database().name.folded().to_owned();
        let current = Arc::new(Mutex::new(snapshot));
        let runtime = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::new(GreedyMemoryPool::new(limits.memory_bytes_max)))
            .with_disk_manager_builder(DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled))
            .with_object_store_registry(Arc::new(provider::NoObjectStores))
            .build_arc()?;
        let mut config = SessionConfig::new()
            .with_create_default_catalog_and_schema(false)
            .with_default_catalog_and_schema(database, provider::DEFAULT_SCHEMA)
            .with_information_schema(false)
            .with_target_partitions(1)
            .with_batch_size(wide::BATCH_ROWS);
        config.options_mut().sql_parser.dialect = datafusion::config::Dialect::PostgreSQL;
        config.options_mut().sql_parser.map_string_types_to_utf8view = false;
        config.options_mut().sql_parser.collect_spans = true;
        config.options_mut().sql_parser.parse_float_as_decimal = true;
        // Their state would go from one execution of a plan that is kept to the next.
        config.options_mut().optimizer.enable_dynamic_filter_pushdown = false;
        // Columns carry where they come from as metadata, which UNION keeps in the one schema and not in the other.
        config.options_mut().execution.skip_physical_aggregate_schema_check = true;
        config.options_mut().execution.time_zone = Some("+00:00".to_owned());
        let (context, budget) = (OnceLock::new(), Arc::default());
        Ok(Self(Arc::new(Engine { config, runtime, context, current, limits, budget, plans })))
    }

    /// What each query may use.
    pub fn limits(&self) -> QueryLimits {
        self.0.limits
    }

    /// Whether nothing runs in it any more.
    pub fn is_idle(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// What the next statements see.
    pub fn read(&self, snapshot: Arc<Snapshot>) {
        *self.0.current.lock().unwrap_or_else(PoisonError::into_inner) = snapshot;
    }

    /// Says what a query takes and gives. `declared` are the parameter types that the client knows.
    ///
    /// # Errors
    /// What is wrong with the query.
    pub async fn describe(
        &self,
        statement: &SqlStatement,
        declared: &[Option<PgType>],
    ) -> Result<Described, QueryError> {
        let (engine, statement, declared) = (Arc::clone(&self.0), statement.clone(), declared.to_vec());
        let (deadline, limit) = self.0.deadline();
        let place = within(deadline, limit, self.0.plans.place()).await?;
        let work = async move {
            let described = match engine.describe(&statement, &declared).await {
                Ok(described) => Ok(described),
                Err(error) => Err(engine.located(error, &statement).await),
            };
            drop(place);
            described
        };
        aside(deadline, limit, work).await?
    }

    /// Runs a query with its parameters' values.
    ///
    /// # Errors
    /// What is wrong with the query; later mistakes come with the rows.
    pub async fn run(&self, statement: &SqlStatement, parameters: &[Parameter]) -> Result<QueryRows, QueryError> {
        let (deadline, limit) = self.0.deadline();
        self.0.budget.begin(self.0.limits.memory_bytes_max);
        let kept = if parameters.is_empty() { self.0.plans.find(statement) } else { None };
        let known = kept.is_some();
        let planned = match kept {
            Some(planned) => planned,
            None => {
                let (engine, statement, values) = (Arc::clone(&self.0), statement.clone(), parameters.to_vec());
                let planning = async move {
                    match engine.plan_to_execute(&statement, &values).await {
                        Ok(planned) => Ok(planned),
                        Err(error) => Err(engine.located(error, &statement).await),
                    }
                };
                let place = within(deadline, limit, self.0.plans.place()).await?;
                let planning = async move {
                    let planned = planning.await;
                    // Held until it really ends, though nobody may wait for it any more.
                    drop(place);
                    planned
                };
                aside(deadline, limit, planning).await??
            }
        };
        if let Some(rows) = planned.direct.as_ref().and_then(|direct| direct.rows(&current(&self.0.current))) {
            return Ok(QueryRows {
                columns: planned.columns,
                rows: futures::stream::iter(rows.into_iter().map(Ok)).boxed(),
            });
        }
        // The plan that is kept is never executed itself: some steps keep what they have read.
        let physical = reset_plan_states(planned.physical)?;
        let batches = execute_stream(physical, self.0.task_context())?;
        let kinds: Vec<PgType> = planned.columns.iter().map(|column| column.kind).collect();
        let rows = row_stream(deadline, limit, kinds, batches, known);
        Ok(QueryRows { columns: planned.columns, rows })
    }
}

impl Engine {
    fn deadline(&self) -> (Option<tokio::time::Instant>, TimeLimit) {
        let limit = TimeLimit { ms_max: self.limits.time_ms_max, setting: self.limits.time_setting };
        let deadline = || tokio::time::Instant::now() + Duration::from_millis(limit.ms_max);
        ((limit.ms_max > 0).then(deadline), limit)
    }

    fn context(&self) -> &SessionContext {
        self.context.get_or_init(|| {
            let state = SessionStateBuilder::new()
                .with_config(self.config.clone())
                .with_runtime_env(Arc::clone(&self.runtime))
                .with_default_features()
                .with_physical_optimizer_rule(Arc::new(in_order::InOrderRule))
                .with_type_planner(Arc::new(kinds::Types));
            let planners = [
                vec![Arc::new(aggregates::Planner::new(&self.current)) as _],
                SessionStateDefaults::default_expr_planners(),
            ];
            let context = SessionContext::new_with_state(state.with_expr_planners(planners.concat()).build());
            let database = self.config.options().catalog.default_catalog.clone();
            context.register_catalog(database, Arc::new(provider::SystemCatalog));
            // PostgreSQL has generate_series alone.
            context.deregister_udtf("range");
            functions::register(&context, &self.current);
            catalog_functions::register(&context, &self.current);
            session_functions::register(&context, &self.current);
            context.register_udf(subquery::array_function());
            bounded::register(&context, &self.budget);
            context
        })
    }

    /// The plan of a statement whose parameters have these types, from `$1` on, where they are known.
    async fn plan(&self, statement: &Statement, kinds: &[Option<PgType>]) -> Result<LogicalPlan, QueryError> {
        guard::check(statement, self.limits.depth_max)?;
        let mut statement = statement.clone();
        typed::cast_parameters(&mut statement, kinds);
        let mut statement = guard::rewrite(statement)?;
        let state = self.context().state();
        let planned = state.statement_to_plan(DataFusionStatement::Statement(Box::new(statement.clone()))).await;
        let plan = match planned {
            // The planner calls some expressions alike that are not.
            Err(error) if is_of_names(&error) => {
                names::alias_all(&mut statement);
                alike::tell_apart(&mut statement);
                state.statement_to_plan(DataFusionStatement::Statement(Box::new(statement))).await?
            }
            planned => planned?,
        };
        SQLOptions::new()
            .with_allow_ddl(false)
            .with_allow_dml(false)
            .with_allow_statements(false)
            .verify_plan(&plan)?;
        Ok(widths::apply(plan, &self.current)?)
    }

    /// A mistake with its place. A text that the statement holds several times is marked, one place after the other, and
    /// planned again, to see which of them is told.
    async fn located(&self, error: QueryError, statement: &Statement) -> QueryError {
        if let (None, Some(Subject::Literal(text))) = (error.location, error.subject.as_deref()) {
            for (place, marked) in places::marked(statement, text) {
                if let Err(other) = self.plan(&marked, &[]).await
                    && places::is_alike(&other.message, &error.message)
                {
                    return QueryError { location: Some((place.line, place.column)), ..error };
                }
            }
        }
        places::located(error, statement)
    }

    async fn describe(&self, statement: &Statement, declared: &[Option<PgType>]) -> Result<Described, QueryError> {
        let declared = guard::with_row_counts(statement, declared);
        let declared = set_functions::with_arguments(statement, &declared);
        let mut plan = self.plan(statement, &declared).await?;
        let parameters = parameters::types(&plan, &declared)?;
        if !parameters.is_empty() {
            // Planned again with types and values, as it is when it runs: only then the type of `$1` itself is known.
            let kinds: Vec<_> = parameters.iter().copied().map(Some).collect();
            let values: Vec<_> = parameters.iter().map(|kind| cells::null_of(*kind)).collect();
            plan = self.plan(statement, &kinds).await?.with_param_values(values)?;
        }
        Ok(Described { parameters, columns: self.columns(statement, plan)?.into() })
    }

    /// The columns of a plan: what unions and CASE have in common is known only when it is analysed.
    fn columns(&self, statement: &Statement, plan: LogicalPlan) -> Result<Vec<OutputColumn>, QueryError> {
        let state = self.context().state();
        let plan = subquery::run_apart(plan, &subquery::Runner::new(&state, self.task_context()))?.data;
        let plan = state.analyzer().execute_and_check(plan, &state.config_options().as_ref().clone(), |_, _| {})?;
        Ok(names::columns(statement, plan.schema()))
    }

    async fn plan_to_execute(&self, statement: &Statement, parameters: &[Parameter]) -> Result<Planned, QueryError> {
        let kinds: Vec<_> = parameters.iter().map(|parameter| Some(parameter.kind)).collect();
        let plan = self.plan(statement, &kinds).await?;
        let keep = parameters.is_empty() && is_repeatable(&plan)?;
        let plan = if parameters.is_empty() {
            plan
        } else {
            let values = parameters.iter().map(cells::bound).collect::<Result<Vec<_>, _>>()?;
            parameters::exact(plan.with_param_values(values)?)?
        };
        let state = self.context().state();
        let apart = subquery::run_apart(plan, &subquery::Runner::new(&state, self.task_context()))?;
        // What runs apart reads the snapshot of now.
        let keep = keep && !apart.transformed;
        let optimized = state.optimize(&apart.data)?;
        wide::check(&optimized, self.limits.memory_bytes_max)?;
        constants::check(&optimized, &state)?;
        let columns = names::columns(statement, optimized.schema());
        let physical = state.query_planner().create_physical_plan(&optimized, &state).await?;
        // Every step yields now and then, not only those that read tables: a join of large inputs would otherwise hold its
        // thread, and neither the deadline nor a cancel request would be looked at.
        let physical =
            physical.transform_up(|step| Ok(Transformed::yes(Arc::new(CooperativeExec::new(step)) as _)))?.data;
        let planned = Planned { columns: columns.into(), physical, direct: Direct::of(&optimized) };
        if keep {
            self.plans.keep(statement, &planned);
        }
        Ok(planned)
    }

    /// What an execution may use and sees. Functions are found when a query is planned: none are needed here.
    fn task_context(&self) -> Arc<TaskContext> {
        let config = self.config.clone().with_extension(current(&self.current));
        let (scalar, higher_order) = (HashMap::new(), HashMap::new());
        let (aggregate, window) = (HashMap::new(), HashMap::new());
        let runtime = Arc::clone(&self.runtime);
        let context = TaskContext::new(None, String::new(), config, scalar, higher_order, aggregate, window, runtime);
        Arc::new(context)
    }
}

/// Whether the planner found two expressions of one name.
fn is_of_names(error: &DataFusionError) -> bool {
    let text = error.to_string();
    text.contains("unique expression names") || text.contains("duplicate unqualified field name")
}

/// Does something that can keep a processor busy for long, planning above all, in a thread where it holds up nobody. It
/// ends at the query's limit, and when nobody waits for it any more.
async fn aside<T: Send + 'static>(
    deadline: Option<tokio::time::Instant>,
    limit: TimeLimit,
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, QueryError> {
    let handle = Handle::current();
    let (waiting, gone) = oneshot::channel::<()>();
    // No clock in there: the thread can outlive the runtime's.
    let work = async move {
        tokio::select! {
            done = work => Ok(done),
            _ = gone => Err(QueryError::new(SqlState::QueryCanceled, "nobody waits for the query any more")),
        }
    };
    let done = within(deadline, limit, tokio::task::spawn_blocking(move || handle.block_on(work))).await;
    drop(waiting);
    done?.unwrap_or_else(|error| Err(QueryError::new(SqlState::InternalError, format!("the query ended: {error}"))))
}

/// How long a query may run, and what says so.
#[derive(Debug, Clone, Copy)]
struct TimeLimit {
    ms_max: u64,
    setting: TimeSetting,
}

/// Waits for something until the query's time is over.
async fn within<T>(
    deadline: Option<tokio::time::Instant>,
    limit: TimeLimit,
    future: impl Future<Output = T>,
) -> Result<T, QueryError> {
    match deadline {
        None => Ok(future.await),
        Some(deadline) => tokio::time::timeout_at(deadline, future).await.map_err(|_| QueryError::time_limit(limit)),
    }
}

/// Turns batches into rows, one batch at a time. What is `known` was kept because it computes nothing of its own, and each
/// of its steps yields; anything else is computed aside.
fn row_stream(
    deadline: Option<tokio::time::Instant>,
    limit: TimeLimit,
    kinds: Vec<PgType>,
    batches: SendableRecordBatchStream,
    known: bool,
) -> BoxStream<'static, Result<Vec<Scalar>, QueryError>> {
    // Only the time that is spent on it counts, and not that in which nobody reads on.
    let left = deadline.map(|deadline| deadline.saturating_duration_since(tokio::time::Instant::now()));
    let rows = futures::stream::unfold((Some(batches), kinds, left), move |(batches, kinds, left)| async move {
        let mut batches = batches?;
        let begun = tokio::time::Instant::now();
        let deadline = left.map(|left| begun + left);
        let next = async move {
            let batch = batches.next().await;
            (batch, batches)
        };
        let next = if known { within(deadline, limit, next).await } else { aside(deadline, limit, next).await };
        let (rows, batches) = match next {
            Err(error) => return Some((vec![Err(error)], (None, kinds, left))),
            Ok((None, _)) => return None,
            Ok((Some(Err(error)), _)) => return Some((vec![Err(error.into())], (None, kinds, left))),
            Ok((Some(Ok(batch)), batches)) => (cells::rows(&batch, &kinds), batches),
        };
        let left = left.map(|left| left.saturating_sub(begun.elapsed()));
        Some((rows, (Some(batches), kinds, left)))
    });
    rows.flat_map(futures::stream::iter).boxed()
}

#[cfg(test)]
mod tests;
