//! A driver that prepares, binds and reads binary: `tokio-postgres`.

use anyhow::{Context, ensure};
use libtest_mimic::Trial;
use switchyard_testkit::Server;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls};

pub fn trials() -> Vec<Trial> {
    vec![
        crate::with_server("a_driver_binds_parameters", |server| block_on(server, binds_parameters)),
        crate::with_server("a_driver_reads_every_type_in_binary", |server| block_on(server, reads_types)),
        crate::with_server("a_driver_uses_transactions", |server| block_on(server, uses_transactions)),
        crate::with_server("a_driver_pipelines", |server| block_on(server, pipelines)),
        crate::with_server("a_driver_fetches_in_portions", |server| block_on(server, fetches_in_portions)),
    ]
}

fn block_on(server: &Server, test: impl AsyncFnOnce(Client) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (client, connection) = server.configuration().connect(NoTls).await.context("login")?;
        let connection = tokio::spawn(connection);
        test(client).await?;
        connection.await?.context("the connection ended badly")
    })
}

async fn binds_parameters(client: Client) -> anyhow::Result<()> {
    client.execute("CREATE SUBCLUSTER reporting", &[]).await?;
    let statement =
        client.prepare("SELECT subcluster_name, is_default FROM subclusters WHERE subcluster_name = $1").await?;
    for (name, count) in [("reporting", 1), ("nothing", 0), ("default_subcluster", 1)] {
        let rows = client.query(&statement, &[&name]).await?;
        ensure!(rows.len() == count, "{} rows for {name}", rows.len());
        for row in rows {
            ensure!(row.try_get::<_, &str>(0)? == name);
            ensure!(row.try_get::<_, bool>(1)? == (name == "default_subcluster"));
        }
    }
    Ok(())
}

async fn reads_types(client: Client) -> anyhow::Result<()> {
    let row = client
        .query_one("SELECT event_timestamp, node_id, node_name FROM node_states ORDER BY event_timestamp LIMIT 1", &[])
        .await?;
    ensure!(row.try_get::<_, std::time::SystemTime>(0)? <= std::time::SystemTime::now());
    ensure!(row.try_get::<_, i64>(1)? > 0);
    ensure!(row.try_get::<_, &str>(2)? == switchyard_testkit::NODE);
    let row =
        client.query_one("SELECT count(*) AS c, true AS b, 1.5::float8 AS f, NULL::text AS n FROM nodes", &[]).await?;
    ensure!(row.try_get::<_, i64>("c")? == 1);
    ensure!(row.try_get::<_, bool>("b")?);
    ensure!((row.try_get::<_, f64>("f")? - 1.5).abs() < f64::EPSILON);
    ensure!(row.try_get::<_, Option<&str>>("n")?.is_none());
    Ok(())
}

async fn uses_transactions(mut client: Client) -> anyhow::Result<()> {
    let transaction = client.transaction().await?;
    transaction.execute("CREATE SUBCLUSTER one", &[]).await?;
    let refused = transaction.execute("CREATE SUBCLUSTER one", &[]).await.err().context("made twice")?;
    ensure!(refused.code() == Some(&SqlState::DUPLICATE_OBJECT), "{refused:?}");
    let after = transaction.execute("CREATE SUBCLUSTER two", &[]).await.err().context("ran after an error")?;
    ensure!(after.code() == Some(&SqlState::IN_FAILED_SQL_TRANSACTION), "{after:?}");
    transaction.rollback().await?;

    let mut transaction = client.transaction().await?;
    transaction.execute("CREATE SUBCLUSTER three", &[]).await?;
    let savepoint = transaction.savepoint("s").await?;
    savepoint.execute("CREATE SUBCLUSTER four", &[]).await?;
    savepoint.rollback().await?;
    transaction.commit().await?;

    let rows = client.query("SELECT subcluster_name FROM subclusters WHERE NOT is_default", &[]).await?;
    let names = rows.iter().map(|row| row.try_get(0)).collect::<Result<Vec<String>, _>>()?;
    ensure!(names == ["three"], "{names:?}");
    Ok(())
}

async fn pipelines(client: Client) -> anyhow::Result<()> {
    let statements: Vec<String> = (0..20).map(|number| format!("CREATE SUBCLUSTER s{number}")).collect();
    let (first, second) = statements.split_at(10);
    // Both are sent before either is answered.
    let (first, second) = (first.join("; "), second.join("; "));
    tokio::try_join!(client.batch_execute(&first), client.batch_execute(&second))?;
    let count: i64 =
        client.query_one("SELECT count(*) FROM subclusters WHERE NOT is_default", &[]).await?.try_get(0)?;
    ensure!(count == 20, "{count} of 20");
    Ok(())
}

async fn fetches_in_portions(mut client: Client) -> anyhow::Result<()> {
    let transaction = client.transaction().await?;
    let sql = "SELECT column_name FROM switchyard.system_columns WHERE table_name = $1 ORDER BY ordinal_position";
    let statement = transaction.prepare(sql).await?;
    let all = transaction.query(&statement, &[&"sessions"]).await?.len();
    let portal = transaction.bind(&statement, &[&"sessions"]).await?;
    let mut fetched = 0;
    loop {
        let rows = transaction.query_portal(&portal, 5).await?;
        fetched += rows.len();
        ensure!(rows.len() <= 5, "{} rows in a portion of 5", rows.len());
        if rows.len() < 5 {
            break;
        }
    }
    ensure!(fetched == all && all > 20, "{fetched} of {all} rows");
    transaction.commit().await?;
    Ok(())
}
