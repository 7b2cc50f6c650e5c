//! Processes behind a real `PgBouncer` in transaction mode, and nothing beside it.

use std::str::FromStr;

use stepwell_cluster::{PgBouncer, PooledServer, find_pgbouncer};
use stepwell_fleet::address::Address;
use stepwell_fleet::checker::Faults;
use stepwell_fleet::plan::{N_RANDOM, WIDE, random_name};
use tempfile::TempDir;
use tokio_postgres::config::Host;
use tokio_postgres::{Client, Config, NoTls};

use crate::support::{FleetTest, shared_server};

/// Connections to the server, which all processes share.
const N_CONNECTIONS: usize = 3;

/// Runs of each plan.
const N_RUNS: usize = 5;

/// A pooler before the tests' server.
fn pooler(server: &Config) -> PgBouncer {
    let program = find_pgbouncer().expect("PgBouncer is there: `cargo xtask test` installs it");
    let host = match server.get_hosts().first() {
        Some(Host::Tcp(host)) => host.clone(),
        Some(Host::Unix(folder)) => folder.display().to_string(),
        None => panic!("the server has a host"),
    };
    let server = PooledServer {
        host,
        port: server.get_ports().first().copied().unwrap_or(5432),
        user: server.get_user().expect("the URL names a user").to_owned(),
        connections_max: N_CONNECTIONS,
    };
    PgBouncer::start(&program, &server).expect("it starts")
}

#[expect(clippy::disallowed_methods, reason = "the connection lives on the test's runtime")]
async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("it answers");
    drop(tokio::spawn(connection));
    client
}

/// The names of statements that are left on the server's connections. As many transactions as
/// there are connections are open at the same time, so each looks at another one.
async fn statements_left(url: &str) -> Vec<String> {
    let mut clients = Vec::new();
    let mut names = Vec::new();
    for _ in 0..N_CONNECTIONS {
        let client = connect(url).await;
        client.batch_execute("begin").await.expect("it answers");
        let left = "select name || ': ' || statement from pg_prepared_statements";
        let rows = client.query_typed(left, &[]).await.expect("it answers");
        names.extend(rows.iter().map(|row| row.get::<_, String>(0)));
        clients.push(client);
    }
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_behind_a_real_pooler_fail_nothing_and_leave_no_statements_behind() {
    // FC3
    if find_pgbouncer().is_none() && std::env::var_os("STEPWELL_TEST_WITHOUT_POOLER").is_some() {
        eprintln!("SKIPPED: there is no PgBouncer, and none could be installed");
        return;
    }
    let Address::Postgres { url, schema } = shared_server() else { panic!("a server") };
    let server = Config::from_str(&url).expect("the URL is well formed");
    let pooler = pooler(&server);
    let url = pooler.url(server.get_dbname().expect("the URL names a database"));
    let address = Address::Pooled { url: url.clone(), schema };
    let folder = TempDir::new().expect("there is room for files");
    let test = FleetTest::at(address, folder).without_deaths();
    let fleet = test.fleet(2).await;
    let mut load = test.load().await;
    for n in 0..N_RANDOM {
        load.start_many(&random_name(n), N_RUNS).await.expect("starts are answered");
    }
    load.start_many(WIDE, N_RUNS).await.expect("starts are answered");
    test.end(load, fleet, Faults::None).await;
    assert_eq!(statements_left(&url).await, Vec::<String>::new());
}
