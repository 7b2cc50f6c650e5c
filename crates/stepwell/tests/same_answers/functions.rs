//! Functions, as commands name what they do: memos, waits while they run, suspensions and rounds.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use stepwell::Timestamp;
use stepwell::core::decide::{Listening, Suspension};
use stepwell::core::failure::{Failure, FailureKind};
use stepwell::core::run::{Attributes, FunctionWait, MemoOutcome, MemoRow, WaitKind};
use stepwell::ports::{
    ClaimRef, Clock, ListenAnswer, ListenRequest, MemoRequest, Outcome, StoredMemo,
};
use stepwell::testing::conformance::world::payload;

use super::command::{Command, End, Pick, Theme, picks};
use super::player::Player;
use super::words::bytes;

/// Something that a function has done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deed {
    /// Few keys, so that some are used twice.
    key: u8,
    what: u8,
    value: u8,
}

/// What a function waits for: a bit for each of four things.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waits(u8);

/// What outcomes of functions are made with.
#[derive(Clone)]
pub(crate) struct Moment {
    pub(crate) now: Timestamp,
    /// The number of the next thing that a function hears of.
    pub(crate) number: u64,
    /// What it has heard of, and so does not wait for again.
    pub(crate) heard: BTreeSet<String>,
}

pub(crate) fn deeds(theme: Theme) -> BoxedStrategy<Command> {
    let deed = (0..4_u8, 0..4_u8, 0..3_u8).prop_map(|(key, what, value)| Deed { key, what, value });
    let deeds = vec((picks(), deed), 1..4).prop_map(|deeds| Command::Memos { deeds });
    in_theme(theme, deeds, Command::Pass { millis: 1 })
}

pub(crate) fn listens(theme: Theme) -> BoxedStrategy<Command> {
    let listens = (picks(), waits()).prop_map(|(claim, waits)| Command::Listen { claim, waits });
    in_theme(theme, listens, Command::Pass { millis: 1 })
}

pub(crate) fn suspensions(theme: Theme) -> BoxedStrategy<End> {
    in_theme(theme, waits().prop_map(|waits| End::Suspends { waits }), End::Released)
}

pub(crate) fn rounds(theme: Theme) -> BoxedStrategy<End> {
    in_theme(theme, (0..3_u8).prop_map(|value| End::Continues { value }), End::Released)
}

/// What functions do, where there are functions.
fn in_theme<T: Clone + std::fmt::Debug + 'static>(
    theme: Theme,
    does: impl Strategy<Value = T> + 'static,
    otherwise: T,
) -> BoxedStrategy<T> {
    if theme.has_functions() { does.boxed() } else { Just(otherwise).boxed() }
}

fn waits() -> impl Strategy<Value = Waits> {
    (0..16_u8).prop_map(Waits)
}

impl Waits {
    /// The waits, from this moment on, for what is not over yet.
    fn all(self, Moment { now, heard, .. }: &Moment) -> Vec<FunctionWait> {
        let of =
            |place: u32, key: &str, kind: WaitKind, signal: Option<&str>, secs: Option<u64>| {
                FunctionWait {
                    key: key.to_owned(),
                    place,
                    kind,
                    signals: signal.into_iter().map(str::to_owned).collect(),
                    matching: Attributes::new(),
                    deadline: secs.map(|secs| now.after(Duration::from_secs(secs))),
                }
            };
        let all = [
            of(1, "nap", WaitKind::Sleep, None, Some(20)),
            of(2, "payment", WaitKind::Signal, Some("paid"), Some(30)),
            of(3, "parcel", WaitKind::Signal, Some("sent"), None),
            of(4, "k1", WaitKind::Retry, None, Some(5)),
        ];
        let is_in = |ix: &usize| self.0 & (1 << ix) != 0;
        let chosen = (0..4).filter(is_in).map(|ix| all[ix].clone());
        chosen.filter(|wait| !heard.contains(&wait.key)).collect()
    }
}

/// The function suspends; it waits for something in any case.
pub(crate) fn suspended(waits: Waits, moment: Moment) -> Outcome {
    let mut waits = waits.all(&moment);
    if waits.is_empty() {
        let (key, place, kind) = (format!("nap-{}", moment.number), 9, WaitKind::Sleep);
        let deadline = Some(moment.now.after(Duration::from_secs(20)));
        let (signals, matching) = (Vec::new(), Attributes::new());
        waits.push(FunctionWait { key, place, kind, signals, matching, deadline });
    }
    let suspension = Suspension { waits, next_memo: moment.number, had_waits: true };
    Outcome::Suspended { suspension: Box::new(suspension), notes: [].into() }
}

/// The function begins another round.
pub(crate) fn continued(value: u8) -> Outcome {
    let round = 1 + u32::from(value);
    Outcome::Continued { round, input: payload(&[value; 2]), notes: [].into() }
}

impl Player {
    /// The moment, with a number that no memo has had yet.
    pub(crate) async fn moment(&mut self, claim: ClaimRef) -> Moment {
        // Commits that wake a function take numbers from there on.
        self.n_memos += 20;
        let memos = self.store.memos(claim.run).await.expect("look at memos").into_iter();
        let heard = memos.filter(|memo| memo.row.node == claim.node && memo.row.number > 0);
        let heard = heard.map(|memo| memo.row.key).collect();
        Moment { now: self.clock.now(), number: self.n_memos, heard }
    }

    pub(crate) async fn store_memos(&mut self, deeds: &[(Pick, Deed)]) -> String {
        let (mut requests, mut tasks) = (Vec::new(), BTreeSet::new());
        for (pick, deed) in deeds {
            let Some(claim) = self.pick_doer(*pick) else { continue };
            // An engine has one claim of a task at a time.
            if tasks.insert((claim.run, claim.node)) {
                requests.push(self.memo(claim, *deed).await);
            }
        }
        self.words.plain(self.store.store_memos(requests).await)
    }

    async fn memo(&mut self, claim: ClaimRef, deed: Deed) -> MemoRequest {
        let Moment { now, number, .. } = self.moment(claim).await;
        let failure = || Failure::new(FailureKind::Error, "Error", "no \u{2603}");
        let (number, outcome, payload) = match deed.what {
            0 => (number, MemoOutcome::Given, Some(payload(&vec![deed.value; deed.value.into()]))),
            1 => (number, MemoOutcome::Failed(failure()), None),
            2 => (number, MemoOutcome::Slept, None),
            _ => {
                let due = Some(now.after(Duration::from_secs(5)));
                (0, MemoOutcome::Begun { due, failure: Some(failure()) }, None)
            }
        };
        let (node, key, tries) = (claim.node, format!("k{}", deed.key), u32::from(deed.value));
        let row = MemoRow { node, key, number, outcome, tries, began_at: now, at: now };
        let memos = vec![StoredMemo { row, payload }];
        MemoRequest { claim, memos, forgives: deed.value == 2 }
    }

    pub(crate) async fn listen(&mut self, pick: Pick, waits: Waits) -> String {
        let Some(claim) = self.pick_doer(pick) else { return String::new() };
        let moment = self.moment(claim).await;
        let listening = Listening { waits: waits.all(&moment), next_memo: moment.number };
        let request = ListenRequest { claim, listening };
        let answers = self.store.listen(vec![request]).await;
        let told = |answer: ListenAnswer| match answer {
            ListenAnswer::Listening(heard) => format!(
                "{:?}",
                heard.map(|heard| (heard.place, heard.payload.as_ref().map(bytes), heard.at))
            ),
            ListenAnswer::NotMine => "not mine".to_owned(),
        };
        self.words.plain(answers.map(|all| all.into_iter().map(told).collect::<Vec<_>>()))
    }
}
