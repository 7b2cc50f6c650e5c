//! Where queued tasks wait: in a queue, behind a limit, or for a worker that serves them.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use stepwell_core::fair::{
    Group, POSITION_MAX, Position, last_after_cancel, next_position, order_key, stride,
};
use stepwell_core::id::{DefinitionId, Node, Queue, RunKey};
use tokio_postgres::Row;
use uuid::Uuid;

use super::known::RunFacts;
use super::limits::Room;
use super::rows::{count, int, int32, key, name, node, run_key, unsigned};
use super::statements;
use super::transaction::Transaction;
use crate::ports::StoreError;

/// A task that waits to be claimed.
#[derive(Clone, Debug)]
pub(super) struct Queued {
    /// Its place in the order of arrival; 0 until it is put into line.
    pub(super) number: u64,
    pub(super) run: RunKey,
    pub(super) node: Node,
    pub(super) group: u32,
    pub(super) queue: Queue,
    pub(super) definition: DefinitionId,
    pub(super) losses: u32,
}

/// A row of `ready`, `throttled` or `parked`.
pub(super) fn queued(row: &Row) -> Result<Queued, StoreError> {
    Ok(Queued {
        number: unsigned(row, 0)?,
        queue: name(row, 1)?,
        definition: DefinitionId(count(row, 2)?),
        losses: count(row, 3)?,
        run: run_key(row, 4)?,
        node: node(row, 5)?,
        group: count(row, 6)?,
    })
}

/// Where tenants stand in queues: the last position each was given.
pub(super) type Standings = BTreeMap<(u32, Queue), Option<Position>>;

/// Positions of tasks in their queues, and the keys they are ordered by.
#[derive(Default)]
pub(super) struct Slots {
    orders: Vec<i64>,
    positions: Vec<i64>,
}

impl Slots {
    /// The tenants' next positions, in order.
    pub(super) fn of(
        tasks: &[Queued],
        room: &Room,
        standings: &mut Standings,
        frontiers: &BTreeMap<Queue, Position>,
    ) -> Self {
        let mut slots = Self::default();
        for task in tasks {
            let frontier = frontiers.get(&task.queue).copied().unwrap_or_default();
            let last = standings.entry((task.group, task.queue.clone())).or_default();
            // Starts are refused before the positions are used up; what is already under way
            // shares the last one, in order of arrival.
            let position = next_position(frontier, *last, stride(room.weight(task.group)))
                .unwrap_or(Position(POSITION_MAX));
            *last = Some(position);
            slots.positions.push(int(position.0));
            slots.orders.push(int(order_key(position, Group(task.group)).0));
        }
        slots
    }
}

impl Queued {
    /// What is known of its run.
    pub(super) fn facts(&self) -> RunFacts {
        RunFacts { definition: self.definition, group: self.group }
    }
}

pub(super) fn places(tasks: &[Queued]) -> Vec<(u32, Queue)> {
    tasks.iter().map(|task| (task.group, task.queue.clone())).collect()
}

/// Tasks as columns for a statement.
struct Columns<'t> {
    groups: Vec<i32>,
    numbers: Vec<i64>,
    queues: Vec<&'t str>,
    definitions: Vec<i32>,
    losses: Vec<i32>,
    runs: Vec<Uuid>,
    nodes: Vec<i32>,
}

impl<'t> Columns<'t> {
    fn of(tasks: &'t [Queued]) -> Self {
        Self {
            groups: tasks.iter().map(|task| int32(task.group)).collect(),
            numbers: tasks.iter().map(|task| int(task.number)).collect(),
            queues: tasks.iter().map(|task| task.queue.as_str()).collect(),
            definitions: tasks.iter().map(|task| int32(task.definition.0)).collect(),
            losses: tasks.iter().map(|task| int32(task.losses)).collect(),
            runs: tasks.iter().map(|task| key(task.run)).collect(),
            nodes: tasks.iter().map(|task| int32(task.node.0)).collect(),
        }
    }
}

impl Transaction {
    /// Lets tasks wait where they belong: parked if nobody serves them, held back if their
    /// tenant is at its limit, else in their queues.
    pub(super) async fn enqueue(&mut self, mut tasks: Vec<Queued>) -> Result<(), StoreError> {
        if tasks.is_empty() {
            return Ok(());
        }
        self.give_numbers(&mut tasks).await?;
        let served = self.served().await?;
        let is_served =
            |task: &Queued| served.contains(&(task.queue.as_str().to_owned(), task.definition.0));
        let (served, unserved): (Vec<_>, Vec<_>) = tasks.into_iter().partition(is_served);
        self.park(&unserved).await?;
        if served.is_empty() {
            return Ok(());
        }
        let mut room = self.room(served.iter().map(|task| task.group)).await?;
        let (admitted, held): (Vec<_>, Vec<_>) =
            served.into_iter().partition(|task| room.take(task.group));
        self.hold_back(&held).await?;
        self.take_slots(&admitted, &room).await?;
        self.admit(&admitted, &room).await
    }

    async fn give_numbers(&self, tasks: &mut [Queued]) -> Result<(), StoreError> {
        let n_fresh = tasks.iter().filter(|task| task.number == 0).count();
        let numbers = self.take_numbers(n_fresh).await?;
        let fresh = tasks.iter_mut().filter(|task| task.number == 0);
        for (task, number) in fresh.zip(numbers) {
            task.number = number;
        }
        Ok(())
    }

    pub(super) async fn served(&self) -> Result<HashSet<(String, u32)>, StoreError> {
        let rows = self.all(statements::READ_SERVED, &[]).await?;
        rows.iter().map(|row| Ok((row.try_get(0)?, count(row, 1)?))).collect()
    }

    pub(super) async fn park(&self, tasks: &[Queued]) -> Result<(), StoreError> {
        if tasks.is_empty() {
            return Ok(());
        }
        let c = Columns::of(tasks);
        let params: super::transaction::Params<'_> =
            &[&c.queues, &c.definitions, &c.numbers, &c.groups, &c.losses, &c.runs, &c.nodes];
        self.run(statements::INSERT_PARKED, params).await
    }

    pub(super) async fn hold_back(&self, tasks: &[Queued]) -> Result<(), StoreError> {
        if tasks.is_empty() {
            return Ok(());
        }
        let c = Columns::of(tasks);
        let params: super::transaction::Params<'_> =
            &[&c.groups, &c.numbers, &c.queues, &c.definitions, &c.losses, &c.runs, &c.nodes];
        self.run(statements::INSERT_THROTTLED, params).await
    }

    async fn take_slots(&self, tasks: &[Queued], room: &Room) -> Result<(), StoreError> {
        let limited: Vec<Queued> =
            tasks.iter().filter(|task| room.is_limited(task.group)).cloned().collect();
        if limited.is_empty() {
            return Ok(());
        }
        let c = Columns::of(&limited);
        let params: super::transaction::Params<'_> = &[&c.groups, &c.numbers, &c.runs, &c.nodes];
        self.run(statements::INSERT_ADMITTED, params).await
    }

    /// Puts tasks into their queues at their tenants' next positions.
    async fn admit(&self, tasks: &[Queued], room: &Room) -> Result<(), StoreError> {
        if tasks.is_empty() {
            return Ok(());
        }
        let mut standings = self.make_standings(tasks).await?;
        let frontiers = self.frontiers(&places(tasks)).await?;
        let slots = Slots::of(tasks, room, &mut standings, &frontiers);
        self.set_standings(&standings).await?;
        self.insert_ready(tasks, &slots).await
    }

    pub(super) async fn insert_ready(
        &self,
        tasks: &[Queued],
        slots: &Slots,
    ) -> Result<(), StoreError> {
        if tasks.is_empty() {
            return Ok(());
        }
        let c = Columns::of(tasks);
        self.run(
            statements::INSERT_READY,
            &[
                &c.queues,
                &slots.orders,
                &c.numbers,
                &slots.positions,
                &c.groups,
                &c.definitions,
                &c.losses,
                &c.runs,
                &c.nodes,
            ],
        )
        .await
    }

    /// Where tenants stand in queues, locked in order. Made first if need be, when they join.
    pub(super) async fn standings(
        &self,
        places: &[(u32, Queue)],
        make: bool,
    ) -> Result<Standings, StoreError> {
        if places.is_empty() {
            return Ok(Standings::new());
        }
        let asked: BTreeSet<(u32, &Queue)> =
            places.iter().map(|(group, queue)| (*group, queue)).collect();
        let groups: Vec<i32> = asked.iter().map(|(group, _)| int32(*group)).collect();
        let queues: Vec<&str> = asked.iter().map(|(_, queue)| queue.as_str()).collect();
        if make {
            self.run(statements::MAKE_STANDINGS, &[&groups, &queues]).await?;
        }
        let rows = self.all(statements::LOCK_STANDINGS, &[&groups, &queues]).await?;
        let mut standings = BTreeMap::new();
        for row in &rows {
            let last: i64 = row.try_get(2)?;
            let last = u64::try_from(last).ok().map(Position);
            standings.insert((count(row, 0)?, name(row, 1)?), last);
        }
        Ok(standings)
    }

    pub(super) async fn make_standings(&self, tasks: &[Queued]) -> Result<Standings, StoreError> {
        self.standings(&places(tasks), true).await
    }

    pub(super) async fn set_standings(&self, standings: &Standings) -> Result<(), StoreError> {
        if standings.is_empty() {
            return Ok(());
        }
        let groups: Vec<i32> = standings.keys().map(|(group, _)| int32(*group)).collect();
        let queues: Vec<&str> = standings.keys().map(|(_, queue)| queue.as_str()).collect();
        let last: Vec<i64> =
            standings.values().map(|last| last.map_or(-1, |last| int(last.0))).collect();
        self.run(statements::SET_STANDINGS, &[&groups, &queues, &last]).await
    }

    pub(super) async fn frontiers(
        &self,
        places: &[(u32, Queue)],
    ) -> Result<BTreeMap<Queue, Position>, StoreError> {
        if places.is_empty() {
            return Ok(BTreeMap::new());
        }
        let queues: BTreeSet<&str> = places.iter().map(|(_, queue)| queue.as_str()).collect();
        let queues: Vec<&str> = queues.into_iter().collect();
        let rows = self.all(statements::READ_FRONTIERS, &[&queues]).await?;
        rows.iter().map(|row| Ok((name(row, 0)?, Position(unsigned(row, 1)?)))).collect()
    }

    /// Takes cancelled tasks off, wherever they wait, and gives their positions back.
    pub(super) async fn cancel_queued(&self, gone: &[(RunKey, Node)]) -> Result<(), StoreError> {
        if gone.is_empty() {
            return Ok(());
        }
        let runs: Vec<Uuid> = gone.iter().map(|(run, _)| key(*run)).collect();
        let nodes: Vec<i32> = gone.iter().map(|(_, node)| int32(node.0)).collect();
        // In the order in which others move tasks on: what one statement had to wait for, the
        // next one sees where it went.
        self.run(statements::FORGET_PARKED, &[&runs, &nodes]).await?;
        self.run(statements::FORGET_THROTTLED, &[&runs, &nodes]).await?;
        let withdrawn = self.all(statements::TAKE_READY, &[&runs, &nodes]).await?;
        let withdrawn = super::rows::read_all(&withdrawn, queued)?;
        // Tenants are locked before standings, here as everywhere.
        self.room(withdrawn.iter().map(|task| task.group)).await?;
        self.give_back(&withdrawn).await
    }

    /// Tenants whose ready tasks left without a claim get their places back.
    pub(super) async fn give_back(&self, withdrawn: &[Queued]) -> Result<(), StoreError> {
        if withdrawn.is_empty() {
            return Ok(());
        }
        for task in withdrawn {
            self.passing().took(task.queue.as_str(), 1);
        }
        let places = places(withdrawn);
        let mut standings = self.standings(&places, false).await?;
        let frontiers = self.frontiers(&places).await?;
        let groups: Vec<i32> = standings.keys().map(|(group, _)| int32(*group)).collect();
        let queues: Vec<&str> = standings.keys().map(|(_, queue)| queue.as_str()).collect();
        let rows = self.all(statements::GREATEST_POSITIONS, &[&groups, &queues]).await?;
        for row in &rows {
            let queue: Queue = name(row, 1)?;
            let greatest: Option<i64> = row.try_get(2)?;
            let greatest = greatest.map(|position| Position(position.unsigned_abs()));
            let frontier = frontiers.get(&queue).copied().unwrap_or_default();
            let last = last_after_cancel(frontier, greatest);
            standings.insert((count(row, 0)?, queue), Some(last));
        }
        self.set_standings(&standings).await
    }

    /// Parked tasks that are served by now come back, stamped anew, and ready ones that nobody
    /// serves any more are parked.
    pub(super) async fn sort_by_service(&mut self) -> Result<(), StoreError> {
        let back = self.all(statements::UNPARK, &[]).await?;
        let mut back = super::rows::read_all(&back, queued)?;
        back.sort_by_key(|task| task.number);
        self.enqueue(back).await?;
        let unserved = self.all(statements::TAKE_UNSERVED, &[]).await?;
        let unserved = super::rows::read_all(&unserved, queued)?;
        self.give_back(&unserved).await?;
        let gone: Vec<_> = unserved.iter().map(|task| (task.run, task.node)).collect();
        self.enqueue(unserved).await?;
        self.free_slots(&gone).await
    }
}
