//! Chains: members whose parent is whatever stands before them, beside explicit steps.

use stepwell::core::workflow::ON_FAILURE_NAME;
use stepwell::ports::Definitions;
use stepwell::{Code, Ctx, Definer, Maybe, Retry, StepError, StepRef, Workflow};

use crate::support::{MINUTE, SECOND, World, builder, refused, states};

type Chain = Definer<(), World>;

async fn note(ctx: Ctx<(), World>) -> stepwell::Result<()> {
    ctx.state().journal.write(ctx.step_name());
    Ok(())
}

/// Runs the workflow and gives its steps in the order they were executed.
fn order(w: Chain) -> Vec<String> {
    let world = World::default();
    let (test, chain) = world.engine(w.no_output());
    test.run(&chain, ()).wait().unwrap();
    world.journal.lines()
}

/// Every step with its parents as stored, as in `b: a`.
fn structure(w: Chain) -> Vec<String> {
    let world = World::default();
    let (test, chain) = world.engine(w.no_output());
    let (store, name) = (test.store().clone(), chain.name().to_owned());
    let stored = test.drive(async move { store.latest(&name).await }).unwrap().unwrap();
    let graph = &stored.definition.graph;
    let name = |node| graph.name(node).unwrap();
    let parents = |node| {
        let parents = graph.parents(node).iter().map(|edge| name(edge.node));
        parents.collect::<Vec<_>>().join(" ")
    };
    graph.nodes().map(|node| format!("{}: {}", name(node), parents(node))).collect()
}

#[test]
fn members_follow_one_another_in_order_of_declaration() {
    // G1
    let mut w: Chain = Workflow::define("chain");
    for name in ["validate", "charge", "complete"] {
        w.chain(name).run(note);
    }
    assert_eq!(order(w), ["validate", "charge", "complete"]);
}

#[test]
fn a_member_is_inserted_before_or_after_another_and_binds_late() {
    // G2
    let mut w: Chain = Workflow::define("chain");
    w.chain("validate").run(note);
    w.chain("complete").run(note);
    w.chain("audit").after_step("validate").run(note);
    w.chain("prepare").before_step("validate").run(note);
    // Its anchor is declared later.
    w.chain("early").before_step("late").run(note);
    w.chain("late").run(note);
    assert_eq!(order(w), ["prepare", "validate", "audit", "complete", "early", "late"]);
}

#[test]
fn of_several_insertions_at_one_anchor_the_later_stands_next_to_it() {
    // G2
    let mut w: Chain = Workflow::define("chain");
    w.chain("anchor").run(note);
    for name in ["after-1", "after-2", "after-3"] {
        w.chain(name).after_step("anchor").run(note);
    }
    for name in ["before-1", "before-2"] {
        w.chain(name).before_step("anchor").run(note);
    }
    let expected = ["before-1", "before-2", "anchor", "after-3", "after-2", "after-1"];
    assert_eq!(order(w), expected);
}

#[test]
fn the_predecessor_is_stored_as_a_step_and_never_as_a_token() {
    // G2
    let mut w: Chain = Workflow::define("chain");
    w.chain("a").run(note);
    w.chain("c").run(note);
    w.chain("b").after_step("a").run(note);
    assert_eq!(structure(w), ["a: ", "c: b", "b: a"]);
}

#[test]
fn explicit_steps_and_members_share_one_namespace() {
    // G1
    let mut w: Chain = Workflow::define("mixed");
    w.chain("a").run(note);
    w.step("side").run(note);
    w.chain("b").also_after_step("side").run(note);
    assert_eq!(structure(w), ["a: ", "side: ", "b: a side"], "a step is no link of the chain");
    let mut w: Chain = Workflow::define("mixed");
    let a = w.chain("a").run(note);
    let side = w.step("side").after(a).run(async |_, ()| Ok(()));
    w.chain("b").run(note);
    w.step("join").after((a, side)).run(async |_, _| Ok(()));
    assert_eq!(structure(w), ["a: ", "side: a", "b: a", "join: a side"]);
    let mut w: Chain = Workflow::define("mixed");
    w.chain("a").run(note);
    w.step("a").run(note);
    refused(w.no_output().check(), Code::DuplicateName, &["\"a\""]);
}

#[test]
fn an_explicit_list_replaces_the_position_and_later_members_go_on_from_it() {
    // G3
    let mut w: Chain = Workflow::define("override");
    w.chain("a").run(note);
    let side = w.step("side").run(note);
    w.chain("b").after(side).run(note);
    w.chain("c").run(note);
    assert_eq!(structure(w), ["a: ", "side: ", "b: side", "c: b"]);
    let mut w: Chain = Workflow::define("override");
    w.chain("a").run(note);
    w.chain("root").after(Vec::<StepRef<()>>::new()).run(note);
    assert_eq!(structure(w), ["a: ", "root: "], "an empty list makes a root");
}

#[test]
fn also_after_adds_to_the_position() {
    // G3
    let mut w: Chain = Workflow::define("also");
    let x = w.step("x").run(note);
    let y = w.step("y").run(note);
    w.chain("a").run(note);
    w.chain("b").also_after((x, y)).also_after_step("z").run(note);
    w.step("z").run(note);
    w.chain("c").after(x).also_after(y).run(note);
    assert_eq!(structure(w), ["x: ", "y: ", "a: ", "b: a x y z", "z: ", "c: x y"]);
}

#[test]
fn a_member_reads_outputs_of_those_before_it_and_is_skipped_with_them() {
    // G1, R21
    let mut w = Workflow::define::<bool, World>("reading");
    let first = w.chain("first").run(async |ctx| Ok(*ctx.input()));
    let maybe = w.step("maybe").after(first).when(|yes| *yes).run(async |_, _| Ok(7));
    w.chain("second").after(maybe).run(async |_| Ok(()));
    let third: StepRef<Option<bool>, Maybe> =
        w.chain("third").run(move |ctx| async move { ctx.output(&first).await });
    let world = World::default();
    let (test, reading) = world.engine(w.output(third));
    assert_eq!(test.run(&reading, true).wait().unwrap(), Some(Some(true)));
    let run = test.start(&reading, false).now().unwrap();
    assert_eq!(run.result().unwrap(), None);
    let expected = "first COMPLETED, maybe SKIPPED, second SKIPPED, third SKIPPED";
    assert_eq!(states(&run), expected);
}

#[test]
fn members_have_policies_and_blocking_code_too() {
    // G1
    let mut w: Chain = Workflow::define("policies");
    w.chain("slow").timeout(MINUTE).run(async |ctx| {
        ctx.state().takes(2 * MINUTE).await;
        Ok(())
    });
    let (test, slow) = World::default().engine(w.no_output());
    let run = test.start(&slow, ()).now().unwrap();
    test.advance(MINUTE);
    refused(run.result(), Code::RunFailed, &["60s"]);
    let mut w: Chain = Workflow::define("policies");
    let member = w.chain("silent").heartbeat_timeout(SECOND);
    member.run(async |_| std::future::pending::<stepwell::Result<()>>().await);
    let (test, silent) = World::default().engine(w.no_output());
    let run = test.start(&silent, ()).now().unwrap();
    test.advance(SECOND);
    refused(run.result(), Code::RunFailed, &["heartbeat"]);
    let mut w: Chain = Workflow::define("policies");
    let flaky = w.chain("flaky").retry(Retry::fixed(1, SECOND)).run_blocking(|ctx| {
        if ctx.attempt() == 1 { Err(StepError::new("again")) } else { Ok(ctx.attempt()) }
    });
    let (test, flaky) = World::default().engine(w.output(flaky));
    let run = test.start(&flaky, ()).now().unwrap();
    test.run_to_end();
    assert_eq!(run.result().unwrap(), Some(2));
}

#[test]
fn a_member_cannot_take_the_handlers_name() {
    let mut w: Chain = Workflow::define("reserved");
    w.chain(ON_FAILURE_NAME).run(note);
    let mut builder = builder().state(World::default());
    builder.workflow(w.no_output());
    refused(builder.start(), Code::BadName, &[ON_FAILURE_NAME]);
}

on_every_store![
    members_follow_one_another_in_order_of_declaration,
    a_member_is_inserted_before_or_after_another_and_binds_late,
    of_several_insertions_at_one_anchor_the_later_stands_next_to_it,
    the_predecessor_is_stored_as_a_step_and_never_as_a_token,
    explicit_steps_and_members_share_one_namespace,
    an_explicit_list_replaces_the_position_and_later_members_go_on_from_it,
    also_after_adds_to_the_position,
    a_member_reads_outputs_of_those_before_it_and_is_skipped_with_them,
    members_have_policies_and_blocking_code_too,
    a_member_cannot_take_the_handlers_name,
];
