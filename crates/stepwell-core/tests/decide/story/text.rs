//! Workflows and scripts as short texts.
//!
//! A workflow: `a *2; b < a; c < a, b!; s ~24h < c; n ~?5s < c`. `<` names parents, `!` marks one
//! as needed, `*2` gives retries (`*2@0s` with a fixed delay), `~` makes a sleep and `~?` one with
//! a condition. `fail_fast`, `on_failure`, `output a` and `output! a` stand between the steps.

use std::time::Duration;

use stepwell_core::decide::TaskHappening;
use stepwell_core::failure::{Failure, FailureKind, RetryAdvice};
use stepwell_core::id::Node;
use stepwell_core::retry::Retry;
use stepwell_core::workflow::{
    Definition, Draft, DraftStep, NodeKind, OutputRule, ParentRef, Placement, StepPolicy,
    workflow_hash,
};

const WORKFLOW: &str = "story";

/// The workflow that a text describes.
pub(crate) fn workflow(text: &str) -> Definition {
    let clauses: Vec<&str> = text.split(';').map(str::trim).collect();
    let is_step = |clause: &&str| {
        !matches!(*clause, "" | "fail_fast" | "on_failure") && !clause.starts_with("output")
    };
    let steps: Vec<&str> = clauses.iter().copied().filter(is_step).collect();
    let names: Vec<&str> =
        steps.iter().map(|step| words(step).next().expect("a step begins with its name")).collect();
    let draft = Draft {
        workflow: WORKFLOW.into(),
        version: None,
        steps: steps.iter().map(|step| draft_step(step, &names)).collect(),
        fail_fast: clauses.contains(&"fail_fast"),
        on_failure: clauses.contains(&"on_failure"),
        output: clauses.iter().find_map(|clause| output(clause, &names)),
    };
    draft.resolve().expect("the story's workflow is right")
}

fn words(clause: &str) -> impl Iterator<Item = &str> {
    clause.split([' ', '<', '~', '*']).filter(|w| !w.is_empty())
}

fn output(clause: &str, names: &[&str]) -> Option<OutputRule> {
    let (word, name) = clause.split_once(' ')?;
    let required = match word {
        "output!" => true,
        "output" => false,
        _ => return None,
    };
    let node = Node(number(name, names));
    Some(OutputRule { node, required })
}

fn draft_step(clause: &str, names: &[&str]) -> DraftStep {
    let (head, parents) = clause.split_once('<').unwrap_or((clause, ""));
    let mut policy = StepPolicy::default();
    let mut kind = NodeKind::Step;
    for word in head.split_whitespace().skip(1) {
        if let Some(span) = word.strip_prefix("~?") {
            (kind, policy.sleep) = (NodeKind::ConditionalSleep, parse_span(span));
        } else if let Some(span) = word.strip_prefix('~') {
            (kind, policy.sleep) = (NodeKind::Sleep, parse_span(span));
        } else if let Some(retries) = word.strip_prefix('*') {
            policy.retry = parse_retry(retries);
        } else {
            panic!("{word:?} in {clause:?} means nothing");
        }
    }
    let parents = parents.split(',').map(str::trim).filter(|p| !p.is_empty());
    DraftStep {
        name: words(clause).next().unwrap_or_default().into(),
        kind,
        placement: Placement::Explicit(parents.map(|p| parent(p, names)).collect()),
        policy,
    }
}

fn parent(text: &str, names: &[&str]) -> ParentRef {
    ParentRef::Handle {
        index: number(text.trim_end_matches('!'), names),
        workflow: workflow_hash(WORKFLOW),
        needed: text.ends_with('!'),
    }
}

fn number(name: &str, names: &[&str]) -> u32 {
    let found = names.iter().position(|known| *known == name);
    let found = found.unwrap_or_else(|| panic!("no step {name:?}"));
    u32::try_from(found).expect("a story has few steps")
}

fn parse_retry(text: &str) -> Retry {
    let (retries, delay) = text.split_once('@').unwrap_or((text, ""));
    let retries = retries.parse().expect("a number of retries");
    if delay.is_empty() {
        return Retry::exponential(retries);
    }
    Retry::fixed(retries, parse_span(delay))
}

/// A span such as `24h`, `5m` or `1s`.
pub(crate) fn parse_span(text: &str) -> Duration {
    let (number, unit) = text.split_at(text.len() - 1);
    let seconds = match unit {
        "h" => 3_600,
        "m" => 60,
        "s" => 1,
        _ => panic!("no unit of time in {text:?}"),
    };
    Duration::from_secs(number.parse::<u64>().expect("a number of units") * seconds)
}

/// A span as [`parse_span`] reads it.
pub(crate) fn print_span(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        1.. if seconds.is_multiple_of(3_600) => format!("{}h", seconds / 3_600),
        1.. if seconds.is_multiple_of(60) => format!("{}m", seconds / 60),
        _ => format!("{seconds}s"),
    }
}

/// The clauses of a script, with several tasks of one verb told apart.
pub(crate) fn clauses(script: &str) -> Vec<String> {
    let mut clauses = Vec::new();
    for clause in script.split(';').map(str::trim).filter(|c| !c.is_empty()) {
        let is_one = clause.starts_with("lose") || clause.contains('&');
        match clause.split_once(' ') {
            Some((verb, names)) if !is_one => {
                let each = names.split_whitespace().map(|name| format!("{verb} {name}"));
                clauses.extend(each);
            }
            _ => clauses.push(clause.into()),
        }
    }
    clauses
}

/// What a verb of a script says about a claimed task: `done`, `fail` (`fail!` for good, `fail@5s`
/// with advice), `time_out`, `skip`, `release`, and `nap` for a sleep whose condition lets it.
pub(crate) fn happening(verb: &str) -> TaskHappening {
    match verb.split_once('@').unwrap_or((verb, "")) {
        ("done", _) => TaskHappening::Completed { notes: [].into() },
        ("skip", _) => TaskHappening::Skipped,
        ("nap", _) => TaskHappening::Slept,
        ("release", _) => TaskHappening::Released,
        ("fail", "") => failed(FailureKind::Error, RetryAdvice::ByPolicy),
        ("fail", delay) => failed(FailureKind::Error, RetryAdvice::After(parse_span(delay))),
        ("time_out", _) => failed(FailureKind::TimedOut, RetryAdvice::ByPolicy),
        ("fail!", _) => failed(FailureKind::Error, RetryAdvice::Never),
        _ => panic!("no such verb: {verb:?}"),
    }
}

fn failed(kind: FailureKind, advice: RetryAdvice) -> TaskHappening {
    TaskHappening::Failed {
        failure: Failure::new(kind, "Boom", "boom").with_retry(advice),
        notes: [].into(),
        chance: 0,
        failures: 0,
    }
}
