//! What the reference says of each statement: its grammar, an example and what is worth knowing. Tests hold the grammar
//! and the parser together: what the one can make, the other reads, and each word of the parser is in it.

/// One statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Production {
    /// The heading.
    pub title: &'static str,
    /// As PostgreSQL's manual writes grammar: `[ ]` may be left out, one of `{ | }`, `[, ...]` repeats what is before it.
    pub grammar: &'static str,
    /// A whole statement.
    pub example: &'static str,
    /// Sentences; may be empty.
    pub notes: &'static str,
}

const fn row(title: &'static str, grammar: &'static str, example: &'static str, notes: &'static str) -> Production {
    Production { title, grammar, example, notes }
}

/// All statements, but for queries, functions and procedures.
pub const PRODUCTIONS: &[Production] = &[
    row(
        "CREATE NETWORK ADDRESS",
        "CREATE NETWORK ADDRESS name ON node WITH 'address' [ PORT number ] [ ENABLED | DISABLED ]",
        "CREATE NETWORK ADDRESS public_1 ON node01 WITH '198.51.100.12' PORT 5433",
        "The address is an IP address or a host name; the port is 5433 where none is given. Loopback addresses need the setting `allow_loopback_addresses`.",
    ),
    row(
        "ALTER NETWORK ADDRESS",
        "ALTER NETWORK ADDRESS name { RENAME TO name | SET TO 'address' [ PORT number ] | ENABLE | DISABLE }",
        "ALTER NETWORK ADDRESS public_1 DISABLE",
        "Without PORT the stored port stays. A disabled address stays in its groups and is passed over.",
    ),
    row(
        "DROP NETWORK ADDRESS",
        "DROP NETWORK ADDRESS [ IF EXISTS ] name [ CASCADE ]",
        "DROP NETWORK ADDRESS public_1 CASCADE",
        "CASCADE takes it out of its load balance groups.",
    ),
    row(
        "CREATE LOAD BALANCE GROUP",
        "CREATE LOAD BALANCE GROUP name WITH { ADDRESS address [, ...] | { FAULT GROUP | SUBCLUSTER } member [, ...] FILTER 'network' } [ POLICY 'policy' ]",
        "CREATE LOAD BALANCE GROUP web WITH SUBCLUSTER front FILTER '10.40.0.0/16' POLICY 'RANDOM'",
        "The policy is ROUNDROBIN (the default), RANDOM or NONE. The filter is for the addresses of the nodes, not of the clients.",
    ),
    row(
        "ALTER LOAD BALANCE GROUP",
        "ALTER LOAD BALANCE GROUP name { RENAME TO name | SET FILTER TO 'network' | SET POLICY TO 'policy' | { ADD | DROP } { ADDRESS | FAULT GROUP | SUBCLUSTER } member [, ...] }",
        "ALTER LOAD BALANCE GROUP web ADD SUBCLUSTER back",
        "A group holds one kind, and one address of a node; one that has become empty takes any kind again.",
    ),
    row(
        "DROP LOAD BALANCE GROUP",
        "DROP LOAD BALANCE GROUP [ IF EXISTS ] name [ CASCADE ]",
        "DROP LOAD BALANCE GROUP web CASCADE",
        "CASCADE drops the routing rules to it too.",
    ),
    row(
        "CREATE ROUTING RULE",
        "CREATE ROUTING RULE name ROUTE 'network' TO group",
        "CREATE ROUTING RULE campus ROUTE '10.8.0.0/16' TO web",
        "A network without a length is a single address. Bits behind the length are kept as typed and count for nothing.",
    ),
    row(
        "CREATE ROUTING RULE of a workload",
        "CREATE ROUTING RULE [ name ] ROUTE WORKLOAD workload TO SUBCLUSTER subcluster [, ...] [ PRIORITY number ]",
        "CREATE ROUTING RULE ROUTE WORKLOAD nightly TO SUBCLUSTER etl PRIORITY 4",
        "A workload exists by its rule and has one. A rule without a name has the workload's. The greater priority wins; it is 0 where none is given.",
    ),
    row(
        "ALTER ROUTING RULE",
        "ALTER ROUTING RULE { name | FOR WORKLOAD workload } { RENAME TO name | SET ROUTE TO 'network' | SET GROUP TO group | SET WORKLOAD TO workload | SET SUBCLUSTER TO subcluster [, ...] | SET PRIORITY TO number | { ADD | REMOVE } SUBCLUSTER subcluster [, ...] }",
        "ALTER ROUTING RULE FOR WORKLOAD nightly SET PRIORITY TO 9",
        "ROUTE and GROUP are of rules by network, the others of rules by workload.",
    ),
    row(
        "DROP ROUTING RULE",
        "DROP ROUTING RULE [ IF EXISTS ] { name | FOR WORKLOAD workload }",
        "DROP ROUTING RULE IF EXISTS FOR WORKLOAD nightly",
        "The grants on its workload go with it.",
    ),
    row(
        "GRANT USAGE ON WORKLOAD",
        "GRANT USAGE ON { WORKLOAD | ROUTING RULE } workload TO grantee [, ...]",
        "GRANT USAGE ON WORKLOAD nightly TO etl_ops",
        "A grantee is a user, a role or PUBLIC.",
    ),
    row(
        "REVOKE USAGE ON WORKLOAD",
        "REVOKE USAGE ON { WORKLOAD | ROUTING RULE } workload FROM grantee [, ...]",
        "REVOKE USAGE ON WORKLOAD nightly FROM etl_ops",
        "",
    ),
    row(
        "CREATE USER",
        "CREATE USER name [ { ACCOUNT { LOCK | UNLOCK } | PASSWORD EXPIRE | [ ENCRYPTED ] PASSWORD 'password' | IDENTIFIED BY 'password' | GRACEPERIOD { NONE | 'interval' } | IDLESESSIONTIMEOUT { NONE | 'interval' } | RUNTIMECAP { NONE | 'interval' } | MAXCONNECTIONS { NONE | number ON { DATABASE | NODE } } | MEMORYCAP { NONE | 'size' } | TEMPSPACECAP { NONE | 'size' } | PROFILE { DEFAULT | profile } | RESOURCE POOL pool [ FOR SUBCLUSTER subcluster ] | SEARCH_PATH { DEFAULT | schema [, ...] } | SECURITY_ALGORITHM 'algorithm' } ]",
        "CREATE USER mira IDENTIFIED BY 'a password', MAXCONNECTIONS 5 ON NODE",
        "Several parameters stand with commas or blanks between them. An empty password is none. A password may be given as a verifier (`SCRAM-SHA-256$...`). Profiles and resource pools are kept and have no effect.",
    ),
    row(
        "ALTER USER",
        "ALTER USER name { ACCOUNT { LOCK | UNLOCK } | PASSWORD EXPIRE | IDENTIFIED BY 'password' [ REPLACE 'password' ] | MAXCONNECTIONS { NONE | number ON { DATABASE | NODE } } | DEFAULT ROLE { NONE | role [, ...] | ALL [ EXCEPT role [, ...] ] } | RENAME TO name | SET [ PARAMETER ] parameter = value [, ...] | CLEAR [ PARAMETER ] parameter [, ...] | RESET parameter }",
        "ALTER USER mira ACCOUNT LOCK",
        "It takes every parameter of CREATE USER. Users may change their own password (with REPLACE and the old one), search path and settings, and lower their own IDLESESSIONTIMEOUT. ACCOUNT LOCK refuses new logins; sessions that are open go on until `close_user_sessions('mira')` ends them.",
    ),
    row(
        "DROP USER",
        "DROP USER [ IF EXISTS ] name [, ...] [ CASCADE ]",
        "DROP USER mira CASCADE",
        "CASCADE drops the user's mappings and revokes what the user granted. A session that is open is refused its next statement.",
    ),
    row(
        "CREATE ROLE",
        "CREATE ROLE name",
        "CREATE ROLE etl_ops",
        "Users and roles share their names; `none`, `all`, `default` and `public` are nobody's.",
    ),
    row("ALTER ROLE", "ALTER ROLE name RENAME TO name", "ALTER ROLE etl_ops RENAME TO loaders", ""),
    row(
        "ALTER ROLE of a user",
        "ALTER ROLE name { SET [ PARAMETER ] parameter = value [, ...] | CLEAR [ PARAMETER ] parameter [, ...] | RESET parameter }",
        "ALTER ROLE mira SET search_path = v_monitor",
        "A user is a role to PostgreSQL's clients: this is ALTER USER.",
    ),
    row(
        "DROP ROLE",
        "DROP ROLE [ IF EXISTS ] name [, ...] [ CASCADE ]",
        "DROP ROLE etl_ops CASCADE",
        "CASCADE revokes it from whoever has it.",
    ),
    row(
        "GRANT role",
        "GRANT role [, ...] TO grantee [, ...] [ WITH ADMIN OPTION ]",
        "GRANT etl_ops TO mira WITH ADMIN OPTION",
        "",
    ),
    row(
        "REVOKE role",
        "REVOKE [ ADMIN OPTION FOR ] role [, ...] FROM grantee [, ...] [ CASCADE ]",
        "REVOKE etl_ops FROM mira",
        "CASCADE revokes too what was granted on by virtue of it.",
    ),
    row(
        "CREATE AUTHENTICATION",
        "CREATE AUTHENTICATION name METHOD 'method' { LOCAL | HOST [ TLS | NO TLS ] 'network' } [ FALLTHROUGH ]",
        "CREATE AUTHENTICATION lan METHOD 'hash' HOST TLS '10.0.0.0/8'",
        "The methods are hash, trust, reject and tls. It counts once it is granted.",
    ),
    row(
        "ALTER AUTHENTICATION",
        "ALTER AUTHENTICATION name { RENAME TO name | ENABLE | DISABLE | METHOD 'method' | LOCAL | HOST [ TLS | NO TLS ] 'network' | PRIORITY number | [ NO ] FALLTHROUGH | SET [ PARAMETER ] parameter = value [, ...] | CLEAR [ PARAMETER ] parameter [, ...] }",
        "ALTER AUTHENTICATION lan PRIORITY 10",
        "A WARNING says when the superuser, or whoever gave the statement, could not log in again.",
    ),
    row(
        "DROP AUTHENTICATION",
        "DROP AUTHENTICATION [ IF EXISTS ] name [, ...] [ CASCADE ]",
        "DROP AUTHENTICATION lan CASCADE",
        "CASCADE revokes it from whoever holds it.",
    ),
    row(
        "GRANT AUTHENTICATION",
        "GRANT AUTHENTICATION name TO grantee [, ...]",
        "GRANT AUTHENTICATION lan TO PUBLIC",
        "",
    ),
    row(
        "REVOKE AUTHENTICATION",
        "REVOKE AUTHENTICATION name FROM grantee [, ...]",
        "REVOKE AUTHENTICATION lan FROM PUBLIC",
        "",
    ),
    row(
        "CREATE USER MAPPING",
        "CREATE USER MAPPING FOR { name | PUBLIC } [ SERVER node ] OPTIONS ( { USER 'login' | PASSWORD 'password' | USER 'login' , PASSWORD 'password' } )",
        "CREATE USER MAPPING FOR mira SERVER pg1 OPTIONS (user 'app', password 'a password')",
        "The login that a user has on a node, or on every node.",
    ),
    row(
        "ALTER USER MAPPING",
        "ALTER USER MAPPING FOR { name | PUBLIC } [ SERVER node ] OPTIONS ( { [ SET | ADD ] USER 'login' | [ SET | ADD ] PASSWORD 'password' | DROP PASSWORD } )",
        "ALTER USER MAPPING FOR mira SERVER pg1 OPTIONS (SET password 'another')",
        "",
    ),
    row(
        "DROP USER MAPPING",
        "DROP USER MAPPING [ IF EXISTS ] FOR { name | PUBLIC } [ SERVER node ]",
        "DROP USER MAPPING FOR mira SERVER pg1",
        "",
    ),
    row(
        "ALTER DATABASE",
        "ALTER DATABASE { name | DEFAULT } { EXPORT ON { subnet | DEFAULT } | DROP ALL FAULT GROUP | RESET { STANDBY | ALL | parameter } | SET [ PARAMETER ] parameter = value [, ...] | CLEAR [ PARAMETER ] parameter [, ...] }",
        "ALTER DATABASE DEFAULT SET MaxClientSessions = 100",
        "DEFAULT as the name is the database there is.",
    ),
    row(
        "CREATE NODE",
        "CREATE NODE name [ WITH ] 'host' [ PORT number ] [ SUBCLUSTER subcluster ]",
        "CREATE NODE pg4 WITH '10.0.0.14' PORT 5432 SUBCLUSTER reporting",
        "Ours: the vendor makes nodes outside SQL.",
    ),
    row(
        "ALTER NODE",
        "ALTER NODE name { EXPORT ON { interface | DEFAULT } | [ IS ] { PERMANENT | EPHEMERAL | STANDBY | EXECUTE } | REPLACE [ WITH node ] | RESET | RENAME TO name | SET ADDRESS TO 'host' [ PORT number ] | SET UPSTREAM TO { NONE | 'url' } | DRAIN [ WITHIN 'interval' [ THEN CLOSE ] ] | CANCEL DRAIN | SET [ PARAMETER ] parameter = value [, ...] | CLEAR [ PARAMETER ] parameter [, ...] }",
        "ALTER NODE pg4 SET ADDRESS TO '10.0.0.24' PORT 5432",
        "The vendor has STANDBY, EXECUTE, REPLACE and RESET in its Enterprise mode, which has no subclusters, and subclusters in the other; here both are there, as fault groups and subclusters are. A member whose node is renamed goes by the new name at once, and is to be started with it.",
    ),
    row(
        "DROP NODE",
        "DROP NODE [ IF EXISTS ] name [ CASCADE ]",
        "DROP NODE pg4 CASCADE",
        "CASCADE drops its addresses, interfaces and user mappings too, and places shard replicas elsewhere. A member that runs is not dropped by itself.",
    ),
    row(
        "CREATE SUBCLUSTER",
        "CREATE SUBCLUSTER name [ PRIMARY | SECONDARY ]",
        "CREATE SUBCLUSTER reporting",
        "It is secondary where nothing is said.",
    ),
    row(
        "ALTER SUBCLUSTER",
        "ALTER SUBCLUSTER name { RENAME TO name | SET DEFAULT | { ADD | DROP } NODE node [, ...] }",
        "ALTER SUBCLUSTER reporting ADD NODE pg4",
        "A node that is dropped from a subcluster goes to the default one.",
    ),
    row(
        "DROP SUBCLUSTER",
        "DROP SUBCLUSTER [ IF EXISTS ] name [ CASCADE ]",
        "DROP SUBCLUSTER reporting CASCADE",
        "CASCADE moves its nodes to the default subcluster, and takes it out of groups and rules.",
    ),
    row("CREATE FAULT GROUP", "CREATE FAULT GROUP name", "CREATE FAULT GROUP rack1", ""),
    row(
        "ALTER FAULT GROUP",
        "ALTER FAULT GROUP name { { ADD | DROP } { NODE node | FAULT GROUP group } | RENAME TO name }",
        "ALTER FAULT GROUP rack1 ADD NODE pg4",
        "",
    ),
    row(
        "DROP FAULT GROUP",
        "DROP FAULT GROUP [ IF EXISTS ] name",
        "DROP FAULT GROUP rack1",
        "Its children go with it, its nodes to the parent.",
    ),
    row(
        "CREATE SUBNET",
        "CREATE SUBNET name WITH 'prefix'",
        "CREATE SUBNET private WITH '10.10.10.0'",
        "The prefix is without its length.",
    ),
    row("ALTER SUBNET", "ALTER SUBNET name RENAME TO name", "ALTER SUBNET private RENAME TO internal", ""),
    row(
        "DROP SUBNET",
        "DROP SUBNET [ IF EXISTS ] name [, ...] [ CASCADE ]",
        "DROP SUBNET private CASCADE",
        "CASCADE takes it out of the database's definition.",
    ),
    row(
        "CREATE NETWORK INTERFACE",
        "CREATE NETWORK INTERFACE name ON node [ WITH ] 'address' [ PORT number ] [ ENABLED | DISABLED ]",
        "CREATE NETWORK INTERFACE export_1 ON node01 WITH '10.10.10.1'",
        "Interfaces and network addresses share their names.",
    ),
    row(
        "ALTER NETWORK INTERFACE",
        "ALTER NETWORK INTERFACE name { RENAME TO name | SET TO 'address' [ PORT number ] | ENABLE | DISABLE }",
        "ALTER NETWORK INTERFACE export_1 RENAME TO export_2",
        "",
    ),
    row(
        "DROP NETWORK INTERFACE",
        "DROP NETWORK INTERFACE [ IF EXISTS ] name [ CASCADE ]",
        "DROP NETWORK INTERFACE export_1",
        "CASCADE takes it out of its node's definition.",
    ),
    row(
        "SET SESSION WORKLOAD",
        "SET SESSION WORKLOAD [ TO ] { workload | DEFAULT | NONE }",
        "SET SESSION WORKLOAD nightly",
        "DEFAULT goes back to the choice by priority, NONE is no workload until then.",
    ),
    row(
        "SET ROLE",
        "SET ROLE { role [, ...] | NONE | ALL [ EXCEPT role [, ...] ] | DEFAULT }",
        "SET ROLE DEFAULT",
        "Roles that are named are enabled besides those that are.",
    ),
    row(
        "SET",
        "SET { [ SESSION | LOCAL ] parameter { TO | = } { value [, ...] | DEFAULT } | TIME ZONE { value | LOCAL | DEFAULT } | NAMES value | SCHEMA 'schema' | [ SESSION | LOCAL ] SESSION AUTHORIZATION { user | DEFAULT } | SESSION { IDLESESSIONTIMEOUT | GRACEPERIOD | RUNTIMECAP } 'interval' }",
        "SET hg_experimental_query_replica_mode = follower_only",
        "The parameters are in [settings.md](settings.md).",
    ),
    row(
        "ALTER SESSION",
        "ALTER SESSION { SET [ PARAMETER ] parameter = value [, ...] | CLEAR [ PARAMETER ] parameter [, ...] }",
        "ALTER SESSION SET runtimecap = '10 mins'",
        "",
    ),
    row(
        "RESET",
        "RESET { parameter | ALL | TIME ZONE | SESSION AUTHORIZATION | TRANSACTION ISOLATION LEVEL }",
        "RESET ALL",
        "",
    ),
    row("DISCARD", "DISCARD { ALL | PLANS | SEQUENCES | TEMP | TEMPORARY }", "DISCARD ALL", ""),
    row(
        "SHOW",
        "SHOW { parameter | ALL | WORKLOAD | AVAILABLE WORKLOADS | AVAILABLE ROLES | AVAILABLE_ROLES | ENABLED ROLES | ENABLED_ROLES | TIME ZONE | TRANSACTION ISOLATION LEVEL | SESSION AUTHORIZATION | SESSION { ALL | parameter [, ...] } | CURRENT { ALL | parameter [, ...] } | DATABASE { name | DEFAULT } { ALL | parameter [, ...] } | NODE node { ALL | parameter [, ...] } }",
        "SHOW AVAILABLE WORKLOADS",
        "Values that only the superuser can set are masked for others.",
    ),
    row("SHOW USER", "SHOW USER name { ALL | parameter [, ...] }", "SHOW USER mira ALL", ""),
    row(
        "SET TRANSACTION",
        "SET { TRANSACTION | SESSION CHARACTERISTICS AS TRANSACTION } { ISOLATION LEVEL { SERIALIZABLE | REPEATABLE READ | READ COMMITTED | READ UNCOMMITTED } | READ ONLY | READ WRITE | [ NOT ] DEFERRABLE } [, ...]",
        "SET TRANSACTION READ ONLY",
        "",
    ),
    row(
        "BEGIN",
        "{ BEGIN [ WORK | TRANSACTION ] | START TRANSACTION } [ READ ONLY | READ WRITE | ISOLATION LEVEL SERIALIZABLE ]",
        "BEGIN",
        "The changes of a transaction are one version of the catalog, or none.",
    ),
    row("COMMIT", "{ COMMIT | END } [ WORK | TRANSACTION ] [ AND NO CHAIN ]", "COMMIT", ""),
    row("ROLLBACK", "{ ROLLBACK | ABORT } [ WORK | TRANSACTION ] [ AND NO CHAIN ]", "ROLLBACK", ""),
    row("SAVEPOINT", "SAVEPOINT name", "SAVEPOINT before", ""),
    row("RELEASE SAVEPOINT", "RELEASE [ SAVEPOINT ] name", "RELEASE SAVEPOINT before", ""),
    row(
        "ROLLBACK TO SAVEPOINT",
        "ROLLBACK [ WORK | TRANSACTION ] TO [ SAVEPOINT ] name",
        "ROLLBACK TO SAVEPOINT before",
        "",
    ),
    row(
        "DECLARE CURSOR",
        "DECLARE cursor [ BINARY | INSENSITIVE | ASENSITIVE | SCROLL | NO SCROLL ] CURSOR [ { WITH | WITHOUT } HOLD ] FOR SELECT 1",
        "DECLARE c CURSOR WITH HOLD FOR SELECT node_name FROM nodes",
        "The query is any. All cursors see the rows as they were at DECLARE.",
    ),
    row(
        "FETCH, MOVE",
        "{ FETCH | MOVE } [ number | NEXT | PRIOR | FIRST | LAST | ABSOLUTE number | RELATIVE number | ALL | FORWARD [ number | ALL ] | BACKWARD [ number | ALL ] ] [ FROM | IN ] cursor",
        "FETCH 100 FROM c",
        "",
    ),
    row("CLOSE", "CLOSE { cursor | ALL }", "CLOSE c", ""),
    row(
        "PREPARE",
        "PREPARE statement [ ( type [, ...] ) ] AS SELECT 1",
        "PREPARE by_state (text) AS SELECT node_name FROM nodes WHERE node_state = $1",
        "The statement is any but those about preparing, cursors and transactions.",
    ),
    row(
        "EXECUTE",
        "EXECUTE statement [ ( 'value' [, ...] ) ]",
        "EXECUTE by_state ('UP')",
        "What is prepared needs its own rights.",
    ),
    row("DEALLOCATE", "DEALLOCATE [ PREPARE ] { statement | ALL }", "DEALLOCATE by_state", ""),
    row("LISTEN", "LISTEN channel", "LISTEN changes", ""),
    row("UNLISTEN", "UNLISTEN { channel | * }", "UNLISTEN *", ""),
    row("NOTIFY", "NOTIFY channel [ , 'payload' ]", "NOTIFY changes, 'a payload'", ""),
    row(
        "RESTORE CATALOG",
        "RESTORE CATALOG TO VERSION number",
        "RESTORE CATALOG TO VERSION 12",
        "A new version with the content of an old one, passwords included, as a NOTICE then says. `switchyard.catalog_history` lists the versions; `history_versions_max` and `history_days_max` say how many are kept.",
    ),
];

#[cfg(test)]
mod tests;
