//! What a commit has earned: hints, with the names of those concerned.

use std::collections::BTreeSet;

use stepwell_core::id::{Node, RunKey, WorkerId};
use stepwell_core::run::{AttemptRow, AttemptState, Changes, RunRow};

use super::{EndOutput, Hint, Payload, RunEnd, TOLD_BYTES_MAX};

/// Some hints, each once, with the runs that ended and whose claims were taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HintSet {
    kinds: u8,
    ended: EndedRuns,
    taken_from: TakenFrom,
}

/// Runs of which a hint says that they ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndedRuns {
    /// These, and no others.
    Named(Vec<EndedRun>),
    /// Any: there were too many to name, or nobody knows.
    Any,
}

/// A run of which a hint says that it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedRun {
    /// Which run.
    pub run: RunKey,
    /// How it ended, if this process committed that: then nobody here need read it.
    pub end: Option<Box<RunEnd>>,
}

impl From<RunKey> for EndedRun {
    fn from(run: RunKey) -> Self {
        Self { run, end: None }
    }
}

impl Default for EndedRuns {
    fn default() -> Self {
        Self::Named(Vec::new())
    }
}

impl EndedRuns {
    /// The same runs, without how they ended.
    #[cfg(feature = "postgres")]
    pub(crate) fn names(&self) -> Self {
        match self {
            Self::Named(runs) => Self::Named(runs.iter().map(|ended| ended.run.into()).collect()),
            Self::Any => Self::Any,
        }
    }

    pub(crate) fn add_all(&mut self, others: Self) {
        match (&mut *self, others) {
            (Self::Named(runs), Self::Named(others)) => runs.extend(others),
            _ => *self = Self::Any,
        }
    }
}

/// Whose claims were taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TakenFrom {
    /// These workers'.
    These(BTreeSet<WorkerId>),
    /// It is not known whose.
    Anybody,
}

impl Default for TakenFrom {
    fn default() -> Self {
        Self::These(BTreeSet::new())
    }
}

impl TakenFrom {
    /// Those whose claims were taken, as far as they are known.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(crate) fn workers(&self) -> impl Iterator<Item = &WorkerId> {
        let workers = if let Self::These(workers) = self { Some(workers) } else { None };
        workers.into_iter().flatten()
    }

    pub(crate) fn add_all(&mut self, others: Self) {
        match (&mut *self, others) {
            (Self::These(workers), Self::These(others)) => workers.extend(others),
            _ => *self = Self::Anybody,
        }
    }
}

impl HintSet {
    /// All of them, for whoever knows only that there is something to see.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(crate) const ALL: Self = Self {
        kinds: (1 << Hint::ALL.len()) - 1,
        ended: EndedRuns::Any,
        taken_from: TakenFrom::Anybody,
    };

    /// All but that claims were taken; that is told to those concerned.
    #[cfg(feature = "sqlite")]
    pub(crate) fn all_and_taken_from(workers: BTreeSet<WorkerId>) -> Self {
        let mut hints = Self { taken_from: TakenFrom::default(), ..Self::ALL };
        hints.kinds &= !(1 << Hint::Claims as u8);
        hints.add_taken(workers);
        hints
    }

    /// What a written decision earns besides [`Hint::Ready`], which only the queues can tell:
    /// those who wait for timers, for the end of the run, and workers whose claims were taken or
    /// whose functions get signals.
    /// The run's output is what the step `output` left.
    pub(crate) fn earned_by(run: &RunRow, output: Option<Node>, changes: &Changes) -> Self {
        // A claim that its own worker ended is no news to it.
        let is_taken = |attempt: &&AttemptRow| {
            matches!(attempt.state, AttemptState::Cancelled | AttemptState::Lost)
        };
        let taken = changes.attempts.iter().filter(is_taken);
        let mut earned = Self::default();
        earned.add_if(Hint::Timers, !changes.timers.is_empty());
        if changes.run_ended {
            let end = Some(Box::new(RunEnd::of(run, output)));
            earned.add_ended(EndedRun { run: run.key, end });
        }
        earned.add_taken(taken.map(|attempt| attempt.claim.worker.clone()).collect());
        let tells = changes.extras.as_ref().is_some_and(|extras| extras.tells_listeners);
        earned.add_if(Hint::Received, tells);
        earned
    }

    /// Adds a hint that names nobody.
    pub(crate) fn add(&mut self, hint: Hint) {
        self.kinds |= 1 << hint as u8;
        match hint {
            Hint::Ended => self.ended = EndedRuns::Any,
            Hint::Claims => self.taken_from = TakenFrom::Anybody,
            Hint::Ready | Hint::Timers | Hint::Received => {}
        }
    }

    pub(crate) fn add_if(&mut self, hint: Hint, is_earned: bool) {
        if is_earned {
            self.add(hint);
        }
    }

    /// This run ended.
    fn add_ended(&mut self, ended: EndedRun) {
        self.kinds |= 1 << Hint::Ended as u8;
        self.ended.add_all(EndedRuns::Named(vec![ended]));
    }

    /// A step completed and left this. If its run ended by that and gives just this, whoever waits
    /// for the run need not read it. Runs are told of as they end, or their ends are in the order
    /// of their keys.
    pub(crate) fn add_output(&mut self, run: RunKey, node: Node, output: &Payload) {
        let EndedRuns::Named(runs) = &mut self.ended else { return };
        let is_last = runs.last().is_some_and(|ended| ended.run == run);
        let found = if is_last {
            runs.last_mut()
        } else {
            let ix = runs.binary_search_by_key(&run, |ended| ended.run);
            ix.ok().and_then(|ix| runs.get_mut(ix))
        };
        let Some(end) = found.and_then(|ended| ended.end.as_mut()) else { return };
        let is_asked = end.output_of == Some(node) && end.output == EndOutput::Stored;
        if is_asked && output.bytes.len() <= TOLD_BYTES_MAX {
            end.output = EndOutput::Known(Some(output.clone()));
        }
    }

    /// Claims of these workers were taken.
    pub(crate) fn add_taken(&mut self, workers: BTreeSet<WorkerId>) {
        if !workers.is_empty() {
            self.kinds |= 1 << Hint::Claims as u8;
            self.taken_from.add_all(TakenFrom::These(workers));
        }
    }

    pub(crate) fn add_all(&mut self, others: Self) {
        self.kinds |= others.kinds;
        self.ended.add_all(others.ended);
        self.taken_from.add_all(others.taken_from);
    }

    /// The runs that ended.
    pub(crate) fn ended(&self) -> &EndedRuns {
        &self.ended
    }

    /// Whose claims were taken.
    pub(crate) fn taken_from(&self) -> &TakenFrom {
        &self.taken_from
    }

    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(crate) const fn is_empty(&self) -> bool {
        self.kinds == 0
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Hint> {
        let kinds = self.kinds;
        Hint::ALL.into_iter().filter(move |hint| kinds & (1 << *hint as u8) != 0)
    }
}
