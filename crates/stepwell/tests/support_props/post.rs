//! Every signal that was sent, and what a store must answer to it, worked out naively.

use std::collections::BTreeMap;

use stepwell::core::decide::SignalAnswer;
use stepwell::core::id::{Node, RunKey};
use stepwell::core::run::{Resumed, RunRow, RunStatus};
use stepwell::ports::{Payload, SignalRequest, SignalTarget, StoreDump};

use super::claims_seen::task;

/// What was sent to each run, by number.
#[derive(Default)]
pub(super) struct Post(BTreeMap<(RunKey, u64), Sent>);

struct Sent {
    key: String,
    digest: [u8; 32],
    payload: Payload,
}

impl Post {
    /// What ended the last wait of a task, by its row: the payload that was sent.
    pub(super) fn received(&self, dump: &StoreDump, run: RunKey, node: Node) -> Option<Payload> {
        match task(dump, run, node)?.resumed? {
            Resumed::TimedOut => Some(Payload::timed_out()),
            Resumed::Signal(number) => self.0.get(&(run, number)).map(|sent| sent.payload.clone()),
        }
    }

    /// Notes what was sent; says which answers are wrong for runs that stood like this before.
    pub(super) fn sent(
        &mut self,
        before: &StoreDump,
        requests: &[SignalRequest],
        answers: &[Option<SignalAnswer>],
    ) -> Vec<String> {
        let mut findings = Vec::new();
        for (request, answer) in requests.iter().zip(answers) {
            let run = find(before, &request.to);
            if !self.is_right(run, request, *answer) {
                findings.push(format!("{request:?} to {run:?} is answered {answer:?}"));
            }
            if let (Some(run), Some(SignalAnswer::Stored { number, .. })) = (run, answer) {
                let (key, digest) = (request.signal.key.clone(), request.signal.digest);
                let payload = request.payload.clone().of_signal(&request.signal.name);
                self.0.insert((run.key, *number), Sent { key, digest, payload });
            }
        }
        if requests.len() != answers.len() {
            findings.push(format!("{} signals got {} answers", requests.len(), answers.len()));
        }
        findings
    }

    /// A known key goes before everything. Whether a wait got the signal, the invariants tell; and
    /// a signal of the same batch may have ended the run before.
    fn is_right(
        &self,
        run: Option<&RunRow>,
        request: &SignalRequest,
        answer: Option<SignalAnswer>,
    ) -> bool {
        use SignalAnswer::{
            AlreadyEnded, AlreadyEnding, AlreadyStored, KeyTaken, NotAwaited, Stored,
        };
        let (Some(run), Some(answer)) = (run, answer) else {
            return run.is_none() && answer.is_none();
        };
        let of_run = self.0.range((run.key, 0)..=(run.key, u64::MAX));
        let n_sent = of_run.clone().count() as u64;
        let signal = &request.signal;
        let known = of_run.map(|((_, number), sent)| (*number, sent));
        if let Some((number, sent)) = known.clone().find(|(_, sent)| sent.key == signal.key) {
            let is_same = sent.digest == signal.digest;
            return answer == if is_same { AlreadyStored { number } } else { KeyTaken };
        }
        let is_open = run.status == RunStatus::Running;
        match answer {
            Stored { number, .. } => is_open && number == n_sent + 1,
            NotAwaited => is_open && signal.only_if_awaited,
            AlreadyEnding(status) => {
                status == RunStatus::Failed && (is_open || run.status == RunStatus::Ending)
            }
            AlreadyEnded(status) => status.is_terminal() && (is_open || run.status == status),
            _ => false,
        }
    }
}

fn find<'dump>(dump: &'dump StoreDump, to: &SignalTarget) -> Option<&'dump RunRow> {
    let mut runs = dump.runs.values().map(|log| &log.run);
    runs.find(|run| match to {
        SignalTarget::Key(key) => run.key == *key,
        SignalTarget::Id(tenant, id) => run.tenant == *tenant && run.id == *id,
    })
}
