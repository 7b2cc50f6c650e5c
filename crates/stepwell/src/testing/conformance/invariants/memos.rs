//! What functions have done: each thing once, in an order of their own, by signals that they got.

use std::collections::BTreeSet;

use stepwell_core::id::Node;
use stepwell_core::run::{MemoOutcome, MemoRow, Resumed, SignalRow, TaskRow};

use super::Findings;

pub(super) fn check(
    memos: &[MemoRow],
    tasks: &[TaskRow],
    signals: &[SignalRow],
    findings: &mut Findings,
) {
    let is_sorted = memos.is_sorted_by_key(|memo| (memo.node, memo.key.clone()));
    findings.expect(is_sorted, || "memos are not listed by task and key".to_owned());
    let mut seen: BTreeSet<(Node, &str)> = BTreeSet::new();
    let mut numbers: BTreeSet<(Node, u64)> = BTreeSet::new();
    for memo in memos {
        let MemoRow { node, key, number, outcome, .. } = memo;
        findings.expect(seen.insert((*node, key)), || format!("{key:?} of {node:?} stands twice"));
        let is_heard = !matches!(outcome, MemoOutcome::Begun { .. } | MemoOutcome::Round(_));
        findings.expect(is_heard == (*number > 0), || {
            format!("{key:?} of {node:?} is {outcome:?} under number {number}")
        });
        let is_new = *number == 0 || numbers.insert((*node, *number));
        findings.expect(is_new, || format!("number {number} of {node:?} was given twice"));
        findings.expect(memo.began_at <= memo.at, || {
            format!("{key:?} of {node:?} was done before it was begun")
        });
        let is_executed = tasks.iter().any(|task| task.node == *node && task.attempt > 0);
        findings.expect(is_executed, || format!("{key:?} is of {node:?}, which was not executed"));
        if let MemoOutcome::Ended(Resumed::Signal(number)) = outcome {
            let got = signals.iter().find(|signal| signal.number == *number);
            findings.expect(got.is_some_and(|signal| signal.consumed_by == Some(*node)), || {
                format!("{key:?} of {node:?} got signal {number}, which is not its own")
            });
        }
    }
}

/// Whether a function heard of a signal while it was running, of which the log does not tell. One
/// that began another round has forgotten what it heard of.
pub(super) fn tell_of(memos: &[MemoRow], node: Node, signal: u64) -> bool {
    memos.iter().filter(|memo| memo.node == node).any(|memo| match memo.outcome {
        MemoOutcome::Ended(resumed) => resumed == Resumed::Signal(signal),
        MemoOutcome::Round(_) => true,
        _ => false,
    })
}
