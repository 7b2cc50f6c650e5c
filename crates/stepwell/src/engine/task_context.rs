//! What an execution of a step knows about its task, and what the step's function is called
//! with: still as payloads, before the types of the workflow's author come in.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use stepwell_core::decide::Notes;
use stepwell_core::failure::clean_text;
use stepwell_core::function::derived;
use stepwell_core::id::{RunId, Tenant};
use stepwell_core::limits::{NOTE_BYTES_MAX, NOTE_NAME_BYTES_MAX, NOTES_MAX, PROGRESS_BYTES_MAX};
use stepwell_core::run::{MemoOutcome, RunFailure};
use stepwell_core::time::Timestamp;

use super::function::FunctionState;
use super::held_claims::Stop;
use super::{Parts, RegisteredWorkflow};
use crate::ports::{ClaimRef, History, Payload};

/// What an execution of a step knows about its task.
pub(crate) struct TaskContext {
    pub(crate) parts: Arc<Parts>,
    pub(crate) workflow: Arc<RegisteredWorkflow>,
    pub(crate) claim: ClaimRef,
    pub(crate) run_id: RunId,
    pub(crate) tenant: Tenant,
    pub(crate) attempt: u32,
    /// How many attempts failed before.
    pub(crate) failures: u32,
    /// What ended its last wait.
    pub(crate) resumed: Option<Payload>,
    /// Whether an execution was suspended before, so that its conditions were asked.
    pub(crate) has_suspended: bool,
    /// How often its function went on with another input.
    pub(crate) round: u32,
    pub(crate) stop: Stop,
    /// What earlier executions left, until its function asks for that.
    history: Mutex<Option<Box<History>>>,
    /// What its function does, once it does anything durable.
    function: OnceLock<FunctionState>,
    /// Whether its code is a function, as opposed to a step of a graph.
    is_function: AtomicBool,
    /// Whether its function waits for nothing but the engine.
    waits_for_engine: AtomicBool,
    /// The store's time of the claim, and this process's clock at that moment.
    claimed_at: Timestamp,
    claimed_when: Duration,
    notes: Mutex<Notes>,
    last_beat: Mutex<Duration>,
}

/// What a step's function is called with.
#[derive(Clone)]
pub(crate) struct TaskArgs {
    pub(crate) context: Arc<TaskContext>,
    pub(crate) input: Payload,
    /// Outputs of the parents in the order the program declares them; `None` for skipped ones.
    pub(crate) parents: Vec<Option<Payload>>,
    /// What made the run fail, for its failure handler.
    pub(crate) failure: Option<Box<RunFailure>>,
}

/// The names of the task a context is about.
pub(crate) struct TaskNames {
    pub(crate) claim: ClaimRef,
    pub(crate) run_id: RunId,
    pub(crate) tenant: Tenant,
    pub(crate) attempt: u32,
    pub(crate) failures: u32,
    pub(crate) resumed: Option<Payload>,
    pub(crate) history: Option<Box<History>>,
}

/// The round that a function is in.
fn round_of(history: &History) -> u32 {
    let rounds = history.memos.iter().filter_map(|memo| match memo.row.outcome {
        MemoOutcome::Round(round) => Some(round),
        _ => None,
    });
    rounds.max().unwrap_or(0)
}

impl TaskContext {
    pub(crate) fn new(
        parts: Arc<Parts>,
        workflow: Arc<RegisteredWorkflow>,
        names: TaskNames,
        stop: Stop,
        claimed_at: Timestamp,
    ) -> Self {
        let claimed_when = parts.clock.elapsed();
        let history = names.history.as_deref();
        let has_suspended = history.is_some_and(|history| history.has_suspended);
        let round = history.map_or(0, round_of);
        Self {
            parts,
            workflow,
            claim: names.claim,
            run_id: names.run_id,
            tenant: names.tenant,
            attempt: names.attempt,
            failures: names.failures,
            resumed: names.resumed,
            has_suspended,
            round,
            stop,
            history: Mutex::new(names.history),
            function: OnceLock::new(),
            is_function: AtomicBool::new(false),
            waits_for_engine: AtomicBool::new(false),
            claimed_at,
            claimed_when,
            notes: Mutex::default(),
            last_beat: Mutex::new(claimed_when),
        }
    }

    /// The step's name.
    pub(crate) fn step(&self) -> &str {
        self.workflow.stored.definition.name(self.claim.node)
    }

    /// The same for every attempt of this task in this round, and for no other.
    pub(crate) fn idempotency_key(&self) -> String {
        match self.round {
            0 => format!("{}/{}", self.claim.run, self.step()),
            round => format!("{}/{}~{round}", self.claim.run, self.step()),
        }
    }

    /// Bytes that are the same whenever its function asks for this key in this round.
    pub(crate) fn derived(&self, key: &str) -> [u8; 32] {
        derived(self.claim.run, self.claim.node, self.round, key)
    }

    /// The store's time, as well as this process can tell.
    pub(crate) fn now(&self) -> Timestamp {
        self.claimed_at.after(self.parts.clock.elapsed().saturating_sub(self.claimed_when))
    }

    /// What its function does: for whoever does something durable.
    pub(crate) fn function(&self) -> &FunctionState {
        self.function.get_or_init(|| {
            let history = self.history.lock().expect("no holder of the lock panics").take();
            FunctionState::new(self.claim.node, history, self.claimed_at)
        })
    }

    /// Its code is a function: what it does outside of its steps may begin again elsewhere.
    pub(crate) fn mark_function(&self) {
        self.is_function.store(true, Ordering::Release);
    }

    /// Whether steps of its code may begin. Those of a function may not while the engine stops; a
    /// step of a graph is drained as a whole.
    pub(crate) fn may_start_steps(&self) -> bool {
        let stopping = &self.parts.functions().stopping;
        !(self.is_function.load(Ordering::Acquire) && stopping.is_cancelled())
    }

    /// What its function does, if it did anything durable.
    pub(crate) fn started_function(&self) -> Option<&FunctionState> {
        self.function.get()
    }

    /// When its function last heard of something, or began.
    pub(crate) fn heard_at(&self) -> Timestamp {
        self.function().journal().heard_at()
    }

    /// Its function waits for nothing but the engine, or does not, until the answer is dropped.
    pub(crate) fn wait_for_engine(&self, is_so: bool) -> impl Drop {
        struct Waits<'c>(&'c AtomicBool);
        impl Drop for Waits<'_> {
            fn drop(&mut self) {
                self.0.store(false, Ordering::Release);
            }
        }
        self.waits_for_engine.store(is_so, Ordering::Release);
        Waits(&self.waits_for_engine)
    }

    /// Whether its function waits for nothing but the engine, so that virtual time may move on.
    #[cfg(feature = "testing")]
    pub(crate) fn waits_for_engine(&self) -> bool {
        self.waits_for_engine.load(Ordering::Acquire)
    }

    /// Recorded keys that the code did not ask for.
    pub(crate) fn drift(&self) -> Vec<String> {
        let has_history = self.history.lock().expect("no holder of the lock panics").is_some();
        match self.function.get() {
            None if !has_history => Vec::new(),
            _ => self.function().journal().drift(),
        }
    }

    /// Keeps a note, unless there are as many as the limit allows. One that is too long is cut.
    pub(crate) fn note(&self, name: &str, text: &str) {
        let name = clean_text(name, NOTE_NAME_BYTES_MAX);
        let mut notes = self.notes.lock().expect("no holder of the lock panics");
        if notes.len() < NOTES_MAX || notes.contains_key(&name) {
            notes.insert(name, clean_text(text, NOTE_BYTES_MAX));
        }
    }

    pub(crate) fn take_notes(&self) -> Notes {
        std::mem::take(&mut *self.notes.lock().expect("no holder of the lock panics"))
    }

    /// The step says that it is alive.
    pub(crate) fn beat(&self) {
        *self.last_beat.lock().expect("no holder of the lock panics") = self.parts.clock.elapsed();
    }

    /// The step says how far it has come. What is too long is cut.
    pub(crate) fn tell_progress(&self, text: &str) {
        self.stop.tell(clean_text(text, PROGRESS_BYTES_MAX));
        self.parts.progress_told.notify_one();
    }

    /// How long the step has been silent.
    pub(crate) fn silent_for(&self) -> Duration {
        let last = *self.last_beat.lock().expect("no holder of the lock panics");
        self.parts.clock.elapsed().saturating_sub(last)
    }
}
