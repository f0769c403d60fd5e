//! Queries over the system tables, through DataFusion, which never sees a statement that was not let through
//! [`guard`]: no files, no DDL or DML of its own, memory and time limits for each query, nothing shared by sessions but
//! the system tables themselves (`reference/crates.md` §3, "Safety").

mod cells;
mod error;
mod functions;
mod guard;
mod names;
mod provider;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::execution::context::{SQLOptions, SessionContext};
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::{SendableRecordBatchStream, execute_stream};
use datafusion::prelude::SessionConfig;
use datafusion::sql::parser::Statement as DataFusionStatement;
use futures::stream::{BoxStream, StreamExt};
use sqlparser::ast::Statement;

pub use cells::{PgType, Scalar};
pub use error::QueryError;
pub use guard::{Needs, needs, tables_read};

#[cfg(test)]
use crate::error::SqlState;
use crate::snapshot::Snapshot;

/// What one query may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueryLimits {
    /// Bytes of memory for sorts, joins and groups.
    pub memory_bytes_max: usize,
    /// Wall time in milliseconds; 0 is no limit.
    pub time_ms_max: u64,
}

/// One column of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputColumn {
    /// As PostgreSQL would name it.
    pub name: String,
    /// Its type.
    pub kind: PgType,
}

/// What is known of a query before it runs.
#[derive(Debug, Clone)]
pub struct Described {
    /// The types of `$1`, `$2`, ...
    pub parameters: Vec<PgType>,
    /// The result's columns.
    pub columns: Vec<OutputColumn>,
}

/// A result that is being read.
pub struct QueryRows {
    /// Its columns.
    pub columns: Vec<OutputColumn>,
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
pub struct Queries {
    context: SessionContext,
    current: Current,
    limits: QueryLimits,
}

impl std::fmt::Debug for Queries {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queries").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl Queries {
    /// An engine that reads `snapshot` until it is given another.
    ///
    /// # Errors
    /// When DataFusion cannot be set up.
    pub fn new(snapshot: Arc<Snapshot>, limits: QueryLimits) -> Result<Self, QueryError> {
        let database = snapshot.catalog.database().name.folded().to_owned();
        let current = Arc::new(Mutex::new(snapshot));
        let runtime = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::new(GreedyMemoryPool::new(limits.memory_bytes_max)))
            .with_disk_manager_builder(DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled))
            .with_object_store_registry(Arc::new(provider::NoObjectStores))
            .build_arc()?;
        let mut config = SessionConfig::new()
            .with_create_default_catalog_and_schema(false)
            .with_default_catalog_and_schema(database.clone(), provider::DEFAULT_SCHEMA)
            .with_information_schema(false)
            .with_target_partitions(1);
        config.options_mut().sql_parser.dialect = datafusion::config::Dialect::PostgreSQL;
        config.options_mut().sql_parser.map_string_types_to_utf8view = false;
        config.options_mut().sql_parser.collect_spans = true;
        config.options_mut().execution.time_zone = Some("+00:00".to_owned());
        let context = SessionContext::new_with_config_rt(config, runtime);
        context.register_catalog(database, Arc::new(provider::SystemCatalog::new(Arc::clone(&current))));
        functions::register(&context, &current);
        Ok(Self { context, current, limits })
    }

    /// What each query may use.
    pub fn limits(&self) -> QueryLimits {
        self.limits
    }

    /// What the next statements see.
    pub fn read(&self, snapshot: Arc<Snapshot>) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = snapshot;
    }

    async fn plan(&self, statement: &Statement) -> Result<LogicalPlan, QueryError> {
        guard::check(statement)?;
        let statement = guard::rewrite(statement.clone());
        let state = self.context.state();
        let plan = state.statement_to_plan(DataFusionStatement::Statement(Box::new(statement))).await?;
        SQLOptions::new()
            .with_allow_ddl(false)
            .with_allow_dml(false)
            .with_allow_statements(false)
            .verify_plan(&plan)?;
        Ok(plan)
    }

    /// Says what a query takes and gives. `declared` are the parameter types that the client knows.
    ///
    /// # Errors
    /// What is wrong with the query.
    pub async fn describe(&self, statement: &Statement, declared: &[Option<PgType>]) -> Result<Described, QueryError> {
        let plan = self.plan(statement).await?;
        let parameters = cells::parameter_types(&plan, declared)?;
        // Planned again with values, since the type of `$1` itself is known only then.
        let values: Vec<_> = parameters.iter().map(|kind| cells::null_of(*kind)).collect();
        let plan = if values.is_empty() { plan } else { plan.with_param_values(values)? };
        Ok(Described { parameters, columns: names::columns(statement, plan.schema()) })
    }

    /// Runs a query with its parameters' values.
    ///
    /// # Errors
    /// What is wrong with the query; later mistakes come with the rows.
    pub async fn run(&self, statement: &Statement, parameters: &[Scalar]) -> Result<QueryRows, QueryError> {
        let plan = self.plan(statement).await?;
        let plan = if parameters.is_empty() {
            plan
        } else {
            plan.with_param_values(parameters.iter().map(cells::to_value).collect::<Vec<_>>())?
        };
        let columns = names::columns(statement, plan.schema());
        let state = self.context.state();
        let limit = self.limits.time_ms_max;
        let deadline = (limit > 0).then(|| tokio::time::Instant::now() + Duration::from_millis(limit));
        let physical = within(deadline, limit, state.create_physical_plan(&plan)).await??;
        // Every step yields now and then, not only those that read tables: a join of large inputs would otherwise hold its
        // thread, and neither the deadline nor a cancel request would be looked at.
        let physical =
            physical.transform_up(|step| Ok(Transformed::yes(Arc::new(CooperativeExec::new(step)) as _)))?.data;
        let batches = execute_stream(physical, state.task_ctx())?;
        let kinds: Vec<PgType> = columns.iter().map(|column| column.kind).collect();
        let rows = row_stream(deadline, limit, kinds, batches);
        Ok(QueryRows { columns, rows })
    }
}

/// Waits for something until the query's time is over.
async fn within<T>(
    deadline: Option<tokio::time::Instant>,
    limit: u64,
    future: impl Future<Output = T>,
) -> Result<T, QueryError> {
    match deadline {
        None => Ok(future.await),
        Some(deadline) => tokio::time::timeout_at(deadline, future).await.map_err(|_| QueryError::time_limit(limit)),
    }
}

/// Turns batches into rows, one batch at a time.
fn row_stream(
    deadline: Option<tokio::time::Instant>,
    limit: u64,
    kinds: Vec<PgType>,
    batches: SendableRecordBatchStream,
) -> BoxStream<'static, Result<Vec<Scalar>, QueryError>> {
    let rows = futures::stream::unfold((Some(batches), kinds), move |(batches, kinds)| async move {
        let mut batches = batches?;
        let rows = match within(deadline, limit, batches.next()).await {
            Err(error) => return Some((vec![Err(error)], (None, kinds))),
            Ok(None) => return None,
            Ok(Some(Err(error))) => return Some((vec![Err(error.into())], (None, kinds))),
            Ok(Some(Ok(batch))) => cells::rows(&batch, &kinds),
        };
        Some((rows, (Some(batches), kinds)))
    });
    rows.flat_map(futures::stream::iter).boxed()
}

#[cfg(test)]
mod tests;
