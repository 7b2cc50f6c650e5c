//! The checker finds every lie about what a fleet did, and nothing in what it really did.

use std::sync::Arc;
use std::time::Duration;

use rstest::rstest;
use stepwell::core::id::Node;
use stepwell::core::run::{AttemptState, RunStatus};
use stepwell::{Engine, MemoryStore};
use stepwell_fleet::checker::{Evidence, Faults};
use stepwell_fleet::expected::run_id;
use stepwell_fleet::history::{Mark, Recorder};
use stepwell_fleet::load::send_all;
use stepwell_fleet::plan::{self, N_RANDOM, random_name};
use stepwell_fleet::workflow;
use tempfile::TempDir;

/// A process that executed some random runs without faults.
async fn honest() -> Evidence {
    let folder = TempDir::new().expect("there is room for files");
    let recorder = Recorder::open(folder.path(), "w001").expect("it opens");
    let store = MemoryStore::new();
    let builder = Engine::builder(store.clone()).state(Arc::new(recorder));
    let mut builder = builder.worker_id("w001").default_tenant("t");
    for plan in plan::all() {
        workflow::register(&mut builder, &plan);
    }
    let engine = builder.start().await.expect("it starts");
    let mut ids = Vec::new();
    for number in 0..N_RANDOM {
        let input = number as u64 + 100;
        let id = run_id("run", input);
        let run = engine.start_by_name(&random_name(number), &input).id(&id).await;
        let run = run.expect("it starts");
        send_all(&run).await.expect("its signals are stored");
        ids.push((id, run));
    }
    for (_, run) in &ids {
        run.ended().await.expect("it ends");
    }
    engine.stop(Duration::from_secs(10)).await;
    let acknowledged = ids.into_iter().map(|(id, _)| id).collect();
    Evidence::gather(&store, folder.path(), acknowledged).await.expect("it can be read")
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_found_in_what_really_happened() {
    let evidence = honest().await;
    assert_eq!(evidence.violations(Faults::None), Vec::<String>::new());
    let counts = evidence.counts();
    assert_eq!((counts.runs, counts.lost, counts.released), (N_RANDOM, 0, 0));
    assert!(counts.executions > counts.runs * 5);
}

fn lost_start(evidence: &mut Evidence) {
    evidence.acknowledged.push(run_id("run", 7));
}

fn vanished_run(evidence: &mut Evidence) {
    let key = *evidence.dump.runs.keys().next().expect("there are runs");
    evidence.dump.runs.remove(&key);
}

fn unfinished_run(evidence: &mut Evidence) {
    let log = evidence.dump.runs.values_mut().next().expect("there are runs");
    log.run.status = RunStatus::Running;
}

fn other_output(evidence: &mut Evidence) {
    let outputs = evidence.outputs.values_mut().next().expect("there are runs");
    *outputs.get_mut(&Node(0)).expect("the first step has one") += 1;
}

fn missing_output(evidence: &mut Evidence) {
    evidence.outputs.values_mut().next().expect("there are runs").remove(&Node(0));
}

fn unrecorded_end(evidence: &mut Evidence) {
    let is_end = |line: &stepwell_fleet::history::Line| matches!(line.mark, Mark::Gave(_));
    let place = evidence.history.iter().position(is_end).expect("there are ends");
    evidence.history.remove(place);
}

fn other_recorded_end(evidence: &mut Evidence) {
    for line in &mut evidence.history {
        if let Mark::Gave(output) = &mut line.mark {
            return *output += 1;
        }
    }
}

fn second_execution(evidence: &mut Evidence) {
    let line = evidence.history[0].clone();
    evidence.history.push(line);
}

fn execution_by_another(evidence: &mut Evidence) {
    let mut line = evidence.history[0].clone();
    line.process = String::from("w002");
    evidence.history.push(line);
}

fn execution_without_a_claim(evidence: &mut Evidence) {
    let mut line = evidence.history[0].clone();
    line.attempt = 9;
    evidence.history.push(line);
}

fn early_execution(evidence: &mut Evidence) {
    let has_parents = |line: &&mut stepwell_fleet::history::Line| match &line.mark {
        Mark::Began(seen) => !seen.is_empty(),
        _ => false,
    };
    let line = evidence.history.iter_mut().find(has_parents).expect("there are children");
    line.at = 0;
}

fn other_parents(evidence: &mut Evidence) {
    for line in &mut evidence.history {
        if let Mark::Began(seen) = &mut line.mark
            && let Some(first) = seen.first_mut()
        {
            *first = Some(1);
            return;
        }
    }
}

fn lost_attempt(evidence: &mut Evidence) {
    set_first_attempt(evidence, AttemptState::Lost);
}

fn released_attempt(evidence: &mut Evidence) {
    set_first_attempt(evidence, AttemptState::Released);
}

fn set_first_attempt(evidence: &mut Evidence, state: AttemptState) {
    let log = evidence.dump.runs.values_mut().next().expect("there are runs");
    log.attempts[0].state = state;
}

fn forgotten_attempt(evidence: &mut Evidence) {
    let log = evidence.dump.runs.values_mut().next().expect("there are runs");
    log.attempts.pop();
}

#[rstest]
#[case(lost_start, "acknowledged and is lost")]
#[case(vanished_run, "was executed and is gone")]
#[case(unfinished_run, "instead of COMPLETED")]
#[case(other_output, "it should be Some")]
#[case(missing_output, "left None")]
#[case(unrecorded_end, "did not do that")]
#[case(other_recorded_end, "did not do that")]
#[case(second_execution, "executed twice")]
#[case(execution_by_another, "w002 executed attempt")]
#[case(execution_without_a_claim, "executed attempt 9 of None")]
#[case(early_execution, "began before the end")]
#[case(other_parents, "was given")]
#[case(lost_attempt, "ended LOST")]
#[case(released_attempt, "ended RELEASED")]
#[case(forgotten_attempt, "of its attempts succeeded")]
#[tokio::test(flavor = "multi_thread")]
async fn every_lie_about_a_fleet_is_found(#[case] tell: fn(&mut Evidence), #[case] expected: &str) {
    let mut evidence = honest().await;
    tell(&mut evidence);
    let found = evidence.violations(Faults::None);
    assert!(found.iter().any(|finding| finding.contains(expected)), "{found:#?}");
}
