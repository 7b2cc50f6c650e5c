//! Answers in words that are the same for all stores: what may differ, such as the count in a
//! token, is replaced by the order in which it was first seen.

use std::collections::HashMap;
use std::fmt::{Debug, Write};
use std::sync::Arc;

use stepwell::core::id::Token;
use stepwell::core::run::{AttemptRow, Phase, RunLog, TaskRow};
use stepwell::ports::{
    ClaimAnswer, ClaimRef, HeartbeatAnswer, History, Payload, StoreDump, StoreError,
    StoredDefinition, StoredMemo, TaskInputs, TaskPlace,
};

/// An answer without the marks of definitions, which stores draw by chance.
pub(crate) fn unmarked(answer: &str) -> String {
    let mut parts = answer.split("Mark(");
    let first = parts.next().unwrap_or_default().to_owned();
    let rest = |part: &str| part.split_once(')').map_or("", |(_, rest)| rest).to_owned();
    parts.fold(first, |words, part| words + "Mark" + &rest(part))
}

/// Puts answers into words.
pub(crate) struct Words {
    tokens: HashMap<Token, u128>,
    /// Whether tokens are told apart no more: what is handed over has another than what is
    /// claimed right after.
    hides_tokens: bool,
}

impl Words {
    pub(crate) fn new(hides_tokens: bool) -> Self {
        Self { tokens: HashMap::new(), hides_tokens }
    }

    /// An answer that holds nothing of the store's own.
    #[expect(clippy::unused_self, reason = "it stands beside the others")]
    pub(crate) fn plain<T: Debug>(&self, answer: Result<T, StoreError>) -> String {
        format!("{answer:?}")
    }

    pub(crate) fn definition(&self, answer: Result<Arc<StoredDefinition>, StoreError>) -> String {
        self.plain(answer)
    }

    fn token(&mut self, token: Token) -> Token {
        if self.hides_tokens {
            return Token(0);
        }
        let next = self.tokens.len() as u128;
        Token(*self.tokens.entry(token).or_insert(next))
    }

    fn claim(&mut self, claim: ClaimRef) -> ClaimRef {
        ClaimRef { token: self.token(claim.token), ..claim }
    }

    pub(crate) fn claimed(&mut self, answer: Result<ClaimAnswer, StoreError>) -> String {
        let (now, tasks, suspect_waits) = match answer {
            Ok(ClaimAnswer::Claimed { now, tasks, suspect_waits }) => (now, tasks, suspect_waits),
            other => return self.plain(other),
        };
        let mut words = format!("at {now:?}, a suspect waits: {suspect_waits}:");
        for task in tasks {
            let claim = self.claim(task.claim);
            let step = task.definition.definition.name(claim.node);
            let whose = (task.tenant.as_str(), task.run_id.as_str(), task.definition.id);
            let what = (task.attempt, task.is_suspect, task.resumed);
            write!(words, "\n  {claim:?} {step} of {whose:?}, {what:?}")
                .expect("a string has room");
        }
        words
    }

    pub(crate) fn beat(&mut self, answer: Result<HeartbeatAnswer, StoreError>) -> String {
        let answer = answer.map(|answer| match answer {
            HeartbeatAnswer::Alive { lost, unknown } => {
                let mut named = |claims: Vec<ClaimRef>| {
                    claims.into_iter().map(|claim| self.claim(claim)).collect::<Vec<_>>()
                };
                let (lost, mut unknown) = (named(lost), named(unknown));
                unknown.sort_unstable();
                HeartbeatAnswer::Alive { lost, unknown }
            }
            dead @ HeartbeatAnswer::Dead => dead,
        });
        self.plain(answer)
    }

    pub(crate) fn inputs(&self, answer: Result<Vec<TaskInputs>, StoreError>) -> String {
        let inputs = |inputs: &TaskInputs| {
            let parents = inputs.parents.iter();
            let parents = parents.map(|p| (p.node, p.state, p.output.as_ref().map(bytes)));
            let resumed = inputs.resumed.as_ref().map(bytes);
            let failure = inputs.failure.clone();
            let history = inputs.history.as_deref().map(history);
            (bytes(&inputs.input), parents.collect::<Vec<_>>(), failure, resumed, history)
        };
        self.plain(answer.map(|all| all.iter().map(inputs).collect::<Vec<_>>()))
    }

    pub(crate) fn memos(&self, answer: Result<Vec<StoredMemo>, StoreError>) -> String {
        self.plain(answer.map(|memos| memos.iter().map(memo).collect::<Vec<_>>()))
    }

    pub(crate) fn task(&mut self, task: &TaskRow) -> TaskRow {
        let mut task = task.clone();
        if let Phase::Running(claim) = &mut task.phase {
            claim.token = self.token(claim.token);
        }
        task
    }

    fn attempt(&mut self, attempt: &AttemptRow) -> AttemptRow {
        let mut attempt = attempt.clone();
        attempt.claim.token = self.token(attempt.claim.token);
        attempt
    }

    /// A log, a line per row. Stores keep the rows in an order of their own.
    pub(crate) fn log(&mut self, log: &RunLog) -> String {
        let mut lines = vec![format!("{:?}", log.run)];
        let mut open: Vec<&TaskRow> = log.open.iter().collect();
        open.sort_by_key(|task| task.node);
        lines.extend(open.into_iter().map(|task| format!("  open {:?}", self.task(task))));
        let mut attempts: Vec<&AttemptRow> = log.attempts.iter().collect();
        attempts.sort_by_key(|attempt| attempt.first_event);
        lines.extend(attempts.into_iter().map(|row| format!("  attempt {:?}", self.attempt(row))));
        let mut events: Vec<_> = log.events.iter().collect();
        events.sort_by_key(|event| event.number);
        lines.extend(events.into_iter().map(|event| format!("  event {event:?}")));
        lines.join("\n")
    }

    /// Everything a store holds, a line per row; without the order in the queues if that is open.
    pub(crate) fn dump(&mut self, dump: &StoreDump, with_order: bool) -> String {
        let mut lines = Vec::new();
        for log in dump.runs.values() {
            lines.push(self.log(log));
        }
        for (run, tasks) in &dump.tasks {
            lines.extend(tasks.iter().map(|task| format!("task of {run} {:?}", self.task(task))));
        }
        for (task, place) in &dump.places {
            lines.push(match place {
                TaskPlace::Ready(queue, _) if !with_order => format!("{task:?} is in {queue:?}"),
                place => format!("{task:?} is at {place:?}"),
            });
        }
        lines.extend(dump.timers.iter().map(|(task, due)| format!("{task:?} is due {due:?}")));
        for (run, waits) in &dump.waits {
            lines.extend(waits.iter().map(|wait| format!("{run} has {wait:?}")));
        }
        for (run, signals) in &dump.signals {
            lines.extend(signals.iter().map(|signal| format!("{run} has {signal:?}")));
        }
        for (run, memos) in &dump.memos {
            lines.extend(memos.iter().map(|memo| format!("{run} has {memo:?}")));
        }
        for (worker, claims) in dump.claims.iter().filter(|(_, claims)| !claims.is_empty()) {
            let mut claims: Vec<_> = claims.iter().map(|claim| self.claim(*claim)).collect();
            claims.sort_unstable();
            lines.push(format!("{worker} holds {claims:?}"));
        }
        let admitted = dump.admitted.iter().filter(|(_, n)| **n > 0);
        lines.extend(admitted.map(|(tenant, n)| format!("{tenant} has {n} admitted")));
        lines.join("\n")
    }
}

/// What is told of earlier executions.
fn history(history: &History) -> String {
    let History { began_at, memos, waits, has_suspended, has_losses, has_signals } = history;
    let memos: Vec<String> = memos.iter().map(memo).collect();
    let flags = (has_suspended, has_losses, has_signals);
    format!("since {began_at:?}, {memos:?}, {waits:?}, {flags:?}")
}

fn memo(memo: &StoredMemo) -> String {
    format!("{:?} {:?}", memo.row, memo.payload.as_ref().map(bytes))
}

/// A payload's own debug text hides its bytes.
pub(crate) fn bytes(payload: &Payload) -> (String, Vec<u8>, Option<String>) {
    let signal = payload.signal_name().map(str::to_owned);
    (payload.codec.to_string(), payload.bytes.to_vec(), signal)
}
