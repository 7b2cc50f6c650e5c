//! How far queues were passed, so that nobody steps over places whose tasks are gone.
//!
//! What was taken from the head of a queue stays in its index until the server may clean up, and
//! that can be long while somebody holds an old snapshot. So a queue has a key before which nothing
//! is left and nothing will ever come; whoever looks into the queue begins there.
//!
//! Such a key is found in two rounds. The first writes down how far the queue is and which
//! transactions hold the lock of those who put tasks into line. They take it before they read how
//! far the queue is, so whoever read less is among them. The second round, when all of these have
//! ended, sees everything that they left; whatever comes later stands where the first round found
//! the queue, or behind. What was written down lies in the database: another process may go on from
//! there, and a database that was restored, or a standby that took over, has rows that fit.
//!
//! Nobody waits for any of this, and it is done as often as it pays: a process counts what it took
//! and how often it stepped over that.

use std::collections::HashMap;
use std::sync::MutexGuard;

use stepwell_core::fair::{OrderKey, Position, passed_before};
use tokio_postgres::Row;

use super::rows::{int, unsigned};
use super::transaction::{Params, Transaction};
use super::{PostgresStore, Role, Shared, statements};
use crate::ports::StoreError;

/// A round is as dear as stepping over this many places.
pub(super) const STEPS_PER_ROUND: u64 = 50_000;

/// Most queues that are counted. When there are more, all are forgotten.
const QUEUES_MAX: usize = 1_000;

/// What this process took from queues that may not be passed yet.
pub(super) struct Passing {
    queues: HashMap<String, Behind>,
    steps_per_round: u64,
}

/// What lies behind at the head of a queue.
#[derive(Default)]
struct Behind {
    taken: u64,
    /// How many of them the last round had in view.
    in_view: u64,
    /// How often one of them was stepped over since.
    steps: u64,
}

impl Passing {
    pub(super) fn new(steps_per_round: u64) -> Self {
        Self { queues: HashMap::new(), steps_per_round }
    }

    /// Tasks left a queue.
    pub(super) fn took(&mut self, queue: &str, n: u64) {
        if self.queues.len() >= QUEUES_MAX && !self.queues.contains_key(queue) {
            self.queues.clear();
        }
        self.queues.entry(queue.to_owned()).or_default().taken += n;
    }

    /// Somebody looked at the heads of queues.
    pub(super) fn looked(&mut self) {
        for behind in self.queues.values_mut() {
            behind.steps += behind.taken;
        }
    }

    /// The queues for which another round pays by now.
    fn due(&mut self) -> Vec<String> {
        let limit = self.steps_per_round;
        let due = self.queues.iter_mut().filter(|(_, b)| b.taken > 0 && b.steps >= limit);
        let begin = |(queue, behind): (&String, &mut Behind)| {
            behind.steps = 0;
            queue.clone()
        };
        due.map(begin).collect()
    }

    /// A round has ended: what the one before had in view is passed.
    fn passed(&mut self, queue: &str) {
        let Some(behind) = self.queues.get_mut(queue) else { return };
        behind.taken = behind.taken.saturating_sub(behind.in_view);
        behind.in_view = behind.taken;
    }
}

/// What is known of a queue.
struct Head {
    last: Option<Round>,
    frontier: Position,
    joining: Vec<String>,
}

/// What a round left.
struct Round {
    number: i64,
    key: OrderKey,
    frontier: Position,
    joining: Vec<String>,
}

impl Head {
    fn of(row: &Row) -> Result<Self, StoreError> {
        let round = |number: i64| {
            Ok::<_, StoreError>(Round {
                number,
                key: OrderKey(unsigned(row, 1)?),
                frontier: Position(unsigned(row, 2)?),
                joining: row.try_get(3)?,
            })
        };
        let frontier: Option<i64> = row.try_get(4)?;
        Ok(Self {
            last: row.try_get::<_, Option<i64>>(0)?.map(round).transpose()?,
            frontier: Position(frontier.unwrap_or_default().unsigned_abs()),
            joining: row.try_get(5)?,
        })
    }

    /// Whether somebody still joins who may have read less than the last round did.
    fn is_joined_of_old(&self) -> bool {
        let is_left = |joiner: &String| self.joining.contains(joiner);
        self.last.as_ref().is_some_and(|last| last.joining.iter().any(is_left))
    }
}

impl Shared {
    pub(super) fn passing(&self) -> MutexGuard<'_, Passing> {
        self.passing.lock().expect("no holder of the lock panics")
    }
}

impl PostgresStore {
    /// Goes on passing the queues for which that pays. It only saves work, so whatever goes wrong
    /// is left to the next round.
    pub(super) async fn pass_queues(&self) {
        let due = self.shared.passing().due();
        for queue in due {
            match self.pass(&queue).await {
                Ok(true) => self.shared.passing().passed(&queue),
                Ok(false) => {}
                Err(error) => tracing::debug!(%error, %queue, "a queue was not passed"),
            }
        }
    }

    /// One round. Says whether it went beyond the last one.
    async fn pass(&self, queue: &str) -> Result<bool, StoreError> {
        let transaction = self.take(Role::Work).await?;
        let params: Params<'_> = &[&queue, &self.shared.pool.schema];
        let (opened, head) = tokio::join!(
            biased;
            transaction.open_timeless(),
            transaction.one(statements::LOOK_AT_QUEUE, params),
        );
        opened?;
        let head = head?.as_ref().map(Head::of).transpose()?;
        let gone_on = match head.filter(|head| !head.is_joined_of_old()) {
            Some(head) => go_on(&transaction, queue, &head).await.map(|()| true)?,
            None => false,
        };
        self.commit_transaction(transaction).await?;
        Ok(gone_on)
    }
}

/// Writes down the next round.
async fn go_on(transaction: &Transaction, queue: &str, head: &Head) -> Result<(), StoreError> {
    let (mut number, mut key) = (1, OrderKey(0));
    if let Some(last) = &head.last {
        let params: Params<'_> = &[&queue, &int(last.key.0)];
        let first_left = transaction.one(statements::FIRST_LEFT, params).await?;
        let first_left = first_left.map(|row| unsigned(&row, 0).map(OrderKey)).transpose()?;
        number = last.number + 1;
        key = passed_before(last.frontier, first_left).max(last.key);
    }
    let (key, frontier) = (int(key.0), int(head.frontier.0));
    let params: Params<'_> = &[&queue, &number, &key, &frontier, &head.joining];
    transaction.run(statements::PASS_QUEUE, params).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_pays_when_enough_was_stepped_over() {
        let mut passing = Passing::new(100);
        passing.took("q", 30);
        for _ in 0..3 {
            assert!(passing.due().is_empty());
            passing.looked();
        }
        assert!(passing.due().is_empty());
        passing.looked();
        assert_eq!(passing.due(), ["q"]);
        assert!(passing.due().is_empty(), "one round at a time");
    }

    #[test]
    fn what_two_rounds_had_in_view_is_no_longer_counted() {
        let mut passing = Passing::new(1);
        passing.took("q", 30);
        passing.looked();
        passing.due();
        passing.passed("q");
        passing.took("q", 5);
        passing.looked();
        assert_eq!(passing.due(), ["q"], "it is in view, but not passed yet");
        passing.passed("q");
        assert_eq!(passing.queues["q"].taken, 5);
        passing.looked();
        passing.due();
        passing.passed("q");
        passing.looked();
        assert!(passing.due().is_empty(), "nothing lies behind");
    }

    #[test]
    fn a_queue_from_which_nothing_was_taken_is_left_alone() {
        let mut passing = Passing::new(0);
        passing.took("q", 0);
        passing.looked();
        assert!(passing.due().is_empty());
    }
}
