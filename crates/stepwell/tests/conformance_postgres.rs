//! The PostgreSQL store keeps every promise of its ports.
#![cfg(all(feature = "testing", feature = "postgres"))]

use std::sync::Arc;

use async_trait::async_trait;
use stepwell::ports::DynStore;
use stepwell::testing::ManualClock;
use stepwell::testing::conformance::StoreFixture;
use stepwell::{PostgresOptions, PostgresStore};

/// A schema of its own in the tests' database.
struct Postgres;

fn url() -> String {
    std::env::var("STEPWELL_TEST_DATABASE_URL").expect(
        "tests of the PostgreSQL store need a server: run `cargo xtask test`, which brings its \
         own, or set STEPWELL_TEST_DATABASE_URL",
    )
}

/// A name that no other test uses.
fn schema() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("test_{}_{number}", std::process::id())
}

#[async_trait]
impl StoreFixture for Postgres {
    async fn open(&self, clock: Arc<ManualClock>) -> DynStore {
        let options = PostgresOptions::new(url()).schema(schema()).connections_max(4).clock(clock);
        Arc::new(PostgresStore::connect_with(options).await.expect("the server answers"))
    }
}

stepwell::conformance_suite!(Postgres);

#[tokio::test]
async fn every_statement_fits_the_migrated_schema() {
    let options = PostgresOptions::new(url()).schema(schema());
    let store = PostgresStore::connect_with(options).await.expect("the server answers");
    assert!(store.prepare_every_statement().await.expect("all fit") > 50);
}

#[tokio::test]
async fn a_schema_name_that_needs_quotes_is_refused() {
    for schema in ["", "Upper", "a b", "x\"; drop schema public; --", "1st"] {
        let options = PostgresOptions::new(url()).schema(schema);
        let refused = PostgresStore::connect_with(options).await.expect_err(schema);
        assert!(refused.to_string().contains("lower-case"), "{refused}");
    }
}

#[tokio::test]
async fn a_url_that_makes_no_sense_is_refused() {
    let refused = PostgresStore::connect("postgres://:::").await.expect_err("refused");
    assert!(refused.to_string().contains("url"), "{refused}");
}
