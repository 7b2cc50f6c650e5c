//! Starting runs: idempotent by id, refused with a code where need be, one by one or many.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use stepwell::testing::TestEngine;
use stepwell::{
    Code, Engine, FailureKind, MemoryStore, NewRun, Retry, RunFilter, RunStatus, Workflow, blocking,
};

use crate::support::{DAY, World, beside, builder, engine_with, refused, states, trail};

#[derive(Clone, Serialize, Deserialize)]
struct Order {
    id: u64,
    items: HashMap<String, u32>,
}

/// The same value with its fields written in another order.
#[derive(Serialize)]
struct Redro {
    items: BTreeMap<String, u32>,
    id: u64,
}

fn order(id: u64, items: &[(&str, u32)]) -> Order {
    Order { id, items: items.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect() }
}

fn orders() -> Workflow<Order, u32, World> {
    let mut w = Workflow::define::<Order, World>("orders");
    let count = w.step("count").run(async |ctx| {
        ctx.state().journal.write(ctx.input().id);
        Ok(ctx.input().items.values().sum::<u32>())
    });
    w.output(count)
}

fn n_runs(test: &TestEngine) -> usize {
    test.list(RunFilter::default(), None, 1_000).unwrap().runs.len()
}

#[test]
fn the_same_id_and_input_finds_the_run_that_is_there() {
    // R27
    let world = World::default();
    let (test, orders) = world.engine(orders());
    let names: Vec<String> = (0..20).map(|n| format!("item-{n}")).collect();
    let items: Vec<(&str, u32)> = names.iter().map(|name| (name.as_str(), 2)).collect();
    let first = test.start(&orders, order(7, &items)).id("order-7").now().unwrap();
    assert_eq!(first.result().unwrap(), 40);
    // A map without order is written anew for each start, and in another order each time.
    for _ in 0..5 {
        let again = test.start(&orders, order(7, &items)).id("order-7").now().unwrap();
        assert_eq!(again.key(), first.key());
        assert_eq!(again.result().unwrap(), 40);
    }
    let items = items.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
    let turned = test.start_by_name("orders", &Redro { items, id: 7 }).id("order-7");
    assert_eq!(turned.now().unwrap().key(), first.key());
    assert_eq!(world.journal.lines(), ["7"], "it was executed once");
    assert_eq!(n_runs(&test), 1);
}

#[test]
fn the_same_id_with_another_input_or_workflow_is_refused() {
    // R27
    let mut builder = builder().state(World::default());
    let orders = builder.workflow(orders());
    let mut w = Workflow::define::<Order, World>("returns");
    w.step("a").run(async |_| Ok(()));
    let returns = builder.workflow(w.no_output());
    let test = builder.start().unwrap();
    let first = test.start(&orders, order(7, &[("a", 1)])).id("order-7").now().unwrap();
    let other = test.start(&orders, order(7, &[("a", 2)])).id("order-7").now();
    refused(other, Code::RunIdConflict, &["\"order-7\"", "\"test\"", "another input"]);
    let other = test.start(&returns, order(7, &[("a", 1)])).id("order-7").now();
    refused(other, Code::RunIdConflict, &["\"orders\"", "\"returns\""]);
    assert_eq!(n_runs(&test), 1);
    assert_eq!(first.result().unwrap(), 1);
    // An id belongs to its tenant.
    let mine = test.start(&orders, order(8, &[])).tenant("another").id("order-7").now().unwrap();
    assert_ne!(mine.key(), first.key());
}

#[test]
fn inputs_that_differ_in_a_large_number_only_are_told_apart() {
    // R27
    let mut w = Workflow::define::<u128, ()>("large");
    let same = w.step("same").run(async |ctx| Ok(*ctx.input()));
    let (test, large) = engine_with((), w.output(same));
    let start = |input| test.start(&large, input).id("large").now();
    let run = start(1 << 100).unwrap();
    assert_eq!(run.result().unwrap(), 1 << 100, "kept to the last digit");
    refused(start((1 << 100) + 1), Code::RunIdConflict, &[]);
    assert_eq!(start(1 << 100).unwrap().key(), run.key());
}

#[test]
fn a_start_without_a_tenant_is_refused_unless_the_engine_has_one() {
    // R2
    let start = |builder: blocking::EngineBuilder<()>| {
        let mut builder = builder.client_only();
        let mut w = Workflow::define::<(), ()>("simple");
        w.step("a").run(async |_| Ok(()));
        let simple = builder.workflow(w.no_output());
        (builder.start().unwrap(), simple)
    };
    let (engine, simple) = start(blocking::Engine::builder(MemoryStore::new()));
    refused(engine.start(&simple, ()).now(), Code::NoTenant, &["tenant"]);
    assert_eq!(engine.start(&simple, ()).tenant("acme").now().unwrap().tenant(), "acme");
    let builder = blocking::Engine::builder(MemoryStore::new()).default_tenant("house");
    let (engine, simple) = start(builder);
    assert_eq!(engine.start(&simple, ()).now().unwrap().tenant(), "house");
    assert_eq!(engine.start(&simple, ()).tenant("acme").now().unwrap().tenant(), "acme");
}

#[test]
fn bad_names_and_unknown_things_are_refused_by_name() {
    let (test, orders) = World::default().engine(orders());
    let start = || test.start(&orders, order(1, &[]));
    refused(start().tenant("").now(), Code::BadName, &["tenant", "empty"]);
    refused(start().id("x".repeat(201)).now(), Code::BadName, &["run id", "201"]);
    refused(start().id("a\0b").now(), Code::BadName, &["run id", "control"]);
    refused(test.start_by_name("oders", &1).now(), Code::UnknownWorkflow, &["\"oders\""]);
    refused(test.run_handle("test", "nope"), Code::UnknownRun, &["\"test\"", "\"nope\""]);
    refused(test.run_handle("", "nope"), Code::BadName, &["tenant"]);
    refused(orders.step::<u32>("cuont").map(|_| ()), Code::UnknownStep, &["\"cuont\""]);
    assert_eq!(n_runs(&test), 0, "nothing was stored");
}

/// A map whose keys are no texts cannot be written as JSON.
type Grid = BTreeMap<(u8, u8), u8>;

#[test]
fn an_input_that_cannot_be_written_or_is_too_large_is_refused_and_not_stored() {
    // R28
    let mut grid = Workflow::define::<Grid, ()>("grid");
    grid.step("a").run(async |_| Ok(()));
    let mut text = Workflow::define::<String, ()>("text");
    text.step("a").run(async |_| Ok(()));
    let mut builder = builder().configure(|config| config.payload_bytes_max = 100);
    let (grid, text) = (builder.workflow(grid.no_output()), builder.workflow(text.no_output()));
    let test = builder.start().unwrap();
    let bad = test.start(&grid, Grid::from([((1, 2), 3)])).now();
    refused(bad, Code::NotSerialisable, &["input", "key must be a string"]);
    let large = test.start(&text, "x".repeat(99)).now();
    refused(large, Code::PayloadTooLarge, &["input", "101 bytes", "100", "payload_bytes_max"]);
    assert_eq!(n_runs(&test), 0, "nothing was stored");
    test.run(&text, "x".repeat(98)).wait().unwrap();
}

#[test]
fn a_float_that_json_cannot_hold_fails_the_step_that_gives_it_and_is_refused_as_an_input() {
    // FD3
    let mut w = Workflow::define::<Option<f64>, ()>("ratio");
    let ratio = w.step("ratio").retry(Retry::exponential(3)).run(async |ctx| {
        let of = ctx.input().unwrap_or_default();
        Ok(vec![(1, Some(of)), (2, None), (3, Some(1.0 / of))])
    });
    w.step("reader").after(ratio).run(async |_, ratio| Ok(ratio.len()));
    let (test, ratio) = engine_with((), w.no_output());
    test.run(&ratio, Some(4.0)).wait().unwrap();
    let run = test.start(&ratio, Some(0.0)).now().unwrap();
    refused(run.result(), Code::RunFailed, &["\"ratio\"", "[2][1] is inf", "JSON"]);
    assert_eq!(run.attempts().unwrap().len(), 1, "trying again would not help");
    let bad = test.start(&ratio, Some(f64::NAN)).now();
    refused(bad, Code::NotSerialisable, &["input", "NaN"]);
}

#[test]
fn an_output_that_cannot_be_written_or_is_too_large_fails_its_step_for_good() {
    // R28
    let mut grid = Workflow::define::<u8, ()>("grid");
    let step = grid.step("a").retry(Retry::exponential(3));
    step.run(async |ctx| Ok(Grid::from([((1, 2), *ctx.input())])));
    let mut text = Workflow::define::<usize, ()>("text");
    let step = text.step("a").retry(Retry::exponential(3));
    step.run_blocking(|ctx| Ok("x".repeat(*ctx.input())));
    let mut builder = builder().configure(|config| config.payload_bytes_max = 100);
    let (grid, text) = (builder.workflow(grid.no_output()), builder.workflow(text.no_output()));
    let test = builder.start().unwrap();
    let bad = test.start(&grid, 3).now().unwrap();
    refused(bad.result(), Code::RunFailed, &["SW0009", "\"a\"", "key must be a string"]);
    let large = test.start(&text, 99).now().unwrap();
    refused(large.result(), Code::RunFailed, &["SW0008", "\"a\"", "101 bytes"]);
    assert_eq!(trail(&large, "a"), "QUEUED STARTED FAILED", "no retry would mend it");
    assert_eq!(large.outcome().unwrap().failure.unwrap().failure.kind, FailureKind::Payload);
    test.run(&text, 98).wait().unwrap();
}

#[test]
fn many_runs_start_together_and_each_is_answered_on_its_own() {
    // R22, R27
    let world = World::default();
    let (test, orders) = world.engine(orders());
    test.start(&orders, order(0, &[])).id("taken").now().unwrap();
    let runs = vec![
        NewRun::new(order(1, &[("a", 1)])).id("one"),
        NewRun::new(order(2, &[("a", 2)])).id("taken"),
        NewRun::new(order(3, &[("a", 3)])).tenant(""),
        NewRun::new(order(0, &[])).id("taken"),
        NewRun::new(order(5, &[("a", 5)])).tenant("another"),
        NewRun::new(order(1, &[("a", 1)])).id("one"),
    ];
    let mut started = test.start_many(&orders, runs).unwrap().into_iter();
    let mut next = || started.next().unwrap();
    let one = next().unwrap();
    assert_eq!(one.result().unwrap(), 1);
    refused(next(), Code::RunIdConflict, &["\"taken\""]);
    refused(next(), Code::BadName, &["tenant"]);
    assert_eq!(next().unwrap().result().unwrap(), 0);
    let another = next().unwrap();
    assert_eq!((another.tenant(), another.result().unwrap()), ("another", 5));
    assert_eq!(next().unwrap().key(), one.key(), "also within one call");
    assert_eq!(started.count(), 0);
    assert_eq!(n_runs(&test), 3);
}

#[test]
fn a_run_found_by_a_repeated_start_is_read_by_its_own_definition() {
    // R27
    let workflow = |with_more: bool| {
        let mut w = Workflow::define::<(), ()>("changing");
        if with_more {
            w.step("before").run(async |_| Ok("new".to_owned()));
        }
        let step = w.step("step").run(async |_| Ok("old".to_owned()));
        w.output(step)
    };
    let (first, handle) = engine_with((), workflow(false));
    first.run(&handle, ()).id("r").wait().unwrap();
    let mut builder = beside(&first);
    let handle = builder.workflow(workflow(true));
    let second = builder.start().unwrap();
    let one = second.start(&handle, ()).id("r").now().unwrap();
    assert_eq!((one.result().unwrap().as_str(), states(&one).as_str()), ("old", "step COMPLETED"));
    let many = second.start_many(&handle, [NewRun::new(()).id("r")]).unwrap().remove(0).unwrap();
    assert_eq!(many.result().unwrap(), "old");
    assert_eq!(states(&many), "step COMPLETED");
}

#[test]
fn runs_are_listed_newest_first_in_pages_with_workflow_and_version() {
    // L13
    let mut w = Workflow::define::<u32, ()>("listed");
    w.sleep("nap", DAY).from_start();
    w.version(4);
    let (test, listed) = engine_with((), w.no_output());
    for n in 0..5 {
        let tenant = if n % 2 == 0 { "even" } else { "odd" };
        test.start(&listed, n).tenant(tenant).id(format!("run-{n}")).now().unwrap();
    }
    test.run_handle("odd", "run-3").unwrap().cancel().wait().unwrap();
    let ids = |filter: RunFilter, before| {
        let page = test.list(filter, before, 2).unwrap();
        let ids: Vec<String> = page.runs.iter().map(|run| run.id.to_string()).collect();
        assert!(page.runs.iter().all(|run| run.workflow == "listed"));
        assert!(page.runs.iter().all(|run| run.version == 4));
        (ids, page.next)
    };
    let (first, next) = ids(RunFilter::default(), None);
    assert_eq!(first, ["run-4", "run-3"]);
    let (second, next) = ids(RunFilter::default(), next);
    assert_eq!(second, ["run-2", "run-1"]);
    let (third, next) = ids(RunFilter::default(), next);
    assert_eq!((third, next), (vec!["run-0".to_owned()], None));
    let tenant = Some("odd".parse().unwrap());
    let status = Some(RunStatus::Running);
    assert_eq!(ids(RunFilter { tenant, status, ..RunFilter::default() }, None).0, ["run-1"]);
    let workflow = Some("other".to_owned());
    assert!(ids(RunFilter { workflow, ..RunFilter::default() }, None).0.is_empty());
}

#[test]
fn an_engine_needs_a_runtime_and_says_so() {
    // R7
    let future = Engine::builder(MemoryStore::new()).start();
    let answer = futures_util::FutureExt::now_or_never(future).expect("it is refused at once");
    refused(answer, Code::BlockingInAsync, &["tokio runtime", "stepwell::blocking"]);
}

on_every_store![
    the_same_id_and_input_finds_the_run_that_is_there,
    the_same_id_with_another_input_or_workflow_is_refused,
    inputs_that_differ_in_a_large_number_only_are_told_apart,
    bad_names_and_unknown_things_are_refused_by_name,
    an_input_that_cannot_be_written_or_is_too_large_is_refused_and_not_stored,
    an_output_that_cannot_be_written_or_is_too_large_fails_its_step_for_good,
    a_float_that_json_cannot_hold_fails_the_step_that_gives_it_and_is_refused_as_an_input,
    many_runs_start_together_and_each_is_answered_on_its_own,
    a_run_found_by_a_repeated_start_is_read_by_its_own_definition,
    runs_are_listed_newest_first_in_pages_with_workflow_and_version,
];

in_memory_only!("these are about engines on real time":
    a_start_without_a_tenant_is_refused_unless_the_engine_has_one,
    an_engine_needs_a_runtime_and_says_so,
);
