//! Opening a PostgreSQL store: what is wrong is told with a code and a remedy, and the
//! connections are those that the documents promise.
#![cfg(all(feature = "testing", feature = "postgres"))]

use std::time::Duration;

use stepwell::core::id::{Queue, Tenant, WorkerId};
use stepwell::ports::{
    Hint, Lead, Leadership, Store, StoreError, Tenants, WorkerRegistration, Workers,
};
use stepwell::testing::TestDatabase;
use stepwell::{Code, PostgresOptions, PostgresStore};
use tokio_postgres::{Client, NoTls};

const TTL: Duration = Duration::from_mins(1);

async fn refused(options: PostgresOptions) -> (Code, String) {
    match PostgresStore::connect_with(options).await {
        Err(StoreError::Refused { code, message }) => (code, message),
        Err(StoreError::Unavailable { .. }) => panic!("an outage, not a refusal"),
        other => panic!("{other:?}"),
    }
}

/// A connection beside the store's.
#[expect(clippy::disallowed_methods, reason = "the connection lives on the test's runtime")]
async fn beside(database: &TestDatabase) -> Client {
    let (client, connection) =
        tokio_postgres::connect(&database.url(), NoTls).await.expect("the server answers");
    drop(tokio::spawn(connection));
    client
}

async fn run(client: &Client, sql: &str) {
    client.batch_execute(sql).await.expect(sql);
}

fn worker(name: &str) -> WorkerId {
    WorkerId::new(name).expect("a good name")
}

#[tokio::test]
async fn a_schema_name_that_needs_quotes_is_refused() {
    for schema in ["", "Upper", "a b", "x\"; drop schema public; --", "1st", "pg_own"] {
        let (code, message) = refused(PostgresOptions::new("host=h").schema(schema)).await;
        assert_eq!(code, Code::BadConfig);
        assert!(message.contains("lower-case"), "{message}");
    }
}

#[tokio::test]
async fn a_url_that_makes_no_sense_is_refused_without_showing_its_password() {
    for url in ["postgres://u:secret@:::", "no url", "postgres://u:secret@h/d?sslmode=perhaps", ""]
    {
        let (code, message) = refused(PostgresOptions::new(url)).await;
        assert_eq!(code, Code::BadConfig, "{url}");
        assert!(message.contains("url: ") && message.contains("postgres://user@host"), "{message}");
        assert!(!message.contains("secret"), "{message}");
    }
}

#[tokio::test]
async fn a_bad_direct_url_is_named_as_such() {
    let (code, message) = refused(PostgresOptions::new("host=h").direct("postgres://:::")).await;
    assert_eq!(code, Code::BadConfig);
    assert!(message.starts_with("direct url"), "{message}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_an_outage_with_a_remedy() {
    let missing = PostgresStore::connect("postgres://u@127.0.0.1:1/d").await.expect_err("nobody");
    assert!(matches!(missing, StoreError::Unavailable { .. }), "{missing:?}");
    assert!(missing.to_string().contains("check host and port"), "{missing}");
}

#[tokio::test]
async fn a_database_that_does_not_exist_is_refused() {
    let database = TestDatabase::create().await;
    let url = database.url().replace("stepwell_test_", "stepwell_none_");
    let (code, message) = refused(PostgresOptions::new(url)).await;
    assert_eq!(code, Code::NoSuchPlace);
    assert!(message.contains("create the database"), "{message}");
}

#[tokio::test]
async fn a_newer_schema_is_refused_and_left_alone() {
    let database = TestDatabase::create().await;
    let client = beside(&database).await;
    run(&client, "insert into stepwell.migration (version) values (9999)").await;
    let (code, message) = refused(database.options()).await;
    assert_eq!(code, Code::NewerSchema);
    assert!(message.contains("version 9999") && message.contains("newer program"), "{message}");
}

#[tokio::test]
async fn a_schema_that_is_not_there_is_refused_when_migrating_is_forbidden() {
    let database = TestDatabase::create().await;
    let options = database.options().schema("elsewhere").without_migration();
    let (code, message) = refused(options).await;
    assert_eq!(code, Code::OlderSchema);
    assert!(message.contains("stepwell migrate"), "{message}");
    let client = beside(&database).await;
    let sql = "select 1 from pg_namespace where nspname = 'elsewhere'";
    assert!(client.query_opt(sql, &[]).await.expect("it answers").is_none());
}

#[tokio::test]
async fn the_printed_migration_makes_the_schema_that_programs_accept() {
    let database = TestDatabase::create().await;
    let client = beside(&database).await;
    run(&client, &PostgresStore::migration_script("by_hand", 0).expect("a good name")).await;
    let options = database.options().schema("by_hand").without_migration();
    let store = PostgresStore::connect_with(options).await.expect("the schema is up to date");
    assert!(store.prepare_every_statement().await.expect("all fit") > 50);
}

#[tokio::test]
async fn two_migrators_at_once_make_one_schema() {
    let database = TestDatabase::create().await;
    let connect = || PostgresStore::connect_with(database.options().schema("both").poll_only());
    let (one, other) = tokio::join!(connect(), connect());
    one.expect("one migrates");
    other.expect("the other waits for it");
}

#[tokio::test]
async fn a_server_that_takes_no_writes_is_refused() {
    let database = TestDatabase::create().await;
    let client = beside(&database).await;
    let name: String =
        client.query_one("select current_database()", &[]).await.expect("it answers").get(0);
    run(&client, &format!("alter database {name} set default_transaction_read_only = on")).await;
    let (code, message) = refused(database.options()).await;
    assert_eq!(code, Code::ReadOnlyStore);
    assert!(message.contains("primary"), "{message}");
}

#[tokio::test]
async fn commits_are_durable_whatever_the_server_prefers() {
    let database = TestDatabase::create().await;
    let client = beside(&database).await;
    let name: String =
        client.query_one("select current_database()", &[]).await.expect("it answers").get(0);
    run(&client, &format!("alter database {name} set synchronous_commit = off")).await;
    for options in [database.options(), database.options().pooled()] {
        let store = PostgresStore::connect_with(options).await.expect("it opens");
        let setting = store.setting_within_a_transaction("synchronous_commit").await;
        assert_eq!(setting.expect("it answers"), "on");
        let setting = store.setting_within_a_transaction("statement_timeout").await;
        assert_eq!(setting.expect("it answers"), "30s");
        let setting = store.setting_within_a_transaction("idle_in_transaction_session_timeout");
        assert_eq!(setting.await.expect("it answers"), "5s");
    }
}

#[tokio::test]
async fn a_store_has_the_connections_its_documents_promise() {
    for connections_max in [1, 3] {
        has_connections(connections_max).await;
    }
}

async fn has_connections(connections_max: usize) {
    let database = TestDatabase::create().await;
    let options = database.options().connections_max(connections_max);
    let store = PostgresStore::connect_with(options).await.expect("it opens");
    let mut hints = store.hints();
    hints.given(Hint::Ready).await;
    let registration = WorkerRegistration {
        worker: worker("one"),
        queues: vec![Queue::default_queue()],
        services: Vec::new(),
        lease: TTL,
    };
    store.register_worker(registration).await.expect("it registers");
    let tenant = Tenant::new("t").expect("a good name");
    for _ in 0..5 {
        let (name, two) = (worker("one"), worker("two"));
        let ask = || store.tenant(&tenant);
        let answers = tokio::join!(ask(), ask(), ask(), ask(), ask(), ask());
        answers.5.expect("it answers");
        let answers = tokio::join!(store.heartbeat(&name, &[]), store.heartbeat(&name, &[]));
        answers.1.expect("it beats");
        let answers = tokio::join!(store.lead(&name, TTL), store.lead(&two, TTL));
        answers.1.expect("it follows");
    }
    let client = beside(&database).await;
    let sql = "select application_name, count(*) from pg_stat_activity \
               where datname = current_database() and application_name like 'stepwell %' \
               group by 1 order by 1";
    let rows = client.query(sql, &[]).await.expect("it answers");
    let counts: Vec<(String, i64)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    let [heartbeat, leader, listen, work] = counts.as_slice() else { panic!("{counts:?}") };
    assert_eq!(*heartbeat, ("stepwell heartbeat".into(), 1));
    assert_eq!(*leader, ("stepwell leader".into(), 1));
    assert_eq!(*listen, ("stepwell listen".into(), 1));
    assert_eq!(*work, ("stepwell work".into(), i64::try_from(connections_max).expect("a few")));
}

#[tokio::test]
async fn a_store_without_a_working_connection_is_refused_by_the_name_of_the_option() {
    let (code, message) = refused(PostgresOptions::new("").connections_max(0)).await;
    assert_eq!(code, Code::BadConfig);
    assert!(message.contains("connections_max is 0"), "{message}");
}

#[tokio::test]
async fn heartbeats_and_leading_go_on_while_every_working_connection_is_taken() {
    // FA7, FA8
    let database = TestDatabase::create().await;
    let options = database.options().connections_max(2).poll_only();
    let store = PostgresStore::connect_with(options).await.expect("it opens");
    let _held = store.hold_connections(2).await.expect("there are two");
    store.heartbeat(&worker("one"), &[]).await.expect("it beats");
    let lead = store.lead(&worker("one"), TTL).await.expect("it leads");
    assert!(matches!(lead, Lead::Leading(_)));
}

#[tokio::test]
async fn a_store_outlives_the_runtime_it_was_opened_on() {
    let database = TestDatabase::create().await;
    let options = database.options();
    let (opened, store) = tokio::sync::oneshot::channel();
    #[expect(clippy::disallowed_methods, reason = "a second runtime needs a thread")]
    let other = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("there is room for a runtime");
        let store = runtime.block_on(PostgresStore::connect_with(options)).expect("it opens");
        runtime.block_on(store.lead(&worker("one"), TTL)).expect("it leads");
        opened.send(store).expect("somebody waits for it");
    });
    let store = store.await.expect("it was opened");
    other.join().expect("it ended well");
    // The same connection serves another runtime.
    let lead = store.lead(&worker("one"), TTL).await.expect("it leads");
    assert!(matches!(lead, Lead::Leading(_)));
}
