//! The logs of all runs, printed as they grow, until the last run has ended.
//!
//! Numbered events are never rewritten and have no gaps, so following a log is reading on from
//! the last number seen.

use std::io;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use stepwell::cli::{EventRecord, Output, Tone, words};
use stepwell::{EventKind, Run, RunEvent, Timestamp};

use super::Failure;
use super::orders::Incoming;
use super::workflow::Done;

/// How often the logs are looked at. Often enough to look immediate.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
const SPIN_INTERVAL: Duration = Duration::from_millis(100);

/// A run with its order, and how much of its log was printed.
pub(super) struct FollowedRun {
    pub(super) incoming: Incoming,
    pub(super) run: Run<Option<Done>>,
    last_number: u64,
    n_asleep: usize,
    has_ended: bool,
}

/// An event as JSON, with the run it belongs to.
#[derive(Serialize)]
struct FollowedEventRecord<'event> {
    record: &'static str,
    run: &'event str,
    tenant: &'event str,
    #[serde(flatten)]
    event: EventRecord<'event>,
    detail: String,
}

impl<'event> FollowedEventRecord<'event> {
    fn new<O>(run: &'event Run<O>, event: &'event RunEvent) -> Self {
        Self {
            record: "event",
            run: run.id(),
            tenant: run.tenant(),
            event: EventRecord::new(event),
            detail: words::detail(event),
        }
    }
}

impl FollowedRun {
    pub(super) fn new(incoming: Incoming, run: Run<Option<Done>>) -> Self {
        Self { incoming, run, last_number: 0, n_asleep: 0, has_ended: false }
    }

    /// The events since the last look.
    async fn new_events(&mut self) -> Result<Vec<RunEvent>, stepwell::Error> {
        let mut events = self.run.events().await?;
        events.retain(|event| event.number.is_some_and(|number| number > self.last_number));
        for event in &events {
            match event.kind {
                EventKind::Sleeping { .. } => self.n_asleep += 1,
                EventKind::Woken { .. } => self.n_asleep = self.n_asleep.saturating_sub(1),
                EventKind::RunEnded { .. } => self.has_ended = true,
                _ => {}
            }
            self.last_number = event.number.unwrap_or(self.last_number);
        }
        Ok(events)
    }
}

/// Prints the events of all runs until the last one has ended.
pub(super) async fn print(runs: &mut [FollowedRun], output: Output) -> Result<(), Failure> {
    let mut printer = LivePrinter { output, bar: bar(runs.len(), output), began_at: None };
    loop {
        let mut events = Vec::new();
        for (ix, followed) in runs.iter_mut().enumerate().filter(|(_, run)| !run.has_ended) {
            events.extend(followed.new_events().await?.into_iter().map(|event| (ix, event)));
        }
        // A stable sort: events of one run stay in the order of their numbers.
        events.sort_by_key(|(_, event)| event.at);
        printer.print(runs, &events)?;
        if runs.iter().all(|followed| followed.has_ended) {
            printer.bar.finish_and_clear();
            return Ok(());
        }
        pause().await;
    }
}

#[expect(clippy::disallowed_methods, reason = "the binary's own pause, outside of any engine")]
async fn pause() {
    tokio::time::sleep(LOOK_INTERVAL).await;
}

/// A bar for people who watch; others get the lines only.
fn bar(n_runs: usize, output: Output) -> ProgressBar {
    if !output.is_watched() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} {bar:24} {pos} of {len} ended{msg}")
        .expect("the template is well formed")
        .progress_chars("━━─");
    let bar = ProgressBar::new(n_runs as u64).with_style(style);
    bar.enable_steady_tick(SPIN_INTERVAL);
    bar
}

/// Prints new events above the bar.
struct LivePrinter {
    output: Output,
    bar: ProgressBar,
    began_at: Option<Timestamp>,
}

/// One line: an event, or several of one kind that happened to a run at once.
struct Line<'event> {
    run: usize,
    event: &'event RunEvent,
    steps: Vec<&'event str>,
}

impl LivePrinter {
    fn print(&mut self, runs: &[FollowedRun], events: &[(usize, RunEvent)]) -> io::Result<()> {
        if let Some((_, first)) = events.first() {
            let began_at = *self.began_at.get_or_insert(first.at);
            self.bar.suspend(|| self.write(runs, events, began_at))?;
        }
        let n_ended = runs.iter().filter(|followed| followed.has_ended).count();
        let n_asleep: usize = runs.iter().map(|followed| followed.n_asleep).sum();
        self.bar.set_position(n_ended as u64);
        self.bar.set_message(match n_asleep {
            0 => String::new(),
            n => format!(", {n} asleep in the fraud window"),
        });
        Ok(())
    }

    fn write(
        &self,
        runs: &[FollowedRun],
        events: &[(usize, RunEvent)],
        began_at: Timestamp,
    ) -> io::Result<()> {
        if self.output.is_json() {
            let record = |(run, event): &(usize, RunEvent)| {
                self.output.record(&FollowedEventRecord::new(&runs[*run].run, event))
            };
            return events.iter().try_for_each(record);
        }
        for line in lines(events) {
            self.write_line(&runs[line.run].run, &line, began_at)?;
        }
        Ok(())
    }

    fn write_line(
        &self,
        run: &Run<Option<Done>>,
        line: &Line<'_>,
        began_at: Timestamp,
    ) -> io::Result<()> {
        let (output, event) = (self.output, line.event);
        let at = output.paint(Tone::Faint, &format!("{:>8}", words::elapsed(began_at, event.at)));
        let (id, tenant) = (run.id(), run.tenant());
        let word = event.kind.name().trim_start_matches("RUN_").to_lowercase();
        let word = output.paint(words::tone(&event.kind), &format!("{word:<9}"));
        let detail = words::detail(event);
        let what = match (line.steps.is_empty(), detail.is_empty()) {
            (true, _) => detail,
            (false, true) => line.steps.join(", "),
            (false, false) => format!("{}: {detail}", line.steps.join(", ")),
        };
        output.line(&format!("{at}  {id:<10}  {tenant:<8}  {word}  {what}"))
    }
}

/// What is worth a line. Skipped steps of one run come together, and so do cancelled ones.
fn lines(events: &[(usize, RunEvent)]) -> Vec<Line<'_>> {
    let mut lines: Vec<Line<'_>> = Vec::new();
    for (run, event) in events {
        let is_quiet = matches!(event.kind, EventKind::Queued | EventKind::Started { .. });
        let joins = matches!(event.kind, EventKind::Skipped | EventKind::Cancelled);
        let known = lines.iter_mut().find(|line| line.run == *run && line.event.kind == event.kind);
        match known {
            _ if is_quiet => {}
            Some(line) if joins => line.steps.extend(event.step.as_deref()),
            _ => {
                let steps = event.step.as_deref().into_iter().collect();
                lines.push(Line { run: *run, event, steps });
            }
        }
    }
    lines
}
