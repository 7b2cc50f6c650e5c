//! The threads that own the connections.
//!
//! The writer takes everything that waits into one transaction: a savepoint per call, one
//! durable commit, then the answers. While it commits, the next group gathers.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::book::Book;
use super::file::{File, Scope, Statements};
use super::log::{Disk, Log};
use super::open::BUSY_TIMEOUT;
use super::rows::int;
use super::seat::Seats;
use super::transaction::{DefinitionCache, Transaction};
use crate::ports::{Clock, Hint, HintSender, StoreError, TrafficCounter};

/// Most calls in one transaction.
const GROUP_MAX: usize = 256;

/// A call that waits for its turn.
trait Job: Send {
    /// Whether its changes must be on disk when it is answered.
    fn must_last(&self) -> bool;
    /// Does the work. Says whether its changes stand.
    fn run(&mut self, transaction: &mut Transaction<'_, '_>) -> bool;
    /// What it changed could not be written down.
    fn fail(&mut self, error: StoreError);
    /// Answers, once it is known whether the transaction is durable.
    fn answer(self: Box<Self>, durable: Result<(), StoreError>);
}

struct Call<T, W> {
    must_last: bool,
    work: Option<W>,
    result: Option<Result<T, StoreError>>,
    answer_to: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, W> Job for Call<T, W>
where
    T: Send,
    W: FnOnce(&mut Transaction<'_, '_>) -> Result<T, StoreError> + Send,
{
    fn must_last(&self) -> bool {
        self.must_last
    }

    fn run(&mut self, transaction: &mut Transaction<'_, '_>) -> bool {
        let result = self.work.take().map(|work| work(transaction));
        let stands = matches!(result, Some(Ok(_)));
        self.result = result;
        stands
    }

    fn fail(&mut self, error: StoreError) {
        self.result = Some(Err(error));
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
    /// Hands in a call and waits for its answer, which comes when what it changed is on disk.
    pub(super) async fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Transaction<'_, '_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.hand_in(work, true).await
    }

    /// As [`call`](Self::call), but the answer does not wait for the disk. What it changed outlives
    /// the process, and a power cut from the next call on that waits.
    pub(super) async fn call_without_wait<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Transaction<'_, '_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.hand_in(work, false).await
    }

    async fn hand_in<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Transaction<'_, '_>) -> Result<T, StoreError> + Send + 'static,
        must_last: bool,
    ) -> Result<T, StoreError> {
        let (answer_to, answer) = oneshot::channel();
        let call = Call { must_last, work: Some(work), result: None, answer_to };
        self.0.send(Box::new(call)).map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }
}

/// What a thread works with.
pub(super) struct Tools {
    pub(super) connection: Connection,
    pub(super) kit: Kit,
    pub(super) log: Log,
}

/// What a thread works with besides its connection.
pub(super) struct Kit {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) hints: HintSender,
    pub(super) definitions: DefinitionCache,
    /// How often there was something to see, as far as this process knows.
    pub(super) told: Arc<AtomicI64>,
    pub(super) seats: Arc<Seats>,
    pub(super) traffic: Arc<TrafficCounter>,
    pub(super) book: Book,
    pub(super) disk: Disk,
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

fn write_loop(tools: Tools, jobs: &Receiver<Box<dyn Job>>) {
    let Tools { connection, mut kit, mut log } = tools;
    let statements = Statements::of(&connection);
    while let Ok(first) = jobs.recv() {
        let mut group = vec![first];
        group.extend(jobs.try_iter().take(GROUP_MAX - 1));
        let durable = commit_group(&statements, &mut kit, &mut group);
        if let Ok(earned) = &durable {
            for hint in earned {
                kit.hints.give(*hint);
            }
        }
        let durable = durable.map(drop);
        for job in group {
            job.answer(durable.clone());
        }
        log.keep_in_bounds(&connection, BUSY_TIMEOUT);
    }
}

/// Runs a group of calls in one durable transaction. An error answers all of them: nothing is
/// acknowledged that is not on disk.
fn commit_group(
    statements: &Statements<'_>,
    kit: &mut Kit,
    group: &mut [Box<dyn Job>],
) -> Result<Vec<Hint>, StoreError> {
    kit.traffic.transaction();
    let must_last = group.iter().any(|job| job.must_last());
    kit.disk.wait_at_commit(statements.connection, must_last)?;
    let committed = try_commit(statements, kit, group);
    match committed {
        Ok(_) => kit.book.trim(),
        // What it says may not be in the file.
        Err(_) => kit.book = Book::default(),
    }
    committed
}

fn try_commit(
    statements: &Statements<'_>,
    kit: &mut Kit,
    group: &mut [Box<dyn Job>],
) -> Result<Vec<Hint>, StoreError> {
    let now = kit.clock.now();
    let scope = Scope::write(statements)?;
    let file = File { statements, traffic: &kit.traffic };
    let n_changes = statements.connection.total_changes();
    kit.book.renew(file)?;
    let counters = kit.book.counters();
    counters.now = counters.now.max(now);
    // What others told until now would look like our own words once we have told more.
    let n_told_before = int(counters.n_told);
    let mut transaction = Transaction {
        file,
        now: counters.now,
        book: &mut kit.book,
        earned_hints: Vec::new(),
        definitions: Arc::clone(&kit.definitions),
        seats: Arc::clone(&kit.seats),
    };
    if let [job] = group {
        if !run_whole(job.as_mut(), &mut transaction) {
            // Nothing else is in this transaction: it is undone as a whole.
            transaction.book.fall_back(None);
            return Ok(Vec::new());
        }
    } else {
        for job in group.iter_mut() {
            run_in_savepoint(job.as_mut(), &mut transaction)?;
        }
    }
    let mut earned = transaction.earned_hints;
    if statements.connection.total_changes() == n_changes {
        // Nothing was written, so there is nothing to make durable and no time to keep.
        return Ok(earned);
    }
    let counters = kit.book.counters();
    counters.n_told += u64::from(!earned.is_empty());
    let n_told = int(counters.n_told);
    counters.write(file)?;
    scope.commit()?;
    // What we told ourselves is no news from another process; what it told before is.
    if kit.told.fetch_max(n_told, Ordering::AcqRel) < n_told_before {
        earned = Hint::ALL.to_vec();
    }
    Ok(earned)
}

/// Runs a call and writes what it changed. Says whether its changes stand.
fn run_whole(job: &mut dyn Job, transaction: &mut Transaction<'_, '_>) -> bool {
    if !job.run(transaction) {
        return false;
    }
    let written = transaction.write_down();
    written.map_err(|error| job.fail(error)).is_ok()
}

/// Runs a call such that it can be undone without the others of its group.
fn run_in_savepoint(
    job: &mut dyn Job,
    transaction: &mut Transaction<'_, '_>,
) -> Result<(), StoreError> {
    let statements = transaction.file.statements;
    let counters = transaction.book.counters_now();
    statements.control("savepoint call")?;
    if !run_whole(job, transaction) {
        statements.control("rollback to call")?;
        transaction.book.fall_back(counters);
    }
    statements.control("release call")
}

fn read_loop(tools: Tools, jobs: &Receiver<Box<dyn Job>>) {
    let Tools { connection, mut kit, .. } = tools;
    let statements = Statements::of(&connection);
    while let Ok(mut job) = jobs.recv() {
        let done = read_once(&statements, &mut kit, job.as_mut());
        job.answer(done);
    }
}

fn read_once(
    statements: &Statements<'_>,
    kit: &mut Kit,
    job: &mut dyn Job,
) -> Result<(), StoreError> {
    kit.traffic.transaction();
    let _snapshot = Scope::read(statements)?;
    let mut transaction = Transaction {
        file: File { statements, traffic: &kit.traffic },
        book: &mut kit.book,
        now: kit.clock.now(),
        earned_hints: Vec::new(),
        definitions: Arc::clone(&kit.definitions),
        seats: Arc::clone(&kit.seats),
    };
    job.run(&mut transaction);
    Ok(())
}
