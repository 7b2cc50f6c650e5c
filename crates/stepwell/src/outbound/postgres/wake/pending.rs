//! What this process has to tell others, until it goes out.

use std::sync::atomic::{AtomicU8, Ordering};

use tokio::sync::Notify;

use crate::ports::{Hint, HintSender};

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

    pub(super) fn payload(self) -> String {
        let words = WORDS.iter().filter(|(_, kinds)| self.contains(*kinds)).map(|(word, _)| *word);
        words.collect::<Vec<_>>().join(" ")
    }

    /// What was heard. Another version may know other words, and none at all may mean anything.
    pub(super) fn heard(payload: &str) -> Self {
        let meaning = |word: &str| WORDS.iter().find(|(known, _)| *known == word).map(|(_, n)| *n);
        let kinds: Option<Vec<Self>> = payload.split_whitespace().map(meaning).collect();
        let kinds = kinds.filter(|kinds| !kinds.is_empty());
        let all = |kinds: Vec<Self>| kinds.into_iter().fold(Self(0), |a, b| Self(a.0 | b.0));
        kinds.map_or(Self::EVERYTHING, all)
    }

    /// Wakes those in this process whom it concerns.
    pub(super) fn give(self, hints: &HintSender) {
        for hint in Hint::ALL.into_iter().filter(|hint| self.contains(Self::of(*hint))) {
            hints.give(hint);
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
    /// The bits of [`WakeKinds`].
    pending: AtomicU8,
    filled: Notify,
    /// Another process replaced policies.
    pub(super) policies: Notify,
    /// The channel's test of itself was heard.
    pub(super) heard_ourselves: Notify,
}

impl PendingWakes {
    /// Others will be told soon that there is something to see.
    pub(crate) fn tell(&self, kinds: WakeKinds) {
        if kinds != WakeKinds::default() {
            self.pending.fetch_or(kinds.0, Ordering::AcqRel);
            self.filled.notify_one();
        }
    }

    /// Waits until there is something to tell.
    pub(super) async fn wait(&self) {
        while self.pending.load(Ordering::Acquire) == 0 {
            self.filled.notified().await;
        }
    }

    /// Takes out all there is to tell.
    pub(super) fn take(&self) -> WakeKinds {
        WakeKinds(self.pending.swap(0, Ordering::AcqRel))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_what_is_heard() {
        let told = [Hint::Ready, Hint::Ended].into_iter().collect::<WakeKinds>();
        assert_eq!(told.payload(), "ready ended");
        assert_eq!(WakeKinds::heard("ready ended"), told);
        for (word, kinds) in WORDS {
            assert_eq!((kinds.payload().as_str(), WakeKinds::heard(word)), (word, kinds));
        }
    }

    #[test]
    fn a_word_of_another_version_may_mean_anything() {
        assert_eq!(WakeKinds::heard("ready weather"), WakeKinds::EVERYTHING);
        assert_eq!(WakeKinds::heard(""), WakeKinds::EVERYTHING);
    }

    #[test]
    fn what_is_told_before_it_went_out_goes_out_together() {
        let wakes = PendingWakes::default();
        wakes.tell(WakeKinds::of(Hint::Timers));
        wakes.tell(WakeKinds::POLICIES);
        assert_eq!(wakes.take().payload(), "timers policies");
        assert_eq!(wakes.take(), WakeKinds::default(), "once");
    }
}
