//! The checker finds every lie about what a fleet did, and nothing in what it really did.

use std::sync::Arc;
use std::time::Duration;

use rstest::rstest;
use stepwell::core::id::{Node, RunKey};
use stepwell::core::run::{AttemptState, EventKind, EventRow, RunLog, RunStatus};
use stepwell::core::time::Timestamp;
use stepwell::{CancelAnswer, Engine, MemoryStore, Run};
use stepwell_fleet::asked::{Asked, AskedCancel};
use stepwell_fleet::checker::{Evidence, Faults};
use stepwell_fleet::expected::{self, run_id};
use stepwell_fleet::history::{Mark, Recorder};
use stepwell_fleet::load::send_all;
use stepwell_fleet::plan::{self, N_RANDOM, WaitPlan, random_name};
use stepwell_fleet::real_time::pause;
use stepwell_fleet::workflow;
use tempfile::TempDir;

/// A process that executed some random runs without faults. One run is cancelled, one by force, one
/// misses its deadline.
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
    let (mut asked, mut runs) = (Asked::default(), Vec::new());
    for number in 0..N_RANDOM {
        let input = number as u64 + 100;
        let id = run_id("run", input);
        let run = engine.start_by_name(&random_name(number), &input).id(&id).await;
        let run = run.expect("it starts");
        let accepted = send_all(&run).await.expect("its signals are stored");
        asked.signals.extend(accepted.into_iter().map(|name| (id.clone(), name)));
        asked.acknowledged.push(id);
        runs.push(run);
    }
    for force in [false, true] {
        let run = start_early(&engine, 200 + u64::from(force), Duration::from_hours(1)).await;
        // By then some of its steps were executed.
        while run.waits().await.expect("they can be read").is_empty() {
            pause(Duration::from_millis(5)).await;
        }
        let cancel = run.cancel();
        let cancel = if force { cancel.force() } else { cancel };
        let (answer, is_repeated) = (cancel.await.expect("it is cancelled"), false);
        assert_eq!(answer, CancelAnswer::Cancelled);
        asked.cancels.insert(run.id().to_owned(), AskedCancel { force, is_repeated, answer });
        runs.push(run);
    }
    runs.push(start_early(&engine, LATE, Duration::from_millis(1)).await);
    for run in &runs {
        run.ended().await.expect("it ends");
    }
    engine.stop(Duration::from_secs(10)).await;
    Evidence::gather(&store, folder.path(), asked).await.expect("it can be read")
}

/// The input of the run that misses its deadline.
const LATE: u64 = 300;

/// Starts a run with a failure handler that ends before it could complete: nobody sends it signals.
async fn start_early(engine: &Engine, input: u64, deadline: Duration) -> Run {
    let plans = plan::all();
    let waits_for_ever = |plan: &&plan::Plan| {
        let is_for_ever = |wait: WaitPlan| wait.timeout.is_none();
        let in_time = expected::TimedOut::new();
        let outputs = expected::outputs(plan, input, &in_time);
        let steps = plan.steps.iter().zip(outputs).filter(|(_, output)| output.is_some());
        let mut waits = steps.filter_map(|(step, _)| step.own_wait());
        plan.has_handler && waits.any(is_for_ever)
    };
    let plan = plans.iter().find(waits_for_ever).expect("there is such a plan");
    let start = engine.start_by_name(&plan.name, &input).id(run_id("early", input));
    start.deadline(deadline).await.expect("it starts")
}

/// The run with this input.
fn log_of(evidence: &mut Evidence, input: u64) -> &mut RunLog {
    let mut logs = evidence.dump.runs.values_mut();
    let log = logs.find(|log| log.run.id.as_str() == run_id("early", input));
    log.expect("it was started")
}

/// The first event of this name of any run, with the run's key.
fn event<'e>(evidence: &'e mut Evidence, name: &str) -> (RunKey, &'e mut EventRow) {
    let logs = evidence.dump.runs.iter_mut();
    let events = logs.flat_map(|(key, log)| log.events.iter_mut().map(|event| (*key, event)));
    let mut named = events.filter(|(_, event)| event.kind.name() == name);
    named.next().expect("there is such an event")
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_found_in_what_really_happened() {
    let evidence = honest().await;
    assert_eq!(evidence.violations(Faults::None), Vec::<String>::new());
    let counts = evidence.counts();
    assert_eq!((counts.runs, counts.lost, counts.released), (N_RANDOM + 3, 0, 0));
    assert!(counts.executions > N_RANDOM * 5);
    assert_eq!((counts.cancelled, counts.late), (2, 1));
    assert!(counts.suspended > 0 && counts.received > 0 && counts.timed_out > 0, "{counts:?}");
}

fn lost_start(evidence: &mut Evidence) {
    evidence.asked.acknowledged.push(run_id("run", 7));
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
        Mark::Began(seen) => seen.iter().any(Option::is_some),
        _ => false,
    };
    let line = evidence.history.iter_mut().find(has_parents).expect("there are children");
    line.at = 0;
}

fn early_execution_by_machines_clock(evidence: &mut Evidence) {
    evidence.has_own_time = true;
    early_execution(evidence);
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

fn lost_signal(evidence: &mut Evidence) {
    let (run, signal) = (run_id("run", 100), "never".to_owned());
    evidence.asked.signals.insert((run, signal));
}

fn signal_that_nobody_got(evidence: &mut Evidence) {
    let (run, event) = event(evidence, "SIGNALLED");
    let EventKind::Signalled { number, .. } = event.kind else { panic!("it is one") };
    let signals = evidence.dump.signals.get_mut(&run).expect("it was sent some");
    signals.retain(|signal| signal.number != number);
}

fn early_time_out(evidence: &mut Evidence) {
    let (_, event) = event(evidence, "TIMED_OUT");
    event.at = Timestamp::EPOCH;
}

fn time_out_of_a_wait_for_ever(evidence: &mut Evidence) {
    let (_, event) = event(evidence, "SIGNALLED");
    let EventKind::Signalled { into, .. } = event.kind else { panic!("it is one") };
    event.kind = EventKind::TimedOut { into, key: String::new() };
}

fn cancel_that_nobody_asked_for(evidence: &mut Evidence) {
    evidence.asked.cancels.clear();
}

fn cancel_that_was_lost(evidence: &mut Evidence) {
    let log = log_of(evidence, 200);
    log.run.status = RunStatus::Completed;
}

fn start_after_a_cancel(evidence: &mut Evidence) {
    let log = log_of(evidence, 200);
    let after = Timestamp::MAX;
    log.attempts.iter_mut().for_each(|attempt| attempt.claim.started_at = after);
}

fn deadline_that_passed_early(evidence: &mut Evidence) {
    log_of(evidence, LATE).run.deadline = Some(Timestamp::MAX);
}

fn failure_without_a_deadline(evidence: &mut Evidence) {
    log_of(evidence, LATE).run.deadline = None;
}

fn handler_that_did_not_run(evidence: &mut Evidence) {
    let key = log_of(evidence, LATE).run.key;
    let tasks = evidence.dump.tasks.get_mut(&key).expect("it has tasks");
    tasks.retain(|task| task.node != Node::ON_FAILURE);
}

#[rstest]
#[case(lost_signal, "was accepted and is lost")]
#[case(signal_that_nobody_got, "it got")]
#[case(early_time_out, "it timed out at")]
#[case(time_out_of_a_wait_for_ever, "it timed out at")]
#[case(cancel_that_nobody_asked_for, "asked for None")]
#[case(cancel_that_was_lost, "after AskedCancel")]
#[case(start_after_a_cancel, "started at")]
#[case(deadline_that_passed_early, "it is FAILED")]
#[case(failure_without_a_deadline, "it is FAILED")]
#[case(handler_that_did_not_run, "its failure handler is None")]
#[case(lost_start, "acknowledged and is lost")]
#[case(vanished_run, "was executed and is gone")]
#[case(unfinished_run, "has not ended")]
#[case(other_output, "it should be Some")]
#[case(missing_output, "left None")]
#[case(unrecorded_end, "did not do that")]
#[case(other_recorded_end, "did not do that")]
#[case(second_execution, "executed twice")]
#[case(execution_by_another, "w002 executed attempt")]
#[case(execution_without_a_claim, "executed attempt 9 of None")]
#[case(early_execution, "began before the end")]
#[case(early_execution_by_machines_clock, "began before the end")]
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

#[tokio::test(flavor = "multi_thread")]
async fn a_store_with_a_time_of_its_own_is_not_held_against_the_machines() {
    let mut evidence = honest().await;
    for line in &mut evidence.history {
        line.at -= 86_400_000_000;
    }
    assert!(!evidence.violations(Faults::None).is_empty());
    evidence.has_own_time = true;
    assert_eq!(evidence.violations(Faults::None), Vec::<String>::new());
}
