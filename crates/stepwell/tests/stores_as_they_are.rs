//! Opening a store as it is: nothing is made or migrated, and whoever only reads writes nothing.
//! What is wrong is told with a code, and a remedy that names the command.
#![cfg(all(feature = "testing", feature = "sqlite", feature = "postgres"))]

use std::path::{Path, PathBuf};

use stepwell::core::id::Tenant;
use stepwell::ports::{Runs, Tenants};
use stepwell::testing::TestDatabase;
use stepwell::{
    Code, Error, PostgresOptions, PostgresStore, RunFilter, SqliteOptions, SqliteStore,
    TenantSettings,
};
use tempfile::TempDir;
use tokio_postgres::{Client, NoTls};

fn folder() -> (TempDir, PathBuf) {
    let folder = TempDir::new().expect("there is room for a file");
    let path = folder.path().join("shop.db");
    (folder, path)
}

/// A store in a file, closed again. Its threads end a moment later, which the tests do not mind.
async fn make(path: &Path) {
    drop(SqliteStore::open(path).await.expect("it opens"));
}

fn read_only(path: &Path) -> Result<SqliteStore, Error> {
    SqliteStore::open_with(SqliteOptions::new(path).read_only())
}

/// Both ways of opening a file as it is refuse it alike.
fn refused(path: &Path) -> (Code, String) {
    let read = read_only(path).expect_err("it is refused");
    let work = SqliteStore::open_with(SqliteOptions::new(path).without_migration());
    assert_eq!(work.expect_err("it is refused").to_string(), read.to_string());
    (read.code(), read.to_string())
}

fn names(folder: &TempDir) -> Vec<String> {
    let entries = std::fs::read_dir(folder.path()).expect("it is there");
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.expect("it is listed").file_name();
    let mut names: Vec<_> = entries.map(|entry| name(entry).into_string().expect("text")).collect();
    names.sort();
    names
}

fn sql(path: &Path, sql: &str) {
    let connection = rusqlite::Connection::open(path).expect("it opens");
    connection.execute_batch(sql).expect(sql);
}

fn weight(weight: u32) -> TenantSettings {
    TenantSettings { weight, ..TenantSettings::default() }
}

fn tenant() -> Tenant {
    Tenant::new("bakery").expect("a good name")
}

#[test]
fn a_file_that_is_not_there_is_refused_and_not_made() {
    let (folder, path) = folder();
    let (code, message) = refused(&path);
    assert_eq!(code, Code::NoSuchPlace);
    let command = format!("`stepwell migrate --store {}`", path.display());
    assert!(message.contains(&command), "{message}");
    assert_eq!(names(&folder), [] as [&str; 0]);
}

#[test]
fn a_file_in_a_folder_that_is_not_there_is_refused_and_nothing_is_made() {
    let (folder, _) = folder();
    let (code, message) = refused(&folder.path().join("none").join("shop.db"));
    assert_eq!(code, Code::NoSuchPlace);
    assert!(message.contains("folder"), "{message}");
    assert_eq!(names(&folder), [] as [&str; 0]);
}

#[test]
fn a_file_of_another_kind_is_refused_and_left_as_it_is() {
    let (folder, path) = folder();
    for text in ["x".to_owned(), "dear diary, ".repeat(100)] {
        std::fs::write(&path, &text).expect("it is written");
        let (code, message) = refused(&path);
        assert_eq!(code, Code::NotAStore, "{message}");
        let made = SqliteStore::open_with(SqliteOptions::new(&path)).expect_err("not even then");
        assert_eq!(made.code(), Code::NotAStore, "{made}");
        assert_eq!(std::fs::read_to_string(&path).expect("it is read"), text);
        assert_eq!(names(&folder), ["shop.db"]);
    }
    assert_eq!(refused(folder.path()).0, Code::NotAStore);
}

#[test]
fn a_database_of_another_program_is_refused_and_left_as_it_is() {
    let (folder, path) = folder();
    sql(&path, "create table diary (entry text); insert into diary values ('dear diary')");
    let before = std::fs::read(&path).expect("it is read");
    let (code, message) = refused(&path);
    assert_eq!(code, Code::NotAStore);
    assert!(message.contains("another program"), "{message}");
    assert_eq!(std::fs::read(&path).expect("it is read"), before);
    assert_eq!(names(&folder), ["shop.db"]);
}

#[test]
fn an_empty_file_is_refused_with_the_command_that_makes_tables() {
    let (folder, path) = folder();
    std::fs::write(&path, "").expect("it is written");
    let (code, message) = refused(&path);
    assert_eq!(code, Code::OlderSchema);
    assert!(message.contains("no tables yet; run `stepwell migrate --store "), "{message}");
    assert_eq!(std::fs::read(&path).expect("it is read"), b"");
    assert_eq!(names(&folder), ["shop.db"]);
}

#[tokio::test]
async fn older_and_newer_files_are_refused() {
    let (_folder, path) = folder();
    make(&path).await;
    sql(&path, "delete from stepwell_migration");
    let (code, message) = refused(&path);
    assert_eq!(code, Code::OlderSchema);
    assert!(message.contains("version 0") && message.contains("`stepwell migrate"), "{message}");
    sql(&path, "insert into stepwell_migration values (99, 0)");
    let (code, message) = refused(&path);
    assert_eq!(code, Code::NewerSchema);
    assert!(message.contains("newer program"), "{message}");
}

#[tokio::test]
async fn a_file_that_is_opened_to_be_read_takes_no_writes() {
    let (_folder, path) = folder();
    make(&path).await;
    let store = read_only(&path).expect("it opens");
    let page = store.list(&RunFilter::default(), None, 10).await.expect("it is read");
    assert!(page.runs.is_empty());
    let write = store.set_tenant(&tenant(), weight(2)).await.expect_err("nothing is written");
    assert_eq!(Error::from(write).code(), Code::ReadOnlyStore);
}

#[tokio::test]
async fn what_others_write_is_seen_by_those_who_only_read() {
    let (_folder, path) = folder();
    let writer = SqliteStore::open(&path).await.expect("it opens");
    let reader = read_only(&path).expect("it opens");
    assert_eq!(reader.tenant(&tenant()).await.expect("it is read"), None);
    writer.set_tenant(&tenant(), weight(2)).await.expect("it is written");
    let seen = reader.tenant(&tenant()).await.expect("it is read").expect("it is there");
    assert_eq!(seen.settings.weight, 2);
}

#[tokio::test]
async fn a_file_that_is_there_is_worked_on_without_a_migration() {
    let (_folder, path) = folder();
    make(&path).await;
    let options = SqliteOptions::new(&path).without_migration();
    let store = SqliteStore::open_with(options).expect("it opens");
    store.set_tenant(&tenant(), weight(2)).await.expect("it is written");
}

#[expect(clippy::disallowed_methods, reason = "the connection lives on the test's runtime")]
async fn beside(database: &TestDatabase) -> Client {
    let (client, connection) =
        tokio_postgres::connect(&database.url(), NoTls).await.expect("the server answers");
    drop(tokio::spawn(connection));
    client
}

async fn postgres_refused(options: PostgresOptions) -> (Code, String) {
    let error = PostgresStore::connect_with(options.read_only()).await.expect_err("it is refused");
    let error = Error::from(error);
    (error.code(), error.to_string())
}

#[tokio::test]
async fn postgres_schemas_that_are_not_there_are_refused_and_not_made() {
    let database = TestDatabase::create().await;
    let (code, message) = postgres_refused(database.options().schema("elsewhere")).await;
    assert_eq!(code, Code::OlderSchema);
    assert!(message.contains("`stepwell migrate --store URL --schema elsewhere`"), "{message}");
    let find = "select 1 from pg_namespace where nspname = 'elsewhere'";
    let found = beside(&database).await.query_opt(find, &[]).await.expect("it answers");
    assert!(found.is_none());
}

#[tokio::test]
async fn postgres_schemas_of_another_version_are_refused() {
    let database = TestDatabase::create().await;
    let client = beside(&database).await;
    let run = async |sql: &str| client.batch_execute(sql).await.expect("it answers");
    run("insert into stepwell.migration (version) values (9999)").await;
    assert_eq!(postgres_refused(database.options()).await.0, Code::NewerSchema);
    run("delete from stepwell.migration").await;
    let (code, message) = postgres_refused(database.options()).await;
    assert_eq!(code, Code::OlderSchema);
    assert!(message.contains("`stepwell migrate --store URL`"), "{message}");
}

#[tokio::test]
async fn postgres_servers_that_take_no_writes_can_be_read() {
    let database = TestDatabase::create().await;
    let client = beside(&database).await;
    let name = client.query_one("select current_database()", &[]).await.expect("it answers");
    let name: String = name.get(0);
    let close = format!("alter database {name} set default_transaction_read_only = on");
    client.batch_execute(&close).await.expect("it answers");
    let options = database.options().poll_only().read_only();
    let store = PostgresStore::connect_with(options).await.expect("it can be read");
    let page = store.list(&RunFilter::default(), None, 10).await.expect("it is read");
    assert!(page.runs.is_empty());
}

#[tokio::test]
async fn postgres_stores_that_are_opened_to_be_read_take_no_writes() {
    let database = TestDatabase::create().await;
    let options = database.options().poll_only().read_only();
    let store = PostgresStore::connect_with(options).await.expect("it can be read");
    let write = store.set_tenant(&tenant(), weight(2)).await;
    assert!(write.is_err(), "the server refuses it");
    assert_eq!(store.tenant(&tenant()).await.expect("it is read"), None);
}
