//! The runs that callers of this engine wait for, and what is known of them so far.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use stepwell_core::id::{Node, RunKey};
use stepwell_core::run::RunStatus;
use tokio::sync::{Notify, oneshot};

use crate::ports::{AwaitedRun, EndOutput, EndedRun, EndedRuns, Payload, RunEnd, TOLD_BYTES_MAX};

/// How much is kept in all of outputs whose runs have not ended yet.
const ALL_KEPT_BYTES_MAX: usize = 16 << 20;

/// The runs that callers wait for; clones share them.
#[derive(Clone, Default)]
pub(crate) struct AwaitedRuns {
    table: Arc<Mutex<AwaitedTable>>,
    /// Tells whoever looks for ended runs that there is one more to look at, or the first to wait
    /// for.
    added: Arc<Notify>,
}

/// A caller that waits for a run. Dropped, it is forgotten.
pub(crate) struct EndWaiter {
    runs: AwaitedRuns,
    run: RunKey,
    number: u64,
    end: oneshot::Receiver<RunEnd>,
}

impl AwaitedRuns {
    /// A caller that waits for a run which may have ended already, and for what a step left.
    pub(crate) fn wait_for(&self, run: RunKey, output: Option<Node>) -> EndWaiter {
        let waiter = self.wait_for_start_of(run, output);
        self.table().unseen.push(run);
        self.added.notify_one();
        waiter
    }

    /// A caller that waits for a run which is yet to be started: nobody need look whether it has
    /// ended.
    pub(crate) fn wait_for_start_of(&self, run: RunKey, output: Option<Node>) -> EndWaiter {
        let (wake, end) = oneshot::channel();
        let (number, is_first) = self.table().add(AwaitedRun { run, output }, wake);
        if is_first {
            self.added.notify_one();
        }
        EndWaiter { runs: self.clone(), run, number, end }
    }

    /// Waits until there is a run to look at, or the first to wait for.
    pub(crate) async fn added(&self) {
        self.added.notified().await;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.table().runs.is_empty()
    }

    /// Which of these outputs callers ask for whose runs may go on after that, by their places.
    pub(super) fn wanted<'o>(
        &self,
        outputs: impl Iterator<Item = Option<(RunKey, Node, &'o Payload)>>,
    ) -> Vec<(usize, Kept)> {
        let table = self.table();
        if table.runs.is_empty() {
            return Vec::new();
        }
        let is_wanted =
            |run, node| table.runs.get(&run).is_some_and(|run| run.output == Some(node));
        let kept = |(ix, given): (usize, Option<(RunKey, Node, &Payload)>)| {
            let (run, node, output) = given.filter(|(run, node, _)| is_wanted(*run, *node))?;
            Some((ix, Kept { run, node, output: output.clone() }))
        };
        outputs.enumerate().filter_map(kept).collect()
    }

    /// Keeps what steps left whose runs have not ended yet.
    pub(super) fn keep(&self, outputs: impl Iterator<Item = Kept>) {
        let mut table = self.table();
        outputs.for_each(|output| table.keep(output));
    }

    /// Wakes callers of runs that are said to have ended, as far as it is known how. Gives those
    /// that have to be looked at.
    pub(crate) fn hear(&self, ended: EndedRuns) -> Vec<AwaitedRun> {
        self.table().hear(ended)
    }

    /// Wakes callers of runs that have ended.
    pub(crate) fn wake(&self, ended: Vec<(RunKey, RunEnd)>) {
        self.table().wake_all(ended);
    }

    /// Tells all callers that nobody will look any more.
    pub(crate) fn close(&self) {
        let table = std::mem::take(&mut *self.table());
        // Dropping what wakes the callers tells them.
        drop(table);
    }

    fn table(&self) -> MutexGuard<'_, AwaitedTable> {
        self.table.lock().expect("no holder of the lock panics")
    }
}

impl EndWaiter {
    /// Resolves when the run has ended. `None` if the engine closed before.
    pub(crate) async fn ended(mut self) -> Option<RunEnd> {
        (&mut self.end).await.ok()
    }
}

impl Drop for EndWaiter {
    fn drop(&mut self) {
        self.runs.table().remove(self.run, self.number);
    }
}

/// What a step left.
pub(super) struct Kept {
    run: RunKey,
    node: Node,
    output: Payload,
}

/// The runs that callers wait for.
#[derive(Default)]
struct AwaitedTable {
    runs: HashMap<RunKey, Awaited>,
    /// Runs to look at: they may have ended before anybody waited.
    unseen: Vec<RunKey>,
    n_waiters: u64,
    kept_bytes: usize,
}

/// A run that callers wait for.
#[derive(Default)]
struct Awaited {
    /// The step whose output a caller asks for.
    output: Option<Node>,
    /// What that step left, if this process committed it before the run ended.
    kept: Option<Payload>,
    wakes: Vec<(u64, oneshot::Sender<RunEnd>)>,
}

impl AwaitedTable {
    /// Adds a caller, and gives its number and whether nobody waited for anything before.
    fn add(&mut self, run: AwaitedRun, wake: oneshot::Sender<RunEnd>) -> (u64, bool) {
        let is_first = self.runs.is_empty();
        self.n_waiters += 1;
        let awaited = self.runs.entry(run.run).or_default();
        awaited.output = awaited.output.or(run.output);
        awaited.wakes.push((self.n_waiters, wake));
        (self.n_waiters, is_first)
    }

    /// A caller has gone, told or not.
    fn remove(&mut self, run: RunKey, number: u64) {
        let Some(awaited) = self.runs.get_mut(&run) else { return };
        awaited.wakes.retain(|(of, _)| *of != number);
        if awaited.wakes.is_empty() {
            self.take(run);
        }
    }

    fn keep(&mut self, Kept { run, node, output }: Kept) {
        let bytes = output.bytes.len();
        let has_room = self.kept_bytes + bytes <= ALL_KEPT_BYTES_MAX && bytes <= TOLD_BYTES_MAX;
        let awaited = self.runs.get_mut(&run);
        let Some(awaited) = awaited.filter(|awaited| awaited.output == Some(node)) else { return };
        if has_room && awaited.kept.is_none() {
            self.kept_bytes += bytes;
            awaited.kept = Some(output);
        }
    }

    /// Wakes callers of runs that are said to have ended, as far as it is known how. Gives those
    /// that have to be looked at.
    fn hear(&mut self, ended: EndedRuns) -> Vec<AwaitedRun> {
        let mut looks = std::mem::take(&mut self.unseen);
        match ended {
            EndedRuns::Named(named) => {
                looks.extend(named.into_iter().filter_map(|ended| self.hear_of(ended)));
            }
            EndedRuns::Any => looks = self.runs.keys().copied().collect(),
        }
        looks.sort_unstable();
        looks.dedup();
        let awaited = |run| Some(AwaitedRun { run, output: self.runs.get(&run)?.output });
        looks.into_iter().filter_map(awaited).collect()
    }

    /// Wakes callers of a run if it is known how it ended. If not, gives the run.
    fn hear_of(&mut self, EndedRun { run, end }: EndedRun) -> Option<RunKey> {
        let awaited = self.runs.get_mut(&run)?;
        let Some(mut end) = end else { return Some(run) };
        let asked = awaited.output.filter(|_| end.status == RunStatus::Completed);
        let is_told = end.output_of == asked && end.output != EndOutput::Stored;
        if asked.is_some() && !is_told {
            let Some(kept) = awaited.kept.take() else { return Some(run) };
            self.kept_bytes -= kept.bytes.len();
            end.output = EndOutput::Known(Some(kept));
        }
        self.wake(run, *end);
        None
    }

    /// Wakes callers of runs that have ended.
    fn wake_all(&mut self, ended: Vec<(RunKey, RunEnd)>) {
        for (run, end) in ended {
            // A caller that asks for the output may have come while the run was read without.
            let is_answer = |awaited: &Awaited| {
                awaited.output == end.output_of || end.status != RunStatus::Completed
            };
            match self.runs.get(&run) {
                Some(awaited) if is_answer(awaited) => self.wake(run, end),
                Some(_) => self.unseen.push(run),
                None => {}
            }
        }
    }

    fn wake(&mut self, run: RunKey, end: RunEnd) {
        let Some(awaited) = self.take(run) else { return };
        for (_, wake) in awaited.wakes {
            let _ = wake.send(end.clone());
        }
    }

    fn take(&mut self, run: RunKey) -> Option<Awaited> {
        let awaited = self.runs.remove(&run)?;
        self.kept_bytes -= awaited.kept.as_ref().map_or(0, |kept| kept.bytes.len());
        Some(awaited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: Node = Node(1);

    fn json(text: &str) -> Payload {
        Payload::new("json".into(), text.as_bytes())
    }

    fn completed(output: EndOutput) -> RunEnd {
        RunEnd { status: RunStatus::Completed, failure: None, output_of: Some(OUTPUT), output }
    }

    fn told_of(run: u128, end: RunEnd) -> EndedRun {
        EndedRun { run: RunKey(run), end: Some(Box::new(end)) }
    }

    fn named(ended: impl IntoIterator<Item = EndedRun>) -> EndedRuns {
        EndedRuns::Named(ended.into_iter().collect())
    }

    fn keys(runs: &[AwaitedRun]) -> Vec<u128> {
        runs.iter().map(|awaited| awaited.run.0).collect()
    }

    fn told(mut waiter: EndWaiter) -> Option<RunEnd> {
        waiter.end.try_recv().ok()
    }

    #[test]
    fn a_hint_that_names_runs_makes_nobody_look_at_others() {
        let runs = AwaitedRuns::default();
        let mut waiters = [1, 2, 3, 4].map(|run| Some(runs.wait_for(RunKey(run), None)));
        assert_eq!(keys(&runs.hear(named([]))), [1, 2, 3, 4], "nobody has looked yet");
        assert!(runs.hear(named([])).is_empty());
        let ended = named([9, 3, 3, 1].map(|run| RunKey(run).into()));
        assert_eq!(keys(&runs.hear(ended)), [1, 3], "9 concerns nobody here");
        waiters[0] = None;
        assert_eq!(keys(&runs.hear(EndedRuns::Any)), [2, 3, 4], "who gave up is forgotten");
    }

    #[test]
    fn who_waits_for_a_run_that_is_yet_to_be_started_makes_nobody_look() {
        let runs = AwaitedRuns::default();
        let waiter = runs.wait_for_start_of(RunKey(1), Some(OUTPUT));
        assert!(runs.hear(named([])).is_empty());
        let end = completed(EndOutput::Known(Some(json("7"))));
        assert!(runs.hear(named([told_of(1, end)])).is_empty());
        let end = told(waiter).expect("it is told");
        assert_eq!(end.output, EndOutput::Known(Some(json("7"))));
        assert!(runs.is_empty());
    }

    #[test]
    fn an_output_of_an_earlier_commit_is_kept_for_who_waits() {
        let runs = AwaitedRuns::default();
        let waiter = runs.wait_for_start_of(RunKey(1), Some(OUTPUT));
        let given = json("8");
        let outputs = [(RunKey(1), Node(0), &given), (RunKey(1), OUTPUT, &given)];
        let wanted = runs.wanted(outputs.into_iter().map(Some));
        assert_eq!(wanted.iter().map(|(ix, _)| *ix).collect::<Vec<_>>(), [1]);
        runs.keep(wanted.into_iter().map(|(_, kept)| kept));
        let ended = told_of(1, completed(EndOutput::Stored));
        assert!(runs.hear(named([ended])).is_empty());
        assert_eq!(told(waiter).expect("it is told").output, EndOutput::Known(Some(json("8"))));
        assert_eq!(runs.table().kept_bytes, 0);
    }

    #[test]
    fn an_output_that_is_not_here_is_looked_for() {
        let runs = AwaitedRuns::default();
        let waiter = runs.wait_for_start_of(RunKey(1), Some(OUTPUT));
        let ended = told_of(1, completed(EndOutput::Stored));
        assert_eq!(keys(&runs.hear(named([ended]))), [1]);
        let mut other = completed(EndOutput::Known(Some(json("9"))));
        other.output_of = Some(Node(5));
        let ended = told_of(1, other);
        assert_eq!(keys(&runs.hear(named([ended]))), [1], "a deploy changed which step it is");
        assert_eq!(told(waiter), None);
    }

    #[test]
    fn who_asks_for_no_output_is_told_without_one() {
        let runs = AwaitedRuns::default();
        let waiter = runs.wait_for_start_of(RunKey(1), None);
        let ended = told_of(1, completed(EndOutput::Stored));
        assert!(runs.hear(named([ended])).is_empty());
        assert_eq!(told(waiter).map(|end| end.status), Some(RunStatus::Completed));
    }

    #[test]
    fn who_asks_for_an_output_while_the_run_is_read_without_is_answered_by_the_next_read() {
        let runs = AwaitedRuns::default();
        let first = runs.wait_for(RunKey(1), None);
        assert_eq!(runs.hear(named([])), [AwaitedRun { run: RunKey(1), output: None }]);
        let second = runs.wait_for_start_of(RunKey(1), Some(OUTPUT));
        let mut end = completed(EndOutput::Known(None));
        end.output_of = None;
        runs.wake(vec![(RunKey(1), end)]);
        let asked = AwaitedRun { run: RunKey(1), output: Some(OUTPUT) };
        assert_eq!(runs.hear(named([])), [asked]);
        let end = completed(EndOutput::Known(Some(json("1"))));
        runs.wake(vec![(RunKey(1), end)]);
        assert!(told(first).is_some() && told(second).is_some());
    }

    #[test]
    fn callers_that_give_up_leave_nothing_behind() {
        let runs = AwaitedRuns::default();
        for run in 0..10_000 {
            drop(runs.wait_for(RunKey(run % 7), Some(OUTPUT)));
            runs.hear(named([]));
        }
        assert!(runs.is_empty() && runs.table().unseen.is_empty());
    }
}
