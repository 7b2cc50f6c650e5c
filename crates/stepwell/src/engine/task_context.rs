//! What an execution of a step knows about its task, and what the step's function is called
//! with: still as payloads, before the types of the workflow's author come in.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use stepwell_core::decide::Notes;
use stepwell_core::failure::clean_text;
use stepwell_core::id::{RunId, Tenant};
use stepwell_core::limits::{NOTE_BYTES_MAX, NOTE_NAME_BYTES_MAX, NOTES_MAX, PROGRESS_BYTES_MAX};
use stepwell_core::run::RunFailure;
use stepwell_core::time::Timestamp;

use super::held_claims::Stop;
use super::{Parts, RegisteredWorkflow};
use crate::ports::{ClaimRef, Payload};

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
    pub(crate) stop: Stop,
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
        Self {
            parts,
            workflow,
            claim: names.claim,
            run_id: names.run_id,
            tenant: names.tenant,
            attempt: names.attempt,
            failures: names.failures,
            resumed: names.resumed,
            stop,
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

    /// The store's time, as well as this process can tell.
    pub(crate) fn now(&self) -> Timestamp {
        self.claimed_at.after(self.parts.clock.elapsed().saturating_sub(self.claimed_when))
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
