//! What the writing thread remembers, so that it neither reads nor writes a row twice.
//!
//! Rows are changed here while a call works and are written once, when it ends. What was learned
//! holds as long as nobody else commits to the file, which `pragma data_version` tells at the
//! begin of every transaction. Whatever goes wrong, the whole book is thrown away.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use stepwell_core::fair::{OrderKey, Position};
use stepwell_core::id::{DefinitionId, Node, Queue, RunKey, Tenant, WorkerId};
use stepwell_core::run::{RunRow, TaskRow, TaskState};
use stepwell_core::time::Timestamp;

use super::error::corrupt;
use super::file::File;
use super::rows::{count, int, time, unsigned};
use super::statements;
use crate::ports::{Payload, StoreError, TenantSettings};

/// New runs are remembered up to this many: what was started last is claimed last.
const FRESH_RUNS_MAX: usize = 4_096;

/// With more than this many rows of a kind, all is forgotten: memory is finite.
const RUNS_MAX: usize = 16_384;
const TASKS_MAX: usize = 131_072;
const TENANTS_MAX: usize = 65_536;

/// Tasks are counted once in so many transactions.
const TRIMS_PER_COUNT: u32 = 16;

/// The one row of counters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counters {
    pub(super) last_number: u64,
    pub(super) n_claims: u64,
    pub(super) last_epoch: u64,
    pub(super) now: Timestamp,
    pub(super) n_told: u64,
    pub(super) defaults: TenantSettings,
}

/// A tenant's row.
#[derive(Clone, Copy, Debug)]
pub(super) struct TenantRow {
    pub(super) group: u32,
    /// Its own settings; without, the defaults hold.
    pub(super) own: Option<TenantSettings>,
    pub(super) n_ready: u32,
    pub(super) n_running: u32,
    /// Whether tasks are held back; `None` if that was not looked up yet.
    pub(super) holds_back: Option<bool>,
}

/// What is known of one queue.
#[derive(Default)]
pub(super) struct QueueBook {
    pub(super) frontier: Option<Position>,
    pub(super) is_moved: bool,
    pub(super) standings: BTreeMap<u32, Option<Position>>,
    pub(super) standings_changed: BTreeSet<u32>,
    pub(super) served: BTreeMap<DefinitionId, bool>,
}

/// Where a task stands that can be claimed.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) queue: Queue,
    pub(super) order: OrderKey,
    pub(super) number: u64,
    pub(super) position: Position,
    pub(super) definition: DefinitionId,
}

/// A task under change.
pub(super) struct HeldTask {
    pub(super) row: TaskRow,
    pub(super) place: Option<Place>,
    /// How it completed, if that is not in the file yet and has no row of its own.
    pub(super) end: Option<End>,
    /// What the file says; `None` if it does not know of the task yet.
    pub(super) written: Option<Written>,
}

/// How a task completed: what its row keeps of the attempt, and its output if that is small.
pub(super) struct End {
    pub(super) ended_at: Timestamp,
    pub(super) first_event: u64,
    pub(super) with_queued: bool,
    pub(super) output: Option<Payload>,
    /// Its output is too large for its row.
    pub(super) is_large: bool,
}

/// What of a task's row decides how its changes are written.
#[derive(Clone, Copy)]
pub(super) struct Written {
    pub(super) state: TaskState,
    pub(super) losses: u32,
    pub(super) is_placed: bool,
}

impl HeldTask {
    /// A task that is not in the file yet.
    pub(super) fn fresh(row: TaskRow) -> Self {
        Self { row, place: None, end: None, written: None }
    }

    /// A task as the file has it.
    pub(super) fn stored(row: TaskRow, place: Option<Place>) -> Self {
        let mut task = Self { row, place, end: None, written: None };
        task.mark_written();
        task
    }

    /// The file has it as it is here.
    pub(super) fn mark_written(&mut self) {
        let (state, losses) = (self.row.state(), self.row.losses);
        self.written = Some(Written { state, losses, is_placed: self.place.is_some() });
    }
}

/// What of a run's row is not in the file yet.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum RunChange {
    #[default]
    None,
    /// Open tasks and the number of the next event.
    Counters,
    Whole,
}

/// A run under change, with those of its tasks that were needed.
pub(super) struct HeldRun {
    pub(super) row: RunRow,
    /// The number by which other rows name it.
    pub(super) no: i64,
    pub(super) group: u32,
    pub(super) change: RunChange,
    /// It was started by the call that is under way.
    pub(super) is_fresh: bool,
    /// Its input, if that is small and was seen here.
    pub(super) input: Option<Payload>,
    pub(super) tasks: BTreeMap<Node, Box<HeldTask>>,
    /// In the order of the changes, perhaps several times.
    pub(super) tasks_changed: Vec<Node>,
}

impl HeldRun {
    pub(super) fn of(row: RunRow, no: i64, group: u32) -> Self {
        let (tasks, tasks_changed) = (BTreeMap::new(), Vec::new());
        let (change, is_fresh, input) = (RunChange::None, false, None);
        Self { row, no, group, change, is_fresh, input, tasks, tasks_changed }
    }

    /// Takes over a changed row of the run.
    pub(super) fn set_row(&mut self, row: RunRow) {
        let is_same_else = self.row.status == row.status
            && self.row.n_failed == row.n_failed
            && self.row.n_cancelled == row.n_cancelled
            && self.row.cancelled == row.cancelled
            && self.row.failure == row.failure;
        if !is_same_else {
            self.change = RunChange::Whole;
        } else if self.change == RunChange::None {
            self.change = RunChange::Counters;
        }
        self.row = row;
    }

    /// Takes over a changed row; the task's place stays as it is.
    pub(super) fn set_task(&mut self, row: TaskRow) {
        let node = row.node;
        self.tasks_changed.push(node);
        match self.tasks.get_mut(&node) {
            Some(task) => task.row = row,
            None => {
                self.tasks.insert(node, Box::new(HeldTask::fresh(row)));
            }
        }
    }
}

/// Keys of runs are random in their lower half, and few addresses and numbers are alike, so little
/// is left to do for a hash.
#[derive(Default)]
pub(super) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u128(u128::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u128(u128::from(number));
    }

    fn write_usize(&mut self, address: usize) {
        self.write_u128(address as u128);
    }

    #[expect(clippy::cast_possible_truncation, reason = "both halves are used")]
    fn write_u128(&mut self, key: u128) {
        let mixed = (self.0.rotate_left(5) ^ (key >> 64) as u64).rotate_left(32) ^ key as u64;
        self.0 = mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

/// The numbers by which rows name workers.
pub(super) type WorkerNumbers = HashMap<WorkerId, i64>;

/// Runs by key.
#[derive(Default)]
pub(super) struct Runs {
    pub(super) by_key: HashMap<RunKey, Box<HeldRun>, BuildHasherDefault<KeyHasher>>,
}

/// Everything that is remembered.
#[derive(Default)]
pub(super) struct Book {
    /// The version of the file that this holds for.
    version: Option<i64>,
    counters: Option<Counters>,
    pub(super) tenants: BTreeMap<u32, TenantRow>,
    pub(super) tenants_changed: BTreeSet<u32>,
    pub(super) groups: HashMap<Tenant, u32>,
    pub(super) queues: BTreeMap<Queue, QueueBook>,
    pub(super) workers: WorkerNumbers,
    pub(super) runs: Runs,
    /// In the order of the changes, perhaps several times.
    pub(super) runs_changed: Vec<RunKey>,
    /// Tasks that joined a queue in this call, while somebody offers to take them.
    pub(super) joined: Option<Vec<(RunKey, Node)>>,
    n_trims: u32,
}

impl Book {
    /// At the begin of a transaction: forgets everything if anybody else has written.
    pub(super) fn renew(&mut self, file: File<'_, '_>) -> Result<(), StoreError> {
        let version = file.first(statements::DATA_VERSION, [], |row| Ok(row.get(0)?))?;
        if self.version != version || self.counters.is_none() {
            *self = Self { version, counters: Some(counters(file)?), ..Self::default() };
        }
        Ok(())
    }

    /// Forgets all but the counters as they were before the call that failed.
    pub(super) fn fall_back(&mut self, counters: Option<Counters>) {
        *self = Self { version: self.version, counters, ..Self::default() };
    }

    /// The counters, read at the begin of the transaction.
    pub(super) fn counters(&mut self) -> &mut Counters {
        self.counters.as_mut().expect("a transaction begins with reading them")
    }

    pub(super) fn counters_now(&self) -> Option<Counters> {
        self.counters
    }

    /// Who serves what is about to change.
    pub(super) fn forget_service(&mut self) {
        for queue in self.queues.values_mut() {
            queue.served.clear();
        }
    }

    /// Whether there is room to remember a run that was just started.
    pub(super) fn has_room(&self) -> bool {
        self.runs.by_key.len() < FRESH_RUNS_MAX
    }

    /// After a transaction: keeps memory in bounds. Tasks are counted now and then only.
    pub(super) fn trim(&mut self) {
        self.n_trims = self.n_trims.wrapping_add(1);
        let counts_tasks = self.n_trims.is_multiple_of(TRIMS_PER_COUNT);
        let n_tasks = || self.runs.by_key.values().map(|run| run.tasks.len()).sum::<usize>();
        let is_large = self.runs.by_key.len() > RUNS_MAX
            || self.tenants.len() > TENANTS_MAX
            || (counts_tasks && n_tasks() > TASKS_MAX);
        if is_large {
            *self = Self::default();
        }
    }
}

fn counters(file: File<'_, '_>) -> Result<Counters, StoreError> {
    let read = |row: &rusqlite::Row<'_>| {
        Ok(Counters {
            last_number: unsigned(row, 0)?,
            n_claims: unsigned(row, 1)?,
            last_epoch: unsigned(row, 2)?,
            now: time(row, 3)?,
            n_told: unsigned(row, 4)?,
            defaults: TenantSettings { weight: count(row, 5)?, tasks_max: row.get(6)? },
        })
    };
    let found = file.first(statements::READ_COUNTERS, [], read)?;
    found.ok_or_else(|| corrupt("the counters are missing"))
}

impl Counters {
    /// Writes them down.
    pub(super) fn write(&self, file: File<'_, '_>) -> Result<(), StoreError> {
        let row = [
            int(self.last_number),
            int(self.n_claims),
            int(self.last_epoch),
            self.now.as_micros(),
            int(self.n_told),
        ];
        file.run(statements::SET_COUNTERS, row).map(drop)
    }
}
