//! The quick way into line, for tenants without limits.
//!
//! Tenants are looked at when the transaction begins. One that turns out to have a limit is
//! remembered, and the transaction starts again on the careful way. Where tenants stand is locked
//! last, behind all other writes: whoever puts tasks of the same tenant into line meanwhile waits
//! for nothing but those last statements.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use stepwell_core::fair::Position;
use stepwell_core::id::Queue;
use tokio_postgres::Row;

use super::error::conflict;
use super::limits::Room;
use super::line::{Queued, Slots, Standings, places};
use super::rows::{count, int32, name, unsigned};
use super::transaction::{Params, Transaction, first_error};
use super::{PostgresStore, statements};
use crate::ports::{StoreError, TenantSettings};

/// The settings of tenants without limits, held still.
pub(super) type Unlimited = BTreeMap<u32, TenantSettings>;

/// What has to be known to put tasks into line.
#[derive(Default)]
struct Line {
    standings: Standings,
    frontiers: BTreeMap<Queue, Position>,
    served: HashSet<(String, u32)>,
    spans: Vec<u64>,
}

/// Tasks with their places.
#[derive(Default)]
pub(super) struct Placed {
    served: Vec<Queued>,
    unserved: Vec<Queued>,
    slots: Slots,
    standings: Standings,
}

/// Numbers of arrival are drawn in spans of this many, one draw for a whole batch.
const NUMBERS_PER_SPAN: u64 = 1 << 20;

/// How many spans so many tasks need.
fn n_spans(n_tasks: usize) -> i32 {
    let n_tasks = u64::try_from(n_tasks).unwrap_or(u64::MAX);
    i32::try_from(n_tasks.div_ceil(NUMBERS_PER_SPAN)).unwrap_or(i32::MAX)
}

/// The numbers in spans, in order.
fn numbers_in(spans: Vec<u64>) -> impl Iterator<Item = u64> {
    let first = |span: u64| span.saturating_mul(NUMBERS_PER_SPAN);
    spans.into_iter().flat_map(move |span| first(span)..first(span) + NUMBERS_PER_SPAN)
}

impl Placed {
    /// Whether any of them is left in a queue, for somebody to claim.
    pub(super) fn leaves_any(&self) -> bool {
        !self.served.is_empty()
    }
}

impl Line {
    /// Takes up one of the things that were looked at, by its kind.
    fn add(&mut self, row: &Row) -> Result<(), StoreError> {
        match row.try_get::<_, i32>(0)? {
            1 => {
                self.served.insert((row.try_get(2)?, count(row, 1)?));
            }
            2 => {
                let last: i64 = row.try_get(3)?;
                let last = u64::try_from(last).ok().map(Position);
                self.standings.insert((count(row, 1)?, name(row, 2)?), last);
            }
            3 => {
                self.frontiers.insert(name(row, 2)?, Position(unsigned(row, 3)?));
            }
            _ => self.spans.push(unsigned(row, 3)?),
        }
        Ok(())
    }

    /// Gives tasks their places; those that nobody serves will be parked.
    fn place(mut self, mut tasks: Vec<Queued>, tenants: Unlimited) -> Placed {
        for (task, number) in tasks.iter_mut().zip(numbers_in(self.spans)) {
            task.number = number;
        }
        let is_served = |task: &Queued| {
            self.served.contains(&(task.queue.as_str().to_owned(), task.definition.0))
        };
        let (served, unserved): (Vec<_>, Vec<_>) = tasks.into_iter().partition(is_served);
        let room = Room::without_limits(tenants);
        let slots = Slots::of(&served, &room, &mut self.standings, &self.frontiers);
        let taken: BTreeSet<(u32, Queue)> = places(&served).into_iter().collect();
        self.standings.retain(|place, _| taken.contains(place));
        Placed { served, unserved, slots, standings: self.standings }
    }
}

impl Transaction {
    /// Holds still what tenants' settings are, and reads them, unless one is known to have a limit:
    /// those go the careful way.
    pub(super) async fn look_if_simple(
        &self,
        groups: &BTreeSet<u32>,
    ) -> Result<Option<Unlimited>, StoreError> {
        if groups.is_empty() || self.has_limit(groups) {
            return Ok(None);
        }
        self.look_at_tenants(groups).await.map(Some)
    }

    fn has_limit(&self, groups: &BTreeSet<u32>) -> bool {
        let limited = self.limited();
        !limited.is_empty() && groups.iter().any(|group| limited.contains(group))
    }

    /// Finds places for tasks of tenants that were looked at before: locks where they stand, and
    /// reads the rest.
    pub(super) async fn find_places(
        &self,
        tasks: Vec<Queued>,
        tenants: Unlimited,
    ) -> Result<Placed, StoreError> {
        if tasks.is_empty() {
            return Ok(Placed::default());
        }
        let asked: BTreeSet<(u32, Queue)> = places(&tasks).into_iter().collect();
        let groups: Vec<i32> = asked.iter().map(|(group, _)| int32(*group)).collect();
        let queues: Vec<&str> = asked.iter().map(|(_, queue)| queue.as_str()).collect();
        let n = n_spans(tasks.len());
        let mut line = Line::default();
        for row in &self.all(statements::LOOK_AT_LINE, &[&groups, &queues, &n]).await? {
            line.add(row)?;
        }
        let is_new = |place: &&(u32, Queue)| !line.standings.contains_key(*place);
        let strangers: BTreeSet<(u32, Queue)> = asked.iter().filter(is_new).cloned().collect();
        if !strangers.is_empty() {
            self.strangers().extend(strangers);
            return Err(conflict("a tenant is new to a queue"));
        }
        Ok(line.place(tasks, tenants))
    }

    async fn look_at_tenants(&self, groups: &BTreeSet<u32>) -> Result<Unlimited, StoreError> {
        let numbers: Vec<i32> = groups.iter().map(|group| int32(*group)).collect();
        let params: Params<'_> = &[&numbers];
        let (shared, rows) = tokio::join!(
            biased;
            self.share_tenants(&numbers),
            self.all(statements::READ_TENANTS, params),
        );
        shared?;
        let mut tenants = Unlimited::new();
        for row in &rows? {
            let (weight, tasks_max): (i32, Option<i32>) = (row.try_get(2)?, row.try_get(3)?);
            let tasks_max = tasks_max.map(i32::unsigned_abs);
            let settings = TenantSettings { weight: weight.unsigned_abs(), tasks_max };
            tenants.insert(count(row, 0)?, settings);
        }
        self.check_limits(&tenants)?;
        Ok(tenants)
    }

    /// Whoever has a limit goes the careful way.
    fn check_limits(&self, tenants: &Unlimited) -> Result<(), StoreError> {
        let limited = tenants.iter().filter(|(_, settings)| settings.tasks_max.is_some());
        let limited: Vec<u32> = limited.map(|(group, _)| *group).collect();
        if limited.is_empty() {
            return Ok(());
        }
        self.limited().extend(limited);
        Err(conflict("a tenant has a limit"))
    }

    /// Puts tasks into their queues, or parks those that nobody serves.
    pub(super) async fn join_line(&self, placed: &Placed) -> Result<(), StoreError> {
        let (parked, standing, inserted) = tokio::join!(
            biased;
            self.park(&placed.unserved),
            self.set_standings(&placed.standings),
            self.insert_ready(&placed.served, &placed.slots),
        );
        first_error([parked, standing, inserted])
    }

    /// Holds off changes of settings until the end of the transaction.
    async fn share_tenants(&self, groups: &[i32]) -> Result<(), StoreError> {
        self.all(statements::SHARE_TENANTS, &[&groups]).await.map(drop)
    }

    /// The next numbers of arrival.
    pub(super) async fn take_numbers(&self, n: usize) -> Result<Vec<u64>, StoreError> {
        if n == 0 {
            return Ok(Vec::new());
        }
        let rows = self.all(statements::TAKE_NUMBERS, &[&n_spans(n)]).await?;
        let spans = rows.iter().map(|row| unsigned(row, 0)).collect::<Result<Vec<_>, _>>()?;
        Ok(numbers_in(spans).take(n).collect())
    }
}

impl PostgresStore {
    /// Gives tenants that are new to a queue a row to be locked by, in a short transaction of its
    /// own: found while others are locked already, it could not be locked in order.
    pub(super) async fn introduce_strangers(&self) -> Result<(), StoreError> {
        let strangers = std::mem::take(&mut *self.shared.strangers());
        if strangers.is_empty() {
            return Ok(());
        }
        let transaction = self.begin().await?;
        let strangers: Vec<(u32, Queue)> = strangers.into_iter().collect();
        transaction.standings(&strangers, true).await?;
        self.commit_transaction(transaction).await
    }
}
