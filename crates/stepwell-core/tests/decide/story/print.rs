//! A story's outcome and log as text.

use stepwell_core::id::Node;
use stepwell_core::run::{Event, EventKind, read_log};
use stepwell_core::time::Timestamp;

use super::Story;
use super::text::print_span;

/// The run with its tasks, then queue, timers, failure and answers if there are any.
pub(super) fn outcome(story: &Story) -> String {
    let name = |node: &Node| story.definition.name(*node).to_string();
    let tasks = story.tasks.values();
    let tasks = tasks.map(|task| format!("{} {}", name(&task.node), task.state()));
    let timers = story.timers.iter();
    let timers = timers.map(|(node, due)| format!("{} at {}", name(node), clock(*due)));
    let failure = story.run.failure.as_ref().map(|failed| {
        let (step, failure) = (&failed.step, &failed.failure);
        format!("{step} #{}: {}", failed.attempt, failure.message)
    });
    let lines = [
        line(story.run.status.as_str(), tasks),
        line("queue", story.queue.iter().map(name)),
        line("timers", timers),
        line("failure", failure),
        line("answers", story.answers.iter().cloned()),
    ];
    normal(&lines.join("\n"))
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
        EventKind::Sleeping { until } => format!(" until {}", clock(*until)),
        EventKind::Woken { into } => format!(" {into}"),
        _ => String::new(),
    };
    format!("{number} {name} {}{attempt}{details}", event.kind.name())
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
