//! Wake-ups between the parts of an engine, and between engines that share a store.
//!
//! A hint says "look again", never what there is to see; only that of ended runs may name them, so
//! that those who wait for others need not look. Receivers remember the last count they saw, so a
//! hint given between looking and waiting is not lost.

use std::sync::{Arc, Mutex, MutexGuard};

use stepwell_core::id::RunKey;
use stepwell_core::run::{AttemptRow, AttemptState, Changes};
use tokio::sync::watch;

/// What a hint is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hint {
    /// Tasks became ready.
    Ready,
    /// A timer was set.
    Timers,
    /// A run ended.
    Ended,
    /// Claims were taken from their worker, as by a cancelled run.
    Claims,
    /// A signal came for a function that is running.
    Received,
}

impl Hint {
    /// All of them, for whoever knows only that there is something to see.
    pub const ALL: [Self; N_HINTS] =
        [Self::Ready, Self::Timers, Self::Ended, Self::Claims, Self::Received];
}

const N_HINTS: usize = 5;

/// Some hints, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HintSet {
    kinds: u8,
    ended: EndedRuns,
}

impl HintSet {
    /// All of them, for whoever knows only that there is something to see.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(crate) const ALL: Self = Self { kinds: (1 << N_HINTS) - 1, ended: EndedRuns::Any };

    /// What a written decision earns besides [`Hint::Ready`], which only the queues can tell:
    /// those who wait for timers, for the end of the run, and workers whose claims were taken or
    /// whose functions get signals.
    pub(crate) fn earned_by(run: RunKey, changes: &Changes) -> Self {
        // A claim that its own worker ended is no news to it.
        let is_taken = |attempt: &AttemptRow| {
            matches!(attempt.state, AttemptState::Cancelled | AttemptState::Lost)
        };
        let mut earned = Self::default();
        earned.add_if(Hint::Timers, !changes.timers.is_empty());
        if changes.run_ended {
            earned.kinds |= 1 << Hint::Ended as u8;
            earned.ended = EndedRuns::Named(vec![run]);
        }
        earned.add_if(Hint::Claims, changes.attempts.iter().any(is_taken));
        let tells = changes.extras.as_ref().is_some_and(|extras| extras.tells_listeners);
        earned.add_if(Hint::Received, tells);
        earned
    }

    pub(crate) fn add(&mut self, hint: Hint) {
        self.kinds |= 1 << hint as u8;
        if hint == Hint::Ended {
            self.ended = EndedRuns::Any;
        }
    }

    pub(crate) fn add_if(&mut self, hint: Hint, is_earned: bool) {
        if is_earned {
            self.add(hint);
        }
    }

    pub(crate) fn add_all(&mut self, others: Self) {
        self.kinds |= others.kinds;
        self.ended.add_all(others.ended);
    }

    /// The runs that ended.
    #[cfg(feature = "postgres")]
    pub(crate) fn ended(&self) -> &EndedRuns {
        &self.ended
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

/// Most ended runs that are remembered for receivers which have not looked yet.
const ENDED_MAX: usize = 10_000;

/// The runs that ended last. Receivers remember how many they have seen.
#[derive(Debug, Default)]
struct EndedLog {
    /// How many came before those that are remembered. Hints that named nobody count as one.
    n_before: u64,
    runs: Vec<RunKey>,
}

impl EndedLog {
    fn n_given(&self) -> u64 {
        self.n_before + self.runs.len() as u64
    }

    fn add(&mut self, ended: &EndedRuns) {
        match ended {
            EndedRuns::Named(runs) if self.runs.len() + runs.len() <= ENDED_MAX => {
                self.runs.extend(runs);
            }
            _ => {
                self.n_before = self.n_given() + 1;
                self.runs.clear();
            }
        }
    }

    /// What came after the first `n_seen`.
    fn since(&self, n_seen: u64) -> EndedRuns {
        let n_known = n_seen.checked_sub(self.n_before).and_then(|n| usize::try_from(n).ok());
        let unseen = n_known.and_then(|n| self.runs.get(n..));
        unseen.map_or(EndedRuns::Any, |runs| EndedRuns::Named(runs.to_vec()))
    }
}

/// The giving side; cheap to clone.
#[derive(Clone, Debug)]
pub struct HintSender {
    counts: Arc<[watch::Sender<u64>; N_HINTS]>,
    ended: Arc<Mutex<EndedLog>>,
}

/// The receiving side. Clones remember what they have seen independently.
#[derive(Clone, Debug)]
pub struct Hints {
    counts: [watch::Receiver<u64>; N_HINTS],
    ended: Arc<Mutex<EndedLog>>,
    n_ended_seen: u64,
}

fn lock(ended: &Mutex<EndedLog>) -> MutexGuard<'_, EndedLog> {
    ended.lock().expect("no holder of the lock panics")
}

impl Default for HintSender {
    fn default() -> Self {
        let counts = Arc::new(std::array::from_fn(|_| watch::channel(0).0));
        Self { counts, ended: Arc::default() }
    }
}

impl HintSender {
    /// Wakes everybody who waits for this.
    pub fn give(&self, hint: Hint) {
        if hint == Hint::Ended {
            return self.give_ended(&EndedRuns::Any);
        }
        self.count(hint);
    }

    /// Wakes everybody who waits for runs to end.
    pub fn give_ended(&self, ended: &EndedRuns) {
        // Written down before anybody is woken to read it.
        lock(&self.ended).add(ended);
        self.count(Hint::Ended);
    }

    fn count(&self, hint: Hint) {
        self.counts[hint as usize].send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Wakes everybody who waits for one of these.
    pub(crate) fn give_all(&self, hints: &HintSet) {
        for hint in hints.iter() {
            match hint {
                Hint::Ended => self.give_ended(&hints.ended),
                hint => self.give(hint),
            }
        }
    }

    /// A receiver that has seen everything given so far.
    #[must_use]
    pub fn subscribe(&self) -> Hints {
        let n_ended_seen = lock(&self.ended).n_given();
        let counts = std::array::from_fn(|ix| self.counts[ix].subscribe());
        Hints { counts, ended: Arc::clone(&self.ended), n_ended_seen }
    }
}

impl Hints {
    /// Marks everything given so far as seen. Call it before looking.
    pub fn look(&mut self, hint: Hint) {
        self.counts[hint as usize].mark_unchanged();
        if hint == Hint::Ended {
            self.n_ended_seen = lock(&self.ended).n_given();
        }
    }

    /// As [`look`](Self::look) for [`Hint::Ended`], and gives the runs that ended since the last
    /// look.
    pub fn look_at_ended(&mut self) -> EndedRuns {
        self.counts[Hint::Ended as usize].mark_unchanged();
        let log = lock(&self.ended);
        let ended = log.since(self.n_ended_seen);
        self.n_ended_seen = log.n_given();
        ended
    }

    /// Waits for a hint given since the last look. Never completes once no store is left that
    /// could give one; the poll beside it goes on.
    pub async fn given(&mut self, hint: Hint) {
        if self.counts[hint as usize].changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(runs: impl IntoIterator<Item = u128>) -> EndedRuns {
        EndedRuns::Named(runs.into_iter().map(RunKey).collect())
    }

    #[test]
    fn ended_runs_are_named_to_every_receiver_once() {
        let sender = HintSender::default();
        sender.give_ended(&named([1]));
        let mut first = sender.subscribe();
        assert_eq!(first.look_at_ended(), named([]), "that was before");
        sender.give_ended(&named([2, 3]));
        let mut second = first.clone();
        sender.give_ended(&named([4]));
        for hints in [&mut first, &mut second] {
            assert_eq!(hints.look_at_ended(), named([2, 3, 4]));
            assert_eq!(hints.look_at_ended(), named([]));
        }
    }

    #[test]
    fn who_misses_too_many_or_hears_no_names_looks_at_all() {
        let sender = HintSender::default();
        let mut hints = sender.subscribe();
        sender.give(Hint::Ended);
        sender.give_ended(&named([1]));
        assert_eq!(hints.look_at_ended(), EndedRuns::Any);
        sender.give_ended(&named([2]));
        assert_eq!(hints.look_at_ended(), named([2]), "and names are heard again");
        sender.give_ended(&named(0..10_000));
        assert_eq!(hints.look_at_ended(), EndedRuns::Any);
        let mut set = HintSet::default();
        set.add_all(HintSet { kinds: 1 << Hint::Ended as u8, ended: named([5]) });
        sender.give_all(&set);
        assert_eq!(hints.look_at_ended(), named([5]));
    }
}
