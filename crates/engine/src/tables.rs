//! System tables: each declared once, with its columns and a sentence for each; name resolution, rows, rights,
//! the reference page and the tests read that declaration.

mod access;
mod hologres;
mod information_schema;
pub(crate) mod pg_catalog;
pub(crate) mod pgbouncer;
mod routing;
mod rows;
mod switchyard;
mod v_catalog;
mod v_internal;
mod v_monitor;

use std::borrow::Cow;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::error::DataFusionError;

pub(crate) use self::access::TEST_AUTHENTICATION;
pub(crate) use self::routing::{EXPLAIN_ROUTE, ExplainRouteError, RouteQuestion};
pub(crate) use self::rows::{Rows, RowsError};
pub(crate) use self::switchyard::CATALOG_AT;
use crate::snapshot::Snapshot;

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// 64-bit integer.
    Int,
    /// 32-bit integer.
    Int4,
    /// 16-bit integer.
    Int2,
    /// Single precision.
    Float4,
    /// The number of an object of `pg_catalog`.
    Oid,
    /// Text, as PostgreSQL calls identifiers.
    Name,
    /// One character, PostgreSQL's `"char"`.
    Char,
    /// Text that is JSON, as it was written.
    Json,
    /// Text that is JSON.
    Jsonb,
    /// An address.
    Inet,
    /// An array of texts.
    TextArray,
    /// An array of identifiers.
    NameArray,
    /// An array of single characters.
    CharArray,
    /// An array of 16-bit integers.
    Int2Array,
    /// An array of 32-bit integers.
    Int4Array,
    /// An array of object numbers.
    OidArray,
    /// 16-bit integers, as PostgreSQL's indexes have them.
    Int2Vector,
    /// Object numbers, as PostgreSQL's functions have them.
    OidVector,
    /// Text, as Vertica calls it.
    Varchar,
    /// Text, as Hologres calls it.
    Text,
    /// Truth.
    Bool,
    /// Double precision.
    Float,
    /// A point in time, shown in the session's time zone.
    Timestamptz,
    /// A point in time without zone, in UTC.
    Timestamp,
}

impl Kind {
    /// The type's PostgreSQL name.
    pub fn sql_name(self) -> &'static str {
        match self {
            Self::Int => "bigint",
            Self::Int4 => "integer",
            Self::Int2 => "smallint",
            Self::Float4 => "real",
            Self::Oid => "oid",
            Self::Name => "name",
            Self::Char => "\"char\"",
            Self::Json => "json",
            Self::Jsonb => "jsonb",
            Self::Inet => "inet",
            Self::TextArray => "text[]",
            Self::NameArray => "name[]",
            Self::CharArray => "\"char\"[]",
            Self::Int2Array => "smallint[]",
            Self::Int4Array => "integer[]",
            Self::OidArray => "oid[]",
            Self::Int2Vector => "int2vector",
            Self::OidVector => "oidvector",
            Self::Varchar => "character varying",
            Self::Text => "text",
            Self::Bool => "boolean",
            Self::Float => "double precision",
            Self::Timestamptz => "timestamp with time zone",
            Self::Timestamp => "timestamp without time zone",
        }
    }

    pub(crate) fn arrow(self) -> DataType {
        match self {
            Self::Int => DataType::Int64,
            Self::Int4 => DataType::Int32,
            Self::Int2 => DataType::Int16,
            Self::Float4 => DataType::Float32,
            Self::Oid => DataType::UInt32,
            Self::Varchar | Self::Text | Self::Name | Self::Char | Self::Json | Self::Jsonb | Self::Inet => {
                DataType::Utf8
            }
            Self::TextArray | Self::NameArray | Self::CharArray => list(DataType::Utf8),
            Self::Int2Array | Self::Int2Vector => list(DataType::Int16),
            Self::Int4Array => list(DataType::Int32),
            Self::OidArray | Self::OidVector => list(DataType::UInt32),
            Self::Bool => DataType::Boolean,
            Self::Float => DataType::Float64,
            Self::Timestamptz => DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into())),
            Self::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
        }
    }

    /// What a field must say of its type, where several look alike to DataFusion.
    fn told(self) -> Option<&'static str> {
        Some(match self {
            Self::Varchar => "varchar",
            Self::Name => "name",
            Self::Char => "char",
            Self::Json => "json",
            Self::Jsonb => "jsonb",
            Self::Inet => "inet",
            Self::NameArray => "name[]",
            Self::CharArray => "char[]",
            Self::Int2Vector => "int2vector",
            Self::OidVector => "oidvector",
            _ => return None,
        })
    }

    pub(crate) fn field(self, name: &str) -> Field {
        let field = Field::new(name, self.arrow(), true);
        match self.told() {
            Some(told) => field.with_metadata([(PG_TYPE.to_owned(), told.to_owned())].into()),
            None => field,
        }
    }
}

fn list(item: DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(item, true)))
}

/// One column.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// In lower case.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// A sentence.
    pub description: &'static str,
}

/// Declares a column.
const fn column(name: &'static str, kind: Kind, description: &'static str) -> Column {
    Column { name, kind, description }
}

/// Who sees the rows of a table; anybody may see its columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visibility {
    /// Everybody sees every row.
    All,
    /// The rows themselves look at the session: others than the superuser see only what is theirs.
    Own,
    /// Others than the superuser get 42501.
    Superuser,
}

/// One system table.
#[derive(Debug)]
pub struct SystemTable {
    /// In lower case.
    pub schema: &'static str,
    /// In lower case.
    pub name: &'static str,
    /// A sentence.
    pub description: &'static str,
    /// In the order of `SELECT *`.
    pub columns: &'static [Column],
    /// Who sees it.
    pub visibility: Visibility,
    /// Its rows now.
    pub(crate) rows: fn(&Snapshot, &mut Rows) -> Result<(), RowsError>,
}

/// The schemas in which unqualified names are looked for, in order.
pub const SEARCH_PATH: &[&str] = &["v_catalog", "v_monitor", "v_internal", "switchyard", "hologres"];

/// All schemas.
pub const SCHEMAS: &[&str] =
    &["v_catalog", "v_monitor", "v_internal", "switchyard", "hologres", "pg_catalog", "information_schema"];

/// What a schema is for.
pub(crate) fn schema_description(schema: &str) -> &'static str {
    match schema {
        "v_catalog" => "Definitions, as Vertica has them.",
        "v_monitor" => "State and history, as Vertica has them.",
        "v_internal" => "What drivers' own tests look at.",
        "switchyard" => "History, settings and what no other system has.",
        "hologres" => "Table groups, shards and statements, as Hologres has them.",
        "pg_catalog" => "The system tables, as PostgreSQL describes tables.",
        _ => "The system tables, as the SQL standard describes tables.",
    }
}

/// All system tables.
pub fn all() -> impl Iterator<Item = &'static SystemTable> {
    [
        v_catalog::TABLES,
        v_monitor::TABLES,
        v_internal::TABLES,
        hologres::TABLES,
        switchyard::TABLES,
        access::TABLES,
        routing::TABLES,
        pgbouncer::TABLES,
        pg_catalog::TABLES,
        pg_catalog::EMPTY,
        information_schema::TABLES,
    ]
    .into_iter()
    .flatten()
}

/// The table of that name in that schema, in any case.
pub fn find(schema: &str, name: &str) -> Option<&'static SystemTable> {
    all().find(|table| table.schema.eq_ignore_ascii_case(schema) && table.name.eq_ignore_ascii_case(name))
}

/// The table an unqualified name means.
pub fn resolve(name: &str) -> Option<&'static SystemTable> {
    // As PostgreSQL does, `pg_catalog` is searched first though no path names it.
    std::iter::once(&"pg_catalog").chain(SEARCH_PATH).find_map(|schema| find(schema, name))
}

/// The schemas in which a session looks for unqualified names, in order: those it has set, and then the others.
pub(crate) fn search_path(snapshot: &Snapshot) -> Vec<&'static str> {
    let set = crate::settings::declaration("search_path")
        .map(|setting| crate::settings::effective(setting, &snapshot.session, &snapshot.catalog).0)
        .unwrap_or_default();
    let named = set.split(',').map(|name| name.trim().trim_matches('"'));
    let known = named.filter_map(|name| SCHEMAS.iter().copied().find(|schema| schema.eq_ignore_ascii_case(name)));
    let mut path: Vec<&'static str> = Vec::new();
    for schema in known.chain(SEARCH_PATH.iter().copied()) {
        if !path.contains(&schema) {
            path.push(schema);
        }
    }
    path
}

/// The key under which a field carries its PostgreSQL type, where the arrow type does not tell.
pub(crate) const PG_TYPE: &str = "pg_type";

impl SystemTable {
    /// The arrow schema.
    pub(crate) fn arrow_schema(&self) -> SchemaRef {
        let fields = self.columns.iter().map(|column| column.kind.field(column.name));
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }

    /// The rows now, only the columns of the projection.
    pub(crate) fn batch(
        &self,
        snapshot: &Snapshot,
        projection: Option<&Vec<usize>>,
    ) -> Result<RecordBatch, DataFusionError> {
        let mut rows = Rows::new(self.columns, projection);
        (self.rows)(snapshot, &mut rows).map_err(|error| DataFusionError::External(Box::new(error)))?;
        rows.finish(&self.arrow_schema(), projection)
    }
}

/// One value of a row.
#[derive(Debug, Clone)]
pub enum Cell<'a> {
    /// NULL.
    Null,
    /// A number.
    Int(i64),
    /// A text.
    Text(Cow<'a, str>),
    /// A truth.
    Bool(bool),
    /// Single precision.
    Float(f32),
    /// Microseconds since 1970-01-01 UTC.
    Time(i64),
    /// An array of texts.
    Texts(Vec<String>),
    /// An array of numbers.
    Numbers(Vec<i64>),
}

impl From<i32> for Cell<'_> {
    fn from(value: i32) -> Self {
        Self::Int(i64::from(value))
    }
}

impl From<i16> for Cell<'_> {
    fn from(value: i16) -> Self {
        Self::Int(i64::from(value))
    }
}

impl From<Vec<String>> for Cell<'_> {
    fn from(value: Vec<String>) -> Self {
        Self::Texts(value)
    }
}

impl From<Vec<i64>> for Cell<'_> {
    fn from(value: Vec<i64>) -> Self {
        Self::Numbers(value)
    }
}

impl From<i64> for Cell<'_> {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<u32> for Cell<'_> {
    fn from(value: u32) -> Self {
        Self::Int(i64::from(value))
    }
}

impl From<u16> for Cell<'_> {
    fn from(value: u16) -> Self {
        Self::Int(i64::from(value))
    }
}

impl From<usize> for Cell<'_> {
    fn from(value: usize) -> Self {
        Self::Int(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<u64> for Cell<'_> {
    fn from(value: u64) -> Self {
        Self::Int(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<bool> for Cell<'_> {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl<'a> From<&'a str> for Cell<'a> {
    fn from(value: &'a str) -> Self {
        Self::Text(Cow::Borrowed(value))
    }
}

impl From<String> for Cell<'_> {
    fn from(value: String) -> Self {
        Self::Text(Cow::Owned(value))
    }
}

impl<'a, T: Into<Cell<'a>>> From<Option<T>> for Cell<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Cell::Null, Into::into)
    }
}

/// `test_authentication(address, user, tls)` as a table.
pub(crate) fn test_authentication_table(
    snapshot: &Snapshot,
    client: switchyard_catalog::AuthenticationClient,
    user: &str,
) -> Result<Arc<dyn datafusion::catalog::TableProvider>, DataFusionError> {
    let mut rows = Rows::new(TEST_AUTHENTICATION, None);
    access::test_authentication(snapshot, client, user, &mut rows)
        .map_err(|error| DataFusionError::External(Box::new(error)))?;
    finished(TEST_AUTHENTICATION, rows)
}

/// `explain_route(address, user, workload, database, roles)` as a table.
pub(crate) fn explain_route_table(
    snapshot: &Snapshot,
    question: &RouteQuestion,
) -> Result<Result<Arc<dyn datafusion::catalog::TableProvider>, DataFusionError>, ExplainRouteError> {
    let mut rows = Rows::new(EXPLAIN_ROUTE, None);
    routing::explain_route(snapshot, question, &mut rows)?;
    Ok(finished(EXPLAIN_ROUTE, rows))
}

/// `catalog_at(version)` as a table.
pub(crate) fn catalog_at_table(
    snapshot: &Snapshot,
    version: u64,
) -> Result<Arc<dyn datafusion::catalog::TableProvider>, DataFusionError> {
    let mut rows = Rows::new(CATALOG_AT, None);
    switchyard::catalog_at(snapshot, version, &mut rows).map_err(|error| DataFusionError::External(Box::new(error)))?;
    finished(CATALOG_AT, rows)
}

/// The columns of a function as a table without rows.
pub(crate) fn without_rows(
    columns: &'static [Column],
) -> Result<Arc<dyn datafusion::catalog::TableProvider>, DataFusionError> {
    finished(columns, Rows::new(columns, None))
}

/// The rows of a function as a table.
fn finished(columns: &[Column], rows: Rows) -> Result<Arc<dyn datafusion::catalog::TableProvider>, DataFusionError> {
    let fields: Vec<Field> = columns.iter().map(|column| column.kind.field(column.name)).collect();
    let schema = Arc::new(Schema::new(fields));
    let batch = rows.finish(&schema, None)?;
    Ok(Arc::new(datafusion::datasource::MemTable::try_new(schema, vec![vec![batch]])?))
}
