//! Noticing what other processes did to the file.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use rusqlite::Connection;

use super::transaction::DefinitionCache;
use super::{Shared, statements, threads};
use crate::ports::Hint;

/// Pauses between two looks: short while the file changes, longer while it does not.
const PAUSE_MIN: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// Starts the thread that looks whether the file has changed. It ends with the store.
pub(super) fn start(
    shared: &Arc<Shared>,
    connection: Connection,
    definitions: DefinitionCache,
    told: Arc<AtomicI64>,
) -> std::io::Result<()> {
    let shared = Arc::downgrade(shared);
    let work = move || watch(&shared, &connection, &definitions, &told);
    threads::spawn("stepwell-sqlite-watch", work)
}

#[expect(clippy::disallowed_methods, reason = "SQLite tells nobody, so somebody has to look")]
fn watch(
    shared: &Weak<Shared>,
    connection: &Connection,
    definitions: &DefinitionCache,
    told: &AtomicI64,
) {
    let mut pause = PAUSE_MIN;
    let mut seen = version(connection);
    let mut seen_policies = policies(connection);
    loop {
        std::thread::sleep(pause);
        let Some(shared) = shared.upgrade() else { return };
        let found = version(connection);
        if found == seen {
            pause = (pause * 2).min(PAUSE_MAX);
            continue;
        }
        seen = found;
        pause = PAUSE_MIN;
        let found_policies = policies(connection);
        if found_policies != seen_policies {
            // Perhaps by another process: what is read next is fresh.
            definitions.lock().expect("no holder of the lock panics").clear();
            seen_policies = found_policies;
        }
        // Our own commits change the file as well. Hinting at them would make the engine look,
        // which commits again, and it would never rest.
        let Some(found_told) = read_told(connection) else { continue };
        if told.fetch_max(found_told, Ordering::AcqRel) >= found_told {
            continue;
        }
        for hint in Hint::ALL {
            shared.hints.give(hint);
        }
    }
}

/// How often there was something to see.
fn read_told(connection: &Connection) -> Option<i64> {
    connection.query_row(statements::READ_TOLD, [], |row| row.get(0)).ok()
}

/// Changes whenever policies do.
fn policies(connection: &Connection) -> Option<i64> {
    connection.query_row(statements::DEFINITION_REVISIONS, [], |row| row.get(0)).ok()
}

/// Changes whenever another connection has committed, our own writer's included.
fn version(connection: &Connection) -> Option<i64> {
    connection.query_row(statements::DATA_VERSION, [], |row| row.get(0)).ok()
}
