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

/// The newest version in the history.
fn version(server: &Server) -> anyhow::Result<i64> {
    let rows = server.admin()?.query("SELECT coalesce(max(version), 0) FROM switchyard.catalog_history")?;
    let value = rows.into_iter().flatten().flatten().next().unwrap_or_default();
    Ok(value.parse()?)
}
