//! Noticing what other processes did to the file.

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
) -> std::io::Result<()> {
    let shared = Arc::downgrade(shared);
    threads::spawn("stepwell-sqlite-watch", move || watch(&shared, &connection, &definitions))
}

#[expect(clippy::disallowed_methods, reason = "SQLite tells nobody, so somebody has to look")]
fn watch(shared: &Weak<Shared>, connection: &Connection, definitions: &DefinitionCache) {
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
        for hint in [Hint::Ready, Hint::Timers, Hint::Ended, Hint::Claims] {
            shared.hints.give(hint);
        }
    }
}

/// Changes whenever policies do.
fn policies(connection: &Connection) -> Option<i64> {
    connection.query_row(statements::DEFINITION_REVISIONS, [], |row| row.get(0)).ok()
}

/// Changes whenever another connection has committed, our own writer's included.
fn version(connection: &Connection) -> Option<i64> {
    connection.query_row(statements::DATA_VERSION, [], |row| row.get(0)).ok()
}
