//! What tests of the PostgreSQL schema share: a schema of their own and a plain connection to it.
#![allow(dead_code, reason = "every file of tests uses a part of it")]

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

use stepwell::testing::ManualClock;
use stepwell::{PostgresOptions, PostgresStore};
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

/// The tests' server.
pub(crate) fn url() -> String {
    std::env::var("STEPWELL_TEST_DATABASE_URL").expect(
        "tests of the PostgreSQL store need a server: run `cargo xtask test`, which brings its \
         own, or set STEPWELL_TEST_DATABASE_URL",
    )
}

/// A name that no other test uses, in earlier runs on the same server neither.
pub(crate) fn fresh_name(prefix: &str) -> String {
    format!("{prefix}_{:016x}", RandomState::new().build_hasher().finish())
}

/// A migrated schema, with a plain connection beside the store's own.
pub(crate) struct Schema {
    pub(crate) name: String,
    pub(crate) store: PostgresStore,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) client: Client,
}

impl Schema {
    /// Makes a schema. Unqualified names mean its tables on the plain connection.
    pub(crate) async fn make(prefix: &str) -> Self {
        let name = fresh_name(prefix);
        let clock = Arc::new(ManualClock::new());
        let options = PostgresOptions::new(url())
            .schema(name.clone())
            .connections_max(2)
            .poll_only()
            .clock(Arc::clone(&clock) as _);
        let store = PostgresStore::connect_with(options).await.expect("the server answers");
        let client = connect(&url()).await;
        let path = format!("set search_path to {name}; set time zone 'UTC'");
        client.batch_execute(&path).await.expect("the schema is there");
        Self { name, store, clock, client }
    }

    /// Takes the schema away again, so that many tests leave nothing behind.
    pub(crate) async fn remove(self) {
        let remove = format!("drop schema {} cascade", self.name);
        self.client.batch_execute(&remove).await.expect("nobody else uses the schema");
    }
}

/// A plain connection.
pub(crate) async fn connect(url: &str) -> Client {
    let (client, connection) =
        tokio_postgres::connect(url, NoTls).await.expect("the server answers");
    #[expect(clippy::disallowed_methods, reason = "the driver needs a task for its connection")]
    tokio::spawn(connection);
    client
}

/// The rows of a query as text, columns separated by ` | `, with `-` for null.
pub(crate) async fn rows(client: &Client, sql: &str) -> Vec<String> {
    let answer = client.simple_query(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    let row = |message: SimpleQueryMessage| match message {
        SimpleQueryMessage::Row(row) => {
            let columns = (0..row.len()).map(|ix| row.get(ix).unwrap_or("-"));
            Some(columns.collect::<Vec<_>>().join(" | "))
        }
        _ => None,
    };
    answer.into_iter().filter_map(row).collect()
}
