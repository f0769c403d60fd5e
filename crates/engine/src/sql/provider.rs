//! The system tables as DataFusion sees them.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::memory::MemorySourceConfig;
use datafusion::catalog::{CatalogProvider, SchemaProvider, Session, TableFunctionImpl, TableProvider};
use datafusion::common::{ScalarValue, plan_err};
use datafusion::datasource::TableType;
use datafusion::error::DataFusionError;
use datafusion::execution::object_store::ObjectStoreRegistry;
use datafusion::logical_expr::Expr;
use datafusion::object_store::ObjectStore;
use datafusion::physical_plan::ExecutionPlan;
use url::Url;

use super::{Current, current};
use crate::snapshot::Snapshot;
use crate::sql::error::Forbidden;
use crate::tables::{self, SystemTable, Visibility};

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
pub(super) struct SystemCatalog {
    current: CurrentSnapshot,
}

/// The session's snapshot, printable.
#[derive(Clone)]
struct CurrentSnapshot(Current);

impl std::fmt::Debug for CurrentSnapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("snapshot")
    }
}

impl SystemCatalog {
    pub(super) fn new(current: Current) -> Self {
        Self { current: CurrentSnapshot(current) }
    }
}

impl CatalogProvider for SystemCatalog {
    fn schema_names(&self) -> Vec<String> {
        tables::SEARCH_PATH.iter().map(|name| (*name).to_owned()).collect()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        let name = name.to_lowercase();
        let known = name == DEFAULT_SCHEMA || tables::SEARCH_PATH.contains(&name.as_str());
        known.then(|| Arc::new(SystemSchema { name, current: self.current.clone() }) as Arc<dyn SchemaProvider>)
    }
}

/// One schema, or the search path.
#[derive(Debug)]
struct SystemSchema {
    name: String,
    current: CurrentSnapshot,
}

impl SystemSchema {
    fn find(&self, name: &str) -> Option<&'static SystemTable> {
        if self.name == DEFAULT_SCHEMA { tables::resolve(name) } else { tables::find(&self.name, name) }
    }
}

#[async_trait]
impl SchemaProvider for SystemSchema {
    fn table_names(&self) -> Vec<String> {
        tables::all().filter(|table| table.schema == self.name).map(|table| table.name.to_owned()).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
        let provider = |table| {
            Arc::new(SystemTableProvider { table, snapshot: Arc::new(SeenSnapshot(current(&self.current.0))) })
                as Arc<dyn TableProvider>
        };
        Ok(self.find(name).map(provider))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.find(name).is_some()
    }
}

struct SeenSnapshot(Arc<Snapshot>);

impl std::fmt::Debug for SeenSnapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "version {}", self.0.catalog.version())
    }
}

/// One system table at one snapshot.
#[derive(Debug)]
struct SystemTableProvider {
    table: &'static SystemTable,
    snapshot: Arc<SeenSnapshot>,
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
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        let snapshot = &self.snapshot.0;
        if self.table.visibility == Visibility::Superuser && !snapshot.superuser() {
            return Err(DataFusionError::External(Box::new(Forbidden { table: self.table.name })));
        }
        let batch = self.table.batch(snapshot, projection)?;
        let schema = batch.schema();
        Ok(MemorySourceConfig::try_new_exec(&[vec![batch]], schema, None)?)
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
        let [Expr::Literal(ScalarValue::Int64(Some(version)), _)] = args.exprs() else {
            return plan_err!("catalog_at takes one integer: a catalog version");
        };
        let snapshot = current(&self.current.0);
        if !snapshot.superuser() {
            return Err(DataFusionError::External(Box::new(Forbidden { table: "catalog_at" })));
        }
        let Ok(version) = u64::try_from(*version) else { return plan_err!("there is no catalog version {version}") };
        if !snapshot.versions.contains_key(&version) {
            return Err(DataFusionError::External(Box::new(super::error::NoVersion { version })));
        }
        tables::catalog_at_table(&snapshot, version)
    }
}
