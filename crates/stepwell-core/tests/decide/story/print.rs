//! A story's outcome and log as text.

use stepwell_core::decide::{CancelAnswer, HeardWait, RunHappening, SignalAnswer, Verdict};
use stepwell_core::id::Node;
use stepwell_core::run::{
    Attributes, Event, EventKind, MemoOutcome, MemoRow, Resumed, RunTimer, SignalRow, TaskRow,
    read_log,
};
use stepwell_core::time::Timestamp;

use super::Story;
use super::text::print_span;

/// A task's name, or what the timer of the run is for.
pub(super) fn name(story: &Story, node: Node) -> &str {
    match node {
        Node::DEADLINE => "deadline",
        Node::LOOK_AGAIN => "look",
        node => story.definition.name(node),
    }
}

/// What happens to a run, as its answer begins.
pub(super) fn title(happening: &RunHappening) -> String {
    match happening {
        RunHappening::Cancelled(request) if request.force => "cancel!".into(),
        RunHappening::Cancelled(_) => "cancel".into(),
        RunHappening::Signalled(signal) => signal.name.clone(),
        RunHappening::TimerFired(RunTimer::Deadline) => "deadline".into(),
        RunHappening::TimerFired(RunTimer::LookAgain) => "look".into(),
    }
}

/// An answer as text; a signal that was stored is listed with the others anyway.
pub(super) fn answer(title: &str, verdict: Verdict) -> Option<String> {
    match verdict {
        Verdict::Applied | Verdict::Signal(SignalAnswer::Stored { .. }) => None,
        Verdict::Signal(SignalAnswer::AlreadyStored { number }) => {
            Some(format!("{title}: known as {number}"))
        }
        Verdict::Signal(answer) => Some(format!("{title}: {answer:?}")),
        Verdict::Cancel(CancelAnswer::Cancelled) => Some(format!("{title}: Cancelled")),
        Verdict::Cancel(answer) => Some(format!("{title}: {answer:?}")),
        Verdict::NotCurrent => Some(format!("{title}: refused")),
        Verdict::WrongGuess | Verdict::Listening(_) => panic!("a run is not guessed at"),
    }
}

/// The run with its tasks, then queue, timers, what ended waits, signals, memos, failure and
/// answers if there are any.
pub(super) fn outcome(story: &Story) -> String {
    let name = |node: &Node| name(story, *node).to_string();
    let tasks = story.tasks.values();
    let tasks = tasks.map(|task| format!("{} {}", name(&task.node), task.state()));
    let timers = story.timers.iter();
    let timers = timers.map(|(node, due)| format!("{} at {}", name(node), clock(*due)));
    let failure = story.run.failure.as_ref().map(|failed| {
        let (step, failure) = (name(&failed.node), &failed.failure);
        format!("{step} #{}: {}", failed.attempt, failure.message)
    });
    let resumed = story.tasks.values().filter_map(|task| resumed(story, task));
    let signals = story.signals.values().map(|signal| received(story, signal));
    let memos = story.memos.values().map(|memo| self::memo(story, memo));
    let lines = [
        line(story.run.status.as_str(), tasks),
        line("queue", story.queue.iter().map(name)),
        line("timers", timers),
        line("resumed", resumed),
        line("signals", signals),
        line("memos", memos),
        line("failure", failure),
        line("answers", story.answers.iter().cloned()),
    ];
    normal(&lines.join("\n"))
}

fn resumed(story: &Story, task: &TaskRow) -> Option<String> {
    let by = match task.resumed? {
        Resumed::Signal(number) => format!("{}#{number}", story.signals[&number].name),
        Resumed::TimedOut => "time-out".into(),
    };
    Some(format!("{} by {by}", name(story, task.node)))
}

/// A signal with its number and who got it.
fn received(story: &Story, signal: &SignalRow) -> String {
    let SignalRow { name: signal, number, consumed_by, .. } = signal;
    match consumed_by {
        Some(node) => format!("{signal}#{number} to {}", name(story, *node)),
        None => format!("{signal}#{number} kept"),
    }
}

/// A memo with its number and what is known of it.
fn memo(story: &Story, memo: &MemoRow) -> String {
    let MemoRow { node, key, number, outcome, .. } = memo;
    let outcome = match outcome {
        MemoOutcome::Ended(Resumed::Signal(number)) => format!("signal {number}"),
        MemoOutcome::Round(round) => format!("round {round}"),
        other => other.state().to_string(),
    };
    format!("{}/{key}@{number} {outcome}", name(story, *node))
}

fn line(title: &str, parts: impl IntoIterator<Item = String>) -> String {
    let parts: Vec<String> = parts.into_iter().collect();
    if parts.is_empty() {
        return String::new();
    }
    format!("{title}: {}", parts.join(", "))
}

/// The log as it is read, one event per line.
pub(super) fn log(story: &Story) -> String {
    let events = read_log(&story.log());
    let lines: Vec<String> = events.iter().map(|event| entry(story, event)).collect();
    lines.join("\n")
}

fn entry(story: &Story, event: &Event) -> String {
    let number = event.number.map_or("-".into(), |number| number.to_string());
    let name = event.node.map_or("run", |node| story.definition.name(node));
    let attempt = match event.attempt {
        0 => String::new(),
        attempt => format!(" #{attempt}"),
    };
    let details = match &event.kind {
        EventKind::RunEnding { ends_as: status } | EventKind::RunEnded { status } => {
            format!(" {status}")
        }
        EventKind::Failed { failure } => format!(" {}", failure.message),
        EventKind::Retrying { count, delay, due, failure } => {
            let (delay, due) = (print_span(*delay), clock(*due));
            format!(" {count} in {delay} at {due} {}", failure.message)
        }
        EventKind::Sleeping { until, keys } => format!(" until {}{}", clock(*until), of(keys)),
        EventKind::Woken { into, key } | EventKind::TimedOut { into, key } => {
            format!(" {into}{}", of_one(key))
        }
        EventKind::Waiting { signals, matching, until, keys } => {
            let until = until.map_or(String::new(), |until| format!(" until {}", clock(until)));
            format!(" {}{}{until}{}", signals.join("|"), listed(matching), of(keys))
        }
        EventKind::Signalled { signal, number, into, key } => {
            format!(" {signal}#{number} {into}{}", of_one(key))
        }
        EventKind::Continued { round } => format!(" {round}"),
        EventKind::RunCancelled { by, reason, forced } => {
            let reason = reason.as_ref().map_or(String::new(), |why| format!(": {why}"));
            let forced = if *forced { ", forced" } else { "" };
            format!(" by {by}{reason}{forced}")
        }
        _ => String::new(),
    };
    format!("{number} {name} {}{attempt}{details}", event.kind.name())
}

/// What of a function is meant.
fn of(keys: &[String]) -> String {
    if keys.is_empty() { String::new() } else { format!(" of {}", keys.join(" ")) }
}

fn of_one(key: &str) -> String {
    if key.is_empty() { String::new() } else { format!(" of {key}") }
}

/// What a running function heard of.
pub(super) fn heard(story: &Story, node: Node, heard: Option<HeardWait>) -> Option<String> {
    let HeardWait { place, resumed } = heard?;
    let by = match resumed {
        Some(Resumed::Signal(number)) => format!("signal {number}"),
        Some(Resumed::TimedOut) => "time-out".into(),
        None => "sleep".into(),
    };
    Some(format!("{}: heard of {place} by {by}", name(story, node)))
}

fn listed(attributes: &Attributes) -> String {
    let listed: Vec<String> = attributes.iter().map(|(k, v)| format!("{k}={v}")).collect();
    if listed.is_empty() { String::new() } else { format!("[{}]", listed.join(",")) }
}

fn clock(at: Timestamp) -> String {
    print_span(at.since(Timestamp::EPOCH))
}

/// The text without indentation and empty lines; `;` ends a line, too.
pub(super) fn normal(text: &str) -> String {
    let lines: Vec<&str> =
        text.split(['\n', ';']).map(str::trim).filter(|l| !l.is_empty()).collect();
    lines.join("\n")
}
