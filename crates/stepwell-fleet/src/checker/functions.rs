//! Functions: what they heard of is what is recorded, whoever executed them and however often; and
//! no step was executed again that was known to be done.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use stepwell::core::run::{AttemptRow, AttemptState, MemoOutcome, Resumed, RunStatus};
use stepwell::ports::StoredMemo;

use super::{CheckedRun, Evidence, Faults};
use crate::expected::input_of;
use crate::functions::{self, Effect, EffectMark, N_ROUNDS, number_of, output_of};
use crate::plan::{StepPlan, signal};

/// The lines about each run, and those about runs that are gone.
pub(super) fn by_run(evidence: &Evidence) -> BTreeMap<&str, Vec<&Effect>> {
    let mut runs: BTreeMap<&str, Vec<&Effect>> = BTreeMap::new();
    for effect in &evidence.effects {
        runs.entry(&effect.run).or_default().push(effect);
    }
    runs
}

/// How much functions did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FunctionCounts {
    /// Runs of functions.
    pub function_runs: usize,
    /// Executions of functions.
    pub function_executions: usize,
    /// Steps that were executed to their end.
    pub steps: usize,
    /// Those of them that had been executed to their end before.
    pub steps_again: usize,
    /// Rounds that were begun after the first.
    pub rounds: usize,
}

/// How much functions did.
pub(super) fn counts(evidence: &Evidence) -> FunctionCounts {
    let mut counts = FunctionCounts::default();
    let (mut runs, mut steps, mut rounds) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for Effect { run, round, key, mark, .. } in &evidence.effects {
        counts.function_runs += usize::from(runs.insert(run));
        counts.rounds += usize::from(*round > 0 && rounds.insert((run, round)));
        match mark {
            EffectMark::Entered => counts.function_executions += 1,
            EffectMark::Gave(_) if steps.insert((run, round, key)) => counts.steps += 1,
            EffectMark::Gave(_) => {
                counts.steps += 1;
                counts.steps_again += 1;
            }
            _ => {}
        }
    }
    counts
}

/// What is known of one run of a function.
struct FunctionRun<'a> {
    number: usize,
    input: u64,
    status: RunStatus,
    output: Option<u64>,
    attempts: BTreeMap<u32, &'a AttemptRow>,
    memos: BTreeMap<&'a str, &'a StoredMemo>,
    /// The round that the memos are of.
    round: u32,
    effects: &'a [&'a Effect],
}

/// D2, D5: what became of a run of a function; nothing for one of a graph.
pub(super) fn check(
    run: &CheckedRun<'_>,
    memos: &[StoredMemo],
    effects: &[&Effect],
    faults: Faults,
) -> Vec<String> {
    let name = run.plan.name.as_str();
    let (Some(number), Some(input)) = (number_of(name), input_of(run.log.run.id.as_str())) else {
        return Vec::new();
    };
    let round = memos.iter().find_map(|memo| match memo.row.outcome {
        MemoOutcome::Round(round) => Some(round),
        _ => None,
    });
    let attempts = run.attempts(name).iter().map(|row| (row.attempt, *row)).collect();
    let (status, output) = (run.log.run.status, run.outputs.get(name).copied());
    let round = round.unwrap_or(0);
    let memos = memos.iter().map(|memo| (memo.row.key.as_str(), memo)).collect();
    let run = FunctionRun { number, input, status, output, attempts, memos, round, effects };
    run.violations(faults)
}

impl FunctionRun<'_> {
    fn violations(&self, faults: Faults) -> Vec<String> {
        let mut findings = self.executed_without_claim();
        let mut keys: BTreeMap<(u32, &str), Vec<&Effect>> = BTreeMap::new();
        for effect in self.effects.iter().filter(|effect| !effect.key.is_empty()) {
            keys.entry((effect.round, &effect.key)).or_default().push(effect);
        }
        for ((round, key), lines) in &keys {
            let mut of_key = self.heard_wrong(key, lines);
            of_key.extend(self.executed_again(lines, faults));
            let told = of_key.into_iter().map(|why| format!("{key:?} in round {round}: {why}"));
            findings.extend(told);
        }
        findings.extend(self.memos_wrong(&keys));
        findings.extend(self.order_wrong());
        findings.extend(self.end_wrong());
        findings
    }

    fn state(&self, effect: &Effect) -> Option<AttemptState> {
        self.attempts.get(&effect.attempt).map(|row| row.state)
    }

    /// S5: every execution stems from a claim of its own.
    fn executed_without_claim(&self) -> Vec<String> {
        let is_own = |effect: &&&Effect| {
            let row = self.attempts.get(&effect.attempt);
            row.is_some_and(|row| row.claim.worker.as_str() == effect.process)
        };
        let wrong = self.effects.iter().filter(|effect| !is_own(effect));
        wrong.map(|effect| format!("executed without a claim: {effect:?}")).collect()
    }

    /// D2: a value that was heard of was given by an execution or sent by a signal, and never
    /// changes; an error may be forgotten when the function is tried again.
    fn heard_wrong(&self, key: &str, lines: &[&Effect]) -> Vec<String> {
        let mut findings = Vec::new();
        let heard = lines.iter().filter_map(|line| match line.mark {
            EffectMark::Heard(value) => Some(value),
            _ => None,
        });
        let heard: BTreeSet<u64> = heard.collect();
        if heard.len() > 1 {
            findings.push(format!("it was heard of as {heard:?}"));
        }
        let sent: Vec<u64> = functions::awaited(self.number)
            .iter()
            .filter(|place| StepPlan::wait_name(**place) == key)
            .map(|place| signal(self.input, *place))
            .collect();
        for value in heard {
            let is_given = lines.iter().any(|line| line.mark == EffectMark::Gave(value));
            if !is_given && !sent.contains(&value) {
                findings.push(format!("nobody gave {value}, which it heard of"));
            }
        }
        let has_failed = self.attempts.values().any(|row| row.state == AttemptState::Failed);
        let is_mixed = lines.iter().any(|line| line.mark == EffectMark::HeardOfNone)
            && lines.iter().any(|line| matches!(line.mark, EffectMark::Heard(_)));
        if is_mixed && !has_failed {
            findings.push("a value and an error were heard of".to_owned());
        }
        findings
    }

    /// D2, D5: a step that was executed to its end is executed again only if that execution of its
    /// function came to no end of its own: it was lost, stopped or cancelled.
    fn executed_again(&self, lines: &[&Effect], faults: Faults) -> Vec<String> {
        let mut findings = Vec::new();
        let is_given = |line: &&&Effect| matches!(line.mark, EffectMark::Gave(_));
        let mut done: Option<&Effect> = None;
        // By attempt, and within one in the order in which its process wrote them.
        let mut given: Vec<&Effect> = lines.iter().filter(is_given).copied().collect();
        given.sort_by_key(|line| line.attempt);
        for line in given {
            let Some(earlier) = done.replace(line) else { continue };
            let state = self.state(earlier);
            let may_be = match state {
                Some(AttemptState::Lost) => faults >= Faults::Crashes,
                Some(AttemptState::Released) => faults >= Faults::Restarts,
                _ => false,
            };
            let may_be = may_be && earlier.attempt != line.attempt;
            if !may_be {
                let (attempt, again) = (earlier.attempt, line.attempt);
                findings.push(format!(
                    "it was executed in attempt {attempt}, which is {state:?}, and again in {again}"
                ));
            }
        }
        findings
    }

    /// D5: what is recorded was given by an execution of its round, and is what was heard of.
    fn memos_wrong(&self, keys: &BTreeMap<(u32, &str), Vec<&Effect>>) -> Vec<String> {
        let mut findings = Vec::new();
        for (key, memo) in &self.memos {
            let lines = keys.get(&(self.round, *key)).map_or(&[][..], Vec::as_slice);
            let value = recorded(memo);
            if let MemoOutcome::Given = memo.row.outcome
                && !lines
                    .iter()
                    .any(|line| Some(&line.mark) == value.map(EffectMark::Gave).as_ref())
            {
                findings.push(format!("{key:?}: {value:?} is recorded, and nobody gave it"));
            }
            let other = lines.iter().find(|line| match line.mark {
                EffectMark::Heard(heard) => Some(heard) != value,
                _ => false,
            });
            findings.extend(other.map(|line| format!("{key:?}: {value:?} is recorded, {line:?}")));
        }
        let heard = |line: &&&Effect| matches!(line.mark, EffectMark::Heard(_));
        let of_round = keys.iter().filter(|((round, _), _)| *round == self.round);
        for ((_, key), lines) in of_round {
            if lines.iter().any(|line| heard(&line)) && !self.memos.contains_key(key) {
                findings.push(format!("{key:?} was heard of and is not recorded"));
            }
        }
        findings
    }

    /// D2: what executions of a round heard of, one heard of in the same order, as far as it came.
    /// Threads of blocking code have no order, and an error that is forgotten changes it.
    fn order_wrong(&self) -> Vec<String> {
        let mut told: BTreeMap<(u32, u32), Vec<&str>> = BTreeMap::new();
        for effect in self.effects {
            if matches!(effect.mark, EffectMark::Heard(_) | EffectMark::HeardOfNone) {
                let of = told.entry((effect.round, effect.attempt)).or_default();
                of.push(&effect.key);
            }
        }
        let has_order = ![functions::ERRORS, functions::BLOCKING].contains(&self.number);
        let mut findings = Vec::new();
        for round in 0..N_ROUNDS {
            let of_round = told.iter().filter(|((of, _), _)| *of == round && has_order);
            let of_round: Vec<&Vec<&str>> = of_round.map(|(_, keys)| keys).collect();
            let Some(longest) = of_round.iter().max_by_key(|keys| keys.len()) else { continue };
            let other = of_round.iter().find(|keys| !longest.starts_with(keys));
            findings
                .extend(other.map(|keys| format!("heard in two orders: {keys:?}, {longest:?}")));
        }
        findings
    }

    /// D1: the run's output is what its last execution gave, by what is recorded.
    fn end_wrong(&self) -> Vec<String> {
        if self.status != RunStatus::Completed {
            return self.output.map(|output| format!("it left {output}")).into_iter().collect();
        }
        let completed = self.attempts.values().find(|row| row.state == AttemptState::Completed);
        let last = completed.map(|row| row.attempt);
        let ended = self.effects.iter().find_map(|effect| match &effect.mark {
            EffectMark::Ended { heard, output } if Some(effect.attempt) == last => {
                Some((effect.round, heard, *output))
            }
            _ => None,
        });
        let Some((round, heard, output)) = ended else {
            return vec!["it is completed, and nobody wrote that down".to_owned()];
        };
        let mut findings = Vec::new();
        if self.output != Some(output) {
            findings.push(format!("it left {:?}, its last execution gave {output}", self.output));
        }
        let n_rounds = if self.number == functions::ROUNDS { N_ROUNDS - 1 } else { 0 };
        if (self.round, round) != (n_rounds, n_rounds) {
            findings.push(format!("it ended in round {round}, recorded is {}", self.round));
        }
        let input = (0..round).fold(self.input, |input, _| functions::next_input(input));
        let of_memos = |(key, _): &(String, u64)| {
            let memo = self.memos.get(key.as_str())?;
            Some((key.clone(), recorded(memo)?))
        };
        let by_memos: Option<Vec<(String, u64)>> = heard.iter().map(of_memos).collect();
        if by_memos.map(|heard| output_of(input, &heard)) != Some(output) {
            findings.push("its output does not follow from what is recorded".to_owned());
        }
        findings
    }
}

/// The value that a memo holds or refers to.
fn recorded(memo: &StoredMemo) -> Option<u64> {
    match memo.row.outcome {
        MemoOutcome::Given | MemoOutcome::Ended(Resumed::Signal(_)) => {
            serde_json::from_slice(&memo.payload.as_ref()?.bytes).ok()
        }
        _ => None,
    }
}
