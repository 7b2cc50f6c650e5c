//! The workflows that commands register: one of every kind of step, and the ways in which two
//! definitions can be related.

use std::time::Duration;

use stepwell::Retry;
use stepwell::core::id::Node;
use stepwell::core::run::WaitFor;
use stepwell::core::workflow::{Definition, NodeKind};
use stepwell::testing::conformance::world::{Sketch, wait_for};

/// How many there are.
pub(crate) const N_SHAPES: u8 = 24;

/// How many names signals have.
pub(crate) const N_SIGNALS: u8 = 3;

/// How many things steps wait for.
pub(crate) const N_AWAITED: u8 = 5;

/// The name of a signal.
pub(crate) fn signal(number: u8) -> &'static str {
    ["paid", "sent", "done"][usize::from(number % N_SIGNALS)]
}

/// What a step or a wait with conditions waits for.
pub(crate) fn awaited(number: u8) -> WaitFor {
    let texts = ["paid", "paid|sent/20s", "sent&order=4711", "done/0s", "paid&order=4711/45s"];
    wait_for(texts[usize::from(number % N_AWAITED)])
}

/// Whether one wait follows another. A signal that completes the first opens the second, and
/// whether another one of the same batch is given to that at once or by a timer is left open.
pub(crate) fn has_waits_in_a_row(definition: &Definition) -> bool {
    let graph = &definition.graph;
    let is_wait = |node: Node| graph.kind(node) == NodeKind::Wait;
    let follows = |node: Node| graph.parents(node).iter().any(|edge| is_wait(edge.node));
    graph.nodes().any(|node| is_wait(node) && follows(node))
}

/// The definition of a shape.
pub(crate) fn shape(number: u8) -> Definition {
    let sketch = |text: &str| Sketch::from(text);
    let sketch = match number {
        0 => sketch("a"),
        1 => sketch("a; b < a; c < a; d < b, c"),
        2 => sketch("a * 2/10s; b * 1 < a"),
        3 => sketch("a; n ~ 30s < a; b < n"),
        4 => sketch("a; n ~? 60s < a; b < n").gives("b"),
        5 => sketch("a; b < a; c < a; d < b!, c; e < d, a"),
        6 => sketch("a; b; c * 1/5s; n ~ 20s; d < a, b, c").fail_fast(),
        7 => sketch("a * 1/5s; b < a").on_failure(),
        8 => sketch("a @ slow; b < a; c @ slow < b; d @ slow"),
        9 => sketch("a; b < a").must_give("b"),
        10 => sketch("n ~ 10s"),
        11 => sketch("a; b < a; c < a; d < a; e < a; z < b, c, d, e"),
        12 => sketch("a; b; n ~ 20s; m ~ 20s; z < n, m, a").on_failure().fail_fast(),
        13 => sketch("a * 9/1s; b * 9; c * 9 @ slow"),
        // Another structure of a workflow that is known.
        14 => sketch("a; z").named("shape-0"),
        // The same structure in another order and with other policies.
        15 => sketch("c < a; b < a; a; d < c, b").named("shape-1").retry(retry()),
        // One version that two structures claim.
        16 => sketch("a; b").named("shape-0").version(7),
        17 => sketch("a; b; c").named("shape-0").version(7),
        18 => sketch("w ? paid/30s; a; b < w, a; v ? sent|paid < b; c @ slow < v"),
        19 => sketch("a; w ?? paid/20s < a; b < w").gives("w"),
        20 => sketch("w ? paid; v ? paid&order=4711/60s; u ? paid|sent; b < w, v").fail_fast(),
        21 => sketch("a * 1/5s; w ? sent < a; b < w").on_failure().deadline(secs(40)),
        22 => sketch("w ? paid/10s; v ? sent/10s < w; u ? paid < v; b < u"),
        // Other policies for runs that may wait already.
        _ => sketch("w ? sent/5s; a; b < w, a; v ? done < b; c < v").named("shape-18"),
    };
    sketch.resolve(&format!("shape-{number}"))
}

fn retry() -> Retry {
    Retry::fixed(2, secs(3))
}

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}
