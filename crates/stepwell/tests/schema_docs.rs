//! `docs/schema.md` names every table, column, view and index that there is, and no other.
#![cfg(all(feature = "testing", feature = "sqlite", feature = "postgres"))]

mod support_postgres;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use stepwell::SqliteStore;
use support_postgres::{Schema, rows};

/// Columns by table or view.
type Columns = BTreeMap<String, BTreeSet<String>>;

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema.md");
    std::fs::read_to_string(path).expect("the page is there")
}

/// A part of the page, up to the next heading of the same rank.
fn section<'p>(page: &'p str, heading: &str) -> &'p str {
    let (_, rest) = page.split_once(heading).unwrap_or_else(|| panic!("no {heading:?}"));
    rest.split("\n## ").next().unwrap_or(rest)
}

/// The cells of a row of a table on the page.
fn cells(line: &str) -> Option<Vec<&str>> {
    let row = line.strip_prefix("| `")?;
    Some(row.trim_end_matches(" |").split(" | ").map(|cell| cell.trim_matches('`')).collect())
}

/// What the page says about tables in one dialect: the second cell is PostgreSQL's type of the
/// column, the third SQLite's.
fn documented_tables(page: &str, dialect: usize) -> Columns {
    let mut columns = Columns::new();
    for part in section(page, "\n## Tables\n").split("\n### ").skip(1) {
        let name = part.lines().next().expect("a heading has a name");
        for row in part.lines().filter_map(cells).filter(|row| row[dialect] != "–") {
            columns.entry(name.to_owned()).or_default().insert(row[0].to_owned());
        }
    }
    columns
}

/// What the page says about views. Where the dialects differ, both names stand in one cell.
fn documented_views(page: &str, dialect: usize) -> Columns {
    let mut columns = Columns::new();
    for part in section(page, "\n## Views\n").split("\n### ").skip(1) {
        let name = part.lines().next().expect("a heading has a name");
        for row in part.lines().filter_map(cells) {
            let names: Vec<&str> = row[0].split("`, `").collect();
            let column = names.get(dialect - 1).or(names.first()).expect("a column has a name");
            columns.entry(name.to_owned()).or_default().insert((*column).to_owned());
        }
    }
    columns
}

fn documented_indexes(page: &str, other_dialect: &str) -> BTreeSet<String> {
    let rows = section(page, "\n## Indexes\n").lines().filter_map(cells);
    rows.filter(|row| row[1] != other_dialect).map(|row| row[0].to_owned()).collect()
}

/// Lines of `table | column` as a map.
fn by_table(lines: Vec<String>) -> Columns {
    let mut columns = Columns::new();
    for line in lines {
        let (table, column) = line.split_once(" | ").expect("two columns were asked for");
        columns.entry(table.to_owned()).or_default().insert(column.to_owned());
    }
    columns
}

#[tokio::test]
async fn every_table_view_and_index_of_postgres_is_documented() {
    let (page, schema) = (page(), Schema::make("docs").await);
    let columns = |kind: &str| {
        format!(
            "select table_name, column_name from information_schema.columns join \
             information_schema.tables using (table_schema, table_name) \
             where table_schema = current_schema() and table_type = '{kind}'"
        )
    };
    let tables = by_table(rows(&schema.client, &columns("BASE TABLE")).await);
    let views = by_table(rows(&schema.client, &columns("VIEW")).await);
    let indexes = "select indexrelid::regclass::text from pg_index \
        join pg_class on pg_class.oid = indrelid \
        where relnamespace = current_schema()::regnamespace \
        and not exists (select 1 from pg_constraint where conindid = indexrelid)";
    let indexes: BTreeSet<String> = rows(&schema.client, indexes).await.into_iter().collect();
    schema.remove().await;
    assert_eq!(documented_tables(&page, 1), tables, "edit docs/schema.md");
    assert_eq!(documented_views(&page, 1), views, "edit docs/schema.md");
    assert_eq!(documented_indexes(&page, "SQLite"), indexes, "edit docs/schema.md");
}

#[tokio::test]
async fn every_table_view_and_index_of_sqlite_is_documented() {
    let page = page();
    let folder = tempfile::TempDir::new().expect("there is room for a file");
    let path = folder.path().join("stepwell.db");
    drop(SqliteStore::open(path.clone()).await.expect("a fresh file opens"));
    let file = rusqlite::Connection::open(path).expect("it opens again");
    let lines = |sql: &str| -> Vec<String> {
        let mut statement = file.prepare(sql).expect("the catalogue is there");
        let found = statement.query_map([], |row| row.get(0)).expect("it is read");
        found.map(|line| line.expect("a row is read")).collect()
    };
    let columns = |kind: &str| {
        lines(&format!(
            "select m.name || ' | ' || c.name from sqlite_master m, pragma_table_info(m.name) c \
             where m.type = '{kind}' and m.name not like 'sqlite_%'"
        ))
    };
    let indexes = lines("select name from sqlite_master where type = 'index' and sql is not null");
    assert_eq!(documented_tables(&page, 2), by_table(columns("table")), "edit docs/schema.md");
    assert_eq!(documented_views(&page, 2), by_table(columns("view")), "edit docs/schema.md");
    let indexes: BTreeSet<String> = indexes.into_iter().collect();
    assert_eq!(documented_indexes(&page, "PostgreSQL"), indexes, "edit docs/schema.md");
}
