//! A function goes on later: it suspends, looks for signals while it runs, hears of what ended, or
//! begins another round.
//!
//! Everything that a function waits for is an open wait with a key, also a sleep. What ends one is
//! recorded as a memo under the next number, before the function hears of it, and one at a time: a
//! function that has heard of the first thing may not be interested in the second any more.

use alloc::string::String;
use alloc::vec::Vec;

use super::Notes;
use super::signal::{find_signal, let_others_look};
use crate::id::Node;
use crate::limits::TOLD_KEYS_MAX;
use crate::run::{
    AttemptState, Attributes, Because, EndedAttempt, EventKind, FunctionWait, MemoOutcome, MemoRow,
    Phase, ROUND_KEY, Resumed, RunImage, SignalRow, TaskState, WaitKind, WaitRow,
};
use crate::time::Timestamp;

/// What a function waits for when nothing of it is executed any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspension {
    /// Everything that is open.
    pub waits: Vec<FunctionWait>,
    /// The number of the next thing that it hears of.
    pub next_memo: u64,
    /// Whether the store may have waits of the function already.
    pub had_waits: bool,
}

/// What a function waits for that is running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listening {
    /// Everything that is open.
    pub waits: Vec<FunctionWait>,
    /// The number of the next thing that it hears of.
    pub next_memo: u64,
}

/// What a running function hears of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeardWait {
    /// The place of the wait that is over, as the function gave it.
    pub place: u32,
    /// What ended it; `None` for a sleep or the pause before a step is tried again.
    pub resumed: Option<Resumed>,
}

/// Something that a function hears of.
enum News {
    Signal(WaitRow, SignalRow),
    /// The deadline of a wait passed, a sleep is over, or a step is to be tried again.
    Over(WaitRow),
}

impl News {
    const fn wait(&self) -> &WaitRow {
        match self {
            Self::Signal(wait, _) | Self::Over(wait) => wait,
        }
    }

    /// How the end of the wait is recorded, if it is.
    const fn outcome(&self) -> Option<MemoOutcome> {
        match self {
            Self::Signal(_, signal) => Some(MemoOutcome::Ended(Resumed::Signal(signal.number))),
            Self::Over(wait) => match wait.kind {
                WaitKind::Signal => Some(MemoOutcome::Ended(Resumed::TimedOut)),
                WaitKind::Sleep => Some(MemoOutcome::Slept),
                WaitKind::Retry => None,
            },
        }
    }
}

/// An execution ends, and the function goes on when one of its waits is over. The attempt is
/// charged nothing, and neither are the workers it lost before it came this far.
pub(super) fn suspend(image: &mut RunImage<'_>, node: Node, suspension: Suspension, notes: Notes) {
    let Suspension { waits, next_memo, .. } = suspension;
    let ended = EndedAttempt { notes, ..EndedAttempt::plain(AttemptState::Suspended) };
    image.end_attempt(node, ended);
    let Some(attempt) = image.touch(node).map(|task| {
        task.losses = 0;
        task.next_memo = next_memo.max(1);
        task.attempt
    }) else {
        return;
    };
    set_waits(image, node, waits);
    let open: Vec<&WaitRow> = image.waits_of(node).collect();
    let listens = open.iter().any(|wait| wait.kind == WaitKind::Signal);
    let keys = open.iter().map(|wait| wait.key.clone()).take(TOLD_KEYS_MAX).collect();
    let until = earliest(image, node);
    let mut signals: Vec<String> = open.iter().flat_map(|wait| wait.signals.clone()).collect();
    let matching = match &open[..] {
        [wait] => wait.matching.clone(),
        _ => Attributes::new(),
    };
    if listens {
        signals.sort_unstable();
        signals.dedup();
        signals.truncate(TOLD_KEYS_MAX);
        let has_to_look = image.run.n_unconsumed > 0;
        let due = if has_to_look { Some(image.now) } else { until.map(|at| at.max(image.now)) };
        image.move_to(node, Phase::Waiting { due }, Because::Wait);
        let event = EventKind::Waiting { signals, matching, until, keys };
        image.record(Some(node), attempt, event);
    } else {
        debug_assert!(until.is_some(), "a function that suspends waits for something");
        let until = until.unwrap_or(image.now);
        // One that stayed open from before may be over by now.
        let due = until.max(image.now);
        image.move_to(node, Phase::Sleeping { until: due }, Because::Sleep);
        image.record(Some(node), attempt, EventKind::Sleeping { until, keys });
    }
}

/// A running function opens and gives up waits, and hears of what has ended, one thing at a time.
/// Signals are looked at here and nowhere else while it runs, so that they are given in order.
pub(super) fn listen(
    image: &mut RunImage<'_>,
    node: Node,
    listening: Listening,
) -> Option<HeardWait> {
    let Listening { waits, next_memo } = listening;
    if image.task(node).is_some_and(|task| !task.may_have_waits())
        && let Some(task) = image.touch(node)
    {
        // From now on its waits go with it, whatever becomes of it.
        task.next_memo = next_memo.max(1);
    }
    set_waits(image, node, waits.clone());
    let news = first_news(image, node)?;
    // One that stayed open from an earlier execution may have had another place there.
    let place = waits.iter().find(|wait| wait.key == news.wait().key)?.place;
    let resumed = match news.outcome() {
        Some(MemoOutcome::Ended(resumed)) => Some(resumed),
        _ => None,
    };
    end(image, node, &news, next_memo);
    Some(HeardWait { place, resumed })
}

/// The timer of a suspended function fires: it hears of what has ended, or goes on waiting.
pub(super) fn wake(image: &mut RunImage<'_>, node: Node) {
    if let Some(news) = first_news(image, node) {
        resume(image, node, &news);
    } else {
        let due = earliest(image, node);
        image.set_timer(node, due);
    }
}

/// A suspended function gets a signal that is stored.
pub(super) fn give(image: &mut RunImage<'_>, wait: &WaitRow, signal: &SignalRow) {
    resume(image, wait.node, &News::Signal(wait.clone(), signal.clone()));
}

/// Ends an execution, to go on in another round with another input: what was recorded goes, and
/// failures of earlier rounds are forgiven.
pub(super) fn continue_round(image: &mut RunImage<'_>, node: Node, round: u32, notes: Notes) {
    let now = image.now;
    let ended = EndedAttempt { notes, ..EndedAttempt::plain(AttemptState::Suspended) };
    image.end_attempt(node, ended);
    let Some((attempt, may_have_waits)) = image.touch(node).map(|task| {
        let may_have_waits = task.may_have_waits();
        // It has been suspended, so its conditions are not asked again.
        (task.failures, task.losses, task.next_memo) = (0, 0, 1);
        task.resumed = None;
        (task.attempt, may_have_waits)
    }) else {
        return;
    };
    if may_have_waits {
        image.close_waits(node);
        let_others_look(image);
    }
    image.clear_memos(node);
    let (key, outcome) = (String::from(ROUND_KEY), MemoOutcome::Round(round));
    image.store_memo(MemoRow { node, key, number: 0, outcome, tries: 0, began_at: now, at: now });
    image.move_to(node, Phase::Queued { since: now, due: None }, Because::Continue);
    image.record(Some(node), attempt, EventKind::Continued { round });
}

/// Opens waits that are not open yet and gives up those that are wanted no longer. One that stays
/// keeps its age and its deadline.
fn set_waits(image: &mut RunImage<'_>, node: Node, wanted: Vec<FunctionWait>) {
    let is_wanted = |wait: &&WaitRow| wanted.iter().any(|wanted| wanted.key == wait.key);
    let (kept, given_up): (Vec<&WaitRow>, Vec<&WaitRow>) =
        image.waits_of(node).partition(is_wanted);
    let kept: Vec<String> = kept.into_iter().map(|wait| wait.key.clone()).collect();
    let given_up: Vec<String> = given_up.into_iter().map(|wait| wait.key.clone()).collect();
    for key in &given_up {
        image.end_wait(node, key);
    }
    if !given_up.is_empty() {
        let_others_look(image);
    }
    let (number, n_signals_before) = (image.run.next_event, image.run.n_signals);
    let opened_at = image.now;
    for wait in wanted.into_iter().filter(|wait| !kept.contains(&wait.key)) {
        let FunctionWait { key, place, kind, signals, matching, deadline } = wait;
        image.open_wait(WaitRow {
            node,
            key,
            number,
            place,
            kind,
            signals,
            matching,
            n_signals_before,
            opened_at,
            deadline,
        });
    }
}

/// The first thing that a function has to hear of: a signal, by the age of its waits, or the wait
/// that was over first.
fn first_news(image: &RunImage<'_>, node: Node) -> Option<News> {
    let mut waits: Vec<&WaitRow> = image.waits_of(node).filter(|w| !w.key.is_empty()).collect();
    waits.sort_by_key(|wait| wait.age());
    let found = waits.iter().find_map(|wait| Some((*wait, find_signal(image, wait)?)));
    if let Some((wait, signal)) = found {
        return Some(News::Signal(wait.clone(), signal.clone()));
    }
    let over = waits.into_iter().filter(|wait| wait.is_over(image.now));
    over.min_by_key(|wait| (wait.deadline, wait.age())).cloned().map(News::Over)
}

/// Closes the wait that is over and records that.
fn end(image: &mut RunImage<'_>, node: Node, news: &News, number: u64) {
    let (now, wait) = (image.now, news.wait());
    if let News::Signal(_, signal) = news {
        image.consume_signal(signal.number, node);
    }
    image.end_wait(node, &wait.key);
    if let Some(outcome) = news.outcome() {
        let (key, began_at) = (wait.key.clone(), wait.opened_at);
        image.store_memo(MemoRow { node, key, number, outcome, tries: 0, began_at, at: now });
    }
}

/// A suspended function is executed again and hears of this first.
fn resume(image: &mut RunImage<'_>, node: Node, news: &News) {
    let Some((number, attempt)) = image.touch(node).map(|task| {
        let number = task.next_memo;
        task.next_memo += 1;
        (number, task.attempt)
    }) else {
        debug_assert!(false, "task {node:?} was not loaded");
        return;
    };
    end(image, node, news, number);
    let (into, key) = (TaskState::Queued, news.wait().key.clone());
    let (because, event) = match news {
        News::Signal(_, signal) => {
            let (number, signal) = (signal.number, signal.name.clone());
            (Because::Signal, EventKind::Signalled { signal, number, into, key })
        }
        News::Over(wait) if wait.kind == WaitKind::Signal => {
            (Because::TimeOut, EventKind::TimedOut { into, key })
        }
        News::Over(_) => (Because::Wake, EventKind::Woken { into, key }),
    };
    image.move_to(node, Phase::Queued { since: image.now, due: None }, because);
    image.record(Some(node), attempt, event);
}

/// When the first wait of a function is over, if any ever is.
pub(super) fn earliest(image: &RunImage<'_>, node: Node) -> Option<Timestamp> {
    image.waits_of(node).filter_map(|wait| wait.deadline).min()
}
