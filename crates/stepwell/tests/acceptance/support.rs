//! What several themes need: stores to run on, readable states and trails, and a journal.

use std::cell::{Cell, RefCell};
use std::fmt::Display;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use erased_serde::{Deserializer, Serialize};
use futures_util::FutureExt;
use stepwell::blocking::Run;
use stepwell::ports::{Clock, Codec, CodecError, Inspection, JsonCodec, StoreDump};
use stepwell::testing::{Gate, ManualClock, TestDatabase, TestEngine, TestEngineBuilder};
use stepwell::{Code, Error, EventKind, RunEvent, TaskState, Timestamp, Workflow, WorkflowRef};
use tempfile::TempDir;

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const MINUTE: Duration = Duration::from_mins(1);
pub(crate) const HOUR: Duration = Duration::from_hours(1);
pub(crate) const DAY: Duration = Duration::from_hours(24);

/// Where a test's engines keep their runs, and how they write payloads.
#[derive(Clone, Copy, Default)]
pub(crate) enum Place {
    #[default]
    Memory,
    Sqlite,
    Postgres,
    /// In memory, by another codec than JSON.
    Inverted,
}

thread_local! {
    /// Where the test that runs on this thread is at home.
    static PLACE: Cell<Place> = const { Cell::new(Place::Memory) };
    /// Folders of its files, until it ends.
    static FOLDERS: RefCell<Vec<TempDir>> = const { RefCell::new(Vec::new()) };
}

/// Runs a test somewhere else than in memory.
pub(crate) fn on(place: Place, test: fn()) {
    PLACE.set(place);
    test();
}

/// Lets tests of a module, which run in memory, run elsewhere too.
macro_rules! run_on {
    ($place:ident, $module:ident: $($test:ident),*) => {
        mod $module {
            use crate::support::{Place, on};
            $(#[test] fn $test() { on(Place::$place, super::$test); })*
        }
    };
}

/// Lets tests of a module run on the other stores, and with another codec.
macro_rules! on_every_store {
    ($($test:ident),* $(,)?) => {
        run_on!(Sqlite, on_sqlite: $($test),*);
        run_on!(Postgres, on_postgres: $($test),*);
        run_on!(Inverted, with_another_codec: $($test),*);
    };
}

/// Says why tests that take long on PostgreSQL need not run there.
macro_rules! not_on_postgres {
    ($why:literal: $($test:ident),* $(,)?) => {
        run_on!(Sqlite, on_sqlite_alone: $($test),*);
    };
}

/// Says why tests of a module run in memory only.
macro_rules! in_memory_only {
    ($why:literal: $($test:ident),* $(,)?) => {
        const _: &[(&str, fn())] = &[$(($why, $test)),*];
    };
}

/// Begins to build the first engine of a test.
pub(crate) fn builder() -> TestEngineBuilder<()> {
    match PLACE.get() {
        Place::Memory => TestEngine::builder(),
        Place::Sqlite => {
            let folder = TempDir::new().unwrap();
            let path = folder.path().join("stepwell.db");
            FOLDERS.with_borrow_mut(|folders| folders.push(folder));
            TestEngine::on_sqlite(path)
        }
        Place::Postgres => TestEngine::on_postgres(TestDatabase::create_blocking()),
        Place::Inverted => TestEngine::builder().codec(Inverted),
    }
}

/// Begins to build another engine on the same store.
pub(crate) fn beside(test: &TestEngine) -> TestEngineBuilder<()> {
    match PLACE.get() {
        Place::Inverted => test.builder_beside().codec(Inverted),
        _ => test.builder_beside(),
    }
}

/// JSON with every bit turned round: no reader of JSON takes it for its own.
pub(crate) struct Inverted;

fn inverted(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| !byte).collect()
}

impl Codec for Inverted {
    fn tag(&self) -> &'static str {
        "inverted"
    }

    fn encode(&self, value: &dyn Serialize) -> Result<Vec<u8>, CodecError> {
        Ok(inverted(&JsonCodec.encode(value)?))
    }

    fn decode(
        &self,
        bytes: &[u8],
        read: &mut dyn FnMut(&mut dyn Deserializer<'_>) -> Result<(), erased_serde::Error>,
    ) -> Result<(), CodecError> {
        JsonCodec.decode(&inverted(bytes), read)
    }

    fn digest(&self, bytes: &[u8]) -> [u8; 32] {
        JsonCodec.digest(&inverted(bytes))
    }
}

/// An engine on virtual time that knows one workflow.
pub(crate) fn engine_with<I, O, S: Send + Sync + 'static>(
    state: S,
    workflow: Workflow<I, O, S>,
) -> (TestEngine, WorkflowRef<I, O>) {
    let mut builder = builder().state(state);
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
        let mut builder = beside(test).state(self.clone());
        builder.workflow(workflow);
        builder.start().unwrap()
    }

    /// Lets a step take `span` of virtual time.
    pub(crate) async fn takes(&self, span: Duration) {
        let clock = self.clock.get().expect("the world's engine was started");
        clock.sleep(span).await;
    }

    /// Time passes while code runs that cannot wait for it.
    pub(crate) fn time_passes(&self, span: Duration) {
        self.clock.get().expect("the world's engine was started").advance(span);
    }
}

/// Everything that a test's store holds.
pub(crate) fn dump(test: &TestEngine) -> StoreDump {
    test.store().dump().now_or_never().expect("it is answered at once").unwrap()
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
            EventKind::Sleeping { until, .. } => format!(" until {}", secs(*until)),
            EventKind::Woken { into, .. } => format!(" into {into}"),
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

#[test]
fn every_test_on_virtual_time_runs_on_every_store_or_says_why_not() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/acceptance");
    for file in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let (tests, lists) = text.split_at(text.find("\non_every_store!").unwrap_or(text.len()));
        let lists =
            if lists.is_empty() { text.split("in_memory_only!(\"").nth(1) } else { Some(lists) };
        // Modules without lists are on real time.
        let Some(lists) = lists else { continue };
        for test in tests.split("#[test]\n").skip(1) {
            let name = test.split("fn ").nth(1).and_then(|rest| rest.split('(').next()).unwrap();
            assert!(lists.contains(&format!("    {name},\n")), "{name} is on no list");
        }
    }
}
