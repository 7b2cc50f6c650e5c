//! The thread that reads, each call in a snapshot of its own.

use std::sync::mpsc::Receiver;

use rusqlite::Connection;

use stepwell_core::time::Timestamp;

use super::call::WaitingCall;
use super::{Calls, Transaction, TransactionParts, spawn};
use crate::outbound::sqlite::file::{File, Scope, Statements};
use crate::outbound::sqlite::rows;
use crate::ports::{HintSet, StoreError};

/// Starts a thread that reads.
pub(crate) fn start_reader(
    connection: Connection,
    parts: TransactionParts,
) -> std::io::Result<Calls> {
    let (sender, calls) = Calls::channel();
    spawn("stepwell-sqlite-reader", move || read_loop(&connection, parts, &calls))?;
    Ok(sender)
}

fn read_loop(
    connection: &Connection,
    mut parts: TransactionParts,
    calls: &Receiver<Box<dyn WaitingCall>>,
) {
    let statements = Statements::of(connection, rows::TABLES);
    while let Ok(mut call) = calls.recv() {
        let done = read_once(&statements, &mut parts, call.as_mut());
        call.answer(done);
    }
}

fn read_once(
    statements: &Statements<'_>,
    parts: &mut TransactionParts,
    call: &mut dyn WaitingCall,
) -> Result<(), StoreError> {
    parts.traffic.transaction();
    let _snapshot = Scope::read(statements)?;
    let mut transaction = Transaction {
        file: File { statements, traffic: &parts.traffic },
        now: parts.clock.now(Timestamp::EPOCH).now,
        cache: &mut parts.cache,
        definitions: &parts.definitions,
        locks: &parts.locks,
        offered: None,
        earned: HintSet::default(),
    };
    call.run(&mut transaction);
    Ok(())
}
