//! Signals and steps: what the store gives to a wait is the next thing that the function hears of.

use crate::program::{NOW, Program};

/// A function that races a step and a wait, up to the point at which the store knows of the wait.
fn racing() -> (Program, [stepwell_core::function::OpId; 2]) {
    let mut program = Program::new(Vec::new());
    let (step, wait) = (program.step("step"), program.wait("paid"));
    program.wakes();
    assert_eq!(program.listens().waits.len(), 1);
    program.journal.listened(None, NOW);
    (program, [step, wait])
}

#[test]
fn a_wait_that_may_be_given_up_next_is_given_no_signal() {
    // S14: the function hears of its step first, and gives the wait up that got the signal.
    let (mut program, [step, wait]) = racing();
    program.execute(step, 7);
    let write = program.stores();
    program.journal.look_again();
    program.rests();
    program.journal.stored(write.id, NOW);
    program.wakes();
    assert_eq!(program.poll(step), Some(Ok(7)));
    program.journal.forget(wait);
    let given_up = program.journal.let_go().expect("the store knows of the wait");
    assert!(given_up.waits.is_empty());
}

#[test]
fn a_signal_that_is_there_before_a_step_is_stored_is_heard_of_first() {
    let (mut program, [step, wait]) = racing();
    program.execute(step, 7);
    program.journal.look_again();
    let number = program.listens().next_memo;
    let write = program.stores();
    assert!(write.memos[0].0.number > number, "they are heard of in the order of their numbers");
    program.journal.stored(write.id, NOW);
    program.rests();
    program.hears(wait, 9);
    program.wakes();
    assert_eq!((program.poll(wait), program.poll(step)), (Some(Ok(9)), None));
    program.wakes();
    assert_eq!(program.poll(step), Some(Ok(7)));
}

#[test]
fn a_function_that_always_stores_something_hears_of_signals_too() {
    let mut program = Program::new(Vec::new());
    let (one, other, wait) = (program.step("one"), program.step("other"), program.wait("paid"));
    program.wakes();
    program.listens();
    program.journal.listened(None, NOW);
    program.execute(one, 1);
    let write = program.stores();
    program.journal.look_again();
    program.execute(other, 2);
    // What one step gave is on its way. What the other gave stays back: were it sent as well, there
    // would be no moment for the signal in a function that goes on like this.
    program.rests();
    program.journal.stored(write.id, NOW);
    program.wakes();
    assert_eq!(program.poll(one), Some(Ok(1)));
    program.listens();
    program.hears(wait, 9);
    program.wakes();
    assert_eq!(program.poll(wait), Some(Ok(9)));
    let write = program.stores();
    program.journal.stored(write.id, NOW);
    program.wakes();
    assert_eq!(program.poll(other), Some(Ok(2)));
}
