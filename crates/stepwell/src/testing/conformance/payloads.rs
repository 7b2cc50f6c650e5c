//! Payloads and names: what is stored comes back byte for byte, whatever it looks like.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use stepwell_core::id::Node;
use stepwell_core::run::RunStatus;

use super::world::{Sketch, TENANT, World, completed_with, run_of, tenant};
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
    let output = Payload { codec: Cow::Borrowed("cbor"), bytes: Arc::from(*b"output") };
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
