//! Workflows as short texts: `a; b < a; c < a, b!; s ~ 24h < c`.
//!
//! Steps are separated by semicolons. Behind a step's name may stand `~ 24h` (it sleeps), `~? 24h`
//! (it sleeps if its condition lets it), `* 3` (three retries at once), `* 3/10s` (three retries,
//! ten seconds apart), `@ slow` (its queue), `? paid|refunded/3h` (it waits for one of these
//! signals, three hours at most), `? paid&order=4711` (it waits for a signal with this attribute)
//! and `?? paid` (it waits, but a worker is asked first). Parents follow `<`; a `!` marks a needed
//! one.

use std::collections::HashMap;
use std::time::Duration;

use stepwell_core::id::Node;
use stepwell_core::retry::Retry;
use stepwell_core::run::{Attributes, WaitFor};
use stepwell_core::workflow::{
    Definition, Draft, DraftStep, NodeKind, OutputRule, ParentRef, Placement, StepPolicy,
    WaitPolicy, workflow_hash,
};

use super::queue;

/// A workflow in few words; see the module's documentation for the text.
#[derive(Clone, Debug, Default)]
pub struct Sketch {
    name: Option<String>,
    version: Option<u32>,
    steps: Vec<SketchStep>,
    fail_fast: bool,
    on_failure: bool,
    deadline: Option<Duration>,
    output: Option<(String, bool)>,
}

#[derive(Clone, Debug)]
struct SketchStep {
    name: String,
    kind: NodeKind,
    policy: StepPolicy,
    parents: Vec<(String, bool)>,
}

impl Sketch {
    /// A workflow of roots only, whose names are taken as they are.
    #[must_use]
    pub fn of_roots(names: &[&str]) -> Self {
        Self { steps: names.iter().map(|name| SketchStep::new(name)).collect(), ..Self::default() }
    }

    /// With this name; without one the world makes one up.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// With a version given by the author.
    #[must_use]
    pub const fn version(mut self, version: u32) -> Self {
        self.version = Some(version);
        self
    }

    /// A failed task cancels everything else.
    #[must_use]
    pub const fn fail_fast(mut self) -> Self {
        self.fail_fast = true;
        self
    }

    /// With a failure handler.
    #[must_use]
    pub const fn on_failure(mut self) -> Self {
        self.on_failure = true;
        self
    }

    /// Runs fail that have not ended after this long.
    #[must_use]
    pub const fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// This step gives the run's output, which may be missing.
    #[must_use]
    pub fn gives(mut self, step: &str) -> Self {
        self.output = Some((step.to_owned(), false));
        self
    }

    /// This step gives the run's output, without which the run fails.
    #[must_use]
    pub fn must_give(mut self, step: &str) -> Self {
        self.output = Some((step.to_owned(), true));
        self
    }

    /// With this retry policy for all steps.
    #[must_use]
    pub fn retry(mut self, retry: Retry) -> Self {
        self.steps.iter_mut().for_each(|step| step.policy.retry = retry);
        self
    }

    /// The definition, under `name` unless the sketch has one of its own.
    #[must_use]
    pub fn resolve(self, name: &str) -> Definition {
        let workflow = self.name.unwrap_or_else(|| name.to_owned());
        let names: Vec<String> = self.steps.iter().map(|step| step.name.clone()).collect();
        let numbers: HashMap<&str, u32> = names.iter().map(String::as_str).zip(0..).collect();
        let number = |name: &str| *numbers.get(name).expect("the sketch names a step it has");
        let handle = |(parent, needed): (String, bool)| ParentRef::Handle {
            index: number(&parent),
            workflow: workflow_hash(&workflow),
            needed,
        };
        let steps = self.steps.into_iter().map(|step| DraftStep {
            placement: Placement::Explicit(step.parents.into_iter().map(handle).collect()),
            name: step.name,
            kind: step.kind,
            policy: step.policy,
        });
        let draft = Draft {
            version: self.version,
            steps: steps.collect(),
            fail_fast: self.fail_fast,
            on_failure: self.on_failure,
            on_failure_timeout: None,
            deadline: self.deadline,
            output: self
                .output
                .map(|(step, required)| OutputRule { node: Node(number(&step)), required }),
            workflow: workflow.clone(),
        };
        draft.resolve().expect("the sketch is a sound workflow")
    }
}

impl From<&str> for Sketch {
    fn from(text: &str) -> Self {
        Self { steps: text.split(';').map(SketchStep::read).collect(), ..Self::default() }
    }
}

impl From<String> for Sketch {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl SketchStep {
    fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind: NodeKind::Step,
            policy: StepPolicy::default(),
            parents: Vec::new(),
        }
    }

    fn read(text: &str) -> Self {
        let (head, parents) = text.split_once('<').unwrap_or((text, ""));
        let mut words = head.split_whitespace();
        let mut step = Self::new(words.next().expect("the sketch names every step"));
        while let Some(mark) = words.next() {
            step.mark(mark, words.next().expect("a mark is followed by its value"));
        }
        let parents = parents.split(',').map(str::trim).filter(|parent| !parent.is_empty());
        step.parents = parents.map(read_parent).collect();
        step
    }

    fn mark(&mut self, mark: &str, value: &str) {
        match mark {
            "~" => (self.kind, self.policy.sleep) = (NodeKind::Sleep, read_span(value)),
            "~?" => {
                (self.kind, self.policy.sleep) = (NodeKind::ConditionalSleep, read_span(value));
            }
            "?" | "??" => {
                let wait = WaitPolicy {
                    wait_for: read_wait(value),
                    asks_worker: mark == "??",
                    is_any: false,
                };
                (self.kind, self.policy.wait) = (NodeKind::Wait, Some(wait));
            }
            "*" => self.policy.retry = read_retry(value),
            "@" => self.policy.queue = queue(value),
            _ => panic!("{mark:?} is no mark of a sketch"),
        }
    }
}

fn read_parent(text: &str) -> (String, bool) {
    match text.strip_suffix('!') {
        Some(name) => (name.to_owned(), true),
        None => (text.to_owned(), false),
    }
}

pub(super) fn read_wait(text: &str) -> WaitFor {
    let (what, timeout) = match text.split_once('/') {
        Some((what, span)) => (what, Some(read_span(span))),
        None => (text, None),
    };
    let mut words = what.split('&');
    let names = words.next().expect("a text has a first part");
    let signals = names.split('|').map(str::to_owned).collect();
    let matching: Attributes = words.map(read_attribute).collect();
    WaitFor { signals, matching, timeout }
}

fn read_attribute(text: &str) -> (String, String) {
    let (name, value) = text.split_once('=').expect("an attribute has a value");
    (name.to_owned(), value.to_owned())
}

fn read_retry(text: &str) -> Retry {
    let (retries, delay) = text.split_once('/').unwrap_or((text, "0s"));
    Retry::fixed(retries.parse().expect("a number of retries"), read_span(delay))
}

/// A span that is not understood to its end is refused.
fn read_span(text: &str) -> Duration {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits.parse().expect("a span begins with a whole number");
    match &text[digits.len()..] {
        "h" => Duration::from_hours(number),
        "m" => Duration::from_mins(number),
        "s" => Duration::from_secs(number),
        "ms" => Duration::from_millis(number),
        unit => panic!("{unit:?} is no unit of a span"),
    }
}
