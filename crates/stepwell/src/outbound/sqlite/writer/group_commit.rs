//! The thread that writes.
//!
//! It takes everything that waits into one transaction: a savepoint per call, one durable commit,
//! then the answers. While it commits, the next group gathers.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::Receiver;

use rusqlite::Connection;

use super::call::WaitingCall;
use super::{Calls, Transaction, TransactionParts, spawn};
use crate::outbound::sqlite::cache::RowCache;
use crate::outbound::sqlite::file::{
    BUSY_TIMEOUT, File, Place, Scope, Statements, SyncMode, WalFile,
};
use crate::outbound::sqlite::rows::store::Counters;
use crate::outbound::sqlite::rows::{self, int};
use crate::ports::{HintSender, HintSet, StoreError};

/// Most calls in one transaction.
const GROUP_MAX: usize = 256;

/// What the writing thread works with besides its connection.
pub(crate) struct WriterParts {
    pub(crate) parts: TransactionParts,
    pub(crate) hints: HintSender,
    /// How many commits woke other processes, as far as this one knows.
    pub(crate) n_wakes: Arc<AtomicI64>,
    pub(crate) sync_mode: SyncMode,
    pub(crate) place: Place,
    pub(crate) wal: WalFile,
}

/// Starts the one thread that writes.
pub(crate) fn start_writer(connection: Connection, parts: WriterParts) -> std::io::Result<Calls> {
    let (sender, calls) = Calls::channel();
    spawn("stepwell-sqlite-writer", move || write_loop(&connection, parts, &calls))?;
    Ok(sender)
}

fn write_loop(
    connection: &Connection,
    mut parts: WriterParts,
    calls: &Receiver<Box<dyn WaitingCall>>,
) {
    let statements = Statements::of(connection, rows::TABLES);
    while let Ok(first) = calls.recv() {
        let mut group = vec![first];
        group.extend(calls.try_iter().take(GROUP_MAX - 1));
        let durable = commit_group(&statements, &mut parts, &mut group);
        if let Ok(earned) = &durable {
            parts.hints.give_all(earned);
        }
        let durable = durable.map(drop);
        for call in group {
            call.answer(durable.clone());
        }
        parts.wal.keep_in_bounds(connection, BUSY_TIMEOUT);
    }
}

/// Runs a group of calls in one durable transaction. An error answers all of them: nothing is
/// acknowledged that is not on disk.
fn commit_group(
    statements: &Statements<'_>,
    writer: &mut WriterParts,
    group: &mut [Box<dyn WaitingCall>],
) -> Result<HintSet, StoreError> {
    writer.parts.traffic.transaction();
    let must_last = group.iter().any(|call| call.must_last());
    writer.sync_mode.wait_at_commit(statements.connection, must_last)?;
    let committed = try_commit(statements, writer, group);
    match committed {
        Ok(_) => writer.parts.cache.trim(),
        // What it says may not be in the file.
        Err(_) => writer.parts.cache = RowCache::default(),
    }
    committed
}

fn try_commit(
    statements: &Statements<'_>,
    writer: &mut WriterParts,
    group: &mut [Box<dyn WaitingCall>],
) -> Result<HintSet, StoreError> {
    let parts = &mut writer.parts;
    let scope = Scope::write(statements)?;
    let file = File { statements, traffic: &parts.traffic };
    let n_changes = statements.connection.total_changes();
    parts.cache.renew(file)?;
    let counters = parts.cache.counters();
    parts.definitions.keep_for(counters.revision);
    // Read once nobody else writes: what is decided by it comes after all that was before.
    counters.time = parts.clock.now(counters.time.now);
    // What woke others until now would look like our own wakes once we have counted more.
    let n_wakes_before = int(counters.n_wakes);
    let mut transaction = Transaction {
        file,
        now: counters.time.now,
        cache: &mut parts.cache,
        definitions: &parts.definitions,
        locks: &parts.locks,
        offered: None,
        earned: HintSet::default(),
    };
    if let [call] = group {
        if !run_whole(call.as_mut(), &mut transaction) {
            // Nothing else is in this transaction: it is undone as a whole.
            transaction.cache.fall_back(None);
            return Ok(HintSet::default());
        }
    } else {
        for call in group.iter_mut() {
            run_in_savepoint(call.as_mut(), &mut transaction)?;
        }
    }
    let mut earned = transaction.earned;
    if statements.connection.total_changes() == n_changes {
        // Nothing was written, so there is nothing to make durable and no time to keep.
        return Ok(earned);
    }
    let n_wakes = write_counters(file, parts.cache.counters(), &earned)?;
    // Told before the commit: the watching thread may look right after it, and must not take our
    // own wakes for another process's. Those before them are news.
    let n_wakes_told = writer.n_wakes.fetch_max(n_wakes, Ordering::AcqRel);
    if let Err(error) = scope.commit() {
        let (told, before) = (n_wakes, n_wakes_told);
        // If it was raised meanwhile, somebody else's wakes were seen, and it stays.
        let _ = writer.n_wakes.compare_exchange(told, before, Ordering::AcqRel, Ordering::Acquire);
        return Err(error);
    }
    writer.wal.bytes = writer.place.check()?;
    if n_wakes_told < n_wakes_before {
        earned.add_all(told_by_others(file, n_wakes_told));
    }
    Ok(earned)
}

/// Writes down what was counted, and whom it concerns. Says how many commits woke others by now.
fn write_counters(
    file: File<'_, '_>,
    counters: &mut Counters,
    earned: &HintSet,
) -> Result<i64, StoreError> {
    counters.n_wakes += u64::from(!earned.is_empty());
    let n_wakes = int(counters.n_wakes);
    rows::store::set_counters(file, counters)?;
    mark_taken(file, earned, n_wakes)?;
    Ok(n_wakes)
}

/// Writes down whose claims were taken, for the processes of those workers.
fn mark_taken(file: File<'_, '_>, earned: &HintSet, n_wakes: i64) -> Result<(), StoreError> {
    for worker in earned.taken_from().workers() {
        rows::worker::set_taken_at(file, worker, n_wakes)?;
    }
    Ok(())
}

/// What others told since that wake, which the watching thread may take for our own: to workers
/// whose claims were taken, and anything else to anybody.
pub(super) fn told_by_others(file: File<'_, '_>, n_wakes: i64) -> HintSet {
    rows::worker::taken_since(file, n_wakes).map_or(HintSet::ALL, HintSet::all_and_taken_from)
}

/// Runs a call and writes what it changed. Says whether its changes stand.
fn run_whole(call: &mut dyn WaitingCall, transaction: &mut Transaction<'_, '_>) -> bool {
    if !call.run(transaction) {
        return false;
    }
    let written = transaction.cache.write(transaction.file);
    written.map_err(|error| call.fail(error)).is_ok()
}

/// Runs a call such that it can be undone without the others of its group.
fn run_in_savepoint(
    call: &mut dyn WaitingCall,
    transaction: &mut Transaction<'_, '_>,
) -> Result<(), StoreError> {
    let statements = transaction.file.statements;
    let counters = transaction.cache.counters_now();
    statements.control("savepoint call")?;
    if !run_whole(call, transaction) {
        statements.control("rollback to call")?;
        transaction.cache.fall_back(counters);
    }
    statements.control("release call")
}
