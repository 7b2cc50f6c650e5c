//! Files that are damaged, deleted or replaced, before they are opened and while they are open.
#![cfg(all(feature = "testing", feature = "sqlite"))]

use std::fs;
use std::path::{Path, PathBuf};

use stepwell::core::decide::RunSeed;
use stepwell::core::id::{RunId, RunKey, Tenant};
use stepwell::core::workflow::{Draft, DraftStep, NodeKind, Placement, StepPolicy};
use stepwell::ports::{
    Definitions, MarkedDefinition, Payload, Runs, StartRequest, Starts, StoreError,
};
use stepwell::{Code, Error, SqliteOptions, SqliteStore};
use tempfile::TempDir;

/// A store with a workflow of one step.
struct Shop {
    store: SqliteStore,
    workflow: MarkedDefinition,
    path: PathBuf,
    folder: TempDir,
}

impl Shop {
    async fn new() -> Self {
        let folder = TempDir::new().expect("there is room for a file");
        let path = folder.path().join("shop.db");
        let store = SqliteStore::open(&path).await.expect("it opens");
        let (placement, policy) = (Placement::Explicit(Vec::new()), StepPolicy::default());
        let step = DraftStep { name: "step".to_owned(), kind: NodeKind::Step, placement, policy };
        let draft = Draft { workflow: "w".to_owned(), steps: vec![step], ..Draft::default() };
        let definition = draft.resolve().expect("a good workflow");
        let workflow = store.register(&definition).await.expect("it registers").marked();
        Self { store, workflow, path, folder }
    }

    async fn start(&self, key: u128) -> Result<(), StoreError> {
        let seed = RunSeed {
            key: RunKey(key),
            tenant: Tenant::new("acme").expect("a good name"),
            id: RunId::new(format!("run-{key}")).expect("a good name"),
            definition: self.workflow.id,
            deadline: None,
        };
        let (input, mark) = (Payload::empty(), self.workflow.mark);
        let request = StartRequest { seed, mark, input, input_digest: [0; 32] };
        self.store.start(vec![request]).await.map(drop)
    }

    /// A start that must not be acknowledged, since it would be lost.
    async fn is_noticed(&self, key: u128, file: &str) {
        let error = self.start(key).await.expect_err("it is not acknowledged");
        assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
        let words = error.to_string();
        assert!(words.contains(&format!("{file} was deleted or replaced")), "{words}");
        let told = Error::from(error);
        assert_eq!(told.code(), Code::StoreUnavailable);
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        self.folder.path().join(format!("shop.db{suffix}"))
    }
}

#[tokio::test]
async fn commits_to_a_file_that_was_deleted_are_not_acknowledged() {
    let shop = Shop::new().await;
    shop.start(1).await.expect("the file is there");
    let aside = shop.beside("-aside");
    fs::rename(&shop.path, &aside).expect("it is moved");
    shop.is_noticed(2, "shop.db").await;
    fs::rename(&aside, &shop.path).expect("it is moved back");
    shop.start(3).await.expect("the same file is there again");
    fs::remove_file(&shop.path).expect("it is deleted");
    shop.is_noticed(4, "shop.db").await;
}

#[tokio::test]
async fn commits_to_a_file_that_was_replaced_are_not_acknowledged() {
    let shop = Shop::new().await;
    shop.start(1).await.expect("the file is there");
    let other = Shop::new().await;
    drop(other.store);
    fs::copy(&other.path, shop.beside("-new")).expect("it is copied");
    fs::rename(shop.beside("-new"), &shop.path).expect("it takes the place");
    shop.is_noticed(2, "shop.db").await;
}

#[tokio::test]
async fn commits_whose_log_was_deleted_are_not_acknowledged() {
    let shop = Shop::new().await;
    shop.start(1).await.expect("the log is there");
    fs::remove_file(shop.beside("-wal")).expect("it is deleted");
    shop.is_noticed(2, "shop.db-wal").await;
    fs::write(shop.beside("-wal"), "another log").expect("it is written");
    shop.is_noticed(3, "shop.db-wal").await;
}

/// A file with a run in it, all in the file itself and none in its log.
async fn closed() -> (TempDir, PathBuf) {
    let Shop { store, path, folder, .. } = {
        let shop = Shop::new().await;
        shop.start(1).await.expect("it starts");
        shop
    };
    drop(store);
    let file = rusqlite::Connection::open(&path).expect("it opens");
    file.query_row("pragma wal_checkpoint(truncate)", [], |_| Ok(())).expect("it is moved");
    (folder, path)
}

/// Writes nonsense over a part of the file.
fn damage(path: &Path, bytes: std::ops::Range<usize>) {
    let mut file = fs::read(path).expect("it is read");
    let end = bytes.end.min(file.len());
    file[bytes.start..end].fill(0xA5);
    fs::write(path, file).expect("it is written");
}

fn is_told(error: &Error, words: &[&str]) {
    assert_eq!(error.code(), Code::DamagedStore, "{error}");
    for word in [&["SW0050", "damaged", "backup", ".recover"], words].concat() {
        assert!(error.to_string().contains(word), "{word:?} is missing in: {error}");
    }
}

#[tokio::test]
async fn a_damaged_file_is_told_when_it_is_opened() {
    let (_folder, path) = closed().await;
    // Behind the header, where the list of tables begins.
    damage(&path, 100..4_096);
    is_told(&SqliteStore::open(&path).await.expect_err("it is refused"), &["shop.db"]);
    for options in
        [SqliteOptions::new(&path).without_migration(), SqliteOptions::new(&path).read_only()]
    {
        is_told(&SqliteStore::open_with(options).expect_err("it is refused"), &["shop.db"]);
    }
}

#[tokio::test]
async fn a_damaged_file_is_told_when_what_is_damaged_is_read() {
    let (_folder, path) = closed().await;
    let file = rusqlite::Connection::open(&path).expect("it opens");
    let page = "select rootpage from sqlite_master where type = 'table' and name = 'run'";
    let page: u32 = file.query_row(page, [], |row| row.get("rootpage")).expect("it is there");
    let page = page as usize;
    drop(file);
    damage(&path, (page - 1) * 4_096..page * 4_096);
    let store = SqliteStore::open(&path).await.expect("what it needs is sound");
    let error = store.run(RunKey(1)).await.expect_err("it cannot be read");
    is_told(&Error::from(error), &[]);
}
