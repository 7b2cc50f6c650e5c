//! Random workflows with random happenings: whatever comes, the invariants hold and runs end.

use std::fmt::Write;

use proptest::prelude::*;
use stepwell_core::decide::{Happening, TaskHappening};
use stepwell_core::id::Node;
use stepwell_core::run::{WaitFor, WaitKind, WaitRow};
use stepwell_core::workflow::{Definition, NodeKind};

use crate::story::{Story, text};

const STEPS_MAX: usize = 60;
const CHOICES_MAX: usize = 150;

/// What nodes and steps wait for: much of it overlaps.
const WAITS: [&str; 8] = [
    "paid",
    "paid/0s",
    "paid/5m",
    "paid[order=1]/1h",
    "paid|refused",
    "paid|refused[order=2]/1m",
    "refused/5m",
    "refused[order=1]",
];
const SIGNALS: [&str; 5] = ["paid", "refused", "paid order=1", "refused order=1", "paid order=2"];

/// What functions wait for, several at a time.
const FUNCTION_WAITS: [&str; 8] = [
    "ok?paid",
    "ok?paid/5m nap~1h",
    "no?refused/1h ok?paid",
    "any?paid|refused",
    "nap~0s",
    "nap~1h late?paid/0s",
    "save*1m",
    "order?paid[order=1] any?paid save*5m",
];

/// A step that may follow any declared before it.
#[derive(Clone, Debug)]
struct RandomStep {
    kind: String,
    retry: &'static str,
    /// Which of the earlier steps, and whether it is needed.
    parents: Vec<(usize, bool)>,
}

fn step() -> impl Strategy<Value = RandomStep> {
    let plain = prop::sample::select(vec!["", "~0s", "~1h", "~?5m"]).prop_map(String::from);
    let wait = (prop::sample::select(vec!["?", "?", "??"]), prop::sample::select(WAITS.to_vec()));
    let wait = wait.prop_map(|(mark, wait_for)| format!("{mark}{wait_for}"));
    let kind = prop_oneof![6 => Just(String::new()), 3 => plain, 4 => wait];
    let retry = prop_oneof![3 => Just(""), 1 => Just("*1@0s"), 1 => Just("*2")];
    let parent = (0..STEPS_MAX, prop::bool::weighted(0.3));
    let parents = prop::collection::vec(parent, 0..4);
    (kind, retry, parents).prop_map(|(kind, retry, parents)| RandomStep { kind, retry, parents })
}

fn workflow() -> impl Strategy<Value = Definition> {
    let steps = prop::collection::vec(step(), 1..=STEPS_MAX);
    let options = vec!["fail_fast", "on_failure", "output! s0", "deadline 3h"];
    let options = prop::sample::subsequence(options, 0..=4);
    (steps, options).prop_map(|(steps, options)| {
        let mut clauses: Vec<String> = options.into_iter().map(String::from).collect();
        for (ix, step) in steps.iter().enumerate() {
            let parent = |(parent, needed): &(usize, bool)| {
                let mark = if *needed { "!" } else { "" };
                format!("s{}{mark}", parent % ix.max(1))
            };
            let parents: Vec<String> = step.parents.iter().map(parent).collect();
            let parents = if ix == 0 { String::new() } else { parents.join(", ") };
            clauses.push(format!("s{ix} {} {} < {parents}", step.kind, step.retry));
        }
        text::workflow(&clauses.join("; "))
    })
}

/// One of the nodes, if there are any.
fn pick(nodes: &[Node], choice: u32) -> Option<Node> {
    (!nodes.is_empty()).then(|| nodes[choice as usize % nodes.len()])
}

/// What a worker tells of a claimed task: before all else, that its function gave up its waits.
fn outcomes(story: &Story, node: Node, choice: u32) -> Vec<Happening> {
    let outcome = outcome(story, node, choice);
    let Happening::Task(_, happening) = &outcome else { return vec![outcome] };
    let is_first = matches!(
        happening,
        TaskHappening::Lost { .. } | TaskHappening::Listens(_) | TaskHappening::Suspended { .. }
    );
    let has_waits = story.waits.keys().any(|(of, _)| *of == node);
    if is_first || !has_waits { vec![outcome] } else { vec![story.open(node, false, ""), outcome] }
}

/// Something that may happen to a claimed task, mostly good.
fn outcome(story: &Story, node: Node, choice: u32) -> Happening {
    let is_step = node != Node::ON_FAILURE && story.definition.graph.kind(node) == NodeKind::Step;
    let verb = match choice % 20 {
        0 | 1 => "fail",
        2 => "fail!",
        3 => "time_out",
        4 => "release",
        5 => return story.losses(&[node]).remove(0),
        // The handler has no conditions.
        6..=8 if node != Node::ON_FAILURE => "skip",
        9 if is_step => return story.open(node, true, one_of(&FUNCTION_WAITS, choice / 20)),
        10 if is_step => return story.open(node, false, one_of(&FUNCTION_WAITS, choice / 20)),
        11 if is_step && choice.is_multiple_of(3) => "continue",
        11..=12 if is_step => return waits(node, text::wait_for(one_of(&WAITS, choice / 20))),
        _ => return good_outcome(story, node),
    };
    Happening::Task(node, text::happening(verb))
}

fn good_outcome(story: &Story, node: Node) -> Happening {
    let verb = match story.definition.graph.kind(node) {
        NodeKind::ConditionalSleep => "nap",
        NodeKind::Wait => {
            let policy = story.definition.step_policy(node).and_then(|policy| policy.wait.clone());
            return waits(node, policy.expect("a wait node says what it waits for").wait_for);
        }
        _ => "done",
    };
    Happening::Task(node, text::happening(verb))
}

fn waits(node: Node, wait_for: WaitFor) -> Happening {
    Happening::Task(node, TaskHappening::Waits { wait_for, notes: [].into() })
}

fn one_of<'t>(texts: &[&'t str], choice: u32) -> &'t str {
    texts[choice as usize % texts.len()]
}

/// A signal, sometimes under a key that another one has.
fn signal(story: &mut Story, choice: u32) -> Happening {
    let (text, choice) = (one_of(&SIGNALS, choice), choice / 5);
    let (to_many, choice) = (choice.is_multiple_of(8), choice / 8);
    if choice.is_multiple_of(4) {
        return story.signal(&format!("{text} key=k{}", choice / 4 % 3), to_many);
    }
    story.signal(text, to_many)
}

/// The timers of tasks that are due, and rarely that of the run.
fn due(story: &Story, choice: u32) -> Vec<Happening> {
    let is_due = |(node, due): &(&Node, &_)| {
        let is_meant = **node != Node::DEADLINE || choice.is_multiple_of(8);
        **due <= story.now && is_meant
    };
    story.timers.iter().filter(is_due).map(|(node, _)| Happening::timer_fired(*node)).collect()
}

/// Lets the next thing happen, as the choice says.
fn happen(story: &mut Story, choice: u32) {
    let (verb, choice) = (choice % 24, choice / 24);
    let claimed: Vec<Node> = story.claims.keys().copied().collect();
    let each = |story: &Story| {
        let each = (0_u32..).zip(&claimed);
        each.flat_map(|(ix, node)| outcomes(story, *node, choice.rotate_right(ix))).collect()
    };
    let batch: Vec<Happening> = match verb {
        0..=6 => {
            if let Some(node) = pick(&story.queue, choice) {
                story.claim(node);
            }
            return;
        }
        7..=11 => {
            let picked = pick(&claimed, choice / 16);
            picked.map_or(Vec::new(), |node| outcomes(story, node, choice))
        }
        12 => each(story),
        13 => story.losses(&claimed),
        14 => return story.go_on(one_of(&["+1s", "+1m", "+4m", "+1h"], choice)),
        15..=17 => vec![signal(story, choice)],
        18 => (0..4).map(|ix| signal(story, choice.rotate_right(7 * ix))).collect(),
        19 => shuffled(due(story, choice), choice),
        20 => {
            let signals = (0..3).map(|ix| signal(story, choice.rotate_right(7 * ix)));
            let mut all: Vec<Happening> = signals.collect();
            all.extend(due(story, choice));
            let mut all = shuffled(all, choice);
            all.extend::<Vec<Happening>>(each(story));
            all
        }
        21 if choice.is_multiple_of(32) => {
            return story.go_on(one_of(&["cancel", "cancel!"], choice / 32));
        }
        _ => return fire_any(story, choice),
    };
    story.happen(batch);
}

/// The same in an order that the choice says.
fn shuffled<T>(mut items: Vec<T>, choice: u32) -> Vec<T> {
    for ix in 1..items.len() {
        items
            .swap(ix, choice.rotate_right(u32::try_from(ix % 32).unwrap_or(0)) as usize % (ix + 1));
    }
    items
}

/// Fires a timer, however far away, but that of the run rarely.
fn fire_any(story: &mut Story, choice: u32) {
    let is_meant = |node: &&Node| **node != Node::DEADLINE || choice.is_multiple_of(8);
    let timers: Vec<Node> = story.timers.keys().filter(is_meant).copied().collect();
    if let Some(node) = pick(&timers, choice / 8) {
        fire(story, node);
    }
}

fn fire(story: &mut Story, node: Node) {
    story.now = story.now.max(story.timers[&node]);
    story.happen(vec![Happening::timer_fired(node)]);
}

/// Lets everything go well from here on, until nothing is left to do.
fn finish(story: &mut Story) {
    loop {
        let earliest = story.timers.iter().min_by_key(|(_, due)| **due);
        let earliest = earliest.map(|(node, due)| (*node, *due));
        let is_forgotten = |wait: &&WaitRow| {
            wait.kind == WaitKind::Signal && !story.timers.contains_key(&wait.node)
        };
        let forgotten = story.waits.values().find(is_forgotten);
        if let Some((node, _)) = earliest.filter(|(_, due)| *due <= story.now) {
            fire(story, node);
        } else if let Some(node) = story.queue.first().copied() {
            story.claim(node);
        } else if let Some(node) = story.claims.keys().next().copied() {
            story.happen(vec![good_outcome(story, node)]);
        } else if let Some(wait) = forgotten.cloned() {
            send_to(story, &wait);
        } else if let Some((node, _)) = earliest {
            fire(story, node);
        } else {
            return;
        }
    }
}

/// Sends a signal that a wait is for.
fn send_to(story: &mut Story, wait: &WaitRow) {
    let mut text = wait.signals[0].clone();
    for (name, value) in &wait.matching {
        let _ = write!(text, " {name}={value}");
    }
    let sent = story.signal(&text, true);
    story.happen(vec![sent]);
}

proptest! {
    // A found bug becomes a story with a name, so no seeds are kept in files.
    #![proptest_config(ProptestConfig {
        cases: 96,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn whatever_happens_the_invariants_hold_and_the_run_ends(
        definition in workflow(),
        choices in prop::collection::vec(any::<u32>(), 0..CHOICES_MAX),
    ) {
        // S4, S8, S16, S19: the driver checks them after everything that happens.
        let mut story = Story::start(definition);
        for choice in choices {
            happen(&mut story, choice);
        }
        finish(&mut story);
        // R16
        prop_assert!(story.has_ended(), "{} is stuck", story.run.status);
        let tasks: Vec<Node> = story.tasks.keys().copied().collect();
        for node in tasks {
            // S8
            story.happen(vec![Happening::Task(node, text::happening("done"))]);
            story.happen(vec![Happening::timer_fired(node)]);
        }
        // S8
        story.go_on("signal paid; deadline; cancel; cancel!");
    }
}
