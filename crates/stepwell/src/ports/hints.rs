//! Wake-ups between the parts of an engine, and between engines that share a store.
//!
//! A hint says "look again", never what there is to see; only those of ended runs and of taken
//! claims may name whom they concern, so that others need not look. Receivers remember the last
//! count they saw, so a hint given between looking and waiting is not lost.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use stepwell_core::id::WorkerId;
use tokio::sync::watch;

use super::hint_set::{EndedRun, EndedRuns, HintSet, TakenFrom};

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

/// The giving side; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct HintSender(Arc<Given>);

/// What was given so far.
#[derive(Debug)]
struct Given {
    counts: [watch::Sender<u64>; N_HINTS],
    ended: Mutex<EndedLog>,
    taken: Mutex<Taken>,
}

/// Most ended runs that are remembered for receivers which have not looked yet.
const ENDED_MAX: usize = 10_000;

/// Most bytes of outputs that are remembered with them. Beyond that they are read from the store.
const OUTPUT_BYTES_MAX: usize = 16 << 20;

/// The runs that ended last. Receivers remember how many they have seen.
#[derive(Debug, Default)]
struct EndedLog {
    /// How many came before those that are remembered. Hints that named nobody count as one.
    n_before: u64,
    runs: Vec<EndedRun>,
    output_bytes: usize,
}

impl EndedLog {
    fn n_given(&self) -> u64 {
        self.n_before + self.runs.len() as u64
    }

    fn add(&mut self, ended: &EndedRuns) {
        match ended {
            EndedRuns::Named(runs) if self.runs.len() + runs.len() <= ENDED_MAX => {
                let ends = runs.iter().filter_map(|ended| ended.end.as_ref());
                let bytes: usize = ends.map(|end| end.payload_bytes()).sum();
                if self.output_bytes + bytes > OUTPUT_BYTES_MAX {
                    self.forget_ends();
                }
                self.output_bytes += bytes;
                self.runs.extend_from_slice(runs);
            }
            _ => {
                self.n_before = self.n_given() + 1;
                self.runs.clear();
                self.output_bytes = 0;
            }
        }
    }

    /// Keeps the names of runs only.
    fn forget_ends(&mut self) {
        self.runs.iter_mut().for_each(|ended| ended.end = None);
        self.output_bytes = 0;
    }

    /// What came after the first `n_seen`.
    fn since(&self, n_seen: u64) -> EndedRuns {
        let n_known = n_seen.checked_sub(self.n_before).and_then(|n| usize::try_from(n).ok());
        let unseen = n_known.and_then(|n| self.runs.get(n..));
        unseen.map_or(EndedRuns::Any, |runs| EndedRuns::Named(runs.to_vec()))
    }
}

/// Up to which count of [`Hint::Claims`] claims were taken.
#[derive(Debug, Default)]
struct Taken {
    from: BTreeMap<WorkerId, u64>,
    from_anybody: u64,
}

/// Most workers that are remembered. With more, everybody looks.
const TAKEN_MAX: usize = 1_000;

/// The receiving side. Clones remember what they have seen independently.
#[derive(Clone, Debug)]
pub struct Hints {
    given: Arc<Given>,
    counts: [watch::Receiver<u64>; N_HINTS],
    n_ended_seen: u64,
    /// The count of [`Hint::Claims`] at the last look.
    claims_seen: u64,
}

impl HintSender {
    /// Wakes everybody who waits for this.
    pub fn give(&self, hint: Hint) {
        match hint {
            Hint::Ended => self.give_ended(&EndedRuns::Any),
            Hint::Claims => self.give_taken(&TakenFrom::Anybody),
            Hint::Ready | Hint::Timers | Hint::Received => self.0.count(hint),
        }
    }

    /// Wakes everybody who waits for one of these.
    pub(crate) fn give_all(&self, hints: &HintSet) {
        for hint in hints.iter() {
            match hint {
                Hint::Ended => self.give_ended(hints.ended()),
                Hint::Claims => self.give_taken(hints.taken_from()),
                Hint::Ready | Hint::Timers | Hint::Received => self.0.count(hint),
            }
        }
    }

    /// Wakes everybody who waits for runs to end.
    pub fn give_ended(&self, ended: &EndedRuns) {
        // Written down before anybody is woken to read it.
        self.0.ended().add(ended);
        self.0.count(Hint::Ended);
    }

    /// Wakes the workers whose claims were taken.
    pub(crate) fn give_taken(&self, taken_from: &TakenFrom) {
        let mut taken = self.0.taken();
        // Counted below, while nobody else counts.
        let count = *self.0.counts[Hint::Claims as usize].borrow() + 1;
        match taken_from {
            TakenFrom::These(workers) if taken.from.len() + workers.len() <= TAKEN_MAX => {
                taken.from.extend(workers.iter().map(|worker| (worker.clone(), count)));
            }
            _ => *taken = Taken { from: BTreeMap::new(), from_anybody: count },
        }
        self.0.count(Hint::Claims);
    }

    /// A receiver that has seen everything given so far.
    #[must_use]
    pub fn subscribe(&self) -> Hints {
        let counts = std::array::from_fn(|ix| self.0.counts[ix].subscribe());
        let given = Arc::clone(&self.0);
        let mut hints = Hints { given, counts, n_ended_seen: 0, claims_seen: 0 };
        hints.look(Hint::Ended);
        hints.look(Hint::Claims);
        hints
    }
}

impl Default for Given {
    fn default() -> Self {
        let counts = std::array::from_fn(|_| watch::channel(0).0);
        Self { counts, ended: Mutex::default(), taken: Mutex::default() }
    }
}

impl Given {
    fn count(&self, hint: Hint) {
        self.counts[hint as usize].send_modify(|count| *count += 1);
    }

    /// Up to which count claims of this worker were taken.
    fn taken_up_to(&self, worker: &WorkerId) -> u64 {
        let taken = self.taken();
        taken.from.get(worker).copied().unwrap_or(0).max(taken.from_anybody)
    }

    fn ended(&self) -> MutexGuard<'_, EndedLog> {
        self.ended.lock().expect("no holder of the lock panics")
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().expect("no holder of the lock panics")
    }
}

impl Hints {
    /// Marks everything given so far as seen. Call it before looking.
    pub fn look(&mut self, hint: Hint) {
        self.counts[hint as usize].mark_unchanged();
        match hint {
            Hint::Ended => self.n_ended_seen = self.given.ended().n_given(),
            Hint::Claims => self.claims_seen = *self.counts[hint as usize].borrow(),
            Hint::Ready | Hint::Timers | Hint::Received => {}
        }
    }

    /// As [`look`](Self::look) for [`Hint::Ended`], and gives the runs that ended since the last
    /// look.
    pub fn look_at_ended(&mut self) -> EndedRuns {
        self.counts[Hint::Ended as usize].mark_unchanged();
        let log = self.given.ended();
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

    /// Waits until claims of this worker were taken since the last look, or of somebody who may
    /// be this worker. Never completes once no store is left, as [`given`](Self::given).
    pub async fn claims_taken_from(&mut self, worker: &WorkerId) {
        while self.given.taken_up_to(worker) <= self.claims_seen {
            self.given(Hint::Claims).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use stepwell_core::id::RunKey;

    use super::*;

    fn named(runs: impl IntoIterator<Item = u128>) -> EndedRuns {
        EndedRuns::Named(runs.into_iter().map(|run| RunKey(run).into()).collect())
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
        sender.give_ended(&named([5]));
        assert_eq!(hints.look_at_ended(), named([5]));
    }
}
