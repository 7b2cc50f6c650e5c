//! Functions: what they remember, and what they wait for.

use std::collections::BTreeMap;
use std::time::Duration;

use stepwell_core::decide::{Listening, Suspension};
use stepwell_core::failure::{Failure, FailureKind};
use stepwell_core::run::{FunctionWait, MemoOutcome, MemoRow, WaitKind};
use stepwell_core::time::Timestamp;

use super::setup::payload;
use super::signals::wait_for;
use super::{Run, World};
use crate::ports::{
    ClaimedTask, Clock, History, ListenAnswer, ListenRequest, MemoAnswer, MemoRequest, Outcome,
    StoredMemo,
};

impl World {
    /// A memo of a claimed task: `a@1=value` was given, `a@1!` failed, `a@1~` slept, `a+5s` was
    /// begun and is due then.
    #[must_use]
    pub fn memo(&self, task: &ClaimedTask, text: &str) -> StoredMemo {
        let now = self.clock().now();
        let (key, rest) = text.split_at(text.find(['@', '+']).expect("a number or a span"));
        let (number, outcome, value) = if let Some(span) = rest.strip_prefix('+') {
            let due = Some(now.after(read_span(span)));
            (0, MemoOutcome::Begun { due, failure: None }, None)
        } else {
            let at = rest.find(['=', '!', '~']).expect("an outcome");
            let number = rest[1..at].parse().expect("a number");
            let (mark, value) = rest[at..].split_at(1);
            let outcome = match mark {
                "=" => MemoOutcome::Given,
                "!" => MemoOutcome::Failed(Failure::new(FailureKind::Error, "", "boom")),
                _ => MemoOutcome::Slept,
            };
            (number, outcome, (mark == "=").then_some(value))
        };
        let (node, key, began_at, at) = (task.claim.node, key.to_owned(), now, now);
        StoredMemo {
            row: MemoRow { node, key, number, outcome, tries: 1, began_at, at },
            payload: value.map(|value| payload(value.as_bytes())),
        }
    }

    /// A request to store memos, as [`memo`](Self::memo) reads them.
    #[must_use]
    pub fn memo_request(&self, task: &ClaimedTask, texts: &str) -> MemoRequest {
        let memos = texts.split_whitespace().map(|text| self.memo(task, text)).collect();
        MemoRequest { claim: task.claim, memos, forgives: true }
    }

    /// Stores memos of a claimed task in one request.
    pub async fn remember(&self, task: &ClaimedTask, texts: &str) -> MemoAnswer {
        self.remember_all(vec![self.memo_request(task, texts)]).await.remove(0)
    }

    /// Stores memos in one transaction, whatever the answers.
    pub async fn remember_all(&self, requests: Vec<MemoRequest>) -> Vec<MemoAnswer> {
        let n_requests = requests.len();
        let answers = self.store().store_memos(requests).await.expect("store memos");
        assert_eq!(answers.len(), n_requests, "one answer per request");
        self.acted().await;
        answers
    }

    /// What a claimed task finds of earlier executions.
    pub async fn history(&self, task: &ClaimedTask) -> History {
        *self.inputs(task).await.history.expect("it was executed before")
    }

    /// What the functions of a run have done, as in `a@1 GIVEN, b@0 BEGUN`.
    pub async fn memos(&self, run: &Run) -> String {
        let memos = self.store().memos(run.key).await.expect("read memos");
        words(&memos)
    }

    /// Suspends a claimed task until one of these is over: `ok?paid/3h`, `nap~24h` for a sleep,
    /// `save*5s` for a step that is tried again.
    pub async fn suspend(&self, task: &ClaimedTask, next_memo: u64, waits: &str) {
        self.settle(task, self.suspended(task, next_memo, waits)).await;
    }

    /// An execution that ends to go on when one of these is over.
    #[must_use]
    pub fn suspended(&self, task: &ClaimedTask, next_memo: u64, waits: &str) -> Outcome {
        let waits = read_waits(waits, self.clock().now());
        let had_waits = task.attempt > 1;
        let suspension = Box::new(Suspension { waits, next_memo, had_waits });
        Outcome::Suspended { suspension, notes: BTreeMap::new() }
    }

    /// Lets a claimed task that goes on running wait for these.
    pub async fn listen(&self, task: &ClaimedTask, next_memo: u64, waits: &str) -> ListenAnswer {
        let request = self.listen_request(task, next_memo, waits);
        let mut answers = self.store().listen(vec![request]).await.expect("listen");
        assert_eq!(answers.len(), 1, "one answer per request");
        self.acted().await;
        answers.remove(0)
    }

    /// A request of a claimed task that waits for these while it goes on running.
    #[must_use]
    pub fn listen_request(&self, task: &ClaimedTask, next_memo: u64, waits: &str) -> ListenRequest {
        let waits = read_waits(waits, self.clock().now());
        ListenRequest { claim: task.claim, listening: Listening { waits, next_memo } }
    }
}

/// Memos as in `a@1 GIVEN, b@0 BEGUN`.
#[must_use]
pub fn words(memos: &[StoredMemo]) -> String {
    let word = |memo: &StoredMemo| {
        let MemoRow { key, number, outcome, .. } = &memo.row;
        format!("{key}@{number} {}", outcome.state())
    };
    memos.iter().map(word).collect::<Vec<_>>().join(", ")
}

/// What a function waits for, in the order of its calls.
fn read_waits(text: &str, now: Timestamp) -> Vec<FunctionWait> {
    let waits = (0..).zip(text.split_whitespace());
    waits.map(|(place, text)| read_function_wait(text, place, now)).collect()
}

fn read_function_wait(text: &str, place: u32, now: Timestamp) -> FunctionWait {
    let (key, rest) = text.split_at(text.find(['?', '~', '*']).expect("what it waits for"));
    let (mark, rest) = rest.split_at(1);
    let key = key.to_owned();
    if mark == "?" {
        let wait_for = wait_for(rest);
        let deadline = wait_for.timeout.map(|span| now.after(span));
        let (signals, matching) = (wait_for.signals, wait_for.matching);
        return FunctionWait { key, place, kind: WaitKind::Signal, signals, matching, deadline };
    }
    let kind = if mark == "~" { WaitKind::Sleep } else { WaitKind::Retry };
    let deadline = Some(now.after(read_span(rest)));
    FunctionWait { key, place, kind, signals: Vec::new(), matching: BTreeMap::new(), deadline }
}

fn read_span(text: &str) -> Duration {
    let (number, unit) = text.split_at(text.len() - 1);
    let number: u64 = number.parse().expect("a number of units");
    match unit {
        "h" => Duration::from_hours(number),
        "m" => Duration::from_mins(number),
        _ => Duration::from_secs(number),
    }
}
