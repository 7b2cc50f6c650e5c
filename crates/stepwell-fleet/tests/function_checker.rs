//! The checker finds every lie about what functions of a fleet did, and nothing in what they did.

use std::sync::Arc;
use std::time::Duration;

use stepwell::core::run::MemoOutcome;
use stepwell::ports::StoredMemo;
use stepwell::{Engine, MemoryStore};
use stepwell_fleet::asked::Asked;
use stepwell_fleet::checker::{Evidence, Faults};
use stepwell_fleet::expected::run_id;
use stepwell_fleet::functions::{self, BLOCKING, Effect, EffectMark, FAN, N_FUNCTIONS};
use stepwell_fleet::history::Recorder;
use stepwell_fleet::load::send_all;
use tempfile::TempDir;

/// What a process left that executed a run of each function, without faults.
struct Honest {
    store: MemoryStore,
    folder: TempDir,
    asked: Asked,
}

impl Honest {
    async fn evidence(&self) -> Evidence {
        let gathered = Evidence::gather(&self.store, self.folder.path(), self.asked.clone()).await;
        gathered.expect("it can be read")
    }
}

async fn honest() -> Honest {
    let folder = TempDir::new().expect("there is room for files");
    let recorder = Recorder::open(folder.path(), "w001").expect("it opens");
    let store = MemoryStore::new();
    let builder = Engine::builder(store.clone()).state(Arc::new(recorder));
    let mut builder = builder.worker_id("w001").default_tenant("t");
    functions::register(&mut builder);
    let engine = builder.start().await.expect("it starts");
    let (mut asked, mut runs) = (Asked::default(), Vec::new());
    for number in 0..N_FUNCTIONS {
        let input = number as u64 + 100;
        let id = run_id("run", input);
        let start = engine.start_by_name(&functions::name(number), &input).id(&id);
        let run = start.await.expect("it starts");
        let accepted = send_all(&run).await.expect("its signals are stored");
        asked.signals.extend(accepted.into_iter().map(|name| (id.clone(), name)));
        asked.acknowledged.push(id);
        runs.push(run);
    }
    for run in &runs {
        run.ended().await.expect("it ends");
    }
    engine.stop(Duration::from_secs(10)).await;
    Honest { store, folder, asked }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_found_in_what_functions_really_did() {
    let evidence = honest().await.evidence().await;
    assert_eq!(evidence.violations(Faults::None), Vec::<String>::new());
    let counts = evidence.function_counts();
    assert_eq!((counts.function_runs, counts.steps_again), (N_FUNCTIONS, 0), "{counts:?}");
    assert!(counts.function_executions > 2 * N_FUNCTIONS, "{counts:?}");
    assert_eq!(counts.rounds, 2);
    assert!(evidence.counts().suspended > N_FUNCTIONS);
}

/// The first line that is meant.
fn line(evidence: &mut Evidence, is_meant: impl Fn(&Effect) -> bool) -> usize {
    evidence.effects.iter().position(is_meant).expect("there is such a line")
}

/// A line of the function of steps side by side about a key.
fn of_fan(key: &str, is_meant: fn(&EffectMark) -> bool) -> impl Fn(&Effect) -> bool + '_ {
    move |effect| {
        effect.run == run_id("run", 100 + FAN as u64) && effect.key == key && is_meant(&effect.mark)
    }
}

const IS_HEARD: fn(&EffectMark) -> bool = |mark| matches!(mark, EffectMark::Heard(_));
const IS_GIVEN: fn(&EffectMark) -> bool = |mark| matches!(mark, EffectMark::Gave(_));

fn memo<'e>(evidence: &'e mut Evidence, key: &str) -> &'e mut StoredMemo {
    let memos = evidence.memos.values_mut().flatten();
    memos.into_iter().find(|memo| memo.row.key == key).expect("it is recorded")
}

fn heard_as_another_value(evidence: &mut Evidence) {
    let first = line(evidence, of_fan("fan[1]", IS_HEARD));
    let mut other = evidence.effects[first].clone();
    other.mark = EffectMark::Heard(7);
    evidence.effects.push(other);
}

fn heard_as_nobody_gave_it(evidence: &mut Evidence) {
    let given = line(evidence, of_fan("fan[1]", IS_GIVEN));
    evidence.effects[given].mark = EffectMark::Gave(7);
}

fn executed_again(evidence: &mut Evidence) {
    let given = line(evidence, of_fan("fan[1]", IS_GIVEN));
    let mut again = evidence.effects[given].clone();
    again.attempt += 1;
    evidence.effects.push(again);
}

fn executed_twice_at_once(evidence: &mut Evidence) {
    let given = line(evidence, of_fan("fan[1]", IS_GIVEN));
    let again = evidence.effects[given].clone();
    evidence.effects.push(again);
}

fn executed_without_a_claim(evidence: &mut Evidence) {
    let given = line(evidence, of_fan("fan[1]", IS_GIVEN));
    "w002".clone_into(&mut evidence.effects[given].process);
}

fn heard_in_another_order(evidence: &mut Evidence) {
    let one = line(evidence, of_fan("fan[1]", IS_HEARD));
    let other = line(evidence, of_fan("branch", IS_HEARD));
    evidence.effects.swap(one, other);
}

fn recorded_by_nobody(evidence: &mut Evidence) {
    let payload = &mut memo(evidence, "fan[1]").payload;
    let payload = payload.as_mut().expect("it has a value");
    payload.bytes = b"7".to_vec().into();
}

fn not_recorded(evidence: &mut Evidence) {
    for memos in evidence.memos.values_mut() {
        memos.retain(|memo| memo.row.key != "fan[1]");
    }
}

fn another_output(evidence: &mut Evidence) {
    for outputs in evidence.outputs.values_mut() {
        for output in outputs.values_mut() {
            *output ^= 1;
        }
    }
}

fn an_end_that_nobody_wrote_down(evidence: &mut Evidence) {
    evidence.effects.retain(|effect| !matches!(effect.mark, EffectMark::Ended { .. }));
}

fn a_signal_that_was_not_sent(evidence: &mut Evidence) {
    for effect in &mut evidence.effects {
        if let (EffectMark::Heard(value), "wait0") = (&mut effect.mark, effect.key.as_str()) {
            *value ^= 1;
        }
    }
}

fn a_round_that_is_forgotten(evidence: &mut Evidence) {
    for memos in evidence.memos.values_mut() {
        memos.retain(|memo| !matches!(memo.row.outcome, MemoOutcome::Round(_)));
    }
}

fn a_run_that_is_gone(evidence: &mut Evidence) {
    let mut of_none = evidence.effects[0].clone();
    of_none.run = run_id("run", 1);
    evidence.effects.push(of_none);
}

fn a_value_after_an_error(evidence: &mut Evidence) {
    let is_late = |effect: &Effect| {
        effect.run == run_id("run", 100 + BLOCKING as u64) && effect.key == "last"
    };
    let given = line(evidence, is_late);
    let mut none = evidence.effects[given].clone();
    none.mark = EffectMark::HeardOfNone;
    evidence.effects.push(none);
}

/// A lie, and what is said of it.
type Lie = (fn(&mut Evidence), &'static str);

const LIES: [Lie; 14] = [
    (heard_as_another_value, "it was heard of as"),
    (heard_as_nobody_gave_it, "nobody gave"),
    (executed_again, "and again in"),
    (executed_twice_at_once, "and again in"),
    (executed_without_a_claim, "without a claim"),
    (heard_in_another_order, "heard in two orders"),
    (recorded_by_nobody, "is recorded, and nobody gave it"),
    (not_recorded, "was heard of and is not recorded"),
    (another_output, "its last execution gave"),
    (an_end_that_nobody_wrote_down, "nobody wrote that down"),
    (a_signal_that_was_not_sent, "nobody gave"),
    (a_round_that_is_forgotten, "it ended in round 2, recorded is 0"),
    (a_run_that_is_gone, "is gone"),
    (a_value_after_an_error, "a value and an error"),
];

#[tokio::test(flavor = "multi_thread")]
async fn every_lie_about_functions_is_found() {
    let honest = honest().await;
    for (tell, expected) in LIES {
        let mut evidence = honest.evidence().await;
        tell(&mut evidence);
        let found = evidence.violations(Faults::None);
        let is_found = found.iter().any(|finding| finding.contains(expected));
        assert!(is_found, "{expected}: {found:#?}");
    }
}
