//! A database of its own for a test, and a way back to how it was.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use tokio_postgres::{Client, NoTls};

use crate::endpoint::Server;

/// How long a fact that must come about is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// A database that nobody else uses, so that what the server counts is the test's own doing.
#[derive(Debug)]
pub struct OwnDatabase {
    server: String,
    name: String,
    url: String,
}

impl OwnDatabase {
    /// Makes one beside the database of this URL.
    pub async fn make(server: &str) -> Self {
        let name = format!("faults_{:016x}", RandomState::new().build_hasher().finish());
        let client = connect(server).await;
        let make = format!("create database {name}");
        client.batch_execute(&make).await.expect("the user may make databases");
        let url = Server::of(server).url_of(&name);
        Self { server: server.to_owned(), name, url }
    }

    /// Where it is.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Drops it, whoever is still connected.
    pub async fn abandon(self) {
        let client = connect(&self.server).await;
        let drop = format!("drop database {} with (force)", self.name);
        client.batch_execute(&drop).await.expect("it is dropped");
    }

    /// Drops it, after everybody has left, and gives how many deadlocks there were in it.
    pub async fn leave(self) -> i64 {
        let client = connect(&self.server).await;
        // A process tells what it counted when it ends, if not before.
        let others = "select count(*) from pg_stat_activity where datname = $1";
        eventually("everybody leaves", async || {
            let row = client.query_one(others, &[&self.name]).await.expect("it answers");
            row.get::<_, i64>(0) == 0
        })
        .await;
        let n_deadlocks = n_deadlocks(&client, &self.name).await;
        let drop = format!("drop database {}", self.name);
        client.batch_execute(&drop).await.expect("nobody is connected");
        n_deadlocks
    }
}

/// How many deadlocks a database has seen up to now. Servers before 15 write down what they count
/// only now and then, and say when they did.
async fn n_deadlocks(client: &Client, database: &str) -> i64 {
    let now = client.query_one("select clock_timestamp()::text", &[]).await.expect("it answers");
    let now: String = now.get(0);
    let read = "select deadlocks, \
            coalesce(pg_stat_get_snapshot_timestamp() > $2::text::timestamptz, true) \
        from pg_stat_database where datname = $1";
    let mut n_deadlocks = 0;
    eventually("what was counted is written down", async || {
        let row = client.query_one(read, &[&database, &now]).await.expect("it answers");
        n_deadlocks = row.get(0);
        row.get(1)
    })
    .await;
    n_deadlocks
}

/// Looks again and again until something is so.
///
/// # Panics
/// If it takes far longer than it ever should.
#[expect(clippy::disallowed_methods, reason = "a fact of another process is polled")]
pub async fn eventually(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let look = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let looked = tokio::time::timeout(PATIENCE, look).await;
    assert!(looked.is_ok(), "{what}: not within {PATIENCE:?}");
}

/// A connection past all tools.
#[expect(clippy::disallowed_methods, reason = "the driver's connection lives beside its client")]
pub async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("it connects");
    drop(tokio::spawn(async {
        // It ends with its client.
        drop(connection.await);
    }));
    client
}

/// Everything a schema held at some moment.
#[derive(Debug)]
pub struct Snapshot {
    restore: String,
}

impl Snapshot {
    /// Keeps all rows and sequences of a schema.
    pub async fn take(client: &Client, schema: &str) -> Self {
        let kept = format!("kept_{schema}");
        let (mut keep, mut delete, mut insert) = (String::new(), String::new(), String::new());
        writeln!(keep, "create schema {kept};").expect("a string takes text");
        let tables = tables(client, schema).await;
        for table in &tables {
            writeln!(keep, "create table {kept}.{table} as table {schema}.{table};")
                .expect("a string takes text");
            writeln!(
                insert,
                "insert into {schema}.{table} overriding system value table {kept}.{table};"
            )
            .expect("a string takes text");
        }
        for table in tables.iter().rev() {
            writeln!(delete, "delete from {schema}.{table};").expect("a string takes text");
        }
        client.batch_execute(&keep).await.expect("the rows are copied");
        let sequences = sequences(client, schema).await;
        Self { restore: format!("begin;\n{delete}{insert}{sequences}commit;") }
    }

    /// Brings the schema back to how it was.
    pub async fn restore(&self, client: &Client) {
        client.batch_execute(&self.restore).await.expect("the rows are put back");
    }
}

/// The tables of a schema, each after those it refers to.
async fn tables(client: &Client, schema: &str) -> Vec<String> {
    let names = "select relname::text from pg_class \
        where relnamespace = $1::text::regnamespace and relkind = 'r' order by relname";
    let rows = client.query(names, &[&schema]).await.expect("it answers");
    let mut left: BTreeSet<String> = rows.iter().map(|row| row.get(0)).collect();
    let references = "select a.relname::text, b.relname::text from pg_constraint c \
        join pg_class a on a.oid = c.conrelid join pg_class b on b.oid = c.confrelid \
        where c.contype = 'f' and a.oid <> b.oid and c.connamespace = $1::text::regnamespace";
    let rows = client.query(references, &[&schema]).await.expect("it answers");
    let references: Vec<(String, String)> =
        rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    let mut ordered = Vec::new();
    while !left.is_empty() {
        let waits =
            |table: &str| references.iter().any(|(from, to)| from == table && left.contains(to));
        let next: Vec<String> = left.iter().filter(|table| !waits(table)).cloned().collect();
        assert!(!next.is_empty(), "tables refer to each other in a circle: {left:?}");
        left.retain(|table| !next.contains(table));
        ordered.extend(next);
    }
    ordered
}

/// Statements that set the sequences of a schema to where they stand now.
async fn sequences(client: &Client, schema: &str) -> String {
    let names = "select relname::text from pg_class \
        where relnamespace = $1::text::regnamespace and relkind = 'S' order by relname";
    let mut set = String::new();
    for row in client.query(names, &[&schema]).await.expect("it answers") {
        let name: String = row.get(0);
        let read = format!("select last_value, is_called from {schema}.{name}");
        let row = client.query_one(&read, &[]).await.expect("it answers");
        let (last, is_called): (i64, bool) = (row.get(0), row.get(1));
        writeln!(set, "select setval('{schema}.{name}', {last}, {is_called});")
            .expect("a string takes text");
    }
    set
}
