//! Skips: conditions, cascades, branches and the joins behind them.

use stepwell::blocking::Run;
use stepwell::{Code, FailureKind, RunStatus, StepRef, Workflow};

use crate::support::{engine_with, refused, states, trail};

#[test]
fn a_step_whose_condition_holds_is_skipped_without_an_attempt() {
    // R21
    let mut w = Workflow::define::<u32, ()>("simple");
    let a = w.step("a").run(async |ctx| Ok(*ctx.input()));
    let b = w.step("b").after(a).skip_if(|n| *n > 10).run(async |_, n| Ok(n * 2));
    let (test, simple) = engine_with((), w.output(b));
    let run = test.start(&simple, 11).now().unwrap();
    assert_eq!(run.result().unwrap(), None);
    assert_eq!(states(&run), "a COMPLETED, b SKIPPED");
    assert_eq!(trail(&run, "b"), "QUEUED SKIPPED");
    assert_eq!(run.attempts().unwrap().len(), 1, "only a has an attempt");
    assert_eq!(run.tasks().unwrap()[1].attempt, 0);
    assert_eq!(run.output(&b).unwrap(), None);
    assert_eq!(run.status().unwrap(), RunStatus::Completed);
    assert_eq!(test.run(&simple, 10).wait().unwrap(), Some(20));
}

#[test]
fn of_several_conditions_any_one_skips() {
    // R21
    let mut w = Workflow::define::<(bool, bool, bool), ()>("any");
    let a = w.step("a").run(async |ctx| Ok(*ctx.input()));
    let b = w
        .step("b")
        .after(a)
        .skip_if(|(x, _, _)| *x)
        .skip_if(|(_, y, _)| *y)
        .when(|(_, _, z)| !*z)
        .run(async |_, _| Ok("ran".to_owned()));
    let (test, any) = engine_with((), w.output(b));
    for bits in 0..8_u8 {
        let input = (bits & 1 > 0, bits & 2 > 0, bits & 4 > 0);
        let ran = test.run(&any, input).wait().unwrap().is_some();
        assert_eq!(ran, bits == 0, "{input:?}");
    }
}

#[test]
fn when_is_the_opposite_of_skip_if() {
    // R21
    let mut w = Workflow::define::<u32, ()>("when");
    let a = w.step("a").run(async |ctx| Ok(*ctx.input()));
    let b = w.step("b").after(a).when(|n| n % 2 == 0).run(async |_, n| Ok(n / 2));
    let (test, when) = engine_with((), w.output(b));
    assert_eq!(test.run(&when, 8).wait().unwrap(), Some(4));
    assert_eq!(test.run(&when, 7).wait().unwrap(), None);
}

#[test]
fn a_skip_cascades_down_a_line_of_steps() {
    // R21, R23
    let mut w = Workflow::define::<bool, ()>("cascade");
    let a = w.step("a").run(async |ctx| Ok(*ctx.input()));
    let b = w.step("b").after(a).skip_if(|skip| *skip).run(async |_, _| Ok(1));
    let c = w.step("c").after(b).run(async |_, n| Ok(n + 1));
    let nap = w.sleep("nap", crate::support::DAY).after(c);
    let d = w.step("d").after((c, nap)).run(async |_, (c, _)| Ok(c.map(|n| n + 1)));
    let (test, cascade) = engine_with((), w.output(d));
    let run = test.start(&cascade, true).now().unwrap();
    assert_eq!(run.result().unwrap(), None);
    assert_eq!(states(&run), "a COMPLETED, b SKIPPED, c SKIPPED, nap SKIPPED, d SKIPPED");
    for step in ["c", "nap", "d"] {
        assert_eq!(trail(&run, step), "SKIPPED", "{step} never was ready");
    }
    let run = test.start(&cascade, false).now().unwrap();
    test.run_to_end();
    assert_eq!(run.result().unwrap(), Some(Some(3)));
}

/// Two branches of which one runs, and a join that sees which.
fn branches() -> Workflow<u32, String> {
    let mut w = Workflow::define::<u32, ()>("branches");
    let n = w.step("n").run(async |ctx| Ok(*ctx.input()));
    let even = w.step("even").after(n).when(|n| n % 2 == 0).run(async |_, n| Ok(n / 2));
    let half = w.step("half").after(even).run(async |_, n| Ok(n));
    let odd = w.step("odd").after(n).skip_if(|n| n % 2 == 0).run(async |_, n| Ok(n * 3 + 1));
    let join = w.step("join").after((n, half, odd)).run(async |_, (n, half, odd)| {
        let _: (&Option<u32>, &Option<u32>) = (&half, &odd);
        Ok(format!("{n}: {half:?} {odd:?}"))
    });
    w.output(join)
}

#[test]
fn only_the_matching_branch_runs_and_the_join_gets_options() {
    // R23
    let (test, branches) = engine_with((), branches());
    let even = test.start(&branches, 8).now().unwrap();
    assert_eq!(even.result().unwrap(), "8: Some(4) None");
    assert_eq!(
        states(&even),
        "n COMPLETED, even COMPLETED, half COMPLETED, odd SKIPPED, join COMPLETED"
    );
    let odd = test.start(&branches, 7).now().unwrap();
    assert_eq!(odd.result().unwrap(), "7: None Some(22)");
    assert_eq!(
        states(&odd),
        "n COMPLETED, even SKIPPED, half SKIPPED, odd COMPLETED, join COMPLETED"
    );
}

#[test]
fn a_join_is_skipped_only_if_all_its_parents_were() {
    // R23
    let mut w = Workflow::define::<(bool, bool), ()>("both");
    let a = w.step("a").run(async |ctx| Ok(*ctx.input()));
    let left = w.step("left").after(a).when(|(l, _)| *l).run(async |_, _| Ok(1));
    let right = w.step("right").after(a).when(|(_, r)| *r).run(async |_, _| Ok(2));
    let join = w.step("join").after((left, right)).run(async |_, pair| Ok(pair));
    let (test, both) = engine_with((), w.output(join));
    let join = |input| test.run(&both, input).wait().unwrap();
    assert_eq!(join((true, true)), Some((Some(1), Some(2))));
    assert_eq!(join((true, false)), Some((Some(1), None)));
    assert_eq!(join((false, true)), Some((None, Some(2))));
    assert_eq!(join((false, false)), None);
}

#[test]
fn a_list_of_parents_keeps_the_places_of_skipped_ones() {
    // R23
    let mut w = Workflow::define::<u32, ()>("list");
    let n = w.step("n").run(async |ctx| Ok(*ctx.input()));
    let parts: Vec<StepRef<u32, stepwell::Maybe>> = (1..=4)
        .map(|k| {
            let part = w.step(&format!("by-{k}")).after(n).when(move |n| n % k == 0);
            part.run(move |_, n| async move { Ok(n / k) })
        })
        .collect();
    let join = w.step("join").after(parts).run(async |_, parts: Vec<Option<u32>>| Ok(parts));
    let (test, list) = engine_with((), w.output(join));
    let parts = test.run(&list, 6).wait().unwrap();
    assert_eq!(parts, Some(vec![Some(6), Some(3), Some(2), None]));
}

#[test]
fn a_needed_parent_that_is_skipped_skips_the_child_whatever_the_others_do() {
    // R23
    let mut w = Workflow::define::<bool, ()>("needed");
    let a = w.step("a").run(async |ctx| Ok(*ctx.input()));
    let maybe = w.step("maybe").after(a).when(|yes| *yes).run(async |_, _| Ok(20));
    let always = w.step("always").after(a).run(async |_, _| Ok(1));
    // Needed gives the bare value, so no `Option` in the closure.
    let sum =
        w.step("sum").after((always, maybe.needed())).run(async |_, (x, y)| Ok::<i32, _>(x + y));
    let after = w.step("after").after(sum.needed()).run(async |_, sum| Ok(sum * 2));
    let (test, needed) = engine_with((), w.output(after));
    assert_eq!(test.run(&needed, true).wait().unwrap(), Some(42));
    let run = test.start(&needed, false).now().unwrap();
    assert_eq!(run.result().unwrap(), None);
    assert_eq!(
        states(&run),
        "a COMPLETED, maybe SKIPPED, always COMPLETED, sum SKIPPED, after SKIPPED"
    );
}

#[test]
fn a_condition_behind_a_join_sees_options() {
    // R21
    let mut w = Workflow::define::<bool, ()>("seeing");
    let a = w.step("a").run(async |ctx| Ok(*ctx.input()));
    let maybe = w.step("maybe").after(a).when(|yes| *yes).run(async |_, _| Ok(5));
    let last = w
        .step("last")
        .after((a, maybe))
        .skip_if(|(a, maybe)| *a && *maybe == Some(5))
        .run(async |_, (_, maybe)| Ok(maybe));
    let (test, seeing) = engine_with((), w.output(last));
    assert_eq!(test.run(&seeing, true).wait().unwrap(), None);
    assert_eq!(test.run(&seeing, false).wait().unwrap(), Some(None));
}

#[test]
fn a_required_output_that_is_skipped_fails_the_run() {
    // R16
    let mut w = Workflow::define::<bool, ()>("required");
    let a = w.step("a").run(async |ctx| Ok(*ctx.input()));
    let b = w.step("b").after(a).skip_if(|skip| *skip).run(async |_, _| Ok(1));
    let (test, required) = engine_with((), w.output_required(b));
    assert_eq!(test.run(&required, false).wait().unwrap(), 1, "no `Option` for the caller");
    let run: Run<i32> = test.start(&required, true).now().unwrap();
    refused(run.result(), Code::RunFailed, &["\"b\"", "was skipped"]);
    let failure = run.outcome().unwrap().failure.unwrap();
    assert_eq!(failure.failure.kind, FailureKind::OutputSkipped);
    assert_eq!(states(&run), "a COMPLETED, b SKIPPED");
}

on_every_store![
    a_step_whose_condition_holds_is_skipped_without_an_attempt,
    of_several_conditions_any_one_skips,
    when_is_the_opposite_of_skip_if,
    a_skip_cascades_down_a_line_of_steps,
    only_the_matching_branch_runs_and_the_join_gets_options,
    a_join_is_skipped_only_if_all_its_parents_were,
    a_list_of_parents_keeps_the_places_of_skipped_ones,
    a_needed_parent_that_is_skipped_skips_the_child_whatever_the_others_do,
    a_condition_behind_a_join_sees_options,
    a_required_output_that_is_skipped_fails_the_run,
];
