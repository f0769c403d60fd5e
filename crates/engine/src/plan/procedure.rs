//! CALL: Hologres' procedures (`reference/hologres.md` §1).

use switchyard_catalog::{Change, Name, ObjectKind, TableGroupProperty};
use switchyard_dialect::{Ident, Literal, Procedure};

use super::words::name;
use super::{Changes, Plan, PlanContext, one, session};
use crate::error::PlanError;
use crate::settings;

const TAG: &str = "CALL";

/// The properties of tables that set_table_property takes (§1.4).
const TABLE_PROPERTIES: [&str; 14] = [
    "orientation",
    "distribution_key",
    "clustering_key",
    "event_time_column",
    "segment_key",
    "table_group",
    "bitmap_columns",
    "dictionary_encoding_columns",
    "time_to_live_in_seconds",
    "storage_mode",
    "storage_format",
    "colocate_with",
    "readonly",
    "binlog.level",
];

/// Plans a CALL.
pub(super) fn plan(procedure: Procedure, arguments: &[Literal], context: &PlanContext<'_>) -> Result<Plan, PlanError> {
    let call = Call { procedure, arguments, context };
    call.check_arity()?;
    Ok(Plan::Changes(match procedure {
        Procedure::CreateTableGroup => {
            let replica_count = if arguments.len() > 2 { call.count(2, "replica_count")? } else { 1 };
            call.create(call.name(0)?, call.count(1, "shard_count")?, replica_count, true)
        }
        Procedure::DropTableGroup => one(TAG, Change::DropTableGroup { name: call.table_group(0)? }),
        Procedure::SetTableGroupProperty => call.set_table_group_property()?,
        Procedure::UpdateDatabaseProperty => call.update_database_property()?,
        Procedure::MoveTableToTableGroup | Procedure::UpdateTableShardCount => {
            call.table_group(1)?;
            return Err(call.no_table(0)?);
        }
        Procedure::TableGroupSetWarehouseReplicaCount => {
            // Warehouses are virtual clusters of the vendor's; `hologres.hg_warehouses` is empty here.
            return Err(PlanError::NotSupported {
                what: "a warehouse".to_owned(),
                hint: Some("Use CALL hg_set_table_group_property('<table group>', 'replica_count', '<n>').".to_owned()),
            });
        }
        Procedure::SetTableProperty => {
            let key = call.text(1)?.to_lowercase();
            call.text(2)?;
            if key == "shard_count" {
                return Err(PlanError::NotSupported {
                    what: "table property \"shard_count\"".to_owned(),
                    hint: Some("The number of shards is the table group's.".to_owned()),
                });
            }
            if !TABLE_PROPERTIES.contains(&key.as_str()) {
                return Err(PlanError::Property { owner: "table", key, known: &TABLE_PROPERTIES });
            }
            return Err(call.no_table(0)?);
        }
    }))
}

struct Call<'a> {
    procedure: Procedure,
    arguments: &'a [Literal],
    context: &'a PlanContext<'a>,
}

impl Call<'_> {
    fn check_arity(&self) -> Result<(), PlanError> {
        let (min, max) = self.procedure.arity();
        let given = self.arguments.len();
        if (min..=max).contains(&given) {
            return Ok(());
        }
        Err(PlanError::Arity { routine: self.procedure.name(), min, max, given })
    }

    fn wrong(&self, index: usize, expected: &'static str) -> PlanError {
        PlanError::Argument { routine: self.procedure.name(), number: index.saturating_add(1), expected }
    }

    fn text(&self, index: usize) -> Result<&str, PlanError> {
        match self.arguments.get(index) {
            Some(Literal::Text(text)) => Ok(text),
            _ => Err(self.wrong(index, "a string")),
        }
    }

    fn name(&self, index: usize) -> Result<Name, PlanError> {
        name(&Ident(self.text(index)?.to_owned()))
    }

    /// A number of shards or replicas, written as a number or, as some procedures want it, as text.
    fn count(&self, index: usize, what: &'static str) -> Result<u32, PlanError> {
        match self.arguments.get(index) {
            Some(Literal::Number(text) | Literal::Text(text)) => count(text, what),
            _ => Err(self.wrong(index, "an integer")),
        }
    }

    /// A table group that there is.
    fn table_group(&self, index: usize) -> Result<Name, PlanError> {
        let wanted = self.name(index)?;
        let groups = self.context.catalog.table_groups();
        if groups.named(&wanted).is_some() {
            return Ok(wanted);
        }
        let nearest = session::nearest(&wanted, groups.names());
        Err(PlanError::Missing { kind: ObjectKind::TableGroup, name: wanted, nearest })
    }

    fn no_table(&self, index: usize) -> Result<PlanError, PlanError> {
        Ok(PlanError::NoTable { name: self.text(index)?.to_owned() })
    }

    fn create(&self, name: Name, shard_count: u32, replica_count: u32, manually: bool) -> Changes {
        let shard_cap =
            settings::is_on("hg_experimental_enable_shard_count_cap", self.context.session, self.context.catalog);
        one(TAG, Change::CreateTableGroup { name, shard_count, replica_count, manually, shard_cap })
    }

    fn set_table_group_property(&self) -> Result<Changes, PlanError> {
        let name = self.table_group(0)?;
        let key = self.text(1)?;
        let value = self.text(2)?;
        match key.to_lowercase().as_str() {
            "replica_count" => {
                let property = TableGroupProperty::ReplicaCount(count(value, "replica_count")?);
                Ok(one(TAG, Change::SetTableGroupProperty { name, property }))
            }
            _ => Err(PlanError::Property {
                owner: "table group",
                key: key.to_owned(),
                known: &["replica_count", "shard_count"],
            }),
        }
    }

    fn update_database_property(&self) -> Result<Changes, PlanError> {
        let key = self.text(0)?;
        match key.to_lowercase().as_str() {
            "default_table_group" => {
                self.text(1)?;
                Ok(one(TAG, Change::SetDefaultTableGroup { name: self.table_group(1)? }))
            }
            // A new table group with that many shards becomes the default.
            "shard_count" => {
                let shard_count = self.count(1, "shard_count")?;
                let name = self.free_name(shard_count)?;
                let mut planned = self.create(name.clone(), shard_count, 1, false);
                planned.changes.push(Change::SetDefaultTableGroup { name });
                Ok(planned)
            }
            _ => Err(PlanError::Property {
                owner: "database",
                key: key.to_owned(),
                known: &["default_table_group", "shard_count"],
            }),
        }
    }

    /// `<database>_tg_<shards>`, or that with a number when there is one already.
    fn free_name(&self, shard_count: u32) -> Result<Name, PlanError> {
        let base = format!("{}_tg_{shard_count}", self.context.catalog.database().name);
        let groups = self.context.catalog.table_groups();
        let numbered = (2..).map(|number: u64| format!("{base}_{number}"));
        for candidate in std::iter::once(base.clone()).chain(numbered) {
            let name = Name::parse(&candidate)?;
            if groups.named(&name).is_none() {
                return Ok(name);
            }
        }
        Ok(Name::parse(&base)?)
    }
}

/// A whole number of at least 1.
fn count(text: &str, what: &'static str) -> Result<u32, PlanError> {
    let number: i64 = text.trim().parse().map_err(|_| PlanError::Integer { text: text.to_owned() })?;
    u32::try_from(number).ok().filter(|number| *number > 0 && *number <= i32::MAX.unsigned_abs()).ok_or_else(|| {
        PlanError::Range { what, value: text.to_owned(), min: 1, max: u64::from(i32::MAX.unsigned_abs()) }
    })
}
