//! Moments, spans, states and events in words, as all commands write them.

use std::time::Duration;

use jiff::SignedDuration;
use stepwell_core::failure::Failure;
use stepwell_core::run::{EventKind, RunStatus, TaskState};
use stepwell_core::time::Timestamp;

use super::Tone;
use crate::api::RunEvent;

/// What there is to say about an event besides its name; nothing for most.
#[must_use]
pub fn detail(event: &RunEvent) -> String {
    match &event.kind {
        EventKind::RunEnding { ends_as } => format!("as {ends_as}, on_failure comes first"),
        EventKind::RunEnded { status } => format!("as {status}"),
        EventKind::Started { worker } => format!("by {worker}"),
        EventKind::Completed { notes } => {
            let notes: Vec<String> =
                notes.iter().map(|(name, text)| format!("{name} {text}")).collect();
            notes.join(", ")
        }
        EventKind::Failed { failure } => with_causes(failure),
        EventKind::Retrying { count, delay, failure, .. } => {
            format!("{}, retry {count} in {}", with_causes(failure), span(*delay))
        }
        EventKind::Sleeping { until, keys } => {
            format!("for {}{}", span(until.since(event.at)), in_function(keys))
        }
        EventKind::Waiting { signals, until, keys, .. } => {
            let at_most = until.map(|until| format!(", at most {}", span(until.since(event.at))));
            let at_most = at_most.unwrap_or_default();
            format!("for {}{at_most}{}", signals.join(" or "), in_function(keys))
        }
        EventKind::Signalled { signal, number, key, .. } => {
            format!("{signal}, signal {number}{}", in_function(key_of(key)))
        }
        EventKind::Woken { key, .. } | EventKind::TimedOut { key, .. } => {
            in_function(key_of(key)).trim_start().to_owned()
        }
        EventKind::Continued { round } => format!("in round {round}"),
        EventKind::RunCancelled { by, reason, forced } => {
            let how = if *forced { " by force" } else { "" };
            let why = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            format!("{how} by {by}{why}").trim_start().to_owned()
        }
        _ => String::new(),
    }
}

/// What of a function is meant, if it is one.
fn in_function(keys: &[String]) -> String {
    if keys.is_empty() { String::new() } else { format!(" ({})", keys.join(", ")) }
}

fn key_of(key: &String) -> &[String] {
    if key.is_empty() { &[] } else { std::slice::from_ref(key) }
}

/// The words of an error and of its sources, outermost first.
fn with_causes(failure: &Failure) -> String {
    let mut words = failure.message.clone();
    for cause in &failure.causes {
        words.push_str(": ");
        words.push_str(cause);
    }
    words
}

/// How an event is told.
#[must_use]
pub fn tone(kind: &EventKind) -> Tone {
    match kind {
        EventKind::Completed { .. } => Tone::Good,
        EventKind::RunEnded { status } => status_tone(*status),
        EventKind::Failed { .. } | EventKind::RunEnding { .. } | EventKind::DeadlinePassed => {
            Tone::Bad
        }
        EventKind::Retrying { .. } | EventKind::LeaseLost | EventKind::TimedOut { .. } => {
            Tone::Warning
        }
        EventKind::Sleeping { .. }
        | EventKind::Woken { .. }
        | EventKind::Suspended
        | EventKind::Continued { .. }
        | EventKind::Waiting { .. } => Tone::Waiting,
        EventKind::Skipped | EventKind::Cancelled => Tone::Faint,
        _ => Tone::Plain,
    }
}

/// How the status of a run is told.
#[must_use]
pub fn status_tone(status: RunStatus) -> Tone {
    match status {
        RunStatus::Completed => Tone::Good,
        RunStatus::Failed => Tone::Bad,
        RunStatus::Running => Tone::Waiting,
        _ => Tone::Warning,
    }
}

/// How the state of a task is told.
#[must_use]
pub fn state_tone(state: TaskState) -> Tone {
    match state {
        TaskState::Completed => Tone::Good,
        TaskState::Failed => Tone::Bad,
        TaskState::Pending | TaskState::Skipped | TaskState::Cancelled => Tone::Faint,
        _ => Tone::Waiting,
    }
}

/// How long after `began_at` something happened, in seconds with three decimals.
#[must_use]
pub fn elapsed(began_at: Timestamp, at: Timestamp) -> String {
    let millis = at.since(began_at).as_millis();
    format!("{}.{:03}s", millis / 1_000, millis % 1_000)
}

/// A span as people write it, such as `1m 30s`, to the millisecond.
#[must_use]
pub fn span(span: Duration) -> String {
    let span = u64::try_from(span.as_millis()).map_or(span, Duration::from_millis);
    SignedDuration::try_from(span).map_or_else(|_| format!("{span:?}"), |span| format!("{span:#}"))
}

/// A moment for programs: RFC 3339 in UTC, with all the digits that are stored.
#[must_use]
pub fn moment(at: Timestamp) -> String {
    let moment = jiff::Timestamp::from_microsecond(at.as_micros());
    moment.map_or_else(|_| at.to_string(), |moment| moment.to_string())
}

/// To the second, and to the millisecond, with the date apart.
const CLOCK: &str = "%Y-%m-%d %H:%M:%S";
const CLOCK_MILLIS: &str = "%Y-%m-%d %H:%M:%S.%3f";

/// A moment for people, to the second, in UTC.
#[must_use]
pub fn clock(at: Timestamp) -> String {
    written(at, CLOCK)
}

/// A moment for people, to the millisecond, in UTC.
#[must_use]
pub fn clock_millis(at: Timestamp) -> String {
    written(at, CLOCK_MILLIS)
}

/// As [`clock`], beside an earlier moment: without the date if that is the same.
#[must_use]
pub fn later_clock(earlier: Timestamp, at: Timestamp) -> String {
    without_known_date(&clock(earlier), clock(at))
}

/// As [`clock_millis`], beside an earlier moment: without the date if that is the same.
#[must_use]
pub fn later_clock_millis(earlier: Timestamp, at: Timestamp) -> String {
    without_known_date(&clock_millis(earlier), clock_millis(at))
}

fn without_known_date(earlier: &str, later: String) -> String {
    match (earlier.split_once(' '), later.split_once(' ')) {
        (Some((known, _)), Some((date, time))) if known == date => time.to_owned(),
        _ => later,
    }
}

fn written(at: Timestamp, format: &str) -> String {
    let moment = jiff::Timestamp::from_microsecond(at.as_micros());
    moment.map_or_else(|_| at.to_string(), |moment| moment.strftime(format).to_string())
}

/// About how long a span is: its two greatest units, such as `3h 12m`.
#[must_use]
pub fn rough_span(span: Duration) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    let secs = span.as_secs();
    match secs {
        0..MINUTE => format!("{secs}s"),
        MINUTE..HOUR => format!("{}m {}s", secs / MINUTE, secs % MINUTE),
        HOUR..DAY => format!("{}h {}m", secs / HOUR, secs % HOUR / MINUTE),
        DAY.. => format!("{}d {}h", secs / DAY, secs % DAY / HOUR),
    }
}

/// Text from a store as a terminal may show it: what could move the cursor, change colours or turn
/// the direction of writing is escaped. Line breaks stay.
#[must_use]
pub fn printable(text: &str) -> String {
    let is_invisible = |char: char| {
        matches!(char, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}')
            || char == '\u{feff}'
    };
    let mut shown = String::with_capacity(text.len());
    for char in text.chars() {
        if char != '\n' && (char.is_control() || is_invisible(char)) {
            shown.extend(char.escape_default());
        } else {
            shown.push(char);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_moments_read_as_people_write_them() {
        assert_eq!(span(Duration::from_secs(90)), "1m 30s");
        assert_eq!(span(Duration::from_millis(200)), "200ms");
        assert_eq!(span(Duration::from_micros(1_200_345)), "1s 200ms");
        assert_eq!(moment(Timestamp::EPOCH), "1970-01-01T00:00:00Z");
        let later = Timestamp::EPOCH.after(Duration::from_millis(2_061));
        assert_eq!(elapsed(Timestamp::EPOCH, later), "2.061s");
        assert_eq!(clock(later), "1970-01-01 00:00:02");
        assert_eq!(later_clock(Timestamp::EPOCH, later), "00:00:02");
        assert_eq!(later_clock_millis(Timestamp::EPOCH, later), "00:00:02.061");
        let next_day = Timestamp::EPOCH.after(Duration::from_hours(24));
        assert_eq!(later_clock(Timestamp::EPOCH, next_day), "1970-01-02 00:00:00");
        assert_eq!(clock_millis(later), "1970-01-01 00:00:02.061");
    }

    #[test]
    fn moments_at_the_end_of_time_are_written_somehow() {
        assert!(!clock(Timestamp::MAX).is_empty());
        assert!(!moment(Timestamp::MAX).is_empty());
    }

    #[test]
    fn a_rough_span_has_its_two_greatest_units() {
        for (secs, words) in [
            (0, "0s"),
            (59, "59s"),
            (90, "1m 30s"),
            (3_600, "1h 0m"),
            (86_399, "23h 59m"),
            (2 * 86_400 + 3 * 3_600 + 59, "2d 3h"),
        ] {
            assert_eq!(rough_span(Duration::from_secs(secs)), words);
        }
    }

    #[test]
    fn what_could_fool_a_terminal_is_escaped() {
        assert_eq!(printable("Grüße, 世界\nnext"), "Grüße, 世界\nnext");
        assert_eq!(printable("\u{1b}[31mred\u{7}\r\t"), "\\u{1b}[31mred\\u{7}\\r\\t");
        assert_eq!(printable("a\u{202e}b\u{9b}c"), "a\\u{202e}b\\u{9b}c");
    }
}
