//! What the user is told of an onboarding, as it happens; and the crash that they asked for.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::process::abort;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use stepwell::RunStatus;
use stepwell::cli::words::printable;
use stepwell::cli::{Output, StoreAddress, Tone};

use super::function::Welcome;
use crate::args::OnboardingStep;

const SPIN_INTERVAL: Duration = Duration::from_millis(100);

/// Tells how one run goes on. What other runs do that this process carries on is not told.
#[derive(Clone)]
pub(super) struct Progress {
    tenant: &'static str,
    run: Arc<str>,
    crash_after: Option<OnboardingStep>,
    output: Output,
    bar: ProgressBar,
    told: Arc<Mutex<Told>>,
}

/// What was told so far.
#[derive(Default)]
struct Told {
    steps: BTreeMap<OnboardingStep, StepState>,
    /// The first line that could not be written.
    error: Option<io::Error>,
}

/// What of a step happened, as seen by this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum StepState {
    Started,
    Done,
    DoneBefore,
}

/// A step as JSON.
#[derive(Serialize)]
struct StepRecord<'run> {
    record: &'static str,
    tenant: &'static str,
    run: &'run str,
    step: &'static str,
    state: StepState,
    /// What the step gave, once it is done.
    gave: Option<&'run str>,
}

/// The crash that was asked for, as JSON.
#[derive(Serialize)]
struct CrashRecord<'run> {
    record: &'static str,
    tenant: &'static str,
    run: &'run str,
    after: &'static str,
}

/// The end as JSON.
#[derive(Serialize)]
struct OnboardingRecord<'run> {
    record: &'static str,
    tenant: &'static str,
    run: &'run str,
    status: RunStatus,
    /// Steps that this call has done, and those that were done before.
    n_done: usize,
    n_done_before: usize,
    welcome: &'run Welcome,
}

impl Progress {
    pub(super) fn new(
        tenant: &'static str,
        run: &str,
        crash_after: Option<OnboardingStep>,
        output: Output,
    ) -> Self {
        let (bar, told) = (bar(output), Arc::default());
        Self { tenant, run: run.into(), crash_after, output, bar, told }
    }

    /// Says what begins.
    pub(super) fn begin(&self, store: StoreAddress<'_>) -> io::Result<()> {
        if self.output.is_json() {
            return Ok(());
        }
        let title = format!("Onboarding {}", printable(&self.run));
        let title = self.output.paint(Tone::Strong, &title);
        let place = match store {
            StoreAddress::Postgres(_) => "PostgreSQL".to_owned(),
            StoreAddress::Sqlite(path) => path.display().to_string(),
        };
        self.bar.suspend(|| self.output.line(&format!("{title}, state in {place}")))
    }

    /// The code of a step is being executed.
    pub(super) fn started(&self, run: &str, step: OnboardingStep) {
        if run == &*self.run {
            self.tell(step, StepState::Started, None);
        }
    }

    /// What a step gave is recorded: just now, or before this process was there.
    pub(super) fn recorded(&self, run: &str, step: OnboardingStep, gave: &str) {
        if run != &*self.run {
            return;
        }
        match self.state(step) {
            None => self.tell(step, StepState::DoneBefore, Some(gave)),
            Some(StepState::Started) => {
                self.tell(step, StepState::Done, Some(gave));
                if self.crash_after == Some(step) {
                    self.crash(step);
                }
            }
            // The function has been executed twice in this process, as after a lost claim.
            Some(StepState::Done | StepState::DoneBefore) => {}
        }
    }

    /// Says how it ended. What the function did not tell was done before, or by another process.
    pub(super) fn end(&self, welcome: Welcome, was_over: bool) -> io::Result<()> {
        let given = [&welcome.record, &welcome.laptop, &welcome.access, &welcome.mail];
        for (step, gave) in OnboardingStep::ALL.into_iter().zip(given) {
            if !matches!(self.state(step), Some(StepState::Done | StepState::DoneBefore)) {
                self.tell(step, StepState::DoneBefore, Some(gave));
            }
        }
        self.bar.finish_and_clear();
        let count = |state| self.told().steps.values().filter(|told| **told == state).count();
        let (n_done, n_before) = (count(StepState::Done), count(StepState::DoneBefore));
        if let Some(error) = self.told().error.take() {
            return Err(error);
        }
        let (tenant, run) = (self.tenant, &*self.run);
        if self.output.is_json() {
            return self.output.record(&OnboardingRecord {
                record: "onboarding",
                tenant,
                run,
                status: RunStatus::Completed,
                n_done,
                n_done_before: n_before,
                welcome: &welcome,
            });
        }
        let run = printable(run);
        let says = match (was_over, n_before) {
            (true, _) => format!("{run} was onboarded before; nothing was left to do"),
            (false, 0) => format!("{run} is onboarded"),
            (false, n) => format!("{run} is onboarded; done before: {n} of {} steps", n + n_done),
        };
        self.output.line(&self.output.paint(Tone::Good, &says))
    }

    fn tell(&self, step: OnboardingStep, state: StepState, gave: Option<&str>) {
        let written = {
            let mut told = self.told();
            told.steps.insert(step, state);
            self.bar.set_message(doing(&told.steps));
            self.bar.suspend(|| self.write(step, state, gave))
        };
        if let Err(error) = written {
            self.told().error.get_or_insert(error);
        }
    }

    fn write(&self, step: OnboardingStep, state: StepState, gave: Option<&str>) -> io::Result<()> {
        let output = self.output;
        if output.is_json() {
            let (tenant, run, step) = (self.tenant, &*self.run, step.name());
            return output.record(&StepRecord { record: "step", tenant, run, step, state, gave });
        }
        let (mark, tone) = match state {
            StepState::Started => return Ok(()),
            StepState::Done => ("done", Tone::Good),
            StepState::DoneBefore => ("done before", Tone::Faint),
        };
        let mark = output.paint(tone, &format!("{mark:<11}"));
        let gave = printable(gave.unwrap_or_default());
        output.line(&format!("  {:<13}  {mark}  {gave}", step.name()))
    }

    /// Ends the process as a crash would: nothing is unwound, drained, handed back or closed.
    fn crash(&self, step: OnboardingStep) -> ! {
        self.bar.finish_and_clear();
        let (tenant, run, after) = (self.tenant, &*self.run, step.name());
        // There is nobody left to tell when the outputs are closed.
        let _ = if self.output.is_json() {
            self.output.record(&CrashRecord { record: "crash", tenant, run, after })
        } else {
            let says = format!("The process dies now, after {after}. The next call goes on there.");
            writeln!(io::stderr().lock(), "{says}")
        };
        abort()
    }

    fn state(&self, step: OnboardingStep) -> Option<StepState> {
        self.told().steps.get(&step).copied()
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().expect("no holder of the lock panics")
    }
}

/// A bar for people who watch; others get the lines only.
fn bar(output: Output) -> ProgressBar {
    if !output.is_watched() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} {msg}");
    let bar = ProgressBar::new_spinner().with_style(style.expect("the template is well formed"));
    bar.enable_steady_tick(SPIN_INTERVAL);
    bar
}

/// How far it has come, in words.
fn doing(steps: &BTreeMap<OnboardingStep, StepState>) -> String {
    let is_started = |state: &StepState| *state == StepState::Started;
    let started = steps.iter().filter(|(_, state)| is_started(state)).map(|(step, _)| step.name());
    let n_done = steps.values().filter(|state| !is_started(state)).count();
    let doing = started.collect::<Vec<_>>().join(", ");
    format!("{n_done} of {} steps done {doing}", OnboardingStep::ALL.len())
}
