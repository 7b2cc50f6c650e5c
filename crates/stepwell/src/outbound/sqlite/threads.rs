//! The threads that own the connections.
//!
//! The writer takes everything that waits into one transaction: a savepoint per call, one
//! durable commit, then the answers. While it commits, the next group gathers.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use rusqlite::{Connection, TransactionBehavior};
use stepwell_core::time::Timestamp;
use tokio::sync::oneshot;

use super::log::Log;
use super::open::BUSY_TIMEOUT;
use super::seat::Seats;
use super::statements;
use super::transaction::{DefinitionCache, Transaction};
use crate::ports::{Clock, Hint, HintSender, StoreError, TrafficCounter};

/// Most calls in one transaction.
const GROUP_MAX: usize = 256;

/// A call that waits for its turn.
trait Job: Send {
    /// Does the work. Says whether its changes stand.
    fn run(&mut self, transaction: &mut Transaction<'_>) -> bool;
    /// Answers, once it is known whether the transaction is durable.
    fn answer(self: Box<Self>, durable: Result<(), StoreError>);
}

struct Call<T, W> {
    work: Option<W>,
    result: Option<Result<T, StoreError>>,
    answer_to: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, W> Job for Call<T, W>
where
    T: Send,
    W: FnOnce(&mut Transaction<'_>) -> Result<T, StoreError> + Send,
{
    fn run(&mut self, transaction: &mut Transaction<'_>) -> bool {
        let result = self.work.take().map(|work| work(transaction));
        let stands = matches!(result, Some(Ok(_)));
        self.result = result;
        stands
    }

    fn answer(self: Box<Self>, durable: Result<(), StoreError>) {
        let closed = || Err(closed());
        let result = match durable {
            Ok(()) => self.result.unwrap_or_else(closed),
            Err(error) => Err(error),
        };
        // Whoever asked may have gone; the effect stands.
        let _ = self.answer_to.send(result);
    }
}

fn closed() -> StoreError {
    StoreError::Unavailable { operation: "sqlite", why: "the store has closed".into() }
}

/// Where calls are handed in to a thread. It ends when this is dropped.
pub(super) struct Jobs(Sender<Box<dyn Job>>);

impl Jobs {
    /// Hands in a call and waits for its answer.
    pub(super) async fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer_to, answer) = oneshot::channel();
        let call = Call { work: Some(work), result: None, answer_to };
        self.0.send(Box::new(call)).map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }
}

/// What a thread works with.
pub(super) struct Tools {
    pub(super) connection: Connection,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) hints: HintSender,
    pub(super) definitions: DefinitionCache,
    /// How often there was something to see, as far as this process knows.
    pub(super) told: Arc<AtomicI64>,
    pub(super) seats: Arc<Seats>,
    pub(super) traffic: Arc<TrafficCounter>,
    pub(super) log: Log,
}

/// Starts the one thread that writes.
pub(super) fn start_writer(tools: Tools) -> std::io::Result<Jobs> {
    let (sender, jobs) = channel();
    spawn("stepwell-sqlite-writer", move || write_loop(tools, &jobs))?;
    Ok(Jobs(sender))
}

/// Starts a thread that reads.
pub(super) fn start_reader(tools: Tools) -> std::io::Result<Jobs> {
    let (sender, jobs) = channel();
    spawn("stepwell-sqlite-reader", move || read_loop(tools, &jobs))?;
    Ok(Jobs(sender))
}

#[expect(clippy::disallowed_methods, reason = "a SQLite connection blocks, so it has a thread")]
pub(super) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work).map(drop)
}

fn write_loop(mut tools: Tools, jobs: &Receiver<Box<dyn Job>>) {
    while let Ok(first) = jobs.recv() {
        let mut group = vec![first];
        group.extend(jobs.try_iter().take(GROUP_MAX - 1));
        let durable = commit_group(&mut tools, &mut group);
        if let Ok(earned) = &durable {
            for hint in earned {
                tools.hints.give(*hint);
            }
        }
        let durable = durable.map(drop);
        for job in group {
            job.answer(durable.clone());
        }
        tools.log.keep_in_bounds(&tools.connection, BUSY_TIMEOUT);
    }
}

/// Runs a group of calls in one durable transaction. An error answers all of them: nothing is
/// acknowledged that is not on disk.
fn commit_group(tools: &mut Tools, group: &mut [Box<dyn Job>]) -> Result<Vec<Hint>, StoreError> {
    tools.traffic.transaction();
    let now = tools.clock.now();
    let outer = tools.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut raise = outer.prepare_cached(statements::RAISE_NOW)?;
    let micros: i64 = raise.query_row([now.as_micros()], |row| row.get(0))?;
    drop(raise);
    let mut transaction = Transaction {
        connection: &outer,
        now: Timestamp::from_micros(micros),
        earned_hints: Vec::new(),
        definitions: Arc::clone(&tools.definitions),
        seats: Arc::clone(&tools.seats),
        traffic: Arc::clone(&tools.traffic),
    };
    for job in group.iter_mut() {
        outer.execute_batch("savepoint call")?;
        let stands = job.run(&mut transaction);
        outer.execute_batch(if stands {
            "release call"
        } else {
            "rollback to call; release call"
        })?;
    }
    let earned = transaction.earned_hints;
    let mut told = None;
    if !earned.is_empty() {
        let n_told: i64 =
            outer.prepare_cached(statements::TELL)?.query_row([], |row| row.get(0))?;
        told = Some(n_told);
    }
    outer.commit()?;
    if let Some(told) = told {
        // What we told ourselves is no news from another process.
        tools.told.fetch_max(told, Ordering::AcqRel);
    }
    Ok(earned)
}

fn read_loop(mut tools: Tools, jobs: &Receiver<Box<dyn Job>>) {
    while let Ok(mut job) = jobs.recv() {
        let done = read_once(&mut tools, job.as_mut());
        job.answer(done);
    }
}

fn read_once(tools: &mut Tools, job: &mut dyn Job) -> Result<(), StoreError> {
    tools.traffic.transaction();
    let snapshot = tools.connection.transaction()?;
    let mut transaction = Transaction {
        connection: &snapshot,
        now: tools.clock.now(),
        earned_hints: Vec::new(),
        definitions: Arc::clone(&tools.definitions),
        seats: Arc::clone(&tools.seats),
        traffic: Arc::clone(&tools.traffic),
    };
    job.run(&mut transaction);
    Ok(())
}
