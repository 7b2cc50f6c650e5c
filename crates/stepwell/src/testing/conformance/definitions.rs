//! Definitions: one per structure, with the policies that were given last.

use std::time::Duration;

use stepwell_core::code::Code;
use stepwell_core::id::DefinitionId;
use stepwell_core::run::RunStatus;

use super::world::{Sketch, TENANT, World, worker};
use crate::ports::StoreError;

/// A sketch of the workflow `orders`.
fn orders(text: &str) -> Sketch {
    Sketch::from(text).named("orders")
}

pub(super) async fn a_structure_is_stored_once(world: &World) {
    let first = world.define(orders("a; b < a")).await;
    let again = world.define(orders("a; b < a")).await;
    assert_eq!((first.0.id, first.0.version), (again.0.id, again.0.version));
    assert_eq!(first.0.definition, again.0.definition);
}

pub(super) async fn the_order_of_declaration_does_not_matter(world: &World) {
    // G13: node numbers stay those of the stored graph.
    let first = world.define(orders("a; b < a; c < a, b")).await;
    let again = world.define(orders("c < b, a; b < a; a")).await;
    assert_eq!(first.0.id, again.0.id);
    for step in ["a", "b", "c"] {
        assert_eq!(first.node(step), again.node(step));
    }
    world.start(&again).await;
    assert_eq!(world.drain().await, "a b c");
}

pub(super) async fn structures_are_numbered_as_versions(world: &World) {
    // L13
    for (expected, text) in [(1, "a"), (2, "a; b"), (3, "a; b < a"), (4, "a; b < a!")] {
        assert_eq!(world.define(orders(text)).await.0.version, expected);
    }
    assert_eq!(world.define(orders("a; b")).await.0.version, 2);
    assert_eq!(world.define(Sketch::from("a").named("other")).await.0.version, 1);
}

pub(super) async fn an_author_may_give_the_version(world: &World) {
    assert_eq!(world.define(orders("a").version(7)).await.0.version, 7);
    assert_eq!(world.define(orders("a").version(7)).await.0.version, 7);
    assert_eq!(world.define(orders("a; b")).await.0.version, 8);
    assert_eq!(world.define(orders("a; b; c").version(20)).await.0.version, 20);
}

pub(super) async fn a_version_of_another_structure_is_refused(world: &World) {
    let flow = world.define(orders("a").version(7)).await;
    let other = world.resolve(orders("a; b").version(7));
    let answer = world.store().register(&other).await;
    let Err(StoreError::Refused { code, message }) = answer else { panic!("{answer:?}") };
    assert_eq!(code, Code::VersionConflict);
    assert!(message.contains("orders"), "{message}");
    let latest = world.store().latest("orders").await.expect("read a definition");
    assert_eq!(latest.map(|stored| stored.id), Some(flow.0.id));
}

pub(super) async fn a_known_structure_takes_a_greater_version(world: &World) {
    // L13: an old build is shipped again.
    let first = world.define(orders("a")).await;
    let second = world.define(orders("a; b")).await;
    let again = world.define(orders("a").version(3)).await;
    assert_eq!((again.0.id, again.0.version), (first.0.id, 3));
    let latest = world.store().latest("orders").await.expect("read a definition");
    assert_eq!(latest.map(|stored| stored.id), Some(first.0.id));
    let older = world.resolve(orders("a").version(1));
    let answer = world.store().register(&older).await;
    assert!(matches!(answer, Err(StoreError::Refused { code: Code::VersionConflict, .. })));
    let taken = world.resolve(orders("a; b").version(3));
    let answer = world.store().register(&taken).await;
    assert!(matches!(answer, Err(StoreError::Refused { code: Code::VersionConflict, .. })));
    let stored = world.store().definition(second.0.id).await.expect("read a definition");
    assert_eq!(stored.map(|stored| stored.version), Some(2));
}

pub(super) async fn a_step_keeps_its_number_from_structure_to_structure(world: &World) {
    // G13
    let first = world.define(orders("a; b < a; c < b")).await;
    let second = world.define(orders("x; c < x; a < x")).await;
    let third = world.define(orders("y; b < y")).await;
    assert_eq!([first.node("a"), first.node("c")], [second.node("a"), second.node("c")]);
    assert_eq!(first.node("b"), third.node("b"));
    let numbers = [first.node("a"), first.node("b"), first.node("c")];
    assert!(!numbers.contains(&second.node("x")), "a new step gets a new number");
    assert!(!numbers.contains(&third.node("y")) && third.node("y") != second.node("x"));
    let run = world.start(&second).await;
    let last = world.start(&third).await;
    world.drain().await;
    assert_eq!(world.states(&run).await, "a COMPLETED, c COMPLETED, x COMPLETED");
    assert_eq!(world.states(&last).await, "b COMPLETED, y COMPLETED");
}

pub(super) async fn policies_take_effect_at_once_for_runs_in_flight(world: &World) {
    // G13
    let flow = world.define(orders("a * 0; s ~ 1h; b < a")).await;
    let run = world.start(&flow).await;
    let task = world.claim_one().await;
    world.define(orders("s ~ 1h; b < a; a * 5/10s")).await;
    world.fail(&task).await;
    assert_eq!(world.states(&run).await, "a QUEUED, s SLEEPING, b PENDING");
    assert_eq!(world.fire().await.next_due, Some(Duration::from_secs(10)));
}

pub(super) async fn policies_of_the_whole_workflow_take_effect_at_once(world: &World) {
    // G13
    let flow = world.define(orders("a; b")).await;
    let run = world.start(&flow).await;
    let roots = world.claim_all().await;
    world.define(orders("b; a").fail_fast()).await;
    world.fail(roots.of("a")).await;
    assert_eq!(world.states(&run).await, "a FAILED, b CANCELLED");
    assert_eq!(world.status(&run).await, RunStatus::Failed);
}

pub(super) async fn a_failure_handler_makes_another_structure(world: &World) {
    // A program without the handler must not be handed runs that need it.
    let flow = world.define(orders("a")).await;
    let handled = world.define(orders("a").on_failure()).await;
    assert_ne!(flow.0.id, handled.0.id);
    let run = world.start(&flow).await;
    world.fail(&world.claim_one().await).await;
    assert_eq!(world.states(&run).await, "a FAILED");
}

pub(super) async fn the_output_rule_follows_its_step_by_name(world: &World) {
    let flow = world.define(orders("a; b").must_give("a")).await;
    let again = world.define(orders("b; a").must_give("b")).await;
    assert_eq!(flow.0.id, again.0.id);
    let rule = again.0.definition.policy.output.expect("it was given");
    assert_eq!((rule.node, rule.required), (flow.node("b"), true));
    let run = world.start(&again).await;
    let roots = world.claim_all().await;
    world.skip(roots.of("a")).await;
    world.complete(roots.of("b")).await;
    assert_eq!(world.status(&run).await, RunStatus::Completed);
}

pub(super) async fn a_new_queue_holds_for_tasks_that_become_ready(world: &World) {
    let flow = world.define(orders("a; b < a")).await;
    let run = world.start(&flow).await;
    world.define(orders("a; b @ slow < a")).await;
    world.step().await;
    let slow = world.hire_for("slow", &["slow"], &[&flow]).await;
    assert_eq!(world.claim(&slow, 5).await.steps(), "b");
    assert_eq!(world.states(&run).await, "a COMPLETED, b RUNNING");
}

pub(super) async fn a_claim_carries_the_latest_policies(world: &World) {
    let flow = world.define(orders("a * 1")).await;
    world.start(&flow).await;
    world.define(orders("a * 9")).await;
    let task = world.claim_one().await;
    assert_eq!(task.definition.definition.retry(flow.node("a")).retries_max, 9);
}

pub(super) async fn runs_stay_on_the_structure_they_started_on(world: &World) {
    // L13
    let old = world.define(orders("a; b < a")).await;
    let run = world.start(&old).await;
    let new = world.define(orders("a; b < a; c < b")).await;
    let newer = world.start(&new).await;
    assert_eq!(world.row(&run).await.definition, old.0.id);
    world.drain().await;
    assert_eq!(world.states(&run).await, "a COMPLETED, b COMPLETED");
    assert_eq!(world.states(&newer).await, "a COMPLETED, b COMPLETED, c COMPLETED");
}

pub(super) async fn a_definition_is_found_by_its_number(world: &World) {
    // R29
    let flow = world.define(orders("a * 3/7s @ slow; s ~ 24h < a; t ~? 1h < a, s!").on_failure());
    let flow = flow.await;
    let stored = world.store().definition(flow.0.id).await.expect("read a definition");
    let stored = stored.expect("it is stored");
    assert_eq!((stored.id, stored.version), (flow.0.id, flow.0.version));
    assert_eq!(stored.definition, flow.0.definition);
    let unknown = DefinitionId(flow.0.id.0 + 1_000);
    assert!(world.store().definition(unknown).await.expect("read a definition").is_none());
}

pub(super) async fn the_latest_definition_of_a_workflow_is_found_by_name(world: &World) {
    // R29
    assert!(world.store().latest("orders").await.expect("read a definition").is_none());
    world.define(orders("a").version(9)).await;
    world.define(orders("a; b").version(3)).await;
    let latest = world.store().latest("orders").await.expect("read a definition");
    assert_eq!(latest.map(|stored| stored.version), Some(9));
    // Registering an old structure again does not make it the latest.
    world.define(orders("a; b")).await;
    let latest = world.store().latest("orders").await.expect("read a definition");
    assert_eq!(latest.map(|stored| stored.version), Some(9));
}

pub(super) async fn one_structure_registered_at_the_same_moment_is_stored_once(world: &World) {
    // FB8: all workers of a fleet start together.
    let definition = world.resolve(orders("a; b < a"));
    let registrations = (0..6).map(|_| world.store().register(&definition));
    let answers = futures_util::future::join_all(registrations).await;
    let stored: Vec<_> = answers.into_iter().map(|answer| answer.expect("register")).collect();
    assert!(stored.iter().all(|one| (one.id, one.version) == (stored[0].id, 1)), "{stored:?}");
    world.hire_for("any", &["default"], &[&super::world::Flow(stored[0].clone())]).await;
    world.start_for(TENANT, &super::world::Flow(stored[0].clone())).await;
    assert_eq!(world.claim(&worker("any"), 5).await.steps(), "a");
}
