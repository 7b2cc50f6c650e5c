//! What a store holds, in a form in which two stores can be compared.

use std::collections::BTreeSet;

use stepwell::core::id::{Node, RunKey, Token};
use stepwell::core::run::{Phase, TaskRow};
use stepwell::ports::{ClaimRef, StoreDump, TaskPlace};

/// Every row as a line of text.
pub(crate) type Picture = BTreeSet<String>;

/// What is seen of tasks in their queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Places {
    /// Their keys.
    ByKey,
    /// Their order. A claim moves its frontier on without a lock, so a task that becomes ready
    /// meanwhile may get a key that counts from the old one: fair up to what is in flight.
    InOrder,
}

/// Takes a picture. Tokens that are not `known` are left out: they were handed out since, and
/// differ each time. Times do not: the clock stands still.
pub(crate) fn picture(dump: &StoreDump, known: &BTreeSet<Token>, seen: Places) -> Picture {
    let plain = |token: Token| if known.contains(&token) { token } else { Token::new(0, 0) };
    let mut lines = Picture::new();
    for (key, log) in &dump.runs {
        lines.insert(format!("run {:?}", log.run));
        for attempt in &log.attempts {
            let mut attempt = attempt.clone();
            attempt.claim.token = plain(attempt.claim.token);
            lines.insert(format!("attempt of {key}: {attempt:?}"));
        }
        lines.extend(log.events.iter().map(|event| format!("event of {key}: {event:?}")));
    }
    for (key, tasks) in &dump.tasks {
        let task = |task: &TaskRow| {
            let mut task = task.clone();
            if let Phase::Running(claim) = &mut task.phase {
                claim.token = plain(claim.token);
            }
            format!("task of {key}: {task:?}")
        };
        lines.extend(tasks.iter().map(task));
    }
    lines.extend(places(dump, seen));
    lines.extend(dump.waits.iter().map(|waits| format!("waits {waits:?}")));
    lines.extend(dump.signals.iter().map(|signals| format!("signals {signals:?}")));
    lines.extend(dump.memos.iter().map(|memos| format!("memos {memos:?}")));
    lines.extend(dump.timers.iter().map(|timer| format!("timer {timer:?}")));
    for (worker, claims) in &dump.claims {
        let claim = |claim: &ClaimRef| {
            let token = plain(claim.token);
            format!("claim of {worker}: {:?}", ClaimRef { token, ..*claim })
        };
        lines.extend(claims.iter().map(claim));
    }
    let admitted = dump.admitted.iter().filter(|(_, n)| **n > 0);
    lines.extend(admitted.map(|admitted| format!("admitted {admitted:?}")));
    lines
}

fn places(dump: &StoreDump, seen: Places) -> Vec<String> {
    let mut places: Vec<_> = dump.places.iter().collect();
    if seen == Places::ByKey {
        return places
            .iter()
            .map(|(task, place)| format!("place of {task:?}: {place:?}"))
            .collect();
    }
    places.sort_by_key(|(_, place)| match place {
        TaskPlace::Ready(queue, key) => Some((queue.clone(), *key)),
        _ => None,
    });
    let line = |(ix, (task, place)): (usize, &(&(RunKey, Node), &TaskPlace))| match place {
        TaskPlace::Ready(queue, _) => format!("place {ix} in {queue}: {task:?}"),
        place => format!("place of {task:?}: {place:?}"),
    };
    places.iter().enumerate().map(line).collect()
}

/// The lines in which two pictures differ.
pub(crate) fn difference(wanted: &Picture, found: &Picture) -> String {
    let missing = wanted.difference(found).map(|line| format!("  - {line}"));
    let surplus = found.difference(wanted).map(|line| format!("  + {line}"));
    missing.chain(surplus).collect::<Vec<_>>().join("\n")
}
