//! States, tags and errors as the bytes say them.

use anyhow::{Context, ensure};
use libtest_mimic::Trial;
use switchyard_testkit::{Client, Login, Outcome, Protocol, Server};

pub fn trials() -> Vec<Trial> {
    vec![
        crate::with_server("transaction_states_are_reported", transaction_states_are_reported),
        crate::with_server("several_statements_are_one_transaction", several_statements_are_one_transaction),
        crate::with_server("an_empty_statement_is_answered", an_empty_statement_is_answered),
        crate::with_server("a_wrong_password_is_refused", a_wrong_password_is_refused),
        crate::with_server("an_unknown_user_is_refused_alike", an_unknown_user_is_refused_alike),
        crate::with_server("a_session_sees_its_own_changes_alone", a_session_sees_its_own_changes_alone),
        crate::with_server("an_error_leaves_the_session_usable", an_error_leaves_the_session_usable),
    ]
}

fn tags(outcome: &Outcome) -> Vec<&str> {
    outcome.answers.iter().filter_map(|answer| answer.tag.as_deref()).collect()
}

fn transaction_states_are_reported(server: &Server) -> anyhow::Result<()> {
    for protocol in [Protocol::Simple, Protocol::Extended] {
        let mut client = server.admin()?;
        let steps = [
            ("BEGIN", "BEGIN", 'T'),
            ("CREATE SUBCLUSTER a", "CREATE SUBCLUSTER", 'T'),
            ("SAVEPOINT s", "SAVEPOINT", 'T'),
            ("CREATE SUBCLUSTER a", "", 'E'),
            ("SELECT 1", "", 'E'),
            ("ROLLBACK TO s", "ROLLBACK", 'T'),
            ("RELEASE s", "RELEASE", 'T'),
            ("SELECT 1", "SELECT 1", 'T'),
            ("ROLLBACK", "ROLLBACK", 'I'),
            ("BEGIN", "BEGIN", 'T'),
            ("nonsense", "", 'E'),
            ("COMMIT", "ROLLBACK", 'I'),
        ];
        for (number, (sql, tag, status)) in steps.into_iter().enumerate() {
            let outcome = client.run(sql, protocol)?;
            let found = tags(&outcome).last().copied().unwrap_or_default().to_owned();
            ensure!(found == tag, "step {number}, {sql}: tag {found:?}, {:?}", outcome.error);
            ensure!(outcome.status == status, "step {number}, {sql}: state {}", outcome.status);
        }
    }
    Ok(())
}

fn several_statements_are_one_transaction(server: &Server) -> anyhow::Result<()> {
    let mut client = server.admin()?;
    let outcome = client.run("CREATE SUBCLUSTER a; SELECT 1; CREATE SUBCLUSTER b", Protocol::Simple)?;
    ensure!(tags(&outcome) == ["CREATE SUBCLUSTER", "SELECT 1", "CREATE SUBCLUSTER"], "{outcome:?}");
    let outcome = client.run("CREATE SUBCLUSTER c; CREATE SUBCLUSTER a; CREATE SUBCLUSTER d", Protocol::Simple)?;
    ensure!(tags(&outcome) == ["CREATE SUBCLUSTER"], "{outcome:?}");
    ensure!(outcome.code() == Some("42710") && outcome.status == 'I', "{outcome:?}");
    let rows = client.query("SELECT subcluster_name FROM subclusters WHERE NOT is_default ORDER BY 1")?;
    let names: Vec<String> = rows.into_iter().flatten().flatten().collect();
    ensure!(names == ["a", "b"], "{names:?}");
    Ok(())
}

fn an_empty_statement_is_answered(server: &Server) -> anyhow::Result<()> {
    let mut client = server.admin()?;
    for text in ["", " ; ", "-- nothing"] {
        for protocol in [Protocol::Simple, Protocol::Extended] {
            let outcome = client.run(text, protocol)?;
            ensure!(outcome.error.is_none() && tags(&outcome).is_empty(), "{text:?}: {outcome:?}");
        }
    }
    Ok(())
}

fn refusal(login: &Login) -> anyhow::Result<switchyard_testkit::Report> {
    let error = Client::connect(login).err().context("the login was accepted")?;
    Ok(error.downcast::<switchyard_testkit::Refused>()?.0)
}

fn a_wrong_password_is_refused(server: &Server) -> anyhow::Result<()> {
    let report = refusal(&Login::new(server.port(), "dbadmin", "not it"))?;
    ensure!(report.code == "28P01" && report.severity == "FATAL", "{report:?}");
    Ok(())
}

fn an_unknown_user_is_refused_alike(server: &Server) -> anyhow::Result<()> {
    let known = refusal(&Login::new(server.port(), "dbadmin", "not it"))?;
    let unknown = refusal(&Login::new(server.port(), "nobody", "not it"))?;
    ensure!(unknown.code == known.code, "{unknown:?}");
    ensure!(unknown.message.replace("nobody", "dbadmin") == known.message, "{unknown:?} tells that nobody is unknown");
    Ok(())
}

fn a_session_sees_its_own_changes_alone(server: &Server) -> anyhow::Result<()> {
    let count = "SELECT count(*) FROM subclusters WHERE subcluster_name = 'mine'";
    let one = |rows: Vec<Vec<Option<String>>>| rows.into_iter().flatten().flatten().next();
    let (mut first, mut second) = (server.admin()?, server.admin()?);
    first.query("BEGIN")?;
    first.query("CREATE SUBCLUSTER mine")?;
    ensure!(one(first.query(count)?).as_deref() == Some("1"));
    ensure!(one(second.query(count)?).as_deref() == Some("0"));
    first.query("COMMIT")?;
    ensure!(one(second.query(count)?).as_deref() == Some("1"));
    Ok(())
}

fn an_error_leaves_the_session_usable(server: &Server) -> anyhow::Result<()> {
    let mut client = server.admin()?;
    for sql in
        ["CREATE NETWORK ADDRESS a ON nowhere WITH '10.0.0.1'", "SELECT * FROM nothing", "CREATE", "SELECT (((", "'"]
    {
        for protocol in [Protocol::Simple, Protocol::Extended] {
            let outcome = client.run(sql, protocol)?;
            ensure!(outcome.error.is_some() && outcome.status == 'I', "{sql}: {outcome:?}");
            ensure!(client.query("SELECT 1")?.len() == 1);
        }
    }
    Ok(())
}
