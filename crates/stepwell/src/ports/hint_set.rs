//! What a commit has earned: hints, with the names of those concerned.

use std::collections::BTreeSet;

use stepwell_core::id::{RunKey, WorkerId};
use stepwell_core::run::{AttemptRow, AttemptState, Changes};

use super::Hint;

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
    Named(Vec<RunKey>),
    /// Any: there were too many to name, or nobody knows.
    Any,
}

impl Default for EndedRuns {
    fn default() -> Self {
        Self::Named(Vec::new())
    }
}

impl EndedRuns {
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
    pub(crate) fn earned_by(run: RunKey, changes: &Changes) -> Self {
        // A claim that its own worker ended is no news to it.
        let is_taken = |attempt: &&AttemptRow| {
            matches!(attempt.state, AttemptState::Cancelled | AttemptState::Lost)
        };
        let taken = changes.attempts.iter().filter(is_taken);
        let mut earned = Self::default();
        earned.add_if(Hint::Timers, !changes.timers.is_empty());
        if changes.run_ended {
            earned.add_ended(run);
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
    pub(crate) fn add_ended(&mut self, run: RunKey) {
        self.kinds |= 1 << Hint::Ended as u8;
        self.ended.add_all(EndedRuns::Named(vec![run]));
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
