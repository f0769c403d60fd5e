#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use rand::SeedableRng;
use rand::rngs::StdRng;
use switchyard_catalog::{Catalog, Name, Secret, Verifiers};

use super::*;
use crate::error::ClientError;
use crate::session_state::Login;

/// A catalog and a session, and statements as text.
pub(crate) struct Bench {
    pub(crate) catalog: Catalog,
    pub(crate) session: SessionState,
    rng: StdRng,
}

pub(crate) fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

/// Stands in for real verifiers, and has their form: the password's letters fill the hash.
pub(crate) fn verifiers(password: &str, md5_of: Option<&Name>) -> Verifiers {
    let hash: String = password.bytes().map(|b| format!("{b:02x}")).collect();
    Verifiers {
        scram: Secret::new(format!("SCRAM-SHA-256$4096:c2FsdA==${}:{}", "A".repeat(44), "B".repeat(44))),
        sha512: Secret::new(format!("sha512:{hash:0>128}:00")),
        md5: md5_of.map(|user| Secret::new(format!("md5:{:0>32}", user.folded().len()))),
    }
}

impl Bench {
    pub(crate) fn new() -> Self {
        let catalog = Catalog::initial(name("shop"), name("dbadmin"), None).0;
        Self::on(catalog, "dbadmin", &[])
    }

    pub(crate) fn on(catalog: Catalog, user: &str, parameters: &[(&str, &str)]) -> Self {
        let mut rng = StdRng::seed_from_u64(7);
        let login = Login {
            user: name(user),
            session_id: "host-1:0x1".to_owned(),
            process_id: 1,
            client_address: None,
            time: jiff::Timestamp::UNIX_EPOCH,
            node: name("node1"),
        };
        let parameters: Vec<_> =
            parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let session = SessionState::open(login, &parameters, &catalog, &mut rng).unwrap().0;
        Self { catalog, session, rng }
    }

    /// The same catalog, another user.
    pub(crate) fn log_in(&self, user: &str, parameters: &[(&str, &str)]) -> Self {
        Self::on(self.catalog.clone(), user, parameters)
    }

    pub(crate) fn plan(&self, text: &str) -> Result<Plan, ClientError> {
        let parsed = switchyard_dialect::parse(text)?;
        let [one] = parsed.as_slice() else { panic!("one statement: {text}") };
        let context = PlanContext {
            catalog: &self.catalog,
            session: &self.session,
            make_verifiers: &verifiers,
            check_password: &|stored, password| *stored == verifiers(password, None),
        };
        Ok(plan(&one.statement, &context)?)
    }

    /// Plans and does one statement; its tag, or its answer, one line a row.
    pub(crate) fn try_run(&mut self, text: &str) -> Result<String, ClientError> {
        let plan = self.plan(text)?;
        let (tag, answer) = match plan {
            Plan::Changes(changes) => {
                self.catalog = self.catalog.apply(&changes.changes)?.catalog;
                (changes.tag, changes.answer)
            }
            Plan::Session(step) => {
                for change in step.changes {
                    self.session.apply(change, &self.catalog, &mut self.rng);
                }
                (step.tag, step.answer)
            }
            Plan::Rows(rows) | Plan::Order(_, rows) => (rows.tag, Some(rows)),
            // What only a session has: cursors, prepared statements, channels.
            Plan::SessionObject => ("", None),
            Plan::Transaction(step) => {
                let tag = match step {
                    Transaction::Begin { tag, modes } => {
                        self.session.begin();
                        for change in modes {
                            self.session.apply(change, &self.catalog, &mut self.rng);
                        }
                        tag
                    }
                    Transaction::Commit => {
                        self.session.commit();
                        "COMMIT"
                    }
                    Transaction::Rollback => {
                        self.session.rollback();
                        "ROLLBACK"
                    }
                    Transaction::Savepoint(name) => {
                        self.session.savepoint(name);
                        "SAVEPOINT"
                    }
                    Transaction::Release(name) => {
                        assert!(self.session.release(&name));
                        "RELEASE"
                    }
                    Transaction::RollbackTo(name) => {
                        assert!(self.session.rollback_to(&name));
                        "ROLLBACK"
                    }
                };
                (tag, None)
            }
            Plan::Query(_) => ("SELECT", None),
            Plan::Restore { .. } => ("RESTORE CATALOG", None),
        };
        self.session.refresh_workload(&self.catalog, &mut self.rng);
        Ok(match answer {
            None => tag.to_owned(),
            Some(rows) => rows
                .rows
                .iter()
                .map(|row| row.iter().map(|cell| cell.as_deref().unwrap_or("NULL")).collect::<Vec<_>>().join("|"))
                .collect::<Vec<_>>()
                .join("\n"),
        })
    }

    pub(crate) fn run(&mut self, text: &str) -> String {
        self.try_run(text).unwrap_or_else(|error| panic!("{text}: {error:?}"))
    }

    pub(crate) fn run_all(&mut self, texts: &str) {
        for parsed in switchyard_dialect::parse(texts).unwrap() {
            self.run(&parsed.text);
        }
    }

    pub(crate) fn refusal(&mut self, text: &str) -> ClientError {
        match self.try_run(text) {
            Ok(answer) => panic!("{text} was taken: {answer}"),
            Err(error) => error,
        }
    }
}

/// A fleet to work on.
pub(crate) const FLEET: &str = "
    CREATE SUBCLUSTER sc_web; CREATE SUBCLUSTER sc_etl;
    CREATE NODE node1 WITH '10.0.0.1' PORT 5433;
    CREATE NODE node2 WITH '10.0.0.2' PORT 5432 SUBCLUSTER sc_web;
    CREATE NODE node3 WITH '10.0.0.3' SUBCLUSTER sc_etl;
    CREATE NETWORK ADDRESS a1 ON node1 WITH '10.0.0.1';
    CREATE NETWORK ADDRESS a2 ON node2 WITH '10.0.0.2' PORT 6000 DISABLED;
    CREATE LOAD BALANCE GROUP g1 WITH ADDRESS a1, a2;
    CREATE LOAD BALANCE GROUP g2 WITH SUBCLUSTER sc_web FILTER '10.0.0.0/8' POLICY 'random';
    CREATE ROUTING RULE r1 ROUTE '192.168.0.0/16' TO g1;
    CREATE ROUTING RULE ROUTE WORKLOAD etl TO SUBCLUSTER sc_etl, sc_web PRIORITY 2;
    CREATE ROUTING RULE ROUTE WORKLOAD web TO SUBCLUSTER sc_web;
    CREATE FAULT GROUP f1; CREATE SUBNET s1 WITH '10.0.0.0';
    CREATE NETWORK INTERFACE i1 ON node1 WITH '10.1.0.1';
    CREATE USER mira IDENTIFIED BY 'secret'; CREATE USER otto;
    CREATE ROLE etl_ops; CREATE ROLE night; GRANT etl_ops TO mira WITH ADMIN OPTION; GRANT night TO etl_ops;
    CREATE AUTHENTICATION lan METHOD 'hash' HOST '10.0.0.0/8';
    CREATE USER MAPPING FOR mira SERVER node2 OPTIONS (user 'app', password 'pw');
    CALL hg_create_table_group('tg', 4);
";

pub(crate) fn fleet() -> Bench {
    let mut bench = Bench::new();
    bench.run_all(FLEET);
    bench
}

#[test]
fn tags_are_the_documented_ones() {
    let mut bench = fleet();
    for (text, tag) in [
        ("CREATE NETWORK ADDRESS a3 ON node3 WITH 'host.example' PORT 1 ENABLED", "CREATE NETWORK ADDRESS"),
        ("ALTER NETWORK ADDRESS a3 SET TO '10.0.0.33' PORT 7", "ALTER NETWORK ADDRESS"),
        ("ALTER NETWORK ADDRESS a3 DISABLE", "ALTER NETWORK ADDRESS"),
        ("DROP NETWORK ADDRESS IF EXISTS a3 CASCADE", "DROP NETWORK ADDRESS"),
        ("ALTER LOAD BALANCE GROUP g2 SET POLICY TO 'None'", "ALTER LOAD BALANCE GROUP"),
        ("ALTER ROUTING RULE FOR WORKLOAD etl SET PRIORITY TO 9", "ALTER ROUTING RULE"),
        ("DROP ROUTING RULE IF EXISTS FOR WORKLOAD nothing", "DROP ROUTING RULE"),
        ("GRANT USAGE ON ROUTING RULE etl TO etl_ops", "GRANT PRIVILEGE"),
        ("REVOKE USAGE ON WORKLOAD etl FROM etl_ops", "REVOKE PRIVILEGE"),
        ("GRANT night TO otto", "GRANT ROLE"),
        ("REVOKE night FROM otto", "REVOKE ROLE"),
        ("SET ROLE NONE", "SET"),
        ("SET SESSION WORKLOAD etl", "SET"),
        ("SET SESSION WORKLOAD DEFAULT", "SET"),
        ("ALTER USER otto MAXCONNECTIONS 10 ON NODE IDLESESSIONTIMEOUT '10 mins'", "ALTER USER"),
        ("ALTER DATABASE shop SET MaxClientSessions = 100", "ALTER DATABASE"),
        ("ALTER DATABASE DEFAULT EXPORT ON s1", "ALTER DATABASE"),
        ("ALTER NODE node1 EXPORT ON i1", "ALTER NODE"),
        ("ALTER SESSION SET KeepAliveIdleTime = 5", "ALTER SESSION"),
        ("ALTER FAULT GROUP f1 ADD NODE node1", "ALTER FAULT GROUP"),
        ("ALTER SUBCLUSTER sc_web SET DEFAULT", "ALTER SUBCLUSTER"),
        ("CREATE AUTHENTICATION v METHOD 'trust' LOCAL", "CREATE AUTHENTICATION"),
        ("GRANT AUTHENTICATION v TO mira", "GRANT AUTHENTICATION"),
        ("CALL HG_CREATE_TABLE_GROUP('tg2', 8)", "CALL"),
        ("SET hg_experimental_query_replica_fixed_plan_ha_mode = any", "SET"),
        ("RESET ALL", "RESET"),
        ("DISCARD ALL", "DISCARD ALL"),
        ("START TRANSACTION READ ONLY", "START TRANSACTION"),
        ("COMMIT", "COMMIT"),
    ] {
        assert_eq!(bench.run(text), tag, "{text}");
    }
}

#[test]
fn meta_functions_answer_what_is_documented() {
    let mut bench = fleet();
    for (text, answer) in [
        (
            "SELECT SET_LOAD_BALANCE_POLICY('ROUNDROBIN')",
            "Successfully changed the client initiator load balancing policy to: roundrobin",
        ),
        (
            "SELECT RESET_LOAD_BALANCE_POLICY()",
            "Successfully reset stateful client load balance policies: \"roundrobin\".",
        ),
        ("SELECT SET_CONFIG_PARAMETER('MaxClientSessions', 10)", "Parameter set successfully"),
        ("SELECT SET_CLIENT_LABEL('etl job')", "client_label set to etl job"),
        ("SELECT GET_CLIENT_LABEL()", "etl job"),
        ("SELECT CLOSE_SESSION('h-1:0x2')", "Session close command sent. Check v_monitor.sessions for progress."),
        (
            "SELECT CLOSE_USER_SESSIONS('MIRA')",
            "Close all sessions for user mira sent. Check v_monitor.sessions for progress.",
        ),
        ("SELECT START_DRAIN_SUBCLUSTER('sc_web')", "Targeted subcluster: 'sc_web'\nAction: START DRAIN"),
        ("SELECT CANCEL_DRAIN_SUBCLUSTER('sc_web')", "Targeted subcluster: 'sc_web'\nAction: CANCEL DRAIN"),
        ("SELECT HAS_ROLE('mira', 'night')", "t"),
        ("SELECT HAS_ROLE('otto', 'night')", "f"),
        ("SELECT HAS_ROLE('dbadmin')", "t"),
    ] {
        assert_eq!(bench.run(text), answer, "{text}");
    }
    assert!(
        matches!(bench.plan("SELECT close_session('x')"), Ok(Plan::Order(Order::CloseSession { only_user: None, .. }, rows)) if rows.columns[0].0 == "close_session")
    );
}

#[test]
fn refusals_have_their_codes_and_texts() {
    let mut bench = fleet();
    for (text, code, message) in [
        ("CREATE NETWORK ADDRESS a1 ON node1 WITH '10.0.0.9'", "42710", "Object \"a1\" already exists"),
        ("CREATE NETWORK ADDRESS x ON nodeX WITH '10.0.0.9'", "42704", "Node \"nodeX\" does not exist"),
        ("CREATE NETWORK ADDRESS x ON node1 WITH '300.1.1.1'", "22023", "Invalid IP address \"300.1.1.1\""),
        ("CREATE NETWORK ADDRESS x ON node1 WITH '127.0.0.1'", "22023", "Invalid IP address \"127.0.0.1\""),
        ("CREATE NETWORK ADDRESS x ON node1 WITH '::'", "22023", "Invalid IP address \"::\""),
        ("CREATE NETWORK ADDRESS x ON node1 WITH '10.0.0.9' PORT 0", "22023", "Invalid value 0 for port"),
        ("CREATE NETWORK ADDRESS x ON node1 WITH '10.0.0.9' PORT 65536", "22023", "Invalid value 65536 for port"),
        ("CREATE SUBNET x WITH '10.0.0.0/8'", "22023", "Invalid IP address \"10.0.0.0/8\""),
        ("CREATE ROUTING RULE x ROUTE '10.0.0.0/33' TO g1", "22023", "Invalid network address range \"10.0.0.0/33\""),
        ("CREATE ROUTING RULE x ROUTE '10.0.0.0/8' TO gx", "42704", "Load balance group \"gx\" does not exist"),
        (
            "ALTER LOAD BALANCE GROUP g1 ADD SUBCLUSTER sc_web",
            "42809",
            "Load balance group \"g1\" holds network addresses; subclusters cannot be added",
        ),
        ("ALTER LOAD BALANCE GROUP g1 SET POLICY TO 'best'", "22023", "Invalid value \"best\" for load balance policy"),
        ("DROP NETWORK ADDRESS a1", "2BV01", "DROP failed due to dependencies"),
        ("ALTER ROUTING RULE r1 SET PRIORITY TO 1", "42809", "SET PRIORITY does not apply to routing rule \"r1\""),
        ("ALTER DATABASE other SET MaxClientSessions = 1", "3D000", "Database \"other\" does not exist"),
        ("ALTER USER otto GRACEPERIOD '21 days'", "22023", "Invalid value \"21 days\" for GRACEPERIOD"),
        ("ALTER USER otto IDLESESSIONTIMEOUT '366 days'", "22023", "Invalid value \"366 days\" for IDLESESSIONTIMEOUT"),
        ("ALTER USER otto MEMORYCAP 'lots'", "22023", "Invalid value \"lots\" for MEMORYCAP"),
        ("ALTER USER otto MEMORYCAP '1G', MEMORYCAP '2G'", "42601", "conflicting or redundant options"),
        ("ALTER USER otto IDENTIFIED BY 'SCRAM-SHA-256$1'", "22023", "Invalid password verifier"),
        ("ALTER USER otto DEFAULT ROLE night", "42501", "Role \"night\" has not been granted to user \"otto\""),
        ("CREATE AUTHENTICATION x METHOD 'ldap' LOCAL", "0A000", "authentication method \"ldap\" is not supported"),
        ("CREATE AUTHENTICATION x METHOD 'magic' LOCAL", "22023", "Invalid value \"magic\" for authentication method"),
        ("ALTER NODE node1 SET UPSTREAM TO 'http://x'", "22023", "Invalid value \"********\" for upstream"),
        (
            "ALTER NODE node1 DRAIN WITHIN '5 min'",
            "0A000",
            "DRAIN WITHIN for a node that is no member is not supported",
        ),
        ("SET SESSION WORKLOAD nothing", "42704", "Workload \"nothing\" does not exist"),
        ("SET ROLE nobody", "42704", "Role \"nobody\" does not exist"),
        ("SELECT SET_LOAD_BALANCE_POLICY('x')", "22023", "Invalid value \"x\" for load balance policy"),
        ("SELECT DESCRIBE_LOAD_BALANCE_DECISION('x')", "22023", "Invalid IP address \"x\""),
        ("CALL hg_create_table_group('tg', 4)", "42710", "Object \"tg\" already exists"),
        ("CALL hg_set_table_group_property('x','replica_count','2')", "42704", "Table group \"x\" does not exist"),
        (
            "CALL hg_set_table_group_property('tg','replica_count','9')",
            "22023",
            "replica_count (9) exceeds the number of workers (3)",
        ),
        (
            "CALL hg_set_table_group_property('tg','replica_count','two')",
            "22P02",
            "invalid input syntax for type integer: \"two\"",
        ),
        ("CALL hg_set_table_group_property('tg','replica_count','0')", "22023", "Invalid value 0 for replica_count"),
        (
            "CALL hg_set_table_group_property('tg','shard_count','9')",
            "22023",
            "table group property \"shard_count\" cannot be changed",
        ),
        ("CALL hg_set_table_group_property('tg','x','9')", "22023", "unrecognized table group property \"x\""),
        ("CALL hg_create_table_group('big', 100)", "54000", "too many shards in this instance"),
        ("CALL hg_move_table_to_table_group('t','tg')", "42P01", "table \"t\" does not exist"),
        ("CALL set_table_property('t','color','red')", "22023", "unrecognized table property \"color\""),
        ("CALL set_table_property('t','shard_count','2')", "0A000", "table property \"shard_count\" is not supported"),
        ("SET nonsense = 1", "42704", "unrecognized configuration parameter \"nonsense\""),
        ("SHOW nonsense", "42704", "unrecognized configuration parameter \"nonsense\""),
    ] {
        let error = bench.refusal(text);
        assert_eq!((error.sqlstate.code(), error.message.as_str()), (code, message), "{text}");
    }
}

#[test]
fn dependents_are_told_as_vertica_does() {
    let mut bench = fleet();
    let error = bench.refusal("DROP LOAD BALANCE GROUP g1");
    assert_eq!(error.severity.as_str(), "ROLLBACK");
    assert_eq!(error.notices_before, ["The RoutingRule r1 depends on LoadBalanceGroup g1"]);
    assert_eq!(error.detail.as_deref(), Some("Cannot drop LoadBalanceGroup g1 because other objects depend on it"));
    assert_eq!(error.hint.as_deref(), Some("Use DROP ... CASCADE to drop the dependent objects too"));
}

#[test]
fn loopback_addresses_need_the_setting() {
    let mut bench = fleet();
    bench.run("CREATE NODE here WITH '127.0.0.1'");
    let create = "CREATE NETWORK ADDRESS l1 ON here WITH '127.0.0.2'";
    assert_eq!(bench.refusal(create).message, "Invalid IP address \"127.0.0.2\"");
    bench.run("ALTER DATABASE shop SET allow_loopback_addresses = on");
    assert_eq!(bench.run(create), "CREATE NETWORK ADDRESS");
}

#[test]
fn passwords_are_hashed_or_taken_as_verifiers() {
    let mut bench = fleet();
    let stored = |bench: &Bench| bench.catalog.users().named(&name("otto")).unwrap().verifiers.clone();
    bench.run("ALTER USER otto IDENTIFIED BY 'one'");
    assert_eq!(stored(&bench), Some(verifiers("one", None)));
    bench.run(&format!("ALTER USER otto IDENTIFIED BY '{}'", verifiers_text(&verifiers("two", None))));
    assert_eq!(stored(&bench), Some(verifiers("two", None)));
    bench.run("ALTER USER otto IDENTIFIED BY ''");
    assert_eq!(stored(&bench), None);
}

#[test]
fn md5_is_kept_only_where_it_is_allowed_and_wanted() {
    let mut bench = fleet();
    let kept = |bench: &Bench| {
        let user = bench.catalog.users().named(&name("otto")).unwrap();
        user.verifiers.as_ref().is_some_and(|verifiers| verifiers.md5.is_some())
    };
    bench.run("ALTER USER otto IDENTIFIED BY 'one', SECURITY_ALGORITHM 'MD5'");
    assert!(!kept(&bench), "it is not allowed");
    bench.run("ALTER DATABASE DEFAULT SET password_md5_verifiers = on");
    bench.run("ALTER USER otto IDENTIFIED BY 'one'");
    assert!(kept(&bench));
    bench.run("ALTER USER otto MAXCONNECTIONS 3 ON NODE");
    assert!(kept(&bench));
    let dumped =
        crate::dump::dump(&bench.catalog).into_iter().find(|line| line.starts_with("CREATE USER otto")).unwrap();
    bench.run("ALTER USER otto SECURITY_ALGORITHM 'SHA512'");
    assert!(!kept(&bench), "it is not wanted any more");
    bench.run("ALTER USER otto IDENTIFIED BY 'two'");
    assert!(!kept(&bench));
    bench.run("DROP USER otto CASCADE");
    bench.run(&dumped);
    assert!(kept(&bench), "{dumped}");
    bench.run("ALTER USER otto RENAME TO Otto");
    assert!(!kept(&bench), "the client hashes the name as it is spelled");
}

#[test]
fn users_change_their_own_password_if_they_know_it() {
    let mut bench = fleet().log_in("mira", &[]);
    assert_eq!(bench.refusal("ALTER USER mira IDENTIFIED BY 'new'").sqlstate.code(), "42501");
    assert_eq!(bench.refusal("ALTER USER mira IDENTIFIED BY 'new' REPLACE 'x'").sqlstate.code(), "28P01");
    assert_eq!(bench.run("ALTER USER mira IDENTIFIED BY 'new' REPLACE 'secret'"), "ALTER USER");
    assert_eq!(bench.refusal("ALTER USER otto IDENTIFIED BY 'new'").message, "Must be superuser to alter user");
    assert_eq!(bench.refusal("ALTER USER mira ACCOUNT UNLOCK").message, "Must be superuser to alter user");
}

#[test]
fn read_only_transactions_change_nothing() {
    let mut bench = fleet();
    bench.run("BEGIN READ ONLY");
    assert_eq!(bench.refusal("CREATE ROLE x").message, "cannot execute CREATE ROLE in a read-only transaction");
    let error = bench.refusal("SELECT set_load_balance_policy('none')");
    assert_eq!(error.message, "cannot execute set_load_balance_policy in a read-only transaction");
    assert_eq!(bench.refusal("RESTORE CATALOG TO VERSION 1").sqlstate.code(), "25006");
    assert_eq!(bench.run("SHOW transaction_read_only"), "on");
    bench.run("ROLLBACK");
    bench.run("CREATE ROLE x");
    bench.run("SET default_transaction_read_only = on");
    assert_eq!(bench.refusal("CREATE ROLE y").sqlstate.code(), "25006");
}
