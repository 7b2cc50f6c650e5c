//! Random workflows with random happenings: whatever comes, the invariants hold and runs end.

use proptest::prelude::*;
use stepwell_core::decide::TaskHappening;
use stepwell_core::id::Node;
use stepwell_core::workflow::{Definition, NodeKind};

use crate::story::{Story, text};

const STEPS_MAX: usize = 60;
const CHOICES_MAX: usize = 150;

/// A step that may follow any declared before it.
#[derive(Clone, Debug)]
struct RandomStep {
    kind: &'static str,
    retry: &'static str,
    /// Which of the earlier steps, and whether it is needed.
    parents: Vec<(usize, bool)>,
}

fn step() -> impl Strategy<Value = RandomStep> {
    let kind = prop_oneof![8 => Just(""), 1 => Just("~0s"), 1 => Just("~1h"), 1 => Just("~?5m")];
    let retry = prop_oneof![3 => Just(""), 1 => Just("*1@0s"), 1 => Just("*2")];
    let parent = (0..STEPS_MAX, prop::bool::weighted(0.3));
    let parents = prop::collection::vec(parent, 0..4);
    (kind, retry, parents).prop_map(|(kind, retry, parents)| RandomStep { kind, retry, parents })
}

fn workflow() -> impl Strategy<Value = Definition> {
    let steps = prop::collection::vec(step(), 1..=STEPS_MAX);
    let options = prop::sample::subsequence(vec!["fail_fast", "on_failure", "output! s0"], 0..=3);
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

/// Something that may happen to a claimed task, mostly good.
fn outcome(story: &Story, node: Node, choice: u32) -> (Node, TaskHappening) {
    let verb = match choice % 16 {
        0 | 1 => "fail",
        2 => "fail!",
        3 => "time_out",
        4 => "release",
        5 => return story.losses(&[node]).remove(0),
        // The handler has no conditions.
        6..=8 if node != Node::ON_FAILURE => "skip",
        _ => return (node, good_outcome(story, node)),
    };
    (node, text::happening(verb))
}

fn good_outcome(story: &Story, node: Node) -> TaskHappening {
    match story.definition.graph.kind(node) {
        NodeKind::ConditionalSleep => text::happening("nap"),
        _ => text::happening("done"),
    }
}

/// Lets the next thing happen, as the choice says.
fn happen(story: &mut Story, choice: u32) {
    let (verb, choice) = (choice % 16, choice / 16);
    let claimed: Vec<Node> = story.claims.keys().copied().collect();
    let timers: Vec<Node> = story.timers.keys().copied().collect();
    match verb {
        0..=5 => {
            if let Some(node) = pick(&story.queue, choice) {
                story.claim(node);
            }
        }
        6..=10 => {
            if let Some(node) = pick(&claimed, choice / 16) {
                story.happen(vec![outcome(story, node, choice)]);
            }
        }
        11 | 12 => {
            let each = (0_u32..).zip(&claimed);
            let outcomes = each.map(|(ix, node)| outcome(story, *node, choice.rotate_right(ix)));
            story.happen(outcomes.collect());
        }
        13 => story.happen(story.losses(&claimed)),
        14 if choice.is_multiple_of(32) => drop(story.cancel()),
        _ => {
            if let Some(node) = pick(&timers, choice) {
                fire(story, node);
            }
        }
    }
}

fn fire(story: &mut Story, node: Node) {
    story.now = story.now.max(story.timers[&node]);
    story.happen(vec![(node, TaskHappening::TimerFired)]);
}

/// Lets everything go well from here on, until nothing is left to do.
fn finish(story: &mut Story) {
    loop {
        if let Some(node) = story.queue.first().copied() {
            story.claim(node);
        } else if let Some(node) = story.claims.keys().next().copied() {
            story.happen(vec![(node, good_outcome(story, node))]);
        } else if let Some(node) = story.timers.keys().next().copied() {
            fire(story, node);
        } else {
            return;
        }
    }
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
            story.happen(vec![(node, text::happening("done"))]);
        }
    }
}
