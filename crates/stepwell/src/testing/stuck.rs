//! What a test is told when it waits for what cannot happen.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use super::executions::Execution;
pub(super) use crate::api::blocking::Stuck;

/// The driving thread does not come back.
pub(super) fn hangs(what: &str, real_time_max: Duration) -> Stuck {
    let span = in_words(real_time_max);
    Stuck(format!(
        "{what} has not returned for {span} of real time; give it more by `real_time_max`, or find \
         out what it waits for"
    ))
}

/// Steps wait for something outside, or are busy, without end.
pub(super) fn never_end(steps: &[Arc<Execution>], real_time_max: Duration) -> Stuck {
    let (names, span) = (names(steps), in_words(real_time_max));
    let (have, their) = if steps.len() == 1 { ("has", "it waits") } else { ("have", "they wait") };
    Stuck(format!(
        "{names} {have} not ended after {span} of real time, in which virtual time stood still; \
         give more by `real_time_max`, or find out what {their} for (a test holds a step by a \
         `Gate`)"
    ))
}

/// Nothing happens at this moment, and the answer is not there.
pub(super) fn at_this_moment(next_due: Option<Duration>, steps: &[Arc<Execution>]) -> Stuck {
    let mut why = "nothing more happens at this moment of virtual time, and what the test waits \
                   for has not happened: "
        .to_owned();
    let _ = match next_due {
        Some(due) => write!(why, "the next timer is due in {}", in_words(due)),
        None => write!(why, "no timer is set"),
    };
    tell_executing(&mut why, steps);
    why.push_str(". Move time on by `advance`, `advance_to` or `run_to_end` first");
    Stuck(why)
}

/// Runs are open and will stay so.
pub(super) fn for_ever(n_open: &str, steps: &[Arc<Execution>]) -> Stuck {
    let (are, them) = if n_open == "1 run" { ("is", "it") } else { ("are", "them") };
    let mut why = format!("{n_open} {are} open and nothing will ever happen to {them}");
    tell_executing(&mut why, steps);
    if steps.is_empty() {
        why.push_str("; what waits for a signal is listed by `run.waits()`");
    }
    Stuck(why)
}

/// Nothing will wake a future, however far time moves.
pub(super) fn no_wake_up() -> Stuck {
    Stuck("nothing will ever happen to what the test waits for, however far time moves".to_owned())
}

fn tell_executing(why: &mut String, steps: &[Arc<Execution>]) {
    let steps: Vec<_> = steps.iter().filter(|step| step.claim().is_some()).cloned().collect();
    if !steps.is_empty() {
        let are = if steps.len() == 1 { "is" } else { "are" };
        let _ = write!(why, "; {} {are} being executed", names(&steps));
    }
}

/// How many are named in one message.
const NAMES_MAX: usize = 3;

fn names(steps: &[Arc<Execution>]) -> String {
    let named: Vec<&str> = steps.iter().take(NAMES_MAX).map(|step| &*step.name).collect();
    let n_more = steps.len().saturating_sub(NAMES_MAX);
    let more = if n_more > 0 { format!(" and {n_more} more") } else { String::new() };
    format!("{}{more}", named.join(", "))
}

/// A span as people say it, as in `1 day 2 h`.
fn in_words(span: Duration) -> String {
    let (secs, millis) = (span.as_secs(), span.subsec_millis());
    let days = secs / 86_400;
    let parts = [
        (days, if days == 1 { "day" } else { "days" }),
        (secs / 3_600 % 24, "h"),
        (secs / 60 % 60, "min"),
        (secs % 60, "s"),
        (millis.into(), "ms"),
    ];
    let words: Vec<String> =
        parts.iter().filter(|(n, _)| *n > 0).map(|(n, unit)| format!("{n} {unit}")).collect();
    if words.is_empty() { "less than 1 ms".to_owned() } else { words.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_told_in_words() {
        let told = |millis| in_words(Duration::from_millis(millis));
        assert_eq!(told(86_400_000), "1 day");
        assert_eq!(told(3_600_000), "1 h");
        assert_eq!(told(2 * 86_400_000 + 61_001), "2 days 1 min 1 s 1 ms");
        assert_eq!(told(0), "less than 1 ms");
    }
}
