//! Reading the views of either store.

use std::sync::Arc;

use rusqlite::types::ValueRef;
use stepwell::ports::DynStore;
use stepwell::testing::ManualClock;
use stepwell::testing::conformance::World;
use stepwell::{SqliteOptions, SqliteStore};
use tempfile::TempDir;

use super::support_postgres::{self, Schema};

/// Reads views of either store.
pub(crate) enum Reader {
    Postgres(Schema),
    Sqlite(rusqlite::Connection, #[expect(dead_code, reason = "the file goes with it")] TempDir),
}

impl Reader {
    /// Rows as text, columns separated by ` | `, with `-` for null.
    pub(crate) async fn rows(&self, sql: &str) -> Vec<String> {
        match self {
            Self::Postgres(schema) => support_postgres::rows(&schema.client, sql).await,
            Self::Sqlite(file, _) => sqlite_rows(file, sql),
        }
    }
}

fn sqlite_rows(file: &rusqlite::Connection, sql: &str) -> Vec<String> {
    let mut statement = file.prepare(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let n_columns = statement.column_count();
    let text = |value: ValueRef<'_>| match value {
        ValueRef::Null => "-".to_owned(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
        ValueRef::Blob(_) => "a blob".to_owned(),
    };
    let row = |row: &rusqlite::Row<'_>| {
        let columns: Vec<String> =
            (0..n_columns).map(|ix| row.get_ref(ix).map(text)).collect::<Result<_, _>>()?;
        Ok(columns.join(" | "))
    };
    let rows = statement.query_map([], row).expect("the view is read");
    rows.map(|row| row.expect("a row is read")).collect()
}

pub(crate) async fn postgres() -> (World, Reader) {
    let schema = Schema::make("views").await;
    let store: DynStore = Arc::new(schema.store.clone());
    (World::new(store, Arc::clone(&schema.clock)), Reader::Postgres(schema))
}

pub(crate) fn sqlite() -> (World, Reader) {
    let folder = TempDir::new().expect("a test machine has a folder for temporary files");
    let path = folder.path().join("stepwell.db");
    let clock = Arc::new(ManualClock::new());
    let store = SqliteStore::with_clock(SqliteOptions::new(path.clone()), Arc::clone(&clock) as _);
    let store: DynStore = Arc::new(store.expect("a fresh file opens"));
    let file = rusqlite::Connection::open(path).expect("it opens again");
    (World::new(store, clock), Reader::Sqlite(file, folder))
}
