//! Plans that are kept: planning a query over a system table takes many times as long as answering it, and tools ask the
//! same again and again. A plan holds no rows and nothing of a session, so all sessions share them: each execution reads
//! its own snapshot ([`super::provider::SystemScan`]).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::source_as_provider;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{Expr, LogicalPlan, Volatility};
use datafusion::physical_plan::ExecutionPlan;
use sqlparser::ast::Statement;
use switchyard_dialect::SqlStatement;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::OutputColumn;
use super::direct::Direct;
use super::guard::{Needs, needs, tables_read};
use super::provider::SystemTableProvider;

/// So many plans are kept; when there are more, all are forgotten and the keeping begins anew.
const PLANS_MAX: usize = 256;

/// A plan of more steps is not kept.
const STEPS_MAX: usize = 64;

/// A query that is ready to be executed any number of times, each with a copy of its own.
#[derive(Debug, Clone)]
pub(super) struct Planned {
    pub(super) columns: Arc<[OutputColumn]>,
    pub(super) physical: Arc<dyn ExecutionPlan>,
    /// Where it only reads a table.
    pub(super) direct: Option<Direct>,
}

/// What is known of a statement without looking at it again.
#[derive(Debug)]
pub struct Facts {
    needs: Needs,
    tables_read: Arc<[String]>,
    planned: OnceLock<Planned>,
}

/// What is known of a statement, found out when it is first asked for.
pub fn facts(statement: &SqlStatement) -> Arc<Facts> {
    statement.facts(|statement| Facts {
        needs: needs(statement),
        tables_read: tables_read(statement).into(),
        planned: OnceLock::new(),
    })
}

impl Facts {
    /// What it must be given to read.
    pub fn needs(&self) -> &Needs {
        &self.needs
    }

    /// The system tables that it reads, as `schema.table`.
    pub fn tables_read(&self) -> Arc<[String]> {
        Arc::clone(&self.tables_read)
    }
}

/// How many queries are planned at a time. What is planned cannot be stopped: what nobody waits for any more must not
/// pile up.
const PLANNING_MAX: usize = 16;

/// The plans that all sessions of a member share.
#[derive(Debug)]
pub struct PlanCache {
    plans: Mutex<HashMap<Statement, Planned>>,
    planning: Arc<Semaphore>,
}

impl Default for PlanCache {
    fn default() -> Self {
        Self { plans: Mutex::default(), planning: Arc::new(Semaphore::new(PLANNING_MAX)) }
    }
}

impl PlanCache {
    /// A place among those that plan, held until it is dropped.
    pub(super) async fn place(&self) -> Option<OwnedSemaphorePermit> {
        // It is never closed.
        Arc::clone(&self.planning).acquire_owned().await.ok()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// A statement's own plan, or that of one that says the same.
    pub(super) fn find(&self, statement: &SqlStatement) -> Option<Planned> {
        let facts = facts(statement);
        if let Some(planned) = facts.planned.get() {
            return Some(planned.clone());
        }
        let found = self.plans.lock().unwrap_or_else(PoisonError::into_inner).get(&**statement).cloned()?;
        Some(facts.planned.get_or_init(|| found).clone())
    }

    /// Keeps a plan, unless it is too large to be worth it.
    pub(super) fn keep(&self, statement: &Statement, planned: &Planned) {
        if steps(&planned.physical) > STEPS_MAX {
            return;
        }
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if plans.len() >= PLANS_MAX {
            plans.clear();
        }
        plans.insert(statement.clone(), planned.clone());
    }
}

fn steps(plan: &Arc<dyn ExecutionPlan>) -> usize {
    plan.children().into_iter().map(steps).sum::<usize>().saturating_add(1)
}

/// Whether a plan means the same at any time and in any session. What is asked must not have been optimised yet: the
/// optimiser puts values in the place of `now()` and `current_user`.
pub(super) fn is_repeatable(plan: &LogicalPlan) -> Result<bool, DataFusionError> {
    let mut repeatable = true;
    plan.apply_with_subqueries(|step| {
        repeatable &= match step {
            LogicalPlan::TableScan(scan) => source_as_provider(&scan.source)?.is::<SystemTableProvider>(),
            LogicalPlan::RecursiveQuery(_) | LogicalPlan::Explain(_) | LogicalPlan::Analyze(_) => false,
            _ => true,
        };
        step.apply_expressions(|expression| {
            expression.apply(|part| {
                repeatable &= match part {
                    Expr::ScalarFunction(function) => function.func.signature().volatility == Volatility::Immutable,
                    Expr::ScalarVariable(..) | Expr::Placeholder(_) => false,
                    _ => true,
                };
                Ok(if repeatable { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
            })
        })?;
        Ok(if repeatable { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    })?;
    Ok(repeatable)
}
