//! The relations of PostgreSQL's catalog that are always empty here, since there is nothing they could tell of: no
//! indexes, constraints, triggers, ... Clients ask for them all the same.

use super::{columns, none};
use crate::tables::{SystemTable, Visibility};

macro_rules! empty {
    ($name:literal: $($columns:tt)+) => {
        SystemTable {
            schema: "pg_catalog",
            name: $name,
            description: "As in PostgreSQL; always empty here.",
            columns: columns![$($columns)+],
            visibility: Visibility::All,
            rows: none,
        }
    };
}

pub(crate) const TABLES: &[SystemTable] = &[
    empty!("pg_attrdef":
        oid Oid, adrelid Oid, adnum Int2, adbin Text
    ),
    empty!("pg_index":
        indexrelid Oid, indrelid Oid, indnatts Int2, indnkeyatts Int2, indisunique Bool, indnullsnotdistinct Bool,
        indisprimary Bool, indisexclusion Bool, indimmediate Bool, indisclustered Bool, indisvalid Bool,
        indcheckxmin Bool, indisready Bool, indislive Bool, indisreplident Bool, indkey Int2Vector,
        indcollation OidVector, indclass OidVector, indoption Int2Vector, indexprs Text, indpred Text
    ),
    empty!("pg_constraint":
        oid Oid, conname Name, connamespace Oid, contype Char, condeferrable Bool, condeferred Bool,
        convalidated Bool, conrelid Oid, contypid Oid, conindid Oid, conparentid Oid, confrelid Oid, confupdtype Char,
        confdeltype Char, confmatchtype Char, conislocal Bool, coninhcount Int4, connoinherit Bool, conkey Int2Array,
        confkey Int2Array, conpfeqop OidArray, conppeqop OidArray, conffeqop OidArray, confdelsetcols Int2Array,
        conexclop OidArray, conbin Text
    ),
    empty!("pg_extension":
        oid Oid, extname Name, extowner Oid, extnamespace Oid, extrelocatable Bool, extversion Text,
        extconfig OidArray, extcondition TextArray
    ),
    empty!("pg_cast":
        oid Oid, castsource Oid, casttarget Oid, castfunc Oid, castcontext Char, castmethod Char
    ),
    empty!("pg_operator":
        oid Oid, oprname Name, oprnamespace Oid, oprowner Oid, oprkind Char, oprcanmerge Bool, oprcanhash Bool,
        oprleft Oid, oprright Oid, oprresult Oid, oprcom Oid, oprnegate Oid, oprcode Oid, oprrest Oid, oprjoin Oid
    ),
    empty!("pg_opclass":
        oid Oid, opcmethod Oid, opcname Name, opcnamespace Oid, opcowner Oid, opcfamily Oid, opcintype Oid,
        opcdefault Bool, opckeytype Oid
    ),
    empty!("pg_opfamily":
        oid Oid, opfmethod Oid, opfname Name, opfnamespace Oid, opfowner Oid
    ),
    empty!("pg_amop":
        oid Oid, amopfamily Oid, amoplefttype Oid, amoprighttype Oid, amopstrategy Int2, amoppurpose Char,
        amopopr Oid, amopmethod Oid, amopsortfamily Oid
    ),
    empty!("pg_amproc":
        oid Oid, amprocfamily Oid, amproclefttype Oid, amprocrighttype Oid, amprocnum Int2, amproc Oid
    ),
    empty!("pg_enum":
        oid Oid, enumtypid Oid, enumsortorder Float4, enumlabel Name
    ),
    empty!("pg_range":
        rngtypid Oid, rngsubtype Oid, rngmultitypid Oid, rngcollation Oid, rngsubopc Oid, rngcanonical Oid,
        rngsubdiff Oid
    ),
    empty!("pg_sequence":
        seqrelid Oid, seqtypid Oid, seqstart Int, seqincrement Int, seqmax Int, seqmin Int, seqcache Int,
        seqcycle Bool
    ),
    empty!("pg_inherits":
        inhrelid Oid, inhparent Oid, inhseqno Int4, inhdetachpending Bool
    ),
    empty!("pg_depend":
        classid Oid, objid Oid, objsubid Int4, refclassid Oid, refobjid Oid, refobjsubid Int4, deptype Char
    ),
    empty!("pg_shdepend":
        dbid Oid, classid Oid, objid Oid, objsubid Int4, refclassid Oid, refobjid Oid, deptype Char
    ),
    empty!("pg_shdescription":
        objoid Oid, classoid Oid, description Text
    ),
    empty!("pg_seclabel":
        objoid Oid, classoid Oid, objsubid Int4, provider Text, label Text
    ),
    empty!("pg_shseclabel":
        objoid Oid, classoid Oid, provider Text, label Text
    ),
    empty!("pg_trigger":
        oid Oid, tgrelid Oid, tgparentid Oid, tgname Name, tgfoid Oid, tgtype Int2, tgenabled Char, tgisinternal Bool,
        tgconstrrelid Oid, tgconstrindid Oid, tgconstraint Oid, tgdeferrable Bool, tginitdeferred Bool, tgnargs Int2,
        tgattr Int2Vector, tgargs Text, tgqual Text, tgoldtable Name, tgnewtable Name
    ),
    empty!("pg_event_trigger":
        oid Oid, evtname Name, evtevent Name, evtowner Oid, evtfoid Oid, evtenabled Char, evttags TextArray
    ),
    empty!("pg_policy":
        oid Oid, polname Name, polrelid Oid, polcmd Char, polpermissive Bool, polroles OidArray, polqual Text,
        polwithcheck Text
    ),
    empty!("pg_rewrite":
        oid Oid, rulename Name, ev_class Oid, ev_type Char, ev_enabled Char, is_instead Bool, ev_qual Text,
        ev_action Text
    ),
    empty!("pg_aggregate":
        aggfnoid Oid, aggkind Char, aggnumdirectargs Int2, aggtransfn Oid, aggfinalfn Oid, aggcombinefn Oid,
        aggserialfn Oid, aggdeserialfn Oid, aggmtransfn Oid, aggminvtransfn Oid, aggmfinalfn Oid, aggfinalextra Bool,
        aggmfinalextra Bool, aggfinalmodify Char, aggmfinalmodify Char, aggsortop Oid, aggtranstype Oid,
        aggtransspace Int4, aggmtranstype Oid, aggmtransspace Int4, agginitval Text, aggminitval Text
    ),
    empty!("pg_conversion":
        oid Oid, conname Name, connamespace Oid, conowner Oid, conforencoding Int4, contoencoding Int4, conproc Oid,
        condefault Bool
    ),
    empty!("pg_default_acl":
        oid Oid, defaclrole Oid, defaclnamespace Oid, defaclobjtype Char, defaclacl TextArray
    ),
    empty!("pg_init_privs":
        objoid Oid, classoid Oid, objsubid Int4, privtype Char, initprivs TextArray
    ),
    empty!("pg_transform":
        oid Oid, trftype Oid, trflang Oid, trffromsql Oid, trftosql Oid
    ),
    empty!("pg_foreign_data_wrapper":
        oid Oid, fdwname Name, fdwowner Oid, fdwhandler Oid, fdwvalidator Oid, fdwacl TextArray, fdwoptions TextArray
    ),
    empty!("pg_foreign_server":
        oid Oid, srvname Name, srvowner Oid, srvfdw Oid, srvtype Text, srvversion Text, srvacl TextArray,
        srvoptions TextArray
    ),
    empty!("pg_foreign_table":
        ftrelid Oid, ftserver Oid, ftoptions TextArray
    ),
    empty!("pg_user_mapping":
        oid Oid, umuser Oid, umserver Oid, umoptions TextArray
    ),
    empty!("pg_largeobject_metadata":
        oid Oid, lomowner Oid, lomacl TextArray
    ),
    empty!("pg_parameter_acl":
        oid Oid, parname Text, paracl TextArray
    ),
    empty!("pg_partitioned_table":
        partrelid Oid, partstrat Char, partnatts Int2, partdefid Oid, partattrs Int2Vector, partclass OidVector,
        partcollation OidVector, partexprs Text
    ),
    empty!("pg_publication":
        oid Oid, pubname Name, pubowner Oid, puballtables Bool, pubinsert Bool, pubupdate Bool, pubdelete Bool,
        pubtruncate Bool, pubviaroot Bool
    ),
    empty!("pg_publication_namespace":
        oid Oid, pnpubid Oid, pnnspid Oid
    ),
    empty!("pg_publication_rel":
        oid Oid, prpubid Oid, prrelid Oid, prqual Text, prattrs Int2Vector
    ),
    empty!("pg_replication_origin":
        roident Oid, roname Text
    ),
    empty!("pg_statistic_ext":
        oid Oid, stxrelid Oid, stxname Name, stxnamespace Oid, stxowner Oid, stxstattarget Int4, stxkeys Int2Vector,
        stxkind CharArray, stxexprs Text
    ),
    empty!("pg_subscription":
        oid Oid, subdbid Oid, subskiplsn Text, subname Name, subowner Oid, subenabled Bool, subbinary Bool,
        substream Bool, subtwophasestate Char, subdisableonerr Bool, subconninfo Text, subslotname Name,
        subsynccommit Text, subpublications TextArray
    ),
    empty!("pg_ts_config":
        oid Oid, cfgname Name, cfgnamespace Oid, cfgowner Oid, cfgparser Oid
    ),
    empty!("pg_ts_config_map":
        mapcfg Oid, maptokentype Int4, mapseqno Int4, mapdict Oid
    ),
    empty!("pg_ts_dict":
        oid Oid, dictname Name, dictnamespace Oid, dictowner Oid, dicttemplate Oid, dictinitoption Text
    ),
    empty!("pg_ts_parser":
        oid Oid, prsname Name, prsnamespace Oid, prsstart Oid, prstoken Oid, prsend Oid, prsheadline Oid,
        prslextype Oid
    ),
    empty!("pg_ts_template":
        oid Oid, tmplname Name, tmplnamespace Oid, tmplinit Oid, tmpllexize Oid
    ),
    empty!("pg_indexes":
        schemaname Name, tablename Name, indexname Name, tablespace Name, indexdef Text
    ),
    empty!("pg_matviews":
        schemaname Name, matviewname Name, matviewowner Name, tablespace Name, hasindexes Bool, ispopulated Bool,
        definition Text
    ),
    empty!("pg_sequences":
        schemaname Name, sequencename Name, sequenceowner Name, data_type Oid, start_value Int, min_value Int,
        max_value Int, increment_by Int, cycle Bool, cache_size Int, last_value Int
    ),
    empty!("pg_rules":
        schemaname Name, tablename Name, rulename Name, definition Text
    ),
    empty!("pg_policies":
        schemaname Name, tablename Name, policyname Name, permissive Text, roles NameArray, cmd Text, qual Text,
        with_check Text
    ),
    empty!("pg_seclabels":
        objoid Oid, classoid Oid, objsubid Int4, objtype Text, objnamespace Oid, objname Text, provider Text,
        label Text
    ),
    empty!("pg_publication_tables":
        pubname Name, schemaname Name, tablename Name, attnames NameArray, rowfilter Text
    ),
    empty!("pg_user_mappings":
        umid Oid, srvid Oid, srvname Name, umuser Oid, usename Name, umoptions TextArray
    ),
    empty!("pg_available_extensions":
        name Name, default_version Text, installed_version Text, comment Text
    ),
    empty!("pg_available_extension_versions":
        name Name, version Text, installed Bool, superuser Bool, trusted Bool, relocatable Bool, schema Name,
        requires NameArray, comment Text
    ),
    empty!("pg_prepared_xacts":
        transaction Oid, gid Text, prepared Timestamptz, owner Name, database Name
    ),
    empty!("pg_replication_slots":
        slot_name Name, plugin Name, slot_type Text, datoid Oid, database Name, temporary Bool, active Bool,
        active_pid Int4, xmin Oid, catalog_xmin Oid, restart_lsn Text, confirmed_flush_lsn Text, wal_status Text,
        safe_wal_size Int, two_phase Bool
    ),
    empty!("pg_stat_replication":
        pid Int4, usesysid Oid, usename Name, application_name Text, client_addr Text, client_hostname Text,
        client_port Int4, backend_start Timestamptz, backend_xmin Oid, state Text, sent_lsn Text, write_lsn Text,
        flush_lsn Text, replay_lsn Text, write_lag Text, flush_lag Text, replay_lag Text, sync_priority Int4,
        sync_state Text, reply_time Timestamptz
    ),
    empty!("pg_stat_subscription":
        subid Oid, subname Name, pid Int4, relid Oid, received_lsn Text, last_msg_send_time Timestamptz,
        last_msg_receipt_time Timestamptz, latest_end_lsn Text, latest_end_time Timestamptz
    ),
    empty!("pg_stat_ssl":
        pid Int4, ssl Bool, version Text, cipher Text, bits Int4, client_dn Text, client_serial Text, issuer_dn Text
    ),
    empty!("pg_stat_gssapi":
        pid Int4, gss_authenticated Bool, principal Text, encrypted Bool
    ),
    empty!("pg_stat_all_tables":
        relid Oid, schemaname Name, relname Name, seq_scan Int, seq_tup_read Int, idx_scan Int, idx_tup_fetch Int,
        n_tup_ins Int, n_tup_upd Int, n_tup_del Int, n_tup_hot_upd Int, n_live_tup Int, n_dead_tup Int,
        n_mod_since_analyze Int, n_ins_since_vacuum Int, last_vacuum Timestamptz, last_autovacuum Timestamptz,
        last_analyze Timestamptz, last_autoanalyze Timestamptz, vacuum_count Int, autovacuum_count Int,
        analyze_count Int, autoanalyze_count Int
    ),
    empty!("pg_stat_user_tables":
        relid Oid, schemaname Name, relname Name, seq_scan Int, seq_tup_read Int, idx_scan Int, idx_tup_fetch Int,
        n_tup_ins Int, n_tup_upd Int, n_tup_del Int, n_tup_hot_upd Int, n_live_tup Int, n_dead_tup Int,
        n_mod_since_analyze Int, n_ins_since_vacuum Int, last_vacuum Timestamptz, last_autovacuum Timestamptz,
        last_analyze Timestamptz, last_autoanalyze Timestamptz, vacuum_count Int, autovacuum_count Int,
        analyze_count Int, autoanalyze_count Int
    ),
    empty!("pg_stat_sys_tables":
        relid Oid, schemaname Name, relname Name, seq_scan Int, seq_tup_read Int, idx_scan Int, idx_tup_fetch Int,
        n_tup_ins Int, n_tup_upd Int, n_tup_del Int, n_tup_hot_upd Int, n_live_tup Int, n_dead_tup Int,
        n_mod_since_analyze Int, n_ins_since_vacuum Int, last_vacuum Timestamptz, last_autovacuum Timestamptz,
        last_analyze Timestamptz, last_autoanalyze Timestamptz, vacuum_count Int, autovacuum_count Int,
        analyze_count Int, autoanalyze_count Int
    ),
    empty!("pg_stat_all_indexes":
        relid Oid, indexrelid Oid, schemaname Name, relname Name, indexrelname Name, idx_scan Int, idx_tup_read Int,
        idx_tup_fetch Int
    ),
    empty!("pg_stat_user_indexes":
        relid Oid, indexrelid Oid, schemaname Name, relname Name, indexrelname Name, idx_scan Int, idx_tup_read Int,
        idx_tup_fetch Int
    ),
    empty!("pg_statio_all_tables":
        relid Oid, schemaname Name, relname Name, heap_blks_read Int, heap_blks_hit Int, idx_blks_read Int,
        idx_blks_hit Int, toast_blks_read Int, toast_blks_hit Int, tidx_blks_read Int, tidx_blks_hit Int
    ),
    empty!("pg_statio_user_tables":
        relid Oid, schemaname Name, relname Name, heap_blks_read Int, heap_blks_hit Int, idx_blks_read Int,
        idx_blks_hit Int, toast_blks_read Int, toast_blks_hit Int, tidx_blks_read Int, tidx_blks_hit Int
    ),
    empty!("pg_stat_user_functions":
        funcid Oid, schemaname Name, funcname Name, calls Int, total_time Float, self_time Float
    ),
    empty!("pg_stats":
        schemaname Name, tablename Name, attname Name, inherited Bool, null_frac Float4, avg_width Int4,
        n_distinct Float4, most_common_vals Text, most_common_freqs TextArray, histogram_bounds Text,
        correlation Float4, most_common_elems Text, most_common_elem_freqs TextArray, elem_count_histogram TextArray
    ),
    empty!("pg_timezone_names":
        name Text, abbrev Text, utc_offset Text, is_dst Bool
    ),
    empty!("pg_timezone_abbrevs":
        abbrev Text, utc_offset Text, is_dst Bool
    ),
    empty!("pg_file_settings":
        sourcefile Text, sourceline Int4, seqno Int4, name Text, setting Text, applied Bool, error Text
    ),
    empty!("pg_hba_file_rules":
        line_number Int4, type Text, database TextArray, user_name TextArray, address Text, netmask Text,
        auth_method Text, options TextArray, error Text
    ),
];
