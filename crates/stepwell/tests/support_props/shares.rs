//! What is fair, asserted of the order in which tasks were claimed.

use std::collections::{BTreeMap, BTreeSet};

use stepwell::core::id::Tenant;

use super::journal::{Entry, Journal, Step};

/// Shares hold over every so many starts.
const WINDOW: usize = 1_000;

/// Asserts that no task was overtaken by more tasks of another tenant than there are of its own
/// ahead of it, and one. All weights are 1.
///
/// A tenant that had its turn in the round under way stands in the next one at best, and somebody
/// who joins late still has a turn in both. A place that was given up in the middle of a line
/// stays empty; only those at its end are given back.
pub(crate) fn assert_nobody_is_overtaken(journal: &Journal) {
    let entries = &journal.0;
    let mut frontier = 0;
    let mut last_turns: BTreeMap<&Tenant, u64> = BTreeMap::new();
    let mut given_up: BTreeSet<(&Tenant, u64)> = BTreeSet::new();
    for (ix, Entry { tenant, block, step, .. }) in entries.iter().enumerate() {
        let n_ahead = match step {
            Step::Claimed => {
                frontier = frontier.max(*block);
                last_turns.insert(tenant, *block);
                continue;
            }
            Step::Withdrawn => {
                given_up.insert((tenant, *block));
                continue;
            }
            Step::Ready { n_ahead } => n_ahead,
        };
        given_up.remove(&(tenant, *block));
        let n_given_up = given_up.range((tenant, frontier)..(tenant, frontier.max(*block))).count();
        let had_its_turn = last_turns.get(tenant).is_some_and(|turn| *turn >= frontier);
        let n_max = n_ahead + 1 + n_given_up + usize::from(had_its_turn);
        for (other, n) in overtaking(&entries[ix], &entries[ix + 1..]) {
            assert!(
                n <= n_max,
                "{:?} of {tenant} behind {n_ahead} of its own was overtaken by {n} of {other}",
                entries[ix].task,
            );
        }
    }
}

/// How many tasks of each other tenant were claimed before a ready task left its queue.
fn overtaking<'a>(ready: &Entry, later: &'a [Entry]) -> BTreeMap<&'a Tenant, usize> {
    let mut counts = BTreeMap::new();
    for entry in later {
        if entry.task == ready.task {
            break;
        }
        if entry.step == Step::Claimed && entry.tenant != ready.tenant {
            *counts.entry(&entry.tenant).or_default() += 1;
        }
    }
    counts
}

/// T3: asserts that in every window each tenant got its weight's share of the starts, within a
/// tenth. Starts of other tenants do not count.
pub(crate) fn assert_shares(starts: &[Tenant], weights: &[(Tenant, u32)]) {
    let indices: BTreeMap<&Tenant, usize> =
        weights.iter().enumerate().map(|(ix, (tenant, _))| (tenant, ix)).collect();
    let starts: Vec<usize> =
        starts.iter().filter_map(|start| indices.get(start).copied()).collect();
    let total: u32 = weights.iter().map(|(_, weight)| weight).sum();
    let mut counts = vec![0_usize; weights.len()];
    for (ix, start) in starts.iter().enumerate() {
        counts[*start] += 1;
        if ix >= WINDOW {
            counts[starts[ix - WINDOW]] -= 1;
        }
        if ix + 1 < WINDOW {
            continue;
        }
        for ((tenant, weight), count) in weights.iter().zip(&counts) {
            // In tenths of a start times the total, to stay with whole numbers.
            let fair = WINDOW * *weight as usize * 10;
            let share = count * total as usize * 10;
            assert!(
                share.abs_diff(fair) <= fair / 10,
                "{tenant} of weight {weight} in {total} got {count} of {WINDOW} starts up to {ix}"
            );
        }
    }
}
