//! What the functions that a query can call may read. The functions of DataFusion itself compute from their arguments
//! and have one row together; each of ours has its own.

/// What a function reads besides its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    /// Nothing, or what everybody may see.
    Public,
    /// What is the caller's own.
    Own,
    /// Settings, of which those for superusers are masked for others.
    Masked,
    /// What is for superusers; others are refused.
    Superuser,
}

impl Reads {
    /// What superusers, owners, grantees and plain users get, in this order.
    pub fn outcomes(self) -> [super::Outcome; 4] {
        match self {
            Self::Superuser => super::Who::Superuser.outcomes(),
            Self::Public | Self::Own | Self::Masked => super::Who::Anyone.outcomes(),
        }
    }
}

/// Functions that read alike.
#[derive(Debug, Clone, Copy)]
pub struct QueryFunctions {
    /// What they read.
    pub reads: Reads,
    /// In a sentence.
    pub description: &'static str,
    /// Their names in lower case.
    pub names: &'static [&'static str],
}

/// The rows, by what is read.
pub const QUERY_FUNCTIONS: &[QueryFunctions] = &[
    QueryFunctions {
        reads: Reads::Superuser,
        description: "Reads what is for superusers.",
        names: &["catalog_at", "test_authentication"],
    },
    QueryFunctions {
        reads: Reads::Masked,
        description: "Reads settings; those for superusers are masked for others.",
        names: &["current_setting"],
    },
    QueryFunctions {
        reads: Reads::Own,
        description: "Reads who the caller is, and where.",
        names: &[
            "current_catalog",
            "current_database",
            "current_role",
            "current_schema",
            "current_schemas",
            "current_session",
            "current_user",
            "explain_route",
            "has_any_column_privilege",
            "has_column_privilege",
            "has_table_privilege",
            "inet_client_addr",
            "inet_client_port",
            "inet_server_addr",
            "inet_server_port",
            "pg_backend_pid",
            "pg_has_role",
            "session_user",
            "user",
        ],
    },
    QueryFunctions {
        reads: Reads::Own,
        description: "Changes settings of the caller's own session, within the rights of SET.",
        names: &["set_config"],
    },
    QueryFunctions {
        reads: Reads::Own,
        description: "Ends what a session of the caller's own user does, or the session; a superuser's reaches all.",
        names: &["pg_cancel_backend", "pg_terminate_backend"],
    },
    QueryFunctions {
        reads: Reads::Public,
        description: "Takes and gives back locks that everybody may take, or tells those who listen.",
        names: &[
            "pg_advisory_lock",
            "pg_advisory_lock_shared",
            "pg_advisory_unlock",
            "pg_advisory_unlock_all",
            "pg_advisory_unlock_shared",
            "pg_advisory_xact_lock",
            "pg_advisory_xact_lock_shared",
            "pg_notify",
            "pg_try_advisory_lock",
            "pg_try_advisory_lock_shared",
            "pg_try_advisory_xact_lock",
            "pg_try_advisory_xact_lock_shared",
        ],
    },
    QueryFunctions {
        reads: Reads::Public,
        description: "Reads what everybody may see, or nothing.",
        names: &[
            "age",
            "array_lower",
            "array_upper",
            "col_description",
            "family",
            "format",
            "format_type",
            "getdatabaseencoding",
            "has_database_privilege",
            "has_function_privilege",
            "has_language_privilege",
            "has_schema_privilege",
            "has_sequence_privilege",
            "has_tablespace_privilege",
            "has_type_privilege",
            "host",
            "json_build_object",
            "jsonb_build_object",
            "localtime",
            "localtimestamp",
            "masklen",
            "md5",
            "network_sub",
            "network_subeq",
            "network_sup",
            "network_supeq",
            "obj_description",
            "oidvectortypes",
            "parse_ident",
            "pg_blocking_pids",
            "pg_char_to_encoding",
            "pg_client_encoding",
            "pg_collation_is_visible",
            "pg_conf_load_time",
            "pg_conversion_is_visible",
            "pg_database_size",
            "pg_encoding_to_char",
            "pg_function_is_visible",
            "pg_get_constraintdef",
            "pg_get_expr",
            "pg_get_function_arg_default",
            "pg_get_function_arguments",
            "pg_get_function_identity_arguments",
            "pg_get_function_result",
            "pg_get_function_sqlbody",
            "pg_get_functiondef",
            "pg_get_indexdef",
            "pg_get_partition_constraintdef",
            "pg_get_partkeydef",
            "pg_get_ruledef",
            "pg_get_serial_sequence",
            "pg_get_statisticsobjdef",
            "pg_get_statisticsobjdef_columns",
            "pg_get_triggerdef",
            "pg_get_userbyid",
            "pg_get_viewdef",
            "pg_indexes_size",
            "pg_is_in_recovery",
            "pg_is_other_temp_schema",
            "pg_is_wal_replay_paused",
            "pg_my_temp_schema",
            "pg_opclass_is_visible",
            "pg_operator_is_visible",
            "pg_opfamily_is_visible",
            "pg_postmaster_start_time",
            "pg_relation_filenode",
            "pg_relation_is_publishable",
            "pg_relation_size",
            "pg_size_pretty",
            "pg_stat_get_numscans",
            "pg_statistics_obj_is_visible",
            "pg_table_is_visible",
            "pg_table_size",
            "pg_tablespace_location",
            "pg_tablespace_size",
            "pg_total_relation_size",
            "pg_ts_config_is_visible",
            "pg_ts_dict_is_visible",
            "pg_ts_parser_is_visible",
            "pg_ts_template_is_visible",
            "pg_type_is_visible",
            "pg_typeof",
            "quote_ident",
            "quote_literal",
            "quote_nullable",
            "row_security_active",
            "shobj_description",
            "statement_timestamp",
            "timezone",
            "to_regclass",
            "to_regnamespace",
            "to_regproc",
            "to_regrole",
            "to_regtype",
            "transaction_timestamp",
            "txid_current",
            "version",
        ],
    },
];

/// What a function reads; none for one of DataFusion's.
pub(super) fn reads(function: &str) -> Option<Reads> {
    let named = |row: &&QueryFunctions| row.names.iter().any(|name| name.eq_ignore_ascii_case(function));
    QUERY_FUNCTIONS.iter().find(named).map(|row| row.reads)
}
