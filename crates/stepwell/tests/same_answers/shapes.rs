//! The workflows that commands register: one of every kind of step, and the ways in which two
//! definitions can be related.

use std::time::Duration;

use stepwell::Retry;
use stepwell::core::workflow::Definition;
use stepwell::testing::conformance::world::Sketch;

/// How many there are.
pub(crate) const N_SHAPES: u8 = 18;

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
        _ => sketch("a; b; c").named("shape-0").version(7),
    };
    sketch.resolve(&format!("shape-{number}"))
}

fn retry() -> Retry {
    Retry::fixed(2, Duration::from_secs(3))
}
