//! A store that is away for a while: whoever asks waits as long as the settings say, and is told
//! then.
#![cfg(feature = "testing")]

mod support_props;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use stepwell::ports::{Clock, StoreError};
use stepwell::testing::ManualClock;
use stepwell::{
    Code, Config, Engine, EngineBuilder, Error, Run, RunFilter, TenantSettings, Workflow,
};

use support_props::fleet::Fleet;
use support_props::steps::Seat;
use support_props::watch::Watch;

const TENANT: &str = "t";

/// What was asked, and how it went.
type Answers = Arc<Mutex<Vec<(&'static str, Result<(), Error>)>>>;

fn equip(builder: &mut EngineBuilder<Seat>) {
    let mut w = Workflow::define::<(), Seat>("long");
    let first = w.step("first").run(async |_| Ok(7));
    w.step("second").after(first).run(async |ctx, n| {
        ctx.state().clock.sleep(Duration::from_hours(1)).await;
        Ok(n)
    });
    builder.workflow(w.no_output());
}

fn fleet(config: Config) -> Fleet {
    let clock = ManualClock::new();
    let watch = Watch::strict(&clock);
    Fleet::new((clock, watch), 1, config, Box::new(|_, builder| equip(builder)))
}

type Asked = std::pin::Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;

/// Everything that one can ask of an engine and of a run.
fn questions(engine: &Engine, run: &Run) -> Vec<(&'static str, Asked)> {
    macro_rules! ask {
        ($($what:literal: |$engine:ident, $run:ident| $asked:expr;)*) => {
            vec![$(($what, {
                let ($engine, $run) = (engine.clone(), run.clone());
                Box::pin(async move {
                    let _ = (&$engine, &$run);
                    $asked.await.map(drop)
                }) as Asked
            })),*]
        };
    }
    ask! {
        "start": |engine, run| engine.start_by_name("long", &()).tenant(TENANT).id("new");
        "find": |engine, run| engine.run_handle(TENANT, "known");
        "list": |engine, run| engine.list(&RunFilter::default(), None, 10);
        "tenant": |engine, run| engine.tenant(TENANT);
        "set tenant": |engine, run| engine.set_tenant(TENANT, TenantSettings::default());
        "signal": |engine, run| run.signal("x", &1);
        "status": |engine, run| run.status();
        "tasks": |engine, run| run.tasks();
        "events": |engine, run| run.events();
        "waits": |engine, run| run.waits();
        "signals": |engine, run| run.signals();
        "outputs": |engine, run| run.outputs();
        "cancel": |engine, run| run.cancel();
    }
}

/// A fleet with a run, cut off from its store; everything is asked then.
fn cut_off(patience: Duration) -> (Fleet, Answers) {
    let fleet = fleet(Config { patience, ..Config::default() });
    let engine = fleet.engine(0).clone();
    let start = async move {
        engine.start_by_name("long", &()).tenant(TENANT).id("known").await?;
        engine.run_handle(TENANT, "known").await
    };
    let run = fleet.drive(start).expect("it starts");
    fleet.link(0).cut();
    let answers = Answers::default();
    for (what, asked) in questions(fleet.engine(0), &run) {
        let answers = Arc::clone(&answers);
        fleet.spawn(async move {
            let answer = asked.await;
            answers.lock().expect("no holder of the lock panics").push((what, answer));
        });
    }
    (fleet, answers)
}

const N_QUESTIONS: usize = 13;

#[test]
fn starts_cancels_and_reads_ride_out_an_outage_within_the_patience() {
    // Ten seconds, unless the settings say otherwise.
    let (fleet, answers) = cut_off(Config::default().patience);
    fleet.advance(Duration::from_secs(9));
    assert!(answers.lock().unwrap().is_empty(), "they are tried again");
    fleet.link(0).mend();
    fleet.advance(Duration::from_secs(1));
    let answers = std::mem::take(&mut *answers.lock().unwrap());
    assert_eq!(answers.len(), N_QUESTIONS);
    for (what, answer) in answers {
        answer.unwrap_or_else(|error| panic!("{what}: {error}"));
    }
}

#[test]
fn who_asks_during_a_longer_outage_is_told_when_the_patience_ends() {
    for patience in [Duration::ZERO, Duration::from_secs(10), Duration::from_mins(1)] {
        let (fleet, answers) = cut_off(patience);
        let asked_at = fleet.clock.elapsed();
        let n_answers = || answers.lock().unwrap().len();
        assert!(fleet.until(patience, || n_answers() == N_QUESTIONS), "{:?}", answers.lock());
        assert_eq!(fleet.clock.elapsed(), asked_at + patience);
        for (what, answer) in answers.lock().unwrap().iter() {
            let error = answer.as_ref().expect_err(what);
            assert_eq!(error.code(), Code::StoreUnavailable, "{what}: {error}");
        }
    }
}

#[test]
fn who_waits_for_a_result_for_so_long_is_told_then_also_during_an_outage() {
    let (fleet, _) = cut_off(Duration::from_mins(1));
    fleet.link(0).mend();
    let engine = fleet.engine(0).clone();
    let run = fleet.drive(async move { engine.run_handle(TENANT, "known").await });
    let run = run.expect("it is there");
    fleet.link(0).cut();
    let asked_at = fleet.clock.elapsed();
    let told = Arc::new(Mutex::new(None));
    let answer = Arc::clone(&told);
    fleet.spawn(async move {
        let result = run.result_within(Duration::from_secs(2)).await;
        *told.lock().unwrap() = Some(result.map(drop));
    });
    assert!(fleet.until(Duration::from_mins(2), || answer.lock().unwrap().is_some()));
    assert_eq!(fleet.clock.elapsed(), asked_at + Duration::from_secs(2));
    let error = answer.lock().unwrap().take().unwrap().expect_err("the run goes on");
    assert_eq!(error.code(), Code::WaitTimedOut, "{error}");
}

#[test]
fn what_no_retry_can_mend_is_told_at_once() {
    let fleet = fleet(Config::default());
    let damaged = StoreError::Damaged { what: "a page".into() };
    fleet.link(0).fail(Some(("start", damaged)));
    let engine = fleet.engine(0).clone();
    let start = async move { engine.start_by_name("long", &()).tenant(TENANT).await.map(drop) };
    let error = fleet.drive(start).expect_err("the store is damaged");
    assert_eq!(error.code(), Code::DamagedStore, "{error}");
}

/// Starts a run beside everything else, and gives the place of its answer.
fn start_beside(fleet: &Fleet, id: &'static str) -> Arc<Mutex<Option<Result<(), Error>>>> {
    let (engine, told) = (fleet.engine(0).clone(), Arc::new(Mutex::new(None)));
    let answer = Arc::clone(&told);
    fleet.spawn(async move {
        let start = engine.start_by_name("long", &()).tenant(TENANT).id(id).await;
        *told.lock().expect("no holder of the lock panics") = Some(start.map(drop));
    });
    answer
}

#[test]
fn a_start_that_goes_along_with_older_ones_is_not_told_earlier_than_alone() {
    let (fleet, _) = cut_off(Duration::from_secs(10));
    fleet.advance(Duration::from_secs(1));
    // Both wait behind what is being tried, and go along with each other then.
    let older = start_beside(&fleet, "older");
    fleet.advance(Duration::from_secs(8));
    let late = start_beside(&fleet, "late");
    fleet.advance(Duration::from_secs(3));
    let told = older.lock().unwrap().take().expect("it has waited for eleven seconds");
    assert_eq!(told.expect_err("the store is away").code(), Code::StoreUnavailable);
    assert!(late.lock().unwrap().is_none(), "it has waited for three seconds only");
    fleet.link(0).mend();
    fleet.advance(Duration::from_secs(2));
    late.lock().unwrap().take().expect("it is answered").expect("it starts");
}
