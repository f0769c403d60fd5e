//! The real psql.

use anyhow::ensure;
use libtest_mimic::Trial;
use switchyard_testkit::{Server, psql};

pub fn trials() -> Vec<Trial> {
    vec![
        crate::with_server("psql_prints_what_the_manual_shows", psql_prints_what_the_manual_shows),
        crate::with_server("psql_points_at_the_wrong_word", psql_points_at_the_wrong_word),
        crate::with_server("psql_applies_a_script_in_one_transaction", psql_applies_a_script_in_one_transaction),
        crate::with_server("psql_undoes_a_script_that_fails", psql_undoes_a_script_that_fails),
        crate::with_server("psql_describes_what_there_is", psql_describes_what_there_is),
        crate::with_server("psql_finds_its_way_around", psql_finds_its_way_around),
    ]
}

fn psql_prints_what_the_manual_shows(server: &Server) -> anyhow::Result<()> {
    let script = "CREATE SUBCLUSTER sc;\n\
                  CREATE ROUTING RULE ROUTE WORKLOAD my_workload TO SUBCLUSTER sc;\n\
                  SET SESSION WORKLOAD my_workload;\n\
                  SHOW WORKLOAD;\n";
    let ran = psql(server, &[], script)?;
    ensure!(ran.code == Some(0), "{ran:?}");
    let expected = "CREATE SUBCLUSTER\n\
                    CREATE ROUTING RULE\n\
                    SET\n   name   |   setting   \n----------+-------------\n workload | my_workload\n(1 row)\n\n";
    ensure!(ran.stdout == expected, "{}\nis not\n{expected}\n{}", ran.stdout, ran.stderr);
    Ok(())
}

fn psql_points_at_the_wrong_word(server: &Server) -> anyhow::Result<()> {
    let ran = psql(server, &["-c", "CREATE ROUTING RULE r ROUTTE '10.0.0.0/8' TO g"], "")?;
    ensure!(ran.code == Some(1), "{ran:?}");
    let mut lines = ran.stderr.lines().skip_while(|line| !line.starts_with("LINE 1: "));
    let statement = lines.next().unwrap_or_default();
    let caret = lines.next().unwrap_or_default();
    ensure!(ran.stderr.contains("Did you mean"), "no suggestion in {}", ran.stderr);
    ensure!(
        caret.find('^').is_some() && caret.find('^') == statement.find("ROUTTE"),
        "the caret is not under the wrong word:\n{}",
        ran.stderr
    );
    Ok(())
}

fn psql_applies_a_script_in_one_transaction(server: &Server) -> anyhow::Result<()> {
    let before = version(server)?;
    let script = "CREATE SUBCLUSTER s1; CREATE SUBCLUSTER s2;\nCREATE SUBCLUSTER s3;\n";
    let ran = psql(server, &["--single-transaction", "-v", "ON_ERROR_STOP=1", "-f", "-"], script)?;
    ensure!(ran.code == Some(0), "{ran:?}");
    let after = version(server)?;
    ensure!(after == before + 1, "three statements in one transaction made versions {before} to {after}");
    Ok(())
}

fn psql_undoes_a_script_that_fails(server: &Server) -> anyhow::Result<()> {
    let script = "CREATE SUBCLUSTER s1;\nCREATE SUBCLUSTER s1;\nCREATE SUBCLUSTER s2;\n";
    let ran = psql(server, &["--single-transaction", "-v", "ON_ERROR_STOP=1", "-f", "-"], script)?;
    ensure!(ran.code == Some(3), "{ran:?}");
    let left = server.admin()?.query("SELECT subcluster_name FROM subclusters WHERE subcluster_name LIKE 's_'")?;
    ensure!(left.is_empty(), "{left:?} is left of a script that failed");
    Ok(())
}

/// Every backslash command that looks into the catalog.
const DESCRIBING: &[&str] = &[
    "\\d",
    "\\d+",
    "\\dS",
    "\\dt",
    "\\dt+",
    "\\dt *.*",
    "\\dv",
    "\\dv *.*",
    "\\di",
    "\\dm",
    "\\ds",
    "\\l",
    "\\l+",
    "\\du",
    "\\du+",
    "\\dg",
    "\\dn",
    "\\dn+",
    "\\dnS",
    "\\df",
    "\\df+",
    "\\df *.*",
    "\\dT",
    "\\dT+",
    "\\dT *.*",
    "\\dp",
    "\\z",
    "\\db",
    "\\db+",
    "\\dx",
    "\\dx+",
    "\\dd",
    "\\ddp",
    "\\drds",
    "\\dC",
    "\\dD",
    "\\dc",
    "\\dO",
    "\\dL",
    "\\det",
    "\\des",
    "\\dew",
    "\\deu",
    "\\dF",
    "\\dFd",
    "\\dFp",
    "\\dFt",
    "\\dP",
    "\\dRp",
    "\\dRs",
    "\\dX",
    "\\dy",
    "\\da",
    "\\dA",
    "\\dAc",
    "\\dAf",
    "\\dAo",
    "\\dAp",
    "\\dl",
    "\\do",
    "\\dconfig",
    "\\d nodes",
    "\\d+ nodes",
    "\\d v_monitor.*",
    "\\d pg_class",
    "\\d+ pg_catalog.pg_type",
    "\\d+ information_schema.columns",
    "\\sf current_schemas",
    "\\conninfo",
    "\\encoding",
];

fn psql_finds_its_way_around(server: &Server) -> anyhow::Result<()> {
    for command in DESCRIBING {
        let ran = psql(server, &["-c", command], "")?;
        ensure!(!ran.stderr.contains("ERROR") && !ran.stderr.contains("connection"), "{command}: {}", ran.stderr);
    }
    Ok(())
}

fn psql_describes_what_there_is(server: &Server) -> anyhow::Result<()> {
    let expected = [
        (
            "\\d workload_routing_rules",
            "               Table \"v_catalog.workload_routing_rules\"\n     Column      |       Type        | Collation | \
             Nullable | Default \n-----------------+-------------------+-----------+----------+---------\n oid             \
             | bigint            |           |          | \n workload        | character varying |           |          \
             | \n subcluster_oid  | bigint            |           |          | \n subcluster_name | character varying \
             |           |          | \n priority        | bigint            |           |          | \n\n",
        ),
        (
            "\\dn",
            "   List of schemas\n    Name    |  Owner  \n------------+---------\n hologres   | dbadmin\n switchyard | \
             dbadmin\n v_catalog  | dbadmin\n v_internal | dbadmin\n v_monitor  | dbadmin\n(5 rows)\n\n",
        ),
    ];
    for (command, text) in expected {
        let ran = psql(server, &["-c", command], "")?;
        ensure!(ran.stdout == text, "{command}:\n{}\nis not\n{text}\n{}", ran.stdout, ran.stderr);
    }
    for (command, part) in [
        ("\\dt subnets", " v_catalog | subnets | table | dbadmin"),
        ("\\d+ subnets", "The prefix, without length."),
        ("\\l", " switchyard | dbadmin | UTF8 "),
        ("\\du", "Superuser, Create role, Create DB"),
        ("\\df has_role", " v_catalog | has_role | boolean "),
        ("\\df *.explain_route", " switchyard | explain_route | TABLE(step bigint, stage character varying, "),
        ("\\df switchyard.*", "| address text, user text, tls boolean "),
        ("\\df now", " pg_catalog | now  | timestamp with time zone |"),
        ("\\df format_type", " pg_catalog | format_type | text             | oid, integer "),
        ("\\sf current_schemas", "CREATE OR REPLACE FUNCTION pg_catalog.current_schemas(boolean)\n RETURNS name[]"),
        ("\\d+", "The nodes of the cluster and their state."),
        ("\\dv information_schema.schemata", " information_schema | schemata | view | dbadmin"),
        ("\\dp subnets", " v_catalog | subnets | table |"),
        ("\\dT int8", " pg_catalog | bigint | "),
        ("\\db", " pg_default | dbadmin | "),
        ("\\dx", "List of installed extensions"),
        ("\\conninfo", "You are connected to database \"switchyard\" as user \"dbadmin\""),
    ] {
        let ran = psql(server, &["-c", command], "")?;
        ensure!(ran.stdout.contains(part), "{command}: no {part:?} in\n{}{}", ran.stdout, ran.stderr);
    }
    let ran = psql(server, &["-c", "\\d nothing"], "")?;
    ensure!(ran.stderr.contains("Did not find any relation named \"nothing\""), "{ran:?}");
    Ok(())
}

/// The newest version in the history.
fn version(server: &Server) -> anyhow::Result<i64> {
    let rows = server.admin()?.query("SELECT coalesce(max(version), 0) FROM switchyard.catalog_history")?;
    let value = rows.into_iter().flatten().flatten().next().unwrap_or_default();
    Ok(value.parse()?)
}
