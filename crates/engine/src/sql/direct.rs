//! Queries that only read a system table: their rows are told as they are made. Columns of arrow and an execution of
//! DataFusion's would take several times as long as the reading itself.

use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{Expr, LogicalPlan};

use super::cells::Scalar;
use super::provider::{SystemTableProvider, forbidden};
use crate::snapshot::Snapshot;
use crate::tables::{Rows, SystemTable};

/// A table of more rows is read batch by batch.
const ROWS_MAX: usize = 1_000;

/// The columns of a table, in the order of the result.
#[derive(Debug, Clone)]
pub(super) struct Direct {
    table: &'static SystemTable,
    columns: Vec<usize>,
}

impl Direct {
    /// What a plan reads, if it does nothing but read.
    pub(super) fn of(plan: &LogicalPlan) -> Option<Self> {
        match plan {
            LogicalPlan::TableScan(scan) if scan.filters.is_empty() && scan.fetch.is_none() => {
                let provider = source_as_provider(&scan.source).ok()?;
                let table = provider.downcast_ref::<SystemTableProvider>()?.table;
                let all = || (0..table.columns.len()).collect();
                Some(Self { table, columns: scan.projection.clone().unwrap_or_else(all) })
            }
            LogicalPlan::SubqueryAlias(alias) => Self::of(&alias.input),
            LogicalPlan::Projection(projection) => {
                let input = Self::of(&projection.input)?;
                let schema = projection.input.schema();
                let mut columns = Vec::with_capacity(projection.expr.len());
                for expression in &projection.expr {
                    let Expr::Column(column) = expression.clone().unalias() else { return None };
                    let column = *input.columns.get(schema.maybe_index_of_column(&column)?)?;
                    if columns.contains(&column) {
                        return None;
                    }
                    columns.push(column);
                }
                Some(Self { table: input.table, columns })
            }
            _ => None,
        }
    }

    /// The rows at a snapshot; none when they are many, or not for this session.
    pub(super) fn rows(&self, snapshot: &Snapshot) -> Option<Vec<Vec<Scalar>>> {
        if forbidden(self.table, snapshot) {
            return None;
        }
        let mut rows = Rows::direct(self.table.columns, &self.columns, ROWS_MAX);
        (self.table.rows)(snapshot, &mut rows).ok()?;
        rows.into_scalars()
    }
}
