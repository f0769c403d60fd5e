//! The system tables as DataFusion sees them.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::catalog::{CatalogProvider, SchemaProvider, Session, TableFunctionImpl, TableProvider};
use datafusion::common::{ScalarValue, internal_err, plan_err};
use datafusion::datasource::TableType;
use datafusion::error::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::execution::object_store::ObjectStoreRegistry;
use datafusion::logical_expr::Expr;
use datafusion::object_store::ObjectStore;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::physical_plan::{ExecutionPlan, SendableRecordBatchStream};
use switchyard_catalog::AuthenticationClient;
use url::Url;

use super::set_functions::{Given, given, without_rows};
use super::{Current, current};
use crate::error::{AS_SUPERUSER, ClientError, SqlState};
use crate::rights::may_call;
use crate::snapshot::Snapshot;
use crate::sql::error::{Forbidden, QueryError};
use crate::tables::pg_catalog::{SETS_SCHEMA, set_named};
use crate::tables::{self, ExplainRouteError, RouteQuestion, SystemTable, Visibility};

/// The schema that unqualified names are looked up in: it stands for the search path.
pub(super) const DEFAULT_SCHEMA: &str = "public";

/// A registry with no store in it: no query reaches a file or an address.
#[derive(Debug)]
pub(super) struct NoObjectStores;

impl ObjectStoreRegistry for NoObjectStores {
    fn register_store(&self, _: &Url, _: Arc<dyn ObjectStore>) -> Option<Arc<dyn ObjectStore>> {
        None
    }

    fn get_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>, DataFusionError> {
        plan_err!("no storage is reachable from a query: {url}")
    }
}

/// The one catalog: the cluster's database.
#[derive(Debug)]
pub(super) struct SystemCatalog;

/// The session's snapshot, printable.
#[derive(Clone)]
struct CurrentSnapshot(Current);

impl std::fmt::Debug for CurrentSnapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("snapshot")
    }
}

impl CatalogProvider for SystemCatalog {
    fn schema_names(&self) -> Vec<String> {
        tables::SCHEMAS.iter().map(|name| (*name).to_owned()).collect()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        let name = name.to_lowercase();
        let known = name == DEFAULT_SCHEMA || name == SETS_SCHEMA || tables::SCHEMAS.contains(&name.as_str());
        known.then(|| Arc::new(SystemSchema { name }) as Arc<dyn SchemaProvider>)
    }
}

/// One schema, or the search path.
#[derive(Debug)]
struct SystemSchema {
    name: String,
}

impl SystemSchema {
    fn find(&self, name: &str) -> Option<&'static SystemTable> {
        match self.name.as_str() {
            DEFAULT_SCHEMA => tables::resolve(name),
            SETS_SCHEMA => set_named(name),
            schema => tables::find(schema, name),
        }
    }
}

#[async_trait]
impl SchemaProvider for SystemSchema {
    fn table_names(&self) -> Vec<String> {
        tables::all().filter(|table| table.schema == self.name).map(|table| table.name.to_owned()).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
        Ok(self.find(name).map(|table| Arc::new(SystemTableProvider { table }) as Arc<dyn TableProvider>))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.find(name).is_some()
    }
}

/// One system table. It holds no rows: a plan with it can be executed at any later snapshot.
#[derive(Debug)]
pub(super) struct SystemTableProvider {
    pub(super) table: &'static SystemTable,
}

#[async_trait]
impl TableProvider for SystemTableProvider {
    fn schema(&self) -> SchemaRef {
        self.table.arrow_schema()
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        let schema = match projection {
            Some(columns) => Arc::new(self.table.arrow_schema().project(columns)?),
            None => self.table.arrow_schema(),
        };
        let scan = SystemScan { table: self.table, projection: projection.cloned(), schema: Arc::clone(&schema) };
        Ok(Arc::new(StreamingTableExec::try_new(schema, vec![Arc::new(scan)], None, [], false, limit)?))
    }
}

/// The rows of a system table at the snapshot that the execution brings with it, as an extension of its configuration.
#[derive(Debug)]
struct SystemScan {
    table: &'static SystemTable,
    projection: Option<Vec<usize>>,
    schema: SchemaRef,
}

/// Whether the session may not see the rows of a table.
pub(super) fn forbidden(table: &SystemTable, snapshot: &Snapshot) -> bool {
    table.visibility == Visibility::Superuser && !snapshot.superuser()
}

impl SystemScan {
    fn batch(&self, context: &TaskContext) -> Result<RecordBatch, DataFusionError> {
        let Some(snapshot) = context.session_config().get_extension::<Snapshot>() else {
            return internal_err!("a query began without a snapshot");
        };
        if forbidden(self.table, &snapshot) {
            return Err(DataFusionError::External(Box::new(Forbidden { kind: "table", name: self.table.name })));
        }
        self.table.batch(&snapshot, self.projection.as_ref())
    }
}

impl PartitionStream for SystemScan {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The rows are made here, at once: what was asked for later must not show another version.
    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let batch = self.batch(&context);
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), futures::stream::iter([batch])))
    }
}

/// `catalog_at(version)`: an earlier catalog as statements.
#[derive(Debug)]
pub(super) struct CatalogAt {
    current: CurrentSnapshot,
}

impl CatalogAt {
    pub(super) fn new(current: Current) -> Self {
        Self { current: CurrentSnapshot(current) }
    }
}

impl TableFunctionImpl for CatalogAt {
    fn call_with_args(
        &self,
        args: datafusion::catalog::TableFunctionArgs<'_, '_>,
    ) -> Result<Arc<dyn TableProvider>, DataFusionError> {
        let given = match given("catalog_at", &args)? {
            Given::Values(given) => given,
            Given::Later => return without_rows("catalog_at"),
        };
        let version = match given.as_slice() {
            [version] => version.cast_to(&DataType::Int64).ok(),
            _ => None,
        };
        let Some(ScalarValue::Int64(Some(version))) = version else {
            return Err(DataFusionError::External(Box::new(QueryError {
                hint: Some("For example: catalog_at(7); switchyard.catalog_history lists the versions.".to_owned()),
                ..QueryError::new(SqlState::InvalidParameterValue, "catalog_at takes one integer: a catalog version")
            })));
        };
        let snapshot = current(&self.current.0);
        if !may_call("catalog_at", &snapshot) {
            return Err(DataFusionError::External(Box::new(Forbidden { kind: "function", name: "catalog_at" })));
        }
        let kept = u64::try_from(version).ok().filter(|version| snapshot.versions.contains_key(version));
        let kept = kept.ok_or_else(|| DataFusionError::External(Box::new(super::error::NoVersion { version })))?;
        tables::catalog_at_table(&snapshot, kept)
    }
}

/// `test_authentication(address, user, tls)`: which authentication record would decide a login.
#[derive(Debug)]
pub(super) struct TestAuthentication {
    current: CurrentSnapshot,
}

impl TestAuthentication {
    pub(super) fn new(current: Current) -> Self {
        Self { current: CurrentSnapshot(current) }
    }
}

impl TableFunctionImpl for TestAuthentication {
    fn call_with_args(
        &self,
        args: datafusion::catalog::TableFunctionArgs<'_, '_>,
    ) -> Result<Arc<dyn TableProvider>, DataFusionError> {
        let mistaken = |message: String| {
            DataFusionError::External(Box::new(QueryError {
                hint: Some(
                    "For example: test_authentication('10.8.3.7', 'mira', true); NULL is the Unix socket.".to_owned(),
                ),
                ..QueryError::new(SqlState::InvalidParameterValue, message)
            }))
        };
        let snapshot = current(&self.current.0);
        if !may_call("test_authentication", &snapshot) {
            let name = "test_authentication";
            return Err(DataFusionError::External(Box::new(Forbidden { kind: "function", name })));
        }
        let given = match given("test_authentication", &args)? {
            Given::Values(given) => given,
            Given::Later => return without_rows("test_authentication"),
        };
        let [address, user, ScalarValue::Boolean(Some(tls))] = given.as_slice() else {
            return Err(mistaken("test_authentication takes an address, a user's name and a boolean".to_owned()));
        };
        let address = match (address, address.try_as_str().flatten()) {
            (_, Some(text)) => Some(text.parse().map_err(|_| mistaken(format!("\"{text}\" is not an IP address")))?),
            (literal, None) if literal.is_null() => None,
            _ => return Err(mistaken("the address is not a text".to_owned())),
        };
        let user = user.try_as_str().flatten().ok_or_else(|| mistaken("the user's name is not a text".to_owned()))?;
        let client = AuthenticationClient { local: address.is_none(), address, tls: *tls };
        tables::test_authentication_table(&snapshot, client, user)
    }
}

/// `explain_route(address, user, workload, database, roles)`: where a connection would go, and why.
#[derive(Debug)]
pub(super) struct ExplainRoute {
    current: CurrentSnapshot,
}

impl ExplainRoute {
    pub(super) fn new(current: Current) -> Self {
        Self { current: CurrentSnapshot(current) }
    }
}

const EXPLAIN_ROUTE_HINT: &str = "For example: explain_route('10.8.3.7', 'mira', 'reporting'); the database and roles (as \
                                  'etl, qa') may follow, and what is NULL is left open.";

/// What the arguments of `explain_route` ask.
fn route_question(arguments: &[ScalarValue]) -> Result<RouteQuestion, String> {
    let text = |index: usize| match arguments.get(index) {
        None => Ok(None),
        Some(value) if value.is_null() => Ok(None),
        Some(value) => {
            value.try_as_str().flatten().map(|text| Some(text.to_owned())).ok_or("explain_route takes texts")
        }
    };
    if !(1..=5).contains(&arguments.len()) {
        return Err("explain_route takes an address and up to four texts".to_owned());
    }
    let address = text(0)?.ok_or("explain_route needs an address")?;
    Ok(RouteQuestion {
        address: address.trim().parse().map_err(|_| format!("Invalid IP address \"{address}\""))?,
        user: text(1)?,
        workload: text(2)?,
        database: text(3)?,
        roles: text(4)?.map(|roles| roles.split(',').map(|role| role.trim().to_owned()).collect()),
    })
}

fn unexplained(error: ExplainRouteError) -> QueryError {
    let (sqlstate, hint) = match &error {
        ExplainRouteError::OtherUser => (SqlState::InsufficientPrivilege, Some(AS_SUPERUSER.to_owned())),
        ExplainRouteError::RoleNotGranted { role, user } => {
            (SqlState::InsufficientPrivilege, Some(format!("Grant it first: GRANT {role} TO {user}.")))
        }
        ExplainRouteError::NoUser | ExplainRouteError::Name(_) => (SqlState::InvalidParameterValue, None),
        ExplainRouteError::Session(error) => {
            let told = ClientError::from(error.clone());
            (told.sqlstate, told.hint)
        }
        ExplainRouteError::Rows(_) => (SqlState::InternalError, None),
    };
    QueryError { hint, ..QueryError::new(sqlstate, error.to_string()) }
}

impl TableFunctionImpl for ExplainRoute {
    fn call_with_args(
        &self,
        args: datafusion::catalog::TableFunctionArgs<'_, '_>,
    ) -> Result<Arc<dyn TableProvider>, DataFusionError> {
        let given = match given("explain_route", &args)? {
            Given::Values(given) => given,
            Given::Later => return without_rows("explain_route"),
        };
        let question = route_question(&given).map_err(|message| {
            let hint = Some(EXPLAIN_ROUTE_HINT.to_owned());
            DataFusionError::External(Box::new(QueryError {
                hint,
                ..QueryError::new(SqlState::InvalidParameterValue, message)
            }))
        })?;
        let explained = tables::explain_route_table(&current(&self.current.0), &question);
        explained.map_err(|error| DataFusionError::External(Box::new(unexplained(error))))?
    }
}
