//! Crashes of functions: at every turn of an engine, with effects outside that are counted.

use std::sync::{Arc, Mutex};

use stepwell::testing::Gate;
use stepwell::{Ctx, IntoWorkflow, Result, Workflow};

use crate::function_replay::begin;
use crate::support::{HOUR, beside, builder, dump};

/// Hires somebody: each effect outside is counted, with the key by which it can be told again.
async fn onboarding(ctx: Ctx<(), Effects>) -> Result<u32> {
    begin(&ctx, &ctx.state().1).await?;
    let effect = async |name: &'static str, gives: u32| {
        let step = ctx.step(name, async || {
            let key = ctx.idempotency_key();
            ctx.state().0.lock().unwrap().push((name, key, EffectState::Begun));
            yield_now().await;
            let mut effects = ctx.state().0.lock().unwrap();
            let last = effects.iter_mut().rfind(|(effect, ..)| *effect == name).unwrap();
            last.2 = EffectState::Done;
            Ok(gives)
        });
        step.await
    };
    let record = effect("record", 1).await?;
    let (laptop, access) =
        futures_util::future::join(effect("laptop", 2), effect("access", 3)).await;
    ctx.sleep("cool-off", HOUR).await?;
    let mail = effect("mail", 4).await?;
    Ok(record + laptop? + access? + mail)
}

async fn yield_now() {
    let mut has_yielded = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut has_yielded, true) {
            return std::task::Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await;
}

/// Effects outside: which, under which key, and whether they came to their end.
type Effects = Arc<(Mutex<Vec<(&'static str, String, EffectState)>>, Gate)>;

#[derive(Clone, Copy, Debug, PartialEq)]
enum EffectState {
    Begun,
    Done,
}

/// Crashes after so many turns. Says whether the run had ended by then.
fn onboard(n_cycles: u64) -> bool {
    let effects: Effects = Arc::new((Mutex::default(), Gate::new()));
    let workflow = || Workflow::function("onboarding", onboarding).into_workflow();
    let mut first = builder().state(Arc::clone(&effects));
    let handle = first.workflow(workflow());
    let first = first.start().unwrap();
    first.start(&handle, ()).id("r").now().unwrap();
    effects.1.let_pass(1);
    for _ in 0..n_cycles {
        if !first.run_cycle() {
            // It sleeps: the second part of its life begins.
            first.advance(HOUR);
            effects.1.let_pass(1);
        }
    }
    let has_ended = dump(&first).runs.values().all(|log| log.run.status.is_terminal());
    let mut second = beside(&first).state(Arc::clone(&effects));
    let handle = second.workflow(workflow());
    let second = second.start().unwrap();
    first.crash();
    effects.1.let_pass(10);
    second.advance(3 * HOUR);
    second.run_to_end();
    let run = second.start(&handle, ()).id("r").now().unwrap();
    assert_eq!(run.result().unwrap(), 10, "crash after {n_cycles} cycles");
    let effects = effects.0.lock().unwrap();
    for name in ["record", "laptop", "access", "mail"] {
        let of_name: Vec<_> = effects.iter().filter(|(effect, ..)| *effect == name).collect();
        let n_begun_only =
            of_name.iter().filter(|(.., state)| *state == EffectState::Begun).count();
        let n_done = of_name.len() - n_begun_only;
        // One more where the crash came between the effect and its record.
        assert!((1..=2).contains(&n_done), "{name} after {n_cycles} cycles: {effects:?}");
        assert!(of_name.len() <= 2, "{name} after {n_cycles} cycles: {effects:?}");
        assert!(of_name.iter().all(|(_, key, _)| *key == of_name[0].1), "one key for all tries");
    }
    let n_twice = effects.len() - 4;
    // What is executed at the moment of the crash: one step, or the two that run side by side.
    assert!(n_twice <= 2, "crash after {n_cycles} cycles: {effects:?}");
    has_ended
}

#[test]
fn a_crash_anywhere_repeats_at_most_what_was_under_way() {
    // D2, D13
    let mut n_cycles = 0;
    while !onboard(n_cycles) {
        n_cycles += 1;
        assert!(n_cycles < 1_000, "the run ends at last");
    }
    assert!(n_cycles > 10, "there were {n_cycles} places to crash at");
}

in_memory_only! {
    "other stores have threads of their own, so that turns cannot be counted there":
    a_crash_anywhere_repeats_at_most_what_was_under_way,
}
