//! Stores that cannot be read are refused with a code and a remedy, and left as they are.

use std::path::{Path, PathBuf};

use stepwell::testing::TestDatabase;
use stepwell::{PostgresStore, SqliteStore};
use tempfile::TempDir;

use crate::command::{stderr, stdout, stepwell, stepwell_on};
use crate::story::{Kind, Story};

/// Both commands that read, on this store.
fn assert_refused(store: &[&str], code: &str, remedy: &str) {
    for command in [&["runs"][..], &["show", "bakery/order-1"], &["runs", "--json"]] {
        let assert = stepwell(&[command, &["--store"], store].concat()).code(1);
        let text = stderr(&assert);
        assert!(text.starts_with(&format!("error: {code}: ")), "{text}");
        assert!(text.contains(remedy), "{remedy:?} is missing in {text}");
        assert!(text.contains(&format!("hint: stepwell explain {code}")), "{text}");
        assert_eq!(stdout(&assert), "");
    }
}

fn folder() -> (TempDir, PathBuf) {
    let folder = TempDir::new().expect("there is room for a file");
    let path = folder.path().join("shop.db");
    (folder, path)
}

/// The files of a folder with their contents.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = std::fs::read_dir(folder).expect("it is there");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("it is listed").path()).collect();
    paths.sort();
    let read = |path: PathBuf| (path.clone(), std::fs::read(path).unwrap_or_default());
    paths.into_iter().map(read).collect()
}

#[test]
fn a_file_that_is_not_there_is_refused_and_not_made() {
    let (folder, path) = folder();
    let store = path.to_str().expect("a plain path");
    let command = format!("`stepwell migrate --store {store}`");
    assert_refused(&[store], "SW0033", &command);
    let deeper = folder.path().join("none").join("shop.db");
    assert_refused(&[deeper.to_str().expect("a plain path")], "SW0033", "no such folder");
    assert_eq!(files(folder.path()), []);
}

#[test]
fn a_file_that_is_no_store_is_refused_and_left_as_it_is() {
    let (folder, path) = folder();
    let store = path.to_str().expect("a plain path");
    for (content, code, remedy) in [
        ("dear diary".to_owned(), "SW0032", "give the path of a store"),
        ("dear diary, ".repeat(1_000), "SW0032", "give the path of a store"),
        (String::new(), "SW0030", "run `stepwell migrate --store "),
    ] {
        std::fs::write(&path, &content).expect("it is written");
        assert_refused(&[store], code, remedy);
        assert_eq!(files(folder.path()), [(path.clone(), content.into_bytes())]);
    }
    let place = folder.path().to_str().expect("a plain path");
    assert_refused(&[place], "SW0032", "this is a folder");
}

#[tokio::test]
async fn an_older_and_a_newer_file_are_refused_and_not_migrated() {
    let (_folder, path) = folder();
    drop(SqliteStore::open(&path).await.expect("it opens"));
    let store = path.to_str().expect("a plain path");
    let connection = rusqlite::Connection::open(&path).expect("it opens");
    let count = "select count(*) from stepwell_migration";
    let n_migrations =
        || connection.query_row(count, [], |row| row.get::<_, i64>(0)).expect("it is counted");
    connection.execute("delete from stepwell_migration", []).expect("it is deleted");
    assert_refused(&[store], "SW0030", &format!("`stepwell migrate --store {store}`"));
    assert_eq!(n_migrations(), 0);
    connection.execute("insert into stepwell_migration values (99, 0)", []).expect("it is stored");
    assert_refused(&[store], "SW0029", "use a newer program");
    assert_eq!(n_migrations(), 1);
}

#[test]
fn looking_leaves_a_file_as_it_is() {
    let story = Story::tell(Kind::Sqlite);
    let folder = Path::new(&story.store).parent().expect("it lies in a folder");
    // Beside the database and its log lies an index, in which SQLite notes who reads.
    let kept = || {
        let is_kept = |(path, _): &(PathBuf, _)| !path.to_string_lossy().ends_with("-shm");
        files(folder).into_iter().filter(is_kept).collect::<Vec<_>>()
    };
    let before = kept();
    for args in [&["runs"][..], &["show", "florist/open", "--payloads"]] {
        stepwell_on(&story.store, args).success();
    }
    assert!(before == kept(), "looking changed a file");
}

#[tokio::test]
async fn postgres_schemas_that_are_not_there_are_refused_and_not_made() {
    let database = TestDatabase::create().await;
    let remedy = "run `stepwell migrate --store URL --schema elsewhere`";
    assert_refused(&[&database.url(), "--schema", "elsewhere"], "SW0030", remedy);
    let client = connect(&database.url()).await;
    let find = "select 1 from pg_namespace where nspname = 'elsewhere'";
    assert!(client.query_opt(find, &[]).await.expect("it answers").is_none());
}

#[tokio::test]
async fn postgres_schemas_of_another_version_are_refused_and_not_migrated() {
    let database = TestDatabase::create().await;
    let client = connect(&database.url()).await;
    let run = async |sql: &str| client.batch_execute(sql).await.expect("it answers");
    run("insert into stepwell.migration (version) values (9999)").await;
    assert_refused(&[&database.url()], "SW0029", "use a newer program");
    run("delete from stepwell.migration").await;
    assert_refused(&[&database.url()], "SW0030", "run `stepwell migrate --store URL`");
    let count = "select count(*) from stepwell.migration";
    let n: i64 = client.query_one(count, &[]).await.expect("it answers").get(0);
    assert_eq!(n, 0);
}

#[tokio::test]
async fn postgres_databases_that_are_not_there_are_refused() {
    let database = TestDatabase::create().await;
    let url = database.url().replace("stepwell_test_", "stepwell_none_");
    assert_refused(&[&url], "SW0033", "create the database, or name another one");
    // Another schema than the usual one is found where it is.
    let options = database.options().schema("elsewhere").poll_only();
    drop(PostgresStore::connect_with(options).await.expect("it is made"));
    let elsewhere = ["runs", "--store", &database.url(), "--schema", "elsewhere"];
    assert_eq!(stdout(&stepwell(&elsewhere).success()), "no run was started yet\n");
}

#[test]
fn a_server_that_is_not_there_is_named_without_its_password() {
    let store = "postgres://shop:secret@127.0.0.1:1/shop";
    assert_refused(&[store], "SW0020", "check host and port");
    let text = stderr(&stepwell(&["runs", "--store", store]).code(1));
    assert!(!text.contains("secret"), "{text}");
    let help = stdout(&stepwell_on(store, &["runs", "--help"]).success());
    assert!(!help.contains("secret"), "{help}");
}

#[test]
fn a_store_has_to_be_named() {
    for command in [&["runs"][..], &["show", "bakery/order-1"]] {
        for assert in [stepwell(command), stepwell_on("", command)] {
            let text = stderr(&assert.code(2));
            assert!(text.contains("--store") && text.contains("STEPWELL_STORE"), "{text}");
        }
    }
}

async fn connect(url: &str) -> tokio_postgres::Client {
    let (client, connection) =
        tokio_postgres::connect(url, tokio_postgres::NoTls).await.expect("the server answers");
    #[expect(clippy::disallowed_methods, reason = "the driver needs a task for its connection")]
    tokio::spawn(connection);
    client
}
