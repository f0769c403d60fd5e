//! The one declaration of every setting.

use super::value;
use super::{Declaration, Family, Kind, Levels, Unit};

const GUC: Levels = Levels::DATABASE.and(Levels::USER).and(Levels::SESSION);
const SESSION: Levels = Levels::SESSION;
const NONE: Levels = Levels::NONE;
const CLUSTER: Levels = Levels::DATABASE.and(Levels::NODE);
const ALL: Levels = GUC.and(Levels::NODE);

const ISOLATION: &[&str] = &["serializable", "repeatable read", "read committed", "read uncommitted"];
const MESSAGES: &[&str] = &["debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error"];
const MS_MAX: i64 = i32::MAX as i64;

const fn row(
    family: Family,
    name: &'static str,
    kind: Kind,
    default: &'static str,
    levels: Levels,
    description: &'static str,
) -> Declaration {
    Declaration { name, family, kind, default, levels, restart: false, superuser: false, report: false, description }
}

const fn vertica(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    levels: Levels,
    text: &'static str,
) -> Declaration {
    row(Family::Vertica, name, kind, default, levels, text)
}

const fn hologres(name: &'static str, kind: Kind, default: &'static str, text: &'static str) -> Declaration {
    row(Family::Hologres, name, kind, default, GUC, text)
}

const fn ours(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    levels: Levels,
    text: &'static str,
) -> Declaration {
    row(Family::Switchyard, name, kind, default, levels, text)
}

const fn postgres(name: &'static str, kind: Kind, default: &'static str, text: &'static str) -> Declaration {
    row(Family::PostgreSql, name, kind, default, GUC, text)
}

/// A PostgreSQL setting that cannot be set.
const fn fixed(name: &'static str, value: &'static str, text: &'static str) -> Declaration {
    row(Family::PostgreSql, name, Kind::Text, value, NONE, text)
}

const fn int(min: i64, max: i64) -> Kind {
    Kind::Int { min, max, unit: Unit::None }
}

/// All settings: Vertica's in the order in which SHOW ALL lists them, then the rest by family.
pub static SETTINGS: &[Declaration] = &[
    // reference/vertica-sql.md §4.3: the session's own
    vertica(
        "locale",
        Kind::Checked(value::locale),
        "en_US@collation=binary (LEN_KBINARY)",
        SESSION,
        "The session's locale.",
    ),
    vertica(
        "autocommit",
        Kind::Bool,
        "on",
        SESSION,
        "Kept for clients that set it: outside a transaction, what changes the catalog commits by itself either way.",
    ),
    vertica("resource_pool", Kind::Text, "general", NONE, "The user's resource pool."),
    vertica("memorycap", Kind::Text, "unlimited", NONE, "The user's memory cap."),
    vertica("tempspacecap", Kind::Text, "unlimited", NONE, "The user's cap on temporary space."),
    vertica("runtimecap", Kind::Interval { max_days: 365 }, "unlimited", SESSION, "How long a statement may run."),
    vertica(
        "idlesessiontimeout",
        Kind::Interval { max_days: 365 },
        "unlimited",
        SESSION,
        "How long the session may wait for its client.",
    ),
    vertica(
        "graceperiod",
        Kind::Interval { max_days: 20 },
        "unlimited",
        SESSION,
        "How long the session's socket may block on its client.",
    ),
    // reference/vertica-sql.md §5.5
    vertica(
        "MaxClientSessions",
        int(0, 1000),
        "50",
        CLUSTER,
        "Client sessions on each node, once it is set; five more are kept for superusers, who alone may log in when it is \
         0. Until then only connections_max counts.",
    )
    .superuser(),
    vertica(
        "DefaultIdleSessionTimeout",
        Kind::Interval { max_days: 365 },
        "unlimited",
        CLUSTER,
        "The idle session timeout of users and sessions that have none.",
    )
    .superuser(),
    vertica(
        "DefaultGracePeriod",
        Kind::Interval { max_days: 20 },
        "unlimited",
        CLUSTER,
        "The grace period of users and sessions that have none.",
    )
    .superuser(),
    vertica("EnableAllRolesOnLogin", Kind::Flag, "0", ALL, "Whether all granted roles are enabled at login."),
    vertica(
        "KeepAliveIdleTime",
        int(0, 2_147_483),
        "0",
        ALL,
        "Seconds before the first keepalive probe; 0 is the operating system's value.",
    ),
    vertica(
        "KeepAliveProbeInterval",
        int(0, 2_147_483),
        "0",
        ALL,
        "Seconds between keepalive probes; 0 is the operating system's value.",
    ),
    vertica(
        "KeepAliveProbeCount",
        int(0, 127),
        "0",
        ALL,
        "Keepalive probes before the connection is given up; 0 is the operating system's value.",
    ),
    // reference/hologres.md §3
    hologres(
        "hg_experimental_query_replica_mode",
        Kind::Enum(&["leader_follower", "leader_only", "follower_only"]),
        "leader_follower",
        "Which replicas of a shard answer queries.",
    ),
    hologres(
        "hg_experimental_query_replica_leader_weight",
        int(1, 10_000),
        "100",
        "The leader's weight; each follower has 100.",
    ),
    hologres(
        "hg_experimental_query_replica_fixed_plan_ha_mode",
        Kind::Enum(&["any", "leader_first", "off"]),
        "any",
        "Where point queries go first, and whether they are tried again.",
    ),
    hologres(
        "hg_experimental_query_replica_fixed_plan_first_query_timeout_ms",
        int(0, 10_000),
        "60",
        "After how many milliseconds a point query is tried on another replica; 0 is never.",
    ),
    // §3, superseded: taken, and without effect
    hologres(
        "hg_experimental_enable_read_replica",
        Kind::Bool,
        "on",
        "Superseded by hg_experimental_query_replica_mode; has no effect.",
    ),
    hologres("hg_experimental_read_replica_leader_timeout_ms", int(0, MS_MAX), "60", "Superseded; has no effect."),
    hologres("hg_experimental_read_replica_max_duration_sec", int(0, MS_MAX), "60", "Superseded; has no effect."),
    // §1.3, §2.6
    hologres(
        "hg_experimental_enable_shard_count_cap",
        Kind::Bool,
        "on",
        "Whether the caps on the number of shards hold.",
    ),
    hologres(
        "hg_experimental_target_shard_list",
        Kind::Checked(value::shard_list),
        "",
        "The shards that a read or a COPY is limited to.",
    ),
    // §4.6: sent by Hologres' clients on every connect
    hologres("hg_experimental_enable_fixed_dispatcher", Kind::Bool, "on", "Whether point queries take the short path."),
    hologres(
        "hg_experimental_enable_fixed_dispatcher_for_multi_values",
        Kind::Bool,
        "on",
        "Whether inserts of several rows take the short path.",
    ),
    hologres(
        "hg_experimental_enable_fixed_dispatcher_autofill_series",
        Kind::Bool,
        "on",
        "Whether the short path fills in serial columns.",
    ),
    hologres(
        "hg_experimental_enable_fixed_dispatcher_for_update",
        Kind::Bool,
        "on",
        "Always on since Hologres 1.3.25.",
    ),
    hologres(
        "hg_experimental_enable_fixed_dispatcher_for_delete",
        Kind::Bool,
        "on",
        "Always on since Hologres 1.3.25.",
    ),
    hologres(
        "hg_experimental_enable_fixed_dispatcher_for_scan",
        Kind::Bool,
        "off",
        "Whether scans of a key prefix take the short path.",
    ),
    hologres(
        "hg_experimental_enable_fixed_dispatcher_for_clustering_key_scan",
        Kind::Bool,
        "off",
        "Whether scans in clustering order take the short path.",
    ),
    hologres(
        "hg_experimental_enable_fixed_plan_expression",
        Kind::Bool,
        "off",
        "Whether the short path takes expressions.",
    ),
    hologres(
        "hg_experimental_fixed_scan_bytesize_limit",
        int(0, MS_MAX),
        "1048576",
        "The largest result of a scan on the short path, in bytes.",
    ),
    hologres(
        "hg_experimental_disable_fixed_planner_conflict_pk_check",
        Kind::Bool,
        "off",
        "Whether the short path skips the check of conflict keys.",
    ),
    hologres(
        "hg_experimental_enable_fixed_dispatcher_affected_rows",
        Kind::Bool,
        "on",
        "Whether the short path counts rows.",
    ),
    // ours
    ours(
        "allow_loopback_addresses",
        Kind::Bool,
        "off",
        Levels::DATABASE,
        "Whether network addresses may be loopback addresses.",
    ),
    ours(
        "workload_usage_required",
        Kind::Bool,
        "on",
        Levels::DATABASE,
        "Whether a workload can be named only with USAGE on it.",
    ),
    ours(
        "workload_fallback",
        Kind::Enum(&["local", "error"]),
        "local",
        Levels::DATABASE,
        "Where statements run while no node of the workload is up: on the connection node's subcluster, or nowhere.",
    ),
    ours(
        "upstream_probe_interval_ms",
        int(0, 3_600_000),
        "1000",
        CLUSTER,
        "How often a node's PostgreSQL server is looked at: from when a session was first sent there, or this was set. 0 is \
         never.",
    ),
    ours(
        "upstream_probe_timeout_ms",
        int(1, 600_000),
        "1000",
        CLUSTER,
        "How long a PostgreSQL server that is looked at may take to answer.",
    ),
    ours(
        "upstream_probe_rise",
        int(1, 1_000),
        "2",
        CLUSTER,
        "How often a PostgreSQL server that was down must answer before it gets sessions again.",
    ),
    ours(
        "upstream_probe_fall",
        int(1, 1_000),
        "3",
        CLUSTER,
        "How often a PostgreSQL server must give no answer until it is down; where nobody listens it is at once.",
    ),
    ours(
        "replication_lag_ms_max",
        int(0, MS_MAX),
        "0",
        CLUSTER,
        "How far a standby may be behind and still get sessions; 0 is however far.",
    ),
    ours(
        "query_memory_bytes_max",
        int(1_048_576, 1 << 40),
        "268435456",
        CLUSTER.and(Levels::USER),
        "The memory one query over system tables may take.",
    )
    .superuser(),
    ours(
        "query_time_ms_max",
        int(0, MS_MAX),
        "60000",
        CLUSTER.and(Levels::USER),
        "The time one query over system tables may take; 0 is no limit.",
    )
    .superuser(),
    // What they may be at the most is what the parser is made for: ParseLimits::HIGHEST.
    ours(
        "statement_bytes_max",
        int(1_024, 16_777_216),
        "16777216",
        CLUSTER.and(Levels::USER),
        "How many bytes of statements a client may send at once.",
    )
    .superuser(),
    ours(
        "query_bytes_max",
        int(1_024, 1_048_576),
        "1048576",
        CLUSTER.and(Levels::USER),
        "How many bytes one query may have; statements that change the catalog may have as many as statement_bytes_max.",
    )
    .superuser(),
    ours(
        "parse_depth_max",
        int(10, 40),
        "40",
        CLUSTER.and(Levels::USER),
        "How deep brackets may nest in a query; chains of operators, and of WITH queries, may be longer in proportion.",
    )
    .superuser(),
    ours(
        "query_log_statements_max",
        int(0, 1_000_000),
        "1000",
        CLUSTER,
        "How many ended statements a member keeps for hologres.hg_query_log.",
    )
    .superuser(),
    ours(
        "prepared_statements_max",
        int(1, 1_000_000),
        "1000",
        CLUSTER.and(Levels::USER),
        "How many prepared statements a session may have.",
    )
    .superuser(),
    ours(
        "portals_max",
        int(1, 1_000_000),
        "1000",
        CLUSTER.and(Levels::USER),
        "How many portals and cursors a session may have open.",
    )
    .superuser(),
    ours(
        "cursors_bytes_max",
        int(1_048_576, 1 << 40),
        "268435456",
        CLUSTER.and(Levels::USER),
        "How many bytes the rows may take that a session's cursors WITH HOLD and SCROLL cursors keep.",
    )
    .superuser(),
    ours(
        "cursors_member_bytes_max",
        int(1_048_576, 1 << 40),
        "1073741824",
        CLUSTER,
        "How many bytes the rows may take that the cursors of all sessions of a member keep.",
    )
    .superuser(),
    ours(
        "prepared_bytes_max",
        int(65_536, 1 << 40),
        "67108864",
        CLUSTER.and(Levels::USER),
        "How many bytes the texts of a session's prepared statements and the values of its portals may take.",
    )
    .superuser(),
    ours(
        "history_versions_max",
        int(1, 1_000_000_000),
        "100000",
        Levels::DATABASE,
        "How many catalog versions history keeps, the newest included; older ones go with the commits that follow, some at a time.",
    )
    .superuser(),
    ours(
        "history_days_max",
        int(0, 36_500),
        "0",
        Levels::DATABASE,
        "How many days catalog versions stay in history; 0 is no limit. They go with the commits that follow, some at a time.",
    )
    .superuser(),
    ours(
        "password_md5_verifiers",
        Kind::Bool,
        "off",
        Levels::DATABASE,
        "Whether users with SECURITY_ALGORITHM 'MD5' prove their passwords by MD5 to Vertica's protocol. What is kept for it, from the next password on, is weak: a stolen copy lets one log in.",
    )
    .superuser(),
    ours(
        "connection_load_balance",
        Kind::Bool,
        "off",
        SESSION,
        "Whether the client asks for load balancing; read when it connects.",
    ),
    // PostgreSQL's, as psql and the drivers set and show them
    postgres("application_name", Kind::Checked(value::application_name), "", "The client's name.").report(),
    postgres("array_nulls", Kind::Bool, "on", "Whether NULL in an array literal is null."),
    postgres(
        "backslash_quote",
        Kind::Enum(&["safe_encoding", "on", "off"]),
        "safe_encoding",
        "Whether \\' stands for a quote.",
    ),
    fixed("block_size", "8192", "The size of a block."),
    postgres("bytea_output", Kind::Enum(&["escape", "hex"]), "hex", "How bytea is shown."),
    postgres("check_function_bodies", Kind::Bool, "on", "Whether function bodies are checked when made."),
    postgres("client_encoding", Kind::Checked(value::client_encoding), "UTF8", "The client's encoding.").report(),
    postgres("client_min_messages", Kind::Enum(MESSAGES), "notice", "The least level of messages that are sent."),
    postgres("DateStyle", Kind::List(value::date_style), "ISO, MDY", "How dates are shown and read.").report(),
    postgres("default_table_access_method", Kind::Text, "heap", "The access method of new tables."),
    postgres("default_tablespace", Kind::Text, "", "The tablespace of new tables."),
    postgres("default_text_search_config", Kind::Text, "pg_catalog.simple", "The text search configuration."),
    postgres("default_transaction_deferrable", Kind::Bool, "off", "Whether new transactions are deferrable."),
    postgres(
        "default_transaction_isolation",
        Kind::Enum(ISOLATION),
        "read committed",
        "The isolation of new transactions.",
    ),
    postgres("default_transaction_read_only", Kind::Bool, "off", "Whether new transactions are read-only.").report(),
    postgres("escape_string_warning", Kind::Bool, "on", "Whether backslashes in plain strings are warned of."),
    postgres("extra_float_digits", int(-15, 3), "1", "Digits of floating-point numbers."),
    postgres("geqo", Kind::Bool, "on", "Whether large joins are planned by genetic search."),
    postgres(
        "idle_in_transaction_session_timeout",
        Kind::Int { min: 0, max: MS_MAX, unit: Unit::Ms },
        "0",
        "How long a session may idle in a transaction; 0 is no limit.",
    ),
    postgres(
        "idle_session_timeout",
        Kind::Int { min: 0, max: MS_MAX, unit: Unit::Ms },
        "0",
        "How long a session may idle outside a transaction; 0 is no limit.",
    ),
    fixed("in_hot_standby", "off", "Whether the server is a standby.").report(),
    fixed("integer_datetimes", "on", "Whether datetimes are integers.").report(),
    postgres(
        "IntervalStyle",
        Kind::Enum(&["postgres", "postgres_verbose", "sql_standard", "iso_8601"]),
        "postgres",
        "How intervals are shown.",
    )
    .report(),
    fixed("is_superuser", "off", "Whether the user is a superuser.").report(),
    postgres("jit", Kind::Bool, "off", "Whether expressions are compiled."),
    fixed("lc_collate", "C", "The order of text."),
    fixed("lc_ctype", "C.UTF-8", "The kinds of characters."),
    postgres("lc_messages", Kind::Checked(value::c_locale), "C.UTF-8", "The language of messages."),
    postgres("lc_monetary", Kind::Checked(value::c_locale), "C.UTF-8", "The format of money."),
    postgres("lc_numeric", Kind::Checked(value::c_locale), "C.UTF-8", "The format of numbers."),
    postgres("lc_time", Kind::Checked(value::c_locale), "C.UTF-8", "The format of times."),
    row(
        Family::PostgreSql,
        "log_min_duration_statement",
        Kind::Int { min: -1, max: MS_MAX, unit: Unit::Ms },
        "0",
        ALL,
        "How long a statement must take to be kept for hologres.hg_query_log; -1 keeps only those that fail.",
    )
    .superuser(),
    postgres(
        "lock_timeout",
        Kind::Int { min: 0, max: MS_MAX, unit: Unit::Ms },
        "0",
        "How long a statement may wait for a lock; 0 is no limit.",
    ),
    fixed("max_identifier_length", "128", "The longest identifier, in bytes."),
    fixed("max_index_keys", "32", "The most columns of an index."),
    fixed("password_encryption", "scram-sha-256", "How passwords are kept."),
    postgres("quote_all_identifiers", Kind::Bool, "off", "Whether generated SQL quotes all identifiers."),
    postgres("row_security", Kind::Bool, "on", "Whether row security is in force."),
    postgres(
        "search_path",
        Kind::List(value::search_path),
        "\"$user\", public, v_catalog, v_monitor, v_internal",
        "The schemas of names without one.",
    ),
    fixed("server_encoding", "UTF8", "The server's encoding.").report(),
    fixed(
        "server_version",
        concat!("15.0 (Switchyard ", env!("CARGO_PKG_VERSION"), ")"),
        "The version of PostgreSQL the console is like, and ours.",
    )
    .report(),
    fixed("server_version_num", "150000", "The version of PostgreSQL the console is like, as a number."),
    fixed("session_authorization", "", "The session's user.").report(),
    postgres(
        "standard_conforming_strings",
        Kind::Checked(value::always_on),
        "on",
        "Whether backslashes in plain strings are plain; cannot be turned off.",
    )
    .report(),
    postgres(
        "statement_timeout",
        Kind::Int { min: 0, max: MS_MAX, unit: Unit::Ms },
        "0",
        "How long a statement may run; 0 is no limit.",
    ),
    postgres("synchronize_seqscans", Kind::Bool, "on", "Whether scans of one table run in step."),
    postgres(
        "synchronous_commit",
        Kind::Enum(&["local", "remote_write", "remote_apply", "on", "off"]),
        "on",
        "When a commit is told; ours are always durable first.",
    ),
    postgres("TimeZone", Kind::Checked(value::time_zone), "UTC", "The zone in which times are shown and read.")
        .report(),
    row(
        Family::PostgreSql,
        "transaction_deferrable",
        Kind::Bool,
        "off",
        SESSION,
        "Whether this transaction is deferrable.",
    ),
    row(
        Family::PostgreSql,
        "transaction_isolation",
        Kind::Enum(ISOLATION),
        "read committed",
        SESSION,
        "The isolation of this transaction.",
    ),
    row(
        Family::PostgreSql,
        "transaction_read_only",
        Kind::Bool,
        "off",
        SESSION,
        "Whether this transaction is read-only.",
    ),
    postgres(
        "work_mem",
        Kind::Int { min: 64, max: MS_MAX, unit: Unit::Kb },
        "4096",
        "The memory of a sort or a hash table on an upstream.",
    ),
    postgres("xmloption", Kind::Enum(&["content", "document"]), "content", "How XML is read."),
];
