//! `information_schema`: the system tables described as the SQL standard says, with the columns of PostgreSQL 15.

use super::pg_catalog::objects::{may_read, owner_oid, relation_kind, role_name, type_oid};
use super::pg_catalog::{columns, functions, none, precision, type_with_oid};
use super::{Cell, Kind, Rows, RowsError, SCHEMAS, SystemTable, Visibility, all};
use crate::snapshot::Snapshot;

macro_rules! view {
    ($rows:expr, $name:literal: $($columns:tt)+) => {
        SystemTable {
            schema: "information_schema",
            name: $name,
            description: "As in the SQL standard.",
            columns: columns![$($columns)+],
            visibility: Visibility::All,
            rows: $rows,
        }
    };
}

pub(super) const TABLES: &[SystemTable] = &[
    view!(information_schema_catalog_name, "information_schema_catalog_name":
        catalog_name Name
    ),
    view!(schemata, "schemata":
        catalog_name Name, schema_name Name, schema_owner Name, default_character_set_catalog Name,
        default_character_set_schema Name, default_character_set_name Name, sql_path Varchar
    ),
    view!(tables, "tables":
        table_catalog Name, table_schema Name, table_name Name, table_type Varchar, self_referencing_column_name Name,
        reference_generation Varchar, user_defined_type_catalog Name, user_defined_type_schema Name,
        user_defined_type_name Name, is_insertable_into Varchar, is_typed Varchar, commit_action Varchar
    ),
    view!(views, "views":
        table_catalog Name, table_schema Name, table_name Name, view_definition Varchar, check_option Varchar,
        is_updatable Varchar, is_insertable_into Varchar, is_trigger_updatable Varchar, is_trigger_deletable Varchar,
        is_trigger_insertable_into Varchar
    ),
    view!(columns, "columns":
        table_catalog Name, table_schema Name, table_name Name, column_name Name, ordinal_position Int4,
        column_default Varchar, is_nullable Varchar, data_type Varchar, character_maximum_length Int4,
        character_octet_length Int4, numeric_precision Int4, numeric_precision_radix Int4, numeric_scale Int4,
        datetime_precision Int4, interval_type Varchar, interval_precision Int4, character_set_catalog Name,
        character_set_schema Name, character_set_name Name, collation_catalog Name, collation_schema Name,
        collation_name Name, domain_catalog Name, domain_schema Name, domain_name Name, udt_catalog Name,
        udt_schema Name, udt_name Name, scope_catalog Name, scope_schema Name, scope_name Name,
        maximum_cardinality Int4, dtd_identifier Name, is_self_referencing Varchar, is_identity Varchar,
        identity_generation Varchar, identity_start Varchar, identity_increment Varchar, identity_maximum Varchar,
        identity_minimum Varchar, identity_cycle Varchar, is_generated Varchar, generation_expression Varchar,
        is_updatable Varchar
    ),
    view!(character_sets, "character_sets":
        character_set_catalog Name, character_set_schema Name, character_set_name Name, character_repertoire Name,
        form_of_use Name, default_collate_catalog Name, default_collate_schema Name, default_collate_name Name
    ),
    view!(none, "table_constraints":
        constraint_catalog Name, constraint_schema Name, constraint_name Name, table_catalog Name, table_schema Name,
        table_name Name, constraint_type Varchar, is_deferrable Varchar, initially_deferred Varchar, enforced Varchar,
        nulls_distinct Varchar
    ),
    view!(none, "key_column_usage":
        constraint_catalog Name, constraint_schema Name, constraint_name Name, table_catalog Name, table_schema Name,
        table_name Name, column_name Name, ordinal_position Int4, position_in_unique_constraint Int4
    ),
    view!(none, "referential_constraints":
        constraint_catalog Name, constraint_schema Name, constraint_name Name, unique_constraint_catalog Name,
        unique_constraint_schema Name, unique_constraint_name Name, match_option Varchar, update_rule Varchar,
        delete_rule Varchar
    ),
    view!(none, "constraint_column_usage":
        table_catalog Name, table_schema Name, table_name Name, column_name Name, constraint_catalog Name,
        constraint_schema Name, constraint_name Name
    ),
    view!(none, "constraint_table_usage":
        table_catalog Name, table_schema Name, table_name Name, constraint_catalog Name, constraint_schema Name,
        constraint_name Name
    ),
    view!(none, "check_constraints":
        constraint_catalog Name, constraint_schema Name, constraint_name Name, check_clause Varchar
    ),
    view!(none, "domain_constraints":
        constraint_catalog Name, constraint_schema Name, constraint_name Name, domain_catalog Name,
        domain_schema Name, domain_name Name, is_deferrable Varchar, initially_deferred Varchar
    ),
    view!(none, "domains":
        domain_catalog Name, domain_schema Name, domain_name Name, data_type Varchar, character_maximum_length Int4,
        character_octet_length Int4, character_set_catalog Name, character_set_schema Name, character_set_name Name,
        collation_catalog Name, collation_schema Name, collation_name Name, numeric_precision Int4,
        numeric_precision_radix Int4, numeric_scale Int4, datetime_precision Int4, interval_type Varchar,
        interval_precision Int4, domain_default Varchar, udt_catalog Name, udt_schema Name, udt_name Name,
        scope_catalog Name, scope_schema Name, scope_name Name, maximum_cardinality Int4, dtd_identifier Name
    ),
    view!(routines, "routines":
        specific_catalog Name, specific_schema Name, specific_name Name, routine_catalog Name, routine_schema Name,
        routine_name Name, routine_type Varchar, module_catalog Name, module_schema Name, module_name Name,
        udt_catalog Name, udt_schema Name, udt_name Name, data_type Varchar, character_maximum_length Int4,
        character_octet_length Int4, character_set_catalog Name, character_set_schema Name, character_set_name Name,
        collation_catalog Name, collation_schema Name, collation_name Name, numeric_precision Int4,
        numeric_precision_radix Int4, numeric_scale Int4, datetime_precision Int4, interval_type Varchar,
        interval_precision Int4, type_udt_catalog Name, type_udt_schema Name, type_udt_name Name, scope_catalog Name,
        scope_schema Name, scope_name Name, maximum_cardinality Int4, dtd_identifier Name, routine_body Varchar,
        routine_definition Varchar, external_name Varchar, external_language Varchar, parameter_style Varchar,
        is_deterministic Varchar, sql_data_access Varchar, is_null_call Varchar, sql_path Varchar,
        schema_level_routine Varchar, max_dynamic_result_sets Int4, is_user_defined_cast Varchar,
        is_implicitly_invocable Varchar, security_type Varchar, to_sql_specific_catalog Name,
        to_sql_specific_schema Name, to_sql_specific_name Name, as_locator Varchar, created Timestamptz,
        last_altered Timestamptz, new_savepoint_level Varchar, is_udt_dependent Varchar,
        result_cast_from_data_type Varchar, result_cast_as_locator Varchar, result_cast_char_max_length Int4,
        result_cast_char_octet_length Int4, result_cast_char_set_catalog Name, result_cast_char_set_schema Name,
        result_cast_char_set_name Name, result_cast_collation_catalog Name, result_cast_collation_schema Name,
        result_cast_collation_name Name, result_cast_numeric_precision Int4, result_cast_numeric_precision_radix Int4,
        result_cast_numeric_scale Int4, result_cast_datetime_precision Int4, result_cast_interval_type Varchar,
        result_cast_interval_precision Int4, result_cast_type_udt_catalog Name, result_cast_type_udt_schema Name,
        result_cast_type_udt_name Name, result_cast_scope_catalog Name, result_cast_scope_schema Name,
        result_cast_scope_name Name, result_cast_maximum_cardinality Int4, result_cast_dtd_identifier Name
    ),
    view!(none, "parameters":
        specific_catalog Name, specific_schema Name, specific_name Name, ordinal_position Int4,
        parameter_mode Varchar, is_result Varchar, as_locator Varchar, parameter_name Name, data_type Varchar,
        character_maximum_length Int4, character_octet_length Int4, character_set_catalog Name,
        character_set_schema Name, character_set_name Name, collation_catalog Name, collation_schema Name,
        collation_name Name, numeric_precision Int4, numeric_precision_radix Int4, numeric_scale Int4,
        datetime_precision Int4, interval_type Varchar, interval_precision Int4, udt_catalog Name, udt_schema Name,
        udt_name Name, scope_catalog Name, scope_schema Name, scope_name Name, maximum_cardinality Int4,
        dtd_identifier Name, parameter_default Varchar
    ),
    view!(none, "sequences":
        sequence_catalog Name, sequence_schema Name, sequence_name Name, data_type Varchar, numeric_precision Int4,
        numeric_precision_radix Int4, numeric_scale Int4, start_value Varchar, minimum_value Varchar,
        maximum_value Varchar, increment Varchar, cycle_option Varchar
    ),
    view!(table_privileges, "table_privileges":
        grantor Name, grantee Name, table_catalog Name, table_schema Name, table_name Name, privilege_type Varchar,
        is_grantable Varchar, with_hierarchy Varchar
    ),
    view!(none, "role_table_grants":
        grantor Name, grantee Name, table_catalog Name, table_schema Name, table_name Name, privilege_type Varchar,
        is_grantable Varchar, with_hierarchy Varchar
    ),
    view!(none, "column_privileges":
        grantor Name, grantee Name, table_catalog Name, table_schema Name, table_name Name, column_name Name,
        privilege_type Varchar, is_grantable Varchar
    ),
    view!(none, "role_column_grants":
        grantor Name, grantee Name, table_catalog Name, table_schema Name, table_name Name, column_name Name,
        privilege_type Varchar, is_grantable Varchar
    ),
    view!(none, "usage_privileges":
        grantor Name, grantee Name, object_catalog Name, object_schema Name, object_name Name, object_type Varchar,
        privilege_type Varchar, is_grantable Varchar
    ),
    view!(none, "routine_privileges":
        grantor Name, grantee Name, specific_catalog Name, specific_schema Name, specific_name Name,
        routine_catalog Name, routine_schema Name, routine_name Name, privilege_type Varchar, is_grantable Varchar
    ),
    view!(applicable_roles, "applicable_roles":
        grantee Name, role_name Name, is_grantable Varchar
    ),
    view!(enabled_roles, "enabled_roles":
        role_name Name
    ),
    view!(none, "administrable_role_authorizations":
        grantee Name, role_name Name, is_grantable Varchar
    ),
    view!(none, "triggers":
        trigger_catalog Name, trigger_schema Name, trigger_name Name, event_manipulation Varchar,
        event_object_catalog Name, event_object_schema Name, event_object_table Name, action_order Int4,
        action_condition Varchar, action_statement Varchar, action_orientation Varchar, action_timing Varchar,
        action_reference_old_table Name, action_reference_new_table Name, action_reference_old_row Name,
        action_reference_new_row Name, created Timestamptz
    ),
    view!(none, "element_types":
        object_catalog Name, object_schema Name, object_name Name, object_type Varchar,
        collection_type_identifier Name, data_type Varchar, character_maximum_length Int4,
        character_octet_length Int4, character_set_catalog Name, character_set_schema Name, character_set_name Name,
        collation_catalog Name, collation_schema Name, collation_name Name, numeric_precision Int4,
        numeric_precision_radix Int4, numeric_scale Int4, datetime_precision Int4, interval_type Varchar,
        interval_precision Int4, domain_default Varchar, udt_catalog Name, udt_schema Name, udt_name Name,
        scope_catalog Name, scope_schema Name, scope_name Name, maximum_cardinality Int4, dtd_identifier Name
    ),
    view!(none, "view_table_usage":
        view_catalog Name, view_schema Name, view_name Name, table_catalog Name, table_schema Name, table_name Name
    ),
    view!(none, "view_column_usage":
        view_catalog Name, view_schema Name, view_name Name, table_catalog Name, table_schema Name, table_name Name,
        column_name Name
    ),
    view!(collations, "collations":
        collation_catalog Name, collation_schema Name, collation_name Name, pad_attribute Varchar
    ),
];

fn database(snapshot: &Snapshot) -> Cell<'_> {
    snapshot.catalog.database().name.as_str().into()
}

fn owner(snapshot: &Snapshot) -> Option<String> {
    role_name(&snapshot.catalog, owner_oid(&snapshot.catalog))
}

fn information_schema_catalog_name(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    rows.push([database(snapshot)])
}

fn schemata(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    for schema in SCHEMAS {
        rows.push_named([
            ("catalog_name", database(snapshot)),
            ("schema_name", (*schema).into()),
            ("schema_owner", owner(snapshot).into()),
        ])?;
    }
    Ok(())
}

fn tables(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    for table in all() {
        rows.push_named([
            ("table_catalog", database(snapshot)),
            ("table_schema", table.schema.into()),
            ("table_name", table.name.into()),
            ("table_type", if relation_kind(table) == "v" { "VIEW" } else { "BASE TABLE" }.into()),
            ("is_insertable_into", "NO".into()),
            ("is_typed", "NO".into()),
        ])?;
    }
    Ok(())
}

fn views(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    for table in all().filter(|table| relation_kind(table) == "v") {
        rows.push_named([
            ("table_catalog", database(snapshot)),
            ("table_schema", table.schema.into()),
            ("table_name", table.name.into()),
            ("check_option", "NONE".into()),
            ("is_updatable", "NO".into()),
            ("is_insertable_into", "NO".into()),
            ("is_trigger_updatable", "NO".into()),
            ("is_trigger_deletable", "NO".into()),
            ("is_trigger_insertable_into", "NO".into()),
        ])?;
    }
    Ok(())
}

/// The longest text there can be, in bytes.
const OCTETS_MAX: i64 = 1 << 30;

fn columns(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    for table in all() {
        for (position, column) in table.columns.iter().enumerate() {
            let facts = type_with_oid(type_oid(column.kind));
            let array = facts.is_some_and(|facts| facts.letter(2) == "A" && facts.array == 0);
            let number = precision(column.kind);
            let whole = matches!(column.kind, Kind::Int | Kind::Int2 | Kind::Int4);
            let text = matches!(column.kind, Kind::Varchar | Kind::Text);
            let time = matches!(column.kind, Kind::Timestamp | Kind::Timestamptz);
            rows.push_named([
                ("table_catalog", database(snapshot)),
                ("table_schema", table.schema.into()),
                ("table_name", table.name.into()),
                ("column_name", column.name.into()),
                ("ordinal_position", (position + 1).into()),
                ("is_nullable", "YES".into()),
                ("data_type", if array { "ARRAY" } else { column.kind.sql_name() }.into()),
                ("character_octet_length", text.then_some(OCTETS_MAX).into()),
                ("numeric_precision", number.into()),
                ("numeric_precision_radix", number.map(|_| 2i64).into()),
                ("numeric_scale", whole.then_some(0i64).into()),
                ("datetime_precision", time.then_some(6i64).into()),
                ("udt_catalog", database(snapshot)),
                ("udt_schema", "pg_catalog".into()),
                ("udt_name", facts.map(|facts| facts.name).into()),
                ("dtd_identifier", (position + 1).to_string().into()),
                ("is_self_referencing", "NO".into()),
                ("is_identity", "NO".into()),
                ("identity_cycle", "NO".into()),
                ("is_generated", "NEVER".into()),
                ("is_updatable", "NO".into()),
            ])?;
        }
    }
    Ok(())
}

fn character_sets(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    rows.push_named([
        ("character_set_name", "UTF8".into()),
        ("character_repertoire", "UCS".into()),
        ("form_of_use", "UTF8".into()),
        ("default_collate_catalog", database(snapshot)),
        ("default_collate_schema", "pg_catalog".into()),
        ("default_collate_name", "C".into()),
    ])
}

fn collations(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    for name in ["default", "C", "POSIX"] {
        rows.push([database(snapshot), "pg_catalog".into(), name.into(), "NO PAD".into()])?;
    }
    Ok(())
}

fn table_privileges(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    for table in all().filter(|table| may_read(snapshot, table)) {
        let grantee =
            if table.visibility == Visibility::Superuser { owner(snapshot) } else { Some("PUBLIC".to_owned()) };
        rows.push([
            owner(snapshot).into(),
            grantee.into(),
            database(snapshot),
            table.schema.into(),
            table.name.into(),
            "SELECT".into(),
            "NO".into(),
            "YES".into(),
        ])?;
    }
    Ok(())
}

/// The roles of the session's user, with whether he may grant them.
fn applicable_roles(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    let catalog = &snapshot.catalog;
    let user = snapshot.session.user_name(catalog);
    for (role, admin) in catalog.granted_roles(snapshot.session.user_id) {
        let name = catalog.roles().find(role).map(|role| role.name.as_str());
        rows.push([user.into(), name.into(), if admin { "YES" } else { "NO" }.into()])?;
    }
    Ok(())
}

fn enabled_roles(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    let catalog = &snapshot.catalog;
    rows.push([snapshot.session.user_name(catalog).into()])?;
    for role in catalog.roles_in_effect(snapshot.session.user_id, snapshot.session.enabled_roles()) {
        rows.push([catalog.roles().find(role).map(|role| role.name.as_str()).into()])?;
    }
    Ok(())
}

fn routines(snapshot: &Snapshot, rows: &mut Rows) -> Result<(), RowsError> {
    for function in functions() {
        rows.push_named([
            ("specific_catalog", database(snapshot)),
            ("specific_schema", function.schema.into()),
            ("specific_name", format!("{}_{}", function.name, function.oid).into()),
            ("routine_catalog", database(snapshot)),
            ("routine_schema", function.schema.into()),
            ("routine_name", function.name.into()),
            ("routine_type", if function.kind == "p" { "PROCEDURE" } else { "FUNCTION" }.into()),
            ("data_type", type_with_oid(function.result).map(|facts| facts.shown).into()),
            ("routine_body", "EXTERNAL".into()),
            ("external_language", "INTERNAL".into()),
        ])?;
    }
    Ok(())
}
