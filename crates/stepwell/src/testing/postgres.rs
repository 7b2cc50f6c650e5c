//! A PostgreSQL database for one test.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::panic::resume_unwind;
use std::str::FromStr;

use tokio_postgres::{Client, Config, NoTls};

use crate::{PostgresOptions, PostgresStore};

/// Where tests find their server; `cargo xtask test` sets it.
const URL_VARIABLE: &str = "STEPWELL_TEST_DATABASE_URL";

/// A database of a test's own. It is copied from a template that was migrated once, and gone
/// when this is dropped.
///
/// Needs a server whose user may create databases, named by `STEPWELL_TEST_DATABASE_URL`. A test
/// without one fails; it never passes unseen.
#[derive(Debug)]
pub struct TestDatabase {
    server: String,
    name: String,
}

impl TestDatabase {
    /// Makes a database.
    ///
    /// # Panics
    /// When there is no server, or it makes no database.
    pub async fn create() -> Self {
        let server = std::env::var(URL_VARIABLE).unwrap_or_else(|_| {
            panic!(
                "this test needs a PostgreSQL server: run it by `cargo xtask test`, which brings \
                 one, or set {URL_VARIABLE}"
            )
        });
        let client = connect(&server).await;
        let template = template(&client, &server).await;
        let name = format!("stepwell_test_{:016x}", random());
        run(&client, &format!("create database {name} template {template}")).await;
        Self { server, name }
    }

    /// Makes a database, in a test that is not async.
    ///
    /// # Panics
    /// As [`TestDatabase::create`].
    #[must_use]
    pub fn create_blocking() -> Self {
        apart(Self::create()).unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// How a client connects to it.
    #[must_use]
    pub fn url(&self) -> String {
        with_database(&self.server, &self.name)
    }

    /// Options of a store in it.
    #[must_use]
    pub fn options(&self) -> PostgresOptions {
        PostgresOptions::new(self.url())
    }

    /// A store in it.
    ///
    /// # Panics
    /// When the server does not answer.
    pub async fn store(&self) -> PostgresStore {
        PostgresStore::connect_with(self.options()).await.expect("the server has just answered")
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let (server, name) = (self.server.clone(), self.name.clone());
        // A database that stays behind is no reason to fail a test that passed.
        let _ = apart(async move {
            let client = connect(&server).await;
            run(&client, &format!("drop database {name} with (force)")).await;
        });
    }
}

/// Waits for a future on a thread and a runtime of its own: the caller may be on a runtime, which
/// cannot wait inside itself, and which may be about to end. An error is what the future panicked
/// with.
pub(super) fn apart<T: Send>(future: impl Future<Output = T> + Send) -> std::thread::Result<T> {
    let wait = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a test can have a runtime").block_on(future)
    };
    std::thread::scope(|scope| scope.spawn(wait).join())
}

/// The name of the template for this program's tables. The first test makes it.
async fn template(client: &Client, server: &str) -> String {
    let script = PostgresStore::migration_script("stepwell", 0).expect("a good name");
    let mut hasher = std::hash::DefaultHasher::new();
    hasher.write(script.as_bytes());
    let name = format!("stepwell_template_{:016x}", hasher.finish());
    let exists = "select 1 from pg_database where datname = $1";
    if client.query_opt(exists, &[&name]).await.expect("the server answers").is_some() {
        return name;
    }
    let lock = "select pg_advisory_lock(hashtext('stepwell test template'))";
    client.execute(lock, &[]).await.expect("the server answers");
    if client.query_opt(exists, &[&name]).await.expect("the server answers").is_none() {
        // It gets its name when it is whole, so that nobody copies half of one.
        let draft = format!("stepwell_draft_{:016x}", random());
        run(client, &format!("create database {draft}")).await;
        let within = connect(&with_database(server, &draft)).await;
        run(&within, &script).await;
        drop(within);
        let end =
            "select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = $1";
        client.execute(end, &[&draft]).await.expect("the server answers");
        run(client, &format!("alter database {draft} rename to {name}")).await;
    }
    client.execute("select pg_advisory_unlock_all()", &[]).await.expect("the server answers");
    name
}

#[expect(clippy::disallowed_methods, reason = "a test's connection lives on the test's runtime")]
async fn connect(url: &str) -> Client {
    let config = Config::from_str(url).expect("the test server's URL makes sense");
    let (client, connection) = config.connect(NoTls).await.expect("the test server answers");
    drop(tokio::spawn(connection));
    client
}

async fn run(client: &Client, sql: &str) {
    client.batch_execute(sql).await.unwrap_or_else(|error| {
        let why = error.as_db_error().map_or(error.to_string(), ToString::to_string);
        panic!("{why} in: {sql}")
    });
}

/// The same server, another database. Names of test databases need no quotes.
fn with_database(url: &str, name: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        // Of two values for one key, the later one holds.
        return format!("{url} dbname={name}");
    };
    let (address, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = address.split_once('/').map_or(address, |(authority, _)| authority);
    let query = if query.is_empty() { String::new() } else { format!("?{query}") };
    format!("{scheme}://{authority}/{name}{query}")
}

fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_database_of_a_url_is_replaced() {
        assert_eq!(with_database("host=h user=u", "d"), "host=h user=u dbname=d");
        assert_eq!(with_database("postgres://u@h:1/x?a=b", "d"), "postgres://u@h:1/d?a=b");
        assert_eq!(with_database("postgres://u@h", "d"), "postgres://u@h/d");
    }
}
