//! Wake-ups between the parts of an engine, and between engines that share a store.
//!
//! A hint says "look again", never what there is to see. Receivers remember the last count they
//! saw, so a hint given between looking and waiting is not lost.

use std::sync::Arc;

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HintSet(u8);

impl HintSet {
    /// All of them, for whoever knows only that there is something to see.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(crate) const ALL: Self = Self((1 << N_HINTS) - 1);

    /// What a written decision earns besides [`Hint::Ready`], which only the queues can tell:
    /// those who wait for timers, for the end of the run, and workers whose claims were taken or
    /// whose functions get signals.
    pub(crate) fn earned_by(changes: &Changes) -> Self {
        // A claim that its own worker ended is no news to it.
        let is_taken = |attempt: &AttemptRow| {
            matches!(attempt.state, AttemptState::Cancelled | AttemptState::Lost)
        };
        let mut earned = Self::default();
        earned.add_if(Hint::Timers, !changes.timers.is_empty());
        earned.add_if(Hint::Ended, changes.run_ended);
        earned.add_if(Hint::Claims, changes.attempts.iter().any(is_taken));
        let tells = changes.extras.as_ref().is_some_and(|extras| extras.tells_listeners);
        earned.add_if(Hint::Received, tells);
        earned
    }

    pub(crate) fn add(&mut self, hint: Hint) {
        self.0 |= 1 << hint as u8;
    }

    pub(crate) fn add_if(&mut self, hint: Hint, is_earned: bool) {
        if is_earned {
            self.add(hint);
        }
    }

    pub(crate) fn add_all(&mut self, others: Self) {
        self.0 |= others.0;
    }

    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = Hint> {
        Hint::ALL.into_iter().filter(move |hint| self.0 & (1 << *hint as u8) != 0)
    }
}

/// The giving side; cheap to clone.
#[derive(Clone, Debug)]
pub struct HintSender(Arc<[watch::Sender<u64>; N_HINTS]>);

/// The receiving side. Clones remember what they have seen independently.
#[derive(Clone, Debug)]
pub struct Hints([watch::Receiver<u64>; N_HINTS]);

impl Default for HintSender {
    fn default() -> Self {
        Self(Arc::new(std::array::from_fn(|_| watch::channel(0).0)))
    }
}

impl HintSender {
    /// Wakes everybody who waits for this.
    pub fn give(&self, hint: Hint) {
        self.0[hint as usize].send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Wakes everybody who waits for one of these.
    pub(crate) fn give_all(&self, hints: HintSet) {
        hints.iter().for_each(|hint| self.give(hint));
    }

    /// A receiver that has seen everything given so far.
    #[must_use]
    pub fn subscribe(&self) -> Hints {
        Hints(std::array::from_fn(|ix| self.0[ix].subscribe()))
    }
}

impl Hints {
    /// Marks everything given so far as seen. Call it before looking.
    pub fn look(&mut self, hint: Hint) {
        self.0[hint as usize].mark_unchanged();
    }

    /// Waits for a hint given since the last look. Never completes once no store is left that
    /// could give one; the poll beside it goes on.
    pub async fn given(&mut self, hint: Hint) {
        if self.0[hint as usize].changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
