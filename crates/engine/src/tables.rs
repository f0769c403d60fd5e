//! System tables: each declared once, with its columns and a sentence for each; name resolution, rows, rights,
//! the reference page and the tests read that declaration.

mod hologres;
mod switchyard;
mod v_catalog;
mod v_internal;
mod v_monitor;

use std::borrow::Cow;
use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, BooleanBuilder, Float64Builder, Int64Builder, RecordBatch, RecordBatchOptions, StringBuilder,
    TimestampMicrosecondBuilder,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::error::DataFusionError;

use crate::snapshot::Snapshot;

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// 64-bit integer.
    Int,
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
            Self::Varchar => "character varying",
            Self::Text => "text",
            Self::Bool => "boolean",
            Self::Float => "double precision",
            Self::Timestamptz => "timestamp with time zone",
            Self::Timestamp => "timestamp without time zone",
        }
    }

    fn arrow(self) -> DataType {
        match self {
            Self::Int => DataType::Int64,
            Self::Varchar | Self::Text => DataType::Utf8,
            Self::Bool => DataType::Boolean,
            Self::Float => DataType::Float64,
            Self::Timestamptz => DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into())),
            Self::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
        }
    }
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

/// All system tables.
pub fn all() -> impl Iterator<Item = &'static SystemTable> {
    [v_catalog::TABLES, v_monitor::TABLES, v_internal::TABLES, hologres::TABLES, switchyard::TABLES]
        .into_iter()
        .flatten()
}

/// The table of that name in that schema, in any case.
pub fn find(schema: &str, name: &str) -> Option<&'static SystemTable> {
    all().find(|table| table.schema.eq_ignore_ascii_case(schema) && table.name.eq_ignore_ascii_case(name))
}

/// The table an unqualified name means.
pub fn resolve(name: &str) -> Option<&'static SystemTable> {
    SEARCH_PATH.iter().find_map(|schema| find(schema, name))
}

/// The key under which a field carries its PostgreSQL type, where the arrow type does not tell.
pub(crate) const PG_TYPE: &str = "pg_type";

impl SystemTable {
    /// The arrow schema.
    pub(crate) fn arrow_schema(&self) -> SchemaRef {
        let fields = self.columns.iter().map(|column| {
            let field = Field::new(column.name, column.kind.arrow(), true);
            match column.kind {
                Kind::Varchar => field.with_metadata([(PG_TYPE.to_owned(), "varchar".to_owned())].into()),
                _ => field,
            }
        });
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

/// A row that does not fit its table's columns: a mistake of ours, which a test over all tables looks for.
#[derive(Debug, thiserror::Error)]
#[error("a row does not fit column {column}")]
pub struct RowsError {
    column: &'static str,
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
    /// Microseconds since 1970-01-01 UTC.
    Time(i64),
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

enum Builder {
    Skip,
    Int(Int64Builder),
    Text(StringBuilder),
    Bool(BooleanBuilder),
    Float(Float64Builder),
    Time(TimestampMicrosecondBuilder),
}

/// Takes the rows of a table, one after the other; columns nobody asked for are not kept.
pub struct Rows {
    builders: Vec<(&'static str, Builder)>,
    len: usize,
}

impl Rows {
    fn new(columns: &'static [Column], projection: Option<&Vec<usize>>) -> Self {
        let wanted = |index: usize| projection.is_none_or(|wanted| wanted.contains(&index));
        let builder = |(index, column): (usize, &Column)| {
            let builder = match column.kind {
                _ if !wanted(index) => Builder::Skip,
                Kind::Int => Builder::Int(Int64Builder::new()),
                Kind::Varchar | Kind::Text => Builder::Text(StringBuilder::new()),
                Kind::Bool => Builder::Bool(BooleanBuilder::new()),
                Kind::Float => Builder::Float(Float64Builder::new()),
                Kind::Timestamptz => Builder::Time(TimestampMicrosecondBuilder::new().with_timezone("+00:00")),
                Kind::Timestamp => Builder::Time(TimestampMicrosecondBuilder::new()),
            };
            (column.name, builder)
        };
        Self { builders: columns.iter().enumerate().map(builder).collect(), len: 0 }
    }

    /// Adds a row: one cell a column, in their order.
    pub fn push<const N: usize>(&mut self, cells: [Cell<'_>; N]) -> Result<(), RowsError> {
        if cells.len() != self.builders.len() {
            return Err(RowsError { column: self.builders.first().map_or("", |(name, _)| name) });
        }
        for ((name, builder), cell) in self.builders.iter_mut().zip(cells) {
            match (builder, cell) {
                (Builder::Skip, _) => {}
                (Builder::Int(builder), Cell::Int(value)) => builder.append_value(value),
                (Builder::Int(builder), Cell::Null) => builder.append_null(),
                (Builder::Text(builder), Cell::Text(value)) => builder.append_value(value),
                (Builder::Text(builder), Cell::Null) => builder.append_null(),
                (Builder::Bool(builder), Cell::Bool(value)) => builder.append_value(value),
                (Builder::Bool(builder), Cell::Null) => builder.append_null(),
                (Builder::Float(builder), Cell::Null) => builder.append_null(),
                (Builder::Time(builder), Cell::Time(value)) => builder.append_value(value),
                (Builder::Time(builder), Cell::Null) => builder.append_null(),
                _ => return Err(RowsError { column: name }),
            }
        }
        self.len += 1;
        Ok(())
    }

    fn finish(self, schema: &SchemaRef, projection: Option<&Vec<usize>>) -> Result<RecordBatch, DataFusionError> {
        let mut arrays: Vec<Option<ArrayRef>> = self
            .builders
            .into_iter()
            .map(|(_, builder)| match builder {
                Builder::Skip => None,
                Builder::Int(mut builder) => Some(Arc::new(builder.finish()) as ArrayRef),
                Builder::Text(mut builder) => Some(Arc::new(builder.finish()) as ArrayRef),
                Builder::Bool(mut builder) => Some(Arc::new(builder.finish()) as ArrayRef),
                Builder::Float(mut builder) => Some(Arc::new(builder.finish()) as ArrayRef),
                Builder::Time(mut builder) => Some(Arc::new(builder.finish()) as ArrayRef),
            })
            .collect();
        let (schema, columns) = match projection {
            None => (Arc::clone(schema), arrays.into_iter().flatten().collect()),
            Some(wanted) => {
                let columns = wanted.iter().filter_map(|index| arrays.get_mut(*index).and_then(Option::take)).collect();
                (Arc::new(schema.project(wanted)?), columns)
            }
        };
        let options = RecordBatchOptions::new().with_row_count(Some(self.len));
        Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
    }
}

/// `catalog_at(version)` as a table.
pub(crate) fn catalog_at_table(
    snapshot: &Snapshot,
    version: u64,
) -> Result<Arc<dyn datafusion::catalog::TableProvider>, DataFusionError> {
    let mut rows = Rows::new(switchyard::CATALOG_AT, None);
    switchyard::catalog_at(snapshot, version, &mut rows).map_err(|error| DataFusionError::External(Box::new(error)))?;
    let fields: Vec<Field> =
        switchyard::CATALOG_AT.iter().map(|column| Field::new(column.name, column.kind.arrow(), true)).collect();
    let schema = Arc::new(Schema::new(fields));
    let batch = rows.finish(&schema, None)?;
    Ok(Arc::new(datafusion::datasource::MemTable::try_new(schema, vec![vec![batch]])?))
}
