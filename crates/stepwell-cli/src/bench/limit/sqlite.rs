//! The limit of SQLite: one connection, a write-ahead log that is synced at every commit,
//! prepared statements.

use rusqlite::{Connection, params};
use tempfile::TempDir;

use super::{BATCH, Limit};
use crate::bench::measure;
use crate::commands::Failure;

const TABLES: &str = "
    create table task (
        run blob not null, node integer not null, state integer not null,
        attempt integer not null, queued_at integer not null, started_at integer, token blob,
        primary key (run, node)
    ) without rowid;
    create table queue (order_key integer primary key, run blob not null, node integer not null);
    create table event (
        run blob not null, number integer not null, node integer not null, at integer not null,
        kind integer not null, primary key (run, number)
    ) without rowid;";

pub(super) async fn measure(n_batches: usize) -> Result<Limit, Failure> {
    let folder = TempDir::with_prefix("stepwell-bench-limit-")?;
    let path = folder.path().join("limit.db");
    let worked = measure::spawn_blocking(move || write(&path, n_batches)).await;
    let tasks_per_second = worked
        .map_err(std::io::Error::from)?
        .map_err(|error| Failure::Unexpected(format!("sqlite: {error}")))?;
    folder.close()?;
    Ok(Limit { tasks_per_second, connections: 1 })
}

fn write(path: &std::path::Path, n_batches: usize) -> rusqlite::Result<f64> {
    let connection = Connection::open(path)?;
    connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.execute_batch(TABLES)?;
    let began_at = measure::now();
    for batch in 0..n_batches {
        in_transaction(&connection, || insert(&connection, batch * BATCH))?;
        let claimed = in_transaction(&connection, || claim(&connection))?;
        in_transaction(&connection, || complete(&connection, &claimed))?;
    }
    Ok(measure::rate((n_batches * BATCH) as u64, began_at.elapsed()))
}

fn in_transaction<T>(
    connection: &Connection,
    work: impl FnOnce() -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    connection.prepare_cached("begin immediate")?.execute([])?;
    let done = work()?;
    connection.prepare_cached("commit")?.execute([])?;
    Ok(done)
}

fn insert(connection: &Connection, first: usize) -> rusqlite::Result<()> {
    let mut task = connection.prepare_cached(
        "insert into task (run, node, state, attempt, queued_at) \
         values (?1, 0, 1, 0, 1700000000000000)",
    )?;
    let mut place =
        connection.prepare_cached("insert into queue (order_key, run, node) values (?1, ?2, 0)")?;
    for number in first..first + BATCH {
        let run = (number as u128).to_be_bytes();
        task.execute([run])?;
        place.execute(params![(number as u64).cast_signed(), run])?;
    }
    Ok(())
}

fn claim(connection: &Connection) -> rusqlite::Result<Vec<[u8; 16]>> {
    let mut take = connection.prepare_cached(
        "delete from queue where order_key in \
         (select order_key from queue order by order_key limit ?1) returning run",
    )?;
    let taken: Vec<[u8; 16]> = take
        .query_map([(BATCH as u64).cast_signed()], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let mut mark = connection.prepare_cached(
        "update task set state = 2, attempt = 1, started_at = 1700000000000001, token = ?1 \
         where run = ?1 and node = 0",
    )?;
    for run in &taken {
        mark.execute([run])?;
    }
    Ok(taken)
}

fn complete(connection: &Connection, runs: &[[u8; 16]]) -> rusqlite::Result<()> {
    let mut mark = connection.prepare_cached(
        "update task set state = 5, token = null where run = ?1 and node = 0 and token = ?1",
    )?;
    let mut event = connection.prepare_cached(
        "insert into event (run, number, node, at, kind) values (?1, 2, 0, 1700000000000002, 5)",
    )?;
    for run in runs {
        mark.execute([run])?;
        event.execute([run])?;
    }
    Ok(())
}
