//! Watermarks of queues, so that nobody steps over places whose tasks are gone.
//!
//! What was taken from the head of a queue stays in its index until the server may clean up, and
//! that can be long while somebody holds an old snapshot. So a queue has a watermark: a key before
//! which nothing is left and nothing will ever come. Whoever looks into the queue begins there.
//!
//! A watermark is advanced in two rounds. The first writes down the frontier of the queue and the
//! transactions that hold the lock of those who enqueue. They take it before they read the
//! frontier, so whoever read less is among them. The second round, when all of these have ended,
//! sees everything that they left; whatever comes later stands where the first round found the
//! frontier, or behind. What was written down lies in the database: another process may go on from
//! there, and a database that was restored, or a standby that took over, has rows that fit.
//!
//! Nobody waits for any of this, and it is done as often as it pays: a process counts what it took
//! and how often it stepped over that.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use stepwell_core::queue::{OrderKey, passed_before};

use super::super::connection::pool::Pool;
use super::super::connection::role::Role;
use super::super::rows::int;
use super::super::rows::position::{self, WatermarkView};
use super::super::session::{Params, PgResult, Session};
use super::super::sql::{self, Sql};

const READ_WATERMARK: Sql = sql::POSITION.named("read_watermark");
const WRITE_WATERMARK: Sql = sql::POSITION.named("write_watermark");
const FIRST_LEFT_IN_QUEUE: Sql = sql::QUEUE.named("first_left_in_queue");

/// Most queues that are counted. When there are more, all are forgotten.
const QUEUES_MAX: usize = 1_000;

/// The watermarks of queues, as far as this process has to advance them.
pub(crate) struct Watermarks(Mutex<WatermarkProgress>);

/// What this process took from queues and watermarks have not passed yet.
pub(crate) struct WatermarkProgress {
    queues: HashMap<String, DeadEntries>,
    steps_per_round: u64,
}

/// What lies dead at the head of a queue.
#[derive(Default)]
struct DeadEntries {
    taken: u64,
    /// How many of them the last round had in view.
    in_view: u64,
    /// How often one of them was stepped over since.
    steps: u64,
}

impl WatermarkProgress {
    fn new(steps_per_round: u64) -> Self {
        Self { queues: HashMap::new(), steps_per_round }
    }

    /// Tasks left a queue.
    pub(crate) fn took(&mut self, queue: &str, n: u64) {
        if self.queues.len() >= QUEUES_MAX && !self.queues.contains_key(queue) {
            self.queues.clear();
        }
        self.queues.entry(queue.to_owned()).or_default().taken += n;
    }

    /// Somebody looked at the heads of queues.
    pub(crate) fn looked(&mut self) {
        for dead in self.queues.values_mut() {
            dead.steps += dead.taken;
        }
    }

    /// The queues for which another round pays by now.
    fn due(&mut self) -> Vec<String> {
        let limit = self.steps_per_round;
        let due = self.queues.iter_mut().filter(|(_, dead)| dead.taken > 0 && dead.steps >= limit);
        let begin = |(queue, dead): (&String, &mut DeadEntries)| {
            dead.steps = 0;
            queue.clone()
        };
        due.map(begin).collect()
    }

    /// A round has ended: the watermark is behind what the one before had in view.
    fn advanced(&mut self, queue: &str) {
        let Some(dead) = self.queues.get_mut(queue) else { return };
        dead.taken = dead.taken.saturating_sub(dead.in_view);
        dead.in_view = dead.taken;
    }
}

impl Watermarks {
    pub(crate) fn new(steps_per_round: u64) -> Self {
        Self(Mutex::new(WatermarkProgress::new(steps_per_round)))
    }

    pub(crate) fn progress(&self) -> MutexGuard<'_, WatermarkProgress> {
        self.0.lock().expect("no holder of the lock panics")
    }

    /// Advances the watermarks of queues for which that pays. It only saves work, so whatever goes
    /// wrong is left to the next round.
    pub(crate) async fn advance(&self, pool: &Arc<Pool>) {
        let due = self.progress().due();
        for queue in due {
            match advance(pool, &queue).await {
                Ok(true) => self.progress().advanced(&queue),
                Ok(false) => {}
                Err(error) => {
                    tracing::debug!(?error, %queue, "a watermark was not advanced");
                }
            }
        }
    }
}

/// One round. Says whether it went beyond the last one.
async fn advance(pool: &Arc<Pool>, queue: &str) -> PgResult<bool> {
    let session = Session::unopened(pool, Role::Work).await?;
    let params: Params<'_> = &[&queue, &pool.schema];
    let (opened, view) = tokio::join!(
        biased;
        session.open_timeless(),
        session.one(READ_WATERMARK, params),
    );
    opened?;
    let view = view?.as_ref().map(position::read_watermark).transpose()?;
    let view = view.filter(|view| !is_anybody_left(view));
    if let Some(view) = &view {
        write_round(&session, queue, view).await?;
    }
    session.close().await?;
    session.end();
    Ok(view.is_some())
}

/// Whether somebody still enqueues who may have read less than the last round did.
fn is_anybody_left(view: &WatermarkView) -> bool {
    let is_left = |transaction: &String| view.enqueuing.contains(transaction);
    view.last.as_ref().is_some_and(|last| last.enqueuing.iter().any(is_left))
}

/// Writes down the next round.
async fn write_round(session: &Session, queue: &str, view: &WatermarkView) -> PgResult<()> {
    let (mut number, mut key) = (1, OrderKey(0));
    if let Some(last) = &view.last {
        let params: Params<'_> = &[&queue, &int(last.key.0)];
        let first_left = session.one(FIRST_LEFT_IN_QUEUE, params).await?;
        let first_left = first_left.as_ref().map(position::read_order_key).transpose()?;
        number = last.number + 1;
        key = passed_before(last.frontier, first_left).max(last.key);
    }
    let (key, frontier) = (int(key.0), int(view.frontier.0));
    let params: Params<'_> = &[&queue, &number, &key, &frontier, &view.enqueuing];
    session.run(WRITE_WATERMARK, params).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_pays_when_enough_was_stepped_over() {
        let mut progress = WatermarkProgress::new(100);
        progress.took("q", 30);
        for _ in 0..3 {
            assert!(progress.due().is_empty());
            progress.looked();
        }
        assert!(progress.due().is_empty());
        progress.looked();
        assert_eq!(progress.due(), ["q"]);
        assert!(progress.due().is_empty(), "one round at a time");
    }

    #[test]
    fn what_two_rounds_had_in_view_is_no_longer_counted() {
        let mut progress = WatermarkProgress::new(1);
        progress.took("q", 30);
        progress.looked();
        progress.due();
        progress.advanced("q");
        progress.took("q", 5);
        progress.looked();
        assert_eq!(progress.due(), ["q"], "it is in view, but not passed yet");
        progress.advanced("q");
        assert_eq!(progress.queues["q"].taken, 5);
        progress.looked();
        progress.due();
        progress.advanced("q");
        progress.looked();
        assert!(progress.due().is_empty(), "nothing lies dead");
    }

    #[test]
    fn a_queue_from_which_nothing_was_taken_is_left_alone() {
        let mut progress = WatermarkProgress::new(0);
        progress.took("q", 0);
        progress.looked();
        assert!(progress.due().is_empty());
    }
}
