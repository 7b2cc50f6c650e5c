//! What is refused when an engine is built: with a code, in clear words, and nothing is stored.

use std::time::Duration;

use stepwell::core::id::Queue;
use stepwell::{Code, Config, Engine, MemoryStore, Retry, TenantSettings, Workflow};

use crate::support::{DAY, beside, builder, engine_with, refused};

fn well_formed() -> Workflow<(), ()> {
    let mut w = Workflow::define::<(), ()>("well-formed");
    w.step("a").run(async |_| Ok(()));
    w.no_output()
}

/// Registers a workflow beside a good one: the engine does not start, and nothing is stored.
#[track_caller]
fn refuses<O>(workflow: Workflow<(), O>, code: Code, words: &[&str]) {
    refused(workflow.check(), code, words);
    let bystander = builder().start().unwrap();
    let mut builder = beside(&bystander);
    builder.workflow(well_formed());
    builder.workflow(workflow);
    refused(builder.start(), code, words);
    let unknown = bystander.start_by_name("well-formed", &()).now();
    refused(unknown, Code::UnknownWorkflow, &["\"well-formed\""]);
}

/// A workflow whose steps have these names.
fn named(workflow: &str, steps: &[&str]) -> Workflow<(), ()> {
    let mut w = Workflow::define::<(), ()>(workflow);
    for step in steps {
        w.step(step).run(async |_| Ok(()));
    }
    w.no_output()
}

#[test]
fn a_cycle_is_refused_with_the_steps_in_it() {
    // R0
    let mut w = Workflow::define::<(), ()>("circle");
    w.chain("start").run(async |_| Ok(()));
    w.chain("a").also_after_step("c").run(async |_| Ok(()));
    w.chain("b").run(async |_| Ok(()));
    w.chain("c").run(async |_| Ok(()));
    refuses(w.no_output(), Code::Cycle, &["\"circle\"", "a -> b -> c -> a"]);
    let mut w = Workflow::define::<(), ()>("selfish");
    w.chain("a").also_after_step("a").run(async |_| Ok(()));
    refuses(w.no_output(), Code::Cycle, &["a -> a"]);
}

#[test]
fn an_unknown_parent_or_anchor_is_refused_by_name() {
    // R0
    let mut w = Workflow::define::<(), ()>("lost");
    w.chain("a").also_after_step("ghost").run(async |_| Ok(()));
    refuses(w.no_output(), Code::UnknownParent, &["\"a\"", "\"ghost\""]);
    for insert_before in [true, false] {
        let mut w = Workflow::define::<(), ()>("unanchored");
        w.step("explicit").run(async |_| Ok(()));
        let member = w.chain("a");
        // An explicit step is no member of the chain, so nothing can stand next to it there.
        let member = if insert_before {
            member.before_step("explicit")
        } else {
            member.after_step("explicit")
        };
        member.run(async |_| Ok(()));
        refuses(w.no_output(), Code::UnknownParent, &["\"a\"", "\"explicit\"", "chain"]);
    }
}

#[test]
fn a_parent_or_output_of_another_workflow_is_refused() {
    // R0, R19
    let mut other = Workflow::define::<(), ()>("other");
    let foreign = other.step("foreign").run(async |_| Ok(1));
    let mut w = Workflow::define::<(), ()>("home");
    w.step("a").after(foreign).run(async |_, _| Ok(()));
    refuses(w.no_output(), Code::UnknownParent, &["\"home\"", "\"a\"", "another workflow"]);
    let mut w = Workflow::define::<(), ()>("home");
    w.step("a").run(async |_| Ok(()));
    refuses(w.output(foreign), Code::UnknownParent, &["\"home\"", "output", "another workflow"]);
}

#[test]
fn bad_names_are_refused() {
    // R0
    let (long, longer) = ("x".repeat(200), "x".repeat(201));
    engine_with((), named("fits", &[&long]));
    refuses(named("double", &["a", "b", "a"]), Code::DuplicateName, &["\"a\""]);
    refuses(named("nameless", &["a", ""]), Code::BadName, &["step", "empty"]);
    refuses(named("long", &[&longer]), Code::BadName, &["201", "200"]);
    refuses(named("control", &["a\nb"]), Code::BadName, &["control character"]);
    refuses(named("reserved", &["on_failure"]), Code::BadName, &["\"on_failure\""]);
    refuses(named("", &["a"]), Code::BadName, &["workflow", "empty"]);
    refuses(named(&longer, &["a"]), Code::BadName, &["201"]);
    refuses(named("empty", &[]), Code::BadSize, &["\"empty\"", "no steps"]);
    let mut w = Workflow::define::<(), ()>("queues");
    w.step("a").queue("").run(async |_| Ok(()));
    refuses(w.no_output(), Code::BadName, &["\"a\"", "queue", "empty"]);
}

#[test]
fn policies_that_make_no_sense_are_refused() {
    // R11
    let too_long = 100 * 367 * DAY;
    let with_retry = |retry: Retry| {
        let mut w = Workflow::define::<(), ()>("policies");
        w.step("a").retry(retry).run(async |_| Ok(()));
        w.no_output()
    };
    let code = Code::BadPolicy;
    refuses(with_retry(Retry::exponential(1).factor(0.5)), code, &["\"a\"", "retry", "factor"]);
    refuses(with_retry(Retry::exponential(1).factor(f64::NAN)), code, &["factor"]);
    refuses(with_retry(Retry::exponential(u32::MAX)), code, &["retries_max"]);
    refuses(with_retry(Retry::fixed(1, too_long)), code, &["hundred years"]);
    for span in [Duration::ZERO, too_long] {
        let mut w = Workflow::define::<(), ()>("policies");
        w.step("a").timeout(span).run(async |_| Ok(()));
        refuses(w.no_output(), code, &["\"a\"", "timeout"]);
        let mut w = Workflow::define::<(), ()>("policies");
        w.step("a").heartbeat_timeout(span).run(async |_| Ok(()));
        refuses(w.no_output(), code, &["\"a\"", "heartbeat_timeout"]);
    }
    let mut w = Workflow::define::<(), ()>("policies");
    w.sleep("nap", too_long).from_start();
    refuses(w.no_output(), code, &["\"nap\"", "sleep", "hundred years"]);
}

#[test]
fn a_workflow_registered_twice_is_refused() {
    // R0
    let mut builder = builder();
    builder.workflow(well_formed());
    builder.workflow(well_formed());
    refused(builder.start(), Code::DuplicateName, &["\"well-formed\"", "twice"]);
}

#[test]
fn a_version_cannot_be_given_to_another_structure() {
    // L13
    let versioned = |steps: &[&str], version| {
        let mut w = Workflow::define::<(), ()>("versioned");
        for step in steps {
            w.step(step).run(async |_| Ok(()));
        }
        w.version(version);
        w.no_output()
    };
    let (test, _) = engine_with((), versioned(&["a"], 7));
    let beside = |workflow| {
        let mut builder = beside(&test);
        builder.workflow(workflow);
        builder.start()
    };
    refused(beside(versioned(&["a", "b"], 7)), Code::VersionConflict, &["\"versioned\"", "7"]);
    beside(versioned(&["a", "b"], 8)).unwrap();
    beside(versioned(&["a"], 7)).unwrap();
}

type Change = fn(&mut Config);

const ABSURD: &[(&str, &[Change])] = &[
    ("slots", &[|c| c.slots = 100_001]),
    ("queues", &[|c| c.queues = Vec::new()]),
    ("lease", &[|c| c.lease = Duration::ZERO, |c| c.lease = 8 * DAY]),
    (
        "heartbeat_interval",
        &[
            |c| c.heartbeat_interval = Duration::ZERO,
            |c| c.heartbeat_interval = Duration::MAX,
            |c| c.heartbeat_interval = c.lease / 2 + Duration::from_millis(1),
        ],
    ),
    ("poll_interval", &[|c| c.poll_interval = Duration::ZERO, |c| c.poll_interval = 8 * DAY]),
    ("leader_ttl", &[|c| c.leader_ttl = Duration::ZERO, |c| c.leader_ttl = 8 * DAY]),
    ("timer_interval", &[|c| c.timer_interval = Duration::ZERO, |c| c.timer_interval = 8 * DAY]),
    ("patience", &[|c| c.patience = 8 * DAY]),
    ("grace", &[|c| c.grace = 8 * DAY]),
    ("crash_limit", &[|c| c.crash_limit = 0, |c| c.crash_limit = 1, |c| c.crash_limit = u32::MAX]),
    ("payload_bytes_max", &[|c| c.payload_bytes_max = 0, |c| c.payload_bytes_max = (1 << 30) + 1]),
    ("start_batch_max", &[|c| c.start_batch_max = 0, |c| c.start_batch_max = 10_001]),
    ("commit_batch_max", &[|c| c.commit_batch_max = 0, |c| c.commit_batch_max = 10_001]),
    ("timer_batch_max", &[|c| c.timer_batch_max = 0, |c| c.timer_batch_max = 10_001]),
    (
        "tenant_default",
        &[
            |c| c.tenant_default = Some(TenantSettings { weight: 0, tasks_max: None }),
            |c| c.tenant_default = Some(TenantSettings { weight: 1_001, tasks_max: None }),
            |c| c.tenant_default = Some(TenantSettings { weight: 1, tasks_max: Some(0) }),
        ],
    ),
];

#[test]
fn every_zero_or_absurd_setting_is_refused_by_its_name() {
    // R25
    let bystander = builder().start().unwrap();
    for (field, changes) in ABSURD {
        for change in *changes {
            let mut builder = beside(&bystander).configure(change);
            builder.workflow(well_formed());
            refused(builder.start(), Code::BadConfig, &[field]);
            let unknown = bystander.start_by_name("well-formed", &()).now();
            refused(unknown, Code::UnknownWorkflow, &[]);
        }
    }
}

#[test]
fn every_setting_is_covered_above_and_the_defaults_are_accepted() {
    // R25: a new field must be added here, and then to the table above.
    let config = Config::default();
    config.check().unwrap();
    let Config {
        slots,
        queues,
        lease,
        heartbeat_interval,
        poll_interval,
        leader_ttl,
        timer_interval,
        patience,
        grace,
        crash_limit,
        payload_bytes_max,
        start_batch_max: 1_000,
        commit_batch_max: 1_000,
        timer_batch_max: 1_000,
        tenant_default: None,
    } = config
    else {
        panic!("other defaults than documented: {config:?}")
    };
    assert!(slots >= 10);
    assert_eq!(queues, [Queue::default_queue()]);
    let spans =
        [lease, heartbeat_interval, poll_interval, leader_ttl, timer_interval, patience, grace];
    assert_eq!(spans.map(|span| span.as_secs()), [30, 10, 1, 6, 1, 10, 30]);
    assert_eq!((crash_limit, payload_bytes_max), (3, 2 * 1024 * 1024));
    assert_eq!(ABSURD.len(), 15);
}

#[tokio::test]
async fn bad_names_given_to_the_builder_are_refused() {
    // R3
    let builder = || Engine::builder(MemoryStore::new());
    let tenant = builder().default_tenant("").start().await;
    refused(tenant, Code::BadName, &["default_tenant", "empty"]);
    let worker = builder().worker_id("a\tb").start().await;
    refused(worker, Code::BadName, &["worker id", "control character"]);
    let engine = builder().app("shop").start().await.unwrap();
    let id: Vec<&str> = engine.worker_id().split('-').collect();
    assert!(id.len() >= 4 && id[0] == "shop", "app, host, pid, random: {id:?}");
    let engine = builder().worker_id("shop-7").start().await.unwrap();
    assert_eq!(engine.worker_id(), "shop-7");
}

on_every_store![
    a_cycle_is_refused_with_the_steps_in_it,
    an_unknown_parent_or_anchor_is_refused_by_name,
    a_parent_or_output_of_another_workflow_is_refused,
    a_workflow_registered_twice_is_refused,
    a_version_cannot_be_given_to_another_structure,
    every_zero_or_absurd_setting_is_refused_by_its_name,
];

in_memory_only!("no store is asked":
    bad_names_are_refused,
    policies_that_make_no_sense_are_refused,
    every_setting_is_covered_above_and_the_defaults_are_accepted,
);
