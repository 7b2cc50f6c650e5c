//! Watermarks of queues, so that nobody steps over places whose tasks are gone.
//!
//! What was taken from the head of a queue stays in its index until the server may clean up, and
//! that can be long while somebody holds an old snapshot. So every service in a queue has a
//! watermark: a key before which nothing of it is left and nothing will ever come. Whoever looks
//! for its tasks begins there.
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

use stepwell_core::id::ServiceId;
use stepwell_core::queue::{OrderKey, passed_before};

use super::super::connection::pool::Pool;
use super::super::connection::role::Role;
use super::super::rows::position::{self, WatermarkView};
use super::super::rows::{int, int32};
use super::super::session::{Params, PgResult, Session};
use super::super::sql::{self, Sql};

const READ_WATERMARK: Sql = sql::POSITION.named("read_watermark");
const WRITE_WATERMARK: Sql = sql::POSITION.named("write_watermark");
const FIRST_LEFT_IN_QUEUE: Sql = sql::QUEUE.named("first_left_in_queue");

/// Most services in queues that are counted. When there are more, all are forgotten.
const SERVICES_MAX: usize = 1_000;

/// A service in a queue.
type QueueService = (String, ServiceId);

/// The watermarks, as far as this process has to advance them.
pub(crate) struct Watermarks(Mutex<WatermarkProgress>);

/// What this process took from queues and watermarks have not passed yet.
pub(crate) struct WatermarkProgress {
    services: HashMap<QueueService, DeadEntries>,
    steps_per_round: u64,
}

/// What lies dead at the head of a service's tasks in a queue.
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
        Self { services: HashMap::new(), steps_per_round }
    }

    /// Tasks of a service left a queue.
    pub(crate) fn took(&mut self, queue: &str, service: ServiceId, n: u64) {
        let key = (queue.to_owned(), service);
        if self.services.len() >= SERVICES_MAX && !self.services.contains_key(&key) {
            self.services.clear();
        }
        self.services.entry(key).or_default().taken += n;
    }

    /// Somebody looked at the heads of queues.
    pub(crate) fn looked(&mut self) {
        for dead in self.services.values_mut() {
            dead.steps += dead.taken;
        }
    }

    /// Those for which another round pays by now.
    fn due(&mut self) -> Vec<QueueService> {
        let limit = self.steps_per_round;
        let is_due = |dead: &DeadEntries| dead.taken > 0 && dead.steps >= limit;
        let due = self.services.iter_mut().filter(|(_, dead)| is_due(dead));
        let begin = |(service, dead): (&QueueService, &mut DeadEntries)| {
            dead.steps = 0;
            service.clone()
        };
        due.map(begin).collect()
    }

    /// A round has ended: the watermark is behind what the one before had in view.
    fn advanced(&mut self, service: &QueueService) {
        let Some(dead) = self.services.get_mut(service) else { return };
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

    /// Advances the watermarks for which that pays. It only saves work, so whatever goes
    /// wrong is left to the next round.
    pub(crate) async fn advance(&self, pool: &Arc<Pool>) {
        let due = self.progress().due();
        for service in due {
            match advance(pool, &service).await {
                Ok(true) => self.progress().advanced(&service),
                Ok(false) => {}
                Err(error) => {
                    tracing::debug!(?error, queue = service.0, "a watermark was not advanced");
                }
            }
        }
    }
}

/// One round. Says whether it went beyond the last one.
async fn advance(pool: &Arc<Pool>, (queue, service): &QueueService) -> PgResult<bool> {
    let session = Session::unopened(pool, Role::Work).await?;
    let service = int32(service.0);
    let params: Params<'_> = &[queue, &service, &pool.schema];
    let (opened, view) = tokio::join!(
        biased;
        session.open_timeless(),
        session.one(READ_WATERMARK, params),
    );
    opened?;
    let view = view?.as_ref().map(position::read_watermark).transpose()?;
    let view = view.filter(|view| !is_anybody_left(view));
    if let Some(view) = &view {
        write_round(&session, queue, service, view).await?;
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
async fn write_round(
    session: &Session,
    queue: &str,
    service: i32,
    view: &WatermarkView,
) -> PgResult<()> {
    let (mut number, mut key) = (1, OrderKey(0));
    if let Some(last) = &view.last {
        let params: Params<'_> = &[&queue, &service, &int(last.key.0)];
        let first_left = session.one(FIRST_LEFT_IN_QUEUE, params).await?;
        let first_left = first_left.as_ref().map(position::read_order_key).transpose()?;
        number = last.number + 1;
        key = passed_before(last.frontier, first_left).max(last.key);
    }
    let (key, frontier) = (int(key.0), int(view.frontier.0));
    let params: Params<'_> = &[&queue, &service, &number, &key, &frontier, &view.enqueuing];
    session.run(WRITE_WATERMARK, params).await
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVICE: ServiceId = ServiceId(7);

    fn service() -> QueueService {
        ("q".to_owned(), SERVICE)
    }

    #[test]
    fn a_round_pays_when_enough_was_stepped_over() {
        let mut progress = WatermarkProgress::new(100);
        progress.took("q", SERVICE, 30);
        for _ in 0..3 {
            assert!(progress.due().is_empty());
            progress.looked();
        }
        assert!(progress.due().is_empty());
        progress.looked();
        assert_eq!(progress.due(), [service()]);
        assert!(progress.due().is_empty(), "one round at a time");
    }

    #[test]
    fn what_two_rounds_had_in_view_is_no_longer_counted() {
        let mut progress = WatermarkProgress::new(1);
        progress.took("q", SERVICE, 30);
        progress.looked();
        progress.due();
        progress.advanced(&service());
        progress.took("q", SERVICE, 5);
        progress.looked();
        assert_eq!(progress.due(), [service()], "it is in view, but not passed yet");
        progress.advanced(&service());
        assert_eq!(progress.services[&service()].taken, 5);
        progress.looked();
        progress.due();
        progress.advanced(&service());
        progress.looked();
        assert!(progress.due().is_empty(), "nothing lies dead");
    }

    #[test]
    fn a_queue_from_which_nothing_was_taken_is_left_alone() {
        let mut progress = WatermarkProgress::new(0);
        progress.took("q", SERVICE, 0);
        progress.looked();
        assert!(progress.due().is_empty());
    }
}
