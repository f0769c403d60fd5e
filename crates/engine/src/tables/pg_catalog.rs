//! `pg_catalog`: the system tables described as PostgreSQL describes its own, for clients that look around
//! (`reference/introspection.md`). Its relations have the columns of PostgreSQL 15.

mod activity;
mod constants;
mod empty;
mod functions;
mod keywords;
pub(crate) mod objects;
mod relations;
mod roles;
mod sets;
mod types;

use super::{Rows, RowsError, SystemTable, Visibility};
use crate::snapshot::Snapshot;

pub(crate) use self::constants::UTF8;
pub(crate) use self::empty::TABLES as EMPTY;
pub(crate) use self::functions::{FunctionRow, functions};
pub(crate) use self::keywords::must_be_quoted;
pub(crate) use self::relations::precision;
pub(crate) use self::sets::{SCHEMA as SETS_SCHEMA, set_named};
pub(crate) use self::types::{type_named, type_with_oid};

/// The number of a type by its name, as PostgreSQL's clients and grammar write it; also of an array of it.
pub fn type_oid(name: &str) -> Option<u32> {
    let base = |name: &str| {
        let name = name.split_once('(').map_or(name, |(before, _)| before).trim();
        type_named(name)
    };
    match name.trim().strip_suffix("[]") {
        Some(item) => base(item).and_then(|item| type_named(&format!("_{}", item.name))).map(|facts| facts.oid),
        None => base(name).map(|facts| facts.oid),
    }
}

/// Declares columns as `name Kind`; what they mean, PostgreSQL's documentation says.
macro_rules! columns {
    ($($name:ident $kind:ident),+ $(,)?) => {
        &[$(crate::tables::Column {
            name: stringify!($name),
            kind: crate::tables::Kind::$kind,
            description: "As in PostgreSQL.",
        }),+]
    };
}
pub(super) use columns;

/// Whether a table never has a row.
pub(crate) fn is_empty(table: &SystemTable) -> bool {
    let empty = match table.schema {
        "pg_catalog" => EMPTY,
        SETS_SCHEMA => sets::EMPTY_SETS,
        _ => &[],
    };
    empty.iter().any(|own| own.name == table.name)
}

pub(super) fn none(_: &Snapshot, _: &mut Rows) -> Result<(), RowsError> {
    Ok(())
}

pub(super) const TABLES: &[SystemTable] = &[
    SystemTable {
        schema: "pg_catalog",
        name: "pg_class",
        description: "The system tables, with stable oids.",
        columns: columns![
            oid Oid, relname Name, relnamespace Oid, reltype Oid, reloftype Oid, relowner Oid, relam Oid,
            relfilenode Oid, reltablespace Oid, relpages Int4, reltuples Float4, relallvisible Int4,
            reltoastrelid Oid, relhasindex Bool, relisshared Bool, relpersistence Char, relkind Char, relnatts Int2,
            relchecks Int2, relhasrules Bool, relhastriggers Bool, relhassubclass Bool, relrowsecurity Bool,
            relforcerowsecurity Bool, relispopulated Bool, relreplident Char, relispartition Bool, relrewrite Oid,
            relfrozenxid Oid, relminmxid Oid, relacl TextArray, reloptions TextArray, relpartbound Text
        ],
        visibility: Visibility::All,
        rows: relations::class,
    },
    SystemTable {
        schema: "pg_catalog",
        name: "pg_namespace",
        description: "The schemas.",
        columns: columns![
            oid Oid, nspname Name, nspowner Oid, nspacl TextArray
        ],
        visibility: Visibility::All,
        rows: relations::namespace,
    },
    SystemTable {
        schema: "pg_catalog",
        name: "pg_attribute",
        description: "The columns of the system tables.",
        columns: columns![
            attrelid Oid, attname Name, atttypid Oid, attstattarget Int4, attlen Int2, attnum Int2, attndims Int4,
            attcacheoff Int4, atttypmod Int4, attbyval Bool, attalign Char, attstorage Char, attcompression Char,
            attnotnull Bool, atthasdef Bool, atthasmissing Bool, attidentity Char, attgenerated Char,
            attisdropped Bool, attislocal Bool, attinhcount Int4, attcollation Oid, attacl TextArray,
            attoptions TextArray, attfdwoptions TextArray, attmissingval Text
        ],
        visibility: Visibility::All,
        rows: relations::attribute,
    },
    SystemTable {
        schema: "pg_catalog",
        name: "pg_type",
        description: "PostgreSQL's own types.",
        columns: columns![
            oid Oid, typname Name, typnamespace Oid, typowner Oid, typlen Int2, typbyval Bool, typtype Char,
            typcategory Char, typispreferred Bool, typisdefined Bool, typdelim Char, typrelid Oid, typsubscript Oid,
            typelem Oid, typarray Oid, typinput Oid, typoutput Oid, typreceive Oid, typsend Oid, typmodin Oid,
            typmodout Oid, typanalyze Oid, typalign Char, typstorage Char, typnotnull Bool, typbasetype Oid,
            typtypmod Int4, typndims Int4, typcollation Oid, typdefaultbin Text, typdefault Text, typacl TextArray
        ],
        visibility: Visibility::All,
        rows: constants::types,
    },
    SystemTable {
        schema: "pg_catalog",
        name: "pg_database",
        description: "The database of the console.",
        columns: columns![
            oid Oid, datname Name, datdba Oid, encoding Int4, datlocprovider Char, datistemplate Bool,
            datallowconn Bool, datconnlimit Int4, datfrozenxid Oid, datminmxid Oid, dattablespace Oid,
            datcollate Text, datctype Text, daticulocale Text, datcollversion Text, datacl TextArray
        ],
        visibility: Visibility::All,
        rows: constants::database,
    },
    SystemTable {
        schema: "pg_catalog",
        name: "pg_roles",
        description: "The users and roles.",
        columns: columns![
            rolname Name, rolsuper Bool, rolinherit Bool, rolcreaterole Bool, rolcreatedb Bool, rolcanlogin Bool,
            rolreplication Bool, rolconnlimit Int4, rolpassword Text, rolvaliduntil Timestamptz, rolbypassrls Bool,
            rolconfig TextArray, oid Oid
        ],
        visibility: Visibility::All,
        rows: roles::roles,
    },
    SystemTable {
        schema: "pg_catalog",
        name: "pg_authid",
        description: "The users and roles; no password is shown.",
        columns: columns![
            oid Oid, rolname Name, rolsuper Bool, rolinherit Bool, rolcreaterole Bool, rolcreatedb Bool,
            rolcanlogin Bool, rolreplication Bool, rolbypassrls Bool, rolconnlimit Int4, rolpassword Text,
            rolvaliduntil Timestamptz
        ],
        visibility: Visibility::Superuser,
        rows: roles::authid,
    },
    SystemTable {
        schema: "pg_catalog",
        name: "pg_user",
        description: "The users.",
        columns: columns![
            usename Name, usesysid Oid, usecreatedb Bool, usesuper Bool, userepl Bool, usebypassrls Bool, passwd Text,
            valuntil Timestamptz, useconfig TextArray
        ],
        visibility: Visibility::All,
        rows: roles::user,
    },
    SystemTable {
        schema: "pg_catalog",
        name: "pg_group",
        description: "The roles.",
        columns: columns![
            groname Name, grosysid Oid, grolist OidArray
        ],
        visibility: Visibility::All,
        rows: roles::group,
    },
    SystemTable {
        schema: "pg_catalog",
        name: "pg_auth_members",
        description: "Who has which role.",
        columns: columns![
            roleid Oid, member Oid, grantor Oid, admin_option Bool
        ],
        visibility: Visibility::All,
        rows: roles::auth_members,
    },
    SystemTable {
        schema: "pg_catalog",
        name: "pg_description",
        description: "What the system tables and their columns mean.",
        columns: columns![
            objoid Oid, classoid Oid, objsubid Int4, description Text
        ],
        visibility: Visibility::All,
        rows: relations::description,
    },
    SystemTable {
        schema: "pg_catalog",
        name: "pg_proc",
        description: "The functions.",
        columns: columns![
            oid Oid, proname Name, pronamespace Oid, proowner Oid, prolang Oid, procost Float4, prorows Float4,
            provariadic Oid, prosupport Oid, prokind Char, prosecdef Bool, proleakproof Bool, proisstrict Bool,
            proretset Bool, provolatile Char, proparallel Char, pronargs Int2, pronargdefaults Int2, prorettype Oid,
            proargtypes OidVector, proallargtypes OidArray, proargmodes CharArray, proargnames TextArray,
            proargdefaults Text, protrftypes OidArray, prosrc Text, probin Text, prosqlbody Text, proconfig TextArray,
            proacl TextArray
        ],
        visibility: Visibility::All,
        rows: functions::proc,
    },
    SystemTable {
        schema: "pg_catalog",
        name: "pg_am",
        description: "The access methods; no table uses one.",
        columns: columns![
            oid Oid, amname Name, amhandler Oid, amtype Char
        ],
        visibility: Visibility::All,
        rows: constants::am,
    },
    SystemTable {
        schema: "pg_catalog",
        name: "pg_tablespace",
        description: "The tablespaces; no table is in one.",
        columns: columns![
            oid Oid, spcname Name, spcowner Oid, spcacl TextArray, spcoptions TextArray
        ],
        visibility: Visibility::All,
        rows: constants::tablespace,
    },
    SystemTable {
        schema: "pg_catalog",
        name: "pg_settings",
        description: "The settings, as SHOW knows them.",
        columns: columns![
            name Text, setting Text, unit Text, category Text, short_desc Text, extra_desc Text, context Text,
            vartype Text, source Text, min_val Text, max_val Text, enumvals TextArray, boot_val Text, reset_val Text,
            sourcefile Text, sourceline Int4, pending_restart Bool
        ],
        visibility: Visibility::All,
        rows: activity::settings,
    },
    SystemTable {
        schema: "pg_catalog",
        name: "pg_stat_activity",
        description: "The client sessions now; others than the superuser see the statements of their own only.",
        columns: columns![
            datid Oid, datname Name, pid Int4, leader_pid Int4, usesysid Oid, usename Name, application_name Text,
            client_addr Text, client_hostname Text, client_port Int4, backend_start Timestamptz,
            xact_start Timestamptz, query_start Timestamptz, state_change Timestamptz, wait_event_type Text,
            wait_event Text, state Text, backend_xid Oid, backend_xmin Oid, query_id Int, query Text,
            backend_type Text
        ],
        visibility: Visibility::All,
        rows: activity::stat_activity,
    },
    SystemTable {
        schema: "pg_catalog",
        name: "pg_locks",
        description: "The advisory locks of the sessions, held and waited for.",
        columns: columns![
            locktype Text, database Oid, relation Oid, page Int4, tuple Int2, virtualxid Text, transactionid Oid,
            classid Oid, objid Oid, objsubid Int2, virtualtransaction Text, pid Int4, mode Text, granted Bool,
            fastpath Bool, waitstart Timestamptz
        ],
        visibility: Visibility::All,
        rows: activity::locks,
    },
    SystemTable {
        schema: "pg_catalog",
        name: "pg_cursors",
        description: "The cursors and portals of the session that asks.",
        columns: columns![
            name Text, statement Text, is_holdable Bool, is_binary Bool, is_scrollable Bool, creation_time Timestamptz
        ],
        visibility: Visibility::Own,
        rows: activity::cursors,
    },
    SystemTable {
        schema: "pg_catalog",
        name: "pg_prepared_statements",
        description: "The prepared statements of the session that asks.",
        columns: columns![
            name Text, statement Text, prepare_time Timestamptz, parameter_types OidArray, from_sql Bool,
            generic_plans Int, custom_plans Int
        ],
        visibility: Visibility::Own,
        rows: activity::prepared_statements,
    },
    SystemTable {
        schema: "pg_catalog",
        name: "pg_collation",
        description: "The collations.",
        columns: columns![
            oid Oid, collname Name, collnamespace Oid, collowner Oid, collprovider Char, collisdeterministic Bool,
            collencoding Int4, collcollate Text, collctype Text, colliculocale Text, collversion Text
        ],
        visibility: Visibility::All,
        rows: constants::collation,
    },
    SystemTable {
        schema: "pg_catalog",
        name: "pg_language",
        description: "The language of the functions.",
        columns: columns![
            oid Oid, lanname Name, lanowner Oid, lanispl Bool, lanpltrusted Bool, lanplcallfoid Oid, laninline Oid,
            lanvalidator Oid, lanacl TextArray
        ],
        visibility: Visibility::All,
        rows: constants::language,
    },
    SystemTable {
        schema: "pg_catalog",
        name: "pg_tables",
        description: "The system tables.",
        columns: columns![
            schemaname Name, tablename Name, tableowner Name, tablespace Name, hasindexes Bool, hasrules Bool,
            hastriggers Bool, rowsecurity Bool
        ],
        visibility: Visibility::All,
        rows: relations::tables,
    },
    SystemTable {
        schema: "pg_catalog",
        name: "pg_views",
        description: "The system tables that are views in PostgreSQL.",
        columns: columns![
            schemaname Name, viewname Name, viewowner Name, definition Text
        ],
        visibility: Visibility::All,
        rows: relations::views,
    },
    SystemTable {
        schema: "pg_catalog",
        name: "pg_stat_database",
        description: "The database of the console, with what is counted.",
        columns: columns![
            datid Oid, datname Name, numbackends Int4, xact_commit Int, xact_rollback Int, blks_read Int,
            blks_hit Int, tup_returned Int, tup_fetched Int, tup_inserted Int, tup_updated Int, tup_deleted Int,
            conflicts Int, temp_files Int, temp_bytes Int, deadlocks Int, checksum_failures Int,
            checksum_last_failure Timestamptz, blk_read_time Float, blk_write_time Float, session_time Float,
            active_time Float, idle_in_transaction_time Float, sessions Int, sessions_abandoned Int,
            sessions_fatal Int, sessions_killed Int, stats_reset Timestamptz
        ],
        visibility: Visibility::All,
        rows: activity::stat_database,
    },
    SystemTable {
        schema: "pg_catalog",
        name: "pg_db_role_setting",
        description: "Settings of the database and of users.",
        columns: columns![
            setdatabase Oid, setrole Oid, setconfig TextArray
        ],
        visibility: Visibility::All,
        rows: roles::db_role_setting,
    },
];
