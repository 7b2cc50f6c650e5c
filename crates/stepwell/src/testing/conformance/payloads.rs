//! Payloads and names: what is stored comes back byte for byte, whatever it looks like.

use std::borrow::Cow;
use std::collections::BTreeMap;

use stepwell_core::decide::SignalAnswer;
use stepwell_core::id::Node;
use stepwell_core::limits::{
    ATTRIBUTE_NAME_BYTES_MAX, ATTRIBUTE_VALUE_BYTES_MAX, ATTRIBUTES_MAX, NAME_BYTES_MAX,
};
use stepwell_core::run::{Attributes, RunStatus, WaitFor};

use super::world::{Sketch, TENANT, World, completed_with, payload, run_of, tenant};
use crate::ports::{Outcome, Payload, RunFilter, StartAnswer};

/// Text that is special to some database, shell, log or web page.
const HOSTILE: &[&str] = &[
    "'; drop table run; --",
    "\"quoted\" and 'quoted' and `ticked`",
    "$1 :name ?1 %s %% {} \\' \\",
    "Grüße, 世界, \u{1f422}, \u{202e}backwards, zero\u{200b}width",
    "<script>alert(1)</script>&amp;",
    " leading and trailing ",
    "NULL",
    "null",
    "%_*",
];

/// Sends bytes in as an input and out as an output.
async fn check_bytes(world: &World, bytes: &[u8]) {
    let flow = world.define("a; b < a").await;
    let request = world.request(TENANT, "", &flow, bytes);
    let run = run_of(&request, &flow);
    world.try_start(request).await;
    let first = world.claim_one().await;
    assert_eq!(&*world.inputs(&first).await.input.bytes, bytes);
    world.settle(&first, completed_with(bytes)).await;
    let inputs = world.inputs(&world.claim_one().await).await;
    let output = inputs.parents[0].output.as_ref().expect("it completed");
    assert_eq!(&*output.bytes, bytes);
    let stored = world.output(&run, "a").await.expect("it completed");
    assert_eq!(&*stored.bytes, bytes);
}

pub(super) async fn no_bytes_at_all_come_back(world: &World) {
    check_bytes(world, b"").await;
}

pub(super) async fn nul_bytes_come_back(world: &World) {
    // FD2
    check_bytes(world, b"\0").await;
    check_bytes(world, b"{\"text\":\"a\\u0000b\0c\"}").await;
}

pub(super) async fn bytes_that_are_no_text_come_back(world: &World) {
    // FD3
    let all: Vec<u8> = (0..=u8::MAX).collect();
    check_bytes(world, &all).await;
    check_bytes(world, &[0xff, 0xfe, 0xc0, 0x80, 0xed, 0xa0, 0x80]).await;
}

pub(super) async fn text_is_not_brought_into_another_form(world: &World) {
    // FD3: no reordering, no rounding, no normalising.
    check_bytes(world, br#"{"b":1, "a":2 ,"a":3, "n":12345678901234567890, "f":1.0}"#).await;
    check_bytes(world, "e\u{301} \u{e9}\r\n".as_bytes()).await;
}

pub(super) async fn a_mebibyte_comes_back(world: &World) {
    // FD4
    let large: Vec<u8> = (0..1024 * 1024_u32).map(|n| n.to_le_bytes()[n as usize % 3]).collect();
    check_bytes(world, &large).await;
}

pub(super) async fn the_codecs_tag_comes_back(world: &World) {
    // R28
    let flow = world.define("a; b < a").await;
    let mut request = world.request(TENANT, "", &flow, b"input");
    request.input.codec = Cow::Borrowed("cbor+zstd");
    let run = run_of(&request, &flow);
    world.try_start(request).await;
    let task = world.claim_one().await;
    assert_eq!(world.inputs(&task).await.input.codec, "cbor+zstd");
    let output = Payload::new(Cow::Borrowed("cbor"), *b"output");
    world
        .settle(&task, Outcome::Completed { output: output.clone(), notes: BTreeMap::new() })
        .await;
    assert_eq!(world.output(&run, "a").await, Some(output));
}

pub(super) async fn only_completed_tasks_have_an_output(world: &World) {
    let flow = world.define("a; x; b < a, x; s ~ 0s").await;
    let run = world.start(&flow).await;
    let roots = world.claim_all().await;
    world.settle(roots.of("a"), completed_with(b"of a")).await;
    world.skip(roots.of("x")).await;
    world.fire().await;
    let outputs = world.store().outputs(run.key).await.expect("read outputs");
    let bytes: Vec<(Node, &[u8])> = outputs.iter().map(|(node, o)| (*node, &*o.bytes)).collect();
    // A sleep gives nothing of its own, which is the empty output.
    assert_eq!(bytes, [(run.node("a"), &b"of a"[..]), (run.node("s"), &b""[..])]);
    assert_eq!(world.output(&run, "x").await, None);
    assert_eq!(world.output(&run, "b").await, None);
}

pub(super) async fn a_failed_attempt_leaves_no_output(world: &World) {
    let flow = world.define("a * 1").await;
    let run = world.start(&flow).await;
    world.fail(&world.claim_one().await).await;
    assert_eq!(world.output(&run, "a").await, None);
    world.settle(&world.claim_one().await, completed_with(b"second try")).await;
    let output = world.output(&run, "a").await.expect("it completed");
    assert_eq!(&*output.bytes, b"second try");
}

pub(super) async fn hostile_tenants_and_ids_are_names_like_any_other(world: &World) {
    let flow = world.define("a").await;
    for name in HOSTILE {
        let request = world.request(name, name, &flow, name.as_bytes());
        let run = run_of(&request, &flow);
        assert!(matches!(world.try_start(request).await, StartAnswer::Started));
        let task = world.claim_one().await;
        assert_eq!((task.tenant.as_str(), task.run_id.as_str()), (*name, *name));
        world.complete(&task).await;
        let found = world.store().find(&run.tenant, &run.id).await.expect("find a run");
        assert_eq!(found.expect("it exists").row.key, run.key);
        let filter = RunFilter { tenant: Some(tenant(name)), ..RunFilter::default() };
        let page = world.store().list(&filter, None, 10).await.expect("list runs");
        assert_eq!(page.runs.iter().map(|run| run.row.key).collect::<Vec<_>>(), [run.key]);
    }
}

pub(super) async fn hostile_workflows_and_steps_are_names_like_any_other(world: &World) {
    for name in HOSTILE {
        let flow = world.define(Sketch::of_roots(&[name, "plain"]).named(name)).await;
        let run = world.start(&flow).await;
        assert_eq!(world.claim_all().await.of(name).run_id, run.id);
        let latest = world.store().latest(name).await.expect("read a definition");
        assert_eq!(latest.map(|stored| stored.id), Some(flow.0.id));
        let filter = RunFilter { workflow: Some((*name).to_owned()), ..RunFilter::default() };
        let page = world.store().list(&filter, None, 10).await.expect("list runs");
        assert_eq!(page.runs.len(), 1);
    }
}

pub(super) async fn hostile_workers_are_names_like_any_other(world: &World) {
    let flow = world.define("a").await;
    for name in HOSTILE {
        let run = world.start(&flow).await;
        let worker = world.hire(name).await;
        let batch = world.claim(&worker, 1).await;
        assert_eq!(world.beat(&worker, &[batch[0].claim]).await, []);
        world.complete(&batch[0]).await;
        assert_eq!(world.status(&run).await, RunStatus::Completed);
        world.dismiss(&worker).await;
    }
}

pub(super) async fn a_name_may_be_as_long_as_names_get(world: &World) {
    let name = "\u{1f422}".repeat(50);
    let flow = world.define(Sketch::of_roots(&[&name]).named(&name)).await;
    let request = world.request(&name, &name, &flow, b"input");
    let run = run_of(&request, &flow);
    world.try_start(request).await;
    assert_eq!(world.drain().await, name);
    assert_eq!(world.status(&run).await, RunStatus::Completed);
}

/// Sends a payload by a signal: a wait node gives it, a step is resumed with it, and it is listed.
async fn check_signal(world: &World, payload: Payload) {
    let flow = world.define("w ? paid; b < w; a").await;
    let run = world.start(&flow).await;
    let step = world.claim_one().await;
    world.waits_for(&step, "paid").await;
    let expected = Some(payload.clone().of_signal("paid"));
    for _ in 0..2 {
        world.send(world.to(&run, "paid").payload(payload.clone())).await;
    }
    let batch = world.claim_all().await;
    let parents = world.inputs(batch.of("b")).await.parents;
    assert_eq!(parents[0].output, expected, "as a parent's output");
    let inputs = world.inputs(batch.of("a")).await;
    assert_eq!(inputs.resumed, expected, "to the step that waited");
    assert_eq!(world.output(&run, "w").await, expected, "as an output");
    let outputs = world.store().outputs(run.key).await.expect("read outputs");
    assert_eq!(outputs, [(run.node("w"), payload.clone().of_signal("paid"))]);
    for signal in world.signals(&run).await {
        assert_eq!(Some(signal.payload), expected, "as a signal");
    }
    world.complete_together(&batch).await;
}

pub(super) async fn a_signals_bytes_come_back(world: &World) {
    // FD2, FD3
    let all: Vec<u8> = (0..=u8::MAX).collect();
    let texts = HOSTILE.iter().map(|text| text.as_bytes());
    for bytes in texts.chain([&b""[..], b"\0", b"a\0b", &all, &[0xff, 0xfe, 0xc0, 0x80]]) {
        check_signal(world, payload(bytes)).await;
    }
}

pub(super) async fn a_signal_of_a_mebibyte_comes_back(world: &World) {
    // FD4
    let large: Vec<u8> = (0..1024 * 1024_u32).map(|n| n.to_le_bytes()[n as usize % 3]).collect();
    check_signal(world, payload(&large)).await;
}

pub(super) async fn the_tag_of_a_signals_codec_comes_back(world: &World) {
    // R28
    for codec in ["cbor+zstd", "json", "", "'; --"] {
        check_signal(world, Payload::new(Cow::Borrowed(codec), *b"bytes")).await;
    }
    check_signal(world, Payload::empty()).await;
}

pub(super) async fn what_a_wait_got_is_told_from_an_output_of_nothing(world: &World) {
    // A step that waited gives its own output, also if that is the empty one; a sleep gives none.
    let flow = world.define("a; s ~ 0s; w ? paid/0s; b < a, s, w").await;
    let run = world.start(&flow).await;
    world.waits_for(&world.claim_one().await, "sent").await;
    world.signal(&run, "sent").await;
    let task = world.claim_one().await;
    let outcome = Outcome::Completed { output: Payload::empty(), notes: BTreeMap::new() };
    world.settle(&task, outcome).await;
    world.fire_all().await;
    let outputs = world.store().outputs(run.key).await.expect("read outputs");
    let outputs: Vec<Payload> = outputs.into_iter().map(|(_, output)| output).collect();
    assert_eq!(outputs, [Payload::empty(), Payload::empty(), Payload::timed_out()]);
    let parents = world.inputs(&world.claim_one().await).await.parents;
    let given: Vec<Payload> = parents.into_iter().filter_map(|parent| parent.output).collect();
    assert_eq!(given, outputs);
}

pub(super) async fn hostile_signals_are_named_and_told_like_any_other(world: &World) {
    let flow = world.define(Sketch::from("a").named("order")).await;
    for text in HOSTILE {
        let run = world.start(&flow).await;
        let matching = Attributes::from([((*text).to_owned(), (*text).to_owned())]);
        let wait_for = WaitFor { signals: vec![(*text).to_owned()], matching, timeout: None };
        let outcome = Outcome::Waits { wait_for: wait_for.clone(), notes: BTreeMap::new() };
        world.settle(&world.claim_one().await, outcome).await;
        let wait = world.waits(&run).await.remove(0);
        assert_eq!((&wait.signals, &wait.matching), (&wait_for.signals, &wait_for.matching));
        assert_eq!(world.waiting_runs((TENANT, "order", text), None, 9).await, [run.key]);
        let sending = || world.to(&run, text).key(text).with(text, text).carrying(b"same");
        world.send(sending()).await;
        let again = world.unchanged_by(world.send(sending())).await;
        assert_eq!(again, SignalAnswer::AlreadyStored { number: 1 });
        let row = world.signals(&run).await.remove(0).row;
        assert_eq!((row.name.as_str(), row.key.as_str()), (*text, *text));
        assert_eq!(row.attributes, wait_for.matching);
        let task = world.claim_one().await;
        let resumed = world.inputs(&task).await.resumed.expect("it is told");
        assert_eq!(resumed.signal_name(), Some(*text));
        world.complete(&task).await;
    }
}

pub(super) async fn a_signal_may_carry_as_much_as_signals_can(world: &World) {
    let flow = world.define(Sketch::from("a").named("order")).await;
    let run = world.start(&flow).await;
    let long =
        |n_bytes: usize, end: usize| format!("{}{end:04}", "\u{1f422}".repeat(n_bytes / 4 - 1));
    let attribute = |n| (long(ATTRIBUTE_NAME_BYTES_MAX, n), long(ATTRIBUTE_VALUE_BYTES_MAX, n));
    let matching: Attributes = (0..ATTRIBUTES_MAX).map(attribute).collect();
    let signals: Vec<String> = (0..64).map(|n| long(NAME_BYTES_MAX, n)).collect();
    let wait_for = WaitFor { signals: signals.clone(), matching: matching.clone(), timeout: None };
    wait_for.check().expect("it is within the limits");
    let outcome = Outcome::Waits { wait_for, notes: BTreeMap::new() };
    world.settle(&world.claim_one().await, outcome).await;
    let wait = world.waits(&run).await.remove(0);
    assert_eq!((&wait.signals, &wait.matching), (&signals, &matching));
    for name in &signals {
        assert_eq!(world.waiting_runs((TENANT, "order", name), None, 9).await, [run.key]);
    }
    let sending = world.to(&run, &signals[63]).key(&long(NAME_BYTES_MAX, 7));
    let sending = matching.iter().fold(sending, |s, (name, value)| s.with(name, value));
    world.send(sending).await;
    assert_eq!(world.states(&run).await, "a QUEUED");
    assert_eq!(world.signals(&run).await[0].row.attributes, matching);
}

pub(super) async fn the_input_of_a_run_can_be_read_at_any_time(world: &World) {
    let flow = world.define("a").await;
    for n_bytes in [0, 7, 100_000] {
        let bytes = vec![b'x'; n_bytes];
        let request = world.request(TENANT, "", &flow, &bytes);
        let (run, given) = (run_of(&request, &flow), request.input.clone());
        let read = async || world.store().input(run.key).await.expect("read an input");
        assert_eq!(read().await, None);
        world.try_start(request).await;
        assert_eq!(read().await.as_ref(), Some(&given));
        world.drain().await;
        assert_eq!(read().await.as_ref(), Some(&given));
    }
}
