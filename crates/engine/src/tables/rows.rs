//! The rows of a table while they are made.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, BooleanBuilder, Float32Builder, Float64Builder, Int16Builder, Int32Builder, Int64Builder, ListBuilder,
    RecordBatch, RecordBatchOptions, StringBuilder, TimestampMicrosecondBuilder, UInt32Builder,
};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::DataFusionError;

use super::{Cell, Column, Kind};
use crate::sql::Scalar;

/// A row that does not fit its table's columns: a mistake of ours, which a test over all tables looks for.
#[derive(Debug, thiserror::Error)]
#[error("a row does not fit column {column}")]
pub struct RowsError {
    column: &'static str,
}

enum Builder {
    Skip,
    Int(Int64Builder),
    Int4(Int32Builder),
    Int2(Int16Builder),
    Oid(UInt32Builder),
    Text(StringBuilder),
    Bool(BooleanBuilder),
    Float(Float64Builder),
    Float4(Float32Builder),
    Time(TimestampMicrosecondBuilder),
    Texts(ListBuilder<StringBuilder>),
    Int2s(ListBuilder<Int16Builder>),
    Int4s(ListBuilder<Int32Builder>),
    Oids(ListBuilder<UInt32Builder>),
}

impl Builder {
    fn new(kind: Kind) -> Self {
        match kind {
            Kind::Int => Self::Int(Int64Builder::new()),
            Kind::Int4 => Self::Int4(Int32Builder::new()),
            Kind::Int2 => Self::Int2(Int16Builder::new()),
            Kind::Oid => Self::Oid(UInt32Builder::new()),
            Kind::Varchar | Kind::Text | Kind::Name | Kind::Char | Kind::Json | Kind::Jsonb | Kind::Inet => {
                Self::Text(StringBuilder::new())
            }
            Kind::Bool => Self::Bool(BooleanBuilder::new()),
            Kind::Float => Self::Float(Float64Builder::new()),
            Kind::Float4 => Self::Float4(Float32Builder::new()),
            Kind::Timestamptz => Self::Time(TimestampMicrosecondBuilder::new().with_timezone("+00:00")),
            Kind::Timestamp => Self::Time(TimestampMicrosecondBuilder::new()),
            Kind::TextArray | Kind::NameArray | Kind::CharArray => Self::Texts(ListBuilder::new(StringBuilder::new())),
            Kind::Int2Array | Kind::Int2Vector => Self::Int2s(ListBuilder::new(Int16Builder::new())),
            Kind::Int4Array => Self::Int4s(ListBuilder::new(Int32Builder::new())),
            Kind::OidArray | Kind::OidVector => Self::Oids(ListBuilder::new(UInt32Builder::new())),
        }
    }

    /// Takes a value; none when it is of another type or does not fit.
    fn append(&mut self, cell: Cell<'_>) -> Option<()> {
        match (self, cell) {
            (Self::Skip, _) => {}
            (builder, Cell::Null) => builder.append_null(),
            (Self::Int(builder), Cell::Int(value)) => builder.append_value(value),
            (Self::Int4(builder), Cell::Int(value)) => builder.append_value(value.try_into().ok()?),
            (Self::Int2(builder), Cell::Int(value)) => builder.append_value(value.try_into().ok()?),
            (Self::Oid(builder), Cell::Int(value)) => builder.append_value(value.try_into().ok()?),
            (Self::Text(builder), Cell::Text(value)) => builder.append_value(value),
            (Self::Bool(builder), Cell::Bool(value)) => builder.append_value(value),
            (Self::Float4(builder), Cell::Float(value)) => builder.append_value(value),
            (Self::Float(builder), Cell::Float(value)) => builder.append_value(f64::from(value)),
            (Self::Time(builder), Cell::Time(value)) => builder.append_value(value),
            (Self::Texts(builder), Cell::Texts(values)) => builder.append_value(values.into_iter().map(Some)),
            (Self::Int2s(builder), Cell::Numbers(values)) => {
                let values = values.into_iter().map(|value| value.try_into().ok()).collect::<Option<Vec<i16>>>()?;
                builder.append_value(values.into_iter().map(Some));
            }
            (Self::Int4s(builder), Cell::Numbers(values)) => {
                let values = values.into_iter().map(|value| value.try_into().ok()).collect::<Option<Vec<i32>>>()?;
                builder.append_value(values.into_iter().map(Some));
            }
            (Self::Oids(builder), Cell::Numbers(values)) => {
                let values = values.into_iter().map(|value| value.try_into().ok()).collect::<Option<Vec<u32>>>()?;
                builder.append_value(values.into_iter().map(Some));
            }
            _ => return None,
        }
        Some(())
    }

    fn append_null(&mut self) {
        match self {
            Self::Skip => {}
            Self::Int(builder) => builder.append_null(),
            Self::Int4(builder) => builder.append_null(),
            Self::Int2(builder) => builder.append_null(),
            Self::Oid(builder) => builder.append_null(),
            Self::Text(builder) => builder.append_null(),
            Self::Bool(builder) => builder.append_null(),
            Self::Float(builder) => builder.append_null(),
            Self::Float4(builder) => builder.append_null(),
            Self::Time(builder) => builder.append_null(),
            Self::Texts(builder) => builder.append_null(),
            Self::Int2s(builder) => builder.append_null(),
            Self::Int4s(builder) => builder.append_null(),
            Self::Oids(builder) => builder.append_null(),
        }
    }

    fn finish(self) -> Option<ArrayRef> {
        Some(match self {
            Self::Skip => return None,
            Self::Int(mut builder) => Arc::new(builder.finish()),
            Self::Int4(mut builder) => Arc::new(builder.finish()),
            Self::Int2(mut builder) => Arc::new(builder.finish()),
            Self::Oid(mut builder) => Arc::new(builder.finish()),
            Self::Text(mut builder) => Arc::new(builder.finish()),
            Self::Bool(mut builder) => Arc::new(builder.finish()),
            Self::Float(mut builder) => Arc::new(builder.finish()),
            Self::Float4(mut builder) => Arc::new(builder.finish()),
            Self::Time(mut builder) => Arc::new(builder.finish()),
            Self::Texts(mut builder) => Arc::new(builder.finish()),
            Self::Int2s(mut builder) => Arc::new(builder.finish()),
            Self::Int4s(mut builder) => Arc::new(builder.finish()),
            Self::Oids(mut builder) => Arc::new(builder.finish()),
        })
    }
}

/// Takes the rows of a table, one after the other; columns nobody asked for are not kept.
pub struct Rows {
    columns: &'static [Column],
    sink: Sink,
    len: usize,
}

/// What becomes of the rows.
enum Sink {
    /// Columns of arrow, as many as the table has.
    Arrow(Vec<Builder>),
    /// Rows, with the columns that are wanted.
    Direct { wanted: Vec<usize>, rows: Vec<Vec<Scalar>>, rows_max: usize },
}

/// The value of a cell; none when it is of another type or does not fit.
fn scalar(kind: Kind, cell: Cell<'_>) -> Option<Scalar> {
    Some(match (kind, cell) {
        (_, Cell::Null) => Scalar::Null,
        (Kind::Int, Cell::Int(value)) => Scalar::Int(value),
        (Kind::Int4, Cell::Int(value)) => Scalar::Int(i32::try_from(value).ok()?.into()),
        (Kind::Int2, Cell::Int(value)) => Scalar::Int(i16::try_from(value).ok()?.into()),
        (Kind::Oid, Cell::Int(value)) => Scalar::Int(u32::try_from(value).ok()?.into()),
        (Kind::Varchar | Kind::Text | Kind::Name | Kind::Char | Kind::Json | Kind::Jsonb, Cell::Text(value)) => {
            Scalar::Text(value.into_owned())
        }
        (Kind::Bool, Cell::Bool(value)) => Scalar::Bool(value),
        (Kind::Float4, Cell::Float(value)) => Scalar::Float4(value),
        (Kind::Float, Cell::Float(value)) => Scalar::Float8(value.into()),
        (Kind::Timestamptz | Kind::Timestamp, Cell::Time(value)) => Scalar::Time(value),
        (Kind::TextArray | Kind::NameArray | Kind::CharArray, Cell::Texts(values)) => {
            Scalar::Texts(values.into_iter().map(Some).collect())
        }
        (Kind::Int2Array | Kind::Int2Vector, Cell::Numbers(values)) => numbers::<i16>(values)?,
        (Kind::Int4Array, Cell::Numbers(values)) => numbers::<i32>(values)?,
        (Kind::OidArray | Kind::OidVector, Cell::Numbers(values)) => numbers::<u32>(values)?,
        _ => return None,
    })
}

fn numbers<T: TryFrom<i64>>(values: Vec<i64>) -> Option<Scalar> {
    let fits = values.iter().all(|value| T::try_from(*value).is_ok());
    fits.then(|| Scalar::Ints(values.into_iter().map(Some).collect()))
}

impl Rows {
    pub(super) fn new(columns: &'static [Column], projection: Option<&Vec<usize>>) -> Self {
        let wanted = |index: usize| projection.is_none_or(|wanted| wanted.contains(&index));
        let builder = |(index, column): (usize, &Column)| {
            if wanted(index) { Builder::new(column.kind) } else { Builder::Skip }
        };
        Self { columns, sink: Sink::Arrow(columns.iter().enumerate().map(builder).collect()), len: 0 }
    }

    /// Keeps rows as they are told to clients, with some columns in that order, each once; no more than so many.
    pub(crate) fn direct(columns: &'static [Column], wanted: &[usize], rows_max: usize) -> Self {
        Self { columns, sink: Sink::Direct { wanted: wanted.to_vec(), rows: Vec::new(), rows_max }, len: 0 }
    }

    /// Adds a row: one cell a column, in their order.
    pub fn push<const N: usize>(&mut self, mut cells: [Cell<'_>; N]) -> Result<(), RowsError> {
        if cells.len() != self.columns.len() {
            return Err(RowsError { column: self.columns.first().map_or("", |column| column.name) });
        }
        self.add(|index, _| cells.get_mut(index).map_or(Cell::Null, |cell| std::mem::replace(cell, Cell::Null)))
    }

    /// Adds a row by the columns' names; those that are not named are NULL.
    pub(super) fn push_named<const N: usize>(
        &mut self,
        mut cells: [(&'static str, Cell<'_>); N],
    ) -> Result<(), RowsError> {
        let known = |name: &&str| self.columns.iter().any(|own| own.name == *name);
        if let Some(column) = cells.iter().map(|(name, _)| *name).find(|name| !known(name)) {
            return Err(RowsError { column });
        }
        self.add(|_, name| {
            let named = cells.iter_mut().find(|(own, _)| *own == name);
            named.map_or(Cell::Null, |(_, cell)| std::mem::replace(cell, Cell::Null))
        })
    }

    /// Adds a row of the cells that `take` gives, each asked for once at the most.
    fn add<'a>(&mut self, mut take: impl FnMut(usize, &'static str) -> Cell<'a>) -> Result<(), RowsError> {
        match &mut self.sink {
            Sink::Arrow(builders) => {
                for (index, (column, builder)) in self.columns.iter().zip(builders).enumerate() {
                    builder.append(take(index, column.name)).ok_or(RowsError { column: column.name })?;
                }
            }
            Sink::Direct { wanted, rows, rows_max } => {
                if rows.len() >= *rows_max {
                    return Err(RowsError { column: "" });
                }
                let cell = |index: &usize| {
                    let column = self.columns.get(*index).ok_or(RowsError { column: "" })?;
                    scalar(column.kind, take(*index, column.name)).ok_or(RowsError { column: column.name })
                };
                rows.push(wanted.iter().map(cell).collect::<Result<_, _>>()?);
            }
        }
        self.len += 1;
        Ok(())
    }

    /// The rows, where they were kept as such.
    pub(crate) fn into_scalars(self) -> Option<Vec<Vec<Scalar>>> {
        match self.sink {
            Sink::Direct { rows, .. } => Some(rows),
            Sink::Arrow(_) => None,
        }
    }

    pub(super) fn finish(
        self,
        schema: &SchemaRef,
        projection: Option<&Vec<usize>>,
    ) -> Result<RecordBatch, DataFusionError> {
        let builders = match self.sink {
            Sink::Arrow(builders) => builders,
            Sink::Direct { .. } => Vec::new(),
        };
        let mut arrays: Vec<Option<ArrayRef>> = builders.into_iter().map(Builder::finish).collect();
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
