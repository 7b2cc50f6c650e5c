//! Workflows and scripts as short texts.
//!
//! A workflow: `a *2; b < a; c < a, b!; s ~24h < c; n ~?5s < c`. `<` names parents, `!` marks one
//! as needed, `*2` gives retries (`*2@0s` with a fixed delay), `~` makes a sleep and `~?` one with
//! a condition. `w ?paid|refused[order=7]/3h` waits for a signal, `w ??paid` asks a worker first.
//! `fail_fast`, `on_failure`, `deadline 6h`, `output a` and `output! a` stand between the steps.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use stepwell_core::decide::{NewSignal, TaskHappening};
use stepwell_core::failure::{Failure, FailureKind, RetryAdvice};
use stepwell_core::id::Node;
use stepwell_core::retry::Retry;
use stepwell_core::run::{Attributes, FunctionWait, WaitFor, WaitKind};
use stepwell_core::time::Timestamp;
use stepwell_core::workflow::{
    Definition, Draft, DraftStep, NodeKind, OutputRule, ParentRef, Placement, StepPolicy,
    WaitPolicy, workflow_hash,
};

const WORKFLOW: &str = "story";

/// The workflow that a text describes.
pub(crate) fn workflow(text: &str) -> Definition {
    let clauses: Vec<&str> = text.split(';').map(str::trim).collect();
    let is_step = |clause: &&str| {
        let word = clause.split(' ').next().unwrap_or_default();
        !matches!(word, "" | "fail_fast" | "on_failure" | "output" | "output!" | "deadline")
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
        on_failure_timeout: None,
        deadline: clauses.iter().find_map(|c| c.strip_prefix("deadline ")).map(parse_span),
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
        } else if let Some(wait) = word.strip_prefix('?') {
            (kind, policy.wait) = (NodeKind::Wait, Some(wait_policy(wait)));
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

fn wait_policy(text: &str) -> WaitPolicy {
    let asks_worker = text.starts_with('?');
    WaitPolicy { wait_for: wait_for(text.trim_start_matches('?')), asks_worker, is_any: false }
}

/// What a task waits for: `paid|refused[order=7,item=2]/3h`.
pub(crate) fn wait_for(text: &str) -> WaitFor {
    let (text, timeout) = match text.split_once('/') {
        Some((text, span)) => (text, Some(parse_span(span))),
        None => (text, None),
    };
    let (names, matching) = text.split_once('[').unwrap_or((text, ""));
    let matching = attributes(matching.trim_end_matches(']').split(','));
    let signals = names.split('|').map(String::from).collect();
    WaitFor { signals, matching, timeout }
}

/// What a function waits for: `ok?paid/3h`, `nap~24h` for a sleep, `save*5s` for a step that is
/// tried again.
pub(crate) fn function_wait(text: &str, place: u32, now: Timestamp) -> FunctionWait {
    let (key, what) = text.split_at(text.find(['?', '~', '*']).expect("what it waits for"));
    let none = || WaitFor { signals: Vec::new(), matching: Attributes::new(), timeout: None };
    let (mark, what) = what.split_at(1);
    let (kind, wait_for) = match mark {
        "?" => (WaitKind::Signal, wait_for(what)),
        "~" => (WaitKind::Sleep, WaitFor { timeout: Some(parse_span(what)), ..none() }),
        _ => (WaitKind::Retry, WaitFor { timeout: Some(parse_span(what)), ..none() }),
    };
    let WaitFor { signals, matching, timeout } = wait_for;
    let deadline = timeout.map(|span| now.after(span));
    FunctionWait { key: key.into(), place, kind, signals, matching, deadline }
}

fn attributes<'t>(texts: impl Iterator<Item = &'t str>) -> Attributes {
    let pairs = texts.filter(|text| !text.is_empty()).map(|text| {
        let (name, value) = text.split_once('=').expect("a name and a value");
        (name.into(), value.into())
    });
    pairs.collect()
}

/// A signal: `paid`, `paid order=7`, `paid key=k1`, `paid(ten)` with a payload.
pub(crate) fn signal(text: &str, key: &str) -> NewSignal {
    let mut words = text.split_whitespace();
    let content = words.next().expect("a signal has a name");
    let (name, _) = content.split_once('(').unwrap_or((content, ""));
    let mut attributes = attributes(words);
    let key = attributes.remove("key").unwrap_or_else(|| key.into());
    let mut hasher = DefaultHasher::new();
    (content, &attributes).hash(&mut hasher);
    let mut digest = [0; 32];
    digest[..8].copy_from_slice(&hasher.finish().to_le_bytes());
    NewSignal { name: name.into(), key, attributes, digest, only_if_awaited: false }
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
        let is_one = ["lose", "wait", "signal", "suspend", "listen"]
            .iter()
            .any(|verb| clause.starts_with(verb))
            || clause.contains('&');
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
        ("continue", _) => TaskHappening::Continued { round: 1, notes: [].into() },
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
        forgets: Vec::new(),
    }
}
