//! What a function costs by the number of its steps: turns and copies, counted.

use std::collections::BTreeMap;

use crate::program::{NOW, Program, Stored};

/// What playing a function cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cost {
    n_turns: usize,
    n_copies: usize,
}

/// A loop of so many steps, one after the other, on what is known of them.
fn sequence(n_steps: u64, memos: Vec<Stored>) -> (Cost, Vec<Stored>) {
    let mut program = Program::new(memos);
    let mut stored = Vec::new();
    for n in 0..n_steps {
        let step = program.step("step");
        program.wakes();
        if program.poll_or_execute(step, n) {
            let write = program.stores();
            let (id, memos) = (write.id, write.memos);
            stored.extend(memos);
            program.journal.stored(id, NOW);
            program.wakes();
        }
        assert_eq!(program.poll(step), Some(Ok(n)));
        program.journal.forget(step);
    }
    (cost(&program), stored)
}

/// So many steps side by side.
fn side_by_side(n_steps: u64, memos: Vec<Stored>) -> (Cost, Vec<Stored>) {
    let is_replay = !memos.is_empty();
    let mut program = Program::new(memos);
    let steps: Vec<_> = (0..n_steps).map(|n| program.step(&format!("step[{n}]"))).collect();
    let mut stored = Vec::new();
    if !is_replay {
        program.wakes();
        for (n, step) in (0..).zip(&steps) {
            program.execute(*step, n);
        }
        let write = program.stores();
        stored = write.memos;
        program.journal.stored(write.id, NOW);
    }
    let mut open: BTreeMap<u64, _> = (0..).zip(steps).collect();
    while !open.is_empty() {
        program.wakes();
        // The one that it hears of is the next one, since they were stored in that order.
        let (n, step) = open.pop_first().expect("it is not empty");
        assert_eq!(program.poll(step), Some(Ok(n)));
        program.journal.forget(step);
    }
    (cost(&program), stored)
}

fn cost(program: &Program) -> Cost {
    Cost { n_turns: program.n_turns, n_copies: program.n_copies() }
}

/// Asserts that twice the steps cost twice as much, live and on replay.
fn check(play: fn(u64, Vec<Stored>) -> (Cost, Vec<Stored>)) {
    let (live, memos) = play(1_000, Vec::new());
    let (replay, none) = play(1_000, memos);
    assert!(none.is_empty(), "what is recorded is not stored again");
    let (live_twice, memos) = play(2_000, Vec::new());
    let (replay_twice, _) = play(2_000, memos);
    for (once, twice) in [(live, live_twice), (replay, replay_twice)] {
        let doubled = Cost { n_turns: 2 * once.n_turns, n_copies: 2 * once.n_copies };
        let at_most = |less: usize, more: usize| less <= more + 10;
        let is_linear =
            at_most(twice.n_turns, doubled.n_turns) && at_most(twice.n_copies, doubled.n_copies);
        assert!(is_linear, "{once:?}, with twice the steps {twice:?}");
    }
    assert!(replay.n_turns <= live.n_turns, "{replay:?} on replay, {live:?} live");
}

#[test]
fn steps_one_after_the_other_cost_the_same_each() {
    check(sequence);
}

#[test]
fn steps_side_by_side_cost_the_same_each() {
    check(side_by_side);
}
