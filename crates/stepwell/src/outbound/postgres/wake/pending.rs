//! What this process has to tell others, until it goes out.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard};

use stepwell_core::id::{RunKey, WorkerId};
use tokio::sync::Notify;

use crate::ports::{EndedRuns, Hint, HintSender, HintSet, TakenFrom};

/// Longest notification with names: PostgreSQL takes less than 8,000 bytes.
const BYTES_MAX: usize = 7_000;

/// Most runs that a notification names: each name is 33 bytes.
const NAMED_MAX: usize = 200;

/// What begins the word that names ended runs.
const ENDED: &str = "ended:";

/// What there is to see, as it is told and heard: words on the first line, and then, a line each,
/// the workers whose claims were taken; none for anybody's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wake {
    kinds: WakeKinds,
    ended: EndedRuns,
    taken_from: TakenFrom,
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

impl From<WakeKinds> for Wake {
    fn from(kinds: WakeKinds) -> Self {
        Self { kinds, ..Self::default() }
    }
}

impl From<&HintSet> for Wake {
    fn from(earned: &HintSet) -> Self {
        let (ended, taken_from) = (earned.ended().names(), earned.taken_from().clone());
        Self { kinds: earned.iter().collect(), ended, taken_from }
    }
}

impl Wake {
    pub(super) fn contains(&self, kinds: WakeKinds) -> bool {
        self.kinds.contains(kinds)
    }

    fn everything() -> Self {
        let (ended, taken_from) = (EndedRuns::Any, TakenFrom::Anybody);
        Self { kinds: WakeKinds::EVERYTHING, ended, taken_from }
    }

    fn add(&mut self, others: Self) {
        self.kinds = self.kinds.and(others.kinds);
        self.taken_from.add_all(others.taken_from);
        self.ended.add_all(others.ended);
        if matches!(&self.ended, EndedRuns::Named(runs) if runs.len() > NAMED_MAX) {
            self.ended = EndedRuns::Any;
        }
    }

    pub(super) fn payload(&self) -> String {
        let mut payload = self.words();
        let workers = self.taken_from.workers().map(WorkerId::as_str);
        let names: String = workers.flat_map(|worker| ["\n", worker]).collect();
        // Workers that do not fit besides the runs are left out, and everybody looks.
        if payload.len() + names.len() <= BYTES_MAX {
            payload.push_str(&names);
        }
        payload
    }

    fn words(&self) -> String {
        let words = WORDS.iter().filter(|(_, kinds)| self.contains(*kinds));
        let word = |(word, kinds): &(&str, WakeKinds)| match &self.ended {
            EndedRuns::Named(runs) if *kinds == WakeKinds::of(Hint::Ended) => {
                let names: Vec<String> =
                    runs.iter().map(|ended| format!("{:032x}", ended.run.0)).collect();
                format!("{ENDED}{}", names.join(","))
            }
            _ => (*word).to_owned(),
        };
        words.map(word).collect::<Vec<_>>().join(" ")
    }

    /// What was heard. Another version may know other words, and none at all may mean anything.
    pub(super) fn heard(payload: &str) -> Self {
        let mut lines = payload.lines();
        let words = lines.next().unwrap_or_default().split_whitespace();
        let Some(mut heard) = words.map(Self::heard_word).collect::<Option<Self>>() else {
            return Self::everything();
        };
        if heard.contains(WakeKinds::of(Hint::Claims)) {
            let names: Result<BTreeSet<WorkerId>, _> = lines.map(WorkerId::new).collect();
            let names = names.ok().filter(|names| !names.is_empty());
            heard.taken_from = names.map_or(TakenFrom::Anybody, TakenFrom::These);
        }
        if heard.kinds == WakeKinds::default() { Self::everything() } else { heard }
    }

    fn heard_word(word: &str) -> Option<Self> {
        if let Some(names) = word.strip_prefix(ENDED) {
            let run = |name: &str| u128::from_str_radix(name, 16).map(|key| RunKey(key).into());
            let ended = EndedRuns::Named(names.split(',').map(run).collect::<Result<_, _>>().ok()?);
            return Some(Self { ended, ..WakeKinds::of(Hint::Ended).into() });
        }
        let (_, kinds) = WORDS.iter().find(|(known, _)| *known == word)?;
        let is_end = *kinds == WakeKinds::of(Hint::Ended);
        let ended = if is_end { EndedRuns::Any } else { EndedRuns::default() };
        Some(Self { ended, ..Self::from(*kinds) })
    }

    /// Wakes those in this process whom it concerns.
    pub(super) fn give(&self, hints: &HintSender) {
        for hint in Hint::ALL.into_iter().filter(|hint| self.contains(WakeKinds::of(*hint))) {
            match hint {
                Hint::Ended => hints.give_ended(&self.ended),
                Hint::Claims => hints.give_taken(&self.taken_from),
                hint => hints.give(hint),
            }
        }
    }
}

impl FromIterator<Self> for Wake {
    fn from_iter<I: IntoIterator<Item = Self>>(wakes: I) -> Self {
        let mut all = Self::default();
        wakes.into_iter().for_each(|wake| all.add(wake));
        all
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
    pub(crate) fn tell(&self, wake: impl Into<Wake>) {
        let wake = wake.into();
        if wake.kinds != WakeKinds::default() {
            self.pending().add(wake);
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
        Wake { ended, ..hints.into_iter().collect::<WakeKinds>().into() }
    }

    #[test]
    fn what_is_told_is_what_is_heard() {
        let told = wake([Hint::Ready, Hint::Ended], EndedRuns::Any);
        assert_eq!(told.payload(), "ready ended");
        assert_eq!(Wake::heard("ready ended"), told);
        for (word, kinds) in WORDS {
            let told = Wake { ended: EndedRuns::Any, ..kinds.into() };
            assert_eq!(told.payload(), word);
            assert_eq!(Wake::heard(word).kinds, kinds);
        }
    }

    #[test]
    fn ended_runs_are_told_by_name_as_long_as_they_fit() {
        let runs = |n: u128| EndedRuns::Named((0..n).map(|n| RunKey(n << 64 | 7).into()).collect());
        let told = wake([Hint::Ended, Hint::Claims], runs(2));
        let names = "00000000000000000000000000000007,00000000000000010000000000000007";
        assert_eq!(told.payload(), format!("ended:{names} claims"));
        let wakes = PendingWakes::default();
        let named_max = runs(NAMED_MAX as u128);
        wakes.tell(Wake { ended: named_max.clone(), ..WakeKinds::EVERYTHING.into() });
        let full = wakes.take();
        assert!(full.payload().len() <= BYTES_MAX, "{}", full.payload().len());
        assert_eq!(Wake::heard(&full.payload()).ended, named_max);
        wakes.tell(wake([Hint::Ended], named_max));
        wakes.tell(wake([Hint::Ended], runs(1)));
        assert_eq!(wakes.take().payload(), "ended", "whoever waits looks");
    }

    #[test]
    fn a_word_of_another_version_may_mean_anything() {
        for payload in ["ready weather", "", "ended:", "ended:12,xyz"] {
            assert_eq!(Wake::heard(payload), Wake::everything(), "{payload:?}");
        }
    }

    #[test]
    fn workers_whose_claims_were_taken_are_told_by_name_as_long_as_there_is_room() {
        let taken = |n: usize| (0..n).map(|n| WorkerId::new(format!("worker {n:03}")).unwrap());
        for (n, is_known) in [(1, true), (2, true), (600, true), (700, false)] {
            let wakes = PendingWakes::default();
            let mut earned = HintSet::default();
            earned.add_taken(taken(n).collect());
            wakes.tell(&earned);
            let payload = wakes.take().payload();
            assert!(payload.len() < 8_000, "{}", payload.len());
            let expected =
                if is_known { TakenFrom::These(taken(n).collect()) } else { TakenFrom::Anybody };
            let heard = Wake { taken_from: expected, ..WakeKinds::of(Hint::Claims).into() };
            assert_eq!(Wake::heard(&payload), heard, "{n}");
        }
        assert_eq!(Wake::heard("claims").taken_from, TakenFrom::Anybody);
    }

    #[test]
    fn runs_and_workers_are_named_together_as_long_as_there_is_room() {
        for (n_runs, n_workers, is_known) in [(2, 2, true), (150, 180, true), (200, 180, false)] {
            let wakes = PendingWakes::default();
            let workers = (0..n_workers).map(|n| WorkerId::new(format!("worker {n:03}")).unwrap());
            let ended = EndedRuns::Named((0..n_runs).map(|run| RunKey(run).into()).collect());
            wakes.tell(wake([Hint::Ended], ended.clone()));
            let mut earned = HintSet::default();
            earned.add_taken(workers.collect());
            wakes.tell(&earned);
            let told = wakes.take();
            assert!(told.payload().len() <= BYTES_MAX, "{}", told.payload().len());
            let taken_from = if is_known { told.taken_from.clone() } else { TakenFrom::Anybody };
            let heard = Wake { taken_from, ..wake([Hint::Ended, Hint::Claims], ended) };
            assert_eq!(Wake::heard(&told.payload()), heard, "{n_runs} {n_workers}");
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
