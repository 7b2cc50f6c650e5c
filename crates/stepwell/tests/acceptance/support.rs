//! What several themes need: readable states and trails, gates to hold steps at, and a journal.

use std::fmt::Display;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use stepwell::blocking::Run;
use stepwell::ports::Clock;
use stepwell::testing::{ManualClock, TestEngine};
use stepwell::{Code, Error, EventKind, RunEvent, TaskState, Timestamp, Workflow, WorkflowRef};
use tokio::sync::Semaphore;

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const MINUTE: Duration = Duration::from_mins(1);
pub(crate) const HOUR: Duration = Duration::from_hours(1);
pub(crate) const DAY: Duration = Duration::from_hours(24);

/// An engine on virtual time that knows one workflow.
pub(crate) fn engine_with<I, O, S: Send + Sync + 'static>(
    state: S,
    workflow: Workflow<I, O, S>,
) -> (TestEngine, WorkflowRef<I, O>) {
    let mut builder = TestEngine::builder().state(state);
    let handle = builder.workflow(workflow);
    (builder.start().unwrap(), handle)
}

/// What happened, in the order it did. Clones share one journal.
#[derive(Clone, Default)]
pub(crate) struct Journal(Arc<Mutex<Vec<String>>>);

impl Journal {
    pub(crate) fn write(&self, line: impl Display) {
        self.0.lock().unwrap().push(line.to_string());
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn count(&self, line: &str) -> usize {
        self.lines().iter().filter(|written| *written == line).count()
    }

    /// Writes `line` when it is dropped.
    pub(crate) fn write_on_drop(&self, line: &'static str) -> WriteOnDrop {
        WriteOnDrop(self.clone(), line)
    }
}

/// Writes a line when it is dropped, as a step's future is when the step is stopped.
pub(crate) struct WriteOnDrop(Journal, &'static str);

impl Drop for WriteOnDrop {
    fn drop(&mut self) {
        self.0.write(self.1);
    }
}

/// Holds steps until the test lets them pass. Clones share one gate.
#[derive(Clone)]
pub(crate) struct Gate(Arc<Semaphore>);

impl Default for Gate {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }
}

impl Gate {
    /// Waits for a passage and uses it up.
    pub(crate) async fn pass(&self) {
        self.0.acquire().await.unwrap().forget();
    }

    /// Lets `n` steps pass, those that wait and those that come.
    pub(crate) fn let_pass(&self, n: usize) {
        self.0.add_permits(n);
    }
}

/// What most workflows of these tests share: a journal to write, a gate to wait at, and a clock
/// for steps that take their time.
#[derive(Clone, Default)]
pub(crate) struct World {
    pub(crate) journal: Journal,
    pub(crate) gate: Gate,
    clock: Arc<OnceLock<ManualClock>>,
}

impl World {
    /// An engine on virtual time that knows one workflow, with this world as its state.
    pub(crate) fn engine<I, O>(
        &self,
        workflow: Workflow<I, O, Self>,
    ) -> (TestEngine, WorkflowRef<I, O>) {
        let (test, handle) = engine_with(self.clone(), workflow);
        self.clock.set(test.clock().clone()).unwrap();
        (test, handle)
    }

    /// Another engine on the same store, with the same workflow.
    pub(crate) fn beside<I, O>(
        &self,
        test: &TestEngine,
        workflow: Workflow<I, O, Self>,
    ) -> TestEngine {
        let mut builder = test.builder_beside().state(self.clone());
        builder.workflow(workflow);
        builder.start().unwrap()
    }

    /// Lets a step take `span` of virtual time.
    pub(crate) async fn takes(&self, span: Duration) {
        let clock = self.clock.get().expect("the world's engine was started");
        clock.sleep(span).await;
    }
}

/// The state of one step.
pub(crate) fn state<O: 'static>(run: &Run<O>, step: &str) -> TaskState {
    let tasks = run.tasks().unwrap();
    tasks.iter().find(|task| task.step == step).expect("the run has the step").state
}

/// All steps in order of declaration, as in `a COMPLETED, b SKIPPED`.
pub(crate) fn states<O: 'static>(run: &Run<O>) -> String {
    let tasks = run.tasks().unwrap();
    let words: Vec<String> =
        tasks.iter().map(|task| format!("{} {}", task.step, task.state)).collect();
    words.join(", ")
}

/// The names of a step's events in order, as in `QUEUED STARTED COMPLETED`.
pub(crate) fn trail<O: 'static>(run: &Run<O>, step: &str) -> String {
    let events = run.events().unwrap();
    let of_step = events.iter().filter(|event| event.step.as_deref() == Some(step));
    let names: Vec<&str> = of_step.map(|event| event.kind.name()).collect();
    names.join(" ")
}

/// The whole log, a line per event, as in `3 +0s a#1 STARTED`: number, time since the run's
/// start, step and attempt, name and what it carries. Open tasks have no numbers.
pub(crate) fn log<O: 'static>(run: &Run<O>) -> Vec<String> {
    let events = run.events().unwrap();
    let start = events[0].at;
    let secs = |at: Timestamp| format!("+{}s", at.since(start).as_secs_f64());
    let line = |event: &RunEvent| {
        let number = event.number.map_or("-".to_owned(), |number| number.to_string());
        let at = secs(event.at);
        let step = event.step.as_ref().map_or(String::new(), |step| format!(" {step}"));
        let attempt =
            if event.attempt == 0 { String::new() } else { format!("#{}", event.attempt) };
        let more = match &event.kind {
            EventKind::RunEnded { status } | EventKind::RunEnding { ends_as: status } => {
                format!(" {status}")
            }
            EventKind::Failed { failure } => format!(" {}", failure.message),
            EventKind::Retrying { count, delay, due, failure } => {
                format!(" {count} in {delay:?} at {}: {}", secs(*due), failure.message)
            }
            EventKind::Sleeping { until } => format!(" until {}", secs(*until)),
            EventKind::Woken { into } => format!(" into {into}"),
            _ => String::new(),
        };
        format!("{number} {at}{step}{attempt} {}{more}", event.kind.name())
    };
    events.iter().map(line).collect()
}

/// When a step's attempts started, in whole seconds since the run's start.
pub(crate) fn starts_secs<O: 'static>(run: &Run<O>, step: &str) -> Vec<u64> {
    let events = run.events().unwrap();
    let is_start = |event: &&RunEvent| {
        event.step.as_deref() == Some(step) && matches!(event.kind, EventKind::Started { .. })
    };
    events.iter().filter(is_start).map(|event| event.at.since(events[0].at).as_secs()).collect()
}

/// The error of a call that must be refused, checked for its code and for words it must hold.
#[track_caller]
pub(crate) fn refused<T>(answer: Result<T, Error>, code: Code, words: &[&str]) {
    let Err(error) = answer else { panic!("{code} was expected, the call went well") };
    let text = error.to_string();
    assert_eq!(error.code(), code, "{text}");
    assert!(text.starts_with(&code.to_string()), "the message begins with its code: {text}");
    for word in words {
        assert!(text.contains(word), "{word:?} is missing in: {text}");
    }
}
