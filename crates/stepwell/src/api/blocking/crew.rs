//! The branches of a join, and the one thread among them that may wait for the engine: it stores
//! for all of them, and sleeps when all of them do.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use stepwell_core::time::Timestamp;

use super::op::{sleep_until, store};
use crate::api::step_error::{Result, StepError};
use crate::engine::TaskContext;

/// Where the answer goes.
type AnswerTo = mpsc::Sender<Result<()>>;

/// What a branch asks for.
enum Ask {
    /// That all be stored which is to be stored.
    Store(AnswerTo),
    /// To be woken at this moment.
    Sleep(Timestamp, AnswerTo),
    /// A branch has ended, or waits for others: perhaps all that are left sleep.
    Look,
}

/// The branches of a join, and of those within them.
#[derive(Clone, Debug)]
pub(super) struct Crew {
    asks: mpsc::Sender<Ask>,
    /// Threads that execute code of the user or wait for an answer.
    n_running: Arc<AtomicUsize>,
}

/// A thread that counts among those that run.
pub(super) struct Running(Crew);

/// A thread that does not count, since it waits for others.
struct Resting<'c>(&'c Crew);

impl Crew {
    /// Runs branches on threads of their own, and serves them on this one.
    pub(super) fn run<T: Send>(
        task: &Arc<TaskContext>,
        branches: impl FnOnce(Self) -> T + Send,
    ) -> T {
        let (asks, asked) = mpsc::channel();
        let n_running = Arc::new(AtomicUsize::new(0));
        let crew = Self { asks, n_running: Arc::clone(&n_running) };
        thread::scope(|scope| {
            let branches = scope.spawn(move || branches(crew));
            serve(task, &asked, &n_running);
            branches.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// A thread begins.
    pub(super) fn begin(&self) -> Running {
        self.n_running.fetch_add(1, Ordering::AcqRel);
        Running(self.clone())
    }

    /// A branch waits for branches of its own.
    pub(super) fn rest<T>(&self, wait: impl FnOnce() -> T) -> T {
        self.leave();
        let _resting = Resting(self);
        wait()
    }

    fn leave(&self) {
        self.n_running.fetch_sub(1, Ordering::AcqRel);
        let _ = self.asks.send(Ask::Look);
    }

    /// Stores what is to be stored.
    pub(super) fn store(&self) -> Result<()> {
        self.ask(Ask::Store)
    }

    /// Sleeps in place.
    pub(super) fn sleep_until(&self, at: Timestamp) -> Result<()> {
        self.ask(|answer_to| Ask::Sleep(at, answer_to))
    }

    fn ask(&self, ask: impl FnOnce(AnswerTo) -> Ask) -> Result<()> {
        let (answer_to, answer) = mpsc::channel();
        let gone = || Err(StepError::cancelled());
        if self.asks.send(ask(answer_to)).is_err() {
            return gone();
        }
        answer.recv().unwrap_or_else(|_| gone())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl Drop for Resting<'_> {
    fn drop(&mut self) {
        self.0.n_running.fetch_add(1, Ordering::AcqRel);
    }
}

/// Answers what branches ask for, until all have ended.
fn serve(task: &Arc<TaskContext>, asked: &mpsc::Receiver<Ask>, n_running: &AtomicUsize) {
    let mut sleepers: Vec<(Timestamp, AnswerTo)> = Vec::new();
    loop {
        let nearest = sleepers.iter().map(|(at, _)| *at).min();
        // A sleeper runs as long as it was not answered, so nobody asks for anything while all that
        // run are asleep. Otherwise one may be woken later than it is due: by the next to ask.
        if let Some(nearest) = nearest
            && n_running.load(Ordering::Acquire) == sleepers.len()
        {
            sleep_until(task, nearest);
        } else {
            let Ok(first) = asked.recv() else { return };
            let mut storing = Vec::new();
            for ask in std::iter::once(first).chain(asked.try_iter()) {
                match ask {
                    Ask::Store(answer_to) => storing.push(answer_to),
                    Ask::Sleep(at, answer_to) => sleepers.push((at, answer_to)),
                    Ask::Look => {}
                }
            }
            if !storing.is_empty() {
                let stored = store(task);
                for answer_to in storing {
                    let _ = answer_to.send(stored.clone());
                }
            }
        }
        let (now, is_over) = (task.now(), task.stop.is_stopped());
        sleepers.retain(|(at, answer_to)| {
            let is_awake = is_over || *at <= now;
            if is_awake {
                let _ = answer_to.send(Ok(()));
            }
            !is_awake
        });
    }
}
