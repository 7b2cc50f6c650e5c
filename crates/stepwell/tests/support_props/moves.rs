//! What workers, senders and leaders do to a store, in any order.

use proptest::collection::vec;
use proptest::prelude::*;

use super::plan::SIGNALS;
use super::storm::N_SEATS;

/// What somebody does next. Numbers pick among what there is.
#[derive(Clone, Debug)]
pub(crate) enum Move {
    Claim {
        seat: usize,
        tasks_max: usize,
    },
    /// Commits some of what a worker holds, or held once, in one batch.
    Commit {
        seat: usize,
        picks: Vec<usize>,
    },
    Release {
        seat: usize,
        pick: usize,
    },
    /// Commits something again that was committed before (FB1).
    Repeat {
        pick: usize,
    },
    Beat {
        seat: usize,
    },
    /// The worker's process dies and another takes its seat.
    Die {
        seat: usize,
    },
    Pass {
        millis: u64,
    },
    Fire {
        timers_max: usize,
    },
    Reap,
    Cancel {
        run: usize,
        force: bool,
    },
    /// Sends signals in one batch.
    Signal {
        letters: Vec<Letter>,
    },
}

/// A signal to a run. Few keys, so that some are used twice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Letter {
    pub(crate) run: usize,
    pub(crate) name: usize,
    pub(crate) has_attribute: bool,
    /// One of its own if not given.
    pub(crate) key: Option<usize>,
    pub(crate) only_if_awaited: bool,
    pub(crate) by_id: bool,
}

fn letters() -> impl Strategy<Value = Letter> {
    let key = prop::option::weighted(0.2, 0..3_usize);
    (0..4_usize, 0..SIGNALS.len(), any::<bool>(), key, prop::bool::weighted(0.1), any::<bool>())
        .prop_map(|(run, name, has_attribute, key, only_if_awaited, by_id)| Letter {
            run,
            name,
            has_attribute,
            key,
            only_if_awaited,
            by_id,
        })
}

pub(crate) fn moves() -> impl Strategy<Value = Vec<Move>> {
    let seat = || 0..N_SEATS;
    let pick = || 0..1_000_usize;
    let one = prop_oneof![
        8 => (seat(), 1..=8_usize).prop_map(|(seat, tasks_max)| Move::Claim { seat, tasks_max }),
        8 => (seat(), vec(pick(), 1..=5)).prop_map(|(seat, picks)| Move::Commit { seat, picks }),
        1 => (seat(), pick()).prop_map(|(seat, pick)| Move::Release { seat, pick }),
        2 => pick().prop_map(|pick| Move::Repeat { pick }),
        1 => seat().prop_map(|seat| Move::Beat { seat }),
        1 => seat().prop_map(|seat| Move::Die { seat }),
        2 => prop_oneof![0..5_000_u64, 20_000..40_000_u64].prop_map(|millis| Move::Pass { millis }),
        2 => (1..=4_usize).prop_map(|timers_max| Move::Fire { timers_max }),
        1 => Just(Move::Reap),
        1 => (0..30_usize, prop::bool::weighted(0.3))
            .prop_map(|(run, force)| Move::Cancel { run, force }),
        4 => vec(letters(), 1..=4).prop_map(|letters| Move::Signal { letters }),
    ];
    vec(one, 0..120)
}
