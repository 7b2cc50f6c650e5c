//! Noticing what other processes did to the file.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use rusqlite::Connection;

use super::group_commit::told_by_others;
use super::spawn;
use crate::outbound::sqlite::cache::DefinitionCache;
use crate::outbound::sqlite::file::{File, Statements};
use crate::outbound::sqlite::rows;
use crate::ports::{HintSender, TrafficCounter};

/// Pauses between two looks: short while the file changes, longer while it does not.
const PAUSE_MIN: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// What the watching thread works with besides its connection.
pub(crate) struct Watch<S> {
    /// The store; the thread ends when nobody holds it any more.
    pub(crate) store: Weak<S>,
    pub(crate) hints: HintSender,
    pub(crate) definitions: DefinitionCache,
    /// How many commits woke other processes, as far as this one knows.
    pub(crate) n_wakes: Arc<AtomicI64>,
}

/// Starts the thread that looks whether the file has changed.
pub(crate) fn start_watch<S: Send + Sync + 'static>(
    connection: Connection,
    watch: Watch<S>,
) -> std::io::Result<()> {
    spawn("stepwell-sqlite-watch", move || watch_loop(&connection, &watch))
}

#[expect(clippy::disallowed_methods, reason = "SQLite tells nobody, so somebody has to look")]
fn watch_loop<S>(connection: &Connection, watch: &Watch<S>) {
    let statements = Statements::of(connection, rows::TABLES);
    // Looks are not counted: they belong to no call.
    let file = File { statements: &statements, traffic: &TrafficCounter::default() };
    let version = || rows::store::data_version(file).ok().flatten();
    let revision = || rows::store::revision(file).ok().flatten();
    let mut pause = PAUSE_MIN;
    let mut seen = version();
    loop {
        std::thread::sleep(pause);
        let Some(_store) = watch.store.upgrade() else { return };
        let found = version();
        if found == seen {
            pause = (pause * 2).min(PAUSE_MAX);
            continue;
        }
        seen = found;
        pause = PAUSE_MIN;
        if let Some(revision) = revision() {
            watch.definitions.keep_for(revision);
        }
        // Our own commits change the file as well. Hinting at them would make the engine look,
        // which commits again, and it would never rest.
        let Some(found_wakes) = rows::store::n_wakes(file).ok().flatten() else { continue };
        let known_wakes = watch.n_wakes.fetch_max(found_wakes, Ordering::AcqRel);
        if known_wakes >= found_wakes {
            continue;
        }
        watch.hints.give_all(&told_by_others(file, known_wakes));
    }
}
