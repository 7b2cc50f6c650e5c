//! A file that was put back to an earlier state in place, as `.restore` of SQLite's shell does,
//! under processes that have been working on it.
#![cfg(all(feature = "testing", feature = "sqlite"))]

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use stepwell::{Engine, SqliteStore, Workflow, WorkflowRef};
use tempfile::TempDir;

/// A workflow whose one step says whose code it is.
fn named(name: &'static str) -> Workflow<(), String> {
    let mut w = Workflow::define::<(), ()>(name);
    let a = w.step("a").run(async move |_| Ok(name.to_owned()));
    w.output(a)
}

/// An engine of a process of its own, with these workflows.
async fn process(
    path: &Path,
    workflows: &[&'static str],
) -> (Engine, Vec<WorkflowRef<(), String>>) {
    let store = SqliteStore::open(path).await.expect("the file opens");
    let mut builder = Engine::builder(store).default_tenant("acme");
    let flows = workflows.iter().map(|name| builder.workflow(named(name))).collect();
    (builder.start().await.expect("the engine starts"), flows)
}

/// Keeps what is in a file now.
fn dump(path: &Path) -> PathBuf {
    let dump = path.with_extension("dump");
    let file = Connection::open(path).expect("it opens");
    file.execute("vacuum into ?1", [dump.to_str()]).expect("it is copied");
    dump
}

/// Puts back what was kept, in one transaction.
fn restore(path: &Path, dump: &Path) {
    let mut file = Connection::open(path).expect("it opens");
    file.execute("attach ?1 as dump", [dump.to_str()]).expect("it is attached");
    file.pragma_update(None, "foreign_keys", false).expect("it is a setting");
    let restore = file.transaction().expect("a transaction begins");
    let tables: Vec<String> = {
        let sql = "select name from main.sqlite_schema where type = 'table'";
        let mut names = restore.prepare(sql).expect("it is a statement");
        let names = names.query_map([], |row| row.get(0)).expect("it has rows");
        names.collect::<Result<_, _>>().expect("they are names")
    };
    for table in tables {
        let copy = format!(
            "delete from main.{table}; insert into main.{table} select * from dump.{table}"
        );
        restore.execute_batch(&copy).expect("the rows make sense");
    }
    restore.commit().expect("it is committed");
}

#[tokio::test]
async fn whatever_came_after_a_dump_is_forgotten_when_it_is_restored() {
    // FD11
    let folder = TempDir::new().expect("a test machine has a folder for temporary files");
    let path = folder.path().join("restored.db");
    let (early, flows) = process(&path, &["early"]).await;
    assert_eq!(early.run(&flows[0], ()).id("one").await.expect("it ends"), "early");
    let dump = dump(&path);
    let (late, of_late) = process(&path, &["late"]).await;
    assert_eq!(late.run(&of_late[0], ()).id("lost").await.expect("it ends"), "late");
    restore(&path, &dump);
    // It gets the number that the other had.
    let (strange, of_strange) = process(&path, &["strange"]).await;
    assert_eq!(strange.run(&of_strange[0], ()).id("two").await.expect("it ends"), "strange");
    assert_eq!(late.run(&of_late[0], ()).id("three").await.expect("it ends"), "late");
    assert_eq!(early.run(&flows[0], ()).id("four").await.expect("it ends"), "early");
    for engine in [early, late, strange] {
        engine.stop_gracefully().await;
    }
}
