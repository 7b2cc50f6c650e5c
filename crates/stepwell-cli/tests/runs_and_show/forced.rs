//! `stepwell cancel --force`: a run ends at once, without its failure handler.

use std::time::Duration;

use rstest::rstest;
use serde_json::{Value, json};
use stepwell::testing::{Gate, TestEngine};
use stepwell::{StepError, Workflow};
use tempfile::TempDir;

use crate::command::{records, stdout, stepwell_on};
use crate::story::Kind;

/// A store with one run `bakery/cake`, one step of which has failed.
struct Bakery {
    store: String,
    engine: TestEngine,
    _folder: Option<TempDir>,
}

/// A step fails beside one that sleeps, if it is told to; the failure handler hangs.
fn baking(has_sleep: bool) -> Workflow<(), (), Gate> {
    let mut w = Workflow::define::<(), Gate>("baking");
    w.step("bake").run(async |_| Err::<(), _>(StepError::new("burnt").into_permanent()));
    if has_sleep {
        w.sleep("rest", Duration::from_hours(24)).from_start();
    }
    w.on_failure(async |ctx, _| {
        ctx.state().pass().await;
        Ok(())
    });
    w.no_output()
}

impl Bakery {
    fn open(kind: Kind, workflow: Workflow<(), (), Gate>) -> Self {
        let (store, folder, builder) = kind.engine();
        let mut builder = builder.state(Gate::new());
        let baking = builder.workflow(workflow);
        let engine = builder.start().expect("it starts");
        engine.start(&baking, ()).tenant("bakery").id("cake").now().expect("it starts");
        engine.run_until_idle();
        Self { store, engine, _folder: folder }
    }

    fn call(&self, args: &[&str]) -> Value {
        records(&stepwell_on(&self.store, &[args, &["--json"]].concat()).success()).remove(0)
    }

    fn status(&self) -> Value {
        self.call(&["show", "bakery/cake"])["run"]["status"].clone()
    }

    /// Each task with its state.
    fn tasks(&self) -> Vec<String> {
        let shown = self.call(&["show", "bakery/cake"]);
        let tasks = shown["tasks"].as_array().expect("it is a list");
        tasks.iter().map(|task| format!("{} {}", task["step"], task["state"])).collect()
    }

    /// What the log holds of cancels.
    fn cancels(&self) -> Vec<Value> {
        let shown = self.call(&["show", "bakery/cake"]);
        let log = shown["log"].as_array().expect("it is a list");
        let cancels = log.iter().filter(|event| event["event"] == "RUN_CANCELLED");
        cancels.map(|event| event["data"].clone()).collect()
    }
}

#[rstest]
#[case::sqlite(Kind::Sqlite)]
#[case::postgres(Kind::Postgres)]
fn a_running_run_ends_by_force_without_its_handler(#[case] kind: Kind) {
    let bakery = Bakery::open(kind, baking(true));
    assert_eq!(bakery.status(), "RUNNING");
    let cancel = ["cancel", "bakery/cake", "--force", "--reason", "fire", "--by", "ada@desk"];
    let answer = bakery.call(&cancel);
    assert_eq!((&answer["answer"], &answer["status"]), (&json!("cancelled"), &Value::Null));
    // A plain cancel would have come to the handler first, since a step had failed.
    assert_eq!(bakery.status(), "FAILED");
    assert_eq!(bakery.tasks(), [r#""bake" "FAILED""#, r#""rest" "CANCELLED""#]);
    let expected = json!({ "by": "ada@desk", "reason": "fire", "forced": true });
    assert_eq!(bakery.cancels(), [expected]);
    let again = bakery.call(&["cancel", "bakery/cake", "--force"]);
    let ended = (&json!("already_ended"), &json!("FAILED"));
    assert_eq!((&again["answer"], &again["status"]), ended);
    assert_eq!(bakery.cancels().len(), 1, "an ended run keeps its log");
}

#[rstest]
#[case::sqlite(Kind::Sqlite)]
#[case::postgres(Kind::Postgres)]
fn a_run_whose_handler_hangs_ends_by_force_as_it_was_decided(#[case] kind: Kind) {
    let bakery = Bakery::open(kind, baking(false));
    assert_eq!(bakery.status(), "ENDING");
    let plain = bakery.call(&["cancel", "bakery/cake"]);
    let ending = (&json!("already_ending"), &json!("FAILED"));
    assert_eq!((&plain["answer"], &plain["status"]), ending);
    let says = stdout(&stepwell_on(&bakery.store, &["cancel", "bakery/cake"]).success());
    assert!(says.contains("--force"), "{says}");
    assert_eq!((bakery.status(), bakery.cancels().len()), (json!("ENDING"), 0));
    assert_eq!(bakery.engine.as_async().n_running(), 1, "the handler hangs");

    let says = stdout(&stepwell_on(&bakery.store, &["cancel", "bakery/cake", "--force"]).success());
    assert_eq!(says.trim(), "Run bakery/cake was ending, and has ended as FAILED");
    assert_eq!(bakery.status(), "FAILED");
    assert_eq!(bakery.tasks(), [r#""bake" "FAILED""#, r#""on_failure" "CANCELLED""#]);
    assert_eq!(bakery.cancels()[0]["forced"], true);
    // The process that executes the handler is told with its next heartbeat, and drops it.
    bakery.engine.advance(Duration::from_hours(1));
    assert_eq!(bakery.engine.as_async().n_running(), 0);
}
