//! Writes that the store refuses for what is in them, and errors that are forgotten.

use stepwell_core::failure::{Failure, FailureKind};

use crate::program::{NOW, Program};

fn refusal() -> Failure {
    Failure::new(FailureKind::Payload, "", "too large for the store")
}

#[test]
fn what_the_store_refuses_fails_its_step_and_no_other_that_was_written_with_it() {
    let mut program = Program::new(Vec::new());
    let steps = [program.step("small"), program.step("large")];
    program.wakes();
    for (step, gives) in steps.into_iter().zip([1, 2]) {
        program.execute(step, gives);
    }
    let both = program.stores();
    assert_eq!(both.memos.len(), 2);
    program.journal.refused(both.id, &refusal());
    // Each is tried alone, and the culprit once more as a failure.
    let small = program.stores();
    assert_eq!(small.memos[0].0.key, "small");
    program.journal.stored(small.id, NOW);
    program.wakes();
    assert_eq!(program.poll(steps[0]), Some(Ok(1)));
    let large = program.stores();
    program.journal.refused(large.id, &refusal());
    let failed = program.stores();
    assert_eq!((failed.memos.len(), failed.memos[0].1.is_none()), (1, true));
    program.journal.stored(failed.id, NOW);
    program.wakes();
    assert_eq!(program.poll(steps[1]), Some(Err(())));
    assert!(program.journal.refusal().is_none(), "the function goes on");
}

#[test]
fn errors_after_the_last_success_are_forgotten_and_no_others() {
    let mut program = Program::new(Vec::new());
    let mut stored = Vec::new();
    for (name, fails) in [("caught", true), ("well", false), ("last", true), ("end", true)] {
        let step = program.step(name);
        program.wakes();
        if fails {
            program.fail(step);
        } else {
            program.execute(step, 1);
        }
        let write = program.stores();
        stored.extend(write.memos);
        program.journal.stored(write.id, NOW);
        program.wakes();
        assert_eq!(program.poll(step), Some(if fails { Err(()) } else { Ok(1) }));
        program.journal.forget(step);
    }
    assert_eq!(program.journal.forgets(), ["last", "end"]);
    let mut again = Program::new(stored).journal.forgets();
    again.sort();
    assert_eq!(again, ["end", "last"], "on replay as well");
}

#[test]
fn a_function_of_which_not_even_a_failure_can_be_stored_fails_for_good() {
    let mut program = Program::new(Vec::new());
    let step = program.step("large");
    program.wakes();
    program.execute(step, 1);
    for _ in 0..2 {
        let write = program.stores();
        program.journal.refused(write.id, &refusal());
    }
    assert!(program.journal.refusal().is_some());
}
