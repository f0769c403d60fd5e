#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;
use switchyard_catalog::{Catalog, Change, Name, NodeKind};

use super::guard::needs;
use super::*;
use crate::snapshot::{Live, Snapshot};
use crate::{SessionState, tables};

fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

/// A catalog with one node, one user without rights, and a session of the superuser or of that user.
fn snapshot(user: &str) -> Arc<Snapshot> {
    let (catalog, _) = Catalog::initial(name("switchyard"), name("dbadmin"), None);
    let node = Change::CreateNode {
        name: name("node1"),
        kind: NodeKind::Remote { upstream: None },
        host: "10.0.0.1".to_owned(),
        port: 5432,
        subcluster: None,
    };
    let mira = Change::CreateUser { name: name("mira"), superuser: false, changes: Vec::new() };
    let catalog = catalog.apply(&[node, mira]).unwrap().catalog;
    let user = catalog.users().named(&name(user)).unwrap().id;
    let node = catalog.nodes().iter().next().map(|node| node.id);
    Arc::new(Snapshot {
        session: Arc::new(SessionState::of_user(user, name("node1"))),
        live: Arc::new(Live { node, ..Live::default() }),
        catalog: Arc::new(catalog),
        history: Arc::default(),
        query_log: Arc::default(),
        versions: Arc::new(BTreeMap::new()),
        now_us: 0,
    })
}

const LIMITS: QueryLimits = QueryLimits {
    memory_bytes_max: 64 << 20,
    time_ms_max: 60_000,
    time_setting: TimeSetting::QueryTimeMax,
    depth_max: 40,
};

fn parsed(sql: &str) -> SqlStatement {
    Parser::parse_sql(&PostgreSqlDialect {}, sql).unwrap().pop().unwrap().into()
}

async fn ask(user: &str, limits: QueryLimits, sql: &str) -> Result<(Vec<OutputColumn>, Vec<Vec<Scalar>>), QueryError> {
    let queries = Queries::new(snapshot(user), limits, Arc::default())?;
    let mut result = queries.run(&parsed(sql), &[]).await?;
    let mut rows = Vec::new();
    while let Some(row) = result.rows.next().await {
        rows.push(row?);
    }
    Ok((result.columns.to_vec(), rows))
}

async fn refusal(user: &str, limits: QueryLimits, sql: &str) -> QueryError {
    match ask(user, limits, sql).await {
        Ok(answer) => panic!("{sql} was answered: {answer:?}"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn every_table_answers_all_its_columns_and_each_alone() {
    let queries = Queries::new(snapshot("dbadmin"), LIMITS, Arc::default()).unwrap();
    for table in tables::all() {
        let sql = format!("SELECT * FROM {}.{}", table.schema, table.name);
        let result = queries.run(&parsed(&sql), &[]).await.unwrap();
        let names: Vec<&str> = result.columns.iter().map(|column| column.name.as_str()).collect();
        let declared: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
        assert_eq!(names, declared, "{sql}");
        let rows: Vec<_> = result.rows.collect().await;
        let rows: Vec<_> = rows.into_iter().map(|row| row.unwrap()).collect();
        // What only reads the table does not go through DataFusion.
        let counted = queries.run(&parsed(&format!("{sql} LIMIT 1000000")), &[]).await.unwrap();
        let counted: Vec<_> = counted.rows.map(|row| row.unwrap()).collect().await;
        assert_eq!(rows, counted, "{sql}");
        for column in declared {
            // `information_schema` is in no search path.
            let bare = table.schema != "information_schema";
            let name = if bare { table.name.to_owned() } else { format!("{}.{}", table.schema, table.name) };
            let sql = format!("SELECT \"{column}\" FROM {name}");
            let result = queries.run(&parsed(&sql), &[]).await.unwrap();
            let alone: Vec<_> = result.rows.collect().await;
            assert_eq!(alone.len(), rows.len(), "{sql}");
        }
    }
}

#[tokio::test]
async fn names_are_found_in_any_case_qualified_or_not() {
    for sql in [
        "SELECT node_name FROM nodes",
        "SELECT NODE_NAME FROM V_CATALOG.Nodes",
        "SELECT n.node_name FROM switchyard.v_catalog.nodes n",
        "SELECT nodes.node_name FROM \"NODES\"",
    ] {
        let (columns, rows) = ask("dbadmin", LIMITS, sql).await.unwrap();
        assert_eq!(columns.first().unwrap().name, "node_name");
        assert_eq!(rows, [[Scalar::Text("node1".to_owned())]], "{sql}");
    }
}

#[tokio::test]
async fn columns_are_named_as_postgresql_names_them() {
    for (sql, expected) in [
        (
            "SELECT count(*), count(*), 1, 'x', node_id AS \"Id\" FROM nodes GROUP BY node_id",
            vec!["count", "count", "?column?", "?column?", "Id"],
        ),
        ("SELECT upper(node_name), max(node_id) FROM nodes GROUP BY 1", vec!["upper", "max"]),
        ("SELECT node_id::text, CAST(1 AS bigint), current_user FROM nodes", vec!["node_id", "int8", "current_user"]),
        ("SELECT CASE WHEN true THEN 1 END", vec!["case"]),
    ] {
        let result = ask("dbadmin", LIMITS, sql).await;
        let names: Vec<String> = result.unwrap().0.into_iter().map(|column| column.name).collect();
        assert_eq!(names, expected, "{sql}");
    }
}

#[tokio::test]
async fn nothing_but_queries_is_let_through() {
    for sql in [
        "CREATE TABLE t (a int)",
        "CREATE VIEW v AS SELECT 1",
        "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '/etc/passwd'",
        "INSERT INTO nodes (node_name) VALUES ('x')",
        "UPDATE nodes SET node_name = 'x'",
        "DELETE FROM nodes",
        "DROP TABLE nodes",
        "COPY nodes TO '/tmp/nodes.csv'",
        "SELECT * INTO t FROM nodes",
        "WITH x AS (DELETE FROM nodes RETURNING *) SELECT * FROM x",
        "SELECT * FROM nodes FOR UPDATE",
        "EXPLAIN DELETE FROM nodes",
        "EXPLAIN SELECT * FROM nodes",
        "PREPARE p AS SELECT 1",
        "TRUNCATE nodes",
    ] {
        let Ok(mut statements) = Parser::parse_sql(&PostgreSqlDialect {}, sql) else { continue };
        let queries = Queries::new(snapshot("dbadmin"), LIMITS, Arc::default()).unwrap();
        let error = queries.run(&statements.pop().unwrap().into(), &[]).await.unwrap_err();
        assert_eq!(error.sqlstate, SqlState::FeatureNotSupported, "{sql}: {error}");
    }
}

#[tokio::test]
async fn no_file_can_be_named_as_a_table() {
    for sql in ["SELECT * FROM '/etc/passwd'", "SELECT * FROM \"/etc/passwd\"", "SELECT * FROM \"file:///etc/passwd\""]
    {
        let Ok(mut statements) = Parser::parse_sql(&PostgreSqlDialect {}, sql) else { continue };
        let queries = Queries::new(snapshot("dbadmin"), LIMITS, Arc::default()).unwrap();
        let error = queries.run(&statements.pop().unwrap().into(), &[]).await.unwrap_err();
        assert_eq!(error.sqlstate, SqlState::UndefinedTable, "{sql}: {error}");
    }
}

#[tokio::test]
async fn mistakes_have_their_sqlstate_and_place() {
    for (sql, sqlstate, message, location) in [
        ("SELECT 1 FROM nodez", SqlState::UndefinedTable, "relation \"nodez\" does not exist", Some((1, 15))),
        ("SELECT\n  nam FROM roles", SqlState::UndefinedColumn, "column \"nam\" does not exist", Some((2, 3))),
        ("SELECT 1 / 0", SqlState::DivisionByZero, "division by zero", None),
        ("SELECT nosuch(1)", SqlState::UndefinedFunction, "function nosuch does not exist", Some((1, 8))),
    ] {
        let error = refusal("dbadmin", LIMITS, sql).await;
        assert_eq!((error.sqlstate, error.message.as_str()), (sqlstate, message), "{sql}");
        if location.is_some() {
            assert_eq!(error.location.is_some(), location.is_some(), "{sql}");
        }
    }
    let error = refusal("dbadmin", LIMITS, "SELECT\n  nam FROM roles").await;
    assert_eq!(error.told("SELECT\n  nam FROM roles").position, Some(10));
}

#[tokio::test]
async fn a_query_ends_at_its_limits() {
    let time = QueryLimits { time_ms_max: 50, ..LIMITS };
    let sql = "SELECT sum(a.a * b.b) FROM generate_series(1, 100000) a CROSS JOIN generate_series(1, 100000) b";
    assert_eq!(refusal("dbadmin", time, sql).await.sqlstate, SqlState::QueryCanceled);
    let memory = QueryLimits { memory_bytes_max: 100_000, ..LIMITS };
    let sql = "SELECT g FROM generate_series(1, 1000000) g ORDER BY g % 7, g DESC";
    assert_eq!(refusal("dbadmin", memory, sql).await.sqlstate, SqlState::OutOfMemory);
}

#[tokio::test]
async fn others_than_the_superuser_see_what_is_theirs() {
    for sql in [
        "SELECT * FROM catalog_history",
        "SELECT * FROM client_auth",
        "SELECT * FROM catalog_at(1)",
        "SELECT * FROM tls_certificates",
        "SELECT * FROM switchyard.test_authentication('10.0.0.1', 'mira', false)",
    ] {
        assert_eq!(refusal("mira", LIMITS, sql).await.sqlstate, SqlState::InsufficientPrivilege, "{sql}");
    }
    let (_, rows) = ask("mira", LIMITS, "SELECT user_name FROM users").await.unwrap();
    assert_eq!(rows, [[Scalar::Text("mira".to_owned())]]);
}

#[test]
fn what_must_be_fetched_is_found_wherever_it_stands() {
    let sql = "SELECT * FROM nodes WHERE EXISTS (SELECT 1 FROM switchyard.catalog_history) UNION ALL \
               SELECT * FROM switchyard.catalog_at(7), catalog_at(8)";
    assert_eq!(needs(&parsed(sql)), Needs { history: true, versions: [7, 8].into(), ..Needs::default() });
    assert_eq!(needs(&parsed("SELECT 1")), Needs::default());
}

#[tokio::test]
async fn parameters_get_their_types_from_what_they_are_compared_with() {
    let queries = Queries::new(snapshot("dbadmin"), LIMITS, Arc::default()).unwrap();
    let statement = parsed("SELECT node_name FROM nodes WHERE node_id > $1 AND node_name = $2");
    let described = queries.describe(&statement, &[]).await.unwrap();
    assert_eq!(described.parameters, [PgType::Int8, PgType::Text]);
    let values = [
        Parameter { value: Scalar::Int(1), kind: PgType::Int8 },
        Parameter { value: Scalar::Text("node1".to_owned()), kind: PgType::Text },
    ];
    let rows: Vec<_> = queries.run(&statement, &values).await.unwrap().rows.collect().await;
    assert_eq!(rows, [Ok(vec![Scalar::Text("node1".to_owned())])]);
}

#[tokio::test]
async fn what_is_computed_of_parameters_has_the_type_that_was_described() {
    let queries = Queries::new(snapshot("dbadmin"), LIMITS, Arc::default()).unwrap();
    let statement = parsed("SELECT $1 + 1, $1");
    for kind in [PgType::Int2, PgType::Int4, PgType::Int8] {
        let described = queries.describe(&statement, &[Some(kind)]).await.unwrap();
        let values = [Parameter { value: Scalar::Int(41), kind }];
        assert_eq!(queries.run(&statement, &values).await.unwrap().columns, described.columns);
    }
}

#[tokio::test]
async fn with_queries_that_double_are_refused_before_they_are_planned() {
    let chain = |links: usize| {
        let links = (1..links).map(|n| format!(", a{n} AS (SELECT x.c FROM a{} x CROSS JOIN a{} y)", n - 1, n - 1));
        format!("WITH a0 AS (SELECT 1 AS c){} SELECT count(*) FROM a0", links.collect::<String>())
    };
    assert_eq!(refusal("dbadmin", LIMITS, &chain(25)).await.sqlstate, SqlState::StatementTooComplex);
    // Each refers once to the one before: only the depth is much.
    let line = |links: usize| {
        let links = (1..links).map(|n| format!(", a{n} AS (SELECT c FROM a{})", n - 1)).collect::<String>();
        format!("WITH a0 AS (SELECT 1 AS c){links} SELECT count(*) FROM a{}", links.matches(", a").count())
    };
    assert_eq!(refusal("dbadmin", LIMITS, &line(500)).await.sqlstate, SqlState::StatementTooComplex);
    assert_eq!(refusal("dbadmin", LIMITS, &line(65)).await.sqlstate, SqlState::StatementTooComplex);
    ask("dbadmin", LIMITS, &line(64)).await.unwrap();
    // The more tables are joined, the longer it takes for each of them.
    let joined = |tables: usize| {
        let tables: Vec<String> = (0..tables).map(|n| format!("nodes n{n}")).collect();
        format!("SELECT 1 FROM {} LIMIT 1", tables.join(", "))
    };
    assert_eq!(refusal("dbadmin", LIMITS, &joined(251)).await.sqlstate, SqlState::StatementTooComplex);
    let (_, rows) = ask("dbadmin", LIMITS, &chain(5)).await.unwrap();
    assert_eq!(rows, [[Scalar::Int(1)]]);
    let error = refusal("dbadmin", QueryLimits { depth_max: 10, ..LIMITS }, &line(17)).await;
    assert_eq!(error.message, "WITH queries refer to one another over more than 16 steps");
    assert_eq!(error.hint.unwrap(), "The setting parse_depth_max is 10.");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn arms_of_a_union_are_answered_in_their_order() {
    // Each third takes some time before its first row.
    let arm = |number: usize| match number % 3 {
        0 => format!("SELECT DISTINCT {number} AS arm FROM system_columns WHERE description LIKE '%the%of%'"),
        1 => format!("SELECT {number} AS arm FROM nodes"),
        _ => format!("SELECT {number} AS arm"),
    };
    let arms: Vec<String> = (0..30).map(arm).collect();
    let union = arms.join(" UNION ALL ");
    let expected: Vec<Vec<Scalar>> = (0..30).map(|number| vec![Scalar::Int(number)]).collect();
    let queries = Queries::new(snapshot("dbadmin"), LIMITS, Arc::default()).unwrap();
    for _ in 0..10 {
        assert_eq!(all(&queries, &union).await, expected);
        assert_eq!(
            all(&queries, &format!("SELECT arm FROM ({union}) t WHERE arm > 27")).await,
            expected.get(28..).unwrap()
        );
        assert_eq!(
            all(&queries, &format!("SELECT arm + 0 FROM ({union}) t LIMIT 20")).await,
            expected.get(..20).unwrap()
        );
        let list = all(&queries, &format!("SELECT array_to_string(ARRAY({union}), ' ')")).await;
        let numbers: Vec<String> = (0..30).map(|number| number.to_string()).collect();
        assert_eq!(list, [[Scalar::Text(numbers.join(" "))]]);
    }
}

async fn all(queries: &Queries, sql: &str) -> Vec<Vec<Scalar>> {
    let result = queries.run(&parsed(sql), &[]).await.unwrap();
    result.rows.map(Result::unwrap).collect().await
}

#[tokio::test]
async fn a_plan_that_is_kept_reads_each_session_s_own_snapshot() {
    let plans = Arc::<PlanCache>::default();
    let superuser = Queries::new(snapshot("dbadmin"), LIMITS, Arc::clone(&plans)).unwrap();
    let joined = "SELECT a.node_name, count(*) FROM nodes a JOIN nodes b ON a.node_id = b.node_id \
                  JOIN (SELECT 1 AS one) c ON true GROUP BY a.node_name ORDER BY 1";
    let before = all(&superuser, joined).await;
    assert_eq!((plans.len(), before.len()), (1, 1));
    let node = Change::CreateNode {
        name: name("node2"),
        kind: NodeKind::Remote { upstream: None },
        host: "10.0.0.2".to_owned(),
        port: 5432,
        subcluster: None,
    };
    let mut later = (*snapshot("dbadmin")).clone();
    later.catalog = Arc::new(later.catalog.apply(&[node]).unwrap().catalog);
    superuser.read(Arc::new(later));
    assert_eq!(all(&superuser, joined).await.len(), 2);
    // What only the superuser may read is refused to others, planned or not.
    let secret = "SELECT count(*) FROM switchyard.catalog_history";
    all(&superuser, secret).await;
    let mira = Queries::new(snapshot("mira"), LIMITS, Arc::clone(&plans)).unwrap();
    let refused = match mira.run(&parsed(secret), &[]).await {
        Err(error) => error,
        Ok(result) => result.rows.map(Result::unwrap_err).next().await.unwrap(),
    };
    assert_eq!((refused.sqlstate, plans.len()), (SqlState::InsufficientPrivilege, 2));
}

#[tokio::test]
async fn plans_with_something_of_the_session_are_not_kept() {
    let plans = Arc::<PlanCache>::default();
    let superuser = Queries::new(snapshot("dbadmin"), LIMITS, Arc::clone(&plans)).unwrap();
    let mira = Queries::new(snapshot("mira"), LIMITS, Arc::clone(&plans)).unwrap();
    for sql in [
        "SELECT current_user",
        "SELECT node_name FROM nodes WHERE current_user = 'dbadmin'",
        "SELECT now()",
        "SELECT (SELECT current_user) AS who",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT * FROM n",
    ] {
        all(&superuser, sql).await;
        assert_eq!(plans.len(), 0, "{sql}");
    }
    let who = |name: &str| vec![vec![Scalar::Text(name.to_owned())]];
    assert_eq!(all(&superuser, "SELECT current_user").await, who("dbadmin"));
    assert_eq!(all(&mira, "SELECT current_user").await, who("mira"));
}

#[test]
fn each_function_of_ours_has_a_row_in_the_rights_table() {
    let names = |context: &SessionContext| -> std::collections::BTreeSet<String> {
        let state = context.state();
        let (scalar, aggregate) = (state.scalar_functions().keys(), state.aggregate_functions().keys());
        let (window, table) = (state.window_functions().keys(), state.table_functions().keys());
        scalar.chain(aggregate).chain(window).chain(table).cloned().collect()
    };
    let queries = Queries::new(snapshot("dbadmin"), LIMITS, Arc::default()).unwrap();
    let known = names(queries.0.context());
    let of_rows = queries.0.context().state().table_functions().keys().cloned().collect::<Vec<_>>();
    let scalars: Vec<_> = of_rows.iter().filter(|name| !rewrite::gives_rows(name)).collect();
    assert!(scalars.is_empty(), "taken as functions of one row: {scalars:?}");
    // What begins so stands for casts and the like, and no client can name it.
    let of_datafusion = names(&SessionContext::new());
    let ours = known.difference(&of_datafusion).filter(|name| !name.starts_with("__")).cloned();
    let ours: std::collections::BTreeSet<String> = ours.collect();
    let rows: std::collections::BTreeSet<String> =
        crate::rights::QUERY_FUNCTIONS.iter().flat_map(|row| row.names).map(|name| (*name).to_owned()).collect();
    let missing: Vec<_> = ours.difference(&rows).collect();
    assert!(missing.is_empty(), "without a row in rights/queries.rs: {missing:?}");
    let gone: Vec<_> = rows.difference(&known).collect();
    assert!(gone.is_empty(), "with a row in rights/queries.rs, but no function: {gone:?}");
}

/// What `pg_proc` shows of PostgreSQL's own functions can be called so.
#[tokio::test]
async fn functions_that_are_shown_are_there() {
    use crate::tables::pg_catalog::{functions, type_with_oid};
    let queries = Queries::new(snapshot("dbadmin"), LIMITS, Arc::default()).unwrap();
    let value = |oid: &u32| match *oid {
        2277 | 5078 => "NULL::text[]".to_owned(),
        2276 | 2283 | 2776 | 5077 => "'a'::text".to_owned(),
        oid => format!("NULL::{}", type_with_oid(oid).unwrap().shown),
    };
    let mut missing = Vec::new();
    for function in functions().iter().filter(|function| function.is_built_in()) {
        let arguments: Vec<String> = function.arguments.iter().map(value).collect();
        let arguments =
            if function.name == "count" && arguments.is_empty() { "*".to_owned() } else { arguments.join(", ") };
        let call = format!("{}({arguments})", function.name);
        let sql = match function.kind {
            "w" => format!("SELECT {call} OVER (ORDER BY node_id) FROM nodes"),
            _ if function.sets => format!("SELECT * FROM {call}"),
            _ => format!("SELECT {call}"),
        };
        if let Err(error) = queries.describe(&parsed(&sql), &[]).await {
            missing.push(format!("{sql}: {error}"));
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// What is done with a parameter depends on the type that the client gave it.
#[tokio::test]
async fn parameters_have_the_types_that_are_declared() {
    let queries = Queries::new(snapshot("dbadmin"), LIMITS, Arc::default()).unwrap();
    let text = |text: &str| Scalar::Text(text.to_owned());
    let day = Scalar::Interval { months: 0, days: 1, microseconds: 0 };
    let moment = Scalar::Time(19_727 * 86_400_000_000);
    for (sql, values, kind, expected) in [
        ("SELECT date '2024-01-05' - $1", vec![(Scalar::Int(3), PgType::Int4)], PgType::Date, Scalar::Date(19_724)),
        ("SELECT $1 + 1", vec![(Scalar::Date(19_727), PgType::Date)], PgType::Date, Scalar::Date(19_728)),
        (
            "SELECT $1 - $2",
            vec![(moment.clone(), PgType::Timestamp), (moment.clone(), PgType::Timestamp)],
            PgType::Interval,
            Scalar::Interval { months: 0, days: 0, microseconds: 0 },
        ),
        ("SELECT $1::text", vec![(moment, PgType::Timestamp)], PgType::Text, text("2024-01-05 00:00:00")),
        ("SELECT round($1)", vec![(Scalar::Float8(2.5), PgType::Float8)], PgType::Float8, Scalar::Float8(2.0)),
        ("SELECT now() - $1 < now()", vec![(day.clone(), PgType::Interval)], PgType::Bool, Scalar::Bool(true)),
        ("SELECT extract(day from $1)::int", vec![(day, PgType::Interval)], PgType::Int4, Scalar::Int(1)),
        (
            "SELECT substring('abcdef' from $1 for $2)",
            vec![(Scalar::Int(2), PgType::Int2), (Scalar::Int(2), PgType::Int2)],
            PgType::Text,
            text("bc"),
        ),
        (
            "SELECT max(g) FROM generate_series($1, $2) g",
            vec![(Scalar::Int(1), PgType::Int4), (Scalar::Int(3), PgType::Int4)],
            PgType::Int4,
            Scalar::Int(3),
        ),
        ("SELECT $1 || $2", vec![(text("a"), PgType::Text), (text("b"), PgType::Text)], PgType::Text, text("ab")),
    ] {
        let statement = parsed(sql);
        let declared: Vec<Option<PgType>> = values.iter().map(|(_, kind)| Some(*kind)).collect();
        let described = queries.describe(&statement, &declared).await.unwrap();
        assert_eq!(described.columns.iter().map(|column| column.kind).collect::<Vec<_>>(), [kind], "{sql}");
        let bound: Vec<Parameter> = values.into_iter().map(|(value, kind)| Parameter { value, kind }).collect();
        let rows = queries.run(&statement, &bound).await.unwrap();
        assert_eq!(rows.columns, described.columns, "{sql}");
        let rows: Vec<Vec<Scalar>> = rows.rows.map(Result::unwrap).collect().await;
        assert_eq!(rows, [vec![expected]], "{sql}");
    }
}

/// What is planned, gathered or matched out of the reach of cancel requests is bounded before.
#[tokio::test]
async fn what_nothing_stops_is_bounded() {
    let queries = Queries::new(snapshot("dbadmin"), LIMITS, Arc::default()).unwrap();
    let rows = format!("VALUES {}(1)", "(1),".repeat(10_000));
    let names: Vec<String> = (0..501).map(|number| format!("q{number} AS (SELECT 1)")).collect();
    for (sql, state) in [
        (rows, SqlState::StatementTooComplex),
        (format!("WITH {} SELECT 1", names.join(",")), SqlState::StatementTooComplex),
        ("SELECT 'x' LIKE repeat('%', 5000)".to_owned(), SqlState::ProgramLimitExceeded),
        ("SELECT 'x' ~~ repeat('%', 5000)".to_owned(), SqlState::ProgramLimitExceeded),
        (
            "SELECT array_length(ARRAY(SELECT repeat('x', 1000) FROM generate_series(1, 1000000)), 1)".to_owned(),
            SqlState::OutOfMemory,
        ),
    ] {
        let failed = match queries.run(&parsed(&sql), &[]).await {
            Err(error) => error,
            Ok(rows) => {
                let rows: Vec<Result<Vec<Scalar>, QueryError>> = rows.rows.collect().await;
                rows.into_iter().find_map(Result::err).unwrap()
            }
        };
        assert_eq!(failed.sqlstate, state, "{failed}");
    }
}

#[tokio::test]
async fn parameters_keep_their_digits_and_their_casts() {
    let queries = Queries::new(snapshot("dbadmin"), LIMITS, Arc::default()).unwrap();
    let text = |text: &str| Scalar::Text(text.to_owned());
    for (sql, value, kind, expected) in [
        ("SELECT $1::numeric", "1.50", PgType::Numeric, Ok(text("1.50"))),
        ("SELECT $1::numeric + 1", "1.50", PgType::Numeric, Ok(text("2.50"))),
        ("SELECT $1::varchar(3)", "abcdef", PgType::Varchar, Ok(text("abc"))),
        ("SELECT $1::inet = '10.0.0.1/32'", "10.0.0.1", PgType::Inet, Ok(Scalar::Bool(true))),
        ("SELECT $1::jsonb", "[1,2]", PgType::Jsonb, Ok(text("[1, 2]"))),
        ("SELECT $1::jsonb", "[1,", PgType::Jsonb, Err(SqlState::InvalidTextRepresentation)),
        ("SELECT $1::numeric", "x", PgType::Numeric, Err(SqlState::InvalidTextRepresentation)),
    ] {
        let statement = parsed(sql);
        assert_eq!(queries.describe(&statement, &[]).await.unwrap().parameters, [kind], "{sql}");
        let answered = match queries.run(&statement, &[Parameter { value: text(value), kind }]).await {
            Ok(rows) => rows.rows.collect::<Vec<_>>().await.remove(0),
            Err(error) => Err(error),
        };
        let answered = answered.map(|mut row| row.remove(0)).map_err(|error| error.sqlstate);
        assert_eq!(answered, expected, "{sql} of {value}");
    }
}
