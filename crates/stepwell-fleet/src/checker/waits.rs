//! Waits: each was ended by its signal or by its time-out, and by the right one of them.

use std::collections::BTreeSet;

use stepwell::core::id::Node;
use stepwell::core::run::{Event, EventKind, SignalRow};
use stepwell::core::time::Timestamp;

use super::{CheckedRun, Evidence};
use crate::expected::TimedOut;
use crate::plan::{Plan, StepPlan};

/// S14: every signal that was accepted is stored, once.
pub(super) fn lost_signals(evidence: &Evidence) -> Vec<String> {
    let mut stored: BTreeSet<(&str, &str)> = BTreeSet::new();
    for (key, signals) in &evidence.dump.signals {
        let Some(log) = evidence.dump.runs.get(key) else { continue };
        stored.extend(signals.iter().map(|signal| (log.run.id.as_str(), signal.key.as_str())));
    }
    let is_lost =
        |(run, name): &&(String, String)| !stored.contains(&(run.as_str(), name.as_str()));
    let lost = evidence.asked.signals.iter().filter(is_lost);
    lost.map(|(run, name)| format!("signal {name} to run {run} was accepted and is lost")).collect()
}

/// The places of the steps whose wait timed out, as the log of their run tells.
pub(super) fn timed_out<'a>(
    plan: &Plan,
    events: &[Event],
    name: impl Fn(Node) -> &'a str,
) -> TimedOut {
    let is_timed_out = |event: &&Event| matches!(event.kind, EventKind::TimedOut { .. });
    let nodes = events.iter().filter(is_timed_out).filter_map(|event| event.node);
    let names: BTreeSet<&str> = nodes.map(name).collect();
    let waiters = plan.steps.iter().enumerate();
    let waiters = waiters.filter_map(|(place, step)| Some((place, step.waiter(place)?)));
    waiters.filter(|(_, waiter)| names.contains(waiter.as_str())).map(|(place, _)| place).collect()
}

pub(super) fn check(run: &CheckedRun<'_>) -> Vec<String> {
    let mut findings = Vec::new();
    for (place, step) in run.plan.steps.iter().enumerate() {
        let Some(waiter) = step.waiter(place) else { continue };
        let is_of = |node: Node| run.stored.definition.name(node) == waiter;
        let of_waiter = run.events.iter().filter(|event| event.node.is_some_and(is_of));
        let events: Vec<&Event> = of_waiter.collect();
        let of_wait = wait_wrong(&events, &StepPlan::signal_name(place), run.signals);
        findings.extend(of_wait.into_iter().map(|finding| format!("wait of {waiter}: {finding}")));
    }
    findings
}

/// One wait: until when it was open, and how it ended.
#[derive(Default)]
struct Told<'a> {
    n_opened: usize,
    opened_at: Timestamp,
    until: Option<Timestamp>,
    ends: Vec<&'a Event>,
}

impl<'a> Told<'a> {
    fn by(events: &[&'a Event]) -> Self {
        let mut told = Self::default();
        for event in events {
            match &event.kind {
                EventKind::Waiting { until, .. } => {
                    told.n_opened += 1;
                    (told.opened_at, told.until) = (event.at, *until);
                }
                EventKind::Signalled { .. } | EventKind::TimedOut { .. } => told.ends.push(event),
                _ => {}
            }
        }
        told
    }

    /// Whether a signal came before the wait opened, or while it was open.
    fn is_in_time(&self, signal: &SignalRow) -> bool {
        signal.sent_at <= self.opened_at || self.until.is_none_or(|until| signal.sent_at < until)
    }
}

fn wait_wrong(events: &[&Event], name: &str, signals: &[SignalRow]) -> Vec<String> {
    let mut findings = Vec::new();
    let told = Told::by(events);
    let named: Vec<&SignalRow> = signals.iter().filter(|signal| signal.name == name).collect();
    if told.n_opened > 1 || told.ends.len() > told.n_opened || named.len() > 1 {
        let (n_opened, n_ends, n_signals) = (told.n_opened, told.ends.len(), named.len());
        findings
            .push(format!("opened {n_opened} times, ended {n_ends} times, {n_signals} signals"));
    }
    let signal = named.first().copied();
    for end in &told.ends {
        match &end.kind {
            EventKind::Signalled { number, .. } => {
                let given = signal.filter(|s| s.number == *number && s.consumed_by == end.node);
                if !given.is_some_and(|signal| told.is_in_time(signal)) {
                    findings.push(format!("it got {number}, which is {signal:?}"));
                }
            }
            _ if told.until.is_none_or(|until| end.at < until) => {
                findings.push(format!("it timed out at {:?}, not {:?}", end.at, told.until));
            }
            _ => {
                let missed = signal.filter(|signal| told.is_in_time(signal));
                findings.extend(missed.map(|signal| format!("it timed out before {signal:?}")));
            }
        }
    }
    findings
}
