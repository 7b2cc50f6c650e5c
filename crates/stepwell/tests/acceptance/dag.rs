//! Shapes of workflows: chains, diamonds, fans and forests, with outputs along the edges.

use std::sync::Arc;

use stepwell::{RunStatus, StepRef, Workflow};
use tokio::sync::Barrier;

use crate::support::{World, builder, engine_with, states};

#[test]
fn outputs_travel_down_a_line_of_steps() {
    // R0, R5, R18, R19
    let mut w = Workflow::define("line");
    let a = w.step("a").run(async |ctx| Ok(ctx.input() + 1));
    let b = w.step("b").after(a).run(async |ctx, a| Ok(format!("{}+{a}", ctx.input())));
    let c = w.step("c").after(b).run_blocking(|ctx, b| Ok(format!("{}: {b}", ctx.step_name())));
    let line: Workflow<u64, String> = w.output(c);
    let (test, line) = engine_with((), line);
    let run = test.start(&line, 41).now().unwrap();
    assert_eq!(run.result().unwrap(), "c: 41+42");
    assert_eq!(run.output(&a).unwrap(), 42);
    assert_eq!(run.output(&b).unwrap(), "41+42");
    assert_eq!(states(&run), "a COMPLETED, b COMPLETED, c COMPLETED");
}

#[test]
fn the_outcome_has_the_status_and_every_output_by_name() {
    // R22
    let mut w = Workflow::define::<(), ()>("named");
    let a = w.step("a").run(async |_| Ok(7));
    let nothing = w.step("nothing").after(a).run(async |_, _| Ok(()));
    let nap = w.sleep("nap", std::time::Duration::ZERO).after(nothing);
    w.step("last").after(nap).run(async |_, ()| Ok(vec!["x", "y"]));
    let (test, named) = engine_with((), w.no_output());
    let run = test.start(&named, ()).now().unwrap();
    test.run_to_end();
    let outcome = run.outcome().unwrap();
    assert_eq!(outcome.status, RunStatus::Completed);
    assert_eq!(outcome.failure, None);
    assert_eq!(outcome.outputs["a"], 7);
    assert_eq!(outcome.outputs["nothing"], serde_json::Value::Null);
    assert_eq!(outcome.outputs["last"], serde_json::json!(["x", "y"]));
    assert_eq!(run.outputs().unwrap(), outcome.outputs);
}

#[test]
fn a_diamond_joins_both_sides_once() {
    // R15, R16, R24
    let mut w = Workflow::define::<u32, World>("diamond");
    let top = w.step("top").run(async |ctx| Ok(*ctx.input()));
    let left = w.step("left").after(top).run(async |_, n| Ok(n * 2));
    let right = w.step("right").after(top).run(async |_, n| Ok(n * 3));
    let join = w.step("join").after((left, right)).run(async |ctx, (l, r)| {
        ctx.state().journal.write("join");
        Ok(l + r)
    });
    let world = World::default();
    let (test, diamond) = world.engine(w.output(join));
    assert_eq!(test.run(&diamond, 10).wait().unwrap(), 50);
    assert_eq!(world.journal.count("join"), 1);
}

#[test]
fn a_hundred_steps_fan_out_at_the_same_time_and_in_again() {
    // R15, R24
    let mut w = Workflow::define::<(), Arc<Barrier>>("fan");
    let split = w.step("split").run(async |_| Ok((0..100).collect::<Vec<u64>>()));
    let parts: Vec<StepRef<u64>> = (0..100)
        .map(|n| {
            w.step(&format!("part-{n}")).after(split).run(move |ctx, list: Vec<u64>| async move {
                // Opens when all hundred are inside: they really run at the same time.
                ctx.state().wait().await;
                Ok(list[n] * 10)
            })
        })
        .collect();
    let sum = w.step("sum").after(parts).run(async |_, parts| {
        assert_eq!(parts[7], 70, "outputs come in the order of the parents");
        Ok(parts.iter().sum::<u64>())
    });
    let fan = w.output(sum);
    let mut builder = builder().configure(|config| config.slots = 100);
    builder = builder.default_tenant("test");
    let mut builder = builder.state(Arc::new(Barrier::new(100)));
    let fan = builder.workflow(fan);
    let test = builder.start().unwrap();
    let run = test.start(&fan, ()).now().unwrap();
    assert_eq!(run.result().unwrap(), 49_500);
    assert_eq!(run.tasks().unwrap().len(), 102);
}

#[test]
fn several_roots_start_together_and_a_lone_one_counts_too() {
    // R16
    let mut w = Workflow::define::<(), World>("forest");
    let a = w.step("a").run(async |ctx| {
        ctx.state().gate.pass().await;
        Ok(1)
    });
    let b = w.step("b").run(async |_| Ok(2));
    w.step("alone").run(async |_| Ok(3));
    let sum = w.step("sum").after((a, b)).run(async |_, (a, b)| Ok(a + b));
    let world = World::default();
    let (test, forest) = world.engine(w.output(sum));
    let run = test.start(&forest, ()).now().unwrap();
    test.run_until_idle();
    assert_eq!(states(&run), "a RUNNING, b COMPLETED, alone COMPLETED, sum PENDING");
    world.gate.let_pass(1);
    assert_eq!(run.result().unwrap(), 3);
}

#[test]
fn tuples_take_up_to_eight_parents_and_an_empty_list_makes_a_root() {
    // R19
    let mut w = Workflow::define::<(), ()>("eight");
    let a = w.step("a").run(async |_| Ok(1_u8));
    let b = w.step("b").run(async |_| Ok(2_u16));
    let c = w.step("c").run(async |_| Ok(3_u32));
    let d = w.step("d").run(async |_| Ok('d'));
    let e = w.step("e").run(async |_| Ok("e".to_owned()));
    let f = w.step("f").run(async |_| Ok(Some(6)));
    let g = w.step("g").run(async |_| Ok(()));
    let none: Vec<StepRef<u8>> = Vec::new();
    let h = w.step("h").after(none).run(async |_, none| Ok(none.len()));
    let join = w.step("join").after((a, b, c, d, e, f, g, h)).run(
        async |_, all: (u8, u16, u32, char, String, Option<i32>, (), usize)| Ok(format!("{all:?}")),
    );
    let (test, eight) = engine_with((), w.output(join));
    let all = test.run(&eight, ()).wait().unwrap();
    assert_eq!(all, r#"(1, 2, 3, 'd', "e", Some(6), (), 0)"#);
}

#[test]
fn a_step_may_have_the_same_parent_twice() {
    let mut w = Workflow::define::<(), ()>("twice");
    let a = w.step("a").run(async |_| Ok(21));
    let sum = w.step("sum").after((a, a)).run(async |_, (x, y)| Ok(x + y));
    let (test, twice) = engine_with((), w.output(sum));
    assert_eq!(test.run(&twice, ()).wait().unwrap(), 42);
}

on_every_store![
    outputs_travel_down_a_line_of_steps,
    the_outcome_has_the_status_and_every_output_by_name,
    a_diamond_joins_both_sides_once,
    a_hundred_steps_fan_out_at_the_same_time_and_in_again,
    several_roots_start_together_and_a_lone_one_counts_too,
    tuples_take_up_to_eight_parents_and_an_empty_list_makes_a_root,
    a_step_may_have_the_same_parent_twice,
];
