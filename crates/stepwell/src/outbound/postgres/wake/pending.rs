//! What this process has to tell others, until it goes out.

use std::sync::{Mutex, MutexGuard};

use stepwell_core::id::RunKey;
use tokio::sync::Notify;

use crate::ports::{EndedRuns, Hint, HintSender, HintSet};

/// Most runs that a notification names: it is no longer than 7,000 bytes, each name is 33 of them.
const NAMED_MAX: usize = 200;

/// What begins the word that names ended runs.
const ENDED: &str = "ended:";

/// What there is to see, as it is told and heard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wake {
    kinds: WakeKinds,
    ended: EndedRuns,
}

/// What there is to see: a bit for each word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WakeKinds(u8);

/// The words of notifications, and whom they concern.
const WORDS: [(&str, WakeKinds); 6] = [
    ("ready", WakeKinds::of(Hint::Ready)),
    ("timers", WakeKinds::of(Hint::Timers)),
    ("ended", WakeKinds::of(Hint::Ended)),
    ("claims", WakeKinds::of(Hint::Claims)),
    ("received", WakeKinds::of(Hint::Received)),
    ("policies", WakeKinds::POLICIES),
];

impl WakeKinds {
    /// Policies of a definition were replaced.
    pub(crate) const POLICIES: Self = Self(1 << Hint::ALL.len());
    pub(super) const EVERYTHING: Self = Self(u8::MAX);

    const fn of(hint: Hint) -> Self {
        Self(1 << hint as u8)
    }

    pub(super) fn contains(self, kinds: Self) -> bool {
        self.0 & kinds.0 != 0
    }

    const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }
}

impl Wake {
    pub(super) fn contains(&self, kinds: WakeKinds) -> bool {
        self.kinds.contains(kinds)
    }

    fn everything() -> Self {
        Self { kinds: WakeKinds::EVERYTHING, ended: EndedRuns::Any }
    }

    fn add(&mut self, kinds: WakeKinds, ended: EndedRuns) {
        self.kinds = self.kinds.and(kinds);
        self.ended.add_all(ended);
        if matches!(&self.ended, EndedRuns::Named(runs) if runs.len() > NAMED_MAX) {
            self.ended = EndedRuns::Any;
        }
    }

    pub(super) fn payload(&self) -> String {
        let words = WORDS.iter().filter(|(_, kinds)| self.contains(*kinds));
        let word = |(word, kinds): &(&str, WakeKinds)| match &self.ended {
            EndedRuns::Named(runs) if *kinds == WakeKinds::of(Hint::Ended) => {
                let names: Vec<String> = runs.iter().map(|run| format!("{:032x}", run.0)).collect();
                format!("{ENDED}{}", names.join(","))
            }
            _ => (*word).to_owned(),
        };
        words.map(word).collect::<Vec<_>>().join(" ")
    }

    /// What was heard. Another version may know other words, and none at all may mean anything.
    pub(super) fn heard(payload: &str) -> Self {
        let mut heard = Self::default();
        for word in payload.split_whitespace() {
            if let Some(names) = word.strip_prefix(ENDED) {
                let run = |name: &str| u128::from_str_radix(name, 16).map(RunKey);
                let Ok(runs) = names.split(',').map(run).collect() else {
                    return Self::everything();
                };
                heard.add(WakeKinds::of(Hint::Ended), EndedRuns::Named(runs));
                continue;
            }
            let Some((_, kinds)) = WORDS.iter().find(|(known, _)| *known == word) else {
                return Self::everything();
            };
            let is_end = *kinds == WakeKinds::of(Hint::Ended);
            heard.add(*kinds, if is_end { EndedRuns::Any } else { EndedRuns::default() });
        }
        if heard.kinds == WakeKinds::default() { Self::everything() } else { heard }
    }

    /// Wakes those in this process whom it concerns.
    pub(super) fn give(&self, hints: &HintSender) {
        for hint in Hint::ALL.into_iter().filter(|hint| self.contains(WakeKinds::of(*hint))) {
            match hint {
                Hint::Ended => hints.give_ended(&self.ended),
                hint => hints.give(hint),
            }
        }
    }
}

impl FromIterator<Hint> for WakeKinds {
    fn from_iter<I: IntoIterator<Item = Hint>>(hints: I) -> Self {
        Self(hints.into_iter().fold(0, |kinds, hint| kinds | Self::of(hint).0))
    }
}

/// What this process has to tell others.
#[derive(Default)]
pub(crate) struct PendingWakes {
    /// Those in this process who wait.
    pub(crate) hints: HintSender,
    pending: Mutex<Wake>,
    filled: Notify,
    /// Another process replaced policies.
    pub(super) policies: Notify,
    /// The channel's test of itself was heard.
    pub(super) heard_ourselves: Notify,
}

impl PendingWakes {
    /// Others will be told soon that there is something to see.
    pub(crate) fn tell(&self, kinds: WakeKinds) {
        self.add(kinds, EndedRuns::default());
    }

    /// Others will be told soon what there is to see.
    pub(crate) fn tell_hints(&self, earned: &HintSet) {
        self.add(earned.iter().collect(), earned.ended().clone());
    }

    fn add(&self, kinds: WakeKinds, ended: EndedRuns) {
        if kinds != WakeKinds::default() {
            self.pending().add(kinds, ended);
            self.filled.notify_one();
        }
    }

    /// Waits until there is something to tell.
    pub(super) async fn wait(&self) {
        while self.pending().kinds == WakeKinds::default() {
            self.filled.notified().await;
        }
    }

    /// Takes out all there is to tell.
    pub(super) fn take(&self) -> Wake {
        std::mem::take(&mut *self.pending())
    }

    fn pending(&self) -> MutexGuard<'_, Wake> {
        self.pending.lock().expect("no holder of the lock panics")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wake(hints: impl IntoIterator<Item = Hint>, ended: EndedRuns) -> Wake {
        Wake { kinds: hints.into_iter().collect(), ended }
    }

    #[test]
    fn what_is_told_is_what_is_heard() {
        let told = wake([Hint::Ready, Hint::Ended], EndedRuns::Any);
        assert_eq!(told.payload(), "ready ended");
        assert_eq!(Wake::heard("ready ended"), told);
        for (word, kinds) in WORDS {
            let told = Wake { kinds, ended: EndedRuns::Any };
            assert_eq!(told.payload(), word);
            assert_eq!(Wake::heard(word).kinds, kinds);
        }
    }

    #[test]
    fn ended_runs_are_told_by_name_as_long_as_they_fit() {
        let runs = |n: u128| EndedRuns::Named((0..n).map(|n| RunKey(n << 64 | 7)).collect());
        let told = wake([Hint::Ended, Hint::Claims], runs(2));
        let names = "00000000000000000000000000000007,00000000000000010000000000000007";
        assert_eq!(told.payload(), format!("ended:{names} claims"));
        let wakes = PendingWakes::default();
        wakes.add(WakeKinds::EVERYTHING, runs(NAMED_MAX as u128));
        let full = wakes.take();
        assert!(full.payload().len() <= 7_000, "{}", full.payload().len());
        assert_eq!(Wake::heard(&full.payload()).ended, runs(NAMED_MAX as u128));
        wakes.add(WakeKinds::of(Hint::Ended), runs(NAMED_MAX as u128));
        wakes.add(WakeKinds::of(Hint::Ended), runs(1));
        assert_eq!(wakes.take().payload(), "ended", "whoever waits looks");
    }

    #[test]
    fn a_word_of_another_version_may_mean_anything() {
        for payload in ["ready weather", "", "ended:", "ended:12,xyz"] {
            assert_eq!(Wake::heard(payload), Wake::everything(), "{payload:?}");
        }
    }

    #[test]
    fn what_is_told_before_it_went_out_goes_out_together() {
        let wakes = PendingWakes::default();
        wakes.tell(WakeKinds::of(Hint::Timers));
        wakes.tell(WakeKinds::POLICIES);
        assert_eq!(wakes.take().payload(), "timers policies");
        assert_eq!(wakes.take(), Wake::default(), "once");
    }
}
